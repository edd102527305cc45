"""Loss and confidence of each prediction: what later rooms need, without labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from skselect._lib import arrays
from skselect._lib.checks import rows as row_checks, shown
from skselect._lib.checks.options import check_choice, check_confidence_fits, check_seed
from skselect._lib.coins import Coins
from skselect.predictions.confidence import confidence_of_answers
from skselect.predictions.predictions import (
    Predictions,
    hold_decision_values,
    refuse_unjudged,
    undecided_of,
)


def zero_one_loss(predictions: Predictions) -> arrays.FloatArray:
    """Return 1 where the predicted class is not the true one, else 0."""
    is_wrong = predictions.y_pred != predictions.y_true
    return is_wrong.astype(np.float64)


def cost_loss(predictions: Predictions) -> arrays.FloatArray:
    """Return the cost of each predicted class, as a share of the largest cost."""
    return predictions.rule.costs(predictions.y_true, predictions.y_pred)


def reviewer_loss(predictions: Predictions) -> arrays.FloatArray | None:
    """Return 1 where a reviewer's answer is not the true class, else 0; None without answers."""
    if predictions.reviewer is None:
        return None
    is_wrong = predictions.reviewer != predictions.y_true
    return is_wrong.astype(np.float64)


LOSSES: dict[str, Callable[[Predictions], arrays.FloatArray]] = {
    "zero_one": zero_one_loss,
    "cost": cost_loss,
}


def compute_loss(predictions: Predictions, loss: arrays.LossSpec) -> arrays.FloatArray:
    """Return the loss of each row, in [0, 1].

    Parameters
    ----------
    predictions : Predictions
    loss : {"zero_one", "cost"} or callable
        "cost" reads the cost matrix of the predictions. A callable gets the arrays of true and
        predicted labels and returns n losses.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If the name is unknown or a loss lies outside [0, 1].
    """
    if not callable(loss):
        compute = LOSSES[check_choice("loss", loss, LOSSES)]
        return compute(predictions)
    refuse_unjudged(predictions, "a callable loss")
    if np.any(predictions.y_true < 0):
        raise ValueError(
            "loss: a callable needs the true label of every row, but some rows belong to a class "
            "that the classifier does not know. Use loss='zero_one' (such a row is an error)."
        )
    labels = predictions.classes[predictions.y_true]
    values = loss(labels, predictions.answers)
    values = row_checks.check_loss(values)
    row_checks.check_length("loss", values, len(predictions))
    return values.copy()


def compute_confidence(
    predictions: Predictions, confidence: arrays.ConfidenceSpec | None = None
) -> arrays.FloatArray:
    """Return the confidence of each row of `predictions`.

    Parameters
    ----------
    predictions : Predictions
    confidence : str, callable, array of shape (n,) or None, default=None
        None: the confidence that came with the predictions, else the one that goes with their
        decision: "max_proba", "chosen_proba" or "expected_cost".

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If a named or callable confidence is asked for and there are no probabilities, or it
        does not fit the decision.
    """
    if confidence is None and predictions.confidence is not None:
        return predictions.confidence
    if predictions.y_proba is not None:
        rule = predictions.rule
        wanted = rule.default_confidence if confidence is None else confidence
        if isinstance(wanted, str):
            check_confidence_fits(wanted, rule.decision, rule.cost_matrix)
        return confidence_of_answers(predictions.y_proba, predictions.y_pred, wanted, rule)
    is_computed = confidence is None or isinstance(confidence, str) or callable(confidence)
    if is_computed and hold_decision_values(predictions):
        raise ValueError(
            "predictions hold decision values, which say how likely an answer is right only after "
            "a policy has calibrated them. Read them with check_policy, certify or a report with "
            "policy=, or build the predictions from calibrated probabilities with "
            "Predictions.from_proba."
        )
    if is_computed:
        raise ValueError(
            f"confidence={confidence!r} is computed from probabilities, but these predictions "
            "hold labels and a confidence only; leave confidence out."
        )
    values = row_checks.check_rated(confidence)
    row_checks.check_length("confidence", values, len(predictions))
    return values.copy()


def claimed_confidence(
    predictions: Predictions, confidence: arrays.ConfidenceSpec | None = None
) -> arrays.ConfidenceSpec | None:
    """Return the confidence that is read as the probability of being right.

    That is the probability of the predicted class, whichever named confidence ranks the rows. The
    values of an array or a callable are used as they are.

    Parameters
    ----------
    predictions : Predictions
    confidence : str, callable, array of shape (n,) or None, default=None
        The confidence that was asked for, as :func:`compute_confidence` has checked it.

    Returns
    -------
    str, callable, array of shape (n,) or None
        For :func:`compute_confidence`. Without probabilities the confidence that was asked for, or
        that came with the predictions, is the claim.
    """
    is_named = confidence is None or isinstance(confidence, str)
    if is_named and predictions.y_proba is not None:
        return predictions.rule.claim
    return confidence


# What a row's coins are for.
_FOR_LOSS = 0
_FOR_WEIGHT = 1
_FOR_REVIEWER = 2


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The loss and the confidence of each answer: what curves and certificates are made of.

    Parameters
    ----------
    loss : array-like of shape (n,)
        In [0, 1]; 1 for an error and 0 for a right answer, or anything between.
    confidence : array-like of shape (n,)
        Finite numbers; larger is surer. NaN: the row cannot be decided, and is deferred at every
        threshold.
    sample_weight : array-like of shape (n,), default=None
        How often each row counts: weight 2 is the row twice.
    reviewer_loss : array-like of shape (n,), default=None
        1 where a reviewer of the deferred rows would be wrong, else 0; or the probability of it.
    readings : array-like of bool, shape (n, r), default=None
        Which rows count in each of r readings of the table, the first of which holds the rows of
        all others: a certified threshold passes under each of them. None: all rows count.
    unjudged : array-like of bool, shape (n,), default=None
        Which rows nobody has judged yet. They count as errors: their loss is 1.

    Raises
    ------
    ValueError
        If an array is empty or has impossible values, or the lengths differ.

    Examples
    --------
    >>> from skselect import Outcomes
    >>> outcomes = Outcomes(loss=[0, 1, 0], confidence=[.9, .6, .8])
    >>> len(outcomes), float(outcomes.loss.mean())
    (3, 0.3333333333333333)
    """

    loss: arrays.FloatArray
    confidence: arrays.FloatArray
    sample_weight: arrays.FloatArray | None = None
    reviewer_loss: arrays.FloatArray | None = None
    readings: arrays.BoolArray | None = None
    unjudged: arrays.BoolArray | None = None

    def __post_init__(self) -> None:
        loss = row_checks.check_loss(self.loss)
        n = len(loss)
        confidence = row_checks.check_rated(self.confidence)
        row_checks.check_length("confidence", confidence, n, "loss")
        if np.isnan(confidence).all():
            raise ValueError("confidence is missing in each row.")
        weight = row_checks.check_weight(self.sample_weight, n)
        # Copies: what the caller does to the arrays later must not change what is frozen here.
        checked: dict[str, Any] = {
            "loss": loss.copy(),
            "confidence": confidence.copy(),
            "sample_weight": weight,
        }
        if self.reviewer_loss is not None:
            of_reviewer = row_checks.check_loss(self.reviewer_loss, "reviewer_loss")
            row_checks.check_length("reviewer_loss", of_reviewer, n, "loss")
            checked["reviewer_loss"] = of_reviewer.copy()
        if self.readings is not None:
            checked["readings"] = _check_readings(self.readings, n)
        if self.unjudged is not None:
            checked["unjudged"] = _check_unjudged(self.unjudged, loss, weight)
        vars(self).update(checked)

    def __len__(self) -> int:
        return len(self.loss)

    def __repr__(self) -> str:
        risk = np.average(self.loss, weights=self.sample_weight)
        ending = "" if self.sample_weight is None else ", weighted"
        return f"<Outcomes: {len(self)} rows, mean loss {risk:.4g}{ending}>"

    @property
    def weight(self) -> arrays.FloatArray:
        """The weight of each row, ones where none were given."""
        if self.sample_weight is None:
            return np.ones(len(self))
        return self.sample_weight

    @property
    def all_counted(self) -> Outcomes:
        """The same rows; those that nobody has judged yet are errors like others."""
        if self.unjudged is None:
            return self
        return replace(self, unjudged=None)

    @property
    def reviewed(self) -> tuple[arrays.FloatArray, arrays.FloatArray, arrays.FloatArray]:
        """The loss, the reviewer's loss and the confidence."""
        assert self.reviewer_loss is not None
        return self.loss, self.reviewer_loss, self.confidence

    @classmethod
    def from_predictions(
        cls,
        predictions: Predictions,
        *,
        confidence: arrays.ConfidenceSpec | None = None,
        loss: arrays.LossSpec = "zero_one",
    ) -> Outcomes:
        """Compute the loss and the confidence of each prediction.

        Parameters
        ----------
        predictions : Predictions
        confidence : str, callable or array of shape (n,), default=None
            How sure the classifier is of each row. None: the confidence that came with the
            predictions, else the one that belongs to their answers: one minus the expected cost for
            ``decision="min_cost"``, else the probability of the answer.
        loss : {"zero_one", "cost"} or callable, default="zero_one"
            How wrong an answer is. "cost" is the cost of the answer over the largest cost in the
            matrix. A callable ``(y_true, y_pred) -> loss`` gets labels and returns values in [0,
            1].

        Returns
        -------
        Outcomes
        """
        undecided = undecided_of(predictions)
        losses = compute_loss(predictions, loss)
        confidences = compute_confidence(predictions, confidence)
        if undecided is not None:
            losses = np.where(undecided, 1.0, losses)
            confidences = np.where(undecided, np.nan, confidences)
        return arrays.trusted(
            cls,
            loss=losses,
            confidence=confidences,
            sample_weight=predictions.sample_weight,
            reviewer_loss=reviewer_loss(predictions),
            unjudged=predictions.unjudged,
        )

    @classmethod
    def from_proba(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        labels: Any = None,
        pos_label: Any = None,
        confidence: arrays.ConfidenceSpec | None = None,
        loss: arrays.LossSpec = "zero_one",
        sample_weight: Any = None,
    ) -> Outcomes:
        """Build outcomes from class probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        y_proba : array-like of shape (n, K) or (n,)
            Class probabilities. (n,) is the probability of the positive one of two classes.
        labels : array-like of shape (K,), default=None
            All classes, in the order of the columns. Default: the sorted labels in `y_true`.
        pos_label : label, default=None
            The positive one of two classes.
        confidence : {"max_proba", "margin", "entropy", "gini"}, callable or array, default=None
            How sure the classifier is of each row. None means "max_proba".
        loss : {"zero_one"} or callable, default="zero_one"
            How wrong an answer is. A callable ``(y_true, y_pred) -> loss`` returns one value in [0,
            1] per row.
        sample_weight : array-like of shape (n,), default=None
            How often each row counts.

        Returns
        -------
        Outcomes

        Examples
        --------
        >>> from skselect import Outcomes
        >>> Outcomes.from_proba([0, 1, 1], [[.9, .1], [.2, .8], [.6, .4]]).to_frame()
           loss  confidence
        0   0.0         0.9
        1   0.0         0.8
        2   1.0         0.6
        """
        predictions = Predictions.from_proba(
            y_true, y_proba, labels=labels, pos_label=pos_label, sample_weight=sample_weight
        )
        return cls.from_predictions(predictions, confidence=confidence, loss=loss)

    @classmethod
    def from_labels(
        cls,
        y_true: Any,
        y_pred: Any,
        confidence: Any,
        *,
        loss: arrays.LossSpec = "zero_one",
        sample_weight: Any = None,
    ) -> Outcomes:
        """Build outcomes from predicted labels and one confidence per row.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n,)
            True and predicted labels.
        confidence : array-like of shape (n,)
            How sure the classifier is of each row. A finite number; larger is surer.
        loss : {"zero_one"} or callable, default="zero_one"
            How wrong an answer is. A callable ``(y_true, y_pred) -> loss`` returns one value in [0,
            1] per row.
        sample_weight : array-like of shape (n,), default=None
            How often each row counts.

        Returns
        -------
        Outcomes
        """
        predictions = Predictions.from_labels(
            y_true, y_pred, confidence, sample_weight=sample_weight
        )
        return cls.from_predictions(predictions, loss=loss)

    @classmethod
    def of(
        cls,
        predictions_or_outcomes: Predictions | Outcomes,
        *,
        confidence: arrays.ConfidenceSpec | None = None,
        loss: arrays.LossSpec = "zero_one",
    ) -> Outcomes:
        """Return outcomes as they are; compute those of predictions."""
        if isinstance(predictions_or_outcomes, Outcomes):
            row_checks.refuse_own_confidence(confidence, loss)
            return predictions_or_outcomes
        if not isinstance(predictions_or_outcomes, Predictions):
            raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
                "predictions_or_outcomes must be Predictions, Outcomes or a RiskCoverageCurve "
                "(of a SelectiveState: state.finalize()), got "
                f"{type(predictions_or_outcomes).__name__}; build one with "
                "Predictions.from_proba(y_true, y_proba)."
            )
        return cls.from_predictions(predictions_or_outcomes, confidence=confidence, loss=loss)

    def take(self, rows: arrays.IntArray | arrays.BoolArray | list[int]) -> Outcomes:
        """Return some of the rows; at least one of them must count."""
        taken: dict[str, Any] = {
            name: None if values is None else values[rows] for name, values in vars(self).items()
        }
        n = len(taken["loss"])
        row_checks.check_weight(taken["sample_weight"], n)
        return arrays.trusted(Outcomes, **taken)

    def read(self) -> list[Outcomes]:
        """Return the rows of each reading; one without rows is the least sure row, and wrong."""
        if self.readings is None:
            return [self]
        columns = vars(self) | {"readings": None}
        every_row = arrays.trusted(Outcomes, **columns)
        least_sure = every_row.take([int(np.nanargmin(self.confidence))])
        reviewer_loss = None if self.reviewer_loss is None else np.ones(1)
        worst = replace(least_sure, loss=np.ones(1), reviewer_loss=reviewer_loss)
        readings = []
        for rows in self.readings.T:
            reading = every_row.take(rows) if np.any(rows) else worst
            readings.append(reading)
        return readings

    def count(
        self,
        seed: int | None,
        largest_weight: float | None = None,
        *,
        cases: str = "",
    ) -> Outcomes:
        """Return rows that are right or wrong and count once, by a coin for each loss and weight.

        A row of loss l is wrong with probability l, a reviewer's loss likewise, and it counts with
        probability w/largest_weight where its weight is w. What counts are independent draws from
        the cases that the weights describe, and a share of them as large as the mean loss is wrong.

        Parameters
        ----------
        seed : int or None
            None draws one. With it a row's own values choose its coins, to ten digits: confidence,
            loss, weight and reviewer's loss. Rows of equal values have coins of their own, one
            after the other. So neither the order of the rows nor the last bits matter, a row keeps
            its coins when the table grows, and a smaller `largest_weight` keeps all rows that a
            larger one keeps.
        largest_weight : float, default=None
            A limit, fixed beforehand, that no weight can exceed. None where all are equal.
        cases : str, default=""
            What the rows are called, if they are some of a table: those of another class or
            subgroup have other coins.

        Returns
        -------
        Outcomes
            Of the same rows; those that do not count stand in no reading.
        """
        weight = self.sample_weight
        missed = self.reviewer_loss
        if not self.needs_coins:
            return self
        coins = self.toss(check_seed(seed), cases)
        readings = self.readings
        if weight is not None and largest_weight is not None:
            chance = weight / largest_weight
            counts = (coins.toss(_FOR_WEIGHT) < chance)[:, None]
            readings = counts if readings is None else readings & counts
        if missed is not None:
            missed = (coins.toss(_FOR_REVIEWER) < missed).astype(np.float64)
        wrong = coins.toss(_FOR_LOSS) < self.loss
        return arrays.trusted(
            Outcomes,
            loss=wrong.astype(np.float64),
            confidence=self.confidence,
            reviewer_loss=missed,
            readings=readings,
        )

    @property
    def needs_coins(self) -> bool:
        """Whether there are weights, or losses other than 0 and 1."""
        if self.sample_weight is not None or arrays.is_graded(self.loss):
            return True
        return self.reviewer_loss is not None and arrays.is_graded(self.reviewer_loss)

    def toss(self, seed: int, cases: str = "") -> Coins:
        """Return the coins of the rows, as :meth:`count` takes them."""
        columns = (self.confidence, self.loss, self.sample_weight, self.reviewer_loss)
        numbers = [values for values in columns if values is not None]
        left_out: list[arrays.BoolArray] = []
        if self.readings is not None:
            left_out = [~reading for reading in self.readings.T]
        return Coins(seed, numbers, left_out, cases)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per case: loss, confidence, and what else was given."""
        columns = {name: x for name, x in vars(self).items() if x is not None and x.ndim == 1}
        return pd.DataFrame(columns)


def _check_readings(values: Any, n: int) -> arrays.BoolArray:
    """Return which rows count in each reading, the first of which holds the rows of all others."""
    readings = np.array(arrays.as_array(values, "readings"))
    is_table = readings.ndim == 2 and readings.dtype == bool and len(readings) == n
    if not (is_table and readings.shape[1] and np.all(readings[:, :1] >= readings)):
        raise ValueError(
            f"readings must hold True or False for each of the {n} rows, in one column for each "
            f"reading, and the first column each row of the others; got {shown(values)}."
        )
    return readings


def _check_unjudged(
    values: Any, loss: arrays.FloatArray, weight: arrays.FloatArray | None
) -> arrays.BoolArray:
    """Return which rows nobody has judged yet, which count as errors."""
    unjudged = np.array(values)
    row_checks.check_length("unjudged", unjudged, len(loss), "loss")
    if unjudged.dtype != bool or weight is not None or np.any(loss[unjudged] < 1):
        raise ValueError(
            "unjudged must be True or False in each row, with a loss of 1 where it is "
            "True, and goes without sample_weight."
        )
    return unjudged
