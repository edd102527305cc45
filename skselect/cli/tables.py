"""Tables of predictions in CSV, JSONL and Parquet files, read in pieces."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn
from zipfile import BadZipFile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json
import pyarrow.parquet as pq

from skselect._lib.arrays import BoolArray, IntArray, LabelArray
from skselect._lib.checks.rows import (
    check_any_rows,
    check_columns,
    check_known,
    check_labels,
    check_positive_proba,
    encode_labels,
)
from skselect._lib.decide import RANGE_TOLERANCE, SUM_TOLERANCE
from skselect._lib.files import naming_output, read_parquet, row_bar
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import (
    UNREADABLE,
    VERDICT_WORDS,
    VERDICTS,
    Predictions,
    encode_reviewer,
    read_verdicts,
)

#: Rows of a Parquet file, and bytes of a CSV file, that are read at a time.
_PIECE, _BLOCK = 1 << 18, 1 << 22
#: Endings of Parquet files and of files with one JSON object per line; all other tables are CSV.
PARQUET = (".parquet", ".pq")
JSONL = (".jsonl", ".ndjson")
WORKBOOKS = (".xlsx", ".xls", ".ods")
#: The workbooks that can be read, where openpyxl is there.
_EXCEL = ".xlsx"
#: The name of a table that is read from standard input, and what errors call it.
_STDIN, _STDIN_NAME = Path("-"), Path("standard input")
#: What stands between cells, as errors call it.
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
#: Text of any length in Arrow.
_TEXT = pa.large_string()
#: What counts as missing in a column of numbers, in lower case.
_MISSING_TOKENS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "-"})
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_NUMBER = re.compile(_INTEGER.pattern + r"(\.\d+)?([eE][-+]?\d+)?")
#: A date such as 31.01.2026 or 31/01/2026.
_DAY_FIRST = re.compile(r"^\s*(\d\d)[./-](\d\d)[./-](\d{4})")
_SWAP_MARKS = str.maketrans(",.", ".,")


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

    @property
    def is_utf8(self) -> bool:
        """Whether its text is UTF-8, with or without a byte order mark."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")

    def separates(self, path: Path) -> str:
        """Return what stands between the cells of a file."""
        is_tsv = ".tsv" in (path.suffix.lower(), Path(path.stem).suffix.lower())
        return self.separator or ("\t" if is_tsv else ",")

    def writes(self, path: Path) -> dict[str, Any]:
        """Return the options of `DataFrame.to_csv` for a file."""
        return {"sep": self.separates(path), "decimal": self.decimal, "encoding": self.encoding}


#: Files with commas, decimal points and UTF-8; those with the ending .tsv have tabs.
COMMAS = CsvLayout()


def read_layout(given: Namespace) -> CsvLayout:
    """Return what the command line says about CSV files."""
    return CsvLayout(given.separator, given.decimal, given.encoding)


@dataclass(frozen=True)
class TableFile:
    """A CSV or JSONL file, which may be packed, a Parquet file, or the first sheet of a workbook.

    Parameters
    ----------
    path : Path
        Its name in messages.
    names : tuple of str
        Its columns.
    layout : CsvLayout
        How a CSV file is written.
    copy : object
        What came from standard input or a workbook, as a temporary CSV file, or from a JSONL file,
        as a temporary Parquet file.
    """

    path: Path
    names: tuple[str, ...] = ()
    layout: CsvLayout = COMMAS
    copy: Any = None

    @classmethod
    def open(cls, path: Path, argument: str = "TABLE", layout: CsvLayout = COMMAS) -> TableFile:
        """Read the names of the columns; refuse a CSV file with rows of different lengths."""
        if path != _STDIN:
            check_table_file(path, argument)
        elif sys.stdin is None:
            raise ValueError(f"{argument}: standard input is closed; name a file.")
        if is_jsonl(path) or path.suffix.lower() in PARQUET:
            file = cls(path, copy=_copy_lines(path, argument) if is_jsonl(path) else None)
            known = read_parquet(pq.read_metadata, file._parquet)
            file = replace(file, names=tuple(known.schema.to_arrow_schema().names))
        else:
            name, copy = (path, None) if path != _STDIN else (_STDIN_NAME, _copy_input())
            if path.suffix.lower() == _EXCEL:
                layout, copy = COMMAS, _copy_sheet(path, argument)
            file = cls(name, (), layout, copy)
            file = replace(file, names=tuple(file.check(argument)))
        twice = sorted({name for name in file.names if file.names.count(name) > 1})
        if twice:
            raise ValueError(
                f"{file.path.name} has several columns of the name {twice}; rename them."
            )
        return file

    @property
    def is_text(self) -> bool:
        """Whether it is a CSV file, in which everything is text."""
        return not is_jsonl(self.path) and self.path.suffix.lower() not in PARQUET

    @property
    def _parquet(self) -> Path:
        """The Parquet file, where it is no CSV file."""
        return self.path if self.copy is None else Path(self.copy.name)

    def whole(self) -> pd.DataFrame:
        """Read all columns and rows, with the types that the values of a CSV file suggest."""
        if not self.is_text:
            return read_parquet(pd.read_parquet, self._parquet)
        convert = arrow_csv.ConvertOptions(
            strings_can_be_null=True, decimal_point=self.layout.decimal
        )
        return arrow_csv.read_csv(self._source, *self._how_to_read(), convert).to_pandas()

    def pieces(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some columns piece by piece; the cells of a CSV file stay text."""
        wanted = list(dict.fromkeys(columns))
        check_columns(wanted, self.names, self.path.name)
        for piece in self._read(wanted, None):
            yield piece[wanted]

    def rows(self) -> Iterator[pd.DataFrame]:
        """Read all columns piece by piece, so that they can be written as they were read."""
        return self._read(self.names, None if self.is_text else pd.ArrowDtype)

    def place(self, row: int) -> str:
        """Return where a row is, for messages: its line in a CSV file, as an editor counts it."""
        if not self.is_text:
            return f"row {row} (counted from 0)"
        return f"line {next(islice(self._lines(), row + 1, None))[0]}"

    def _read(self, columns: Sequence[str], types: Any) -> Iterator[pd.DataFrame]:
        """Yield the rows of each piece, counted from 0 in the whole file."""
        total = None if self.is_text else pq.read_metadata(self._parquet).num_rows
        first = 0
        with self._open(columns) as batches, row_bar(total, self.path.name) as bar:
            for batch in batches:
                piece = batch.to_pandas(ignore_metadata=True, types_mapper=types)
                yield piece.set_axis(range(first, first + len(piece)))
                first += len(piece)
                bar.update(len(piece))
        # Arrow keeps the memory of a batch, which may be more than the rest of the work needs.
        pa.default_memory_pool().release_unused()

    @contextmanager
    def _open(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the batches of some columns; those of a CSV file are text."""
        if not self.is_text:
            # Buffers read in advance would stay in memory.
            with pq.ParquetFile(self._parquet, pre_buffer=False) as file:
                yield file.iter_batches(_PIECE, columns=list(columns), use_threads=False)
            return
        convert = arrow_csv.ConvertOptions(
            include_columns=columns, column_types=dict.fromkeys(columns, pa.string())
        )
        with arrow_csv.open_csv(self._source, *self._how_to_read(), convert) as batches:
            yield batches

    @property
    def _source(self) -> Any:
        """The bytes of a CSV file, unpacked."""
        return pa.input_stream(str(self.path) if self.copy is None else self.copy.name)

    def _how_to_read(self) -> tuple[Any, Any]:
        encoding = "utf8" if self.layout.is_utf8 else self.layout.encoding
        return arrow_csv.ReadOptions(
            encoding=encoding, block_size=_BLOCK, use_threads=False
        ), arrow_csv.ParseOptions(
            delimiter=self.layout.separates(self.path), newlines_in_values=True,
            invalid_row_handler=_skip_blank_lines,
        )  # fmt: skip

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line of each row, and its cells: the slow way, which can say where."""
        csv.field_size_limit(2**31 - 1)  # a cell may be longer than 128 KiB
        encoding = "utf-8-sig" if self.layout.is_utf8 else self.layout.encoding
        with io.TextIOWrapper(self._source, encoding, newline="") as text:
            reader, start = csv.reader(text, delimiter=self.layout.separates(self.path)), 1
            for cells in reader:
                if len(cells) > 1 or "".join(cells).strip(" \t"):
                    yield start, cells
                start = reader.line_num + 1

    def check(self, argument: str) -> list[str]:
        """Return the names of the columns of a CSV file; refuse one that is no table."""
        header: list[str] = []
        try:
            _, header = next(self._lines(), (0, []))
            if len(header) > 1 and len(set(header)) == len(header):
                with self._open(header) as batches:
                    for _ in batches:
                        pass
        except OSError as error:
            raise ValueError(
                f"{argument}: {self.path.name} cannot be unpacked: {error}."
            ) from error
        except ValueError as error:
            self._explain(argument, header, error)
        if len(header) < 2:
            self._explain(argument, header, None)
        return header

    def _explain(self, argument: str, header: list[str], error: Exception | None) -> NoReturn:
        """Say why the file is no CSV table, and where."""
        name, layout = self.path.name, self.layout
        if not layout.is_utf8 and isinstance(error, UnicodeError):
            raise ValueError(
                f"--encoding: {name} is not written in {layout.encoding!r}: {error}."
            ) from error
        if layout.is_utf8 and error is not None:
            self._refuse_other_bytes(argument)
        if not header:
            raise ValueError(f"{argument}: {name} is no CSV table: it is empty.")
        separator = layout.separates(self.path)
        likely = max(_SEPARATORS, key=separator.join(header).count)
        advice = ""
        if separator.join(header).count(likely) >= len(header):
            shown = likely.replace("\t", "\\t")
            advice = (
                f'. It looks as if {_SEPARATORS[likely]} separates its cells: --separator "{shown}"'
            )
        if len(header) == 1:
            raise ValueError(
                f"{argument}: {name} has one column only, {header[0]!r}; a table has several, with "
                f"{_SEPARATORS.get(separator, repr(separator))} between them{advice}."
            )
        n_rows = 0
        for n_rows, (line, cells) in enumerate(self._lines()):  # noqa: B007 - used below
            if len(cells) != len(header):
                raise ValueError(
                    f"{argument}: {name}: line {line} has {len(cells)} cells, the first line has "
                    f"{len(header)}{advice}."
                )
        check_any_rows(n_rows, name)
        raise ValueError(f"{argument}: {name} is no CSV table: {error}.") from error

    def _refuse_other_bytes(self, argument: str) -> None:
        """Refuse a file with bytes that are no UTF-8."""
        with io.BufferedReader(self._source) as lines:
            for line, text in enumerate(lines, 1):
                try:
                    text.decode()
                except UnicodeDecodeError as error:
                    is_wide = text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
                    usual = "utf-16" if is_wide else "cp1252 (Windows)"
                    raise ValueError(
                        f"{argument}: {self.path.name} is no CSV table in UTF-8: line {line} has "
                        f"the byte 0x{text[error.start]:02x}. Name its encoding, such as "
                        f"--encoding {usual}."
                    ) from error


def _copy_input() -> Any:
    """Return a temporary file, which goes when nobody needs it, with all of standard input."""
    with naming_output(tempfile.gettempdir()):
        copy = tempfile.NamedTemporaryFile(prefix="skselect-", suffix=".csv")  # noqa: SIM115
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
    return copy


def _copy_sheet(path: Path, argument: str) -> Any:
    """Return the first sheet of a workbook as a temporary CSV file."""
    copy = tempfile.NamedTemporaryFile(prefix="skselect-", suffix=".csv")  # noqa: SIM115
    try:
        sheet = pd.read_excel(path, header=None, dtype=object, keep_default_na=False)
    except (ImportError, BadZipFile, KeyError, OSError, ValueError) as error:
        raise ValueError(
            f"{argument}: {path.name} is a workbook; to read it, install openpyxl, or save the "
            f"sheet as CSV. ({error})"
        ) from error
    sheet.to_csv(copy.name, header=False, index=False)
    return copy


def is_jsonl(path: Path) -> bool:
    """Tell whether a file, which may be packed, has one JSON object per line."""
    return any(ending in JSONL for ending in map(str.lower, path.suffixes[-2:]))


def _copy_lines(path: Path, argument: str) -> Any:
    """Return the objects of a JSONL file as a temporary Parquet file; refuse what is no table."""
    try:
        with pa.input_stream(str(path)) as stream:
            text = stream.read()
        table = arrow_json.read_json(io.BytesIO(text))
        times = [(x.name, pa.string()) for x in table.schema if pa.types.is_timestamp(x.type)]
        if times:  # texts stay as written
            names, given = table.column_names, arrow_json.ParseOptions(pa.schema(times))
            table = arrow_json.read_json(io.BytesIO(text), parse_options=given).select(names)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(
            f"{argument}: {path.name} is no table with one JSON object per line: {error} (rows are "
            "counted from 0)."
        ) from error
    nested = [x.name for x in table.schema if pa.types.is_nested(x.type)]
    if nested:
        raise ValueError(
            f"{argument}: {path.name}: the keys {nested} hold lists or objects; each key of a line "
            "holds one number, text, true, false or null."
        )
    if any(column.null_count for column in table.columns):
        _refuse_ragged(text, path, argument)
    copy = tempfile.NamedTemporaryFile(prefix="skselect-", suffix=PARQUET[0])  # noqa: SIM115
    pq.write_table(table, copy.name)
    return copy


def _refuse_ragged(text: bytes, path: Path, argument: str) -> None:
    """Refuse lines with other keys than the first one: nothing tells a slip from no value."""
    first: list[str] = []
    for number, line in enumerate(text.decode("utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        try:
            keys = sorted(json.loads(line))
        except ValueError as error:
            raise ValueError(
                f"{argument}: {path.name}: line {number} is no JSON object of its own: {error}."
            ) from error
        first = first or keys
        if keys != first:
            raise ValueError(
                f"{argument}: {path.name}: line {number} has the keys {keys}, the first line has "
                f"{first}. Write null where there is no value."
            )


def _skip_blank_lines(row: Any) -> str:
    return "error" if row.actual_columns > 1 or row.text.strip(" \t") else "skip"


def check_table_file(path: Path, argument: str) -> None:
    """Refuse a path without a file, and a workbook."""
    if not path.is_file():
        raise ValueError(f"{argument}: there is no file {str(path)!r}.")
    if path.suffix.lower() in WORKBOOKS and path.suffix.lower() != _EXCEL:
        raise ValueError(f"{argument}: {path.name} is a workbook; save the sheet as CSV.")


# Which column means what --------------------------------------------------------------------


@dataclass(frozen=True)
class Columns:
    """Which columns of a table mean what: probabilities, or an answer and a confidence.

    Parameters
    ----------
    label : str or None
        The true label; None where there is none yet.
    proba : tuple of str
        One column per class, in the order of the classes.
    answer, confidence : str or None
        Instead of probabilities.
    subgroups : tuple of str
    is_judged : bool
        Whether the label is a verdict on the answer: right or wrong.
    audit_proba : str or None
        The probability with which a case was drawn for a verdict.
    reviewer : str or None
        What a reviewer answers.
    """

    label: str | None
    proba: tuple[str, ...] = ()
    answer: str | None = None
    confidence: str | None = None
    subgroups: tuple[str, ...] = ()
    is_judged: bool = False
    audit_proba: str | None = None
    reviewer: str | None = None

    @property
    def used(self) -> list[str]:
        """All named columns, each once."""
        single = [self.label, self.answer, self.confidence, self.audit_proba, self.reviewer]
        return list(dict.fromkeys([*filter(None, single), *self.proba, *self.subgroups]))

    @property
    def labels(self) -> list[str]:
        """The columns that hold classes."""
        return list(filter(None, [self.label, self.answer]))


def resolve_columns(
    file: TableFile, given: Mapping[str, Any], classes: Sequence[Any] | None
) -> Columns:
    """Return which columns to read, from the command line and the names of the file."""
    proba = tuple(given.get("proba") or ())
    answer, confidence = given.get("answer"), given.get("confidence_column")
    is_judged = given.get("verdict") is not None
    if is_judged and (answer is None or given.get("reviewer") is not None):
        raise ValueError(
            "--verdict goes with --answer and --confidence-column, and without --reviewer (name "
            "--reviewer-error): it does not say what the right answer is."
        )
    if (answer is None) != (confidence is None):
        raise ValueError("--answer and --confidence-column go together: name both columns.")
    if proba and answer is not None:
        raise ValueError("Name either --proba columns, or --answer and --confidence-column.")
    reviewer = given.get("reviewer")
    single = (given.get("label"), *proba, answer, confidence, reviewer)
    named = [name for name in single if name is not None]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise ValueError(
            f"Columns {twice} are named twice; label, answer, confidence, probabilities and "
            "reviewer are columns of their own."
        )
    if not proba and answer is None and classes is not None:
        proba = tuple(map(str, classes))
        missing = [name for name in proba if name not in file.names]
        if missing:
            raise ValueError(
                f"{file.path.name} has no columns {missing}, one for each class. Name the columns "
                "of the probabilities: --proba p_no p_yes --classes no yes; or those of an answer "
                "and its confidence: --answer ... --confidence-column .... Its columns: "
                f"{list(file.names)[:20]}."
            )
    subgroups = tuple(given.get("subgroups") or ())
    shown = (given.get("label"), proba, answer, confidence, subgroups)
    return Columns(*shown, is_judged, reviewer=reviewer)


# Predictions, their classes and subgroups ----------------------------------------------------


def find_classes(file: TableFile, columns: Columns) -> LabelArray:
    """Return the classes that occur, sorted; in a text file as numbers if all are numbers."""
    seen: set[Any] = set()
    for piece in file.pieces(columns.labels):
        for name in columns.labels:
            _check_no_missing(piece[name], file)
            first = piece[name].iloc[0] if len(piece) else ""
            if not isinstance(first, str | bool | int | float | np.generic):
                raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
                    f"{file.path.name}: column {name!r} holds values of the type "
                    f"{type(first).__name__}; labels are strings, numbers or booleans."
                )
            seen.update(pd.unique(piece[name]).tolist())
    check_any_rows(len(seen), file.path.name)
    classes = check_labels(list(seen), f"column {columns.label!r}")
    return np.unique(text_to_numbers(classes) if file.is_text else classes)


def read_predictions(
    file: TableFile, columns: Columns, classes: LabelArray
) -> tuple[Predictions, pd.DataFrame]:
    """Read all predictions of a file, and the columns of the subgroups."""
    parts = list(_predictions(file, columns, classes))
    if columns.is_judged and not parts:
        raise ValueError(f"{file.path.name}: column {columns.label!r} holds no verdict.")
    check_any_rows(len(parts), file.path.name)
    found, groups = zip(*parts, strict=True)
    names = ("y_true", "y_pred", "y_proba", "confidence", "sample_weight", "reviewer")
    return replace(found[0], **_join(found, names)), typed_subgroups(file, groups)


def _join(parts: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    """Put the arrays of several pieces together, those that are there."""
    values = {name: [getattr(part, name) for part in parts] for name in names}
    return {name: np.concatenate(x) for name, x in values.items() if x[0] is not None}


def read_outcomes(
    file: TableFile, columns: Columns, classes: LabelArray, confidence: str | None
) -> tuple[Outcomes, pd.DataFrame, IntArray]:
    """Read confidence and loss of each row, the columns of the subgroups, and the class counts.

    Only the probabilities of one piece are in memory.
    """
    parts, groups = [], []
    counts = np.zeros(len(classes), dtype=np.int64)
    for found, subgroups in _predictions(file, columns, classes):
        named = confidence if columns.proba else None
        parts.append(Outcomes.from_predictions(found, confidence=named))
        groups.append(subgroups if columns.subgroups else subgroups.iloc[:0])
        counts += np.bincount(found.y_true[found.y_true >= 0], minlength=len(classes))
    check_any_rows(len(parts), file.path.name)
    outcomes = Outcomes(**_join(parts, ("loss", "confidence", "reviewer_loss")))
    return outcomes, typed_subgroups(file, groups), counts


def _predictions(
    file: TableFile, columns: Columns, classes: LabelArray
) -> Iterator[tuple[Predictions, pd.DataFrame]]:
    """Yield the predictions of each piece with its subgroups."""
    for every in file.pieces(columns.used):
        verdict = read_judged(every[str(columns.label)], file) if columns.is_judged else None
        piece = every if verdict is None else every[verdict != ""]
        if len(piece) == 0:
            continue
        if verdict is not None:
            names = [str(columns.confidence), *filter(None, [columns.audit_proba])]
            sure, *drawn = _read_complete_numbers(piece[names], file).T
            audits = drawn[0] if drawn else None
            found = Predictions.from_verdicts(verdict[verdict != ""], sure, audit_proba=audits)
            yield found, piece[list(columns.subgroups)]
            continue
        y_true = _read_labels(piece[str(columns.label)], classes, file)
        if columns.proba:
            numbers = proba = _read_complete_numbers(piece[list(columns.proba)], file)
            if proba.shape[1] == 1:  # of the second of two classes
                positive = check_positive_proba(proba[:, 0])
                proba = np.column_stack([1.0 - positive, positive])
            _check_classes(y_true, classes, f"{file.path.name}: column {columns.label!r}")
            with naming_rows(numbers, piece.index, columns.proba, file):
                found = Predictions.from_proba(y_true, proba, labels=classes)
        else:
            answer = _read_labels(piece[str(columns.answer)], classes, file)
            sure = _read_complete_numbers(piece[[str(columns.confidence)]], file)
            found = Predictions.from_labels(y_true, answer, sure[:, 0], labels=classes)
        if columns.reviewer is not None:
            said = _read_labels(piece[columns.reviewer], classes, file)
            codes = encode_reviewer(said, classes, len(piece), f"column {columns.reviewer!r}")
            found = replace(found, reviewer=codes)
        yield found, piece[list(columns.subgroups)]


def read_judged(values: pd.Series, file: TableFile) -> LabelArray:
    """Return verdicts as the words right and wrong, empty where there is none."""
    cells = np.where(has_label(values, VERDICTS), values.astype(object), "")
    codes = read_verdicts(cells)
    if np.any(codes == UNREADABLE):
        raise _make_error(VERDICT_WORDS, values, codes == UNREADABLE, file)
    return np.append(VERDICTS, "")[codes]


def _read_labels(values: pd.Series, classes: LabelArray, file: TableFile) -> LabelArray:
    """Return a column of labels, unchanged if the classes are text."""
    _check_no_missing(values, file)
    if not file.is_text and not _holds_text(values):
        return check_labels(values, f"column {values.name!r}")
    codes, distinct = pd.factorize(values)
    if not file.is_text:
        return check_labels(distinct, f"column {values.name!r}")[codes]
    text = distinct.to_numpy(dtype=str)
    return (text if classes.dtype.kind == "U" else text_to_numbers(text))[codes]


def _check_no_missing(values: Any, file: TableFile) -> None:
    """Refuse a column with missing values; in a text file these are empty cells."""
    missing = values.isna()
    if file.is_text:
        missing |= values == ""
    elif _holds_text(values):
        missing |= (values == "").fillna(value=False)
    _refuse_missing(missing.to_numpy(dtype=bool), values, file)


def _holds_text(values: Any) -> bool:
    """Tell whether a column may hold text."""
    return pd.api.types.is_object_dtype(values) or pd.api.types.is_string_dtype(values)


def _refuse_missing(missing: Any, values: Any, file: TableFile) -> None:
    """Refuse missing values, naming the first row that has one."""
    if missing.any():
        raise ValueError(
            f"{file.path.name}: column {values.name!r} has {int(missing.sum())} missing values, "
            f"the first in {file.place(values.index[missing][0])}; leave such rows out, or fill "
            "them in."
        )


def typed_subgroups(file: TableFile, pieces: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return subgroups as one table; a column of a text file as numbers if all are numbers."""
    table = pd.concat(pieces)
    if not file.is_text:
        return table
    columns: dict[str, pd.Series] = {}
    for name in table.columns:
        present = (table[name] != "").to_numpy()
        typed = text_to_numbers(table[name].to_numpy(dtype=str)[present])
        kind = "Int64" if typed.dtype.kind == "i" else None  # integers that may be missing
        column: Any = pd.Series(typed, index=table.index[present], dtype=kind)
        columns[name] = column.reindex(table.index)
    return pd.DataFrame(columns, index=table.index)


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


def majority_class_suffices(classes: LabelArray, counts: IntArray, target: float) -> str | None:
    """Return a note if always predicting the largest class would meet the target."""
    others = 1.0 - float(np.max(counts) / np.sum(counts))
    if others > target:
        return None
    commonest = str(classes[np.argmax(counts)])
    return (
        f"always answering {commonest!r} would meet this target: {100 * others:.3g} % of the rows "
        "are of another class."
    )


# Logs: labels that may be missing, times, names --------------------------------------------------


def has_label(values: pd.Series, classes: LabelArray) -> pd.Series:
    """Tell which rows have a label; "none" is a label only if a class has this name."""
    words = _MISSING_TOKENS - {str(label).strip().lower() for label in classes.tolist()}
    codes, distinct = pd.factorize(values)
    has = [not (isinstance(cell, str) and cell.strip().lower() in words) for cell in distinct]
    return pd.Series(np.array([*has, False])[codes], index=values.index)  # -1 is missing


def read_known_labels(values: pd.Series, classes: LabelArray, file: TableFile) -> LabelArray:
    """Return labels, all of them classes; of a text file with the type of the classes."""
    if file.is_text and classes.dtype.kind in "iuf":  # 1 and 1.0 are the same number
        labels = _read_numbers(values.to_frame(), file)[:, 0]
    else:
        labels = _read_labels(values, classes, file)
    return _check_classes(labels, classes, f"{file.path.name}: column {values.name!r}")


def known_classes(values: pd.Series, classes: LabelArray, file: TableFile) -> LabelArray:
    """Return labels, None where a cell is missing or is no class."""
    codes, distinct = pd.factorize(values)
    labels = np.full(len(distinct) + 1, None, dtype=object)
    for code, cell in enumerate(distinct):
        with suppress(ValueError):
            one = pd.Series([cell], name=values.name)
            labels[code] = read_known_labels(one, classes, file).tolist()[0]
    return labels[codes]


def _check_classes(labels: LabelArray, classes: LabelArray, column: str) -> LabelArray:
    """Return labels if all of them are classes."""
    remedy = "Correct them (capitals and blanks count); --classes, if given, names every class."
    check_known(encode_labels(labels, classes, column), labels, classes, column, remedy)
    return labels


def read_times(values: pd.Series, file: TableFile, given: Namespace) -> pd.Series:
    """Return times as numbers, or as dates in UTC."""
    _check_no_missing(values, file)
    if given.dayfirst:
        if given.time_format is not None:
            raise ValueError("--dayfirst goes without --time-format: name the form of dates once.")
        values = values.astype(str).str.replace(r"(?<!\d)(\d)(?=[./-])", r"0\1", regex=True)
        values = values.str.replace(_DAY_FIRST, r"\3-\2-\1", regex=True)
    times = parse_times(values, given.time_format)
    if times.isna().any():
        wanted = given.time_format or "2026-01-31T09:30 (or say --dayfirst, or --time-format)"
        raise _make_error(f"numbers, or dates such as {wanted}", values, times.isna(), file)
    return times


def parse_times(values: pd.Series, time_format: str | None = None) -> pd.Series:
    """Return numbers, or dates in UTC, missing where a value is no date."""
    is_text = _holds_text(values)
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


def read_names(values: pd.Series, file: TableFile) -> pd.Series:
    """Return the names of cases as text."""
    _check_no_missing(values, file)
    is_text = pd.api.types.infer_dtype(values, skipna=False) == "string"
    return (values if is_text else values.map(str)).astype(object)


def read_booleans(values: pd.Series, file: TableFile) -> BoolArray:
    """Return a column of true and false as an array; 1 and 0, yes and no mean the same."""
    words = dict.fromkeys(["true", "1", "1.0", "yes"], True)
    words |= dict.fromkeys(["false", "0", "0.0", "no"], False)
    found = values.map(lambda cell: words.get(str(cell).strip().lower()))
    if found.isna().any():
        raise _make_error("true or false", values, found.isna(), file)
    return found.to_numpy(dtype=bool)


# Numbers ------------------------------------------------------------------------------------


def known_numbers(
    piece: pd.DataFrame, names: Sequence[str], file: TableFile
) -> tuple[Any, BoolArray]:
    """Return columns as numbers, nan for missing ones, and which rows are complete."""
    numbers = _read_numbers(piece[list(names)], file)
    return numbers, ~np.isnan(numbers).any(axis=1)


def _read_complete_numbers(frame: Any, file: TableFile) -> Any:
    """Return columns as an array of numbers, and refuse missing ones."""
    numbers = _read_numbers(frame, file)
    for name, column in zip(frame.columns, numbers.T, strict=True):
        _refuse_missing(np.isnan(column), frame[name], file)
    return numbers


@contextmanager
def naming_rows(
    proba: Any, index: pd.Index, columns: Sequence[str], file: TableFile
) -> Iterator[None]:
    """Turn an error about some rows of probabilities into one that says where the first is."""
    try:
        yield
    except ValueError:
        if proba is None:  # answers with a confidence
            raise
        outside = (proba < -RANGE_TOLERANCE) | (proba > 1 + RANGE_TOLERANCE)
        if outside.any():
            row, column = np.argwhere(outside)[0].tolist()
            percent = (
                " Divide percentages by 100." if 1 < proba.max() <= 100 and proba.min() >= 0 else ""
            )
            raise ValueError(
                f"{file.path.name}: column {columns[column]!r} must hold probabilities from 0 to "
                f"1, but {file.place(index[row])} holds {proba[row, column]:g}.{percent}"
            ) from None
        gap = np.abs(proba.sum(axis=1) - 1.0) > SUM_TOLERANCE
        if len(columns) > 1 and gap.any():
            row = int(np.argmax(gap))
            raise ValueError(
                f"{file.path.name}: the probabilities in the columns {list(columns)} must sum to "
                f"one, but in {file.place(index[row])} they sum to {proba[row].sum():g}. Name the "
                "column of every class with --proba, or divide each row by its sum."
            ) from None
        raise


def _read_numbers(frame: Any, file: TableFile) -> Any:
    """Return columns as an array of finite numbers, nan for missing ones."""
    columns = []
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_bool_dtype(column):
            raise ValueError(
                f"{file.path.name}: column {name!r} must hold numbers, but holds booleans."
            )
        if pd.api.types.is_numeric_dtype(column):
            kind = np.float32 if column.dtype == np.float32 else np.float64
            numbers = column.to_numpy(dtype=kind, na_value=np.nan)
        else:
            numbers = _parse_numbers(column, file)
        if np.isinf(numbers).any():
            raise _make_error("finite numbers", column, np.isinf(numbers), file)
        columns.append(numbers)
    return np.column_stack(columns)


def _parse_numbers(column: Any, file: TableFile) -> Any:
    """Return text as numbers, as Python reads them; nan where a cell means that none is known."""
    try:
        text = pc.utf8_trim_whitespace(pa.array(column, from_pandas=True))
        missing = pc.is_in(pc.utf8_lower(text), pa.array(sorted(_MISSING_TOKENS), text.type))
        if file.layout.decimal == ",":  # a point becomes what is in no number
            text = pc.replace_substring(pc.replace_substring(text, ".", ";"), ",", ".")
        numbers = pc.cast(pc.if_else(missing, None, text), pa.float64())
        if not pc.any(pc.is_nan(numbers)).as_py():  # such as "nan(1)"
            return numbers.to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        pass  # a cell is no number, or is written as Python alone reads it
    cells = [_to_number(cell, file.layout.decimal) for cell in column]
    bad = np.array([number is None for number in cells])
    if bad.any():
        raise _make_error("numbers", column, bad, file)
    return np.array(cells, dtype=np.float64)


def _to_number(cell: Any, decimal: str = ".") -> float | None:
    """Return a cell as a number, nan if it is missing, None if it is something else."""
    if cell is None or cell is pd.NA:
        return np.nan
    if isinstance(cell, str):
        if cell.strip().lower() in _MISSING_TOKENS:
            return np.nan
        cell = cell if decimal == "." else cell.translate(_SWAP_MARKS)
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def _make_error(wanted: str, column: Any, bad: Any, file: TableFile) -> ValueError:
    """Return an error that names the first bad value of a column."""
    row = column.index[bad][0] if np.any(bad) else column.index[0]
    value = column.loc[row]
    value = value.item() if isinstance(value, np.generic) else value
    advice = ""
    if wanted == "numbers" and isinstance(value, str):
        if _to_number(value) is not None:
            advice = " It has a decimal point: leave --decimal out."
        elif _to_number(value, ",") is not None:
            advice = " For decimal commas say --decimal ,."
    return ValueError(
        f"{file.path.name}: column {column.name!r} must hold {wanted}, but {file.place(row)} holds "
        f"{value!r}.{advice}"
    )


# Writing ------------------------------------------------------------------------------------


def write_rows(rows: pd.DataFrame, separator: str, decimal: str = ".") -> str | None:
    """Return rows as lines of CSV, the text that `DataFrame.to_csv` writes, many times faster.

    None: a cell needs quotes, or a column holds something other than text, float64, integers or
    booleans.
    """
    if len(rows.columns) < 2:  # an empty cell alone needs quotes
        return None
    special = '["\\r\\n' + re.escape(separator) + "]"
    columns = []
    for name in rows.columns:
        column = rows[name]
        try:
            cells = pa.array(column, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # several types
            return None
        cells = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
        kind = cells.type
        is_text = pa.types.is_string(kind) or pa.types.is_null(kind) or kind == _TEXT
        if column.dtype == object and not is_text:  # a mix may seem one type
            return None
        if pa.types.is_float64(kind):
            text = _write_floats(cells)
            text = text if decimal == "." else pc.replace_substring(text, ".", decimal)
        elif pa.types.is_boolean(kind):
            text = pc.if_else(cells, pa.scalar("True", _TEXT), pa.scalar("False", _TEXT))
        elif pa.types.is_integer(kind) or is_text:
            text = cells.cast(_TEXT)
        else:
            return None
        if is_text and pc.any(pc.match_substring_regex(text, special)).as_py():
            return None
        columns.append(text)
    lines = pc.binary_join_element_wise(
        *columns, pa.scalar(separator, _TEXT), null_handling="replace", null_replacement=""
    )
    end = pa.scalar("\n", _TEXT)
    whole = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), end)
    return f"{whole[0].as_py()}\n"


def _write_floats(cells: Any) -> Any:
    """Return numbers as Python writes them; Arrow writes the same digits, but 1.0 as 1.

    Python itself writes whole, tiny and huge numbers.
    """
    numbers = cells.to_numpy(zero_copy_only=False)
    size = np.abs(numbers)
    other = ~((size >= 1e-4) & (size < 1e9) & (numbers != np.floor(numbers)))
    other &= ~np.isnan(numbers)
    own = pa.array(list(map(repr, numbers[other].tolist())), _TEXT)
    return pc.replace_with_mask(cells.cast(_TEXT), pa.array(other), own)
