"""Finite-sample statements about error rates: exact binomial bounds and the walk band.

Everything here counts independent rows and 0/1 errors.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special, stats

from skselect._typing import FloatArray, IntArray

#: Number of ranks at which the band is tested; all ranks would gain 0.2 points of coverage.
GRID_SIZE = 256
# Probability cut off in the tails of the walk; it is counted as failing.
_TAIL = 1e-16


def clopper_pearson_upper(n_errors: int, n: int, delta: float) -> float:
    """Return the exact upper bound on an error rate after `n_errors` errors in `n` rows.

    Parameters
    ----------
    n_errors : int
        Between 0 and `n`.
    n : int
        Independent rows.
    delta : float in (0, 1)
        Probability that the bound lies below the true rate is at most this.

    Returns
    -------
    float in (0, 1]
        1 when there are no rows.

    References
    ----------
    .. [1] Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the
       case of the binomial", 1934.

    Examples
    --------
    >>> from skselect.bounds import clopper_pearson_upper
    >>> round(clopper_pearson_upper(0, 149, 0.05), 5)
    0.0199
    """
    if n_errors >= n:
        return 1.0
    return float(special.betaincinv(n_errors + 1.0, n - n_errors, 1.0 - delta))


def rows_for_certificate(target: float, delta: float) -> int:
    """Return the least number of rows, all of them right, that can certify a risk target.

    Parameters
    ----------
    target : float in (0, 1)
        Largest risk.
    delta : float in (0, 1)
        Allowed probability of failure.

    Returns
    -------
    int
        The smallest k with (1 - target)^k <= delta.

    Examples
    --------
    >>> from skselect.bounds import rows_for_certificate
    >>> rows_for_certificate(0.02, 0.05)
    149
    """
    if target >= 1.0:
        return 1
    step, wanted = math.log1p(-target), math.log(delta)
    k = max(math.ceil(wanted / step), 1)
    # The division rounds: settle the last step by the definition itself.
    if k > 1 and (k - 1) * step <= wanted:
        return k - 1
    return k if k * step <= wanted else k + 1


def critical_counts(ranks: IntArray, risk: float, alpha: float) -> IntArray:
    """Return, per rank k, the largest e with BinomCDF(e; k, risk) <= alpha, -1 if none."""
    guess = stats.binom.ppf(alpha, ranks, risk)
    exact = np.where(special.bdtr(guess, ranks, risk) <= alpha, guess, guess - 1)
    return exact.astype(np.int64)


def crossing_probability(ranks: IntArray, limits: IntArray, risk: float) -> float:
    """Return P(W_k <= limit_k for some rank k) for a Bernoulli(`risk`) random walk W.

    The distribution of the walk over its surviving states is carried from rank to rank. What
    is cut off in the far tails counts as crossing, so the value never errs downwards by more
    than rounding.
    """
    state, low, rank = np.ones(1), 0, 0
    for k, limit in zip(ranks.tolist(), limits.tolist(), strict=True):
        first, pmf = _step_distribution(k - rank, risk)
        state, low, rank = np.convolve(state, pmf), low + first, k
        crossed = min(max(limit - low + 1, 0), len(state))
        state, low = state[crossed:], low + crossed
        tail = np.cumsum(state[::-1])[::-1]
        state = state[: int(np.searchsorted(-tail, -_TAIL))]
        if len(state) == 0:
            return 1.0
    return max(1.0 - float(np.sum(state)), 0.0)


@lru_cache(maxsize=512)
def _step_distribution(step: int, risk: float) -> tuple[int, FloatArray]:
    """Return the first count and the probabilities of the errors in `step` rows, tails cut."""
    first = int(stats.binom.ppf(_TAIL, step, risk))
    last = int(stats.binom.isf(_TAIL, step, risk))
    counts = np.arange(max(first, 0), min(last, step) + 1)
    return int(counts[0]), stats.binom.pmf(counts, step, risk)


@lru_cache(maxsize=1024)
def walk_band(
    n: int, target: float, delta: float, min_coverage: float
) -> tuple[IntArray, IntArray]:
    """Return ranks and critical error counts that hold for all thresholds at once.

    Accepting the k surest of n rows is safe for every risk curve and every way of choosing k:
    with probability at least 1 - `delta` no threshold whose true selective risk exceeds
    `target` has at most as many errors as its critical count. A rank between two of the grid
    takes the count of the lower one, which is exact because a walk never falls.

    Parameters
    ----------
    n : int
        Calibration rows.
    target : float in (0, 1)
        Largest selective risk.
    delta : float in (0, 1)
        Allowed probability of failure.
    min_coverage : float in [0, 1]
        Smaller accepted sets are not considered, which buys power for the others.

    Returns
    -------
    ranks, limits : ndarray of shape (m,)
        m <= 256, both empty when `n` rows cannot certify the target at all.

    Notes
    -----
    The least favourable case is a risk that equals the target everywhere, where the errors
    among the k surest rows are a Bernoulli(target) walk. alpha is the largest level for which
    that walk stays above the counts with BinomCDF(count; k, target) <= alpha at all ranks of
    the grid, with probability at least 1 - delta. The proof stands in ``docs/guarantees.md``.

    Examples
    --------
    >>> from skselect.bounds import walk_band
    >>> ranks, limits = walk_band(1000, 0.05, 0.05, 0.1)
    >>> int(ranks[-1]), int(limits[-1])
    (1000, 33)
    """
    ranks = _grid(n, target, delta, min_coverage)
    if len(ranks) == 0:
        return ranks, ranks
    # Bisection on a logarithmic scale; the lower end always keeps the promise.
    low, high = math.log(delta / (4.0 * len(ranks))), math.log(delta)
    safe = critical_counts(ranks, target, math.exp(low))
    counts = critical_counts(ranks, target, delta)
    if crossing_probability(ranks, counts, target) <= delta:
        return ranks, counts
    for _ in range(14):
        middle = (low + high) / 2.0
        counts = critical_counts(ranks, target, math.exp(middle))
        if crossing_probability(ranks, counts, target) <= delta:
            low, safe = middle, counts
        else:
            high = middle
    return ranks, safe


def _grid(n: int, target: float, delta: float, min_coverage: float) -> IntArray:
    """Return the tested ranks: those large enough to be certified, evenly spread."""
    smallest = max(smallest_rank(n, min_coverage), rows_for_certificate(target, delta))
    if smallest > n:
        return np.empty(0, dtype=np.int64)
    ranks = np.linspace(smallest, n, min(GRID_SIZE, n - smallest + 1))
    return np.unique(np.ceil(ranks).astype(np.int64))


def smallest_rank(n: int, share: float) -> int:
    """Return the smallest k >= 1 with k/n >= share, found by division (ceil(q n) rounds wrong)."""
    k = max(math.ceil(share * n), 1)
    if k > 1 and (k - 1) / n >= share:
        return k - 1
    return k if k / n >= share else k + 1
