"""Simulated predictions whose true risk is known, for testing metrics and certificates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skselect._lib.arrays import FloatArray
from skselect._lib.checks.options import check_choice, check_count, check_generator

__all__ = ["make_risk_profile"]


def __dir__() -> list[str]:
    """List the public name."""
    return __all__


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

    y_pred = rng.integers(2, size=n_samples)
    return Bunch(
        confidence=confidence,
        chance=1.0 - rate(rank),
        correct=correct,
        y_true=np.where(correct, y_pred, 1 - y_pred),
        y_pred=y_pred,
        coverage=coverage,
        selective_risk=selective_risk,
    )
