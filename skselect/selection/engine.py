"""From outcomes and a goal to a threshold: the one path of tables and estimators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from skselect import thresholds
from skselect._array_ops import are_constant, is_graded
from skselect._checks.rows import (
    check_countable,
    check_some_subgroup,
    refuse_weighted_rows,
    refuse_weights,
)
from skselect._typing import FloatArray
from skselect.bounds import rows_for_betting, rows_for_certificate
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import InfeasibleTargetError
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Certificate, Doubt
from skselect.policy.subgroups import names_of_columns, subgroup_codes
from skselect.predictions.outcomes import Outcomes
from skselect.selection.goal import Goal
from skselect.selection.infeasible import asking_again, refusal
from skselect.selection.results import GroupedSelection, ThresholdSelection

# Subgroups that a message tells of.
_FEW = 5
_QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
# Methods whose promise is not exact, or another one.
_DOUBTS = {"sgr": (certificates.SGR_PROOF,), "mean": (certificates.MEAN_ONLY,)}


def pick(
    outcomes: Outcomes,
    goal: Goal,
    *,
    doubts: tuple[Doubt, ...] = (),
    bounded: bool = True,
    cases: str = "",
) -> ThresholdSelection:
    """Pick the threshold for a checked goal; raise or warn where there is none.

    Parameters
    ----------
    outcomes : Outcomes
    goal : Goal
    doubts : tuple of Doubt, default=()
        Why a certificate is not exact.
    bounded : bool, default=True
        Whether confidences lie in [0, 1].
    cases : str, default=""
        Which cases these are, for the certificate; "" for all.
    """
    return _unless_infeasible(_find(outcomes, goal, doubts, bounded, cases))


def pick_on_curve(curve: RiskCoverageCurve, goal: Goal) -> ThresholdSelection:
    """Pick the threshold where nothing but the curve of unweighted errors is known."""
    check_countable(curve)
    goal = goal.for_losses(graded=False, weighted=False)
    _refuse_bets_on_curve(goal.method)
    bounded = goal.objective != "coverage"  # nobody knows how low a confidence may be
    return _unless_infeasible(_find_on(curve, None, goal, (), bounded=bounded, cases=""))


def _unless_infeasible(found: ThresholdSelection) -> ThresholdSelection:
    """Return what was found; raise or warn where that is nothing."""
    goal = found.goal
    if not found.accepts_nothing:
        return found
    if goal.objective == "cost":
        _warn_dear(goal, "")
        return found
    error = refusal(found.curve, goal)
    if goal.on_infeasible == "raise":
        raise _with_remedy(error, goal)
    warnings.warn(f"{error}{asking_again(goal)} Nothing will be accepted.", stacklevel=4)
    return found


def pick_by_group(
    outcomes: Outcomes,
    subgroups: Any,
    by: str,
    targets: Any,
    goals: Callable[[Any, int], Goal],
    *,
    by_answer: bool = False,
    doubts: tuple[Doubt, ...] = (),
    bounded: bool = True,
    unseen: str = "abstain",
) -> GroupedSelection:
    """Pick one threshold per subgroup, each at delta over the number of subgroups.

    Parameters
    ----------
    outcomes : Outcomes
    subgroups : array-like of shape (n,) or DataFrame
        Rows of no subgroup choose nothing and are handed over later.
    by : str
        What the subgroups are called.
    targets : float, mapping or None
        The target of all, or of each subgroup.
    goals : callable
        ``(target, n_groups)`` -> the goal of one subgroup.
    by_answer : bool, default=False
        Whether the subgroups are the answers.
    doubts, bounded, unseen
        As in :func:`pick` and :class:`GroupThresholds`.
    """
    codes, keys = subgroup_codes(subgroups, len(outcomes))
    missing = int(np.sum((codes < 0) & (outcomes.weight > 0)))
    codes = np.where(outcomes.weight > 0, codes, -1)  # rows of weight zero do not exist
    members = {keys[code]: np.flatnonzero(codes == code) for code in np.unique(codes[codes >= 0])}
    check_some_subgroup(members)
    if missing:
        later = "handed over" if unseen == "abstain" else "refused"
        warnings.warn(
            f"subgroups: {missing} of {len(codes)} rows have no {by}. They choose no threshold, "
            f"and such rows will be {later}.",
            stacklevel=3,
        )
    found, errors = {}, {}
    own_targets = _check_targets_of(targets, list(members))
    for (group, rows), target in zip(members.items(), own_targets, strict=True):
        goal = goals(target, len(members))
        one = _find(outcomes.take(rows), goal, doubts, bounded, f"of {by} {group!r}")
        found[group] = one
        if one.accepts_nothing and goal.objective == "cost":
            _warn_dear(goal, f" of {by} {group!r}")
        elif one.accepts_nothing:
            errors[group] = refusal(one.curve, one.goal)
    texts = [f"{by} {group!r}: {error}" for group, error in errors.items()]
    if len(errors) == len(members) and goal.on_infeasible == "raise":
        rows_needed = [error.rows_needed for error in errors.values()]
        error = InfeasibleTargetError(" ".join(_first_few(texts)), rows_needed=rows_needed[0])
        raise _with_remedy(error, goal)
    again = asking_again(goal)
    for text in _first_few([f"{text}{again} This subgroup will be handed over." for text in texts]):
        warnings.warn(text, stacklevel=3)
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    columns = () if by_answer else names_of_columns(subgroups)
    return GroupedSelection(by, found, curve, unseen, by_answer=by_answer, columns=columns)


def _first_few(texts: list[str]) -> list[str]:
    """Return the first texts about subgroups, and how many more there are."""
    more = len(texts) - _FEW
    return texts if more <= 0 else [*texts[:_FEW], f"The same holds for {more:,} more subgroups."]


def _warn_dear(goal: Goal, which: str) -> None:
    warnings.warn(
        f"Abstaining on everything costs least at target={goal.own_target:g} per row: every "
        f"accepted set of these rows{which} is dearer.",
        stacklevel=4,
    )


def _with_remedy(error: InfeasibleTargetError, goal: Goal) -> InfeasibleTargetError:
    return InfeasibleTargetError(
        f"{error}{asking_again(goal)}",
        remedy="With on_infeasible='abstain' nothing is accepted instead.",
        least_target=error.least_target,
        rows_needed=error.rows_needed,
    )


# One threshold -----------------------------------------------------------------------------


def _find(
    outcomes: Outcomes, goal: Goal, doubts: tuple[Doubt, ...], bounded: bool, cases: str
) -> ThresholdSelection:
    """Find the threshold; inf where none is good enough."""
    weighted = not are_constant(outcomes.sample_weight)
    goal = goal.for_losses(graded=is_graded(outcomes.loss), weighted=weighted)
    if goal.promises and goal.method != "betting":
        outcomes = _countable(outcomes, goal)
    if goal.largest_weight is not None:
        _check_weights_within(outcomes.weight, goal.largest_weight)
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    return _find_on(curve, outcomes, goal, doubts, bounded=bounded, cases=cases)


def _find_on(
    curve: RiskCoverageCurve,
    outcomes: Outcomes | None,
    goal: Goal,
    doubts: tuple[Doubt, ...],
    *,
    bounded: bool,
    cases: str,
) -> ThresholdSelection:
    """Find the threshold on a curve; `outcomes` are its rows, None where they are not known."""
    if goal.is_metric:
        return _find_metric(curve, outcomes, goal)
    threshold, n_blocks = _rule(outcomes, curve, goal, bounded)
    certificate = None
    if goal.promises:
        certificate = _certificate(outcomes, curve, n_blocks, threshold, goal, doubts, cases)
    return _selection(curve, n_blocks, threshold, goal, None, certificate)


def _find_metric(
    curve: RiskCoverageCurve, outcomes: Outcomes | None, goal: Goal
) -> ThresholdSelection:
    if goal.selection == "lower_bound" and outcomes is not None:
        refuse_weights(outcomes.sample_weight, "a lower bound", ", or use selection='best'")
    best = thresholds.best_metric(
        curve, goal.objective, goal.min_coverage, goal.constraints, selection=goal.selection
    )
    if best is None:
        return _selection(curve, 0, np.inf, goal, None, None)
    if best.unconstrained > best.best and not goal.constraints:
        warnings.warn(
            f"min_coverage={goal.min_coverage:g} binds: at a coverage below it {goal.objective} "
            f"would be {best.unconstrained:.4g} instead of {best.best:.4g}. Such an optimum is "
            "usually a matter of a few rows; lower min_coverage only with many rows.",
            stacklevel=6,
        )
    if best.n_blocks == len(curve) and goal.objective != "selective_accuracy":
        warnings.warn(
            f"{goal.objective} is best when everything is accepted (threshold 0): it rises as the "
            "threshold falls below the lowest confidence, although no decision changes. To learn "
            "to abstain, take objective='risk' or 'coverage'; compare models at one threshold.",
            stacklevel=6,
        )
    return _selection(curve, best.n_blocks, best.threshold, goal, best.value, None)


def _rule(
    outcomes: Outcomes | None, curve: RiskCoverageCurve, goal: Goal, bounded: bool
) -> tuple[float, int]:
    """Apply the rule of a goal that has a target; return the threshold and what it accepts."""
    target, delta = goal.target, goal.level
    if goal.method == "betting":
        assert outcomes is not None
        n_blocks = (
            thresholds.betting_risk(outcomes, target, delta, goal.min_coverage, goal.largest_weight)
            if goal.objective == "risk"
            else thresholds.betting_generalized_risk(outcomes, target, delta, goal.largest_weight)
        )
        return thresholds.threshold_below(curve, n_blocks, bounded=bounded), n_blocks
    if goal.method == "chow":
        return thresholds.chow(curve, target)
    rule = thresholds.rule_of(goal.objective, goal.method, goal.starts)
    n_blocks = rule(curve, target, delta, goal.min_coverage)
    return thresholds.threshold_below(curve, n_blocks, bounded=bounded), n_blocks


def _selection(
    curve: RiskCoverageCurve,
    n_blocks: int,
    threshold: float,
    goal: Goal,
    value: float | None,
    certificate: Certificate | None,
) -> ThresholdSelection:
    coverage, risk = curve.working_point(n_blocks)
    return ThresholdSelection(
        threshold=threshold,
        goal=goal,
        coverage=coverage,
        risk=goal.unit * risk,
        value=value,
        certificate=certificate,
        curve=curve,
    )


def _certificate(
    outcomes: Outcomes | None,
    curve: RiskCoverageCurve,
    n_blocks: int,
    threshold: float,
    goal: Goal,
    doubts: tuple[Doubt, ...],
    cases: str,
) -> Certificate:
    k = int(curve.n_accepted[n_blocks - 1]) if n_blocks else 0
    weighted = outcomes is not None and not are_constant(outcomes.sample_weight)
    if outcomes is None:
        n_errors = int(curve.accepted_loss[n_blocks - 1]) if n_blocks else 0
    else:
        accepted = outcomes.confidence >= threshold
        n_errors = int(np.count_nonzero(outcomes.loss[accepted]))
    if goal.method == "betting":
        assert outcomes is not None
        bound = certificates.betting_bound(
            goal.objective, outcomes, accepted, goal.level, goal.largest_weight
        )
    else:
        bound = certificates.counted_bound(goal.objective, curve.n_rows, k, n_errors, goal.level)
    about_loss = goal.objective != "coverage"
    least_rows = rows_for_betting if goal.method == "betting" else rows_for_certificate
    nothing = () if n_blocks else (certificates.NOTHING,)
    unbounded = weighted and goal.largest_weight is None
    extra = [certificates.WEIGHED] if weighted else []
    if weighted and not unbounded:
        extra.append(f"no case weighs more than {goal.largest_weight:g}")
    extra += [certificates.STARTS] if goal.method == "fixed_sequence" else []
    return certificates.issue(
        curve,
        n_blocks,
        objective=goal.objective,
        target=float(goal.own_target or 0.0),
        delta=goal.delta,
        looks=goal.looks,
        method=goal.method,
        threshold=threshold,
        rows_needed=least_rows(goal.target, goal.level) if about_loss else 1,
        pointwise_bound=goal.unit * bound if about_loss else bound,
        n_errors=n_errors,
        min_coverage=goal.min_coverage,
        guarantee="mean" if goal.method == "mean" else "high_probability",
        loss=goal.loss,
        unit=goal.unit,
        cases=cases,
        doubts=(
            *doubts,
            *_DOUBTS.get(goal.method, ()),
            *((certificates.UNBOUNDED,) if unbounded else ()),
            *nothing,
        ),
        assumptions=(*certificates.ASSUMPTIONS, *extra),
    )


def _countable(outcomes: Outcomes, goal: Goal) -> Outcomes:
    """Return outcomes whose rows can be counted: no weights, errors 0 or 1."""
    about_loss = goal.objective != "coverage"
    refuse_weighted_rows(outcomes.sample_weight, bets=about_loss)
    if about_loss:
        _refuse_graded(outcomes.loss)
    return (
        outcomes if outcomes.sample_weight is None else Outcomes(outcomes.loss, outcomes.confidence)
    )


def policy_facts(
    selection: ThresholdSelection | GroupedSelection, outcomes: Outcomes, accepted: Any
) -> dict[str, Any]:
    """Return what a policy remembers about the rows that tuned it."""
    shares = np.quantile(outcomes.confidence, _QUANTILES)
    curve = selection.curve
    if curve.n_rows != len(outcomes):  # chosen on a part of the rows
        curve = RiskCoverageCurve.from_outcomes(outcomes)
    return {
        "certificate": selection.certificate,
        "coverage": float(np.average(accepted, weights=outcomes.sample_weight)),
        "n": len(outcomes),
        "confidence_quantiles": {
            f"{q:g}": float(v) for q, v in zip(_QUANTILES, shares, strict=True)
        },
        "fingerprints": {"data": certificates.fingerprint(curve)},
    }


def _refuse_graded(loss: FloatArray) -> None:
    """Refuse losses other than 0 and 1 where errors must be counted."""
    if is_graded(loss):
        raise ValueError(
            "loss: this method counts errors, and there are losses between 0 and 1. Use "
            "method='betting', which certifies graded losses, or 'empirical', which promises "
            "nothing."
        )


def _refuse_bets_on_curve(method: str) -> None:
    """Refuse bets where the rows are not at hand."""
    if method == "betting":
        raise ValueError(
            "method='betting' reads rows, and a curve holds their sums; use 'auto' for errors."
        )


def _check_targets_of(target: Any, groups: list[Any]) -> list[Any]:
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


def _check_weights_within(weight: FloatArray, largest: float) -> None:
    """Refuse weights above what was said to be the largest."""
    if np.any(weight > largest):
        raise ValueError(
            f"largest_weight={largest:g}, but sample_weight goes up to {np.max(weight):g}."
        )
