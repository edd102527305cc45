"""Sequences by their definitions, rank by rank and level by level, and how rows choose them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from scipy.stats import binom
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from skselect import (
    InfeasibleTargetError,
    Outcomes,
    PrecomputedClassifier,
    Predictions,
    Risk,
    RiskCoverageCurve,
    ThresholdTuner,
    select_threshold,
    thresholds,
)
from skselect.bounds import combined_limits
from skselect.bounds._band import limits_from_start
from skselect.thresholds import LevelSequence
from skselect.thresholds._rules import (
    Passing,
    band_risk,
    combined_risk,
    last_passed,
)
from skselect.thresholds._sequences import _ends_of_blocks, choose_combined, default_combined
from tests.thresholds.cases import curves, passed, profile


@profile
@given(
    curves(max_rows=80), st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from([0.05, 0.2]),
    st.sampled_from([0.0, 0.2, 0.6]), st.sampled_from([0.2, 0.5]),
)  # fmt: skip
def test_a_sparse_sequence_tests_only_where_its_limit_rises(case, target, delta, start, share):
    """Row by row: a rank is tested with all errors of its block, and passes at its end."""
    curve, (confidence, loss, _) = case
    n = len(confidence)
    ranks, band, sequence = limits_from_start(n, target, delta, 0.1, share)
    sizes, running, before = set(), True, -1
    falling = np.sort(confidence)[::-1]
    for k, b, c in zip(ranks.tolist(), band, sequence, strict=True):
        block = confidence >= falling[k - 1]
        rises, before = c > before, c
        if rises and k >= start * n:
            running = running and loss[block].sum() <= c
            if running and block.sum() == k:
                sizes.add(k)
        following = ranks[ranks > k].min(initial=n + 1)
        for t in curve.thresholds:  # the band holds up to the next rank
            kept = confidence >= t
            if k <= kept.sum() < following and loss[kept].sum() <= b:
                sizes.add(int(kept.sum()))
    rule = thresholds.Combined(start, share, sparse=True)
    assert {int(curve.n_accepted[b]) for b in passed(rule, curve, target, delta, 0.1)} == sizes


@pytest.mark.parametrize("sparse", [False, True])
def test_the_rows_that_are_not_certified_on_choose_a_better_start(rng, sparse):
    """The surest quarter errs as often as allowed, the others hardly ever."""

    def draw(n):
        u = rng.random(n)
        wrong = rng.random(n) < np.where(u < 0.25, 0.045, np.where(u < 0.7, 0.01, 0.4))
        confidence = 1 - u if sparse else 1 - np.floor(20 * u) / 20
        return RiskCoverageCurve.from_outcomes(Outcomes(wrong, confidence))

    suited = thresholds.best_combined(draw(3000), 300, 0.05, 0.1, 0.1)
    assert suited.sparse == sparse
    assert suited.start >= 0.25
    own, default = [], []
    for _ in range(40):
        curve = draw(300)
        own.append(curve.accepted_by(last_passed(suited(curve, 0.05, 0.1, 0.1)))[0])
        default.append(curve.accepted_by(last_passed(combined_risk(curve, 0.05, 0.1, 0.1)))[0])
    assert np.mean(own) > np.mean(default) + 30
    assert thresholds.best_combined(draw(3000), 20, 0.05, 0.1, 0.1) is None


def test_the_default_is_kept_where_a_sparse_sequence_accepts_less(rng):
    """A sharp risk and few expected errors: 300 rows at 2 %."""

    def draw(n):
        u = rng.random(n)
        return RiskCoverageCurve.from_outcomes(Outcomes(rng.random(n) < 0.5 * u**6, 1 - u))

    suited = thresholds.best_combined(draw(100_000), 300, 0.02, 0.05, 0.1)
    assert suited == default_combined(300, 0.02, 0.05, 0.1)
    sparse, own, spread = thresholds.Combined(0.2, sparse=True), [], []
    for _ in range(200):
        curve = draw(300)
        passing = [rule(curve, 0.02, 0.05, 0.1) for rule in (suited, sparse, combined_risk)]
        accepted = [last_passed(one) for one in passing]
        assert accepted[0] == accepted[2]
        own.append(accepted[0] / 300)
        spread.append(accepted[1] / 300)
    assert np.mean(own) > np.mean(spread) + 0.05


def test_a_choice_among_dense_rules_names_no_sparse_one(rng):
    u = rng.random(3000)
    wrong = rng.random(3000) < np.where(u < 0.25, 0.045, np.where(u < 0.7, 0.01, 0.4))
    curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, 1 - u))
    given = 300, 0.05, 0.1, 0.1
    dense, any_kind = choose_combined(curve, *given), thresholds.best_combined(curve, *given)
    assert (dense.sparse, any_kind.sparse) == (False, True)
    assert dense.start > default_combined(*given).start
    assert choose_combined(curve, 20, *given[1:]) is None


@given(st.integers(20, 3000), st.sampled_from([0.02, 0.05, 0.2]), st.sampled_from([0.0, 0.1, 0.5]))
def test_the_default_as_an_object_begins_where_the_default_begins(n, target, min_coverage):
    ranks, _, sequence = combined_limits(n, target, 0.05, min_coverage)
    rule = default_combined(n, target, 0.05, min_coverage)
    tested = rule.find_tested(ranks, sequence, n)
    np.testing.assert_array_equal(tested, sequence >= 0)


@pytest.mark.parametrize(
    ("shares", "risks", "n"),
    [([0.9, 0.1], [0.03, 0.3], 400), ([0.1, 0.4, 0.3, 0.2], [0.12, 0.01, 0.03, 0.3], 600)],
)
def test_blocks_and_the_band_alone_are_compared_where_confidences_are_tied(rng, shares, risks, n):
    def draw(n):
        level = rng.choice(len(shares), n, p=shares)
        return RiskCoverageCurve.from_outcomes(
            Outcomes(rng.random(n) < np.array(risks)[level], 1 - level / 10)
        )

    accepted = {"chosen": [], "band": [], "combined": []}
    for _ in range(20):
        chosen = thresholds.best_combined(draw(1000), n, 0.05, 0.05, 0.1)
        for _ in range(20):
            curve = draw(n)
            for name, rule in ("chosen", chosen), ("band", band_risk), ("combined", combined_risk):
                n_blocks = last_passed(rule(curve, 0.05, 0.05, 0.1))
                accepted[name].append(curve.accepted_by(n_blocks)[0] / n)
    chosen, band, combined = map(np.mean, accepted.values())
    assert chosen > 1.5 * combined
    assert chosen > 0.8 * band
    alone = thresholds.Combined(0.2, 1.0)
    for _ in range(20):  # what is left of delta may pass more, never less
        curve = draw(n)
        assert np.all(alone(curve, 0.05, 0.05, 0.1) >= band_risk(curve, 0.05, 0.05, 0.1))


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=12), st.integers(1, 200), st.integers(1, 200)
)
def test_a_rank_is_imagined_with_its_whole_block(sizes, n, k):
    level = np.repeat(np.arange(len(sizes)), sizes)
    curve = RiskCoverageCurve.from_outcomes(Outcomes(np.zeros(len(level)), -level))
    rank, ends = min(k, n), np.cumsum(sizes)
    # n copies of these rows are as many rows as len(level) copies of n rows.
    expected = next(int(end) for end in ends if end * n >= rank * len(level))
    found = _ends_of_blocks(curve, np.array([rank]), n)
    assert found.tolist() == [math.ceil(Fraction(expected * n, len(level)))]


@profile
@given(curves(), st.sampled_from([0.1, 0.3]), st.sampled_from([0.1, 0.3]),
       st.sampled_from([(0.25,), (0.0,), (0.1, 0.6), (1.0, 1.0)]))  # fmt: skip
def test_fixed_sequence_stops_at_the_first_failure(case, target, delta, starts):
    curve, _ = case
    n, ends = curve.n_rows, curve.n_accepted

    def passed_from(start):
        level = delta / len(starts)
        share = max(start, 0.1)
        first = next(
            (k for k in range(1, n + 1) if k / n >= share and (1 - target) ** k <= level), None
        )
        found, before = set(), 0
        if first is None:
            return found
        for b in range(len(curve)):
            if ends[b] >= first:
                rank = max(before, first)
                allowed = max(
                    e for e in range(-1, n) if e < 0 or binom.cdf(e, rank, target) <= level
                )
                if curve.accepted_loss[b] > allowed:
                    break
                found.add(b)
            before = ends[b]
        return found

    rule = thresholds.FixedSequence(starts)
    expected = sorted(set().union(*map(passed_from, starts)))
    assert passed(rule, curve, target, delta, 0.1) == expected


def test_several_starts_share_delta():
    # 20 right rows certify 0.14 at delta = 0.05, but not at half of it.
    curve = RiskCoverageCurve.from_outcomes(Outcomes(np.zeros(20), np.arange(20) / 20))
    assert passed(thresholds.FixedSequence((1.0,)), curve, 0.14, 0.05, 0.1) == [19]
    assert passed(thresholds.FixedSequence((1.0, 1.0)), curve, 0.14, 0.05, 0.1) == []


def test_one_start_is_a_list_of_one():
    assert thresholds.FixedSequence(0.4) == thresholds.FixedSequence(np.array([0.4]))
    assert repr(thresholds.FixedSequence([0.1, 1])) == "FixedSequence(starts=(0.1, 1.0))"


def test_a_start_from_other_rows_is_where_the_target_is_kept_most_surely(rng):
    u = rng.random(400)
    outcomes = Outcomes(rng.random(400) < np.where(u < 0.1, 0.3, 0.02), 1 - u)
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    start = thresholds.best_start(curve, 0.05)
    chances = binom.cdf(curve.accepted_loss, curve.n_accepted, 0.05)
    assert start in curve.coverage[chances == chances[curve.coverage >= 0.05].min()]
    assert start > 0.3  # past the bad top
    assert thresholds.FixedSequence((start,))(curve, 0.08, 0.1, 0.1).any()
    assert not thresholds.FixedSequence((0.1,))(curve, 0.08, 0.1, 0.1).any()


# A sequence over the confidence levels that other rows name ---------------------------------------


LEVELS = np.array([0.95, 0.9, 0.8, 0.6])


def certified_levels(levels, loss, confidence, target, delta, least):
    """Test level after level by the definition."""
    found = []
    for level in sorted(set(levels), reverse=True):
        accepted = confidence >= level
        n, errors = int(accepted.sum()), int(loss[accepted].sum())
        if n == 0 or stats.binom.cdf(errors, n, target) > delta:
            break
        found += [level] if n / len(loss) >= least else []
    return found


@given(
    st.lists(st.tuples(st.sampled_from([*LEVELS, 0.7, 0.5]), st.booleans()), min_size=1),
    st.lists(st.sampled_from([*LEVELS, 0.85]), min_size=1, max_size=5),
    st.sampled_from([0.1, 0.3, 0.5]),
    st.sampled_from([0.1, 0.45]),  # no sum of these binomials is either: rounding decides nothing
    st.sampled_from([0.0, 0.4]),
    st.sampled_from([0.0, 0.25]),
)
def test_it_tests_one_level_after_another(rows, levels, target, delta, least, share):
    confidence, loss = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    rule = LevelSequence(levels, band_share=share)
    curve = RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence))
    by_level = rule.find_passed(curve, target, delta, least)
    expected = certified_levels(levels, loss, confidence, target, (1 - share) * delta, least)
    assert by_level.tolist() == expected
    by_band = passed(band_risk, curve, target, share * delta, least) if share else []
    assert passed(rule, curve, target, delta, least) == by_band
    found = Risk(target).choose(curve, Passing(rule(curve, target, delta, least), by_level))
    n_by_level = int(np.sum(curve.thresholds >= min(expected, default=np.inf)))
    n_by_band = max(by_band, default=-1) + 1
    assert found.n_blocks == max(n_by_level, n_by_band)
    assert found.threshold == (
        None if n_by_band > n_by_level else min(expected, default=np.inf)
    )  # fmt: skip


def test_the_threshold_is_the_level_itself():
    """Between the level and the lowest row above it lie cases that these rows do not show."""
    outcomes = Outcomes(np.zeros(100), np.full(100, 0.9))
    found = select_threshold(outcomes, objective=Risk(0.05, method=LevelSequence([0.75])))
    assert found.threshold == 0.75
    assert found.certificate.is_certified
    assert found.certificate.method == "level_sequence"
    assert "the starts or levels of the sequence were fixed" in str(found.certificate.assumptions)


def test_a_band_answers_where_the_surest_level_is_the_worst():
    confidence, wrong = np.repeat([0.9, 0.7, 0.5], [100, 700, 200]), np.zeros(1000)
    wrong[:15] = wrong[800:900] = 1
    rows, levels = Outcomes(wrong, confidence), [0.9, 0.7, 0.5]
    beside = Risk(0.05, method=LevelSequence(levels, band_share=0.1))
    found = select_threshold(rows, objective=beside, assume="independent")
    assert (found.threshold, found.coverage) == (0.6, 0.8)
    assert found.certificate.is_certified
    with pytest.raises(InfeasibleTargetError):
        select_threshold(rows, objective=Risk(0.05, method=LevelSequence(levels)))
    # The tests get the rest: .95**60 is .046, above .9 times .05.
    curve = RiskCoverageCurve.from_outcomes(Outcomes(np.zeros(60), np.full(60, 0.9)))
    given = curve, 0.05, 0.05, 0.0
    assert [len(LevelSequence([0.9], share).find_passed(*given)) for share in (0.0, 0.1)] == [1, 0]


def test_other_rows_name_levels_that_enough_rows_will_reach():
    confidence = np.repeat(LEVELS, [5, 5, 30, 60])
    curve = RiskCoverageCurve.from_outcomes(Outcomes(np.zeros(100), confidence))
    # 59 rows certify 5 % without an error, and twice as many are expected at .8 of 300 rows
    # (120), but not at .9 (30).
    assert LevelSequence.of(curve, 300, 0.05, 0.05).levels == pytest.approx((0.7, 0.5))
    named = LevelSequence.of(curve, 100_000, 0.05, 0.05).levels
    assert named == pytest.approx((0.925, 0.85, 0.7, 0.5))
    assert LevelSequence.of(curve, 10, 0.05, 0.05).levels == pytest.approx((0.5,))
    one = RiskCoverageCurve.from_outcomes(Outcomes(np.zeros(9), np.full(9, -0.2)))
    assert -0.201 < LevelSequence.of(one, 300, 0.05, 0.05).levels[0] < -0.2


def test_a_refusal_says_that_ties_are_the_reason():
    rng = np.random.default_rng(0)
    tied = Outcomes(rng.random(400) < 0.02, rng.choice([0.9, 0.6], 400, p=[0.9, 0.1]))
    proba = np.column_stack([1 - tied.confidence, tied.confidence])
    classes = Predictions.from_proba(1 - tied.loss.astype(int), proba)
    for rows, objective in ((tied, Risk(0.05)), (classes, Risk(0.05, given_prediction=1))):
        with pytest.raises(InfeasibleTargetError, match="Ties are the reason: these rows"):
            select_threshold(rows, objective=objective)
    other_reasons = [
        Outcomes(rng.random(400) < 0.3, tied.confidence),  # no level passes
        Outcomes(rng.random(400) < 0.2, rng.random(400)),
        Outcomes(np.zeros(40), rng.random(40)),  # as few confidences, for there are few rows
    ]
    for outcomes in other_reasons:
        with pytest.raises(InfeasibleTargetError, match="REFUSED") as refused:
            select_threshold(outcomes, objective=Risk(0.05))
        assert "Ties" not in str(refused.value)


def votes(n, rng):
    """Rows for k neighbours, of three sites; the third is rare."""
    X = np.column_stack([rng.normal(size=(n, 2)), rng.choice(3, n, p=[0.55, 0.44, 0.01])])
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


def fit_votes(objective, X, y, **options):
    """Tune ten neighbours."""
    return ThresholdTuner(KNeighborsClassifier(10), objective, random_state=0, **options).fit(X, y)


def test_a_tuner_sets_a_tenth_of_the_held_out_rows_apart_where_votes_are_tied(rng):
    X, y = votes(500, rng)
    tied = fit_votes(Risk(0.2), X, y).certificate_
    assert (tied.method, tied.n) == ("level_sequence", 180)  # of the 200 that are held out
    asked = fit_votes(Risk(0.2, method="combined"), X, y).certificate_
    assert (asked.method, asked.n) == ("combined", 200)
    smooth = ThresholdTuner(GaussianNB(), Risk(0.2), random_state=0).fit(X, y).certificate_
    assert (smooth.method, smooth.n) == ("combined", 200)
    # A few rows have few different confidences, and are not tied for that.
    few = ThresholdTuner(GaussianNB(), Risk(0.4), random_state=0).fit(X[:70], y[:70]).certificate_
    assert (few.method, few.n) == ("combined", 28)


@pytest.mark.filterwarnings("ignore:2. 1 of 3 subgroups has too few rows")
def test_a_tenth_of_each_subgroup_names_its_levels(rng):
    X, y = votes(600, rng)
    found = fit_votes(Risk(0.3), X, y, group_by=2, on_infeasible="abstain").certificates_
    by_ranks = Risk(0.3, method="combined")
    ranks = fit_votes(by_ranks, X, y, group_by=2, on_infeasible="abstain").certificates_
    for site in (0, 1):
        assert found[site].method == "level_sequence"
        assert found[site].n == ranks[site].n - -(-ranks[site].n // 10)
        assert found[site].is_certified
    assert ranks[2].n < 10  # too few: the rule and all rows stay
    assert (found[2].method, found[2].n) == ("combined", ranks[2].n)
    by_site = {0: by_ranks, 1: Risk(0.3), 2: by_ranks}
    mixed = fit_votes(by_site, X, y, group_by=2, on_infeasible="abstain").certificates_
    assert (mixed[0].method, mixed[0].n) == ("combined", ranks[0].n)
    assert (mixed[1].threshold, mixed[1].n) == (found[1].threshold, found[1].n)


@pytest.mark.parametrize("about", ["given_prediction", "given_class"])
def test_a_tenth_of_a_class_names_the_levels_of_a_guarantee_about_it(about, rng):
    X, y = votes(600, rng)
    found, ranks = (
        fit_votes(Risk(0.3, method=method, **{about: 1}), X, y).certificate_
        for method in ("auto", "combined")
    )
    assert (found.method, found.n) == ("level_sequence", ranks.n - -(-ranks.n // 10))
    assert found.is_certified


def test_a_frozen_classifier_needs_rows_that_do_not_certify(rng):
    X, y = votes(600, rng)
    frozen = FrozenEstimator(KNeighborsClassifier(10).fit(X[:300], y[:300]))
    objective, certifying = Risk(0.3), (slice(None, 300), slice(300, None))
    known = (
        ThresholdTuner(frozen, objective, cv=[certifying], random_state=0).fit(X, y).certificate_
    )
    assert (known.method, known.n) == ("level_sequence", 270)
    alone = ThresholdTuner(frozen, objective).fit(X[300:], y[300:]).certificate_
    assert (alone.method, alone.n) == ("combined", 300)
    proba = frozen.predict_proba(X)
    table = PrecomputedClassifier([0, 1])
    same = (
        ThresholdTuner(table, objective, cv=[certifying], random_state=0).fit(proba, y).certificate_
    )
    assert (same.threshold, same.n) == (known.threshold, known.n)
