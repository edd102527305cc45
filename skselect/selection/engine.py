"""From outcomes and a goal to a threshold, for tables and estimators alike."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from skselect._lib.arrays import are_constant, is_graded, reaches
from skselect._lib.checks import warn_user
from skselect._lib.checks.rows import (
    check_countable,
    check_some_subgroup,
    refuse_weighted_rows,
    refuse_weights,
)
from skselect._lib.typing import IntArray
from skselect.curve.curve import RiskCoverageCurve, threshold_below
from skselect.exceptions import InfeasibleTargetError
from skselect.policy.certificate import UNORDERED, Caveat, fingerprint, percent
from skselect.policy.seen_rows import record_confidence
from skselect.policy.subgroups import names_of_columns, subgroup_codes
from skselect.predictions.outcomes import Outcomes
from skselect.selection.goal import Goal
from skselect.selection.infeasible import asking_again, refusal
from skselect.selection.promise import promise
from skselect.selection.results import GroupedSelection, ThresholdSelection
from skselect.thresholds._metric import MetricOptimum, best_metric
from skselect.thresholds._rules import chow

# There are messages about so many subgroups at most.
_FEW = 5
_REMEDY = "With on_infeasible='abstain' nothing is accepted instead."
# The least coverage is said to bind where the chosen one is larger by less than this.
_NEAR = 0.05
_QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


def pick(
    outcomes: Outcomes, goal: Goal, *, caveats: tuple[Caveat, ...] = (), bounded: bool = True
) -> ThresholdSelection:
    """Pick the threshold for a checked goal; raise or warn where there is none.

    Parameters
    ----------
    outcomes : Outcomes
    goal : Goal
    caveats : tuple of Caveat, default=()
        Why a certificate is not exact.
    bounded : bool, default=True
        Whether confidences lie in [0, 1].
    """
    return _report_infeasible(_find(outcomes, goal, caveats, bounded=bounded))


def pick_on_curve(curve: RiskCoverageCurve, goal: Goal) -> ThresholdSelection:
    """Pick the threshold from a curve of unweighted errors, without its rows."""
    check_countable(curve)
    goal = goal.for_losses(graded=False, weighted=False)
    if goal.method == "betting":
        raise ValueError(
            "method='betting' needs rows, and a curve holds only their sums; use 'auto' for errors."
        )
    bounded = goal.objective != "coverage"  # a curve does not say whether they lie in [0, 1]
    caveats = (UNORDERED,) if goal.promises else ()
    return _report_infeasible(_find_on_curve(curve, None, goal, caveats, bounded=bounded))


def _report_infeasible(found: ThresholdSelection) -> ThresholdSelection:
    """Return the selection; raise or warn where it accepts nothing."""
    goal = found.goal
    if not found.accepts_nothing:
        return found
    if goal.objective == "cost":
        warn_user(_abstaining_is_cheapest(goal))
        return found
    again = asking_again(goal)
    if goal.on_infeasible == "raise":
        raise refusal(found.curve, goal, again=again, remedy=_REMEDY)
    error = refusal(found.curve, goal, again=again)
    warn_user(f"{error} Nothing will be accepted.")
    return found


def _abstaining_is_cheapest(goal: Goal) -> str:
    which = f" {goal.cases}" if goal.cases else ""
    return (
        f"Abstaining on everything costs least at target={goal.own_target:g} per row: accepting "
        f"any of these rows{which} would cost more."
    )


# Subgroups ---------------------------------------------------------------------------------


def pick_by_group(
    outcomes: Outcomes,
    subgroups: Any,
    by: str,
    targets: Any,
    goal: Goal,
    *,
    by_answer: bool = False,
    caveats: tuple[Caveat, ...] = (),
    bounded: bool = True,
    unseen: str = "abstain",
) -> GroupedSelection:
    """Pick one threshold per subgroup, each at delta over the number of subgroups.

    Parameters
    ----------
    outcomes : Outcomes
    subgroups : array-like of shape (n,) or DataFrame
        Rows without a subgroup choose no threshold, and the policy hands such rows over.
    by : str
        What the subgroups are called.
    targets : float, mapping or None
        The target of all, or of each subgroup.
    goal : Goal
        The goal of all subgroups, without target.
    by_answer : bool, default=False
        Whether the answers are the subgroups.
    caveats, bounded, unseen
        As in :func:`pick` and :class:`GroupThresholds`.
    """
    members = _find_members(outcomes, subgroups, by, unseen)
    found, refused = {}, {}
    each_target = _targets_by_group(targets, list(members))
    for (group, rows), target in zip(members.items(), each_target, strict=True):
        own = goal.with_target(target, n_subgroups=len(members), cases=f"of {by} {group!r}")
        one = _find(outcomes.take(rows), own, caveats, bounded=bounded)
        found[group] = one
        if one.accepts_nothing and goal.objective == "cost":
            warn_user(_abstaining_is_cheapest(own))
        elif one.accepts_nothing:
            refused[f"{by} {group!r}"] = one
    errors = {which: refusal(one.curve, one.goal) for which, one in islice(refused.items(), _FEW)}
    texts, more = [f"{which}: {error.reason}" for which, error in errors.items()], []
    if len(refused) > _FEW:
        more = [f"The same holds for {len(refused) - _FEW:,} more subgroups."]
    if len(refused) == len(members) and goal.on_infeasible == "raise":
        raise InfeasibleTargetError(
            f"{' '.join([*texts, *more])}{asking_again(goal)}",
            rows_needed=next(iter(errors.values())).rows_needed,
            remedy=_REMEDY,
        )
    again = asking_again(goal)
    for text in [*(f"{text}{again} This subgroup will be handed over." for text in texts), *more]:
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
        later = "handed over" if unseen == "abstain" else "refused"
        warn_user(
            f"subgroups: {missing} of {len(codes)} rows have no {by}. They choose no threshold, "
            f"and such rows will be {later}."
        )
    return members


def _targets_by_group(target: Any, groups: list[Any]) -> list[Any]:
    """Return the target of each subgroup: the same for all, or one each from a mapping."""
    if not hasattr(target, "items"):
        return [target] * len(groups)
    missing = [group for group in groups if group not in target]
    extra = [group for group in target if group not in groups]
    if missing or extra:
        raise ValueError(
            f"target must name every subgroup once. The rows hold {groups}; "
            f"missing: {missing}, without rows: {extra}."
        )
    return [target[group] for group in groups]


# One threshold -----------------------------------------------------------------------------


def _find(
    outcomes: Outcomes, goal: Goal, caveats: tuple[Caveat, ...], *, bounded: bool
) -> ThresholdSelection:
    """Find the threshold; inf where none is good enough."""
    weighted = not are_constant(outcomes.sample_weight)
    goal = goal.for_losses(graded=is_graded(outcomes.loss), weighted=weighted)
    if goal.promises and goal.method != "betting":
        outcomes = _make_countable(outcomes, goal)
    if goal.method == "lower_bound":
        refuse_weights(outcomes.sample_weight, "a lower bound", ", or use method='empirical'")
    largest = goal.largest_weight
    if largest is not None and np.any(outcomes.weight > largest):
        raise ValueError(
            f"largest_weight={largest:g}, but sample_weight goes up to {np.max(outcomes.weight):g}."
        )
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    return _find_on_curve(curve, outcomes, goal, caveats, bounded=bounded)


def _make_countable(outcomes: Outcomes, goal: Goal) -> Outcomes:
    """Return outcomes whose rows can be counted: no weights, errors 0 or 1."""
    about_loss = goal.objective != "coverage"
    refuse_weighted_rows(outcomes.sample_weight, bets=about_loss)
    if about_loss and is_graded(outcomes.loss):
        raise ValueError(
            "loss: this method counts errors, and there are losses between 0 and 1. Use "
            "method='betting', which certifies graded losses, or 'empirical', which promises "
            "nothing."
        )
    return (
        outcomes if outcomes.sample_weight is None else Outcomes(outcomes.loss, outcomes.confidence)
    )


def _find_on_curve(
    curve: RiskCoverageCurve,
    outcomes: Outcomes | None,
    goal: Goal,
    caveats: tuple[Caveat, ...],
    *,
    bounded: bool,
) -> ThresholdSelection:
    """Find the threshold on a curve; `outcomes` are its rows, None where they are not known."""
    value = certificate = None
    if goal.is_metric:
        threshold, n_blocks, value = _find_best(curve, goal)
    elif goal.method == "chow":
        threshold, n_blocks = chow(curve, goal.target)
    else:
        rows = outcomes if goal.method == "betting" else curve
        n_blocks = goal.rule(rows, goal.target, goal.level, goal.min_coverage)
        threshold = threshold_below(curve, n_blocks, bounded=bounded)
    if goal.promises:
        certificate = promise(curve, outcomes, n_blocks, threshold, goal, caveats)
    coverage, risk = curve.working_point(n_blocks)
    return ThresholdSelection(
        threshold, goal, coverage, goal.unit * risk, value, certificate, curve
    )


def _find_best(curve: RiskCoverageCurve, goal: Goal) -> tuple[float, int, float | None]:
    """Return the threshold where a metric is best, how many entries it accepts, and the value."""
    low, high = goal.range_on(curve)
    best = best_metric(
        curve, goal.objective, goal.min_coverage, goal.constraints,
        method=goal.method, threshold_range=(low, high),
    )  # fmt: skip
    if best is None:
        return np.inf, 0, None
    binds = best.unconstrained > best.best and not goal.constraints
    if binds and (_is_least(curve, goal, best) or _is_near(curve, goal, best)):
        warn_user(_explain_min_coverage(curve, goal, best))
    elif best.n_blocks == len(curve) and goal.objective != "selective_accuracy":
        warn_user(
            f"{goal.objective} is best when everything is accepted: of the thresholds from "
            f"{low:g} to {high:g} it is largest at {best.threshold:.4g}, and no confidence is "
            f"lower. All answers together have the risk {curve.mean_loss:.3g} here. To hand cases "
            "over all the same, name a smaller one: objective='risk', target=0.05 is for at most "
            "5 % wrong answers."
        )
    return best.threshold, best.n_blocks, best.value


def _is_least(curve: RiskCoverageCurve, goal: Goal, best: MetricOptimum) -> bool:
    """Tell whether the next smaller accepted set is below the least coverage."""
    before = best.n_blocks - 2
    return before >= 0 and not reaches(curve.coverage[before], goal.min_coverage)


def _is_near(curve: RiskCoverageCurve, goal: Goal, best: MetricOptimum) -> bool:
    return bool(curve.coverage[best.n_blocks - 1] < goal.min_coverage + _NEAR)


def _explain_min_coverage(curve: RiskCoverageCurve, goal: Goal, best: MetricOptimum) -> str:
    """Say what the least coverage costs, and where rows of equal confidence raise it."""
    ends = [best.n_unconstrained, best.n_blocks]
    below, chosen = (f"{percent(curve.coverage[k - 1])} of the rows" for k in ends)
    n_below, before = curve.n_accepted[best.n_unconstrained - 1], best.n_blocks - 2
    # The set before the chosen one is too small, and more than one row lies between them.
    tied = _is_least(curve, goal, best)
    tied = tied and curve.n_accepted[before + 1] - curve.n_accepted[before] > 1
    bound = "the lower bound of " if goal.method == "lower_bound" else ""
    return (
        f"min_coverage={goal.min_coverage:g} binds: {bound}{goal.objective} would be "
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


def policy_facts(
    selection: ThresholdSelection | GroupedSelection, outcomes: Outcomes, accepted: Any
) -> dict[str, Any]:
    """Return what a policy records about the rows that tuned it."""
    quantiles = np.quantile(outcomes.confidence, _QUANTILES)
    curve = selection.curve
    if curve.n_rows != len(outcomes):  # chosen on a part of the rows
        curve = RiskCoverageCurve.from_outcomes(outcomes)
    return {
        "certificate": selection.certificate,
        "coverage": float(np.average(accepted, weights=outcomes.sample_weight)),
        "n": len(outcomes),
        "confidence_quantiles": {
            f"{q:g}": float(v) for q, v in zip(_QUANTILES, quantiles, strict=True)
        },
        "fingerprints": {
            "data": fingerprint(curve),
            "rows": record_confidence(curve.thresholds, curve.block_rows),
        },
    }
