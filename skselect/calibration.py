"""Maps from raw scores to honest probabilities, fitted on arrays, kept as plain numbers.

A *calibrator* maps one score to one probability. A :class:`ClassCalibration` applies one per
class and makes the rows sum to one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import optimize, special
from sklearn.base import BaseEstimator
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from skselect import _validation as check
from skselect._typing import FloatArray, IntArray

#: Log-odds of probabilities nearer to 0 or 1 than this are cut off.
LOG_ODDS_EPS = 1e-15


class Calibrator(Protocol):
    """What a calibrator can do: learn from scores and 0/1 outcomes, and map scores."""

    def fit(self, score: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the map."""

    def predict(self, score: Any) -> FloatArray:
        """Return a probability for each score."""


def log_odds(probability: FloatArray) -> FloatArray:
    """Return log(p/(1 - p)), finite for every p in [0, 1]."""
    p = np.clip(np.asarray(probability, dtype=np.float64), LOG_ODDS_EPS, 1.0 - LOG_ODDS_EPS)
    return np.log(p) - np.log1p(-p)


class IsotonicCalibrator(BaseEstimator):
    """Fit the best non-decreasing map from score to probability.

    Between its knots the map is linear, outside it is flat. It reaches 0 and 1 exactly, so
    a single error among the surest rows makes :func:`~skselect.metrics.csr_score` explode,
    and its plateaus tie rows that the raw scores could rank. Prefer "platt" where certainty
    matters.

    Attributes
    ----------
    knots_ : ndarray of shape (m,)
        Scores, ascending.
    values_ : ndarray of shape (m,)
        Probabilities at the knots, not descending.

    References
    ----------
    .. [1] Zadrozny & Elkan, "Transforming classifier scores into accurate multiclass
       probability estimates", 2002.

    Examples
    --------
    >>> from skselect.calibration import IsotonicCalibrator
    >>> calibrator = IsotonicCalibrator().fit([.1, .4, .6, .9], [0, 1, 0, 1])
    >>> calibrator.predict([.1, .25, .5, .9])
    array([0.  , 0.25, 0.5 , 1.  ])
    """

    #: What a policy file keeps.
    stored = ("knots", "values")

    def fit(self, score: Any, y: Any, sample_weight: Any = None) -> IsotonicCalibrator:
        """Learn the map.

        Parameters
        ----------
        score : array-like of shape (n,)
            Finite scores; larger speaks for y = 1.
        y : array-like of shape (n,)
            Outcomes in [0, 1].
        sample_weight : array-like of shape (n,), default=None
            How often each row counts.

        Returns
        -------
        self
        """
        score, y, weight = _check_rows(score, y, sample_weight)
        knots, place = np.unique(score, return_inverse=True)
        total = np.bincount(place, weights=weight)
        mean = np.bincount(place, weights=weight * y) / total
        values = isotonic_regression(mean, sample_weight=total, y_min=0.0, y_max=1.0)
        # Inside a plateau only its two ends shape the map.
        flat = values[1:] == values[:-1]
        inner = np.append(False, flat) & np.append(flat, False)
        self.knots_: FloatArray = knots[~inner]
        self.values_: FloatArray = values[~inner]
        return self

    def predict(self, score: Any) -> FloatArray:
        """Return a probability for each score, in [0, 1]."""
        check_is_fitted(self)
        return np.interp(np.asarray(score, dtype=np.float64), self.knots_, self.values_)


class PlattCalibrator(BaseEstimator):
    """Fit a logistic curve to log-odds: p = expit(slope * score + intercept).

    Feed it log-odds (or decision values), not probabilities: only then can it leave an
    already honest classifier as it is. The targets are smoothed as Platt did, so that it
    stays finite on separable rows.

    Attributes
    ----------
    slope_, intercept_ : float

    References
    ----------
    .. [1] Platt, "Probabilistic outputs for support vector machines", 1999.

    Examples
    --------
    >>> from skselect.calibration import PlattCalibrator
    >>> calibrator = PlattCalibrator().fit([-2., -1., 1., 2.], [0, 1, 0, 1])
    >>> calibrator.predict([-2., 0., 2.]).round(3)
    array([0.4, 0.5, 0.6])
    """

    #: What a policy file keeps.
    stored = ("slope", "intercept")

    def fit(self, score: Any, y: Any, sample_weight: Any = None) -> PlattCalibrator:
        """Learn slope and intercept by weighted maximum likelihood.

        Parameters
        ----------
        score : array-like of shape (n,)
            Finite log-odds or decision values; larger speaks for y = 1.
        y : array-like of shape (n,)
            Outcomes, 0 or 1.
        sample_weight : array-like of shape (n,), default=None
            How often each row counts.

        Returns
        -------
        self
        """
        score, y, weight = _check_rows(score, y, sample_weight)
        positive = np.sum(weight * y)
        negative = np.sum(weight) - positive
        target = np.where(y > 0, (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0))
        # Standardised scores make the problem well conditioned whatever their scale.
        largest = float(np.max(np.abs(score))) or 1.0
        score = score / largest
        center = np.average(score, weights=weight)
        spread = np.sqrt(np.average((score - center) ** 2, weights=weight))
        scale = spread if spread > 0 else 1.0
        slope, intercept = _fit_logistic((score - center) / scale, target, weight)
        slope = float(slope / scale) if spread > 0 else 0.0
        self.slope_ = slope / largest
        self.intercept_ = float(intercept - slope * center)
        return self

    def predict(self, score: Any) -> FloatArray:
        """Return a probability for each score, in [0, 1]."""
        check_is_fitted(self)
        linear = self.slope_ * np.asarray(score, dtype=np.float64) + self.intercept_
        return np.asarray(special.expit(linear))


def _fit_logistic(x: FloatArray, target: FloatArray, weight: FloatArray) -> FloatArray:
    """Minimise the weighted logistic loss over slope and intercept (a convex problem)."""
    total = np.sum(weight)
    design = np.column_stack([x, np.ones_like(x)])

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        z = design @ theta
        value = np.sum(weight * (np.logaddexp(0.0, z) - target * z)) / total
        gradient = design.T @ (weight * (special.expit(z) - target)) / total
        return float(value), gradient

    def curvature(theta: FloatArray) -> FloatArray:
        p = special.expit(design @ theta)
        return np.asarray((design.T * (weight * p * (1.0 - p))) @ design / total)

    start = np.array([0.0, float(special.logit(np.average(target, weights=weight)))])
    result = optimize.minimize(
        loss, start, jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-10}
    )
    return np.asarray(result.x)


def _check_rows(
    score: Any, y: Any, sample_weight: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    scores = check.check_confidence(score, "score")
    outcome = check.check_loss(y, "y")
    check.check_length("score", scores, len(outcome), "y")
    weight = check.check_weight(sample_weight, len(outcome))
    if weight is None:
        return scores, outcome, np.ones(len(outcome))
    counted = weight > 0
    return scores[counted], outcome[counted], weight[counted]


# One map per class -------------------------------------------------------------------------

#: Names accepted by `calibration=`, with the calibrator and whether it wants log-odds.
CALIBRATORS: dict[str, tuple[type[IsotonicCalibrator] | type[PlattCalibrator], bool]] = {
    "isotonic": (IsotonicCalibrator, False),
    "platt": (PlattCalibrator, True),
}


@dataclass(frozen=True, eq=False)
class ClassCalibration:
    """Honest class probabilities from raw scores: one map for two classes, else one per class.

    Parameters
    ----------
    kind : {"isotonic", "platt"}
    response : {"predict_proba", "decision_function"}
        What the raw scores are.
    maps : tuple of calibrators
    """

    kind: str
    response: str
    maps: tuple[Any, ...]

    @classmethod
    def fit(
        cls,
        kind: str,
        response: str,
        scores: FloatArray,
        codes: IntArray,
        n_classes: int,
        sample_weight: FloatArray | None = None,
    ) -> ClassCalibration:
        """Fit one map per column against "is it this class?".

        Parameters
        ----------
        kind, response : str
        scores : ndarray of shape (n, K), or (n,) for the decision values of two classes
        codes : ndarray of shape (n,)
            Class codes 0..K-1. A class without rows gets the map of "never".
        n_classes : int
        sample_weight : ndarray of shape (n,), default=None

        Notes
        -----
        A score of nan (the decision value of a class that a fold's model does not know) says
        nothing, so the map of that class leaves the row out.
        """
        calibrator, _ = CALIBRATORS[kind]
        weight = np.ones(len(codes)) if sample_weight is None else sample_weight
        positives = [1] if n_classes == 2 else range(n_classes)
        maps = []
        for column, k in zip(cls._columns(kind, response, scores), positives, strict=True):
            known = ~np.isnan(column)
            maps.append(calibrator().fit(column[known], codes[known] == k, weight[known]))
        return cls(kind, response, tuple(maps))

    def predict(self, scores: FloatArray) -> FloatArray:
        """Return probabilities of shape (n, K) that sum to one in each row.

        A row for which every class map says "never" gets equal probabilities.
        """
        columns = self._columns(self.kind, self.response, scores)
        mapped = [m.predict(x) for m, x in zip(self.maps, columns, strict=True)]
        if len(mapped) == 1:
            return np.column_stack([1.0 - mapped[0], mapped[0]])
        proba = np.column_stack(mapped)
        total = proba.sum(axis=1, keepdims=True)
        uniform = np.full_like(proba, 1.0 / proba.shape[1])
        return np.divide(proba, total, out=uniform, where=total > 0)

    @staticmethod
    def _columns(kind: str, response: str, scores: FloatArray) -> list[FloatArray]:
        """Return what each map reads: log-odds for a logistic map, else the score itself."""
        scores = np.asarray(scores, dtype=np.float64)
        if scores.ndim == 1:
            columns = [scores]
        elif scores.shape[1] == 2:
            columns = [scores[:, 1]]
        else:
            columns = list(scores.T)
        wants_log_odds = CALIBRATORS[kind][1] and response == "predict_proba"
        return [log_odds(column) for column in columns] if wants_log_odds else columns

    def to_dict(self) -> dict[str, Any]:
        """Return the maps as plain numbers."""
        parameters = [
            {name: np.asarray(getattr(m, f"{name}_")).tolist() for name in m.stored}
            for m in self.maps
        ]
        return {"kind": self.kind, "response": self.response, "maps": parameters}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> ClassCalibration:
        """Rebuild the maps from plain numbers."""
        calibrator, _ = CALIBRATORS[check.check_choice("kind", stored["kind"], CALIBRATORS)]
        maps = []
        for parameters in stored["maps"]:
            restored = calibrator()
            if sorted(parameters) != sorted(calibrator.stored):
                raise ValueError(f"maps need {calibrator.stored}, got {sorted(parameters)}.")
            for name, value in parameters.items():
                number = np.asarray(value, dtype=np.float64)
                if not np.all(np.isfinite(number)):
                    raise ValueError(f"maps: {name} must be finite, got {value!r}.")
                setattr(restored, f"{name}_", number if number.ndim else float(number))
            maps.append(restored)
        return cls(stored["kind"], stored["response"], tuple(maps))

    def check_fits(self, n_classes: int, response: str) -> None:
        """Refuse to be used for another number of classes or another kind of scores."""
        wanted = 1 if n_classes == 2 else n_classes
        if len(self.maps) != wanted or self.response != response:
            raise ValueError(
                f"calibration: {len(self.maps)} maps of {self.response} do not fit {n_classes} "
                f"classes of {response}."
            )
