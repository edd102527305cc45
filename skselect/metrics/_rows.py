"""Rows with what was said of them: their loss and confidence, in every form that metrics read.

Influence values say how much each row moves a metric. A kernel returns the estimate and one value
per row with mean zero. Their scatter, divided by the root of the number of rows, is the standard
error; their differences between two models on the same rows compare the models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skselect._lib import arrays
from skselect.curve.curve import RiskCoverageCurve
from skselect.curve.influence import Lines, RankedInfluence, clustered_error
from skselect.predictions.outcomes import Outcomes, claimed_confidence, compute_confidence
from skselect.predictions.predictions import (
    Predictions,
    read_all,
    refuse_unjudged,
    undecided_of,
)


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows with their loss and confidence, in every form that a kernel may need.

    Parameters
    ----------
    source : Outcomes or RiskCoverageCurve
        How wrong and how sure each row is; a curve where the rows themselves are not known.
    labelled_rows : Predictions or None
        None: labels and probabilities are not known.
    correctness : str, callable, ndarray of shape (n,) or None
        Which confidence is the probability of being right. None: the one that the rows have.
    threshold : ndarray of shape (n,) or None
        From which confidence on each row is accepted; None if no estimator abstains.
    chosen : index, default=...
        Which rows of `labelled_rows` these are; they are taken when they are asked for.
    deferring : Outcomes, RiskCoverageCurve or None
        The source for metrics at a threshold: rows of zeros, which every threshold defers, have no
        confidence. None where there are none.
    """

    source: Outcomes | RiskCoverageCurve
    labelled_rows: Predictions | None = None
    correctness: arrays.ConfidenceSpec | None = None
    threshold: arrays.FloatArray | None = None
    chosen: Any = ...
    deferring: Outcomes | RiskCoverageCurve | None = None

    @cached_property
    def predictions(self) -> Predictions:
        """The predictions; ask only where they are known."""
        assert self.labelled_rows is not None
        return self.labelled_rows.take(self.chosen)

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
    def by_correctness(self) -> ScoredRows:
        """The same rows; their confidence is the probability of being right."""
        if self.correctness is None:
            return self
        confidence = compute_confidence(self.predictions, self.correctness)
        if np.array_equal(confidence, self.outcomes.confidence):
            return self  # whose curve may be sorted already
        outcomes = replace(self.outcomes, confidence=confidence)
        return ScoredRows(outcomes, replace(self.predictions, confidence=confidence))

    @cached_property
    def at_threshold(self) -> ScoredRows:
        """The same rows; those of zeros are deferred at every threshold."""
        if self.deferring is None:
            return self
        return replace(self, source=self.deferring, deferring=None)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        rows = self.source
        return rows.n_rows if isinstance(rows, RiskCoverageCurve) else len(rows)

    @property
    def single_threshold(self) -> float | None:
        """The threshold of all rows; None if there is none, or one per subgroup."""
        if self.threshold is None or np.any(self.threshold != self.threshold[0]):
            return None
        return float(self.threshold[0])

    def take(self, rows: Any) -> ScoredRows:
        """Return some of the rows, with their own confidence."""
        labelled_rows = None if self.labelled_rows is None else self.predictions
        deferring = None
        if isinstance(self.deferring, Outcomes):
            deferring = self.deferring.take(rows)
        return ScoredRows(self.outcomes.take(rows), labelled_rows, chosen=rows, deferring=deferring)


def score_rows(
    source: Predictions | Outcomes,
    *,
    confidence: arrays.ConfidenceSpec | None = None,
    loss: arrays.LossSpec = "zero_one",
    correctness: arrays.FloatArray | None = None,
    threshold: arrays.FloatArray | None = None,
) -> ScoredRows:
    """Compute loss and confidence of each row; an estimator says `correctness` and `threshold`."""
    names_none = None
    if isinstance(source, Predictions):
        names_none = undecided_of(source)
        source = read_all(source, "A metric")
    outcomes = Outcomes.of(source, confidence=confidence, loss=loss)
    outcomes = read_all(outcomes, "A metric")
    refuse_unjudged(outcomes, "a metric")
    if not isinstance(source, Predictions):
        return ScoredRows(outcomes)
    probability: Any = correctness
    if correctness is None:
        probability = claimed_confidence(source, confidence)
    confidence_in_use = confidence
    if confidence is not None:
        source = replace(source, confidence=outcomes.confidence)
    elif source.confidence is None:
        confidence_in_use = source.rule.default_confidence
    if probability is confidence_in_use:
        probability = None
    deferring = _defer(outcomes, names_none)
    return ScoredRows(outcomes, source, probability, threshold, deferring=deferring)


def _defer(outcomes: Outcomes, names_none: arrays.BoolArray | None) -> Outcomes | None:
    """Return outcomes of which rows of zeros have no confidence; None where there are none."""
    if names_none is None:
        return None
    confidence = np.where(names_none, np.nan, outcomes.confidence)
    return arrays.trusted(Outcomes, **vars(outcomes) | {"confidence": confidence})


def score_proba(
    y_true: Any,
    y_proba: Any,
    *,
    confidence: arrays.ConfidenceSpec | None = None,
    loss: arrays.LossSpec = "zero_one",
    **options: Any,
) -> ScoredRows:
    """Check the arguments of a metric; compute loss and confidence of each row."""
    predictions = Predictions.from_proba(y_true, y_proba, **options)
    return score_rows(predictions, confidence=confidence, loss=loss)


@dataclass(frozen=True, eq=False)
class Influence:
    """A ratio of two sums over rows, what each row adds to it, and the scale on which it is normal.

    Parameters
    ----------
    estimate : float
        The sum of `over` divided by that of `under`.
    over, under : ndarray of shape (n,)
    scale : {"identity", "signed share", "log", "logit", "proportion"}
        "signed share": normal, cut off at -1 and 1.
        "proportion": a share of `n_trials` independent rows.
    n_trials : float or None
    confident_error : float
        How much the estimate grows if the surest right answer turns wrong; left at 0 where no
        row weighs more than another.
    """

    estimate: float
    over: NDArray[Any]
    under: NDArray[Any]
    scale: str
    n_trials: float | None = None
    confident_error: float = 0.0

    @cached_property
    def values(self) -> arrays.FloatArray:
        """What each row adds, by the delta method: mean zero, shape (n,)."""
        values = self.estimate * self.under
        np.subtract(self.over, values, out=values)
        values *= len(values) / float(np.sum(self.under))
        return values

    def standard_error(self, cluster: arrays.IntArray | None = None) -> float:
        """Return the standard error for independent rows, or independent clusters of rows."""
        n = len(self.over)
        share = self.estimate
        if cluster is None and self.n_trials is not None and n > 1:
            return math.sqrt(share * (1.0 - share) / self.n_trials * n / (n - 1.0))
        return clustered_error(self.values, cluster)


# Means and shares ------------------------------------------------------------------------


def mean_of(terms: arrays.FloatArray, scale: str) -> Influence:
    """Return the influence of a mean over rows."""
    ones = np.broadcast_to(1.0, terms.shape)
    return Influence(float(np.mean(terms)), terms, ones, scale)


def ratio_of(over: NDArray[Any], under: NDArray[Any], scale: str) -> Influence | None:
    """Return the influence of sum(over)/sum(under)."""
    total = float(np.sum(under))
    if not total > 0:
        return None
    return Influence(float(np.sum(over)) / total, over, under, scale)


def share_of(events: NDArray[Any], trials: arrays.BoolArray) -> Influence | None:
    """Return the influence of a share of the rows in `trials`, 0/1 or graded."""
    if arrays.is_graded(events):
        return ratio_of(events, trials, "logit")
    n_events = np.count_nonzero(events)
    n_trials = np.count_nonzero(trials)
    if n_trials == 0:
        return None
    return Influence(n_events / n_trials, events, trials, "proportion", float(n_trials))


def ranked(
    rows: ScoredRows,
    estimate: float,
    scale: str,
    lines: Callable[[RiskCoverageCurve], Iterator[Lines]],
) -> RankedInfluence:
    """Return the influence of an area, by the lines of its curve."""
    outcomes = rows.source if isinstance(rows.source, Outcomes) else None
    return RankedInfluence(estimate, scale, rows.curve, lines, outcomes)
