"""How much each row moves an area under a curve.

The values have mean zero. Their scatter, divided by the root of the number of rows, is the standard
error; their differences between two confidences for the same rows compare these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skselect._lib import arrays
from skselect.curve import areas, tie_blocks
from skselect.curve.curve import RiskCoverageCurve
from skselect.curve.scan import FEW
from skselect.curve.tie_blocks import Chunk
from skselect.predictions.outcomes import Outcomes


class Lines(NamedTuple):
    """What each row of some blocks adds: constant + slope x loss, up to a number for all rows."""

    chunk: Chunk
    constant: arrays.FloatArray
    slope: arrays.FloatArray


def clustered_error(values: arrays.FloatArray, cluster: arrays.IntArray | None = None) -> float:
    """Return the standard error of a mean, for independent rows or clusters of rows."""
    n = len(values)
    sums = values if cluster is None else np.bincount(cluster, weights=values)
    m = len(sums)
    if m < 2:
        return math.nan
    variance = np.sum(sums * sums) * m / (m - 1.0)
    return float(np.sqrt(variance) / n)


@dataclass(frozen=True, eq=False)
class RankedInfluence:
    """An estimate that depends on the ranking of unweighted rows, and what each row adds.

    Parameters
    ----------
    estimate : float
    scale : {"log", "logit"}
        The scale on which the estimate is about normal.
    curve : RiskCoverageCurve
    lines : callable
        Yields the lines of each chunk of a curve.
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
    def _all(self) -> list[Lines]:
        return list(self.lines(self.curve))

    def _each(self) -> Iterator[Lines]:
        """Return the lines of each chunk; those of few are kept."""
        if len(self.curve.sums.offsets) <= FEW:
            return iter(self._all)
        return self.lines(self.curve)

    @cached_property
    def values(self) -> arrays.FloatArray:
        """What each row adds, with mean zero, shape (n,)."""
        assert self.outcomes is not None
        lines = list(self._each())
        constant = np.concatenate([line.constant for line in lines])
        slope = np.concatenate([line.slope for line in lines])
        if len(constant) < self.curve.n_rows:
            constant = np.repeat(constant, self.curve.block_rows)
            slope = np.repeat(slope, self.curve.block_rows)
        order, _ = tie_blocks.descending_order(self.outcomes.confidence)
        values = np.empty(len(order))
        values[order] = constant + self.outcomes.loss.take(order) * slope
        return values - np.mean(values)

    @property
    def confident_error(self) -> float:
        """How much the estimate grows if the surest right answer turns wrong (to first order)."""
        for line in self._each():
            right = line.chunk.right > 0
            surest = right.argmax()
            if right[surest]:
                return float(line.slope[surest]) / self.curve.n_rows
        return 0.0

    @property
    def n_pairs(self) -> int:
        """Pairs of a right and a wrong row that have no row in common."""
        n_wrong = self.curve.sums.loss
        return int(min(n_wrong, self.curve.n_rows - n_wrong))

    def standard_error(self, cluster: arrays.IntArray | None = None) -> float:
        """Return the standard error for independent rows, or independent clusters of rows."""
        if cluster is not None or self.curve.is_graded:
            return clustered_error(self.values, cluster)
        n = self.curve.n_rows
        if n < 2:
            return math.nan
        line = next(self._each())
        shift = float(line.constant[0])
        total, squares = self._moments(shift)
        deviations = squares - total**2 / n
        if deviations < 1e-6 * squares:  # a large mean would cost digits
            total, squares = self._moments(shift + total / n)
            deviations = squares - total**2 / n
        return math.sqrt(max(deviations, 0.0) / (n * (n - 1.0)))

    def _moments(self, shift: float) -> tuple[float, float]:
        """Return the sum of (what a row adds - shift), and the sum of its square."""
        total = 0.0
        squares = 0.0
        for chunk, constant, slope in self._each():
            right = constant - shift
            if chunk.all_one:
                values = chunk.loss * slope
                values += right
                total += float(values.sum())
                squares += arrays.dot(values, values)
            else:
                wrong = right + slope
                total += arrays.dot(chunk.right, right) + arrays.dot(chunk.loss, wrong)
                squares += arrays.dot(chunk.right, right**2) + arrays.dot(chunk.loss, wrong**2)
        return total, squares


# The lines of areas ----------------------------------------------------------------------


def augrc_lines(curve: RiskCoverageCurve) -> Iterator[Lines]:
    """Yield the pseudo-values of the U-statistic (its kernel made symmetric)."""
    n = float(curve.n_rows)
    for chunk, weight, loss in curve.sums.accumulate():
        lower = n - weight + (chunk.weight - 1.0) / 2.0  # ties count by half
        upper_loss = loss - chunk.loss / 2.0
        yield Lines(chunk, upper_loss / (n - 2.0), (lower - 0.5) / (n - 2.0))


def aurc_lines(curve: RiskCoverageCurve) -> Iterator[Lines]:
    """Yield R_j + l_j sum_{k>=j} 1/k - sum_{k>=j} R_k/k, its mean over tied rows."""
    total = areas.harmonic_number(curve.sums.weight)
    # Sums of 1/k and R_k/k over the rows so far.
    reciprocals = 0.0
    risks = 0.0
    for chunk, weight, loss in curve.sums.accumulate():
        series = _sum_series(chunk, weight, loss)
        # A running sum of complex numbers takes as long as one of floats.
        running = np.empty(len(chunk), dtype=np.complex128)
        running.real = series.gap
        running.imag = series.risk_gap
        running.cumsum(out=running)
        reciprocal_sums = reciprocals + running.real
        risk_sums = risks + running.imag
        constant = series.risk + risk_sums
        constant -= series.risk_later
        slope = total - reciprocal_sums
        slope += series.later
        yield Lines(chunk, constant, slope)
        reciprocals = float(reciprocal_sums[-1])
        risks = float(risk_sums[-1])


class _Series(NamedTuple):
    """Sums over the rows k of each block; R_k is the risk of the k surest ones.

    Parameters
    ----------
    gap, risk_gap : ndarray of shape (m,)
        Sums of 1/k and R_k/k.
    risk : ndarray of shape (m,)
        Mean of R_k.
    later, risk_later : ndarray of shape (m,)
        Means, over the rows of the block, of the sums of 1/k and R_k/k from the row on.
    """

    gap: arrays.FloatArray
    risk_gap: arrays.FloatArray
    risk: arrays.FloatArray
    later: arrays.FloatArray
    risk_later: arrays.FloatArray


def _sum_series(chunk: Chunk, weight: arrays.FloatArray, loss: arrays.FloatArray) -> _Series:
    """Return the sums over the rows of each block that :func:`aurc_lines` needs."""
    if chunk.all_one:
        gap = 1.0 / weight
        risk = loss * gap
        risk_gap = risk * gap
        return _Series(gap, risk_gap, risk, gap, risk_gap)
    size = chunk.weight
    before = weight - size
    loss_before = loss - chunk.loss
    rho = chunk.loss / size
    gap, rest = areas.harmonic_terms(before, size)
    # Sums of 1/k^2, i/k^2 and i^2/k^2, with k = before + i.
    squares = areas.square_gap(before, size)
    linear = gap - before * squares
    quadratic = size - 2.0 * before * gap + before**2 * squares
    return _Series(
        gap,
        risk_gap=loss_before * squares + rho * linear,
        risk=(loss_before * gap + rho * rest) / size,
        later=rest / size,
        risk_later=(loss_before * linear + rho * quadratic) / size,
    )


def eaurc_lines(curve: RiskCoverageCurve) -> Iterator[Lines]:
    """Yield the lines of the AURC less those of the best AURC, a + (1 - a) log(1 - a)."""
    best = -math.log1p(-curve.mean_loss)
    for chunk, constant, slope in aurc_lines(curve):
        yield Lines(chunk, constant, slope - best)


def negative_aurc_lines(curve: RiskCoverageCurve) -> Iterator[Lines]:
    """Yield the lines of one minus the AURC."""
    for chunk, constant, slope in aurc_lines(curve):
        yield Lines(chunk, -constant, -slope)


def auroc_lines(curve: RiskCoverageCurve) -> Iterator[Lines]:
    """Yield DeLong's placements, so that the standard error is DeLong's times sqrt(n/(n - 1))."""
    n = curve.n_rows
    n_wrong = curve.sums.loss
    n_right = n - n_wrong
    estimate = curve.sums.auroc
    of_wrong = n * math.sqrt(n_wrong / (n_wrong - 1.0)) / n_wrong
    of_right = n * math.sqrt(n_right / (n_right - 1.0)) / n_right
    for chunk, weight, loss in curve.sums.accumulate():
        right_above = (weight - loss - chunk.right / 2.0) / n_right
        wrong_below = (n_wrong - loss + chunk.loss / 2.0) / n_wrong
        constant = of_right * (wrong_below - estimate)
        yield Lines(chunk, constant, of_wrong * (right_above - estimate) - constant)
