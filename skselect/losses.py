"""Training losses of papers on selective classification, for XGBoost and torch.

They are here so that the papers can be repeated and built upon. Where we measured them,
cross-entropy alone abstained better on average: see the page on training losses.

The kernels compute values and their derivatives by the logits, in plain numpy. Each loss is a mean
over rows of weight w, the share of a row being w / sum of w. Which class has the largest logit, and
so whether a row is right, counts as fixed: it has no derivative.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_softmax

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, dot
from skselect._lib.checks.options import check_choice, check_number
from skselect._lib.files import import_extra

__all__ = ["CAUObjective", "SoftCWSAObjective", "cau_loss", "soft_cwsa_loss"]


def __dir__() -> list[str]:
    return __all__


#: Normalised entropies are clipped to [EPS, 1 - EPS], which float32 can tell from 0 and 1; a share
#: of EPS in the denominator of soft CWSA makes it 0 where nothing is accepted.
EPS = 1e-6


class Derivatives(NamedTuple):
    """The first derivative of a loss by each row and logit, and a bound of the second.

    `bound` is at least as large as the second derivative, and never negative.
    """

    gradient: FloatArray
    bound: FloatArray


class Smooth(NamedTuple):
    """One number per row, and its first and second derivative."""

    value: FloatArray
    slope: FloatArray
    curvature: FloatArray


# What users choose -----------------------------------------------------------------------


def check_cau(alpha: Any, lambda_: Any, variant: Any) -> None:
    """Check the parameters of the loss with CAU."""
    check_number("alpha", alpha, 0.0, np.inf, closed="left")
    check_number("lambda_", lambda_, 0.0, np.inf, closed="left")
    check_choice("variant", variant, ["balanced", "shares"])


def check_soft_cwsa(threshold: Any, temperature: Any, alpha: Any) -> None:
    """Check the parameters of the loss with soft CWSA."""
    check_number("threshold", threshold, 0.0, 1.0, closed="left")
    check_number("temperature", temperature, 0.0, np.inf, closed="neither")
    check_number("alpha", alpha, 0.0, np.inf, closed="left")


# Terms -----------------------------------------------------------------------------------


def _cross_entropy(log_p: FloatArray, codes: IntArray, weight: FloatArray) -> Derivatives:
    share = weight / weight.sum()
    share = share[:, None]
    p = np.exp(log_p)
    truth = np.arange(p.shape[1]) == codes[:, None]
    gradient = share * (p - truth)
    bound = share * p * (1.0 - p)
    return Derivatives(gradient, bound)


def _cau(
    log_p: FloatArray, codes: IntArray, weight: FloatArray, lambda_: float, variant: str
) -> Derivatives:
    """Return means of -log(1 - h) over right rows and of -log h over wrong ones, added up."""
    entropy = _normalized_entropy(log_p)
    h = np.clip(entropy.value, EPS, 1.0 - EPS)
    inside = (h > EPS) & (h < 1.0 - EPS)
    right = np.argmax(log_p, axis=1) == codes
    factor = np.where(right, 1.0, lambda_)
    share = _shares_of_kinds(weight, right, variant) * factor
    away = np.where(right, 1.0 - h, -h)  # from the end where the loss is infinite
    slope = inside * share / away
    curvature = inside * share / away**2
    return _chained(slope, curvature, entropy)


def _normalized_entropy(log_p: FloatArray) -> Smooth:
    """Return the entropy over log K of each row, and its derivatives by each logit."""
    p = np.exp(log_p)
    entropy = -np.sum(p * log_p, axis=1)
    largest = np.log(p.shape[1])
    above_mean = log_p + entropy[:, None]
    slope = -p * above_mean / largest
    curvature = -p * ((1.0 - 2.0 * p) * above_mean + 1.0 - p) / largest
    return Smooth(entropy / largest, slope, curvature)


def _shares_of_kinds(weight: FloatArray, right: BoolArray, variant: str) -> FloatArray:
    """Return the share of each row: among rows as right or wrong as itself, or among all."""
    if variant == "shares":
        return weight / weight.sum()
    weight_right = weight[right].sum()
    weight_wrong = weight[~right].sum()
    of_kind = np.where(right, weight_right, weight_wrong)
    share = np.zeros_like(weight)
    return np.divide(weight, of_kind, out=share, where=of_kind > 0)


def _minus_soft_cwsa(
    log_p: FloatArray, codes: IntArray, weight: FloatArray, threshold: float, temperature: float
) -> Derivatives:
    """Return minus CWSA with max(0, c - t) and the mask c >= t made smooth."""
    share = weight / weight.sum()
    answer = np.argmax(log_p, axis=1)
    confidence = _proba_of_answer(log_p, answer)
    sign = np.where(answer == codes, 1.0, -1.0) / (1.0 - threshold)
    above = (confidence.value - threshold) / temperature
    mask = _soft_mask(above, temperature)
    accepted = dot(share, mask.value) + EPS
    value = dot(share, sign * temperature * np.logaddexp(0.0, above)) / accepted
    # The score is a ratio, whose denominator depends on the same confidence.
    part = share / accepted
    slope = part * (mask.value * sign - mask.slope * value)
    curvature = part * (mask.slope * sign - mask.curvature * value - 2.0 * mask.slope * slope)
    return _chained(-slope, -curvature, confidence)


def _proba_of_answer(log_p: FloatArray, answer: IntArray) -> Smooth:
    """Return the probability of each answer, and its derivatives by each logit."""
    p = np.exp(log_p)
    is_answer = np.arange(p.shape[1]) == answer[:, None]
    confidence = p[is_answer]
    c = confidence[:, None]
    slope = c * (is_answer - p)
    by_answer = c * (1.0 - c) * (1.0 - 2.0 * c)
    by_others = c * p * (2.0 * p - 1.0)
    curvature = np.where(is_answer, by_answer, by_others)
    return Smooth(confidence, slope, curvature)


def _soft_mask(above: FloatArray, temperature: float) -> Smooth:
    """Return the smooth c >= t, which is the slope of the smooth max(0, c - t)."""
    mask = expit(above)
    slope = mask * (1.0 - mask) / temperature
    curvature = slope * (1.0 - 2.0 * mask) / temperature
    return Smooth(mask, slope, curvature)


def _chained(slope: FloatArray, curvature: FloatArray, inner: Smooth) -> Derivatives:
    """Return the derivatives of a function of one number per row, which depends on the logits.

    The second one is a sum of two parts, by the slope of the function and by its curvature; the
    bound takes both as positive.
    """
    slope = slope[:, None]
    curvature = curvature[:, None]
    by_slope = slope * inner.curvature
    by_curvature = curvature * inner.slope**2
    bound = np.abs(by_slope) + np.abs(by_curvature)
    return Derivatives(slope * inner.slope, bound)


_REMEDY = "it is for XGBClassifier(objective=...), not for XGBRegressor or xgboost.train."


class _Objective(ABC):
    """What XGBoost calls in each round.

    Two classes come as one margin per row: the logit of class 1 where that of class 0 is 0.
    """

    alpha: float

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the first derivative of the loss by each margin, and a bound of the second.

        Parameters
        ----------
        y_true : ndarray of shape (n,)
            Classes, numbered from 0.
        y_pred : ndarray of shape (n,) or (n, K)
            Margins (logits).
        sample_weight : ndarray of shape (n,), default=None

        Returns
        -------
        gradient, hessian : ndarray of the shape of y_pred

        Raises
        ------
        ValueError
            If the labels are no numbers of classes, or come from ``xgboost.train``.
        """
        if hasattr(y_pred, "get_label"):
            raise ValueError(f"{type(self).__name__} got a DMatrix; {_REMEDY}")
        margin = np.asarray(y_pred, dtype=np.float64)
        is_binary = margin.ndim == 1
        logits = margin
        if is_binary:
            logits = np.stack([np.zeros_like(margin), margin], axis=1)
        codes = self._read_codes(y_true, logits.shape[1])
        weight = np.ones(len(codes))
        if sample_weight is not None:
            weight = np.asarray(sample_weight, dtype=np.float64)
        derivatives = self._derivatives(logits, codes, weight)
        # XGBoost adds up rows; a mean would be lost beside its penalty on large steps.
        total = weight.sum()
        gradient = total * derivatives.gradient
        hessian = total * derivatives.bound
        if is_binary:
            gradient = gradient[:, 1]
            hessian = hessian[:, 1]
        else:
            # Logits move at the same time. XGBoost's own softmax allows for it by the same factor.
            hessian *= 2.0
        return gradient, np.maximum(hessian, 1e-16)

    def _read_codes(self, y_true: Any, n_classes: int) -> IntArray:
        """Return the numbers of the classes, which are all that XGBoost's classifier passes."""
        labels = np.asarray(y_true)
        codes = labels.astype(np.int64)
        if np.any((codes != labels) | (codes < 0) | (codes >= n_classes)):
            raise ValueError(
                f"{type(self).__name__} got labels that are not 0 to {n_classes - 1}; {_REMEDY}"
            )
        return codes

    def _derivatives(self, logits: FloatArray, codes: IntArray, weight: FloatArray) -> Derivatives:
        """Return the derivatives of cross-entropy + alpha times the term."""
        log_p = log_softmax(logits, axis=1)
        plain = _cross_entropy(log_p, codes, weight)
        term = self._term(log_p, codes, weight)
        gradient = plain.gradient + self.alpha * term.gradient
        bound = plain.bound + self.alpha * term.bound
        return Derivatives(gradient, bound)

    @abstractmethod
    def _term(self, log_p: FloatArray, codes: IntArray, weight: FloatArray) -> Derivatives:
        """Return the derivatives of what is added to cross-entropy."""


@dataclass(frozen=True)
class CAUObjective(_Objective):
    """Cross-entropy + alpha (CAU_1 + lambda CAU_0), for XGBoost.

    A plain object for ``XGBClassifier(objective=CAUObjective(...))``: it can be cloned, pickled,
    compared, and be a value in a grid search. It is the same loss as :func:`cau_loss`.

    Parameters
    ----------
    alpha : float, not negative, default=0.1
        Weight of CAU. 0 is cross-entropy alone.
    lambda_ : float, not negative, default=1.0
        Weight of the part for being sure where wrong. This is CAU_0.
    variant : {"balanced", "shares"}, default="balanced"
        `"balanced"`: CAU_1 is a mean over right rows, CAU_0 one over wrong rows, so that both kinds
        count alike however few there are. `"shares"`: both are sums divided by the number of all
        rows, so that every row counts alike.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    See Also
    --------
    cau_loss : The same for torch.
    skselect.metrics.cau_score : CAU as a metric.

    Notes
    -----
    With h = entropy/log K of a row's probabilities, CAU_1 = mean of -log(1 - h) over right rows and
    CAU_0 = mean of -log h over wrong rows; the loss is eq. 13 of [1]_, with `"shares"` in the form
    of its eq. 10. A row is right if its class has the largest margin now. h is clipped to
    [1e-6, 1 - 1e-6]. The paper prints neither alpha nor lambda. Where there are no errors (or no
    right rows) in the training rows, their part is 0.

    XGBoost needs second derivatives above 0, which those of CAU are not always. It gets an upper
    bound: the second derivative along one margin is f' h'' + f'' h'^2, f being -log(1 - h) or
    -log h, and the bound takes both parts as positive. With three or more classes it is doubled,
    as in XGBoost's own softmax.

    References
    ----------
    .. [1] "Uncertainty quantification revisited: conditional cross-entropy for neural
       classifiers", eqs. 10, 11 and 13.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.losses import CAUObjective
    >>> gradient, hessian = CAUObjective(alpha=0.5)(np.array([0, 1]), np.array([-2.0, -1.0]))
    >>> gradient.round(3), hessian.round(3)
    (array([ 0.76 , -1.069]), array([0.683, 0.492]))
    """

    alpha: float = 0.1
    lambda_: float = 1.0
    variant: str = "balanced"

    def __post_init__(self) -> None:
        check_cau(self.alpha, self.lambda_, self.variant)

    def _term(self, log_p: FloatArray, codes: IntArray, weight: FloatArray) -> Derivatives:
        return _cau(log_p, codes, weight, self.lambda_, self.variant)


@dataclass(frozen=True)
class SoftCWSAObjective(_Objective):
    """Cross-entropy - alpha soft CWSA, for XGBoost.

    A plain object for ``XGBClassifier(objective=SoftCWSAObjective(...))``: it can be cloned,
    pickled, compared, and be a value in a grid search. It is the same loss as
    :func:`soft_cwsa_loss`.

    Parameters
    ----------
    threshold : float in [0, 1), default=0.8
        Rows with confidence >= threshold are accepted.
    temperature : float above 0, default=0.05
        How soft the threshold is: the smaller, the nearer to CWSA, and the fewer rows matter.
    alpha : float, not negative, default=0.5
        Weight of soft CWSA. 0 is cross-entropy alone.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    See Also
    --------
    soft_cwsa_loss : The same for torch.
    skselect.metrics.cwsa_score : CWSA as a metric.

    Notes
    -----
    CWSA [1]_ adds up +-max(0, c - t)/(1 - t), + for right rows and - for wrong ones, where c is the
    largest probability and t the threshold, and divides by the number of rows with c >= t. Both
    are made smooth: with u = (c - t)/temperature, ::

        soft CWSA = sum of w (+-) temperature log(1 + e^u)/(1 - t)
                    / (sum of w/(1 + e^-u) + 1e-6 sum of w)

    As the temperature falls it tends to CWSA, 0 where nothing is accepted included. The
    surrogate is ours: the paper leaves one for later (its section 8). A row is right if its class
    has the largest margin now. That cannot teach which class is right, so the loss is
    cross-entropy - alpha soft CWSA.

    The second derivatives that XGBoost gets are upper bounds, as for :class:`CAUObjective`.

    References
    ----------
    .. [1] Shahnazari et al., "Trust, or don't predict", arXiv 2505.18622, 2025,
       section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.losses import SoftCWSAObjective
    >>> objective = SoftCWSAObjective(threshold=0.8, temperature=0.1)
    >>> gradient, hessian = objective(np.array([0, 1]), np.array([-2.0, -1.0]))
    >>> gradient.round(3), hessian.round(3)
    (array([ 0.391, -1.211]), array([0.341, 0.533]))
    """

    threshold: float = 0.8
    temperature: float = 0.05
    alpha: float = 0.5

    def __post_init__(self) -> None:
        check_soft_cwsa(self.threshold, self.temperature, self.alpha)

    def _term(self, log_p: FloatArray, codes: IntArray, weight: FloatArray) -> Derivatives:
        return _minus_soft_cwsa(log_p, codes, weight, self.threshold, self.temperature)


def cau_loss(
    logits: Any,
    target: Any,
    *,
    alpha: float = 0.1,
    lambda_: float = 1.0,
    variant: str = "balanced",
    sample_weight: Any = None,
) -> Any:
    """Compute cross-entropy + alpha (CAU_1 + lambda CAU_0) of a batch, for torch.

    Parameters
    ----------
    logits : Tensor of shape (n, K) or (n,)
        Outputs before the softmax; for two classes also one per row, before the sigmoid.
    target : Tensor of shape (n,)
        Classes, numbered from 0.
    alpha : float, not negative, default=0.1
        Weight of CAU. 0 is cross-entropy alone.
    lambda_ : float, not negative, default=1.0
        Weight of the part for being sure where wrong. This is CAU_0.
    variant : {"balanced", "shares"}, default="balanced"
        `"balanced"`: CAU_1 is a mean over the right rows of the batch, CAU_0 one over the wrong
        rows, so that both kinds count alike however few there are. `"shares"`: both are sums
        divided by the number of all rows, so that every row counts alike.
    sample_weight : Tensor of shape (n,), default=None

    Returns
    -------
    Tensor
        One number, with a gradient, on the device of the logits.

    Raises
    ------
    ImportError
        If torch is not installed.
    ValueError
        If a parameter is outside its range.

    See Also
    --------
    CAUObjective : The same for XGBoost; its notes have the formula and its source.

    Notes
    -----
    A part without rows, such as CAU_0 in a batch without errors, is 0. Which rows are right counts
    as fixed. The loss of a batch is not the mean of the losses of its halves.

    Examples
    --------
    >>> import torch
    >>> from skselect.losses import cau_loss
    >>> logits = torch.tensor([[2.0, 0.0], [1.0, 0.0]], requires_grad=True)
    >>> loss = cau_loss(logits, torch.tensor([0, 1]), alpha=0.5)
    >>> loss.backward()
    >>> round(loss.item(), 3)
    1.182
    """
    check_cau(alpha, lambda_, variant)
    torch, log_p, target, weight = _torch_batch(logits, target, sample_weight)
    h = -(log_p.exp() * log_p).sum(dim=1) / math.log(log_p.shape[1])
    h = h.clamp(EPS, 1.0 - EPS)
    right = log_p.argmax(dim=1) == target
    parts = torch.where(right, -torch.log1p(-h), -lambda_ * torch.log(h))
    share = weight / weight.sum()
    if variant == "balanced":
        weight_right = weight[right].sum()
        weight_wrong = weight[~right].sum()
        of_kind = torch.where(right, weight_right, weight_wrong)
        share = torch.where(of_kind > 0, weight / of_kind, 0.0)
    cross_entropy = _torch_cross_entropy(log_p, target, weight)
    return cross_entropy + alpha * (share * parts).sum()


def soft_cwsa_loss(
    logits: Any,
    target: Any,
    *,
    threshold: float = 0.8,
    temperature: float = 0.05,
    alpha: float = 0.5,
    sample_weight: Any = None,
) -> Any:
    """Compute cross-entropy - alpha soft CWSA of a batch, for torch.

    Parameters
    ----------
    logits : Tensor of shape (n, K) or (n,)
        Outputs before the softmax; for two classes also one per row, before the sigmoid.
    target : Tensor of shape (n,)
        Classes, numbered from 0.
    threshold : float in [0, 1), default=0.8
        Rows with confidence >= threshold are accepted.
    temperature : float above 0, default=0.05
        How soft the threshold is: the smaller, the nearer to CWSA, and the fewer rows matter.
    alpha : float, not negative, default=0.5
        Weight of soft CWSA. 0 is cross-entropy alone.
    sample_weight : Tensor of shape (n,), default=None

    Returns
    -------
    Tensor
        One number, with a gradient, on the device of the logits.

    Raises
    ------
    ImportError
        If torch is not installed.
    ValueError
        If a parameter is outside its range.

    See Also
    --------
    SoftCWSAObjective : The same for XGBoost; its notes have the formula and its source.

    Examples
    --------
    >>> import torch
    >>> from skselect.losses import soft_cwsa_loss
    >>> logits = torch.tensor([[2.0, 0.0], [1.0, 0.0]], requires_grad=True)
    >>> loss = soft_cwsa_loss(logits, torch.tensor([0, 1]), temperature=0.1)
    >>> loss.backward()
    >>> round(loss.item(), 3)
    0.532
    """
    check_soft_cwsa(threshold, temperature, alpha)
    torch, log_p, target, weight = _torch_batch(logits, target, sample_weight)
    log_c, answer = log_p.max(dim=1)
    above = (log_c.exp() - threshold) / temperature
    phi = temperature * torch.logaddexp(above, torch.zeros_like(above)) / (1.0 - threshold)
    gain = torch.where(answer == target, phi, -phi)
    share = weight / weight.sum()
    accepted = (share * torch.sigmoid(above)).sum() + EPS
    soft_cwsa = (share * gain).sum() / accepted
    return _torch_cross_entropy(log_p, target, weight) - alpha * soft_cwsa


def _torch_batch(logits: Any, target: Any, sample_weight: Any) -> tuple[Any, Any, Any, Any]:
    """Return torch, log-probabilities of at least single precision, classes and weights."""
    torch = import_extra("torch", "torch")
    dtype = torch.promote_types(logits.dtype, torch.float32)
    logits = logits.to(dtype)
    if logits.ndim == 1:
        logits = torch.stack([torch.zeros_like(logits), logits], dim=1)
    weight = logits.new_ones(len(logits))
    if sample_weight is not None:
        weight = sample_weight.to(logits)
    log_p = torch.log_softmax(logits, dim=1)
    return torch, log_p, target.long(), weight


def _torch_cross_entropy(log_p: Any, target: Any, weight: Any) -> Any:
    log_p_of_target = log_p.gather(1, target[:, None])
    per_row = -log_p_of_target[:, 0]
    return (weight * per_row).sum() / weight.sum()
