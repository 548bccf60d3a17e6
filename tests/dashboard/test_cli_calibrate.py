"""`calibrate`: own measurements are taken in, shown, used and forgotten."""

import json
from pathlib import Path

import pytest

from tests.planner.test_benchmarks import ROW, SERVED

ONE = {**ROW, "gpu_info": "NVIDIA GeForce RTX 4090", "type_k": "f16", "n_depth": 0}
SIZE = ("size", "qwen3-8b", "--gpu", "RTX 4090", "--json")


@pytest.fixture
def bench(tmp_path):
    """Write a file of llama-bench."""

    def write(*rows):
        file = tmp_path / "bench.json"
        file.write_text(json.dumps(rows), encoding="utf-8")
        return file

    return write


def test_own_measurements_correct_later_estimates_of_their_device(cli, bench):
    before, other = cli(*SIZE).document, cli("size", "qwen3-8b", "--gpu", "RTX 3090", "--json").document
    ran = cli("calibrate", bench(ONE), "--json")
    assert ran.code == 0
    (row,) = ran.document["measurements"]
    assert (row["measured"], row["metric"], row["corrects"]) == (108.2, "decode_tps", "decode")
    assert row["speed_ratio"] == pytest.approx(row["measured"] / row["estimated"])
    after = cli(*SIZE).document
    change = after["speed"]["decode_tokens_per_s"] / before["speed"]["decode_tokens_per_s"]
    assert row["speed_ratio"] < change < 1.0  # another depth of the cache: most of the difference
    assert after["notes"][0].startswith("corrected by 1 own measurement of this device and engine")
    assert "own measurement: bench.json" in {
        near["source"] for near in cli("evidence", "qwen3-8b", "--json").document["results"]
    }
    untouched = cli("size", "qwen3-8b", "--gpu", "RTX 3090", "--json").document
    assert untouched["speed"] == other["speed"]


def test_a_plan_and_rows_use_them_too(cli, bench, database, tmp_path):
    plan = ("plan", "qwen3-8b", "--gpu", "RTX 4090", "--gpus", "1", "--json")
    before = cli(*plan).document["options"][0]
    cli("calibrate", bench(ONE))
    after = cli(*plan).document["options"][0]
    speed = cli(*SIZE).document["speed"]["decode_tokens_per_s"]
    assert after["decode_tokens_per_s"] == pytest.approx(speed)
    assert after["decode_tokens_per_s"] < before["decode_tokens_per_s"]
    assert "x correction by own measurements" in cli(*plan[:-1], "--explain", "1").out
    rows = tmp_path / "rows.csv"
    rows.write_text("model,gpu\nqwen3-8b,RTX 4090\n", encoding="utf-8")
    cli("size", "--rows", rows, "-o", tmp_path / "out.csv")
    header, row = (line.split(",") for line in (tmp_path / "out.csv").read_text().splitlines())
    assert float(row[header.index("decode_tokens_per_s")]) == pytest.approx(speed)


def test_taken_in_again_it_is_replaced_and_forgotten_it_is_gone(cli, bench):
    cli("calibrate", bench(ONE))
    cli("calibrate", bench({**ONE, "avg_ts": 120.0}, {**ONE, "n_gen": 0, "n_prompt": 512, "avg_ts": 9000.0}))
    rows = cli("calibrate", "--list", "--json").document["measurements"]
    assert [(row["metric"], row["measured"]) for row in rows] == [
        ("decode_tps", 120.0),
        ("prefill_tps", 9000.0),
    ]
    assert "0 own measurements forgotten, 2 kept" in cli("calibrate", "--forget", "--gpu", "RTX 3090").out
    assert "2 own measurements forgotten, 0 kept" in cli("calibrate", "--forget").out
    assert "There are no own measurements" in cli("calibrate", "--list").out


def test_text_shows_measured_beside_estimated(cli, bench):
    out = cli("calibrate", bench(ONE)).out
    assert "speed ratio" in out
    assert "108" in out
    assert "* estimated, not measured, before any correction" in out


def test_a_server_needs_its_machine_named(cli, tmp_path):
    file = tmp_path / "served.json"
    file.write_text(json.dumps(SERVED), encoding="utf-8")
    ran = cli("calibrate", file, "--gpu", "H100 SXM", "--quant", "FP8", "--json")
    assert [row["metric"] for row in ran.document["measurements"]] == ["tpot_ms", "ttft_ms", "agg_output_tps"]
    assert [row["corrects"] for row in ran.document["measurements"]] == ["decode", "prompt", None]


def test_what_cannot_be_true_is_not_taken(cli, bench):
    prompts = {**ONE, "n_gen": 0, "n_prompt": 512, "avg_ts": 200_000.0}
    ran = cli("calibrate", bench(prompts), "--json")
    assert ran.code == 3
    assert "is it the model, format and machine that were named?" in ran.err
    assert ran.document["measurements"] == []
    # Q4_K_M of Qwen3 8B, 4.6 GB without the table of inputs: 1,008 GB/s read it 219 times a second
    ran = cli("calibrate", bench({**ONE, "avg_ts": 230.0}), "--json")
    assert ran.code == 3
    assert "decode_tps 230 tokens/s is beyond what the bandwidth of 1x RTX 4090 allows: up to 219" in ran.err
    assert ran.err.count("\n") == 1
    assert cli("calibrate", "--list", "--json").document["measurements"] == []


def test_a_server_may_draft_and_a_time_per_token_has_a_bound_all_the_same(cli, tmp_path):
    # FP8 of Qwen3 8B on an RTX 4090: about 1,008 / 7.6 GB = 133 steps a second of up to 5 tokens
    file = tmp_path / "served.json"
    asked = ("calibrate", file, "--gpu", "RTX 4090", "--quant", "FP8", "--json")
    for tpot_ms, is_taken in ((5.0, True), (1.0, False)):
        file.write_text(json.dumps({**SERVED, "median_tpot_ms": tpot_ms}), encoding="utf-8")
        ran = cli(*asked)
        assert ("tpot_ms" in [row["metric"] for row in ran.document["measurements"]]) is is_taken
        assert ("tpot_ms 1 ms is beyond what the bandwidth" in ran.err) is not is_taken


def test_the_same_content_under_another_name_or_other_options_counts_once(cli, bench, tmp_path):
    cli("calibrate", bench(ONE))
    copy = tmp_path / "copy.json"
    copy.write_text(json.dumps([ONE], indent=2), encoding="utf-8")
    ran = cli("calibrate", copy, "--quant", "Q8_0", "--json")
    remark = "own measurement: copy.json has the content of own measurement: bench.json: it counts once"
    assert remark in ran.err
    assert "--quant Q8_0 is taken for 'qwen3 8B Q4_K - Medium'" in ran.err
    (row,) = cli("calibrate", "--list", "--json").document["measurements"]
    assert (row["quant"], row["source"]) == ("Q8_0", "own measurement: copy.json")
    both = cli("calibrate", bench(ONE), copy, "--json").document["measurements"]
    assert len(both) == 1


@pytest.mark.parametrize(
    "arguments", [(), ("--list", "--forget"), ("--list", "x.json"), ("missing.json",)], ids=" ".join
)
def test_wrong_use_is_one_line(cli, arguments):
    ran = cli("calibrate", *arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)


def test_a_damaged_file_is_named_with_a_remedy(cli, bench, tmp_path):
    kept = cli("calibrate", bench(ONE), "--json").document["file"]
    Path(kept).write_text("{", encoding="utf-8")
    ran = cli(*SIZE)
    assert ran.code == 2
    assert "move" in ran.err
    assert kept in ran.err


def test_the_file_stands_beside_the_database(tmp_path):
    from dashboard.files.ownresults import results_file

    assert (
        results_file({"BREAKEVEN_DATABASE_URL": f"sqlite:///{tmp_path}/a.db"})
        == tmp_path / "calibration.json"
    )
    elsewhere = results_file({"BREAKEVEN_DATABASE_URL": "postgresql://host/name"})
    assert elsewhere.name == "calibration.json"
    assert results_file({}) == results_file({"BREAKEVEN_DATABASE_URL": "sqlite://"}) == elsewhere


def test_a_run_that_took_nothing_fails_and_says_so(cli, bench):
    ran = cli("calibrate", bench({**ONE, "n_gpu_layers": 0}))
    assert (ran.code, ran.out.strip()) == (3, "Nothing was taken in.")
    assert "not taken: layers in host memory" in ran.err
    assert cli("calibrate", "--list").code == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "'an empty list' is not allowed"),
        ("", "'an empty file, which is no JSON' is not allowed"),
        ("hello\n", "'text that is no JSON and no CSV' is not allowed"),
        ('[{"avg_ts": 1,\n', "'no JSON (Expecting property name"),
        ("null", "'JSON without a record' is not allowed"),
        ("[" * 50_000 + "]" * 50_000, "nested too deeply"),
        ("a,b\n1,2\n", "'a, b'"),
    ],
    ids=["no-rows", "empty", "words", "cut", "null", "deep", "other"],
)
def test_a_file_that_cannot_be_read_is_named_in_one_line(cli, tmp_path, text, why):
    file = tmp_path / "odd.json"
    file.write_text(text, encoding="utf-8")
    ran = cli("calibrate", file)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith(f"breakeven: {file}: ")
    assert why in ran.err
