"""What hosted models cost per token: dated prices of API providers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from types import MappingProxyType

from planner.catalogue import checked_day, is_known_by, optional_float, read_csv
from planner.rates import PriceStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """The price of one model at one provider."""

    provider: str
    model_name: str  # as the provider writes it
    model_id: str | None  # of the catalogue; None where it is not in there
    has_open_weights: bool | None
    usd_per_mtok_input: float | None
    usd_per_mtok_output: float | None
    usd_per_mtok_cached_input: float | None
    as_of: str
    source: str
    notes: str
    checked: str
    status: PriceStatus = PriceStatus.SNAPSHOT
    is_gone: bool = False  # the list that had it has it no more

    def is_known_by(self, day: date | None) -> bool:
        """Whether it was known on that day; None is now."""
        return is_known_by(self.as_of, self.checked, day)


@cache
def all_token_prices() -> tuple[TokenPrice, ...]:
    """Return all token prices, in the order of the catalogue."""
    return tuple(
        TokenPrice(
            provider=row["provider"],
            model_name=row["model"],
            model_id=row["model_id"] or None,
            has_open_weights={"yes": True, "no": False}.get(row["open_weights"]),
            usd_per_mtok_input=optional_float(row["usd_per_mtok_input"]),
            usd_per_mtok_output=optional_float(row["usd_per_mtok_output"]),
            usd_per_mtok_cached_input=optional_float(row["usd_per_mtok_cached_input"]),
            as_of=checked_day(row["as_of"]),
            source=row["source"],
            notes=row["notes"],
            checked=row["checked"],
        )
        for row in read_csv("api_prices.csv")
    )


def api_prices(model_id: str) -> tuple[TokenPrice, ...]:
    """Return what API providers charge for a model of the catalogue; empty where none is known."""
    return _by_model().get(model_id, ())


def merged(bundled: Iterable[TokenPrice], fetched: Iterable[TokenPrice]) -> list[TokenPrice]:
    """
    Return the bundled prices of a model with newer ones in the place of those they replace.

    A fetched price counts where it was seen on the day on which the bundled one was read, or later.
    """
    found = {(price.provider, price.model_name): price for price in bundled}
    rest = [price for price in bundled if found[price.provider, price.model_name] is not price]
    for price in fetched:
        held = found.get((price.provider, price.model_name))
        if held is None or price.as_of >= held.checked:
            found[price.provider, price.model_name] = price
    return [*found.values(), *rest]


@cache
def _by_model() -> Mapping[str, tuple[TokenPrice, ...]]:
    by_model: dict[str, list[TokenPrice]] = {}
    for price in all_token_prices():
        if price.model_id:
            by_model.setdefault(price.model_id, []).append(price)
    return MappingProxyType({model_id: tuple(prices) for model_id, prices in by_model.items()})
