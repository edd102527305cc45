"""How sure a classifier is of each predicted class: one number per row, larger is surer.

The named confidences lie in [0, 1], so a threshold of 0 accepts everything. They are
computed and compared as float64, whatever the dtype of the probabilities. A learned confidence is
the chance that an answer is right, from named numbers about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skselect._lib.arrays import ConfidenceSpec, FloatArray, IntArray
from skselect._lib.checks.options import check_choice
from skselect._lib.checks.rows import check_confidence, check_length, check_rated, order_columns
from skselect._lib.decide import CONFIDENCES, OWN_FEATURES, find_features, rate, weigh
from skselect.predictions.decisions import DecisionRule


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
    auxiliary : dict, default={}
        The calibration of each auxiliary model by name: an object with ``predict_proba(scores)``.
    classifier : object, default=None
        A fitted classifier of right (1) and wrong (0) in place of the coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.predictions.confidence import LearnedScore
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
        coefficients = dict(zip(self.names, self.coefficients.tolist(), strict=True))
        return {"intercept": self.intercept} | coefficients

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
        intercept = coefficients.pop("intercept")
        auxiliary = {name: calibration.to_dict() for name, calibration in self.auxiliary.items()}
        return {
            "kind": "learned",
            "intercept": intercept,
            "coefficients": coefficients,
            "auxiliary": auxiliary,
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
        auxiliary_proba : dict of ndarray
            Of each auxiliary model its raw probabilities (n, K); of each further column its values
            (n,).
        """
        maps = {name: calibration.predict_proba for name, calibration in self.auxiliary.items()}
        features = find_features(maps, y_proba, y_pred, auxiliary_proba)
        return self.judge(features)

    def judge(self, features: Mapping[str, FloatArray]) -> FloatArray:
        """Return the chance that each answer is right, from its features by name."""
        if self.classifier is None:
            coefficients = dict(zip(self.names, self.coefficients, strict=True))
            return weigh(features, coefficients, self.intercept)
        table = np.column_stack([features[name] for name in self.names])
        classes = list(self.classifier.classes_)
        proba = self.classifier.predict_proba(table)
        proba = np.asarray(order_columns(proba, classes, "predict_proba(X)"), dtype=np.float64)
        return proba[:, classes.index(1)]


def confidence_of_answers(
    y_proba: FloatArray, y_pred: IntArray, confidence: ConfidenceSpec, rule: DecisionRule
) -> FloatArray:
    """Return the confidence in each predicted class.

    Parameters
    ----------
    y_proba : ndarray of shape (n, K)
        Checked class probabilities.
    y_pred : ndarray of shape (n,)
        Code of each predicted class, the answer.
    confidence : str, callable or array of shape (n,)
        "chosen_proba": the probability of the answer. "expected_cost": one minus its expected
        cost over the largest cost. Else as in :func:`confidence_of_proba`.
    rule : DecisionRule

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.predictions.confidence import confidence_of_answers
    >>> from skselect.predictions.decisions import DecisionRule
    >>> rule = DecisionRule("min_cost", np.array([[0., 1.], [10., 0.]]))
    >>> y_proba = np.array([[.75, .25]])
    >>> confidence_of_answers(y_proba, np.array([1]), "chosen_proba", rule)
    array([0.25])
    >>> confidence_of_answers(y_proba, np.array([1]), "expected_cost", rule)
    array([0.925])
    """
    if isinstance(confidence, str) and confidence in NAMED:
        policy = rule.applied_to(y_proba, confidence)
        return rate(policy, y_proba, y_pred)
    return confidence_of_proba(y_proba, confidence)


def confidence_of_proba(y_proba: FloatArray, confidence: ConfidenceSpec) -> FloatArray:
    """Return the confidence of each row of probabilities.

    Parameters
    ----------
    y_proba : ndarray of shape (n, K)
        Checked class probabilities.
    confidence : {"max_proba", "margin", "entropy", "gini"}, callable or array of shape (n,)
        A callable gets the probabilities and returns n finite numbers.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If the name is unknown, or the numbers are not n finite ones.
    """
    if isinstance(confidence, str):
        check_choice("confidence", confidence, NAMED)
        if confidence in ANSWER_CONFIDENCES:
            raise ValueError(
                f"confidence={confidence!r} is about predicted classes; pass Predictions."
            )
        compute = CONFIDENCES[confidence]
        return compute(y_proba)
    if callable(confidence):
        values = check_confidence(confidence(y_proba))
    else:
        values = check_rated(confidence)
    check_length("confidence", values, len(y_proba), "y_proba")
    return values.copy()


def check_confidence_by_row(y_proba: FloatArray, confidence: Callable[..., Any]) -> None:
    """Refuse a function whose confidence in a row depends on the rows beside it, such as a rank.

    New rows come together with others, so a threshold on such a confidence would not carry over.
    """
    together = confidence_of_proba(y_proba, confidence)
    tolerance = 1e-8 * np.ptp(together)
    n = len(y_proba)
    parts = {(0, 1), (n - 1, n), (0, (n + 1) // 2), (n // 2, n)}
    for start, stop in parts:
        alone = confidence_of_proba(y_proba[start:stop], confidence)
        if not np.allclose(alone, together[start:stop], 1e-5, tolerance):
            raise ValueError(
                f"confidence: the function looks at rows together (rows {start} to {stop - 1} "
                f"alone get other values than among all {n}). It must compute the confidence in a "
                "row from the probabilities of that row alone."
            )


#: Confidences that also fit a predicted class that is not the most probable one.
ANSWER_CONFIDENCES = ("chosen_proba", "expected_cost")
NAMED = (*CONFIDENCES, *ANSWER_CONFIDENCES)
