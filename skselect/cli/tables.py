"""Tables of predictions in CSV and Parquet files, read in pieces."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import sys
import tempfile
import weakref
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skselect._checks.labels import check_known, check_labels, encode_labels
from skselect._checks.proba import RANGE_TOLERANCE, SUM_TOLERANCE, check_positive_proba
from skselect._checks.rows import check_any_rows, check_columns
from skselect._files import import_extra, naming_output, read_parquet, row_bar
from skselect._typing import BoolArray, IntArray, LabelArray
from skselect.predictions.confidence import compute_confidence
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions

#: Rows read at a time.
_PIECE = 1 << 18
#: Bytes of a CSV file that are checked at a time, plus the rest of their last line.
_BLOCK = 1 << 22
#: Endings of Parquet files; all other tables are CSV.
PARQUET = (".parquet", ".pq")
WORKBOOKS = (".xlsx", ".xls", ".ods")
#: The name of a table that is read from standard input, and what errors call it.
_STDIN, _STDIN_NAME = Path("-"), Path("standard input")
#: What stands between cells, as errors call it.
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
#: What counts as missing in a column of numbers, in lower case.
_MISSING_TOKENS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "-"})
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_NUMBER = re.compile(_INTEGER.pattern + r"(\.\d+)?([eE][-+]?\d+)?")
_NA_VALUES = sorted({spell(x) for x in _MISSING_TOKENS for spell in (str, str.upper, str.title)})
# Numbers are read as Python reads them, to the last bit. From 3.1 on, pandas always does.
_EXACT: dict[str, Any] = (
    {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
    else {"float_precision": "round_trip"}
)  # fmt: skip
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

    def separates(self, path: Path) -> str:
        """Return what stands between the cells of a file."""
        is_tsv = ".tsv" in (path.suffix.lower(), Path(path.stem).suffix.lower())
        return self.separator or ("\t" if is_tsv else ",")

    def writes(self, path: Path) -> dict[str, Any]:
        """Return the options of `DataFrame.to_csv` for a file."""
        return {"sep": self.separates(path), "decimal": self.decimal, "encoding": self.encoding}


#: Files with commas, decimal points and UTF-8; those with the ending .tsv have tabs.
COMMAS = CsvLayout()


def read_table(path: Path, argument: str = "TABLE", layout: CsvLayout = COMMAS) -> pd.DataFrame:
    """Read a whole CSV or Parquet file."""
    return TableFile.open(path, argument, layout).whole()


@dataclass(frozen=True)
class TableFile:
    """A CSV file, or a Parquet file.

    Parameters
    ----------
    path : Path
        Its name in messages.
    names : tuple of str
        Its columns.
    text : PlainText or None
        What a CSV file says; None is a Parquet file.
    """

    path: Path
    names: tuple[str, ...]
    text: PlainText | None = None

    @classmethod
    def open(cls, path: Path, argument: str = "TABLE", layout: CsvLayout = COMMAS) -> TableFile:
        """Read the names of the columns; refuse a CSV file with rows of different lengths."""
        if path != _STDIN:
            check_table_file(path, argument)
        elif sys.stdin is None:
            raise ValueError(f"{argument}: standard input is closed; name a file.")
        text = None
        if path.suffix.lower() in PARQUET:
            parquet = import_extra("pyarrow.parquet", "pyarrow", "parquet")
            known = read_parquet(parquet.read_metadata, path)
            names = known.schema.to_arrow_schema().names
        else:
            text = PlainText.open(path, argument, layout)
            path = _STDIN_NAME if path == _STDIN else path
            names = text.check(argument, path.name)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{path.name} has several columns of the name {twice}; rename them.")
        return cls(path, tuple(names), text)

    @property
    def is_text(self) -> bool:
        """Whether it is a CSV file, in which everything is text."""
        return self.text is not None

    def whole(self) -> pd.DataFrame:
        """Read all columns and rows."""
        if self.text is None:
            return read_parquet(pd.read_parquet, self.path)
        with _naming_csv(self.path.name):
            return pd.read_csv(low_memory=False, **self.text.layout)

    def pieces(self, columns: Sequence[str], numbers: Sequence[str] = ()) -> Iterator[pd.DataFrame]:
        """Read some columns piece by piece; the cells of a text file stay text, but for `numbers`.

        These are numbers, missing where a cell says so, unless one of them says something else.
        """
        wanted = list(dict.fromkeys(columns))
        check_columns(wanted, self.names, self.path.name)
        for piece in self._text(wanted, numbers) if self.text else self._batches(wanted, None):
            yield piece[wanted]

    def rows(self, numbers: Sequence[str] = ()) -> Iterator[pd.DataFrame]:
        """Read all columns piece by piece, so that they can be written as they were read."""
        if self.text is None:
            return self._batches(self.names, pd.ArrowDtype)
        return self._text(self.names, numbers)

    def place(self, row: int) -> str:
        """Return where a row is, for messages: its line in a CSV file."""
        return f"row {row} (counted from 0)" if self.text is None else self.text.place(row)

    def _text(self, columns: Sequence[str], numbers: Sequence[str]) -> Iterator[pd.DataFrame]:
        with _naming_csv(self.path.name), row_bar(None, self.path.name) as bar:
            n_pieces = 0
            for piece in self._chunks(columns, numbers):
                if not all(_has_numbers(piece[name]) for name in numbers):
                    break
                yield piece
                bar.update(len(piece))
                n_pieces += 1
            else:
                return
            # A cell is no finite number: from here on all are text, as errors quote it.
            for piece in islice(self._chunks(columns, ()), n_pieces, None):
                yield piece
                bar.update(len(piece))

    def _chunks(self, columns: Sequence[str], numbers: Sequence[str]) -> Iterator[pd.DataFrame]:
        assert self.text is not None
        with pd.read_csv(
            names=self.names, header=0, usecols=[name for name in self.names if name in columns],
            dtype={name: str for name in columns if name not in numbers}, low_memory=False,
            keep_default_na=False, na_values=dict.fromkeys(numbers, _NA_VALUES),
            chunksize=_PIECE, **self.text.layout, **_EXACT,
        ) as chunks:  # fmt: skip
            yield from chunks

    def _batches(self, columns: Sequence[str], types: Any) -> Iterator[pd.DataFrame]:
        parquet = import_extra("pyarrow.parquet", "pyarrow", "parquet")
        with (
            # Buffers read in advance would stay in memory.
            parquet.ParquetFile(self.path, pre_buffer=False) as file,
            row_bar(file.metadata.num_rows, self.path.name) as bar,
        ):
            first = 0
            for batch in file.iter_batches(_PIECE, columns=list(columns), use_threads=False):
                piece = batch.to_pandas(ignore_metadata=True, types_mapper=types)
                yield piece.set_axis(range(first, first + len(piece)))
                first += len(piece)
                bar.update(len(piece))
        # Arrow keeps the memory of a batch, which may be more than the rest of the work needs.
        import_extra("pyarrow", "pyarrow", "parquet").default_memory_pool().release_unused()


def check_table_file(path: Path, argument: str) -> None:
    """Refuse a path without a file, and a workbook."""
    if not path.is_file():
        raise ValueError(f"{argument}: there is no file {str(path)!r}.")
    if path.suffix.lower() in WORKBOOKS:
        raise ValueError(f"{argument}: {path.name} is a workbook; save the sheet as CSV.")


@contextmanager
def _naming_csv(name: str, argument: str = "TABLE") -> Iterator[None]:
    """Turn errors of reading CSV into one that names the file."""
    try:
        yield
    except (csv.Error, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"{argument}: {name} is no CSV table: {error}.") from error


# The text of a CSV file -------------------------------------------------------------------------


@dataclass(frozen=True)
class PlainText:
    """A CSV file in UTF-8: the user's own, or an unpacked copy that goes when nobody needs it.

    Parameters
    ----------
    path : Path
    separator, decimal : str
    """

    path: Path
    separator: str
    decimal: str

    @classmethod
    def open(cls, path: Path, argument: str, layout: CsvLayout) -> PlainText:
        """Take the file as it is if it is UTF-8, else copy it."""
        separator = layout.separates(path)
        is_packed = path.suffix.lower() == ".gz"
        is_utf8 = codecs.lookup(layout.encoding).name in ("utf-8", "utf-8-sig")
        if path != _STDIN and not is_packed and is_utf8:
            return cls(path, separator, layout.decimal)
        number, name = tempfile.mkstemp(".csv", "skselect-")
        copy = cls(Path(name), separator, layout.decimal)
        weakref.finalize(copy, copy.path.unlink, missing_ok=True)  # at the latest when Python ends
        kind = gzip.open if is_packed else io.open
        source: Any = nullcontext(sys.stdin.buffer) if path == _STDIN else kind(path, "rb")
        try:
            with naming_output(name), os.fdopen(number, "wb") as file, source as packed:
                blocks = iter(partial(packed.read, _BLOCK), b"")
                texts = blocks if is_utf8 else _recode(blocks, layout.encoding)
                file.writelines(texts)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{argument}: {path.name} cannot be unpacked: {error}.") from error
        except UnicodeError as error:
            raise ValueError(
                f"--encoding: {path.name} is not written in {layout.encoding!r}: {error}."
            ) from error
        return copy

    @property
    def layout(self) -> dict[str, Any]:
        """The options of `pandas.read_csv`."""
        return {"filepath_or_buffer": self.path, "sep": self.separator, "decimal": self.decimal,
                "index_col": False}  # fmt: skip

    def check(self, argument: str, name: str) -> list[str]:
        """Return the cells of the first line; refuse a file that is no table in UTF-8.

        Rows that have more or fewer cells than the first line are refused: pandas would silently
        cut, shift or pad them.
        """
        self._check_bytes(argument, name)
        with _naming_csv(name, argument):
            _, header = next(((line, cells) for line, cells in self._rows() if cells), (0, []))
            unequal = self._find_unequal_row(len(header))
        if not header:
            raise ValueError(f"{argument}: {name} is no CSV table: it is empty.")
        if len(header) == 1:
            raise ValueError(
                f"{argument}: {name} has one column only, {header[0]!r}; a table has several, with "
                f"{_SEPARATORS.get(self.separator, repr(self.separator))} between them"
                f"{self._suggest_separator(header)}."
            )
        if unequal is not None:
            line, n_cells = unequal
            raise ValueError(
                f"{argument}: {name}: line {line} has {n_cells} cells, the first line has "
                f"{len(header)}{self._suggest_separator(header)}."
            )
        return header

    def _suggest_separator(self, header: list[str]) -> str:
        """Return what to say about a first line that another sign separates into more cells."""
        line = self.separator.join(header)
        most = max(_SEPARATORS, key=line.count)
        if line.count(most) < len(header):
            return ""
        shown = most.replace("\t", "\\t")
        return f'. It looks as if {_SEPARATORS[most]} separates its cells: --separator "{shown}"'

    def place(self, row: int) -> str:
        """Return the line of a row; rows are counted from 0, lines as an editor counts them."""
        lines = (line for line, cells in self._rows() if not _is_blank(cells))
        return f"line {next(islice(lines, row + 1, None))}"

    def _blocks(self) -> Iterator[bytes]:
        """Yield the bytes in blocks of whole lines."""
        with self.path.open("rb") as file:
            while block := file.read(_BLOCK) + file.readline():
                yield block

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line of each row, and its cells: quoted ones may contain line breaks."""
        with _cells_of_any_length(), self.path.open(newline="", encoding="utf-8-sig") as file:
            reader, start = csv.reader(file, delimiter=self.separator), 1
            for cells in reader:
                yield start, cells
                start = reader.line_num + 1

    def _check_bytes(self, argument: str, name: str) -> None:
        """Refuse a file that is not written in UTF-8."""
        before = 0
        for block in self._blocks():
            try:
                block.isascii() or block.decode()
            except UnicodeDecodeError as error:
                line = before + block.count(b"\n", 0, error.start) + 1
                is_wide = block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
                usual = "utf-16" if is_wide else "cp1252 (Windows)"
                raise ValueError(
                    f"{argument}: {name} is no CSV table in UTF-8: line {line} has the byte "
                    f"0x{block[error.start]:02x}. Name its encoding, such as --encoding {usual}."
                ) from error
            before += block.count(b"\n")

    def _find_unequal_row(self, width: int) -> tuple[int, int] | None:
        """Return line and cells of the first row without `width` cells, None if all have them."""
        sign = self.separator.encode()
        others = bytes({*range(256)} - {*b'\r\n"', *sign})
        before = 0
        for block in self._blocks():
            signs = block.translate(None, others).replace(b"\r\n", b"\n")
            if b'"' in signs or b"\r" in signs:
                return self._find_unequal_quoted_row(width)
            signs += b"" if block.endswith(b"\n") else b"\n"
            n_lines = signs.count(b"\n")
            if signs != (sign * (width - 1) + b"\n") * n_lines:
                found = _find_unequal_line(block, width, sign)
                if found is not None:
                    return before + found[0], found[1]
            before += n_lines
        return None

    def _find_unequal_quoted_row(self, width: int) -> tuple[int, int] | None:
        """Check row by row: quoted cells may contain separators and line breaks."""
        # pandas loses the separator after a blank line that ends with a bare \r.
        bare = any(block.count(b"\r") > block.count(b"\r\n") for block in self._blocks())
        for line, cells in self._rows():
            if len(cells) != width and (bare or not _is_blank(cells)):
                return line, len(cells)
        return None


def _recode(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yield text of any encoding in UTF-8."""
    return (text.encode() for text in codecs.iterdecode(blocks, encoding))


def _is_blank(cells: list[str]) -> bool:
    return not cells or (len(cells) == 1 and not cells[0].strip(" \t"))


def _find_unequal_line(block: bytes, width: int, separator: bytes) -> tuple[int, int] | None:
    """Return number and cells of the first unequal line of a block without quotes."""
    block = block if block.endswith(b"\n") else block + b"\n"
    signs = np.frombuffer(block, np.uint8)
    places = np.flatnonzero((signs == ord(separator)) | (signs == ord("\n")))
    ends = np.flatnonzero(signs[places] == ord("\n"))
    n_cells = np.diff(ends, prepend=-1)
    for line in np.flatnonzero(n_cells != width).tolist():
        start = 0 if line == 0 else places[ends[line - 1]] + 1
        if block[start : places[ends[line]]].strip(b" \t\r\n".replace(separator, b"")):
            return line + 1, int(n_cells[line])
    return None


@contextmanager
def _cells_of_any_length() -> Iterator[None]:
    """Let the csv module read cells above its limit of 128 KiB."""
    usual = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(usual)


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
    """

    label: str | None
    proba: tuple[str, ...] = ()
    answer: str | None = None
    confidence: str | None = None
    subgroups: tuple[str, ...] = ()

    @property
    def used(self) -> list[str]:
        """All named columns, each once."""
        single = [self.label, self.answer, self.confidence]
        return list(dict.fromkeys([*filter(None, single), *self.proba, *self.subgroups]))

    @property
    def labels(self) -> list[str]:
        """The columns that hold classes."""
        return list(filter(None, [self.label, self.answer]))

    @property
    def numbers(self) -> list[str]:
        """The columns that hold numbers only."""
        names = [*self.proba, *filter(None, [self.confidence])]
        return [name for name in names if name not in self.subgroups]


def resolve_columns(
    file: TableFile, given: Mapping[str, Any], classes: Sequence[Any] | None
) -> Columns:
    """Return which columns to read, from the command line and the names of the file."""
    proba = tuple(given.get("proba") or ())
    answer, confidence = given.get("answer"), given.get("confidence_column")
    if (answer is None) != (confidence is None):
        raise ValueError("--answer and --confidence-column go together: name both columns.")
    if proba and answer is not None:
        raise ValueError("Name either --proba columns, or --answer and --confidence-column.")
    _check_named_once([given.get("label"), *proba, answer, confidence])
    if not proba and answer is None and classes is not None:
        proba = tuple(str(label) for label in classes)
        _check_named_by_class(proba, file.names, file.path.name)
    return Columns(given.get("label"), proba, answer, confidence,
                   tuple(given.get("subgroups") or ()))  # fmt: skip


def _check_named_once(columns: Sequence[str | None]) -> None:
    """Refuse a column with two meanings."""
    given = [name for name in columns if name is not None]
    twice = sorted({name for name in given if given.count(name) > 1})
    if twice:
        raise ValueError(
            f"Columns {twice} are named twice; label, answer, confidence and probabilities are "
            "columns of their own."
        )


def _check_named_by_class(wanted: Sequence[str], present: Sequence[str], table: str) -> None:
    """Refuse a table without a column named like each class, where --proba is not given."""
    missing = [name for name in wanted if name not in present]
    if missing:
        raise ValueError(
            f"{table} has no columns {missing}, one for each class. Name the columns of the "
            "probabilities: --proba p_no p_yes --classes no yes; or those of an answer and its "
            f"confidence: --answer ... --confidence-column .... Its columns: {list(present)[:20]}."
        )


# Predictions, their classes and subgroups ----------------------------------------------------


def find_classes(file: TableFile, columns: Columns) -> LabelArray:
    """Return the classes that occur, sorted; in a text file as numbers if all are numbers."""
    seen: set[Any] = set()
    for piece in file.pieces(columns.labels):
        for name in columns.labels:
            _check_no_missing(piece[name], file)
            _check_plain_values(piece[name], name, file.path.name)
            seen.update(pd.unique(piece[name]).tolist())
    check_any_rows(len(seen), file.path.name)
    classes = check_labels(list(seen), f"column {columns.label!r}")
    return np.unique(text_to_numbers(classes) if file.is_text else classes)


def _check_plain_values(values: Any, name: str, table: str) -> None:
    """Refuse a column of lists, structures or other values that cannot be labels."""
    first = values.iloc[0] if len(values) else ""
    if not isinstance(first, str | bool | int | float | np.generic):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"{table}: column {name!r} holds values of the type {type(first).__name__}; labels "
            "are strings, numbers or booleans."
        )


def read_predictions(
    file: TableFile, columns: Columns, classes: LabelArray
) -> tuple[Predictions, pd.DataFrame]:
    """Read all predictions of a file, and the columns of the subgroups."""
    parts = list(_predictions(file, columns, classes))
    check_any_rows(len(parts), file.path.name)
    first = parts[0][0]
    joined: dict[str, Any] = {}
    for name in ("y_true", "y_pred", "y_proba", "confidence"):
        if getattr(first, name) is not None:
            joined[name] = np.concatenate([getattr(found, name) for found, _ in parts])
    return replace(first, **joined), typed_subgroups(file, [groups for _, groups in parts])


def read_outcomes(
    file: TableFile, columns: Columns, classes: LabelArray, confidence: str | None
) -> tuple[Outcomes, pd.DataFrame, IntArray]:
    """Read confidence and loss of each row, the columns of the subgroups, and the class counts.

    Only the probabilities of one piece are in memory.
    """
    wrong, sure, groups = [], [], []
    counts = np.zeros(len(classes), dtype=np.int64)
    for found, subgroups in _predictions(file, columns, classes):
        wrong.append(found.y_true != found.y_pred)
        sure.append(compute_confidence(found, confidence if columns.proba else None))
        groups.append(subgroups if columns.subgroups else subgroups.iloc[:0])
        counts += np.bincount(found.y_true[found.y_true >= 0], minlength=len(classes))
    check_any_rows(len(wrong), file.path.name)
    outcomes = Outcomes(np.concatenate(wrong), np.concatenate(sure))
    return outcomes, typed_subgroups(file, groups), counts


def _predictions(
    file: TableFile, columns: Columns, classes: LabelArray
) -> Iterator[tuple[Predictions, pd.DataFrame]]:
    """Yield the predictions of each piece with its subgroups."""
    for piece in file.pieces(columns.used, columns.numbers):
        if len(piece) == 0:
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
        yield found, piece[list(columns.subgroups)]


def _read_labels(values: pd.Series, classes: LabelArray, file: TableFile) -> LabelArray:
    """Return a column of labels, unchanged if the classes are text."""
    _check_no_missing(values, file)
    if not file.is_text:
        return check_labels(values, f"column {values.name!r}")
    codes, distinct = pd.factorize(values)
    text = distinct.to_numpy(dtype=str)
    return (text if classes.dtype.kind == "U" else text_to_numbers(text))[codes]


def _check_no_missing(values: Any, file: TableFile) -> None:
    """Refuse a column with missing values; in a text file these are empty cells."""
    missing = values.isna()
    if file.is_text:
        missing |= values == ""
    elif pd.api.types.is_object_dtype(values) or pd.api.types.is_string_dtype(values):
        missing |= values.astype(object) == ""
    _refuse_missing(missing.to_numpy(dtype=bool), values, file)


def _refuse_missing(missing: Any, values: Any, file: TableFile) -> None:
    """Refuse missing values, naming the first row that has one."""
    if missing.any():
        raise ValueError(
            f"{file.path.name}: column {values.name!r} has {int(missing.sum())} missing values, "
            f"the first in {file.place(values.index[missing][0])}; leave such rows out, or fill "
            "them in."
        )


def typed_subgroups(file: TableFile, pieces: list[pd.DataFrame]) -> pd.DataFrame:
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


def always_enough(classes: LabelArray, counts: IntArray, target: float) -> str | None:
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


def read_times(values: pd.Series, file: TableFile) -> pd.Series:
    """Return times as numbers, or as dates in UTC."""
    _check_no_missing(values, file)
    times = parse_times(values)
    if times.isna().any():
        raise _make_error("numbers, or dates such as 2026-01-31T09:30", values, times.isna(), file)
    return times


def parse_times(values: pd.Series) -> pd.Series:
    """Return numbers, or dates in UTC, missing where a value is no date."""
    is_text = pd.api.types.is_object_dtype(values) or pd.api.types.is_string_dtype(values)
    if is_text and all(isinstance(x, str) and _NUMBER.fullmatch(x.strip()) for x in values):
        values = values.astype(np.float64)
    if pd.api.types.is_numeric_dtype(values):
        return values.astype(np.float64)
    from skselect.monitoring.times import is_word  # noqa: PLC0415 - one command needs it

    if not pd.api.types.is_datetime64_any_dtype(values):
        values = values.where(~values.map(is_word))  # pandas takes "now" for a time
    dates = pd.to_datetime(values, utc=True, format="ISO8601" if is_text else None, errors="coerce")
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
        is_number = pd.api.types.is_numeric_dtype(column)
        pointed = column if is_number else _with_points(column, file)
        try:
            numbers = _to_numbers(pointed)
        except (TypeError, ValueError, OverflowError) as error:
            good = pointed.map(_is_number).to_numpy(dtype=bool)
            raise _make_error("numbers", column, ~good, file) from error
        if np.isinf(numbers).any():
            raise _make_error("finite numbers", column, np.isinf(numbers), file)
        columns.append(numbers)
    return np.column_stack(columns)


def _with_points(column: Any, file: TableFile) -> Any:
    """Return the text of numbers with decimal points; what has points already is no number."""
    if file.text is None or file.text.decimal == ".":
        return column
    # Of a long table the first pieces may be numbers already.
    return column.astype(object).map(
        lambda cell: cell.translate(_SWAP_MARKS) if isinstance(cell, str) else cell
    )


def _has_numbers(column: pd.Series) -> bool:
    """Tell whether a column was read as finite numbers, some of which may be missing."""
    return column.dtype.kind in "iuf" and not np.isinf(column.to_numpy()).any()


def _to_numbers(column: Any) -> Any:
    """Return a column as numbers, nan for missing ones and for words such as "n/a"."""
    if pd.api.types.is_numeric_dtype(column):
        kind = np.float32 if column.dtype == np.float32 else np.float64
        return column.to_numpy(dtype=kind, na_value=np.nan)
    try:
        return column.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        known = ~column.map(_is_missing).to_numpy(dtype=bool)
        numbers = np.full(len(column), np.nan)
        numbers[known] = column[known].to_numpy(dtype=np.float64)
        return numbers


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in _MISSING_TOKENS
    return value is None or value is pd.NA


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return _is_missing(value)
    return True


def _make_error(wanted: str, column: Any, bad: Any, file: TableFile) -> ValueError:
    """Return an error that names the first bad value of a column."""
    row = column.index[bad][0] if np.any(bad) else column.index[0]
    value = column.loc[row]
    value = value.item() if isinstance(value, np.generic) else value
    advice = ""
    if wanted == "numbers" and isinstance(value, str):
        if _is_number(value):
            advice = " It has a decimal point: leave --decimal out."
        elif _is_number(value.translate(_SWAP_MARKS)):
            advice = " For decimal commas say --decimal ,."
    return ValueError(
        f"{file.path.name}: column {column.name!r} must hold {wanted}, but {file.place(row)} holds "
        f"{value!r}.{advice}"
    )
