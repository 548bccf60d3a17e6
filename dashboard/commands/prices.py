"""`prices`: what is known of the market, how it moved, and what was kept out of it."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dashboard import tables
from dashboard.commands import collecting, reviewing, tokens
from dashboard.commands.arguments import count, day_before, number
from dashboard.commands.base import Commands, Context, Output, Parser, UsageError

if TYPE_CHECKING:
    from decimal import Decimal

    from pricing.storage.stored import StoredOffer

ROWS_SHOWN = 50


def register(commands: Commands) -> None:
    """Add `prices` and what stands under it."""
    group = commands.group(
        "prices", help="refresh, read and review prices", example="breakeven prices status"
    )
    collecting.register_under_prices(group)
    reviewing.register_under_prices(group)
    tokens.register_under_prices(group)
    filters = _filters()
    listed = group.add(
        "list",
        list_offers,
        help="list current prices, cheapest GPU-hour first",
        example="breakeven prices list --gpu H100 --tier on_demand",
        parents=[filters],
    )
    listed.add_argument("--as-of", metavar="DATE", help="the market of that day (now)")
    listed.add_argument("--all", action="store_true", help="also what is quarantined or rejected")
    history = group.add(
        "history",
        list_history,
        help="how prices moved",
        example='breakeven prices history --gpu "H100 SXM" --provider runpod',
        parents=[filters],
    )
    history.add_argument("--since", metavar="DATE", help="only what was seen since that day")
    history.add_argument("--chart", action="store_true", help="draw the prices of a GPU-hour above the table")
    status = group.add(
        "status",
        list_statuses,
        help="each provider: last success, age of its prices, counts, last failure",
        example="breakeven prices status --check",
    )
    status.add_argument(
        "--check",
        action="store_true",
        help="one line for a monitor: exit code 0 healthy, 1 not, with reasons",
    )
    status.add_argument(
        "--max-age", metavar="HOURS", type=number, help="a good run must not be longer ago (36)"
    )
    rejected = group.add(
        "rejected",
        list_rejected,
        help="prices kept out of every plan, with the reason and the raw value",
        example="breakeven prices rejected --provider vastai",
    )
    rejected.add_argument(
        "--provider", metavar="NAME", action="append", help="only this one; may be repeated"
    )
    rejected.add_argument("--limit", metavar="N", type=count, help="at most so many; 0: all")


def _filters() -> Parser:
    parent = Parser(add_help=False)
    parent.add_argument("--gpu", metavar="NAME", help="only this device; a name of several means all of them")
    parent.add_argument("--provider", metavar="NAME", action="append", help="only this one; may be repeated")
    parent.add_argument("--tier", metavar="NAME", action="append", help="only this tier; may be repeated")
    parent.add_argument("--region", metavar="TEXT", help="only this region, however it is spelled")
    parent.add_argument("--limit", metavar="N", type=count, help="at most so many; 0: all")
    return parent


def list_offers(arguments: argparse.Namespace, context: Context) -> Output:
    """List the market."""
    from dashboard.commands.storage import open_store
    from pricing.storage.queries import moment_of

    now = context.clock()
    as_of = day_before(arguments.as_of, "--as-of", now)
    with open_store(context) as store:
        offers = store.current_offers(**_chosen(arguments), as_of=as_of)
        if arguments.all:
            held = store.rejected(provider=_provider_names(arguments.provider))
            offers += [offer for offer in held if _is_chosen(offer, arguments)]
    then = moment_of(as_of) or now  # a price of a past day is as old as it was then
    offers = sorted(offers, key=_place)
    offers = offers[: _limit(arguments)]
    headers = (
        "GPU",
        "GPUs",
        "GB each",
        "from",
        "instance",
        "region",
        "tier",
        "USD/GPU-h",
        "USD/h",
        "state",
        "seen",
        "source",
    )

    def rows(shown: Sequence["StoredOffer"]) -> list[tuple[object, ...]]:
        return [
            (
                offer.gpu or f"? {offer.gpu_raw}",
                offer.gpu_count if offer.gpu_fraction is None else f"{offer.gpu_fraction:g}",
                None if offer.memory_gb_per_gpu is None else f"{offer.memory_gb_per_gpu:g}",
                offer.provider,
                tables.shortened(offer.instance_type, 28),
                tables.shortened(offer.region, 18),
                str(offer.tier),
                tables.money(offer.usd_per_gpu_hour, 3),
                tables.money(offer.usd_per_hour),
                offer.standing(then),
                f"{offer.seen_at:%Y-%m-%d}",
                tables.source(offer.source_url),
            )
            for offer in shown
        ]

    return Output(
        document=_offers_document([offer.to_document(then) for offer in offers]),
        text=lambda: _listing(headers, offers, rows, (0, 3, 4, 5, 6, 9, 10, 11), arguments.limit is None),
        warnings=_nothing_known(offers),
    )


def _place(offer: "StoredOffer") -> tuple[str, bool, "Decimal", str]:
    """Sort by GPU and price of its hour; slices stand behind whole GPUs, for they are no bargains of them."""
    return offer.gpu or "~", offer.gpu_fraction is not None, offer.usd_per_gpu_hour, offer.id


def list_history(arguments: argparse.Namespace, context: Context) -> Output:
    """List every price there was, oldest first, and draw it."""
    from datetime import UTC, datetime, time

    from dashboard.commands.history_text import chart
    from dashboard.commands.storage import open_store

    if arguments.chart and arguments.gpu is None:
        raise UsageError("--chart: prices of different devices are no chart; name one by --gpu")
    day = day_before(arguments.since, "--since", context.clock())
    since = None if day is None else datetime.combine(day, time.min, tzinfo=UTC)
    limit = _limit(arguments)
    with open_store(context) as store:
        # A chart shows all there is, whatever the table has room for.
        known = store.history(**_chosen(arguments), since=since, limit=None if arguments.chart else limit)
    offers = known[:limit]
    headers = (
        "seen first",
        "seen last",
        "GPU",
        "GPUs",
        "from",
        "instance",
        "region",
        "tier",
        "USD/h",
        "state",
    )

    def rows(shown: Sequence["StoredOffer"]) -> list[tuple[object, ...]]:
        return [
            (
                f"{offer.first_seen_at:%Y-%m-%d}",
                f"{offer.seen_at:%Y-%m-%d}",
                offer.gpu or f"? {offer.gpu_raw}",
                offer.gpu_count if offer.gpu_fraction is None else f"{offer.gpu_fraction:g}",
                offer.provider,
                tables.shortened(offer.instance_type, 28),
                tables.shortened(offer.region, 18),
                str(offer.tier),
                tables.money(offer.usd_per_hour),
                _state_then(offer),
            )
            for offer in shown
        ]

    return Output(
        document={"schema": "breakeven.history/1", "history": [offer.to_document() for offer in offers]},
        text=lambda: tables.paragraphs(
            chart(known, since) if arguments.chart else "",
            _listing(headers, offers, rows, (0, 1, 2, 4, 5, 6, 7, 9), arguments.limit is None),
        ),
        warnings=_nothing_known(offers),
    )


def list_statuses(arguments: argparse.Namespace, context: Context) -> Output:
    """List where each provider's prices stand."""
    from dashboard.commands.storage import open_store
    from pricing.running.health import MAX_AGE_HOURS, health
    from pricing.running.runs import LAST_GOOD_RUN, LAST_RUN, SCHEDULES

    max_age = MAX_AGE_HOURS if arguments.max_age is None else arguments.max_age
    if max_age < 0:
        raise UsageError(f"--max-age: {max_age:g} is not allowed; give hours of at least 0")
    with open_store(context) as store:
        statuses = store.statuses(context.clock())
        schedules = list(store.all_noted(SCHEDULES).values())
        exchange = store.exchange_state()
        last_good, last = store.noted(LAST_GOOD_RUN), store.noted(LAST_RUN)
    rates, held = exchange.rates["EUR"], list(exchange.waiting.values())
    state = health(statuses, last_good, last, schedules, context.clock(), max_age, held)
    if arguments.check:
        return Output(
            document=state.to_document(),
            text=state.line,
            warnings=tuple(state.warnings),
            exit_code=0 if state.is_healthy else 1,
        )
    headers = (
        "provider",
        "last success",
        "age",
        "fresh",
        "stale",
        "bundled",
        "bundled of",
        "quarantined",
        "rejected",
        "failed in a row",
        "last run",
    )
    rows = [
        (
            status.provider,
            tables.moment(status.last_success_at),
            tables.age(status.age_hours),
            status.verified,
            status.stale,
            status.snapshot,
            None if status.snapshot_as_of is None else f"{status.snapshot_as_of:%Y-%m-%d}",
            status.quarantined,
            status.rejected,
            status.failures_since_success or None,
            _last_run(status.last_run_status, status.last_run_reason),
        )
        for status in statuses
    ]
    return Output(
        document={
            "schema": "breakeven.status/1",
            "providers": [status.to_document() for status in statuses],
            "exchange_rates": {
                "as_of": rates.as_of,
                "source": rates.source,
                "held": [one.to_document() for one in held],
            },
            "health": state.to_document(),
        },
        text=lambda: tables.paragraphs(
            tables.table(headers, rows, left=(0, 1, 6, 10)),
            f"{state.line}\nrates of exchange of {rates.as_of} ({rates.source})",
            tables.bullets(state.warnings),
        ),
    )


def list_rejected(arguments: argparse.Namespace, context: Context) -> Output:
    """List what verification holds back."""
    from dashboard.commands.storage import open_store

    with open_store(context) as store:
        offers = store.rejected(provider=_provider_names(arguments.provider), limit=_limit(arguments))
    headers = (
        *("id", "from", "instance", "GPUs", "region", "tier", "USD/h"),
        *("raw", "verdict", "why", "seen", "source"),
    )

    def rows(shown: Sequence["StoredOffer"]) -> list[tuple[object, ...]]:
        return [
            (
                offer.id,
                offer.said_by,
                tables.shortened(offer.instance_type, 28),
                offer.gpu_count if offer.gpu_fraction is None else f"{offer.gpu_fraction:g}",
                tables.shortened(offer.region, 18),
                str(offer.tier),
                tables.money(offer.usd_per_hour),
                tables.shortened(offer.raw, 40),
                str(offer.verdict),
                "; ".join(offer.reasons),
                f"{offer.seen_at:%Y-%m-%d}",
                tables.source(offer.source_url),
            )
            for offer in shown
        ]

    nothing = "nothing is held back" if not offers else ""
    return Output(
        document={
            "schema": "breakeven.rejected/1",
            "offers": [{**offer.to_document(), "raw": offer.raw} for offer in offers],
        },
        text=lambda: (
            nothing
            or _listing(headers, offers, rows, (0, 1, 2, 4, 5, 7, 8, 9, 10, 11), arguments.limit is None)
        ),
    )


def _state_then(offer: "StoredOffer") -> str:
    """Say why a price ended or that it is current; one that never counted, or is a catalogue's, says so."""
    if offer.witness is not None:
        return ", ".join(word for word in (f"says {offer.witness}", offer.closed_why) if word)
    if offer.verdict == "verified":
        return offer.closed_why or "current"
    return ", ".join(word for word in (str(offer.verdict), offer.closed_why) if word)


def _chosen(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the filters as the store takes them."""
    from planner.rates import Tier

    known = [str(tier) for tier in Tier]
    for tier in arguments.tier or ():
        if tier not in known:
            raise UsageError(f"--tier: {tier!r} is not one of {', '.join(known)}")
    return {
        "gpu": _gpu_names(arguments.gpu),
        "provider": _provider_names(arguments.provider),
        "tier": arguments.tier,
        "region": arguments.region,
    }


def _gpu_names(name: str | None) -> list[str] | None:
    """Return every device that a name may mean."""
    if name is None:
        return None
    from planner.catalogues.gpus import find_gpu

    return list(find_gpu(name).names)


def _provider_names(names: Sequence[str] | None) -> list[str] | None:
    if names is None:
        return None
    from pricing.registry import provider_info

    return [provider_info(name).name for name in names]


def _is_chosen(offer: "StoredOffer", arguments: argparse.Namespace) -> bool:
    gpus = _gpu_names(arguments.gpu)
    return (gpus is None or offer.gpu in gpus) and (arguments.tier is None or offer.tier in arguments.tier)


def _limit(arguments: argparse.Namespace) -> int | None:
    if arguments.limit is not None and arguments.limit < 0:
        raise UsageError(f"--limit: {arguments.limit} is not allowed; give 1 or more, or 0 for all")
    return arguments.limit or None


def _offers_document(offers: Sequence[Any], problems: Sequence[Any] = ()) -> dict[str, Any]:
    return {"schema": "breakeven.offers/1", "offers": list(offers), "problems": list(problems)}


def _listing(headers: Sequence[str], offers: Sequence[Any], rows: Any, left: Sequence[int], cut: bool) -> str:
    """Return the first offers as a table, and how many more there are."""
    shown = offers[:ROWS_SHOWN] if cut else offers
    hidden = len(offers) - len(shown)
    more = f"{hidden:,} more: --limit N shows so many (0: all), --json has all" if hidden else ""
    return tables.paragraphs(tables.table(headers, rows(shown), left=left), more) if offers else ""


def _nothing_known(offers: Sequence[Any]) -> tuple[str, ...]:
    return () if offers else ("no price is known for that; `breakeven prices refresh` asks the providers",)


def _last_run(status: Any, reason: str | None) -> str | None:
    if status is None:
        return None
    return f"{status}: {reason}" if reason else str(status)
