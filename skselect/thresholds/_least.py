"""The least target that rows meet, among all targets of three digits.

Whole numbers of errors make some ranks stricter than others, and where a sequence begins moves with
the target. So rows may meet 15 % and not 16 %, and halving would not see it: every target of three
digits near the least one is looked at. Most are told from neighbouring ones, whose levels and
limits differ little; only those that are nearly met are tested with limits of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import special

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, reaches
from skselect.bounds._band import (
    BAND_SHARE,
    EARLIEST_START,
    LATEST_START,
    SLACK,
    band_levels,
    band_ranks,
    crossing_probability,
    likely_level,
    possible_starts,
    start_chances,
    walk_band,
)
from skselect.bounds._pointwise import (
    clopper_pearson_upper,
    critical_counts,
    smallest_rank,
    upper_from_counts,
)
from skselect.curve.curve import RiskCoverageCurve
from skselect.thresholds._advice import find_best_set, largest_sets
from skselect.thresholds._rules import Rule, band_risk, combined_risk, last_passed

# Targets of three digits between two powers of ten.
_PER_DECADE = 900
_ONE = 12 * _PER_DECADE
_LARGEST = 0.999
# Where a rule is tested in full, so many targets below one found by halving are looked at.
_FEW = 5
# The level of a band moves by less than this between targets that differ by a tenth.
_BAND_PLAY = 0.07
# ... and by less than this share between those where it may be the least one.
_FAR_PLAY = 1.5
# A sequence beside a band passes as many errors as one at this share of its level, or more.
_SEQUENCE_PLAY = 0.14
# ... and at this share where the band is nearly its own.
_SEQUENCE_PLAY_NEAR = 0.01


class LeastTarget(NamedTuple):
    """The least target that rows meet.

    Parameters
    ----------
    target : float
        Of three digits; 1 where none below is met. A larger one may be refused.
    coverage : float
        Share of the rows that it accepts.
    """

    target: float
    coverage: float


def find_least_target(
    rule: Rule, curve: RiskCoverageCurve, delta: float, min_coverage: float
) -> LeastTarget:
    """Return the least target of three digits that a rule meets on these rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, RiskCoverageCurve
    >>> from skselect.thresholds._least import find_least_target
    >>> from skselect.thresholds._rules import combined_risk
    >>> rng = np.random.default_rng(8)
    >>> confidence = rng.random(300)
    >>> outcomes = Outcomes(rng.random(300) < 0.2 * (1 - confidence), confidence)
    >>> curve = RiskCoverageCurve.from_outcomes(outcomes)
    >>> find_least_target(combined_risk, curve, 0.05, 0.1)
    LeastTarget(target=0.0827, coverage=0.28)
    """

    def passes(target: float) -> bool:
        return bool(np.any(rule(curve, target, delta, min_coverage)))

    if rule is combined_risk:
        combined = _Combined(curve, delta, min_coverage)
        target = climb(passes, combined.tell, combined.find_lowest())
    elif rule is band_risk:
        band = _Band(curve, delta, min_coverage)
        target = climb(passes, band.tell, band.find_lowest())
    else:
        sets = largest_sets(curve, reaches(curve.coverage, min_coverage))
        target = halve(passes, _guess(*sets))
    if target == 1.0:
        return LeastTarget(1.0, 1.0)
    n_blocks = last_passed(rule(curve, target, delta, min_coverage))
    coverage, _ = curve.working_point(n_blocks)
    return LeastTarget(target, coverage)


def _guess(rows: IntArray, errors: FloatArray) -> float:
    """Return about the least target that a test of all accepted sets at once meets."""
    bounds = (errors + 3.0 * np.sqrt(errors) + 6.0) / rows
    return float(np.min(bounds, initial=_LARGEST))


def least_band_target(
    n_accepted: int, n_errors: int, n: int, delta: float, min_coverage: float
) -> float:
    """Return the least target of three digits that a set of accepted rows would have met.

    Parameters
    ----------
    n_accepted, n_errors : int
        Accepted rows, and the errors among them.
    n : int
        All rows.
    delta : float in (0, 0.5]
        Allowed probability of failure.
    min_coverage : float in [0, 1]
        Smaller accepted sets are not considered.

    Returns
    -------
    float in (0, 1]
    """

    def passes(target: float) -> bool:
        ranks, limits = walk_band(n, target, delta, min_coverage)
        place = np.searchsorted(ranks, n_accepted, side="right") - 1  # the limit that counts here
        return bool(place >= 0 and n_errors <= limits[place])

    guess = clopper_pearson_upper(n_errors, n_accepted, delta / 6.0)
    return halve(passes, guess)


# Targets of three digits -------------------------------------------------------------------


def target_at(place: int) -> float:
    """Return a target of three digits by its place; `_ONE` is 1."""
    decade, digits = divmod(place, _PER_DECADE)
    return (100 + digits) / 10 ** (14 - decade)


def place_of(target: float) -> int:
    """Return the place of the least target of three digits that is at least `target`."""
    decade = max(math.floor(math.log10(target)) + 12, 0)
    digits = math.ceil(target * 10 ** (14 - decade) * (1.0 - 1e-12)) - 100
    return min(decade * _PER_DECADE + max(digits, 0), _ONE)


def climb(
    passes: Callable[[float], bool], tell: Callable[[float], bool | None], lowest: float
) -> float:
    """Return the least target of three digits that passes.

    Parameters
    ----------
    passes : callable
        Whether a target passes.
    tell : callable
        Whether a target surely passes, or surely does not; None where it takes `passes`.
    lowest : float
        No target below it passes.
    """

    def is_met(place: int) -> bool:
        target = target_at(place)
        answer = tell(target)
        return passes(target) if answer is None else answer

    place = place_of(lowest)
    while place < _ONE and not (is_met(place) and passes(target_at(place))):
        place += 1
    return target_at(place)


def halve(passes: Callable[[float], bool], guess: float) -> float:
    """Return the least target of three digits that passes among those near one found by halving."""

    @cache
    def is_met(place: int) -> bool:
        return passes(target_at(place))

    high = place_of(guess)
    step = 1
    while high < _ONE and not is_met(high):
        high = min(high + step, _ONE)
        step *= 2
    low = high - step
    while low > 0 and is_met(low):
        high = low
        step *= 2
        low = high - step
    while high - low > 1:
        middle = (low + high) // 2
        if is_met(middle):
            high = middle
        else:
            low = middle
    below = range(max(high - _FEW, 0), high)
    least = next((place for place in below if is_met(place)), high)
    return target_at(least)


# What neighbouring targets tell ------------------------------------------------------------


class _Band:
    """Whether the band meets a target, told from the level of the band at a neighbouring one."""

    def __init__(self, curve: RiskCoverageCurve, delta: float, min_coverage: float) -> None:
        self.curve = curve
        self.delta = delta
        self.min_coverage = min_coverage
        self.sets = largest_sets(curve, reaches(curve.coverage, min_coverage))
        self.neighbour = 0.0
        self.begin = 0
        self.levels = (0.0, 0.0)

    def count_errors(self, ranks: IntArray) -> FloatArray:
        """Return the errors among the rows up to the end of the block of each rank."""
        return self.curve.loss_reaching(ranks)

    def levels_near(self, target: float) -> tuple[float, float]:
        """Return a level of the band that is safe near a target, and one that is too high."""
        n = self.curve.n_rows
        # Ranks begin later where a smaller target needs more rows.
        ranks = band_ranks(n, target, self.delta, self.min_coverage)
        begin = int(ranks.min(initial=n))
        is_near = 0.9 * target <= self.neighbour <= 1.1 * target
        if not is_near or abs(begin - self.begin) > 0.01 * begin:
            self.levels = band_levels(n, target, self.delta, self.min_coverage)
            self.neighbour = target
            self.begin = begin
        return self.levels

    def find_lowest(self) -> float:
        """Return a target below which the band meets none."""
        n = self.curve.n_rows
        guess = _guess(*self.sets)
        guess = self._find_bound(likely_level(n, guess, self.delta))
        # Where it is the least one, its own search goes on where this one ends.
        lowest = target_at(min(place_of(guess), _ONE - 1))
        target = math.inf
        while lowest < 0.9 * target:
            target = lowest
            _, unsafe = self.levels_near(target)
            lowest = min(lowest, self._find_bound(_FAR_PLAY * unsafe))
        return lowest

    def _find_bound(self, level: float) -> float:
        """Return the least bound of a set, if each is tested at a level, `delta` at most."""
        rows, errors = self.sets
        if len(rows) == 0:
            return 1.0
        return find_best_set(rows, errors, min(level, self.delta)).bound

    def tell(self, target: float) -> bool:
        """Tell whether a target is met."""
        n = self.curve.n_rows
        ranks = band_ranks(n, target, self.delta, self.min_coverage)
        n_errors = np.minimum(self.count_errors(ranks), ranks)
        chance = np.min(special.bdtr(n_errors, ranks, target), initial=1.0)
        if chance > self.delta:
            return False
        safe, unsafe = self.levels_near(target)
        if chance <= safe * (1.0 - _BAND_PLAY):
            return True
        if chance > unsafe * (1.0 + _BAND_PLAY):
            return False
        # The likeliest set passes if its own chance is a level that keeps delta.
        limits = critical_counts(ranks, target, chance)
        return crossing_probability(ranks, limits, target) <= self.delta


class _Combined:
    """Whether band or sequence meet a target, told from what is known without their limits."""

    def __init__(self, curve: RiskCoverageCurve, delta: float, min_coverage: float) -> None:
        self.band = _Band(curve, BAND_SHARE * delta, min_coverage)
        self.delta = delta

    def find_lowest(self) -> float:
        """Return a target below which neither meets any."""
        curve = self.band.curve
        n = curve.n_rows
        first = smallest_rank(n, max(EARLIEST_START, self.band.min_coverage))
        ranks = np.arange(first, max(math.floor(LATEST_START * n), first) + 1)
        n_errors = np.minimum(self.band.count_errors(ranks), ranks)
        is_largest = np.append(n_errors[1:] > n_errors[:-1], True)
        level = (1.0 + SLACK) * self.delta
        best = find_best_set(ranks[is_largest], n_errors[is_largest], level)
        lowest = min(self.band.find_lowest(), best.bound)
        # Of so few rows that none may be wrong, it may start at more.
        n_right, _ = curve.accepted_by(int(curve.n_within_loss(0)))
        return min(lowest, float(upper_from_counts(0.0, n_right, level)))

    def tell(self, target: float) -> bool | None:
        """Tell whether a target is met, None where it is nearly."""
        by_band = self.band.tell(target)
        if by_band:
            return True
        by_sequence = self.tell_sequence(target)
        if by_sequence is False:
            return by_band
        return by_sequence

    def tell_sequence(self, target: float) -> bool | None:
        """Tell whether the sequence passes where it begins."""
        n = self.band.curve.n_rows
        starts = possible_starts(n, target, self.delta, self.band.min_coverage)
        if len(starts) == 0:
            return False
        n_errors = self.band.count_errors(starts)
        n_errors = np.minimum(n_errors, starts)
        most_level = (1.0 + SLACK) * self.delta
        if np.all(special.bdtr(n_errors, starts, target) > most_level):
            return False
        most = critical_counts(starts, target, most_level)
        least = critical_counts(starts, target, (1.0 - _SEQUENCE_PLAY) * self.delta)
        if np.any(least < 0):
            return None
        is_start = _possible_first(starts, least, most, target)
        for place in np.flatnonzero(is_start).tolist():
            for count in {n_errors[place], most[place]}:
                self._tighten(least, most, place, int(starts[place]), int(count), target)
        is_start = _possible_first(starts, least, most, target)
        if np.all(n_errors[is_start] <= least[is_start]):
            return True
        if np.all(n_errors[is_start] > most[is_start]):
            return False
        return None

    def _tighten(
        self, least: IntArray, most: IntArray, place: int, start: int, count: int, target: float
    ) -> None:
        """Raise or lower what is sure of the limit at a start, by the chance of such a count.

        The band beside it is taken at the level of a neighbouring target.
        """
        if not least[place] < count <= most[place]:
            return
        n = self.band.curve.n_rows
        level, _ = self.band.levels_near(target)
        ranks = band_ranks(n, target, self.band.delta, self.band.min_coverage)
        limits = critical_counts(ranks, target, level)
        # To pass there, or in the band, is to pass a band that is wider from there on.
        before = int(np.searchsorted(ranks, start))
        wider = np.insert(limits, before, count)
        wider[before:] = np.maximum(wider[before:], count)
        chance = crossing_probability(np.insert(ranks, before, start), wider, target)
        if chance <= self.delta * (1.0 - _SEQUENCE_PLAY_NEAR):
            least[place] = count
        elif chance > self.delta * (1.0 + _SEQUENCE_PLAY_NEAR):
            most[place] = count - 1


def _possible_first(starts: IntArray, least: IntArray, most: IntArray, target: float) -> BoolArray:
    """Tell at which ranks the sequence may start, if its limits lie between `least` and `most`.

    It starts at the first one that is likeliest to pass, see :func:`start_chances`.
    """
    low = start_chances(starts, least, target)
    high = start_chances(starts, most, target)
    best_before = np.maximum.accumulate(np.append(-1.0, low[:-1]))
    return (high > best_before) & (high >= np.max(low))
