"""Bounds on an error rate from counts of independent rows and 0/1 errors, and on one more draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

from skselect._lib.checks import as_array, shown
from skselect._lib.checks.options import check_delta, check_number
from skselect._lib.typing import BoolArray, FloatArray, IntArray


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
    >>> from skselect.bounds._binomial import clopper_pearson_upper
    >>> round(clopper_pearson_upper(0, 149, 0.05), 5)
    0.0199
    >>> clopper_pearson_upper([0, 1, 2], 100, 0.1).round(4)
    array([0.0228, 0.0383, 0.0523])
    """
    errors, rows = check_counts(n_errors, n)
    check_delta(delta)
    right = np.maximum(rows - errors, 1)
    bound = special.betaincinv(errors + 1.0, right, 1.0 - delta)
    return plain(np.where(errors >= rows, 1.0, bound))


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
    >>> from skselect.bounds._binomial import clopper_pearson_interval
    >>> low, high = clopper_pearson_interval([0, 5], 100)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.0164]), array([0.0362, 0.1128]))
    """
    errors, rows = check_counts(n_errors, n)
    level = check_number("confidence_level", confidence_level, 0.0, 1.0, closed="neither")
    side = (1.0 - level) / 2.0
    low = 1.0 - np.asarray(clopper_pearson_upper(rows - errors, rows, side))
    return plain(low), clopper_pearson_upper(errors, rows, side)


def wilson_upper(n_errors: Any, n: Any, delta: float) -> Any:
    """Return Wilson's upper bound on an error rate: APPROXIMATE, for comparison only.

    It lies below the true rate more often than `delta` where errors are few (13.4 %
    instead of 10 % at a rate of 1 % and 200 rows), so no certificate uses it.

    Parameters
    ----------
    n_errors, n : int or array-like of int
        Errors, 0 <= n_errors <= n, and independent rows; they broadcast.
    delta : float in (0, 0.5]
        Nominal probability that the bound lies below the true rate.

    Returns
    -------
    float or ndarray in (0, 1]
        1 when there are no rows.

    Raises
    ------
    ValueError
        If a count or `delta` is out of its range.

    References
    ----------
    .. [1] Wilson, "Probable inference, the law of succession, and statistical inference",
       1927: the score interval, upper end.

    Examples
    --------
    >>> from skselect.bounds._binomial import wilson_upper
    >>> round(wilson_upper(0, 149, 0.05), 5)
    0.01783
    """
    errors, rows = check_counts(n_errors, n)
    check_delta(delta)
    z, m = float(stats.norm.isf(delta)), np.maximum(rows, 1)
    rate = errors / m
    spread = z * np.sqrt(rate * (1.0 - rate) / m + (z / (2.0 * m)) ** 2)
    bound = (rate + z**2 / (2.0 * m) + spread) / (1.0 + z**2 / m)
    return plain(np.where(rows == 0, 1.0, np.minimum(bound, 1.0)))


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
    >>> from skselect.bounds._binomial import anytime_upper, clopper_pearson_upper
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
    >>> from skselect.bounds._binomial import rows_for_certificate
    >>> rows_for_certificate(0.02, 0.05)
    149
    """
    check_number("target", target, 0.0, 1.0, closed="right")
    check_delta(delta)
    if target >= 1.0:
        return 1
    step, wanted = math.log1p(-target), math.log(delta)
    k = max(math.ceil(wanted / step), 1)
    # The division rounds: decide between k - 1, k and k + 1 by the definition.
    if k > 1 and (k - 1) * step <= wanted:
        return k - 1
    return k if k * step <= wanted else k + 1


def critical_counts(ranks: IntArray, risk: float, alpha: float) -> IntArray:
    """Return, per rank k, the largest e with BinomCDF(e; k, risk) <= alpha, -1 if none."""
    guess = stats.binom.ppf(alpha, ranks, risk)
    exact = np.where(special.bdtr(guess, ranks, risk) <= alpha, guess, guess - 1)
    return exact.astype(np.int64)


def smallest_rank(n: int, share: float) -> int:
    """Return the smallest k >= 1 with k/n >= share; ceil(share n) may round to another one."""
    k = max(math.ceil(share * n), 1)
    if k > 1 and (k - 1) / n >= share:
        return k - 1
    return k if k / n >= share else k + 1


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
    >>> from skselect.bounds._binomial import conformal_quantile
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
    >>> from skselect.bounds._binomial import rows_for_quantile
    >>> rows_for_quantile(0.95), rows_for_quantile(0.9)
    (19, 9)
    """
    check_number("level", level, 0.0, 1.0, closed="neither")
    n = max(math.floor(level / (1.0 - level)) - 1, 1)
    while n / (n + 1) < level:  # the division above rounds, at most by one row
        n += 1
    return n
