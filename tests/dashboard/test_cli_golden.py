"""Texts as people read them: fixed database, fixed clock; `pytest --update-expected` rewrites them."""

import pytest

from tests.conftest import ROOT

MODEL = "qwen3-coder-480b-a35b"
RUNPOD = ROOT / "tests" / "pricing" / "payloads" / "runpod" / "gpu_types.json"
H100 = ("--gpu", "H100 SXM")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("models", ("models", "qwen3-coder")),
        ("gpus", ("gpus", "h100")),
        ("quants", ("quants",)),
        ("size_simple", ("size", MODEL, *H100, "--method", "simple")),
        ("size", ("size", "qwen3.5-35b-a3b", *H100, "--quant", "FP8", "--batch", 8)),
        ("size_does_not_fit", ("size", MODEL, *H100)),
        ("matrix_quant", ("matrix", MODEL, *H100, "--gpus", 8)),
        ("matrix_context", ("matrix", "qwen3.5-35b-a3b", *H100, "--over", "context")),
        ("capacity", ("capacity", "qwen3.5-35b-a3b", *H100)),
        ("finetune", ("finetune", MODEL, "--method", "simple")),
        ("launch", ("launch", "qwen3.5-35b-a3b", *H100, "--quant", "FP8")),
    ],
)
def test_texts_of_catalogues_and_sizing(cli, golden, name, command):
    ran = cli(*command)
    assert (ran.code, ran.err) == (0, "")
    golden(name, ran.out)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("plan", ("plan", MODEL, "--gpu", "B200", "--hours-per-day", 8)),
        ("plan_explained", ("plan", MODEL, "--gpu", "B200", "--hours-per-day", 8, "--explain", 4)),
        ("prices_list", ("prices", "list")),
        ("prices_history", ("prices", "history")),
        ("prices_status", ("prices", "status")),
        ("prices_rejected", ("prices", "rejected")),
    ],
)
def test_texts_on_a_database_of_ten_days_ago(cli, golden, stale_database, name, command):
    ran = cli(*command)
    assert (ran.code, ran.err) == (0, "")
    golden(name, ran.out)


def test_text_of_replayed_answers(cli, golden, database):
    ran = cli("prices", "replay", "runpod", RUNPOD, "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    golden("prices_replay", ran.out)


def test_text_of_providers(cli, golden):
    ran = cli("providers")
    golden("providers", ran.out)
