"""Which rows a classifier does not see, and what it says of them."""

from __future__ import annotations

import contextlib
import math
import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupShuffleSplit,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv as as_splitter,
)
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, LabelArray
from skselect._lib.checks import shown
from skselect._lib.checks.options import check_number
from skselect._lib.notebook import percent
from skselect._lib.sklearn import take_rows
from skselect.estimators.groups import count_groups
from skselect.estimators.raw_classifier import FitTask, TrainingRows, ask_auxiliary
from skselect.predictions.decisions import DecisionRule
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions

#: So many answers of the model of a fold are compared with its probabilities.
CHECKED_IN_FOLD = 100
#: Fewer held-out rows are too few to choose a threshold.
LEAST_HELD_OUT = 10
#: For each fold the rows to train on, and the rows to predict.
Splits = list[tuple[IntArray, IntArray]]


# The folds -----------------------------------------------------------------------------------


def make_folds(cv: Any, rows: TrainingRows, params: Mapping[str, Any], random_state: Any) -> Splits:
    """Return the rows of each fold, some of which may lack rare classes.

    Each row is in one test part at most. Those in none serve training only, such as the earliest
    rows of ``TimeSeriesSplit``.

    Parameters
    ----------
    cv : int, splitter or iterable
        As in scikit-learn, where the parts of an iterable may also be boolean masks or slices; an
        integer means stratified folds of shuffled rows, which keep groups together where `params`
        has them.
    rows : TrainingRows
    params : mapping
        Arguments of the splitter, such as ``groups``.
    random_state : int, RandomState or None
        For the folds of an integer `cv`.
    """
    return check_folds(read_splits(cv, rows, params, random_state), rows)


def check_folds(splits: Splits, rows: TrainingRows) -> Splits:
    """Return folds; refuse those whose models learn nothing, or cannot know most of a class."""
    for k, (train, _) in enumerate(splits, start=1):
        name = f"the training part of fold {k} of {len(splits)}"
        _check_part(train, name)
        check_weighted_part(rows.weight, train, name)
    tested = find_tested_rows(splits)
    codes = rows.codes[tested]
    knows_class = find_known_rows(splits, rows.codes)[tested]
    n_classes = len(rows.classes)
    n_rows = np.bincount(codes, minlength=n_classes)
    n_unknown = np.bincount(codes[~knows_class], minlength=n_classes)
    # A class with a single row is left alone: no fold can do better.
    lost = np.flatnonzero((n_rows > 1) & (2 * n_unknown > n_rows))
    if len(lost) or not np.any(knows_class):
        k = lost[0] if len(lost) else codes[0]
        raise ValueError(
            f"cv: {n_unknown[k]} of the {n_rows[k]} rows of class {rows.classes.tolist()[k]!r} are "
            "predicted by models that were trained without that class, so all their answers would "
            "be wrong. This happens with KFold on sorted rows, and with groups where one group has "
            "all rows of a class. Use StratifiedKFold (an integer cv does) or shuffle=True; a "
            "class that only one group has must be left out."
        )
    return splits


def read_splits(
    cv: Any, rows: TrainingRows, params: Mapping[str, Any], random_state: Any = None
) -> Splits:
    """Return the rows of each fold, whatever will be trained on them; see :func:`make_folds`."""
    check_cv(cv)
    splitter = find_splitter(cv, rows.y, params, random_state)
    n_rows = len(rows.codes)
    splits = []
    with warnings.catch_warnings():
        # scikit-learn warns of a class with fewer rows than folds, which is allowed here.
        warnings.filterwarnings("ignore", "The least populated class in y", UserWarning)
        for train, test in splitter.split(rows.X, rows.y, **params):
            training_rows = _find_positions(train, n_rows, "training")
            test_rows = _find_positions(test, n_rows, "test")
            splits.append((training_rows, test_rows))
    if not splits:
        raise ValueError("cv yields no folds; an iterator can be used once only, so pass a list.")
    for k, (train, test) in enumerate(splits, start=1):
        fold = f"fold {k} of {len(splits)}"
        _check_parts(train, test, n_rows, fold)
    tested = find_tested_rows(splits)
    if np.any(tested[1:] == tested[:-1]):
        raise ValueError(
            f"cv must put every row into exactly one test part, or none, but {splitter} tests some "
            "rows more than once; use an integer or a splitter such as StratifiedKFold."
        )
    return splits


def _check_parts(train: IntArray, test: IntArray, n_rows: int, fold: str) -> None:
    """Refuse a split that tests nothing, or rows that also train."""
    _check_part(test, f"the test part of {fold}")
    trains = np.bincount(train, minlength=n_rows) > 0
    both = np.unique(test[trains[test]])
    if len(both):
        raise ValueError(
            f"cv: {len(both)} rows are in both parts of a split, the first is row {both[0]}. A "
            "row that trains the classifier cannot test it."
        )


def _check_part(rows: IntArray, name: str) -> None:
    """Refuse a part of a split without rows."""
    if not len(rows):
        raise ValueError(
            f"cv: {name} has no rows. Use fewer folds, or splits with rows in both parts."
        )


def check_cv(cv: Any, *, takes_share: bool = False) -> None:
    """Refuse what makes no folds; with `takes_share` floats and "auto" are allowed."""
    is_float = isinstance(cv, float | np.floating)
    is_whole = is_float and cv >= 1 and float(cv).is_integer()
    is_auto = takes_share and isinstance(cv, str) and cv == "auto"
    if takes_share and is_float and not is_whole:
        check_number("cv", float(cv), 0.0, 1.0, closed="neither")
    elif is_float or (isinstance(cv, str) and not is_auto):
        share = "a share of the rows, 'auto', " if takes_share else ""
        raise ValueError(
            f"cv must be an integer, {share}a splitter or a list of splits, got {cv!r}. To use a "
            "classifier that was fitted on other rows as it is, leave cv out and pass "
            "FrozenEstimator(classifier) (sklearn.frozen) as the estimator."
        )
    if isinstance(cv, numbers.Integral) and cv < 2:
        raise ValueError(f"cv must be at least 2 folds, got {cv}.")
    if isinstance(cv, tuple | list) and not all(_is_split(split) for split in cv):
        entries = ", ".join(shown(entry) for entry in cv[:4])
        raise ValueError(
            "cv must be a list of splits (train, test), each part with positions of rows, a "
            "boolean mask or a slice, and not the rows themselves; for one split write "
            f"cv=[(train, test)]; got a {type(cv).__name__} of {entries}."
        )


def _is_split(split: Any) -> bool:
    """Tell whether an entry of a list of splits is a pair of positions, masks or slices."""
    if not hasattr(split, "__len__") or len(split) != 2:
        return False
    return all(isinstance(part, slice) or np.ndim(part) == 1 for part in split)


def _find_positions(part: Any, n_rows: int, name: str) -> IntArray:
    """Return the rows of one part of a split as positions."""
    if isinstance(part, slice):
        return np.arange(n_rows)[part]
    rows = np.asarray(part)
    if rows.dtype == bool and rows.shape == (n_rows,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError(
            f"cv: a {name} part must hold positions of rows, or be a slice or a boolean mask with "
            f"{n_rows} entries, got {shown(part)}."
        )
    outside = rows[(rows < 0) | (rows >= n_rows)]
    if len(outside):
        raise ValueError(
            f"cv: a {name} part names row {outside[0]}; the rows are 0 to {n_rows - 1}."
        )
    return rows.astype(np.int64)


def find_splitter(
    cv: Any, y: LabelArray, params: Mapping[str, Any], random_state: Any = None
) -> Any:
    """Return the splitter that `cv` means; see :func:`make_folds`.

    An integer makes fewer folds where there are fewer groups, or no class has so many rows.
    """
    if not (cv is None or isinstance(cv, numbers.Integral)):
        return as_splitter(cv, y, classifier=True)
    n_folds = 5 if cv is None else int(cv)
    groups = params.get("groups")
    _, class_counts = np.unique(y, return_counts=True)
    most_rows = int(np.max(class_counts))
    if most_rows < 2:
        raise ValueError(
            f"y: each of the {len(class_counts)} classes has one row, and each fold needs one of "
            "the same class. Pass more rows of each class."
        )
    n_folds = min(n_folds, most_rows)
    if groups is None:
        return StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    n_groups = count_groups(groups)
    if n_groups < 2:
        raise ValueError(
            f"groups: all {len(y)} rows to be divided into folds are of one group, and folds keep "
            "groups together. Pass rows of two groups or more, or leave groups out."
        )
    n_folds = min(n_folds, n_groups)
    return StratifiedGroupKFold(n_folds, shuffle=True, random_state=random_state)


def check_weighted_part(weight: FloatArray | None, rows: IntArray, part: str) -> None:
    """Refuse a part of the rows in which every weight is zero."""
    if weight is not None and not np.any(weight[rows] > 0):
        raise ValueError(
            f"sample_weight is zero for every row of {part}; at least one row must count there. "
            "Use fewer folds or stratified ones, or leave rows of weight 0 out."
        )


def find_tested_rows(splits: Splits) -> IntArray:
    """Return the rows that are in a test part, in ascending order."""
    return np.sort(np.concatenate([test for _, test in splits]))


def find_known_rows(splits: Splits, codes: IntArray) -> BoolArray:
    """Tell for each row whether the model of its fold is trained on its class."""
    knows_class = np.ones(len(codes), dtype=bool)
    n_codes = codes.max() + 1
    for train, test in splits:
        n_training_rows = np.bincount(codes[train], minlength=n_codes)
        knows_class[test] = n_training_rows[codes[test]] > 0
    return knows_class


def are_partition(splits: Splits, n: int) -> bool:
    """Tell whether each of `n` rows is tested once, by a model of all rows of the other folds."""
    every_row = np.arange(n)
    if not np.array_equal(find_tested_rows(splits), every_row):
        return False
    return all(np.array_equal(np.sort(np.concatenate(split)), every_row) for split in splits)


# The rows that choose a threshold ------------------------------------------------------------


def holdout(
    share: float,
    n: int,
    groups: Any,
    random_state: Any,
    *,
    least_training: int = 1,
    is_default: bool = False,
) -> tuple[IntArray, IntArray]:
    """Return the rows of one random split.

    It is not stratified: the held-out rows must be independent draws for a certificate.

    Parameters
    ----------
    share : float
        The share of the rows, or of the groups, that is held out.
    n : int
    groups : array-like of shape (n,) or None
    random_state : int, RandomState or None
    least_training : int, default=1
        So many groups at least must be left for training.
    is_default : bool, default=False
        Whether the share may hold out fewer groups, since no user named it.
    """
    check_random_state(random_state)  # in its own words
    if groups is None:
        splitter = ShuffleSplit(n_splits=1, test_size=share, random_state=random_state)
    else:
        n_held_out = _count_held_out(share, groups, least_training, is_default=is_default)
        splitter = GroupShuffleSplit(n_splits=1, test_size=n_held_out, random_state=random_state)
    try:
        train, test = next(splitter.split(np.zeros(n), groups=groups))
    except ValueError as error:
        raise ValueError(f"cv={share:g} cannot split {n} rows: {error}") from error
    return np.sort(train), np.sort(test)  # a classifier's own cv may go by the order


def _count_held_out(share: float, groups: Any, least_training: int, *, is_default: bool) -> int:
    """Return how many groups are held out; refuse to leave fewer than training needs."""
    n_groups = count_groups(groups)
    n_held_out = math.ceil(share * n_groups)
    most = n_groups - least_training
    if is_default and most > 0:
        n_held_out = min(n_held_out, most)
    if n_held_out > most:
        needs = "one to train on"
        if least_training > 1:
            needs = "two to train on, since folds keep groups together"
        remedy = "Pass rows of more groups"
        if n_groups > least_training:
            remedy += ", or hold out a smaller share"
        raise ValueError(
            f"groups: cv={share:g} holds out {n_held_out} of {n_groups} groups and must leave "
            f"{needs}. {remedy}."
        )
    return n_held_out


def are_last(splits: Splits, n: int) -> bool:
    """Tell whether the tested rows are the last of `n`, and each model knows earlier rows only."""
    tested = find_tested_rows(splits)
    earlier = all(np.max(train) < np.min(test) for train, test in splits)
    return earlier and bool(tested[0] == n - len(tested))


def describe_tested(splits: Splits, n: int, n_chosen: int) -> str:
    """Say which of `n` rows are tested, and how many of them choose a threshold; "" for all."""
    n_tested = len(find_tested_rows(splits))
    is_one_split = len(splits) == 1
    part = f"{n_chosen} of " if n_chosen < n_tested else ""
    if are_last(splits, n):
        last = f"{part}the last {percent(n_tested / n)} of the rows ({n_tested} of {n})"
        return last if is_one_split else f"{last}, each decided by a model of earlier rows"
    verb = "holds out" if is_one_split else "tests"
    if part:
        return f"{part}the {n_tested} rows that cv {verb}"
    if n_tested == n:
        return ""
    return f"{n_tested} of {n} rows, which cv {verb}"


# What is said of the rows --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Rows, and what models that did not see them say of them.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        Which rows.
    scores : ndarray of shape (n, K), or (n,) for the decision values of two classes
        Raw scores, or (calibrated) probabilities.
    codes : ndarray of shape (n,)
        The true classes.
    weight : ndarray of shape (n,) or None
    fold : ndarray of shape (n,)
    response : {"predict_proba", "decision_function"}, default="predict_proba"
        What the scores are.
    y_pred, confidence : ndarray of shape (n,) or None, default=None
        Codes of the answers, and how sure they are, where they were asked for.
    stage : ndarray of shape (n,) or None, default=None
        Which stage of a cascade gave the scores.
    auxiliary : dict of ndarray of shape (n, K), default={}
        The probabilities of other classifiers.
    readings : ndarray of bool, shape (n, r), or None, default=None
        As those of :class:`Outcomes`.
    """

    rows: IntArray
    scores: FloatArray
    codes: IntArray
    weight: FloatArray | None
    fold: IntArray
    response: str = "predict_proba"
    y_pred: Any = None
    confidence: Any = None
    stage: Any = None
    auxiliary: Mapping[str, FloatArray] = field(default_factory=dict)
    readings: BoolArray | None = None

    @classmethod
    def of(cls, rows: TrainingRows, which: IntArray, fold: int = 0, **fields: Any) -> OutOfFold:
        """Put some of the rows together with what one model says of them."""
        codes = rows.codes[which]
        weight = None if rows.weight is None else rows.weight[which]
        folds = np.full(len(which), fold)
        return cls(rows=which, codes=codes, weight=weight, fold=folds, **fields)

    @classmethod
    def join(cls, parts: Sequence[OutOfFold]) -> OutOfFold:
        """Put the rows of several folds together, one fold after another."""
        fields = {}
        for name in vars(parts[0]):
            values = [getattr(part, name) for part in parts]
            fields[name] = _join(values)
        return cls(**fields)

    def take(self, rows: IntArray | BoolArray) -> OutOfFold:
        """Return some of the rows."""
        fields = {name: _take(value, rows) for name, value in vars(self).items()}
        return replace(self, **fields)

    def as_predictions(self, classes: LabelArray, rule: DecisionRule) -> Predictions:
        """Return the rows with what was decided of them."""
        return Predictions(
            y_true=self.codes,
            y_pred=self.y_pred,
            classes=classes,
            y_proba=self.scores,
            confidence=self.confidence,
            sample_weight=self.weight,
            rule=rule,
        )

    @property
    def right(self) -> BoolArray:
        """Whether each answer is right."""
        return np.asarray(self.y_pred == self.codes)

    def per_fold(self, outcomes: Outcomes, accepted: BoolArray) -> dict[str, Any]:
        """Return rows, coverage and selective risk (nan when nothing is accepted) by fold."""
        weight = outcomes.weight
        n_rows = np.bincount(self.fold)
        total = np.bincount(self.fold, weights=weight)
        answered = np.bincount(self.fold, weights=weight * accepted)
        loss = np.bincount(self.fold, weights=weight * accepted * outcomes.loss)
        unknown = np.full(len(n_rows), np.nan)
        return {
            "n_rows": n_rows,
            "coverage": np.divide(answered, total, out=unknown.copy(), where=total > 0),
            "selective_risk": np.divide(loss, answered, out=unknown, where=answered > 0),
        }


def _join(values: list[Any]) -> Any:
    """Put what is said of several folds together."""
    if isinstance(values[0], Mapping):
        return {name: np.concatenate([value[name] for value in values]) for name in values[0]}
    if isinstance(values[0], np.ndarray):
        return np.concatenate(values)
    return values[-1]


def _take(value: Any, rows: IntArray | BoolArray) -> Any:
    """Return what is said of some rows."""
    if isinstance(value, Mapping):
        return {name: table[rows] for name, table in value.items()}
    if isinstance(value, np.ndarray):
        return value[rows]
    return value


#: Fits a model to known rows and returns what it says of others: the fields of an OutOfFold.
Say = Callable[[TrainingRows, Any, FitTask | None], dict[str, Any]]


def predict_folds(
    say: Say,
    rows: TrainingRows,
    splits: Splits,
    n_jobs: int | None,
    tasks: Sequence[FitTask] | None = None,
) -> OutOfFold:
    """Let a model for each fold say something of the rows that it did not see, fold by fold."""
    no_task: list[FitTask | None] = [None] * len(splits)
    task_by_fold = tasks or no_task
    jobs = []
    for k, (split, task) in enumerate(zip(splits, task_by_fold, strict=True)):
        name = f"the training part of fold {k + 1} of {len(splits)}"
        jobs.append(delayed(_predict_fold)(say, rows, split, k, name, task))
    # The models stay where they were fitted: only what they say travels back.
    parts = Parallel(n_jobs=n_jobs)(jobs)
    return OutOfFold.join(parts)


def _predict_fold(
    say: Say,
    rows: TrainingRows,
    split: tuple[IntArray, IntArray],
    k: int,
    name: str,
    task: FitTask | None,
) -> OutOfFold:
    train, test = split
    training = rows.take(train)
    with naming_single_class(training, name):
        fields = say(training, take_rows(rows.X, test), task)
    return OutOfFold.of(rows, test, k, **fields)


@contextlib.contextmanager
def naming_single_class(training: TrainingRows, name: str) -> Iterator[None]:
    """Say where all rows are of one class, if a classifier refuses to learn from them."""
    try:
        yield
    except ValueError as error:
        present = np.unique(training.codes)
        if len(present) > 1 or len(training.classes) == 1:
            raise
        label = training.classes.tolist()[present[0]]
        raise ValueError(
            f"cv: {name} holds rows of class {label!r} only, from which the classifier refuses to "
            f"learn ({error}). Use folds in which every class occurs, as an integer makes them."
        ) from error


def score_rows(
    training: TrainingRows,
    X: Any,
    task: FitTask | None,
    *,
    estimator: Any,
    decision: str | None = None,
    own_answers: bool = False,
    auxiliary: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the raw scores of a classifier, and what its auxiliary models say.

    Where a `decision` is given, a classifier whose answers do not fit it is refused.
    """
    raw = training.fit(estimator, task)
    scores, stage = raw.ask(X)
    if decision is not None:
        raw.check_decision(X, scores, decision, CHECKED_IN_FOLD)
    y_pred = raw.predict_codes(X) if own_answers else None
    auxiliary_proba = {}
    if auxiliary:
        models = training.fit_auxiliary(auxiliary)
        auxiliary_proba = ask_auxiliary(models, X)
    return {
        "scores": scores,
        "response": raw.response,
        "y_pred": y_pred,
        "stage": stage,
        "auxiliary": auxiliary_proba,
    }
