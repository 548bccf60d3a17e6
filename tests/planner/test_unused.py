"""A value of --set that reaches no option says so; one that does is not accused."""

import pytest

from planner.supply.options import Kind
from tests.planner.plans import SMALL, plan_of, rate

CARD = {"gpu": "RTX 4090", "gpus": 1}
MODULES = {"gpu": "B200", "gpus": 2}


def complaints(*settings: str, model: str = SMALL, **options: object) -> list[str]:
    rates = [rate("runpod", "RTX 4090", 1, "0.40"), rate()]
    notes = plan_of(rates, model, set=list(settings), **options).notes
    return [note for note in notes if "has no effect here" in note]


@pytest.mark.parametrize(
    ("settings", "options", "expected"),
    [
        (
            ["network_fraction=0.2", "purchase_usd=90000"],
            MODULES,
            "--set network_fraction=0.2 has no effect here: purchase_usd is all that is paid at the start.",
        ),
        (
            ["host_usd=9000", "purchase_usd=2500"],
            CARD,
            "--set host_usd=9000 has no effect here: purchase_usd is all that is paid at the start.",
        ),
        (
            ["spares_fraction=0.1"],
            CARD,
            "--set spares_fraction=0.1 has no effect here: it is of servers, and no machine to own here is "
            "one.",
        ),
        (
            ["support_fraction_per_year=0.2"],
            CARD,
            "--set support_fraction_per_year=0.2 has no effect here: it is of servers, and no machine to own "
            "here is one.",
        ),
        (
            ["resale_floor=0.3", "resale_fraction=0.4"],
            CARD,
            "--set resale_floor=0.3 has no effect here: resale_fraction says what is got back.",
        ),
        (
            ["server_power_factor=2"],
            CARD,
            "--set server_power_factor=2 has no effect here: no machine to own is of that kind.",
        ),
    ],
)
def test_a_value_that_reaches_nothing_is_named_with_the_reason(
    settings: list[str], options: dict[str, object], expected: str
) -> None:
    assert complaints(*settings, **options) == [expected]


VALUES = {
    "network_fraction": 0.3,
    "spares_fraction": 0.1,
    "support_fraction_per_year": 0.2,
    "host_usd": 200000.0,
    "server_power_factor": 2.0,
    "card_power_factor": 2.0,
    "load_fraction": 0.7,
    "staff_fte_per_server": 0.3,
    "staff_usd_per_fte_year": 100000.0,
    "resale_floor": 0.3,
    "setup_usd": 500.0,
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("machine", [CARD, MODULES], ids=["card", "modules"])
@pytest.mark.parametrize("owner", ["home", "office"])
def test_it_is_said_of_exactly_the_values_that_change_no_figure(
    name: str, machine: dict[str, object], owner: str
) -> None:
    rates = [rate("runpod", "RTX 4090", 1, "0.40"), rate()]
    base, changed = (
        plan_of(rates, SMALL, owner=owner, set=settings, **machine)
        for settings in ([], [f"{name}={VALUES[name]}"])
    )
    figures = [
        [(each.usd_per_month, each.purchase_usd) for each in found.options if each.kind is Kind.BUY]
        for found in (base, changed)
    ]
    said = any("has no effect here" in note for note in changed.notes)
    assert said == (figures[0] == figures[1])
