"""What engines reach of a device: the fitted constants, put together for devices, formats and engines."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.catalogue import read_text
from planner.catalogues.quants import QuantFormat
from planner.serving.constants import constants
from planner.units import Numbers
from planner.workload import Engine

Index: TypeAlias = NDArray[np.int64] | int
Parameters: TypeAlias = Mapping[str, float]

# Kinds of blocks that llama.cpp's kernels unpack with different effort.
BLOCKS = ("plain", "q8", "q4", "k", "lattice")
# Precisions of matrix products.
PRECISIONS = ("bf16", "fp8", "fp4", "int8")
ENGINES = tuple(Engine)
# Nothing uses more of its memory's bandwidth than this.
MOST_EFFICIENT = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """
    How a measurement was made where that is not how it would be made today; 1 or 0, numbers or arrays.

    Estimates for users take none of them.
    """

    engine_of_2023: Numbers = 0.0
    engine_of_2024: Numbers = 0.0
    no_flash_attention: Numbers = 0.0  # llama.cpp
    untuned_backend: Numbers = 0.0  # llama.cpp on ROCm without hipBLASLt
    is_fork: Numbers = 0.0  # ik_llama.cpp, faster with experts in host memory
    is_exllama: Numbers = 0.0
    is_compiled: Numbers = 0.0  # MLC: kernels compiled for one model
    burst: Numbers = 0.0  # all requests of a run sent at the same moment
    staggered: Numbers = 0.0  # requests of random lengths, which therefore come one by one
    polling_steps: Numbers = 1.0  # after how many of its steps an engine looks for new requests
    no_server: Numbers = 0.0  # batches given to the engine itself, without requests
    offline: Numbers = 0.0  # all requests queued at once


NOW = Conditions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where configurations stand in the tables of constants: indices, or arrays of them that broadcast."""

    family: Index  # into constants().families
    engine: Index  # into ENGINES
    blocks: Index  # into BLOCKS
    precision: Index  # into PRECISIONS: what the products run in
    conditions: Conditions = NOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What is reached, or lost; numbers, or arrays that broadcast."""

    efficiency: Numbers  # of the bandwidth, on weights
    cache_efficiency: Numbers  # of the bandwidth, on the attention cache
    expert_efficiency: Numbers  # on expert matrices, relative to the others
    expert_exponent: Numbers  # of the tokens, in the share of experts that a step reads
    compute_share: Numbers  # of the peak
    prompt_share: Numbers  # of that, in prompts
    attention_share: Numbers  # of that, in the attention over a prompt
    power_weight: Numbers  # how much a card loses for each 10^12 operations of its peak a watt
    expert_rows: Numbers  # tokens for each expert at which half of the rate is reached
    shard_columns: Numbers  # columns of an expert on one rank at which half of the rate is reached
    layer_s: Numbers  # fixed cost of a layer in a step, more with experts and over a latent
    expert_layer_s: Numbers
    latent_layer_s: Numbers
    step_s: Numbers
    sequence_s: Numbers
    prompt_layer_s: Numbers  # fixed cost of a layer in a chunk of a prompt
    prompt_expert_layer_s: Numbers
    prompt_latent_layer_s: Numbers
    prompt_chunk_tokens: float
    unpack_passes: Numbers  # times that 16-bit copies of the weights are written and read for a chunk
    fast_link_s: Numbers  # an exchange over links between GPUs
    slow_link_s: Numbers  # over slots
    link_efficiency: Numbers
    hop_s: Numbers  # from GPU to GPU where layers are split
    host_layer_s: Numbers  # a layer whose weights lie in host memory
    prompt_host_efficiency: Numbers  # of the path by which weights for a prompt come in
    pipeline_share: Numbers  # of what GPUs with layers of their own may gain on a prompt
    first_token_s: Numbers
    waiting_steps: Numbers  # steps of others before a prompt is taken up
    queue_share: Numbers  # of the others' prompts met before the first token, the rest between tokens
    run_share: Numbers  # of the steady state over a whole run


def blocks_of(quant: QuantFormat) -> int:
    """Return the kind of blocks of a format, an index into BLOCKS."""
    if quant.linear_bits >= 16:
        return BLOCKS.index("plain")
    if quant.name.startswith("IQ"):
        return BLOCKS.index("lattice")
    if "_K" in quant.name:
        return BLOCKS.index("k")
    return BLOCKS.index("q8" if quant.linear_bits > 8 else "q4")


@cache
def fitted() -> Parameters:
    """Return the fitted constants by name."""
    tables = tomllib.loads(read_text("fitted.toml"))
    return MappingProxyType({name: float(value) for name, value in tables["parameters"].items()})


def reached(engine: Engine, place: Place, parameters: Parameters | None = None) -> Reached:
    """Return what engines of this kind reach at a place, by the fitted constants or by others."""
    known = fitted() if parameters is None else parameters
    return _llama_cpp(known, place) if engine is Engine.LLAMA_CPP else _server(known, place)


def _server(p: Parameters, place: Place) -> Reached:
    now, family, engine = place.conditions, _of_family(p, place), _of_engine(p, place)
    old = now.engine_of_2024
    overhead = family("server_overhead")
    layer_us = (
        p["server.layer_us"] * engine("layer")
        + old * p["of_2024.layer_us"]
        + now.engine_of_2023 * p["of_2023.layer_us"]
    )
    prompt_s = p["server.prompt_layer_ms"] * 1e-3 * engine("prompt") * np.sqrt(overhead)
    cache_efficiency = p["server.cache_efficiency"] * np.power(family("cache_of_2024"), old)
    queue = p["server.queue"] * engine("queue") * np.power(p["run.staggered"], now.staggered)
    shares = np.array([p[f"server.share_{name}"] for name in PRECISIONS])
    return Reached(
        efficiency=np.minimum(p["server.efficiency"] * family("server_efficiency"), MOST_EFFICIENT),
        cache_efficiency=np.minimum(cache_efficiency, MOST_EFFICIENT),
        expert_efficiency=p["server.expert_efficiency"],
        expert_exponent=p["server.expert_exponent"],
        compute_share=shares[place.precision]
        * family("server_compute")
        * np.power(family("compute_of_2024"), old),
        prompt_share=p["server.prompt_share"],
        attention_share=1.0,
        power_weight=0.0,
        expert_rows=p["server.expert_rows"],
        shard_columns=p["server.shard_columns"],
        layer_s=layer_us * overhead * 1e-6,
        expert_layer_s=p["server.expert_layer_us"] * overhead * 1e-6,
        latent_layer_s=p["server.latent_layer_us"] * overhead * 1e-6,
        step_s=(p["server.step_ms"] + old * p["of_2024.step_ms"]) * 1e-3,
        sequence_s=(p["server.sequence_us"] + old * p["of_2024.sequence_us"]) * 1e-6,
        prompt_layer_s=prompt_s,
        prompt_expert_layer_s=prompt_s * p["server.prompt_expert_layer"],
        prompt_latent_layer_s=prompt_s * p["server.prompt_latent_layer"],
        prompt_chunk_tokens=float(constants().speed.server_chunk_tokens),
        unpack_passes=0.0,
        fast_link_s=p["link.fast_us"] * 1e-6,
        slow_link_s=p["link.slow_us"] * 1e-6,
        link_efficiency=p["link.efficiency"],
        hop_s=p["link.slow_us"] * 1e-6,
        host_layer_s=p["llama.host_layer_us"] * 1e-6,
        prompt_host_efficiency=p["llama.prompt_host"],
        pipeline_share=0.0,
        first_token_s=p["server.first_token_ms"] * engine("first_token") * 1e-3 * (1.0 - now.no_server),
        # half of the steps between two looks for requests pass on average
        waiting_steps=(p["server.waiting_steps"] + (now.polling_steps - 1.0) / 2.0) * (1.0 - now.no_server),
        # of a burst, half of the others come first on average
        queue_share=np.where(now.burst, 0.5, np.minimum(queue, 0.5)),
        run_share=np.power(p["run.offline"], now.offline),
    )


def _llama_cpp(p: Parameters, place: Place) -> Reached:
    now, family = place.conditions, _of_family(p, place)
    no_flash = now.no_flash_attention
    decode = np.array([1.0, *(p[f"llama.blocks_{name}"] for name in BLOCKS[1:])])
    prompts = np.array([1.0, *(p[f"llama.prompt_blocks_{name}"] for name in BLOCKS[1:])])
    efficiency = np.minimum(p["llama.efficiency"] * family("llama_efficiency"), MOST_EFFICIENT)
    cache_efficiency = p["llama.cache_efficiency"] * family("llama_cache")
    attention = p["llama.attention_share"]
    layer_s = p["llama.layer_us"] * 1e-6 * family("llama_overhead")
    is_unpacked = np.not_equal(place.blocks, 0)
    return Reached(
        efficiency=efficiency * decode[place.blocks] * np.power(p["run.exllama"], now.is_exllama),
        cache_efficiency=cache_efficiency * np.power(p["no_flash.cache"], no_flash),
        expert_efficiency=p["llama.expert_efficiency"],
        expert_exponent=p["server.expert_exponent"],
        compute_share=p["llama.compute_share"]
        * family("llama_compute")
        * prompts[place.blocks]
        * np.power(p["run.untuned"], now.untuned_backend),
        prompt_share=1.0,
        attention_share=attention * np.power(p["no_flash.attention"], no_flash),
        power_weight=p["llama.power_weight"],
        expert_rows=p["llama.expert_rows"],
        shard_columns=0.0,
        layer_s=layer_s,
        expert_layer_s=layer_s * p["llama.expert_layer"],
        latent_layer_s=0.0,
        step_s=0.0,
        sequence_s=p["server.sequence_us"] * 1e-6,
        prompt_layer_s=layer_s * p["llama.prompt_layer"],
        prompt_expert_layer_s=layer_s * p["llama.prompt_layer"] * p["llama.expert_layer"],
        prompt_latent_layer_s=0.0,
        prompt_chunk_tokens=float(constants().memory.llama_cpp_ubatch_tokens),
        unpack_passes=no_flash * is_unpacked * p["of_2024.unpack_passes"],
        fast_link_s=0.0,
        slow_link_s=0.0,
        link_efficiency=1.0,
        hop_s=p["llama.hop_ms"] * 1e-3,
        host_layer_s=p["llama.host_layer_us"] * 1e-6 * np.power(p["run.fork_layer"], now.is_fork),
        prompt_host_efficiency=p["llama.prompt_host"] * np.power(p["run.fork_prompt"], now.is_fork),
        pipeline_share=p["llama.pipeline_share"],
        first_token_s=p["llama.first_token_ms"] * 1e-3,
        waiting_steps=p["server.waiting_steps"],
        queue_share=p["server.queue"],
        run_share=1.0,
    )


def _of_family(p: Parameters, place: Place) -> Callable[[str], Numbers]:
    """Return what gives a factor of each place's family; 1 where the parameters hold none."""
    keys = [family.key for family in constants().families]

    def factor(name: str) -> Numbers:
        table = np.array([p.get(f"family.{key}.{name}", 1.0) for key in keys])
        chosen: Numbers = table[place.family]
        return chosen

    return factor


def _of_engine(p: Parameters, place: Place) -> Callable[[str], Numbers]:
    """Return what gives a factor of each place's engine."""
    compiled = place.conditions.is_compiled

    def factor(name: str) -> Numbers:
        table = np.array([p.get(f"engine.{engine}.{name}", 1.0) for engine in ENGINES])
        chosen: Numbers = np.where(compiled, p.get(f"engine.mlc.{name}", 1.0), table[place.engine])
        return chosen

    return factor
