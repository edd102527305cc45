"""The calibrators, and what they share: checks in `fit`, the safeguard, log-odds.

Platt and beta have two or three parameters, fitted by maximum likelihood. They read log-odds (or
decision values), so that a calibrated classifier can be left as it is. Each mixes its map with the
base rate of the calibration rows, so that it never reaches 0 or 1.

Temperature scaling is softmax(logits / T), mixed with a share of a uniform guess. A temperature
alone cannot correct a classifier that is wrong at a constant rate however sure it is, as with label
noise or a shift of the data. The guess can; its share is fitted together with T.

Isotonic, smooth isotonic and Venn-Abers only read the order of the scores.

Fitted calibrators are stored as plain numbers, by name, and restored.
"""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import optimize, special
from scipy.optimize import isotonic_regression
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skselect._lib import decide
from skselect._lib.arrays import FloatArray, IntArray, dot
from skselect._lib.checks import rows as row_checks
from skselect._lib.checks.options import check_choice
from skselect.curve.tie_blocks import run_starts

#: The default offset, which keeps the log-odds of 0 and 1 finite.
LEAST_OFFSET = 1e-15
#: The numbers of the safeguard, which a calibrator does not show.
_GUESS = ("share", "prior")


class ShowsFit(BaseEstimator):
    """A calibrator that shows the numbers it has learnt."""

    #: The fitted map, a function of the score and of the numbers that a policy file keeps: their
    #: names are those of the fitted attributes, without the underscore at the end.
    map: Callable[..., FloatArray]
    stored: tuple[str, ...]

    @property
    def fitted(self) -> dict[str, Any]:
        """The fitted numbers by name."""
        check_is_fitted(self)
        return {name: getattr(self, f"{name}_") for name in self.stored}

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
        scores = row_checks.check_confidence(score, "score")
        outcome = row_checks.check_loss(y, "y")
        row_checks.check_length("score", scores, len(outcome), "y")
        weight = row_checks.check_weight(sample_weight, len(outcome))
        if weight is None:
            weight = np.ones(len(outcome))
        if self._counts_weights:
            row_checks.warn_small_weights(weight, type(self).__name__)
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

    map = staticmethod(decide.platt_map)
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

    map = staticmethod(decide.beta_map)
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
    low, high = decide.both_sides(score)
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
    design = np.stack([*(z for z, _, _ in parts), np.ones_like(target)])

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        z = np.einsum("ji,j->i", design, theta)  # not by BLAS, as in `dot`
        value = (
            dot(weight, np.logaddexp(0.0, z) - target * z) / total + dot(theta, ridge * theta) / 2
        )
        gradient = np.einsum("ji,i->j", design, weight * (special.expit(z) - target)) / total
        return value, gradient + ridge * theta

    def curvature(theta: FloatArray) -> FloatArray:
        p = special.expit(np.einsum("ji,j->i", design, theta))
        weighted = design * (weight * p * (1.0 - p))
        return np.einsum("ji,ki->jk", weighted, design) / total + np.diag(ridge)

    ridge = np.append(np.full(len(columns), _RIDGE), 0.0)
    start = np.zeros(len(design))
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


#: The lowest and the highest temperature, in units of the mean score: below the lowest all
#: probabilities are 0 or 1, above the highest all are equal.
TEMPERATURES = (1e-3, 1e3)
#: The lowest temperature if there is a share of guesses: the mean score then has log-odds of 10.
#: A lower one would not raise the likelihood, but the surest rows would tie.
LOWEST_WITH_GUESSES = 0.1
#: The largest share of guesses. Few rows of a weak classifier would be fitted best by many guesses
#: and a step at 1/2, which ties all its confidences.
LARGEST_SHARE = 0.2
#: Logits this far below the first one, in units of the mean lead, all mean "never".
_FARTHEST = 1e9
#: The largest temperature: finite even for decision values near the largest float.
_LARGEST_FLOAT = 1e300

#: A function of log(1/T): the probability q of the true class of each row, and q'/q.
_TrueClassProba = Callable[[float], tuple[FloatArray, FloatArray]]


class TemperatureCalibrator(Safeguarded, ScoreCalibrator):
    """Divide log-odds by a temperature, and mix the result with a guess.

    p = (1 - share) expit(score / T) + share / 2. There are only two numbers to fit, so few rows
    are enough, and the predicted class (the side of 1/2) never changes. The share is at least
    1/(n + 1) for n rows, and larger (up to 1/5) where the classifier is wrong at a constant rate
    however sure it is. For more than two classes ``calibration="temperature"`` does the same to
    the softmax of all logits.

    Parameters
    ----------
    safeguard : bool, default=True
        False is plain temperature scaling: no share of guesses, and probabilities may reach 0
        and 1.

    Attributes
    ----------
    temperature_ : float
        Above 1 the classifier was overconfident. At least a tenth of the mean absolute score
        (a thousandth without safeguard), at most a thousand times it.
    share_ : float
    prior_ : float
        The guess: 1/2.

    Notes
    -----
    T and share maximise sum_i w_i log p_i(y_i) + log(share); the last term counts as one more row,
    known to be a guess. It follows from the derivative that share >= 1/(n + 1). The sum may have
    other maxima at extreme temperatures; the one reached from a moderate temperature is taken. On
    separable rows the sum grows as T falls, until the surest rows tie: hence the lowest
    temperature.

    References
    ----------
    .. [1] Guo et al., "On calibration of modern neural networks", 2017 (the temperature).
    .. [2] Zhang, Kailkhura & Han, "Mix-n-Match: ensemble and compositional methods for
       uncertainty calibration in deep learning", 2020 (a learnt share of the uniform guess).

    Examples
    --------
    >>> from skselect.calibration import TemperatureCalibrator
    >>> score, y = [-4., -2., -2., 2., 2., 4.], [0, 0, 1, 1, 0, 1]
    >>> plain = TemperatureCalibrator(safeguard=False).fit(score, y)
    >>> round(plain.temperature_, 2)
    2.64
    >>> guessing = TemperatureCalibrator().fit(score, y)
    >>> guessing.predict([-30., 30.]).round(2), plain.predict([-30., 30.]).round(2)
    (array([0.13, 0.87]), array([0., 1.]))
    """

    map = staticmethod(decide.temperature_map)
    stored = ("temperature", "share", "prior")

    def _fit(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        graded = (y > 0) & (y < 1)
        if graded.any():  # a row that is y times a success and 1 - y times a failure
            score = np.concatenate([score, score[graded]])
            failed = (weight * (1.0 - y))[graded]
            weight = np.concatenate([np.where(graded, weight * y, weight), failed])
            y = np.concatenate([np.where(graded, 1.0, y), np.zeros(graded.sum())])
        largest = float(np.max(np.abs(score))) or 1.0  # the mean of huge scores overflows
        scale = largest * float(np.average(np.abs(score) / largest, weights=weight)) or 1.0
        margin = np.where(y > 0, score, -score) / scale

        def true_class_proba(sharpness: float) -> tuple[FloatArray, FloatArray]:
            m = margin * np.exp(sharpness)
            q = special.expit(m)
            return q, (1.0 - q) * m

        self.prior_ = 0.5
        temperature, self.share_ = _fit_temperature(true_class_proba, weight, 0.5, self.safeguard)
        self.temperature_ = min(temperature * scale, _LARGEST_FLOAT)


class SoftmaxTemperature(Safeguarded):
    """Divide the logits of all classes by one temperature, as :class:`TemperatureCalibrator` does.

    Parameters
    ----------
    safeguard : bool, default=True
        Mix with the uniform guess 1/K, whose share is fitted.

    Attributes
    ----------
    temperature_ : float
    share_ : float
    prior_ : ndarray of shape (K,)
        1/K each.
    """

    map = staticmethod(decide.softmax_map)
    stored = ("temperature", "share", "prior")

    def fit(self, logits: FloatArray, codes: IntArray, weight: FloatArray) -> SoftmaxTemperature:
        """Fit the temperature and the share to logits of shape (n, K) and class codes."""
        known = (weight > 0) & ~np.isnan(logits).any(axis=1)  # a fold may not know a class
        if not np.any(known):
            raise ValueError(
                "calibration='temperature' needs rows with decision values for all classes, but "
                "every fold lacks a class; use stratified folds, or a calibration with one map "
                "per class such as 'platt'."
            )
        row_checks.warn_small_weights(weight, "TemperatureCalibrator")
        logits, codes, weight = logits[known], codes[known], weight[known]
        n_classes = logits.shape[1]
        # The mean lead of the first class over the second; of two classes, the mean |log-odds|.
        second, first = np.partition(logits, -2, axis=1)[:, -2:].T
        lead = float(np.average(first - second, weights=weight))
        spread = float(np.average(first - logits.mean(axis=1), weights=weight))
        # If two classes always lead together, the difference between them is too small as a scale.
        scale = max(lead, spread / 100.0) or 1.0
        logits = np.maximum((logits - first[:, None]) / scale, -_FARTHEST)
        row = np.arange(len(codes))

        def true_class_proba(sharpness: float) -> tuple[FloatArray, FloatArray]:
            m = logits * np.exp(sharpness)
            chance = special.softmax(m, axis=1)
            return chance[row, codes], m[row, codes] - np.sum(chance * m, axis=1)

        self.prior_ = np.full(n_classes, 1.0 / n_classes)
        temperature, self.share_ = _fit_temperature(
            true_class_proba, weight, 1.0 / n_classes, self.safeguard
        )
        self.temperature_ = min(temperature * scale, _LARGEST_FLOAT)
        return self


def _fit_temperature(
    true_class_proba: _TrueClassProba, weight: FloatArray, guess: float, safeguard: bool
) -> tuple[float, float]:
    """Return the temperature and the share of the guess, 0 without safeguard."""
    if not safeguard:
        return _plain_temperature(true_class_proba, weight), 0.0
    total = float(np.sum(weight))
    largest_share = max(LARGEST_SHARE, 2.0 / (total + 2.0))

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the log loss per row at (log T, log share), and its gradient."""
        share = float(np.exp(theta[1]))
        q, slope = true_class_proba(-theta[0])
        p = (1.0 - share) * q + share * guess
        value = -(dot(weight, np.log(p)) + theta[1])
        by_log_t = (1.0 - share) * dot(weight, q * slope / p)
        by_log_share = -share * dot(weight, (guess - q) / p) - 1.0
        return float(value / total), np.array([by_log_t, by_log_share]) / total

    # At the start the mean score has a moderate probability, .84, and guesses a moderate share.
    start = np.log([0.6, largest_share / 4.0])
    ends = [(LOWEST_WITH_GUESSES, TEMPERATURES[1]), (1.0 / (total + 1.0), largest_share)]
    work = {"bounds": np.log(ends), "options": {"ftol": 1e-16, "gtol": 1e-10}}
    result = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", **work)
    temperature, share = np.clip(np.exp(result.x), *np.transpose(ends))  # exp(log(x)) rounds
    return float(temperature), float(share)


def _plain_temperature(true_class_proba: _TrueClassProba, weight: FloatArray) -> float:
    """Return the temperature at which the log loss is flat; it is convex in 1/T."""

    def slope(sharpness: float) -> float:
        return -dot(weight, true_class_proba(sharpness)[1])

    low, high = -np.log(TEMPERATURES[1]), -np.log(TEMPERATURES[0])
    if slope(high) <= 0:  # the lower the temperature, the better
        return TEMPERATURES[0]
    if slope(low) >= 0:
        return TEMPERATURES[1]
    return float(np.exp(-optimize.brentq(slope, low, high, xtol=1e-12, rtol=1e-12)))


class _Interpolation(ScoreCalibrator):
    """A map that is linear between knots, and flat outside them."""

    map, stored = staticmethod(decide.interpolate), ("knots", "values")

    knots_: FloatArray
    values_: FloatArray


class IsotonicCalibrator(_Interpolation):
    """Fit the best non-decreasing map from score to probability.

    Between its knots the map is linear, outside it is flat. It reaches 0 and 1 exactly, so that
    a single error among the surest rows makes :func:`~skselect.metrics.csr_score` huge; and its
    plateaus tie rows that the raw scores could rank. :class:`SmoothIsotonicCalibrator` does
    neither.

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

    _counts_weights = False

    def _fit(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        knots, total, success = group_by_score(score, y, weight)
        values = np.clip(isotonic_regression(success / total, weights=total).x, 0.0, 1.0)
        # Of the knots of a plateau only the first and the last are needed.
        flat = values[1:] == values[:-1]
        inner = np.append(False, flat) & np.append(flat, False)
        self.knots_, self.values_ = knots[~inner], values[~inner]


class SmoothIsotonicCalibrator(_Interpolation):
    """Fit a non-decreasing map without plateaus that never claims certainty.

    Each block of the isotonic fit gets the value (successes + 1)/(rows + 2) instead of their
    ratio, at the mean score of its rows; between blocks the map is linear. So it lies in
    [1/(n + 2), 1 - 1/(n + 2)] for n rows, and ranks rows that isotonic regression would tie.
    Use it where the miscalibration has no simple shape; where it has one, temperature scaling
    predicts a little better.

    Attributes
    ----------
    knots_ : ndarray of shape (m,)
        Scores, ascending.
    values_ : ndarray of shape (m,)
        Probabilities at the knots, not descending.

    Notes
    -----
    Weights count rows: scaled to a small sum they shrink the map towards 1/2, and `fit`
    warns.

    References
    ----------
    .. [1] Oron & Flournoy, "Centered isotonic regression: point and interval estimation for
       dose-response studies", 2017 (blocks at their mean score).

    Examples
    --------
    >>> from skselect.calibration import SmoothIsotonicCalibrator
    >>> calibrator = SmoothIsotonicCalibrator().fit([.1, .4, .6, .9], [0, 1, 0, 1])
    >>> calibrator.predict([.1, .3, .5, .9]).round(3)
    array([0.333, 0.417, 0.5  , 0.667])
    """

    def _fit(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        knots, total, success = group_by_score(score, y, weight)
        fit = isotonic_regression(success / total, weights=total)
        starts = fit.blocks[:-1]
        block_weight = np.add.reduceat(total, starts)
        smoothed = (np.add.reduceat(success, starts) + 1.0) / (block_weight + 2.0)
        # Small blocks move towards 1/2 more than large ones, which can reverse their order.
        values = isotonic_regression(smoothed, weights=block_weight).x
        # The mean score of a block, as a distance from its first: huge scores do not overflow.
        first = knots[starts]
        beyond = np.add.reduceat(total * (knots - np.repeat(first, np.diff(fit.blocks))), starts)
        self.knots_ = first + beyond / block_weight
        bound = 1.0 / (np.sum(total) + 2.0)
        self.values_ = np.clip(values, bound, 1.0 - bound)


class VennAbersCalibrator(ScoreCalibrator):
    """Fit an inductive Venn-Abers predictor: two isotonic fits for every score, made into one.

    For a score s, p0 and p1 are the values at s of the isotonic fits to the calibration rows and
    one more row, (s, 0) or (s, 1). If rows are exchangeable, one of the two is calibrated for any
    distribution; the fewer rows have scores near s, the farther apart they are. With few rows per
    class the probability shrinks strongly towards 1/2.

    Attributes
    ----------
    knots_ : ndarray of shape (m,)
        Distinct scores, ascending.
    lower_, upper_ : ndarray of shape (m,)
        p0 and p1 at the knots.

    Notes
    -----
    The probability is p1/(1 - p0 + p1), which minimises the regret of the log loss [1]_.
    Weights count rows; the row that is predicted counts once.

    References
    ----------
    .. [1] Vovk & Petej, "Venn-Abers predictors", 2014.
    .. [2] Vovk, Petej & Fedorova, "Large-scale probabilistic predictors with and without
       guarantees of validity", 2015.

    Examples
    --------
    >>> from skselect.calibration import VennAbersCalibrator
    >>> calibrator = VennAbersCalibrator().fit([.1, .4, .6, .9], [0, 1, 0, 1])
    >>> calibrator.predict([.1, .5, .9]).round(3)
    array([0.333, 0.5  , 0.667])
    >>> low, high = calibrator.predict_interval([.5])
    >>> low.round(3), high.round(3)
    (array([0.333]), array([0.667]))
    """

    map, stored = staticmethod(decide.venn_abers_map), ("knots", "lower", "upper")

    def _fit(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        self.knots_, total, success = group_by_score(score, y, weight)
        self.upper_: FloatArray = _fit_with_one_more_success(total, success)
        # With scores and outcomes reversed, one more failure is one more success.
        mirrored = _fit_with_one_more_success(total[::-1], (total - success)[::-1])
        self.lower_: FloatArray = 1.0 - mirrored[::-1]

    def predict_interval(self, score: Any) -> tuple[FloatArray, FloatArray]:
        """Return p0 and p1 for each score.

        Between two knots p0 is that of the knot below, and p1 that of the knot above.
        """
        return decide.venn_abers_interval(np.asarray(score, dtype=np.float64), **self.fitted)


def _fit_with_one_more_success(total: FloatArray, success: FloatArray) -> FloatArray:
    """Return, for each block, the isotonic fit at it if one more success is added to it.

    In the diagram of cumulative successes over cumulative weight, the fit is the slope of the
    greatest convex minorant. A success at block i shifts all later points by (1, 1). The line
    across i then starts at an earlier point k <= i and ends at a corner of the old minorant: its
    slope is the least from k to any corner after k, and the fit at i is the largest of these
    slopes over all k <= i. The corners are convex, so the least slope is found by bisection, for
    all k at once.
    """
    blocks = isotonic_regression(success / total, weights=total).blocks
    weight = np.concatenate([[0.0], np.cumsum(total)])
    count = np.concatenate([[0.0], np.cumsum(success)])
    corner_weight, corner_count = weight[blocks], count[blocks]
    start = np.arange(len(total))
    x, y = weight[:-1] - 1.0, count[:-1] - 1.0  # shifting corners by 1 is shifting k by -1
    low = np.searchsorted(blocks, start, side="right")  # the first corner after k
    high = np.full(len(start), len(blocks) - 1)
    # The slope from k falls along the corners until the next one lies above the line.
    while np.any(open_ := low < high):
        middle = (low + high) // 2
        nearer = np.minimum(middle + 1, len(blocks) - 1)
        here = (corner_count[middle] - y) * (corner_weight[nearer] - x)
        there = (corner_count[nearer] - y) * (corner_weight[middle] - x)
        falls = open_ & (there < here)
        low = np.where(falls, middle + 1, low)
        high = np.where(open_ & ~falls, middle, high)
    slope = (corner_count[low] - y) / (corner_weight[low] - x)
    return np.minimum(np.maximum.accumulate(slope), 1.0)


#: Names accepted by `calibration=`.
CALIBRATORS: dict[str, type[Any]] = {
    "isotonic": IsotonicCalibrator,
    "smooth_isotonic": SmoothIsotonicCalibrator,
    "venn_abers": VennAbersCalibrator,
    "platt": PlattCalibrator,
    "beta": BetaCalibrator,
    "temperature": TemperatureCalibrator,
}

#: Other words for the same map.
_ALIASES = {"sigmoid": "platt"}  # scikit-learn's


def copy_unfitted(calibrator: Any) -> Any:
    """Return an unfitted calibrator: the one of this name, or a copy of the one given."""
    if isinstance(calibrator, str):
        return CALIBRATORS[calibrator_name(calibrator)]()
    return clone(calibrator)


def calibrator_name(calibrator: Any) -> str:
    """Return the name of a built-in calibrator, "external:" and the class name of any other."""
    if isinstance(calibrator, str):
        return _ALIASES.get(calibrator, calibrator)
    for name, kind in CALIBRATORS.items():
        if type(calibrator) is kind:
            return name
    return f"external:{type(calibrator).__name__}"


def fit_map(template: Any, score: FloatArray, y: FloatArray, weight: FloatArray) -> Any:
    """Fit a copy of a calibrator; if a user's own fails, raise an error that says on what data."""
    if type(template) in CALIBRATORS.values():
        return clone(template).fit(score, y, weight)
    if not has_fit_parameter(template, "sample_weight"):
        raise ValueError(
            f"calibration: {type(template).__name__}.fit must take (score, y, sample_weight)."
        )
    try:
        return clone(template).fit(score, y, weight)
    except Exception as error:
        raise ValueError(
            f"calibration: {type(template).__name__}.fit(score, y, sample_weight) failed on a "
            f"vector of {len(score)} scores and outcomes 0 and 1: {str(error).splitlines()[0]}"
        ) from error


def apply_map(fitted: Any, score: FloatArray) -> FloatArray:
    """Return the probabilities of scores; those of a user's own calibrator are checked."""
    mapped = np.asarray(fitted.predict(score), dtype=np.float64)
    if type(fitted) in CALIBRATORS.values():
        return mapped
    if mapped.shape != (len(score),) or not np.all((mapped >= 0.0) & (mapped <= 1.0)):
        raise ValueError(
            f"calibration: {type(fitted).__name__}.predict must return {len(score)} probabilities "
            f"in [0, 1] for {len(score)} scores, but it returned values of shape {mapped.shape}"
            + ("." if mapped.shape != (len(score),) else ", some of them outside or nan.")
        )
    return mapped


def restore_map(kind: str, given: dict[str, Any]) -> Any:
    """Rebuild a fitted map from plain numbers."""
    calibrator = CALIBRATORS[check_choice("kind", kind, CALIBRATORS)]
    native = np.ndim(given.get("prior", 0.0)) == 1
    restored = SoftmaxTemperature() if native else calibrator()
    if sorted(given) != sorted(restored.stored):
        raise ValueError(f"maps need {restored.stored}, got {sorted(given)}.")
    for name, number in _check_map(given).items():
        setattr(restored, f"{name}_", number if number.ndim else float(number))
    return restored


def _rises(x: FloatArray) -> bool:
    """Tell whether numbers lie in [0, 1] and, but for rounding, never fall."""
    return bool(np.all(np.diff(x) >= -1e-12) and np.all((x >= 0) & (x <= 1)))


#: What each stored parameter must be; all others must be finite.
_RULES: dict[str, tuple[str, Callable[[FloatArray], Any]]] = {
    **dict.fromkeys(["share", "prior"], ("in [0, 1]", lambda x: (x >= 0) & (x <= 1))),
    **dict.fromkeys(["slope", "a", "b"], ("at least 0", lambda x: x >= 0)),
    **dict.fromkeys(["values", "lower", "upper"], ("rising in [0, 1]", _rises)),
    "temperature": ("positive", lambda x: x > 0),
    "knots": ("ascending", lambda x: np.diff(x) > 0),
}
#: Parameters with one number per knot.
_CURVES = ("knots", "values", "lower", "upper")


def _check_map(parameters: Mapping[str, Any]) -> dict[str, FloatArray]:
    """Return the parameters of a fitted map as arrays; refuse what is no rising map."""
    numbers = {name: np.asarray(value, dtype=np.float64) for name, value in parameters.items()}
    lengths = {len(np.atleast_1d(numbers[name])) for name in _CURVES if name in numbers}
    for name, x in numbers.items():
        ndim = 1 if name in _CURVES else 0
        if x.ndim != ndim and not (name == "prior" and x.ndim == 1):
            raise ValueError(f"maps: {name} must have {ndim} dimensions, got {x.ndim}.")
        wanted, holds = _RULES.get(name, ("finite", np.isfinite))
        if not np.all(np.isfinite(x)) or not np.all(holds(x)) or x.size == 0:
            raise ValueError(
                f"maps: {name} must be {wanted}, got {reprlib.repr(parameters[name])}."
            )
    if len(lengths) > 1:
        raise ValueError(
            f"maps: knots and values must have the same length, got {sorted(lengths)}."
        )
    return numbers


class Missing:
    """Takes the place of a user's own calibrator, which a file cannot hold."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def predict(self, _: Any) -> FloatArray:
        """Raise an error that says how to hand the calibrator over."""
        raise ValueError(
            f"calibration: the file names {self.kind!r} but cannot hold it; hand the fitted "
            "calibration over with dataclasses.replace(policy, calibration=...)."
        )
