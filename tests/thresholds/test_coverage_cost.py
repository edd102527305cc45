"""Silent failures, coverage and cost, against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skselect import Outcomes, RiskCoverageCurve, thresholds
from tests.thresholds.cases import curves, profile


@pytest.mark.parametrize(
    ("n", "target"), [(100, 0.07), (100, 0.14), (100, 0.55), (500, 0.9), (20, 0.5)]
)
def test_coverage_rank_is_the_smallest_that_holds(n, target):
    rank = thresholds.coverage_rank(n, target, 0.1)
    holds = [k for k in range(1, n + 1) if stats.beta.sf(target, k, n + 1 - k) >= 0.9]
    assert rank == holds[0]


def test_coverage_rank_of_the_evidence_page():
    assert thresholds.coverage_rank(500, 0.9, 0.1) == 460


def test_coverage_that_no_rank_reaches_accepts_everything():
    curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 1], [0.9, 0.8]))
    assert thresholds.coverage_rank(2, 0.99, 0.05) is None
    assert thresholds.certified_coverage(curve, 0.99, 0.05) == 2


@profile
@given(curves(weighted=True), st.sampled_from([0.0, 0.05, 0.2, 0.5, 1.5]))
def test_cheapest_costs_least(case, cost):
    curve, (confidence, loss, weight) = case
    k = thresholds.cheapest(curve, cost)
    costs = []
    for b in range(len(curve) + 1):
        kept = confidence >= thresholds.threshold_below(curve, b)
        costs.append((weight * np.where(kept, loss, cost)).sum())
    assert costs[k] == pytest.approx(min(costs), abs=1e-12)


@profile
@given(curves(), st.sampled_from([0.05, 0.2, 0.45]), st.sampled_from([0.05, 0.4]))
def test_generalised_risk_accepts_what_is_surer_than_the_first_error_too_many(case, target, delta):
    curve, (confidence, loss, _) = case
    n = len(confidence)
    allowed = [e for e in range(n + 1) if stats.binom.cdf(e, n, target) <= delta]
    found = thresholds.certified_generalized_risk(curve, target, delta)
    if not allowed:
        assert found == 0
        return
    errors = np.sort(confidence[loss == 1])[::-1]
    enough = len(errors) <= allowed[-1]
    expected = n if enough else int((confidence > errors[allowed[-1]]).sum())
    assert (curve.n_accepted[found - 1] if found else 0) == expected


@profile
@given(curves(), st.sampled_from([0.05, 0.3, 0.5, 0.9]))
def test_mean_coverage_is_the_smallest_rank_whose_mean_reaches_the_target(case, target):
    curve, _ = case
    n = curve.n_rows
    rank = next((k for k in range(1, n + 1) if k / (n + 1) >= target - 1e-12), n)
    expected = next(b + 1 for b in range(len(curve)) if curve.n_accepted[b] >= rank)
    assert thresholds.mean_coverage(curve, target) == expected


def test_chow_accepts_what_is_surer_than_one_minus_the_cost():
    curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 1, 0], [0.95, 0.8, 0.75]))
    assert thresholds.chow(curve, 0.2) == (0.8, 2)
    assert thresholds.chow(curve, 3.0) == (0.0, 3)


@profile
@given(curves(), st.sampled_from([0.1, 0.2, 0.7]))
def test_the_scale_of_constant_weights_does_not_matter_for_costs(case, cost):
    curve, (confidence, loss, _) = case
    scaled = RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence, np.full(len(loss), 0.1)))
    assert thresholds.cheapest(scaled, cost) == thresholds.cheapest(curve, cost)
