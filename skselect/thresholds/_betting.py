"""Rules for graded losses and importance weights, certified by bets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from skselect._lib.checks.options import check_number
from skselect._lib.typing import BoolArray, FloatArray, IntArray
from skselect.bounds._binomial import smallest_rank
from skselect.bounds._mean import betting_stakes, rows_for_betting
from skselect.curve.packing import sort_rows
from skselect.predictions.outcomes import Outcomes
from skselect.thresholds._rules import last_passed

#: The sequence of thresholds begins at this share of the rows.
BETTING_START = 0.15
# It begins at this many times the rows that bets need without any loss, or later: so that some
# losses may occur before it.
_ROOM = 1.5
# Sums of logs of the wealth are exact to far less than this.
_MARGIN = 1e-3


@dataclass(frozen=True)
class Betting:
    """Certify graded losses and importance weights by bets: ``method=Betting(...)``.

    ``method="betting"`` is the same without a largest weight. See :func:`betting_risk`.

    Parameters
    ----------
    largest_weight : float, default=None
        A limit that no importance weight can exceed. None takes the largest weight given; unless
        all weights are equal, the certificate is then an estimate.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, Risk, select_threshold
    >>> from skselect.thresholds import Betting
    >>> rank = np.random.default_rng(0).permutation(300)
    >>> weighted = Outcomes(np.zeros(300), rank, np.linspace(.5, 1, 300))
    >>> found = select_threshold(weighted, objective=Risk(.05, method=Betting(largest_weight=1)))
    >>> found.certificate.is_certified
    True
    """

    name: ClassVar[str] = "betting"
    largest_weight: float | None = None

    def __post_init__(self) -> None:
        """Check the weight."""
        if self.largest_weight is not None:
            check_number("largest_weight", self.largest_weight, 0.0, math.inf, closed="neither")


def betting_risk(
    outcomes: Outcomes,
    target: float,
    delta: float,
    min_coverage: float,
    largest_weight: float | None = None,
) -> int:
    """Return how many entries of the curve have a certified (weighted) selective risk.

    A sequence of bets against "the mean loss is at least `target`" goes on from 15 % of the
    rows, block by block, for as long as each wealth is at least 1/delta. A block is credited
    with the rows before it and charged with the losses of all its own, because the risk may turn
    bad inside it. The proof stands in ``docs/guarantees.md``.

    Parameters
    ----------
    outcomes : Outcomes
        Losses in [0, 1]; weights are importance weights.
    target : float in (0, 1)
    delta : float in (0, 0.5]
    min_coverage : float in [0, 1]
    largest_weight : float, default=None
        A limit that no weight can exceed; None takes the largest weight given.

    Returns
    -------
    int
    """
    loss, weight, ends = _sorted_rows(outcomes, largest_weight)
    n = len(loss)
    share = smallest_rank(n, max(min_coverage, BETTING_START))
    start = max(share, math.ceil(_ROOM * rows_for_betting(target, delta, n)))
    if start > n:
        return 0
    first = int(np.searchsorted(ends, start))  # the block that holds the start
    credited = np.maximum(np.append(0, ends[:-1])[first:], start) - 1
    charges, room = _charge_blocks(loss, weight, ends[first:], target), np.empty(n)

    def log_wealth(stake: float) -> FloatArray:
        np.log1p(np.multiply(stake * target, weight, out=room), out=room)
        credit = np.cumsum(room, out=room).take(credited)
        credit += charges(stake)
        return credit

    failed = np.flatnonzero(~_which_pass(log_wealth, n, target, delta))
    passed = first + int(failed[0]) if len(failed) else len(ends)
    return passed if passed > first else 0


def betting_generalized_risk(
    outcomes: Outcomes,
    target: float,
    delta: float,
    *_: float,
    largest_weight: float | None = None,
) -> int:
    """Return how many entries of the curve have a certified (weighted) rate of silent loss.

    Every row is credited, and the accepted ones are charged with their losses. As coverage rises
    the wealth can only fall, so that one test covers every threshold.
    """
    loss, weight, ends = _sorted_rows(outcomes, largest_weight)

    charges = _charge_blocks(loss, weight, ends, target)

    def log_wealth(stake: float) -> FloatArray:
        return np.sum(np.log1p(stake * target * weight)) + charges(stake)

    return last_passed(_which_pass(log_wealth, len(loss), target, delta))


def _sorted_rows(
    outcomes: Outcomes, largest_weight: float | None
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return losses and weights (at most 1), surest rows first, and where each block ends.

    Rows of weight zero are left out. In a block the lightest rows come first, so that a cut inside
    it credits the rows with the least credit.
    """
    heaviest = np.max(outcomes.weight) if largest_weight is None else largest_weight
    weight, loss, confidence = outcomes.weight / heaviest, outcomes.loss, outcomes.confidence
    if weight.min() == weight.max():
        confidence, loss = sort_rows(confidence, -loss)
    else:
        exists = weight > 0
        columns = (confidence, -weight, -loss)
        confidence, weight, loss = sort_rows(*(column[exists] for column in columns))
        weight = -weight
    ends = np.flatnonzero(np.append(confidence[1:] != confidence[:-1], True)) + 1
    return -loss, weight, ends


def _charge_blocks(
    loss: FloatArray, weight: FloatArray, ends: IntArray, target: float
) -> Callable[[float], FloatArray]:
    """Return, for a stake, the log of the factor by which losses up to each end reduce the wealth.

    1 - stake w (loss - target) is the credit 1 + stake w target times a factor for the loss,
    which is 1 for rows without any.
    """
    losing = loss > 0
    n_losing = np.cumsum(losing).take(ends - 1)
    loss, weight = loss[losing], weight[losing]

    def charges(stake: float) -> FloatArray:
        credit = 1.0 + stake * weight * target
        factors = np.log1p(-stake * weight * loss / credit)
        return np.append(0.0, np.cumsum(factors)).take(n_losing)

    return charges


def _which_pass(
    log_wealth: Callable[[float], FloatArray], n: int, target: float, delta: float
) -> BoolArray:
    """Tell where the mean wealth over all stakes is at least 1/delta.

    It is where the share of one stake alone is, so that the others are often not needed; and it
    is only near 1/delta that the shares have to be added up.
    """
    stakes, log_prior = betting_stakes(n, target, delta)
    wanted, shares = -math.log(delta), []
    most = np.full(1, -np.inf)
    for stake, prior in zip(stakes, log_prior, strict=True):
        shares.append(log_wealth(stake) + prior)
        most = np.maximum(most, shares[-1])
        if most.min() >= wanted + _MARGIN:
            break
    least = wanted - math.log(len(stakes)) - _MARGIN
    near = np.flatnonzero((most > least) & (most < wanted + _MARGIN))
    passed = most >= wanted
    if len(near):
        parts = np.array([share[near] for share in shares])
        passed[near] = special.logsumexp(parts, axis=0) >= wanted
    return passed
