"""The threshold with the best value of a metric, among all that can be best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, reaches, stays_within
from skselect.curve import areas
from skselect.curve.curve import RiskCoverageCurve, threshold_below

#: Metrics that can be tuned.
TUNABLE_METRICS = ("cwsa_plus", "cwsa", "selective_accuracy")
#: Constraints that bound from above.
AT_MOST = ("risk", "generalized_risk")
#: Constraints that bound from below.
AT_LEAST = ("coverage", "selective_accuracy")
# One-sided 95 % of the normal distribution.
_LOWER_BOUND_ERRORS = 1.645


@dataclass(frozen=True)
class MetricOptimum:
    """The threshold with the best value of a metric.

    Parameters
    ----------
    threshold : float
    n_blocks : int
        Accepted entries of the curve.
    value : float
        The metric there.
    best : float
        What is largest there: the value, or its lower bound.
    unconstrained : float
        Its largest value within the range, without constraints or least coverage; above `best`
        where they matter.
    n_unconstrained : int
        Entries of the curve that are accepted there.
    """

    threshold: float
    n_blocks: int
    value: float
    best: float
    unconstrained: float
    n_unconstrained: int


class _Candidates(NamedTuple):
    """Thresholds that can be best, by rising coverage, with accepted entries and metric."""

    thresholds: FloatArray
    n_blocks: IntArray
    values: FloatArray


def best_metric(
    curve: RiskCoverageCurve,
    metric: str,
    min_coverage: float,
    constraints: tuple[tuple[str, float], ...] = (),
    *,
    bounds_luck: bool = False,
    threshold_range: tuple[float, float] = (0.0, 1.0),
) -> MetricOptimum | None:
    """Scan every threshold that can be best; among equal values take the largest coverage.

    Parameters
    ----------
    curve : RiskCoverageCurve
    metric : str
        One of `TUNABLE_METRICS`.
    min_coverage : float in [0, 1]
    constraints : tuple of (str, float), default=()
        Bounds that the accepted rows must keep as well.
    bounds_luck : bool, default=False
        Whether the value less 1.645 standard errors is to be largest, instead of the value.
    threshold_range : tuple of float, default=(0.0, 1.0)
        For CWSA and CWSA+: thresholds from the first number on and below the second are scanned.

    Returns
    -------
    MetricOptimum or None
        None if no threshold in the range accepts enough rows and keeps the constraints.
    """
    candidates = _candidates(curve, metric, threshold_range)
    thresholds, n_blocks, values = candidates
    scores = values
    if bounds_luck:
        scores = values - _LOWER_BOUND_ERRORS * _standard_errors(curve, metric, candidates)
    allowed = reaches(curve.coverage, min_coverage)
    if constraints:
        allowed &= keeps(curve, constraints)
    allowed = allowed[n_blocks - 1]
    if not np.any(allowed):
        return None
    allowed_scores = np.where(allowed, scores, -np.inf)
    best = np.max(allowed_scores)
    # Candidates are ordered by coverage, so the last of equal values has the largest.
    chosen = np.flatnonzero(allowed_scores == best)[-1]
    threshold = float(thresholds[chosen])
    if metric == "selective_accuracy":
        threshold = threshold_below(curve, int(n_blocks[chosen]))
    free = int(np.argmax(scores))
    return MetricOptimum(
        threshold,
        n_blocks=int(n_blocks[chosen]),
        value=float(values[chosen]),
        best=float(best),
        unconstrained=float(scores[free]),
        n_unconstrained=int(n_blocks[free]),
    )


def keeps(curve: RiskCoverageCurve, constraints: tuple[tuple[str, float], ...]) -> BoolArray:
    """Tell which entries of a curve keep every constraint."""
    keeping = np.ones(len(curve), dtype=bool)
    for name, bound in constraints:
        if name in AT_MOST:
            risk = curve.selective_risk if name == "risk" else curve.generalized_risk
            keeping &= stays_within(risk, bound)
        else:
            share = curve.coverage if name == "coverage" else 1.0 - curve.selective_risk
            keeping &= reaches(share, bound)
    return keeping


def _candidates(
    curve: RiskCoverageCurve, metric: str, threshold_range: tuple[float, float]
) -> _Candidates:
    """Return the thresholds that can be best.

    While the accepted rows stay the same, CWSA+ falls as the threshold rises: only the lowest
    threshold of the range that accepts them can be best. CWSA may also rise: then the highest
    one is best.
    """
    n_blocks = np.arange(1, len(curve) + 1)
    if metric == "selective_accuracy":
        return _Candidates(curve.thresholds, n_blocks, 1.0 - curve.selective_risk)
    plus = metric == "cwsa_plus"
    low, high = threshold_range
    lowest, values = curve.cwsa_right_limits(plus=plus)
    # Entries with a threshold in the range are neighbours; only the last can reach below it.
    start = len(curve) - int(np.searchsorted(lowest[::-1], high))
    stop = int(curve.n_blocks_accepted(np.array([low]))[0])
    inside = slice(start, stop)
    n_blocks = n_blocks[inside]
    lowest = lowest[inside]
    values = values[inside].copy()
    if len(lowest) and lowest[-1] < low:
        lowest[-1] = low
        values[-1:] = curve.cwsa_at(lowest[-1:], plus=plus)
    lower_ends = _Candidates(lowest, n_blocks, values)
    if plus:
        return lower_ends
    return _join(_upper_ends(curve, inside, high), lower_ends)


def _upper_ends(curve: RiskCoverageCurve, inside: slice, high: float) -> _Candidates:
    """Return the highest thresholds below `high` that accept some entries, and CWSA there."""
    n_blocks = np.arange(1, len(curve) + 1)[inside]
    highest = curve.thresholds[inside].copy()
    values = curve.cwsa()[inside].copy()
    most = np.nextafter(high, 0.0)
    is_cut = highest > most
    highest[is_cut] = most
    values[is_cut] = curve.cwsa_at(highest[is_cut], plus=False)
    return _Candidates(highest, n_blocks, values)


def _join(upper_ends: _Candidates, lower_ends: _Candidates) -> _Candidates:
    """Return both ends of each interval, one interval after the other."""
    thresholds = np.concatenate([upper_ends.thresholds, lower_ends.thresholds])
    n_blocks = np.concatenate([upper_ends.n_blocks, lower_ends.n_blocks])
    values = np.concatenate([upper_ends.values, lower_ends.values])
    order = np.argsort(n_blocks, kind="stable")
    return _Candidates(thresholds[order], n_blocks[order], values[order])


def _standard_errors(curve: RiskCoverageCurve, metric: str, candidates: _Candidates) -> FloatArray:
    """Return the standard error of the metric at each threshold."""
    _, n_blocks, values = candidates
    mean_squares = _mean_squares(curve, metric, candidates)
    variance = np.maximum(mean_squares - values**2, 0.0)
    n_accepted = curve.n_accepted[n_blocks - 1]
    return np.sqrt(variance / n_accepted)


def _mean_squares(curve: RiskCoverageCurve, metric: str, candidates: _Candidates) -> FloatArray:
    """Return the mean square of what an accepted row adds to the metric at each threshold."""
    thresholds, n_blocks, values = candidates
    if metric == "selective_accuracy":  # what a row adds is 0 or 1
        return values
    weight = curve.block_weight
    if metric == "cwsa_plus":
        weight = weight - curve.block_loss
    last = n_blocks - 1
    shortfall = 1.0 - curve.thresholds
    of_rows = np.cumsum(weight)[last]
    of_shortfalls = np.cumsum(weight * shortfall)[last]
    of_squares = np.cumsum(weight * shortfall * shortfall)[last]
    slope = areas.slope(1.0 - thresholds)
    total = areas.sum_squares(of_rows, of_shortfalls, of_squares, slope)
    return total / curve.accepted_weight[last]
