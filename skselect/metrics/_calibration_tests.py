"""Tests of calibration, which ask whether an honest classifier could look like this.

All need independent rows, so they refuse weights that are not constant, and losses of 0 or 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from scipy.special import ndtr

from skselect import _validation as check
from skselect._typing import FloatArray
from skselect.curves import RiskCoverageCurve
from skselect.metrics._door import DoorOptions, claim_metric, claimed_outcomes_of
from skselect.metrics._draws import error_sums
from skselect.metrics._smooth_errors import largest_cumulative_gap, range_of_cumulative_gaps
from skselect.outcomes import Outcomes

# Kernels ---------------------------------------------------------------------------------


def rows_for_test(outcomes: Outcomes, purpose: str) -> Outcomes:
    """Return the rows without their constant weight; refuse what is not one draw per row."""
    check.refuse_weights(outcomes.sample_weight, purpose)
    check.refuse_graded_test(outcomes.loss, purpose)
    check.check_unit_confidence(outcomes.confidence, purpose)
    return Outcomes(outcomes.loss, outcomes.confidence)


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


def _log_odds(confidence: FloatArray, eps: float) -> FloatArray:
    """Return log(c/(1 - c)), c clipped to [eps, 1 - eps]."""
    check.check_eps(eps, zero=False)
    doubt = np.clip(1.0 - confidence, eps, 1.0 - eps)
    return np.log1p(-doubt) - np.log(doubt)


def ecd_terms(outcomes: Outcomes, eps: float = 1e-8) -> FloatArray:
    """Return (c - a) log(c/(1 - c)) of each row."""
    confidence = check.check_unit_confidence(outcomes.confidence, "ecd_score")
    log_odds = _log_odds(confidence, eps)
    return (np.clip(confidence, eps, 1.0 - eps) - (1.0 - outcomes.loss)) * log_odds


def ecd(outcomes: Outcomes, eps: float = 1e-8) -> float:
    """Return the mean of (c - a) log(c/(1 - c))."""
    return float(np.average(ecd_terms(outcomes, eps), weights=outcomes.sample_weight))


# Results ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class EcceTest:
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

    def __str__(self) -> str:
        return (
            f"ECCE test of calibration, {self.n_rows} rows\n"
            f"  ECCE-MAD  {self.mad:.4g}  p-value {self.mad_p_value:.4g}\n"
            f"  ECCE-R    {self.r:.4g}  p-value {self.r_p_value:.4g}"
        )


@dataclass(frozen=True)
class EcdTest:
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


def ecce_test_of(outcomes: Outcomes) -> EcceTest:
    """Return both cumulative errors with their p-values."""
    rows = rows_for_test(outcomes, "ecce_test")
    curve = RiskCoverageCurve.from_outcomes(rows)
    mad, spread = largest_cumulative_gap(curve), range_of_cumulative_gaps(curve)
    sigma = math.sqrt(float(np.sum(rows.confidence * (1.0 - rows.confidence)))) / len(rows)
    return EcceTest(
        mad=mad,
        r=spread,
        sigma=sigma,
        mad_p_value=brownian_maximum_tail(_in_units(mad, sigma)),
        r_p_value=brownian_range_tail(_in_units(spread, sigma)),
        n_rows=len(rows),
    )


def _in_units(value: float, sigma: float) -> float:
    """Return value/sigma; without any scatter every gap but zero is infinitely large."""
    if sigma > 0:
        return value / sigma
    return math.inf if value > 0 else 0.0


def ecd_test_of(
    outcomes: Outcomes,
    alpha: float = 0.05,
    method: str = "montecarlo",
    n_draws: int = 4999,
    eps: float = 1e-8,
    random_state: Any = None,
) -> EcdTest:
    """Return the ECD with a two-sided p-value given the confidences."""
    rows = rows_for_test(outcomes, "ecd_test")
    check.check_number("alpha", alpha, 0.0, 1.0, closed="neither")
    check.check_choice("method", method, ["montecarlo", "normal"])
    check.check_count("n_draws", n_draws)
    rng = check.check_generator(random_state)
    value, log_odds = ecd(rows, eps), _log_odds(rows.confidence, eps)
    doubt = np.clip(1.0 - rows.confidence, eps, 1.0 - eps)
    sigma = math.sqrt(float(np.sum(doubt * (1.0 - doubt) * log_odds**2))) / len(rows)
    z = math.copysign(_in_units(abs(value), sigma), value)
    if method == "normal":
        tails = float(ndtr(z)), float(ndtr(-z))
    else:
        # An error adds one log-odds to what a row without error contributes, (c - 1) log-odds.
        drawn = (error_sums(doubt, log_odds, n_draws, rng) - np.sum(doubt * log_odds)) / len(rows)
        slack = check.ROUNDING * max(1.0, abs(value))
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


# Doors -----------------------------------------------------------------------------------


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

    Notes
    -----
    Under calibration the cumulative gaps divided by sigma = sqrt(sum c (1 - c))/n behave
    like a Brownian motion; the p-values are the tails of its largest absolute value and of
    its range [1]_, for many rows.

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
    return ecce_test_of(claimed_outcomes_of(y_true, y_proba, **options))


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

    Raises
    ------
    ValueError
        If a confidence is outside [0, 1], or an argument is malformed.

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
    return ecd(claimed_outcomes_of(y_true, y_proba, **options), eps)


@claim_metric
def ecd_test(
    y_true: Any,
    y_proba: Any,
    *,
    alpha: float = 0.05,
    method: str = "montecarlo",
    n_draws: int = 4999,
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
        Simulate errors given the confidences, or use the normal approximation.
    n_draws : int, default=4999
        Simulated classifiers.
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
        If weights are not constant, losses are graded, or an argument is malformed.

    Notes
    -----
    Given the confidences, the ECD of a calibrated classifier has mean 0 and variance
    sum c (1 - c) log(c/(1 - c))^2 / n^2 [1]_.

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
    outcomes = claimed_outcomes_of(y_true, y_proba, **options)
    return ecd_test_of(outcomes, alpha, method, n_draws, eps, random_state)
