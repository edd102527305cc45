"""Calibration errors over bins against loops over rows in exact fractions."""

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

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
