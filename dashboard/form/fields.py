"""All inputs of the page by name and by group, and how sentences name them."""

__all__ = ["FIELDS", "GROUPS", "Field", "Kind", "with_controls"]

import re
from collections.abc import Mapping, Sequence

from dashboard.form.cost_fields import OWNING, PRICES, USE
from dashboard.form.field import Field, Kind
from dashboard.form.question_fields import MACHINE, REQUESTS, SERVING

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
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")


def with_controls(text: str) -> str:
    """Return a sentence of the command line with the page's controls in place of options; commands stay."""
    parts = _CODE.split(text)
    return "".join(part if number % 2 else _OPTION.sub(_control, part) for number, part in enumerate(parts))


def _control(option: "re.Match[str]") -> str:
    field = FIELDS.get(option[1].replace("-", "_"))
    return option[0] if field is None else f'"{field.label}"'
