"""Metrics at one threshold, below which the classifier abstains; the confusion matrix there.

The kernels come first. They take a curve, or outcomes if each row has its own value or threshold.
The public functions take labels and probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, is_graded
from skselect._lib.checks import shown, warn_user
from skselect._lib.checks.options import check_choice, check_number, check_threshold
from skselect._lib.checks.rows import check_subgroups, check_unit_confidence
from skselect._lib.decide import SPAN
from skselect._lib.keywords import CountOptions, CwsaOptions, ThresholdOptions, share_options
from skselect.curve import areas as definition
from skselect.curve.curve import RiskCoverageCurve
from skselect.metrics import _rows as metric_rows
from skselect.metrics._metric import check_cwsa_threshold, compute, defaults_of, metric
from skselect.predictions.outcomes import Outcomes

__all__ = ["coverage_gap_score", "coverage_score", "cwsa_contributions", "cwsa_plus_score"]
__all__ += ["cwsa_score", "generalized_risk_score", "risk_gap_score", "selective_accuracy_score"]
__all__ += ["selective_confusion_matrix", "selective_cost_score", "selective_risk_score"]

# Kernels ---------------------------------------------------------------------------------


def coverage(curve: RiskCoverageCurve, threshold: float = 0.5) -> float:
    """Return the weighted share of accepted rows."""
    accepted, _ = _accepted(curve, threshold)
    # Sums of floats round.
    return min(accepted / curve.total_weight, 1.0)


def selective_risk(curve: RiskCoverageCurve, threshold: float = 0.5) -> float:
    """Return the weighted mean loss of the accepted rows; warn and return nan if there are none."""
    weight, loss = _accepted(curve, threshold)
    if not weight > 0:
        warn_user(
            f"No row is accepted at threshold={threshold}: selective risk and selective accuracy "
            "are undefined (nan)."
        )
        return math.nan
    return loss / weight


def selective_accuracy(curve: RiskCoverageCurve, threshold: float = 0.5) -> float:
    """Return one minus the selective risk."""
    return 1.0 - selective_risk(curve, threshold)


def generalized_risk(curve: RiskCoverageCurve, threshold: float = 0.5) -> float:
    """Return the loss of the accepted rows over the weight of all rows."""
    _, loss = _accepted(curve, threshold)
    return loss / curve.total_weight


def selective_cost(
    curve: RiskCoverageCurve, threshold: float = 0.5, abstention_cost: float = 0.1
) -> float:
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


def _accepted(curve: RiskCoverageCurve, threshold: float) -> tuple[float, float]:
    """Return weight and loss of what is accepted."""
    accepted = curve.accepted_at(np.array([threshold], dtype=np.float64))
    return float(accepted.weight[0]), float(accepted.loss[0])


def _cwsa(curve: RiskCoverageCurve, threshold: float, normalize: str, *, plus: bool) -> float:
    check_choice("normalize", normalize, ["selected", "all"])
    values = curve.cwsa_at(np.array([threshold], dtype=np.float64), plus=plus)
    value = float(values[0])
    if normalize == "all":
        value *= coverage(curve, threshold)
    return value


# Kernels that read rows ----------------------------------------------------------------------


def accepted_rows(outcomes: Outcomes, threshold: float | FloatArray) -> BoolArray:
    """Tell which rows are accepted: confidence >= threshold, or one threshold per row."""
    return np.asarray(outcomes.confidence >= threshold)


def relative_to(outcomes: Outcomes, threshold: FloatArray) -> Outcomes:
    """Return outcomes on which the threshold 0.5 accepts the rows that reach their own thresholds.

    An accepted row keeps its weight phi in CWSA, as its confidence becomes (1 + phi)/2. Where a
    threshold or a confidence lies outside [0, 1], phi is not defined and taken as 1.
    """
    confidence = outcomes.confidence
    is_unit = not np.any((confidence < 0) | (confidence > 1))
    phi = definition.phi(confidence, np.where(is_unit & (threshold >= 0), threshold, 1.0))
    accepted = accepted_rows(outcomes, threshold)
    relative = np.where(accepted, (1.0 + phi) / 2.0, 0.0)
    return Outcomes(outcomes.loss, relative, outcomes.sample_weight)


def cwsa_terms(
    outcomes: Outcomes, threshold: float = 0.5, normalize: str = "selected", sign: float = -1.0
) -> FloatArray:
    """Return what each row adds to CWSA (sign -1) or CWSA+ (sign 0), rejected ones 0."""
    check_choice("normalize", normalize, ["selected", "all"])
    check_unit_confidence(outcomes.confidence, "CWSA")
    weight = outcomes.weight
    counted = weight
    if normalize == "selected":
        counted = weight[accepted_rows(outcomes, threshold)]
    norm = np.sum(counted)
    terms = definition.row_terms(outcomes.loss, outcomes.confidence, threshold, sign, weight)
    return terms / norm if norm > 0 else np.zeros_like(terms)


# Kernels that compare subgroups --------------------------------------------------------------


class SubgroupShares(NamedTuple):
    """The coverage, or the selective risk, of each subgroup as a share of rows.

    Parameters
    ----------
    names : list
    over, under : ndarray of shape (K,)
        The two sides of the ratio.
    is_graded : bool
        Whether `over` adds up losses other than 0 and 1.
    """

    names: list[Any]
    over: FloatArray
    under: FloatArray
    is_graded: bool

    @classmethod
    def of(
        cls, metric: str, outcomes: Outcomes, subgroups: Any, threshold: float = 0.5
    ) -> SubgroupShares:
        """Count what "coverage_gap" or "risk_gap" compares; rows of weight 0 do not exist."""
        frame = check_subgroups(subgroups, len(outcomes))
        if frame.shape[1] != 1:
            raise ValueError(
                f"subgroups must be one attribute, got the columns {list(frame.columns)}; pass one "
                "of them, or all to metrics_by_group."
            )
        exists = outcomes.weight > 0
        codes, subgroup_names = pd.factorize(frame.iloc[:, 0][exists], use_na_sentinel=False)
        names = subgroup_names.tolist()
        if len(names) < 2:
            raise ValueError(
                "subgroups must name at least two subgroups, since a gap is a difference between "
                f"two; {frame.columns[0]!r} has only {names[0]!r}."
            )
        accepted = np.where(accepted_rows(outcomes, threshold), outcomes.weight, 0.0)
        if metric == "risk_gap":
            over = accepted * outcomes.loss
            under = accepted
            graded = is_graded(outcomes.loss)
        else:
            over = accepted
            under = outcomes.weight
            graded = False

        def add_up(side: FloatArray) -> FloatArray:
            return np.bincount(codes, side[exists], len(names)).astype(np.float64)

        return cls(names, add_up(over), add_up(under), graded)

    def gap(self) -> float:
        """Return the largest difference; warn of subgroups that have no share."""
        has_share = self.under > 0
        if not np.all(has_share):
            silent = [self.names[k] for k in np.flatnonzero(~has_share)]
            few = ""
            if np.sum(has_share) <= 1:
                few = " Fewer than two are left: the gap is nan."
            warn_user(
                f"No row is accepted in the subgroups {shown(silent)}: they have no selective risk "
                f"and are left out of the gap.{few}"
            )
        shares = self.over[has_share] / self.under[has_share]
        return float(np.ptp(shares)) if len(shares) > 1 else math.nan


def coverage_gap(outcomes: Outcomes, subgroups: Any, threshold: float = 0.5) -> float:
    """Return the largest difference in coverage between two subgroups."""
    return SubgroupShares.of("coverage_gap", outcomes, subgroups, threshold).gap()


def risk_gap(outcomes: Outcomes, subgroups: Any, threshold: float = 0.5) -> float:
    """Return the largest difference in selective risk; warn of subgroups that have none."""
    return SubgroupShares.of("risk_gap", outcomes, subgroups, threshold).gap()


# How much each row moves them ------------------------------------------------------------


def _share(
    sides: Callable[[BoolArray, FloatArray], tuple[NDArray[Any], BoolArray]],
) -> Callable[..., metric_rows.Influence | None]:
    """Return the influence of a share of rows: `sides` are its counts, from accepted and loss."""

    def influence(
        rows: metric_rows.ScoredRows, threshold: float = 0.5
    ) -> metric_rows.Influence | None:
        accepted = accepted_rows(rows.outcomes, threshold)
        events, trials = sides(accepted, rows.outcomes.loss)
        return metric_rows.share_of(events, trials)

    return influence


def selective_cost_influence(
    rows: metric_rows.ScoredRows, threshold: float = 0.5, abstention_cost: float = 0.1
) -> metric_rows.Influence:
    accepted = accepted_rows(rows.outcomes, threshold)
    cost = accepted * rows.outcomes.loss + abstention_cost * (1.0 - accepted)
    return metric_rows.mean_of(cost, "identity")


def cwsa_influence(
    rows: metric_rows.ScoredRows,
    threshold: float = 0.5,
    normalize: str = "selected",
    sign: float = -1.0,
    scale: str = "signed share",
) -> metric_rows.Influence | None:
    outcomes = rows.outcomes
    check_unit_confidence(outcomes.confidence, "CWSA")
    terms = definition.row_terms(outcomes.loss, outcomes.confidence, threshold, sign)
    if normalize == "all":
        return metric_rows.mean_of(terms, scale)
    accepted = accepted_rows(outcomes, threshold)
    return metric_rows.ratio_of(terms, accepted, scale)


# Public functions ------------------------------------------------------------------------


@metric(
    coverage,
    "higher",
    undefined="nothing accepted: 0",
    closed_form=_share(lambda accepted, _: (accepted, np.ones_like(accepted))),
    rests_on="rows",
    registered=True,
    meaning="It answers {share} of the rows on its own.",
)
def coverage_score(y_true: Any, y_proba: Any, **options: Unpack[ThresholdOptions]) -> float:
    """Compute the share of rows whose confidence reaches the threshold.

    :Formula: ``sum of w over S(t) / W``
    :Use for: how many cases are decided
    :Not for: alone: accepting everything wins
    :Source: El-Yaniv & Wiener 2010

    Parameters
    ----------
    %(data)s
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
    return compute(coverage, y_true, y_proba, options)


@metric(
    selective_risk,
    "lower",
    undefined="nothing accepted: nan; scorer -1",
    closed_form=_share(lambda accepted, loss: (accepted * loss, accepted)),
)
def selective_risk_score(y_true: Any, y_proba: Any, **options: Unpack[ThresholdOptions]) -> float:
    """Compute the mean loss of the accepted rows (lower is better).

    :Formula: ``sum of w l over S(t) / sum of w over S(t)``
    :Use for: how bad the decisions are
    :Not for: without coverage beside it
    :Source: Geifman & El-Yaniv 2017

    Parameters
    ----------
    %(data)s
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
    return compute(selective_risk, y_true, y_proba, options)


@metric(
    selective_accuracy,
    "higher",
    undefined="nothing accepted: nan; scorer 0",
    closed_form=_share(lambda accepted, loss: (accepted * (1.0 - loss), accepted)),
    registered=True,
    meaning="Of its answers, {share} are right.",
)
def selective_accuracy_score(
    y_true: Any, y_proba: Any, **options: Unpack[ThresholdOptions]
) -> float:
    """Compute one minus the selective risk: accuracy on the accepted rows.

    :Formula: ``1 - selective risk``
    :Use for: how good the decisions are
    :Not for: without coverage beside it
    :Source: Geifman & El-Yaniv 2017

    Parameters
    ----------
    %(data)s
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
    return compute(selective_accuracy, y_true, y_proba, options)


@metric(
    generalized_risk,
    "lower",
    undefined="nothing accepted: 0; scorer -1",
    closed_form=_share(lambda accepted, loss: (accepted * loss, np.ones_like(loss))),
    meaning="{share} of all rows get a wrong answer.",
)
def generalized_risk_score(y_true: Any, y_proba: Any, **options: Unpack[ThresholdOptions]) -> float:
    """Compute the rate of silent failures: loss of the accepted rows over all rows.

    :Formula: ``sum of w l over S(t) / W``
    :Use for: rate of silent errors among all cases
    :Not for: alone: accepting nothing wins
    :Source: Traub et al. 2024

    Parameters
    ----------
    %(data)s
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
    return compute(generalized_risk, y_true, y_proba, options)


@metric(coverage_gap, "lower", undefined="nothing accepted: 0", rests_on="rows")
def coverage_gap_score(
    y_true: Any, y_proba: Any, *, subgroups: Any, **options: Unpack[ThresholdOptions]
) -> float:
    """Compute the largest difference in coverage between two subgroups: who waits.

    :Formula: ``max - min over subgroups of coverage``
    :Use for: whose cases wait for a person
    :Not for: alone: accepting everything, or nothing, wins; see risk_gap
    :Source: Jones et al. 2021

    Parameters
    ----------
    %(data)s
    subgroups : array-like of shape (n,)
        The subgroup of each row. It is one attribute. Missing values form a subgroup, as in
        :func:`skselect.inference.metrics_by_group`; leave those rows out to compare the others.
    %(options)s

    Returns
    -------
    float in [0, 1]
        0 when nothing is accepted.

    Raises
    ------
    ValueError
        If there is only one subgroup, or an argument is malformed.

    See Also
    --------
    risk_gap_score : The same of the risk. Equal risks usually need unequal coverages.
    metrics_by_group : Each subgroup, and the gap with an interval.

    Notes
    -----
    For the decisions of a policy pass ``confidence=decided["accepted"]``: 1 where it answers,
    else 0.

    References
    ----------
    .. [1] Jones et al., "Selective classification can magnify disparities across groups", 2021.

    Examples
    --------
    >>> from skselect.metrics import coverage_gap_score
    >>> coverage_gap_score([0, 1, 1, 0], [.1, .9, .6, .7], subgroups=list("ffmm"), threshold=.7)
    0.5
    """
    return compute(coverage_gap, y_true, y_proba, options, subgroups=subgroups)


@metric(
    risk_gap,
    "lower",
    undefined="fewer than two subgroups with an accepted row: nan",
    rests_on="rows",
)
def risk_gap_score(
    y_true: Any, y_proba: Any, *, subgroups: Any, **options: Unpack[ThresholdOptions]
) -> float:
    """Compute the largest difference in selective risk between two subgroups.

    :Formula: ``max - min over subgroups of selective risk``
    :Use for: whose answers are wrong more often
    :Not for: alone: deferring a subgroup leaves it out; see coverage_gap
    :Source: Jones et al. 2021

    Parameters
    ----------
    %(data)s
    subgroups : array-like of shape (n,)
        The subgroup of each row. It is one attribute. Missing values form a subgroup, as in
        :func:`skselect.inference.metrics_by_group`; leave those rows out to compare the others.
    %(options)s

    Returns
    -------
    float in [0, 1]
        A subgroup of which no row is accepted has no risk: a warning names it, and the gap is
        that of the others. nan when fewer than two are left.

    Raises
    ------
    ValueError
        If there is only one subgroup, or an argument is malformed.

    See Also
    --------
    coverage_gap_score : The same of the coverage.
    metrics_by_group : Each subgroup, and the gap with an interval.

    Notes
    -----
    For the decisions of a policy pass ``confidence=decided["accepted"]``: 1 where it answers,
    else 0.

    References
    ----------
    .. [1] Jones et al., "Selective classification can magnify disparities across groups", 2021.

    Examples
    --------
    >>> from skselect.metrics import risk_gap_score
    >>> risk_gap_score([0, 1, 1, 0], [.1, .9, .6, .7], subgroups=list("ffmm"))
    0.5
    """
    return compute(risk_gap, y_true, y_proba, options, subgroups=subgroups)


@metric(
    selective_cost,
    "lower",
    range="[0, max(1, d)]",
    undefined="nothing accepted: d, the cost of abstaining",
    closed_form=selective_cost_influence,
    registered=True,
)
def selective_cost_score(
    y_true: Any, y_proba: Any, *, abstention_cost: float = 0.1, **options: Unpack[ThresholdOptions]
) -> float:
    """Compute the mean cost when an error costs 1 and an abstention `abstention_cost`.

    :Formula: ``generalised risk + d (1 - coverage)``
    :Use for: when the cost of abstaining is known
    :Not for: when it is a guess
    :Source: Chow 1970

    Parameters
    ----------
    %(data)s
    abstention_cost : float, default=0.1
        Cost of abstaining on one row, in units of one error. Not negative.
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
    return compute(selective_cost, y_true, y_proba, options, abstention_cost=abstention_cost)


@metric(
    cwsa,
    "higher",
    range="[-1, 1]",
    undefined="nothing accepted: 0; scorer -1",
    confidence="unit",
    row_terms=cwsa_terms,
    closed_form=cwsa_influence,
    registered=True,
    meaning="Accepted rows score {number} on average: 1 if right and certain, 0 at the "
    "threshold, -1 if wrong and certain.",
)
def cwsa_score(y_true: Any, y_proba: Any, **options: Unpack[CwsaOptions]) -> float:
    """Compute CWSA: confidence-weighted selective accuracy, errors subtracted.

    :Formula: ``mean over S(t) of (c - t)/(1 - t) (1 - 2 l)``
    :Use for: confident errors cost most, at one threshold
    :Not for: choosing calibrators: sharpness alone raises it
    :Source: arXiv 2505.18622

    Parameters
    ----------
    %(data)s
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
    phi(c) = (c - t)/(1 - t) (section 3.2 of [1]_). Algorithm 1 of [1]_ divides by the accepted
    rows, as this does; its Table 3 and the last rows of its Table 2 divide by all.

    It rewards sharp probabilities even if their ranking is no better. Choose calibrators by log
    loss or CSR, and thresholds by CWSA.

    References
    ----------
    .. [1] %(cwsa)s

    Examples
    --------
    >>> from skselect.metrics import cwsa_score
    >>> round(cwsa_score([0, 1, 1, 0], [.1, .9, .6, .75], threshold=.5), 4)
    0.325
    """
    return compute(cwsa, y_true, y_proba, options, check=check_cwsa_threshold)


@metric(
    cwsa_plus,
    "higher",
    undefined="nothing accepted: 0; scorer 0",
    confidence="unit",
    row_terms=partial(cwsa_terms, sign=0.0),
    closed_form=partial(cwsa_influence, sign=0.0, scale="logit"),
    registered=True,
    meaning="Accepted rows score {number} on average: 1 if right and certain, 0 if wrong "
    "or at the threshold.",
)
def cwsa_plus_score(y_true: Any, y_proba: Any, **options: Unpack[CwsaOptions]) -> float:
    """Compute CWSA+: the confidence-weighted share of accepted rows that are right.

    :Formula: ``mean over S(t) of (c - t)/(1 - t) (1 - l)``
    :Use for: choosing model settings or a threshold, with min_coverage
    :Not for: choosing calibrators: sharpness alone raises it
    :Source: arXiv 2505.18622

    Parameters
    ----------
    %(data)s
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
    phi(c) = (c - t)/(1 - t) (algorithm 1 of [1]_). It never exceeds the selective accuracy.

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
    .. [1] %(cwsa)s

    Examples
    --------
    >>> from skselect.metrics import cwsa_plus_score
    >>> round(cwsa_plus_score([0, 1, 1, 0], [.1, .9, .6, .75], threshold=.5), 4)
    0.45
    """
    return compute(cwsa_plus, y_true, y_proba, options, check=check_cwsa_threshold)


@defaults_of(cwsa_terms)
def cwsa_contributions(y_true: Any, y_proba: Any, **options: Unpack[CwsaOptions]) -> FloatArray:
    """Compute what each row adds to CWSA, for audits and subgroups.

    Parameters
    ----------
    %(data)s
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
    return compute(cwsa_terms, y_true, y_proba, options, check=check_cwsa_threshold)


# Kernel ----------------------------------------------------------------------------------


def count_decisions(
    y_true: IntArray,
    y_pred: IntArray,
    accepted: BoolArray | None,
    n_classes: int,
    weight: FloatArray | None = None,
) -> Any:
    """Return the rows of each true class by their answer, those deferred in a last column.

    Codes of true classes that are not known are -1; if there are any, they have a last line.
    `accepted` None: it answers every row.
    """
    n = n_classes + 1
    counts = np.zeros(n * n, dtype=np.int64 if weight is None else np.float64)
    step = max(SPAN, n * n)
    for start in range(0, len(y_true), step):
        rows = slice(start, start + step)
        answers = y_pred[rows]
        if accepted is not None:
            answers = np.where(accepted[rows], answers, n_classes)
        truth = np.where(y_true[rows] < 0, n_classes, y_true[rows])
        weight_of_rows = None if weight is None else weight[rows]
        counts += np.bincount(truth * n + answers, weight_of_rows, n * n)
    table = counts.reshape(n, n)
    return table if np.any(table[-1]) else table[:-1]


# Public function -------------------------------------------------------------------------


@share_options
def selective_confusion_matrix(
    y_true: Any, y_proba: Any, *, threshold: float = 0.5, **options: Unpack[CountOptions]
) -> Any:
    """Compute the confusion matrix of the accepted rows, with a column for those deferred.

    Parameters
    ----------
    %(data)s
    threshold : float, default=0.5
        Rows with confidence >= threshold are accepted.
    %(options)s

    Returns
    -------
    ndarray of shape (K, K + 1)
        Entry (i, j): the rows of class i that are answered with class j, classes in the order of
        `labels`; the last column holds the rows that are not accepted. Counts are integers without
        `sample_weight`.

    %(raises)s

    See Also
    --------
    skselect.display.SelectiveConfusionDisplay : Draws it.
    metrics_by_class : Sensitivity, specificity and predictive values, with intervals.

    Notes
    -----
    Without its last column, and with every row accepted, it is
    :func:`sklearn.metrics.confusion_matrix`.

    Examples
    --------
    >>> from skselect.metrics import selective_confusion_matrix
    >>> selective_confusion_matrix([0, 1, 1, 0], [.1, .9, .6, .7], threshold=.65)
    array([[1, 1, 0],
           [0, 1, 1]])
    """
    threshold = check_threshold(threshold)
    scored = metric_rows.score_proba(y_true, y_proba, **options).at_threshold
    rows = scored.predictions
    accepted = accepted_rows(scored.outcomes, threshold)
    return count_decisions(
        rows.y_true, rows.y_pred, accepted, len(rows.classes), rows.sample_weight
    )
