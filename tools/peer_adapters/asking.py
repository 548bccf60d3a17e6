"""What every adapter does: read questions, ask, write answers. Runs in the environment of the peers."""

import json
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

Question = dict[str, Any]


def figures(
    question: Question,
    *,
    prompt_s: Callable[[], float],
    prompts_s: Callable[[], float],
    step_s: Callable[[], float],
) -> dict[str, float]:
    """
    Return the metrics asked for, of a run whose requests all start together.

    Args:
        question: The configuration.
        prompt_s: One prompt alone. [s]
        prompts_s: All prompts of the batch together. [s]
        step_s: One token for every sequence of the batch. [s]

    Returns:
        Estimates by metric, in the units of the measurements.
    """
    batch, given, written = question["batch"], question["input_tokens"], question["output_tokens"]

    def per_second(tokens: float) -> float:
        return batch * tokens / (prompts_s() + written * step_s())

    known: dict[str, Callable[[], float]] = {
        "decode_tps": lambda: 1.0 / step_s(),
        "prefill_tps": lambda: given / prompt_s(),
        "e2e_output_tps": lambda: written / (prompt_s() + written * step_s()),
        "agg_output_tps": lambda: per_second(written),
        "agg_total_tps": lambda: per_second(given + written),
        "ttft_ms": lambda: prompt_s() * 1e3,
        "tpot_ms": lambda: step_s() * 1e3,
    }
    return {metric: known[metric]() for metric in question["metrics"]}


def serve(ask: Callable[[Question], dict[str, float]]) -> None:
    """
    Answer the questions on the standard input, one JSON document a line each way.

    An answer holds estimates by metric, or why there is none, and the seconds it took.
    """
    out = sys.stdout
    with redirect_stdout(sys.stderr):  # peers print
        for line in sys.stdin:
            question = json.loads(line)
            start = time.perf_counter()
            answer: dict[str, Any] = {"id": question["id"]}
            try:
                answer["estimates"] = {name: float(value) for name, value in ask(question).items()}
            except Exception as error:  # any failure of a peer is its answer
                answer["refused"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
            answer["seconds"] = time.perf_counter() - start
            out.write(json.dumps(answer) + "\n")
            out.flush()
