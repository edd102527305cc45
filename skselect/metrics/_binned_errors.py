"""Calibration errors over bins of the confidence: ECE, MCE, classwise, debiased.

All compare the accuracy in a bin with the mean confidence in it; accuracy is 1 - loss.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from skselect import _validation as check
from skselect._typing import FloatArray, IntArray
from skselect.metrics._door import (
    ClassOptions,
    DoorOptions,
    class_metric,
    metric,
    outcomes_of,
    predictions_of,
)
from skselect.outcomes import Outcomes
from skselect.predictions import Predictions

# Kernels ---------------------------------------------------------------------------------


def _equal_width(confidence: FloatArray, n_bins: int) -> IntArray:
    """Return the bin of each row: 1..n closed on the right, and 0 for a confidence of 0."""
    scaled = confidence * n_bins
    up = np.ceil(scaled)
    bins = up.astype(np.int64)
    # Rounding can only hide which side of an edge k/n a confidence is on where c n == k.
    near = np.flatnonzero(up == scaled)
    bins[near] += confidence[near] > bins[near] / n_bins
    return bins


def _equal_weight(confidence: FloatArray, weight: FloatArray | None, n_bins: int) -> IntArray:
    """Return the bin 1..n of each row, edges at the smallest values that fill k/n."""
    if weight is None:
        ordered = np.sort(confidence)
        # Integers: the first rank that reaches k n_rows / n_bins.
        ranks = -(-np.arange(1, n_bins) * len(ordered) // n_bins)
        edges = ordered[ranks - 1]
    else:
        order = np.argsort(confidence)
        filled = np.cumsum(weight[order])
        wanted = np.arange(1, n_bins) * filled[-1] / n_bins * (1.0 - check.ROUNDING)
        reached = np.searchsorted(filled, wanted, side="left")
        edges = confidence[order][np.minimum(reached, len(confidence) - 1)]
    return np.searchsorted(edges, confidence, side="left") + 1


def _bin_sums(
    confidence: FloatArray,
    weight: FloatArray | None,
    columns: list[FloatArray | None],
    n_bins: int,
    strategy: str,
) -> list[FloatArray]:
    """Return the weighted sum of each column in each bin; a column of None is all ones."""
    check.check_count("n_bins", n_bins)
    check.check_choice("strategy", strategy, ["uniform", "quantile"])
    if strategy == "uniform":
        bins = _equal_width(confidence, n_bins)
    else:
        bins = _equal_weight(confidence, weight, n_bins)
    sums = []
    for column in columns:
        values = _product(weight, column)
        total = np.bincount(bins, weights=values, minlength=n_bins + 1).astype(np.float64)
        total[1] += total[0]  # the first bin is closed on both sides
        sums.append(total[1:])
    return sums


def _product(weight: FloatArray | None, column: FloatArray | None) -> FloatArray | None:
    if weight is None or column is None:
        return weight if column is None else column
    return weight * column


def _ece(
    confidence: FloatArray, right: FloatArray, weight: FloatArray | None, n_bins: int, strategy: str
) -> float:
    (gap,) = _bin_sums(confidence, weight, [right - confidence], n_bins, strategy)
    total = len(confidence) if weight is None else np.sum(weight)
    return float(np.sum(np.abs(gap)) / total)


def ece(outcomes: Outcomes, n_bins: int = 15, strategy: str = "uniform") -> float:
    """Return the weighted mean over bins of |accuracy - mean confidence|."""
    confidence = check.check_unit_confidence(outcomes.confidence, "expected_calibration_error")
    return _ece(confidence, 1.0 - outcomes.loss, outcomes.sample_weight, n_bins, strategy)


def mce(outcomes: Outcomes, n_bins: int = 15, strategy: str = "uniform") -> float:
    """Return the largest |accuracy - mean confidence| of a bin."""
    c = check.check_unit_confidence(outcomes.confidence, "maximum_calibration_error")
    columns = [1.0 - outcomes.loss - c, None]
    gap, size = _bin_sums(c, outcomes.sample_weight, columns, n_bins, strategy)
    filled = size > 0
    return float(np.max(np.abs(gap[filled]) / size[filled]))


def classwise_ece(predictions: Predictions, n_bins: int = 15, strategy: str = "uniform") -> float:
    """Return the mean over classes of the ECE of each class's probability."""
    proba = check.check_has_proba(predictions.y_proba, "classwise_calibration_error")
    errors = [
        _ece(
            proba[:, k].astype(np.float64),
            (predictions.y_true == k).astype(np.float64),
            predictions.sample_weight,
            n_bins,
            strategy,
        )
        for k in range(proba.shape[1])
    ]
    return float(np.mean(errors))


def debiased_l2(outcomes: Outcomes, n_bins: int = 15, strategy: str = "quantile") -> float:
    """Return the root of the mean squared gap, less what chance adds to it."""
    c = check.check_unit_confidence(outcomes.confidence, "debiased_calibration_error")
    weight, right = outcomes.sample_weight, 1.0 - outcomes.loss
    if weight is not None:
        check.warn_small_weights(float(np.sum(weight)), int(np.sum(weight > 0)), "debiased_l2")
    whole = bool(np.all((right == 0) | (right == 1)))
    columns = [c, right, None] if whole else [c, right, None, right * right]
    sums = _bin_sums(c, weight, columns, n_bins, strategy)
    judged = sums[2] > 1 + check.ROUNDING  # one row says nothing of its own scatter
    confidence, accuracy, size = (part[judged] for part in sums[:3])
    confidence, accuracy = confidence / size, accuracy / size
    square = accuracy if whole else sums[3][judged] / size
    scatter = np.maximum(square - accuracy**2, 0.0) / (size - 1.0)
    total = np.sum(size * ((accuracy - confidence) ** 2 - scatter))
    return float(np.sqrt(max(total, 0.0) / np.sum(sums[2])))


# Doors -----------------------------------------------------------------------------------


@metric
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

    Raises
    ------
    ValueError
        If a confidence is outside [0, 1], or an argument is malformed.

    See Also
    --------
    smooth_calibration_error : Does not depend on bins.

    Notes
    -----
    ECE = (1/n) sum over bins of |sum over the bin of (a - c)|, with a = 1 - loss [1]_. It
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
    return ece(outcomes_of(y_true, y_proba, **options), n_bins, strategy)


@metric
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

    Raises
    ------
    ValueError
        If a confidence is outside [0, 1], or an argument is malformed.

    Notes
    -----
    The maximum over bins that hold rows of |mean a - mean c| [1]_.

    References
    ----------
    .. [1] Guo et al., "On calibration of modern neural networks", 2017.

    Examples
    --------
    >>> from skselect.metrics import maximum_calibration_error
    >>> round(maximum_calibration_error([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.7
    """
    return mce(outcomes_of(y_true, y_proba, **options), n_bins, strategy)


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

    Raises
    ------
    ValueError
        If an argument is malformed; the message names it and the remedy.

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
    return classwise_ece(predictions_of(y_true, y_proba, **options), n_bins, strategy)


@metric
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

    Raises
    ------
    ValueError
        If a confidence is outside [0, 1], or an argument is malformed.

    Warns
    -----
    UserWarning
        If the weights sum to less than half the number of rows: they are counted as rows.

    Notes
    -----
    The root of max(0, sum over bins of (n_b/n) [(a_b - c_b)^2 - a_b (1 - a_b)/(n_b - 1)]),
    with the accuracy a_b and the mean confidence c_b of a bin of n_b rows [1]_. Weights count
    rows, so n_b is their sum; bins of at most one row are left out, as their scatter is
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
    return debiased_l2(outcomes_of(y_true, y_proba, **options), n_bins, strategy)
