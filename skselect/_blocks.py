"""Tie blocks: rows of equal confidence, which no threshold can part, from the surest down.

Whatever they come from, blocks are handed out in chunks of `CHUNK` whole blocks. Every sum in
the library goes over these chunks, so that the same blocks give the same bits whether they
were sorted in memory or counted on many machines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from skselect import _keys
from skselect._keys import SPAN, KeyArray
from skselect._typing import FloatArray, IntArray

#: Blocks treated at once.
CHUNK = SPAN

_ONES = np.ones(CHUNK)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive tie blocks.

    Parameters
    ----------
    confidence, weight, loss : ndarray of shape (m,)
        Of each block: its confidence, the weight of its rows, their weighted loss.
    all_one : bool
        Whether every weight is one, as it is for rows that count once and have no ties.
    counted : bool
        Whether weights and losses are whole numbers.
    """

    confidence: FloatArray
    weight: FloatArray
    loss: FloatArray
    all_one: bool
    counted: bool

    def __len__(self) -> int:
        return len(self.confidence)


class TieBlocks(Protocol):
    """Where blocks come from. Offsets are positions of the source's own."""

    @property
    def unit(self) -> float:
        """A power of two, near the largest weight where squares of weights would overflow."""

    def chunks(self) -> Iterator[tuple[int, Chunk]]:
        """Yield each chunk with the offset at which it starts."""

    def chunk_from(self, offset: int) -> Chunk:
        """Return the chunk that starts there."""

    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """Return confidence, weight, loss and number of rows of every block."""


@dataclass(frozen=True, eq=False)
class CountedBlocks:
    """Blocks whose sums are at hand.

    Parameters
    ----------
    confidence, weight, loss : ndarray of shape (B,)
    rows : ndarray of shape (B,)
        Number of rows in each block.
    counted : bool
        Whether weights and losses are whole numbers.
    """

    confidence: FloatArray
    weight: FloatArray
    loss: FloatArray
    rows: IntArray
    counted: bool = False

    @cached_property
    def unit(self) -> float:
        """A power of two, near the largest weight where squares of weights would overflow."""
        exponent = math.frexp(float(self.weight.max()))[1]
        return math.ldexp(1.0, exponent) if abs(exponent) > 100 else 1.0

    def chunks(self) -> Iterator[tuple[int, Chunk]]:
        """Yield each chunk with the number of blocks before it."""
        for start in range(0, len(self.confidence), CHUNK):
            yield start, self.chunk_from(start)

    def chunk_from(self, offset: int) -> Chunk:
        """Return the chunk that starts there."""
        part = slice(offset, offset + CHUNK)
        weight, loss = self.weight[part], self.loss[part]
        all_one = bool(np.all(weight == 1.0))
        return Chunk(self.confidence[part], weight, loss, all_one, self.counted)

    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """Return confidence, weight, loss and number of rows of every block."""
        return self.confidence, self.weight, self.loss, self.rows


@dataclass(frozen=True, eq=False)
class PackedBlocks:
    """Rows that count once and are right or wrong, as sorted packed keys.

    Blocks are read off the keys when they are needed and forgotten again.

    Parameters
    ----------
    keys : ndarray of shape (n,)
    """

    keys: KeyArray
    unit: float = 1.0

    def chunks(self) -> Iterator[tuple[int, Chunk]]:
        """Yield each chunk with the number of rows before it."""
        offset = 0
        while offset < len(self.keys):
            chunk, end = self._read(offset)
            yield offset, chunk
            offset = end

    def chunk_from(self, offset: int) -> Chunk:
        """Return the chunk that starts there."""
        return self._read(offset)[0]

    def _read(self, offset: int) -> tuple[Chunk, int]:
        """Return the chunk that starts at a row, and the row where the next one does."""
        keys = self.keys[offset : offset + CHUNK + 1]
        bits = keys >> 1
        if np.all(bits[1:] != bits[:-1]):
            keys = keys[:CHUNK]
            loss = (keys & 1).astype(np.float64)
            confidence = _keys.confidence_of(bits[:CHUNK])
            chunk = Chunk(confidence, _ONES[: len(keys)], loss, all_one=True, counted=True)
            return chunk, offset + len(keys)
        ends, wrong = self._ends(offset)
        rows, errors = np.diff(ends, prepend=0), np.diff(wrong, prepend=0)
        confidence = _keys.confidence_of(self.keys[offset + ends - 1] >> 1)
        weight, loss = rows.astype(np.float64), errors.astype(np.float64)
        chunk = Chunk(confidence, weight, loss, bool(np.all(rows == 1)), counted=True)
        return chunk, offset + int(ends[-1])

    def _ends(self, offset: int) -> tuple[IntArray, IntArray]:
        """Return where the blocks from `offset` on end, at most `CHUNK`, and the errors so far."""
        ends, wrong = [], []
        found = n_wrong = 0
        for start in range(offset, len(self.keys), SPAN):
            keys = self.keys[start : start + SPAN + 1]
            bits = keys >> 1
            here = np.flatnonzero(bits[1:] != bits[:-1])
            if start + SPAN >= len(self.keys):
                here = np.append(here, len(self.keys) - start - 1)
            here = here[: CHUNK - found]
            errors = np.cumsum(keys[:SPAN] & 1)
            ends.append(here + (start - offset + 1))
            wrong.append(errors[here].astype(np.int64) + n_wrong)
            n_wrong += int(errors[-1])
            found += len(here)
            if found == CHUNK:
                break
        return np.concatenate(ends), np.concatenate(wrong)

    @cached_property
    def _untied(self) -> bool:
        return all(chunk.all_one for _, chunk in self.chunks())

    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
        """Return confidence, weight, loss and number of rows of every block."""
        if not self._untied:
            chunks = [chunk for _, chunk in self.chunks()]
            confidence, weight, loss = (
                np.concatenate([getattr(chunk, name) for chunk in chunks])
                for name in ("confidence", "weight", "loss")
            )
            return confidence, weight, loss, weight.astype(np.int64)
        n = len(self.keys)
        confidence, loss = np.empty(n), np.empty(n)
        for offset, chunk in self.chunks():
            confidence[offset : offset + CHUNK] = chunk.confidence
            loss[offset : offset + CHUNK] = chunk.loss
        # Ones that take no memory.
        return confidence, np.broadcast_to(1.0, (n,)), loss, np.broadcast_to(1, (n,))


def blocks_of(
    loss: FloatArray, confidence: FloatArray, weight: FloatArray | None
) -> PackedBlocks | CountedBlocks:
    """Sort rows whose losses are 0 or 1, and find their blocks."""
    if weight is None and _keys.packable(confidence):
        keys = _keys.packed(confidence, loss, narrow=_keys.are_float32(confidence))
        keys.sort()
        return PackedBlocks(keys)
    order = _keys.canonical_order(confidence, loss, weight)
    return blocks_of_sorted(
        loss[order], confidence[order], None if weight is None else weight[order]
    )


def blocks_of_sorted(
    loss: FloatArray, confidence: FloatArray, weight: FloatArray | None
) -> CountedBlocks:
    """Add up each block; rows come surest first."""
    differs = confidence[1:] != confidence[:-1]
    if np.all(differs):
        ones, one = np.broadcast_to(1.0, loss.shape), np.broadcast_to(1, loss.shape)
        if weight is None:
            return CountedBlocks(confidence, ones, loss, one)
        return CountedBlocks(confidence, weight, weight * loss, one)
    starts = np.concatenate([[0], np.flatnonzero(differs) + 1])
    rows = np.diff(starts, append=len(loss))
    if weight is None:
        size, lost = rows.astype(np.float64), np.add.reduceat(loss, starts)
    else:
        size, lost = np.add.reduceat(weight, starts), np.add.reduceat(weight * loss, starts)
    return CountedBlocks(confidence[starts], size, lost, rows)
