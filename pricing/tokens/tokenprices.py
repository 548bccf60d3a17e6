"""Prices of API tokens: fetched once a run, judged, and kept as intervals."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, insert, select, update

from planner.catalogues.models import known_model
from planner.catalogues.tokens import all_token_prices
from pricing.errors import PricingError
from pricing.offer import Problem, Verdict
from pricing.running.gather import Fetcher
from pricing.storage.memory import RunStatus
from pricing.storage.rows import TABLES, bump_revision
from pricing.tokens.litellm import DEADLINE_S, LITELLM, SOURCE, ListedPrice, read_prices
from pricing.tokens.tokenverdicts import HeldPrice, Judged, judge
from pricing.web.asking import Aside

__all__ = ["Asking", "Brought", "TokenReport", "keep", "model_ids"]

# The request has a limit of its own; what it cannot end, such as a look-up of a name, is left behind. [s]
LIMIT_S = 2 * DEADLINE_S
TOKEN_PRICE = TABLES["token_price"]
URL = LITELLM.pages["prices"]
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What the list said in one run."""

    prices: tuple[ListedPrice, ...] = ()
    problems: tuple[Problem, ...] = ()
    reason: str | None = None  # why there are none


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenReport:
    """How the part of a run went that asks for token prices."""

    reason: str | None = None  # why there are no new prices
    prices: int = 0  # of models of the catalogue
    verified: int = 0
    quarantined: int = 0
    rejected: int = 0
    problems: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    gone: int = 0  # in force before, and no longer on the list

    @property
    def status(self) -> RunStatus:
        """Whether there were prices to keep."""
        return RunStatus.OK if self.reason is None else RunStatus.FAILED

    @property
    def line(self) -> str:
        """Say it in one line."""
        if self.reason is not None:
            return f"no new prices of API tokens ({self.reason}); the last ones stand"
        held = self.quarantined + self.rejected
        waits = f", {held} held back (`breakeven prices tokens --held` says why)" if held else ""
        return (
            f"{self.verified} prices of API tokens ({SOURCE}), {self.new} new, {self.changed} changed{waits}"
        )

    def to_document(self) -> Mapping[str, object]:
        """Return the part of `breakeven.refresh/1`."""
        counts = ("prices", "verified", "quarantined", "rejected", "problems")
        moved = ("new", "changed", "unchanged", "gone")
        return {
            "source": LITELLM.name,
            "url": URL,
            "status": str(self.status),
            "reason": self.reason,
            **{name: getattr(self, name) for name in (*counts, *moved)},
        }


class Asking:
    """
    The list of one run: asked for in a thread while the providers are asked.

    Args:
        client: Sends the request.
    """

    def __init__(self, client: Fetcher) -> None:
        self._aside = Aside("token prices", lambda: _asked(client), LIMIT_S, "the list has not come")

    def brought(self) -> Brought:
        """Return what came, or the reason why nothing did, once it has or its time is over."""
        brought, reason = self._aside.found()
        return Brought(reason=reason) if brought is None else brought


def _asked(client: Fetcher) -> Brought:
    prices, problems = read_prices(client.fetch(LITELLM.request(), LITELLM))
    client.settle(LITELLM, is_read=True)
    return Brought(prices=tuple(prices), problems=tuple(problems))


def keep(connection: Connection, brought: Brought, ids: Mapping[Key, str], now: datetime) -> TokenReport:
    """
    Judge what the list said and keep it.

    An unchanged price moves `last_seen_at`; a changed or vanished one is closed and stays. Beside the price
    in force at most one waits; what waited and stands long enough takes over from now on.

    Args:
        connection: In a transaction.
        brought: What the list said.
        ids: Its `model_ids`, worked out before the transaction to keep that short.
        now: The time of the run.
    """
    if brought.reason is not None:
        return TokenReport(reason=brought.reason)
    in_force, waiting = _open_rows(connection)
    try:
        known = _held({**_gone(connection), **in_force})
        judged = judge(brought.prices, known, _held(waiting), all_token_prices(), ids, now)
    except PricingError as error:
        return TokenReport(reason=error.line)
    moved = Counter(
        _settle(connection, one, in_force.get(one.price.key), waiting.get(one.price.key), now)
        for one in judged
    )
    there = {one.price.key for one in judged}
    _close_gone(connection, waiting, there, now)
    gone = _close_gone(connection, in_force, there, now)
    bump_revision(connection)
    by_verdict = Counter(one.verdict for one in judged)
    return TokenReport(
        prices=len(judged),
        verified=by_verdict[Verdict.VERIFIED],
        quarantined=by_verdict[Verdict.QUARANTINED],
        rejected=by_verdict[Verdict.REJECTED],
        problems=len(brought.problems),
        new=moved["new"],
        changed=moved["changed"],
        unchanged=moved["unchanged"],
        gone=gone,
    )


def model_ids(keys: Iterable[Key]) -> dict[Key, str]:
    """
    Return which model of the catalogue each price is for; those of other models are left out.

    What the bundled list says counts first; then a name that is a repository of the model.
    """
    said = {(each.provider, each.model_name): each.model_id for each in all_token_prices()}
    found: dict[Key, str] = {}
    for key in keys:
        model_id = said[key] if key in said else _model_of(key[1])
        if model_id:
            found[key] = model_id
    return found


def _model_of(name: str) -> str | None:
    """Return the model whose repository is called so, in its own format and no other."""
    if "/" not in name:
        return None
    match = known_model(name)
    return match.model.id if match and match.matched == name and match.quant is None else None


def _open_rows(connection: Connection) -> tuple[dict[Key, Any], dict[Key, Any]]:
    """Return the rows in force and those that wait, by provider and model."""
    in_force: dict[Key, Any] = {}
    waiting: dict[Key, Any] = {}
    for row in connection.execute(select(TOKEN_PRICE).where(TOKEN_PRICE.c.closed_at.is_(None))):
        (waiting if row.verified_at is None else in_force)[row.provider, row.model] = row
    return in_force, waiting


def _gone(connection: Connection) -> dict[Key, Any]:
    """Return the last price of what left the list: one that comes back is held against it."""
    was_in_force = TOKEN_PRICE.c.verified_at.is_not(None) & (TOKEN_PRICE.c.closed_why == "gone")
    query = select(TOKEN_PRICE).where(was_in_force).order_by(TOKEN_PRICE.c.verified_at, TOKEN_PRICE.c.id)
    return {(row.provider, row.model): row for row in connection.execute(query)}


def _held(rows: Mapping[Key, Any]) -> dict[Key, HeldPrice]:
    """Return rows as they are judged by."""
    return {
        key: HeldPrice(
            usd=_usd(row),
            first_seen_at=row.first_seen_at,
            day=row.last_seen_at.date().isoformat(),
            verdict=Verdict(row.verdict),
        )
        for key, row in rows.items()
    }


def _usd(row: Any) -> tuple[Decimal, Decimal, Decimal | None]:
    cached = row.usd_per_mtok_cached_input
    return (
        Decimal(row.usd_per_mtok_input),
        Decimal(row.usd_per_mtok_output),
        None if cached is None else Decimal(cached),
    )


def _settle(connection: Connection, one: Judged, in_force: Any, waiting: Any, now: datetime) -> str:
    """Keep one price beside its rows, None where there is none; return what became of it."""
    is_verified = one.verdict is Verdict.VERIFIED
    # Clocks differ: what takes over is never in force before what it replaces.
    at = now if in_force is None else max(now, in_force.verified_at)
    if in_force is not None and _usd(in_force) == one.price.usd:
        _see(connection, in_force, now)
        _close(connection, waiting, now, "resolved")
        return "unchanged"
    if waiting is not None and _usd(waiting) == one.price.usd:
        _see(connection, waiting, now, verdict=str(one.verdict), reason=one.reason)
        if not is_verified:
            return "unchanged"
        _close(connection, in_force, at, "changed")
        values = {"verified_at": at}
        connection.execute(update(TOKEN_PRICE).where(TOKEN_PRICE.c.id == waiting.id).values(values))
        return "changed" if in_force is not None else "new"
    _close(connection, waiting, now, "changed")
    row = _row(one, now)
    if is_verified:
        _close(connection, in_force, at, "changed")
        row["verified_at"] = at
    connection.execute(insert(TOKEN_PRICE).values(row))
    return "new" if in_force is None and waiting is None else "changed"


def _see(connection: Connection, row: Any, now: datetime, **more: Any) -> None:
    values = {"last_seen_at": max(now, row.last_seen_at), "times_seen": row.times_seen + 1, **more}
    connection.execute(update(TOKEN_PRICE).where(TOKEN_PRICE.c.id == row.id).values(values))


def _close(connection: Connection, row: Any, now: datetime, why: str) -> None:
    if row is not None:
        values = {"closed_at": now, "closed_why": why}
        connection.execute(update(TOKEN_PRICE).where(TOKEN_PRICE.c.id == row.id).values(values))


def _close_gone(connection: Connection, rows: Mapping[Key, Any], there: set[Key], now: datetime) -> int:
    """Close what the list no longer has; return how many that are."""
    gone = [row for key, row in rows.items() if key not in there]
    for row in gone:
        _close(connection, row, now, "gone")
    return len(gone)


def _row(one: Judged, now: datetime) -> dict[str, Any]:
    usd_in, usd_out, cached = one.price.usd
    return {
        "provider": one.price.provider,
        "model": one.price.model,
        "model_id": one.model_id,
        "usd_per_mtok_input": f"{usd_in:f}",
        "usd_per_mtok_output": f"{usd_out:f}",
        "usd_per_mtok_cached_input": None if cached is None else f"{cached:f}",
        "notes": one.price.notes,
        "verdict": str(one.verdict),
        "reason": one.reason,
        "source": URL,
        "first_seen_at": now,
        "last_seen_at": now,
        "verified_at": None,
        "closed_at": None,
        "closed_why": None,
        "times_seen": 1,
    }
