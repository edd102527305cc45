"""Whether confidences that users pass can be what they are taken for."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, ndtr

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, LabelArray, spans

#: Probability that a table whose confidences mean nothing is doubted.
LEVEL = 0.001
#: In so many intervals confidences are counted before they are sorted.
_INTERVALS = 4096


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
    return describe_direction(reversed_auroc(wrong, confidence))


def describe_direction(auroc: float) -> str:
    """Say what a failure AUROC below one half means, "" for nan."""
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
    confidence_of_first = confidence[~of_second]
    confidence_of_second = confidence[of_second]
    if confidence_of_first.max() < confidence_of_second.min():
        return 0, 1
    if confidence_of_second.max() < confidence_of_first.min():
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
    n_errors = int(np.count_nonzero(wrong))
    n_pairs = n_errors * (len(wrong) - n_errors)
    if n_pairs == 0:
        return math.nan
    error = math.sqrt((len(wrong) + 1.0) / 12.0 / n_pairs)
    if not is_low(_count_surer(wrong, confidence) / n_pairs, error):
        return math.nan
    right = np.sort(confidence[~wrong])
    errors = np.sort(confidence[wrong])
    n_below = np.searchsorted(right, errors, side="left")
    n_up_to = np.searchsorted(right, errors, side="right")
    auroc = 1.0 - float(np.sum(n_below + n_up_to)) / 2.0 / n_pairs
    return auroc if is_low(auroc, error) else math.nan


def is_low(auroc: float, error: float) -> bool:
    """Tell whether a failure AUROC is below one half by the test, for a standard error."""
    return bool(ndtr((auroc - 0.5) / error) <= LEVEL)


def _count_surer(wrong: BoolArray, confidence: FloatArray) -> float:
    """Return in how many pairs, at least, the right answer is surer than the error.

    Rows are counted in equal intervals, without a sort; pairs within an interval are left out.
    """
    low = float(confidence.min())
    width = float(confidence.max()) - low
    scale = _INTERVALS / max(width, 1e-300)
    if not 0.0 < scale * width < math.inf:
        return 0.0
    n_rows = np.zeros(_INTERVALS + 1, dtype=np.int64)
    n_errors = np.zeros(_INTERVALS + 1, dtype=np.int64)
    for rows in spans(len(confidence)):
        # The last interval takes its end, too.
        interval = ((confidence[rows] - low) * scale).astype(np.int64)
        n_rows += np.bincount(interval, minlength=_INTERVALS + 1)
        n_errors += np.bincount(interval[wrong[rows]], minlength=_INTERVALS + 1)
    n_right = n_rows - n_errors
    n_errors_below = np.cumsum(n_errors) - n_errors
    return float(np.sum(n_right * n_errors_below))
