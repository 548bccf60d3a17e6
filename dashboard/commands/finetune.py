"""`finetune`: memory of QLoRA, LoRA and full fine-tuning, and the machines that hold it."""

import argparse
from collections.abc import Mapping
from typing import Any

from dashboard import tables
from dashboard.commands.arguments import add_model, count
from dashboard.commands.base import Commands, Context, Output

MACHINES_SHOWN = 3


def register(commands: Commands) -> None:
    """Add `finetune`."""
    parser = commands.add(
        "finetune",
        finetune,
        help="memory of QLoRA, LoRA and full fine-tuning, and the machines that hold it",
        example="breakeven finetune qwen3.5-35b-a3b --sequence-tokens 4096 --rank 32",
    )
    add_model(parser)
    add = parser.add_argument
    add(
        "--sequence-tokens", metavar="N", type=count, default=2048, help="tokens of a training example (2048)"
    )
    add("--batch", metavar="N", type=count, default=1, help="examples of one step on one GPU (1)")
    add("--rank", metavar="N", type=count, default=16, help="rank of the adapters (16)")
    add(
        "--targets",
        choices=("attention", "linear", "experts"),
        default="linear",
        help="matrices with adapters: of attention, all but routed experts (linear), or these too",
    )
    add(
        "--train-embeddings", action="store_true", help="train embeddings and head whole, beside the adapters"
    )
    add(
        "--optimizer",
        choices=("adamw-mixed", "adamw-bf16", "adamw-8bit"),
        default="adamw-mixed",
        help="how optimizer states are kept (adamw-mixed)",
    )
    add("--unfused", action="store_true", help="an optimizer that keeps intermediates while it steps")
    add(
        "--no-checkpointing", action="store_true", help="keep all activations instead of computing them again"
    )
    add("--gpus", metavar="N", type=count, default=1, help="GPUs that train together (1)")
    add(
        "--sharding",
        choices=("none", "optimizer", "gradients", "full"),
        default="full",
        help="what they share out: ZeRO stages 0 to 3; full is also FSDP (full)",
    )
    add(
        "--method",
        choices=("calibrated", "simple"),
        help="show only this estimate; simple is a public sizing page's arithmetic",
    )


def finetune(arguments: argparse.Namespace, context: Context) -> Output:
    """Estimate what training takes."""
    del context
    from dashboard.commands.inputs import model_named, stated_in
    from planner.finetune import to_document, training_warnings
    from planner.finetuning import training as how
    from planner.finetuning.adapters import Targets

    model = model_named(arguments.model, stated_in(vars(arguments))).model
    training = how.Training(
        sequence_tokens=arguments.sequence_tokens,
        batch=arguments.batch,
        rank=arguments.rank,
        targets=Targets(arguments.targets),
        trains_embeddings=arguments.train_embeddings,
        optimizer=how.Optimizer(arguments.optimizer),
        is_fused=not arguments.unfused,
        is_checkpointed=not arguments.no_checkpointing,
        gpu_count=arguments.gpus,
        sharding=how.Sharding(arguments.sharding),
    )
    document = to_document(model, training)
    return Output(
        document=document,
        text=lambda: _text(document, arguments.method),
        warnings=training_warnings(model, training),
    )


def _text(document: Mapping[str, Any], method: str | None) -> str:
    shown = {"calibrated": ("physical",), "simple": ("simple",), None: ("physical", "simple")}[method]
    number = document["training"]["gpu_count"]
    none = "none of up to 8 GPUs" if number == 1 else f"none of {number} GPUs"
    headers = (
        "training",
        "estimate",
        "trained",
        "weights GiB",
        "gradients, optimizer GiB",
        "activations, buffers GiB",
        "total GiB",
        "smallest machines",
    )
    rows = [
        (
            row["tuning"],
            estimate,
            tables.params(part["trained_params"]),
            tables.gib(part["weights_gib"]),
            tables.gib(part["gradients_optimizer_gib"]),
            tables.gib(part["activations_gib"]),
            tables.starred(tables.gib(part["total_gib"])),
            ", ".join(f"{m['gpu_count']}x {m['gpu']}" for m in part["machines"][:MACHINES_SHOWN]) or none,
        )
        for row in document["rows"]
        for estimate, part in ((name, row[name]) for name in shown)
    ]
    return tables.paragraphs(
        f"Fine-tuning {document['model']['name']}",
        tables.table(headers, rows, left=(0, 1, 7)),
        tables.bullets(document["notes"]),
        tables.ESTIMATE_NOTE,
    )
