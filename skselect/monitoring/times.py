"""Times as numbers: dates as microseconds since 1970, or the user's own numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_datetime64_any_dtype

from skselect._lib.checks import as_array, shown
from skselect._lib.checks.options import check_count, check_number
from skselect._lib.typing import FloatArray
from skselect.exceptions import ArgumentError

#: What times are: dates, numbers, or only the places of cases in their order.
KINDS = {"time": "dates", "number": "numbers", "none": "nothing"}


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
        span = pd.Timedelta(value) / pd.Timedelta(1, unit="us")
    except (ValueError, TypeError) as error:
        raise wrong from error
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


def read_times(
    when: Any, n: int, kind: str | None, *, needed: bool
) -> tuple[FloatArray, str | None]:
    """Return the times of `n` cases as numbers, and of which kind they are.

    `kind` is what earlier times were, or lengths of time are; None where there were none.
    """
    if when is None:
        if needed or kind in ("time", "number"):
            raise ValueError(
                "when is missing: mature_after, a batch in time, and earlier calls with when= "
                "need it in each call."
            )
        return np.full(n, np.nan), "none"
    is_dates = isinstance(when, pd.Series | pd.Index) and is_datetime64_any_dtype(when.dtype)
    values = when if is_dates else _plain_numbers(as_array(when, "when"))
    is_number = not is_dates and values.dtype.kind in "iuf" and values.size > 0
    found = kind if values.size == 0 else "number" if is_number else "time"
    if values.size and kind not in (None, found):
        raise ValueError(
            f"when must hold {KINDS[str(kind)]}, as mature_after, batch or earlier calls do, got "
            f"{shown(when)}."
        )
    times = values.astype(np.float64) if is_number else _microseconds(when)
    if not np.all(np.isfinite(times)):
        raise ValueError("when has missing or infinite values; each case needs its time.")
    if times.ndim and times.shape != (n,):
        raise ValueError(f"when must be one value or {n} values, got {shown(when)}.")
    return np.broadcast_to(times, (n,)), found


def _plain_numbers(values: Any) -> Any:
    """Return numbers among other objects as an array of numbers, if all of them are."""
    if values.dtype != object:
        return values
    are = [isinstance(value, int | float | np.number) for value in values.ravel().tolist()]
    if any(are) and not all(are):
        raise ValueError("when holds both numbers and other values; use dates only, or numbers.")
    return values.astype(np.float64) if any(are) else values


def _microseconds(when: Any) -> FloatArray:
    """Return dates as microseconds since 1970 UTC; a date without a time zone is UTC."""
    try:
        values = pd.Index([when] if np.ndim(when) == 0 else when)
        if not is_datetime64_any_dtype(values.dtype) and values.map(is_word).any():
            raise ValueError("a word is no time")  # noqa: TRY301 - reported as other wrong times
        is_text = pd.api.types.is_string_dtype(values)
        dates = _read_texts(values) if is_text else pd.to_datetime(values, utc=True)
        micro = dates.as_unit("us").asi8.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"when must hold dates (as text: 2026-01-31 or 2026-01-31T09:30:00+01:00) or numbers, "
            f"got {shown(when)}."
        ) from error
    micro[np.asarray(dates.isna())] = np.nan
    return micro if np.ndim(when) else micro[0].reshape(())


def is_word(value: Any) -> bool:
    """Tell whether a value is text that does not begin with a digit, such as "now"."""
    return isinstance(value, str) and not value.strip()[:1].isdigit()


def _read_texts(texts: pd.Index[Any]) -> pd.DatetimeIndex:
    """Return texts as dates, in one format: 1/2/2024 is a day in January, or in February."""
    # Apart, since pandas 2 reads a text without a time zone in the zone of the text before it.
    zoned = texts.astype(object).str.contains(r"[T ].*(?:Z|[+-]\d\d(?::?\d\d)?)$", na=False)
    micro = np.empty(len(texts), dtype="datetime64[us]")
    for part in (zoned, ~zoned):
        dates = pd.to_datetime(texts[part], utc=True, format="ISO8601")
        micro[part] = dates.tz_localize(None).as_unit("us")
    return pd.DatetimeIndex(micro, tz="UTC")


def to_dates(times: Any) -> pd.DatetimeIndex:
    """Return microseconds since 1970 as dates (UTC)."""
    return pd.to_datetime(np.asarray(times, dtype=np.int64), unit="us", utc=True)


def show_time(time: float, kind: str | None) -> Any:
    """Return a time as users know it."""
    if kind == "time":
        return str(pd.Timestamp(int(time), unit="us"))
    return f"case {int(time) + 1}" if kind == "none" else float(time)
