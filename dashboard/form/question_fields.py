"""The inputs on what is served and on what: model, requests, serving, machine."""

from collections.abc import Sequence

from dashboard.form.field import Field, Kind
from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import all_quants
from planner.workload import MOST_DRAFTED, MOST_GPUS, Engine, KvDtype, Method


def _sellable_gpus() -> Sequence[str]:
    return tuple(gpu.name for gpu in all_gpus().values() if gpu.exists)


REQUESTS = (
    Field(
        name="model",
        label="Model",
        kind=Kind.CHOICE,
        options=lambda: tuple(all_models()),
        hint="Type to search. An address may also name the Hugging Face repository.",
    ),
    Field(
        name="quant",
        label="Weight format",
        kind=Kind.CHOICE,
        options=lambda: tuple(all_quants()),
        hint="Fewer bits need less memory and lose some quality; Q4_K_M is the usual compromise.",
    ),
    Field(
        name="context",
        label="Context [tokens]",
        kind=Kind.COUNT,
        low=1,
        high=10_000_000,
        hint="Of one sequence: prompt and answer together, for which room is kept in memory.",
    ),
    Field(
        name="batch",
        label="Sequences at once",
        kind=Kind.COUNT,
        low=1,
        high=100_000,
        hint="Requests served at the same time by one replica. 1 is a single user.",
    ),
    Field(name="input_tokens", label="Tokens in a request", kind=Kind.COUNT, low=1, high=10_000_000),
    Field(
        name="output_tokens",
        label="Tokens out of a request",
        kind=Kind.COUNT,
        low=1,
        high=10_000_000,
    ),
    Field(
        name="kv_dtype",
        label="Precision of the cache",
        kind=Kind.CHOICE,
        options=lambda: tuple(KvDtype),
        hint="8 bits halve the attention cache.",
    ),
    Field(
        name="engine",
        label="Serving engine",
        kind=Kind.CHOICE,
        options=lambda: ("auto", *Engine),
        hint="auto: llama.cpp for GGUF formats, else vLLM.",
    ),
    Field(
        name="method",
        label="Estimate",
        kind=Kind.CHOICE,
        options=lambda: tuple(Method),
        hint="simple repeats the arithmetic of common sizing pages: nominal parameters and peak bandwidth.",
    ),
    Field(
        name="offload",
        label="Weights in system RAM [fraction]",
        kind=Kind.NUMBER,
        low=0.0,
        high=1.0,
        hint="0.3 keeps 30 % of the weights outside the GPU, read over a slow path for every token.",
    ),
    Field(
        name="host_gb_per_s",
        label="Bandwidth of that RAM [GB/s]",
        kind=Kind.NUMBER,
        low=0.1,
        high=100_000.0,
        hint="As the GPU sees it. Two channels of DDR5 give about 60, PCIe 5.0 x16 about 54.",
    ),
)
SERVING = (
    Field(
        name="cached_input",
        label="Prompt found in the cache [fraction]",
        kind=Kind.NUMBER,
        low=0.0,
        high=0.99,
        hint="Of each request, already computed for an earlier one: a shared system prompt, a conversation.",
    ),
    Field(
        name="draft_tokens",
        label="Drafted tokens",
        kind=Kind.COUNT,
        low=1,
        high=MOST_DRAFTED,
        hint="Proposed by a draft of one layer (MTP, EAGLE) and verified in one step; needs an acceptance.",
    ),
    Field(
        name="acceptance",
        label="Acceptance of a drafted token",
        kind=Kind.NUMBER,
        low=0.0,
        high=0.99,
        hint="The probability that a drafted token is kept; 0.6 to 0.9 is usual.",
    ),
    Field(
        name="pipeline",
        label="Pipeline stages",
        kind=Kind.COUNT,
        low=1,
        high=MOST_GPUS,
        hint="Groups of GPUs with layers of their own, in servers.",
    ),
    Field(
        name="expert_ranks",
        label="Ranks with whole experts",
        kind=Kind.COUNT,
        low=1,
        high=MOST_GPUS,
        hint="Expert parallelism; 1: each expert is split among all GPUs.",
    ),
    Field(
        name="attention_data",
        label="Attention groups",
        kind=Kind.COUNT,
        low=1,
        high=MOST_GPUS,
        hint="Data-parallel attention: each group holds all of its weights, and sequences of its own.",
    ),
    Field(
        name="memory_fraction",
        label="Memory that the server fills [fraction]",
        kind=Kind.NUMBER,
        low=0.05,
        high=1.0,
        hint="Empty: the engine's own, 0.90.",
    ),
    Field(
        name="max_sequences",
        label="Sequences the server is set up for",
        kind=Kind.COUNT,
        low=1,
        high=100_000,
        hint="Empty: the engine's own; fewer leave more memory to the cache.",
    ),
)
MACHINE = (
    Field(
        name="gpu",
        label="GPU",
        kind=Kind.CHOICE,
        options=_sellable_gpus,
        hint="Empty: the plan looks at all of them. Chosen: only this one.",
    ),
    Field(
        name="gpus",
        label="GPUs per replica",
        kind=Kind.COUNT,
        low=1,
        high=1024,
        hint="Empty: the smallest number that holds the model.",
    ),
    Field(
        name="decode_tokens_per_s",
        label="Measured speed [tokens/s]",
        kind=Kind.NUMBER,
        low=0.01,
        high=1e6,
        hint="Your own measurement on the chosen GPU; it wins over the estimate for that machine only.",
    ),
)
