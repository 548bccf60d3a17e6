"""Rates of exchange are judged: what is misread is never taken, a true move is on the third day."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from pricing.errors import NothingToDecide, ParseError
from pricing.money.ecb import DayRates
from pricing.money.exchange import RateState
from pricing.money.rateverdicts import JudgedRates, KnownRate, judge
from pricing.store import Store

NOW = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
# As bundled, of 2026-10-30: USD 1.1172, HKD 8.7652 (7.8457 to the dollar), DKK 7.4735, GBP 0.8338, CHF
# 0.9194.
KNOWN = RateState().known
PAGE = {currency: rate.units for currency, rate in KNOWN.items()}


def judged(day: str, state: RateState | None = None, **units: str) -> JudgedRates:
    """Judge a page of this day that states the bundled rates but for these; `None` leaves one out."""
    rates = PAGE | {name: Decimal(rate) for name, rate in units.items()}
    stated = {name: rate for name, rate in rates.items() if rate}
    state = state or RateState()
    return judge(DayRates(as_of=date.fromisoformat(day), units_per_euro=stated), state.known, state.waiting)


def rules(found: JudgedRates) -> dict[str, str]:
    return {one.currency: one.rule for one in found.held}


def test_the_bundled_rates_are_those_of_the_bank_digit_by_digit() -> None:
    assert (PAGE["USD"], PAGE["HKD"], PAGE["IDR"], PAGE["ISK"]) == (
        Decimal("1.1172"),
        Decimal("8.7652"),
        Decimal("20275.17"),
        Decimal(136),
    )
    assert {rate.as_of for rate in KNOWN.values()} == {date(2026, 10, 30)}
    assert not {"EUR", "AED", "SAR"} & KNOWN.keys()


def test_a_day_that_moved_a_little_is_taken_whole() -> None:
    found = judged("2026-11-30", USD="1.1500", HKD="9.0230", GBP="0.8500")
    assert (found.held, found.odd) == ((), ())
    assert found.taken == PAGE | {name: found.stated[name] for name in ("USD", "HKD", "GBP")}


@pytest.mark.parametrize("day", ["2026-11-02", "2026-11-30", "2027-10-30", "2036-10-30"])
@pytest.mark.parametrize(
    ("units", "held"),
    [
        ({"USD": "1.3853"}, {"USD": "dollar"}),  # 24 % up: 8.7652 / 1.3853 = 6.327 Hong Kong dollars
        ({"USD": "0.8491"}, {"USD": "dollar"}),  # 24 % down: 10.323
        ({"USD": "1.1600"}, {"USD": "dollar"}),  # 3.8 %: 7.556, and 7.75 / 1.015 = 7.635
        ({"USD": "0.8951"}, {"USD": "inverse"}),  # 1 / 1.1172
        ({"USD": "0.8338", "GBP": "1.1172"}, {"USD": "swapped", "GBP": "swapped"}),
        ({"USD": "8.7652", "HKD": "1.1172"}, {"USD": "swapped", "HKD": "swapped"}),
        ({"USD": "111.72", "HKD": "876.52"}, {"USD": "far", "HKD": "far"}),
        ({"USD": "11.172", "HKD": "0"}, {"USD": "dollar"}),  # ten times, and no tie to check it by
        ({"GBP": "1.1993"}, {"GBP": "inverse"}),  # 1 / 0.8338
        ({"JPY": "1.7568"}, {"JPY": "far"}),
        ({"HKD": "7.8457"}, {"HKD": "dollar"}),  # per dollar where per euro belongs
    ],
)
def test_what_is_misread_is_never_taken_however_old_the_last_rate_is(
    day: str, units: dict[str, str], held: dict[str, str]
) -> None:
    found = judged(day, **units)
    assert rules(found) == held
    assert not held.keys() & found.taken.keys()
    assert bool(found.taken) == ("USD" not in held)  # without the dollar nothing can be converted


def test_a_page_in_another_currency_is_not_taken() -> None:
    per_pound = {name: str(units / PAGE["GBP"]) for name, units in PAGE.items()}
    found = judged("2026-11-30", **per_pound)
    assert set(rules(found).values()) == {"base"}
    assert rules(found).keys() == PAGE.keys()
    assert found.taken == {}


@pytest.mark.parametrize(
    ("day", "gbp", "is_taken"),
    [
        ("2026-10-31", "0.8838", True),  # one day: 1.0600
        ("2026-10-31", "0.8839", False),
        ("2026-10-31", "0.7867", True),  # 0.8338 / 0.7867 = 1.0599
        ("2026-10-31", "0.7866", False),
        ("2026-11-03", "0.9171", True),  # four days: 1.0999
        ("2026-11-03", "0.9172", False),
        ("2026-11-30", "1.0005", True),  # 31 days: 1.1999
        ("2026-11-30", "1.0006", False),
        ("2027-01-30", "1.0672", True),  # 92 days: 1.2799
        ("2027-01-30", "1.0673", False),
        ("2027-10-30", "1.1339", True),  # 365 days: 1.3599
        ("2027-10-30", "1.1340", False),
    ],
)
def test_a_rate_moves_no_further_than_any_did_in_so_many_days(day: str, gbp: str, is_taken: bool) -> None:
    found = judged(day, GBP=gbp)
    assert ("GBP" in found.taken) == is_taken
    assert rules(found) == ({} if is_taken else {"GBP": "move"})


def test_the_reason_is_one_line_with_the_way_out() -> None:
    (line,) = judged("2026-11-30", GBP="1.0100").odd
    assert line == (
        "GBP 1.0100 per euro, after 0.8338 on 2026-10-30: more than 1.20 times within 31 days: waits until "
        "seen on 3 days, 1 so far (`breakeven prices accept ecb:GBP` takes it)"
    )


def test_an_older_page_is_refused() -> None:
    with pytest.raises(ParseError, match="they are of 2026-10-29, older than those in force, of 2026-10-30"):
        judged("2026-10-29")


def test_another_number_for_the_same_day_changes_nothing() -> None:
    found = judged("2026-10-30", GBP="0.8400")
    assert "GBP" not in found.taken
    assert found.odd == ("GBP 0.8400 per euro, and 0.8338 of 2026-10-30 is in force",)


def test_what_is_missing_keeps_its_last_rate_and_is_named() -> None:
    found = judged("2026-11-30", GBP="0", CHF="0")
    assert "USD" in found.taken
    assert found.odd == ("not on the page: CHF, GBP; the last ones stand",)


def test_a_dollar_that_cannot_be_checked_waits() -> None:
    found = judged("2026-11-30", HKD="0", USD="1.1200")
    assert (rules(found), found.taken) == ({"USD": "unchecked"}, {})


def test_a_peg_that_ended_speaks_against_nothing_once_that_is_in_force() -> None:
    known = {name: KnownRate(units=units, as_of=date(2026, 11, 27)) for name, units in PAGE.items()}
    known["HKD"] = KnownRate(units=Decimal("10.00"), as_of=date(2026, 11, 27))  # 8.95 to the dollar
    state = RateState(known=known)
    assert rules(judged("2026-11-30", state, HKD="10.05")) == {}
    assert rules(judged("2026-11-30", state, HKD="10.05", USD="1.3853")) == {"USD": "dollar"}


# -- kept ---------------------------------------------------------------------------------------------


def see(store: Store, day: str, **units: str) -> JudgedRates:
    """Judge a page against what is kept, and keep it."""
    found = judged(day, store.exchange_state(), **units)
    store.keep_exchange_rates(found, NOW)
    return found


def usd_of(store: Store, currency: str) -> tuple[float, str]:
    rate = store.exchange_rates()[currency]
    return round(rate.usd_per_unit, 4), rate.as_of


TRUE_MOVE = {"USD": "1.3500", "HKD": "10.5915"}  # 1.208 times; 7.8456 Hong Kong dollars


def test_a_true_move_of_the_dollar_is_taken_on_the_third_day_of_the_bank(store: Store) -> None:
    assert rules(see(store, "2026-11-26", **TRUE_MOVE)) == {"USD": "move", "HKD": "move"}
    assert usd_of(store, "EUR") == (1.1172, "2026-10-30")
    see(store, "2026-11-26", **TRUE_MOVE)  # the same page once more counts once
    assert [len(one.days) for one in see(store, "2026-11-27", USD="1.3600", HKD="10.6700").held] == [2, 2]
    assert usd_of(store, "EUR") == (1.1172, "2026-10-30")
    found = see(store, "2026-11-30", USD="1.3550", HKD="10.6300")
    assert (found.held, found.odd) == ((), ())
    assert usd_of(store, "EUR") == (1.355, "2026-11-30")
    assert store.exchange_state().waiting == {}


def test_days_that_contradict_each_other_confirm_nothing(store: Store) -> None:
    see(store, "2026-11-25", GBP="1.0100")
    see(store, "2026-11-26", GBP="1.1200")  # 1.109 in a day, more than 1.06: starts anew
    (held,) = see(store, "2026-11-27", GBP="1.1200").held
    assert [day.isoformat() for day in held.days] == ["2026-11-26", "2026-11-27"]
    assert usd_of(store, "GBP")[1] == "2026-10-30"


def test_a_rate_that_is_right_again_waits_no_longer(store: Store) -> None:
    see(store, "2026-11-26", GBP="1.0100")
    assert store.exchange_state().waiting.keys() == {"GBP"}
    see(store, "2026-11-27", GBP="0.8400")
    assert store.exchange_state().waiting == {}
    assert usd_of(store, "GBP") == (1.33, "2026-11-27")  # 1.1172 / 0.84


def test_no_number_of_days_proves_a_misread_page(store: Store) -> None:
    for day in range(2, 28):
        see(store, f"2026-11-{day:02}", USD="0.8951")
    assert usd_of(store, "EUR") == (1.1172, "2026-10-30")


def test_a_rate_that_waits_keeps_its_last_good_one_of_a_run_and_is_still_compared_with_it(
    store: Store,
) -> None:
    see(store, "2026-11-25", GBP="0.8500")
    see(store, "2026-11-26", GBP="85.00")
    assert usd_of(store, "GBP") == (1.3144, "2026-11-25")  # 1.1172 / 0.85, not the bundled one
    assert usd_of(store, "EUR") == (1.1172, "2026-11-26")
    assert rules(see(store, "2026-11-27", GBP="85.00")) == {"GBP": "far"}
    assert usd_of(store, "GBP") == (1.3144, "2026-11-25")
    at = store.exchange_rates(date(2026, 11, 26))["GBP"]
    assert (round(at.usd_per_unit, 4), at.as_of) == (1.3144, "2026-11-25")


def test_a_wrong_rate_in_force_gives_way_to_one_that_its_ties_confirm(store: Store) -> None:
    wrong = {"USD": "0.8951", "HKD": "7.0227"}  # both by the same factor, as a person may have accepted
    rates = PAGE | {name: Decimal(units) for name, units in wrong.items()}
    store.keep_exchange_rates(JudgedRates(as_of=date(2026, 11, 24), stated=rates, taken=rates), NOW)
    assert usd_of(store, "EUR") == (0.8951, "2026-11-24")
    assert rules(see(store, "2026-11-25")) == {"USD": "move", "HKD": "move"}  # 1.1172: not "the inverse"
    see(store, "2026-11-26")
    see(store, "2026-11-27")
    assert usd_of(store, "EUR") == (1.1172, "2026-11-27")


def accept(store: Store, currency: str) -> None:
    store.accept_exchange_rate(currency, reason="seen at the bank", by="ada", now=NOW)


def test_a_person_takes_the_dollar_and_the_rest_of_its_day_comes_with_it(store: Store) -> None:
    see(store, "2026-11-27", **TRUE_MOVE, GBP="85.00")
    accept(store, "USD")
    euro = store.exchange_rates()["EUR"]
    assert (euro.usd_per_unit, euro.as_of) == (1.35, "2026-11-27")
    assert euro.source.endswith("reference rates, accepted by ada on 2026-11-30: seen at the bank")
    assert usd_of(store, "CHF") == (1.4683, "2026-11-27")  # 1.35 / 0.9194
    assert usd_of(store, "GBP")[1] == "2026-10-30"
    assert store.exchange_state().waiting.keys() == {"GBP", "HKD"}
    assert rules(see(store, "2026-11-30", **TRUE_MOVE)) == {"HKD": "move"}  # the dollar is in force


def test_only_what_waits_can_be_accepted_and_after_the_dollar(store: Store) -> None:
    with pytest.raises(NothingToDecide, match="'ecb:GBP' is not held back"):
        accept(store, "GBP")
    see(store, "2026-11-27", USD="0.8951", GBP="85.00")
    with pytest.raises(NothingToDecide, match="accept ecb:USD first"):
        accept(store, "GBP")
