"""The confusion matrix of a classifier that may abstain."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from skselect._lib.arrays import SPAN
from skselect._lib.checks.options import check_threshold
from skselect._lib.typing import BoolArray, FloatArray, IntArray
from skselect.metrics._arguments import CountOptions, count_metric, judge_proba
from skselect.metrics._threshold import accepted_rows

# Kernel ----------------------------------------------------------------------------------


def count_decisions(
    y_true: IntArray,
    y_pred: IntArray,
    accepted: BoolArray | None,
    n_classes: int,
    weight: FloatArray | None = None,
) -> Any:
    """Return the rows of each true class by their answer, those handed over in a last column.

    Codes of true classes that are not known are -1; if there are any, they have a last line.
    `accepted` None: it answers every row.
    """
    n = n_classes + 1
    counts = np.zeros(n * n, np.int64 if weight is None else np.float64)
    step = max(SPAN, n * n)
    for start in range(0, len(y_true), step):
        rows = slice(start, start + step)
        answers = y_pred[rows]
        if accepted is not None:
            answers = np.where(accepted[rows], answers, n_classes)
        truth = np.where(y_true[rows] < 0, n_classes, y_true[rows])
        counts += np.bincount(truth * n + answers, None if weight is None else weight[rows], n * n)
    table = counts.reshape(n, n)
    return table if np.any(table[-1]) else table[:-1]


# Public function -------------------------------------------------------------------------


@count_metric
def selective_confusion_matrix(
    y_true: Any, y_proba: Any, *, threshold: float = 0.5, **options: Unpack[CountOptions]
) -> Any:
    """Compute the confusion matrix of the accepted rows, with a column for those handed over.

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
    judged = judge_proba(y_true, y_proba, **options)
    rows = judged.predictions
    accepted = accepted_rows(judged.outcomes, threshold)
    return count_decisions(
        rows.y_true, rows.y_pred, accepted, len(rows.classes), rows.sample_weight
    )
