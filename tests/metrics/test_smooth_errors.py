"""Calibration errors without bins: direct summation, loops in fractions, an own isotonic fit."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import bisect
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss

from skselect import metrics
from tests import brute
from tests.brute import (
    RowCase,
    assert_close,
    examples,
    of_probabilities,
    of_rows,
    proba_cases,
    row_cases,
)

TRUTH, PROBA = [0, 1, 1, 0], [0.125, 0.875, 0.375, 0.75]


# Definitions, slowly ---------------------------------------------------------------------


def smoothed(case, width, mesh):
    """Add up a Gaussian bump for each residual and for each of its mirror images."""
    weight = np.ones(len(case.loss)) if case.weight is None else case.weight
    share = weight * (1 - case.loss - case.confidence) / weight.sum()
    value = np.zeros_like(mesh)
    reach = math.ceil(4 * width) + 1
    for r, c in zip(share, case.confidence, strict=True):
        for k in range(-reach, reach + 1):
            for image in (2 * k + c, 2 * k - c):
                value += r * np.exp(-0.5 * ((mesh - image) / width) ** 2)
    return value / (width * math.sqrt(2 * math.pi))


def smooth_ece(case):
    """Bisect for the width that equals the integral of the smoothed residuals."""

    def excess(width):
        cells = max(2000, math.ceil(20 / width))
        mesh = (np.arange(cells) + 0.5) / cells
        return np.mean(np.abs(smoothed(case, width, mesh))) - width

    return bisect(excess, 1e-4, 1.5, xtol=1e-7)


def cumulative_gaps(rows):
    """Return the sum of a - c over the rows up to each confidence, over all, with 0 first."""
    gaps = [Fraction(0)]
    for level in reversed(brute.levels(rows)):
        below = [row for row in rows if row.confidence <= level]
        gaps.append(sum(row.weight * (1 - row.loss - row.confidence) for row in below))
    return [gap / brute.weight_of(rows) for gap in gaps]


def largest_interval_gap(rows):
    """Return the largest |sum of a - c| over rows with confidences in any interval."""
    best, levels = Fraction(0), brute.levels(rows)
    for low in levels:
        for high in levels:
            inside = [row for row in rows if low <= row.confidence <= high]
            gap = sum((row.weight * (1 - row.loss - row.confidence) for row in inside), Fraction(0))
            best = max(best, abs(gap))
    return best / brute.weight_of(rows)


def isotonic(rows):
    """Return the increasing fit at each confidence by max-min over intervals of levels."""
    ascending = brute.levels(rows)[::-1]

    def accuracy(low, high):
        inside = [row for row in rows if low <= row.confidence <= high]
        return 1 - brute.weighted_loss(inside) / brute.weight_of(inside)

    means = {
        (low, high): accuracy(low, high) for low in ascending for high in ascending if low <= high
    }
    return {
        level: max(
            min(means[low, high] for high in ascending if high >= level)
            for low in ascending
            if low <= level
        )
        for level in ascending
    }


def isotonic_distance(rows):
    fit = isotonic(rows)
    total = sum(row.weight * abs(row.confidence - fit[row.confidence]) for row in rows)
    return total / brute.weight_of(rows)


# Smooth calibration error ----------------------------------------------------------------


@examples(12)
@given(row_cases(max_rows=12))
def test_smooth_error_is_the_fixed_point_of_direct_summation(case):
    if any(cumulative_gaps(case.rows)):
        actual = of_rows(metrics.smooth_calibration_error, case)
        if actual > 2e-3:  # where direct summation on a mesh is affordable
            assert abs(actual - smooth_ece(case)) < 1e-5


@pytest.mark.parametrize("n", [300, 3000])
def test_smooth_error_of_nearly_calibrated_rows(n):
    rng = np.random.default_rng(n)
    confidence = rng.choice(rng.uniform(0.5, 1, 40), n)
    case = RowCase((rng.random(n) > confidence).astype(float), confidence, None)
    levels = np.unique(confidence)
    pooled = RowCase(
        np.array([case.loss[confidence == c].mean() for c in levels]), levels,
        np.array([np.sum(confidence == c) for c in levels], float),
    )  # fmt: skip
    expected = smooth_ece(pooled)
    assert abs(of_rows(metrics.smooth_calibration_error, case) - expected) < 1e-5
    assert abs(of_rows(metrics.smooth_calibration_error, pooled) - expected) < 1e-5


@pytest.mark.parametrize("apart", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7])
@pytest.mark.parametrize("place", [0.5, 0.50003, 0.50007])
def test_an_error_and_a_right_answer_close_together(place, apart):
    """The bumps cross where r_0 phi((x - c_0)/s) = r_1 phi((x - c_1)/s); narrow ones are hard."""
    c = np.array([place, place + apart])
    r = np.array([c[0] / 2, (1 - c[1]) / 2])

    def excess(width):
        crossing = c.mean() + width**2 / apart * math.log(r[0] / r[1])
        below = norm.cdf((crossing - c) / width)
        return abs(r[0] * below[0] - r[1] * below[1]) + abs(
            r[1] * (1 - below[1]) - r[0] * (1 - below[0])
        ) - width  # fmt: skip

    actual = of_rows(metrics.smooth_calibration_error, RowCase(np.array([1.0, 0.0]), c, None))
    assert abs(actual - bisect(excess, 1e-7, 1, xtol=1e-12)) < 3e-5


@pytest.mark.parametrize("confidence", [0.0, 1e-9, 0.1234567, 0.5, 0.9999, 1.0])
def test_residuals_of_one_sign_add_up_to_their_mean(confidence):
    """Smoothing moves mass and loses none, so that the width does not matter."""
    case = RowCase(np.ones(3), np.array([confidence, 0.25, 0.75]), None)
    actual = of_rows(metrics.smooth_calibration_error, case)
    assert_close(actual, (confidence + 1) / 3, rel=1e-8)


def test_smooth_error_of_no_residuals_is_zero():
    assert metrics.smooth_calibration_error([0, 1], [[1.0, 0.0], [0.0, 1.0]]) == 0.0
    actual = metrics.smooth_calibration_error([0, 1], [[0.5, 0.5]] * 2)
    assert actual == 0.0
    y_true = np.repeat([0, 1], [3, 7])
    assert abs(metrics.smooth_calibration_error(y_true, np.full(10, 0.7))) < 1e-8


def test_the_largest_smooth_error_is_one():
    assert_close(metrics.smooth_calibration_error([1], [[1.0, 0.0]], labels=[0, 1]), 1, rel=1e-8)


# Cumulative errors -----------------------------------------------------------------------


@examples(80)
@given(row_cases())
def test_cumulative_errors_are_their_definitions(case):
    gaps = cumulative_gaps(case.rows)
    assert_close(of_rows(metrics.ecce_mad, case), max(map(abs, gaps)))
    assert_close(of_rows(metrics.ecce_r, case), max(gaps) - min(gaps))


@examples(30)
@given(row_cases(max_rows=20))
def test_the_range_is_the_largest_gap_of_an_interval(case):
    assert_close(of_rows(metrics.ecce_r, case), largest_interval_gap(case.rows))


@examples(40)
@given(proba_cases())
def test_cumulative_errors_of_probabilities(case):
    gaps = cumulative_gaps(case.rows())
    assert_close(of_probabilities(metrics.ecce_mad, case), max(map(abs, gaps)))
    assert_close(of_probabilities(metrics.ecce_r, case), max(gaps) - min(gaps))


# Isotonic distance -----------------------------------------------------------------------


@examples(40)
@given(row_cases(max_rows=14))
def test_isotonic_distance_is_its_definition(case):
    actual = of_rows(metrics.isotonic_calibration_distance, case)
    assert_close(actual, isotonic_distance(case.rows))


@examples(40)
@given(proba_cases())
def test_scikit_learn_agrees_about_the_isotonic_fit(case):
    c = case.y_proba.max(axis=1)
    right = (case.y_proba.argmax(axis=1) == case.y_true).astype(float)
    weight = np.ones(len(c)) if case.weight is None else case.weight
    exists = weight > 0
    c, right, weight = c[exists], right[exists], weight[exists]
    fit = IsotonicRegression().fit(c, right, weight).predict(c)
    actual = of_probabilities(metrics.isotonic_calibration_distance, case)
    assert_close(actual, np.average(np.abs(c - fit), weights=weight), rel=1e-9)


# Brier -----------------------------------------------------------------------------------


@examples(60)
@given(row_cases())
def test_brier_is_its_definition(case):
    rows = case.rows
    total = sum(row.weight * (row.confidence - (1 - row.loss)) ** 2 for row in rows)
    assert_close(of_rows(metrics.top_label_brier_score, case), total / brute.weight_of(rows))


@examples(40)
@given(proba_cases())
def test_scikit_learn_agrees_about_brier(case):
    right = case.y_proba.argmax(axis=1) == case.y_true
    confidence = case.y_proba.max(axis=1)
    expected = brier_score_loss(right, confidence, sample_weight=case.weight, pos_label=True)
    assert_close(of_probabilities(metrics.top_label_brier_score, case), expected)


# Known values and relations --------------------------------------------------------------


def test_known_values():
    # Ascending: .625 wrong, .75 wrong, .875 right twice: gaps -.625 -.75 .125 .125.
    assert metrics.ecce_mad(TRUTH, PROBA) == 1.375 / 4
    assert metrics.ecce_r(TRUTH, PROBA) == 1.375 / 4
    # The fit is 0 0 1 1.
    assert metrics.isotonic_calibration_distance(TRUTH, PROBA) == 1.625 / 4
    expected = (0.625**2 + 0.75**2 + 2 * 0.125**2) / 4
    assert_close(metrics.top_label_brier_score(TRUTH, PROBA), expected)


@pytest.mark.parametrize(
    "name",
    ["smooth_calibration_error", "ecce_mad", "ecce_r", "isotonic_calibration_distance",
     "top_label_brier_score"],
)  # fmt: skip
def test_all_right_all_wrong_and_single_rows(name):
    error = getattr(metrics, name)
    power = 2 if name == "top_label_brier_score" else 1
    for y_true, gap in [([0], 0.25), ([1], 0.75), ([0, 0], 0.25), ([1, 1], 0.75)]:
        value = error(y_true, [[0.75, 0.25]] * len(y_true), labels=[0, 1])
        assert_close(value, gap**power, rel=1e-8)


@examples(30)
@given(row_cases(weights=("none", "integer")))
def test_the_errors_bound_one_another(case):
    """No interval has a larger gap than the range; all bound the gap of the means."""
    gaps = [abs(b - a) for a, b in pairwise(cumulative_gaps(case.rows))]
    assert of_rows(metrics.ecce_r, case) >= float(max(gaps)) - 1e-12
    assert of_rows(metrics.ecce_mad, case) <= of_rows(metrics.ecce_r, case) + 1e-12
    assert of_rows(metrics.ecce_r, case) <= 2 * of_rows(metrics.ecce_mad, case) + 1e-12
    one = of_rows(metrics.expected_calibration_error, case, n_bins=1)
    assert of_rows(metrics.ecce_mad, case) >= one - 1e-12
    assert of_rows(metrics.smooth_calibration_error, case) >= one - 1e-6
    assert of_rows(metrics.isotonic_calibration_distance, case) >= one - 1e-12


# Bad input -------------------------------------------------------------------------------

NAMES = ["smooth_calibration_error", "ecce_mad", "ecce_r", "isotonic_calibration_distance",
         "top_label_brier_score"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "confidence", [[1.5, 0.2, 0.3, 0.4], [-0.5, 0.2, 0.3, 0.4], lambda p: -p[:, 0]]
)
def test_confidences_that_are_no_probabilities_are_refused(name, confidence):
    with pytest.raises(ValueError, match=r"confidences in \[0, 1\]"):
        getattr(metrics, name)(TRUTH, PROBA, confidence=confidence)
