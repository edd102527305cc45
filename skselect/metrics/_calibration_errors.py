"""Calibration errors: over bins of the confidence (ECE and others), and without bins.

All compare the accuracy, 1 - loss, with the confidence.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Unpack

import numpy as np
import pandas as pd
from scipy.fft import dct, idct

from skselect._lib.arrays import ROUNDING, FloatArray, IntArray, are_constant, is_graded, spans
from skselect._lib.checks.options import check_choice, check_count, check_number
from skselect._lib.checks.rows import check_has_proba, check_unit_confidence, warn_small_weights
from skselect._lib.keywords import BinOptions, ClassBinOptions, WeighedRowOptions
from skselect.bounds._pointwise import clopper_pearson_interval, find_root
from skselect.curve.curve import RiskCoverageCurve
from skselect.curve.tie_blocks import Chunk
from skselect.metrics._metric import compute, compute_by_correctness, defaults_of, metric
from skselect.metrics._rows import Influence, ScoredRows, mean_of
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions

__all__ = ["classwise_calibration_error", "debiased_calibration_error", "ecce_mad", "ecce_r"]
__all__ += ["expected_calibration_error", "isotonic_calibration_distance"]
__all__ += ["maximum_calibration_error", "reliability_curve", "smooth_calibration_error"]
__all__ += ["top_label_brier_score"]

# Bins ------------------------------------------------------------------------------------

_Columns = Callable[[slice], list[FloatArray | float]]


def _equal_width(confidence: FloatArray, n_bins: int) -> IntArray:
    """Return the bin 0..n-1 of each row, closed on the right; 0 belongs to the first."""
    scaled = confidence * n_bins
    floor = np.floor(scaled)
    bins = floor.astype(np.int64)
    scaled -= floor
    # Near an edge k/n the product may round to the wrong side: compare with the edge itself.
    if scaled.min() < 1e-9 or scaled.max() > 1.0 - 1e-9:
        is_near = (scaled < 1e-9) | (scaled > 1.0 - 1e-9)
        near = np.flatnonzero(is_near)
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
    full_at = where_filled(np.cumsum(weight[order]), n_bins)
    return confidence[order][full_at]


def where_filled(filled: FloatArray | IntArray, n_bins: int) -> IntArray:
    """Return the row at which each bin but the last one is full, from the weight up to each row."""
    wanted = np.arange(1, n_bins) * filled[-1] / n_bins * (1.0 - ROUNDING)
    place = np.searchsorted(filled, wanted, side="left")
    return np.minimum(place, len(filled) - 1)


def bin_sums(
    confidence: FloatArray, weight: FloatArray | None, columns: _Columns, n_bins: int, strategy: str
) -> FloatArray:
    """Return the weighted sum of each column in each bin; the number 1 stands for a column of ones.

    `columns` gives the values of a slice of the rows.
    """
    _check_bins(n_bins, strategy)
    edges = None
    if strategy == "quantile":
        edges = _quantiles(confidence, weight, n_bins)
    total: Any = 0.0
    for rows in spans(len(confidence)):
        if edges is None:
            bins = _equal_width(confidence[rows], n_bins)
        else:
            bins = np.searchsorted(edges, confidence[rows])
        sums = []
        for column in columns(rows):
            values: Any = column
            if weight is not None:
                values = weight[rows] * column
            sums.append(np.bincount(bins, values if np.ndim(values) else None, n_bins))
        total = total + np.array(sums)
    return np.asarray(total)


def _check_bins(n_bins: int, strategy: str) -> None:
    check_count("n_bins", n_bins)
    check_choice("strategy", strategy, ["uniform", "quantile"])


def _gaps(curve: RiskCoverageCurve, n_bins: int, strategy: str) -> FloatArray:
    """Return the sum of (a - c) and the weight of each bin, whatever the order of the rows."""
    _check_bins(n_bins, strategy)
    edges = np.arange(1, n_bins) / n_bins
    if strategy == "quantile":
        # Blocks come surest first, quantiles last.
        edges = _quantiles(curve.thresholds[::-1], curve.block_weight[::-1], n_bins)
    sums = np.zeros((3, n_bins))
    for _, chunk in curve.blocks.chunks():
        _add_bins(sums, chunk, edges)
    coarse_gap, fine_part, size = sums
    return np.stack([coarse_gap - fine_part, size])


def _add_bins(sums: FloatArray, chunk: Chunk, edges: FloatArray) -> None:
    """Add what the blocks of a chunk have in each bin: a - coarse c, fine c, and weight."""
    coarse, fine = _halves(chunk.confidence)
    columns = [chunk.right - chunk.weight * coarse, chunk.weight * fine, chunk.weight]
    # A bin is a run of blocks: count the blocks above each edge.
    above = len(chunk) - np.searchsorted(chunk.confidence[::-1], edges, side="right")
    ends = [0, *above[::-1].tolist(), len(chunk)]
    for k, (start, end) in enumerate(pairwise(ends), start=1):
        if end > start:
            sums[:, -k] += [column[start:end].sum() for column in columns]


def _halves(confidence: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return multiples of 2^-26 and of 2^-54 that add up to numbers in [0, 1], rounded to 2^-54.

    Their sums are exact, and so do not depend on the order, for up to 2^26 rows.
    """
    # Adding 1.5 times a power of two drops the bits for which a float has no room.
    coarse = (confidence + 1.5 * 2.0**26) - 1.5 * 2.0**26
    fine = (confidence - coarse + 0.375) - 0.375
    return coarse, fine


# Kernels ---------------------------------------------------------------------------------


def ece(curve: RiskCoverageCurve, n_bins: int = 15, strategy: str = "uniform") -> float:
    """Return the weighted mean over bins of |accuracy - mean confidence|."""
    curve.check_unit("expected_calibration_error")
    gap, _ = _gaps(curve, n_bins, strategy)
    return float(np.abs(gap).sum() / curve.total_weight)


def mce(curve: RiskCoverageCurve, n_bins: int = 15, strategy: str = "uniform") -> float:
    """Return the largest |accuracy - mean confidence| of a bin."""
    curve.check_unit("maximum_calibration_error")
    gap, size = _gaps(curve, n_bins, strategy)
    filled = size > 0
    gap_of_bin = np.abs(gap[filled]) / size[filled]
    return float(np.max(gap_of_bin))


def classwise_ece(predictions: Predictions, n_bins: int = 15, strategy: str = "uniform") -> float:
    """Return the mean over classes of the ECE of each class's probability."""
    proba = check_has_proba(predictions.y_proba, "classwise_calibration_error")
    errors = []
    # One class at a time is in memory.
    for k, column in enumerate(proba.T):
        outcomes = Outcomes(predictions.y_true != k, column, predictions.sample_weight)
        curve = RiskCoverageCurve.from_outcomes(outcomes)
        errors.append(ece(curve, n_bins, strategy))
    return float(np.mean(errors))


def debiased_l2(outcomes: Outcomes, n_bins: int = 15, strategy: str = "quantile") -> float:
    """Return the root of the mean squared gap, less the part that chance adds."""
    c = outcomes.confidence
    loss = outcomes.loss
    weight = outcomes.sample_weight
    check_unit_confidence(c, "debiased_calibration_error")
    warn_small_weights(weight, "debiased_l2")

    def columns(rows: slice) -> list[FloatArray | float]:
        right = 1.0 - loss[rows]
        return [1.0, c[rows], right, right * right]

    sums = bin_sums(c, weight, columns, n_bins, strategy)
    # The variance of one row is unknown.
    counted = sums[0] > 1 + ROUNDING
    size = sums[0, counted]
    confidence, accuracy, square = sums[1:, counted] / size
    variance = np.maximum(square - accuracy**2, 0.0) / (size - 1.0)
    total = np.sum(size * ((accuracy - confidence) ** 2 - variance))
    return float(np.sqrt(max(total, 0.0) / np.sum(sums[0])))


def reliability(
    outcomes: Outcomes, n_bins: int = 15, strategy: str = "quantile", confidence_level: float = 0.95
) -> pd.DataFrame:
    """Return mean confidence, accuracy with its interval, and share of each filled bin."""
    level = check_number("confidence_level", confidence_level, 0.0, 1.0, closed="neither")
    c = outcomes.confidence
    loss = outcomes.loss
    weight = outcomes.sample_weight
    check_unit_confidence(c, "reliability_curve")

    def columns(rows: slice) -> list[FloatArray | float]:
        return [c[rows], 1.0 - loss[rows], 1.0]

    sums = bin_sums(c, weight, columns, n_bins, strategy)
    filled = sums[2] > 0
    sure, right, size = sums[:, filled]
    low, high = np.full((2, len(size)), np.nan)
    if are_constant(weight) and not is_graded(loss):
        unit = 1.0 if weight is None else weight[0]
        low, high = clopper_pearson_interval(np.round(right / unit), np.round(size / unit), level)
    return pd.DataFrame(
        {
            "confidence": sure / size,
            "accuracy": right / size,
            "low": low,
            "high": high,
            "share": size / np.sum(size),
        }
    )


# How much each row moves them ---------------------------------------------------------


def top_label_brier_influence(rows: ScoredRows) -> Influence:
    gap = 1.0 - rows.outcomes.loss - rows.outcomes.confidence
    return mean_of(gap**2, "log")


# Public functions ------------------------------------------------------------------------


@metric(
    ece,
    "lower",
    chance_raises="value",
    registered=True,
    meaning="Its confidence is off by {points} on average, judged in bins.",
)
def expected_calibration_error(y_true: Any, y_proba: Any, **options: Unpack[BinOptions]) -> float:
    """Compute the binned gap between confidence and accuracy, ECE (lower is better).

    :Formula: ``mean over bins of |mean a - mean c|``
    :Use for: the error that most papers report
    :Not for: few rows: it depends on the bins and is biased upwards
    :Source: Guo et al. 2017

    Parameters
    ----------
    %(data)s
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
    return compute_by_correctness(ece, y_true, y_proba, options)


@metric(
    mce,
    "lower",
    for_comparison=True,
    no_interval="the bin with the fewest rows decides it; use 'ece' or 'smooth_ece'",
)
def maximum_calibration_error(y_true: Any, y_proba: Any, **options: Unpack[BinOptions]) -> float:
    """Compute the largest gap between confidence and accuracy of a bin, MCE.

    :Formula: ``largest |mean a - mean c| of a bin``
    :Use for: the worst bin
    :Not for: bins with few rows decide it
    :Source: Guo et al. 2017

    Parameters
    ----------
    %(data)s
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
    return compute_by_correctness(mce, y_true, y_proba, options)


@metric(
    classwise_ece,
    "lower",
    for_comparison=True,
    no_interval="its bootstrap is biased in every class; use 'ece', or t_cal_test",
)
def classwise_calibration_error(
    y_true: Any, y_proba: Any, **options: Unpack[ClassBinOptions]
) -> float:
    """Compute the mean over classes of the calibration error of each class's probability.

    :Formula: ``mean over k of the ECE of p_k``
    :Use for: every class's probability counts
    :Not for: many classes: near 0 for all
    :Source: Kull et al. 2019

    Parameters
    ----------
    %(data)s
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
    return compute(classwise_ece, y_true, y_proba, options)


@metric(
    debiased_l2,
    "lower",
    undefined="bins of one row: left out",
    scale_free=False,
    chance_raises="draws",
)
def debiased_calibration_error(y_true: Any, y_proba: Any, **options: Unpack[BinOptions]) -> float:
    """Compute the root mean squared gap between confidence and accuracy without its bias.

    :Formula: ``root of mean (a_b - c_b)^2 - a_b (1 - a_b)/(n_b - 1)``
    :Use for: size of the error, few rows
    :Not for: ranking nearly calibrated models: many are exactly 0
    :Source: Kumar et al. 2019

    Parameters
    ----------
    %(data)s
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
    return compute_by_correctness(debiased_l2, y_true, y_proba, options)


@defaults_of(reliability)
def reliability_curve(
    y_true: Any, y_proba: Any, *, confidence_level: float = 0.95, **options: Unpack[BinOptions]
) -> pd.DataFrame:
    """Compute how often the classifier is right at each confidence.

    Parameters
    ----------
    %(data)s
    confidence_level : float in (0, 1), default=0.95
        Confidence level of the intervals. Each bin has one for its accuracy.
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
    return compute_by_correctness(
        reliability, y_true, y_proba, options, confidence_level=confidence_level
    )


# Kernels ---------------------------------------------------------------------------------

#: Cells of the grid on which residuals are smoothed.
_CELLS = 4096


def smooth_ece(outcomes: Outcomes) -> float:
    """Return the width s at which the absolute residuals, smoothed by s, add up to s."""
    confidence = check_unit_confidence(outcomes.confidence, "smooth_calibration_error")
    waves = dct(_residual_cells(outcomes, confidence), norm="ortho")
    squares = (np.pi * np.arange(_CELLS)) ** 2 / 2.0

    def excess(width: float) -> float:
        # Splitting rows between two cells of width h has smoothed them by a variance of h^2/6.
        variance = max(width**2 - 1.0 / (6.0 * _CELLS**2), 0.0)
        smoothed = idct(waves * np.exp(-squares * variance), norm="ortho")
        return float(np.sum(np.abs(smoothed))) - width

    if excess(0.0) <= 1e-15:  # every residual is zero
        return 0.0
    if excess(1.0) >= 0:
        return 1.0
    return find_root(excess, 0.0, 1.0, xtol=1e-9)


def _residual_cells(outcomes: Outcomes, confidence: FloatArray) -> FloatArray:
    """Split each row's (a - c)/n between the two cells whose centres are nearest to c."""
    weight = outcomes.sample_weight
    sums = np.zeros(_CELLS + 2)
    sums_above = np.zeros(_CELLS + 2)
    for rows in spans(len(confidence)):
        residual = 1.0 - outcomes.loss[rows] - confidence[rows]
        if weight is not None:
            residual = residual * weight[rows]
        place = confidence[rows] * _CELLS + 0.5
        # 0 and _CELLS + 1 lie outside: they are added to their neighbours.
        cell = place.astype(np.int64)
        above = residual * (place - cell)
        np.add.at(sums, cell, residual - above)
        np.add.at(sums_above, cell, above)
    sums[1:] += sums_above[: _CELLS + 1]
    sums[1] += sums[0]
    sums[_CELLS] += sums[_CELLS + 1]
    total = len(confidence) if weight is None else np.sum(weight)
    return sums[1 : _CELLS + 1] / total


def cumulative_gaps(curve: RiskCoverageCurve) -> FloatArray:
    """Return sum (a - c)/n over the rows up to each distinct confidence, the lowest first."""
    check_unit_confidence(curve.thresholds[[0, -1]], "ECCE")
    gap = curve.block_weight * (1.0 - curve.thresholds) - curve.block_loss
    return np.cumsum(gap[::-1]) / curve.accepted_weight[-1]


def largest_cumulative_gap(curve: RiskCoverageCurve) -> float:
    """Return the largest absolute cumulative gap."""
    return float(np.max(np.abs(cumulative_gaps(curve))))


def range_of_cumulative_gaps(curve: RiskCoverageCurve) -> float:
    """Return the range of the cumulative gaps, zero included."""
    gaps = cumulative_gaps(curve)
    highest = max(np.max(gaps), 0.0)
    lowest = min(np.min(gaps), 0.0)
    return float(highest - lowest)


def isotonic_distance(curve: RiskCoverageCurve) -> float:
    """Return the mean |c - isotonic(c)|."""
    check_unit_confidence(curve.thresholds[[0, -1]], "isotonic_calibration_distance")
    accuracy = 1.0 - curve.block_loss / curve.block_weight
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - this metric alone needs it

    fit = isotonic_regression(accuracy, weights=curve.block_weight, increasing=False).x
    distance = np.sum(curve.block_weight * np.abs(curve.thresholds - fit))
    return float(distance / curve.accepted_weight[-1])


def top_label_brier(outcomes: Outcomes) -> float:
    """Return the mean (c - a)^2."""
    confidence = check_unit_confidence(outcomes.confidence, "top_label_brier_score")
    gap = 1.0 - outcomes.loss
    gap -= confidence
    gap *= gap
    return float(np.average(gap, weights=outcomes.sample_weight))


# Public functions ------------------------------------------------------------------------


@metric(
    smooth_ece,
    "lower",
    chance_raises="value",
    meaning="Its confidence is off by {points} on average, judged without bins.",
)
def smooth_calibration_error(
    y_true: Any, y_proba: Any, **options: Unpack[WeighedRowOptions]
) -> float:
    """Compute the smooth calibration error, smECE, which needs no bins (lower is better).

    :Formula: ``s with integral |residuals smoothed by s| = s``
    :Use for: the error without bins: first choice
    :Not for: comparing models: never 0 in a sample; a test says more
    :Source: Blasiok & Nakkiran 2023

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 1]

    %(raises_unit)s

    Notes
    -----
    The residuals a - c are smoothed along c by a Gaussian kernel of width s, reflected at 0
    and 1; smECE is the s at which the integral of their absolute value equals s [1]_. The
    smoothing is a cosine transform on 4096 cells; the result agrees with direct summation
    to about 1e-5.

    References
    ----------
    .. [1] Blasiok & Nakkiran, "Smooth ECE: principled reliability diagrams via kernel
       smoothing", 2023.

    Examples
    --------
    >>> from skselect.metrics import smooth_calibration_error
    >>> round(smooth_calibration_error([0, 1, 1, 0], [.1, .9, .6, .7]), 3)
    0.107
    """
    return compute_by_correctness(smooth_ece, y_true, y_proba, options)


@metric(largest_cumulative_gap, "lower", name="ecce_mad", chance_raises="value")
def ecce_mad(y_true: Any, y_proba: Any, **options: Unpack[WeighedRowOptions]) -> float:
    """Compute the largest cumulative gap between accuracy and confidence, ECCE-MAD.

    :Formula: ``max over k of |sum over the k least sure of (a - c)|/n``
    :Use for: one-sided miscalibration, with a p-value (ecce_test)
    :Not for: comparing models: never 0 in a sample; a test says more
    :Source: Arrieta-Ibarra et al. 2022

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 1]
        Lower is better.

    %(raises_unit)s

    See Also
    --------
    ecce_test : The p-value.

    Notes
    -----
    max over k of abs(C_k) with C_k = (1/n) sum of a - c over the k least sure rows [1]_,
    evaluated between distinct confidences only.

    References
    ----------
    .. [1] Arrieta-Ibarra et al., "Metrics of calibration for probabilistic predictions",
       2022.

    Examples
    --------
    >>> from skselect.metrics import ecce_mad
    >>> round(ecce_mad([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.1
    """
    return compute_by_correctness(largest_cumulative_gap, y_true, y_proba, options)


@metric(range_of_cumulative_gaps, "lower", name="ecce_r", chance_raises="value")
def ecce_r(y_true: Any, y_proba: Any, **options: Unpack[WeighedRowOptions]) -> float:
    """Compute the range of the cumulative gaps between accuracy and confidence, ECCE-R.

    :Formula: ``largest |sum of (a - c)|/n over an interval of c``
    :Use for: miscalibration anywhere, with a p-value (ecce_test)
    :Not for: comparing models: never 0 in a sample; a test says more
    :Source: Arrieta-Ibarra et al. 2022

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 1]
        Lower is better; also known as the Kuiper calibration error.

    %(raises_unit)s

    See Also
    --------
    ecce_test : The p-value.

    Notes
    -----
    max C_k - min C_k over k = 0..n, C_k as in :func:`ecce_mad`; the largest abs(sum of a - c)/n
    over any interval of confidences [1]_.

    References
    ----------
    .. [1] Arrieta-Ibarra et al., "Metrics of calibration for probabilistic predictions",
       2022.

    Examples
    --------
    >>> from skselect.metrics import ecce_r
    >>> round(ecce_r([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.175
    """
    return compute_by_correctness(range_of_cumulative_gaps, y_true, y_proba, options)


@metric(isotonic_distance, "lower", chance_raises="value")
def isotonic_calibration_distance(
    y_true: Any, y_proba: Any, **options: Unpack[WeighedRowOptions]
) -> float:
    """Compute the mean distance of the confidences to their isotonic fit, MCalDist.

    :Formula: ``mean |c - isotonic(c)|``
    :Use for: what isotonic calibration would change
    :Not for: few rows: biased upwards
    :Source: arXiv 2605.01796

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 1]
        Lower is better; biased upwards for few rows, which isotonic regression overfits.

    %(raises_unit)s

    Notes
    -----
    (1/n) sum abs(c - iso(c)), iso the increasing regression of a on c on the same rows, tied
    confidences together [1]_. It bounds the calibration distance of [2]_ from above.

    References
    ----------
    .. [1] %(csr)s
    .. [2] Qiao & Zheng, "On the distance from calibration in sequential prediction", 2024.

    Examples
    --------
    >>> from skselect.metrics import isotonic_calibration_distance
    >>> round(isotonic_calibration_distance([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.125
    """
    return compute_by_correctness(isotonic_distance, y_true, y_proba, options)


@metric(
    top_label_brier,
    "lower",
    closed_form=top_label_brier_influence,
    meaning="Confidence and outcome (1 right, 0 wrong) differ by {number} on average, squared; "
    "a confidence of 0.5 throughout has 0.25.",
)
def top_label_brier_score(y_true: Any, y_proba: Any, **options: Unpack[WeighedRowOptions]) -> float:
    """Compute the mean squared difference of confidence and correctness.

    :Formula: ``mean (c - a)^2``
    :Use for: choosing calibrations that leave the predicted classes as they are
    :Not for: calibration alone: it also measures accuracy
    :Source: Brier 1950

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 1]
        Lower is better. It mixes calibration with accuracy.

    %(raises_unit)s

    Notes
    -----
    (1/n) sum (c - a)^2, a = 1 - loss, c the confidence in the predicted class: not the sum
    over all classes of [1]_.

    References
    ----------
    .. [1] Brier, "Verification of forecasts expressed in terms of probability", 1950.

    Examples
    --------
    >>> from skselect.metrics import top_label_brier_score
    >>> round(top_label_brier_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.1675
    """
    return compute_by_correctness(top_label_brier, y_true, y_proba, options)
