"""`prices refresh` and `prices replay`: from the providers' answers, or saved ones, to stored prices."""

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dashboard import tables
from dashboard.commands.arguments import count
from dashboard.commands.base import Commands, Context, NothingDone, Output, UsageError
from planner.fields import YEARS

if TYPE_CHECKING:
    from pricing.running.replay import Replay
    from pricing.running.reports import ProviderReport, RunReport

FAILURES_NAMED = 3


def register_under_prices(group: Commands) -> None:
    """Add the two commands to the group `prices`."""
    refresh = group.add(
        "refresh",
        refresh_prices,
        help="ask the providers for today's prices, verify and store them",
        example="breakeven prices refresh runpod vultr",
        more="A provider that fails leaves the others and all stored prices as they are.",
    )
    refresh.add_argument(
        "providers",
        metavar="PROVIDER",
        nargs="*",
        help="only these (litellm: prices of API tokens); all of `breakeven providers` otherwise",
    )
    refresh.add_argument(
        "--wait", metavar="SECONDS", type=count, default=0, help="wait so long for another run to end (0)"
    )
    replay = group.add(
        "replay",
        replay_files,
        help="the same from saved responses",
        example="breakeven prices replay runpod gputypes.json --dry-run",
        more="Files may come in any order; each is recognised by its shape.",
    )
    replay.add_argument("provider", metavar="PROVIDER", help="whose responses they are")
    replay.add_argument(
        "files", metavar="FILE", nargs="+", help="saved responses; PAGE=FILE where the shape does not tell"
    )
    replay.add_argument("--seen-at", metavar="TIME", help="when they were received, ISO 8601 (now)")
    replay.add_argument(
        "--dry-run", action="store_true", help="store nothing, only show offers and their verdicts"
    )


def refresh_prices(arguments: argparse.Namespace, context: Context) -> Output:
    """Ask the providers."""
    from dashboard.commands.storage import open_store
    from pricing.collect import source_names
    from pricing.http import Client
    from pricing.running.runs import run
    from pricing.settings import Settings
    from pricing.tokens.litellm import LITELLM

    if arguments.wait < 0:
        raise UsageError(f"--wait: {arguments.wait} is not allowed; give 0 or more seconds")
    settings = Settings.from_environ(context.environ)
    rented = [name for name in arguments.providers if name.lower() != LITELLM.name]
    asks_tokens = not arguments.providers or len(rented) < len(arguments.providers)
    names = source_names(rented) if rented or not arguments.providers else []
    names += [LITELLM.name] if asks_tokens else []

    def progress(report: "ProviderReport") -> None:
        if context.is_terminal:
            context.tell(f"{report.title}: {_outcome(report)}")

    with open_store(context) as store, Client.of(settings) as client:
        if store.is_read_only:
            raise NothingDone(
                f"database {store.label}: is read-only; make it writable or set BREAKEVEN_DATABASE_URL"
            )
        if context.is_terminal:
            context.tell(f"asking {tables.plural(len(names), 'source')} ...")
        report = run(
            names if arguments.providers else None,
            store,
            settings,
            client,
            context.clock(),
            progress,
            wait_s=arguments.wait,
        )
    headers = (
        "provider",
        "state",
        "offers",
        "verified",
        "quarantined",
        "rejected",
        "problems",
        "new or changed",
        "s",
    )
    rows = [
        (
            part.provider,
            str(part.status),
            part.offers,
            part.verified,
            part.quarantined,
            part.rejected,
            part.problems,
            part.new + part.changed,
            f"{part.seconds:.1f}",
        )
        for part in report.providers
    ]
    held = sum(part.quarantined + part.rejected for part in report.providers)
    why = [f"{part.title}: {part.reason}" for part in report.providers if part.reason]
    return Output(
        document=report.to_document(),
        text=lambda: tables.paragraphs(
            tables.table(headers, rows, left=(0, 1)) if rows else "",
            "\n".join(why),
            report.exchange.line if report.exchange else "",
            report.token_prices.line if report.token_prices else "",
            f"{held} held back: `breakeven prices rejected` says why" if held else "",
        ),
        warnings=(*report.notes, *_failures(report, are_named=not arguments.json)),
        exit_code=report.exit_code,
    )


def replay_files(arguments: argparse.Namespace, context: Context) -> Output:
    """Read saved responses."""
    from dashboard.commands.storage import open_store
    from pricing.errors import ParseError
    from pricing.running.replay import ReplayError, replay
    from pricing.store import Store

    now = context.clock()
    seen_at = _moment(arguments.seen_at, now)
    needs_none = arguments.dry_run and not _has_database(context)
    store = Store.in_memory() if needs_none else open_store(context)
    with store:
        try:
            found = replay(arguments.provider, arguments.files, store, seen_at, is_dry_run=arguments.dry_run)
        except (ParseError, ReplayError) as error:
            raise UsageError(str(error)) from error
    return Output(
        document={
            "schema": "breakeven.offers/1",
            "offers": [offer.to_document() for offer in found.offers],
            "problems": [
                {"what": problem.what, "why": problem.why, "raw": problem.raw} for problem in found.problems
            ],
        },
        text=lambda: _text(found, is_dry_run=arguments.dry_run),
        warnings=(*found.notes, *([found.reason] if found.reason else ())),
        exit_code=1 if found.reason else 0,
    )


def _text(found: "Replay", *, is_dry_run: bool) -> str:
    headers = ("instance", "GPU", "GPUs", "region", "tier", "USD/h", "verdict", "why")
    rows = [
        (
            tables.shortened(offer.instance_type, 34),
            offer.gpu or f"? {offer.gpu_raw}",
            offer.gpu_count if offer.gpu_fraction is None else f"{offer.gpu_fraction:g}",
            tables.shortened(offer.region, 18),
            str(offer.tier),
            tables.money(offer.usd_per_hour),
            str(offer.verdict),
            "; ".join(offer.reasons),
        )
        for offer in found.offers
    ]
    problems = "\n".join(f"- {problem.what}: {problem.why}" for problem in found.problems)
    return tables.paragraphs(
        tables.table(headers, rows, left=(0, 1, 3, 4, 6, 7)),
        f"Not read as prices ({len(found.problems)}):\n{problems}" if problems else "",
        "A dry run: nothing was stored." if is_dry_run else "",
    )


def _outcome(report: "ProviderReport") -> str:
    if report.reason:
        return f"{report.status}: {report.reason}"
    held = report.quarantined + report.rejected
    return f"{report.offers} offers, {report.verified} verified{f', {held} held back' if held else ''}"


def _failures(report: "RunReport", *, are_named: bool) -> tuple[str, ...]:
    """Say in one line how many sources failed, why unless that is said below the table, and what stays."""
    failed = [part for part in report.providers if part.status == "failed"]
    if not failed:
        return ()
    reasons = "; ".join(f"{part.title}: {part.reason}" for part in failed[:FAILURES_NAMED])
    more = f"; and {len(failed) - FAILURES_NAMED} more" if len(failed) > FAILURES_NAMED else ""
    number = f"{len(failed)} of {tables.plural(len(report.providers), 'source')} failed"
    kept = f"{number}, stored prices are as before"
    return (kept if are_named else f"{kept} ({reasons}{more})",)


def _has_database(context: Context) -> bool:
    """Whether a dry run has stored prices to compare with; it must not create a database."""
    from pricing.settings import Settings
    from pricing.storage.database import location

    url = Settings.from_environ(context.environ).database_url
    if not url.startswith("sqlite"):
        return True
    from pathlib import Path

    return Path(location(url)).exists()


def _moment(text: str | None, now: datetime) -> datetime:
    if text is None:
        return now
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--seen-at: {text!r} is not a time such as 2026-11-30T06:00:00Z") from None
    if moment.year < YEARS[0]:
        raise UsageError(f"--seen-at: {text!r} is before {YEARS[0]}; give when the responses were received")
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment > now:
        raise UsageError(f"--seen-at: {text!r} is in the future; give when the responses were received")
    return moment.astimezone(UTC)
