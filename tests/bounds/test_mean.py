"""Bounds on mean losses: their equations, bets written out row by row, and simulation."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from skselect.bounds._binomial import clopper_pearson_upper
from skselect.bounds._mean import (
    betting_log_wealth,
    betting_upper,
    bound_stakes,
    empirical_bernstein_upper,
    hoeffding_bentkus_upper,
    rows_for_betting,
)
from tests import brute

profile = settings(derandomize=True, deadline=None, max_examples=80)
REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference" / "bounds.csv"


def hoeffding_bentkus_p_value(mean, n, r):
    """The chance that a mean risk of r or more allows so small a mean, by its definition."""
    kl = sum(p * math.log(p / q) for p, q in ((mean, r), (1 - mean, 1 - r)) if p > 0)
    errors = math.ceil(mean * n - 1e-9)
    bentkus = math.e * sum(math.comb(n, i) * r**i * (1 - r) ** (n - i) for i in range(errors + 1))
    return min(math.exp(-n * kl), bentkus)


@profile
@given(st.integers(1, 40), st.data(), st.sampled_from([0.01, 0.1, 0.3]))
def test_hoeffding_bentkus_is_where_its_p_value_is_delta(n, data, delta):
    mean = data.draw(st.integers(0, 2 * n)) / (2 * n)
    bound = hoeffding_bentkus_upper(mean, n, delta)
    assert mean <= bound <= 1
    if bound < 1 - 1e-9:
        assert hoeffding_bentkus_p_value(mean, n, bound + 1e-6) < delta
        if bound > mean + 1e-6:
            assert hoeffding_bentkus_p_value(mean, n, bound - 1e-6) >= delta


def test_empirical_bernstein_is_its_formula():
    found = empirical_bernstein_upper([0.1, 0.9], [0.02, 0.09], [50, 20], 0.05)
    for value, mean, variance, n in ((found[0], 0.1, 0.02, 50), (found[1], 0.9, 0.09, 20)):
        log = math.log(2 / 0.05)
        expected = mean + math.sqrt(2 * variance * log / n) + 7 * log / (3 * (n - 1))
        assert value == pytest.approx(min(expected, 1.0), rel=1e-12)
    assert empirical_bernstein_upper(0.0, 0.0, 1, 0.05) == 1.0


@pytest.mark.parametrize("n", [130, 555, 815, 955])
@pytest.mark.parametrize("mean", [0.05, 0.1, 0.3])
def test_coins_reach_the_wealth_rarely_whatever_their_number(n, mean):
    """Exact over all counts of errors: no draw, no tolerance."""
    delta = 0.1
    wealthy = [
        e for e in range(int(n * mean) + 1)
        if betting_log_wealth(np.repeat([0.0, 1.0], [n - e, e]), mean, delta) >= -np.log(delta)
    ]  # fmt: skip
    assert np.sum(binom.pmf(wealthy, n, mean)) <= delta


def test_the_order_and_scale_of_rows_do_not_matter(rng):
    losses, weight = rng.beta(1, 9, 200), rng.uniform(0.1, 3, 200)
    order = rng.permutation(200)
    first = betting_upper(losses, 0.1, weight=weight)
    assert betting_upper(losses[order], 0.1, weight=7 * weight[order]) == pytest.approx(first)
    assert betting_upper(losses, 0.1) == pytest.approx(betting_upper(losses[order], 0.1))


@pytest.mark.parametrize("law", ["cost", "beta", "binary"])
def test_betting_bound_is_rarely_below_the_mean(law, rng):
    draw = {
        "cost": (lambda: rng.choice([0, 0.2, 1.0], 300, p=[0.9, 0.08, 0.02]), 0.036),
        "beta": (lambda: rng.beta(1, 19, 300), 0.05),
        "binary": (lambda: rng.random(300) < 0.05, 0.05),
    }
    sample, mean = draw[law]
    draws, delta = 1000, 0.1
    missed = sum(betting_log_wealth(sample(), mean, delta) >= -np.log(delta) for _ in range(draws))
    assert missed / draws <= delta + 3 * np.sqrt(delta * (1 - delta) / draws)


def test_weighted_betting_bound_is_about_the_weighted_mean(rng):
    """Half of the population weighs three times as much, and errs more."""
    draws, delta, missed = 1000, 0.1, 0
    truth = (0.5 * 3 * 0.3 + 0.5 * 1 * 0.1) / 2.0
    for _ in range(draws):
        heavy = rng.random(300) < 0.5
        losses = rng.random(300) < np.where(heavy, 0.3, 0.1)
        weight = np.where(heavy, 1.0, 1 / 3)
        missed += betting_log_wealth(losses, truth, delta, weight) >= -np.log(delta)
    assert missed / draws <= delta + 3 * np.sqrt(delta * (1 - delta) / draws)
    plain = betting_upper(losses, delta)
    assert betting_upper(losses, delta, weight=weight) > truth > plain - 0.06


def test_bets_beat_a_bound_that_knows_the_mean_only(rng):
    losses = rng.beta(1, 19, 2000)
    bets = betting_upper(losses, 0.1)
    assert losses.mean() < bets < hoeffding_bentkus_upper(losses.mean(), 2000, 0.1)


@pytest.mark.parametrize("target", [0.01, 0.2])
def test_rows_for_betting_do_without_any_loss(target):
    n = rows_for_betting(target, 0.05)
    few, many = (betting_log_wealth(np.zeros(m), target, 0.05) for m in (n - 1, n))
    assert few < -np.log(0.05) <= many


def test_reference_numbers():
    if not REFERENCE.is_file():
        pytest.skip("the reference table beside the checkout is not there")
    table = pd.read_csv(REFERENCE).query("n == 1000 and loss == 'beta(1,19)'")
    expected = table.set_index("bound")["mean_ub"]
    rng = np.random.default_rng(3)
    samples = rng.beta(1, 19, (200, 1000))
    means = samples.mean(axis=1)
    found = {
        "hoeffding-bentkus": hoeffding_bentkus_upper(means, 1000, 0.1),
        "emp-bernstein": empirical_bernstein_upper(means, samples.var(axis=1, ddof=1), 1000, 0.1),
    }
    for name, bounds in found.items():
        assert np.mean(bounds) == pytest.approx(expected[name], abs=0.0012), name


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: clopper_pearson_upper(3, 2, 0.1), "n_errors must lie between 0 and n, got 3"),
        (lambda: clopper_pearson_upper(-1, 2, 0.1), "n_errors must lie between"),
        (lambda: clopper_pearson_upper(0.5, 2, 0.1), "n_errors must hold whole numbers"),
        (lambda: clopper_pearson_upper(0, 2, 1.0), "delta must be a number"),
        (lambda: hoeffding_bentkus_upper(1.2, 5, 0.1), r"mean must lie in \[0, 1\]"),
        (lambda: empirical_bernstein_upper(0.5, -1, 5, 0.1), "variance must be finite"),
        (lambda: betting_upper([2.0], 0.1), r"losses must lie in \[0, 1\]"),
        (lambda: betting_upper([0.2], 0.1, weight=[-1.0]), "weight must hold finite numbers"),
    ],
)
def test_bad_arguments_are_named(act, message):
    with pytest.raises(ValueError, match=message):
        act()


@profile
@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.sampled_from([0.02, 0.2, 0.6]),
       st.sampled_from([0.05, 0.3]), st.booleans())  # fmt: skip
def test_wealth_is_the_mean_of_products_and_the_bound_the_largest_mean_not_ruled_out(
    quarters, mean, delta, weighted
):
    losses = np.array(quarters) / 4
    weight = np.resize([1.0, 0.25, 0.5], len(losses)) if weighted else None
    ones = np.ones(len(losses)) if weight is None else weight
    found = betting_log_wealth(losses, mean, delta, weight)
    assert found == pytest.approx(brute.log_wealth(losses, mean, delta, ones), abs=1e-9)
    expected = brute.betting_bound(losses, delta, weight)
    assert betting_upper(losses, delta, weight=weight) == pytest.approx(expected, abs=1e-9)


def test_no_rows_and_nothing_but_losses_bound_nothing():
    assert betting_upper([], 0.1) == betting_upper([1.0, 1.0], 0.1) == 1.0
    assert clopper_pearson_upper(0, 0, 0.1) == hoeffding_bentkus_upper(0.0, 0, 0.1) == 1.0
    for losses in ([0.0, 0.0], [1.0, 1.0], []):  # no bet is won against a mean loss of one
        assert betting_log_wealth(np.array(losses), 1.0, 0.1) == 0.0


@pytest.mark.parametrize("n", [40, 700])
def test_a_bound_for_a_growing_table_has_stakes_that_its_rows_do_not_choose(rng, n):
    losses = np.where(rng.random(n) < 0.1, rng.random(n), 0.0)
    bound = betting_upper(losses, 0.1, anytime=True)
    stakes, log_share = bound_stakes(None, 0.1)
    assert np.sum(np.exp(log_share)) == pytest.approx(1.0)
    wealth = [np.prod(1 - s * (losses - bound) / (1 - bound)) for s in stakes]
    assert np.dot(np.exp(log_share), wealth) == pytest.approx(10)
    assert betting_upper(losses[rng.permutation(n)], 0.1, anytime=True) == pytest.approx(bound)
    assert betting_upper(losses, 0.1) < bound
    with pytest.raises(ValueError, match="largest_weight is missing"):
        betting_upper(losses, 0.1, weight=np.ones(n), anytime=True)
