"""Three models on one 80 GB GPU, fit to talk to or not: docs/talking.md (`make calculators`)."""

import json
from pathlib import Path

from bench.documents import write_block
from planner.catalogues.gpus import find_gpu
from planner.catalogues.models import Model, find_model
from planner.catalogues.quants import find_quant
from planner.configs import model_from_config
from planner.sizing import size
from planner.talking import Talk, talk
from planner.workload import Engine, Machine, Workload

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "talking.md"
# Cohere Command R, 35 B dense; its shape stands in the defaults of CohereConfig too.
# Source: https://huggingface.co/CohereForAI/c4ai-command-r-v01, config.json;
# https://huggingface.co/docs/transformers/model_doc/cohere
DENSE = ROOT / "bench" / "data" / "command-r-35b.json"
GPU = "H100 SXM"
FORMATS = ("BF16", "FP8")
BATCHES = (1, 4, 16)


def models() -> dict[str, Model]:
    """Return the mixture, the dense model of its size, and the small one."""
    dense = model_from_config(json.loads(DENSE.read_text(encoding="utf-8")), name="command-r-35b")
    return {
        "35B-A3B mixture (Qwen3.5 35B-A3B)": find_model("qwen3.5-35b-a3b").model,
        "dense 35B (Command R)": dense,
        "8B (Llama 3.1 8B)": find_model("llama-3.1-8b-instruct").model,
    }


def cases() -> dict[tuple[str, str, int], Talk]:
    """Return the answers by model, format and requests at once: 1,024 tokens in, 256 out."""
    machine = Machine(gpu=find_gpu(GPU).gpu, gpu_count=1)
    found = {}
    for name, model in models().items():
        for quant in FORMATS:
            for batch in BATCHES:
                asked = Workload(
                    model=model,
                    quant=find_quant(quant),
                    batch=batch,
                    engine=Engine.VLLM,
                    context_tokens=2048,
                    input_tokens=1024,
                    output_tokens=256,
                )
                found[name, quant, batch] = talk(size(asked, machine))
    return found


def row(name: str, quant: str, batch: int, found: Talk) -> str:
    """Return one line of the table."""
    memory, speed = found.sizing.memory.to_document(), found.sizing.speed
    cells = [name, quant, str(batch), f"{memory['total_gib']:.1f} of {memory['usable_gib']:.1f}"]
    cells += [f"{found.gflop_per_token:.1f}"]
    if speed is None or found.answer_ms is None or found.gap_ms is None:
        cells += ["", "", "", "", "does not fit"]
    else:
        rate, first, answer = 1e3 / speed.tpot_ms, speed.ttft_ms, found.answer_ms / 1e3
        cells += [f"{rate:.0f}*", f"{first:.0f}*", f"{answer:.1f}*", f"{found.gap_ms / 1e3:.2f}*"]
        cells += [f"**{found.verdict.usability}**"]
    return f"| {' | '.join(cells)} |"


def rendered(found: dict[tuple[str, str, int], Talk]) -> str:
    """Return the table."""
    headers = ["model", "format", "at once", "GiB", "GFLOP a token", "tokens/s, one user", "first token, ms"]
    headers += ["256 tokens, s", "first sound, s", "verdict"]
    lines = [f"| {' | '.join(headers)} |", f"|{' --- |' * len(headers)}"]
    return "\n".join([*lines, *(row(*key, each) for key, each in found.items())])


def main() -> None:
    text = rendered(cases())
    print(text)
    write_block(DOCUMENT, "talking", f"\n{text}\n")


if __name__ == "__main__":
    main()
