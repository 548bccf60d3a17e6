"""A plan as a text for people: Markdown, and one HTML page that needs nothing else."""

import html
import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from planner.answers.explain import is_estimate
from planner.answers.money import Money
from planner.compare import Plan
from planner.supply.options import Kind, Option

ESTIMATE_NOTE = "* estimated: the speed, and with it the price of a token"

Lines = Sequence[tuple[str, str]]

_MARKDOWN_SPECIAL = re.compile(r"([\\|`*_<>\[\]])")


def markdown(plan: Plan, about: Lines) -> bytes:
    """
    Return the plan as Markdown: verdict, table, what was left out.

    Args:
        plan: The plan.
        about: Name and text of each line on what the file is.
    """
    lines = [f"# {plain(plan.model.name)}: rent, buy or API", "", f"**{plain(plan.verdict)}**", ""]
    lines += [f"| {' | '.join(_short_headers(plan))} |", f"|{'|'.join(_SHORT_ALIGN)}|"]
    lines += [f"| {' | '.join(plain(cell) for cell in row)} |" for row in _short_rows(plan)]
    lines += ["", plain(ESTIMATE_NOTE), ""]
    if plan.excluded:
        lines += ["## Left out", ""]
        lines += [f"- {plain(entry.what)}: {plain(entry.why)}" for entry in plan.excluded]
        lines.append("")
    lines += ["## About", ""]
    lines += [f"- {name}: {plain(text)}" for name, text in about]
    return ("\n".join(lines) + "\n").encode()


def page(plan: Plan, about: Lines) -> bytes:
    """
    Return the plan as one HTML page that needs nothing else.

    Args:
        plan: The plan.
        about: Name and text of each line on what the page is.
    """
    head = "".join(f"<th scope=col>{html.escape(name)}</th>" for name in _short_headers(plan))
    align = ["left" if mark == "---" else "right" for mark in _SHORT_ALIGN]
    body = "\n".join(
        "<tr>"
        + "".join(f"<td class={side}>{_cell(cell)}</td>" for side, cell in zip(align, row, strict=True))
        + "</tr>"
        for row in _short_rows(plan)
    )
    left_out = "\n".join(
        f"<li>{html.escape(entry.what)}: {html.escape(entry.why)}</li>" for entry in plan.excluded
    )
    lines = "\n".join(f"<li>{html.escape(name)}: {html.escape(text)}</li>" for name, text in about)
    title = html.escape(f"{plan.model.name}: rent, buy or API")
    text = _PAGE.format(
        title=title, verdict=html.escape(plan.verdict), head=head, body=body, left_out=left_out, about=lines,
        estimate=html.escape(ESTIMATE_NOTE),
    )  # fmt: skip
    return text.encode()


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }}
.verdict {{ font-size: 1.25rem; font-weight: 600; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }}
th, td {{ border-bottom: 1px solid #999; padding: .3rem .6rem; text-align: left; vertical-align: top; }}
td.right {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #111; color: #eee; }} a {{ color: #8cf; }} }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="verdict">{verdict}</p>
<div class="wide" tabindex="0" role="region" aria-label="Options">
<table>
<caption>Every way to serve it, cheapest first. {estimate}</caption>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</div>
<h2>Left out</h2>
<ul>
{left_out}
</ul>
<h2>About</h2>
<ul>
{about}
</ul>
</body>
</html>
"""


_SHORT_HEADERS = (
    "#",
    "option",
    "from",
    "tier",
    "{c}/GPU-h",
    "{c}/h",
    "{c}/month",
    "{c}/M tokens",
    "tokens/s, one user",
    "tokens/s, all",
    "VRAM total, GB",
    "to buy, {c}",
    "pays back, months",
    "price",
    "source",
)


_SHORT_ALIGN = ("--:", "---", "---", "---", *("--:",) * 9, "---", "---")


def _short_headers(plan: Plan) -> list[str]:
    """Return the titles, with the currency that is shown."""
    return [title.format(c=plan.money.currency) for title in _SHORT_HEADERS]


def _short_rows(plan: Plan) -> Iterable[tuple[str, ...]]:
    """Return the options as a person reads them: rounded, estimates marked, unknown empty."""
    for rank, (option, why_not) in enumerate(zip(plan.options, plan.passed_over(), strict=True), start=1):
        speed, prices = option.point.speed if option.point else None, option.token_prices
        mark = "*" if is_estimate(option) else ""
        why = why_not or ("too slow to talk to" if option.is_too_slow else "")
        note = f" ({why})" if why else ""
        yield (
            str(rank),
            f"{'buy ' if option.kind is Kind.BUY and not option.is_own else ''}{option.times_text}{note}",
            option.provider_title or option.provider or "",
            option.tier or "",
            _stored(option.usd_per_gpu_hour, plan.money),
            _stored(option.usd_per_hour, plan.money),
            "" if option.usd_per_month is None else f"{plan.money.amount(option.usd_per_month):,.2f}",
            "" if prices is None else f"{plan.money.amount(prices.usd_per_million_tokens):,.2f}{mark}",
            "" if speed is None else f"{speed.decode_tokens_per_s:,.1f}{mark}",
            "" if speed is None else f"{speed.aggregate_tokens_per_s:,.1f}{mark}",
            "" if option.vram_total_gb is None else f"{option.vram_total_gb:,.0f}",
            "" if option.purchase_usd is None else f"{plan.money.amount(option.purchase_usd):,.0f}",
            _payback(option),
            f"{option.price.status} {(option.price.seen_at or '')[:10]}".strip(),
            option.price.source_url or option.purchase_source or "",
        )


def _stored(usd: str | None, money: Money) -> str:
    """Write an hourly price: in dollars as it is stored, else as it is in the currency shown."""
    return usd or "" if usd is None or money.currency == "USD" else f"{money.amount(float(usd)):,.4f}"


def _payback(option: Option) -> str:
    """Return the months to break-even, or in words that there are none, or that nothing can be rented."""
    if option.kind is not Kind.BUY:
        return ""
    if option.compared_with is None:
        return "nothing to compare"
    if option.break_even_months is None:
        return "never"
    months = f"{option.break_even_months:,.1f}"
    return f"not within its term ({months})" if option.pays_after_its_term else months


def plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return _MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _cell(text: str) -> str:
    """Return a cell of an HTML table; an address becomes a link."""
    if text.startswith("https://") and " " not in text:
        host = html.escape(urlsplit(text).netloc)
        return f'<a href="{html.escape(text)}" rel="noreferrer">{host}</a>'
    return html.escape(text)
