"""TCE against a plain reading of PAVA-BC, with scipy's binomial test for every row."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from skselect import metrics
from skselect.metrics._tce import binomial_p_values
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


# Definition, slowly ----------------------------------------------------------------------


def accuracy(rows):
    return 1 - brute.weighted_loss(rows) / brute.weight_of(rows)


def pava_bc(rows, n_min, n_max):
    """Return the bins: lists of rows. Rows of equal confidence count as one piece.

    The last pieces that hold n_min rows together are set aside. The others are taken in
    ascending order; after each, the last two bins become one while they have at most n_min
    rows together, or at most n_max and an accuracy that does not rise. What was set aside is
    a bin of its own, or part of the last one if that keeps to n_max.
    """
    pieces = [[r for r in rows if r.confidence == c] for c in reversed(brute.levels(rows))]
    aside = []
    while pieces and brute.weight_of(aside) < n_min:
        aside = pieces.pop() + aside
    bins = []
    for piece in pieces:
        bins.append(piece)
        while len(bins) > 1:
            size = brute.weight_of(bins[-2] + bins[-1])
            falls = accuracy(bins[-2]) >= accuracy(bins[-1])
            if size <= n_min or (size <= n_max and falls):
                bins[-2:] = [bins[-2] + bins[-1]]
            else:
                break
    if bins and brute.weight_of(bins[-1] + aside) <= n_max:
        bins[-1] = bins[-1] + aside
    else:
        bins.append(aside)
    return bins


def tce(rows, alpha=0.05, n_min=10, n_max=1000):
    refuted = Fraction(0)
    for part in pava_bc(rows, n_min, n_max):
        n = int(brute.weight_of(part))
        k = int(n - brute.weighted_loss(part))
        for row in part:
            if binomtest(k, n, float(row.confidence)).pvalue <= alpha:
                refuted += row.weight
    return 100 * refuted / brute.weight_of(rows)


# Definition ------------------------------------------------------------------------------

LIMITS = st.sampled_from([(10, 1000), (1, 1000), (1, 1), (5, 5), (3, 12), (10, 30), (60, 60)])


@examples(60)
@given(
    row_cases(weights=("none", "integer"), losses=("zero_one",)),
    LIMITS,
    st.sampled_from([0.05, 0.3]),
)
def test_tce_is_its_definition(case, limits, alpha):
    options = {"alpha": alpha, "n_min": limits[0], "n_max": limits[1]}
    assert_close(of_rows(metrics.tce_score, case, **options), tce(case.rows, **options))


@examples(30)
@given(proba_cases(weights=("none", "integer")))
def test_tce_of_probabilities(case):
    assert_close(of_probabilities(metrics.tce_score, case), tce(case.rows()))


@pytest.mark.parametrize("levels", [None, 30])
def test_many_rows(levels):
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 400)
    confidence = confidence if levels is None else np.round(confidence * levels) / levels
    loss = (rng.random(400) > confidence**2).astype(float)
    case = RowCase(loss, np.minimum(confidence, 1), None)
    for options in [{}, {"n_max": 50}, {"n_min": 30, "n_max": 30}, {"alpha": 1e-3}]:
        actual = of_rows(metrics.tce_score, case, **options)
        assert_close(actual, tce(case.rows, **options))
    assert 0 < of_rows(metrics.tce_score, case) < 100


def test_known_values():
    # One bin of four, half of them right: only a confidence beyond .95 or so is refuted.
    assert metrics.tce_score(TRUTH, PROBA) == 0.0
    y_true, y_proba = np.repeat([0, 1], [40, 60]), np.repeat([0.6, 0.9], 50)
    # .6 was right in 10 of 50, .9 in 50 of 50: two bins, the first refuted.
    assert metrics.tce_score(y_true, y_proba) == 50.0
    assert binomtest(50, 50, 0.9).pvalue < 0.05  # one bin of both would refute .9 as well
    assert metrics.tce_score(y_true, y_proba, n_min=50) == 50.0


@pytest.mark.parametrize("right", [True, False])
def test_a_single_row(right):
    y_true = [0 if right else 1]
    assert metrics.tce_score(y_true, [[0.75, 0.25]], labels=[0, 1]) == 0.0
    certain = metrics.tce_score(y_true, [[1.0, 0.0]], labels=[0, 1])
    assert certain == (0.0 if right else 100.0)


def test_few_rows_are_one_bin():
    """Ten rows or fewer are all set aside."""
    for n in [2, 9, 10]:
        case = RowCase(np.ones(n), np.linspace(0.3, 0.9, n), None)
        assert_close(of_rows(metrics.tce_score, case), tce(case.rows))
        assert len(pava_bc(case.rows, 10, 1000)) == 1


# The binomial test -----------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 101])
def test_every_count_has_the_p_value_of_scipy(n):
    rates = [0.0, 1.0, 0.5, 0.1, 0.25, 1 / 3, 0.9, 0.999, 1e-12, 1 - 1e-12, 1e-300]
    rates += [k / n for k in range(0, n + 1, max(1, n // 7))]  # where k = n p
    k, p = (part.ravel() for part in np.meshgrid(np.arange(n + 1.0), rates))
    actual = binomial_p_values(k, np.full(len(k), float(n)), p)
    expected = [binomtest(int(a), n, float(b)).pvalue for a, b in zip(k, p, strict=True)]
    assert_close(actual, expected, rel=1e-9, tiny=1e-14)


@examples(100)
# scipy itself warns about an overflow at subnormal rates.
@given(st.integers(1, 3000), st.floats(0, 1), st.floats(0, 1, allow_subnormal=False))
def test_any_count_has_the_p_value_of_scipy(n, share, rate):
    k = round(share * n)
    actual = binomial_p_values(np.array([float(k)]), np.array([float(n)]), np.array([rate]))
    assert_close(actual, binomtest(k, n, rate).pvalue, rel=1e-7, tiny=1e-14)


@pytest.mark.parametrize("n", [10, 64, 1000])
def test_counts_that_are_equally_likely_count_on_both_sides(n):
    """At a rate of one half the law is symmetric."""
    k = np.arange(n + 1.0)
    actual = binomial_p_values(k, np.full(n + 1, float(n)), np.full(n + 1, 0.5))
    assert_close(actual, actual[::-1], rel=1e-9)
    expected = [binomtest(int(a), n, 0.5).pvalue for a in k]
    assert_close(actual, expected, rel=1e-8)


# Rows and weights, bad input ----------------------------------------------------------------


def test_tied_rows_may_come_in_any_order():
    rng = np.random.default_rng(3)
    confidence = rng.choice([0.5, 0.6, 0.7, 0.8, 0.9], 80)
    loss = (rng.random(80) > confidence).astype(float)
    values = set()
    for _ in range(20):
        order = rng.permutation(80)
        case = RowCase(loss[order], confidence[order], None)
        values.add(of_rows(metrics.tce_score, case, n_min=7, n_max=25))
    assert len(values) == 1


@pytest.mark.parametrize(
    "weight", [[1.5, 1, 1, 1], [0.5, 0.5, 1.5, 1.5], [0.1] * 4, [0.5, 0.5, 0.5, 0.5]]
)
@pytest.mark.parametrize("confidence", [[0.5, 0.6, 0.7, 0.8], [0.6] * 4], ids=["apart", "tied"])
def test_weights_that_are_not_whole_are_refused(weight, confidence):
    with pytest.raises(ValueError, match=r"sample_weight.*tce_score.*whole"):
        metrics.tce_score(TRUTH, PROBA, sample_weight=weight, confidence=confidence)


@pytest.mark.parametrize("confidence", [[0.5, 0.6, 0.7, 0.8], [0.6] * 4], ids=["apart", "tied"])
def test_graded_losses_are_refused(confidence):
    with pytest.raises(ValueError, match=r"loss.*tce_score"):
        metrics.tce_score(TRUTH, PROBA, loss=lambda a, b: (a != b) / 2, confidence=confidence)


BAD = {
    "alpha": ({"alpha": 0.0}, "alpha"),
    "alpha in percent": ({"alpha": 5}, "alpha"),
    "n_min": ({"n_min": 0}, "n_min"),
    "n_min fraction": ({"n_min": 2.5}, "n_min"),
    "n_max below n_min": ({"n_min": 10, "n_max": 9}, "n_max"),
    "confidence": ({"confidence": [1.5, 0.2, 0.3, 0.4]}, r"confidences in \[0, 1\]"),
}


@pytest.mark.parametrize(("options", "argument"), BAD.values(), ids=BAD)
def test_a_bad_argument_is_named(options, argument):
    with pytest.raises(ValueError, match=argument):
        metrics.tce_score(TRUTH, PROBA, **options)
