"""Fit classifiers, on all rows or on folds that may lack classes, and get their raw scores."""

from __future__ import annotations

import contextlib
import numbers
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GroupShuffleSplit,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from sklearn.model_selection import (
    check_cv as as_splitter,
)
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed

from skselect._checks import shown
from skselect._checks.labels import check_known, check_labels, encode_labels
from skselect._checks.proba import RANGE_TOLERANCE, check_proba
from skselect._sklearn import count_rows, routing_enabled, take_rows, weight_parameter
from skselect._typing import BoolArray, FloatArray, IntArray, LabelArray
from skselect.estimators.abstaining import find_abstainer
from skselect.estimators.progress import FitTask, run
from skselect.estimators.scoring import check_own_proba
from skselect.predictions.decisions import DecisionRule


@dataclass(frozen=True, eq=False)
class RawClassifier:
    """A fitted classifier whose scores have one column for every class of the task.

    Parameters
    ----------
    estimator : object
        The fitted classifier.
    classes : ndarray of shape (K,)
        All classes of the task.
    columns : ndarray of shape (k,)
        Positions of the classifier's own classes in `classes`.
    response : {"predict_proba", "decision_function"}
    """

    estimator: Any
    classes: LabelArray
    columns: IntArray
    response: str

    def scores(self, X: Any) -> FloatArray:
        """Return raw scores: (n, K), or (n,) for the decision values of two classes.

        A class that the classifier does not know has probability 0, or the decision value
        nan.
        """
        n, n_own = count_rows(X), len(self.columns)
        if self.response == "predict_proba":
            own = check_proba(self.estimator.predict_proba(X), "predict_proba(X)")
            check_own_proba(own, n, n_own, self.estimator)
            return spread(own, self.columns, len(self.classes), 0.0)
        own = np.asarray(self.estimator.decision_function(X), dtype=np.float64)
        _check_own_values(own, n, n_own, self.estimator)
        if own.ndim == 1 and len(self.classes) == 2:
            return own
        if own.ndim == 1:
            own = np.column_stack([-own, own])
        return spread(own, self.columns, len(self.classes), np.nan)

    def predict_codes(self, X: Any) -> IntArray:
        """Return what the classifier itself predicts, as codes of the task's classes."""
        return self.columns[self._predict_own(X)]

    def _predict_own(self, X: Any) -> IntArray:
        """Return what the classifier itself predicts, as codes of its own classes."""
        own = check_labels(self.estimator.predict(X), "predict(X)")
        known = np.asarray(self.estimator.classes_)
        codes = encode_labels(own, known, "predict(X)")
        return check_known(codes, own, known, "predict(X)", "")

    def check_decision(self, X: Any, scores: FloatArray, decision: str) -> None:
        """Refuse a classifier that abstains, or predicts another class than the decision says.

        With decision values this is checked for two classes only: with more, the class that SVC
        predicts may differ from that of its largest value in a few rows. Three columns of values
        are also refused where they compare pairs of classes.
        """
        abstainer, _ = find_abstainer(self.estimator, None)
        if abstainer is not None and abstainer.abstains:
            raise ValueError(
                f"estimator: the {type(abstainer).__name__} inside abstains by itself. Pass the "
                "classifier without a threshold (threshold=None), or wrap the whole Pipeline "
                "instead of its last step."
            )
        if self.response == "decision_function" and len(self.columns) == 3:
            _refuse_pairs(self._predict_own(X), scores[:, self.columns], self.estimator)
        if decision != "argmax":
            return
        if self.response == "predict_proba":
            own = scores[:, self.columns]
        elif scores.ndim == 1:
            own = np.column_stack([-scores, scores])
        else:
            return
        predicted, classes = self.estimator.predict(X), np.asarray(self.estimator.classes_)
        if not np.array_equal(predicted, classes[own.argmax(axis=1)]):
            _check_argmax_decision(predicted, own, classes, self.estimator)


def spread(own: FloatArray, columns: IntArray, n_classes: int, missing: float) -> FloatArray:
    """Return a table with a column for every class, from those that a classifier has."""
    if np.array_equal(columns, np.arange(n_classes)):
        return own
    table = np.full((len(own), n_classes), missing, dtype=own.dtype)
    table[:, columns] = own
    return table


def wrap_fitted(estimator: Any, classes: LabelArray) -> RawClassifier:
    """Describe a fitted classifier whose classes are among `classes`."""
    if not hasattr(estimator, "classes_"):
        raise ValueError(
            f"estimator must be a classifier, but a fitted {type(estimator).__name__} has no "
            "classes_."
        )
    own = np.asarray(estimator.classes_)
    if np.array_equal(own, classes):
        columns = np.arange(len(classes))
    else:
        own = check_labels(own, "classes_")
        columns = encode_labels(own, classes, "classes_")
        check_known(columns, own, classes, "classes_", "y must hold every class of a classifier.")
    return RawClassifier(estimator, classes, columns, find_response(estimator))


def is_ready(estimator: Any) -> bool:
    """Tell whether a classifier is used as it is: a frozen one, or one that never learns."""
    if isinstance(estimator, FrozenEstimator):
        return True
    return hasattr(estimator, "classes_") and not get_tags(estimator).requires_fit


def find_response(estimator: Any) -> str:
    """Return the method that gives raw scores; probabilities come first."""
    for method in ("predict_proba", "decision_function"):
        if hasattr(estimator, method):
            return method
    raise ValueError(
        f"estimator: {type(estimator).__name__} has neither predict_proba nor decision_function, "
        "so it states no confidence; choose a classifier that does."
    )


def wants_codes(estimator: Any) -> bool:
    """Tell whether a classifier must be fitted with the labels 0..k-1, none of them missing.

    XGBoost must: it refuses strings, and folds that lack a class.
    """
    while getattr(estimator, "steps", None):
        estimator = estimator.steps[-1][1]
    return any(cls.__module__.split(".")[0] == "xgboost" for cls in type(estimator).__mro__)


# Arguments of fit ----------------------------------------------------------------------------


def fit_router(owner: Any) -> MetadataRouter:
    """Say who gets the arguments of `fit`: the owner, its `estimator`, and the splitter `cv`.

    A `cv` that is no splitter, such as an integer, keeps groups together, so it asks for them.
    """
    is_splitter = hasattr(owner.cv, "split") and not isinstance(owner.cv, str)
    splitter = owner.cv if is_splitter else StratifiedGroupKFold()
    to_fit = MethodMapping().add(caller="fit", callee="fit")
    to_split = MethodMapping().add(caller="fit", callee="split")
    return (
        MetadataRouter(owner=owner)
        .add_self_request(owner)
        .add(estimator=owner.estimator, method_mapping=to_fit)
        .add(splitter=splitter, method_mapping=to_split)
    )


def route_fit(
    owner: Any, weight: FloatArray | None, fit_params: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of the classifier's fit, weights included, and of the splitter.

    Without scikit-learn's metadata routing, `groups` is for the splitter and all else for the
    classifier.
    """
    params = dict(fit_params)
    if not routing_enabled():
        groups = params.pop("groups", None)
        if weight is not None:
            params[_find_weight_parameter(owner.estimator)] = weight
        return params, {} if groups is None else {"groups": groups}
    if weight is not None:
        params["sample_weight"] = weight
    routed = process_routing(owner, "fit", **params)
    return dict(routed.estimator.fit), dict(routed.splitter.split)


def _find_weight_parameter(estimator: Any) -> str:
    """Return the argument of `fit` that takes weights."""
    name = weight_parameter(estimator)
    if name is None:
        raise ValueError(
            f"sample_weight: {type(estimator).__name__}.fit takes no weights (or a classifier "
            "inside takes none), so they would be ignored. Leave sample_weight out, or choose a "
            "classifier that takes them."
        )
    return name


# Folds ---------------------------------------------------------------------------------------


#: Fewer held-out rows are too few to choose a threshold.
LEAST_HELD_OUT = 10
#: For each fold the rows to train on, and the rows to predict.
Parts = list[tuple[IntArray, IntArray]]


def folds(
    cv: Any,
    X: Any,
    y: LabelArray,
    params: Mapping[str, Any],
    weight: FloatArray | None = None,
    random_state: Any = None,
) -> Parts:
    """Return the rows of each fold, some of which may lack rare classes.

    Each row is in one test part at most. Those in none serve training only, such as the earliest
    rows of ``TimeSeriesSplit``.

    Parameters
    ----------
    cv : int, splitter, iterable or pair of arrays
        As in scikit-learn, or the one pair of :func:`check_pair`; an integer means stratified
        folds of shuffled rows, which keep groups together where `params` has them.
    X, y : array-like
    params : mapping
        Arguments of the splitter, such as ``groups``.
    weight : ndarray of shape (n,), default=None
        Weights that the models of the folds will be trained with.
    random_state : int, RandomState or None, default=None
        For the folds of an integer `cv`.
    """
    parts = read_splits(cv, X, y, params, random_state)
    tested = find_tested_rows(parts)
    for k, (train, _) in enumerate(parts, start=1):
        check_weighted_part(weight, train, f"the training part of fold {k} of {len(parts)}")
    classes, codes = np.unique(y, return_inverse=True)
    _check_folds_know_classes(find_known_rows(parts, codes)[tested], codes[tested], classes)
    return parts


def read_splits(
    cv: Any, X: Any, y: LabelArray, params: Mapping[str, Any], random_state: Any = None
) -> Parts:
    """Return the rows of each fold, whatever will be trained on them; see :func:`folds`."""
    check_cv(cv)
    splitter = _find_splitter(cv, y, params, random_state)
    with warnings.catch_warnings():
        # scikit-learn warns of a class with fewer rows than folds, which is allowed here.
        warnings.filterwarnings("ignore", "The least populated class in y", UserWarning)
        parts = list(splitter.split(X, y, **params))
    if not parts:
        raise ValueError("cv yields no folds; an iterator can be used once only, so pass a list.")
    tested = find_tested_rows(parts)
    if len(np.unique(tested)) < len(tested):
        raise ValueError(
            f"cv must put every row into exactly one test part, or none, but {splitter} tests some "
            "rows more than once; use an integer or a splitter such as StratifiedKFold."
        )
    return parts


def count_folds(cv: Any, X: Any, y: LabelArray, params: Mapping[str, Any]) -> int:
    """Return how many folds `cv` makes; a pair may name rows of another table."""
    if is_pair(cv):
        return 1
    return int(_find_splitter(cv, y, params).get_n_splits(X, y, **params))


def _find_splitter(
    cv: Any, y: LabelArray, params: Mapping[str, Any], random_state: Any = None
) -> Any:
    if cv is None or isinstance(cv, numbers.Integral):
        kind = StratifiedKFold if params.get("groups") is None else StratifiedGroupKFold
        return kind(5 if cv is None else int(cv), shuffle=True, random_state=random_state)
    return as_splitter([check_pair(cv, len(y))] if is_pair(cv) else cv, y, classifier=True)


def find_tested_rows(parts: Parts) -> IntArray:
    """Return the rows that are in a test part, in ascending order."""
    return np.sort(np.concatenate([test for _, test in parts]))


def is_pair(cv: Any) -> bool:
    """Tell whether `cv` is one pair (train, test) of rows, and no list of such pairs."""
    return isinstance(cv, tuple | list) and len(cv) == 2 and all(_are_rows(part) for part in cv)


def _is_split(part: Any) -> bool:
    """Tell whether an entry of a list of splits is a pair."""
    return hasattr(part, "__len__") and len(part) == 2 and all(map(_are_rows, part))


def _are_rows(part: Any) -> bool:
    """Tell whether half of a pair is a slice, or an array-like without further arrays in it."""
    return isinstance(part, slice) or (
        hasattr(part, "__len__") and np.ndim(next(iter(part), 0)) == 0
    )


def check_pair(pair: Any, n: int) -> tuple[IntArray, IntArray]:
    """Return the rows of one pair (train, test) of positions, masks or slices; refuse a bad one."""
    train, test = (
        _check_positions(part, n, name) for part, name in zip(pair, ("train", "test"), strict=True)
    )
    if len(np.unique(test)) < len(test):
        raise ValueError("cv=(train, test): the test rows must differ, but some are named twice.")
    both = np.intersect1d(train, test)
    if both.size:
        raise ValueError(
            f"cv=(train, test): {len(both)} rows are in both parts, the first is row {both[0]}. A "
            "row that trains the classifier cannot test it."
        )
    return train, test


def _check_positions(part: Any, n: int, name: str) -> IntArray:
    """Return one half of a pair as positions of rows."""
    rows = np.arange(n)[part] if isinstance(part, slice) else np.asarray(part)
    where = f"cv=(train, test): {name}"
    if rows.ndim != 1:
        raise ValueError(
            f"{where} must hold positions of rows, or be a boolean mask, got {shown(part)}."
        )
    if rows.dtype == bool:
        if len(rows) != n:
            raise ValueError(f"{where} is a mask of {len(rows)} entries for {n} rows.")
        rows = np.flatnonzero(rows)
    if rows.size == 0:
        raise ValueError(f"{where} has no rows.")
    if rows.dtype.kind not in "iu":
        raise ValueError(
            f"{where} must hold positions of rows, or be a boolean mask, got {rows.dtype} values."
        )
    outside = rows[(rows < 0) | (rows >= n)]
    if outside.size:
        raise ValueError(f"{where} names row {outside[0]}; the rows are 0 to {n - 1}.")
    return rows.astype(np.int64)


def find_known_rows(parts: Parts, codes: IntArray) -> BoolArray:
    """Tell for each row whether the model of its fold is trained on its class."""
    seen = np.ones(len(codes), dtype=bool)
    for train, test in parts:
        seen[test] = np.bincount(codes[train], minlength=codes.max() + 1)[codes[test]] > 0
    return seen


def holdout(share: float, n: int, groups: Any, random_state: Any) -> tuple[IntArray, IntArray]:
    """Return the rows of one random split.

    It is not stratified: the held-out rows must be independent draws for a certificate.
    """
    try:
        check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state must be an integer, a RandomState or None, got {shown(random_state)}."
        ) from None
    kind = ShuffleSplit if groups is None else GroupShuffleSplit
    splitter = kind(n_splits=1, test_size=share, random_state=random_state)
    try:
        train, test = next(splitter.split(np.zeros(n), groups=groups))
    except ValueError as error:
        raise ValueError(f"cv={share:g} cannot split {n} rows: {error}") from error
    return np.sort(train), np.sort(test)  # a classifier's own cv may go by the order


# Fitting -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Checked rows to learn from, with everything that has one entry per row.

    Parameters
    ----------
    X, y : array-like
        Rows and labels, passed on untouched.
    codes : ndarray of shape (n,)
        The labels as positions among `classes`.
    classes : ndarray of shape (K,)
        All classes of the task; a part of the rows may lack some.
    weight : ndarray of shape (n,), default=None
    params, split_params : mapping, default={}
        Arguments of the classifier's ``fit``, weights included, and of the splitter that makes
        the folds of its calibration.
    rule : DecisionRule
        How probabilities of all classes become an answer.
    """

    X: Any
    y: LabelArray
    codes: IntArray
    classes: LabelArray
    weight: FloatArray | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    split_params: Mapping[str, Any] = field(default_factory=dict)
    rule: DecisionRule = field(default_factory=DecisionRule)

    def take(self, rows: IntArray) -> TrainingRows:
        """Return some of the rows."""
        n = len(self.codes)
        weight = None if self.weight is None else self.weight[rows]
        params, split_params = (
            _take_params(given, rows, n) for given in (self.params, self.split_params)
        )
        return replace(
            self, X=take_rows(self.X, rows), y=self.y[rows], codes=self.codes[rows], weight=weight,
            params=params, split_params=split_params,
        )  # fmt: skip

    def fit(self, estimator: Any, task: FitTask | None = None) -> RawClassifier:
        """Fit a clone of a classifier (a frozen one is not fitted)."""
        fitted = clone(estimator)
        if isinstance(fitted, FrozenEstimator):
            return wrap_fitted(fitted, self.classes)
        if not wants_codes(fitted):
            with run(task, fitted, self.X, self.y):
                fitted.fit(self.X, self.y, **self.params)
            return wrap_fitted(fitted, self.classes)
        params = dict(self.params)
        known, own_codes = np.unique(self.codes, return_inverse=True)
        if params.get("eval_set") is not None:
            params["eval_set"] = [
                (rows, _encode_eval_labels(labels, self.classes[known]))
                for rows, labels in params["eval_set"]
            ]
        with run(task, fitted, self.X, own_codes):
            fitted.fit(self.X, own_codes, **params)
        return RawClassifier(fitted, self.classes, known, find_response(fitted))

    def fit_witness(self, name: str, estimator: Any) -> Witness:
        """Fit a clone of a classifier whose opinion is asked; weights reach it if it takes them."""
        if is_ready(estimator):
            fitted = clone(estimator)
            columns = _match_classes(f"witnesses[{name!r}]", fitted.classes_, self.classes)
            return Witness(name, fitted, columns, len(self.classes))
        weighted = {} if self.weight is None else _name_weights(estimator, self.weight)
        with _name_witness(name):
            raw = replace(self, params=weighted).fit(estimator)
        return Witness(name, raw.estimator, raw.columns, len(self.classes))

    def predict_out_of_fold(
        self,
        estimator: Any,
        parts: Parts,
        n_jobs: int | None,
        *,
        tasks: Sequence[FitTask] | None = None,
        decision: str | None = None,
        own_answers: bool = False,
        witnesses: Mapping[str, Any] | None = None,
    ) -> OutOfFold:
        """Return what classifiers that did not see the tested rows say of them.

        The rows are in ascending order. Where a `decision` is given, a classifier whose answers
        do not fit it is refused.
        """
        no_task: list[FitTask | None] = [None] * len(parts)
        each = zip(parts, tasks or no_task, strict=True)
        found = Parallel(n_jobs=n_jobs)(
            delayed(_score_fold)(
                self, estimator, part, task, decision, own_answers, witnesses or {}
            )
            for part, task in each
        )
        tests = [test for _, test in parts]
        tested = np.concatenate(tests)
        scores, answers, opinions, responses = zip(*found, strict=True)
        tables = {name: np.concatenate([x[name] for x in opinions]) for name in witnesses or {}}
        return OutOfFold(
            tested,
            np.concatenate(scores),
            responses[-1],
            self.codes[tested],
            None if self.weight is None else self.weight[tested],
            np.repeat(np.arange(len(parts)), [len(test) for test in tests]),
            np.concatenate(answers) if own_answers else None,
            tables,
        ).take(np.argsort(tested))


@dataclass(frozen=True, eq=False)
class Witness:
    """A fitted classifier whose opinion of another one's answers is asked.

    Parameters
    ----------
    name : str
    estimator : object
    columns : ndarray of int
        Position of each of its own classes among those of the task; -1 for others.
    n_classes : int
        Of the task.
    """

    name: str
    estimator: Any
    columns: IntArray
    n_classes: int

    def scores(self, X: Any) -> FloatArray:
        """Return its probabilities of the task's classes: 0 for one that it does not know."""
        with _name_witness(self.name):
            own = check_proba(self.estimator.predict_proba(X), "witnesses: predict_proba(X)")
            check_own_proba(own, count_rows(X), len(self.columns), self.estimator)
        known = self.columns >= 0
        table = spread(own[:, known], self.columns[known], self.n_classes, 0.0)
        if known.all():
            return table
        total = table.sum(axis=1, keepdims=True)
        uniform = np.full_like(table, 1.0 / self.n_classes)
        return np.divide(table, total, out=uniform, where=total > 0)


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """What classifiers say of rows that they did not see.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        Which rows.
    scores : ndarray of shape (n, K), or (n,) for the decision values of two classes
    response : {"predict_proba", "decision_function"}
        What the scores are.
    codes : ndarray of shape (n,)
        The true classes.
    weight : ndarray of shape (n,) or None
    fold : ndarray of shape (n,)
    y_pred : ndarray of shape (n,) or None
        Codes of the classifier's own answers, where they were asked for.
    witnesses : dict of ndarray of shape (n, K)
        The probabilities of other classifiers.
    """

    rows: IntArray
    scores: FloatArray
    response: str
    codes: IntArray
    weight: FloatArray | None
    fold: IntArray
    y_pred: IntArray | None = None
    witnesses: Mapping[str, FloatArray] = field(default_factory=dict)

    def take(self, rows: IntArray | BoolArray) -> OutOfFold:
        """Return some of the rows."""
        return OutOfFold(
            self.rows[rows],
            self.scores[rows],
            self.response,
            self.codes[rows],
            None if self.weight is None else self.weight[rows],
            self.fold[rows],
            None if self.y_pred is None else self.y_pred[rows],
            {name: table[rows] for name, table in self.witnesses.items()},
        )


def _score_fold(
    rows: TrainingRows,
    estimator: Any,
    part: tuple[IntArray, IntArray],
    task: FitTask | None,
    decision: str | None,
    own_answers: bool,
    witnesses: Mapping[str, Any],
) -> tuple[FloatArray, IntArray | None, dict[str, FloatArray], str]:
    """Return what classifiers of the training rows say of the rows that a fold leaves out."""
    train, test = part
    known, X_test = rows.take(train), take_rows(rows.X, test)
    raw = known.fit(estimator, task)
    scores = raw.scores(X_test)
    if decision is not None:
        raw.check_decision(X_test, scores, decision)
    answers = raw.predict_codes(X_test) if own_answers else None
    opinions = {name: known.fit_witness(name, w).scores(X_test) for name, w in witnesses.items()}
    return scores, answers, opinions, raw.response


@contextlib.contextmanager
def _name_witness(name: str) -> Iterator[None]:
    """Say in an error from inside a witness which one it was."""
    try:
        yield
    except Exception as error:
        error.add_note(f"This was the witness {name!r} of LearnedConfidence.")
        raise


def _match_classes(name: str, own: Any, classes: LabelArray) -> IntArray:
    """Return the position of each of a witness's own classes, -1 for others; refuse misspelt ones.

    It may lack classes, or have further ones; with both, some are probably the same.
    """
    own = check_labels(np.asarray(own), f"{name}.classes_")
    columns = encode_labels(own, classes, f"{name}.classes_")
    lacks = np.setdiff1d(np.arange(len(classes)), columns)
    if len(lacks) and np.any(columns < 0):
        raise ValueError(
            f"{name} has labels that are not among the classes, {own[columns < 0][:5].tolist()}, "
            f"and lacks {classes[lacks][:5].tolist()}, which are. Give it the labels of y."
        )
    return columns


def _name_weights(estimator: Any, weight: FloatArray) -> dict[str, FloatArray]:
    """Return the weights under the name by which `fit` takes them; nothing if it takes none."""
    if routing_enabled():
        wants = get_routing_for_object(estimator).consumes("fit", ["sample_weight"])
        return {"sample_weight": weight} if wants else {}
    name = weight_parameter(estimator)
    return {} if name is None else {name: weight}


def _encode_eval_labels(labels: Any, classes: LabelArray) -> IntArray:
    """Return labels of an evaluation set as positions among the training classes."""
    labels = check_labels(labels, "eval_set")
    codes = encode_labels(labels, classes, "eval_set")
    remedy = "Each of its classes must occur in every part that is trained on."
    return check_known(codes, labels, classes, "eval_set", remedy)


def _take_params(params: Mapping[str, Any], rows: IntArray, n: int) -> dict[str, Any]:
    """Return the arguments for some rows, taken from those with one entry per row."""
    return {
        name: take_rows(value, rows) if _has_rows(value, n) else value
        for name, value in params.items()
    }


def _has_rows(value: Any, n: int) -> bool:
    if isinstance(value, str | bytes | Mapping):
        return False
    shape = getattr(value, "shape", None)
    if shape is not None:
        return len(shape) > 0 and shape[0] == n
    return hasattr(value, "__len__") and len(value) == n


def check_cv(cv: Any, *, takes_share: bool = False) -> None:
    """Refuse what makes no folds; with `takes_share` floats and "auto" are allowed."""
    if takes_share and isinstance(cv, str) and cv == "auto":
        return
    is_share = isinstance(cv, float | np.floating)
    whole = is_share and cv >= 1 and float(cv).is_integer()
    if isinstance(cv, str) or (is_share and not takes_share) or whole:
        share = "a share of the rows, 'auto', " if takes_share else ""
        remedy = (
            " To use a classifier that was fitted on other rows as it is, pass "
            "FrozenEstimator(classifier) (sklearn.frozen) as the estimator, and leave cv out."
        )
        raise ValueError(
            f"cv must be an integer, {share}a splitter or a list of splits, got {cv!r}."
            + ("" if is_share else remedy)
        )
    if isinstance(cv, numbers.Integral) and cv < 2:
        raise ValueError(f"cv must be at least 2 folds, got {cv}.")
    if isinstance(cv, tuple | list) and not (is_pair(cv) or all(map(_is_split, cv))):
        raise ValueError(
            "cv must be one pair (train, test) or a list of such pairs, each part with positions "
            "of rows, a boolean mask or a slice, and not the rows themselves; got a "
            f"{type(cv).__name__} of {', '.join(shown(part) for part in cv[:4])}."
        )


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse what is no number of processes, before it is known whether there is more than one."""
    if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be None or an integer other than 0 (-1: all processors), got {n_jobs!r}."
        )


def _check_folds_know_classes(seen: BoolArray, codes: IntArray, classes: LabelArray) -> None:
    """Refuse folds whose models cannot know most rows of a class.

    A class with a single row is left alone: no fold can do better.
    """
    n_rows = np.bincount(codes, minlength=len(classes))
    n_unseen = np.bincount(codes[~seen], minlength=len(classes))
    lost = np.flatnonzero((n_rows > 1) & (2 * n_unseen > n_rows))
    if lost.size or not np.any(seen):
        k = lost[0] if lost.size else 0
        label = classes.tolist()[k]
        raise ValueError(
            f"cv: {n_unseen[k]} of the {n_rows[k]} rows of class {label!r} are predicted by models "
            "that were trained without that class, so all their answers would be wrong. "
            "This happens with KFold on sorted rows, and with groups where one group has all rows "
            "of a class. Use StratifiedKFold (an integer cv does) or shuffle=True; a class that "
            "only one group has must be left out."
        )


def check_weighted_part(weight: FloatArray | None, rows: IntArray, part: str) -> None:
    """Refuse a part of the rows in which every weight is zero."""
    if weight is not None and not np.any(weight[rows] > 0):
        raise ValueError(
            f"sample_weight is zero for every row of {part}; at least one row must count there. "
            "Use fewer folds or stratified ones, or leave rows of weight 0 out."
        )


def check_trainable(n: int) -> None:
    """Refuse to train on a single row: many classifiers would silently return nan."""
    if n < 2:
        raise ValueError(f"X has one sample (n_samples={n}); a classifier needs at least two.")


def _check_argmax_decision(
    y_pred: LabelArray, y_proba: FloatArray, classes: LabelArray, estimator: Any
) -> None:
    """Refuse a classifier whose `predict` is not the class of the largest probability."""
    codes = encode_labels(check_labels(y_pred, "predict(X)"), classes, "predict(X)")
    largest = y_proba.max(axis=1)
    chosen = np.where(codes >= 0, y_proba[np.arange(len(codes)), codes], -np.inf)
    # Rounding may break a tie either way; a tuned cut-off differs by far more.
    other: BoolArray = chosen < largest - RANGE_TOLERANCE
    if np.any(other):
        raise ValueError(
            f"estimator: {type(estimator).__name__}.predict differs from the class of the largest "
            f"probability in {int(other.sum())} of {len(codes)} rows (a tuned cut-off inside it, "
            "or probabilities that were fitted apart from the decision). Its confidence would not "
            "belong to its answer. Choose decision='estimator' to keep its own answers."
        )


def _check_own_values(values: FloatArray, n: int, n_classes: int, estimator: Any) -> None:
    """Refuse decision values that are not finite or do not have one column per class."""
    name = f"estimator: decision_function of {type(estimator).__name__}"
    if values.shape != ((n,) if n_classes == 2 else (n, n_classes)):
        raise ValueError(
            f"{name} gives values of shape {values.shape} for {n} rows and {n_classes} classes; "
            "one column per class is needed (for SVC: decision_function_shape='ovr')."
        )
    if not np.all(np.isfinite(values)):
        rows = np.flatnonzero(~np.isfinite(values).reshape(n, -1).all(axis=1))
        raise ValueError(
            f"{name} gives NaN or infinite values in {len(rows)} of {n} rows, first in row "
            f"{rows[0]}; they say nothing about the answer."
        )


def _refuse_pairs(codes: IntArray, values: FloatArray, estimator: Any) -> None:
    """Refuse three columns of decision values that compare pairs of the three classes.

    Three classes have three pairs, so the shape does not show it. The predictions do: they
    follow either the largest value or the most pairs won.
    """
    wins = np.zeros(values.shape)
    for pair, (first, second) in enumerate(((0, 1), (0, 2), (1, 2))):
        wins[:, first] += values[:, pair] > 0
        wins[:, second] += values[:, pair] <= 0
    row = np.arange(len(codes))
    n_other = int(np.sum(values[row, codes] < values.max(axis=1)))
    if n_other > np.sum(wins[row, codes] < wins.max(axis=1)):
        raise ValueError(
            f"estimator: the 3 columns of decision_function of {type(estimator).__name__} compare "
            f"pairs of classes: predict differs from the largest in {n_other} of {len(codes)} "
            "rows. One column per class is needed (for SVC: decision_function_shape='ovr')."
        )
