"""Bounds on the mean of independent losses in [0, 1] that need not be 0 or 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import optimize, special

from skselect._lib.checks import as_array, shown
from skselect._lib.checks.options import check_delta, check_number
from skselect._lib.checks.rows import check_loss, check_weight
from skselect._lib.typing import BoolArray, FloatArray
from skselect.bounds._binomial import check_counts, largest_possible, least_count, plain

# A bet never stakes more than this share of the wealth.
_LARGEST_STAKE = 0.75
# Bets on a growing table never stake less: enough for some 10^9 rows.
_LEAST_STAKE = 1e-5
# About the ratio of a stake to the next smaller one: in bets against one mean, and in bounds.
_STAKE_RATIO, _WIDE_RATIO = 2.0, 3.0


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
    >>> from skselect.bounds._mean import hoeffding_bentkus_upper
    >>> hoeffding_bentkus_upper([0.01, 0.05], 1000, 0.1).round(4)
    array([0.0175, 0.064 ])
    """
    means, rows = _check_means(mean, n)
    check_delta(delta)
    # Rounding may lift n * mean just above a whole number.
    errors = np.ceil(means * rows - 1e-9)

    def possible(r: FloatArray) -> BoolArray:
        bentkus = np.e * special.bdtr(errors, np.maximum(rows, 1).astype(np.int64), r)
        return np.minimum(np.exp(-rows * _divergence(means, r)), bentkus) >= delta

    return plain(np.where(rows == 0, 1.0, largest_possible(possible, means)))


def empirical_bernstein_upper(mean: Any, variance: Any, n: Any, delta: float) -> Any:
    """Return the empirical Bernstein upper bound on a mean loss.

    Parameters
    ----------
    mean : float or array-like in [0, 1]
        Mean of the observed losses, each in [0, 1].
    variance : float or array-like, not negative
        Their sample variance, with n - 1 in the denominator.
    n : int or array-like of int
        Independent rows; all three broadcast.
    delta : float in (0, 0.5]
        Largest probability that the bound lies below the true mean.

    Returns
    -------
    float or ndarray in (0, 1]
        mean + sqrt(2 variance log(2/delta) / n) + 7 log(2/delta) / (3 (n - 1)), at most 1; 1
        for fewer than two rows.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    .. [1] Maurer & Pontil, "Empirical Bernstein bounds and sample variance penalization", COLT
       2009, theorem 4.

    Examples
    --------
    >>> from skselect.bounds._mean import empirical_bernstein_upper
    >>> round(empirical_bernstein_upper(0.05, 0.002, 1000, 0.1), 4)
    0.0605
    """
    means, rows = _check_means(mean, n)
    given = as_array(variance, "variance")
    if given.dtype.kind not in "iuf" or not np.all((given >= 0) & np.isfinite(given)):
        raise ValueError(f"variance must be finite and not negative, got {shown(variance)}.")
    check_delta(delta)
    v, m, log_term = given.astype(np.float64), np.maximum(rows, 2), np.log(2.0 / delta)
    bound = means + np.sqrt(2.0 * v * log_term / m) + 7.0 * log_term / (3.0 * (m - 1.0))
    return plain(np.where(rows < 2, 1.0, np.minimum(bound, 1.0)))


def betting_upper(
    losses: Any,
    delta: float,
    *,
    weight: Any = None,
    largest_weight: float | None = None,
    anytime: bool = False,
) -> float:
    """Return the betting upper bound on a mean loss: tight where losses vary little.

    For every possible mean, a gambler bets a fixed share of the wealth that each loss is below it.
    Means against which the wealth would reach 1/delta are ruled out.

    Parameters
    ----------
    losses : array-like of shape (n,)
        In [0, 1], independent. Their order does not matter.
    delta : float in (0, 0.5]
        Largest probability that the bound lies below the true mean.
    weight : array-like of shape (n,), default=None
        Importance weights; the bound is then one on the weighted mean.
    largest_weight : float, default=None
        A limit that no weight can exceed; None takes the largest weight given.
    anytime : bool, default=False
        Whether the bound is to hold after every row of a growing table, with probability
        1 - `delta` for all of them together. It is wider. (Weights then need `largest_weight`.)

    Returns
    -------
    float in (0, 1]
        1 when there are no rows.

    Raises
    ------
    ValueError
        If a loss, a weight or `delta` is out of its range.

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
    >>> from skselect.bounds._mean import betting_upper, hoeffding_bentkus_upper
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
    weights = check_weight(weight, len(values), "weight", "losses")
    heaviest = 1.0 if weights is None else float(np.max(weights))
    if anytime and weights is not None and largest_weight is None:
        raise ValueError("largest_weight is missing: heavier rows may be added to the table.")
    if largest_weight is not None:
        heaviest = check_number("largest_weight", largest_weight, heaviest)
    shares = (np.ones(len(values)) if weights is None else weights) / heaviest
    # Payoffs are divided by 1 - mean, so that the same stakes can be used for every mean and the
    # wealth rises with the mean, as bisection needs.
    stakes, log_prior = bound_stakes(None if anytime else len(values), delta)

    # Means between which the wealth reaches 1/delta: what is not known yet is computed.
    known = [-math.inf, 1.0]

    payoff = np.empty(len(values))  # one array for all means: new ones would take longer to get

    @cache
    def excess(mean: float) -> float:
        np.subtract(values, mean, out=payoff)
        np.multiply(shares, payoff, out=payoff)
        np.divide(payoff, 1.0 - mean, out=payoff)
        found = _log_wealth(payoff, stakes, log_prior) + math.log(delta)
        known[int(found >= 0.0)] = mean
        return found

    def possible(mean: FloatArray) -> BoolArray:
        if known[0] < mean < known[1]:
            excess(float(mean))
        return np.asarray(mean <= known[0])

    mean = float(np.average(values, weights=shares))
    if mean >= 1.0:
        return 1.0
    _approach(excess, mean, math.sqrt(np.sum(shares**2)) / np.sum(shares), known)
    return float(largest_possible(possible, np.asarray(mean)))


def bound_stakes(n: int | None, delta: float) -> tuple[FloatArray, FloatArray]:
    """Return the stakes of :func:`betting_upper`, and the log of the share of the wealth on each.

    They are chosen for `n` rows; None: for a table that grows.
    """
    least = _LEAST_STAKE
    if n is not None:
        least = min(math.sqrt(2.0 * math.log(1.0 / delta) / n), _LARGEST_STAKE)
    size = math.ceil(math.log(_LARGEST_STAKE / least, _WIDE_RATIO)) + 1
    stakes = np.geomspace(least, _LARGEST_STAKE, size)
    if n is not None:
        return stakes, np.full(size, -math.log(size))
    share = 1.0 / np.arange(size, 0, -1)  # more on large stakes, which need fewer rows
    return stakes, np.log(share / np.sum(share))


def betting_log_wealth(
    losses: FloatArray, mean: float, delta: float, weight: FloatArray | None = None
) -> float:
    """Return the log of the wealth of bets that the (weighted) mean loss is below `mean`.

    If it is not, the wealth reaches 1/delta with probability at most `delta`.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        In [0, 1].
    mean : float in (0, 1)
    delta : float in (0, 0.5]
        The stakes are chosen for this level.
    weight : ndarray of shape (n,), default=None
        In [0, 1].

    Returns
    -------
    float
        0 without rows, and for a mean of 1.
    """
    if len(losses) == 0 or mean >= 1.0:
        return 0.0
    payoff = losses - mean if weight is None else weight * (losses - mean)
    return _log_wealth(payoff, *betting_stakes(len(losses), mean, delta))


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


def betting_stakes(n: int, mean: float, delta: float) -> tuple[FloatArray, FloatArray]:
    """Return stakes, chosen without the losses, and the log of the share of the wealth on each.

    The smallest one is best for losses of 0 and 1 whose mean is about `mean`, larger ones are
    better for losses that vary less.
    """
    largest = _LARGEST_STAKE / (1.0 - mean)
    least = math.sqrt(2.0 * math.log(1.0 / delta) / (n * mean * (1.0 - mean)))
    steps = math.ceil(math.log(largest / least, _STAKE_RATIO)) if least < largest else 0
    share = 1.0 / (1.0 + np.arange(steps + 1))
    return np.geomspace(min(least, largest), largest, steps + 1), np.log(share / np.sum(share))


def rows_for_betting(target: float, delta: float, n: int | None = None) -> int:
    """Return the least number of rows, none with a loss, on which bets certify a target.

    Parameters
    ----------
    target : float in (0, 1)
        Largest mean loss.
    delta : float in (0, 0.5]
        Allowed probability of failure.
    n : int, default=None
        Number of rows that the stakes are chosen for; None: as many as are needed.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If `target` or `delta` is out of its range.

    Examples
    --------
    >>> from skselect.bounds._mean import rows_for_betting
    >>> rows_for_betting(0.02, 0.05)
    198
    """
    check_number("target", target, 0.0, 1.0, closed="neither")
    check_delta(delta)

    def enough(k: int) -> bool:
        stakes, log_prior = betting_stakes(k if n is None else n, target, delta)
        wealth = special.logsumexp(k * np.log1p(stakes * target) + log_prior)
        return bool(wealth >= -math.log(delta))

    return least_count(enough)


def _divergence(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the Kullback-Leibler divergence of Bernoulli(q) from Bernoulli(p)."""
    return np.asarray(special.rel_entr(p, q) + special.rel_entr(1.0 - p, 1.0 - q))


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


def _check_means(mean: Any, n: Any) -> tuple[FloatArray, FloatArray]:
    """Return mean losses in [0, 1] and the number of rows behind each as floats."""
    means, (_, rows) = as_array(mean, "mean"), check_counts(0, n)
    if means.dtype.kind not in "iuf" or not np.all((means >= 0) & (means <= 1)):
        raise ValueError(f"mean must lie in [0, 1], got {shown(mean)}.")
    return means.astype(np.float64), rows
