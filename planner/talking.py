"""Fit to talk to: does it fit, what does a token take, how long an answer, what do speech in and out add."""

from dataclasses import dataclass, replace

from planner.errors import InvalidScenario
from planner.serving.speeds import request_ms
from planner.serving.usability import Thresholds, Usability, Verdict, verdict
from planner.sizing import Sizing
from planner.units import GIB

TALK_SCHEMA = "breakeven.talk/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """What recognises and speaks beside the model, and how much of each a turn has."""

    # A turn of a person. Source: judgement, a dozen words at the rate below.
    utterance_s: float = 5.0
    # Whisper large-v2 in faster-whisper, 16 bit: 13 minutes of audio in 63 s on an RTX 3070 Ti, 4,525 MB.
    # Source: https://github.com/SYSTRAN/faster-whisper, "Benchmark".
    recognition_times_real_time: float = 12.4
    recognition_gib: float = 4.42
    # Spoken first, while the rest is written: a sentence of 15 words. Source: judgement.
    phrase_tokens: float = 20.0
    # 150 words a minute at 1.3 tokens a word. Source: common rate of conversation.
    spoken_tokens_per_s: float = 3.3
    # Kokoro-82M on an RTX 4060 Ti: 35 to 50 times real time. Source: https://github.com/remsky/Kokoro-FastAPI.
    synthesis_times_real_time: float = 35.0
    # 82 million parameters in 32 bit, 0.31 GiB, and a context on the device of 0.45 GiB.
    # Source: https://huggingface.co/hexgrad/Kokoro-82M; docs/methodology.md, "Memory".
    synthesis_gib: float = 0.76

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not 0.0 <= value < 1e6 or (value == 0.0 and not name.endswith("_gib")):
                raise InvalidScenario(name, value, "a number above 0")

    @property
    def recognition_ms(self) -> float:
        """From the end of a turn to its text, where it is heard out first. [ms]"""
        return 1e3 * self.utterance_s / self.recognition_times_real_time

    @property
    def synthesis_ms(self) -> float:
        """From the first phrase to its sound. [ms]"""
        return 1e3 * self.phrase_tokens / self.spoken_tokens_per_s / self.synthesis_times_real_time

    @property
    def total_gib(self) -> float:
        """Memory of both. [GiB]"""
        return self.recognition_gib + self.synthesis_gib


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """The four answers for one machine."""

    sizing: Sizing
    thresholds: Thresholds
    speech: Speech
    verdict: Verdict
    fits_with_speech: bool
    answer_ms: float | None  # from sending to the last token [ms]
    gap_ms: float | None  # from the end of a turn to the first sound [ms]

    @property
    def gflop_per_token(self) -> float:
        """Operations of one token: two for each parameter that it uses. [GFLOP]"""
        return 2.0 * self.sizing.workload.model.active_params / 1e9

    def to_document(self) -> dict[str, object]:
        """Return it as `breakeven.talk/1`."""
        speed, model, speech = self.sizing.speed, self.sizing.workload.model, self.speech
        memory = self.sizing.memory.to_document()
        return {
            "schema": TALK_SCHEMA,
            "model": model.id,
            "quant": self.sizing.workload.quant.name,
            "gpu": self.sizing.machine.gpu.name,
            "gpu_count": self.sizing.machine.gpu_count,
            "batch": self.sizing.workload.batch,
            "fits": self.sizing.memory.fits,
            "total_gib": memory["total_gib"],
            "headroom_gib": memory["headroom_gib"],
            "total_params": model.main_params,
            "active_params": model.active_params,
            "gflop_per_token": self.gflop_per_token,
            "tokens_per_s_per_user": None if speed is None else 1e3 / speed.tpot_ms,
            "ttft_ms": None if speed is None else speed.ttft_ms,
            "answer_ms": self.answer_ms,
            "speech": {
                "recognition_ms": speech.recognition_ms,
                "synthesis_ms": speech.synthesis_ms,
                "gib": speech.total_gib,
                "gap_ms": self.gap_ms,
                "fits": self.fits_with_speech,
            },
            "verdict": str(self.verdict.usability),
            "reason": self.verdict.reason,
            "thresholds": {name: getattr(self.thresholds, name) for name in self.thresholds.__slots__},
        }


def talk(sizing: Sizing, thresholds: Thresholds | None = None, speech: Speech | None = None) -> Talk:
    """
    Return whether one can talk to a model on a machine.

    A voice needs its ears and its tongue on the same machine: where they do not fit beside the model the
    verdict ends at smooth chat.

    Args:
        sizing: The model on the machine.
        thresholds: From which speeds on it is what.
        speech: What recognises and speaks.

    Source:
        docs/methodology.md, "Fits is not usable".
    """
    limits, spoken = thresholds or Thresholds(), speech or Speech()
    found, speed = verdict(sizing.speed, limits), sizing.speed
    left = sizing.memory.usable_bytes - sizing.memory.total_bytes
    fits = sizing.memory.fits and spoken.total_gib * GIB <= left
    if found.usability is Usability.VOICE and not fits:
        why = f"speech in and out takes {spoken.total_gib:.1f} GiB, {left / GIB:.1f} are left"
        found = replace(found, usability=Usability.SMOOTH_CHAT, reason=why)
    answer_ms = gap_ms = None
    if speed is not None:
        answer_ms = request_ms(speed.ttft_ms, speed.tpot_ms, sizing.workload.output_tokens)
        gap_ms = (
            spoken.recognition_ms
            + speed.ttft_ms
            + (spoken.phrase_tokens - 1.0) * speed.tpot_ms
            + spoken.synthesis_ms
        )
    return Talk(
        sizing=sizing,
        thresholds=limits,
        speech=spoken,
        verdict=found,
        fits_with_speech=fits,
        answer_ms=answer_ms,
        gap_ms=gap_ms,
    )
