"""Certified metrics from counts in cells: intervals that contain the exact value.

A cell is a small range of confidences. Only the rows and errors of each cell are counted, so that
the order of the rows inside a cell is unknown: the best and the worst order bound a metric.
Below, the shortfall of a confidence c is 1 - c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skselect._lib.arrays import FloatArray, IntArray
from skselect.curve import areas
from skselect.curve.curve import RiskCoverageCurve
from skselect.curve.tie_blocks import SummedBlocks, blocks_from_counts
from skselect.metrics import SPECS

# Cells -------------------------------------------------------------------------------------

#: Bits of the shortfall, after the leading one, that confidences of a cell share.
BITS = 12
_DROPPED = 52 - BITS
# Shortfalls of float64 are multiples of this: exactly for c >= 1/2, by rounding for c < 1/2.
_STEP = 2.0**-53
# Cell 0 holds the shortfall 0, cell 1 the next larger one.
_BEFORE_FIRST = (int(np.float64(_STEP).view(np.int64)) >> _DROPPED) - 2
N_CELLS = (int(np.float64(1.0).view(np.int64)) >> _DROPPED) - _BEFORE_FIRST


def find_cells(confidence: FloatArray) -> IntArray:
    """Return the cell of each confidence in [0, 1], the surest in cell 0."""
    bits = (1.0 - confidence.astype(np.float64, copy=False)).view(np.int64)
    bits -= 1  # the largest shortfall of a cell still belongs to it
    bits >>= _DROPPED
    bits -= _BEFORE_FIRST
    return np.maximum(bits, 0, out=bits)


def _largest_shortfall(cells: IntArray) -> FloatArray:
    """Return the largest shortfall of each cell, rounded."""
    ends = ((cells + (_BEFORE_FIRST + 1)) << _DROPPED).view(np.float64)
    return np.where(cells == 0, 0.0, np.floor(ends / _STEP) * _STEP)


def _shortfalls(cells: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest shortfall of each cell, before rounding."""
    low = np.where(cells == 0, 0.0, _largest_shortfall(np.maximum(cells - 1, 0)) + _STEP)
    high = _largest_shortfall(cells)
    return low - _STEP * (low >= 0.5), np.minimum(high + _STEP * (high >= 0.5), 1.0)


def least_confidences(cells: IntArray) -> FloatArray:
    """Return the least confidence in [0, 1] that each cell can hold."""
    high = _largest_shortfall(cells)
    # A rounded shortfall may stand for a confidence that is up to half a step smaller.
    return np.maximum(1.0 - high - _STEP / 2.0 * (high >= 0.5), 0.0)


# Counts ------------------------------------------------------------------------------------


class CellCounts:
    """Rows and errors of each cell; a threshold given beforehand divides the cell it lies in.

    Parameters
    ----------
    thresholds : ndarray of shape (m,)
        In [0, 1], ascending and distinct.
    """

    def __init__(self, thresholds: FloatArray) -> None:
        self.thresholds = thresholds
        self.counts = np.zeros((N_CELLS, 2), dtype=np.int64)
        #: Cells in which a threshold lies, and their counts by how many thresholds a row reaches.
        self.divided = np.unique(find_cells(thresholds))
        self.inside = np.zeros((len(self.divided), len(thresholds) + 1, 2), dtype=np.int64)
        self._is_divided = np.zeros(N_CELLS, dtype=bool)
        self._is_divided[self.divided] = True

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        return self.counts.nbytes + self.inside.nbytes + self._is_divided.nbytes

    def add(self, confidence: FloatArray, wrong: NDArray[Any]) -> None:
        """Count rows."""
        cells, kind = find_cells(confidence), wrong.astype(np.int64)
        both = cells * 2
        both += kind
        self.counts += np.bincount(both, minlength=2 * N_CELLS).reshape(-1, 2)
        if len(self.thresholds):
            rows = np.flatnonzero(self._is_divided[cells])
            place = np.searchsorted(self.divided, cells[rows])
            reached = np.searchsorted(self.thresholds, confidence[rows], side="right")
            np.add.at(self.inside, (place, reached, kind[rows]), 1)

    def add_counts(self, confidence: FloatArray, rows: IntArray, errors: IntArray) -> None:
        """Count groups of rows with one confidence each."""
        cells = find_cells(confidence)
        divided = np.flatnonzero(self._is_divided[cells])
        place = np.searchsorted(self.divided, cells[divided])
        reached = np.searchsorted(self.thresholds, confidence[divided], side="right")
        numbers = np.column_stack([rows - errors, errors])
        np.add.at(self.counts, cells, numbers)
        np.add.at(self.inside, (place, reached), numbers[divided])

    def settle(self) -> None:
        """Do nothing: no row is waiting to be counted."""

    def add_all(self, other: CellCounts) -> None:
        """Add the counts of another with the same thresholds."""
        self.counts += other.counts
        self.inside += other.inside

    def parts(self) -> Parts:
        """Return the parts that have rows, the surest first."""
        whole = np.flatnonzero(self.counts.any(axis=1) & ~self._is_divided)
        place, reached = np.nonzero(self.inside.any(axis=2))
        cell = np.concatenate([whole, self.divided[place]])
        reached = np.concatenate([np.full(len(whole), -1), reached])
        rows = np.concatenate([self.counts[whole], self.inside[place, reached[len(whole) :]]])
        order = np.lexsort((-reached, cell))
        right, wrong = rows[order].T
        return Parts(cell[order], right, wrong, reached[order], self.thresholds)

    def blocks(self) -> SummedBlocks:
        """Return the parts as tie blocks, each at the threshold that accepts it."""
        parts = self.parts()
        return parts.blocks(parts.thresholds_below)


@dataclass(frozen=True, eq=False)
class Parts:
    """Cells with rows, divided at the thresholds inside them; the surest first.

    Parameters
    ----------
    cell, right, wrong : ndarray of shape (m,)
        The cell, and its right and wrong rows.
    reached : ndarray of shape (m,)
        How many thresholds its rows reach; -1 where the cell is not divided.
    thresholds : ndarray of shape (k,)
    """

    cell: IntArray
    right: IntArray
    wrong: IntArray
    reached: IntArray
    thresholds: FloatArray

    @cached_property
    def shortfalls(self) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest shortfall that each part can have."""
        low, high = _shortfalls(self.cell)
        divided = self.reached >= 0
        # Parts of one cell lie between the threshold that they reach and the one they miss.
        edges = np.concatenate([[0.0], self.thresholds, [1.0]])
        reached = self.reached[divided]
        high[divided] = np.minimum(high[divided], 1.0 - edges[reached] + _STEP)
        low[divided] = np.maximum(low[divided], 1.0 - edges[reached + 1] - _STEP)
        return np.maximum(low, 0.0), np.minimum(high, 1.0)

    @cached_property
    def confidences(self) -> FloatArray:
        """A confidence inside each part."""
        low, high = _shortfalls(self.cell)
        # The middle; but in a cell of few floats, where the middle could be rounded into the next
        # cell, its first float.
        found = 1.0 - np.where(high - low > 2.0**-48, (low + high) / 2.0, low)
        divided = self.reached >= 0
        edges = np.concatenate([[0.0], self.thresholds, [np.inf]])
        reaches, misses = edges[self.reached[divided]], edges[self.reached[divided] + 1]
        least = np.maximum(1.0 - high[divided], reaches)
        most = np.minimum(1.0 - low[divided], misses)
        # Rounding must not move it across a threshold.
        found[divided] = np.clip((least + most) / 2.0, reaches, np.nextafter(misses, 0.0))
        return found

    @cached_property
    def thresholds_below(self) -> FloatArray:
        """The least confidence of each part: the threshold that accepts it, and no later part."""
        edges = np.concatenate([[0.0], self.thresholds])
        return np.maximum(least_confidences(self.cell), edges[np.maximum(self.reached, 0)])

    def blocks(self, confidence: FloatArray) -> SummedBlocks:
        """Return the parts as tie blocks of these confidences."""
        return blocks_from_counts(confidence, self.right + self.wrong, self.wrong)


# Bounds of metrics -------------------------------------------------------------------------

# Bounds are widened by this share, which is more than rounding errors can be.
_MARGIN = 1e-11


class Bounds(NamedTuple):
    """A value, and the interval that contains the exact one."""

    value: float
    low: float
    high: float


def bound_metric(
    name: str, parts: Parts, curve: RiskCoverageCurve, parameters: Mapping[str, Any]
) -> Bounds:
    """Return a metric of the counted rows, with the bounds that the parts of cells give."""
    at_threshold = {key for key, spec in SPECS.items() if spec.at_threshold}
    known = at_threshold | _BOUNDS.keys()
    if name not in known:
        raise ValueError(
            f"metrics: {name!r} cannot be bounded from cells; mode='certified' knows "
            f"{sorted(known)}. Use mode='exact'."
        )
    threshold, given = parameters.get("threshold", 0.5), parts.thresholds
    if name in at_threshold and threshold > 0 and threshold not in given:
        raise ValueError(
            f"metrics: {name!r} at threshold {threshold:g} is exact only for thresholds given "
            f"beforehand, here {given.tolist()}; build the state with "
            f"SelectiveState('certified', thresholds=[{threshold:g}])."
        )
    value = float(SPECS[name].kernel(curve, **parameters))
    if name not in _BOUNDS:  # known exactly: it depends only on which rows are accepted
        return Bounds(value, value, value)
    unknown = sorted(set(parameters) - {"threshold", "normalize", "eps"})
    if unknown:
        raise ValueError(f"metrics: {name!r} has bounds only without {unknown}; use mode='exact'.")
    low, high = _BOUNDS[name](parts, curve, **parameters)
    return Bounds(min(max(value, low), high), low, high)


def _widen(low: float, high: float, least: float = 0.0, most: float = 1.0) -> tuple[float, float]:
    """Widen an interval against rounding errors, within the range of the metric."""
    low -= _MARGIN * abs(low) + 1e-15 if np.isfinite(low) else 0.0
    high += _MARGIN * abs(high) + 1e-15 if np.isfinite(high) else 0.0
    return max(low, least), min(high, most)


def bound_areas(right: IntArray, wrong: IntArray) -> dict[str, tuple[float, float]]:
    """Return the least and the largest AURC, AUGRC and failure AUROC that parts allow.

    Within a part the best order has its errors last, the worst one has them first.
    """
    g, e = right.astype(np.float64), wrong.astype(np.float64)
    size = g + e
    n, n_wrong = float(size.sum()), float(e.sum())
    before, loss_before = np.cumsum(size) - size, np.cumsum(e) - e
    gap, _ = areas.harmonic_terms(before, size)
    _, late = areas.harmonic_terms(before + g, e)
    _, early = areas.harmonic_terms(before, e)
    after, _ = areas.harmonic_terms(before + e, g)
    fixed = float(np.sum(loss_before * gap))
    best, worst = fixed + float(np.sum(late)), fixed + float(np.sum(early + e * after))
    pairs = float(np.sum(g * loss_before))
    free = float(np.sum(g * e))
    found = {
        "aurc": (best / n, worst / n),
        "augrc": tuple((p + n_wrong**2 / 2.0) / n**2 for p in (pairs, pairs + free)),
    }
    if 0 < n_wrong < n:
        all_pairs = (n - n_wrong) * n_wrong
        found["failure_auroc"] = (1.0 - (pairs + free) / all_pairs, 1.0 - pairs / all_pairs)
    return {name: _widen(low, high) for name, (low, high) in found.items()}


def _area(parts: Parts, _: RiskCoverageCurve, *, name: str) -> tuple[float, float]:
    # Without errors, or without right answers, the AUROC is nan.
    return bound_areas(parts.right, parts.wrong).get(name, (np.nan, np.nan))


def _eaurc(parts: Parts, curve: RiskCoverageCurve) -> tuple[float, float]:
    low, high = bound_areas(parts.right, parts.wrong)["aurc"]
    return _widen(low - curve.best_aurc(), high - curve.best_aurc())


def _cw_accuracy(parts: Parts, _: RiskCoverageCurve) -> tuple[float, float]:
    def share(shortfall_right: FloatArray, shortfall_wrong: FloatArray, if_nothing: float) -> float:
        right = float(np.sum(parts.right * (1.0 - shortfall_right)))
        total = right + float(np.sum(parts.wrong * (1.0 - shortfall_wrong)))
        return right / total if total > 0 else if_nothing

    low, high = parts.shortfalls
    return _widen(share(high, low, 0.0), share(low, high, 1.0))


def _csr(parts: Parts, curve: RiskCoverageCurve, eps: float = 1e-8) -> tuple[float, float]:
    used = parts.wrong > 0
    low, high = (np.clip(shortfall[used], eps, 1.0 - eps) for shortfall in parts.shortfalls)
    with np.errstate(divide="ignore"):  # an error at confidence 1 makes it infinite
        least, most = (float(np.sum(parts.wrong[used] / d)) / curve.n_rows for d in (high, low))
    return _widen(least, most, most=np.inf)


def _cwsa(
    parts: Parts,
    curve: RiskCoverageCurve,
    threshold: float = 0.5,
    normalize: str = "selected",
    *,
    sign: float,
) -> tuple[float, float]:
    accepted = parts.confidences >= threshold
    if not np.any(accepted):
        return 0.0, 0.0
    right, wrong = parts.right[accepted], parts.wrong[accepted]
    # The largest shortfalls give the smallest terms, so the order is reversed below.
    largest, smallest = (
        areas.phi_from_shortfall(shortfall[accepted], threshold) for shortfall in parts.shortfalls
    )
    norm = float(np.sum(right + wrong)) if normalize == "selected" else curve.n_rows

    def mean(phi_right: FloatArray, phi_wrong: FloatArray) -> float:
        return float(np.sum(right * phi_right) + sign * np.sum(wrong * phi_wrong)) / norm

    return _widen(mean(smallest, largest), mean(largest, smallest), least=min(sign, 0.0))


_BOUNDS: dict[str, Callable[..., tuple[float, float]]] = {
    **{name: partial(_area, name=name) for name in ("aurc", "augrc", "failure_auroc")},
    "eaurc": _eaurc,
    "cw_accuracy": _cw_accuracy,
    "csr": _csr,
    "cwsa": partial(_cwsa, sign=-1.0),
    "cwsa_plus": partial(_cwsa, sign=0.0),
}
