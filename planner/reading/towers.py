"""
Encoders of images and sound, with the projectors into the language model.

A tower is a transformer of its own: layers x (4 h^2 + matrices x h x width), patches, positions. Projectors
differ by family. Norms and other short vectors are left out.

Source:
    docs/models.md, "Towers"; formulas follow the modules of transformers 5.24.0.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.catalogues.models import VisionTower
from planner.reading.fields import Config

_LAYERS = ("num_hidden_layers", "depth", "vt_num_hidden_layers", "num_layers", "layers")
_WIDTH = ("embed_dim", "hidden_size", "vt_hidden_size", "width", "embed_size")
_MLP_WIDTH = ("intermediate_size", "vt_intermediate_size", "mlp_dim")
# Encoders with a gate in their feed-forward blocks: three matrices. Source: transformers 5.24.0.
_GATED = frozenset(
    {
        "pixtral",
        "gemma4_vision",
        "glm5_next_vision",
        "qwen2_5_vl",
        "qwen2_5_omni_vision_encoder",
        "glm4v",
        "glm4v_moe",
        "glm4v_vision",
        "ovis2_vision",
    }
)
# Encoders whose intermediate_size is that of their projector; inside they are as wide as the language model.
_SWAPPED = frozenset({"glm4v", "glm4v_moe", "glm4v_vision", "glm4v_moe_vision"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Towers:
    """What a model has beside its language part."""

    vision: VisionTower | None = None
    vision_params: int | None = None
    audio_params: int | None = None
    notes: tuple[str, ...] = ()


def read_towers(config: Config, hidden: int) -> Towers:
    """
    Count the encoders that a configuration describes; what cannot be counted is said in a note.

    Args:
        config: The configuration whose top level may hold `vision_config` and `audio_config`.
        hidden: Width of the language model, into which images are projected.
    """
    notes: list[str] = []
    vision = _block(config, "vision_config", "vision_tower_config")
    audio = _block(config, "audio_config", "audio_encoder_config")
    tower = _vision(config, vision, hidden) if vision is not None else None
    if vision is not None and tower is None:
        notes.append("the vision tower is not counted: vision_config lacks its layers or widths")
    if vision is not None and tower is not None and not _is_known(config, vision):
        kind = vision.word("model_type")[:40] or "that is not stated"
        notes.append(f"a vision tower of type {kind}: counted like most encoders")
    if vision is None and _promises_images(config):
        notes.append("no vision_config: if there is a vision tower, it is not counted")
    audio_params = _audio(audio, hidden) if audio is not None else None
    if audio is not None and audio_params is None:
        notes.append("the audio tower is not counted: audio_config lacks its layers or widths")
    return Towers(
        vision=tower,
        vision_params=None if tower is None else tower.params,
        audio_params=audio_params,
        notes=tuple(notes),
    )


def _block(config: Config, *names: str) -> Config | None:
    """Return a block of the top level, or of the text level in files that are flat."""
    top = Config(where=config.where, top=config.top, text=config.top, facts={}, model_type="", family=None)
    return top.part(*names)


def _is_known(config: Config, vision: Config) -> bool:
    """Whether the parts of a tower are those of its family, and not only those that most have."""
    kinds = {vision.word("model_type"), _type_of(config.top)}
    return bool(kinds & (_PROJECTORS.keys() | _USUAL))


def _promises_images(config: Config) -> bool:
    names = config.top.get("architectures")
    first = names[0] if isinstance(names, list) and names else ""
    return config.is_nested and isinstance(first, str) and first.endswith("ForConditionalGeneration")


def _vision(config: Config, vision: Config, hidden: int) -> VisionTower | None:
    layers, width = vision.count(*_LAYERS, up_to=4096), vision.count(*_WIDTH)
    if layers is None or width is None:
        return None
    layers += vision.count("num_global_layers", up_to=4096, at_least=0) or 0
    kind, outer = vision.word("model_type"), _type_of(config.top)
    mlp_width = vision.count("out_hidden_size") if kind in _SWAPPED else vision.count(*_MLP_WIDTH)
    if mlp_width is None:
        ratio = vision.raw("mlp_ratio")
        is_ratio = isinstance(ratio, int | float) and not isinstance(ratio, bool) and 0 < ratio < 100
        mlp_width = int(width * ratio) if is_ratio else 4 * width
    matrices = 3 if kind in _GATED or outer in _GATED else 2
    attention = _attention_width(vision, width)
    each = 4 * width * attention + matrices * width * mlp_width + 5 * width + mlp_width + 4 * width
    project = _PROJECTORS.get(kind) or _PROJECTORS.get(outer, _two_layers)
    params = layers * each + _patches(vision, width) + project(vision, width, hidden)
    return VisionTower(layers=layers, hidden_size=width, params=params)


def _type_of(level: Mapping[str, Any]) -> str:
    value = level.get("model_type")
    return value if isinstance(value, str) else ""


def _attention_width(vision: Config, width: int) -> int:
    """Return the width of all heads: Kimi K3's differs from the hidden width."""
    stated = vision.count("qkv_hidden_size")
    if stated is not None:
        return stated
    heads, head_dim = vision.count("num_attention_heads", "num_heads"), vision.count("head_dim")
    return heads * head_dim if heads and head_dim else width


def _patches(vision: Config, width: int) -> int:
    """Count the projection of patches and the table of positions."""
    patch = _side(vision, "patch_size", 4096) or 14
    frames = vision.count("temporal_patch_size", up_to=64) or 1
    params = 3 * frames * patch * patch * width
    rows, columns = (
        vision.count("init_pos_emb_height", up_to=4096),
        vision.count("init_pos_emb_width", up_to=4096),
    )
    stated = vision.count("num_position_embeddings", "max_position_embeddings", up_to=2**24)
    table = vision.count("position_embedding_size", up_to=2**24)
    image = _side(vision, "image_size", 2**16)
    kind = vision.word("model_type")
    if rows and columns:
        return params + rows * columns * width
    if table:  # Gemma 4: one table for each direction
        return params + 2 * table * width
    if stated and kind != "gemma4_vision":
        return params + stated * width
    # Encoders with rotated positions have no table.
    is_learned = kind in ("siglip_vision_model", "clip_vision_model", "llama4_vision_model")
    return params + (image // patch) ** 2 * width if image and is_learned else params


def _side(vision: Config, name: str, up_to: int) -> int | None:
    """Return the side of a square that may be stated as two numbers."""
    sides = vision.counts(name, up_to=up_to)
    return sides[0] if sides else vision.count(name, up_to=up_to)


def _one_layer(vision: Config, width: int, hidden: int) -> int:
    del vision
    return width * hidden


def _two_layers(vision: Config, width: int, hidden: int) -> int:
    del vision
    return width * hidden + hidden * hidden


def _merger(vision: Config, width: int, hidden: int) -> int:
    """Count the merger of neighbouring patches, into the language model by two matrices."""
    side = vision.count("spatial_merge_size", up_to=64) or 2
    merged = width * side * side
    out = vision.count("out_hidden_size", "text_hidden_size") or hidden
    depth = len(vision.counts("deepstack_visual_indexes") or ())
    return (1 + depth) * merged * (merged + out)


def _pixtral(vision: Config, width: int, hidden: int) -> int:
    side = vision.count("spatial_merge_size", up_to=64) or 2
    return side * side * width * width + width * hidden + hidden * hidden


def _llama4(vision: Config, width: int, hidden: int) -> int:
    inner = vision.count("intermediate_size") or 4 * width
    middle = vision.count("projector_input_dim", "vision_output_dim") or 4096
    out = vision.count("vision_output_dim", "projector_output_dim") or middle
    return inner * middle + middle * out + out * hidden


def _mllama(vision: Config, width: int, hidden: int) -> int:
    return (vision.count("vision_output_dim") or width) * hidden


def _minimax(vision: Config, width: int, hidden: int) -> int:
    side = vision.count("spatial_merge_size", up_to=64) or 2
    return width * hidden + hidden * hidden * (2 + side * side)


def _step(vision: Config, width: int, hidden: int) -> int:
    """Count two convolutions of 3 x 3 that double the width, and the projection."""
    del vision
    return 9 * width * 2 * width + 9 * 2 * width * 4 * width + 4 * width * hidden


def _glm(vision: Config, width: int, hidden: int) -> int:
    side = vision.count("spatial_merge_size", up_to=64) or 2
    out = vision.count("out_hidden_size") or hidden
    inner = vision.count("projection_intermediate_size", "intermediate_size") or 0
    return side * side * width * out + out * out + 3 * out * inner


# Encoders without parts of their own. Source: transformers 5.24.0, models/siglip, siglip2, clip.
_USUAL = frozenset(
    {"phi4_multimodal_vision", "siglip_vision_model", "siglip2_vision_model", "clip_vision_model"}
)
_CONFORMERS = frozenset({"gemma3n_audio", "gemma4_audio"})
# By the model_type of the vision configuration, else by that of the whole.
_PROJECTORS: Mapping[str, Callable[[Config, int, int], int]] = {
    "gemma3": _one_layer,
    "gemma4": _one_layer,
    "gemma4_vision": _one_layer,
    "qwen2_vl": _merger,
    "qwen2_vl_vision": _merger,
    "qwen2_5_vl": _merger,
    "qwen2_5_vl_vision": _merger,
    "qwen2_5_omni_vision_encoder": _merger,
    "qwen3_omni_moe_vision_encoder": _merger,
    "qwen3_vl": _merger,
    "qwen3_vl_moe": _merger,
    "qwen3_5": _merger,
    "qwen3_5_vision": _merger,
    "qwen3_5_moe": _merger,
    "qwen3_5_moe_vision": _merger,
    "qwen4_exp": _merger,
    "qwen4_exp_vision": _merger,
    "kimi_vl": _merger,
    "kimi_k25": _merger,
    "kimi_k3": _merger,
    "moonvit": _merger,
    "pixtral": _pixtral,
    "llama4": _llama4,
    "llama4_vision_model": _llama4,
    "mllama_vision_model": _mllama,
    "minimax_m3_vl": _minimax,
    "minimax_m3_vl_vision": _minimax,
    "step3p7": _step,
    "step3p5_vision": _step,
    "glm4v": _glm,
    "glm4v_vision": _glm,
    "glm4v_moe": _glm,
    "glm4v_moe_vision": _glm,
    "glm5_next": _glm,
    "glm5_next_vision": _glm,
}


def _audio(audio: Config, hidden: int) -> int | None:
    """
    Count an encoder of sound and its projection.

    Most are transformers like Whisper's, 4 h^2 + 2 h x width a layer, behind two convolutions. Gemma's are
    conformers: two feed-forward blocks of four times the width, attention with relative keys, a convolution,
    24 h^2 a layer.
    """
    layers = audio.count(*_LAYERS, "encoder_layers", "conf_num_hidden_layers", up_to=4096)
    width = audio.count(*_WIDTH, "d_model")
    if layers is None or width is None:
        return None
    if audio.word("model_type") in _CONFORMERS:
        out = audio.count("output_proj_dims") or width
        return 24 * layers * width * width + width * out + out * hidden
    inner = audio.count("encoder_ffn_dim", "intermediate_size") or 4 * width
    out = audio.count("output_dim", "output_proj_dims") or hidden
    convolutions = 3 * width * (width + (audio.count("num_mel_bins", up_to=4096) or 128))
    return layers * (4 * width * width + 2 * width * inner) + convolutions + width * out
