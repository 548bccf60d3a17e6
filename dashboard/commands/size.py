"""`size`, `matrix`: memory and speed of a model on machines."""

import argparse
from typing import TYPE_CHECKING

from dashboard.commands.arguments import workload_parent
from dashboard.commands.base import Commands, Context, Output, UsageError

if TYPE_CHECKING:
    from dashboard.commands.inputs import Asked
    from planner.sizing import Sizing
    from planner.workload import Machine


def register(commands: Commands) -> None:
    """Add `size` and `matrix`."""
    options = workload_parent()
    size = commands.add(
        "size",
        size_one,
        help="memory and speed of a model on one machine",
        example='breakeven size qwen3.5-35b-a3b --gpu "H100 SXM" --quant FP8',
        parents=[options],
        more="With --rows, of many configurations at once: a CSV file with a column per option.",
    )
    size.add_argument("model", metavar="MODEL", nargs="?", help="id or alias (`breakeven models`)")
    size.add_argument("--rows", metavar="IN.csv", help="size every row of this file")
    size.add_argument("-o", "--output", metavar="OUT.csv", help="where the sized rows go")
    matrix = commands.add(
        "matrix",
        size_many,
        help="memory and speed for every format, context length or GPU",
        example="breakeven matrix llama-3.3-70b-instruct --over gpu",
        parents=[options],
    )
    matrix.add_argument("model", metavar="MODEL", nargs="?", help="id or alias (`breakeven models`)")
    matrix.add_argument(
        "--over", choices=("quant", "context", "gpu"), default="quant", help="what changes from row to row"
    )


def size_one(arguments: argparse.Namespace, context: Context) -> Output:
    """Size one machine, or the rows of a file."""
    from dashboard.commands.inputs import asked

    if arguments.rows is not None:
        from dashboard.commands import rows

        return rows.run(arguments, context)
    if arguments.output is not None:
        raise UsageError("-o: it goes with --rows IN.csv; one machine is printed")
    question = asked(arguments)
    sizing = _sized(question)

    def text() -> str:
        from dashboard.commands.sizing_text import details

        return details(sizing)

    from dashboard.commands.sizing_text import sentence

    return Output(
        document=sizing.to_document(), headline=sentence(sizing), text=text, warnings=question.warnings
    )


def size_many(arguments: argparse.Namespace, context: Context) -> Output:
    """Size one model for every format, context length or device."""
    del context
    from dashboard.commands.inputs import asked
    from dashboard.commands.sizing_text import machine_name, rows_table
    from planner import matrix

    question = asked(arguments)
    over = arguments.over
    if over == "gpu":
        sizings = matrix.over_gpus(question.workload, question.scenario.gpus or 1)
    else:
        machine = _machine(question)
        across = matrix.over_quants if over == "quant" else matrix.over_contexts
        sizings = across(question.workload, machine)
    labels = {"quant": "format", "context": "context tokens", "gpu": "machine"}

    def label(sizing: "Sizing") -> str:
        work = sizing.workload
        if over == "quant":
            return work.quant.name
        return f"{work.context_tokens:,}" if over == "context" else machine_name(sizing)

    documents = [sizing.to_document() for sizing in sizings]
    return Output(
        document={
            "schema": "breakeven.matrix/1",
            "over": over,
            "model": documents[0]["model"] if documents else None,
            "rows": [{name: value for name, value in row.items() if name != "schema"} for row in documents],
        },
        text=lambda: rows_table(sizings, labels[over], [label(sizing) for sizing in sizings]),
        warnings=question.warnings,
    )


def _machine(question: "Asked") -> "Machine":
    if question.machine is None:
        raise UsageError('--gpu: name a device, for instance --gpu "H100 SXM" (`breakeven gpus` lists them)')
    return question.machine


def _sized(question: "Asked") -> "Sizing":
    from planner.sizing import size

    measured = question.scenario.decode_tokens_per_s
    return size(question.workload, _machine(question), measured_decode_tokens_per_s=measured)
