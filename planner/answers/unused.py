"""Which values of --set reach no option of a plan, and why: a value dropped without a word misleads."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from planner.assumptions import Assumptions
from planner.catalogues.gpus import all_gpus
from planner.supply.growth import GROWTH
from planner.supply.options import BuyBasis, Kind, Option
from planner.supply.shop import Housing, housing_of

_HOST = ("host_usd", "host_gpus", "host_minimum_usd", "server_over_modules_fraction")
_OF_SERVERS = ("network_fraction", "spares_fraction", "support_fraction_per_year")
_AT_THE_START = (*_HOST, "network_fraction", "spares_fraction", "setup_usd", "max_purchase_age_years")
_POWER_OF_KIND = ("server_power_factor", "card_power_factor", "unified_power_kw")
_RENTS = ("rent_change_per_year", "rent_shock_fraction", "rent_shock_months", "storage_usd_per_gb_month",
          "egress_usd_per_gb")  # fmt: skip
_APIS = ("api_change_per_year",)
_OWNING = (*_AT_THE_START, *_POWER_OF_KIND, "purchase_usd", "support_fraction_per_year", "discount_rate",
           "resale_fraction", "resale_floor", "resale_decay_per_year", "power_kw", "load_fraction",
           "idle_power_fraction", "on_outside_hours_fraction", "pue", "colo_usd_per_kw_month",
           "colo_includes_energy", "staff_fte_per_server", "staff_fte_minimum", "staff_usd_per_fte_year",
           "insurance_fraction_per_year", "licence_usd_per_gpu_year", "bandwidth_usd_per_month")  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Listed:
    """The options of a plan by kind."""

    assumptions: Assumptions
    rentals: Sequence[Option]
    apis: Sequence[Option]
    owned: Sequence[BuyBasis]
    bought: Sequence[BuyBasis]  # the same without what is there already
    has_server: bool
    has_demand: bool


def unused_settings(options: Sequence[Option], assumptions: Assumptions, *, has_demand: bool) -> list[str]:
    """
    Return a line for each value of --set that no option of the plan uses.

    Args:
        options: All that are priced.
        assumptions: The values in use.
        has_demand: Whether tokens are asked for, not hours of presence only.
    """
    owning = [(each, each.basis) for each in options if isinstance(each.basis, BuyBasis)]
    listed = _Listed(
        assumptions=assumptions,
        rentals=[each for each in options if each.kind is Kind.RENT],
        apis=[each for each in options if each.kind is Kind.API],
        owned=[basis for _, basis in owning],
        bought=[basis for each, basis in owning if not each.is_own],
        has_server=any(_is_server(each, basis) for each, basis in owning),
        has_demand=has_demand,
    )
    return [
        f"--set {name}={value:g} has no effect here: {why}."
        for name, value in assumptions.overrides.items()
        if (why := next(_reasons(name, listed), None)) is not None
    ]


def _is_server(option: Option, basis: BuyBasis) -> bool:
    """Whether it is a server, or modules that stand in one."""
    what = None if basis.purchase is None else basis.purchase.what
    housing = Housing.CARD if option.gpu is None else housing_of(all_gpus()[option.gpu], what)
    return housing in (Housing.MODULE, Housing.SERVER)


def _reasons(name: str, listed: _Listed) -> Iterator[str]:
    """Give the reasons why an assumption reaches nothing, the plainest first."""
    get = listed.assumptions
    rules: tuple[tuple[Iterable[str], Callable[[], bool], str], ...] = (
        (_RENTS, lambda: not listed.rentals, "nothing to rent is listed"),
        (("spot_lost_work_fraction",), lambda: not any(each.is_spot for each in listed.rentals),
         "no spot machine is listed (--tier spot)"),
        (("rent_shock_months",), lambda: get["rent_shock_fraction"] == 0.0, "rents have no shock"),
        ((GROWTH,), lambda: not listed.has_demand,
         "no demand is given that could grow (--tokens-per-month)"),
        (_APIS, lambda: not listed.apis, "no API is listed"),
        (_OWNING, lambda: not listed.owned, "nothing to buy or own is listed"),
        ((*_AT_THE_START, "purchase_usd"), lambda: not listed.bought, "nothing is bought"),
        (_AT_THE_START, lambda: get.is_set("purchase_usd"), "purchase_usd is all that is paid at the start"),
        (_OF_SERVERS, lambda: not listed.has_server, "it is of servers, and no machine to own here is one"),
        (_HOST[:-1], lambda: all(each.host_assumption != "host_usd" for each in listed.bought),
         "no machine to buy takes a computer that is priced by it"),
        (_HOST[-1:], lambda: all(each.host_assumption != _HOST[-1] for each in listed.bought),
         "no machine to buy takes a server that is priced by it"),
        ((*_POWER_OF_KIND, "load_fraction"), lambda: get.is_set("power_kw"), "power_kw says what is drawn"),
        (_POWER_OF_KIND, lambda: all(each.power_assumption != name for each in listed.owned),
         "no machine to own is of that kind"),
        (("resale_floor", "resale_decay_per_year"), lambda: get.is_set("resale_fraction"),
         "resale_fraction says what is got back"),
        (("staff_fte_per_server",),
         lambda: get["staff_fte_minimum"] > 0.0
         and all(float(each.ownership.staff_fte) <= get["staff_fte_minimum"] for each in listed.owned),
         "staff_fte_minimum is no less"),
        (("staff_usd_per_fte_year",), lambda: all(each.ownership.staff_fte == 0.0 for each in listed.owned),
         "no staff is counted (staff_fte_per_server)"),
        (("colo_includes_energy",), lambda: get["colo_usd_per_kw_month"] == 0.0, "no colocation is paid"),
    )  # fmt: skip
    return (why for names, is_so, why in rules if name in names and is_so())
