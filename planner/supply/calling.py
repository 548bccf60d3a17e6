"""APIs that serve a model: what its tokens cost there."""

from collections.abc import Iterable

from planner.assumptions import Assumptions
from planner.catalogues.models import Model
from planner.catalogues.tokens import TokenPrice, api_prices, merged
from planner.cost import TokenPrices
from planner.scenario import Scenario
from planner.serving.notes import model_context
from planner.supply.market import slug
from planner.supply.options import ApiBasis, Excluded, Kind, Option, PriceOrigin, names_text
from planner.units import TOKENS_PER_PRICE


def api_usd_per_month(
    input_tokens: float,
    output_tokens: float,
    usd_per_mtok_input: float,
    usd_per_mtok_output: float,
    *,
    usd_per_mtok_cached_input: float | None = None,
    cached_input_fraction: float = 0.0,
) -> float:
    """
    Price of a month's tokens at an API. [USD/month]

    Args:
        input_tokens: [tokens/month]
        output_tokens: [tokens/month]
        usd_per_mtok_input: [USD/Mtok]
        usd_per_mtok_output: [USD/Mtok]
        usd_per_mtok_cached_input: Of input from the prompt cache; None: no such price. [USD/Mtok]
        cached_input_fraction: Share of the input that is. [fraction]

    Source:
        docs/methodology.md, "API".
    """
    cached = usd_per_mtok_input if usd_per_mtok_cached_input is None else usd_per_mtok_cached_input
    price_in = (1.0 - cached_input_fraction) * usd_per_mtok_input + cached_input_fraction * cached
    return (input_tokens * price_in + output_tokens * usd_per_mtok_output) / TOKENS_PER_PRICE


def api_options(
    scenario: Scenario,
    model: Model,
    output_tokens_per_month: float | None,
    assumptions: Assumptions,
    fetched: Iterable[TokenPrice] = (),
) -> tuple[list[Option], list[Excluded]]:
    """
    Return every API that serves this model, and what was left out.

    Args:
        scenario: Its filter of providers, and the shape of a request.
        model: Only prices of this model count.
        output_tokens_per_month: What is priced; None leaves the month open. [tokens/month]
        assumptions: For the share read from a prompt cache.
        fetched: Prices that go before the bundled ones where they are newer.
    """
    wanted = frozenset(slug(name) for name in scenario.provider)
    options, without_price = [], []
    listed = merged(api_prices(model.id), (price for price in fetched if price.model_id == model.id))
    wanted_prices = [price for price in listed if not wanted or slug(price.provider) in wanted]
    gone = [price for price in wanted_prices if price.is_gone]
    known = [price for price in wanted_prices if price.is_known_by(scenario.as_of) and not price.is_gone]
    if scenario.tier or scenario.region:
        return [], _bound_to_neither(known, scenario)
    limit = model_context(model)
    if limit is not None and scenario.context > limit:
        return [], _too_short(known, limit, scenario.context)
    for price in cheapest_of_each(known):
        if price.usd_per_mtok_input is None or price.usd_per_mtok_output is None:
            without_price.append(price.provider)
        else:
            options.append(_option(scenario, price, output_tokens_per_month, assumptions))
    excluded = [
        Excluded(what=f"API of {provider}", why="its price of input or output tokens is not known")
        for provider in without_price
    ]
    excluded += [
        Excluded(what=f"API of {price.provider}", why=f"{price.model_name} is no longer listed")
        for price in gone
    ]
    later = dict.fromkeys(price.provider for price in wanted_prices)
    for price in (*known, *gone):
        later.pop(price.provider, None)
    if later:
        what, why = f"API of {names_text(sorted(later))}", f"no price of {scenario.as_of} or before is known"
        excluded.append(Excluded(what=what, why=why))
    return options, excluded


def _bound_to_neither(known: Iterable[TokenPrice], scenario: Scenario) -> list[Excluded]:
    """Say which APIs a filter of regions or tiers leaves out."""
    what, names = ("region", scenario.region) if scenario.region else ("tier", scenario.tier)
    asked = " or ".join(str(name) for name in names)
    return _all_left_out(known, f"a price of tokens names no {what}, and only {asked} was asked for")


def _too_short(known: Iterable[TokenPrice], limit: int, context: int) -> list[Excluded]:
    """Say which APIs a context leaves out that is longer than the model takes anywhere."""
    return _all_left_out(known, f"a context of {context:,} tokens is above the model's maximum of {limit:,}")


def _all_left_out(known: Iterable[TokenPrice], why: str) -> list[Excluded]:
    """Name all APIs together; nothing where there are none."""
    titles = list(dict.fromkeys(price.provider for price in known))
    if not titles:
        return []
    noun = "API of" if len(titles) == 1 else f"{len(titles)} APIs:"
    return [Excluded(what=f"{noun} {names_text(titles)}", why=why)]


def cheapest_of_each(prices: Iterable[TokenPrice]) -> list[TokenPrice]:
    """Return one price for each provider and name of the model: the newest, then the cheaper."""
    best: dict[tuple[str, str], TokenPrice] = {}
    for price in prices:
        key = (price.provider, price.model_name)
        held = best.get(key)
        if held is None or _order(price) < _order(held):
            best[key] = price
    return list(best.values())


def _order(price: TokenPrice) -> tuple[list[int], float]:
    """Sort newest first, then cheapest."""
    newest = [-int(part) if part.isdigit() else 0 for part in price.as_of.split("-")]
    return newest, price.usd_per_mtok_output or 0.0


def _option(
    scenario: Scenario, price: TokenPrice, output_tokens: float | None, assumptions: Assumptions
) -> Option:
    """Return the row of one API."""
    input_per_output = scenario.input_tokens / scenario.output_tokens
    # A prompt that a machine of one's own need not compute again is read from a cache there too.
    is_set = assumptions.is_set("cached_input_fraction") or not scenario.cached_input
    share = assumptions["cached_input_fraction"] if is_set else scenario.cached_input
    usd_in, usd_out = price.usd_per_mtok_input or 0.0, price.usd_per_mtok_output or 0.0
    per_million = api_usd_per_month(
        input_per_output * TOKENS_PER_PRICE,
        TOKENS_PER_PRICE,
        usd_in,
        usd_out,
        usd_per_mtok_cached_input=price.usd_per_mtok_cached_input,
        cached_input_fraction=share,
    )
    tokens = output_tokens
    month = None if tokens is None else per_million * tokens / TOKENS_PER_PRICE
    moves = assumptions.api_prices
    return Option(
        kind=Kind.API,
        name=price.model_name,
        provider=slug(price.provider),
        provider_title=price.provider,
        usd_per_month=month,
        usd_per_month_over_term=None if month is None else moves.over_term(month, assumptions["term_years"]),
        token_prices=TokenPrices(
            usd_per_million_tokens=per_million,
            usd_per_million_input_tokens=usd_in,
            usd_per_million_output_tokens=usd_out,
            prefill_time_fraction=0.0,
        ),
        tokens_per_month=tokens,
        price=PriceOrigin(seen_at=price.as_of, age_hours=None, status=price.status, source_url=price.source),
        notes=(price.notes,) if price.notes else (),
        basis=ApiBasis(
            price=price,
            input_tokens_per_month=(tokens or 0.0) * input_per_output,
            output_tokens_per_month=tokens or 0.0,
            cached_input_fraction=share,
        ),
    )
