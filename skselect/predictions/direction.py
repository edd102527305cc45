"""Whether smaller confidences are surer, where rows come without labels: outcomes and curves."""

from __future__ import annotations

import math

import numpy as np

from skselect._lib.arrays import BoolArray, FloatArray, is_graded
from skselect._lib.checks import warn_user
from skselect.predictions.doubts import describe_direction, doubt_direction, is_low


def find_direction_doubt(
    loss: FloatArray, confidence: FloatArray, unjudged: BoolArray | None = None
) -> str:
    """Say that smaller values of a confidence seem to be surer; "" for losses between 0 and 1."""
    if is_graded(loss):
        return ""
    wrong = loss > 0
    counts = ~np.isnan(confidence)
    if unjudged is not None:
        counts &= ~unjudged
    if not np.all(counts):  # else no copy of the rows
        wrong = wrong[counts]
        confidence = confidence[counts]
    return doubt_direction(wrong, confidence)


def doubt_counts(auroc: float, n_right: float, n_errors: float) -> str:
    """Say that smaller confidences seem to be surer, by a failure AUROC and numbers of rows."""
    error = math.sqrt((n_right + n_errors + 1.0) / 12.0 / (n_right * n_errors))
    return describe_direction(auroc) if is_low(auroc, error) else ""


def warn_of_direction(
    loss: FloatArray, confidence: FloatArray, unjudged: BoolArray | None = None
) -> None:
    """Warn where smaller values of a confidence of the user's own seem to be surer."""
    message = find_direction_doubt(loss, confidence, unjudged)
    if message:
        warn_user(message)
