"""What is announced of a run, and how: short texts without secrets, through apprise."""

import logging
from collections.abc import Sequence
from importlib.util import find_spec

from pricing.registry import is_of_asks, provider_infos
from pricing.running.reports import RunReport
from pricing.storage.memory import RunStatus
from pricing.verification.moves import Move

logger = logging.getLogger(__name__)

# Of each kind; the rest is counted. A message must be read on a telephone.
LINES = 5
MAX_LINE = 160


def announcement(report: RunReport, moves: Sequence[Move], move_percent: float) -> tuple[str, str] | None:
    """
    Return title and text for a run, None where there is nothing to tell.

    Told are failures, prices held back, and list prices that moved by at least a share; RunPod posts a list
    too. Asks of single hosts move every day and are not told.

    Args:
        report: How the run went.
        moves: The prices that it changed.
        move_percent: From which move on; 0 for none. [%]
    """
    failed = [part for part in report.providers if part.status is RunStatus.FAILED]
    held = [part for part in report.providers if part.quarantined or part.rejected]
    large = [move for move in moves if _is_told(move, move_percent)]
    rates = report.exchange
    is_rate_missing = rates is not None and (rates.reason is not None or rates.held > 0)
    tokens = report.token_prices
    is_token_missing = tokens is not None and tokens.reason is not None
    if not (failed or held or large or is_rate_missing or is_token_missing):
        return None
    quarantined = sum(part.quarantined for part in held)
    rejected = sum(part.rejected for part in held)
    counts = [
        f"{len(failed)} of {len(report.providers)} sources failed" if failed else "",
        f"{quarantined} prices in quarantine" if quarantined else "",
        f"{rejected} rejected" if rejected else "",
        f"{len(large)} list {'price' if len(large) == 1 else 'prices'} moved" if large else "",
        "rates of exchange not taken" if is_rate_missing else "",
        "no prices of API tokens" if is_token_missing else "",
    ]
    title = "breakeven: " + ", ".join(part for part in counts if part)
    blocks = [
        _listed([f"failed: {part.title}: {part.reason}" for part in failed]),
        _listed([_held(part.title, part.quarantined, part.rejected) for part in held]),
        _listed([_moved(move) for move in large]),
        _listed([rates.line]) if rates is not None and is_rate_missing else [],
        _listed([tokens.line]) if tokens is not None and is_token_missing else [],
    ]
    text = "\n".join(line for block in blocks for line in block)
    more = "\n`breakeven prices rejected` says why prices are held back." if held else ""
    return title, f"{text}{more}\nRun of {report.started_at:%Y-%m-%d %H:%M} UTC."


def failure(what: str) -> tuple[str, str]:
    """Return title and text for a run that did not come about."""
    return "breakeven: the refresh of prices failed", _short(what)


def send(url: str, title: str, text: str) -> bool:
    """
    Announce something; a failure to do so is logged and never stops a run.

    Args:
        url: An address that apprise knows; it may hold a password and is never shown.
        title: One line.
        text: A few lines.

    Returns:
        Whether it was sent.
    """
    if find_spec("apprise") is None:
        logger.warning("BREAKEVEN_NOTIFY_URL is set and apprise is missing: pip install 'breakeven[notify]'")
        return False
    import apprise

    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its messages hold addresses
    messenger = apprise.Apprise()
    if not messenger.add(url):
        logger.warning("BREAKEVEN_NOTIFY_URL: not an address that apprise knows (its value is not shown)")
        return False
    if not messenger.notify(title=title, body=text):
        logger.warning("BREAKEVEN_NOTIFY_URL: the announcement could not be sent")
        return False
    return True


def _is_told(move: Move, percent: float) -> bool:
    return percent > 0 and abs(move.percent) >= percent and not is_of_asks(move.provider)


def _held(title: str, quarantined: int, rejected: int) -> str:
    counts = [
        f"{quarantined} in quarantine" if quarantined else "",
        f"{rejected} rejected" if rejected else "",
    ]
    return f"held back: {title}: {', '.join(part for part in counts if part)}"


def _moved(move: Move) -> str:
    info = provider_infos().get(move.provider)
    place = f", {move.region}" if move.region else ""
    return (
        f"moved: {info.title if info else move.provider} {move.gpu_count}x {move.gpu} ({move.tier}{place}): "
        f"{move.old_usd_per_hour:.2f} to {move.new_usd_per_hour:.2f} USD/h ({move.percent:+.0f} %)"
    )


def _listed(lines: Sequence[str]) -> list[str]:
    shown = [_short(line) for line in lines[:LINES]]
    return [*shown, f"and {len(lines) - LINES} more"] if len(lines) > LINES else shown


def _short(line: str) -> str:
    text = " ".join(line.split())
    return text if len(text) <= MAX_LINE else f"{text[: MAX_LINE - 1]}…"
