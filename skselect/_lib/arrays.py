"""Arrays of many rows: sums and maxima of each row, comparison with rounding, columns by name.

numpy takes about as long for a row of two numbers as for one of a hundred, so tables of few columns
are reduced column by column.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from skselect._lib.typing import FloatArray, IntArray

#: Rows treated at once, so that intermediate results stay in the processor's cache.
SPAN = 1 << 14

#: Tables of up to this many columns are reduced column by column.
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
    """Return from each row the number in its own column, as float64."""
    return table[np.arange(len(table)), columns].astype(np.float64)


#: A value that differs from a bound by this share of it counts as equal: sums of floats round.
ROUNDING = 1e-12


def reaches(values: Any, bound: float) -> Any:
    """Tell where values are at least `bound`, but for rounding."""
    return values >= bound * (1.0 - ROUNDING)


def stays_within(values: Any, bound: float) -> Any:
    """Tell where values are at most `bound`, but for rounding."""
    return values <= bound * (1.0 + ROUNDING)


def is_graded(loss: FloatArray) -> bool:
    """Tell whether there are losses other than 0 and 1."""
    parts = (loss[rows] for rows in spans(len(loss)))  # `all` stops at a graded one
    return not all(np.array_equal(part != 0.0, part) for part in parts)


def are_constant(weight: FloatArray | None) -> bool:
    """Tell whether all rows have the same weight, so that they can be counted."""
    return weight is None or not np.any(weight != weight[0])


def column_names(table: Any) -> list[Any] | None:
    """Return the column names of a pandas, polars or Arrow table, None for anything else."""
    arrow = hasattr(type(table), "column_names")  # its `columns` are data, not names
    columns = table.column_names if arrow else getattr(table, "columns", None)
    return None if columns is None or getattr(table, "ndim", 2) != 2 else list(columns)


def take_columns(table: Any, names: list[Any]) -> Any:
    """Return some columns of a pandas, polars or Arrow table."""
    return table.select(names) if hasattr(type(table), "select") else table[names]
