"""Curves: one value per tie block, any number of them in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skselect._blocks import CHUNK, Chunk, TieBlocks
from skselect._sums import Accepted, Sums, running, walk
from skselect._typing import FloatArray, IntArray

_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class _Step:
    """A chunk on its way.

    Parameters
    ----------
    chunk : Chunk
    weight, loss : ndarray of shape (m,)
        What is accepted at the end of each block.
    total : float
        Weight of all rows.
    next_confidence : float
        Of the block after the last one; 0 after the very last.
    doubts : (float, float)
        Sums of 1 - confidence of the right and of the wrong rows before the chunk.
    """

    chunk: Chunk
    weight: FloatArray
    loss: FloatArray
    total: float
    next_confidence: float
    doubts: tuple[float, float]

    @cached_property
    def doubt_right(self) -> FloatArray:
        return running(self.doubts[0], self.chunk.right * self.chunk.shortfall)

    @cached_property
    def doubt_wrong(self) -> FloatArray:
        return running(self.doubts[1], self.chunk.loss * self.chunk.shortfall)

    @cached_property
    def own_scale(self) -> FloatArray:
        return scale_of(self.chunk.shortfall)

    @cached_property
    def limit_scale(self) -> FloatArray:
        return scale_of(np.append(self.chunk.shortfall[1:], 1.0 - self.next_confidence))

    def cwsa(self, scale: FloatArray, out: FloatArray) -> None:
        total = _cwsa_sum(self.weight, self.loss, self.doubt_right, self.doubt_wrong, scale)
        np.divide(total, self.weight, out=out)

    def cwsa_plus(self, scale: FloatArray, out: FloatArray) -> None:
        total = _cwsa_plus_sum(self.weight, self.loss, self.doubt_right, scale)
        np.divide(total, self.weight, out=out)


#: What can be drawn against the threshold, each written into an array; the limits are those
#: from above at the next lower confidence, where the same rows are accepted still.
COURSES: dict[str, Callable[[_Step, FloatArray], object]] = {
    "threshold": lambda step, out: np.copyto(out, step.chunk.confidence),
    "accepted_weight": lambda step, out: np.copyto(out, step.weight),
    "accepted_loss": lambda step, out: np.copyto(out, step.loss),
    "coverage": lambda step, out: np.divide(step.weight, step.total, out=out),
    "selective_risk": lambda step, out: np.divide(step.loss, step.weight, out=out),
    "generalized_risk": lambda step, out: np.divide(step.loss, step.total, out=out),
    "cwsa": lambda step, out: step.cwsa(step.own_scale, out),
    "cwsa_plus": lambda step, out: step.cwsa_plus(step.own_scale, out),
    "cwsa_limit": lambda step, out: step.cwsa(step.limit_scale, out),
    "cwsa_plus_limit": lambda step, out: step.cwsa_plus(step.limit_scale, out),
}


def courses(
    blocks: TieBlocks, sums: Sums, names: Iterable[str], entries: IntArray | None = None
) -> dict[str, FloatArray]:
    """Return the named curves in one pass, one value per block each, or for some blocks only.

    `entries` are the numbers of the blocks that are wanted, ascending; None is all of them.
    """
    n_values = sums.n_blocks if entries is None else len(entries)
    found = {name: np.empty(n_values) for name in names}
    signed = not found.keys().isdisjoint({"cwsa", "cwsa_limit"})
    plus = not found.keys().isdisjoint({"cwsa_plus", "cwsa_plus_limit"})
    following = np.append(sums.first[1:], 0.0)
    start, doubts, whole = 0, (0.0, 0.0), np.empty(CHUNK)
    for k, (_, chunk, weight, loss) in enumerate(walk(blocks)):
        step = _Step(chunk, weight, loss, sums.weight, float(following[k]), doubts)
        for name, values in found.items():
            if entries is None:
                COURSES[name](step, values[start : start + len(chunk)])
            else:
                first, last = np.searchsorted(entries, [start, start + len(chunk)])
                COURSES[name](step, whole[: len(chunk)])
                values[first:last] = whole[entries[first:last] - start]
        right = float(step.doubt_right[-1]) if signed or plus else 0.0
        doubts = right, float(step.doubt_wrong[-1]) if signed else 0.0
        start += len(chunk)
    return found


def evenly(n: int, max_points: int | None) -> IntArray | None:
    """Return up to `max_points` of n entries, evenly over them with both ends; None for all."""
    if max_points is None or max_points >= n:
        return None
    return np.unique(np.linspace(0, n - 1, max_points).round().astype(np.int64))


def cwsa_of(accepted: Accepted, scale: FloatArray) -> FloatArray:
    """Return the CWSA of accepted sets, 0 of an empty one; `scale` is 1/(1 - threshold)."""
    return _cwsa_sum(*accepted, scale) / np.maximum(accepted.weight, _TINY)


def cwsa_plus_of(accepted: Accepted, scale: FloatArray) -> FloatArray:
    """Return the CWSA+ of accepted sets, 0 of an empty one; `scale` is 1/(1 - threshold)."""
    weight, loss, doubt_right, _ = accepted
    return _cwsa_plus_sum(weight, loss, doubt_right, scale) / np.maximum(weight, _TINY)


def _cwsa_sum(
    weight: FloatArray,
    loss: FloatArray,
    doubt_right: FloatArray,
    doubt_wrong: FloatArray,
    scale: FloatArray,
) -> FloatArray:
    """Return the sum of phi over right rows, see below, less the like over wrong ones."""
    total = weight - loss
    total -= doubt_right * scale
    total -= loss
    total += doubt_wrong * scale
    return total


def _cwsa_plus_sum(
    weight: FloatArray, loss: FloatArray, doubt_right: FloatArray, scale: FloatArray
) -> FloatArray:
    """Return the sum of phi = (c - t)/(1 - t) over right rows: right - D/(1 - t).

    D is the sum of 1 - c: near c = 1 this form is exact where sums of c cancel.
    """
    total = weight - loss
    total -= doubt_right * scale
    return np.maximum(total, 0.0, out=total)  # what no row adds, rounding may take away


def scale_of(room: FloatArray) -> FloatArray:
    """Return 1/(1 - t) for room = 1 - t, and 0 from t = 1 on, where (c - t)/(1 - t) is 1."""
    if len(room) and room.min() > 0:
        return 1.0 / room
    return np.divide(1.0, room, out=np.zeros_like(room), where=room > 0)
