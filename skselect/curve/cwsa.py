"""CWSA and CWSA+, confidence-weighted selective accuracy: the definition, and sums of it.

At a threshold t an accepted row, of confidence c >= t and loss l, adds the term

    phi(c, t) (1 - l + sign l)   with   phi(c, t) = (c - t)/(1 - t),

where the sign is -1 for CWSA, which subtracts errors, and 0 for CWSA+, which counts them as 0.
Both are weighted means of the terms over the accepted rows (eq. 1-3 of Shahnazari et al.,
"Trust, or don't predict", arXiv 2505.18622, 2025).

Because phi = 1 - (1 - c)/(1 - t), sums of terms follow from the weight of the accepted rows and
from their sums of 1 - c, the shortfalls. These are exact near c = 1, where sums of c cancel.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from skselect._lib.typing import FloatArray


def phi(confidence: FloatArray, threshold: Any) -> FloatArray:
    """Return (c - t)/(1 - t) for each row, and its limit 1 where t is 1 or more."""
    t = np.broadcast_to(np.asarray(threshold, dtype=np.float64), confidence.shape)
    return np.divide(confidence - t, 1.0 - t, out=np.ones_like(confidence), where=t < 1)


def row_terms(
    loss: FloatArray, confidence: FloatArray, threshold: Any, sign: float, weight: Any = 1.0
) -> FloatArray:
    """Return the term of each row, times its weight; rows that are not accepted have 0."""
    found = np.where(confidence >= threshold, phi(confidence, threshold), 0.0)
    return weight * found * ((1.0 - loss) + sign * loss)


def slope(shortfall: FloatArray) -> FloatArray:
    """Return the slope of phi, 1/(1 - t), given 1 - t; 0 where t is 1 or more and phi is 1."""
    if len(shortfall) and shortfall.min() > 0:
        return 1.0 / shortfall
    return np.divide(1.0, shortfall, out=np.zeros_like(shortfall), where=shortfall > 0)


class AcceptedSums(Protocol):
    """Sums over accepted rows."""

    @property
    def weight(self) -> FloatArray:
        """Sum of weights."""

    @property
    def loss(self) -> FloatArray:
        """Sum of weighted losses."""

    @property
    def shortfall_right(self) -> FloatArray:
        """Sum of 1 - c over right rows."""

    @property
    def shortfall_wrong(self) -> FloatArray:
        """Sum of 1 - c over wrong rows; CWSA+ does not read it."""


def sum_terms(accepted: AcceptedSums, slope: FloatArray, sign: float) -> FloatArray:
    """Return the sum of the terms of accepted rows; `slope` is 1/(1 - t)."""
    total = accepted.weight - accepted.loss
    total -= accepted.shortfall_right * slope
    if sign == 0.0:
        return np.maximum(total, 0.0, out=total)  # only rounding takes it below 0
    total += sign * accepted.loss
    total -= sign * accepted.shortfall_wrong * slope
    return total


def phi_from_shortfall(shortfall: FloatArray, threshold: float) -> FloatArray:
    """Return phi given 1 - c, without computing c, which would round."""
    return 1.0 - shortfall / (1.0 - threshold)


def sum_squares(
    weight: FloatArray, shortfall: FloatArray, squared: FloatArray, slope: FloatArray
) -> FloatArray:
    """Return the sum of phi^2 over rows from their weight and their sums of 1 - c and (1 - c)^2."""
    return weight - 2.0 * shortfall * slope + squared * slope**2
