"""Correctness-aligned uncertainty: sure where right, unsure where wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from skselect._lib.checks import warn_user
from skselect._lib.checks.options import check_number
from skselect._lib.checks.rows import check_has_proba
from skselect._lib.typing import FloatArray
from skselect.metrics._metric import ClassOptions, check_eps, metric, share_options
from skselect.predictions.confidence import normalized_entropy
from skselect.predictions.predictions import Predictions

__all__ = ["CauComponents", "cau_components", "cau_score"]

# Kernels ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CauComponents:
    """The two halves of correctness-aligned uncertainty.

    Parameters
    ----------
    cau_1 : float
        Mean of -log(1 - h) over right rows: how unsure the classifier is where it is right.
        nan without right rows.
    cau_0 : float
        Mean of -log h over wrong rows: how sure it is where it is wrong. nan without errors.
    n_right, n_wrong : float
        Rows of each kind, counted by their weights.
    """

    cau_1: float
    cau_0: float
    n_right: float
    n_wrong: float


def find_components(predictions: Predictions, eps: float = 1e-8) -> CauComponents:
    """Return both parts, each a weighted mean."""
    check_eps(eps, zero=False)
    proba = check_has_proba(predictions.y_proba, "cau")
    h = np.clip(normalized_entropy(proba), eps, 1.0 - eps)
    weight = predictions.sample_weight
    weight = np.ones(len(predictions)) if weight is None else weight
    right = (predictions.y_pred == predictions.y_true) & (weight > 0)
    wrong = (predictions.y_pred != predictions.y_true) & (weight > 0)
    return CauComponents(
        cau_1=_mean(-np.log1p(-h)[right], weight[right]),
        cau_0=_mean(-np.log(h)[wrong], weight[wrong]),
        n_right=float(np.sum(weight[right])),
        n_wrong=float(np.sum(weight[wrong])),
    )


def _mean(values: FloatArray, weight: FloatArray) -> float:
    return float(np.average(values, weights=weight)) if len(values) else math.nan


def cau(predictions: Predictions, lambda_: float = 1.0, eps: float = 1e-8) -> float:
    """Return CAU_1 + lambda CAU_0; a part without rows is left out, with a warning."""
    check_number("lambda_", lambda_, 0.0)
    parts = find_components(predictions, eps)
    total = 0.0
    for name, value, factor, rows in [
        ("CAU_1", parts.cau_1, 1.0, "right rows"),
        ("CAU_0", parts.cau_0, float(lambda_), "errors"),
    ]:
        if math.isnan(value):
            warn_user(f"cau: there are no {rows}, so {name} is left out.")
        else:
            total += factor * value
    return total


# Public functions ------------------------------------------------------------------------


@share_options
def cau_components(
    y_true: Any, y_proba: Any, *, eps: float = 1e-8, **options: Unpack[ClassOptions]
) -> CauComponents:
    """Compute the two halves of correctness-aligned uncertainty.

    Parameters
    ----------
    %(data)s
    eps : float in [1e-100, 0.5), default=1e-8
        Normalised entropies are clipped to [eps, 1 - eps].
    %(options)s

    Returns
    -------
    CauComponents
        `cau_1` over right rows and `cau_0` over wrong ones; nan where there are none.

    %(raises)s

    Notes
    -----
    With h = entropy/log K of a row's probabilities, CAU_1 = mean of -log(1 - h) over right
    rows and CAU_0 = mean of -log h over wrong rows. The paper's printed identity
    -log(1 - h) = 1 - h is not one; only the logarithmic form fits its tables.

    References
    ----------
    .. [1] "Uncertainty quantification revisited: conditional cross-entropy for neural
       classifiers", eqs. 5 and 8.

    Examples
    --------
    >>> from skselect.metrics import cau_components
    >>> parts = cau_components([0, 1, 1, 0], [.1, .9, .6, .7])
    >>> round(parts.cau_1, 4), round(parts.cau_0, 4)
    (1.6016, 0.1264)
    """
    return find_components(Predictions.from_proba(y_true, y_proba, **options), eps)


@metric(
    cau,
    "lower",
    range="[0, inf)",
    undefined="a part without rows: left out; scorer without right rows: nan",
    needs_right=True,
    registered=True,
)
def cau_score(
    y_true: Any,
    y_proba: Any,
    *,
    lambda_: float = 1.0,
    eps: float = 1e-8,
    **options: Unpack[ClassOptions],
) -> float:
    """Compute correctness-aligned uncertainty: unsure where right plus sure where wrong.

    :Formula: ``mean -log(1 - h) if right + lambda mean -log h if wrong, h = H(p)/log K``
    :Use for: whether entropy is low where right and high where wrong
    :Not for: calibration: it rewards certainty
    :Source: conditional cross-entropy paper, eqs. 5-8

    Parameters
    ----------
    %(data)s
    lambda_ : float, not negative, default=1.0
        Weight of the second part, for being sure where wrong.
    eps : float in [1e-100, 0.5), default=1e-8
        Normalised entropies are clipped to [eps, 1 - eps].
    %(options)s

    Returns
    -------
    float
        Not negative; lower is better.

    %(raises)s

    Warns
    -----
    UserWarning
        If there are no errors or no right rows: their part is left out.

    Notes
    -----
    CAU_1 + lambda CAU_0, see :func:`cau_components`.

    References
    ----------
    .. [1] "Uncertainty quantification revisited: conditional cross-entropy for neural
       classifiers", eqs. 5-8.

    Examples
    --------
    >>> from skselect.metrics import cau_score
    >>> round(cau_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    1.7279
    """
    return cau(Predictions.from_proba(y_true, y_proba, **options), lambda_, eps)
