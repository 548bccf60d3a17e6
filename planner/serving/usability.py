"""Fits is not usable: whether a speed serves a conversation, a voice, or only a batch job."""

from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import pairwise

from planner.errors import InvalidScenario
from planner.serving.speeds import Speed

# An answer of 300 words is about 390 tokens: at this rate it takes six and a half minutes.
BATCH_TOKENS_PER_S = 1.0
# Default of `min_tokens_per_s_per_user`: slower options rank last, as too slow to talk to. Silent reading is
# 238 words/min (Brysbaert 2019, 190 studies) = 5.2 tokens/s at 1.3 tokens a word, skimming twice that.
CHAT_TOKENS_PER_S = 10.0
# Three times that: text appears faster than anybody reads it, and hidden reasoning does not stall.
SMOOTH_TOKENS_PER_S = 30.0
# Longer without feedback, and attention leaves the dialogue (Nielsen 1993, limits of response time: 10 s).
CHAT_TTFT_MS = 10_000.0
# The flow of thought stays unbroken up to about 1 s (Nielsen 1993); first words within two of them.
SMOOTH_TTFT_MS = 2_000.0
# In speech, gaps between turns average 200 ms (Stivers et al. 2009) and seem hesitant above 700 ms (Roberts
# and Francis 2013), of which recognition and synthesis need a share. Speaking itself takes 3.3 tokens/s only.
VOICE_TTFT_MS = 500.0


class Usability(StrEnum):
    """What a speed is good for, the slowest first."""

    UNKNOWN = "unknown"
    TOO_SLOW = "too slow"
    BATCH_ONLY = "batch only"
    CHAT = "chat"
    SMOOTH_CHAT = "smooth chat"
    VOICE = "voice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a configuration is good for, and why not for more."""

    usability: Usability
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From which speed on, and up to which wait for the first token, it is what."""

    batch_tokens_per_s: float = BATCH_TOKENS_PER_S
    chat_tokens_per_s: float = CHAT_TOKENS_PER_S
    smooth_tokens_per_s: float = SMOOTH_TOKENS_PER_S
    chat_ttft_ms: float = CHAT_TTFT_MS
    smooth_ttft_ms: float = SMOOTH_TTFT_MS
    voice_ttft_ms: float = VOICE_TTFT_MS

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not 0.0 < getattr(self, name) < 1e9:
                raise InvalidScenario(name, getattr(self, name), "a number above 0")
        self._check_order("batch_tokens_per_s", "chat_tokens_per_s", "smooth_tokens_per_s")
        self._check_order("voice_ttft_ms", "smooth_ttft_ms", "chat_ttft_ms")

    def _check_order(self, *names: str) -> None:
        """Refuse thresholds that do not rise in this order, by the name of the one that was changed."""
        defaults = {field.name: field.default for field in fields(self)}
        for low, high in pairwise(names):
            lower, upper = getattr(self, low), getattr(self, high)
            if lower <= upper:
                continue
            if upper == defaults[high]:
                raise InvalidScenario(low, lower, f"at most the {upper:g} of {high}")
            raise InvalidScenario(high, upper, f"at least the {lower:g} of {low}")


DEFAULT = Thresholds()


def verdict(speed: Speed | None, thresholds: Thresholds = DEFAULT) -> Verdict:
    """
    Return what a speed is good for.

    Every step needs both: tokens for one user at the batch, prompts of the others included, and a first token
    in time.

    Args:
        speed: Of a sizing; None where it does not fit or is not known.
        thresholds: Of the steps.

    Source:
        docs/methodology.md, "Fits is not usable".
    """
    if speed is None:
        return Verdict(usability=Usability.UNKNOWN, reason="it does not fit, or its speed is not known")
    rate, ttft_ms = 1e3 / speed.tpot_ms, speed.ttft_ms
    least = thresholds.batch_tokens_per_s
    if rate < least:
        return Verdict(usability=Usability.TOO_SLOW, reason=f"{rate:.2f} tokens/s is below {least:g}")
    steps = (
        (Usability.CHAT, thresholds.chat_tokens_per_s, thresholds.chat_ttft_ms),
        (Usability.SMOOTH_CHAT, thresholds.smooth_tokens_per_s, thresholds.smooth_ttft_ms),
        (Usability.VOICE, thresholds.smooth_tokens_per_s, thresholds.voice_ttft_ms),
    )
    reached = Usability.BATCH_ONLY
    for name, tokens_per_s, limit_ms in steps:
        if rate < tokens_per_s:
            return Verdict(
                usability=reached, reason=f"{name} needs {tokens_per_s:g} tokens/s, here {rate:.1f}"
            )
        if ttft_ms > limit_ms:
            return Verdict(
                usability=reached,
                reason=f"{name} needs a first token within {limit_ms:,.0f} ms, here {ttft_ms:,.0f}",
            )
        reached = name
    return Verdict(usability=reached, reason=f"{rate:.1f} tokens/s, first token after {ttft_ms:,.0f} ms")
