"""
A model's parameters and bytes: what its tensors say, else the index of its files, else its shape.

Tensors win over an index and an index over a count, since each knows what the next one must assume. A figure
that a person states wins over all of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planner.catalogues.models import Model
from planner.catalogues.stored import StoredWeights
from planner.errors import UnreadableModel
from planner.reading.counting import ParameterCount, count_active, count_parameters
from planner.reading.quantisation import Native, Part
from planner.reading.safetensors import SafetensorsIndex
from planner.reading.tensors import TensorClass, TensorTable, class_of, is_served, layer_of
from planner.units import GB

# More than any model has, by a factor of 100: what lies above is a misread or a joke.
MOST_PARAMS = 10**15
# A count from the shape that differs by more from what is known better is reported. Source: own choice.
DOUBTFUL_SHARE = 0.01
# A stated label is rounded ("32B" for 32.76B): only more than that is. Source: own choice.
DOUBTFUL_LABEL_SHARE = 0.1
# Bits a parameter of a checkpoint: from 1-bit formats to 32 bits with draft layers. Source: own choice.
LEAST_BITS, MOST_BITS = 1.0, 40.0
_PLAIN_BITS = {"bf16": 16, "fp16": 16, "fp32": 32}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a model beside its configuration."""

    tensors: TensorTable | None = None
    index: SafetensorsIndex | None = None
    params: int | None = None  # stated by a person
    active_params: int | None = None


def with_figures(model: Model, native: Native, known: Known) -> tuple[Model, tuple[str, ...]]:
    """
    Return the model with its parameters, bits and bytes, and what is doubtful about them.

    Args:
        model: The shape, towers counted.
        native: The format that its files hold.
        known: What is known beside the configuration.

    Raises:
        UnreadableModel: if a number of parameters cannot be.
    """
    model = _with_seen_parts(model, known.tensors)
    count = count_parameters(model)
    total, basis = _total(model, count, known)
    if not 0 < count.total <= MOST_PARAMS or not 0 < total <= MOST_PARAMS:
        raise UnreadableModel(model.sources[0], f"{max(total, count.total):,} parameters cannot be")
    active = _active(model, count, total, known)
    embedding = 0 if model.tied_embeddings else model.vocab_size * model.hidden_size
    stored, stored_basis = _stored_elements(native, known)
    is_stated = known.params is not None or known.active_params is not None
    counted = replace(
        model,
        main_params=total,
        main_params_basis=basis,
        active_params=active,
        active_params_with_embedding=min(total, active + embedding),
        total_params=stored,
        total_params_basis=stored_basis,
        evidence="user" if is_stated else "config",
    )
    doubts = _doubts(count, total, basis, known, stored)
    if known.index is not None and known.tensors is None and stored is None and _unserved(model, known):
        doubts = (*doubts, "its index holds draft layers or doubles, whose bytes are counted as weights")
    doubts = (*doubts, *_layer_doubts(counted, known), *_index_doubts(count, known))
    return _with_bytes(counted, native, count, known), doubts


def _with_seen_parts(model: Model, tensors: TensorTable | None) -> Model:
    """Take from the tensors what they show better than a configuration: towers, and one matrix or two."""
    if tensors is None:
        return model
    if tensors.is_tied is not None and not model.tied_embeddings:
        model = replace(model, tied_embeddings=tensors.is_tied)
    seen, heard = tensors.elements_by_tower
    if tensors.is_packed or not seen + heard:
        return model
    return replace(model, vision_params=seen or model.vision_params, audio_params=heard or model.audio_params)


def _total(model: Model, count: ParameterCount, known: Known) -> tuple[int, str]:
    """Return the parameters that are served, and where they are known from."""
    if known.params is not None:
        return known.params, "stated by the user"
    served = known.tensors.served_elements(model) if known.tensors is not None else None
    if served is not None:
        return served, "exact: elements of its tensors"
    elements = known.index.total_parameters if known.index is not None and known.tensors is None else None
    if elements and not _unserved(model, known):
        return elements, "exact: elements by the index of its files"
    return count.total, "counted from the architecture in its config"


def _unserved(model: Model, known: Known) -> list[str]:
    """Return the tensors of an index that are stored and not served."""
    names = known.index.tensor_names if known.index is not None else ()
    return [name for name in names if not is_served(name, model)]


def _active(model: Model, count: ParameterCount, total: int, known: Known) -> int:
    """Return the parameters read for a token: the count, in proportion to what is known of the whole."""
    if known.active_params is not None:
        if known.active_params > total:
            what = f"{known.active_params:,} active parameters of {total:,} cannot be"
            raise UnreadableModel(model.sources[0], what)
        return known.active_params
    idle = count.towers + count.tables
    share = (total - idle) / (count.total - idle) if total > idle and count.total > idle else 1.0
    return max(1, min(total, round(count_active(model, count) * share)))


def _stored_elements(native: Native, known: Known) -> tuple[int | None, str | None]:
    """Return the elements in the files, draft layers and doubles included, where they are known."""
    if known.tensors is not None:
        elements = known.tensors.elements
        return elements, None if elements is None else "elements of its tensors"
    if known.index is None:
        return None, None
    if known.index.total_parameters:
        return known.index.total_parameters, "elements by the index of its files"
    bits = _PLAIN_BITS.get(native.dtype or "") if native.quant is None else None
    if bits and known.index.total_bytes:
        return known.index.total_bytes * 8 // bits, f"bytes by the index of its files, at {bits} bits"
    return None, None


def _with_bytes(model: Model, native: Native, count: ParameterCount, known: Known) -> Model:
    """Return the model with the bits that its files hold, and their bytes where these are known."""
    size, basis = None, None
    if known.tensors is not None:
        size, basis = known.tensors.total_bytes, "bytes of its tensors"
    elif known.index is not None and known.index.total_bytes:
        size, basis = known.index.total_bytes, "bytes by the index of its files"
    return replace(
        model,
        native_dtype=native.dtype,
        native_expert_bits=native.bits[Part.EXPERTS] if native.bits and model.moe is not None else None,
        native_other_bits=_other_bits(model, native, count),
        checkpoint_bytes=size,
        checkpoint_bytes_basis=basis,
        stored=_stored(model, known),
    )


def _stored(model: Model, known: Known) -> StoredWeights | None:
    """Return the bytes by use; none where experts are stored under names that are not known."""
    stored = None if known.tensors is None else known.tensors.stored(model)
    if stored is not None and model.moe is not None and not stored.routed_bytes:
        return None
    return stored


def _other_bits(model: Model, native: Native, count: ParameterCount) -> float | None:
    """Return the mean bits of all matrices but routed experts, embedding and head."""
    if native.bits is None:
        return None
    shared = 0
    if model.moe is not None:
        width = model.moe.shared_intermediate_size or 0
        shared = model.moe.moe_layers * model.moe.ffn_matrices * width * model.hidden_size
    dense = max(0, count.feed_forward - shared)
    weighed = (
        count.mixers * native.bits[Part.ATTENTION]
        + shared * native.bits[Part.SHARED]
        + dense * native.bits[Part.DENSE]
    )
    return weighed / max(1, count.mixers + shared + dense)


def _doubts(
    count: ParameterCount, total: int, basis: str, known: Known, stored: int | None
) -> tuple[str, ...]:
    """Say where the count from the shape does not agree with what is known better."""
    notes: list[str] = []
    off = count.total / total - 1
    if abs(off) > (DOUBTFUL_LABEL_SHARE if known.params is not None else DOUBTFUL_SHARE):
        notes.append(
            f"the configuration counts {count.total:,} parameters, {off:+.1%} from {total:,} ({basis})"
        )
    elif stored is not None and known.params is None and count.total > stored * (1 + DOUBTFUL_SHARE):
        notes.append(f"the configuration counts {count.total:,} parameters, its files hold {stored:,} only")
    return tuple(notes)


def _layer_doubts(model: Model, known: Known) -> tuple[str, ...]:
    """Say which layers the files do not hold, and which they hold that the configuration does not have."""
    if known.tensors is not None:
        names: Iterable[str] = (tensor.name for tensor in known.tensors.tensors)
    else:
        names = known.index.tensor_names if known.index is not None else ()
    kept = [name for name in names if class_of(name) not in (TensorClass.TOWER, TensorClass.DRAFT)]
    held = {number for name in kept if (number := layer_of(name)) is not None}
    missing = sorted(set(range(model.num_layers)) - held) if held else []
    more = [number for number in sorted(held) if number >= model.num_layers + (model.mtp_layers or 0)]
    said = []
    if missing:
        said.append(f"its files hold nothing of layer {_numbers(missing)}, of {model.num_layers} stated")
    if more:
        what = f"its files hold layer {_numbers(more)}, and {model.num_layers} layers are stated"
        said.append(f"{what}: what is beyond them is not counted")
    return tuple(said)


def _numbers(numbers: Sequence[int]) -> str:
    listed = ", ".join(str(number) for number in numbers[:4])
    return listed if len(numbers) <= 4 else f"{listed} and {len(numbers) - 4} more"


def _index_doubts(count: ParameterCount, known: Known) -> tuple[str, ...]:
    """Say where the bytes that an index states cannot be those of the model."""
    if known.index is None or known.tensors is not None or not known.index.total_bytes:
        return ()
    bits = known.index.total_bytes * 8 / count.total
    if LEAST_BITS <= bits <= MOST_BITS:
        return ()
    size = f"{known.index.total_bytes / GB:,.2f} GB"
    return (f"its index states {size}, {bits:,.1f} bits a parameter: not the size of this model",)


def reading_notes(parts: Sequence[str], towers: Sequence[str], known: Known) -> tuple[str, ...]:
    """Return what is not known of a model; its tensors tell the size of a tower that is not described."""
    has_seen = (
        known.tensors is not None and not known.tensors.is_packed and any(known.tensors.elements_by_tower)
    )
    return (*parts, *(() if has_seen else towers))
