"""Machine and reviewer together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skselect._lib.arrays import draw_rows
from skselect._lib.checks import shown
from skselect._lib.checks.options import check_count, check_number
from skselect._lib.notebook import count, percent
from skselect.bounds._pointwise import clopper_pearson_upper
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import ArgumentError, Refusal
from skselect.objectives import refusal
from skselect.objectives.counts import Counts
from skselect.objectives.guarantee import Guarantee
from skselect.objectives.loss import Loss
from skselect.objectives.objective import Method, Reviewing, refuse_without_levels
from skselect.predictions.outcomes import Outcomes
from skselect.thresholds import LevelSequence, _rules as rules
from skselect.thresholds._rules import Passing
from skselect.thresholds._sequences import count_system_errors, system_levels

#: One row in so many names the thresholds that the others test.
NAMING = 5


@dataclass(repr=False, kw_only=True)
class SystemRisk(Guarantee):
    """Certify that machine and reviewer together are wrong in at most a share `target` of cases.

    A reviewer who decides the deferred cases errs too. The system risk is the share of *all* cases
    that are decided wrongly: by the machine where it answers, by the reviewer elsewhere. The lowest
    threshold that keeps the target is chosen.

    Parameters
    ----------
    target : float in (0, 0.5]
        The bound to keep. Largest share of wrong cases, those of the reviewer included.
    delta, max_analyses, largest_weight
        As for :class:`Risk`.
    reviewer : str, default=None
        What a reviewer answers, or would answer, in each row. For a tuner: the column of the data
        frame X that holds the answers; the model never sees it. They may also come as
        ``fit(X, y, reviewer_pred=...)`` or ``Predictions.from_proba(..., reviewer=...)``.
    deferred_error : float in (0, 1), default=None
        In place of answers: the share of the *deferred* cases in which the reviewer errs. Each
        deferred row counts as an error with this probability, by a coin. The rate is assumed at
        every threshold that is tested; one measured on all cases is too low for the hard ones that
        are deferred.
    overall_error : float or tuple (errors, rows), default=None
        In place of answers: the share of *all* cases that are deferred and then wrong, or an upper
        bound of it. The share of the reviewer's errors over all cases is such a bound; one measured
        on easy cases is not. A tuple is a count on randomly drawn cases: the upper bound of Clopper
        and Pearson at half of `delta`, and the rest of `delta` is for the machine.
    method : str or LevelSequence, default="auto"
        "level_sequence" with the reviewer's answers or `deferred_error`: a fifth of the rows names
        thresholds and the one to begin with, where the system risk seems smallest; the other rows
        test them from there down until one fails. The fifth is drawn by chance: a tuner draws with
        its `random_state`, a table with the seed 0. A :class:`~skselect.thresholds.LevelSequence`
        names them beforehand. "binomial" with `overall_error`: it certifies
        ``GeneralizedRisk(target - overall_error)``.
    given_prediction, given_class
        Refused: the guarantee is about all cases.

    See Also
    --------
    GeneralizedRisk : Counts the errors of the machine alone.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, SystemRisk, select_threshold
    >>> rng = np.random.default_rng(0)
    >>> c = rng.uniform(.5, 1, 4000)
    >>> machine, reviewer = rng.random(4000) < 1 - c, rng.random(4000) < .05
    >>> rows = Outcomes(machine, c, reviewer_loss=reviewer)
    >>> round(select_threshold(rows, objective=SystemRisk(.08)).coverage, 1)
    0.3
    """

    word = "system_risk"
    noun = "wrong together"
    target_means = (
        "the largest share of cases that machine and reviewer get wrong, for example target=0.06"
    )
    methods: ClassVar[Mapping[str, Method]] = {
        "level_sequence": Method(refuse_without_levels, has_starts=True),
        "binomial": Method(rules.certified_generalized_risk),
    }

    reviewer: str | None = None
    deferred_error: Any = None
    overall_error: Any = None

    @property
    def method_name(self) -> str:
        """The one method that fits what is known of the reviewer."""
        name = super().method_name
        fits = "level_sequence" if self.counts_deferred else "binomial"
        if self.method != "auto" and name != fits:
            raise ArgumentError(
                "method",
                f"method={name!r} does not go with overall_error={self.overall_error!r}: use "
                f"{fits!r}, which 'auto' chooses.",
            )
        return fits

    @property
    def counts_deferred(self) -> bool:
        """Whether it counts deferred rows that a reviewer gets wrong, by answers or coins."""
        return self.overall_error is None

    @property
    def reads_reviewer(self) -> bool:
        """Whether it reads a reviewer's answer to each row."""
        return self.counts_deferred and self.deferred_error is None

    @property
    def reviewing(self) -> Reviewing:
        """The rate or the bound of the reviewer's errors, counted or given, and what it assumes."""
        if self.deferred_error is not None:
            return self._assume_rate()
        if self.overall_error is not None:
            return self._bound_reviewer()
        return Reviewing(assumes=("the reviewer will work as well as on these rows",))

    def _assume_rate(self) -> Reviewing:
        """Return what `deferred_error` says of the reviewer."""
        rate = check_number("deferred_error", self.deferred_error, 0.0, 1.0, closed="neither")
        share = percent(rate, up=True)
        assumption = (
            f"the reviewer errs in at most {share} of the deferred cases, at every threshold "
            f"tested ({share} measured on all cases is optimistic for the hard ones that are "
            "deferred)"
        )
        return Reviewing(rate=rate, assumes=(assumption,))

    def _bound_reviewer(self) -> Reviewing:
        """Return what `overall_error` says of the reviewer: a count, or a bound."""
        error = self.overall_error
        if isinstance(error, tuple | list) and len(error) == 2:
            n_errors = check_count("overall_error: errors", error[0], 0)
            n_rows = check_count("overall_error: rows", error[1], max(n_errors, 1))
            bound = float(clopper_pearson_upper(n_errors, n_rows, self.delta / 2))
            were = "case was" if n_rows == 1 else "cases were"
            assumption = f"the reviewer's {n_rows:,} {were} drawn from all cases at random"
            return Reviewing(bound, share=0.5, assumes=(assumption,))
        bound = check_number("overall_error", error, 0.0, 1.0, closed="left")
        share = percent(bound, up=True)
        assumption = f"the reviewer errs on deferred cases in at most {share} of all cases"
        return Reviewing(bound, assumes=(assumption,))

    def check_reviewed(self, *, answered: bool) -> None:
        """Refuse answers of a reviewer that are missing, or that stand beside a rate or bound."""
        if self.reads_reviewer and not answered:
            raise ArgumentError(
                "reviewer",
                "reviewer: objective='system_risk' needs to know how often the reviewer is wrong. "
                "Pass the answers, as Predictions.from_proba(..., reviewer=answers), "
                "tuner.fit(X, y, reviewer_pred=answers) or, for a tuner, "
                "SystemRisk(..., reviewer='column of X'); or the share of the deferred "
                "cases that the reviewer gets wrong, deferred_error=.",
            )
        if answered and not self.reads_reviewer:
            name = "overall_error" if self.deferred_error is None else "deferred_error"
            raise ArgumentError(
                name,
                f"{name}={getattr(self, name)!r} (of objective={self.name!r}) stands beside the "
                "reviewer's answers, which say how often the reviewer is wrong; leave one of them "
                "out.",
            )

    def with_reviewer(self, outcomes: Outcomes) -> Outcomes:
        """Return rows with a reviewer's losses: those of the answers, or the assumed rate."""
        self.check_reviewed(answered=outcomes.reviewer_loss is not None)
        rate = self.reviewing.rate
        if rate is None:
            return outcomes
        return replace(outcomes, reviewer_loss=np.full(len(outcomes), rate))

    def _check(self, loss: Loss, confidence: Any) -> None:
        self._refuse_parts_of_rows(loss)
        super()._check(loss, confidence)
        self._check_reviewer()
        self._check_target_beside_bound()

    def _refuse_parts_of_rows(self, loss: Loss) -> None:
        """Refuse cases of one class, and losses that are no errors."""
        for name in ("given_prediction", "given_class"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} does not go with SystemRisk, which is about all cases; leave it out."
                )
        if not loss.is_error:
            raise ValueError(
                "loss must be 0 or 1 in each row for objective='system_risk', which counts the "
                "wrong answers of machine and reviewer."
            )

    def _check_reviewer(self) -> None:
        """Check how the user says what the reviewer answers."""
        if self.reviewer is not None:
            self.check_reviewed(answered=True)
            if not isinstance(self.reviewer, str):
                raise ArgumentError(
                    "reviewer",
                    "reviewer must name a column of X; pass answers as "
                    f"fit(X, y, reviewer_pred=...). Got {shown(self.reviewer)}.",
                )
        if self.deferred_error is not None and self.overall_error is not None:
            raise ArgumentError(
                "deferred_error",
                "deferred_error (a share of the deferred cases) stands beside overall_error (a "
                "share of all cases); leave one of them out.",
            )

    def _check_target_beside_bound(self) -> None:
        """Refuse a bound of the reviewer's errors that leaves nothing to the machine."""
        bound = self.reviewing.bound
        if bound is not None and bound >= self.target:
            raise ArgumentError(
                "overall_error",
                f"overall_error={self.overall_error!r} leaves nothing to the machine: the "
                f"reviewer may be wrong in {percent(bound, up=True)} of all cases, and both "
                f"together in {percent(self.target)} (target). Use a larger target, or what "
                "is known of deferred cases only: the reviewer's answers, or deferred_error=.",
            )

    def describe(self) -> str:
        """Return the guarantee in words."""
        bound = self.amount(self.target)
        return f"machine and reviewer together are wrong in at most {bound} of cases"

    def count(self, counts: Counts) -> tuple[int, int]:
        """Return the errors, those of the reviewer included, among all rows."""
        return counts.n_errors + counts.n_missed, counts.n

    def name_levels(self, outcomes: Outcomes, seed: int = 0) -> tuple[SystemRisk, Outcomes]:
        """Let a fifth of the rows name the thresholds to test; return the rows that test them.

        The start and the thresholds must not depend on the rows that certify.
        """
        if not self.counts_deferred or isinstance(self.method, LevelSequence):
            return self, outcomes
        if len(outcomes) < NAMING:
            raise ValueError(
                f"objective='system_risk' needs {NAMING} rows or more: one in {NAMING} names "
                f"thresholds, and the others certify. Got {len(outcomes)}."
            )
        may_name = np.ones(len(outcomes), dtype=bool)
        if outcomes.readings is not None:
            # A copy of a row that certifies must not name.
            may_name = np.all(outcomes.readings, axis=1)
        names = np.zeros_like(may_name)
        names[may_name] = draw_rows(int(np.sum(may_name)), NAMING, seed)
        levels = system_levels(*outcomes.take(names).reviewed).tolist()
        return replace(self, method=LevelSequence(levels)), outcomes.take(~names)

    def passes(self, curve: RiskCoverageCurve, outcomes: Outcomes | None = None) -> Passing:
        """Return the levels before the first one where machine and reviewer err too often."""
        if not self.counts_deferred:
            return super().passes(curve, outcomes)
        assert outcomes is not None
        assert isinstance(self.method, LevelSequence)
        levels = np.array(self.method.levels)
        errors = count_system_errors(*outcomes.reviewed, levels)
        passed = clopper_pearson_upper(errors, len(outcomes), self.level) <= self.scaled_target
        nothing = np.zeros(len(curve), dtype=bool)
        return Passing(nothing, levels[np.logical_and.accumulate(passed)])

    def review(self, outcomes: Outcomes | None, threshold: float) -> str:
        """Return how often the reviewer gets deferred rows wrong, and what that means."""
        bound = self.reviewing.bound
        if bound is not None:
            rest = percent(self.target - bound, up=False)
            return (
                f"The reviewer may be wrong in {percent(bound, up=True)} of all cases, which "
                f"leaves {rest} to the machine."
            )
        assert outcomes is not None
        loss, reviewer_loss, _ = outcomes.reviewed
        rate = self.reviewing.rate
        alone = percent(reviewer_loss.mean() if rate is None else rate)
        if threshold == math.inf and isinstance(self.method, LevelSequence):
            together = self._tell_least(outcomes, self.method)
        else:
            together = self._tell_together(outcomes, threshold)
        return (
            f"{together} Alone, the reviewer is wrong in {alone} of all these cases, and the "
            f"machine in {percent(loss.mean())}."
        )

    def _tell_together(self, outcomes: Outcomes, threshold: float) -> str:
        """Say how often machine and reviewer are wrong where the threshold shares the cases."""
        loss, reviewer_loss, _ = outcomes.reviewed
        deferred = ~(outcomes.confidence >= threshold)  # NaN is deferred
        n_deferred = int(np.count_nonzero(deferred))
        n_missed = int(reviewer_loss[deferred].sum())
        n_wrong = n_missed + int(loss[~deferred].sum())
        rate = self.reviewing.rate
        coins = "" if rate is None else f" (drawn by chance, at {percent(rate)})"
        n = len(outcomes)
        deferred_cases = count(n_deferred, "deferred case")
        return (
            f"The reviewer is wrong in {n_missed:,} of the {deferred_cases}{coins}, "
            f"so together {n_wrong:,} of {n:,} are wrong ({percent(n_wrong / n)})."
        )

    def _tell_least(self, outcomes: Outcomes, sequence: LevelSequence) -> str:
        """Say which target the first level of the sequence would have met."""
        start = np.array(sequence.levels[:1])
        [n_errors] = count_system_errors(*outcomes.reviewed, start)
        least = clopper_pearson_upper(n_errors, len(outcomes), self.delta / self.max_analyses)
        return (
            f"The smallest target that these rows could have met is {percent(least, up=True)}, "
            f"at confidence {start[0]:.6g} or higher, but certifying it needs fresh rows."
        )

    def explain(self, curve: RiskCoverageCurve, notes: Sequence[str]) -> Refusal:
        """Return why no threshold meets the target; what machine and reviewer did is a note."""
        if not self.counts_deferred:
            return super().explain(curve, notes)
        statement = self.describe()
        tested = f"Tested on {refusal.name_rows(self, curve)}."
        text = "\n".join([f"REFUSED: {statement}.", tested, *notes])
        return Refusal(text, statement, rows_needed=self.rows_needed())
