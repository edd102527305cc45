"""From outcomes and an objective to a threshold, for tables and estimators alike."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skselect._lib.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    draw_rows,
)
from skselect._lib.checks import warn_user
from skselect._lib.checks.rows import (
    check_countable,
    check_importance,
    check_some_subgroup,
    refuse_weights,
)
from skselect._lib.sklearn import take_rows
from skselect.curve.curve import RiskCoverageCurve, threshold_below
from skselect.exceptions import InfeasibleTargetError
from skselect.objectives import (
    Best,
    Cost,
    Counts,
    Coverage,
    Guarantee,
    Loss,
    Objective,
    Objectives,
    Risk,
    SystemRisk,
    each_of,
    the_only,
)
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Caveat, Certificate, Origin
from skselect.policy.subgroups import names_of_columns, subgroup_codes
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions
from skselect.selection import order
from skselect.selection.results import GroupedSelection, ThresholdSelection, tuning_mask
from skselect.thresholds import LevelSequence, Shortlist
from skselect.thresholds._rules import pass_all
from skselect.thresholds._sequences import BAND_BESIDE_LEVELS

# Where confidences are tied, one row in ten names levels.
_NAMING = 10
# There are messages about so many subgroups at most, and so many lines in a table of small ones.
_FEW, _LISTED = 5, 50
_REMEDY = "With on_infeasible='abstain' nothing is accepted instead."


@dataclass(frozen=True, kw_only=True)
class Setting(Origin):
    """What is known of the rows beside their outcomes.

    Parameters
    ----------
    loss : Loss
        What their losses mean.
    on_infeasible : {"raise", "abstain", "wait"}, default="raise"
    bounded : bool, default=True
        Whether confidences lie in [0, 1].
    share : float, default=1
        Which share of the rows given certifies.
    least : float, default=-inf
        No threshold lies below it.
    """

    loss: Loss
    on_infeasible: str = "raise"
    bounded: bool = True
    share: float = 1.0
    least: float = -math.inf


#: The curve of rows that count once, and the rows, None where only the curve is known.
Reading = tuple[RiskCoverageCurve, Outcomes | None]


class Grouping(NamedTuple):
    """Which row belongs to which subgroup.

    Parameters
    ----------
    name : str
        What the subgroups are called.
    subgroups : array-like of shape (n,) or DataFrame
        Rows without a subgroup choose no threshold, and the policy defers such rows.
    by_answer : bool
        Whether the answers are the subgroups.
    unseen : {"abstain", "raise"}
        As in :class:`GroupThresholds`.
    """

    name: str
    subgroups: Any
    by_answer: bool = False
    unseen: str = "abstain"


def take_chosen(
    source: Predictions | Outcomes,
    outcomes: Outcomes,
    objectives: Objectives,
    groups: Grouping | None,
    asked: Shortlist | None,
) -> tuple[Outcomes, Grouping | None, str]:
    """Return the rows that choose the threshold, their subgroups, and their name in messages.

    Those are the rows that the guarantee is about, without those set apart for a shortlist.
    """
    rows, cases = None, ""
    if groups is None:
        objective = the_only(objectives)
        if isinstance(objective, SystemRisk):
            objective.check_reviewed(answered=outcomes.reviewer_loss is not None)
        rows, cases = objective.find_rows(source)
    if asked is not None:
        rows = tuning_mask(asked, len(outcomes), rows)
    if rows is None:
        return outcomes, groups, cases
    if groups is not None:
        groups = groups._replace(subgroups=take_rows(groups.subgroups, rows))
    return outcomes.take(rows), groups, cases


def name_levels(
    predictions: Predictions,
    confidence: FloatArray,
    objectives: Objectives,
    groups: Grouping | None,
    seed: int,
) -> tuple[Objectives, BoolArray]:
    """Let a tenth of the rows name the confidence levels that the others test.

    Each subgroup has levels of its own; a guarantee about one class takes those of its rows. Fewer
    than ten rows keep their objective. Returns the objectives, and which rows name.
    """
    names = np.zeros(len(confidence), dtype=bool)
    if groups is None:
        given, _ = the_only(objectives).find_rows(predictions)
        codes = np.zeros(len(names), np.int64) if given is None else given.astype(np.int64) - 1
        keys: list[Any] = [None]
    else:
        codes, keys = subgroup_codes(groups.subgroups, len(names))
    members = {keys[code]: np.flatnonzero(codes == code) for code in np.unique(codes[codes >= 0])}
    each = _objective_by_group(objectives, list(members))
    found = dict(zip(members, each, strict=True))
    named = {
        group: rows[draw_rows(len(rows), _NAMING, seed)]
        for one, (group, rows) in zip(each, members.items(), strict=True)
        if isinstance(one, Risk) and one.is_open and len(rows) >= _NAMING
    }
    sizes = [len(rows) - len(named.get(group, ())) for group, rows in members.items()]
    shares = _divide_delta(each, sizes, Loss())
    for (group, objective), n, share in zip(found.items(), sizes, shares, strict=True):
        if group in named and isinstance(objective, Risk):
            names[some := named[group]] = True
            other = Outcomes(np.zeros(len(some)), confidence[some])
            level = objective.delta / objective.max_analyses / share
            levels = LevelSequence.of(
                RiskCoverageCurve.from_outcomes(other), n, objective.target, level,
                BAND_BESIDE_LEVELS,
            )  # fmt: skip
            found[group] = replace(objective, method=levels)
    return (found[None] if groups is None else found or objectives), names


def pick(
    outcomes: Outcomes,
    groups: Grouping | None,
    cases: str,
    objectives: Objectives,
    setting: Setting,
) -> ThresholdSelection | GroupedSelection:
    """Pick the threshold for checked objectives, or one for each subgroup.

    Raise or warn where there is none.
    """
    for objective in each_of(objectives):
        outcomes = _check_counts(outcomes, objective)
    if groups is not None:
        return _pick_by_group(outcomes, groups, objectives, setting)
    objective, n = the_only(objectives), len(outcomes)
    if isinstance(objective, SystemRisk):
        caveats = (*setting.caveats, *order.doubt_reviewer(outcomes))
        stated, (objective, outcomes) = objective, objective.name_levels(outcomes, setting.seed)
        share, drawn = setting.share * len(outcomes) / n, objective is not stated
        setting = replace(setting, caveats=caveats, share=share, by_chance=drawn)
    found = _find(outcomes, objective, setting, cases=cases)
    return _report_infeasible(found, setting.on_infeasible)


def _check_counts(outcomes: Outcomes, objective: Objective) -> Outcomes:
    """Refuse weights that do not fit the objective; return rows without equal ones."""
    if objective.guarantees:
        check_importance(outcomes.sample_weight, objective.largest_weight)
        if objective.largest_weight is None and outcomes.sample_weight is not None:
            return replace(outcomes, sample_weight=None)
    elif isinstance(objective, Best) and objective.bounds_luck:
        refuse_weights(outcomes.sample_weight, "a lower bound", ", or use method='empirical'")
    return outcomes


def pick_on_curve(
    curve: RiskCoverageCurve, objective: Objective, setting: Setting
) -> ThresholdSelection:
    """Pick the threshold from a curve of unweighted errors, without its rows."""
    check_countable(curve)
    if objective.reads_reviewer:
        raise ValueError(
            "objective='system_risk' needs the reviewer's answer to each row, and a curve holds "
            "only sums; pass Predictions with reviewer=, or a bound, reviewer_error=."
        )
    objective = objective.on(setting.loss)
    if objective.guarantees:
        setting = replace(setting, caveats=(certificates.UNORDERED,))
    # A curve does not say whether confidences lie in [0, 1].
    setting = replace(setting, bounded=not isinstance(objective, Coverage))
    found = _find_on_curve(curve, [(curve, None)], objective, setting)
    return _report_infeasible(found, setting.on_infeasible)


def _report_infeasible(found: ThresholdSelection, on_infeasible: str) -> ThresholdSelection:
    """Return the selection; raise or warn where it accepts nothing."""
    objective = found.objective
    if not found.accepts_nothing:
        return found
    if isinstance(objective, Cost):
        warn_user(objective.tell_infeasible())
        return found
    if on_infeasible == "raise":
        raise _refuse(found, objective.reuse_warning, _REMEDY)
    if on_infeasible == "wait":
        warn_user(
            "No threshold passes yet, so nothing is accepted: judge more rows, first those that "
            "next_to_judge (in a terminal --next) names, and ask again."
        )
        return found
    error = _refuse(found, objective.reuse_warning)
    warn_user(f"{error} Nothing will be accepted.")
    return found


def _refuse(found: ThresholdSelection, again: str = "", remedy: str = "") -> InfeasibleTargetError:
    if found.certificate is not None:
        if found.certificate.reviewer:
            again = f" {found.certificate.reviewer}{again}"
        told = [one for one in found.certificate.caveats if one.endswith(certificates.MUST_PASS)]
        again = "".join(f" {one}." for one in told) + again
    return found.objective.refuse(found.curve, again=again, remedy=remedy)


# Subgroups ---------------------------------------------------------------------------------


def _pick_by_group(
    outcomes: Outcomes,
    groups: Grouping,
    objectives: Objectives,
    setting: Setting,
) -> GroupedSelection:
    """Pick one threshold per subgroup, each at its share of delta."""
    by = groups.name
    members = _find_members(outcomes, groups)
    found: dict[Any, ThresholdSelection] = {}
    refused: dict[Any, ThresholdSelection] = {}
    small: list[tuple[str, int, float]] = []
    each = _objective_by_group(objectives, list(members))
    read = np.ones((len(outcomes), 1), bool) if outcomes.readings is None else outcomes.readings
    sizes = [int(read[rows].sum(axis=0).min()) for rows in members.values()]
    shares = _divide_delta(each, sizes, setting.loss)
    for (group, rows), objective, n, share in zip(
        members.items(), each, sizes, shares, strict=True
    ):
        cases = f"of {by} {group!r}"
        one = _find(outcomes.take(rows), objective, setting, share, cases=cases)
        found[group] = one
        if one.accepts_nothing and isinstance(one.objective, Cost):
            warn_user(one.objective.tell_infeasible())
        elif one.accepts_nothing and share > min(shares):
            small.append((repr(group), n, one.objective.rows_to_fail))
        elif one.accepts_nothing:
            refused[group] = one
    errors = {f"{by} {group!r}": _refuse(one) for group, one in islice(refused.items(), _FEW)}
    told = [f"{which}: {error.reason}" for which, error in errors.items()]
    if len(refused) > _FEW:
        told.append(f"The same holds for {len(refused) - _FEW:,} more subgroups.")
    again = "".join(one.objective.reuse_warning for one in islice(refused.values(), 1))
    if setting.on_infeasible == "wait":
        again = " Judge more of its rows, and ask again."
    notes = [f"{' '.join(told)}{again} "] if told else []
    if small:
        notes.append(_list_small(by, small, len(members)))
    if len(refused) + len(small) == len(members) and setting.on_infeasible == "raise":
        raise InfeasibleTargetError(
            "\n".join(note.strip() for note in notes),
            rows_needed=next(iter(errors.values())).rows_needed,
            remedy=_REMEDY,
        )
    for note in notes:
        warn_user(f"{note}Their cases will be deferred.")
    curve = RiskCoverageCurve.from_outcomes(outcomes.all_counted)
    columns = () if groups.by_answer else names_of_columns(groups.subgroups)
    return GroupedSelection(
        by, found, curve, groups.unseen, by_answer=groups.by_answer, columns=columns
    )


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
    >>> from skselect.selection.pick import share_delta
    >>> share_delta(np.array([400, 3, 600]), lambda k: np.full(3, 59 + 14 * (k - 1)))
    (array([ True, False,  True]), 2)
    """
    counts = range(1, len(sizes) + 1)
    n_shares = bisect_left(counts, True, key=lambda k: bool(np.sum(sizes >= needed(k)) < k))
    enough = [sizes >= needed(k) for k in (max(n_shares, 1), n_shares + 1)]
    gets = np.zeros(len(sizes), dtype=bool)
    gets[np.lexsort((-sizes, *(~one for one in enough)))[:n_shares]] = True
    return gets, n_shares


def _divide_delta(each: list[Objective], sizes: list[int], loss: Loss) -> list[int]:
    """Return by which number each subgroup divides delta.

    It is larger for those that get no share. With their few rows they certify nothing at that
    level either, or accept everything, for a coverage.
    """
    kinds = {id(one): one for one in each}

    def needed(k: int) -> FloatArray:
        least = {key: one.on(loss, n_sharing=k).rows_to_fail for key, one in kinds.items()}
        return np.array([least[id(one)] for one in each])

    gets, n_shares = share_delta(np.array(sizes), needed)
    rest = len(sizes) if any(isinstance(one, Coverage) for one in each) else n_shares + 1
    return np.where(gets, n_shares, rest).tolist()


def _list_small(by: str, small: list[tuple[str, int, float]], n_groups: int) -> str:
    """Return a table of the subgroups that are too small to get a share of delta."""
    table = pd.DataFrame(small, columns=[by, "rows", "rows needed"])
    return (
        f"{by}: too few rows to certify {len(small)} of {n_groups} subgroups, which leave delta to "
        "the others. You may put small ones together by their numbers of rows, which see no "
        "label.\n"
        f"{table.to_string(index=False, max_rows=_LISTED)}\n"
    )


def _find_members(outcomes: Outcomes, groups: Grouping) -> dict[Any, IntArray]:
    """Return the rows of each subgroup, without rows of weight zero."""
    codes, keys = subgroup_codes(groups.subgroups, len(outcomes))
    exists = outcomes.weight > 0
    missing = int(np.sum((codes < 0) & exists))
    codes = np.where(exists, codes, -1)
    members = {keys[code]: np.flatnonzero(codes == code) for code in np.unique(codes[codes >= 0])}
    check_some_subgroup(members)
    if missing:
        later = "deferred" if groups.unseen == "abstain" else "refused"
        warn_user(
            f"subgroups: {missing} of {len(codes)} rows have no {groups.name}. They choose no "
            f"threshold, and such rows will be {later}."
        )
    return members


def _objective_by_group(objectives: Objectives, groups: list[Any]) -> list[Objective]:
    """Return the objective of each subgroup: the same for all, or one each from a mapping."""
    if isinstance(objectives, Objective):
        return [objectives] * len(groups)
    missing = [group for group in groups if group not in objectives]
    extra = [group for group in objectives if group not in groups]
    if missing or extra:
        raise ValueError(
            f"objective (or its target) must name every subgroup once. The rows hold {groups}; "
            f"missing: {missing}, without rows: {extra}."
        )
    return [objectives[group] for group in groups]


# One threshold -----------------------------------------------------------------------------


def _find(
    outcomes: Outcomes,
    objective: Objective,
    setting: Setting,
    n_sharing: int = 1,
    *,
    cases: str,
) -> ThresholdSelection:
    """Find the threshold; inf where none is good enough."""
    setting, outcomes = setting.with_pool(outcomes), outcomes.all_counted
    objective = objective.on(setting.loss, cases, n_sharing=n_sharing, share=setting.share)
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    counted, named = outcomes, isinstance(objective.method, LevelSequence) and setting.by_chance
    if objective.counts:
        counted = outcomes.count(setting.seed, objective.largest_weight)
    setting = replace(setting, by_chance=named or counted is not outcomes)
    rows = counted.read() if objective.guarantees else [outcomes]
    readings = [
        (curve if one is outcomes else RiskCoverageCurve.from_outcomes(one), one) for one in rows
    ]
    return _find_on_curve(curve, readings, objective, setting)


def _find_on_curve(
    curve: RiskCoverageCurve,
    readings: Sequence[Reading],
    objective: Objective,
    setting: Setting,
) -> ThresholdSelection:
    """Find the threshold that passes under each reading of the rows of a curve."""
    certificate, (first, _) = None, readings[0]
    if isinstance(objective, Guarantee):
        passing = [(one, objective.passes(one, rows)) for one, rows in readings]
        found = objective.choose(first, pass_all(passing))
    else:
        found = objective.find(curve)
    threshold, n_blocks = found.threshold, found.n_blocks
    if threshold is None:
        threshold = threshold_below(first, n_blocks, bounded=setting.bounded)
    threshold = max(threshold, setting.least)
    if curve is not first:
        n_blocks = int(curve.n_blocks_accepted(np.array([threshold]))[0])
    at = curve.working_point(n_blocks)
    if isinstance(objective, Guarantee) and objective.guarantees:
        certificate = _issue(curve, at, readings, threshold, objective, setting)
    if threshold == np.inf and objective.guarantees:  # the reading that refuses says why
        curve = next((one for one, passed in passing if not passed.any()), first)
    risk = objective.about.unit * at[1]
    return ThresholdSelection(threshold, objective, at[0], risk, found.value, certificate, curve)


def _issue(
    curve: RiskCoverageCurve,
    at: tuple[float, float],
    readings: Sequence[Reading],
    threshold: float,
    objective: Guarantee,
    setting: Setting,
) -> Certificate:
    """Return the certificate of a threshold that the rows of a curve chose.

    `at` are coverage and risk there. The counts are those of the first of the `readings`.
    """
    counts = [_count_accepted(*one, threshold) for one in readings]
    caveats, assumed, heaviest = [*setting.caveats], [], objective.largest_weight
    if objective.plan.caveat:
        caveats.append(Caveat(objective.plan.caveat))
    if counts[0].n_accepted == 0:
        caveats.append(certificates.NOTHING)
    if heaviest is not None:
        assumed = [certificates.WEIGHED, f"no case weighs more than {heaviest:g}"]
    if objective.has_starts:
        assumed.append(certificates.STARTS)
    which = [setting.provenance] if setting.provenance else []
    if counts[0].n < curve.n_rows:
        kept = f"{counts[0].n:,} of {curve.n_rows:,} rows"
        which.append(f"{kept}, drawn in proportion to their weights")
    origin = replace(
        setting, caveats=(*caveats,), assumed=(*assumed,), provenance="; ".join(which),
        fingerprints={"data": certificates.fingerprint(curve), **setting.fingerprints},
        reviewer=objective.review(readings[0][1], threshold),
    )  # fmt: skip
    return Certificate.of(objective, threshold, at, counts, origin)


def _count_accepted(curve: RiskCoverageCurve, rows: Outcomes | None, threshold: float) -> Counts:
    """Count what a threshold accepts, by the rows where they are known."""
    if rows is not None:
        return Counts.of(rows.loss, rows.confidence >= threshold, rows.reviewer_loss)
    n_blocks = int(curve.n_blocks_accepted(np.array([threshold]))[0])
    return Counts(curve.n_rows, *map(int, curve.accepted_by(n_blocks)))
