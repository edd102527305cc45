"""The least target of three digits, against a look at every one of them."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from skselect import Outcomes, Risk, RiskCoverageCurve, select_threshold, thresholds
from skselect.bounds import walk_band
from skselect.datasets import RISKS
from skselect.thresholds import _rules
from skselect.thresholds._least import (
    find_least_target,
    least_band_target,
    place_of,
    target_at,
)
from tests.common import mostly_slow

RARE = (np.random.default_rng(0).random(500) < 0.1).tolist()


@pytest.mark.parametrize(
    "rule",
    [
        _rules.band_risk,
        _rules.combined_risk,
        _rules.bonferroni_risk,
        thresholds.Combined(0.3, 0.5, sparse=True),
    ],
)
@pytest.mark.parametrize(
    "loss", [[0], [1], [0, 1], [1, 0], [0, 0, 0], [1, 1, 1], [1] * 8 + [0], [1, 0] + [1] * 12, RARE]
)
def test_least_target_of_a_rule_is_met_and_the_next_smaller_one_is_not(rule, loss):
    """A risk of at most 1 is no guarantee, but the largest one that can be written down."""
    curve = RiskCoverageCurve.from_outcomes(Outcomes(loss, -np.arange(len(loss))))
    least, coverage = find_least_target(rule, curve, 0.05, 0.1)
    assert 0 < least <= 1
    if least < 1:
        passing = rule(curve, least, 0.05, 0.1)
        assert coverage == _rules.last_passed(passing) / len(loss) > 0
    else:
        assert coverage == 1
    assert not rule(curve, target_at(place_of(least) - 1), 0.05, 0.1).any()
    if all(loss):
        assert least == 1


@given(st.integers(100, 999), st.integers(1, 11))
def test_targets_of_three_digits_are_the_numbers_that_people_write(digits, decade):
    target = float(f"{digits}e-{decade + 2}")
    place = place_of(target)
    assert target_at(place) == target
    assert place_of(target * (1 + 1e-9)) == place + 1
    assert place_of(target * (1 - 1e-9)) == place
    assert (place_of(1.0), target_at(place_of(1.0))) == (10_800, 1.0)


def draw_table(rng):
    """Rows of a known profile, tied or not."""
    n = int(rng.choice([60, 150, 300, 500, 1000]))
    u = rng.random(n)
    risk, _ = RISKS[rng.choice(list(RISKS))]
    wrong = rng.random(n) < risk(u)
    n_levels = rng.choice([0, 8, 40])
    if n_levels:
        u = np.floor(n_levels * u) / n_levels
    return RiskCoverageCurve.from_outcomes(Outcomes(wrong, 1 - u))


@pytest.mark.parametrize("rule", [_rules.combined_risk, _rules.band_risk])
@pytest.mark.parametrize("n_tables", mostly_slow([4, 120]))
def test_no_smaller_target_of_three_digits_is_met(rule, n_tables):
    """Every target is tested in full, from one that is smaller by an eighth on."""
    rng = np.random.default_rng(n_tables)
    for _ in range(n_tables):
        curve = draw_table(rng)
        least, _ = find_least_target(rule, curve, 0.05, 0.1)
        assert least == 1 or rule(curve, least, 0.05, 0.1).any()
        for place in range(place_of(0.88 * least), place_of(least)):
            assert not rule(curve, target_at(place), 0.05, 0.1).any()


def test_a_target_is_named_although_a_larger_one_is_refused():
    """Where the sequence begins moves with the target: eight levels, 300 rows."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = 300
        u = np.floor(8 * rng.random(n)) / 8
        curve = RiskCoverageCurve.from_outcomes(Outcomes(rng.random(n) < 0.02 + 0.2 * u, 1 - u))
        least, coverage = find_least_target(_rules.combined_risk, curve, 0.05, 0.1)
        larger = [target_at(place_of(least) + step) for step in (1, 4, 9, 16)]
        refused = [t for t in larger if not _rules.combined_risk(curve, t, 0.05, 0.1).any()]
        if refused:
            break
    outcomes = curve.to_outcomes()
    rows = Outcomes(
        np.repeat(outcomes.loss, outcomes.sample_weight.astype(int)),
        np.repeat(outcomes.confidence, outcomes.sample_weight.astype(int)),
    )
    with pytest.raises(ValueError, match="would have been met") as caught:
        select_threshold(rows, objective=Risk(refused[0]), assume="independent")
    assert caught.value.least_target == least < refused[0]
    found = select_threshold(rows, objective=Risk(least), assume="independent")
    assert found.coverage == coverage == caught.value.least_target_coverage


def test_least_band_target_of_a_set_is_met_and_a_smaller_one_is_not():
    least = least_band_target(300, 12, 500, 0.05, 0.1)
    for target, meets in ((least, True), (target_at(place_of(least) - 1), False)):
        ranks, limits = walk_band(500, target, 0.05, 0.1)
        assert (limits[ranks <= 300][-1] >= 12) == meets
    assert least_band_target(20, 20, 20, 0.05, 0.1) == 1  # nothing but errors
