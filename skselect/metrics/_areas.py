"""Areas under risk-coverage and similar curves; working points: risk, coverage, review."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from skselect._lib.arrays import FloatArray
from skselect._lib.checks.options import check_choice, check_thresholds
from skselect._lib.keywords import RowOptions
from skselect._lib.notebook import NotebookText
from skselect.curve import influence
from skselect.curve.curve import RiskCoverageCurve
from skselect.metrics import _rows as metric_rows
from skselect.metrics._metric import compute, defaults_of, metric

__all__ = ["accuracy_rejection_auc_score", "augrc_score", "aumcc_score"]
__all__ += ["aurc_score", "coverage_at_risk_score", "eaugrc_score", "eaurc_score", "naurc_score"]
__all__ += ["review_at_reliability", "review_rate_at_reliability_score", "risk_at_coverage_score"]

# Kernels (the other areas are methods of the curve) --------------------------------------

CURVE_METRICS = ("cwsa_plus", "cwsa", "selective_accuracy", "selective_risk", "generalized_risk")


def aumcc(
    curve: RiskCoverageCurve,
    metric: str = "cwsa_plus",
    estimator: str = "trapezoid",
    thresholds: Any = None,
) -> float:
    """Return the area under a metric-coverage curve."""
    check_choice("metric", metric, CURVE_METRICS)
    check_choice("estimator", estimator, ["trapezoid", "exact"])
    if estimator == "exact":
        if thresholds is not None:
            raise ValueError("thresholds goes with estimator='trapezoid' only.")
        values = _metric_at_blocks(curve, metric)
        return float(np.sum(curve.block_weight * values) / curve.accepted_weight[-1])
    if thresholds is None:
        thresholds = np.arange(50, 100) / 100
    descending = np.sort(check_thresholds(thresholds))[::-1]
    n_blocks = curve.n_blocks_accepted(descending)
    if metric in ("cwsa", "cwsa_plus"):
        values = getattr(curve, metric)(descending)
    else:
        values = np.append(np.nan, _metric_at_blocks(curve, metric))[n_blocks]
    coverage = np.append(0.0, curve.coverage)[n_blocks]
    # Where nothing is accepted the metric has no value.
    defined = coverage > 0
    return float(np.trapezoid(values[defined], coverage[defined]))


def _metric_at_blocks(curve: RiskCoverageCurve, name: str) -> FloatArray:
    """Return a metric at each entry of the curve."""
    if name == "selective_risk":
        return curve.selective_risk
    if name == "selective_accuracy":
        return 1.0 - curve.selective_risk
    if name == "generalized_risk":
        return curve.generalized_risk
    values: FloatArray = getattr(curve, name)(None)
    return values


def accuracy_rejection_auc(curve: RiskCoverageCurve, estimator: str = "empirical") -> float:
    """Return one minus the AURC."""
    return 1.0 - curve.aurc(estimator=estimator)


@dataclass(frozen=True)
class ReviewPlan(NotebookText):
    """What to review to keep silent errors rare; :func:`~skselect.metrics.review_at_reliability`.

    Parameters
    ----------
    reliability : float
        The reliability asked for.
    threshold : float
        Rows with this confidence or more pass without review; inf if none may.
    review_rate : float in [0, 1]
        Share of rows to review.
    pass_rate : float in [0, 1]
        Share of the right answers that pass without review; nan if no answer is right.
    invalid_review_cost : float
        Right answers that are reviewed without need, per 10,000 rows.
    silent_errors : float in [0, 1]
        Errors that pass without review, as a share of all rows.
    """

    reliability: float
    threshold: float
    review_rate: float
    pass_rate: float
    invalid_review_cost: float
    silent_errors: float

    def __str__(self) -> str:
        return (
            f"Review {100 * self.review_rate:.4g} % of the rows, those with a confidence below "
            f"{self.threshold:.4g}, for a reliability of {self.reliability:g}:\n"
            f"  {100 * self.pass_rate:.4g} % of the right answers pass, "
            f"{self.invalid_review_cost:.4g} of 10,000 rows are reviewed although right,\n"
            f"  {100 * self.silent_errors:.4g} % of the rows are errors that pass"
        )


def review_plan(curve: RiskCoverageCurve, reliability: float) -> ReviewPlan:
    """Return review rate, pass rate and needless review at a reliability."""
    coverage = curve.coverage_at_reliability(reliability)
    n_blocks = int(np.searchsorted(curve.coverage, coverage, side="right"))
    total = float(curve.accepted_weight[-1])
    block_right = curve.block_weight - curve.block_loss
    n_right = float(np.sum(block_right))
    n_passed = float(np.sum(block_right[:n_blocks]))
    n_silent = float(np.sum(curve.block_loss[:n_blocks]))
    return ReviewPlan(
        reliability=float(reliability),
        threshold=float(curve.thresholds[n_blocks - 1]) if n_blocks else math.inf,
        review_rate=1.0 - coverage,
        pass_rate=n_passed / n_right if n_right > 0 else math.nan,
        invalid_review_cost=1e4 * (n_right - n_passed) / total,
        silent_errors=n_silent / total,
    )


def review_rate_at_reliability(curve: RiskCoverageCurve, reliability: float) -> float:
    """Return one minus the largest coverage that keeps the reliability."""
    return 1.0 - curve.coverage_at_reliability(reliability)


# How much each row moves them ---------------------------------------------------------


def augrc_influence(
    rows: metric_rows.ScoredRows, estimator: str = "trapezoid", coverage_range: Any = None
) -> influence.RankedInfluence | None:
    if coverage_range is not None or rows.curve.n_rows < 3:
        return None
    return metric_rows.ranked(
        rows, rows.curve.augrc(estimator=estimator), "log", influence.augrc_lines
    )


def aurc_influence(
    rows: metric_rows.ScoredRows, estimator: str = "empirical", ties: str = "expected"
) -> influence.RankedInfluence | None:
    if estimator != "empirical" or ties != "expected":
        return None
    return metric_rows.ranked(rows, rows.curve.aurc(), "log", influence.aurc_lines)


def eaurc_influence(rows: metric_rows.ScoredRows) -> influence.RankedInfluence | None:
    if not rows.curve.mean_loss < 1 or rows.curve.is_graded:
        return None
    return metric_rows.ranked(rows, rows.curve.eaurc(), "log", influence.eaurc_lines)


def accuracy_rejection_auc_influence(
    rows: metric_rows.ScoredRows, estimator: str = "empirical"
) -> influence.RankedInfluence | None:
    if estimator != "empirical":
        return None
    return metric_rows.ranked(rows, 1.0 - rows.curve.aurc(), "logit", influence.negative_aurc_lines)


# Public functions ------------------------------------------------------------------------


@metric(
    RiskCoverageCurve.augrc,
    "lower",
    range="[0, 0.5]",
    undefined="no errors: 0",
    closed_form=augrc_influence,
    registered=True,
    meaning="Averaged over all coverages, {share} of all rows are accepted and wrong.",
)
def augrc_score(
    y_true: Any,
    y_proba: Any,
    *,
    estimator: str = "trapezoid",
    coverage_range: tuple[float, float] | None = None,
    **options: Unpack[RowOptions],
) -> float:
    """Compute the area under the generalised risk-coverage curve (lower is better).

    :Formula: ``area under generalised risk over coverage``
    :Use for: comparing models, errors and ranking together
    :Not for: where one fixed threshold is in use: see selective_risk
    :Source: Traub et al. 2024

    Parameters
    ----------
    %(data)s
    estimator : {"trapezoid", "unbiased"}, default="trapezoid"
        "trapezoid": straight lines from (0, 0) (eq. 6 of [1]_). "unbiased": the U-statistic
        sum l_i (r_i - 1)/(n (n - 1)) with ascending midranks r; unweighted only.
    coverage_range : (float, float), default=None
        Integrate from one coverage to another and divide by the width; None is (0, 1).
    %(options)s

    Returns
    -------
    float in [0, 0.5]
        (Partial areas can reach 1.) 0 when there are no errors.

    Raises
    ------
    ValueError
        If an argument is malformed, or "unbiased" gets weights, a range or a single row.

    Notes
    -----
    It is the mean rate of silent failures over all coverages. For 0/1 losses it equals
    (1 - AUROC_f) a (1 - a) + (1 - a)^2/2 with accuracy a and AUROC_f the failure AUROC
    (eq. 7 of [1]_).

    References
    ----------
    .. [1] %(augrc)s

    Examples
    --------
    >>> from skselect.metrics import augrc_score
    >>> augrc_score([0, 1, 1, 0], [.1, .9, .6, .7])
    0.09375
    """
    return compute(
        RiskCoverageCurve.augrc,
        y_true,
        y_proba,
        options,
        estimator=estimator,
        coverage_range=coverage_range,
    )


@metric(RiskCoverageCurve.eaugrc, "lower", range="[0, 0.25]", undefined="no errors: 0")
def eaugrc_score(y_true: Any, y_proba: Any, **options: Unpack[RowOptions]) -> float:
    """Compute the excess AUGRC over the best possible ranking of the same losses.

    :Formula: ``AUGRC - AUGRC of the best order``
    :Use for: what better ranking could gain
    :Not for: comparing models of different accuracy
    :Source: Traub et al. 2024

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 0.25]
        Exactly 0 for a perfect ranking.

    %(raises)s

    See Also
    --------
    augrc_score : Also counts the errors: preferred for comparing models.

    Notes
    -----
    AUGRC less that of the same losses in ascending order. For 0/1 losses it equals
    (1 - AUROC_f) a (1 - a) with accuracy a and AUROC_f the failure AUROC, the first part of eq. 7
    of [1]_; the second, (1 - a)^2/2, is the AUGRC of a perfect ranking.

    References
    ----------
    .. [1] %(augrc)s

    Examples
    --------
    >>> from skselect.metrics import eaugrc_score
    >>> eaugrc_score([0, 1, 1, 0], [.1, .9, .6, .7])
    0.0625
    """
    return compute(RiskCoverageCurve.eaugrc, y_true, y_proba, options)


@metric(
    RiskCoverageCurve.aurc,
    "lower",
    undefined="no errors: 0",
    scale_free=False,
    closed_form=aurc_influence,
    registered=True,
    meaning="Averaged over all coverages, {share} of the accepted rows are wrong.",
)
def aurc_score(
    y_true: Any,
    y_proba: Any,
    *,
    estimator: str = "empirical",
    ties: str = "expected",
    **options: Unpack[RowOptions],
) -> float:
    """Compute the area under the risk-coverage curve (lower is better).

    :Formula: ``mean over rows k of the risk of the k surest``
    :Use for: comparison with published values
    :Not for: comparing models: the first errors weigh without bound; see augrc
    :Source: Geifman et al. 2019

    Parameters
    ----------
    %(data)s
    estimator : {"empirical", "integral", "ln"}, default="empirical"
        "empirical": the mean over rows of the error rate among the rows at least as sure
        [1]_. "integral": the integral of selective risk over coverage, which does not depend
        on the scale of the weights. "ln": loss times -ln(1 - r/(n + 1)) with ascending rank
        r, less biased where errors sit at the top [2]_; unweighted only.
    ties : {"expected", "block"}, default="expected"
        "expected": the expectation over random orders of tied rows. "block": tied rows are
        accepted together ("empirical" only).
    %(options)s

    Returns
    -------
    float in [0, 1]
        ("ln" can exceed 1.) 0 when there are no errors.

    Raises
    ------
    ValueError
        If an argument is malformed, or weights are given with "ln".

    Warns
    -----
    UserWarning
        If the weights sum to less than half the number of rows: the empirical form counts
        them as rows.

    See Also
    --------
    augrc_score : Preferred for comparing models: AURC weighs early errors without bound.

    Notes
    -----
    For a tie block of weight w and mean loss rho, with weight W and loss L before it, the
    empirical area gains rho w + (L - rho W) (psi(W + w + 1) - psi(W + 1)), and is divided by
    the total weight at the end.

    References
    ----------
    .. [1] Geifman, Uziel & El-Yaniv, "Bias-reduced uncertainty estimation for deep neural
       classifiers", 2019.
    .. [2] Zhou et al., "A novel characterization of the population area under the risk
       coverage curve", 2024.

    Examples
    --------
    >>> from skselect.metrics import aurc_score
    >>> round(aurc_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.1458
    """
    return compute(RiskCoverageCurve.aurc, y_true, y_proba, options, estimator=estimator, ties=ties)


@metric(
    RiskCoverageCurve.eaurc,
    "lower",
    undefined="no errors: 0",
    scale_free=False,
    closed_form=eaurc_influence,
    registered=True,
    meaning="If its errors were its least confident answers, AURC would be {points} lower.",
)
def eaurc_score(y_true: Any, y_proba: Any, **options: Unpack[RowOptions]) -> float:
    """Compute the excess AURC over the best possible ranking of the same losses.

    :Formula: ``AURC - AURC of the best order``
    :Use for: what better ranking could gain
    :Not for: comparing models of different accuracy
    :Source: Geifman et al. 2019

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 1]
        Exactly 0 for a perfect ranking: the optimum is the one of these n rows, not its
        limit for many rows.

    %(raises)s

    Notes
    -----
    e-AURC = AURC - AURC of the same losses in ascending order [1]_.

    References
    ----------
    .. [1] Geifman, Uziel & El-Yaniv, "Bias-reduced uncertainty estimation for deep neural
       classifiers", 2019.

    Examples
    --------
    >>> from skselect.metrics import eaurc_score
    >>> eaurc_score([0, 1, 1, 0], [.1, .9, .7, .6])
    0.0
    """
    return compute(RiskCoverageCurve.eaurc, y_true, y_proba, options)


@metric(
    RiskCoverageCurve.naurc,
    "lower",
    range="[0, inf)",
    undefined="all losses equal: nan",
    scale_free=False,
)
def naurc_score(y_true: Any, y_proba: Any, **options: Unpack[RowOptions]) -> float:
    """Compute the normalised AURC: 0 for the best ranking, 1 for a random one.

    :Formula: ``(AURC - best)/(mean loss - best)``
    :Use for: share of the possible ranking that is missed
    :Not for: few errors: it is noisy
    :Source: Cattelan & Silva 2024

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float
        Above 1 for a ranking worse than random; nan, with a warning, when all rows have the
        same loss.

    %(raises)s

    Notes
    -----
    NAURC = (AURC - best)/(mean loss - best), both as in :func:`eaurc_score` [1]_.

    References
    ----------
    .. [1] Cattelan & Silva, "How to fix a broken confidence estimator", 2024.

    Examples
    --------
    >>> from skselect.metrics import naurc_score
    >>> round(naurc_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.4444
    """
    return compute(RiskCoverageCurve.naurc, y_true, y_proba, options)


@metric(aumcc, "higher", range="[-1, 1]", undefined="coverage never moves: 0 (trapezoid)")
def aumcc_score(
    y_true: Any,
    y_proba: Any,
    *,
    metric: str = "cwsa_plus",
    estimator: str = "trapezoid",
    thresholds: Any = None,
    **options: Unpack[RowOptions],
) -> float:
    """Compute the area under a metric-coverage curve.

    :Formula: ``area under a metric over coverage, t = .50 ... .99``
    :Use for: a metric over many thresholds
    :Not for: estimator='trapezoid' for confident models: 0 for a perfect one
    :Source: arXiv 2505.18622

    Parameters
    ----------
    %(data)s
    metric : {"cwsa_plus", "cwsa", "selective_accuracy", "selective_risk", \
"generalized_risk"}, default="cwsa_plus"
        The metric that is integrated over coverage.
    estimator : {"trapezoid", "exact"}, default="trapezoid"
        "trapezoid": the trapezoidal rule over the coverages at `thresholds`, as printed in
        [1]_ (A.4); a model whose coverage never moves between them gets 0, even a perfect
        one. "exact": the mean over rows of the metric at the row's own confidence.
    thresholds : array-like in [0, 1), default=None
        For "trapezoid"; None is .50, .51, ..., .99. Thresholds that accept nothing are
        left out.
    %(options)s

    Returns
    -------
    float in [-1, 1]

    %(raises)s

    References
    ----------
    .. [1] %(cwsa)s

    Examples
    --------
    >>> from skselect.metrics import aumcc_score
    >>> y_true, y_proba = [0, 1, 1, 0], [.1, .9, .6, .7]
    >>> round(aumcc_score(y_true, y_proba, metric="selective_accuracy"), 4)
    0.3854
    >>> round(aumcc_score(y_true, y_proba, metric="selective_accuracy", estimator="exact"), 4)
    0.8542
    """
    return compute(
        aumcc, y_true, y_proba, options, metric=metric, estimator=estimator, thresholds=thresholds
    )


@metric(
    accuracy_rejection_auc,
    "higher",
    undefined="no errors: 1",
    for_comparison=True,
    scale_free=False,
    closed_form=accuracy_rejection_auc_influence,
)
def accuracy_rejection_auc_score(
    y_true: Any, y_proba: Any, *, estimator: str = "empirical", **options: Unpack[RowOptions]
) -> float:
    """Compute the area under the accuracy-rejection curve, one minus the AURC.

    :Formula: ``1 - AURC``
    :Use for: comparison with published values
    :Not for: as for aurc
    :Source: Nadeem et al. 2009

    Parameters
    ----------
    %(data)s
    estimator : {"empirical", "integral", "ln"}, default="empirical"
        "empirical": the mean over rows of the accuracy among the rows at least as sure.
        "integral": the integral of selective accuracy over coverage, which does not depend on
        the scale of the weights. "ln": less biased where errors sit at the top; unweighted only.
    %(options)s

    Returns
    -------
    float in [0, 1]

    %(raises)s

    References
    ----------
    .. [1] Nadeem, Zucker & Hanczar, "Accuracy-rejection curves (ARCs) for comparing
       classification methods with a reject option", 2009.

    Examples
    --------
    >>> from skselect.metrics import accuracy_rejection_auc_score
    >>> round(accuracy_rejection_auc_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.8542
    """
    return compute(accuracy_rejection_auc, y_true, y_proba, options, estimator=estimator)


@metric(RiskCoverageCurve.risk_at_coverage, "lower")
def risk_at_coverage_score(
    y_true: Any, y_proba: Any, *, coverage: float, **options: Unpack[RowOptions]
) -> float:
    """Compute the selective risk of the smallest accepted set with a given coverage.

    :Formula: ``risk of the smallest S(t) with coverage >= q``
    :Use for: a fixed capacity for review
    :Not for: as a guarantee for new cases
    :Source: Geifman & El-Yaniv 2017

    Parameters
    ----------
    %(data)s
    coverage : float in (0, 1]
        The least share of rows to accept. Tied rows are accepted together.
    %(options)s

    Returns
    -------
    float in [0, 1]

    %(raises)s

    Examples
    --------
    >>> from skselect.metrics import risk_at_coverage_score
    >>> round(risk_at_coverage_score([0, 1, 1, 0], [.1, .9, .6, .7], coverage=.75), 4)
    0.3333
    """
    return compute(RiskCoverageCurve.risk_at_coverage, y_true, y_proba, options, coverage=coverage)


@metric(RiskCoverageCurve.coverage_at_risk, "higher", undefined="no threshold meets the risk: 0")
def coverage_at_risk_score(
    y_true: Any, y_proba: Any, *, max_risk: float, **options: Unpack[RowOptions]
) -> float:
    """Compute the largest coverage whose selective risk is at most `max_risk`.

    :Formula: ``largest coverage with selective risk <= r``
    :Use for: a fixed quality of decisions
    :Not for: as a guarantee for new cases: see ThresholdTuner
    :Source: Geifman & El-Yaniv 2017

    Parameters
    ----------
    %(data)s
    max_risk : float in [0, 1]
        The largest selective risk allowed.
    %(options)s

    Returns
    -------
    float in [0, 1]
        0 when no threshold meets it. It describes these rows and guarantees nothing for others: see
        ``ThresholdTuner(objective="risk")``.

    %(raises)s

    Examples
    --------
    >>> from skselect.metrics import coverage_at_risk_score
    >>> coverage_at_risk_score([0, 1, 1, 0], [.1, .9, .6, .7], max_risk=.25)
    1.0
    """
    return compute(RiskCoverageCurve.coverage_at_risk, y_true, y_proba, options, max_risk=max_risk)


@metric(review_rate_at_reliability, "lower", undefined="no threshold is reliable enough: 1")
def review_rate_at_reliability_score(
    y_true: Any, y_proba: Any, *, reliability: float, **options: Unpack[RowOptions]
) -> float:
    """Compute the least share of rows to review so that silent errors stay rare.

    :Formula: ``1 - largest coverage with generalised risk <= 1 - rho``
    :Use for: how much a person must review
    :Not for: as a guarantee for new cases: see ThresholdTuner
    :Source: conditional cross-entropy paper, eq. 14

    Parameters
    ----------
    %(data)s
    reliability : float in [0, 1]
        One minus the largest allowed rate of silent errors (errors accepted / all rows).
    %(options)s

    Returns
    -------
    float in [0, 1]
        Lower is better.

    %(raises)s

    Notes
    -----
    One minus the largest coverage with generalised risk <= 1 - reliability (the constraint
    of eq. 14 in the paper on correctness-aligned uncertainty, CAU).

    Examples
    --------
    >>> from skselect.metrics import review_rate_at_reliability_score
    >>> review_rate_at_reliability_score([0, 1, 1, 0], [.1, .9, .6, .7], reliability=.9)
    0.5
    """
    return compute(review_rate_at_reliability, y_true, y_proba, options, reliability=reliability)


@defaults_of(review_plan)
def review_at_reliability(
    y_true: Any, y_proba: Any, *, reliability: float, **options: Unpack[RowOptions]
) -> ReviewPlan:
    """Compute what must be reviewed, and what passes, so that silent errors stay rare.

    Parameters
    ----------
    %(data)s
    reliability : float in [0, 1]
        One minus the largest allowed rate of silent errors (errors accepted / all rows).
    %(options)s

    Returns
    -------
    ReviewPlan
        Review rate, pass rate of right answers, needless reviews per 10,000, threshold.

    %(raises)s

    Notes
    -----
    The largest coverage with generalised risk <= 1 - reliability (eq. 14 of [1]_). The pass
    rate is right and accepted over all right, the invalid review cost right and reviewed per
    10,000 rows (table 3 of [1]_). All describe these rows; for a guarantee about other rows see
    ``ThresholdTuner(objective="generalized_risk")``.

    References
    ----------
    .. [1] "Uncertainty quantification revisited: conditional cross-entropy for neural
       classifiers".

    Examples
    --------
    >>> from skselect.metrics import review_at_reliability
    >>> plan = review_at_reliability([0, 1, 1, 0], [.1, .9, .6, .7], reliability=.9)
    >>> plan.review_rate, round(plan.pass_rate, 4), plan.invalid_review_cost
    (0.5, 0.6667, 2500.0)
    """
    return compute(review_plan, y_true, y_proba, options, reliability=reliability)
