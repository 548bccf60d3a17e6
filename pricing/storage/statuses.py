"""Where each provider's prices stand: last runs, counts, ages."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.engine import Row

from pricing.offer import Verdict
from pricing.storage.memory import Origin, RunStatus
from pricing.storage.queries import Where, fetch, utc
from pricing.storage.stored import AHEAD, FRESH, ProviderStatus

# A year of nightly runs.
RUNS_LOOKED_AT = 400
# Last in time, not in the order of recording: saved answers may be replayed in any order.
_LAST_RUNS = (
    "SELECT provider, status, reason, problem_count, finished_at FROM ("
    "SELECT r.*, row_number() OVER (PARTITION BY r.provider ORDER BY r.finished_at DESC, r.id DESC) AS place "
    "FROM provider_run r {}) ranked WHERE place = 1"
)
_FAILURES = (
    "SELECT r.provider, count(*) AS number FROM provider_run r WHERE r.status = 'failed' AND NOT EXISTS ("
    "SELECT 1 FROM provider_run g WHERE g.provider = r.provider AND g.status = 'ok' "
    "AND (g.finished_at > r.finished_at OR (g.finished_at = r.finished_at AND g.id > r.id))) "
    "GROUP BY r.provider"
)


def statuses(connection: Connection, now: datetime) -> list[ProviderStatus]:
    """Return where each provider's and witness's prices stand, by name."""
    last = {row.provider: row for row in fetch(connection, _LAST_RUNS.format(""))}
    good = {row.provider: row for row in fetch(connection, _LAST_RUNS.format("WHERE r.status = 'ok'"))}
    failures = {row.provider: int(row.number) for row in fetch(connection, _FAILURES)}
    counts, newest = _market(connection, now)
    return [
        _status(name, now, last.get(name), good.get(name), failures.get(name, 0), counts[name], newest[name])
        for name in sorted({*counts, *last})
    ]


def unchanged_since(connection: Connection, provider: str, digests: Mapping[str, str]) -> dict[str, datetime]:
    """
    Return for each page since when every successful refresh of a provider found it with these bytes.

    Args:
        connection: In a transaction.
        provider: Whose pages.
        digests: SHA-256 of each page, by its key.
    """
    since: dict[str, datetime] = {}
    same = dict(digests)
    for row in _good_runs(connection, provider):
        then = json.loads(row.page_digests or "{}")
        same = {page: digest for page, digest in same.items() if then.get(page) == digest}
        if not same:
            break
        since |= dict.fromkeys(same, utc(row.finished_at))
    return since


def replaced_pages(connection: Connection, provider: str, digests: Mapping[str, str]) -> dict[str, datetime]:
    """
    Return for each page when it was last found with these bytes before others were found.

    Args:
        connection: In a transaction.
        provider: Whose pages.
        digests: SHA-256 of each page, by its key.
    """
    found: dict[str, datetime] = {}
    replaced: set[str] = set()
    for row in _good_runs(connection, provider):
        then = json.loads(row.page_digests or "{}")
        for page in digests.keys() & then.keys() - found.keys():
            if then[page] != digests[page]:
                replaced.add(page)
            elif page in replaced:
                found[page] = utc(row.finished_at)
    return found


def _good_runs(connection: Connection, provider: str) -> Sequence[Row[Any]]:
    """Return the last successful refreshes of a provider, the newest first."""
    where = Where().add("provider = :provider AND status = 'ok' AND source = 'refresh'", provider=provider)
    sql = (
        f"SELECT finished_at, page_digests FROM provider_run {where} ORDER BY id DESC LIMIT {RUNS_LOOKED_AT}"
    )
    return fetch(connection, sql, where)


def _market(
    connection: Connection, now: datetime
) -> tuple[dict[str, Counter[str]], dict[str, dict[str, datetime]]]:
    """Return by provider the open prices by state, and the newest time of verified and of bundled ones."""
    where = Where().at(None).add("p.origin <> 'own'")
    where.values |= {"fresh_since": now - FRESH, "ahead": now + AHEAD}
    sql = (
        "SELECT s.collector, p.origin, p.verdict, p.last_seen_at >= :fresh_since "
        "AND p.last_seen_at <= :ahead AS is_fresh, "
        "s.gpu IS NULL AS is_nameless, count(*) AS number, max(p.last_seen_at) AS last_seen_at "
        f"FROM price p JOIN series s ON s.id = p.series_id {where} GROUP BY 1, 2, 3, 4, 5"
    )
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    newest: dict[str, dict[str, datetime]] = defaultdict(dict)
    for row in fetch(connection, sql, where):
        state = row.verdict
        if row.origin == Origin.SNAPSHOT and (row.verdict == Verdict.VERIFIED or row.is_nameless):
            state = "snapshot"
        elif row.verdict == Verdict.VERIFIED and not row.is_fresh:
            state = "stale"
        counts[row.collector][state] += row.number
        of_provider = newest[row.collector]
        last_seen_at = utc(row.last_seen_at)
        of_provider[row.origin] = max(last_seen_at, of_provider.get(row.origin, last_seen_at))
    return counts, newest


def _status(
    name: str,
    now: datetime,
    last: Row[Any] | None,
    good: Row[Any] | None,
    failures: int,
    counts: Counter[str],
    newest: dict[str, datetime],
) -> ProviderStatus:
    seen_at = newest.get(Origin.REFRESH)
    return ProviderStatus(
        provider=name,
        last_run_at=utc(last.finished_at) if last else None,
        last_run_status=RunStatus(last.status) if last else None,
        last_run_reason=last.reason if last else None,
        last_run_problems=last.problem_count if last else 0,
        last_success_at=utc(good.finished_at) if good else None,
        failures_since_success=failures,
        age_hours=None if seen_at is None else (now - seen_at) / timedelta(hours=1),
        verified=counts["verified"],
        stale=counts["stale"],
        quarantined=counts["quarantined"],
        rejected=counts["rejected"],
        snapshot=counts["snapshot"],
        snapshot_as_of=newest.get(Origin.SNAPSHOT),
    )
