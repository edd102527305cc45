"""Many rows, some at a time; and sums, maxima and their positions over the columns of a table.

numpy's reductions over a short last axis cost about as much per row as per hundred numbers, so
few columns are taken one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from skselect._typing import FloatArray, IntArray

#: Rows treated at once: what is made of them stays in the processor's cache.
SPAN = 1 << 14

#: Up to here columns are taken one after the other.
_FEW = 4


def spans(n: int) -> Iterator[slice]:
    """Yield slices that cover n rows, `SPAN` at a time."""
    for start in range(0, n, SPAN):
        yield slice(start, min(start + SPAN, n))


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
    for rows in spans(len(table)):
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
