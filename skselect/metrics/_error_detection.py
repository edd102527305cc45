"""How well the confidence tells errors from right answers.

Kernels read the blocks of a curve, surest first: the weight of right and of wrong answers in
each. A graded loss l counts as l of an error and 1 - l of a right answer.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from skselect._lib.arrays import ROUNDING, FloatArray, IntArray
from skselect._lib.checks.options import check_choice, check_number
from skselect._lib.checks.rows import check_has_proba, check_two_classes
from skselect._lib.keywords import CountOptions, RowOptions
from skselect.curve.curve import RiskCoverageCurve
from skselect.curve.influence import RankedInfluence, auroc_lines
from skselect.metrics._metric import compute, metric, undefined
from skselect.metrics._rows import ScoredRows, ranked
from skselect.predictions.outcomes import compute_confidence
from skselect.predictions.predictions import Predictions

__all__ = ["auroc_aurc_score", "f1_retention_auc_score", "failure_auroc_score"]
__all__ += ["failure_average_precision_score", "oc_auc_score"]

# Kernels ---------------------------------------------------------------------------------


def failure_auroc(curve: RiskCoverageCurve) -> float:
    """Return the AUROC of telling right answers from errors by their confidence."""
    wrong = curve.sums.loss
    right = curve.sums.weight - wrong
    if not min(right, wrong) > 0:
        return _without("failure_auroc", wrong > 0)
    return curve.sums.auroc


def _without(name: str, right_answers: bool) -> float:
    """Return nan for a metric that misses right answers, or errors."""
    missing = "right answers" if right_answers else "errors"
    return undefined(name, f"there are no {missing}")


def failure_average_precision(curve: RiskCoverageCurve, positive: str = "error") -> float:
    """Return the average precision of finding errors (or right answers)."""
    check_choice("positive", positive, ["error", "correct"])
    if positive == "error":
        sought = curve.block_loss[::-1]
        weight = curve.block_weight[::-1]
    else:
        sought = curve.block_weight - curve.block_loss
        weight = curve.block_weight
    total = float(np.sum(sought))
    if not total > 0:
        return _without("failure_average_precision", positive == "correct")
    precision = np.cumsum(sought) / np.cumsum(weight)
    return float(min(np.sum(sought / total * precision), 1.0))


def oc_auc(curve: RiskCoverageCurve, review_fraction: float = 0.1) -> float:
    """Return the failure AUROC after the errors among the least confident rows were corrected."""
    check_number("review_fraction", review_fraction, 0.0, 1.0, closed="left")
    unreviewed = _unreviewed_shares(curve, review_fraction)
    wrong = curve.block_loss * unreviewed
    right = curve.block_weight - wrong
    n_right = float(np.sum(right))
    n_wrong = float(np.sum(wrong))
    if not min(n_right, n_wrong) > 0:
        return _without("oc_auc", n_wrong > 0)
    # Right answers that are surer; those of the same block count half.
    surer = np.cumsum(right) - right / 2.0
    return float(min(np.sum(wrong / n_wrong * (surer / n_right)), 1.0))


def _unreviewed_shares(curve: RiskCoverageCurve, review_fraction: float) -> FloatArray:
    """Return the share of each block that is not among the least confident rows."""
    total = curve.accepted_weight[-1]
    below = total - curve.accepted_weight
    budget = review_fraction * total
    # .29 x 100 rounds to less than 29.
    whole = np.abs(below - budget) <= ROUNDING * total
    if np.any(whole):
        budget = below[whole][0]
    reviewed = np.clip(budget - below, 0.0, curve.block_weight)
    return np.asarray(1.0 - reviewed / curve.block_weight)


def f1_retention_auc(curve: RiskCoverageCurve) -> float:
    """Return the integral of F1 = 2 T/(x + R) over the weight x that is retained."""
    weight = curve.block_weight
    right = weight - curve.block_loss
    if not np.any(right > 0):
        return 0.0
    start = curve.accepted_weight - weight + np.sum(right)
    right_before = np.cumsum(right) - right
    rate = right / weight
    # Inside a block T grows in proportion to x: integrate (T + rate x)/(start + x).
    logs = np.log1p(weight / start)
    terms = (right_before - rate * start) * logs + right
    area = max(np.sum(terms), 0.0)
    return float(2.0 * area / curve.accepted_weight[-1])


def auroc_aurc(predictions: Predictions) -> float:
    """Return the mean over rows of 1 - AUROC of the rows at least as sure (two classes)."""
    proba = check_has_proba(predictions.y_proba, "auroc_aurc")
    check_two_classes(
        predictions.classes,
        "auroc_aurc",
        "; augrc_score and failure_auroc_score accept any number",
    )
    weight = predictions.sample_weight
    if weight is None:
        weight = np.ones(len(predictions))
    exists = (predictions.y_true >= 0) & (weight > 0)
    truth = predictions.y_true[exists]
    # Products of weights must not overflow.
    weight = weight[exists] / np.max(weight[exists], initial=0.0)
    positive = weight * (truth == 1)
    negative = weight * (truth == 0)
    if not (np.any(positive > 0) and np.any(negative > 0)):
        return undefined("auroc_aurc", "there are not rows of both classes")
    _, block = np.unique(-compute_confidence(predictions)[exists], return_inverse=True)
    _, rank = np.unique(proba[exists, 1], return_inverse=True)
    risk = _risk_of_accepted(positive, negative, rank, block)
    defined = ~np.isnan(risk)
    size = np.bincount(block, weight)[defined]
    return float(np.sum(size * risk[defined]) / np.sum(size))


def _risk_of_accepted(
    positive: FloatArray, negative: FloatArray, rank: IntArray, block: IntArray
) -> FloatArray:
    """Return, per block, 1 - AUROC of the rows so far; nan while a class is missing."""
    concordant = _concordant_pairs(positive, negative, rank, block)
    pairs = np.cumsum(np.bincount(block, positive)) * np.cumsum(np.bincount(block, negative))
    risk = np.full(len(pairs), np.nan)
    defined = pairs > 0
    risk[defined] = np.clip(1.0 - concordant[defined] / pairs[defined], 0.0, 1.0)
    return risk


def _concordant_pairs(
    positive: FloatArray, negative: FloatArray, rank: IntArray, block: IntArray
) -> FloatArray:
    """Return, per block, the pairs so far whose positive has the higher score, ties by half.

    The ranks of the scores are compared bit by bit. At a level, rows with the same higher bits
    form a segment; a pair in it has the right order if the positive row has bit 1 and the negative
    one bit 0. The pair counts from the later of its two blocks on.
    """
    by_time = np.argsort(block, kind="stable")
    positive = positive[by_time]
    negative = negative[by_time]
    rank = rank[by_time]
    block = block[by_time]
    # Equal scores.
    gained = 0.5 * _pairs_gained(positive, negative, rank, block)
    for level in range(int(rank.max()).bit_length()):
        is_upper = (rank >> level) & 1
        upper = positive * is_upper
        lower = negative * (1 - is_upper)
        gained += _pairs_gained(upper, lower, rank >> (level + 1), block)
    return np.cumsum(gained)


def _pairs_gained(
    positive: FloatArray, negative: FloatArray, segment: IntArray, block: IntArray
) -> FloatArray:
    """Return the pairs inside segments that each block adds; rows come in order of block."""
    order = np.argsort(segment, kind="stable")
    segment = segment[order]
    p = positive[order]
    q = negative[order]
    starts = np.flatnonzero(np.diff(segment, prepend=-1))
    n_rows = np.diff(np.append(starts, len(segment)))
    p_sum = np.cumsum(p)
    q_sum = np.cumsum(q)
    p_sum -= np.repeat((p_sum - p)[starts], n_rows)
    q_sum -= np.repeat((q_sum - q)[starts], n_rows)
    # Each row pairs with the rows of the other class that come before it in its segment.
    pairs = p * q_sum + q * p_sum
    gained = np.bincount(block[order], pairs, minlength=int(block.max()) + 1)
    return gained.astype(np.float64)


# How much each row moves them ---------------------------------------------------------


def failure_auroc_influence(rows: ScoredRows) -> RankedInfluence | None:
    curve = rows.curve
    n_wrong = curve.sums.loss
    n_right = curve.n_rows - n_wrong
    if curve.is_graded or min(n_wrong, n_right) < 2:
        return None
    return ranked(rows, curve.sums.auroc, "logit", auroc_lines)


# Public functions ------------------------------------------------------------------------


@metric(
    failure_auroc,
    "higher",
    undefined="no errors or no right rows: nan",
    closed_form=failure_auroc_influence,
    registered=True,
    meaning="In {share} of pairs the right answer has a higher confidence than the wrong "
    "one (by chance: 50 %).",
)
def failure_auroc_score(y_true: Any, y_proba: Any, **options: Unpack[RowOptions]) -> float:
    """Compute the probability that a right answer has a higher confidence than an error (AUROC_f).

    :Formula: ``P(right surer than wrong) + P(tie)/2``
    :Use for: confidences of one classifier
    :Not for: comparing classifiers: it ignores how many errors there are
    :Source: Traub et al. 2024

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 1]
        1 ranks all errors last, 0.5 is a random order.

    %(raises)s

    Warns
    -----
    UserWarning
        If there are no errors or only errors: the value is nan.

    See Also
    --------
    augrc_score : Preferred for comparing classifiers; it also counts the errors.

    Notes
    -----
    P(c of a right row > c of a wrong row) + P(equal)/2. It measures the ranking alone: a
    classifier that also gets unsure rows wrong can score higher than one that gets them right
    [1]_. Use it to compare confidences of one classifier.

    References
    ----------
    .. [1] %(augrc)s

    Examples
    --------
    >>> from skselect.metrics import failure_auroc_score
    >>> round(failure_auroc_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.6667
    """
    return compute(failure_auroc, y_true, y_proba, options)


@metric(failure_average_precision, "higher", undefined="nothing to find: nan")
def failure_average_precision_score(
    y_true: Any, y_proba: Any, *, positive: str = "error", **options: Unpack[RowOptions]
) -> float:
    """Compute the average precision of finding errors (AUPR-Error) or right answers.

    :Formula: ``sum of (gain in recall) x precision of finding errors``
    :Use for: searching for rare errors
    :Not for: comparing classifiers: more errors raise it
    :Source: Hendrycks & Gimpel 2017

    Parameters
    ----------
    %(data)s
    positive : {"error", "correct"}, default="error"
        What is looked for: errors, the least sure rows first (AUPR-Error), or right answers,
        the surest first (AUPR-Correct).
    %(options)s

    Returns
    -------
    float in [0, 1]

    %(raises)s

    Warns
    -----
    UserWarning
        If there is nothing to find: the value is nan.

    See Also
    --------
    augrc_score : Preferred for comparing classifiers.

    Notes
    -----
    Sum over thresholds of (increase in recall) x precision, tied rows together [1]_. A random
    ranking gets the share of what is looked for: a classifier with more errors gets a higher
    AUPR-Error for the same ranking [2]_, so values of different classifiers cannot be compared.

    References
    ----------
    .. [1] Hendrycks & Gimpel, "A baseline for detecting misclassified and out-of-distribution
       examples in neural networks", 2017.
    .. [2] %(augrc)s

    Examples
    --------
    >>> from skselect.metrics import failure_average_precision_score
    >>> failure_average_precision_score([0, 1, 1, 0], [.1, .9, .6, .7])
    0.5
    """
    return compute(failure_average_precision, y_true, y_proba, options, positive=positive)


@metric(oc_auc, "higher", undefined="no errors left: nan", for_comparison=True)
def oc_auc_score(
    y_true: Any, y_proba: Any, *, review_fraction: float = 0.1, **options: Unpack[RowOptions]
) -> float:
    """Compute the failure AUROC after the errors in a share of unsure rows were corrected (OC-AUC).

    :Formula: ``failure AUROC once errors in the least sure share are corrected``
    :Use for: a fixed review budget with an oracle
    :Not for: comparing classifiers, or other budgets
    :Source: Kivlichan et al. 2021

    Parameters
    ----------
    %(data)s
    review_fraction : float in [0, 1), default=0.1
        Share of rows, the least sure ones, that an oracle reviews: their errors are corrected.
    %(options)s

    Returns
    -------
    float in [0, 1]

    %(raises)s

    Warns
    -----
    UserWarning
        If no error (or no right answer) is left after the review: the value is nan.

    See Also
    --------
    review_rate_at_reliability_score : Asks how much review is needed instead.
    augrc_score : Preferred for comparing classifiers.

    Notes
    -----
    The losses of the reviewed rows are set to zero, then :func:`failure_auroc_score` is
    taken [1]_. A tie block of which a share is not reviewed keeps that share of its errors. It
    looks at one review budget only and, like AUROC_f, ignores the number of errors [2]_.

    References
    ----------
    .. [1] Kivlichan et al., "Measuring and improving model-moderator collaboration using
       uncertainty estimation", 2021.
    .. [2] %(augrc)s

    Examples
    --------
    >>> from skselect.metrics import oc_auc_score
    >>> round(oc_auc_score([0, 1, 1, 0], [.1, .9, .6, .7], review_fraction=.25), 4)
    0.6667
    """
    return compute(oc_auc, y_true, y_proba, options, review_fraction=review_fraction)


@metric(
    f1_retention_auc,
    "higher",
    range="[0, 0.715]",
    undefined="no right rows: 0",
    for_comparison=True,
)
def f1_retention_auc_score(y_true: Any, y_proba: Any, **options: Unpack[RowOptions]) -> float:
    """Compute the area under the F1-retention curve (F1-AUC).

    :Formula: ``area under 2 T/(x + R) over the share x retained``
    :Use for: comparison with published values
    :Not for: comparing classifiers: fewer errors can lower it
    :Source: Malinin et al. 2021

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 0.715]
        A classifier without errors gets 2 (1 - ln 2), about 0.614, which is not the largest
        value: that goes to a perfect ranking with 44 % of errors.

    %(raises)s

    See Also
    --------
    augrc_score : Preferred for comparing classifiers.

    Notes
    -----
    With a share x of the rows retained, T of them right, and a share R of all rows right,
    precision is T/x and recall T/R, so F1 = 2 T/(x + R); the score is its integral over x
    from 0 to 1, tied rows being retained evenly [1]_. It can fall when an error becomes
    right, because R grows with it [2]_.

    References
    ----------
    .. [1] Malinin et al., "Shifts: a dataset of real distributional shift across multiple
       large-scale tasks", 2021.
    .. [2] %(augrc)s

    Examples
    --------
    >>> from skselect.metrics import f1_retention_auc_score
    >>> round(f1_retention_auc_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.6078
    """
    return compute(f1_retention_auc, y_true, y_proba, options)


@metric(auroc_aurc, "lower", undefined="one class only: nan", for_comparison=True)
def auroc_aurc_score(y_true: Any, y_proba: Any, **options: Unpack[CountOptions]) -> float:
    """Compute the area under 1 - AUROC of the accepted rows over coverage (AUROC-AURC).

    :Formula: ``mean over k of 1 - AUROC of the k surest rows (two classes)``
    :Use for: comparison with published values
    :Not for: comparing classifiers: it may gain by accepting one class
    :Source: Traub et al. 2024

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 1]
        Lower is better.

    Raises
    ------
    ValueError
        If there are not two classes, or an argument is malformed.

    Warns
    -----
    UserWarning
        If all rows belong to one class: the value is nan.

    See Also
    --------
    augrc_score : Preferred for comparing classifiers.

    Notes
    -----
    The mean over rows of 1 - AUROC (of the two classes) among the rows at least as sure, for
    the rows where both classes have been accepted; tied rows are accepted together. An AUROC
    is not a mean over rows: rejecting an error can raise this risk, a classifier may gain by
    accepting one class only, and the surest rows, where one class is missing, have no effect
    [1]_.

    References
    ----------
    .. [1] %(augrc)s

    Examples
    --------
    >>> from skselect.metrics import auroc_aurc_score
    >>> round(auroc_aurc_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.0625
    """
    return compute(auroc_aurc, y_true, y_proba, options)
