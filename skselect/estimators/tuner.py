"""Find the confidence above which a classifier may decide alone."""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import check_is_fitted, indexable

from skselect._lib import arrays
from skselect._lib.checks import options as option_checks
from skselect._lib.checks import shown, warn_user
from skselect._lib.checks.rows import check_importance, check_subgroups
from skselect._lib.notebook import percent
from skselect._lib.sklearn import (
    CallbackSupportMixin,
    count_rows,
    routing_enabled,
    take_rows,
    with_callbacks,
)
from skselect.curve.curve import RiskCoverageCurve, threshold_below
from skselect.estimators.base import AbstainingMixin, RawScores, find_frozen, find_records
from skselect.estimators.classifier import SelectiveClassifier, check_y, make_rows, warn_if_fitted
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
from skselect.policy import certificate as certificates
from skselect.policy import seen_rows
from skselect.policy.certificate import Caveat, Certificate
from skselect.policy.policy import AbstentionPolicy
from skselect.policy.subgroups import Subgroups, check_enough_classes, subgroup_codes
from skselect.predictions.confidence import check_confidence_by_row
from skselect.predictions.decisions import DecisionRule
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions, encode_reviewer
from skselect.selection import order, results
from skselect.selection import pick as picking
from skselect.selection.sample import Grouping, Sample
from skselect.thresholds import Shortlist
from skselect.thresholds._sequences import are_tied, choose_combined, default_combined

# Under cv="auto" a larger share certifies, up to this one, where the usual share is less than so
# many times the rows that certify without any error.
_MOST_HELD_OUT, _ROOM_FOR_ERRORS = 0.6, 1.5
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
    AbstainingMixin, ClassifierMixin, MetaEstimatorMixin, CallbackSupportMixin, BaseEstimator
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
          rows of a class are like that). Rows that are never tested only train.
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
            not exact.
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
        base = self._base()
        objectives, loss = self._check_objective(base)
        (X, y), objective = indexable(X, y), first_of(objectives)
        if reviewer_pred is not None or isinstance(objective, SystemRisk):
            X, reviewer_pred = self._split_reviewer(objective, X, reviewer_pred)
        given = fit_params if groups is None else fit_params | {"groups": groups}
        rows = self._check_rows(base, objective, X, y, sample_weight, given)
        said, name = reviewer_pred, "reviewer_pred"
        reviewer = None if said is None else encode_reviewer(said, rows.classes, len(rows.y), name)
        asked, subgroups, stated = self.shortlist, None, objectives
        if asked is not None:
            asked = results.check_shortlist(
                asked, rows.weight, len(rows.classes), self.random_state
            )
        if self.group_by is not None:
            subgroups = find_subgroups(by := Subgroups.read(self.group_by), X)
            check_decided_by_row(by, X, subgroups)

        fits = Fits(self, X, rows.y)
        unseen, tested = self._predict_rows(base, rows, objective, fits)
        model, what, seed = (
            tested.model,
            Loss.of(loss, rows.rule),
            option_checks.check_seed(self.random_state),
        )
        trained = _rate_training_rows(tested, rows, unseen, objective)
        if what.is_error and trained is not None:
            objectives, unseen = self._name_levels(
                objectives, trained, rows, unseen, subgroups, seed
            )
        if callable(base.confidence_in_use):
            check_confidence_by_row(unseen.scores, base.confidence_in_use)
        answered = None if reviewer is None else reviewer[unseen.rows]
        predictions = replace(unseen.as_predictions(rows.classes, rows.rule), reviewer=answered)
        outcomes = Outcomes.from_predictions(predictions, loss=loss)
        outcomes = replace(outcomes, readings=unseen.readings)
        caveats = self._doubt_few_errors(tested.caveats, objective, outcomes)
        n = len(rows.codes)
        sample = Sample(
            outcomes=outcomes,
            source=replace(predictions, y_proba=None),
            groups=self._group(subgroups, predictions, unseen.rows),
            loss=what,
            bounded=base.confidence_is_bounded,
            share=min(len(outcomes) / n, 1.0),
            provenance=describe_tested(tested.splits, n, len(outcomes)) if tested.splits else "",
            fingerprints={"model": certificates.scores_fingerprint(np.asarray(unseen.scores))},
            seed=seed,
            by_chance=objectives is not stated,
        )
        sample = self._in_order(objective, tested, sample.with_reviewer(objective), unseen.rows, n)
        sample = sample.doubting(
            *(() if groups is None else (certificates.GROUPED,)),
            *caveats,
            *self._compare_classes(base, rows, tested.splits, objective),
        )
        chosen = sample.choosing(objectives, asked)
        start = _choose_start(objectives, model, chosen)
        found = picking.pick(chosen, start, self.on_infeasible)
        if min(found.thresholds.values()) < np.inf:
            sample.warn()
        values = None if sample.groups is None else sample.groups.subgroups
        if asked is not None:
            found = results.add_shortlist(
                found, asked, predictions, outcomes, values, objective=objective,
                caveats=sample.caveats, unknown=_find_unknown(model, rows.classes, unseen),
            )  # fmt: skip
        if model is None:
            model = base._fit_clone(rows, fits.tasks[-1], tested.scored)
            model._record(rows)
        self._keep(model, found, unseen, sample, tested, trained)
        fits.end()
        return self

    def _check_rows(
        self, base: SelectiveClassifier, goal: Objective, X: Any, y: Any, weight: Any, given: Any
    ) -> TrainingRows:
        """Check the rows before anything is trained.

        Groups stay together in the folds of the calibration as well.
        """
        y = check_y(y)
        check_trainable(len(y))
        split = {name: given[name] for name in given if name == "groups"}
        if routing_enabled():
            weighted = given if weight is None else given | {"sample_weight": weight}
            split = dict(process_routing(self, "fit", **weighted).splitter.split)
            wanted = base.get_metadata_routing().consumes("fit", list(given))
            given = {name: given[name] for name in wanted if name in given}
        rows = make_rows(base, X, y, weight, given, fitted=_is_fitted(base))
        if goal.guarantees:
            check_importance(rows.weight, goal.largest_weight)
        base.abstain_label = option_checks.check_abstain_label(base.abstain_label, rows.classes)
        return replace(rows, tuning_params=split)

    def _split_reviewer(self, objective: Objective, X: Any, given: Any) -> tuple[Any, Any]:
        """Return X without a reviewer's answers, and these answers."""
        if not isinstance(objective, SystemRisk):
            if given is not None:
                raise ValueError(
                    "reviewer_pred goes with objective=SystemRisk(...), not with "
                    f"{objective.name!r}; leave it out."
                )
            return X, None
        column, names = objective.reviewer, arrays.column_names(X) or []
        if column is not None:
            if given is not None:
                raise ValueError(
                    f"reviewer_pred stands beside reviewer={column!r}; pass one of the two."
                )
            if column not in names:
                raise ValueError(
                    f"reviewer={column!r}: X has no such column; it has {names[:20]}. Where X is "
                    "an array, pass fit(X, y, reviewer_pred=...)."
                )
            given = np.asarray(arrays.take_columns(X, [column]))[:, 0]
        objective.check_reviewed(answered=given is not None)
        return self._features(X), given

    def _features(self, X: Any) -> Any:
        """Return X without the column of a reviewer, which later rows need not have."""
        column, names = getattr(self.objective, "reviewer", None), arrays.column_names(X) or []
        kept = [name for name in names if name != column]
        return X if column is None or len(kept) == len(names) else arrays.take_columns(X, kept)

    def _group(
        self, subgroups: Any, predictions: Predictions, rows: arrays.IntArray
    ) -> Grouping | None:
        """Return the subgroups of the rows that choose the threshold."""
        if self.group_by is None:
            return None
        by = Subgroups.read(self.group_by)
        values = predictions.answers if by.by_answer else take_rows(subgroups, rows)
        return Grouping(name_groups(by.by), values, len(rows), by.by_answer, by.unseen)

    def _predict_rows(
        self, base: SelectiveClassifier, rows: TrainingRows, objective: Objective, fits: Fits
    ) -> tuple[OutOfFold, _Tested]:
        """Decide the rows that choose the threshold, and say what is known of them."""
        n, cv, ready = len(rows.codes), self.cv, is_ready(base.estimator)
        if _is_fitted(base) or (ready and not base._learns):
            fits.begin(0)
            model = base if _is_fitted(base) else base._fit_clone(rows)
            chosen, splits, X = np.arange(n), [], rows.X
            if not (cv is None or isinstance(cv, str | numbers.Real)):
                chosen = find_tested_rows(read_splits(cv, rows, rows.tuning_params))
                check_weighted_part(rows.weight, chosen, "the part that cv tests")
            if len(chosen) < n:
                splits, X = [(np.setdiff1d(np.arange(n), chosen), chosen)], take_rows(X, chosen)
            unseen = OutOfFold.of(rows, chosen, **base._decide_by(model, rows, X))
            unseen, caveats = self._compare_rows(base, rows, unseen, objective)
            return unseen, _Tested(model, caveats, splits, order.TAKE_LATEST)
        # A guarantee, or a list with rows set apart, is about the classifier held to it.
        sets_apart = isinstance(self.shortlist, Shortlist) and self.shortlist.share > 0
        wants_exact = objective.guarantees or sets_apart
        refits = not isinstance(self.refit, str) and bool(self.refit)
        if isinstance(cv, str):
            holds_out = wants_exact and not refits and n * HELD_OUT >= LEAST_HELD_OUT
            share = _share_held_out(objective, rows) if self.group_by is None else HELD_OUT
            cv = share if holds_out else 5
        is_share = isinstance(cv, float | np.floating)
        if is_share:
            groups = rows.tuning_params.get("groups")
            splits = [holdout(float(cv), n, groups, self.random_state)]
        else:
            splits = read_splits(cv, rows, rows.tuning_params, self.random_state)
        held_out, kept = len(splits) == 1, not refits
        if isinstance(self.refit, str):
            kept = held_out and wants_exact
        if held_out:
            name = f"cv={cv:g}" if is_share else "cv"
            model, unseen = base._decide_held_out(rows, splits, name, fits, kept=kept)
            unseen, caveats = self._compare_rows(model, rows, unseen, objective)
            named = [] if is_share else splits
            if kept:
                return unseen, _Tested(model, caveats, named)
            return unseen, _Tested(None, (certificates.REFITTED, *caveats), named)
        if kept:
            raise ValueError(
                "refit=False needs one fitted classifier to keep: use a float cv such as cv=0.3, "
                "one split cv=[(train, test)], or pass FrozenEstimator(fitted classifier)."
            )
        check_folds(splits, rows)
        unseen, scored = base._decide_folds(rows, splits, self.n_jobs, fits)
        caveat = certificates.SAME_ROWS if ready else certificates.FOLD_MODELS
        advice = order.HOLD_OUT_LATEST if cv is None or isinstance(cv, numbers.Integral) else ""
        return unseen, _Tested(None, (caveat,), splits, advice, scored)

    def _compare_rows(
        self, model: SelectiveClassifier, rows: TrainingRows, unseen: OutOfFold, goal: Objective
    ) -> tuple[OutOfFold, tuple[Caveat, ...]]:
        """Return the rows to be read with and without those seen before or twice, and caveats.

        Where more than a fifth of them trained the classifier or what it asks, or not all that did
        are known, no reading is a fair sample: an estimate.
        """
        if not (goal.guarantees or self.shortlist is not None):
            return unseen, certificates.NO_CAVEATS
        vouched = "fresh" in certificates.check_vouched(self.assume)
        X = rows.X if len(unseen.rows) == len(rows.codes) else take_rows(rows.X, unseen.rows)
        records = find_records(model, X)
        known = [one for one in records if one is not None]
        no_record = certificates.FRESH_BY_WORD if vouched else certificates.NO_RECORD
        caveats = [] if len(known) == len(records) else [no_record]
        is_precomputed = isinstance(find_inner(model.estimator), PrecomputedClassifier)
        tables = [table for _, table in known] + ([] if is_precomputed else [X])
        hashed = {key: seen_rows.hash_rows(x) for key, x in {id(x): x for x in tables}.items()}
        overlaps = [record.overlap(hashed[id(table)]) for record, table in known]
        most = max(
            overlaps, key=lambda one: one.share, default=seen_rows.Overlap(0, seen_rows.LEAST)
        )
        seen = np.zeros(len(unseen.rows), dtype=bool)
        if most.share > 0:
            all_known = all(record.complete for record, _ in known)
            limit = certificates.MOST_SEEN if all_known else _MOST_UNKNOWN
            few = not vouched and most.share <= limit
            asks = isinstance(model.confidence, ConfidenceLearner)
            caveats.insert(0, certificates.trained_here(most, few=few, asks=asks, vouched=vouched))
            if few:
                seen = np.any([record.find(hashed[id(table)]) for record, table in known], axis=0)
            elif not vouched:
                warn_user(f"No certificate: {caveats[0].reason}.")
        elif not caveats and not most.is_checked:
            caveats.append(certificates.NOTHING_CHECKED)
        copies = None if is_precomputed else seen_rows.find_copies(hashed[id(X)], unseen.codes)
        if copies is None:  # X are predictions, or no row of X can be recognised
            _, sizes = np.unique(unseen.confidence, return_counts=True)
            copies = seen_rows.find_tied_copies(
                unseen.confidence, sizes, unseen.codes, unseen.y_pred
            )
        caveats += certificates.copied_here(copies)
        return replace(unseen, readings=seen_rows.with_and_without(seen, copies)), tuple(caveats)

    def _doubt_few_errors(
        self, caveats: tuple[Caveat, ...], goal: Objective, outcomes: Outcomes
    ) -> tuple[Caveat, ...]:
        """Say beside a frozen part that next to no row is wrong, as if they had trained it."""
        n_errors, n = int(np.count_nonzero(outcomes.loss)), len(outcomes)
        is_exact = goal.guarantees or self.shortlist is not None
        known = any(one.violates == certificates.FRESH for one in caveats)
        settled = known or "fresh" in certificates.check_vouched(self.assume)
        if not is_exact or settled or n_errors >= _TOO_GOOD * n or not find_frozen(self.estimator):
            return caveats
        few = f"{n_errors} of {n} rows are answered wrongly, as if they had trained the classifier"
        warns = (
            "Did these rows train the frozen classifier? Almost none is answered wrongly. Only "
            "rows that it has never seen certify it. If they are fresh, say so: assume='fresh'."
        )
        return (*caveats, Caveat(few, strikes=False, warns=warns))

    def _name_levels(
        self,
        objectives: Objectives,
        trained: arrays.FloatArray,
        rows: TrainingRows,
        unseen: OutOfFold,
        subgroups: Any,
        seed: int,
    ) -> tuple[Objectives, OutOfFold]:
        """Where confidences are tied, let a tenth of the rows name the levels that the others test.

        Rows that trained the classifier tell by their confidence whether they are tied. The rows
        that certify must not choose the rule.
        """
        wanted = any(isinstance(one, Risk) and one.is_open for one in each_of(objectives))
        wanted &= not isinstance(objectives, list)  # which compares thresholds by their rows
        n_levels = len(np.unique(trained))
        if not wanted or n_levels == 1 or not are_tied(n_levels, len(trained)):
            return objectives, unseen
        predictions = unseen.as_predictions(rows.classes, rows.rule)
        members = self._group(subgroups, predictions, unseen.rows)
        objectives, names = picking.name_levels(
            predictions, unseen.confidence, objectives, members, seed
        )
        return objectives, unseen.take(~names)

    def _in_order(
        self, objective: Objective, tested: _Tested, sample: Sample, rows: arrays.IntArray, n: int
    ) -> Sample:
        """Return the rows with the caveat that they depend on their order, if they do."""
        advice, vouched = tested.advice, "independent" in certificates.check_vouched(self.assume)
        if not advice:
            return sample
        if tested.splits and are_last(tested.splits, n):
            advice = order.LEAVE_MARGIN
        found = sample.take(np.argsort(rows)).in_order(objective, advice, vouched=vouched)
        return replace(sample, caveats=found.caveats)

    def _compare_classes(
        self, base: SelectiveClassifier, rows: TrainingRows, splits: Splits, goal: Objective
    ) -> tuple[Caveat, ...]:
        """Return the caveat about classes that are balanced, or unlike those of training.

        A guarantee about one class does not depend on their shares; weights may set these right.
        """
        vouched = "balanced" in certificates.check_vouched(self.assume)
        wanted = goal.guarantees or self.shortlist is not None
        if not (wanted and goal.given_class is None and arrays.are_constant(rows.weight)):
            return ()
        trained = getattr(base, "_class_counts", None)
        codes = rows.codes[splits[0][1]] if splits and trained is not None else rows.codes
        counts = np.bincount(codes, minlength=len(rows.classes))
        spread = np.ptp(counts)
        if trained is not None and order.class_p_value(counts, trained) <= order.CLASS_LEVEL:
            here, there = counts / counts.sum(), trained / trained.sum()
            k = np.argmax(np.round(np.abs(here - there), 9))
            label = shown(rows.classes.tolist()[k])
            found = f"class {label} is {percent(here[k])} of these rows and {percent(there[k])} of"
            caveat = certificates.other_classes(
                found, order.CLASS_LEVEL, equal=bool(spread <= 1), vouched=vouched
            )
            if caveat.strikes:
                warn_user(f"No certificate: {caveat.reason}.")
            return (caveat,)
        equal = len(counts) > 1 and spread == 0 and len(codes) >= _FEW_ROWS
        return (certificates.equal_classes(int(counts[0])),) if equal else ()

    # What is looked for ------------------------------------------------------------------

    def _check_objective(self, base: SelectiveClassifier) -> tuple[Objectives, arrays.LossSpec]:
        """Check every argument before anything is trained; return the objectives and the loss."""
        base._check_parameters()
        if isinstance(self.refit, str) and self.refit != "auto":
            raise ValueError(f"refit must be True, False or 'auto', got {self.refit!r}.")
        check_cv(self.cv, takes_share=True)
        option_checks.check_choice("on_infeasible", self.on_infeasible, ["raise", "abstain"])
        certificates.check_vouched(self.assume)
        costs = None if base.cost_matrix is None else option_checks.check_costs(base.cost_matrix)
        stated = read_objective(self.objective, self.target, self.delta)
        loss = first_of(stated).choose_loss(has_costs=costs is not None)
        what = Loss.of(loss, DecisionRule(base.decision, costs))
        objectives = check_objective(stated, what, base.confidence_in_use)
        if self.group_by is None:
            for_all_rows(objectives)
        else:
            refuse_given(objectives, "group_by: each subgroup has its own guarantee.")
        if isinstance(base.estimator, StagedClassifier) and not _is_fitted(base):
            self._plan_cascade(base.estimator, objectives, what)
        return objectives, loss

    def _base(self) -> SelectiveClassifier:
        """Return a SelectiveClassifier without threshold; it is fitted where a frozen one is."""
        option_checks.check_has_fit(given := self.estimator)
        inner = getattr(given, "estimator", None)
        if isinstance(given, FrozenEstimator) and isinstance(inner, SelectiveClassifier):
            check_is_fitted(inner)
            base = copy.copy(inner)
        else:
            wraps = isinstance(given, SelectiveClassifier)
            warn_if_fitted(inner if wraps and not hasattr(given, "estimator_") else given)
            base = clone(given) if wraps else SelectiveClassifier(clone(given))
        # By its name: importing the class would import most of scikit-learn.
        if type(base.estimator).__name__ == "CalibratedClassifierCV":
            warn_user(
                "estimator: a CalibratedClassifierCV fits folds of its own inside each fold here. "
                "SelectiveClassifier(classifier, calibration='platt') calibrates with the folds "
                "that are fitted anyway."
            )
        base.threshold = None
        base.random_state = self.random_state if base.random_state is None else base.random_state
        return base

    def _plan_cascade(self, cascade: StagedClassifier, objectives: Objectives, loss: Loss) -> None:
        """Tell a cascade the seed, and the risk of errors asked for, unless it has its own."""
        targets = [one.target for one in each_of(objectives) if isinstance(one, Risk)]
        target = min(targets) if targets and loss.is_error else None
        cascade._plan_for(target, self.random_state)

    # What is kept --------------------------------------------------------------------------

    def _keep(
        self,
        model: SelectiveClassifier,
        found: results.ThresholdSelection | results.GroupedSelection,
        unseen: OutOfFold,
        sample: Sample,
        tested: _Tested,
        trained: arrays.FloatArray | None,
    ) -> None:
        outcomes, groups = sample.outcomes, sample.groups
        values = None if groups is None else groups.subgroups
        accepted = found.accepts(outcomes.confidence, values)
        own = vars(model._make_policy())
        decides = {"abstain_label": model.abstain_label, "created": certificates.now()}
        if (rule := own["cascade"]) is not None:
            is_fresh = not any(one.strikes for one in sample.caveats)
            decides["cascade"] = rule.count_asked(unseen.stage, is_fresh=is_fresh)
        policy = results.make_policy(
            found, outcomes, accepted, model_print=sample.fingerprints["model"],
            rated_by_others=tested.model is None, trained=trained, **(own | decides),
        )  # fmt: skip
        self.policy_: AbstentionPolicy = policy
        model.threshold = found.threshold if found.groups is None else None
        model._unseen = None
        self.estimator_: SelectiveClassifier = model
        self.selection_ = replace(found, policy=policy)
        self.curve_ = found.curve
        self.certificates_ = found.certificates
        self.thresholds_ = found.thresholds
        self.cv_results_ = unseen.per_fold(outcomes, accepted)

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
        if by := self.policy_.parts.by:
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
            been named first. ``attrs["note"]`` says that this is an exploration.

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
        found = self.selection_
        counts = found.curve.counted and not found.curve.is_graded
        if (
            isinstance(found, results.GroupedSelection)
            or not (counts and found.objective.guarantees)
            or (isinstance(found.objective, SystemRisk) and found.objective.counts_deferred)
            or isinstance(self.objective, list | tuple)
        ):
            raise ValueError(
                "summary needs one threshold with a guarantee by counted errors, such as "
                "objective='risk' without group_by; for others fit once for each target."
            )
        curve, bounded = found.curve, self.estimator_.confidence_is_bounded
        only = (certificates.NOTHING.reason,)  # another target may accept something
        own = cast(Certificate, found.certificate)
        exact = own.is_certified or own.caveats == only
        rows, loss = [], found.objective.about
        for target in np.atleast_1d(targets).tolist():
            objective = copy.copy(found.objective).set_params(target=target).check(loss)
            n_blocks = objective.find(curve).n_blocks
            coverage, risk = curve.working_point(n_blocks)
            threshold = threshold_below(curve, n_blocks, bounded=bounded)
            rows.append((coverage, loss.unit * risk, threshold, exact and n_blocks > 0))
        columns = ["coverage", "risk", "threshold", "would_certify"]
        table = pd.DataFrame(rows, pd.Index(np.atleast_1d(targets), name="target"), columns)
        table.attrs["note"] = (
            "An exploration: choosing among these targets after looking at them voids the "
            "guarantee. Name one, and fit again on fresh rows."
        )
        return table

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


class _Tested(NamedTuple):
    """What is known of the rows that choose a threshold, beside what was decided of them.

    `model` decided them, where it is the final one. `splits` are those that a user named, else
    empty. `advice` is what to do where the order of the rows matters, "" where that is not tested:
    the models of a splitter's folds may change along the rows. `scored` are the raw scores of the
    folds that serve the calibration of the refit too.
    """

    model: SelectiveClassifier | None
    caveats: tuple[Caveat, ...]
    splits: Splits
    advice: str = order.HOLD_OUT_LATEST
    scored: OutOfFold | None = None


def _share_held_out(objective: Objective, rows: TrainingRows) -> float:
    """Return the share of rows that certifies: a larger one where a risk needs more of them."""
    if not isinstance(objective, Risk | GeneralizedRisk):
        return HELD_OUT
    has_costs, level = rows.rule.cost_matrix is not None, objective.delta / objective.max_analyses
    loss = Loss.of(objective.choose_loss(has_costs=has_costs), rows.rule)
    wanted = _ROOM_FOR_ERRORS * math.log(1.0 / level) * loss.unit / objective.target
    share = math.ceil(100.0 * wanted / len(rows.codes)) / 100.0
    return min(max(HELD_OUT, share), _MOST_HELD_OUT)


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
    if (other := model._decide_unseen()) is None:
        return objectives
    level = objectives.delta / objectives.max_analyses
    given = len(sample), objectives.target, level, objectives.min_coverage
    wrong = (~other.right).astype(np.float64)
    curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, other.confidence))
    rule = choose_combined(curve, *given)
    if rule is None or rule == default_combined(*given):
        return objectives
    return replace(objectives, method=rule)


def _is_fitted(base: SelectiveClassifier) -> bool:
    """Tell whether it is a classifier that was frozen after its fit."""
    return hasattr(base, "_raw_classifier")


def _rate_training_rows(
    tested: _Tested, rows: TrainingRows, unseen: OutOfFold, goal: Objective
) -> arrays.FloatArray | None:
    """Return the confidence of up to 1,000 rows that trained the classifier, if it is kept.

    None where nothing is guaranteed, or no row given trained it.
    """
    is_given = np.zeros(len(rows.codes), dtype=bool)
    is_given[tested.splits[0][0] if tested.splits else slice(None)] = True
    is_given[unseen.rows] = False
    trained, model = np.flatnonzero(is_given), tested.model
    if model is None or not goal.guarantees or len(trained) == 0:
        return None
    X = take_rows(rows.X, some_of(trained))
    confidence: arrays.FloatArray = model._decide_by(model, rows, X)["confidence"]
    return confidence


def _find_unknown(
    model: SelectiveClassifier | None, classes: arrays.LabelArray, unseen: OutOfFold
) -> arrays.BoolArray | None:
    """Return the rows whose class the final model does not know: its training rows may lack it."""
    if model is None:
        return None
    check_enough_classes(len(model.classes_))
    return ~np.isin(classes[unseen.codes], model.classes_)


# Subgroups -----------------------------------------------------------------------------------


def name_groups(group_by: Any) -> str:
    """Return a name for the subgroups, for messages."""
    if callable(group_by):
        return getattr(group_by, "__name__", "subgroup").replace("<lambda>", "subgroup")
    columns = group_by if isinstance(group_by, list | tuple) else [group_by]
    return " and ".join(str(column) for column in columns)


def find_subgroups(by: Subgroups, X: Any) -> Any:
    """Return the subgroup of each row of X; None where the answers are the subgroups."""
    group_by, names = by.by, arrays.column_names(X)
    if by.by_answer:
        if group_by in (names or []):
            raise ValueError(
                f"group_by={group_by!r} means the answers, but X has a column of that name too; "
                f"rename it, or pass a function such as lambda X: X[{group_by!r}]."
            )
        return None
    if callable(group_by):
        return check_subgroups(group_by(X), count_rows(X), "group_by", "X")
    wanted = list(group_by) if isinstance(group_by, list | tuple) else [group_by]
    table = np.asarray(X) if names is None else X
    known = list(range(table.shape[1])) if names is None and table.ndim == 2 else names or []
    missing = [one for one in wanted if not isinstance(one, str | int) or one not in known]
    if missing or not wanted:
        raise ValueError(
            f"group_by={shown(group_by)}: X has no column {shown(missing)}; it has {known[:20]}. "
            "Pass columns of a dense X, a function of X, or 'predicted_class'."
        )
    if names is None:
        return pd.DataFrame({column: table[:, column] for column in wanted})
    return arrays.take_columns(X, wanted)


def check_decided_by_row(by: Subgroups, X: Any, subgroups: Any) -> None:
    """Refuse a function for which the subgroup of a row depends on the other rows.

    It is called on each half of the rows, and on up to 20 rows alone.
    """
    if not callable(by.by):
        return
    n = len(subgroups)
    alone = np.linspace(0, n - 1, min(n, 20)).astype(np.int64)[:, None]
    for rows in [*alone, *np.array_split(np.arange(n), 2)]:
        which = f"rows {rows[0]} to {rows[-1]}" if len(rows) > 1 else f"row {rows[0]} alone"
        try:
            part = check_subgroups(by.by(take_rows(X, rows)), len(rows), "group_by", "X")
            if part.shape[1] != subgroups.shape[1]:
                widths = f"{part.shape[1]} columns there, {subgroups.shape[1]} for all rows"
                raise ValueError(widths)  # noqa: TRY301 - said below
        except Exception as error:
            raise ValueError(
                f"group_by: the function fails on {which} ({error!r}). {_BY_ROW}"
            ) from error
        both = [one.astype(object).to_numpy() for one in (subgroups.iloc[rows], part)]
        codes, keys = subgroup_codes(pd.DataFrame(np.concatenate(both)), 2 * len(rows))
        among_all, here = codes.reshape(2, -1)
        other = np.flatnonzero(among_all != here)
        if len(other):
            was, now = ([*keys, None][one[other[0]]] for one in (among_all, here))
            raise ValueError(
                f"group_by: the function looks at rows together. Called on {which}, it puts row "
                f"{rows[other[0]]} into {now!r}; among all {n} rows it is in {was!r}. {_BY_ROW}"
            )
