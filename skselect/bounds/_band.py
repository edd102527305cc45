"""Critical error counts for many thresholds at once, exact by the distribution of a random walk.

The walk W_k is the number of errors among the first k of independent rows with 0/1 errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import fft, special

from skselect._lib.arrays import FloatArray, IntArray, stays_within
from skselect.bounds._pointwise import critical_counts, rows_for_certificate, smallest_rank

#: Number of ranks, evenly spread; all ranks would gain 0.2 points of coverage.
GRID_SIZE = 256
# The band is also tested at so many ranks below this share of the rows, spread geometrically.
_SMALL_SIZE = 64
_SMALL_SHARE = 0.1
# Number of ranks that the union bound tests: more give a finer grid and smaller limits.
UNION_TESTS = 20
# Probability cut off in each tail of the walk; it counts as failure.
_TAIL = 1e-16
# From so many products on, two distributions are added by Fourier transforms, to about 1e-16.
_LONG_WALK = 300_000
# Levels of the band between the union bound and delta.
_LEVELS = 1 << 14
# How fast, on a logarithmic scale, the probability of crossing grows with the level.
_SLOPE = 0.87
#: Limits of the sequence are sums, which differ from one exact test by less than this share.
SLACK = 1e-6


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
        Rows that certify.
    target : float in (0, 1)
        The bound to keep. Largest selective risk.
    delta : float in (0, 0.5]
        Probability that the guarantee fails.
    min_coverage : float in [0, 1]
        Smaller accepted sets are not considered. That gives more power to the others.

    Returns
    -------
    ranks, limits : ndarray of shape (m,)
        m <= 320, both empty when `n` rows cannot certify the target at all.

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
    search = _find_search(n, target, delta, min_coverage)
    while search.goes_on:
        search.walk()
    bracket = search.bracket
    if bracket.safe > 0:
        return search.ranks, bracket.low
    lowest, _ = search.ends
    return search.ranks, lowest


def walk_until_alike(
    n: int,
    target: float,
    delta: float,
    min_coverage: float,
    are_alike: Callable[[IntArray, IntArray, IntArray], bool],
) -> tuple[IntArray, IntArray]:
    """Return ranks, and counts that are as good to the caller as those of :func:`walk_band`.

    Those lie between the counts of the union bound and the ones at which each rank alone may be
    tested. Every walk brings the two closer, until ``are_alike(ranks, low, high)``.
    """
    search = _find_search(n, target, delta, min_coverage)
    low, high = search.ends
    while search.goes_on and not are_alike(search.ranks, low, high):
        search.walk()
        low = np.maximum(low, search.bracket.low)
        high = np.minimum(high, search.bracket.high)
    return search.ranks, np.maximum(low, search.bracket.low)


def band_levels(n: int, target: float, delta: float, min_coverage: float) -> tuple[float, float]:
    """Return a level at which each rank of :func:`walk_band` may be tested, and one too high.

    They differ by a twentieth at most, or by no count.
    """
    search = _find_search(n, target, delta, min_coverage)
    while search.goes_on and search.alpha(search.bracket.unsafe) > 1.05 * search.alpha(
        search.bracket.safe
    ):
        search.walk()
    return search.alpha(search.bracket.safe), search.alpha(search.bracket.unsafe)


def likely_level(n: int, target: float, delta: float) -> float:
    """Return about the level of :func:`band_levels`, without a walk."""
    return delta * math.exp(-max(_likely_logs(n, target), 0.0))


def _likely_logs(n: int, target: float) -> float:
    """Return about the log of delta over the level of a band."""
    return 2.8 - 6.0 / math.sqrt(n * target)


class _Bracket(NamedTuple):
    """A safe and an unsafe level, their critical counts, and what is tried next."""

    safe: int
    unsafe: int
    low: IntArray
    high: IntArray
    level: int
    least_step: int
    was_safe: bool


class _Search:
    """The search for the highest safe level at which all ranks may be tested, as far as it came.

    Levels go from the union bound, 0, up to `delta`, `_LEVELS`, and are even on a logarithmic
    scale. Level 0 is safe, and no level is if one below it is not. The probability of crossing
    rises nearly straight on that scale, so that half as many levels have to be tried as by
    bisection. Counts rise with the level, and neighbouring levels often have the same ones.
    """

    def __init__(self, n: int, target: float, delta: float, min_coverage: float) -> None:
        ranks = band_ranks(n, target, delta, min_coverage)
        self.ranks = ranks
        self.target = target
        self.delta = delta
        self.per_log = _LEVELS / math.log(4.0 * max(len(ranks), 1))
        # Most searches end near this level; a poor guess only takes more walks.
        logs = _likely_logs(int(ranks.max(initial=1)), target)
        level = round(_LEVELS - logs * self.per_log)
        level = min(max(level, _LEVELS // 2), _LEVELS)
        none = np.full_like(ranks, -1)
        self.bracket = _Bracket(0, _LEVELS + 1, none, ranks, level, 1, was_safe=False)
        self.crossings: dict[bytes, float] = {}

    def counts(self, level: int, tested: Any = ...) -> IntArray:
        """Return the critical counts of a level, of all ranks or of some."""
        return critical_counts(self.ranks[tested], self.target, self.alpha(level))

    def alpha(self, level: int) -> float:
        """Return the level at which each rank is tested alone."""
        return self.delta * math.exp((level - _LEVELS) / self.per_log)

    def crossing(self, limits: IntArray) -> float:
        """Return the probability of crossing these counts."""
        key = limits.tobytes()
        if key not in self.crossings:
            self.crossings[key] = crossing_probability(self.ranks, limits, self.target)
        return self.crossings[key]

    @cached_property
    def ends(self) -> tuple[IntArray, IntArray]:
        """The counts of the lowest and of the highest level."""
        return self.counts(0), self.counts(_LEVELS)

    @property
    def goes_on(self) -> bool:
        """Whether a level between the safe and the unsafe one may have counts of its own."""
        bracket = self.bracket
        if bracket.unsafe - bracket.safe <= 1:
            return False
        return bool(np.sum(bracket.high - bracket.low) > 1)

    def walk(self) -> None:
        """Try one more level."""
        # It is replaced as a whole, so that threads may share the search.
        bracket = self.bracket
        level = bracket.level
        limits = bracket.low.copy()
        differs = bracket.low < bracket.high
        limits[differs] = self.counts(level, differs)
        crossing = self.crossing(limits)
        is_safe = crossing <= self.delta
        if is_safe:
            bracket = bracket._replace(safe=level, low=limits)
        else:
            bracket = bracket._replace(unsafe=level, high=limits)
        least_step = 1
        if is_safe == bracket.was_safe:  # do not creep up from one side
            least_step = 2 * bracket.least_step
        gap = math.log(max(crossing, _TAIL) / self.delta)
        step = max(int(abs(gap) * self.per_log / _SLOPE), least_step)
        step = min(step, max((bracket.unsafe - bracket.safe) // 2, 1))
        level += step if is_safe else -step
        self.bracket = bracket._replace(level=level, least_step=least_step, was_safe=is_safe)


#: The search for the same arguments goes on where it stopped.
_find_search = lru_cache(maxsize=1024)(_Search)


def sequence_limits(n: int, target: float, delta: float, start: float) -> tuple[IntArray, IntArray]:
    """Return ranks and critical error counts of a sequence that stops at the first failure.

    Each rank is tested at the full `delta`: limit = max{e : BinomCDF(e; k, target) <= delta}. The
    sequence begins at the share `start` of the rows, fixed before they were seen, and later where
    so few rows could not pass. The proof (step 5 without the band) is in ``docs/guarantees.md``.

    Examples
    --------
    >>> from skselect.bounds._band import sequence_limits
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

    :func:`walk_band` allows more errors: the union bound adds up the probabilities of failures
    that mostly happen together.

    Examples
    --------
    >>> from skselect.bounds._band import union_limits
    >>> ranks, limits = union_limits(1000, 0.05, 0.05, 0.1)
    >>> int(ranks[-1]), int(limits[-1])
    (1000, 31)
    """
    alpha = delta / UNION_TESTS
    ranks = even_ranks(n, target, alpha, min_coverage, UNION_TESTS)
    return ranks, critical_counts(ranks, target, alpha)


#: The combined sequence starts between these shares of the rows.
EARLIEST_START = 0.15
LATEST_START = 0.25
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
        Rows that certify.
    target : float in (0, 1)
        The bound to keep. Largest selective risk.
    delta : float in (0, 0.5]
        Probability that the guarantee fails.
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
    ranks, band, sequence = limits_from_start(
        n, target, delta, min_coverage, BAND_SHARE, EARLIEST_START
    )
    if len(ranks) == 0:
        return ranks, band, sequence
    starts = possible_starts(n, target, delta, min_coverage)
    limits = sequence[np.searchsorted(ranks, starts)]
    start = starts[np.argmax(start_chances(starts, limits, target))]
    return ranks, band, np.where(ranks >= start, sequence, -1)


def start_chances(starts: IntArray, limits: IntArray, target: float) -> FloatArray:
    """Return, up to .9, the chance to pass a limit if the risk is target/3: no row is looked at."""
    chance = special.bdtr(np.maximum(limits, 0.0), starts, target / 3.0)
    chance = np.minimum(chance, 0.9)
    chance[limits < 0] = 0.0
    return chance


@lru_cache(maxsize=1024)
def limits_from_start(
    n: int,
    target: float,
    delta: float,
    min_coverage: float,
    band_share: float,
    least_start: float = 0.0,
) -> tuple[IntArray, IntArray, IntArray]:
    """Return ranks with the critical counts of a band and of a sequence that starts anywhere.

    As :func:`combined_limits`, but the share of `delta` that the band gets is an argument, and the
    sequence has a count at every rank from `min_coverage` (and `least_start`) on: it may start at
    any of them, and leave out any, as long as neither was chosen by looking at the rows.

    Returns
    -------
    ranks, band, sequence : ndarray of shape (m,)
        -1 where one of them cannot accept; all empty when `n` rows cannot certify the target.

    Examples
    --------
    >>> from skselect.bounds._band import limits_from_start
    >>> ranks, band, sequence = limits_from_start(1000, 0.05, 0.05, 0.1, 0.5)
    >>> int(ranks[-1]), int(band[-1]), int(sequence[-1])
    (1000, 32, 37)
    """
    sequence_ranks = even_ranks(n, target, delta, max(min_coverage, least_start))
    if len(sequence_ranks) == 0:
        return sequence_ranks, sequence_ranks, sequence_ranks
    walk_ranks, limits = walk_band(n, target, band_share * delta, min_coverage)
    ranks = np.union1d(walk_ranks, sequence_ranks)
    n_before = np.searchsorted(walk_ranks, ranks, side="right")
    band = np.append(-1, limits)[n_before]
    return ranks, band, _limits_beside(ranks, band, n, target, delta)


def _limits_beside(
    ranks: IntArray, band: IntArray, n: int, target: float, delta: float
) -> IntArray:
    """Return, per rank, the largest count at which a sequence may pass beside a band."""
    rises = np.diff(band, prepend=-1) > 0  # a walk crosses first at one of these
    ends = np.concatenate([[0], ranks[rises], [n]])
    part: IntArray = np.cumsum(rises)  # the last end before or at each rank
    alive = [(0, np.ones(1)), *_surviving(ends[1:-1], band[rises], target)]
    lows = np.array([low for low, _ in alive])
    # No count is larger than that of one exact test.
    most = critical_counts(ends[1:], target, (1.0 + SLACK) * delta)
    n_counts = int(np.max((most - lows)[part[0] :], initial=-1)) + 2
    chances = _passing_chances(ranks, ends, part, alive, n_counts, target)
    n_passed = np.count_nonzero(stays_within(chances, delta), axis=1)
    sequence = lows[part] - 1 + n_passed
    # Rising, so that the count of a rank may be used between it and the next one.
    return np.minimum.accumulate(sequence[::-1])[::-1]


def _passing_chances(
    ranks: IntArray,
    ends: IntArray,
    part: IntArray,
    alive: list[tuple[int, FloatArray]],
    n_counts: int,
    risk: float,
) -> FloatArray:
    """Return P(at most so many errors at the rank, or a crossing of the band), a row per rank.

    A column stands for a count, from the lowest one on that is in `alive` at the last of the
    `ends` before the rank.
    """
    before = _first_counts(alive, n_counts)
    _, survivors = alive[-1]
    crossed = max(1.0 - float(np.sum(survivors)), 0.0)
    longest = np.max(np.diff(ends)[part[0] :])
    reach = math.ceil(longest * risk + _spread(longest, risk))
    size = fft.next_fast_len(n_counts + reach, real=True)
    after = _survival_chances(ends, alive, risk, size)
    steps = np.stack([ranks - ends[part], ends[part + 1] - ranks])
    done, left = _errors_in_frequencies(steps, risk, size)
    # P(count, not crossed yet) ...
    chances = fft.irfft(fft.rfft(before, size)[part] * done, size)
    # ... times P(not crossing later).
    chances *= fft.irfft(fft.rfft(after)[part] * left.conj(), size)
    return crossed + chances[:, :n_counts].cumsum(axis=1)


def possible_starts(n: int, target: float, delta: float, min_coverage: float) -> IntArray:
    """Return the ranks at which the sequence of :func:`combined_limits` may start."""
    ranks = even_ranks(n, target, delta, max(min_coverage, EARLIEST_START))
    latest = max(LATEST_START * n, ranks.min(initial=n))
    return ranks[ranks <= latest]


def refuses_surely(
    n: int, target: float, delta: float, min_coverage: float, errors: Callable[[IntArray], Any]
) -> bool:
    """Tell whether :func:`combined_limits` refuse all ranks, without computing them.

    No limit is larger than that of one exact test of its rank alone. False tells nothing.

    Parameters
    ----------
    n, target, delta, min_coverage
        As for :func:`combined_limits`.
    errors : callable
        Takes the ranks and returns the errors among as many rows; tied rows may bring more errors
        than the rank.

    Returns
    -------
    bool
    """

    def fail_all(ranks: IntArray, level: float) -> bool:
        n_errors = np.minimum(errors(ranks), ranks)
        return bool(np.all(special.bdtr(n_errors, ranks, target) > level))

    starts = possible_starts(n, target, delta, min_coverage)
    if not fail_all(starts, (1.0 + SLACK) * delta):
        return False
    band_level = BAND_SHARE * delta
    ranks = band_ranks(n, target, band_level, min_coverage)
    return fail_all(ranks, band_level)


def _first_counts(alive: list[tuple[int, FloatArray]], n_counts: int) -> FloatArray:
    """Return the probabilities of the lowest counts in `alive`, a row for each end."""
    chances = np.zeros((len(alive), n_counts))
    for row, (_, state) in zip(chances, alive, strict=True):
        row[: len(state)] = state[:n_counts]
    return chances


def _survival_chances(
    ends: IntArray, alive: list[tuple[int, FloatArray]], risk: float, size: int
) -> FloatArray:
    """Return the probability of crossing at no later one of the ranks `ends`, a row for each.

    A column stands for the errors at the next rank, from the lowest count in `alive` on.
    """
    low, state = alive[-1]
    steps = [_step_distribution(step, risk) for step in np.diff(ends).tolist()]
    # By count. Below the surviving ones a walk has crossed. Above them, in the tail that was cut
    # off, it counts as never crossing.
    staying = np.ones(low + len(state) + max(size, *(start + len(pmf) for start, pmf in steps)))
    staying[:low] = 0.0
    chances = np.empty((len(alive), size))
    end = 0
    for row, (low, state), (start, pmf) in zip(
        chances[::-1], reversed(alive), reversed(steps), strict=True
    ):
        row[:] = staying[low : low + size]
        reached = staying[low + start :][: len(state) + len(pmf) - 1]
        added = _add_step(reached, pmf[::-1])
        staying[low : low + len(state)] = added[len(pmf) - 1 : len(reached)]
        staying[low + len(state) : end] = 1.0
        end = low + len(state)
    return chances


def _errors_in_frequencies(rows: IntArray, risk: float, size: int) -> Any:
    """Return the discrete Fourier transform of the distribution of errors in so many rows."""
    steps, place = np.unique(rows, return_inverse=True)
    half = np.pi / size * np.arange(size // 2 + 1)
    square = risk * np.sin(half) ** 2
    angle = np.arctan2(risk * np.sin(2.0 * half), 1.0 - 2.0 * square)  # of one row
    steps = steps[:, None]
    log = special.xlog1py(steps / 2.0, -4.0 * (1.0 - risk) * square)
    transform = np.exp(log - 1j * steps * angle)
    return transform[place.reshape(rows.shape)]


def even_ranks(
    n: int, target: float, delta: float, min_coverage: float, size: int = GRID_SIZE
) -> IntArray:
    """Return the tested ranks: those large enough to be certified, evenly spread."""
    return _spread_evenly(n, _smallest_tested(n, target, delta, min_coverage), size)


def _smallest_tested(n: int, target: float, delta: float, min_coverage: float) -> int:
    """Return the smallest rank that counts and is large enough to be certified."""
    return max(smallest_rank(n, min_coverage), rows_for_certificate(target, delta))


@lru_cache(maxsize=2048)
def _spread_evenly(n: int, smallest: int, size: int) -> IntArray:
    if smallest > n:
        return np.empty(0, dtype=np.int64)
    size = min(size, n - smallest + 1)
    ranks = np.ceil(np.linspace(smallest, n, size)).astype(np.int64)
    rises = np.diff(ranks, prepend=0) > 0
    return ranks[rises]


def band_ranks(n: int, target: float, delta: float, min_coverage: float) -> IntArray:
    """Return the ranks of the band: even ones from a tenth of the rows on, below it geometric ones.

    They depend on the number of rows and on what was fixed beforehand alone.
    """
    return _spread_ranks(n, _smallest_tested(n, target, delta, min_coverage))


@lru_cache(maxsize=2048)
def _spread_ranks(n: int, smallest: int) -> IntArray:
    tenth = max(smallest, smallest_rank(n, _SMALL_SHARE))
    ranks = _spread_evenly(n, tenth, GRID_SIZE)
    if smallest >= tenth or len(ranks) == 0:
        return ranks
    small = np.rint(np.geomspace(smallest, tenth, _SMALL_SIZE))
    return np.union1d(small.astype(np.int64), ranks)


def crossing_probability(ranks: IntArray, limits: IntArray, risk: float) -> float:
    """Return P(W_k <= limit_k for some rank k) for a Bernoulli(`risk`) random walk W.

    What is cut off in the far tails counts as crossing, so the value is never too small by more
    than rounding.
    """
    # A walk never falls: at ranks where the limit does not rise it has crossed before, or does not.
    rises = np.diff(limits, prepend=-1) > 0
    survivors = np.ones(1)
    for _, state in _surviving(ranks[rises], limits[rises], risk):
        survivors = state
    return max(1.0 - float(np.sum(survivors)), 0.0)


def staying_probability(ranks: IntArray, limits: IntArray, risk: float) -> float:
    """Return P(W_k <= limit_k for all ranks k) for a Bernoulli(`risk`) random walk W."""
    if risk == 0.0:  # no row is wrong
        return float(np.all(limits >= 0))
    # As many rows are right then as cross no limit of their own.
    return 1.0 - crossing_probability(ranks, ranks - limits - 1, 1.0 - risk)


def _surviving(ranks: IntArray, limits: IntArray, risk: float) -> Iterator[tuple[int, FloatArray]]:
    """Yield for each rank the lowest count that has not crossed, and P of each count from it on."""
    state = np.ones(1)
    low = 0
    rank = 0
    tops = np.ceil(ranks * risk + _spread(ranks, risk)).astype(np.int64)
    tops = np.maximum(tops, limits)
    for k, limit, top in zip(ranks.tolist(), limits.tolist(), tops.tolist(), strict=True):
        start, pmf = _step_distribution(k - rank, risk)
        rank = k
        state = _add_step(state, pmf)
        low += start
        crossed = max(limit - low + 1, 0)
        state = state[crossed : top - low + 1]
        low += crossed
        yield low, state
        if len(state) == 0:
            return


def _spread(rows: Any, risk: float) -> Any:
    """Return how far from its mean a number of errors may lie, but for `_TAIL` (Bernstein)."""
    log = -math.log(_TAIL)
    return log / 3.0 + np.sqrt(log**2 / 9.0 + 2.0 * log * risk * (1.0 - risk) * rows)


def _add_step(state: FloatArray, pmf: FloatArray) -> FloatArray:
    """Return the distribution of a count after one more step."""
    if len(state) * len(pmf) < _LONG_WALK:  # np.convolve takes twice as long for short ones
        return np.correlate(state, pmf[::-1], "full")
    size = len(state) + len(pmf) - 1
    padded = fft.next_fast_len(size, real=True)
    product = fft.rfft(state, padded) * fft.rfft(pmf, padded)
    return fft.irfft(product, padded)[:size]


@lru_cache(maxsize=512)
def _step_distribution(step: int, risk: float) -> tuple[int, FloatArray]:
    """Return the first count and the probabilities of the errors in `step` rows, tails cut."""
    mean = step * risk
    spread = _spread(step, risk)
    low = max(math.floor(mean - spread), 0)
    high = min(math.ceil(mean + spread), step)
    counts = np.arange(low, high + 1)
    odds = risk / (1.0 - risk)
    ratios = (step - counts[:-1]) / counts[1:] * odds
    pmf = np.cumprod(np.append(1.0, ratios))
    pmf /= np.sum(pmf)
    below = int(np.searchsorted(np.cumsum(pmf), _TAIL))
    above = int(np.searchsorted(np.cumsum(pmf[::-1]), _TAIL))
    return int(counts[below]), pmf[below : len(pmf) - above]
