"""What is guaranteed about a threshold, in words that a manager can read."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from decimal import ROUND_FLOOR, Context, Decimal
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from skselect import objectives
from skselect._lib.arrays import ROUNDING, BoolArray, FloatArray, lexsort
from skselect._lib.checks.options import check_choice, check_count, check_number
from skselect._lib.notebook import LONGEST_LINE, NotebookText, percent, rounded, show_card, wrap
from skselect.bounds._band import BAND_SHARE
from skselect.curve.curve import RiskCoverageCurve
from skselect.policy.seen_rows import Overlap
from skselect.predictions.outcomes import Outcomes
from skselect.thresholds._least import least_band_target

INDEPENDENT = "the rows are independent draws from the population the policy will meet"
FRESH = (
    "the rows were not used to train, calibrate or choose the classifier, nor to choose the target"
)
UNCHANGED = "the classifier, its calibration and its confidence are not changed"
FIXED = "the policy was fixed before these rows were seen"
FIRST_ANALYSIS = "these rows, and every part of them, are analysed for the first time"
POOL = (
    "these rows, their confidences, the objective with its target and options were fixed before "
    "the first label; adding rows is a second analysis (judging more of them is not)"
)
PLANNED = (
    "the analyses of these rows, and how many rows each uses, were planned before the first one"
)
WEIGHED = (
    "each weight says how much more often such cases will occur in service than in this sample"
)
#: What every guarantee rests on.
ASSUMPTIONS = (INDEPENDENT, FRESH, UNCHANGED)
#: What recognised rows have to do with a threshold.
MUST_PASS = "a threshold must hold with and without them"
#: Where rows were recognised: readings of which one must be true.
ALL_SEEN = "either all rows that equal training rows are cases that came back, or none of them is"
ALL_COPIES = "either all rows that equal earlier ones are copies, or none of them is"
STARTS = "the starts or levels of the sequence were fixed before these rows were seen"

# The first line of a bound without a target.
_MEASURED = (
    "UPPER BOUND ONLY: no target was named beforehand (target=), so nothing is guaranteed. These "
    "rows give this bound."
)
#: How the notice begins where rows contradict the policy's own guarantee.
NOT_MET = "THE POLICY'S OWN GUARANTEE IS NOT MET"


class Caveat(NamedTuple):
    """A reason why a certificate is not exact, or not to be taken plainly.

    `violates` is the assumption that does not hold ("": none). With `strikes` the certificate
    becomes an estimate; without, it stands, names the reason below its first line, if there is
    one, and `assumes` what makes it true. `warns` is said aloud where something is accepted.
    """

    reason: str
    violates: str = ""
    strikes: bool = True
    assumes: str = ""
    warns: str = ""


NO_CAVEATS: tuple[Caveat, ...] = ()
FOLD_MODELS = Caveat(
    "the threshold comes from out-of-fold predictions, whose models differ from the final one "
    "(FrozenEstimator with fresh rows, or cv='auto' and refit='auto', certifies)",
    UNCHANGED,
)
REFITTED = Caveat(
    "the classifier was fitted again on all rows after the threshold was chosen (without "
    "refit=True the classifier is kept, which certifies)",
    UNCHANGED,
)
SAME_ROWS = Caveat(
    "these rows also fitted the calibration of the frozen classifier (cv='auto' and refit='auto', "
    "or a classifier calibrated on other rows, certifies)",
    FRESH,
)


NO_RECORD = Caveat(
    "skselect cannot tell whether these rows also trained the classifier", strikes=False
)
#: The same where the user says that they did not.
FRESH_BY_WORD = NO_RECORD._replace(reason=f"{NO_RECORD.reason} (assume='fresh' says no)")
OLD_RECORD = Caveat(
    "the record of the training rows was saved by an older version, which recognises only rows "
    "with a value of their own",
    strikes=False,
)
NOTHING_CHECKED = Caveat(
    "no row can be recognised, so skselect cannot tell whether copies of these rows also trained "
    "the classifier",
    strikes=False,
)
#: A larger share of rows that also trained the classifier makes a certificate an estimate.
MOST_SEEN = 0.2
#: The fingerprints that record rows: those that chose the threshold, and that trained.
ROW_RECORDS = ("rows", "trained")
#: The assumptions that a user can vouch for against what the rows show.
VOUCHED = {"fresh": FRESH, "independent": INDEPENDENT, "balanced": INDEPENDENT}
SORTED_BY_CLASS = Caveat(
    "these rows are sorted by class, so their order was tested within each class, which cannot "
    "show a change from one class to the next",
    strikes=False,
)


def trained_here(overlap: Overlap, *, few: bool, asks: bool, vouched: bool) -> Caveat:
    """Return the caveat about rows of which some also trained the classifier.

    Where they are `few`, a threshold must pass with and without them. With `asks` it may have been
    an auxiliary model that its confidence asks.
    """
    what = "the classifier or an auxiliary model" if asks else "the classifier"
    of = f"{overlap.n_seen:,} of {overlap.n_recognisable:,} recognisable rows"
    if few:
        same = f"{of} also occur in the training data of {what}"
        passes = f"{same}; {MUST_PASS}"
        return Caveat(passes, strikes=False, assumes=ALL_SEEN)
    found = f"{of} also trained {what}"
    if vouched:
        return Caveat(f"{found}, overruled by assume='fresh'", FRESH, strikes=False)
    return Caveat(f"{found}, and only fresh rows certify (assume='fresh' overrules this)", FRESH)


def mixed_rows(share: float, rows: str, bound: str) -> Caveat:
    """Return the caveat about rows of which a share also trained the classifier.

    If all of them leaked, or all came back, a threshold holds under one of the two readings. If
    some leaked and others came back, the others bear all errors: `bound` is what still holds.
    """
    found = f"{percent(share, up=True)} of the {rows} also occur in the training data"
    if share > MOST_SEEN:
        return Caveat(
            f"{found}, and only fresh rows certify (assume='fresh' overrules this)", FRESH
        )
    mixed = f"if some of these leaked and others came back, {bound} holds instead of the target"
    return Caveat(f"{found}; {mixed}", strikes=False)


def others_trained(n: int, *, vouched: bool) -> Caveat:
    """Return the caveat about rows that trained the classifier and cannot be told from others."""
    found = f"about {n:,} more of these rows equal training rows than chance explains"
    found += ", and it cannot be told which"
    if vouched:
        return Caveat(f"{found}, overruled by assume='fresh'", FRESH, strikes=False)
    return Caveat(f"{found}; only fresh rows certify (assume='fresh' overrules this)", FRESH)


def copied_here(copies: BoolArray | None, included: str = "label included") -> tuple[Caveat, ...]:
    """Return the caveat about rows of which some are copies of others; None: nothing can tell."""
    if copies is None or not np.any(copies):
        return (UNSOUGHT,) if copies is None else ()
    found = f"{np.sum(copies):,} of these {len(copies):,} rows equal an earlier one, {included}"
    return (Caveat(f"{found}; {MUST_PASS}", strikes=False, assumes=ALL_COPIES),)


def in_order(found: str, level: float, advice: str, *, vouched: bool) -> Caveat:
    """Return the caveat about rows whose losses or confidences change along their order."""
    reason = (
        f"the {found} change from one part of the table to another, by more than chance explains "
        f"(level {level:g})"
    )
    if vouched:
        return Caveat(f"{reason}, overruled by assume='independent'", INDEPENDENT, strikes=False)
    reason += (
        f"; if the rows are in time order, new cases may differ, so {advice}, and monitor "
        "the policy (SelectiveRiskMonitor); if they are merely sorted (by site, say), pass "
        "assume='independent'"
    )
    return Caveat(reason, INDEPENDENT, warns=f"The order of the rows matters: {reason}.")


def equal_classes(n: int) -> Caveat:
    """Return the caveat about classes of which each has exactly `n` rows."""
    reason = f"all classes have {n:,} rows; if they were balanced by hand (SMOTE, over- or "
    reason += "undersampling), the certificate is about cases that are balanced in the same way"
    return Caveat(reason, strikes=False)


def other_classes(found: str, level: float, *, equal: bool, vouched: bool) -> Caveat:
    """Return the caveat about classes whose shares are not those of the training rows.

    It strikes where the classes are `equal` in size, as after balancing.
    """
    reason = f"{found} those that trained the classifier, by more than chance explains (level "
    reason += f"{level})"
    if equal:
        reason += ", and all classes have the same number of rows, as if they were balanced by hand"
        reason += ", overruled by" if vouched else "; if new cases are balanced in that way, pass"
        reason += " assume='balanced'"
    return Caveat(reason, INDEPENDENT if equal else "", strikes=equal and not vouched)


def check_vouched(assume: Any) -> frozenset[str]:
    """Return the assumptions that a user vouches for; refuse other words."""
    names = [assume] if isinstance(assume, str) or not np.iterable(assume) else list(assume)
    for name in names:
        check_choice("assume", name, list(VOUCHED))
    return frozenset(names)


#: Ties of a table without features that need not be copies.
UNSOUGHT = Caveat(
    "",
    strikes=False,
    assumes="no row is a copy of another (copies cannot be found, because confidences are tied)",
)
CHOSEN_HERE = Caveat("these rows also chose the threshold; only fresh rows can certify", FIXED)
OF_FIT = Caveat(
    "some of these rows trained the classifier or chose the threshold; only fresh rows can certify",
    FRESH,
)
UNORDERED = Caveat(
    "skselect cannot tell whether the rows depend on their order, because only their sums are "
    "known",
    strikes=False,
)
MAY_HAVE_CHOSEN = Caveat(
    "skselect cannot tell whether some of these rows chose the threshold; do not pass rows used in "
    "fit",
    strikes=False,
)
NOTHING = Caveat("no threshold meets the target, so all cases are deferred")
GROUPED = Caveat("rows of the same group are not independent (groups= was given)", INDEPENDENT)


@dataclass(frozen=True)
class Origin:
    """What is known of the rows of a certificate beside their outcomes.

    Parameters
    ----------
    caveats : tuple of Caveat, default=()
        Why a certificate is not exact.
    assumed : tuple of str, default=()
        What it assumes beside what all certificates do.
    provenance : str, default=""
        Which rows these are, as the certificate says.
    fingerprints : dict, default={}
        Their digests.
    drawn : str, default=""
        How the rows were drawn, which the certificate assumes first.
    seed : int, default=0
        What is drawn by chance is drawn with it.
    by_chance : bool, default=False
        Whether anything was: rows that named levels, or coins for losses and weights.
    analysis : str, default=FIRST_ANALYSIS
        What is assumed about analyses, where no more are planned.
    reviewer : str, default=""
        What is said about a reviewer.
    refusal : str, default=""
        Why nothing is guaranteed at all.
    """

    caveats: tuple[Caveat, ...] = ()
    assumed: tuple[str, ...] = ()
    provenance: str = ""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    drawn: str = ""
    seed: int = 0
    by_chance: bool = False
    analysis: str = FIRST_ANALYSIS
    reviewer: str = ""
    refusal: str = ""

    def with_pool(self, outcomes: Outcomes) -> Self:
        """Say how many of the rows are judged, where not all need to be."""
        if outcomes.unjudged is None:
            return self
        n, waits = len(outcomes), int(np.sum(outcomes.unjudged))
        rest = f"; the other {waits:,} count as wrong" if waits else ""
        which = f"{n - waits:,} judged cases of a pool of {n:,}{rest}"
        return replace(self, provenance=which, analysis=POOL)


class Stated:
    """What is guaranteed, as a certificate and a check of it hold it."""

    objective: str
    target: float
    delta: float
    loss: str
    unit: float
    cases: str
    deferred_error: float | None

    @property
    def as_objective(self) -> objectives.Guarantee:
        """The objective, on its rows."""
        stated = objectives.GUARANTEES[self.objective](self.target, delta=self.delta)
        if isinstance(stated, objectives.SystemRisk):
            stated.deferred_error = self.deferred_error
        return stated.on(objectives.Loss(self.loss, self.unit), self.cases)

    @property
    def statement(self) -> str:
        """What is guaranteed, in words; bounds are never rounded in its favour."""
        return self.as_objective.describe()


@dataclass(frozen=True)
class Certificate(Stated, NotebookText):
    """The guarantee that comes with a threshold, its numbers and its assumptions.

    Print it: the text begins with "CERTIFIED" only when the guarantee is exact.

    Parameters
    ----------
    objective : {"risk", "generalized_risk", "coverage", "system_risk"}
        What the target bounds.
    target : float
        The guaranteed bound, in units of the cost matrix where there is one.
    delta : float
        Probability that the guarantee fails, over calibrations like this one.
    max_analyses : int
        Planned analyses of growing rows, which share `delta` evenly.
    method : str
        How the guarantee was derived.
    guarantee : {"high_probability", "mean", "measured", "none"}
        "measured": the bound holds with high probability, but nobody asked for it beforehand.
    exact : bool
        Whether the guarantee holds in finite samples under the assumptions alone.
    caveats : tuple of str
        Why the guarantee is not exact, or what else keeps it from being taken plainly.
    threshold : float
    n : int
        Rows used.
    n_accepted, n_errors : int
        Accepted rows, and those among them that are wrong. A loss between 0 and 1 is an error with
        this probability; for method "mean" it is one if it is not 0.
    coverage, risk : float
        Share of accepted rows; their mean loss (nan when none is accepted).
    pointwise_bound : float
        Bound for this threshold as if it had been fixed beforehand. Not the guarantee:
        it ignores that the threshold was chosen.
    rows_needed : int
        The least number of rows that could certify the target at all.
    min_coverage : float
        Smaller accepted sets were not considered.
    loss : {"zero_one", "cost", "graded"}
        What is bounded: the share of errors, their mean cost, or a mean loss.
    unit : float
        The largest cost; target, risk and bound are in its units.
    cases : str
        Which cases it is about, "" for all: "of subgroup 'F'" or "whose answer is 'healthy'".
    assumptions : tuple of str
        What the rows cannot show.
    notice : str
        Where these rows contradict the policy's own guarantee, or do not confirm it; else "". See
        :func:`certify`.
    provenance : str
        Which of the rows given choose the threshold, where a splitter left some to training only.
    shortlist : str
        What is said about the shortlist of deferred cases, "" where there is none.
    reviewer : str
        What is said about the reviewer of deferred cases, "" where the target does not count the
        reviewer's errors.
    deferred_error, overall_error : float or None
        The share of the deferred cases that the reviewer is assumed to get wrong; or the bound of
        the share of all cases that are deferred and then wrong.
    seed : int or None
        It drew the rows that name levels, or the coins for losses and weights. None: nothing was
        drawn by chance.
    created : str
        Date and time, ISO 8601.
    fingerprints : dict
        "data": digest of the confidences of the rows used. "model": digest of the
        (calibrated) probabilities for those rows. Both are independent of the rows' order.
    n_sharing : int
        How many guarantees, those of all subgroups, share the delta that was asked for.
    also : tuple of Certificate
        Further guarantees of the same threshold, each at its share of the delta that was asked for;
        all hold together.
    """

    objective: str
    target: float
    delta: float
    method: str
    guarantee: str
    exact: bool
    caveats: tuple[str, ...]
    threshold: float
    n: int
    n_accepted: int
    n_errors: int
    coverage: float
    risk: float
    pointwise_bound: float
    rows_needed: int
    min_coverage: float = 0.0
    loss: str = "zero_one"
    unit: float = 1.0
    cases: str = ""
    assumptions: tuple[str, ...] = ASSUMPTIONS
    created: str = ""
    fingerprints: dict[str, str] = field(default_factory=dict)
    also: tuple[Certificate, ...] = ()
    max_analyses: int = 1
    notice: str = ""
    provenance: str = ""
    shortlist: str = ""
    reviewer: str = ""
    deferred_error: float | None = None
    overall_error: float | None = None
    seed: int | None = None
    n_sharing: int = 1

    @classmethod
    def of(
        cls,
        objective: objectives.Guarantee,
        threshold: float,
        working_point: tuple[float, float],
        counts: Sequence[objectives.Counts],
        origin: Origin,
    ) -> Certificate:
        """Write the certificate of an objective on its rows; without a target, of the bound.

        The counts are those of the first reading of the rows, the bound is the weakest of all.
        """
        guarantee, loss = objective.plan.guarantee, objective.about
        bound = objective.bound(objective.weakest(counts))
        if math.isnan(objective.target):
            guarantee, objective = "measured", copy.copy(objective).set_params(target=bound)
        # Those that strike come first.
        caveats = sorted(origin.caveats, key=lambda caveat: not caveat.strikes)
        reasons = (*(caveat.reason for caveat in caveats), origin.refusal)
        violated = {caveat.violates for caveat in caveats if caveat.strikes}
        assumptions = (
            origin.drawn,
            *objective.reviewing.assumes,
            *ASSUMPTIONS,
            *(caveat.assumes for caveat in caveats),
            *origin.assumed,
            origin.analysis if objective.max_analyses == 1 else PLANNED,
        )
        coverage, risk = working_point
        return cls(
            objective=objective.name,
            target=objective.target,
            delta=objective.own_delta,
            max_analyses=objective.max_analyses,
            method=objective.method_name,
            guarantee="none" if origin.refusal else guarantee,
            exact=not origin.refusal and not any(caveat.strikes for caveat in caveats),
            caveats=tuple(one for one in reasons if one),
            threshold=threshold,
            n=counts[0].n,
            n_accepted=counts[0].n_accepted,
            n_errors=counts[0].n_errors,
            coverage=coverage,
            risk=loss.unit * risk,
            pointwise_bound=bound,
            rows_needed=objective.rows_needed(),
            min_coverage=objective.least_coverage(counts[0].n),
            loss=loss.kind,
            unit=loss.unit,
            cases=objective.cases,
            assumptions=tuple(one for one in assumptions if one and one not in violated),
            created=now(),
            fingerprints=dict(origin.fingerprints),
            provenance=origin.provenance,
            reviewer=origin.reviewer,
            deferred_error=objective.reviewing.rate,
            overall_error=objective.reviewing.bound,
            seed=origin.seed if origin.by_chance else None,
            n_sharing=objective.n_sharing,
        )

    @property
    def is_certified(self) -> bool:
        """Whether each guarantee is exact and holds with high probability."""
        own = self.exact and self.guarantee == "high_probability"
        return own and all(one.is_certified for one in self.also)

    @property
    def since(self) -> str:
        """When it was certified, and by how many rows; "" if it is not."""
        made = [self.created[:10], f"{self.n:,} rows"]
        return ", ".join(filter(None, made)) if self.is_certified else ""

    def tell_life(self, n_sharing: int) -> str:
        """Return what is guaranteed since when, and how many labelled rows are enough to test it.

        `n_sharing` is how many guarantees are tested together.
        """
        stated = self.as_objective
        needed = rounded(
            stated.rows_to_test(max(objectives.DOUBT / n_sharing, self.delta)), 2, up=True
        )
        noun = "cases" if stated.is_least else "labelled cases"  # a coverage reads no label
        noun = "labelled answers" if stated.is_selective else noun
        rows = f"{float(needed):,.0f} {noun}"
        return f"{stated.tell_life(self.since)} Next review: after about {rows}."

    @property
    def can_fail(self) -> bool:
        """Whether it uses `delta`: with too few rows nothing is accepted, or all for a coverage."""
        stated = self.as_objective.set_params(max_analyses=self.max_analyses)
        return self.method == objectives.FIXED_METHOD or self.n >= max(
            self.rows_needed, stated.rows_to_fail
        )

    @cached_property
    def least_target(self) -> float:
        """The smallest target that this threshold would have met on these rows.

        It is information about this threshold only. Quoting it as the guarantee would choose
        the target after seeing the rows; to certify it, use fresh ones. (For a coverage
        objective: the largest coverage. For "band" it is exact; the other methods also look at
        surer rows, so that it is an upper bound. Computed when first asked for.)
        """
        if not self.as_objective.is_selective or self.method == objectives.FIXED_METHOD:
            return self.pointwise_bound
        share = {"band": 1.0, "combined": BAND_SHARE}.get(self.method)
        if share is None:
            return self.target if self.n_accepted else self.unit
        counts = self.n_accepted, self.n_errors
        delta = share * self.delta / self.max_analyses
        least = self.unit * least_band_target(*counts, self.n, delta, self.min_coverage)
        return min(least, self.target) if self.n_accepted else least

    @property
    def _verdict(self) -> str:
        if self.is_certified:
            return "CERTIFIED"
        return "REFUSED" if NOTHING.reason in self.caveats else "ESTIMATE, NOT CERTIFIED"

    def __repr__(self) -> str:
        each = [self, *self.also]
        guarantees = " and ".join(f"{x.objective} {x.target:g} {x.cases}".rstrip() for x in each)
        text = (
            f"<Certificate: {self._verdict}, {guarantees}, "
            f"delta {self.delta:g}, threshold {self.threshold:.6g}, {self.n} rows>"
        )
        if len(text) <= LONGEST_LINE:
            return text
        return f"<Certificate: {self._verdict}, {len(each)} guarantees, {self.n} rows>"

    def __str__(self) -> str:
        head, caveats = self._verdict, "; ".join(self.caveats)
        if self.exact and self.guarantee == "measured":
            head = _MEASURED
        elif not self.is_certified:
            head = f"{head}: {caveats}."
        but = f"Note: {caveats}." if self.exact and caveats else ""
        heads = [head, but, self.notice]
        if self.notice.startswith(NOT_MET):
            instead = "What these rows certify instead:" if self.is_certified else head
            heads = [self.notice, instead, but]
        trust = f"Assumptions (not proved): {'; '.join(self.assumptions)}."
        methods = dict.fromkeys(one.method for one in (self, *self.also))
        each = " for each guarantee" if self.also else ""
        method = f"Method: {', '.join(methods)}, delta {rounded(self.delta, 6, up=True)}{each}."
        if self.seed is not None:
            method += f" Rows or coins were drawn with the seed {self.seed}."
        if FIXED in self.assumptions:
            method += " The policy was fixed, so nothing was chosen on these rows."
        if self.max_analyses > 1:
            method += f" Each of up to {self.max_analyses} planned analyses uses "
            method += f"delta / {self.max_analyses}."
        rests = "Certified" if self.is_certified else "Estimated"
        rests = f"{rests} on {self.provenance}." if self.provenance else ""
        facts = dict.fromkeys(one._facts() for one in (self, *self.also))  # noqa: SLF001
        said = [self._sentence(), *facts, self.reviewer, rests, self.shortlist]
        lines = [*heads, *said, trust, method]
        return wrap("\n".join(line for line in lines if line))

    def _repr_html_(self, text: str | None = None) -> str:
        """Return a text about this certificate as HTML, with its numbers large; None: its own."""
        good = self.is_certified and not self.notice.startswith(NOT_MET)
        measured = self.exact and self.guarantee == "measured"
        word = "guaranteed" if self.is_certified else "bound only" if measured else "not guaranteed"
        numbers = {"of these cases answered": percent(self.coverage)}
        for one in (self, *self.also):
            stated = one.as_objective.limit(word)
            numbers |= {f"{name} {one.cases}".strip(): value for name, value in stated.items()}
        if math.isfinite(self.threshold):
            numbers["least confidence of an answer"] = f"{self.threshold:.6g}"
        return show_card(text or str(self), "good" if good else "open", numbers, n_small=2)

    def _sentence(self) -> str:
        """Return the guarantee in plain words, "" where nothing is guaranteed."""
        if self.guarantee == "none" or self.n_accepted == 0:
            return ""
        delta = math.fsum(one.delta for one in (self, *self.also))
        how_sure = f"with {percent_kept(delta)} % confidence"
        if self.n_sharing > 1 and not self.also:
            every = percent_kept(self.n_sharing * delta)
            how_sure += f" (all {self.n_sharing} together: {every} %)"
        if self.max_analyses > 1:
            how_sure += f" in all of up to {self.max_analyses} analyses"
        if self.guarantee == "mean":
            how_sure = "on average over tables like this one"
        start = how_sure[0].upper() + how_sure[1:]
        if not (self.exact or self.caveats == (objectives.MEAN_ONLY,)):
            start = f"A certificate would say: {how_sure}"
        worse = "weeks" if self.cases else "subgroups or weeks"
        stated = self.statement
        if self.also:
            each = "; ".join([self.statement, *(one.statement for one in self.also)])
            stated = f"all of these guarantees hold ({each})"
        return (
            f"{start}, {stated} over all future cases like these {self.n:,}. This is an "
            f"average; single {worse} may be worse."
        )

    @property
    def bound(self) -> str:
        """The target as text, rounded to the safe side."""
        return self.as_objective.amount(self.target)

    @property
    def reads_reviewer(self) -> bool:
        """Whether only a reviewer's answers can test it."""
        known = (self.deferred_error, self.overall_error)
        return self.objective == objectives.SystemRisk.word and known == (None, None)

    @property
    def is_of_users_loss(self) -> bool:
        """Whether it bounds a loss of the user's own, which no policy holds."""
        return self.loss == "graded"

    def _facts(self) -> str:
        which = f" {self.cases}" if self.cases else ""
        if self.n_accepted == 0:
            return f"The policy answers none of these {self.n:,} cases{which}."
        where = "at any confidence"
        if self.n_accepted < self.n or 0 < self.threshold < math.inf:
            one = math.isfinite(self.threshold)
            where = f"at confidence {self.threshold:.6g} or higher"
            where = where if one else "with a threshold for each subgroup"
        found = f"{self.n_errors:,} of them wrong"
        loss = self.as_objective.about
        if not loss.is_error:
            verb = "cost" if loss.is_cost else "lose"
            found = f"which count as {self.n_errors:,} errors and {verb} {self.risk:.6g} on average"
        return (
            f"The policy answers {percent(self.coverage)} of these cases{which} "
            f"({self.n_accepted:,} of {self.n:,}, {found}), {where}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; infinite and undefined numbers become None."""
        stored = asdict(self)
        stored["threshold"] = threshold_to_json(self.threshold)
        stored["risk"] = None if np.isnan(self.risk) else self.risk
        stored["caveats"] = list(self.caveats)
        stored["assumptions"] = list(self.assumptions)
        if not self.reviewer:
            del stored["reviewer"], stored["deferred_error"], stored["overall_error"]
        if self.seed is None:
            del stored["seed"]
        if self.n_sharing == 1:
            del stored["n_sharing"]
        del stored["also"]
        return stored | ({"also": [one.to_dict() for one in self.also]} if self.also else {})

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Certificate:
        """Rebuild a certificate from :meth:`to_dict`."""
        values = stored | {"threshold": threshold_from_json(stored["threshold"])}
        risk = stored["risk"]
        values["risk"] = math.nan if risk is None else check_number("risk", risk, 0.0)
        for name in ("caveats", "assumptions"):
            values[name] = tuple(check_texts(name, values[name]))
        values["also"] = tuple(map(cls.from_dict, stored.get("also", ())))
        one = cls(**values)
        check_choice("guarantee", one.guarantee, _GUARANTEED)
        check_choice("loss", one.loss, _LOSSES)
        most = one.as_objective.unit * (1.0 + ROUNDING)
        counts = [0, one.n_errors, one.n_accepted, one.n]
        # A bound may be 0. No number of rows certifies a target next to 0.
        smallest = 0.0 if one.method == objectives.FIXED_METHOD else 1e-12 * one.as_objective.unit
        fit = smallest <= one.target <= most and 0.0 < one.delta <= 0.5 and counts == sorted(counts)
        if not (isinstance(values["exact"], bool) and fit and (one.exact or one.caveats)):
            raise ValueError("certificate: its values do not fit together.")
        for name in ("coverage", "min_coverage", "deferred_error", "overall_error"):
            if not name.endswith("_error") or getattr(one, name) is not None:
                check_number(name, getattr(one, name), 0.0, 1.0)
        check_number("pointwise_bound", one.pointwise_bound, 0.0)
        for name, least in {"rows_needed": 0, "max_analyses": 1, "n_sharing": 1, "seed": 0}.items():
            if name != "seed" or one.seed is not None:
                check_number(name, check_count(name, getattr(one, name), least))
        texts = [one.method, one.cases, one.notice, one.provenance, one.shortlist, one.reviewer]
        check_texts("text", texts)
        check_made(one.created, one.fingerprints)
        for other in one.also:
            check_certified(other, one.threshold, "certificate: also", "also=()")
        str(one)  # other values of a wrong kind fail here, and not later
        return one

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)


def fingerprint(curve: RiskCoverageCurve) -> str:
    """Return a digest of the rows' confidences that does not depend on their order.

    Losses and weights are left out: the same rows are recognised whatever counts as a loss.
    """
    digest = hashlib.sha256(np.ascontiguousarray(curve.thresholds).data)
    if len(curve) < curve.n_rows:
        digest.update(np.ascontiguousarray(curve.block_rows).data)
    return digest.hexdigest()[:16]


def scores_fingerprint(scores: FloatArray) -> str:
    """Return a digest of scores (n, K) or (n,) that does not depend on the rows' order.

    The scores of a model for given rows tell that model apart from another, and these rows
    from others.
    """
    table = np.asarray(scores, dtype=np.float64).reshape(len(scores), -1)
    ordered = table[lexsort([*table.T])]
    return hashlib.sha256(np.ascontiguousarray(ordered).tobytes()).hexdigest()[:16]


def now() -> str:
    """Return date and time as ISO 8601 text."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def threshold_to_json(threshold: float) -> float | str | None:
    """Return a threshold for JSON: inf as None, -inf as "-inf"."""
    if math.isinf(threshold):
        return None if threshold > 0 else "-inf"
    return threshold


def threshold_from_json(stored: Any) -> float:
    """Return the threshold that :func:`threshold_to_json` wrote."""
    if stored is None or stored == "-inf":
        return math.inf if stored is None else -math.inf
    return check_number("threshold", stored, closed="neither")


def percent_kept(delta: float) -> str:
    """Return 100 (1 - delta), rounded down so that no guarantee is overstated."""
    down = Context(rounding=ROUND_FLOOR)
    share = down.subtract(Decimal(100), down.multiply(Decimal(100), Decimal(f"{delta:.12g}")))
    place = Decimal("0.01") if delta > 1e-4 else Decimal("1e-10")
    return f"{share.quantize(place, ROUND_FLOOR).normalize():f}"


def check_certified(certificate: Any, threshold: float, what: str, remedy: str) -> None:
    """Refuse a certificate that is about another threshold."""
    if certificate is not None and certificate.threshold != threshold:
        raise ValueError(
            f"{what}, but the certificate is about the threshold {certificate.threshold!r}. Pass "
            f"{remedy} as well: nothing is guaranteed about another threshold until certify() or "
            "select_threshold() has looked at fresh rows."
        )


# Stored certificates ------------------------------------------------------------------------

#: How a guarantee holds, and what it bounds.
_GUARANTEED = ("high_probability", "mean", "measured", "none")
_LOSSES = ("zero_one", "cost", "graded")


def check_made(created: Any, fingerprints: Any) -> None:
    """Check that the date and the digests are text."""
    check_texts("created, fingerprints", [created, *fingerprints.values()])
    for name in ROW_RECORDS:
        if not re.fullmatch("([0-9a-f]{8})*", fingerprints.get(name, "")):
            raise ValueError(f"fingerprints[{name!r}] must hold eight hexadecimal digits a row.")


def check_texts(name: str, values: Any) -> list[str]:
    """Check that a value is a list of texts."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be a list of texts.")
    return values
