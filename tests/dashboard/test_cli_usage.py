"""Wrong usage, help, closed pipes and unexpected errors: what every command does alike."""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from dashboard import cli as program
from dashboard.cli import build_parser
from dashboard.commands import arguments
from dashboard.commands.base import Output, Parser


def leaves(parser: Parser, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Parser]]:
    """Yield every command that does something, with the words that call it."""
    below = parser.subcommands()
    if words and not below:
        yield words, parser
    for name, child in below.items():
        yield from leaves(child, (*words, name))


COMMANDS = dict(leaves(build_parser()))


def one_line(text: str) -> bool:
    return text.count("\n") == 1 and text.endswith("\n") and "Traceback" not in text


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(cli, words):
    ran = cli(*words, "-h")
    assert ran.code == 0
    assert ran.err == ""
    assert f"breakeven {' '.join(words)}" in ran.out
    assert "example:" in ran.out


@pytest.mark.parametrize("words", [(), ("prices",), ("db",)], ids=" ".join)
def test_help_of_the_program_and_of_a_group_lists_their_commands(cli, words):
    below = build_parser()
    for word in words:
        below = below.subcommands()[word]
    for asked in ("-h", "--help"):
        ran = cli(*words, asked)
        assert (ran.code, ran.err) == (0, "")
        listed = ran.out.partition("\ncommands:\n")[2].partition("\n\n")[0]
        assert re.findall(r"^    (\S+)", listed, re.MULTILINE) == list(below.subcommands())
        assert "example:" in ran.out


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_option_and_argument_has_help(words):
    for action in COMMANDS[words]._actions:
        assert action.help, f"{' '.join(words)} {action.option_strings or action.dest}"


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_example_of_a_command_is_understood(words):
    epilog = COMMANDS[words].epilog
    assert epilog is not None
    example = epilog.removeprefix("example:\n").strip()
    program_name, *argv = re.findall(r'"[^"]*"|\S+', example)
    assert program_name == "breakeven"
    namespace, unknown = build_parser().parse_known_args([word.strip('"') for word in argv])
    assert not unknown
    assert namespace.parser.prog == f"breakeven {' '.join(words)}"


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_takes_json_before_and_after_its_name(words):
    assert "--json" in COMMANDS[words].option_names()
    assert "--json" in build_parser().option_names()


def test_version_is_one_line(cli):
    ran = cli("--version")
    assert ran.code == 0
    assert re.fullmatch(r"breakeven \d+[.+]\S+\n", ran.out)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ([], "give a command: "),
        (["prices"], "give a command: "),
        (["pln"], "unknown command 'pln'; close matches: plan"),
        (["prices", "reffresh"], "unknown command 'reffresh'; close matches: refresh"),
        (["models", "--jsn"], "unknown option '--jsn'; close matches: --json"),
        (
            ["plan", "m", "--hours-per-dya", "3"],
            "unknown option '--hours-per-dya'; close matches: --hours-per-day",
        ),
        (["quants", "extra"], "unexpected argument 'extra'"),
        (["size", "m", "--kv-dtype", "fp61"], "'fp61' is not one of fp16, bf16, fp8, q8_0, q4_0"),
        (["size", "m", "--context", "many"], "--context: 'many' is not allowed; give a finite number"),
        (["size", "m", "--context", "1.5"], "--context: '1.5' is not allowed; give a finite number, a whole"),
        (["plan", "m", "--hours-per-day", "4,5"], "--hours-per-day: '4,5' is not allowed; give a finite"),
        (["plan", "m", "--hours-per-day", "4,5"], "with a decimal point: 4.5"),
        (["plan", "m", "--budget-usd", "4,500"], "without a comma: 4500"),
        (["plan", "m", "--budget-usd", "1,234,567"], "without a comma: 1234567"),
        (["plan", "m", "--hours-per-day", "nan"], "--hours-per-day: 'nan' is not allowed"),
        (["plan", "m", "--budget-usd", "inf"], "--budget-usd: 'inf' is not allowed"),
        (["plan", "m", "--hours-per-day"], "--hours-per-day: expected one argument"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(cli, argv, expected):
    ran = cli(*argv)
    assert ran.code == 2
    assert ran.out == ""
    assert one_line(ran.err), ran.err
    assert expected in ran.err


def test_an_unexpected_error_is_one_line_and_exit_3(cli, monkeypatch):
    monkeypatch.delenv("BREAKEVEN_DEBUG")

    def broken(*_: object) -> Output:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr("dashboard.commands.catalogues.list_quants", broken)
    ran = cli("quants")
    assert ran.code == 3
    assert one_line(ran.err)
    assert "ZeroDivisionError: division by zero" in ran.err
    assert "BREAKEVEN_DEBUG=1" in ran.err


def test_an_interrupt_ends_with_130(cli, monkeypatch):
    def interrupted(*_: object) -> Output:
        raise KeyboardInterrupt

    monkeypatch.setattr("dashboard.commands.catalogues.list_quants", interrupted)
    ran = cli("quants")
    assert (ran.code, ran.err) == (130, "breakeven: interrupted\n")


def test_json_is_one_document_and_refuses_nan(cli, monkeypatch):
    monkeypatch.delenv("BREAKEVEN_DEBUG")
    answer = Output(document={"schema": "breakeven.quants/1", "value": float("nan")}, text="")
    monkeypatch.setattr("dashboard.commands.catalogues.list_quants", lambda *_: answer)
    ran = cli("quants", "--json")
    assert ran.code == 3
    assert ran.out == ""


def test_an_answer_without_schema_cannot_be_made():
    with pytest.raises(ValueError, match="schema"):
        Output(document={}, text="")


@pytest.mark.parametrize("colour", [True, False])
def test_the_verdict_is_bold_on_a_terminal_only(cli, monkeypatch, colour):
    answer = Output(document={"schema": "breakeven.quants/1"}, headline="Rent.", text="table")
    monkeypatch.setattr("dashboard.commands.catalogues.list_quants", lambda *_: answer)
    monkeypatch.setattr(program, "_is_terminal", lambda _stream: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    assert cli("quants").out == ("\x1b[1mRent.\x1b[0m" if colour else "Rent.") + "\n\ntable\n"


def test_a_pipe_closed_early_is_no_error():
    with subprocess.Popen(
        [sys.executable, "-m", "dashboard", "gpus", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(30) == 0
    assert err == b""


@pytest.mark.parametrize(("text", "value"), [("8192", 8192), ("1e6", 1_000_000), ("-3", -3), ("4.0", 4)])
def test_whole_numbers_are_read_in_any_notation(text, value):
    assert arguments.count(text) == value


@pytest.mark.parametrize("text", ["", "x", "1.5", "1,000", "nan", "inf"])
def test_what_is_no_whole_number_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        arguments.count(text)
