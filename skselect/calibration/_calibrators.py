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
#: The sizes of scores that can be divided by one another: beyond them, quotients overflow.
_LEAST_SIZE = 1e-300
_LARGEST_SIZE = 1e305
# Scores of which only the order counts are whole multiples of this: knots have a distance by which
# differences of probabilities can be divided.
_LEAST_STEP = 2.0**-1020
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
        numbers = []
        for name in self.stored:
            number = getattr(self, f"{name}_", None)
            if name not in _GUESS and isinstance(number, float):
                numbers.append(f"{name} {number:.4g}")
        text = str(super().__repr__(N_CHAR_MAX))
        if not numbers:
            return text
        listed = ", ".join(numbers)
        return f"<{text}: {listed}>"


class ScoreCalibrator(ShowsFit, ABC):
    """A calibrator of the library: `fit` checks the rows, and `_fit` fits the map."""

    #: Whether the sum of the weights counts as a number of rows.
    _counts_weights = True
    #: The least and the largest size that the largest score may have.
    _sizes = (_LEAST_SIZE, _LARGEST_SIZE)

    def fit(self, score: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        score : array-like of shape (n,)
            Finite scores, larger ones where y = 1 is more likely: log-odds or decision values
            for Platt, beta and temperature scaling, the largest of which is between 1e-300 and
            1e305 in size; numbers of any kind for the others, where 1e-307 is no difference.
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
        _check_sizes("score", scores, *self._sizes)
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


def _check_sizes(name: str, scores: FloatArray, low: float, high: float) -> None:
    """Refuse scores that are too small or too large to be divided by one another."""
    largest = float(np.max(np.abs(scores), where=np.isfinite(scores), initial=0.0))
    if largest and not low <= largest <= high:
        raise ValueError(
            f"{name}: the largest is {largest:g} in size, which cannot be calibrated; multiply all "
            "by a constant so that it lies between 1e-300 and 1e305."
        )


def log_odds_offset(probability: FloatArray) -> float:
    """Return what to add to p and 1 - p before log-odds are taken, so that 0 and 1 are finite.

    It is half the smallest distance of a probability inside (0, 1) to 0 or 1: an exact 0 or 1 then
    counts as a little surer than the surest of the others. Where all probabilities are 0 or 1, it
    is `LEAST_OFFSET`.
    """
    p = np.asarray(probability, dtype=np.float64)
    distance = np.minimum(p, 1.0 - p)
    inside = distance[distance > 0.0]
    if inside.size == 0:
        return LEAST_OFFSET
    half = 0.5 * float(inside.min())
    return max(half, LEAST_OFFSET)


def group_by_score(
    score: FloatArray, y: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the distinct scores, ascending, with the weight and the weighted sum of y of each."""
    order = np.argsort(score, kind="stable")
    ordered = score[order]
    starts = run_starts(ordered)
    total = np.add.reduceat(weight[order], starts)
    successes = weight * y
    success = np.add.reduceat(successes[order], starts)
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
        self.prior_ = _base_rate(y, weight)
        self.share_ = _laplace_share(weight, self.safeguard)
        positive = np.sum(weight * y)
        negative = np.sum(weight) - positive
        smoothed_one = (positive + 1.0) / (positive + 2.0)
        smoothed_zero = 1.0 / (negative + 2.0)
        target = np.where(y > 0, smoothed_one, smoothed_zero)
        fit = _fit_logistic([score], target, weight)
        (self.slope_,) = fit.slopes
        if self.slope_ < 0.0:  # then the best curve that does not fall is flat
            fit = _fit_logistic([], target, weight)
            self.slope_ = 0.0
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
        self.prior_ = _base_rate(y, weight)
        self.share_ = _laplace_share(weight, self.safeguard)
        self.a_, self.b_, self.c_ = _fit_beta(score, y, weight)


def _base_rate(y: FloatArray, weight: FloatArray) -> float:
    """Return the share of y = 1, at least 1/(n + 2) and at most 1 - 1/(n + 2) for n rows."""
    total = float(np.sum(weight))
    share = float(np.sum(weight * y)) / total
    least = 1.0 / (total + 2.0)
    return min(max(share, least), 1.0 - least)


def _laplace_share(weight: FloatArray, safeguard: bool) -> float:
    """Return the share of the base rate: it counts as one more row."""
    if not safeguard:
        return 0.0
    total = float(np.sum(weight))
    return 1.0 / (total + 1.0)


def _fit_beta(score: FloatArray, y: FloatArray, weight: FloatArray) -> tuple[float, float, float]:
    """Return the best a, b >= 0 and c: of the fit without bounds, else with a = 0 or b = 0."""
    low, high = decide.both_sides(score)
    # For small scores low and high are nearly collinear; their sum and difference are not.
    free = _fit_logistic([score, high - low], y, weight)
    of_score, of_difference = free.slopes
    a = of_score - of_difference
    b = of_score + of_difference
    if a >= 0.0 and b >= 0.0:
        return a, b, free.intercept
    flat = _fit_logistic([], y, weight)
    best = _BetaFit(flat.loss, 0.0, 0.0, flat.intercept)
    only_a = _fit_logistic([low], y, weight)
    (a,) = only_a.slopes
    if a >= 0.0:
        best = min(best, _BetaFit(only_a.loss, a, 0.0, only_a.intercept))
    only_b = _fit_logistic([high], y, weight)
    (b,) = only_b.slopes
    if b >= 0.0:
        best = min(best, _BetaFit(only_b.loss, 0.0, b, only_b.intercept))
    return best.a, best.b, best.c


class _BetaFit(NamedTuple):
    """A beta map with its loss, by which two of them are compared."""

    loss: float
    a: float
    b: float
    c: float


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
    standardized = [_standardize(column, weight) for column in columns]
    units = [column.unit for column in standardized]
    design = np.stack([*units, np.ones_like(target)])
    loss = _LogisticLoss(design, target, weight)
    start = np.zeros(len(design))
    start[-1] = special.logit(_base_rate(target, weight))
    result = optimize.minimize(
        loss.with_gradient,
        start,
        jac=True,
        hess=loss.curvature,
        method="trust-exact",
        options={"gtol": 1e-10},
    )
    slopes = []
    shift = 0.0
    *steepness, intercept = result.x
    for steep, column in zip(steepness, standardized, strict=True):
        slopes.append(float(steep / column.spread))
        shift += steep * column.center
    return _LogisticFit(slopes, float(intercept - shift), float(result.fun))


class _LogisticLoss:
    """The weighted mean logistic loss of slopes and intercept, one for each row of the design."""

    def __init__(self, design: FloatArray, target: FloatArray, weight: FloatArray) -> None:
        self.design = design
        self.target = target
        self.weight = weight
        self.total = float(np.sum(weight))
        self.ridge = np.full(len(design), _RIDGE)
        self.ridge[-1] = 0.0

    def with_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss, and its derivatives."""
        z = np.einsum("ji,j->i", self.design, theta)  # not by BLAS, as in `dot`
        penalty = self.ridge * theta
        losses = np.logaddexp(0.0, z) - self.target * z
        value = dot(self.weight, losses) / self.total + dot(theta, penalty) / 2
        residual = self.weight * (special.expit(z) - self.target)
        gradient = np.einsum("ji,i->j", self.design, residual) / self.total
        return value, gradient + penalty

    def curvature(self, theta: FloatArray) -> FloatArray:
        """Return the second derivatives."""
        p = special.expit(np.einsum("ji,j->i", self.design, theta))
        weighted = self.design * (self.weight * p * (1.0 - p))
        return np.einsum("ji,ki->jk", weighted, self.design) / self.total + np.diag(self.ridge)


class _Standardized(NamedTuple):
    """A column with mean 0 and spread 1, its mean in spreads, and its spread."""

    unit: FloatArray
    center: float
    spread: float


def _standardize(column: FloatArray, weight: FloatArray) -> _Standardized:
    """Return the column so that the problem is well conditioned whatever the unit of the scores."""
    largest = float(np.max(np.abs(column))) or 1.0  # squares of huge scores would overflow
    unit = column / largest
    center = float(np.average(unit, weights=weight))
    deviation = unit - center
    spread = float(np.sqrt(np.average(deviation**2, weights=weight)))
    if spread < _SAME:
        return _Standardized(np.zeros_like(column), 0.0, np.inf)
    return _Standardized(deviation / spread, center / spread, spread * largest)


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
        score, y, weight = _split_graded(score, y, weight)
        distance = np.abs(score)
        largest = float(np.max(distance)) or 1.0  # the mean of huge scores overflows
        scale = largest * float(np.average(distance / largest, weights=weight)) or 1.0
        margin = np.where(y > 0, score, -score) / scale

        def true_class_proba(sharpness: float) -> tuple[FloatArray, FloatArray]:
            m = margin * np.exp(sharpness)
            q = special.expit(m)
            return q, (1.0 - q) * m

        self.prior_ = 0.5
        temperature, self.share_ = _fit_temperature(
            true_class_proba, weight, self.prior_, self.safeguard
        )
        self.temperature_ = min(temperature * scale, np.finfo(np.float64).max)


def _split_graded(
    score: FloatArray, y: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a row of a graded outcome as y times a success and 1 - y times a failure."""
    graded = (y > 0) & (y < 1)
    if not graded.any():
        return score, y, weight
    succeeded = np.where(graded, weight * y, weight)
    failed = weight * (1.0 - y)
    return (
        np.concatenate([score, score[graded]]),
        np.concatenate([np.where(graded, 1.0, y), np.zeros(graded.sum())]),
        np.concatenate([succeeded, failed[graded]]),
    )


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
        is_complete = (weight > 0) & ~np.isnan(logits).any(axis=1)  # a fold may not know a class
        if not np.any(is_complete):
            raise ValueError(
                "calibration='temperature' needs rows with decision values for all classes, but "
                "every fold lacks a class; use stratified folds, or a calibration with one map "
                "per class such as 'platt'."
            )
        row_checks.warn_small_weights(weight, "TemperatureCalibrator")
        _check_sizes("scores", logits[is_complete], _LEAST_SIZE, _LARGEST_SIZE)
        logits = logits[is_complete]
        codes = codes[is_complete]
        weight = weight[is_complete]
        leads, scale = _scale_logits(logits, weight)
        row = np.arange(len(codes))

        def true_class_proba(sharpness: float) -> tuple[FloatArray, FloatArray]:
            m = leads * np.exp(sharpness)
            chance = special.softmax(m, axis=1)
            mean = np.sum(chance * m, axis=1)
            return chance[row, codes], m[row, codes] - mean

        guess = 1.0 / logits.shape[1]
        self.prior_ = np.full(logits.shape[1], guess)
        temperature, self.share_ = _fit_temperature(true_class_proba, weight, guess, self.safeguard)
        self.temperature_ = min(temperature * scale, np.finfo(np.float64).max)
        return self


def _scale_logits(logits: FloatArray, weight: FloatArray) -> tuple[FloatArray, float]:
    """Return how far logits are above the first one, in units of the mean lead, and this unit."""
    # The mean lead of the first class over the second; of two classes, the mean |log-odds|.
    runner_up, leader = np.partition(logits, -2, axis=1)[:, -2:].T
    lead = float(np.average(leader - runner_up, weights=weight))
    mean = logits.mean(axis=1)
    spread = float(np.average(leader - mean, weights=weight))
    # If two classes always lead together, the difference between them is too small as a scale.
    scale = max(lead, spread / 100.0) or 1.0
    leads = (logits - leader[:, None]) / scale
    return np.maximum(leads, -_FARTHEST), scale


def _fit_temperature(
    true_class_proba: _TrueClassProba, weight: FloatArray, guess: float, safeguard: bool
) -> tuple[float, float]:
    """Return the temperature and the share of the guess, 0 without safeguard."""
    if not safeguard:
        return _plain_temperature(true_class_proba, weight), 0.0
    total = float(np.sum(weight))
    largest_share = max(LARGEST_SHARE, 2.0 / (total + 2.0))
    least_share = 1.0 / (total + 1.0)
    lowest = [LOWEST_WITH_GUESSES, least_share]
    highest = [TEMPERATURES[1], largest_share]
    # At the start the mean score has a moderate probability, .84, and guesses a moderate share.
    start = [0.6, largest_share / 4.0]
    result = optimize.minimize(
        _loss_with_guesses(true_class_proba, weight, guess),
        np.log(start),
        jac=True,
        method="L-BFGS-B",
        bounds=np.log([lowest, highest]).T,
        options={"ftol": 1e-16, "gtol": 1e-10},
    )
    fitted = np.exp(result.x)
    temperature, share = np.clip(fitted, lowest, highest)  # exp(log(x)) rounds
    return float(temperature), float(share)


def _loss_with_guesses(
    true_class_proba: _TrueClassProba, weight: FloatArray, guess: float
) -> Callable[[FloatArray], tuple[float, FloatArray]]:
    """Return the log loss per row as a function of (log T, log share), with its gradient."""
    total = float(np.sum(weight))

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        log_temperature, log_share = theta
        share = float(np.exp(log_share))
        q, slope = true_class_proba(-log_temperature)
        p = (1.0 - share) * q + share * guess
        value = -(dot(weight, np.log(p)) + log_share)
        by_log_t = (1.0 - share) * dot(weight, q * slope / p)
        by_log_share = -share * dot(weight, (guess - q) / p) - 1.0
        gradient = np.array([by_log_t, by_log_share])
        return float(value / total), gradient / total

    return loss


def _plain_temperature(true_class_proba: _TrueClassProba, weight: FloatArray) -> float:
    """Return the temperature at which the log loss is flat; it is convex in 1/T."""

    def slope(sharpness: float) -> float:
        _, relative_slope = true_class_proba(sharpness)
        return -dot(weight, relative_slope)

    lowest, highest = TEMPERATURES
    dullest = -np.log(highest)
    sharpest = -np.log(lowest)
    if slope(sharpest) <= 0:  # the lower the temperature, the better
        return lowest
    if slope(dullest) >= 0:
        return highest
    best = optimize.brentq(slope, dullest, sharpest, xtol=1e-12, rtol=1e-12)
    return float(np.exp(-best))


class _Interpolation(ScoreCalibrator):
    """A map that is linear between knots, and flat outside them."""

    map = staticmethod(decide.interpolate)
    stored = ("knots", "values")
    _sizes = (0.0, np.inf)

    knots_: FloatArray
    values_: FloatArray

    def _fit(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        is_small = np.abs(score) < 2.0**50 * _LEAST_STEP
        steps = np.rint(score[is_small] / _LEAST_STEP)
        spaced = score.copy()
        spaced[is_small] = steps * _LEAST_STEP
        self._fit_order(spaced, y, weight)

    @abstractmethod
    def _fit_order(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        """Fit the map to scores that are not too close to one another."""


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

    def _fit_order(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        knots, total, success = group_by_score(score, y, weight)
        rates = isotonic_regression(success / total, weights=total).x
        values = np.clip(rates, 0.0, 1.0)
        # Of the knots of a plateau only the first and the last are needed.
        flat = values[1:] == values[:-1]
        is_needed = ~(np.append(False, flat) & np.append(flat, False))
        self.knots_ = knots[is_needed]
        self.values_ = values[is_needed]


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

    _sizes = (0.0, _LARGEST_SIZE)

    def _fit_order(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        knots, total, success = group_by_score(score, y, weight)
        fit = isotonic_regression(success / total, weights=total)
        starts = fit.blocks[:-1]
        block_weight = np.add.reduceat(total, starts)
        block_success = np.add.reduceat(success, starts)
        smoothed = (block_success + 1.0) / (block_weight + 2.0)
        # Small blocks move towards 1/2 more than large ones, which can reverse their order.
        values = isotonic_regression(smoothed, weights=block_weight).x
        self.knots_ = _mean_scores(knots, total, fit.blocks)
        bound = 1.0 / (np.sum(total) + 2.0)
        self.values_ = np.clip(values, bound, 1.0 - bound)


def _mean_scores(score: FloatArray, weight: FloatArray, ends: IntArray) -> FloatArray:
    """Return the mean of each block, as a distance from its first: huge scores do not overflow."""
    starts = ends[:-1]
    lowest = score[starts]
    distance = score - np.repeat(lowest, np.diff(ends))
    block_distance = np.add.reduceat(weight * distance, starts)
    block_weight = np.add.reduceat(weight, starts)
    return lowest + block_distance / block_weight


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

    map = staticmethod(decide.venn_abers_map)
    stored = ("knots", "lower", "upper")
    _sizes = (0.0, np.inf)

    def _fit(self, score: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        self.knots_, total, success = group_by_score(score, y, weight)
        self.upper_: FloatArray = _fit_with_one_more_success(total, success)
        # With scores and outcomes reversed, one more failure is one more success.
        failure = total - success
        mirrored = _fit_with_one_more_success(total[::-1], failure[::-1])
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
    corners = isotonic_regression(success / total, weights=total).blocks
    weight = np.append(0.0, np.cumsum(total))
    count = np.append(0.0, np.cumsum(success))
    # Shifting the corners by (1, 1) is shifting the points k by (-1, -1).
    slope = _least_slopes(
        weight[:-1] - 1.0, count[:-1] - 1.0, weight[corners], count[corners], corners
    )
    return np.minimum(np.maximum.accumulate(slope), 1.0)


def _least_slopes(
    x: FloatArray,
    y: FloatArray,
    corner_x: FloatArray,
    corner_y: FloatArray,
    corners: IntArray,
) -> FloatArray:
    """Return the least slope from each point (x, y) to any corner after it, by bisection.

    `corners` says before which point each corner stands.
    """
    points = np.arange(len(x))
    low = np.searchsorted(corners, points, side="right")  # the next corner
    high = np.full(len(points), len(corners) - 1)
    is_open = low < high
    # The slope falls along the corners until the next one lies above the line.
    while np.any(is_open):
        middle = (low + high) // 2
        farther = np.minimum(middle + 1, len(corners) - 1)
        slope_here = (corner_y[middle] - y) * (corner_x[farther] - x)
        slope_there = (corner_y[farther] - y) * (corner_x[middle] - x)
        falls = slope_there < slope_here
        low = np.where(is_open & falls, middle + 1, low)
        high = np.where(is_open & ~falls, middle, high)
        is_open = low < high
    return (corner_y[low] - y) / (corner_x[low] - x)


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


def fit_map(
    template: Any, score: FloatArray, y: FloatArray, weight: FloatArray, *, is_proba: bool
) -> Any:
    """Fit a copy of a calibrator; if a user's own fails, raise an error that says on what data.

    Of a user's own it is asked here already what it says of scores beyond both ends of those given:
    0 and 1 where they are probabilities.
    """
    if type(template) in CALIBRATORS.values():
        return clone(template).fit(score, y, weight)
    name = type(template).__name__
    if not has_fit_parameter(template, "sample_weight"):
        raise ValueError(f"calibration: {name}.fit must take (score, y, sample_weight).")
    try:
        fitted = clone(template).fit(score, y, weight)
    except Exception as error:
        raise ValueError(
            f"calibration: {name}.fit(score, y, sample_weight) failed on a vector of {len(score)} "
            f"scores and outcomes 0 and 1: {_first_line(error)}"
        ) from error
    _check_ends(fitted, score, is_proba=is_proba)
    return fitted


def _check_ends(fitted: Any, score: FloatArray, *, is_proba: bool) -> None:
    """Refuse a calibrator that has no probability for scores beyond those of its fit."""
    lowest = float(np.min(score))
    highest = float(np.max(score))
    ends = [0.0, 1.0]
    if not is_proba:
        span = highest - lowest or 1.0
        ends = [lowest - span, highest + span]
    try:
        mapped = np.asarray(fitted.predict(np.array(ends)), dtype=np.float64)
        if mapped.shape == (2,) and np.all((mapped >= 0.0) & (mapped <= 1.0)):
            return
        answer = f"returned {mapped.tolist()}"
    except Exception as error:
        answer = f"raised {type(error).__name__}: {_first_line(error)}"
    remedy = ""
    if hasattr(fitted, "out_of_bounds"):
        remedy = " Set out_of_bounds='clip', y_min=0 and y_max=1."
    raise ValueError(
        f"calibration: {type(fitted).__name__}.predict must return a probability for each score, "
        f"also beyond those of fit, from {lowest:g} to {highest:g}; for the scores {ends} it "
        f"{answer}.{remedy}"
    )


def _first_line(error: Exception) -> str:
    line, *_ = str(error).splitlines() or [""]
    return line


def apply_map(fitted: Any, score: FloatArray) -> FloatArray:
    """Return the probabilities of scores; those of a user's own calibrator are checked."""
    mapped = np.asarray(fitted.predict(score), dtype=np.float64)
    if type(fitted) in CALIBRATORS.values():
        return mapped
    fault = ""
    if mapped.shape != (len(score),):
        fault = "."
    elif not np.all((mapped >= 0.0) & (mapped <= 1.0)):
        fault = ", some of them outside or nan."
    if fault:
        raise ValueError(
            f"calibration: {type(fitted).__name__}.predict must return {len(score)} probabilities "
            f"in [0, 1] for {len(score)} scores, but it returned values of shape {mapped.shape}"
            f"{fault}"
        )
    return mapped


def restore_map(kind: str, parameters: dict[str, Any]) -> Any:
    """Rebuild a fitted map from plain numbers."""
    calibrator = CALIBRATORS[check_choice("kind", kind, CALIBRATORS)]
    restored = calibrator()
    if np.ndim(parameters.get("prior", 0.0)) == 1:
        restored = SoftmaxTemperature()
    names = sorted(parameters)
    if names != sorted(restored.stored):
        raise ValueError(f"maps need {restored.stored}, got {names}.")
    for name, number in _check_map(parameters).items():
        plain = number if number.ndim else float(number)
        setattr(restored, f"{name}_", plain)
    return restored


def _rises(x: FloatArray) -> bool:
    """Tell whether numbers lie in [0, 1] and, but for rounding, never fall."""
    return bool(np.all(np.diff(x) >= -1e-12) and np.all(_is_share(x)))


def _is_share(x: FloatArray) -> Any:
    return (x >= 0) & (x <= 1)


def _is_not_negative(x: FloatArray) -> Any:
    return x >= 0


def _is_positive(x: FloatArray) -> Any:
    return x > 0


def _ascends(x: FloatArray) -> Any:
    return np.diff(x) > 0


#: What each stored parameter must be; all others must be finite.
_RULES: dict[str, tuple[str, Callable[[FloatArray], Any]]] = {
    "share": ("in [0, 1]", _is_share),
    "prior": ("in [0, 1]", _is_share),
    "slope": ("at least 0", _is_not_negative),
    "a": ("at least 0", _is_not_negative),
    "b": ("at least 0", _is_not_negative),
    "values": ("rising in [0, 1]", _rises),
    "lower": ("rising in [0, 1]", _rises),
    "upper": ("rising in [0, 1]", _rises),
    "temperature": ("positive", _is_positive),
    "knots": ("ascending", _ascends),
}
#: Parameters with one number per knot.
_CURVES = ("knots", "values", "lower", "upper")


def _check_map(parameters: Mapping[str, Any]) -> dict[str, FloatArray]:
    """Return the parameters of a fitted map as arrays; refuse what is no rising map."""
    numbers = {name: np.asarray(value, dtype=np.float64) for name, value in parameters.items()}
    lengths = set()
    for name, x in numbers.items():
        ndim = int(name in _CURVES)
        if x.ndim != ndim and not (name == "prior" and x.ndim == 1):
            raise ValueError(f"maps: {name} must have {ndim} dimensions, got {x.ndim}.")
        wanted, holds = _RULES.get(name, ("finite", np.isfinite))
        if x.size == 0 or not np.all(np.isfinite(x)) or not np.all(holds(x)):
            raise ValueError(
                f"maps: {name} must be {wanted}, got {reprlib.repr(parameters[name])}."
            )
        if name in _CURVES:
            lengths.add(len(x))
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
