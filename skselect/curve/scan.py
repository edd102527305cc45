"""One scan over the tie blocks: sums over what is accepted, and all that follows from them.

`Sums.accumulate` reads the blocks from the surest down and adds up weight and loss. The totals
(`sum_blocks`), the AURC (`mean_risk`) and the curves (`compute_curves`) are computed from it.
The sums at a few thresholds (`sum_accepted`) are looked up: the totals hold those at the start
of each chunk, and only the chunk in which a threshold falls is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, dot
from skselect.curve import areas
from skselect.curve.tie_blocks import CHUNK, Chunk, TieBlocks

# Running sums ------------------------------------------------------------------------------

#: A table of at most so many chunks is read once, and its chunks are kept.
FEW = 8

_COUNTS = np.arange(1.0, CHUNK + 1.0)


class Accumulated(NamedTuple):
    """A chunk, and the weight and the loss that are accepted at the end of each of its blocks."""

    chunk: Chunk
    weight: FloatArray
    loss: FloatArray


def _add_up(chunk: Chunk, weight: float, loss: float) -> Accumulated:
    """Return a chunk with its sums, continued from the weight and the loss before it."""
    if chunk.all_one:
        weights = _COUNTS[: len(chunk)] + weight
    else:
        weights = _continue(chunk.weight, weight, whole=chunk.whole)
    losses = _continue(chunk.lost, loss, whole=chunk.whole)
    return Accumulated(chunk, weights, losses)


def _continue(values: NDArray[Any], total: float, *, whole: bool) -> FloatArray:
    """Return running sums that go on from `total`."""
    if whole:  # sums of integers are the same as sums of whole floats, and faster
        values = values.astype(np.int64, copy=False)
    sums = values.cumsum().astype(np.float64, copy=False)
    sums += total
    return sums


# Totals ------------------------------------------------------------------------------------


class Accepted(NamedTuple):
    """Sums over accepted rows, one entry per threshold."""

    weight: FloatArray
    loss: FloatArray


class MeanRisk(NamedTuple):
    """Mean over rows of the risk among the rows at least as sure, ties in random order.

    `excess` is how much larger it is than for the best order, without cancellation; None where
    rows are weighted or losses graded.
    """

    aurc: float
    excess: float | None


class Products(NamedTuple):
    """Sums of products over all blocks.

    Parameters
    ----------
    discordant : float
        Pairs whose wrong row is surer than the right one, ties by half: the sum of the products
        of their weights, both in multiples of the blocks' `unit`.
    confidence, confidence_right : float
        Weighted sum of the confidences of all rows and of the right ones.
    shortfall_right, shortfall_wrong : ndarray of shape (k + 1,)
        Sums of 1 - confidence before each chunk, and after the last one.
    risks : list
        The risk and excess risk that each chunk adds to the AURC, None where rows are tied.
    """

    discordant: float
    confidence: float
    confidence_right: float
    shortfall_right: FloatArray
    shortfall_wrong: FloatArray
    risks: list[tuple[float, float] | None]


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over all blocks: the cheap ones at once, the others when they are asked for.

    Parameters
    ----------
    blocks : TieBlocks
    offsets : ndarray of shape (k,)
        Where each chunk starts in the source.
    weight_before, loss_before : ndarray of shape (k + 1,)
        Weight and weighted loss before each chunk, and after the last one.
    n_blocks : int
    head : Chunk
        The first chunk.
    undecided : float, default=0
        Weight of rows that no threshold accepts.
    """

    blocks: TieBlocks
    offsets: IntArray
    weight_before: FloatArray
    loss_before: FloatArray
    n_blocks: int
    head: Chunk
    undecided: float = 0.0

    def accumulate(self) -> Iterator[Accumulated]:
        """Yield chunk after chunk with the sums so far."""
        return map(self.chunk, range(len(self.offsets)))

    def chunk(self, k: int) -> Accumulated:
        """Return the k-th chunk with the sums so far; those of few are kept."""
        if len(self.offsets) <= FEW:
            return self._chunks[k]
        return self._read(k)

    @cached_property
    def _chunks(self) -> list[Accumulated]:
        return [self._read(k) for k in range(len(self.offsets))]

    def _read(self, k: int) -> Accumulated:
        chunk = self.head
        if k > 0:
            chunk = self.blocks.chunk_from(int(self.offsets[k]))
        return _add_up(chunk, float(self.weight_before[k]), float(self.loss_before[k]))

    @property
    def weight(self) -> float:
        """Weight of all rows that a threshold may accept."""
        return float(self.weight_before[-1])

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return self.weight + self.undecided

    @property
    def loss(self) -> float:
        """Weighted loss of all rows."""
        return float(self.loss_before[-1])

    @cached_property
    def first(self) -> FloatArray:
        """The first confidence of each chunk."""
        return self.blocks.confidence_at(self.offsets)

    @property
    def largest(self) -> float:
        """Confidence of the first block."""
        return float(self.first[0])

    @property
    def smallest(self) -> float:
        """Confidence of the last block."""
        return float(self.blocks.confidence_at([-1])[0])

    @cached_property
    def products(self) -> Products:
        """Sums of products, which take another pass."""
        return sum_products(self)

    @cached_property
    def mean_risk(self) -> MeanRisk:
        """The AURC, which takes harmonic series where rows are tied."""
        return mean_risk(self)

    @property
    def augrc(self) -> float:
        """Area under generalised risk over coverage, from pairs of a wrong and another row."""
        mean_loss = self.loss / self.weight
        return self.discordant_share + mean_loss**2 / 2.0

    @property
    def discordant_share(self) -> float:
        """Discordant pairs as a share of the squared weight: what the order adds to the AUGRC."""
        weight = self.weight / self.blocks.unit
        return self.products.discordant / weight**2

    @property
    def auroc(self) -> float:
        """Chance that a right row is surer than a wrong one, ties by half."""
        unit = self.blocks.unit
        right = (self.weight - self.loss) / unit
        wrong = self.loss / unit
        return 1.0 - min(self.products.discordant / (right * wrong), 1.0)


def sum_blocks(blocks: TieBlocks) -> Sums:
    """Add up weight and loss of all blocks."""
    offsets = []
    weight = [0.0]
    loss = [0.0]
    n_blocks = 0
    head = None
    for offset, chunk in blocks.chunks():
        head = head or chunk
        offsets.append(offset)
        weight.append(weight[-1] + _sum_like_running(chunk.weight, whole=chunk.whole))
        loss.append(loss[-1] + _sum_like_running(chunk.lost, whole=chunk.whole))
        n_blocks += len(chunk)
    assert head is not None
    return Sums(blocks, np.array(offsets), np.array(weight), np.array(loss), n_blocks, head)


def _sum_like_running(values: NDArray[Any], *, whole: bool) -> float:
    """Return the last one of the running sums, to the last bit."""
    if whole:
        return float(values.sum())
    return float(values.cumsum()[-1])


def sum_products(sums: Sums) -> Products:
    """Add up products over all blocks; what needs harmonic series is left to `mean_risk`."""
    discordant = 0.0
    confidence = 0.0
    confidence_right = 0.0
    shortfall_right = [0.0]
    shortfall_wrong = [0.0]
    risks: list[tuple[float, float] | None] = []
    for accumulated in sums.accumulate():
        chunk = accumulated.chunk
        right = chunk.right
        discordant += _discordant_pairs(accumulated, right, sums.blocks.unit)
        confidence_right += dot(right, chunk.confidence)
        confidence += dot(chunk.weight, chunk.confidence)
        shortfall = chunk.shortfall
        shortfall_right.append(shortfall_right[-1] + dot(right, shortfall))
        shortfall_wrong.append(shortfall_wrong[-1] + dot(chunk.loss, shortfall))
        # Harmonic series are left to `mean_risk`.
        risks.append(_sum_risks(accumulated, sums) if chunk.all_one else None)
    return Products(
        discordant,
        confidence,
        confidence_right,
        np.array(shortfall_right),
        np.array(shortfall_wrong),
        risks,
    )


def _discordant_pairs(accumulated: Accumulated, right: FloatArray, unit: float) -> float:
    """Return the weighted pairs of a right row in the chunk and a wrong one that is surer."""
    chunk = accumulated.chunk
    surer = accumulated.loss
    # A pair within a block counts by half; where each row is a block there are none.
    if not (chunk.all_one and chunk.whole):
        surer = surer - chunk.loss / 2.0
    if unit == 1.0:
        return dot(right, surer)
    return dot(right / unit, surer / unit)


def sum_accepted(sums: Sums, thresholds: FloatArray) -> Accepted:
    """Return weight and loss of what each threshold accepts (a tie with it is accepted)."""
    weight = np.zeros(len(thresholds))
    loss = np.zeros(len(thresholds))
    for here, k, last in _look_up(sums, thresholds):
        accumulated = sums.chunk(k)
        weight[here] = accumulated.weight[last]
        loss[here] = accumulated.loss[last]
    return Accepted(weight, loss)


def sum_shortfalls(sums: Sums, thresholds: FloatArray) -> FloatArray:
    """Return 1 - confidence, added up over the right and the wrong rows that are accepted.

    The shape is (2, number of thresholds).
    """
    shortfalls = np.zeros((2, len(thresholds)))
    products = sums.products
    for here, k, last in _look_up(sums, thresholds):
        before = (float(products.shortfall_right[k]), float(products.shortfall_wrong[k]))
        points = _Points(*sums.chunk(k), sums, k, before)
        right, wrong = points.shortfalls
        shortfalls[0, here] = right[last]
        shortfalls[1, here] = wrong[last]
    return shortfalls


def _look_up(sums: Sums, thresholds: FloatArray) -> Iterator[tuple[BoolArray, int, IntArray]]:
    """Yield which thresholds end in a chunk, its number, and the last block that each accepts."""
    place = np.searchsorted(-sums.first, -thresholds, side="right") - 1
    for k in set(place.tolist()) - {-1}:
        here = place == k
        chunk = sums.chunk(k).chunk
        rising = -chunk.confidence
        yield here, k, np.searchsorted(rising, -thresholds[here], side="right") - 1


# AURC --------------------------------------------------------------------------------------


def mean_risk(sums: Sums) -> MeanRisk:
    """Return the AURC, and its excess where rows count once and are right or wrong."""
    total_risk = 0.0
    total_excess = 0.0
    for k, risks in enumerate(sums.products.risks):
        risk, excess = risks or _sum_risks(sums.chunk(k), sums)
        total_risk += risk
        total_excess += excess
    aurc = max(total_risk, 0.0) / sums.weight
    if not sums.blocks.whole:
        return MeanRisk(aurc, None)
    return MeanRisk(aurc, max(total_excess, 0.0) / sums.weight)


def _sum_risks(accumulated: Accumulated, sums: Sums) -> tuple[float, float]:
    """Return the sum of a chunk's block risks, and how much larger it is than for the best order.

    The latter is known for whole numbers only.
    """
    chunk, weight, loss = accumulated
    risks = _block_risks(chunk, weight, loss)
    total = float(risks.sum())
    n_right = sums.weight - sums.loss
    if not chunk.whole or weight[-1] <= n_right:  # the best order has no error so far
        return total, total
    return total, _excess_risk(chunk, weight, loss, risks, n_right)


def _block_risks(chunk: Chunk, weight: FloatArray, loss: FloatArray) -> FloatArray:
    """Return, per block, the sum over its rows of the risk among the rows at least as sure."""
    if chunk.all_one:
        return loss / weight
    if not chunk.whole:
        return _tied_risks(chunk.weight, chunk.loss, weight, loss)
    risks = loss / weight
    tied = np.flatnonzero(chunk.weight != 1.0)
    risks[tied] = _tied_risks(
        chunk.weight.take(tied), chunk.loss.take(tied), weight.take(tied), loss.take(tied)
    )
    return risks


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
    least_loss = np.maximum(weight - n_right, 0.0)
    excess = (loss - least_loss) / weight
    if not chunk.all_one:
        tied = chunk.weight != 1.0
        end = weight[tied]
        start = np.maximum(end - chunk.weight[tied], n_right)
        width = np.maximum(end - start, 0.0)
        gap, rest = areas.harmonic_terms(start, width)
        least_risks = np.where(width > 0, (start - n_right) * gap + rest, 0.0)
        excess[tied] = risks[tied] - least_risks
    return float(excess.sum())


# Curves ------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Points:
    """What is accepted at the end of each block of the k-th chunk; shortfalls if they are needed.

    `before` is the shortfalls before the chunk.
    """

    chunk: Chunk
    weight: FloatArray
    loss: FloatArray
    sums: Sums
    k: int
    before: tuple[float, float]

    @cached_property
    def shortfall(self) -> FloatArray:
        return self.chunk.shortfall

    @cached_property
    def shortfalls(self) -> tuple[FloatArray, FloatArray]:
        """Sums of 1 - confidence over right and over wrong rows.

        A running sum of complex numbers takes as long as one of floats, and rounds each part as
        that does.
        """
        sums = np.empty(len(self.chunk), dtype=np.complex128)
        np.multiply(self.chunk.right, self.shortfall, out=sums.real)
        np.multiply(self.chunk.loss, self.shortfall, out=sums.imag)
        sums.cumsum(out=sums)
        right_before, wrong_before = self.before
        return sums.real + right_before, sums.imag + wrong_before

    @cached_property
    def slope(self) -> FloatArray:
        return areas.slope(self.shortfall)

    @cached_property
    def slope_below(self) -> FloatArray:
        """The slope at the next lower confidence, 0 below the very last one."""
        confidence_below = self.sums.first[self.k + 1 : self.k + 2]
        if len(confidence_below) == 0:
            confidence_below = np.zeros(1)
        shortfall_below = np.append(self.shortfall[1:], 1.0 - confidence_below)
        return areas.slope(shortfall_below)

    def cwsa(self, slope: FloatArray, *, plus: bool) -> FloatArray:
        return areas.sum_terms(self.weight, self.loss, *self.shortfalls, slope, plus=plus)


#: The curves by name, as numerator and denominator. The limits are the values just above the next
#: lower confidence.
CURVES: dict[str, Callable[[_Points], tuple[FloatArray, FloatArray | float]]] = {
    "threshold": lambda at: (at.chunk.confidence, 1.0),
    "accepted_weight": lambda at: (at.weight, 1.0),
    "accepted_loss": lambda at: (at.loss, 1.0),
    "coverage": lambda at: (at.weight, at.sums.total),
    "selective_risk": lambda at: (at.loss, at.weight),
    "generalized_risk": lambda at: (at.loss, at.sums.total),
    "cwsa": lambda at: (at.cwsa(at.slope, plus=False), at.weight),
    "cwsa_plus": lambda at: (at.cwsa(at.slope, plus=True), at.weight),
    "cwsa_limit": lambda at: (at.cwsa(at.slope_below, plus=False), at.weight),
    "cwsa_plus_limit": lambda at: (at.cwsa(at.slope_below, plus=True), at.weight),
}


def compute_curves(
    sums: Sums, names: Iterable[str], entries: IntArray | None = None
) -> dict[str, FloatArray]:
    """Return the named curves, one value per block each, or for some blocks only.

    `entries` are the numbers of the blocks that are wanted, ascending; None is all of them.
    """
    n_values = sums.n_blocks if entries is None else len(entries)
    curves = {name: np.empty(n_values) for name in names}
    start = 0
    for points in _read_points(sums):
        end = start + len(points.chunk)
        for name, values in curves.items():
            above, below = CURVES[name](points)
            if entries is None:
                np.divide(above, below, out=values[start:end])
            else:
                here = slice(*np.searchsorted(entries, [start, end]))
                ratio = above / below
                values[here] = ratio[entries[here] - start]
        start = end
    return curves


def _read_points(sums: Sums) -> Iterator[_Points]:
    """Yield what is accepted, chunk after chunk; shortfalls go on where they were computed."""
    before = (0.0, 0.0)
    for k, accumulated in enumerate(sums.accumulate()):
        points = _Points(*accumulated, sums, k, before)
        yield points
        if "shortfalls" in vars(points):
            right, wrong = points.shortfalls
            before = (float(right[-1]), float(wrong[-1]))


def evenly(n: int, max_points: int | None) -> IntArray | None:
    """Return the numbers of `max_points` of n entries, evenly spread with both ends; None: all."""
    if max_points is None or max_points >= n:
        return None
    places = np.linspace(0, n - 1, max_points).round()
    return np.unique(places.astype(np.int64))
