"""Arrays of many rows: types, pieces, comparison with rounding, columns by name, checked ones.

Arrays of other libraries become numpy arrays here and nowhere else, so that results do not depend
on the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, fields
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from skselect._lib.decide import SPAN, find_ragged, refuse_masked

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
LabelArray: TypeAlias = NDArray[Any]

#: One confidence per row: a name, an array, or a function of the probabilities.
ConfidenceSpec: TypeAlias = "str | FloatArray | Callable[[FloatArray], Any]"

#: One loss per row: a name, or a function ``(y_true, y_pred) -> loss``.
LossSpec: TypeAlias = "str | Callable[[LabelArray, LabelArray], Any]"


T = TypeVar("T")


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return a numpy array, or say which argument cannot become one."""
    if hasattr(values, "tocsr"):
        raise ValueError(f"{name} must be a dense array, got a sparse matrix; use .toarray().")
    refuse_masked(values, name)
    refuse_name(values, name)
    try:
        if hasattr(values, "detach"):  # torch: without its gradient, from the GPU
            values = values.detach().cpu()
        is_tensor = hasattr(values, "__dlpack__") and not hasattr(values, "__array__")
        array: NDArray[Any] = np.from_dlpack(values) if is_tensor else np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        fault = find_ragged(values) or error
        raise ValueError(f"{name} is not a table of numbers: {fault}") from error
    if array.dtype.type in (np.void, np.record):
        raise ValueError(f"{name} holds records or raw bytes; pass one plain column, or a table.")
    return array


def refuse_name(values: Any, name: str) -> None:
    """Refuse a text, such as the name of a column, in the place of values."""
    if isinstance(values, str):
        text = repr(values[:40])
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"{name} must be values, not the text {text}; if it is the name of a column, pass "
            f"X[{text}]."
        )


def spans(n: int) -> Iterator[slice]:
    """Yield slices that cover n rows, `SPAN` at a time."""
    for start in range(0, n, SPAN):
        yield slice(start, min(start + SPAN, n))


def dot(a: FloatArray, b: FloatArray) -> float:
    """Return the sum of products over rows, the same on any number of cores.

    BLAS would start threads, which wait for each other on a busy machine, and round differently.
    """
    return float(np.einsum("i,i->", a, b))


def lexsort(keys: Sequence[NDArray[Any]]) -> IntArray:
    """Return what np.lexsort does, ten times as fast where few values of the last key are equal."""
    last = keys[-1]
    order = np.argsort(last)
    ranked = last[order]
    equals_next = ranked[1:] == ranked[:-1]
    is_tied = np.append(equals_next, False) | np.append(False, equals_next)
    rows = np.sort(order[is_tied])
    keys_of_rows = [key[rows] for key in keys]
    order[is_tied] = rows[np.lexsort(keys_of_rows)]
    return order


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
    if loss.dtype == bool:
        return False
    for rows in spans(len(loss)):
        part = loss[rows]
        between = (part != 0.0) & (part != 1.0)
        if between.any():
            return True
    return False


def are_constant(weight: FloatArray | None) -> bool:
    """Tell whether all rows have the same weight, so that they can be counted."""
    return weight is None or not np.any(weight != weight[0])


def draw_rows(n: int, every: int, seed: int) -> BoolArray:
    """Return which of n rows are drawn by chance: one in `every` of them, rounded up.

    Other draws from the same seed are independent of this one.
    """
    rng = np.random.default_rng((seed, every))
    n_drawn = -(-n // every)
    return rng.permutation(n) < n_drawn


def rows_of_codes(codes: IntArray, n_codes: int) -> list[IntArray]:
    """Return the rows of each code from 0 to `n_codes` - 1, ascending; negative codes have none."""
    # numpy sorts short numbers by radix
    keys = codes.astype(np.int16) if n_codes < 1 << 15 else codes
    order = np.argsort(keys, kind="stable")
    ends = np.searchsorted(keys, np.arange(n_codes + 1), sorter=order)
    return [order[start:stop] for start, stop in pairwise(ends.tolist())]


def look_up_codes(values: Iterable[Any], codes: IntArray, missing: Any) -> NDArray[Any]:
    """Return the value of each code, and `missing` for the code -1."""
    table = np.array([*values, missing])
    return table[codes]


def column_names(table: Any) -> list[Any] | None:
    """Return the column names of a pandas, polars or Arrow table, None for anything else."""
    is_arrow = hasattr(type(table), "column_names")  # its `columns` are data, not names
    columns = table.column_names if is_arrow else getattr(table, "columns", None)
    if columns is None or getattr(table, "ndim", 2) != 2:
        return None
    return list(columns)


def take_columns(table: Any, names: list[Any]) -> Any:
    """Return some columns of a pandas, polars or Arrow table."""
    if hasattr(type(table), "select"):
        return table.select(names)
    return table[names]


def trusted(cls: type[T], **values: Any) -> T:
    """Build a frozen dataclass without its checks, from values that the library has checked.

    Users call the constructor, which checks. Fields that are left out have their defaults.
    """
    instance = object.__new__(cls)
    declared = fields(cls)  # type: ignore[arg-type]
    for declaration in declared:
        if declaration.name in values:
            continue
        default = declaration.default
        if declaration.default_factory is not MISSING:
            default = declaration.default_factory()
        values[declaration.name] = default
    assert len(values) == len(declared), values
    vars(instance).update(values)
    return instance
