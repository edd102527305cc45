"""Temperature scaling with doubt: softmax(logits / T), mixed with a guess.

A map of one parameter cannot bend where a classifier is sure and wrong at a steady rate, as
with label noise or a shift of the data. The guess can: its share is learnt with T.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize, special

from skselect._checks.rows import warn_small_weights
from skselect._typing import BoolArray, FloatArray, IntArray
from skselect.calibration._common import Safeguarded, checked_rows, expit, softmax

#: The sharpest and the bluntest temperature, in units of the mean score: beyond them all rows
#: are certain, or all alike.
TEMPERATURES = (1e-3, 1e3)
#: Steps of the optimiser beyond this log-temperature are cut short.
_FAR = 50.0
#: The sharpest temperature beside a share of guesses: the mean score then has log-odds of 10.
#: Beyond it the likelihood gains nothing, but rows at the top would tie.
SHARPEST = 0.1
#: Logits that lie farther below the first, in units of the mean lead, say nothing more.
_FARTHEST = 1e9
#: What a file can hold.
_HOTTEST = 1e300
#: The largest share of guesses. A weak classifier explains few rows best by guesses and a
#: leap at 1/2, which would tie all its confidences.
LARGEST_SHARE = 0.2

#: For log(1/T): the chance q of each row's own class, and q'/q and q''/q.
_OwnChance = Callable[[float], tuple[FloatArray, FloatArray, FloatArray]]


class TemperatureCalibrator(Safeguarded):
    """Divide log-odds by a temperature, and leave room for doubt.

    p = (1 - share) expit(score / T) + share / 2. Both numbers are fitted together, so few rows
    are enough, and the answer (the side of 1/2) never changes. The share is at least 1/(n + 1)
    for n rows, and larger (up to 1/5) where the classifier is wrong at a steady rate however
    sure it is.
    For more than two classes ``calibration="temperature"`` does the same to the softmax of all
    logits.

    Parameters
    ----------
    safeguard : bool, default=True
        False is plain temperature scaling: no share, certainty within reach.

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
    T and share maximise sum_i w_i log p_i(y_i) + log(share), the last term as if one more row
    were known to be a guess. Its derivative shows share >= 1/(n + 1). The sum may have other
    maxima at extreme temperatures; the one reached from a moderate temperature is taken. On
    separable rows ever sharper maps are ever likelier, but tie all rows at the top: hence the
    least temperature.

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
    >>> doubting = TemperatureCalibrator().fit(score, y)
    >>> doubting.predict([-30., 30.]).round(2), plain.predict([-30., 30.]).round(2)
    (array([0.13, 0.87]), array([0., 1.]))
    """

    #: What a policy file keeps.
    stored = ("temperature", "share", "prior")

    def fit(self, score: Any, y: Any, sample_weight: Any = None) -> TemperatureCalibrator:
        """Learn the temperature and the share.

        Parameters
        ----------
        score : array-like of shape (n,)
            Finite log-odds or decision values; larger speaks for y = 1.
        y : array-like of shape (n,)
            Outcomes in [0, 1].
        sample_weight : array-like of shape (n,), default=None
            How often each row counts.

        Returns
        -------
        self
        """
        score, y, weight = checked_rows(score, y, sample_weight)
        warn_small_weights(weight, "TemperatureCalibrator")
        graded = (y > 0) & (y < 1)
        if graded.any():  # a row that is y times a success and 1 - y times a failure
            score = np.concatenate([score, score[graded]])
            failed = (weight * (1.0 - y))[graded]
            weight = np.concatenate([np.where(graded, weight * y, weight), failed])
            y = np.concatenate([np.where(graded, 1.0, y), np.zeros(graded.sum())])
        largest = float(np.max(np.abs(score))) or 1.0  # the mean of huge scores overflows
        scale = largest * float(np.average(np.abs(score) / largest, weights=weight)) or 1.0
        margin = np.where(y > 0, score, -score) / scale

        def own_chance(sharpness: float) -> tuple[FloatArray, FloatArray, FloatArray]:
            m = margin * np.exp(sharpness)
            q = special.expit(m)
            lead = (1.0 - q) * m
            return q, lead, lead * (1.0 + (1.0 - 2.0 * q) * m)

        self.prior_ = 0.5
        temperature, self.share_ = _fitted(own_chance, weight, 0.5, self.safeguard)
        self.temperature_ = min(temperature * scale, _HOTTEST)
        return self

    def _map(self, score: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):  # as certain as can be
            return expit(score / self.temperature_)


class SoftmaxTemperature(Safeguarded):
    """Divide the logits of all classes by one temperature; see :class:`TemperatureCalibrator`.

    Parameters
    ----------
    safeguard : bool, default=True
        Mix with the uniform guess 1/K, whose share is learnt.

    Attributes
    ----------
    temperature_ : float
    share_ : float
    prior_ : ndarray of shape (K,)
        1/K each.
    """

    #: What a policy file keeps.
    stored = ("temperature", "share", "prior")

    def fit(self, logits: FloatArray, codes: IntArray, weight: FloatArray) -> SoftmaxTemperature:
        """Learn the temperature and the share from logits of shape (n, K) and class codes."""
        known = (weight > 0) & ~np.isnan(logits).any(axis=1)  # a fold may not know a class
        _check_some_known(known, "calibration='temperature'")
        warn_small_weights(weight, "TemperatureCalibrator")
        logits, codes, weight = logits[known], codes[known], weight[known]
        n_classes = logits.shape[1]
        # The mean lead of the first class over the second; for two it is the mean |log-odds|.
        second, first = np.partition(logits, -2, axis=1)[:, -2:].T
        lead = float(np.average(first - second, weights=weight))
        spread = float(np.average(first - logits.mean(axis=1), weights=weight))
        scale = max(lead, spread / 100.0) or 1.0  # twins at the top have hardly a lead
        logits = np.maximum((logits - first[:, None]) / scale, -_FARTHEST)
        row = np.arange(len(codes))

        def own_chance(sharpness: float) -> tuple[FloatArray, FloatArray, FloatArray]:
            m = logits * np.exp(sharpness)
            chance = special.softmax(m, axis=1)
            mean = np.sum(chance * m, axis=1)
            spread = np.sum(chance * m * m, axis=1) - mean**2
            q, own = chance[row, codes], m[row, codes] - mean
            return q, own, own**2 + own - spread

        self.prior_ = np.full(n_classes, 1.0 / n_classes)
        temperature, self.share_ = _fitted(own_chance, weight, 1.0 / n_classes, self.safeguard)
        self.temperature_ = min(temperature * scale, _HOTTEST)
        return self

    def _map(self, score: FloatArray) -> FloatArray:
        return softmax(score / self.temperature_)


def _fitted(
    own_chance: _OwnChance, weight: FloatArray, guess: float, safeguard: bool
) -> tuple[float, float]:
    """Return the temperature and the share of the guess, 0 without safeguard."""
    if not safeguard:
        return _plain_temperature(own_chance, weight), 0.0
    cap = max(LARGEST_SHARE, 2.0 / (float(np.sum(weight)) + 2.0))

    def loss(theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        return _doubting_loss(theta, own_chance, weight, guess, cap)

    remembered = _Remembered(loss)
    # From a mean score of 2 on, a moderate confidence of .88, and a quarter of the largest share.
    start = np.array([np.log(2.0), -1.0])
    result = optimize.minimize(
        lambda theta: remembered(theta)[0],
        start,
        jac=lambda theta: remembered(theta)[1],
        hess=lambda theta: remembered(theta)[2],
        method="trust-exact",
        options={"gtol": 1e-9},
    )
    temperature = SHARPEST + np.exp(-np.clip(result.x[0], -_FAR, _FAR))
    return float(min(temperature, TEMPERATURES[1])), float(cap * special.expit(result.x[1]))


class _Remembered:
    """Value, gradient and curvature are asked for one by one, and computed together."""

    def __init__(self, function: Callable[[FloatArray], Any]) -> None:
        self.function = function
        self.at: FloatArray | None = None

    def __call__(self, theta: FloatArray) -> Any:
        if self.at is None or not np.array_equal(self.at, theta):
            self.at, self.found = theta.copy(), self.function(theta)
        return self.found


def _doubting_loss(
    theta: FloatArray, own_chance: _OwnChance, weight: FloatArray, guess: float, cap: float
) -> tuple[float, FloatArray, FloatArray]:
    """Return the log loss per row, its gradient and curvature by both unbounded parameters.

    They are b in T = SHARPEST + exp(-b), and the logit of share/cap.
    """
    filled = float(special.expit(theta[1]))
    share = cap * filled
    excess = np.exp(-np.clip(theta[0], -_FAR, _FAR))
    q, lead, bend = own_chance(-float(np.log(SHARPEST + excess)))
    p = (1.0 - share) * q + share * guess
    slope = q * lead / p
    by_sharpness = (1.0 - share) * slope
    by_share = (guess - q) / p
    value = -(weight @ np.log(p) + np.log(share))
    d_sharpness = -(weight @ by_sharpness)
    d_share = -(weight @ by_share) - 1.0 / share
    curved = weight @ (by_sharpness**2) - (1.0 - share) * (weight @ (q * bend / p))
    mixed = weight @ (slope + by_sharpness * by_share)
    curved_share = weight @ (by_share**2) + 1.0 / share**2
    # By b instead of log(1/T), and by the logit instead of the share.
    rate = excess / (SHARPEST + excess)
    first = share * (1.0 - filled)
    second = first * (1.0 - 2.0 * filled)
    mixed *= rate * first
    total = np.sum(weight)
    gradient = np.array([d_sharpness * rate, d_share * first])
    curvature = np.array(
        [
            [curved * rate**2 - d_sharpness * rate * (1.0 - rate), mixed],
            [mixed, curved_share * first**2 + d_share * second],
        ]
    )
    return float(value / total), gradient / total, curvature / total


def _plain_temperature(own_chance: _OwnChance, weight: FloatArray) -> float:
    """Return the temperature at which the log loss is flat; it is convex in 1/T."""

    def slope(sharpness: float) -> float:
        return -float(weight @ own_chance(sharpness)[1])

    low, high = -np.log(TEMPERATURES[1]), -np.log(TEMPERATURES[0])
    if slope(high) <= 0:  # ever sharper is ever better
        return TEMPERATURES[0]
    if slope(low) >= 0:
        return TEMPERATURES[1]
    return float(np.exp(-optimize.brentq(slope, low, high, xtol=1e-12, rtol=1e-12)))


def _check_some_known(known: BoolArray, name: str) -> None:
    """Refuse rows of which none was scored for all classes."""
    if not np.any(known):
        raise ValueError(
            f"{name} needs rows with decision values for all classes, but every fold lacks a "
            "class; use stratified folds, or a calibration with one map per class such as 'platt'."
        )
