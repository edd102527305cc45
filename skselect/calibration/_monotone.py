"""Calibrators that only read the order of the scores: isotonic, smooth isotonic, Venn-Abers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skselect._checks.rows import warn_small_weights
from skselect._typing import FloatArray
from skselect.calibration._common import blocks_of, checked_rows


class IsotonicCalibrator(BaseEstimator):
    """Fit the best non-decreasing map from score to probability.

    Between its knots the map is linear, outside it is flat. It reaches 0 and 1 exactly, so
    a single error among the surest rows makes :func:`~skselect.metrics.csr_score` explode,
    and its plateaus tie rows that the raw scores could rank. :class:`SmoothIsotonicCalibrator`
    is its safe replacement.

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

    #: What a policy file keeps.
    stored = ("knots", "values")

    def fit(self, score: Any, y: Any, sample_weight: Any = None) -> IsotonicCalibrator:
        """Learn the map.

        Parameters
        ----------
        score : array-like of shape (n,)
            Finite scores; larger speaks for y = 1.
        y : array-like of shape (n,)
            Outcomes in [0, 1].
        sample_weight : array-like of shape (n,), default=None
            How often each row counts.

        Returns
        -------
        self
        """
        knots, total, success = blocks_of(*checked_rows(score, y, sample_weight))
        values = np.clip(isotonic_regression(success / total, weights=total).x, 0.0, 1.0)
        # Inside a plateau only its two ends shape the map.
        flat = values[1:] == values[:-1]
        inner = np.append(False, flat) & np.append(flat, False)
        self.knots_: FloatArray = knots[~inner]
        self.values_: FloatArray = values[~inner]
        return self

    def predict(self, score: Any) -> FloatArray:
        """Return a probability for each score, in [0, 1]."""
        check_is_fitted(self)
        return np.interp(np.asarray(score, dtype=np.float64), self.knots_, self.values_)


class SmoothIsotonicCalibrator(BaseEstimator):
    """Fit a non-decreasing map without plateaus that never claims certainty.

    Each block of the isotonic fit is worth (successes + 1)/(rows + 2) instead of their ratio,
    and stands at the mean score of its rows; between blocks the map is linear. So it lies in
    [1/(n + 2), 1 - 1/(n + 2)] for n rows, and ranks rows that isotonic regression would tie.
    Use it where the miscalibration has no simple shape; temperature scaling predicts a little
    better where it has.

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

    #: What a policy file keeps.
    stored = ("knots", "values")

    def fit(self, score: Any, y: Any, sample_weight: Any = None) -> SmoothIsotonicCalibrator:
        """Learn the map.

        Parameters
        ----------
        score : array-like of shape (n,)
            Finite scores; larger speaks for y = 1.
        y : array-like of shape (n,)
            Outcomes in [0, 1].
        sample_weight : array-like of shape (n,), default=None
            How often each row counts.

        Returns
        -------
        self
        """
        rows = checked_rows(score, y, sample_weight)
        warn_small_weights(rows[2], "SmoothIsotonicCalibrator")
        knots, total, success = blocks_of(*rows)
        fit = isotonic_regression(success / total, weights=total)
        starts = fit.blocks[:-1]
        weight = np.add.reduceat(total, starts)
        smoothed = (np.add.reduceat(success, starts) + 1.0) / (weight + 2.0)
        # Small blocks are shrunk more than large ones, which can turn their order.
        values = isotonic_regression(smoothed, weights=weight).x
        lowest = knots[starts]  # relative to it the mean of huge scores does not overflow
        spread = np.add.reduceat(total * (knots - np.repeat(lowest, np.diff(fit.blocks))), starts)
        self.knots_: FloatArray = lowest + spread / weight
        bound = 1.0 / (np.sum(total) + 2.0)
        self.values_: FloatArray = np.clip(values, bound, 1.0 - bound)
        return self

    def predict(self, score: Any) -> FloatArray:
        """Return a probability for each score, strictly inside (0, 1)."""
        check_is_fitted(self)
        return np.interp(np.asarray(score, dtype=np.float64), self.knots_, self.values_)


class VennAbersCalibrator(BaseEstimator):
    """Fit an inductive Venn-Abers predictor: two isotonic fits for every score, and between.

    For a score s, p0 and p1 are the isotonic fits to the calibration rows and (s, 0), or
    (s, 1). One of the two is calibrated whatever the law of the data, if rows are
    exchangeable; their distance says how little the rows tell about s. With few rows per
    class it shrinks strongly.

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

    #: What a policy file keeps.
    stored = ("knots", "lower", "upper")

    def fit(self, score: Any, y: Any, sample_weight: Any = None) -> VennAbersCalibrator:
        """Learn both fits at every distinct score.

        Parameters
        ----------
        score : array-like of shape (n,)
            Finite scores; larger speaks for y = 1.
        y : array-like of shape (n,)
            Outcomes in [0, 1].
        sample_weight : array-like of shape (n,), default=None
            How often each row counts.

        Returns
        -------
        self
        """
        rows = checked_rows(score, y, sample_weight)
        warn_small_weights(rows[2], "VennAbersCalibrator")
        self.knots_, total, success = blocks_of(*rows)
        self.upper_: FloatArray = _fits_with_a_success(total, success)
        # A failure is a success of the mirrored problem.
        mirrored = _fits_with_a_success(total[::-1], (total - success)[::-1])
        self.lower_: FloatArray = 1.0 - mirrored[::-1]
        return self

    def predict(self, score: Any) -> FloatArray:
        """Return a probability for each score, strictly inside (0, 1)."""
        low, high = self.predict_interval(score)
        return high / (1.0 - low + high)

    def predict_interval(self, score: Any) -> tuple[FloatArray, FloatArray]:
        """Return p0 and p1 for each score; between two knots they are those next to it."""
        check_is_fitted(self)
        scores = np.asarray(score, dtype=np.float64)
        above = np.append(self.upper_, 1.0)[np.searchsorted(self.knots_, scores, side="left")]
        below = np.append(0.0, self.lower_)[np.searchsorted(self.knots_, scores, side="right")]
        missing = np.isnan(scores)
        return np.where(missing, np.nan, below), np.where(missing, np.nan, above)


def _fits_with_a_success(total: FloatArray, success: FloatArray) -> FloatArray:
    """Return, for each block, the isotonic fit at it if one more success is added to it.

    In the diagram of cumulative successes over cumulative weight, the fit is the slope of the
    greatest convex minorant. A success at block i shifts all later points by (1, 1). The line
    across i then starts at an earlier point and ends at a corner of the old minorant: for a
    start k its slope is least over the corners from the end of k's own piece on, and the fit
    at i is the largest of these slopes over k < i. The corners are convex, so the least
    slope is found by bisection, for all k at once.
    """
    blocks = isotonic_regression(success / total, weights=total).blocks
    weight = np.concatenate([[0.0], np.cumsum(total)])
    count = np.concatenate([[0.0], np.cumsum(success)])
    corner_weight, corner_count = weight[blocks], count[blocks]
    start = np.arange(len(total))
    x, y = weight[:-1] - 1.0, count[:-1] - 1.0  # the corners shifted, seen from point k
    low = np.searchsorted(blocks, start, side="right")  # the end of k's own piece
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
