"""The format in which a checkpoint holds its weights, as `quantization_config` and `dtype` say it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from planner.reading.fields import Config

# Bits of a weight with its block scales. Source: planner/data/quants.toml, `linear_bits`.
FORMAT_BITS = {
    "FP8": 8.0,
    "MXFP8": 8.25,
    "NVFP4": 4.5,
    "MXFP4": 4.25,
    "AWQ": 4.25,
    "GPTQ-4": 4.25,
    "INT8": 8.25,
    "NF4": 4.127,
}
# Formats that are no entry of the catalogue, and the entry closest to them.
_NEAREST = {"MXFP8": "FP8"}
_PLAIN = {
    "bfloat16": ("bf16", 16.0),
    "float16": ("fp16", 16.0),
    "half": ("fp16", 16.0),
    "float32": ("fp32", 32.0),
}
_LAYER = re.compile(r"layers\.(\d{1,4})\.")
_SPECIAL = re.compile(r"^re:|[\\^$*()+?]")


class Part(StrEnum):
    """Tensor classes whose bits may differ."""

    ATTENTION = "attention"
    DENSE = "dense"
    SHARED = "shared"
    EXPERTS = "experts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Native:
    """How the weights are stored."""

    dtype: str | None  # as `Model.native_dtype` names it
    quant: str | None = None  # entry of the catalogue, None where the weights are plain
    bits: Mapping[Part, float] | None = None
    notes: tuple[str, ...] = ()


def read_native(
    config: Config, layers: Mapping[Part, int], quantisation: Mapping[str, Any] | None = None
) -> Native:
    """
    Read the stored format; a quantisation block at either level wins over `dtype`, which then only computes.

    Args:
        config: The configuration.
        layers: How many layers have each class of tensors, to see what share of them an exception concerns.
        quantisation: Content of `hf_quant_config.json` beside it, if there is one.
    """
    plain, plain_bits = _plain_dtype(config)
    block = _block(config, quantisation)
    if block is None:
        bits_of = None if plain is None else dict.fromkeys(Part, plain_bits)
        return Native(dtype=plain, bits=bits_of, notes=_unread(config))
    name = format_name(block)
    if name is None:
        method = str(block.get("quant_method") or block.get("quant_algo") or "an unnamed method")
        note = f"quantization_config: the format {method[:40]!r} is not known, nor the bits that are stored"
        return Native(dtype=None, notes=(note,))
    bits = _bits_by_part(block, _width(name, block), layers)
    dtype = _dtype(name, bits)
    if name == "FP8" and config.raw("expert_dtype") == "fp4":  # DeepSeek V4: wins over the format for experts
        bits[Part.EXPERTS] = FORMAT_BITS["MXFP4"]
        name, dtype = "MXFP4", "fp8+fp4-experts"
    return Native(dtype=dtype, quant=_NEAREST.get(name, name), bits=bits)


def _plain_dtype(config: Config) -> tuple[str | None, float]:
    """Return the dtype of the text level, else of the top; `auto` and what is not known are none."""
    for level in (config.text, config.top):
        for name in ("dtype", "torch_dtype"):
            value = level.get(name)
            if isinstance(value, str) and value.removeprefix("torch.") in _PLAIN:
                return _PLAIN[value.removeprefix("torch.")]
    return None, 16.0


def _block(config: Config, beside: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the quantisation block: inside the text configuration, at the top, or in a file beside it."""
    for level in (config.text, config.top):
        for name in ("quantization_config", "compression_config"):
            value = level.get(name)
            if isinstance(value, Mapping) and value:
                return value
    inner = beside.get("quantization") if beside else None
    return inner if isinstance(inner, Mapping) and inner else None


def _unread(config: Config) -> tuple[str, ...]:
    """Say that a quantisation block is there which is none."""
    levels = [level.get("quantization_config") for level in (config.text, config.top)]
    if not any(value and not isinstance(value, Mapping) for value in levels):
        return ()
    return ("quantization_config is no object and was not read: the weights are taken to be as dtype says",)


def format_name(block: Mapping[str, Any]) -> str | None:
    """Return the format of a quantisation block, None where it is not one that is known."""
    method = str(block.get("quant_method") or "").lower().replace("_", "-")
    algorithm = str(block.get("quant_algo") or "").upper()
    if algorithm:
        return _algorithm(algorithm, block)
    if method in ("compressed-tensors", "modelopt", "quark"):
        return _from_groups(block)
    if method in ("awq", "gptq", "auto-round", "auto-awq", "gptqmodel"):
        return _integer(block.get("bits", block.get("w_bit")), "AWQ" if "awq" in method else "GPTQ-4")
    if method in ("fp8", "fbgemm-fp8", "deepseek-v4-fp8"):
        return "FP8"
    if method in ("mxfp4", "mxfp8", "nvfp4"):
        return method.upper()
    if method in ("bitsandbytes", "bnb"):
        return "NF4" if block.get("load_in_4bit") else "INT8" if block.get("load_in_8bit") else None
    return None


def _algorithm(algorithm: str, block: Mapping[str, Any]) -> str | None:
    if algorithm == "MIXED_PRECISION":
        layers = block.get("quantized_layers")
        found = [_algorithm(name, {}) for name in _algorithms(layers)] if isinstance(layers, Mapping) else []
        known = [name for name in found if name is not None]
        return min(known, key=lambda name: FORMAT_BITS[name], default=None)
    for name in ("NVFP4", "MXFP4", "MXFP8", "FP8"):
        if name in algorithm:
            return name
    if "INT4" in algorithm or "W4A16" in algorithm:
        return "AWQ"
    return "INT8" if "INT8" in algorithm or "W8A8" in algorithm else None


def _algorithms(layers: Mapping[Any, Any]) -> set[str]:
    return {str(value.get("quant_algo")).upper() for value in layers.values() if isinstance(value, Mapping)}


def _from_groups(block: Mapping[str, Any]) -> str | None:
    """Read the format of compressed tensors, the narrowest where groups differ."""
    named = str(block.get("format") or "").lower()
    groups = block.get("config_groups")
    found = []
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping):
            found.append(_group_format(weights, f"{named} {group.get('format') or ''}"))
    known = [name for name in found if name is not None]
    return min(known, key=lambda name: FORMAT_BITS[name], default=None)


def _group_format(weights: Mapping[str, Any], named: str) -> str | None:
    bits = weights.get("num_bits")
    if weights.get("type") == "int":
        return _integer(bits, "GPTQ-4")
    if bits == 4:
        return "MXFP4" if "mxfp4" in named or weights.get("group_size") == 32 else "NVFP4"
    if bits == 8:
        return "MXFP8" if "mxfp8" in named or weights.get("group_size") == 32 else "FP8"
    return None


def _width(name: str, block: Mapping[str, Any]) -> float:
    """Return the bits of a format; integers in small groups have more scales than the catalogue's 128."""
    groups = block.get("config_groups")
    listed = groups.values() if isinstance(groups, Mapping) else ()
    inner = [group.get("weights") for group in listed if isinstance(group, Mapping)]
    sizes = [part.get("group_size") for part in [*inner, block] if isinstance(part, Mapping)]
    size = next((size for size in sizes if isinstance(size, int) and not isinstance(size, bool)), None)
    if name in ("AWQ", "GPTQ-4") and size is not None and 0 < size < 64:
        return 4 + 16 / size
    return FORMAT_BITS[name]


def _integer(bits: object, name: str) -> str | None:
    return {4: name, 8: "INT8"}.get(bits) if isinstance(bits, int) else None


def _dtype(name: str, bits: Mapping[Part, float]) -> str:
    """Return the format as `Model.native_dtype` writes it: experts apart where only they are narrow."""
    if name == "MXFP4" and all(bits[part] >= 16 for part in Part if part is not Part.EXPERTS):
        return "mxfp4-experts+bf16"
    return "fp8" if name == "FP8" else name


def _bits_by_part(block: Mapping[str, Any], width: float, layers: Mapping[Part, int]) -> dict[Part, float]:
    """
    Return bits by tensor class: the format's, 16 for the layers that exceptions name.

    Exceptions name modules of single layers or patterns for all; per-module lists give each its own format.
    """
    each = block.get("quantized_layers")
    if isinstance(each, Mapping) and each:
        return _bits_of_modules(each, layers)
    names = next((block[name] for name in _IGNORED if isinstance(block.get(name), list) and block[name]), ())
    ignored: dict[Part, set[int]] = {}
    in_all: set[Part] = set()
    for name in names:
        part, number = part_of(name), _LAYER.search(name) if isinstance(name, str) else None
        if part is not None and number is not None:
            ignored.setdefault(part, set()).add(int(number[1]))
        elif part is not None:
            in_all.add(part)
    if block.get("quant_method") == "mxfp4":  # GPT-OSS: experts only, whatever else is listed
        in_all |= {part for part in Part if part is not Part.EXPERTS}
    bits = {}
    for part in Part:
        share = 1.0 if part in in_all else min(1.0, len(ignored.get(part, ())) / max(1, layers[part]))
        bits[part] = width * (1 - share) + 16 * share
    return bits


# Names of what is outside of the layers, or too small to count: norms, indexers, draft layers.
_SMALL = ("vision", "visual", "lm_head", "embed", "mtp", "projector", "norm", "index", "eh_proj", "e_score")
_IGNORED = ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers", "exclude")


def part_of(name: object) -> Part | None:
    """Return the tensor class of a module or of a pattern for modules, None for what is small or outside."""
    if not isinstance(name, str):
        return None
    plain = _SPECIAL.sub("", name)
    if any(word in plain for word in _SMALL):
        return None
    if plain in ("gate", "router") or plain.rstrip(".").endswith((".router", ".gate", "shared_expert_gate")):
        return None
    if "shared_expert" in plain or "share_expert" in plain:
        return Part.SHARED
    if "experts" in plain:
        return Part.EXPERTS
    if "attn" in plain or "attention" in plain or "mixer" in plain:
        return Part.ATTENTION
    return Part.DENSE if "mlp" in plain or "feed_forward" in plain else None


def _bits_of_modules(modules: Mapping[Any, Any], layers: Mapping[Part, int]) -> dict[Part, float]:
    """Return bits by tensor class from a list of single modules; layers that are not listed keep 16."""
    found: dict[Part, dict[int, list[float]]] = {}
    for name, value in modules.items():
        algorithm = (
            _algorithm(str(value.get("quant_algo")).upper(), {}) if isinstance(value, Mapping) else None
        )
        part, number = part_of(name), _LAYER.search(str(name))
        if algorithm is not None and part is not None and number is not None:
            found.setdefault(part, {}).setdefault(int(number[1]), []).append(FORMAT_BITS[algorithm])
    bits = dict.fromkeys(Part, 16.0)
    for part, numbers in found.items():
        means = [sum(values) / len(values) for values in numbers.values()]
        rest = max(0, layers[part] - len(means))
        bits[part] = (sum(means) + 16.0 * rest) / (len(means) + rest)
    return bits
