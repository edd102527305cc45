"""What calibrators share: checks in `fit`, the safeguard, log-odds, grouping of equal scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skselect._lib import decide
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
#: The numbers of the safeguard, which a calibrator does not show.
_GUESS = ("share", "prior")


class Calibrator(Protocol):
    """What a calibrator can do: be fitted to scores and 0/1 outcomes, and map scores."""

    def fit(self, score: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the map."""

    def predict(self, score: Any) -> FloatArray:
        """Return a probability for each score."""


class ShowsFit(BaseEstimator):
    """A calibrator that shows the numbers it has learnt."""

    #: The fitted map, a function of the score and of the numbers that a policy file keeps: their
    #: names are those of the fitted attributes, without the underscore at the end.
    map: Callable[..., FloatArray]
    stored: tuple[str, ...]

    @property
    def fitted(self) -> dict[str, Any]:
        """The fitted numbers by name."""
        try:
            return {name: getattr(self, f"{name}_") for name in self.stored}
        except AttributeError:
            check_is_fitted(self)
            raise

    def predict(self, score: Any) -> FloatArray:
        """Return a probability for each score, in [0, 1]."""
        return self.map(np.asarray(score, dtype=np.float64), **self.fitted)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        learnt = {x: getattr(self, f"{x}_", None) for x in self.stored if x not in _GUESS}
        numbers = [f"{name} {x:.4g}" for name, x in learnt.items() if isinstance(x, float)]
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


class Safeguarded(ShowsFit):
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


def log_odds(probability: FloatArray, offset: float = LEAST_OFFSET) -> FloatArray:
    """Return log((p + offset)/(1 - p + offset)), finite and rising for every p in [0, 1]."""
    return decide.log_odds(np.asarray(probability, dtype=np.float64), offset)


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
