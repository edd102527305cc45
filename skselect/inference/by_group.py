"""Metrics of each subgroup of the rows; how often each class is recognised."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from skselect._lib.arrays import BoolArray, FloatArray, rows_of_codes, spans
from skselect._lib.checks import warn_user
from skselect._lib.checks.options import check_given, check_number, check_threshold
from skselect._lib.checks.rows import check_subgroups
from skselect._lib.keywords import CountOptions, WeighedRowOptions, share_options
from skselect.bounds._pointwise import clopper_pearson_interval
from skselect.inference.intervals import (
    FEW_ERRORS,
    Sampling,
    add_pos_label,
    count_errors,
    find_interval,
    is_shaky,
    measure,
    read_scored,
)
from skselect.metrics._evaluate import requests
from skselect.metrics._metric import MetricSpec
from skselect.metrics._rows import ScoredRows
from skselect.metrics._threshold import accepted_rows
from skselect.predictions.predictions import Predictions

_DEFAULT = ("coverage", "selective_risk", "cwsa", "augrc")


def _score(y_true: Any, y_proba: Any, level: float | None, **options: Any) -> ScoredRows:
    """Compute loss and confidence of each row; rows with weights have no intervals."""
    if level is None:
        return read_scored(y_true, y_proba, None, **options)
    check_number("confidence_level", level, 0.0, 1.0, closed="neither")
    remedy = ", or pass confidence_level=None for values without intervals"
    return read_scored(y_true, y_proba, remedy, **options)


# Subgroups -------------------------------------------------------------------------------


def _groups(frame: pd.DataFrame, exists: BoolArray) -> Iterable[tuple[str, Any, Any]]:
    """Yield all rows that exist, then those of each group; missing values form a group."""
    yield "all", "all", slice(None) if np.all(exists) else exists
    for attribute in frame.columns:
        codes, labels = pd.factorize(frame[attribute], use_na_sentinel=False)
        try:
            places = np.argsort(labels)
        except TypeError:  # labels of several kinds: in order of appearance
            places = np.arange(len(labels))
        members = rows_of_codes(np.where(exists, codes, -1), len(labels))
        for place in places:
            if len(members[place]):
                yield str(attribute), labels[place], members[place]


def tabulate_metric(
    spec: MetricSpec, part: ScoredRows, parameters: Mapping[str, Any], how: Sampling | None
) -> dict[str, Any]:
    """Return a row of the table: one metric of the rows of one subgroup. It may warn of a nan."""
    low = high = np.nan
    shaky = False
    try:
        if how is None:
            value = spec.value(part, parameters)
            n_errors = count_errors(spec, part, parameters)[1]
        else:
            found = find_interval(measure(spec, part, parameters, how))
            value, low, high, shaky = found.estimate, found.low, found.high, is_shaky(found)
            n_errors = found.n_errors
    except ValueError as error:
        if spec.of_subgroups:
            raise
        raise ValueError(f"{error} (in a subgroup of {len(part.outcomes)} rows)") from error
    weight = part.outcomes.sample_weight
    return {
        "metric": spec.name,
        "value": value,
        "low": low,
        "high": high,
        "n_rows": len(part.outcomes) if weight is None else float(np.sum(weight)),
        "n_errors": n_errors,
        "contribution": np.nan,
        "shaky": shaky,
    }


@share_options
def metrics_by_group(
    y_true: Any,
    y_proba: Any = None,
    subgroups: Any = None,
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] = _DEFAULT,
    *,
    confidence_level: float | None = 0.95,
    method: str = "analytic",
    n_resamples: int = 999,
    random_state: Any = None,
    **options: Unpack[WeighedRowOptions],
) -> pd.DataFrame:
    """Compute metrics for each subgroup, with counts and intervals, as a tidy table.

    Predictions replace `y_true` and `y_proba`:
    ``metrics_by_group(predictions, subgroups=...)``.

    Parameters
    ----------
    %(data)s
    subgroups : array-like of shape (n,), or DataFrame of shape (n, m)
        The subgroup of each row. Each column of a DataFrame is an attribute of its own. Missing
        values form a subgroup.
    metrics : iterable of str, or mapping of str to dict
        Short names as in ``skselect.metrics.SPECS``. A mapping gives the parameters of each, such
        as ``{"cwsa": {"threshold": .8}, "augrc": {}}``. "coverage_gap" and "risk_gap" compare
        the subgroups of each attribute.
    confidence_level : float in (0, 1) or None, default=0.95
        Confidence level of the intervals. None leaves them out.
    method : {"analytic", "bootstrap"}, default="analytic"
        "analytic": closed forms where there are any, else the bootstrap.
    n_resamples : int, default=999
        Draws of the bootstrap.
    random_state : int, Generator or None, default=None
        Seed of the bootstrap.
    %(options)s
        Weights that are not constant need ``confidence_level=None``.

    Returns
    -------
    DataFrame
        A row per subgroup and metric, all rows first: `attribute`, `subgroup`, `metric`,
        `value`, `low`, `high`, `n_rows` and `n_errors`, counted by weight (the accepted errors,
        for a metric at a threshold), and the `contribution` of the subgroup
        to the value of all rows: for CWSA and CWSA+ the contributions of an attribute's
        subgroups add up to it, for other metrics it is nan. A subgroup in which a metric is
        undefined has the value nan. Gaps stand last, a row per attribute with the subgroup "all";
        their exact intervals (see :func:`metric_interval`) are the same for each `method`.

    Raises
    ------
    ValueError
        If an argument is malformed, or intervals are asked for with weights or for a metric
        that has none (csr, p_risk).

    Warns
    -----
    UserWarning
        If intervals rest on fewer than 10 errors; it names the subgroups.

    Examples
    --------
    >>> from skselect.inference import metrics_by_group
    >>> table = metrics_by_group([0, 1, 1, 0], [.1, .9, .6, .7], ["f", "m", "f", "m"],
    ...                          ["selective_risk", "cwsa"], confidence_level=None)
    >>> table[["subgroup", "metric", "value", "contribution"]].round(2)
      subgroup          metric  value  contribution
    0      all  selective_risk   0.25           NaN
    1      all            cwsa   0.35          0.35
    2        f  selective_risk   0.00           NaN
    3        f            cwsa   0.50          0.25
    4        m  selective_risk   0.50           NaN
    5        m            cwsa   0.20          0.10
    """
    check_given(subgroups, "subgroups", "metrics_by_group")
    wanted = requests(metrics, {"subgroups": subgroups})
    level = 0.95 if confidence_level is None else confidence_level
    checked = Sampling.checked(method, level, n_resamples, random_state)
    scored = _score(y_true, y_proba, confidence_level, **options)
    label = options.get("pos_label")
    whole = [
        (spec, spec.choose_rows(scored), add_pos_label(spec, parameters, y_proba, label))
        for spec, parameters in wanted
    ]
    exists = scored.outcomes.weight > 0
    how = None if confidence_level is None else checked
    frame = check_subgroups(subgroups, len(exists))
    terms = {
        spec.name: spec.row_terms(rows.outcomes, **parameters)
        for spec, rows, parameters in whole
        if spec.row_terms is not None
    }
    records, distinct = [], {id(rows): rows for _, rows, _ in whole}
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # the table shows nan
        for attribute, group, members in _groups(frame, exists):
            parts = {key: rows.take(members) for key, rows in distinct.items()}  # one sort for all
            for spec, rows, parameters in whole:
                if not spec.of_subgroups:
                    found = tabulate_metric(spec, parts[id(rows)], parameters, how)
                    if spec.name in terms:
                        found["contribution"] = float(np.sum(terms[spec.name][members]))
                    records.append({"attribute": attribute, "subgroup": group} | found)
        for name, column in frame.items():
            given = {"subgroups": column[exists]}
            records += [
                {"attribute": str(name), "subgroup": "all"}
                | tabulate_metric(spec, rows.take(exists), parameters | given, how)
                for spec, rows, parameters in whole
                if spec.of_subgroups
            ]
    table = pd.DataFrame(records)
    shaky = table[table.pop("shaky")]
    if len(shaky):
        names = [f"{row.metric} of {row.subgroup}" for row in shaky.itertuples()]
        warn_user(
            f"intervals rest on fewer than {FEW_ERRORS} errors and may be far off: "
            f"{', '.join(names[:10])}{' ...' if len(names) > 10 else ''}."
        )
    return table


# Classes ---------------------------------------------------------------------------------


class Rate(NamedTuple):
    """A share of rows with its exact interval, one entry per class; nan where there are no rows."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    n_hits: FloatArray
    n_rows: FloatArray


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
    return Rate(value, low, high, n_hits, n_rows)


@share_options
def metrics_by_class(
    y_true: Any,
    y_proba: Any = None,
    *,
    threshold: float = 0.5,
    confidence_level: float | None = 0.95,
    **options: Unpack[CountOptions],
) -> pd.DataFrame:
    """Compute how often each class is recognised and missed, before and after abstaining.

    Predictions replace `y_true` and `y_proba`: ``metrics_by_class(predictions)``.

    Parameters
    ----------
    %(data)s
    threshold : float, default=0.5
        Rows with confidence >= threshold are accepted.
    confidence_level : float in (0, 1) or None, default=0.95
        Confidence level of the intervals. They are exact (Clopper-Pearson); None leaves them out.
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
          class, those deferred included

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
    >>> from skselect.inference import metrics_by_class
    >>> table = metrics_by_class([0, 1, 1, 0, 1], [.1, .9, .4, .7, .2], threshold=.65)
    >>> table[table["class"] == 1].query("metric in ['sensitivity', 'missed']").round(2)
        class      rows       metric  value   low  high  n_hits  n_rows
    10      1       all  sensitivity   0.33  0.01  0.91       1       3
    14      1       all       missed   0.67  0.09  0.99       2       3
    15      1  accepted  sensitivity   0.50  0.01  0.99       1       2
    19      1  accepted       missed   0.33  0.01  0.91       1       3
    """
    threshold = check_threshold(threshold)
    scored = _score(y_true, y_proba, confidence_level, **options)
    accepted = accepted_rows(scored.outcomes, threshold)
    rates = rate_classes(scored.predictions, accepted, confidence_level)
    records = [
        {"class": label, "rows": rows, "metric": name}
        | {column: values[k] for column, values in rate._asdict().items()}
        for k, label in enumerate(scored.predictions.classes.tolist())
        for rows, found in rates.items()
        for name, rate in found.items()
    ]
    return pd.DataFrame(records)
