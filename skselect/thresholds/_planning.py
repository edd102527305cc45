"""How many labelled rows to collect, and bounds on the risk at all thresholds at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from skselect._lib.arrays import FloatArray, IntArray
from skselect._lib.checks.options import (
    check_choice,
    check_count,
    check_delta,
    check_number,
    check_risk_limit,
)
from skselect._lib.checks.rows import check_countable
from skselect.bounds import _band as bands
from skselect.bounds._pointwise import (
    binomial_quantile,
    critical_counts,
    least_count,
    smallest_rank,
)
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import ArgumentError
from skselect.thresholds._rules import least_coverage, passing_runs

# Targets that people ask for, and others between them.
_ASKED = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
_BETWEEN = (
    0.006, 0.007, 0.008, 0.009, 0.012, 0.014, 0.016, 0.018, 0.025, 0.035, 0.04, 0.045, 0.06, 0.08,
    0.09, 0.12, 0.14, 0.16, 0.18, 0.25, 0.4,
)  # fmt: skip
#: Targets of the simultaneous band, fixed beforehand, and the share of delta of each.
BAND_SHARES = dict.fromkeys(_ASKED, 0.7 / len(_ASKED)) | dict.fromkeys(
    _BETWEEN, 0.3 / len(_BETWEEN)
)
# One way to be accepted: the ranks that must all pass, and how many errors each may have.
_Way = tuple[IntArray, IntArray]
# Takes n and k; returns the ways in which k of n rows may be accepted.
_FindWays = Callable[[int, int], list[_Way]]
# To this share of them, numbers of rows may be larger than needed.
_PRECISION = 0.005
# A plan averages over this many likely numbers of accepted rows.
_STRATA = 9
_MOST_ROWS = 10**8
# Methods that take a walk over all rows, and how many these may be.
_WALKING = ("combined", "band", "fixed_sequence")
_MOST_ROWS_OF_A_WALK = 10**6
# Where a fixed sequence begins.
_SEQUENCE_START = 0.25


def rows_needed(
    risk: Any,
    delta: float | None = None,
    *,
    fixed: bool = False,
    expected_errors: int = 0,
    expected_risk: float | None = None,
    power: float = 0.8,
    coverage: float = 1.0,
) -> int:
    """Return how many labelled rows to collect so that a risk target can be certified.

    Parameters
    ----------
    risk : Risk or float in (0, 0.5]
        What is to be certified; a number is short for ``Risk(number, delta=delta)``. Its method is
        "combined" (or "auto"), "band", "fixed_sequence" or "bonferroni"; `min_coverage`, `loss`
        and the rows it is about do not count.
    delta : float in (0, 0.5], default=None
        Probability that the guarantee fails. Give it only with a number. None: 0.05.
    fixed : bool, default=False
        Whether the threshold is known beforehand (:func:`skselect.certify`).
    expected_errors : int, default=0
        Errors among the accepted rows that the certificate should survive.
    expected_risk : float in [0, target), default=None
        True share of errors among the accepted rows. The rows returned are then enough to certify
        with probability `power`, even if surer rows are wrong as often as the others, and the
        next row after them is wrong. `expected_errors` is not used.
    power : float in (0, 1), default=0.8
        Probability that a threshold is certified that accepts `coverage` of all cases or more.
        It allows for the random number of rows that are among them.
    coverage : float in (0, 1], default=1
        The least share of rows to accept.

    Returns
    -------
    int
        Exact for a fixed threshold with `expected_errors`, else to about 1 %; with `expected_risk`
        it may be larger than needed.

    Raises
    ------
    ValueError
        If an argument is out of its range, or so many rows would be needed that they cannot be
        planned in seconds (a million, 10^8 for a fixed threshold and "bonferroni").

    See Also
    --------
    skselect.monitoring.detectable_risk : Which risk the monitor notices afterwards.

    Examples
    --------
    >>> from skselect.thresholds import rows_needed
    >>> rows_needed(0.02, fixed=True), rows_needed(0.02, fixed=True, expected_errors=3)
    (149, 386)
    >>> from skselect import Risk
    >>> rows_needed(Risk(0.05, max_analyses=2), expected_risk=0.03, coverage=0.7)
    2672
    """
    target, delta, method = _read_plan(risk, delta)
    start = 0.0
    if fixed:
        method = "fixed"
    elif method == "fixed_sequence":
        start = _SEQUENCE_START
    check_number("power", power, 0.0, 1.0, closed="neither")
    check_number("coverage", coverage, 0.0, 1.0, closed="right")
    check_count("expected_errors", expected_errors, 0)
    if coverage < start:
        raise ValueError(
            f"coverage must be at least {start:g} for method='fixed_sequence', which begins "
            f"there, got {coverage:g}; plan with method='combined'."
        )
    if expected_risk is not None and check_number("expected_risk", expected_risk, 0, 1) >= target:
        raise ArgumentError(
            "expected_risk",
            f"expected_risk must be below the target, {target:g}, got {expected_risk:g}: no number "
            "of rows certifies a model that errs as often as that.",
        )
    about = (expected_errors + 1) / target
    expected = f"expected_errors={expected_errors}"
    if expected_risk is not None:
        deviations = abs(special.ndtri(1e-3)) + abs(special.ndtri(power))
        about = deviations**2 * target * (1.0 - target) / (target - expected_risk) ** 2
        expected = f"expected_risk={expected_risk:g}"
    # What would need more rows than can be planned in seconds is refused.
    most = _MOST_ROWS_OF_A_WALK if method in _WALKING else _MOST_ROWS
    if about / coverage > most:
        raise ValueError(
            f"{expected} at target={target:g} and coverage={coverage:g} may take more than "
            f"{most:,} rows, the most that can be planned for this method; ask for a larger "
            "target, or plan with fixed=True."
        )

    def find_ways(n: int, k: int) -> list[_Way]:
        return _ways(method, n, k, target, delta, min(least_coverage(n), coverage))

    if expected_risk is None:
        return _rows_for_errors(find_ways, expected_errors, coverage, exact=fixed)
    beyond = int(not fixed and coverage < 1.0)
    return _rows_for_risk(find_ways, expected_risk, coverage, power, beyond)


def _rows_for_errors(find_ways: _FindWays, n_errors: int, coverage: float, *, exact: bool) -> int:
    """Return how many rows certify so many errors."""

    def is_enough(n: int) -> bool:
        ways = find_ways(n, smallest_rank(n, coverage))
        return any(int(limits[-1]) >= n_errors for _, limits in ways)

    return least_count(is_enough, 0.0 if exact else _PRECISION)


def _rows_for_risk(
    find_ways: _FindWays, risk: float, coverage: float, power: float, beyond: int
) -> int:
    """Return how many rows certify with a probability of at least `power`."""

    def is_enough(n: int) -> bool:
        chances = []
        for k in _numbers_accepted(n, coverage):
            of_ways = [_passing(way, risk, beyond) for way in find_ways(n, k)]
            chances.append(max(of_ways, default=0.0))
        return float(np.mean(chances)) >= power

    return least_count(is_enough, _PRECISION)


def _read_plan(risk: Any, delta: float | None) -> tuple[float, float, str]:
    """Return the target, the level of one analysis, and how a threshold will be found."""
    if not hasattr(risk, "get_params"):
        target = risk
        level = 0.05 if delta is None else delta
        n_analyses = 1
        method = "auto"
    elif not getattr(risk, "is_selective", False):
        raise ValueError(
            f"risk must be a Risk or a number, got {risk!r}: no other objective is planned."
        )
    elif delta is not None:
        raise ValueError(f"delta goes with a number, not with {risk!r}, which has its own.")
    else:
        target = risk.target
        level = risk.delta
        n_analyses = risk.max_analyses
        method = risk.method
    target = check_number("target", target, 0.0, 1.0, closed="neither")
    target = check_risk_limit(target)
    level = check_delta(level) / check_count("max_analyses", n_analyses)
    check_choice("method", method, ["auto", "combined", "band", "fixed_sequence", "bonferroni"])
    return target, level, "combined" if method == "auto" else method


def _numbers_accepted(n: int, coverage: float) -> list[int]:
    """Return nine equally likely numbers of rows, of n, that a share of the population holds."""
    if coverage == 1.0:
        return [n]
    middles = (np.arange(_STRATA) + 0.5) / _STRATA
    return [max(binomial_quantile(middle, n, coverage), 1) for middle in middles]


def _passing(way: _Way, risk: float, beyond: int) -> float:
    """Return the probability that all ranks of a way pass.

    To accept the whole share, a threshold must also accept the next row `beyond` it (0 or 1
    rows), which may be wrong.
    """
    ranks, limits = way
    limits = np.append(limits[:-1], limits[-1] - beyond)
    return bands.staying_probability(ranks, limits, risk)


def _last(ranks: IntArray, limits: IntArray, k: int) -> _Way:
    """Return what a band requires of k: the limit of the last tested rank up to it."""
    place = int(np.searchsorted(ranks, k, side="right"))
    return np.full(min(place, 1), k), limits[max(place - 1, 0) : place]


def _all_up_to(ranks: IntArray, limits: IntArray, k: int) -> _Way:
    """Return what a sequence up to k has to pass: between two ranks the lower one's limit holds."""
    is_tested = (ranks <= k) & (limits >= 0)
    ends = np.append(ranks[is_tested][1:], k)
    limits = limits[is_tested]
    return ends[: len(limits)], limits


def _ways(
    method: str, n: int, k: int, target: float, delta: float, least_coverage: float
) -> list[_Way]:
    """Return the ways in which a threshold, found by a method, may accept k of n rows."""
    if method == "fixed":
        ranks = np.array([k])
        ways = [(ranks, critical_counts(ranks, target, delta))]
    elif method == "combined":
        ranks, band, sequence = bands.combined_limits(n, target, delta, least_coverage)
        ways = [_all_up_to(ranks, sequence, k), _last(ranks, band, k)]
    elif method == "fixed_sequence":
        ranks, limits = bands.sequence_limits(n, target, delta, _SEQUENCE_START)
        ways = [_all_up_to(ranks, limits, k)]
    else:
        find_limits = bands.walk_band if method == "band" else bands.union_limits
        ranks, limits = find_limits(n, target, delta, least_coverage)
        ways = [_last(ranks, limits, k)]
    return [(ranks, limits) for ranks, limits in ways if len(ranks)]


def pool_size(n_labels: int, expected_coverage: float) -> int:
    """Return how many unlabelled rows a pool should hold, given how many of them will be judged.

    Labels below the threshold are wasted, and a pool of which few rows can be judged accepts few.
    So choose its size such that about as many rows will be accepted as you can judge.

    Parameters
    ----------
    n_labels : int
        How many rows you can judge.
    expected_coverage : float in (0, 1]
        The share of cases that the target lets through, as other labelled rows show it, such as
        out-of-fold predictions of the training rows.

    Returns
    -------
    int
        `n_labels` / `expected_coverage`, rounded up.

    Raises
    ------
    ValueError
        If an argument is not in its range.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, Risk, select_threshold
    >>> from skselect.thresholds import pool_size
    >>> sure = np.random.default_rng(0).permutation(100)
    >>> other = Outcomes(sure < 40, sure)
    >>> expected = select_threshold(other, objective=Risk(.25, method="empirical")).coverage
    >>> expected, pool_size(400, expected)
    (0.8, 500)
    """
    share = check_number("expected_coverage", expected_coverage, 0.0, 1.0, closed="right")
    check_count("n_labels", n_labels)
    return math.ceil(n_labels / share - 1e-9)


def simultaneous_band(
    curve: RiskCoverageCurve, delta: float = 0.05, min_coverage: float = 0.1
) -> FloatArray:
    """Return an upper bound on the risk that holds for all thresholds at once.

    Unlike with pointwise bounds you may look at all of them before you choose a threshold: with
    probability 1 - `delta` all hold together.

    Parameters
    ----------
    curve : RiskCoverageCurve
        Of fresh, unweighted rows, with losses of 0 and 1.
    delta : float in (0, 0.5], default=0.05
        Probability that the guarantee fails. It covers all bounds together.
    min_coverage : float in [0, 1], default=0.1
        Smaller accepted sets are not considered. They get no bound.

    Returns
    -------
    ndarray of shape (B,)
        One of 31 targets from 0.5 to 40 % per entry of the curve, 1 where none holds.

    Raises
    ------
    ValueError
        If rows are weighted or losses graded.

    Notes
    -----
    Each target is certified by :func:`~skselect.bounds.walk_band` at a share of `delta`: 7 % for
    each of 0.5, 1, 2, 3, 5, 7, 10, 15, 20 and 30 %, which people ask for, and 1/70 for each of 21
    others, which make the steps between them finer.

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
    array([1.  , 0.04, 0.05, 0.09])
    """
    check_delta(delta)
    check_countable(curve)
    bound = np.ones(len(curve))

    def pass_the_same(ranks: IntArray, low: IntArray, high: IntArray) -> bool:
        return np.array_equal(passing_runs(curve, ranks, low), passing_runs(curve, ranks, high))

    for target, share in sorted(BAND_SHARES.items(), reverse=True):
        ranks, limits = bands.walk_until_alike(
            curve.n_rows, target, delta * share, min_coverage, pass_the_same
        )
        runs = passing_runs(curve, ranks, limits)
        for begin, end in zip(*runs, strict=True):
            bound[begin:end] = target
    return bound
