"""The risk of the answers, and that of all cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from skselect._lib.arrays import BoolArray, FloatArray, LossSpec
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import BestSet, Refusal
from skselect.objectives.counts import Counts
from skselect.objectives.guarantee import Guarantee
from skselect.objectives.loss import Loss
from skselect.objectives.objective import (
    MEAN_ONLY,
    Method,
    check_min_coverage,
    refuse_without_levels,
)
from skselect.predictions.outcomes import Outcomes
from skselect.thresholds import (
    FixedSequence,
    LevelSequence,
    _advice as advice,
    _least as targets,
    _rules as rules,
)
from skselect.thresholds._rules import Passing
from skselect.thresholds._sequences import are_tied

#: The share of its rows by which a tuner certifies, where they are enough.
HELD_OUT = 0.4

_SGR = (
    "the published proof of SGR treats the probes of its bisection as fixed, but they depend on "
    "the rows (method='combined' certifies, and answers more)"
)


@dataclass(repr=False, kw_only=True)
class Risk(Guarantee):
    """Certify a selective risk of at most `target`, and answer as many cases as that allows.

    The selective risk is the mean loss of the accepted rows (for errors, the share of wrong
    answers). Most calls need only `target`: ``Risk(.05)``.

    Parameters
    ----------
    target : float
        The bound to keep. In (0, 0.5] for errors; in units of the cost matrix where there is one;
        up to 1 for a loss of your own.
    delta : float in (0, 0.5], default=0.05
        Probability that the guarantee fails. The probability is over calibrations like this one;
        subgroups with enough rows share it evenly.
    max_analyses : int, default=1
        How often at most you will choose a threshold while adding rows to the same set. Plan this
        number, and how many rows each analysis uses, before the first. Each analysis uses `delta` /
        `max_analyses`. Calls with fresh rows only need no plan.
    method : str, FixedSequence, LevelSequence or Combined, default="auto"
        How the threshold is found, and what is guaranteed; "auto" means "combined".

        - Certified: "combined" usually accepts most, and other rows may choose its start
          (:class:`~skselect.thresholds.Combined`); "band" is for classifiers that are worst where
          they are surest; "fixed_sequence" begins at 25 % of the rows, or where a
          :class:`~skselect.thresholds.FixedSequence` says; a
          :class:`~skselect.thresholds.LevelSequence` is for tied confidences, and a tuner uses it
          by itself if the training rows have few levels; "bonferroni".
        - Estimates: "sgr", "mean". No guarantee: "empirical".
    min_coverage : float in [0, 1] or "auto", default="auto"
        Smaller accepted sets are not considered. "auto": a tenth of the rows that certify, or 200
        of them if these are fewer; 0 for "empirical".
    loss : {"auto", "zero_one", "cost"} or callable, default="auto"
        How wrong an answer is. "auto": its cost where there is a cost matrix. A callable
        ``(y_true, y_pred) -> loss`` returns values in [0, 1]. A loss between 0 and 1 counts as an
        error with this probability.
    given_prediction : label, default=None
        The guarantee covers only rows with this answer: "healthy" for "at most 1 % wrong among the
        accepted negatives". The threshold is applied to all rows.
    given_class : label, default=None
        The guarantee covers only rows of this true class.
    largest_weight : float, default=None
        A limit, fixed beforehand, that no weight can exceed. It says that ``sample_weight`` holds
        importance weights: a row counts with probability weight / `largest_weight`. None: unequal
        weights are refused.

    See Also
    --------
    GeneralizedRisk : Counts silent errors among all rows.
    skselect.thresholds.rows_needed : How many rows a target needs.

    Examples
    --------
    >>> from skselect import Outcomes, Risk, select_threshold
    >>> outcomes = Outcomes([0] * 299 + [1], [.9, .9, .8] * 100)
    >>> found = select_threshold(outcomes, objective=Risk(.05, delta=.1, method="band"))
    >>> found.threshold < .8, found.certificate.is_certified
    (True, True)
    >>> Risk(.02).set_params(target=.05)
    Risk(0.05)
    """

    word = "risk"
    reads_costs = True
    is_selective = True
    target_means = "the largest selective risk, for example target=0.02"
    methods: ClassVar[Mapping[str, Method]] = {
        "combined": Method(rules.combined_risk),
        "band": Method(rules.band_risk),
        "fixed_sequence": Method(FixedSequence(), has_starts=True),
        "level_sequence": Method(refuse_without_levels, has_starts=True),
        "bonferroni": Method(rules.bonferroni_risk),
        "sgr": Method(rules.sgr_risk, caveat=_SGR),
        "mean": Method(rules.mean_risk, "mean", MEAN_ONLY),
        "empirical": Method(rules.empirical_risk, "none"),
    }

    min_coverage: Any = "auto"
    loss: LossSpec = "auto"

    def _check(self, loss: Loss, confidence: Any) -> None:
        # What "auto" means depends on the number of rows.
        least = "auto" if self.guarantees else 0.0
        self.min_coverage = check_min_coverage(self.min_coverage, least)
        super()._check(loss, confidence)

    def describe(self) -> str:
        """Return the guarantee in words."""
        which = f" to cases {self.cases}" if self.cases else ""
        bound = self.amount(self.target)
        if self.about.is_error:
            return f"at most {bound} of the answers{which} are wrong"
        verb = "cost" if self.about.is_cost else "lose"
        return f"the answers{which} {verb} at most {bound} each on average"

    def count(self, counts: Counts) -> tuple[int, int]:
        """Return the errors among the accepted rows."""
        return counts.n_errors, counts.n_accepted

    def values(self, loss: FloatArray, accepted: BoolArray) -> FloatArray:
        """Return the losses of the accepted rows."""
        return loss[accepted]

    def observed(self, curve: RiskCoverageCurve) -> FloatArray:
        """Return the selective risk at each entry of a curve."""
        return curve.selective_risk

    @property
    def is_open(self) -> bool:
        """Whether a tuner may choose how the threshold is found."""
        return isinstance(self.method, str) and self.method == "auto"

    def passes(self, curve: RiskCoverageCurve, outcomes: Outcomes | None = None) -> Passing:
        """Return the thresholds that pass on a curve, with the levels that were named."""
        passing = super().passes(curve, outcomes)
        if not isinstance(self.method, LevelSequence):
            return passing
        least = self.least_coverage(curve.n_rows)
        levels = self.method.find_passed(curve, self.scaled_target, self.level, least)
        return passing._replace(levels=levels)

    def least_coverage(self, n: int) -> float:
        """Return the least coverage that counts on so many rows."""
        if isinstance(self.min_coverage, str):
            return rules.least_coverage(n)
        return super().least_coverage(n)

    def find_least_target(self, curve: RiskCoverageCurve) -> tuple[float | None, float | None]:
        """Return the least target of three digits that could be met, and the coverage there."""
        least = self.least_coverage(curve.n_rows)
        target, coverage = targets.find_least_target(self.rule, curve, self.level, least)
        if self.about.is_error and target > 0.5:
            return None, None
        return self.bound(target), coverage

    def explain(self, curve: RiskCoverageCurve, notes: Sequence[str]) -> Refusal:
        """Return why no threshold meets the target; ties may be the reason."""
        if self.counts and self._loses_by_ties(curve):
            ties = (
                f"Ties are the reason: these rows have only {len(curve)} different confidences, "
                "and tests of these levels would pass. Let other rows name the levels: "
                "method=LevelSequence.of(...)."
            )
            notes = [*notes, ties]
        return super().explain(curve, notes)

    def find_best_set(self, curve: RiskCoverageCurve) -> BestSet | None:
        """Return the accepted set with the least bound, None where none is large enough."""
        if self.plan.guarantee == "mean":
            return None
        best = advice.best_set(curve, self.level, self.least_coverage(curve.n_rows))
        if best is None:
            return None
        return BestSet(best.n_accepted, best.n_errors, self.bound(best.bound))

    def plan_rows(self, curve: RiskCoverageCurve) -> advice.RowsNeeded:
        """Return how many rows like these would meet the target, as a range."""
        if self.plan.guarantee == "mean":
            return super().plan_rows(curve)
        least = self.least_coverage(curve.n_rows)
        return advice.plan_rows(curve, self.scaled_target, self.level, least)

    def least_risk_bound(self, curve: RiskCoverageCurve) -> float:
        """Return a lower bound of the risk of every accepted set that is not too small."""
        return advice.least_risk_bound(curve, self.level, self.smallest_set)

    @property
    def smallest_set(self) -> float:
        """The share of the cases from which on such a bound speaks of accepted sets."""
        if isinstance(self.min_coverage, str):
            return 0.1
        return float(self.min_coverage)

    def _loses_by_ties(self, curve: RiskCoverageCurve) -> bool:
        """Tell whether confidences are tied, and a test of their levels would have passed."""
        if not self.is_open or not are_tied(len(curve), curve.n_rows):
            return False
        sequence = LevelSequence.of(curve, curve.n_rows, self.scaled_target, self.level)
        least = self.least_coverage(curve.n_rows)
        levels = sequence.find_passed(curve, self.scaled_target, self.level, least)
        return len(levels) > 0


@dataclass(repr=False, kw_only=True)
class GeneralizedRisk(Guarantee):
    """Certify that at most a share `target` of all cases gets a wrong answer (a silent failure).

    The generalised risk is the loss of the accepted rows divided by the number of all rows:
    accepted and wrong, as a share of all cases.

    Parameters
    ----------
    target : float
        As for :class:`Risk`.
    delta, max_analyses, loss, given_prediction, given_class, largest_weight
        As for :class:`Risk`. With ``given_class="sepsis"``: "at most 1 % of sepsis cases are
        silently dismissed".
    method : str, default="auto"
        Certified: "binomial" (the meaning of "auto"). An estimate: "mean", which keeps the target
        in expectation (conformal risk control [1]_) for losses of any kind. No guarantee:
        "empirical".

    References
    ----------
    .. [1] Angelopoulos, Bates, Fisch, Lei, Schuster (2024). Conformal Risk Control. ICLR, eq. 4.

    Examples
    --------
    >>> from skselect import GeneralizedRisk, Outcomes, select_threshold
    >>> outcomes = Outcomes([0] * 299 + [1], [.9, .9, .8] * 100)
    >>> select_threshold(outcomes, objective=GeneralizedRisk(.02)).coverage
    1.0
    """

    word = "generalized_risk"
    noun = "answered and wrong"
    reads_costs = True
    target_means = "the largest rate of silent failures, for example target=0.01"
    methods: ClassVar[Mapping[str, Method]] = {
        "binomial": Method(rules.certified_generalized_risk),
        "mean": Method(rules.mean_generalized_risk, "mean", MEAN_ONLY),
        "empirical": Method(rules.empirical_generalized_risk, "none"),
    }

    loss: LossSpec = "auto"

    def describe(self) -> str:
        """Return the guarantee in words."""
        which = f" {self.cases}" if self.cases else ""
        bound = self.amount(self.target)
        if self.about.is_error:
            return f"at most {bound} of all cases{which} get a wrong answer"
        verb = "cost" if self.about.is_cost else "lose"
        per = f"per case{which} on average (a deferred case counts 0)"
        return f"the answers {verb} at most {bound} {per}"

    def count(self, counts: Counts) -> tuple[int, int]:
        """Return the accepted errors among all rows."""
        return counts.n_errors, counts.n

    def _least_target(self, curve: RiskCoverageCurve) -> float:
        if self.plan.guarantee == "mean":
            return float(curve.accepted_loss[0] + 1.0) / (curve.n_rows + 1)
        return super()._least_target(curve)
