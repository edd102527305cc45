"""From outcomes and an objective to a threshold, for tables and estimators alike."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

from skselect._lib.arrays import BoolArray, IntArray, are_constant, is_graded, reaches
from skselect._lib.checks import warn_user
from skselect._lib.checks.rows import (
    check_countable,
    check_some_subgroup,
    refuse_weighted_rows,
    refuse_weights,
)
from skselect._lib.notebook import percent
from skselect.curve.curve import RiskCoverageCurve, threshold_below
from skselect.exceptions import InfeasibleTargetError
from skselect.objectives import Best, Cost, Coverage, Goal, Objective
from skselect.policy.certificate import UNORDERED, fingerprint
from skselect.policy.policy import AbstentionPolicy
from skselect.policy.seen_rows import record_confidence
from skselect.policy.subgroups import names_of_columns, subgroup_codes
from skselect.predictions.outcomes import Outcomes
from skselect.selection.issue import Setting, issue_chosen
from skselect.selection.results import GroupedSelection, ThresholdSelection
from skselect.thresholds._metric import MetricOptimum

# There are messages about so many subgroups at most.
_FEW = 5
_REMEDY = "With on_infeasible='abstain' nothing is accepted instead."
# The least coverage is said to bind where the chosen one is larger by less than this.
_NEAR = 0.05
_QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


def pick(
    outcomes: Outcomes, objective: Objective, setting: Setting, cases: str = ""
) -> ThresholdSelection:
    """Pick the threshold for a checked objective; raise or warn where there is none."""
    found = _find(outcomes, objective, setting, cases=cases)
    return _report_infeasible(found, setting.on_infeasible)


def pick_on_curve(
    curve: RiskCoverageCurve, objective: Objective, setting: Setting
) -> ThresholdSelection:
    """Pick the threshold from a curve of unweighted errors, without its rows."""
    check_countable(curve)
    goal = Goal.on(objective, setting.loss, graded=False, weighted=False)
    if goal.plan.bets:
        raise ValueError(
            "method='betting' needs rows, and a curve holds only their sums; use 'auto' for errors."
        )
    if objective.guarantees:
        setting = setting._replace(caveats=(UNORDERED,))
    # A curve does not say whether confidences lie in [0, 1].
    setting = setting._replace(bounded=not isinstance(objective, Coverage))
    return _report_infeasible(_find_on_curve(curve, None, goal, setting), setting.on_infeasible)


def _report_infeasible(found: ThresholdSelection, on_infeasible: str) -> ThresholdSelection:
    """Return the selection; raise or warn where it accepts nothing."""
    objective = found.goal.objective
    if not found.accepts_nothing:
        return found
    if isinstance(objective, Cost):
        warn_user(objective.tell_infeasible(found.goal))
        return found
    if on_infeasible == "raise":
        raise _refuse(found, found.goal.reuse_warning, _REMEDY)
    error = _refuse(found, found.goal.reuse_warning)
    warn_user(f"{error} Nothing will be accepted.")
    return found


def _refuse(found: ThresholdSelection, again: str = "", remedy: str = "") -> InfeasibleTargetError:
    return found.goal.objective.refuse(found.curve, found.goal, again=again, remedy=remedy)


# Subgroups ---------------------------------------------------------------------------------


def pick_by_group(
    outcomes: Outcomes,
    subgroups: Any,
    by: str,
    objectives: Objective | Mapping[Any, Objective],
    setting: Setting,
    *,
    by_answer: bool = False,
    unseen: str = "abstain",
) -> GroupedSelection:
    """Pick one threshold per subgroup, each at delta over the number of subgroups.

    Parameters
    ----------
    outcomes : Outcomes
    subgroups : array-like of shape (n,) or DataFrame
        Rows without a subgroup choose no threshold, and the policy defers such rows.
    by : str
        What the subgroups are called.
    objectives : Objective or mapping of them
        Checked, of all subgroups or of each.
    setting : Setting
    by_answer : bool, default=False
        Whether the answers are the subgroups.
    unseen
        As in :class:`GroupThresholds`.
    """
    members = _find_members(outcomes, subgroups, by, unseen)
    found, refused = {}, {}
    each = _objective_by_group(objectives, list(members))
    for (group, rows), objective in zip(members.items(), each, strict=True):
        cases = f"of {by} {group!r}"
        one = _find(outcomes.take(rows), objective, setting, len(members), cases=cases)
        found[group] = one
        if one.accepts_nothing and isinstance(objective, Cost):
            warn_user(objective.tell_infeasible(one.goal))
        elif one.accepts_nothing:
            refused[f"{by} {group!r}"] = one
    errors = {which: _refuse(one) for which, one in islice(refused.items(), _FEW)}
    texts, more = [f"{which}: {error.reason}" for which, error in errors.items()], []
    again = next((one.goal.reuse_warning for one in refused.values()), "")
    if len(refused) > _FEW:
        more = [f"The same holds for {len(refused) - _FEW:,} more subgroups."]
    if len(refused) == len(members) and setting.on_infeasible == "raise":
        raise InfeasibleTargetError(
            f"{' '.join([*texts, *more])}{again}",
            rows_needed=next(iter(errors.values())).rows_needed,
            remedy=_REMEDY,
        )
    for text in [*(f"{text}{again} This subgroup will be deferred." for text in texts), *more]:
        warn_user(text)
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    columns = () if by_answer else names_of_columns(subgroups)
    return GroupedSelection(by, found, curve, unseen, by_answer=by_answer, columns=columns)


def _find_members(outcomes: Outcomes, subgroups: Any, by: str, unseen: str) -> dict[Any, IntArray]:
    """Return the rows of each subgroup, without rows of weight zero."""
    codes, keys = subgroup_codes(subgroups, len(outcomes))
    exists = outcomes.weight > 0
    missing = int(np.sum((codes < 0) & exists))
    codes = np.where(exists, codes, -1)
    members = {keys[code]: np.flatnonzero(codes == code) for code in np.unique(codes[codes >= 0])}
    check_some_subgroup(members)
    if missing:
        later = "deferred" if unseen == "abstain" else "refused"
        warn_user(
            f"subgroups: {missing} of {len(codes)} rows have no {by}. They choose no threshold, "
            f"and such rows will be {later}."
        )
    return members


def _objective_by_group(
    objectives: Objective | Mapping[Any, Objective], groups: list[Any]
) -> list[Objective]:
    """Return the objective of each subgroup: the same for all, or one each from a mapping."""
    if isinstance(objectives, Objective):
        return [objectives] * len(groups)
    missing = [group for group in groups if group not in objectives]
    extra = [group for group in objectives if group not in groups]
    if missing or extra:
        raise ValueError(
            f"objective (or its target) must name every subgroup once. The rows hold {groups}; "
            f"missing: {missing}, without rows: {extra}."
        )
    return [objectives[group] for group in groups]


# One threshold -----------------------------------------------------------------------------


def _find(
    outcomes: Outcomes,
    objective: Objective,
    setting: Setting,
    n_subgroups: int = 1,
    *,
    cases: str,
) -> ThresholdSelection:
    """Find the threshold; inf where none is good enough."""
    goal = Goal.on(
        objective,
        setting.loss,
        graded=is_graded(outcomes.loss),
        weighted=not are_constant(outcomes.sample_weight),
        cases=cases,
        n_subgroups=n_subgroups,
        share=setting.share,
    )
    if objective.guarantees and not goal.plan.bets:
        outcomes = _make_countable(outcomes, goal)
    if isinstance(objective, Best) and objective.bounds_luck:
        refuse_weights(outcomes.sample_weight, "a lower bound", ", or use method='empirical'")
    largest = goal.largest_weight
    if largest is not None and np.any(outcomes.weight > largest):
        raise ValueError(
            f"largest_weight={largest:g}, but sample_weight goes up to {np.max(outcomes.weight):g}."
        )
    return _find_on_curve(RiskCoverageCurve.from_outcomes(outcomes), outcomes, goal, setting)


def _make_countable(outcomes: Outcomes, goal: Goal) -> Outcomes:
    """Return outcomes whose rows can be counted: no weights, errors 0 or 1."""
    about_loss = not isinstance(goal.objective, Coverage)
    refuse_weighted_rows(outcomes.sample_weight, bets=about_loss)
    if about_loss and not goal.plan.is_graded and is_graded(outcomes.loss):
        raise ValueError(
            "loss: this method counts errors, and there are losses between 0 and 1. Use "
            "method='betting', which certifies graded losses, or 'empirical', which guarantees "
            "nothing."
        )
    return (
        outcomes if outcomes.sample_weight is None else Outcomes(outcomes.loss, outcomes.confidence)
    )


def _find_on_curve(
    curve: RiskCoverageCurve, outcomes: Outcomes | None, goal: Goal, setting: Setting
) -> ThresholdSelection:
    """Find the threshold on a curve; `outcomes` are its rows, None where they are not known."""
    objective, certificate = goal.objective, None
    found = objective.find(goal, curve, outcomes)
    threshold, n_blocks = found.threshold, found.n_blocks
    if threshold is None:
        threshold = threshold_below(curve, n_blocks, bounded=setting.bounded)
    if found.optimum is not None:
        _warn_of_optimum(curve, goal, found.optimum)
    if objective.guarantees:
        certificate = issue_chosen(curve, outcomes, n_blocks, threshold, goal, setting)
    coverage, risk = curve.working_point(n_blocks)
    return ThresholdSelection(
        threshold, goal, coverage, goal.loss.unit * risk, found.value, certificate, curve
    )


def _warn_of_optimum(curve: RiskCoverageCurve, goal: Goal, best: MetricOptimum) -> None:
    """Say where the least coverage binds, or everything is accepted."""
    metric = goal.objective
    assert isinstance(metric, Best)
    binds = best.unconstrained > best.best and not metric.constraint
    is_near = curve.coverage[best.n_blocks - 1] < metric.min_coverage + _NEAR
    if binds and (is_near or _is_least(curve, metric, best)):
        warn_user(_explain_min_coverage(curve, goal, best))
    elif best.n_blocks == len(curve) and metric.sweeps:
        low, high = metric.range_on(curve)
        warn_user(
            f"{metric.name} is best when everything is accepted: of the thresholds from "
            f"{low:g} to {high:g} it is largest at {best.threshold:.4g}, and no confidence is "
            f"lower. All answers together have the risk {curve.mean_loss:.3g} here. To hand cases "
            "over all the same, name a smaller one: objective='risk', target=0.05 is for at most "
            "5 % wrong answers."
        )


def _is_least(curve: RiskCoverageCurve, metric: Best, best: MetricOptimum) -> bool:
    """Tell whether the next smaller accepted set is below the least coverage."""
    before = best.n_blocks - 2
    return before >= 0 and not reaches(curve.coverage[before], metric.min_coverage)


def _explain_min_coverage(curve: RiskCoverageCurve, goal: Goal, best: MetricOptimum) -> str:
    """Say what the least coverage costs, and where rows of equal confidence raise it."""
    metric = goal.objective
    assert isinstance(metric, Best)
    ends = [best.n_unconstrained, best.n_blocks]
    below, chosen = (f"{percent(curve.coverage[k - 1])} of the rows" for k in ends)
    n_below, before = curve.n_accepted[best.n_unconstrained - 1], best.n_blocks - 2
    # The set before the chosen one is too small, and more than one row lies between them.
    tied = _is_least(curve, metric, best)
    tied = tied and curve.n_accepted[before + 1] - curve.n_accepted[before] > 1
    bound = "the lower bound of " if metric.bounds_luck else ""
    return (
        f"min_coverage={metric.min_coverage:g} binds: {bound}{metric.name} would be "
        f"{best.unconstrained:.4g} where {below} are accepted ({n_below:,.0f}), instead of "
        f"{best.best:.4g} where {chosen} are. "
        + (
            f"Fewer would be {percent(curve.coverage[before])}, for rows of equal confidence are "
            "accepted together. "
            if tied
            else ""
        )
        + "Lower min_coverage only where so many rows are enough: the best of few is often luck."
    )


def make_policy(
    found: ThresholdSelection | GroupedSelection,
    outcomes: Outcomes,
    accepted: BoolArray,
    *,
    model_print: str | None = None,
    rated_by_others: bool = False,
    **decides: Any,
) -> AbstentionPolicy:
    """Return the policy of a selection, with what it records about the rows that tuned it.

    Parameters
    ----------
    found : ThresholdSelection or GroupedSelection
    outcomes : Outcomes
        Of all rows, also of those set apart for a shortlist.
    accepted : ndarray of bool, shape (n,)
        Which of them it accepts.
    model_print : str, default=None
        Digest of the scores of these rows.
    rated_by_others : bool, default=False
        Whether other models than the final one rated these rows: the policy will not meet their
        confidences again, and records none.
    **decides
        What decides beside the thresholds, as :meth:`ThresholdSelection.to_policy` takes it.
    """
    curve = found.curve
    if curve.n_rows != len(outcomes):  # chosen on a part of the rows
        curve = RiskCoverageCurve.from_outcomes(outcomes)
    prints, quantiles = {"data": fingerprint(curve)}, {}
    if model_print is not None:
        prints["model"] = model_print
    if not rated_by_others:
        prints["rows"] = record_confidence(curve.thresholds, curve.block_rows)
        values = np.quantile(outcomes.confidence, _QUANTILES)
        quantiles = {f"{q:g}": float(v) for q, v in zip(_QUANTILES, values, strict=True)}
    facts = {
        "coverage": float(np.average(accepted, weights=outcomes.sample_weight)),
        "n": len(outcomes),
        "confidence_quantiles": quantiles,
        "fingerprints": prints,
    }
    return found.to_policy(**(decides | facts))
