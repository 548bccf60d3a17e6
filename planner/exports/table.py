"""A table of plain values as a workbook or a Parquet file, the same bytes each time."""

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

# The first day that a zip archive can hold.
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_CORE_TIMES = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*(<)")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, with the unit, and the type of its values."""

    name: str
    kind: type


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns and rows; None is unknown."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]


def xlsx_bytes(sheets: Mapping[str, tuple[Sequence[tuple[str, str]], Table]], time: datetime) -> bytes:
    """
    Return a workbook.

    Args:
        sheets: By name: the lines on top, and the table.
        time: Written as the time of creation.
    """
    from openpyxl import Workbook  # loads slowly: only for those who ask for it
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font

    book = Workbook(write_only=True)
    book.properties.creator = "breakeven"
    for title, (lines, table) in sheets.items():
        sheet = book.create_sheet(title)
        sheet.freeze_panes = f"A{len(lines) + 2}"

        def cell(value: Any, *, is_bold: bool = False, on: Any = sheet) -> Any:
            written = WriteOnlyCell(on, value=value)
            if isinstance(value, str):
                written.data_type = "s"  # never a formula, whatever it starts with
            if is_bold:
                written.font = Font(bold=True)
            return written

        for name, text in lines:
            sheet.append([cell(name, is_bold=True), cell(_without_controls(text))])
        sheet.append([cell(name, is_bold=True) for name in table.names])
        for row in table.rows:
            sheet.append(
                [cell(_without_controls(value) if isinstance(value, str) else value) for value in row]
            )
    raw = io.BytesIO()
    book.save(raw)
    return _fixed_times(raw.getvalue(), time)


def parquet_bytes(table: Table, metadata: Mapping[str, str]) -> bytes:
    """Return a Parquet file with these entries in its metadata."""
    import pyarrow as pa  # loads slowly: only for those who ask for it
    import pyarrow.parquet as pq

    types = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
    fields = [pa.field(column.name, types[column.kind]) for column in table.columns]
    values = [
        pa.array([_typed(row[index], column.kind) for row in table.rows], type=types[column.kind])
        for index, column in enumerate(table.columns)
    ]
    data = pa.Table.from_arrays(values, schema=pa.schema(fields, metadata=dict(metadata)))
    raw = io.BytesIO()
    pq.write_table(data, raw, compression="zstd")
    return raw.getvalue()


def _typed(value: Any, kind: type) -> Any:
    return None if value is None else kind(value)


def _without_controls(text: str) -> str:
    """Leave out characters that XML cannot hold."""
    return "".join(letter for letter in text if letter >= " " or letter in "\t\n")


def _fixed_times(archive: bytes, time: datetime) -> bytes:
    """Return a workbook whose archive and properties carry this time and no other."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    raw = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as source, zipfile.ZipFile(raw, "w") as target:
        for name in sorted(source.namelist()):
            content = source.read(name)
            if name == "docProps/core.xml":
                content = _CORE_TIMES.sub(rb"\g<1>" + stamp + rb"\g<2>", content)
            entry = zipfile.ZipInfo(name, date_time=_ZIP_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 0  # the same on every system
            target.writestr(entry, content)
    return raw.getvalue()
