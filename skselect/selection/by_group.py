"""One threshold for each subgroup: how they share delta, and what is said of those without one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skselect._lib.arrays import BoolArray, FloatArray, IntArray
from skselect._lib.checks import warn_user
from skselect._lib.decide import plain_value
from skselect._lib.notebook import percent
from skselect.exceptions import InfeasibleTargetError
from skselect.objectives import Cost, Coverage, Guarantee, Loss, Objective, Objectives
from skselect.objectives.refusal import advise
from skselect.policy.subgroups import names_of_columns
from skselect.selection.results import GroupedSelection, ThresholdSelection
from skselect.selection.sample import Sample
from skselect.selection.settle import REMEDY, ObjectiveOnRows, refuse

# A table of subgroups without a threshold has so many lines at most.
_LISTED = 10


class _TooSmall(NamedTuple):
    """A subgroup with too few rows to get a share of delta."""

    group: str
    n_rows: int
    rows_needed: float


def pick_by_group(sample: Sample, objectives: Objectives, on_infeasible: str) -> GroupedSelection:
    """Pick one threshold per subgroup, each at its share of delta."""
    assert sample.groups is not None
    members = sample.split_by_group()
    each_objective = objective_by_group(objectives, list(members))
    # All rows, whatever their readings: labels decide these, and must not divide delta.
    sizes = [len(rows) for rows in members.values()]
    divisors = divide_delta(each_objective, sizes, sample.loss)
    selections = {}
    for (group, rows), objective, divisor in zip(
        members.items(), each_objective, divisors, strict=True
    ):
        rows_of_group = replace(
            sample, outcomes=sample.outcomes.take(rows), cases=f"of {sample.groups.name} {group!r}"
        )
        selections[group] = ObjectiveOnRows.of(rows_of_group, objective, divisor).settle()
    _report_subgroups(sample.groups.name, selections, sizes, divisors, on_infeasible)
    columns: tuple[str, ...] = ()
    if not sample.groups.by_answer:
        columns = names_of_columns(sample.groups.subgroups)
    return GroupedSelection(
        sample.groups.name,
        selections,
        sample.sort(sample.outcomes.all_counted),
        sample.groups.unseen,
        by_answer=sample.groups.by_answer,
        columns=columns,
    )


def objective_by_group(objectives: Objectives, groups: list[Any]) -> list[Objective]:
    """Return the objective of each subgroup: the same for all, or one each from a mapping."""
    if isinstance(objectives, Objective):
        return [objectives] * len(groups)
    assert isinstance(objectives, Mapping)
    objectives = {plain_value(group): stated for group, stated in objectives.items()}
    missing = [group for group in groups if group not in objectives]
    held = set(groups)
    extra = [group for group in objectives if group not in held]
    if missing or extra:
        raise ValueError(
            "objective (or its target) must name every subgroup once. The rows hold "
            f"{_list_some(groups)}; missing: {_list_some(missing)}, without rows: "
            f"{_list_some(extra)}."
        )
    return [objectives[group] for group in groups]


def _list_some(groups: list[Any]) -> str:
    """Return the first subgroups, and how many more there are."""
    n_more = len(groups) - _LISTED
    if n_more <= 0:
        return str(groups)
    return f"{groups[:_LISTED]} and {n_more:,} more"


# Delta -------------------------------------------------------------------------------------


def share_delta(sizes: IntArray, needed: Callable[[int], FloatArray]) -> tuple[BoolArray, int]:
    """Return which subgroups get a share of delta, and how many: the most that can use one.

    Row counts alone decide, so that no label is looked at. K is the largest number such that K
    subgroups have at least the `needed` rows where K share delta. Those get a share that would have
    enough among K + 1 as well, then those with most rows, then those that come first. With fewer
    than needed(K + 1) rows are therefore all that get none.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_groups,)
    needed : callable
        Takes K and returns an array of shape (n_groups,), which grows with K.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.selection.by_group import share_delta
    >>> share_delta(np.array([400, 3, 600]), lambda k: np.full(3, 59 + 14 * (k - 1)))
    (array([ True, False,  True]), 2)
    """

    def too_few_have_enough(k: int) -> bool:
        n_with_enough = np.count_nonzero(sizes >= needed(k))
        return bool(n_with_enough < k)

    counts = range(1, len(sizes) + 1)
    n_shares = bisect_left(counts, True, key=too_few_have_enough)
    has_enough = sizes >= needed(max(n_shares, 1))
    has_enough_for_more = sizes >= needed(n_shares + 1)
    # Those first that have enough among one more, then enough now, then the larger ones.
    order = np.lexsort((-sizes, ~has_enough, ~has_enough_for_more))
    gets_share = np.zeros(len(sizes), dtype=bool)
    gets_share[order[:n_shares]] = True
    return gets_share, n_shares


def divide_delta(each_objective: list[Objective], sizes: list[int], loss: Loss) -> list[int]:
    """Return by which number each subgroup divides delta.

    It is larger for those that get no share. With their few rows they certify nothing at that
    level either, or accept everything, for a coverage.
    """
    # Subgroups with equal objectives need the same number of rows.
    by_id = {id(objective): repr(objective.get_params()) for objective in each_objective}
    keys = [(type(objective), by_id[id(objective)]) for objective in each_objective]
    distinct = dict(zip(keys, each_objective, strict=True))

    def needed(k: int) -> FloatArray:
        rows_needed = {
            key: objective.on(loss, n_sharing=k).rows_to_fail for key, objective in distinct.items()
        }
        return np.array([rows_needed[key] for key in keys])

    gets_share, n_shares = share_delta(np.array(sizes), needed)
    rest = n_shares + 1
    if any(isinstance(objective, Coverage) for objective in each_objective):
        rest = len(sizes)
    return np.where(gets_share, n_shares, rest).tolist()


# Subgroups without a threshold ---------------------------------------------------------------


def _report_subgroups(
    by: str,
    selections: Mapping[Any, ThresholdSelection],
    sizes: list[int],
    divisors: list[int],
    on_infeasible: str,
) -> None:
    """Raise or warn where subgroups have no threshold."""
    refused: dict[Any, ThresholdSelection] = {}
    too_small: list[_TooSmall] = []
    least_divisor = min(divisors)
    for (group, selection), size, divisor in zip(selections.items(), sizes, divisors, strict=True):
        objective = selection.objective
        if not selection.accepts_nothing:
            continue
        if isinstance(objective, Cost):
            warn_user(objective.tell_infeasible())
        elif divisor > least_divisor:
            too_small.append(_TooSmall(repr(group), size, objective.rows_to_fail))
        else:
            refused[group] = selection
    errors = {group: refuse(selection) for group, selection in islice(refused.items(), _LISTED)}
    notes = []
    if refused:
        notes.append(_note_refused(by, refused, errors, on_infeasible))
    if too_small:
        notes.append(_list_too_small(by, too_small, len(selections)))
    if notes and 2 * sizes.count(1) > sum(sizes):
        notes.append(
            f"Most rows are alone in their subgroup of {by}: bin its values first, such as "
            f"pd.cut(X[{by!r}], 4). "
        )
    if len(refused) + len(too_small) == len(selections) and on_infeasible == "raise":
        raise InfeasibleTargetError(
            "\n".join(note.strip() for note in notes),
            remedy=REMEDY,
        )
    for note in notes:
        warn_user(f"{note}Their cases will be deferred.")


def _note_refused(
    by: str,
    refused: Mapping[Any, ThresholdSelection],
    errors: Mapping[Any, InfeasibleTargetError],
    on_infeasible: str,
) -> str:
    """Say which subgroups have no threshold, why, and what to do."""
    [error, *_] = errors.values()
    note = error.reason
    if len(refused) > 1:
        note = _list_refused(by, refused, errors)
    if on_infeasible == "wait":
        note += " Judge more of its rows, and ask again."
    return f"{note} "


def _list_refused(
    by: str, refused: Mapping[Any, ThresholdSelection], errors: Mapping[Any, InfeasibleTargetError]
) -> str:
    """Return a table of the subgroups that have no threshold, though they share delta."""
    rows = []
    for group, error in errors.items():
        least_target = "none"
        if error.least_target:
            least_target = f"{error.least_target:.4g}"
        n_rows = refused[group].curve.n_rows
        rows.append((repr(group), n_rows, error.rows_needed or "none", least_target))
    table = pd.DataFrame(rows, columns=[by, "rows", "rows needed", "least target"])
    more = ""
    if len(refused) > len(rows):
        more = f"\nand {len(refused) - len(rows):,} more"
    [first_refusal, *_] = refused.values()
    certifying = ""
    if first_refusal.objective.share < 1.0:
        share = percent(first_refusal.objective.share)
        certifying = f" Only certifying rows are counted, {share} of all."
    now = ""
    if isinstance(first_refusal.objective, Guarantee) and first_refusal.objective.guarantees:
        now = f" Now: {advise(first_refusal.objective, first_refusal.curve)}."
    return (
        f"REFUSED: in {len(refused):,} subgroups ({by}) no threshold meets the target.\n"
        f"{table.to_string(index=False)}{more}\n"
        "'rows needed' is a plan, not a promise; the 'least target' would have been met."
        f"{certifying}{now}"
    )


def _list_too_small(by: str, too_small: list[_TooSmall], n_groups: int) -> str:
    """Return a table of the subgroups that are too small to get a share of delta."""
    table = pd.DataFrame(too_small[:_LISTED]).set_axis([by, "rows", "rows needed"], axis=1)
    more = ""
    if len(too_small) > _LISTED:
        more = f"and {len(too_small) - _LISTED:,} more\n"
    fate = "have too few rows to be certified, so they leave their share"
    if len(too_small) == 1:
        fate = "has too few rows to be certified, so it leaves its share"
    return (
        f"{by}: {len(too_small)} of {n_groups} subgroups {fate} of delta to the others. You may "
        "merge small subgroups, because their numbers of rows reveal no label.\n"
        f"{table.to_string(index=False)}\n{more}"
    )
