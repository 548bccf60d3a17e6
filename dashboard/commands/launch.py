"""`launch`: the commands and the compose file that serve a model on a machine."""

import argparse
from typing import TYPE_CHECKING

from dashboard import tables
from dashboard.commands.arguments import add_model, workload_parent
from dashboard.commands.base import Commands, Context, Output, UsageError
from dashboard.commands.files import write_file

if TYPE_CHECKING:
    from planner.launch import Launch


def register(commands: Commands) -> None:
    """Add `launch`."""
    parser = commands.add(
        "launch",
        launch,
        help="commands and files that serve a model on a machine",
        example='breakeven launch qwen3.5-35b-a3b --gpu "H100 SXM" --quant FP8',
        parents=[workload_parent()],
    )
    add_model(parser, is_optional=True)
    parser.add_argument("-o", "--output", metavar="FILE", help="write the docker compose file here")


def launch(arguments: argparse.Namespace, context: Context) -> Output:
    """Return what starts the configuration."""
    from dashboard.commands.inputs import asked
    from dashboard.commands.size import sized
    from dashboard.commands.sizing_text import sentence
    from planner import launch as launching

    question = asked(arguments, context.environ)
    sizing = sized(question)
    ways = launching.launches(sizing)
    if arguments.output is not None:
        _write(ways[0], arguments.output)
        context.tell(f"compose file of {ways[0].engine} written to {arguments.output}")
    return Output(
        document=launching.to_document(sizing),
        headline=sentence(sizing),
        text=lambda: tables.paragraphs(*(_text(way, ways[0]) for way in ways)),
        warnings=question.warnings,
    )


def _text(way: "Launch", first: "Launch") -> str:
    """Return one engine's commands; what was said of the first is not said again."""
    compose = f"docker compose:\n\n{way.compose}" if way.compose else ""
    notes = way.notes if way is first else [note for note in way.notes if note not in first.notes]
    return tables.paragraphs(
        f"# {way.engine}, then http://127.0.0.1:{way.port}", way.command, compose, tables.bullets(notes)
    )


def _write(way: "Launch", name: str) -> None:
    if way.compose is None:
        raise UsageError(f"-o: no image of {way.engine} is published for this device, so there is no file")
    write_file(name, way.compose.encode(), "--output")
