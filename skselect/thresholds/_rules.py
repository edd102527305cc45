"""Rules that say which thresholds pass: for risk, silent failures, coverage; and the cheapest one.

`Shortlist` says which classes are probable enough to be named where a case is deferred.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from skselect._lib.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    reaches,
    stays_within,
)
from skselect._lib.checks.options import check_generator, check_number
from skselect.bounds import _pointwise as pointwise, combined_limits, walk_band
from skselect.bounds._band import (
    refuses_surely,
    union_limits,
)
from skselect.curve.curve import RiskCoverageCurve


@dataclass(frozen=True)
class Shortlist:
    """Name the probable classes of deferred cases: ``shortlist=Shortlist(...)``.

    ``shortlist=0.95`` is the same without a share.

    Parameters
    ----------
    level : float in (0, 1)
        How often the right answer is to be on the list of a deferred case.
    share : float in [0, 1), default=0.0
        The share of the rows, by chance, that set the limit of the list and do not choose the
        threshold: the level is then exact. 0: all rows do both, and the level is an estimate.
    random_state : int, RandomState, Generator or None, default=None
        Which rows these are. None: others at each call; a tuner takes its own.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Predictions, select_threshold
    >>> from skselect.thresholds import Shortlist
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([.2, .2, .2], 4000)
    >>> truth = [rng.choice(["cat", "dog", "fox"], p=p) for p in proba]
    >>> found = select_threshold(Predictions.from_proba(truth, proba), objective="risk",
    ...                          target=.02,
    ...                          shortlist=Shortlist(0.95, share=0.5, random_state=0))
    >>> found.policy.decide([[.55, .43, .02], [1, 0, 0]])["shortlist"].tolist()
    [('cat', 'dog'), <NA>]
    """

    level: float
    share: float = 0.0
    random_state: Any = None

    def __post_init__(self) -> None:
        """Check both."""
        pointwise.rows_for_quantile(self.level)
        check_number("share", self.share, 0.0, 1.0, closed="left")

    def set_apart(self, n: int) -> BoolArray:
        """Return which of n rows do not choose the threshold."""
        rng = check_generator(self.random_state)
        drawn = rng.permutation(n)[: int(self.share * n)]
        apart = np.zeros(n, dtype=bool)
        apart[drawn] = True
        return apart


def shortlist_cutoff(proba: FloatArray, truth: IntArray, level: float) -> float:
    """Return the least probability of a class on the list, so that the truth is on it.

    The truth of one more row, exchangeable with these, has at least this probability with
    probability `level` or more.

    Parameters
    ----------
    proba : ndarray of shape (n, K)
    truth : ndarray of shape (n,)
        Code of the true class; -1 is a class that is on no list.
    level : float in (0, 1)

    Returns
    -------
    float
        -inf where too many truths are on no list.
    """
    of_truth = proba[np.arange(len(truth)), truth].astype(np.float64)
    scores = np.where(truth < 0, np.inf, -of_truth)
    return -pointwise.conformal_quantile(scores, level)


#: A rule: curve, target, delta, least coverage -> whether accepting the entries up to each passes.
#: With probability 1 - delta no threshold passes that breaks the target, unless the rule says less.
Rule = Callable[[RiskCoverageCurve, float, float, float], BoolArray]


class Passing(NamedTuple):
    """The thresholds that pass.

    Parameters
    ----------
    entries : ndarray of bool, shape (B,)
        Whether a threshold passes that accepts the entries of a curve up to this one.
    levels : ndarray of shape (m,), default=[]
        Those that pass of the thresholds that were named beforehand; descending.
    """

    entries: BoolArray
    levels: FloatArray = np.empty(0)

    def any(self) -> bool:
        """Tell whether a threshold passes."""
        return bool(np.any(self.entries)) or len(self.levels) > 0


def pass_all(tests: Sequence[tuple[RiskCoverageCurve, Passing]]) -> Passing:
    """Return the thresholds that pass every test.

    The tests may be one rule on several readings of the same rows, or several rules on one curve.
    A threshold passes a test if the rows that it accepts there do: all thresholds between two
    confidences of a curve accept the same rows of it, and its rule holds for all of them.

    Parameters
    ----------
    tests : sequence of (RiskCoverageCurve, Passing)
        On which curve each test was made, and what passed it. The first curve holds every
        confidence of the others.

    Returns
    -------
    Passing
        On the first curve.
    """
    (all_rows, (entries, levels)), *others = tests
    for curve, passing in others:
        n_blocks = curve.n_blocks_accepted(all_rows.thresholds)
        entries = entries & np.append(False, passing.entries)[n_blocks]
        levels = levels[np.isin(levels, passing.levels)]
    return Passing(entries, levels)


# Selective risk ----------------------------------------------------------------------------


def least_coverage(n: int) -> float:
    """Return what ``min_coverage="auto"`` is: a tenth of the rows, or 200 if these are fewer.

    It depends on nothing else: where it moved with the target, a larger target could certify less.
    """
    return min(0.1, 200.0 / n)


def empirical_risk(
    curve: RiskCoverageCurve, target: float, _: float, min_coverage: float
) -> BoolArray:
    """Pass where the risk on these very rows is at most `target`, without guarantee."""
    low = stays_within(curve.selective_risk, target)
    return low & reaches(curve.coverage, min_coverage)


def mean_risk(curve: RiskCoverageCurve, target: float, _: float, min_coverage: float) -> BoolArray:
    """Pass where (errors + 1)/(accepted + 1) <= `target`.

    That keeps the mean risk over many calibrations near the target; about every second one
    exceeds it.
    """
    corrected = (curve.accepted_loss + 1.0) / (curve.accepted_weight + 1.0)
    low = stays_within(corrected, target)
    return low & reaches(curve.coverage, min_coverage)


def band_risk(
    curve: RiskCoverageCurve, target: float, delta: float, min_coverage: float
) -> BoolArray:
    """Pass what the band certifies; see :func:`~skselect.bounds.walk_band`."""
    ranks, limits = walk_band(curve.n_rows, target, delta, min_coverage)
    return passed_in_band(curve, ranks, limits)


def bonferroni_risk(
    curve: RiskCoverageCurve, target: float, delta: float, min_coverage: float
) -> BoolArray:
    """Pass what the union bound certifies; see :func:`~skselect.bounds._band.union_limits`."""
    ranks, limits = union_limits(curve.n_rows, target, delta, min_coverage)
    return passed_in_band(curve, ranks, limits)


def combined_risk(
    curve: RiskCoverageCurve, target: float, delta: float, min_coverage: float
) -> BoolArray:
    """Pass what band or sequence certifies; see :func:`~skselect.bounds.combined_limits`."""

    def count_errors(ranks: IntArray) -> FloatArray:
        return curve.loss_reaching(ranks)

    n = curve.n_rows
    if refuses_surely(n, target, delta, min_coverage, count_errors):
        return np.zeros(len(curve), dtype=bool)
    ranks, band, sequence = combined_limits(n, target, delta, min_coverage)
    by_band = passed_in_band(curve, ranks, band)
    tested = sequence >= 0
    by_sequence = passed_in_sequence(curve, ranks[tested], sequence[tested])
    return by_band | by_sequence


def sgr_risk(
    curve: RiskCoverageCurve, target: float, delta: float, min_coverage: float
) -> BoolArray:
    """Search by bisection, each probe bounded at delta/log2 n (Geifman & El-Yaniv 2017).

    All up to the best probe pass, of which only that one is bounded; published code takes the last
    probe.
    """
    n = curve.n_rows
    probes = max(int(np.ceil(np.log2(n))), 1)
    low = 1
    high = int(curve.n_accepted[-1])
    n_passed = 0
    for _ in range(probes):
        rank = (low + high + 1) // 2
        block = int(curve.first_reaching(rank))
        accepted, loss = curve.accepted_by(block + 1)
        bound = pointwise.clopper_pearson_upper(int(loss), int(accepted), delta / probes)
        if bound <= target:
            low = rank
            if reaches(accepted / n, min_coverage):
                n_passed = max(n_passed, block + 1)
        else:
            high = rank - 1 if rank > low else rank
    return np.arange(len(curve)) < n_passed


# Silent failures, coverage, cost ---------------------------------------------------------


def certified_generalized_risk(
    curve: RiskCoverageCurve, target: float, delta: float, *_: float
) -> BoolArray:
    """Pass every row that is strictly surer than the first error beyond the allowed number.

    Generalised risk grows with coverage, so one exact binomial test covers every threshold.
    With e* = max{e : BinomCDF(e; n, target) <= delta} the sets with at most e* errors pass.
    """
    allowed = pointwise.critical_counts(np.array([curve.n_rows]), target, delta)
    return np.arange(len(curve)) < curve.n_within_loss(allowed)


def empirical_generalized_risk(curve: RiskCoverageCurve, target: float, *_: float) -> BoolArray:
    """Pass where the rate of silent failures on these very rows is at most `target`."""
    return stays_within(curve.generalized_risk, target)


def mean_generalized_risk(curve: RiskCoverageCurve, target: float, *_: float) -> BoolArray:
    """Pass where the loss on new rows, over all of them, is at most `target` on average.

    Conformal risk control (Angelopoulos et al. 2024, eq. 4): the loss of one more row is at most 1,
    so that (sum of losses + 1) / (n + 1) must be at most the target.
    """
    expected = (curve.accepted_loss + 1.0) / (curve.n_rows + 1)
    return stays_within(expected, target)


@lru_cache(maxsize=1024)
def coverage_rank(n: int, target: float, delta: float) -> int:
    """Return the smallest k with P(Beta(k, n + 1 - k) >= target) >= 1 - delta; n + 1 if none.

    The coverage of "as sure as the k-th surest of n rows" on new rows has that distribution
    (ties only make it larger).
    """

    def reached(k: int) -> bool:
        return bool(special.betaincc(k, n + 1.0 - k, target) >= 1.0 - delta)

    ranks = range(pointwise.smallest_rank(n, target), n + 1)
    # The probability rises with k.
    n_failing = bisect_left(ranks, True, key=reached)
    return ranks.start + n_failing


def certified_coverage(
    curve: RiskCoverageCurve, target: float, delta: float, *_: float
) -> BoolArray:
    """Pass where the coverage on new rows is at least `target`, by rank.

    Too few rows pass nothing: accepting all of them is not accepting everything.
    """
    rank = coverage_rank(curve.n_rows, target, delta)
    return np.arange(len(curve)) >= curve.first_reaching(rank)


def empirical_coverage(curve: RiskCoverageCurve, target: float, *_: float) -> BoolArray:
    """Pass where the coverage on these very rows is at least `target`."""
    return reaches(curve.coverage, target)


def cheapest(curve: RiskCoverageCurve, abstention_cost: float, *_: float) -> int:
    """Accept so that errors and abstentions cost least on these rows; among equal costs the most.

    An error costs 1, an abstention `abstention_cost`.
    """
    accepted = np.concatenate([[0.0], curve.accepted_weight])
    loss = np.concatenate([[0.0], curve.accepted_loss])
    rejected = accepted[-1] - accepted
    cost = loss + abstention_cost * rejected
    cheapest_sets = np.flatnonzero(stays_within(cost, float(np.min(cost))))
    return int(cheapest_sets[-1])


def mean_coverage(curve: RiskCoverageCurve, target: float, *_: float) -> BoolArray:
    """Pass where the coverage on new rows is at least `target` on average.

    The coverage of "as sure as the k-th surest of n rows" has the mean k/(n + 1).
    """
    rank = pointwise.smallest_rank(curve.n_rows + 1, target)
    return np.arange(len(curve)) >= curve.first_reaching(rank)


def chow(abstention_cost: float) -> float:
    """Return the threshold 1 - `abstention_cost`.

    It is the cheapest one if the confidence is the probability of being right (Chow 1970), and
    needs no labelled rows. Calibrate first.
    """
    return 1.0 - min(abstention_cost, 1.0)


# Parts of the rules ------------------------------------------------------------------------


def passed_in_band(curve: RiskCoverageCurve, ranks: IntArray, limits: IntArray) -> BoolArray:
    """Tell which entries pass a band."""
    begin, end = passing_runs(curve, ranks, limits)
    edges = np.zeros((len(ranks) + 1, 2), dtype=np.int64)  # a run ends, the next one begins
    edges[1:, 0] = end
    edges[:-1, 1] = begin
    edges[-1, 1] = len(curve)
    lengths = np.diff(edges.ravel())
    is_inside = np.arange(len(lengths)) % 2 == 1
    return np.repeat(is_inside, lengths)


def passed_in_sequence(curve: RiskCoverageCurve, ranks: IntArray, limits: IntArray) -> BoolArray:
    """Tell which entries a sequence passes that stops at the first failure.

    A tie block must keep the limit at the rank before it, because the risk may turn bad inside
    it. The first block must keep the limit at the start. No set before the start passes.
    """
    passing = np.zeros(len(curve), dtype=bool)
    if len(ranks) == 0:
        return passing
    begin = curve.first_reaching(ranks)
    # The limit at a rank holds for the entries that start at or after it: those after the entry
    # that reaches the rank.
    begin[1:] += 1
    end = np.append(begin[1:], len(curve))
    failing = np.maximum(begin, curve.n_within_loss(limits))
    failing = failing[failing < end]
    stop = np.min(failing, initial=len(curve))
    passing[begin[0] : stop] = True
    return passing


def passing_runs(
    curve: RiskCoverageCurve, ranks: IntArray, limits: IntArray
) -> tuple[IntArray, IntArray]:
    """Return, for each tested rank, the run of entries from it on that pass its limit.

    Errors never decrease, so the entries that pass between two tested ranks are the first ones:
    a few look-ups for each rank, whatever the number of rows.
    """
    begin = curve.first_reaching(ranks)
    end = np.append(begin[1:], len(curve))
    end = np.minimum(end, curve.n_within_loss(limits))
    return begin, np.maximum(end, begin)


def last_passed(passed: BoolArray) -> int:
    """Return how many entries there are up to the last one that passed."""
    if not np.any(passed):
        return 0
    return len(passed) - int(np.argmax(passed[::-1]))
