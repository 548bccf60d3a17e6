"""How a plan reads: verdict, ranked options with price age and source, what was left out and why."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard import tables

HEADERS = (
    "#",
    "option",
    "from",
    "region",
    "tier",
    "{c}/h",
    "{c}/month",
    "{c}/M tokens",
    "tok/s, one",
    "tok/s, all",
    "pays back",
    "price",
    "source",
)
TEXT_COLUMNS = (1, 2, 3, 4, 11, 12)

Option = Mapping[str, Any]


def options_table(options: Sequence[Option], limit: int, currency: str = "USD") -> str:
    """Return the ranked options, the first ones where a limit is given."""
    shown = options[: limit or None]
    rows = [_row(number, option) for number, option in enumerate(shown, start=1)]
    headers = [header.format(c=currency) for header in HEADERS]
    hidden = len(options) - len(shown)
    more = f"{hidden} more: --limit 0 shows all, `breakeven export` writes them" if hidden else ""
    return tables.paragraphs(tables.table(headers, rows, left=TEXT_COLUMNS), more)


def left_out(excluded: Sequence[Mapping[str, Any]], limit: int) -> str:
    """Say what was left out, and why; what has the same reason stands together."""
    if not excluded:
        return ""
    by_reason: dict[str, list[str]] = {}
    for entry in excluded:
        by_reason.setdefault(str(entry["why"]), []).append(str(entry["what"]))
    lines = [f"{_some(names)}: {why}" for why, names in by_reason.items()]
    shown = lines[: limit or None]
    if len(lines) > len(shown):
        shown.append(f"and {len(lines) - len(shown)} further reasons: --limit 0 shows all")
    return f"Left out ({len(excluded)}):\n{tables.bullets(shown)}"


def _row(number: int, option: Option) -> tuple[object, ...]:
    estimate = option["speed_source"] == "estimated"
    price = option["price"] or {}
    return (
        number,
        _name(option),
        option["provider"],
        tables.shortened(option["region"], 18),
        option["tier"],
        tables.money(option["usd_per_hour"]),
        tables.money(option["usd_per_month"]),
        tables.starred(tables.money(option["usd_per_million_tokens"]), estimate),
        tables.starred(tables.tokens_per_s(option["decode_tokens_per_s"]), estimate),
        tables.starred(tables.tokens_per_s(option["aggregate_tokens_per_s"]), estimate),
        _payback(option),
        _price(price),
        tables.source(price.get("source_url") or option["purchase_source"]),
    )


def _name(option: Option) -> str:
    replicas = option.get("replicas") or 1
    name = option["name"] if replicas == 1 else f"{replicas} x ({option['name']})"
    return f"buy {name}" if option["kind"] == "buy" else name


def _payback(option: Option) -> str | None:
    months = option["break_even_months"]
    if months is not None:
        return f"{months:,.1f} months"
    return "never" if option["kind"] == "buy" else None


def _price(price: Mapping[str, Any]) -> str | None:
    if not price:
        return None
    if price["status"] == "snapshot":
        return f"snapshot {str(price['seen_at'])[:10]}"
    old = tables.age(price["age_hours"])
    return f"{price['status']}, {old} old" if old else str(price["status"])


def _some(names: Sequence[str]) -> str:
    """Return a few of the names, and how many more there are."""
    unique = list(dict.fromkeys(names))
    if len(unique) <= 4:
        return ", ".join(unique)
    return f"{', '.join(unique[:3])} and {len(unique) - 3} more"
