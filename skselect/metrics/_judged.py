"""Rows in every form that a metric may need: labels, losses and confidences, or sorted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from skselect._typing import BoolArray, ConfidenceSpec, FloatArray, LossSpec
from skselect.curve.curve import RiskCoverageCurve
from skselect.predictions.confidence import claimed_confidence, compute_confidence
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions

if TYPE_CHECKING:
    from skselect.metrics._table import MetricSpec


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows in every form that a kernel may need.

    Parameters
    ----------
    source : Outcomes or RiskCoverageCurve
        How wrong and how sure each row is; a curve where the rows themselves are not known.
    given : Predictions or None
        None: labels and probabilities are not known.
    claim : str, ndarray of shape (n,) or None
        The probability of being right that each answer claims. None: its confidence.
    """

    source: Outcomes | RiskCoverageCurve
    given: Predictions | None = None
    claim: ConfidenceSpec | None = None

    @property
    def predictions(self) -> Predictions:
        """The predictions; ask only where they are known."""
        assert self.given is not None
        return self.given

    @cached_property
    def outcomes(self) -> Outcomes:
        """The rows; of a curve, those of equal confidence and loss are one weighted row."""
        if isinstance(self.source, RiskCoverageCurve):
            return self.source.to_outcomes()
        return self.source

    @cached_property
    def curve(self) -> RiskCoverageCurve:
        """The rows, sorted when first asked for."""
        if isinstance(self.source, RiskCoverageCurve):
            return self.source
        return RiskCoverageCurve.from_outcomes(self.source)

    @cached_property
    def claimed(self) -> Judged:
        """The same rows; their confidence is the probability of being right that they claim."""
        if self.claim is None:
            return self
        claim = compute_confidence(self.predictions, self.claim)
        if np.array_equal(claim, self.outcomes.confidence):
            return self  # its curve need not be sorted again
        outcomes = replace(self.outcomes, confidence=claim)
        return Judged(outcomes, replace(self.predictions, confidence=claim))

    def read_by(self, spec: MetricSpec) -> Judged:
        """Return the rows with the confidence that a metric reads: their own, or the claim."""
        return self.claimed if spec.reads_probability else self

    def take(self, rows: BoolArray) -> Judged:
        """Return some of the rows, with their own confidence."""

        def part(values: Any) -> Any:
            return None if values is None else values[rows]

        outcomes, given = self.outcomes.take(rows), self.given
        if given is not None:
            given = replace(
                given,
                y_true=given.y_true[rows],
                y_pred=given.y_pred[rows],
                y_proba=part(given.y_proba),
                confidence=part(given.confidence),
                sample_weight=part(given.sample_weight),
            )
        return Judged(outcomes, given)


def judge(
    source: Predictions | Outcomes,
    *,
    confidence: ConfidenceSpec | None = None,
    loss: LossSpec = "zero_one",
    claim: FloatArray | None = None,
) -> Judged:
    """Judge each row; `claim`: its probability of being right, where that is known otherwise."""
    outcomes = Outcomes.of(source, confidence=confidence, loss=loss)
    if not isinstance(source, Predictions):
        return Judged(outcomes)
    claimed = claimed_confidence(source, confidence) if claim is None else claim
    own = confidence
    if confidence is not None:
        source = replace(source, confidence=outcomes.confidence)
    elif source.confidence is None:
        own = source.rule.default_confidence
    return Judged(outcomes, source, None if claimed is own else claimed)


def judge_proba(
    y_true: Any,
    y_proba: Any,
    *,
    confidence: ConfidenceSpec | None = None,
    loss: LossSpec = "zero_one",
    **options: Any,
) -> Judged:
    """Check the arguments of a metric and judge each row."""
    predictions = Predictions.from_proba(y_true, y_proba, **options)
    return judge(predictions, confidence=confidence, loss=loss)
