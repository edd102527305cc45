"""Limits for many thresholds at once, against sums over all walks and simulation."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from skselect.bounds import combined_limits, walk_band
from skselect.bounds._band import (
    band_ranks,
    crossing_probability,
    even_ranks,
    limits_from_start,
    refuses_surely,
    sequence_limits,
    staying_probability,
    union_limits,
)
from skselect.bounds._pointwise import critical_counts


@pytest.mark.parametrize("risk", [Fraction(1, 10), Fraction(1, 3)])
@pytest.mark.parametrize(
    ("ranks", "limits"),
    [
        ([3, 5, 8], [-1, 0, 1]), ([1, 2, 3, 10], [-1, -1, 0, 2]), ([4, 10], [0, 1]), ([6], [2]),
        ([3, 5, 8], [1, 1, 3]), ([4, 10], [0, 9]), ([2], [-1]),
    ],
)  # fmt: skip
def test_crossing_and_staying_probability_are_sums_over_all_walks(ranks, limits, risk):
    crossing = staying = Fraction(0)
    for steps in product([0, 1], repeat=ranks[-1]):
        chance = risk ** sum(steps) * (1 - risk) ** (len(steps) - sum(steps))
        below = [sum(steps[:k]) <= limit for k, limit in zip(ranks, limits, strict=True)]
        crossing += chance * any(below)
        staying += chance * all(below)
    given = np.array(ranks), np.array(limits), float(risk)
    assert crossing_probability(*given) == pytest.approx(float(crossing), rel=1e-12)
    assert staying_probability(*given) == pytest.approx(float(staying), rel=1e-12, abs=1e-15)


def test_band_never_spends_more_than_delta_and_is_nearly_all_of_it():
    for n, risk, delta, least in [
        (300, 0.05, 0.05, 0.1), (1000, 0.02, 0.1, 0.1), (5000, 0.05, 0.05, 0.1),
        (5000, 0.05, 0.05, 0.04), (60_000, 0.01, 0.05, 1 / 300),
    ]:  # fmt: skip
        ranks, limits = walk_band(n, risk, delta, least)
        spent = crossing_probability(ranks, limits, risk)
        assert 0.9 * delta <= spent <= delta


@pytest.mark.parametrize("n", [2001, 5000, 100_000])
def test_ranks_of_a_band_are_even_from_a_tenth_on_and_geometric_below_it(n):
    ranks = band_ranks(n, 0.1, 0.05, 200 / n)
    assert ranks[0] == 200
    assert len(ranks) <= 320
    even = even_ranks(n, 0.1, 0.05, 0.1)
    assert ranks[ranks >= even[0]].tolist() == even.tolist()
    small = np.unique(np.append(ranks[ranks < even[0]], even[0]))
    share = (even[0] / 200) ** (1 / 63)
    assert np.all(small[1:] <= np.maximum(small[:-1] * share + 1, small[:-1] + 1))
    # With a tenth or more, or where fewer rows could not pass, there are even ones alone.
    for target, least in ((0.1, 0.1), (0.1, 0.3), (0.5 / n, 0.0)):
        alone = even_ranks(n, target, 0.05, least).tolist()
        assert band_ranks(n, target, 0.05, least).tolist() == alone


@pytest.mark.parametrize("n", [60, 150, 400, 3000])
@pytest.mark.parametrize(("risk", "delta", "least"), [(0.05, 0.05, 0.1), (0.2, 0.3, 0.9)])
def test_band_is_that_of_a_bisection(n, risk, delta, least):
    ranks, limits = walk_band(n, risk, delta, least)

    def counts(log_alpha):
        return critical_counts(ranks, risk, np.exp(log_alpha))

    low, high = np.log(delta / (4 * len(ranks))), np.log(delta)
    if crossing_probability(ranks, counts(high), risk) <= delta:
        low = high
    for _ in range(14):
        middle = (low + high) / 2
        if crossing_probability(ranks, counts(middle), risk) <= delta:
            low = middle
        else:
            high = middle
    assert limits.tolist() == counts(low).tolist()


def test_long_walks_are_added_up_as_exactly_as_short_ones():
    n, risk = 4_000_000, 0.1
    limit = int(binom.ppf(0.03, n, risk))
    exact = binom.cdf(limit, n, risk)
    for ranks in ([n], [n // 2, n], [n // 8, n // 4, n // 2, n]):
        limits = np.array([*[-1] * (len(ranks) - 1), limit])
        found = crossing_probability(np.array(ranks), limits, risk)
        assert found == pytest.approx(exact, rel=1e-9)


def test_limits_are_empty_when_the_rows_cannot_do():
    given = (148, 0.02, 0.05, 0.1)
    for found in (walk_band(*given), combined_limits(*given), limits_from_start(*given, 0.5)):
        assert not any(map(len, found))
    assert refuses_surely(*given, np.zeros_like)
    assert len(walk_band(149, 0.02, 0.05, 0.1)[0]) == 1
    ranks, band, sequence = combined_limits(149, 0.02, 0.05, 0.1)
    assert (ranks.tolist(), band.tolist(), sequence.tolist()) == ([149], [-1], [0])


def union_probability(ranks, band, risk, m, count):
    """P(W_m <= count, or W_k <= band_k for some k), walk by walk, over the errors so far."""
    alive, hit, rank = {0: 1.0}, {}, 0
    crossed = 0.0
    for k, limit in zip(ranks.tolist(), band.tolist(), strict=True):
        steps = [(j, binom.pmf(j, k - rank, risk)) for j in range(k - rank + 1)]
        new_alive, new_hit = {}, {}
        for source, target in ((alive, new_alive), (hit, new_hit)):
            for e, p in source.items():
                for j, q in steps:
                    target[e + j] = target.get(e + j, 0.0) + p * q
        alive, hit, rank = new_alive, new_hit, k
        for group in (alive, hit):
            for e in [e for e in group if e <= limit]:
                crossed += group.pop(e)
        if k == m:
            for e in [e for e in alive if e <= count]:
                hit[e] = hit.get(e, 0.0) + alive.pop(e)
    return crossed + sum(hit.values())


@pytest.mark.parametrize(
    ("n", "risk", "delta", "least"),
    [(40, 0.2, 0.1, 0.1), (50, 0.1, 0.2, 0.0), (30, 0.3, 0.05, 0.4)],
)
@pytest.mark.parametrize("share", [None, 0.5])
def test_sequence_and_band_together_spend_at_most_delta(n, risk, delta, least, share):
    given = (n, risk, delta, least)
    ranks, band, sequence = limits_from_start(*given, share) if share else combined_limits(*given)
    assert np.all(np.diff(sequence) >= 0)
    assert np.all(np.diff(ranks) > 0)
    tight = 0
    for m, count in zip(ranks, sequence, strict=True):
        assert union_probability(ranks, band, risk, m, count) <= delta * (1 + 1e-9)
        tight += union_probability(ranks, band, risk, m, count + 1) > delta
    assert tight >= 0.8 * len(ranks)  # the rest is held down to keep the counts rising


@pytest.mark.parametrize(
    ("n", "risk", "share", "least"),
    [
        (300, 0.09, 0.2, 0.1), (1000, 0.01, 0.2, 0.1), (1000, 0.5, 1, 0.1),
        (9000, 0.03, 0.5, 0.1), (9000, 0.03, 0.2, 1 / 45),
    ],
)  # fmt: skip
def test_counts_of_a_sequence_are_the_largest_that_a_band_beside_it_allows(n, risk, share, least):
    ranks, band, sequence = limits_from_start(n, risk, 0.1, least, share)
    for place in range(0, len(ranks), 11):
        # To pass the sequence at a rank, or the band, is to pass a band that is wider from there.
        for count, within in ((sequence[place], True), (sequence[place] + 1, False)):
            wider = np.maximum(band, np.where(np.arange(len(ranks)) < place, -1, count))
            assert (crossing_probability(ranks, wider, risk) <= 0.1) == within


@pytest.mark.parametrize(("n", "risk", "delta"), [(300, 0.05, 0.1), (1000, 0.02, 0.05)])
def test_ranks_of_a_sequence_have_all_of_delta_and_those_of_the_union_bound_a_20th(n, risk, delta):
    sequence, union = sequence_limits(n, risk, delta, 0.25), union_limits(n, risk, delta, 0.1)
    for (ranks, limits), level in ((sequence, delta), (union, delta / 20)):
        assert np.all(np.diff(limits) >= 0)  # rising, as the proof wants it
        assert np.all(binom.cdf(limits, ranks, risk) <= level)
        assert np.all(binom.cdf(limits + 1, ranks, risk) > level)
    assert sequence[0][0] >= 0.25 * n
    assert len(union[0]) <= 20
    assert 0 < crossing_probability(*union, risk) < delta


def test_the_combined_start_passes_low_risks_more_surely_than_its_neighbours():
    ranks, _, sequence = combined_limits(1000, 0.02, 0.05, 0.1)
    begun = np.flatnonzero(sequence >= 0)
    start = begun[0]
    assert 150 <= ranks[start] <= 250
    early = np.array([k for k in ranks if 150 <= k <= 250])
    counts = [max(e for e in range(-1, 9) if e < 0 or binom.cdf(e, k, 0.02) <= 0.05) for k in early]
    best = max(binom.cdf(counts, early, 0.02 / 3))
    # The sequence's own counts are at most those at the full delta.
    assert binom.cdf(sequence[start], ranks[start], 0.02 / 3) >= best - 0.05


@pytest.mark.parametrize("n", [30, 61, 200, 1000, 3000])
def test_what_is_refused_surely_passes_no_limit(n, rng):
    """Most refusals are sure, and no walk that the band or the sequence accepts is refused."""
    sure = n_refused = 0
    for target in (0.01, 0.03, 0.1, 0.3):
        for delta, least in ((0.05, 0.1), (0.2, 0.0), (0.05, 0.6)):
            ranks, band, sequence = combined_limits(n, target, delta, least)
            start = ranks[sequence >= 0][:1]
            for rate in (0.0, 0.2, 0.4, 0.6, 0.8, 1.2):
                walk = np.append(0, np.cumsum(rng.random(n) < rate * target))
                starts = np.any(walk[start] <= sequence[sequence >= 0][:1])
                accepts = starts or np.any(walk[ranks] <= band)
                refuses = refuses_surely(n, target, delta, least, lambda k, w=walk: w[k])
                assert not (accepts and refuses)
                sure, n_refused = sure + refuses, n_refused + (not accepts)
    assert sure > 0.8 * n_refused
