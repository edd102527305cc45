"""Choose a threshold from a table of predictions, without an estimator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Unpack

import numpy as np

from skselect._lib.arrays import BoolArray, ConfidenceSpec, LossSpec, is_graded
from skselect._lib.checks.options import check_choice, check_seed
from skselect._lib.checks.rows import check_same_order, refuse_own_confidence
from skselect._lib.keywords import ClassOptions, share_options
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import InfeasibleTargetError
from skselect.objectives import (
    Coverage,
    Loss,
    Objectives,
    check_objective,
    each_of,
    first_of,
    for_all_rows,
    read_objective,
    refuse_given,
)
from skselect.policy import certificate as certificates
from skselect.policy.policy import External
from skselect.policy.subgroups import Subgroups, name_of_subgroups
from skselect.predictions.confidence import check_confidence_by_row
from skselect.predictions.decisions import DecisionRule
from skselect.predictions.direction import doubt_counts, find_direction_doubt, warn_of_direction
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import (
    Predictions,
    abstain_answers_of,
    cascade_of,
    check_is_predictions,
    draw_of,
    find_column_order,
    find_confidence_doubt,
    read_rows,
    refuse_unjudged,
    rows_given,
)
from skselect.selection import order, pick as picking, results
from skselect.selection.sample import Grouping, Sample
from skselect.thresholds import Shortlist


@share_options
def select_threshold(
    y_true: Any,
    y_proba: Any = None,
    *others: Any,
    objective: Any = None,
    target: Any = None,
    delta: float | None = None,
    subgroups: Any = None,
    confidence: ConfidenceSpec | None = None,
    shortlist: float | Shortlist | None = None,
    assume: str | Sequence[str] = (),
    on_infeasible: str = "raise",
    random_state: Any = 0,
    **options: Unpack[ClassOptions],
) -> results.ThresholdSelection | results.GroupedSelection:
    """Choose a threshold from a table of predictions, without an estimator.

    Parameters
    ----------
    y_true : array-like of shape (n,), or one Predictions, Outcomes or RiskCoverageCurve
        True labels. A table brings them, and stands alone. The rows did not train or calibrate
        the model. If losses or confidences depend on the order of the rows (tested at level
        0.01), a warning says so and a certificate is an estimate. Weights are refused where rows
        are counted, unless the objective has a ``largest_weight``. Rows that nobody has judged
        yet (``unjudged="wrong"`` of :class:`Predictions`) count as errors; call again whenever
        more are judged. A curve (from :meth:`SelectiveState.finalize`, say) allows no subgroups.
    y_proba : array-like of shape (n, K) or (n,), default=None
        Class probabilities.
    *others
        Refused.
    objective : Objective, list or mapping of them, or str
        What the threshold should achieve. :class:`~skselect.Risk`,
        :class:`~skselect.GeneralizedRisk`, :class:`~skselect.Coverage`,
        :class:`~skselect.SystemRisk`, :class:`~skselect.Cost` and :class:`~skselect.Best` hold all
        options; with `subgroups` each may have its own. A list holds guarantees that one threshold
        keeps together, each at an even share of their `delta`. A word is short for one: "risk",
        "generalized_risk", "coverage", "system_risk" and "cost" with a `target`, or a metric,
        "cwsa_plus", "cwsa" or "selective_accuracy".
    target : float or mapping, default=None
        The bound to keep. Give it only with a name such as "risk". With `subgroups` a mapping may
        give one target each.
    delta : float in (0, 0.5], default=None
        Probability that the guarantee fails. Give it only with a name. None: 0.05.
    subgroups : array-like of shape (n,), DataFrame, "predicted_class" or Subgroups, default=None
        The subgroup of each row. One threshold per subgroup, each certified by itself. Those with
        enough rows share `delta` evenly; smaller ones are deferred (for a coverage they accept
        everything). The policy defers rows of other subgroups, or refuses them where a
        :class:`~skselect.policy.Subgroups` says so.
    confidence : str, callable or array of shape (n,), default=None
        How sure the classifier is of each row. None: the default of the decision rule. Outcomes
        already have it.
    shortlist : float in (0, 1) or Shortlist, default=None
        Name the probable classes of each deferred case (of three or more), so that the true one is
        among them in this share of these cases. The rows that choose the threshold also set the
        list, so the share is an estimate; ``Shortlist(0.95, share=0.5)`` of ``skselect.thresholds``
        sets rows apart and makes it exact.
    assume : "independent" or (), default=()
        Assumptions you confirm although a test on the rows rejects them. "independent": the order
        of the rows means nothing, although losses or confidences change along it (the table is
        sorted by site, say). The certificate stands, and names the finding.
    on_infeasible : {"raise", "abstain"}, default="raise"
        What to do if no threshold meets the target: raise, or warn and defer everything. While some
        rows are not judged, there is only a warning if a threshold would pass with all of them
        right.
    random_state : int, Generator, RandomState or None, default=0
        The seed of the coins for weights, costs and graded losses, and of rows that name levels,
        fixed before these rows are seen; the certificate states it. None draws one, so that users
        of one table do not share their coins.
    %(options)s

    Returns
    -------
    ThresholdSelection, or GroupedSelection with `subgroups`

    Raises
    ------
    InfeasibleTargetError
        If no threshold meets the target. The error says how many rows would be enough. With
        `subgroups`, only if none of them meets it; if some do, the others are deferred with a
        warning.
    ValueError
        If an argument is malformed, or weights do not fit the objective.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, select_threshold
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(.5, 1, 2000)
    >>> wrong = rng.random(2000) < (1 - confidence) / 4
    >>> selection = select_threshold(Outcomes(wrong, confidence), objective="risk", target=.05)
    >>> print(selection)
    CERTIFIED, ...
    At most 5 % of the answers are wrong (95 % confidence).
    Tested on 2,000 cases: ... answered (... %), ... wrong; ... left to a person.
    It holds on average, while new cases are like these and the model stays the same.
    You vouch that these cases were drawn at random, that they neither trained nor chose the
      model and that no other target was tried on them.
    Check it again after about 430 labelled answers.
    """
    check_same_order(y_true=y_true, subgroups=subgroups)
    rows = rows_given(y_true, y_proba, others)
    source = read_rows(rows, (Predictions, Outcomes, RiskCoverageCurve), **options)
    check_choice("on_infeasible", on_infeasible, ["raise", "abstain"])
    requested = read_objective(objective, target, delta)
    rule = source.rule if isinstance(source, Predictions) else DecisionRule()
    loss = first_of(requested).choose_loss(has_costs=rule.cost_matrix is not None)
    loss_meaning = _find_meaning(loss, rule, source)
    objectives = check_objective(requested, loss_meaning, _name_confidence(source, confidence))
    if isinstance(source, RiskCoverageCurve):
        refuse_own_confidence(confidence, loss)
        _refuse_for_curve(subgroups=subgroups, shortlist=shortlist, assume=assume or None)
        return _choose_on_curve(source, objectives, loss_meaning, on_infeasible)
    if source.unjudged is not None:
        _refuse_for_unjudged(source, objectives, loss_meaning, shortlist)
    outcomes = _observe(source, confidence, loss)
    if shortlist is not None:
        shortlist = _check_listable(shortlist, source)
    if _is_own(source, confidence):
        warn_of_direction(outcomes.loss, outcomes.confidence, outcomes.unjudged)
    sample = Sample(
        outcomes=outcomes,
        source=source,
        loss=loss_meaning,
        bounded=_is_bounded(objectives, source, confidence),
        drawn=draw_of(source).assumed if isinstance(source, Predictions) else "",
        # The same rows are sorted once.
        sort=cache(RiskCoverageCurve.from_outcomes),
        seed=check_seed(random_state),
    )
    sample = _doubt(sample, objectives, subgroups, certificates.check_vouched(assume))
    selection = _choose(sample, objectives, shortlist, on_infeasible)
    return _add_policy(selection, sample, confidence)


def _find_meaning(loss: LossSpec, rule: DecisionRule, source: Any) -> Loss:
    """Return what a loss means: outcomes may bring losses that are no errors."""
    meaning = Loss.of(loss, rule)
    if isinstance(source, Outcomes) and is_graded(source.loss):
        return Loss("graded")
    return meaning


def _observe(
    source: Predictions | Outcomes, confidence: ConfidenceSpec | None, loss: LossSpec
) -> Outcomes:
    """Return how wrong and how sure each row is, by a confidence that reads each row alone."""
    outcomes = Outcomes.of(source, confidence=confidence, loss=loss)
    if isinstance(source, Predictions) and source.y_proba is not None and callable(confidence):
        check_confidence_by_row(source.y_proba, confidence)
    return outcomes


def _is_own(source: Predictions | Outcomes, confidence: ConfidenceSpec | None) -> bool:
    """Tell whether the confidence is the user's own, and none that has a name."""
    return isinstance(source, Outcomes) or not (confidence is None or isinstance(confidence, str))


def _choose_on_curve(
    curve: RiskCoverageCurve, objectives: Objectives, loss: Loss, on_infeasible: str
) -> results.ThresholdSelection:
    """Choose the threshold on a curve, which knows no classes."""
    for objective in each_of(objectives):
        _refuse_for_curve(
            given_prediction=objective.given_prediction, given_class=objective.given_class
        )
    try:
        return picking.pick_on_curve(curve, for_all_rows(objectives), loss, on_infeasible)
    except InfeasibleTargetError as error:
        doubt = _find_curve_doubt(curve)
        raise (error.with_doubt(doubt) if doubt else error) from None


def _find_curve_doubt(curve: RiskCoverageCurve) -> str:
    """Say that smaller confidences seem to be surer where each row counts once, else ""."""
    if curve.graded is not None or not curve.counted:
        return ""
    n_errors = curve.sums.loss
    n_right = curve.sums.weight - n_errors
    if n_errors == 0 or n_right == 0:
        return ""
    return doubt_counts(curve.sums.auroc, n_right, n_errors)


def _is_bounded(
    objectives: Objectives, source: Predictions | Outcomes, confidence: ConfidenceSpec | None
) -> bool:
    """Tell whether the confidences of later rows lie in [0, 1], too.

    A user's own may be below 0 in later rows, which a coverage must accept as well.
    """
    if any(isinstance(objective, Coverage) for objective in each_of(objectives)):
        return isinstance(_name_confidence(source, confidence), str)
    return not callable(confidence)


def _doubt(
    sample: Sample, objectives: Objectives, subgroups: Any, vouched: frozenset[str]
) -> Sample:
    """Return the rows with their subgroups, and with what is doubted of them."""
    objective = first_of(objectives)
    if subgroups is not None:
        groups = _read_subgroups(subgroups, sample.source, objectives)
        sample = replace(sample, groups=groups)
    if objective.guarantees:
        sample = sample.with_copies
    sample = sample.with_reviewer(objective)
    return sample.in_order(objective, order.TAKE_LATEST, vouched="independent" in vouched)


def _choose(
    sample: Sample, objectives: Objectives, shortlist: Shortlist | None, on_infeasible: str
) -> results.ThresholdSelection | results.GroupedSelection:
    """Choose the threshold or thresholds, and the shortlist of what they defer."""
    choosing = sample.choosing(objectives, shortlist)
    try:
        if sample.outcomes.unjudged is None:
            selection = picking.pick(choosing, objectives, on_infeasible)
        else:
            selection = _choose_while_judging(sample, choosing, objectives, on_infeasible)
    except InfeasibleTargetError as error:
        raise _explain(error, sample) from None
    if min(selection.thresholds.values()) < np.inf:
        sample.warn()
    if shortlist is None:
        return selection
    return results.add_shortlist(
        selection,
        shortlist,
        sample.source,
        sample.outcomes,
        sample.subgroups,
        objective=first_of(objectives),
    )


def _choose_while_judging(
    sample: Sample, choosing: Sample, objectives: Objectives, on_infeasible: str
) -> results.ThresholdSelection | results.GroupedSelection:
    """Choose where rows that nobody has judged yet count as errors; name those to judge next."""
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            # What passes if all of them are right.
            hope = picking.pick(choosing.if_right, objectives, on_infeasible)
    except InfeasibleTargetError as error:
        assert sample.outcomes.unjudged is not None
        n_unjudged = int(np.count_nonzero(sample.outcomes.unjudged))
        rows = "1 row that nobody has judged were"
        if n_unjudged > 1:
            rows = f"{n_unjudged:,} rows that nobody has judged were all"
        raise error.supposing(
            f"No further verdict lifts this refusal, even if the {rows} right:"
        ) from None
    if min(hope.thresholds.values()) < np.inf:
        on_infeasible = "wait"
    selection = picking.pick(choosing, objectives, on_infeasible)
    counted = _find_counted(sample, objectives)
    return results.add_waiting(selection, hope, sample.outcomes, sample.subgroups, counted)


def _find_counted(sample: Sample, objectives: Objectives) -> BoolArray | None:
    """Return the rows that some objective is about; None for all."""
    counted = np.zeros(len(sample), dtype=bool)
    for objective in each_of(objectives):
        rows_of_objective, _ = objective.find_rows(sample.source)
        if rows_of_objective is None:
            return None
        counted |= rows_of_objective
    return counted


def _explain(error: InfeasibleTargetError, sample: Sample) -> InfeasibleTargetError:
    """Return the error, or one that names what the columns or the confidence seem to be."""
    source = sample.source
    outcomes = sample.outcomes
    doubt = find_column_order(source) or find_confidence_doubt(source)
    if not doubt:
        doubt = find_direction_doubt(outcomes.loss, outcomes.confidence, outcomes.unjudged)
    if not doubt:
        return error
    return error.with_doubt(doubt)


def _refuse_for_unjudged(
    source: Predictions | Outcomes, objectives: Objectives, loss: Loss, shortlist: Any
) -> None:
    """Refuse rows not judged yet where more errors could let a threshold pass that fails."""
    for objective in each_of(objectives):
        if not objective.counts or objective.plan.caveat:
            refuse_unjudged(source, f"method={objective.method!r} of objective={objective.name!r}")
        if objective.given_class is not None:
            refuse_unjudged(source, "given_class")
        if objective.counts_deferred:
            refuse_unjudged(source, "reviewer")
    if not loss.is_error:
        refuse_unjudged(source, "a loss other than 'zero_one'")
    if shortlist is not None:
        refuse_unjudged(source, "shortlist")


def _name_confidence(source: Any, confidence: ConfidenceSpec | None) -> Any:
    """Return the confidence by its name where it has one."""
    if confidence is None and isinstance(source, Predictions) and source.confidence is None:
        return source.rule.default_confidence
    return confidence


def _read_subgroups(
    subgroups: Any, source: Predictions | Outcomes, objectives: Objectives
) -> Grouping:
    """Return the subgroup of each row, the answer where these are the subgroups."""
    requested = Subgroups.read(subgroups)
    refuse_given(objectives, "subgroups: each subgroup has its own guarantee.")
    if requested.by_answer:
        answers = check_is_predictions(source, "subgroups='predicted_class'").answers
        return Grouping(
            requested.by, answers, len(answers), by_answer=True, unseen=requested.unseen
        )
    name = name_of_subgroups(requested.by)
    return Grouping(name, requested.by, len(source), unseen=requested.unseen)


def _refuse_for_curve(**needing: Any) -> None:
    """Refuse what needs the rows of a curve."""
    for name, value in needing.items():
        if value is not None:
            raise ValueError(
                f"{name} needs rows, and a curve holds only their sums; pass Predictions."
            )


def _add_policy(
    selection: results.ThresholdSelection | results.GroupedSelection,
    sample: Sample,
    confidence: ConfidenceSpec | None,
) -> results.ThresholdSelection | results.GroupedSelection:
    """Add the policy, where the table knows classes and the confidence is a rule, or its own."""
    source = sample.source
    if not isinstance(source, Predictions):
        return selection
    confidence_of_policy: Any = confidence
    if confidence is None:
        confidence_of_policy = source.rule.default_confidence
        if source.y_proba is None:
            confidence_of_policy = External("confidence")
    elif not (isinstance(confidence, str) or callable(confidence)):
        # An array cannot be applied to new rows.
        return selection
    policy = results.make_policy(
        selection,
        sample.outcomes,
        selection.accepts(sample.outcomes.confidence, sample.subgroups),
        classes=source.classes,
        confidence=confidence_of_policy,
        rule=source.rule,
        cascade=cascade_of(source),
        abstain_answers=abstain_answers_of(source),
    )
    return replace(selection, policy=policy)


def _check_listable(shortlist: Any, source: Any) -> Shortlist:
    """Check a shortlist, which takes the probabilities of three or more classes."""
    predictions = check_is_predictions(source, "shortlist")
    if predictions.y_proba is None:
        raise ValueError(
            "shortlist needs the probabilities of all classes; build the predictions with "
            "Predictions.from_proba(y_true, y_proba)."
        )
    return results.check_shortlist(shortlist, predictions.sample_weight, len(predictions.classes))
