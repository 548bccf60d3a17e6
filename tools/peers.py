"""
Ask other calculators about the bundled measurements and write what they say.

    python -m tools.peers [--kept] [PEER ...]

Each peer runs in an environment of its own, `build/peers`, by a script of `tools/peer_adapters`. Estimates
go to `tools/peers.csv`, what was asked and how long it took to `tools/peers.json`; `python -m tools.accuracy`
puts both beside ours. Peers that are not named keep what they said before. Some take hours: what they have
answered is kept, a run that was stopped goes on, and with `--kept` nothing more is asked.
"""

import csv
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.catalogues.gpus import Gpu, all_gpus
from planner.catalogues.models import AttentionKind, Model, all_models
from planner.catalogues.quants import QuantFormat
from planner.catalogues.results import Result, all_results
from planner.measurements.memory_replay import CACHES, memory_checks
from planner.measurements.replay import Trials, format_of, predictions, trials
from planner.workload import Engine
from tools.peer_table import ESTIMATES, FACTS

ROOT = Path(__file__).resolve().parent.parent
ADAPTERS = ROOT / "tools" / "peer_adapters"
ENVIRONMENT = ROOT / "build" / "peers"
CACHE_TYPES = {"f16": "F16", "q8_0": "F8_E4M3"}
# Reasons of a peer that are kept, the most frequent first.
REASONS = 4


@dataclass(frozen=True, slots=True)
class Peer:
    """Another calculator, of a version and with settings of its own."""

    package: str
    version: str
    adapter: str
    asks_memory: bool = False
    asks_llama_cpp: bool = True  # other tools than servers
    queued_every: int = 1  # of the configurations whose requests are all queued, which it searches for long


PEERS = {
    "aiconfigurator": Peer(
        "aiconfigurator", "0.12.0", "ask_aiconfigurator.py", asks_llama_cpp=False, queued_every=4
    ),
    "GenZ": Peer("genz-llm", "0.0.16", "ask_genz.py"),
    "llm-analysis": Peer("llm-analysis", "0.2.2", "ask_llm_analysis.py"),
    "hf-mem": Peer("hf-mem", "0.5.6", "ask_hf_mem.py", asks_memory=True),
}
Asked = dict[str, tuple[dict[str, Any], list[Result]]]  # by question


def main(arguments: Sequence[str]) -> None:
    """Ask the named peers, or all."""
    names = [argument for argument in arguments if argument != "--kept"]
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise SystemExit(f"no peer {unknown[0]!r}; there are {', '.join(PEERS)}")
    python = environment()
    for name in names or PEERS:
        peer = PEERS[name]
        asked = _about_memory() if peer.asks_memory else _about_speed(peer)
        questions = [question for question, _ in asked.values()]
        answers = _answers(python, name, questions, asks="--kept" not in arguments)
        _keep(name, peer, asked, answers)


def environment() -> Path:
    """Make the environment of the peers where it is missing and return its Python."""
    python = ENVIRONMENT / "bin" / "python"
    stamp = ENVIRONMENT / "installed.json"
    wanted = sorted({f"{peer.package}=={peer.version}" for peer in PEERS.values()})
    if stamp.exists() and json.loads(stamp.read_text(encoding="utf-8")) == wanted:
        return python
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    result = subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=False)
    if result.returncode:
        raise SystemExit(f"pip could not install {', '.join(wanted)}: check the network and run it again")
    stamp.write_text(json.dumps(wanted), encoding="utf-8")
    return python


def _about_speed(peer: Peer) -> Asked:
    """Return the configurations of the measured speeds; none of the peers knows offloading by experts."""
    asked: Asked = {}
    for engine in (Engine.VLLM, Engine.LLAMA_CPP) if peer.asks_llama_cpp else (Engine.VLLM,):
        these = trials(all_results(), engine)
        for place, result in enumerate(these.results):
            if not result.offload:
                question = _speed_question(these, place)
                _add(asked, question, result)
    queued = [name for name, (question, _) in asked.items() if question["is_queued"]]
    left = {name for place, name in enumerate(queued) if place % peer.queued_every}
    return {name: pair for name, pair in asked.items() if name not in left}


def _about_memory() -> Asked:
    """Return the caches that llama.cpp's logs state."""
    asked: Asked = {}
    for check in memory_checks():
        if check.quantity == CACHES:
            result = check.result
            question = {
                "model": _model(all_models()[result.model]),
                "context_tokens": result.context_tokens,
                "cache_dtype": CACHE_TYPES[result.kv_dtype],
            }
            _add(asked, question, result)
    return asked


def _add(asked: Asked, question: dict[str, Any], result: Result) -> None:
    """Ask once what several rows share."""
    name = json.dumps(question, sort_keys=True)
    asked.setdefault(name, ({"id": len(asked), "metrics": [], **question}, []))
    known, rows = asked[name]
    known["metrics"].append(result.metric)
    rows.append(result)


def _speed_question(these: Trials, place: int) -> dict[str, Any]:
    """Return one configuration in plain words; its batch is no larger than our memory estimate allows."""
    result = these.results[place]
    given, written, held = (
        value or 0.0 for value in (result.input_tokens, result.output_tokens, result.context_tokens)
    )
    gpu, quant, hardware = all_gpus()[result.gpu], format_of(result), these.hardware
    is_layer_split = these.engine is Engine.LLAMA_CPP
    count = result.gpu_count or 1
    return {
        "model": _model(all_models()[result.model]),
        "quant": quant.name,
        "quant_name": result.quant_name,
        "bits": _bits(quant),
        "compute": quant.compute_dtype,
        "engine": result.engine,
        "gpu": gpu.name,
        "device": _device(gpu, float(hardware.link_bytes_per_s[place])),
        "gpu_count": count,
        "is_layer_split": is_layer_split,
        "tensor_ranks": count if is_layer_split else round(float(hardware.sharing[place])),
        "expert_ranks": round(float(hardware.expert_ranks[place])),
        "attention_ranks": round(float(hardware.attention_groups[place])),
        "batch": float(these.batch[place]),
        "input_tokens": max(1.0, held + given),
        "output_tokens": max(1.0, written),
        "context_tokens": max(1.0, held + given + written / 2),
        "is_queued": result.kind == "offline_max",
        "starts_together": result.kind == "single_stream" or result.metric == "agg_total_tps",
    }


def _bits(quant: QuantFormat) -> int:
    """Return the whole width nearest to a format, as peers know no other."""
    return next((width for width in (16, 8) if quant.linear_bits > 0.7 * width), 4)


def _device(gpu: Gpu, link_bytes_per_s: float) -> dict[str, float]:
    peak = gpu.bf16_dense_tflops or gpu.fp16_dense_tflops or gpu.fp32_tflops
    return {
        "tflops": peak or 0.0,
        "memory_gb": gpu.memory_gb_vendor,
        "bandwidth_gb_per_s": gpu.bandwidth_gb_per_s or 0.0,
        "link_gb_per_s": link_bytes_per_s / 1e9,
    }


def _model(model: Model) -> dict[str, Any]:
    """Return the shape as a configuration states it."""
    groups, moe = model.attention_groups, model.moe
    shapes = {(group.heads, group.kv_heads, group.head_dim) for group in groups}
    known = (AttentionKind.FULL, AttentionKind.SLIDING, AttentionKind.CHUNKED)
    is_latent = any(group.kind is AttentionKind.MLA for group in groups)
    width = (moe.moe_intermediate_size if moe else None) or 0
    return {
        "id": model.id,
        "architecture": model.architecture,
        "layers": model.num_layers,
        "hidden": model.hidden_size,
        "heads": model.num_attention_heads,
        "kv_heads": model.num_kv_heads,
        "head_dim": None if is_latent else model.head_dim,  # such configurations state none
        "ffn": model.intermediate_size or width,
        "vocab": model.vocab_size,
        "experts": moe.routed_experts if moe else 0,
        "top_k": moe.experts_per_token if moe else 0,
        "expert_ffn": width,
        "shared_experts": moe.shared_experts if moe else 0,
        "shared_ffn": (moe.shared_intermediate_size if moe else None) or width,
        # layers of one shape, whose windows a peer may take for full attention
        "is_plain": (
            len(shapes) == 1
            and all(group.kind in known for group in groups)
            and (moe is None or moe.dense_layers == 0)
        ),
    }


def _answers(
    python: Path, name: str, questions: Sequence[Mapping[str, Any]], *, asks: bool = True
) -> list[dict[str, Any]]:
    """Ask one peer in one process what it has not answered before, and return all answers."""
    peer = PEERS[name]
    kept = ENVIRONMENT / f"{peer.version} {name}.jsonl"
    known: dict[str, dict[str, Any]] = {}
    if kept.exists():
        for line in kept.read_text(encoding="utf-8").splitlines():
            answer = json.loads(line)
            known[answer.pop("question")] = answer
    texts = {question["id"]: _text(question) for question in questions}
    if asks:
        missing = [question for question in questions if texts[question["id"]] not in known]
        command = [str(python), str(ADAPTERS / peer.adapter)]
        with kept.open("a", encoding="utf-8") as file:
            for answer in _asked(command, missing):
                text = texts[answer.pop("id")]
                known[text] = answer
                file.write(json.dumps({"question": text, **answer}) + "\n")
                file.flush()
    return [
        {"id": question["id"], **known[texts[question["id"]]]}
        for question in questions
        if texts[question["id"]] in known
    ]


def _asked(command: Sequence[str], questions: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the answers of an adapter as they come."""
    with tempfile.TemporaryFile("w+") as document:
        document.writelines(json.dumps(question) + "\n" for question in questions)
        document.seek(0)
        with subprocess.Popen(
            command, stdin=document, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            for line in process.stdout or ():
                yield json.loads(line)
        if process.returncode:
            raise SystemExit(f"{command[1]} ended with {process.returncode}: run it by hand to see why")


def _text(question: Mapping[str, Any]) -> str:
    """Return what identifies a question over runs."""
    return json.dumps({name: value for name, value in question.items() if name != "id"}, sort_keys=True)


def _keep(name: str, peer: Peer, asked: Asked, answers: Sequence[Mapping[str, Any]]) -> None:
    """Write what one peer said in place of what it said before."""
    by_id = {question["id"]: rows for question, rows in asked.values()}
    lines = [line for line in _stored() if line[0] != name]
    reasons: Counter[str] = Counter()
    for answer in answers:
        rows = by_id[answer["id"]]
        if "refused" in answer:
            reasons[_reason(answer["refused"])] += len(rows)
            continue
        for row in rows:
            estimate = answer["estimates"].get(row.metric)
            if estimate is not None and 0 < estimate < float("inf"):
                lines.append((name, row.row_id, f"{estimate:.5g}"))
    lines.sort(key=lambda line: (list(PEERS).index(line[0]), line[1]))
    with ESTIMATES.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows((("peer", "row_id", "estimate"), *lines))
    facts = json.loads(FACTS.read_text(encoding="utf-8")) if FACTS.exists() else {}
    asked_ids = {answer["id"] for answer in answers}
    done = [answer["seconds"] for answer in answers if "estimates" in answer]
    facts[name] = {
        "package": f"{peer.package} {peer.version}",
        "about": "memory" if peer.asks_memory else "speed",
        "rows_asked": sum(len(rows) for number, rows in by_id.items() if number in asked_ids),
        "configurations_answered": len(done),
        "seconds_per_configuration": float(f"{sum(done) / max(1, len(done)):.3g}"),
        "refused": dict(reasons.most_common(REASONS)),
    }
    facts["breakeven"] = _own_seconds()
    FACTS.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _reason(text: str) -> str:
    """Return the kind of a refusal: without its numbers, paths and long tail."""
    return re.sub(r"\S*[\d/]\S*", "..", text)[:80].strip()


def _stored() -> Iterator[tuple[str, str, str]]:
    """Yield what is kept of all peers."""
    if ESTIMATES.exists():
        with ESTIMATES.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                yield row["peer"], row["row_id"], row["estimate"]


def _own_seconds() -> dict[str, float]:
    """Return how long ours takes for one configuration: read one by one, and the formulas alone. [s]"""
    start = time.perf_counter()
    asked = [trials(all_results(), engine) for engine in (Engine.VLLM, Engine.LLAMA_CPP)]
    read = time.perf_counter()
    for these in asked:
        predictions(these)
    computed = time.perf_counter()
    count = sum(len(these.results) for these in asked)
    return {
        "seconds_per_configuration": float(f"{(computed - start) / count:.3g}"),
        "seconds_of_formulas": float(f"{(computed - read) / count:.3g}"),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
