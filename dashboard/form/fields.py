"""All inputs of the page by name and by group, and how sentences name them."""

__all__ = ["FIELDS", "GROUPS", "Field", "Kind", "with_controls", "with_labels"]

import re
from collections.abc import Mapping, Sequence

from dashboard.form.cost_fields import OWNING, PRICES, USE
from dashboard.form.field import Field, Kind
from dashboard.form.question_fields import MACHINE, REQUESTS, SERVING
from planner.assumptions import all_assumptions

GROUPS: Mapping[str, Sequence[Field]] = {
    "Model and requests": REQUESTS,
    "Machine": MACHINE,
    "Serving in detail": SERVING,
    "Use and demand": USE,
    "Owning": OWNING,
    "Prices": PRICES,
}
FIELDS: Mapping[str, Field] = {field.name: field for group in GROUPS.values() for field in group}


_CODE = re.compile(r"(`[^`]*`)")
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)(?: ([\w.=+-]*\w))?")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
# What is quoted is what somebody gave, and stays; a name of several words is that of an option.
_QUOTED_OR_NAME = re.compile(r"""('[^']*'|"[^"]*")|(?<![\w.=/-])([a-z]+(?:_[a-z]+)+)(?![\w=])""")
_MATCHES = "; close matches: "


def with_controls(text: str) -> str:
    """Return a sentence of the command line with the page's controls in place of options; commands stay."""
    parts = _CODE.split(text)
    return "".join(part if number % 2 else _OPTION.sub(_control, part) for number, part in enumerate(parts))


def _control(option: "re.Match[str]") -> str:
    field, value = FIELDS.get(option[1].replace("-", "_")), option[2]
    if field is None:
        return option[0]
    if value is None:
        return f'"{field.label}"'
    return f'{value} under "{field.label}"' if _is_value(field, value) else f'"{field.label}" {value}'


def _is_value(field: Field, word: str) -> bool:
    """Whether the word behind an option is its value, and not the sentence going on."""
    if field.name == "set":
        return word.partition("=")[0] in all_assumptions()
    return _NUMBER.fullmatch(word) is not None or word in field.options()


def with_labels(text: str, *, is_of_address: bool = False) -> str:
    """
    Return what is wrong with the labels of the page in place of the names of options.

    Args:
        text: `NAME: what is wrong`, as errors say it.
        is_of_address: Whether the name stands in the address: it follows the label in brackets then.
    """
    head, colon, rest = text.partition(": ")
    setting, _, name = head.rpartition(" ")
    if head in FIELDS:
        head = f"{FIELDS[head].label} ({head})" if is_of_address else FIELDS[head].label
    elif setting == "set" and name in all_assumptions():
        head = f"{FIELDS['set'].label}, {name}"
    else:
        head, colon, rest = "", "", text
    said, matches, others = rest.partition(_MATCHES)
    return head + colon + with_controls(_QUOTED_OR_NAME.sub(_label, said)) + matches + others


def _label(found: "re.Match[str]") -> str:
    return found[0] if found[2] not in FIELDS else f'"{FIELDS[found[2]].label}"'
