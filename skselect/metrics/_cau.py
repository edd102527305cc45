"""Correctness-aligned uncertainty: sure where right, unsure where wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from skselect._lib.arrays import FloatArray
from skselect._lib.checks import warn_user
from skselect._lib.checks.options import check_eps, check_number
from skselect._lib.checks.rows import check_has_proba
from skselect._lib.decide import normalized_entropy
from skselect._lib.keywords import ClassOptions
from skselect.metrics._metric import compute, defaults_of, metric, undefined
from skselect.predictions.predictions import Predictions

__all__ = ["cau_components", "cau_cost_score", "cau_score", "right_entropy_score"]
__all__ += ["wrong_entropy_score"]

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
    h = np.clip(_entropies(predictions, "cau"), eps, 1.0 - eps)
    cau_1, n_right = _mean_over(predictions, h, lambda h: -np.log1p(-h), right=True)
    cau_0, n_wrong = _mean_over(predictions, h, lambda h: -np.log(h), right=False)
    return CauComponents(cau_1, cau_0, n_right, n_wrong)


def _entropies(predictions: Predictions, name: str) -> FloatArray:
    return normalized_entropy(check_has_proba(predictions.y_proba, name))


def _mean_over(
    predictions: Predictions,
    h: FloatArray,
    loss: Callable[[FloatArray], FloatArray],
    *,
    right: bool,
) -> tuple[float, float]:
    """Return the mean loss of the right rows, or of the wrong ones, and their weight."""
    weight = predictions.sample_weight
    if weight is None:
        weight = np.ones(len(h))
    is_right = predictions.y_pred == predictions.y_true
    rows = (is_right == right) & (weight > 0)
    if not np.any(rows):
        return math.nan, 0.0
    weight = weight[rows]
    mean = np.average(loss(h[rows]), weights=weight)
    return float(mean), float(np.sum(weight))


def cau(predictions: Predictions, lambda_: float = 1.0, eps: float = 1e-8) -> float:
    """Return CAU_1 + lambda CAU_0; a part without rows is left out, with a warning."""
    check_number("lambda_", lambda_, 0.0)
    parts = find_components(predictions, eps)
    if math.isnan(parts.cau_1):
        warn_user("cau: there are no right rows, so CAU_1 is left out.")
    if math.isnan(parts.cau_0):
        warn_user("cau: there are no errors, so CAU_0 is left out.")
    return float(np.nansum([parts.cau_1, lambda_ * parts.cau_0]))


def cau_cost(
    predictions: Predictions, cost_right: float = 1.0, cost_wrong: float = 1.0, eps: float = 1e-8
) -> float:
    """Return the mean over rows of -log(1 - h) and -log h, times their costs."""
    check_number("cost_right", cost_right, 0.0)
    check_number("cost_wrong", cost_wrong, 0.0)
    parts = find_components(predictions, eps)
    n = parts.n_right + parts.n_wrong
    right = cost_right * parts.cau_1 * (parts.n_right / n)
    wrong = cost_wrong * parts.cau_0 * (parts.n_wrong / n)
    return float(np.nansum([right, wrong]))  # a part without rows is nan


def right_entropy(predictions: Predictions, normalize: bool = True) -> float:
    """Return the mean entropy of the right rows."""
    return _mean_entropy(predictions, "right", normalize)


def wrong_entropy(predictions: Predictions, normalize: bool = True) -> float:
    """Return the mean entropy of the wrong rows."""
    return _mean_entropy(predictions, "wrong", normalize)


def _mean_entropy(predictions: Predictions, kind: str, normalize: bool) -> float:
    h = _entropies(predictions, f"{kind}_entropy")
    value, weight = _mean_over(predictions, h, lambda h: h, right=kind == "right")
    if weight == 0:
        return undefined(f"{kind}_entropy", f"there are no {kind} rows")
    return value if normalize else value * math.log(len(predictions.classes))


# Public functions ------------------------------------------------------------------------


@defaults_of(find_components)
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
    return compute(find_components, y_true, y_proba, options, eps=eps)


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
    """Compute correctness-aligned uncertainty: uncertainty where right plus certainty where wrong.

    :Formula: ``mean -log(1 - h) if right + lambda mean -log h if wrong, h = H(p)/log K``
    :Use for: whether entropy is low where right and high where wrong
    :Not for: calibration: it rewards certainty
    :Source: conditional cross-entropy paper, eqs. 5-8

    Parameters
    ----------
    %(data)s
    lambda_ : float, not negative, default=1.0
        Weight of the part for being sure where wrong.
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
    return compute(cau, y_true, y_proba, options, lambda_=lambda_, eps=eps)


@metric(
    cau_cost,
    "lower",
    range="[0, inf)",
    undefined="a part without rows adds nothing; scorer without right rows: nan",
    needs_right=True,
)
def cau_cost_score(
    y_true: Any,
    y_proba: Any,
    *,
    cost_right: float = 1.0,
    cost_wrong: float = 1.0,
    eps: float = 1e-8,
    **options: Unpack[ClassOptions],
) -> float:
    """Compute correctness-aligned uncertainty as a mean over all rows, with costs.

    :Formula: ``(C1 sum of -log(1 - h) if right + C0 sum of -log h if wrong)/n``
    :Use for: the same as cau where every row counts alike, or errors have a cost
    :Not for: calibration: it rewards certainty
    :Source: conditional cross-entropy paper, eqs. 9, 10

    Parameters
    ----------
    %(data)s
    cost_right, cost_wrong : float, not negative, default=1.0
        Cost of uncertainty where right, and of certainty where wrong; 1 and 1 weigh all rows
        equally.
    eps : float in [1e-100, 0.5), default=1e-8
        Normalised entropies are clipped to [eps, 1 - eps].
    %(options)s

    Returns
    -------
    float
        Not negative; lower is better.

    %(raises)s

    See Also
    --------
    cau_score : Right and wrong rows count alike, however few there are.

    Notes
    -----
    C1 q CAU_1 + C0 (1 - q) CAU_0 with the share q of right rows and the parts of
    :func:`cau_components` (eq. 9 of [1]_; eq. 10 has C1 = C0 = 1). Where nearly all rows are
    right, errors hardly count unless `cost_wrong` is large.

    References
    ----------
    .. [1] %(cau)s

    Examples
    --------
    >>> from skselect.metrics import cau_cost_score
    >>> round(cau_cost_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    1.2328
    """
    return compute(
        cau_cost, y_true, y_proba, options, cost_right=cost_right, cost_wrong=cost_wrong, eps=eps
    )


@metric(
    right_entropy,
    "lower",
    range="[0, max(1, log K)]",
    undefined="no right rows: nan",
    rests_on="right answers",
)
def right_entropy_score(
    y_true: Any, y_proba: Any, *, normalize: bool = True, **options: Unpack[ClassOptions]
) -> float:
    """Compute the mean entropy of the probabilities of right rows.

    :Formula: ``mean of H(p) of right rows, in units of log K``
    :Use for: how unsure it is where it is right, beside wrong_entropy
    :Not for: alone: a model that is always certain has 0
    :Source: conditional cross-entropy paper, table 2

    Parameters
    ----------
    %(data)s
    normalize : bool, default=True
        In units of log K, the entropy of K equal probabilities; False: in nats.
    %(options)s

    Returns
    -------
    float in [0, 1]
        Lower is better; nan without right rows. In nats up to log K.

    %(raises)s

    Warns
    -----
    UserWarning
        If there are no right rows: the value is nan.

    References
    ----------
    .. [1] %(cau)s

    Examples
    --------
    >>> from skselect.metrics import right_entropy_score
    >>> round(right_entropy_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.6363
    """
    return compute(right_entropy, y_true, y_proba, options, normalize=normalize)


@metric(
    wrong_entropy,
    "higher",
    range="[0, max(1, log K)]",
    undefined="no errors: nan",
    rests_on="errors",
)
def wrong_entropy_score(
    y_true: Any, y_proba: Any, *, normalize: bool = True, **options: Unpack[ClassOptions]
) -> float:
    """Compute the mean entropy of the probabilities of wrong rows.

    :Formula: ``mean of H(p) of wrong rows, in units of log K``
    :Use for: how unsure it is where it is wrong, beside right_entropy
    :Not for: alone: a model that is never certain has 1
    :Source: conditional cross-entropy paper, table 2

    Parameters
    ----------
    %(data)s
    normalize : bool, default=True
        In units of log K, the entropy of K equal probabilities; False: in nats.
    %(options)s

    Returns
    -------
    float in [0, 1]
        Higher is better; nan without errors. In nats up to log K.

    %(raises)s

    Warns
    -----
    UserWarning
        If there are no errors: the value is nan.

    References
    ----------
    .. [1] %(cau)s

    Examples
    --------
    >>> from skselect.metrics import wrong_entropy_score
    >>> round(wrong_entropy_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.8813
    """
    return compute(wrong_entropy, y_true, y_proba, options, normalize=normalize)
