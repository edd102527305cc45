"""Calibrators with two or three parameters, fitted by maximum likelihood: Platt and beta.

They read log-odds (or decision values), so that an honest classifier can be left as it is.
Each mixes its map with the base rate of the calibration rows, which keeps it from certainty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import optimize, special
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skselect import _validation as check
from skselect._typing import FloatArray
from skselect.calibration._common import checked_rows

#: The steepest slope of a beta map.
STEEPEST = 1e3


class Safeguarded(BaseEstimator, ABC):
    """A fitted map q, mixed with a guess: (1 - share) q + share prior.

    On separable rows a map of few parameters runs to certainty; n rows cannot tell more than
    about 1 - 1/n.
    """

    #: Whether probabilities are turned into log-odds before they come here.
    reads_log_odds = True

    def __init__(self, *, safeguard: bool = True) -> None:
        self.safeguard = safeguard

    share_: float
    prior_: Any

    @abstractmethod
    def _map(self, score: FloatArray) -> FloatArray:
        """Return q, the fitted map without the safeguard."""

    def predict(self, score: Any) -> FloatArray:
        """Return a probability for each score, in [0, 1]."""
        check_is_fitted(self)
        fitted = self._map(np.asarray(score, dtype=np.float64))
        return (1.0 - self.share_) * fitted + self.share_ * self.prior_


class PlattCalibrator(Safeguarded):
    """Fit a logistic curve to log-odds: p = expit(slope * score + intercept).

    Feed it log-odds (or decision values), not probabilities: only then can it leave an
    already honest classifier as it is. The targets are smoothed as Platt did, so that it
    stays finite on separable rows. The curve never falls: where scores speak against y = 1
    it is flat.

    Parameters
    ----------
    safeguard : bool, default=True
        Mix the map q with the base rate: (n q + base rate)/(n + 1) for n rows.

    Attributes
    ----------
    slope_ : float, at least 0
    intercept_ : float
    share_, prior_ : float
        Share of the base rate in the map, and the base rate.

    References
    ----------
    .. [1] Platt, "Probabilistic outputs for support vector machines", 1999.

    Examples
    --------
    >>> from skselect.calibration import PlattCalibrator
    >>> calibrator = PlattCalibrator().fit([-2., -1., 1., 2.], [0, 1, 0, 1])
    >>> calibrator.predict([-2., 0., 2.]).round(3)
    array([0.42, 0.5 , 0.58])
    """

    #: What a policy file keeps.
    stored = ("slope", "intercept", "share", "prior")

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
        score, y, weight = checked_rows(score, y, sample_weight)
        check.warn_small_weights(weight, "PlattCalibrator")
        self.prior_, self.share_ = _base_rate(y, weight), _laplace_share(weight, self.safeguard)
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
        if slope < 0.0 or spread == 0.0:
            # The score speaks against y = 1, or not at all: the best rising map is flat.
            slope, intercept = 0.0, special.logit(np.average(target, weights=weight))
        slope = float(slope / scale)
        self.slope_ = slope / largest
        self.intercept_ = float(intercept - slope * center)
        return self

    def _map(self, score: FloatArray) -> FloatArray:
        return np.asarray(special.expit(self.slope_ * score + self.intercept_))


class BetaCalibrator(Safeguarded):
    """Fit a beta map: log-odds of p = a log q - b log(1 - q) + c, with a, b >= 0.

    It can be steeper on one side than on the other, and has the identity in it (a = b = 1,
    c = 0).

    Parameters
    ----------
    safeguard : bool, default=True
        Mix the map q with the base rate: (n q + base rate)/(n + 1) for n rows.

    Attributes
    ----------
    a_, b_ : float in [0, 1000]
    c_ : float
    share_, prior_ : float
        Share of the base rate in the map, and the base rate.

    References
    ----------
    .. [1] Kull, Silva Filho & Flach, "Beta calibration: a well-founded and easily implemented
       improvement on logistic calibration for binary classifiers", 2017.

    Examples
    --------
    >>> from skselect.calibration import BetaCalibrator
    >>> calibrator = BetaCalibrator().fit([-4., -2., -2., 2., 2., 4.], [0, 0, 1, 1, 0, 1])
    >>> calibrator.predict([-3., 0., 3.]).round(2)
    array([0.28, 0.5 , 0.72])
    """

    #: What a policy file keeps.
    stored = ("a", "b", "c", "share", "prior")

    def fit(self, score: Any, y: Any, sample_weight: Any = None) -> BetaCalibrator:
        """Learn a, b and c by weighted maximum likelihood.

        Parameters
        ----------
        score : array-like of shape (n,)
            Finite log-odds log(q/(1 - q)), or decision values; larger speaks for y = 1.
        y : array-like of shape (n,)
            Outcomes in [0, 1].
        sample_weight : array-like of shape (n,), default=None
            How often each row counts.

        Returns
        -------
        self
        """
        score, y, weight = checked_rows(score, y, sample_weight)
        check.warn_small_weights(weight, "BetaCalibrator")
        self.prior_, self.share_ = _base_rate(y, weight), _laplace_share(weight, self.safeguard)
        features = np.stack([*_sides(score), np.ones_like(score)])
        scale = np.append(np.maximum(features[:2].std(axis=1), 1e-12), 1.0)
        design = features / scale[:, None]
        total = float(np.sum(weight))

        def loss(theta: FloatArray) -> tuple[float, FloatArray]:
            z = theta @ design
            small = np.exp(-np.abs(z))
            chance = np.where(z >= 0, 1.0, small) / (1.0 + small)
            value = np.sum(weight * (np.maximum(z, 0.0) + np.log1p(small) - y * z))
            return float(value / total), design @ (weight * (chance - y)) / total

        result = optimize.minimize(
            loss,
            np.array([scale[0], scale[1], 0.0]),  # the identity
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, STEEPEST * scale[0]), (0.0, STEEPEST * scale[1]), (-STEEPEST, STEEPEST)],
            options={"gtol": 1e-10, "ftol": 1e-15, "maxiter": 1000},
        )
        self.a_, self.b_, self.c_ = (float(x) for x in result.x / scale)
        return self

    def _map(self, score: FloatArray) -> FloatArray:
        low, high = _sides(score)
        return np.asarray(special.expit(self.a_ * low + self.b_ * high + self.c_))


def _sides(score: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log q and -log(1 - q) of log-odds."""
    return -np.logaddexp(0.0, -score), np.logaddexp(0.0, score)


def _base_rate(y: FloatArray, weight: FloatArray) -> float:
    """Return the share of y = 1; where a class is missing, what n rows can tell about it."""
    total = float(np.sum(weight))
    least = 1.0 / (total + 2.0)
    return min(max(float(np.sum(weight * y)) / total, least), 1.0 - least)


def _laplace_share(weight: FloatArray, safeguard: bool) -> float:
    """Return the share of the base rate: as if one row more had been seen."""
    return 1.0 / (float(np.sum(weight)) + 1.0) if safeguard else 0.0


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
