"""Many metrics for one sort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from skselect._checks.arrays import shown
from skselect._checks.options import check_choice
from skselect._checks.rows import refuse_judged
from skselect._typing import ConfidenceSpec, FloatArray, LossSpec
from skselect.curve.curve import RiskCoverageCurve
from skselect.metrics._table import SPECS, MetricSpec, check_parameters
from skselect.predictions.confidence import claimed_confidence, confidence_of
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
        For Predictions: how sure each row is. Metrics that read a probability of being right
        (csr, ece, cw_accuracy) take that of the answer instead of a named confidence; the
        values of an array or a callable they read as they are.
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
    own: Judged | JudgedCurve
    if isinstance(predictions_or_outcomes, RiskCoverageCurve):
        refuse_judged(confidence, loss)
        own = JudgedCurve(predictions_or_outcomes)
    else:
        own = judge(predictions_or_outcomes, confidence=confidence, loss=loss)
    return pd.Series({spec.name: kernel_value(spec, own, known) for spec, known in wanted})


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows in every form that a kernel may need.

    Parameters
    ----------
    outcomes : Outcomes
    predictions : Predictions or None
        None: only outcomes are known.
    claim : str, ndarray of shape (n,) or None
        The chance of being right that each answer claims. None: the confidence of `outcomes`.
    """

    outcomes: Outcomes
    predictions: Predictions | None = None
    claim: ConfidenceSpec | None = None

    @cached_property
    def curve(self) -> RiskCoverageCurve:
        """The outcomes, sorted when first asked for."""
        return RiskCoverageCurve.from_outcomes(self.outcomes)

    @cached_property
    def honest(self) -> Judged:
        """The same rows with what they claim as confidence."""
        if self.predictions is None or self.claim is None:
            return self
        claim = confidence_of(self.predictions, self.claim)
        if np.array_equal(claim, self.outcomes.confidence):
            return self  # curve and all
        outcomes = replace(self.outcomes, confidence=claim)
        return Judged(outcomes, replace(self.predictions, confidence=claim))

    def read_by(self, spec: MetricSpec) -> Judged:
        """Return the rows with the confidence that a metric goes by: their own, or the claim."""
        return self.honest if spec.reads_probability else self


@dataclass(frozen=True, eq=False)
class JudgedCurve:
    """What is left of judged rows when only their curve is known.

    Parameters
    ----------
    curve : RiskCoverageCurve
    """

    curve: RiskCoverageCurve
    predictions: None = None

    @cached_property
    def outcomes(self) -> Outcomes:
        """The rows of each confidence, right or wrong, as one weighted row."""
        return self.curve.to_outcomes()

    def read_by(self, spec: MetricSpec) -> JudgedCurve:  # noqa: ARG002
        """Return the curve, which knows one confidence only."""
        return self


def judge(
    source: Predictions | Outcomes,
    *,
    confidence: ConfidenceSpec | None = None,
    loss: LossSpec = "zero_one",
    claim: FloatArray | None = None,
) -> Judged:
    """Judge each row; `claim` is the chance of being right, where it is known to be another."""
    outcomes = Outcomes.of(source, confidence=confidence, loss=loss)
    if not isinstance(source, Predictions):
        return Judged(outcomes)
    claimed = claimed_confidence(source, confidence) if claim is None else claim
    if confidence is not None:
        source = replace(source, confidence=outcomes.confidence)
    return Judged(outcomes, source, None if claimed is confidence else claimed)


def kernel_value(
    spec: MetricSpec, judged: Judged | JudgedCurve, parameters: Mapping[str, Any]
) -> float:
    """Return the metric of judged rows."""
    source = getattr(judged.read_by(spec), spec.needs)
    if source is None:
        raise ValueError(
            f"metrics: {spec.name!r} reads classes and their probabilities, which Outcomes do not "
            "hold; pass Predictions.from_proba(y_true, y_proba)."
        )
    return float(spec.kernel(source, **parameters))


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
