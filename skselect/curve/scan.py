"""One scan over the tie blocks: sums over what is accepted, and all that follows from them.

`accumulate` reads the blocks from the surest down and adds up weight and loss. The totals
(`sum_blocks`), the AURC (`mean_risk`) and the curves (`compute_curves`) are computed from it.
The sums at a few thresholds (`sum_accepted`) are looked up: the totals hold those at the start
of each chunk, and only the chunk in which a threshold falls is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from skselect._lib.arrays import FloatArray, IntArray, dot
from skselect.curve import areas
from skselect.curve.tie_blocks import CHUNK, Chunk, TieBlocks

# Running sums ------------------------------------------------------------------------------

_COUNTS = np.arange(1.0, CHUNK + 1.0)


class RunningSum:
    """Cumulative sums of values that come chunk by chunk."""

    def __init__(self, total: float = 0.0) -> None:
        self.total = total

    def add(self, values: FloatArray, *, whole: bool = False) -> FloatArray:
        """Return the running sum at each value, continued from the chunks before."""
        # Sums of integers are the same as sums of whole floats, and faster.
        sums = np.cumsum(values.astype(np.int64)).astype(np.float64) if whole else np.cumsum(values)
        return self._continue(sums)

    def add_ones(self, n: int) -> FloatArray:
        """Return the running sum at each of n ones."""
        return self._continue(_COUNTS[:n].copy())

    def _continue(self, sums: FloatArray) -> FloatArray:
        sums += self.total
        self.total = float(sums[-1])
        return sums


class Accumulated(NamedTuple):
    """A chunk, and the weight and the loss that are accepted at the end of each of its blocks."""

    offset: int
    chunk: Chunk
    weight: FloatArray
    loss: FloatArray


def accumulate(blocks: TieBlocks) -> Iterator[Accumulated]:
    """Yield chunk after chunk with the sums so far."""
    weight, loss = RunningSum(), RunningSum()
    for offset, chunk in blocks.chunks():
        yield _add_up(offset, chunk, weight, loss)


def _add_up(offset: int, chunk: Chunk, weight: RunningSum, loss: RunningSum) -> Accumulated:
    n, whole = len(chunk), chunk.whole
    weights = weight.add_ones(n) if chunk.all_one else weight.add(chunk.weight, whole=whole)
    return Accumulated(offset, chunk, weights, loss.add(chunk.loss, whole=whole))


# Totals ------------------------------------------------------------------------------------


class Accepted(NamedTuple):
    """Sums over accepted rows: weight, loss, and 1 - confidence of right and of wrong rows."""

    weight: FloatArray
    loss: FloatArray
    shortfall_right: FloatArray
    shortfall_wrong: FloatArray


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over all blocks.

    Parameters
    ----------
    discordant : float
        Pairs whose wrong row is surer than the right one, ties by half: the sum of the products
        of their weights, both in multiples of `unit`.
    unit : float
        A power of two: 1, unless squares of weights would overflow.
    confidence, confidence_right : float
        Weighted sum of the confidences of all rows and of the right ones.
    largest, smallest : float
        Confidence of the first and of the last block.
    n_blocks : int
    offsets, first : ndarray of shape (k,)
        Where each chunk starts: its offset in the source, and its first confidence.
    before : Accepted, arrays of shape (k + 1,)
        The sums before each chunk, and after the last one.
    """

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
    def augrc(self) -> float:
        """Area under generalised risk over coverage, from pairs of a wrong and another row."""
        return self.discordant_share + (self.loss / self.weight) ** 2 / 2.0

    @property
    def discordant_share(self) -> float:
        """Discordant pairs as a share of the squared weight: what the order adds to the AUGRC."""
        return self.discordant / (self.weight / self.unit) ** 2

    @property
    def auroc(self) -> float:
        """Chance that a right row is surer than a wrong one, ties by half."""
        right, wrong = (self.weight - self.loss) / self.unit, self.loss / self.unit
        return 1.0 - min(self.discordant / (right * wrong), 1.0)


def sum_blocks(blocks: TieBlocks) -> Sums:
    """Add up all blocks; what needs harmonic series is left to `mean_risk`."""
    discordant = confidence = confidence_right = 0.0
    shortfall_right = shortfall_wrong = smallest = 0.0
    n_blocks = 0
    offsets, first, before = [], [], [(0.0, 0.0, 0.0, 0.0)]
    for offset, chunk, weight, loss in accumulate(blocks):
        offsets.append(offset)
        first.append(float(chunk.confidence[0]))
        smallest = float(chunk.confidence[-1])
        n_blocks += len(chunk)
        discordant += _discordant_pairs(chunk, loss, blocks.unit)
        confidence_right += dot(chunk.right, chunk.confidence)
        confidence += dot(chunk.weight, chunk.confidence)
        shortfall_right += dot(chunk.right, chunk.shortfall)
        shortfall_wrong += dot(chunk.loss, chunk.shortfall)
        before.append((float(weight[-1]), float(loss[-1]), shortfall_right, shortfall_wrong))
    return Sums(
        discordant=discordant,
        unit=blocks.unit,
        confidence=confidence,
        confidence_right=confidence_right,
        largest=first[0],
        smallest=smallest,
        n_blocks=n_blocks,
        offsets=np.array(offsets),
        first=np.array(first),
        before=Accepted(*np.array(before).T),
    )


def _discordant_pairs(chunk: Chunk, loss: FloatArray, unit: float) -> float:
    """Return the weighted pairs of a right row in the chunk and a wrong one that is surer."""
    # A pair within a block counts by half; where each row is a block there are none.
    surer = loss if chunk.all_one and chunk.whole else loss - chunk.loss / 2.0
    return dot(chunk.right, surer) if unit == 1.0 else dot(chunk.right / unit, surer / unit)


def sum_accepted(blocks: TieBlocks, sums: Sums, thresholds: FloatArray) -> Accepted:
    """Return the sums over what each threshold accepts (a tie with it is accepted)."""
    place = np.searchsorted(-sums.first, -thresholds, side="right") - 1
    found = np.zeros((4, len(thresholds)))
    for k in np.unique(place[place >= 0]):
        here = place == k
        chunk = blocks.chunk_from(int(sums.offsets[k]))
        n_blocks = np.searchsorted(-chunk.confidence, -thresholds[here], side="right")
        right, wrong = chunk.right * chunk.shortfall, chunk.loss * chunk.shortfall
        for row, part in enumerate((chunk.weight, chunk.loss, right, wrong)):
            inside = np.concatenate([[0.0], np.cumsum(part)])
            found[row, here] = sums.before[row][k] + inside[n_blocks]
    return Accepted(*found)


def accumulate_chunk(blocks: TieBlocks, sums: Sums, k: int) -> Accumulated:
    """Return the k-th chunk with the sums so far, as `accumulate` does."""
    offset, before = int(sums.offsets[k]), sums.before
    weight, loss = RunningSum(float(before.weight[k])), RunningSum(float(before.loss[k]))
    return _add_up(offset, blocks.chunk_from(offset), weight, loss)


def count_blocks(
    blocks: TieBlocks, sums: Sums, name: str, values: Any, side: Literal["left", "right"]
) -> IntArray:
    """Return where values stand among the accepted weights or losses of all blocks.

    It is `np.searchsorted` of an array with one entry per block, which is not built.
    """
    values = np.asarray(values)
    place = np.searchsorted(getattr(sums.before, name)[1:], values, side=side)
    found = np.full(values.shape, sums.n_blocks)
    for k in np.unique(place[place < len(sums.offsets)]).tolist():
        inside = getattr(accumulate_chunk(blocks, sums, k), name)
        here = place == k
        found[here] = k * CHUNK + np.searchsorted(inside, values[here], side=side)
    return found


# AURC --------------------------------------------------------------------------------------


class MeanRisk(NamedTuple):
    """Mean over rows of the risk among the rows at least as sure, ties in random order.

    `excess` is how much larger it is than for the best order, without cancellation; None where
    rows are weighted or losses graded.
    """

    aurc: float
    excess: float | None


def mean_risk(blocks: TieBlocks, sums: Sums) -> MeanRisk:
    """Return the AURC, and its excess where rows count once and are right or wrong."""
    risk = excess = 0.0
    n_right = sums.weight - sums.loss if blocks.whole else None
    for _, chunk, weight, loss in accumulate(blocks):
        risks = _block_risks(chunk, weight, loss)
        chunk_risk = float(np.sum(risks))
        risk += chunk_risk
        if n_right is None or weight[-1] <= n_right:  # the best order has no error so far
            excess += chunk_risk
        else:
            excess += _excess_risk(chunk, weight, loss, risks, n_right)
    known = None if n_right is None else max(excess, 0.0) / sums.weight
    return MeanRisk(max(risk, 0.0) / sums.weight, known)


def _block_risks(chunk: Chunk, weight: FloatArray, loss: FloatArray) -> FloatArray:
    """Return, per block, the sum over its rows of the risk among the rows at least as sure."""
    if chunk.all_one:
        return loss / weight
    if not chunk.whole:
        return _tied_risks(chunk.weight, chunk.loss, weight, loss)
    risk = loss / weight
    tied = chunk.weight != 1.0
    parts = (values[tied] for values in (chunk.weight, chunk.loss, weight, loss))
    risk[tied] = _tied_risks(*parts)
    return risk


def _tied_risks(
    block_weight: FloatArray, block_loss: FloatArray, weight: FloatArray, loss: FloatArray
) -> FloatArray:
    """Return the block risks of tied rows, each of which is taken to have their mean loss."""
    gap, rest = areas.harmonic_terms(weight - block_weight, block_weight)
    return (loss - block_loss) * gap + block_loss / block_weight * rest


def _excess_risk(
    chunk: Chunk, weight: FloatArray, loss: FloatArray, risks: FloatArray, n_right: float
) -> float:
    """Return how much larger the risks are than in the best order, whose errors come last."""
    more = (loss - np.maximum(weight - n_right, 0.0)) / weight
    if not chunk.all_one:
        tied = chunk.weight != 1.0
        start = np.maximum(weight[tied] - chunk.weight[tied], n_right)
        width = np.maximum(weight[tied] - start, 0.0)
        gap, rest = areas.harmonic_terms(start, width)
        more[tied] = risks[tied] - np.where(width > 0, (start - n_right) * gap + rest, 0.0)
    return float(np.sum(more))


# Curves ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Points:
    """What is accepted at the end of each block of a chunk; shortfalls are added up if needed.

    `next_confidence` is that of the block after the last one, 0 after the very last; `right` and
    `wrong` add up 1 - confidence over right and wrong rows.
    """

    chunk: Chunk
    weight: FloatArray
    loss: FloatArray
    total_weight: float
    next_confidence: float
    right: RunningSum
    wrong: RunningSum

    @cached_property
    def shortfall_right(self) -> FloatArray:
        return self.right.add(self.chunk.right * self.chunk.shortfall)

    @cached_property
    def shortfall_wrong(self) -> FloatArray:
        return self.wrong.add(self.chunk.loss * self.chunk.shortfall)

    @cached_property
    def slope(self) -> FloatArray:
        return areas.slope(self.chunk.shortfall)

    @cached_property
    def slope_below(self) -> FloatArray:
        return areas.slope(np.append(self.chunk.shortfall[1:], 1.0 - self.next_confidence))


#: The curves by name. The limits are the values just above the next lower confidence, where the
#: accepted rows are still the same.
CURVES: dict[str, Callable[[_Points], FloatArray]] = {
    "threshold": lambda at: at.chunk.confidence,
    "accepted_weight": lambda at: at.weight,
    "accepted_loss": lambda at: at.loss,
    "coverage": lambda at: at.weight / at.total_weight,
    "selective_risk": lambda at: at.loss / at.weight,
    "generalized_risk": lambda at: at.loss / at.total_weight,
    "cwsa": lambda at: areas.sum_terms(at, at.slope, -1.0) / at.weight,
    "cwsa_plus": lambda at: areas.sum_terms(at, at.slope, 0.0) / at.weight,
    "cwsa_limit": lambda at: areas.sum_terms(at, at.slope_below, -1.0) / at.weight,
    "cwsa_plus_limit": lambda at: areas.sum_terms(at, at.slope_below, 0.0) / at.weight,
}


def compute_curves(
    blocks: TieBlocks, sums: Sums, names: Iterable[str], entries: IntArray | None = None
) -> dict[str, FloatArray]:
    """Return the named curves, one value per block each, or for some blocks only.

    `entries` are the numbers of the blocks that are wanted, ascending; None is all of them.
    """
    found = {name: np.empty(sums.n_blocks if entries is None else len(entries)) for name in names}
    right, wrong = RunningSum(), RunningSum()
    next_confidences = np.append(sums.first[1:], 0.0).tolist()
    start = 0
    for k, (_, chunk, weight, loss) in enumerate(accumulate(blocks)):
        points = _Points(chunk, weight, loss, sums.weight, next_confidences[k], right, wrong)
        end = start + len(chunk)
        for name, values in found.items():
            here = CURVES[name](points)
            if entries is None:
                values[start:end] = here
            else:
                first, last = np.searchsorted(entries, [start, end])
                values[first:last] = here[entries[first:last] - start]
        start = end
    return found


def evenly(n: int, max_points: int | None) -> IntArray | None:
    """Return the numbers of `max_points` of n entries, evenly spread with both ends; None: all."""
    if max_points is None or max_points >= n:
        return None
    return np.unique(np.linspace(0, n - 1, max_points).round().astype(np.int64))
