"""Many metrics for one sort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from skselect import _validation as check
from skselect._typing import ConfidenceSpec, LossSpec
from skselect.curves import RiskCoverageCurve
from skselect.metrics._specs import SPECS, MetricSpec, check_parameters
from skselect.outcomes import Outcomes
from skselect.predictions import Predictions

DEFAULT_METRICS = (
    "coverage", "selective_accuracy", "cwsa_plus", "cwsa", "aurc", "eaurc", "augrc",
    "cw_accuracy", "csr", "ece",
)  # fmt: skip


def evaluate(
    predictions_or_outcomes: Predictions | Outcomes,
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] = DEFAULT_METRICS,
    *,
    confidence: ConfidenceSpec | None = None,
    loss: LossSpec = "zero_one",
) -> pd.Series:
    """Compute several metrics; the rows are sorted once.

    Parameters
    ----------
    predictions_or_outcomes : Predictions or Outcomes
        A table of predictions of any model.
    metrics : iterable of str, or mapping of str to dict
        Short names as in ``skselect.metrics.SPECS``; a mapping gives the parameters of each,
        such as ``{"cwsa_plus": {"threshold": .8}, "aurc": {}}``.
    confidence : str, callable or array of shape (n,), default=None
        For Predictions: how sure each row is. Metrics that read a probability of being right
        (csr, ece, cw_accuracy) use the largest probability instead where there is one.
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
    requested = _requested(metrics)
    source = predictions_or_outcomes
    outcomes = honest = Outcomes.of(source, confidence=confidence, loss=loss)
    if isinstance(source, Predictions) and source.y_proba is not None:
        honest = Outcomes.from_predictions(source, confidence="max_proba", loss=loss)
    curve = None
    if any(SPECS[name].needs == "curve" for name in requested):
        curve = RiskCoverageCurve.from_outcomes(outcomes)
    return pd.Series(
        {
            name: kernel_value(SPECS[name], honest if SPECS[name].reads_probability else outcomes,
                               curve, parameters)
            for name, parameters in requested.items()
        }
    )  # fmt: skip


def kernel_value(
    spec: MetricSpec,
    outcomes: Outcomes,
    curve: RiskCoverageCurve | None,
    parameters: Mapping[str, Any],
) -> float:
    """Return the metric of outcomes, or of a curve that was built from them."""
    if spec.needs == "outcomes":
        return float(spec.kernel(outcomes, **parameters))
    if curve is None:
        curve = RiskCoverageCurve.from_outcomes(outcomes)
    return float(spec.kernel(curve, **parameters))


def _requested(
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]],
) -> dict[str, Mapping[str, Any]]:
    if isinstance(metrics, str):
        metrics = [metrics]
    requested = dict(metrics) if isinstance(metrics, Mapping) else {name: {} for name in metrics}
    for name, parameters in requested.items():
        hint = " (scorers carry 'neg_', metrics do not)" if str(name).startswith("neg_") else ""
        spec = SPECS[check.check_choice(f"metrics{hint}", name, SPECS)]
        if not isinstance(parameters, Mapping):
            raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
                f"metrics: {name!r} needs a dict of parameters, such as {{'threshold': 0.7}}, "
                f"got {parameters!r}."
            )
        check_parameters(spec, parameters)
    return requested
