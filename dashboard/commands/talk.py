"""`talk`: whether one can talk to a model on a machine - fit, work per token, time to an answer, speech."""

import argparse
from typing import TYPE_CHECKING

from dashboard import tables
from dashboard.commands.arguments import add_model, number, workload_parent
from dashboard.commands.base import Commands, Context, Output

if TYPE_CHECKING:
    from planner.talking import Talk

# Options of the thresholds and of speech: name of the field, what it is.
THRESHOLDS = (
    ("batch_tokens_per_s", "tokens/s for one user below which it is too slow for anything (1)"),
    ("chat_tokens_per_s", "tokens/s for one user from which it is a chat (10)"),
    ("smooth_tokens_per_s", "from which it is a smooth chat, and a voice (30)"),
    ("chat_ttft_ms", "longest wait for the first token of a chat (10000)"),
    ("smooth_ttft_ms", "of a smooth chat (2000)"),
    ("voice_ttft_ms", "of a voice (500)"),
)
SPEECH = (
    ("utterance_s", "seconds that a person speaks at a time (5)"),
    ("recognition_times_real_time", "how much faster than speech it is recognised (12.4)"),
    ("recognition_gib", "memory of what recognises it (4.42)"),
    ("phrase_tokens", "tokens that are spoken first, while the rest is written (20)"),
    ("synthesis_times_real_time", "how much faster than speech it is spoken (35)"),
    ("synthesis_gib", "memory of what speaks (0.76)"),
)


def register(commands: Commands) -> None:
    """Add `talk`."""
    parser = commands.add(
        "talk",
        run,
        help="whether one can talk to a model on a machine: batch only, chat, smooth chat or voice",
        example='breakeven talk qwen3.5-35b-a3b --gpu "H100 SXM" --quant FP8',
        parents=[workload_parent()],
        more="It tells whether it fits, what a token takes, how long an answer, and what speech adds.",
    )
    add_model(parser)
    for title, options in (("thresholds", THRESHOLDS), ("speech", SPEECH)):
        add = parser.add_argument_group(title).add_argument
        for name, words in options:
            add(f"--{name.replace('_', '-')}", metavar="X", type=number, help=words)


def run(arguments: argparse.Namespace, context: Context) -> Output:
    """Answer the four questions."""
    from dashboard.commands.inputs import asked
    from dashboard.commands.size import sized
    from dashboard.commands.sizing_text import machine_name
    from planner.serving.usability import Thresholds
    from planner.talking import Speech, talk

    def given(options: tuple[tuple[str, str], ...]) -> dict[str, float]:
        values = {name: getattr(arguments, name, None) for name, _ in options}
        return {name: value for name, value in values.items() if value is not None}

    thresholds, speech = Thresholds(**given(THRESHOLDS)), Speech(**given(SPEECH))
    question = asked(arguments, context.environ)
    found = talk(sized(question), thresholds, speech)
    work = found.sizing.workload
    where = f"{work.model.name} in {work.quant.name} on {machine_name(found.sizing)}"
    return Output(
        document=found.to_document(),
        headline=f"{where}: {found.verdict.usability} ({found.verdict.reason}).",
        text=lambda: _text(found),
        warnings=question.warnings,
    )


def _text(found: "Talk") -> str:
    memory, model, speech = found.sizing.memory.to_document(), found.sizing.workload.model, found.speech
    speed, out = found.sizing.speed, found.sizing.workload.output_tokens
    fits = "yes" if found.sizing.memory.fits else "no"
    share = "all of them" if model.active_params == model.main_params else "what a token uses"
    beside = "fits beside it" if found.fits_with_speech else "does not fit beside it"
    rows = [
        (
            "does it fit",
            f"{fits}: {tables.gib(memory['total_gib'])} of {tables.gib(memory['usable_gib'])} GiB usable",
        ),
        (
            "work per token",
            f"{found.gflop_per_token:,.1f} GFLOP: 2 x {tables.params(model.active_params)} ({share}), "
            f"of {tables.params(model.main_params)}",
        ),
    ]
    if speed is not None and found.answer_ms is not None and found.gap_ms is not None:
        rate = f"{1e3 / speed.tpot_ms:,.1f}*"
        rows += [
            (
                "text to answer",
                f"first token after {speed.ttft_ms:,.0f}* ms, {rate} tokens/s, {out:,} tokens after "
                f"{found.answer_ms / 1e3:,.1f}* s",
            ),
            (
                "speech in and out",
                f"{speech.recognition_ms:,.0f} + {speech.synthesis_ms:,.0f} ms, {speech.total_gib:.2f} GiB "
                f"({beside}); first sound {found.gap_ms / 1e3:,.2f}* s after the end of a turn",
            ),
        ]
    limits = found.thresholds
    steps = (
        ("batch only", limits.batch_tokens_per_s, None),
        ("chat", limits.chat_tokens_per_s, limits.chat_ttft_ms),
        ("smooth chat", limits.smooth_tokens_per_s, limits.smooth_ttft_ms),
        ("voice", limits.smooth_tokens_per_s, limits.voice_ttft_ms),
    )
    table = [(name, f"{rate:g}", "" if wait is None else f"{wait:,.0f}") for name, rate, wait in steps]
    return tables.paragraphs(
        tables.table(("question", "answer"), rows, left=(0, 1)),
        tables.table(("verdict", "tokens/s from", "first token within ms"), table, left=(0,)),
        tables.ESTIMATE_NOTE,
    )
