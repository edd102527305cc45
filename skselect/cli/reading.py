"""Tables read from files: CSV, JSON, Parquet, Feather and workbooks, packed or not.

The first bytes tell what a file is. What is no table is named; nothing is read in part.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.feather as arrow_feather
import pyarrow.parquet as pq

from skselect._lib.decide import distinct_keys
from skselect._lib.files import read_parquet
from skselect.cli.cells import first_failure
from skselect.cli.options import CsvLayout

#: Endings of Parquet files, of files with one JSON object per line, of other JSON, of workbooks.
PARQUET = (".parquet", ".pq")
JSONL = (".jsonl", ".ndjson")
JSON = ".json"
WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")
#: What stands between cells, as errors call it.
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
#: Bytes that are read at a time. A row must be smaller than a block.
_BLOCK = 1 << 24
#: The largest cell that Python's reader of CSV may meet.
_LARGEST_CELL = (1 << 31) - 1
#: Lines of one cell that look like rows are rows: in so many columns, or in so many lines.
_MANY_COLUMNS = 4
_MANY_LINES = 4
#: A number, which may end with a quote.
_NUMBER = re.compile(r'\s*"?[-+]?\d*[.,]?\d+(e[-+]?\d+)?\s*%?"?\s*', re.IGNORECASE)
#: The first line of a CSV file in which Excel reads what separates the cells.
_SEPARATOR_LINE = re.compile(r'\ufeff?"?sep=(.)"?\r?\n', re.IGNORECASE)
#: The first bytes of files that hold no table of text, and what they are.
_OTHER_FILES = {
    b"%PDF": "a PDF; export the table as CSV",
    b"\x89HDF": "an HDF5 file; write the table as CSV or Parquet",
    b"SQLite format 3": "an SQLite database; write a table of it as CSV",
    b"\xd0\xcf\x11\xe0": "an old Office file; if it is a workbook, give it the ending .xls",
    b"7z\xbc\xaf": "a 7z archive; unpack it",
    b"Rar!": "a RAR archive; unpack it",
    b"Obj\x01": "an Avro file; write the table as CSV or Parquet",
    b"ORC": "an ORC file; write the table as CSV or Parquet",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"PK\x05\x06": "an empty ZIP archive",
    b"\x93NUMPY": "an array of numpy; write a table with names, as CSV or Parquet",
}
#: The first bytes of pickles, by their version.
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
#: How pages of the web begin, in lower case.
_PAGES = (b"<!doctype", b"<html", b"<?xml", b"<table", b"<head")
#: The first bytes of packed files, and what Arrow calls them.
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}


@dataclass(frozen=True)
class Contents:
    """What a file holds.

    Parameters
    ----------
    schema : Schema
        The columns and their types in Arrow.
    read : callable
        Returns some columns.
    n_rows : int
    layout : CsvLayout
        How a CSV file is written, or is to be written.
    is_text : bool
        Whether everything is text, as in a CSV file or a workbook.
    is_csv : bool
    """

    schema: Any
    read: Callable[[list[str]], Any]
    n_rows: int
    layout: CsvLayout
    is_text: bool = False
    is_csv: bool = False

    @classmethod
    def of(
        cls, table: Any, layout: CsvLayout, *, is_text: bool = False, is_csv: bool = False
    ) -> Contents:
        """Return the contents of a table in memory."""
        return cls(table.schema, table.select, table.num_rows, layout, is_text, is_csv)


def read_contents(path: Path, where: str, layout: CsvLayout) -> Contents:
    """Return what a file holds, `where` in errors; of a Parquet file only the columns are read."""
    ending = path.suffix.lower()
    if ending in PARQUET:
        return _read_parquet(path, path, layout)
    if ending in WORKBOOKS:
        return Contents.of(_read_sheet(path, where, layout.decimal), layout, is_text=True)
    data = _unpack(_read_bytes(path, where), where)
    if data.startswith(b"PAR1"):
        return _read_parquet(io.BytesIO(data), path, layout)
    if data.startswith((b"ARROW1", b"FEA1")):
        table = arrow_feather.read_table(pa.BufferReader(data))
        return Contents.of(table, layout)
    if data.startswith(b"\xff\xff\xff\xff"):
        return Contents.of(_read_stream(data, where), layout)
    endings = {suffix.lower() for suffix in path.suffixes[-2:]}
    is_json = not endings.isdisjoint((*JSONL, JSON))
    encoding = json.detect_encoding(data) if is_json else layout.encoding
    _refuse_other_files(data, where, encoding)
    text = _decode(data, where, encoding, is_json=is_json)
    if not endings.isdisjoint(JSONL):
        return Contents.of(_tabulate(_read_lines(text, where), where), layout)
    rows = _read_json(text, where, is_needed=is_json)
    if rows is not None:
        return Contents.of(_tabulate(rows, where), layout)
    return _read_csv(text, where, path, layout)


# Bytes -------------------------------------------------------------------------------------------


def _read_bytes(path: Path, where: str) -> bytes:
    """Return what a file holds, unpacked if its ending says so; it may be a pipe."""
    if path == Path("-"):
        if sys.stdin is None:
            raise ValueError(f"{where} is closed; name a file.")
        return sys.stdin.buffer.read()
    try:
        if path.is_file():
            return bytes(pa.input_stream(str(path)).read())
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error}.") from error


def _read_stream(data: bytes, where: str) -> Any:
    """Return the table of a stream of Arrow."""
    try:
        return pa.ipc.open_stream(pa.BufferReader(data)).read_all()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{where} begins like a stream of Arrow, but is none: {error}.") from error


def _unpack(data: bytes, where: str) -> bytes:
    """Return the bytes of a packed file, unpacked, also if it was packed twice."""
    once = _unpack_once(data, where)
    return _unpack_once(once, where)


def _unpack_once(data: bytes, where: str) -> bytes:
    """Return the bytes of a packed file, unpacked: its first ones tell how it is packed."""
    try:
        for beginning, kind in _PACKED.items():
            if data.startswith(beginning):
                return bytes(pa.CompressedInputStream(pa.BufferReader(data), kind).read())
        if data.startswith(b"\xfd7zXZ\x00"):
            return lzma.decompress(data)
        if data.startswith(b"PK\x03\x04"):
            return _unzip(data, where)
    except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, RuntimeError) as error:
        raise ValueError(f"{where} cannot be unpacked: {error}.") from error
    return data


def _unzip(data: bytes, where: str) -> bytes:
    """Return the only file of a ZIP archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if "[Content_Types].xml" in names:
            raise ValueError(f"{where} is an Office file; if it is a workbook, name it .xlsx.")
        if len(names) != 1:
            raise ValueError(
                f"{where} is a ZIP archive of {len(names)} files, {names[:5]}; unpack it and name "
                "one of them."
            )
        return archive.read(names[0])


def _refuse_other_files(data: bytes, where: str, encoding: str) -> None:
    """Refuse what holds no table of text, and say what it is."""
    for beginning, kind in _OTHER_FILES.items():
        if data.startswith(beginning):
            raise ValueError(f"{where} is {kind}.")
    if data.startswith(_PICKLES):
        raise ValueError(
            f"{where} is a pickle, which may run code and is not read; write the table as CSV or "
            "Parquet."
        )
    if data[:100].lstrip().lower().startswith(_PAGES):
        raise ValueError(f"{where} is a page of HTML or XML; write its table as CSV.")
    beginning = data[:1000]
    is_spaced = not (any(beginning[::2]) and any(beginning[1::2]))
    if encoding == "utf-8" and len(beginning) > 3 and is_spaced:
        raise ValueError(
            f"{where}: every second of its bytes is 0, so it is no text in UTF-8. If it is text in "
            "UTF-16, say --encoding utf-16-le or utf-16-be."
        )


def _decode(data: bytes, where: str, encoding: str, *, is_json: bool) -> str:
    """Return the text of a file, without a byte order mark."""
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        beside = data[max(start - 10, 0) : start + 5]
        remedy = "Name its encoding, such as --encoding cp1252 (Windows) or --encoding utf-16."
        if is_json:
            remedy = "JSON is always Unicode; write it in UTF-8."
        raise ValueError(
            f"{where} is not written in {encoding!r}, see {beside!r}. {remedy}"
        ) from error


# CSV ---------------------------------------------------------------------------------------------


def _read_csv(text: str, where: str, path: Path, layout: CsvLayout) -> Contents:
    """Return the cells of a CSV file as text."""
    first_line = _SEPARATOR_LINE.match(text)
    if first_line is not None:  # Excel's own
        text = text[first_line.end() :]
        if layout.separator is None:
            layout = replace(layout, separator=first_line[1])
    separator = layout.between(path)
    if "\r\n" in text[: text.find("\n") + 1]:
        layout = replace(layout, newline="\r\n")
    with _large_cells():
        if '"' in text:
            _check_quotes(text, where, separator)
        header = _read_header(text, where, separator)
    if len(header) == 1:
        sign = _SEPARATORS.get(separator, repr(separator))
        reason = (
            f"it has one column only, {header[0]!r:.100}; a table has several, with {sign} between "
            "them"
        )
        raise _no_csv(where, reason, header, separator)
    odd_rows: list[Any] = []
    try:
        table = _parse_csv(text.encode(), len(header), separator, odd_rows)
    except pa.ArrowInvalid as error:
        reason = str(error)
        for row in odd_rows:
            reason = f"row {row.number - 1} has {row.actual_columns} cells, not {len(header)}"
        raise _no_csv(where, reason, header, separator) from error
    return Contents.of(table.rename_columns(header)[1:], layout, is_text=True, is_csv=True)


@contextmanager
def _large_cells() -> Iterator[None]:
    """Let Python's reader of CSV take cells of any size."""
    usual = csv.field_size_limit(_LARGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _check_quotes(text: str, where: str, separator: str) -> None:
    """Refuse quotes that do not balance: what follows one would be read as a single cell."""
    lines_of_row: list[str] = []

    def keep_lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            lines_of_row.append(line)
            yield line

    rows = csv.reader(keep_lines(), delimiter=separator, strict=True)
    n_rows = -1  # without the header
    n_columns = 0
    try:
        for cells in rows:
            if cells:
                n_rows += 1
                n_columns = n_columns or len(cells)
            if _are_rows(lines_of_row, separator, n_columns):
                raise ValueError(
                    f"{where}: row {n_rows} has a cell of {len(lines_of_row)} lines, and each of "
                    "them looks like a row: a quote is not closed. Close it, or write the table as "
                    "Parquet."
                )
            lines_of_row.clear()
    except csv.Error as error:
        row = f"row {n_rows + 1}" if n_rows >= 0 else "the header"
        raise ValueError(
            f"{where}: the quotes of {row} do not balance ({error}). A cell that begins with a "
            "quote ends with one, and writes quotes inside it twice."
        ) from error


def _are_rows(lines: Sequence[str], separator: str, n_columns: int) -> bool:
    """Tell whether the lines that are read as one row have as many cells each as the header.

    In a table of few columns, a text of two or three lines may have as many by chance. They are
    rows if each column holds numbers in all of them or in none, and one column does.
    """
    if len(lines) < 2:
        return False
    rows = [line.split(separator) for line in lines]
    if any(len(cells) != n_columns for cells in rows):
        return False
    if n_columns >= _MANY_COLUMNS or len(lines) >= _MANY_LINES:
        return True
    has_numbers = False
    for column in zip(*rows, strict=True):
        filled = [cell for cell in column if cell.strip()]
        n_numbers = sum(_NUMBER.fullmatch(cell) is not None for cell in filled)
        if 0 < n_numbers < len(filled):
            return False
        has_numbers |= n_numbers > 0
    return has_numbers


def _read_header(text: str, where: str, separator: str) -> list[str]:
    """Return the names of the columns: the first line that is not empty."""
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        return next(filter(None, lines))
    except (StopIteration, csv.Error) as error:
        reason = str(error) or "it is empty"
        raise ValueError(f"{where} is no CSV table: {reason}.") from error


def _parse_csv(data: bytes, n_columns: int, separator: str, odd_rows: list[Any]) -> Any:
    """Return all lines of a CSV file; `odd_rows` gets those with more or fewer cells."""

    def stop(row: Any) -> str:
        odd_rows.append(row)
        return "error"

    names = [str(position) for position in range(n_columns)]
    read = arrow_csv.ReadOptions(column_names=names, block_size=_BLOCK, use_threads=False)
    parse = arrow_csv.ParseOptions(
        delimiter=separator, newlines_in_values=True, invalid_row_handler=stop
    )
    as_text = arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    return arrow_csv.read_csv(pa.BufferReader(data), read, parse, as_text)


def _no_csv(where: str, reason: str, header: Sequence[str], separator: str) -> ValueError:
    """Return the error about what is no CSV table; perhaps another sign separates its cells."""
    line = separator.join(header)
    likely = max(_SEPARATORS, key=line.count)
    if line.count(likely) >= len(header):
        sign = likely.replace("\t", "\\t")
        reason += f'. Is {_SEPARATORS[likely]} what separates its cells? --separator "{sign}"'
    return ValueError(f"{where}: {reason}.")


# Parquet and workbooks ---------------------------------------------------------------------------


def _read_parquet(source: Any, path: Path, layout: CsvLayout) -> Contents:
    """Return a Parquet file, of which only the columns are read."""
    file = read_parquet(lambda _: pq.ParquetFile(source), path)
    return Contents(file.schema_arrow, file.read, file.metadata.num_rows, layout)


def _read_sheet(path: Path, where: str, decimal: str) -> Any:
    """Return the cells of the first sheet of a workbook as text, numbers with the decimal sign."""

    def as_text(cell: Any) -> str:
        return str(cell).replace(".", decimal) if isinstance(cell, float) else str(cell)

    try:
        sheet = pd.read_excel(path, header=None, dtype=object, keep_default_na=False)
    except (ImportError, zipfile.BadZipFile, KeyError, OSError, ValueError) as error:
        raise ValueError(
            f"{where} is a workbook; to read it, install openpyxl, or save the sheet as CSV. "
            f"({error})"
        ) from error
    if sheet.empty:
        raise ValueError(f"{where}: its first sheet is empty, and no other one is read.")
    text = sheet.where(sheet.notna(), "").map(as_text)
    names = text.iloc[0].tolist()
    columns = [pa.array(text[column][1:], pa.string()) for column in text]
    return pa.table(columns, names=names)


# JSON --------------------------------------------------------------------------------------------


def _read_json(text: str, where: str, *, is_needed: bool) -> list[dict[str, Any]] | None:
    """Return the objects of a file of JSON: an array of them, or one in each line.

    None is returned where it is something else, unless it must be JSON.
    """
    if not (is_needed or text.lstrip()[:1] in ("[", "{")):
        return None
    try:
        content = json.loads(text, object_pairs_hook=distinct_keys)
    except (json.JSONDecodeError, RecursionError) as error:
        if _begins_with_object(text):
            return _read_lines(text, where)
        if not is_needed:
            return None
        raise ValueError(f"{where} is no JSON: {error}.") from error
    except ValueError as error:
        raise ValueError(f"{where}: {error}.") from error
    if isinstance(content, dict):
        if any(isinstance(value, dict | list) for value in content.values()):
            raise ValueError(
                f"{where} holds one JSON object, perhaps a column in each of its keys; write one "
                "object per row, as pandas' to_json(orient='records') does."
            )
        return [content]
    if isinstance(content, list) and all(isinstance(row, dict) for row in content):
        return content
    raise ValueError(f"{where} is JSON, but no array of objects, one per row.")


def _begins_with_object(text: str) -> bool:
    """Tell whether the first line of a text is an object of JSON."""
    first_line, _, _ = text.strip().partition("\n")
    try:
        return isinstance(json.loads(first_line), dict)
    except (ValueError, RecursionError):
        return False


def _read_lines(text: str, where: str) -> list[dict[str, Any]]:
    """Return the JSON objects of a file, one in each line."""
    rows: list[dict[str, Any]] = []
    try:
        for line in filter(str.strip, text.split("\n")):
            row = json.loads(line, object_pairs_hook=distinct_keys)
            rows.append({**row})
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{where} is no table with one JSON object per line, see row {len(rows) + 1}: {error}."
        ) from error
    return rows


def _tabulate(rows: list[dict[str, Any]], where: str) -> Any:
    """Return objects as a table; refuse what is no table."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    for number, row in enumerate(rows, 1):
        lost = [name for name in names if name not in row]
        if lost:  # a slip, or no value
            raise ValueError(
                f"{where}: row {number} lacks {lost}, which other rows have. Write null where "
                "there is no value."
            )
    columns = {}
    for name in names:
        cells = [row[name] for row in rows]
        columns[name] = _read_column(cells, f"{where}: column {name!r}")
    return pa.table(columns)


def _read_column(cells: list[Any], where: str) -> Any:
    """Return the values of a column of JSON in Arrow; all are of one type."""
    try:
        return pa.array(cells)
    except (pa.ArrowException, OverflowError) as error:
        bad = first_failure(len(cells), lambda n: pa.array(cells[:n]))
        raise ValueError(
            f"{where} cannot hold {cells[bad]!r:.100} of row {bad + 1}: the values "
            "above are of another type, or an integer would lose digits. Write all of them as "
            f'text, such as "{cells[bad]!s:.100}".'
        ) from error
