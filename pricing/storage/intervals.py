"""What one more observation does to the stored prices of a series: extend, change, confirm, close."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from pricing.money.rateverdicts import limit
from pricing.offer import Offer, Verdict
from pricing.storage.columns import to_micros

# A price that has not moved in its own currency keeps its interval until the rate moved it by this share.
FX_DRIFT = Decimal("0.01")
# An answer without this share of the offers that a page held before is a part of it: nothing is closed then.
# Source: docs/verification.md, "rows-missing".
MISSING_SHARE = 0.3

# Why a price ended that is stated as before, and is to be had no longer, or again.
SOLD_OUT, BACK = "sold out", "back"
# A day in an address names the edition: gpuhunt's `/v3/aws/20260720/catalog.zip`.
_EDITION = re.compile(r"/20\d{6}(?:[-.]\w+)?(?=/)")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Interval:
    """A stored price of a series, from the first to the last time it was seen."""

    is_barred: bool  # a person rejected it
    micros: int
    cap_micros: int | None  # of a month
    is_open: bool
    is_sold_out: bool
    page: str
    id: int
    series_id: int
    verdict: str
    reasons: str | None
    currency: str
    original: str | None
    first_seen_at: datetime
    last_seen_at: datetime

    def shows(self, offer: Offer, drift: Decimal = FX_DRIFT) -> bool:
        """Whether the offer states the same price; abroad, the provider's own figure decides."""
        micros, cap = to_micros(offer.usd_per_hour), offer.usd_per_month_cap
        if not _is_near(self.cap_micros, None if cap is None else to_micros(cap), offer.currency, drift):
            return False
        if offer.currency == "USD" or offer.currency != self.currency:
            return self.currency == offer.currency and self.micros == micros
        is_stated_so = self.original == plain(offer.price_original)
        return is_stated_so and _is_near(self.micros, micros, offer.currency, drift)

    def bars(self, offer: Offer) -> bool:
        """
        Whether a person rejected what the offer states, however its rate of exchange moved since.

        Not where it moved further than rates do in that time: then the rate may have been what was wrong.
        """
        days = (offer.seen_at - self.first_seen_at).days
        return self.is_open and self.is_barred and self.shows(offer, limit(days) - 1)


def _is_near(before: int | None, now: int | None, currency: str, drift: Decimal) -> bool:
    """Whether an amount is as it was, but for what a rate of exchange moves."""
    if before is None or now is None or currency == "USD":
        return before == now
    return abs(now - before) <= drift * before


@dataclass(slots=True)
class Changes:
    """What a run does to the intervals; gathered first, then written in a few statements."""

    opened: list[Row] = field(default_factory=list)
    extended: dict[tuple[datetime, bool | None], list[int]] = field(default_factory=lambda: defaultdict(list))
    repeated: int = 0  # seen before at the same time: nothing to write
    closed: dict[tuple[datetime, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    promoted: dict[str | None, list[int]] = field(default_factory=lambda: defaultdict(list))
    reasons: dict[str | None, list[int]] = field(default_factory=lambda: defaultdict(list))
    notes: list[str] = field(default_factory=list)

    def observe(self, offer: Offer, row: Row, intervals: Sequence[Interval]) -> None:
        """
        Decide what one offer does to the intervals of its series.

        Args:
            offer: With its verdict.
            row: What to store where it opens an interval.
            intervals: The open ones of the series; all of them where older observations may come.
        """
        if any(interval.last_seen_at > offer.seen_at for interval in intervals):
            self._observe_late(offer, row, intervals)
            return
        barred = next((one for one in intervals if one.bars(offer)), None)
        if barred is not None:  # a person's word holds as long as the price is the same
            self._extend(barred, offer)
            return
        is_verified = offer.verdict == Verdict.VERIFIED
        current = [interval for interval in intervals if interval.is_open]
        verified = next((interval for interval in current if interval.verdict == Verdict.VERIFIED), None)
        other = next((interval for interval in current if interval.verdict != Verdict.VERIFIED), None)
        same = verified if is_verified else other
        is_same = same is not None and same.verdict == offer.verdict and same.shows(offer)
        is_sold_out = offer.available is False
        if same is not None and is_same and is_verified and same.is_sold_out is not is_sold_out:
            # The market of a past day holds what could be had then. A person's word stays with the price.
            self.opened.append(row | {"reasons": same.reasons})
            self._close(same, offer.seen_at, SOLD_OUT if is_sold_out else BACK)
        elif same is not None and is_same:
            self._extend(same, offer)
            if not is_verified and same.reasons != row["reasons"]:
                self.reasons[row["reasons"]].append(same.id)
        elif (
            is_verified and other is not None and other.verdict == Verdict.QUARANTINED and other.shows(offer)
        ):
            self._extend(other, offer)
            self.promoted[row["reasons"]].append(other.id)
            self._close(verified, other.first_seen_at, "changed")
            return
        else:
            self.opened.append(row)
            self._close(same, offer.seen_at, "changed")
        if is_verified:
            self._close(other, offer.seen_at, "resolved")

    def close_vanished(
        self,
        seen: Mapping[int, Offer],
        intervals: Mapping[int, Sequence[Interval]],
        *,
        is_whole: bool,
        missing: Collection[str] = (),
    ) -> None:
        """
        Close what a page that was read no longer lists, unless so little came that it is a part of the page.

        Args:
            seen: Offers of this run by series.
            intervals: Open ones by series.
            is_whole: Whether the run fetched all there is. Saved answers may be a part of it.
            missing: Addresses of which a part did not come; what they list is not gone.
        """
        pages: dict[str, set[int]] = defaultdict(set)
        for series_id, offer in seen.items():
            pages[page_of(offer.source_url)].add(series_id)
        before: dict[str, list[Interval]] = defaultdict(list)
        for interval in (one for of_series in intervals.values() for one in of_series if one.is_open):
            before[interval.page].append(interval)
        at = max(offer.seen_at for offer in seen.values())
        for page, now in pages.items():
            if page in missing:
                self.notes.append(f"a part of {page} did not come, so its other offers stay open")
                continue
            known = {interval.series_id for interval in before[page]}
            kept = len(now) if is_whole else len(now & known)
            if known and (not kept or len(known) - kept > max(MISSING_SHARE * len(known), 1)):
                self.notes.append(f"{kept} of {len(known)} offers came again, so the others stay open")
                continue
            for interval in before[page]:
                if interval.series_id not in seen:
                    self._close(interval, at, "vanished")

    def _observe_late(self, offer: Offer, row: Row, intervals: Sequence[Interval]) -> None:
        """Add an observation older than what is stored as a closed interval: never the current price."""
        around = [i for i in intervals if i.first_seen_at <= offer.seen_at <= i.last_seen_at]
        if any(interval.verdict == offer.verdict and interval.shows(offer) for interval in around):
            self.repeated += 1
            return
        later = [i.first_seen_at for i in intervals if i.first_seen_at > offer.seen_at]
        end = offer.seen_at if around or not later else min(later)
        self.opened.append(row | {"closed_at": end, "closed_why": "late"})

    def _extend(self, interval: Interval, offer: Offer) -> None:
        if offer.seen_at > interval.last_seen_at:
            self.extended[offer.seen_at, offer.available].append(interval.id)
        else:
            self.repeated += 1

    def _close(self, interval: Interval | None, at: datetime, why: str) -> None:
        if interval is not None:
            self.closed[max(at, interval.first_seen_at), why].append(interval.id)


def page_of(url: str) -> str:
    """Return the address of what was read; further pages of one answer, and its editions, count as one."""
    parts = urlsplit(url)
    return f"{parts.netloc}{_EDITION.sub('', parts.path)}" or url


def plain(amount: Decimal) -> str:
    """Write a price in its own currency exactly, without an exponent."""
    return f"{amount.normalize():f}"
