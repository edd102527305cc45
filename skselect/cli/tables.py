"""Tables of predictions in CSV, JSONL, Parquet and Excel files: their rows, and what they mean."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from argparse import Namespace
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO
from zipfile import BadZipFile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, LabelArray, look_up_codes
from skselect._lib.checks import rows as row_checks
from skselect._lib.checks import shown, warn_user
from skselect._lib.decide import RANGE_TOLERANCE, SUM_TOLERANCE
from skselect._lib.files import read_parquet
from skselect.policy.policy import AbstentionPolicy
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.predictions import VERDICT_WORDS, VERDICTS, Predictions, read_verdicts

#: Endings of Parquet files, of files with one JSON object per line, and of workbooks.
PARQUET = (".parquet", ".pq")
JSONL = (".jsonl", ".ndjson")
WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")
#: What stands between cells, as errors call it.
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
#: What counts as missing, in lower case.
_MISSING = ["", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "-"]
#: What a cell of a CSV file can hold besides text.
_WRITTEN_AS_TEXT = (
    pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating,
    pa.types.is_decimal, pa.types.is_date, pa.types.is_time, pa.types.is_timestamp,
)  # fmt: skip
#: What else may be done about labels that are missing.
_UNJUDGED = " (skselect tune --unjudged wrong counts such rows as errors until they are judged)"
#: Bytes that are read, and rows that are written at a time. A row must be smaller than a block.
_BLOCK, _AT_ONCE = 1 << 24, 1 << 16
#: A date such as 31.01.2026 or 31/01/2026.
_DAY_FIRST = re.compile(r"^\s*(\d\d)[./-](\d\d)[./-](\d{4})")
#: The entry of a policy's metadata that names the columns it was tuned on.
COLUMNS = "skselect_columns"


# Files -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CsvLayout:
    """How CSV files are written.

    Parameters
    ----------
    separator : str or None
        What stands between cells; None is a tab for the ending .tsv, else a comma.
    decimal : {".", ","}
    encoding : str
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def between(self, path: Path) -> str:
        """Return what stands between the cells of a file."""
        is_tsv = ".tsv" in (path.suffix.lower(), Path(path.stem).suffix.lower())
        return self.separator or ("\t" if is_tsv else ",")


def read_layout(given: Namespace) -> CsvLayout:
    """Return what the command line says about CSV files."""
    return CsvLayout(given.separator, given.decimal, given.encoding)


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
    layout: CsvLayout = CsvLayout()
    is_text: bool = False

    @classmethod
    def open(
        cls, path: Path, layout: CsvLayout | None = None, argument: str = "TABLE"
    ) -> TableFile:
        """Read a table; refuse what is no table. Of a Parquet file only the columns are known."""
        name, ending, layout = path.name, path.suffix.lower(), layout or CsvLayout()
        if path == Path("-"):
            name = "standard input"
        elif not path.exists():
            raise ValueError(f"{argument}: there is no file {str(path)!r}.")
        where, is_text = f"{argument}: {name}", False
        if ending in PARQUET:
            file = read_parquet(pq.ParquetFile, path)
            schema, read, n_rows = file.schema_arrow, file.read, file.metadata.num_rows
        else:
            if ending in WORKBOOKS:
                table, layout, is_text = _read_sheet(path, where), CsvLayout(), True
            elif any(x in JSONL for x in map(str.lower, path.suffixes[-2:])):
                table = _read_lines(path, where)
            else:
                separator, is_text = layout.between(path), True
                table = _read_csv(path, where, separator, layout.encoding)
            schema, read, n_rows = table.schema, table.select, table.num_rows
        twice = sorted({x for x in schema.names if schema.names.count(x) > 1})
        if twice:
            raise ValueError(f"{name} has several columns of the name {twice}; rename them.")
        row_checks.check_any_rows(n_rows, name)
        return cls(name, schema, read, layout, is_text)

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The type of each column."""
        return dict(zip(self.schema.names, self.schema.types, strict=True))

    def cells(self, columns: Iterable[str] | None = None) -> Any:
        """Return some columns, or all, as Arrow holds them."""
        wanted = self.schema.names if columns is None else list(dict.fromkeys(columns))
        row_checks.check_columns(wanted, self.schema.names, self.name)
        # A column may share the beginning of its name with another one.
        cells = self.read(wanted).select(wanted)
        text, is_view = pa.large_string(), pa.types.is_string_view  # few functions take views
        fields = [x.with_type(text) if is_view(x.type) else x for x in cells.schema]
        return cells.cast(pa.schema(fields, cells.schema.metadata))

    def rows(self, columns: Iterable[str] | None = None) -> pd.DataFrame:
        """Return some columns, or all, with an index that counts the rows from 0."""
        return self.cells(columns).to_pandas(ignore_metadata=True, types_mapper=pd.ArrowDtype)

    def typed(self) -> pd.DataFrame:
        """Return all columns, with the types that the values of a CSV file suggest."""
        if not self.is_text:
            return self.cells().to_pandas()
        text = io.StringIO()
        write_csv(self.cells(), text)
        return pd.read_csv(io.StringIO(text.getvalue()), decimal=self.layout.decimal)

    # What its cells hold

    def numbers(self, column: pd.Series) -> FloatArray:
        """Return a column as finite numbers, nan where one is missing."""
        cells, decimal = _cells(column), self.layout.decimal
        if pa.types.is_boolean(cells.type):
            raise self.error(column, 0, "numbers")
        try:
            numbers = _to_numbers(cells, decimal)
        except pa.ArrowException as error:
            bad = _first_failure(len(cells), lambda n: _to_numbers(cells[:n], decimal))
            raise self.error(column, bad, "numbers") from error
        if (endless := np.isinf(numbers)).any():
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
            raise ValueError(
                f"{self.name}: column {column.name!r} has {int(missing.sum())} missing "
                f"values, the first in row {column.index[missing][0] + 1}; leave such rows out, "
                f"or fill them in{more}."
            )

    def error(self, column: pd.Series, at: Any, wanted: str) -> ValueError:
        """Return an error that names the bad value at a position in a column."""
        row, value, advice = column.index[at], column.iloc[at], ""
        if wanted == "numbers" and isinstance(value, str):
            has_commas = self.layout.decimal == "."
            with suppress(pa.ArrowException):
                _to_numbers(pa.array([value]), "," if has_commas else ".")
                advice = " It has a decimal point: leave --decimal out."
                advice = " For decimal commas say --decimal ,." if has_commas else advice
        return ValueError(
            f"{self.name}: column {column.name!r} must hold {wanted}, but row {row + 1} holds "
            f"{value!r}.{advice}"
        )

    def times(self, column: pd.Series, given: Namespace) -> tuple[FloatArray, str]:
        """Return times as numbers ("number"), or as microseconds since 1970 in UTC ("time")."""
        from skselect.monitoring.log import read_dates  # noqa: PLC0415 - one command needs it

        self.refuse_missing(column, is_missing(column))
        with suppress(pa.ArrowException):  # the first cell tells numbers from dates
            _to_numbers(_cells(column)[:1], self.layout.decimal)
            return self.numbers(column), "number"
        values = plain(column)
        if given.dayfirst:
            if given.time_format is not None:
                raise ValueError(
                    "--dayfirst goes without --time-format: name the form of dates once."
                )
            values = values.astype(str).str.replace(r"(?<!\d)(\d)(?=[./-])", r"0\1", regex=True)
            values = values.str.replace(_DAY_FIRST, r"\3-\2-\1", regex=True)
        times = read_dates(values, given.time_format or "ISO8601")
        if np.isnan(times).any():
            wanted = given.time_format or "2026-01-31T09:30 (or say --dayfirst, or --time-format)"
            raise self.error(
                values, np.isnan(times).argmax(), f"numbers, or dates such as {wanted}"
            )
        return times, "time"

    def names(self, column: pd.Series) -> Any:
        """Return the names of cases as text in Arrow: 7 and 7.0 are the same number."""
        from skselect.monitoring.log import check_names  # noqa: PLC0415 - few commands need it

        self.refuse_missing(column, is_empty(column))
        cells = _cells(column)
        if not (_is_text(cells.type) or pa.types.is_integer(cells.type)):
            cells = pa.array(check_names(np.array(cells.to_pylist(), dtype=object)))
        return cells.cast(pa.large_string())

    def booleans(self, column: pd.Series) -> BoolArray:
        """Return a column of true and false as an array; 1 and 0, yes and no mean the same."""
        words = dict.fromkeys(["true", "1", "1.0", "yes"], 1)
        words |= dict.fromkeys(["false", "0", "0.0", "no"], 0)
        found = np.array([words.get(str(cell).strip().lower(), -1) for cell in plain(column)])
        if (found < 0).any():
            raise self.error(column, (found < 0).argmax(), "true or false")
        return found == 1


def _read_bytes(path: Path, where: str) -> Any:
    """Return what a file holds, unpacked; it may be a pipe."""
    if path == Path("-"):
        if sys.stdin is None:
            raise ValueError(f"{where} is closed; name a file.")
        return sys.stdin.buffer.read()
    try:
        return pa.input_stream(str(path)).read() if path.is_file() else path.read_bytes()
    except OSError as error:
        raise ValueError(f"{where} cannot be read: {error}.") from error


def _read_csv(path: Path, where: str, separator: str, encoding: str) -> Any:
    """Return the cells of a CSV file as text."""
    data = _read_bytes(path, where)
    try:
        text = data.decode(encoding)
    except UnicodeError as error:
        at, seen = getattr(error, "start", 0), getattr(error, "object", b"")
        raise ValueError(
            f"{where} is not written in {encoding!r}, see {seen[max(at - 10, 0) : at + 5]!r}. Name "
            "its encoding, such as --encoding cp1252 (Windows) or --encoding utf-16."
        ) from error
    data = data if encoding == "utf-8" else text.encode()
    del text
    beginning = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="")
    try:
        header = next(filter(None, csv.reader(beginning, delimiter=separator)))
    except (StopIteration, csv.Error) as error:
        raise ValueError(f"{where} is no CSV table: {str(error) or 'it is empty'}.") from error
    marks = f"{_SEPARATORS.get(separator, repr(separator))} between them"
    reason = f"it has one column only, {header[0]!r}; a table has several, with {marks}"
    if len(header) > 1:
        names, odd = list(map(str, range(len(header)))), []

        def stop(row: Any) -> str:
            odd.append(row)
            return "error"

        read = arrow_csv.ReadOptions(column_names=names, block_size=_BLOCK, use_threads=False)
        parse = arrow_csv.ParseOptions(
            delimiter=separator, newlines_in_values=True, invalid_row_handler=stop
        )
        as_text = arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        try:
            table = arrow_csv.read_csv(pa.BufferReader(data), read, parse, as_text)
            return table.rename_columns(header)[1:]
        except pa.ArrowInvalid as error:
            reason = str(error)
        for row in odd:
            reason = f"row {row.number - 1} has {row.actual_columns} cells, not {len(header)}"
    likely = max(_SEPARATORS, key=separator.join(header).count)
    if separator.join(header).count(likely) >= len(header):
        sign = likely.replace("\t", "\\t")
        reason += f'. Is {_SEPARATORS[likely]} what separates its cells? --separator "{sign}"'
    raise ValueError(f"{where}: {reason}.")


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
    columns = [pa.array(text[k][1:], pa.string()) for k in text]
    return pa.table(columns, names=text.iloc[0].tolist())


def _read_lines(path: Path, where: str) -> Any:
    """Return the objects of a JSONL file as a table; refuse what is no table."""
    rows: list[dict[str, Any]] = []
    data = _read_bytes(path, where)
    try:
        lines = data.decode("utf-8-sig").split("\n")
        rows.extend({**json.loads(line)} for line in filter(str.strip, lines))
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{where} is no table with one JSON object per line, see row {len(rows) + 1}: {error}."
        ) from error
    columns = {name: pa.nulls(0) for row in rows for name in row}
    for k, row in enumerate(rows):
        if lost := [name for name in columns if name not in row]:  # a slip, or no value
            raise ValueError(
                f"{where}: row {k + 1} lacks {lost}, which other rows have. Write null where there "
                "is no value."
            )
    for name in columns:
        cells = [row[name] for row in rows]
        try:
            columns[name] = pa.array(cells)
        except (pa.ArrowException, OverflowError) as error:
            k = _first_failure(len(cells), lambda n: pa.array(cells[:n]))  # noqa: B023
            raise ValueError(
                f"{where}: column {name!r} cannot hold {cells[k]!r} of row {k + 1}: the values "
                "above are of another type, or an integer would lose digits. Write all of them as "
                f'text, such as "{cells[k]}".'
            ) from error
    return pa.table(columns)


# Cells -------------------------------------------------------------------------------------------


def _cells(column: pd.Series) -> Any:
    """Return a column as Arrow holds it; categories as their values."""
    cells: Any = pa.array(column, from_pandas=True)
    return cells.cast(_value_type(cells.type)) if pa.types.is_dictionary(cells.type) else cells


def _is_text(kind: pa.DataType) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values, of categories too."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def plain(column: pd.Series) -> pd.Series:
    """Return a column with a type of numpy, where there is one."""
    return pd.Series(_cells(column).to_pandas().array, index=column.index, name=column.name)


def is_empty(column: pd.Series) -> BoolArray:
    """Tell which cells hold nothing."""
    cells = _cells(column)
    empty = pc.is_null(cells, nan_is_null=True)
    if _is_text(cells.type):
        empty = pc.or_(empty, pc.fill_null(pc.equal(cells, ""), fill_value=False))
    return np.asarray(empty)


def is_missing(column: pd.Series) -> BoolArray:
    """Tell which cells hold nothing, or a word that means so."""
    cells = _cells(column)
    if _is_text(cells.type):
        cells = _without_words(pc.utf8_trim_whitespace(cells))
    return np.asarray(pc.is_null(cells, nan_is_null=True))


def _without_words(text: Any) -> Any:
    """Return trimmed text without the words that mean missing."""
    return pc.if_else(pc.is_in(pc.utf8_lower(text), pa.array(_MISSING, text.type)), None, text)


def _to_numbers(cells: Any, decimal: str) -> FloatArray:
    """Return cells as numbers, to the last bit as Python reads them, nan where one is missing."""
    if _is_text(cells.type):
        cells = _without_words(pc.utf8_trim_whitespace(cells))
        if decimal == ",":  # a point becomes what is in no number
            cells = pc.replace_substring(pc.replace_substring(cells, ".", ";"), ",", ".")
    elif pa.types.is_decimal(cells.type):  # Arrow would round them twice
        cells = cells.cast(pa.string())
    kind = cells.type if pa.types.is_float32(cells.type) else pa.float64()
    return cells.cast(kind, safe=False).to_numpy(zero_copy_only=False)  # large integers are rounded


def _first_failure(n: int, read: Callable[[int], Any]) -> int:
    """Return the position of the first of n values that cannot be read with those before it."""

    def fails(k: int) -> bool:
        try:
            read(k + 1)
        except (pa.ArrowException, OverflowError):
            return True
        return False

    return bisect_left(range(n), True, key=fails)


def look_up(cells: Iterable[Any], known: Iterable[Any], decimal: str = ".") -> list[int]:
    """Return the position of each cell among known values, -1: it is missing, -2: it is none.

    Of known numbers, the texts "1" and "1.0" mean the number 1 ("1,0" with decimal commas), and
    "01", "+1", "1e0" and "1_0" mean none.
    """
    places: dict[Any, int] = {}
    for k, value in enumerate(known):
        places |= {str(value): k, value: k}

    def place(cell: Any) -> int:
        with suppress(KeyError, ValueError, TypeError):
            if cell in places:
                return places[cell]
            text = str(cell).strip().replace(decimal, ".")
            number = float(text)
            if _without_zeros(str(number)) == _without_zeros(text):
                return places[number]
        return -1 if str(cell).strip().lower() in _MISSING else -2

    return [place(cell) for cell in cells]


def _without_zeros(text: str) -> str:
    """Return a number without zeros at the end of its decimals."""
    return text.rstrip("0").removesuffix(".") if "." in text else text


def text_to_numbers(labels: LabelArray) -> LabelArray:
    """Return text as booleans, integers or floats if each comes back unchanged from its number.

    So "01" and "1.10" stay text: as numbers they would become "1" and "1.1".
    """
    distinct = np.unique(labels)
    if set(distinct.tolist()) <= {"True", "False"}:
        return np.asarray(labels == "True")
    for kind in (np.int64, np.float64):
        with suppress(ValueError, OverflowError):
            numbers = distinct.astype(kind)
            if np.isfinite(numbers).all() and list(map(str, numbers.tolist())) == distinct.tolist():
                return labels.astype(kind)
    return labels


# What the columns mean ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """An open table, and which of its columns mean what.

    Parameters
    ----------
    file : TableFile
    classes : ndarray of shape (K,)
    label : str or None
        The true label, or the verdict; None where there is none yet.
    is_judged : bool
        Whether the label is a verdict on the answer: right or wrong.
    proba : tuple of str
        One column per class, in the order of the classes.
    answer, confidence : str or None
        Instead of probabilities.
    subgroups : tuple of str
    reviewer : str or None
        What a reviewer answers.
    audit_proba : str or None
        The probability with which a case was drawn for a verdict.
    keeps_unjudged : bool
        Whether rows without a label or verdict count as errors.
    """

    file: TableFile
    classes: LabelArray
    label: str | None = None
    is_judged: bool = False
    proba: tuple[str, ...] = ()
    answer: str | None = None
    confidence: str | None = None
    subgroups: tuple[str, ...] = ()
    reviewer: str | None = None
    audit_proba: str | None = None
    keeps_unjudged: bool = False

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.file.name

    @property
    def used(self) -> list[str]:
        """All columns that mean something, each once."""
        single = [self.label, self.answer, self.confidence, self.reviewer, self.audit_proba]
        return list(dict.fromkeys([*filter(None, single), *self.proba, *self.subgroups]))

    @property
    def stored(self) -> dict[str, Any]:
        """The columns as a policy stores them."""
        said: dict[str, Any] = {"proba": list(self.proba)}
        if not self.proba:
            said = {"answer": self.answer, "confidence_column": self.confidence}
        return said | {"subgroups": list(self.subgroups)}

    def codes(self, column: pd.Series) -> IntArray:
        """Return the class of each cell, -1 where it is missing, -2 where it is no class."""
        if self.is_judged and column.name == self.answer:  # each is predicted to be right
            return -is_missing(column).astype(np.int64)
        codes, cells = pd.factorize(column)
        if self.is_judged and column.name == self.label:
            words = ["" if str(x).strip().lower() in _MISSING else x for x in cells]
            return read_verdicts([*words, ""])[codes]
        found = look_up(cells, self.classes.tolist(), self.file.layout.decimal)
        return look_up_codes(found, codes, missing=-1)

    def known_codes(self, column: pd.Series) -> IntArray:
        """Return the class of each cell, -1 where it is missing; refuse what is no class."""
        codes = self.codes(column)
        if (codes < -1).any():
            wanted = VERDICT_WORDS
            if not (self.is_judged and column.name == self.label):
                wanted = (
                    f"one of the classes {self.classes[:10].tolist()} (capitals and blanks count; "
                    "--classes, if given, names every class)"
                )
            raise self.file.error(column, (codes < -1).argmax(), wanted)
        return codes

    def all_codes(self, column: pd.Series) -> IntArray:
        """Return the class of each cell; refuse cells that are missing, or are no class."""
        codes = self.known_codes(column)
        self.file.refuse_missing(column, codes < 0)
        return codes

    def numbers(self, rows: pd.DataFrame) -> tuple[FloatArray, BoolArray]:
        """Return the probabilities, or the confidence in one column, and which rows have all."""
        names = list(self.proba) or [str(self.confidence)]
        known = ~np.any([is_missing(rows[name]) for name in names], axis=0)
        whole = rows.loc[known, names]  # nothing else in the other rows counts
        found = self.file.complete_numbers(whole)
        self._check_proba(found, whole.index)
        numbers = np.full((len(rows), len(names)), np.nan, found.dtype)
        numbers[known] = found
        return numbers, known

    def _check_proba(self, proba: FloatArray, index: pd.Index) -> None:
        """Refuse probabilities outside [0, 1], and rows that do not sum to one."""
        if not self.proba:
            return
        outside = (proba < -RANGE_TOLERANCE) | (proba > 1 + RANGE_TOLERANCE)
        if outside.any():
            row, column = np.argwhere(outside)[0].tolist()
            is_percent = 1 < proba.max() <= 100 and proba.min() >= 0
            raise ValueError(
                f"{self.name}: column {self.proba[column]!r} must hold probabilities from 0 to 1, "
                f"but row {index[row] + 1} holds {proba[row, column]:g}."
                f"{' Divide percentages by 100.' if is_percent else ''}"
            )
        gap = np.abs(row_checks.row_sums(proba) - 1.0) > SUM_TOLERANCE
        if len(self.proba) > 1 and gap.any():
            row = int(np.argmax(gap))
            raise ValueError(
                f"{self.name}: the probabilities in the columns {list(self.proba)} must sum to "
                f"one, but in row {index[row] + 1} they sum to {proba[row].sum():g}. Name the "
                "column of every class with --proba, or divide each row by its sum."
            )

    def predictions(self) -> tuple[Predictions, pd.DataFrame]:
        """Return all predictions, and the subgroups; those in a CSV file are numbers if all are."""
        found, groups = self._verdicts() if self.is_judged else self._labelled()
        return found, groups.apply(_typed if self.file.is_text else plain)

    def _labelled(self) -> tuple[Predictions, pd.DataFrame]:
        """Return rows with labels and the subgroups."""
        codes, rows = np.arange(len(self.classes)), self.file.rows(self.used)
        truth = self.known_codes(rows[str(self.label)])
        unjudged = truth < 0 if self.keeps_unjudged else None
        if unjudged is None:
            self.file.refuse_missing(rows[str(self.label)], truth < 0, _UNJUDGED)
        if self.proba:
            proba = self.file.complete_numbers(rows[list(self.proba)])
            self._check_proba(proba, rows.index)
            if proba.shape[1] == 1:  # of the second of two classes
                proba = np.column_stack([1.0 - proba.astype(np.float64), proba])
            found = Predictions.from_proba(np.maximum(truth, 0), proba, labels=codes)
        else:
            answer = self.all_codes(rows[str(self.answer)])
            sure = self.file.complete_numbers(rows[[str(self.confidence)]])[:, 0]
            found = Predictions.from_labels(np.maximum(truth, 0), answer, sure, labels=codes)
        reviewer = None if self.reviewer is None else self.all_codes(rows[self.reviewer])
        found = replace(
            found, y_true=truth, classes=self.classes, reviewer=reviewer, unjudged=unjudged
        )
        return found, rows[list(self.subgroups)]

    def _verdicts(self) -> tuple[Predictions, pd.DataFrame]:
        """Read verdicts with the confidences of all rows, and the subgroups of those that count."""
        every = self.file.rows(self.used)
        truth = self.known_codes(every[str(self.label)])
        judged = truth >= 0
        kept = judged | self.keeps_unjudged
        if not kept.any():
            raise ValueError(f"{self.name}: column {self.label!r} holds no verdict{_UNJUDGED}.")
        names = [str(self.confidence), *filter(None, [self.audit_proba])]
        self.file.complete_numbers(every.loc[kept, names])  # refuses missing ones
        sure, *drawn = (self.file.numbers(every[name]) for name in names)
        found = Predictions.from_verdicts(
            np.where(judged, VERDICTS[truth], ""), sure, audit_proba=drawn[0] if drawn else None,
            unjudged="wrong" if self.keeps_unjudged else "drop",
        )  # fmt: skip
        return found, every.loc[kept, list(self.subgroups)]


def _typed(column: pd.Series) -> pd.Series:
    """Return subgroups of a CSV file as numbers if all of them are numbers."""
    codes, cells = pd.factorize(column.mask(column == ""))
    typed = text_to_numbers(cells.to_numpy(dtype=str))
    kind = "Int64" if typed.dtype.kind == "i" else None  # integers that may be missing
    return pd.Series(typed, dtype=kind).reindex(codes).set_axis(column.index)


# Which column means what: as it is said, as the policy stores it, or by the names of the classes --


def open_table(path: Path, given: Namespace, policy: AbstentionPolicy | None = None) -> Table:
    """Open a table; find out which of its columns mean what, and the classes."""
    file = TableFile.open(path, read_layout(given))
    stored = {} if policy is None else _stored_columns(policy)
    said = _find_roles(given, stored)
    if policy is not None:
        _refuse_what_it_cannot_read(policy, said["answer"] is not None, given.command)
    label, is_judged = said["label"] or said["verdict"], said["verdict"] is not None
    keeps_unjudged = vars(given).get("unjudged") is not None
    named = [x for x in (*said.values(), vars(given).get("id")) if isinstance(x, str)]
    named += [*(said["proba"] or []), *(said["subgroups"] or [])]
    row_checks.check_columns(named, list(file.types), file.name)
    kinds = {name: _value_type(file.types[name]) for name in named}
    for name, kind in kinds.items():
        is_odd = pa.types.is_temporal(kind) or "binary" in str(kind)
        if pa.types.is_nested(kind) or (name == said["answer"] and is_odd):
            raise ValueError(
                f"{file.name}: column {name!r} holds values of the type {kind}; name a column "
                "of numbers, text or booleans."
            )
    if policy is not None:
        classes = policy.classes
        if is_judged and classes.tolist() != VERDICTS.tolist():
            raise ValueError(
                f"--verdict: the policy was tuned on labels, {classes.tolist()[:10]}; name the "
                "column of the true label, --label."
            )
    elif is_judged:
        classes = VERDICTS
    elif given.classes:
        is_text = not file.is_text and _is_text(kinds[label])
        classes = np.array(given.classes)
        classes = row_checks.check_classes(
            classes if is_text else text_to_numbers(classes), "--classes"
        )
    else:
        used = [label, *filter(None, [said["answer"]])]
        classes = _find_classes(file, used, skips=label if keeps_unjudged else None)
    proba = tuple(said["proba"] or ())
    if not proba and said["answer"] is None:
        proba = _name_columns(file, classes)
    return Table(
        file, classes, label, is_judged, _order(proba, given.classes, classes, stored),
        said["answer"], said["confidence_column"], tuple(said["subgroups"] or ()),
        said["reviewer"], said["audit_proba"], keeps_unjudged,
    )  # fmt: skip


def _stored_columns(policy: AbstentionPolicy) -> dict[str, Any]:
    """Return the columns that the policy was tuned on; refuse what `tune` does not store."""
    stored, several = policy.metadata.get(COLUMNS, {}), ("proba", "subgroups")
    fits = isinstance(stored, dict) and all(
        isinstance(found, list) and all(isinstance(one, str) for one in found)
        if name in several
        else isinstance(found, str | None)
        for name, found in stored.items()
    )
    if not fits:
        raise ValueError(
            f"--policy: its metadata {COLUMNS!r} must map 'answer' and 'confidence_column' to a "
            "column, 'proba' and 'subgroups' to a list of columns, as skselect tune stores them, "
            f"got {shown(stored)}."
        )
    return dict(stored)


def _find_roles(given: Namespace, stored: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that the command line names, else those that the policy stores."""
    single = ("label", "verdict", "answer", "confidence_column", "reviewer", "audit_proba")
    said = {name: vars(given).get(name) for name in (*single, "proba", "subgroups")}
    # Columns of probabilities replace a stored answer with its confidence, and vice versa.
    by_answer = said["answer"] or said["confidence_column"]
    replaced = ("answer", "confidence_column") if said["proba"] else ("proba",) * bool(by_answer)
    said = {x: said[x] or (None if x in replaced else stored.get(x)) for x in said}
    if said["verdict"] and (said["answer"] is None or said["reviewer"] is not None):
        raise ValueError(
            "--verdict goes with --answer and --confidence-column, and without --reviewer (name "
            "--deferred-error): it does not say what the right answer is."
        )
    if (said["answer"] is None) != (said["confidence_column"] is None):
        raise ValueError("--answer and --confidence-column go together: name both columns.")
    if said["proba"] and said["answer"] is not None:
        raise ValueError("Name either --proba columns, or --answer and --confidence-column.")
    roles = [name for name in single if name != "audit_proba"]
    named = [*filter(None, (said[name] for name in roles)), *(said["proba"] or ())]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise ValueError(
            f"Columns {twice} are named twice; label, answer, confidence, probabilities and "
            "reviewer are columns of their own."
        )
    return said


def _refuse_what_it_cannot_read(policy: AbstentionPolicy, by_answer: bool, command: str) -> None:
    """Refuse numbers of the table that are not those which the policy compares."""
    learned, asks = isinstance(policy.confidence, LearnedScore), ""
    if by_answer and policy.calibration is not None and not learned:
        raise ValueError(
            "--policy: its threshold is about a calibrated confidence, which it computes from "
            "probabilities; name their columns, --proba."
        )
    if policy.cascade is not None and command != "apply":
        asks = (
            f"it asks the stages {list(policy.cascade.names)} in turn. Decide with skselect apply"
        )
    if isinstance(policy.confidence, LearnedScore) and policy.confidence.asks:
        asks = (
            f"its learned confidence also asks {list(policy.confidence.asks)}. Call policy.decide"
        )
    if asks and not by_answer:
        raise ValueError(
            f"--policy: {asks}, and name the columns of what it says: --answer suggestion "
            "--confidence-column confidence."
        )


def _find_classes(file: TableFile, names: Sequence[str], skips: str | None = None) -> LabelArray:
    """Return the classes that occur, sorted; in a CSV file as numbers if all are numbers.

    In the column that `skips` names, words that mean missing are no classes.
    """
    rows, seen = file.rows(names), set()
    for name in names:
        is_gone = is_missing if name == skips else is_empty
        seen.update(rows[name][~is_gone(rows[name])].unique().tolist())
    if not seen:
        raise ValueError(f"--classes is missing: column {names[0]!r} holds no label yet.")
    classes = row_checks.check_labels(list(seen), f"column {names[0]!r}")
    if len(names) == len(classes) == 1:
        raise ValueError(
            f"column {names[0]!r} holds the class {classes.tolist()[0]!r} only; name all classes, "
            "in the order of --proba: --classes ..."
        )
    return np.unique(text_to_numbers(classes) if file.is_text else classes)


def _name_columns(file: TableFile, classes: LabelArray) -> tuple[str, ...]:
    """Return the columns that are named like the classes."""
    names = tuple(map(str, classes.tolist()))
    missing = [name for name in names if name not in file.types]
    if missing:
        raise ValueError(
            f"{file.name} has no columns {missing}, one for each class. Name the columns of "
            "the probabilities: --proba p_no p_yes --classes no yes; or those of an answer and its "
            f"confidence: --answer ... --confidence-column .... Its columns: "
            f"{list(file.types)[:20]}."
        )
    return names


def _order(
    proba: tuple[str, ...], given: list[str] | None, classes: LabelArray, stored: dict[str, Any]
) -> tuple[str, ...]:
    """Return the columns of the probabilities in the order of the classes.

    The order is that of --classes, or that of the policy, or follows from names that are those of
    the classes. Otherwise the columns are taken to be in the order of the classes, and a note says
    so.
    """
    names, known = list(map(str, classes.tolist())), stored.get("proba", [])
    if given is not None and sorted(given) != sorted(names):
        raise ValueError(
            f"--classes must name the classes {names}, in the order of --proba, got {given}."
        )
    is_known = bool(known) and sorted(proba) == sorted(known)
    if not proba or (is_known and given is None):
        return tuple(known) if proba else ()
    ordered = proba
    if len(proba) == 1 and len(names) == 2:
        if (given or names) != names or names[0] in proba:
            raise ValueError(
                f"--proba: a single column is the probability of {names[-1]!r} here; name the "
                "columns of both classes."
            )
    else:
        remedy = "; name one column for each class, in the order of --classes"
        row_checks.check_class_columns(len(proba), classes, "--proba", remedy)
        if given is not None:
            ordered = tuple(proba[given.index(name)] for name in names)
        elif set(proba) == set(names):
            return tuple(names)
    if is_known and list(ordered) != known:
        raise ValueError(
            f"--classes: the policy was tuned with the columns {known} for the classes "
            f"{classes.tolist()}, in this order."
        )
    if given is None and proba != (names[-1],):
        pairs = zip(proba, names[-len(proba) :], strict=True)
        meant = ", ".join(f"{column} for {name!r}" for column, name in pairs)
        warn_user(f"probabilities: {meant} (use --classes to change this)")
    return ordered


# Writing -----------------------------------------------------------------------------------------


def write_csv(cells: Any, file: TextIO, separator: str = ",", decimal: str = ".") -> None:
    """Write a table as CSV; refuse columns that CSV cannot hold.

    Only cells that need quotes have them. Whole floats stay floats, such as 1.0.
    """
    for column in cells.schema:
        kind = _value_type(column.type)
        if not (_is_text(kind) or any(fits(kind) for fits in _WRITTEN_AS_TEXT)):
            raise ValueError(
                f"A CSV file cannot hold column {column.name!r}, whose values are of the type "
                f"{kind}. Write a .parquet file (--out decided.parquet)."
            )
    header = _quoted(pa.array(cells.column_names, pa.large_string()), separator).to_pylist()
    file.write(f"{separator.join(header)}\n")
    for rows in cells.to_batches(max_chunksize=_AT_ONCE):
        texts = [_quoted(_as_text(column, decimal), separator) for column in rows.columns]
        texts[-1] = _join([texts[-1], ""], "\n")  # each row ends its line
        # The buffer holds the text of all rows, one after the other.
        file.write(str(_join(texts, separator).buffers()[2], "utf-8"))


def _as_text(cells: Any, decimal: str) -> Any:
    """Return cells as text."""
    kind, text = _value_type(cells.type), pa.large_string()
    if pa.types.is_boolean(kind):
        return pc.if_else(cells.cast(kind), pa.scalar("True", text), pa.scalar("False", text))
    if pa.types.is_floating(kind):
        cells = pc.if_else(pc.is_nan(cells), None, cells)
    written = cells.cast(kind).cast(text)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        written = pc.replace_substring_regex(written, r"^(-?[0-9]+)$", r"\1.0")
        return pc.replace_substring(written, ".", decimal)
    return written


def _quoted(text: Any, separator: str) -> Any:
    """Return text with quotes around the cells that need them; a carriage return ends rows too."""
    needs = pc.match_substring_regex(text, f'[{re.escape(separator)}"\r\n]')
    if not pc.any(needs).as_py():
        return text
    quoted = _join(['"', pc.replace_substring(text, '"', '""'), '"'], "")
    return pc.if_else(needs, quoted, text)


def _join(texts: list[Any], separator: str) -> Any:
    """Join texts row by row; a missing one is empty."""
    kind = pa.large_string()
    parts = [pa.scalar(x, kind) if isinstance(x, str) else x for x in [*texts, separator]]
    return pc.binary_join_element_wise(*parts, null_handling="replace", null_replacement="")
