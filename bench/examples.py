"""
Put the published inputs of others into our formulas: their answer, ours, why they differ (`make examples`).

The examples stand in `bench/data/published_examples.csv`, each with its source.
"""

import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from planner.breakeven import break_even_months, break_even_tokens_per_month
from planner.cost import (
    Ownership,
    energy_kwh_per_month,
    own_cost,
    usd_per_available_gpu_hour,
    usd_per_million_tokens,
)
from planner.supply.depreciation import Way, schedule
from planner.units import HOURS_PER_YEAR

FILE = Path(__file__).parent / "data" / "published_examples.csv"

Inputs = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Example:
    """One published calculation, and what comes out here."""

    name: str
    source: str
    output: str
    unit: str
    notes: str
    published: str  # as it was printed
    ours: float

    @property
    def difference(self) -> float:
        """Ours over the published answer, less one."""
        return self.ours / float(self.published) - 1.0

    @property
    def is_same_when_rounded(self) -> bool:
        """Whether ours, rounded to the places that were printed, is the published answer."""
        printed = Decimal(self.published)
        places = Decimal(1).scaleb(int(printed.as_tuple().exponent))
        return Decimal(self.ours).quantize(places) == printed

    @property
    def why(self) -> str:
        """Why the two differ."""
        if abs(self.difference) < 1e-12:
            return "the same"
        return "rounded" if self.is_same_when_rounded else self.notes


def rent_for_hours(given: Inputs) -> float:
    price = given.get("rate_usd_per_hour", given.get("usd_per_gpu_hour", 0.0))
    hours = given.get("hours_per_month", given.get("hours_per_day", 0.0) * given.get("days_per_month", 0.0))
    return price * hours


def electricity_of_a_month(given: Inputs) -> float:
    kwh = energy_kwh_per_month(given["power_kw"], given["hours_per_month"], 1.0, 0.0, 0.0)
    return float(kwh) * given["electricity_usd_per_kwh"]


def months_to_pay_back(given: Inputs) -> float:
    months = break_even_months(
        given["purchase_usd"], given["cloud_usd_per_month"], given["local_usd_per_month"]
    )
    return float(months or 0.0)


def price_of_a_million(given: Inputs) -> float:
    per_node = given.get("usd_per_gpu_hour", 0.0) * given.get("gpus_per_node", 1.0)
    usd = given.get("rate_usd_per_hour", per_node)
    speed = given.get("tokens_per_second", given.get("output_tokens_per_second_per_node", 0.0))
    return float(usd_per_million_tokens(usd, speed))


def fleet_of_a_day(given: Inputs) -> float:
    return given["avg_nodes"] * given["gpus_per_node"] * given["hours"] * given["usd_per_gpu_hour"]


def tokens_to_pay_back(given: Inputs) -> float:
    fixed = given["usd_per_gpu_hour"] * given["hours_per_month"] * given["utilisation"]
    tokens = break_even_tokens_per_month(fixed, given["api_blended_usd_per_mtok"])
    return float(tokens or 0.0) / 1e6


def saved_over_the_years(given: Inputs) -> float:
    hours = given["years"] * HOURS_PER_YEAR * given["utilisation"]
    rented = given["accelerators"] * hours * given["cloud_usd_per_hour"]
    return rented - given["capex_usd"] - given["energy_and_ops_usd_total"]


def owned_hour(given: Inputs) -> float:
    owned = own_cost(
        Ownership(
            machine_usd=given["all_in_capex_usd_per_gpu"],
            term_years=given["years"],
            discount_rate=0.0,
            resale_fraction=0.0,
            energy_kwh_per_year=0.0,
            pue=1.0,
            usd_per_kwh=0.0,
            rated_kw=0.0,
            support_fraction_per_year=given["opex_share_of_amortisation"] / given["years"],
        )
    )
    return float(usd_per_available_gpu_hour(owned.total_usd, 1, 1.0))


def electricity_of_a_million(given: Inputs) -> float:
    usd_per_hour = given["power_w"] / 1000.0 * given["electricity_cad_per_kwh"]
    return float(usd_per_million_tokens(usd_per_hour, given["tokens_per_second"]))


def failures_of_a_year(given: Inputs) -> float:
    return given["gpu_and_hbm_failures"] / given["gpus"] * 365.0 / given["days"]


def straight_line_year(given: Inputs) -> float:
    return schedule(given["price_usd"], 0.0, given["years"], Way.STRAIGHT_LINE)[0].depreciation_usd


CALCULATIONS: Mapping[str, Callable[[Inputs], float]] = {
    "cloud_cost_per_month": rent_for_hours,
    "local_power_cost_per_month": electricity_of_a_month,
    "break_even_months": months_to_pay_back,
    "cost_per_million_output_tokens": price_of_a_million,
    "cost_per_million_tokens": price_of_a_million,
    "daily_gpu_cost": fleet_of_a_day,
    "break_even_tokens_per_month": tokens_to_pay_back,
    "saving_vs_cloud": saved_over_the_years,
    "owning_cost_per_hour": owned_hour,
    "electricity_cost_per_million_tokens": electricity_of_a_million,
    "annualised_gpu_failure_rate": failures_of_a_year,
    "annual_depreciation": straight_line_year,
}


def examples(file: Path = FILE) -> list[Example]:
    """Return every example with our answer."""
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    return [
        Example(
            name=row["id"],
            source=row["source"],
            output=row["published_output_name"],
            unit=row["unit"],
            notes=row["notes"],
            published=row["value"],
            ours=CALCULATIONS[row["published_output_name"]](json.loads(row["inputs_json"])),
        )
        for row in rows
    ]


def main() -> None:
    header = ("example", "published", "ours", "difference", "unit", "why, source")
    rows = [
        (
            each.name,
            each.published,
            f"{each.ours:,.4f}",
            f"{each.difference:+.2%}",
            each.unit,
            f"{each.why} ({each.source})",
        )
        for each in examples()
    ]
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
