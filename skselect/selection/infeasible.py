"""The error where no threshold meets a goal: why, and what would help."""

from __future__ import annotations

import math

import numpy as np

from skselect._lib.arrays import reaches
from skselect.bounds._binomial import clopper_pearson_upper
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import InfeasibleTargetError
from skselect.policy.certificate import rounded
from skselect.selection.goal import Goal
from skselect.thresholds._rules import least_risk_target, rows_like_these


def refusal(
    curve: RiskCoverageCurve, goal: Goal, *, again: str = "", remedy: str = ""
) -> InfeasibleTargetError:
    """Return an error that says why no threshold meets a goal, and what would help.

    `again` and `remedy` end its message. The smallest target for a risk takes many times as long
    as the refusal itself, so that it is looked for when the message is read.
    """
    if goal.is_metric:
        return InfeasibleTargetError(f"{_metric_advice(curve, goal)}{again}", remedy=remedy)
    advice, needed = _advise_rows(curve, goal)

    def find_least() -> tuple[float | None, str]:
        least, text = _describe_least(curve, goal)
        return least, write(text)

    def write(about_least: str) -> str:
        told = [*advice, *([about_least] if about_least else [])]
        if goal.min_coverage > 0:
            told.append(
                f"only accepted shares of at least min_coverage={goal.min_coverage:g} count"
            )
        which = ""
        if goal.share < 1.0:
            which = f" that certify, of {_in_all(curve.n_rows, goal):,} in all"
        return (
            f"No threshold meets target={goal.own_target:g} for objective={goal.objective!r} on "
            f"{curve.n_rows:,} rows{which} (delta={goal.delta:g}). {'; '.join(told)}.{again}"
        )

    return InfeasibleTargetError(
        write(""), rows_needed=needed, remedy=remedy, find_least=find_least
    )


def asking_again(goal: Goal) -> str:
    """Say what happens to the promise when rows are added for another analysis."""
    if not goal.promises:
        return ""
    if goal.max_analyses > 1:
        return (
            f" For the next of the {goal.max_analyses} planned analyses rows may be added to "
            "these, until there are about as many in all; one beyond the plan breaks the promise."
        )
    return (
        " Adding rows to these and asking again breaks the promise: take fresh rows only, or plan "
        "the number of analyses before the first one (max_analyses=)."
    )


def _advise_rows(curve: RiskCoverageCurve, goal: Goal) -> tuple[list[str], int | None]:
    """Say how many rows it takes; return that number, too."""
    if not goal.promises:
        return [], None
    least = goal.rows_needed
    in_all = _name_all(least, goal)
    if goal.method == "betting":
        return [
            f"Bets that certify it take at least {least:,} accepted rows{in_all} without any loss"
        ], least
    kind = "accepted rows" if goal.objective == "risk" else "rows"
    advice = [f"Certifying it takes at least {least:,} {kind}{in_all} without a single error"]
    needed: int | None = least
    if goal.objective == "risk":
        rows = "fresh rows" if goal.max_analyses == 1 else "rows"
        needed = rows_like_these(curve, goal.target, goal.level, goal.min_coverage)
        advice.append(
            "no number of rows like these would do, because no accepted set of them has a "
            "smaller risk"
            if needed is None
            else f"about {needed:,} {rows}{_name_all(needed, goal)} would do if their errors fell "
            "as they do here"
        )
    return advice, needed


def _name_all(n: int, goal: Goal) -> str:
    """Say how many rows it takes in all so that `n` of them certify, "" where all do."""
    return f" (in all {_in_all(n, goal):,})" if goal.share < 1.0 else ""


def _in_all(n: int, goal: Goal) -> int:
    return math.ceil(n / goal.share - 1e-9)


def _describe_least(curve: RiskCoverageCurve, goal: Goal) -> tuple[float | None, str]:
    """Return the smallest target that could be met, if it is known, and say so."""
    if not goal.promises:
        allowed = reaches(curve.coverage, goal.min_coverage)
        risk = curve.selective_risk if goal.objective == "risk" else curve.generalized_risk
        least = goal.unit * float(np.min(risk[allowed]))
        return least, f"the smallest risk of any accepted set of these rows is {least:.4g}"
    if goal.method == "betting":
        return None, ""
    if goal.objective == "risk":
        least = least_risk_target(goal.rule, curve, goal.level, goal.min_coverage)
    else:
        least = clopper_pearson_upper(curve.accepted_loss[0], curve.n_rows, goal.level)
    least *= goal.unit
    if goal.loss == "zero_one" and least > 0.5:
        return None, f"no target up to 0.5 could have been met by these {curve.n_rows} rows"
    return least, (
        f"the smallest target these {curve.n_rows:,} rows could have met is "
        f"{rounded(least, 4, up=True)}, but certifying that one needs fresh rows"
    )


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
