"""Predictions of rows that a model has not seen, in the order of its folds, and their subgroups."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from skselect._array_ops import column_names, take_columns
from skselect._checks.arrays import shown
from skselect._checks.options import check_given, warn_unseen
from skselect._checks.rows import check_subgroups, silence_weight_warning
from skselect._sklearn import n_rows_of, routing_enabled, take_rows
from skselect._typing import BoolArray, FloatArray, IntArray, LabelArray
from skselect.estimators.classifier import SelectiveClassifier, codes_of, task_classes
from skselect.estimators.fitting import (
    check_weighted_part,
    folds,
    holdout,
    rows_of,
    seen_rows,
    wrap_fitted,
)
from skselect.policy.subgroups import asks_for_answers, subgroup_codes
from skselect.predictions.confidence import confidence_of_answers
from skselect.predictions.decisions import DecisionRule
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions

#: One column, several, a function of X, or the answers themselves.
GroupBy = str | int | list[Any] | Callable[[Any], Any] | None


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to learn from, with everything that has one entry per row.

    Parameters
    ----------
    X, y : array-like
    weight : ndarray of shape (n,) or None
    params, split_params : mapping
        Arguments of the classifier's ``fit`` and of the splitter.
    classes : ndarray of shape (K,)
        All classes of the task; a part of the rows may lack some.
    rule : DecisionRule
        For all of them.
    confidence : str or callable
        Likewise.
    """

    X: Any
    y: LabelArray
    weight: FloatArray | None
    params: Mapping[str, Any]
    split_params: Mapping[str, Any]
    classes: LabelArray
    rule: DecisionRule
    confidence: Any

    def part(self, rows: IntArray) -> TrainingRows:
        """Return some of the rows."""
        n = len(self.y)
        weight = None if self.weight is None else self.weight[rows]
        params, split_params = (rows_of(p, rows, n) for p in (self.params, self.split_params))
        return replace(
            self, X=take_rows(self.X, rows), y=self.y[rows], weight=weight, params=params,
            split_params=split_params,
        )  # fmt: skip

    def fit(self, model: SelectiveClassifier) -> SelectiveClassifier:
        """Fit a clone; groups also keep its calibration folds apart."""
        model = clone(model)
        params = dict(self.params)
        if model.calibration is not None and not routing_enabled():
            params |= self.split_params
        present = codes_of(task_classes(model.estimator, self.y), self.classes)
        if self.rule.cost_matrix is not None and len(present) < len(self.classes):
            self._leave_out_costs(model, present)
        return model.fit(self.X, self.y, sample_weight=self.weight, **params)

    def _leave_out_costs(self, model: SelectiveClassifier, present: IntArray) -> None:
        """Leave out the costs of classes that these rows lack."""
        costs = check_given(self.rule.cost_matrix, "cost_matrix", "a part of it")
        part = costs[np.ix_(present, present)]
        if np.any(part > 0):
            model.set_params(cost_matrix=part)
        else:  # a single class, so that there is nothing to decide
            model.set_params(cost_matrix=None, decision="argmax", confidence="max_proba")


class Part(NamedTuple):
    """What a model said about rows that it had not seen, among all classes of the task."""

    rows: IntArray
    y_proba: FloatArray
    confidence: FloatArray
    y_pred: IntArray


def cross_fitted(
    model: SelectiveClassifier, rows: TrainingRows, cv: Any, n_jobs: int | None
) -> list[Part]:
    """Answer every row by a model that did not see it."""
    splits = folds(cv, rows.X, rows.y, rows.split_params, rows.weight)
    codes = codes_of(rows.y, rows.classes)
    warn_unseen(seen_rows(splits, codes), codes, "they count as wrong answers")
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_fitted_part)(model, rows, train, test) for train, test in splits
    )
    return list(parts)


def held_out(
    model: SelectiveClassifier,
    rows: TrainingRows,
    share: float,
    random_state: Any,
    *,
    kept: bool,
) -> tuple[SelectiveClassifier, Part]:
    """Fit on some rows, chosen at random, and answer the others; `kept`: there is no refit."""
    groups = rows.split_params.get("groups")
    train, test = holdout(share, len(rows.y), groups, random_state)
    check_weighted_part(rows.weight, train, f"the training part of cv={share:g}")
    check_weighted_part(rows.weight, test, f"the part that cv={share:g} holds out")
    codes = codes_of(rows.y, rows.classes)
    warn_unseen(seen_rows([(train, test)], codes), codes, "they count as wrong answers")
    with contextlib.nullcontext() if kept else silence_weight_warning():
        fitted = rows.part(train).fit(model)
    return fitted, answered(fitted, rows, test)


def _fitted_part(
    model: SelectiveClassifier, rows: TrainingRows, train: IntArray, test: IntArray
) -> Part:
    with silence_weight_warning():  # the fit on all rows says it
        fitted = rows.part(train).fit(model)
    return answered(fitted, rows, test)


def answered(model: SelectiveClassifier, rows: TrainingRows, test: IntArray | None = None) -> Part:
    """Return what a fitted model says about rows, also where a fold of it lacked a class.

    None: all rows, which are then not copied.
    """
    decisions = model.judge(rows.X if test is None else take_rows(rows.X, test))
    known = wrap_fitted(model, rows.classes)
    proba = known.spread(decisions.y_proba, 0.0)
    y_pred = known.columns[decisions.y_pred]
    confidence = decisions.confidence
    if not model.calibrates_confidence:  # else its map was fitted among its own classes
        confidence = confidence_of_answers(proba, y_pred, rows.confidence, rows.rule)
    return Part(np.arange(len(proba)) if test is None else test, proba, confidence, y_pred)


@dataclass(frozen=True, eq=False)
class Pooled:
    """The predictions of all parts together: rows of X, and the fold of each."""

    predictions: Predictions
    rows: IntArray
    fold: IntArray

    def per_fold(self, outcomes: Outcomes, accepted: BoolArray) -> dict[str, Any]:
        """Return rows, coverage and selective risk (nan when nothing is accepted) by fold."""
        weight = outcomes.weight
        n_rows = np.bincount(self.fold)
        total = np.bincount(self.fold, weights=weight)
        kept = np.bincount(self.fold, weights=weight * accepted)
        lost = np.bincount(self.fold, weights=weight * accepted * outcomes.loss)
        nothing = np.full(len(n_rows), np.nan)
        return {
            "n_rows": n_rows,
            "coverage": np.divide(kept, total, out=nothing.copy(), where=total > 0),
            "selective_risk": np.divide(lost, kept, out=nothing, where=kept > 0),
        }


def pooled(parts: list[Part], rows: TrainingRows) -> Pooled:
    """Put the predictions of all parts together."""
    tests, probas, confidences, answers = zip(*parts, strict=True)
    order = np.concatenate(tests)
    predictions = Predictions(
        y_true=codes_of(rows.y[order], rows.classes),
        y_pred=np.concatenate(answers),
        classes=rows.classes,
        y_proba=np.concatenate(probas),
        confidence=np.concatenate(confidences),
        sample_weight=None if rows.weight is None else rows.weight[order],
        rule=rows.rule,
    )
    fold = np.repeat(np.arange(len(parts)), [len(test) for test in tests])
    return Pooled(predictions, order, fold)


# Subgroups -----------------------------------------------------------------------------------


def name_of_groups(group_by: GroupBy) -> str:
    """Return what subgroups are called, for people."""
    if callable(group_by):
        return getattr(group_by, "__name__", "subgroup").replace("<lambda>", "subgroup")
    columns = group_by if isinstance(group_by, list | tuple) else [group_by]
    return " and ".join(str(column) for column in columns)


def subgroups_of(group_by: GroupBy, X: Any) -> Any:
    """Return the subgroup of each row of X; None where the answers are the subgroups."""
    if group_by is None:
        return None
    if asks_for_answers(group_by):
        _refuse_column(str(group_by), X)
        return None
    if callable(group_by):
        return _check_subgroups_of(group_by(X), n_rows_of(X))
    return _check_group_columns(group_by, X)


def check_decided_by_row(group_by: GroupBy, X: Any, subgroups: Any) -> None:
    """Refuse a function that gives a row another subgroup when fewer rows stand beside it.

    It is asked about both halves of the rows, and about the first and the last row of some
    subgroups alone.
    """
    if not callable(group_by):
        return
    n = len(subgroups)
    codes, _ = subgroup_codes(subgroups, n)
    first = np.unique(codes, return_index=True)[1]
    last = n - 1 - np.unique(codes[::-1], return_index=True)[1]
    some = np.linspace(0, len(first) - 1, min(len(first), 10)).astype(np.int64)
    for row in np.unique(np.append(first[some], last[some])):
        _check_same_subgroups(group_by, X, subgroups, np.array([row]), f"row {row} alone")
    for half in np.array_split(np.arange(n), 2):
        _check_same_subgroups(group_by, X, subgroups, half, f"rows {half[0]} to {half[-1]}")


def _check_same_subgroups(
    group_by: Callable[[Any], Any], X: Any, subgroups: pd.DataFrame, rows: IntArray, which: str
) -> None:
    """Compare the subgroups of a part of the rows with theirs among all rows."""
    remedy = (
        "The subgroup of a row must follow from that row alone, since new rows arrive with other "
        "rows around them: compute beforehand what is learnt from many rows, such as a cut-off, "
        "and pass for example lambda X: X['age'] > 50."
    )
    try:
        part: pd.DataFrame = _check_subgroups_of(group_by(take_rows(X, rows)), len(rows))
    except Exception as error:
        said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise ValueError(f"group_by: the function fails on {which} ({said}). {remedy}") from error
    both = [subgroups.iloc[rows].astype(object), part.astype(object)]
    both[1].columns = both[0].columns
    codes, keys = subgroup_codes(pd.concat(both, ignore_index=True), 2 * len(rows))
    among_all, here = codes[: len(rows)], codes[len(rows) :]
    other = np.flatnonzero(among_all != here)
    if len(other):
        names = [*keys, None]
        raise ValueError(
            f"group_by: the function looks at rows together. Asked about {which}, it puts "
            f"{len(other)} of {len(rows)} into another subgroup than among all {len(subgroups)} "
            f"rows (row {rows[other[0]]}: {names[here[other[0]]]!r}, not "
            f"{names[among_all[other[0]]]!r}). {remedy}"
        )


def _check_group_columns(group_by: Any, X: Any) -> Any:
    """Return the columns of X that hold subgroups."""
    several = isinstance(group_by, list | tuple)
    wanted = list(group_by) if several else [group_by]
    if not all(isinstance(column, str | int) for column in wanted):
        raise ValueError(
            "group_by must name columns of X (positions for an array), be a function of X, or "
            f"'predicted_class', got {type(group_by).__name__}."
        )
    if "predicted_class" in wanted:
        raise ValueError(
            "group_by: 'predicted_class' stands alone; it cannot be combined with columns of X."
        )
    if hasattr(X, "tocsr"):
        raise ValueError("group_by: X is sparse; pass a function of X that returns the subgroups.")
    names = column_names(X)
    table = np.asarray(X) if names is None else X
    known = list(range(table.shape[1])) if names is None and table.ndim == 2 else names or []
    missing = [column for column in wanted if column not in known]
    if missing or not wanted:
        raise ValueError(
            f"group_by={shown(group_by)}: X has no column {shown(missing)}; it has {known[:20]}. "
            "Pass columns of X, a function of X, or 'predicted_class'."
        )
    if names is None:
        return pd.DataFrame({column: table[:, column] for column in wanted})
    return take_columns(X, wanted)


def _check_subgroups_of(values: Any, n: int) -> Any:
    """Return what a function of X gave as subgroups, if it is one per row."""
    if values is None:
        raise ValueError("group_by: the function returned None; it must return one value per row.")
    return check_subgroups(values, n, "group_by", "X")


def _refuse_column(name: str, X: Any) -> None:
    """Refuse a reserved word that is also a column."""
    if name in (column_names(X) or []):
        raise ValueError(
            f"group_by={name!r} means the answers, but X has a column of that name too; rename it, "
            f"or pass a function such as lambda X: X[{name!r}]."
        )
