"""What areas and reviews are beyond the laws of all metrics: plans, and values known by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from skselect import metrics
from tests import brute
from tests.brute import assert_close, examples, of_rows, row_cases

RELIABILITY = st.sampled_from([0.0, 0.5, 0.7, 0.9, 0.95, 0.99, 1.0])


# Review ----------------------------------------------------------------------------------


def plan(rows, reliability):
    """Return threshold, review rate, pass rate, needless reviews per 10,000, silent errors."""
    points = zip(brute.levels(rows), brute.working_points(rows), strict=True)
    allowed = [level for level, (_, _, silent) in points if float(1 - silent) >= reliability]
    threshold = min(allowed, default=math.inf)
    passed, total = brute.accepted(rows, threshold), brute.weight_of(rows)
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


@examples(80)
@given(row_cases(weights=("none", "integer"), losses=("zero_one", "dyadic")), RELIABILITY)
def test_the_plan_is_its_definition(case, reliability):
    result = of_rows(metrics.review_at_reliability, case, reliability=reliability)
    assert_close(numbers(result), plan(case.rows, reliability))
    assert result.reliability == reliability


@pytest.mark.parametrize("n", [10, 30, 100, 1000])
def test_a_rate_of_silent_errors_that_is_just_reached_is_allowed(n):
    """1 - k/n of all rows: the share that users write rounds."""
    loss = np.where(np.arange(n) % 2, 1.0, 0.0)
    case = brute.RowCase(loss, np.linspace(1, 0.5, n), None)
    for k in range(n // 2):
        result = of_rows(metrics.review_at_reliability, case, reliability=1 - k / n)
        assert round(result.silent_errors * n) == k


def test_a_plan_reads_as_a_sentence():
    plan = metrics.review_at_reliability([0, 1, 1, 0], [0.1, 0.9, 0.6, 0.7], reliability=0.9)
    assert str(plan).startswith("Review 50 % of the rows, those with a confidence below 0.9,")
    assert "66.67 % of the right answers pass, 2500 of 10,000 rows" in str(plan)
