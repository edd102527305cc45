"""Areas under risk-coverage curves, and CWSA: arrays in, sums or one number out.

A block is a group of rows with equal confidence. It has a weight ``w`` and a mean loss
``rho``; blocks come from the surest down. Inside a block the order is unknown, so every
area is its expectation over random orders: each loss is replaced by the block's mean.

CWSA and CWSA+ are confidence-weighted selective accuracies. At a threshold t an accepted row, of
confidence c >= t and loss l, adds the term

    phi(c, t) (1 - l + sign l)   with   phi(c, t) = (c - t)/(1 - t),

where the sign is -1 for CWSA, which subtracts errors, and 0 for CWSA+, which counts them as 0.
Both are weighted means of the terms over the accepted rows (sections 3.2 and 3.3 of Shahnazari et
al., "Trust, or don't predict", arXiv 2505.18622, 2025).

Because phi = 1 - (1 - c)/(1 - t), sums of terms follow from the weight of the accepted rows and
from their sums of 1 - c, the shortfalls. These are exact near c = 1, where sums of c cancel.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from skselect._lib.arrays import FloatArray

# Below this argument the asymptotic series of the digamma function is not exact enough.
_SERIES_FROM = 32.0
# From this argument on, its first two terms are exact enough.
_TWO_TERMS_FROM = 1e4


def harmonic_gap(start: FloatArray, width: FloatArray) -> FloatArray:
    """Return psi(start + width + 1) - psi(start + 1) without cancellation.

    For whole numbers this is 1/(start + 1) + ... + 1/(start + width). Subtracting two
    digammas would lose up to 1e-7 of a small difference.
    """
    return harmonic_terms(start, width)[0]


@lru_cache(maxsize=1024)
def harmonic_number(n: float) -> float:
    """Return 1 + 1/2 + ... + 1/n; subgroups often have equal sizes."""
    return float(harmonic_gap(np.zeros(1), np.array([n]))[0])


def harmonic_terms(start: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the harmonic gap g and ``width - start * g``, without cancellation for large starts.

    For whole numbers the second is the sum of j/(start + j) over j = 1 ... width.
    """
    start = np.asarray(start, dtype=np.float64)
    width = np.asarray(width, dtype=np.float64)
    start, width = np.broadcast_arrays(start, width)
    x = start + 1.0
    gap, rest = _expand_series(x, width)
    if start.min() + 1.0 < _SERIES_FROM:
        near = x < _SERIES_FROM
        near_gap = _lifted_gap(x[near], width[near])
        gap[near] = near_gap
        rest[near] = width[near] - start[near] * near_gap
    return gap, rest


def _lifted_gap(x: FloatArray, width: FloatArray) -> FloatArray:
    """Return psi(x + width) - psi(x) for small x, by psi(x) = psi(x + 1) - 1/x."""
    steps = x + np.arange(_SERIES_FROM)[:, None]
    lifted = np.sum(width / (steps * (steps + width)), axis=0)
    gap, _ = _expand_series(x + _SERIES_FROM, width)
    return np.asarray(lifted + gap)


def _expand_series(x: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return psi(x + width) - psi(x) and ``width - (x - 1)`` times it, for large x.

    psi(x) = ln x - 1/(2x) - 1/(12x^2) + 1/(120x^4) - 1/(252x^6) + 1/(240x^8) - ...
    """
    y = x + width
    over_x = 1.0 / x
    over_y = 1.0 / y
    u = width * over_x
    p = over_x**2
    r = over_y**2
    drop = width * p * ((x + y) * r)  # 1/x^2 - 1/y^2; in this order nothing overflows
    series = u * over_y * 0.5 + drop * (1.0 / 12.0)
    if x.min() < _TWO_TERMS_FROM:
        sum_pr = p + r
        series -= drop * sum_pr / 120.0
        series += drop * (p * p + p * r + r * r) / 252.0
        series -= drop * sum_pr * (p * p + r * r) / 240.0
    log = np.log1p(u)
    gap = log + series
    rest = x * (_log1p_lag(u, log) - series) + gap
    return gap, rest


def _log1p_lag(u: FloatArray, log: FloatArray) -> FloatArray:
    """Return u - log(1 + u) to full precision; `log` is log(1 + u), used where u is large."""
    if u.max() < 1e-4:
        return u * u * (0.5 - u * (1.0 / 3.0 - u * (0.25 - u * 0.2)))
    lag = u - log
    small = u < 0.25
    if np.any(small):  # with r = u/(2 + u), log(1 + u) is 2 artanh r
        v = u[small]
        r = v / (2.0 + v)
        square = r * r
        tail = np.full_like(r, 1.0 / 19.0)
        for odd in (17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
            tail = tail * square + 1.0 / odd
        lag[small] = v * r - 2.0 * r * square * tail
    return lag


def square_gap(start: FloatArray, width: FloatArray) -> FloatArray:
    """Return psi'(start + 1) - psi'(start + width + 1) without cancellation.

    For whole numbers this is 1/(start + 1)^2 + ... + 1/(start + width)^2.
    """
    x = start + 1.0
    near = x < _SERIES_FROM
    gap = np.zeros_like(x)
    if np.any(near):
        steps = x[near] + np.arange(_SERIES_FROM)[:, None]
        ends = steps + width[near]
        gap[near] = np.sum(1.0 / steps**2 - 1.0 / ends**2, axis=0)
        x = np.where(near, x + _SERIES_FROM, x)
    y = x + width
    # psi'(x) = 1/x + 1/(2x^2) + 1/(6x^3) - 1/(30x^5) + 1/(42x^7) - ...
    p = 1.0 / x
    r = 1.0 / y
    gap += width * p * r * (1.0 + (p + r) / 2.0 + (p * p + p * r + r * r) / 6.0)
    return gap - (p**5 - r**5) / 30.0 + (p**7 - r**7) / 42.0


def aurc_integral(weight: FloatArray, mean_loss: FloatArray) -> float:
    """Return the integral of selective risk over coverage; the weights' scale has no effect."""
    weights = np.cumsum(weight)
    losses = np.cumsum(weight * mean_loss)
    before = np.concatenate([[0.0], weights[:-1]])
    loss_before = np.concatenate([[0.0], losses[:-1]])
    gap = np.zeros_like(weight)
    gap[1:] = np.log1p(weight[1:] / before[1:])
    area = np.sum(loss_before * gap) + np.sum(mean_loss * (weight - before * gap))
    return float(max(area, 0.0) / np.sum(weight))


def aurc_log(weight: FloatArray, mean_loss: FloatArray) -> float:
    """Return the mean of loss times -ln(1 - r/(n + 1)), r the ascending rank."""
    n = int(np.sum(weight))
    ends = np.cumsum(weight).astype(np.int64)
    logs = np.log((n + 1.0) / np.arange(1, n + 1))
    sums = np.concatenate([[0.0], np.cumsum(logs)])
    block_logs = np.diff(sums[ends], prepend=0.0)
    return float(np.sum(mean_loss * block_logs) / n)


def aurc_block(weight: FloatArray, mean_loss: FloatArray) -> float:
    """Return the mean over rows of the risk where tied rows are accepted together."""
    risk = np.cumsum(weight * mean_loss) / np.cumsum(weight)
    return float(np.sum(weight * risk) / np.sum(weight))


def augrc_unbiased(weight: FloatArray, mean_loss: FloatArray) -> float:
    """Return the U-statistic sum_i l_i (r_i - 1)/(n (n - 1)), r the ascending midranks."""
    n = np.sum(weight)
    midrank = n - np.cumsum(weight) + (weight + 1.0) / 2.0
    return float(np.sum(weight * mean_loss * (midrank - 1.0)) / (n * (n - 1.0)))


def area_between(x: FloatArray, y: FloatArray, low: float, high: float) -> float:
    """Return the area under straight lines through (x, y) from `low` to `high`.

    `x` does not descend and covers both ends.
    """
    moved = np.append(True, np.diff(x) > 0)
    x = x[moved]
    y = y[moved]
    trapezoids = np.diff(x) * (y[1:] + y[:-1]) / 2.0
    areas = np.concatenate([[0.0], np.cumsum(trapezoids)])

    def up_to(end: float) -> float:
        place = int(np.searchsorted(x, end, side="right")) - 1
        i = min(place, len(x) - 2)
        step = end - x[i]
        slope = (y[i + 1] - y[i]) / (x[i + 1] - x[i])
        return float(areas[i] + step * (y[i] + slope * step / 2.0))

    return up_to(high) - up_to(low)


def phi(confidence: FloatArray, threshold: Any) -> FloatArray:
    """Return (c - t)/(1 - t) for each row, and its limit 1 where t is 1 or more."""
    t = np.broadcast_to(np.asarray(threshold, dtype=np.float64), confidence.shape)
    return np.divide(confidence - t, 1.0 - t, out=np.ones_like(confidence), where=t < 1)


def row_terms(
    loss: FloatArray, confidence: FloatArray, threshold: Any, sign: float, weight: Any = 1.0
) -> FloatArray:
    """Return the term of each row, times its weight; rows that are not accepted have 0."""
    credit = np.where(confidence >= threshold, phi(confidence, threshold), 0.0)
    return weight * credit * ((1.0 - loss) + sign * loss)


def slope(shortfall: FloatArray) -> FloatArray:
    """Return the slope of phi, 1/(1 - t), given 1 - t; 0 where t is 1 or more and phi is 1."""
    if len(shortfall) and shortfall.min() > 0:
        return 1.0 / shortfall
    return np.divide(1.0, shortfall, out=np.zeros_like(shortfall), where=shortfall > 0)


def sum_terms(
    weight: FloatArray,
    loss: FloatArray,
    shortfall_right: FloatArray,
    shortfall_wrong: FloatArray,
    slope: FloatArray,
    *,
    plus: bool,
) -> FloatArray:
    """Return the sum of the terms of accepted rows from their sums; `slope` is 1/(1 - t)."""
    total = weight - loss
    total -= shortfall_right * slope
    if plus:
        return np.maximum(total, 0.0, out=total)  # rounding may make it negative
    total -= loss
    total += shortfall_wrong * slope
    return total


def sum_squares(
    weight: FloatArray, shortfall: FloatArray, squared: FloatArray, slope: FloatArray
) -> FloatArray:
    """Return the sum of phi^2 over rows from their weight and their sums of 1 - c and (1 - c)^2."""
    return weight - 2.0 * shortfall * slope + squared * slope**2
