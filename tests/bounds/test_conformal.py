"""The conformal quantile, against its definition in exact fractions and against simulated draws."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skselect.bounds import conformal_quantile, rows_for_quantile

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
