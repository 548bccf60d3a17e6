"""
The command line: reads the arguments, runs one command, prints its answer. The only place that prints.

Answers go to stdout (one JSON document with `--json`), everything else to stderr. Exit codes: 0 done, 1 done
in part, 2 wrong usage or input, 3 nothing could be done, 130 interrupted.
"""

import argparse
import contextlib
import errno
import importlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TextIO

from dashboard.commands import MODULES
from dashboard.commands.base import (
    NOTHING_DONE,
    WRONG_USAGE,
    Commands,
    Context,
    NothingDone,
    Output,
    Parser,
    UsageError,
    one_line,
    suggestion,
)
from planner.errors import InvalidScenario, PlannerError, UnknownName
from pricing.errors import PricingError, SettingsError

# What to do about a name that is close to none.
LISTED = {
    "model": "; `breakeven models` lists them",
    "GPU": "; `breakeven gpus` lists them",
    "quant": "; `breakeven quants` lists them",
    "provider": "; `breakeven providers` lists them",
    "assumption": "; `breakeven plan --assumptions` lists them",
    "offer": "; `breakeven prices rejected` lists those that can be decided",
    "currency": "; give an ISO 4217 code such as EUR",
    "electricity region": "; give a code such as DE or US-CA:commercial",
}
INTERRUPTED = 130  # 128 + SIGINT, what a shell expects
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


def main(argv: Sequence[str] | None = None, *, clock: Callable[[], datetime] | None = None) -> int:
    """
    Run one command and return its exit code.

    Args:
        argv: The arguments without the program's name; those of this process by default.
        clock: What time it is; the real time by default.
    """
    try:
        code = _guarded(list(sys.argv[1:] if argv is None else argv), clock or _utc_now)
        _flush(sys.stdout)
    except BrokenPipeError:
        _discard_stdout()
        return 0
    except NothingDone as error:  # the answer is ready, and stdout takes none
        _discard_stdout()
        return _refuse(str(error), NOTHING_DONE)
    return code


def build_parser() -> Parser:
    """Return the parser of all commands."""
    shared = Parser(add_help=False)
    shared.add_argument(
        "--json", action="store_true", default=False, help="print one JSON document and nothing else"
    )
    nested = Parser(add_help=False)
    nested.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help=shared._actions[0].help
    )
    parser = Parser(
        prog="breakeven",
        description="Where to run an open-weight language model, what it costs, and when buying pays.",
        epilog="example:\n  breakeven plan qwen3-coder-480b-a35b --hours-per-day 8\n\n"
        "Exit codes: 0 done, 1 done in part, 2 wrong usage or input, 3 nothing could be done.",
        parents=[shared],
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.set_defaults(parser=parser)
    commands = Commands(parser, nested)
    for module in MODULES:
        importlib.import_module(f"dashboard.commands.{module}").register(commands)
    return parser


def _guarded(argv: list[str], clock: Callable[[], datetime]) -> int:
    """Run, and turn every error into one line and an exit code."""
    try:
        return _run(argv, clock)
    except UsageError as error:
        return _refuse(str(error), WRONG_USAGE)
    except InvalidScenario as error:
        name, _, rest = error.field.partition(" ")  # "hours_per_day", or "set power_kw"
        option = f"--{name.replace('_', '-')} {rest}".strip()
        return _refuse(f"{option}: {error.value!r} is not allowed; give {error.allowed}", WRONG_USAGE)
    except UnknownName as error:
        where = "" if error.matches else LISTED.get(error.kind, "")
        return _refuse(f"{error}{where}", WRONG_USAGE)
    except (PlannerError, SettingsError) as error:
        return _refuse(str(error), WRONG_USAGE)
    except (PricingError, NothingDone) as error:
        return _refuse(str(error), NOTHING_DONE)
    except KeyboardInterrupt:
        return _refuse("interrupted", INTERRUPTED)
    except BrokenPipeError:
        raise
    except Exception as error:
        # The last resort: a user gets one line, a developer asks for the rest.
        if os.environ.get("BREAKEVEN_DEBUG") == "1":
            raise
        what = f"{type(error).__name__}: {error}"
        return _refuse(
            f"unexpected error ({what}); run it again with BREAKEVEN_DEBUG=1 for the details", NOTHING_DONE
        )


def _run(argv: list[str], clock: Callable[[], datetime]) -> int:
    parser = build_parser()
    try:
        arguments, unknown = parser.parse_known_args(argv)
    except SystemExit as stop:  # -h
        return int(stop.code or 0)
    command: Parser = arguments.parser
    if unknown:
        raise UsageError(_unknown(unknown, command))
    if arguments.version:
        return _print(_version(), as_json=arguments.json, stream=sys.stdout)
    if not hasattr(arguments, "run"):
        raise UsageError(f"give a command: {', '.join(command.subcommands())} (see `{command.prog} -h`)")
    as_json, stdout = arguments.json, sys.stdout

    def show(output: Output) -> None:
        _print(output, as_json=as_json, stream=stdout)
        _flush(stdout)

    context = Context(
        clock=clock, environ=os.environ, tell=_tell, show=show, is_terminal=_is_terminal(sys.stderr)
    )
    output = arguments.run(arguments, context)
    return 0 if output is None else _print(output, as_json=as_json, stream=stdout)


def _unknown(unknown: Sequence[str], command: Parser) -> str:
    """Say which argument was not understood."""
    first = unknown[0]
    see = f"(see `{command.prog} -h`)"
    if first.startswith("-") and first != "-":
        name = first.split("=", 1)[0]
        return f"unknown option {name!r}{suggestion(name, command.option_names())} {see}"
    return f"unexpected argument {first!r} {see}"


def _version() -> Output:
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("breakeven")
    except PackageNotFoundError:  # run from a checkout that was never installed
        number = "0+checkout"
    return Output(document={"schema": "breakeven.version/1", "version": number}, text=f"breakeven {number}")


def _print(output: Output, *, as_json: bool, stream: TextIO | None) -> int:
    for warning in output.warnings:
        _tell(f"warning: {warning}")
    if as_json:
        unicode_ok = "utf" in (getattr(stream, "encoding", None) or "").lower()
        text = json.dumps(output.document, ensure_ascii=not unicode_ok, indent=2, allow_nan=False)
    else:
        body = output.text if isinstance(output.text, str) else output.text()
        text = "\n\n".join(part for part in (_emphasised(output.headline, stream), body.rstrip()) if part)
    if text:
        _write(stream, text)
    return output.exit_code


def _emphasised(headline: str, stream: TextIO | None) -> str:
    if headline and _is_terminal(stream) and not os.environ.get("NO_COLOR"):
        return f"{BOLD}{headline}{PLAIN}"
    return headline


def _refuse(message: str, code: int) -> int:
    _tell(message)
    return code


def _tell(message: str) -> None:
    with contextlib.suppress(OSError, NothingDone):  # there is nowhere to say that nothing can be said
        _write(sys.stderr, f"breakeven: {one_line(message)}")


def _write(stream: TextIO | None, text: str) -> None:
    """Print, whatever the encoding of the stream can show."""
    if stream is None:  # closed by the caller
        return
    try:
        print(text, file=stream)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        print(text.encode(encoding, "replace").decode(encoding), file=stream)
    except OSError as error:
        raise _unwritten(error) from error


def _flush(stream: TextIO | None) -> None:
    try:
        if stream is not None:
            stream.flush()
    except OSError as error:
        raise _unwritten(error) from error


def _unwritten(error: OSError) -> Exception:
    """Return what a failed write means; Windows reports a closed pipe as an invalid argument."""
    if error.errno in {errno.EPIPE, errno.EINVAL}:
        return BrokenPipeError(*error.args)
    return NothingDone(f"the answer could not be written to stdout: {error.strerror}; nothing was lost")


def _discard_stdout() -> None:
    """Give the interpreter somewhere to flush to when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _utc_now() -> datetime:
    return datetime.now(UTC)
