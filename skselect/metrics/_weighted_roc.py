"""Confidence-weighted ROC: rows count by the confidence in their predicted class."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from skselect import _validation as check
from skselect._typing import BoolArray, FloatArray
from skselect.metrics._door import CountOptions, claim_count_metric, claimed_predictions_of
from skselect.metrics._weighted_counts import mass_of, mean_of_defined, place_of_positive
from skselect.predictions import Predictions

# Kernels ---------------------------------------------------------------------------------


def roc_points(
    score: FloatArray, positive: BoolArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return false and true positive rates at inf and at each distinct score, descending.

    Both kinds of rows must have weight.
    """
    exists = weight > 0
    score, positive, weight = score[exists], positive[exists], weight[exists]
    order = np.argsort(-score)
    score, positive, weight = score[order], positive[order], weight[order]
    ends = np.flatnonzero(np.append(score[1:] != score[:-1], True))
    below = np.cumsum(np.where(positive, 0.0, weight))[ends]
    above = np.cumsum(np.where(positive, weight, 0.0))[ends]
    fpr = np.concatenate([[0.0], below / below[-1]])
    tpr = np.concatenate([[0.0], above / above[-1]])
    return fpr, tpr, np.concatenate([[np.inf], score[ends]])


def area_under_roc(score: FloatArray, positive: BoolArray, weight: FloatArray) -> float:
    """Return P(positive scored above negative) + half the ties; nan without one of them."""
    if not (np.any(weight[positive] > 0) and np.any(weight[~positive] > 0)):
        return float("nan")
    fpr, tpr, _ = roc_points(score, positive, weight)
    return float(np.clip(np.trapezoid(tpr, fpr), 0.0, 1.0))


def cw_auc(predictions: Predictions, average: str | None = "macro") -> Any:
    """Return the confidence-weighted AUC of each class against the rest, or its average."""
    check.check_class_average(average)
    proba = check.check_has_proba(predictions.y_proba, "cw_auc")
    mass = mass_of(predictions)
    values, support = np.empty(proba.shape[1]), np.empty(proba.shape[1])
    for k in range(proba.shape[1]):
        positive = predictions.y_true == k
        values[k] = area_under_roc(proba[:, k].astype(np.float64), positive, mass)
        support[k] = np.sum(mass[positive])
    share = support if average == "weighted" else np.ones(len(values))
    return mean_of_defined(values, share, average, "cw_auc")


# Doors -----------------------------------------------------------------------------------


@claim_count_metric
def cw_auc_score(
    y_true: Any, y_proba: Any, *, average: str | None = "macro", **options: Unpack[CountOptions]
) -> Any:
    """Compute the area under the confidence-weighted ROC curve, one class against the rest.

    Parameters
    ----------
    %(data)s
    average : {"macro", "weighted", None}, default="macro"
        The mean over classes, weighted by their support or not, or one value per class.
        Classes without a value are left out of a mean.
    %(options)s

    Returns
    -------
    float in [0, 1], or ndarray of shape (K,) if `average` is None

    Raises
    ------
    ValueError
        If a confidence is outside [0, 1], or an argument is malformed.

    Warns
    -----
    UserWarning
        If a class holds no row or all rows: it has no AUC (nan).

    Notes
    -----
    The AUC of the probability of class k with the confidence in the *predicted* class as the
    weight of each row (proposition 15 of [1]_). It exceeds the plain AUC by
    Cov(w, z)/E[w] over pairs (proposition 16).

    References
    ----------
    .. [1] Martin-Maroto, Abderrahaman & de Polavieja, "Beyond ECE: calibrated size ratio, risk
       assessment, and confidence-weighted metrics", arXiv 2605.01796, 2026.

    Examples
    --------
    >>> from skselect.metrics import cw_auc_score
    >>> round(cw_auc_score([0, 1, 1, 0], [.25, .875, .625, .75]), 4)
    0.7917
    """
    return cw_auc(claimed_predictions_of(y_true, y_proba, **options), average)


@claim_count_metric
def cw_roc_curve(
    y_true: Any, y_proba: Any, **options: Unpack[CountOptions]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute the ROC curve in which each row counts by its confidence (two classes).

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    fpr, tpr : ndarray of shape (m,)
        Confidence-weighted false and true positive rates of "probability of `pos_label` >=
        threshold", from (0, 0) to (1, 1).
    thresholds : ndarray of shape (m,)
        Descending; the first is inf, where nothing is called positive.

    Raises
    ------
    ValueError
        If there are not two classes with rows, a confidence is outside [0, 1], or an argument
        is malformed.

    References
    ----------
    .. [1] Martin-Maroto, Abderrahaman & de Polavieja, "Beyond ECE: calibrated size ratio, risk
       assessment, and confidence-weighted metrics", arXiv 2605.01796, 2026,
       proposition 15.

    Examples
    --------
    >>> from skselect.metrics import cw_roc_curve
    >>> fpr, tpr, thresholds = cw_roc_curve([0, 1, 1, 0], [.25, .875, .625, .75])
    >>> tpr.round(3)
    array([0.   , 0.583, 0.583, 1.   , 1.   ])
    """
    predictions = claimed_predictions_of(y_true, y_proba, **options)
    remedy = "; cw_auc_score takes any number"
    check.check_two_classes(predictions.classes, "cw_roc_curve", remedy)
    place = place_of_positive(predictions, options.get("pos_label"))
    proba = check.check_has_proba(predictions.y_proba, "cw_roc_curve")
    mass, positive = mass_of(predictions), predictions.y_true == place
    check.check_both_kinds(mass, positive, "cw_roc_curve")
    return roc_points(proba[:, place].astype(np.float64), positive, mass)
