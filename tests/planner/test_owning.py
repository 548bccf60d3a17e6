import pytest

from planner.assumptions import Assumptions, Owner
from planner.catalogues.gpus import all_gpus
from planner.rates import PriceStatus, Tier
from planner.scenario import Scenario
from planner.supply.options import BuyBasis, Kind, Option
from planner.supply.shop import Housing, housing_of, machine_price, read_shop
from tests.planner.plans import CODER, SMALL, plan_of, rate, seed_rates


def bought(found: object, gpu: str) -> Option:
    return next(o for o in found.options if o.kind is Kind.BUY and o.gpu == gpu)  # type: ignore[attr-defined]


def basis_of(option: Option) -> BuyBasis:
    assert isinstance(option.basis, BuyBasis)
    return option.basis


@pytest.mark.parametrize(
    ("gpu", "what", "expected"),
    [
        ("RTX 4090", None, Housing.CARD),
        ("L40S", "card", Housing.CARD),
        ("H100 SXM", None, Housing.MODULE),
        ("Instinct MI300X", None, Housing.MODULE),
        ("B200", "module", Housing.MODULE),
        ("GB200", "rack", Housing.SERVER),
        ("Mac Studio M3 Ultra 512GB", None, Housing.COMPLETE),
        ("DGX Spark (GB10)", "mini-pc", Housing.COMPLETE),
    ],
)
def test_what_a_device_needs_around_it(gpu: str, what: str | None, expected: Housing) -> None:
    assert housing_of(all_gpus()[gpu], what) is expected


def test_price_of_a_machine_holds_its_host() -> None:
    office, home = Assumptions(owner=Owner.OFFICE), Assumptions(owner=Owner.HOME)
    shop = read_shop(Scenario(model=CODER), all_gpus(), None, None, office)
    candidates = {candidate.gpu.name: candidate for candidate in shop.candidates}
    card, module, mac = (candidates[n] for n in ("RTX 4090", "B200", "Mac Studio M3 Ultra 512GB"))
    assert card.purchase is not None
    assert module.purchase is not None
    # Four cards fill a host of 10,000; two take half of it; at home it is 1,314, and never below 487.
    assert machine_price(card, 4, office)[0] == 4 * card.purchase.usd + 10_000
    assert machine_price(card, 2, office)[0] == 2 * card.purchase.usd + 5_000
    assert machine_price(card, 4, home)[0] == 4 * card.purchase.usd + 1_314
    assert machine_price(card, 1, home)[0] == card.purchase.usd + 487
    # A quarter of two B200 is more than half a host.
    assert machine_price(module, 2, office)[0] == pytest.approx(2 * module.purchase.usd * 1.25)
    assert machine_price(mac, 1, office)[0] == 9499.0
    assert "build list" in machine_price(card, 1, office)[1]


def test_sizing_page_purchase() -> None:
    found = plan_of(
        seed_rates(),
        gpu="B200",
        gpus=2,
        provider=["runpod"],
        owner="home",
        set=["purchase_usd=25000", "power_kw=0.7"],
    )
    option = bought(found, "B200")
    assert option.purchase_usd == 25_000
    assert option.power_w == pytest.approx(700)
    assert option.energy_usd_per_month == pytest.approx(14.90, abs=0.005)
    assert option.break_even_months == pytest.approx(17.37, abs=0.005)


def test_monthly_cost_is_depreciation_and_running() -> None:
    found = plan_of(
        seed_rates(),
        gpu="B200",
        gpus=2,
        owner="home",
        set=["purchase_usd=25000", "power_kw=0.7", "resale_fraction=0.2", "term_years=5"],
    )
    # (25,000 - 5,000) / 60 + 14.896
    assert bought(found, "B200").usd_per_month == pytest.approx(348.2293, abs=1e-4)


def test_owned_hardware_costs_its_running_only_and_pays_at_once() -> None:
    found = plan_of(seed_rates(), own="4x RTX PRO 6000 Blackwell Workstation", owner="home")
    option = next(option for option in found.options if option.is_own)
    assert option.name == "4x RTX PRO 6000 Blackwell Workstation (own)"
    assert option.purchase_usd == 0.0
    assert option.break_even_months == 0.0
    # 4 x 600 W x 1.4 x 0.8 = 2,688 W; x 121.6 h x 0.175
    assert option.power_w == pytest.approx(2688)
    assert option.usd_per_month == pytest.approx(57.2006, abs=1e-4)
    assert option.price.status == "own"
    # An API for 3.40 USD a million tokens would cost more than that for what the machine can write.
    assert option.tokens_per_month * 3.40 / 1e6 > option.usd_per_month
    assert found.verdict.startswith(
        "Use your own 4x RTX PRO 6000 Blackwell Workstation: 57.20 USD a month to run"
    )
    assert "Own: your 4x RTX PRO 6000 Blackwell Workstation costs 57.20 USD a month to run" in found.proof[1]
    alone = plan_of(
        seed_rates(), own="4x RTX PRO 6000 Blackwell Workstation", owner="home", tier=["on_demand"]
    )
    assert alone.verdict.startswith(
        "Use your own 4x RTX PRO 6000 Blackwell Workstation: 57.20 USD a month to run at 4 h a day, against "
    )


def test_owned_hardware_that_does_not_hold_it_is_left_out_with_the_number_needed() -> None:
    found = plan_of(seed_rates(), own="2x RTX 4090")
    why = {entry.what: entry.why for entry in found.excluded}
    assert "about 12 would be needed" in why["2x RTX 4090, your own"]
    assert found.verdict.endswith("; your own 2x RTX 4090 does not serve it.")
    assert any(line.startswith("Your own 2x RTX 4090: 270.9 GiB are needed") for line in found.proof)


def test_owned_hardware_that_is_not_the_answer_is_named_all_the_same() -> None:
    rates = [rate(usd_per_hour="0.10")]
    found = plan_of(rates, own="8x H100 SXM", provider=["runpod"])
    assert found.verdict.startswith("Rent 2x B200 from Runpod")
    own = next(option for option in found.options if option.is_own)
    assert f"; your own 8x H100 SXM costs {own.usd_per_month:,.0f} USD a month to run." in found.verdict


def test_budget_leaves_dearer_machines_out_by_name() -> None:
    found = plan_of(seed_rates(), budget_usd=20_000)
    assert all((option.purchase_usd or 0.0) <= 20_000 for option in found.options)
    over = next(entry for entry in found.excluded if "over the budget" in entry.why)
    assert "over the budget of 20,000 USD" in over.why
    assert "USD)" in over.what


def test_devices_that_cannot_be_bought_are_named_by_reason() -> None:
    whys = [entry.why for entry in plan_of([]).excluded]
    assert "no purchase price is known" in whys
    assert "announced or rumoured, never sold" in whys
    assert "rented only, not sold" in whys
    assert any("too old" in why for why in whys)


def test_running_that_costs_as_much_as_renting_never_pays_back() -> None:
    found = plan_of([rate(usd_per_hour="0.10")])
    option = bought(found, "B200")
    assert option.break_even_months is None
    assert option.break_even_hours_per_day is None
    assert "never pays back" in plan_of([rate(usd_per_hour="0.10")], gpu="B200", gpus=2).verdict


def test_break_even_is_against_the_cheapest_verified_rental_that_meets_the_limits() -> None:
    rates = [
        rate("cheapspot", usd_per_hour="2.00", tier=Tier.SPOT),
        rate("oldsnap", usd_per_hour="3.00", status=PriceStatus.SNAPSHOT),
        rate("slowco", "P40", 16, "0.50"),
        rate("good", usd_per_hour="12.00"),
        rate("dear", usd_per_hour="15.00"),
    ]
    found = plan_of(rates)
    option = bought(found, "B200")
    basis = basis_of(option)
    assert basis.against is not None
    assert basis.against.provider == "good"
    saving = 12.00 * 121.6 - float(basis.cost.running_usd_per_month)
    assert option.break_even_months == pytest.approx((option.purchase_usd or 0.0) / saving)
    asked_for_spot = bought(plan_of(rates, tier=["spot"]), "B200")
    assert basis_of(asked_for_spot).against.provider == "cheapspot"  # type: ignore[union-attr]


def test_machine_too_slow_to_talk_to_is_no_measure_for_a_fast_one() -> None:
    rates = [
        rate("slowco", "P40", 16, "0.50", status=PriceStatus.SNAPSHOT),
        rate("good", usd_per_hour="12.00", status=PriceStatus.SNAPSHOT),
    ]
    found = plan_of(rates)
    assert basis_of(bought(found, "B200")).against.provider == "good"  # type: ignore[union-attr]
    slow = bought(found, "Atlas 300I Duo 96GB (310P)")
    assert slow.is_too_slow
    assert basis_of(slow).against.provider == "slowco"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rent", "says"),
    [
        # 25,000 / (5 x 121.6 - 14.896) = 42.15 months; 4: 53.0; 0.70: 356; 0.12 x 121.6 is below 14.896
        ("5.00", "pays back after 42.2 months"),
        ("4.00", "does not pay back within its term of 48 months (after 53)"),
        ("0.70", "does not pay back within its term of 48 months,"),
        ("0.12", "never pays back, since running it alone costs 14.90 USD a month"),
    ],
)
def test_payback_in_words(rent: str, says: str) -> None:
    settings = ["purchase_usd=25000", "power_kw=0.7", "resale_fraction=0"]
    found = plan_of([rate(usd_per_hour=rent)], gpu="B200", gpus=2, owner="home", set=settings)
    assert says.rstrip(",") in found.proof[1]
    if says.endswith(","):
        assert "(after" not in found.proof[1]


def test_payback_within_the_term_by_selling_is_said() -> None:
    settings = ["purchase_usd=25000", "power_kw=0.7"]
    found = plan_of([rate(usd_per_hour="4.00")], gpu="B200", gpus=2, owner="home", set=settings)
    assert "months if it is sold then, after 53 months if it is kept" in found.proof[1]
    sold = plan_of(
        [rate(usd_per_hour="4.00")],
        gpu="B200",
        gpus=2,
        owner="home",
        set=settings,
        provider=["runpod"],
    )
    assert sold.verdict.endswith("on if it is sold then.")


def test_owning_and_renting_cost_the_same_at_the_break_even_hours() -> None:
    found = plan_of([rate(usd_per_hour="40.00")])
    hours = bought(found, "B200").break_even_hours_per_day
    assert hours is not None
    there = plan_of([rate(usd_per_hour="40.00")], hours_per_day=hours)
    assert bought(there, "B200").usd_per_month == pytest.approx(there.rental.usd_per_month)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("hours_per_day", 2.0, 12.0),
        ("electricity_usd_per_kwh", 0.1, 0.4),
        ("set", ["term_years=5"], ["term_years=3"]),
        ("set", ["resale_fraction=0.3"], ["resale_fraction=0.1"]),
        ("set", ["pue=1.1"], ["pue=1.6"]),
        ("set", ["staff_fte_per_server=0.01"], ["staff_fte_per_server=0.5"]),
    ],
)
def test_owning_costs_more_when_an_input_does(name: str, low: object, high: object) -> None:
    less, more = plan_of([rate()], **{name: low}), plan_of([rate()], **{name: high})
    assert bought(less, "B200").usd_per_month < bought(more, "B200").usd_per_month  # type: ignore[operator]


def test_owner_profiles_rank_home_office_colo() -> None:
    costs = [
        bought(plan_of([rate()], owner=owner), "B200").usd_per_month for owner in ("home", "office", "colo")
    ]
    assert costs == sorted(costs)  # type: ignore[type-var]


def test_unified_memory_machine_is_complete_and_single() -> None:
    option = bought(plan_of([rate()]), "Mac Studio M3 Ultra 512GB")
    assert (option.name, option.gpu_count, option.purchase_usd) == ("Mac Studio M3 Ultra 512GB", 1, 9499.0)
    assert option.power_w == pytest.approx(160)  # 0.2 kW x 0.8


def test_price_set_without_a_gpu_reaches_every_machine_and_says_so() -> None:
    found = plan_of([rate()], SMALL, set=["purchase_usd=25000"])
    assert {option.purchase_usd for option in found.options if option.kind is Kind.BUY} == {25_000}
    assert any("set for every machine" in note for note in found.notes)


def test_energy_that_costs_nothing_is_not_counted() -> None:
    """From one's own roof, or in the rent of the room."""
    asked = {"gpu": "B200", "gpus": 2}
    paid, free = (
        bought(plan_of([rate()], **asked, electricity_usd_per_kwh=usd), "B200") for usd in (0.175, 0.0)
    )
    assert free.energy_usd_per_month == 0.0
    assert free.usd_per_month == pytest.approx((paid.usd_per_month or 0) - (paid.energy_usd_per_month or 0))


def test_a_contract_that_holds_the_energy_has_no_effect_where_no_space_is_rented() -> None:
    asked = {"gpu": "B200", "gpus": 2, "hours_per_day": 8}
    plain = bought(plan_of([rate()], **asked), "B200")
    found = plan_of([rate()], **asked, set=["colo_includes_energy=1"])
    held = bought(found, "B200")
    assert any("colo_includes_energy=1 has no effect here" in note for note in found.notes)
    assert held.usd_per_month == plain.usd_per_month
    assert held.break_even_hours_per_day == plain.break_even_hours_per_day
    colo = bought(plan_of([rate()], **asked, owner="colo", set=["colo_includes_energy=1"]), "B200")
    assert (colo.energy_usd_per_month, basis_of(colo).own_usd_per_hour) == (0.0, 0.0)


@pytest.mark.parametrize("demand", [{"tokens_per_month": 1e8}, {"requests_per_s": 0.1}])
def test_with_a_demand_no_hours_say_when_owning_pays_and_the_rent_does(demand: dict[str, float]) -> None:
    # The number of machines follows the hours: 8 h of what took 4 take half of them, so no threshold holds.
    asked = {"gpu": "B200", "gpus": 2, "hours_per_day": 8}
    found = plan_of([rate()], **asked, **demand)
    option = bought(found, "B200")
    assert option.break_even_hours_per_day is None
    assert option.compared_with is not None
    assert not any("h a day" in line and "owning costs less from" in line for line in found.proof)
    (between,) = (note for note in found.notes if note.startswith("Between owning and renting"))
    flip = option.usd_per_month / (8 * 30.4)  # type: ignore[operator]
    assert "for this load at 8 h a day rent if you find" in between
    assert f"under {flip:,.2f} USD/h" in between
    assert "if you would run it more" not in between
    lines = found.cost_by_hours()
    assert (lines.own_usd_per_month, lines.rent_usd_per_month, lines.break_even_hours_per_day) == (None,) * 3
    names = [figure.name for figure in found.explain(found.options.index(option) + 1).figures]
    assert "break-even use" not in names
    assert "rent at which the answer flips" in names
    assert bought(plan_of([rate()], **asked), "B200").break_even_hours_per_day is not None


@pytest.mark.parametrize(
    ("rent", "expected"),
    [
        # 1,100 a month against 48,000 at the start: 48 months at 10 % a year are worth 39.752 first ones.
        (1100.0, "loses 4,273 USD of today over 4 years"),
        (1300.0, None),  # 51,678
        (900.0, None),  # owning costs 1,000 a month: nothing to turn
    ],
)
def test_interest_that_turns_the_monthly_figures_is_said(rent: float, expected: str | None) -> None:
    free = {"owner": "home", "electricity_usd_per_kwh": 0.0}
    price = ["purchase_usd=48000", "resale_fraction=0", "insurance_fraction_per_year=0"]
    hours = {"hours_per_day": 24.0, "days_per_month": 730 / 24}
    rental = rate(gpu_count=1, usd_per_hour=f"{rent / 730:.9f}")
    found = plan_of([rental], model=SMALL, gpu="B200", gpus=1, **free, **hours, set=price)
    assert bought(found, "B200").usd_per_month == pytest.approx(1000.0)
    said = [note for note in found.notes if note.startswith("Interest turns it: at 10.0% a year")]
    assert [expected in note for note in said] == ([True] if expected else [])  # type: ignore[operator]
