"""Tie blocks: rows of equal confidence, which no threshold can separate, from the surest down.

Every source hands out its blocks in chunks of `CHUNK` blocks, and every sum goes over these
chunks. So the same blocks give the same bits, whether they were sorted in memory or counted on
many machines.

Rows are sorted as whole numbers, ten times cheaper than sorting positions. The bits of a
non-negative float sort like its value, so that one integer can hold a confidence and, in bits that
it leaves unused, whether the row was wrong (`pack`) or which row it is (`descending_order`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skselect._lib.arrays import FloatArray, IntArray, spans
from skselect._lib.decide import SPAN

KeyArray = NDArray[Any]  # uint32 or uint64

# Floats in [0, 2) leave two bits unused, the sign and the first one of the exponent. The
# complement of the other bits sorts the surest first. For each size of a float in bytes: its type,
# the type of the key, and a mask of the used bits.
_FORMS: dict[int, tuple[Any, Any, Any]] = {
    4: (np.float32, np.uint32, np.uint32((1 << 30) - 1)),
    8: (np.float64, np.uint64, np.uint64((1 << 62) - 1)),
}


# Confidence and error in one number ---------------------------------------------------------


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
    differences = np.empty(len(values), dtype=np.int64)
    highest = _rising(values.max()[None])
    used = 0
    for rows in spans(len(values)):
        part = differences[rows]
        # The difference may exceed the largest signed integer, but not the largest unsigned one.
        np.subtract(highest, _rising(values[rows]), out=part)
        used |= int(np.bitwise_or.reduce(part.view(np.uint64)))
    bits = differences.view(np.uint64)
    lowest_used = used & -used
    trailing = lowest_used.bit_length() - 1  # 29 for float32; -1 where all values are equal
    if trailing > 0:
        bits >>= trailing
    return bits


def _rising(values: FloatArray) -> IntArray:
    """Return signed integers in the order of the values; a negative zero is a zero."""
    bits = (values + 0.0).view(np.int64)
    # The bits of a negative float grow as it falls: invert all but the sign.
    return np.bitwise_xor(bits, np.int64((1 << 63) - 1), out=bits, where=bits < 0)


def _repair(order: IntArray, ranked: FloatArray, prefix: NDArray[np.uint64]) -> None:
    """Sort rows of equal prefixes by their values, in place."""
    rises = ranked[1:] > ranked[:-1]
    damaged = np.unique(prefix[1:][rises])
    start = np.searchsorted(prefix, damaged, side="left")
    size = np.searchsorted(prefix, damaged, side="right") - start
    # All rows of these runs; only the order inside runs is wrong.
    rows = np.repeat(start - np.cumsum(size) + size, size)
    rows += np.arange(len(rows))
    falling = np.argsort(-ranked[rows], kind="stable")
    again = rows.take(falling)
    order[rows] = order[again]
    ranked[rows] = ranked[again]


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
            order, _ = descending_order(values.take(rows))
            rows = rows.take(order)
        for column, part in zip(sorted_columns, parts, strict=True):
            column[tied] = part.take(rows)
    return [confidence, *sorted_columns]


#: Blocks treated at once.
CHUNK = SPAN

_ONES = np.ones(CHUNK)


@dataclass(eq=False)
class Chunk:
    """Consecutive tie blocks.

    Parameters
    ----------
    ranking : ndarray of shape (m,)
        The confidence of each block, or a key that packs it, until it is asked for.
    weight : ndarray of shape (m,)
        The weight of the rows of each block.
    lost : ndarray of shape (m,)
        Their weighted loss; counted errors are integers, until `loss` is asked for.
    all_one : bool
        Whether every weight is one, as it is for rows that count once and have no ties.
    whole : bool
        Whether weights and losses are whole numbers.
    """

    ranking: NDArray[Any]
    weight: FloatArray
    lost: NDArray[Any]
    all_one: bool
    whole: bool

    def __len__(self) -> int:
        return len(self.ranking)

    @property
    def confidence(self) -> FloatArray:
        """The confidence of each block."""
        if self.ranking.dtype.kind == "u":
            self.ranking = unpack_confidence(self.ranking >> 1)
        return self.ranking

    @property
    def loss(self) -> FloatArray:
        """The weighted loss of each block."""
        if self.lost.dtype.kind == "i":
            self.lost = self.lost.astype(np.float64)
        return self.lost

    @property
    def right(self) -> FloatArray:
        """Weight of each block less its loss: that of its right rows."""
        return self.weight - self.loss

    @property
    def shortfall(self) -> FloatArray:
        """One minus the confidence, exact for confidences of one half or more."""
        return 1.0 - self.confidence


@dataclass(frozen=True, eq=False)
class SummedBlocks:
    """Blocks whose sums are stored.

    Parameters
    ----------
    confidence, weight, loss : ndarray of shape (B,)
    rows : ndarray of shape (B,)
        Number of rows in each block.
    whole : bool
        Whether weights and losses are whole numbers.
    """

    confidence: FloatArray
    weight: FloatArray
    loss: FloatArray
    rows: IntArray
    whole: bool

    @cached_property
    def unit(self) -> float:
        """A power of two: 1, or near the largest weight if squares of weights would overflow."""
        _, exponent = math.frexp(float(self.weight.max()))
        if abs(exponent) <= 100:
            return 1.0
        return math.ldexp(1.0, exponent)

    def chunks(self) -> Iterator[tuple[int, Chunk]]:
        """Yield each chunk with the number of blocks before it."""
        for start in range(0, len(self.confidence), CHUNK):
            yield start, self.chunk_from(start)

    def chunk_from(self, offset: int) -> Chunk:
        """Return the chunk that starts there."""
        part = slice(offset, offset + CHUNK)
        weight = self.weight[part]
        all_one = bool(np.all(weight == 1.0))
        return Chunk(self.confidence[part], weight, self.loss[part], all_one, self.whole)

    def confidence_at(self, offsets: Any) -> FloatArray:
        """Return the confidences at some offsets."""
        return self.confidence[offsets]

    @property
    def stored(self) -> SummedBlocks:
        """These blocks, as of the other form."""
        return self


@dataclass(frozen=True, eq=False)
class PackedBlocks:
    """Rows that count once and are right or wrong, of which few are tied, as sorted packed keys.

    Chunks are computed from the keys whenever they are needed.

    Parameters
    ----------
    keys : ndarray of shape (n,)
    ties : ndarray of shape (m,)
        The rows that are as sure as the next one, ascending.
    """

    keys: KeyArray
    ties: IntArray
    #: These are numbers of rows, whose squares do not overflow.
    unit: ClassVar[float] = 1.0
    whole: ClassVar[bool] = True

    @cached_property
    def stored(self) -> SummedBlocks:
        """The same blocks with their sums stored."""
        return count_keys(self.keys, self.ties)

    @cached_property
    def confidence(self) -> FloatArray:
        """The confidence of each block."""
        keys = self.keys
        if len(self.ties):
            keys = np.delete(keys, self.ties)
        return unpack_confidence(keys >> 1)

    @cached_property
    def rows(self) -> IntArray:
        """The number of rows of each block; broadcast ones take no memory."""
        if len(self.ties) == 0:
            return np.broadcast_to(1, self.keys.shape)
        last = np.delete(np.arange(len(self.keys)), self.ties)
        return _differences(last, before=-1)

    @cached_property
    def _blocks_with_ties(self) -> IntArray:
        """The number of the block in which each tie lies."""
        return self.ties - np.arange(len(self.ties))

    def chunks(self) -> Iterator[tuple[int, Chunk]]:
        """Yield each chunk with the number of rows before it."""
        offset = 0
        while offset < len(self.keys):
            chunk, end = self._read(offset)
            yield offset, chunk
            offset = end

    def chunk_from(self, offset: int) -> Chunk:
        """Return the chunk that starts there."""
        chunk, _ = self._read(offset)
        return chunk

    def confidence_at(self, offsets: Any) -> FloatArray:
        """Return the confidences at some offsets."""
        return unpack_confidence(self.keys[offsets] >> 1)

    def _read(self, offset: int) -> tuple[Chunk, int]:
        """Return the chunk that starts at a row, and the row at which the next one starts."""
        n_before = int(np.searchsorted(self.ties, offset))
        n_ties = int(np.searchsorted(self._blocks_with_ties, offset - n_before + CHUNK))
        keys = self.keys[offset : offset + CHUNK + n_ties - n_before]
        end = offset + len(keys)
        if n_ties == n_before:
            errors = (keys & 1).view(f"i{keys.itemsize}")
            ones = _ONES[: len(keys)]
            return Chunk(keys, ones, errors, all_one=True, whole=True), end
        ties = self.ties[n_before:n_ties] - offset
        last, rows, errors = _count_blocks(keys, ties)
        weight = rows.astype(np.float64)
        return Chunk(last, weight, errors, all_one=False, whole=True), end


# Blocks are stored at once where more of the rows than this are tied.
_FEW_TIES = 0.02

#: Blocks in either form. Offsets say where chunks start: in blocks, or in rows.
TieBlocks = SummedBlocks | PackedBlocks


def _differences(values: IntArray, before: int) -> IntArray:
    """Return each value less the one before it (np.diff would copy them to prepend the first)."""
    differences = np.empty_like(values)
    differences[0] = values[0] - before
    np.subtract(values[1:], values[:-1], out=differences[1:])
    return differences


def group_rows(loss: FloatArray, confidence: FloatArray, weight: FloatArray | None) -> TieBlocks:
    """Sort rows whose losses are 0 or 1, and find their blocks."""
    low = confidence.min()
    high = confidence.max()
    if weight is None and low >= 0.0 and high < 2.0:
        keys = pack(confidence, loss, narrow=are_float32(confidence))
        # Sorting floats is faster. No key has its sign bit set, and floats without it sort like
        # their bits but for NaN and, where a processor takes them for zero, numbers below the
        # least normal one. The keys of confidences from that number up to 1 are neither.
        is_normal = low >= np.finfo(np.float64).tiny and high <= 1.0
        if is_normal and keys.itemsize == 8:
            keys.view(np.float64).sort()
        else:
            keys.sort()
        ties = find_ties(keys)
        blocks = PackedBlocks(keys, ties)
        if len(ties) > _FEW_TIES * len(keys):
            return blocks.stored
        return blocks
    if weight is None:
        confidence, lost = sort_rows(confidence, loss)
        return group_sorted_rows(confidence, None, lost, whole=True)
    # The sign of a weight tells whether its row was wrong: so one column is sorted, not two.
    signed = 0.5 - loss
    np.copysign(weight, signed, out=signed)
    confidence, signed = sort_rows(confidence, signed)
    lost = np.negative(signed)
    np.maximum(lost, 0.0, out=lost)
    return group_sorted_rows(confidence, np.abs(signed, out=signed), lost)


def find_ties(keys: KeyArray) -> IntArray:
    """Return the rows, ascending, that are as sure as the next one, of sorted packed keys."""
    ties = [np.empty(0, dtype=np.int64)]
    for rows in spans(len(keys) - 1):
        following = keys[rows.start + 1 : rows.stop + 1]
        # Equal confidences differ at most in the last bit, whether the row was wrong.
        same = (keys[rows] ^ following) <= 1
        if same.any():
            ties.append(np.flatnonzero(same) + rows.start)
    return np.concatenate(ties)


def count_keys(keys: KeyArray, ties: IntArray) -> SummedBlocks:
    """Return the blocks of sorted packed keys, whose ties are known."""
    last, rows, errors = _count_blocks(keys, ties)
    confidence = unpack_confidence(last >> 1)
    return blocks_from_counts(confidence, rows, errors)


def _count_blocks(keys: KeyArray, ties: IntArray) -> tuple[KeyArray, IntArray, IntArray]:
    """Return the last key, the rows and the errors of each block of sorted packed keys."""
    is_last = np.ones(len(keys), dtype=bool)
    is_last[ties] = False
    last = np.flatnonzero(is_last)
    errors = np.empty(len(last), dtype=np.int64)  # up to the end of each block
    n_wrong = 0
    for rows in spans(len(keys)):
        here = slice(*np.searchsorted(last, [rows.start, rows.stop]))
        sums = np.cumsum(keys[rows] & 1, dtype=np.int64)
        errors[here] = sums.take(last[here] - rows.start) + n_wrong
        n_wrong += int(sums[-1])
    return keys.take(last), _differences(last, before=-1), _differences(errors, before=0)


def group_sorted_rows(
    confidence: FloatArray, weight: FloatArray | None, lost: FloatArray, *, whole: bool = False
) -> SummedBlocks:
    """Add up weight and weighted loss of each block; rows come surest first.

    `whole` says that these are whole numbers.
    """
    if np.all(confidence[1:] != confidence[:-1]):
        rows = np.broadcast_to(1, lost.shape)
        if weight is None:
            weight = np.broadcast_to(1.0, lost.shape)
        return SummedBlocks(confidence, weight, lost, rows, whole)
    starts = run_starts(confidence)
    rows = np.diff(starts, append=len(lost))
    weight = rows.astype(np.float64) if weight is None else np.add.reduceat(weight, starts)
    lost = np.add.reduceat(lost, starts)
    return SummedBlocks(confidence[starts], weight, lost, rows, whole)


def blocks_from_counts(confidence: FloatArray, rows: IntArray, errors: IntArray) -> SummedBlocks:
    """Return blocks of which rows and errors have been counted, from the surest down."""
    weight = rows.astype(np.float64)
    loss = errors.astype(np.float64)
    return SummedBlocks(confidence, weight, loss, rows, whole=True)
