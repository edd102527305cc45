"""Simulated predictions whose truth is known, for testing metrics and certificates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr, ndtri
from sklearn.utils import Bunch

from skselect._lib.arrays import BoolArray, FloatArray
from skselect._lib.checks.options import check_choice, check_count, check_generator

__all__ = ["make_calibration_profile", "make_model_profile", "make_risk_profile"]


def __dir__() -> list[str]:
    """List the public names."""
    return __all__


def _profile(
    rng: Generator,
    confidence: FloatArray,
    chance: FloatArray,
    correct: BoolArray,
    n_classes: int = 2,
    **truths: Any,
) -> Bunch:
    """Return the drawn rows, with labels that agree with `correct`."""
    y_pred = rng.integers(n_classes, size=len(correct))
    steps = rng.integers(1, n_classes, size=len(correct))
    another_class = (y_pred + steps) % n_classes
    return Bunch(
        confidence=confidence,
        chance=chance,
        correct=correct,
        y_true=np.where(correct, y_pred, another_class),
        y_pred=y_pred,
        **truths,
    )


# Known risk -------------------------------------------------------------------------------


def _sharp(u: FloatArray) -> FloatArray:
    return 0.5 * u**6


def _mean_sharp(u: FloatArray) -> FloatArray:
    return 0.5 * u**6 / 7


def _gradual(u: FloatArray) -> FloatArray:
    return 0.3 * u**2


def _mean_gradual(u: FloatArray) -> FloatArray:
    return 0.1 * u**2


def _weak(u: FloatArray) -> FloatArray:
    return 0.02 + 0.2 * u


def _mean_weak(u: FloatArray) -> FloatArray:
    return 0.02 + 0.1 * u


def _steep(u: FloatArray) -> FloatArray:
    return np.where(u <= 0.6, 0.002, 0.25)


def _mean_steep(u: FloatArray) -> FloatArray:
    beyond_step = 0.25 - 0.1488 / np.maximum(u, 0.6)
    return np.where(u <= 0.6, 0.002, beyond_step)


def _overconfident_top(u: FloatArray) -> FloatArray:
    """Err more often in the surest tenth than in the rest: the risk falls before it rises."""
    return np.where(u < 0.1, 0.2, 0.01 + 0.1 * u)


def _mean_overconfident_top(u: FloatArray) -> FloatArray:
    below_top = 0.01 + 0.05 * u + 0.0185 / np.maximum(u, 0.1)
    return np.where(u < 0.1, 0.2, below_top)


def _constant(u: FloatArray) -> FloatArray:
    return np.full_like(u, 0.1)


#: The error rate at each rank u (0 is the surest), and its mean over [0, u].
RISKS: dict[str, tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]] = {
    "sharp": (_sharp, _mean_sharp),
    "gradual": (_gradual, _mean_gradual),
    "weak": (_weak, _mean_weak),
    "steep": (_steep, _mean_steep),
    "overconfident_top": (_overconfident_top, _mean_overconfident_top),
    "constant": (_constant, _constant),
}


def make_risk_profile(
    kind: str = "gradual",
    n_samples: int = 1000,
    *,
    n_levels: int | None = None,
    random_state: Any = None,
) -> Bunch:
    """Draw predictions whose true selective risk is known at every threshold.

    Parameters
    ----------
    kind : str, default="gradual"
        The error rate at rank u, from the surest (0) to the least sure row (1): "sharp"
        (.5 u^6), "gradual" (.3 u^2), "weak" (.02 + .2 u), "steep" (.002, from .6 on .25),
        "overconfident_top" (.2 up to .1, then .01 + .1 u) or "constant" (.1).
    n_samples : int, default=1000
        Number of rows n.
    n_levels : int, default=None
        Round confidences up to this many levels, which makes ties; the true risk accounts for
        it.
    random_state : int, Generator or None, default=None
        Seed.

    Returns
    -------
    Bunch
        ``confidence`` (uniform on [0, 1]: 1 - u), ``chance`` (probability of being right) and
        ``correct`` (bool), arrays of shape (n,); ``y_true`` and ``y_pred``, labels 0 and 1 that
        agree with ``correct``; and two functions of a threshold in [0, 1], number or array:
        ``coverage(t)`` and ``selective_risk(t)``, the true ones.

    Raises
    ------
    ValueError
        If `kind` is unknown or a number is not positive.

    Examples
    --------
    A certificate, compared with the truth:

    >>> from skselect import Outcomes, select_threshold
    >>> from skselect.datasets import make_risk_profile
    >>> drawn = make_risk_profile("gradual", 2000, random_state=0)
    >>> found = select_threshold(Outcomes(~drawn.correct, drawn.confidence),
    ...                          objective="risk", target=.03)
    >>> bool(drawn.selective_risk(found.threshold) <= .03)
    True
    """
    check_choice("kind", kind, RISKS)
    check_count("n_samples", n_samples)
    rng = check_generator(random_state)
    rate, mean_rate = RISKS[kind]
    rank = rng.random(n_samples)
    correct = rng.random(n_samples) >= rate(rank)
    confidence = 1.0 - rank
    if n_levels is not None:
        check_count("n_levels", n_levels)
        confidence = np.ceil(confidence * n_levels) / n_levels

    def coverage(threshold: Any) -> Any:
        t = np.clip(np.asarray(threshold, dtype=np.float64), 0.0, None)
        if n_levels is not None:  # rows above the next lower level were rounded up
            # 1e-9: a level must not become the next one by a rounding error.
            level = np.ceil(t * n_levels - 1e-9)
            t = (np.maximum(level, 1.0) - 1.0) / n_levels
        return np.maximum(1.0 - t, 0.0)

    def selective_risk(threshold: Any) -> Any:
        share = coverage(threshold)
        return np.where(share > 0, mean_rate(share), np.nan)

    return _profile(
        rng,
        confidence,
        1.0 - rate(rank),
        correct,
        coverage=coverage,
        selective_risk=selective_risk,
    )


# Models of arXiv 2505.18622 ---------------------------------------------------------------


#: Share of right answers, and the range of the confidence of right and of wrong ones.
MODELS = {
    "calibrated": (0.9, (0.8, 1.0), (0.5, 0.7)),
    "overconfident": (0.9, (0.9, 1.0), (0.9, 1.0)),
    "underconfident": (0.9, (0.4, 0.6), (0.4, 0.6)),
    "perfect": (1.0, (0.95, 1.0), (0.95, 1.0)),
    "perfect_certain": (1.0, (1.0, 1.0), (1.0, 1.0)),
    "random": (1 / 3, (0.3, 1.0), (0.3, 1.0)),
}
N_CLASSES = 3


def make_model_profile(
    kind: str = "calibrated", n_samples: int = 1000, *, random_state: Any = None
) -> Bunch:
    """Draw predictions of a synthetic model of the paper on CWSA.

    Parameters
    ----------
    kind : {"calibrated", "overconfident", "underconfident", "perfect", "perfect_certain", \
"random"}, default="calibrated"
        The model; see the table.
    n_samples : int, default=1000
        Number of rows n.
    random_state : int, Generator or None, default=None
        Seed.

    Returns
    -------
    Bunch
        ``confidence``, ``chance`` (probability of being right, the same in all rows) and
        ``correct`` (bool), arrays of shape (n,); ``y_true`` and ``y_pred``, labels 0, 1 and 2 that
        agree with ``correct``.

    Raises
    ------
    ValueError
        If `kind` is unknown or `n_samples` is not positive.

    Notes
    -----
    ===============  =========  ==================  ==================
    kind             right      confidence, right   confidence, wrong
    ===============  =========  ==================  ==================
    calibrated       90 %       U(.8, 1)            U(.5, .7)
    overconfident    90 %       U(.9, 1)            U(.9, 1)
    underconfident   90 %       U(.4, .6)           U(.4, .6)
    perfect          100 %      U(.95, 1)
    perfect_certain  100 %      exactly 1
    random           a third    U(.3, 1)            U(.3, 1)
    ===============  =========  ==================  ==================

    "calibrated", "overconfident", "perfect_certain" and "random" follow section 4.2 of [1]_ and
    what section 5 says of tables 1 to 3. The text gives no range for "underconfident"; this one
    and "perfect" are those of the authors' code, in which a third of the wrong answers is also
    right by luck. The names are the paper's: "calibrated" separates right from wrong answers, but
    its expected calibration error is .15.

    References
    ----------
    .. [1] Shahnazari et al., "Trust, or don't predict: introducing the CWSA family for
       confidence-aware model evaluation", arXiv 2505.18622, 2025, sections 4.2 and 5.

    Examples
    --------
    >>> from skselect import Outcomes, RiskCoverageCurve
    >>> from skselect.datasets import make_model_profile
    >>> drawn = make_model_profile("calibrated", random_state=0)
    >>> curve = RiskCoverageCurve.from_outcomes(Outcomes(~drawn.correct, drawn.confidence))
    >>> curve.cwsa([.5, .8]).round(2)
    array([0.7 , 0.48])
    """
    check_choice("kind", kind, MODELS)
    check_count("n_samples", n_samples)
    rng = check_generator(random_state)
    share, range_if_right, range_if_wrong = MODELS[kind]
    correct = rng.random(n_samples) < share
    low, high = np.where(correct[:, None], range_if_right, range_if_wrong).T
    confidence = rng.uniform(low, high)
    return _profile(rng, confidence, np.full(n_samples, share), correct, N_CLASSES)


# Classifiers of arXiv 2605.01796 ----------------------------------------------------------


def _uniform(rng: Generator, n: int) -> FloatArray:
    return rng.random(n)


def _skew_high(rng: Generator, n: int) -> FloatArray:
    return rng.beta(3.0, 0.5, n)


def _skew_low(rng: Generator, n: int) -> FloatArray:
    return rng.beta(0.5, 3.0, n)


def _bimodal(rng: Generator, n: int) -> FloatArray:
    is_high = rng.random(n) < 0.5
    return np.where(is_high, rng.beta(3.0, 0.5, n), rng.beta(0.5, 3.0, n))


def _tight_high(rng: Generator, n: int) -> FloatArray:
    return rng.uniform(0.8, 1.0, n)


def _tight_low(rng: Generator, n: int) -> FloatArray:
    return rng.uniform(0.0, 0.2, n)


def _normal(rng: Generator, n: int) -> FloatArray:
    """Draw N(.7, .1) within [0, 1]; clipping would give many ones."""
    low, high = ndtr((np.array([0.0, 1.0]) - 0.7) / 0.1)
    drawn: FloatArray = 0.7 + 0.1 * ndtri(rng.uniform(low, high, n))
    return drawn


def _log_uniform(rng: Generator, low: float, high: float, n: int) -> FloatArray:
    return np.exp(rng.uniform(np.log(low), np.log(high), n))


def _log_uniform_low(rng: Generator, n: int) -> FloatArray:
    # Up to 1 - 1e-6 the mean of c/(1 - c) is 1.5; up to 1 it would be infinite.
    return _log_uniform(rng, 1e-4, 1 - 1e-6, n)


def _log_uniform_high(rng: Generator, n: int) -> FloatArray:
    return 1.0 - _log_uniform(rng, 1e-6, 0.9, n)


def _bell(rng: Generator, n: int) -> FloatArray:
    return rng.beta(5.0, 5.0, n)


#: Distributions of the confidence.
LAWS: dict[str, Callable[[Generator, int], FloatArray]] = {
    "uniform": _uniform,
    "skew_high": _skew_high,
    "skew_low": _skew_low,
    "bimodal": _bimodal,
    "tight_high": _tight_high,
    "tight_low": _tight_low,
    "normal": _normal,
    "log_uniform_low": _log_uniform_low,
    "log_uniform_high": _log_uniform_high,
    "bell": _bell,
}


def _half(_: Generator, c: FloatArray) -> FloatArray:
    return np.full_like(c, 0.5)


def _perfect(_: Generator, c: FloatArray) -> FloatArray:
    return c


def _under_linear(_: Generator, c: FloatArray) -> FloatArray:
    return 0.2 + 0.8 * c


def _under_sqrt(_: Generator, c: FloatArray) -> FloatArray:
    return np.sqrt(c)


def _under_random(rng: Generator, c: FloatArray) -> FloatArray:
    return rng.uniform(c, 1.0)


def _over_sqrt(_: Generator, c: FloatArray) -> FloatArray:
    return 1.0 - np.sqrt(1.0 - c)


def _over_half(_: Generator, c: FloatArray) -> FloatArray:
    return 0.5 * c


def _over_random(rng: Generator, c: FloatArray) -> FloatArray:
    return rng.uniform(0.0, c)


#: The probability of being right at each confidence.
MODES: dict[str, Callable[[Generator, FloatArray], FloatArray]] = {
    "random": _half,
    "perfect": _perfect,
    "underconfident_linear": _under_linear,
    "underconfident_sqrt": _under_sqrt,
    "underconfident_random": _under_random,
    "overconfident_sqrt": _over_sqrt,
    "overconfident_half": _over_half,
    "overconfident_random": _over_random,
}


def make_calibration_profile(
    law: str = "uniform",
    mode: str = "perfect",
    n_samples: int = 1000,
    *,
    random_state: Any = None,
) -> Bunch:
    """Draw predictions of one of the 80 synthetic classifiers of the paper on CSR.

    Parameters
    ----------
    law : {"uniform", "skew_high", "skew_low", "bimodal", "tight_high", "tight_low", "normal", \
"log_uniform_low", "log_uniform_high", "bell"}, default="uniform"
        The distribution of the confidence.
    mode : {"random", "perfect", "underconfident_linear", "underconfident_sqrt", \
"underconfident_random", "overconfident_sqrt", "overconfident_half", "overconfident_random"}, \
default="perfect"
        How the probability of being right depends on the confidence.
    n_samples : int, default=1000
        Number of rows n.
    random_state : int, Generator or None, default=None
        Seed.

    Returns
    -------
    Bunch
        ``confidence``, ``chance`` (probability of being right) and ``correct`` (bool), arrays of
        shape (n,); ``y_true`` and ``y_pred``, labels 0 and 1 that agree with ``correct``.

    Raises
    ------
    ValueError
        If `law` or `mode` is unknown or `n_samples` is not positive.

    Notes
    -----
    ================  ===================  =======================  =============================
    law               confidence c         mode                     probability of being right
    ================  ===================  =======================  =============================
    uniform           U(0, 1)              random                   1/2
    skew_high         Beta(3, .5)          perfect                  c
    skew_low          Beta(.5, 3)          underconfident_linear    .2 + .8 c
    bimodal           half of each skew    underconfident_sqrt      the square root of c
    tight_high        U(.8, 1)             underconfident_random    U(c, 1) in each row
    tight_low         U(0, .2)             overconfident_sqrt       1 - square root of (1 - c)
    normal            N(.7, .1) in [0, 1]  overconfident_half       c/2
    log_uniform_low   log-U(1e-4, 1)       overconfident_random     U(0, c) in each row
    log_uniform_high  1 - log-U(1e-6, .9)
    bell              Beta(5, 5)
    ================  ===================  =======================  =============================

    Each law may be combined with each mode, as table 4 of [1]_ does. It does not spell out every
    law to the last digit; these reproduce its tables 5 and 8 to 11. "bimodal" draws each row from
    "skew_high" or "skew_low", "normal" is truncated, and "log_uniform_low" ends at 1 - 1e-6. The
    AUC of tables 10 and 11 follows if the class that is not predicted has the probability
    min(c, 1 - c).

    References
    ----------
    .. [1] Martin-Maroto, Abderrahaman & de Polavieja, "Beyond ECE: calibrated size ratio, risk
       assessment, and confidence-weighted metrics", arXiv 2605.01796, 2026, section 3.1 and
       table 4.

    Examples
    --------
    >>> from skselect.datasets import make_calibration_profile
    >>> drawn = make_calibration_profile("tight_high", "overconfident_half", 20_000, random_state=0)
    >>> print(f"{drawn.confidence.mean():.2f} {drawn.correct.mean():.2f}")
    0.90 0.45
    """
    check_choice("law", law, LAWS)
    check_choice("mode", mode, MODES)
    check_count("n_samples", n_samples)
    rng = check_generator(random_state)
    confidence = LAWS[law](rng, n_samples)
    chance = MODES[mode](rng, confidence)
    correct = rng.random(n_samples) < chance
    return _profile(rng, confidence, chance, correct)
