"""Rows that are drawn by chance, rows by their codes, and rows in order."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from skselect._lib.arrays import draw_rows, lexsort, rows_of_codes


@pytest.mark.parametrize("every", [3, 5, 10])
@pytest.mark.parametrize("n", [0, 1, 9, 10, 11, 1000])
def test_one_row_in_so_many_is_drawn_rounded_up(n, every):
    drawn = draw_rows(n, every, seed=4)
    assert drawn.dtype == bool
    assert (len(drawn), drawn.sum()) == (n, math.ceil(n / every))


def test_the_seed_alone_decides_and_each_row_has_the_same_chance():
    assert np.array_equal(draw_rows(50, 5, 7), draw_rows(50, 5, 7))
    drawn = np.array([draw_rows(50, 5, seed) for seed in range(2000)])
    error = np.sqrt(0.2 * 0.8 / 2000)
    assert np.all(np.abs(drawn.mean(axis=0) - 0.2) < 4 * error)
    assert np.all(np.abs(drawn[:, np.arange(50) % 5 == 0].mean() - 0.2) < 4 * error)


@pytest.mark.parametrize("every", [3, 10])
def test_draws_of_one_seed_for_several_purposes_are_independent(every):
    """A row that names nothing must not be more or less likely to be drawn for something else."""
    five = np.array([draw_rows(60, 5, seed) for seed in range(1000)])
    others = {
        "rows": np.array([draw_rows(60, every, seed) for seed in range(1000)]),
        "coins": np.array([np.random.default_rng(seed).random(60) < 0.2 for seed in range(1000)]),
    }
    for other in others.values():
        both, expected = np.mean(five & other), np.mean(five) * np.mean(other)
        assert abs(both - expected) < 4 * np.sqrt(expected / five.size)


@given(st.lists(st.integers(-1, 6), max_size=30), st.sampled_from([1, 4700, 9000]))
def test_the_rows_of_each_code_in_their_order(codes, step):
    found = rows_of_codes(np.array(codes, dtype=np.int64) * step, 7 * step)
    expected = {code * step: [] for code in sorted({*codes} - {-1})}
    for row, code in enumerate(codes):
        if code >= 0:
            expected[code * step].append(row)
    assert len(found) == 7 * step
    assert {code: rows.tolist() for code, rows in enumerate(found) if len(rows)} == expected


@given(st.lists(st.tuples(*[st.sampled_from([-np.inf, -1.5, 0.0, 2.0])] * 3), min_size=1))
def test_rows_are_sorted_by_the_last_key_then_by_those_before(rows):
    keys = [np.array([row[k] for row in rows]) for k in range(3)]
    for some in (keys, [*keys, np.arange(len(rows))[::-1]]):
        assert lexsort(some).tolist() == np.lexsort(some).tolist()
