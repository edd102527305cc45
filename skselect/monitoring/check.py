"""Check whether what a policy guarantees is still true."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from skselect import objectives
from skselect._lib.arrays import FloatArray
from skselect._lib.files import replace_nan
from skselect._lib.notebook import (
    VERDICTS,
    count,
    noun_of,
    percent,
    rounded,
    show_card,
    wrap,
)
from skselect.curve.curve import CountedRows, RiskCoverageCurve
from skselect.exceptions import ArgumentError
from skselect.monitoring.decided import (
    check_is_policy,
    chose_threshold,
    decide_labelled,
    find_far,
    read_copies,
    sample_of,
    share_reused,
)
from skselect.monitoring.guarantees import (
    POWER,
    Request,
    Schedule,
    find_guarantees,
    find_requested,
)
from skselect.monitoring.plan import count_more
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Stated
from skselect.policy.policy import AbstentionPolicy
from skselect.predictions.predictions import Predictions, draw_of, rows_given
from skselect.selection.sample import Sample

_TRUSTED = (certificates.INDEPENDENT, certificates.FRESH, certificates.FIXED)
_GROWING = "rows are only added between two checks, whatever their outcomes"

# One guarantee ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GuaranteeCheck(Stated):
    """What labelled rows show about one guarantee.

    Parameters
    ----------
    verdict : {"broken", "in_doubt", "not_tested", "no_breach", "confirmed"}
    objective : {"risk", "generalized_risk", "coverage", "system_risk"}
    target : float
        The guaranteed bound.
    delta : float
        Chance that "broken" or "confirmed" is wrong, at most.
    loss : {"zero_one", "cost"}
    unit : float
        The largest cost; numbers below are in its units.
    cases : str
        Which cases it is about, "" for all.
    value, low, high : float
        What the target bounds, observed (nan without rows), and its bounds, each at `delta`.
    n, n_accepted, n_errors : int
        Rows that it is about, those that the policy accepts, and accepted ones with a loss (for
        "system_risk" also the deferred ones that the reviewer gets wrong).
    p_value : float
        The exact chance of so many errors or more, if the guarantee is just kept.
    detectable : float
        The least true value that would have been "in_doubt" or "broken" with probability 0.95; nan
        where these rows find none.
    n_more : int or None
        About how many more labelled rows it asks for, see :class:`PolicyCheck`: accepted rows for
        the objective "risk", rows of any kind for others. With several guarantees all breaches
        show with probability 0.8. 0 where it asks for none; None where no number would do.
    since : str
        When it was certified, and by how many rows; "" where no certificate guarantees it.
    max_analyses : int or None
        How often the growing table may be checked; None: as often as one likes.
    deferred_error : float or None
        The share of the deferred cases that the reviewer is assumed to get wrong.
    readings : tuple of str
        The verdicts with and without rows that equal an earlier one; empty where none does. Where
        they differ, `verdict` is what holds in both, and each bound is the wider one.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import AbstentionPolicy, Predictions, check_policy
    >>> policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
    >>> fresh = Predictions.from_proba([1] * 300, np.tile([.1, .9], (300, 1)), labels=[0, 1])
    >>> one = check_policy(policy, fresh, target=.02).guarantees[0]
    >>> one.statement
    'at most 2 % of the answers are wrong'
    >>> one.verdict, one.found, one.interval
    ('confirmed', '0 % (0 of 300)', 'wrong answers: 0 % to 1.492 % (time-uniform 90 % interval)')
    """

    verdict: str
    objective: str
    target: float
    delta: float
    loss: str
    unit: float
    cases: str
    value: float
    low: float
    high: float
    n: int
    n_accepted: int
    n_errors: int
    p_value: float
    detectable: float
    n_more: int | None
    since: str = ""
    max_analyses: int | None = None
    deferred_error: float | None = None
    readings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, guarantee: objectives.Guarantee, finding: objectives.Finding, schedule: Schedule
    ) -> GuaranteeCheck:
        """Write down what was found of a guarantee."""
        unit = guarantee.unit
        about = guarantee.about
        counts = finding.counts
        value = unit * finding.value
        low = unit * finding.low
        high = unit * finding.high
        detectable = unit * finding.detectable
        n_wrong = counts.n_errors + counts.n_missed
        n_more = count_more(guarantee, finding, schedule)
        readings = tuple(reading.verdict for reading in finding.readings)
        return cls(
            verdict=finding.verdict,
            objective=guarantee.word,
            target=guarantee.target,
            delta=guarantee.delta,
            loss=about.kind,
            unit=about.unit,
            cases=guarantee.cases,
            value=value,
            low=low,
            high=high,
            n=counts.n,
            n_accepted=counts.n_accepted,
            n_errors=n_wrong,
            p_value=finding.p_value,
            detectable=detectable,
            n_more=n_more,
            since=guarantee.since,
            max_analyses=schedule.max_analyses,
            deferred_error=guarantee.reviewing.rate,
            readings=readings,
        )

    def __repr__(self) -> str:
        return (
            f"<GuaranteeCheck: {self.verdict}; {self.objective} {self.target:g}, "
            f"found {self.found}>"
        )

    @property
    def is_empty(self) -> bool:
        """Whether no row counts: none is accepted, and the others do not matter."""
        return self.as_objective.is_selective and not self.n_accepted

    @property
    def found(self) -> str:
        """What was found, as text."""
        guarantee = self.as_objective
        counts = objectives.Counts(self.n, self.n_accepted, self.n_errors)
        n_rare, n = guarantee.count(counts)
        if n == 0:
            return "no such case"
        value = guarantee.amount(self.value, up=None)
        if guarantee.is_least:  # how often what must be frequent occurs
            return f"{value} ({n - n_rare:,} of {n:,})"
        if guarantee.about.is_error and self.deferred_error is None:
            return f"{value} ({n_rare:,} of {n:,})"
        return f"{value} ({count(n, 'case')})"

    @property
    def interval(self) -> str:
        """What the guarantee bounds, and the interval between its bounds, as text."""
        guarantee = self.as_objective
        low = guarantee.amount(self.low, up=False)
        high = guarantee.amount(self.high, up=True)
        which = f" (cases {self.cases})" if self.cases else ""
        name = name_interval(self.delta, self.max_analyses)
        return f"{guarantee.what}{which}: {low} to {high} ({name})"

    @property
    def life(self) -> str:
        """What was guaranteed, found since, and would have been found, as a paragraph."""
        return self.as_objective.tell_life(self.since, self.verdict, self.found, self.detectable)


def name_interval(delta: float, max_analyses: int | None) -> str:
    """Say which interval stands beside a verdict."""
    level = percent(1.0 - 2.0 * delta, up=False)
    if max_analyses is None:
        return f"time-uniform {level} interval"
    if max_analyses > 1:
        return f"exact {level} interval of {max_analyses} analyses"
    return f"exact {level} interval"


def check_guarantees(
    policy: AbstentionPolicy, sample: Sample, subgroups: Any, request: Request
) -> tuple[GuaranteeCheck, ...]:
    """Compare what a policy guarantees with rows that it has decided."""
    pairs, schedule = find_guarantees(policy, sample, subgroups, request)
    checks = []
    for guarantee, rows in pairs:
        doubt = schedule.doubt(guarantee)
        finding = guarantee.test(rows, anytime=schedule.is_anytime, doubt=doubt)
        checks.append(GuaranteeCheck.of(guarantee, finding, schedule))
    return tuple(checks)


# All guarantees of a policy -----------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class PolicyCheck:
    """The result of :func:`~skselect.check_policy`; print it for an answer in words.

    Parameters
    ----------
    verdict : {"broken", "in_doubt", "not_tested", "no_breach", "confirmed"}
        Over all guarantees: the first of these words that one of them has.
    delta : float
        Chance that "broken" or "confirmed" is wrong, at most; over all guarantees together.
    guarantees : tuple of GuaranteeCheck
        What was tested: one guarantee, or one for each subgroup.
    n, n_accepted, n_errors : int
        Labelled rows, those that the policy accepts, and accepted ones with a loss.
    coverage, risk : float
        Share of accepted rows; their error rate, or mean cost (nan if none is accepted).
    coverage_interval, risk_interval : tuple of float
        Bounds, each at `delta`: they hold at all times if `max_analyses` is None.
    max_analyses : int or None
        How often the growing table may be checked; None: as often as one likes.
    same_rows : bool
        Whether exactly these rows chose the threshold: then they cannot test it, and the
        verdict is "not_tested".
    reused : float or None
        Share of rows that chose the threshold, or of rows that trained the classifier: among these
        or of all such rows on record, whichever is largest; of those that can be recognised. Above
        a fifth the verdict is "broken" or "not_tested". None where nothing can tell.
    caveats : tuple of str
        Why the verdict may not be about the cases of the policy: these rows have other confidences
        than those that tuned it, as training rows do, or probabilities that are calibrated twice.
    assumptions : tuple of str
        What is not proved; first how the rows were drawn, where :class:`Predictions` say it.
    copies : int
        Rows that equal an earlier one, label included, such as those of a file that was read twice.
        Each verdict holds with and without them.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import AbstentionPolicy, Predictions, check_policy
    >>> policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
    >>> fresh = Predictions.from_proba([1] * 300, np.tile([.1, .9], (300, 1)), labels=[0, 1])
    >>> check = check_policy(policy, fresh, target=.02)
    >>> check
    <PolicyCheck: confirmed; 0 errors in 300 accepted of 300 rows>
    >>> print(check)
    CONFIRMED. Target: at most 2 % of the answers are wrong. Found: 0 % (0 of 300). A true
      rate of 5.2 % or more would have been found with probability 95 %.
    ...
    """

    verdict: str
    delta: float
    guarantees: tuple[GuaranteeCheck, ...]
    n: int
    n_accepted: int
    n_errors: int
    coverage: float
    coverage_interval: tuple[float, float]
    risk: float
    risk_interval: tuple[float, float]
    max_analyses: int | None = None
    same_rows: bool = False
    reused: float | None = None
    caveats: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    copies: int = 0

    @property
    def n_more(self) -> int | None:
        """About how many more labelled rows "in_doubt" or "not_tested" asks for; else 0.

        Added to these rows, or by themselves where ``max_analyses=1``. In doubt: rows with exactly
        the rate of errors of these show with probability 0.8 that the guarantee is broken. Not
        tested: with so many rows three times the target is found. They are accepted
        rows, unless the guarantee counts the others too (objectives "generalized_risk" and
        "coverage"). None where no number would do.
        """
        if self.verdict not in ("in_doubt", "not_tested"):
            return 0
        total = 0
        for check in self.guarantees:
            if check.n_more is None:
                return None
            total += check.n_more
        return total

    @property
    def is_of_fit(self) -> bool:
        """Whether too many of the rows were given to `fit` to test anything but a breach."""
        return (self.reused or 0.0) > certificates.MOST_SEEN

    def __str__(self) -> str:
        lines = self._lines()
        return wrap("\n".join(lines))

    def __repr__(self) -> str:
        return (
            f"<PolicyCheck: {self.verdict}; {self.n_errors} {noun_of(self.n_errors, 'error')} in "
            f"{self.n_accepted} accepted of {self.n} {noun_of(self.n, 'row')}>"
        )

    def _repr_html_(self) -> str:
        lines = self._lines()
        numbers = {"of these cases answered": percent(self.coverage)}
        n = len(self.guarantees)
        if n == 1:
            [check] = self.guarantees
            numbers |= check.as_objective.limit("target", check.value)
        else:
            n_kept = sum(check.verdict in ("no_breach", "confirmed") for check in self.guarantees)
            numbers["guarantees without a breach"] = f"{n_kept} of {n}"
        _, tone = VERDICTS[self.verdict]
        if tone == "good" and self.caveats:
            tone = "open"
        return show_card("\n".join(lines), tone, numbers, n_small=len(lines) > 1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; undefined numbers become None."""
        stored = asdict(self)
        stored["n_more"] = self.n_more
        return dict(replace_nan(stored))

    @property
    def summary(self) -> str:
        """The verdict on each guarantee, and what to do next."""
        lines = self._lines(brief=True)
        return "\n".join(lines)

    @property
    def trust(self) -> str:
        """How often a verdict is wrong, the intervals behind it, and what it assumes."""
        if self.max_analyses is None:
            which = ", however often you check"
        elif self.max_analyses == 1:
            which = ""
        else:
            which = f" over all of {self.max_analyses} checks"
        delta = percent(self.delta, up=True)
        doubt = percent(max(objectives.DOUBT, self.delta))
        intervals = "; ".join(self._intervals())
        assumptions = "; ".join(self.assumptions)
        return (
            f"BROKEN or CONFIRMED is wrong with probability at most {delta}{which}. Where every "
            f"guarantee is kept, IN DOUBT appears in at most {doubt} of the checks. Intervals: "
            f"{intervals}. Assumptions (not proved): {assumptions}. {self._tell_reused()}"
        )

    def _intervals(self) -> list[str]:
        """Return the interval of each guarantee, and that of the coverage if none is about it."""
        intervals = []
        has_coverage = False
        for check in self.guarantees:
            if not check.is_empty:
                intervals.append(check.interval)
            if check.as_objective.is_least and not check.cases:
                has_coverage = True
        if not has_coverage:
            low, high = self.coverage_interval
            ends = f"{percent(low, up=False)} to {percent(high, up=True)}"
            name = name_interval(self.delta, self.max_analyses)
            intervals.append(f"answered: {ends} ({name})")
        return intervals

    def _tell_reused(self) -> str:
        """Say what was checked about rows that were given to `fit`."""
        if self.reused is None:
            return (
                "Do not pass rows used in fit: skselect cannot tell whether some of these rows "
                "chose the threshold."
            )
        overlap = "None of these rows is among them."
        if self.reused:
            share = rounded(100 * self.reused, 2)
            overlap = (
                f"About {share} % of these rows have the confidence of one of them; equal "
                "confidences can be chance."
            )
        return (
            "Do not pass rows used in fit. The policy knows some rows of fit by ten digits of "
            f"their confidence. {overlap}"
        )

    def _lines(self, *, brief: bool = False) -> list[str]:
        """Return the whole answer, the verdict first."""
        if self.same_rows or (self.is_of_fit and self.verdict != "broken"):
            return [self._refuse()]
        lines = self._answer()
        advice = self._advice()
        is_one = len(self.guarantees) == 1
        if not is_one:  # what to do stands beside the verdict over all
            lines[0] += f" {advice}"
        if not brief:
            lines.append(self._tell_coverage())
        if is_one:
            lines.append(advice)
        if not brief:
            lines.append(self.trust)
        return lines

    def _tell_coverage(self) -> str:
        """Say how many of the rows the policy answers."""
        if self.n == 1:
            return f"The policy {'answers' if self.n_accepted else 'defers'} this one case."
        share = percent(self.coverage)
        return f"The policy answers {share} of these {self.n:,} cases ({self.n_accepted:,})."

    def _refuse(self) -> str:
        """Say that rows of `fit` cannot test what they have chosen."""
        which = "some of these rows trained the classifier or chose the threshold"
        if self.same_rows:
            which = "these rows chose the threshold"
        return (
            f"NOT TESTED: {which}, so they cannot test it. Use fresh labelled rows, other "
            "than those of fit."
        )

    def _answer(self) -> list[str]:
        """Return the life of each guarantee; of several, how many have which verdict, first."""
        lives = [check.life for check in self.guarantees]
        if len(lives) > 1:
            lives.insert(0, self._count_verdicts())
        if self.copies:
            lives.append(self._tell_copies())
        return [*lives, *self.caveats]

    def _tell_copies(self) -> str:
        """Say how many rows equal an earlier one, and what the verdict is without them."""
        equal = "equals" if self.copies == 1 else "equal"
        start = f"{self.copies:,} of these {self.n:,} rows {equal} an earlier one, label included"
        differing = [check for check in self.guarantees if len(set(check.readings)) > 1]
        if not differing:
            return f"{start}: the verdict is the same with and without them."
        if len(self.guarantees) > 1:
            n = len(self.guarantees)
            return (
                f"{start}: without them {len(differing)} of {n} verdicts differ, and what holds "
                "with and without them stands."
            )
        [(with_them, _), (without, _)] = [VERDICTS[word] for word in differing[0].readings]
        return (
            f"{start}: with them the verdict would be {with_them}, without them {without}. What "
            "holds in both readings stands."
        )

    def _count_verdicts(self) -> str:
        """Say how many guarantees have which verdict, that over all of them first."""
        verdicts = [check.verdict for check in self.guarantees]
        counts = []
        for verdict, (word, _) in VERDICTS.items():
            n = verdicts.count(verdict)
            if n:
                counts.append(f"{n} {word.lower()}")
        word, _ = VERDICTS[self.verdict]
        listed = ", ".join(counts)
        return f"{word}: {len(verdicts)} guarantees ({listed})."

    def _advice(self) -> str:
        """Say what to do next."""
        if self.verdict == "broken":
            return "Defer all cases to a person until a threshold is certified on fresh rows."
        review = f"Next review: {self._when_again()}"
        if self.verdict not in ("in_doubt", "not_tested"):
            return review
        objective = self.guarantees[0].as_objective
        if self.guarantees[0].is_empty:
            return "The policy answers none of these rows, so they test nothing."
        if self.n_more is None:
            return "No number of further rows like these would settle it."
        n_more = int(float(rounded(self.n_more, 2, up=True)))
        does = "is enough to test it" if n_more == 1 else "are enough to test it"
        if self.verdict == "in_doubt":
            chance = f"{100 * POWER:.0f} %"
            does = f"would show a breach with probability {chance} if the rate stays the same"
        noun = "answer" if objective.is_selective else "case"
        more = count(n_more, f"more labelled {noun}")
        return f"{review} About {more} {does}."

    def _when_again(self) -> str:
        """Say with which rows to check again."""
        if self.max_analyses is None:
            return "add new labelled cases to these rows and check all together, whenever you like."
        if self.max_analyses == 1:
            return "check new labelled cases by themselves, because these rows allow one analysis."
        return "add new labelled cases to these for the next planned analysis."


def check_policy(
    policy: AbstentionPolicy,
    y_true: Any,
    y_proba: Any = None,
    *others: Any,
    objective: Any = None,
    target: float | None = None,
    delta: float | None = None,
    max_analyses: int | None = None,
    subgroups: Any = None,
) -> PolicyCheck:
    """Test on fresh labelled rows whether a policy's guarantee still holds.

    Parameters
    ----------
    policy : AbstentionPolicy
    y_true : array-like of shape (n,), or one Predictions or SelectiveState
        True labels. The rows are fresh ones. Labels of accepted rows, drawn at random, are enough
        where the guarantee is about the risk. Or a table that holds all of them: Predictions (with
        the answers and their confidence, where the policy reads these), or, for rows that do not
        fit in memory, a state that counted the policy's confidence and error of each row.
    y_proba : array-like of shape (n, K) or (n,), default=None
        The classifier's raw probabilities, in the columns of `policy.decide`; the policy applies
        its own calibration. None beside a table.
    *others
        Refused.
    objective : Risk, GeneralizedRisk, Coverage, SystemRisk or str, default=None
        What to test, by its target and delta. None: what the policy's certificate guarantees (each
        subgroup's own), else the largest risk.
    target : float, default=None
        The bound to keep. Give it only without an object. It replaces the guaranteed
        bound, in units of the policy's cost matrix where it has one.
    delta : float in (0, 0.5], default=None
        Probability that "broken" or "confirmed" is wrong. Subgroups in these rows share it evenly.
        None: that of the certificate (each subgroup's own), else 0.05.
    max_analyses : int, default=None
        None: the table may be checked again whenever rows were added, as often as you like. A
        number: how often at most it will be checked, named before the first time; each check
        is then an exact test at ``delta / max_analyses``. With 1 that needs about half of the
        rows, and no row of this table may be checked again.
    subgroups : array-like of shape (n,) or DataFrame, default=None
        The subgroup of each row. Needed for a policy with a threshold per subgroup.

    Returns
    -------
    PolicyCheck
        `verdict` is one of five words. Of several guarantees the first of them that one has.

        - "broken": the lower bound is above the target.
        - "in_doubt": not broken, but where the guarantee is kept so many errors, or more, have a
          chance of 0.1 at most (over the number of guarantees; or `delta`, if that is more).
        - "not_tested": nothing is accepted, these are rows of `fit`, or they are so few that three
          times the target would not have been found with probability 0.95.
        - "no_breach": none of these.
        - "confirmed": the upper bound is at most the target.

        For a guaranteed coverage it is the other way round.

        Use rows other than those of `fit`. Exactly the table that chose the threshold is
        recognised; so is one of which more than a fifth of the rows did, or trained the classifier
        of a tuner, where nine of ten of such rows held a confidence of their own: they say "broken"
        or "not_tested". Of more than 1,000 training rows a sample of 1,000 is known, so that a
        small part of them is missed. Rows in a state, those of a classifier that was fitted again
        after the choice, and rows of tied confidences (trees, forests) are not recognised.

    Raises
    ------
    ValueError
        If nothing is guaranteed and there is no target; if the rows carry weights, lack
        probabilities or belong to other classes; or if a state cannot tell what the policy would
        have decided (subgroups, costs, a calibration, other confidences).

    See Also
    --------
    certify : Makes a certificate for a target of your own.

    Notes
    -----
    Both bounds are one-sided and fail with probability at most `delta` each, at any time: two
    tests, each at the full `delta`. If the true risk is at most the target, only "broken" is
    wrong, and it needs the lower bound to fail; if the risk is above the target, only "confirmed"
    is wrong, and it needs the upper bound to fail. So one of them is wrong with probability at most
    `delta`, not twice that. Several guarantees are each tested at their share, so that none is
    wrong with probability at least 1 - `delta`.

    "In doubt" is one exact binomial test on these rows: of a guarantee that is kept it is said in
    at most a tenth of such tables; if you check a growing table again and again, you meet it more
    often. A threshold is tuned as low as the target allows, so that its true risk lies just below:
    few rows confirm that. The `detectable` value of each guarantee is the least that would have
    been "in_doubt" or "broken" with probability 0.95. Costs are counted for this by a coin each: an
    error with the probability cost / largest cost, as :func:`certify` does.

    "Confirmed" and "broken" are each a mixture of likelihood ratios against the target, over the
    risks below it or above it (of binomial counts; costs of several sizes: bets with fixed
    stakes). They depend on the counts alone, not on the order of rows, and nothing is kept
    between two checks. Rows that equal an earlier one in confidence, answer and label (a file that
    was read twice) are read with and without: each word holds in both readings, each bound is the
    wider one, and the first of equal rows is the original for ever. With `max_analyses` errors are
    counted exactly (the bound of Clopper and Pearson). What the bounds cannot see: rows removed
    from the table, or added because of their labels. A check on new rows alone is a new one, and
    may be wrong with probability `delta` too.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import AbstentionPolicy, check_policy
    >>> policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
    >>> y, proba = [1] * 288 + [0] * 12, np.tile([.1, .9], (300, 1))   # 12 of 300 are wrong
    >>> targets = (.01, .025, .05, .09)
    >>> [check_policy(policy, y, proba, target=risk).verdict for risk in targets]
    ['broken', 'in_doubt', 'no_breach', 'confirmed']

    Rows that do not fit in memory:

    >>> from skselect import SelectiveState
    >>> state = SelectiveState(labels=[0, 1]).update(y, proba)
    >>> check_policy(policy, state, target=.09).verdict
    'confirmed'
    """
    check_is_policy(policy)
    request = Request.read(objective, target, delta, max_analyses)
    rows = rows_given(y_true, y_proba, others)
    if len(rows) == 1 and isinstance(y_true, CountedRows):
        check = _check_state(policy, y_true, subgroups, request)
    else:
        tables = (Predictions, CountedRows)
        decided = decide_labelled(policy, rows, subgroups, "check_policy", tables)
        sample = sample_of(*decided, policy.rule.default_loss)
        check = check_decided(policy, sample, subgroups, request)
    if check is None:
        raise ValueError(
            "target is missing: this policy guarantees nothing that labelled rows can check. Say "
            "what to test, such as target=0.02 for at most 2 % wrong."
        )
    return check


def check_decided(
    policy: AbstentionPolicy, sample: Sample, subgroups: Any, request: Request
) -> PolicyCheck | None:
    """Check a policy on rows that it has decided; None where there is nothing to check."""
    curve = sample.sort(sample.outcomes)
    sample = read_copies(sample, policy, subgroups)
    checks = check_guarantees(policy, sample, subgroups, request)
    if not checks:
        return None
    by_reading = _gather_readings(policy, checks, sample)
    check = replace(
        by_reading[0],
        coverage_interval=_widest([each.coverage_interval for each in by_reading]),
        risk_interval=_widest([each.risk_interval for each in by_reading]),
        same_rows=chose_threshold(policy, curve),
        reused=share_reused(policy, curve),
        caveats=_find_unlike(policy, sample, curve),
        assumptions=_assume(sample, by_reading[0].assumptions),
        copies=_count_copies(sample),
    )
    return _without_reused(check)


def _gather_readings(
    policy: AbstentionPolicy, checks: Sequence[GuaranteeCheck], sample: Sample
) -> list[PolicyCheck]:
    """Return what was seen in each reading of the rows, of which the first holds all of them."""
    readings = sample.outcomes.readings
    parts: list[Any] = [...] if readings is None else list(readings.T)
    assert sample.accepted is not None
    by_reading = []
    for rows in parts:
        loss = sample.outcomes.loss[rows]
        accepted = sample.accepted[rows]
        graded = loss[accepted] if policy.rule.has_graded_costs else None
        counts = objectives.Counts.of(loss, accepted)
        by_reading.append(_gather(policy, checks, counts, graded))
    return by_reading


def _widest(intervals: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the interval that holds all of them."""
    lows, highs = zip(*intervals, strict=True)
    return min(lows), max(highs)


def _count_copies(sample: Sample) -> int:
    """Return how many rows one of the readings leaves out."""
    readings = sample.outcomes.readings
    if readings is None:
        return 0
    is_left_out = ~np.all(readings, axis=1)
    return int(np.count_nonzero(is_left_out))


def _find_unlike(
    policy: AbstentionPolicy, sample: Sample, curve: RiskCoverageCurve
) -> tuple[str, ...]:
    """Say why rows may be unlike the cases of the policy."""
    doubts = (find_far(policy, sample.source, curve), draw_of(sample.source).doubt)
    return tuple(
        f"This verdict is about rows like these only: {doubt}." for doubt in doubts if doubt
    )


def _assume(sample: Sample, assumptions: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is assumed: how the rows were drawn first, then about copies of them."""
    about_copies = [caveat.assumes for caveat in sample.caveats]
    if sample.drawn:
        return (sample.drawn, *assumptions, *about_copies)
    return (*assumptions, *about_copies)


def _check_state(
    policy: AbstentionPolicy, state: CountedRows, subgroups: Any, request: Request
) -> PolicyCheck | None:
    """Check a policy on rows that were only counted; None where there is nothing to check."""
    _check_countable(policy, state, subgroups)
    tested = request.choose([(certificate, "") for certificate in find_requested(policy, request)])
    if not tested:
        return None
    curve = state.finalize()
    accepted = curve.accepted_at(np.array([policy.threshold]))
    counts = objectives.Counts(state.n_rows, int(accepted.weight[0]), int(accepted.loss[0]))
    schedule = Schedule.of([1] * len(tested), request.max_analyses)
    checks = []
    for certificate, _ in tested:
        guarantee = request.guarantee(certificate, policy.rule, schedule)
        if isinstance(guarantee, objectives.SystemRisk):
            raise ArgumentError(
                "objective",
                "objective='system_risk': a state does not count the reviewer's errors; pass "
                "Predictions.from_proba(..., reviewer=).",
            )
        checks.append(_check_counts(guarantee, counts, schedule))
    check = _gather(policy, checks, counts, None)
    # A state may hold float32 confidences, by which no row is recognised.
    check = replace(check, same_rows=chose_threshold(policy, curve))
    if len(curve) < curve.n_rows:  # ties may be copies
        check = replace(check, assumptions=(*check.assumptions, certificates.UNSOUGHT.assumes))
    return _without_reused(check)


def _check_counts(
    guarantee: objectives.Guarantee, counts: objectives.Counts, schedule: Schedule
) -> GuaranteeCheck:
    """Compare a guarantee with rows that were only counted."""
    doubt = schedule.doubt(guarantee)
    finding = guarantee.test_counts(counts, anytime=schedule.is_anytime, doubt=doubt)
    return GuaranteeCheck.of(guarantee, finding, schedule)


def _check_countable(policy: AbstentionPolicy, state: CountedRows, subgroups: Any) -> None:
    """Refuse what a state of confidences and errors cannot tell."""
    if policy.parts.by is not None or subgroups is not None:
        raise _cannot_tell("has a threshold per subgroup")
    if policy.rule.default_loss != "zero_one":
        raise _cannot_tell("has costs")
    if policy.calibration is not None:
        raise _cannot_tell("calibrates the probabilities first")
    if policy.confidence != state.confidence:
        raise _cannot_tell(
            f"reads the confidence {policy.confidence!r}, and the state counted "
            f"{state.confidence!r}"
        )
    if any(certificate.cases for certificate in policy.parts.listed):
        raise _cannot_tell("guarantees something about the cases of one class")
    classes = policy.classes.tolist()
    counted = classes if state.labels is None else state.labels.tolist()
    if counted != classes:
        raise _cannot_tell(f"is for the classes {classes}, and the state counted {counted}")


def _cannot_tell(reason: str) -> ValueError:
    """Return the error about a state that does not know what a policy decides."""
    return ValueError(
        f"predictions: the policy {reason}, so a state cannot tell what it decides; pass "
        "Predictions."
    )


def _gather(
    policy: AbstentionPolicy,
    checks: Sequence[GuaranteeCheck],
    counts: objectives.Counts,
    graded: FloatArray | None,
) -> PolicyCheck:
    """Return the verdict over all guarantees, with what was seen on all rows.

    `graded` are the losses of accepted rows, where they may lie between 0 and 1.
    """
    guarantee = checks[0].as_objective
    max_analyses = checks[0].max_analyses
    delta = _sum_deltas(checks)
    find_mean = partial(
        objectives.find_mean, level=delta / (max_analyses or 1), anytime=max_analyses is None
    )
    mean, *ends = find_mean(counts.n_errors, counts.n_accepted, graded)
    coverage, *coverage_ends = find_mean(counts.n_accepted, counts.n, None)
    low, high = [policy.rule.unit * end for end in ends]
    about_reviewer = guarantee.reviewing.assumes
    return PolicyCheck(
        verdict=_first_verdict(checks),
        delta=delta,
        guarantees=tuple(checks),
        n=counts.n,
        n_accepted=counts.n_accepted,
        n_errors=counts.n_errors,
        coverage=coverage,
        coverage_interval=(coverage_ends[0], coverage_ends[1]),
        risk=policy.rule.unit * mean,
        risk_interval=(low, high),
        max_analyses=max_analyses,
        assumptions=(*about_reviewer, *_TRUSTED, _name_rows(max_analyses)),
    )


def _sum_deltas(checks: Sequence[GuaranteeCheck]) -> float:
    """Return the chance that one of the verdicts is wrong; what is about no row cannot be."""
    deltas = [check.delta for check in checks if check.n]
    return math.fsum(deltas) if deltas else checks[0].delta


def _name_rows(max_analyses: int | None) -> str:
    """Say what is assumed about looks at the rows."""
    if max_analyses is None:
        return _GROWING
    return certificates.FIRST_ANALYSIS if max_analyses == 1 else certificates.PLANNED


def _first_verdict(checks: Sequence[GuaranteeCheck]) -> str:
    """Return the first of the five words that one of the guarantees has."""
    verdicts = {check.verdict for check in checks}
    return next(verdict for verdict in VERDICTS if verdict in verdicts)


def _without_reused(check: PolicyCheck) -> PolicyCheck:
    """Return a check that rows of `fit` cannot flatter.

    Those that chose the threshold flatter it: among others they may still show it broken.
    """
    if not (check.same_rows or check.is_of_fit):
        return check
    checks = []
    for guarantee in check.guarantees:
        if guarantee.verdict == "broken" and not check.same_rows:
            checks.append(guarantee)
        else:
            checks.append(replace(guarantee, verdict="not_tested", n_more=None))
    return replace(check, verdict=_first_verdict(checks), guarantees=tuple(checks))
