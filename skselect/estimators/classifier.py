"""A classifier that may abstain."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, indexable

from skselect._lib.arrays import BoolArray, IntArray, LabelArray, trusted
from skselect._lib.checks import options as option_checks, rows as row_checks, shown, warn_user
from skselect._lib.decide import CONFIDENCES
from skselect._lib.sklearn import (
    CallbackSupportMixin,
    DescribedMixin,
    count_rows,
    take_rows,
    with_callbacks,
)
from skselect.calibration._calibrators import CALIBRATORS, calibrator_name
from skselect.calibration._choice import RawRows, fit_calibration
from skselect.calibration._scopes import SCOPES, Calibration
from skselect.estimators import base
from skselect.estimators.groups import check_groups, refuse_mixed_folds
from skselect.estimators.interfaces import ConfidenceLearner
from skselect.estimators.out_of_fold import (
    CHECKED_IN_FOLD,
    LEAST_HELD_OUT,
    OutOfFold,
    Splits,
    are_partition,
    check_cv,
    check_weighted_part,
    find_known_rows,
    find_splitter,
    make_folds,
    naming_single_class,
    predict_folds,
    read_splits,
    score_rows,
)
from skselect.estimators.raw_classifier import (
    MOST_CHECKED,
    Fits,
    FitTask,
    RawClassifier,
    TrainingRows,
    check_trainable,
    find_inner,
    is_ready,
    route_fit,
    run,
    some_of,
    spread,
    wrap_fitted,
)
from skselect.policy.certificate import now
from skselect.policy.policy import AbstentionPolicy, Decisions, apply_policy
from skselect.policy.seen_rows import SeenRows
from skselect.predictions.confidence import ANSWER_CONFIDENCES, confidence_of_answers
from skselect.predictions.decisions import DECISIONS, DecisionRule


class SelectiveClassifier(
    base.AbstainingMixin,
    ClassifierMixin,
    MetaEstimatorMixin,
    CallbackSupportMixin,
    DescribedMixin,
    BaseEstimator,
):
    """Add abstention and calibrated probabilities to any classifier.

    Most calls need only `estimator` and `calibration`; :class:`ThresholdTuner` finds the threshold.
    With its defaults it never abstains and predicts as the wrapped classifier does.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skselect import SelectiveClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SelectiveClassifier(GaussianNB(), calibration="platt", threshold=0.9)
    >>> model.fit(X[:400], y[:400]).predict(X[400:408])  # doctest: +DIGITS_VARY
    array([ 0,  1,  1,  1,  1,  1, -1,  1])

    Parameters
    ----------
    estimator : classifier
        Anything with ``fit`` and ``predict_proba``; ``decision_function`` is enough once a
        calibration is chosen. ``FrozenEstimator(fitted)`` is not fitted again: the rows given
        to ``fit`` then fit the calibration only.
    calibration : {None, "auto", "platt", "temperature", "beta", "smooth_isotonic", "venn_abers", \
"isotonic"} or calibrator, default=None
        How raw scores are calibrated. "auto" is recommended: of "temperature", "platt" and
        "smooth_isotonic" (of the first and the last for the scope "confidence") it takes the
        one with the lowest log loss on rows of other folds than those that fit it, the first of
        equals; `calibration_` says which, by its `kind`. "sigmoid" is "platt". One map for
        two classes, else one per class with rows rescaled to sum to one ("temperature": one for
        all). Only "isotonic" reaches exactly 0 and 1, where a single error makes CSR explode. Your
        own calibrator is a scikit-learn estimator with ``fit(score, y, sample_weight)``
        and ``predict(score)``; it gets log-odds if its attribute `reads_log_odds` is true.
    calibration_scope : {"probabilities", "confidence"}, default="probabilities"
        What is calibrated: the class probabilities, or the confidence alone. "confidence"
        learns P(correct | confidence) with one increasing map: ``predict_proba`` and the
        answers do not change, and rows keep their order of confidence except for new ties.
    cv : int, splitter or iterable, default=5
        Folds of the out-of-fold predictions that fit the calibration; the classifier is then
        fitted on all rows. An integer makes fewer folds where there are fewer groups, or fewer
        rows of each class. Rows that are never tested (``TimeSeriesSplit``, a single split
        ``[(train, test)]`` as in ThresholdTuner) do not fit the calibration. A row whose class no
        training row of its fold has is left out, with a warning; losing most rows of a class is
        an error.
        For a FrozenEstimator only used by ``calibration="auto"``, which needs two folds.
    random_state : int, RandomState or None, default=None
        For the folds of an integer `cv`, whose rows are shuffled. None: others at each call of
        `fit`.
    threshold : float or None, default=None
        Rows with confidence >= threshold are accepted. None never abstains, inf always.
        ``set_params(threshold=...)`` counts at once, without another ``fit``.
    confidence : str, callable or LearnedConfidence, default="auto"
        How sure the classifier is of each row. Computed from the (calibrated) probabilities p:
        "max_proba", the largest; "margin", its lead over the second; "entropy", 1 - H(p)/log K;
        "gini", (K sum p^2 - 1)/(K - 1). Or, for the answer alone, "chosen_proba" or
        "expected_cost" (one minus the expected over the largest cost). "auto" follows the
        `decision`: "max_proba" for "argmax", "chosen_proba" for "estimator", "expected_cost" for
        "min_cost". The named ones lie in [0, 1]; a callable maps (n, K) probabilities to n finite
        numbers. :class:`LearnedConfidence` learns how likely the answer is right, also by asking
        other models.
    decision : {"argmax", "estimator", "min_cost"}, default="argmax"
        The answer: the most probable class, the classifier's own answer, or the class of the least
        expected cost. Its own is that of ``predict``, with a tuned cut-off inside it.
    cost_matrix : array-like of shape (K, K), DataFrame or dict, default=None
        What each answer costs, in your own units: rows are true classes, columns answers, in the
        order of the classes. A DataFrame is matched by name; a dict is ``{true class: {answer:
        cost}}``, where a right answer costs 0 unless it says so.
    abstain_label : label, default="auto"
        What ``predict`` returns for a row that is not accepted. "auto": -1 for numbers and
        booleans, "abstain" for strings; where that is a class, the next lower whole number, or
        ``"abstain_"``. Without negative numbers (unsigned labels) it is the number after the
        largest class. ``policy_.abstain_label`` says which. Once it can abstain, ``predict``
        returns booleans as 0 and 1, which scikit-learn's metrics can compare with False and True.
    n_jobs : int, default=None
        Folds of `cv` fitted at the same time.
    verbose : int, default=0
        Print how many fits there will be, and the time of each. From scikit-learn 1.9 on
        ``set_callbacks(ProgressBar())`` shows bars instead (``sklearn.callback``).

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    estimator_ : classifier
        The fitted classifier.
    calibration_ : ClassCalibration, ConfidenceCalibration or None
    confidence_ : LearnedConfidence or None
        The fitted one, where `confidence` is one; ``confidence_.report_`` says what it gains.
    n_features_in_ : int
        If the wrapped classifier has it.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        If the wrapped classifier has it.

    See Also
    --------
    ThresholdTuner : Finds the threshold.

    Notes
    -----
    The classifier is fitted once without a calibration, and once per fold more with one: 6 times
    with ``cv=5``.

    With ``decision="argmax"`` a classifier whose own ``predict`` differs from the class of the
    largest probability is refused: its confidence would not belong to its answer. Choose
    ``decision="estimator"`` for it. A tuned cut-off inside it and ``SVC(probability=True)``, whose
    probabilities are fitted apart from its answers, are recognised by their type.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        calibration: Any = None,
        calibration_scope: str = "probabilities",
        cv: Any = 5,
        random_state: Any = None,
        threshold: float | None = None,
        confidence: Any = "auto",
        decision: str = "argmax",
        cost_matrix: Any = None,
        abstain_label: Any = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.calibration = calibration
        self.calibration_scope = calibration_scope
        self.cv = cv
        self.random_state = random_state
        self.threshold = threshold
        self.confidence = confidence
        self.decision = decision
        self.cost_matrix = cost_matrix
        self.abstain_label = abstain_label
        self.n_jobs = n_jobs
        self.verbose = verbose

    #: What models of its folds said of the rows of `fit`, until its caller has used it.
    _unseen: OutOfFold | None = None

    # Fitting -----------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any
    ) -> SelectiveClassifier:
        """Fit the classifier and, if chosen, its calibration.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)
            Features. Passed on to the classifier untouched.
        y : array-like of shape (n,)
            True labels. Numbers, strings or booleans.
        sample_weight : array-like of shape (n,), default=None
            How often each row counts. For the classifier and the calibration.
        **fit_params
            Passed on to the classifier's ``fit``. ``groups`` goes to the splitter (an integer `cv`
            keeps groups together). A part inside that makes folds of its own gets them by
            scikit-learn's metadata routing; where they do not reach it, they are refused.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is malformed, the abstain label is one of the classes, or the
            classifier takes no weights, has no scores, or does not predict the class of the
            largest probability.
        """
        self._check_parameters()
        option_checks.check_has_fit(self.estimator)
        X, y = indexable(X, y)
        y = check_y(y)
        if not self._is_frozen:
            check_trainable(len(y))
            warn_if_fitted(self.estimator)
        rows = make_rows(self, X, y, sample_weight, fit_params)
        self._find_label(rows.classes)  # before anything is trained
        self._fit_checked(rows)
        self._record(rows)
        self._unseen = None  # a tuner alone needs it
        return self

    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit_checked(
        self, rows: TrainingRows, scored: OutOfFold | None = None, n_checked: int = MOST_CHECKED
    ) -> SelectiveClassifier:
        """Fit to checked rows with checked parameters; the tuner calls it for each fold.

        `scored` is what models of its own folds have said of the rows already. The answers to
        `n_checked` rows are compared with the probabilities.
        """
        learns = self._learns and len(rows.classes) > 1
        fits = Fits(self, rows.X, rows.y)
        splits: Splits = []
        if learns and not scored:
            splits = self._folds(rows)
        n_fits = 0 if self._is_frozen else 1 + len(splits)
        whole, *each_fold = fits.begin(n_fits, before_folds=["all rows"], n_folds=len(splits))
        raw = rows.fit(self.estimator, whole)
        own_scores = self._check_scores(rows, raw, n_checked)
        self.calibration_: Calibration | None = None
        self.confidence_: Any = None
        self._unseen = None
        if not self._is_frozen:
            cascade = base.find_cascade(raw.estimator)
            self._unseen = getattr(cascade, "_unseen", None)
        if learns:
            self._unseen = self._learn(rows, scored or own_scores, splits, each_fold)
        self.estimator_ = raw.estimator
        self._raw_classifier = raw
        self._confidence_at_fit = self.confidence_in_use
        self._created = now()
        fits.end()
        return self

    def _record(self, rows: TrainingRows) -> None:
        """Record the rows that have taught a model that is kept, and how many each class has."""
        is_taught = not self._is_frozen or self._learns
        self._seen_rows = SeenRows.of(rows.X) if is_taught else None
        counts = np.bincount(rows.codes, minlength=len(rows.classes))
        self._class_counts = counts[np.isin(rows.classes, self.classes_)] if is_taught else None

    def _count_fits(self, rows: TrainingRows) -> int:
        """Return how often fitting to these rows fits the classifier."""
        if self._is_frozen or not self._learns or len(rows.classes) < 2:
            return int(not self._is_frozen)
        splitter = find_splitter(self.cv, rows.y, rows.split_params)
        return 1 + int(splitter.get_n_splits(rows.X, rows.y, **rows.split_params))

    def _folds(self, rows: TrainingRows) -> Splits:
        """Return the folds whose predictions fit the calibration and the learned confidence."""
        if not self._makes_folds:
            return []
        learns_confidence = isinstance(self.confidence, ConfidenceLearner)
        # No model of a frozen classifier's folds can lack a class.
        find_folds = read_splits if self._is_frozen and not learns_confidence else make_folds
        return find_folds(self.cv, rows, rows.split_params, self.random_state)

    @property
    def _makes_folds(self) -> bool:
        """Whether its fit divides the rows into folds."""
        if self._is_frozen:
            return self.calibration == "auto" or isinstance(self.confidence, ConfidenceLearner)
        return self._learns

    def _refuse_mixed_folds(self, fit_params: Mapping[str, Any]) -> None:
        """Refuse groups that do not reach a part inside which makes folds."""
        refuse_mixed_folds(self.cv, self.estimator, fit_params)
        learner = self.confidence
        if isinstance(learner, ConfidenceLearner):
            refuse_mixed_folds(self.cv, learner.auxiliary, fit_params)
            refuse_mixed_folds(self.cv, learner.estimator, fit_params, are_routed=False)

    @property
    def _is_frozen(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator)

    def _check_response(self, response: str, classes: LabelArray) -> None:
        """Refuse a classifier without probabilities, unless its decision values are calibrated."""
        if response == "predict_proba":
            return
        lacks = f"{type(self.estimator).__name__} has no predict_proba"
        row_checks.check_more_classes(classes, f"{lacks}, and nothing can be calibrated")
        if self.calibration is None:
            raise ValueError(
                f"estimator: {lacks}; choose calibration='temperature' to turn its decision "
                "values into probabilities."
            )
        option_checks.check_scope(self.calibration_scope, response, self.estimator)

    def _check_scores(self, rows: TrainingRows, raw: RawClassifier, n_checked: int) -> OutOfFold:
        """Return what is said of the rows; refuse a classifier whose answers do not fit them."""
        self._check_response(raw.response, rows.classes)
        scored_rows = np.arange(len(rows.codes))
        X = rows.X
        # The own scores of a classifier that is fitted here teach nothing: some are enough.
        if not self._is_frozen and len(scored_rows) > n_checked:
            scored_rows = some_of(scored_rows, n_checked)
            X = take_rows(X, scored_rows)
        scores, stage = raw.ask(X)
        raw.check_decision(X, scores, rows.rule.decision)
        return OutOfFold.of(rows, scored_rows, scores=scores, response=raw.response, stage=stage)

    @property
    def _learns(self) -> bool:
        """Whether it learns from rows that the classifier has not seen."""
        return self.calibration is not None or isinstance(self.confidence, ConfidenceLearner)

    def _learn(
        self, rows: TrainingRows, own_scores: OutOfFold, splits: Splits, tasks: list[FitTask]
    ) -> OutOfFold:
        """Fit the calibration and the learned confidence; return the rows that fitted them."""
        auxiliary = {}
        if isinstance(self.confidence, ConfidenceLearner):
            self.confidence_ = clone(self.confidence)
            auxiliary = self.confidence_._find_auxiliary(self.estimator, rows.X)
        unseen = own_scores
        if splits:
            unseen = self._score_unseen(rows, splits, tasks, auxiliary)
        if self.calibration is not None:
            self.calibration_ = self._calibrate(rows, unseen)
        if self.confidence_ is not None:
            self.confidence_._learn(auxiliary, rows, unseen, self.calibration_)
            columns = {
                name: values[unseen.rows]
                for name, values in self.confidence_._read_columns(rows.X).items()
            }
            unseen = replace(unseen, auxiliary={**unseen.auxiliary, **columns})
        return unseen

    def _score_unseen(
        self, rows: TrainingRows, splits: Splits, tasks: list[FitTask], auxiliary: dict[str, Any]
    ) -> OutOfFold:
        """Return what models of the folds say of the rows, in the order of these."""
        wants_answers = self.confidence_ is not None and rows.rule.decision == "estimator"
        score = partial(
            score_rows, estimator=self.estimator, own_answers=wants_answers, auxiliary=auxiliary
        )
        unseen = predict_folds(score, rows, splits, self.n_jobs, tasks)
        unseen = unseen.take(np.argsort(unseen.rows))
        if self._is_frozen and self.confidence_ is None:
            return unseen
        knows_class = find_known_rows(splits, rows.codes)[unseen.rows]
        option_checks.warn_unseen(knows_class, unseen.codes, "they are left out of the calibration")
        return unseen.take(knows_class)

    def _decide_unseen(self) -> OutOfFold | None:
        """Return out-of-fold rows of the fit, as it would rate them now, None where there are none.

        They have fitted the calibration and the learned confidence.
        """
        unseen = self._unseen
        policy = self._make_policy()
        if unseen is None or (unseen.y_pred is None and self.decision == "estimator"):
            return None
        decisions = apply_policy(
            policy, unseen.scores, unseen.y_pred, auxiliary_proba=unseen.auxiliary
        )
        return replace(unseen, **_fields_of(decisions))

    def _calibrate(self, rows: TrainingRows, unseen: OutOfFold) -> Calibration:
        """Fit the calibration to raw scores of rows that the classifier did not see."""
        raw_rows = RawRows(
            unseen.response,
            unseen.scores,
            unseen.codes,
            len(rows.classes),
            unseen.weight,
            self.confidence_in_use,
        )
        return fit_calibration(self.calibration, self.calibration_scope, raw_rows, unseen.fold)

    # Out of fold, for the tuner -------------------------------------------------------------

    def _decide_folds(
        self, rows: TrainingRows, splits: Splits, n_jobs: int | None, fits: Fits
    ) -> tuple[OutOfFold, OutOfFold | None]:
        """Decide every tested row by a model that did not see it.

        Return the raw scores as well where they also serve the calibration of the refit.
        """
        known = find_known_rows(splits, rows.codes)
        option_checks.warn_unseen(known, rows.codes, "they count as wrong answers")
        n_folds = len(splits)
        n_final = self._count_fits(rows)
        shared, again = self._share_folds(rows, splits)
        n_fits_of_folds = n_folds if shared else n_folds * n_final
        n_fits_of_refit = 1 if again else n_final
        n_fits = n_fits_of_refit + n_fits_of_folds
        *tasks, _ = fits.begin(
            n_fits, n_folds=n_folds, after_folds=["all rows"]
        )  # the last is the refit
        if not shared:
            return predict_folds(self._decide_fold, rows, splits, n_jobs, tasks), None
        scored = predict_folds(self._score_fold, rows, splits, n_jobs, tasks)
        decided = self._calibrate_folds(rows, scored)
        if not again:
            return decided, None
        return decided, scored.take(np.argsort(scored.rows))

    def _score_fold(self, training: TrainingRows, X: Any, task: FitTask | None) -> dict[str, Any]:
        decision = training.rule.decision
        fields = score_rows(
            training,
            X,
            task,
            estimator=self.estimator,
            decision=decision,
            own_answers=decision == "estimator",
        )
        self._check_response(fields["response"], training.classes)
        return fields

    def _decide_fold(self, training: TrainingRows, X: Any, task: FitTask | None) -> dict[str, Any]:
        with row_checks.silence_repeats():  # the fit on all rows warns
            model = self._fit_clone(training, task, n_checked=CHECKED_IN_FOLD)
        return self._decide_by(model, training, X)

    def _share_folds(self, rows: TrainingRows, splits: Splits) -> tuple[bool, bool]:
        """Tell whether the folds of the threshold serve the calibration too, and that of the refit.

        They and those of the calibration must each be a partition of the rows, where no fold comes
        before another, and each model must know all classes. A learned confidence has too many
        parameters to share them. A choice among calibrations compares two other folds or more. The
        refit would take the same folds, or as many that chance draws. Without a calibration the
        scores of the folds are all that is needed, unless least costs lack a class.
        """
        n_rows = len(rows.codes)
        learns_confidence = isinstance(self.confidence, ConfidenceLearner)
        if self.calibration is None and not learns_confidence:
            if self.decision != "min_cost":
                return True, False
            n_known = [len(np.unique(rows.codes[train])) for train, _ in splits]
            return min(n_known) == len(rows.classes), False
        n_least = 3 if self.calibration == "auto" else 2
        if learns_confidence or is_ready(self.estimator) or len(splits) < n_least:
            return False, False
        if not (are_partition(splits, n_rows) and np.all(find_known_rows(splits, rows.codes))):
            return False, False
        is_number = isinstance(self.cv, numbers.Integral)
        is_seeded = isinstance(self.random_state, numbers.Integral)
        is_grouped = rows.split_params.get("groups") is not None  # chance keeps no group together
        if is_number and not (is_seeded or is_grouped):
            return True, self.cv == len(splits)
        own_splits = self._folds(rows)
        if not (self.cv is None or is_number or are_partition(own_splits, n_rows)):
            return False, False
        return True, _are_same(own_splits, splits)

    def _calibrate_folds(self, rows: TrainingRows, scored: OutOfFold) -> OutOfFold:
        """Decide each fold by the calibration, if any, fitted to what the others say of theirs."""
        decided = []
        for k in np.unique(scored.fold):
            fold = scored.take(scored.fold == k)
            calibration = None
            if self.calibration is not None:
                with row_checks.silence_repeats():  # the fit on all rows warns
                    calibration = self._calibrate(rows, scored.take(scored.fold != k))
            policy = AbstentionPolicy(
                rows.classes,
                threshold=0.0,
                confidence=self.confidence_in_use,
                calibration=calibration,
                response=fold.response,
                rule=rows.rule,
            )
            decisions = apply_policy(policy, fold.scores, fold.y_pred, stage=fold.stage)
            decided.append(replace(fold, response="predict_proba", **_fields_of(decisions)))
        return OutOfFold.join(decided)

    def _decide_held_out(
        self, rows: TrainingRows, splits: Splits, cv: str, fits: Fits, *, is_final: bool
    ) -> tuple[SelectiveClassifier, OutOfFold]:
        """Fit on some rows and decide others; `cv` is its name, `is_final`: there is no refit."""
        ((train, test),) = splits
        self._check_held_out(rows, splits, cv, is_final=is_final)
        after_folds = [] if is_final else ["all rows"]
        n_fits = (1 + len(after_folds)) * self._count_fits(rows)
        task, *_ = fits.begin(
            n_fits, before_folds=["the rows not held out"], after_folds=after_folds
        )
        training = rows.take(train)
        with naming_single_class(training, f"the training part of {cv}"):
            if is_final:
                model = self._fit_clone(training, task)
            else:
                with row_checks.silence_repeats():  # the fit on all rows warns
                    model = self._fit_clone(training, task)
        model._record(training)
        fields = self._decide_by(model, rows, take_rows(rows.X, test), is_final=is_final)
        return model, OutOfFold.of(rows, test, **fields)

    def _check_held_out(
        self, rows: TrainingRows, splits: Splits, cv: str, *, is_final: bool
    ) -> None:
        """Refuse a split of which a part is too small; warn of classes that are all held out."""
        ((train, test),) = splits
        if len(test) < LEAST_HELD_OUT:
            raise ValueError(
                f"{cv} holds out {len(test)} of {len(rows.codes)} rows, but a threshold needs at "
                f"least {LEAST_HELD_OUT}. Hold out a larger share, or pass cv=5, which uses every "
                "row."
            )
        check_weighted_part(rows.weight, train, f"the training part of {cv}")
        check_weighted_part(rows.weight, test, f"the part that {cv} holds out")
        knows_class = find_known_rows(splits, rows.codes)
        if not is_final:
            option_checks.warn_unseen(knows_class, rows.codes, "they count as wrong answers")
        elif not np.all(knows_class):
            _warn_of_unknown_classes(cv, rows, knows_class)

    def _fit_clone(
        self,
        rows: TrainingRows,
        task: FitTask | None = None,
        scored: OutOfFold | None = None,
        n_checked: int = MOST_CHECKED,
    ) -> SelectiveClassifier:
        """Fit a clone, whose parameters were checked, to rows that may lack some classes."""
        model = clone(self)
        if not self._is_frozen:
            check_trainable(len(rows.codes))
        present = np.unique(rows.codes)
        if len(present) < len(rows.classes) and not is_ready(model.estimator):
            rows = replace(
                rows,
                classes=rows.classes[present],
                codes=np.searchsorted(present, rows.codes),
                rule=_leave_out_costs(model, rows.rule, present),
            )
        with run(task, model, rows.X, rows.y):
            model._fit_checked(rows, scored, n_checked)
        return model

    def _decide_by(
        self, model: SelectiveClassifier, rows: TrainingRows, X: Any, *, is_final: bool = False
    ) -> dict[str, Any]:
        """Return what a fitted clone decides, also where its training rows lacked a class.

        The confidence of such a model is computed among all classes, as that of the final one
        will be; `is_final`: this model is the final one.
        """
        decisions = apply_policy(model._make_policy(), *model._read_rows(X))
        fields = _fields_of(decisions)
        n_classes = len(rows.classes)
        if len(model.classes_) == n_classes:
            return fields
        columns = np.flatnonzero(np.isin(rows.classes, model.classes_))
        proba = spread(decisions.y_proba, columns, n_classes, 0.0)
        y_pred = columns[decisions.y_pred]
        confidence = decisions.confidence
        # What was fitted to errors does not change.
        is_fitted = model.calibrates_confidence or isinstance(self.confidence, ConfidenceLearner)
        if not (is_final or is_fitted):
            confidence = confidence_of_answers(proba, y_pred, self.confidence_in_use, rows.rule)
        return fields | {"scores": proba, "y_pred": y_pred, "confidence": confidence}

    # Parameters ----------------------------------------------------------------------------

    _parameters: ClassVar[dict[str, Any]] = {
        "decision": DECISIONS,
        "calibration": partial(option_checks.check_calibration, calibrators=[*CALIBRATORS, "auto"]),
        "calibration_scope": SCOPES,
        "cv": check_cv,
    }

    def _check_parameters(self) -> None:
        """Refuse parameters that are malformed or contradict each other."""
        option_checks.check_parameters(self, self._parameters)
        option_checks.check_has_costs(self.decision, self.cost_matrix)
        self._check_confidence()
        if self.threshold is not None:
            threshold = option_checks.check_threshold(self.threshold)
            if self._confidence_is_bounded and 1 < threshold < np.inf:
                raise ValueError(
                    f"threshold={self.threshold!r} can never be reached, because "
                    f"confidence={self.confidence_in_use!r} lies in [0, 1]. Write 80 % as 0.8; to "
                    "accept nothing on purpose, pass inf."
                )
        if self.calibration_scope == "confidence" and self.decision != "argmax":
            raise ValueError(
                "calibration_scope='confidence' learns how often the most probable class is right, "
                f"but decision={self.decision!r} may choose another class; use 'probabilities'."
            )
        confidence = self.confidence_in_use
        if not self.calibrates_confidence or confidence == "max_proba":
            return
        if calibrator_name(self.calibration) == "temperature":
            raise ValueError(
                "calibration='temperature' keeps the confidence 1/2 where it is, which only means "
                f"something for confidence='max_proba', got confidence={confidence!r}. With "
                "calibration_scope='confidence' use 'smooth_isotonic', 'venn_abers' or 'platt'."
            )

    def _check_confidence(self) -> None:
        """Refuse a confidence that is unknown, or does not fit how answers are chosen."""
        confidence = self.confidence_in_use
        if isinstance(confidence, ConfidenceLearner):
            option_checks.check_learnable(self.decision)
            if self.calibration_scope == "confidence":
                raise ValueError(
                    "confidence=LearnedConfidence(...) is itself fitted to how often answers are "
                    "right; use calibration_scope='probabilities', which calibrates what it reads."
                )
        elif isinstance(confidence, type) or not callable(confidence):
            known = ["auto", *CONFIDENCES, *ANSWER_CONFIDENCES]
            option_checks.check_choice("confidence", confidence, known)
            option_checks.check_confidence_fits(confidence, self.decision, self.cost_matrix)

    def _find_label(self, classes: LabelArray) -> Any:
        """Return the abstain label; None for a classifier that never abstains."""
        if self.threshold is None:
            return None
        return option_checks.check_abstain_label(self.abstain_label, classes)

    # What the fitted classifier knows ------------------------------------------------------

    def _find_records(self, X: Any) -> list[tuple[SeenRows, Any] | None]:
        records: list[tuple[SeenRows, Any] | None] = []
        record = getattr(self, "_seen_rows", None)
        if record is not None:
            records.append((record, X))
        models = [getattr(self, "estimator_", self.estimator)]
        learner = getattr(self, "confidence_", None)
        if learner is not None:
            models += [model.estimator for model in learner.auxiliary_.values()]
            records += [None] * len(base.find_frozen(learner.estimator))  # it gets features, not X
        for model in models:
            # What is fitted here is fitted to the rows of the record.
            if base.find_frozen(model):
                records += base.find_records(model, X)
        return records

    # The decision inside -----------------------------------------------------------------

    @property
    def confidence_in_use(self) -> Any:
        """The parameter `confidence`, with "auto" replaced by the default of the decision."""
        if isinstance(self.confidence, str) and self.confidence == "auto":
            return DecisionRule(self.decision).default_confidence
        return self.confidence

    @property
    def _confidence_is_bounded(self) -> bool:
        """Whether the confidence lies in [0, 1]; a function may return any number."""
        return self.calibrates_confidence or not callable(self.confidence)

    @property
    def calibrates_confidence(self) -> bool:
        """Whether the confidence alone is calibrated, and not the probabilities."""
        return self.calibration is not None and self.calibration_scope == "confidence"

    @property
    def abstains(self) -> bool:
        """Whether it has a threshold at all."""
        return self.threshold is not None

    @property
    def policy_(self) -> AbstentionPolicy:  # type: ignore[override]
        """The decision as a frozen object that can be saved without the classifier.

        It follows the parameters, also those that have changed since ``fit``.
        """
        self._check_parameters()
        return self._make_policy()

    def _make_policy(self) -> AbstentionPolicy:
        """Return the policy where parameters were checked, as those of a fold's model."""
        raw = self._raw()
        cascade = base.find_cascade(raw.estimator)
        rule = DecisionRule.checked(self.decision, self.cost_matrix, raw.classes)
        threshold = self.threshold
        if threshold is None:
            threshold = 0.0 if self._confidence_is_bounded else -np.inf
        return trusted(
            AbstentionPolicy,
            classes=raw.classes,
            threshold=float(threshold),
            confidence=self._find_confidence(rule),
            rule=rule,
            calibration=getattr(self, "calibration_", None),
            response=raw.response,
            abstain_label=self._find_label(raw.classes),
            metadata={"classifier": type(find_inner(self.estimator)).__name__},
            cascade=None if cascade is None else cascade.cascade_,
            created=getattr(self, "_created", None) or now(),
        )

    def _find_confidence(self, rule: DecisionRule) -> Any:
        """Return the confidence of the policy: what was learnt, where it is used."""
        confidence = self.confidence_in_use
        learns = isinstance(confidence, ConfidenceLearner)
        is_fitted = learns or self.calibrates_confidence
        if is_fitted and confidence != getattr(self, "_confidence_at_fit", None):
            raise ValueError("confidence is not the one that fit has learnt with; call fit again.")
        if not learns:
            return confidence
        if self.confidence_ is None or self.confidence_.score_ is None:
            return rule.default_confidence
        return self.confidence_.score_

    def _raw(self) -> RawClassifier:
        if hasattr(self, "_raw_classifier"):
            return self._raw_classifier
        if self._is_frozen and not self._learns:
            return wrap_fitted(self.estimator, frozen_classes(self.estimator))
        raise NotFittedError(
            "This SelectiveClassifier is not fitted yet. Call fit(X, y) first, or wrap a fitted "
            "classifier in FrozenEstimator (without calibration)."
        )

    def _read_rows(self, X: Any) -> base.RawScores:
        raw = self._raw()
        if count_rows(X) == 0:  # one message, whichever classifier is wrapped
            raise ValueError(
                f"Found array with 0 sample(s) (shape={getattr(X, 'shape', (0,))}) while a minimum "
                f"of 1 is required by {type(self).__name__}."
            )
        scores, stage = raw.ask(X)
        if not hasattr(self, "_raw_classifier"):
            raw.check_decision(X, scores, self.decision)  # not checked yet: fit was not called
        y_pred = raw.predict_codes(X) if self.decision == "estimator" else None
        auxiliary = {}
        if isinstance(self.confidence, ConfidenceLearner) and self.confidence_ is not None:
            auxiliary = self.confidence_._ask(X)
        return scores, y_pred, None, auxiliary, stage

    # scikit-learn ------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_raw_classifier") or (self._is_frozen and not self._learns)


def check_y(y: Any) -> LabelArray:
    """Return the labels given to ``fit``, checked."""
    labels = row_checks.label_array(y, "y")
    if labels.ndim > 1 and labels.shape[1:] != (1,):
        raise ValueError(f"y must hold one label per row, got {shown(y)}; the call is fit(X, y).")
    y = row_checks.check_labels(column_or_1d(labels, warn=True), "y")
    check_classification_targets(y)
    return y


def frozen_classes(estimator: Any) -> LabelArray:
    """Return the classes of a fitted classifier, as plain labels."""
    option_checks.check_has_fit(estimator)
    message = (
        "estimator: the classifier inside FrozenEstimator is not fitted; fit it before freezing it."
    )
    check_is_fitted(estimator, msg=message)
    return row_checks.check_classes(estimator.classes_, "classes_")


def make_rows(
    owner: Any, X: Any, y: Any, weight: Any, fit_params: Mapping[str, Any], *, fitted: bool = False
) -> TrainingRows:
    """Return rows with checked labels as the classifier inside is trained with them.

    One that is `fitted` is not trained, so that nothing reaches its fit.
    """
    if fitted:
        classes = owner.classes_
    elif is_ready(owner.estimator):
        classes = frozen_classes(owner.estimator)
    else:
        classes = np.unique(y)
        row_checks.check_more_classes(classes, "a classifier learns to tell classes apart")
    rule = DecisionRule.checked(owner.decision, owner.cost_matrix, classes)
    codes = row_checks.encode_known(y, classes, "y", "The classifier was not trained on them.")
    weight = row_checks.check_weight(weight, len(codes), other="y")
    params: dict[str, Any] = {}
    split_params: dict[str, Any] = {}
    if not fitted:
        check_groups(fit_params, len(codes))
        owner._refuse_mixed_folds(fit_params)
        params, split_params = route_fit(owner, weight, fit_params)
    return TrainingRows(X, y, codes, classes, weight, params, split_params, rule=rule)


def warn_if_fitted(estimator: Any) -> None:
    """Warn where a classifier that is already fitted will be fitted again."""
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        return
    if isinstance(estimator, FrozenEstimator) or not get_tags(estimator).requires_fit:
        return
    exception = ""
    if base.find_frozen(estimator):
        exception = " (its frozen parts stay as they are)"
    warn_user(
        f"estimator: this {type(estimator).__name__} is already fitted, but it is not frozen, so a "
        f"clone of it is fitted again on the rows given{exception}. Pass "
        "FrozenEstimator(estimator) (sklearn.frozen) to use it as it is."
    )


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


def _warn_of_unknown_classes(cv: str, rows: TrainingRows, knows_class: BoolArray) -> None:
    """Warn of classes that a kept classifier does not know; with costs, refuse them."""
    unknown = rows.classes[np.unique(rows.codes[~knows_class])].tolist()
    held_out = (
        f"{cv}: {np.sum(~knows_class)} of {len(knows_class)} rows belong to the classes {unknown} "
        "and are all held out, so that the kept classifier does not know these classes"
    )
    if rows.rule.cost_matrix is not None:
        raise ValueError(
            f"{held_out}, and the cost matrix does not fit it. Split the rows in another way, add "
            "rows of these classes, or pass refit=True for an estimate."
        )
    warn_user(f"{held_out}; they count as wrong answers.")


def _fields_of(decisions: Decisions) -> dict[str, Any]:
    """Return decisions as what an OutOfFold holds."""
    return {
        "scores": decisions.y_proba,
        "y_pred": decisions.y_pred,
        "confidence": decisions.confidence,
        "stage": decisions.stage,
    }


def _are_same(splits: Splits, others: Splits) -> bool:
    """Tell whether two lists of splits hold the same rows in the same order."""
    if len(splits) != len(others):
        return False
    parts = zip(chain.from_iterable(splits), chain.from_iterable(others), strict=True)
    return all(np.array_equal(part, other) for part, other in parts)
