"""Rows with what was said of them: their loss and confidence, in every form that metrics read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from skselect._lib.arrays import BoolArray, ConfidenceSpec, FloatArray, LossSpec, is_graded
from skselect.curve.curve import RiskCoverageCurve
from skselect.predictions.confidence import claimed_confidence, compute_confidence
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions


class Counts(NamedTuple):
    """Rows and errors of what each of some thresholds accepts."""

    weight: FloatArray
    loss: FloatArray


@dataclass(frozen=True, eq=False)
class UnsortedRows:
    """Rows that count once and are right or wrong: they are counted without being sorted.

    Sums of weights, graded losses or confidences are left to the curve: they round differently in
    another order.
    """

    outcomes: Outcomes

    @property
    def total_weight(self) -> float:
        """Number of rows."""
        return float(len(self.outcomes))

    def accepted_at(self, thresholds: FloatArray) -> Counts:
        """Return how many rows each threshold accepts, and how many of them are wrong."""
        accepted = [self.outcomes.confidence >= threshold for threshold in thresholds]
        wrong = self.outcomes.loss != 0.0
        return Counts(
            np.array([np.count_nonzero(rows) for rows in accepted], dtype=np.float64),
            np.array([np.count_nonzero(rows & wrong) for rows in accepted], dtype=np.float64),
        )


#: Rows whose weight and loss can be added up over what a threshold accepts.
Countable = RiskCoverageCurve | UnsortedRows


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows with their loss and confidence, in every form that a kernel may need.

    Parameters
    ----------
    source : Outcomes or RiskCoverageCurve
        How wrong and how sure each row is; a curve where the rows themselves are not known.
    given : Predictions or None
        None: labels and probabilities are not known.
    correctness : str, callable, ndarray of shape (n,) or None
        Which confidence is the probability of being right. None: the one that the rows have.
    threshold : ndarray of shape (n,) or None
        From which confidence on each row is accepted; None if no estimator abstains.
    """

    source: Outcomes | RiskCoverageCurve
    given: Predictions | None = None
    correctness: ConfidenceSpec | None = None
    threshold: FloatArray | None = None

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

    @property
    def countable(self) -> Countable:
        """The rows for a metric that only reads what one threshold accepts."""
        rows = self.source
        if isinstance(rows, Outcomes) and rows.sample_weight is None and not is_graded(rows.loss):
            return UnsortedRows(rows)
        return self.curve

    @cached_property
    def by_correctness(self) -> ScoredRows:
        """The same rows; their confidence is the probability of being right."""
        if self.correctness is None:
            return self
        confidence = compute_confidence(self.predictions, self.correctness)
        if np.array_equal(confidence, self.outcomes.confidence):
            return self  # whose curve may be sorted already
        outcomes = replace(self.outcomes, confidence=confidence)
        return ScoredRows(outcomes, replace(self.predictions, confidence=confidence))

    @property
    def single_threshold(self) -> float | None:
        """The threshold of all rows; None if there is none, or one per subgroup."""
        if self.threshold is None or np.any(self.threshold != self.threshold[0]):
            return None
        return float(self.threshold[0])

    def take(self, rows: BoolArray) -> ScoredRows:
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
        return ScoredRows(outcomes, given)


def score_rows(
    source: Predictions | Outcomes,
    *,
    confidence: ConfidenceSpec | None = None,
    loss: LossSpec = "zero_one",
    correctness: FloatArray | None = None,
    threshold: FloatArray | None = None,
) -> ScoredRows:
    """Compute loss and confidence of each row; an estimator says `correctness` and `threshold`."""
    outcomes = Outcomes.of(source, confidence=confidence, loss=loss)
    if not isinstance(source, Predictions):
        return ScoredRows(outcomes)
    probability: Any = correctness
    if correctness is None:
        probability = claimed_confidence(source, confidence)
    own = confidence
    if confidence is not None:
        source = replace(source, confidence=outcomes.confidence)
    elif source.confidence is None:
        own = source.rule.default_confidence
    return ScoredRows(outcomes, source, None if probability is own else probability, threshold)


def score_proba(
    y_true: Any,
    y_proba: Any,
    *,
    confidence: ConfidenceSpec | None = None,
    loss: LossSpec = "zero_one",
    **options: Any,
) -> ScoredRows:
    """Check the arguments of a metric; compute loss and confidence of each row."""
    predictions = Predictions.from_proba(y_true, y_proba, **options)
    return score_rows(predictions, confidence=confidence, loss=loss)
