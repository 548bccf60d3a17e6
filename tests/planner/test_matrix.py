import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import all_quants, find_quant
from planner.matrix import over_contexts, over_gpus, over_quants, to_document, with_given
from planner.sizing import size
from planner.workload import Engine, Machine, Method, Workload

QWEN_480B = all_models()["qwen3-coder-480b-a35b"]
H100 = Machine(gpu=all_gpus()["H100 SXM"])
WORK = Workload(model=QWEN_480B, quant=find_quant("Q4_K_M"))


def test_every_format_is_served_by_its_usual_engine():
    rows = over_quants(WORK, H100)
    assert [row.workload.quant.name for row in rows] == list(all_quants())
    engines = {row.workload.quant.name: row.workload.engine for row in rows}
    assert engines["Q4_K_M"] is Engine.LLAMA_CPP
    assert engines["FP8"] is Engine.VLLM


def test_an_engine_chosen_on_purpose_stays():
    work = Workload(model=QWEN_480B, quant=find_quant("FP8"), engine=Engine.SGLANG)
    assert {row.workload.engine for row in over_quants(work, H100)} == {Engine.SGLANG}


def test_matrix_of_the_page():
    work = Workload(model=QWEN_480B, quant=find_quant("Q4_K_M"), method=Method.SIMPLE)
    rows = over_quants(work, H100, [find_quant(name) for name in ("BF16", "Q4_K_M", "UD-Q2_K_XL")])
    totals = [row.memory.to_document()["total_gib"] for row in rows]
    assert totals == pytest.approx([896.58, 273.90, 156.56], abs=0.006)


def test_contexts_stop_at_the_models_maximum():
    rows = over_contexts(WORK, H100)
    assert [row.workload.context_tokens for row in rows] == [4096, 8192, 16384, 32768, 65536, 131072]
    phi = Workload(model=all_models()["phi-4"], quant=find_quant("Q4_K_M"))
    assert [row.workload.context_tokens for row in over_contexts(phi, H100)] == [4096, 8192, 16384]


def test_devices_that_were_never_sold_are_left_out():
    rows = over_gpus(WORK, 8)
    names = [row.machine.gpu.name for row in rows]
    assert "Mac Studio M4 Ultra 256GB" not in names
    assert len(names) == sum(gpu.exists for gpu in all_gpus().values())
    assert {row.machine.gpu_count for row in rows} == {8}


def test_a_measured_speed_stands_in_the_row_of_its_own_configuration_only():
    machine = Machine(gpu=all_gpus()["H100 SXM"], gpu_count=8)
    given = size(WORK, machine, measured_decode_tokens_per_s=77.0)
    for rows, place in (
        (
            over_quants(WORK, machine),
            [row.workload.quant.name for row in over_quants(WORK, machine)].index("Q4_K_M"),
        ),
        (over_contexts(WORK, machine), 1),  # 8,192 tokens
        (over_gpus(WORK, 8, [all_gpus()["H200 SXM"], all_gpus()["H100 SXM"]]), 1),
    ):
        found = with_given(rows, given)
        assert found[place].speed.decode_tokens_per_s == 77.0
        assert [row for row in found if row.is_speed_given] == [given]
        assert found[:place] + found[place + 1 :] == rows[:place] + rows[place + 1 :]
    assert not any(row.is_speed_given for row in with_given(over_gpus(WORK, 4), given))


def test_rows_are_sizings():
    row = over_contexts(WORK, H100, [16384])[0]
    assert row == size(row.workload, H100)


def test_document():
    document = to_document("context", over_contexts(WORK, H100))
    assert document["schema"] == "breakeven.matrix/1"
    assert document["model"]["id"] == QWEN_480B.id
    assert [row["context_tokens"] for row in document["rows"]] == [4096, 8192, 16384, 32768, 65536, 131072]
    assert "schema" not in document["rows"][0]
