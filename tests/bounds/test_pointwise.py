"""Exact binomial statements, against brute force and published values; bounds on mean losses.

Means: their equations, and simulation.
"""

import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from skselect.bounds._pointwise import (
    anytime_upper,
    betting_upper,
    bound_stakes,
    clopper_pearson_interval,
    clopper_pearson_upper,
    conformal_quantile,
    critical_counts,
    hoeffding_bentkus_upper,
    largest_possible,
    log_evidence_below,
    rows_for_certificate,
    rows_for_quantile,
    smallest_rank,
)
from tests import brute
from tests.refusals import check_refused, refusals


def binomial_cdf(e, n, p):
    return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(e + 1))


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.integers(1, 60), st.data(), st.sampled_from([0.01, 0.05, 0.1, 0.5]))
def test_clopper_pearson_solves_its_equation(n, data, delta):
    errors = data.draw(st.integers(0, n))
    bound = clopper_pearson_upper(errors, n, delta)
    if errors == n:
        assert bound == 1.0
    else:
        assert binomial_cdf(errors, n, bound) == pytest.approx(delta, rel=1e-9)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.integers(1, 80), st.sampled_from([0.01, 0.1, 0.25]), st.sampled_from([0.01, 0.05, 0.3]))
def test_critical_count_is_the_largest_with_a_small_tail(n, risk, alpha):
    count = int(critical_counts(np.array([n]), risk, alpha)[0])
    assert count == -1 or binomial_cdf(count, n, risk) <= alpha * (1 + 1e-12)
    assert binomial_cdf(count + 1, n, risk) > alpha * (1 - 1e-12)


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.1, 0.5])
def test_rows_for_certificate_is_the_least_number(delta):
    for target in [0.001, 0.01, 0.02, 0.05, 0.1, 0.5, 0.999]:
        k = rows_for_certificate(target, delta)
        assert (1 - target) ** k <= delta
        assert k == 1 or (1 - target) ** (k - 1) > delta
    assert rows_for_certificate(1e-14, delta) == pytest.approx(-np.log(delta) / 1e-14, rel=1e-3)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.integers(1, 500), st.integers(1, 100))
@example(100, 7)  # the product rounds up
def test_smallest_rank_is_found_by_division(n, percent):
    share = percent / 100
    assert smallest_rank(n, share) == next(k for k in range(1, n + 1) if k / n >= share)


def test_interval_has_half_of_the_chance_on_each_side():
    low, high = clopper_pearson_interval([0, 3, 10], 10, 0.9)
    assert (low[0], high[2]) == (0.0, 1.0)
    assert binomial_cdf(3, 10, high[1]) == pytest.approx(0.05, rel=1e-9)
    assert 1 - binomial_cdf(2, 10, low[1]) == pytest.approx(0.05, rel=1e-9)


def averaged_ratio(errors, n, rate):
    """Return the mean over the rates below one of the likelihood over that at the rate."""
    below = rate * (np.arange(200_000) + 0.5) / 200_000
    log = errors * np.log(below / rate) + (n - errors) * np.log((1 - below) / (1 - rate))
    return np.mean(np.exp(log))


@pytest.mark.parametrize(("errors", "n"), [(0, 1), (0, 90), (1, 40), (7, 300), (30, 61), (59, 60)])
@pytest.mark.parametrize("delta", [0.01, 0.05, 0.3])
def test_anytime_bound_is_where_the_averaged_likelihood_ratio_is_one_over_delta(errors, n, delta):
    bound = anytime_upper(errors, n, delta)
    assert clopper_pearson_upper(errors, n, delta) < bound < 1
    assert averaged_ratio(errors, n, bound) == pytest.approx(1 / delta, rel=1e-4)
    rates = np.linspace(0.001, 0.999, 500)
    assert np.all(np.diff(log_evidence_below(errors, n, rates)) > 0)


@pytest.mark.parametrize("delta", [1e-6, 0.05, 0.5])
def test_anytime_bound_is_that_of_a_bisection_of_the_evidence(delta, rng):
    rows = np.array([1, 2, 7, 60, 61, 400, 1000])
    errors = np.minimum(rows - 1, rng.integers(0, rows, (9, 7)))

    def is_possible(rate):
        return log_evidence_below(errors, rows, rate) < -np.log(delta)

    low = errors / rows
    bisected = largest_possible(is_possible, low)
    bounds = anytime_upper(errors, rows, delta)
    assert np.max(np.abs(bounds - bisected)) <= 2e-15
    assert bounds[4, 3] == anytime_upper(errors[4, 3], 60, delta)
    assert anytime_upper([], [], delta).shape == (0,)


def test_anytime_bound_without_a_right_row_is_one():
    assert anytime_upper([0, 1, 30], [0, 1, 30], 0.05).tolist() == [1.0, 1.0, 1.0]
    assert log_evidence_below(0, 10, 0.0) == -np.inf


@pytest.mark.parametrize("n", [10**6, 10**9])
def test_anytime_bound_of_many_rows_is_as_narrow_as_chance(n):
    bound = anytime_upper(n // 20, n, 0.05)
    assert 3 < (bound - 0.05) / np.sqrt(0.05 * 0.95 / n) < 7


LEVELS = [0.05, 0.5, 0.55, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999]


def rank_by_definition(n, level):
    """Return ceil((n + 1) level) of the level as it is written, without rounding."""
    return math.ceil((n + 1) * Fraction(str(level)))


@pytest.mark.parametrize("level", LEVELS)
def test_it_needs_level_over_one_minus_level_rows(level):
    exact = Fraction(str(level))
    needed = max(math.ceil(exact / (1 - exact)), 1)
    assert rows_for_quantile(level) == needed
    assert conformal_quantile(np.arange(needed), level) == needed - 1
    if needed > 1:
        with pytest.raises(ValueError, match=f"at least {needed} of them, got {needed - 1}"):
            conformal_quantile(np.arange(needed - 1), level)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.integers(1, 300), st.sampled_from(LEVELS), st.integers(1, 50), st.integers(0, 2**20))
def test_it_is_the_value_of_its_rank(n, level, n_values, seed):
    values = np.random.default_rng(seed).choice([*np.arange(n_values), np.inf], n)
    rank = rank_by_definition(n, level)
    if rank > n:
        assert n < rows_for_quantile(level)
        return
    assert conformal_quantile(values, level) == sorted(values)[rank - 1]


profile = settings(derandomize=True, deadline=None, max_examples=80)


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


def test_the_order_of_rows_does_not_matter(rng):
    losses, order = rng.beta(1, 9, 200), rng.permutation(200)
    assert betting_upper(losses, 0.1) == pytest.approx(betting_upper(losses[order], 0.1))


@pytest.mark.parametrize(
    ("sample", "mean"),
    [
        (lambda rng: rng.choice([0, 0.2, 1.0], 300, p=[0.9, 0.08, 0.02]), 0.036),
        (lambda rng: rng.beta(1, 19, 300), 0.05),
    ],
)
def test_betting_bound_is_rarely_below_the_mean(sample, mean, rng):
    draws, delta = 300, 0.1
    missed = np.mean([betting_upper(sample(rng), delta) < mean for _ in range(draws)])
    assert missed <= delta + 3 * np.sqrt(delta * (1 - delta) / draws)


@refusals({
    "n_errors": [(clopper_pearson_upper, 3, 2, 0.1), (clopper_pearson_upper, -1, 2, 0.1),
                 (clopper_pearson_upper, 0.5, 2, 0.1), (anytime_upper, 3, 2, 0.05)],
    "delta": [(clopper_pearson_upper, 0, 2, 1.0)],
    "mean": [(hoeffding_bentkus_upper, 1.2, 5, 0.1)], "losses": [(betting_upper, [2.0], 0.1)],
    "level": [(rows_for_quantile, bad) for bad in (0.0, 1.0, 1.5, float("nan"), "high", True)],
})  # fmt: skip
def test_bad_arguments_are_named(argument, call):
    check_refused(argument, *call)


@profile
@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.sampled_from([0.05, 0.3]))
def test_the_bound_is_the_largest_mean_that_bets_do_not_rule_out(quarters, delta):
    losses = np.array(quarters) / 4
    assert betting_upper(losses, delta) == pytest.approx(
        brute.betting_bound(losses, delta), abs=1e-9
    )


def test_no_rows_and_nothing_but_losses_bound_nothing():
    assert betting_upper([], 0.1) == betting_upper([1.0, 1.0], 0.1) == 1.0
    assert clopper_pearson_upper(0, 0, 0.1) == hoeffding_bentkus_upper(0.0, 0, 0.1) == 1.0


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
