"""The log of decided cases: their times, their names, and those that wait for a label."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import infer_dtype, is_datetime64_any_dtype

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, LabelArray, as_array
from skselect._lib.checks import shown
from skselect._lib.checks.options import check_count, check_number
from skselect._lib.notebook import noun_of
from skselect.exceptions import ArgumentError

# Times --------------------------------------------------------------------------------------------


#: What times are: dates, numbers, or only the places of cases in their order.
KINDS = {"time": "dates", "number": "numbers", "none": "nothing"}
#: What times are, by what pandas finds in a column.
_NUMBERS = dict.fromkeys(("integer", "floating", "mixed-integer-float"), "number")
_DATES = dict.fromkeys(("datetime64", "datetime", "date", "string", "empty"), "time")
_INFERRED = _NUMBERS | _DATES


# A day in microseconds, and about how many of them a batch of the calendar takes.
_DAY = 86400e6
_CALENDAR = {"day": 1, "week": 7, "month": 30}


def span_of_time(value: Any, name: str) -> tuple[float | None, str | None]:
    """Return a span of time in microseconds, or a number as it is, and which it is."""
    if value is None:
        return None, None
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return check_number(name, value, 0.0, math.inf, closed="left"), "number"
    wrong = ArgumentError(
        name,
        f"{name} must be a span of time such as '30D' or '12h', or a number, got {shown(value)}.",
    )
    if isinstance(value, str) and value.strip().isdigit():  # pandas would take nanoseconds
        raise wrong
    try:
        span = pd.Timedelta(value)
    except (ValueError, TypeError) as error:
        raise wrong from error
    microseconds = float(span / pd.Timedelta(1, unit="us"))
    return check_number(name, microseconds, 0.0, math.inf, closed="left"), "time"


class Batches(NamedTuple):
    """How decided cases are divided: by their number, or by time.

    Parameters
    ----------
    unit : {"cases", "span", "day", "week", "month"}
    width : float
        So many cases, or microseconds; for a month about as many.
    """

    unit: str
    width: float

    @classmethod
    def read(cls, batch: Any) -> Batches:
        """Read what a user says: a number of cases, a word, or a span of time."""
        if isinstance(batch, int | np.integer):
            return cls("cases", float(check_count("batch", batch)))
        if isinstance(batch, str) and batch in _CALENDAR:
            return cls(batch, _CALENDAR[batch] * _DAY)
        width, kind = span_of_time(batch, "batch")
        if kind != "time" or not width:
            raise ValueError(
                "batch must be a number of cases, a span of time such as '1D', or day, week or "
                f"month, got {shown(batch)}."
            )
        return cls("span", width)

    @property
    def counts_cases(self) -> bool:
        """Whether so many cases are a batch; else times say it."""
        return self.unit == "cases"

    @property
    def is_calendar(self) -> bool:
        """Whether a batch is a day, a week or a month."""
        return self.unit in _CALENDAR

    def number(self, cases: IntArray, times: FloatArray) -> FloatArray:
        """Return the batch of each case as a number, from the numbers of the cases or times."""
        if self.unit == "month":
            dates = to_dates(times)
            return np.asarray(12.0 * dates.year + dates.month)
        places = cases.astype(np.float64) if self.counts_cases else times
        if self.unit == "week":  # 1970 began on a Thursday, a week begins on a Monday
            places = places + 3 * _DAY
        return np.floor_divide(places, self.width)

    def name(self, start: float, kind: str | None) -> str:
        """Return what a batch is called, of which the first case was decided at a time."""
        if not self.is_calendar:
            return str(show_time(start, kind))
        [date] = to_dates([start])
        form = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}
        return str(date.strftime(form[self.unit]))


def plain_span(value: Any) -> Any:
    """Return a span as JSON can hold it."""
    if value is None or isinstance(value, str | int | float):
        return value
    return value.item() if isinstance(value, np.number) else str(pd.Timedelta(value))


def read_times(
    when: Any, n: int, kind: str | None, *, needed: bool
) -> tuple[FloatArray, str | None]:
    """Return the times of `n` cases as numbers, and of which kind they are.

    `kind` is what earlier times were, or lengths of time are; None where there were none.
    """
    if when is None:
        if needed or kind in ("time", "number"):
            raise ValueError(
                "when is missing: pass it in each call, because this monitor uses label_delay, a "
                "batch in time, or when= in earlier calls."
            )
        return np.full(n, np.nan), "none"
    try:
        times, inferred = _read_values(when)
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(
            "when must hold dates (datetimes, or text: 2026-01-31 or 2026-01-31T09:30:00+01:00) or "
            f"numbers, all of one kind, got {shown(when)}."
        ) from error
    if inferred is None:
        inferred = kind
    elif kind not in (None, inferred):
        raise ValueError(
            f"when must hold {KINDS[str(kind)]}, as label_delay, batch or earlier calls do, got "
            f"{shown(when)}."
        )
    if not np.all(np.isfinite(times)):
        raise ValueError("when has missing or infinite values; each case needs its time.")
    if np.ndim(when) and np.shape(when) != (n,):
        raise ValueError(f"when must be one value or {n} values, got {shown(when)}.")
    return np.broadcast_to(times, (n,)), inferred


def _read_values(when: Any) -> tuple[FloatArray, str | None]:
    """Return times as numbers, and of which kind they are; None where there are none."""
    values = when
    if not (isinstance(when, pd.Series | pd.Index) and is_datetime64_any_dtype(when.dtype)):
        # A text is one date, of all cases.
        dates = [when] if isinstance(when, str) else when
        values = as_array(dates, "when").ravel()
    if values.size == 0:
        return np.empty(0), None
    kind = _INFERRED[infer_dtype(values)]
    if kind == "number":
        return np.asarray(values, np.float64), kind
    return _microseconds(when), kind


def _microseconds(when: Any) -> FloatArray:
    """Return dates as microseconds since 1970 UTC; nan where one is missing."""
    if np.ndim(when) == 0:
        when = [when]
    values = pd.Index(when)
    times = read_dates(values)
    if np.any(np.isnan(times) & ~values.isna()):
        raise ValueError("a value is no date")
    return times


def read_dates(values: Any, form: str = "ISO8601") -> FloatArray:
    """Return dates as microseconds since 1970 UTC, nan where a value is none.

    Texts have one form, for 1/2/2024 is a day in January, or in February. Without a time zone they
    are UTC.
    """
    index = pd.Index(values)
    if not pd.api.types.is_string_dtype(index):
        return _count_microseconds(pd.to_datetime(index, utc=True, errors="coerce"))
    texts = index.astype(str)
    times = np.full(len(texts), np.nan)
    begins_with_digit = texts.str.match(r"\s*\d", na=False)  # pandas would read "now"
    zoned = texts.str.contains(r"[T ].*(?:Z|[+-]\d\d(?::?\d\d)?)$", na=False)
    # Apart, since pandas 2 reads a text without a time zone in the zone of the text before it.
    for part in (zoned & begins_with_digit, ~zoned & begins_with_digit):
        dates = pd.to_datetime(texts[part], utc=True, format=form, errors="coerce")
        times[part] = _count_microseconds(dates)
    return times


def _count_microseconds(dates: pd.DatetimeIndex) -> FloatArray:
    """Return dates as microseconds since 1970 UTC, nan where one is missing."""
    microseconds = dates.as_unit("us").asi8.astype(np.float64)
    return np.where(dates.isna(), np.nan, microseconds)


def to_dates(times: Any) -> pd.DatetimeIndex:
    """Return microseconds since 1970 as dates (UTC)."""
    return pd.to_datetime(np.asarray(times, dtype=np.int64), unit="us", utc=True)


def show_time(time: float, kind: str | None) -> Any:
    """Return a time as users know it."""
    if kind == "time":
        return str(pd.Timestamp(int(time), unit="us"))
    if kind == "none":
        return f"case {int(time) + 1}"
    return float(time)


# Cases --------------------------------------------------------------------------------------------


#: An answered case that has not entered: its name, its place among all decided cases, when it was
#: decided (microseconds since 1970, or the user's numbers), the code of its answer, the number of
#: its guarantee, its weight, and its loss, which is nan as long as there is no label.
CASE = np.dtype(
    [("id", "O"), ("number", "i8"), ("when", "f8"), ("answer", "i8"), ("guarantee", "i8"),
     ("weight", "f8"), ("loss", "f8")]
)  # fmt: skip


def cases_of(**columns: Any) -> NDArray[Any]:
    """Return cases, one row each, from the columns of `CASE`."""
    cases = np.empty(len(columns["id"]), CASE)
    for name in CASE.names or ():
        values = np.asarray(columns[name], CASE[name])
        if values.shape != cases.shape:
            raise ValueError("the columns of cases have different lengths")
        cases[name] = values
    return cases


def check_names(ids: Any) -> LabelArray:
    """Return the names of cases as text."""
    if isinstance(ids, range):
        ids = list(ids)
    values = as_array(ids, "ids")
    if values.ndim != 1:
        raise ValueError(f"ids must hold one name per case, got {shown(ids)}.")
    if np.any(pd.isna(values)):
        raise ValueError("ids has missing values; each case needs a name.")
    if infer_dtype(values, skipna=False) == "string":
        return values.astype(object)
    names = np.empty(len(values), dtype=object)
    names[:] = [_name_of(value) for value in values.tolist()]
    return names


def _name_of(value: Any) -> str:
    """Return a value as text; a column of integers in which one was missing holds 7.0 for 7."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def check_unique_ids(names: LabelArray, logged_names: Any) -> None:
    """Refuse names that would stand for two cases."""
    distinct = set(names.tolist())
    if len(distinct) == len(names) and distinct.isdisjoint(logged_names):
        return
    column = pd.Series(names, dtype=object)
    is_taken = column.duplicated() | column.isin(logged_names)
    taken = column[is_taken].tolist()
    if taken:
        raise ValueError(f"ids: each case needs a name of its own; not so {taken[:5]}.")


def read_audits(
    audited: Any, audit_proba: Any, n: int, smallest: float
) -> tuple[FloatArray, BoolArray]:
    """Return the weight of each case, and whether its label will be found out."""
    if audited is None:
        if audit_proba is not None or smallest < 1.0:
            raise ValueError(
                "audited is missing: with audit_proba= or min_audit_proba= below 1 say which "
                "cases were drawn, such as audited=rng.random(n) < audit_proba."
            )
        return np.ones(n), np.ones(n, dtype=bool)
    drawn = as_array(audited, "audited")
    if (drawn.size and drawn.dtype.kind != "b") or drawn.shape != (n,):
        raise ValueError(
            f"audited must hold True or False for each of the {n} {noun_of(n, 'case')}, got "
            f"{shown(audited)}."
        )
    if audit_proba is None:
        audit_proba = smallest
    proba = as_array(audit_proba, "audit_proba")
    if proba.dtype.kind not in "iuf" or proba.shape not in ((), (n,)):
        raise ValueError(
            f"audit_proba must be a number, or {n} numbers, one for each case, got "
            f"{shown(audit_proba)}."
        )
    proba = np.broadcast_to(proba.astype(np.float64), (n,))
    if not np.all((proba >= smallest) & (proba <= 1.0)):
        raise ValueError(
            f"audit_proba must lie between min_audit_proba={smallest:g} and 1, got values from "
            f"{np.min(proba):g} to {np.max(proba):g}. Set min_audit_proba= to the smallest "
            "probability with which a case may be drawn."
        )
    return smallest / proba, drawn.astype(bool)
