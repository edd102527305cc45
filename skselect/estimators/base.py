"""The methods of all abstaining estimators, and how to find one inside wrappers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, LabelArray
from skselect._lib.checks.rows import (
    check_labels,
    check_length,
    check_proba,
    check_weight,
    encode_labels,
    order_columns,
)
from skselect._lib.sklearn import count_rows
from skselect.estimators.groups import find_asking_splitter
from skselect.estimators.interfaces import StagedClassifier
from skselect.policy import policy as policies
from skselect.policy.seen_rows import SeenRows


def has_decision_values(model: Any) -> bool:
    """Tell whether decision values belong to the probabilities of an abstaining estimator."""
    wrapped = getattr(model, "estimator_", model.estimator)
    calibrated = getattr(model, "calibration", None) is not None
    return hasattr(wrapped, "decision_function") and (not calibrated or model.calibrates_confidence)


#: Raw scores, codes of the classifier's own answers, subgroups, what a learned confidence asks, and
#: which stage of a cascade gave the scores: all but the scores may be None or empty.
RawScores = tuple[FloatArray, IntArray | None, Any, dict[str, FloatArray], IntArray | None]


class AbstainingMixin:
    """The methods that all abstaining estimators share.

    A class provides `policy_`, ``_read_rows(X)``, which returns what the policy needs of rows
    (:data:`RawScores`), ``_find_records(X)``, and ``_raw()``, which returns the fitted classifier
    inside as a `RawClassifier`.
    """

    cv: Any
    estimator: Any
    policy_: policies.AbstentionPolicy
    _raw: Callable[[], Any]
    _read_rows: Callable[[Any], RawScores]
    _find_records: Callable[[Any], list[tuple[SeenRows, Any] | None]]

    def _features(self, X: Any) -> Any:
        """Return what the classifier sees of X."""
        return X

    if not TYPE_CHECKING:  # else mypy would take any attribute for one of these

        def __getattr__(self, name: str) -> Any:
            # Python asks here for an attribute that is missing, or whose property raises.
            fitted = name.endswith("_") and not name.startswith("_")
            if fitted and not self.__sklearn_is_fitted__():
                raise NotFittedError(
                    f"This {type(self).__name__} is not fitted yet, so it has no {name!r}. Call "
                    "fit(X, y) first."
                )
            if name in ("to_json", "to_python"):
                kind = type(self).__name__
                raise AttributeError(f"A {kind} has no {name!r}: call policy_.{name}.")
            return object.__getattribute__(self, name)

    @property
    def classes_(self) -> LabelArray:
        """Class labels, in the order of the columns of ``predict_proba``."""
        classes: LabelArray = self._raw().classes
        return classes

    @property
    def n_features_in_(self) -> int:
        """Number of features, if the wrapped classifier counts them."""
        return int(self._raw().estimator.n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the features, if the wrapped classifier has seen any."""
        return self._raw().estimator.feature_names_in_

    def predict(self, X: Any) -> LabelArray:
        """Return the label of each row, the abstain label where it is not accepted.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
            False and True as 0 and 1, if it can abstain.

        Raises
        ------
        ValueError
            If X has no rows, as scikit-learn's classifiers do (``policy_.decide`` accepts it).
        """
        rows = self._read_rows(X)
        policy = self.policy_
        decisions = policies.apply_policy(policy, *rows)
        return policies.label_decisions(policy, decisions)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return (calibrated) class probabilities of shape (n, K); never masked."""
        return decide_rows(self, X).y_proba

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of ``predict_proba``; -inf for a probability of 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict_confidence(self, X: Any) -> FloatArray:
        """Return the confidence of each row, to which the threshold is applied; shape (n,)."""
        return decide_rows(self, X).confidence

    def accepts(self, X: Any) -> BoolArray:
        """Tell which rows it accepts, shape (n,)."""
        return decide_rows(self, X).accepted

    def decide(self, X: Any, *, capacity: int | None = None) -> pd.DataFrame:
        """Return the decisions as a DataFrame with the index of `X`.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)
        capacity : int, default=None
            Defer at most so many of these rows, see :meth:`AbstentionPolicy.decide`.

        Returns
        -------
        DataFrame
            `label` (NA where it abstains), `suggestion` (the answer everywhere), `accepted`,
            `confidence`, `threshold`; with a shortlist also `shortlist` (a tuple of labels where it
            abstains, most probable first; else NA), for a cascade `stage`, which gave the answer,
            with `capacity` also `over_capacity`.
        """
        rows = self._read_rows(X)
        policy = self.policy_
        decisions = policies.apply_policy(policy, *rows)
        decisions = policies.limit_deferred(policy, decisions, capacity)
        index = policies.find_index(X, len(decisions.accepted))
        return policies.tabulate_decisions(policy, decisions, index)

    def raw_scores(self, X: Any) -> Any:
        """Return what ``policy_.decide`` takes: the wrapped classifier's own output.

        That is ``predict_proba`` before calibration, or ``decision_function`` where there are
        no probabilities; of a cascade a dict with what each stage says, NaN where it was not asked.
        A service that has the classifier and the policy file computes these.
        """
        cascade = find_cascade(self._raw().estimator)
        if cascade is not None:
            return cascade.stage_proba(X)
        scores, *_ = self._read_rows(X)
        return scores

    def raw_auxiliary(self, X: Any) -> dict[str, FloatArray]:
        """Return what ``policy_.decide`` takes as `auxiliary`.

        That is what a learned confidence asks beside the raw scores: by name the ``predict_proba``
        of each auxiliary model, and the values of each further column. It is empty for any other
        confidence, and where the learned one is not used.
        """
        _, _, _, auxiliary, _ = self._read_rows(X)
        return auxiliary

    @available_if(has_decision_values)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> FloatArray:
        """Return the wrapped classifier's decision values.

        There is no such method where the probabilities are calibrated: scikit-learn's scorers
        and meta-estimators would prefer these values, which contradict the probabilities.
        ``estimator_.decision_function`` still returns them.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,) or (n, K)
        """
        estimator = self._raw().estimator
        values = estimator.decision_function(self._features(X))
        return np.asarray(order_columns(values, estimator.classes_, "decision_function(X)"))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows that are both accepted and right.

        It equals the accuracy when nothing is rejected, and falls with every abstention: to
        compare abstaining classifiers use a selective scorer, such as
        ``get_scorer("cwsa_plus")`` or ``get_scorer("coverage_at_risk", max_risk=.02)``.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), default=None

        Returns
        -------
        float in [0, 1]
        """
        decisions = decide_rows(self, X)
        codes = encode_labels(check_labels(y, "y"), self.policy_.classes, "y")
        check_length("X", codes, len(decisions.y_pred), "y")
        right = decisions.accepted & (decisions.y_pred == codes)
        weight = check_weight(sample_weight, len(codes), other="y")
        return float(np.average(right, weights=weight))

    # scikit-learn ------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inner = get_tags(self.estimator)
        for name in ("sparse", "allow_nan", "string", "categorical", "pairwise", "positive_only"):
            setattr(tags.input_tags, name, getattr(inner.input_tags, name))
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
            tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
        tags.non_deterministic = inner.non_deterministic
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Say who gets the arguments of ``fit``: this estimator, the classifier, the splitter."""
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        to_split = MethodMapping().add(caller="fit", callee="split")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=to_fit)
            .add(splitter=find_asking_splitter(self.cv), method_mapping=to_split)
        )


def decide_rows(estimator: AbstainingMixin, X: Any) -> policies.Decisions:
    """Return all decisions of an abstaining estimator, as arrays."""
    rows = estimator._read_rows(X)
    return policies.apply_policy(estimator.policy_, *rows)


def find_cascade(estimator: Any) -> StagedClassifier | None:
    """Return the cascade that an estimator is, or that it froze; None for another classifier."""
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator if isinstance(estimator, StagedClassifier) else None


def find_abstainer(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Look for the abstaining estimator inside Pipeline, search and Frozen wrappers.

    Returns
    -------
    (abstainer, X) or (None, X)
        X as the abstainer gets it, after the transformers before it.
    """
    while True:
        if isinstance(estimator, AbstainingMixin):
            return estimator, X
        steps = getattr(estimator, "steps", None)
        if steps:
            _, last = steps[-1]
            abstainer, _ = find_abstainer(last, None)
            if abstainer is None:
                return None, X
            if len(steps) > 1 and X is not None:
                X = estimator[:-1].transform(X)
            estimator = last
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        else:
            return None, X


def find_frozen(estimator: Any) -> list[FrozenEstimator]:
    """Return the frozen parts among the parameters of an estimator, those in lists and dicts too.

    A part that is no parameter, of a class of the user's own, cannot be found.
    """
    if isinstance(estimator, FrozenEstimator):
        return [estimator]
    parts = estimator
    if hasattr(estimator, "get_params") and not isinstance(estimator, type):
        parts = estimator.get_params(deep=False)
    if isinstance(parts, Mapping):
        parts = list(parts.values())
    if not isinstance(parts, list | tuple):
        return []
    return [frozen for part in parts for frozen in find_frozen(part)]


def find_records(estimator: Any, X: Any) -> list[tuple[SeenRows, Any] | None]:
    """Return the records of rows that trained or calibrated the frozen parts of an estimator.

    Beside each stands X as the part got it. There is None for each part that keeps no record, and
    for each behind a Pipeline's steps or inside another wrapper: these may give it other values
    than those that trained it, so that a record which knows no row proves nothing.
    """
    if isinstance(estimator, AbstainingMixin):
        return estimator._find_records(X)
    if isinstance(estimator, FrozenEstimator):
        abstainer, _ = find_abstainer(estimator, None)
        inner_records = find_records(estimator.estimator, X)
        return [None, *inner_records] if abstainer is None else inner_records
    if hasattr(estimator, "best_estimator_"):
        return find_records(estimator.best_estimator_, X)
    if hasattr(estimator, "stages_"):  # each stage of a cascade gets rows of X
        return [record for _, stage in estimator.stages_ for record in find_records(stage, X)]
    frozen = find_frozen(estimator)
    records: list[tuple[SeenRows, Any] | None] = [None] * len(frozen)
    steps = getattr(estimator, "steps", None)
    if steps:
        _, last = steps[-1]
        if X is not None and len(steps) > 1 and find_records(last, None):
            X = estimator[:-1].transform(X)
        return records + find_records(last, X)
    for part in frozen:
        with contextlib.suppress(Exception):  # a wrapper may give it other columns than X has
            records += find_records(part, X)
    return records


def check_own_proba(table: Any, X: Any, estimator: Any) -> FloatArray:
    """Return what a classifier says of X: a row per case and a column per class, in their order."""
    table = order_columns(table, estimator.classes_, "predict_proba(X)")
    proba = check_proba(table, "predict_proba(X)")
    n_rows = count_rows(X)
    n_classes = len(estimator.classes_)
    if proba.shape != (n_rows, n_classes):
        raise ValueError(
            f"estimator: predict_proba of {type(estimator).__name__} gives the shape {proba.shape} "
            f"for {n_rows} rows and a classes_ of length {n_classes}; one row per case and one "
            "column per class are needed."
        )
    return proba
