"""Sums, maxima and positions of maxima over the columns of a table with many rows.

numpy's reductions over a short last axis cost about as much per row as per hundred numbers, so
few columns are taken one after the other, some rows at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skselect._typing import FloatArray, IntArray

#: Up to here columns are taken one after the other.
_FEW = 4
_SPAN = 1 << 14


def row_sums(table: Any) -> FloatArray:
    """Return the sum of each row, as float64."""
    if table.shape[1] > _FEW:
        return table.sum(axis=1, dtype=np.float64)
    total = table[:, 0].astype(np.float64)
    for k in range(1, table.shape[1]):
        total += table[:, k]
    return total


def row_argmax(table: Any) -> IntArray:
    """Return the position of the largest number of each row, the first of equal ones."""
    if table.shape[1] > _FEW:
        return table.argmax(axis=1)
    found = np.zeros(len(table), dtype=np.int64)
    for start in range(0, len(table), _SPAN):
        rows = slice(start, start + _SPAN)
        largest, place = table[rows, 0], found[rows]
        for k in range(1, table.shape[1]):
            larger = table[rows, k] > largest
            place[:] = larger if k == 1 else np.where(larger, k, place)
            if k + 1 < table.shape[1]:
                largest = np.maximum(largest, table[rows, k])
    return found


def row_max(table: Any, place: IntArray | None = None) -> FloatArray:
    """Return the largest number of each row, as float64; `place` is its column, if known."""
    if table.shape[1] > _FEW:
        return table.max(axis=1).astype(np.float64) if place is None else chosen(table, place)
    largest = table[:, 0].astype(np.float64)
    for k in range(1, table.shape[1]):
        np.maximum(largest, table[:, k], out=largest)
    return largest


def chosen(table: Any, columns: IntArray) -> FloatArray:
    """Return the number in one column of each row, as float64."""
    return table[np.arange(len(table)), columns].astype(np.float64)
