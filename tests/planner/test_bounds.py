"""What no engine can beat, and the measurements that claim to."""

from dataclasses import replace

import numpy as np
import pytest

from planner.catalogues.results import all_results
from planner.measurements.replay import trials
from planner.serving.bounds import best_possible, is_impossible
from planner.workload import Engine


def some(*row_ids, engine=Engine.VLLM):
    wanted = set(row_ids)
    return trials(
        [result for result in all_results() if result.row_id in wanted and result.kind != "memory"], engine
    )


def test_one_stream_reads_its_weights_for_each_token():
    # answers of 8,192 and 512 tokens to no prompt: at first nothing is in the cache
    for row, bandwidth in (("xd-0041", 2 * 936e9), ("xd-0001", 448e9)):  # two RTX 3090, one RTX 3070
        these = some(row, engine=Engine.LLAMA_CPP)
        result = these.results[0]
        assert (result.metric, result.input_tokens) == ("decode_tps", 0)
        # the 4.92 GB of Llama 3 8B in Q4_K_M less the input embedding
        held = these.work.dense_read_bytes[0]
        assert held == pytest.approx(4.63e9, rel=0.02)
        assert best_possible(these)[0] == pytest.approx(bandwidth / held, rel=1e-3)


def test_a_token_takes_two_operations_for_each_active_parameter():
    # 64 requests of 2,048 + 2,048 tokens through 7.07e9 parameters outside of the input embedding: at most
    # 989.5e12 / (2 x 7.07e9) tokens a second read or written; the head, 0.545e9, only for those written
    these = some("arg-0226")
    outside = float(these.work.dense_params[0])
    head = 152064 * 3584
    per_pair = 2 * (outside - head) + 2 * outside
    compute_bound = 2 * 989.5e12 / per_pair
    assert outside == pytest.approx(7.07e9, rel=0.01)
    assert best_possible(these)[0] <= compute_bound
    assert these.measured[0] == 77278.54


def test_a_first_token_waits_for_its_prompt():
    these = some("sil-0309")
    assert these.results[0].metric == "ttft_ms"
    work, hardware = these.work, these.hardware
    flops = 2 * (work.dense_params[0] - work.head_params[0]) * work.prompt_tokens[0]
    expected = flops / (hardware.sharing[0] * hardware.peak_flops[0]) * 1e3
    assert best_possible(these)[0] == pytest.approx(expected)


def test_what_is_beyond_its_bound_is_impossible_times_below_and_rates_above():
    for these in (some("sil-0309"), some("arg-0001")):
        is_time = these.results[0].metric == "ttft_ms"
        bound = best_possible(these)
        for factor, expected in ((1.01, not is_time), (0.99, is_time)):
            assert is_impossible(replace(these, measured=bound * factor)).tolist() == [expected]


def test_four_published_rows_are_impossible_as_stated():
    found = {
        these.results[place].row_id
        for engine in (Engine.VLLM, Engine.LLAMA_CPP)
        for these in (trials(all_results(), engine),)
        for place in np.flatnonzero(is_impossible(these))
    }
    assert found == {"arg-0224", "arg-0225", "arg-0226", "arg-0230"}
