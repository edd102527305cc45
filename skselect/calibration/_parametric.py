"""Calibrators with two or three parameters, fitted by maximum likelihood: Platt and beta.

They read log-odds (or decision values), so that a calibrated classifier can be left as it is.
Each mixes its map with the base rate of the calibration rows, so that it never reaches 0 or 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from skselect._lib.decide import beta_map, both_sides, platt_map
from skselect._lib.typing import FloatArray
from skselect.calibration._common import Safeguarded, ScoreCalibrator

#: A smaller relative spread is a rounding error.
_SAME = 1e-13
#: A ridge penalty that chooses the smallest of equally good slopes, and hardly changes others.
_RIDGE = 1e-10


class PlattCalibrator(Safeguarded, ScoreCalibrator):
    """Fit a logistic curve to log-odds: p = expit(slope * score + intercept).

    Pass log-odds (or decision values), not probabilities: only then can it leave a calibrated
    classifier as it is. Outcomes must be 0 or 1; they are smoothed as Platt did, so that the
    curve stays finite on separable rows. It never falls: if larger scores make y = 1 less
    likely, it is flat.

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

    map = staticmethod(platt_map)
    stored = ("slope", "intercept", "share", "prior")

    def _fit(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        self.prior_, self.share_ = _base_rate(y, weight), _laplace_share(weight, self.safeguard)
        positive = np.sum(weight * y)
        negative = np.sum(weight) - positive
        target = np.where(y > 0, (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0))
        fit = _fit_logistic([score], target, weight)
        if fit.slopes[0] < 0.0:  # then the best curve that does not fall is flat
            fit = _fit_logistic([], target, weight)
        self.slope_ = fit.slopes[0] if fit.slopes else 0.0
        self.intercept_ = fit.intercept


class BetaCalibrator(Safeguarded, ScoreCalibrator):
    """Fit a beta map: log-odds of p = a log q - b log(1 - q) + c, with a, b >= 0.

    It can be steeper on one side than on the other. The identity is one of these maps (a = b = 1,
    c = 0).

    Parameters
    ----------
    safeguard : bool, default=True
        Mix the map q with the base rate: (n q + base rate)/(n + 1) for n rows.

    Attributes
    ----------
    a_, b_ : float, at least 0
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

    map = staticmethod(beta_map)
    stored = ("a", "b", "c", "share", "prior")

    def _fit(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        self.prior_, self.share_ = _base_rate(y, weight), _laplace_share(weight, self.safeguard)
        self.a_, self.b_, self.c_ = _fit_beta(score, y, weight)


def _base_rate(y: FloatArray, weight: FloatArray) -> float:
    """Return the share of y = 1, at least 1/(n + 2) and at most 1 - 1/(n + 2) for n rows."""
    total = float(np.sum(weight))
    least = 1.0 / (total + 2.0)
    return min(max(float(np.sum(weight * y)) / total, least), 1.0 - least)


def _laplace_share(weight: FloatArray, safeguard: bool) -> float:
    """Return the share of the base rate: it counts as one more row."""
    return 1.0 / (float(np.sum(weight)) + 1.0) if safeguard else 0.0


def _fit_beta(score: FloatArray, y: FloatArray, weight: FloatArray) -> tuple[float, float, float]:
    """Return the best a, b >= 0 and c: of the fit without bounds, else with a = 0 or b = 0."""
    low, high = both_sides(score)
    # For small scores low and high are nearly collinear; their sum and difference are not.
    free = _fit_logistic([score, high - low], y, weight)
    a, b = free.slopes[0] - free.slopes[1], free.slopes[0] + free.slopes[1]
    if a >= 0.0 and b >= 0.0:
        return a, b, free.intercept
    flat = _fit_logistic([], y, weight)
    only_a, only_b = _fit_logistic([low], y, weight), _fit_logistic([high], y, weight)
    edges = [
        (flat.loss, (0.0, 0.0, flat.intercept)),
        (only_a.loss, (only_a.slopes[0], 0.0, only_a.intercept)),
        (only_b.loss, (0.0, only_b.slopes[0], only_b.intercept)),
    ]
    return min((loss, found) for loss, found in edges if min(found[:2]) >= 0.0)[1]


class _LogisticFit(NamedTuple):
    slopes: list[float]
    intercept: float
    loss: float


def _fit_logistic(
    columns: list[FloatArray], target: FloatArray, weight: FloatArray
) -> _LogisticFit:
    """Minimise the weighted logistic loss over slopes and intercept (a convex problem).

    A column that does not vary gets the slope 0; of equally good slopes (few distinct scores,
    separable rows) the smallest are taken.
    """
    total = float(np.sum(weight))
    parts = [_standardize(column, weight) for column in columns]
    design = np.column_stack([*(z for z, _, _ in parts), np.ones_like(target)])

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        z = design @ theta
        value = weight @ (np.logaddexp(0.0, z) - target * z) / total + theta @ (ridge * theta) / 2
        gradient = design.T @ (weight * (special.expit(z) - target)) / total
        return float(value), gradient + ridge * theta

    def curvature(theta: FloatArray) -> FloatArray:
        p = special.expit(design @ theta)
        return (design.T * (weight * p * (1.0 - p))) @ design / total + np.diag(ridge)

    ridge = np.append(np.full(len(columns), _RIDGE), 0.0)
    start = np.zeros(design.shape[1])
    start[-1] = special.logit(_base_rate(target, weight))
    result = optimize.minimize(
        loss, start, jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-10}
    )
    slopes = [float(t / scale) for t, (_, _, scale) in zip(result.x, parts, strict=False)]
    shift = sum(t * center for t, (_, center, _) in zip(result.x, parts, strict=False))
    return _LogisticFit(slopes, float(result.x[-1] - shift), float(result.fun))


def _standardize(column: FloatArray, weight: FloatArray) -> tuple[FloatArray, float, float]:
    """Return the column with mean 0 and spread 1, its mean in spreads, and its spread.

    Then the problem is well conditioned whatever the unit of the scores.
    """
    largest = float(np.max(np.abs(column))) or 1.0  # squares of huge scores would overflow
    unit = column / largest
    center = float(np.average(unit, weights=weight))
    spread = float(np.sqrt(np.average((unit - center) ** 2, weights=weight)))
    if spread < _SAME:
        return np.zeros_like(column), 0.0, np.inf
    return (unit - center) / spread, center / spread, spread * largest
