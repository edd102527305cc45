"""What rows that cannot certify a target say, by brute force and by simulation."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import binom

from skselect import Outcomes, RiskCoverageCurve
from skselect.bounds._pointwise import clopper_pearson_interval, clopper_pearson_upper
from skselect.datasets import RISKS
from skselect.thresholds._advice import (
    AcceptedSet,
    _passing_sizes,
    best_set,
    least_provable,
    least_risk_bound,
    most_answered,
    plan_rows,
)
from skselect.thresholds._rules import combined_risk, least_coverage
from tests.common import mostly_slow
from tests.thresholds.cases import curves, profile


def draw(risk, n, rng):
    """Rows at ranks u in [0, 1], wrong with probability `risk(u)`."""
    u = rng.random(n)
    return RiskCoverageCurve.from_outcomes(Outcomes(rng.random(n) < risk(u), 1 - u))


# Sets of these rows ------------------------------------------------------------------------


@profile
@given(curves(), st.sampled_from([0.05, 0.3]), st.sampled_from([0.0, 0.1, 0.6]))
def test_the_best_set_has_the_least_bound_of_all(case, delta, least):
    curve, _ = case
    sets = zip(curve.n_accepted.tolist(), curve.accepted_loss.tolist(), strict=True)
    bounds = {
        (k, int(e)): clopper_pearson_upper(e, k, delta)
        for k, e in sets if k / curve.n_rows >= least - 1e-12
    }  # fmt: skip
    best = best_set(curve, delta, least)
    assert best.bound == pytest.approx(min(bounds.values()), rel=1e-12)
    assert bounds[best.n_accepted, best.n_errors] == best.bound


def test_no_set_is_the_best_where_all_are_too_small():
    curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 0], [0.9, 0.8]))
    assert best_set(curve, 0.05, 1.0) == AcceptedSet(2, 0, clopper_pearson_upper(0, 2, 0.05))
    assert best_set(curve, 0.05, 1.1) is None


@profile
@given(curves(), st.sampled_from([0.05, 0.3]), st.sampled_from([0.0, 0.1, 0.6, 1.0]))
def test_no_set_is_better_than_the_least_of_all_lower_bounds(case, delta, least):
    curve, _ = case
    n = curve.n_rows
    sets = zip(curve.n_accepted.tolist(), curve.accepted_loss.tolist(), strict=True)
    lows = [
        clopper_pearson_interval(e, k, 1 - 1.8 * delta)[0]
        for k, e in sets if binom.cdf(k, n, least) > delta / 10
    ]  # fmt: skip
    assert least_risk_bound(curve, delta, least) == pytest.approx(min(lows), rel=1e-9, abs=1e-15)


#: Populations, and the least risk of a set of a tenth or more: a single set that has it, at the
#: very limit or accepted whole, is the hardest.
LEAST_RISKS = {
    "one confidence": (lambda u: np.full_like(u, 0.2), 1, 0.2),
    "a tenth alone": (lambda u: np.where(u < 0.1, 0.2, 0.9), 10, 0.2),
    "two tenths in the middle": (
        lambda u: np.where(u < 0.2, 0.4, np.where(u < 0.4, 0.0, 0.9)),
        5,
        0.2,
    ),
    "all alike": (lambda u: np.full_like(u, 0.2), None, 0.2),
    "weak": (RISKS["weak"][0], None, 0.03),
}


@pytest.mark.parametrize(
    ("name", "draws"),
    mostly_slow([(name, 100) for name in LEAST_RISKS] + [(name, 1000) for name in LEAST_RISKS],
                quick=len(LEAST_RISKS), unpack=True),
)  # fmt: skip
def test_the_lower_bound_of_all_sets_holds_as_often_as_it_says(name, draws):
    risk, n_levels, least = LEAST_RISKS[name]
    rng, false, bounds = np.random.default_rng(0), 0, []
    for n in (100, 400):
        for _ in range(draws):
            u = rng.random(n)
            wrong = rng.random(n) < risk(u)
            if n_levels is not None:
                u = np.floor(n_levels * u) / n_levels
            curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, -u))
            bounds.append(least_risk_bound(curve, 0.05, 0.1))
            false += bounds[-1] > least
    assert false / 2 / draws <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2 / draws)
    assert max(bounds) > 0.3 * least  # it says something


@given(st.integers(1, 200), st.data(), st.sampled_from([0.05, 0.2]), st.sampled_from([0.01, 0.1]))
def test_a_perfect_ranking_answers_the_right_ones_and_some_wrong_ones(n, data, target, delta):
    errors = data.draw(st.integers(0, n))
    low, _ = clopper_pearson_interval(errors, n, 1 - 2 * delta)
    most = most_answered(errors, n, target, delta)
    assert most == pytest.approx(min((1 - low) / (1 - target), 1))
    if most < 1:  # all right answers, and wrong ones as the target allows
        assert (most - (1 - low)) / most == pytest.approx(target)


@pytest.mark.parametrize("n", [1, 60, 195, 10_000])
def test_rows_without_an_error_prove_no_less(n):
    assert (1 - least_provable(n, 0.05)) ** n == pytest.approx(0.05)


# More rows like these ----------------------------------------------------------------------


@pytest.mark.parametrize("target", [0.005, 0.05, 0.3])
def test_so_many_rows_pass_a_test_with_so_many_errors(target):
    rates, rows = _passing_sizes(target, 0.001)
    assert np.all(np.diff(rates) >= 0)
    assert rates[-1] < target
    few = np.arange(60)
    least = np.ceil(rows[:60])
    assert np.all(binom.cdf(few, least, target) <= 0.001)
    assert np.all(binom.cdf(few, least - 1, target) > 0.001)
    assert np.all(binom.cdf(few, least, rates[:60])[3:] > 0.75)


#: Profiles, targets; how many tables of the upper size certify, at least, for each.
PLANS = [("weak", 0.05, 0.15), ("weak", 0.1, 0.6), ("gradual", 0.02, 0.6), ("gradual", 0.05, 0.6),
         ("steep", 0.05, 0.6)]  # fmt: skip


@pytest.mark.parametrize("draws", mostly_slow([3, 70]))
def test_most_tables_of_the_upper_size_certify(draws):
    """Rows that cannot certify plan, and fresh ones follow the plan."""
    n_upper = n_certified = n_open = n_plans = 0
    for kind, target, share in PLANS:
        risk, _ = RISKS[kind]
        certified, upper = 0, 0
        for n in (60, 100, 200):
            rng = np.random.default_rng(n)
            for _ in range(draws):
                curve = draw(risk, n, rng)
                if np.any(combined_risk(curve, target, 0.05, 0.1)):
                    continue
                plan = plan_rows(curve, target, 0.05, 0.1)
                n_plans += 1
                if plan.high is None:
                    n_open += 1
                    continue
                assert 1.25 * n <= plan.low <= plan.high
                if plan.high > 20_000:  # these certify
                    continue
                upper += 1
                fresh = draw(risk, plan.high, rng)
                least = least_coverage(plan.high)
                certified += np.any(combined_risk(fresh, target, 0.05, least))
        assert certified / upper >= share - 3 * np.sqrt(share * (1 - share) / upper)
        n_upper += upper
        n_certified += certified
    assert n_certified / n_upper >= 0.7
    assert n_open < 0.15 * n_plans


def test_no_number_is_planned_where_most_curves_never_reach_the_target():
    curve = RiskCoverageCurve.from_outcomes(Outcomes([1] * 30, range(30)))
    assert plan_rows(curve, 0.1, 0.05, 0.1) == (None, None)
    # The surest set of these errs a bit less often than the target: some curves do, others do not.
    wrong = np.arange(400) % 20 == 10
    near = RiskCoverageCurve.from_outcomes(Outcomes(wrong, -np.arange(400)))
    plan = plan_rows(near, 0.0505, 0.05, 0.5)
    assert plan.low > 1000
    assert plan.high is None


def test_rows_without_errors_need_about_as_many_as_a_test_of_few_errors():
    curve = RiskCoverageCurve.from_outcomes(Outcomes(np.zeros(50), range(50)))
    low, high = plan_rows(curve, 0.05, 0.05, 0.1)
    assert 100 < low < high < 700
