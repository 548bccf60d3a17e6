"""The fields of one configuration: where they are, whether they are there, and whether they can be."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planner.errors import UnknownArchitecture, UnreadableModel
from planner.reading.families import Family, family_of

# Wider than any model: bounds that keep absurd shapes out. Source: own choice, 30 x the largest published.
MOST_LAYERS = 4096
MOST_WIDTH = 2**20
MOST_HEADS = 2**16
MOST_WORDS = 2**24
MOST_TOKENS = 2**34
# Per-module lists of quantised copies reach 3 MB (MiniMax M3 NVFP4). Source: own choice, ten times that.
MOST_CONFIG_BYTES = 32 * 2**20

# Levels at which the text model of a vision or audio model lies, the usual one first.
NESTED = ("text_config", "language_config", "llm_config")


def parse_config(text: str, where: str) -> dict[str, Any]:
    """
    Read the text of a `config.json`; `Infinity` is understood, as its writers write it.

    Raises:
        UnreadableModel: if it is no JSON object.
    """
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else "not JSON"
        raise UnreadableModel(where, f"{what}; a config.json of Hugging Face is meant") from error
    if not isinstance(config, dict):
        raise UnreadableModel(where, "no JSON object; a config.json of Hugging Face is meant")
    return config


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """
    One configuration, asked for its fields by any of their names.

    What a person states (`facts`) wins, then what is said of one layer, then the text model's own level, then
    the defaults of its class. `null` counts as absent and hides a default.
    """

    where: str  # for messages
    top: Mapping[str, Any]
    text: Mapping[str, Any]
    facts: Mapping[str, Any]
    model_type: str
    family: Family | None
    layer: Mapping[str, Any] = field(default_factory=dict)
    defaulted: set[str] = field(default_factory=set)  # names of the defaults that were used

    @property
    def is_nested(self) -> bool:
        """Whether the text model lies inside the configuration of a wrapper."""
        return self.text is not self.top

    def at_layer(self, index: int) -> "Config":
        """Return the same with what `per_layer_config` or `block_configs` says of one layer, from 0."""
        layers = self.text.get("per_layer_config")
        if isinstance(layers, Mapping):
            said = [value for key, value in layers.items() if str(key).lstrip("0") == str(index or "")]
        else:
            blocks = self.text.get("block_configs")
            said = blocks[index : index + 1] if isinstance(blocks, list) else []
        return replace(self, layer=said[0]) if said and isinstance(said[0], Mapping) else self

    def raw(self, *names: str) -> Any:
        """Return the value of the first name that has one, None where none has."""
        for level in (self.facts, self.layer, self.text):
            for name in names:
                if level.get(name) is not None:
                    return level[name]
        if any(name in self.text for name in names):
            return None
        return self._default(names)

    def _default(self, names: Sequence[str]) -> Any:
        if self.family is None:
            return None
        nested = self.family.nested_defaults if self.is_nested else None
        for defaults in (nested or {}, self.family.defaults or {}):
            for name in names:
                if name in defaults:
                    self.defaulted.add(name)
                    return defaults[name]
        return None

    def has(self, *names: str) -> bool:
        """Whether one of these fields says something: absent, null, false, 0 and empty do not."""
        return any(bool(self.raw(name)) for name in names)

    def states(self, *names: str) -> bool:
        """Whether one of these fields is there, be it `null`, which says that there is none."""
        return any(name in level for level in (self.facts, self.text) for name in names)

    def count(self, *names: str, up_to: int = MOST_WIDTH, at_least: int = 1) -> int | None:
        """
        Return a whole number, None where it is absent.

        Raises:
            UnreadableModel: if it is none, negative or absurd.
        """
        value = self.raw(*names)
        return None if value is None else self.checked(self._name(names), value, up_to, at_least)

    def need(self, *names: str, up_to: int = MOST_WIDTH) -> int:
        """
        Return a whole number above 0.

        Raises:
            UnknownArchitecture: if it is absent.
            UnreadableModel: if it is no such number.
        """
        value = self.count(*names, up_to=up_to)
        if value is None:
            raise self.missing(names[0])
        return value

    def counts(self, *names: str, up_to: int = MOST_WIDTH) -> list[int] | None:
        """Return a list of whole numbers from 0 up, None where it is absent, empty or no list."""
        value = self.raw(*names)
        if not isinstance(value, list) or not value:
            return None
        if len(value) > 4 * MOST_LAYERS:
            raise self.wrong(self._name(names), f"{len(value)} entries", f"at most {4 * MOST_LAYERS}")
        return [self.checked(self._name(names), item, up_to, 0) for item in value]

    def words(self, *names: str) -> list[str] | None:
        """
        Return a list of words, None where it is absent or empty.

        Raises:
            UnreadableModel: if it holds something else.
        """
        value = self.raw(*names)
        if not value:
            return None
        name = self._name(names)
        if not isinstance(value, list) or len(value) > 4 * MOST_LAYERS:
            raise self.wrong(name, _short(value), "a list with one word for each layer")
        for item in value:
            if not isinstance(item, str):
                raise self.wrong(name, _short(item), "a word for each layer")
        return value

    def word(self, *names: str) -> str:
        """Return a word, empty where it is absent or something else."""
        value = self.raw(*names)
        return value if isinstance(value, str) else ""

    def flag(self, *names: str, default: bool = False) -> bool:
        """Return a truth value; a number counts as one."""
        value = self.raw(*names)
        return default if value is None else bool(value)

    def part(self, *names: str) -> "Config | None":
        """Return a nested block, such as `linear_attn_config`, asked in the same way."""
        value = self.raw(*names)
        if not isinstance(value, Mapping) or not value:
            return None
        return replace(self, text=value, top=value, family=None, facts={}, layer={})

    def wrong(self, name: str, value: object, allowed: str) -> UnreadableModel:
        """Return the error of a field whose value cannot be."""
        return UnreadableModel(self.where, f"{name} is {value}; it must be {allowed}")

    def missing(self, *names: str, what: str = "") -> UnknownArchitecture:
        """Return the error of fields that are not there."""
        listed = ", ".join(names)
        return UnknownArchitecture(self.where, what or f"{listed} not stated and not known", names)

    def checked(self, name: str, value: Any, up_to: int, at_least: int) -> int:
        """Return a value as the whole number that it must be."""
        is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not is_whole or not at_least <= value <= up_to:
            raise self.wrong(name, _short(value), f"a whole number from {at_least:,} to {up_to:,}")
        return int(value)

    def _name(self, names: Sequence[str]) -> str:
        """Return the name of those that the configuration uses."""
        for level in (self.facts, self.layer, self.text):
            for name in names:
                if level.get(name) is not None:
                    return name
        return names[0]


def open_config(config: Mapping[str, Any], where: str, facts: Mapping[str, Any] | None = None) -> Config:
    """
    Find the text model in a configuration.

    Raises:
        UnreadableModel: if it has no field of a language model.
    """
    facts = facts or {}
    config = _understood(config)
    text = next(_levels(config))
    stated = facts.get("model_type") or text.get("model_type") or config.get("model_type")
    if not isinstance(stated, str):
        stated = ""
    outer = config.get("model_type")
    family = family_of(stated)
    if family is None and "model_type" not in facts and isinstance(outer, str):
        family = family_of(outer)
    text = {**_inner_fields(text, family), **text} if family is not None and family.inner_blocks else text
    opened = Config(where=where, top=config, text=text, facts=facts, model_type=stated, family=family)
    known = ("hidden_size", "num_hidden_layers", "num_layers", "layers_block_type", "block_configs")
    if not stated and opened.raw(*known) is None:
        raise UnreadableModel(where, "no configuration of a language model: neither model_type nor layers")
    return opened


def _understood(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a model that listens and speaks which understands: it holds text and towers."""
    thinker = config.get("thinker_config")
    if not isinstance(thinker, Mapping) or not thinker:
        return config
    outer = ("architectures", "quantization_config", "dtype", "torch_dtype")
    return {**{name: config[name] for name in outer if name in config}, **thinker}


def _inner_fields(text: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """Return the fields of blocks that belong to the model itself."""
    blocks = [text.get(name) for name in family.inner_blocks]
    return {name: value for block in blocks if isinstance(block, Mapping) for name, value in block.items()}


def _levels(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return the levels at which the text model may lie, the likeliest first."""
    for name in NESTED:
        if isinstance(config.get(name), Mapping) and config[name]:
            yield config[name]
    yield config


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
