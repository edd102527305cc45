"""Metrics that read the confidence as a probability, against their definitions."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skselect import metrics
from tests import brute
from tests.brute import assert_close, examples, proba_cases, row_cases

NAN = float("nan")
TRUTH, PROBA = [0, 1, 1, 0], [0.125, 0.875, 0.375, 0.75]
NAMES = ["cw_accuracy_score", "csr_score", "expected_calibration_error"]


def of_rows(metric, case, **options):
    """Score bare losses and confidences through the public function."""
    y_proba = np.tile([1.0, 0.0], (len(case.loss), 1))
    return metric(
        np.zeros(len(case.loss)), y_proba, labels=[0, 1], confidence=case.confidence,
        loss=lambda a, b: case.loss, sample_weight=case.weight, **options,
    )  # fmt: skip


# Definitions -----------------------------------------------------------------------------


@examples(100)
@given(proba_cases())
def test_cw_accuracy_is_its_definition(case):
    actual = metrics.cw_accuracy_score(case.y_true, case.y_proba, **case.options)
    assert_close(actual, brute.cw_accuracy(case.rows()))


@examples(100)
@given(row_cases())
def test_cw_accuracy_takes_any_loss_and_confidence(case):
    if not any(row.confidence for row in case.rows):
        return  # nan, tested below
    assert_close(of_rows(metrics.cw_accuracy_score, case), brute.cw_accuracy(case.rows))


@pytest.mark.parametrize("eps", [0.0, 2.0**-27, 0.25])
@examples(80)
@given(case=row_cases())
def test_csr_is_its_definition(eps, case):
    assert_close(of_rows(metrics.csr_score, case, eps=eps), brute.csr(case.rows, eps))


@examples(80)
@given(proba_cases())
def test_csr_clips_at_a_hundred_millionth_by_default(case):
    actual = metrics.csr_score(case.y_true, case.y_proba, **case.options)
    assert_close(actual, brute.csr(case.rows(), 1e-8), rel=1e-7)


def test_csr_of_a_certain_error_is_one_over_eps():
    assert_close(metrics.csr_score([1], [[1.0, 0.0]], labels=[0, 1]), 1e8)
    assert_close(metrics.csr_score([1], [[1.0, 0.0]], labels=[0, 1], eps=1e-3), 1e3)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@examples(100)
@given(case=row_cases(weights=("none", "integer")), n_bins=st.sampled_from([1, 2, 5, 10, 15, 40]))
def test_ece_is_its_definition(strategy, case, n_bins):
    actual = of_rows(metrics.expected_calibration_error, case, n_bins=n_bins, strategy=strategy)
    assert_close(actual, brute.ece(case.rows, n_bins, strategy))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@examples(60)
@given(case=proba_cases())
def test_ece_of_probabilities_and_real_weights(strategy, case):
    actual = metrics.expected_calibration_error(
        case.y_true, case.y_proba, strategy=strategy, **case.options
    )
    assert_close(actual, brute.ece(case.rows(), 15, strategy))


# Known values and relations ---------------------------------------------------------------


def test_known_values():
    # Confidences .875 .875 .625 .75, the last two wrong.
    assert metrics.cw_accuracy_score(TRUTH, PROBA) == 1.75 / 3.125
    assert_close(metrics.csr_score(TRUTH, PROBA), (1 / 0.375 + 4) / 4)
    assert metrics.expected_calibration_error(TRUTH, PROBA, n_bins=1) == 1.125 / 4
    assert metrics.expected_calibration_error(TRUTH, PROBA, n_bins=2) == 1.125 / 4
    # (.5, .75] holds -.625 and -.75, (.75, 1] holds .125 twice.
    assert metrics.expected_calibration_error(TRUTH, PROBA, n_bins=4) == (1.375 + 0.25) / 4


def test_bins_are_closed_on_the_right():
    # .5 belongs to (0, .5], .75 to (.5, 1]: two gaps that would cancel in one bin.
    y_proba = [[0.5, 0.25, 0.25], [0.75, 0.25, 0.0]]
    options = {"labels": [0, 1, 2], "n_bins": 2}
    assert metrics.expected_calibration_error([0, 1], y_proba, **options) == (0.5 + 0.75) / 2


def test_the_first_bin_holds_a_confidence_of_zero():
    actual = metrics.expected_calibration_error(
        [0, 0], [[1.0, 0.0]] * 2, labels=[0, 1], confidence=[0.0, 0.1], n_bins=10
    )
    assert_close(actual, (1 + 0.9) / 2)


@pytest.mark.parametrize("n", [2, 7, 20, 30, 60])
def test_a_perfectly_calibrated_bin_has_no_error(n):
    y_true = [0] * n + [1] * n
    assert metrics.expected_calibration_error(y_true, [[0.5, 0.5]] * (2 * n)) == 0.0


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 0.7, 1e-3, 3.0])
def test_constant_weights_do_not_move_a_quantile(scale):
    for n, n_bins in product([10, 20, 30, 70], [2, 5, 10]):
        rng = np.random.default_rng(n)
        y_true, y_proba = rng.integers(0, 3, n), rng.dirichlet([1, 1, 1], n)
        options = {"labels": [0, 1, 2], "n_bins": n_bins, "strategy": "quantile"}
        plain = metrics.expected_calibration_error(y_true, y_proba, **options)
        weight = np.full(n, scale)
        scaled = metrics.expected_calibration_error(
            y_true, y_proba, sample_weight=weight, **options
        )
        assert_close(scaled, plain)


def test_quantile_bins_hold_equal_numbers_of_rows():
    # Sorted: .25 .375 | .625 .875, gaps -.25 .625 | .375 -.875.
    confidence, loss = [0.875, 0.25, 0.625, 0.375], np.array([1.0, 1.0, 0.0, 0.0])
    case = brute.RowCase(loss, np.array(confidence), None)
    actual = of_rows(metrics.expected_calibration_error, case, n_bins=2, strategy="quantile")
    assert actual == (0.375 + 0.5) / 4


def test_an_unclipped_certain_error_is_infinite():
    assert metrics.csr_score([1], [[1.0, 0.0]], labels=[0, 1], eps=0.0) == math.inf


def test_an_unclipped_certain_error_of_weight_zero_does_not_exist():
    options = {"eps": 0.0, "sample_weight": [0, 1], "labels": [0, 1]}
    assert metrics.csr_score([1, 1], [[1.0, 0.0], [0.75, 0.25]], **options) == 4.0


def test_csr_is_at_most_one_in_the_mean_for_honest_confidences():
    """E[1(wrong)/(1 - c)] = 1 where P(right) = c."""
    levels = [Fraction(1, 2), Fraction(3, 4), Fraction(7, 8)]
    loss = [1.0] * 4 + [0.0] * 4 + [1.0] * 2 + [0.0] * 6 + [1.0] + [0.0] * 7
    confidence = np.repeat([float(c) for c in levels], 8)
    case = brute.RowCase(np.array(loss), confidence, None)
    assert_close(of_rows(metrics.csr_score, case), 1.0)


def test_no_errors():
    y_true, y_proba = [0, 1], [[0.75, 0.25], [0.0, 1.0]]
    assert metrics.csr_score(y_true, y_proba) == metrics.csr_score(y_true, y_proba, eps=0.0) == 0.0
    assert metrics.cw_accuracy_score(y_true, y_proba) == 1.0


def test_all_errors():
    assert metrics.cw_accuracy_score([1, 0], [[0.75, 0.25], [0.0, 1.0]]) == 0.0


def test_cw_accuracy_without_any_confidence_is_nan_with_a_warning():
    with pytest.warns(UserWarning, match="cw_accuracy"):
        value = metrics.cw_accuracy_score([0, 1], [[0.5, 0.5]] * 2, confidence="margin")
    assert math.isnan(value)


# Bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "confidence", [[1.5, 0.2, 0.3, 0.4], [-0.5, 0.2, 0.3, 0.4], lambda p: -p[:, 0]]
)
def test_confidences_that_are_no_probabilities_are_refused(name, confidence):
    with pytest.raises(ValueError, match=r"confidences in \[0, 1\]"):
        getattr(metrics, name)(TRUTH, PROBA, confidence=confidence)


BAD = {
    "eps negative": ("csr_score", {"eps": -1e-9}, "eps"),
    "eps one half": ("csr_score", {"eps": 0.5}, "eps"),
    "eps nan": ("csr_score", {"eps": NAN}, "eps"),
    "eps text": ("csr_score", {"eps": "small"}, "eps"),
    "no bins": ("expected_calibration_error", {"n_bins": 0}, "n_bins"),
    "half bins": ("expected_calibration_error", {"n_bins": 7.5}, "n_bins"),
    "bins as edges": ("expected_calibration_error", {"n_bins": [0, 0.5, 1]}, "n_bins"),
    "strategy": ("expected_calibration_error", {"strategy": "equal"}, "strategy"),
}


@pytest.mark.parametrize(("name", "options", "argument"), BAD.values(), ids=BAD)
def test_a_bad_argument_is_named(name, options, argument):
    with pytest.raises(ValueError, match=argument):
        getattr(metrics, name)(TRUTH, PROBA, **options)
