"""Fit classifiers to rows that may lack classes, get their raw scores, and tell of the fits."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import get_routing_for_object, process_routing

from skselect._lib import sklearn as private_sklearn
from skselect._lib.arrays import FloatArray, IntArray, LabelArray
from skselect._lib.checks.rows import check_labels, check_proba, encode_known, encode_labels
from skselect._lib.decide import RANGE_TOLERANCE
from skselect.estimators.base import check_own_proba, find_abstainer, find_cascade
from skselect.predictions.decisions import DecisionRule

#: On so many rows the answers of a classifier are compared with its probabilities.
MOST_CHECKED = 1000


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
        Positions of the classifier's own classes in `classes`; -1 for a further class, which only
        an auxiliary model may have. The others then share its probability.
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
        return self.ask(X)[0]

    def ask(self, X: Any) -> tuple[FloatArray, IntArray | None]:
        """Return raw scores, and which stage of a cascade gave those of each row."""
        n, n_own, stage = private_sklearn.count_rows(X), len(self.columns), None
        if self.response == "predict_proba":
            cascade = find_cascade(self.estimator)
            if cascade is None:
                own = self.estimator.predict_proba(X)
            else:
                own, stage = cascade.follow(X)
            own = check_proba(own, "predict_proba(X)")
            check_own_proba(own, n, n_own, self.estimator)
            return spread(own, self.columns, len(self.classes), 0.0), stage
        own = np.asarray(self.estimator.decision_function(X), dtype=np.float64)
        name = f"estimator: decision_function of {type(self.estimator).__name__}"
        if own.shape != ((n,) if n_own == 2 else (n, n_own)):
            raise ValueError(
                f"{name} gives values of shape {own.shape} for {n} rows and {n_own} classes; "
                "one column per class is needed (for SVC: decision_function_shape='ovr')."
            )
        bad = np.flatnonzero(~np.isfinite(own).reshape(n, -1).all(axis=1))
        if len(bad):
            raise ValueError(
                f"{name} gives NaN or infinite values in {len(bad)} of {n} rows, first in row "
                f"{bad[0]}; they say nothing about the answer."
            )
        if own.ndim == 1 and len(self.classes) == 2:
            return own, None
        if own.ndim == 1:
            own = np.column_stack([-own, own])
        return spread(own, self.columns, len(self.classes), np.nan), None

    def predict_codes(self, X: Any) -> IntArray:
        """Return what the classifier itself predicts, as codes of the task's classes."""
        return self.columns[self._encode(self.estimator.predict(X))]

    def _encode(self, answers: Any) -> IntArray:
        """Return the classifier's own answers as codes of its own classes."""
        return encode_known(
            check_labels(answers, "predict(X)"),
            np.asarray(self.estimator.classes_),
            "predict(X)",
            "",
        )

    def check_decision(
        self, X: Any, scores: FloatArray, decision: str, n_checked: int = MOST_CHECKED
    ) -> None:
        """Refuse a classifier that abstains, or predicts another class than the decision says.

        Its own answers to `n_checked` of the rows tell, evenly spread.
        With decision values this is checked for two classes only: with more, the class that SVC
        predicts may differ from that of its largest value in a few rows.
        """
        abstainer, _ = find_abstainer(self.estimator, None)
        if abstainer is not None and abstainer.abstains:
            raise ValueError(
                f"estimator: the {type(abstainer).__name__} inside abstains by itself. Pass the "
                "classifier without a threshold (threshold=None), or wrap the whole Pipeline "
                "instead of its last step."
            )
        inner, is_proba = find_inner(self.estimator), self.response == "predict_proba"
        inner = getattr(inner, "best_estimator_", getattr(inner, "estimator_", inner))
        inner = find_inner(inner)
        shape = "ovr" if is_proba else getattr(inner, "decision_function_shape", "ovr")
        if shape == "ovo" and len(self.columns) > 2:
            raise ValueError(
                f"estimator: the columns of decision_function of {type(inner).__name__} compare "
                "pairs of classes. One column per class is needed: decision_function_shape='ovr'."
            )
        if decision != "argmax" or not (is_proba or scores.ndim == 1):
            return
        some = some_of(np.arange(len(scores)), n_checked)
        X, scores = private_sklearn.take_rows(X, some), scores[some]
        own = scores[:, self.columns] if is_proba else np.column_stack([-scores, scores])
        answers = self.estimator.predict(X)
        if np.array_equal(answers, np.asarray(self.estimator.classes_)[own.argmax(axis=1)]):
            return
        codes = self._encode(answers)
        chosen = own[np.arange(len(codes)), codes]
        # Rounding may break a tie either way; a tuned cut-off differs by far more.
        n_other = int(np.sum(chosen < own.max(axis=1) - RANGE_TOLERANCE))
        if n_other:
            raise ValueError(
                f"estimator: {type(self.estimator).__name__}.predict differs from the class of the "
                f"largest probability in {n_other} of {len(codes)} rows (a tuned cut-off inside "
                "it, or probabilities that were fitted apart from the decision). Its confidence "
                "would not belong to its answer. Choose decision='estimator' to keep its own "
                "answers."
            )


def spread(own: FloatArray, columns: IntArray, n_classes: int, missing: float) -> FloatArray:
    """Return a table with a column for every class, from those that a classifier has.

    Where it has further classes (-1), the probabilities of the others are made to sum to one.
    """
    if np.array_equal(columns, np.arange(n_classes)):
        return own
    known = columns >= 0
    table = np.full((len(own), n_classes), missing, dtype=own.dtype)
    table[:, columns[known]] = own[:, known]
    if known.all():
        return table
    uniform = np.full_like(table, 1.0 / n_classes)
    total = table.sum(axis=1, keepdims=True)
    return np.divide(table, total, out=uniform, where=total > 0)


def some_of(rows: IntArray, most: int = MOST_CHECKED) -> IntArray:
    """Return up to `most` of the rows, evenly spread."""
    n = len(rows)
    return rows[np.linspace(0, n - 1, most).astype(np.int64)] if n > most else rows


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
        remedy = "y must hold every class of a classifier."
        columns = encode_known(check_labels(own, "classes_"), classes, "classes_", remedy)
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


def find_inner(estimator: Any) -> Any:
    """Return the classifier at the end of a Pipeline, or inside FrozenEstimator."""
    while True:
        if getattr(estimator, "steps", None):
            estimator = estimator.steps[-1][1]
        elif isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        else:
            return estimator


# Arguments of fit ----------------------------------------------------------------------------


def route_fit(
    owner: Any, weight: FloatArray | None, fit_params: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of the classifier's fit, weights included, and of the splitter.

    Without scikit-learn's metadata routing, `groups` is for the splitter and all else for the
    classifier.
    """
    params = dict(fit_params)
    if not private_sklearn.routing_enabled():
        groups = params.pop("groups", None)
        params |= pass_weight(owner.estimator, weight)
        return params, {} if groups is None else {"groups": groups}
    if weight is not None:
        params["sample_weight"] = weight
    routed = process_routing(owner, "fit", **params)
    return dict(routed.estimator.fit), dict(routed.splitter.split)


def pass_weight(
    estimator: Any, weight: FloatArray | None, which: str = ""
) -> dict[str, FloatArray]:
    """Return the weights under the name by which `fit` takes them; refuse to lose them."""
    if weight is None:
        return {}
    name = private_sklearn.weight_parameter(estimator)
    if name is None:
        raise ValueError(
            f"sample_weight: {which}{type(estimator).__name__}.fit takes no weights (or a "
            "classifier inside takes none), so they would be ignored. Leave sample_weight out, or "
            "choose a classifier that takes them."
        )
    return {name: weight}


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
    params, split_params, tuning_params : mapping, default={}
        Arguments of the classifier's ``fit``, weights included, of the splitter that makes the
        folds of its calibration, and of the one that chooses the rows of a threshold.
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
    tuning_params: Mapping[str, Any] = field(default_factory=dict)
    rule: DecisionRule = field(default_factory=DecisionRule)

    def take(self, rows: IntArray) -> TrainingRows:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        X, y, codes = private_sklearn.take_rows(self.X, rows), self.y[rows], self.codes[rows]
        both = ("params", "split_params")
        taken: Any = {
            name: private_sklearn.take_params(self.X, getattr(self, name), rows) for name in both
        }
        return replace(self, X=X, y=y, codes=codes, weight=weight, **taken)

    def fit(self, estimator: Any, task: FitTask | None = None) -> RawClassifier:
        """Fit a clone of a classifier (a frozen one is not fitted)."""
        fitted, y, params = clone(estimator), self.y, dict(self.params)
        if isinstance(fitted, FrozenEstimator):
            return wrap_fitted(fitted, self.classes)
        # XGBoost refuses labels other than 0..k-1, of which none may be missing.
        kinds = type(find_inner(fitted)).__mro__
        if by_codes := any(kind.__module__.split(".")[0] == "xgboost" for kind in kinds):
            known, y = np.unique(self.codes, return_inverse=True)
            if params.get("eval_set") is not None:
                classes = self.classes[known]
                remedy = "Each of its classes must occur in every part that is trained on."
                params["eval_set"] = [
                    (
                        rows,
                        encode_known(check_labels(labels, "eval_set"), classes, "eval_set", remedy),
                    )
                    for rows, labels in params["eval_set"]
                ]
        with run(task, fitted, self.X, y):
            fitted.fit(self.X, y, **params)
        if by_codes:
            return RawClassifier(fitted, self.classes, known, find_response(fitted))
        return wrap_fitted(fitted, self.classes)

    def fit_auxiliary(self, models: Mapping[str, Any]) -> dict[str, RawClassifier]:
        """Fit clones of classifiers whose opinion is asked; weights reach those that take them."""
        fitted = {}
        for name, model in models.items():
            if is_ready(model):
                columns = _match_classes(f"auxiliary[{name!r}]", model.classes_, self.classes)
                raw = RawClassifier(clone(model), self.classes, columns, "predict_proba")
            else:
                raw = replace(self, params=_name_weights(model, self.weight)).fit(model)
            fitted[name] = raw
        return fitted


def ask_auxiliary(models: Mapping[str, RawClassifier], X: Any) -> dict[str, FloatArray]:
    """Return the probabilities that each of the fitted auxiliary models gives, by its name."""
    return {name: model.scores(X) for name, model in models.items()}


def _match_classes(name: str, own: Any, classes: LabelArray) -> IntArray:
    """Return the position of each class of an auxiliary model, -1 for others; refuse misspelt ones.

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


def _name_weights(estimator: Any, weight: FloatArray | None) -> dict[str, FloatArray]:
    """Return the weights under the name by which `fit` takes them; nothing if it takes none."""
    if private_sklearn.routing_enabled():
        wants = get_routing_for_object(estimator).consumes("fit", ["sample_weight"])
        name = "sample_weight" if wants else None
    else:
        name = private_sklearn.weight_parameter(estimator)
    return {} if weight is None or name is None else {name: weight}


def check_trainable(n: int) -> None:
    """Refuse to train on a single row: many classifiers would silently return nan."""
    if n < 2:
        raise ValueError(f"X has one sample (n_samples={n}); a classifier needs at least two.")


# What is told of the fits -------------------------------------------------------------------


class FitTask(NamedTuple):
    """One of the fits inside a `fit`; it may run in another process.

    Parameters
    ----------
    owner : estimator
        Whose `fit` it belongs to.
    name : str
        The rows to train on, in words.
    context : CallbackContext
        What scikit-learn's callbacks are called with.
    """

    owner: Any
    name: str
    context: Any


@contextlib.contextmanager
def run(task: FitTask | None, model: Any, X: Any, y: Any) -> Iterator[None]:
    """Surround the fit of a model: tell the callbacks, pass them on, print the time."""
    if task is None:
        yield
        return
    start, takes_callbacks = time.perf_counter(), hasattr(model, "set_callbacks")
    pass_on = task.context.propagate_callback_context if takes_callbacks else contextlib.nullcontext
    with pass_on(model):
        task.context.call_on_fit_task_begin(estimator=task.owner, X=X, y=y)
        yield
    task.context.call_on_fit_task_end(estimator=task.owner, X=X, y=y)
    _say(task.owner, f"{task.name}: {time.perf_counter() - start:.1f} s")


class Fits:
    """All fits inside a `fit`.

    Parameters
    ----------
    owner : estimator
        It has `verbose`, and may have callbacks.
    X, y : array-like
        All rows, for the callbacks.
    """

    def __init__(self, owner: Any, X: Any, y: Any) -> None:
        self._owner, self._rows = owner, {"X": X, "y": y}
        self._context: Any = None
        self.tasks: list[FitTask] = []

    def begin(
        self, n_fits: int, *, first: Sequence[str] = (), n_folds: int = 0, last: Sequence[str] = ()
    ) -> list[FitTask]:
        """Say what will be fitted, and how often the classifier inside; return the tasks."""
        folds = [f"{n_folds} fold{'s' * (n_folds > 1)}"] if n_folds else []
        if n_fits:
            steps = ", then ".join([*first, *folds, *last])
            _say(self._owner, f"Fitting {steps}, totalling {n_fits} fit{'s' * (n_fits > 1)}")
        names = [*first, *(f"fold {k + 1} of {n_folds}" for k in range(n_folds)), *last]
        self._context = private_sklearn.begin_fit(self._owner, len(names), **self._rows)
        tasks = [(name, self._context.subcontext(task_name=name)) for name in names]
        self.tasks = [FitTask(self._owner, name, context) for name, context in tasks]
        return self.tasks

    def end(self) -> None:
        """Tell the callbacks that all is done."""
        self._context.call_on_fit_task_end(estimator=self._owner, **self._rows)


def _say(owner: Any, text: str) -> None:
    """Print a line if the estimator is verbose."""
    if owner.verbose:
        print(f"[{type(owner).__name__}] {text}", flush=True)  # noqa: T201 - as scikit-learn does
