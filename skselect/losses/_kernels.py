"""Values of training losses and their derivatives by the logits, in plain numpy.

Each loss is a mean over rows of weight w, the share of a row being w / sum of w. Which class has
the largest logit, and so whether a row is right, counts as fixed: it has no derivative.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_softmax

from skselect._lib.checks.options import check_choice, check_number
from skselect._lib.typing import BoolArray, FloatArray, IntArray

#: Normalised entropies are clipped to [EPS, 1 - EPS], which float32 can tell from 0 and 1; a share
#: of EPS in the denominator of soft CWSA makes it 0 where nothing is accepted.
EPS = 1e-6


class Derivatives(NamedTuple):
    """A loss, and for each row and logit its first and second derivative.

    `bound` is at least as large as the second derivative, and never negative.
    """

    value: float
    gradient: FloatArray
    hessian: FloatArray
    bound: FloatArray

    def plus(self, alpha: float, term: Derivatives) -> Derivatives:
        """Return this loss + alpha times another one."""
        return Derivatives(
            self.value + alpha * term.value,
            self.gradient + alpha * term.gradient,
            self.hessian + alpha * term.hessian,
            self.bound + alpha * term.bound,
        )


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


# Losses ----------------------------------------------------------------------------------


def cau_derivatives(
    logits: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    alpha: float,
    lambda_: float,
    variant: str,
) -> Derivatives:
    """Return cross-entropy + alpha (CAU_1 + lambda CAU_0), and its derivatives."""
    log_p = log_softmax(logits, axis=1)
    term = _cau(log_p, codes, weight, lambda_, variant)
    return _cross_entropy(log_p, codes, weight).plus(alpha, term)


def soft_cwsa_derivatives(
    logits: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    threshold: float,
    temperature: float,
    alpha: float,
) -> Derivatives:
    """Return cross-entropy - alpha soft CWSA, and its derivatives."""
    log_p = log_softmax(logits, axis=1)
    term = _minus_soft_cwsa(log_p, codes, weight, threshold, temperature)
    return _cross_entropy(log_p, codes, weight).plus(alpha, term)


# Terms -----------------------------------------------------------------------------------


def _cross_entropy(log_p: FloatArray, codes: IntArray, weight: FloatArray) -> Derivatives:
    share = weight / weight.sum()
    p = np.exp(log_p)
    truth = np.arange(p.shape[1]) == codes[:, None]
    hessian = share[:, None] * p * (1.0 - p)
    return Derivatives(float(-share @ log_p[truth]), share[:, None] * (p - truth), hessian, hessian)


def _cau(
    log_p: FloatArray, codes: IntArray, weight: FloatArray, lambda_: float, variant: str
) -> Derivatives:
    """Return means of -log(1 - h) over right rows and of -log h over wrong ones, added up."""
    p = np.exp(log_p)
    entropy = -np.sum(p * log_p, axis=1)
    above_mean = log_p + entropy[:, None]
    top = np.log(p.shape[1])
    inner_1 = -p * above_mean / top
    inner_2 = -p * ((1.0 - 2.0 * p) * above_mean + 1.0 - p) / top
    h = np.clip(entropy / top, EPS, 1.0 - EPS)
    inside = (h > EPS) & (h < 1.0 - EPS)

    right = np.argmax(log_p, axis=1) == codes
    share = _shares_of_kinds(weight, right, variant) * np.where(right, 1.0, lambda_)
    value = share @ np.where(right, -np.log1p(-h), -np.log(h))
    away = np.where(right, 1.0 - h, -h)  # from the end where the loss is infinite
    return _chained(float(value), inside * share / away, inside * share / away**2, inner_1, inner_2)


def _shares_of_kinds(weight: FloatArray, right: BoolArray, variant: str) -> FloatArray:
    """Return the share of each row: among rows as right or wrong as itself, or among all."""
    if variant == "shares":
        return weight / weight.sum()
    of_kind = np.where(right, weight[right].sum(), weight[~right].sum())
    return np.divide(weight, of_kind, out=np.zeros_like(weight), where=of_kind > 0)


def _minus_soft_cwsa(
    log_p: FloatArray, codes: IntArray, weight: FloatArray, threshold: float, temperature: float
) -> Derivatives:
    """Return minus CWSA with max(0, c - t) and the mask c >= t made smooth."""
    share = weight / weight.sum()
    p = np.exp(log_p)
    answer = np.argmax(log_p, axis=1)
    is_answer = np.arange(p.shape[1]) == answer[:, None]
    c = p[is_answer][:, None]
    inner_1 = c * (is_answer - p)
    inner_2 = np.where(is_answer, c * (1.0 - c) * (1.0 - 2.0 * c), c * p * (2.0 * p - 1.0))

    sign = np.where(answer == codes, 1.0, -1.0) / (1.0 - threshold)
    above = (c[:, 0] - threshold) / temperature
    # The mask is the slope of the smooth max(0, c - t).
    mask = expit(above)
    mask_1 = mask * (1.0 - mask) / temperature
    mask_2 = mask_1 * (1.0 - 2.0 * mask) / temperature
    accepted = share @ mask + EPS
    value = share @ (sign * temperature * np.logaddexp(0.0, above)) / accepted
    # The score is a ratio, whose denominator depends on the same confidence.
    part = share / accepted
    first = part * (mask * sign - mask_1 * value)
    second = part * (mask_1 * sign - mask_2 * value - 2.0 * mask_1 * first)
    return _chained(float(-value), -first, -second, inner_1, inner_2)


def _chained(
    value: float,
    first: FloatArray,
    second: FloatArray,
    inner_1: FloatArray,
    inner_2: FloatArray,
) -> Derivatives:
    """Return the derivatives of a function of one number per row, which depends on the logits."""
    by_slope = first[:, None] * inner_2
    by_curvature = second[:, None] * inner_1**2
    return Derivatives(
        value,
        first[:, None] * inner_1,
        by_slope + by_curvature,
        np.abs(by_slope) + np.abs(by_curvature),
    )
