"""Tests of calibration: could these errors be chance? ECCE, ECD (with its error), TCE, and T-Cal.

A test needs independent rows and losses of 0 or 1, so it refuses weights that are not constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import pandas as pd
from scipy.special import bdtr, bdtrc, chdtrc, gammaln, ndtr, xlog1py, xlogy

from skselect._lib.arrays import ROUNDING, FloatArray, IntArray, stays_within
from skselect._lib.checks import options as option_checks, warn_user
from skselect._lib.checks.rows import check_unit_confidence, refuse_graded_test
from skselect._lib.keywords import WeighedRowOptions, share_options
from skselect._lib.notebook import NotebookText
from skselect.bounds._csr import check_test_rows, error_sums, find_shortfall, standardize
from skselect.curve.curve import RiskCoverageCurve
from skselect.metrics._calibration_errors import largest_cumulative_gap, range_of_cumulative_gaps
from skselect.metrics._metric import compute_by_correctness, defaults_of, metric
from skselect.metrics._rows import Influence, ScoredRows, mean_of, score_proba
from skselect.predictions.outcomes import Outcomes

__all__ = ["ecce_test", "ecd_score", "ecd_test", "t_cal_test"]
__all__ += ["tce_score"]

# Kernels of errors -----------------------------------------------------------------------


def _log_odds(confidence: FloatArray, eps: float) -> FloatArray:
    """Return log(c/(1 - c)), c clipped to [eps, 1 - eps]."""
    option_checks.check_eps(eps, zero=False)
    shortfall = find_shortfall(confidence, eps)
    return np.log1p(-shortfall) - np.log(shortfall)


def ecd_terms(outcomes: Outcomes, eps: float = 1e-8) -> FloatArray:
    """Return (c - a) log(c/(1 - c)) of each row."""
    confidence = check_unit_confidence(outcomes.confidence, "ecd_score")
    log_odds = _log_odds(confidence, eps)
    clipped = np.clip(confidence, eps, 1.0 - eps)
    accuracy = 1.0 - outcomes.loss
    return (clipped - accuracy) * log_odds


def ecd(outcomes: Outcomes, eps: float = 1e-8) -> float:
    """Return the mean of (c - a) log(c/(1 - c))."""
    terms = ecd_terms(outcomes, eps)
    return float(np.average(terms, weights=outcomes.sample_weight))


def tce(outcomes: Outcomes, alpha: float = 0.05, n_min: int = 10, n_max: int = 1000) -> float:
    """Return the percentage of rows whose confidence is rejected by the test of their bin."""
    option_checks.check_number("alpha", alpha, 0.0, 1.0, closed="neither")
    option_checks.check_count("n_min", n_min)
    option_checks.check_count("n_max", n_max, n_min)
    check_unit_confidence(outcomes.confidence, "tce_score")
    _check_counts(outcomes.weight)
    refuse_graded_test(outcomes.loss, "tce_score")
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    confidence = curve.thresholds[::-1]
    size = curve.block_weight[::-1]
    right = size - curve.block_loss[::-1]
    starts = np.array(_pool(right.tolist(), size.tolist(), n_min, n_max))
    n_blocks = np.diff(np.append(starts, len(size)))
    bin_size = np.repeat(np.add.reduceat(size, starts), n_blocks)
    bin_right = np.repeat(np.add.reduceat(right, starts), n_blocks)
    rejected = stays_within(binomial_p_values(bin_right, bin_size, confidence), alpha)
    return float(100.0 * np.sum(size[rejected]) / np.sum(size))


def _check_counts(weight: FloatArray) -> None:
    """Refuse weights that are no numbers of rows, or of too many."""
    counts = "sample_weight: tce_score counts rows"
    if np.any(weight != np.rint(weight)):
        raise ValueError(f"{counts}, so weights must be whole numbers.")
    total = np.sum(weight)
    if total > 2**31:
        raise ValueError(
            f"{counts}, and these weights stand for {total:g}; more than 2^31 cannot be counted."
        )


def _pool(right: list[float], size: list[float], n_min: int, n_max: int) -> list[int]:
    """Return where each bin starts, among blocks of equal confidence in ascending order.

    Neighbours are pooled while together they have at most `n_min` rows, or while the accuracy
    would fall and they have at most `n_max`. The last blocks, of fewer than `n_min` rows each, are
    set aside until they have as many, and join the last pool if it keeps to `n_max`. Each step
    depends on the pools before, so this is a loop over the distinct confidences, with plain
    numbers.
    """
    n_pooled = len(size)
    n_aside = 0.0
    while n_pooled > 0 and n_aside < n_min and size[n_pooled - 1] < n_min:
        n_pooled -= 1
        n_aside += size[n_pooled]
    starts: list[int] = []
    rights: list[float] = []
    sizes: list[float] = []
    for block in range(n_pooled):
        start = block
        k = right[block]
        n = size[block]
        while starts:
            joint = sizes[-1] + n
            falls = rights[-1] * n >= k * sizes[-1]
            if joint > n_min and not (falls and joint <= n_max):
                break
            start = starts.pop()
            k += rights.pop()
            n = joint
            sizes.pop()
        starts.append(start)
        rights.append(k)
        sizes.append(n)
    if n_pooled < len(size) and (not starts or sizes[-1] + n_aside > n_max):
        starts.append(n_pooled)
    return starts


def binomial_p_values(k: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """Return the exact two-sided p-value of k successes in n trials against the rate p.

    It is the probability of all counts that are no more likely than k.
    """
    bound = _log_mass(k, n, p) + 1e-7  # equal but for rounding
    mean = n * p
    below = k < mean
    # A count is rare if it is no more likely than k. Bisect on the other side of the mean: above
    # it for the first rare count, below it for the first count that is not rare.
    low = np.where(below, np.ceil(mean), 0.0)
    high = np.where(below, n + 1.0, np.floor(mean) + 1.0)
    is_open = low < high
    while np.any(is_open):
        middle = np.floor((low + high) / 2.0)
        rare = _log_mass(np.minimum(middle, n), n, p) <= bound
        turned = rare == below
        high = np.where(is_open & turned, middle, high)
        low = np.where(is_open & ~turned, middle + 1.0, low)
        is_open = low < high
    lower = np.where(below, k, low - 1.0)
    upper = np.where(below, low, k)
    tails = _tails(lower, upper, n.astype(np.int64), p)
    return np.where(k == mean, 1.0, np.minimum(tails, 1.0))


def _tails(lower: FloatArray, upper: FloatArray, n: IntArray, p: FloatArray) -> FloatArray:
    """Return the probability of at most `lower` or at least `upper` successes."""
    up_to_lower = bdtr(np.maximum(lower, 0.0), n, p)
    beyond_upper = bdtrc(np.maximum(upper, 1.0) - 1.0, n, p)
    tails = np.where(lower >= 0, up_to_lower, 0.0)
    tails += np.where(upper >= 1, beyond_upper, 1.0)
    return tails


def _log_mass(k: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    choose = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return np.asarray(choose + xlogy(k, p) + xlog1py(n - k, -p))


# Kernels of tests ------------------------------------------------------------------------

#: The p-values of `ecce_test` are for many rows: sum c (1 - c) must be as large. From there on at
#: most 3.9 % of calibrated classifiers were rejected at the level 5 %.
_LEAST_VARIANCE = 5.0

#: The ECD of a calibrated classifier is nearly normal while the sum of the third absolute moments
#: of its terms is at most this share of the cube of its standard deviation.
_MOST_THIRD_MOMENT = 0.4


@dataclass(frozen=True)
class EcceTest(NotebookText):
    """What :func:`~skselect.metrics.ecce_test` found.

    Parameters
    ----------
    mad, r : float
        ECCE-MAD and ECCE-R.
    sigma : float
        The scale of both under calibration, sqrt(sum c (1 - c))/n.
    mad_p_value, r_p_value : float in [0, 1]
        Small means not calibrated.
    n_rows : int
    """

    mad: float
    r: float
    sigma: float
    mad_p_value: float
    r_p_value: float
    n_rows: int

    @property
    def has_many_rows(self) -> bool:
        """Whether the rows are as many as the p-values are for: sum c (1 - c) is at least 5."""
        return (self.sigma * self.n_rows) ** 2 >= _LEAST_VARIANCE

    def __str__(self) -> str:
        return (
            f"ECCE test of calibration, {self.n_rows} rows\n"
            f"  ECCE-MAD  {self.mad:.4g}  p-value {self.mad_p_value:.4g}\n"
            f"  ECCE-R    {self.r:.4g}  p-value {self.r_p_value:.4g}"
        )


@dataclass(frozen=True)
class EcdTest(NotebookText):
    """What :func:`~skselect.metrics.ecd_test` found.

    Parameters
    ----------
    ecd : float
        Positive: overconfident, negative: underconfident.
    sigma : float
        Its standard deviation under calibration.
    z : float
    p_value : float in (0, 1]
        Two-sided; small means not calibrated.
    decision : {-1, 0, 1}
        Overconfident (1), underconfident (-1) or neither at level `alpha`.
    alpha : float
    n_rows : int
    n_draws : int or None
        None: the normal approximation.
    """

    ecd: float
    sigma: float
    z: float
    p_value: float
    decision: int
    alpha: float
    n_rows: int
    n_draws: int | None

    def __str__(self) -> str:
        if self.decision == 0:
            verdict = "no miscalibration found"
        else:
            verdict = "overconfident" if self.decision == 1 else "underconfident"
        return (
            f"ECD test: {verdict} ({100 * self.alpha:g} % level)\n"
            f"  ECD      {self.ecd:.4g}  (sigma {self.sigma:.4g}, z {self.z:.3g})\n"
            f"  p-value  {self.p_value:.4g}, {self.n_rows} rows"
        )


def run_ecce_test(outcomes: Outcomes) -> EcceTest:
    """Return both cumulative errors with their p-values."""
    rows = check_test_rows(outcomes, "ecce_test")
    curve = RiskCoverageCurve.from_outcomes(rows)
    mad = largest_cumulative_gap(curve)
    spread = range_of_cumulative_gaps(curve)
    variance = float(np.sum(rows.confidence * (1.0 - rows.confidence)))
    sigma = math.sqrt(variance) / len(rows)
    return EcceTest(
        mad=mad,
        r=spread,
        sigma=sigma,
        mad_p_value=brownian_maximum_tail(standardize(mad, sigma)),
        r_p_value=brownian_range_tail(standardize(spread, sigma)),
        n_rows=len(rows),
    )


def run_ecd_test(
    outcomes: Outcomes,
    alpha: float = 0.05,
    method: str = "montecarlo",
    n_draws: int | None = None,
    eps: float = 1e-8,
    random_state: Any = None,
) -> EcdTest:
    """Return the ECD with a two-sided p-value given the confidences."""
    rows = check_test_rows(outcomes, "ecd_test")
    option_checks.check_number("alpha", alpha, 0.0, 1.0, closed="neither")
    option_checks.check_choice("method", method, ["montecarlo", "normal"])
    n_draws = option_checks.choose_draws(n_draws, 4999, alpha, 2 if method == "montecarlo" else 0)
    rng = option_checks.check_generator(random_state)
    value = ecd(rows, eps)
    log_odds = _log_odds(rows.confidence, eps)
    shortfall = find_shortfall(rows.confidence, eps)
    sigma = _ecd_sigma(shortfall, log_odds)
    z = standardize(value, sigma)
    if method == "montecarlo":
        below, above = _simulated_tails(value, shortfall, log_odds, n_draws, rng)
    else:
        _warn_if_not_normal(shortfall, log_odds, sigma)
        below = ndtr(z)
        above = ndtr(-z)
    p_value = float(min(1.0, 2.0 * min(below, above)))
    decision = 0
    if p_value <= alpha:
        decision = 1 if above < below else -1
    return EcdTest(
        ecd=value,
        sigma=sigma,
        z=z,
        p_value=p_value,
        decision=decision,
        alpha=float(alpha),
        n_rows=len(rows),
        n_draws=n_draws if method == "montecarlo" else None,
    )


def _ecd_sigma(shortfall: FloatArray, log_odds: FloatArray) -> float:
    """Return the standard deviation of the ECD under calibration."""
    variance = float(np.sum(shortfall * (1.0 - shortfall) * log_odds**2))
    return math.sqrt(variance) / len(shortfall)


def _simulated_tails(
    value: float,
    shortfall: FloatArray,
    log_odds: FloatArray,
    n_draws: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the shares of calibrated classifiers whose ECD is at most, and at least, as large."""
    # A right row adds (c - 1) times its log-odds, an error c times.
    if_all_right = np.sum(shortfall * log_odds)
    sums = error_sums(shortfall, log_odds, n_draws, rng) - if_all_right
    drawn = sums / len(shortfall)
    slack = ROUNDING * max(1.0, abs(value))
    n_below = np.sum(drawn <= value + slack)
    n_above = np.sum(drawn >= value - slack)
    return float((1.0 + n_below) / (n_draws + 1)), float((1.0 + n_above) / (n_draws + 1))


def _warn_if_not_normal(shortfall: FloatArray, log_odds: FloatArray, sigma: float) -> None:
    """Warn of rows too few, or too sure, for the normal approximation of the ECD."""
    variance = shortfall * (1.0 - shortfall)
    share = 1.0 - 2.0 * variance
    third_moment = np.sum(variance * share * np.abs(log_odds) ** 3)
    limit = _MOST_THIRD_MOMENT * (sigma * len(shortfall)) ** 3
    if sigma > 0 and third_moment > limit:
        warn_user(
            "ecd_test: the normal approximation is poor for so few rows, or for confidences "
            "so near 1; method='montecarlo' is exact."
        )


def brownian_maximum_tail(x: float) -> float:
    """Return P(max |B(t)| >= x) for a Brownian motion on [0, 1]."""
    if x < 0.05:
        return 1.0
    k = np.arange(int(40.0 / x) + 1)
    sign = np.where(k % 2 == 0, 1.0, -1.0)
    tail = 4.0 * math.fsum(sign * ndtr(-(2 * k + 1) * x))
    return float(min(max(tail, 0.0), 1.0))


def brownian_range_tail(x: float) -> float:
    """Return P(max B - min B >= x) for a Brownian motion on [0, 1]."""
    if x < 0.3:
        return 1.0
    k = np.arange(1, int(40.0 / x) + 2)
    factor = np.where(k % 2 == 1, k, -k)
    tail = 8.0 * math.fsum(factor * ndtr(-k * x))
    return float(min(max(tail, 0.0), 1.0))


# How much each row moves them ---------------------------------------------------------


def ecd_influence(rows: ScoredRows, eps: float = 1e-8) -> Influence:
    outcomes = rows.outcomes
    influence = mean_of(ecd_terms(outcomes, eps), "identity")
    is_right = outcomes.loss == 0
    surest = outcomes.confidence[is_right].max(initial=0.5)
    either = Outcomes(np.array([0.0, 1.0]), np.full(2, surest))
    right, wrong = ecd_terms(either, eps)
    return replace(influence, confident_error=float(wrong - right) / len(outcomes))


# Public functions ------------------------------------------------------------------------


@share_options
def ecce_test(y_true: Any, y_proba: Any, **options: Unpack[WeighedRowOptions]) -> EcceTest:
    """Test calibration by the cumulative gaps between accuracy and confidence.

    Parameters
    ----------
    %(data)s
    %(options)s
        Only constant weights: a weight is not a number of independent rows.

    Returns
    -------
    EcceTest
        ECCE-MAD and ECCE-R with their p-values. ``print`` it for a readable text.

    Raises
    ------
    ValueError
        If weights are not constant, losses are graded, or an argument is malformed.

    Warns
    -----
    UserWarning
        If sum c (1 - c) is below 5: the p-values are for many rows.

    Notes
    -----
    Under calibration the cumulative gaps divided by sigma = sqrt(sum c (1 - c))/n behave
    like a Brownian motion; the p-values are the tails of its largest absolute value and of
    its range [1]_, for many rows. With sum c (1 - c) of 5 and more, it rejected at most 3.9 % of
    calibrated classifiers at the level 5 % (8 laws of confidences, 20,000 draws each); of three
    to nine rows, up to 14 %.

    References
    ----------
    .. [1] Arrieta-Ibarra et al., "Metrics of calibration for probabilistic predictions",
       2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.metrics import ecce_test
    >>> y_true = np.repeat([0, 1], [40, 60])
    >>> print(ecce_test(y_true, np.full(100, .7)))
    ECCE test of calibration, 100 rows
      ECCE-MAD  0.1  p-value 0.05819
      ECCE-R    0.1  p-value 0.1163
    """
    rows = score_proba(y_true, y_proba, **options).by_correctness
    test = run_ecce_test(rows.outcomes)
    if test.sigma > 0 and not test.has_many_rows:
        variance = (test.sigma * test.n_rows) ** 2
        warn_user(
            f"ecce_test: its p-values are for many rows; sum c (1 - c) is {variance:.2g} here and "
            f"should be {_LEAST_VARIANCE:g}. ecd_test and csr_test are exact."
        )
    return test


@metric(ecd, "lower", range="(-inf, inf)", for_comparison=True, best=0.0, closed_form=ecd_influence)
def ecd_score(
    y_true: Any, y_proba: Any, *, eps: float = 1e-8, **options: Unpack[WeighedRowOptions]
) -> float:
    """Compute the entropic calibration difference, ECD: negative, zero or positive.

    :Formula: ``mean (c - a) log(c/(1 - c))``
    :Use for: over- (+) or underconfident (-)
    :Not for: where both occur: they cancel
    :Source: Sumler et al. 2025

    Parameters
    ----------
    %(data)s
    eps : float in [1e-100, 0.5), default=1e-8
        Confidences are clipped to [eps, 1 - eps].
    %(options)s

    Returns
    -------
    float
        Above 0: overconfident, below: underconfident; near 0 for a calibrated classifier.
        Its scorer, "neg_ecd", is minus the distance from 0.

    %(raises_unit)s

    See Also
    --------
    ecd_test : Tells whether the value could be chance.

    Notes
    -----
    The mean of (c - a) log(c/(1 - c)), natural logarithm, c the confidence in the predicted
    class: the log loss less its expectation under c [1]_. A right row contributes at least
    -0.2785, an error without bound.

    References
    ----------
    .. [1] Sumler et al., "An entropic metric for measuring calibration of machine learning
       models", arXiv 2502.14545, 2025.

    Examples
    --------
    >>> from skselect.metrics import ecd_score
    >>> round(ecd_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    -0.0021
    """
    return compute_by_correctness(ecd, y_true, y_proba, options, eps=eps)


@defaults_of(run_ecd_test)
def ecd_test(
    y_true: Any,
    y_proba: Any,
    *,
    alpha: float = 0.05,
    method: str = "montecarlo",
    n_draws: int | None = None,
    eps: float = 1e-8,
    random_state: Any = None,
    **options: Unpack[WeighedRowOptions],
) -> EcdTest:
    """Test for over- or underconfidence by the entropic calibration difference.

    Parameters
    ----------
    %(data)s
    alpha : float in (0, 1), default=0.05
        Level of the decision. Two-sided.
    method : {"montecarlo", "normal"}, default="montecarlo"
        Simulate errors given the confidences, which is exact, or use the normal approximation.
    n_draws : int, default=None
        How many calibrated classifiers are simulated. None: 4999, or as many as it takes to reject
        at `alpha` twice over.
    eps : float in [1e-100, 0.5), default=1e-8
        Confidences are clipped to [eps, 1 - eps].
    random_state : int, Generator or None, default=None
        Seed of the simulation.
    %(options)s
        Only constant weights: a weight is not a number of independent rows.

    Returns
    -------
    EcdTest
        `ecd`, `z`, `p_value` and the `decision`. ``print`` it for a readable text.

    Raises
    ------
    ValueError
        If weights are not constant, losses are graded, `n_draws` is too small to reject at
        `alpha`, or an argument is malformed.

    Warns
    -----
    UserWarning
        If the normal approximation is poor.

    Notes
    -----
    Given the confidences, the ECD of a calibrated classifier has mean 0 and variance
    sum c (1 - c) log(c/(1 - c))^2 / n^2 [1]_. The normal approximation is taken as good while the
    third absolute moments of the terms add up to at most 0.4 of the cube of the standard deviation
    of their sum, as with six expected errors at one high confidence. From there on it rejected
    about 5 % of calibrated classifiers at the level 5 % (up to 9 % where all confidences are
    equal); with fewer rows, up to 14 %.

    References
    ----------
    .. [1] Sumler et al., "An entropic metric for measuring calibration of machine learning
       models", arXiv 2502.14545, 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.metrics import ecd_test
    >>> y_true = np.repeat([0, 1], [40, 60])
    >>> ecd_test(y_true, np.full(100, .9), method="normal").decision
    1
    """
    return compute_by_correctness(
        run_ecd_test,
        y_true,
        y_proba,
        options,
        alpha=alpha,
        method=method,
        n_draws=n_draws,
        eps=eps,
        random_state=random_state,
    )


@metric(
    tce,
    "lower",
    range="[0, 100]",
    for_comparison=True,
    scale_free=False,
    no_interval="it counts the outcomes of tests, which change with the number of rows",
)
def tce_score(
    y_true: Any,
    y_proba: Any,
    *,
    alpha: float = 0.05,
    n_min: int = 10,
    n_max: int = 1000,
    **options: Unpack[WeighedRowOptions],
) -> float:
    """Compute the percentage of predictions that exact tests find miscalibrated, TCE.

    :Formula: ``percent of rows with p-value <= alpha in their bin``
    :Use for: the share of rows with evidence of miscalibration
    :Not for: comparing samples of different size: more rows find more
    :Source: Matsubara et al. 2023

    Parameters
    ----------
    %(data)s
    alpha : float in (0, 1), default=0.05
        Level of the decision. Each test is at this level.
    n_min, n_max : int, default=10, 1000
        Fewest and most rows of a bin (rows of one confidence stay in one bin, however many).
    %(options)s
        Weights must be whole numbers (repeated rows) and losses 0 or 1.

    Returns
    -------
    float in [0, 100]
        Percent; lower is better. Chance alone gives a calibrated classifier about 100 alpha.

    Raises
    ------
    ValueError
        If weights are not whole, losses are graded, or an argument is malformed.

    Notes
    -----
    The rows, in order of confidence, are pooled into bins of increasing accuracy and of
    `n_min` to `n_max` rows (PAVA-BC); each confidence is tested against the errors of its bin
    by the two-sided binomial test [1]_. Where confidences are equal, the published code takes the
    rows one by one, in the order in which they happen to stand. Here they are one block, so that
    the order never matters: a block of `n_min` rows or more is pooled only if the accuracy falls,
    and only the last rows that are fewer join the bin below whatever their accuracy.

    References
    ----------
    .. [1] Matsubara et al., "TCE: a test-based approach to measuring calibration error",
       2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.metrics import tce_score
    >>> y_true = np.repeat([0, 1, 0, 1], [40, 60, 40, 60])  # 60 % right at .6 and at .9
    >>> tce_score(y_true, np.repeat([.6, .9], 100))
    50.0
    """
    return compute_by_correctness(
        tce, y_true, y_proba, options, alpha=alpha, n_min=n_min, n_max=n_max
    )


# Kernels ---------------------------------------------------------------------------------

# Columns of the sums, with d = c - a and its moments under calibration, v = c (1 - c) and
# m = v (1 - 2 c): rows, d, d^2, v, v^2, v^3, m, m^2.
_Sums = FloatArray


def count_scales(n_rows: int) -> int:
    """Return B = floor(2 log2(n/sqrt(log n))), at least one."""
    width = n_rows / math.sqrt(math.log(n_rows))
    return max(1, math.floor(2.0 * math.log2(width)))


def _cells(confidence: FloatArray, right: FloatArray, n_scales: int) -> tuple[IntArray, _Sums]:
    """Return the bins of the finest scale that hold rows, ascending, and their sums."""
    key = np.floor(np.ldexp(confidence, n_scales))
    key = np.minimum(key, 2.0**n_scales - 1)
    order = np.argsort(key)
    sorted_key = key[order].astype(np.int64)
    c = confidence[order]
    d = c - right[order]
    v = c * (1.0 - c)
    m = v * (1.0 - 2.0 * c)
    columns = np.stack([np.ones_like(c), d, d * d, v, v * v, v * v * v, m, m * m])
    return _merge(sorted_key, columns)


def _merge(key: IntArray, sums: _Sums) -> tuple[IntArray, _Sums]:
    """Add up neighbours with the same key."""
    starts = _starts_of_runs(key)
    if len(starts) == len(key):
        return key, sums
    return key[starts], np.add.reduceat(sums, starts, axis=1)


def _starts_of_runs(key: IntArray) -> IntArray:
    """Return where each run of equal keys starts; no key is negative."""
    return np.flatnonzero(np.diff(key, prepend=-1))


def _moments(sums: _Sums) -> FloatArray:
    """Return for each bin what it adds to n times the statistic, to its variance and third moment.

    The first is the sum of d_i d_j over the ordered pairs of a bin, divided by its rows. In its
    cube d_i^3 d_j^3 of a pair and d_i^2 d_j^2 d_k^2 of a triple remain; all else has mean zero.
    """
    n, d, d2, v, v2, v3, m, m2 = sums
    pairs = (m * m - m2) / 2.0
    triples = v * v * v - 3.0 * v * v2 + 2.0 * v3
    variance = np.maximum(v * v - v2, 0.0)
    return np.stack([(d * d - d2) / n, 2.0 * variance / n**2, 8.0 * (pairs + triples) / n**3])


def scale_moments(confidence: FloatArray, right: FloatArray, n_scales: int) -> FloatArray:
    """Return the sums of `_moments` for 2, 4, ..., 2^B bins, shape (3, B).

    The bins are nested. Start from a middle scale, where a bin holds about one row: coarser bins
    are pairs of bins, and finer ones matter only while they hold several cells. So every row is
    read a few times, not once per scale.
    """
    key, sums = _cells(confidence, right, n_scales)
    middle = min(n_scales, max(1, int(np.ceil(np.log2(len(confidence))))))
    coarse = _coarse_moments(key >> (n_scales - middle), sums, middle)
    fine = _fine_moments(key, sums, middle, n_scales)
    return np.concatenate([coarse, fine], axis=1)


def _coarse_moments(key: IntArray, sums: _Sums, n_scales: int) -> FloatArray:
    """Return the moments up to a scale, by adding up pairs of its bins."""
    result = np.empty((3, n_scales))
    key, sums = _merge(key, sums)
    for scale in range(n_scales, 0, -1):
        result[:, scale - 1] = _moments(sums).sum(axis=1)
        key, sums = _merge(key >> 1, sums)
    return result


def _fine_moments(key: IntArray, sums: _Sums, middle: int, n_scales: int) -> FloatArray:
    """Return the moments beyond the middle scale, of the bins that hold several cells."""
    result = np.zeros((3, n_scales - middle))
    settled = np.zeros(3)
    for place in range(n_scales - middle):
        if len(key) > 0:
            starts = _starts_of_runs(key >> (n_scales - middle - place - 1))
            moments = _moments(np.add.reduceat(sums, starts, axis=1))
            n_cells = np.diff(np.append(starts, len(key)))
            # A cell that is alone at this scale is alone at all finer ones.
            alone = n_cells == 1
            settled += moments[:, alone].sum(axis=1)
            result[:, place] = moments[:, ~alone].sum(axis=1)
            shared = np.repeat(~alone, n_cells)
            key = key[shared]
            sums = sums[:, shared]
        result[:, place] += settled
    return result


def _analytic_p_values(moments: FloatArray) -> FloatArray:
    """Return p-values of a chi-square, shifted and scaled to have these three moments."""
    total, variance, third = moments
    varies = variance > 0
    p_values = np.where(total > ROUNDING, 0.0, 1.0)  # without variance, chance explains nothing
    z = total[varies] / np.sqrt(variance[varies])
    skewness = third[varies] / variance[varies] ** 1.5
    # Without skewness there are infinitely many degrees of freedom: the normal distribution.
    nu = 8.0 / np.maximum(skewness, 1e-4) ** 2
    chi_square = chdtrc(nu, np.maximum(nu + z * np.sqrt(2.0 * nu), 0.0))
    tail = np.where(skewness > 1e-4, chi_square, ndtr(-z))
    # With less than a quarter of a degree of freedom (few rows, near certainty) the chi-square is
    # a bad approximation; Cantelli's bound holds for every distribution.
    cantelli = np.where(z > 0, 1.0 / (1.0 + z * z), 1.0)
    p_values[varies] = np.where(nu >= 0.25, tail, np.maximum(tail, cantelli))
    return p_values


def _simulated_p_values(
    total: FloatArray, confidence: FloatArray, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Return for each scale the share of simulated calibrated data with a statistic as large."""
    confidence = np.sort(confidence)  # the order of the rows must not change the draws
    n = len(confidence)
    n_as_large = np.ones(len(total))
    least = total - ROUNDING * np.abs(total)
    for _ in range(n_draws):
        c = confidence[rng.integers(0, n, n)]
        right = (rng.random(n) < c).astype(np.float64)
        statistic, _, _ = scale_moments(c, right, len(total))
        n_as_large += statistic >= least
    return n_as_large / (n_draws + 1)


# The test --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TCalTest(NotebookText):
    """What :func:`~skselect.metrics.t_cal_test` found.

    Parameters
    ----------
    n_bins : ndarray of shape (B,)
        Bins of equal width at each scale: 2, 4, ..., 2^B.
    statistics : ndarray of shape (B,)
        The debiased estimate of the squared calibration error at each scale.
    p_values : ndarray of shape (B,)
        One per scale, not adjusted.
    p_value : float in [0, 1]
        The least of them times B (Bonferroni); small means not calibrated.
    reject : bool
        Whether p_value <= alpha.
    alpha : float
    n_rows : int
    """

    n_bins: IntArray
    statistics: FloatArray
    p_values: FloatArray
    p_value: float
    reject: bool
    alpha: float
    n_rows: int

    @property
    def max_statistic(self) -> float:
        """The largest estimate of all scales."""
        return float(np.max(self.statistics))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per scale."""
        return pd.DataFrame(
            {"n_bins": self.n_bins, "statistic": self.statistics, "p_value": self.p_values}
        )

    def __repr__(self) -> str:
        return f"<TCalTest: p-value {self.p_value:.4g}; {self.n_rows} rows>"

    def __str__(self) -> str:
        verdict = "miscalibrated" if self.reject else "no miscalibration found"
        best = int(np.argmin(self.p_values))
        return (
            f"T-Cal test: {verdict} ({100 * self.alpha:g} % level)\n"
            f"  p-value  {self.p_value:.4g}  (the least of {len(self.n_bins)} scales, adjusted)\n"
            f"  at {self.n_bins[best]} bins the squared error is {self.statistics[best]:.4g}, "
            f"{self.n_rows} rows"
        )


def run_t_cal_test(
    outcomes: Outcomes,
    alpha: float = 0.05,
    method: str = "analytic",
    n_draws: int | None = None,
    random_state: Any = None,
) -> TCalTest:
    """Return the statistic and its p-value at all scales."""
    rows = check_test_rows(outcomes, "t_cal_test")
    option_checks.check_number("alpha", alpha, 0.0, 1.0, closed="neither")
    option_checks.check_choice("method", method, ["analytic", "montecarlo"])
    simulates = method == "montecarlo"
    if len(rows) < 2:
        raise ValueError(f"y_true: t_cal_test needs at least 2 rows, got {len(rows)}.")
    rng = option_checks.check_generator(random_state)
    n_scales = count_scales(len(rows))
    n_draws = option_checks.choose_draws(n_draws, 1000, alpha, n_scales if simulates else 0)
    moments = scale_moments(rows.confidence, 1.0 - rows.loss, n_scales)
    statistics, _, _ = moments
    if simulates:
        p_values = _simulated_p_values(statistics, rows.confidence, n_draws, rng)
    else:
        p_values = _analytic_p_values(moments)
    p_value = min(1.0, n_scales * float(np.min(p_values)))
    return TCalTest(
        n_bins=2 ** np.arange(1, n_scales + 1),
        statistics=statistics / len(rows),
        p_values=p_values,
        p_value=p_value,
        reject=p_value <= alpha,
        alpha=float(alpha),
        n_rows=len(rows),
    )


# Public function -------------------------------------------------------------------------


@defaults_of(run_t_cal_test)
def t_cal_test(
    y_true: Any,
    y_proba: Any,
    *,
    alpha: float = 0.05,
    method: str = "analytic",
    n_draws: int | None = None,
    random_state: Any = None,
    **options: Unpack[WeighedRowOptions],
) -> TCalTest:
    """Test calibration with bins of every dyadic width (T-Cal, adaptive).

    Parameters
    ----------
    %(data)s
    alpha : float in (0, 1), default=0.05
        Level of the decision. All scales share it.
    method : {"analytic", "montecarlo"}, default="analytic"
        "analytic": the null distribution from its first three moments given the confidences.
        "montecarlo": resampled confidences with simulated labels, as published; it costs
        `n_draws` times as much.
    n_draws : int, default=None
        How many calibrated classifiers are simulated. None: 1000, or as many as it takes to reject
        at `alpha` twice over.
    random_state : int, Generator or None, default=None
        Seed of the simulation.
    %(options)s
        Only constant weights: a weight is not a number of independent rows.

    Returns
    -------
    TCalTest
        Statistic and p-value at each scale, the adjusted p-value and the decision.
        ``print`` it for a readable text.

    Raises
    ------
    ValueError
        If there are fewer than two rows, weights are not constant, losses are graded, `n_draws` is
        too small to reject at `alpha`, or an argument is malformed.

    Notes
    -----
    With m = 2, 4, ..., 2^B bins of equal width (closed on the left), where
    B = floor(2 log2(n/sqrt(log n))), the statistic is (1/n) sum over bins of
    [(sum d)^2 - sum d^2]/n_b with d = c - a, without bias for the squared calibration error;
    each scale is tested at alpha/B [1]_. "analytic" takes the mean (0), variance and third
    moment of each statistic under calibration, given the confidences, and the tail of a
    shifted chi-square with the same moments (where this has less than a quarter of a degree
    of freedom, Cantelli's bound); in simulations it rejected 0 to 4 % of calibrated classifiers
    at the level 5 %, and nearly none where confidences are equal, or few and sharp: there it has
    little power. "montecarlo" cannot give an adjusted p-value below B/(n_draws + 1).

    References
    ----------
    .. [1] Lee et al., "T-Cal: an optimal test for the calibration of predictive models",
       Journal of Machine Learning Research 24, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.metrics import t_cal_test
    >>> y_true = np.repeat([0, 1], [40, 60])
    >>> print(t_cal_test(y_true, np.full(100, .9)))
    T-Cal test: miscalibrated (5 % level)
      p-value  1.231e-21  (the least of 11 scales, adjusted)
      at 2 bins the squared error is 0.0867, 100 rows
    """
    return compute_by_correctness(
        run_t_cal_test,
        y_true,
        y_proba,
        options,
        alpha=alpha,
        method=method,
        n_draws=n_draws,
        random_state=random_state,
    )
