"""A no that leads on: which guarantee failed, what the rows prove, and what to do now."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from skselect._lib.arrays import reaches
from skselect._lib.notebook import count, rounded, these
from skselect.bounds._pointwise import clopper_pearson_upper
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import BestSet, Refusal
from skselect.thresholds import _advice as advice

if TYPE_CHECKING:
    from skselect.objectives.guarantee import Guarantee

#: The largest share of its rows that a tuner holds out by itself.
MOST_HELD_OUT = 0.6


def explain(guarantee: Guarantee, curve: RiskCoverageCurve, notes: Sequence[str] = ()) -> Refusal:
    """Return why no threshold keeps a guarantee, with what its rows prove and what to do.

    Parameters
    ----------
    guarantee : Guarantee
        On its rows.
    curve : RiskCoverageCurve
        Of rows that count once.
    notes : sequence of str, default=()
        What else is said of these rows.
    """
    best = guarantee.find_best_set(curve)
    least, coverage = guarantee.find_least_target(curve)
    plan = guarantee.plan_rows(curve)
    if not isinstance(guarantee.min_coverage, str) and guarantee.min_coverage > 0:
        notes = [*notes, f"Only shares of at least min_coverage={guarantee.min_coverage:g} count."]
    sentences = [
        f"REFUSED: {guarantee.describe()}.",
        _tell_best(guarantee, curve, best),
        _tell_least(guarantee, curve, least, coverage),
        _tell_plan(guarantee, curve, plan),
        *notes,
    ]
    return Refusal(
        text="\n".join(sentence for sentence in sentences if sentence),
        guarantee=guarantee.describe(),
        least_target=least,
        least_target_coverage=coverage,
        rows_needed=plan.high or plan.low,
        rows_needed_range=(plan.low, plan.high),
        best_set=best,
    )


def _tell_best(guarantee: Guarantee, curve: RiskCoverageCurve, best: BestSet | None) -> str:
    """Say which accepted set of these rows is best, and what it would bear by itself."""
    rows = name_rows(guarantee, curve)
    if guarantee.plan.guarantee == "mean":
        return ""
    if best is None:
        return f"Of {rows}, no set is large enough (min_coverage)."
    bound = rounded_target(guarantee, best.bound)
    if best.n_accepted == 1:
        found = "wrong" if best.n_errors else "right"
        return f"Best of {rows}: the surest one, {found}; chosen beforehand, it would bear {bound}."
    wrong = f"{best.n_errors:,} of them wrong"
    if best.n_errors == 0:
        wrong = "none of them wrong"
    return (
        f"Best of {rows}: the surest {best.n_accepted:,}, {wrong}; alone, chosen beforehand, they "
        f"would bear {bound}."
    )


def name_rows(guarantee: Guarantee, curve: RiskCoverageCurve) -> str:
    """Say which rows these are, and that others were given with them."""
    n = curve.n_rows
    if guarantee.share < 1.0:
        return f"{these(n, 'certifying row')} ({guarantee.in_all(n):,} in all)"
    return these(n, "row")


def _tell_least(
    guarantee: Guarantee, curve: RiskCoverageCurve, least: float | None, coverage: float | None
) -> str:
    """Say which target these rows would have met, and how to promise it."""
    if least is None or coverage is None:
        which = "this row" if curve.n_rows == 1 else "these rows"
        return f"No target up to 50 % would have been met by {which}."
    met = (
        f"target of {rounded_target(guarantee, least)} would have been met "
        f"({100.0 * coverage:.0f} % answered)"
    )
    if guarantee.n_sharing > 1:
        return f"By itself, a {met}; this says nothing of the guarantees beside it."
    return f"A {met}. To promise it, name it and use fresh rows."


def rounded_target(guarantee: Guarantee, least: float) -> str:
    """Return a target with three digits, rounded up, in the user's units."""
    if guarantee.about.is_error:
        return f"{rounded(100.0 * least, 3, up=True)} %"
    return rounded(least, 3, up=True)


def _tell_plan(guarantee: Guarantee, curve: RiskCoverageCurve, plan: advice.RowsNeeded) -> str:
    """Say how many rows like these it takes, as far as they can tell, and what to do now."""
    target = guarantee.amount(guarantee.target)
    if plan.low is None:
        return _tell_that_no_rows_help(guarantee, curve, target)
    needed = f"at least {count(plan.low, 'such row')}"
    if plan.high is not None:
        needed = f"about {plan.low:,} to {plan.high:,} such rows"
        if plan.low == plan.high:
            needed = f"about {count(plan.low, 'such row')}"
    in_all = _name_all(guarantee, plan)
    if plan.high is not None and plan.high <= curve.n_rows:
        # Most samples of so many rows would do, and this one does not.
        needed = "about as many rows as these"
        in_all = ""
    provable = clopper_pearson_upper(0, curve.n_rows, guarantee.level)
    at_best = rounded_target(guarantee, guarantee.bound(provable))
    proof = f"these {curve.n_rows:,} prove"
    unsure = " These rows cannot say whether more would do."
    now = advise(guarantee, curve)
    if curve.n_rows == 1:
        proof = "this one proves"
        unsure = " This row cannot say whether more would do."
        now = advise(guarantee, curve, "this one")
    if plan.high is not None:
        unsure = ""
    return (
        f"{target} needs {needed}{in_all}, a plan, not a promise ({proof} {at_best} at best)."
        f"{unsure} Now: {now}."
    )


def _name_all(guarantee: Guarantee, plan: advice.RowsNeeded) -> str:
    """Say how many rows it takes in all, where a share of them certifies."""
    if guarantee.share == 1.0 or plan.low is None:
        return ""
    in_all = f"{guarantee.in_all(plan.low):,}"
    if plan.high is not None and plan.high != plan.low:
        in_all = f"{in_all} to {guarantee.in_all(plan.high):,}"
    return f" ({in_all} in all)"


def _tell_that_no_rows_help(guarantee: Guarantee, curve: RiskCoverageCurve, target: str) -> str:
    """Say that no number of rows is in sight; as a fact only where the rows prove it."""
    smallest = guarantee.least_risk_bound(curve)
    if smallest <= guarantee.scaled_target:
        least = advice.RowsNeeded(guarantee.rows_needed(), None)
        needed = f"{count(guarantee.rows_needed(), 'such row')}{_name_all(guarantee, least)}"
        which = "this one" if curve.n_rows == 1 else f"these {curve.n_rows:,}"
        return (
            f"{target} needs at least {needed}, and {which} cannot say whether any number would "
            "do. Now: improve the model or its confidence, or name a larger target."
        )
    bound = rounded_target(guarantee, guarantee.bound(smallest))
    most = advice.most_answered(
        int(curve.accepted_loss[-1]), curve.n_rows, guarantee.scaled_target, guarantee.level
    )
    of_size = ""
    if guarantee.smallest_set > 0.0:
        size = f"{100.0 * guarantee.smallest_set:g} % of the cases"
        of_size = f" of at least {size} (min_coverage={guarantee.smallest_set:g})"
    perfect = f"Even a perfect ranking could answer at most {rounded(100.0 * most, 2, up=True)} %"
    smaller = " or a smaller min_coverage" if of_size else ""
    return (
        f"More rows will not help: every accepted set{of_size} has a risk above {bound} (level "
        f"{guarantee.level:g}). {perfect}. Now: improve the model or its confidence, or name a "
        f"larger target{smaller}."
    )


def advise(guarantee: Guarantee, curve: RiskCoverageCurve, rows: str = "these") -> str:
    """Say what to do now; `rows` is a word for those that were asked."""
    if guarantee.max_analyses > 1:
        return (
            f"add rows for the next of the {guarantee.max_analyses} planned analyses (one beyond "
            "the plan breaks the guarantee)"
        )
    fresh = f"use fresh rows (asking {rows} again, or with more, breaks the guarantee)"
    if guarantee.n_sharing > 1:
        return f"{fresh}, and ask for fewer guarantees: {guarantee.n_sharing} share delta here"
    n_certifying = math.floor(MOST_HELD_OUT * guarantee.in_all(curve.n_rows))
    if curve.n_rows < guarantee.rows_needed() <= n_certifying:
        return f"{fresh}, and let a larger share of them certify (cv={MOST_HELD_OUT:g})"
    return fresh


def explain_estimate(guarantee: Guarantee, curve: RiskCoverageCurve) -> Refusal:
    """Return why no threshold keeps a target on these very rows, where nothing is guaranteed."""
    allowed = reaches(curve.coverage, guarantee.least_coverage(curve.n_rows))
    observed = guarantee.observed(curve)
    best = int(np.argmin(np.where(allowed, observed, np.inf)))
    least = guarantee.about.unit * float(observed[best])
    statement = guarantee.describe()
    which = "this row" if curve.n_rows == 1 else "these rows"
    text = (
        f"REFUSED: {statement}, on {these(curve.n_rows, 'row')}.\n"
        f"The smallest risk of any accepted set of {which} is {least:.4g}."
    )
    return Refusal(
        text=text,
        guarantee=statement,
        least_target=least,
        least_target_coverage=float(curve.coverage[best]),
    )
