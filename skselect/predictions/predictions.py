"""What a classifier predicted for labelled rows. Labels end here: later rooms see class codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from skselect._lib.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    LabelArray,
    as_array,
    column_names,
    look_up_codes,
    spans,
)
from skselect._lib.checks import rows as row_checks, shown, warn_user
from skselect._lib.checks.options import check_choice, check_given
from skselect._lib.decide import as_floats, find_undecided, plain_value, rows_of_either, spread
from skselect._lib.notebook import percent
from skselect.exceptions import ArgumentError
from skselect.predictions.decisions import DecisionRule
from skselect.predictions.doubts import doubt_confidence

_IN_ORDER = "or pass an array with its columns in the order of labels="
#: The classes of verdicts, what may stand for them, and the code of anything else.
VERDICTS = np.array(["right", "wrong"])
_RIGHT = (
    "right", "correct", "true", "yes", "y", "pass", "passed", "ja", "oui", "1", "1.0",
)  # fmt: skip
_WRONG = (
    "wrong", "incorrect", "false", "no", "n", "fail", "failed", "nein", "non", "0", "0.0",
)  # fmt: skip
_WORDS = {
    **dict.fromkeys(row_checks.MISSING_WORDS, -1),
    **dict.fromkeys(_RIGHT, 0),
    **dict.fromkeys(_WRONG, 1),
}
VERDICT_WORDS = (
    "right or wrong (or correct/incorrect, true/false, yes/no, pass/fail, 1/0; empty: not judged)"
)
UNREADABLE = -2
#: Probability that cases judged at random are said to have other confidences than the others.
_UNLIKE = 0.001
#: Probability that columns in order are said to be in another one; most columns that are compared.
_NO_ORDER = 0.001
_MOST_COLUMNS = 1000


@dataclass(frozen=True, eq=False)
class Draw:
    """How rows were drawn from all cases, as far as it is known.

    Parameters
    ----------
    assumed : str
        How they were drawn, as a certificate assumes first; "" says nothing.
    doubt : str
        How the judged rows differ from those left out, "" where chance explains it.
    position : ndarray of shape (n,) or None
        Where each judged row stood among those given, if the others were left out.
    """

    assumed: str = ""
    doubt: str = ""
    position: IntArray | None = None

    def take(self, rows: IntArray | BoolArray) -> Draw:
        """Return the draw of some of the rows."""
        if self.position is None:
            return self
        return replace(self, position=self.position[rows])


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model predicted for labelled rows: the input of metrics, thresholds and reports.

    Build it with :meth:`from_proba`, :meth:`from_logits`, :meth:`from_scores`, :meth:`from_labels`
    or :meth:`from_verdicts`, which check everything; the constructor takes the fields as they are.

    Parameters
    ----------
    y_true : ndarray of shape (n,)
        Position of the true class among `classes`; -1 is a class the model does not know
        (such a row is always wrong).
    y_pred : ndarray of shape (n,)
        Position of the predicted class among `classes`.
    classes : ndarray of shape (K,)
        The class labels, in the order of the columns of `y_proba`.
    y_proba : ndarray of shape (n, K) or None
        Class probabilities, float32 or float64.
    confidence : ndarray of shape (n,) or None
        A confidence that came with the predictions (not from :meth:`from_proba`).
    sample_weight : ndarray of shape (n,) or None
        How often each row counts.
    rule : DecisionRule
        How `y_pred` was decided, and what errors cost.
    reviewer : ndarray of shape (n,) or None
        Position among `classes` of what a reviewer of the deferred rows would answer.
    unjudged : ndarray of bool, shape (n,), or None
        Which rows nobody has judged yet; their `y_true` is -1. Only thresholds read such rows. None
        where they were left out, or there are none.

    Examples
    --------
    >>> from skselect import Predictions
    >>> predictions = Predictions.from_proba(["no", "yes", "yes"], [[.9, .1], [.2, .8], [.6, .4]])
    >>> predictions.to_frame()
      y_true y_pred   no  yes
    0     no     no  0.9  0.1
    1    yes    yes  0.2  0.8
    2    yes     no  0.6  0.4
    """

    y_true: IntArray
    y_pred: IntArray
    classes: LabelArray
    y_proba: FloatArray | None = None
    confidence: FloatArray | None = None
    sample_weight: FloatArray | None = None
    rule: DecisionRule = field(default_factory=DecisionRule)
    reviewer: IntArray | None = None
    unjudged: BoolArray | None = None
    _draw: Draw = field(default_factory=Draw)
    _undecided: BoolArray | None = None  # no answer, confidence or number, or zeros alone
    _decision_values: FloatArray | None = None  # in place of probabilities
    _abstain_answers: tuple[Any, ...] = ()  # by which the model itself abstains
    _cascade: Any = None  # a Cascade, which a later room defines

    def __len__(self) -> int:
        return len(self.y_true)

    def __repr__(self) -> str:
        kind = "answers" if self.y_proba is None else "probabilities"
        if self._decision_values is not None:
            kind = "decision values"
        return f"<Predictions: {len(self)} rows, {len(self.classes)} classes, {kind}>"

    @property
    def answers(self) -> LabelArray:
        """The predicted labels, shape (n,)."""
        return self.classes[self.y_pred]

    @classmethod
    def from_proba(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        labels: Any = None,
        pos_label: Any = None,
        sample_weight: Any = None,
        decision: str = "argmax",
        y_pred: Any = None,
        cost_matrix: Any = None,
        reviewer: Any = None,
        unjudged: str = "refuse",
    ) -> Predictions:
        """Build predictions from class probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels. Numbers, strings or booleans; members of an Enum count as their values.
        y_proba : array-like of shape (n, K) or (n,)
            Class probabilities. In [0, 1]. The rows of (n, K) sum to one (within 0.001) and the
            columns are in the order of `labels`; the columns of a DataFrame are matched by name.
            (n,) is the probability of `pos_label` in a two-class problem.
        labels : array-like of shape (K,), default=None
            All classes, in the order of the columns. Default: the sorted labels in `y_true`.
        pos_label : label, default=None
            The positive one of two classes. A one-dimensional `y_proba` holds its probability.
            Default: the second of two classes in sorted order, as scikit-learn's scorers pass it; 1
            for {0, 1} and {-1, 1}, also where `y_true` holds one class only. Other labels of one
            class, and `labels` in another order, need it.
        sample_weight : array-like of shape (n,), default=None
            How often each row counts.
        decision : {"argmax", "estimator", "min_cost"}, default="argmax"
            The answer: the most probable class, the classifier's own answer, or the class of the
            least expected cost. Its own is in `y_pred`.
        y_pred : array-like of shape (n,), default=None
            The classifier's own answers. For ``decision="estimator"`` only.
        cost_matrix : array-like of shape (K, K), DataFrame or dict, default=None
            What each answer costs, in your own units: rows are true classes, columns answers, in
            the order of the classes. A DataFrame is matched by name; a dict is ``{true class:
            {answer: cost}}``, where a right answer costs 0 unless it says so.
        reviewer : array-like of shape (n,), default=None
            What a reviewer answers, or would answer, in each row. :class:`SystemRisk` reads it.
        unjudged : {"refuse", "wrong"}, default="refuse"
            What rows without a label are. "refuse": an error. "wrong": as for
            :meth:`from_verdicts`; pass `labels` until each class has been seen.

        Returns
        -------
        Predictions

        Raises
        ------
        ValueError
            If an argument is empty, has missing or impossible values, or does not fit the
            others; the message names the argument and the remedy.
        """
        row_checks.check_same_order(
            y_true=y_true,
            y_proba=y_proba,
            sample_weight=sample_weight,
            y_pred=y_pred,
            reviewer=reviewer,
        )
        is_waiting: BoolArray | None = None
        if check_choice("unjudged", unjudged, ["refuse", "wrong"]) == "wrong":
            y_true, is_waiting = _fill_unjudged(y_true, labels)
            _refuse_weighted_pool("sample_weight", sample_weight)
        truth, position = row_checks.check_listed_labels(y_true)
        n = len(truth if position is None else position)
        classes, proba = _read_proba(y_proba, truth, n, labels, pos_label)
        undecided, proba = _find_undecided(proba)
        rule = DecisionRule.checked(decision, cost_matrix, classes)
        codes = row_checks.encode_known(truth, classes)
        if position is not None:
            codes = codes.take(position)
        if is_waiting is not None:
            codes = np.where(is_waiting, -1, codes)
        answers = _encode_answers(y_pred, decision, classes, n)
        predictions = cls(
            y_true=codes,
            y_pred=rule.choose(proba, answers),
            _undecided=undecided,
            classes=classes,
            y_proba=proba,
            sample_weight=row_checks.check_weight(sample_weight, n),
            rule=rule,
            reviewer=None if reviewer is None else encode_reviewer(reviewer, classes, n),
            unjudged=is_waiting,
        )
        warn_of_columns(predictions)
        return predictions

    @classmethod
    def from_logits(
        cls,
        y_true: Any,
        logits: Any,
        *,
        labels: Any = None,
        pos_label: Any = None,
        sample_weight: Any = None,
        decision: str = "argmax",
        y_pred: Any = None,
        cost_matrix: Any = None,
        reviewer: Any = None,
        unjudged: str = "refuse",
    ) -> Predictions:
        """Build predictions from logits or log-probabilities, by the softmax of each row.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        logits : array-like of shape (n, K) or (n,)
            Outputs before the softmax; for two classes also one per row, before the sigmoid. Or
            log-probabilities: -inf is probability 0. (n,) belongs to `pos_label`.
        labels, pos_label, sample_weight, decision, y_pred, cost_matrix, reviewer, unjudged
            As for :meth:`from_proba`.

        Returns
        -------
        Predictions

        Raises
        ------
        ValueError
            If a logit is no number below infinity, and as for :meth:`from_proba`.

        Examples
        --------
        >>> from skselect import Predictions
        >>> rows = Predictions.from_logits(["no", "yes"], [[2., 0.], [-1., 1.]])
        >>> rows.y_proba.round(3)
        array([[0.881, 0.119],
               [0.119, 0.881]])
        """
        row_checks.check_same_order(y_true=y_true, logits=logits)
        return cls.from_proba(
            y_true,
            _exponentiate(logits),
            labels=labels,
            pos_label=pos_label,
            sample_weight=sample_weight,
            decision=decision,
            y_pred=y_pred,
            cost_matrix=cost_matrix,
            reviewer=reviewer,
            unjudged=unjudged,
        )

    @classmethod
    def from_scores(
        cls,
        y_true: Any,
        scores: Any,
        *,
        labels: Any = None,
        sample_weight: Any = None,
        decision: str = "argmax",
        y_pred: Any = None,
        reviewer: Any = None,
    ) -> Predictions:
        """Build predictions from decision values, such as those of a support vector machine.

        A policy that was tuned on decision values reads them: :func:`~skselect.check_policy`,
        :func:`~skselect.certify` and reports. They say nothing about probabilities before it
        calibrates them, so metrics refuse them.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        scores : array-like of shape (n,) or (n, K)
            What ``decision_function`` returns: one value for two classes, above 0 for the second,
            else one per class, in the order of `labels`; the columns of a DataFrame are matched by
            name.
        labels, sample_weight, decision, y_pred, reviewer
            As for :meth:`from_proba`; a `decision` by costs is that of the policy.

        Returns
        -------
        Predictions

        Raises
        ------
        ValueError
            If an argument is empty, has missing or impossible values, or does not fit the
            others.

        Examples
        --------
        >>> from skselect import Predictions
        >>> Predictions.from_scores(["no", "yes", "yes"], [-1.5, 2., -.5]).answers
        array(['no', 'yes', 'no'], dtype='<U3')
        """
        row_checks.check_same_order(
            y_true=y_true,
            scores=scores,
            sample_weight=sample_weight,
            y_pred=y_pred,
            reviewer=reviewer,
        )
        check_choice("decision", decision, ["argmax", "estimator"])
        truth = row_checks.check_labels(y_true)
        n = len(truth)
        classes, values = _read_decision_values(scores, truth, labels)
        row_checks.check_length("scores", values, n)
        answers = _encode_answers(y_pred, decision, classes, n)
        if answers is None:
            is_single = values.ndim == 1
            answers = (values > 0).astype(np.int64) if is_single else values.argmax(axis=1)
        missing, _ = find_undecided(values, "decision_function")
        if missing is not None:
            _warn_of_missing(missing, "scores", "lack a number")
        return cls(
            y_true=row_checks.encode_known(truth, classes),
            y_pred=answers,
            classes=classes,
            sample_weight=row_checks.check_weight(sample_weight, n),
            rule=DecisionRule(decision),
            reviewer=None if reviewer is None else encode_reviewer(reviewer, classes, n),
            _undecided=missing,
            _decision_values=values,
        )

    @classmethod
    def from_labels(
        cls,
        y_true: Any,
        y_pred: Any,
        confidence: Any,
        *,
        labels: Any = None,
        sample_weight: Any = None,
        cost_matrix: Any = None,
        reviewer: Any = None,
        abstain_answers: Any = (),
    ) -> Predictions:
        """Build predictions from predicted labels and one confidence per row.

        A row without an answer or a confidence counts as deferred at every threshold. Metrics need
        both in each row.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n,)
            True and predicted labels, written alike. Members of an Enum count as their values.
            A prediction may be missing.
        confidence : array-like of shape (n,)
            How sure the classifier is of each row. A finite number, or missing; larger is surer.
        labels : array-like of shape (K,), default=None
            All classes. Default: the sorted labels that occur.
        sample_weight : array-like of shape (n,), default=None
            How often each row counts.
        cost_matrix : array-like of shape (K, K), DataFrame or dict, default=None
            What each answer costs, in your own units: rows are true classes, columns answers, in
            the order of the classes. A DataFrame is matched by name; a dict is ``{true class:
            {answer: cost}}``, where a right answer costs 0 unless it says so.
        reviewer : array-like of shape (n,), default=None
            What a reviewer answers, or would answer, in each row. :class:`SystemRisk` reads it.
        abstain_answers : list, default=()
            What says that the model itself abstains, such as "unsure". It is no class.

        Returns
        -------
        Predictions

        Raises
        ------
        ValueError
            If an argument is empty, has missing or impossible values, or does not fit the
            others.
        """
        row_checks.check_same_order(
            y_true=y_true,
            y_pred=y_pred,
            confidence=confidence,
            sample_weight=sample_weight,
            reviewer=reviewer,
        )
        truth = row_checks.check_labels(y_true)
        n = len(truth)
        answers, unanswered, abstains = row_checks.fill_answers(y_pred, "y_pred", abstain_answers)
        row_checks.check_length("y_pred", answers, n)
        scores = row_checks.check_rated(confidence)
        row_checks.check_length("confidence", scores, n)
        _warn_of_missing(unanswered, "y_pred", "have no answer")
        _warn_of_missing(np.isnan(scores) & ~abstains & ~unanswered, "confidence", "have none")
        scores = np.where(unanswered | abstains, np.nan, scores)
        if not row_checks.same_kind(truth, answers):
            row_checks.encode_labels(answers, truth, "y_pred")  # raises: the labels differ in kind
        if labels is None:
            labels_seen = row_checks.distinct_labels(truth)
            answers_seen = row_checks.distinct_labels(answers)
            row_checks.check_vocabulary(labels_seen, answers_seen)
            classes = np.union1d(labels_seen, answers_seen)
        else:
            classes = row_checks.check_classes(labels)
        rule = DecisionRule.checked("estimator", cost_matrix, classes)
        predictions = cls(
            y_true=row_checks.encode_known(truth, classes),
            y_pred=row_checks.encode_known(answers, classes, "y_pred"),
            classes=classes,
            confidence=scores,
            sample_weight=row_checks.check_weight(sample_weight, n),
            _undecided=_find_unrated(scores),
            _abstain_answers=tuple(abstain_answers),
            rule=rule,
            reviewer=None if reviewer is None else encode_reviewer(reviewer, classes, n),
        )
        warn_of_confidence(predictions)
        return predictions

    @classmethod
    def from_verdicts(
        cls,
        verdict: Any,
        confidence: Any,
        *,
        audit_proba: Any = None,
        unjudged: str = "drop",
        abstain_answers: Any = (),
    ) -> Predictions:
        """Build predictions from a person's verdicts on answers, such as a language model's.

        The classes are "right" and "wrong", and each answer is predicted to be right.

        Parameters
        ----------
        verdict : array-like of shape (n,)
            Whether each answer is right: right or wrong, correct or incorrect, True or False, 1 or
            0. Missing or empty: nobody has judged it.
        confidence : array-like of shape (n,)
            How sure the classifier is of each row. A finite number, or missing: then the row counts
            as deferred at every threshold. Larger is surer.
        audit_proba : array-like of shape (n,), default=None
            The probability with which each case was drawn. In (0, 1]; rows count by its inverse, so
            certify with the objective's ``largest_weight=``. None: the same for all cases.
        unjudged : {"drop", "wrong"}, default="drop"
            What rows without a label are. "drop": left out. A certificate assumes first that the
            others were drawn at random from the cases that the policy will decide; it is an
            estimate where their confidences differ (tested at level 0.001, without `audit_proba`).
            "wrong": they count as errors until they are judged, in any order, the surest first at
            best; :meth:`ThresholdSelection.next_to_judge` names them. Each row needs a confidence.
        abstain_answers : list, default=()
            What says that the model itself abstains, such as "unsure". It stands in place of a
            verdict.

        Returns
        -------
        Predictions

        Raises
        ------
        ValueError
            If no row has a verdict, a verdict is something else, or a number is not in its range.

        Examples
        --------
        >>> from skselect import Predictions
        >>> Predictions.from_verdicts(["right", None, "wrong"], [.9, .8, .3]).to_frame()
          y_true y_pred  confidence
        0  right  right         0.9
        1  wrong  right         0.3
        """
        row_checks.check_same_order(verdict=verdict, confidence=confidence, audit_proba=audit_proba)
        codes, abstains = _read_answered(verdict, abstain_answers)
        is_judged: BoolArray = codes >= 0
        scores = row_checks.check_one_per_row(as_array(confidence, "confidence"), "confidence")
        row_checks.check_length("confidence", scores, len(codes), "verdict")
        if check_choice("unjudged", unjudged, ["drop", "wrong"]) == "wrong":
            _refuse_weighted_pool("audit_proba", audit_proba)
            scores = np.where(abstains, np.nan, row_checks.check_confidence(scores))
            pool = cls(
                y_true=codes,
                y_pred=np.zeros_like(codes),
                classes=VERDICTS,
                confidence=scores,
                _undecided=_find_unrated(scores),
                _abstain_answers=tuple(abstain_answers),
                rule=DecisionRule("estimator"),
                unjudged=~is_judged,
            )
            warn_of_confidence(pool)
            return pool
        if not np.any(is_judged):
            raise ValueError(f"verdict is missing in each of the {len(codes)} rows.")
        weight = None
        if audit_proba is not None:
            weight = _invert_audit_proba(audit_proba, is_judged)
        judged_scores = row_checks.check_rated(scores[is_judged])
        unrated = np.zeros(len(codes), dtype=bool)
        unrated[is_judged] = np.isnan(judged_scores)
        _warn_of_missing(unrated & ~abstains, "confidence", "have none")
        judged_scores = np.where(abstains[is_judged], np.nan, judged_scores)
        codes = codes[is_judged]
        predictions = cls(
            y_true=codes,
            y_pred=np.zeros_like(codes),
            classes=VERDICTS,
            confidence=judged_scores,
            _undecided=_find_unrated(judged_scores),
            _abstain_answers=tuple(abstain_answers),
            sample_weight=weight,
            rule=DecisionRule("estimator"),
            _draw=_describe_draw(judged_scores, scores, is_judged, weight),
        )
        warn_of_confidence(predictions)
        return predictions

    @staticmethod
    def count_votes(votes: Any) -> tuple[LabelArray, FloatArray]:
        """Return the most frequent answer of each row, and its share of the votes.

        Of equally frequent answers the first in sorted order is taken, with its own share. The two
        arrays are what :meth:`from_labels` and :meth:`AbstentionPolicy.decide` take.

        Parameters
        ----------
        votes : array-like of shape (n, k)
            The answers of k samples of a model, or of k models, to each case.

        Returns
        -------
        ndarray of shape (n,), ndarray of shape (n,)

        Raises
        ------
        ValueError
            If a vote is missing; the message names the row.

        Examples
        --------
        >>> from skselect import Predictions
        >>> Predictions.count_votes([["a", "b", "b", "a"], ["b", "b", "b", "a"]])
        (array(['a', 'b'], dtype='<U1'), array([0.5 , 0.75]))
        """
        cells = _check_votes(votes)
        n, n_votes = cells.shape
        labels = row_checks.check_labels(cells.ravel(), "votes")
        classes, codes = np.unique(labels, return_inverse=True)
        winners, counts = _find_most_frequent(codes.reshape(n, n_votes), len(classes))
        return classes[winners], counts / n_votes

    def take(self, rows: IntArray | BoolArray) -> Predictions:
        """Return some of the rows."""
        taken: dict[str, Any] = {"_draw": self._draw.take(rows)}
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray) and name != "classes":
                taken[name] = values[rows]
        return replace(self, **taken)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per case: true and predicted label, probabilities, weight."""
        labels = pd.Series(self.classes[self.y_true])
        truth = labels.where(self.y_true >= 0)
        answers: Any = self.answers
        if self._undecided is not None:
            answers = pd.Series(answers).mask(self._undecided)
        columns: dict[Any, Any] = {"y_true": truth, "y_pred": answers}
        if self.y_proba is not None:
            for k, label in enumerate(self.classes.tolist()):
                columns[label] = self.y_proba[:, k]
        if self.confidence is not None:
            columns["confidence"] = self.confidence
        if self.sample_weight is not None:
            columns["sample_weight"] = self.sample_weight
        if self.reviewer is not None:
            columns["reviewer"] = self.classes[self.reviewer]
        return pd.DataFrame(columns)


def draw_of(predictions: Predictions) -> Draw:
    """Return how the rows were drawn."""
    return predictions._draw  # noqa: SLF001 - for other rooms, not for users


def undecided_of(predictions: Predictions) -> BoolArray | None:
    """Return which rows every threshold defers: they have no answer, or no number; None for none.

    Where all probabilities are 0 the classifier says "none of these". `y_proba` then holds equal
    ones, which metrics read.
    """
    return predictions._undecided  # noqa: SLF001 - for other rooms, not for users


def abstain_answers_of(predictions: Predictions) -> tuple[Any, ...]:
    """Return the answers by which the model itself abstains."""
    return predictions._abstain_answers  # noqa: SLF001 - for other rooms, not for users


def hold_decision_values(predictions: Predictions) -> bool:
    """Tell whether there are decision values in place of probabilities."""
    return predictions._decision_values is not None  # noqa: SLF001 - for other rooms


def raw_scores(predictions: Predictions) -> FloatArray:
    """Return decision values, or probabilities as they were given: zeros name no class."""
    values = predictions._decision_values  # noqa: SLF001 - for other rooms, not for users
    if values is not None:
        return values
    proba = predictions.y_proba
    assert proba is not None
    undecided = undecided_of(predictions)
    if undecided is None:
        return proba
    proba = proba.copy()
    proba[undecided & ~np.isnan(proba[:, 0])] = 0.0
    return proba


def read_all(rows: Any, purpose: str) -> Any:
    """Return rows of which each has a confidence; refuse others.

    Rows of zeros are read as equal probabilities.
    """
    if isinstance(rows, Predictions):
        undecided = undecided_of(rows)
        if undecided is None or hold_decision_values(rows):
            return rows
        if rows.y_proba is not None and not np.isnan(rows.y_proba[undecided]).any():
            return replace(rows, _undecided=None)
        name = "confidence" if rows.y_proba is None else "y_proba"
    else:
        name = "confidence"
        undecided = np.isnan(rows.confidence)
        if not undecided.any():
            return rows
    raise ArgumentError(
        name,
        f"{row_checks.name_undecided(undecided, name)} cannot be decided: they have no answer, or "
        f"lack a number. {purpose} needs both in each row; leave them out.",
    )


def cascade_of(predictions: Predictions) -> Any:
    """Return the cascade that joined the tables of several models, None for one model."""
    return predictions._cascade  # noqa: SLF001 - for other rooms, not for users


def are_verdicts(predictions: Predictions) -> bool:
    """Tell whether the classes are a person's verdicts on answers, right and wrong."""
    return predictions.y_proba is None and predictions.classes.tolist() == VERDICTS.tolist()


def _find_unrated(scores: FloatArray) -> BoolArray | None:
    """Return which rows have no confidence, None if all have one."""
    unrated = np.isnan(scores)
    if unrated.all():
        raise ValueError("confidence: no row has an answer and a confidence.")
    if not unrated.any():
        return None
    return unrated


def _warn_of_missing(missing: BoolArray, name: str, what: str) -> None:
    """Warn of rows that no threshold can accept, although nobody said so."""
    if missing.any():
        rows = row_checks.name_undecided(missing, name)
        warn_user(f"{rows} {what}; they count as deferred at every threshold.")


def _read_answered(verdict: Any, abstain_answers: Any) -> tuple[IntArray, BoolArray]:
    """Return the codes of verdicts, that of any one where the model itself abstains, and where."""
    if isinstance(abstain_answers, list | tuple) and len(abstain_answers) == 0:
        codes = _check_verdicts(verdict)
        return codes, np.zeros(len(codes), dtype=bool)
    cells = row_checks.label_array(verdict, "verdict").astype(object)
    row_checks.check_one_per_row(cells, "verdict")
    abstains = row_checks.find_abstaining(cells, abstain_answers)
    cells[abstains] = None
    codes = _check_verdicts(cells)
    codes[abstains] = 1
    return codes, abstains


def _check_votes(votes: Any) -> LabelArray:
    """Return votes, one row per case and one column per sample, none of them missing."""
    cells = row_checks.label_array(votes, "votes")
    if cells.ndim != 2 or 0 in cells.shape:
        raise ValueError(
            "votes must have one row per case and one column per sample, got the shape "
            f"{cells.shape}."
        )
    missing = pd.isna(cells) | (cells.astype(str) == "")
    if np.any(missing):
        row, column = np.argwhere(missing)[0].tolist()
        raise ValueError(
            f"votes: row {row} has no vote in column {column} (counted from 0); leave such "
            "rows out, or ask again."
        )
    return cells


def _find_most_frequent(codes: IntArray, n_classes: int) -> tuple[IntArray, IntArray]:
    """Return the most frequent code of each row, the first of equally frequent ones, and counts."""
    n, n_votes = codes.shape
    rows = np.repeat(np.arange(n), n_votes)
    pairs, counts = np.unique(rows * n_classes + codes.ravel(), return_counts=True)
    row, code = np.divmod(pairs, n_classes)
    order = np.lexsort((code, -counts, row))
    first_of_row = np.searchsorted(row[order], np.arange(n))
    most_frequent = order[first_of_row]
    return code[most_frequent], counts[most_frequent]


def _check_verdicts(verdict: Any) -> IntArray:
    """Return 0 for right, 1 for wrong, -1 where there is no verdict; refuse anything else."""
    codes = read_verdicts(verdict)
    is_unreadable = codes == UNREADABLE
    if np.any(is_unreadable):
        cells = row_checks.label_array(verdict, "verdict")[is_unreadable]
        texts = [str(plain_value(cell)) for cell in cells.tolist()]
        unreadable = [text if text.isprintable() else ascii(text)[1:-1] for text in texts]
        unreadable = list(dict.fromkeys(unreadable))
        raise ValueError(
            f"verdict must hold {VERDICT_WORDS}, got {', '.join(unreadable[:3])}. It stands before "
            "the confidence."
        )
    return codes


def _invert_audit_proba(audit_proba: Any, is_judged: BoolArray) -> FloatArray:
    """Return the weight of each judged row: the inverse of the chance with which it was drawn."""
    chance = row_checks.check_vector(audit_proba, "audit_proba")
    row_checks.check_length("audit_proba", chance, len(is_judged), "verdict")
    chance = chance[is_judged]
    if not np.all((chance > 0) & (chance <= 1)):
        low = np.min(chance)
        high = np.max(chance)
        raise ValueError(
            "audit_proba must hold probabilities above 0 and up to 1, got values from "
            f"{low:g} to {high:g}."
        )
    return 1.0 / chance


def _describe_draw(
    judged: FloatArray, scores: LabelArray, is_judged: BoolArray, weight: FloatArray | None
) -> Draw:
    """Describe how judged rows were drawn: with given probabilities, or by chance as is assumed."""
    how = "at random"
    doubt = ""
    if weight is None:
        others = pd.Series(scores[~is_judged])
        doubt = _find_doubt(judged, pd.to_numeric(others, errors="coerce"))
    else:
        how = "with the given probabilities"
    assumed = f"the cases with a verdict were drawn {how} from those that the policy will decide"
    return Draw(assumed, doubt, np.flatnonzero(is_judged))


def read_verdicts(values: Any) -> IntArray:
    """Return 0 for right, 1 for wrong, -1 where there is no verdict, else `UNREADABLE`."""
    if isinstance(values, pd.Series | pd.api.extensions.ExtensionArray):  # missing ones stay
        values = values.astype(object)
    if isinstance(values, list | tuple):
        present = [value for value in values if value is not None and value is not pd.NA]
        if all(map(np.isscalar, present)):
            values = np.array(values, dtype=object)
    cells = as_array(values, "verdict")
    cells = row_checks.check_one_per_row(cells, "verdict")
    if cells.dtype.kind not in "biu":
        cells = cells.astype(object)
    try:
        codes, distinct = pd.factorize(cells)
    except UnicodeEncodeError as error:
        raise ValueError("verdict holds half a character (a surrogate).") from error
    verdicts = []
    for cell in distinct:
        word = str(plain_value(cell)).strip().lower()
        verdicts.append(_WORDS.get(word, UNREADABLE))
    return look_up_codes(verdicts, codes, missing=-1)


def refuse_unjudged(rows: Any, purpose: str) -> None:
    """Refuse rows that nobody has judged yet: they count as errors for thresholds alone."""
    if rows.unjudged is None:
        return
    n_unjudged = int(np.sum(rows.unjudged))
    if n_unjudged:
        message = (
            f"unjudged: {purpose} needs the truth about every row, and nobody has judged "
            f"{n_unjudged:,} of these {len(rows):,}. Judge them, or leave them out."
        )
        raise ArgumentError("unjudged", message)


def find_column_order(rows: Any) -> str:
    """Say in which order the columns of probabilities fit the labels, "" where theirs does.

    An order is named if at most half of the errors are left with it, by more than chance (a sign
    test of each of K! orders). What it cannot see: columns of alike classes, and two of many that
    are swapped where most errors have another cause.
    """
    if not isinstance(rows, Predictions) or rows.y_proba is None or rows.unjudged is not None:
        return ""
    if len(rows.classes) > _MOST_COLUMNS:
        return ""
    if len(rows.classes) == 2 and rows.rule.decision == "argmax":
        # The other order of two columns is wrong where this one is right.
        n_right = np.count_nonzero(rows.y_pred == rows.y_true)
        if 3 * n_right > len(rows):
            return ""
    table = _count_answers(rows, rows.y_proba)
    order = _find_better_order(table)
    if order is None:
        return ""
    n = table.sum()
    n_right = table[np.arange(len(order)), order].sum()
    right_then = percent(n_right / n)
    right_now = percent(table.trace() / n)
    classes = rows.classes[order[:20]].tolist()
    return (
        f"y_proba: its columns seem to be in another order, {classes}: "
        f"then {right_then} of the answers would be right, now {right_now} are. Name the classes "
        "in this order, labels= (in a terminal --classes; for a single column pos_label=), or sort "
        "the columns. An order is noticed only if it leaves at most half of the errors."
    )


def _count_answers(predictions: Predictions, proba: FloatArray) -> IntArray:
    """Return how many rows have their largest probability in each column (row) and each class."""
    k = len(predictions.classes)
    answers = predictions.y_pred
    if predictions.rule.decision != "argmax":
        answers = proba.argmax(axis=1)
    has_unknown = predictions.y_true.min() < 0
    table = np.zeros(k * k, dtype=np.int64)
    for rows in spans(len(answers)):
        cells = answers[rows] * k + predictions.y_true[rows]
        if has_unknown:
            cells = cells[predictions.y_true[rows] >= 0]
        table += np.bincount(cells, minlength=k * k)
    return table.reshape(k, k)


def _find_better_order(table: IntArray) -> IntArray | None:
    """Return the class of each column where another order leaves half of the errors or fewer."""
    now = table.diagonal()
    if np.all(now >= table.max(axis=1)):
        return None
    from scipy import stats  # noqa: PLC0415 - few tables come here
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    column, order = linear_sum_assignment(table, maximize=True)
    then = table[column, order]
    is_moved = order != column
    lost = now[is_moved].sum()
    won = then[is_moved].sum()
    log_p_value = stats.binom.logsf(won - 1, won + lost, 0.5) + special.gammaln(len(table) + 1)
    n = table.sum()
    n_errors_now = n - now.sum()
    n_errors_then = n - then.sum()
    if 2 * n_errors_then > n_errors_now or log_p_value > np.log(_NO_ORDER):
        return None
    return np.asarray(order, dtype=np.int64)


def warn_of_columns(rows: Any) -> None:
    """Warn where another order of the columns fits the labels."""
    message = find_column_order(rows)
    if message:
        warn_user(message)


def find_confidence_doubt(rows: Any) -> str:
    """Say why a confidence that was passed does not seem to be that of the answer, else ""."""
    if not isinstance(rows, Predictions) or rows.confidence is None or rows.y_proba is not None:
        return ""
    judged = ~np.isnan(rows.confidence)
    if rows.unjudged is not None:
        judged &= ~rows.unjudged
    if not np.any(judged):
        return ""
    confidence = rows.confidence
    y_true = rows.y_true
    y_pred = rows.y_pred
    if not np.all(judged):
        confidence = confidence[judged]
        y_true = y_true[judged]
        y_pred = y_pred[judged]
    return doubt_confidence(y_true, y_pred, rows.classes, confidence)


def warn_of_confidence(predictions: Predictions) -> None:
    """Warn of what :func:`find_confidence_doubt` says."""
    message = find_confidence_doubt(predictions)
    if message:
        warn_user(message)


def _fill_unjudged(y_true: Any, labels: Any) -> tuple[LabelArray, BoolArray]:
    """Return labels, any one where it is missing, and where that is."""
    if isinstance(y_true, pd.Series | pd.api.extensions.ExtensionArray):  # missing ones stay
        y_true = y_true.astype(object)
    values = row_checks.label_array(y_true, "y_true").astype(object)
    if values.shape[1:] == (1,):
        values = values.ravel()
    values = row_checks.check_one_per_row(values, "y_true")
    missing = np.asarray(pd.isna(values))
    if not missing.any():
        return values, missing
    if missing.all():
        if labels is None:
            raise ArgumentError("labels", "labels is missing: y_true holds no label yet.")
        stand_in = row_checks.check_classes(labels)[:1].item()
    else:
        stand_in = values[~missing][0]
    values[missing] = stand_in
    return values, missing


def _refuse_weighted_pool(name: str, weight: Any) -> None:
    """Refuse weights where rows without a label count as errors."""
    if weight is not None:
        message = (
            f"{name} does not go with unjudged='wrong', which counts each row once; leave one out."
        )
        raise ArgumentError(name, message)


def _find_doubt(judged: FloatArray, others: pd.Series) -> str:
    """Say that judged rows have other confidences than the others, "" where chance explains it."""
    rest = others[np.isfinite(others)].to_numpy()
    judged = judged[np.isfinite(judged)]
    if not len(rest) or not len(judged):
        return ""
    from scipy import stats  # noqa: PLC0415 - few tables lack verdicts

    _, p_value = stats.mannwhitneyu(judged, rest, method="asymptotic")
    if not p_value < _UNLIKE:  # nan where all confidences are equal
        return ""
    median_of_judged = np.median(judged)
    median_of_others = np.median(rest)
    return (
        f"the cases with a verdict have other confidences (median {median_of_judged:.4g}) than "
        f"those without one ({median_of_others:.4g}), by more than chance explains (level "
        f"{_UNLIKE:g}): judge cases drawn at random, or count the others as errors until they are "
        "judged (unjudged='wrong')"
    )


def rows_given(y_true: Any, y_proba: Any, others: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the positional arguments of a function as they were passed: a table stands alone."""
    if y_proba is None and not others:
        return (y_true,)
    return (y_true, y_proba, *others)


def read_rows(
    arguments: tuple[Any, ...],
    tables: tuple[type, ...],
    build: Callable[..., Predictions] = Predictions.from_proba,
    **options: Any,
) -> Any:
    """Return a table as it is, or Predictions of `(y_true, y_proba)`.

    Parameters
    ----------
    arguments : tuple
        The positional arguments: a table, or `(y_true, y_proba)`.
    tables : tuple of type
        The kinds of tables that are returned as they are.
    build : callable
        Makes Predictions of `(y_true, y_proba)`.
    **options
        Keywords of `build`; a table takes none of them.
    """
    is_table = bool(arguments) and isinstance(arguments[0], tables)
    kinds = " or ".join(kind.__name__ for kind in tables)
    wanted = f"rows must be y_true and y_proba (true labels, then probabilities), or one {kinds}"
    if len(arguments) < 2 and not is_table:
        got = type(arguments[0]).__name__ if arguments else "nothing"
        hint = ""
        if got == "SelectiveState" and "RiskCoverageCurve" in kinds:
            hint = " Pass its finalize()."
        raise ValueError(f"{wanted}; got {got} alone.{hint}")
    others = arguments[1 if is_table else 2 :]
    if others:
        hint = "Name what follows, such as objective= and target=."
        raise ValueError(f"{wanted}; got {shown(others[0])} after them. {hint}")
    if is_table:
        _refuse_options(arguments[0], options)
        return arguments[0]
    if any(hasattr(values, "__dask_graph__") for values in arguments):
        raise ValueError(
            "y_true, y_proba: Dask collections are counted block by block. Use "
            "skselect.dask.evaluate(y_true, y_proba) for metrics, "
            "skselect.dask.state(y_true, y_proba) for thresholds and policies, or pass "
            "y_true.compute(), y_proba.compute()."
        )
    return build(*arguments, **options)


def _refuse_options(table: Any, options: Mapping[str, Any]) -> None:
    """Refuse what goes with labels and probabilities beside a table, which holds its own."""
    for name, value in options.items():
        if value is not None:
            kind = type(table).__name__
            raise ValueError(f"{name} goes with y_true and y_proba, not with {kind}.")


def _read_proba(
    y_proba: Any, truth: LabelArray, n: int, labels: Any, pos_label: Any
) -> tuple[LabelArray, FloatArray]:
    """Return the classes, and the checked probability of each in n rows."""
    names = column_names(y_proba)
    table = as_array(y_proba, "y_proba")
    if table.ndim not in (1, 2):
        hint = "; pass its predict_proba(X)" if hasattr(y_proba, "predict_proba") else ""
        raise ValueError(
            "y_proba must be the table of one model, one row per case and one column per "
            f"class, got {type(y_proba).__name__}{hint}."
        )
    row_checks.check_length("y_proba", table, n)
    if table.ndim == 1:
        return _complete_columns(table, truth, labels, pos_label)
    classes = _find_classes(truth, labels, names)
    if pos_label is not None:
        row_checks.check_two_classes(classes, f"pos_label={shown(pos_label)}", "; leave it out")
        row_checks.resolve_pos_label(classes, pos_label)
    if names is not None:  # before the check: other columns may hold text
        columns = row_checks.match_columns(names, classes, remedy=_IN_ORDER)
        table = table[:, columns]
    remedy = (
        ". Pass predict_proba(X), and labels= with the class of every column. Where a fold lacks a "
        "class, score by name (scoring='neg_augrc') or by skselect.scoring.get_scorer"
    )
    row_checks.check_class_columns(table.shape[1], classes, "y_proba", remedy)
    return classes, row_checks.check_proba(table, missing="keep")


def _exponentiate(logits: Any) -> Any:
    """Return the probabilities of logits, in a data frame where the columns have names."""
    names = column_names(logits)
    array = as_array(logits, "logits")
    values = as_floats(array, "logits")
    if values.ndim not in (1, 2) or 0 in values.shape:
        raise ValueError(
            "logits must have one row per case and one column per class, got the shape "
            f"{values.shape}."
        )
    if np.any(np.isposinf(values)):
        raise ValueError("logits has infinite values; only -inf, the logarithm of 0, is one.")
    if values.ndim == 1:
        row_checks.refuse_labels(array, "logits")
        return special.expit(values)
    says_none = np.all(np.isneginf(values), axis=1)  # probability 0 of each class
    proba = special.softmax(np.where(says_none[:, None], 0.0, values), axis=1)
    proba[says_none] = 0.0
    if names is None:
        return proba
    return pd.DataFrame(proba, columns=names)


def _read_decision_values(
    scores: Any, truth: LabelArray, labels: Any
) -> tuple[LabelArray, FloatArray]:
    """Return the classes, and decision values with a column each; one value for two classes."""
    names = column_names(scores)
    values = as_floats(as_array(scores, "scores"), "scores")
    if values.ndim not in (1, 2) or 0 in values.shape:
        raise ValueError(
            f"scores must be what decision_function(X) returns, got the shape {values.shape}."
        )
    if np.any(np.isinf(values)):
        raise ValueError("scores has infinite values; decision values are finite.")
    if values.shape[1:] == (1,):
        values = values[:, 0]
    if values.ndim == 1:
        classes = _find_classes(truth, labels, None)
        remedy = "; pass labels= with both, or one column per class"
        row_checks.check_two_classes(classes, "scores with one value per row", remedy)
        return classes, values
    classes = _find_classes(truth, labels, names)
    if names is not None:
        values = values[:, row_checks.match_columns(names, classes, "scores", _IN_ORDER)]
    if len(classes) == 2:
        raise ValueError(
            "scores has a column for each of two classes, but decision_function returns one value "
            "per row, above 0 for the second class; for logits use from_logits."
        )
    remedy = ". Pass decision_function(X), and labels= with the class of every column"
    row_checks.check_class_columns(values.shape[1], classes, "scores", remedy)
    return classes, values


def _find_undecided(proba: FloatArray) -> tuple[BoolArray | None, FloatArray]:
    """Return which rows lack a number or name no class, and equal probabilities for the latter."""
    missing, names_none = find_undecided(proba, "predict_proba")
    if missing is None and names_none is None:
        return None, proba
    if missing is not None:
        if missing.all():
            raise ValueError("y_proba lacks a number in each row; pass predict_proba(X).")
        _warn_of_missing(missing, "y_proba", "lack a number")
    if names_none is not None:
        proba = spread(proba, names_none)
    return rows_of_either(missing, names_none), proba


def _complete_columns(
    raw: LabelArray, truth: LabelArray, labels: Any, pos_label: Any
) -> tuple[LabelArray, FloatArray]:
    """Complete the probability of one class to those of both."""
    advice = (
        " Pass predict_proba(X), or float probabilities of pos_label. make_scorer needs "
        'response_method="predict_proba", and greater_is_better=False for a loss; '
        "skselect.scoring.get_scorer knows both. (TunedThresholdClassifierCV gives a metric labels "
        "alone: use ThresholdTuner.)"
    )
    row_checks.refuse_labels(raw, "y_proba", advice)
    positive = row_checks.check_vector(raw, "y_proba")
    classes_seen = _find_classes(truth, labels, None)
    listed = classes_seen.tolist()
    if pos_label is None and len(classes_seen) == 2 and classes_seen[0] < classes_seen[1]:
        pos_label = listed[1]  # whose column scikit-learn's scorers pass
    if pos_label is not None or len(classes_seen) <= 2:
        pos_label = row_checks.resolve_pos_label(classes_seen, pos_label)
    others = [label for label in listed if label != pos_label]
    if len(others) > 1:
        raise ValueError(
            f"y_proba is one-dimensional, but there are the classes {listed[:10]}; pass one "
            "column per class. Where a fold lacks a class, score by name (scoring='neg_augrc') or "
            "by skselect.scoring.get_scorer."
        )
    if not others:
        # Every row is of the positive class: make up a label for the other one.
        others = [_invent_label(classes_seen, pos_label)]
    if not row_checks.same_kind(classes_seen, np.array([pos_label])):
        raise ValueError(
            f"pos_label={pos_label!r} is of another kind than the labels {listed[:10]}."
        )
    is_bool = classes_seen.dtype.kind == "b"
    classes = np.array([False, True]) if is_bool else np.sort([others[0], pos_label])
    column = int(np.flatnonzero(classes == pos_label)[0])
    proba = np.empty((len(positive), 2))
    proba[:, column] = positive
    proba[:, 1 - column] = 1.0 - positive
    return classes, row_checks.check_proba(proba, missing="keep")


def _invent_label(classes_seen: LabelArray, pos_label: Any) -> Any:
    if classes_seen.dtype.kind in "US":
        return f"not {pos_label}"
    if classes_seen.dtype.kind == "b":
        return not pos_label
    if pos_label % 1:
        return float(pos_label) - 1
    return int(pos_label) - 1


def _find_classes(truth: LabelArray, labels: Any, names: list[Any] | None) -> LabelArray:
    """Return the classes: `labels`, or the labels seen, or a frame's columns if it has more."""
    if labels is not None:
        return row_checks.check_classes(labels)
    classes_seen = row_checks.distinct_labels(truth)
    row_checks.warn_of_spellings(classes_seen)
    if names is None or len(names) == len(classes_seen):
        return classes_seen
    named = np.sort(_read_class_names(names, classes_seen))
    if set(classes_seen.tolist()) <= set(named.tolist()):
        return named
    return classes_seen


def _read_class_names(names: list[Any], like: LabelArray) -> LabelArray:
    """Return column names as classes; text such as "2" is a number where the labels are."""
    classes = row_checks.check_classes(names, "y_proba.columns")
    if classes.dtype.kind in "US" and like.dtype.kind in "iuf":
        try:
            values = classes.astype(np.float64)
            return values.astype(like.dtype)
        except ValueError:
            return classes
    return classes


def encode_reviewer(answers: Any, classes: LabelArray, n: int, name: str = "reviewer") -> IntArray:
    """Return the codes of a reviewer's answers."""
    labels = row_checks.check_labels(answers, name)
    row_checks.check_length(name, labels, n)
    return row_checks.encode_known(
        labels, classes, name, "A reviewer answers with one of the classes."
    )


def _encode_answers(y_pred: Any, decision: str, classes: LabelArray, n: int) -> IntArray | None:
    """Return the codes of `y_pred`, which only decision="estimator" takes."""
    if decision != "estimator":
        if y_pred is not None:
            raise ValueError(
                f"y_pred goes with decision='estimator'; decision={decision!r} chooses its own "
                "classes."
            )
        return None
    labels = check_given(y_pred, "y_pred", "decision='estimator'")
    labels = row_checks.check_labels(labels)
    row_checks.check_length("y_pred", labels, n)
    return row_checks.encode_known(labels, classes, "y_pred")


def check_is_predictions(source: Any, purpose: str) -> Predictions:
    """Refuse anything but Predictions where classes are needed."""
    if not isinstance(source, Predictions):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"{purpose} needs Predictions, got {type(source).__name__}; build them with "
            "Predictions.from_proba(y_true, y_proba)."
        )
    return source


def rows_of_class(predictions: Predictions, side: str, label: Any) -> tuple[BoolArray, str]:
    """Return which rows are answered ("predicted"), or are ("true"), a class, and their name."""
    codes = predictions.y_true
    kind = "whose true class is"
    if side == "predicted":
        codes = predictions.y_pred
        kind = "whose answer is"
    is_of_class = (predictions.classes[codes] == label) & (codes >= 0)
    return is_of_class, f"{kind} {label!r}"
