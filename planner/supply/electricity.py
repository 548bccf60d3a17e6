"""Electricity where the machines stand: its price and its CO2, with where the figures come from."""

from planner.assumptions import Assumptions
from planner.catalogues.carbon import find_carbon_intensity
from planner.catalogues.tariffs import find_tariff
from planner.errors import UnknownName
from planner.scenario import Scenario


def electricity_price(scenario: Scenario) -> tuple[float, list[str]]:
    """Return the price of electricity, and where it comes from. [USD/kWh]"""
    if scenario.electricity_region is None:
        return scenario.electricity_usd_per_kwh, []
    tariff = find_tariff(scenario.electricity_region)
    note = f"; {tariff.note}" if tariff.note else ""
    text = f"Electricity in {tariff.region_name} ({tariff.sector}): {tariff.usd_per_kwh:.4f} USD/kWh, "
    return tariff.usd_per_kwh, [f"{text}{tariff.as_of}, {tariff.source}{note}."]


def electricity_carbon(scenario: Scenario, assumptions: Assumptions) -> tuple[float | None, list[str]]:
    """Return the CO2 of the electricity, and where the figure comes from. [g/kWh]"""
    if assumptions.is_set("grid_g_co2_per_kwh"):
        return assumptions["grid_g_co2_per_kwh"], []
    if scenario.electricity_region is None:
        return None, []
    try:
        found = find_carbon_intensity(scenario.electricity_region)
    except UnknownName:
        return None, [f"No CO2 of the electricity in {scenario.electricity_region} is known."]
    note = f"; {found.note}" if found.note else ""
    text = f"CO2 of the electricity in {found.region_name}: {found.g_co2_per_kwh:,.0f} g/kWh"
    return found.g_co2_per_kwh, [f"{text} ({found.as_of}, {found.basis}), {found.source}{note}."]
