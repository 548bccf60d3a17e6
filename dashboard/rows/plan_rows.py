"""What the pages show of a plan: its notes, its options as rows, the machines by price and speed."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dashboard import data, tables
from dashboard.commands.plan_text import SHORT
from dashboard.form.fields import with_controls
from dashboard.rows.points import Dot
from planner.answers.explain import Explanation
from planner.answers.mixedsummary import mixed_text
from planner.answers.money import Money
from planner.answers.recommend import Choice
from planner.compare import Plan
from planner.rates import PriceStatus
from planner.scenario import Scenario
from planner.supply.options import Kind, Option

RECOMMENDED = {
    "best_single_gpu": "Best single GPU",
    "best_multi_gpu": "Best with several GPUs",
    "best_value": "Best value",
    "unified_memory": "Unified memory",
    "cheapest_cloud": "Cloud from",
}
# Words by which the notes of a plan are known that belong beside the verdict: `planner.answers.remarks`.
FLIPS = "rent if you find"  # from which hours, and below which rent, the answer would be another
CHANGES = "What would change "
# How far the prices can be trusted, and what is cheaper and does not count.
TRUST = ("Rental prices:", "No rental price", "No verified price", "Cheaper, but not counted")


def threshold(found: Plan) -> str | None:
    """Return the note that turns the verdict round: from which hours, and below which rent, it would flip."""
    return next((note for note in found.notes if FLIPS in note), None)


def prices_of_verdict(found: Plan) -> str | None:
    """Say how old the prices of the cheapest rental, purchase and API are, and which is missing."""
    ways = (("rent", found.rental), ("purchase", found.purchase), ("API", found.api))
    said = [
        f"{way} {option.price.status}, {seen}"
        for way, option in ways
        if option is not None and (seen := _seen(option)) is not None
    ]
    sentences = [f"Prices: {'; '.join(said)}."] if said else []
    sentences += [note for note in trust(found) if note.startswith("No rental price")]
    return " ".join(sentences) or None


def trust(found: Plan) -> list[str]:
    """Return the notes on how far the prices can be trusted."""
    return [note for note in found.notes if note.startswith(TRUST)]


def changes(found: Plan) -> list[str]:
    """Return the note on what would change the answer, and where that is a mix what it speaks of."""
    said = [] if found.singles_text is None else [found.singles_text]
    return [*said, *(note for note in found.notes if note.startswith(CHANGES))]


def mixed(found: Plan) -> list[str]:
    """Return the note on owning the base load and renting the peaks."""
    return [] if found.mixed is None else [mixed_text(found.mixed, found.money)]


def other_notes(found: Plan) -> list[str]:
    """Return the notes that stand nowhere else on the page."""
    shown = {
        threshold(found),
        found.singles_text,
        *trust(found),
        *changes(found),
        *mixed(found),
        *found.scenario.warnings,
        found.money.rate_text,
    }
    return [note for note in found.notes if note not in shown]


def recommendations(scenario: Scenario) -> list[dict[str, Any]]:
    """Return the hardware that holds a question, by kind, whatever machine is looked at."""
    found = data.plan_of_all_machines(scenario)
    rows = []
    for name, title in RECOMMENDED.items():
        choice: Choice | None = getattr(found.recommended, name)
        if choice is not None:
            rows.append(
                {
                    "kind": title,
                    "machine": choice.name,
                    "purchase": data.in_currency(found.money, choice.usd),
                    "per_hour": data.in_currency(found.money, choice.usd_per_hour),
                    "vram": choice.vram_total_gb,
                    "decode": choice.decode_tokens_per_s,
                    "as_of": (choice.as_of or "")[:10] or None,
                    "source": choice.source,
                }
            )
    return rows


def price_and_speed(found: Plan) -> list[Dot]:
    """
    Return every machine of a plan by the speed for one user and the price of a million tokens.

    On the front are those that no other beats in both.
    """
    priced = [
        (option, option.point.speed.decode_tokens_per_s, option.token_prices.usd_per_million_tokens)
        for option in found.options
        if option.point is not None and option.token_prices is not None
    ]
    cheapest_so_far, front = float("inf"), set()
    for option, _, usd in sorted(priced, key=lambda entry: (-entry[1], entry[2])):
        if usd < cheapest_so_far:
            cheapest_so_far = usd
            front.add(id(option))
    return [
        Dot(
            x=speed,
            y=found.money.amount(usd),
            label=option_name(option),
            kind=_kind_of(option),
            is_front=id(option) in front,
        )
        for option, speed, usd in priced
    ]


def _kind_of(option: Option) -> str:
    """Return what sets a price apart: bought, or rented on which terms."""
    if option.kind is Kind.BUY:
        return "buy"
    if option.is_reserved:
        return "rent, reserved"
    return "rent, spot" if option.is_spot else "rent"


def option_name(option: Option) -> str:
    """Name an option in a few words."""
    name = option.times_text
    if option.kind is Kind.BUY:
        return name if option.is_own else f"buy {name}"
    return f"{name}, {option.provider_title or option.provider}"


def option_keys(found: Plan) -> list[str]:
    """
    Return a name for each option that stays the same while its place and its price change.

    Like `rent:lium:8x RTX 6000 Ada:secure`; of several that are called alike, later ones get a number.
    """
    keys, seen = [], Counter[str]()
    for option in found.options:
        terms = (option.kind, option.provider, option.name, option.tier)
        key = ":".join(str(term) for term in terms if term)
        seen[key] += 1
        keys.append(key if seen[key] == 1 else f"{key}#{seen[key]}")
    return keys


def option_rows(found: Plan) -> list[dict[str, Any]]:
    """Return the ranked options as rows of the table; None is unknown."""
    passed = zip(found.options, found.passed_over(), strict=True)
    return [
        _option_row(rank, option, why_not, found.money)
        for rank, (option, why_not) in enumerate(passed, start=1)
    ]


def _option_row(rank: int, option: Option, why_not: str | None, money: Money) -> dict[str, Any]:
    speed = option.point.speed if option.point else None
    prices, price = option.token_prices, option.price
    return {
        "option": _row_name(option),
        "month": data.in_currency(money, option.usd_per_month),
        "provider": option.provider_title or option.provider,
        "mtok": data.in_currency(money, prices.usd_per_million_tokens if prices else None),
        "decode": speed.decode_tokens_per_s if speed else None,
        "counts": _counts(why_not),
        "seen": _seen(option),
        "source": tables.address_of(price.source_url),
        "rank": rank,
        "tier": option.tier,
        "status": str(price.status),
        "per_hour": data.in_currency(money, option.usd_per_hour),
        "per_gpu_hour": data.in_currency(money, option.usd_per_gpu_hour),
        "aggregate": speed.aggregate_tokens_per_s if speed else None,
        "pays_back": option.break_even_months,
        "no_payback": _no_payback(option),
        "purchase": data.in_currency(money, option.purchase_usd),
        "vram": option.vram_total_gb,
        "deploy": tables.address_of(option.deploy_url),
        "product": option.name if option.kind is Kind.API else option.instance_type,
        "region": option.region,
        "billing": option.billing,
        "stated": option.purchase_source or price.source_url,
        "why": with_controls("; ".join(option.notes)) or None,
    }


def _counts(why_not: str | None) -> str:
    """Say in a few words whether the verdict counts an option; the reason in full stands side by side."""
    if why_not is None:
        return "yes"
    words = {**SHORT, "too slow": "too slow"}
    return f"no: {next((short for begin, short in words.items() if why_not.startswith(begin)), why_not)}"


def _no_payback(option: Option) -> str | None:
    """Say why a purchase has no month in which it pays back, or none within its term."""
    if option.pays_after_its_term:
        return f"not within its term of {option.term_months:,.0f} months"
    if option.kind is not Kind.BUY or option.break_even_months is not None:
        return None
    if option.compared_with is not None:
        return "never"
    return "too slow to compare" if option.is_too_slow else "no rental to compare"


def left_out(found: Plan) -> list[dict[str, str]]:
    """Return what is not in the table, and why."""
    return [{"what": entry.what, "why": with_controls(entry.why)} for entry in found.excluded]


def _row_name(option: Option) -> str:
    """Name an option as shortly as the first column needs it; the name of an API stands in a later one."""
    if option.kind is Kind.API:
        return f"API of {option.provider_title or option.provider}"
    return f"buy {option.times_text}" if _is_bought(option) else option.times_text


def _is_bought(option: Option) -> bool:
    return option.kind is Kind.BUY and not option.is_own


def _seen(option: Option) -> str | None:
    """Say when a price was seen: how long ago where that is known to the hour, else the day."""
    price = option.price
    if price.status in (PriceStatus.VERIFIED, PriceStatus.STALE) and price.age_hours is not None:
        return f"{tables.age(price.age_hours)} ago"
    return (price.seen_at or "")[:10] or None


def side_by_side(
    explained: Sequence[Explanation], why_not: Sequence[str | None], money: Money
) -> list[dict[str, Any]]:
    """
    Return some options as a table: a row for each word on them and for each figure, a column for each option.

    Args:
        explained: The options.
        why_not: Why the verdict passes over each, None where it does not.
        money: In which currency.
    """
    rows: dict[str, dict[str, Any]] = {}
    for each, reason in zip(explained, why_not, strict=True):
        title = f"{each.number}. {option_name(each.option)}"
        for name, text in _words(each.option, reason).items():
            if text:
                rows.setdefault(name, {"figure": name})[title] = text
        for figure in (figure.shown_in(money) for figure in each.figures):
            row = rows.setdefault(
                f"{figure.name} [{figure.unit}]", {"figure": f"{figure.name} [{figure.unit}]"}
            )
            value = tables.significant(figure.value, 4)
            row[title] = tables.starred(value, figure.is_estimate) or ("never" if figure.is_never else None)
    return list(rows.values())


def _words(option: Option, why_not: str | None) -> dict[str, str | None]:
    """Return what is said of an option beside its figures."""
    price = option.price
    return {
        "instance": option.name if option.kind is Kind.API else option.instance_type,
        "region": option.region,
        "tier": option.tier,
        "billed": option.billing,
        "counts": "yes" if why_not is None else f"no: {why_not}",
        "price": " ".join(word for word in (price.status, _seen(option)) if word),
        "note": with_controls("; ".join(option.notes)) or None,
    }
