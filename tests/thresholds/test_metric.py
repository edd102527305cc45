"""The best value of a metric, against a dense grid of thresholds."""

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from skselect import Outcomes, RiskCoverageCurve
from skselect.thresholds._metric import best_metric, keeps
from tests import brute
from tests.thresholds.cases import curves, profile


def metric_at(metric, rows, t):
    """Return the metric in fractions."""
    if metric == "selective_accuracy":
        return 1 - brute.selective_risk(rows, t)
    return brute.cwsa(rows, t, plus=metric == "cwsa_plus")


ANYWHERE = (0.0, 1.0)
RANGES = st.one_of(st.just(ANYWHERE), st.tuples(st.floats(0, 1), st.floats(0, 1)))


@profile
@given(curves(max_rows=40, weighted=True), st.sampled_from(["cwsa", "cwsa_plus"]), RANGES,
       st.sampled_from([0.0, 0.3, 0.5, 1.0]))  # fmt: skip
def test_no_threshold_in_the_range_is_better(case, metric, ends, min_coverage):
    assume(ends[0] != ends[1])
    curve, (confidence, loss, weight) = case
    for name in [metric, "selective_accuracy"] if ends == ANYWHERE else [metric]:
        low, high = sorted(ends)
        chosen = {} if ends == ANYWHERE else {"threshold_range": (low, high)}
        best = best_metric(curve, name, min_coverage, **chosen)
        near = [confidence, np.nextafter(confidence, 2), confidence - 1e-9]
        grid = np.unique(
            np.concatenate([*near, np.linspace(low, high, 30), [np.nextafter(high, 0)]])
        )
        share = {t: weight[confidence >= t].sum() / weight.sum() for t in grid if low <= t < high}
        allowed = [t for t in share if share[t] > 0 and share[t] >= min_coverage]
        if ends != ANYWHERE:
            assert (best is not None) == bool(allowed)
        if best is None or not allowed:  # everything is sure, or nothing is in the range
            continue
        rows = brute.rows_of(loss, confidence, weight)
        assert best.value >= max(float(metric_at(name, rows, t)) for t in allowed) - 1e-9
        if best.threshold < 1:
            assert low <= best.threshold < high
            found = metric_at(name, rows, best.threshold)
            assert float(found) == pytest.approx(best.value, abs=1e-9)
        assert weight[confidence >= best.threshold].sum() / weight.sum() >= min_coverage


@pytest.mark.parametrize(
    ("loss", "confidence", "metric", "options", "threshold", "n_blocks", "value"),
    [
        ([0, 0, 1], [0.9, 0.8, 0.6], "cwsa_plus", {}, np.nextafter(0.6, 1), 2, 0.625),
        ([0, 0, 0], [0.9, 0.8, 0.75], "cwsa_plus", {}, 0.0, 3, 2.45 / 3),  # all, from 0 on
        ([0, 1, 1], [0.9, 0.6, 0.3], "cwsa_plus", {"threshold_range": (0.7, 0.8)}, 0.7, 1, 2 / 3),
        # The answer at 0.6 is wrong: CWSA rises up to 0.6, or up to the end of the range.
        ([0, 1, 1], [0.9, 0.6, 0.3], "cwsa", {"min_coverage": 0.6, "threshold_range": (0.4, 0.5)},
         np.nextafter(0.5, 0), 2, 0.3),
        ([0, 0, 0], [0.9, 0.8, 0.7], "selective_accuracy", {}, 0.0, 3, 1.0),  # the most of equals
    ],
)  # fmt: skip
def test_optima_by_hand(loss, confidence, metric, options, threshold, n_blocks, value):
    curve = RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence))
    best = best_metric(curve, metric, **({"min_coverage": 0.0} | options))
    assert (best.threshold, best.n_blocks) == (threshold, n_blocks)
    assert best.value == pytest.approx(value)


def rows_at(confidence, loss, t, sign):
    """What each accepted row adds to CWSA(+) at a threshold."""
    kept = confidence >= t
    phi = (confidence[kept] - t) / (1 - t)
    return np.where(loss[kept] == 1, sign, 1.0) * phi


@profile
@given(curves(), st.sampled_from(["cwsa", "cwsa_plus", "selective_accuracy"]),
       st.sampled_from([0.0, 0.3, 0.5]))  # fmt: skip
def test_lower_bound_is_not_beaten_on_a_dense_grid(case, metric, min_coverage):
    curve, (confidence, loss, _) = case
    best = best_metric(curve, metric, min_coverage, bounds_luck=True)

    def lower_bound(t):
        if metric == "selective_accuracy":
            x = 1.0 - loss[confidence >= t]
        else:
            x = rows_at(confidence, loss, t, 0.0 if metric == "cwsa_plus" else -1.0)
        return x.mean() - 1.645 * x.std() / np.sqrt(len(x))

    # Only the thresholds that can be best for the value itself are candidates.
    ends = np.append(confidence, 0.0)
    grid = np.unique(np.concatenate([ends, np.nextafter(ends, 2)]))
    grid = [t for t in grid if t < 1 and np.mean(confidence >= t) >= max(min_coverage, 1e-9)]
    if metric == "cwsa_plus":
        lowest = {}
        for t in grid:  # the lower end of each interval in which the accepted rows stay
            key = (confidence >= t).sum()
            lowest[key] = min(lowest.get(key, 2.0), t)
        grid = list(lowest.values())
    assert best.best >= max(map(lower_bound, grid), default=-9) - 1e-7


@profile
@given(curves(weighted=True), st.sampled_from([0.0, 0.1, 0.4]), st.sampled_from([0.2, 0.8]))
def test_constraints_are_kept_or_refused(case, risk, coverage):
    curve, (confidence, loss, weight) = case
    constraints = (("risk", risk), ("coverage", coverage))
    best = best_metric(curve, "selective_accuracy", 0.0, constraints)

    def holds(t):
        kept = confidence >= t
        share = weight[kept].sum() / weight.sum()
        return share >= coverage and np.average(loss[kept], weights=weight[kept]) <= risk

    possible = [t for t in np.unique(confidence) if holds(t)]
    assert (best is not None) == bool(possible)
    if best is not None:
        assert holds(best.threshold)
        most = max(1 - np.average(loss[confidence >= t], weights=weight[confidence >= t])
                   for t in possible)  # fmt: skip
        assert best.value == pytest.approx(most)


@pytest.mark.parametrize(
    ("constraint", "n_rows"),
    [(("generalized_risk", 0.2), 4), (("selective_accuracy", 0.7), 4), (("risk", 0.2), 2)],
)
def test_each_constraint_by_hand(constraint, n_rows):
    outcomes = Outcomes([0, 0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6, 0.5])
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    kept = keeps(curve, (constraint,))
    assert curve.n_accepted[np.flatnonzero(kept)[-1]] == n_rows


@pytest.mark.parametrize("metric", ["cwsa", "cwsa_plus"])
def test_a_lower_bound_next_to_certainty_is_a_number(metric):
    """Just above the last float below 1 the threshold is 1, where nobody weighs less than 1."""
    confidence = [1.0, np.nextafter(1, 0), 0.9, 0.5]
    curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 0, 0, 1], confidence))
    found = best_metric(curve, metric, 0.0, bounds_luck=True)
    assert np.isfinite([found.value, found.best, found.unconstrained]).all()
