"""What every command shares: its answer (`Output`), its surroundings (`Context`) and a strict parser."""

import argparse
import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

DONE = 0
DONE_IN_PART = 1
WRONG_USAGE = 2
NOTHING_DONE = 3

Run = Callable[[argparse.Namespace, "Context"], "Output | None"]


class UsageError(Exception):
    """Something on the command line, or in a file it names, that cannot be used: one line for the user."""


class NothingDone(Exception):
    """The command could not do anything, through no fault of its arguments: one line, exit 3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a command may use of the world around it."""

    clock: Callable[[], datetime]  # aware UTC
    environ: Mapping[str, str]
    tell: Callable[[str], None]  # one line on stderr
    show: Callable[["Output"], None]  # an answer before the command ends
    is_terminal: bool = False  # stderr: progress makes sense


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The answer of a command; text is made only where text was asked for."""

    document: Mapping[str, Any]  # one JSON document
    text: str | Callable[[], str]
    headline: str = ""  # the verdict: printed first, bold on a terminal
    warnings: tuple[str, ...] = ()  # for stderr
    exit_code: int = DONE

    def __post_init__(self) -> None:
        if "schema" not in self.document:
            raise ValueError("every document carries its schema")


_NEGATIVE = re.compile(r"-(?:\d|\.\d|inf|nan)", re.IGNORECASE)


class HelpText(argparse.RawDescriptionHelpFormatter):
    """Help whose commands and options stand beside their explanations, longer names too."""

    def __init__(self, prog: str, **settings: Any) -> None:
        super().__init__(prog, **{"max_help_position": 30, **settings})

    def add_argument(self, action: argparse.Action) -> None:
        """Make room for a list of commands, which stands two columns further in than argparse reckons."""
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):
            self._action_max_length += self._indent_increment


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line and name close matches."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", HelpText)
        settings.setdefault("allow_abbrev", False)
        super().__init__(**settings)
        # What begins so is a value; argparse itself takes -1e5 and -inf for options.
        self._negative_number_matcher = _NEGATIVE

    def error(self, message: str) -> NoReturn:
        """Refuse with one line, in place of argparse's usage text and exit."""
        raise UsageError(f"{message.removeprefix('argument ')} (see `{self.prog} -h`)")

    def option_names(self) -> tuple[str, ...]:
        """Return the long options that this command understands."""
        return tuple(name for name in self._option_string_actions if name.startswith("--"))

    def positional_names(self) -> tuple[str, ...]:
        """Return the names of the positional arguments, as shown in help."""
        return tuple(str(a.metavar or a.dest) for a in self._actions if not a.option_strings)

    def subcommands(self) -> Mapping[str, "Parser"]:
        """Return the commands below this one, by name."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return dict(action.choices)
        return {}

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value outside the choices; argparse's own text lists them all and suggests none."""
        if action.choices is None or value in action.choices:
            return
        names = [str(choice) for choice in action.choices]
        if isinstance(action, argparse._SubParsersAction):
            raise UsageError(f"unknown command {value!r}{suggestion(value, names)} (see `{self.prog} -h`)")
        raise argparse.ArgumentError(
            action, f"{value!r} is not one of {', '.join(names)}{suggestion(value, names)}"
        )


class Commands:
    """The commands of one level; a module adds its own here."""

    def __init__(self, parser: Parser, shared: Parser) -> None:
        self._shared = shared  # options that every command has
        self._subparsers = parser.add_subparsers(metavar="COMMAND", title="commands", required=False)

    def add(
        self, name: str, run: Run, *, help: str, example: str, parents: Sequence[Parser] = (), more: str = ""
    ) -> Parser:
        """Add a command that `run` answers; `help` is its line in the list, `more` follows on its page."""
        parser = self._parser(name, help=help, example=example, parents=parents, more=more)
        parser.set_defaults(run=run, parser=parser)
        return parser

    def group(self, name: str, *, help: str, example: str) -> "Commands":
        """Add a word under which further commands stand."""
        parser = self._parser(name, help=help, example=example)
        parser.set_defaults(parser=parser)
        return Commands(parser, self._shared)

    def _parser(
        self, name: str, *, help: str, example: str, parents: Sequence[Parser] = (), more: str = ""
    ) -> Parser:
        return self._subparsers.add_parser(
            name,
            help=help,
            description=f"{help[0].upper()}{help[1:]}.{f' {more}' if more else ''}",
            epilog=f"example:\n  {example}",
            parents=[*parents, self._shared],
        )


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return `; close matches: ...`, or nothing where no name is close."""
    matches = difflib.get_close_matches(name.lower(), list(names), n=3, cutoff=0.55)
    return f"; close matches: {', '.join(matches)}" if matches else ""


def one_line(text: str) -> str:
    """Return a message without line breaks."""
    return " ".join(text.split())
