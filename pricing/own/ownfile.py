"""A file of the user's own contract prices and hardware quotes, read strictly."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

from planner.catalogue import close_matches
from planner.catalogues.currencies import FxRate, usd_per_unit
from planner.catalogues.gpus import find_gpu
from planner.catalogues.purchases import Condition, PricePoint
from planner.errors import PlannerError
from planner.rates import Billing, Tier
from planner.units import HOURS_PER_MONTH
from pricing.errors import PricingError
from pricing.offer import MICRO, Offer, Verdict
from pricing.parsing.regions import normalise_region
from pricing.verification.plausibility import hard_limits

COLUMNS: Mapping[str, str] = {
    "kind": "rent or buy",
    "provider": "who rents it out or sells it",
    "gpu": "any name of one device",
    "gpus": "GPUs in the machine; blank: 1",
    "price": "of the whole machine, or of the thing bought",
    "currency": "blank: USD",
    "per": "rent: hour, gpu_hour or month; blank: hour",
    "as_of": "day of the contract or quote; blank: today",
    "source": "contract or quote number; blank: --source",
    "instance_type": "blank: count and GPU",
    "region": "",
    "tier": "rent; blank: on_demand",
    "commitment_days": "rent, of a reservation",
    "billing": "rent; blank: hourly, by the month: monthly",
    "what": "buy: card, module, server 8x, workstation, ...; blank: card",
    "condition": "buy: new, used, refurbished; blank: new",
    "notes": "",
}
_REQUIRED = ("kind", "provider", "gpu", "price")
_EXAMPLES = (
    {
        "kind": "rent",
        "provider": "Acme Cloud",
        "gpu": "H100 SXM",
        "gpus": "8",
        "price": "15.20",
        "currency": "USD",
    }
    | {"per": "hour", "as_of": "2026-11-01", "source": "contract 4711", "region": "eu-central"}
    | {"tier": "reserved_1y", "commitment_days": "365", "billing": "monthly"},
    {
        "kind": "buy",
        "provider": "Example Systems",
        "gpu": "RTX PRO 6000 Blackwell Workstation",
        "price": "7890",
    }
    | {
        "currency": "EUR",
        "as_of": "2026-11-20",
        "source": "quote 2026-118",
        "what": "card",
        "condition": "new",
    },
)
# Errors named in the message; the rest is counted.
NAMED = 5
MAX_BYTES = 5 * 2**20


class ImportRefused(PricingError):
    """A file with rows that cannot be taken; nothing of it was kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnQuote:
    """A quote for hardware."""

    point: PricePoint
    usd: Decimal
    price_original: Decimal
    fx_date: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFile:
    """What a file says."""

    offers: Sequence[Offer]
    quotes: Sequence[OwnQuote]

    @property
    def sources(self) -> list[str]:
        """Return all sources it names."""
        return sorted({*(o.source_url for o in self.offers), *(q.point.source for q in self.quotes)})


def template() -> str:
    """Return a file with all columns and two rows to write over."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_EXAMPLES)
    return out.getvalue()


def read(
    text: str, today: date, source: str | None = None, fx: Mapping[str, FxRate] | None = None
) -> OwnFile:
    """
    Read a CSV file.

    Args:
        text: The file; comma or semicolon between cells.
        today: For rows without a day.
        source: For rows that name none.
        fx: Exchange rates by currency; the bundled ones where None.

    Raises:
        ImportRefused: if it is not such a file, or a row cannot be taken; with each row and the reason.
    """
    rows = _rows(text)
    offers: dict[str, Offer] = {}
    quotes: list[OwnQuote] = []
    errors: list[str] = []
    for number, row in rows:
        try:
            entry = _Reader(row, today, source, fx).entry()
            if isinstance(entry, OwnQuote):
                quotes.append(entry)
            elif offers.setdefault(entry.id, entry) is not entry:
                raise ImportRefused("names the same machine as a row above it")
        except (ImportRefused, PlannerError) as error:
            errors.append(f"row {number}: {error}")
    if errors:
        more = f"; and {len(errors) - NAMED} more" if len(errors) > NAMED else ""
        raise ImportRefused(
            f"{len(errors)} of {len(rows)} rows cannot be taken, so nothing was kept: "
            f"{'; '.join(errors[:NAMED])}{more}"
        )
    return OwnFile(offers=tuple(offers.values()), quotes=tuple(quotes))


def _rows(text: str) -> list[tuple[int, dict[str, str]]]:
    """Return the rows with their numbers as an editor shows them; blank ones are left out."""
    head = text.lstrip("\ufeff").lstrip().partition("\n")[0]
    reader = csv.reader(
        io.StringIO(text.lstrip("\ufeff"), newline=""),
        delimiter=";" if head.count(";") > head.count(",") else ",",
    )
    try:
        table = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise ImportRefused(f"is not a CSV file ({error})") from error
    table = [(number, row) for number, row in table if any(row)]
    if not table:
        raise ImportRefused("holds no row; `breakeven import --template` prints one to fill in")
    header = [name.lower() for name in table[0][1]]
    unknown = [name for name in header if name not in COLUMNS]
    missing = [name for name in _REQUIRED if name not in header]
    if unknown or missing:
        close = close_matches(unknown[0], COLUMNS) if unknown else []
        hint = f"; close matches: {', '.join(close)}" if close else ""
        what = (
            f"has no column {missing[0]!r}" if missing else f"has a column {unknown[0]!r} that nothing reads"
        )
        raise ImportRefused(f"{what}{hint}; `breakeven import --template` prints the columns")
    if len(table) == 1:
        raise ImportRefused("holds a header and no row")
    found = []
    for number, row in table[1:]:
        if len(row) > len(header):
            raise ImportRefused(f"row {number}: has more cells than the header; quote a comma within a cell")
        found.append((number, dict(zip(header, row, strict=False))))
    return found


@dataclass(frozen=True, slots=True)
class _Reader:
    """One row, read cell by cell."""

    row: Mapping[str, str]
    today: date
    source: str | None
    fx: Mapping[str, FxRate] | None

    def entry(self) -> Offer | OwnQuote:
        kind = self.choice("kind", ("rent", "buy"), "")
        return self.offer() if kind == "rent" else self.quote()

    def text(self, name: str, default: str = "") -> str:
        value = " ".join(self.row.get(name, "").split()) or default
        if len(value) > 200:
            raise ImportRefused(f"{name}: {len(value)} letters are too many; give at most 200")
        return value

    def needed(self, name: str, default: str | None = None) -> str:
        value = self.text(name, default or "")
        if not value:
            raise ImportRefused(f"{name} is blank; give {COLUMNS[name]}")
        return value

    def choice(self, name: str, allowed: Sequence[str], default: str) -> str:
        value = self.text(name, default).lower()
        if value not in allowed:
            raise ImportRefused(f"{name}: {value!r} is not one of {', '.join(allowed)}")
        return value

    def whole(self, name: str, default: int | None, top: int) -> int | None:
        value = self.text(name)
        if not value:
            return default
        if not value.isascii() or not value.isdigit() or not 1 <= int(value) <= top:
            raise ImportRefused(f"{name}: {value!r} is not a whole number from 1 to {top}")
        return int(value)

    def amount(self) -> Decimal:
        value = self.needed("price")
        if re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+", value):
            digits, point = value.replace(",", ""), value.replace(",", ".", 1)
            other = "" if value.count(",") > 1 else f", or {point} where the comma is a decimal one"
            raise ImportRefused(f"price: {value!r} has a comma; write {digits} for thousands{other}")
        if re.fullmatch(r"\d{1,3}(\.\d{3})*,\d+|\d+,\d+", value):
            raise ImportRefused(
                f"price: {value!r} has a decimal comma; write {value.replace('.', '').replace(',', '.')}"
            )
        try:
            amount = Decimal(value) if re.fullmatch(r"[\d.]+", value) else Decimal("NaN")
        except InvalidOperation:
            amount = Decimal("NaN")
        if not amount.is_finite() or amount <= 0 or amount > 10**9:
            raise ImportRefused(
                f"price: {value!r} is not an amount above 0; write digits and a decimal point"
            )
        return amount

    def usd(self, amount: Decimal) -> tuple[Decimal, str, str | None]:
        """Return the amount in US dollars, its currency and the day of the rate."""
        currency = self.text("currency", "USD").upper()
        if currency == "USD":
            return amount, currency, None
        rate = usd_per_unit(currency, self.fx)
        return amount * Decimal(repr(rate.usd_per_unit)), currency, rate.as_of

    def day(self) -> date:
        value = self.text("as_of")
        if not value:
            return self.today
        try:
            day = date.fromisoformat(value)
        except ValueError:
            raise ImportRefused(f"as_of: {value!r} is not a date such as 2026-11-04") from None
        if day > self.today:
            raise ImportRefused(f"as_of: {value} is in the future")
        return day

    def device(self) -> str:
        match = find_gpu(self.needed("gpu"))
        if match.ambiguous_with:
            names = ", ".join(match.names)
            raise ImportRefused(f"gpu: {self.text('gpu')!r} may mean {names}; give one of these")
        return match.gpu.name

    def offer(self) -> Offer:
        gpu, count = self.device(), self.whole("gpus", 1, 10_000) or 1
        per = self.choice("per", ("hour", "gpu_hour", "month"), "hour")
        amount = self.amount() * (count if per == "gpu_hour" else 1)
        hourly = amount / Decimal(repr(HOURS_PER_MONTH)) if per == "month" else amount
        usd, currency, fx_date = self.usd(hourly)
        provider = _provider_key(self.needed("provider"))
        billing = self.choice(
            "billing", [str(one) for one in Billing], "monthly" if per == "month" else "hourly"
        )
        day = self.day()
        offer = Offer(
            provider=provider,
            instance_type=self.text("instance_type", f"{count}x {gpu}"),
            gpu=gpu,
            gpu_raw=self.text("gpu"),
            gpu_count=count,
            gpu_fraction=None,
            memory_gb_per_gpu=None,
            form=None,
            region=normalise_region(provider, self.text("region")),
            tier=Tier(self.choice("tier", [str(one) for one in Tier], "on_demand")),
            commitment_days=self.whole("commitment_days", None, 3660),
            usd_per_hour=usd.quantize(MICRO),
            usd_per_month_cap=None,
            currency=currency,
            price_original=usd.quantize(MICRO) if currency == "USD" else hourly.quantize(MICRO),
            fx_date=fx_date,
            billing=Billing(billing),
            available=None,
            vcpus=None,
            ram_gb=None,
            gpu_only=False,
            source_url=self.needed("source", self.source),
            seen_at=datetime(day.year, day.month, day.day, tzinfo=UTC),
            raw=f"{self.text('price')} {currency} per {per.replace('_', ' ')}",
            verdict=Verdict.VERIFIED,
        )
        beyond = hard_limits(offer, None)
        if beyond is not None:
            raise ImportRefused(f"price: {offer.raw} for {count} GPUs: {beyond}; check price, per and gpus")
        return offer

    def quote(self) -> OwnQuote:
        amount = self.amount()
        usd, currency, fx_date = self.usd(amount)
        conditions = [str(one) for one in Condition if one is not Condition.UNSTATED]
        point = self.point(float(usd), currency, conditions)
        return OwnQuote(point=point, usd=usd, price_original=amount, fx_date=fx_date)

    def point(self, usd: float, currency: str, conditions: Sequence[str]) -> PricePoint:
        build: Callable[..., PricePoint] = PricePoint
        try:
            return build(
                gpu=self.device(),
                what=self.text("what", "card").lower(),
                condition=Condition(self.choice("condition", conditions, "new")),
                usd_low=usd,
                usd_high=usd,
                currency_original=currency,
                as_of=self.day().isoformat(),
                seller=self.needed("provider"),
                source=self.needed("source", self.source),
                notes=self.text("notes"),
                checked=self.today.isoformat(),
            )
        except ValueError as error:
            raise ImportRefused(f"what: {error}") from error


def _provider_key(name: str) -> str:
    """Return the key of a known provider, or one made of the name."""
    from pricing.registry import provider_infos

    key = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    bare = key.replace("-", "")
    return next((known for known in provider_infos() if known.replace("-", "") == bare), key or name)
