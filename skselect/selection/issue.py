"""The certificate of a goal, and the bound that its rows give."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from skselect._lib.arrays import are_constant
from skselect.curve.curve import RiskCoverageCurve
from skselect.objectives import Goal, Guarantee, Loss
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Caveat, Certificate
from skselect.predictions.outcomes import Outcomes


class Setting(NamedTuple):
    """What is known of the rows beside their outcomes.

    Parameters
    ----------
    loss : Loss
        What their losses mean.
    on_infeasible : {"raise", "abstain"}
    caveats : tuple of Caveat, default=()
        Why a certificate is not exact.
    bounded : bool, default=True
        Whether confidences lie in [0, 1].
    share : float, default=1
        Which share of the rows given certifies.
    provenance : str, default=""
        Which rows these are, as the certificate says.
    fingerprints : dict, default={}
        Digests for the certificate, beside that of its rows.
    """

    loss: Loss
    on_infeasible: str = "raise"
    caveats: tuple[Caveat, ...] = ()
    bounded: bool = True
    share: float = 1.0
    provenance: str = ""
    fingerprints: Mapping[str, str] = MappingProxyType({})


def issue_chosen(
    curve: RiskCoverageCurve,
    outcomes: Outcomes | None,
    n_blocks: int,
    threshold: float,
    goal: Goal,
    setting: Setting,
) -> Certificate:
    """Return the certificate of a threshold that these rows chose.

    `n_blocks` is how many entries of the curve it accepts; `outcomes` are the rows of the curve,
    None where only the curve is known.
    """
    objective = goal.objective
    assert isinstance(objective, Guarantee)
    if outcomes is None or (curve.counted and not curve.is_graded):
        n_errors = int(curve.accepted_by(n_blocks)[1])
    else:
        n_errors = int(np.count_nonzero(outcomes.loss[outcomes.confidence >= threshold]))
    if goal.plan.bets:
        assert outcomes is not None
        accepted = outcomes.confidence >= threshold
        bound = objective.betting_bound(outcomes, accepted, goal.level, goal.largest_weight)
    else:
        n_accepted = curve.n_accepted_by(n_blocks)
        bound = objective.counted_bound(curve.n_rows, n_accepted, n_errors, goal.level)
    weighted = outcomes is not None and not are_constant(outcomes.sample_weight)
    return issue(
        curve,
        n_blocks,
        goal,
        threshold=threshold,
        n_errors=n_errors,
        bound=bound,
        caveats=(*setting.caveats, *_find_caveats(goal, n_blocks, weighted=weighted)),
        assumed=_find_assumptions(goal, weighted=weighted),
        provenance=setting.provenance,
        fingerprints=setting.fingerprints,
    )


def _find_caveats(goal: Goal, n_blocks: int, *, weighted: bool) -> list[Caveat]:
    """Return the reasons in the goal itself why the guarantee is not exact."""
    caveats = []
    if goal.plan.caveat:
        caveats.append(Caveat(goal.plan.caveat, ""))
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
    if goal.has_starts:
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
    caveats: tuple[Caveat, ...] = (),
    assumed: list[str],
    guarantee: str = "",
    refusal: str = "",
    notice: str = "",
    provenance: str = "",
    fingerprints: Mapping[str, str] = MappingProxyType({}),
) -> Certificate:
    """Write the certificate of a goal for accepting the first `n_blocks` entries of a curve.

    Losses and `bound` lie in [0, 1]; the certificate is in the user's units. `caveats` say why
    the guarantee is not exact, `refusal` why there is none at all. `guarantee` is that of the
    method, unless it says otherwise.
    """
    objective, loss = goal.objective, goal.loss
    assert isinstance(objective, Guarantee)
    # Those that strike come first.
    caveats = tuple(sorted(caveats, key=lambda caveat: not caveat.strikes))
    reasons = [*(caveat.reason for caveat in caveats), *([refusal] if refusal else [])]
    violated = {caveat.violates for caveat in caveats if caveat.strikes}
    first = objective.max_analyses == 1
    planned = certificates.FIRST_ANALYSIS if first else certificates.PLANNED
    assumptions = (*certificates.ASSUMPTIONS, *assumed, planned)
    coverage, risk = curve.working_point(n_blocks)
    return Certificate(
        objective=objective.name,
        target=goal.own_target,
        delta=goal.delta,
        max_analyses=objective.max_analyses,
        method=goal.method,
        guarantee="none" if refusal else guarantee or goal.plan.guarantee,
        exact=not refusal and not any(caveat.strikes for caveat in caveats),
        caveats=tuple(reasons),
        threshold=threshold,
        n=curve.n_rows,
        n_accepted=curve.n_accepted_by(n_blocks),
        n_errors=n_errors,
        coverage=coverage,
        risk=loss.unit * risk,
        pointwise_bound=objective.unit_of(loss) * bound,
        rows_needed=objective.rows_needed(goal),
        min_coverage=objective.min_coverage,
        loss=loss.kind,
        unit=loss.unit,
        cases=goal.cases,
        assumptions=tuple(one for one in assumptions if one not in violated),
        created=certificates.now(),
        fingerprints={"data": certificates.fingerprint(curve), **fingerprints},
        notice=notice,
        provenance=provenance,
    )
