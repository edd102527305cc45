"""Tests of calibration: could these errors be chance? With the errors ECD and TCE.

A test needs independent rows and losses of 0 or 1, so it refuses weights that are not constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from scipy.special import bdtr, bdtrc, gammaln, ndtr, xlog1py, xlogy

from skselect._lib.arrays import ROUNDING
from skselect._lib.checks import warn_user
from skselect._lib.checks.options import (
    check_choice,
    check_count,
    check_generator,
    check_number,
    choose_draws,
)
from skselect._lib.checks.rows import check_unit_confidence, refuse_graded_test, refuse_weights
from skselect._lib.notebook import NotebookText
from skselect._lib.typing import FloatArray
from skselect.curve.curve import RiskCoverageCurve
from skselect.metrics._arguments import DoorOptions, check_eps, claim_metric, judge_proba
from skselect.metrics._csr import error_sums, find_shortfall
from skselect.metrics._smooth_errors import largest_cumulative_gap, range_of_cumulative_gaps
from skselect.predictions.outcomes import Outcomes

# Kernels of errors -----------------------------------------------------------------------


def _log_odds(confidence: FloatArray, eps: float) -> FloatArray:
    """Return log(c/(1 - c)), c clipped to [eps, 1 - eps]."""
    check_eps(eps, zero=False)
    shortfall = find_shortfall(confidence, eps)
    return np.log1p(-shortfall) - np.log(shortfall)


def ecd_terms(outcomes: Outcomes, eps: float = 1e-8) -> FloatArray:
    """Return (c - a) log(c/(1 - c)) of each row."""
    confidence = check_unit_confidence(outcomes.confidence, "ecd_score")
    log_odds = _log_odds(confidence, eps)
    return (np.clip(confidence, eps, 1.0 - eps) - (1.0 - outcomes.loss)) * log_odds


def ecd(outcomes: Outcomes, eps: float = 1e-8) -> float:
    """Return the mean of (c - a) log(c/(1 - c))."""
    return float(np.average(ecd_terms(outcomes, eps), weights=outcomes.sample_weight))


def tce(outcomes: Outcomes, alpha: float = 0.05, n_min: int = 10, n_max: int = 1000) -> float:
    """Return the percentage of rows whose confidence is rejected by the test of their bin."""
    check_number("alpha", alpha, 0.0, 1.0, closed="neither")
    check_count("n_min", n_min)
    check_count("n_max", n_max, n_min)
    check_unit_confidence(outcomes.confidence, "tce_score")
    _check_whole(outcomes.weight, "tce_score")
    refuse_graded_test(outcomes.loss, "tce_score")
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    confidence, size = curve.thresholds[::-1], curve.block_weight[::-1]
    right = size - curve.block_loss[::-1]
    starts = np.array(_pool(right.tolist(), size.tolist(), n_min, n_max))
    n_blocks = np.diff(np.append(starts, len(size)))
    bin_size = np.repeat(np.add.reduceat(size, starts), n_blocks)
    bin_right = np.repeat(np.add.reduceat(right, starts), n_blocks)
    rejected = binomial_p_values(bin_right, bin_size, confidence) <= alpha
    return float(100.0 * np.sum(size[rejected]) / np.sum(size))


def _check_whole(weight: FloatArray, purpose: str) -> None:
    """Refuse weights that are not whole numbers, or too many, where rows are counted."""
    if np.any(weight != np.rint(weight)):
        raise ValueError(f"sample_weight: {purpose} counts rows, so weights must be whole numbers.")
    if np.sum(weight) > 2**31:
        raise ValueError(
            f"sample_weight: {purpose} counts rows, and these weights stand for "
            f"{np.sum(weight):g}; more than 2^31 cannot be counted."
        )


def _pool(right: list[float], size: list[float], n_min: int, n_max: int) -> list[int]:
    """Return where each bin starts, among blocks of equal confidence in ascending order.

    Neighbours are pooled while together they have at most `n_min` rows, or while the accuracy
    would fall and they have at most `n_max`. Each step depends on the pools before, so this is a
    loop over the distinct confidences, with plain numbers.
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
    bound = _log_mass(k, n, p) + 1e-7  # equal but for rounding
    below = k < n * p
    # A count is rare if it is no more likely than k. Bisect on the other side of the mean: above
    # it for the first rare count, below it for the first count that is not rare.
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
        found = {1: "overconfident", -1: "underconfident", 0: "no miscalibration found"}
        return (
            f"ECD test: {found[self.decision]} ({100 * self.alpha:g} % level)\n"
            f"  ECD      {self.ecd:.4g}  (sigma {self.sigma:.4g}, z {self.z:.3g})\n"
            f"  p-value  {self.p_value:.4g}, {self.n_rows} rows"
        )


def check_test_rows(outcomes: Outcomes, purpose: str) -> Outcomes:
    """Return the rows without their constant weight; refuse other weights and graded losses."""
    refuse_weights(outcomes.sample_weight, purpose)
    refuse_graded_test(outcomes.loss, purpose)
    check_unit_confidence(outcomes.confidence, purpose)
    return Outcomes(outcomes.loss, outcomes.confidence)


def run_ecce_test(outcomes: Outcomes) -> EcceTest:
    """Return both cumulative errors with their p-values."""
    rows = check_test_rows(outcomes, "ecce_test")
    curve = RiskCoverageCurve.from_outcomes(rows)
    mad, spread = largest_cumulative_gap(curve), range_of_cumulative_gaps(curve)
    sigma = math.sqrt(float(np.sum(rows.confidence * (1.0 - rows.confidence)))) / len(rows)
    return EcceTest(
        mad=mad,
        r=spread,
        sigma=sigma,
        mad_p_value=brownian_maximum_tail(_standardize(mad, sigma)),
        r_p_value=brownian_range_tail(_standardize(spread, sigma)),
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
    check_number("alpha", alpha, 0.0, 1.0, closed="neither")
    check_choice("method", method, ["montecarlo", "normal"])
    n_draws = choose_draws(n_draws, 4999, alpha, 2 if method == "montecarlo" else 0)
    rng = check_generator(random_state)
    value, log_odds = ecd(rows, eps), _log_odds(rows.confidence, eps)
    shortfall = find_shortfall(rows.confidence, eps)
    sigma = math.sqrt(float(np.sum(shortfall * (1.0 - shortfall) * log_odds**2))) / len(rows)
    z = math.copysign(_standardize(abs(value), sigma), value)
    if method == "normal":
        share = 1.0 - 2.0 * shortfall * (1.0 - shortfall)
        third = np.sum(shortfall * (1.0 - shortfall) * share * np.abs(log_odds) ** 3)
        if sigma > 0 and third > _MOST_THIRD_MOMENT * (sigma * len(rows)) ** 3:
            warn_user(
                "ecd_test: the normal approximation is poor for so few rows, or for confidences "
                "so near 1; method='montecarlo' is exact."
            )
        tails = float(ndtr(z)), float(ndtr(-z))
    else:
        # A right row adds (c - 1) times its log-odds, an error c times.
        drawn = (
            error_sums(shortfall, log_odds, n_draws, rng) - np.sum(shortfall * log_odds)
        ) / len(rows)
        slack = ROUNDING * max(1.0, abs(value))
        below, above = np.sum(drawn <= value + slack), np.sum(drawn >= value - slack)
        tails = (1.0 + below) / (n_draws + 1), (1.0 + above) / (n_draws + 1)
    p_value = min(1.0, 2.0 * min(tails))
    side = 1 if tails[1] < tails[0] else -1
    return EcdTest(
        ecd=value,
        sigma=sigma,
        z=z,
        p_value=p_value,
        decision=side if p_value <= alpha else 0,
        alpha=float(alpha),
        n_rows=len(rows),
        n_draws=n_draws if method == "montecarlo" else None,
    )


def _standardize(value: float, sigma: float) -> float:
    """Return value/sigma; where sigma is 0, infinity, or 0 for a value of 0."""
    if sigma > 0:
        return value / sigma
    return math.inf if value > 0 else 0.0


def brownian_maximum_tail(x: float) -> float:
    """Return P(max |B(t)| >= x) for a Brownian motion on [0, 1]."""
    if x < 0.05:
        return 1.0
    k = np.arange(int(40.0 / x) + 1)
    terms = np.where(k % 2 == 0, 1.0, -1.0) * ndtr(-(2 * k + 1) * x)
    return float(min(max(4.0 * math.fsum(terms), 0.0), 1.0))


def brownian_range_tail(x: float) -> float:
    """Return P(max B - min B >= x) for a Brownian motion on [0, 1]."""
    if x < 0.3:
        return 1.0
    k = np.arange(1, int(40.0 / x) + 2)
    terms = np.where(k % 2 == 1, k, -k) * ndtr(-k * x)
    return float(min(max(8.0 * math.fsum(terms), 0.0), 1.0))


# Public functions ------------------------------------------------------------------------


@claim_metric
def ecce_test(y_true: Any, y_proba: Any, **options: Unpack[DoorOptions]) -> EcceTest:
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
    found = run_ecce_test(judge_proba(y_true, y_proba, **options).claimed.outcomes)
    if found.sigma > 0 and not found.has_many_rows:
        warn_user(
            f"ecce_test: its p-values are for many rows; sum c (1 - c) is "
            f"{(found.sigma * found.n_rows) ** 2:.2g} here and should be {_LEAST_VARIANCE:g}. "
            "ecd_test and csr_test are exact."
        )
    return found


@claim_metric
def ecd_score(
    y_true: Any, y_proba: Any, *, eps: float = 1e-8, **options: Unpack[DoorOptions]
) -> float:
    """Compute the entropic calibration difference, ECD: negative, zero or positive.

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
        Its scorer takes the absolute value.

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
    return ecd(judge_proba(y_true, y_proba, **options).claimed.outcomes, eps)


@claim_metric
def ecd_test(
    y_true: Any,
    y_proba: Any,
    *,
    alpha: float = 0.05,
    method: str = "montecarlo",
    n_draws: int | None = None,
    eps: float = 1e-8,
    random_state: Any = None,
    **options: Unpack[DoorOptions],
) -> EcdTest:
    """Test for over- or underconfidence by the entropic calibration difference.

    Parameters
    ----------
    %(data)s
    alpha : float in (0, 1), default=0.05
        Two-sided level of the decision.
    method : {"montecarlo", "normal"}, default="montecarlo"
        Simulate errors given the confidences, which is exact, or use the normal approximation.
    n_draws : int, default=None
        Simulated classifiers. None: 4999, or as many as it takes to reject at `alpha` twice over.
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
    outcomes = judge_proba(y_true, y_proba, **options).claimed.outcomes
    return run_ecd_test(outcomes, alpha, method, n_draws, eps, random_state)


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
        Fewest and most rows of a bin (tied rows stay in one bin).
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
    return tce(judge_proba(y_true, y_proba, **options).claimed.outcomes, alpha, n_min, n_max)
