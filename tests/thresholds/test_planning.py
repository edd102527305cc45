"""Rows to collect, and the bound for all thresholds at once."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from skselect import Outcomes, Risk, RiskCoverageCurve
from skselect.bounds import walk_band
from skselect.bounds._band import union_limits
from skselect.bounds._pointwise import clopper_pearson_upper
from skselect.curve.curve import threshold_below
from skselect.thresholds import pool_size, rows_needed, simultaneous_band
from skselect.thresholds._planning import BAND_SHARES
from skselect.thresholds._rules import combined_risk, last_passed
from tests.refusals import check_refused, refusals
from tests.thresholds.cases import curves, profile


@pytest.mark.parametrize("target", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("errors", [0, 1, 5])
def test_fixed_thresholds_need_the_least_number_with_a_small_bound(target, errors):
    n = rows_needed(target, 0.1, expected_errors=errors, fixed=True)
    assert clopper_pearson_upper(errors, n, 0.1) <= target
    assert clopper_pearson_upper(errors, n - 1, 0.1) > target


def test_coverage_and_a_choice_of_thresholds_cost_rows():
    fixed = rows_needed(0.05, expected_errors=10, fixed=True)
    assert rows_needed(0.05, expected_errors=10, fixed=True, coverage=0.5) == 2 * fixed - 1
    assert rows_needed(0.05, coverage=0.05) >= 20 * rows_needed(0.05, fixed=True)
    methods = ("fixed_sequence", "combined", "band", "bonferroni")
    costs = [rows_needed(Risk(0.05, method=name), expected_errors=10) for name in methods]
    costs.insert(0, fixed)
    assert costs == sorted(costs)
    assert costs[-1] > costs[0]


def test_rows_without_any_error_can_be_planned():
    assert rows_needed(0.3, expected_risk=0) == 9
    objective = Risk(0.01, method="bonferroni")
    options = {"expected_risk": 0, "coverage": 0.2, "power": 0.99, "fixed": True}
    assert rows_needed(objective, **options) == 1624


def test_planned_rows_are_enough_for_a_chosen_threshold(rng):
    n = rows_needed(0.05, 0.1, expected_risk=0.03, power=0.8)
    answered = []
    for _ in range(200):
        curve = RiskCoverageCurve.from_outcomes(Outcomes(rng.random(n) < 0.03, rng.random(n)))
        found = last_passed(combined_risk(curve, 0.05, 0.1, 0.1))
        answered.append(found > 0 and curve.coverage[found - 1] > 0.95)
    # The band may accept what the sequence did not reach, so that it is a little more.
    assert 0.9 > np.mean(answered) > 0.8 - 3 * np.sqrt(0.8 * 0.2 / 200)


def test_a_plan_counts_that_chance_says_how_many_rows_can_be_accepted(rng):
    """All beyond a coverage of .7 are errors."""
    n, reached = rows_needed(0.05, expected_risk=0.01, coverage=0.7, power=0.8), []
    for _ in range(500):
        rank = rng.random(n)
        wrong = (rng.random(n) < 0.01) | (rank > 0.7)
        curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, 1 - rank))
        found = last_passed(combined_risk(curve, 0.05, 0.05, 0.1))
        reached.append(found > 0 and 1 - threshold_below(curve, found) >= 0.7)
    assert np.mean(reached) >= 0.8 - 3 * np.sqrt(0.8 * 0.2 / 500)


@pytest.mark.parametrize("coverage", [0.7, 1.0])
def test_a_fixed_threshold_has_a_random_number_of_rows_above_it(coverage):
    n = rows_needed(0.05, expected_risk=0.01, coverage=coverage, fixed=True)
    above = np.arange(n + 1)
    allowed = [
        sum(clopper_pearson_upper(e, k, 0.05) <= 0.05 for e in range(30) if e < k) - 1
        for k in above
    ]
    power = np.sum(stats.binom.pmf(above, n, coverage) * stats.binom.cdf(allowed, above, 0.01))
    assert 0.79 <= power < 0.88


@refusals({
    "target": [{"risk": 1.0}, {"risk": 0.98}],
    "delta": [{"risk": 0.1, "delta": 0.95}, {"risk": Risk(0.1), "delta": 0.1}],
    "expected_errors": [{"risk": 0.1, "expected_errors": bad} for bad in (-1, 10**6)],
    "expected_risk": [{"risk": 0.1, "expected_risk": bad} for bad in (0.1, 0.0999)],
    "power": [{"risk": 0.1, "power": 0}], "method": [{"risk": Risk(0.1, method="sgr")}],
    "coverage": [{"risk": 0.1, "coverage": 0},
                 {"risk": Risk(0.1, method="fixed_sequence"), "coverage": 0.2}],
})  # fmt: skip
def test_bad_plans_are_named(argument, call):
    check_refused(argument, lambda: rows_needed(**call))


@profile
@given(curves(max_rows=80), st.sampled_from([0.2, 0.5]))
def test_the_band_is_the_smallest_target_whose_share_of_delta_certifies(case, delta):
    assert len(BAND_SHARES) >= 30
    assert sum(BAND_SHARES.values()) == pytest.approx(1)
    curve, _ = case
    found = simultaneous_band(curve, delta, 0.0)
    for b in range(len(curve)):
        meets = [1.0]
        for target, share in BAND_SHARES.items():
            ranks, limits = walk_band(curve.n_rows, target, delta * share, 0.0)
            below = [
                limit for k, limit in zip(ranks, limits, strict=True) if k <= curve.n_accepted[b]
            ]
            if below and curve.accepted_loss[b] <= below[-1]:
                meets.append(target)
        assert found[b] == min(meets)


def test_all_bounds_hold_together(rng):
    """Risk that rises through the targets, a little above each of them."""
    steps = 1.01 * np.array(sorted(BAND_SHARES)[5::3][:6])
    draws, delta, failed = 300, 0.1, 0
    for _ in range(draws):
        u = rng.random(3000)
        truth = steps[(6 * u).astype(int)]  # the risk up to u is at most this, and near it
        outcomes = Outcomes(rng.random(3000) < truth, 1 - u)
        curve = RiskCoverageCurve.from_outcomes(outcomes)
        rank = 1 - curve.thresholds
        inside = (6 * rank).astype(int)
        mass = np.append(0.0, np.cumsum(steps))[inside] / 6 + steps[inside] * (rank - inside / 6)
        failed += np.any(mass / rank > simultaneous_band(curve, delta))
    assert failed / draws <= delta + 3 * np.sqrt(delta * (1 - delta) / draws)


def test_weighted_rows_are_refused():
    curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 1], [0.9, 0.8], [1, 2]))
    with pytest.raises(ValueError, match="rows must be unweighted"):
        simultaneous_band(curve)


@pytest.mark.parametrize("coverage", [0.66, 0.7, 0.8])
def test_a_plan_for_few_tests_holds_between_them(coverage):
    n = rows_needed(Risk(0.05, method="bonferroni"), expected_risk=0.03, coverage=coverage)
    ranks, limits = union_limits(n, 0.05, 0.05, min(0.1, 200 / n))
    k = next(k for k in range(1, n + 1) if k / n >= coverage)
    assert stats.binom.cdf(limits[ranks <= k][-1], k, 0.03) >= 0.8


def test_planned_analyses_share_delta():
    options = {"expected_risk": 0.01, "coverage": 0.8}
    planned = rows_needed(Risk(0.05, delta=0.1, max_analyses=4), **options)
    assert planned == rows_needed(0.05, 0.025, **options)


def test_a_pool_has_room_for_the_rows_that_are_not_worth_a_label():
    assert [pool_size(400, share) for share in (1, 0.5, 0.3, 0.1)] == [400, 800, 1334, 4000]
    for labels, share, named in [(0, 0.5, "n_labels"), (10, 0, "expected_coverage"),
                                 (10, 1.5, "expected_coverage"), (1.5, 1, "n_labels")]:  # fmt: skip
        with pytest.raises(ValueError, match=named):
            pool_size(labels, share)
