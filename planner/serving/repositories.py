"""Which repository holds a model in a format: the model's own, or a quantised copy of it."""

import re
from collections.abc import Sequence

from planner.catalogue import lookup_key
from planner.catalogues.models import Model, aliases_of
from planner.catalogues.quants import QuantFamily, QuantFormat
from planner.memory import is_native

# Who publishes quantised copies, the most careful first; others follow in the order of the catalogue.
_OWNERS = ("nvidia", "RedHatAI", "unsloth", "ggml-org", "bartowski")
# Words of repository names that speak of the weight format only, without hyphens.
_QUANT_WORDS = (
    "gguf|fp8|kv|dynamic|block|nvfp4|mxfp4|fp4|awq|gptq|unsloth|bnb|4bit|8bit|int4|int8|"
    r"w4a16|w8a16|w8a8|quantized|quant|g128|\.|ud|mix|autoround"
)
# Formats that vLLM and SGLang make from 16-bit weights while loading (their documentation, "quantization").
ONLINE_FLAGS = {"FP8": "fp8", "NF4": "bitsandbytes"}


def repository_for(model: Model, quant: QuantFormat) -> tuple[str | None, bool]:
    """
    Return the repository that holds a model in a format, and whether the engine quantises while loading.

    None where the catalogue knows no copy in that format: a name made up from a pattern may be another model.
    """
    if quant.family is QuantFamily.GGUF:
        return model.gguf_repo or _preferred(model, _copies(model, is_gguf=True)), False
    if is_native(model, quant):
        return model.hf_repo, False
    copies = [name for name, named in _copies(model, is_gguf=False) if named == quant.name]
    if copies:
        return _preferred(model, [(name, None) for name in copies]), False
    is_16_bit = (model.native_dtype or "") in ("bf16", "fp16")
    if quant.name in ONLINE_FLAGS and is_16_bit and model.hf_repo:
        return model.hf_repo, True
    return None, False


def _copies(model: Model, *, is_gguf: bool) -> list[tuple[str, str | None]]:
    """
    Return repositories of quantised copies of the model's own weights, with their format.

    The catalogue's aliases share the shape: base models, older and newer versions of it are among them. Only
    those count whose name is the model's repository and words of quantisation.
    """
    return [
        (alias.name, alias.quant)
        for alias in aliases_of(model.id)
        if alias.kind == "quantised" and (alias.label == "GGUF") is is_gguf and is_copy_of(model, alias.name)
    ]


def is_copy_of(model: Model, repository: str) -> bool:
    """Whether a repository is, by its name, a quantised copy of the model's own repository."""
    own, name = (
        lookup_key(full.partition("/")[2]).removeprefix("meta") for full in (model.hf_repo or "", repository)
    )
    own = own.removesuffix("bf16").removesuffix("hf")
    if not own or not name.startswith(own):
        return False
    return re.fullmatch(f"(?:{_QUANT_WORDS})*", name.removeprefix(own)) is not None


def _preferred(model: Model, copies: Sequence[tuple[str, str | None]]) -> str | None:
    """Return the copy of the model's own publisher, else of the first known publisher, else the first."""
    own = (model.hf_repo or "").partition("/")[0]
    for owner in (own, *_OWNERS):
        for name, _ in copies:
            if name.partition("/")[0] == owner:
                return name
    return copies[0][0] if copies else None
