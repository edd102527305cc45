"""Calibration errors, with bins and without, against loops over rows in exact fractions."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import bisect
from scipy.stats import binom, norm

from skselect import RiskCoverageCurve, metrics
from skselect.metrics import reliability_curve
from skselect.metrics._evaluate import SPECS
from tests import brute
from tests.metrics import definitions

STRATEGIES = ["uniform", "quantile"]
# Bins ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bins", [3, 10, 15, 25, 49, 100, 200])
def test_a_confidence_at_an_edge_belongs_to_the_bin_below(n_bins):
    """Every edge k/n as a float, and its neighbours."""
    edges = np.arange(1, n_bins) / n_bins
    confidence = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1)])
    case = brute.RowCase(np.arange(len(confidence)) % 2 * 1.0, confidence, None)
    actual = brute.of_rows(metrics.expected_calibration_error, case, n_bins=n_bins)
    brute.assert_close(actual, definitions.ece(case.rows, n_bins, "uniform"))


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 0.7, 1e-3, 3.0])
def test_constant_weights_do_not_move_a_quantile(scale):
    for n, n_bins in product([10, 20, 30, 70], [2, 5, 10]):
        rng = np.random.default_rng(n)
        y_true, y_proba = rng.integers(0, 3, n), rng.dirichlet([1, 1, 1], n)
        options = {"labels": [0, 1, 2], "n_bins": n_bins, "strategy": "quantile"}
        for name in ["expected", "maximum", "classwise"]:
            error = getattr(metrics, f"{name}_calibration_error")
            scaled = error(y_true, y_proba, sample_weight=np.full(n, scale), **options)
            brute.assert_close(scaled, error(y_true, y_proba, **options))


# The debiased error ----------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "confidence"), [(0.7, 0.5), (0.3, 0.9)])
def test_what_is_subtracted_is_the_bias(rate, confidence):
    """Over all 2^8 outcomes of one bin the mean of the square is (rate - confidence)^2."""
    n, mean = 8, 0.0
    for k in range(n + 1):
        rows = brute.rows_of([0] * k + [1] * (n - k), [confidence] * n)
        chance = math.comb(n, k) * rate**k * (1 - rate) ** (n - k)
        square = float(definitions.debiased_square(rows, 1, "uniform"))
        mean += chance * square
        case = brute.RowCase(np.array([0.0] * k + [1.0] * (n - k)), np.full(n, confidence), None)
        actual = brute.of_rows(metrics.debiased_calibration_error, case, n_bins=1)
        brute.assert_close(actual**2, max(square, 0))
    brute.assert_close(mean, (rate - confidence) ** 2)


@pytest.mark.filterwarnings("ignore:sample_weight sums")
def test_the_order_of_weights_that_sum_to_one_does_not_matter():
    """A sum of .1, .2, .3, .4 is 1 or a little more, by its order."""
    confidence = np.array([0.25] * 4 + [0.75] * 3)
    loss = np.array([0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    weight = np.array([0.1, 0.2, 0.3, 0.4, 1.0, 1.0, 1.0])
    values = []
    for start in permutations(range(4)):
        order = [*start, 4, 5, 6]
        case = brute.RowCase(loss[order], confidence[order], weight[order])
        options = {"n_bins": 2, "strategy": "uniform"}
        values.append(brute.of_rows(metrics.debiased_calibration_error, case, **options))
    brute.assert_close(values, [values[0]] * len(values))


# The reliability curve -------------------------------------------------------------------


def case(n=400, seed=0, decimals=None):
    rng = np.random.default_rng(seed)
    p = rng.beta(3, 1, n)
    if decimals is not None:
        p = p.round(decimals)
    return (rng.random(n) < p**1.3).astype(int), p


@pytest.mark.parametrize("strategy", STRATEGIES)
@brute.examples(40)
@given(case=brute.row_cases(weights=("none", "integer")))
def test_a_reliability_curve_has_a_row_for_each_bin(strategy, case):
    rows = case.rows
    found = brute.of_rows(reliability_curve, case, n_bins=10, strategy=strategy)
    parts = sorted(definitions.bins(rows, 10, strategy), key=lambda part: part[0].confidence)
    for part, row in zip(parts, found.itertuples(), strict=True):
        size = brute.weight_of(part)
        confidence = sum(r.weight * r.confidence for r in part) / size
        expected = [confidence, definitions.right_weight(part) / size, size / brute.weight_of(rows)]
        brute.assert_close([row.confidence, row.accuracy, row.share], expected)
    counted = case.weight is None or len(set(case.weight) - {0.0}) == 1
    exact = counted and set(case.loss) <= {0.0, 1.0}
    assert found["low"].notna().all() == found["low"].notna().any() == exact


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


# Smooth calibration error ----------------------------------------------------------------


@brute.examples(12)
@given(brute.row_cases(max_rows=12))
def test_smooth_error_is_the_fixed_point_of_direct_summation(case):
    if any(definitions.cumulative_gaps(case.rows)):
        actual = brute.of_rows(metrics.smooth_calibration_error, case)
        if actual > 2e-3:  # where direct summation on a mesh is affordable
            assert abs(actual - smooth_ece(case)) < 1e-5


@pytest.mark.parametrize("n", [300, 3000])
def test_smooth_error_of_nearly_calibrated_rows(n):
    rng = np.random.default_rng(n)
    confidence = rng.choice(rng.uniform(0.5, 1, 40), n)
    case = brute.RowCase((rng.random(n) > confidence).astype(float), confidence, None)
    levels = np.unique(confidence)
    pooled = brute.RowCase(
        np.array([case.loss[confidence == c].mean() for c in levels]), levels,
        np.array([np.sum(confidence == c) for c in levels], float),
    )  # fmt: skip
    expected = smooth_ece(pooled)
    assert abs(brute.of_rows(metrics.smooth_calibration_error, case) - expected) < 1e-5
    assert abs(brute.of_rows(metrics.smooth_calibration_error, pooled) - expected) < 1e-5


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

    actual = brute.of_rows(
        metrics.smooth_calibration_error, brute.RowCase(np.array([1.0, 0.0]), c, None)
    )
    assert abs(actual - bisect(excess, 1e-7, 1, xtol=1e-12)) < 3e-5


@pytest.mark.parametrize("places", [1, 3, 17])
@pytest.mark.parametrize("name", ["ece", "mce"])
def test_bins_add_up_to_the_same_bits_in_any_order_and_from_a_curve(name, places, rng):
    n = 40_000
    p = np.round(rng.random(n), places)
    y = (rng.random(n) < p).astype(int)
    function, kernel = SPECS[name].function, SPECS[name].kernel
    order = rng.permutation(n)
    found = function(y, p)
    assert function(y[order], p[order]) == kernel(RiskCoverageCurve.from_proba(y, p)) == found
