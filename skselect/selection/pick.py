"""From outcomes and an objective to a threshold, for tables and estimators alike."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import kolmogorov

from skselect._lib.arrays import (
    ROUNDING,
    BoolArray,
    FloatArray,
    IntArray,
    dot,
    draw_rows,
    reaches,
    spans,
)
from skselect._lib.checks import shown, warn_user
from skselect._lib.checks.rows import (
    check_countable,
    check_importance,
    check_some_subgroup,
    refuse_weights,
)
from skselect._lib.notebook import percent
from skselect._lib.sklearn import take_rows
from skselect.curve.curve import RiskCoverageCurve, threshold_below
from skselect.exceptions import ArgumentError, InfeasibleTargetError
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
)
from skselect.policy import certificate as certificates
from skselect.policy.certificate import UNORDERED, Caveat, Certificate, fingerprint, in_order
from skselect.policy.policy import AbstentionPolicy
from skselect.policy.seen_rows import record_confidence
from skselect.policy.subgroups import names_of_columns, subgroup_codes
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions, rows_of_class
from skselect.selection.results import GroupedSelection, ThresholdSelection, tuning_mask
from skselect.thresholds import LevelSequence, Shortlist
from skselect.thresholds._metric import MetricOptimum
from skselect.thresholds._rules import BAND_BESIDE_LEVELS, pass_all

# Where confidences are tied, one row in ten names levels.
_NAMING = 10
# So many errors of the machine without one of the reviewer raise a doubt.
_NO_LUCK = 100
# There are messages about so many subgroups at most, and so many lines in a table of small ones.
_FEW, _LISTED = 5, 50
_REMEDY = "With on_infeasible='abstain' nothing is accepted instead."
# The least coverage is said to bind where the chosen one is larger by less than this.
_NEAR = 0.05
_QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


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
    drawn : str, default=""
        How the rows were drawn, which the certificate assumes first.
    seed : int, default=0
        What is drawn by chance is drawn with it.
    by_chance : bool, default=False
        Whether anything was: rows that named levels, or coins for losses and weights.
    least : float, default=-inf
        No threshold lies below it.
    is_pool : bool, default=False
        Whether rows are judged bit by bit: looks in between are no analyses of their own.
    """

    loss: Loss
    on_infeasible: str = "raise"
    caveats: tuple[Caveat, ...] = ()
    bounded: bool = True
    share: float = 1.0
    provenance: str = ""
    fingerprints: Mapping[str, str] = MappingProxyType({})
    drawn: str = ""
    seed: int = 0
    by_chance: bool = False
    least: float = -math.inf
    is_pool: bool = False

    def with_pool(self, outcomes: Outcomes) -> Setting:
        """Return a setting that says how many of the rows are judged, where not all need to be."""
        if outcomes.unjudged is None:
            return self
        n, waits = len(outcomes), int(np.sum(outcomes.unjudged))
        rest = f"; the other {waits:,} count as wrong" if waits else ""
        which = f"{n - waits:,} judged cases of a pool of {n:,}{rest}"
        return self._replace(provenance=which, is_pool=True)


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
        rows, cases = rows_given(source, objective)
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
        given, _ = rows_given(predictions, the_only(objectives))
        codes = np.zeros(len(names), np.int64) if given is None else given.astype(np.int64) - 1
        keys: list[Any] = [None]
    else:
        codes, keys = subgroup_codes(groups.subgroups, len(names))
    members = {keys[code]: np.flatnonzero(codes == code) for code in np.unique(codes[codes >= 0])}
    each = _objective_by_group(objectives, list(members))
    found = dict(zip(members, each, strict=True))
    named = [
        rows[draw_rows(len(rows), _NAMING, seed)]
        if isinstance(one, Risk) and one.is_open and len(rows) >= _NAMING
        else rows[:0]
        for one, rows in zip(each, members.values(), strict=True)
    ]
    sizes = [len(rows) - len(some) for rows, some in zip(members.values(), named, strict=True)]
    shares = _divide_delta(each, sizes, Loss())
    for group, some, n, share in zip(members, named, sizes, shares, strict=True):
        objective = found[group]
        if len(some) and isinstance(objective, Risk):
            names[some] = True
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
        caveats = (*setting.caveats, *doubt_reviewer(outcomes))
        stated, (objective, outcomes) = objective, objective.name_levels(outcomes, setting.seed)
        share, drawn = setting.share * len(outcomes) / n, objective is not stated
        setting = setting._replace(caveats=caveats, share=share, by_chance=drawn)
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
        setting = setting._replace(caveats=(UNORDERED,))
    # A curve does not say whether confidences lie in [0, 1].
    setting = setting._replace(bounded=not isinstance(objective, Coverage))
    found = _find_on_curve(curve, [curve], [None], objective, setting)
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
    setting = setting._replace(by_chance=named or counted is not outcomes)
    rows = counted.read() if objective.guarantees else [outcomes]
    curves = [curve if one is outcomes else RiskCoverageCurve.from_outcomes(one) for one in rows]
    return _find_on_curve(curve, curves, rows, objective, setting)


def _find_on_curve(
    curve: RiskCoverageCurve,
    curves: Sequence[RiskCoverageCurve],
    readings: Sequence[Outcomes | None],
    objective: Objective,
    setting: Setting,
) -> ThresholdSelection:
    """Find the threshold that passes under each reading of the rows of a curve.

    `curves` are those of the readings; the rows of a reading are None where only a curve is known.
    """
    certificate = None
    if isinstance(objective, Guarantee):
        passing = [objective.passes(*one) for one in zip(curves, readings, strict=True)]
        found = objective.choose(curves[0], pass_all(curves, passing))
    else:
        found = objective.find(curve)
    threshold, n_blocks = found.threshold, found.n_blocks
    if threshold is None:
        threshold = threshold_below(curves[0], n_blocks, bounded=setting.bounded)
    threshold = max(threshold, setting.least)
    if found.optimum is not None:
        _warn_of_optimum(curve, objective, found.optimum)
    if curve is not curves[0]:
        n_blocks = int(curve.n_blocks_accepted(np.array([threshold]))[0])
    if objective.guarantees:
        certificate = issue_chosen(curve, n_blocks, curves, readings, threshold, objective, setting)
    if threshold == np.inf and objective.guarantees:  # the reading that refuses says why
        refusing = (x for x, one in zip(curves, passing, strict=True) if not one.any())
        curve = next(refusing, curves[0])
    value = None if found.optimum is None else found.optimum.value
    coverage, risk = curve.working_point(n_blocks)
    return ThresholdSelection(
        threshold, objective, coverage, objective.about.unit * risk, value, certificate, curve
    )


def _warn_of_optimum(curve: RiskCoverageCurve, metric: Objective, best: MetricOptimum) -> None:
    """Say where the least coverage binds, or everything is accepted."""
    before = best.n_blocks - 2
    assert isinstance(metric, Best)
    binds = best.unconstrained > best.best and not metric.constraint
    chosen, below = (curve.coverage[k - 1] for k in (best.n_blocks, best.n_unconstrained))
    # The next smaller accepted set may be far below the least coverage: rows are tied.
    is_least = before >= 0 and not reaches(curve.coverage[before], metric.min_coverage)
    if binds and (chosen < metric.min_coverage + _NEAR or is_least):
        bound = "the lower bound of " if metric.bounds_luck else ""
        n_below = curve.n_accepted[best.n_unconstrained - 1]
        tied = is_least and curve.n_accepted[before + 1] - curve.n_accepted[before] > 1
        fewer = ""
        if tied:
            least = percent(curve.coverage[before])
            fewer = f"Fewer would be {least}, for rows of equal confidence are accepted together. "
        warn_user(
            f"min_coverage={metric.min_coverage:g} binds: {bound}{metric.name} would be "
            f"{best.unconstrained:.4g} where {percent(below)} of the rows are accepted "
            f"({n_below:,.0f}), instead of {best.best:.4g} where {percent(chosen)} are. "
            f"{fewer}Lower min_coverage only where so many rows are enough: the best of few is "
            "often luck."
        )
    elif best.n_blocks == len(curve) and metric.sweeps:
        low, high = metric.range_on(curve)
        warn_user(
            f"{metric.name} is best when everything is accepted: of the thresholds from "
            f"{low:g} to {high:g} it is largest at {best.threshold:.4g}, and no confidence is "
            f"lower. All answers together have the risk {curve.mean_loss:.3g} here. To defer cases "
            "all the same, name a smaller one: objective='risk', target=0.05 is for at most "
            "5 % wrong answers."
        )


def make_policy(
    found: ThresholdSelection | GroupedSelection,
    outcomes: Outcomes,
    accepted: BoolArray,
    *,
    model_print: str | None = None,
    rated_by_others: bool = False,
    trained: FloatArray | None = None,
    **decides: Any,
) -> AbstentionPolicy:
    """Return the policy of a selection, with what it records about the rows that tuned it.

    Parameters
    ----------
    found : ThresholdSelection or GroupedSelection
    outcomes : Outcomes
        Of all rows, also of those set apart for a shortlist.
    accepted : ndarray of bool, shape (n,)
        Which of them it accepts.
    model_print : str, default=None
        Digest of the scores of these rows.
    rated_by_others : bool, default=False
        Whether other models than the final one rated these rows: the policy will not meet their
        confidences again, and records none.
    trained : ndarray of shape (m,), default=None
        The confidence of rows that trained the classifier.
    **decides
        What decides beside the thresholds, as :meth:`ThresholdSelection.to_policy` takes it.
    """
    curve = found.curve
    if curve.n_rows != len(outcomes):  # chosen on a part of the rows
        curve = RiskCoverageCurve.from_outcomes(outcomes.all_counted)
    prints, quantiles = {"data": fingerprint(curve)}, {}
    if model_print is not None:
        prints["model"] = model_print
    if not rated_by_others:
        prints["rows"] = record_confidence(curve.thresholds, curve.block_rows)
        values = np.quantile(outcomes.confidence, _QUANTILES)
        quantiles = {f"{q:g}": float(v) for q, v in zip(_QUANTILES, values, strict=True)}
    if trained is not None:
        prints["trained"] = record_confidence(*np.unique(trained, return_counts=True))
    facts = {
        "coverage": float(np.average(accepted, weights=outcomes.sample_weight)),
        "n": len(outcomes),
        "confidence_quantiles": quantiles,
        "fingerprints": prints,
    }
    return found.to_policy(**(decides | facts))


# Certificates ------------------------------------------------------------------------------


def issue_chosen(
    curve: RiskCoverageCurve,
    n_blocks: int,
    curves: Sequence[RiskCoverageCurve],
    readings: Sequence[Outcomes | None],
    threshold: float,
    objective: Objective,
    setting: Setting,
) -> Certificate:
    """Return the certificate of a threshold that the rows of a curve chose.

    `n_blocks` is how many entries of the curve it accepts. The counts are those of the first of the
    `readings` (with their `curves`), the bound is the weakest of all.
    """
    assert isinstance(objective, Guarantee)
    counts, bounds, reviewer = [], [], ""
    for one, rows in zip(curves, readings, strict=True):
        k = int(one.n_blocks_accepted(np.array([threshold]))[0])
        n_errors = int(one.accepted_by(k)[1])
        if one.is_graded and rows is not None:
            n_errors = int(np.count_nonzero(rows.loss[rows.confidence >= threshold]))
        n_missed, said = objective.review(rows, threshold)
        counts.append(Counts(one.n_rows, one.n_accepted_by(k), n_errors))
        reviewer = reviewer or said
        bounds.append(objective.counted_bound(counts[-1]._replace(n_errors=n_errors + n_missed)))
    caveats = (
        Caveat(objective.plan.caveat) if objective.plan.caveat else None,
        certificates.NOTHING if counts[0].n_accepted == 0 else None,
    )
    heaviest, provenance = objective.largest_weight, setting.provenance
    if curves[0].n_rows < curve.n_rows:
        kept = (
            f"{curves[0].n_rows:,} of {curve.n_rows:,} rows, drawn in proportion to their weights"
        )
        provenance = "; ".join(filter(None, [provenance, kept]))
    assumed = (
        certificates.WEIGHED if heaviest is not None else "",
        f"no case weighs more than {heaviest:g}" if heaviest is not None else "",
        certificates.STARTS if objective.has_starts else "",
    )
    return issue(
        curve,
        n_blocks,
        objective,
        threshold=threshold,
        counts=counts[0],
        bound=min(bounds) if objective.is_least else max(bounds),
        setting=setting._replace(
            caveats=(*setting.caveats, *(one for one in caveats if one)), provenance=provenance
        ),
        assumed=[one for one in assumed if one],
        reviewer=reviewer,
    )


def issue(
    curve: RiskCoverageCurve,
    n_blocks: int,
    objective: Guarantee,
    *,
    threshold: float,
    counts: Counts,
    bound: float,
    setting: Setting,
    assumed: list[str],
    guarantee: str = "",
    refusal: str = "",
    method: str = "",
    **said: str,
) -> Certificate:
    """Write the certificate of an objective for accepting the first `n_blocks` entries of a curve.

    Losses and `bound` lie in [0, 1]; the certificate is in the user's units. The `counts` are rows,
    accepted ones, and accepted ones that are wrong. `refusal` says why there is no guarantee at
    all; `guarantee` is that of the method, unless it says otherwise. What is `said` is `notice` and
    `reviewer`.
    """
    loss = objective.about
    # Those that strike come first.
    caveats = sorted(setting.caveats, key=lambda caveat: not caveat.strikes)
    reasons = [one for one in (*(caveat.reason for caveat in caveats), refusal) if one]
    assumed = [*(caveat.assumes for caveat in caveats if caveat.assumes), *assumed]
    violated = {caveat.violates for caveat in caveats if caveat.strikes}
    once = certificates.POOL if setting.is_pool else certificates.FIRST_ANALYSIS
    planned = once if objective.max_analyses == 1 else certificates.PLANNED
    named = (*filter(None, [setting.drawn]), *objective.reviewing.assumes)
    assumptions = (*named, *certificates.ASSUMPTIONS, *assumed, planned)
    coverage, risk = curve.working_point(n_blocks)
    return Certificate(
        objective=objective.name,
        target=objective.target,
        delta=objective.own_delta,
        max_analyses=objective.max_analyses,
        method=method or objective.method_name,
        guarantee="none" if refusal else guarantee or objective.plan.guarantee,
        exact=not refusal and not any(caveat.strikes for caveat in caveats),
        caveats=tuple(reasons),
        threshold=threshold,
        n=counts.n,
        n_accepted=counts.n_accepted,
        n_errors=counts.n_errors,
        coverage=coverage,
        risk=loss.unit * risk,
        pointwise_bound=objective.in_units(bound),
        rows_needed=objective.rows_needed(),
        min_coverage=objective.min_coverage,
        loss=loss.kind,
        unit=loss.unit,
        cases=objective.cases,
        assumptions=tuple(one for one in assumptions if one not in violated),
        created=certificates.now(),
        fingerprints={"data": certificates.fingerprint(curve), **setting.fingerprints},
        provenance=setting.provenance,
        **said,
        reviewer_error=objective.reviewing.bound,
        seed=setting.seed if setting.by_chance else None,
    )


# Which rows, and in which order ------------------------------------------------------------

#: Probability that rows in random order are said to depend on their order.
LEVEL = 0.01

#: The same for rows of other classes than those that trained the classifier, and how many tables
#: are drawn to tell.
CLASS_LEVEL = 0.001
_N_DRAWS = 2_999

# What to do where the order matters: about a part of the rows, all of them, or the last ones.
HOLD_OUT_LATEST = (
    "hold out the latest of them, by cv=[(train, test)] with the positions of earlier and of later "
    "rows"
)
TAKE_LATEST = "take the latest of them alone"
LEAVE_MARGIN = "these rows are the latest already, so leave a margin in the target"


def find_order(
    outcomes: Outcomes,
    objective: Objective,
    advice: str,
    *,
    codes: IntArray | None = None,
    vouched: bool = False,
) -> tuple[Caveat, ...]:
    """Return the caveat about rows whose losses or confidences depend on their order.

    With `codes`, those of subgroups, each subgroup is tested by itself, at its share of the level.
    There is none in at least 99 of 100 tables whose rows are in random order. Only confidences
    count for a coverage. A loss counts in proportion to how sure the answer was:
    losses of sure answers are those that get accepted, and they show a change sooner. Where rows
    are not judged yet, the losses of the surer ones are tested: all of those are judged.
    """
    if outcomes.sample_weight is not None:
        counts = outcomes.sample_weight > 0
        outcomes, codes = outcomes.take(counts), None if codes is None else codes[counts]
    parts = [outcomes]
    if codes is not None:
        parts = [outcomes.take(codes == group) for group in np.unique(codes[codes >= 0])]
    names = ["confidences"] if isinstance(objective, Coverage) else ["losses", "confidences"]
    if isinstance(objective, SystemRisk) and objective.reads_reviewer:
        names.append("errors of the reviewer")
    found = set()
    for name, part in product(names, parts):
        if name == "losses" and part.unjudged is not None:
            above = np.max(part.confidence, where=part.unjudged, initial=-np.inf)
            part = part.take(part.confidence > above)  # noqa: PLW2901 - the judged top
            if len(part) < 2:
                continue
        loss, values = part.loss if name == "losses" else None, part.confidence
        if name == "errors of the reviewer":
            _, values, _ = part.reviewed
        if order_p_value(values, loss) <= LEVEL / len(names) / len(parts):
            found.add(name)
    named = " and ".join(sorted(found, reverse=True))
    return (in_order(named, LEVEL, advice, vouched=vouched),) if found else ()


def check_order(
    source: Predictions | Outcomes,
    outcomes: Outcomes,
    objective: Objective,
    groups: Grouping | None,
    advice: str,
    *,
    vouched: bool,
) -> tuple[Caveat, ...]:
    """Return what :func:`find_order` says of the rows that a guarantee is about.

    Where the rows are sorted by class, it looks inside each class, and a caveat says so. That takes
    the classes as they stand and asks only whether the rows of a class are in random order, so the
    level is kept. It cannot see a change from one class to the next.
    """
    codes = None
    if groups is not None:
        codes, _ = subgroup_codes(groups.subgroups, len(outcomes))
    elif (given := rows_given(source, objective)[0]) is not None:
        codes = given.astype(np.int64) - 1
    blocks = _find_blocks(source) if isinstance(source, Predictions) else None
    if blocks is not None:
        codes = np.zeros(len(blocks), np.int64) if codes is None else codes
        codes = np.where(codes < 0, -1, codes * len(blocks) + blocks)
    found = find_order(outcomes, objective, advice, codes=codes, vouched=vouched)
    return found if blocks is None else (*found, certificates.SORTED_BY_CLASS)


def _find_blocks(predictions: Predictions) -> IntArray | None:
    """Return the block of each row where each of two true classes or more fills one, else None.

    Where all answers are the same, as in verdicts, classes only say which answers are wrong.
    """
    truth, answers = predictions.y_true, predictions.y_pred
    changes = truth[1:] != truth[:-1]
    n_blocks = 1 + np.count_nonzero(changes)
    if not 1 < n_blocks <= len(predictions.classes) + 1 or np.all(answers == answers[0]):
        return None
    if predictions.unjudged is not None:  # not all classes are known
        return None
    return np.append(0, np.cumsum(changes)) if n_blocks == len(np.unique(truth)) else None


def warn_of_order(caveats: tuple[Caveat, ...]) -> None:
    """Warn of what :func:`find_order` found, unless the user vouches for the rows."""
    for caveat in caveats:
        if caveat.strikes:
            warn_user(f"The order of the rows matters: {caveat.reason}.")


def doubt_reviewer(outcomes: Outcomes) -> tuple[Caveat, ...]:
    """Return the caveat about a reviewer who is right wherever the machine errs, and warn of it."""
    errs, missed = outcomes.loss > 0, outcomes.reviewer_loss
    if missed is None or np.sum(errs) < _NO_LUCK or np.any(missed[errs]):
        return ()
    found = "y may be the reviewer's own answer, which is right in all"
    found = f"{found} {np.sum(errs):,} rows in which the machine errs"
    warn_user(f"Who gave the labels? {found}. Then the reviewer's errors are not counted.")
    return (Caveat(found, strikes=False),)


def find_doubt(source: Predictions | Outcomes) -> tuple[Caveat, ...]:
    """Return the caveat about judged rows that were not drawn at random from those given."""
    if not isinstance(source, Predictions) or not source.doubt:
        return ()
    return (Caveat(source.doubt, source.drawn),)


def warn_of_doubt(caveats: tuple[Caveat, ...]) -> None:
    """Warn of what :func:`find_doubt` found."""
    for caveat in caveats:
        warn_user(f"verdict: {caveat.reason}.")


def order_p_value(values: FloatArray, loss: FloatArray | None = None) -> float:
    """Return the p-value of the hypothesis that every order of the rows is equally likely.

    The rows' values are tested or, with `loss`, their losses times how far the values are above
    the smallest one. The statistic is the largest absolute partial sum of the deviations from the
    mean, divided by their standard deviation and the square root of their number: a trend makes it
    large, and a change at any point. Its limit is the maximum of a Brownian bridge (Kolmogorov's
    distribution), which for few values, or few that differ from the others, is conservative.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.selection.pick import order_p_value
    >>> errors = np.repeat([0., 1.], [90, 10])
    >>> order_p_value(errors) < 1e-6
    True
    >>> round(order_p_value(np.random.default_rng(0).permutation(errors)), 2)
    0.55
    """
    n, low, high = len(values), values.min(), values.max()
    # A power of two that makes the range about one; differences of halves cannot overflow.
    scale = math.ldexp(0.5, min(-math.frexp(high / 2 - low / 2)[1], 1000))

    def read(rows: slice) -> FloatArray:
        part = values[rows] * scale
        if loss is None:
            return part
        part -= low * scale
        return np.multiply(part if low < high else 1.0, loss[rows], out=part)

    # Equal values become 0 by subtracting one of them, which no rounding of the mean can do.
    first = read(slice(0, 1))[0]
    mean = sum(float((read(rows) - first).sum()) for rows in spans(n)) / n
    squares = total = largest = 0.0
    for rows in spans(n):
        part = read(rows)
        part -= first
        part -= mean
        squares += dot(part, part)
        part.cumsum(out=part)
        part += total
        total = float(part[-1])
        largest = max(largest, float(part.max()), -float(part.min()))
    return float(kolmogorov(largest / np.sqrt(squares * n / (n - 1)))) if squares > 0.0 else 1.0


def class_p_value(here: IntArray, there: IntArray) -> float:
    """Return the p-value of the hypothesis that rows counted by class were drawn alike.

    The statistic is Pearson's chi-square. It is compared with that of random tables of the same
    totals, so that the level holds for rare classes too.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.selection.pick import class_p_value
    >>> class_p_value(np.array([50, 50]), np.array([950, 50])) < .001
    True
    >>> class_p_value(np.array([93, 7]), np.array([950, 50])) > .1
    True
    """
    total = here + there
    here, total = here[total > 0], total[total > 0]
    drawn = np.random.default_rng(0).multivariate_hypergeometric(total, here.sum(), size=_N_DRAWS)
    # The totals are fixed, so that chi-square rises with the sum of squares over totals.
    least = np.sum(here**2 / total) * (1.0 - ROUNDING)
    n_as_far = np.count_nonzero(np.sum(drawn**2 / total, axis=1) >= least)
    return float(1 + n_as_far) / (1 + _N_DRAWS)


def the_only(objectives: Objectives) -> Objective:
    """Refuse objectives of subgroups where there are none."""
    if isinstance(objectives, Objective):
        return objectives
    raise ValueError(
        f"objective (or its target) has one entry for each of {list(objectives)[:10]}; say what "
        "these subgroups are with subgroups= (select_threshold) or group_by= (ThresholdTuner)."
    )


def refuse_given(objectives: Objectives, instead: str) -> None:
    """Refuse a guarantee about the rows of one class where that cannot be told."""
    for objective in each_of(objectives):
        if isinstance(objective, SystemRisk):
            raise ArgumentError("objective", f"objective='system_risk' does not go with {instead}")
        for name in ("given_prediction", "given_class"):
            if getattr(objective, name) is not None:
                raise ValueError(f"{name} does not go with {instead}")


def rows_given(
    source: Predictions | Outcomes, objective: Objective
) -> tuple[BoolArray | None, str]:
    """Return which rows a guarantee is about, None for all, and their name in messages."""
    for name, side in (("given_prediction", "predicted"), ("given_class", "true")):
        label = getattr(objective, name)
        if label is None:
            continue
        predictions = check_is_predictions(source, name)
        known = predictions.classes.tolist()
        if label not in known:
            raise ValueError(f"{name} must be one of the classes {known[:10]}, got {shown(label)}.")
        label = label.item() if isinstance(label, np.generic) else label
        rows, cases = rows_of_class(predictions, side, label)
        if not np.any(rows):
            raise ValueError(f"{name}={label!r}: there is no such row.")
        return rows, cases
    return None, ""


def check_is_predictions(source: Any, purpose: str) -> Any:
    """Refuse anything but Predictions where classes are needed."""
    if not hasattr(source, "y_pred"):
        raise ValueError(
            f"{purpose} needs Predictions, got {type(source).__name__}; build them with "
            "Predictions.from_proba(y_true, y_proba)."
        )
    return source
