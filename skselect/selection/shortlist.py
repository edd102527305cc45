"""The shortlist of the cases that a chosen threshold defers."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

import numpy as np

from skselect._lib.arrays import BoolArray
from skselect._lib.checks.options import check_generator, check_number
from skselect._lib.checks.rows import refuse_weights
from skselect.bounds._pointwise import rows_for_quantile
from skselect.exceptions import ArgumentError
from skselect.objectives import Objective
from skselect.policy.certificate import Caveat
from skselect.policy.subgroups import PolicyShortlist, check_enough_classes
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions
from skselect.selection.results import GroupedSelection, ThresholdSelection
from skselect.thresholds import Shortlist
from skselect.thresholds._rules import shortlist_cutoff

_SAME_ROWS = (
    "these rows also chose the threshold (skselect.thresholds.Shortlist({level:g}, share=0.5), in "
    "a terminal --shortlist {level:g} 0.5, sets rows apart)"
)
_SEVERAL = "several analyses of growing rows are planned"


def check_shortlist(
    shortlist: Any, weight: Any, n_classes: int, random_state: Any = None
) -> Shortlist:
    """Return what was asked for, with a seed; refuse weights and one or two classes."""
    if not isinstance(shortlist, Shortlist):
        shortlist = Shortlist(check_number("shortlist", shortlist, 0.0, 1.0, closed="neither"))
    refuse_weights(weight, "a shortlist")
    check_enough_classes(n_classes)
    seed = random_state if shortlist.random_state is None else shortlist.random_state
    if not isinstance(seed, numbers.Integral):
        seed = int(check_generator(seed).integers(2**32))
    return replace(shortlist, random_state=seed)


def tuning_mask(asked: Shortlist, n: int, rows: BoolArray | None) -> BoolArray | None:
    """Return which of these `rows` choose the threshold; None stands for all n rows."""
    if not asked.share:
        return rows
    chooses = ~asked.set_apart(n) if rows is None else rows & ~asked.set_apart(n)
    if not np.any(chooses):
        raise ValueError(
            f"shortlist: share={asked.share:g} leaves none of these rows to choose the threshold; "
            "use a smaller share."
        )
    return chooses


def add_shortlist(
    found: ThresholdSelection | GroupedSelection,
    asked: Shortlist,
    predictions: Predictions,
    outcomes: Outcomes,
    subgroups: Any,
    *,
    objective: Objective,
    caveats: tuple[Caveat, ...] = (),
    unknown: BoolArray | None = None,
) -> ThresholdSelection | GroupedSelection:
    """Return a selection with the shortlist of the cases that it defers.

    Parameters
    ----------
    found : ThresholdSelection or GroupedSelection
    asked : Shortlist
    predictions : Predictions
        All rows, with probabilities.
    outcomes : Outcomes
        Of all rows.
    subgroups : array-like of shape (n,), DataFrame or None
    objective : Objective
    caveats : tuple of Caveat, default=()
        Why what is found on these rows need not hold for the final classifier.
    unknown : ndarray of bool, shape (n,), default=None
        Rows whose true class the final classifier does not know.
    """
    assert predictions.y_proba is not None
    deferred = ~found.accepts(outcomes.confidence, subgroups)
    if isinstance(found, GroupedSelection) and found.unseen == "raise":
        deferred &= found.groups.have(subgroups, len(deferred))
    if asked.share:
        deferred &= asked.set_apart(len(deferred))
    rows = np.flatnonzero(deferred)
    _refuse_too_few(len(rows), len(deferred), asked)
    truth = predictions.y_true if unknown is None else np.where(unknown, -1, predictions.y_true)
    least = shortlist_cutoff(predictions.y_proba[rows], truth[rows], asked.level)
    if least == -np.inf:
        raise ArgumentError(
            "shortlist",
            f"shortlist={asked.level:g} cannot be reached: the true class of more than "
            f"{100 * (1 - asked.level):.3g} % of the deferred rows is unknown to the "
            "classifier.",
        )
    reasons = [caveat.reason for caveat in caveats if caveat.strikes]
    if not asked.share and not objective.ignores_rows:
        reasons.insert(0, _SAME_ROWS.format(level=asked.level))
    if objective.max_analyses > 1:
        reasons.append(_SEVERAL)
    shortlist = PolicyShortlist(asked.level, least, found.threshold, len(rows), tuple(reasons))
    found = replace(found, shortlist=shortlist)
    if found.certificate is not None:
        return replace(found, certificate=replace(found.certificate, shortlist=str(shortlist)))
    return found


def _refuse_too_few(n: int, n_rows: int, asked: Shortlist) -> None:
    needed = rows_for_quantile(asked.level)
    if n < needed:
        which = "deferred and set apart" if asked.share else "deferred"
        raise ArgumentError(
            "shortlist",
            f"shortlist={asked.level:g} needs at least {needed} rows that are {which}, and {n} of "
            f"these {n_rows} are. Use more rows, a lower level"
            f"{', a larger share' if asked.share else ''}, a goal that defers more, or leave "
            "shortlist out.",
        )
