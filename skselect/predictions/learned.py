"""A learned confidence: the chance that an answer is right, from named numbers about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skselect._lib.decide import OWN_FEATURES, find_features, weigh
from skselect._lib.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LearnedScore:
    """The chance that an answer is right, by a logistic function of its features.

    Parameters
    ----------
    names : tuple of str
        The features: those of the classifier's probabilities ("logit", "lead", "entropy"), then
        one per auxiliary model, then further columns.
    coefficients : ndarray of shape (m,)
    intercept : float
    auxiliary models : dict, default={}
        The calibration of each auxiliary model by name: an object with ``predict_proba(scores)``.
    classifier : object, default=None
        A fitted classifier of right (1) and wrong (0) in place of the coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.predictions.learned import LearnedScore
    >>> score = LearnedScore(("logit", "novelty"), np.array([1., -2.]), 0.)
    >>> y_proba = np.array([[.9, .1], [.9, .1]])
    >>> score.rate(y_proba, np.array([0, 0]), {"novelty": np.array([0., 1.])}).round(2)
    array([0.9 , 0.55])
    """

    names: tuple[str, ...]
    coefficients: FloatArray
    intercept: float
    auxiliary: Mapping[str, Any] = field(default_factory=dict)
    classifier: Any = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The features that are neither the classifier's nor an auxiliary model's."""
        known = {*OWN_FEATURES, *self.auxiliary}
        return tuple(name for name in self.names if name not in known)

    @property
    def by_name(self) -> dict[str, float]:
        """The coefficients by name, "intercept" first; empty for a classifier."""
        if self.classifier is not None:
            return {}
        named = zip(self.names, self.coefficients.tolist(), strict=True)
        return {"intercept": self.intercept} | dict(named)

    @property
    def asks(self) -> tuple[str, ...]:
        """What it must be given beside the probabilities: auxiliary models and columns."""
        return (*self.auxiliary, *self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain numbers; refuse a classifier of the user's own."""
        if self.classifier is not None:
            raise ValueError(
                f"confidence: the {type(self.classifier).__name__} that LearnedConfidence fitted "
                "cannot be saved as JSON. Use estimator=None, a logistic regression, or save the "
                "fitted model by other means."
            )
        coefficients = self.by_name
        return {
            "kind": "learned",
            "intercept": coefficients.pop("intercept"),
            "coefficients": coefficients,
            "auxiliary": {name: maps.to_dict() for name, maps in self.auxiliary.items()},
        }

    def rate(
        self, y_proba: FloatArray, y_pred: IntArray, auxiliary_proba: Mapping[str, FloatArray]
    ) -> FloatArray:
        """Return the chance that each answer is right, shape (n,).

        Parameters
        ----------
        y_proba : ndarray of shape (n, K)
            The classifier's calibrated probabilities.
        y_pred : ndarray of shape (n,)
            Code of each answer.
        opinions : dict of ndarray
            Of each auxiliary model its raw probabilities (n, K); of each further column its values
            (n,).
        """
        maps = {name: calibration.predict_proba for name, calibration in self.auxiliary.items()}
        return self.judge(find_features(maps, y_proba, y_pred, auxiliary_proba))

    def judge(self, features: Mapping[str, FloatArray]) -> FloatArray:
        """Return the chance that each answer is right, from its features by name."""
        if self.classifier is not None:
            table = np.column_stack([features[name] for name in self.names])
            right = list(self.classifier.classes_).index(1)
            return np.asarray(self.classifier.predict_proba(table)[:, right], dtype=np.float64)
        coefficients = dict(zip(self.names, self.coefficients, strict=True))
        return weigh(features, coefficients, self.intercept)
