"""From rows and objectives to a threshold, for tables and estimators alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, draw_rows
from skselect._lib.checks.rows import check_countable
from skselect.curve.curve import RiskCoverageCurve
from skselect.objectives import (
    Coverage,
    Loss,
    Objective,
    Objectives,
    Risk,
    SystemRisk,
    each_of,
    for_all_rows,
)
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Origin
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions
from skselect.selection.by_group import divide_delta, objective_by_group, pick_by_group
from skselect.selection.results import GroupedSelection, ThresholdSelection
from skselect.selection.sample import Grouping, Sample
from skselect.selection.settle import (
    ObjectiveOnRows,
    Reading,
    report_infeasible,
    settle_together,
)
from skselect.thresholds import LevelSequence
from skselect.thresholds._sequences import BAND_BESIDE_LEVELS

# Where confidences are tied, one row in ten names levels.
_NAMING = 10


def pick(
    sample: Sample, objectives: Objectives, on_infeasible: str
) -> ThresholdSelection | GroupedSelection:
    """Pick the threshold for checked objectives, or one for each subgroup.

    Raise or warn where there is none.
    """
    if sample.groups is not None:
        for objective in each_of(objectives):
            sample = sample.weighted_for(objective)
        return pick_by_group(sample, objectives, on_infeasible)
    guarantees = for_all_rows(objectives)
    samples = [sample.about(objective) for objective in guarantees]
    if len(guarantees) > 1:
        on_rows = [
            ObjectiveOnRows.of(rows_of_guarantee, objective, len(guarantees))
            for rows_of_guarantee, objective in zip(samples, guarantees, strict=True)
        ]
        curve = RiskCoverageCurve.from_outcomes(sample.outcomes.all_counted)
        return settle_together(curve, on_rows, on_infeasible)
    [objective] = guarantees
    [rows_of_guarantee] = samples
    if isinstance(objective, SystemRisk):
        rows_of_guarantee, objective = _name_system_levels(rows_of_guarantee, objective)
    selection = ObjectiveOnRows.of(rows_of_guarantee, objective).settle()
    return report_infeasible(selection, on_infeasible)


def _name_system_levels(sample: Sample, objective: SystemRisk) -> tuple[Sample, SystemRisk]:
    """Let some rows name the levels of a system risk; return those that test them."""
    named, outcomes = objective.name_levels(sample.outcomes, sample.seed)
    share = sample.share * len(outcomes) / len(sample)
    is_drawn = named is not objective
    return replace(sample, outcomes=outcomes, share=share, by_chance=is_drawn), named


def pick_on_curve(
    curve: RiskCoverageCurve, objectives: Sequence[Objective], loss: Loss, on_infeasible: str
) -> ThresholdSelection:
    """Pick the threshold from a curve of unweighted errors, without its rows."""
    check_countable(curve)
    if any(objective.counts_deferred for objective in objectives):
        raise ValueError(
            "objective='system_risk' counts what a reviewer gets wrong row by row, and a curve "
            "holds only sums; pass Predictions, or a bound over all cases, overall_error=."
        )
    caveats = certificates.NO_CAVEATS
    if objectives[0].guarantees:
        caveats = (certificates.UNORDERED,)
    # A curve does not say whether confidences lie in [0, 1].
    bounded = not any(isinstance(objective, Coverage) for objective in objectives)
    on_rows = [
        ObjectiveOnRows(
            objective=objective.on(loss, n_sharing=len(objectives)),
            origin=Origin(caveats=caveats),
            curve=curve,
            readings=[Reading(curve, None)],
            bounded=bounded,
        )
        for objective in objectives
    ]
    if len(on_rows) > 1:
        return settle_together(curve, on_rows, on_infeasible)
    return report_infeasible(on_rows[0].settle(), on_infeasible)


# Levels that a part of the rows names --------------------------------------------------------


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
    members = _members_of(predictions, len(confidence), objectives, groups)
    each_objective = objective_by_group(objectives, list(members))
    naming_rows = _draw_naming_rows(each_objective, members, seed)
    is_naming = np.zeros(len(confidence), dtype=bool)
    for rows in naming_rows.values():
        is_naming[rows] = True
    n_testing = [len(rows) - len(naming_rows.get(group, ())) for group, rows in members.items()]
    divisors = divide_delta(each_objective, n_testing, Loss())
    with_levels: dict[Any, Objective] = {}
    for group, objective, n, divisor in zip(
        members, each_objective, n_testing, divisors, strict=True
    ):
        with_levels[group] = objective
        if group in naming_rows and isinstance(objective, Risk):
            rows = naming_rows[group]
            with_levels[group] = _with_levels(objective, confidence[rows], n, divisor)
    if groups is None:
        return with_levels[None], is_naming
    return with_levels or objectives, is_naming


def _draw_naming_rows(
    each_objective: Sequence[Objective], members: Mapping[Any, IntArray], seed: int
) -> dict[Any, IntArray]:
    """Return a tenth of the rows of each subgroup whose objective leaves its levels open."""
    naming_rows = {}
    for objective, (group, rows) in zip(each_objective, members.items(), strict=True):
        if isinstance(objective, Risk) and objective.is_open and len(rows) >= _NAMING:
            naming_rows[group] = rows[draw_rows(len(rows), _NAMING, seed)]
    return naming_rows


def _members_of(
    predictions: Predictions, n_rows: int, objectives: Objectives, groups: Grouping | None
) -> dict[Any, IntArray]:
    """Return the rows of each subgroup; those that the one guarantee is about under None."""
    if groups is not None:
        return groups.members
    [objective] = for_all_rows(objectives)
    rows_of_guarantee, _ = objective.find_rows(predictions)
    if rows_of_guarantee is None:
        return {None: np.arange(n_rows)}
    return {None: np.flatnonzero(rows_of_guarantee)}


def _with_levels(objective: Risk, confidence: FloatArray, n: int, divisor: int) -> Risk:
    """Return a risk that tests the levels of these confidences, on `n` other rows."""
    naming = Outcomes(np.zeros(len(confidence)), confidence)
    curve = RiskCoverageCurve.from_outcomes(naming)
    level = objective.delta / objective.max_analyses / divisor
    levels = LevelSequence.of(curve, n, objective.target, level, BAND_BESIDE_LEVELS)
    return replace(objective, method=levels)
