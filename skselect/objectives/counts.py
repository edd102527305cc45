"""Counts of rows, and what they show of a share or a mean that a guarantee bounds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skselect._lib.arrays import BoolArray, FloatArray
from skselect.bounds._pointwise import anytime_upper, betting_upper, clopper_pearson_upper

#: A guarantee that is kept is in doubt with this probability at most; several share it evenly.
DOUBT = 0.1
#: The probability with which a verdict would have found what it says it would.
FOUND = 0.95
#: The probability with which a review would show one and a half times the target.
REVIEWED = 0.8
#: How a threshold that was fixed beforehand is certified: by counting.
FIXED_METHOD = "clopper-pearson"


class Counts(NamedTuple):
    """How many rows there are, and how many are accepted; how many of these have a loss.

    `n_missed` are rows that are not accepted, and that a reviewer gets wrong.
    """

    n: int
    n_accepted: int
    n_errors: int
    n_missed: int = 0

    @classmethod
    def of(cls, loss: FloatArray, accepted: BoolArray, missed: FloatArray | None = None) -> Counts:
        """Count rows by their losses, and those of a reviewer, and by which rows are accepted."""
        n_missed = 0
        if missed is not None:
            n_missed = int(np.count_nonzero((missed != 0) & ~accepted))
        return cls(
            n=len(loss),
            n_accepted=int(np.count_nonzero(accepted)),
            n_errors=int(np.count_nonzero(accepted & (loss != 0))),
            n_missed=n_missed,
        )


class Finding(NamedTuple):
    """What rows show of a guarantee: the share or mean that it bounds, and bounds, in [0, 1].

    `p_value` is the exact chance of such rows, or worse, at the target. Rows like these would put a
    true share of `detectable`, or worse, in doubt with probability .95; nan where none. It rests on
    `counts`, and on the `values` whose mean must be small, None where the counts say all.
    `readings` are what each of several readings of the rows shows.
    """

    verdict: str
    value: float
    low: float
    high: float
    p_value: float
    detectable: float
    counts: Counts = Counts(0, 0, 0)
    values: FloatArray | None = None
    readings: tuple[Finding, ...] = ()


def find_mean(
    count: int, n: int, graded: FloatArray | None, level: float, *, anytime: bool
) -> tuple[float, float, float]:
    """Return a mean, and bounds from below and above that fail with probability `level` each.

    It is that of `graded` values, or a share: `count` of `n`.
    """
    if graded is not None:
        high = betting_upper(graded, level, anytime=anytime)
        low = 1.0 - betting_upper(1.0 - graded, level, anytime=anytime)
        mean = float(np.mean(graded)) if len(graded) else math.nan
        return mean, low, high
    upper = anytime_upper if anytime else clopper_pearson_upper
    high = upper(count, n, level)
    low = 1.0 - upper(n - count, n, level)
    mean = count / n if n else math.nan
    return mean, low, high
