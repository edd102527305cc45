"""What all guarantees have: how they pass thresholds, count, test and refuse."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import special

from skselect._lib.arrays import BoolArray, FloatArray
from skselect._lib.checks.options import (
    check_count,
    check_delta,
    check_number,
    check_risk_limit,
)
from skselect._lib.notebook import VERDICTS, rounded
from skselect.bounds._pointwise import (
    clopper_pearson_upper,
    critical_counts,
    least_count,
    rows_for_certificate,
    upper_from_counts,
)
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import ArgumentError, BestSet, InfeasibleTargetError, Refusal
from skselect.objectives import refusal
from skselect.objectives.counts import DOUBT, FOUND, REVIEWED, Counts, Finding, find_mean
from skselect.objectives.loss import Loss
from skselect.objectives.objective import Found, Objective
from skselect.predictions.outcomes import Outcomes
from skselect.thresholds import Combined, FixedSequence, LevelSequence, _rules as rules
from skselect.thresholds._advice import RowsNeeded
from skselect.thresholds._rules import Passing, Rule

if TYPE_CHECKING:
    from skselect.selection.sample import Sample


@dataclass(repr=False)
class Guarantee(Objective):
    """An objective with a target that later cases keep with high probability."""

    certifies = True
    #: Whether the target is a lower bound.
    is_least: ClassVar[bool] = False
    #: Whether rows that are not accepted do not count.
    is_selective: ClassVar[bool] = False
    #: What is rare, or frequent, in a word or two.
    noun: ClassVar[str] = "wrong answers"

    target: Any
    _: KW_ONLY
    delta: float = 0.05
    max_analyses: int = 1
    method: str | FixedSequence | LevelSequence | Combined = "auto"
    given_prediction: Any = None
    given_class: Any = None
    largest_weight: float | None = None

    @property
    def scaled_target(self) -> float:
        """The target as a share of the largest loss, without what a reviewer takes of it."""
        return self.target / self.unit - (self.reviewing.bound or 0.0)

    @property
    def largest(self) -> float:
        """The largest share or mean that keeps the target, of what must be small."""
        return self.scaled_target

    @property
    def rule(self) -> Rule:
        """The function that tells which entries of a curve pass."""
        if isinstance(self.method, str):
            return self.plan.find
        return self.method

    @property
    def has_starts(self) -> bool:
        """Whether the user has fixed where a sequence begins."""
        return self.plan.has_starts or isinstance(self.method, Combined)

    def checked_target(self, loss: Loss) -> float:
        """Return the target, checked in the user's units."""
        target = check_number("target", self.target, 0.0, loss.unit, closed="neither")
        if loss.is_error:
            return check_risk_limit(target)
        return target

    # In words

    def amount(self, value: float, *, up: bool | None = True) -> str:
        """Return a target as text, or any value (`up` as for :func:`rounded`)."""
        return self.about.amount(value, up=up)

    @property
    def what(self) -> str:
        """What it bounds, in a word or two."""
        if self.about.is_error or self.is_least:
            return self.noun
        return "mean loss"

    def limit(self, word: str, value: float = math.nan) -> dict[str, str]:
        """Return the target, and a value that was found, by what they are; `word`: how sure."""
        numbers = {}
        if not math.isnan(value):
            numbers[f"{self.what}, found"] = self.amount(value, up=None)
        sign = "≥" if self.is_least else "≤"
        numbers[f"{self.what}, {word}"] = f"{sign} {self.amount(self.target)}"
        return numbers

    def describe(self) -> str:
        """Return the guarantee in words, its bound rounded to the safe side."""
        raise NotImplementedError

    # On rows

    def count(self, counts: Counts) -> tuple[int, int]:
        """Return a count and its total: the share that must be small."""
        raise NotImplementedError

    def values(self, loss: FloatArray, accepted: BoolArray) -> FloatArray:
        """Return the values whose mean must be small."""
        return np.where(accepted, loss, self.reviewing.rate or 0.0)

    def review(self, outcomes: Outcomes | None, threshold: float) -> str:  # noqa: ARG002
        """Return what is said about a reviewer."""
        return ""

    def test(self, sample: Sample, *, anytime: bool = False, doubt: float = DOUBT) -> Finding:
        """Test the guarantee on the rows that it is about, of which some are accepted.

        The threshold was fixed beforehand. Each bound fails with probability `level`; `anytime`:
        even if one looks whenever rows were added. What is kept is in doubt with probability
        `doubt` at most.
        """
        readings = sample.outcomes.readings
        if readings is None:
            return self._test_rows(sample, ..., anytime, doubt)
        findings = [self._test_rows(sample, rows, anytime, doubt) for rows in readings.T]
        return self._join(findings, doubt)

    def _test_rows(self, sample: Sample, rows: Any, anytime: bool, doubt: float) -> Finding:
        """Test it on some of the rows."""
        assert sample.accepted is not None
        accepted = sample.accepted[rows]
        loss = sample.outcomes.loss[rows]
        missed = None
        if sample.outcomes.reviewer_loss is not None:
            missed = sample.outcomes.reviewer_loss[rows]
        counts = Counts.of(loss, accepted, missed)
        values = None
        if sample.is_graded or self.reviewing.rate is not None:
            values = self.values(loss, accepted)
        return self.test_counts(counts, values, anytime=anytime, doubt=doubt)

    def _join(self, findings: list[Finding], doubt: float) -> Finding:
        """Return what holds in each reading of the rows, of which the first holds all rows.

        Where the verdicts differ, the word is the one that claims less: no word but "broken" and
        "in doubt" beside each other leaves a doubt, and no bound is nearer than the widest.
        """
        first_finding = findings[0]
        verdicts = {finding.verdict for finding in findings}
        sizes = [self.count(finding.counts)[1] for finding in findings]
        if len(verdicts) == 1:
            verdict = first_finding.verdict
        elif verdicts <= {"broken", "in_doubt"}:
            verdict = "in_doubt"
        elif all(self.is_tested_by(n, doubt) for n in sizes):
            verdict = "no_breach"
        else:
            verdict = "not_tested"
        detectable = np.array([finding.detectable for finding in findings])
        farthest = detectable.min() if self.is_least else detectable.max()
        return first_finding._replace(
            verdict=verdict,
            low=min(finding.low for finding in findings),
            high=max(finding.high for finding in findings),
            p_value=max(finding.p_value for finding in findings),
            detectable=float(farthest),
            readings=tuple(findings),
        )

    def test_counts(
        self,
        counts: Counts,
        values: FloatArray | None = None,
        *,
        anytime: bool = False,
        doubt: float = DOUBT,
    ) -> Finding:
        """Test it by counts, or by values: those that :meth:`values` returns.

        For the p-value losses are counted by a coin each: an error with this probability.
        """
        count, n = self.count(counts)
        bounds = find_mean(count, n, values, self.level, anytime=anytime)
        if values is not None and n:
            coins = Outcomes(values, np.zeros(n)).count(0)
            count = int(np.sum(coins.loss))
        finding = self.judge(count, n, bounds, doubt)
        return finding._replace(counts=counts, values=values)

    def judge(
        self, count: int, n: int, bounds: tuple[float, float, float], doubt: float
    ) -> Finding:
        """Return the verdict on a count of `n`, beside a mean and its bounds."""
        value, low, high = bounds
        p_value = float(special.bdtr(n - count, n, 1.0 - self.largest))
        detectable = self.detectable(n, doubt)
        if low > self.largest:
            verdict = "broken"
        elif high <= self.largest:
            verdict = "confirmed"
        elif p_value <= doubt:
            verdict = "in_doubt"
        elif self.is_tested_by(n, doubt):
            verdict = "no_breach"
        else:
            verdict = "not_tested"
        if self.is_least:
            return Finding(verdict, 1.0 - value, 1.0 - high, 1.0 - low, p_value, 1.0 - detectable)
        return Finding(verdict, value, low, high, p_value, detectable)

    def detectable(self, n: int, doubt: float, power: float = FOUND) -> float:
        """Return the least share that so many rows put in doubt with a probability, nan if none.

        It is a share of what must be small.
        """
        [n_right] = critical_counts(np.array([n]), 1.0 - self.largest, doubt).tolist()
        if n_right < 0:
            return math.nan
        return clopper_pearson_upper(n - n_right - 1, n, 1.0 - power)

    def is_tested_by(self, n: int, doubt: float) -> bool:
        """Tell whether so many rows put a share of three times the target in doubt."""
        if n == 0:
            return False
        most = 3.0 * self.largest
        return most == 0.0 or self.detectable(n, doubt) <= most

    def rows_to_test(self, doubt: float, n_kept: int = 0) -> int:
        """Return about how many rows, beside some that are kept, test it."""
        return least_count(lambda n: self.is_tested_by(n_kept + n, doubt))

    def rows_to_review(self, doubt: float) -> int:
        """Return about how many rows show one and a half times the target with probability .8."""
        most = min(1.5 * self.largest, 1.0)
        if most == 0.0:
            # The first exception shows it.
            return 1

        def show(n: int) -> bool:
            return self.detectable(n, doubt, REVIEWED) <= most

        return least_count(show)

    @property
    def counted(self) -> str:
        """What such a row is: a coverage reads no label, and a selective risk only answers."""
        if self.is_least:
            return "case"
        if self.is_selective:
            return "labelled answer"
        return "labelled case"

    def weakest(self, counts: Iterable[Counts]) -> float:
        """Return the largest bound of what must be small, over the readings of the rows."""
        bounds = [upper_from_counts(*self.count(reading), self.level) for reading in counts]
        return float(max(bounds))

    def bound(self, most: float) -> float:
        """Return what must be small at most as a target, in the user's units."""
        by_reviewer = self.reviewing.bound or 0.0
        bound = 1.0 - most if self.is_least else most
        return self.unit * bound + by_reviewer

    def tell_life(
        self, since: str, verdict: str = "", finding: str = "", detectable: float = math.nan
    ) -> str:
        """Return the life of a guarantee as one paragraph, the verdict first.

        Parameters
        ----------
        since : str
            When it was certified, and by how many rows; "" where no certificate guarantees it.
        verdict : str, default=""
        finding : str, default=""
            What was found since.
        detectable : float, default=nan
            Which value would have been found, in the user's units.
        """
        word, tone = VERDICTS.get(verdict, ("", ""))
        start = f"Guaranteed ({since})" if since else "Target"
        sentences = [f"{start}: {self.describe()}."]
        if word:
            sentences.insert(0, f"{word}.")
        if finding:
            start = "Found since" if since else "Found"
            sentences.append(f"{start}: {finding}.")
        if since and tone == "good":
            sentences.append("The certificate stands.")
        is_error_rate = self.about.is_error and not self.is_least
        says_nothing = math.isnan(detectable) or (is_error_rate and detectable > 0.5)
        if tone in ("open", "good") and not says_nothing:
            sentences.append(self._tell_power(detectable))
        return " ".join(sentences)

    def _tell_power(self, detectable: float) -> str:
        """Say which true value would have been found, rounded away from the target."""
        further = "less" if self.is_least else "more"
        if self.about.is_error or self.is_least:
            value = rounded(100.0 * detectable, 2, up=not self.is_least)
            amount = f"rate of {value} %"
        else:
            amount = f"mean of {rounded(detectable, 2, up=True)}"
        return (
            f"A true {amount} or {further} would have been found with probability "
            f"{100 * FOUND:.0f} %."
        )

    def find(self, curve: RiskCoverageCurve) -> Found:
        """Find the threshold on a curve of rows that count once."""
        return self.choose(curve, self.passes(curve))

    def passes(
        self,
        curve: RiskCoverageCurve,
        outcomes: Outcomes | None = None,  # noqa: ARG002
    ) -> Passing:
        """Return the thresholds that pass on a curve, whose rows are `outcomes` where known."""
        least = self.least_coverage(curve.n_rows)
        return Passing(self.rule(curve, self.scaled_target, self.level, least))

    def choose(self, curve: RiskCoverageCurve, passing: Passing) -> Found:
        """Choose the lowest threshold that passes; inf where none does."""
        n_blocks = rules.last_passed(passing.entries)
        if len(passing.levels):
            lowest = float(passing.levels[-1])
            n_by_level = curve.n_blocks_at(lowest)
            if n_by_level >= n_blocks:
                return Found(lowest, n_by_level)
        if n_blocks == 0:
            return Found(math.inf, 0)
        return Found(None, n_blocks)

    def rows_needed(self) -> int:
        """Return the smallest number of rows that could meet the target."""
        if self.plan.guarantee == "mean":  # 1 / (n + 1) is at most the target
            return math.ceil(1.0 / self.scaled_target - 1.0 - 1e-9)
        return rows_for_certificate(self.scaled_target, self.level)

    @property
    def rows_to_fail(self) -> float:
        """The fewest rows with which the guarantee can fail: fewer certify nothing."""
        if not self.counts:
            return 0
        return self.rows_needed()

    def _check(self, loss: Loss, confidence: Any) -> None:  # noqa: ARG002
        self.delta = check_delta(self.delta)
        self.max_analyses = check_count("max_analyses", self.max_analyses)
        if not self.counts:
            if self.max_analyses > 1:
                raise self._refuse_unused("max_analyses", "divides delta")
            if self.largest_weight is not None:
                raise self._refuse_unused("largest_weight", "makes counts of weights")
        if self.given_prediction is not None and self.given_class is not None:
            raise ValueError(
                "given_prediction and given_class: a guarantee is about the rows of one answer or "
                "of one true class; pass one of the two."
            )
        if self.largest_weight is not None:
            check_number("largest_weight", self.largest_weight, 0.0, math.inf, closed="neither")
        self.target = self.checked_target(loss)

    def _refuse_unused(self, name: str, effect: str) -> ArgumentError:
        """Return the error about a parameter that only a guarantee by counts uses."""
        return ArgumentError(
            name,
            f"{name}={getattr(self, name)} {effect}, which objective={self.name!r} with "
            f"method={self.method_name!r} does not use: it gives no guarantee that "
            "holds with high probability. Leave it out.",
        )

    # Refusals

    def in_all(self, n: int) -> int:
        """Return how many rows it takes in all so that `n` of them certify."""
        return math.ceil(n / self.share - 1e-9)

    def refuse(
        self, curve: RiskCoverageCurve, *, notes: Sequence[str] = (), remedy: str = ""
    ) -> InfeasibleTargetError:
        """Return the error where no threshold meets the target.

        What the rows could have borne takes many times as long as the refusal itself, so that it
        is looked for when the message is read.
        """
        message = f"REFUSED: {self.describe()}."
        return InfeasibleTargetError(
            message, remedy=remedy, explain=lambda: self.explain(curve, notes)
        )

    def explain(self, curve: RiskCoverageCurve, notes: Sequence[str]) -> Refusal:
        """Return why no threshold meets the target, what the rows prove, and what to do."""
        if not self.guarantees:
            return refusal.explain_estimate(self, curve)
        return refusal.explain(self, curve, notes)

    def find_best_set(self, curve: RiskCoverageCurve) -> BestSet | None:
        """Return the accepted set with the least bound, None where the method has none."""
        if self.plan.guarantee == "mean":
            return None
        n_errors = int(curve.accepted_loss[0])
        bound = clopper_pearson_upper(n_errors, curve.n_rows, self.level)
        return BestSet(int(curve.n_accepted[0]), n_errors, self.bound(bound))

    def find_least_target(self, curve: RiskCoverageCurve) -> tuple[float | None, float | None]:
        """Return the smallest target that could be met, and the coverage there; None if none."""
        least = self._least_target(curve)
        if self.about.is_error and least > 0.5:
            return None, None
        coverage = self._coverage_at(curve, least)
        return self.bound(least), coverage

    def _least_target(self, curve: RiskCoverageCurve) -> float:
        """Return the smallest target that these rows could have met, in [0, 1]."""
        return clopper_pearson_upper(curve.accepted_loss[0], curve.n_rows, self.level)

    def _coverage_at(self, curve: RiskCoverageCurve, target: float) -> float:
        """Return the share of these rows that would be answered at a target."""
        # A last bit of the target may decide.
        target = min(target * (1.0 + 1e-9), 1.0)
        entries = self.rule(curve, target, self.level, self.least_coverage(curve.n_rows))
        coverage, _ = curve.working_point(rules.last_passed(entries))
        return coverage

    def plan_rows(self, curve: RiskCoverageCurve) -> RowsNeeded:  # noqa: ARG002
        """Return how many rows like these would meet the target, as a range."""
        needed = self.rows_needed()
        return RowsNeeded(needed, needed)

    def least_risk_bound(self, curve: RiskCoverageCurve) -> float:  # noqa: ARG002
        """Return a lower bound of what the target bounds, for every accepted set."""
        return 0.0

    @property
    def smallest_set(self) -> float:
        """The share of the cases from which on such a bound speaks of accepted sets."""
        return 0.0

    def observed(self, curve: RiskCoverageCurve) -> FloatArray:
        """Return what the target bounds, at each entry of a curve."""
        return curve.generalized_risk
