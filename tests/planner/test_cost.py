from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.breakeven import break_even_utilisation
from planner.cost import (
    Ownership,
    capital_usd_per_year,
    energy_kwh_per_month,
    own_cost,
    resale_fraction,
    token_prices,
    usd_per_available_gpu_hour,
    usd_per_million_tokens,
)

# Eight H100 in one server: the reference case of docs/methodology.md, "Owning".
REFERENCE = Ownership(
    machine_usd=300_000.0,
    network_fraction=0.10,
    term_years=4.0,
    discount_rate=0.10,
    resale_fraction=0.15,
    energy_kwh_per_year=10.2 * 0.8 * 8760,
    pue=1.3,
    usd_per_kwh=0.13,
    rated_kw=10.2,
    colo_usd_per_kw_month=184.06,
    support_fraction_per_year=0.05,
    staff_fte=1 / 50,
    staff_usd_per_fte_year=180_000.0,
    insurance_fraction_per_year=0.005,
)


def test_reference_case_line_by_line() -> None:
    cost = own_cost(REFERENCE)
    assert cost.capital_usd == pytest.approx(94_409.18, abs=0.005)
    assert cost.energy_usd == pytest.approx(12_080.39, abs=0.005)
    assert cost.colo_usd == pytest.approx(22_528.94, abs=0.005)
    assert cost.support_usd == pytest.approx(15_000.0)
    assert cost.staff_usd == pytest.approx(3_600.0)
    assert cost.insurance_usd == pytest.approx(1_500.0)
    assert cost.total_usd == pytest.approx(149_118.51, abs=0.005)
    available = usd_per_available_gpu_hour(cost.total_usd, 8, 0.98)
    assert available == pytest.approx(2.1713, abs=5e-5)
    assert available / 0.6 == pytest.approx(3.6188, abs=5e-5)


def test_reference_case_straight_line_without_interest() -> None:
    cost = own_cost(replace(REFERENCE, discount_rate=0.0))
    assert cost.capital_usd == pytest.approx((330_000 - 45_000) / 4)
    assert usd_per_available_gpu_hour(cost.total_usd, 8, 1.0) == pytest.approx(1.7974, abs=5e-5)
    assert cost.usd_per_month * 12 == pytest.approx(cost.total_usd)


def test_reference_case_with_half_a_person() -> None:
    cost = own_cost(replace(REFERENCE, staff_fte=0.5))
    assert usd_per_available_gpu_hour(cost.total_usd, 8, 0.98) == pytest.approx(3.4293, abs=5e-5)


def test_reference_case_break_even_utilisation() -> None:
    own = float(usd_per_available_gpu_hour(own_cost(REFERENCE).total_usd, 8, 0.98))
    rents = (1.70, 2.35, 2.99, 3.99, 6.88)
    shares = [break_even_utilisation(own, rent) for rent in rents]
    assert shares[0] is None
    assert [round(share * 100) for share in shares[1:] if share is not None] == [92, 73, 54, 32]


def test_energy_is_counted_once_where_the_space_holds_it() -> None:
    assert own_cost(replace(REFERENCE, colo_includes_energy=1.0)).energy_usd == 0.0


def test_energy_is_metered_where_no_space_is_rented_whatever_its_price_would_hold() -> None:
    home = replace(REFERENCE, colo_usd_per_kw_month=0.0)
    assert own_cost(replace(home, colo_includes_energy=1.0)).energy_usd == own_cost(home).energy_usd > 0.0


def test_owned_hardware_costs_its_running_only() -> None:
    cost = own_cost(replace(REFERENCE, is_sunk=True))
    assert cost.capex_usd == cost.resale_usd == cost.capital_usd == cost.depreciation_usd == 0.0
    assert cost.usd_per_month * 12 == pytest.approx(12_080.3904 + 22_528.944 + 15_000 + 3_600 + 1_500)


@pytest.mark.parametrize(
    ("years", "expected"), [(0, 1.0), (1, 0.62), (2, 0.41), (3, 0.29), (4, 0.23), (5, 0.19)]
)
def test_resale_curve(years: float, expected: float) -> None:
    assert resale_fraction(years, 0.15, 0.6) == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize(
    ("floor", "decay", "expected"),
    [(0.30, 0.6, (0.68, 0.51, 0.42, 0.36, 0.33)), (0.08, 0.8, (0.49, 0.27, 0.16, 0.12, 0.10))],
)
def test_resale_curves_of_the_range(floor: float, decay: float, expected: tuple[float, ...]) -> None:
    assert resale_fraction(np.arange(1.0, 6.0), floor, decay) == pytest.approx(expected, abs=0.006)


def test_capital_takes_arrays_and_no_interest() -> None:
    charges = capital_usd_per_year(330_000.0, 45_000.0, 4.0, np.array([0.0, 0.1]))
    assert charges == pytest.approx([71_250.0, 94_409.18], abs=0.005)


@pytest.mark.parametrize(
    ("hours", "utilisation", "idle", "outside", "expected"),
    [
        (121.6, 1.0, 0.12, 0.0, 85.12),  # the sizing page: off when not used
        (121.6, 1.0, 0.12, 1.0, 136.2256),  # idle in the other 608.4 hours
        (730.0, 1.0, 0.12, 1.0, 511.0),
        (730.0, 0.5, 0.2, 1.0, 306.6),  # half the time idle at a fifth
        (121.6, 1.0, 0.0, 1.0, 85.12),
    ],
)
def test_energy_from_idle_to_load(
    hours: float, utilisation: float, idle: float, outside: float, expected: float
) -> None:
    assert energy_kwh_per_month(0.7, hours, utilisation, idle, outside) == pytest.approx(expected)


def test_sizing_page_electricity() -> None:
    assert energy_kwh_per_month(0.7, 4 * 30.4, 1.0, 0.12, 0.0) * 0.175 == pytest.approx(14.90, abs=0.005)


def test_price_of_a_token_at_full_use() -> None:
    assert usd_per_million_tokens(11.96, 3.4) == pytest.approx(977.12, abs=0.005)
    assert usd_per_million_tokens(2.50, 50.0) == pytest.approx(13.89, abs=0.005)


def test_input_and_output_share_the_cost_by_time() -> None:
    prices = token_prices(
        1.0,
        aggregate_tokens_per_s=1000.0,
        prefill_tokens_per_s=20_000.0,
        input_tokens=4096,
        output_tokens=512,
    )
    assert prices.prefill_time_fraction == pytest.approx(0.4)
    assert prices.usd_per_million_output_tokens == pytest.approx(0.60)
    assert prices.usd_per_million_input_tokens == pytest.approx(0.05)


positive = st.floats(min_value=0.01, max_value=1e6)


@given(total=positive, aggregate=positive, prefill=positive, tokens_in=positive, tokens_out=positive)
def test_input_and_output_add_up_to_the_whole(
    total: float, aggregate: float, prefill: float, tokens_in: float, tokens_out: float
) -> None:
    prices = token_prices(
        total,
        aggregate_tokens_per_s=aggregate,
        prefill_tokens_per_s=prefill,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
    )
    assert 0.0 <= prices.prefill_time_fraction <= 1.0
    whole = (
        prices.usd_per_million_output_tokens + prices.usd_per_million_input_tokens * tokens_in / tokens_out
    )
    assert whole == pytest.approx(total)


@given(
    low=st.floats(0.0, 730.0),
    more=st.floats(0.0, 730.0),
    idle=st.floats(0.0, 1.0),
    outside=st.floats(0.0, 1.0),
)
def test_energy_grows_with_hours(low: float, more: float, idle: float, outside: float) -> None:
    less, further = sorted((low, more))
    first = energy_kwh_per_month(1.0, less, 1.0, idle, outside)
    second = energy_kwh_per_month(1.0, further, 1.0, idle, outside)
    assert second >= first - 1e-9


@given(
    field=st.sampled_from(["machine_usd", "usd_per_kwh", "pue", "staff_fte", "colo_usd_per_kw_month"]),
    factor=st.floats(1.0, 10.0),
)
def test_owning_never_gets_cheaper_when_a_price_rises(field: str, factor: float) -> None:
    dearer = replace(REFERENCE, **{field: getattr(REFERENCE, field) * factor})
    assert own_cost(dearer).usd_per_month >= own_cost(REFERENCE).usd_per_month - 1e-9
    assert own_cost(dearer).total_usd >= own_cost(REFERENCE).total_usd - 1e-9
