"""`plan` and `export` through the command line: figures, options, files, warnings."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.commands.plan_text import options_table
from planner.scenario import Scenario
from tests.planner.plans import plan_of, rate

MODEL = "qwen3-coder-480b-a35b"
SIZING_PAGE = (
    *("plan", MODEL, "--as-of", "2026-11-04", "--provider", "runpod", "--gpu", "B200", "--gpus", 2),
    *("--method", "simple", "--decode-tokens-per-s", 3.4, "--owner", "home"),
    *("--set", "purchase_usd=25000", "--set", "power_kw=0.7"),
)
HEAVY = ("streamlit", "altair", "pandas", "pyarrow", "httpx", "alembic", "selectolax", "sqlmodel", "pydantic")


@pytest.fixture
def page(cli, database):
    """The sizing page's decision."""
    ran = cli(*SIZING_PAGE, "--json")
    assert ran.code == 0, ran.err
    options = ran.document["options"]
    (rent,) = [option for option in options if option["kind"] == "rent"]
    (buy,) = [option for option in options if option["kind"] == "buy"]
    return rent, buy


def test_a_month_of_two_b200_at_four_hours_a_day(page):
    rent, _ = page
    assert (rent["usd_per_hour"], rent["usd_per_gpu_hour"], rent["gpu_count"]) == ("11.96", "5.98", 2)
    assert rent["usd_per_month"] == pytest.approx(1454.34, abs=0.005)


def test_its_price_of_a_million_tokens_at_one_users_speed(page):
    rent, _ = page
    assert rent["usd_per_million_tokens"] == pytest.approx(977.12, abs=0.005)
    assert rent["speed_source"] == "measured"


def test_energy_and_payback_of_the_pages_purchase(page):
    _, buy = page
    assert buy["energy_usd_per_month"] == pytest.approx(14.90, abs=0.005)
    assert buy["break_even_months"] == pytest.approx(17.4, abs=0.05)


def test_every_option_has_the_keys_of_the_interface_and_is_ranked(cli, database):
    ran = cli("plan", MODEL, "--json")
    assert ran.code == 0
    assert ran.document["schema"] == "breakeven.plan/1"
    assert ran.document["verdict"].endswith(".")
    assert {"scenario", "options", "excluded"} <= ran.document.keys()
    for option in ran.document["options"]:
        assert option["kind"] in {"rent", "buy", "api"}
        assert {"seen_at", "age_hours", "status", "source_url", "witnesses"} <= option["price"].keys()
    for entry in ran.document["excluded"]:
        assert entry["what"]
        assert entry["why"]


def test_the_text_starts_with_the_verdict_and_marks_estimates(cli, database):
    text = cli("plan", MODEL).out
    verdict = cli("plan", MODEL, "--json").document["verdict"]
    assert text.splitlines()[0] == verdict
    assert "* estimated, not measured" in text
    assert "snapshot 2026-" in text
    assert "Left out (" in text


def test_the_text_tells_never_from_nothing_to_compare_with(cli, database):
    def bought(*options):
        rows = cli("plan", MODEL, "--gpu", "B200", *options).out.split("\n\n")[2].splitlines()
        (row,) = (row for row in rows if " buy " in row)
        return row

    assert "  no rental to compare  " in bought("--provider", "hotaisle")
    assert "  never  " in bought("--hours-per-day", 0.5)
    assert " months  " in bought("--hours-per-day", 24)


def test_recommended_hardware_without_a_price_says_which_price_is_missing(cli, database):
    command = ("plan", MODEL, "--context", 8192)
    choices = cli(*command, "--json").document["recommended"].values()
    unpriced = [one["name"] for one in choices if one and one["usd"] is one["usd_per_hour"] is None]
    assert unpriced
    text = cli(*command).out
    for name in unpriced:
        assert f"{name}: no purchase price known" in text


def test_the_table_marks_a_price_beside_which_a_newer_one_waits():
    waits = "a newer price, 1.65 USD/h seen on 2026-11-30, waits in quarantine: half of it"
    found = plan_of([rate("held", note=waits), rate("plain", usd_per_hour="13.00")])
    options = [option for option in found.to_document()["options"] if option["kind"] == "rent"]
    table = options_table(options, 0, found.money, floor_tokens_per_s=10.0, term_months=48.0)
    (held,) = (line for line in table.splitlines() if " held " in line)
    (plain,) = (line for line in table.splitlines() if " plain " in line)
    assert " newer price waits " in held
    assert "newer" not in plain


def test_the_table_says_in_a_word_why_a_row_is_not_the_answer(cli, database):
    command = ("plan", "qwen3-32b", "--batch", 8, "--limit", 0)
    document = cli(*command, "--json").document
    lines = [line for line in cli(*command).out.splitlines() if line[:3].strip().isdigit()]
    assert len(lines) == len(document["options"])
    words = {
        "too slow to talk to": "too slow (",
        "spot, may be taken away": " spot ",
        "price ": " old price ",
    }
    seen = set()
    for option, line in zip(document["options"], lines, strict=True):
        if option["passed_over"]:
            (word,) = (word for reason, word in words.items() if option["passed_over"].startswith(reason))
            assert word in line
            seen.add(word)
        if option[
            "is_too_slow"
        ]:  # by the speed that the limit applies to, which is not the one of a pure decode step
            assert f"too slow ({1000 / option['tpot_ms']:.1f})" in line
        else:
            assert "too slow" not in line
    assert seen == set(words.values())
    # The limit is on what one user gets with the prompts of others in between: the table says that figure.
    slow = [option for option in document["options"] if option["is_too_slow"]]
    assert any(option["decode_tokens_per_s"] > 10 > 1000 / option["tpot_ms"] for option in slow)


def test_a_filter_is_named_where_the_hardware_list_knows_better(cli, database):
    text = cli(*SIZING_PAGE).out
    assert "among what was asked for (2x B200, from runpod)" in text.splitlines()[0]
    assert "Hardware that holds it (to buy: whatever --gpu and --gpus ask for):" in text
    (cloud,) = (line for line in text.splitlines() if line.startswith("cheapest cloud"))
    assert cloud.endswith("3.4 tok/s")  # measured, so without the mark of an estimate


def test_a_day_before_all_prices_shows_no_empty_table(cli, database):
    text = cli("plan", MODEL, "--as-of", "2020-01-01").out
    assert text.startswith("No price of 2020-01-01 or before is known")
    assert "USD/month" not in text


def test_a_past_day_counts_for_purchases_and_apis_too(cli, database):
    document = cli("plan", MODEL, "--as-of", "2025-12-31", "--json").document
    kinds = {option["kind"] for option in document["options"]}
    assert kinds == {"rent", "buy"}
    assert all(option["price"]["seen_at"][:10] <= "2025-12-31" for option in document["options"])


def test_a_plan_loads_none_of_the_heavy_libraries(database):
    code = (
        "import sys; from dashboard.cli import main\n"
        f"assert main(['plan', '{MODEL}', '--json']) == 0\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    json.loads(ran.stdout)
    loaded = {name.partition(".")[0] for name in ran.stderr.split()}
    assert not loaded & set(HEAVY)


def test_sizing_loads_no_database_either():
    code = (
        "import sys; from dashboard.cli import main\n"
        f"assert main(['size', '{MODEL}', '--gpu', 'H100 SXM', '--json']) == 0\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in ran.stderr.split()}
    assert not loaded & {*HEAVY, "sqlalchemy"}


def test_every_option_of_a_scenario_is_an_option_of_the_command():
    from dashboard.cli import build_parser

    parser = build_parser().subcommands()["plan"]
    options = {name.removeprefix("--").replace("-", "_") for name in parser.option_names()}
    assert set(Scenario.option_names()) - {"model"} <= options


def test_the_defaults_in_help_are_those_of_the_scenario():
    from dashboard.cli import build_parser

    defaults = Scenario(model=MODEL)
    for action in build_parser().subcommands()["plan"]._actions:
        value = getattr(defaults, action.dest, None)
        if isinstance(value, int | float | str) and value not in ("", MODEL):
            assert (
                f"({value:g}" in str(action.help) if not isinstance(value, str) else value in str(action.help)
            )


def test_a_scenario_file_gives_options_and_the_command_line_wins(cli, database, tmp_path):
    file = tmp_path / "team.toml"
    saved = cli("plan", MODEL, "--hours-per-day", 9, "--quant", "Q8_0", "--save-scenario", file, "--json")
    assert saved.code == 0
    again = cli("plan", "--scenario", file, "--json")
    assert again.document == saved.document
    other = cli("plan", "--scenario", file, "--hours-per-day", 3, "--json").document["scenario"]
    assert (other["hours_per_day"], other["quant"], other["model"]) == (3, "Q8_0", MODEL)


def test_the_model_of_a_scenario_file_may_stand_on_the_command_line(cli, database, tmp_path):
    file = tmp_path / "terms.toml"
    file.write_text("hours_per_day = 6\n", encoding="utf-8")
    ran = cli("plan", "qwen3.5-35b-a3b", "--scenario", file, "--json")
    assert ran.document["scenario"]["model"] == "qwen3.5-35b-a3b"
    assert ran.document["scenario"]["hours_per_day"] == 6


def test_the_address_reads_back_to_the_same_scenario(cli):
    from urllib.parse import parse_qsl, urlsplit

    ran = cli("plan", MODEL, "--hours-per-day", 8, "--gpu", "H100 SXM", "--url")
    assert ran.code == 0
    url = urlsplit(ran.out.strip())
    scenario, complaints = Scenario.from_query(dict(parse_qsl(url.query)))
    assert complaints == []
    assert (scenario.hours_per_day, scenario.gpu) == (8.0, "H100 SXM")


def test_an_ambiguous_gpu_warns_and_says_what_it_took(cli):
    ran = cli("size", "qwen3.5-35b-a3b", "--gpu", "A100", "--json")
    assert ran.code == 0
    assert ran.document["gpu"].startswith("A100")
    assert ran.err.count("\n") == 1
    assert "'A100' may also mean" in ran.err
    assert f"{ran.document['gpu']} is taken" in ran.err


def test_a_quantised_copy_brings_its_format_along(cli):
    ran = cli("size", "Qwen/Qwen3.5-35B-A3B-FP8", "--gpu", "H100 SXM", "--json")
    assert ran.document["quant"] == "FP8"
    assert "--quant FP8 is taken" in ran.err
    chosen = cli("size", "Qwen/Qwen3.5-35B-A3B-FP8", "--gpu", "H100 SXM", "--quant", "BF16", "--json")
    assert (chosen.document["quant"], chosen.err) == ("BF16", "")


def test_explain_shows_formula_numbers_and_source_of_each_figure(cli, database):
    document = cli("plan", MODEL, "--explain", 1, "--json").document
    assert document["schema"] == "breakeven.explanation/1"
    assert document["number"] == 1
    for figure in document["figures"]:
        assert figure["name"]
        assert figure["formula"]
    text = cli("plan", MODEL, "--explain", 1).out
    assert "source: " in text


def test_an_option_that_is_not_there_cannot_be_explained(cli, database):
    ran = cli("plan", MODEL, "--explain", 9999)
    assert ran.code == 2
    assert ran.err.startswith(
        "breakeven: --explain: 9999 is not allowed; give the number of an option, 1 to "
    )


def test_sensitivity_says_how_sure_it_is_and_orders_what_moves_it(cli, database):
    asked = ("plan", MODEL, "--hours-per-day", 12, "--sensitivity")
    document = cli(*asked, "--json").document
    assert document["schema"] == "breakeven.sensitivity/1"
    assert 0.0 <= document["probability_buying_is_cheaper"] <= 1.0
    effects = [swing["effect_usd_per_month"] for swing in document["swings"]]
    assert effects == sorted(effects, reverse=True)
    ran = cli(*asked)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"Buying {document['buy']} is cheaper than renting {document['rent']}")
    for swing in document["swings"]:
        assert swing["title"][:40] in ran.out
    assert "What would change the answer" in ran.out


def test_sensitivity_without_anything_to_compare_is_an_answer(cli, empty_database):
    ran = cli("plan", MODEL, "--sensitivity")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(
        "no machine to buy has a rental to be compared with, so there is nothing to vary\n"
    )
    assert "Of all options that count the cheapest over the term in 10,000 draws: renting in 0%" in ran.out
    document = cli("plan", MODEL, "--sensitivity", "--json").document
    assert document.keys() == {"schema", "all_options"}
    assert {each["kind"] for each in document["all_options"]["options"]} <= {"buy", "api"}


def test_assumptions_are_listed_without_a_model(cli):
    ran = cli("plan", "--assumptions", "--set", "power_kw=0.7", "--json")
    assert ran.code == 0
    assert ran.document["schema"] == "breakeven.assumptions/1"
    values = {row["name"]: row for row in ran.document["assumptions"]}
    assert (values["power_kw"]["value"], values["power_kw"]["origin"]) == (0.7, "set")
    assert all(row["source"] for row in values.values())
    assert cli("plan", "--assumptions").out.startswith("assumption")


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet", "json", "md", "html"])
def test_export_writes_the_format_of_the_ending(cli, database, tmp_path, ending):
    file = tmp_path / f"plan.{ending}"
    ran = cli("export", MODEL, "-o", file, "--json")
    assert ran.code == 0
    assert ran.document == {
        "schema": "breakeven.export/1",
        "file": str(file),
        "format": ending,
        "bytes": file.stat().st_size,
    }
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_export_as_focus_and_bad_formats(cli, database, tmp_path):
    file = tmp_path / "cost.csv"
    assert cli("export", MODEL, "-o", file, "--as", "focus").code == 0
    assert file.read_text(encoding="utf-8").split(",")[0].strip('"')[0].isupper()
    wrong = cli("export", MODEL, "-o", tmp_path / "plan.docx")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    nowhere = cli("export", MODEL, "-o", tmp_path / "none" / "plan.csv")
    assert (nowhere.code, nowhere.err.count("\n")) == (2, 1)


def test_a_file_of_llama_bench_gives_the_measured_speed_of_its_machine(cli, tmp_path):
    file = tmp_path / "bench.json"
    rows = [
        {"n_prompt": 512, "n_gen": 0, "avg_ts": 900.0, "gpu_info": "NVIDIA GeForce RTX 4090"},
        {"n_prompt": 0, "n_gen": 128, "avg_ts": 148.5, "gpu_info": "NVIDIA GeForce RTX 4090"},
    ]
    file.write_text(json.dumps(rows), encoding="utf-8")
    document = cli("size", "qwen3.5-35b-a3b", "--sizing", file, "--json").document
    assert (document["gpu"], document["speed"]["source"]) == ("RTX 4090", "measured")
    assert document["speed"]["decode_tokens_per_s"] == 148.5
    other = cli(
        "size", "qwen3.5-35b-a3b", "--gpu", "H100 SXM", "--decode-tokens-per-s", 99, "--json"
    ).document
    assert (other["gpu"], other["speed"]["decode_tokens_per_s"]) == ("H100 SXM", 99)


def test_a_context_at_which_one_sequence_is_too_many_says_so(cli):
    asked = ("--quant", "FP8", "--gpu", "H100 SXM", "--context", 131072)
    out = cli("size", "llama-3.3-70b-instruct", *asked).out
    assert "not even batch 1 fits at this context" in out
    assert "largest batch: 0" not in out


def test_a_served_benchmark_brings_its_batch(cli, tmp_path):
    file = tmp_path / "serve.json"
    document = {"model_id": "Qwen/Qwen3-8B", "completed": 100, "max_concurrency": 8, "median_tpot_ms": 14}
    file.write_text(json.dumps(document), encoding="utf-8")
    asked = ("size", "qwen3-8b", "--quant", "BF16", "--gpu", "H100 SXM", "--sizing", file)
    ran = cli(*asked, "--json")
    assert (ran.document["batch"], ran.document["speed"]["source"]) == (8, "measured")
    assert "it was measured at batch 8: --batch 8 is taken" in ran.err
    other = cli(*asked, "--batch", 4)
    assert (other.code, other.out, other.err.count("\n")) == (2, "", 1)
    assert "batch 8" in other.err
    file.write_text(json.dumps({**document, "median_tpot_ms": 1e-6}), encoding="utf-8")
    absurd = cli(*asked)
    assert (absurd.code, absurd.err.count("\n")) == (2, 1)
    assert "what the bandwidth of 1x H100 SXM allows" in absurd.err


def test_a_measured_speed_stands_in_its_row_of_a_matrix(cli):
    asked = ("matrix", "qwen3-8b", "--gpu", "RTX 4090", "--decode-tokens-per-s", 77, "--json")
    for over in ("quant", "context", "gpu"):
        ran = cli(*asked, "--over", over)
        measured = [row for row in ran.document["rows"] if row["speed"]["source"] == "measured"]
        assert (len(measured), ran.err) == (1, "")
        assert measured[0]["speed"]["decode_tokens_per_s"] == 77
    other = cli(*asked, "--over", "context", "--context", 10000)
    assert not any(row["speed"]["source"] == "measured" for row in other.document["rows"])
    assert "1x RTX 4090 in Q4_K_M at context 10,000: no row is that" in other.err


def test_a_benchmark_with_layers_in_host_memory_counts_at_that_offload_only(cli, tmp_path):
    file = tmp_path / "bench.json"
    row = {
        "gpu_info": "NVIDIA GeForce RTX 4090",
        "n_prompt": 0,
        "n_gen": 128,
        "n_gpu_layers": 20,
        "avg_ts": 40,
    }
    file.write_text(json.dumps([row]), encoding="utf-8")
    asked = ("size", "qwen3-8b", "--sizing", file)
    ran = cli(*asked)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "'16 of 36 layers in host memory'" in ran.err
    assert "offload 0.44" in ran.err
    assert cli(*asked, "--offload", 0.44, "--json").document["speed"]["source"] == "measured"


def test_a_sizing_of_its_own_stays_an_estimate(cli, tmp_path):
    file = tmp_path / "sizing.json"
    file.write_text(cli("size", "llama-3.1-8b-instruct", "--gpu", "RTX 4090", "--json").out, encoding="utf-8")
    ran = cli("size", "llama-3.1-8b-instruct", "--sizing", file, "--json")
    speed, written = ran.document["speed"], json.loads(file.read_text(encoding="utf-8"))["speed"]
    assert (ran.code, ran.err, speed["source"]) == (0, "", "estimated")
    for name in ("decode_tokens_per_s", "decode_low", "decode_high"):
        assert speed[name] == written[name]
    other = cli("size", "llama-3.1-8b-instruct", "--gpu", "A10", "--sizing", file)
    assert "the speed given is that of 1x RTX 4090 and is not used for another machine" in other.err
    wrong = cli("size", MODEL, "--sizing", file)
    assert (wrong.code, wrong.out) == (2, "")
    assert "a sizing of the model that is asked for" in wrong.err


def test_a_plan_writes_nothing_to_the_database(cli, database):
    with sqlite3.connect(database) as connection:
        before = connection.execute("SELECT count(*), max(id) FROM price").fetchone()
    assert cli("plan", MODEL, "--json").code == 0
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*), max(id) FROM price").fetchone() == before


def test_launch_writes_a_compose_file(cli, tmp_path):
    file = tmp_path / "compose.yaml"
    ran = cli("launch", "qwen3.5-35b-a3b", "--gpu", "H100 SXM", "--quant", "FP8", "-o", file, "--json")
    assert ran.code == 0
    assert ran.document["schema"] == "breakeven.launch/1"
    assert Path(file).read_text(encoding="utf-8") == ran.document["launches"][0]["compose"]


def test_launch_says_what_size_says_and_refuses_what_cannot_start(cli):
    asked = ("launch", "llama-3.1-8b-instruct", "--gpu", "H100 SXM", "--quant", "BF16")
    ran = cli(*asked, "--kv-dtype", "q8_0")
    assert ran.code == 0
    assert "--kv-cache-dtype fp8" in ran.out
    assert ran.out.count("vllm has no q8_0 cache: it is started with fp8, the nearest") == 1
    refused = cli(*asked, "--context", "1000000")
    assert refused.code == 2
    assert refused.out == ""
    assert "--context: 1000000 is not allowed; give up to 131,072 tokens, the model's maximum" in refused.err
