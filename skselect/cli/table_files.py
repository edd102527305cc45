"""Tables in CSV, JSONL, Parquet and Excel files: read, asked for their cells, and written."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO
from zipfile import BadZipFile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from skselect._lib.arrays import BoolArray, FloatArray
from skselect._lib.checks import rows as row_checks
from skselect._lib.checks import warn_user
from skselect._lib.files import read_parquet
from skselect._lib.notebook import count
from skselect.cli.cells import (
    as_arrow,
    first_failure,
    is_empty,
    is_missing,
    is_text,
    plain,
    to_numbers,
    value_type,
)
from skselect.cli.options import CsvLayout

#: Endings of Parquet files, of files with one JSON object per line, and of workbooks.
PARQUET = (".parquet", ".pq")
_JSONL = (".jsonl", ".ndjson")
_WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")
#: What stands between cells, as errors call it.
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
#: What a cell of a CSV file can hold besides text.
_WRITTEN_AS_TEXT = (
    pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating,
    pa.types.is_decimal, pa.types.is_date, pa.types.is_time, pa.types.is_timestamp,
)  # fmt: skip
_USUAL = CsvLayout()
#: Bytes that are read, and rows that are written at a time. A row must be smaller than a block.
_BLOCK = 1 << 24
_AT_ONCE = 1 << 16
#: A date such as 31.01.2026 or 31/01/2026.
_DAY_FIRST = re.compile(r"^\s*(\d\d)[./-](\d\d)[./-](\d{4})")
#: What the cells of a column of true and false may say.
_TRUTHS = dict.fromkeys(["true", "1", "1.0", "yes"], 1)
_TRUTHS |= dict.fromkeys(["false", "0", "0.0", "no"], 0)


@dataclass(frozen=True)
class TableFile:
    """A table that was read. Messages count its rows from 1, the first one below the header.

    Parameters
    ----------
    name : str
    schema : Schema
        The columns and their types in Arrow. Those of a CSV file or a workbook are text.
    read : callable
        Returns some columns.
    layout : CsvLayout
        How a CSV file is written.
    is_text : bool
        Whether it is a CSV file or a workbook, in which everything is text.
    """

    name: str
    schema: Any
    read: Callable[[list[str]], Any]
    layout: CsvLayout = _USUAL
    is_text: bool = False

    @classmethod
    def open(
        cls, path: Path, layout: CsvLayout | None = None, argument: str = "TABLE"
    ) -> TableFile:
        """Read a table; refuse what is no table. Of a Parquet file only the columns are known."""
        name = path.name
        if path == Path("-"):
            name = "standard input"
        elif not path.exists():
            raise ValueError(f"{argument}: there is no file {str(path)!r}.")
        where = f"{argument}: {name}"
        layout = layout or _USUAL
        ending = path.suffix.lower()
        last_two = {suffix.lower() for suffix in path.suffixes[-2:]}
        if ending in PARQUET:
            parquet = read_parquet(pq.ParquetFile, path)
            file = cls(name, parquet.schema_arrow, parquet.read, layout)
            n_rows = parquet.metadata.num_rows
        elif ending in _WORKBOOKS:
            table = _read_sheet(path, where)
            file = cls(name, table.schema, table.select, is_text=True)
            n_rows = table.num_rows
        elif last_two.intersection(_JSONL):
            table = _read_lines(path, where)
            file = cls(name, table.schema, table.select, layout)
            n_rows = table.num_rows
        else:
            table = _read_csv(path, where, layout)
            file = cls(name, table.schema, table.select, layout, is_text=True)
            n_rows = table.num_rows
        file.refuse_equal_names()
        row_checks.check_any_rows(n_rows, name)
        return file

    def refuse_equal_names(self) -> None:
        """Refuse columns that share a name."""
        names = self.schema.names
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(
                f"{self.name} has several columns of the name {repeated}; rename them."
            )

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The type of each column."""
        return dict(zip(self.schema.names, self.schema.types, strict=True))

    def cells(self, columns: Iterable[str | None] | None = None) -> Any:
        """Return some columns, or all, as Arrow holds them; a None among them is no column."""
        wanted = self.schema.names
        if columns is not None:
            wanted = [name for name in dict.fromkeys(columns) if name is not None]
        row_checks.check_columns(wanted, self.schema.names, self.name)
        # A column may share the beginning of its name with another one.
        cells = self.read(wanted).select(wanted)
        fields = []
        for field in cells.schema:
            is_view = pa.types.is_string_view(field.type)  # few functions take views
            fields.append(field.with_type(pa.large_string()) if is_view else field)
        return cells.cast(pa.schema(fields, cells.schema.metadata))

    def rows(self, columns: Iterable[str | None] | None = None) -> pd.DataFrame:
        """Return some columns, or all, with an index that counts the rows from 0."""
        return self.cells(columns).to_pandas(ignore_metadata=True, types_mapper=pd.ArrowDtype)

    def typed(self) -> pd.DataFrame:
        """Return all columns, with the types that the values of a CSV file suggest."""
        if not self.is_text:
            return self.cells().to_pandas()
        text = io.StringIO()
        write_csv(self.cells(), text)
        text.seek(0)
        return pd.read_csv(text, decimal=self.layout.decimal)

    # What its cells hold

    def numbers(self, column: pd.Series) -> FloatArray:
        """Return a column as finite numbers, nan where one is missing."""
        cells = as_arrow(column)
        decimal = self.layout.decimal
        if pa.types.is_boolean(cells.type):
            raise self.error(column, 0, "numbers")
        try:
            numbers = to_numbers(cells, decimal)
        except pa.ArrowException as error:
            bad = first_failure(len(cells), lambda n: to_numbers(cells[:n], decimal))
            raise self.error(column, bad, "numbers") from error
        endless = np.isinf(numbers)
        if endless.any():
            raise self.error(column, endless.argmax(), "finite numbers")
        return numbers

    def complete_numbers(self, frame: pd.DataFrame) -> FloatArray:
        """Return columns as an array of numbers; refuse missing ones."""
        columns = [self.numbers(frame[name]) for name in frame]
        for name, numbers in zip(frame, columns, strict=True):
            self.refuse_missing(frame[name], np.isnan(numbers))
        return np.column_stack(columns)

    def refuse_missing(self, column: pd.Series, missing: BoolArray, more: str = "") -> None:
        """Refuse missing values, naming the first row that has one."""
        if missing.any():
            first_row = column.index[missing][0] + 1
            raise ValueError(
                f"{self.name}: column {column.name!r} has {int(missing.sum())} missing "
                f"values, the first in row {first_row}; leave such rows out, "
                f"or fill them in{more}."
            )

    def tell_words(self, column: pd.Series) -> None:
        """Say how many cells of a column are words that mean missing."""
        cells = column[is_missing(column) & ~is_empty(column)].astype(str)
        words = cells[cells.str.strip() != ""]
        if len(words):
            warn_user(
                f"{self.name}: {count(len(words), 'cell')} of column {column.name!r} counted as "
                f"missing, because of a word such as {words.iloc[0]!r}."
            )

    def error(self, column: pd.Series, position: Any, wanted: str) -> ValueError:
        """Return an error that names the bad value at a position in a column."""
        row = column.index[position] + 1
        value = column.iloc[position]
        advice = ""
        if wanted == "numbers" and isinstance(value, str):
            advice = self._advise_decimal(value)
        return ValueError(
            f"{self.name}: column {column.name!r} must hold {wanted}, but row {row} holds "
            f"{value!r}.{advice}"
        )

    def _advise_decimal(self, text: str) -> str:
        """Say what to do if a text is a number with the other decimal sign."""
        cell = pa.array([text])
        with suppress(pa.ArrowException):
            if self.layout.decimal == ".":
                to_numbers(cell, ",")
                return " For decimal commas say --decimal ,."
            to_numbers(cell, ".")
            return " It has a decimal point: leave --decimal out."
        return ""

    def times(
        self, column: pd.Series, time_format: str | None, *, dayfirst: bool
    ) -> tuple[FloatArray, str]:
        """Return times as numbers ("number"), or as microseconds since 1970 in UTC ("time")."""
        from skselect.monitoring.log import read_dates  # noqa: PLC0415 - one command needs it

        self.refuse_missing(column, is_missing(column))
        cells = as_arrow(column)
        with suppress(pa.ArrowException):  # the first cell tells numbers from dates
            to_numbers(cells[:1], self.layout.decimal)
            return self.numbers(column), "number"
        values = plain(column)
        if dayfirst:
            if time_format is not None:
                raise ValueError(
                    "--dayfirst goes without --time-format: name the form of dates once."
                )
            values = _put_years_first(values)
        times = read_dates(values, time_format or "ISO8601")
        unread = np.isnan(times)
        if unread.any():
            example = "2026-01-31T09:30 (or say --dayfirst, or --time-format)"
            wanted = time_format or example
            raise self.error(values, unread.argmax(), f"numbers, or dates such as {wanted}")
        return times, "time"

    def names(self, column: pd.Series) -> Any:
        """Return the names of cases as text in Arrow: 7 and 7.0 are the same number."""
        from skselect.monitoring.log import check_names  # noqa: PLC0415 - few commands need it

        self.refuse_missing(column, is_empty(column))
        cells = as_arrow(column)
        if not (is_text(cells.type) or pa.types.is_integer(cells.type)):
            objects = np.array(cells.to_pylist(), dtype=object)
            cells = pa.array(check_names(objects))
        return cells.cast(pa.large_string())

    def booleans(self, column: pd.Series) -> BoolArray:
        """Return a column of true and false as an array; 1 and 0, yes and no mean the same."""
        words = [str(cell).strip().lower() for cell in plain(column)]
        truths = np.array([_TRUTHS.get(word, -1) for word in words])
        unread = truths < 0
        if unread.any():
            raise self.error(column, unread.argmax(), "true or false")
        return truths == 1


def _put_years_first(dates: pd.Series) -> pd.Series:
    """Return texts such as 31.1.2026 as 2026-01-31."""
    texts = dates.astype(str)
    two_digits = texts.str.replace(r"(?<!\d)(\d)(?=[./-])", r"0\1", regex=True)
    return two_digits.str.replace(_DAY_FIRST, r"\3-\2-\1", regex=True)


# Reading -----------------------------------------------------------------------------------------


def _read_bytes(path: Path, where: str) -> Any:
    """Return what a file holds, unpacked; it may be a pipe."""
    if path == Path("-"):
        if sys.stdin is None:
            raise ValueError(f"{where} is closed; name a file.")
        return sys.stdin.buffer.read()
    try:
        if path.is_file():
            return pa.input_stream(str(path)).read()
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error}.") from error


def _read_csv(path: Path, where: str, layout: CsvLayout) -> Any:
    """Return the cells of a CSV file as text."""
    data = _read_utf8(path, where, layout.encoding)
    separator = layout.between(path)
    header = _read_header(data, where, separator)
    if len(header) == 1:
        sign = _SEPARATORS.get(separator, repr(separator))
        reason = (
            f"it has one column only, {header[0]!r}; a table has several, with {sign} between them"
        )
        raise _no_csv(where, reason, header, separator)
    odd_rows: list[Any] = []
    try:
        table = _parse_csv(data, len(header), separator, odd_rows)
    except pa.ArrowInvalid as error:
        reason = str(error)
        for row in odd_rows:
            reason = f"row {row.number - 1} has {row.actual_columns} cells, not {len(header)}"
        raise _no_csv(where, reason, header, separator) from error
    return table.rename_columns(header)[1:]


def _read_utf8(path: Path, where: str, encoding: str) -> Any:
    """Return what a file of text holds, in UTF-8."""
    data = _read_bytes(path, where)
    try:
        text = data.decode(encoding)
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        unread = getattr(error, "object", b"")
        beside = unread[max(start - 10, 0) : start + 5]
        raise ValueError(
            f"{where} is not written in {encoding!r}, see {beside!r}. Name "
            "its encoding, such as --encoding cp1252 (Windows) or --encoding utf-16."
        ) from error
    return data if encoding == "utf-8" else text.encode()


def _read_header(data: Any, where: str, separator: str) -> list[str]:
    """Return the names of the columns: the first line that is not empty."""
    beginning = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="")
    lines = csv.reader(beginning, delimiter=separator)
    try:
        return next(filter(None, lines))
    except (StopIteration, csv.Error) as error:
        reason = str(error) or "it is empty"
        raise ValueError(f"{where} is no CSV table: {reason}.") from error


def _parse_csv(data: Any, n_columns: int, separator: str, odd_rows: list[Any]) -> Any:
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


def _read_sheet(path: Path, where: str) -> Any:
    """Return the cells of the first sheet of a workbook as text."""
    try:
        sheet = pd.read_excel(path, header=None, dtype=object, keep_default_na=False)
    except (ImportError, BadZipFile, KeyError, OSError, ValueError) as error:
        raise ValueError(
            f"{where} is a workbook; to read it, install openpyxl, or save the sheet as CSV. "
            f"({error})"
        ) from error
    if sheet.empty:
        raise ValueError(f"{where}: its first sheet is empty, and no other one is read.")
    text = sheet.where(sheet.notna(), "").astype(str)
    names = text.iloc[0].tolist()
    columns = [pa.array(text[column][1:], pa.string()) for column in text]
    return pa.table(columns, names=names)


def _read_lines(path: Path, where: str) -> Any:
    """Return the objects of a JSONL file as a table; refuse what is no table."""
    rows = _read_objects(path, where)
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


def _read_objects(path: Path, where: str) -> list[dict[str, Any]]:
    """Return the JSON objects of a file, one in each line."""
    rows: list[dict[str, Any]] = []
    data = _read_bytes(path, where)
    try:
        lines = data.decode("utf-8-sig").split("\n")
        rows.extend({**json.loads(line)} for line in filter(str.strip, lines))
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{where} is no table with one JSON object per line, see row {len(rows) + 1}: {error}."
        ) from error
    return rows


def _read_column(cells: list[Any], where: str) -> Any:
    """Return the values of a column of JSON in Arrow; all are of one type."""
    try:
        return pa.array(cells)
    except (pa.ArrowException, OverflowError) as error:
        bad = first_failure(len(cells), lambda n: pa.array(cells[:n]))
        raise ValueError(
            f"{where} cannot hold {cells[bad]!r} of row {bad + 1}: the values "
            "above are of another type, or an integer would lose digits. Write all of them as "
            f'text, such as "{cells[bad]}".'
        ) from error


# Writing -----------------------------------------------------------------------------------------


def write_csv(cells: Any, file: TextIO, separator: str = ",", decimal: str = ".") -> None:
    """Write a table as CSV; refuse columns that CSV cannot hold.

    Only cells that need quotes have them. Whole floats stay floats, such as 1.0.
    """
    for column in cells.schema:
        kind = value_type(column.type)
        if not (is_text(kind) or any(fits(kind) for fits in _WRITTEN_AS_TEXT)):
            raise ValueError(
                f"A CSV file cannot hold column {column.name!r}, whose values are of the type "
                f"{kind}. Write a .parquet file (--out decided.parquet)."
            )
    names = pa.array(cells.column_names, pa.large_string())
    header = _quoted(names, separator).to_pylist()
    file.write(f"{separator.join(header)}\n")
    for rows in cells.to_batches(max_chunksize=_AT_ONCE):
        texts = [_quoted(_as_text(column, decimal), separator) for column in rows.columns]
        texts[-1] = _join([texts[-1], ""], "\n")  # each row ends its line
        # The buffer holds the text of all rows, one after the other.
        _, _, whole_text = _join(texts, separator).buffers()
        file.write(str(whole_text, "utf-8"))


def _as_text(cells: Any, decimal: str) -> Any:
    """Return cells as text."""
    kind = value_type(cells.type)
    text = pa.large_string()
    if pa.types.is_boolean(kind):
        truths = cells.cast(kind)
        return pc.if_else(truths, pa.scalar("True", text), pa.scalar("False", text))
    is_float = pa.types.is_floating(kind)
    if is_float:
        cells = pc.if_else(pc.is_nan(cells), None, cells)
    written = cells.cast(kind).cast(text)
    if is_float or pa.types.is_decimal(kind):
        written = pc.replace_substring_regex(written, r"^(-?[0-9]+)$", r"\1.0")
        return pc.replace_substring(written, ".", decimal)
    return written


def _quoted(text: Any, separator: str) -> Any:
    """Return text with quotes around the cells that need them; a carriage return ends rows too."""
    needs = pc.match_substring_regex(text, f'[{re.escape(separator)}"\r\n]')
    if not pc.any(needs).as_py():
        return text
    escaped = pc.replace_substring(text, '"', '""')
    quoted = _join(['"', escaped, '"'], "")
    return pc.if_else(needs, quoted, text)


def _join(texts: list[Any], separator: str) -> Any:
    """Join texts row by row; a missing one is empty."""
    kind = pa.large_string()
    parts = []
    for text in (*texts, separator):
        parts.append(pa.scalar(text, kind) if isinstance(text, str) else text)  # noqa: PERF401
    return pc.binary_join_element_wise(*parts, null_handling="replace", null_replacement="")
