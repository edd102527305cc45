"""Tables on the command line: files, their columns, and what these hold."""

from __future__ import annotations

import csv
import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skselect._validation._files import check_output

_WORKBOOKS = (".xlsx", ".xls", ".ods")
# Endings that say what a file holds: nothing else is written into it.
_FORMATS = {
    ".csv", ".tsv", ".parquet", ".pq", ".json", ".html", ".htm", ".py", ".pdf", ".png", ".gz",
    ".zip", *_WORKBOOKS,
}  # fmt: skip
#: What stands for "no number" in a column of numbers, in small letters.
MISSING_TOKENS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "-"})
# Bytes read at once; the last line among them is then read to its end.
_BLOCK = 1 << 22


def check_table_file(path: Path, argument: str) -> None:
    """Refuse a path behind which there is no file."""
    if not path.is_file():
        raise ValueError(f"{argument}: there is no file {str(path)!r}.")
    if path.suffix.lower() in _WORKBOOKS:
        raise ValueError(f"{argument}: {path.name} is a workbook; save the sheet as CSV.")


def no_csv(path: Path, argument: str, error: Exception) -> ValueError:
    """Return the error that says that a file is no CSV table."""
    return ValueError(
        f"{argument}: {path.name} is no CSV table with commas: {error}. Save it as CSV in UTF-8."
    )


@contextmanager
def naming_csv(path: Path) -> Iterator[None]:
    """Say which file cannot be read as CSV, and why."""
    try:
        yield
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise no_csv(path, "TABLE", error) from error


def check_csv_head(header: list[str], path: Path, argument: str) -> list[str]:
    """Return the columns of a CSV file, or say what is wrong with its first line."""
    if not header:
        raise ValueError(f"{argument}: {path.name} is no CSV table with commas: it is empty.")
    if len(header) == 1:
        raise ValueError(
            f"{argument}: {path.name} has one column only, {header[0]!r}; a table has several, and "
            "its separator must be a comma."
        )
    return header


def check_cells(path: Path, width: int, argument: str) -> None:
    """Refuse a CSV file with a row that has more or fewer cells than the first line.

    What pandas reads of such a row is cut, shifted or filled up without a word.
    """
    try:
        line, n_cells = _unequal_row(path, width) or (0, width)
    except (csv.Error, UnicodeDecodeError) as error:
        raise no_csv(path, argument, error) from error
    if n_cells != width:
        raise ValueError(
            f"{argument}: {path.name}: line {line} has {n_cells} cells, the first line has {width}."
        )


def _unequal_row(path: Path, width: int) -> tuple[int, int] | None:
    """Return line and cells of the first row that does not have `width` cells, None if all do."""
    bare = any(block.count(b"\r") > block.count(b"\r\n") for block in _blocks(path))
    if bare or any(b'"' in block for block in _blocks(path)):
        # After a blank line that ends with a bare \r pandas loses the next comma.
        return _unequal_row_of_reader(path, width, may_be_blank=not bare)
    before = 0
    for block in _blocks(path):
        found = _unequal_line(block, width)
        if found is not None:
            return before + found[0], found[1]
        before += block.count(b"\n")
    return None


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, whole lines together."""
    with path.open("rb") as file:
        while block := file.read(_BLOCK) + file.readline():
            yield block


def _unequal_line(block: bytes, width: int) -> tuple[int, int] | None:
    """Look at lines without quotes: count the commas of all of them at once; skip blank ones."""
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


def _unequal_row_of_reader(path: Path, width: int, *, may_be_blank: bool) -> tuple[int, int] | None:
    """Look at rows of any kind, one by one: cells may hold commas and ends of lines."""
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


def check_distinct_columns(names: Sequence[str], table: str) -> None:
    """Refuse a table with two columns of one name."""
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise ValueError(f"{table} has several columns of the name {twice}; rename them.")


def check_one_role(columns: Sequence[str | None]) -> None:
    """Refuse a column that would be two things at once."""
    given = [name for name in columns if name is not None]
    twice = sorted({name for name in given if given.count(name) > 1})
    if twice:
        raise ValueError(f"Columns {twice} are named twice; label, answer, confidence and "
                         "probabilities are columns of their own.")  # fmt: skip


def check_plain_values(values: Any, name: str, table: str) -> None:
    """Refuse a column of lists, structures or other things that are no labels."""
    first = values.iloc[0] if len(values) else ""
    if not isinstance(first, str | bool | int | float | np.generic):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"{table}: column {name!r} holds values of the type {type(first).__name__}; labels "
            "are strings, numbers or booleans."
        )


def check_table_columns(wanted: Sequence[str], present: Sequence[str], table: str) -> None:
    """Refuse columns that a table lacks, and say which ones are spelled like them."""
    for name in wanted:
        if name not in present:
            near = difflib.get_close_matches(name, present)
            meant = f" Did you mean {near}?" if near else ""
            raise ValueError(
                f"{table} has no column {name!r}.{meant} Its columns are {list(present)[:20]}."
            )


def check_no_missing(values: Any, name: str, table: str) -> None:
    """Refuse a column with missing values; in a text file these are empty cells."""
    missing = values.isna()
    if not pd.api.types.is_numeric_dtype(values):
        missing |= values.astype(object) == ""
    _refuse_missing(missing.to_numpy(dtype=bool), values, name, table)


def _refuse_missing(missing: Any, values: Any, name: str, table: str) -> None:
    if missing.any():
        raise ValueError(
            f"{table}: column {name!r} has {int(missing.sum())} missing values, the first in row "
            f"{values.index[missing][0]} (counted from 0); leave such rows out, or fill them in."
        )


def check_numeric(frame: Any, table: str) -> Any:
    """Return columns as an array of finite numbers, or name the first value that is none."""
    numbers = check_numbers(frame, table)
    for name, column in zip(frame.columns, numbers.T, strict=True):
        _refuse_missing(np.isnan(column), frame, name, table)
    return numbers


def check_numbers(frame: Any, table: str) -> Any:
    """Return columns as an array of numbers, nan where one is missing; name what is none."""
    columns = []
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_bool_dtype(column):
            raise ValueError(f"{table}: column {name!r} must hold numbers, but holds booleans.")
        try:
            numbers = _with_nan(column)
        except (TypeError, ValueError, OverflowError) as error:
            good = column.map(_is_number).to_numpy(dtype=bool)
            raise _no_number("numbers", column, ~good, table) from error
        if np.isinf(numbers).any():
            raise _no_number("finite numbers", column, np.isinf(numbers), table)
        columns.append(numbers)
    return np.column_stack(columns)


def _with_nan(column: Any) -> Any:
    """Return a column as numbers, with nan for usual words for a missing one."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=_float_like(column), na_value=np.nan)
    try:
        return column.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        known = ~column.map(_is_missing).to_numpy(dtype=bool)
        numbers = np.full(len(column), np.nan)
        numbers[known] = column[known].to_numpy(dtype=np.float64)
        return numbers


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in MISSING_TOKENS
    return value is None or value is pd.NA


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return _is_missing(value)
    return True


def _no_number(wanted: str, column: Any, bad: Any, table: str) -> ValueError:
    """Return the error that names the first bad value of a column."""
    row = column.index[bad][0] if np.any(bad) else column.index[0]
    return ValueError(
        f"{table}: column {column.name!r} must hold {wanted}, but row {row} (counted from 0) holds "
        f"{column.loc[row]!r}."
    )


def _float_like(column: Any) -> type[Any]:
    """Return the type of a column's numbers: single precision stays what it is."""
    return np.float32 if column.dtype == np.float32 else np.float64


def check_any_rows(n: int, table: str) -> None:
    """Refuse a table without rows."""
    if n == 0:
        raise ValueError(f"{table} has no rows.")


def check_one_way(proba: Sequence[str], answer: str | None, confidence: str | None) -> None:
    """Refuse half of a description, and two of them."""
    if (answer is None) != (confidence is None):
        raise ValueError("--answer and --confidence-column go together: name both columns.")
    if proba and answer is not None:
        raise ValueError("Name either --proba columns, or --answer and --confidence-column.")


def check_named_classes(said: Sequence[str], names: Sequence[str]) -> None:
    """Refuse names of classes that are not the classes."""
    if sorted(said) != sorted(names):
        raise ValueError(
            f"--classes must name the classes {list(names)}, in the order of --proba, got "
            f"{list(said)}."
        )


def check_second_is_meant(proba: Sequence[str], said: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a single column that would be the probability of the first class."""
    if list(said) != list(names) or names[0] in proba:
        raise ValueError(
            f"--proba: a single column is the probability of {names[-1]!r} here; name the columns "
            "of both classes."
        )


def check_agrees(proba: Sequence[str], tuned_on: Sequence[str], classes: Sequence[Any]) -> None:
    """Refuse an order of columns that contradicts the one the policy was tuned with."""
    if list(proba) != list(tuned_on):
        raise ValueError(
            f"--classes: the policy was tuned with the columns {list(tuned_on)} for the classes "
            f"{list(classes)}, in this order."
        )


def check_class_named(wanted: Sequence[str], present: Sequence[str], table: str) -> None:
    """Refuse to guess the columns of the probabilities."""
    missing = [name for name in wanted if name not in present]
    if missing:
        raise ValueError(
            f"{table} has no columns {missing}, one for each class. Name the columns of the "
            "probabilities: --proba p_no p_yes --classes no yes; or those of an answer and its "
            f"confidence: --answer ... --confidence-column .... Its columns: {list(present)[:20]}."
        )


def check_outputs(
    inputs: Sequence[Path | None], outputs: Mapping[str, tuple[Path | None, Sequence[str]]]
) -> None:
    """Refuse files of the command line that cannot be written, or that are needed otherwise.

    `outputs` has by option the file, and the endings that say what is written into it.
    """
    taken = [os.path.realpath(path) for path in inputs if path is not None]
    for option, (path, endings) in outputs.items():
        if path is None:
            continue
        check_output(path, option)
        if os.path.realpath(path) in taken:
            raise ValueError(
                f"{option}: {str(path)!r} is read or written by this command already; choose "
                "another name."
            )
        ending = path.suffix.lower()
        if ending in _FORMATS and ending not in endings:
            raise ValueError(
                f"{option}: {path.name!r} has the ending of another kind of file; take a name "
                f"that ends in {' or '.join(endings)}."
            )
        taken.append(os.path.realpath(path))


def check_free_columns(new: Sequence[str], present: Sequence[str]) -> None:
    """Refuse to overwrite columns of a table."""
    taken = [name for name in new if name in present]
    if taken:
        raise ValueError(
            f"The table has columns {taken} already; choose other names for the new ones, such as "
            "--prefix gate_."
        )


def refuse_true_subgroups(label: str, subgroups: Sequence[str]) -> None:
    """Refuse to promise something per true class, which nobody knows when the policy decides."""
    if label in subgroups:
        raise ValueError(
            f"--subgroups: {label!r} is the true label, which nobody knows when the policy "
            "decides. For a promise about the rows of one true class, in Python: "
            "select_threshold(..., objective='generalized_risk', among=('true', class))."
        )


def check_has_columns_of_proba(proba: Sequence[str]) -> None:
    """Refuse to write a program for a confidence that it could not compute."""
    if not proba:
        raise ValueError(
            "--python goes with --proba: the file computes the confidence from probabilities. For "
            "an answer with its confidence, accept it where the confidence is at least the "
            "threshold."
        )


def check_remembered_columns(stored: Any) -> None:
    """Refuse columns of a policy file that are none."""
    lists = {"proba", "subgroups"}
    good = isinstance(stored, dict) and all(
        isinstance(value, list) and all(isinstance(x, str) for x in value)
        if name in lists
        else isinstance(value, str)
        for name, value in stored.items()
    )
    if not good:
        raise ValueError(f"--policy: the columns it remembers are damaged: {stored!r}.")


def refuse_calibrated_answers(calibration: Any) -> None:
    """Refuse to compare a confidence as it comes with a threshold for a calibrated one."""
    if calibration is not None:
        raise ValueError(
            "--policy: its threshold is about a calibrated confidence, which it computes from "
            "probabilities; name their columns, --proba."
        )


def check_two_classes_seen(classes: Sequence[Any], label: str) -> None:
    """Refuse probabilities where only one class occurs, so that nobody knows which is whose."""
    if len(classes) < 2:
        raise ValueError(
            f"column {label!r} holds the class {classes[0]!r} only; name all classes, in the order "
            "of --proba: --classes ..."
        )
