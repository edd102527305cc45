"""How often the classifier is right at each confidence: the curve behind calibration errors."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import pandas as pd

from skselect import _validation as check
from skselect.bounds import clopper_pearson_interval
from skselect.metrics._binned_errors import bin_sums
from skselect.metrics._door import DoorOptions, claim_metric, claimed_outcomes_of
from skselect.outcomes import Outcomes


def reliability(
    outcomes: Outcomes,
    n_bins: int = 15,
    strategy: str = "quantile",
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    """Return mean confidence, accuracy with its interval, and share of each filled bin."""
    level = check.check_number("confidence_level", confidence_level, 0.0, 1.0, closed="neither")
    c, loss, weight = outcomes.confidence, outcomes.loss, outcomes.sample_weight
    check.check_unit_confidence(c, "reliability_curve")
    sure, right, size = bin_sums(c, weight, lambda r: [c[r], 1.0 - loss[r], None], n_bins, strategy)
    filled = size > 0
    sure, right, size = sure[filled], right[filled], size[filled]
    low, high = np.full((2, len(size)), np.nan)
    if check.are_constant(weight) and not check.is_graded(loss):
        unit = 1.0 if weight is None else weight[0]
        right_rows, rows = np.round(right / unit), np.round(size / unit)
        low, high = clopper_pearson_interval(right_rows, rows, level)
    return pd.DataFrame(
        {
            "confidence": sure / size,
            "accuracy": right / size,
            "low": low,
            "high": high,
            "share": size / np.sum(size),
        }
    )


@claim_metric
def reliability_curve(
    y_true: Any,
    y_proba: Any,
    *,
    n_bins: int = 15,
    strategy: str = "quantile",
    confidence_level: float = 0.95,
    **options: Unpack[DoorOptions],
) -> pd.DataFrame:
    """Compute how often it is right at each confidence.

    Parameters
    ----------
    %(data)s
    n_bins : int, default=15
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal weight, or of equal width; equal confidences are never parted.
    confidence_level : float in (0, 1), default=0.95
        Of the interval for the accuracy of a bin.
    %(options)s

    Returns
    -------
    DataFrame
        A row per bin that holds rows, by rising confidence: mean `confidence`, `accuracy`, its
        exact binomial interval from `low` to `high`, and the `share` of all rows.

    Raises
    ------
    ValueError
        If a confidence is outside [0, 1], or an argument is malformed.

    See Also
    --------
    skselect.ReliabilityDisplay : Draws it.
    expected_calibration_error : The mean distance to the diagonal.

    Notes
    -----
    The interval takes the rows of a bin for independent draws with one chance of being right;
    it is nan for weights that are not constant and for graded losses. The intervals hold one
    by one, not all at once.

    References
    ----------
    .. [1] Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case
       of the binomial", 1934.

    Examples
    --------
    >>> from skselect.metrics import reliability_curve
    >>> reliability_curve([0, 1, 1, 0], [.1, .9, .6, .7], n_bins=2).round(2)
       confidence  accuracy   low  high  share
    0        0.65       0.5  0.01  0.99    0.5
    1        0.90       1.0  0.16  1.00    0.5
    """
    return reliability(
        claimed_outcomes_of(y_true, y_proba, **options), n_bins, strategy, confidence_level
    )
