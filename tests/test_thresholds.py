"""Rules on curves, against the definition of what each may accept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skselect import Outcomes, RiskCoverageCurve, thresholds
from skselect.bounds import combined_limits, walk_band

profile = settings(derandomize=True, deadline=None, max_examples=120)


@st.composite
def curves(draw, max_rows=60, weighted=False):
    n = draw(st.integers(1, max_rows))
    levels = draw(st.sampled_from([3, 10, 1000]))
    confidence = [draw(st.integers(0, levels)) / levels for _ in range(n)]
    loss = [draw(st.integers(0, 1)) for _ in range(n)]
    weight = [draw(st.integers(1, 3)) for _ in range(n)] if weighted else None
    return RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence, weight)), (
        np.array(confidence), np.array(loss), np.array(weight or [1] * n),
    )  # fmt: skip


def cwsa_at(confidence, loss, weight, t, sign):
    kept = confidence >= t
    if not kept.any():
        return 0.0
    phi = (confidence[kept] - t) / (1 - t)
    gain = np.where(loss[kept] == 1, sign, 1.0)
    return float(np.sum(weight[kept] * phi * gain) / np.sum(weight[kept]))


@profile
@given(curves(weighted=True), st.sampled_from(["cwsa", "cwsa_plus", "selective_accuracy"]),
       st.sampled_from([0.0, 0.3, 0.5, 1.0]))  # fmt: skip
def test_best_metric_is_not_beaten_on_a_dense_grid(case, metric, min_coverage):
    curve, (confidence, loss, weight) = case
    best = thresholds.best_metric(curve, metric, min_coverage)
    grid = np.unique(np.concatenate([
        np.linspace(0, 0.999, 700), confidence, np.nextafter(confidence, 2), confidence - 1e-9,
    ]))  # fmt: skip
    grid = grid[(grid >= 0) & (grid < 1)]

    def value(t):
        if metric == "selective_accuracy":
            kept = confidence >= t
            return np.average(1 - loss[kept], weights=weight[kept])
        return cwsa_at(confidence, loss, weight, t, 0.0 if metric == "cwsa_plus" else -1.0)

    allowed = [
        t for t in grid
        if (confidence >= t).any() and weight[confidence >= t].sum() / weight.sum() >= min_coverage
    ]  # fmt: skip
    assert best.value >= max(map(value, allowed), default=-1) - 1e-9
    if best.threshold < 1:
        assert value(best.threshold) == pytest.approx(best.value, abs=1e-9)
    share = weight[confidence >= best.threshold].sum() / weight.sum()
    assert share >= min_coverage


def test_the_cwsa_plus_optimum_lies_just_above_the_next_lower_confidence():
    curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 0, 1], [0.9, 0.8, 0.6]))
    best = thresholds.best_metric(curve, "cwsa_plus", 0.5)
    assert best.threshold == np.nextafter(0.6, 1)
    assert best.value == pytest.approx((0.3 / 0.4 + 0.2 / 0.4) / 2)
    dense = RiskCoverageCurve.from_outcomes(Outcomes([0, 0, 0], [0.9, 0.8, 0.75]))
    best = thresholds.best_metric(dense, "cwsa_plus", 0.5)
    assert best.threshold == 0.0  # accepting all, from 0 on
    assert best.value == pytest.approx((0.9 + 0.8 + 0.75) / 3)
    low = RiskCoverageCurve.from_outcomes(Outcomes([0, 0, 1, 1], [0.9, 0.8, 0.1, 0.05]))
    best = thresholds.best_metric(low, "cwsa_plus", 0.5)
    assert best.threshold == np.nextafter(0.1, 1)
    assert best.value == pytest.approx((0.8 / 0.9 + 0.7 / 0.9) / 2)


def test_equal_values_take_the_largest_coverage():
    curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 0, 0], [0.9, 0.8, 0.7]))
    assert thresholds.best_metric(curve, "selective_accuracy", 0.0).n_blocks == 3


@profile
@given(curves())
def test_threshold_below_accepts_exactly_the_blocks(case):
    curve, (confidence, _, _) = case
    for k in range(len(curve) + 1):
        t = thresholds.threshold_below(curve, k)
        assert int((confidence >= t).sum()) == (curve.n_accepted[k - 1] if k else 0)


def test_accepting_everything_accepts_rows_that_are_still_less_sure():
    named = RiskCoverageCurve.from_outcomes(Outcomes([0, 0], [0.9, 0.6]))
    assert thresholds.threshold_below(named, 2) == 0.0
    own = RiskCoverageCurve.from_outcomes(Outcomes([0, 0], [-3.0, -7.0]))
    assert thresholds.threshold_below(own, 2) == -np.inf


def test_threshold_between_neighbouring_floats_accepts_the_upper_one():
    high = 0.7
    curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 1], [high, np.nextafter(high, 0)]))
    assert thresholds.threshold_below(curve, 1) == high


@profile
@given(curves(max_rows=60), st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from([0.05, 0.2]))
def test_band_accepts_the_largest_passing_block_end(case, target, delta):
    curve, (confidence, loss, _) = case
    n, min_coverage = len(confidence), 0.1
    ranks, limits = walk_band(n, target, delta, min_coverage)
    best = 0
    for b, t in enumerate(curve.thresholds):
        kept = confidence >= t
        below = ranks[ranks <= kept.sum()]
        if len(below) and loss[kept].sum() <= limits[len(below) - 1]:
            best = b + 1
    assert thresholds.band_risk(curve, target, delta, min_coverage) == best


@profile
@given(curves(max_rows=80), st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from([0.05, 0.2]))
def test_combined_takes_the_better_of_band_and_sequence(case, target, delta):
    """Block by block: a sequence holds a block to the limit at the rank before it."""
    curve, (confidence, loss, _) = case
    ranks, band, sequence = combined_limits(len(confidence), target, delta, 0.1)
    limit = {int(r): (b, s) for r, b, s in zip(ranks, band, sequence, strict=True)}

    def limits_at(k):
        return limit[max(r for r in limit if r <= k)]

    start = next((r for r in limit if limit[r][1] >= 0), np.inf)
    best, before, running = 0, 0, True
    for b, t in enumerate(curve.thresholds):
        kept = confidence >= t
        k, errors = int(kept.sum()), int(loss[kept].sum())
        if len(ranks) and k >= ranks[0] and errors <= limits_at(k)[0]:
            best = b + 1
        if running and k >= start:
            running = errors <= limits_at(max(before, start))[1]
            best = max(best, b + 1) if running else best
        before = k
    assert thresholds.combined_risk(curve, target, delta, 0.1) == best


def test_least_combined_target_is_met_and_a_smaller_one_is_not(rng):
    curve = RiskCoverageCurve.from_outcomes(Outcomes(rng.random(500) < 0.1, rng.random(500)))
    least = thresholds.least_risk_target(thresholds.combined_risk, curve, 0.05, 0.1)
    assert thresholds.combined_risk(curve, least, 0.05, 0.1) > 0
    assert thresholds.combined_risk(curve, 0.99 * least, 0.05, 0.1) == 0


def test_least_target_is_met_and_a_smaller_one_is_not(rng):
    confidence = rng.random(500)
    curve = RiskCoverageCurve.from_outcomes(Outcomes(rng.random(500) < 0.1, confidence))
    errors = curve.accepted_loss.astype(int)
    least = thresholds.least_band_target(curve.n_accepted, errors, 500, 0.05, 0.1)
    assert thresholds.band_risk(curve, least, 0.05, 0.1) > 0
    assert thresholds.band_risk(curve, 0.99 * least, 0.05, 0.1) == 0


def test_rows_needed_is_about_what_it_takes(rng):
    n = 400
    confidence = rng.random(n)
    wrong = rng.random(n) < 0.2 * (1 - confidence) ** 3
    curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, confidence))
    assert thresholds.band_risk(curve, 0.005, 0.05, 0.1) == 0
    needed = thresholds.rows_like_these(curve, 0.005, 0.05, 0.1)
    assert needed > n
    copies = int(np.ceil(1.5 * needed / n))
    many = RiskCoverageCurve.from_outcomes(
        Outcomes(
            np.tile(wrong, copies), (confidence[None] - 1e-9 * np.arange(copies)[:, None]).ravel()
        )
    )
    assert thresholds.band_risk(many, 0.005, 0.05, 0.1) > 0


def test_rows_needed_is_none_where_more_rows_would_not_help():
    curve = RiskCoverageCurve.from_outcomes(Outcomes([1, 1, 1, 1], [0.9, 0.8, 0.7, 0.6]))
    assert thresholds.rows_like_these(curve, 0.1, 0.05, 0.1) is None


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
