"""
Which device a provider's words mean: by every word, its memory and its form, or not at all.

Names of people are forgiven much (`planner.catalogues.gpus.find_gpu`); names of providers decide about
money. A name that fits several devices, or holds a word that is not understood, names no device and says why.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from planner.catalogues.gpus import DeviceClass, Gpu, all_gpus, gpu_aliases

__all__ = ["Identity", "form_of", "identify"]

# How far a stated memory may be from the label: drivers, GB and GiB differ (22 for 24, 262 for 288).
# Source: docs/providers.md, "Names".
MEMORY_TOLERANCE = 0.095

# Words that say nothing about which device it is; "Ada" does: "RTX 6000 Ada" is not any "RTX 6000".
_HARMLESS = frozenset({"nvidia", "amd", "intel", "geforce", "tesla", "instinct", "radeon"})
_HARMLESS |= {"gpu", "gpus", "graphics", "tensor", "core", "accelerator", "edition", "generation", "nvlink"}
_HARMLESS |= {"hbm2", "hbm2e", "hbm3", "hbm3e", "gddr6", "gddr6x", "gddr7", "ecc", "ac", "infiniband"}
_HARMLESS |= {
    "blackwell",
    "hopper",
    "ampere",
    "lovelace",
    "superchip",
    "grace",
    "virtualized",
    "bare",
    "metal",
}
# HGX and DGX boards carry SXM modules; "Mega" and "Plus" are Google's a3 machines with eight of them.
_FORM_WORDS = {"hgx": "SXM", "dgx": "SXM", "mega": "SXM", "plus": "SXM", "pcie": "PCIe", "oam": "OAM"}
_FORM_WORDS |= {"nvl": "NVL", "nvl2": "NVL", "nvl4": "NVL", "nvl72": "NVL72"}
_FORM_WORDS |= {f"sxm{generation}": "SXM" for generation in ("", 2, 3, 4, 5, 6)}
# Labels without a generation. Only memory tells them apart. Source: docs/providers.md, "Names".
_BARE_LABELS = {
    "rtx 6000": ("Quadro RTX 6000", "RTX 6000 Ada", "RTX PRO 6000 Blackwell"),
    "rtx 5000": ("Quadro RTX 5000", "RTX 5000 Ada", "RTX PRO 5000 Blackwell"),
    "rtx 4500": ("RTX 4500 Ada", "RTX PRO 4500 Blackwell"),
    "rtx 4000": ("Quadro RTX 4000", "RTX 4000 Ada", "RTX PRO 4000 Blackwell"),
}
# Versions that are sold and that the catalogue does not hold. Source: docs/providers.md, "Names".
_OTHER_MEMORY_GB = {"V100 PCIe": [32.0]}
# Three boards share the name RTX PRO 6000. Source: docs/providers.md, "Names".
_EDITIONS = {"server": "Server", "s": "Server", "se": "Server"}
_EDITIONS |= {"workstation": "Workstation", "ws": "Workstation", "we": "Workstation", "maxq": "Max-Q"}
# Names that drivers print are the device's own. Source: planner/data/gpus.toml, where seen.
_DRIVERS = frozenset({"nvidia-smi", "rocm-smi / amd-smi"})
_RENTED = frozenset(
    {DeviceClass.DATACENTER, DeviceClass.WORKSTATION, DeviceClass.CONSUMER, DeviceClass.CLOUD_ONLY}
)
_SLICE = re.compile(r"\bmig\b|\b\d+g \d+gb\b|\b\d+g\.\d+gb\b|\bslice\b|\bvgpu\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The device that a name means, or why it means none."""

    gpu: Gpu | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Reading:
    """A name taken apart."""

    stem: str | None  # the family, None where no known one occurs
    memory_gb: float | None
    form: str | None
    edition: str | None
    unknown: tuple[str, ...]


def identify(
    name: str,
    *,
    memory_gb: float | None = None,
    form: str | None = None,
    canonical: str | None = None,
    fraction: float | None = None,
) -> Identity:
    """
    Return the one device that fits everything the source says.

    Args:
        name: As the source writes it.
        memory_gb: Of one GPU, or of the slice, where a field of the source says so. [GB]
        form: SXM, PCIe, NVL, OAM or NVL72, where a field of the source says so.
        canonical: Where the provider's own table pins the device; only checked then.
        fraction: Of a slice.
    """
    if canonical is not None:
        gpu = all_gpus().get(canonical)
        if gpu is None:
            return Identity(gpu=None, reason=f"unknown GPU {canonical!r} in the provider's own table")
        return _agreed(name, [gpu], memory_gb, None, fraction)
    words = _words(name)
    if _SLICE.search(words) and fraction is None:
        return Identity(gpu=None, reason=f"unknown GPU: {name!r} is a slice whose share is not stated")
    driver = _driver_names().get(_key(name))
    reading = _read(words)
    if driver is not None and driver.memory_label is not None:
        return _agreed(name, [all_gpus()[driver.gpu]], memory_gb, form, fraction)
    if reading.stem is None or reading.unknown:
        return _by_alias(name, reading, memory_gb, form, fraction)
    candidates: Sequence[Gpu] = _families()[reading.stem]
    if reading.edition is not None:
        candidates = [gpu for gpu in candidates if gpu.name.endswith(reading.edition)]
    if "hbm3" in words.split() and reading.stem == "h100":  # the PCIe card has HBM2e
        candidates = [gpu for gpu in candidates if form_of(gpu) != "PCIe"]
    stated = reading.form or (form_of(all_gpus()[driver.gpu]) if driver is not None else None)
    if form and stated and not (_may_be(form, stated) or _may_be(stated, form)):
        return Identity(gpu=None, reason=f"contradictory: {name!r} with form {form}")
    if memory_gb is not None and reading.memory_gb is not None:
        known = _agreed(name, candidates, reading.memory_gb, stated or form, None)
        if known.gpu is not None:
            return _agreed(name, [known.gpu], memory_gb, None, fraction)
    memory = reading.memory_gb if memory_gb is None else memory_gb
    return _agreed(name, candidates, memory, stated or form, fraction)


def form_of(gpu: Gpu) -> str | None:
    """Return the form of a device as offers name it; None where it has several or none of these."""
    forms = _forms(gpu)
    return forms[0] if len(forms) == 1 else None


def _may_be(said: str, own: str) -> bool:
    """Whether a source may call a form so: an NVL card is a PCIe card, a rack has SXM modules."""
    return said == own or (said, own) in {("PCIe", "NVL"), ("SXM", "NVL72"), ("NVL", "NVL72")}


def _agreed(
    name: str, candidates: Sequence[Gpu], memory_gb: float | None, form: str | None, fraction: float | None
) -> Identity:
    """Return the only candidate that has this memory and form."""
    fitting = list(candidates)
    if memory_gb is not None:
        fitting = [gpu for gpu in fitting if _has_memory(gpu, memory_gb, fraction, is_any=True)]
        if not fitting:
            names = ", ".join(gpu.name for gpu in candidates)
            return Identity(
                gpu=None, reason=f"contradictory: {name!r} with {memory_gb:g} GB, which is no {names}"
            )
    if form is not None:
        exact = [gpu for gpu in fitting if form in _forms(gpu)]
        near = [gpu for gpu in fitting if any(_may_be(form, own) for own in _forms(gpu)) or not _forms(gpu)]
        fitting = exact or near
        if not fitting:
            return Identity(gpu=None, reason=f"contradictory: {name!r} with form {form}")
    if len(fitting) == 1:
        (gpu,) = fitting
        if memory_gb is not None and not _has_memory(gpu, memory_gb, fraction):
            text = f"the catalogue holds no {gpu.name} with {memory_gb:g} GB"
            return Identity(gpu=None, reason=f"unknown GPU {name!r}: {text}")
        return Identity(gpu=gpu)
    choices = ", ".join(gpu.name for gpu in fitting)
    return Identity(gpu=None, reason=f"ambiguous: {name!r} may be {choices}")


def _has_memory(gpu: Gpu, memory_gb: float, fraction: float | None, *, is_any: bool = False) -> bool:
    """Whether a card, or that share of it, has about this memory; `is_any`: in any version of it."""
    sizes = [gpu.memory_gb_vendor]
    if is_any:
        sizes += _OTHER_MEMORY_GB.get(gpu.name, [])
    if fraction is not None:
        sizes.append(gpu.memory_gb_vendor * fraction)
    return any(abs(memory_gb / size - 1) <= MEMORY_TOLERANCE for size in sizes)


def _forms(gpu: Gpu) -> tuple[str, ...]:
    text = gpu.form_factor or ""
    if "NVL" in gpu.name:
        return ("NVL",)
    if "NVL72" in text:
        return ("NVL72",)
    return tuple(form for form in ("SXM", "OAM", "PCIe") if form in text)


# -- taking a name apart ----------------------------------------------------------------------------


def _words(name: str) -> str:
    """Return a name in lower case, words apart by single spaces."""
    text = re.sub(r"[\s_\-/,()\[\]:|™®]+", " ", name.casefold()).strip()
    text = re.sub(r"\bmax q\b", "maxq", text)
    text = re.sub(r"(?<=\dg)x(?=\d)", " x", text)  # "80gx8"
    return re.sub(r"(?<=[0-9])(?=(?:sxm\d?|pcie|nvl\d*|oam)\b)", " ", text)  # "h100sxm5"


def _read(words: str) -> _Reading:
    found = ((pattern.search(words), stem) for pattern, stem in _stems())
    match, stem = next(((match, stem) for match, stem in found if match), (None, ""))
    if match is None:
        return _Reading(None, None, None, None, ())
    rest = f"{words[: match.start()]} {words[match.end() :]}"
    memories = re.findall(r"\b(\d+(?:\.\d+)?) ?(?:gb|gib|g)\b", rest)
    rest = re.sub(r"\b\d+(?:\.\d+)? ?(?:gb|gib|g)\b", " ", rest)
    forms: list[str] = []
    editions: list[str] = []
    unknown: list[str] = []
    for word in rest.split():
        if word in _FORM_WORDS:
            forms.append(_FORM_WORDS[word])
        elif stem == "rtx pro 6000" and word in _EDITIONS:
            editions.append(_EDITIONS[word])
        elif word not in _HARMLESS and not re.fullmatch(r"\d+x|x\d+", word):  # "8x" counts
            unknown.append(word)
    if len(set(memories)) > 1 or len(set(forms) - {"SXM"}) > 1:
        unknown.append("two memories or forms")
    specific = [form for form in forms if form != "SXM"] or forms
    edition = "Max-Q" if "Max-Q" in editions else next(iter(editions), None)
    memory = float(memories[0]) if memories else None
    return _Reading(stem, memory, next(iter(specific), None), edition, tuple(unknown))


def _by_alias(
    name: str, reading: _Reading, memory_gb: float | None, form: str | None, fraction: float | None
) -> Identity:
    """Return what the catalogue's list of names says, where it leaves no choice."""
    known = _plain_aliases().get(_key(name))
    if known is None:
        words = f" ({', '.join(reading.unknown)} is not understood)" if reading.unknown else ""
        return Identity(gpu=None, reason=f"unknown GPU {name!r}{words}")
    gpu = all_gpus()[known]
    family = _families().get(_stem(gpu), (gpu,))
    is_only = len(family) == 1 or _key(name) == _key(gpu.name)
    return _agreed(name, [gpu] if is_only else family, memory_gb, form, fraction)


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name.casefold())


# -- the catalogue, by families ---------------------------------------------------------------------


def _stem(gpu: Gpu) -> str:
    """Return the name without memory, form and edition: "a100" for "A100 80GB SXM"."""
    words = _words(re.sub(r"\(.*\)", "", gpu.name))
    words = re.sub(r"\b\d+gb\b", " ", words)
    words = re.sub(r"\b(?:sxm\d?|pcie|nvl)\b", " ", words)
    if words.startswith("rtx pro"):
        words = re.sub(r"\b(?:blackwell|server|workstation|maxq)\b", " ", words)
    if re.search(r"\d", words):
        words = re.sub(r"^(?:instinct|radeon)\b", " ", words)
    return " ".join(words.split())


@cache
def _families() -> Mapping[str, tuple[Gpu, ...]]:
    families: dict[str, list[Gpu]] = {}
    for gpu in all_gpus().values():
        if gpu.exists and gpu.device_class in _RENTED:
            families.setdefault(_stem(gpu), []).append(gpu)
    for label, starts in _BARE_LABELS.items():
        families[label] = [gpu for gpu in all_gpus().values() if gpu.name.startswith(starts)]
    return {stem: tuple(gpus) for stem, gpus in families.items()}


@cache
def _stems() -> Sequence[tuple[re.Pattern[str], str]]:
    """Return a pattern for each family, the longest first, so that "B200" is not found in "GB200"."""
    patterns = []
    for stem in _families():
        spelled = [stem]
        if re.fullmatch(r"rtx a\d+", stem):
            spelled.append(stem.removeprefix("rtx "))  # "A6000"
        if stem == "rtx pro 6000":
            spelled.append("rtx pro server 6000")  # AWS g7e
        for text in spelled:
            inner = " ?".join(re.escape(word) for word in text.split())
            patterns.append((len(text), re.compile(rf"(?<![a-z0-9.]){inner}(?![a-z0-9.])"), stem))
    patterns.sort(key=lambda entry: -entry[0])
    return [(pattern, stem) for _, pattern, stem in patterns]


@dataclass(frozen=True, slots=True)
class _DriverName:
    gpu: str
    memory_label: str | None  # in the name itself: then it is one device


@cache
def _driver_names() -> Mapping[str, _DriverName]:
    found: dict[str, _DriverName] = {}
    for alias in gpu_aliases().values():
        if alias.seen_in in _DRIVERS and not alias.ambiguous_with:
            label = re.search(r"\d+ ?GB?\b", alias.name)
            found[_key(alias.name)] = _DriverName(alias.gpu, label[0] if label else None)
    return found


@cache
def _plain_aliases() -> Mapping[str, str]:
    """Return names that mean one device however they are spelled."""
    plain: dict[str, set[str]] = {}
    for alias in gpu_aliases().values():
        plain.setdefault(_key(alias.name), set()).update({alias.gpu, *alias.ambiguous_with})
    for gpu in all_gpus():
        plain[_key(gpu)] = {gpu}
    return {key: next(iter(devices)) for key, devices in plain.items() if len(devices) == 1}
