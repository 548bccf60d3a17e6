"""The stored prices: what is known, what counts today or on a past day, and how a run is added."""

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import text

from planner.rates import Rate
from pricing.storage import database, queries, rating
from pricing.storage.engines import TIMEOUT_S, find_target
from pricing.storage.memory import KnownPrice, ProviderResult
from pricing.storage.queries import Where
from pricing.storage.sessions import Sessions
from pricing.storage.statuses import replaced_pages, statuses, unchanged_since
from pricing.storage.stored import LeftOut, ProviderStatus, StoredOffer

if TYPE_CHECKING:
    from decimal import Decimal

    from planner.catalogues.purchases import PricePoint
    from planner.catalogues.tokens import TokenPrice
    from pricing.money.currencies import Rates
    from pricing.money.exchange import RateState
    from pricing.money.rateverdicts import HeldRate, JudgedRates
    from pricing.own.owned import ImportReport
    from pricing.own.ownfile import OwnFile
    from pricing.storage.writing import RecordReport
    from pricing.tokens.tokenprices import Brought, TokenReport
    from pricing.verification.moves import Move
    from pricing.verification.reviewing import Decision, Review

# Verified prices last seen longer ago stay out of plans. Source: docs/interface.md, --max-price-age.
MAX_AGE_DAYS = 14.0
Names = str | Collection[str] | None


class Store(Sessions):
    """
    A database of prices.

    May be shared by threads: each call opens, uses and closes its own transaction. Every failure is a
    `StoreError` in one line.
    """

    @classmethod
    def open(cls, url: str, *, timeout_s: float = TIMEOUT_S) -> Self:
        """
        Open a database; a new one is created and gets the bundled prices, an old one is upgraded.

        Raises:
            StoreError: if it cannot be used.
        """
        target = find_target(url)
        if target.is_memory:
            return cls.in_memory()
        database.ensure(url, timeout_s=timeout_s)
        return cls(target, timeout_s=timeout_s)

    @classmethod
    def in_memory(cls, *, snapshot: bool = True) -> Self:
        """Return a store that ends with the process, for trials."""
        return cls(find_target("sqlite://"), memory=database.new_memory_engine(snapshot=snapshot))

    def revision(self) -> int:
        """Return a number that every write raises: what was computed is good while it stands."""
        with self._reading() as connection:
            query = text("SELECT value FROM store_value WHERE name = 'revision'")
            return int(connection.execute(query).scalar() or 0)

    def rates(
        self,
        now: datetime,
        as_of: date | datetime | None = None,
        max_age_days: float = MAX_AGE_DAYS,
        provider: Names = None,
        gpus: Names = None,
        *,
        cheapest: bool = False,
        by_region: bool = False,
    ) -> list[Rate]:
        """
        Return the prices that can be ranked, cheapest first: whole GPUs of a known name, nothing beside.

        Verified prices of own runs, and the bundled ones of providers that no run has read yet.

        Args:
            now: The present.
            as_of: The market of that day (its end, UTC) or moment instead.
            max_age_days: Verified prices last seen longer ago stay out; bundled ones stay, dated. [d]
            provider: One or several names; None for all.
            gpus: One or several canonical names; None for all.
            cheapest: Only the cheapest of each provider's tier, GPU, count and billing: all that a plan
                chooses from, in a fraction of the time. Sold-out ones all come, since plans count them.
            by_region: With `cheapest`: of each region, for a plan that asks for one.
        """
        selection = _selection(now, as_of, max_age_days, provider, gpus)
        selection = selection._replace(cheapest=cheapest, by_region=by_region)
        with self._reading() as connection:
            return rating.rates(connection, selection, _describe)

    def left_out(
        self,
        now: datetime,
        as_of: date | datetime | None = None,
        max_age_days: float = MAX_AGE_DAYS,
        provider: Names = None,
        gpus: Names = None,
    ) -> list[LeftOut]:
        """Return what `rates` leaves out, as (what, why): counted by provider and reason."""
        selection = _selection(now, as_of, max_age_days, provider, gpus)
        with self._reading() as connection:
            return rating.left_out(connection, selection)

    def current_offers(
        self,
        provider: Names = None,
        gpu: Names = None,
        tier: Names = None,
        region: str | None = None,
        limit: int | None = None,
        as_of: date | datetime | None = None,
    ) -> list[StoredOffer]:
        """
        Return the market: verified prices of own runs and bundled ones, also those that are never ranked.

        What waits in quarantine or was rejected is in `rejected`. Bundled prices whose GPU has an ambiguous
        name are here, as what nobody can rank. Of a past day nothing is known that was seen after it.
        """
        moment = queries.moment_of(as_of)
        where = Where().at(moment).region(region)
        where.add("(p.verdict = 'verified' OR (p.origin = 'snapshot' AND s.gpu IS NULL))")
        where.one_of("s.provider", provider).one_of("s.gpu", gpu).one_of("s.tier", tier)
        with self._reading() as connection:
            found = queries.offers(connection, where, limit=limit, series_first=limit is not None)
        return found if moment is None else [offer.as_seen_by(moment) for offer in found]

    def rejected(self, provider: Names = None, limit: int | None = None) -> list[StoredOffer]:
        """Return what verification holds back, of own runs and bundled, newest first, with the reasons."""
        where = Where().at(None).add(f"p.verdict <> 'verified' AND {queries.REVIEWED}")
        where.one_of("s.provider", provider)
        with self._reading() as connection:
            order = "ORDER BY p.last_seen_at DESC, p.id DESC"
            return queries.offers(connection, where, order, limit)

    def history(
        self,
        gpu: Names = None,
        provider: Names = None,
        tier: Names = None,
        region: str | None = None,
        since: datetime | None = None,
        limit: int | None = None,
        offer_id: str | None = None,
    ) -> list[StoredOffer]:
        """Return all prices there were, oldest first, each from `first_seen_at` to `seen_at`."""
        where = Where().one_of("s.offer_id", offer_id)
        where.region(region).one_of("s.gpu", gpu).one_of("s.provider", provider)
        where.one_of("s.tier", tier)
        if since is not None:
            where.add("p.last_seen_at >= :since", since=since)
        with self._reading() as connection:
            return queries.offers(connection, where, "ORDER BY p.first_seen_at, p.id", limit)

    def known_prices(self, provider: str | None = None) -> list[KnownPrice]:
        """
        Return what verification compares new prices of a provider with, or of all.

        Each series' latest verified price, bundled or of a run, and the one that waits. No witnesses, no own
        contracts.
        """
        with self._reading() as connection:
            return list(queries.known_prices(connection, provider))

    def witness_prices(self, provider: str | None = None) -> list[KnownPrice]:
        """Return what catalogues of others say of a provider's prices, or of all."""
        with self._reading() as connection:
            return list(queries.witness_prices(connection, provider))

    def statuses(self, now: datetime) -> list[ProviderStatus]:
        """Return where each provider's prices stand, by name."""
        with self._reading() as connection:
            return statuses(connection, now)

    def unchanged_since(self, provider: str, digests: Mapping[str, str]) -> dict[str, datetime]:
        """Return for each page since when every successful refresh found it with this SHA-256."""
        with self._reading() as connection:
            return unchanged_since(connection, provider, digests)

    def replaced_pages(self, provider: str, digests: Mapping[str, str]) -> dict[str, datetime]:
        """Return when each page that has been replaced since was last found with this SHA-256."""
        with self._reading() as connection:
            return replaced_pages(connection, provider, digests)

    def record(self, result: ProviderResult) -> "RecordReport":
        """
        Add what one provider brought, as a whole or not at all; readers are not held up.

        Raises:
            StoreError: if the database is read-only, or another writer does not end.
        """
        from pricing.storage import writing

        offers = writing.distinct(result.offers)
        with self._writing() as connection:
            return writing.record(connection, result, offers)

    def decide(
        self,
        offer_id: str,
        decision: "Decision",
        *,
        reason: str,
        by: str,
        now: datetime,
        price: "Decimal | None" = None,
    ) -> "Review":
        """
        Accept or reject a price, in force at once.

        Raises:
            UnknownName: if there is no such offer, or nothing to decide about it.
            UnclearDecision: if several prices of the offer may be meant, or none is so high.
            StoreError: if the database cannot be written.
        """
        (review,) = self.decide_all([(offer_id, price)], decision, reason=reason, by=by, now=now)
        return review

    def decide_all(
        self,
        chosen: "Iterable[tuple[str, Decimal | None]]",
        decision: "Decision",
        *,
        reason: str,
        by: str,
        now: datetime,
    ) -> "list[Review]":
        """Decide the same about several offers, each with the price that is meant, or about none of them."""
        from pricing.verification import reviewing

        with self._writing() as connection:
            return [
                reviewing.decide(connection, one, decision, reason=reason, by=by, now=now, price=price)
                for one, price in chosen
            ]

    def mend_clock(self, now: datetime) -> list[str]:
        """Put right what runs dated ahead of the clock; return a line for each source of which that is so."""
        from pricing.storage import clock

        with self._writing() as connection:
            return clock.mend(connection, now)

    def remove_ended(self, before: datetime) -> int:
        """Remove prices that ended before a time, in short transactions; return how many."""
        from pricing.storage import retention

        total = 0
        while True:
            with self._writing() as connection:
                removed = retention.remove_ended(connection, before)
            total += removed
            if not removed:
                return total

    def moves(self, seen_at: datetime) -> "list[Move]":
        """Return the verified prices that a run changed, the largest moves first."""
        from pricing.verification.moves import moves

        with self._reading() as connection:
            return moves(connection, seen_at)

    def import_own(self, file: "OwnFile", now: datetime) -> "ImportReport":
        """Keep the user's own prices and quotes of one source, in place of what it said before."""
        from pricing.own import owned

        with self._writing() as connection:
            return owned.store(connection, file, now)

    def quotes(self) -> "list[PricePoint]":
        """Return the user's own quotes for hardware, as the planner reads price points."""
        from pricing.own.quotes import quotes

        with self._reading() as connection:
            return quotes(connection)

    def exchange_rates(self, day: date | None = None) -> "Rates":
        """Return the newest rate of each currency, fetched or bundled, or as they stood on a day."""
        from pricing.money.currencies import rates_of

        with self._reading() as connection:
            return rates_of(connection, day)

    def exchange_state(self) -> "RateState":
        """Return what is known of rates of exchange: those in force, and what waits."""
        from pricing.money.exchange import state_of

        with self._reading() as connection:
            return state_of(connection)

    def accept_exchange_rate(self, currency: str, *, reason: str, by: str, now: datetime) -> "HeldRate":
        """
        Take a rate of exchange that is held back.

        Raises:
            NothingToDecide: if it is not held back, or the dollar of its day is.
        """
        from pricing.money import exchange

        with self._writing() as connection:
            return exchange.accept(connection, currency, reason, by, now)

    def keep_exchange_rates(self, brought: "JudgedRates", now: datetime) -> int:
        """Keep the rates of a day that were taken, and what waits; return how many were new."""
        from pricing.money import exchange

        with self._writing() as connection:
            return exchange.keep(connection, brought, now)

    def token_prices(
        self, now: datetime, day: date | None = None, max_age_days: float = MAX_AGE_DAYS
    ) -> tuple["TokenPrice", ...]:
        """Return the prices of API tokens that were fetched, as they are or stood on a day."""
        from pricing.tokens.tokenreading import token_prices

        with self._reading() as connection:
            return token_prices(connection, now, day, max_age_days)

    def held_token_prices(self) -> list[Mapping[str, Any]]:
        """Return the prices of API tokens that wait or were rejected, with the reason."""
        from pricing.tokens.tokenreading import held_back

        with self._reading() as connection:
            return held_back(connection)

    def keep_token_prices(self, brought: "Brought", now: datetime) -> "TokenReport":
        """Judge and keep what a list said of API tokens."""
        from pricing.tokens import tokenprices

        ids = tokenprices.model_ids(price.key for price in brought.prices)
        with self._writing() as connection:
            return tokenprices.keep(connection, brought, ids, now)

    def note(self, name: str, value: Mapping[str, Any] | None) -> None:
        """Keep something about the work of this database under a name, or forget it; no reader is told."""
        from pricing.storage.rows import drop_value, set_value

        with self._writing() as connection:
            if value is None:
                drop_value(connection, name)
            else:
                set_value(connection, name, json.dumps(value))

    def noted(self, name: str) -> Mapping[str, Any] | None:
        """Return what was kept under a name."""
        return self.all_noted(name).get(name)

    def all_noted(self, prefix: str) -> dict[str, Mapping[str, Any]]:
        """Return what was kept under all names that start so."""
        with self._reading() as connection:
            query = text("SELECT name, value FROM store_value WHERE name LIKE :prefix ORDER BY name")
            rows = connection.execute(query, {"prefix": f"{prefix}%"}).all()
        found = {str(row.name): json.loads(row.value) for row in rows}
        return {name: value for name, value in found.items() if isinstance(value, dict)}


def _selection(
    now: datetime, as_of: date | datetime | None, max_age_days: float, provider: Names, gpus: Names
) -> rating.Selection:
    return rating.Selection(now, queries.moment_of(as_of), timedelta(days=max_age_days), provider, gpus)


def _describe(provider: str) -> rating.Described:
    """Return what a plan says of a provider; a name that nobody describes stands for itself."""
    from pricing.provider import shows_asks
    from pricing.registry import provider_infos

    info = provider_infos().get(provider)
    if info is None:
        return rating.Described(provider, None, False)
    return rating.Described(info.title, info.home, shows_asks(info.kind, provider))
