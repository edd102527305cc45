"""Metrics of each subgroup of the rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Unpack

import numpy as np
import pandas as pd

from skselect._lib.checks import warn_user
from skselect._lib.checks.options import check_choice, check_count, check_generator, check_number
from skselect._lib.checks.rows import check_subgroups
from skselect._lib.typing import BoolArray
from skselect.inference.intervals import (
    FEW_ERRORS,
    add_pos_label,
    count_errors,
    find_interval,
    is_shaky,
    judge_unweighted,
    measure,
)
from skselect.metrics._arguments import DoorOptions, Judged, claim_metric, judge_proba
from skselect.metrics._evaluate import kernel_value, requests
from skselect.metrics._table import MetricSpec

_DEFAULT = ("coverage", "selective_risk", "cwsa", "augrc")

# Kernels ---------------------------------------------------------------------------------


def _groups(subgroups: Any, n: int) -> Iterable[tuple[str, Any, BoolArray]]:
    """Yield all rows, then each group of each attribute; missing values form a group."""
    yield "all", "all", np.ones(n, dtype=bool)
    frame = check_subgroups(subgroups, n)
    for attribute in frame.columns:
        codes, labels = pd.factorize(frame[attribute], use_na_sentinel=False)
        try:
            places = np.argsort(labels)
        except TypeError:  # labels of several kinds: in order of appearance
            places = np.arange(len(labels))
        for place in places:
            yield str(attribute), labels[place], codes == place


def _record(
    spec: MetricSpec,
    whole: Judged,
    parameters: Mapping[str, Any],
    rows: BoolArray,
    method: str,
    how: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a row of the table: one metric of one subgroup."""
    part = whole.take(rows)
    low = high = np.nan
    shaky = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the table shows nan
            if how["level"] is None:
                value = kernel_value(spec, part, parameters)
            else:
                found = find_interval(measure(spec, part, parameters, method), **how)
                value, low, high, shaky = found.estimate, found.low, found.high, is_shaky(found)
    except ValueError as error:
        raise ValueError(f"{error} (in a subgroup of {int(np.sum(rows))} rows)") from error
    contribution = np.nan
    if spec.row_terms is not None:
        contribution = float(np.sum(spec.row_terms(whole.outcomes, **parameters)[rows]))
    weight = part.outcomes.sample_weight
    return {
        "metric": spec.name,
        "value": value,
        "low": low,
        "high": high,
        "n_rows": len(part.outcomes) if weight is None else float(np.sum(weight)),
        "n_errors": count_errors(spec, part, parameters),
        "contribution": contribution,
        "shaky": shaky,
    }


# Public function -------------------------------------------------------------------------


@claim_metric
def metrics_by_group(
    y_true: Any,
    y_proba: Any,
    subgroups: Any,
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] = _DEFAULT,
    *,
    confidence_level: float | None = 0.95,
    method: str = "analytic",
    n_resamples: int = 999,
    random_state: Any = None,
    **options: Unpack[DoorOptions],
) -> pd.DataFrame:
    """Compute metrics for each subgroup, with counts and intervals, as a tidy table.

    Parameters
    ----------
    %(data)s
    subgroups : array-like of shape (n,), or DataFrame of shape (n, m)
        The subgroup of each row; each column of a DataFrame is an attribute of its own.
        Missing values form a subgroup.
    metrics : iterable of str, or mapping of str to dict
        Short names as in ``skselect.metrics.SPECS``; a mapping gives the parameters of each,
        such as ``{"cwsa": {"threshold": .8}, "augrc": {}}``.
    confidence_level : float in (0, 1) or None, default=0.95
        None leaves the intervals out.
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
        undefined has the value nan.

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
    >>> from skselect.metrics import metrics_by_group
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
    wanted = requests(metrics)
    check_choice("method", method, ["analytic", "bootstrap"])
    check_count("n_resamples", n_resamples, 2)
    rng = check_generator(random_state)
    if confidence_level is None:
        judged = judge_proba(y_true, y_proba, **options)
    else:
        check_number("confidence_level", confidence_level, 0.0, 1.0, closed="neither")
        remedy = ", or pass confidence_level=None for values without intervals"
        judged = judge_unweighted(y_true, y_proba, remedy, **options)
    whole = [
        (
            spec,
            spec.choose_rows(judged),
            add_pos_label(spec, parameters, y_proba, options.get("pos_label")),
        )
        for spec, parameters in wanted
    ]
    exists = judged.outcomes.weight > 0
    how = {"level": confidence_level, "n_resamples": n_resamples, "rng": rng}
    records = [
        {"attribute": attribute, "subgroup": label} | _record(*metric, rows & exists, method, how)
        for attribute, label, rows in _groups(subgroups, len(exists))
        if np.any(rows & exists)
        for metric in whole
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
