"""Tables of predictions in CSV, JSONL, Parquet and Excel files: their rows, and what they mean."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json
import pyarrow.parquet as pq

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, LabelArray
from skselect._lib.checks import shown, warn_user
from skselect._lib.checks.rows import (
    check_any_rows,
    check_class_columns,
    check_classes,
    check_columns,
    check_labels,
    row_sums,
)
from skselect._lib.decide import RANGE_TOLERANCE, SUM_TOLERANCE
from skselect._lib.files import naming_output, read_parquet, row_bar
from skselect.policy.policy import AbstentionPolicy
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import VERDICT_WORDS, VERDICTS, Predictions, read_verdicts

#: Rows of a Parquet file, and bytes of a CSV file, that are read at a time.
_PIECE, _BLOCK = 1 << 18, 1 << 22
#: Endings of Parquet files, of files with one JSON object per line, and of workbooks.
PARQUET = (".parquet", ".pq")
JSONL = (".jsonl", ".ndjson")
WORKBOOKS = (".xlsx", ".xls", ".ods")
#: What stands between cells, as errors call it.
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
#: What counts as missing, in lower case.
_MISSING = ["", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "-"]
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_NUMBER = re.compile(_INTEGER.pattern + r"(\.\d+)?([eE][-+]?\d+)?")
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

    def options(self, path: Path) -> dict[str, Any]:
        """Return the options of `DataFrame.to_csv` for a file."""
        is_tsv = ".tsv" in (path.suffix.lower(), Path(path.stem).suffix.lower())
        separator = self.separator or ("\t" if is_tsv else ",")
        return {"sep": separator, "decimal": self.decimal, "encoding": self.encoding}


def read_layout(given: Namespace) -> CsvLayout:
    """Return what the command line says about CSV files."""
    return CsvLayout(given.separator, given.decimal, given.encoding)


@dataclass(frozen=True)
class TableFile:
    """A CSV file, which may be packed, a Parquet file, or what was copied to one of these.

    Parameters
    ----------
    path : Path
        Its name in messages.
    layout : CsvLayout
        How a CSV file is written.
    copy : object
        What came from standard input or a workbook, as a temporary CSV file, or from a JSONL file,
        as a temporary Parquet file.
    types : dict
        The type of each column in Arrow; those of a CSV file are text.
    """

    path: Path
    layout: CsvLayout = CsvLayout()
    copy: Any = None
    types: dict[str, pa.DataType] = field(default_factory=dict)

    @classmethod
    def open(
        cls, path: Path, layout: CsvLayout | None = None, argument: str = "TABLE"
    ) -> TableFile:
        """Read the names of the columns; refuse what is no table."""
        file = cls(path, layout or CsvLayout())
        if path == Path("-"):
            if sys.stdin is None:
                raise ValueError(f"{argument}: standard input is closed; name a file.")
            file = replace(file, path=Path("standard input"), copy=_copy_input())
        elif not path.is_file():
            raise ValueError(f"{argument}: there is no file {str(path)!r}.")
        elif path.suffix.lower() in WORKBOOKS:
            file = cls(path, copy=_copy_sheet(path, argument))
        elif is_jsonl(path):
            file = cls(path, copy=_copy_lines(path, argument))
        if file.is_text:
            names = file._check_csv(argument)
            types = [pa.string()] * len(names)
        else:
            schema = read_parquet(pq.read_schema, file._stored)
            names, types = schema.names, schema.types
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"{file.path.name} has several columns of the name {twice}; rename them."
            )
        return replace(file, types=dict(zip(names, types, strict=True)))

    @property
    def _stored(self) -> Path:
        return self.path if self.copy is None else Path(self.copy.name)

    @property
    def is_text(self) -> bool:
        """Whether it is a CSV file, in which everything is text."""
        return self._stored.suffix.lower() not in PARQUET

    def whole(self) -> pd.DataFrame:
        """Read all columns and rows, with the types that the values of a CSV file suggest."""
        if not self.is_text:
            return read_parquet(pd.read_parquet, self._stored)
        convert = arrow_csv.ConvertOptions(
            strings_can_be_null=True, decimal_point=self.layout.decimal
        )
        return arrow_csv.read_csv(self._source, *self._how_to_read(), convert).to_pandas()

    def pieces(self, columns: Iterable[str] | None = None) -> Iterator[pd.DataFrame]:
        """Read some columns, or all, piece by piece, as Arrow holds them: cells of CSV are text.

        The index counts the rows of the file from 0.
        """
        wanted, first = list(self.types if columns is None else dict.fromkeys(columns)), 0
        check_columns(wanted, list(self.types), self.path.name)
        total = None if self.is_text else pq.read_metadata(self._stored).num_rows
        with self._open(wanted) as batches, row_bar(total, self.path.name) as bar:
            for batch in batches:
                if batch.num_rows:
                    piece = _without_views(batch).to_pandas(
                        ignore_metadata=True, types_mapper=pd.ArrowDtype
                    )
                    yield piece.set_axis(range(first, first + len(piece)))
                    first += len(piece)
                    bar.update(len(piece))
        # Arrow keeps the memory of a batch, which may be more than the rest of the work needs.
        pa.default_memory_pool().release_unused()

    def rows(self, columns: Iterable[str] | None = None) -> pd.DataFrame:
        """Read some columns, or all, of all rows at once."""
        found = list(self.pieces(columns))
        check_any_rows(len(found), self.path.name)
        return pd.concat(found)

    @contextmanager
    def _open(self, columns: list[str]) -> Iterator[Any]:
        """Yield the batches of some columns."""
        if not self.is_text:
            # Buffers read in advance would stay in memory.
            with pq.ParquetFile(self._stored, pre_buffer=False) as file:
                yield file.iter_batches(_PIECE, columns=columns, use_threads=False)
            return
        convert = arrow_csv.ConvertOptions(
            include_columns=columns, column_types=dict.fromkeys(columns, pa.string())
        )
        with arrow_csv.open_csv(self._source, *self._how_to_read(), convert) as batches:
            yield batches

    @property
    def _source(self) -> Any:
        """The bytes of a CSV file, unpacked."""
        return pa.input_stream(str(self._stored))

    def _how_to_read(self) -> tuple[Any, Any]:
        # Arrow reads "utf8" fast, and any other name slowly.
        encoding = "utf8" if self.layout.encoding == "utf-8" else self.layout.encoding
        return arrow_csv.ReadOptions(
            encoding=encoding, block_size=_BLOCK, use_threads=False
        ), arrow_csv.ParseOptions(
            delimiter=self.layout.options(self.path)["sep"], newlines_in_values=True,
            invalid_row_handler=_skip_blank_lines,
        )  # fmt: skip

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line of each row, and its cells: the slow way, which can say where."""
        csv.field_size_limit(2**31 - 1)  # a cell may be longer than 128 KiB
        encoding = "utf-8-sig" if self.layout.encoding == "utf-8" else self.layout.encoding
        with io.TextIOWrapper(self._source, encoding, newline="") as text:
            start, reader = 1, csv.reader(text, delimiter=self.layout.options(self.path)["sep"])
            for cells in reader:
                if len(cells) > 1 or "".join(cells).strip(" \t"):
                    yield start, cells
                start = reader.line_num + 1

    def _check_csv(self, argument: str) -> list[str]:
        """Return the names of the columns of a CSV file; refuse one that is no table."""
        where, reason = f"{argument}: {self.path.name}", ""
        try:
            _, header = next(self._lines(), (0, []))
            if len(set(header)) == len(header) > 1:
                reason = self._why_unreadable(header)
        except OSError as error:
            raise ValueError(f"{where} cannot be unpacked: {error}.") from error
        except UnicodeError as error:
            at, text = getattr(error, "start", 0), getattr(error, "object", b"")
            raise ValueError(
                f"--encoding: {self.path.name} is not written in {self.layout.encoding!r}, see "
                f"{text[max(at - 10, 0) : at + 5]!r}. Name its encoding, such as --encoding cp1252 "
                "(Windows) or --encoding utf-16."
            ) from error
        if not header:
            raise ValueError(f"{where} is no CSV table: it is empty.")
        separator = self.layout.options(self.path)["sep"]
        if len(header) == 1:
            marks = f"{_SEPARATORS.get(separator, repr(separator))} between them"
            reason = f"it has one column only, {header[0]!r}; a table has several, with {marks}"
        likely = max(_SEPARATORS, key=separator.join(header).count)
        if reason and separator.join(header).count(likely) >= len(header):
            shown = likely.replace("\t", "\\t")
            reason += (
                f'. It looks as if {_SEPARATORS[likely]} separates its cells: --separator "{shown}"'
            )
        if reason:
            raise ValueError(f"{where}: {reason}.")
        return header

    def _why_unreadable(self, header: list[str]) -> str:
        """Return why Arrow cannot read the rows, and where; nothing if it can."""
        try:
            with self._open(header) as batches:
                for _ in batches:
                    pass
        except pa.ArrowInvalid as error:
            for line, cells in self._lines():
                if len(cells) != len(header):
                    return f"line {line} has {len(cells)} cells, the first line has {len(header)}"
            return f"it has no rows, or is no CSV table ({error})"
        return ""

    # What its cells hold

    def numbers(self, column: pd.Series) -> FloatArray:
        """Return a column as finite numbers, nan where one is missing."""
        cells, decimal = _cells(column), self.layout.decimal
        if pa.types.is_boolean(cells.type):
            raise self.error(column, np.ones(len(column), dtype=bool), "numbers")
        try:
            numbers = _to_numbers(cells, decimal)
        except pa.ArrowException as error:
            bad = np.array([not _is_number(cell, decimal) for cell in column])
            raise self.error(column, bad, "numbers") from error
        if np.isinf(numbers).any():
            raise self.error(column, np.isinf(numbers), "finite numbers")
        return numbers

    def complete_numbers(self, frame: pd.DataFrame) -> FloatArray:
        """Return columns as an array of numbers; refuse missing ones."""
        columns = [self.numbers(frame[name]) for name in frame]
        for name, numbers in zip(frame, columns, strict=True):
            self.refuse_missing(frame[name], np.isnan(numbers))
        return np.column_stack(columns)

    def refuse_missing(self, column: pd.Series, missing: BoolArray) -> None:
        """Refuse missing values, naming the first row that has one."""
        if missing.any():
            raise ValueError(
                f"{self.path.name}: column {column.name!r} has {int(missing.sum())} missing "
                f"values, the first in {self.place(column.index[missing][0])}; leave such rows "
                "out, or fill them in."
            )

    def error(self, column: pd.Series, bad: BoolArray, wanted: str) -> ValueError:
        """Return an error that names the first bad value of a column."""
        row = column.index[bad][0]
        value, advice = column.loc[row], ""
        if wanted == "numbers" and isinstance(value, str):
            if _is_number(value, "."):
                advice = " It has a decimal point: leave --decimal out."
            elif _is_number(value, ","):
                advice = " For decimal commas say --decimal ,."
        return ValueError(
            f"{self.path.name}: column {column.name!r} must hold {wanted}, but {self.place(row)} "
            f"holds {value!r}.{advice}"
        )

    def place(self, row: int) -> str:
        """Return where a row is, for messages: its line in a CSV file, as an editor counts it."""
        if not self.is_text:
            return f"row {row} (counted from 0)"
        return f"line {next(islice(self._lines(), row + 1, None))[0]}"

    def times(self, column: pd.Series, given: Namespace) -> pd.Series:
        """Return times as numbers, or as dates in UTC."""
        self.refuse_missing(column, is_empty(column))
        values = plain(column)
        if given.dayfirst:
            if given.time_format is not None:
                raise ValueError(
                    "--dayfirst goes without --time-format: name the form of dates once."
                )
            values = values.astype(str).str.replace(r"(?<!\d)(\d)(?=[./-])", r"0\1", regex=True)
            values = values.str.replace(_DAY_FIRST, r"\3-\2-\1", regex=True)
        times = parse_times(values, given.time_format)
        if times.isna().any():
            wanted = given.time_format or "2026-01-31T09:30 (or say --dayfirst, or --time-format)"
            bad = times.isna().to_numpy()
            raise self.error(values, bad, f"numbers, or dates such as {wanted}")
        return times

    def names(self, column: pd.Series) -> pd.Series:
        """Return the names of cases as text."""
        self.refuse_missing(column, is_empty(column))
        names = list(map(str, _cells(column).to_pylist()))
        return pd.Series(names, index=column.index, dtype=object)

    def booleans(self, column: pd.Series) -> BoolArray:
        """Return a column of true and false as an array; 1 and 0, yes and no mean the same."""
        words = dict.fromkeys(["true", "1", "1.0", "yes"], 1)
        words |= dict.fromkeys(["false", "0", "0.0", "no"], 0)
        found = np.array([words.get(str(cell).strip().lower(), -1) for cell in plain(column)])
        if (found < 0).any():
            raise self.error(column, found < 0, "true or false")
        return found == 1


def is_jsonl(path: Path) -> bool:
    """Tell whether a file, which may be packed, has one JSON object per line."""
    return any(ending in JSONL for ending in map(str.lower, path.suffixes[-2:]))


def _temporary(ending: str) -> Any:
    """Return a temporary file, which goes when nobody needs it."""
    return tempfile.NamedTemporaryFile(prefix="skselect-", suffix=ending)


def _copy_input() -> Any:
    """Return a temporary file with all of standard input."""
    with naming_output(tempfile.gettempdir()):
        copy = _temporary(".csv")
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
    return copy


def _copy_sheet(path: Path, argument: str) -> Any:
    """Return the first sheet of a workbook as a temporary CSV file."""
    try:
        sheet = pd.read_excel(path, header=None, dtype=object, keep_default_na=False)
    except (ImportError, BadZipFile, KeyError, OSError, ValueError) as error:
        raise ValueError(
            f"{argument}: {path.name} is a workbook; to read it, install openpyxl, or save the "
            f"sheet as CSV. ({error})"
        ) from error
    copy = _temporary(".csv")
    sheet.to_csv(copy.name, header=False, index=False)
    return copy


def _copy_lines(path: Path, argument: str) -> Any:
    """Return the objects of a JSONL file as a temporary Parquet file; refuse what is no table."""
    where, keys = f"{argument}: {path.name}", []
    try:
        with pa.input_stream(str(path)) as stream:
            text = stream.read()
        table = arrow_json.read_json(io.BytesIO(text))
        times = [(x.name, pa.string()) for x in table.schema if pa.types.is_timestamp(x.type)]
        if times:  # texts stay as written
            names, given = table.column_names, arrow_json.ParseOptions(pa.schema(times))
            table = arrow_json.read_json(io.BytesIO(text), parse_options=given).select(names)
        if any(column.null_count for column in table.columns):
            keys = [sorted(json.loads(line)) for line in text.splitlines() if line.strip()]
        copy = _temporary(PARQUET[0])
        pq.write_table(table, copy.name)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(
            f"{where} is no table with one JSON object per line: {error} (rows are counted from 0)."
        ) from error
    # Nothing tells a slip from no value.
    for row, own in enumerate(keys):
        if own != keys[0]:
            raise ValueError(
                f"{where}: row {row} (counted from 0) has the keys {own}, the first one has "
                f"{keys[0]}. Write null where there is no value."
            )
    return copy


def _skip_blank_lines(row: Any) -> str:
    return "error" if row.actual_columns > 1 or row.text.strip(" \t") else "skip"


# Cells -------------------------------------------------------------------------------------------


def _without_views(batch: Any) -> Any:
    """Return a batch with plain text instead of views, which few functions of Arrow take."""
    text, is_view = pa.large_string(), pa.types.is_string_view
    fields = [x.with_type(text) if is_view(x.type) else x for x in batch.schema]
    return pa.Table.from_batches([batch]).cast(pa.schema(fields))


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


def _is_number(cell: Any, decimal: str) -> bool:
    try:
        _to_numbers(pa.array([cell]), decimal)
    except pa.ArrowException:
        return False
    return True


def look_up(cells: Iterable[Any], known: Iterable[Any], decimal: str = ".") -> list[int]:
    """Return the position of each cell among known values, -1: it is missing, -2: it is none.

    The text "1" and the numbers 1 and 1.0 are the same, and "1,0" with decimal commas.
    """
    places: dict[Any, int] = {}
    for k, value in enumerate(known):
        places |= {str(value): k, value: k}

    def place(cell: Any) -> int:
        with suppress(KeyError, ValueError, TypeError):
            return places[cell if cell in places else float(str(cell).replace(decimal, "."))]
        return -1 if str(cell).strip().lower() in _MISSING else -2

    return [place(cell) for cell in cells]


def text_to_numbers(labels: LabelArray) -> LabelArray:
    """Return text as booleans, integers or floats if all of it can be read as such.

    Text such as "01" stays text, because as a number it would become "1".
    """
    distinct = np.unique(labels)
    if set(distinct.tolist()) <= {"True", "False"}:
        return np.asarray(labels == "True")
    if not all(map(_NUMBER.fullmatch, distinct.tolist())):
        return labels
    kind = np.int64 if all(map(_INTEGER.fullmatch, distinct.tolist())) else np.float64
    ambiguous = len(np.unique(distinct.astype(kind))) < len(distinct)  # such as "1" and "1.0"
    return labels if ambiguous else labels.astype(kind)


def parse_times(values: pd.Series, time_format: str | None = None) -> pd.Series:
    """Return numbers, or dates in UTC, missing where a value is no date."""
    is_text = pd.api.types.is_object_dtype(values) or pd.api.types.is_string_dtype(values)
    if is_text and all(isinstance(x, str) and _NUMBER.fullmatch(x.strip()) for x in values):
        values = values.astype(np.float64)
    if pd.api.types.is_numeric_dtype(values):
        return values.astype(np.float64)
    from skselect.monitoring.log import is_word  # noqa: PLC0415 - one command needs it

    if not pd.api.types.is_datetime64_any_dtype(values):
        values = values.where(~values.map(is_word))  # pandas takes "now" for a time
    form = (time_format or "ISO8601") if is_text else None
    dates = pd.to_datetime(values, utc=True, format=form, errors="coerce")
    return dates.dt.as_unit("us")


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
        return self.file.path.name

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
        return np.array([*found, -1])[codes]

    def known_codes(self, column: pd.Series) -> IntArray:
        """Return the class of each cell, -1 where it is missing; refuse what is no class."""
        codes = self.codes(column)
        if (codes < -1).any():
            wanted = (
                f"one of the classes {self.classes[:10].tolist()} (capitals and blanks count; "
                "--classes, if given, names every class)"
            )
            is_verdict = self.is_judged and column.name == self.label
            raise self.file.error(column, codes < -1, VERDICT_WORDS if is_verdict else wanted)
        return codes

    def all_codes(self, column: pd.Series) -> IntArray:
        """Return the class of each cell; refuse cells that are missing, or are no class."""
        codes = self.known_codes(column)
        self.file.refuse_missing(column, codes < 0)
        return codes

    def numbers(self, piece: pd.DataFrame) -> tuple[FloatArray, BoolArray]:
        """Return the probabilities, or the confidence in one column, and which rows have all."""
        names = list(self.proba) or [str(self.confidence)]
        known = ~np.any([is_missing(piece[name]) for name in names], axis=0)
        whole = piece.loc[known, names]  # nothing else in the other rows counts
        found = self.file.complete_numbers(whole)
        self._check_proba(found, whole.index)
        numbers = np.full((len(piece), len(names)), np.nan, found.dtype)
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
                f"but {self.file.place(index[row])} holds {proba[row, column]:g}."
                f"{' Divide percentages by 100.' if is_percent else ''}"
            )
        gap = np.abs(row_sums(proba) - 1.0) > SUM_TOLERANCE
        if len(self.proba) > 1 and gap.any():
            row = int(np.argmax(gap))
            raise ValueError(
                f"{self.name}: the probabilities in the columns {list(self.proba)} must sum to "
                f"one, but in {self.file.place(index[row])} they sum to {proba[row].sum():g}. Name "
                "the column of every class with --proba, or divide each row by its sum."
            )

    def predictions(self) -> tuple[Predictions, pd.DataFrame]:
        """Read all predictions, and the subgroups."""
        return self._join(self._predictions())

    def outcomes(self, confidence: str | None) -> tuple[Outcomes, pd.DataFrame]:
        """Read confidence and loss of each row, and the subgroups.

        Only the probabilities of one piece are in memory.
        """
        return self._join(
            (Outcomes.from_predictions(found, confidence=confidence), groups)
            for found, groups in self._predictions()
        )

    def _predictions(self) -> Iterator[tuple[Predictions, pd.DataFrame]]:
        """Yield the predictions of each piece with its subgroups."""
        codes = np.arange(len(self.classes))
        if self.is_judged:
            yield self._verdicts()
            return
        for piece in self.file.pieces(self.used):
            truth = self.known_codes(piece[str(self.label)])
            unjudged = truth < 0 if self.keeps_unjudged else None
            if unjudged is None:
                self.file.refuse_missing(piece[str(self.label)], truth < 0)
            truth = np.maximum(truth, 0)
            if self.proba:
                proba = self.file.complete_numbers(piece[list(self.proba)])
                self._check_proba(proba, piece.index)
                if proba.shape[1] == 1:  # of the second of two classes
                    proba = np.column_stack([1.0 - proba.astype(np.float64), proba])
                found = Predictions.from_proba(truth, proba, labels=codes)
            else:
                answer = self.all_codes(piece[str(self.answer)])
                sure = self.file.complete_numbers(piece[[str(self.confidence)]])[:, 0]
                found = Predictions.from_labels(truth, answer, sure, labels=codes)
            reviewer = None if self.reviewer is None else self.all_codes(piece[self.reviewer])
            if unjudged is not None:
                truth = np.where(unjudged, -1, truth)
            yield (
                replace(
                    found, y_true=truth, classes=self.classes, reviewer=reviewer, unjudged=unjudged
                ),
                piece[list(self.subgroups)],
            )

    def _verdicts(self) -> tuple[Predictions, pd.DataFrame]:
        """Read verdicts with the confidences of all rows, and the subgroups of those that count."""
        every = self.file.rows(self.used)
        truth = self.known_codes(every[str(self.label)])
        judged = truth >= 0
        kept = judged | self.keeps_unjudged
        if not kept.any():
            raise ValueError(f"{self.name}: column {self.label!r} holds no verdict.")
        names = [str(self.confidence), *filter(None, [self.audit_proba])]
        self.file.complete_numbers(every.loc[kept, names])  # refuses missing ones
        sure, *drawn = (self.file.numbers(every[name]) for name in names)
        found = Predictions.from_verdicts(
            np.where(judged, VERDICTS[truth], ""), sure, audit_proba=drawn[0] if drawn else None,
            unjudged="wrong" if self.keeps_unjudged else "drop",
        )  # fmt: skip
        return found, every.loc[kept, list(self.subgroups)]

    def _join(self, parts: Iterable[tuple[Any, pd.DataFrame]]) -> tuple[Any, pd.DataFrame]:
        """Put the pieces of a table together; subgroups in a CSV file are numbers if all are."""
        found, groups = [list(column) for column in zip(*parts, strict=True)] or ([], [])
        check_any_rows(len(found), self.name)
        fields = vars(found[0]).items()
        arrays = [name for name, x in fields if isinstance(x, np.ndarray) and name != "classes"]
        joined = {name: np.concatenate([vars(part)[name] for part in found]) for name in arrays}
        typed = _typed if self.file.is_text else plain
        return replace(found[0], **joined), pd.concat(groups).apply(typed)


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
    check_columns(named, list(file.types), file.path.name)
    kinds = {name: _value_type(file.types[name]) for name in named}
    for name, kind in kinds.items():
        is_odd = pa.types.is_temporal(kind) or "binary" in str(kind)
        if pa.types.is_nested(kind) or (name == said["answer"] and is_odd):
            raise ValueError(
                f"{file.path.name}: column {name!r} holds values of the type {kind}; name a column "
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
        classes = check_classes(classes if is_text else text_to_numbers(classes), "--classes")
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
            "--reviewer-error): it does not say what the right answer is."
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
    columns = "--answer suggestion --confidence-column confidence"
    learned = isinstance(policy.confidence, LearnedScore)
    if by_answer and policy.calibration is not None and not learned:
        raise ValueError(
            "--policy: its threshold is about a calibrated confidence, which it computes from "
            "probabilities; name their columns, --proba."
        )
    if by_answer:
        return
    if policy.cascade is not None and command != "apply":
        raise ValueError(
            f"--policy: it asks the stages {list(policy.cascade.names)} in turn, and {command} "
            "reads one table. Decide with skselect apply, and name the columns that it writes: "
            f"{columns}."
        )
    if isinstance(policy.confidence, LearnedScore) and policy.confidence.asks:
        raise ValueError(
            f"--policy: its learned confidence also asks {list(policy.confidence.asks)}, and a "
            "command reads no auxiliary models. Write the columns suggestion and confidence of "
            f"policy.decide into the table, and name them: {columns}."
        )


def _find_classes(file: TableFile, names: Sequence[str], skips: str | None = None) -> LabelArray:
    """Return the classes that occur, sorted; in a CSV file as numbers if all are numbers.

    The column that `skips` names may have missing values.
    """
    seen: set[Any] = set()
    for piece in file.pieces(names):
        for name in names:
            column = piece[name][~is_missing(piece[name])] if name == skips else piece[name]
            file.refuse_missing(column, is_empty(column))
            seen.update(column.unique().tolist())
    if skips is not None and not seen:
        raise ValueError(f"--classes is missing: column {skips!r} holds no label yet.")
    check_any_rows(len(seen), file.path.name)
    classes = check_labels(list(seen), f"column {names[0]!r}")
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
            f"{file.path.name} has no columns {missing}, one for each class. Name the columns of "
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
        check_class_columns(len(proba), classes, "--proba", remedy)
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


def write_rows(rows: pd.DataFrame, separator: str, decimal: str = ".") -> str | None:
    """Return rows as lines of CSV, the text that `DataFrame.to_csv` writes, many times faster.

    None: a cell needs quotes, or a column holds something other than text, float64, integers or
    booleans.
    """
    texts = []
    for name in rows:
        cells: Any = pa.array(rows[name], from_pandas=True)
        kind = cells.type
        if pa.types.is_float64(kind):
            text = _write_floats(cells)
            text = text if decimal == "." else pc.replace_substring(text, ".", decimal)
        elif pa.types.is_boolean(kind):
            text = pc.if_else(cells, "True", "False")
        elif pa.types.is_integer(kind) or pa.types.is_null(kind) or _is_text(kind):
            text = cells.cast(pa.large_string())
        else:
            return None
        texts.append(text)
    lines = pa.BufferOutputStream()
    how = arrow_csv.WriteOptions(include_header=False, delimiter=separator, quoting_style="none")
    try:
        arrow_csv.write_csv(pa.table(texts, list(map(str, range(len(texts))))), lines, how)
    except pa.ArrowInvalid:  # a cell needs quotes
        return None
    return str(lines.getvalue().to_pybytes(), "utf-8")


def _write_floats(cells: Any) -> Any:
    """Return numbers as Python writes them; Arrow writes the same digits, but 1.0 as 1.

    Python itself writes whole, tiny and huge numbers.
    """
    numbers = cells.to_numpy(zero_copy_only=False)
    size = np.abs(numbers)
    other = ~((size >= 1e-4) & (size < 1e9) & (numbers != np.floor(numbers)))
    other &= ~np.isnan(numbers)
    own = pa.array(list(map(repr, numbers[other].tolist())), pa.large_string())
    return pc.replace_with_mask(cells.cast(pa.large_string()), pa.array(other), own)
