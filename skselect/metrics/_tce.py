"""TCE, the percentage of predictions that an exact test finds wrong."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from scipy.special import bdtr, bdtrc, gammaln, xlog1py, xlogy

from skselect import _validation as check
from skselect._typing import FloatArray
from skselect.curves import RiskCoverageCurve
from skselect.metrics._door import DoorOptions, claim_metric, claimed_outcomes_of
from skselect.outcomes import Outcomes

# Kernels ---------------------------------------------------------------------------------


def tce(outcomes: Outcomes, alpha: float = 0.05, n_min: int = 10, n_max: int = 1000) -> float:
    """Return the percentage of rows whose confidence their bin's accuracy refutes."""
    check.check_number("alpha", alpha, 0.0, 1.0, closed="neither")
    check.check_count("n_min", n_min)
    check.check_count("n_max", n_max, n_min)
    check.check_unit_confidence(outcomes.confidence, "tce_score")
    check.check_whole(outcomes.weight, "tce_score")
    check.refuse_graded_test(outcomes.loss, "tce_score")
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    confidence, size = curve.thresholds[::-1], curve.block_weight[::-1]
    right = size - curve.block_loss[::-1]
    starts = np.array(_pool(right.tolist(), size.tolist(), n_min, n_max))
    n_blocks = np.diff(np.append(starts, len(size)))
    bin_size = np.repeat(np.add.reduceat(size, starts), n_blocks)
    bin_right = np.repeat(np.add.reduceat(right, starts), n_blocks)
    rejected = binomial_p_values(bin_right, bin_size, confidence) <= alpha
    return float(100.0 * np.sum(size[rejected]) / np.sum(size))


def _pool(right: list[float], size: list[float], n_min: int, n_max: int) -> list[int]:
    """Return where each bin starts, among blocks of equal confidence in ascending order.

    Neighbours are pooled while they are small together, or while the accuracy would fall and
    the pool is not too large. What is pooled depends on all that was pooled before, so this
    is a loop over the distinct confidences, with plain numbers.
    """
    tail, n_tail = len(size), 0.0
    while tail > 0 and n_tail < n_min:
        tail -= 1
        n_tail += size[tail]
    starts: list[int] = []
    rights: list[float] = []
    sizes: list[float] = []
    for i in range(tail):
        start, k, n = i, right[i], size[i]
        while sizes:
            both = sizes[-1] + n
            falls = rights[-1] * n >= k * sizes[-1]
            if not (both <= n_min or (both <= n_max and falls)):
                break
            start, k, n = starts.pop(), k + rights.pop(), n + sizes.pop()
        starts.append(start)
        rights.append(k)
        sizes.append(n)
    if sizes and sizes[-1] + n_tail <= n_max:
        return starts
    return [*starts, tail]


def binomial_p_values(k: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """Return the exact two-sided p-value of k successes in n trials against the rate p.

    It is the probability of all counts that are no more likely than k.
    """
    bound = _log_mass(k, n, p) + 1e-7  # as equal as floats can tell
    below = k < n * p
    # On the other side of the mean, bisect for the first count where this turns: below the
    # mean the first rare one of the upper tail, above it the first common one from 0 on.
    first = np.where(below, np.ceil(n * p), 0.0)
    last = np.where(below, n + 1.0, np.floor(n * p) + 1.0)
    while np.any(open_ := first < last):
        middle = np.floor((first + last) / 2.0)
        rare = _log_mass(np.minimum(middle, n), n, p) <= bound
        turned = np.where(below, rare, ~rare)
        last = np.where(open_ & turned, middle, last)
        first = np.where(open_ & ~turned, middle + 1.0, first)
    count = n.astype(np.int64)
    lower = np.where(below, k, first - 1.0)
    upper = np.where(below, first, k)
    tails = np.where(lower >= 0, bdtr(np.maximum(lower, 0.0), count, p), 0.0)
    tails += np.where(upper >= 1, bdtrc(np.maximum(upper, 1.0) - 1.0, count, p), 1.0)
    return np.where(k == n * p, 1.0, np.minimum(tails, 1.0))


def _log_mass(k: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    choose = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return np.asarray(choose + xlogy(k, p) + xlog1py(n - k, -p))


# Door ------------------------------------------------------------------------------------


@claim_metric
def tce_score(
    y_true: Any,
    y_proba: Any,
    *,
    alpha: float = 0.05,
    n_min: int = 10,
    n_max: int = 1000,
    **options: Unpack[DoorOptions],
) -> float:
    """Compute the percentage of predictions that exact tests find miscalibrated, TCE.

    Parameters
    ----------
    %(data)s
    alpha : float in (0, 1), default=0.05
        Level of each test.
    n_min, n_max : int, default=10, 1000
        Fewest and most rows of a bin (a block of tied rows is never parted).
    %(options)s
        Weights must be whole numbers (repeated rows) and losses 0 or 1.

    Returns
    -------
    float in [0, 100]
        Percent; lower is better. About 100 alpha for a calibrated classifier would be
        chance.

    Raises
    ------
    ValueError
        If weights are not whole, losses are graded, or an argument is malformed.

    Notes
    -----
    The rows, in order of confidence, are pooled into bins of increasing accuracy and of
    `n_min` to `n_max` rows (PAVA-BC); each confidence is tested against the errors of its bin
    by the two-sided binomial test [1]_. Tied rows are pooled first, so that the order of the
    rows never matters.

    References
    ----------
    .. [1] Matsubara et al., "TCE: a test-based approach to measuring calibration error",
       2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.metrics import tce_score
    >>> y_true = np.repeat([0, 1], [40, 60])
    >>> tce_score(y_true, np.repeat([.6, .9], 50))
    50.0
    """
    return tce(claimed_outcomes_of(y_true, y_proba, **options), alpha, n_min, n_max)
