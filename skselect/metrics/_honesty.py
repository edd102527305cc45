"""Metrics that read the confidence as the probability of being right."""

from __future__ import annotations

import warnings
from typing import Any, Unpack

import numpy as np

from skselect import _validation as check
from skselect._typing import FloatArray
from skselect.metrics._door import DoorOptions, metric, outcomes_of
from skselect.outcomes import Outcomes

# Kernels ---------------------------------------------------------------------------------


def cw_accuracy(outcomes: Outcomes) -> float:
    """Return sum w c (1 - l) / sum w c; nan if every confidence is zero."""
    confidence = check.check_unit_confidence(outcomes.confidence, "cw_accuracy")
    mass = outcomes.weight * confidence
    total = np.sum(mass)
    if not total > 0:
        warnings.warn(
            "cw_accuracy is undefined (nan): the confidence is 0 for every row.", stacklevel=3
        )
        return float("nan")
    return float(np.sum(mass * (1.0 - outcomes.loss)) / total)


def csr(outcomes: Outcomes, eps: float = 1e-8) -> float:
    """Return the weighted mean of l/(1 - c), c clipped to [eps, 1 - eps]."""
    check.check_number("eps", eps, 0.0, 0.5, closed="left")
    confidence = check.check_unit_confidence(outcomes.confidence, "csr")
    weight = outcomes.weight
    wrong = (outcomes.loss > 0) & (weight > 0)
    doubt = np.clip(1.0 - confidence[wrong], eps, 1.0 - eps)  # 1 - c is exact, 1 - (1 - eps) not
    if np.any(doubt == 0):
        return float("inf")
    return float(np.sum(weight[wrong] * outcomes.loss[wrong] / doubt) / np.sum(weight))


def expected_calibration_error_of(
    outcomes: Outcomes, n_bins: int = 15, strategy: str = "uniform"
) -> float:
    """Return the weighted mean over bins of |accuracy - mean confidence|."""
    confidence = check.check_unit_confidence(outcomes.confidence, "expected_calibration_error")
    check.check_count("n_bins", n_bins)
    check.check_choice("strategy", strategy, ["uniform", "quantile"])
    if strategy == "uniform":
        inner = np.arange(1, n_bins) / n_bins
    else:
        inner = _quantiles(confidence, outcomes.weight, n_bins)
    bins = np.searchsorted(inner, confidence, side="left")  # closed on the right
    gap = outcomes.weight * (1.0 - outcomes.loss - confidence)
    sums = np.bincount(bins, weights=gap, minlength=n_bins)
    return float(np.sum(np.abs(sums)) / np.sum(outcomes.weight))


def _quantiles(values: FloatArray, weight: FloatArray, n_bins: int) -> FloatArray:
    """Return the inner edges of bins of equal weight: the smallest values that fill k/n_bins."""
    order = np.argsort(values)
    filled = np.cumsum(weight[order])
    wanted = np.arange(1, n_bins) * filled[-1] / n_bins * (1.0 - check.ROUNDING)
    edges = np.searchsorted(filled, wanted, side="left")
    return values[order][np.minimum(edges, len(values) - 1)]


# Doors -----------------------------------------------------------------------------------


@metric
def cw_accuracy_score(y_true: Any, y_proba: Any, **options: Unpack[DoorOptions]) -> float:
    """Compute the confidence-weighted accuracy: each row counts by its confidence.

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 1]
        Above the accuracy when the classifier is surer where it is right.

    Raises
    ------
    ValueError
        If a confidence is outside [0, 1], or an argument is malformed.

    Notes
    -----
    cwA = sum w c (1 - l) / sum w c (definition 2 of [1]_).

    References
    ----------
    .. [1] "Confidence-weighted metrics and the confidence-scaled risk", arXiv 2605.01796.

    Examples
    --------
    >>> from skselect.metrics import cw_accuracy_score
    >>> round(cw_accuracy_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.7742
    """
    return cw_accuracy(outcomes_of(y_true, y_proba, **options))


@metric
def csr_score(
    y_true: Any, y_proba: Any, *, eps: float = 1e-8, **options: Unpack[DoorOptions]
) -> float:
    """Compute CSR, which explodes when a classifier errs while it is nearly certain.

    Parameters
    ----------
    %(data)s
    eps : float in [0, 0.5), default=1e-8
        Confidences are clipped to [eps, 1 - eps]; 0 does not clip (an error at confidence
        1 then gives inf).
    %(options)s

    Returns
    -------
    float
        Not negative. At most 1 in the mean for a classifier that is not overconfident;
        lower is safer.

    Raises
    ------
    ValueError
        If a confidence is outside [0, 1], or an argument is malformed.

    Notes
    -----
    CSR = (1/n) sum over wrong rows of 1/(1 - c) (definition 4 of [1]_). It detects
    overconfidence in the tail; it is not a test of calibration. Its clipped value is decided
    by `eps` as soon as one error has confidence 1, as isotonic calibration produces them.

    References
    ----------
    .. [1] "Confidence-weighted metrics and the confidence-scaled risk", arXiv 2605.01796.

    Examples
    --------
    >>> from skselect.metrics import csr_score
    >>> round(csr_score([0, 1, 1, 0], [.1, .9, .6, .75]), 4)
    1.0
    """
    return csr(outcomes_of(y_true, y_proba, **options), eps)


@metric
def expected_calibration_error(
    y_true: Any,
    y_proba: Any,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    **options: Unpack[DoorOptions],
) -> float:
    """Compute the binned gap between confidence and accuracy (lower is better).

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
    return expected_calibration_error_of(outcomes_of(y_true, y_proba, **options), n_bins, strategy)
