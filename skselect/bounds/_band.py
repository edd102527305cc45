"""Critical error counts for many thresholds at once, exact by the distribution of a random walk.

The walk W_k is the number of errors among the first k of independent rows with 0/1 errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from scipy import special, stats

from skselect._typing import FloatArray, IntArray
from skselect.bounds._binomial import critical_counts, rows_for_certificate, smallest_rank

#: Number of ranks at which the band is tested; all ranks would gain 0.2 points of coverage.
GRID_SIZE = 256
# Number of ranks that the union bound tests: more give a finer grid and smaller limits.
UNION_TESTS = 20
# Probability cut off in each tail of the walk; it counts as failure.
_TAIL = 1e-16


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
    delta : float in (0, 0.5]
        Allowed probability of failure.
    min_coverage : float in [0, 1]
        Smaller accepted sets are not considered, which gives more power to the others.

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
    ranks = even_ranks(n, target, delta, min_coverage)
    if len(ranks) == 0:
        return ranks, ranks
    # Bisection on a logarithmic scale; the limits at its lower end are always valid.
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


def sequence_limits(n: int, target: float, delta: float, start: float) -> tuple[IntArray, IntArray]:
    """Return ranks and critical error counts of a sequence that stops at the first failure.

    Parameters
    ----------
    n : int
        Calibration rows.
    target : float in (0, 1)
        Largest selective risk.
    delta : float in (0, 0.5]
        Allowed probability of failure.
    start : float in [0, 1]
        Share of the rows at which the sequence begins, fixed before they were seen. It begins
        later where so few rows could not pass.

    Returns
    -------
    ranks, limits : ndarray of shape (m,)
        Both empty when `n` rows cannot certify the target.

    Notes
    -----
    Each rank is tested at the full `delta`: limit = max{e : BinomCDF(e; k, target) <= delta}.
    The proof (step 5 without the band) stands in ``docs/guarantees.md``.

    Examples
    --------
    >>> from skselect.bounds import sequence_limits
    >>> ranks, limits = sequence_limits(1000, 0.05, 0.05, 0.25)
    >>> int(ranks[0]), int(limits[0]), int(limits[-1])
    (250, 6, 38)
    """
    ranks = even_ranks(n, target, delta, start)
    return ranks, critical_counts(ranks, target, delta)


def union_limits(
    n: int, target: float, delta: float, min_coverage: float
) -> tuple[IntArray, IntArray]:
    """Return 20 ranks and their critical error counts by the union bound (Bonferroni).

    Parameters
    ----------
    n, target, delta, min_coverage
        As in :func:`walk_band`, whose limits allow more errors: the union bound adds up the
        probabilities of failures that mostly happen together.

    Returns
    -------
    ranks, limits : ndarray of shape (m,)

    Examples
    --------
    >>> from skselect.bounds import union_limits
    >>> ranks, limits = union_limits(1000, 0.05, 0.05, 0.1)
    >>> int(ranks[-1]), int(limits[-1])
    (1000, 31)
    """
    alpha = delta / UNION_TESTS
    ranks = even_ranks(n, target, alpha, min_coverage, UNION_TESTS)
    return ranks, critical_counts(ranks, target, alpha)


#: The combined sequence starts between these shares of the rows.
SEQUENCE_START = (0.15, 0.25)
#: The share of delta that the band beside the sequence gets.
BAND_SHARE = 0.2


@lru_cache(maxsize=1024)
def combined_limits(
    n: int, target: float, delta: float, min_coverage: float
) -> tuple[IntArray, IntArray, IntArray]:
    """Return ranks with the critical counts of a band and of a fixed sequence beside it.

    The band may accept any rank on its own. The sequence starts between 15 and 25 % of the
    rows, where a low risk is most likely to pass (whole numbers of errors make some ranks stricter
    than others). It goes on as long as every rank passes; therefore each may be tested at nearly
    the full delta. With probability at least 1 - `delta` neither accepts a threshold whose true
    selective risk exceeds `target`, whatever the shape of the risk.

    Parameters
    ----------
    n : int
        Calibration rows.
    target : float in (0, 1)
        Largest selective risk.
    delta : float in (0, 0.5]
        Allowed probability of failure.
    min_coverage : float in [0, 1]
        Smaller accepted sets are not considered.

    Returns
    -------
    ranks, band, sequence : ndarray of shape (m,)
        -1 where one of them cannot accept; all empty when `n` rows cannot certify the target.

    Notes
    -----
    With W a Bernoulli(target) walk and b the band's counts at level `delta`/5, the sequence's
    count at rank m is the largest c with P(W_m <= c, or W_k <= b_k for some k) <= delta. The
    two events mostly happen together, so that the band costs almost nothing. The proof stands in
    ``docs/guarantees.md``.

    Examples
    --------
    >>> from skselect.bounds import combined_limits
    >>> ranks, band, sequence = combined_limits(1000, 0.05, 0.05, 0.1)
    >>> int(ranks[-1]), int(band[-1]), int(sequence[-1])
    (1000, 30, 38)
    """
    first = even_ranks(n, target, delta, max(min_coverage, SEQUENCE_START[0]))
    if len(first) == 0:
        return first, first, first
    band_ranks, limits = walk_band(n, target, BAND_SHARE * delta, min_coverage)
    ranks = np.unique(np.concatenate([band_ranks, first]))
    place = np.searchsorted(band_ranks, ranks, side="right") - 1
    band = np.where(place >= 0, np.append(limits, -1)[place], -1)
    alive = list(_surviving(ranks, band, target))
    crossed = max(1.0 - float(np.sum(alive[-1][1])), 0.0)
    later = _survival_chances(ranks, alive, target)
    sequence = np.array(
        [
            low - 1 + np.searchsorted(crossed + np.cumsum(state * chance), delta, side="right")
            for (low, state), chance in zip(alive, later, strict=True)
        ]
    )
    sequence = np.minimum.accumulate(sequence[::-1])[::-1]  # rising, as the proof requires
    start = _surest_start(first, sequence[np.searchsorted(ranks, first)], n, target)
    return ranks, band, np.where(ranks >= start, sequence, -1)


def _surest_start(ranks: IntArray, limits: IntArray, n: int, target: float) -> int:
    """Return the rank at which the sequence starts, chosen without looking at any row.

    It is the first rank in the range of starts that passes with probability 90 % if the risk is a
    third of the target; if there is none, the rank there that passes most often.
    """
    early = ranks <= max(SEQUENCE_START[1] * n, ranks[0])
    chance = special.bdtr(np.maximum(limits[early], 0.0), ranks[early], target / 3.0)
    chance[limits[early] < 0] = 0.0
    return int(ranks[np.argmax(np.minimum(chance, 0.9))])


def _survival_chances(
    ranks: IntArray, alive: list[tuple[int, FloatArray]], risk: float
) -> list[FloatArray]:
    """Return, for each rank and each count in `alive`, the probability of not crossing later."""
    chances = [np.ones(len(alive[-1][1]))]
    for i in range(len(ranks) - 2, -1, -1):
        (low, state), (next_low, _), known = alive[i], alive[i + 1], chances[-1]
        first, pmf = _step_distribution(int(ranks[i + 1] - ranks[i]), risk)
        counts = np.arange(low + first, low + first + len(state) + len(pmf) - 1) - next_low
        # Below the surviving counts a walk has crossed. Above them, in the tail that was cut off,
        # it counts as never crossing.
        reached = np.append(known, 1.0)[np.clip(counts, 0, len(known))]
        chances.append(np.correlate(np.where(counts < 0, 0.0, reached), pmf, mode="valid"))
    return chances[::-1]


def even_ranks(
    n: int, target: float, delta: float, min_coverage: float, size: int = GRID_SIZE
) -> IntArray:
    """Return the tested ranks: those large enough to be certified, evenly spread."""
    smallest = max(smallest_rank(n, min_coverage), rows_for_certificate(target, delta))
    if smallest > n:
        return np.empty(0, dtype=np.int64)
    ranks = np.linspace(smallest, n, min(size, n - smallest + 1))
    return np.unique(np.ceil(ranks).astype(np.int64))


def crossing_probability(ranks: IntArray, limits: IntArray, risk: float) -> float:
    """Return P(W_k <= limit_k for some rank k) for a Bernoulli(`risk`) random walk W.

    What is cut off in the far tails counts as crossing, so the value is never too small by more
    than rounding.
    """
    state = np.ones(1)
    for _, state in _surviving(ranks, limits, risk):  # noqa: B007 - the last one counts
        pass
    return max(1.0 - float(np.sum(state)), 0.0)


def staying_probability(ranks: IntArray, limits: IntArray, risk: float) -> float:
    """Return P(W_k <= limit_k for all ranks k) for a Bernoulli(`risk`) random walk W."""
    state, low, rank = np.ones(1), 0, 0
    for k, limit in zip(ranks.tolist(), limits.tolist(), strict=True):
        first, pmf = _step_distribution(k - rank, risk)
        state, low, rank = np.convolve(state, pmf), low + first, k
        state = state[: max(limit - low + 1, 0)]
        if len(state) == 0:
            return 0.0
    return float(np.sum(state))


def _surviving(ranks: IntArray, limits: IntArray, risk: float) -> Iterator[tuple[int, FloatArray]]:
    """Yield for each rank the lowest count that has not crossed, and P of each count from it on."""
    state, low, rank = np.ones(1), 0, 0
    for k, limit in zip(ranks.tolist(), limits.tolist(), strict=True):
        first, pmf = _step_distribution(k - rank, risk)
        state, low, rank = np.convolve(state, pmf), low + first, k
        crossed = min(max(limit - low + 1, 0), len(state))
        state, low = state[crossed:], low + crossed
        tail = np.cumsum(state[::-1])[::-1]
        state = state[: int(np.searchsorted(-tail, -_TAIL))]
        yield low, state
        if len(state) == 0:
            return


@lru_cache(maxsize=512)
def _step_distribution(step: int, risk: float) -> tuple[int, FloatArray]:
    """Return the first count and the probabilities of the errors in `step` rows, tails cut."""
    first = int(stats.binom.ppf(_TAIL, step, risk))
    last = int(stats.binom.isf(_TAIL, step, risk))
    counts = np.arange(max(first, 0), min(last, step) + 1)
    return int(counts[0]), stats.binom.pmf(counts, step, risk)
