"""What every rule needs: where to put a threshold, and how many entries passed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skselect._typing import BoolArray, IntArray
from skselect.curves import RiskCoverageCurve

#: A rule: curve, target, delta, least coverage -> accepted entries.
Rule = Callable[[RiskCoverageCurve, float, float, float], int]


def threshold_below(curve: RiskCoverageCurve, n_blocks: int, *, bounded: bool = True) -> float:
    """Return the threshold that accepts the first `n_blocks` entries and no more.

    It is the midpoint between the last accepted and the first rejected confidence, which
    survives rounding to float32 and the last bit of `predict_proba`. Where entries stand for
    cells of confidences it is the least one that the last accepted cell can hold. Accepting
    everything starts at 0, or at -inf where confidences are not confined to [0, 1] (`bounded`
    says whether they can be, for a function of the user's).
    """
    if n_blocks == 0:
        return float("inf")
    lowest = float(curve.thresholds[n_blocks - 1])
    if n_blocks == len(curve):
        inside = bounded and lowest >= 0 and curve.thresholds[0] <= 1
        return 0.0 if inside else float("-inf")
    if curve.in_cells:
        return lowest
    rejected = float(curve.thresholds[n_blocks])
    middle = rejected + (lowest - rejected) / 2.0
    return middle if rejected < middle <= lowest else lowest


def last_passed(passed: BoolArray) -> int:
    """Return how many entries the last one that passed accepts."""
    found = np.flatnonzero(passed)
    return int(found[-1]) + 1 if len(found) else 0


def passes(curve: RiskCoverageCurve, ranks: IntArray, limits: IntArray) -> BoolArray:
    """Tell which entries have at most as many errors as the tested rank at or below them allows."""
    passed = np.zeros(len(curve), dtype=bool)
    for begin, end in zip(*passing_runs(curve, ranks, limits), strict=True):
        passed[begin:end] = True
    return passed


def passing_runs(
    curve: RiskCoverageCurve, ranks: IntArray, limits: IntArray
) -> tuple[IntArray, IntArray]:
    """Return, for each tested rank, the run of entries from it on that pass its limit.

    Errors only grow, so that the entries between two tested ranks which pass are the first
    ones: a few look-ups for each rank, whatever the number of rows.
    """
    begin = np.searchsorted(curve.n_accepted, ranks)
    end = np.append(begin[1:], len(curve))
    few = np.searchsorted(curve.accepted_loss, limits, side="right")
    return begin, np.maximum(np.minimum(end, few), begin)
