"""Asking other calculators: the questions, what is kept of the answers, and the table made of them."""

import importlib.util
import json
import sys

import pytest

from planner.catalogues.quants import find_quant
from tools import peer_table, peers


@pytest.fixture(scope="module")
def asking(request):
    path = request.config.rootpath / "tools" / "peer_adapters" / "asking.py"
    spec = importlib.util.spec_from_file_location("asking", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def speeds():
    return list(peers._about_speed(peers.PEERS["GenZ"]).values())


def test_rows_of_one_configuration_are_asked_once(speeds):
    rows = [row for _, found in speeds for row in found]
    assert len({row.row_id for row in rows}) == len(rows)
    assert len(speeds) < len(rows)
    question, found = next(item for item in speeds if len(item[1]) == 2)
    assert question["metrics"] == [row.metric for row in found]


def test_a_question_says_how_gpus_share_the_work(speeds):
    by_row = {row.row_id: question for question, found in speeds for row in found}
    dense = by_row["sil-0310"]
    assert (dense["tensor_ranks"], dense["attention_ranks"], dense["batch"]) == (4, 1, 16)
    assert not dense["starts_together"]
    assert not dense["is_layer_split"]
    shared = by_row["trt-0134"]  # eight GPUs, each with attention and experts of its own
    assert (shared["tensor_ranks"], shared["attention_ranks"], shared["expert_ranks"]) == (8, 8, 8)
    assert shared["is_queued"]
    local = by_row["xd-0001"]
    assert local["is_layer_split"]
    assert local["starts_together"]


def test_of_queued_runs_a_slow_peer_is_asked_every_fourth(speeds):
    few = list(peers._about_speed(peers.PEERS["aiconfigurator"]).values())
    queued = [question for question, _ in speeds if question["is_queued"]]
    assert len([question for question, _ in few if question["is_queued"]]) == len(queued) / 4
    assert not any(question["is_layer_split"] for question, _ in few)


@pytest.mark.parametrize(
    ("name", "bits"), [("BF16", 16), ("FP8", 8), ("Q8_0", 8), ("Q6_K", 8), ("Q4_K_M", 4), ("NVFP4", 4)]
)
def test_formats_become_whole_widths(name, bits):
    assert peers._bits(find_quant(name)) == bits


def test_figures_of_a_batch_that_starts_together(asking):
    question = {"batch": 4.0, "input_tokens": 100.0, "output_tokens": 50.0}
    question["metrics"] = ["decode_tps", "prefill_tps", "e2e_output_tps", "agg_output_tps", "agg_total_tps"]
    found = asking.figures(question, prompt_s=lambda: 0.5, prompts_s=lambda: 1.0, step_s=lambda: 0.02)
    assert found["decode_tps"] == 50.0
    assert found["prefill_tps"] == 200.0
    assert found["e2e_output_tps"] == pytest.approx(50 / 1.5)
    assert found["agg_output_tps"] == pytest.approx(4 * 50 / 2.0)
    assert found["agg_total_tps"] == pytest.approx(4 * 150 / 2.0)


ADAPTER = """
import json, pathlib, sys
for line in sys.stdin:
    question = json.loads(line)
    answer = {"id": question["id"], "seconds": 0.5}
    if question["size"] < 3:
        answer["estimates"] = {"tpot_ms": 10.0 * question["size"]}
    else:
        answer["refused"] = "too large"
    print(json.dumps(answer))
    pathlib.Path(__file__).with_name("log").open("a").write("asked ")
"""


def test_a_run_that_was_stopped_asks_only_what_is_missing(tmp_path, monkeypatch):
    (tmp_path / "adapter.py").write_text(ADAPTER, encoding="utf-8")
    log = tmp_path / "log"
    monkeypatch.setattr(peers, "ADAPTERS", tmp_path)
    monkeypatch.setattr(peers, "ENVIRONMENT", tmp_path)
    monkeypatch.setattr(peers, "PEERS", {"one": peers.Peer("one", "1.0", "adapter.py")})
    questions = [{"id": number, "size": number} for number in range(1, 4)]
    first = peers._answers(sys.executable, "one", questions[:2])
    assert [answer["estimates"]["tpot_ms"] for answer in first] == [10.0, 20.0]
    # the numbers of questions change, the questions count
    again = peers._answers(sys.executable, "one", [{**one, "id": one["id"] + 7} for one in questions])
    assert log.read_text(encoding="utf-8").split() == ["asked"] * 3
    assert [answer["id"] for answer in again] == [8, 9, 10]
    assert again[2]["refused"] == "too large"


def test_the_table_compares_both_on_the_rows_that_the_peer_answers(tmp_path, monkeypatch):
    (tmp_path / "e.csv").write_text("peer,row_id,estimate\none,a,15\none,b,8\n", encoding="utf-8")
    fact = {"package": "one 1.0", "about": "speed", "rows_asked": 3, "configurations_answered": 2}
    own = {"seconds_per_configuration": 0.002, "seconds_of_formulas": 3e-6}
    facts = {"one": {**fact, "seconds_per_configuration": 1.5, "refused": {}}, "breakeven": own}
    (tmp_path / "f.json").write_text(json.dumps(facts), encoding="utf-8")
    monkeypatch.setattr(peer_table, "ESTIMATES", tmp_path / "e.csv")
    monkeypatch.setattr(peer_table, "FACTS", tmp_path / "f.json")
    speeds = {
        row: peer_table.Own(quantity="prefill", measured=10.0, error=error)
        for row, error in (("a", 0.1), ("b", -0.3), ("c", 9.0))
    }
    text = peer_table.peer_table(speeds, {})
    # errors of 50 and 20 % against 10 and 30 %
    assert "| one | prefill | 2 | 35.0 %, 47 % | 20.0 %, 28 % | ours |" in text
    assert "| one (one 1.0) | 3 | 2 | 1.5 |" in text


def test_what_peers_said_is_of_rows_that_are_there(request):
    facts = json.loads(peers.FACTS.read_text(encoding="utf-8"))
    assert set(facts) == {*peers.PEERS, "breakeven"}
    assert {name for name, *_ in peers._stored()} == set(peers.PEERS)
