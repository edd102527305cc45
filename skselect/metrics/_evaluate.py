"""Many metrics at once: the rows are sorted once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Unpack

import pandas as pd

from skselect._lib.arrays import ConfidenceSpec, LossSpec
from skselect._lib.checks import shown
from skselect._lib.checks.options import check_choice
from skselect._lib.checks.rows import refuse_own_confidence
from skselect._lib.keywords import ClassOptions, share_options
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import ArgumentError
from skselect.metrics import (
    _areas,
    _calibration_errors,
    _calibration_tests,
    _cau,
    _confidence_weighted,
    _csr,
    _error_detection,
    _threshold,
)
from skselect.metrics._metric import ROWS, MetricSpec
from skselect.metrics._rows import ScoredRows, score_rows
from skselect.predictions.direction import warn_of_direction
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions, read_rows

#: The modules of metrics.
FAMILIES = [_threshold, _areas, _error_detection, _confidence_weighted, _csr]
FAMILIES += [_calibration_errors, _calibration_tests, _cau]
_ROWS = [spec for family in FAMILIES for spec in ROWS[family.__name__]]

#: All metrics by their short name; those for comparison with published values come last.
SPECS: dict[str, MetricSpec] = {
    spec.name: spec
    for spec in sorted(_ROWS, key=lambda spec: spec.for_comparison)
    if not spec.of_subgroups
}
#: Those that compare subgroups.
GAPS: dict[str, MetricSpec] = {spec.name: spec for spec in _ROWS if spec.of_subgroups}

#: What `evaluate` computes if no metrics are named.
DEFAULT_METRICS = (
    "coverage", "selective_accuracy", "cwsa_plus", "cwsa", "aurc", "eaurc", "augrc",
    "cw_accuracy", "csr", "ece",
)  # fmt: skip


@share_options
def evaluate(
    y_true: Any,
    y_proba: Any = None,
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] = DEFAULT_METRICS,
    *,
    confidence: ConfidenceSpec | None = None,
    loss: LossSpec = "zero_one",
    **options: Unpack[ClassOptions],
) -> pd.Series:
    """Compute several metrics; the rows are sorted once.

    Parameters
    ----------
    y_true : array-like of shape (n,), Predictions, Outcomes or RiskCoverageCurve
        True labels. A table of predictions of any model brings them, and a curve, such as that of
        a :class:`skselect.SelectiveState`, holds what is known of them.
    y_proba : array-like of shape (n, K) or (n,)
        Class probabilities. A table or a curve needs none: names of metrics
        may follow it, as in ``evaluate(predictions, ["aurc"])``.
    metrics : iterable of str, or mapping of str to dict
        Short names as in ``skselect.metrics.SPECS``. A mapping gives the parameters of each, such
        as ``{"cwsa_plus": {"threshold": .8}, "aurc": {}}``.
    confidence : str, callable or array of shape (n,), default=None
        How sure the classifier is of each row. Not needed where the rows say it. Metrics that need
        a probability of being right (csr, ece, cw_accuracy) use that of the predicted class in
        place of a named confidence; values of an array or a callable are used as they are.
    loss : {"zero_one"} or callable, default="zero_one"
        How wrong an answer is. Not needed where the rows say it.
    %(options)s

    Returns
    -------
    Series
        One value per metric.

    Raises
    ------
    ValueError
        If a name is unknown or needs a parameter that is missing, or the rows are malformed.

    Examples
    --------
    >>> from skselect import evaluate
    >>> y_true, y_proba = [0, 1, 1], [[.9, .1], [.2, .8], [.6, .4]]
    >>> evaluate(y_true, y_proba, {"aurc": {}, "cwsa_plus": {"threshold": .7}}).round(3)
    aurc         0.111
    cwsa_plus    0.500
    dtype: float64
    """
    tables = (Predictions, Outcomes, RiskCoverageCurve)
    follows_rows = isinstance(y_true, tables) or _are_names(y_proba)
    if follows_rows and y_proba is not None:
        if metrics is not DEFAULT_METRICS:
            raise ValueError(
                "metrics: they are given twice, in the place of y_proba and by name; "
                "leave one of them out."
            )
        metrics = y_proba
        y_proba = None
    refuse_classifier(y_true, "evaluate")
    requested = requests(metrics)
    rows = (y_true,) if y_proba is None else (y_true, y_proba)
    source = read_rows(rows, tables, **options)
    if isinstance(source, RiskCoverageCurve):
        refuse_own_confidence(confidence, loss)
        source.refuse_undecided("A metric")
        scored = ScoredRows(source)
    else:
        scored = score_rows(source, confidence=confidence, loss=loss)
    is_named = confidence is None or isinstance(confidence, str)
    if isinstance(source, Outcomes) or not is_named:
        warn_of_direction(scored.outcomes.loss, scored.outcomes.confidence)
    values = {spec.name: spec.value(scored, parameters) for spec, parameters in requested}
    return pd.Series(values)


def refuse_classifier(y_true: Any, function: str) -> None:
    """Refuse a classifier in the place of the labels."""
    if hasattr(y_true, "predict_proba"):
        raise ValueError(
            f"y_true must be the true labels, got {type(y_true).__name__}; call "
            f"{function}(y, classifier.predict_proba(X))."
        )


def _are_names(values: Any) -> bool:
    """Tell names of metrics from probabilities; a data frame would list its columns."""
    if not isinstance(values, Collection) or hasattr(values, "shape"):
        return False
    return all(isinstance(name, str) for name in values)


def requests(
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]],
    gaps: Mapping[str, Any] | None = None,
) -> list[tuple[MetricSpec, dict[str, Any]]]:
    """Return what is known about each metric that was asked for, and its parameters."""
    if isinstance(metrics, Mapping):
        return [request(name, known, "metrics", gaps) for name, known in metrics.items()]
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        metrics = [metrics]
    return [request(name, None, "metrics", gaps) for name in metrics]


def request(
    metric: Any,
    parameters: Mapping[str, Any] | None = None,
    argument: str = "metric",
    gaps: Mapping[str, Any] | None = None,
) -> tuple[MetricSpec, dict[str, Any]]:
    """Return what is known about a metric that was asked for by name, and its parameters.

    `gaps` are parameters that metrics of subgroups have; None refuses these metrics.
    """
    specs = SPECS if gaps is None else SPECS | GAPS
    hint = ""
    if gaps is None and str(metric) in GAPS:
        hint = " (metrics_by_group and metric_interval compare subgroups)"
    without_sign = str(metric).removeprefix("neg_")
    if without_sign in specs and metric not in specs:
        raise ArgumentError(
            argument, f"{argument}: {metric!r} is a scorer; the metric is {without_sign!r}."
        )
    if argument == "metric" and not isinstance(metric, str):
        raise ArgumentError(
            "metric",
            "metric must be one name, such as 'augrc', with its parameters in metric_params=, got "
            f"{shown(metric)}.",
        )
    spec = specs[check_choice(f"{argument}{hint}", metric, specs)]
    if parameters is None:
        parameters = {}
    if not isinstance(parameters, Mapping):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"{argument}: {metric!r} needs a dict of parameters, such as {{'threshold': 0.7}}, "
            f"got {shown(parameters)}."
        )
    if spec.of_subgroups:
        if gaps and "subgroups" in parameters:
            raise ValueError(
                f"{argument}: {metric!r} reads the argument subgroups; leave them out of its "
                "parameters."
            )
        parameters = dict(parameters) | dict(gaps or {})
    spec.check_parameters(parameters)
    return spec, dict(parameters)


def check_direction(parameters: Mapping[str, Any]) -> None:
    """Refuse an area under a risk: the table says that a larger area is better."""
    along = parameters.get("metric")
    if along in _areas.CURVE_METRICS and not SPECS[along].greater_is_better:
        raise ValueError(
            f"metric={along!r}: more of this area is worse; use 'selective_accuracy' or the metric "
            "'augrc' where models are ranked."
        )
