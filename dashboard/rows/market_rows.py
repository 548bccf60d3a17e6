"""What the pages show of the market: offers as rows, where each comes from, and what is held back."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import streamlit as st

from dashboard import data, tables
from dashboard.data import KEEP_SECONDS
from planner.answers.money import Money
from pricing.offer import Verdict
from pricing.storage.stored import ProviderStatus, StoredOffer
from pricing.store import Store

UNCLEAR = "unclear name"  # status of a bundled price that nobody can rank: it may be of several GPUs


def market(money: Money) -> Sequence[Mapping[str, Any]]:
    """Return all current offers as rows in the currency shown, those that are never ranked too."""
    opened = data.store()
    return _market(opened.label, opened.revision(), money.currency, money.usd_per_unit, opened, money)


@st.cache_resource(max_entries=4, ttl=KEEP_SECONDS, show_spinner="Reading the prices")
def _market(
    label: str, revision: int, currency: str, rate: float, _store: Store, _money: Money
) -> Sequence[Mapping[str, Any]]:
    present = data.now()
    return [_offer_row(offer, present, _money) for offer in _store.current_offers()]


def counted(words: Iterable[str]) -> Mapping[str, int]:
    """Return how often each word occurs, the most frequent first."""
    return dict(Counter(words).most_common())


def held_back() -> Sequence[StoredOffer]:
    """Return what verification keeps out of every plan, newest first."""
    return data.store().rejected()


def held_beside() -> Sequence[Mapping[str, Any]]:
    """Return what is held back beside rents: rates of exchange and prices of API tokens."""
    opened = data.store()
    rates = [
        {"what": f"rate of exchange, {one.currency}", "why": one.line, "seen": one.days[-1].isoformat()}
        for one in opened.exchange_state().waiting.values()
    ]
    tokens = [
        {
            "what": f"API tokens, {row['model']} at {row['provider']}",
            "why": row["reason"],
            "seen": f"{row['last_seen_at']:%Y-%m-%d}",
        }
        for row in opened.held_token_prices()
    ]
    return [*rates, *tokens]


def may_write() -> bool:
    """Whether this server refreshes prices and takes decisions about them."""
    return not data.settings().read_only and not data.store().is_read_only


def decide(chosen: Iterable[StoredOffer], what: str, *, reason: str, by: str) -> None:
    """Accept or reject these prices, or none of them; time, name and reason are kept with each."""
    from pricing.verification.reviewing import Decision

    prices = [(offer.id, offer.usd_per_hour) for offer in chosen]
    data.store().decide_all(prices, Decision(what), reason=reason, by=by, now=data.now())


def provider_statuses() -> Sequence[ProviderStatus]:
    """Return where each provider's prices stand."""
    return data.store().statuses(data.now())


def history(gpu: str, providers: Sequence[str]) -> Sequence[StoredOffer]:
    """Return all prices of a GPU there were, oldest first."""
    return data.store().history(gpu=gpu, provider=list(providers) or None)


def _offer_row(offer: StoredOffer, present: datetime, money: Money) -> Mapping[str, Any]:
    return {
        "gpu": offer.gpu or offer.gpu_raw,
        "per_gpu_hour": data.in_currency(money, offer.usd_per_gpu_hour),
        "provider": offer.provider,
        "tier": str(offer.tier),
        "region": offer.region,
        "status": UNCLEAR if offer.verdict != Verdict.VERIFIED else offer.standing(present),
        "seen_at": offer.seen_at,
        "source": tables.address_of(offer.source_url),
        "gpu_count": offer.gpu_count,
        "per_hour": data.in_currency(money, offer.usd_per_hour),
        "usd_per_gpu_hour": float(offer.usd_per_gpu_hour),
        "gpu_fraction": offer.gpu_fraction,
        "memory_gb_per_gpu": offer.memory_gb_per_gpu,
        "form": offer.form,
        "instance_type": offer.instance_type,
        "billing": None if offer.billing is None else str(offer.billing),
        "is_ranked": offer.is_rankable,
        "why_not": offer.why_never_ranked,
    }
