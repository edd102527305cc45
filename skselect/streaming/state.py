"""An evaluation that is updated batch by batch, of all rows or by subgroup, split and merged."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skselect._lib import arrays
from skselect._lib.checks import rows as row_checks
from skselect.curve.curve import CountedRows, RiskCoverageCurve
from skselect.curve.tie_blocks import SummedBlocks, blocks_from_counts
from skselect.inference.intervals import MetricInterval, find_curve_interval
from skselect.metrics._evaluate import DEFAULT_METRICS, requests
from skselect.metrics._rows import ScoredRows
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions, undecided_of
from skselect.selection.results import GroupedSelection, ThresholdSelection
from skselect.selection.select import select_threshold
from skselect.streaming.counts import Counts

#: Rows that are counted together.
_BATCH = 1 << 20
#: Version of the pickled form.
_VERSION = 4


class SelectiveState(CountedRows):
    """Count predictions batch by batch; the metrics do not depend on how they were split.

    Parameters
    ----------
    labels : array-like of shape (K,), default=None
        All classes, in the order of the columns. For :meth:`update` with probabilities of K
        classes. Default: the sorted labels of the first batch, which must contain every class.
    confidence : {"max_proba", "margin", "entropy", "gini"} or callable, default="max_proba"
        How sure the classifier is of each row. In [0, 1]. Metrics that need a probability of being
        right (csr, ece, cw_accuracy) accept "max_proba" only, or a callable that returns one.

    Attributes
    ----------
    n_rows, n_errors : int
        What has been counted.
    n_undecided : int
        The rows among them that every threshold defers: they lack a number, or are zeros, which
        name no class. Metrics refuse the first and read the others as equal probabilities.
    n_rated : int
        The rows that came with class probabilities.
    nbytes : int
        Memory of the counters.
    labels : ndarray of shape (K,) or None

    See Also
    --------
    skselect.evaluate_parquet : The same from files.
    skselect.dask.evaluate : The same on a cluster.

    Notes
    -----
    A state holds whole numbers only. So its metrics do not depend on the order of the rows, on
    the batches or on the order of merges, and equal those of :func:`skselect.evaluate` for all
    rows in memory, bit by bit.

    Examples
    --------
    >>> from skselect import SelectiveState
    >>> first = SelectiveState().update([0, 1], [[.9, .1], [.2, .8]])
    >>> second = SelectiveState().update([1, 0], [[.6, .4], [.7, .3]])
    >>> first.merge(second).evaluate(["aurc", "coverage"]).round(3)
    aurc        0.062
    coverage    1.000
    dtype: float64
    """

    def __init__(
        self, *, labels: Any = None, confidence: arrays.ConfidenceSpec = "max_proba"
    ) -> None:
        self.labels: arrays.LabelArray | None = None
        if labels is not None:
            self.labels = row_checks.check_classes(labels)
        self.confidence = confidence
        self.n_rows = 0
        self.n_errors = 0
        self.n_rated = 0
        self.n_lacking = 0
        self.n_none = 0
        self.counts = Counts()
        # Rows of zeros, by the confidence of equal probabilities.
        self.zeros = Counts()

    def __repr__(self) -> str:
        n_mebibytes = self.nbytes / 2**20
        return f"SelectiveState({self.n_rows} rows, {self.n_errors} errors, {n_mebibytes:.1f} MiB)"

    @property
    def nbytes(self) -> int:
        """Memory of the counters."""
        return self.counts.nbytes + self.zeros.nbytes

    @property
    def n_undecided(self) -> int:
        """The rows that every threshold defers."""
        return self.n_lacking + self.n_none

    # Feeding -----------------------------------------------------------------------------

    def update(self, y_true: Any, y_proba: Any) -> Self:
        """Count rows with class probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        y_proba : array-like of shape (n, K) or (n,)
            Class probabilities. Columns in the order of `labels`, or the probability of the second
            of two classes.

        Returns
        -------
        SelectiveState
            This one.

        Raises
        ------
        ValueError
            If an argument is malformed; nothing is counted then.
        """
        piece, labels = read_piece(y_true, y_proba, self.labels, self.confidence)
        self.labels = labels
        self.n_rated += len(piece.wrong)
        return self.count(piece)

    def update_confidence(self, confidence: Any, loss: Any) -> Self:
        """Count rows whose confidence and error are known.

        Parameters
        ----------
        confidence : array-like of shape (n,)
            How sure the classifier is of each row. In [0, 1]; NaN where the row cannot be decided.
        loss : array-like of shape (n,)
            How wrong an answer is. 1 for an error, 0 for a right answer.

        Returns
        -------
        SelectiveState
            This one.

        Raises
        ------
        ValueError
            If a confidence lies outside [0, 1], or a loss is neither 0 nor 1.
        """
        return self.count(check_seen_rows(confidence, loss))

    def count(self, piece: Piece) -> Self:
        """Count checked rows."""
        self.n_rows += len(piece.wrong)
        if piece.says_none is not None and piece.says_none.any():
            none = piece.take(piece.says_none)
            self.zeros.add(none.confidence, none.wrong)
            self.n_none += len(none.wrong)
            self.n_errors += int(np.count_nonzero(none.wrong))
            piece = piece.take(~piece.says_none)
        if np.isnan(piece.confidence.min(initial=0.0)):
            lacks_number = np.isnan(piece.confidence)
            self.n_lacking += int(np.count_nonzero(lacks_number))
            piece = piece.take(~lacks_number)
        for start in range(0, len(piece.wrong), _BATCH):
            rows = slice(start, start + _BATCH)
            self.counts.add(piece.confidence[rows], piece.wrong[rows])
        self.n_errors += int(np.count_nonzero(piece.wrong))
        return self

    @classmethod
    def from_counts(cls, confidence: Any, n: Any, n_errors: Any) -> Self:
        """Build a state from rows counted elsewhere, such as by a GROUP BY in a database.

        Parameters
        ----------
        confidence : array-like of shape (m,)
            How sure the classifier is of each row. In [0, 1]; a value may occur more than once.
            NaN: these rows cannot be decided.
        n, n_errors : array-like of shape (m,)
            Rows with that confidence, and how many of them were wrong.

        Returns
        -------
        SelectiveState

        Raises
        ------
        ValueError
            If there are more errors than rows, or numbers that are not whole.

        Examples
        --------
        >>> from skselect import SelectiveState
        >>> state = SelectiveState.from_counts([.9, .6], n=[90, 10], n_errors=[1, 4])
        >>> state.finalize().selective_risk.round(3)
        array([0.011, 0.05 ])
        """
        state = cls()
        values = check_unit_floats("confidence", confidence)
        rows = _check_row_counts("n", n, len(values))
        errors = _check_row_counts("n_errors", n_errors, len(values), most=rows)
        decided = ~np.isnan(values)
        state.counts.add_counts(values[decided], rows[decided], errors[decided])
        state.n_rows = int(rows.sum())
        state.n_lacking = int(rows[~decided].sum())
        state.n_errors = int(errors[decided].sum())
        return state

    def to_arrays(self) -> dict[str, Any]:
        """Return the counts: one entry per distinct confidence, the surest first.

        Returns
        -------
        dict
            "confidence", "n" and "n_errors", the arguments of :meth:`from_counts`. Rows that cannot
            be decided have one entry, the last, of confidence NaN.
        """
        blocks = self._blocks()
        columns = {
            "confidence": blocks.confidence,
            "n": blocks.rows,
            "n_errors": blocks.loss.astype(np.int64),
        }
        if self.n_undecided:
            last = {"confidence": np.nan, "n": self.n_undecided, "n_errors": 0}
            columns = {name: np.append(column, last[name]) for name, column in columns.items()}
        return columns

    # Merging -----------------------------------------------------------------------------

    def merge(self, *others: SelectiveState) -> SelectiveState:
        """Return a state that has counted the rows of all; none of them changes.

        Parameters
        ----------
        *others : SelectiveState
            Of the same labels and confidence.

        Returns
        -------
        SelectiveState

        Raises
        ------
        ValueError
            If they do not fit together.
        """
        merged = self.empty_twin()
        counts = {"counts": deepcopy(self.counts), "zeros": deepcopy(self.zeros)}
        vars(merged).update(vars(self) | counts)
        for other in others:
            check_is_kind(other, SelectiveState)
            _check_equal("confidence", self.confidence, other.confidence)
            if self.labels is not None and other.labels is not None:
                _check_equal("labels", self.labels.tolist(), other.labels.tolist())
            if merged.labels is None:
                merged.labels = other.labels
            merged.counts.add_all(other.counts)
            merged.zeros.add_all(other.zeros)
            merged.n_lacking += other.n_lacking
            merged.n_none += other.n_none
            merged.n_rows += other.n_rows
            merged.n_errors += other.n_errors
            merged.n_rated += other.n_rated
        return merged

    def empty_twin(self) -> SelectiveState:
        """Return a state of the same kind that has counted nothing."""
        return SelectiveState(labels=self.labels, confidence=self.confidence)

    # Reading -----------------------------------------------------------------------------

    def _blocks(self) -> SummedBlocks:
        check_has_rows(self.n_rows)
        if self.n_undecided == self.n_rows:  # one entry, of no row
            return blocks_from_counts(np.zeros(1), *np.zeros((2, 1), np.int64))
        return self.counts.blocks()

    def finalize(self) -> RiskCoverageCurve:
        """Return the risk-coverage curve of all rows so far.

        Raises
        ------
        ValueError
            If no row has been counted.
        """
        curve = RiskCoverageCurve(self._blocks())
        if self.n_undecided == 0:
            return curve
        return replace(
            curve, n_undecided=self.n_undecided, undecided_weight=float(self.n_undecided)
        )

    def _rank(self) -> RiskCoverageCurve:
        """Return the curve where rows of zeros have equal probabilities, as metrics read them."""
        if self.n_none == 0:
            return self.finalize()
        everything = deepcopy(self.counts)
        everything.add_all(self.zeros)
        curve = RiskCoverageCurve(everything.blocks())
        return replace(curve, n_undecided=self.n_lacking, undecided_weight=float(self.n_lacking))

    def evaluate(
        self,
        metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] = DEFAULT_METRICS,
    ) -> pd.Series:
        """Compute metrics of all rows.

        Parameters
        ----------
        metrics : iterable of str, or mapping of str to dict
            Short names as in ``skselect.metrics.SPECS``. A mapping gives the parameters of each,
            such as ``{"cwsa": {"threshold": .8}, "aurc": {}}``; metrics that read classes are
            refused.

        Returns
        -------
        Series
        """
        check_has_rows(self.n_rows)
        requested = requests(metrics)
        readers = [spec.name for spec, _ in requested if spec.confidence == "probability"]
        if readers and isinstance(self.confidence, str) and self.confidence != "max_proba":
            raise ValueError(
                f"metrics: {readers[0]!r} reads the probability of being right, but this state "
                f"counts confidence={self.confidence!r}; count in a state with "
                "confidence='max_proba'."
            )
        curve = self._rank()
        curve.refuse_undecided("A metric")
        deferring = None
        if self.n_none:
            deferring = self.finalize()
        rows = ScoredRows(curve, deferring=deferring)
        return pd.Series({spec.name: spec.value(rows, known) for spec, known in requested})

    def select_threshold(
        self, *, objective: Any, **options: Any
    ) -> ThresholdSelection | GroupedSelection:
        """Choose a threshold on all rows, with a certificate.

        Parameters
        ----------
        objective : Objective or str
            What the threshold should achieve. As for :func:`skselect.select_threshold`.
        **options
            `target`, `delta` and `on_infeasible`, as there.

        Returns
        -------
        ThresholdSelection
            Its `policy` is there where each row was counted with class probabilities; else
            ``to_policy`` makes one of the classes.

        Raises
        ------
        ValueError
            If no row has been counted, or no threshold reaches the target.

        Examples
        --------
        >>> from skselect import SelectiveState
        >>> state = SelectiveState(labels=[0, 1]).update([0, 0] * 60, [[.9, .1], [.4, .6]] * 60)
        >>> state.select_threshold(objective="risk", target=.1).policy
        <AbstentionPolicy: 2 classes, threshold 0.75, certified>
        """
        selection = select_threshold(self.finalize(), objective=objective, **options)
        if self.labels is None or self.n_rated < self.n_rows:
            return selection
        policy = selection.to_policy(self.labels, confidence=self.confidence)
        return replace(selection, policy=policy)

    def interval(self, metric: str, *, confidence_level: float = 0.95) -> MetricInterval:
        """Return a metric of the ranking with its confidence interval for the population.

        Parameters
        ----------
        metric : {"aurc", "eaurc", "augrc", "accuracy_rejection_auc", "failure_auroc"}
        confidence_level : float in (0, 1), default=0.95

        Returns
        -------
        MetricInterval
            As :func:`inference.metric_interval` for the rows in memory.

        Raises
        ------
        ValueError
            If no row has been counted, or the metric is not one of these.

        Warns
        -----
        UserWarning
            If the estimate rests on fewer than 10 errors, or fewer than 10 right answers.
        """
        return find_curve_interval(self._rank(), metric, confidence_level=confidence_level)

    # Copying and pickling ----------------------------------------------------------------

    def __copy__(self) -> SelectiveState:
        return self.merge()

    def __getstate__(self) -> dict[str, Any]:
        self.counts.settle()
        self.zeros.settle()
        return {"version": _VERSION, **self.__dict__}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        version = fields.pop("version", None)
        if version != _VERSION:
            raise ValueError(
                f"This SelectiveState was pickled in version {version!r}, and this skselect reads "
                f"version {_VERSION}; copy its counts with to_arrays() and from_counts()."
            )
        self.__dict__.update(fields)


class SubgroupStates:
    """A :class:`~skselect.SelectiveState` for each subgroup, updated and merged together.

    Parameters
    ----------
    **options
        ``labels`` and ``confidence`` of every state.

    Attributes
    ----------
    states : dict of subgroup to SelectiveState
    template : SelectiveState
        An empty state of their kind.

    Examples
    --------
    >>> from skselect.streaming import SubgroupStates
    >>> states = SubgroupStates(labels=[0, 1])
    >>> y_proba = [[.9, .1], [.2, .8], [.7, .3]]
    >>> _ = states.update([0, 1, 1], y_proba, subgroups=["a", "b", "b"])
    >>> states.evaluate(["selective_risk"])
       selective_risk
    a             0.0
    b             0.5
    """

    def __init__(self, **options: Any) -> None:
        self.template = SelectiveState(**options)
        self.states: dict[Hashable, SelectiveState] = {}

    def __repr__(self) -> str:
        return f"SubgroupStates({len(self.states)} subgroups)"

    def update(self, y_true: Any, y_proba: Any, *, subgroups: Any) -> Self:
        """Count rows with class probabilities, each for its subgroup.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        y_proba : array-like of shape (n, K) or (n,)
            Class probabilities. Columns in the order of `labels`, or the probability of the second
            of two classes.
        subgroups : array-like of shape (n,)
            The subgroup of each row. Missing values form the subgroup None.

        Returns
        -------
        SubgroupStates
            This one.

        Raises
        ------
        ValueError
            If an argument is malformed; nothing is counted then.
        """
        template = self.template
        piece, labels = read_piece(y_true, y_proba, template.labels, template.confidence)
        self._count(piece, subgroups)
        template.labels = labels
        return self

    def update_confidence(self, confidence: Any, loss: Any, *, subgroups: Any) -> Self:
        """Count rows whose confidence and error are known, each for its subgroup.

        Parameters
        ----------
        confidence : array-like of shape (n,)
            How sure the classifier is of each row. In [0, 1].
        loss : array-like of shape (n,)
            How wrong an answer is. 1 for an error, 0 for a right answer.
        subgroups : array-like of shape (n,)

        Returns
        -------
        SubgroupStates
            This one.

        Raises
        ------
        ValueError
            If an argument is malformed; nothing is counted then.
        """
        return self._count(check_seen_rows(confidence, loss), subgroups)

    def _count(self, piece: Piece, subgroups: Any) -> Self:
        """Count checked rows, each for its subgroup."""
        names = row_checks.check_subgroups(subgroups, len(piece.wrong), other="confidence")
        if names.shape[1] != 1:
            raise ValueError(
                f"subgroups must be one value per row, got the {names.shape[1]} columns "
                f"{list(names.columns)}; join them first."
            )
        codes, keys = pd.factorize(names.iloc[:, 0], use_na_sentinel=False)
        for code, key in enumerate(keys):
            rows = np.flatnonzero(codes == code)
            name = None if pd.isna(key) else key  # nan does not equal nan
            state = self.states.setdefault(name, self.template.empty_twin())
            state.count(piece.take(rows))
        return self

    def merge(self, *others: SubgroupStates) -> SubgroupStates:
        """Return states that have counted the rows of all; none of them changes.

        Parameters
        ----------
        *others : SubgroupStates
            Of the same labels and confidence.

        Returns
        -------
        SubgroupStates

        Raises
        ------
        ValueError
            If they do not fit together.
        """
        for other in others:
            check_is_kind(other, SubgroupStates)
        merged = SubgroupStates()
        merged.template = self.template.merge(*(other.template for other in others))
        states_of: dict[Hashable, list[SelectiveState]] = {}
        for states in (self, *others):
            for key, state in states.states.items():
                states_of.setdefault(key, []).append(state)
        for key, (state, *later) in states_of.items():
            merged.states[key] = state.merge(*later)
        return merged

    def total(self) -> SelectiveState:
        """Return the state of all rows."""
        return self.template.empty_twin().merge(*self.states.values())

    def evaluate(
        self, metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] = DEFAULT_METRICS
    ) -> pd.DataFrame:
        """Compute metrics of each subgroup, as :meth:`skselect.SelectiveState.evaluate`.

        Returns
        -------
        DataFrame
            A row per subgroup and a column per metric.

        Raises
        ------
        ValueError
            If no row has been counted, or a metric is unknown.
        """
        check_has_rows(len(self.states))
        keys = sorted(self.states, key=lambda key: (str(type(key)), str(key)))
        return pd.DataFrame({key: self.states[key].evaluate(metrics) for key in keys}).T


# Checks of what is counted -------------------------------------------------------------------


class Piece(NamedTuple):
    """Checked rows to be counted.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
        In [0, 1]; NaN where a row lacks a number.
    wrong : ndarray of shape (n,)
        1 for an error, 0 for a right answer.
    says_none : ndarray of bool, shape (n,), or None
        Which rows are zeros, None for none.
    """

    confidence: arrays.FloatArray
    wrong: NDArray[Any]
    says_none: arrays.BoolArray | None = None

    def take(self, rows: Any) -> Piece:
        """Return some of the rows."""
        says_none = None if self.says_none is None else self.says_none[rows]
        return Piece(self.confidence[rows], self.wrong[rows], says_none)


def read_piece(
    y_true: Any, y_proba: Any, labels: arrays.LabelArray | None, confidence: arrays.ConfidenceSpec
) -> tuple[Piece, arrays.LabelArray]:
    """Return what is counted of one batch of class probabilities, and all classes."""
    # One column is the probability of the second class.
    second = None
    if labels is not None and len(labels) == 2 and np.ndim(y_proba) == 1:
        second = labels.tolist()[1]
    predictions = Predictions.from_proba(y_true, y_proba, labels=labels, pos_label=second)
    if labels is None:
        labels = predictions.classes
    undecided = undecided_of(predictions)
    if undecided is None:
        outcomes = Outcomes.from_predictions(predictions, confidence=confidence)
        row_checks.check_unit_confidence(outcomes.confidence, "SelectiveState")
        return Piece(outcomes.confidence, outcomes.loss), labels
    proba = predictions.y_proba
    assert proba is not None
    lacks_number = np.isnan(proba[:, 0])
    filled = np.where(lacks_number[:, None], 1.0 / len(labels), proba)
    predictions = replace(predictions, y_proba=filled, _undecided=None)
    outcomes = Outcomes.from_predictions(predictions, confidence=confidence)
    row_checks.check_unit_confidence(outcomes.confidence, "SelectiveState")
    rated = np.where(lacks_number, np.nan, outcomes.confidence)
    return Piece(rated, outcomes.loss, undecided & ~lacks_number), labels


def check_unit_floats(name: str, values: Any) -> arrays.FloatArray:
    """Return confidences in [0, 1] or NaN; float32 stays float32, all else becomes float64."""
    array = arrays.as_array(values, name)
    if array.dtype != np.float32:
        array = row_checks.check_vector(array, name)
    row_checks.check_one_per_row(array, name)
    rated = array
    if np.isnan(array.min()):
        rated = array[~np.isnan(array)]
        if len(rated) == 0:
            return array
    low = rated.min()
    high = rated.max()
    if not (low >= 0 and high <= 1):
        raise ValueError(
            f"{name} must lie in [0, 1] for every row, got values from {low:g} to {high:g}."
        )
    return array


def check_seen_rows(confidence: Any, loss: Any) -> Piece:
    """Return rows with a confidence in [0, 1] or NaN, and an error, 0 or 1.

    They keep their dtype: conversion to float64 would take longer than counting.
    """
    values = check_unit_floats("confidence", confidence)
    wrong = arrays.as_array(loss, "loss")
    if wrong.dtype == np.bool_:
        row_checks.check_one_per_row(wrong, "loss")
    else:
        wrong = row_checks.check_loss(wrong)
        if arrays.is_graded(wrong):
            raise ValueError(
                "loss: a state counts errors, and there are losses between 0 and 1. Make counts of "
                "the rows first: Outcomes(loss, confidence).count(seed=0)."
            )
    row_checks.check_length("confidence", values, len(wrong), "loss")
    return Piece(values, wrong)


def _check_row_counts(
    name: str, values: Any, n: int, *, most: arrays.FloatArray | arrays.IntArray | None = None
) -> arrays.IntArray:
    """Return whole numbers from 0 on, one for each of n entries and none above `most`."""
    numbers = row_checks.check_vector(values, name)
    row_checks.check_length(name, numbers, n, "confidence")
    are_whole = np.all(numbers % 1 == 0)
    if not (numbers.min() >= 0 and numbers.sum() <= 2.0**53 and are_whole):
        raise ValueError(
            f"{name} must hold whole numbers that are not negative and add up to at most 2^53."
        )
    whole = numbers.astype(np.int64)
    if most is not None and np.any(whole > most):
        raise ValueError(f"{name} must not be larger than the number of rows, n.")
    return whole


def _check_equal(name: str, here: Any, there: Any) -> None:
    if here != there:
        raise ValueError(f"merge: the states differ in {name}: {here!r} and {there!r}.")


def check_is_kind(other: Any, kind: type) -> None:
    """Refuse to merge objects of another class."""
    if not isinstance(other, kind):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"merge takes other {kind.__name__}, got {type(other).__name__}."
        )


def check_has_rows(n: int) -> None:
    """Refuse a state that has counted nothing."""
    if n == 0:
        raise ValueError("This state has counted no rows yet; call update first.")
