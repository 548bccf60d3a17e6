"""What a reader must know beside the ranking: what the figures stand for, and where they are weak."""

from collections import Counter
from collections.abc import Iterable, Sequence

from planner.answers.choice import chosen_purchase, chosen_rental, passed_over
from planner.answers.money import Money
from planner.answers.paying import value_today_usd
from planner.answers.unused import unused_settings
from planner.answers.words import price_date_text, tokens_text, years_text
from planner.assumptions import Assumptions
from planner.breakeven import break_even_rent_usd_per_hour
from planner.measurements.measured import Measurement
from planner.rates import PriceStatus
from planner.scenario import DEFAULT_HOURS_PER_DAY, DEFAULT_MODEL, Scenario
from planner.supply.growth import GROWTH
from planner.supply.load import LoadProfile
from planner.supply.options import BuyBasis, Kind, Option

# More than a person orders at a list price: eight servers of eight. Source: own choice.
MANY_GPUS = 64
# So many output tokens a month are agreed upon, not ordered from a list. Source: own choice.
MANY_TOKENS_PER_MONTH = 1e12

_STATUS = {
    PriceStatus.VERIFIED: "verified",
    PriceStatus.STALE: "stale (verified, last seen more than two days ago)",
    PriceStatus.SNAPSHOT: "snapshot",
    PriceStatus.OWN: "of your own",
}


def remarks(
    scenario: Scenario,
    options: Sequence[Option],
    assumptions: Assumptions,
    money: Money,
    measurement: Measurement | None,
) -> list[str]:
    """Return the remarks in order of weight."""
    rental, purchase = chosen_rental(options, scenario), chosen_purchase(options, scenario)
    return [
        *scenario.warnings,
        *_use(scenario, options),
        *_latency(scenario, options),
        *_scale(options, rental),
        *_threshold(scenario, rental, purchase, money),
        *_interest(purchase, assumptions, money),
        *_unlike(rental, purchase, scenario),
        *_sizing_page(scenario, assumptions, purchase),
        *_prices(scenario, options, rental),
        *_not_counted(options, rental, purchase, scenario),
        *_settings(scenario, assumptions, options, measurement),
        *unused_settings(options, assumptions, has_demand=scenario.has_demand),
        *_left_open(assumptions, options),
        *_currency(money),
    ]


def _use(scenario: Scenario, options: Sequence[Option]) -> Iterable[str]:
    """Say what the hours or the demand mean."""
    if scenario.has_demand:
        factor = scenario.peak_factor
        peak = f"a peak of {factor:g} times the mean" if factor else "an even load (no peak factor given)"
        yield (
            f"Every option is sized to carry the demand within {scenario.hours_per_month:,.1f} h a month and "
            f"{peak}."
            if scenario.profile is None
            else _profile_text(scenario.profile, scenario)
        )
        return
    yield (
        "No demand was given, so the hours are presence: each option runs "
        f"{scenario.hours_per_month:,.1f} h a month at batch {scenario.batch}, and the tokens it could write "
        "differ. Give --tokens-per-month or --requests-per-s to have every option sized for the same load."
    )
    api = next((option for option in options if option.kind is Kind.API and option.tokens_per_month), None)
    if api is not None:
        yield (
            f"APIs are priced for {tokens_text(api.tokens_per_month or 0.0)} output tokens a month, all that "
            "the machine of the verdict could write in those hours; with less use they cost less."
        )


def _latency(scenario: Scenario, options: Sequence[Option]) -> Iterable[str]:
    """Say that limits of latency are not held against APIs."""
    if scenario.limits_latency and any(option.kind is Kind.API for option in options):
        yield (
            "The limits of latency are kept by every machine listed; of APIs none is known and none was "
            "checked: measure the one you would call, from where you would call it."
        )


def _scale(options: Sequence[Option], rental: Option | None) -> Iterable[str]:
    """Say where a list price is multiplied by more than anybody has promised to sell at it."""
    gpus = 0 if rental is None else rental.replicas * (rental.gpu_count or 0)
    if rental is not None and gpus > MANY_GPUS:
        yield (
            f"The rental takes {gpus:,} GPUs at the list price of one machine: whether "
            f"{rental.provider_title or rental.provider} has so many is not known; ask for a quote."
        )
    api = next((option for option in options if option.kind is Kind.API), None)
    if api is not None and (api.tokens_per_month or 0.0) > MANY_TOKENS_PER_MONTH:
        yield (
            f"APIs are priced by their lists for {tokens_text(api.tokens_per_month or 0.0)} output tokens a "
            "month: none is known to carry so much at that price; ask for a quote."
        )


def _profile_text(profile: LoadProfile, scenario: Scenario) -> str:
    """Say what the shape of the day means."""
    return (
        f"Every option is sized for the busiest hour of the day, {profile.peak_factor:.2f} times the "
        f"mean of its {profile.service_hours_per_day} hours with load "
        f"({scenario.hours_per_month:,.1f} h a month). Rentals paid by use start and stop their copies "
        "with it; machines owned or reserved stay for all of it."
    )


def _threshold(
    scenario: Scenario, rental: Option | None, purchase: Option | None, money: Money
) -> Iterable[str]:
    """Say at which use, and at which rent, the answer flips."""
    if rental is None or purchase is None or purchase.usd_per_month is None or purchase.is_own:
        return
    if scenario.profile is not None:  # the hours of the day are given, and none are asked about
        return
    slow = ", both too slow to talk to" if rental.is_too_slow else ""
    lead = f"Between owning and renting{slow}:"
    flip = break_even_rent_usd_per_hour(purchase.usd_per_month, scenario.hours_per_month)
    price = f"a machine that serves it under {money.exact(flip)}/h"
    if rental.replicas > 1:
        price = f"machines that serve it for under {money.exact(flip)}/h together"
    hours_text = f"{scenario.hours_per_day:g} h a day"
    if scenario.has_demand:  # in other hours the same load takes another number of machines
        own = purchase.times_text
        yield f"{lead} for this load at {hours_text} rent if you find {price}; else own {own}."
        return
    hours = purchase.break_even_hours_per_day
    own = (
        f"own {purchase.times_text} if you would run it more than {hours:,.1f} h a day"
        if hours is not None
        else (f"owning {purchase.times_text} does not pay at any number of hours a day")
    )
    yield f"{lead} {own}; at {hours_text} rent if you find {price}."


def _interest(purchase: Option | None, assumptions: Assumptions, money: Money) -> Iterable[str]:
    """Say where interest on the price turns what the monthly figures say."""
    basis = None if purchase is None else purchase.basis
    if purchase is None or purchase.is_own or not isinstance(basis, BuyBasis) or assumptions[GROWTH]:
        return
    against = basis.against
    if against is None or against.usd_per_month is None or purchase.usd_per_month is None:
        return
    if purchase.usd_per_month >= against.usd_per_month:
        return
    value = value_today_usd(basis, assumptions)
    if value is None or value >= 0.0:
        return
    yield (
        f"Interest turns it: at {assumptions['discount_rate']:.1%} a year on its price, owning "
        f"{purchase.times_text} instead of renting {against.times_text} loses {money.text(-value)} of "
        f"today over {years_text(float(basis.cost.term_years))} (net present value); the monthly figures "
        "hold no interest."
    )


def _unlike(rental: Option | None, purchase: Option | None, scenario: Scenario) -> Iterable[str]:
    """Say that machine rented and machine bought are not the same."""
    if rental is None or purchase is None or rental.point is None or purchase.point is None:
        return
    if (rental.gpu, rental.gpu_count) == (purchase.gpu, purchase.gpu_count):
        return
    rented, bought = rental.point.speed.decode_tokens_per_s, purchase.point.speed.decode_tokens_per_s
    # What is too slow counts only where all is: then neither is fast enough.
    floor = f"both are below the {scenario.min_tokens_per_s_per_user:g} tokens/s asked for"
    yield (
        f"Unlike machines: the rental ({rental.name}) writes {rented:,.1f} tokens/s for one user and the "
        f"purchase ({purchase.name}) {bought:,.1f}; each is priced at its own speed, and "
        f"{floor if rental.is_too_slow else 'both meet the same limits'}."
    )


def _sizing_page(scenario: Scenario, assumptions: Assumptions, purchase: Option | None) -> Iterable[str]:
    """Say why the plan of the public sizing page's model differs from what that page prints."""
    is_its_question = (scenario.model, scenario.hours_per_day) == (DEFAULT_MODEL, DEFAULT_HOURS_PER_DAY)
    if not is_its_question or scenario.has_demand or purchase is None or assumptions.is_set("purchase_usd"):
        return
    yield (
        "The public sizing page for this model answers 17.4 months, since it sets two rented B200 against a "
        "machine of 25,000 USD that cannot be two B200, takes 3.4 tokens/s of one user for both, and counts "
        'no resale, staff, cooling or idle hours (docs/methodology.md, "Plan").'
    )


def _prices(scenario: Scenario, options: Sequence[Option], rental: Option | None) -> Iterable[str]:
    """Say how far the rental prices can be trusted."""
    rented = [option for option in options if option.kind is Kind.RENT]
    if not rented:
        refresh = " `breakeven prices refresh` fetches current ones." if scenario.as_of is None else ""
        yield f"No rental price counts for this; what is left out says why.{refresh}"
        return
    counts = Counter(option.price.status for option in rented)
    parts = [f"{counts[status]} {word}" for status, word in _STATUS.items() if counts[status]]
    days = [option.price.seen_at[:10] for option in rented if option.price.seen_at]
    yield f"Rental prices: {', '.join(parts)}; dated {min(days)} to {max(days)}.{_waiting(rented, rental)}"
    if rental is not None and not rental.is_current:
        yield (
            f"No verified price meets the limits, so break-evens are against a {price_date_text(rental)}. "
            "`breakeven prices refresh` fetches current ones."
        )


def _waiting(rented: Sequence[Option], rental: Option | None) -> str:
    """Say of how many rentals a newer price waits to be confirmed, and of the cheapest one which."""
    count = sum(option.waiting is not None for option in rented)
    if not count:
        return ""
    text = f" Of {count} a newer price waits in quarantine"
    text += ", and the last verified one counts until it is confirmed."
    if rental is not None and rental.waiting is not None:
        text += f" So it is with {rental.offer_text}: {rental.waiting}."
    return text


def _not_counted(
    options: Sequence[Option], rental: Option | None, purchase: Option | None, scenario: Scenario
) -> Iterable[str]:
    """Say which cheaper rows of the ranking the answer passes over, and why."""
    chosen = {Kind.RENT: rental, Kind.BUY: purchase}
    why = Counter(
        reason
        for option, reason in zip(options, passed_over(options, scenario), strict=True)
        if reason is not None
        and (best := chosen.get(option.kind)) is not None
        and (option.usd_per_month or 0.0) < (best.usd_per_month or 0.0)
    )
    if why:
        parts = ", ".join(f"{count} ({reason})" for reason, count in why.most_common())
        spot = "; --tier spot plans with spot machines" if any("spot" in reason for reason in why) else ""
        yield f"Cheaper, but not counted: {parts}{spot}."


def _settings(
    scenario: Scenario,
    assumptions: Assumptions,
    options: Sequence[Option],
    measurement: Measurement | None,
) -> Iterable[str]:
    """Say what a setting reaches farther, or less far, than was probably meant."""
    wide = [name for name in ("purchase_usd", "power_kw") if assumptions.is_set(name)]
    if wide and scenario.gpu is None and any(option.kind is Kind.BUY for option in options):
        yield (
            f"{' and '.join(wide)} {'are' if len(wide) > 1 else 'is'} set for every machine to buy; name the "
            "one that is meant with --gpu and --gpus."
        )
    if measurement is not None:
        machine = f"{measurement.gpu_count}x {measurement.gpu}"
        if any((option.gpu, option.gpu_count) == measurement.key for option in options):
            yield (
                f"The speed of {machine} is measured ({measurement.source}); all others are estimates."
                if not measurement.is_estimate
                else f"The speed of {machine} is the estimate of {measurement.source}, not of this program."
            )
        else:
            word = "estimated" if measurement.is_estimate else "measured"
            yield f"The {word} speed of {machine} is not used: no option is that machine (--gpus)."


def _left_open(assumptions: Assumptions, options: Sequence[Option]) -> Iterable[str]:
    """Say what no figure holds."""
    left = [
        words
        for name, words in (
            ("storage_usd_per_gb_month", "storage of the weights"),
            ("egress_usd_per_gb", "outgoing traffic"),
        )
        if assumptions[name] == 0.0
    ]
    if left and any(option.kind is Kind.RENT for option in options):
        yield f"Not in the rents: {' and '.join(left)}; --set adds them. Prices are without VAT."
    if any(isinstance(option.basis, BuyBasis) for option in options):
        yield (
            f"Owning as {assumptions.owner}: PUE {assumptions['pue']:g}, "
            f"{years_text(assumptions['term_years'])}; `breakeven plan --assumptions` lists every figure and "
            "its source."
        )


def _currency(money: Money) -> Iterable[str]:
    """Say at which rate amounts are shown."""
    if money.rate_text is not None:
        yield money.rate_text
