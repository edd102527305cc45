"""The certificate of a threshold, and the bound that its rows give."""

from __future__ import annotations

import numpy as np

from skselect._lib.arrays import are_constant
from skselect._lib.typing import BoolArray
from skselect.bounds._binomial import clopper_pearson_upper
from skselect.bounds._mean import betting_upper
from skselect.curve.curve import RiskCoverageCurve
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Caveat, Certificate
from skselect.predictions.outcomes import Outcomes
from skselect.selection.goal import Goal


def promise(
    curve: RiskCoverageCurve,
    outcomes: Outcomes | None,
    n_blocks: int,
    threshold: float,
    goal: Goal,
    caveats: tuple[Caveat, ...],
) -> Certificate:
    """Return the certificate of a threshold that these rows chose.

    `n_blocks` is how many entries of the curve it accepts; `outcomes` are the rows of the curve,
    None where only the curve is known.
    """
    if outcomes is None or (curve.counted and not curve.is_graded):
        n_errors = int(curve.accepted_by(n_blocks)[1])
    else:
        n_errors = int(np.count_nonzero(outcomes.loss[outcomes.confidence >= threshold]))
    if goal.method == "betting":
        assert outcomes is not None
        accepted, weights = outcomes.confidence >= threshold, goal.largest_weight
        bound = betting_bound(goal.objective, outcomes, accepted, goal.level, weights)
    else:
        n_accepted = curve.n_accepted_by(n_blocks)
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
        caveats=(*caveats, *_find_caveats(goal, n_blocks, weighted=weighted)),
        assumed=_find_assumptions(goal, weighted=weighted),
    )


def _find_caveats(goal: Goal, n_blocks: int, *, weighted: bool) -> list[Caveat]:
    """Return the reasons in the goal itself why the promise is not exact."""
    caveats = []
    if goal.method == "sgr":
        caveats.append(certificates.SGR_PROOF)
    if goal.method == "mean":
        caveats.append(certificates.MEAN_ONLY)
    if weighted and goal.largest_weight is None:
        caveats.append(certificates.UNBOUNDED)
    if n_blocks == 0:
        caveats.append(certificates.NOTHING)
    return caveats


def _find_assumptions(goal: Goal, *, weighted: bool) -> list[str]:
    """Return what is assumed beyond the assumptions of every certificate."""
    assumed = [certificates.WEIGHED] if weighted else []
    if weighted and goal.largest_weight is not None:
        assumed.append(f"no case weighs more than {goal.largest_weight:g}")
    if goal.method == "fixed_sequence" or goal.combined is not None:
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
    caveats: tuple[Caveat, ...] = (),
    assumed: list[str],
    refusal: str = "",
    notice: str = "",
) -> Certificate:
    """Write the certificate of a goal for accepting the first `n_blocks` entries of a curve.

    Losses and `bound` lie in [0, 1]; the certificate is in the user's units. `caveats` say why
    the promise is not exact, `refusal` why there is none at all.
    """
    caveats = tuple(
        sorted(caveats, key=lambda caveat: not caveat.strikes)
    )  # those that strike first
    reasons = [*(caveat.reason for caveat in caveats), *([refusal] if refusal else [])]
    violated = {caveat.violates for caveat in caveats if caveat.strikes}
    planned = certificates.FIRST_ANALYSIS if goal.max_analyses == 1 else certificates.PLANNED
    trusted = (*certificates.ASSUMPTIONS, *assumed, planned)
    kept = "mean" if goal.method == "mean" else "high_probability"
    coverage, risk = curve.working_point(n_blocks)
    return Certificate(
        objective=goal.objective,
        target=goal.own_target,
        delta=goal.delta,
        max_analyses=goal.max_analyses,
        method=goal.method,
        guarantee="none" if refusal else kept,
        exact=not refusal and not any(caveat.strikes for caveat in caveats),
        caveats=tuple(reasons),
        threshold=threshold,
        n=curve.n_rows,
        n_accepted=curve.n_accepted_by(n_blocks),
        n_errors=n_errors,
        coverage=coverage,
        risk=goal.unit * risk,
        pointwise_bound=bound if goal.objective == "coverage" else goal.unit * bound,
        rows_needed=rows_needed,
        min_coverage=goal.min_coverage,
        loss=goal.loss,
        unit=goal.unit,
        cases=goal.cases,
        assumptions=tuple(one for one in trusted if one not in violated),
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
