"""Exact binomial statements, against brute force and published values."""

import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from skselect.bounds import walk_band
from skselect.bounds._binomial import (
    anytime_upper,
    clopper_pearson_interval,
    clopper_pearson_upper,
    conformal_quantile,
    critical_counts,
    log_evidence_below,
    rows_for_certificate,
    rows_for_quantile,
    smallest_rank,
    wilson_upper,
)


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


@pytest.mark.parametrize("target", [0.001, 0.01, 0.02, 0.05, 0.1, 0.5, 0.999])
@pytest.mark.parametrize("delta", [0.01, 0.05, 0.1, 0.5])
def test_rows_for_certificate_is_the_least_number(target, delta):
    k = rows_for_certificate(target, delta)
    assert (1 - target) ** k <= delta
    assert k == 1 or (1 - target) ** (k - 1) > delta


def test_tiny_targets_need_many_rows_and_no_time():
    assert 2.9e14 < rows_for_certificate(1e-14, 0.05) < 3.1e14
    assert len(walk_band(100, 1e-14, 0.05, 0.1)[0]) == 0


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.integers(1, 500), st.integers(1, 100))
def test_smallest_rank_is_found_by_division(n, percent):
    share = percent / 100
    assert smallest_rank(n, share) == next(k for k in range(1, n + 1) if k / n >= share)


def test_smallest_rank_where_the_product_rounds_up():
    assert 0.07 * 100 > 7
    assert smallest_rank(100, 0.07) == 7


def test_interval_has_half_of_the_chance_on_each_side():
    low, high = clopper_pearson_interval([0, 3, 10], 10, 0.9)
    assert (low[0], high[2]) == (0.0, 1.0)
    assert binomial_cdf(3, 10, high[1]) == pytest.approx(0.05, rel=1e-9)
    assert 1 - binomial_cdf(2, 10, low[1]) == pytest.approx(0.05, rel=1e-9)


# A band and a sequence --------------------------------------------------------------------------


def test_bounds_of_many_counts_are_those_of_each():
    errors, rows = np.array([0, 2, 7, 0]), np.array([10, 50, 7, 0])
    together = clopper_pearson_upper(errors, rows, 0.1)
    each = [clopper_pearson_upper(e, n, 0.1) for e, n in zip(errors, rows, strict=True)]
    assert together.tolist() == each


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(1, 200), st.data(), st.sampled_from([0.01, 0.1, 0.3]))
def test_wilson_is_one_score_away_from_the_rate(n, data, delta):
    rate = data.draw(st.integers(0, n)) / n
    bound = wilson_upper(round(rate * n), n, delta)
    z = norm.isf(delta)
    assert (bound - rate) ** 2 == pytest.approx(z**2 * bound * (1 - bound) / n, rel=1e-9)
    assert bound >= rate - 1e-12


def test_wilson_misses_more_often_than_it_says_where_errors_are_few():
    chance = sum(binom.pmf(e, 200, 0.01) for e in range(201) if wilson_upper(e, 200, 0.1) < 0.01)
    exact = sum(
        binom.pmf(e, 200, 0.01) for e in range(201) if clopper_pearson_upper(e, 200, 0.1) < 0.01
    )
    assert exact <= 0.1 < chance


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


def test_anytime_bound_without_a_right_row_is_one():
    assert anytime_upper([0, 1, 30], [0, 1, 30], 0.05).tolist() == [1.0, 1.0, 1.0]
    assert log_evidence_below(0, 10, 0.0) == -np.inf
    with pytest.raises(ValueError, match="n_errors must lie between 0 and n"):
        anytime_upper(3, 2, 0.05)


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


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5, float("nan"), "high", True])
def test_a_level_is_a_share(level):
    with pytest.raises(ValueError, match=r"level must be a number in \(0, 1\)"):
        rows_for_quantile(level)


@pytest.mark.parametrize(("n", "level"), [(19, 0.95), (30, 0.9), (50, 0.8)])
def test_the_next_draw_stays_below_with_the_chance_of_its_rank(n, level, rng):
    draws = rng.exponential(size=(20_000, n + 1))
    quantiles = np.array([conformal_quantile(row[:-1], level) for row in draws])
    expected = rank_by_definition(n, level) / (n + 1)
    error = math.sqrt(expected * (1 - expected) / len(draws))
    assert abs(np.mean(draws[:, -1] <= quantiles) - expected) < 4 * error
