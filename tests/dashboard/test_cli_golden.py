"""
Texts as people read them: fixed database, fixed clock; `pytest --update-expected` rewrites them.

Few on purpose: what moves with the catalogues, the calibration or the wording of the verdict is tested by its
structure, so that a golden text changes only where its own command does.
"""

import re

import pytest

from tests.conftest import ROOT

MODEL = "qwen3-coder-480b-a35b"
RUNPOD = ROOT / "tests" / "pricing" / "payloads" / "runpod" / "gpu_types.json"
H100 = ("--gpu", "H100 SXM")
PLAN = ("plan", MODEL, "--gpu", "B200", "--hours-per-day", 8)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("size_simple", ("size", MODEL, *H100, "--method", "simple")),
        ("capacity", ("capacity", "qwen3.5-35b-a3b", *H100)),
    ],
)
def test_texts_of_sizing(cli, golden, name, command):
    ran = cli(*command)
    assert (ran.code, ran.err) == (0, "")
    golden(name, ran.out)


@pytest.mark.parametrize("name", ["list", "history", "status", "rejected"])
def test_texts_of_prices_on_a_database_of_ten_days_ago(cli, golden, stale_database, name):
    ran = cli("prices", name)
    assert (ran.code, ran.err) == (0, "")
    golden(f"prices_{name}", ran.out)


@pytest.mark.parametrize(
    ("command", "headings"),
    [
        (("models", "qwen3-coder"), ("id", "parameters", "active", "context", "license")),
        (("gpus", "h100"), ("GPU", "memory GB", "bandwidth GB/s", "TDP W")),
        (("quants",), ("format", "bits per weight")),
        (("providers",), ("provider", "prices", "key", "asks")),
        (("matrix", MODEL, *H100, "--gpus", 8), ("format", "total GiB", "fits", "decode tok/s", "bound")),
        (("matrix", MODEL, *H100, "--over", "context"), ("context tokens", "KV GiB", "fits")),
        (("finetune", MODEL), ("training", "estimate", "total GiB", "smallest machines")),
        (
            ("prices", "replay", "runpod", RUNPOD, "--dry-run"),
            ("instance", "GPU", "USD/h", "verdict", "why"),
        ),
    ],
    ids=lambda value: " ".join(map(str, value[:2])),
)
def test_a_table_has_its_headings_once_and_no_ragged_line(cli, database, command, headings):
    ran = cli(*command)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    (ruler,) = (number for number, line in enumerate(lines) if re.fullmatch(r"-+(  -+)+", line))
    for heading in headings:
        assert heading in re.split(r" {2,}", lines[ruler - 1].strip())
    body = lines[ruler + 1 : lines.index("", ruler) if "" in lines[ruler:] else None]
    assert body
    assert max(map(len, body)) <= len(lines[ruler])


def test_a_plan_says_the_verdict_first_then_options_hardware_notes_and_what_is_left_out(cli, stale_database):
    ran = cli(*PLAN)
    verdict, points, options, hardware, notes, left_out, footnote = ran.out.rstrip("\n").split("\n\n")
    assert verdict == cli(*PLAN, "--json").document["verdict"]
    assert all(line.startswith("- ") for line in points.splitlines())
    assert options.splitlines()[0].split()[:3] == ["#", "option", "from"]
    assert [line.split()[0] for line in options.splitlines()[2:]] == ["1", "2", "3", "4", "5"]
    assert "stale, 10 d old" in options
    assert hardware.startswith("Hardware that holds it (to buy: whatever --gpu and --gpus ask for):\n")
    assert all(line.startswith("- ") for line in notes.splitlines())
    assert left_out == "Left out (1):\n- runpod: 1 price: waits in quarantine until confirmed"
    assert footnote.startswith("* estimated, not measured.")


def test_an_explanation_gives_every_figure_its_formula_and_its_source(cli, stale_database):
    explained = (*PLAN, "--explain", 4)
    figures = cli(*explained, "--json").document["figures"]
    text = cli(*explained).out
    blocks = text.split("\n\n")
    for figure in figures:
        (block,) = (block for block in blocks if block.startswith(f"{figure['name']}: "))
        assert figure["formula"] in block
        assert f"source: {figure['source']}" in block
        assert ("*" in block.splitlines()[0]) == (figure["is_estimate"] and figure["value"] is not None)
