"""Whether confidences that users pass can be what they are taken for."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, ndtr

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, LabelArray, is_graded
from skselect._lib.checks import warn_user

#: Probability that a table whose confidences mean nothing is doubted.
LEVEL = 0.001


def doubt_confidence(
    y_true: IntArray, y_pred: IntArray, classes: LabelArray, confidence: FloatArray
) -> str:
    """Say why a confidence does not seem to be that of the answer; "" where it does.

    It is doubted where it sets two answers apart without exception and falls below one half, as the
    probability of one of them does, or where errors are surer than right answers by a rank test.
    """
    answers = _separated_answers(y_pred, len(classes), confidence)
    if answers is not None:
        low, high = classes[list(answers)].tolist()
        return (
            f"confidence: it is larger in every row answered {high!r} than in any row answered "
            f"{low!r}, so it looks like the probability of {high!r}, not of the answer. Pass that "
            f"of the answer, 1 - p where it is {low!r}."
        )
    return doubt_direction(y_true != y_pred, confidence)


def doubt_direction(wrong: BoolArray, confidence: FloatArray) -> str:
    """Say that smaller confidences seem to be surer, "" where larger ones do."""
    auroc = reversed_auroc(wrong, confidence)
    if math.isnan(auroc):
        return ""
    return (
        f"confidence: smaller values seem to be surer, since errors have larger ones than right "
        f"answers (failure AUROC {auroc:.2g}; chance alone says so of 1 table in 1,000). If it is "
        "a distance or an uncertainty, pass its negative."
    )


def _separated_answers(
    y_pred: IntArray, n_classes: int, confidence: FloatArray
) -> tuple[int, int] | None:
    """Return the answers of lower and of higher confidence, if none of two overlaps the other."""
    if n_classes != 2:
        return None
    of_second = y_pred == 1
    n_second = int(np.count_nonzero(of_second))
    if np.min(confidence) >= 0.5 or _log_chance(len(y_pred), n_second) > math.log(LEVEL):
        return None
    first = confidence[~of_second]
    second = confidence[of_second]
    if first.max() < second.min():
        return 0, 1
    if second.max() < first.min():
        return 1, 0
    return None


def _log_chance(n: int, n_chosen: int) -> float:
    """Return the log probability that some rows of n are the first or the last, by chance."""
    log_subsets = gammaln(n + 1) - gammaln(n_chosen + 1) - gammaln(n - n_chosen + 1)
    return float(math.log(2.0) - log_subsets)


def reversed_auroc(wrong: BoolArray, confidence: FloatArray) -> float:
    """Return the failure AUROC where it is below one half by a rank test, else nan.

    The test is that of Mann and Whitney, one-sided; it counts ties by half and takes the variance
    without them, which is larger.
    """
    right = np.sort(confidence[~wrong])
    errors = np.sort(confidence[wrong])
    n_pairs = len(right) * len(errors)
    if n_pairs == 0:
        return math.nan
    n_below = np.searchsorted(right, errors, side="left")
    n_up_to = np.searchsorted(right, errors, side="right")
    auroc = 1.0 - float(np.sum(n_below + n_up_to)) / 2.0 / n_pairs
    error = math.sqrt((len(wrong) + 1.0) / 12.0 / n_pairs)
    return auroc if ndtr((auroc - 0.5) / error) <= LEVEL else math.nan


def warn_of_direction(loss: FloatArray, confidence: FloatArray) -> None:
    """Warn where smaller values of a confidence of the user's own seem to be surer."""
    if is_graded(loss):
        return
    has_confidence = ~np.isnan(confidence)
    message = doubt_direction(loss[has_confidence] > 0, confidence[has_confidence])
    if message:
        warn_user(message)
