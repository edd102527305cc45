"""What is known about each data set: its shape, its classes, its contents, its pitfalls."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skselect._lib.checks import did_you_mean

TARGET = "target"
# How public files write a missing value.
_MISSING = ["?", "", "nan", "None"]


@dataclass(frozen=True, eq=False)
class Entry:
    """One data set of the registry.

    Parameters
    ----------
    name, title : str
    n_rows : int
    features, categorical : list of str
        All columns but the target, and those that hold categories.
    class_counts : dict of str to int
        Rows per class, by the text of its label.
    target_dtype : {"int64", "str"}
    n_missing, n_duplicates : int
        Missing cells; rows that repeat an earlier one, target included.
    positive_class : object
        The class of interest of two, or None.
    n_train : int or None
        The number of rows, at the top, that are the official training part.
    leaky_features : list of str
        Columns that are not yet known when a prediction is needed.
    sources : dict of str to object
        Where to get it: scikit-learn's loader, OpenML's and UCI's number.
    license, citation, notes : str
    digest : str
        Digest of the contents, see `compute_digest`.
    texts : list of str
        Columns of free text.
    """

    name: str
    title: str
    n_rows: int
    features: list[str]
    categorical: list[str]
    class_counts: dict[str, int]
    target_dtype: str
    n_missing: int
    n_duplicates: int
    positive_class: Any
    n_train: int | None
    leaky_features: list[str]
    sources: dict[str, Any]
    license: str
    citation: str
    notes: str
    digest: str
    texts: list[str] = field(default_factory=list)

    @property
    def classes(self) -> list[Any]:
        """The labels, sorted."""
        labels = list(self.class_counts)
        return sorted(map(int, labels)) if self.target_dtype == "int64" else sorted(labels)

    @property
    def majority(self) -> float:
        """The share of the largest class, which is the accuracy of always predicting it."""
        return max(self.class_counts.values()) / self.n_rows


@cache
def registry() -> dict[str, Entry]:
    """Return all entries by name."""
    text = (Path(__file__).parent / "registry.json").read_text("utf-8")
    return {name: Entry(name=name, **known) for name, known in sorted(json.loads(text).items())}


def find_entry(name: Any) -> Entry:
    """Return the entry of this name; else raise, suggesting similar names."""
    known = registry()
    if isinstance(name, str) and name in known:
        return known[name]
    raise ValueError(
        f"name must be one of the {len(known)} of list_datasets(), got {name!r}."
        f"{did_you_mean(name, known)}"
    )


def compute_digest(frame: pd.DataFrame) -> str:
    """Return the SHA-256 of names and values of all columns, in their order.

    Numbers are taken as float64 and everything else as text, so that the digest depends neither on
    the file format nor on the versions of packages.
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


def as_registered(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return a table from elsewhere with the registered names, types and order of columns.

    Raises
    ------
    ValueError
        If it has other columns, classes or counts than the registered table.
    """
    names = [*entry.features, TARGET]
    if TARGET not in frame.columns:  # public tables have it last, under another name
        frame = frame.rename(columns={frame.columns[-1]: TARGET})
    frame = frame[names] if set(names) <= set(frame.columns) else frame
    if frame.shape != (entry.n_rows, len(names)):
        raise ValueError(
            f"it has {frame.shape[0]} rows and {frame.shape[1]} columns, {entry.name!r} has "
            f"{entry.n_rows} and {len(names)}"
        )
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
    columns[TARGET] = _read_labels(frame[TARGET], entry)
    result = pd.DataFrame(columns)
    counts = {str(label): int(n) for label, n in result[TARGET].value_counts().items()}
    _check_count("class counts", counts, entry.class_counts, entry.name)
    n_missing = int(result.isna().sum().sum())
    _check_count("missing cells", n_missing, entry.n_missing, entry.name)
    return result


def _read_labels(target: pd.Series, entry: Entry) -> pd.Series:
    text = _as_text(target).str.removesuffix(".")  # UCI's test part of adult has ">50K."
    if entry.target_dtype != "int64":
        return pd.Series(text.tolist())
    numbers = pd.to_numeric(text, errors="coerce")
    _check_count("labels that are no numbers", int(numbers.isna().sum()), 0, entry.name)
    return numbers.astype("int64")


def _check_count(what: str, found: Any, registered: Any, name: str) -> None:
    """Refuse a table whose count differs from the registered one."""
    if found != registered:
        raise ValueError(f"its {what} are {found}, those of {name!r} {registered}")


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _as_text(column: pd.Series) -> Any:
    """Return stripped text, None for the marks of missing values in public files."""
    text = column.astype(object).where(column.notna(), None)
    text = text.map(lambda value: value.decode() if isinstance(value, bytes) else value)
    text = text.map(lambda value: None if value is None else str(value).strip())
    return text.where(~text.isin(_MISSING), None).astype(object)
