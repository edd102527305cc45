"""Simulated predictions whose true risk is known, for testing metrics and certificates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.utils import Bunch

from skselect._checks.options import check_choice, check_count, check_generator
from skselect._typing import FloatArray

Draws = np.random.Generator


def _bimodal(rng: Draws, n: int) -> FloatArray:
    return np.where(rng.random(n) < 0.5, rng.beta(3.0, 0.5, n), rng.beta(0.5, 3.0, n))


def _truncated_normal(rng: Draws, n: int) -> FloatArray:
    """Draw N(.7, .1) within [0, 1]; clipping would give many ones."""
    low, high = ndtr((np.array([0.0, 1.0]) - 0.7) / 0.1)
    return np.asarray(0.7 + 0.1 * ndtri(rng.uniform(low, high, n)))


def _log_uniform(rng: Draws, low: float, high: float, n: int) -> FloatArray:
    return np.exp(rng.uniform(np.log(low), np.log(high), n))


#: Distributions of the confidence: arXiv 2605.01796, table 4.
DISTRIBUTIONS: dict[str, Callable[[Draws, int], FloatArray]] = {
    "uniform": lambda rng, n: rng.random(n),
    "skew_high": lambda rng, n: rng.beta(3.0, 0.5, n),
    "skew_low": lambda rng, n: rng.beta(0.5, 3.0, n),
    "bimodal": _bimodal,
    "tight_high": lambda rng, n: rng.uniform(0.8, 1.0, n),
    "tight_low": lambda rng, n: rng.uniform(0.0, 0.2, n),
    "normal": _truncated_normal,
    # The range ends at 1 - 1e-6: there the mean of c/(1 - c) is 1.5, up to 1 it is infinite.
    "log_uniform_low": lambda rng, n: _log_uniform(rng, 1e-4, 1 - 1e-6, n),
    "log_uniform_high": lambda rng, n: 1.0 - _log_uniform(rng, 1e-6, 0.9, n),
    "bell": lambda rng, n: rng.beta(5.0, 5.0, n),
}

#: The probability of being right at each confidence: arXiv 2605.01796, table 4.
CALIBRATION_MODES: dict[str, Callable[[Draws, FloatArray], FloatArray]] = {
    "random": lambda _, c: np.full_like(c, 0.5),
    "perfect": lambda _, c: c,
    "underconfident_linear": lambda _, c: 0.2 + 0.8 * c,
    "underconfident_sqrt": lambda _, c: np.sqrt(c),
    "underconfident_random": lambda rng, c: rng.uniform(c, 1.0),
    "overconfident_sqrt": lambda _, c: 1.0 - np.sqrt(1.0 - c),
    "overconfident_half": lambda _, c: 0.5 * c,
    "overconfident_random": lambda rng, c: rng.uniform(0.0, c),
}

#: Share of right answers, and the range of the confidence of right and of wrong ones.
MODELS = {
    "calibrated": (0.9, (0.8, 1.0), (0.5, 0.7)),
    "overconfident": (0.9, (0.9, 1.0), (0.9, 1.0)),
    "underconfident": (0.9, (0.4, 0.6), (0.4, 0.6)),
    "perfect": (1.0, (0.95, 1.0), (0.95, 1.0)),
    "perfect_certain": (1.0, (1.0, 1.0), (1.0, 1.0)),
    "random": (1 / 3, (0.3, 1.0), (0.3, 1.0)),
}

#: The error rate at each rank u (0 is the surest), and its mean over [0, u].
RISKS: dict[str, tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]] = {
    "sharp": (lambda u: 0.5 * u**6, lambda u: 0.5 * u**6 / 7),
    "gradual": (lambda u: 0.3 * u**2, lambda u: 0.1 * u**2),
    "weak": (lambda u: 0.02 + 0.2 * u, lambda u: 0.02 + 0.1 * u),
    "steep": (
        lambda u: np.where(u <= 0.6, 0.002, 0.25),
        lambda u: np.where(u <= 0.6, 0.002, 0.25 - 0.1488 / np.maximum(u, 0.6)),
    ),
    # The surest tenth errs more often than the rest: the risk falls before it rises.
    "overconfident_top": (
        lambda u: np.where(u < 0.1, 0.2, 0.01 + 0.1 * u),
        lambda u: np.where(u < 0.1, 0.2, 0.01 + 0.05 * u + 0.0185 / np.maximum(u, 0.1)),
    ),
    "constant": (lambda u: np.full_like(u, 0.1), lambda u: np.full_like(u, 0.1)),
}


def make_confidence_profile(
    distribution: str = "uniform",
    calibration_mode: str = "perfect",
    n_samples: int = 1000,
    *,
    random_state: Any = None,
) -> Bunch:
    """Draw predictions with a given distribution of the confidence and a given miscalibration.

    Parameters
    ----------
    distribution : str, default="uniform"
        Of the confidence c: "uniform", "skew_high" (Beta(3, .5)), "skew_low" (Beta(.5, 3)),
        "bimodal" (half of each), "tight_high" (U(.8, 1)), "tight_low" (U(0, .2)), "normal"
        (N(.7, .1) within [0, 1]), "log_uniform_low", "log_uniform_high" or "bell" (Beta(5, 5)).
    calibration_mode : str, default="perfect"
        The probability of being right: "perfect" (c), "random" (1/2), "underconfident_linear"
        (.2 + .8 c), "underconfident_sqrt" (sqrt(c)), "underconfident_random" (uniform between c
        and 1), "overconfident_sqrt" (1 - sqrt(1 - c)), "overconfident_half" (c/2) or
        "overconfident_random" (uniform between 0 and c).
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
        If a name is unknown or `n_samples` is not positive.

    References
    ----------
    .. [1] arXiv 2605.01796, table 4.

    Examples
    --------
    >>> from skselect import Outcomes, evaluate
    >>> from skselect.datasets import make_confidence_profile
    >>> drawn = make_confidence_profile("tight_high", "overconfident_sqrt", random_state=0)
    >>> evaluate(Outcomes(~drawn.correct, drawn.confidence), ["csr", "ece"]).round(2)
    csr    3.11
    ece    0.17
    dtype: float64
    """
    check_choice("distribution", distribution, DISTRIBUTIONS)
    check_choice("calibration_mode", calibration_mode, CALIBRATION_MODES)
    check_count("n_samples", n_samples)
    rng = check_generator(random_state)
    confidence = DISTRIBUTIONS[distribution](rng, n_samples)
    chance = CALIBRATION_MODES[calibration_mode](rng, confidence)
    correct = rng.random(n_samples) < chance
    return _make_bunch(confidence, chance, correct, 2, rng)


def make_model_profile(
    kind: str = "calibrated", n_samples: int = 1000, *, random_state: Any = None
) -> Bunch:
    """Draw predictions of one of six kinds of model.

    Parameters
    ----------
    kind : {"calibrated", "overconfident", "underconfident", "perfect", "perfect_certain", \
"random"}, default="calibrated"
        See the table.
    n_samples : int, default=1000
        Number of rows n.
    random_state : int, Generator or None, default=None
        Seed.

    Returns
    -------
    Bunch
        As :func:`make_confidence_profile`; "random" has three classes. ``chance`` is the same
        in all rows.

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

    "calibrated", "overconfident" and "random" follow the paper's text on tables 1 to 3; the ranges
    of "underconfident" and "perfect" are those of the authors' published code (which lets a third
    of the wrong answers be right by luck). The perfect model of the text is "perfect_certain":
    CWSA, CWSA+ and coverage are 1 at every threshold, ECE and AURC 0. The names are the paper's:
    the confidence of "calibrated" separates right from wrong answers, which calibration does not
    require.

    References
    ----------
    .. [1] arXiv 2505.18622, section 4.

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
    share, right, wrong = MODELS[kind]
    correct = rng.random(n_samples) < share
    low, high = np.where(correct[:, None], right, wrong).T
    confidence = rng.uniform(low, high)
    chance = np.full(n_samples, share)
    return _make_bunch(confidence, chance, correct, 3 if kind == "random" else 2, rng)


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
        ``confidence`` (uniform on [0, 1]: 1 - u), ``chance`` and ``correct``, ``y_true`` and
        ``y_pred``, as :func:`make_confidence_profile`; and two functions of a threshold in
        [0, 1], number or array: ``coverage(t)`` and ``selective_risk(t)``, the true ones.

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
            t = (np.maximum(np.ceil(t * n_levels - 1e-9), 1.0) - 1.0) / n_levels
        return np.maximum(1.0 - t, 0.0)

    def selective_risk(threshold: Any) -> Any:
        share = coverage(threshold)
        return np.where(share > 0, mean_rate(share), np.nan)

    bunch = _make_bunch(confidence, 1.0 - rate(rank), correct, 2, rng)
    return Bunch(**bunch, coverage=coverage, selective_risk=selective_risk)


def _make_bunch(
    confidence: FloatArray, chance: FloatArray, correct: Any, n_classes: int, rng: Draws
) -> Bunch:
    """Add labels that agree with `correct`."""
    y_pred = rng.integers(n_classes, size=len(correct))
    other = (y_pred + rng.integers(1, n_classes, size=len(correct))) % n_classes
    y_true = np.where(correct, y_pred, other)
    return Bunch(
        confidence=confidence, chance=chance, correct=correct, y_true=y_true, y_pred=y_pred
    )
