"""`size`, `matrix`, `capacity`: memory and speed of a model on machines."""

import argparse
from typing import TYPE_CHECKING

from dashboard.commands.arguments import add_model, number, workload_parent
from dashboard.commands.base import Commands, Context, Output, UsageError

if TYPE_CHECKING:
    from dashboard.commands.inputs import Asked
    from planner.sizing import Sizing
    from planner.workload import Machine

# Measured configurations that stand beside an estimate.
NEAREST = 3


def register(commands: Commands) -> None:
    """Add `size`, `matrix` and `capacity`."""
    options = workload_parent()
    size = commands.add(
        "size",
        size_one,
        help="memory and speed of a model on one machine",
        example='breakeven size qwen3.5-35b-a3b --gpu "H100 SXM" --quant FP8',
        parents=[options],
        more="With --rows, of many configurations at once: a CSV file with a column per option.",
    )
    add_model(size, is_optional=True)
    size.add_argument("--rows", metavar="IN.csv", help="size every row of this file")
    size.add_argument("-o", "--output", metavar="OUT.csv", help="where the sized rows go")
    matrix = commands.add(
        "matrix",
        size_many,
        help="memory and speed for every format, context length or GPU",
        example="breakeven matrix llama-3.3-70b-instruct --over gpu",
        parents=[options],
    )
    add_model(matrix, is_optional=True)
    matrix.add_argument(
        "--over", choices=("quant", "context", "gpu"), default="quant", help="what changes from row to row"
    )
    capacity = commands.add(
        "capacity",
        screen,
        help="how many GPUs hold the bare weights at 16, 8 and 4 bits, with 15 percent of each kept free",
        example='breakeven capacity qwen3.5-35b-a3b --gpu "H100 SXM" --budget-gb 10',
        more="A first screen, before anything is known of engine or cache.",
    )
    add_model(capacity)
    capacity.add_argument("--gpu", metavar="NAME", required=True, help="GPU or device (`breakeven gpus`)")
    capacity.add_argument(
        "--budget-gb", metavar="X", type=number, default=0.0, help="for cache, workspace and buffers (0)"
    )


def size_one(arguments: argparse.Namespace, context: Context) -> Output:
    """Size one machine, or the rows of a file."""
    from dashboard.commands.inputs import asked
    from planner.catalogues.provenance import provenance

    if arguments.rows is not None:
        from dashboard.commands import rows

        return rows.run(arguments, context)
    if arguments.output is not None:
        raise UsageError("-o: it goes with --rows IN.csv; one machine is printed")
    from planner import evidence
    from planner.serving.fitting import remedies

    question = asked(arguments, context.environ)
    sizing = sized(question)
    given, machine = question.measured, (sizing.machine.gpu.name, sizing.machine.gpu_count)
    warnings = question.warnings
    if given is not None and given.key != machine:
        of = f"{given.gpu_count}x {given.gpu}"
        warnings = (*warnings, f"the speed given is that of {of} and is not used for another machine")
    record = provenance(question.model).to_document()
    near = [evidence.to_document(one) for one in evidence.nearest(sizing.workload, sizing.machine, NEAREST)]

    would_fit = remedies(sizing)

    def text() -> str:
        from dashboard.commands.sizing_text import details

        return details(sizing, near, would_fit)

    from dashboard.commands.sizing_text import sentence

    return Output(
        document={
            **sizing.to_document(),
            "remedies": [remedy.to_document() for remedy in would_fit],
            "provenance": record,
            "evidence": near,
        },
        headline=sentence(sizing),
        text=text,
        warnings=warnings,
    )


def size_many(arguments: argparse.Namespace, context: Context) -> Output:
    """Size one model for every format, context length or device."""
    from dashboard.commands.inputs import asked
    from dashboard.commands.sizing_text import machine_name, rows_table
    from planner import matrix

    question = asked(arguments, context.environ)
    over = arguments.over
    if over == "gpu":
        sizings = matrix.over_gpus(question.workload, question.scenario.gpus or 1)
    else:
        machine = _machine(question)
        across = matrix.over_quants if over == "quant" else matrix.over_contexts
        sizings = across(question.workload, machine)
    warnings, measured = question.warnings, question.measured
    if measured is not None:
        sizings = matrix.with_given(sizings, sized(question))
        if not any(sizing.is_speed_given for sizing in sizings):
            of = f"{measured.gpu_count}x {measured.gpu} in {question.quant.name} at context "
            warnings = (
                *warnings,
                f"the speed given is that of {of}{question.scenario.context:,}: no row is that",
            )
    labels = {"quant": "format", "context": "context tokens", "gpu": "machine"}

    def label(sizing: "Sizing") -> str:
        work = sizing.workload
        if over == "quant":
            return work.quant.name
        return f"{work.context_tokens:,}" if over == "context" else machine_name(sizing)

    return Output(
        document=matrix.to_document(over, sizings),
        text=lambda: rows_table(sizings, labels[over], [label(sizing) for sizing in sizings]),
        warnings=warnings,
    )


def screen(arguments: argparse.Namespace, context: Context) -> Output:
    """Screen one model on one device."""
    del context
    from dashboard import tables
    from dashboard.commands.inputs import machine_named, model_named, stated_in
    from planner.serving import capacity

    warnings: list[str] = []
    model = model_named(arguments.model, stated_in(vars(arguments))).model
    gpu = machine_named(arguments.gpu, 1, warnings).gpu
    document = capacity.to_document(model, gpu, arguments.budget_gb)
    layers = capacity.layer_evidence(model)
    kinds = ", ".join(f"{number} {kind}" for kind, number in layers.by_kind.items())
    headers = ("bits", "weights GB", "with budget GB", "usable per GPU GB", f"GPUs ({gpu.name})")

    def text() -> str:
        rows = [
            (
                row["bits"],
                tables.number(row["weights_gb"], 1),
                tables.number(row["needed_gb"], 1),
                tables.number(row["per_gpu_gb"], 1),
                row["gpu_count"],
            )
            for row in document["rows"]
        ]
        return tables.paragraphs(
            f"{model.name}: layers {kinds} (known from: {layers.evidence})",
            tables.table(headers, rows, left=()),
            f"Uniform weights in decimal GB, {tables.share(capacity.FREE_SHARE)} of each GPU kept free; "
            "a floor, `breakeven size` says what is really needed.",
        )

    return Output(document=document, text=text, warnings=tuple(warnings))


def _machine(question: "Asked") -> "Machine":
    if question.machine is not None:
        return question.machine
    if question.measured is not None:  # the file names its machine
        from planner.catalogues.gpus import all_gpus
        from planner.workload import Machine

        gpu, number = question.measured.key
        return Machine(gpu=all_gpus()[gpu], gpu_count=number)
    raise UsageError('--gpu: name a device, for instance --gpu "H100 SXM" (`breakeven gpus` lists them)')


def sized(question: "Asked") -> "Sizing":
    """Return the sizing of the machine that was named, with its measured speed where one is given."""
    from planner.sizing import size

    machine, measured = _machine(question), question.measured
    is_it = measured is not None and measured.key == (machine.gpu.name, machine.gpu_count)
    return size(
        question.workload,
        machine,
        measured_decode_tokens_per_s=measured.decode_tokens_per_s if measured and is_it else None,
        estimated_range=measured.estimated_range if measured and is_it else None,
    )
