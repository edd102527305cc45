"""Temperature scaling: softmax(logits / T), mixed with a share of a uniform guess.

A temperature alone cannot correct a classifier that is wrong at a constant rate however sure it
is, as with label noise or a shift of the data. The guess can; its share is fitted together with T.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import optimize, special

from skselect._lib.checks.rows import warn_small_weights
from skselect._lib.decide import softmax_map, temperature_map
from skselect._lib.typing import FloatArray, IntArray
from skselect.calibration._common import Safeguarded, ScoreCalibrator

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

    map = staticmethod(temperature_map)
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

    map = staticmethod(softmax_map)
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
        warn_small_weights(weight, "TemperatureCalibrator")
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
        value = -(weight @ np.log(p) + theta[1])
        by_log_t = (1.0 - share) * (weight @ (q * slope / p))
        by_log_share = -share * (weight @ ((guess - q) / p)) - 1.0
        return float(value / total), np.array([by_log_t, by_log_share]) / total

    # At the start the mean score has a moderate probability, .84, and guesses a moderate share.
    start = np.log([0.6, largest_share / 4.0])
    ends = [(LOWEST_WITH_GUESSES, TEMPERATURES[1]), (1.0 / (total + 1.0), largest_share)]
    result = optimize.minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=np.log(ends),
        options={"ftol": 1e-16, "gtol": 1e-10},
    )  # fmt: skip
    temperature, share = np.clip(np.exp(result.x), *np.transpose(ends))  # exp(log(x)) rounds
    return float(temperature), float(share)


def _plain_temperature(true_class_proba: _TrueClassProba, weight: FloatArray) -> float:
    """Return the temperature at which the log loss is flat; it is convex in 1/T."""

    def slope(sharpness: float) -> float:
        return -float(weight @ true_class_proba(sharpness)[1])

    low, high = -np.log(TEMPERATURES[1]), -np.log(TEMPERATURES[0])
    if slope(high) <= 0:  # the lower the temperature, the better
        return TEMPERATURES[0]
    if slope(low) >= 0:
        return TEMPERATURES[1]
    return float(np.exp(-optimize.brentq(slope, low, high, xtol=1e-12, rtol=1e-12)))
