"""Headers of GGUF files of public models, as llama.cpp writes them: fields, tensors, no data."""

from collections.abc import Mapping, Sequence
from typing import Any

from planner.configs import ModelReading
from planner.gguf import read_gguf
from planner.reading.gguf import GgufHeader, parse_gguf
from tests.planner.reading.tensorfiles import Shapes, gguf_file_bytes, gguf_start

Tensors = dict[str, tuple[str, tuple[int, ...]]]


def header(fields: Mapping[str, Any], tensors: Shapes, where: str = "model.gguf", **more: Any) -> GgufHeader:
    """Return the header as the reader has it."""
    start = gguf_start(fields, tensors, **more)
    return parse_gguf(start, where, gguf_file_bytes(start, tensors))


def read(fields: Mapping[str, Any], tensors: Shapes, **more: Any) -> ModelReading:
    """Read a model in one file."""
    return read_gguf([header(fields, tensors)], **more)


def prefixed(architecture: str, fields: Mapping[str, Any], **general: Any) -> dict[str, Any]:
    """Return the fields of an architecture by their full names."""
    named = {f"general.{name}": value for name, value in general.items()}
    return {
        "general.architecture": architecture,
        **named,
        **{f"{architecture}.{k}": v for k, v in fields.items()},
    }


def llama_8b_fields(**more: Any) -> dict[str, Any]:
    """Llama 3.1 8B."""
    shape = {
        "block_count": 32,
        "context_length": 131072,
        "embedding_length": 4096,
        "feed_forward_length": 14336,
        "attention.head_count": 32,
        "attention.head_count_kv": 8,
        "rope.dimension_count": 128,
    }
    words = {"tokenizer.ggml.tokens": [f"<{number}>" for number in range(300)]}
    return {**prefixed("llama", shape, name="Llama 3.1 8B", file_type=15), **words, **more}


def llama_8b_tensors(
    layers: Sequence[int] = range(32), *, matrix: str = "Q4_K", wide: str = "Q6_K"
) -> Tensors:
    """Its tensors: value and down projections of half the layers, and the head, are wider."""
    tensors: Tensors = {}
    for layer in layers:
        mixed = wide if layer % 2 else matrix
        tensors |= {
            f"blk.{layer}.attn_norm.weight": ("F32", (4096,)),
            f"blk.{layer}.attn_q.weight": (matrix, (4096, 4096)),
            f"blk.{layer}.attn_k.weight": (matrix, (4096, 1024)),
            f"blk.{layer}.attn_v.weight": (mixed, (4096, 1024)),
            f"blk.{layer}.attn_output.weight": (matrix, (4096, 4096)),
            f"blk.{layer}.ffn_norm.weight": ("F32", (4096,)),
            f"blk.{layer}.ffn_gate.weight": (matrix, (4096, 14336)),
            f"blk.{layer}.ffn_up.weight": (matrix, (4096, 14336)),
            f"blk.{layer}.ffn_down.weight": (mixed, (14336, 4096)),
        }
    return tensors


def llama_8b_ends(*, matrix: str = "Q4_K", wide: str = "Q6_K") -> Tensors:
    """What lies outside of its layers."""
    return {
        "token_embd.weight": (matrix, (4096, 128256)),
        "output_norm.weight": ("F32", (4096,)),
        "output.weight": (wide, (4096, 128256)),
        "rope_freqs.weight": ("F32", (64,)),
    }
