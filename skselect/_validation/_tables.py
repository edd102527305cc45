"""Tables on the command line: files, their columns, and what these hold."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skselect._validation._files import check_output

_WORKBOOKS = (".xlsx", ".xls", ".ods")


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


def check_csv_head(lines: Sequence[Sequence[str]], path: Path, argument: str) -> list[str]:
    """Return the columns of a CSV file, or say what is wrong with its first lines."""
    if not lines:
        raise ValueError(f"{argument}: {path.name} is no CSV table with commas: it is empty.")
    header, first = list(lines[0]), list(lines[-1])
    if len(header) == 1:
        raise ValueError(
            f"{argument}: {path.name} has one column only; its separator must be a comma."
        )
    if len(first) > len(header) and any(first[len(header) :]):
        raise ValueError(
            f"{argument}: {path.name} has {len(header)} columns, but its first row has "
            f"{len(first)} cells."
        )
    return header


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
    if missing.any():
        raise ValueError(
            f"{table}: column {name!r} has {int(missing.sum())} missing values, the first in row "
            f"{values.index[missing.to_numpy()][0]} (counted from 0); leave such rows out, or "
            "fill them in."
        )


def check_numeric(frame: Any, table: str) -> Any:
    """Return columns as an array of numbers, or name the first value that is none."""
    columns = []
    for name in frame.columns:
        column = frame[name]
        check_no_missing(column, name, table)
        if pd.api.types.is_bool_dtype(column):
            raise ValueError(f"{table}: column {name!r} must hold numbers, but holds booleans.")
        try:
            columns.append(column.to_numpy(dtype=_float_like(column)))
        except (TypeError, ValueError) as error:
            bad = pd.to_numeric(column, errors="coerce").isna().to_numpy()
            row = frame.index[bad][0] if bad.any() else frame.index[0]
            raise ValueError(
                f"{table}: column {name!r} must hold numbers, but row {row} (counted from 0) "
                f"holds {column.loc[row]!r}."
            ) from error
    return np.column_stack(columns)


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


def check_outputs(inputs: Sequence[Path | None], **outputs: Path | None) -> None:
    """Refuse files of the command line that cannot be written, or that are needed otherwise."""
    taken = [path.resolve() for path in inputs if path is not None]
    for name, path in outputs.items():
        if path is None:
            continue
        check_output(path, f"--{name}")
        if path.resolve() in taken:
            raise ValueError(
                f"--{name}: {str(path)!r} is read or written by this command already; choose "
                "another name."
            )
        if path.suffix.lower() in _WORKBOOKS:
            raise ValueError(f"--{name}: {path.name}: no workbooks are written; take .csv.")
        taken.append(path.resolve())


def check_free_columns(new: Sequence[str], present: Sequence[str]) -> None:
    """Refuse to overwrite columns of a table."""
    taken = [name for name in new if name in present]
    if taken:
        raise ValueError(
            f"The table has columns {taken} already; choose other names for the new ones, such as "
            "--prefix gate_."
        )


def refuse_groups_without_proba(groups: Any) -> None:
    """Refuse thresholds per subgroup where only one threshold can be judged."""
    if groups is not None:
        raise ValueError(
            "--policy: it has a threshold per subgroup, which is judged from probabilities only."
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
