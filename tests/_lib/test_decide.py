"""The kernel of decisions: reductions over the columns of a table, maps without scipy."""

import itertools

import numpy as np
import pytest
from scipy import special

from skselect._lib.checks.rows import row_sums
from skselect._lib.decide import chosen, expit, row_argmax, row_max, softmax


@pytest.mark.parametrize("n_columns", [1, 2, 3, 4, 5, 12])
def test_they_are_what_numpy_says(n_columns):
    for dtype, n in itertools.product([np.float32, np.float64], [1, 7, 40_000]):
        # Few values, so that the largest one of a row is often not alone.
        table = np.random.default_rng(0).integers(0, 4, (n, n_columns)).astype(dtype) / 4
        place = row_argmax(table)
        assert np.array_equal(place, table.argmax(axis=1))
        assert np.array_equal(row_max(table), table.max(axis=1))
        assert np.array_equal(row_max(table, place), table.max(axis=1))
        assert np.array_equal(chosen(table, place), table.max(axis=1))
        assert np.array_equal(row_sums(table), table.sum(axis=1, dtype=np.float64))
        for found in (row_max(table), chosen(table, place), row_sums(table)):
            assert found.dtype == np.float64


def test_a_table_that_lies_by_columns_will_do():
    table = np.asfortranarray(np.random.default_rng(0).random((50, 3)))
    assert np.array_equal(row_argmax(table), table.argmax(axis=1))


def test_the_maps_of_scores_are_as_exact_as_those_of_scipy(rng):
    x = np.concatenate([rng.normal(scale=scale, size=20_000) for scale in (0.1, 3, 50)])
    np.testing.assert_array_max_ulp(expit(x), special.expit(x), maxulp=4)
    assert np.all(np.diff(expit(np.sort(x))) >= 0)
    logits = x.reshape(-1, 6)
    np.testing.assert_array_equal(softmax(logits), special.softmax(logits, axis=1))
