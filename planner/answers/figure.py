"""One figure of an explanation: formula, the numbers put in, the source."""

from dataclasses import dataclass, replace

from planner.answers.money import Money


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure, and how it came about."""

    name: str
    value: float | None
    unit: str
    formula: str
    numbers: str
    source: str
    is_estimate: bool = False
    is_never: bool = False  # without a value because it does not happen, not because it is unknown

    def shown_in(self, money: Money) -> "Figure":
        """Return an amount in the currency shown, with the rate among its numbers; others as they are."""
        if self.value is None or money.currency == "USD" or not self.unit.startswith("USD"):
            return self
        step = f"{self.value:,.4f} USD / {money.usd_per_unit:.4f} USD per {money.currency}"
        return replace(
            self,
            value=money.amount(self.value),
            unit=self.unit.replace("USD", money.currency, 1),
            numbers=f"{self.numbers}; {step}" if self.numbers else step,
        )

    def to_document(self) -> dict[str, object]:
        """Return it as plain JSON values."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "formula": self.formula,
            "numbers": self.numbers,
            "source": self.source,
            "is_estimate": self.is_estimate,
        }
