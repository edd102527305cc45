"""One threshold: the objective on its rows, the threshold that passes, and its certificate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from skselect._lib.arrays import BoolArray, FloatArray
from skselect._lib.checks import warn_user
from skselect.curve.curve import RiskCoverageCurve, threshold_below
from skselect.exceptions import InfeasibleTargetError, Refusal
from skselect.objectives import Cost, Counts, Coverage, Found, Guarantee, Objective
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Caveat, Certificate, Origin
from skselect.predictions.outcomes import Outcomes
from skselect.selection.results import ThresholdSelection
from skselect.selection.sample import Sample
from skselect.thresholds import LevelSequence
from skselect.thresholds._rules import Passing, pass_all

#: What to do instead of an error.
REMEDY = "With on_infeasible='abstain' nothing is accepted instead."


class Reading(NamedTuple):
    """One way to take the rows: their curve, and they themselves where more than sums is known."""

    curve: RiskCoverageCurve
    outcomes: Outcomes | None


@dataclass(frozen=True)
class ObjectiveOnRows:
    """An objective, and the rows on which it looks for its threshold.

    Parameters
    ----------
    objective : Objective
    origin : Origin
        What is known of the rows.
    curve : RiskCoverageCurve
        Of the rows as they are.
    readings : sequence of Reading
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

    @classmethod
    def of(cls, sample: Sample, objective: Objective, n_sharing: int = 1) -> ObjectiveOnRows:
        """Set an objective on rows, as each reading of them counts; `n_sharing` divide delta."""
        sample = sample.pooled
        outcomes = sample.outcomes
        objective = objective.on(sample.loss, sample.cases, n_sharing=n_sharing, share=sample.share)
        counted = outcomes
        if objective.counts:
            counted = outcomes.count(sample.seed, objective.largest_weight, cases=sample.cases)
        has_drawn_levels = sample.by_chance and isinstance(objective.method, LevelSequence)
        has_coins = counted is not outcomes
        caveats = sample.caveats
        if has_coins:
            caveats = (*caveats, *certificates.note_coins(outcomes.toss(sample.seed)))
        curve = sample.sort(outcomes)
        readings = [Reading(curve, outcomes)]
        if objective.guarantees:
            readings = [_read(rows, outcomes, curve) for rows in counted.read()]
        return cls(
            objective=objective,
            origin=replace(sample, by_chance=has_drawn_levels or has_coins, caveats=caveats),
            curve=curve,
            readings=readings,
            bounded=sample.bounded,
            least=sample.least,
        )

    def find_passing(self) -> list[tuple[RiskCoverageCurve, Passing]]:
        """Return the thresholds that pass each reading; what is no guarantee is not tested."""
        objective = self.objective
        if not isinstance(objective, Guarantee):
            return []
        return [(curve, objective.passes(curve, outcomes)) for curve, outcomes in self.readings]

    def settle(self) -> ThresholdSelection:
        """Find the threshold that passes under each reading of the rows; inf where none does."""
        passing = self.find_passing()
        first_reading = self.readings[0]
        choice = self._choose(first_reading.curve, passing)
        threshold = choice.threshold
        if threshold is None:
            threshold = threshold_below(first_reading.curve, choice.n_blocks, bounded=self.bounded)
        return self.select(max(threshold, self.least), passing, choice.value)

    def _choose(
        self, curve: RiskCoverageCurve, passing: Sequence[tuple[RiskCoverageCurve, Passing]]
    ) -> Found:
        if isinstance(self.objective, Guarantee):
            return self.objective.choose(curve, pass_all(passing))
        return self.objective.find(self.curve)

    def select(
        self,
        threshold: float,
        passing: Sequence[tuple[RiskCoverageCurve, Passing]],
        value: float | None = None,
    ) -> ThresholdSelection:
        """Return the selection of a threshold, with its certificate."""
        objective = self.objective
        coverage, risk = self.curve.working_point(self.curve.n_blocks_at(threshold))
        certificate = None
        if isinstance(objective, Guarantee) and objective.guarantees:
            certificate = self._certify(objective, threshold, (coverage, risk))
        curve = self.curve
        if threshold == np.inf and objective.guarantees:
            # The reading that refuses says why.
            refusing = [read for read, entries in passing if not entries.any()]
            curve = refusing[0] if refusing else self.readings[0].curve
        return ThresholdSelection(
            threshold=threshold,
            objective=objective,
            coverage=coverage,
            risk=objective.about.unit * risk,
            value=value,
            certificate=certificate,
            curve=curve,
        )

    def _certify(
        self, objective: Guarantee, threshold: float, working_point: tuple[float, float]
    ) -> Certificate:
        """Return the certificate of a threshold that these rows chose.

        Its counts are those of the first reading.
        """
        counts = [_count_accepted(reading, threshold) for reading in self.readings]
        caveats = list(self.origin.caveats)
        if objective.plan.caveat:
            caveats.append(Caveat(objective.plan.caveat))
        if counts[0].n_accepted == 0:
            caveats.append(certificates.NOTHING)
        else:
            caveats += self._doubt_mixture(objective, counts)
        assumptions = []
        if objective.largest_weight is not None:
            heaviest = f"no case weighs more than {objective.largest_weight:g}"
            assumptions += [certificates.WEIGHED, heaviest]
        if objective.has_starts:
            assumptions.append(certificates.STARTS)
        fingerprints = {"data": certificates.fingerprint(self.curve), **self.origin.fingerprints}
        origin = replace(
            self.origin,
            caveats=tuple(caveats),
            assumed=tuple(assumptions),
            provenance=self._describe_rows(counts[0].n),
            fingerprints=fingerprints,
            reviewer=objective.review(self.readings[0].outcomes, threshold),
        )
        return Certificate.of(objective, threshold, working_point, counts, origin)

    def _doubt_mixture(self, objective: Guarantee, counts: Sequence[Counts]) -> list[Caveat]:
        """Say what holds where some recognised rows leaked, and others are cases that came back.

        Of a selective risk the answered rows count: leaked rows are the surest, and never wrong.
        """
        assumed = [caveat.assumes for caveat in self.origin.caveats]
        if certificates.ALL_SEEN not in assumed or objective.is_least:
            return []
        # The second reading leaves out the rows that also trained.
        n_rows = counts[0].n
        n_fresh = counts[1].n
        rows = "rows"
        if objective.is_selective:
            n_rows = counts[0].n_accepted
            n_fresh = counts[1].n_accepted
            rows = "answered rows"
        if n_fresh == n_rows:
            return []
        bound = "nothing"
        if n_fresh:
            bound = f"a bound of {objective.amount(objective.target * n_rows / n_fresh)}"
        return [certificates.mixed_rows(1.0 - n_fresh / n_rows, rows, bound)]

    def _describe_rows(self, n_counted: int) -> str:
        """Say which rows these are, and how many of them count."""
        parts = []
        if self.origin.provenance:
            parts.append(self.origin.provenance)
        if n_counted < self.curve.n_rows:
            share = f"{n_counted:,} of {self.curve.n_rows:,} rows"
            parts.append(f"{share}, drawn in proportion to their weights")
        return "; ".join(parts)


def _read(rows: Outcomes, outcomes: Outcomes, curve: RiskCoverageCurve) -> Reading:
    """Return a reading; `curve` is that of all `outcomes`, which need no second sort."""
    if rows is outcomes:
        return Reading(curve, rows)
    return Reading(RiskCoverageCurve.from_outcomes(rows), rows)


def _count_accepted(reading: Reading, threshold: float) -> Counts:
    """Count what a threshold accepts, by the rows where the sums of a curve are not counts."""
    curve, outcomes = reading
    if outcomes is not None:
        sums_are_counts = curve.blocks.whole and outcomes.reviewer_loss is None
        if not sums_are_counts:
            accepted = outcomes.confidence >= threshold
            return Counts.of(outcomes.loss, accepted, outcomes.reviewer_loss)
    n_accepted, n_errors = curve.accepted_by(curve.n_blocks_at(threshold))
    return Counts(curve.n_rows, int(n_accepted), int(n_errors))


# Several guarantees ------------------------------------------------------------------------


def settle_together(
    curve: RiskCoverageCurve, guarantees: Sequence[ObjectiveOnRows], on_infeasible: str
) -> ThresholdSelection:
    """Find the threshold that keeps several guarantees; raise or warn where there is none.

    `curve` is that of all rows. Each guarantee is tested at its share of delta.
    """
    passing = [guarantee.find_passing() for guarantee in guarantees]
    passing_entries = [
        _pass_on(curve, guarantee.objective, entries)
        for guarantee, entries in zip(guarantees, passing, strict=True)
    ]
    choice = _choosing(guarantees).choose(curve, Passing(np.all(passing_entries, axis=0)))
    threshold = threshold_below(curve, choice.n_blocks, bounded=guarantees[0].bounded)
    threshold = max(threshold, guarantees[0].least)
    selections = [
        guarantee.select(threshold, entries)
        for guarantee, entries in zip(guarantees, passing, strict=True)
    ]
    if threshold == np.inf:
        for selection, entries in zip(selections, passing_entries, strict=True):
            if not np.any(entries):
                return report_infeasible(selection, on_infeasible)
        alone = [_tell_coverage(curve, entries) for entries in passing_entries]
        return _report_contradiction(selections, alone, on_infeasible)
    certified = [
        selection.certificate for selection in selections if selection.certificate is not None
    ]
    certificate = replace(certified[0], also=tuple(certified[1:]))
    return replace(selections[0], certificate=certificate)


def _pass_on(
    curve: RiskCoverageCurve,
    objective: Objective,
    passing: Sequence[tuple[RiskCoverageCurve, Passing]],
) -> BoolArray:
    """Return which entries of a curve pass, where readings of a part of its rows passed."""
    every_entry = Passing(np.ones(len(curve), dtype=bool))
    entries = pass_all([(curve, every_entry), *passing]).entries
    if isinstance(objective, Coverage):
        # The threshold below all rows accepts everything, which keeps any coverage.
        entries[-1] = True
    return entries


def _choosing(guarantees: Sequence[ObjectiveOnRows]) -> Guarantee:
    """Return the guarantee that chooses among passing thresholds: a coverage only among its own."""
    objectives = [guarantee.objective for guarantee in guarantees]
    risks = [objective for objective in objectives if not isinstance(objective, Coverage)]
    chooser = risks[0] if risks else objectives[0]
    assert isinstance(chooser, Guarantee)
    return chooser


# Refusals ----------------------------------------------------------------------------------


def report_infeasible(selection: ThresholdSelection, on_infeasible: str) -> ThresholdSelection:
    """Return the selection; raise or warn where it accepts nothing."""
    objective = selection.objective
    if not selection.accepts_nothing:
        return selection
    if isinstance(objective, Cost):
        warn_user(objective.tell_infeasible())
        return selection
    if on_infeasible == "raise":
        raise refuse(selection, REMEDY)
    if on_infeasible == "wait":
        warn_user(
            "No threshold passes yet, so nothing is accepted. Judge more rows, first those that "
            "next_to_judge (in a terminal: --next) names, and ask again."
        )
        return selection
    error = refuse(selection)
    warn_user(f"{error} Nothing will be accepted.")
    return selection


def _tell_coverage(curve: RiskCoverageCurve, entries: BoolArray) -> str:
    """Say between which shares of the rows a guarantee could answer by itself."""
    coverage = curve.coverage[entries]
    least = f"{100.0 * np.min(coverage):.0f} %"
    most = f"{100.0 * np.max(coverage):.0f} %"
    return least if least == most else f"{least} to {most}"


def _report_contradiction(
    selections: Sequence[ThresholdSelection], alone: Sequence[str], on_infeasible: str
) -> ThresholdSelection:
    """Return a selection of guarantees that no threshold keeps together; raise or warn.

    `alone` says which shares of the rows each could answer by itself.
    """
    statements = [
        f"{selection.certificate.statement} (alone: {coverage} answered)"
        for selection, coverage in zip(selections, alone, strict=True)
        if selection.certificate is not None
    ]
    guarantee = "; ".join(statements)
    reason = (
        "REFUSED: each of these guarantees could be kept by itself, but no threshold is known to "
        f"keep all of them: {guarantee}. Now: relax one of them, and use fresh rows (asking these "
        "again, or with more, breaks the guarantee)."
    )
    if on_infeasible == "raise":
        refusal = Refusal(reason, guarantee)
        raise InfeasibleTargetError("", remedy=REMEDY, explain=lambda: refusal)
    warn_user(f"{reason} Nothing will be accepted.")
    return selections[0]


def refuse(selection: ThresholdSelection, remedy: str = "") -> InfeasibleTargetError:
    """Return the error about a selection that accepts nothing, with what its certificate notes."""
    certificate = selection.certificate
    notes = []
    if certificate is not None:
        if certificate.reviewer:
            notes.append(certificate.reviewer)
        if selection.curve.n_rows < certificate.n:
            # All rows pass, and a reading of fewer refuses.
            notes += [
                f"{caveat[0].upper()}{caveat[1:]}."
                for caveat in certificate.caveats
                if caveat.endswith(certificates.MUST_PASS)
            ]
    return selection.objective.refuse(selection.curve, notes=notes, remedy=remedy)


def cover_by_other_coins(
    sample: Sample, objective: Objective, n_sharing: int = 1, *, n_seeds: int = 100
) -> FloatArray:
    """Return the share of the rows that the threshold by each of other coins would have accepted.

    Each costs a search for a threshold. To choose one of them would be to choose among `n_seeds`
    tables.

    Parameters
    ----------
    sample : Sample
    objective : Objective
        As for :meth:`ObjectiveOnRows.of`.
    n_sharing : int, default=1
    n_seeds : int, default=100

    Returns
    -------
    ndarray of shape (n_seeds,)
        Empty where nothing is decided by a coin.
    """
    here = ObjectiveOnRows.of(sample, objective, n_sharing)
    if not here.objective.counts or not sample.outcomes.needs_coins:
        return np.empty(0)
    covered = []
    for seed in range(sample.seed + 1, sample.seed + 1 + n_seeds):
        on_rows = ObjectiveOnRows.of(replace(sample, seed=seed), objective, n_sharing)
        covered.append(on_rows.settle().coverage)
    return np.array(covered)
