"""How predicted speed feels: text in the pieces and pauses in which a machine of that speed would send it."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# A screen that changes more often than this looks the same and costs more.
TICK_S = 0.05
# Tokens of English text in a word, roughly: 4 characters a token, 5.3 a word with its space.
TOKENS_PER_WORD = 1.3

TEXT = (
    "This is how fast an answer would appear. The pause before the first word is the time to the first "
    "token: the machine reads the whole prompt before it can write anything. From then on each piece "
    "arrives at the speed of one sequence, at the number of sequences that you asked for. People read "
    "four to five words a second, so anything above about six tokens a second is faster than reading; "
    "below one token a second hardly anybody waits for the end of a sentence. A model that thinks before "
    "it answers writes hundreds of hidden tokens first, which is why the same speed can feel quick in a "
    "chat and slow in an agent that edits files. Batching changes the picture: a server that is shared by "
    "many gives each of them less speed, and all of them together much more."
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that appears together after a pause."""

    pause_s: float
    text: str


def pieces(tokens_per_s: float, ttft_s: float, words: Sequence[str] = tuple(TEXT.split())) -> Iterator[Piece]:
    """
    Return the text in pieces, so that at any time as much has appeared as the speed allows.

    Args:
        tokens_per_s: Of one sequence. [tokens/s]
        ttft_s: Time to the first token. [s]
        words: What is written.
    """
    seconds_per_word = TOKENS_PER_WORD / tokens_per_s
    at_once = max(1, round(TICK_S / seconds_per_word))
    for start in range(0, len(words), at_once):
        piece = words[start : start + at_once]
        pause = ttft_s if start == 0 else seconds_per_word * at_once
        yield Piece(pause, " ".join(piece) + " ")


@dataclass(frozen=True, slots=True)
class Pace:
    """How a machine writes: its speed for one user, and how long it reads before."""

    name: str
    tokens_per_s: float
    ttft_s: float


@dataclass(frozen=True, slots=True)
class Turn:
    """The next piece of one of several machines that write at the same time."""

    pause_s: float  # since the piece before, whoever wrote it
    lane: int
    text: str


def race(paces: Sequence[Pace], words: Sequence[str] = tuple(TEXT.split())) -> Iterator[Turn]:
    """Return the pieces of several machines that begin together, in the order of time."""
    lanes = [_timed(lane, pace, words) for lane, pace in enumerate(paces)]
    before = 0.0
    for at, lane, text in heapq.merge(*lanes):
        yield Turn(at - before, lane, text)
        before = at


def _timed(lane: int, pace: Pace, words: Sequence[str]) -> Iterator[tuple[float, int, str]]:
    at = 0.0
    for piece in pieces(pace.tokens_per_s, pace.ttft_s, words):
        at += piece.pause_s
        yield at, lane, piece.text
