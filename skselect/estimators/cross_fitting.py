"""Out-of-fold and held-out predictions, and the subgroups of rows."""

from __future__ import annotations

import contextlib
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.parallel import Parallel, delayed

from skselect._array_ops import column_names, take_columns
from skselect._checks import shown, warn_user
from skselect._checks.options import warn_unseen
from skselect._checks.rows import check_subgroups, silence_repeats
from skselect._notebook import percent
from skselect._sklearn import count_rows, take_rows
from skselect._typing import BoolArray, FloatArray, IntArray
from skselect.calibration._choice import fit_calibration
from skselect.estimators.abstaining import decide_rows
from skselect.estimators.classifier import SelectiveClassifier
from skselect.estimators.fitting import (
    LEAST_HELD_OUT,
    Parts,
    RawClassifier,
    TrainingRows,
    check_pair,
    check_trainable,
    check_weighted_part,
    find_known_rows,
    find_tested_rows,
    folds,
    holdout,
    is_pair,
    is_ready,
    read_splits,
    spread,
)
from skselect.estimators.learned_confidence import LearnedConfidence
from skselect.estimators.progress import Fits, FitTask, run
from skselect.policy.certificate import Caveat
from skselect.policy.policy import Decisions, apply_policy
from skselect.policy.subgroups import Subgroups, subgroup_codes
from skselect.predictions.confidence import confidence_of_answers
from skselect.predictions.decisions import DecisionRule
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions
from skselect.selection.order import HOLD_OUT_LATEST, LEAVE_MARGIN

#: One column, several, a function of X, or the answers themselves.
GroupBy = str | int | list[Any] | Callable[[Any], Any] | None
#: Rows that a model has not seen, and its decisions, with a column for every class.
Part = tuple[IntArray, Decisions]


class Basis(NamedTuple):
    """What chooses a threshold: predictions, with caveats, and the words for a certificate.

    `model` is the final model, None where it is not fitted yet; `advice` is what to do where the
    order of the rows matters, "" where that is not tested: the models of a splitter's folds may
    change along the rows.
    """

    model: SelectiveClassifier | None
    parts: list[Part]
    caveats: tuple[Caveat, ...] = ()
    rests_on: str = ""
    advice: str = HOLD_OUT_LATEST

    def about(self, splits: Parts, n: int) -> Basis:
        """Return it with the words that say which of `n` rows are tested."""
        advice = LEAVE_MARGIN if self.advice and are_last(splits, n) else self.advice
        return self._replace(rests_on=describe_tested(splits, n), advice=advice)


def fit_clone(
    base: SelectiveClassifier, rows: TrainingRows, task: FitTask | None = None
) -> SelectiveClassifier:
    """Fit a clone of a classifier whose parameters were checked; rows may lack some classes."""
    model = clone(base)
    if not isinstance(model.estimator, FrozenEstimator):
        check_trainable(len(rows.codes))
    present = np.unique(rows.codes)
    if len(present) < len(rows.classes) and not is_ready(model.estimator):
        rows = replace(
            rows, classes=rows.classes[present], codes=np.searchsorted(present, rows.codes),
            rule=_leave_out_costs(model, rows.rule, present),
        )  # fmt: skip
    with run(task, model, rows.X, rows.y):
        model._fit_checked(rows)  # noqa: SLF001 - checked once, for all folds
    return model


def _leave_out_costs(
    model: SelectiveClassifier, rule: DecisionRule, present: IntArray
) -> DecisionRule:
    """Leave out the costs of classes that the rows lack."""
    if rule.cost_matrix is None:
        return rule
    costs = rule.cost_matrix[np.ix_(present, present)]
    if np.any(costs > 0):
        model.set_params(cost_matrix=costs)
        return DecisionRule(rule.decision, costs)
    # A single class: there is nothing to decide.
    model.set_params(cost_matrix=None, decision="argmax", confidence="max_proba")
    return DecisionRule()


def split_rows(
    cv: Any, rows: TrainingRows, split_params: Mapping[str, Any], random_state: Any
) -> Parts:
    """Return the rows of each fold of `cv`; a share or a pair is one fold."""
    n = len(rows.codes)
    if isinstance(cv, float):
        return [holdout(cv, n, split_params.get("groups"), random_state)]
    if is_pair(cv):
        return [check_pair(cv, n)]
    return folds(cv, rows.X, rows.y, split_params, rows.weight, random_state)


def find_chosen(cv: Any, rows: TrainingRows, split_params: Mapping[str, Any]) -> IntArray:
    """Return the rows that choose a threshold where nothing is trained: those that `cv` tests.

    Those are all rows where `cv` names none: "auto", or a number.
    """
    n = len(rows.codes)
    if cv is None or isinstance(cv, str | numbers.Real):
        return np.arange(n)
    splits = [check_pair(cv, n)] if is_pair(cv) else read_splits(cv, rows.X, rows.y, split_params)
    tested = find_tested_rows(splits)
    check_weighted_part(rows.weight, tested, "the part that cv tests")
    return tested


def are_last(splits: Parts, n: int) -> bool:
    """Tell whether the tested rows are the last of `n`, and each model knows earlier rows only."""
    tested = find_tested_rows(splits)
    earlier = all(np.max(train) < np.min(test) for train, test in splits)
    return earlier and bool(tested[0] == n - len(tested))


def is_held_out(splits: Parts) -> bool:
    """Tell whether there is one fold, whose test rows train nothing."""
    return len(splits) == 1 and not np.any(np.isin(*splits[0]))


def describe_tested(splits: Parts, n: int) -> str:
    """Say which of `n` rows are tested; "" for all."""
    n_tested = len(find_tested_rows(splits))
    if n_tested == n:
        return ""
    one = len(splits) == 1
    if not are_last(splits, n):
        return f"{n_tested} of {n} rows, which cv {'holds out' if one else 'tests'}"
    last = f"the last {percent(n_tested / n)} of the rows ({n_tested} of {n})"
    return last if one else f"{last}, each decided by a model of earlier rows"


def predict_folds(
    base: SelectiveClassifier, rows: TrainingRows, splits: Parts, n_jobs: int | None, fits: Fits
) -> list[Part]:
    """Decide every tested row by a model that did not see it."""
    warn_unseen(find_known_rows(splits, rows.codes), rows.codes, "they count as wrong answers")
    n_folds, n_final = len(splits), base._count_fits(rows)  # noqa: SLF001 - same family
    shared = _can_share(base, rows, splits)
    n_fits = n_final + n_folds * (1 if shared else n_final)
    *tasks, _ = fits.begin(n_fits, n_folds=n_folds, last=["all rows"])  # the last is the refit
    if shared:
        return _share_folds(base, rows, splits, n_jobs, tasks)
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_predict_fold)(base, rows, train, test, task)
        for (train, test), task in zip(splits, tasks, strict=True)
    )
    return list(parts)


def _can_share(base: SelectiveClassifier, rows: TrainingRows, splits: Parts) -> bool:
    """Tell whether the folds of the threshold can serve the calibration as well.

    They and those of the calibration must each be a partition of the rows, where no fold comes
    before another, and each model must know all classes. A learned confidence has too many
    parameters to share them. A choice among calibrations compares two other folds or more.
    """
    learnt = isinstance(base.confidence, LearnedConfidence)
    least = 3 if base._chooses else 2  # noqa: SLF001 - same family
    if base.calibration is None or learnt or is_ready(base.estimator) or len(splits) < least:
        return False
    n = len(rows.codes)
    asked = [splits]
    if not (base.cv is None or isinstance(base.cv, numbers.Integral)):
        asked.append(base._folds(rows))  # noqa: SLF001 - same family
    return all(_are_partition(parts, n) for parts in asked) and bool(
        np.all(find_known_rows(splits, rows.codes))
    )


def _are_partition(splits: Parts, n: int) -> bool:
    """Tell whether each of `n` rows is tested once, by a model of all rows of the other folds."""
    every_row = np.arange(n)
    return np.array_equal(find_tested_rows(splits), every_row) and all(
        np.array_equal(np.sort(np.concatenate(split)), every_row) for split in splits
    )


def _share_folds(
    base: SelectiveClassifier,
    rows: TrainingRows,
    splits: Parts,
    n_jobs: int | None,
    tasks: list[FitTask],
) -> list[Part]:
    """Fit each fold's model once, and its calibration to what the others say of their own folds."""
    found = Parallel(n_jobs=n_jobs)(
        delayed(_score_fold)(base, rows, train, test, task)
        for (train, test), task in zip(splits, tasks, strict=True)
    )
    parts = []
    for part in found:
        model, others = clone(base), [other for other in found if other is not part]
        tested = np.concatenate([other.rows for other in others])
        weight = None if rows.weight is None else rows.weight[tested]
        with silence_repeats():  # the fit on all rows warns
            model.calibration_ = fit_calibration(
                base.calibration, base.calibration_scope, part.raw.response,
                np.concatenate([other.scores for other in others]), rows.codes[tested],
                len(rows.classes), weight, base.confidence_in_use,
                np.repeat(np.arange(len(others)), [len(other.rows) for other in others]),
            )  # fmt: skip
        policy = model._make_policy(part.raw, rows.rule)  # noqa: SLF001 - same family
        parts.append((part.rows, apply_policy(policy, part.scores, part.y_pred)))
    return parts


class _Scored(NamedTuple):
    """What a classifier that is not calibrated yet says of rows that it did not see."""

    rows: IntArray
    raw: RawClassifier
    scores: FloatArray
    y_pred: IntArray | None


def _score_fold(
    base: SelectiveClassifier, rows: TrainingRows, train: IntArray, test: IntArray, task: FitTask
) -> _Scored:
    known, model = rows.take(train), clone(base)
    with run(task, model, known.X, known.y), silence_repeats():
        raw = model._fit_raw(known)  # noqa: SLF001 - same family
    X = take_rows(rows.X, test)
    y_pred = raw.predict_codes(X) if rows.rule.decision == "estimator" else None
    return _Scored(test, replace(raw, estimator=None), raw.scores(X), y_pred)


def _predict_fold(
    base: SelectiveClassifier, rows: TrainingRows, train: IntArray, test: IntArray, task: FitTask
) -> Part:
    with silence_repeats():  # the fit on all rows warns
        model = fit_clone(base, rows.take(train), task)
    return test, decide_among_all(base, model, take_rows(rows.X, test), rows)


def predict_held_out(
    base: SelectiveClassifier,
    rows: TrainingRows,
    train: IntArray,
    test: IntArray,
    cv: str,
    fits: Fits,
    *,
    kept: bool,
) -> tuple[SelectiveClassifier, Part]:
    """Fit on some rows and decide others; `cv` is its name, `kept`: there is no refit."""
    n = len(rows.codes)
    if len(test) < LEAST_HELD_OUT:
        raise ValueError(
            f"{cv} holds out {len(test)} of {n} rows, but a threshold needs at least "
            f"{LEAST_HELD_OUT}. Hold out a larger share, or pass cv=5, which uses every row."
        )
    check_weighted_part(rows.weight, train, f"the training part of {cv}")
    check_weighted_part(rows.weight, test, f"the part that {cv} holds out")
    seen = find_known_rows([(train, test)], rows.codes)
    if kept:
        _check_kept_classes(cv, rows, seen)
    else:
        warn_unseen(seen, rows.codes, "they count as wrong answers")
    last = [] if kept else ["all rows"]
    n_fits = (1 + len(last)) * base._count_fits(rows)  # noqa: SLF001 - same family
    task = fits.begin(n_fits, first=["the rows not held out"], last=last)[0]
    with contextlib.nullcontext() if kept else silence_repeats():
        model = fit_clone(base, rows.take(train), task)
    return model, (test, decide_among_all(base, model, take_rows(rows.X, test), rows, kept=kept))


def _check_kept_classes(cv: str, rows: TrainingRows, seen: BoolArray) -> None:
    """Warn of classes that a kept classifier does not know; with costs, refuse them."""
    unknown = rows.classes[np.unique(rows.codes[~seen])].tolist()
    if not unknown:
        return
    held_out = (
        f"{cv}: {np.sum(~seen)} of {len(seen)} rows belong to the classes {unknown} and are all "
        "held out, so that the kept classifier does not know these classes"
    )
    if rows.rule.cost_matrix is not None:
        raise ValueError(
            f"{held_out}, and the cost matrix does not fit it. Split the rows in another way, add "
            "rows of these classes, or pass refit=True for an estimate."
        )
    warn_user(f"{held_out}; they count as wrong answers.")


def decide_among_all(
    base: SelectiveClassifier,
    model: SelectiveClassifier,
    X: Any,
    rows: TrainingRows,
    *,
    kept: bool = False,
) -> Decisions:
    """Return the decisions of a fitted model, also where its training rows lacked a class.

    The confidence of such a model is computed among all classes, as that of the final one will
    be; a model that is `kept` is the final one.
    """
    decisions = decide_rows(model, X)
    if len(model.classes_) == len(rows.classes):
        return decisions
    columns = np.flatnonzero(np.isin(rows.classes, model.classes_))
    proba = spread(decisions.y_proba, columns, len(rows.classes), 0.0)
    y_pred = columns[decisions.y_pred]
    confidence = decisions.confidence
    learnt = isinstance(base.confidence, LearnedConfidence)
    # What was fitted to errors does not change.
    if not (kept or learnt or model.calibrates_confidence):
        confidence = confidence_of_answers(proba, y_pred, base.confidence_in_use, rows.rule)
    return replace(decisions, y_proba=proba, y_pred=y_pred, confidence=confidence)


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


def pool(parts: list[Part], rows: TrainingRows) -> Pooled:
    """Put the predictions of all parts together."""
    tests, decisions = zip(*parts, strict=True)
    order = np.concatenate(tests)
    predictions = Predictions(
        y_true=rows.codes[order],
        y_pred=np.concatenate([part.y_pred for part in decisions]),
        classes=rows.classes,
        y_proba=np.concatenate([part.y_proba for part in decisions]),
        confidence=np.concatenate([part.confidence for part in decisions]),
        sample_weight=None if rows.weight is None else rows.weight[order],
        rule=rows.rule,
    )
    fold = np.repeat(np.arange(len(parts)), [len(test) for test in tests])
    return Pooled(predictions, order, fold)


# Subgroups -----------------------------------------------------------------------------------


def name_groups(group_by: GroupBy) -> str:
    """Return a name for the subgroups, for messages."""
    if callable(group_by):
        return getattr(group_by, "__name__", "subgroup").replace("<lambda>", "subgroup")
    columns = group_by if isinstance(group_by, list | tuple) else [group_by]
    return " and ".join(str(column) for column in columns)


def find_subgroups(by: Subgroups | None, X: Any) -> Any:
    """Return the subgroup of each row of X; None where the answers are the subgroups."""
    if by is None:
        return None
    group_by = by.by
    if by.by_answer:
        if group_by in (column_names(X) or []):
            raise ValueError(
                f"group_by={group_by!r} means the answers, but X has a column of that name too; "
                f"rename it, or pass a function such as lambda X: X[{group_by!r}]."
            )
        return None
    if callable(group_by):
        return _check_returned(group_by(X), count_rows(X))
    return _check_group_columns(group_by, X)


def check_decided_by_row(by: Subgroups | None, X: Any, subgroups: Any) -> None:
    """Refuse a function for which the subgroup of a row depends on the other rows.

    It is called on each half of the rows, and on the first and the last row of some subgroups
    alone.
    """
    group_by = None if by is None else by.by
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
        "rows around them: compute beforehand what depends on many rows, such as a cut-off, "
        "and pass for example lambda X: X['age'] > 50."
    )
    try:
        part: pd.DataFrame = _check_returned(group_by(take_rows(X, rows)), len(rows))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise ValueError(f"group_by: the function fails on {which} ({reason}). {remedy}") from error
    both = [subgroups.iloc[rows].astype(object), part.astype(object)]
    both[1].columns = both[0].columns
    codes, keys = subgroup_codes(pd.concat(both, ignore_index=True), 2 * len(rows))
    among_all, here = codes[: len(rows)], codes[len(rows) :]
    other = np.flatnonzero(among_all != here)
    if len(other):
        names = [*keys, None]
        raise ValueError(
            f"group_by: the function looks at rows together. Called on {which}, it puts "
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


def _check_returned(values: Any, n: int) -> Any:
    """Check that a function of X returned one subgroup per row."""
    if values is None:
        raise ValueError("group_by: the function returned None; it must return one value per row.")
    return check_subgroups(values, n, "group_by", "X")
