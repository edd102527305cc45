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
from skselect._lib.checks.rows import check_labels, encode_known, encode_labels, order_columns
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
        scores, _ = self.ask(X)
        return scores

    def ask(self, X: Any) -> tuple[FloatArray, IntArray | None]:
        """Return raw scores, and which stage of a cascade gave those of each row."""
        if self.response == "decision_function":
            return self._ask_values(X), None
        stage = None
        cascade = find_cascade(self.estimator)
        if cascade is None:
            proba = self.estimator.predict_proba(X)
        else:
            proba, stage = cascade.follow(X)
        proba = check_own_proba(proba, X, self.estimator)
        return spread(proba, self.columns, len(self.classes), 0.0), stage

    def _ask_values(self, X: Any) -> FloatArray:
        """Return checked decision values."""
        n_rows = private_sklearn.count_rows(X)
        n_classes = len(self.columns)
        name = f"estimator: decision_function of {type(self.estimator).__name__}"
        table = self.estimator.decision_function(X)
        table = order_columns(table, self.estimator.classes_, name)
        values = np.asarray(table, dtype=np.float64)
        if values.shape != ((n_rows,) if n_classes == 2 else (n_rows, n_classes)):
            raise ValueError(
                f"{name} gives values of shape {values.shape} for {n_rows} rows and {n_classes} "
                "classes; one column per class is needed (for SVC: decision_function_shape='ovr')."
            )
        is_finite = np.isfinite(values).reshape(n_rows, -1).all(axis=1)
        bad = np.flatnonzero(~is_finite)
        if len(bad):
            raise ValueError(
                f"{name} gives NaN or infinite values in {len(bad)} of {n_rows} rows, first in row "
                f"{bad[0]}; they say nothing about the answer."
            )
        if values.ndim == 1:
            if len(self.classes) == 2:
                return values
            values = np.column_stack([-values, values])
        return spread(values, self.columns, len(self.classes), np.nan)

    def predict_codes(self, X: Any) -> IntArray:
        """Return what the classifier itself predicts, as codes of the task's classes."""
        return self.columns[self._encode(self._predict(X))]

    def _predict(self, X: Any) -> Any:
        """Return the classifier's own answers, one label per row."""
        answers = self.estimator.predict(X)
        shape = np.shape(answers)
        if len(shape) == 2 and shape[1] > 1:
            hint = ""
            if getattr(find_inner(self.estimator), "objective", None) == "multi:softprob":
                hint = " For two classes give XGBoost objective='binary:logistic'."
            raise ValueError(
                f"estimator: predict of {type(self.estimator).__name__} gives a table of the shape "
                f"{shape} instead of a label for each row.{hint}"
            )
        return answers

    def _encode(self, answers: Any) -> IntArray:
        """Return the classifier's own answers as codes of its own classes."""
        labels = check_labels(answers, "predict(X)")
        return encode_known(labels, np.asarray(self.estimator.classes_), "predict(X)", "")

    def check_decision(
        self, X: Any, scores: FloatArray, decision: str, n_checked: int = MOST_CHECKED
    ) -> None:
        """Refuse a classifier that abstains, or predicts another class than the decision says.

        Its type tells, or its own answers to `n_checked` of the rows, evenly spread.
        With decision values this is checked for two classes only: with more, the class that SVC
        predicts may differ from that of its largest value in a few rows.
        """
        self._check_inner()
        is_proba = self.response == "predict_proba"
        if decision == "estimator":
            self.predict_codes(private_sklearn.take_rows(X, [0]))  # what fails, fails in fit
        if decision != "argmax":
            return
        reason = _find_own_answers(self.estimator, is_proba=is_proba)
        if reason:
            self._refuse_own_answers(f"in some rows ({reason})")
        if not (is_proba or scores.ndim == 1):
            return
        some = some_of(np.arange(len(scores)), n_checked)
        X = private_sklearn.take_rows(X, some)
        scores = scores[some]
        scores = scores[:, self.columns] if is_proba else np.column_stack([-scores, scores])
        answers = self._predict(X)
        best = np.asarray(self.estimator.classes_)[scores.argmax(axis=1)]
        if np.array_equal(answers, best):
            return
        codes = self._encode(answers)
        chosen = scores[np.arange(len(codes)), codes]
        # Rounding may break a tie either way; a tuned cut-off differs by far more.
        n_other = int(np.sum(chosen < scores.max(axis=1) - RANGE_TOLERANCE))
        if n_other:
            self._refuse_own_answers(
                f"in {n_other} of {len(codes)} rows (a tuned cut-off inside it, or probabilities "
                "that were fitted apart from the decision)"
            )

    def _refuse_own_answers(self, where: str) -> None:
        """Refuse a classifier whose own answers are not the most probable classes."""
        raise ValueError(
            f"estimator: {type(self.estimator).__name__}.predict differs from the class of the "
            f"largest probability {where}. Its confidence would not belong to its answer. Choose "
            "decision='estimator' to keep its own answers."
        )

    def _check_inner(self) -> None:
        """Refuse a classifier that abstains, and decision values that compare pairs of classes."""
        abstainer, _ = find_abstainer(self.estimator, None)
        if abstainer is not None and abstainer.abstains:
            raise ValueError(
                f"estimator: the {type(abstainer).__name__} inside abstains by itself. Pass the "
                "classifier without a threshold (threshold=None), or wrap the whole Pipeline "
                "instead of its last step."
            )
        if self.response == "predict_proba" or len(self.columns) <= 2:
            return
        inner = find_inner(self.estimator)
        inner = getattr(inner, "best_estimator_", getattr(inner, "estimator_", inner))
        inner = find_inner(inner)
        if getattr(inner, "decision_function_shape", "ovr") == "ovo":
            raise ValueError(
                f"estimator: the columns of decision_function of {type(inner).__name__} compare "
                "pairs of classes. One column per class is needed: decision_function_shape='ovr'."
            )


def spread(scores: FloatArray, columns: IntArray, n_classes: int, missing: float) -> FloatArray:
    """Return a table with a column for every class, from those that a classifier has.

    Where it has further classes (-1), the probabilities of the others are made to sum to one.
    """
    if np.array_equal(columns, np.arange(n_classes)):
        return scores
    has_column = columns >= 0
    table = np.full((len(scores), n_classes), missing, dtype=scores.dtype)
    table[:, columns[has_column]] = scores[:, has_column]
    if has_column.all():
        return table
    uniform = np.full_like(table, 1.0 / n_classes)
    total = table.sum(axis=1, keepdims=True)
    return np.divide(table, total, out=uniform, where=total > 0)


def some_of(rows: IntArray, most: int = MOST_CHECKED) -> IntArray:
    """Return up to `most` of the rows, evenly spread."""
    if len(rows) <= most:
        return rows
    places = np.linspace(0, len(rows) - 1, most)
    return rows[places.astype(np.int64)]


def wrap_fitted(estimator: Any, classes: LabelArray) -> RawClassifier:
    """Describe a fitted classifier whose classes are among `classes`."""
    if not hasattr(estimator, "classes_"):
        raise ValueError(
            f"estimator must be a classifier, but a fitted {type(estimator).__name__} has no "
            "classes_."
        )
    own_classes = np.asarray(estimator.classes_)
    columns = np.arange(len(classes))
    if not np.array_equal(own_classes, classes):
        remedy = "y must hold every class of a classifier."
        columns = encode_known(check_labels(own_classes, "classes_"), classes, "classes_", remedy)
    return RawClassifier(estimator, classes, columns, find_response(estimator))


def is_ready(estimator: Any) -> bool:
    """Tell whether a classifier is used as it is: a frozen one, or one that never learns."""
    if isinstance(estimator, FrozenEstimator):
        return True
    return hasattr(estimator, "classes_") and not get_tags(estimator).requires_fit


def _find_own_answers(estimator: Any, *, is_proba: bool) -> str:
    """Return why the answers of a classifier are not its most probable classes, by its type.

    "" where nothing is known of the kind.
    """
    inner = find_inner(estimator)
    kinds = {kind.__name__ for kind in type(inner).__mro__}
    name = type(inner).__name__
    if "TunedThresholdClassifierCV" in kinds:
        return f"{name} tunes a cut-off"
    if "FixedThresholdClassifier" in kinds and inner.threshold != "auto":
        return f"{name} has a cut-off"
    if is_proba and kinds & {"SVC", "NuSVC"}:
        remedy = "SelectiveClassifier(SVC(), calibration='platt') calibrates its decision values"
        return f"{name} fits probabilities apart from its answers; {remedy}"
    # Searches, and one against the rest, answer as what they fit does.
    if name.endswith("SearchCV") or "OneVsRestClassifier" in kinds:
        return _find_own_answers(inner.estimator, is_proba=is_proba)
    return ""


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
        split_params = {} if groups is None else {"groups": groups}
        return params | pass_weight(owner.estimator, weight), split_params
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
        return replace(
            self,
            X=private_sklearn.take_rows(self.X, rows),
            y=self.y[rows],
            codes=self.codes[rows],
            weight=weight,
            params=private_sklearn.take_params(self.X, self.params, rows),
            split_params=private_sklearn.take_params(self.X, self.split_params, rows),
        )

    def fit(self, estimator: Any, task: FitTask | None = None) -> RawClassifier:
        """Fit a clone of a classifier (a frozen one is not fitted)."""
        fitted = clone(estimator)
        if isinstance(fitted, FrozenEstimator):
            return wrap_fitted(fitted, self.classes)
        if _takes_codes(fitted, self.params):
            return self._fit_to_codes(fitted, task)
        with run(task, fitted, self.X, self.y):
            fitted.fit(self.X, self.y, **self.params)
        return wrap_fitted(fitted, self.classes)

    def _fit_to_codes(self, estimator: Any, task: FitTask | None) -> RawClassifier:
        """Fit a classifier to labels 0..k-1, of which none is missing."""
        present, y = np.unique(self.codes, return_inverse=True)
        classes = self.classes[present]
        if not np.array_equal(classes, np.arange(len(classes))):
            _refuse_named_weights(estimator)
        params = {
            name: _encode_evaluated(name, value, classes) for name, value in self.params.items()
        }
        with run(task, estimator, self.X, y):
            estimator.fit(self.X, y, **params)
        return RawClassifier(estimator, self.classes, present, find_response(estimator))

    def fit_auxiliary(self, models: Mapping[str, Any]) -> dict[str, RawClassifier]:
        """Fit clones of classifiers whose opinion is asked; weights reach those that take them."""
        fitted = {}
        for name, model in models.items():
            if is_ready(model):
                columns = _match_classes(f"auxiliary[{name!r}]", model.classes_, self.classes)
                fitted[name] = RawClassifier(clone(model), self.classes, columns, "predict_proba")
            else:
                params = _name_weights(model, self.weight) | self._route_groups(model)
                fitted[name] = replace(self, params=params).fit(model)
        return fitted

    def _route_groups(self, model: Any) -> dict[str, Any]:
        """Return the groups, where metadata routing is on and a model asks for them."""
        groups = self.split_params.get("groups")
        if groups is None or not private_sklearn.routing_enabled():
            return {}
        if not get_routing_for_object(model).consumes("fit", ["groups"]):
            return {}
        return {"groups": groups}


def ask_auxiliary(models: Mapping[str, RawClassifier], X: Any) -> dict[str, FloatArray]:
    """Return the probabilities that each of the fitted auxiliary models gives, by its name."""
    return {name: model.scores(X) for name, model in models.items()}


# Labels that a booster does not encode ---------------------------------------------------------


def _takes_codes(estimator: Any, params: Mapping[str, Any]) -> bool:
    """Tell whether a classifier is trained on labels 0..k-1, the codes.

    XGBoost refuses other labels, also in a search. Evaluation sets of XGBoost inside an ensemble,
    and LightGBM's `eval_y`, are not encoded where y is.
    """
    inner = find_inner(estimator)
    while type(inner).__name__.endswith("SearchCV"):
        inner = find_inner(inner.estimator)
    if _is_xgboost(inner):
        return True
    names = {_last_name(name) for name, value in params.items() if value is not None}
    if "eval_set" in names and hasattr(estimator, "get_params"):
        return any(_is_xgboost(part) for part in estimator.get_params().values())
    return "eval_y" in names


def _is_xgboost(estimator: Any) -> bool:
    return any(kind.__module__.split(".")[0] == "xgboost" for kind in type(estimator).__mro__)


def _last_name(name: str) -> str:
    """Return the name of an argument of `fit` without the steps before it."""
    return name.rsplit("__", maxsplit=1)[-1]


def _refuse_named_weights(estimator: Any) -> None:
    """Refuse weights by label where the classifier is trained on codes."""
    for name, value in estimator.get_params().items():
        if _last_name(name) == "class_weight" and isinstance(value, Mapping):
            raise ValueError(
                f"{name} names labels, but this classifier is trained on their positions 0, 1, ... "
                "(for XGBoost, and for evaluation sets). Pass class_weight='balanced', or "
                "sample_weight."
            )


def _encode_evaluated(name: str, value: Any, classes: LabelArray) -> Any:
    """Return an argument of `fit`, the labels of an evaluation set as codes."""
    if value is None:
        return None
    if _last_name(name) == "eval_set":
        return [(X, _encode_labels(name, labels, classes)) for X, labels in value]
    if _last_name(name) != "eval_y":
        return value
    if isinstance(value, tuple):
        return tuple(_encode_labels(name, labels, classes) for labels in value)
    return _encode_labels(name, value, classes)


def _encode_labels(name: str, labels: Any, classes: LabelArray) -> IntArray:
    """Return labels as positions among the classes trained on."""
    remedy = "Each of its classes must occur in every part that is trained on."
    return encode_known(check_labels(labels, name), classes, name, remedy)


def _match_classes(name: str, own_classes: Any, classes: LabelArray) -> IntArray:
    """Return the position of each class of an auxiliary model, -1 for others; refuse misspelt ones.

    It may lack classes, or have further ones; with both, some are probably the same.
    """
    own_classes = check_labels(np.asarray(own_classes), f"{name}.classes_")
    columns = encode_labels(own_classes, classes, f"{name}.classes_")
    missing = np.setdiff1d(np.arange(len(classes)), columns)
    further = own_classes[columns < 0]
    if len(missing) and len(further):
        raise ValueError(
            f"{name} has labels that are not among the classes, {further[:5].tolist()}, "
            f"and lacks {classes[missing][:5].tolist()}, which are. Give it the labels of y."
        )
    return columns


def _name_weights(estimator: Any, weight: FloatArray | None) -> dict[str, FloatArray]:
    """Return the weights under the name by which `fit` takes them; nothing if it takes none."""
    if weight is None:
        return {}
    if not private_sklearn.routing_enabled():
        name = private_sklearn.weight_parameter(estimator)
        return {} if name is None else {name: weight}
    if get_routing_for_object(estimator).consumes("fit", ["sample_weight"]):
        return {"sample_weight": weight}
    return {}


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
    start = time.perf_counter()
    pass_on = contextlib.nullcontext
    if hasattr(model, "set_callbacks"):
        pass_on = task.context.propagate_callback_context
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
        self._owner = owner
        self._rows = {"X": X, "y": y}
        self._context: Any = None
        self.tasks: list[FitTask] = []

    def begin(
        self,
        n_fits: int,
        *,
        before_folds: Sequence[str] = (),
        n_folds: int = 0,
        after_folds: Sequence[str] = (),
    ) -> list[FitTask]:
        """Say what will be fitted, and how often the classifier inside; return the tasks."""
        if n_fits:
            folds = [_count(n_folds, "fold")] if n_folds else []
            steps = ", then ".join([*before_folds, *folds, *after_folds])
            _say(self._owner, f"Fitting {steps}, totalling {_count(n_fits, 'fit')}")
        folds = [f"fold {k + 1} of {n_folds}" for k in range(n_folds)]
        names = [*before_folds, *folds, *after_folds]
        self._context = private_sklearn.begin_fit(self._owner, len(names), **self._rows)
        self.tasks = []
        for name in names:
            context = self._context.subcontext(task_name=name)
            self.tasks.append(FitTask(self._owner, name, context))
        return self.tasks

    def end(self) -> None:
        """Tell the callbacks that all is done."""
        self._context.call_on_fit_task_end(estimator=self._owner, **self._rows)


def _count(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural for more than one."""
    return f"{n} {noun}s" if n > 1 else f"{n} {noun}"


def _say(owner: Any, text: str) -> None:
    """Print a line if the estimator is verbose."""
    if owner.verbose:
        print(f"[{type(owner).__name__}] {text}", flush=True)  # noqa: T201 - as scikit-learn does
