"""Calibration errors over bins of the confidence: ECE, MCE, classwise, debiased.

All compare the accuracy in a bin with the mean confidence in it; accuracy is 1 - loss.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Unpack

import numpy as np
import pandas as pd

from skselect._lib.arrays import ROUNDING, are_constant, is_graded, spans
from skselect._lib.checks.options import check_choice, check_count, check_number
from skselect._lib.checks.proba import check_has_proba
from skselect._lib.checks.rows import check_unit_confidence, warn_small_weights
from skselect._lib.typing import FloatArray, IntArray
from skselect.bounds import clopper_pearson_interval
from skselect.curve.curve import RiskCoverageCurve
from skselect.metrics._arguments import (
    ClassOptions,
    DoorOptions,
    claim_metric,
    class_metric,
    judge_proba,
)
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions

# Bins ------------------------------------------------------------------------------------

_Columns = Callable[[slice], list[FloatArray | None]]


def _equal_width(confidence: FloatArray, n_bins: int) -> IntArray:
    """Return the bin 0..n-1 of each row, closed on the right; 0 belongs to the first."""
    scaled = confidence * n_bins
    floor = np.floor(scaled)
    bins = floor.astype(np.int64)
    scaled -= floor
    # Near an edge k/n the product may round to the wrong side: compare with the edge itself.
    if scaled.min() < 1e-9 or scaled.max() > 1.0 - 1e-9:
        near = np.flatnonzero((scaled < 1e-9) | (scaled > 1.0 - 1e-9))
        edges = np.arange(n_bins + 1) / n_bins
        place = np.searchsorted(edges, confidence[near], side="left") - 1
        bins[near] = np.maximum(place, 0)
    return bins


def _quantiles(confidence: FloatArray, weight: FloatArray | None, n_bins: int) -> FloatArray:
    """Return the inner edges of bins of equal weight: the smallest values that reach k/n of it."""
    if weight is None:
        # In integers, without rounding: the first rank >= k n_rows / n_bins.
        ranks = -(-np.arange(1, n_bins) * len(confidence) // n_bins)
        return np.sort(confidence)[ranks - 1]
    order = np.argsort(confidence)
    filled = np.cumsum(weight[order])
    wanted = np.arange(1, n_bins) * filled[-1] / n_bins * (1.0 - ROUNDING)
    reached = np.searchsorted(filled, wanted, side="left")
    return confidence[order][np.minimum(reached, len(confidence) - 1)]


def bin_sums(
    confidence: FloatArray,
    weight: FloatArray | None,
    columns: _Columns,
    n_bins: int,
    strategy: str,
) -> FloatArray:
    """Return the weighted sum of each column in each bin; a column of None is all ones.

    `columns` gives the values of a slice of the rows.
    """
    _check_bins(n_bins, strategy)
    edges = None if strategy == "uniform" else _quantiles(confidence, weight, n_bins)
    total: Any = 0.0
    for rows in spans(len(confidence)):
        part = confidence[rows]
        bins = _equal_width(part, n_bins) if edges is None else np.searchsorted(edges, part)
        counted = None if weight is None else weight[rows]
        sums = [
            np.bincount(bins, weights=_product(counted, column), minlength=n_bins)
            for column in columns(rows)
        ]
        total = total + np.array(sums, dtype=np.float64)
    return np.asarray(total)


def _check_bins(n_bins: int, strategy: str) -> None:
    check_count("n_bins", n_bins)
    check_choice("strategy", strategy, ["uniform", "quantile"])


def _product(weight: FloatArray | None, column: FloatArray | None) -> FloatArray | None:
    if weight is None or column is None:
        return weight if column is None else column
    return weight * column


def _gaps(curve: RiskCoverageCurve, n_bins: int, strategy: str) -> FloatArray:
    """Return the sum of (a - c) and the weight of each bin."""
    _check_bins(n_bins, strategy)
    if strategy == "quantile":  # blocks come surest first, quantiles last
        edges = _quantiles(curve.thresholds[::-1], curve.block_weight[::-1], n_bins)
    else:
        edges = np.arange(1, n_bins) / n_bins
    sums = np.zeros((2, n_bins))
    for _, part in curve.blocks.chunks():
        gap = part.right - part.weight * part.confidence
        # A bin is a run of blocks: count the blocks above each edge.
        above = len(part) - np.searchsorted(part.confidence[::-1], edges, side="right")
        ends = [0, *above[::-1].tolist(), len(part)]
        for number, (start, end) in enumerate(pairwise(ends), start=1):
            if end > start:
                sums[:, -number] += gap[start:end].sum(), part.weight[start:end].sum()
    return sums


# Kernels ---------------------------------------------------------------------------------


def ece(curve: RiskCoverageCurve, n_bins: int = 15, strategy: str = "uniform") -> float:
    """Return the weighted mean over bins of |accuracy - mean confidence|."""
    curve.check_unit("expected_calibration_error")
    gap, _ = _gaps(curve, n_bins, strategy)
    return float(np.abs(gap).sum() / curve.sums.weight)


def mce(curve: RiskCoverageCurve, n_bins: int = 15, strategy: str = "uniform") -> float:
    """Return the largest |accuracy - mean confidence| of a bin."""
    curve.check_unit("maximum_calibration_error")
    gap, size = _gaps(curve, n_bins, strategy)
    filled = size > 0
    return float(np.max(np.abs(gap[filled]) / size[filled]))


def classwise_ece(predictions: Predictions, n_bins: int = 15, strategy: str = "uniform") -> float:
    """Return the mean over classes of the ECE of each class's probability."""
    proba = check_has_proba(predictions.y_proba, "classwise_calibration_error")
    errors = [
        ece(
            RiskCoverageCurve.from_outcomes(
                Outcomes(predictions.y_true != k, proba[:, k], predictions.sample_weight)
            ),
            n_bins,
            strategy,
        )
        for k in range(proba.shape[1])
    ]
    return float(np.mean(errors))


def debiased_l2(outcomes: Outcomes, n_bins: int = 15, strategy: str = "quantile") -> float:
    """Return the root of the mean squared gap, less the part that chance adds."""
    c, loss, weight = outcomes.confidence, outcomes.loss, outcomes.sample_weight
    check_unit_confidence(c, "debiased_calibration_error")
    warn_small_weights(weight, "debiased_l2")

    def columns(rows: slice) -> list[FloatArray | None]:
        right = 1.0 - loss[rows]
        return [None, c[rows], right, right * right]

    sums = bin_sums(c, weight, columns, n_bins, strategy)
    size = sums[0]
    counted = size > 1 + ROUNDING  # the variance of one row is unknown
    confidence, accuracy, square = sums[1:, counted] / size[counted]
    variance = np.maximum(square - accuracy**2, 0.0) / (size[counted] - 1.0)
    total = np.sum(size[counted] * ((accuracy - confidence) ** 2 - variance))
    return float(np.sqrt(max(total, 0.0) / np.sum(size)))


def reliability(
    outcomes: Outcomes,
    n_bins: int = 15,
    strategy: str = "quantile",
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    """Return mean confidence, accuracy with its interval, and share of each filled bin."""
    level = check_number("confidence_level", confidence_level, 0.0, 1.0, closed="neither")
    c, loss, weight = outcomes.confidence, outcomes.loss, outcomes.sample_weight
    check_unit_confidence(c, "reliability_curve")
    sure, right, size = bin_sums(c, weight, lambda r: [c[r], 1.0 - loss[r], None], n_bins, strategy)
    filled = size > 0
    sure, right, size = sure[filled], right[filled], size[filled]
    low, high = np.full((2, len(size)), np.nan)
    if are_constant(weight) and not is_graded(loss):
        unit = 1.0 if weight is None else weight[0]
        right_rows, rows = np.round(right / unit), np.round(size / unit)
        low, high = clopper_pearson_interval(right_rows, rows, level)
    return pd.DataFrame(
        {
            "confidence": sure / size,
            "accuracy": right / size,
            "low": low,
            "high": high,
            "share": size / np.sum(size),
        }
    )


# Public functions ------------------------------------------------------------------------


@claim_metric
def expected_calibration_error(
    y_true: Any,
    y_proba: Any,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    **options: Unpack[DoorOptions],
) -> float:
    """Compute the binned gap between confidence and accuracy, ECE (lower is better).

    Parameters
    ----------
    %(data)s
    n_bins : int, default=15
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width on [0, 1], or of equal weight. Bins are closed on the right, the
        first one on both sides.
    %(options)s

    Returns
    -------
    float in [0, 1]

    %(raises_unit)s

    See Also
    --------
    smooth_calibration_error : Does not depend on bins.

    Notes
    -----
    ECE = (1/n) sum over bins of abs(sum over the bin of (a - c)), with a = 1 - loss [1]_. It
    depends on the bins and is biased upwards for few rows.

    References
    ----------
    .. [1] Guo et al., "On calibration of modern neural networks", 2017.

    Examples
    --------
    >>> from skselect.metrics import expected_calibration_error
    >>> round(expected_calibration_error([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.325
    """
    return ece(judge_proba(y_true, y_proba, **options).claimed.curve, n_bins, strategy)


@claim_metric
def maximum_calibration_error(
    y_true: Any,
    y_proba: Any,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    **options: Unpack[DoorOptions],
) -> float:
    """Compute the largest gap between confidence and accuracy of a bin, MCE.

    Parameters
    ----------
    %(data)s
    n_bins : int, default=15
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width on [0, 1], or of equal weight, as in
        :func:`expected_calibration_error`.
    %(options)s

    Returns
    -------
    float in [0, 1]
        Lower is better. A bin of a single row can decide it.

    %(raises_unit)s

    Notes
    -----
    The maximum over bins that hold rows of abs(mean a - mean c) [1]_.

    References
    ----------
    .. [1] Guo et al., "On calibration of modern neural networks", 2017.

    Examples
    --------
    >>> from skselect.metrics import maximum_calibration_error
    >>> round(maximum_calibration_error([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.7
    """
    return mce(judge_proba(y_true, y_proba, **options).claimed.curve, n_bins, strategy)


@class_metric
def classwise_calibration_error(
    y_true: Any,
    y_proba: Any,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    **options: Unpack[ClassOptions],
) -> float:
    """Compute the mean over classes of the calibration error of each class's probability.

    Parameters
    ----------
    %(data)s
    n_bins : int, default=15
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width on [0, 1], or of equal weight, as in
        :func:`expected_calibration_error`.
    %(options)s

    Returns
    -------
    float in [0, 1]
        Lower is better. With many classes most probabilities are near zero, and so is their
        error.

    %(raises)s

    Notes
    -----
    (1/K) sum over k of the ECE of p_k against [y = k] [1]_.

    References
    ----------
    .. [1] Kull et al., "Beyond temperature scaling: obtaining well-calibrated multi-class
       probabilities with Dirichlet calibration", 2019.

    Examples
    --------
    >>> from skselect.metrics import classwise_calibration_error
    >>> round(classwise_calibration_error([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.325
    """
    return classwise_ece(Predictions.from_proba(y_true, y_proba, **options), n_bins, strategy)


@claim_metric
def debiased_calibration_error(
    y_true: Any,
    y_proba: Any,
    *,
    n_bins: int = 15,
    strategy: str = "quantile",
    **options: Unpack[DoorOptions],
) -> float:
    """Compute the root mean squared gap between confidence and accuracy without its bias.

    Parameters
    ----------
    %(data)s
    n_bins : int, default=15
        Number of bins.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal weight, or of equal width on [0, 1].
    %(options)s

    Returns
    -------
    float in [0, 1]
        0 where the squared gaps are no larger than chance makes them.

    %(raises_unit)s

    Warns
    -----
    UserWarning
        If the weights sum to less than half the number of rows: they are counted as rows.

    Notes
    -----
    The root of max(0, sum over bins of (n_b/n) [(a_b - c_b)^2 - a_b (1 - a_b)/(n_b - 1)]),
    with the accuracy a_b and the mean confidence c_b of a bin of n_b rows [1]_. Weights count
    rows, so n_b is their sum; bins of at most one row are left out, as their variance is
    unknown.

    References
    ----------
    .. [1] Kumar, Liang & Ma, "Verified uncertainty calibration", 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.metrics import debiased_calibration_error
    >>> y_true = np.repeat([0, 1], [40, 60])
    >>> round(debiased_calibration_error(y_true, np.full(100, .7)), 4)
    0.087
    """
    return debiased_l2(judge_proba(y_true, y_proba, **options).claimed.outcomes, n_bins, strategy)


@claim_metric
def reliability_curve(
    y_true: Any,
    y_proba: Any,
    *,
    n_bins: int = 15,
    strategy: str = "quantile",
    confidence_level: float = 0.95,
    **options: Unpack[DoorOptions],
) -> pd.DataFrame:
    """Compute how often the classifier is right at each confidence.

    Parameters
    ----------
    %(data)s
    n_bins : int, default=15
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal weight, or of equal width; equal confidences stay in one bin.
    confidence_level : float in (0, 1), default=0.95
        Of the interval for the accuracy of a bin.
    %(options)s

    Returns
    -------
    DataFrame
        A row per bin that holds rows, by rising confidence: mean `confidence`, `accuracy`, its
        exact binomial interval from `low` to `high`, and the `share` of all rows.

    %(raises_unit)s

    See Also
    --------
    skselect.display.ReliabilityDisplay : Draws it.
    expected_calibration_error : The mean distance to the diagonal.

    Notes
    -----
    The interval treats the rows of a bin as independent draws with one chance of being right;
    it is nan for weights that are not constant and for graded losses. Each interval holds with
    the given confidence, not all of them together.

    References
    ----------
    .. [1] Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case
       of the binomial", 1934.

    Examples
    --------
    >>> from skselect.metrics import reliability_curve
    >>> reliability_curve([0, 1, 1, 0], [.1, .9, .6, .7], n_bins=2).round(2)
       confidence  accuracy   low  high  share
    0        0.65       0.5  0.01  0.99    0.5
    1        0.90       1.0  0.16  1.00    0.5
    """
    return reliability(
        judge_proba(y_true, y_proba, **options).claimed.outcomes, n_bins, strategy, confidence_level
    )
