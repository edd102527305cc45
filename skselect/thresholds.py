"""Pure rules that pick a threshold from a risk-coverage curve.

A rule returns how many entries of the curve to accept (0: none). Only whole tie blocks can
be accepted, so no rule ever looks inside one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from skselect import _validation as check
from skselect._typing import BoolArray, FloatArray, IntArray
from skselect.bounds import (
    combined_limits,
    critical_counts,
    rows_for_certificate,
    smallest_rank,
    walk_band,
)
from skselect.curves import RiskCoverageCurve

#: Metrics that can be tuned.
TUNABLE_METRICS = ("cwsa_plus", "cwsa", "selective_accuracy")


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
    unconstrained : float
        Its best value over all coverages; above `value` where `min_coverage` binds.
    """

    threshold: float
    n_blocks: int
    value: float
    unconstrained: float


def threshold_below(curve: RiskCoverageCurve, n_blocks: int, *, bounded: bool = True) -> float:
    """Return the threshold that accepts the first `n_blocks` entries and no more.

    It is the midpoint between the last accepted and the first rejected confidence, which
    survives rounding to float32 and the last bit of `predict_proba`. Accepting everything
    starts at 0, or at -inf where confidences are not confined to [0, 1] (`bounded` says whether
    they can be, for a function of the user's).
    """
    if n_blocks == 0:
        return float("inf")
    lowest = float(curve.thresholds[n_blocks - 1])
    if n_blocks == len(curve):
        inside = bounded and lowest >= 0 and curve.thresholds[0] <= 1
        return 0.0 if inside else float("-inf")
    rejected = float(curve.thresholds[n_blocks])
    middle = rejected + (lowest - rejected) / 2.0
    return middle if rejected < middle <= lowest else lowest


# Best value of a metric --------------------------------------------------------------------


def best_metric(curve: RiskCoverageCurve, metric: str, min_coverage: float) -> MetricOptimum:
    """Scan every threshold that can be best; among equal values take the largest coverage."""
    thresholds, n_blocks, values = _candidates(curve, metric)
    allowed = check.reaches(curve.coverage[n_blocks - 1], min_coverage)
    best = np.max(values[allowed])
    # Candidates are ordered by coverage, so the last of equal values has the largest.
    chosen = int(np.flatnonzero(allowed & (values == best))[-1])
    k = int(n_blocks[chosen])
    threshold = float(thresholds[chosen])
    if metric == "selective_accuracy":
        threshold = threshold_below(curve, k)
    return MetricOptimum(threshold, k, float(best), float(np.max(values)))


def _candidates(curve: RiskCoverageCurve, metric: str) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return thresholds, accepted entries and values, by coverage.

    CWSA+ falls with the threshold while the accepted set stays, so only the lower ends of
    the intervals matter (right limits). Signed CWSA can also rise: both ends matter.
    """
    n_blocks = np.arange(1, len(curve) + 1)
    if metric == "selective_accuracy":
        return curve.thresholds, n_blocks, 1.0 - curve.selective_risk
    thresholds, values = curve.cwsa_right_limits(plus=metric == "cwsa_plus")
    if metric == "cwsa_plus":
        return thresholds, n_blocks, values
    below_one = curve.thresholds < 1.0  # CWSA has no value at a threshold of 1
    thresholds = np.concatenate([curve.thresholds[below_one], thresholds])
    values = np.concatenate([curve.cwsa()[below_one], values])
    n_blocks = np.concatenate([n_blocks[below_one], n_blocks])
    order = np.argsort(n_blocks, kind="stable")
    return thresholds[order], n_blocks[order], values[order]


# Risk targets ------------------------------------------------------------------------------


def empirical_risk(curve: RiskCoverageCurve, target: float, min_coverage: float) -> int:
    """Accept the most whose risk on these very rows is at most `target`. Promises nothing."""
    low = check.stays_within(curve.selective_risk, target)
    return _last(low & check.reaches(curve.coverage, min_coverage))


def band_risk(curve: RiskCoverageCurve, target: float, delta: float, min_coverage: float) -> int:
    """Accept the most that the walk band certifies; see :func:`bounds.walk_band`."""
    counts = _error_counts(curve)
    passed = _passes_band(curve.n_accepted, counts, curve.n_rows, target, delta, min_coverage)
    return _last(passed)


def combined_risk(
    curve: RiskCoverageCurve, target: float, delta: float, min_coverage: float
) -> int:
    """Accept the most that a band or a fixed sequence certifies; :func:`bounds.combined_limits`.

    A tie block is held to the sequence's count at the rank before it, because the risk may
    turn bad inside it.
    """
    ranks, band, sequence = combined_limits(curve.n_rows, target, delta, min_coverage)
    if len(ranks) == 0:
        return 0
    counts, ends = _error_counts(curve), curve.n_accepted
    by_band = _last((ends >= ranks[0]) & (counts <= _at(ranks, band, ends)))
    start = ranks[np.argmax(sequence >= 0)]
    first = int(np.searchsorted(ends, start))  # the block that holds the start
    begins = np.maximum(np.append(0, ends[:-1])[first:], start)
    failed = np.flatnonzero(counts[first:] > _at(ranks, sequence, begins))
    passed = first + int(failed[0]) if len(failed) else len(ends)
    return max(by_band, passed if passed > first else 0)


def least_combined_target(
    curve: RiskCoverageCurve, delta: float, min_coverage: float, high: float
) -> float:
    """Return the smallest target that the combined rule meets, to 0.1 %; near `high`."""

    def met(target: float) -> bool:
        return combined_risk(curve, target, delta, min_coverage) > 0

    return _least(met, high)


def _at(ranks: IntArray, limits: IntArray, k: IntArray) -> IntArray:
    """Return the limit of the tested rank at or below each k."""
    return limits[np.maximum(np.searchsorted(ranks, k, side="right") - 1, 0)]


def least_band_target(
    n_accepted: IntArray, n_errors: IntArray, n: int, delta: float, min_coverage: float
) -> float:
    """Return the smallest target that some of the given sets would have met, to 0.1 %.

    Parameters
    ----------
    n_accepted, n_errors : ndarray of shape (m,)
        Size and errors of each candidate set of accepted rows.
    n : int
        All rows.
    delta, min_coverage : float
        As in :func:`bounds.walk_band`.

    Returns
    -------
    float in (0, 1]
    """

    def met(target: float) -> bool:
        return bool(np.any(_passes_band(n_accepted, n_errors, n, target, delta, min_coverage)))

    # The band costs about as much as testing at delta/6: start there, then bracket and bisect.
    allowed = n_accepted >= min_coverage * n
    pointwise = special.betaincinv(
        n_errors + 1.0, np.maximum(n_accepted - n_errors, 0.5), 1.0 - delta / 6.0
    )
    return _least(met, float(np.min(pointwise[allowed], initial=1.0)))


def _least(met: Callable[[float], bool], high: float) -> float:
    """Return the smallest target in (0, 1] that is met, to 0.1 %, looking around `high`."""
    while high < 1.0 and not met(high):
        high = min(1.1 * high, 1.0)
    low = high / 1.1
    while low > 0.0 and met(low):
        low, high = low / 1.1, low
    while high - low > 1e-3 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if met(middle) else (middle, high)
    return high


def rows_needed(
    curve: RiskCoverageCurve, target: float, delta: float, min_coverage: float
) -> int | None:
    """Return roughly how many rows would certify `target` if errors fell as they do here.

    None when no accepted set of these rows has a risk below the target, so that more rows
    like them would not help.
    """
    allowed = (curve.coverage >= min_coverage) & (curve.selective_risk < target)
    if not np.any(allowed):
        return None
    share, risk = curve.coverage[allowed], curve.selective_risk[allowed]
    # A level per test near delta/6 is what the band amounts to from a thousand rows on.
    alpha = delta / 6.0

    def enough(n: int) -> bool:
        ranks = np.maximum((share * n).astype(np.int64), 1)
        return bool(np.any(np.ceil(risk * ranks) <= critical_counts(ranks, target, alpha)))

    high = max(rows_for_certificate(target, delta), curve.n_rows)
    while not enough(high):
        if high > 10**9:
            return None
        high *= 2
    low = high // 2
    while high - low > max(high // 100, 1):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return max(high, curve.n_rows + 1)


def _error_counts(curve: RiskCoverageCurve) -> IntArray:
    return np.rint(curve.accepted_loss).astype(np.int64)


def _passes_band(
    n_accepted: IntArray,
    n_errors: IntArray,
    n: int,
    target: float,
    delta: float,
    min_coverage: float,
) -> BoolArray:
    ranks, limits = walk_band(n, target, delta, min_coverage)
    if len(ranks) == 0:
        return np.zeros(len(n_accepted), dtype=bool)
    place = np.searchsorted(ranks, n_accepted, side="right") - 1
    return (place >= 0) & (n_errors <= limits[np.maximum(place, 0)])


# Silent failures, coverage and cost --------------------------------------------------------


def certified_generalized_risk(curve: RiskCoverageCurve, target: float, delta: float) -> int | None:
    """Accept all that is strictly surer than the first error too many; None if none is allowed.

    Generalised risk grows with coverage, so one exact binomial test covers every threshold.
    With e* = max{e : BinomCDF(e; n, target) <= delta} the sets with at most e* errors pass.
    """
    allowed = int(critical_counts(np.array([curve.n_rows]), target, delta)[0])
    if allowed < 0:
        return None
    return int(np.sum(_error_counts(curve) <= allowed))


def empirical_generalized_risk(curve: RiskCoverageCurve, target: float) -> int:
    """Accept the most whose rate of silent failures on these very rows is at most `target`."""
    return int(np.sum(check.stays_within(curve.generalized_risk, target)))


def coverage_rank(n: int, target: float, delta: float) -> int | None:
    """Return the smallest k with P(Beta(k, n + 1 - k) >= target) >= 1 - delta.

    The coverage of "as sure as the k-th surest of n rows" on new rows has that distribution
    (ties only make it larger). None if even k = n does not reach it.
    """
    ranks = np.arange(smallest_rank(n, target), n + 1)
    reached = special.betaincc(ranks, n + 1.0 - ranks, target) >= 1.0 - delta
    return int(ranks[np.argmax(reached)]) if np.any(reached) else None


def certified_coverage(curve: RiskCoverageCurve, target: float, delta: float) -> int:
    """Accept the fewest whose coverage on new rows is at least `target`, by rank."""
    rank = coverage_rank(curve.n_rows, target, delta)
    if rank is None:
        return len(curve)
    return int(np.searchsorted(curve.n_accepted, rank)) + 1


def empirical_coverage(curve: RiskCoverageCurve, target: float) -> int:
    """Accept the fewest whose coverage on these very rows is at least `target`."""
    return int(np.argmax(check.reaches(curve.coverage, target))) + 1


def cheapest(curve: RiskCoverageCurve, abstention_cost: float) -> int:
    """Accept so that errors plus `abstention_cost` per other row cost least on these rows."""
    total = curve.accepted_weight[-1]
    rejected = total - np.concatenate([[0.0], curve.accepted_weight])
    cost = np.concatenate([[0.0], curve.accepted_loss]) + abstention_cost * rejected
    return int(np.flatnonzero(cost == np.min(cost))[-1])


def _last(passed: BoolArray) -> int:
    """Return how many entries the last one that passed accepts."""
    found = np.flatnonzero(passed)
    return int(found[-1]) + 1 if len(found) else 0
