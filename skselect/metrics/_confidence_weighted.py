"""Confidence-weighted counts: each row enters the confusion matrix with its confidence.

The kernels take predictions. Each row weighs as much as the confidence that came with them, else
the one that goes with their decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import numpy as np

from skselect._lib.arrays import BoolArray, FloatArray
from skselect._lib.checks import shown, warn_user
from skselect._lib.checks.rows import (
    check_has_proba,
    check_two_classes,
    check_unit_confidence,
    resolve_pos_label,
)
from skselect._lib.keywords import (
    AverageOptions,
    WeighedCountOptions,
    WeighedRowOptions,
    share_options,
)
from skselect.curve.curve import RiskCoverageCurve
from skselect.metrics._metric import compute_by_correctness, metric, undefined
from skselect.metrics._rows import Influence, ScoredRows, ratio_of, score_proba
from skselect.predictions.outcomes import compute_confidence
from skselect.predictions.predictions import Predictions

__all__ = ["cw_accuracy_score", "cw_auc_score", "cw_confusion_matrix", "cw_f1_score"]
__all__ += ["cw_gain_score", "cw_matthews_corrcoef", "cw_precision_score", "cw_recall_score"]
__all__ += ["cw_roc_curve", "cw_specificity_score"]

# Kernels of classes ----------------------------------------------------------------------


class Counts(NamedTuple):
    """Confidence-weighted counts of each class against the rest, arrays of shape (K,)."""

    tp: FloatArray
    fp: FloatArray
    fn: FloatArray
    tn: FloatArray


def weigh_by_confidence(predictions: Predictions) -> FloatArray:
    """Return w c, the weight of each row times the confidence in its predicted class."""
    confidence = check_unit_confidence(compute_confidence(predictions), "confidence weighting")
    weight = predictions.sample_weight
    return confidence if weight is None else weight * confidence


def _confusion(predictions: Predictions) -> FloatArray:
    """Return the weighted confusion matrix; a last row holds true classes that are not known."""
    k = len(predictions.classes)
    truth = np.where(predictions.y_true < 0, k, predictions.y_true)
    cells = truth * k + predictions.y_pred
    mass = weigh_by_confidence(predictions)
    sums = np.bincount(cells, weights=mass, minlength=(k + 1) * k)
    return sums.reshape(k + 1, k).astype(np.float64)


def count_each_class(predictions: Predictions) -> Counts:
    """Return cwTP, cwFP, cwFN and cwTN of each class."""
    matrix = _confusion(predictions)
    tp = np.diagonal(matrix).copy()
    off = matrix.copy()
    np.fill_diagonal(off, 0.0)
    fp = off.sum(axis=0)
    fn = off[:-1].sum(axis=1)
    rest = np.maximum(matrix.sum() - tp - fp - fn, 0.0)
    # cwTN is a difference of sums, which rounds; whether it is 0 is counted exactly.
    filled = matrix > 0
    of_class = filled.sum(axis=0) + filled.sum(axis=1)[:-1] - np.diagonal(filled)
    elsewhere = filled.sum() - of_class
    tn = np.where(elsewhere > 0, rest, 0.0)
    return Counts(tp, fp, fn, tn)


def _ratio_metric(
    name: str, ratio: Callable[[Counts], tuple[FloatArray, FloatArray]]
) -> Callable[..., Any]:
    """Return a kernel that averages numerator/denominator over the classes."""

    def kernel(
        predictions: Predictions, average: str | None = "auto", pos_label: Any = None
    ) -> Any:
        average = _check_average(average, pos_label)
        counts = count_each_class(predictions)
        if average == "micro":
            totals = [np.array([of_class.sum()]) for of_class in counts]
            counts = Counts(*totals)
        over, under = ratio(counts)
        values = np.divide(over, under, out=np.full(len(over), np.nan), where=under > 0)
        values = np.minimum(values, 1.0)  # sums of floats round
        if average in ("macro", "weighted") and name == "cw_precision":
            # A class that is never predicted must not raise a mean: 0, as in scikit-learn.
            values = np.where(np.isnan(values) & (counts.fn > 0), 0.0, values)
        if average == "binary":
            remedy = "; use 'macro', 'weighted', 'micro' or None"
            check_two_classes(predictions.classes, "average='binary'", remedy)
            values = values[[find_positive(predictions, pos_label)]]
        share = np.ones(len(values))
        if average == "weighted":
            share = counts.tp + counts.fn
        return average_defined(values, share, average, name)

    kernel.__name__ = name
    kernel.__doc__ = f"Return the {name} of each class (average=None) or its average."
    return kernel


def _check_average(average: Any, pos_label: Any) -> str | None:
    """Check `average`, resolve "auto", and refuse `pos_label` with an average of all classes."""
    averages = ["auto", "macro", "weighted", "micro", "binary", None]
    if average not in averages:
        raise ValueError(f"average must be one of {averages}, got {shown(average)}.")
    if average == "auto":
        return "macro" if pos_label is None else "binary"
    if pos_label is not None and average != "binary":
        raise ValueError(
            f"pos_label={shown(pos_label)} goes with average='binary' (or 'auto'), but "
            f"average={average!r} is about every class. Leave one of them out."
        )
    return str(average) if average else None


def average_defined(values: FloatArray, share: FloatArray, average: str | None, name: str) -> Any:
    """Average the classes that have a value; warn about the others."""
    values = np.atleast_1d(values)
    missing = np.isnan(values)
    counted = ~missing & (share > 0)
    if np.any(missing & (share > 0)) or not np.any(counted):
        left_out = ""
        if average and len(values) > 1:
            left_out = " and are left out of the average"
        warn_user(
            f"{name} is undefined (nan) for {int(missing.sum())} of {len(values)} classes: their "
            f"weighted counts are all zero{left_out}."
        )
    if average is None:
        return values
    if not np.any(counted):
        return math.nan
    total = np.sum(values[counted] * share[counted])
    return float(total / np.sum(share[counted]))


def find_positive(predictions: Predictions, pos_label: Any) -> int:
    """Return where the positive class stands among the two classes."""
    label = resolve_pos_label(predictions.classes, pos_label)
    return int(predictions.classes.tolist().index(label))


cw_precision = _ratio_metric("cw_precision", lambda n: (n.tp, n.tp + n.fp))

cw_recall = _ratio_metric("cw_recall", lambda n: (n.tp, n.tp + n.fn))

cw_specificity = _ratio_metric("cw_specificity", lambda n: (n.tn, n.tn + n.fp))

cw_f1 = _ratio_metric("cw_f1", lambda n: (2.0 * n.tp, 2.0 * n.tp + n.fp + n.fn))


def cw_matthews(predictions: Predictions) -> float:
    """Return Gorodkin's correlation of true and predicted classes, weighted by confidence."""
    matrix = _confusion(predictions)
    matrix = matrix / max(float(matrix.sum()), np.finfo(np.float64).tiny)
    total = matrix.sum()
    truth = matrix.sum(axis=1)
    predicted = matrix.sum(axis=0)
    if min(np.count_nonzero(truth), np.count_nonzero(predicted)) < 2:
        reason = "all weight is on one true or one predicted class"
        return undefined("cw_matthews_corrcoef", reason)
    spread_of_truth = np.sum(truth * (total - truth))
    spread_of_answers = np.sum(predicted * (total - predicted))
    joint = total * np.trace(matrix) - np.sum(truth[:-1] * predicted)
    correlation = joint / np.sqrt(spread_of_truth * spread_of_answers)
    return float(np.clip(correlation, -1.0, 1.0))


# Kernels of rows -------------------------------------------------------------------------


def cw_accuracy(curve: RiskCoverageCurve) -> float:
    """Return sum w c (1 - l) / sum w c; nan if every confidence is zero."""
    curve.check_unit("cw_accuracy")
    total = curve.sums.products.confidence
    if not total > 0:
        return undefined("cw_accuracy", "the confidence is 0 for every row")
    return curve.sums.products.confidence_right / total


def cw_gain(curve: RiskCoverageCurve) -> float:
    """Return (cwA - accuracy)/(1 - min(cwA, accuracy)); nan where both are one."""
    weighted = cw_accuracy(curve)
    accuracy = 1.0 - curve.mean_loss
    room = 1.0 - min(weighted, accuracy)
    if room <= 0:
        return undefined("cw_gain", "there are no errors")
    return (weighted - accuracy) / room


# Kernels of the ROC curve ----------------------------------------------------------------


def roc_points(
    score: FloatArray, positive: BoolArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return false positive rates, true positive rates and thresholds: inf, then each score.

    Both kinds of rows must have weight.
    """
    exists = weight > 0
    order = np.flatnonzero(exists)[np.argsort(-score[exists])]
    score = score[order]
    positive = positive[order]
    weight = weight[order]
    ends = np.flatnonzero(np.append(score[1:] != score[:-1], True))
    below = np.cumsum(np.where(positive, 0.0, weight))[ends]
    above = np.cumsum(np.where(positive, weight, 0.0))[ends]
    fpr = np.append(0.0, below / below[-1])
    tpr = np.append(0.0, above / above[-1])
    return fpr, tpr, np.append(np.inf, score[ends])


def set_apart(
    predictions: Predictions, place: int, purpose: str
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Return the score of one class, which rows belong to it, and each row times its confidence."""
    proba = check_has_proba(predictions.y_proba, purpose)
    mass = weigh_by_confidence(predictions)
    positive = predictions.y_true == place
    if not _has_both(positive, mass):
        raise ValueError(f"y_true: {purpose} needs rows of both classes with positive weight.")
    return proba[:, place].astype(np.float64), positive, mass


def area_under_roc(score: FloatArray, positive: BoolArray, weight: FloatArray) -> float:
    """Return P(positive scored above negative) + P(tie)/2; nan if one kind is missing."""
    if not _has_both(positive, weight):
        return math.nan
    fpr, tpr, _ = roc_points(score, positive, weight)
    area = np.trapezoid(tpr, fpr)
    return float(np.clip(area, 0.0, 1.0))


def _has_both(positive: BoolArray, weight: FloatArray) -> bool:
    """Tell whether rows of both kinds have weight."""
    return bool(np.any(weight[positive] > 0) and np.any(weight[~positive] > 0))


def cw_auc(predictions: Predictions, average: str | None = "macro") -> Any:
    """Return the confidence-weighted AUC of each class against the rest, or its average."""
    if average not in ("macro", "weighted", None):
        raise ValueError(f"average must be 'macro', 'weighted' or None, got {shown(average)}.")
    proba = check_has_proba(predictions.y_proba, "cw_auc")
    mass = weigh_by_confidence(predictions)
    n_classes = proba.shape[1]
    values = np.empty(n_classes)
    support = np.empty(n_classes)
    for k in range(n_classes):
        positive = predictions.y_true == k
        score = proba[:, k].astype(np.float64)
        values[k] = area_under_roc(score, positive, mass)
        support[k] = np.sum(mass[positive])
    share = support if average == "weighted" else np.ones(n_classes)
    return average_defined(values, share, average, "cw_auc")


# How much each row moves them ---------------------------------------------------------


def cw_accuracy_influence(rows: ScoredRows) -> Influence | None:
    confidence = rows.outcomes.confidence
    right = confidence * (1.0 - rows.outcomes.loss)
    return ratio_of(right, confidence, "logit")


# Public functions ------------------------------------------------------------------------


@share_options
def cw_confusion_matrix(
    y_true: Any, y_proba: Any, **options: Unpack[WeighedCountOptions]
) -> FloatArray:
    """Compute the confusion matrix in which each row counts by its confidence.

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    ndarray of shape (K, K)
        Entry (i, j): the weighted confidence of the rows of class i that were predicted as
        class j, classes in the order of `labels`.

    %(raises_unit)s

    Notes
    -----
    cwTP, cwFN, cwFP and cwTN of class k are its usual cells [1]_. All entries add up to sum w c,
    those of line i to the sum over the rows of class i.

    References
    ----------
    .. [1] %(csr)s

    Examples
    --------
    >>> from skselect.metrics import cw_confusion_matrix
    >>> cw_confusion_matrix([0, 1, 1, 0], [.25, .875, .625, .75])
    array([[0.75, 0.75],
           [0.  , 1.5 ]])
    """
    rows = score_proba(y_true, y_proba, **options).by_correctness
    return _confusion(rows.predictions)[:-1]


@metric(cw_precision, "higher", undefined="class never predicted: nan alone, 0 in a mean")
def cw_precision_score(y_true: Any, y_proba: Any, **options: Unpack[AverageOptions]) -> Any:
    """Compute the precision in which each row counts by its confidence.

    :Formula: ``cwTP/(cwTP + cwFP)``
    :Use for: false alarms, above all confident ones
    :Not for: confidences that are not probabilities
    :Source: arXiv 2605.01796

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 1], or ndarray of shape (K,) if `average` is None

    %(raises_unit)s

    Warns
    -----
    UserWarning
        If a class is neither true nor predicted: it has no precision.

    Notes
    -----
    cwTP/(cwTP + cwFP), the counts of :func:`cw_confusion_matrix` [1]_. A class with rows that
    is never predicted has no precision (nan); in an average it counts 0, as in scikit-learn.

    References
    ----------
    .. [1] %(csr)s

    Examples
    --------
    >>> from skselect.metrics import cw_precision_score
    >>> cw_precision_score([0, 1, 1, 0], [.25, .875, .625, .75], average=None)
    array([1.        , 0.66666667])
    """
    return compute_by_correctness(cw_precision, y_true, y_proba, options)


@metric(cw_recall, "higher", undefined="class without rows: nan, left out of the mean")
def cw_recall_score(y_true: Any, y_proba: Any, **options: Unpack[AverageOptions]) -> Any:
    """Compute the recall (sensitivity) in which each row counts by its confidence.

    :Formula: ``cwTP/(cwTP + cwFN)``
    :Use for: missed cases, above all confident misses
    :Not for: confidences that are not probabilities
    :Source: arXiv 2605.01796

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 1], or ndarray of shape (K,) if `average` is None

    %(raises_unit)s

    Warns
    -----
    UserWarning
        If no row belongs to a class: it has no recall (nan).

    Notes
    -----
    cwTP/(cwTP + cwFN), the counts of :func:`cw_confusion_matrix` [1]_. Its weighted average
    is the confidence-weighted accuracy.

    References
    ----------
    .. [1] %(csr)s

    Examples
    --------
    >>> from skselect.metrics import cw_recall_score
    >>> cw_recall_score([0, 1, 1, 0], [.25, .875, .625, .75])
    0.75
    """
    return compute_by_correctness(cw_recall, y_true, y_proba, options)


@metric(cw_specificity, "higher", undefined="no rows of other classes: nan, left out of the mean")
def cw_specificity_score(y_true: Any, y_proba: Any, **options: Unpack[AverageOptions]) -> Any:
    """Compute the specificity in which each row counts by its confidence.

    :Formula: ``cwTN/(cwTN + cwFP)``
    :Use for: how rarely other classes are taken for it
    :Not for: many classes: near 1 for all
    :Source: arXiv 2605.01796

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 1], or ndarray of shape (K,) if `average` is None

    %(raises_unit)s

    Warns
    -----
    UserWarning
        If all rows belong to one class: it has no specificity (nan).

    Notes
    -----
    cwTN/(cwTN + cwFP), the counts of :func:`cw_confusion_matrix` [1]_.

    References
    ----------
    .. [1] %(csr)s

    Examples
    --------
    >>> from skselect.metrics import cw_specificity_score
    >>> cw_specificity_score([0, 1, 1, 0], [.25, .875, .625, .75], average="binary")
    0.5
    """
    return compute_by_correctness(cw_specificity, y_true, y_proba, options)


@metric(cw_f1, "higher", undefined="class neither true nor predicted: nan, left out of the mean")
def cw_f1_score(y_true: Any, y_proba: Any, **options: Unpack[AverageOptions]) -> Any:
    """Compute the F1 score in which each row counts by its confidence.

    :Formula: ``2 cwTP/(2 cwTP + cwFP + cwFN)``
    :Use for: precision and recall in one
    :Not for: confidences that are not probabilities
    :Source: arXiv 2605.01796

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 1], or ndarray of shape (K,) if `average` is None

    %(raises_unit)s

    Warns
    -----
    UserWarning
        If a class is neither true nor predicted: it has no F1 score (nan).

    Notes
    -----
    2 cwTP/(2 cwTP + cwFP + cwFN), the counts of :func:`cw_confusion_matrix` [1]_.

    References
    ----------
    .. [1] %(csr)s

    Examples
    --------
    >>> from skselect.metrics import cw_f1_score
    >>> cw_f1_score([0, 1, 1, 0], [.25, .875, .625, .75], average="binary")
    0.8
    """
    return compute_by_correctness(cw_f1, y_true, y_proba, options)


@metric(cw_matthews, "higher", range="[-1, 1]", undefined="one true or one predicted class: nan")
def cw_matthews_corrcoef(
    y_true: Any, y_proba: Any, **options: Unpack[WeighedCountOptions]
) -> float:
    """Compute the Matthews correlation in which each row counts by its confidence.

    :Formula: ``correlation of true and predicted class, weights w c``
    :Use for: unbalanced classes
    :Not for: confidences that are not probabilities
    :Source: arXiv 2605.01796

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [-1, 1]

    %(raises_unit)s

    Warns
    -----
    UserWarning
        If all weight is on one true or one predicted class: the value is nan.

    Notes
    -----
    For two classes (cwTP cwTN - cwFP cwFN)/sqrt((cwTP + cwFP)(cwTP + cwFN)(cwTN + cwFP)
    (cwTN + cwFN)) [1]_; for more Gorodkin's extension, as in scikit-learn.

    References
    ----------
    .. [1] %(csr)s

    Examples
    --------
    >>> from skselect.metrics import cw_matthews_corrcoef
    >>> round(cw_matthews_corrcoef([0, 1, 1, 0], [.25, .875, .625, .75]), 4)
    0.5774
    """
    return compute_by_correctness(cw_matthews, y_true, y_proba, options)


@metric(
    cw_accuracy,
    "higher",
    undefined="all confidences 0: nan",
    closed_form=cw_accuracy_influence,
    registered=True,
    meaning="If each answer counts by its confidence, {share} are right.",
)
def cw_accuracy_score(y_true: Any, y_proba: Any, **options: Unpack[WeighedRowOptions]) -> float:
    """Compute the confidence-weighted accuracy: each row counts by its confidence.

    :Formula: ``sum of w c a / sum of w c``
    :Use for: whether it is surer where it is right
    :Not for: without accuracy beside it
    :Source: arXiv 2605.01796

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [0, 1]
        Above the accuracy when the classifier is surer where it is right.

    %(raises_unit)s

    Notes
    -----
    cwA = sum w c (1 - l) / sum w c (definition 4 of [1]_).

    References
    ----------
    .. [1] %(csr)s

    Examples
    --------
    >>> from skselect.metrics import cw_accuracy_score
    >>> round(cw_accuracy_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.7742
    """
    return compute_by_correctness(cw_accuracy, y_true, y_proba, options)


@metric(cw_gain, "higher", range="[-1, 1]", undefined="no errors: nan")
def cw_gain_score(y_true: Any, y_proba: Any, **options: Unpack[WeighedRowOptions]) -> float:
    """Compute the gain of cw_accuracy over the accuracy, as a share of the largest possible gain.

    :Formula: ``(cwA - acc)/(1 - min(cwA, acc))``
    :Use for: what confidence adds to accuracy
    :Not for: few errors
    :Source: arXiv 2605.01796

    Parameters
    ----------
    %(data)s
    %(options)s

    Returns
    -------
    float in [-1, 1]
        Positive when the classifier is surer where it is right; nan without errors.

    %(raises_unit)s

    Notes
    -----
    (cwA - accuracy)/(1 - min(cwA, accuracy)) [1]_, cwA as in :func:`cw_accuracy_score`.

    References
    ----------
    .. [1] %(csr)s

    Examples
    --------
    >>> from skselect.metrics import cw_gain_score
    >>> round(cw_gain_score([0, 1, 1, 0], [.1, .9, .6, .7]), 4)
    0.0968
    """
    return compute_by_correctness(cw_gain, y_true, y_proba, options)


@metric(
    cw_auc,
    "higher",
    undefined="class with no row or all rows: nan, left out of the mean",
    registered=True,
)
def cw_auc_score(
    y_true: Any,
    y_proba: Any,
    *,
    average: str | None = "macro",
    **options: Unpack[WeighedCountOptions],
) -> Any:
    """Compute the area under the confidence-weighted ROC curve, one class against the rest.

    :Formula: ``mean over classes of the AUC of p_k, weights w c``
    :Use for: ranking of classes where the model is sure
    :Not for: rating abstention: see augrc
    :Source: arXiv 2605.01796

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

    %(raises_unit)s

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
    .. [1] %(csr)s

    Examples
    --------
    >>> from skselect.metrics import cw_auc_score
    >>> round(cw_auc_score([0, 1, 1, 0], [.25, .875, .625, .75]), 4)
    0.7917
    """
    return compute_by_correctness(cw_auc, y_true, y_proba, options, average=average)


@share_options
def cw_roc_curve(
    y_true: Any, y_proba: Any, **options: Unpack[WeighedCountOptions]
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
        Descending; the first is inf, where nothing is predicted positive.

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
    predictions = score_proba(y_true, y_proba, **options).by_correctness.predictions
    remedy = "; cw_auc_score accepts any number"
    check_two_classes(predictions.classes, "cw_roc_curve", remedy)
    place = find_positive(predictions, options.get("pos_label"))
    score, positive, mass = set_apart(predictions, place, "cw_roc_curve")
    return roc_points(score, positive, mass)
