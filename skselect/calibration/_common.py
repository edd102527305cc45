"""What calibrators share: checks in `fit`, the safeguard, log-odds, grouping of equal scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skselect._lib.checks.rows import (
    check_confidence,
    check_length,
    check_loss,
    check_weight,
    warn_small_weights,
)
from skselect._lib.typing import FloatArray
from skselect.curve.packing import run_starts

#: The default offset, which keeps the log-odds of 0 and 1 finite.
LEAST_OFFSET = 1e-15


class Calibrator(Protocol):
    """What a calibrator can do: be fitted to scores and 0/1 outcomes, and map scores."""

    def fit(self, score: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the map."""

    def predict(self, score: Any) -> FloatArray:
        """Return a probability for each score."""


class ShowsFit(BaseEstimator):
    """A calibrator that shows the numbers it has learnt."""

    #: The fitted numbers that a policy file keeps, without the underscore at the end.
    stored: tuple[str, ...]

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        learnt = {
            name: getattr(self, f"{name}_", None)
            for name in self.stored
            if name not in ("share", "prior")
        }
        numbers = [
            f"{name} {value:.4g}" for name, value in learnt.items() if isinstance(value, float)
        ]
        text = str(super().__repr__(N_CHAR_MAX))
        return f"<{text}: {', '.join(numbers)}>" if numbers else text


class ScoreCalibrator(ShowsFit, ABC):
    """A calibrator of the library: `fit` checks the rows, and `_fit` fits the map."""

    #: Whether the sum of the weights counts as a number of rows.
    _counts_weights = True

    def fit(self, score: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        score : array-like of shape (n,)
            Finite scores, larger ones where y = 1 is more likely: log-odds or decision values
            for Platt, beta and temperature scaling, numbers of any kind for the others.
        y : array-like of shape (n,)
            Outcomes in [0, 1].
        sample_weight : array-like of shape (n,), default=None
            How often each row counts.

        Returns
        -------
        self
        """
        scores = check_confidence(score, "score")
        outcome = check_loss(y, "y")
        check_length("score", scores, len(outcome), "y")
        weight = check_weight(sample_weight, len(outcome))
        if weight is None:
            weight = np.ones(len(outcome))
        if self._counts_weights:
            warn_small_weights(weight, type(self).__name__)
        counted = weight > 0
        self._fit(scores[counted], outcome[counted], weight[counted])
        return self

    @abstractmethod
    def _fit(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        """Fit the map to checked rows of positive weight."""

    @abstractmethod
    def predict(self, score: Any) -> FloatArray:
        """Return a probability for each score."""


class Safeguarded(ShowsFit, ABC):
    """A fitted map q, mixed with a guess: (1 - share) q + share prior.

    On separable rows the fitted probabilities of a map with few parameters go to 0 and 1, but n
    rows justify no more than about 1 - 1/n.
    """

    #: Its scores are log-odds; probabilities are turned into them first.
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

    By numpy alone, and as exact as scipy's: so a policy written as a Python file computes the same
    bits without scipy.
    """
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def softmax(logits: FloatArray) -> FloatArray:
    """Return exp(x) of each row divided by its sum, by numpy alone as in :func:`expit`."""
    relative = np.exp(logits - np.max(logits, axis=1, keepdims=True))
    return np.asarray(relative / np.sum(relative, axis=1, keepdims=True))


def log_odds_offset(probability: FloatArray) -> float:
    """Return what to add to p and 1 - p before log-odds are taken, so that 0 and 1 are finite.

    It is half the smallest distance of a probability inside (0, 1) to 0 or 1: an exact 0 or 1 then
    counts as a little surer than the surest of the others. Where all probabilities are 0 or 1, it
    is `LEAST_OFFSET`.
    """
    p = np.asarray(probability, dtype=np.float64)
    distance = np.minimum(p, 1.0 - p)
    inside = distance[distance > 0.0]
    return max(0.5 * float(inside.min()), LEAST_OFFSET) if inside.size else LEAST_OFFSET


def group_by_score(
    score: FloatArray, y: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the distinct scores, ascending, with the weight and the weighted sum of y of each."""
    order = np.argsort(score, kind="stable")
    ordered = score[order]
    starts = run_starts(ordered)
    total = np.add.reduceat(weight[order], starts)
    success = np.add.reduceat((weight * y)[order], starts)
    return ordered[starts], total, success
