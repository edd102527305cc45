"""Metrics of each subgroup of the rows; how often each class is recognised."""

from __future__ import annotations

import math
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
    low = math.nan
    high = math.nan
    shaky = False
    try:
        if how is None:
            value = spec.value(part, parameters)
            _, n_errors = count_errors(spec, part, parameters)
        else:
            interval = find_interval(measure(spec, part, parameters, how))
            value = interval.estimate
            low = interval.low
            high = interval.high
            n_errors = interval.n_errors
            shaky = is_shaky(interval)
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
        "contribution": math.nan,
        "shaky": shaky,
    }


class Request(NamedTuple):
    """A metric that was asked for, with the rows that it reads."""

    spec: MetricSpec
    rows: ScoredRows
    parameters: dict[str, Any]


def _tabulate_groups(
    requested: list[Request], frame: pd.DataFrame, exists: BoolArray, how: Sampling | None
) -> list[dict[str, Any]]:
    """Return a record per subgroup and metric, all rows first."""
    terms = {}
    tables = {}
    for request in requested:
        tables[id(request.rows)] = request.rows
        if request.spec.row_terms is not None:
            terms[request.spec.name] = request.spec.row_terms(
                request.rows.outcomes, **request.parameters
            )
    records = []
    for attribute, group, members in _groups(frame, exists):
        # One sort for all metrics that read the same rows.
        parts = {key: rows.take(members) for key, rows in tables.items()}
        for request in requested:
            if request.spec.of_subgroups:
                continue
            part = parts[id(request.rows)]
            record = tabulate_metric(request.spec, part, request.parameters, how)
            if request.spec.name in terms:
                record["contribution"] = float(np.sum(terms[request.spec.name][members]))
            records.append({"attribute": attribute, "subgroup": group} | record)
    return records


def _tabulate_gaps(
    requested: list[Request], frame: pd.DataFrame, exists: BoolArray, how: Sampling | None
) -> list[dict[str, Any]]:
    """Return a record per attribute and metric that compares its subgroups."""
    records = []
    for attribute, column in frame.items():
        for spec, rows, parameters in requested:
            if spec.of_subgroups:
                parameters_of_gap = parameters | {"subgroups": column[exists]}
                record = tabulate_metric(spec, rows.take(exists), parameters_of_gap, how)
                records.append({"attribute": str(attribute), "subgroup": "all"} | record)
    return records


def _warn_if_shaky(shaky: pd.DataFrame) -> None:
    """Warn of the rows of a table whose intervals rest on few errors."""
    if len(shaky) == 0:
        return
    names = [f"{row.metric} of {row.subgroup}" for row in shaky.itertuples()]
    listed = ", ".join(names[:10])
    if len(names) > 10:
        listed += " ..."
    warn_user(
        f"intervals rest on fewer than {FEW_ERRORS} errors or right answers and may be far off: "
        f"{listed}."
    )


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
        If intervals rest on fewer than 10 errors or right answers; it names the subgroups.

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
    specs = requests(metrics, {"subgroups": subgroups})
    how: Sampling | None = Sampling.checked(
        method, 0.95 if confidence_level is None else confidence_level, n_resamples, random_state
    )
    scored = _score(y_true, y_proba, confidence_level, **options)
    requested = []
    for spec, named_parameters in specs:
        parameters = add_pos_label(spec, named_parameters, y_proba, options.get("pos_label"))
        requested.append(Request(spec, spec.choose_rows(scored), parameters))
    exists = scored.outcomes.weight > 0
    if confidence_level is None:
        how = None
    frame = check_subgroups(subgroups, len(exists))
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # the table shows nan
        records = _tabulate_groups(requested, frame, exists, how)
        records += _tabulate_gaps(requested, frame, exists, how)
    table = pd.DataFrame(records)
    _warn_if_shaky(table[table.pop("shaky")])
    return table


# Classes ---------------------------------------------------------------------------------


class Rate(NamedTuple):
    """A share of rows with its exact interval, one entry per class; nan where there are no rows."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    n_hits: FloatArray
    n_rows: FloatArray

    def of_class(self, k: int) -> dict[str, float]:
        """Return the entries of one class by name."""
        return {name: values[k] for name, values in self._asdict().items()}


def rate_classes(
    predictions: Predictions, accepted: BoolArray | None, level: float | None
) -> dict[str, dict[str, Rate]]:
    """Return the rates of each class if it answers "all" rows, and of the "accepted" ones."""
    every = np.ones(len(predictions), dtype=bool)
    in_class, _, _ = _count(predictions, every)
    rates = {"all": _rates(predictions, every, in_class, level)}
    if accepted is not None:
        rates["accepted"] = _rates(predictions, accepted, in_class, level)
    return rates


def _count(predictions: Predictions, rows: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Count, of some rows, those of each class, its answers and its right answers.

    Code -1, a class that is not known, comes last.
    """
    truth = predictions.y_true
    answer = predictions.y_pred
    weight = predictions.sample_weight
    n_codes = len(predictions.classes) + 1

    def add_up(codes: Any, chosen: BoolArray) -> Any:
        total: Any = 0
        for part in spans(len(codes)):
            is_chosen = chosen[part]
            chosen_codes = codes[part][is_chosen] % n_codes
            chosen_weight = None if weight is None else weight[part][is_chosen]
            total = total + np.bincount(chosen_codes, chosen_weight, n_codes)
        return total

    return add_up(truth, rows), add_up(answer, rows), add_up(truth, rows & (truth == answer))


def _add_others(counts: FloatArray) -> FloatArray:
    """Return the sum of all other counts for each one; no rounding leaves a rest where it is 0."""
    before = np.cumsum(counts[:-1])
    after = np.cumsum(counts[:0:-1])[::-1]
    return np.append(0, before) + np.append(after, 0)


def _rates(
    predictions: Predictions, rows: BoolArray, in_class: FloatArray, level: float | None
) -> dict[str, Rate]:
    """Return the rates of each class among some rows; those missed, among `in_class`: all cases."""
    true, answered, right = _count(predictions, rows)
    others = _add_others(true)
    # Sums of weights round.
    neither = np.maximum(others - answered + right, 0)

    def rate(n_hits: FloatArray, n_rows: FloatArray) -> Rate:
        return _rate(n_hits[:-1], n_rows[:-1], level)

    return {
        "sensitivity": rate(right, true),
        "specificity": rate(neither, others),
        "ppv": rate(right, answered),
        "npv": rate(neither, _add_others(answered)),
        "missed": rate(true - right, in_class),
    }


def _rate(n_hits: FloatArray, n_rows: FloatArray, level: float | None) -> Rate:
    has_rows = n_rows > 0
    value = np.divide(n_hits, n_rows, out=np.full(len(n_hits), np.nan), where=has_rows)
    # Sums of weights round.
    value = np.minimum(value, 1.0)
    low = np.full(len(n_hits), np.nan)
    high = low
    if level is not None:
        low, high = clopper_pearson_interval(n_hits, n_rows, level)
        low = np.where(has_rows, low, np.nan)
        high = np.where(has_rows, high, np.nan)
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
    accepted = accepted_rows(scored.at_threshold.outcomes, threshold)
    rates = rate_classes(scored.predictions, accepted, confidence_level)
    records = []
    for k, label in enumerate(scored.predictions.classes.tolist()):
        for rows, rates_of_rows in rates.items():
            for name, rate in rates_of_rows.items():
                record = {"class": label, "rows": rows, "metric": name}
                records.append(record | rate.of_class(k))
    return pd.DataFrame(records)
