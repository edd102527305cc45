"""Calibration errors, with bins and without, against loops over rows in exact fractions."""

import math
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import bisect
from scipy.stats import binom, norm
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss

from skselect import metrics
from skselect.metrics import expected_calibration_error, reliability_curve
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
STRATEGIES = ["uniform", "quantile"]
BINS = st.sampled_from([1, 2, 5, 10, 15, 40])


# Definitions, slowly ---------------------------------------------------------------------


def quantile(rows, share):
    """Return the smallest confidence such that rows up to it weigh at least this share."""
    return min(
        level
        for level in brute.levels(rows)
        if brute.weight_of([row for row in rows if row.confidence <= level])
        >= share * brute.weight_of(rows)
    )


def bins(rows, n_bins, strategy):
    """Return the rows of each bin that holds any; bins are closed on the right."""
    shares = [Fraction(k, n_bins) for k in range(1, n_bins)]
    if strategy == "uniform":
        edges = [k / n_bins for k in range(1, n_bins)]  # an edge is a float, as users see it
    else:
        edges = [quantile(rows, share) for share in shares]
    filled = {}
    for row in rows:
        filled.setdefault(sum(edge < row.confidence for edge in edges), []).append(row)
    return list(filled.values())


def gap(rows):
    """Return the weighted sum of accuracy less confidence."""
    return sum((row.weight * (1 - row.loss - row.confidence) for row in rows), Fraction(0))


def ece(rows, n_bins, strategy):
    total = sum((abs(gap(part)) for part in bins(rows, n_bins, strategy)), Fraction(0))
    return total / brute.weight_of(rows)


def mce(rows, n_bins, strategy):
    return max(abs(gap(part)) / brute.weight_of(part) for part in bins(rows, n_bins, strategy))


def debiased_square(rows, n_bins, strategy):
    """Return the sum over bins of n_b/n [(a - c)^2 - a (1 - a)/(n_b - 1)], 0/1 losses."""
    total = Fraction(0)
    for part in bins(rows, n_bins, strategy):
        size = brute.weight_of(part)
        if size > 1:
            accuracy = 1 - brute.weighted_loss(part) / size
            scatter = accuracy * (1 - accuracy) / (size - 1)
            total += size * ((gap(part) / size) ** 2 - scatter)
    return total / brute.weight_of(rows)


# Definitions -----------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
@examples(60)
@given(case=row_cases(weights=("none", "integer")), n_bins=BINS)
def test_ece_and_mce_are_their_definitions(strategy, case, n_bins):
    options = {"n_bins": n_bins, "strategy": strategy}
    actual = of_rows(metrics.expected_calibration_error, case, **options)
    assert_close(actual, ece(case.rows, n_bins, strategy))
    actual = of_rows(metrics.maximum_calibration_error, case, **options)
    assert_close(actual, mce(case.rows, n_bins, strategy))


@pytest.mark.parametrize("strategy", STRATEGIES)
@examples(40)
@given(case=proba_cases())
def test_ece_and_mce_of_probabilities_and_real_weights(strategy, case):
    actual = of_probabilities(metrics.expected_calibration_error, case, strategy=strategy)
    assert_close(actual, ece(case.rows(), 15, strategy))
    actual = of_probabilities(metrics.maximum_calibration_error, case, strategy=strategy)
    assert_close(actual, mce(case.rows(), 15, strategy))


@pytest.mark.parametrize("strategy", STRATEGIES)
@examples(30)
@given(case=proba_cases(max_rows=30), n_bins=BINS)
def test_classwise_is_the_mean_over_classes(strategy, case, n_bins):
    table = case.y_proba
    errors = []
    for k in case.labels:
        rows = brute.rows_of(case.y_true != k, table[:, k], case.weight)
        errors.append(ece(rows, n_bins, strategy))
    options = {"n_bins": n_bins, "strategy": strategy}
    actual = of_probabilities(metrics.classwise_calibration_error, case, **options)
    assert_close(actual, sum(errors) / len(errors))


@pytest.mark.parametrize("strategy", STRATEGIES)
@examples(60)
@given(case=row_cases(weights=("none", "integer"), losses=("zero_one",)), n_bins=BINS)
def test_debiased_is_its_definition(strategy, case, n_bins):
    options = {"n_bins": n_bins, "strategy": strategy}
    actual = of_rows(metrics.debiased_calibration_error, case, **options)
    assert_close(actual**2, max(debiased_square(case.rows, n_bins, strategy), 0))


@pytest.mark.parametrize("strategy", STRATEGIES)
@examples(40)
@given(case=proba_cases())
def test_debiased_of_probabilities_and_real_weights(strategy, case):
    actual = of_probabilities(metrics.debiased_calibration_error, case, strategy=strategy)
    assert_close(actual**2, max(debiased_square(case.rows(), 15, strategy), 0), tiny=1e-11)


# Bins ------------------------------------------------------------------------------------


def test_known_values():
    # Confidences .875 .875 .625 .75, the last two wrong.
    def error(n_bins):
        return metrics.expected_calibration_error(TRUTH, PROBA, n_bins=n_bins)

    assert error(1) == error(2) == 1.125 / 4
    # (.5, .75] holds -.625 and -.75, (.75, 1] holds .125 twice.
    assert error(4) == (1.375 + 0.25) / 4
    assert metrics.maximum_calibration_error(TRUTH, PROBA, n_bins=4) == 1.375 / 2
    # p_1: .125 true 0, .375 true 1, .75 true 0, .875 true 1, a bin each. p_0 mirrors them, but
    # .125 and .25 share a bin, where a gap of .125 cancels.
    actual = metrics.classwise_calibration_error(TRUTH, PROBA, n_bins=4)
    assert_close(actual, (1.625 + 1.375) / 4 / 2)
    square = (0.28125**2 - 0.25 / 3, (2 * (0.6875**2) + 2 * 0.125**2) / 4)
    for n_bins, expected in [(1, max(square[0], 0)), (4, square[1])]:
        actual = metrics.debiased_calibration_error(TRUTH, PROBA, n_bins=n_bins, strategy="uniform")
        assert_close(actual**2, expected)


def test_bins_are_closed_on_the_right():
    # .5 belongs to (0, .5], .75 to (.5, 1]: two gaps that would cancel in one bin.
    y_proba = [[0.5, 0.25, 0.25], [0.75, 0.25, 0.0]]
    options = {"labels": [0, 1, 2], "n_bins": 2}
    assert metrics.expected_calibration_error([0, 1], y_proba, **options) == (0.5 + 0.75) / 2
    assert metrics.maximum_calibration_error([0, 1], y_proba, **options) == 0.75


def test_the_first_bin_holds_a_confidence_of_zero():
    options = {"labels": [0, 1], "confidence": [0.0, 0.1], "n_bins": 10}
    y_proba = [[1.0, 0.0]] * 2
    assert_close(metrics.expected_calibration_error([0, 0], y_proba, **options), (1 + 0.9) / 2)
    assert_close(metrics.maximum_calibration_error([0, 0], y_proba, **options), (1 + 0.9) / 2)


@pytest.mark.parametrize("n_bins", [3, 10, 15, 25, 49, 100, 200])
def test_a_confidence_at_an_edge_belongs_to_the_bin_below(n_bins):
    """Every edge k/n as a float, and its neighbours."""
    edges = np.arange(1, n_bins) / n_bins
    confidence = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1)])
    case = RowCase(np.arange(len(confidence)) % 2 * 1.0, confidence, None)
    actual = of_rows(metrics.expected_calibration_error, case, n_bins=n_bins)
    assert_close(actual, ece(case.rows, n_bins, "uniform"))


@pytest.mark.parametrize("n", [2, 7, 20, 30, 60])
def test_a_perfectly_calibrated_bin_has_no_error(n):
    y_true, y_proba = [0] * n + [1] * n, [[0.5, 0.5]] * (2 * n)
    assert metrics.expected_calibration_error(y_true, y_proba) == 0.0
    assert metrics.maximum_calibration_error(y_true, y_proba) == 0.0
    assert metrics.classwise_calibration_error(y_true, y_proba) == 0.0
    assert metrics.debiased_calibration_error(y_true, y_proba) == 0.0


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 0.7, 1e-3, 3.0])
def test_constant_weights_do_not_move_a_quantile(scale):
    for n, n_bins in product([10, 20, 30, 70], [2, 5, 10]):
        rng = np.random.default_rng(n)
        y_true, y_proba = rng.integers(0, 3, n), rng.dirichlet([1, 1, 1], n)
        options = {"labels": [0, 1, 2], "n_bins": n_bins, "strategy": "quantile"}
        for name in ["expected", "maximum", "classwise"]:
            error = getattr(metrics, f"{name}_calibration_error")
            scaled = error(y_true, y_proba, sample_weight=np.full(n, scale), **options)
            assert_close(scaled, error(y_true, y_proba, **options))


def test_quantile_bins_hold_equal_numbers_of_rows():
    # Sorted: .25 .375 | .625 .875, gaps -.25 .625 | .375 -.875.
    confidence, loss = [0.875, 0.25, 0.625, 0.375], np.array([1.0, 1.0, 0.0, 0.0])
    case = RowCase(loss, np.array(confidence), None)
    options = {"n_bins": 2, "strategy": "quantile"}
    assert of_rows(metrics.expected_calibration_error, case, **options) == (0.375 + 0.5) / 4
    assert of_rows(metrics.maximum_calibration_error, case, **options) == 0.25


@pytest.mark.parametrize("right", [True, False])
def test_a_single_row(right):
    y_true, y_proba = [0 if right else 1], [[0.75, 0.25]]
    expected = 0.25 if right else 0.75
    for name in ["expected", "maximum", "classwise"]:
        error = getattr(metrics, f"{name}_calibration_error")
        for strategy in STRATEGIES:
            assert error(y_true, y_proba, labels=[0, 1], strategy=strategy) == expected


# The debiased error ----------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "confidence"), [(0.7, 0.5), (0.3, 0.9)])
def test_what_is_subtracted_is_the_bias(rate, confidence):
    """Over all 2^8 outcomes of one bin the mean of the square is (rate - confidence)^2."""
    n, mean = 8, 0.0
    for k in range(n + 1):
        rows = brute.rows_of([0] * k + [1] * (n - k), [confidence] * n)
        chance = math.comb(n, k) * rate**k * (1 - rate) ** (n - k)
        square = float(debiased_square(rows, 1, "uniform"))
        mean += chance * square
        case = RowCase(np.array([0.0] * k + [1.0] * (n - k)), np.full(n, confidence), None)
        actual = of_rows(metrics.debiased_calibration_error, case, n_bins=1)
        assert_close(actual**2, max(square, 0))
    assert_close(mean, (rate - confidence) ** 2)


def test_bins_of_one_row_are_left_out():
    confidence, loss = np.array([0.125, 0.875, 0.875]), np.array([0.0, 1.0, 1.0])
    case = RowCase(loss, confidence, None)
    options = {"n_bins": 2, "strategy": "uniform"}
    actual = of_rows(metrics.debiased_calibration_error, case, **options)
    assert_close(actual, math.sqrt(2 / 3 * 0.875**2))
    alone = RowCase(np.zeros(1), np.array([0.5]), None)
    assert of_rows(metrics.debiased_calibration_error, alone) == 0.0


@pytest.mark.filterwarnings("ignore:sample_weight sums")
def test_the_order_of_weights_that_sum_to_one_does_not_matter():
    """A sum of .1, .2, .3, .4 is 1 or a little more, by its order."""
    confidence = np.array([0.25] * 4 + [0.75] * 3)
    loss = np.array([0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    weight = np.array([0.1, 0.2, 0.3, 0.4, 1.0, 1.0, 1.0])
    values = []
    for start in permutations(range(4)):
        order = [*start, 4, 5, 6]
        case = RowCase(loss[order], confidence[order], weight[order])
        options = {"n_bins": 2, "strategy": "uniform"}
        values.append(of_rows(metrics.debiased_calibration_error, case, **options))
    assert_close(values, [values[0]] * len(values))


def test_small_weights_warn_where_they_count_as_rows():
    with pytest.warns(UserWarning, match="sample_weight sums to 1"):
        metrics.debiased_calibration_error(TRUTH, PROBA, sample_weight=[0.25] * 4)


# Bad input -------------------------------------------------------------------------------

NAMES = ["expected_calibration_error", "maximum_calibration_error",
         "classwise_calibration_error", "debiased_calibration_error",
         "reliability_curve"]  # fmt: skip
BAD = {
    "no bins": ({"n_bins": 0}, "n_bins"),
    "half bins": ({"n_bins": 7.5}, "n_bins"),
    "bins as edges": ({"n_bins": [0, 0.5, 1]}, "n_bins"),
    "strategy": ({"strategy": "equal"}, "strategy"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("options", "argument"), BAD.values(), ids=BAD)
def test_a_bad_argument_is_named(name, options, argument):
    with pytest.raises(ValueError, match=argument):
        getattr(metrics, name)(TRUTH, PROBA, **options)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("classwise")])
@pytest.mark.parametrize(
    "confidence", [[1.5, 0.2, 0.3, 0.4], [-0.5, 0.2, 0.3, 0.4], lambda p: -p[:, 0]]
)
def test_confidences_that_are_no_probabilities_are_refused(name, confidence):
    with pytest.raises(ValueError, match=r"confidences in \[0, 1\]"):
        getattr(metrics, name)(TRUTH, PROBA, confidence=confidence)


def test_a_confidence_level_that_is_none_is_named():
    with pytest.raises(ValueError, match="confidence_level"):
        reliability_curve(TRUTH, PROBA, confidence_level=1.0)


@pytest.mark.parametrize("option", [{"confidence": "margin"}, {"loss": "zero_one"}], ids=str)
def test_class_probabilities_need_no_confidence_and_no_loss(option):
    with pytest.raises(TypeError, match=next(iter(option))):
        metrics.classwise_calibration_error(TRUTH, PROBA, **option)


# The reliability curve -------------------------------------------------------------------


def case(n=400, seed=0, decimals=None):
    rng = np.random.default_rng(seed)
    p = rng.beta(3, 1, n)
    if decimals is not None:
        p = p.round(decimals)
    return (rng.random(n) < p**1.3).astype(int), p


@pytest.mark.parametrize("weighted", [False, True])
def test_equal_widths_against_a_loop(weighted):
    y, p = case()
    weight = np.random.default_rng(1).integers(1, 4, 400) if weighted else np.ones(400)
    found = reliability_curve(
        y, p, n_bins=10, strategy="uniform", sample_weight=weight if weighted else None
    )
    confidence, right = np.maximum(p, 1 - p), (p > 0.5) == y
    rows = []
    for k in range(10):
        inside = (confidence > k / 10) & (confidence <= (k + 1) / 10)
        if inside.any():
            rows.append(
                [
                    np.average(confidence[inside], weights=weight[inside]),
                    np.average(right[inside], weights=weight[inside]),
                    weight[inside].sum() / weight.sum(),
                ]
            )
    np.testing.assert_allclose(found[["confidence", "accuracy", "share"]], rows)
    gap = np.sum(found["share"] * np.abs(found["accuracy"] - found["confidence"]))
    ece = expected_calibration_error(y, p, n_bins=10, sample_weight=weight if weighted else None)
    assert gap == pytest.approx(ece)
    assert found["low"].isna().all() == weighted


def test_bins_of_equal_weight_never_part_ties():
    y, p = case(decimals=1)
    found = reliability_curve(y, p, n_bins=7)
    values = np.unique(np.maximum(p, 1 - p))
    assert len(found) <= len(values)
    assert found["confidence"].is_monotonic_increasing
    assert found["share"].sum() == pytest.approx(1)
    fine = reliability_curve(*case(), n_bins=8)
    np.testing.assert_allclose(fine["share"], 1 / 8, atol=0.003)


def test_the_interval_is_exact():
    """At its ends the tails of the binomial law hold alpha/2 each."""
    found = reliability_curve(*case(60), n_bins=4, confidence_level=0.9)
    for row in found.itertuples():
        n = round(row.share * 60)
        k = round(row.accuracy * n)
        if k > 0:
            assert binom.sf(k - 1, n, row.low) == pytest.approx(0.05)
        if k < n:
            assert binom.cdf(k, n, row.high) == pytest.approx(0.05)
    sure = reliability_curve([1, 1], [0.9, 0.9])
    assert sure["high"].item() == 1.0
    assert sure["low"].item() == pytest.approx(0.025**0.5)
    wrong = reliability_curve([0, 0], [0.9, 0.9])
    assert wrong["low"].item() == 0.0


def test_constant_weights_count_rows_and_graded_losses_have_no_interval():
    y, p = case(50)
    plain = reliability_curve(y, p, n_bins=3)
    scaled = reliability_curve(y, p, n_bins=3, sample_weight=np.full(50, 2.5))
    np.testing.assert_allclose(scaled, plain)
    graded = reliability_curve(y, p, n_bins=3, loss=lambda t, q: 0.5 * (t != q))
    assert graded["low"].isna().all()
    assert np.all(graded["accuracy"] >= plain["accuracy"])


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


def test_known_values_without_bins():
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

SMOOTH = ["smooth_calibration_error", "ecce_mad", "ecce_r", "isotonic_calibration_distance",
         "top_label_brier_score"]  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize(
    "confidence", [[1.5, 0.2, 0.3, 0.4], [-0.5, 0.2, 0.3, 0.4], lambda p: -p[:, 0]]
)
def test_confidences_that_are_no_probabilities_are_refused_without_bins(name, confidence):
    with pytest.raises(ValueError, match=r"confidences in \[0, 1\]"):
        getattr(metrics, name)(TRUTH, PROBA, confidence=confidence)
