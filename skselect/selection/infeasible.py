"""The error where no threshold meets a goal: why, and what would help."""

from __future__ import annotations

import numpy as np

from skselect import thresholds
from skselect._array_ops import reaches
from skselect.bounds import clopper_pearson_upper
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import InfeasibleTargetError
from skselect.policy.certificate import rounded
from skselect.selection.goal import Goal


def refusal(curve: RiskCoverageCurve, goal: Goal) -> InfeasibleTargetError:
    """Return an error that says why no threshold meets a goal, and what would help."""
    if goal.is_metric:
        return InfeasibleTargetError(_metric_advice(curve, goal))
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


def _metric_advice(curve: RiskCoverageCurve, goal: Goal) -> str:
    """Say that the range accepts too few rows, or which constraint cannot be kept."""
    low, high = goal.range_on(curve)
    n_blocks = int(curve.n_blocks_accepted(np.array([low]))[0])
    most, _ = curve.working_point(n_blocks)
    allowed = reaches(curve.coverage[:n_blocks], goal.min_coverage)
    if not np.any(allowed):
        return (
            f"No threshold of threshold_range=({low:g}, {high:g}) accepts at least "
            f"min_coverage={goal.min_coverage:g} of the rows: the threshold {low:g} accepts "
            f"{most:.4g} of them. Begin the range lower, or lower min_coverage."
        )
    wanted = " and ".join(f"{name} {bound:g}" for name, bound in goal.constraints)
    least = float(np.min(curve.selective_risk[:n_blocks][allowed]))
    return (
        f"No threshold keeps the constraint {wanted} at a coverage of at least "
        f"min_coverage={goal.min_coverage:g}: the smallest risk there is {least:.4g}. Relax the "
        "constraint or lower min_coverage."
    )
