"""Many metrics at once: the rows are sorted once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from skselect._checks import shown
from skselect._checks.options import check_choice
from skselect._checks.rows import refuse_judged
from skselect._typing import ConfidenceSpec, LossSpec
from skselect.curve.curve import RiskCoverageCurve
from skselect.metrics._arguments import Judged, judge
from skselect.metrics._table import SPECS, MetricSpec, check_parameters
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions

#: What `evaluate` computes if no metrics are named.
DEFAULT_METRICS = (
    "coverage", "selective_accuracy", "cwsa_plus", "cwsa", "aurc", "eaurc", "augrc",
    "cw_accuracy", "csr", "ece",
)  # fmt: skip


def evaluate(
    predictions_or_outcomes: Predictions | Outcomes | RiskCoverageCurve,
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] = DEFAULT_METRICS,
    *,
    confidence: ConfidenceSpec | None = None,
    loss: LossSpec = "zero_one",
) -> pd.Series:
    """Compute several metrics; the rows are sorted once.

    Parameters
    ----------
    predictions_or_outcomes : Predictions, Outcomes or RiskCoverageCurve
        A table of predictions of any model, or a curve, such as that of a
        :class:`skselect.SelectiveState`.
    metrics : iterable of str, or mapping of str to dict
        Short names as in ``skselect.metrics.SPECS``; a mapping gives the parameters of each,
        such as ``{"cwsa_plus": {"threshold": .8}, "aurc": {}}``.
    confidence : str, callable or array of shape (n,), default=None
        For Predictions: how sure each row is. Metrics that need a probability of being right
        (csr, ece, cw_accuracy) use that of the predicted class in place of a named confidence;
        values of an array or a callable are used as they are.
    loss : {"zero_one"} or callable, default="zero_one"
        For Predictions: how wrong each row is.

    Returns
    -------
    Series
        One value per metric.

    Raises
    ------
    ValueError
        If a name is unknown or needs a parameter that is missing.

    Examples
    --------
    >>> from skselect import Predictions, evaluate
    >>> predictions = Predictions.from_proba([0, 1, 1], [[.9, .1], [.2, .8], [.6, .4]])
    >>> evaluate(predictions, {"aurc": {}, "cwsa_plus": {"threshold": .7}}).round(3)
    aurc         0.111
    cwsa_plus    0.500
    dtype: float64
    """
    wanted = requests(metrics)
    if isinstance(predictions_or_outcomes, RiskCoverageCurve):
        refuse_judged(confidence, loss)
        rows = Judged(predictions_or_outcomes)
    else:
        rows = judge(predictions_or_outcomes, confidence=confidence, loss=loss)
    return pd.Series({spec.name: kernel_value(spec, rows, known) for spec, known in wanted})


def kernel_value(spec: MetricSpec, judged: Judged, parameters: Mapping[str, Any]) -> float:
    """Return the metric of rows with the confidence that it reads."""
    if spec.needs == "predictions" and judged.given is None:
        raise ValueError(
            f"metrics: {spec.name!r} reads classes and their probabilities, which Outcomes do not "
            "hold; pass Predictions.from_proba(y_true, y_proba)."
        )
    return float(spec.kernel(getattr(spec.choose_rows(judged), spec.needs), **parameters))


def requests(
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]],
) -> list[tuple[MetricSpec, dict[str, Any]]]:
    """Return what is known about each metric that was asked for, and its parameters."""
    if isinstance(metrics, str):
        metrics = [metrics]
    wanted = dict(metrics) if isinstance(metrics, Mapping) else {name: {} for name in metrics}
    return [request(name, parameters, "metrics") for name, parameters in wanted.items()]


def request(
    metric: Any, parameters: Mapping[str, Any] | None = None, argument: str = "metric"
) -> tuple[MetricSpec, dict[str, Any]]:
    """Return what is known about a metric that was asked for by name, and its parameters."""
    hint = " (scorers carry 'neg_', metrics do not)" if str(metric).startswith("neg_") else ""
    spec = SPECS[check_choice(f"{argument}{hint}", metric, SPECS)]
    parameters = {} if parameters is None else parameters
    if not isinstance(parameters, Mapping):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"{argument}: {metric!r} needs a dict of parameters, such as {{'threshold': 0.7}}, "
            f"got {shown(parameters)}."
        )
    check_parameters(spec, parameters)
    return spec, dict(parameters)
