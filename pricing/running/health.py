"""Whether prices are kept up: one answer for a monitor, with the reasons where not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from pricing.money.rateverdicts import HeldRate
from pricing.registry import is_witness
from pricing.storage.memory import RunStatus
from pricing.storage.stored import AHEAD, ProviderStatus

# A daily run that is half a day late has been missed. [h]
MAX_AGE_HOURS = 36.0
# A scheduler whose planned time passed this long ago is not running any more; a run that began no longer than
# this before that time was another's for the same night.
OVERDUE = timedelta(hours=1)
# The bank states rates on every working day; over Easter it pauses for four. Source: TARGET calendar.
RATES_WITHIN = timedelta(days=7)
# A source that fails this often in a row wants a person.
FAILURES_IN_A_ROW = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of the refresh."""

    problems: Sequence[str]  # what makes it unhealthy
    warnings: Sequence[str]  # what a person should look at some time
    last_good_run: Mapping[str, Any] | None
    last_run: Mapping[str, Any] | None
    age_hours: float | None  # since the last good run
    next_run_at: str | None
    schedules: Sequence[Mapping[str, Any]]
    counts: Mapping[str, int]  # of open prices by state; what catalogues say of others' is left out

    @property
    def is_healthy(self) -> bool:
        """Whether there is nothing to do."""
        return not self.problems

    @property
    def line(self) -> str:
        """The state in one line."""
        if self.problems:
            return f"unhealthy: {'; '.join(self.problems)}"
        later = f", next run {self.next_run_at}" if self.next_run_at else ""
        fresh = f"{self.counts['verified']} fresh prices"
        return f"healthy: refreshed {self.age_hours or 0:.1f} h ago, {fresh}{later}"

    def to_document(self) -> Mapping[str, object]:
        """Return the state as `breakeven.health/1`."""
        return {
            "schema": "breakeven.health/1",
            "healthy": self.is_healthy,
            "problems": list(self.problems),
            "warnings": list(self.warnings),
            "last_good_run": self.last_good_run,
            "last_run": self.last_run,
            "age_hours": self.age_hours,
            "next_run_at": self.next_run_at,
            "schedules": list(self.schedules),
            "counts": dict(self.counts),
        }


def health(
    statuses: Sequence[ProviderStatus],
    last_good_run: Mapping[str, Any] | None,
    last_run: Mapping[str, Any] | None,
    schedules: Sequence[Mapping[str, Any]],
    now: datetime,
    max_age_hours: float = MAX_AGE_HOURS,
    held_rates: Sequence[HeldRate] = (),
) -> Health:
    """
    Judge how well prices are kept up.

    Args:
        statuses: Where each provider stands.
        last_good_run: The last run over all sources in which a provider answered; None where none was.
        last_run: The last run over all sources.
        schedules: What running schedulers noted.
        now: The present.
        max_age_hours: A good run must not be longer ago. [h]
        held_rates: The rates of exchange that are held back.
    """
    problems: list[str] = []
    age_hours = None
    if last_good_run is None:
        problems.append("no run over all sources has succeeded yet; `breakeven schedule --once` makes one")
    else:
        age = now - datetime.fromisoformat(str(last_good_run["started_at"]))
        age_hours = age / timedelta(hours=1)
        if age < -AHEAD:
            problems.append(
                f"the last good run is dated {last_good_run['started_at']}, ahead of the clock: a run "
                "with the right clock puts it right"
            )
        if age_hours > max_age_hours:
            problems.append(
                f"the last good run was {age_hours:.0f} h ago, more than the {max_age_hours:g} h allowed"
            )
    if last_run is not None and last_run != last_good_run and last_run["exit_code"] == 3:
        problems.append(f"the last run of {last_run['started_at']} brought nothing: every source failed")
    planned: list[str] = []
    warnings: list[str] = []
    for one in schedules:
        if not one.get("next_run_at"):
            continue
        at = datetime.fromisoformat(str(one["next_run_at"]))
        if now - at <= OVERDUE:
            planned.append(str(one["next_run_at"]))
            continue
        text = f"the scheduler on {one['host']} planned a run for {one['next_run_at']} and made none"
        if last_run is not None and datetime.fromisoformat(str(last_run["started_at"])) > at - OVERDUE:
            warnings.append(f"{text}: another one did; is it running?")
        else:
            problems.append(f"{text}; is it running?")
    warnings += [
        f"{status.provider} failed {status.failures_since_success} times in a row: {status.last_run_reason}"
        for status in statuses
        if status.failures_since_success >= FAILURES_IN_A_ROW and status.last_run_status is RunStatus.FAILED
    ]
    warnings += [
        f"{status.provider}: the newest price is dated {now - timedelta(hours=status.age_hours):%Y-%m-%d}, "
        f"ahead of the clock; `breakeven prices refresh {status.provider}` puts it right"
        for status in statuses
        if status.age_hours is not None and timedelta(hours=status.age_hours) < -AHEAD
    ]
    warnings += [f"rate of exchange: {one.line}" for one in held_rates]
    exchange = (last_run or {}).get("exchange_rates") or {}
    if exchange.get("reason") and not any(one.line == exchange["reason"] for one in held_rates):
        warnings.append(f"no new rates of exchange in the last run: {exchange['reason']}")
    warnings += _old_rates(exchange, last_run)
    tokens = (last_run or {}).get("token_prices") or {}
    if tokens.get("reason"):
        warnings.append(f"no new prices of API tokens in the last run: {tokens['reason']}")
    names = ("verified", "stale", "quarantined", "rejected", "snapshot")
    return Health(
        problems=problems,
        warnings=warnings,
        last_good_run=last_good_run,
        last_run=last_run,
        age_hours=age_hours,
        next_run_at=min(planned, default=None),
        schedules=schedules,
        counts={
            name: sum(getattr(status, name) for status in statuses if not is_witness(status.provider))
            for name in names
        },
    )


def _old_rates(exchange: Mapping[str, Any], last_run: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield that the bank's page, which came, is of long before the run."""
    if last_run is None or exchange.get("reason") or not exchange.get("as_of"):
        return
    run_on = datetime.fromisoformat(str(last_run["started_at"])).date()
    age = run_on - date.fromisoformat(str(exchange["as_of"]))
    if age > RATES_WITHIN:
        when = f"{exchange['as_of']}, {age.days} days before the last run"
        yield f"the bank's rates of exchange are of {when}: an old page?"
