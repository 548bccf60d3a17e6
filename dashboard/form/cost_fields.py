"""The inputs on use and money: demand, owning, prices."""

from collections.abc import Sequence

from dashboard.form.field import Field, Kind
from planner.assumptions import Owner, all_assumptions
from planner.rates import Tier
from planner.supply.paths import RentPath


def _currencies() -> Sequence[str]:
    from planner.catalogues.currencies import all_currencies

    return tuple(all_currencies())


def _regions() -> Sequence[str]:
    from planner.catalogues.tariffs import all_tariffs

    return tuple(dict.fromkeys(tariff.region_code for tariff in all_tariffs() if tariff.is_preferred))


def _providers() -> Sequence[str]:
    from pricing.registry import provider_infos

    return tuple(provider_infos())


def _settable() -> Sequence[str]:
    """Return every assumption that `--set` may change, as it would be written at its default."""
    return tuple(
        f"{record.name}={record.value:g}"
        for record in all_assumptions().values()
        if record.option is None and record.value is not None
    )


USE = (
    Field(
        name="hours_per_day",
        label="Hours a day [h]",
        kind=Kind.SLIDER,
        low=0.1,
        high=24.0,
        step=0.1,
        format="%.1f",
        hint="Hours in which the service is there, not hours of load.",
    ),
    Field(
        name="days_per_month",
        label="Days a month",
        kind=Kind.NUMBER,
        low=0.1,
        high=31.0,
    ),
    Field(
        name="tokens_per_month",
        label="Demand [output tokens/month]",
        kind=Kind.NUMBER,
        low=1.0,
        high=1e15,
        hint="Empty: hours are presence, and the tokens of options differ. Given: each is sized to carry it.",
    ),
    Field(
        name="requests_per_s",
        label="Demand [requests/s]",
        kind=Kind.NUMBER,
        low=0.0001,
        high=1e9,
        hint="In place of tokens a month.",
    ),
    Field(
        name="peak_factor",
        label="Peak over mean load",
        kind=Kind.NUMBER,
        low=1.0,
        high=1000.0,
        hint="Only with a demand.",
    ),
    Field(
        name="load_profile",
        label="Load of the day",
        kind=Kind.TEXT,
        hint="Only with a demand: 8-18=1,18-23=0.3, or 24 numbers. In place of the peak; its hours count.",
    ),
    Field(
        name="max_ttft_ms",
        label="Longest wait for the first token [ms]",
        kind=Kind.NUMBER,
        low=1.0,
        high=1e9,
        hint="Empty: no limit. Slower machines are left out.",
    ),
    Field(
        name="max_tpot_ms",
        label="Longest wait between tokens [ms]",
        kind=Kind.NUMBER,
        low=0.01,
        high=1e9,
        hint="Empty: no limit. Slower machines are left out; 100 ms are 10 tokens/s.",
    ),
    Field(
        name="min_tokens_per_s_per_user",
        label="Slowest useful speed [tokens/s]",
        kind=Kind.NUMBER,
        low=0.0,
        high=1e6,
        hint="Slower options rank last, as too slow to talk to.",
    ),
)
OWNING = (
    Field(
        name="rent_path",
        label="Rents in the months to come",
        kind=Kind.CHOICE,
        options=lambda: tuple(RentPath),
        hint="flat; decline: down 20 % a year; shock: up 40 % within five months, then down. A note of the "
        "plan gives the break-even on all three.",
    ),
    Field(
        name="budget_usd",
        label="Hardware budget [USD]",
        kind=Kind.NUMBER,
        low=1.0,
        high=1e9,
        placeholder="no limit",
        hint="Empty: no limit.",
    ),
    Field(
        name="electricity_usd_per_kwh",
        label="Electricity [USD/kWh]",
        kind=Kind.NUMBER,
        low=0.0,
        high=100.0,
        hint="Leave it as it is where a region is chosen below: its dated tariff counts then.",
    ),
    Field(
        name="electricity_region",
        label="Electricity region",
        kind=Kind.CHOICE,
        options=_regions,
        accepts_new=True,
        hint="A dated tariff, in place of a price of your own. US-CA:industrial names the sector too.",
    ),
    Field(
        name="owner",
        label="Who owns",
        kind=Kind.CHOICE,
        options=lambda: tuple(Owner),
        hint="Sets the defaults of owning. home: no staff cost, no cooling overhead.",
    ),
    Field(
        name="own",
        label="Hardware already there",
        kind=Kind.TEXT,
        hint="For instance 2x RTX 4090: only its running cost counts.",
    ),
    Field(
        name="set",
        label="Other assumptions",
        kind=Kind.MANY,
        options=_settable,
        accepts_new=True,
        hint="NAME=VALUE, for instance purchase_usd=25000. The page Method lists every one with its source.",
    ),
)
PRICES = (
    Field(name="provider", label="Providers", kind=Kind.MANY, options=_providers, hint="Empty: all."),
    Field(name="tier", label="Tiers", kind=Kind.MANY, options=lambda: tuple(Tier), hint="Empty: all."),
    Field(
        name="region",
        label="Regions",
        kind=Kind.MANY,
        accepts_new=True,
        hint="Empty: all. Type the region as the provider calls it.",
    ),
    Field(
        name="max_price_age",
        label="Oldest verified price [days]",
        kind=Kind.NUMBER,
        low=0.0,
        high=36500.0,
    ),
    Field(name="as_of", label="Prices as they stood on", kind=Kind.DAY, hint="Empty: now."),
    Field(
        name="currency",
        label="Currency shown",
        kind=Kind.CHOICE,
        options=_currencies,
        hint="At a dated reference rate; prices are without VAT.",
    ),
)
