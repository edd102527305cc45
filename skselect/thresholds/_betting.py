"""Rules for graded losses and importance weights, certified by bets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from skselect._checks.options import check_number
from skselect._typing import FloatArray, IntArray
from skselect.bounds import betting_stakes, rows_for_betting, smallest_rank
from skselect.predictions.outcomes import Outcomes
from skselect.thresholds._rules import last_passed

#: The sequence of thresholds begins at this share of the rows.
BETTING_START = 0.15
# It begins at this many times the rows that bets need without any loss, or later: so that some
# losses may occur before it.
_ROOM = 1.5


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
    >>> from skselect import Outcomes, select_threshold
    >>> from skselect.thresholds import Betting
    >>> weighted = Outcomes(np.zeros(300), np.arange(300), np.linspace(.5, 1, 300))
    >>> found = select_threshold(weighted, objective="risk", target=.05,
    ...                          method=Betting(largest_weight=1))
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
    credited = np.maximum(np.append(0, ends[:-1])[first:], start)
    stakes, log_prior = betting_stakes(n, target, delta)
    logs = []
    for stake in stakes:
        credit = np.cumsum(np.log1p(stake * target * weight))[credited - 1]
        logs.append(credit + _charges(loss, weight, stake, target)[ends[first:] - 1])
    failed = np.flatnonzero(_log_mean(logs, log_prior) < -math.log(delta))
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
    stakes, log_prior = betting_stakes(len(loss), target, delta)
    logs = [
        np.sum(np.log1p(stake * target * weight)) + _charges(loss, weight, stake, target)[ends - 1]
        for stake in stakes
    ]
    return last_passed(_log_mean(logs, log_prior) >= -math.log(delta))


def _sorted_rows(
    outcomes: Outcomes, largest_weight: float | None
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return losses and weights (at most 1), surest rows first, and where each block ends.

    Rows of weight zero are left out. In a block the lightest rows come first, so that a cut inside
    it credits the rows with the least credit.
    """
    heaviest = np.max(outcomes.weight) if largest_weight is None else largest_weight
    weight = outcomes.weight / heaviest
    order = np.lexsort((outcomes.loss, weight, -outcomes.confidence))
    order = order[weight[order] > 0]
    confidence = outcomes.confidence[order]
    ends = np.flatnonzero(np.append(confidence[1:] != confidence[:-1], True)) + 1
    return outcomes.loss[order], weight[order], ends


def _charges(loss: FloatArray, weight: FloatArray, stake: float, target: float) -> FloatArray:
    """Return the log of the factor by which losses up to each row reduce the wealth.

    1 - stake w (loss - target) is the credit 1 + stake w target times a factor for the loss.
    """
    credit = 1.0 + stake * weight * target
    return np.cumsum(np.log1p(-stake * weight * loss / credit))


def _log_mean(logs: list[FloatArray], log_prior: FloatArray) -> FloatArray:
    return np.asarray(special.logsumexp(np.array(logs) + log_prior[:, None], axis=0))
