"""A chart with the sentence that stands for it, and what all of them share: colours, dashes, sizes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from altair.utils import schemapi

# Checking each part of a chart while it is built takes most of the time of a page; the tests check the whole.
schemapi.disable_debug_mode()

# Okabe and Ito (2008), "Color Universal Design": told apart by all kinds of colour vision. Yellow and black
# are left out: they vanish on one of the two themes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
BLUE_ON_DARK = "#3D9BDC"  # the first of them is too dark there for words: 3.5:1; this one is 5.7:1
TEXT_COLOURS = ("#31333f", "#e6e6e6")  # on light and on dark, both above 10:1
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (10, 4), (1, 3))
GREY = "#7f7f7f"
TEXT_SIZE = 13
AXIS_HEIGHT = 70  # title, labels and the word above the plot


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A chart and the sentence that stands for it."""

    chart: Any
    alt: str
    title: str = ""
    names: str = ""  # what the short labels stand for
    key: str | None = None
    rows: Sequence[Mapping[str, object]] = ()  # the figures behind it
    said: str = ""  # what it shows that stands nowhere else, in words
    more_rows: Sequence[Mapping[str, object]] = ()  # the figures behind that

    def to_spec(self, *, is_dark: bool) -> dict[str, Any]:
        """
        Return the chart as the browser draws it, words in the colour of the page's text.

        The theme's own colour is too pale to read. The specification is not checked against its schema again:
        that takes longer than all the rest, and the tests do it.

        Args:
            is_dark: Whether the page is dark.
        """
        spec: dict[str, Any] = self.chart.to_dict(validate=False)
        if is_dark:
            spec = json.loads(json.dumps(spec).replace(COLOURS[0], BLUE_ON_DARK))
        text = TEXT_COLOURS[is_dark]
        axis = {"labelColor": text, "titleColor": text, "labelFontSize": 12, "titleFontSize": 13}
        legend = {"labelColor": text, "labelFontSize": 12}
        return spec | {"config": {"axis": axis, "legend": legend, "text": {"color": text}}}


def cycle(choices: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """Return a choice for each name, from the first on again where names are more."""
    return [choices[index % len(choices)] for index in range(len(names))]
