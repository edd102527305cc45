"""One pass over the tie blocks, and what it leaves: areas, totals, and sums on the way.

The sums up to any threshold are looked up afterwards: those at the start of each chunk are
kept, and one chunk is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skselect._typing import FloatArray, IntArray
from skselect.curve import harmonic
from skselect.curve.tie_blocks import CHUNK, Chunk, TieBlocks

_COUNTS = np.arange(1.0, CHUNK + 1.0)


class Accepted(NamedTuple):
    """Sums over what is accepted: weight, loss, and 1 - confidence of right and of wrong rows.

    Sums of 1 - c are exact near c = 1, where sums of c cancel.
    """

    weight: FloatArray
    loss: FloatArray
    doubt_right: FloatArray
    doubt_wrong: FloatArray


@dataclass(frozen=True, eq=False)
class Sums:
    """What one pass leaves.

    Parameters
    ----------
    risk : float
        Sum over rows of the risk among the rows at least as sure, ties in random order: AURC
        times the weight.
    excess : float or None
        What of that is more than the best order would have, without cancellation; None where
        rows are weighted or losses graded.
    discordant : float
        Pairs whose wrong row is surer than the right one, ties by half: the sum of the products
        of their weights, both in multiples of `unit`.
    unit : float
        A power of two, other than one where squares of weights would overflow.
    confidence, confidence_right : float
        Weighted sum of the confidences of all rows and of the right ones.
    largest, smallest : float
        Confidence of the first and of the last block.
    n_blocks : int
    offsets, first : ndarray of shape (k,)
        Where each chunk starts: in the source, and at which confidence.
    before : Accepted, arrays of shape (k + 1,)
        The sums before each chunk, and in the end.
    """

    risk: float
    excess: float | None
    discordant: float
    unit: float
    confidence: float
    confidence_right: float
    largest: float
    smallest: float
    n_blocks: int
    offsets: IntArray
    first: FloatArray
    before: Accepted

    @property
    def weight(self) -> float:
        """Weight of all rows."""
        return float(self.before.weight[-1])

    @property
    def loss(self) -> float:
        """Weighted loss of all rows."""
        return float(self.before.loss[-1])

    @property
    def aurc(self) -> float:
        """Mean over rows of the risk among the rows at least as sure."""
        return max(self.risk, 0.0) / self.weight

    @property
    def augrc(self) -> float:
        """Area under generalised risk over coverage: wrong-right pairs, and wrong-wrong ones."""
        pairs = self.discordant / (self.weight / self.unit) ** 2
        return pairs + (self.loss / self.weight) ** 2 / 2.0

    @property
    def auroc(self) -> float:
        """Chance that a right row is surer than a wrong one, ties by half."""
        right, wrong = (self.weight - self.loss) / self.unit, self.loss / self.unit
        return 1.0 - min(self.discordant / (right * wrong), 1.0)


class _Pass(NamedTuple):
    """A chunk on its way: what is accepted at the end of each of its blocks."""

    offset: int
    chunk: Chunk
    weight: FloatArray
    loss: FloatArray


def walk(blocks: TieBlocks) -> Iterator[_Pass]:
    """Yield each chunk with the weight and the loss accepted at the end of each block."""
    weight = loss = 0.0
    for offset, chunk in blocks.chunks():
        if chunk.all_one:
            accepted_weight = weight + _COUNTS[: len(chunk)]
        else:
            accepted_weight = running(weight, chunk.weight, whole=chunk.whole)
        accepted_loss = running(loss, chunk.loss, whole=chunk.whole)
        yield _Pass(offset, chunk, accepted_weight, accepted_loss)
        weight, loss = float(accepted_weight[-1]), float(accepted_loss[-1])


def running(start: float, values: FloatArray, *, whole: bool = False) -> FloatArray:
    """Return the sums of the values so far, from `start` on."""
    # Whole numbers have the same sums as integers, at a third of the price.
    total = np.cumsum(values.astype(np.int64)).astype(np.float64) if whole else np.cumsum(values)
    total += start
    return total


def sums_of(blocks: TieBlocks) -> Sums:
    """Walk over the blocks once."""
    risk = excess = discordant = confidence = confidence_right = 0.0
    n_right = blocks.n_right
    offsets, first, before = [], [], [(0.0, 0.0, 0.0, 0.0)]
    n_blocks, smallest = 0, 0.0
    doubt_right = doubt_wrong = 0.0
    for offset, chunk, weight, loss in walk(blocks):
        offsets.append(offset)
        first.append(float(chunk.confidence[0]))
        n_blocks += len(chunk)
        risks = _risks(chunk, weight, loss)
        risk_here = float(np.sum(risks))
        risk += risk_here
        if n_right is None or weight[-1] <= n_right:  # the best order has no error so far
            excess += risk_here
        else:
            excess += _excess(chunk, weight, loss, risks, n_right)
        discordant += _discordant(chunk, loss, blocks.unit)
        confidence_right += _dot(chunk.right, chunk.confidence)
        confidence += _dot(chunk.weight, chunk.confidence)
        doubt_right += _dot(chunk.right, chunk.shortfall)
        doubt_wrong += _dot(chunk.loss, chunk.shortfall)
        before.append((float(weight[-1]), float(loss[-1]), doubt_right, doubt_wrong))
        smallest = float(chunk.confidence[-1])
    columns = Accepted(*(np.array(column) for column in zip(*before, strict=True)))
    return Sums(
        risk=risk,
        excess=None if n_right is None else excess,
        discordant=discordant,
        unit=blocks.unit,
        confidence=confidence,
        confidence_right=confidence_right,
        largest=first[0],
        smallest=smallest,
        n_blocks=n_blocks,
        offsets=np.array(offsets),
        first=np.array(first),
        before=columns,
    )


def _discordant(chunk: Chunk, loss: FloatArray, unit: float) -> float:
    """Return the weighted pairs of a right row in the chunk and a wrong one that is surer."""
    # Where a row is a block, right rows have no loss of their own to halve.
    surer = loss if chunk.all_one and chunk.whole else loss - chunk.loss / 2.0
    return _dot(chunk.right, surer) if unit == 1.0 else _dot(chunk.right / unit, surer / unit)


def _dot(a: FloatArray, b: FloatArray) -> float:
    # BLAS would start threads for it, and other bits would come out.
    return float(np.einsum("i,i->", a, b))


def _risks(chunk: Chunk, weight: FloatArray, loss: FloatArray) -> FloatArray:
    """Return, per block, the sum over its rows of the risk among the rows at least as sure."""
    if chunk.all_one:
        return loss / weight
    if not chunk.whole:
        return _risk_inside(chunk.weight, chunk.loss, weight, loss)
    risk = loss / weight
    tied = chunk.weight != 1.0
    parts = (values[tied] for values in (chunk.weight, chunk.loss, weight, loss))
    risk[tied] = _risk_inside(*parts)
    return risk


def _excess(
    chunk: Chunk, weight: FloatArray, loss: FloatArray, risks: FloatArray, n_right: float
) -> float:
    """Return what the risks are more than those of the best order, which errs from n_right on."""
    more = (loss - np.maximum(weight - n_right, 0.0)) / weight
    if not chunk.all_one:
        tied = chunk.weight != 1.0
        start = np.maximum(weight[tied] - chunk.weight[tied], n_right)
        width = np.maximum(weight[tied] - start, 0.0)
        gap, rest = harmonic.harmonic_terms(start, width)
        more[tied] = risks[tied] - np.where(width > 0, (start - n_right) * gap + rest, 0.0)
    return float(np.sum(more))


def _risk_inside(
    size: FloatArray, lost: FloatArray, weight: FloatArray, loss: FloatArray
) -> FloatArray:
    """Return the summed risk of each block: its losses are their mean, its rows come one by one."""
    gap, rest = harmonic.harmonic_terms(weight - size, size)
    return (loss - lost) * gap + lost / size * rest


def sums_at(blocks: TieBlocks, sums: Sums, thresholds: FloatArray) -> Accepted:
    """Return the sums over what each threshold accepts (a tie with it is accepted)."""
    place = np.searchsorted(-sums.first, -thresholds, side="right") - 1
    found = np.zeros((4, len(thresholds)))
    for k in np.unique(place[place >= 0]):
        here = place == k
        chunk = blocks.chunk_from(int(sums.offsets[k]))
        n_blocks = np.searchsorted(-chunk.confidence, -thresholds[here], side="right")
        doubts = (chunk.right * chunk.shortfall, chunk.loss * chunk.shortfall)
        parts = (chunk.weight, chunk.loss, *doubts)
        for row, part in enumerate(parts):
            inside = np.concatenate([[0.0], np.cumsum(part)])
            found[row, here] = sums.before[row][k] + inside[n_blocks]
    return Accepted(*found)


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
