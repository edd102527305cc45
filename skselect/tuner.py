"""Find the threshold from which on a classifier may decide alone."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import MetadataRouter, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, indexable

from skselect import _validation as check
from skselect import certificates
from skselect._fitting import fit_router, folds, holdout, is_ready, rows_of, wrap_fitted
from skselect._sklearn import routing_enabled, take_rows
from skselect._typing import FloatArray, IntArray, LabelArray
from skselect.certificates import Certificate, Doubt
from skselect.classifier import (
    AbstainingMixin,
    SelectiveClassifier,
    adopt_tags,
    codes_of,
    labels_of,
    task_classes,
    warn_if_fitted,
    was_fitted_on,
)
from skselect.goals import Goal
from skselect.outcomes import LOSSES, Outcomes
from skselect.policy import AbstentionPolicy
from skselect.predictions import Predictions
from skselect.selection import ThresholdSelection, pick, policy_facts


class ThresholdTuner(AbstainingMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Tune the threshold of an abstaining classifier, with a promise where one can be given.

    Parameters
    ----------
    estimator : classifier
        A plain classifier or a :class:`SelectiveClassifier`, whose own threshold is ignored.
        ``FrozenEstimator`` of a fitted one is used as it is: all rows given to ``fit`` then
        choose the threshold, and the certificate is exact if they are fresh.
    objective : str, default="cwsa_plus"
        ============================================  =======================================
        "cwsa_plus", "cwsa", "selective_accuracy"     best value at coverage >= `min_coverage`;
                                                      among equal ones the largest coverage
        "risk"                                        largest coverage whose selective risk is
                                                      certified to be at most `target`
        "generalized_risk"                            the same for the rate of silent failures
        "coverage"                                    highest threshold whose coverage is
                                                      certified to be at least `target`
        "cost"                                        cheapest threshold when abstaining costs
                                                      `target` errors
        ============================================  =======================================
    target : float, default=None
        As the objective says; none for a metric.
    delta : float in (0, 1), default=0.05
        Probability that a certificate fails.
    method : {"combined", "band", "empirical"}, default="combined"
        "combined" and "band" certify; "empirical" takes what the rows show and promises
        nothing. See :func:`select_threshold`.
    min_coverage : float in [0, 1] or "auto", default="auto"
        Smaller accepted sets are not considered. "auto": 0.5 for a metric, 0.1 for a
        certified risk, else 0.
    constraint : None
        Not available yet.
    loss : {"zero_one"} or callable, default="zero_one"
        How wrong an answer is. Certificates need losses of 0 or 1.
    group_by : None
        Not available yet.
    cv : int, splitter, iterable or float in (0, 1), default=5
        An integer or splitter: out-of-fold predictions choose the threshold. A float: one
        split, that share held out chooses it. Not used for a FrozenEstimator.
    refit : bool, default=True
        Fit the classifier on all rows afterwards. With a float `cv` and ``refit=False`` the
        classifier that saw the other rows is kept, and the certificate is exact.
    on_infeasible : {"raise", "abstain"}, default="raise"
        When no threshold meets the target: raise, or warn and accept nothing.
    abstain_label : label, default="auto"
        As in :class:`SelectiveClassifier`, whose own label counts unless one is named here.
    n_jobs : int, default=None
        Folds fitted at the same time.
    random_state : int, RandomState or None, default=None
        For the split of a float `cv`.

    Attributes
    ----------
    threshold_ : float
    thresholds_ : dict
        The thresholds by subgroup; ``{"all": threshold_}`` without subgroups.
    certificate_ : Certificate or None
        None where nothing is promised: metrics, cost, ``method="empirical"``.
    certificates_ : dict
        The certificates by subgroup.
    policy_ : AbstentionPolicy
        Calibration, threshold and certificate; ``policy_.to_json("policy.json")``.
    selection_ : ThresholdSelection
    curve_ : RiskCoverageCurve
        Of the rows that chose the threshold.
    cv_results_ : dict of ndarray
        Per fold: `n_rows`, `coverage` and `selective_risk` at the threshold.
    estimator_ : SelectiveClassifier
        Fitted, with the threshold.
    classes_ : ndarray of shape (K,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    See Also
    --------
    select_threshold : The same for a table of predictions.
    certify : Checks a fixed policy on fresh rows.

    Notes
    -----
    The certificate of a risk target holds for every threshold at once, so the choice among
    them is paid for: see :func:`skselect.bounds.combined_limits` and the guide on guarantees.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from skselect import ThresholdTuner
    >>> X, y = load_digits(return_X_y=True)
    >>> tuner = ThresholdTuner(RandomForestClassifier(random_state=0), objective="risk",
    ...                        target=.02, cv=.4, refit=False, random_state=0)
    >>> print(tuner.fit(X[:1500], y[:1500]).certificate_)
    CERTIFIED
    If future cases resemble these 600, then in 95 of 100 such calibrations at most 2 % of the
    cases it decides alone are wrong; not per subgroup, not per period.
    ...
    >>> tuner.decide(X[1500:1503])
       label  suggestion  accepted  confidence  threshold
    ...
    """

    def __init__(
        self,
        estimator: Any,
        *,
        objective: str = "cwsa_plus",
        target: float | None = None,
        delta: float = 0.05,
        method: str = "combined",
        min_coverage: float | str = "auto",
        constraint: Any = None,
        loss: Any = "zero_one",
        group_by: Any = None,
        cv: Any = 5,
        refit: bool = True,
        on_infeasible: str = "raise",
        abstain_label: Any = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.objective = objective
        self.target = target
        self.delta = delta
        self.method = method
        self.min_coverage = min_coverage
        self.constraint = constraint
        self.loss = loss
        self.group_by = group_by
        self.cv = cv
        self.refit = refit
        self.on_infeasible = on_infeasible
        self.abstain_label = abstain_label
        self.n_jobs = n_jobs
        self.random_state = random_state

    # Fitting -----------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **fit_params: Any
    ) -> ThresholdTuner:
        """Choose the threshold and fit the classifier.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), default=None
            For the classifier and for metric objectives. A certificate counts independent
            rows, so it refuses weights that are not all equal.
        groups : array-like of shape (n,), default=None
            For the splitter. Rows of one group are not independent, so a certificate is then
            not exact.
        **fit_params
            Passed on to the classifier's ``fit``.

        Returns
        -------
        self

        Raises
        ------
        InfeasibleTargetError
            If no threshold meets the target and ``on_infeasible="raise"``.
        ValueError
            If a parameter is malformed or does not fit the others.
        """
        goal = self._goal()
        check.check_has_fit(self.estimator)
        X, y = indexable(X, y)
        y = labels_of(y)
        check.check_trainable(len(y))
        weight = check.check_weight(sample_weight, len(y), other="y")
        if goal.promises:
            check.refuse_weights(weight, "a certificate", ", or use a metric objective")
        base, fitted = self._base()
        classes = base.classes_ if fitted else task_classes(base.estimator, y)
        base.set_params(abstain_label=check.check_abstain_label(base.abstain_label, classes))
        rows = _Rows(X, y, weight, *self._route(base, weight, groups, fit_params))

        frozen = fitted or is_ready(base.estimator)
        doubts: tuple[Doubt, ...] = () if groups is None else (certificates.GROUPED,)
        model: SelectiveClassifier | None
        if frozen and (fitted or base.calibration is None):
            model, parts = self._use_frozen(base, fitted, rows, classes)
            if goal.promises and was_fitted_on(self.estimator, X):
                doubts += (certificates.TRAINED_HERE,)
        elif isinstance(self.cv, float | np.floating):
            model, parts = self._hold_out(base, rows, classes)
            doubts += (certificates.REFITTED,) if self.refit else ()
        else:
            model, parts = self._cross_fit(base, rows, classes)
            doubts += (certificates.SAME_ROWS,) if frozen else (certificates.FOLD_MODELS,)
        predictions, fold = _pooled(parts, rows, classes)
        outcomes = Outcomes.from_predictions(predictions, loss=self.loss)
        selection = pick(outcomes, goal, doubts=doubts, bounded=base.confidence_is_bounded)
        if model is None:
            model = rows.fit(clone(base))
        self._keep(model, selection, predictions, outcomes, fold)
        return self

    def _goal(self) -> Goal:
        check.refuse_unavailable("constraint", self.constraint)
        check.refuse_unavailable("group_by", self.group_by)
        if not callable(self.loss):
            check.check_choice("loss", self.loss, LOSSES)
        if isinstance(self.cv, float | np.floating):
            check.check_number("cv", float(self.cv), 0.0, 1.0, closed="neither")
        return Goal.checked(
            self.objective,
            self.target,
            self.delta,
            self.method,
            self.min_coverage,
            self.on_infeasible,
        )

    def _base(self) -> tuple[SelectiveClassifier, bool]:
        """Return a SelectiveClassifier without threshold, and whether it is fitted already."""
        inner = getattr(self.estimator, "estimator", None)
        if isinstance(self.estimator, FrozenEstimator) and isinstance(inner, SelectiveClassifier):
            check_is_fitted(inner)
            base, fitted = copy.copy(inner), True
        elif isinstance(self.estimator, SelectiveClassifier):
            self._warn_if_trained_in_vain()
            base, fitted = clone(self.estimator), False
        else:
            if not isinstance(self.estimator, FrozenEstimator):
                warn_if_fitted(self.estimator)
            base, fitted = SelectiveClassifier(clone(self.estimator)), False
        base.set_params(threshold=None)
        if not (isinstance(self.abstain_label, str) and self.abstain_label == "auto"):
            base.set_params(abstain_label=self.abstain_label)
        return base, fitted

    def _warn_if_trained_in_vain(self) -> None:
        inner = self.estimator.estimator
        if hasattr(self.estimator, "estimator_"):
            warn_if_fitted(self.estimator)
        elif not isinstance(inner, FrozenEstimator):
            warn_if_fitted(inner)

    def _route(
        self,
        base: SelectiveClassifier,
        weight: FloatArray | None,
        groups: Any,
        fit_params: Mapping[str, Any],
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arguments of the wrapped estimator's `fit`, weights apart, and the splitter's.

        With metadata routing they keep their names, because the estimator routes them once more.
        """
        given = dict(fit_params) | ({} if groups is None else {"groups": groups})
        if not routing_enabled():
            return dict(fit_params), {} if groups is None else {"groups": groups}
        weighted = given if weight is None else given | {"sample_weight": weight}
        split = dict(process_routing(self, "fit", **weighted).splitter.split)
        wanted = base.get_metadata_routing().consumes("fit", list(given))
        return {name: given[name] for name in wanted if name in given}, split

    # Three ways to predictions of rows that the model has not seen -------------------------

    def _use_frozen(
        self, base: SelectiveClassifier, fitted: bool, rows: _Rows, classes: LabelArray
    ) -> tuple[SelectiveClassifier, list[_Part]]:
        model = base if fitted else rows.fit(base)
        everything = np.arange(len(rows.y))
        return model, [(everything, *_answers(model, rows.X, classes))]

    def _hold_out(
        self, base: SelectiveClassifier, rows: _Rows, classes: LabelArray
    ) -> tuple[SelectiveClassifier | None, list[_Part]]:
        groups = rows.split_params.get("groups")
        train, test = holdout(float(self.cv), len(rows.y), groups, self.random_state)
        model = rows.part(train).fit(clone(base))
        part = (test, *_answers(model, take_rows(rows.X, test), classes))
        return (None if self.refit else model), [part]

    def _cross_fit(
        self, base: SelectiveClassifier, rows: _Rows, classes: LabelArray
    ) -> tuple[None, list[_Part]]:
        if not self.refit:
            raise ValueError(
                "refit=False needs one fitted classifier to keep: use a float cv such as cv=0.3, "
                "or pass FrozenEstimator(fitted classifier)."
            )
        splits = list(folds(self.cv, rows.X, rows.y, rows.split_params))
        parts = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_part)(clone(base), rows, train, test, classes) for train, test in splits
        )
        return None, list(parts)

    def _keep(
        self,
        model: SelectiveClassifier,
        selection: ThresholdSelection,
        predictions: Predictions,
        outcomes: Outcomes,
        fold: IntArray,
    ) -> None:
        model.set_params(threshold=selection.threshold)
        facts = policy_facts(selection, outcomes)
        scores = certificates.scores_fingerprint(np.asarray(predictions.y_proba))
        prints = facts.pop("fingerprints") | {"model": scores}
        certificate = selection.certificate
        if certificate is not None:
            certificate = replace(certificate, fingerprints=prints)
        facts["certificate"] = certificate
        self.estimator_: SelectiveClassifier = model
        self.policy_: AbstentionPolicy = replace(model.policy_, fingerprints=prints, **facts)
        self.selection_ = replace(selection, certificate=certificate, policy=self.policy_)
        self.curve_ = selection.curve
        self.certificate_: Certificate | None = certificate
        self.certificates_ = {"all": certificate}
        self.thresholds_ = {"all": selection.threshold}
        self.cv_results_ = _per_fold(outcomes, fold, selection.threshold)

    # What was found ----------------------------------------------------------------------

    @property
    def classes_(self) -> LabelArray:
        """Class labels, in the order of the columns of ``predict_proba``."""
        return self._fitted().classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features, if the wrapped classifier counts them."""
        return self._fitted().n_features_in_

    @property
    def feature_names_in_(self) -> Any:
        """Names of the features, if the wrapped classifier has seen any."""
        return self._fitted().feature_names_in_

    def was_fitted_on(self, X: Any) -> bool:
        """Tell whether exactly these rows trained or calibrated its classifier (in any order)."""
        return self._fitted().was_fitted_on(X)

    def _fitted(self) -> SelectiveClassifier:
        check_is_fitted(self)
        return self.estimator_

    @property
    def threshold_(self) -> float:
        """The chosen threshold."""
        check_is_fitted(self)
        return self.policy_.threshold

    @property
    def abstains(self) -> bool:
        """Whether it has a threshold; always."""
        return True

    def _policy_and_scores(self, X: Any) -> tuple[AbstentionPolicy, FloatArray]:
        check_is_fitted(self)
        _, scores = self.estimator_._policy_and_scores(X)  # noqa: SLF001 - same family
        return self.policy_, scores

    # scikit-learn ------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "policy_")

    def __sklearn_tags__(self) -> Any:
        return adopt_tags(super().__sklearn_tags__(), self.estimator)

    def get_metadata_routing(self) -> MetadataRouter:
        """Say who gets the arguments of ``fit``: this estimator, the classifier, the splitter."""
        return fit_router(self)


# Rows and folds --------------------------------------------------------------------------------

#: Rows, with the probabilities and the confidence of a model that did not see them.
_Part = tuple[IntArray, FloatArray, FloatArray]


class _Rows:
    """Rows to learn from, with everything that has one entry per row."""

    def __init__(
        self,
        X: Any,
        y: LabelArray,
        weight: FloatArray | None,
        params: Mapping[str, Any],
        split_params: Mapping[str, Any],
    ) -> None:
        self.X, self.y, self.weight = X, y, weight
        self.params, self.split_params = params, split_params

    def part(self, rows: IntArray) -> _Rows:
        """Return some of the rows."""
        n = len(self.y)
        weight = None if self.weight is None else self.weight[rows]
        params, split_params = (rows_of(p, rows, n) for p in (self.params, self.split_params))
        return _Rows(take_rows(self.X, rows), self.y[rows], weight, params, split_params)

    def fit(self, model: SelectiveClassifier) -> SelectiveClassifier:
        """Fit a model on the rows; groups also keep its calibration folds apart."""
        params = dict(self.params)
        if model.calibration is not None and not routing_enabled():
            params |= self.split_params
        return model.fit(self.X, self.y, sample_weight=self.weight, **params)


def _fit_part(
    model: SelectiveClassifier, rows: _Rows, train: IntArray, test: IntArray, classes: LabelArray
) -> _Part:
    fitted = rows.part(train).fit(model)
    return test, *_answers(fitted, take_rows(rows.X, test), classes)


def _answers(
    model: SelectiveClassifier, X: Any, classes: LabelArray
) -> tuple[FloatArray, FloatArray]:
    """Return probabilities, with a column also for a class the fold lacked, and confidence."""
    decisions = model.judge(X)
    proba = wrap_fitted(model, classes).spread(decisions.y_proba, 0.0)
    if model.calibrates_confidence:  # its map was fitted to a confidence among its own classes
        return proba, decisions.confidence
    return proba, model.policy_.confidence_of(proba)


def _pooled(parts: list[_Part], rows: _Rows, classes: LabelArray) -> tuple[Predictions, IntArray]:
    """Return the predictions of all parts together, and the fold of each row."""
    tests, probas, confidences = zip(*parts, strict=True)
    order, proba = np.concatenate(tests), np.concatenate(probas)
    fold = np.repeat(np.arange(len(parts)), [len(test) for test in tests])
    predictions = Predictions(
        y_true=codes_of(rows.y[order], classes),
        y_pred=proba.argmax(axis=1),
        classes=classes,
        y_proba=proba,
        confidence=np.concatenate(confidences),
        sample_weight=None if rows.weight is None else rows.weight[order],
    )
    return predictions, fold


def _per_fold(outcomes: Outcomes, fold: IntArray, threshold: float) -> dict[str, Any]:
    """Return rows, coverage and selective risk (nan when nothing is accepted) of each fold."""
    weight, accepted = outcomes.weight, outcomes.confidence >= threshold
    n_rows = np.bincount(fold)
    total = np.bincount(fold, weights=weight)
    kept = np.bincount(fold, weights=weight * accepted)
    lost = np.bincount(fold, weights=weight * accepted * outcomes.loss)
    nothing = np.full(len(n_rows), np.nan)
    return {
        "n_rows": n_rows,
        "coverage": np.divide(kept, total, out=nothing.copy(), where=total > 0),
        "selective_risk": np.divide(lost, kept, out=nothing, where=kept > 0),
    }
