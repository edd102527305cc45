"""Tables of predictions in CSV and Parquet files, read in pieces."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skselect import _validation as check
from skselect._typing import BoolArray, IntArray, LabelArray
from skselect.confidence import confidence_of
from skselect.outcomes import Outcomes
from skselect.predictions import Predictions

#: Rows read together.
_PIECE = 1 << 18
#: Endings of Parquet files; all other tables are CSV.
PARQUET = (".parquet", ".pq")
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
        """Look at a file; refuse a CSV file whose rows are not all as long as the first line."""
        check.check_table_file(path, argument)
        if path.suffix.lower() in PARQUET:
            parquet = check.import_extra("pyarrow.parquet", "pyarrow", "parquet")
            known = check.read_or_name(parquet.read_metadata, path)
            names = known.schema.to_arrow_schema().names
        else:
            names = check.check_csv_head(_first_line(path, argument), path, argument)
            check.check_cells(path, len(names), argument)
        check.check_distinct_columns(names, path.name)
        return cls(path, tuple(names))

    @property
    def is_text(self) -> bool:
        """Whether it is a CSV file, in which everything is text."""
        return self.path.suffix.lower() not in PARQUET

    def whole(self) -> pd.DataFrame:
        """Read all columns and rows."""
        if not self.is_text:
            return check.read_or_name(pd.read_parquet, self.path)
        with check.naming_csv(self.path):
            return pd.read_csv(self.path, low_memory=False, index_col=False)

    def pieces(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read columns piece by piece; those of a text file as they are written."""
        wanted = list(dict.fromkeys(columns))
        check.check_table_columns(wanted, self.names, self.path.name)
        for piece in self._text(wanted) if self.is_text else self._batches(wanted, None):
            yield piece[wanted]

    def rows(self) -> Iterator[pd.DataFrame]:
        """Read all columns piece by piece, with types that can be written as they were read."""
        return self._text(self.names) if self.is_text else self._batches(self.names, pd.ArrowDtype)

    def _text(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        places = sorted(self.names.index(name) for name in columns)
        with (
            check.naming_csv(self.path),
            pd.read_csv(
                self.path, usecols=places, dtype=str, keep_default_na=False,
                index_col=False, chunksize=_PIECE,
            ) as chunks,
        ):  # fmt: skip
            for chunk in chunks:  # pandas calls a column without a name "Unnamed: 0"
                yield chunk.set_axis([self.names[place] for place in places], axis=1)

    def _batches(self, columns: Sequence[str], types: Any) -> Iterator[pd.DataFrame]:
        parquet = check.import_extra("pyarrow.parquet", "pyarrow", "parquet")
        with parquet.ParquetFile(self.path) as file:
            first = 0
            for batch in file.iter_batches(_PIECE, columns=list(columns), use_threads=False):
                piece = batch.to_pandas(ignore_metadata=True, types_mapper=types)
                yield piece.set_axis(range(first, first + len(piece)))
                first += len(piece)
        # What Arrow keeps for the next batch may be as much as all that is computed afterwards.
        check.import_extra("pyarrow", "pyarrow", "parquet").default_memory_pool().release_unused()


def _first_line(path: Path, argument: str) -> list[str]:
    """Return the cells of the header, none if the file is empty."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return next((cells for cells in csv.reader(file) if cells), [])
    except (csv.Error, UnicodeDecodeError) as error:
        raise check.no_csv(path, argument, error) from error


@dataclass(frozen=True)
class Columns:
    """Which columns of a table mean what: probabilities, or an answer and a confidence.

    Parameters
    ----------
    label : str or None
        The true label; None where it is not known yet.
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
        """All of them, each once."""
        single = [self.label, self.answer, self.confidence]
        return list(dict.fromkeys([*filter(None, single), *self.proba, *self.subgroups]))

    @property
    def labels(self) -> list[str]:
        """Those that hold classes."""
        return list(filter(None, [self.label, self.answer]))


def classes_of(file: TableFile, columns: Columns) -> LabelArray:
    """Return the classes that occur, sorted; those of a text file as numbers if all of them are."""
    seen: set[Any] = set()
    for piece in file.pieces(columns.labels):
        for name in columns.labels:
            check.check_no_missing(piece[name], name, file.path.name)
            check.check_plain_values(piece[name], name, file.path.name)
            seen.update(pd.unique(piece[name]).tolist())
    check.check_any_rows(len(seen), file.path.name)
    classes = check.check_labels(list(seen), f"column {columns.label!r}")
    return np.unique(numbers_of_text(classes) if file.is_text else classes)


def numbers_of_text(labels: LabelArray) -> LabelArray:
    """Return text as booleans, integers or numbers, where all of it is written like them.

    Text such as "01" stays text: it would not come back as it was.
    """
    distinct = np.unique(labels)
    if set(distinct.tolist()) <= {"True", "False"}:
        return np.asarray(labels == "True")
    if not all(map(_NUMBER.fullmatch, distinct.tolist())):
        return labels
    kind = np.int64 if all(map(_INTEGER.fullmatch, distinct.tolist())) else np.float64
    two_of_one = len(np.unique(distinct.astype(kind))) < len(distinct)  # such as "1" and "1.0"
    return labels if two_of_one else labels.astype(kind)


def read_predictions(
    file: TableFile, columns: Columns, classes: LabelArray
) -> tuple[Predictions, pd.DataFrame]:
    """Read all predictions of a file, and the columns of the subgroups."""
    parts = list(_predictions(file, columns, classes))
    check.check_any_rows(len(parts), file.path.name)
    first, fields = parts[0][0], ("y_true", "y_pred", "y_proba", "confidence")
    joined = {name: _joined([getattr(found, name) for found, _ in parts]) for name in fields}
    return replace(first, **joined), typed_subgroups(file, [groups for _, groups in parts])


def read_outcomes(
    file: TableFile, columns: Columns, classes: LabelArray, confidence: str | None
) -> tuple[Outcomes, pd.DataFrame, IntArray]:
    """Read how sure and how wrong each row is, the columns of the subgroups, and count the classes.

    Probabilities are forgotten piece by piece, so that many rows fit in memory.
    """
    wrong, sure, groups = [], [], []
    counts = np.zeros(len(classes), dtype=np.int64)
    for found, subgroups in _predictions(file, columns, classes):
        wrong.append(found.y_true != found.y_pred)
        sure.append(confidence_of(found, confidence if columns.proba else None))
        groups.append(subgroups if columns.subgroups else subgroups.iloc[:0])
        counts += np.bincount(found.y_true[found.y_true >= 0], minlength=len(classes))
    check.check_any_rows(len(wrong), file.path.name)
    outcomes = Outcomes(np.concatenate(wrong), np.concatenate(sure))
    return outcomes, typed_subgroups(file, groups), counts


def always_enough(classes: LabelArray, counts: IntArray, target: float) -> str | None:
    """Say that a model which always gives the commonest answer would meet a target, if it would."""
    others = 1.0 - float(np.max(counts) / np.sum(counts))
    if others > target:
        return None
    commonest = str(classes[np.argmax(counts)])
    return (
        f"always answering {commonest!r} would meet this target: {100 * others:.3g} % of the rows "
        "are of another class."
    )


def typed_subgroups(file: TableFile, pieces: list[pd.DataFrame]) -> pd.DataFrame:
    """Return subgroups as one table; those of a text file as numbers where all of them are."""
    table = pd.concat(pieces)
    if not file.is_text:
        return table
    columns: dict[str, pd.Series] = {}
    for name in table.columns:
        present = (table[name] != "").to_numpy()
        typed = numbers_of_text(table[name].to_numpy(dtype=str)[present])
        kind = "Int64" if typed.dtype.kind == "i" else None  # which has room for missing ones
        column: Any = pd.Series(typed, index=table.index[present], dtype=kind)
        columns[name] = column.reindex(table.index)
    return pd.DataFrame(columns, index=table.index)


def known_numbers(piece: pd.DataFrame, names: Sequence[str], table: str) -> tuple[Any, BoolArray]:
    """Return columns as numbers with nan in rows that lack one, and which rows lack none."""
    numbers = check.check_numbers(piece[list(names)], table)
    return numbers, ~np.isnan(numbers).any(axis=1)


def _predictions(
    file: TableFile, columns: Columns, classes: LabelArray
) -> Iterator[tuple[Predictions, pd.DataFrame]]:
    """Yield the predictions of each piece with its subgroups."""
    table = file.path.name
    for piece in file.pieces(columns.used):
        if len(piece) == 0:
            continue
        y_true = _labels(piece[str(columns.label)], classes, file)
        if columns.proba:
            proba = check.check_numeric(piece[list(columns.proba)], table)
            if proba.shape[1] == 1:  # the second of two classes, whatever their order
                positive = check.check_positive_proba(proba[:, 0])
                proba = np.column_stack([1.0 - positive, positive])
            found = Predictions.from_proba(y_true, proba, labels=classes)
        else:
            answer = _labels(piece[str(columns.answer)], classes, file)
            sure = check.check_numeric(piece[[str(columns.confidence)]], table)
            found = Predictions.from_labels(y_true, answer, sure[:, 0], labels=classes)
        yield found, piece[list(columns.subgroups)]


def _labels(values: pd.Series, classes: LabelArray, file: TableFile) -> LabelArray:
    check.check_no_missing(values, str(values.name), file.path.name)
    if not file.is_text:
        return check.check_labels(values, f"column {values.name!r}")
    text = values.to_numpy(dtype=str)
    return text if classes.dtype.kind == "U" else numbers_of_text(text)


def _joined(parts: list[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)


def resolved_columns(
    file: TableFile, given: Mapping[str, Any], classes: Sequence[Any] | None
) -> Columns:
    """Return which columns to read, from what the command line says and what is there."""
    proba = tuple(given.get("proba") or ())
    answer, confidence = given.get("answer"), given.get("confidence_column")
    check.check_one_way(proba, answer, confidence)
    check.check_one_role([given.get("label"), *proba, answer, confidence])
    if not proba and answer is None and classes is not None:
        proba = tuple(str(label) for label in classes)
        check.check_class_named(proba, file.names, file.path.name)
    return Columns(given.get("label"), proba, answer, confidence,
                   tuple(given.get("subgroups") or ()))  # fmt: skip
