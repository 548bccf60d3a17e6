"""Text for people: tables, rounded numbers, marks on estimates. Nothing here computes."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

ESTIMATE_MARK = "*"
ESTIMATE_NOTE = "* estimated, not measured"
# Where the price lists are kept that the catalogue names by their release.
PRICE_LISTS = {
    r"genai-prices \d[\d.]*": "https://github.com/pydantic/genai-prices",
    r"litellm model price file \(release \d[\d.]*\)": "https://github.com/BerriAI/litellm",
}


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, left: Iterable[int] = (0,)) -> str:
    """
    Return rows as a table; numbers to the right, texts to the left, unknown as an empty cell.

    Args:
        headers: Titles, with their units.
        rows: Cells, formatted already; None is unknown.
        left: Columns that hold text.
    """
    from tabulate import tabulate

    texts = set(left)
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    lines = tabulate(
        cells,
        headers=list(headers),
        tablefmt="simple",
        disable_numparse=True,
        colalign=["left" if index in texts else "right" for index in range(len(headers))] if cells else None,
    )
    return "\n".join(line.rstrip() for line in lines.splitlines())


def pairs(rows: Iterable[tuple[str, object]]) -> str:
    """Return names and values, one pair a line."""
    cells = [(name, "" if value is None else str(value)) for name, value in rows]
    width = max((len(name) for name, _ in cells), default=0)
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in cells)


def number(value: float | None, places: int = 0) -> str | None:
    """Return a number with thousands separators, or None where unknown."""
    return None if value is None else f"{value:,.{places}f}"


def significant(value: float | None, digits: int = 3) -> str | None:
    """Return a number rounded to a few digits, never in exponent form."""
    if value is None:
        return None
    if value == 0:
        return "0"
    places = max(0, digits - 1 - Decimal(repr(float(value))).adjusted())
    return f"{value:,.{min(places, 12)}f}"


def money(value: float | Decimal | str | None, places: int = 2) -> str | None:
    """Return an amount; tiny ones keep two digits that say something."""
    if value is None:
        return None
    amount = Decimal(str(value))
    if amount != 0 and abs(amount) < Decimal(1).scaleb(-places):
        return significant(float(amount), 2)
    return f"{amount:,.{places}f}"


def tokens_per_s(value: float | None) -> str | None:
    """Return a speed: one decimal below 100."""
    return None if value is None else number(value, 1 if abs(value) < 100 else 0)


def gib(value: float | None) -> str | None:
    """Return memory with two decimals."""
    return number(value, 2)


def params(value: float | None) -> str | None:
    """Return a number of parameters in billions or millions."""
    if value is None:
        return None
    return f"{value / 1e9:,.1f} B" if value >= 1e9 else f"{value / 1e6:,.0f} M"


def age(hours: float | None) -> str | None:
    """Return an age in words: minutes, hours, then days."""
    if hours is None:
        return None
    if hours < 1:
        return f"{max(0, round(hours * 60))} min"
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:,.0f} d"


def share(fraction: float | None) -> str | None:
    """Return a fraction as a percentage."""
    return None if fraction is None else f"{fraction * 100:.0f} %"


def yes_no(value: bool | None) -> str | None:
    """Return yes, no, or nothing where unknown."""
    return None if value is None else ("yes" if value else "no")


def starred(text: str | None, is_estimate: bool = True) -> str | None:
    """Return the text with the mark of an estimate."""
    return f"{text}{ESTIMATE_MARK}" if text is not None and is_estimate else text


def moment(time: datetime | None) -> str | None:
    """Return a time to the minute, in UTC."""
    return None if time is None else time.strftime("%Y-%m-%d %H:%M")


def shortened(text: str | None, width: int) -> str | None:
    """Return a text cut to a width."""
    return text if text is None or len(text) <= width else text[: width - 1] + "…"


def source(url: str | None, width: int = 34) -> str | None:
    """Return where a figure comes from, as short as it can be told: a host, or a repository."""
    if not url:
        return None
    scheme, _, rest = url.partition(":")
    if scheme == "github":  # a file of a repository, as the bundled prices name it
        return shortened(f"github:{rest.split('@')[0]}", width)
    host = url.split("://", 1)[-1].split("/", 1)[0]
    return shortened(host.removeprefix("www."), width)


def address_of(source: str | None) -> str | None:
    """Return a source as an address that a browser opens, None where it has none."""
    if source is None:
        return None
    for pattern, address in PRICE_LISTS.items():
        if re.fullmatch(pattern, source):
            return address
    if source.startswith("github:"):  # as the bundled collection names a file at a commit
        repository, _, rest = source.removeprefix("github:").partition("@")
        commit, _, path = rest.partition(":")
        return f"https://github.com/{repository}" + (f"/blob/{commit}/{path}" if path else "")
    return source if source.startswith("https://") else None


def paragraphs(*parts: str) -> str:
    """Return the parts that say something, with an empty line between."""
    return "\n\n".join(part.rstrip() for part in parts if part and part.strip())


def bullets(lines: Iterable[str]) -> str:
    """Return lines as a list."""
    return "\n".join(f"- {line}" for line in lines)


@dataclass(frozen=True, slots=True)
class Code:
    """A block of code of a document."""

    text: str
    language: str


Block = str | Code | list[list[str]]


def split_markdown(text: str) -> list[Block]:
    """Return a Markdown text as its paragraphs, blocks of code, and tables: rows of cells, header first."""
    blocks: list[Block] = []
    for number, part in enumerate(re.split(r"^```", text, flags=re.MULTILINE)):
        if number % 2:
            language, _, code = part.partition("\n")
            blocks.append(Code(code.rstrip("\n"), language.strip() or "text"))
        else:
            blocks += _split_tables(part)
    return blocks


def _split_tables(text: str) -> list[Block]:
    blocks: list[Block] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        before = blocks[-1] if blocks else None
        if not line.startswith("|"):
            if isinstance(before, str):
                blocks[-1] = f"{before}\n{line}"
            else:
                blocks.append(line)
        elif not isinstance(before, list):
            blocks.append([cells])
        elif not all(set(cell) <= set(":-") for cell in cells):
            before.append(cells)
    return [block for block in blocks if not isinstance(block, str) or block.strip()]


def plural(count: int, noun: str) -> str:
    """Return `1 price`, `2 prices`, `2 entries`."""
    if count == 1:
        return f"1 {noun}"
    is_changed = noun.endswith("y") and noun[-2:-1] not in "aeiou"
    return f"{count:,} {noun[:-1]}ies" if is_changed else f"{count:,} {noun}s"
