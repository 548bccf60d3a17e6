"""`import`: own contract prices and hardware quotes from a CSV file, with the source named."""

import argparse
from pathlib import Path

from dashboard import tables
from dashboard.commands.base import Commands, Context, Output, UsageError


def register(commands: Commands) -> None:
    """Add `import`."""
    parser = commands.add(
        "import",
        run,
        help="take in own contract prices or hardware quotes from a CSV file",
        example='breakeven import contracts.csv --source "frame contract 4711"',
        more="A source that is imported again replaces what it said before; one bad row refuses the file.",
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="CSV; `--template` prints one to fill in")
    parser.add_argument(
        "--source", metavar="TEXT", help="where the prices come from, for rows that name none"
    )
    parser.add_argument(
        "--template", action="store_true", help="print a file with all columns and two examples"
    )


def run(arguments: argparse.Namespace, context: Context) -> Output:
    """Read the file and keep what it says."""
    from pricing.own.ownfile import COLUMNS, ImportRefused, read, template

    if arguments.template:
        columns = [{"name": name, "meaning": meaning} for name, meaning in COLUMNS.items()]
        document = {"schema": "breakeven.import-template/1", "columns": columns, "csv": template()}
        return Output(document=document, text=template())
    if arguments.file is None:
        raise UsageError("give a FILE; `breakeven import --template` prints one to fill in")
    from dashboard.commands.storage import open_store
    from pricing.own.doubts import doubts
    from pricing.registry import kinds
    from pricing.verification.market import Market

    now, content = context.clock(), _text(arguments.file)
    with open_store(context) as store:
        try:
            file = read(content, now.date(), arguments.source, store.exchange_rates())
        except ImportRefused as error:
            raise UsageError(f"{arguments.file}: {error}") from error
        far = tuple(doubts(file, Market(store.known_prices(), kinds())))
        report = store.import_own(file, now)
    kept = tables.plural(report.new + report.changed + report.unchanged, "contract price")
    return Output(
        document=report.to_document(),
        text=(
            f"{kept} ({report.new} new, {report.changed} changed, {report.ended} ended) and "
            f"{tables.plural(report.quotes, 'quote')} from {', '.join(report.sources)}"
        ),
        warnings=far,
    )


def _text(name: str) -> str:
    from pricing.own.ownfile import MAX_BYTES

    path = Path(name)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{name}: is larger than {MAX_BYTES // 2**20} MB; is it the right file?")
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: is not UTF-8 text; save it as CSV UTF-8") from error
    except OSError as error:
        raise UsageError(f"{name}: cannot be read ({error.strerror})") from error
