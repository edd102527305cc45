"""Whole numbers that sort like confidences, the surest first.

Sorting numbers is ten times cheaper than sorting positions. The bits of a non-negative float
sort like its value, so that one integer can hold a confidence and, in bits that it leaves unused,
whether the row was wrong (`pack`) or which row it is (`descending_order`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skselect._lib.arrays import spans
from skselect._lib.typing import FloatArray, IntArray

KeyArray = NDArray[Any]  # uint32 or uint64

# Floats in [0, 2) leave two bits unused, the sign and the first one of the exponent. The
# complement of the other bits sorts the surest first. For each size of a float in bytes: its type,
# the type of the key, and a mask of the used bits.
_FORMS: dict[int, tuple[Any, Any, Any]] = {
    4: (np.float32, np.uint32, np.uint32((1 << 30) - 1)),
    8: (np.float64, np.uint64, np.uint64((1 << 62) - 1)),
}


# Confidence and error in one number ---------------------------------------------------------


def packable(confidence: FloatArray) -> bool:
    """Tell whether all confidences lie in [0, 2), where bits of a float are unused."""
    return bool(confidence.min() >= 0.0 and confidence.max() < 2.0)


def are_float32(values: FloatArray) -> bool:
    """Tell whether float32 can hold every value exactly, whatever the dtype."""
    if values.dtype == np.float32:
        return True
    parts = (values[rows] for rows in spans(len(values)))
    return all(np.array_equal(part, part.astype(np.float32)) for part in parts)


def pack(confidence: FloatArray, wrong: NDArray[Any], *, narrow: bool) -> KeyArray:
    """Return a key per row, ``(complement of the confidence's bits) << 1 | wrong``, unsorted.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
        In [0, 2), float32 or float64.
    wrong : ndarray of shape (n,)
        0 or 1, of any dtype.
    narrow : bool
        Whether the confidences are float32 values, whose keys take 4 bytes.
    """
    kind, key, mask = _FORMS[4 if narrow else 8]
    keys = np.empty(len(confidence), dtype=key)
    for rows in spans(len(keys)):
        part = keys[rows]
        bits = part.view(kind)
        # Adding zero makes the negative zero positive.
        np.add(confidence[rows], 0.0, out=bits, casting="same_kind")
        np.bitwise_xor(part, mask, out=part)
        np.left_shift(part, 1, out=part)
        np.bitwise_or(part, wrong[rows] != 0, out=part)
    return keys


def unpack_confidence(bits: KeyArray) -> FloatArray:
    """Return the confidences of packed keys that were shifted right by one, as float64.

    `bits` is overwritten.
    """
    kind, _, mask = _FORMS[bits.itemsize]
    np.bitwise_xor(bits, mask, out=bits)
    return bits.view(kind).astype(np.float64, copy=False)


def run_starts(values: NDArray[Any]) -> IntArray:
    """Return where each run of equal values starts."""
    return np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])


# Confidence and row in one number -----------------------------------------------------------


def descending_order(values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the positions that sort `values` from the largest down, and the sorted values.

    Equal values keep their order. An integer per row holds its position and as many leading bits
    of its value as fit beside it; rows whose different values agree in these bits are sorted once
    more.
    """
    n = len(values)
    keys = _falling_bits(values)
    for_row = max(int(n - 1).bit_length(), 1)
    dropped = max(int(keys.max()).bit_length() + for_row - 64, 0)
    for rows in spans(n):
        part = keys[rows]
        part >>= dropped
        part <<= for_row
        part |= np.arange(rows.start, rows.stop, dtype=np.uint64)
    keys.sort()
    order = (keys & np.uint64((1 << for_row) - 1)).view(np.int64)
    ranked = values.take(order)
    if dropped and np.any(ranked[1:] > ranked[:-1]):
        keys >>= for_row
        _repair(order, ranked, keys)
    if ranked[-1] <= 0:
        ranked += 0.0  # a negative zero is a zero
    return order, ranked


def _falling_bits(values: FloatArray) -> NDArray[np.uint64]:
    """Return whole numbers, from 0 on, that rise as the values fall."""
    values = values.astype(np.float64, copy=False)
    bits = np.empty(len(values), dtype=np.int64)
    highest, common = _rising(values.max()[None])[0], 0
    for rows in spans(len(values)):
        part = bits[rows]
        # The difference may exceed the largest signed integer, but not the largest unsigned one.
        np.subtract(highest, _rising(values[rows]), out=part)
        common |= int(np.bitwise_or.reduce(part.view(np.uint64)))
    found = bits.view(np.uint64)
    trailing = (common & -common).bit_length() - 1 if common else 0  # 29 for float32
    if trailing:
        found >>= trailing
    return found


def _rising(values: FloatArray) -> IntArray:
    """Return signed integers in the order of the values; a negative zero is a zero."""
    bits = (values + 0.0).view(np.int64)
    # The bits of a negative float grow as it falls: invert all but the sign.
    return np.bitwise_xor(bits, np.int64((1 << 63) - 1), out=bits, where=bits < 0)


def _repair(order: IntArray, ranked: FloatArray, prefix: NDArray[np.uint64]) -> None:
    """Sort rows of equal prefixes by their values, in place."""
    damaged = np.unique(prefix[1:][ranked[1:] > ranked[:-1]])
    first, last = (np.searchsorted(prefix, damaged, side=side) for side in ("left", "right"))
    rows = np.repeat(first - np.cumsum(last - first) + (last - first), last - first)
    rows += np.arange(len(rows))  # all rows of these runs; only the order inside runs is wrong
    again = rows.take(np.argsort(-ranked[rows], kind="stable"))
    order[rows], ranked[rows] = order[again], ranked[again]


def sort_rows(confidence: FloatArray, *columns: FloatArray) -> list[FloatArray]:
    """Return confidence and columns from the surest row down.

    Equally sure rows are ordered by the first column, descending, then by the next one: so sums
    of floats do not depend on the order in which rows came.
    """
    order, confidence = descending_order(confidence)
    sorted_columns = [column.take(order) for column in columns]
    equal = confidence[1:] == confidence[:-1]
    if np.any(equal):
        tied = np.append(equal, False) | np.append(False, equal)
        parts = [column[tied] for column in sorted_columns]
        rows = np.arange(len(parts[0]))
        for values in (*reversed(parts), confidence[tied]):
            rows = rows.take(descending_order(values.take(rows))[0])
        for column, part in zip(sorted_columns, parts, strict=True):
            column[tied] = part.take(rows)
    return [confidence, *sorted_columns]
