"""Whole numbers that sort like confidences, the surest first.

Sorting numbers is an order of magnitude cheaper than sorting positions. The bits of a
non-negative float rise with its value, so that one integer can hold a confidence and, in the
bits to spare, whether the row was wrong (*packed*) or which row it is (*order*).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skselect._typing import BoolArray, FloatArray, IntArray

KeyArray = NDArray[Any]  # uint32 or uint64

#: Rows treated at once: what is made of them stays in the processor's cache.
SPAN = 1 << 14

# Confidences in [0, 2) leave two bits of a float unused, sign and first bit of the exponent;
# their complement within the others turns the order around.
_FORMS: dict[int, tuple[Any, Any, Any]] = {
    4: (np.float32, np.uint32, np.uint32((1 << 30) - 1)),
    8: (np.float64, np.uint64, np.uint64((1 << 62) - 1)),
}


# Confidence and error in one number ---------------------------------------------------------


def packable(confidence: FloatArray) -> bool:
    """Tell whether all confidences lie where bits are to spare, in [0, 2)."""
    return bool(confidence.min() >= 0.0 and confidence.max() < 2.0)


def are_float32(values: FloatArray) -> bool:
    """Tell whether every value is one of float32, whatever the dtype."""
    if values.dtype == np.float32:
        return True
    spans = (values[i : i + SPAN] for i in range(0, len(values), SPAN))
    return all(np.array_equal(span, span.astype(np.float32)) for span in spans)


def packed(confidence: FloatArray, wrong: NDArray[Any], *, narrow: bool) -> KeyArray:
    """Return ``(complement of the confidence's bits) << 1 | wrong``, unsorted.

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
    for start in range(0, len(keys), SPAN):
        part = keys[start : start + SPAN]
        bits = part.view(kind)
        # Adding zero makes the negative zero positive.
        np.add(confidence[start : start + SPAN], 0.0, out=bits, casting="same_kind")
        np.bitwise_xor(part, mask, out=part)
        np.left_shift(part, 1, out=part)
        np.bitwise_or(part, wrong[start : start + SPAN] != 0, out=part)
    return keys


def confidence_of(bits: KeyArray) -> FloatArray:
    """Return the confidences of packed keys that were shifted right by one, as float64.

    `bits` is overwritten.
    """
    kind, _, mask = _FORMS[bits.itemsize]
    np.bitwise_xor(bits, mask, out=bits)
    return bits.view(kind).astype(np.float64, copy=False)


# Confidence and row in one number -----------------------------------------------------------


def descending_order(values: FloatArray) -> IntArray:
    """Return the positions that sort `values` from the largest down, equal ones as they came.

    The positions are sorted along with as many leading bits of the values as fit beside them;
    where these are equal for different values, the few rows concerned are sorted once more.
    """
    n = len(values)
    bits = _falling_bits(values)
    for_row = max(int(n - 1).bit_length(), 1)
    dropped = max(int(bits.max()).bit_length() + for_row - 64, 0)
    keys = bits >> np.uint64(dropped)
    keys <<= np.uint64(for_row)
    keys |= np.arange(n, dtype=np.uint64)
    keys.sort()
    order = (keys & np.uint64((1 << for_row) - 1)).view(np.int64)
    if dropped:
        keys >>= np.uint64(for_row)
        _repair(order, keys, bits)
    return order


def _falling_bits(values: FloatArray) -> NDArray[np.uint64]:
    """Return whole numbers, from 0 on, that rise as the values fall."""
    if values.dtype != np.float32:
        values = values.astype(np.float64, copy=False)
    size = values.dtype.itemsize
    signed = (values + values.dtype.type(0)).view(f"i{size}").astype(np.int64)
    # The bits of negative floats rise with their size: turn all but the sign around.
    np.bitwise_xor(signed, (1 << (8 * size - 1)) - 1, out=signed, where=signed < 0)
    bits = (signed.max().astype(np.uint64) - signed.view(np.uint64)).astype(np.uint64)
    common = int(np.bitwise_or.reduce(bits))
    trailing = (common & -common).bit_length() - 1 if common else 0  # of float32 values: 29
    return bits >> np.uint64(trailing)


def _repair(order: IntArray, prefix: NDArray[np.uint64], bits: NDArray[np.uint64]) -> None:
    """Sort rows of equal prefixes by all of their bits, in place."""
    found = bits[order]
    inverted = found[1:] < found[:-1]
    if not np.any(inverted):
        return
    run = np.concatenate([[0], np.cumsum(prefix[1:] != prefix[:-1])])
    damaged = np.zeros(int(run[-1]) + 1, dtype=bool)
    damaged[run[1:][inverted]] = True
    rows = np.flatnonzero(damaged[run])  # whole runs, which keep their places among the others
    order[rows] = order[rows][np.argsort(found[rows], kind="stable")]


def canonical_order(
    confidence: FloatArray, loss: FloatArray, weight: FloatArray | None
) -> IntArray:
    """Return an order from the surest down that does not depend on the one the rows came in.

    Sums of floats need it: ties are ordered by loss and weight.
    """
    order = descending_order(confidence)
    ranked = confidence[order]
    tied = _equal_to_a_neighbour(ranked)
    if np.any(tied):
        rows = order[tied]
        for values in (loss, confidence) if weight is None else (weight, loss, confidence):
            rows = rows[descending_order(values[rows])]
        order[tied] = rows
    return order


def _equal_to_a_neighbour(ranked: FloatArray) -> BoolArray:
    equal = ranked[1:] == ranked[:-1]
    tied = np.zeros(len(ranked), dtype=bool)
    tied[1:] |= equal
    tied[:-1] |= equal
    return tied
