"""How often each class is recognised, before and after abstaining."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from skselect._lib.arrays import spans
from skselect._lib.checks.options import check_number, check_threshold
from skselect._lib.typing import BoolArray, FloatArray
from skselect.bounds import clopper_pearson_interval
from skselect.inference.intervals import judge_unweighted
from skselect.metrics._arguments import CountOptions, count_metric, judge_proba
from skselect.metrics._threshold import accepted_rows
from skselect.predictions.predictions import Predictions

# Kernels ---------------------------------------------------------------------------------


class Rate(NamedTuple):
    """A share of rows with its exact interval, one entry per class; nan where there are no rows."""

    n_hits: FloatArray
    n_rows: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray


def rate_classes(
    predictions: Predictions, accepted: BoolArray | None, level: float | None
) -> dict[str, dict[str, Rate]]:
    """Return the rates of each class if it answers "all" rows, and of the "accepted" ones."""
    every = np.ones(len(predictions), dtype=bool)
    in_class = _count(predictions, every)[0]
    return {
        name: _rates(predictions, rows, in_class, level)
        for name, rows in (("all", every), ("accepted", accepted))
        if rows is not None
    }


def _count(predictions: Predictions, rows: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Count, of some rows, those of each class, its answers and its right answers.

    Code -1, a class that is not known, comes last.
    """
    truth, answer, weight = predictions.y_true, predictions.y_pred, predictions.sample_weight
    n_classes = len(predictions.classes)

    def add_up(codes: Any, chosen: BoolArray) -> Any:
        return sum(
            np.bincount(
                codes[part][chosen[part]] % (n_classes + 1),
                None if weight is None else weight[part][chosen[part]],
                n_classes + 1,
            )
            for part in spans(len(codes))
        )

    return add_up(truth, rows), add_up(answer, rows), add_up(truth, rows & (truth == answer))


def _add_others(counts: FloatArray) -> FloatArray:
    """Return the sum of all other counts for each one; no rounding leaves a rest where it is 0."""
    before, after = np.cumsum(counts[:-1]), np.cumsum(counts[:0:-1])[::-1]
    return np.append(0, before) + np.append(after, 0)


def _rates(
    predictions: Predictions, rows: BoolArray, in_class: FloatArray, level: float | None
) -> dict[str, Rate]:
    """Return the rates of each class among some rows; those missed, among `in_class`: all cases."""
    true, answered, right = _count(predictions, rows)
    others, other_answers = _add_others(true), _add_others(answered)
    neither = np.maximum(others - answered + right, 0)  # sums of weights round
    counted = {
        "sensitivity": (right, true),
        "specificity": (neither, others),
        "ppv": (right, answered),
        "npv": (neither, other_answers),
        "missed": (true - right, in_class),
    }
    return {name: _rate(hits[:-1], n_rows[:-1], level) for name, (hits, n_rows) in counted.items()}


def _rate(n_hits: FloatArray, n_rows: FloatArray, level: float | None) -> Rate:
    some = n_rows > 0
    value = np.divide(n_hits, n_rows, out=np.full(len(n_hits), np.nan), where=some)
    value = np.minimum(value, 1.0)  # sums of weights round
    low = high = np.full(len(n_hits), np.nan)
    if level is not None:
        low, high = (
            np.where(some, end, np.nan) for end in clopper_pearson_interval(n_hits, n_rows, level)
        )
    return Rate(n_hits, n_rows, value, low, high)


# Public function -------------------------------------------------------------------------


@count_metric
def metrics_by_class(
    y_true: Any,
    y_proba: Any,
    *,
    threshold: float = 0.5,
    confidence_level: float | None = 0.95,
    **options: Unpack[CountOptions],
) -> pd.DataFrame:
    """Compute how often each class is recognised and missed, before and after abstaining.

    Parameters
    ----------
    %(data)s
    threshold : float, default=0.5
        Rows with confidence >= threshold are accepted.
    confidence_level : float in (0, 1) or None, default=0.95
        Of each exact interval (Clopper-Pearson). None leaves the intervals out.
    %(options)s
        Weights that are not constant need ``confidence_level=None``.

    Returns
    -------
    DataFrame
        A row per class, set of rows ("all": as if it answered every row; "accepted") and metric:
        `class`, `rows`, `metric`, `value`, `low`, `high`, and the `n_hits` and `n_rows` whose ratio
        the value is. A value without rows is nan. The metrics:

        - sensitivity: share of the rows of the class that are answered with it
        - specificity: share of the rows of other classes that are not answered with it
        - ppv: share of the answers with the class that are right
        - npv: share of the other answers whose row is not of the class
        - missed: rows of the class that get another answer, as a share of *all* rows of the
          class, those handed over included

    Raises
    ------
    ValueError
        If an argument is malformed, or intervals are asked for with weights.

    See Also
    --------
    selective_confusion_matrix : The counts.
    metrics_by_group : Any metric, for each subgroup.

    References
    ----------
    .. [1] Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the
       case of the binomial", 1934.

    Examples
    --------
    >>> from skselect.metrics import metrics_by_class
    >>> table = metrics_by_class([0, 1, 1, 0, 1], [.1, .9, .4, .7, .2], threshold=.65)
    >>> table[table["class"] == 1].query("metric in ['sensitivity', 'missed']").round(2)
        class      rows       metric  value   low  high  n_hits  n_rows
    10      1       all  sensitivity   0.33  0.01  0.91       1       3
    14      1       all       missed   0.67  0.09  0.99       2       3
    15      1  accepted  sensitivity   0.50  0.01  0.99       1       2
    19      1  accepted       missed   0.33  0.01  0.91       1       3
    """
    threshold = check_threshold(threshold)
    if confidence_level is None:
        judged = judge_proba(y_true, y_proba, **options)
    else:
        check_number("confidence_level", confidence_level, 0.0, 1.0, closed="neither")
        remedy = ", or pass confidence_level=None for values without intervals"
        judged = judge_unweighted(y_true, y_proba, remedy, **options)
    accepted = accepted_rows(judged.outcomes, threshold)
    rates = rate_classes(judged.predictions, accepted, confidence_level)
    return pd.DataFrame(
        [
            {
                "class": label, "rows": rows, "metric": name, "value": rate.value[k],
                "low": rate.low[k], "high": rate.high[k], "n_hits": rate.n_hits[k],
                "n_rows": rate.n_rows[k],
            }
            for k, label in enumerate(judged.predictions.classes.tolist())
            for rows, found in rates.items()
            for name, rate in found.items()
        ]
    )  # fmt: skip
