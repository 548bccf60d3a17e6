"""Amounts as a person reads them, in the currency that was asked for."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.catalogues.currencies import FxRate, usd_per_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """A display currency and its dated reference rate."""

    currency: str = "USD"
    usd_per_unit: float = 1.0
    as_of: str | None = None
    source: str | None = None

    @classmethod
    def of(cls, currency: str, rates: Mapping[str, FxRate] | None = None) -> "Money":
        """
        Return the display currency of this code.

        Args:
            currency: ISO 4217 code.
            rates: By currency; the bundled ones where None.

        Raises:
            UnknownName: if there is no rate of it.
        """
        if currency == "USD":
            return cls()
        rate = usd_per_unit(currency, rates)
        return cls(
            currency=rate.currency, usd_per_unit=rate.usd_per_unit, as_of=rate.as_of, source=rate.source
        )

    @property
    def rate_text(self) -> str | None:
        """The currency, its rate, day and source in a sentence; None where amounts are in dollars."""
        if self.as_of is None:
            return None
        return (
            f"Shown in {self.currency} at the reference rate of {self.as_of}: 1 {self.currency} = "
            f"{self.usd_per_unit:.4f} USD ({self.source})."
        )

    def amount(self, usd: float) -> float:
        """Return an amount in this currency."""
        return usd / self.usd_per_unit

    def text(self, usd: float) -> str:
        """Write an amount: whole units from 100 up, two places below."""
        amount = self.amount(usd)
        return f"{amount:,.0f} {self.currency}" if abs(amount) >= 100.0 else f"{amount:,.2f} {self.currency}"

    def exact(self, usd: float) -> str:
        """Write an amount with two places, as an hourly price is read."""
        return f"{self.amount(usd):,.2f} {self.currency}"
