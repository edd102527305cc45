"""How many labelled rows to collect, and bounds to choose from after looking."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from skselect import _validation as check
from skselect._typing import FloatArray, IntArray
from skselect.bounds import (
    combined_limits,
    critical_counts,
    sequence_limits,
    union_limits,
    walk_band,
)
from skselect.curves import RiskCoverageCurve
from skselect.thresholds._common import error_counts, passes

#: Targets of the simultaneous band, fixed beforehand.
BAND_TARGETS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
_LEAST_COVERAGE = 0.1
_MOST_ROWS = 10**9


def rows_needed(
    target: float,
    delta: float = 0.05,
    *,
    expected_errors: int = 0,
    expected_risk: float | None = None,
    power: float = 0.8,
    coverage: float = 1.0,
    method: str = "combined",
) -> int:
    """Return how many labelled rows to collect so that a risk target can be certified.

    Parameters
    ----------
    target : float in (0, 1)
        Largest selective risk.
    delta : float in (0, 1), default=0.05
        Allowed probability of failure.
    expected_errors : int, default=0
        Errors among the accepted rows that the certificate should survive.
    expected_risk : float in [0, target), default=None
        True share of errors among the accepted rows; then so many rows are returned that they
        certify with probability `power`. `expected_errors` is not used.
    power : float in (0, 1), default=0.8
    coverage : float in (0, 1], default=1
        Share of the rows that will be accepted.
    method : {"combined", "band", "fixed_sequence", "bonferroni", "fixed"}, default="combined"
        How the threshold will be found; "fixed": it is known beforehand (:func:`certify`).

    Returns
    -------
    int
        Exact for "fixed" with `expected_errors`, else to about 1 %.

    Raises
    ------
    ValueError
        If an argument is out of its range, or no number of rows up to 10^9 would do.

    Examples
    --------
    >>> from skselect import rows_needed
    >>> rows_needed(0.02, method="fixed"), rows_needed(0.02, method="fixed", expected_errors=3)
    (149, 386)
    >>> rows_needed(0.05, expected_risk=0.03, coverage=0.7)
    1000
    """
    check.check_number("target", target, 0.0, 1.0, closed="neither")
    check.check_number("delta", delta, 0.0, 1.0, closed="neither")
    check.check_number("power", power, 0.0, 1.0, closed="neither")
    check.check_number("coverage", coverage, 0.0, 1.0, closed="right")
    check.check_count("expected_errors", expected_errors, 0)
    limit = _LIMITS[check.check_choice("method", method, _LIMITS)]
    if expected_risk is not None:
        check.check_number("expected_risk", expected_risk, 0.0, target, closed="left")

    def enough(n: int) -> bool:
        k = int(coverage * n + 1e-9)
        allowed = limit(n, k, target, delta) if k else -1
        if expected_risk is None:
            return allowed >= expected_errors
        return bool(stats.binom.cdf(allowed, k, expected_risk) >= power)

    return _least_rows(enough, exact=method == "fixed" and expected_risk is None)


def _least_rows(enough: Callable[[int], bool], *, exact: bool) -> int:
    high = 1
    while not enough(high):
        high *= 2
        if high > _MOST_ROWS:
            raise ValueError(
                "expected_risk is so close to target that more than 10^9 rows would be needed; "
                "ask for a larger target."
            )
    low = high // 2
    while high - low > (1 if exact else max(high // 200, 1)):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _at_rank(ranks: IntArray, limits: IntArray, k: int) -> int:
    """Return the limit of the tested rank at or below k, -1 if there is none."""
    place = int(np.searchsorted(ranks, k, side="right")) - 1
    return int(limits[place]) if place >= 0 else -1


def _combined_limit(n: int, k: int, target: float, delta: float) -> int:
    ranks, band, sequence = combined_limits(n, target, delta, _LEAST_COVERAGE)
    return _at_rank(ranks, np.maximum(band, sequence), k)


# How many errors each method allows among the k surest of n rows.
_LIMITS: dict[str, Callable[[int, int, float, float], int]] = {
    "combined": _combined_limit,
    "band": lambda n, k, r, delta: _at_rank(*walk_band(n, r, delta, _LEAST_COVERAGE), k),
    "fixed_sequence": lambda n, k, r, delta: _at_rank(*sequence_limits(n, r, delta, 0.25), k),
    "bonferroni": lambda n, k, r, delta: _at_rank(*union_limits(n, r, delta, _LEAST_COVERAGE), k),
    "fixed": lambda _, k, r, delta: int(critical_counts(np.array([k]), r, delta)[0]),
}


def simultaneous_band(
    curve: RiskCoverageCurve, delta: float = 0.05, min_coverage: float = 0.1
) -> FloatArray:
    """Return an upper bound on the risk that holds for all thresholds at once.

    Unlike a pointwise bound it may be looked at first and used afterwards: whichever threshold
    is then chosen, its bound holds, with probability 1 - `delta` for all of them together.

    Parameters
    ----------
    curve : RiskCoverageCurve
        Of fresh, unweighted rows, with losses of 0 and 1.
    delta : float in (0, 1), default=0.05
        Probability that any of the bounds fails.
    min_coverage : float in [0, 1], default=0.1
        Smaller accepted sets get no bound.

    Returns
    -------
    ndarray of shape (B,)
        One of 0.5, 1, 2, 3, 5, 7, 10, 15, 20 and 30 % per entry of the curve, 1 where none
        holds.

    Raises
    ------
    ValueError
        If rows are weighted or losses graded.

    Notes
    -----
    Each of the ten targets is certified by :func:`bounds.walk_band` at `delta`/10.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, RiskCoverageCurve
    >>> from skselect.thresholds import simultaneous_band
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(.5, 1, 2000)
    >>> outcomes = Outcomes(rng.random(2000) < (1 - confidence) / 4, confidence)
    >>> band = simultaneous_band(RiskCoverageCurve.from_outcomes(outcomes))
    >>> band[[100, 500, 1000, -1]]
    array([1.  , 0.05, 0.05, 0.1 ])
    """
    check.check_number("delta", delta, 0.0, 1.0, closed="neither")
    check.check_countable(curve)
    bound = np.ones(len(curve))
    errors = error_counts(curve)
    for target in reversed(BAND_TARGETS):
        limits = walk_band(curve.n_rows, target, delta / len(BAND_TARGETS), min_coverage)
        bound[passes(*limits, curve.n_accepted, errors)] = target
    return bound
