"""Which cases of a log count, what the time is, and whether decisions still arrive."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skselect._lib.arrays import FloatArray
from skselect.cli.options import MonitorOptions
from skselect.monitoring.log import KINDS, read_dates, show_time, span_of_time
from skselect.policy.policy import AbstentionPolicy

_DAY = 86400e6  # in microseconds
# The usual gaps are those of so many days before the newest decision, and at least so many gaps,
# but for the longest ones.
_USUAL_DAYS = 90
_LEAST_GAPS = 3
_USUAL = 0.95
# Without --max-age no gap of more days is waited for, or so many times the median gap.
_MOST_DAYS = 14
_MOST_GAPS = 1.5


@dataclass(frozen=True)
class Span:
    """Which cases count, and when a run asks; times are as those of the log."""

    kind: str
    since: float
    now: float
    #: When labels are asked for: those of older cases should be known.
    until: float
    #: Whether the beginning is when the policy was made.
    is_from_policy: bool
    #: Whether the present time is known: numbers have no clock.
    has_clock: bool

    @property
    def start(self) -> str:
        """The beginning, as users know it."""
        if self.since == -math.inf:
            return "the first one"
        return str(show_time(self.since, self.kind))


def find_span(
    options: MonitorOptions,
    policy: AbstentionPolicy,
    when: FloatArray,
    kind: str,
    clock: Callable[[], float],
) -> Span:
    """Return the beginning and the present time. Numbers have no clock: the last row is now."""
    is_time = kind == "time"
    newest = float(np.max(when))
    now = newest
    since = -math.inf
    if options.now is not None:
        now = _read_time("--now", options.now, kind)
    elif is_time:
        now = clock() * 1e6
    if options.since is not None:
        since = _read_time("--since", options.since, kind)
    elif is_time:  # no policy was made at a number
        since = _read_time("--since", policy.created, kind)
    return Span(
        kind,
        since,
        now,
        # No label means that the answer was correct only as far as the log goes.
        until=now if options.unlabelled == "wait" else newest,
        is_from_policy=is_time and options.since is None,
        has_clock=is_time or options.now is not None,
    )


def check_length(option: str, length: float | str | None, kind: str) -> None:
    """Refuse a length of time that is not of the kind of the times."""
    if length is not None and (kind == "time") != isinstance(length, str):
        wanted = "a number" if kind == "number" else f"a unit, such as {length}D"
        raise ValueError(f"{option}: the times of the log are {KINDS[kind]}, so it needs {wanted}.")


def _read_time(option: str, value: Any, kind: str) -> float:
    """Return a time of the command line or of a policy, as the times of the log are."""
    is_number = isinstance(value, int | float)
    moment = float(value) if is_number else float(read_dates([value])[0])
    if math.isnan(moment) or is_number != (kind == "number"):
        wanted = "a number" if kind == "number" else "a date such as 2026-01-31T09:30"
        raise ValueError(f"{option} must be {wanted}, as the times of the log are, got {value!r}.")
    return moment


def find_stale(rows: pd.DataFrame, span: Span, max_age: float | str | None) -> str:
    """Say that the newest decision of a log is too old, "" if it is not; refuse the future."""
    when = rows["when"].to_numpy()
    kind = span.kind
    check_length("--max-age", max_age, kind)
    if kind == "time":
        _refuse_future(rows, span)
    if not span.has_clock:
        if max_age is not None:
            raise ValueError(
                "--max-age: the times of the log are numbers, which have no clock; pass --now as "
                "well."
            )
        return ""
    decided = when[rows["is decided"].to_numpy()]
    if len(decided) == 0:
        return "STALE: no row of the log holds a decision."
    newest = float(np.max(decided))
    largest_age, _ = span_of_time(max_age, "max_age")
    if largest_age is None:
        if kind != "time":
            return ""
        largest_age = usual_age(decided)
    age = span.now - newest
    if age <= largest_age:
        return ""
    old = f"{age:.6g} before now; at most {largest_age:.6g} is expected"
    if kind == "time":
        days = largest_age / _DAY
        old = f"{age / _DAY:.4g} days before now; at most {days:.4g} days are expected"
    return (
        f"STALE: the newest decision of the log is of {show_time(newest, kind)}, {old} "
        "(--max-age). Whether the guarantee is kept now is not known; what follows was known then."
    )


def _refuse_future(rows: pd.DataFrame, span: Span) -> None:
    """Refuse a date that is more than a day ahead."""
    when = rows["when"].to_numpy()
    last_row = int(np.argmax(when))
    if when[last_row] - span.now > _DAY:
        newest = show_time(when[last_row], "time")
        raise ValueError(
            f"--time: case {rows['id'].iloc[last_row]!r} has {newest}, more than a day after now "
            f"({show_time(span.now, 'time')}); correct the date, or the clock."
        )


def usual_age(decided: FloatArray) -> float:
    """Return twice the longest usual gap between days with decisions, two weeks at most.

    Usual gaps are those of the last 90 days, and the last three, but for the longest twentieth,
    such as an outage. Batches that are further apart may be half as late again as their median gap.
    """
    days = np.unique(decided // _DAY)
    n_usual = np.count_nonzero(days >= days[-1] - _USUAL_DAYS)
    n_days = max(int(n_usual), _LEAST_GAPS + 1)
    days = days[-n_days:]
    # A log of less than two weeks may not have shown its weekend.
    gap = 1.0 if days[-1] - days[0] >= 14 else 4.0
    most = float(_MOST_DAYS)
    gaps = np.diff(days)
    if len(gaps):
        gap = max(gap, float(np.quantile(gaps, _USUAL, method="higher")))
        most = max(most, _MOST_GAPS * float(np.median(gaps)))
    return min(2.0 * gap, most) * _DAY


def tell_no_clock(span: Span, max_age: float | str | None) -> str:
    """Say that nobody looks whether decisions still arrive, "" where somebody does."""
    if span.kind == "time" or (span.has_clock and max_age is not None):
        return ""
    return (
        "The times are numbers, which have no clock: whether decisions still arrive is not "
        "checked (--now and --max-age)."
    )
