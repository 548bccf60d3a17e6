"""`prices tokens`: what APIs charge for tokens, where each price is from, and what is held back."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dashboard import tables
from dashboard.commands.arguments import day_before
from dashboard.commands.base import Commands, Context, Output

if TYPE_CHECKING:
    from planner.catalogues.tokens import TokenPrice

SCHEMA = "breakeven.token-prices/1"


def register_under_prices(group: Commands) -> None:
    """Add the command to the group `prices`."""
    tokens = group.add(
        "tokens",
        list_tokens,
        help="what APIs charge for tokens: bundled, or fetched by `prices refresh litellm`",
        example="breakeven prices tokens qwen3-coder-480b-a35b",
    )
    tokens.add_argument("model", metavar="MODEL", nargs="?", help="only this model (all)")
    tokens.add_argument("--as-of", metavar="DATE", help="as they stood then (now)")
    tokens.add_argument("--held", action="store_true", help="what waits or was rejected, with the reason")


def list_tokens(arguments: argparse.Namespace, context: Context) -> Output:
    """List the prices in use, or what is held back."""
    from dashboard.commands.storage import open_store
    from planner.catalogues.models import find_model
    from planner.catalogues.tokens import all_token_prices, merged

    model_id = None if arguments.model is None else find_model(arguments.model).model.id
    now = context.clock()
    as_of = day_before(arguments.as_of, "--as-of", now)
    with open_store(context) as store:
        if arguments.held:
            return _held([row for row in store.held_token_prices() if model_id in (None, row["model_id"])])
        fetched = store.token_prices(now, as_of)
    prices = sorted(
        (
            price
            for price in merged([each for each in all_token_prices() if each.model_id], fetched)
            if model_id in (None, price.model_id) and price.is_known_by(as_of) and not price.is_gone
        ),
        key=lambda price: (price.model_id or "", price.usd_per_mtok_output or 0.0, price.provider),
    )
    return Output(
        document={"schema": SCHEMA, "prices": [_document(each) for each in prices]},
        text=lambda: _text(prices),
    )


def _document(price: "TokenPrice") -> dict[str, object]:
    return {
        "model_id": price.model_id,
        "provider": price.provider,
        "model": price.model_name,
        "usd_per_million_input_tokens": price.usd_per_mtok_input,
        "usd_per_million_cached_input_tokens": price.usd_per_mtok_cached_input,
        "usd_per_million_output_tokens": price.usd_per_mtok_output,
        "as_of": price.as_of,
        "source": price.source,
        "notes": price.notes,
    }


def _text(prices: Sequence["TokenPrice"]) -> str:
    headers = ("model", "provider", "in", "cached", "out", "of", "source", "note")
    rows = [
        (
            price.model_id,
            price.provider,
            *(
                "" if usd is None else f"{usd:g}"
                for usd in (
                    price.usd_per_mtok_input,
                    price.usd_per_mtok_cached_input,
                    price.usd_per_mtok_output,
                )
            ),
            price.as_of,
            tables.shortened(price.source, 44),
            tables.shortened(price.notes, 40),
        )
        for price in prices
    ]
    return tables.paragraphs(
        tables.table(headers, rows, left=(0, 1, 5, 6, 7)) if rows else "No API price of that model is known.",
        "USD a million tokens. `breakeven prices refresh litellm` fetches newer ones.",
    )


def _held(rows: Sequence[Any]) -> Output:
    headers = ("model", "provider", "in", "out", "verdict", "why", "first seen")
    cells = [
        (
            row["model"],
            row["provider"],
            row["usd_per_mtok_input"],
            row["usd_per_mtok_output"],
            row["verdict"],
            row["reason"],
            f"{row['first_seen_at']:%Y-%m-%d}",
        )
        for row in rows
    ]
    document = [
        {**row, **{name: f"{row[name]:%Y-%m-%dT%H:%M:%SZ}" for name in ("first_seen_at", "last_seen_at")}}
        for row in rows
    ]
    return Output(
        document={"schema": SCHEMA, "held": document},
        text=lambda: tables.table(headers, cells, left=(0, 1, 4, 5, 6)) if cells else "Nothing is held back.",
    )
