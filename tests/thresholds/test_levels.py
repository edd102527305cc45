"""A sequence over confidence levels that other rows name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from skselect import (
    InfeasibleTargetError,
    Outcomes,
    Risk,
    RiskCoverageCurve,
    ThresholdTuner,
    select_threshold,
)
from skselect.exceptions import ArgumentError
from skselect.thresholds import LevelSequence

LEVELS = np.array([0.95, 0.9, 0.8, 0.6])


def certified_level(levels, loss, confidence, target, delta, least):
    """Test level after level by the definition; inf where none passes."""
    found = np.inf
    for level in sorted(levels, reverse=True):
        accepted = confidence >= level
        n, errors = int(accepted.sum()), int(loss[accepted].sum())
        if n == 0 or stats.binom.cdf(errors, n, target) > delta:
            break
        found = level if n / len(loss) >= least else np.inf
    return found


@given(
    st.lists(st.tuples(st.sampled_from([*LEVELS, 0.7, 0.5]), st.booleans()), min_size=1),
    st.lists(st.sampled_from([*LEVELS, 0.85]), min_size=1, max_size=5),
    st.sampled_from([0.1, 0.3, 0.5]),
    st.sampled_from([0.1, 0.45]),  # no sum of these binomials is either: rounding decides nothing
    st.sampled_from([0.0, 0.4]),
)
def test_it_tests_one_level_after_another(rows, levels, target, delta, least):
    confidence, loss = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    rule = LevelSequence(levels)
    curve = RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence))
    threshold, n_blocks = rule.find(curve, target, delta, least)
    assert threshold == certified_level(levels, loss, confidence, target, delta, least)
    assert n_blocks == rule(curve, target, delta, least)
    assert n_blocks == len(np.unique(confidence[confidence >= threshold]))


def test_the_threshold_is_the_level_itself():
    """Between the level and the lowest row above it lie cases that these rows do not show."""
    outcomes = Outcomes(np.zeros(100), np.full(100, 0.9))
    found = select_threshold(outcomes, objective=Risk(0.05, method=LevelSequence([0.75])))
    assert found.threshold == 0.75
    assert found.certificate.is_certified
    assert found.certificate.method == "level_sequence"
    assert "the starts or levels of the sequence were fixed" in str(found.certificate.assumptions)


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


@pytest.mark.parametrize("levels", [[], [[0.9]], [0.9, np.nan], "high", None, [np.inf]], ids=str)
def test_levels_that_are_no_confidences_are_refused(levels):
    with pytest.raises(ValueError, match="levels must be"):
        LevelSequence(levels)


def test_the_word_alone_is_refused():
    outcomes = Outcomes(np.zeros(100), np.full(100, 0.9))
    with pytest.raises(ArgumentError, match="needs levels that other rows name"):
        select_threshold(outcomes, objective=Risk(0.05, method="level_sequence"))


def test_a_refusal_says_that_confidences_are_tied():
    rng = np.random.default_rng(0)
    tied = Outcomes(rng.random(400) < 0.03, rng.choice([0.9, 0.6], 400, p=[0.9, 0.1]))
    with pytest.raises(InfeasibleTargetError, match="confidences are tied, 2 different ones"):
        select_threshold(tied, objective=Risk(0.035))
    untied = Outcomes(tied.loss, rng.random(400))
    with pytest.raises(InfeasibleTargetError, match="No threshold") as refused:
        select_threshold(untied, objective=Risk(0.02))
    assert "tied" not in str(refused.value)


def test_a_tuner_sets_a_tenth_of_the_held_out_rows_apart_where_votes_are_tied(rng):
    X = rng.normal(size=(500, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=500) > 0).astype(int)
    votes = ThresholdTuner(KNeighborsClassifier(10), "risk", target=0.2, random_state=0).fit(X, y)
    assert votes.certificate_.method == "level_sequence"
    assert votes.certificate_.n == 180  # of the 200 that are held out
    asked = Risk(0.2, method="combined")
    assert ThresholdTuner(votes.estimator, asked, random_state=0).fit(X, y).certificate_.n == 200
    smooth = ThresholdTuner(GaussianNB(), "risk", target=0.2, random_state=0).fit(X, y)
    assert (smooth.certificate_.method, smooth.certificate_.n) == ("combined", 200)
