"""Bounds on the risk at one threshold: an error rate, a mean loss, and one more draw.

Counts of independent rows with 0/1 errors bound an error rate. Means of independent losses in
[0, 1], which need not be 0 or 1, have bounds of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import optimize, special

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, as_array, is_graded
from skselect._lib.checks import shown
from skselect._lib.checks.options import check_delta, check_number
from skselect._lib.checks.rows import check_loss


def clopper_pearson_upper(n_errors: Any, n: Any, delta: float) -> Any:
    """Return the exact upper bound on an error rate after `n_errors` errors in `n` rows.

    Parameters
    ----------
    n_errors, n : int or array-like of int
        Errors, 0 <= n_errors <= n, and independent rows; they broadcast.
    delta : float in (0, 0.5]
        Largest probability that the bound lies below the true rate.

    Returns
    -------
    float or ndarray in (0, 1]
        The rate p with P(Binomial(n, p) <= n_errors) = delta; 1 when all rows are errors or
        there are no rows.

    Raises
    ------
    ValueError
        If a count or `delta` is out of its range.

    References
    ----------
    .. [1] Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the
       case of the binomial", 1934.

    Examples
    --------
    >>> from skselect.bounds._pointwise import clopper_pearson_upper
    >>> round(clopper_pearson_upper(0, 149, 0.05), 5)
    0.0199
    >>> clopper_pearson_upper([0, 1, 2], 100, 0.1).round(4)
    array([0.0228, 0.0383, 0.0523])
    """
    errors, rows = check_counts(n_errors, n)
    return plain(upper_from_counts(errors, rows, check_delta(delta)))


def upper_from_counts(errors: Any, rows: Any, delta: float) -> Any:
    """Return :func:`clopper_pearson_upper` of counts that need no check."""
    bound = special.betaincinv(errors + 1.0, np.maximum(rows - errors, 1), 1.0 - delta)
    return np.where(errors >= rows, 1.0, bound)


def clopper_pearson_interval(n_errors: Any, n: Any, confidence_level: float = 0.95) -> Any:
    """Return the exact two-sided interval of an error rate after `n_errors` errors in `n` rows.

    Parameters
    ----------
    n_errors, n : int or array-like of int
        Errors, 0 <= n_errors <= n, and independent rows; they broadcast.
    confidence_level : float in (0, 1), default=0.95
        Each end fails with probability at most (1 - confidence_level)/2.

    Returns
    -------
    low, high : float or ndarray in [0, 1]
        0 and 1 when there are no rows.

    Raises
    ------
    ValueError
        If a count or `confidence_level` is out of its range.

    References
    ----------
    .. [1] Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the
       case of the binomial", 1934.

    Examples
    --------
    >>> from skselect.bounds._pointwise import clopper_pearson_interval
    >>> low, high = clopper_pearson_interval([0, 5], 100)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.0164]), array([0.0362, 0.1128]))
    """
    errors, rows = check_counts(n_errors, n)
    level = check_number("confidence_level", confidence_level, 0.0, 1.0, closed="neither")
    side = (1.0 - level) / 2.0
    low = 1.0 - np.asarray(clopper_pearson_upper(rows - errors, rows, side))
    return plain(low), clopper_pearson_upper(errors, rows, side)


def anytime_upper(n_errors: Any, n: Any, delta: float) -> Any:
    """Return an upper bound on an error rate that holds after every row of a growing table.

    Parameters
    ----------
    n_errors, n : int or array-like of int
        Errors, 0 <= n_errors <= n, and independent rows; they broadcast.
    delta : float in (0, 0.5]
        Largest probability that the bound lies below the true rate at any number of rows.

    Returns
    -------
    float or ndarray in (0, 1]
        1 when all rows are errors or there are no rows.

    Raises
    ------
    ValueError
        If a count or `delta` is out of its range.

    Notes
    -----
    A rate p is ruled out once the likelihood of the counts, averaged over all rates below p, is
    1/delta times that at p. Each row multiplies the likelihood ratio of a rate q < p by
    1 - (p - q)(x - p) / (p(1 - p)), x its error. The mean of this factor is at most 1 for every
    true rate of p or more: the ratio is a supermartingale, and so is its average over q. It
    reaches 1/delta with probability at most delta (Ville). The average rises with p.

    References
    ----------
    .. [1] Robbins, "Statistical methods related to the law of the iterated logarithm", Annals
       of Mathematical Statistics 1970: mixtures of likelihood ratios.

    Examples
    --------
    >>> from skselect.bounds._pointwise import anytime_upper, clopper_pearson_upper
    >>> round(anytime_upper(10, 1000, 0.05), 4), round(clopper_pearson_upper(10, 1000, 0.05), 4)
    (0.0217, 0.0169)
    """
    errors, rows = check_counts(n_errors, n)
    check_delta(delta)

    def possible(rate: FloatArray) -> BoolArray:
        return log_evidence_below(errors, rows, rate) < -math.log(delta)

    return plain(largest_possible(possible, errors / np.maximum(rows, 1.0)))


def log_evidence_below(n_errors: Any, n: Any, rate: Any) -> FloatArray:
    """Return the log of the likelihood averaged over all rates below `rate`, over that at `rate`.

    The arguments broadcast; -inf at a rate of 0.
    """
    errors, right = np.asarray(n_errors, np.float64), np.subtract(n, n_errors)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.log(special.betainc(errors + 1.0, right + 1.0, rate))
        below += special.betaln(errors + 1.0, right + 1.0) - np.log(rate)
        at = special.xlogy(errors, rate) + special.xlog1py(right, np.negative(rate))
        return np.where(np.asarray(rate) > 0.0, below - at, -np.inf)


def rows_for_certificate(target: float, delta: float) -> int:
    """Return the least number of rows, all of them right, that can certify a risk target.

    Parameters
    ----------
    target : float in (0, 1)
        Largest risk.
    delta : float in (0, 0.5]
        Allowed probability of failure.

    Returns
    -------
    int
        The smallest k with (1 - target)^k <= delta.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> from skselect.bounds._pointwise import rows_for_certificate
    >>> rows_for_certificate(0.02, 0.05)
    149
    """
    check_number("target", target, 0.0, 1.0, closed="right")
    check_delta(delta)
    if target >= 1.0:
        return 1
    step, wanted = math.log1p(-target), math.log(delta)
    k = max(math.ceil(wanted / step) - 1, 1)
    while k * step > wanted:  # the division above rounds
        k += 1
    return k


def critical_counts(ranks: IntArray, risk: float, alpha: float) -> IntArray:
    """Return, per rank k, the largest e with BinomCDF(e; k, risk) <= alpha, -1 if none."""
    z, mean = special.ndtri(alpha), ranks * risk  # a guess by the Cornish-Fisher expansion
    guess = mean + z * np.sqrt(mean * (1.0 - risk)) + (z * z - 1.0) * (1.0 - 2.0 * risk) / 6.0
    found = np.clip(np.round(guess) - 1.0, -1.0, ranks - 1.0)
    rows = some = np.arange(len(ranks))
    while len(some):  # one more, where that passes
        some = some[special.bdtr(found[some] + 1.0, ranks[some], risk) <= alpha]
        found[some] += 1.0
    while len(rows := rows[found[rows] >= 0]):  # one fewer, where it does not pass
        rows = rows[special.bdtr(found[rows], ranks[rows], risk) > alpha]
        found[rows] -= 1.0
    return found.astype(np.int64)


def smallest_rank(n: int, share: float) -> int:
    """Return the smallest k >= 1 with k/n >= share; ceil(share n) may round to another one."""
    k = max(math.ceil(share * n) - 1, 1)
    while k / n < share:
        k += 1
    return k


def least_count(enough: Callable[[int], bool], share: float = 0.0, first: int = 1) -> int:
    """Return the least whole number that is enough, or one larger by at most a `share` of it.

    It doubles `first` until that is enough, then bisects between the last two.
    """
    high = first
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > max(int(share * high), 1):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def largest_possible(possible: Callable[[FloatArray], BoolArray], low: FloatArray) -> FloatArray:
    """Return the largest possible mean between `low` and 1, by bisection, rounded up."""
    low, high = np.array(low, dtype=np.float64), np.ones_like(low, dtype=np.float64)
    for _ in range(50):
        middle = (low + high) / 2.0
        inside = possible(middle)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return high


def plain(values: FloatArray) -> Any:
    """Return an array without dimensions as a float, any other as it is."""
    return float(values) if values.ndim == 0 else values


def check_counts(n_errors: Any, n: Any) -> tuple[FloatArray, FloatArray]:
    """Return errors and rows as floats, whole numbers with 0 <= n_errors <= n."""
    errors, rows = as_array(n_errors, "n_errors"), as_array(n, "n")
    for name, counts in (("n_errors", errors), ("n", rows)):
        if counts.dtype.kind not in "iuf" or not np.all(counts == np.rint(counts)):
            raise ValueError(f"{name} must hold whole numbers, got {shown(counts)}.")
    if np.any(errors < 0) or np.any(errors > rows):
        raise ValueError(
            f"n_errors must lie between 0 and n, got {shown(n_errors)} of n={shown(n)}."
        )
    return errors.astype(np.float64), rows.astype(np.float64)


def conformal_quantile(values: FloatArray, level: float) -> float:
    """Return the value that the next draw stays at or below with probability `level` or more.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Draws that are exchangeable with the next one; inf is allowed.
    level : float in (0, 1)

    Returns
    -------
    float
        The k-th smallest value, k = ceil((n + 1) level).

    Raises
    ------
    ValueError
        If `level` is out of its range, or the draws are fewer than
        :func:`rows_for_quantile` says.

    Notes
    -----
    All n + 1 ranks of the next draw are equally likely, so that it is among the k smallest with
    probability k/(n + 1). With ties the probability is larger; without it is less than
    level + 1/(n + 1). The probability counts the n draws and the next one together.

    References
    ----------
    .. [1] Vovk, Gammerman & Shafer, "Algorithmic Learning in a Random World", 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.bounds._pointwise import conformal_quantile
    >>> conformal_quantile(np.arange(1, 40) / 40, 0.95)
    0.95
    """
    needed, n = rows_for_quantile(level), len(values)
    if n < needed:
        raise ValueError(f"values: level={level:g} needs at least {needed} of them, got {n}.")
    rank = smallest_rank(n + 1, level)
    return float(np.partition(values, rank - 1)[rank - 1])


def rows_for_quantile(level: float) -> int:
    """Return the least number of draws that have a conformal quantile.

    Parameters
    ----------
    level : float in (0, 1)

    Returns
    -------
    int
        The smallest n >= level/(1 - level).

    Raises
    ------
    ValueError
        If `level` is out of its range.

    Examples
    --------
    >>> from skselect.bounds._pointwise import rows_for_quantile
    >>> rows_for_quantile(0.95), rows_for_quantile(0.9)
    (19, 9)
    """
    check_number("level", level, 0.0, 1.0, closed="neither")
    n = max(math.floor(level / (1.0 - level)) - 1, 1)
    while n / (n + 1) < level:  # the division above rounds, at most by one row
        n += 1
    return n


# A bet never stakes more than this share of the wealth.
_LARGEST_STAKE = 0.75
# Bets on a growing table never stake less: enough for some 10^9 rows.
_LEAST_STAKE = 1e-5
# About the ratio of a stake to the next smaller one.
_STAKE_RATIO = 3.0


def hoeffding_bentkus_upper(mean: Any, n: Any, delta: float) -> Any:
    """Return the Hoeffding-Bentkus upper bound on a mean loss.

    It needs the mean alone and is wide for losses that vary little: prefer
    :func:`betting_upper`, and :func:`clopper_pearson_upper` for losses of 0 or 1.

    Parameters
    ----------
    mean : float or array-like in [0, 1]
        Mean of the observed losses, each in [0, 1].
    n : int or array-like of int
        Independent rows; broadcasts with `mean`.
    delta : float in (0, 0.5]
        Largest probability that the bound lies below the true mean.

    Returns
    -------
    float or ndarray in (0, 1]
        The largest r with min(exp(-n KL(mean, r)), e P(Binomial(n, r) <= ceil(n mean))) >= delta;
        1 when there are no rows.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    .. [1] Bates et al., "Distribution-free, risk-controlling prediction sets", JACM 2021,
       section 3.1.

    Examples
    --------
    >>> from skselect.bounds._pointwise import hoeffding_bentkus_upper
    >>> hoeffding_bentkus_upper([0.01, 0.05], 1000, 0.1).round(4)
    array([0.0175, 0.064 ])
    """
    means, (_, rows) = as_array(mean, "mean"), check_counts(0, n)
    if means.dtype.kind not in "iuf" or not np.all((means >= 0) & (means <= 1)):
        raise ValueError(f"mean must lie in [0, 1], got {shown(mean)}.")
    check_delta(delta)
    # Rounding may lift n * mean just above a whole number.
    errors = np.ceil(means * rows - 1e-9)

    def possible(r: FloatArray) -> BoolArray:
        bentkus = np.e * special.bdtr(errors, np.maximum(rows, 1).astype(np.int64), r)
        divergence = special.rel_entr(means, r) + special.rel_entr(1.0 - means, 1.0 - r)
        return np.asarray(np.minimum(np.exp(-rows * divergence), bentkus) >= delta)

    return plain(np.where(rows == 0, 1.0, largest_possible(possible, means)))


def betting_upper(losses: Any, delta: float, *, anytime: bool = False) -> float:
    """Return the betting upper bound on a mean loss: tight where losses vary little.

    For every possible mean, a gambler bets a fixed share of the wealth that each loss is below it.
    Means against which the wealth would reach 1/delta are ruled out.

    Parameters
    ----------
    losses : array-like of shape (n,)
        In [0, 1], independent. Their order does not matter.
    delta : float in (0, 0.5]
        Largest probability that the bound lies below the true mean.
    anytime : bool, default=False
        Whether the bound is to hold after every row of a growing table, with probability
        1 - `delta` for all of them together. It is wider.

    Returns
    -------
    float in (0, 1]
        1 when there are no rows.

    Raises
    ------
    ValueError
        If a loss or `delta` is out of its range.

    Notes
    -----
    The wealth is the mean over several stakes s of prod_i (1 - s (loss_i - mean)), which has a
    mean of at most 1 if the true mean is at least `mean`, so that it reaches 1/delta with
    probability at most delta (Markov). Bets that adapt to earlier rows, and stop once the wealth
    is 1/delta, give bounds about a third tighter, but are valid only if the rows come in a random
    order: not in a table sorted by outcome, and not after a shuffle with a fixed seed.

    The stakes depend on the number of rows. With `anytime` they do not: then each factor has a
    mean of at most 1 given the rows before it, and no number of rows lets the wealth reach
    1/delta with a larger probability (Ville).

    References
    ----------
    .. [1] Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting",
       JRSS B 2024 (diversified Kelly betting).

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.bounds._pointwise import betting_upper, hoeffding_bentkus_upper
    >>> losses = np.random.default_rng(0).beta(1, 19, 1000)
    >>> losses.mean().round(3), round(betting_upper(losses, .1), 4)
    (np.float64(0.05), 0.0554)
    >>> round(hoeffding_bentkus_upper(losses.mean(), 1000, .1), 4)
    0.0651
    """
    check_delta(delta)
    if np.size(losses) == 0:
        return 1.0
    values = check_loss(losses, "losses")
    counted = not is_graded(values)
    n, wrong = len(values), int(np.count_nonzero(values))
    # Payoffs are divided by 1 - mean, so that the same stakes can be used for every mean and the
    # wealth rises with the mean, as bisection needs.
    stakes, log_prior = bound_stakes(None if anytime else len(values), delta)

    # Means between which the wealth reaches 1/delta: what is not known yet is computed.
    known = [-math.inf, 1.0]

    payoff = np.empty(0 if counted else n)

    def log_wealth(mean: float) -> float:
        if counted:  # two kinds of payoff
            gains = np.log1p(stakes * mean / (1.0 - mean))
            logs = (n - wrong) * gains + wrong * np.log1p(-stakes) + log_prior
            return float(special.logsumexp(logs))
        np.subtract(values, mean, out=payoff)  # into one array: new ones would take longer to get
        np.divide(payoff, 1.0 - mean, out=payoff)
        return _log_wealth(payoff, stakes, log_prior)

    @cache
    def excess(mean: float) -> float:
        found = log_wealth(mean) + math.log(delta)
        known[int(found >= 0.0)] = mean
        return found

    def possible(mean: FloatArray) -> BoolArray:
        if known[0] < mean < known[1]:
            excess(float(mean))
        return np.asarray(mean <= known[0])

    mean = wrong / n if counted else float(np.mean(values))
    if mean >= 1.0:
        return 1.0
    _approach(excess, mean, 1.0 / math.sqrt(n), known)
    return float(largest_possible(possible, np.asarray(mean)))


def bound_stakes(n: int | None, delta: float) -> tuple[FloatArray, FloatArray]:
    """Return the stakes of :func:`betting_upper`, and the log of the share of the wealth on each.

    They are chosen for `n` rows; None: for a table that grows.
    """
    least = _LEAST_STAKE
    if n is not None:
        least = min(math.sqrt(2.0 * math.log(1.0 / delta) / n), _LARGEST_STAKE)
    size = math.ceil(math.log(_LARGEST_STAKE / least, _STAKE_RATIO)) + 1
    stakes = np.geomspace(least, _LARGEST_STAKE, size)
    if n is not None:
        return stakes, np.full(size, -math.log(size))
    share = 1.0 / np.arange(size, 0, -1)  # more on large stakes, which need fewer rows
    return stakes, np.log(share / np.sum(share))


def _log_wealth(payoff: FloatArray, stakes: FloatArray, log_prior: FloatArray) -> float:
    """Return the log of the mean wealth over stakes."""
    # By log(1 - y) <= -y - y^2/2 (1 - 2/3 g) for y >= -g; what is e^60 times less adds nothing.
    gain = max(-float(payoff.min()), 0.0)
    curved = float(np.einsum("i,i->", payoff, payoff)) * (1.0 - stakes * gain / 1.5)
    most = log_prior - stakes * np.sum(payoff) - stakes**2 / 2.0 * curved
    logs, best = np.full(len(stakes), -np.inf), -np.inf
    factor = np.empty(len(payoff))
    for k in np.argsort(-most):
        if most[k] >= best - 60.0:
            np.log1p(np.multiply(-stakes[k], payoff, out=factor), out=factor)
            logs[k] = np.sum(factor) + log_prior[k]
            best = max(best, logs[k])
    return float(special.logsumexp(logs))


def _approach(
    excess: Callable[[float], float], low: float, width: float, known: list[float]
) -> None:
    """Evaluate a rising function near its root, at a few points above `low` and next to it.

    `known` holds the last points below and above the root; bisection then has little left to do.
    """
    excess(low)
    while known[1] == 1.0 and low + width < 1.0:
        excess(low + width)
        width *= 2.0
    if -math.inf < known[0] and known[1] < 1.0:
        root = optimize.brentq(excess, *known, xtol=1e-15, rtol=1e-15)
        for near in (root - 4e-15, root + 4e-15):
            if known[0] < near < known[1]:
                excess(near)
