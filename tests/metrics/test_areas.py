"""Areas and working points against their definitions, from labels and probabilities."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skselect import metrics
from tests import brute
from tests.brute import (
    assert_close,
    examples,
    of_probabilities,
    of_rows,
    proba_cases,
    row_cases,
    thresholds,
)

NAN = float("nan")
RELIABILITY = st.sampled_from([0.0, 0.5, 0.7, 0.9, 0.95, 0.99, 1.0])
TRUTH, PROBA = [0, 1, 1, 0], [0.125, 0.875, 0.375, 0.75]


def score(name, case, **options):
    return getattr(metrics, f"{name}_score")(case.y_true, case.y_proba, **case.options, **options)


# Definitions -----------------------------------------------------------------------------


@examples(80)
@given(proba_cases())
def test_aurc_and_augrc_and_their_excess_are_their_definitions(case):
    rows = case.rows()
    assert_close(score("aurc", case), brute.aurc(rows))
    assert_close(score("aurc", case, estimator="integral"), brute.aurc_integral(rows))
    assert_close(score("aurc", case, ties="block"), brute.aurc_block(rows))
    assert_close(score("eaurc", case), brute.eaurc(rows))
    assert_close(score("augrc", case), brute.augrc(rows))
    assert_close(score("eaugrc", case), brute.eaugrc(rows))


@examples(80)
@given(proba_cases())
def test_accuracy_rejection_auc_is_one_minus_the_aurc(case):
    rows = case.rows()
    assert_close(score("accuracy_rejection_auc", case), 1 - float(brute.aurc(rows)))
    actual = score("accuracy_rejection_auc", case, estimator="integral")
    assert_close(actual, 1 - float(brute.aurc_integral(rows)))


@examples(60)
@given(proba_cases(weights=("none",)))
def test_estimators_for_unweighted_rows_are_their_definitions(case):
    rows = case.rows()
    assert_close(score("aurc", case, estimator="ln"), brute.aurc_ln(rows))
    actual = score("accuracy_rejection_auc", case, estimator="ln")
    assert_close(actual, 1 - brute.aurc_ln(rows))
    if len(rows) > 1:
        assert_close(score("augrc", case, estimator="unbiased"), brute.augrc_unbiased(rows))


@examples(80)
@given(proba_cases())
def test_naurc_is_its_definition(case):
    rows = case.rows()
    if len({row.loss for row in rows}) == 1:
        return  # nan, tested below
    assert_close(score("naurc", case), brute.naurc(rows), tiny=1e-11)


@pytest.mark.parametrize("metric", sorted(brute.CURVE_METRICS))
@examples(40)
@given(case=proba_cases())
def test_aumcc_is_the_trapezoidal_rule_over_coverage(metric, case):
    assert_close(score("aumcc", case, metric=metric), brute.aumcc(case.rows(), metric))


@pytest.mark.parametrize("metric", sorted(brute.CURVE_METRICS))
@examples(40)
@given(case=proba_cases(), at=st.lists(thresholds, min_size=1, max_size=12))
def test_aumcc_takes_thresholds_in_any_order(metric, case, at):
    expected = brute.aumcc(case.rows(), metric, at)
    assert_close(score("aumcc", case, metric=metric, thresholds=at), expected)


@pytest.mark.parametrize("metric", sorted(brute.CURVE_METRICS))
@examples(40)
@given(case=proba_cases())
def test_aumcc_exact_is_the_mean_over_rows_of_the_metric_at_their_confidence(metric, case):
    expected = brute.aumcc_exact(case.rows(), metric)
    assert_close(score("aumcc", case, metric=metric, estimator="exact"), expected)


@examples(80)
@given(proba_cases(weights=("none", "integer")), st.sampled_from([0.07, 0.1, 0.3, 0.5, 0.9, 1.0]))
def test_working_points_are_their_definitions(case, share):
    rows = case.rows()
    expected = brute.risk_at_coverage(rows, share)
    assert_close(score("risk_at_coverage", case, coverage=share), expected)
    expected = brute.coverage_at_risk(rows, share)
    assert_close(score("coverage_at_risk", case, max_risk=share), expected)
    expected = 1 - brute.coverage_at_reliability(rows, share)
    assert_close(score("review_rate_at_reliability", case, reliability=share), expected)


@examples(80)
@given(proba_cases(), st.floats(0, 0.9), st.floats(0.05, 1))
def test_partial_augrc_is_the_area_over_a_range(case, low, width):
    chosen = (low, min(low + width, 1.0))
    actual = score("augrc", case, coverage_range=chosen)
    assert_close(actual, brute.augrc(case.rows(), *chosen), tiny=1e-12)


# Known values ----------------------------------------------------------------------------


def test_a_perfect_model_that_is_always_certain_has_a_literal_aumcc_of_zero():
    y_true, y_proba = [0, 1, 1], [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    assert metrics.aumcc_score(y_true, y_proba) == 0.0
    assert metrics.aumcc_score(y_true, y_proba, estimator="exact") == 1.0


def test_aumcc_takes_one_threshold_and_none_that_accepts():
    assert metrics.aumcc_score(TRUTH, PROBA, thresholds=0.6) == 0.0
    assert metrics.aumcc_score(TRUTH, PROBA, thresholds=[0.95, 0.99]) == 0.0


def test_known_working_points():
    # Confidences .875 .875 .75 .625, losses 0 0 1 1: risk 0 at 1/2, 1/3 at 3/4, 1/2 at 1.
    assert metrics.risk_at_coverage_score(TRUTH, PROBA, coverage=0.25) == 0.0
    assert metrics.risk_at_coverage_score(TRUTH, PROBA, coverage=0.51) == 1 / 3
    assert metrics.coverage_at_risk_score(TRUTH, PROBA, max_risk=0.0) == 0.5
    assert metrics.coverage_at_risk_score(TRUTH, PROBA, max_risk=0.4) == 0.75
    assert metrics.review_rate_at_reliability_score(TRUTH, PROBA, reliability=0.75) == 0.25
    assert metrics.review_rate_at_reliability_score(TRUTH, PROBA, reliability=1.0) == 0.5


def test_where_no_threshold_is_good_enough():
    y_true, y_proba = [1, 1], [0.2, 0.3]
    assert metrics.coverage_at_risk_score(y_true, y_proba, max_risk=0.5) == 0.0
    assert metrics.review_rate_at_reliability_score(y_true, y_proba, reliability=0.9) == 1.0


@pytest.mark.parametrize("y_true", [[0, 0, 0], [1, 1, 1]], ids=["no errors", "all errors"])
def test_naurc_of_equal_losses_is_nan_with_a_warning(y_true):
    with pytest.warns(UserWarning, match=r"naurc is undefined \(nan\)"):
        assert math.isnan(metrics.naurc_score(y_true, [0.1, 0.2, 0.3]))


def test_small_weights_warn_and_name_the_integral():
    with pytest.warns(UserWarning, match="sample_weight sums to 1.*integral"):
        metrics.aurc_score(TRUTH, PROBA, sample_weight=[0.25] * 4)


@examples(60)
@given(row_cases(unit=False, weights=("none",), losses=("zero_one",)))
def test_areas_read_only_the_order_of_a_callable_confidence(case):
    """Confidences of any size, from a function of the probabilities."""
    n = len(case.loss)
    y_proba = np.column_stack([np.full(n, 0.75), np.full(n, 0.25)])
    options = {"confidence": lambda p: case.confidence, "labels": [0, 1]}
    assert_close(metrics.aurc_score(case.loss, y_proba, **options), brute.aurc(case.rows))
    assert_close(metrics.augrc_score(case.loss, y_proba, **options), brute.augrc(case.rows))


# Bad input -------------------------------------------------------------------------------

BAD = {
    "aurc estimator": ("aurc", {"estimator": "exact"}, "estimator"),
    "aurc ties": ("aurc", {"ties": "first"}, "ties"),
    "aurc ln with weights": ("aurc", {"estimator": "ln", "sample_weight": [1, 2, 1, 1]},
                             "sample_weight"),
    "augrc estimator": ("augrc", {"estimator": "ln"}, "estimator"),
    "augrc range": ("augrc", {"coverage_range": (0.5, 1.2)}, "coverage_range"),
    "augrc unbiased with weights": (
        "augrc", {"estimator": "unbiased", "sample_weight": [1, 2, 1, 1]}, "sample_weight"),
    "augrc unbiased with range": (
        "augrc", {"estimator": "unbiased", "coverage_range": (0, 0.5)}, "coverage_range"),
    "accuracy_rejection estimator": ("accuracy_rejection_auc", {"estimator": "x"}, "estimator"),
    "aumcc metric": ("aumcc", {"metric": "accuracy"}, "metric"),
    "aumcc estimator": ("aumcc", {"estimator": "empirical"}, "estimator"),
    "aumcc thresholds of one": ("aumcc", {"thresholds": [0.5, 1.0]}, "thresholds"),
    "aumcc thresholds nan": ("aumcc", {"thresholds": [0.5, NAN]}, "thresholds"),
    "aumcc thresholds text": ("aumcc", {"thresholds": "all"}, "thresholds"),
    "aumcc thresholds with exact": (
        "aumcc", {"estimator": "exact", "thresholds": [0.5]}, "thresholds"),
    "aumcc confidence": ("aumcc", {"confidence": [2.0, 1, 0, 0]}, "confidence"),
    "coverage zero": ("risk_at_coverage", {"coverage": 0}, "coverage"),
    "coverage above one": ("risk_at_coverage", {"coverage": 1.5}, "coverage"),
    "coverage in percent": ("risk_at_coverage", {"coverage": 80}, "coverage"),
    "coverage nan": ("risk_at_coverage", {"coverage": NAN}, "coverage"),
    "max_risk": ("coverage_at_risk", {"max_risk": 5}, "max_risk"),
    "max_risk boolean": ("coverage_at_risk", {"max_risk": True}, "max_risk"),
    "reliability": ("review_rate_at_reliability", {"reliability": 99}, "reliability"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "options", "argument"), BAD.values(), ids=BAD)
def test_a_bad_argument_is_named(name, options, argument):
    with pytest.raises(ValueError, match=argument):
        getattr(metrics, f"{name}_score")(TRUTH, PROBA, **options)


# Review: definition, slowly --------------------------------------------------------------


def plan(rows, reliability):
    """Return threshold, review rate, pass rate, needless reviews per 10,000, silent errors."""
    allowed = [
        level
        for level, (_, _, silent) in zip(
            brute.levels(rows), brute.working_points(rows), strict=True
        )
        if float(1 - silent) >= reliability
    ]
    threshold = min(allowed, default=math.inf)
    passed = brute.accepted(rows, threshold)
    total = brute.weight_of(rows)
    right = total - brute.weighted_loss(rows)
    right_passed = brute.weight_of(passed) - brute.weighted_loss(passed)
    return [
        threshold,
        1 - brute.weight_of(passed) / total,
        right_passed / right if right else math.nan,
        10_000 * (right - right_passed) / total,
        brute.weighted_loss(passed) / total,
    ]


def numbers(result):
    return [
        result.threshold, result.review_rate, result.pass_rate, result.invalid_review_cost,
        result.silent_errors,
    ]  # fmt: skip


# Review ----------------------------------------------------------------------------------


@examples(80)
@given(row_cases(weights=("none", "integer"), losses=("zero_one", "dyadic")), RELIABILITY)
def test_the_plan_is_its_definition(case, reliability):
    result = of_rows(metrics.review_at_reliability, case, reliability=reliability)
    assert_close(numbers(result), plan(case.rows, reliability))
    assert result.reliability == reliability
    rate = of_rows(metrics.review_rate_at_reliability_score, case, reliability=reliability)
    assert rate == result.review_rate


@examples(60)
@given(proba_cases(weights=("none", "integer")), RELIABILITY)
def test_the_plan_of_probabilities(case, reliability):
    result = of_probabilities(metrics.review_at_reliability, case, reliability=reliability)
    assert_close(numbers(result), plan(case.rows(), reliability))


@examples(40)
@given(proba_cases(), RELIABILITY)
def test_the_threshold_does_what_the_plan_says(case, reliability):
    """Its own coverage, generalised risk and recall of right rows."""
    result = of_probabilities(metrics.review_at_reliability, case, reliability=reliability)
    options = {**case.options, "threshold": result.threshold}
    coverage = metrics.coverage_score(case.y_true, case.y_proba, **options)
    silent = metrics.generalized_risk_score(case.y_true, case.y_proba, **options)
    assert_close([1 - result.review_rate, result.silent_errors], [coverage, silent])
    assert silent <= 1 - reliability + 1e-12


# Review: known values --------------------------------------------------------------------


def test_known_plans():
    # Surest first: .875 .875 right, .75 .625 wrong.
    result = metrics.review_at_reliability(TRUTH, PROBA, reliability=0.75)
    assert numbers(result) == [0.75, 0.25, 1.0, 0.0, 0.25]
    result = metrics.review_at_reliability(TRUTH, PROBA, reliability=1.0)
    assert numbers(result) == [0.875, 0.5, 1.0, 0.0, 0.0]
    assert metrics.review_rate_at_reliability_score(TRUTH, PROBA, reliability=0.75) == 0.25
    assert metrics.review_rate_at_reliability_score(TRUTH, PROBA, reliability=1.0) == 0.5
    result = metrics.review_at_reliability(TRUTH, PROBA, reliability=0.0)
    assert numbers(result) == [0.625, 0.0, 1.0, 0.0, 0.5]


def test_right_rows_that_are_reviewed_cost():
    # The surest row is wrong: nothing passes, two right rows are reviewed.
    y_true, y_proba = [1, 0, 0, 1], [[0.9, 0.1], [0.8, 0.2], [0.75, 0.25], [0.7, 0.3]]
    result = metrics.review_at_reliability(y_true, y_proba, reliability=1.0)
    assert numbers(result) == [math.inf, 1.0, 0.0, 5000.0, 0.0]


def test_where_no_answer_is_right():
    result = metrics.review_at_reliability([1, 1], [0.2, 0.3], reliability=0.9)
    assert_close(numbers(result), [math.inf, 1.0, math.nan, 0.0, 0.0])
    assert metrics.review_rate_at_reliability_score([1, 1], [0.2, 0.3], reliability=0.9) == 1.0


def test_where_no_answer_is_wrong():
    result = metrics.review_at_reliability([0, 0], [0.2, 0.3], reliability=1.0)
    assert numbers(result) == [0.7, 0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [10, 30, 100, 1000])
def test_a_rate_of_silent_errors_that_is_just_reached_is_allowed(n):
    """1 - k/n of all rows: the share that users write rounds."""
    loss = np.where(np.arange(n) % 2, 1.0, 0.0)
    case = brute.RowCase(loss, np.linspace(1, 0.5, n), None)
    for k in range(n // 2):
        result = of_rows(metrics.review_at_reliability, case, reliability=1 - k / n)
        assert round(result.silent_errors * n) == k


# Review: bad input -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["review_at_reliability", "review_rate_at_reliability_score"])
@pytest.mark.parametrize("reliability", [99, -0.1, "high", math.nan, True, None])
def test_a_bad_reliability_is_refused(name, reliability):
    with pytest.raises(ValueError, match="reliability"):
        getattr(metrics, name)(TRUTH, PROBA, reliability=reliability)


def test_a_plan_reads_as_a_sentence():
    plan = metrics.review_at_reliability([0, 1, 1, 0], [0.1, 0.9, 0.6, 0.7], reliability=0.9)
    assert str(plan).startswith("Review 50 % of the rows, those with a confidence below 0.9,")
    assert "66.67 % of the right answers pass, 2500 of 10,000 rows" in str(plan)
