"""Several classifiers that are asked in turn, each only where those before it are not sure."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, indexable

from skselect._lib import sklearn as private_sklearn
from skselect._lib.arrays import FloatArray, IntArray, LabelArray
from skselect._lib.checks import shown
from skselect._lib.checks.options import check_has_fit
from skselect._lib.checks.rows import check_weight
from skselect._lib.decide import follow
from skselect.estimators.base import find_abstainer
from skselect.estimators.classifier import check_y, frozen_classes
from skselect.estimators.groups import (
    check_groups,
    find_asking_splitter,
    refuse_mixed_folds,
)
from skselect.estimators.interfaces import StagedClassifier
from skselect.estimators.out_of_fold import (
    OutOfFold,
    Splits,
    check_cv,
    find_tested_rows,
    make_folds,
    predict_folds,
    score_rows,
)
from skselect.estimators.raw_classifier import (
    RawClassifier,
    TrainingRows,
    check_trainable,
    is_ready,
    pass_weight,
)
from skselect.extras.cascade import Cascade, check_stages_named
from skselect.extras.join import check_plan, make_cascade
from skselect.predictions.predictions import Predictions

#: Its splitter among those that get arguments of `fit`; no stage can have this name.
_SPLITTER = "splitter__"


class CascadeClassifier(
    StagedClassifier,
    ClassifierMixin,
    private_sklearn.DescribedMixin,
    private_sklearn.BaseComposition,
):
    """Ask a cheap classifier first, and a stronger one only where the cheap one is not sure.

    A stage keeps a case where its calibrated confidence reaches a cut; else the case goes on to the
    next stage. The cuts are fixed on the training rows, from predictions by models that have not
    seen them, so that :class:`ThresholdTuner` certifies what the whole cascade answers on other
    rows, exactly as for any classifier. No stage is asked after the threshold is known: a case that
    an early stage keeps, but below the final threshold, is deferred although a later stage might
    have answered it, because asking again would be another rule than the certified one.

    Parameters
    ----------
    stages : list of (str, classifier)
        The cheapest first, each with ``predict_proba``. ``FrozenEstimator(fitted)`` and
        :class:`PrecomputedClassifier` are not fitted.
    costs : list of float, default=None
        What asking each stage adds to the cost of a case, in any unit. None: 0, 1, 2, ... It does
        not change the cuts; ``policy_.expected_costs`` says what a case will cost.
    target : float in (0, 0.5], default=None
        The bound to keep. The cuts are planned for this selective risk; a ThresholdTuner with the
        objective Risk fills in its own. Without one, and with other objectives, the accuracy of all
        answers counts.
    max_loss : float in [0, 1], default=0.01
        How much of the coverage that the last stage alone would certify at the target (or of its
        accuracy) the cascade may lose on the training rows, in order to ask it less often.
    calibration : str, calibrator or None, default="smooth_isotonic"
        As for :class:`SelectiveClassifier`, for each stage, so that their confidences can be
        compared.
    cv : int, splitter or iterable, default=5
        Folds of the predictions that fix the cuts and calibrations. An integer makes fewer folds
        where there are fewer groups, or fewer rows of each class.
    random_state : int, RandomState or None, default=None
        For the folds of an integer `cv`. A ThresholdTuner fills in its own.
    n_jobs : int, default=None
        Folds of `cv` fitted at the same time.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    stages_ : list of (str, classifier)
        Fitted to all rows.
    cascade_ : Cascade
        The rule: names, cuts, costs and calibrations.
    n_features_in_, feature_names_in_
        Those of the first stage, if it has them.

    See Also
    --------
    join_stages : The same for tables of predictions.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skselect import CascadeClassifier, ThresholdTuner
    >>> X, y = load_digits(return_X_y=True)
    >>> cascade = CascadeClassifier(
    ...     [("linear", make_pipeline(StandardScaler(), LogisticRegression())),
    ...      ("neighbours", KNeighborsClassifier())], random_state=0)
    >>> tuner = ThresholdTuner(cascade, "risk", target=.02, random_state=0).fit(X, y)
    >>> bool(tuner.policy_.expected_costs["asked"]["neighbours"] < .5)
    True
    >>> tuner.decide(X[:5]).columns.tolist()
    ['label', 'suggestion', 'accepted', 'confidence', 'threshold', 'stage']
    """

    def __init__(
        self,
        stages: Any,
        *,
        costs: Any = None,
        target: float | None = None,
        max_loss: float = 0.01,
        calibration: Any = "smooth_isotonic",
        cv: Any = 5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.stages = stages
        self.costs = costs
        self.target = target
        self.max_loss = max_loss
        self.calibration = calibration
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs

    _makes_folds = True

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any
    ) -> CascadeClassifier:
        """Fix where each stage keeps a case, and fit all stages to all rows.

        Each stage is fitted once per fold, and once more.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), default=None
            How often each row counts. For the stages and their calibrations.
        **fit_params
            Passed on to the classifier's ``fit``. ``groups`` goes to the splitter; others, and
            groups too, go to the stages that request them (metadata routing).

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is malformed, or a stage knows other classes than y.
        """
        self._check_parameters()
        rows, params = self._check_rows(X, y, sample_weight, fit_params)
        splits = make_folds(self.cv, rows, rows.split_params, self.random_state)
        rows_by_stage = {name: replace(rows, params=params[name]) for name, _ in self.stages}
        predictions = {
            name: self._test_stage(rows_by_stage[name], stage, splits)
            for name, stage in self.stages
        }
        self.cascade_: Cascade = make_cascade(
            predictions, self.costs, self.target, self.max_loss, self.calibration
        )
        joined = self.cascade_.join(predictions)
        self._unseen = OutOfFold.of(rows, find_tested_rows(splits), scores=joined.y_proba)
        self._raw_stages: list[RawClassifier] = [
            rows_by_stage[name].fit(stage) for name, stage in self.stages
        ]
        fitted = [raw.estimator for raw in self._raw_stages]
        self.stages_ = list(zip(rows_by_stage, fitted, strict=True))
        self.classes_ = rows.classes
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted[0], name):
                setattr(self, name, getattr(fitted[0], name))
        return self

    def _check_rows(
        self, X: Any, y: Any, sample_weight: Any, fit_params: Mapping[str, Any]
    ) -> tuple[TrainingRows, dict[str, dict[str, Any]]]:
        """Return checked rows, and the arguments of fit of each stage."""
        X, y = indexable(X, y)
        y = check_y(y)
        check_trainable(len(y))
        classes, codes = np.unique(y, return_inverse=True)
        self._check_classes(classes)
        weight = check_weight(sample_weight, len(y), other="y")
        check_groups(fit_params, len(y))
        refuse_mixed_folds(self.cv, self.stages, fit_params)
        params, split_params = self._route(weight, fit_params)
        rows = TrainingRows(X, y, codes, classes, weight, split_params=split_params)
        return rows, params

    def _check_classes(self, classes: LabelArray) -> None:
        """Refuse a fitted stage that knows other classes than y holds."""
        for name, stage in self.stages:
            if not is_ready(stage):
                continue
            stage_classes = np.sort(frozen_classes(stage))
            if not np.array_equal(stage_classes, classes):
                raise ValueError(
                    f"stages: {name!r} knows the classes {stage_classes.tolist()[:10]}, but y "
                    f"holds {classes.tolist()[:10]}; all stages answer with the same classes."
                )

    def _test_stage(self, rows: TrainingRows, stage: Any, splits: Splits) -> Predictions:
        """Return what a stage says of the tested rows, by models that have not seen them."""
        score = partial(score_rows, estimator=stage)
        unseen = predict_folds(score, rows, splits, self.n_jobs)
        unseen = unseen.take(np.argsort(unseen.rows))
        proba = unseen.scores.astype(np.float64)
        answered = replace(unseen, scores=proba, y_pred=proba.argmax(axis=1))
        return answered.as_predictions(rows.classes, rows.rule)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the calibrated probabilities of the stage that keeps each row, (n, K)."""
        proba, _ = self.follow(X)
        return proba

    def predict(self, X: Any) -> LabelArray:
        """Return the most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def follow(self, X: Any) -> tuple[FloatArray, IntArray]:
        """Return probabilities, and which stage gave those of each row.

        A stage is asked of the rows that come to it, and of no others.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        proba : ndarray of shape (n, K)
        stage : ndarray of int, shape (n,)
            Positions in `stages`.
        """
        proba, stage, _ = self._ask_stages(X)
        return proba, stage

    def stage_proba(self, X: Any) -> dict[str, FloatArray]:
        """Return what each stage says before calibration, NaN in rows where it is not asked.

        That is what ``policy_.decide`` takes.
        """
        _, _, tables = self._ask_stages(X)
        return dict(zip(self.cascade_.names, tables, strict=True))

    def _ask_stages(self, X: Any) -> tuple[FloatArray, IntArray, list[FloatArray]]:
        """Return probabilities, the stage that gave them, and what each stage says itself."""
        check_is_fitted(self)
        (X,) = indexable(X)
        n_rows = private_sklearn.count_rows(X)
        n_classes = len(self.classes_)
        tables = [np.full((n_rows, n_classes), np.nan) for _ in self.stages_]

        def ask(k: int, rows: IntArray) -> FloatArray:
            waiting = X if len(rows) == n_rows else private_sklearn.take_rows(X, rows)
            proba = self._raw_stages[k].scores(waiting)
            tables[k][rows] = proba
            return proba

        proba, stage = follow(self.cascade_.applied(), n_rows, n_classes, ask)
        return proba, stage, tables

    def __getstate__(self) -> dict[str, Any]:
        """Return all but what was said out of fold: only a tuner needs it, while it fits."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_unseen"}

    def _plan_for(self, target: float | None, random_state: Any) -> None:
        """Fill in the risk that a tuner asks for, and its seed, where this has none of its own."""
        self._check_parameters()
        if self.random_state is None:
            self.random_state = random_state
        if self.target is None:
            self.target = target

    # Parameters ----------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Refuse parameters that are malformed, before anything is trained."""
        try:
            names, models = zip(*self.stages, strict=True)
        except (TypeError, ValueError):
            names = models = ()
        if len(names) < 2 or not all(isinstance(name, str) for name in names):
            raise ValueError(
                "stages must be a list of two pairs (name, classifier) or more, the cheapest "
                f"first, got {shown(self.stages)}."
            )
        costs = range(len(names)) if self.costs is None else self.costs
        check_stages_named(names, costs)
        self._validate_names(names)
        for name, stage in zip(names, models, strict=True):
            _check_stage(name, stage)
        check_plan(self.target, self.max_loss, self.calibration)
        check_cv(self.cv)

    def _route(
        self, weight: FloatArray | None, fit_params: Mapping[str, Any]
    ) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
        """Return the arguments of fit of each stage, weights included, and of the splitter."""
        params = dict(fit_params)
        if private_sklearn.routing_enabled():
            if weight is not None:
                params["sample_weight"] = weight
            routed = process_routing(self, "fit", **params)
            by_stage = {name: dict(routed[name].fit) for name, _ in self.stages}
            return by_stage, dict(routed[_SPLITTER].split)
        split_params = {}
        if params.get("groups") is not None:
            split_params["groups"] = params.pop("groups")
        if params:
            raise ValueError(
                f"fit: {list(params)} could go to any stage; enable scikit-learn's metadata "
                "routing, and let the stages request them."
            )
        weights = {
            name: pass_weight(stage, weight, f"the stage {name!r}, ") for name, stage in self.stages
        }
        return weights, split_params

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, with those of each stage as ``name__parameter``."""
        return dict(self._get_params("stages", deep=deep))

    def set_params(self, **params: Any) -> CascadeClassifier:
        """Set parameters by name, such as ``cheap__max_depth=3``, or a stage: ``cheap=...``."""
        self._set_params("stages", **params)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Say who gets the arguments of ``fit``: the stages, the splitter."""
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        to_split = MethodMapping().add(caller="fit", callee="split")
        splitter = {_SPLITTER: find_asking_splitter(self.cv)}
        return (
            MetadataRouter(owner=self)
            .add(**dict(self.stages), method_mapping=to_fit)
            .add(**splitter, method_mapping=to_split)
        )

    def _sk_visual_block_(self) -> Any:
        return private_sklearn.show_side_by_side(*zip(*self.stages, strict=True))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with contextlib.suppress(AttributeError, TypeError, ValueError):  # stages are malformed
            inner = [get_tags(stage).input_tags for _, stage in self.stages]
            for name in ("sparse", "allow_nan", "string", "categorical"):
                taken_by_all = all(getattr(input_tags, name) for input_tags in inner)
                setattr(tags.input_tags, name, taken_by_all)
        return tags


def _check_stage(name: str, stage: Any) -> None:
    """Refuse a stage without probabilities, and one that abstains by itself."""
    check_has_fit(stage, f"stages: {name!r}")
    if not hasattr(stage, "predict_proba"):
        raise ValueError(
            f"stages: {name!r}, a {type(stage).__name__}, has no predict_proba; wrap it, "
            "SelectiveClassifier(classifier, calibration='temperature')."
        )
    abstainer, _ = find_abstainer(stage, None)
    if abstainer is not None and abstainer.abstains:
        raise ValueError(
            f"stages: {name!r} abstains by itself; pass it with threshold=None, and tune "
            "the threshold of the whole cascade."
        )
