"""One figure of an explanation: formula, the numbers put in, the source."""

from dataclasses import dataclass


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
