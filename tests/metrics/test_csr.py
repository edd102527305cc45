"""CSR, its probability of risk and its test, against definitions and exact laws."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import binom, chisquare, poisson

from skselect import metrics
from skselect.bounds import _csr
from skselect.bounds._csr import error_sums, run_csr_test
from skselect.predictions.outcomes import Outcomes
from tests import brute
from tests.metrics.definitions import calibrated_outcomes, csr, csr_sigma, csr_z, p_risk

# CSR and P_risk --------------------------------------------------------------------------


@brute.examples(60)
@given(brute.row_cases(weights=("none",), losses=("zero_one",)))
def test_the_test_reports_the_published_values(case):
    result = brute.of_rows(metrics.csr_test, case, eps=2.0**-27, n_draws=19, random_state=0)
    rows = case.rows
    brute.assert_close(result.csr, csr(rows, 2.0**-27))
    brute.assert_close(result.sigma, csr_sigma(rows, 2.0**-27))
    brute.assert_close(result.z, csr_z(rows, 2.0**-27), tiny=1e-9)
    brute.assert_close(result.p_risk, p_risk(rows, 2.0**-27), rel=1e-10)
    assert (result.n_rows, result.n_errors) == (len(rows), sum(row.loss for row in rows))
    assert (result.n_draws, result.eps) == (19, 2.0**-27)


def test_an_unclipped_certain_error_is_infinite_and_no_error_is_none():
    options = {"labels": [0, 1], "eps": 0.0}
    assert metrics.csr_score([1], [[1.0, 0.0]], **options) == math.inf
    assert metrics.p_risk_score([1], [[1.0, 0.0]], **options) == 1.0
    result = metrics.csr_test([1], [[1.0, 0.0]], random_state=0, **options)
    assert result.csr == result.z == result.e_value == math.inf
    assert result.p_value == 1 / 1000
    y_true, y_proba = [0, 1], [[0.75, 0.25], [0.0, 1.0]]
    assert metrics.csr_score(y_true, y_proba) == metrics.csr_score(y_true, y_proba, eps=0.0) == 0.0
    assert metrics.p_risk_score(y_true, y_proba) == 0.0
    result = metrics.csr_test(y_true, y_proba, random_state=0)
    assert (result.csr, result.p_risk, result.p_value, result.e_value) == (0.0, 0.0, 1.0, 0.0)


# The Monte-Carlo p-value -----------------------------------------------------------------


@pytest.mark.parametrize("most", [0.02, 0.5, 1.0])
def test_the_error_of_rounded_rows_is_bounded(monkeypatch, most):
    """Exactly: the number of errors of a class against the binomial number that is drawn."""
    chance = np.sort(np.random.default_rng(0).uniform(most / 2, most, 400))[::-1]
    monkeypatch.setattr(_csr, "_FEW_ERRORS", 0.0)
    rounded = _csr._RoundedRows(chance)
    distance = 0.0
    at = rounded._place(chance)
    for place in np.unique(at):
        exact = np.ones(1)
        for one in chance[at == place]:
            exact = np.convolve(exact, [1 - one, one])
        counts = np.arange(len(exact))
        binomial = binom.pmf(counts, rounded.size[place], rounded.mean[place])
        distance += 0.5 * np.sum(np.abs(exact - binomial))
        assert np.ptp(chance[at == place]) <= 0.011 * rounded.mean[place]
    assert 0 < distance <= rounded.error <= 0.001


@pytest.mark.parametrize("few_errors", [0.0, 300.0, math.inf])
@pytest.mark.parametrize("shift", [1.0, 1.05, 1.1])
def test_large_tables_have_the_p_value_of_small_ones(monkeypatch, few_errors, shift):
    rng = np.random.default_rng(0)
    confidence = 1 - rng.beta(0.5, 4.0, 4000)
    outcomes = Outcomes(rng.random(4000) < shift * (1 - confidence), confidence)
    exact = run_csr_test(outcomes, n_draws=19999, random_state=0)
    monkeypatch.setattr(_csr, "_MANY_ROWS", 0)
    monkeypatch.setattr(_csr, "_FEW_ERRORS", few_errors)
    actual = run_csr_test(outcomes, n_draws=19999, random_state=1)
    assert actual.csr == exact.csr
    assert abs(actual.p_value - exact.p_value) < 0.001 + 4 * math.sqrt(0.5 / 19999)
    surest = Outcomes(np.zeros(4000), confidence)
    assert run_csr_test(surest, n_draws=99, random_state=0).p_value == 1.0


@pytest.mark.parametrize("eps", [1e-8, 0.2])
def test_the_e_value_has_mean_at_most_one(eps):
    """Exactly, over all outcomes of calibrated rows, clipped confidences included."""
    confidence = [0.0, 0.1, 0.5, 0.9, 0.95, 1.0]
    mean = math.fsum(
        chance * brute.of_rows(metrics.csr_test, brute.RowCase(loss, np.array(confidence), None),
                         eps=eps, n_draws=19).e_value
        for loss, chance in calibrated_outcomes(confidence)
    )  # fmt: skip
    assert mean <= 1 + 1e-12


# Bad input -------------------------------------------------------------------------------

#: Chances in several halvings, at both ends, and equal ones.
CHANCE = np.array([0.5, 0.9, 1.0, 0.03, 0.3, 0.3, 0.0, 0.51, 1e-300])
#: A sum of these tells which rows were wrong.
BITS = 2.0 ** np.arange(len(CHANCE))


def drawn(chance, value, n_draws, seed=0):
    return error_sums(
        np.asarray(chance, float), np.asarray(value, float), n_draws, np.random.default_rng(seed)
    )


def chance_of_each_set(chance):
    """Return the probability of every set of errors, by the number that its bits spell."""
    chance = np.asarray(chance)
    sets = product([False, True], repeat=len(chance))
    return np.array([np.prod(np.where(wrong[::-1], chance, 1 - chance)) for wrong in sets])


def test_errors_are_independent_and_have_their_chances():
    counts = np.bincount(drawn(CHANCE, BITS, 40000).astype(int), minlength=512)
    expected = 40000 * chance_of_each_set(CHANCE)
    assert np.all(counts[expected < 1e-9] == 0)
    usual = expected > 5
    pooled = np.append(counts[usual], counts[~usual].sum())
    law = np.append(expected[usual], expected[~usual].sum())
    assert chisquare(pooled, law).pvalue > 0.001


def test_draws_are_independent_of_one_another():
    sums = drawn(CHANCE, BITS, 40000, seed=1)
    wrong = (sums.astype(int)[:, None] >> np.array([0, 3, 4, 7])) & 1
    for lag in [1, 2, 7]:
        r = np.corrcoef(wrong[:-lag].T, wrong[lag:].T)[:4, 4:]
        assert np.all(np.abs(r) < 4.5 / np.sqrt(40000))


def test_many_rare_errors_are_poisson():
    """More rows than one batch of draws holds."""
    n = 300_000
    counts = np.bincount(drawn(np.full(n, 3.0 / n), np.ones(n), 3000).astype(int), minlength=9)
    assert chisquare(counts[:9], law_of(poisson(3), 9, counts)).pvalue > 0.001


def law_of(distribution, n, counts):
    expected = distribution.pmf(np.arange(n))
    return expected / expected.sum() * counts[:n].sum()


def test_batches_do_not_differ():
    """5000 likely errors a draw: the draws come in several batches, each like the others."""
    chance = np.full(10_000, 0.5)
    sums = drawn(chance, np.ones(10_000), 2000)
    thirds = sums.reshape(4, 500).mean(axis=1)
    assert np.all(np.abs(thirds - 5000) < 4.5 * 50 / np.sqrt(500))
    assert abs(sums.std() / 50 - 1) < 4.5 / np.sqrt(2 * 2000)


@pytest.mark.parametrize("chance", [1e-300, 2.0**-61, 1e-19])
def test_errors_that_never_happen_cost_nothing(chance):
    with np.errstate(all="raise", under="ignore"):
        assert np.all(drawn(np.full(1000, chance), np.full(1000, 1 / chance), 99) == 0)


def test_the_order_of_the_rows_does_not_matter():
    rng = np.random.default_rng(0)
    chance = rng.choice([0.0, 1e-20, 0.1, 0.25, 0.3, 0.9, 1.0], 300)
    value = rng.choice([1.0, 0.3, 1e8, -2.0], 300)
    order = rng.permutation(300)
    np.testing.assert_array_equal(
        drawn(chance, value, 50, 7), drawn(chance[order], value[order], 50, 7)
    )
