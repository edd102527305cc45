"""Rules for a target, all thresholds that they pass, and lists of classes, by their definitions.

What passes is found entry by entry, lists of classes row by row.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from scipy.stats import binom

from skselect import (
    InfeasibleTargetError,
    Outcomes,
    Risk,
    RiskCoverageCurve,
    select_threshold,
    thresholds,
)
from skselect._lib.decide import prediction_sets
from skselect.bounds import combined_limits, walk_band
from skselect.curve.curve import threshold_below
from skselect.objectives import Loss
from skselect.thresholds import LevelSequence, Shortlist, _rules
from tests.brute import examples, named, proba_cases
from tests.common import mostly_slow
from tests.thresholds.cases import curves, passed, profile


@profile
@given(curves(max_rows=60), st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from([0.05, 0.2]))
def test_a_band_passes_each_block_end_within_its_limit(case, target, delta):
    curve, (confidence, loss, _) = case
    n, min_coverage = len(confidence), 0.1
    ranks, limits = walk_band(n, target, delta, min_coverage)
    expected = []
    for b, t in enumerate(curve.thresholds):
        kept = confidence >= t
        below = ranks[ranks <= kept.sum()]
        if len(below) and loss[kept].sum() <= limits[len(below) - 1]:
            expected.append(b)
    assert passed(_rules.band_risk, curve, target, delta, min_coverage) == expected


@profile
@given(curves(max_rows=80), st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from([0.05, 0.2]))
def test_combined_passes_what_band_or_sequence_passes(case, target, delta):
    """Block by block: a sequence holds a block to the limit at the rank before it."""
    curve, (confidence, loss, _) = case
    ranks, band, sequence = combined_limits(len(confidence), target, delta, 0.1)
    limit = {int(r): (b, s) for r, b, s in zip(ranks, band, sequence, strict=True)}

    def limits_at(k):
        return limit[max(r for r in limit if r <= k)]

    start = next((r for r in limit if limit[r][1] >= 0), np.inf)
    expected, before, running = set(), 0, True
    for b, t in enumerate(curve.thresholds):
        kept = confidence >= t
        k, errors = int(kept.sum()), int(loss[kept].sum())
        if len(ranks) and k >= ranks[0] and errors <= limits_at(k)[0]:
            expected.add(b)
        if running and k >= start:
            running = errors <= limits_at(max(before, start))[1]
            expected |= {b} if running else set()
        before = k
    assert passed(_rules.combined_risk, curve, target, delta, 0.1) == sorted(expected)


@pytest.mark.parametrize(
    ("n", "least"), [(40, 0.1), (2000, 0.1), (2001, 200 / 2001), (5000, 0.04), (10**6, 0.0002)]
)
def test_a_tenth_of_the_rows_or_200_of_them_must_be_accepted(n, least):
    assert _rules.least_coverage(n) == least


def draw_surest_8_percent(rng, n=10_000):
    """Of the surest 8 % one in 200 is wrong, of the others every third."""
    u = rng.random(n)
    return Outcomes(rng.random(n) < np.where(u < 0.08, 0.005, 1 / 3), 1 - u)


def test_the_surest_8_percent_are_answered_where_they_are_800_rows(rng):
    for _ in range(3):
        found = select_threshold(draw_surest_8_percent(rng), objective=Risk(0.05))
        assert 0.075 < found.coverage < 0.1
        assert found.certificate.is_certified
        assert found.certificate.min_coverage == 0.02
    with pytest.raises(InfeasibleTargetError, match=r"at least min_coverage=0\.1 count"):
        select_threshold(draw_surest_8_percent(rng), objective=Risk(0.05, min_coverage=0.1))
    small = draw_surest_8_percent(rng, 4000)
    with pytest.raises(InfeasibleTargetError, match="REFUSED"):
        select_threshold(small, objective=Risk(0.001))


@pytest.mark.parametrize("method", ["combined", "band"])
@pytest.mark.parametrize(
    ("risk", "draws"),
    mostly_slow(
        [
            (lambda u: np.full_like(u, 0.050005), 60),
            (lambda u: np.full_like(u, 0.050005), 1000),
            (lambda u: 0.05 * (1 + 0.9 * np.sin(200 * u - 1.3)), 1000),
        ],
        unpack=True,
    ),
)
def test_small_sets_spend_no_more_than_delta(method, risk, draws):
    """All sets above the target by a hair, and small ones that cross it."""
    n, target, delta = 4000, 0.05, 0.05
    grid = np.linspace(0, 1, 100_001)
    mean = np.cumsum(risk(grid)) / np.arange(1, len(grid) + 1)
    rng, false = np.random.default_rng(5), 0
    for _ in range(draws):
        u = np.sort(rng.random(n))
        curve = RiskCoverageCurve.from_outcomes(Outcomes(rng.random(n) < risk(u), 1 - u))
        rule = Risk.methods[method].find
        passing = rule(curve, target, delta, _rules.least_coverage(n))
        false += np.any(passing & (np.interp(u, grid, mean) > target))
    assert false / draws <= delta + 3 * np.sqrt(delta * (1 - delta) / draws)


chance = binom.cdf


@profile
@given(curves(), st.sampled_from([0.1, 0.3]), st.sampled_from([0.1, 0.3]))
def test_bonferroni_passes_what_the_last_of_20_tests_before_it_allows(case, target, delta):
    curve, _ = case
    n = curve.n_rows
    least = next(
        (k for k in range(1, n + 1) if k >= 0.1 * n and (1 - target) ** k <= delta / 20), n + 1
    )
    tested = np.unique(np.ceil(np.linspace(least, n, min(20, n - least + 1)))) if least <= n else []

    def passes(b):
        below = [k for k in tested if k <= curve.n_accepted[b]]
        return below and chance(curve.accepted_loss[b], below[-1], target) <= delta / 20

    expected = [b for b in range(len(curve)) if passes(b)]
    assert passed(_rules.bonferroni_risk, curve, target, delta, 0.1) == expected


@profile
@given(curves(), st.sampled_from([0.2, 0.4]), st.sampled_from([0.1, 0.5]))
def test_sgr_returns_a_probe_that_passed(case, target, delta):
    curve, _ = case
    found = _rules.sgr_risk(curve, target, delta, 0.0)
    n_blocks = _rules.last_passed(found)
    assert np.all(found[:n_blocks])
    probes = max(int(np.ceil(np.log2(curve.n_rows))), 1)
    if n_blocks:
        k, errors = curve.n_accepted[n_blocks - 1], curve.accepted_loss[n_blocks - 1]
        assert chance(errors, k, target) <= delta / probes * (1 + 1e-9)


def test_sgr_finds_the_largest_coverage_where_the_bound_rises():
    """On a perfectly ordered sample every probe points the right way."""
    loss = np.repeat([0, 1], [700, 300])
    curve = RiskCoverageCurve.from_outcomes(Outcomes(loss, np.linspace(1, 0, 1000)))
    found = _rules.sgr_risk(curve, 0.05, 0.1, 0.0)
    passing = [k for k in range(1, 1001) if chance(max(k - 700, 0), k, 0.05) <= 0.1 / 10]
    assert _rules.last_passed(found) == max(passing)


@profile
@given(curves(weighted=True), st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.5]))
def test_simple_rules_are_their_definitions(case, target):
    """Block by block: empirical and mean rules, the cheapest threshold."""
    curve, (confidence, loss, weight) = case
    plain = RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence))
    n, sets = len(loss), [confidence >= t for t in curve.thresholds]
    for rule, extra in ((_rules.mean_risk, 1), (_rules.empirical_risk, 0)):
        passing = [
            b for b, kept in enumerate(sets)
            if loss[kept].sum() + extra <= target * (kept.sum() + extra) * (1 + 1e-9)
            and kept.mean() >= 0.2
        ]  # fmt: skip
        assert passed(rule, plain, target, 0.1, 0.2) == passing
    for rule, extra in ((_rules.mean_generalized_risk, 1), (_rules.empirical_generalized_risk, 0)):
        passing = [
            b for b, kept in enumerate(sets)
            if loss[kept].sum() + extra <= target * (n + extra) * (1 + 1e-9)
        ]  # fmt: skip
        assert passed(rule, plain, target) == passing
    if 0 < target < 1:
        rank = next((k for k in range(1, n + 1) if k / (n + 1) >= target - 1e-12), n)
        expected = [b for b, kept in enumerate(sets) if kept.sum() >= rank]
        assert passed(_rules.mean_coverage, plain, target) == expected
        expected = [b for b, kept in enumerate(sets) if kept.mean() >= target * (1 - 1e-9)]
        assert passed(_rules.empirical_coverage, plain, target) == expected
    costs = [(weight * np.where(kept, loss, target)).sum() for kept in [confidence > 2, *sets]]
    # Of equally cheap thresholds the lowest is taken.
    cheap = [b for b, cost in enumerate(costs) if cost <= min(costs) + 1e-12]
    assert _rules.cheapest(curve, target) == max(cheap)
    scaled = RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence, np.full(n, 0.1)))
    assert _rules.cheapest(scaled, target) == _rules.cheapest(plain, target)
    assert _rules.chow(target) == 1 - min(target, 1)


@profile
@given(curves())
def test_threshold_below_accepts_exactly_the_blocks(case):
    curve, (confidence, _, _) = case
    for k in range(len(curve) + 1):
        t = threshold_below(curve, k)
        assert int((confidence >= t).sum()) == (curve.n_accepted[k - 1] if k else 0)
    assert threshold_below(curve, len(curve)) == 0.0  # rows that are still less sure, too


@pytest.mark.parametrize(
    ("n", "target"), [(100, 0.07), (100, 0.14), (100, 0.55), (500, 0.9), (20, 0.5), (2, 0.99)]
)
def test_coverage_rank_is_the_smallest_that_holds_or_none(n, target):
    curve = RiskCoverageCurve.from_outcomes(Outcomes(np.zeros(n), np.arange(n)))
    holds = [k for k in range(1, n + 1) if stats.beta.sf(target, k, n + 1 - k) >= 0.9]
    assert _rules.coverage_rank(n, target, 0.1) == min(holds, default=n + 1)
    expected = [k - 1 for k in holds]
    assert passed(_rules.certified_coverage, curve, target, 0.1) == expected


@profile
@given(curves(), st.sampled_from([0.05, 0.2, 0.45]), st.sampled_from([0.05, 0.4]))
def test_generalised_risk_accepts_what_is_surer_than_the_first_error_too_many(case, target, delta):
    curve, (confidence, loss, _) = case
    n = len(confidence)
    allowed = [e for e in range(n + 1) if stats.binom.cdf(e, n, target) <= delta]
    most = max(allowed, default=-1)
    expected = [b for b, t in enumerate(curve.thresholds) if loss[confidence >= t].sum() <= most]
    assert passed(_rules.certified_generalized_risk, curve, target, delta) == expected


LABELS = {
    "int": np.array([3, -1, 7, 0, 2]),
    "float": np.array([0.5, 2.0, -1.0, 4.0, 9.0]),
    "str": np.array(["b", "aa", "c", "", "é"]),
}
cases = proba_cases(weights=("none",), classes=(3, 5))


def list_by_definition(row, classes, least):
    """Return the labels of one row: the most probable again and again; ties in order."""
    left, found = list(range(len(row))), []
    while left:
        best = max(left, key=lambda k: (row[k], -k))
        left.remove(best)
        if row[best] >= least:
            found.append(classes[best].item())
    return tuple(found)


@examples(150)
@given(cases, st.sampled_from(list(LABELS)), st.sampled_from([0.0, 0.1, 0.25, 0.4, 1.0, None]))
def test_lists_hold_the_probable_classes_in_order(case, kind, least):
    classes = LABELS[kind][: case.y_proba.shape[1]]
    least = float(case.y_proba[0, 0]) if least is None else least  # a tie with the limit
    found = prediction_sets(case.y_proba, classes, least)
    assert found == [list_by_definition(row, classes, least) for row in case.y_proba]
    for narrow in (case.y_proba.astype(np.float32), np.asfortranarray(case.y_proba)):
        assert prediction_sets(narrow, classes, least) == [
            list_by_definition(row.astype(float), classes, least) for row in narrow
        ]


def least_by_definition(proba, truth, level):
    """Return the largest least probability with which enough truths are on their lists."""
    n = len(truth)
    needed = math.ceil((n + 1) * Fraction(str(level)))
    of_truth = [proba[i, k] if k >= 0 else -math.inf for i, k in enumerate(truth)]
    return max(p for p in of_truth if sum(q >= p for q in of_truth) >= needed)


@examples(150)
@given(cases, st.sampled_from([0.5, 0.6, 0.8]), st.integers(0, 3), st.integers(0, 2**20))
def test_the_least_probability_is_that_of_enough_truths(case, level, n_unknown, seed):
    n = len(case.y_true)
    if n < level / (1 - level) + 1e-9:
        return
    truth = case.y_true.copy()
    truth[:n_unknown] = -1
    least = _rules.shortlist_cutoff(case.y_proba, truth, level)
    assert least == least_by_definition(case.y_proba, truth, level)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(n), rng.permutation(case.y_proba.shape[1])
    place = np.append(np.argsort(columns), -1)  # -1 stays -1
    moved = case.y_proba[rows][:, columns], place[truth[rows]]
    assert _rules.shortlist_cutoff(*moved, level) == least


def test_rows_are_set_apart_by_chance_and_by_a_seed_always_the_same():
    apart = Shortlist(0.9, share=0.3, random_state=3).set_apart(1000)
    assert apart.sum() == 300
    same = Shortlist(0.9, share=0.3, random_state=3).set_apart(1000)
    np.testing.assert_array_equal(apart, same)
    assert not np.array_equal(apart, Shortlist(0.9, share=0.3).set_apart(1000))
    assert 0 < apart[:500].sum() - 100 < 100
    assert not Shortlist(0.9).set_apart(50).any()
    assert Shortlist(0.9, share=0.99).set_apart(20).sum() == 19


# Several readings --------------------------------------------------------------------------


@profile
@given(curves(max_rows=30), st.data(), st.sampled_from([0.3, 0.6]))
def test_what_passes_all_readings_passes_each_at_the_same_threshold(case, data, target):
    """Any threshold: it passes where the rows that each reading accepts there pass."""
    curve, (confidence, loss, _) = case
    n, levels = len(loss), [0.9, 0.4]
    drawn = [data.draw(st.lists(st.booleans(), min_size=n, max_size=n)) for _ in range(2)]
    readings = [np.ones(n, dtype=bool), *(np.array(rows) for rows in drawn)]
    parts = [(confidence[rows], loss[rows]) for rows in readings if rows.any()]
    some = [RiskCoverageCurve.from_outcomes(Outcomes(y, c)) for c, y in parts]
    named = [data.draw(st.lists(st.sampled_from(levels), unique=True)) for _ in some]
    tests = [
        _rules.Passing(_rules.empirical_risk(one, target, 0.1, 0.0), np.array(names))
        for one, names in zip(some, named, strict=True)
    ]
    found = _rules.pass_all([*zip(some, tests, strict=True)])
    expected = [
        b for b, t in enumerate(curve.thresholds)
        if all(np.any(c >= t) and np.mean(y[c >= t]) <= target + 1e-9 for c, y in parts)
    ]  # fmt: skip
    assert np.flatnonzero(found.entries).tolist() == expected
    assert set(found.levels) == set.intersection(*map(set, named))
    assert found.any() == (len(expected) + len(found.levels) > 0)


# What is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (thresholds.FixedSequence, [1.2, [], [0.1, -0.1], "early", None, [[0.1]], np.nan],
         "starts must be"),
        (lambda most: Risk(0.1, largest_weight=most).check(Loss()),
         [0, -1, np.inf, np.nan, "heavy", True],
         r"largest_weight must be a number in \(0, inf\)"),
        (thresholds.Combined, [1.2], "start"),
        (lambda share: thresholds.Combined(0.2, share), [0.1], "band_share"),
        (lambda sparse: thresholds.Combined(0.2, sparse=sparse), ["no"], "sparse"),
        (LevelSequence, [[], [[0.9]], [0.9, np.nan], "high", None, [np.inf]], "levels must be"),
        (lambda share: LevelSequence([0.9], band_share=share), [1], "band_share must be"),
        (lambda word: select_threshold(Outcomes([0], [0.9]), objective=Risk(0.05, method=word)),
         ["level_sequence"], "needs levels that other rows name"),
        (Shortlist, [0.0, "95 %"], r"level must be a number in \(0, 1\)"),
        (lambda share: Shortlist(0.9, share=share), [1.0, -0.1],
         r"share must be a number in \[0, 1\)"),
    ],
)  # fmt: skip
def test_bad_options_are_named(kind, values, message):
    for bad in values:
        with named(bad), pytest.raises(ValueError, match=message):
            kind(bad)
