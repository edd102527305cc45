"""Is this the registered table? Contents, whatever the file they came in."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd

from skselect import _validation as check
from skselect.datasets._registry import Entry

TARGET = "target"
# How public files write a missing value.
_MISSING = ["?", "", "nan", "None"]


def digest_of(frame: pd.DataFrame) -> str:
    """Return the SHA-256 of names and values of all columns, in their order.

    Numbers count as float64 and everything else as text, so that it depends neither on the file
    format nor on the versions of the packages that wrote or read it.
    """
    found = hashlib.sha256()
    for name in frame.columns:
        column = frame[name]
        found.update(f"\x1e{name}\x1f".encode())
        if _is_number(column):
            values = column.to_numpy(dtype="<f8", na_value=np.nan)
            found.update(np.where(np.isnan(values), np.nan, values + 0.0).tobytes())
        else:
            codes, levels = pd.factorize(_as_text(column), sort=True)
            found.update("\x1f".join(levels).encode())
            found.update(codes.astype("<i4").tobytes())
    return found.hexdigest()


def registered_form(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return a table from elsewhere with the registered names, types and order of columns.

    Raises
    ------
    ValueError
        If it has other columns, classes or counts than the registered table.
    """
    names = [*entry.features, TARGET]
    if TARGET not in frame.columns:  # public tables have it last, under a name of their own
        frame = frame.rename(columns={frame.columns[-1]: TARGET})
    frame = frame[names] if set(names) <= set(frame.columns) else frame
    check.check_dataset_shape(frame.shape, (entry.n_rows, len(names)), entry.name)
    frame = frame.set_axis(names, axis=1).reset_index(drop=True)
    columns = {}
    for name in entry.features:
        if name in entry.categorical:
            columns[name] = _as_text(frame[name]).astype("category")
        elif _is_number(frame[name]):
            columns[name] = frame[name]
        else:
            text = _as_text(frame[name])
            numbers = pd.to_numeric(text, errors="coerce")
            is_text = numbers.isna().sum() > text.isna().sum()
            columns[name] = pd.Series(text.tolist()) if is_text else numbers
    columns[TARGET] = _labels(frame[TARGET], entry)
    result = pd.DataFrame(columns)
    counts = {str(label): int(n) for label, n in result[TARGET].value_counts().items()}
    check.check_dataset_counts("class counts", counts, entry.class_counts, entry.name)
    n_missing = int(result.isna().sum().sum())
    check.check_dataset_counts("missing cells", n_missing, entry.n_missing, entry.name)
    return result


def _labels(target: pd.Series, entry: Entry) -> pd.Series:
    text = _as_text(target).str.removesuffix(".")  # UCI's test part of adult has ">50K."
    if entry.target_dtype != "int64":
        return pd.Series(text.tolist())
    numbers = pd.to_numeric(text, errors="coerce")
    check.check_dataset_counts("labels that are no numbers", int(numbers.isna().sum()), 0,
                               entry.name)  # fmt: skip
    return numbers.astype("int64")


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _as_text(column: pd.Series) -> Any:
    """Return text without spaces around it, missing where a public file says so."""
    text = column.astype(object).where(column.notna(), None)
    text = text.map(lambda value: value.decode() if isinstance(value, bytes) else value)
    text = text.map(lambda value: None if value is None else str(value).strip())
    return text.where(~text.isin(_MISSING), None).astype(object)
