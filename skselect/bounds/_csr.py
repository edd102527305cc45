"""Overconfidence near certainty: the calibrated size ratio (CSR), its spread, and its test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtr

from skselect._lib.arrays import ROUNDING, FloatArray, IntArray, lexsort, spans
from skselect._lib.checks.options import check_eps, check_generator, choose_draws
from skselect._lib.checks.rows import (
    check_unit_confidence,
    refuse_graded_test,
    refuse_weights,
    warn_small_total,
)
from skselect._lib.notebook import NotebookText
from skselect.curve.curve import RiskCoverageCurve
from skselect.predictions.outcomes import Outcomes

# Kernels ---------------------------------------------------------------------------------


def find_shortfall(confidence: FloatArray, eps: float) -> FloatArray:
    """Return 1 - c, clipped to [eps, 1 - eps]; clipping c itself would round eps."""
    return np.clip(1.0 - confidence, eps, 1.0 - eps)


def _check(curve: RiskCoverageCurve, eps: float) -> None:
    check_eps(eps, zero=True)
    curve.check_unit("CSR")


def csr(curve: RiskCoverageCurve, eps: float = 1e-8) -> float:
    """Return the weighted mean of l/(1 - c)."""
    _check(curve, eps)
    total = 0.0
    for _, chunk in curve.blocks.chunks():
        wrong = np.flatnonzero(chunk.loss > 0)
        shortfall = find_shortfall(chunk.confidence[wrong], eps)
        if len(wrong) and shortfall[0] == 0:  # the surest rows come first
            return math.inf
        total += float((chunk.loss[wrong] / shortfall).sum())
    return total / curve.sums.weight


def csr_sigma(curve: RiskCoverageCurve, eps: float = 1e-8) -> float:
    """Return sqrt(sum w c/(1 - c))/W, the standard deviation of CSR under calibration."""
    _check(curve, eps)
    total = 0.0
    for _, chunk in curve.blocks.chunks():
        shortfall = find_shortfall(chunk.confidence, eps)
        if shortfall[0] == 0:
            return math.inf
        odds = (1.0 - shortfall) / shortfall
        total += float(np.sum(chunk.weight * odds))
    return math.sqrt(total) / curve.sums.weight


def standardize(value: float, sigma: float) -> float:
    """Return value/sigma; where sigma is 0, an infinity, or 0 for a value of 0."""
    if sigma != 0 and not math.isinf(value):
        return value / sigma
    if value == 0:
        return 0.0
    return math.copysign(math.inf, value)


def p_risk(curve: RiskCoverageCurve, eps: float = 1e-8) -> float:
    """Return Phi((CSR - 1)/sigma) where CSR > 1, else 0."""
    warn_small_total(curve.sums.weight, curve.n_rows, "p_risk")
    return _p_risk_from(csr(curve, eps), csr_sigma(curve, eps))


def _p_risk_from(value: float, sigma: float) -> float:
    if not value > 1.0:
        return 0.0
    z = standardize(value - 1.0, sigma)
    return float(ndtr(z))


# Simulated errors ------------------------------------------------------------------------

#: Rows drawn at once, so that memory is limited.
_BATCH = 1 << 21


def error_sums(
    chance: FloatArray, value: FloatArray, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Draw the errors of all rows `n_draws` times; return the sum of `value` over those of each.

    Parameters
    ----------
    chance : ndarray of shape (n,)
        Chance of an error of each row, in [0, 1].
    value : ndarray of shape (n,)
    n_draws : int
    rng : Generator

    Returns
    -------
    ndarray of shape (n_draws,)
    """
    order = lexsort((value, -chance))  # the order of the rows must not change the draws
    order = order[chance[order] > 0]
    return _sorted_error_sums(chance[order], value[order], n_draws, rng)


def _sorted_error_sums(
    chance: FloatArray, value: FloatArray, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Draw as :func:`error_sums` does: the likeliest error first, no chance is 0."""
    sums = np.zeros(n_draws)
    # Rows whose chances differ by less than a factor of 2 are drawn together, as are all below
    # 2^-60.
    halvings = np.empty(len(chance), dtype=np.int8)
    for rows in spans(len(chance)):
        halving = np.floor(-np.log2(chance[rows]))
        halvings[rows] = np.minimum(halving, 60)
    edges = np.flatnonzero(np.diff(halvings, prepend=-1, append=61))
    for start, end in pairwise(edges):
        _add_errors(sums, chance[start:end], value[start:end], rng)
    return sums


def _add_errors(
    sums: FloatArray, chance: FloatArray, value: FloatArray, rng: np.random.Generator
) -> None:
    """Add the errors of rows with similar chances, of which `chance[0]` is the largest."""
    n_rows = len(chance)
    cap = float(chance[0])
    n_errors = max(n_rows * cap, 1.0)
    step = max(1, int(_BATCH / n_errors))
    for start in range(0, len(sums), step):
        n_draws = min(step, len(sums) - start)
        batch = np.zeros(n_draws)
        for place in _successes(n_rows * n_draws, cap, rng):
            draw = place // n_rows
            row = place - draw * n_rows
            is_error = rng.random(len(row)) * cap < chance[row]  # a share chance/cap of them
            np.add.at(batch, draw.compress(is_error), value[row.compress(is_error)])
        sums[start : start + n_draws] += batch


def _successes(n_trials: int, chance: float, rng: np.random.Generator) -> list[IntArray]:
    """Return which of many independent trials succeed, in pieces, by the gaps between successes."""
    if chance >= 1.0:
        return [np.arange(rows.start, rows.stop) for rows in spans(n_trials)]
    rate = -np.log1p(-chance)
    places = []
    last = -1.0
    while last < n_trials:
        expected = (n_trials - last) * chance
        n_gaps = int(expected + 6 * expected**0.5) + 10
        for rows in spans(n_gaps):
            place = rng.standard_exponential(rows.stop - rows.start)
            place /= rate
            np.floor(place, out=place)
            place += 1.0
            place[0] += last
            np.cumsum(place, out=place)  # exact: whole numbers below 2^53
            last = place[-1]
            if last >= n_trials:
                place = place[: np.searchsorted(place, n_trials)]
            places.append(place.astype(np.int64))
    return places


#: Tables with more rows have shortfalls rounded where many errors are expected.
_MANY_ROWS = 100_000
#: Classes per factor of 2 of the odds of an error, which lie between 2^-60 and 2^60.
_FINENESS = 64
_DEPTH = 60
#: Where fewer errors are expected within a factor of 2 of the odds, rows are drawn one by one.
_FEW_ERRORS = 1000.0
#: Where rounding could change a p-value by more, all rows are drawn one by one.
_LARGEST_ERROR = 0.001


class _RoundedRows:
    """Rows in classes of similar shortfalls; only the number of errors of a class is drawn.

    Each row of a class counts 1/m if it is wrong, where m is the mean shortfall of the class. Under
    calibration the number of errors is nearly Binomial(rows, m). `error` bounds how far any
    probability is off, the sum over classes of ``sum (s - m)^2 / ((rows + 1) m (1 - m))`` (Ehm,
    "Binomial approximation to the Poisson binomial distribution", 1991). A p-value from such
    draws plus this bound is never too small.
    """

    def __init__(self, shortfall: FloatArray) -> None:
        n_classes = 2 * _DEPTH * _FINENESS
        place = self._place(shortfall)
        self.size = np.bincount(place, minlength=n_classes)
        total = np.bincount(place, shortfall, n_classes)
        self.mean = np.minimum(total / np.maximum(self.size, 1), 1.0)
        deviation = shortfall - self.mean[place]
        spread = np.bincount(place, deviation**2, n_classes)
        n_expected = np.add.reduceat(total, np.arange(0, n_classes, _FINENESS))
        is_frequent = np.repeat(n_expected >= _FEW_ERRORS, _FINENESS)
        self.is_rounded = is_frequent & (self.size > 0)
        scale = (self.size + 1.0) * self.mean * (1.0 - self.mean)
        bound = np.divide(spread, scale, out=np.zeros(n_classes), where=spread > 0)
        self.error = float(np.sum(bound[self.is_rounded]))

    @staticmethod
    def _place(shortfall: FloatArray) -> IntArray:
        odds = shortfall / np.maximum(1.0 - shortfall, 2.0**-_DEPTH)
        steps = np.floor((_DEPTH - np.log2(odds)) * _FINENESS)
        last = 2 * _DEPTH * _FINENESS - 1
        return np.clip(steps, 0, last).astype(np.int64)

    def error_sum(self, wrong: FloatArray) -> float:
        """Return the sum over the wrong rows of what each counts."""
        place = self._place(wrong)
        counts = np.bincount(place, minlength=len(self.mean))
        single = np.sort(wrong[~self.is_rounded[place]])
        of_single = np.sum(1.0 / single)
        of_rounded = np.sum(counts[self.is_rounded] / self.mean[self.is_rounded])
        return float(of_single + of_rounded)

    def draw(self, shortfall: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw the errors of all rows `n_draws` times; return the sum of each draw."""
        place = self._place(shortfall)
        single = shortfall[~self.is_rounded[place]]
        sums = _sorted_error_sums(single, 1.0 / single, n_draws, rng)
        for size, mean in zip(self.size[self.is_rounded], self.mean[self.is_rounded], strict=True):
            sums += rng.binomial(size, mean, n_draws) / mean
        return sums


# The test --------------------------------------------------------------------------------


#: Level of the verdict in words.
_LEVEL = 0.05


@dataclass(frozen=True)
class CsrTest(NotebookText):
    """What :func:`~skselect.metrics.csr_test` found.

    Parameters
    ----------
    csr : float
        The mean over rows of [wrong]/(1 - c).
    sigma : float
        Its standard deviation if every confidence were the chance of being right.
    z : float
        (csr - 1)/sigma.
    p_risk : float in [0, 1]
        Phi(z) where csr > 1, else 0, as published; large means overconfident.
    p_value : float in (0, 1]
        Share of simulated calibrated classifiers with a CSR as large; small means overconfident.
    e_value : float
        Evidence of overconfidence; without any, it reaches 1/alpha with probability at most alpha.
    n_rows, n_errors, n_draws : int
    eps : float
    """

    csr: float
    sigma: float
    z: float
    p_risk: float
    p_value: float
    e_value: float
    n_rows: int
    n_errors: int
    n_draws: int
    eps: float

    def __str__(self) -> str:
        verdict = "no overconfidence found near certainty (5 % level)"
        if self.p_value <= _LEVEL:
            verdict = "overconfident near certainty (5 % level)"
        return (
            f"CSR test: {verdict}\n"
            f"  CSR      {self.csr:.4g}  (at most 1 in the mean when not overconfident)\n"
            f"  p-value  {self.p_value:.4g}  ({self.n_draws} simulated calibrated classifiers)\n"
            f"  e-value  {self.e_value:.4g}\n"
            f"  P_risk   {self.p_risk:.4g}  "
            f"(as published: sigma {self.sigma:.4g}, z {self.z:.4g})\n"
            f"  {self.n_errors} errors among {self.n_rows} rows, eps {self.eps:g}"
        )


def check_test_rows(outcomes: Outcomes, purpose: str) -> Outcomes:
    """Return the rows without their constant weight; refuse other weights and graded losses."""
    refuse_weights(outcomes.sample_weight, purpose)
    refuse_graded_test(outcomes.loss, purpose)
    check_unit_confidence(outcomes.confidence, purpose)
    if outcomes.sample_weight is None:
        return outcomes
    return Outcomes(outcomes.loss, outcomes.confidence)


def run_csr_test(
    outcomes: Outcomes, eps: float = 1e-8, n_draws: int = 999, random_state: Any = None
) -> CsrTest:
    """Return CSR with its standard deviation, p-value and e-value."""
    rows = check_test_rows(outcomes, "csr_test")
    n_draws = choose_draws(n_draws, 999, _LEVEL, 1)
    rng = check_generator(random_state)
    value, sigma = _measure(rows, eps)
    p_value = _find_p_value(rows, value, eps, n_draws, rng)
    return CsrTest(
        csr=value,
        sigma=sigma,
        z=standardize(value - 1.0, sigma),
        p_risk=_p_risk_from(value, sigma),
        p_value=p_value,
        e_value=_find_e_value(rows, eps),
        n_rows=len(rows),
        n_errors=int(np.sum(rows.loss)),
        n_draws=n_draws,
        eps=float(eps),
    )


def _measure(rows: Outcomes, eps: float) -> tuple[float, float]:
    """Return CSR and its standard deviation; the curve goes, for there may be many rows."""
    curve = RiskCoverageCurve.from_outcomes(rows)
    return csr(curve, eps), csr_sigma(curve, eps)


def _find_p_value(
    rows: Outcomes,
    value: float,
    eps: float,
    n_draws: int,
    rng: np.random.Generator,
) -> float:
    """Return the share of simulated calibrated classifiers with a CSR as large."""
    possible = -find_shortfall(rows.confidence, eps)
    possible.sort()
    np.negative(possible, out=possible)
    possible = possible[: np.count_nonzero(possible)]
    error = 0.0
    rounded = None
    if math.isfinite(value) and len(rows) > _MANY_ROWS:
        rounded = _RoundedRows(possible)
    if rounded is not None and rounded.error <= _LARGEST_ERROR:
        error = rounded.error
        shortfall = find_shortfall(rows.confidence[rows.loss > 0], eps)
        value = rounded.error_sum(shortfall) / len(rows)
        sums = rounded.draw(possible, n_draws, rng)
    else:
        sums = _sorted_error_sums(possible, 1.0 / possible, n_draws, rng)
    is_as_large = sums / len(rows) >= value * (1.0 - ROUNDING)
    n_as_large = int(np.sum(is_as_large))
    return min(1.0, (1 + n_as_large) / (n_draws + 1) + error)


def _find_e_value(rows: Outcomes, eps: float) -> float:
    """Return CSR with shortfalls that are not clipped at 1 - eps: its mean is at most 1."""
    shortfall = np.maximum(1.0 - rows.confidence[rows.loss > 0], eps)
    if np.any(shortfall == 0):
        return math.inf
    return float(np.sum(1 / shortfall)) / len(rows)
