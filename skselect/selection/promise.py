"""The certificate of a threshold and its bound, or the error where there is none."""

from __future__ import annotations

import numpy as np

from skselect import thresholds
from skselect._array_ops import are_constant, reaches
from skselect._typing import BoolArray
from skselect.bounds import betting_upper, clopper_pearson_upper
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import InfeasibleTargetError
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Certificate, Doubt, rounded
from skselect.predictions.outcomes import Outcomes
from skselect.selection.goal import Goal


def promise(
    curve: RiskCoverageCurve,
    outcomes: Outcomes | None,
    n_blocks: int,
    threshold: float,
    goal: Goal,
    doubts: tuple[Doubt, ...],
) -> Certificate:
    """Return the certificate of a threshold that these rows chose.

    `n_blocks` is how many entries of the curve it accepts; `outcomes` are the rows of the curve,
    None where only the curve is known.
    """
    n_accepted = int(curve.n_accepted[n_blocks - 1]) if n_blocks else 0
    if outcomes is None:
        n_errors = int(curve.accepted_loss[n_blocks - 1]) if n_blocks else 0
    else:
        accepted = outcomes.confidence >= threshold
        n_errors = int(np.count_nonzero(outcomes.loss[accepted]))
    if goal.method == "betting":
        assert outcomes is not None
        weights = goal.largest_weight
        bound = betting_bound(goal.objective, outcomes, accepted, goal.level, weights)
    else:
        bound = counted_bound(goal.objective, curve.n_rows, n_accepted, n_errors, goal.level)
    weighted = outcomes is not None and not are_constant(outcomes.sample_weight)
    return issue(
        curve,
        n_blocks,
        goal,
        threshold=threshold,
        n_errors=n_errors,
        bound=bound,
        rows_needed=goal.rows_needed,
        doubts=(*doubts, *_find_doubts(goal, n_blocks, weighted=weighted)),
        assumed=_find_assumptions(goal, weighted=weighted),
    )


def _find_doubts(goal: Goal, n_blocks: int, *, weighted: bool) -> list[Doubt]:
    """Return the reasons in the goal itself why the promise is not exact."""
    doubts = []
    if goal.method == "sgr":
        doubts.append(certificates.SGR_PROOF)
    if goal.method == "mean":
        doubts.append(certificates.MEAN_ONLY)
    if weighted and goal.largest_weight is None:
        doubts.append(certificates.UNBOUNDED)
    if n_blocks == 0:
        doubts.append(certificates.NOTHING)
    return doubts


def _find_assumptions(goal: Goal, *, weighted: bool) -> list[str]:
    """Return what is assumed beyond the assumptions of every certificate."""
    assumed = [certificates.WEIGHED] if weighted else []
    if weighted and goal.largest_weight is not None:
        assumed.append(f"no case weighs more than {goal.largest_weight:g}")
    if goal.method == "fixed_sequence":
        assumed.append(certificates.STARTS)
    return assumed


def issue(
    curve: RiskCoverageCurve,
    n_blocks: int,
    goal: Goal,
    *,
    threshold: float,
    n_errors: int,
    bound: float,
    rows_needed: int,
    doubts: tuple[Doubt, ...] = (),
    assumed: list[str],
    refusal: str = "",
    notice: str = "",
) -> Certificate:
    """Write the certificate of a goal for accepting the first `n_blocks` entries of a curve.

    Losses and `bound` lie in [0, 1]; the certificate is in the user's units. `doubts` say why
    the promise is not exact, `refusal` why there is none at all.
    """
    why_not = [*(doubt.reason for doubt in doubts), *([refusal] if refusal else [])]
    broken = {doubt.broken for doubt in doubts}
    looks = certificates.ONE_LOOK if goal.looks == 1 else certificates.PLANNED
    trusted = (*certificates.ASSUMPTIONS, *assumed, looks)
    kept = "mean" if goal.method == "mean" else "high_probability"
    coverage, risk = curve.working_point(n_blocks)
    return Certificate(
        objective=goal.objective,
        target=goal.own_target,
        delta=goal.delta,
        looks=goal.looks,
        method=goal.method,
        guarantee="none" if refusal else kept,
        exact=not why_not,
        why_not=tuple(why_not),
        threshold=threshold,
        n=curve.n_rows,
        n_accepted=int(curve.n_accepted[n_blocks - 1]) if n_blocks else 0,
        n_errors=n_errors,
        coverage=coverage,
        risk=goal.unit * risk,
        pointwise_bound=bound if goal.objective == "coverage" else goal.unit * bound,
        rows_needed=rows_needed,
        min_coverage=goal.min_coverage,
        loss=goal.loss,
        unit=goal.unit,
        cases=goal.cases,
        assumptions=tuple(one for one in trusted if one not in broken),
        created=certificates.now(),
        fingerprints={"data": certificates.fingerprint(curve)},
        notice=notice,
    )


def counted_bound(objective: str, n: int, n_accepted: int, n_errors: int, delta: float) -> float:
    """Return the exact bound for accepted rows that were fixed beforehand, by counting errors."""
    if objective == "risk":
        return clopper_pearson_upper(n_errors, n_accepted, delta)
    if objective == "generalized_risk":
        return clopper_pearson_upper(n_errors, n, delta)
    return 1.0 - clopper_pearson_upper(n - n_accepted, n, delta)


def betting_bound(
    objective: str,
    outcomes: Outcomes,
    accepted: BoolArray,
    delta: float,
    largest_weight: float | None = None,
) -> float:
    """Return the bound for graded losses and importance weights, by betting."""
    loss, weight = outcomes.loss, outcomes.weight
    heaviest = float(np.max(weight)) if largest_weight is None else largest_weight
    if objective == "generalized_risk":
        silent = np.where(accepted, loss, 0.0)
        return betting_upper(silent, delta, weight=weight, largest_weight=heaviest)
    return betting_upper(loss[accepted], delta, weight=weight[accepted], largest_weight=heaviest)


def refusal(curve: RiskCoverageCurve, goal: Goal) -> InfeasibleTargetError:
    """Return an error that says why no threshold meets a goal, and what would help."""
    if goal.is_metric:
        return InfeasibleTargetError(_constraint_advice(curve, goal))
    least, needed, advice = _advice(curve, goal) if goal.promises else _plain_advice(curve, goal)
    if goal.min_coverage > 0:
        advice.append(f"only accepted shares of at least min_coverage={goal.min_coverage:g} count")
    message = (
        f"No threshold meets target={goal.own_target:g} for objective={goal.objective!r} on "
        f"{curve.n_rows} rows (delta={goal.delta:g}). " + "; ".join(advice) + "."
    )
    return InfeasibleTargetError(message, least_target=least, rows_needed=needed)


def asking_again(goal: Goal) -> str:
    """Say what happens to the promise when rows are added for another look."""
    if not goal.promises:
        return ""
    if goal.looks > 1:
        return (
            f" For the next of the {goal.looks} planned looks rows may be added to these, until "
            "there are about as many in all; a look beyond the plan breaks the promise."
        )
    return (
        " Adding rows to these and asking again breaks the promise: take fresh rows only, or plan "
        "the number of looks before the first one (looks=, on the command line --looks)."
    )


def _advice(curve: RiskCoverageCurve, goal: Goal) -> tuple[float | None, int | None, list[str]]:
    """Return the smallest target that could be met, the rows needed, and both in words."""
    needed: int | None = goal.rows_needed
    if goal.method == "betting":
        text = f"Bets that certify it take at least {needed} accepted rows without any loss"
        return None, needed, [text]
    kind = "accepted rows" if goal.objective == "risk" else "rows"
    advice = [f"Certifying it takes at least {needed} {kind} without a single error"]
    if goal.objective == "risk":
        rows = "fresh rows" if goal.looks == 1 else "rows"
        least = thresholds.least_risk_target(goal.rule, curve, goal.level, goal.min_coverage)
        needed = thresholds.rows_like_these(curve, goal.target, goal.level, goal.min_coverage)
        advice.append(
            "no number of rows like these would do, because no accepted set of them has a "
            "smaller risk"
            if needed is None
            else f"about {needed} {rows} would do if their errors fell as they do here"
        )
    else:
        least = clopper_pearson_upper(curve.accepted_loss[0], curve.n_rows, goal.level)
    least *= goal.unit
    if goal.loss == "zero_one" and least > 0.5:
        advice.append(f"no target up to 0.5 could have been met by these {curve.n_rows} rows")
        return None, needed, advice
    advice.append(
        f"the smallest target these {curve.n_rows} rows could have met is "
        f"{rounded(least, 4, up=True)}, but certifying that one needs fresh rows"
    )
    return least, needed, advice


def _plain_advice(curve: RiskCoverageCurve, goal: Goal) -> tuple[float, None, list[str]]:
    allowed = reaches(curve.coverage, goal.min_coverage)
    risk = curve.selective_risk if goal.objective == "risk" else curve.generalized_risk
    least = goal.unit * float(np.min(risk[allowed]))
    return least, None, [f"the smallest risk of any accepted set of these rows is {least:.4g}"]


def _constraint_advice(curve: RiskCoverageCurve, goal: Goal) -> str:
    """Say which constraint cannot be kept at the least coverage."""
    allowed = reaches(curve.coverage, goal.min_coverage)
    wanted = " and ".join(f"{name} {bound:g}" for name, bound in goal.constraints)
    least = float(np.min(curve.selective_risk[allowed]))
    return (
        f"No threshold keeps the constraint {wanted} at a coverage of at least "
        f"min_coverage={goal.min_coverage:g}: the smallest risk there is {least:.4g}. Relax the "
        "constraint or lower min_coverage."
    )
