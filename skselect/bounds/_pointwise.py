"""Bounds on the risk at one threshold: an error rate, a mean loss, and one more draw.

Counts of independent rows with 0/1 errors bound an error rate. Means of independent losses in
[0, 1], which need not be 0 or 1, have bounds of their own.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import special

from skselect._lib.arrays import ROUNDING, BoolArray, FloatArray, IntArray, as_array, is_graded
from skselect._lib.checks import shown
from skselect._lib.checks.options import check_delta, check_number
from skselect._lib.checks.rows import check_loss

# Numbers below one differ by this or less, and roots are found to a few times as much.
_LEAST_STEP = 2.0**-52
# Evidence that is as good as none, for a solver that needs finite numbers.
_NONE = 1e300


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
    high = clopper_pearson_upper(errors, rows, side)
    low = 1.0 - np.asarray(clopper_pearson_upper(rows - errors, rows, side))
    return plain(low), high


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
    errors, rows = np.broadcast_arrays(*check_counts(n_errors, n))
    check_delta(delta)
    pairs = zip(errors.ravel().tolist(), rows.ravel().tolist(), strict=True)
    bounds = [_anytime_bound(count, total, delta) for count, total in pairs]
    return plain(np.reshape(bounds, errors.shape))


def _anytime_bound(n_errors: float, n: float, delta: float) -> float:
    """Return the rate at which the evidence below it reaches 1/delta, 1 if none does."""
    n_right = n - n_errors
    # The parts of `log_evidence_below` that do not depend on the rate.
    constant = float(special.betaln(n_errors + 1.0, n_right + 1.0)) + math.log(delta)

    def excess(rate: float) -> float:
        below = special.betainc(n_errors + 1.0, n_right + 1.0, rate)
        if below <= 0.0:
            return -_NONE
        at = (n_errors + 1.0) * math.log(rate) + n_right * math.log1p(-rate)
        return max(math.log(below) + constant - at, -_NONE)

    share = n_errors / max(n, 1.0)
    return rising_root(excess, share)


def log_evidence_below(n_errors: Any, n: Any, rate: Any) -> FloatArray:
    """Return the log of the likelihood averaged over all rates below `rate`, over that at `rate`.

    The arguments broadcast; -inf at a rate of 0.
    """
    errors = np.asarray(n_errors, np.float64)
    right = np.subtract(n, n_errors)
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
    log_right = math.log1p(-target)
    log_delta = math.log(delta)
    k = max(math.ceil(log_delta / log_right) - 1, 1)
    while k * log_right > log_delta:  # the division above rounds
        k += 1
    return k


def critical_counts(ranks: IntArray, risk: float, alpha: float) -> IntArray:
    """Return, per rank k, the largest e with BinomCDF(e; k, risk) <= alpha, -1 if none."""
    # A guess by the Cornish-Fisher expansion.
    z = special.ndtri(alpha)
    mean = ranks * risk
    guess = mean + z * np.sqrt(mean * (1.0 - risk)) + (z * z - 1.0) * (1.0 - 2.0 * risk) / 6.0
    counts = np.clip(np.round(guess) - 1.0, -1.0, ranks - 1.0)
    # One more, where that passes.
    places = np.arange(len(ranks))
    while len(places):
        chance = special.bdtr(counts[places] + 1.0, ranks[places], risk)
        places = places[chance <= alpha]
        counts[places] += 1.0
    # One fewer, where it does not pass.
    places = np.flatnonzero(counts >= 0)
    while len(places):
        chance = special.bdtr(counts[places], ranks[places], risk)
        places = places[chance > alpha]
        counts[places] -= 1.0
        places = places[counts[places] >= 0]
    return counts.astype(np.int64)


def smallest_rank(n: int, share: float) -> int:
    """Return the smallest k >= 1 with k/n >= share; ceil(share n) may round to another one."""
    k = max(math.ceil(share * n) - 1, 1)
    while k / n < share:
        k += 1
    return k


def least_count(enough: Callable[[int], bool], share: float = 0.0, start: int = 1) -> int:
    """Return the least whole number that is enough, or one larger by at most a `share` of it.

    It doubles `start` until that is enough, then bisects between the last two.
    """
    high = start
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > max(int(share * high), 1):
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


def largest_possible(possible: Callable[[FloatArray], BoolArray], low: FloatArray) -> FloatArray:
    """Return the largest possible mean between `low` and 1, by bisection, rounded up."""
    low = np.array(low, dtype=np.float64)
    high = np.ones_like(low)
    for _ in range(50):
        middle = (low + high) / 2.0
        is_possible = possible(middle)
        low = np.where(is_possible, middle, low)
        high = np.where(is_possible, high, middle)
    return high


def rising_root(excess: Callable[[float], float], low: float) -> float:
    """Return where a rising function crosses 0 between `low` and 1, rounded up by 2^-49 or less."""
    low += _LEAST_STEP
    high = 1.0 - _LEAST_STEP
    if low >= high or excess(high) < 0.0:
        return 1.0
    if excess(low) >= 0.0:
        return low
    root = find_root(excess, low, high, xtol=_LEAST_STEP, rtol=4.0 * _LEAST_STEP)
    return root + 4.0 * _LEAST_STEP


def find_root(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    xtol: float = 2e-12,
    rtol: float = 2.0**-50,
) -> float:
    """Return where a function crosses 0 between two points at which its signs differ."""
    from scipy import optimize  # noqa: PLC0415 - a quarter of a second that few commands need

    return float(optimize.brentq(function, low, high, xtol=xtol, rtol=rtol))


def binomial_quantile(share: float, n: int, p: float) -> int:
    """Return the least count that at least a share of binomial counts, of n with p, stay within."""
    least = share * (1.0 - ROUNDING)
    return bisect_left(range(n), least, key=lambda count: special.bdtr(count, n, p))


def plain(values: FloatArray) -> Any:
    """Return an array without dimensions as a float, any other as it is."""
    return float(values) if values.ndim == 0 else values


def check_counts(n_errors: Any, n: Any) -> tuple[FloatArray, FloatArray]:
    """Return errors and rows as floats, whole numbers with 0 <= n_errors <= n."""
    errors = as_array(n_errors, "n_errors")
    rows = as_array(n, "n")
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
    n = len(values)
    needed = rows_for_quantile(level)
    if n < needed:
        raise ValueError(f"values: level={level:g} needs at least {needed} of them, got {n}.")
    place = smallest_rank(n + 1, level) - 1
    partitioned = np.partition(values, place)
    return float(partitioned[place])


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
    means = as_array(mean, "mean")
    _, rows = check_counts(0, n)
    if means.dtype.kind not in "iuf" or not np.all((means >= 0) & (means <= 1)):
        raise ValueError(f"mean must lie in [0, 1], got {shown(mean)}.")
    check_delta(delta)
    # Rounding may lift n * mean just above a whole number.
    errors = np.ceil(means * rows - 1e-9)
    trials = np.maximum(rows, 1).astype(np.int64)

    def possible(r: FloatArray) -> BoolArray:
        bentkus = np.e * special.bdtr(errors, trials, r)
        divergence = special.rel_entr(means, r) + special.rel_entr(1.0 - means, 1.0 - r)
        hoeffding = np.exp(-rows * divergence)
        return np.asarray(np.minimum(hoeffding, bentkus) >= delta)

    bound = largest_possible(possible, means)
    return plain(np.where(rows == 0, 1.0, bound))


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
    n = len(values)
    # Payoffs are divided by 1 - mean, so that the same stakes can be used for every mean and the
    # wealth rises with the mean, as bisection needs.
    stakes, log_prior = bound_stakes(None if anytime else n, delta)
    if is_graded(values):
        mean = float(np.mean(values))
        log_wealth = _wealth_of_losses(values, stakes, log_prior)
    else:
        n_errors = int(np.count_nonzero(values))
        mean = n_errors / n
        log_wealth = _wealth_of_errors(n_errors, n, stakes, log_prior)
    if mean >= 1.0:
        return 1.0
    # Means between which the wealth reaches 1/delta: what is not known yet is computed.
    bracket = [-math.inf, 1.0]

    @cache
    def excess(mean: float) -> float:
        log_excess = log_wealth(mean) + math.log(delta)
        bracket[int(log_excess >= 0.0)] = mean
        return log_excess

    def possible(mean: FloatArray) -> BoolArray:
        if bracket[0] < mean < bracket[1]:
            excess(float(mean))
        return np.asarray(mean <= bracket[0])

    _approach(excess, mean, 1.0 / math.sqrt(n), bracket)
    return float(largest_possible(possible, np.asarray(mean)))


def _wealth_of_errors(
    n_errors: int, n: int, stakes: FloatArray, log_prior: FloatArray
) -> Callable[[float], float]:
    """Return the log of the wealth as a function of the mean, where losses are 0 or 1."""

    def log_wealth(mean: float) -> float:
        gains = np.log1p(stakes * mean / (1.0 - mean))
        logs = (n - n_errors) * gains + n_errors * np.log1p(-stakes) + log_prior
        return float(special.logsumexp(logs))

    return log_wealth


def _wealth_of_losses(
    losses: FloatArray, stakes: FloatArray, log_prior: FloatArray
) -> Callable[[float], float]:
    """Return the log of the wealth as a function of the mean."""
    payoff = np.empty(len(losses))

    def log_wealth(mean: float) -> float:
        # Into one array: new ones would take longer to get.
        np.subtract(losses, mean, out=payoff)
        np.divide(payoff, 1.0 - mean, out=payoff)
        return _log_wealth(payoff, stakes, log_prior)

    return log_wealth


def bound_stakes(n: int | None, delta: float) -> tuple[FloatArray, FloatArray]:
    """Return the stakes of :func:`betting_upper`, and the log of the share of the wealth on each.

    They are chosen for `n` rows; None: for a table that grows.
    """
    least = _LEAST_STAKE
    if n is not None:
        least = math.sqrt(2.0 * math.log(1.0 / delta) / n)
        least = min(least, _LARGEST_STAKE)
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
    squares = float(np.einsum("i,i->", payoff, payoff))
    curved = squares * (1.0 - stakes * gain / 1.5)
    most = log_prior - stakes * np.sum(payoff) - stakes**2 / 2.0 * curved
    logs = np.full(len(stakes), -np.inf)
    best = -np.inf
    factor = np.empty(len(payoff))
    for k in np.argsort(-most):
        if most[k] >= best - 60.0:
            np.multiply(-stakes[k], payoff, out=factor)
            np.log1p(factor, out=factor)
            logs[k] = np.sum(factor) + log_prior[k]
            best = max(best, logs[k])
    return float(special.logsumexp(logs))


def _approach(
    excess: Callable[[float], float], low: float, width: float, bracket: list[float]
) -> None:
    """Evaluate a rising function near its root, at a few points above `low` and next to it.

    `bracket` holds the last points below and above the root; bisection then has little left to do.
    """
    excess(low)
    while bracket[1] == 1.0 and low + width < 1.0:
        excess(low + width)
        width *= 2.0
    below, above = bracket
    if -math.inf < below and above < 1.0:
        root = find_root(excess, below, above, xtol=1e-15, rtol=1e-15)
        for near in (root - 4e-15, root + 4e-15):
            if bracket[0] < near < bracket[1]:
                excess(near)
