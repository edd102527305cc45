"""From outcomes and an objective to a threshold, for tables and estimators alike."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, draw_rows
from skselect._lib.checks import warn_user
from skselect._lib.checks.rows import check_countable
from skselect._lib.notebook import percent
from skselect.curve.curve import RiskCoverageCurve, threshold_below
from skselect.exceptions import InfeasibleTargetError
from skselect.objectives import (
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
    for_all_rows,
)
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Caveat, Certificate, Origin
from skselect.policy.subgroups import names_of_columns
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions
from skselect.selection.results import GroupedSelection, ThresholdSelection
from skselect.selection.sample import Grouping, Sample
from skselect.thresholds import LevelSequence
from skselect.thresholds._rules import Passing, pass_all
from skselect.thresholds._sequences import BAND_BESIDE_LEVELS

# Where confidences are tied, one row in ten names levels.
_NAMING = 10
# A table of subgroups without a threshold has so many lines at most.
_LISTED = 50
_REMEDY = "With on_infeasible='abstain' nothing is accepted instead."
#: The curve of rows that count once, and the rows, None where only the curve is known.
Reading = tuple[RiskCoverageCurve, Outcomes | None]


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
        [objective] = for_all_rows(objectives)
        given, _ = objective.find_rows(predictions)
        members = {None: np.arange(len(names)) if given is None else np.flatnonzero(given)}
    else:
        members = groups.members
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
    sample: Sample, objectives: Objectives, on_infeasible: str
) -> ThresholdSelection | GroupedSelection:
    """Pick the threshold for checked objectives, or one for each subgroup.

    Raise or warn where there is none.
    """
    if sample.groups is not None:
        for objective in each_of(objectives):
            sample = sample.weighted_for(objective)
        return _pick_by_group(sample, objectives, on_infeasible)
    parts = for_all_rows(objectives)
    rows = [sample.about(objective) for objective in parts]
    if len(parts) > 1:
        tests = [
            _place(own, objective, len(parts)) for own, objective in zip(rows, parts, strict=True)
        ]
        curve = RiskCoverageCurve.from_outcomes(sample.outcomes.all_counted)
        return _settle_together(curve, tests, on_infeasible)
    [objective], [own] = parts, rows
    if isinstance(objective, SystemRisk):
        stated, (objective, outcomes) = objective, objective.name_levels(own.outcomes, own.seed)
        share, drawn = own.share * len(outcomes) / len(own), objective is not stated
        own = replace(own, outcomes=outcomes, share=share, by_chance=drawn)
    return _report_infeasible(_settle(_place(own, objective)), on_infeasible)


def pick_on_curve(
    curve: RiskCoverageCurve, parts: Sequence[Objective], loss: Loss, on_infeasible: str
) -> ThresholdSelection:
    """Pick the threshold from a curve of unweighted errors, without its rows."""
    check_countable(curve)
    if any(objective.counts_deferred for objective in parts):
        raise ValueError(
            "objective='system_risk' counts what a reviewer gets wrong row by row, and a curve "
            "holds only sums; pass Predictions, or a bound over all cases, overall_error=."
        )
    caveats = (certificates.UNORDERED,) if parts[0].guarantees else ()
    # A curve does not say whether confidences lie in [0, 1].
    bounded = not any(isinstance(objective, Coverage) for objective in parts)
    tests = [
        Test(
            objective.on(loss, n_sharing=len(parts)), Origin(caveats=caveats),
            curve, [(curve, None)], bounded,
        )
        for objective in parts
    ]  # fmt: skip
    if len(tests) > 1:
        return _settle_together(curve, tests, on_infeasible)
    return _report_infeasible(_settle(tests[0]), on_infeasible)


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
            "No threshold passes yet, so nothing is accepted. Judge more rows, first those that "
            "next_to_judge (in a terminal: --next) names, and ask again."
        )
        return found
    error = _refuse(found, objective.reuse_warning)
    warn_user(f"{error} Nothing will be accepted.")
    return found


def _report_contradiction(
    each: Sequence[ThresholdSelection], on_infeasible: str
) -> ThresholdSelection:
    """Return a selection of guarantees that no threshold keeps together; raise or warn."""
    stated = [found.certificate.statement for found in each if found.certificate is not None]
    reason = (
        "Each of these guarantees could be kept by itself, but no threshold is known to keep all "
        f"of them: {'; '.join(stated)}. Relax one of them, or use more rows."
    )
    if on_infeasible == "raise":
        raise InfeasibleTargetError(reason, remedy=_REMEDY)
    warn_user(f"{reason} Nothing will be accepted.")
    return each[0]


def _refuse(found: ThresholdSelection, again: str = "", remedy: str = "") -> InfeasibleTargetError:
    if found.certificate is not None:
        if found.certificate.reviewer:
            again = f" {found.certificate.reviewer}{again}"
        told = [one for one in found.certificate.caveats if one.endswith(certificates.MUST_PASS)]
        again = "".join(f" {one}." for one in told) + again
    return found.objective.refuse(found.curve, again=again, remedy=remedy)


# Subgroups ---------------------------------------------------------------------------------


def _pick_by_group(sample: Sample, objectives: Objectives, on_infeasible: str) -> GroupedSelection:
    """Pick one threshold per subgroup, each at its share of delta."""
    groups, outcomes, members = cast(Grouping, sample.groups), sample.outcomes, sample.by_group
    by = groups.name
    found: dict[Any, ThresholdSelection] = {}
    refused: dict[Any, ThresholdSelection] = {}
    small: list[tuple[str, int, float]] = []
    each = _objective_by_group(objectives, list(members))
    sizes, read = [*map(len, members.values())], outcomes.readings
    if read is not None:
        sizes = [int(read[rows].sum(axis=0).min()) for rows in members.values()]
    shares = _divide_delta(each, sizes, sample.loss)
    for (group, rows), objective, n, share in zip(
        members.items(), each, sizes, shares, strict=True
    ):
        own = replace(sample, outcomes=outcomes.take(rows), cases=f"of {by} {group!r}")
        one = _settle(_place(own, objective, share))
        found[group] = one
        if one.accepts_nothing and isinstance(one.objective, Cost):
            warn_user(one.objective.tell_infeasible())
        elif one.accepts_nothing and share > min(shares):
            small.append((repr(group), n, one.objective.rows_to_fail))
        elif one.accepts_nothing:
            refused[group] = one
    errors = {group: _refuse(one) for group, one in islice(refused.items(), _LISTED)}
    told = [f"{by} {group!r}: {error.reason}" for group, error in errors.items()]
    if len(refused) > 1:
        told = [_list_refused(by, refused, errors)]
    again = "".join(one.objective.reuse_warning for one in islice(refused.values(), 1))
    if on_infeasible == "wait":
        again = " Judge more of its rows, and ask again."
    notes = [f"{told[0]}{again} "] if told else []
    if small:
        notes.append(_list_small(by, small, len(members)))
    if len(refused) + len(small) == len(members) and on_infeasible == "raise":
        raise InfeasibleTargetError(
            "\n".join(note.strip() for note in notes),
            rows_needed=next(iter(errors.values())).rows_needed,
            remedy=_REMEDY,
        )
    for note in notes:
        warn_user(f"{note}Their cases will be deferred.")
    curve = sample.sort(outcomes.all_counted)
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


def _list_refused(
    by: str, refused: Mapping[Any, ThresholdSelection], errors: Mapping[Any, InfeasibleTargetError]
) -> str:
    """Return a table of the subgroups that have no threshold, though they share delta."""
    rows = [
        (repr(group), refused[group].curve.n_rows, error.rows_needed or "none",
         f"{error.least_target:.4g}" if error.least_target else "none")
        for group, error in errors.items()
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=[by, "rows", "rows needed", "least target"])
    more = f"\nand {len(refused) - len(rows):,} more" if len(refused) > len(rows) else ""
    share = next(iter(refused.values())).objective.share
    which = "" if share == 1.0 else f" Only certifying rows are counted, {percent(share)} of all."
    return (
        f"{by}: no threshold meets the target in {len(refused):,} subgroups.\n"
        f"{table.to_string(index=False)}{more}\n"
        "'rows needed' should be enough if errors stay as common as in these rows, which could "
        f"have met the 'least target'. Certifying either needs fresh rows.{which}"
    )


def _list_small(by: str, small: list[tuple[str, int, float]], n_groups: int) -> str:
    """Return a table of the subgroups that are too small to get a share of delta."""
    table = pd.DataFrame(small, columns=[by, "rows", "rows needed"])
    return (
        f"{by}: {len(small)} of {n_groups} subgroups have too few rows to be certified, so they "
        "leave their share of delta to the others. You may merge small subgroups, because their "
        "numbers of rows reveal no label.\n"
        f"{table.to_string(index=False, max_rows=_LISTED)}\n"
    )


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


class Test(NamedTuple):
    """An objective on its rows.

    Parameters
    ----------
    objective : Objective
    origin : Origin
        What is known of the rows.
    curve : RiskCoverageCurve
        Of the rows as they are.
    readings : list of Reading
        Under each of them a threshold must pass.
    bounded : bool
        Whether confidences lie in [0, 1].
    least : float, default=-inf
        No threshold lies below it.
    """

    objective: Objective
    origin: Origin
    curve: RiskCoverageCurve
    readings: Sequence[Reading]
    bounded: bool
    least: float = -math.inf

    def run(self) -> list[tuple[RiskCoverageCurve, Passing]]:
        """Return the thresholds that pass each reading; what is no guarantee is not tested."""
        objective = self.objective
        if not isinstance(objective, Guarantee):
            return []
        return [(curve, objective.passes(curve, rows)) for curve, rows in self.readings]

    def select(
        self,
        threshold: float,
        passing: Sequence[tuple[RiskCoverageCurve, Passing]],
        value: float | None = None,
    ) -> ThresholdSelection:
        """Return the selection of a threshold, with its certificate."""
        objective, curve, certificate = self.objective, self.curve, None
        at = curve.working_point(curve.n_blocks_at(threshold))
        if isinstance(objective, Guarantee) and objective.guarantees:
            certificate = _issue(self, at, threshold, objective)
        if threshold == np.inf and objective.guarantees:  # the reading that refuses says why
            curve = next((one for one, passed in passing if not passed.any()), self.readings[0][0])
        risk = objective.about.unit * at[1]
        return ThresholdSelection(threshold, objective, at[0], risk, value, certificate, curve)


def _place(sample: Sample, objective: Objective, n_sharing: int = 1) -> Test:
    """Return an objective on its rows, as each reading of these counts them."""
    sample = sample.pooled
    objective = objective.on(sample.loss, sample.cases, n_sharing=n_sharing, share=sample.share)
    outcomes, curve = sample.outcomes, sample.sort(sample.outcomes)
    counted, named = outcomes, isinstance(objective.method, LevelSequence) and sample.by_chance
    if objective.counts:
        counted = outcomes.count(sample.seed, objective.largest_weight)
    origin = replace(sample, by_chance=named or counted is not outcomes)
    rows = counted.read() if objective.guarantees else [outcomes]
    readings = [
        (curve if one is outcomes else RiskCoverageCurve.from_outcomes(one), one) for one in rows
    ]
    return Test(objective, origin, curve, readings, sample.bounded, sample.least)


def _settle(test: Test) -> ThresholdSelection:
    """Find the threshold that passes under each reading of the rows; inf where none does."""
    objective, (first, _), passing = test.objective, test.readings[0], test.run()
    if isinstance(objective, Guarantee):
        found = objective.choose(first, pass_all(passing))
    else:
        found = objective.find(test.curve)
    threshold = found.threshold
    if threshold is None:
        threshold = threshold_below(first, found.n_blocks, bounded=test.bounded)
    return test.select(max(threshold, test.least), passing, found.value)


def _settle_together(
    curve: RiskCoverageCurve, tests: Sequence[Test], on_infeasible: str
) -> ThresholdSelection:
    """Find the threshold that keeps several guarantees; raise or warn where there is none.

    `curve` is that of all rows. Each guarantee is tested at its share of delta.
    """
    every = Passing(np.ones(len(curve), dtype=bool))
    passing = [test.run() for test in tests]
    kept = [pass_all([(curve, every), *passed]).entries for passed in passing]
    leads = [test.objective for test in tests if not isinstance(test.objective, Coverage)]
    chooser = (leads or [test.objective for test in tests])[0]
    assert isinstance(chooser, Guarantee)
    found = chooser.choose(curve, Passing(np.all(kept, axis=0)))
    threshold = threshold_below(curve, found.n_blocks, bounded=tests[0].bounded)
    threshold = max(threshold, tests[0].least)
    each = [test.select(threshold, passed) for test, passed in zip(tests, passing, strict=True)]
    alone = [one for one, entries in zip(each, kept, strict=True) if not np.any(entries)]
    if threshold == np.inf and alone:
        return _report_infeasible(alone[0], on_infeasible)
    if threshold == np.inf:
        return _report_contradiction(each, on_infeasible)
    first, *others = [one.certificate for one in each if one.certificate is not None]
    return replace(each[0], certificate=replace(first, also=tuple(others)))


def _issue(
    test: Test, at: tuple[float, float], threshold: float, objective: Guarantee
) -> Certificate:
    """Return the certificate of a threshold that the rows of a test chose.

    `at` are coverage and risk there. The counts are those of the first reading.
    """
    _, origin, curve, readings, *_ = test
    counts = [_count_accepted(*one, threshold) for one in readings]
    caveats, assumed, heaviest = [*origin.caveats], [], objective.largest_weight
    if objective.plan.caveat:
        caveats.append(Caveat(objective.plan.caveat))
    if counts[0].n_accepted == 0:
        caveats.append(certificates.NOTHING)
    if heaviest is not None:
        assumed = [certificates.WEIGHED, f"no case weighs more than {heaviest:g}"]
    if objective.has_starts:
        assumed.append(certificates.STARTS)
    which = [origin.provenance] if origin.provenance else []
    if counts[0].n < curve.n_rows:
        kept = f"{counts[0].n:,} of {curve.n_rows:,} rows"
        which.append(f"{kept}, drawn in proportion to their weights")
    origin = replace(
        origin, caveats=(*caveats,), assumed=(*assumed,), provenance="; ".join(which),
        fingerprints={"data": certificates.fingerprint(curve), **origin.fingerprints},
        reviewer=objective.review(readings[0][1], threshold),
    )  # fmt: skip
    return Certificate.of(objective, threshold, at, counts, origin)


def _count_accepted(curve: RiskCoverageCurve, rows: Outcomes | None, threshold: float) -> Counts:
    """Count what a threshold accepts, by the rows where the sums of a curve are not counts."""
    if rows is not None and not (curve.blocks.whole and rows.reviewer_loss is None):
        return Counts.of(rows.loss, rows.confidence >= threshold, rows.reviewer_loss)
    n_blocks = curve.n_blocks_at(threshold)
    return Counts(curve.n_rows, *map(int, curve.accepted_by(n_blocks)))
