"""The threshold with the best value of a metric, among all that can be best."""

from __future__ import annotations

from dataclasses import dataclass

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


#: Thresholds that can be best, by rising coverage, with accepted entries and value.
_Candidates = tuple[FloatArray, IntArray, FloatArray]


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
    thresholds, n_blocks, values = found = _candidates(curve, metric, threshold_range)
    scores = values
    if bounds_luck:
        variance = np.maximum(_mean_squares(curve, metric, found) - values**2, 0.0)
        n_accepted = curve.n_accepted[n_blocks - 1]
        scores = values - _LOWER_BOUND_ERRORS * np.sqrt(variance / n_accepted)
    allowed = reaches(curve.coverage, min_coverage)
    if constraints:
        allowed &= keeps(curve, constraints)
    allowed = allowed[n_blocks - 1]
    if not np.any(allowed):
        return None
    kept = np.where(allowed, scores, -np.inf)
    best = np.max(kept)
    # Candidates are ordered by coverage, so the last of equal values has the largest.
    chosen = len(kept) - 1 - int(np.argmax(kept[::-1] == best))
    k, threshold, value = int(n_blocks[chosen]), float(thresholds[chosen]), float(values[chosen])
    if metric == "selective_accuracy":
        threshold = threshold_below(curve, k)
    free = int(np.argmax(scores))
    return MetricOptimum(threshold, k, value, float(best), float(scores[free]), int(n_blocks[free]))


def keeps(curve: RiskCoverageCurve, constraints: tuple[tuple[str, float], ...]) -> BoolArray:
    """Tell which entries of a curve keep every constraint."""
    kept = np.ones(len(curve), dtype=bool)
    for name, bound in constraints:
        if name in AT_MOST:
            risk = curve.selective_risk if name == "risk" else curve.generalized_risk
            kept &= stays_within(risk, bound)
        else:
            share = curve.coverage if name == "coverage" else 1.0 - curve.selective_risk
            kept &= reaches(share, bound)
    return kept


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
        return curve.thresholds, n_blocks, 1.0 - curve.selective_risk
    plus = metric == "cwsa_plus"
    low, high = threshold_range
    lowest, values = curve.cwsa_right_limits(plus=plus)
    # Entries with a threshold in the range are neighbours; only the last can reach below it.
    first = len(curve) - int(np.searchsorted(lowest[::-1], high))
    inside = slice(first, int(curve.n_blocks_accepted(np.array([low]))[0]))
    lowest, values, n_blocks = lowest[inside], values[inside].copy(), n_blocks[inside]
    if len(lowest) and lowest[-1] < low:
        lowest[-1] = low
        values[-1:] = curve.cwsa_at(lowest[-1:], plus=plus)
    if plus:
        return lowest, n_blocks, values
    below = np.nextafter(high, 0.0)
    highest, own = curve.thresholds[inside].copy(), curve.cwsa()[inside].copy()
    cut = highest > below
    highest[cut] = below
    own[cut] = curve.cwsa_at(highest[cut], plus=False)
    order = np.argsort(np.concatenate([n_blocks, n_blocks]), kind="stable")
    both = [(highest, lowest), (n_blocks, n_blocks), (own, values)]
    thresholds, entries, metrics = (np.concatenate(pair)[order] for pair in both)
    return thresholds, entries, metrics


def _mean_squares(curve: RiskCoverageCurve, metric: str, found: _Candidates) -> FloatArray:
    """Return the mean square of what an accepted row adds to the metric at each threshold."""
    thresholds, n_blocks, values = found
    if metric == "selective_accuracy":  # what a row adds is 0 or 1
        return values
    weight = curve.block_weight if metric == "cwsa" else curve.block_weight - curve.block_loss
    shortfall = 1.0 - curve.thresholds
    powers = (weight, weight * shortfall, weight * shortfall * shortfall)
    last = n_blocks - 1
    count, first, second = (np.cumsum(power)[last] for power in powers)
    total = areas.sum_squares(count, first, second, areas.slope(1.0 - thresholds))
    return total / curve.accepted_weight[last]
