"""Errors drawn at random, against the law they must follow."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, chisquare, poisson

from skselect.metrics._draws import error_sums

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


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_mean_and_variance(seed):
    rng = np.random.default_rng(seed)
    chance, value = rng.random(200) ** 4, rng.normal(size=200)
    sums = drawn(chance, value, 20000, seed)
    mean, variance = np.sum(chance * value), np.sum(chance * (1 - chance) * value**2)
    assert abs(sums.mean() - mean) < 4 * np.sqrt(variance / 20000)
    # Sums of 200 terms are nearly normal: their variance scatters by sqrt(2/n).
    assert abs(sums.var() / variance - 1) < 4 * np.sqrt(2 / 20000)


def test_equal_rows_give_a_binomial_number():
    counts = np.bincount(drawn(np.full(12, 0.37), np.ones(12), 20000).astype(int), minlength=13)
    assert chisquare(counts[:11], law_of(binom(12, 0.37), 11, counts)).pvalue > 0.001


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


def test_chances_of_zero_and_one_leave_nothing_to_chance():
    assert np.all(drawn([0.0, 1.0, 1.0, 0.0], [1, 2, 4, 8], 50) == 6)
    assert np.all(drawn([0.0, 0.0], [1, 2], 50) == 0)
    assert np.all(drawn([1.0], [3], 50) == 3)


@pytest.mark.parametrize("chance", [1e-300, 2.0**-61, 1e-19])
def test_errors_that_never_happen_cost_nothing(chance):
    with np.errstate(all="raise", under="ignore"):
        assert np.all(drawn(np.full(1000, chance), np.full(1000, 1 / chance), 99) == 0)


def test_nearly_certain_errors():
    sums = drawn(np.full(1000, 1 - 1e-3), np.ones(1000), 4000)
    assert abs(sums.mean() - 999) < 4 * np.sqrt(0.999 / 4000)


def test_the_order_of_the_rows_does_not_matter():
    rng = np.random.default_rng(0)
    chance = rng.choice([0.0, 1e-20, 0.1, 0.25, 0.3, 0.9, 1.0], 300)
    value = rng.choice([1.0, 0.3, 1e8, -2.0], 300)
    order = rng.permutation(300)
    np.testing.assert_array_equal(
        drawn(chance, value, 50, 7), drawn(chance[order], value[order], 50, 7)
    )


def test_a_seed_repeats_itself():
    np.testing.assert_array_equal(drawn(CHANCE, BITS, 99, 3), drawn(CHANCE, BITS, 99, 3))
    assert np.any(drawn(CHANCE, BITS, 99, 3) != drawn(CHANCE, BITS, 99, 4))
