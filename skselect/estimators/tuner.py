"""Find the confidence above which a classifier may decide alone."""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import check_is_fitted, indexable

from skselect._lib import arrays
from skselect._lib.checks import options as option_checks, shown, warn_user
from skselect._lib.checks.rows import check_importance, check_subgroups
from skselect._lib.notebook import percent
from skselect._lib.sklearn import (
    CallbackSupportMixin,
    DescribedMixin,
    count_rows,
    routing_enabled,
    take_rows,
    with_callbacks,
)
from skselect.curve.curve import RiskCoverageCurve, threshold_below
from skselect.estimators.base import AbstainingMixin, RawScores, find_frozen, find_records
from skselect.estimators.classifier import SelectiveClassifier, check_y, make_rows, warn_if_fitted
from skselect.estimators.groups import check_groups, find_fold_makers
from skselect.estimators.interfaces import ConfidenceLearner, StagedClassifier
from skselect.estimators.out_of_fold import (
    LEAST_HELD_OUT,
    OutOfFold,
    Splits,
    are_last,
    check_cv,
    check_folds,
    check_weighted_part,
    describe_tested,
    find_tested_rows,
    holdout,
    read_splits,
)
from skselect.estimators.precomputed import PrecomputedClassifier
from skselect.estimators.raw_classifier import (
    Fits,
    RawClassifier,
    TrainingRows,
    check_trainable,
    find_inner,
    is_ready,
    some_of,
)
from skselect.objectives import (
    HELD_OUT,
    MOST_HELD_OUT,
    GeneralizedRisk,
    Loss,
    Objective,
    Objectives,
    Risk,
    SystemRisk,
    check_objective,
    each_of,
    first_of,
    for_all_rows,
    read_objective,
    refuse_given,
)
from skselect.policy import certificate as certificates, seen_rows
from skselect.policy.certificate import Caveat, Certificate
from skselect.policy.policy import AbstentionPolicy
from skselect.policy.subgroups import Subgroups, check_enough_classes, subgroup_codes
from skselect.predictions.confidence import check_confidence_by_row
from skselect.predictions.decisions import DecisionRule, read_costs
from skselect.predictions.direction import warn_of_direction
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions, encode_reviewer
from skselect.selection import order, pick as picking, results
from skselect.selection.sample import Grouping, Sample
from skselect.thresholds import Shortlist
from skselect.thresholds._sequences import are_tied, choose_combined, default_combined

# Under cv="auto" a larger share certifies, up to MOST_HELD_OUT, where the usual share is less than
# so many times the rows that certify without any error.
_ROOM_FOR_ERRORS = 1.5
# Of fewer rows classes are often equal in size.
_FEW_ROWS = 20
# A smaller share of errors makes it likely that the rows trained a frozen part.
_TOO_GOOD = 0.01
# A larger share of rows that also trained the classifier makes a certificate an estimate where not
# all of them are known.
_MOST_UNKNOWN = 0.01
_BY_ROW = (
    "The subgroup of a row must follow from that row alone, since new rows arrive with other rows "
    "around them: compute beforehand what depends on many rows, such as a cut-off, and pass for "
    "example lambda X: X['age'] > 50."
)


class ThresholdTuner(
    AbstainingMixin,
    ClassifierMixin,
    MetaEstimatorMixin,
    CallbackSupportMixin,
    DescribedMixin,
    BaseEstimator,
):
    """Choose the confidence threshold so that, say, at most 5 % of the answers are wrong.

    Most calls need only `estimator`, `objective`, `target` and `random_state`:

    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from skselect import ThresholdTuner
    >>> X, y = load_digits(return_X_y=True)
    >>> tuner = ThresholdTuner(RandomForestClassifier(random_state=0), objective="risk",
    ...                        target=.02, random_state=0)
    >>> tuner.fit(X[:1500], y[:1500]).certificate_.is_certified
    True
    >>> answers = tuner.predict(X[1500:])  # -1: the case is deferred

    The parameters are in the order of use: what you want, the rows that choose the threshold,
    subgroups and lists, how it runs. :doc:`/thresholds` has all objectives and their options.

    Parameters
    ----------
    estimator : classifier
        A plain classifier or a :class:`SelectiveClassifier`, which says how to decide, what errors
        cost and the abstain label (its own threshold is ignored). A fitted classifier in
        ``FrozenEstimator`` is not fitted again. The rows passed to ``fit``, or the rows that `cv`
        names, choose the threshold; the certificate is exact if they are fresh.
    objective : Objective, list or mapping of them, or str, default="cwsa_plus"
        What the threshold should achieve. :class:`Risk`, :class:`GeneralizedRisk`,
        :class:`Coverage`, :class:`SystemRisk`, :class:`Cost` and :class:`Best` hold all options;
        with subgroups each may have its own. A list such as ``[Risk(0.02), Coverage(0.5)]`` holds
        guarantees that one threshold keeps together, each at an even share of `delta`. Or a name:

        ============================================  ============================================
        "risk"                                        largest coverage whose selective risk is
                                                      certified to be at most `target`
        "generalized_risk"                            as "risk", for the rate of silent failures
        "system_risk"                                 as "risk", for machine and reviewer together
        "coverage"                                    highest threshold whose coverage is
                                                      certified to be at least `target`
        "cost"                                        cheapest if abstaining costs `target` errors
        "cwsa_plus", "cwsa", "selective_accuracy"     the best value at coverage >= 0.5;
                                                      among equal ones the largest coverage
        ============================================  ============================================
    target : float or mapping, default=None
        The bound to keep. Give it only with a name such as "risk", in units of the cost matrix
        where there is one. A risk target is at most 0.5; abstaining costs at most as much as an
        error. With subgroups a mapping may give each its own: ``{"healthy": .01, "sick": .2}``.
    delta : float in (0, 0.5], default=None
        Probability that the guarantee fails. Give it with a name; subgroups share it. None: 0.05.
    on_infeasible : {"raise", "abstain"}, default="raise"
        What to do if no threshold meets the target: raise, or warn and defer everything.
    cv : "auto", int, splitter, iterable or float in (0, 1), default="auto"
        Which rows choose the threshold.

        - A float: that share of the rows (at least 10), held out once at random.
        - A split ``[(train, test)]`` of positions, masks or slices, or a splitter with one fold:
          the test rows. In time order: ``[(slice(-1000), slice(-1000, None))]``, the last 1000.
        - An integer or splitter: all rows, by out-of-fold predictions. A row counts as a wrong
          answer, with a warning, if no training row of its fold has its class (an error if most
          rows of a class are like that). Rows never tested only train. Few groups: fewer folds.
        - "auto": 0.4 (up to 0.6 where a risk needs more rows, see :doc:`/faq`) for a guarantee or a
          list with rows set apart, unless ``refit=True`` or there are fewer than 25 rows; else 5.

        A FrozenEstimator or PrecomputedClassifier is not trained. With splits or a splitter, the
        test rows (of all folds) choose the threshold; put rows that trained it into the training
        part. With "auto" or a number, all rows of `fit` choose it, so pass only fresh rows.
    refit : bool or "auto", default="auto"
        Fit the classifier on all rows afterwards. False keeps the classifier trained on the rows
        that were not held out, so that the certificate is exact. "auto": False where rows are
        held out for a guarantee or a list with rows set apart, else True.
    random_state : int, RandomState or None, default=None
        Seed of the split that holds rows out, of the folds of an integer `cv`, of the rows that a
        shortlist sets apart or that name levels (the certificate states this seed), and of a
        SelectiveClassifier without a seed. None: a new seed at each call of `fit`.
    assume : str or list of {"fresh", "independent", "balanced"}, default=()
        Assumptions you confirm although a test on the rows rejects them. The certificate stands,
        with the finding as a caveat. "fresh": no row trained the classifier, although rows equal
        training rows. "independent": the order of the rows means nothing, although losses change
        along it (they are sorted by site, say). "balanced": new cases come balanced like these.
    group_by : column name, list of them, callable, "predicted_class" or Subgroups, default=None
        One threshold per subgroup, each certified by itself: columns of X (positions for arrays), a
        function of X, or the answers. The function must find the subgroup of a row from that row
        alone; a function that compares rows (``pd.qcut``) is refused. Rows without a subgroup are
        not used to choose thresholds. Later rows of other subgroups are deferred, or refused if a
        :class:`Subgroups` says so.
    shortlist : float in (0, 1) or Shortlist, default=None
        Name the probable classes of each deferred case (of three or more), so that the true one is
        among them in this share of these cases. The rows that choose the threshold also set the
        list, so the share is an estimate; ``Shortlist(0.95, share=0.5)`` of ``skselect.thresholds``
        makes it exact by setting half of these rows apart for the list alone.
    n_jobs : int, default=None
        Folds of `cv` fitted at the same time. (A SelectiveClassifier has its own `n_jobs`.)
    verbose : int, default=0
        Print how many fits there will be, and the time of each. ``sklearn.callback`` shows bars
        instead (scikit-learn 1.9): ``set_callbacks(ProgressBar())``.

    Attributes
    ----------
    threshold_, certificate_ : float, Certificate or None
        Absent with `group_by`. The certificate is None where nothing is guaranteed.
    thresholds_, certificates_ : dict
        By subgroup; ``{"all": threshold_}`` without subgroups.
    policy_ : AbstentionPolicy
        Calibration, threshold and certificate; ``policy_.to_json("policy.json")`` saves them.
    selection_ : ThresholdSelection or GroupedSelection
        ``selection_.to_frame()`` shows every threshold, or every subgroup.
    curve_, cv_results_ : RiskCoverageCurve, dict of ndarray
        Of the rows that chose the threshold; per fold `n_rows`, `coverage`, `selective_risk`.
    estimator_ : SelectiveClassifier
        Fitted, with the threshold (none with `group_by`).
    classes_, n_features_in_, feature_names_in_

    See Also
    --------
    select_threshold : Choose a threshold from a table of predictions.
    certify : Certify a fixed policy on fresh rows.

    Notes
    -----
    ``set_params`` counts from the next ``fit`` on. :doc:`/performance` says how many fits there
    are, :doc:`/faq` what holding out rows costs, :doc:`/guarantees` which rows certify nothing.
    """

    def __init__(
        self,
        estimator: Any,
        objective: Any = "cwsa_plus",
        *,
        target: Any = None,
        delta: float | None = None,
        on_infeasible: str = "raise",
        cv: Any = "auto",
        refit: bool | str = "auto",
        random_state: Any = None,
        assume: str | Sequence[str] = (),
        group_by: Any = None,
        shortlist: float | Shortlist | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.objective = objective
        self.target = target
        self.delta = delta
        self.on_infeasible = on_infeasible
        self.cv = cv
        self.refit = refit
        self.random_state = random_state
        self.assume = assume
        self.group_by = group_by
        self.shortlist = shortlist
        self.n_jobs = n_jobs
        self.verbose = verbose

    #: Whether it has a threshold.
    abstains = True

    _makes_folds = True

    # Fitting -----------------------------------------------------------------------------

    # Groups go to the splitter and a reviewer's answers stay here; neither needs a request.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": True, "reviewer_pred": True}

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        reviewer_pred: Any = None,
        **fit_params: Any,
    ) -> ThresholdTuner:
        """Choose the threshold and fit the classifier.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), default=None
            How often each row counts. For the classifier and for metric objectives. A certificate
            counts independent rows, so it refuses unequal weights; with ``largest_weight=`` of the
            objective they are importance weights.
        groups : array-like of shape (n,), default=None
            For the splitter. Rows of one group are not independent, so a certificate is then
            not exact. A part inside that makes folds of its own gets them by scikit-learn's
            metadata routing; where they do not reach it, they are refused.
        reviewer_pred : array-like of shape (n,), default=None
            A reviewer's answer to each row, for :class:`SystemRisk`.
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
        if groups is not None:
            fit_params["groups"] = groups
        plan = self._plan(X, y, sample_weight, reviewer_pred, fit_params)
        fits = Fits(self, plan.rows.X, plan.rows.y)
        tested = self._test_rows(plan, fits)
        seed = option_checks.check_seed(self.random_state)
        plan, tested = self._name_levels(plan, tested, seed)
        sample = self._describe_rows(plan, tested, seed)
        if groups is not None:
            sample = sample.doubting(certificates.GROUPED)
        selection = self._choose(plan, tested, sample)
        model = tested.model
        if model is None:
            model = plan.base._fit_clone(plan.rows, fits.tasks[-1], tested.scored)
            model._record(plan.rows)
        self._keep(model, selection, sample, tested)
        fits.end()
        return self

    # What is looked for ------------------------------------------------------------------

    def _plan(
        self, X: Any, y: Any, sample_weight: Any, reviewer_pred: Any, fit_params: dict[str, Any]
    ) -> _Plan:
        """Check every argument before anything is trained."""
        base = self._make_base()
        objectives, loss = self._check_objective(base)
        objective = first_of(objectives)
        X, y = indexable(X, y)
        X, reviewer_pred = self._split_reviewer(objective, X, reviewer_pred)
        rows = self._check_rows(base, objective, X, y, sample_weight, fit_params)
        reviewer = None
        if reviewer_pred is not None:
            reviewer = encode_reviewer(reviewer_pred, rows.classes, len(rows.y), "reviewer_pred")
        shortlist = None
        if self.shortlist is not None:
            shortlist = results.check_shortlist(
                self.shortlist, rows.weight, len(rows.classes), self.random_state
            )
        subgroups = None
        if self.group_by is not None:
            by = Subgroups.read(self.group_by)
            subgroups = find_subgroups(by, X)
            check_decided_by_row(by, X, subgroups)
        return _Plan(base, rows, objectives, loss, reviewer, shortlist, subgroups)

    def _make_base(self) -> SelectiveClassifier:
        """Return a SelectiveClassifier without threshold; it is fitted where a frozen one is."""
        option_checks.check_has_fit(self.estimator)
        base = self._copy_estimator()
        # By its name: importing the class would import most of scikit-learn.
        if type(base.estimator).__name__ == "CalibratedClassifierCV":
            warn_user(
                "estimator: a CalibratedClassifierCV fits folds of its own inside each fold here. "
                "SelectiveClassifier(classifier, calibration='platt') calibrates with the folds "
                "that are fitted anyway."
            )
        base.threshold = None
        if base.random_state is None:
            base.random_state = self.random_state
        return base

    def _copy_estimator(self) -> SelectiveClassifier:
        """Return the fitted SelectiveClassifier that is frozen, or a clone that is not fitted."""
        estimator = self.estimator
        inner = getattr(estimator, "estimator", None)
        if isinstance(estimator, FrozenEstimator) and isinstance(inner, SelectiveClassifier):
            check_is_fitted(inner)
            return copy.copy(inner)
        if not isinstance(estimator, SelectiveClassifier):
            warn_if_fitted(estimator)
            return SelectiveClassifier(clone(estimator))
        warn_if_fitted(estimator if hasattr(estimator, "estimator_") else inner)
        return cast(SelectiveClassifier, clone(estimator))

    def _check_objective(self, base: SelectiveClassifier) -> tuple[Objectives, arrays.LossSpec]:
        """Check what is looked for; return the objectives and the loss."""
        base._check_parameters()
        if isinstance(self.refit, str) and self.refit != "auto":
            raise ValueError(f"refit must be True, False or 'auto', got {self.refit!r}.")
        check_cv(self.cv, takes_share=True)
        option_checks.check_choice("on_infeasible", self.on_infeasible, ["raise", "abstain"])
        certificates.check_vouched(self.assume)
        costs = None
        if base.cost_matrix is not None:
            costs = read_costs(base.cost_matrix)
        requested = read_objective(self.objective, self.target, self.delta)
        loss = first_of(requested).choose_loss(has_costs=costs is not None)
        meaning = Loss.of(loss, DecisionRule(base.decision, costs))
        objectives = check_objective(requested, meaning, base.confidence_in_use)
        if self.group_by is None:
            for_all_rows(objectives)
        else:
            refuse_given(objectives, "group_by: each subgroup has its own guarantee.")
        if isinstance(base.estimator, StagedClassifier) and not _is_fitted(base):
            self._plan_cascade(base.estimator, objectives, meaning)
        return objectives, loss

    def _plan_cascade(self, cascade: StagedClassifier, objectives: Objectives, loss: Loss) -> None:
        """Tell a cascade the seed, and the risk of errors asked for, unless it has its own."""
        targets = [
            objective.target for objective in each_of(objectives) if isinstance(objective, Risk)
        ]
        target = min(targets) if targets and loss.is_error else None
        cascade._plan_for(target, self.random_state)

    def _split_reviewer(self, objective: Objective, X: Any, answers: Any) -> tuple[Any, Any]:
        """Return X without a reviewer's answers, and these answers."""
        if not isinstance(objective, SystemRisk):
            if answers is not None:
                raise ValueError(
                    "reviewer_pred goes with objective=SystemRisk(...), not with "
                    f"{objective.name!r}; leave it out."
                )
            return X, None
        column = objective.reviewer
        if column is not None:
            if answers is not None:
                raise ValueError(
                    f"reviewer_pred stands beside reviewer={column!r}; pass one of the two."
                )
            names = arrays.column_names(X) or []
            if column not in names:
                raise ValueError(
                    f"reviewer={column!r}: X has no such column; it has {names[:20]}. Where X is "
                    "an array, pass fit(X, y, reviewer_pred=...)."
                )
            answers = np.asarray(arrays.take_columns(X, [column]))[:, 0]
        objective.check_reviewed(answered=answers is not None)
        return self._features(X), answers

    def _features(self, X: Any) -> Any:
        """Return X without the column of a reviewer, which later rows need not have."""
        column = getattr(self.objective, "reviewer", None)
        names = arrays.column_names(X) or []
        if column is None or column not in names:
            return X
        return arrays.take_columns(X, [name for name in names if name != column])

    def _check_rows(
        self,
        base: SelectiveClassifier,
        objective: Objective,
        X: Any,
        y: Any,
        weight: Any,
        fit_params: dict[str, Any],
    ) -> TrainingRows:
        """Check the rows before anything is trained.

        Groups stay together in the folds of the calibration as well.
        """
        y = check_y(y)
        check_trainable(len(y))
        check_groups(fit_params, len(y))
        if not _is_fitted(base):
            base._refuse_mixed_folds(fit_params)
        tuning_params = {}
        if "groups" in fit_params:
            tuning_params["groups"] = fit_params["groups"]
        if routing_enabled():
            weighted = fit_params
            if weight is not None:
                weighted = fit_params | {"sample_weight": weight}
            routed = process_routing(self, "fit", **weighted)
            tuning_params = dict(routed.splitter.split)
            consumed = base.get_metadata_routing().consumes("fit", list(fit_params))
            fit_params = {name: fit_params[name] for name in consumed if name in fit_params}
        rows = make_rows(base, X, y, weight, fit_params, fitted=_is_fitted(base))
        if objective.guarantees:
            check_importance(rows.weight, objective.largest_weight)
        base.abstain_label = option_checks.check_abstain_label(base.abstain_label, rows.classes)
        return replace(rows, tuning_params=tuning_params)

    # The rows that choose the threshold --------------------------------------------------

    def _test_rows(self, plan: _Plan, fits: Fits) -> _Tested:
        """Decide the rows that choose the threshold, and say what is known of them."""
        tested = self._decide_rows(plan, fits)
        return replace(tested, trained=_rate_training_rows(tested, plan))

    def _decide_rows(self, plan: _Plan, fits: Fits) -> _Tested:
        """Decide the rows by a model that is ready, by one that did not see them, or by folds."""
        base = plan.base
        rows = plan.rows
        if _is_fitted(base) or (is_ready(base.estimator) and not base._learns):
            fits.begin(0)
            return self._decide_by_ready(plan)
        cv = self._find_cv(plan)
        is_share = isinstance(cv, float | np.floating)
        if is_share:
            splits = [self._hold_out(float(cv), plan)]
        else:
            splits = read_splits(cv, rows, rows.tuning_params, self.random_state)
        is_held_out = len(splits) == 1
        is_final = not self._refits
        if isinstance(self.refit, str):
            is_final = is_held_out and self._wants_exact(plan)
        if is_held_out:
            name = f"cv={cv:g}" if is_share else "cv"
            tested = self._decide_held_out(plan, splits, name, fits, is_final=is_final)
            return replace(tested, splits=[] if is_share else splits)
        if is_final:
            raise ValueError(
                "refit=False needs one fitted classifier to keep: use a float cv such as cv=0.3, "
                "one split cv=[(train, test)], or pass FrozenEstimator(fitted classifier)."
            )
        return self._decide_by_folds(plan, check_folds(splits, rows), fits)

    def _hold_out(self, share: float, plan: _Plan) -> tuple[arrays.IntArray, arrays.IntArray]:
        """Return the rows that train, groups enough for folds inside, and those held out."""
        makes_folds = any(find_fold_makers(plan.base))
        return holdout(
            share,
            len(plan.rows.codes),
            plan.rows.tuning_params.get("groups"),
            self.random_state,
            least_training=2 if makes_folds else 1,
            is_default=isinstance(self.cv, str),
        )

    @property
    def _refits(self) -> bool:
        """Whether the user asks that the classifier is fitted again."""
        return not isinstance(self.refit, str) and bool(self.refit)

    def _wants_exact(self, plan: _Plan) -> bool:
        """Tell whether a guarantee, or a list with rows set apart, is about the classifier kept."""
        sets_apart = plan.shortlist is not None and plan.shortlist.share > 0
        return plan.objective.guarantees or sets_apart

    def _find_cv(self, plan: _Plan) -> Any:
        """Return `cv`, with "auto" replaced by a share or a number of folds."""
        if not isinstance(self.cv, str):
            return self.cv
        wants_exact = self._wants_exact(plan)
        n_usual = len(plan.rows.codes) * HELD_OUT
        holds_out = wants_exact and not self._refits and n_usual >= LEAST_HELD_OUT
        if not holds_out:
            return 5
        return HELD_OUT if self.group_by is not None else _share_held_out(plan)

    def _decide_by_ready(self, plan: _Plan) -> _Tested:
        """Decide by a classifier that is fitted already: all rows, or those that `cv` tests."""
        base = plan.base
        rows = plan.rows
        every_row = np.arange(len(rows.codes))
        model = base if _is_fitted(base) else base._fit_clone(rows)
        tested_rows = every_row
        splits = []
        X = rows.X
        if not (self.cv is None or isinstance(self.cv, str | numbers.Real)):
            tested_rows = find_tested_rows(read_splits(self.cv, rows, rows.tuning_params))
            check_weighted_part(rows.weight, tested_rows, "the part that cv tests")
        if len(tested_rows) < len(every_row):
            splits = [(np.setdiff1d(every_row, tested_rows), tested_rows)]
            X = take_rows(X, tested_rows)
        unseen = OutOfFold.of(rows, tested_rows, **base._decide_by(model, rows, X))
        unseen, caveats = self._compare_rows(base, plan, unseen)
        return _Tested(unseen, model, caveats, splits, order.TAKE_LATEST)

    def _decide_held_out(
        self, plan: _Plan, splits: Splits, name: str, fits: Fits, *, is_final: bool
    ) -> _Tested:
        """Decide the rows of one split by a model of the others, which may be kept."""
        model, unseen = plan.base._decide_held_out(plan.rows, splits, name, fits, is_final=is_final)
        unseen, caveats = self._compare_rows(model, plan, unseen)
        if is_final:
            return _Tested(unseen, model, caveats)
        return _Tested(unseen, None, (certificates.REFITTED, *caveats))

    def _decide_by_folds(self, plan: _Plan, splits: Splits, fits: Fits) -> _Tested:
        """Decide each row by the model of its fold."""
        unseen, scored = plan.base._decide_folds(plan.rows, splits, self.n_jobs, fits)
        caveat = certificates.FOLD_MODELS
        if is_ready(plan.base.estimator):
            caveat = certificates.SAME_ROWS
        has_splitter = not (isinstance(self.cv, str | numbers.Integral) or self.cv is None)
        advice = "" if has_splitter else order.HOLD_OUT_LATEST
        return _Tested(unseen, None, (caveat,), splits, advice, scored)

    def _name_levels(self, plan: _Plan, tested: _Tested, seed: int) -> tuple[_Plan, _Tested]:
        """Where confidences are tied, let a tenth of the rows name the levels that the others test.

        Rows that trained the classifier tell by their confidence whether they are tied. The rows
        that certify must not choose the rule.
        """
        if not plan.loss_meaning.is_error or tested.trained is None:
            return plan, tested
        # Several guarantees compare thresholds by their rows.
        if isinstance(plan.objectives, list):
            return plan, tested
        open_risks = [
            objective
            for objective in each_of(plan.objectives)
            if isinstance(objective, Risk) and objective.is_open
        ]
        n_levels = len(np.unique(tested.trained))
        if not open_risks or n_levels == 1 or not are_tied(n_levels, len(tested.trained)):
            return plan, tested
        unseen = tested.unseen
        predictions = unseen.as_predictions(plan.rows.classes, plan.rows.rule)
        groups = self._group(plan, predictions, unseen.rows)
        objectives, names = picking.name_levels(
            predictions, unseen.confidence, plan.objectives, groups, seed
        )
        by_chance = objectives is not plan.objectives
        plan = replace(plan, objectives=objectives, by_chance=by_chance)
        return plan, replace(tested, unseen=unseen.take(~names))

    def _describe_rows(self, plan: _Plan, tested: _Tested, seed: int) -> Sample:
        """Return the rows that choose the threshold, with all that is known and doubted of them."""
        rows = plan.rows
        unseen = tested.unseen
        confidence = plan.base.confidence_in_use
        if callable(confidence):
            check_confidence_by_row(unseen.scores, confidence)
        predictions = unseen.as_predictions(rows.classes, rows.rule)
        if plan.reviewer is not None:
            predictions = replace(predictions, reviewer=plan.reviewer[unseen.rows])
        outcomes = Outcomes.from_predictions(predictions, loss=plan.loss)
        if callable(confidence):
            warn_of_direction(outcomes.loss, outcomes.confidence)
        outcomes = replace(outcomes, readings=unseen.readings)
        n_rows = len(rows.codes)
        provenance = ""
        if tested.splits:
            provenance = describe_tested(tested.splits, n_rows, len(outcomes))
        sample = Sample(
            outcomes=outcomes,
            source=replace(predictions, y_proba=None),
            groups=self._group(plan, predictions, unseen.rows),
            loss=plan.loss_meaning,
            bounded=plan.base._confidence_is_bounded,
            share=min(len(outcomes) / n_rows, 1.0),
            provenance=provenance,
            fingerprints={"model": certificates.scores_fingerprint(np.asarray(unseen.scores))},
            seed=seed,
            by_chance=plan.by_chance,
        )
        return self._doubt_rows(plan, tested, sample)

    def _group(
        self, plan: _Plan, predictions: Predictions, rows: arrays.IntArray
    ) -> Grouping | None:
        """Return the subgroups of the rows that choose the threshold."""
        if self.group_by is None:
            return None
        by = Subgroups.read(self.group_by)
        subgroups = predictions.answers
        if not by.by_answer:
            subgroups = take_rows(plan.subgroups, rows)
        return Grouping(name_groups(by.by), subgroups, len(rows), by.by_answer, by.unseen)

    # What is doubted of them -------------------------------------------------------------

    def _compare_rows(
        self, model: SelectiveClassifier, plan: _Plan, unseen: OutOfFold
    ) -> tuple[OutOfFold, tuple[Caveat, ...]]:
        """Return the rows to be read with and without those seen before or twice, and caveats.

        Where more than a fifth of them trained the classifier or what it asks, or not all that did
        are known, no reading is a fair sample: an estimate.
        """
        if not self._is_exact(plan):
            return unseen, certificates.NO_CAVEATS
        X = plan.rows.X
        if len(unseen.rows) < len(plan.rows.codes):
            X = take_rows(X, unseen.rows)
        hashed = _HashedTables()
        records = _Records.of(model, X, hashed)
        is_training_row, caveats = self._find_seen(model, records, len(unseen.rows))
        if isinstance(find_inner(model.estimator), PrecomputedClassifier):
            copies = None  # X are predictions
        else:
            rows = hashed.of(X)
            recognise_all = records.recognise_all(rows)
            copies = seen_rows.find_copies(rows, unseen.codes, recognise_all=recognise_all)
        if copies is None:  # no row of X can be recognised
            _, sizes = np.unique(unseen.confidence, return_counts=True)
            copies = seen_rows.find_tied_copies(
                unseen.confidence, sizes, unseen.codes, unseen.y_pred
            )
        readings = seen_rows.with_and_without(is_training_row, copies)
        return replace(unseen, readings=readings), (*caveats, *certificates.copied_here(copies))

    def _is_exact(self, plan: _Plan) -> bool:
        """Tell whether anything is said that must hold for new rows."""
        return plan.objective.guarantees or self.shortlist is not None

    def _vouches(self, assumption: str) -> bool:
        return assumption in certificates.check_vouched(self.assume)

    def _find_seen(
        self, model: SelectiveClassifier, records: _Records, n_rows: int
    ) -> tuple[arrays.BoolArray, list[Caveat]]:
        """Return which rows have trained the classifier, where these are few, and caveats."""
        is_vouched = self._vouches("fresh")
        is_training_row = np.zeros(n_rows, dtype=bool)
        caveats = []
        if not records.are_all:
            caveats.append(certificates.FRESH_BY_WORD if is_vouched else certificates.NO_RECORD)
        if records.are_old:
            caveats.append(certificates.OLD_RECORD)
        n_others = records.count_others()
        if n_others:
            others = certificates.others_trained(n_others, vouched=is_vouched)
            caveats.append(others)
            if not is_vouched:
                warn_user(f"No certificate: {others.reason}.")
        most = records.find_largest_overlap()
        if not most.share > 0:
            if not caveats and not most.is_checked:
                caveats.append(certificates.NOTHING_CHECKED)
            return is_training_row, caveats
        limit = certificates.MOST_SEEN if records.are_complete else _MOST_UNKNOWN
        are_few = not is_vouched and most.share <= limit
        asks = isinstance(model.confidence, ConfidenceLearner)
        caveat = certificates.trained_here(most, few=are_few, asks=asks, vouched=is_vouched)
        if are_few:
            is_training_row = records.find_seen()
        elif not is_vouched:
            warn_user(f"No certificate: {caveat.reason}.")
        return is_training_row, [caveat, *caveats]

    def _doubt_rows(self, plan: _Plan, tested: _Tested, sample: Sample) -> Sample:
        """Return the rows with what is doubted of them."""
        few_errors = self._doubt_few_errors(plan, tested, sample.outcomes)
        sample = sample.with_reviewer(plan.objective)
        sample = self._doubt_order(plan, tested, sample)
        classes = self._compare_classes(plan, tested)
        return sample.doubting(*tested.caveats, *few_errors, *classes)

    def _doubt_few_errors(
        self, plan: _Plan, tested: _Tested, outcomes: Outcomes
    ) -> tuple[Caveat, ...]:
        """Say beside a frozen part that next to no row is wrong, as if they had trained it."""
        if not self._is_exact(plan) or self._vouches("fresh"):
            return ()
        if any(caveat.violates == certificates.FRESH for caveat in tested.caveats):
            return ()
        n_rows = len(outcomes)
        n_errors = int(np.count_nonzero(outcomes.loss))
        if n_errors >= _TOO_GOOD * n_rows or not find_frozen(self.estimator):
            return ()
        reason = (
            f"{n_errors} of {n_rows} rows are answered wrongly, as if they had trained the "
            "classifier"
        )
        warns = (
            "Did these rows train the frozen classifier? Almost none is answered wrongly. Only "
            "rows that it has never seen certify it. If they are fresh, say so: assume='fresh'."
        )
        return (Caveat(reason, strikes=False, warns=warns),)

    def _doubt_order(self, plan: _Plan, tested: _Tested, sample: Sample) -> Sample:
        """Return the rows with the caveat that they depend on their order, if they do."""
        advice = tested.advice
        if not advice:
            return sample
        if tested.splits and are_last(tested.splits, len(plan.rows.codes)):
            advice = order.LEAVE_MARGIN
        in_order = sample.take(np.argsort(tested.unseen.rows))
        in_order = in_order.in_order(plan.objective, advice, vouched=self._vouches("independent"))
        return replace(sample, caveats=in_order.caveats)

    def _compare_classes(self, plan: _Plan, tested: _Tested) -> tuple[Caveat, ...]:
        """Return the caveat about classes that are balanced, or unlike those of training.

        A guarantee about one class does not depend on their shares; weights may set these right.
        """
        rows = plan.rows
        is_of_class = plan.objective.given_class is not None
        if not self._is_exact(plan) or is_of_class or not arrays.are_constant(rows.weight):
            return ()
        codes = rows.codes
        trained = getattr(plan.base, "_class_counts", None)
        if trained is not None and tested.splits:
            _, tested_rows = tested.splits[0]
            codes = codes[tested_rows]
        counts = np.bincount(codes, minlength=len(rows.classes))
        is_equal = bool(np.ptp(counts) <= 1)
        if trained is not None and order.class_p_value(counts, trained) <= order.CLASS_LEVEL:
            difference = _name_difference(counts, trained, rows.classes)
            caveat = certificates.other_classes(
                difference, order.CLASS_LEVEL, equal=is_equal, vouched=self._vouches("balanced")
            )
            if caveat.strikes:
                warn_user(f"No certificate: {caveat.reason}.")
            return (caveat,)
        if len(counts) > 1 and np.ptp(counts) == 0 and len(codes) >= _FEW_ROWS:
            return (certificates.equal_classes(int(counts[0])),)
        return ()

    # The threshold -----------------------------------------------------------------------

    def _choose(
        self, plan: _Plan, tested: _Tested, sample: Sample
    ) -> results.ThresholdSelection | results.GroupedSelection:
        """Choose the threshold, or one for each subgroup, and the shortlist."""
        choosing = sample.choosing(plan.objectives, plan.shortlist)
        objectives = _choose_start(plan.objectives, tested.model, choosing)
        selection = picking.pick(choosing, objectives, self.on_infeasible)
        if min(selection.thresholds.values()) < np.inf:
            sample.warn()
        if plan.shortlist is None:
            return selection
        return results.add_shortlist(
            selection,
            plan.shortlist,
            replace(sample.source, y_proba=tested.unseen.scores),
            sample.outcomes,
            sample.subgroups,
            objective=plan.objective,
            caveats=sample.caveats,
            unknown=_find_unknown(tested, plan.rows),
        )

    # What is kept --------------------------------------------------------------------------

    def _keep(
        self,
        model: SelectiveClassifier,
        selection: results.ThresholdSelection | results.GroupedSelection,
        sample: Sample,
        tested: _Tested,
    ) -> None:
        outcomes = sample.outcomes
        accepted = selection.accepts(outcomes.confidence, sample.subgroups)
        decides = dict(vars(model._make_policy()))
        decides["abstain_label"] = model.abstain_label
        decides["created"] = certificates.now()
        cascade = decides["cascade"]
        if cascade is not None:
            is_fresh = not any(caveat.strikes for caveat in sample.caveats)
            decides["cascade"] = cascade.count_asked(tested.unseen.stage, is_fresh=is_fresh)
        policy = results.make_policy(
            selection,
            outcomes,
            accepted,
            model_print=sample.fingerprints["model"],
            rated_by_others=tested.model is None,
            trained=tested.trained,
            **decides,
        )
        self.policy_: AbstentionPolicy = policy
        model.threshold = None
        if selection.groups is None:
            model.threshold = selection.threshold
        model._unseen = None  # it has served
        self.estimator_: SelectiveClassifier = model
        self.selection_ = replace(selection, policy=policy)
        self.curve_ = selection.curve
        self.certificates_ = selection.certificates
        self.thresholds_ = selection.thresholds
        self.cv_results_ = tested.unseen.per_fold(outcomes, accepted)

    # What was found ----------------------------------------------------------------------

    def _find_records(self, X: Any) -> list[tuple[seen_rows.SeenRows, Any] | None]:
        # Rows that only chose the threshold do not count.
        return find_records(self.estimator_, self._features(X))

    def _raw(self) -> RawClassifier:
        return self.estimator_._raw()

    @property
    def threshold_(self) -> float:
        """The chosen threshold."""
        return self._single("threshold")

    @property
    def certificate_(self) -> Certificate | None:
        """The certificate, None where nothing is guaranteed."""
        return self._single("certificate")

    def _single(self, name: str) -> Any:
        """Return the value for all rows; raise where there is one per subgroup."""
        by = self.policy_.parts.by
        if by:
            raise AttributeError(f"There is one {name} per {by}: see {name}s_, a dict.")
        return getattr(self.policy_, name)

    def summary(self, targets: Any) -> pd.DataFrame:
        """Explore what other targets would give on the rows that chose the threshold.

        A certificate is for one target, named before the rows were seen. Choosing among several
        targets after looking voids it. To use another target, name it and fit again on fresh rows.

        Parameters
        ----------
        targets : float or array-like of shape (m,)
            Bounds to try, in the units of the objective's target.

        Returns
        -------
        DataFrame
            By target: `coverage` and `risk` on these rows, the `threshold` (inf: nothing is
            accepted), and `would_certify`, whether the target would have been certified if it had
            been named first. ``attrs["note"]`` says that this is an exploration, and names a
            target that answers something where a larger one of these answers nothing.

        Raises
        ------
        ValueError
            If the objective guarantees nothing, rows are weighted or losses graded, or there is one
            threshold per subgroup.

        Examples
        --------
        >>> import numpy as np
        >>> from skselect import PrecomputedClassifier, ThresholdTuner
        >>> p, k = np.linspace(.5, 1, 1000), np.arange(1000)
        >>> y = np.where((k % 100 == 0) | ((p < .8) & (k % 8 == 0)), "no", "yes")
        >>> model = PrecomputedClassifier(["no", "yes"])
        >>> tuner = ThresholdTuner(model, "risk", target=.1, assume="independent")
        >>> X = np.column_stack([1 - p, p])
        >>> print(tuner.fit(X, y).summary([.01, .05, .1]).round(3).to_string())
                coverage   risk  threshold  would_certify
        target
        0.01       0.000    NaN        inf          False
        0.05       0.499  0.032      0.751           True
        0.10       1.000  0.081      0.000           True
        """
        selection = self._find_explored()
        index = pd.Index(np.atleast_1d(targets), name="target")
        rows = [self._explore(selection, target) for target in np.atleast_1d(targets).tolist()]
        table = pd.DataFrame(rows, index, ["coverage", "risk", "threshold", "would_certify"])
        table.attrs["note"] = (
            "An exploration: choosing among these targets after looking at them voids the "
            "guarantee. Name one, and fit again on fresh rows."
        )
        objective = selection.objective
        refused = table.index[table["coverage"] == 0.0].tolist()
        if isinstance(objective, Risk) and refused:
            table.attrs["note"] += _name_smaller(objective, selection.curve, refused)
        return table

    def _find_explored(self) -> results.ThresholdSelection:
        """Return the selection; refuse all but one threshold with guarantees by counted errors."""
        selection = self.selection_
        curve = selection.curve
        if (
            isinstance(selection, results.ThresholdSelection)
            and selection.objective.guarantees
            and not selection.objective.counts_deferred
            and not isinstance(self.objective, list | tuple)
            and curve.counted
            and not curve.is_graded
        ):
            return selection
        raise ValueError(
            "summary needs one threshold with a guarantee by counted errors, such as "
            "objective='risk' without group_by; for others fit once for each target."
        )

    def _explore(
        self, selection: results.ThresholdSelection, target: float
    ) -> tuple[float, float, float, bool]:
        """Return coverage and risk at another target, its threshold, and whether it certifies."""
        curve = selection.curve
        loss = selection.objective.about
        objective = copy.copy(selection.objective).set_params(target=target).check(loss)
        n_blocks = objective.find(curve).n_blocks
        coverage, risk = curve.working_point(n_blocks)
        bounded = self.estimator_._confidence_is_bounded
        threshold = threshold_below(curve, n_blocks, bounded=bounded)
        certificate = cast(Certificate, selection.certificate)
        # Where nothing was accepted, another target may accept something.
        is_exact = certificate.is_certified or certificate.caveats == (certificates.NOTHING.reason,)
        return coverage, loss.unit * risk, threshold, is_exact and n_blocks > 0

    def _read_rows(self, X: Any) -> RawScores:
        X = self._features(X)
        scores, y_pred, subgroups, *others = self.estimator_._read_rows(X)
        if self.group_by is not None:
            subgroups = find_subgroups(Subgroups.read(self.group_by), X)
        return scores, y_pred, subgroups, *others

    # In a notebook -----------------------------------------------------------------------

    @property
    def _repr_html_(self) -> Callable[[], str]:
        show = super()._repr_html_  # missing where scikit-learn's option "display" is not "diagram"
        return lambda: self._show_selection() + show()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        shown = super()._repr_mimebundle_(**options)
        if "text/html" in shown:
            shown["text/html"] = self._show_selection() + shown["text/html"]
        return shown

    def _show_selection(self) -> str:
        """Return the threshold and what is guaranteed about it, "" before `fit`."""
        if not self.__sklearn_is_fitted__():
            return ""
        return self.selection_._card()

    # scikit-learn ------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "policy_" in vars(self)


@dataclass(frozen=True, eq=False)
class _Plan:
    """What a fit is to do, checked before anything is trained.

    Parameters
    ----------
    base : SelectiveClassifier
        How answers are found; without a threshold, and fitted where a frozen one is.
    rows : TrainingRows
    objectives : Objective, or list or mapping of them
    loss : str, callable or ndarray
        How a row's loss is computed.
    reviewer : ndarray of shape (n,) or None
        Codes of a reviewer's answers.
    shortlist : Shortlist or None
    subgroups : DataFrame or None
        The subgroup of each row; None without subgroups, and where the answers are these.
    by_chance : bool, default=False
        Whether rows drawn by chance have named the levels of a rule.
    """

    base: SelectiveClassifier
    rows: TrainingRows
    objectives: Objectives
    loss: arrays.LossSpec
    reviewer: Any
    shortlist: Shortlist | None
    subgroups: Any
    by_chance: bool = False

    @property
    def objective(self) -> Objective:
        """The objective, the first of several."""
        return first_of(self.objectives)

    @property
    def loss_meaning(self) -> Loss:
        """What a row's loss means."""
        return Loss.of(self.loss, self.rows.rule)


@dataclass(frozen=True, eq=False)
class _Tested:
    """The rows that choose a threshold, what was decided of them, and how.

    Parameters
    ----------
    unseen : OutOfFold
        The rows, as models decide them that did not see them.
    model : SelectiveClassifier or None
        What decided them, where it is the final one.
    caveats : tuple of Caveat
    splits : list, default=[]
        Those that a user named.
    advice : str, default=HOLD_OUT_LATEST
        What to do where the order of the rows matters, "" where that is not tested: the models of a
        splitter's folds may change along the rows.
    scored : OutOfFold or None, default=None
        The raw scores of the folds, where they serve the calibration of the refit too.
    trained : ndarray or None, default=None
        The confidence of rows that trained the final model.
    """

    unseen: OutOfFold
    model: SelectiveClassifier | None
    caveats: tuple[Caveat, ...]
    splits: Splits = field(default_factory=list)
    advice: str = order.HOLD_OUT_LATEST
    scored: OutOfFold | None = None
    trained: arrays.FloatArray | None = None


class _HashedTables:
    """The hashes of tables, computed once for each: one table may stand for several models."""

    def __init__(self) -> None:
        self._by_id: dict[int, seen_rows.HashedRows] = {}

    def of(self, table: Any) -> seen_rows.HashedRows:
        """Return the hashes of a table, which lives as long as this."""
        if id(table) not in self._by_id:
            self._by_id[id(table)] = seen_rows.hash_rows(table)
        return self._by_id[id(table)]


@dataclass(frozen=True, eq=False)
class _Records:
    """Which rows trained the parts of a model, as far as these keep a record.

    Parameters
    ----------
    pairs : list of (SeenRows, HashedRows)
        Each record, and the rows to be looked for as its part got them.
    are_all : bool
        Whether every part keeps one.
    """

    pairs: list[tuple[seen_rows.SeenRows, seen_rows.HashedRows]]
    are_all: bool

    @classmethod
    def of(cls, model: SelectiveClassifier, X: Any, hashed: _HashedTables) -> _Records:
        """Return the records of a model, and X hashed as its parts get it."""
        records = find_records(model, X)
        kept_records = [pair for pair in records if pair is not None]
        pairs = [(record, hashed.of(table)) for record, table in kept_records]
        return cls(pairs, len(pairs) == len(records))

    @property
    def are_complete(self) -> bool:
        """Whether each holds all rows that trained its part."""
        return all(record.complete for record, _ in self.pairs)

    @property
    def are_old(self) -> bool:
        """Whether one does not say how many of its rows are equal by chance."""
        return any(record.twins is None for record, _ in self.pairs)

    def recognise_all(self, rows: seen_rows.HashedRows) -> bool:
        """Tell whether equal ones of these rows are no chance, as the training rows of a part."""
        return any(record.is_of_few_twins for record, table in self.pairs if table is rows)

    @cached_property
    def overlaps(self) -> list[seen_rows.Overlap]:
        """The overlap of each part."""
        return [record.overlap(rows) for record, rows in self.pairs]

    def find_largest_overlap(self) -> seen_rows.Overlap:
        """Return the overlap of the part that has seen the largest share of the rows."""
        nothing = seen_rows.Overlap(0, seen_rows.LEAST)
        return max(self.overlaps, key=lambda overlap: overlap.share, default=nothing)

    def count_others(self) -> int:
        """Return how many rows, beyond chance, trained a part but cannot be recognised."""
        return max((overlap.n_others for overlap in self.overlaps), default=0)

    def find_seen(self) -> arrays.BoolArray:
        """Return which rows trained any part."""
        seen_by_part = [record.find(rows) for record, rows in self.pairs]
        return np.asarray(np.any(seen_by_part, axis=0))


def _name_smaller(objective: Risk, curve: RiskCoverageCurve, refused: list[float]) -> str:
    """Name a target that is met although a larger one is refused, "" where there is none."""
    least, coverage = objective.find_least_target(curve)
    if least is None or coverage is None:
        return ""
    larger = [f"{target:g}" for target in refused if target > least]
    if not larger:
        return ""
    return (
        f" This rule answers {100.0 * coverage:.0f} % at {least:g} and nothing at "
        f"{', '.join(larger)}: name {least:g}."
    )


def _is_fitted(base: SelectiveClassifier) -> bool:
    """Tell whether it is a classifier that was frozen after its fit."""
    return hasattr(base, "_raw_classifier")


def _share_held_out(plan: _Plan) -> float:
    """Return the share of rows that certifies: a larger one where a risk needs more of them.

    Where every guarantee is about a true class, the rows of that class count. The guarantee holds
    given the numbers of rows of each class, so that these may be read from all labels. Any other
    guarantee needs a share that no label of a certifying row decides.
    """
    guarantees = list(each_of(plan.objectives))
    are_of_classes = all(guarantee.given_class is not None for guarantee in guarantees)
    if not are_of_classes:
        guarantees = [plan.objective]
    share = HELD_OUT
    for guarantee in guarantees:
        if isinstance(guarantee, Risk | GeneralizedRisk):
            n_rows = len(plan.rows.codes)
            if are_of_classes:
                n_rows = _count_class(plan.rows, guarantee.given_class)
            share = max(share, _share_wanted(plan, guarantee, n_rows, len(guarantees)))
    return min(share, MOST_HELD_OUT)


def _count_class(rows: TrainingRows, label: Any) -> int:
    """Return how many rows are of a class; all where it does not occur, which is refused later."""
    n_of_class = int(np.count_nonzero(rows.classes[rows.codes] == label))
    return n_of_class or len(rows.codes)


def _share_wanted(
    plan: _Plan, guarantee: Risk | GeneralizedRisk, n_rows: int, n_sharing: int
) -> float:
    """Return the share of so many rows that leaves a guarantee some room for errors."""
    rows = plan.rows
    has_costs = rows.rule.cost_matrix is not None
    loss = Loss.of(guarantee.choose_loss(has_costs=has_costs), rows.rule)
    level = guarantee.delta / guarantee.max_analyses / n_sharing
    n_wanted = _ROOM_FOR_ERRORS * math.log(1.0 / level) * loss.unit / guarantee.target
    return math.ceil(100.0 * n_wanted / n_rows) / 100.0


def _choose_start(
    objectives: Objectives, model: SelectiveClassifier | None, sample: Sample
) -> Objectives:
    """Let out-of-fold rows of the training part choose where the sequence of a rule begins.

    They do not certify, so that the certificate is exact whatever they say. The rule stays as it
    is for subgroups and one class, and unless they say that another one accepts clearly more.
    """
    if model is None or sample.groups is not None or not sample.loss.is_error:
        return objectives
    if not isinstance(objectives, Risk) or not objectives.is_open or objectives.is_of_class:
        return objectives
    training = model._decide_unseen()
    if training is None:
        return objectives
    level = objectives.delta / objectives.max_analyses
    least = objectives.least_coverage(len(sample))
    arguments = (len(sample), objectives.target, level, least)
    wrong = (~training.right).astype(np.float64)
    curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, training.confidence))
    rule = choose_combined(curve, *arguments)
    if rule is None or rule == default_combined(*arguments):
        return objectives
    return replace(objectives, method=rule)


def _rate_training_rows(tested: _Tested, plan: _Plan) -> arrays.FloatArray | None:
    """Return the confidence of up to 1,000 rows that trained the classifier, if it is kept.

    None where nothing is guaranteed, or no row given trained it.
    """
    model = tested.model
    rows = plan.rows
    trains = np.zeros(len(rows.codes), dtype=bool)
    if tested.splits:
        train, _ = tested.splits[0]
        trains[train] = True
    else:
        trains[:] = True
    trains[tested.unseen.rows] = False
    if model is None or not plan.objective.guarantees or not np.any(trains):
        return None
    some = some_of(np.flatnonzero(trains))
    decided = model._decide_by(model, rows, take_rows(rows.X, some))
    confidence: arrays.FloatArray = decided["confidence"]
    return confidence


def _name_difference(
    counts: arrays.IntArray, trained: arrays.IntArray, classes: arrays.LabelArray
) -> str:
    """Name the class whose share differs most from that among the rows of training."""
    here = counts / counts.sum()
    there = trained / trained.sum()
    k = np.argmax(np.round(np.abs(here - there), 9))
    label = shown(classes.tolist()[k])
    return f"class {label} is {percent(here[k])} of these rows and {percent(there[k])} of"


def _find_unknown(tested: _Tested, rows: TrainingRows) -> arrays.BoolArray | None:
    """Return the rows whose class the final model does not know: its training rows may lack it."""
    if tested.model is None:
        return None
    model_classes = tested.model.classes_
    check_enough_classes(len(model_classes))
    return ~np.isin(rows.classes[tested.unseen.codes], model_classes)


# Subgroups -----------------------------------------------------------------------------------


def name_groups(group_by: Any) -> str:
    """Return a name for the subgroups, for messages."""
    if callable(group_by):
        return getattr(group_by, "__name__", "subgroup").replace("<lambda>", "subgroup")
    columns = group_by if isinstance(group_by, list | tuple) else [group_by]
    return " and ".join(str(column) for column in columns)


def find_subgroups(by: Subgroups, X: Any) -> Any:
    """Return the subgroup of each row of X; None where the answers are the subgroups."""
    group_by = by.by
    names = arrays.column_names(X)
    if by.by_answer:
        if group_by in (names or []):
            raise ValueError(
                f"group_by={group_by!r} means the answers, but X has a column of that name too; "
                f"rename it, or pass a function such as lambda X: X[{group_by!r}]."
            )
        return None
    if callable(group_by):
        return check_subgroups(group_by(X), count_rows(X), "group_by", "X")
    if hasattr(group_by, "shape"):
        raise ValueError(
            f"group_by={shown(group_by)}: it names columns of X, or computes them of X, so that "
            "new rows have them, too. Put the subgroups into X, or choose the threshold from a "
            "table: select_threshold(y_true, y_proba, subgroups=...)."
        )
    columns = list(group_by) if isinstance(group_by, list | tuple) else [group_by]
    if names is not None:
        _check_columns(group_by, columns, names)
        return arrays.take_columns(X, columns)
    table = np.asarray(X)
    positions = list(range(table.shape[1])) if table.ndim == 2 else []
    _check_columns(group_by, columns, positions)
    return pd.DataFrame({column: table[:, column] for column in columns})


def _check_columns(group_by: Any, columns: list[Any], column_names: list[Any]) -> None:
    """Refuse columns that X has not."""
    missing = [
        column
        for column in columns
        if not isinstance(column, str | int) or column not in column_names
    ]
    if missing or not columns:
        raise ValueError(
            f"group_by={shown(group_by)}: X has no column {shown(missing)}; it has "
            f"{column_names[:20]}. Pass columns of a dense X, a function of X, or "
            "'predicted_class'."
        )


def check_decided_by_row(by: Subgroups, X: Any, subgroups: Any) -> None:
    """Refuse a function for which the subgroup of a row depends on the other rows.

    It is called on each half of the rows, and on up to 20 rows alone.
    """
    if not callable(by.by):
        return
    n_rows = len(subgroups)
    alone = np.linspace(0, n_rows - 1, min(n_rows, 20)).astype(np.int64)[:, None]
    halves = np.array_split(np.arange(n_rows), 2)
    for rows in [*alone, *halves]:
        _check_part(by.by, X, subgroups, rows)


def _check_part(
    group_by: Callable[[Any], Any], X: Any, subgroups: Any, rows: arrays.IntArray
) -> None:
    """Refuse a function that puts rows into other subgroups when it sees these alone."""
    called_on = f"rows {rows[0]} to {rows[-1]}" if len(rows) > 1 else f"row {rows[0]} alone"
    try:
        part = check_subgroups(group_by(take_rows(X, rows)), len(rows), "group_by", "X")
        if part.shape[1] != subgroups.shape[1]:
            widths = f"{part.shape[1]} columns there, {subgroups.shape[1]} for all rows"
            raise ValueError(widths)  # noqa: TRY301 - said below
    except Exception as error:
        raise ValueError(
            f"group_by: the function fails on {called_on} ({error!r}). {_BY_ROW}"
        ) from error
    among_all, among_part, names = _encode_alike(subgroups.iloc[rows], part)
    differs = np.flatnonzero(among_all != among_part)
    if len(differs):
        first_row = differs[0]
        raise ValueError(
            f"group_by: the function looks at rows together. Called on {called_on}, it puts row "
            f"{rows[first_row]} into {names[among_part[first_row]]!r}; among all {len(subgroups)} "
            f"rows it is in {names[among_all[first_row]]!r}. {_BY_ROW}"
        )


def _encode_alike(
    subgroups: pd.DataFrame, others: pd.DataFrame
) -> tuple[arrays.IntArray, arrays.IntArray, list[Any]]:
    """Return the codes of two tables of subgroups, and their names; the last is for code -1."""
    tables = [table.astype(object).to_numpy() for table in (subgroups, others)]
    n_rows = len(subgroups)
    codes, keys = subgroup_codes(pd.DataFrame(np.concatenate(tables)), 2 * n_rows)
    return codes[:n_rows], codes[n_rows:], [*keys, None]
