"""How much each row moves a metric of the ranking: a straight line in its loss per tie block.

A row with loss l in block b adds ``constant[b] + l slope[b]``, so that a standard error is a
sum over blocks, in the same kind of pass as the metric itself, and needs no row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skselect import _areas, _keys
from skselect._blocks import Chunk
from skselect._sums import walk
from skselect._typing import FloatArray, IntArray
from skselect.curves import RiskCoverageCurve
from skselect.metrics._clusters import clustered_error
from skselect.outcomes import Outcomes


class Lines(NamedTuple):
    """What the rows of some blocks add, but for a number that is the same for all rows."""

    chunk: Chunk
    constant: FloatArray
    slope: FloatArray


@dataclass(frozen=True, eq=False)
class RankedInfluence:
    """An estimate that depends on the ranking of unweighted rows, and what each row adds.

    Parameters
    ----------
    estimate : float
    scale : {"log", "logit"}
        On which the estimate is normal.
    curve : RiskCoverageCurve
    lines : callable
        curve -> the lines of each chunk.
    outcomes : Outcomes or None
        The rows; None where only their blocks are known.
    """

    estimate: float
    scale: str
    curve: RiskCoverageCurve
    lines: Callable[[RiskCoverageCurve], Iterator[Lines]]
    outcomes: Outcomes | None
    n_trials: None = None

    @cached_property
    def values(self) -> FloatArray:
        """What each row adds, with mean zero, shape (n,)."""
        assert self.outcomes is not None
        lines = list(self.lines(self.curve))
        constant = np.concatenate([line.constant for line in lines])
        slope = np.concatenate([line.slope for line in lines])
        if len(constant) < self.curve.n_rows:
            constant = np.repeat(constant, self.curve.block_rows)
            slope = np.repeat(slope, self.curve.block_rows)
        order, _ = _keys.descending_order(self.outcomes.confidence)
        found = np.empty(len(order))
        found[order] = constant + self.outcomes.loss.take(order) * slope
        return found - np.mean(found)

    def standard_error(self, cluster: IntArray | None = None) -> float:
        """Return the standard error, rows or clusters being independent."""
        if cluster is not None or self.curve.is_graded:
            return clustered_error(self.values, cluster)
        n = self.curve.n_rows
        if n < 2:
            return math.nan
        shift = float(next(self.lines(self.curve)).constant[0])
        total, squares = self._moments(shift)
        if squares - total**2 / n < 1e-6 * squares:  # what all rows share drowns the rest
            total, squares = self._moments(shift + total / n)
        return math.sqrt(max(squares - total**2 / n, 0.0) / (n * (n - 1.0)))

    def _moments(self, shift: float) -> tuple[float, float]:
        """Return the sums of what the rows add, less `shift`, and of its squares."""
        total = squares = 0.0
        for chunk, constant, slope in self.lines(self.curve):
            right, wrong = constant - shift, constant + slope - shift
            total += float(np.sum(chunk.right * right) + np.sum(chunk.loss * wrong))
            squares += float(np.sum(chunk.right * right**2) + np.sum(chunk.loss * wrong**2))
        return total, squares


# The lines of each metric ------------------------------------------------------------------


def augrc_lines(curve: RiskCoverageCurve) -> Iterator[Lines]:
    """Yield the pseudo-values of the U-statistic (its kernel made symmetric)."""
    n = float(curve.n_rows)
    for _, chunk, weight, loss in walk(curve.blocks):
        lower = n - weight + (chunk.weight - 1.0) / 2.0  # ties count by half
        upper_loss = loss - chunk.loss / 2.0
        yield Lines(chunk, upper_loss / (n - 2.0), (lower - 0.5) / (n - 2.0))


def aurc_lines(curve: RiskCoverageCurve) -> Iterator[Lines]:
    """Yield R_j + l_j sum_{k>=j} 1/k - sum_{k>=j} R_k/k, averaged inside blocks."""
    harmonic = float(_areas.harmonic_gap(np.zeros(1), np.array([curve.sums.weight]))[0])
    reciprocals = risks = 0.0  # sums of 1/k and R_k/k over the rows so far
    for _, chunk, weight, loss in walk(curve.blocks):
        size = chunk.weight
        if chunk.all_one:
            gap = 1.0 / weight
            risk = loss * gap
            inside, later = risk * gap, gap
            risk_later = inside
        else:
            before, loss_before, rho = weight - size, loss - chunk.loss, chunk.loss / size
            gap, rest = _areas.harmonic_terms(before, size)
            squares = _areas.square_gap(before, size)  # sum of 1/k^2
            first = gap - before * squares  # sum of i/k^2, with k = before + i
            second = size - 2.0 * before * gap + before**2 * squares  # sum of i^2/k^2
            risk = (loss_before * gap + rho * rest) / size
            inside = loss_before * squares + rho * first
            risk_later = (loss_before * first + rho * second) / size
            later = rest / size
        reciprocal_sums = reciprocals + np.cumsum(gap)
        risk_sums = risks + np.cumsum(inside)
        slope = harmonic - reciprocal_sums + later
        yield Lines(chunk, risk + risk_sums - risk_later, slope)
        reciprocals, risks = float(reciprocal_sums[-1]), float(risk_sums[-1])


def eaurc_lines(curve: RiskCoverageCurve) -> Iterator[Lines]:
    """Yield those of the AURC less those of the best one, a + (1 - a) log(1 - a) of the error."""
    best = -math.log1p(-curve.mean_loss)
    for chunk, constant, slope in aurc_lines(curve):
        yield Lines(chunk, constant, slope - best)


def negative_aurc_lines(curve: RiskCoverageCurve) -> Iterator[Lines]:
    """Yield those of one minus the AURC."""
    for chunk, constant, slope in aurc_lines(curve):
        yield Lines(chunk, -constant, -slope)


def auroc_lines(curve: RiskCoverageCurve) -> Iterator[Lines]:
    """Yield DeLong's placements, so that the standard error is DeLong's times sqrt(n/(n - 1))."""
    n, n_wrong, estimate = curve.n_rows, curve.sums.loss, curve.sums.auroc
    n_right = n - n_wrong
    of_wrong = n * math.sqrt(n_wrong / (n_wrong - 1.0)) / n_wrong
    of_right = n * math.sqrt(n_right / (n_right - 1.0)) / n_right
    for _, chunk, weight, loss in walk(curve.blocks):
        right_above = (weight - loss - chunk.right / 2.0) / n_right
        wrong_below = (n_wrong - loss + chunk.loss / 2.0) / n_wrong
        constant = of_right * (wrong_below - estimate)
        yield Lines(chunk, constant, of_wrong * (right_above - estimate) - constant)
