"""Arguments that several commands share: numbers read strictly, the workload, the terms of a plan."""

import argparse
from datetime import date, datetime, timedelta

from dashboard.commands.base import Parser, UsageError
from planner.errors import InvalidScenario
from planner.fields import day
from planner.numbers import parse_count, parse_number

# Every option of the workload, in the order of docs/interface.md; names are those of `Scenario`'s fields.
WORKLOAD_OPTIONS = (
    "gpu",
    "gpus",
    "quant",
    "context",
    "batch",
    "kv_dtype",
    "engine",
    "method",
    "offload",
    "host_gb_per_s",
    "input_tokens",
    "output_tokens",
    "cached_input",
    "draft_tokens",
    "acceptance",
    "pipeline",
    "expert_ranks",
    "attention_data",
    "memory_fraction",
    "max_sequences",
    "decode_tokens_per_s",
)


def number(text: str) -> float:
    """Read a finite number written with a decimal point."""
    try:
        return parse_number("", text, "a finite number")
    except InvalidScenario as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give {error.allowed}") from error


def count(text: str) -> int:
    """Read a whole number, in any notation."""
    try:
        return parse_count("", text, "a finite number")
    except InvalidScenario as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; give {error.allowed}") from error


def refuse_future(day: date | None, option: str, now: datetime) -> None:
    """
    Refuse a day that has not begun anywhere on earth.

    Raises:
        UsageError: if it is in the future.
    """
    if day is not None and day > (now + timedelta(hours=14)).date():
        raise UsageError(f"{option}: {day} is in the future, and prices are known up to today; leave it out")


def day_before(text: str | None, option: str, now: datetime) -> date | None:
    """
    Read a day that has begun somewhere on earth, None where none is given.

    Raises:
        InvalidScenario: if it is no date.
        UsageError: if it is in the future.
    """
    if text is None:
        return None
    read = day(option.removeprefix("--").replace("-", "_"), text)
    refuse_future(read, option, now)
    return read


def add_model(parser: argparse.ArgumentParser, *, is_optional: bool = False) -> None:
    """Add MODEL, and what a person may state about one that is in a file."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        nargs="?" if is_optional else None,
        help="id or alias (`breakeven models`), config.json, folder, .gguf file, or hf:owner/name",
    )
    add = parser.add_argument_group("a model in a file").add_argument
    add(
        "--params",
        metavar="N",
        default=argparse.SUPPRESS,
        help="its parameters, where they are known better than counted: 32b, 35b-a3b",
    )
    add(
        "--fact",
        metavar="NAME=VALUE",
        action="append",
        default=argparse.SUPPRESS,
        help="a field that its configuration lacks; may be repeated",
    )


def workload_parent() -> Parser:
    """Return the options that say what is served, and on what; absent ones stay absent."""
    parent = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    group = parent.add_argument_group("workload")
    add = group.add_argument
    add("--gpu", metavar="NAME", help="GPU or device, any alias (`breakeven gpus`)")
    add("--gpus", metavar="N", type=count, help="how many of them serve one replica (1)")
    add("--quant", metavar="NAME", help="weight format (Q4_K_M; `breakeven quants`)")
    add("--context", metavar="N", type=count, help="tokens per sequence (8192)")
    add("--batch", metavar="N", type=count, help="sequences at once (1)")
    add("--kv-dtype", choices=("fp16", "bf16", "fp8", "q8_0", "q4_0"), help="precision of the cache (fp16)")
    add(
        "--engine",
        choices=("auto", "vllm", "sglang", "llama.cpp", "tensorrt-llm"),
        help="serving engine (auto: llama.cpp for GGUF formats, else vllm)",
    )
    add(
        "--method",
        choices=("calibrated", "simple"),
        help="estimate (calibrated); simple is a public sizing page's arithmetic",
    )
    add("--offload", metavar="F", type=number, help="fraction of the weights in system RAM (0)")
    add("--host-gb-per-s", metavar="X", type=number, help="bandwidth of that RAM as the GPU sees it")
    add("--input-tokens", metavar="N", type=count, help="tokens into one request (4096)")
    add("--output-tokens", metavar="N", type=count, help="tokens out of one request (512)")
    add("--cached-input", metavar="F", type=number, help="share of each prompt found in the prefix cache (0)")
    add("--draft-tokens", metavar="N", type=count, help="speculative decoding: tokens of a one-layer draft")
    add("--acceptance", metavar="F", type=number, help="probability that a drafted token is kept")
    add("--pipeline", metavar="N", type=count, help="pipeline stages of a server (1)")
    add("--expert-ranks", metavar="N", type=count, help="ranks that share whole experts (1: each is split)")
    add("--attention-data", metavar="N", type=count, help="groups with all of attention (1)")
    add("--memory-fraction", metavar="F", type=number, help="memory that a server fills (0.90)")
    add("--max-sequences", metavar="N", type=count, help="sequences that a server is set up for")
    add(
        "--decode-tokens-per-s",
        metavar="X",
        type=number,
        help="a measured decode speed of the machine named by --gpu; wins over the estimate there",
    )
    add(
        "--sizing",
        metavar="FILE",
        help="a sizing made elsewhere: `breakeven size --json`, `llama-bench -o json`, vLLM `bench serve`",
    )
    add("--scenario", metavar="FILE", help="a scenario file (TOML); options given here win over it")
    return parent


def terms_parent() -> Parser:
    """Return the options that say how much it is used and on what terms it is paid."""
    parent = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    use = parent.add_argument_group("use").add_argument
    use("--hours-per-day", metavar="H", type=number, help="hours in which the service is there (4)")
    use("--days-per-month", metavar="D", type=number, help="days of use in a month (30.4)")
    use("--tokens-per-month", metavar="N", type=number, help="demand: output tokens a month")
    use("--requests-per-s", metavar="X", type=number, help="demand: mean requests a second")
    use("--peak-factor", metavar="X", type=number, help="peak over mean demand")
    use(
        "--load-profile",
        metavar="PROFILE",
        help="the day's load by spans of hours, 8-18=1,18-23=0.3, or 24 numbers; in place of --peak-factor",
    )
    use("--max-ttft-ms", metavar="X", type=number, help="limit of the time to the first token")
    use("--max-tpot-ms", metavar="X", type=number, help="limit of the time between tokens")
    use(
        "--min-tokens-per-s-per-user",
        metavar="X",
        type=number,
        help="slower options rank last, as too slow to talk to (10)",
    )
    money = parent.add_argument_group("money").add_argument
    money("--electricity-usd-per-kwh", metavar="X", type=number, help="electricity tariff (0.175)")
    money("--electricity-region", metavar="CODE[:SECTOR]", help="tariff of a region: DE, US-CA:commercial")
    money(
        "--rent-path",
        choices=("flat", "decline", "shock"),
        help="how rents move: flat, down 20 %% a year, or up 40 %% within five months and then down (flat)",
    )
    money("--budget-usd", metavar="X", type=number, help="hardware budget")
    money(
        "--owner",
        choices=("home", "office", "colo"),
        help="who owns: sets the defaults of owning (office); home has no staff cost and PUE 1.0",
    )
    money("--own", metavar='"2x RTX 4090"', help="hardware already there: only its running cost counts")
    money("--currency", metavar="CODE", help="currency shown, at a dated reference rate (USD)")
    money(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        help="any other assumption (`breakeven plan --assumptions` lists them)",
    )
    prices = parent.add_argument_group("prices").add_argument
    prices("--provider", metavar="NAME", action="append", help="only this provider; may be repeated")
    prices("--tier", metavar="NAME", action="append", help="only this tier; may be repeated")
    prices("--region", metavar="TEXT", action="append", help="only this region; may be repeated")
    prices(
        "--max-price-age",
        metavar="DAYS",
        type=number,
        help="leave out verified prices older than this (14)",
    )
    prices("--as-of", metavar="DATE", help="prices as they stood then (now)")
    return parent
