"""The kernel of decisions: reductions over the columns of a table, maps without scipy."""

import numpy as np
import pytest

from skselect._lib.decide import chosen, row_argmax, row_max, row_sums


@pytest.mark.parametrize("n_columns", [1, 2, 3, 4, 5, 12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 7, 40_000])
def test_they_are_what_numpy_says(n_columns, dtype, n):
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
