"""How a plan reads: verdict, ranked options with price age and source, what was left out and why."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard import tables
from planner.answers.money import Money
from planner.rates import NEWER_WAITS

KINDS = {
    "best_single_gpu": "one GPU",
    "best_multi_gpu": "several GPUs",
    "best_value": "best value",
    "unified_memory": "unified memory",
    "cheapest_cloud": "cheapest cloud",
}
REASONS_SHOWN = 12
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
    "note",
    "price",
    "source",
)
TEXT_COLUMNS = (1, 2, 3, 4, 11, 12, 13)
# Why the verdict passes over a row, in a word: by how the reason begins.
SHORT = {"price": "old price", "spot": "spot", "not verified": "unverified"}

Option = Mapping[str, Any]


def options_table(
    options: Sequence[Option],
    limit: int,
    money: Money,
    *,
    floor_tokens_per_s: float,
    term_months: float,
) -> str:
    """
    Return the ranked options, the first ones where a limit is given.

    Args:
        options: As in `breakeven.plan/1`.
        limit: How many are shown; 0: all.
        money: In which currency.
        floor_tokens_per_s: Below which one is too slow. [tokens/s]
        term_months: Within which a purchase has to pay back. [months]
    """
    if not options:
        return ""
    shown = options[: limit or None]
    rows = [_row(number, option, money, term_months) for number, option in enumerate(shown, start=1)]
    headers = [header.format(c=money.currency) for header in HEADERS]
    hidden = len(options) - len(shown)
    more = f"{hidden} more: --limit 0 shows all, `breakeven export` writes them" if hidden else ""
    slow = (
        f"too slow (N): N tok/s for one user, prompts of others included, are below {floor_tokens_per_s:g}"
        if any(option["is_too_slow"] for option in shown)
        else ""
    )
    return tables.paragraphs(tables.table(headers, rows, left=TEXT_COLUMNS), more, slow)


def left_out(excluded: Sequence[Mapping[str, Any]], limit: int) -> str:
    """Say what was left out, and why; what has the same reason stands together."""
    if not excluded:
        return ""
    by_reason: dict[str, list[str]] = {}
    for entry in excluded:
        by_reason.setdefault(str(entry["why"]), []).append(str(entry["what"]))
    lines = [f"{_some(names)}: {why}" for why, names in by_reason.items()]
    shown = lines[:REASONS_SHOWN] if limit else lines
    if len(lines) > len(shown):
        shown = [*shown, f"and {len(lines) - len(shown)} further reasons: --limit 0 shows all"]
    return f"Left out ({len(excluded)}):\n{tables.bullets(shown)}"


def recommended(choices: Mapping[str, Any], money: Money, *, is_of_one_kind: bool = False) -> str:
    """
    Return the hardware recommended by kind, with its price; kinds that none holds are left out.

    Args:
        choices: As in `breakeven.plan/1`.
        money: In which currency.
        is_of_one_kind: Whether the plan looked at one device or number of them only: this does not.
    """
    beyond = " (to buy: whatever --gpu and --gpus ask for)" if is_of_one_kind else ""
    rows = [(KINDS[kind], _choice(choice, money)) for kind, choice in choices.items() if choice is not None]
    return f"Hardware that holds it{beyond}:\n{tables.pairs(rows)}" if rows else ""


def _choice(choice: Mapping[str, Any], money: Money) -> str:
    if choice["usd_per_hour"] is not None:
        price = f"{money.exact(float(choice['usd_per_hour']))}/h from {choice['provider']}"
    elif choice["usd"] is not None:
        price = f"{money.text(choice['usd'])} to buy, host included"
    else:
        price = "no purchase price known"
    speed = tables.starred(
        tables.tokens_per_s(choice["decode_tokens_per_s"]), choice["speed_source"] == "estimated"
    )
    day = f", {str(choice['as_of'])[:10]}" if choice["as_of"] else ""
    return f"{choice['name']}: {price}{day}" + (f", {speed} tok/s" if speed else "")


def _row(number: int, option: Option, money: Money, term_months: float) -> tuple[object, ...]:
    def paid(usd: float | str | None) -> str | None:
        return None if usd is None else tables.money(money.amount(float(usd)))

    estimate, estimates = (option[name] == "estimated" for name in ("speed_source", "aggregate_source"))
    price = option["price"] or {}
    return (
        number,
        _name(option),
        option["provider"],
        tables.shortened(option["region"], 18),
        option["tier"],
        paid(option["usd_per_hour"]),
        paid(option["usd_per_month"]),
        tables.starred(paid(option["usd_per_million_tokens"]), estimates),
        tables.starred(tables.tokens_per_s(option["decode_tokens_per_s"]), estimate),
        tables.starred(tables.tokens_per_s(option["aggregate_tokens_per_s"]), estimates),
        _payback(option, term_months),
        _note(option),
        _price(price),
        tables.source(price.get("source_url") or option["purchase_source"]),
    )


def _name(option: Option) -> str:
    replicas = option.get("replicas") or 1
    name = option["name"] if replicas == 1 else f"{replicas} x ({option['name']})"
    return f"buy {name}" if option["kind"] == "buy" else name


def _payback(option: Option, term_months: float) -> str | None:
    months = option["break_even_months"]
    if months is not None:
        is_late = months > term_months
        return f"not within its term ({months:,.1f} months)" if is_late else f"{months:,.1f} months"
    if option["kind"] != "buy":
        return None
    if option["break_even_against"]:
        return "never"
    return "too slow to compare" if option["is_too_slow"] else "no rental to compare"


def _note(option: Option) -> str | None:
    """Say in a word why the verdict passes over a row, how slow it is, and that a newer price waits."""
    reason = str(option["passed_over"] or "")
    words = [short for begin, short in SHORT.items() if reason.startswith(begin)]
    if option["is_too_slow"]:
        words.insert(0, f"too slow ({tables.tokens_per_s(1000.0 / option['tpot_ms'])})")
    if any(NEWER_WAITS in note for note in option["notes"]):
        words.append("newer price waits")
    return ", ".join(words) or None


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
