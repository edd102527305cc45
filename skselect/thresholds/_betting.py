"""Risk targets for graded losses and importance weights: bets on thresholds fixed beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from skselect._typing import BoolArray, FloatArray
from skselect.bounds import betting_log_wealth, rows_for_betting
from skselect.curves import RiskCoverageCurve
from skselect.outcomes import Outcomes
from skselect.thresholds._common import threshold_below

#: Thresholds tested, and the share of rows that places them and certifies nothing.
GRID_THRESHOLDS, PLACING_SHARE = 50, 0.1
# The sequence of thresholds begins at this share of the rows.
_START = 0.15
# More rows than bets need without any loss, so that there may be some.
_ROOM = 1.25


def betting_risk(
    outcomes: Outcomes, target: float, delta: float, min_coverage: float, *, bounded: bool = True
) -> float:
    """Return the lowest threshold whose (weighted) selective risk is certified, inf if none is.

    A random tenth of the rows places 50 thresholds and certifies nothing. The others test them
    from the surest down, each at the full `delta`, until one fails.

    Parameters
    ----------
    outcomes : Outcomes
        Losses in [0, 1]; weights are importance weights.
    target : float in (0, 1)
    delta : float in (0, 1)
    min_coverage : float in [0, 1]
    bounded : bool, default=True
        Whether confidences lie in [0, 1].

    Returns
    -------
    float
    """
    placing, testing = _split(outcomes)
    least = _ROOM * rows_for_betting(target, delta)
    start = max(min_coverage, _START, least / max(len(testing), 1))
    weight = testing.sample_weight

    def wealth(accepted: BoolArray) -> float:
        counted = None if weight is None else weight[accepted]
        return betting_log_wealth(testing.loss[accepted], target, delta, counted)

    return _last_certified(_grid(placing, start, bounded), testing, wealth, delta)


def betting_generalized_risk(
    outcomes: Outcomes, target: float, delta: float, *, bounded: bool = True
) -> float:
    """Return the lowest threshold whose rate of silent loss is certified, inf if none is."""
    placing, testing = _split(outcomes)

    def wealth(accepted: BoolArray) -> float:
        silent = np.where(accepted, testing.loss, 0.0)
        return betting_log_wealth(silent, target, delta, testing.sample_weight)

    return _last_certified(_grid(placing, 0.0, bounded), testing, wealth, delta)


def _split(outcomes: Outcomes) -> tuple[Outcomes, Outcomes]:
    """Return a random tenth and the others, shuffled; the order they came in does not matter."""
    weight = outcomes.weight / np.max(outcomes.weight)
    order = np.lexsort((weight, outcomes.loss, outcomes.confidence))
    order = order[np.random.default_rng(0).permutation(len(order))]
    parts = np.split(order, [math.ceil(PLACING_SHARE * len(order))])
    placing, testing = (
        Outcomes(outcomes.loss[rows], outcomes.confidence[rows], weight[rows]) for rows in parts
    )
    return placing, testing


def _grid(placing: Outcomes, start: float, bounded: bool) -> FloatArray:
    """Return thresholds between the confidences of some rows, from the surest down."""
    curve = RiskCoverageCurve.from_outcomes(Outcomes(placing.loss, placing.confidence))
    if start > 1.0:
        return np.empty(0)
    shares = np.linspace(start, 1.0, GRID_THRESHOLDS) * curve.n_rows
    blocks = np.unique(np.searchsorted(curve.n_accepted, shares - 1e-9)) + 1
    return np.array([threshold_below(curve, int(b), bounded=bounded) for b in blocks])


def _last_certified(
    thresholds: FloatArray,
    testing: Outcomes,
    log_wealth: Callable[[BoolArray], float],
    delta: float,
) -> float:
    """Return the last threshold before the first one at which the bets do not pay."""
    certified = math.inf
    for threshold in thresholds:
        if log_wealth(testing.confidence >= threshold) < -math.log(delta):
            break
        certified = float(threshold)
    return certified
