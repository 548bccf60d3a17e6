"""`plan`, `export`: every way to serve a model, priced and ranked, shown or written to a file."""

import argparse
from typing import TYPE_CHECKING, Any

from dashboard import tables
from dashboard.commands.arguments import add_model, count, refuse_future, terms_parent, workload_parent
from dashboard.commands.base import Commands, Context, Output, UsageError
from dashboard.commands.files import write_file

if TYPE_CHECKING:
    from dashboard.commands.inputs import Asked
    from planner.compare import Plan

ROWS_SHOWN = 20
HOME = "http://127.0.0.1:8501"  # where `breakeven dashboard` serves unless told otherwise


def register(commands: Commands) -> None:
    """Add `plan` and `export`."""
    parser = commands.add(
        "plan",
        run,
        help="every way to serve a model - rent, buy, API - priced and ranked, with break-even",
        example="breakeven plan qwen3-coder-480b-a35b --hours-per-day 8",
        parents=[workload_parent(), terms_parent()],
    )
    add_model(parser, is_optional=True)
    add = parser.add_argument_group("output").add_argument
    add("--explain", metavar="N", type=count, help="show option N's every figure: formula, numbers, sources")
    add("--sensitivity", action="store_true", help="how sure buying against renting is, by what is not known")
    add("--assumptions", action="store_true", help="list every assumption: value, unit, range, source")
    add("--url", action="store_true", help="print the address of this plan in the dashboard, and no plan")
    add("--save-scenario", metavar="FILE", help="also write the options to a scenario file (TOML)")
    add("--limit", metavar="N", type=count, default=ROWS_SHOWN, help=f"options shown ({ROWS_SHOWN}; 0: all)")
    export = commands.add(
        "export",
        write,
        help="write a plan to a file: .csv .xlsx .parquet .json .md .html, or FOCUS cost rows",
        example="breakeven export qwen3-coder-480b-a35b -o plan.csv",
        parents=[workload_parent(), terms_parent()],
        more="The same plan gives the same bytes as the button of the dashboard.",
    )
    add_model(export, is_optional=True)
    export.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="where to; the ending says the format"
    )
    export.add_argument("--as", metavar="FORMAT", dest="as_format", help="format, whatever the ending")


def run(arguments: argparse.Namespace, context: Context) -> Output:
    """Plan, or answer one of the questions about a plan."""
    from dashboard.commands.inputs import asked

    if arguments.limit < 0:
        raise UsageError(f"--limit: {arguments.limit} is not allowed; give 1 or more, or 0 for all")
    if arguments.assumptions:
        return _assumptions(arguments)
    question = asked(arguments, context.environ)
    if arguments.save_scenario is not None:
        _save(question, arguments.save_scenario)
        context.tell(f"scenario written to {arguments.save_scenario}")
    if arguments.url:
        return _address(question)
    plan = planned(question, context)
    if arguments.explain is not None:
        return _explained(plan, arguments.explain, question.warnings)
    if arguments.sensitivity:
        return _sensitivity(plan, question.warnings)
    return Output(
        document=plan.to_document(),
        headline=plan.verdict,
        text=lambda: _text(plan, arguments.limit),
        warnings=question.warnings,
    )


def write(arguments: argparse.Namespace, context: Context) -> Output:
    """Write a plan to a file: whole, or not at all."""
    from dashboard.commands.inputs import asked
    from planner.export import export_plan, format_of

    name = format_of(arguments.output, arguments.as_format)
    question = asked(arguments, context.environ)
    content = export_plan(planned(question, context), arguments.output, as_format=name)
    write_file(arguments.output, content, "--output")
    return Output(
        document={
            "schema": "breakeven.export/1",
            "file": arguments.output,
            "format": name,
            "bytes": len(content),
        },
        text=f"{arguments.output}: {name}, {len(content):,} bytes",
        warnings=question.warnings,
    )


def planned(question: "Asked", context: Context) -> "Plan":
    """Return the plan at today's prices, or those of the day that was asked for."""
    from dashboard.commands.storage import open_store
    from planner.compare import plan
    from planner.supply.options import Excluded

    scenario = question.scenario
    refuse_future(scenario.as_of, "--as-of", context.clock())
    market: dict[str, Any] = {
        "now": context.clock(),
        "as_of": scenario.as_of,
        "max_age_days": scenario.max_price_age,
        "provider": scenario.provider or None,
    }
    with open_store(context) as store:
        left_out, quotes = store.left_out(**market), store.quotes()
        rates = store.rates(**market, cheapest=True, by_region=bool(scenario.region))
        currencies = None if scenario.currency == "USD" else store.exchange_rates(scenario.as_of)
        tokens = store.token_prices(market["now"], scenario.as_of, scenario.max_price_age)
    return plan(
        scenario,
        rates,
        model=question.model,
        measurement=question.measured,
        left_out=[Excluded(what=entry.what, why=entry.why) for entry in left_out],
        quotes=quotes,
        currencies=currencies,
        own_results=question.own_results,
        token_prices=tokens,
    )


def _text(plan: "Plan", limit: int) -> str:
    from dashboard.commands.plan_text import left_out, options_table, recommended

    document = plan.to_document()
    is_of_one_kind = plan.scenario.gpu is not None or plan.scenario.gpus is not None
    return tables.paragraphs(
        tables.bullets(plan.proof),
        options_table(
            document["options"],
            limit,
            plan.money,
            floor_tokens_per_s=plan.scenario.min_tokens_per_s_per_user,
            term_months=plan.assumptions["term_years"] * 12.0,
        ),
        recommended(document["recommended"], plan.money, is_of_one_kind=is_of_one_kind),
        tables.bullets(plan.notes),
        left_out(document["excluded"], limit),
        f"{tables.ESTIMATE_NOTE}. `--explain N` shows how the figures of option N came about.",
    )


def _explained(plan: "Plan", number: int, warnings: tuple[str, ...]) -> Output:
    explanation = plan.explain(number)
    option = explanation.option
    what = f"{number}. {option.name}" + (f" from {option.provider_title}" if option.provider_title else "")

    def text() -> str:
        parts = []
        for figure in (figure.shown_in(plan.money) for figure in explanation.figures):
            value = tables.starred(tables.money(figure.value), figure.is_estimate) or (
                "never" if figure.is_never else "unknown"
            )
            lines = [f"{figure.name}: {value} {figure.unit}", f"  {figure.formula}"]
            lines += [f"  {figure.numbers}"] if figure.numbers else []
            lines += [f"  source: {figure.source}"] if figure.source else []
            parts.append("\n".join(lines))
        return tables.paragraphs(*parts, tables.bullets(option.notes), tables.ESTIMATE_NOTE)

    return Output(document=explanation.to_document(), headline=what, text=text, warnings=warnings)


def _sensitivity(plan: "Plan", warnings: tuple[str, ...]) -> Output:
    from dashboard.commands.sensitivity_text import headline, options_text, text
    from planner.sensitivity import SENSITIVITY_SCHEMA

    found, spread = plan.sensitivity(), plan.spread()
    shown = options_text(spread, plan.money)
    document = {"schema": SENSITIVITY_SCHEMA, "all_options": spread.to_document()}
    if found is None:
        nothing = "no machine to buy has a rental to be compared with, so there is nothing to vary"
        return Output(document=document, text=lambda: tables.paragraphs(nothing, shown), warnings=warnings)
    return Output(
        document={**found.to_document(), **document},
        headline=headline(found),
        text=lambda: text(found, plan.money, shown, plan.singles_text),
        warnings=warnings,
    )


def _assumptions(arguments: argparse.Namespace) -> Output:
    from planner.assumptions import assumptions_document, parse_settings
    from planner.supply.paths import RentPath

    document = assumptions_document(
        getattr(arguments, "owner", "office"),
        parse_settings(getattr(arguments, "set", None) or ()),
        path=RentPath(getattr(arguments, "rent_path", "flat")),
    )
    rows: Any = document["assumptions"]
    headers = ("assumption", "value", "unit", "range", "from", "set by", "source")

    def text() -> str:
        cells = [
            (
                row["name"],
                tables.significant(row["value"], 4) if row["value"] is not None else "by machine",
                row["unit"],
                f"{row['low']:g} - {row['high']:g}",
                row["origin"],
                row["set_by"],
                tables.shortened(row["source"], 60),
            )
            for row in rows
        ]
        return tables.table(headers, cells, left=(0, 2, 3, 4, 5, 6))

    return Output(document=document, text=text)


def _address(question: "Asked") -> Output:
    from dashboard.state import permalink

    if question.is_file:
        raise UsageError("--url: the dashboard opens no file by its address; name a model of the catalogue")

    url = f"{HOME}{permalink(question.scenario)}"
    return Output(document={"schema": "breakeven.url/1", "url": url}, text=url, warnings=question.warnings)


def _save(question: "Asked", name: str) -> None:
    write_file(name, question.scenario.to_toml().encode(), "--save-scenario")
