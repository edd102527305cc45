"""Calibrators that only read the order of the scores: isotonic, smooth isotonic, Venn-Abers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from skselect._lib.decide import interpolate, venn_abers_interval, venn_abers_map
from skselect._lib.typing import FloatArray
from skselect.calibration._common import ScoreCalibrator, group_by_score


class _Interpolation(ScoreCalibrator):
    """A map that is linear between knots, and flat outside them."""

    map, stored = staticmethod(interpolate), ("knots", "values")

    knots_: FloatArray
    values_: FloatArray


class IsotonicCalibrator(_Interpolation):
    """Fit the best non-decreasing map from score to probability.

    Between its knots the map is linear, outside it is flat. It reaches 0 and 1 exactly, so that
    a single error among the surest rows makes :func:`~skselect.metrics.csr_score` huge; and its
    plateaus tie rows that the raw scores could rank. :class:`SmoothIsotonicCalibrator` does
    neither.

    Attributes
    ----------
    knots_ : ndarray of shape (m,)
        Scores, ascending.
    values_ : ndarray of shape (m,)
        Probabilities at the knots, not descending.

    References
    ----------
    .. [1] Zadrozny & Elkan, "Transforming classifier scores into accurate multiclass
       probability estimates", 2002.

    Examples
    --------
    >>> from skselect.calibration import IsotonicCalibrator
    >>> calibrator = IsotonicCalibrator().fit([.1, .4, .6, .9], [0, 1, 0, 1])
    >>> calibrator.predict([.1, .25, .5, .9])
    array([0.  , 0.25, 0.5 , 1.  ])
    """

    _counts_weights = False

    def _fit(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        knots, total, success = group_by_score(score, y, weight)
        values = np.clip(isotonic_regression(success / total, weights=total).x, 0.0, 1.0)
        # Of the knots of a plateau only the first and the last are needed.
        flat = values[1:] == values[:-1]
        inner = np.append(False, flat) & np.append(flat, False)
        self.knots_, self.values_ = knots[~inner], values[~inner]


class SmoothIsotonicCalibrator(_Interpolation):
    """Fit a non-decreasing map without plateaus that never claims certainty.

    Each block of the isotonic fit gets the value (successes + 1)/(rows + 2) instead of their
    ratio, at the mean score of its rows; between blocks the map is linear. So it lies in
    [1/(n + 2), 1 - 1/(n + 2)] for n rows, and ranks rows that isotonic regression would tie.
    Use it where the miscalibration has no simple shape; where it has one, temperature scaling
    predicts a little better.

    Attributes
    ----------
    knots_ : ndarray of shape (m,)
        Scores, ascending.
    values_ : ndarray of shape (m,)
        Probabilities at the knots, not descending.

    Notes
    -----
    Weights count rows: scaled to a small sum they shrink the map towards 1/2, and `fit`
    warns.

    References
    ----------
    .. [1] Oron & Flournoy, "Centered isotonic regression: point and interval estimation for
       dose-response studies", 2017 (blocks at their mean score).

    Examples
    --------
    >>> from skselect.calibration import SmoothIsotonicCalibrator
    >>> calibrator = SmoothIsotonicCalibrator().fit([.1, .4, .6, .9], [0, 1, 0, 1])
    >>> calibrator.predict([.1, .3, .5, .9]).round(3)
    array([0.333, 0.417, 0.5  , 0.667])
    """

    def _fit(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        knots, total, success = group_by_score(score, y, weight)
        fit = isotonic_regression(success / total, weights=total)
        starts = fit.blocks[:-1]
        block_weight = np.add.reduceat(total, starts)
        smoothed = (np.add.reduceat(success, starts) + 1.0) / (block_weight + 2.0)
        # Small blocks move towards 1/2 more than large ones, which can reverse their order.
        values = isotonic_regression(smoothed, weights=block_weight).x
        # The mean score of a block, as a distance from its first: huge scores do not overflow.
        first = knots[starts]
        beyond = np.add.reduceat(total * (knots - np.repeat(first, np.diff(fit.blocks))), starts)
        self.knots_ = first + beyond / block_weight
        bound = 1.0 / (np.sum(total) + 2.0)
        self.values_ = np.clip(values, bound, 1.0 - bound)


class VennAbersCalibrator(ScoreCalibrator):
    """Fit an inductive Venn-Abers predictor: two isotonic fits for every score, made into one.

    For a score s, p0 and p1 are the values at s of the isotonic fits to the calibration rows and
    one more row, (s, 0) or (s, 1). If rows are exchangeable, one of the two is calibrated for any
    distribution; the fewer rows have scores near s, the farther apart they are. With few rows per
    class the probability shrinks strongly towards 1/2.

    Attributes
    ----------
    knots_ : ndarray of shape (m,)
        Distinct scores, ascending.
    lower_, upper_ : ndarray of shape (m,)
        p0 and p1 at the knots.

    Notes
    -----
    The probability is p1/(1 - p0 + p1), which minimises the regret of the log loss [1]_.
    Weights count rows; the row that is predicted counts once.

    References
    ----------
    .. [1] Vovk & Petej, "Venn-Abers predictors", 2014.
    .. [2] Vovk, Petej & Fedorova, "Large-scale probabilistic predictors with and without
       guarantees of validity", 2015.

    Examples
    --------
    >>> from skselect.calibration import VennAbersCalibrator
    >>> calibrator = VennAbersCalibrator().fit([.1, .4, .6, .9], [0, 1, 0, 1])
    >>> calibrator.predict([.1, .5, .9]).round(3)
    array([0.333, 0.5  , 0.667])
    >>> low, high = calibrator.predict_interval([.5])
    >>> low.round(3), high.round(3)
    (array([0.333]), array([0.667]))
    """

    map, stored = staticmethod(venn_abers_map), ("knots", "lower", "upper")

    def _fit(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        self.knots_, total, success = group_by_score(score, y, weight)
        self.upper_: FloatArray = _fit_with_one_more_success(total, success)
        # With scores and outcomes reversed, one more failure is one more success.
        mirrored = _fit_with_one_more_success(total[::-1], (total - success)[::-1])
        self.lower_: FloatArray = 1.0 - mirrored[::-1]

    def predict_interval(self, score: Any) -> tuple[FloatArray, FloatArray]:
        """Return p0 and p1 for each score.

        Between two knots p0 is that of the knot below, and p1 that of the knot above.
        """
        return venn_abers_interval(np.asarray(score, dtype=np.float64), **self.fitted)


def _fit_with_one_more_success(total: FloatArray, success: FloatArray) -> FloatArray:
    """Return, for each block, the isotonic fit at it if one more success is added to it.

    In the diagram of cumulative successes over cumulative weight, the fit is the slope of the
    greatest convex minorant. A success at block i shifts all later points by (1, 1). The line
    across i then starts at an earlier point k <= i and ends at a corner of the old minorant: its
    slope is the least from k to any corner after k, and the fit at i is the largest of these
    slopes over all k <= i. The corners are convex, so the least slope is found by bisection, for
    all k at once.
    """
    blocks = isotonic_regression(success / total, weights=total).blocks
    weight = np.concatenate([[0.0], np.cumsum(total)])
    count = np.concatenate([[0.0], np.cumsum(success)])
    corner_weight, corner_count = weight[blocks], count[blocks]
    start = np.arange(len(total))
    x, y = weight[:-1] - 1.0, count[:-1] - 1.0  # shifting corners by 1 is shifting k by -1
    low = np.searchsorted(blocks, start, side="right")  # the first corner after k
    high = np.full(len(start), len(blocks) - 1)
    # The slope from k falls along the corners until the next one lies above the line.
    while np.any(open_ := low < high):
        middle = (low + high) // 2
        nearer = np.minimum(middle + 1, len(blocks) - 1)
        here = (corner_count[middle] - y) * (corner_weight[nearer] - x)
        there = (corner_count[nearer] - y) * (corner_weight[middle] - x)
        falls = open_ & (there < here)
        low = np.where(falls, middle + 1, low)
        high = np.where(open_ & ~falls, middle, high)
    slope = (corner_count[low] - y) / (corner_weight[low] - x)
    return np.minimum(np.maximum.accumulate(slope), 1.0)
