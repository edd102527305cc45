"""Answered cases that wait for their outcome; their names and times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skselect._checks import as_array, shown
from skselect._checks.options import check_count, check_number
from skselect._typing import BoolArray, FloatArray, IntArray, LabelArray


@dataclass(frozen=True)
class Cases:
    """Answered cases that have not entered, in the order in which they were decided.

    Parameters
    ----------
    id : ndarray of str, shape (n,)
    number : ndarray of shape (n,)
        Their places among all decided cases.
    when : ndarray of shape (n,)
        Microseconds since 1970, or the user's numbers.
    answer : ndarray of shape (n,)
        Codes of classes.
    promise : ndarray of shape (n,)
        Numbers of the promises they belong to.
    weight, loss : ndarray of shape (n,)
        In [0, 1]; a loss is nan as long as there is no label.
    """

    id: LabelArray
    number: IntArray
    when: FloatArray
    answer: IntArray
    promise: IntArray
    weight: FloatArray
    loss: FloatArray

    @classmethod
    def none(cls) -> Cases:
        """Return no cases."""
        return cls._of([], [], [], [], [], [], [])

    @classmethod
    def _of(cls, *columns: Any) -> Cases:
        kinds = (object, np.int64, np.float64, np.int64, np.int64, np.float64, np.float64)
        return cls(*(np.array(c, dtype=k) for c, k in zip(columns, kinds, strict=True)))

    def take(self, rows: BoolArray) -> Cases:
        """Return some of the cases."""
        return Cases(*(column[rows] for column in vars(self).values()))

    def then(self, later: Cases) -> Cases:
        """Return these cases and later ones."""
        pairs = zip(vars(self).values(), vars(later).values(), strict=True)
        return Cases(*(np.concatenate(pair) for pair in pairs))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        columns = {name: column.tolist() for name, column in vars(self).items()}
        columns["loss"] = [None if math.isnan(loss) else loss for loss in columns["loss"]]
        return columns

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Cases:
        """Rebuild them from :meth:`to_dict`."""
        columns = dict(stored)
        columns["loss"] = [math.nan if loss is None else loss for loss in stored["loss"]]
        return cls._of(*(columns[name] for name in cls.__dataclass_fields__))


def span_of_time(value: Any, name: str) -> tuple[float | None, str | None]:
    """Return a span of time in microseconds, or a number as it is, and which it is."""
    if value is None:
        return None, None
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return check_number(name, value, 0.0, math.inf, closed="left"), "number"
    try:
        span = pd.Timedelta(value) / pd.Timedelta(1, unit="us")
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{name} must be a span of time such as '30D' or '12h', or a number, got "
            f"{shown(value)}."
        ) from error
    return check_number(name, float(span), 0.0, math.inf, closed="left"), "time"


def batch_width(batch: Any) -> tuple[float, str | None]:
    """Return how many cases, or microseconds, a batch takes."""
    if isinstance(batch, int | np.integer):
        return float(check_count("batch", batch)), None
    width, kind = span_of_time(batch, "batch")
    if kind != "time" or not width:
        raise ValueError(
            f"batch must be a number of cases, or a span of time such as '1D', got {shown(batch)}."
        )
    return width, kind


def plain_span(value: Any) -> Any:
    """Return a span as JSON can hold it."""
    if value is None or isinstance(value, str | int | float):
        return value
    return value.item() if isinstance(value, np.number) else str(pd.Timedelta(value))


def microseconds(when: Any) -> FloatArray:
    """Return dates as microseconds since 1970 UTC; a date without a time zone is UTC."""
    try:
        values = pd.Index([when] if np.ndim(when) == 0 else when)
        dates = pd.DatetimeIndex(pd.to_datetime(values, utc=True))
    except (ValueError, TypeError) as error:
        raise ValueError(f"when must hold dates or numbers, got {shown(when)}.") from error
    micro = dates.as_unit("us").asi8.astype(np.float64)
    micro[np.asarray(dates.isna())] = np.nan
    return micro if np.ndim(when) else micro[0].reshape(())


def check_names(ids: Any) -> LabelArray:
    """Return the names of cases as text."""
    if isinstance(ids, range):
        ids = list(ids)
    values = as_array(ids, "ids")
    if values.ndim != 1:
        raise ValueError(f"ids must hold one name per case, got {shown(ids)}.")
    if np.any(pd.isna(values)):
        raise ValueError("ids has missing values; each case needs a name.")
    names = np.empty(len(values), dtype=object)
    names[:] = [str(value) for value in values.tolist()]
    return names


def refuse_twice(names: LabelArray, waiting: pd.Index) -> None:
    """Refuse names that would stand for two cases."""
    index = pd.Index(names, dtype=object)
    twice = names[index.duplicated() | (waiting.get_indexer(index) >= 0)] if len(names) else names
    if len(twice):
        raise ValueError(f"ids: each case needs a name of its own; not so {twice[:5].tolist()}.")
