"""Calibration errors without bins: smooth, cumulative, isotonic, Brier."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from scipy.fft import dct, idct
from scipy.optimize import brentq, isotonic_regression

from skselect._lib.arrays import spans
from skselect._lib.checks.rows import check_unit_confidence
from skselect._lib.typing import FloatArray
from skselect.curve.curve import RiskCoverageCurve
from skselect.metrics._arguments import DoorOptions, claim_metric, judge_proba
from skselect.predictions.outcomes import Outcomes

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
    return float(brentq(excess, 0.0, 1.0, xtol=1e-9)) if excess(1.0) < 0 else 1.0


def _residual_cells(outcomes: Outcomes, confidence: FloatArray) -> FloatArray:
    """Split each row's (a - c)/n between the two cells whose centres are nearest to c."""
    weight = outcomes.sample_weight
    sums, sums_above = np.zeros(_CELLS + 2), np.zeros(_CELLS + 2)
    for rows in spans(len(confidence)):
        residual = 1.0 - outcomes.loss[rows] - confidence[rows]
        if weight is not None:
            residual = residual * weight[rows]
        place = confidence[rows] * _CELLS + 0.5
        cell = place.astype(np.int64)  # 0 and _CELLS + 1 lie outside: added to their neighbours
        above = residual * (place - cell)
        np.add.at(sums, cell, residual - above)
        np.add.at(sums_above, cell, above)
    sums[1:] += sums_above[: _CELLS + 1]
    sums[1] += sums[0]
    sums[_CELLS] += sums[_CELLS + 1]
    return sums[1 : _CELLS + 1] / (len(confidence) if weight is None else np.sum(weight))


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
    return float(max(np.max(gaps), 0.0) - min(np.min(gaps), 0.0))


def isotonic_distance(curve: RiskCoverageCurve) -> float:
    """Return the mean |c - isotonic(c)|."""
    check_unit_confidence(curve.thresholds[[0, -1]], "isotonic_calibration_distance")
    accuracy = 1.0 - curve.block_loss / curve.block_weight
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


@claim_metric
def smooth_calibration_error(y_true: Any, y_proba: Any, **options: Unpack[DoorOptions]) -> float:
    """Compute the smooth calibration error, smECE, which needs no bins (lower is better).

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
    return smooth_ece(judge_proba(y_true, y_proba, **options).claimed.outcomes)


@claim_metric
def ecce_mad(y_true: Any, y_proba: Any, **options: Unpack[DoorOptions]) -> float:
    """Compute the largest cumulative gap between accuracy and confidence, ECCE-MAD.

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
    return largest_cumulative_gap(judge_proba(y_true, y_proba, **options).claimed.curve)


@claim_metric
def ecce_r(y_true: Any, y_proba: Any, **options: Unpack[DoorOptions]) -> float:
    """Compute the range of the cumulative gaps between accuracy and confidence, ECCE-R.

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
    return range_of_cumulative_gaps(judge_proba(y_true, y_proba, **options).claimed.curve)


@claim_metric
def isotonic_calibration_distance(
    y_true: Any, y_proba: Any, **options: Unpack[DoorOptions]
) -> float:
    """Compute the mean distance of the confidences to their isotonic fit, MCalDist.

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
    return isotonic_distance(judge_proba(y_true, y_proba, **options).claimed.curve)


@claim_metric
def top_label_brier_score(y_true: Any, y_proba: Any, **options: Unpack[DoorOptions]) -> float:
    """Compute the mean squared difference of confidence and correctness.

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
    return top_label_brier(judge_proba(y_true, y_proba, **options).claimed.outcomes)
