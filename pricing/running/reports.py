"""How a run went: for people, for scripts, and as an exit code."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pricing.storage.memory import RunStatus

if TYPE_CHECKING:
    from pricing.tokens.tokenprices import TokenReport

REFRESH_SCHEMA = "breakeven.refresh/1"
_COUNTS = (
    *("offers", "verified", "quarantined", "rejected", "problems"),
    *("new", "changed", "unchanged", "closed", "seconds"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderReport:
    """How one provider's part of a run went."""

    provider: str
    title: str
    status: RunStatus
    reason: str | None
    offers: int = 0
    verified: int = 0
    quarantined: int = 0
    rejected: int = 0
    problems: int = 0
    new: int = 0  # offers that were not known
    changed: int = 0
    unchanged: int = 0
    closed: int = 0  # changed, sold out or gone
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def to_document(self) -> Mapping[str, object]:
        """Return the provider's part of `breakeven.refresh/1`."""
        counts: dict[str, object] = {name: getattr(self, name) for name in _COUNTS}
        return {"provider": self.provider, "title": self.title, "status": str(self.status)} | (
            counts | {"reason": self.reason, "notes": list(self.notes)}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeReport:
    """Which rates a run converted with, and why no newer ones."""

    as_of: str  # of the euro against the dollar
    source: str
    reason: str | None  # why the bank's rates of today are not there
    odd: tuple[str, ...] = ()  # rates that were not taken, and why
    held: int = 0  # how many of them wait or take a person

    @property
    def line(self) -> str:
        """Say it in one line."""
        if self.reason is None:
            not_taken = f"; {'; '.join(self.odd)}" if self.odd else ""
            return f"rates of exchange of {self.as_of} ({self.source}){not_taken}"
        return f"no new rates of exchange ({self.reason}); those of {self.as_of} were used"

    def to_document(self) -> Mapping[str, object]:
        """Return the part of `breakeven.refresh/1`."""
        return {"as_of": self.as_of, "source": self.source, "reason": self.reason, "odd": list(self.odd)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """How a run went, provider by provider, in the order asked for."""

    started_at: datetime
    finished_at: datetime
    providers: tuple[ProviderReport, ...]
    exchange: ExchangeReport | None = None  # None where no price in another currency was asked for
    token_prices: "TokenReport | None" = None  # None where the prices of API tokens were not asked for
    notes: tuple[str, ...] = ()  # what was put right before the run

    @property
    def run_id(self) -> str:
        """What a person calls this run."""
        return f"{self.started_at:%Y%m%dT%H%M%SZ}"

    @property
    def exit_code(self) -> int:
        """0 all done or skipped, 1 some failed, 3 all that were asked, with nothing to review."""
        if not self.providers and self.token_prices is not None:
            return 0 if self.token_prices.reason is None else 3
        statuses = Counter(report.status for report in self.providers)
        if not statuses[RunStatus.FAILED]:
            return 0
        is_any_kept = any(report.quarantined or report.rejected for report in self.providers)
        return 1 if statuses[RunStatus.OK] or is_any_kept else 3

    def to_document(self) -> Mapping[str, object]:
        """Return the run as `breakeven.refresh/1`."""
        return {
            "schema": REFRESH_SCHEMA,
            "run_id": self.run_id,
            "started_at": self.started_at.isoformat().replace("+00:00", "Z"),
            "finished_at": self.finished_at.isoformat().replace("+00:00", "Z"),
            "exchange_rates": None if self.exchange is None else self.exchange.to_document(),
            "token_prices": None if self.token_prices is None else self.token_prices.to_document(),
            "notes": list(self.notes),
            "providers": [report.to_document() for report in self.providers],
        }
