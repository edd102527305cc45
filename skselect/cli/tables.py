"""Tables of predictions in CSV and Parquet files, read in pieces."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skselect._checks.labels import check_known, check_labels, encode_labels
from skselect._checks.proba import check_positive_proba
from skselect._checks.rows import check_any_rows, check_columns
from skselect._files import import_extra, read_parquet, row_bar
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
#: What counts as missing in a column of numbers, in lower case.
_MISSING_TOKENS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "-"})
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_NUMBER = re.compile(_INTEGER.pattern + r"(\.\d+)?([eE][-+]?\d+)?")


def read_table(path: Path, argument: str = "TABLE") -> pd.DataFrame:
    """Read a whole CSV or Parquet file."""
    return TableFile.open(path, argument).whole()


@dataclass(frozen=True)
class TableFile:
    """A CSV file with commas, or a Parquet file.

    Parameters
    ----------
    path : Path
    names : tuple of str
        Its columns.
    """

    path: Path
    names: tuple[str, ...]

    @classmethod
    def open(cls, path: Path, argument: str = "TABLE") -> TableFile:
        """Read the names of the columns; refuse a CSV file with rows of different lengths."""
        check_table_file(path, argument)
        if path.suffix.lower() in PARQUET:
            parquet = import_extra("pyarrow.parquet", "pyarrow", "parquet")
            known = read_parquet(parquet.read_metadata, path)
            names = known.schema.to_arrow_schema().names
        else:
            with _naming_csv(path, argument):
                names = _read_header(path, argument)
                _check_row_lengths(path, len(names), argument)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{path.name} has several columns of the name {twice}; rename them.")
        return cls(path, tuple(names))

    @property
    def is_text(self) -> bool:
        """Whether it is a CSV file, in which everything is text."""
        return self.path.suffix.lower() not in PARQUET

    def whole(self) -> pd.DataFrame:
        """Read all columns and rows."""
        if not self.is_text:
            return read_parquet(pd.read_parquet, self.path)
        with _naming_csv(self.path):
            return pd.read_csv(self.path, low_memory=False, index_col=False)

    def pieces(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some columns piece by piece; the cells of a text file stay text."""
        wanted = list(dict.fromkeys(columns))
        check_columns(wanted, self.names, self.path.name)
        for piece in self._text(wanted) if self.is_text else self._batches(wanted, None):
            yield piece[wanted]

    def rows(self) -> Iterator[pd.DataFrame]:
        """Read all columns piece by piece, so that they can be written as they were read."""
        return self._text(self.names) if self.is_text else self._batches(self.names, pd.ArrowDtype)

    def _text(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        places = sorted(self.names.index(name) for name in columns)
        with (
            _naming_csv(self.path),
            pd.read_csv(
                self.path, usecols=places, dtype=str, keep_default_na=False,
                index_col=False, chunksize=_PIECE,
            ) as chunks,
            row_bar(None, self.path.name) as bar,
        ):  # fmt: skip
            for chunk in chunks:  # pandas calls a column without a name "Unnamed: 0"
                yield chunk.set_axis([self.names[place] for place in places], axis=1)
                bar.update(len(chunk))

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


def _read_header(path: Path, argument: str) -> list[str]:
    """Return the cells of the first line that is not blank."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        header = next((cells for cells in csv.reader(file) if cells), [])
    if not header:
        raise ValueError(f"{argument}: {path.name} is no CSV table with commas: it is empty.")
    if len(header) == 1:
        raise ValueError(
            f"{argument}: {path.name} has one column only, {header[0]!r}; a table has several, and "
            "its separator must be a comma."
        )
    return header


@contextmanager
def _naming_csv(path: Path, argument: str = "TABLE") -> Iterator[None]:
    """Turn errors of reading CSV into one that names the file."""
    try:
        yield
    except (
        csv.Error,
        pd.errors.ParserError,
        pd.errors.EmptyDataError,
        UnicodeDecodeError,
    ) as error:
        raise ValueError(
            f"{argument}: {path.name} is no CSV table with commas: {error}. Save it as CSV in "
            "UTF-8."
        ) from error


def _check_row_lengths(path: Path, width: int, argument: str) -> None:
    """Refuse a CSV file with a row that has more or fewer cells than the first line.

    pandas would silently cut, shift or pad such a row.
    """
    unequal = _find_unequal_row(path, width)
    if unequal is not None:
        line, n_cells = unequal
        raise ValueError(
            f"{argument}: {path.name}: line {line} has {n_cells} cells, the first line has {width}."
        )


def _find_unequal_row(path: Path, width: int) -> tuple[int, int] | None:
    """Return line and cells of the first row that does not have `width` cells, None if all do."""
    bare = any(block.count(b"\r") > block.count(b"\r\n") for block in _blocks(path))
    if bare or any(b'"' in block for block in _blocks(path)):
        # pandas loses the comma after a blank line that ends with a bare \r.
        return _find_unequal_quoted_row(path, width, may_be_blank=not bare)
    before = 0
    for block in _blocks(path):
        found = _find_unequal_line(block, width)
        if found is not None:
            return before + found[0], found[1]
        before += block.count(b"\n")
    return None


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks of whole lines."""
    with path.open("rb") as file:
        while block := file.read(_BLOCK) + file.readline():
            yield block


def _find_unequal_line(block: bytes, width: int) -> tuple[int, int] | None:
    """Return number and cells of the first unequal line of a block without quotes."""
    block = block if block.endswith(b"\n") else block + b"\n"
    signs = np.frombuffer(block, np.uint8)
    places = np.flatnonzero((signs == ord(",")) | (signs == ord("\n")))
    ends = np.flatnonzero(signs[places] == ord("\n"))
    n_cells = np.diff(ends, prepend=-1)
    for line in np.flatnonzero(n_cells != width).tolist():
        start = 0 if line == 0 else places[ends[line - 1]] + 1
        if block[start : places[ends[line]]].strip(b" \t\r\n"):
            return line + 1, int(n_cells[line])
    return None


def _find_unequal_quoted_row(
    path: Path, width: int, *, may_be_blank: bool
) -> tuple[int, int] | None:
    """Check row by row: quoted cells may contain commas and line breaks."""
    with _cells_of_any_length(), path.open(newline="", encoding="utf-8-sig") as file:
        reader, start = csv.reader(file), 1
        for cells in reader:
            blank = not cells or (len(cells) == 1 and not cells[0].strip(" \t"))
            if len(cells) != width and not (blank and may_be_blank):
                return start, len(cells)
            start = reader.line_num + 1
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
        _check_class_columns(proba, file.names, file.path.name)
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


def _check_class_columns(wanted: Sequence[str], present: Sequence[str], table: str) -> None:
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
            _check_no_missing(piece[name], name, file.path.name)
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
    table = file.path.name
    for piece in file.pieces(columns.used):
        if len(piece) == 0:
            continue
        y_true = _read_labels(piece[str(columns.label)], classes, file)
        if columns.proba:
            proba = _read_complete_numbers(piece[list(columns.proba)], table)
            if proba.shape[1] == 1:  # of the second of two classes
                positive = check_positive_proba(proba[:, 0])
                proba = np.column_stack([1.0 - positive, positive])
            _check_classes(y_true, classes, f"{table}: column {columns.label!r}")
            found = Predictions.from_proba(y_true, proba, labels=classes)
        else:
            answer = _read_labels(piece[str(columns.answer)], classes, file)
            sure = _read_complete_numbers(piece[[str(columns.confidence)]], table)
            found = Predictions.from_labels(y_true, answer, sure[:, 0], labels=classes)
        yield found, piece[list(columns.subgroups)]


def _read_labels(values: pd.Series, classes: LabelArray, file: TableFile) -> LabelArray:
    """Return a column of labels, unchanged if the classes are text."""
    _check_no_missing(values, str(values.name), file.path.name)
    if not file.is_text:
        return check_labels(values, f"column {values.name!r}")
    text = values.to_numpy(dtype=str)
    return text if classes.dtype.kind == "U" else text_to_numbers(text)


def _check_no_missing(values: Any, name: str, table: str) -> None:
    """Refuse a column with missing values; in a text file these are empty cells."""
    missing = values.isna()
    if not pd.api.types.is_numeric_dtype(values):
        missing |= values.astype(object) == ""
    _refuse_missing(missing.to_numpy(dtype=bool), values, name, table)


def _refuse_missing(missing: Any, values: Any, name: str, table: str) -> None:
    """Refuse missing values, naming the first row that has one."""
    if missing.any():
        raise ValueError(
            f"{table}: column {name!r} has {int(missing.sum())} missing values, the first in row "
            f"{values.index[missing][0]} (counted from 0); leave such rows out, or fill them in."
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
    is_word = values.map(lambda cell: isinstance(cell, str) and cell.strip().lower() in words)
    return ~(values.isna() | is_word.astype(bool))


def read_known_labels(values: pd.Series, classes: LabelArray, file: TableFile) -> LabelArray:
    """Return labels, all of them classes; of a text file with the type of the classes."""
    if file.is_text and classes.dtype.kind in "iuf":  # 1 and 1.0 are the same number
        labels = _read_numbers(values.to_frame(), file.path.name)[:, 0]
    else:
        labels = _read_labels(values, classes, file)
    return _check_classes(labels, classes, f"{file.path.name}: column {values.name!r}")


def _check_classes(labels: LabelArray, classes: LabelArray, column: str) -> LabelArray:
    """Return labels if all of them are classes."""
    remedy = "Correct them (capitals and blanks count); --classes, if given, names every class."
    check_known(encode_labels(labels, classes, column), labels, classes, column, remedy)
    return labels


def read_times(values: pd.Series, table: str) -> pd.Series:
    """Return times as numbers, or as dates in UTC."""
    _check_no_missing(values, str(values.name), table)
    is_text = pd.api.types.is_object_dtype(values) or pd.api.types.is_string_dtype(values)
    if is_text and all(isinstance(x, str) and _NUMBER.fullmatch(x.strip()) for x in values):
        values = values.astype(np.float64)
    if pd.api.types.is_numeric_dtype(values):
        return values.astype(np.float64)
    dates = pd.to_datetime(values, utc=True, format="ISO8601" if is_text else None, errors="coerce")
    if dates.isna().any():
        raise _make_error("numbers, or dates such as 2026-01-31T09:30", values, dates.isna(), table)
    return dates.dt.as_unit("us")


def read_names(values: pd.Series, table: str) -> pd.Series:
    """Return the names of cases as text."""
    _check_no_missing(values, str(values.name), table)
    return values.map(str).astype(object)


def read_booleans(values: pd.Series, table: str) -> BoolArray:
    """Return a column of true and false as an array; 1 and 0, yes and no mean the same."""
    words = dict.fromkeys(["true", "1", "1.0", "yes"], True)
    words |= dict.fromkeys(["false", "0", "0.0", "no"], False)
    found = values.map(lambda cell: words.get(str(cell).strip().lower()))
    if found.isna().any():
        raise _make_error("true or false", values, found.isna(), table)
    return found.to_numpy(dtype=bool)


# Numbers ------------------------------------------------------------------------------------


def known_numbers(piece: pd.DataFrame, names: Sequence[str], table: str) -> tuple[Any, BoolArray]:
    """Return columns as numbers, nan for missing ones, and which rows are complete."""
    numbers = _read_numbers(piece[list(names)], table)
    return numbers, ~np.isnan(numbers).any(axis=1)


def _read_complete_numbers(frame: Any, table: str) -> Any:
    """Return columns as an array of numbers, and refuse missing ones."""
    numbers = _read_numbers(frame, table)
    for name, column in zip(frame.columns, numbers.T, strict=True):
        _refuse_missing(np.isnan(column), frame, name, table)
    return numbers


def _read_numbers(frame: Any, table: str) -> Any:
    """Return columns as an array of finite numbers, nan for missing ones."""
    columns = []
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_bool_dtype(column):
            raise ValueError(f"{table}: column {name!r} must hold numbers, but holds booleans.")
        try:
            numbers = _to_numbers(column)
        except (TypeError, ValueError, OverflowError) as error:
            good = column.map(_is_number).to_numpy(dtype=bool)
            raise _make_error("numbers", column, ~good, table) from error
        if np.isinf(numbers).any():
            raise _make_error("finite numbers", column, np.isinf(numbers), table)
        columns.append(numbers)
    return np.column_stack(columns)


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


def _make_error(wanted: str, column: Any, bad: Any, table: str) -> ValueError:
    """Return an error that names the first bad value of a column."""
    row = column.index[bad][0] if np.any(bad) else column.index[0]
    return ValueError(
        f"{table}: column {column.name!r} must hold {wanted}, but row {row} (counted from 0) holds "
        f"{column.loc[row]!r}."
    )
