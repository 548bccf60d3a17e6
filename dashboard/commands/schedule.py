"""`schedule`: the nightly refresh as a process of its own, or once for cron and timers."""

import argparse
import os
import sys
from datetime import datetime, time
from typing import TYPE_CHECKING

from dashboard import tables
from dashboard.commands.arguments import count
from dashboard.commands.base import Commands, Context, NothingDone, Output, UsageError

if TYPE_CHECKING:
    from pricing.running.reports import RunReport
    from pricing.schedule import Timetable
    from pricing.settings import Settings
    from pricing.store import Store

COMMAND = "breakeven schedule"


def register(commands: Commands) -> None:
    """Add `schedule`."""
    parser = commands.add(
        "schedule",
        serve,
        help="refresh the prices every night, one run at a time",
        example="breakeven schedule --at 03:00 --timezone Europe/Berlin",
        more="It runs at once where the last good run is more than a day ago, and ends on SIGTERM.",
    )
    parser.add_argument("--at", metavar="HH:MM", default="03:00", help="time of the day (03:00)")
    parser.add_argument("--timezone", metavar="NAME", default="UTC", help="of that time (UTC)")
    parser.add_argument(
        "--jitter", metavar="SECONDS", type=count, default=300, help="spread the start by up to so long (300)"
    )
    parser.add_argument("--once", action="store_true", help="one run now, then end: for cron and timers")


def serve(arguments: argparse.Namespace, context: Context) -> Output | None:
    """Run the schedule until it is told to end."""
    from dashboard.commands.storage import open_store
    from pricing.schedule import Nightly
    from pricing.settings import Settings

    timetable = _timetable(arguments)
    settings = Settings.from_environ(context.environ)
    with open_store(context) as store:
        if store.is_read_only:
            raise NothingDone(
                f"database {store.label}: is read-only; make it writable or set BREAKEVEN_DATABASE_URL"
            )
        if arguments.once:
            return _once(store, settings, context)

        def job() -> None:
            shown = _night(store, settings, context)
            if shown is not None:
                context.show(shown)

        nightly = Nightly(store, timetable, job, context.clock, context.tell)
        context.tell(
            f"prices are refreshed every day at {arguments.at} {timetable.zone.key}, next at "
            f"{timetable.next_after(context.clock()):%Y-%m-%d %H:%M} UTC; SIGTERM or Ctrl-C ends it"
        )
        is_done = nightly.serve()
    if not is_done:  # a request that hangs cannot be called back, and holds no transaction
        context.tell("ended; the run under way was abandoned, what was stored is whole")
        sys.stdout.flush()
        os._exit(0)
    context.tell("ended")
    return None


def _once(store: "Store", settings: "Settings", context: Context) -> Output:
    from pricing.errors import RunInProgress

    try:
        report = _refresh(store, settings, context)
    except RunInProgress as error:  # the work is being done
        document = {"schema": "breakeven.refresh/1", "skipped": str(error)}
        return Output(document=document, text="nothing to do", warnings=(str(error),))
    return _shown(report)


def _night(store: "Store", settings: "Settings", context: Context) -> Output | None:
    """Make the run of one night; what goes wrong is told, and the schedule looks again."""
    from pricing.errors import PricingError, RunInProgress
    from pricing.running.runs import RECENT

    try:
        return _shown(_refresh(store, settings, context, unless_since=context.clock() - RECENT))
    except RunInProgress:
        raise
    except PricingError as error:
        context.tell(str(error))
        return None


def _refresh(
    store: "Store", settings: "Settings", context: Context, unless_since: datetime | None = None
) -> "RunReport":
    from pricing.http import Client
    from pricing.running.runs import run

    with Client.of(settings) as client:
        return run(None, store, settings, client, context.clock(), command=COMMAND, unless_since=unless_since)


def _shown(report: "RunReport") -> Output:
    by_status = {str(status): 0 for status in ("ok", "failed", "skipped")}
    for part in report.providers:
        by_status[str(part.status)] += 1
    total = {
        name: sum(getattr(part, name) for part in report.providers)
        for name in ("verified", "quarantined", "rejected", "changed")
    }
    sources = f"{by_status['ok']} sources read, {by_status['failed']} failed, {by_status['skipped']} skipped"
    prices = (
        f"{total['verified']} prices verified, {total['changed']} changed, "
        f"{total['quarantined']} in quarantine, {total['rejected']} rejected"
    )
    line = f"{report.started_at:%Y-%m-%d %H:%M} UTC: {sources}; {prices}"
    failed = list(report.notes)
    failed += [f"{part.title}: {part.reason}" for part in report.providers if part.status == "failed"]
    if report.exchange is not None and (report.exchange.reason is not None or report.exchange.held):
        failed.append(report.exchange.line)
    if report.token_prices is not None and report.token_prices.reason is not None:
        failed.append(report.token_prices.line)
    return Output(
        document=report.to_document(),
        text=tables.paragraphs(line, tables.bullets(failed)),
        exit_code=report.exit_code,
    )


def _timetable(arguments: argparse.Namespace) -> "Timetable":
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

    from dashboard.commands.base import suggestion
    from pricing.schedule import Timetable

    try:
        at = time.fromisoformat(arguments.at)
    except ValueError:
        at = None
    if at is None or at.tzinfo is not None or at.second or len(arguments.at) != 5:
        raise UsageError(f"--at: {arguments.at!r} is not a time such as 03:00")
    try:
        zone = ZoneInfo(arguments.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = suggestion(arguments.timezone, available_timezones())
        raise UsageError(
            f"--timezone: {arguments.timezone!r} is not a time zone such as Europe/Berlin{hint}"
        ) from None
    if arguments.jitter < 0:
        raise UsageError(f"--jitter: {arguments.jitter} is not allowed; give 0 or more seconds")
    return Timetable(at=at, zone=zone, jitter_s=arguments.jitter)
