"""What calibrators share: protocol, safeguard, log-odds, checked rows, blocks of equal scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skselect._checks.rows import check_confidence, check_length, check_loss, check_weight
from skselect._typing import FloatArray
from skselect.curve.packing import run_starts

#: What keeps the log-odds of 0 and 1 finite where nothing larger is known.
LEAST_OFFSET = 1e-15


class Calibrator(Protocol):
    """What a calibrator can do: learn from scores and 0/1 outcomes, and map scores."""

    def fit(self, score: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the map."""

    def predict(self, score: Any) -> FloatArray:
        """Return a probability for each score."""


class Safeguarded(BaseEstimator, ABC):
    """A fitted map q, mixed with a guess: (1 - share) q + share prior.

    On separable rows a map of few parameters runs to certainty; n rows cannot tell more than
    about 1 - 1/n.
    """

    #: Whether probabilities are turned into log-odds before they come here.
    reads_log_odds = True

    share_: float
    prior_: Any

    def __init__(self, *, safeguard: bool = True) -> None:
        self.safeguard = safeguard

    @abstractmethod
    def _map(self, score: FloatArray) -> FloatArray:
        """Return q, the fitted map without the safeguard."""

    def predict(self, score: Any) -> FloatArray:
        """Return a probability for each score, in [0, 1]."""
        check_is_fitted(self)
        fitted = self._map(np.asarray(score, dtype=np.float64))
        return (1.0 - self.share_) * fitted + self.share_ * self.prior_


def log_odds(probability: FloatArray, offset: float = LEAST_OFFSET) -> FloatArray:
    """Return log((p + offset)/(1 - p + offset)), finite and rising for every p in [0, 1]."""
    p = np.asarray(probability, dtype=np.float64)
    return np.log(p + offset) - np.log(1.0 - p + offset)


def expit(x: FloatArray) -> FloatArray:
    """Return 1/(1 + exp(-x)).

    numpy's own arithmetic, as exact as scipy's, so that a policy written as a Python file finds
    the same bits with numpy alone.
    """
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def softmax(logits: FloatArray) -> FloatArray:
    """Return exp(x) of each row divided by its sum, for the reason given in :func:`expit`."""
    relative = np.exp(logits - np.max(logits, axis=1, keepdims=True))
    return np.asarray(relative / np.sum(relative, axis=1, keepdims=True))


def offset_of(probability: FloatArray) -> float:
    """Return half the smallest distance of the probabilities inside (0, 1) to its ends.

    Added before the log-odds are taken, it lets an exact 0 or 1 say a little more than the
    surest of the others. A classifier that states nothing between 0 and 1 has no such scale.
    """
    p = np.asarray(probability, dtype=np.float64)
    distance = np.minimum(p, 1.0 - p)
    inside = distance[distance > 0.0]
    return max(0.5 * float(inside.min()), LEAST_OFFSET) if inside.size else LEAST_OFFSET


def checked_rows(
    score: Any, y: Any, sample_weight: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return scores, outcomes and weights of the rows that count."""
    scores = check_confidence(score, "score")
    outcome = check_loss(y, "y")
    check_length("score", scores, len(outcome), "y")
    weight = check_weight(sample_weight, len(outcome))
    if weight is None:
        return scores, outcome, np.ones(len(outcome))
    counted = weight > 0
    return scores[counted], outcome[counted], weight[counted]


def blocks_of(
    score: FloatArray, y: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the distinct scores, ascending, with the weight and the weighted sum of y of each."""
    order = np.argsort(score, kind="stable")
    ordered = score[order]
    starts = run_starts(ordered)
    total = np.add.reduceat(weight[order], starts)
    success = np.add.reduceat((weight * y)[order], starts)
    return ordered[starts], total, success
