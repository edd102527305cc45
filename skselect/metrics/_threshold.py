"""Metrics at one threshold, below which the classifier abstains.

The kernels come first. They take a curve, or outcomes if each row has its own value or threshold.
The public functions take labels and probabilities.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from skselect._lib.checks import shown, warn_user
from skselect._lib.checks.options import check_choice, check_number, check_threshold
from skselect._lib.checks.rows import check_unit_confidence
from skselect._lib.typing import BoolArray, FloatArray
from skselect.curve import cwsa as definition
from skselect.curve.curve import RiskCoverageCurve
from skselect.metrics._arguments import Countable, DoorOptions, judge_proba, metric
from skselect.predictions.outcomes import Outcomes

Threshold = float | FloatArray

# Kernels ---------------------------------------------------------------------------------


def coverage(curve: Countable, threshold: float = 0.5) -> float:
    """Return the weighted share of accepted rows."""
    kept, _ = _accepted(curve, threshold)
    return min(kept / curve.total_weight, 1.0)  # sums of floats round


def selective_risk(curve: Countable, threshold: float = 0.5) -> float:
    """Return the weighted mean loss of the accepted rows; warn and return nan if there are none."""
    weight, loss = _accepted(curve, threshold)
    if not weight > 0:
        warn_user(
            f"No row is accepted at threshold={threshold}: selective risk and selective accuracy "
            "are undefined (nan)."
        )
        return float("nan")
    return loss / weight


def selective_accuracy(curve: Countable, threshold: float = 0.5) -> float:
    """Return one minus the selective risk."""
    return 1.0 - selective_risk(curve, threshold)


def generalized_risk(curve: Countable, threshold: float = 0.5) -> float:
    """Return the loss of the accepted rows over the weight of all rows."""
    return _accepted(curve, threshold)[1] / curve.total_weight


def selective_cost(curve: Countable, threshold: float = 0.5, abstention_cost: float = 0.1) -> float:
    """Return the mean over rows of the loss if accepted, else of `abstention_cost`."""
    cost = check_number("abstention_cost", abstention_cost, 0.0, closed="left")
    return generalized_risk(curve, threshold) + cost * (1.0 - coverage(curve, threshold))


def cwsa(curve: RiskCoverageCurve, threshold: float = 0.5, normalize: str = "selected") -> float:
    """Return the sum of w phi (1 - 2 l) over the accepted rows, normalised."""
    return _cwsa(curve, threshold, normalize, plus=False)


def cwsa_plus(
    curve: RiskCoverageCurve, threshold: float = 0.5, normalize: str = "selected"
) -> float:
    """Return the sum of w phi (1 - l) over the accepted rows, normalised."""
    return _cwsa(curve, threshold, normalize, plus=True)


def _accepted(curve: Countable, threshold: float) -> tuple[float, float]:
    """Return weight and loss of what is accepted."""
    found = curve.accepted_at(np.array([threshold], dtype=np.float64))
    return float(found.weight[0]), float(found.loss[0])


def _cwsa(curve: RiskCoverageCurve, threshold: float, normalize: str, *, plus: bool) -> float:
    check_choice("normalize", normalize, ["selected", "all"])
    value = float(curve.cwsa_at(np.array([threshold], dtype=np.float64), plus=plus)[0])
    return value if normalize == "selected" else value * coverage(curve, threshold)


# Kernels that read rows ----------------------------------------------------------------------


def accepted_rows(outcomes: Outcomes, threshold: Threshold) -> BoolArray:
    """Tell which rows are accepted: confidence >= threshold, or one threshold per row."""
    return np.asarray(outcomes.confidence >= threshold)


def relative_to(outcomes: Outcomes, threshold: FloatArray) -> Outcomes:
    """Return outcomes on which the threshold 0.5 accepts the rows that reach their own thresholds.

    An accepted row keeps its weight phi in CWSA, as its confidence becomes (1 + phi)/2. Where a
    threshold or a confidence lies outside [0, 1], phi is not defined and taken as 1.
    """
    unit = np.all((outcomes.confidence >= 0) & (outcomes.confidence <= 1))
    phi = definition.phi(outcomes.confidence, np.where(unit & (threshold >= 0), threshold, 1.0))
    confidence = np.where(accepted_rows(outcomes, threshold), (1.0 + phi) / 2.0, 0.0)
    return Outcomes(outcomes.loss, confidence, outcomes.sample_weight)


def cwsa_terms(
    outcomes: Outcomes, threshold: Threshold, sign: float, normalize: str = "selected"
) -> FloatArray:
    """Return what each row adds to CWSA (sign -1) or CWSA+ (sign 0), rejected ones 0."""
    check_choice("normalize", normalize, ["selected", "all"])
    check_unit_confidence(outcomes.confidence, "CWSA")
    weight = outcomes.weight
    counted = weight[accepted_rows(outcomes, threshold)] if normalize == "selected" else weight
    terms = definition.row_terms(outcomes.loss, outcomes.confidence, threshold, sign, weight)
    norm = np.sum(counted)
    return terms / norm if norm > 0 else np.zeros_like(terms)


# Public functions ------------------------------------------------------------------------


@metric
def coverage_score(
    y_true: Any, y_proba: Any, *, threshold: float = 0.5, **options: Unpack[DoorOptions]
) -> float:
    """Compute the share of rows whose confidence reaches the threshold.

    Parameters
    ----------
    %(data)s
    threshold : float, default=0.5
        Rows with confidence >= threshold are accepted; inf accepts nothing.
    %(options)s

    Returns
    -------
    float in [0, 1]
        0 when nothing is accepted.

    %(raises)s

    Notes
    -----
    coverage(t) = sum of w over {c >= t} / sum of w.

    Examples
    --------
    >>> from skselect.metrics import coverage_score
    >>> coverage_score([0, 1, 1, 0], [.1, .9, .6, .7], threshold=.8)
    0.5
    """
    return coverage(judge_proba(y_true, y_proba, **options).countable, check_threshold(threshold))


@metric
def selective_risk_score(
    y_true: Any, y_proba: Any, *, threshold: float = 0.5, **options: Unpack[DoorOptions]
) -> float:
    """Compute the mean loss of the accepted rows (lower is better).

    Parameters
    ----------
    %(data)s
    threshold : float, default=0.5
        Rows with confidence >= threshold are accepted.
    %(options)s

    Returns
    -------
    float in [0, 1]
        nan, with a warning, when nothing is accepted.

    %(raises)s

    Notes
    -----
    risk(t) = sum of w l over {c >= t} / sum of w over {c >= t} [1]_.

    References
    ----------
    .. [1] Geifman & El-Yaniv, "Selective classification for deep neural networks", 2017.

    Examples
    --------
    >>> from skselect.metrics import selective_risk_score
    >>> selective_risk_score([0, 1, 1, 0], [.1, .9, .6, .7], threshold=.6)
    0.25
    """
    rows = judge_proba(y_true, y_proba, **options).countable
    return selective_risk(rows, check_threshold(threshold))


@metric
def selective_accuracy_score(
    y_true: Any, y_proba: Any, *, threshold: float = 0.5, **options: Unpack[DoorOptions]
) -> float:
    """Compute one minus the selective risk: accuracy on the accepted rows.

    Parameters
    ----------
    %(data)s
    threshold : float, default=0.5
        Rows with confidence >= threshold are accepted.
    %(options)s

    Returns
    -------
    float in [0, 1]
        nan, with a warning, when nothing is accepted.

    %(raises)s

    Examples
    --------
    >>> from skselect.metrics import selective_accuracy_score
    >>> selective_accuracy_score([0, 1, 1, 0], [.1, .9, .6, .7], threshold=.6)
    0.75
    """
    rows = judge_proba(y_true, y_proba, **options).countable
    return selective_accuracy(rows, check_threshold(threshold))


@metric
def generalized_risk_score(
    y_true: Any, y_proba: Any, *, threshold: float = 0.5, **options: Unpack[DoorOptions]
) -> float:
    """Compute the rate of silent failures: loss of the accepted rows over all rows.

    Parameters
    ----------
    %(data)s
    threshold : float, default=0.5
        Rows with confidence >= threshold are accepted.
    %(options)s

    Returns
    -------
    float in [0, 1]
        0 when nothing is accepted (so do not minimise it alone).

    %(raises)s

    Notes
    -----
    The generalised risk of Traub et al. [1]_ is coverage times selective risk: the
    probability that a row is both accepted and wrong.

    References
    ----------
    .. [1] %(augrc)s

    Examples
    --------
    >>> from skselect.metrics import generalized_risk_score
    >>> generalized_risk_score([0, 1, 1, 0], [.1, .9, .6, .7], threshold=.65)
    0.25
    """
    rows = judge_proba(y_true, y_proba, **options).countable
    return generalized_risk(rows, check_threshold(threshold))


@metric
def selective_cost_score(
    y_true: Any,
    y_proba: Any,
    *,
    threshold: float = 0.5,
    abstention_cost: float = 0.1,
    **options: Unpack[DoorOptions],
) -> float:
    """Compute the mean cost when an error costs 1 and an abstention `abstention_cost`.

    Parameters
    ----------
    %(data)s
    threshold : float, default=0.5
        Rows with confidence >= threshold are accepted.
    abstention_cost : float, default=0.1
        Cost of abstaining on one row, in units of one error; not negative.
    %(options)s

    Returns
    -------
    float
        Between 0 and the larger of 1 and `abstention_cost`.

    %(raises)s

    Notes
    -----
    cost(t) = generalised risk(t) + d (1 - coverage(t)), the objective of Chow [1]_. With
    calibrated confidences the threshold 1 - d minimises it.

    References
    ----------
    .. [1] Chow, "On optimum recognition error and reject tradeoff", 1970.

    Examples
    --------
    >>> from skselect.metrics import selective_cost_score
    >>> selective_cost_score([0, 1, 1, 0], [.1, .9, .6, .7], threshold=.65, abstention_cost=.2)
    0.3
    """
    rows = judge_proba(y_true, y_proba, **options).countable
    return selective_cost(rows, check_threshold(threshold), abstention_cost)


@metric
def cwsa_score(
    y_true: Any,
    y_proba: Any,
    *,
    threshold: float = 0.5,
    normalize: str = "selected",
    **options: Unpack[DoorOptions],
) -> float:
    """Compute CWSA: confidence-weighted selective accuracy, errors subtracted.

    Parameters
    ----------
    %(data)s
    threshold : float in [0, 1), default=0.5
        Rows with confidence >= threshold are accepted.
    normalize : {"selected", "all"}, default="selected"
        Divide by the weight of the accepted rows (Algorithm 1 of [1]_), or of all rows
        (what Table 3 and the last rows of Table 2 of [1]_ do).
    %(options)s

    Returns
    -------
    float in [-1, 1]
        0 when nothing is accepted.

    Raises
    ------
    ValueError
        If the threshold is outside [0, 1), a confidence is outside [0, 1], or an argument
        is malformed.

    See Also
    --------
    cwsa_plus_score : The same without the penalty for errors.
    cwsa_contributions : What each row adds.

    Notes
    -----
    CWSA(t) = sum over {c >= t} of w phi(c) (1 - 2 l) / sum over {c >= t} of w, with
    phi(c) = (c - t)/(1 - t) (eq. 1-3 of [1]_).

    It rewards sharp probabilities even if their ranking is no better. Choose calibrators by log
    loss or CSR, and thresholds by CWSA.

    References
    ----------
    .. [1] Shahnazari et al., "Trust, or don't predict: introducing the CWSA family for
       confidence-aware model evaluation", arXiv 2505.18622, 2025.

    Examples
    --------
    >>> from skselect.metrics import cwsa_score
    >>> round(cwsa_score([0, 1, 1, 0], [.1, .9, .6, .75], threshold=.5), 4)
    0.325
    """
    curve = judge_proba(y_true, y_proba, **options).curve
    return cwsa(curve, check_cwsa_threshold(threshold), normalize)


@metric
def cwsa_plus_score(
    y_true: Any,
    y_proba: Any,
    *,
    threshold: float = 0.5,
    normalize: str = "selected",
    **options: Unpack[DoorOptions],
) -> float:
    """Compute CWSA+: the confidence-weighted share of accepted rows that are right.

    Parameters
    ----------
    %(data)s
    threshold : float in [0, 1), default=0.5
        Rows with confidence >= threshold are accepted.
    normalize : {"selected", "all"}, default="selected"
        Divide by the weight of the accepted rows (Algorithm 1 of [1]_), or of all rows.
    %(options)s

    Returns
    -------
    float in [0, 1]
        0 when nothing is accepted.

    Raises
    ------
    ValueError
        If the threshold is outside [0, 1), a confidence is outside [0, 1], or an argument
        is malformed.

    See Also
    --------
    cwsa_score : The same with errors subtracted.

    Notes
    -----
    CWSA+(t) = sum over {c >= t} of w phi(c) (1 - l) / sum over {c >= t} of w, with
    phi(c) = (c - t)/(1 - t) [1]_. It never exceeds the selective accuracy.

    It rewards sharp probabilities even if their ranking is no better. Calibrated probabilities of
    two classes, sharpened by a temperature from 1 to 0.05 (same ranking, same labels), at
    threshold 0.8:

    ===========  =====  =====
    temperature  1      0.05
    ===========  =====  =====
    CWSA+        .392   .729
    CWSA         .358   .487
    accuracy     .885   .745
    ===========  =====  =====

    (accuracy: of the accepted rows). So choose calibrators by log loss or CSR; use CWSA+
    for thresholds and model settings.

    References
    ----------
    .. [1] Shahnazari et al., "Trust, or don't predict: introducing the CWSA family for
       confidence-aware model evaluation", arXiv 2505.18622, 2025.

    Examples
    --------
    >>> from skselect.metrics import cwsa_plus_score
    >>> round(cwsa_plus_score([0, 1, 1, 0], [.1, .9, .6, .75], threshold=.5), 4)
    0.45
    """
    curve = judge_proba(y_true, y_proba, **options).curve
    return cwsa_plus(curve, check_cwsa_threshold(threshold), normalize)


@metric
def cwsa_contributions(
    y_true: Any,
    y_proba: Any,
    *,
    threshold: float = 0.5,
    normalize: str = "selected",
    **options: Unpack[DoorOptions],
) -> FloatArray:
    """Compute what each row adds to CWSA, for audits and subgroups.

    Parameters
    ----------
    %(data)s
    threshold : float in [0, 1), default=0.5
        Rows with confidence >= threshold are accepted.
    normalize : {"selected", "all"}, default="selected"
        Divide by the weight of the accepted rows, or of all rows.
    %(options)s

    Returns
    -------
    ndarray of shape (n,)
        w phi (1 - 2 l) / norm, 0 for rejected rows. The values add up to
        :func:`cwsa_score`, also over the rows of each subgroup.

    Raises
    ------
    ValueError
        As :func:`cwsa_score`.

    Examples
    --------
    >>> from skselect.metrics import cwsa_contributions
    >>> cwsa_contributions([0, 1, 1, 0], [.1, .9, .6, .75], threshold=.5).round(3)
    array([ 0.2  ,  0.2  ,  0.05 , -0.125])
    """
    outcomes = judge_proba(y_true, y_proba, **options).outcomes
    return cwsa_terms(outcomes, check_cwsa_threshold(threshold), -1.0, normalize)


def check_cwsa_threshold(value: Any) -> float:
    """Return a threshold for the CWSA family, which is defined on [0, 1) only."""
    if not 0 <= check_threshold(value) < 1:
        raise ValueError(
            f"threshold must lie in [0, 1) for CWSA and CWSA+ (at 1 the weight is 0/0), got "
            f"{shown(value)}."
        )
    return float(value)
