"""A learned confidence: the chance that an answer is right, from named numbers about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skselect._lib.arrays import chosen
from skselect._lib.typing import FloatArray, IntArray
from skselect.predictions.confidence import normalized_entropy

#: What the classifier's own probabilities say of its answer.
OWN_FEATURES = ("logit", "lead", "entropy")
#: Probabilities nearer to 0 or 1 count as this near, so that their logarithms are finite.
LEAST_PROBA = 1e-6


@dataclass(frozen=True, eq=False)
class LearnedScore:
    """The chance that an answer is right, by a logistic function of its features.

    Parameters
    ----------
    names : tuple of str
        The features: those of the classifier's probabilities ("logit", "lead", "entropy"), then
        one per witness, then further columns.
    coefficients : ndarray of shape (m,)
    intercept : float
    witnesses : dict, default={}
        The calibration of each witness by name: an object with ``predict_proba(scores)``.
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
    witnesses: Mapping[str, Any] = field(default_factory=dict)
    classifier: Any = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The features that are neither the classifier's nor a witness's."""
        known = {*OWN_FEATURES, *self.witnesses}
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
        """What it must be given beside the classifier's probabilities: witnesses and columns."""
        return (*self.witnesses, *self.columns)

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
            "kind": "learned", "intercept": coefficients.pop("intercept"),
            "coefficients": coefficients,
            "witnesses": {name: maps.to_dict() for name, maps in self.witnesses.items()},
        }  # fmt: skip

    def rate(
        self, y_proba: FloatArray, y_pred: IntArray, opinions: Mapping[str, FloatArray]
    ) -> FloatArray:
        """Return the chance that each answer is right, shape (n,).

        Parameters
        ----------
        y_proba : ndarray of shape (n, K)
            The classifier's calibrated probabilities.
        y_pred : ndarray of shape (n,)
            Code of each answer.
        opinions : dict of ndarray
            Of each witness its raw probabilities (n, K); of each further column its values (n,).
        """
        calibrated = {
            name: calibration.predict_proba(np.ascontiguousarray(opinions[name]))
            for name, calibration in self.witnesses.items()
        }
        found = describe_answers(y_proba, y_pred, {**opinions, **calibrated})
        return self.judge({name: found[name] for name in self.names})

    def judge(self, features: Mapping[str, FloatArray]) -> FloatArray:
        """Return the chance that each answer is right, from its features by name."""
        if self.classifier is not None:
            table = np.column_stack([features[name] for name in self.names])
            right = list(self.classifier.classes_).index(1)
            return np.asarray(self.classifier.predict_proba(table)[:, right], dtype=np.float64)
        total = np.full(len(features[self.names[0]]), self.intercept)
        # The bits of a matrix product would depend on the other rows.
        for name, coefficient in zip(self.names, self.coefficients, strict=True):
            total += coefficient * features[name]
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / (1.0 + np.exp(-total)))


def describe_answers(
    y_proba: FloatArray, y_pred: IntArray, opinions: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return the features of each answer by name.

    Of a table of probabilities among the `opinions` that is the logit it gives to this answer; a
    vector is taken as it is.
    """
    others = y_proba.astype(np.float64)
    answer = chosen(others, y_pred)
    others[np.arange(len(others)), y_pred] = 0.0
    second = others.max(axis=1)
    own = {
        "logit": logit(answer),
        "lead": np.log(_keep_inside(answer)) - np.log(_keep_inside(second)),
        "entropy": normalized_entropy(y_proba),
    }
    return own | {
        name: logit(chosen(table, y_pred)) if table.ndim == 2 else table
        for name, table in opinions.items()
    }


def logit(probability: FloatArray) -> FloatArray:
    """Return log(p/(1 - p)) of probabilities kept away from 0 and 1."""
    p = _keep_inside(probability)
    return np.asarray(np.log(p) - np.log(1.0 - p))


def _keep_inside(probability: FloatArray) -> FloatArray:
    return np.clip(probability, LEAST_PROBA, 1.0 - LEAST_PROBA)
