"""Certify a fixed policy on fresh rows, or check whether what it guarantees is still true."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from scipy import special, stats

from skselect import objectives
from skselect._lib.arrays import BoolArray, FloatArray, IntArray
from skselect._lib.checks import shown
from skselect._lib.checks.options import check_count, check_delta
from skselect._lib.checks.rows import check_labels, encode_known, refuse_weights
from skselect._lib.files import replace_nan
from skselect._lib.notebook import VERDICTS, percent, rounded, show_card, wrap
from skselect.bounds._pointwise import (
    bound_stakes,
    clopper_pearson_upper,
    least_count,
    log_evidence_below,
)
from skselect.curve.curve import CountedRows, RiskCoverageCurve
from skselect.exceptions import ArgumentError
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Caveat, Certificate, Stated
from skselect.policy.policy import (
    AbstentionPolicy,
    External,
    accept_answers,
    apply_policy,
    count_at_quantiles,
    describe_far,
    read_scores,
    warn_if_far,
)
from skselect.policy.seen_rows import share_recorded
from skselect.predictions import predictions as predicting
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.outcomes import Outcomes, compute_confidence, compute_loss, reviewer_loss
from skselect.selection import order
from skselect.selection.sample import Sample

# A notice spells out so many guarantees at most, and counts the others.
_MANY = 10
# A plan gives up above this number of rows, and settles a check with this probability.
_TOO_MANY, _POWER = 10**9, 0.8
# Of the coins by which costs become errors.
_SEED = 0

# A certificate ------------------------------------------------------------------------------------


def certify(
    policy: AbstentionPolicy,
    *rows: Any,
    objective: Any = "risk",
    target: float | None = None,
    delta: float | None = None,
    subgroups: Any = None,
    assume: str | Sequence[str] = (),
) -> Certificate:
    """Certify a fixed policy on fresh rows.

    The policy was fixed before these rows were seen, so one exact binomial bound is
    enough, without a correction for choosing among thresholds. Whether the policy's own guarantee
    is still true, :func:`check_policy` says in one word.

    Parameters
    ----------
    policy : AbstentionPolicy
    *rows : `y_true, y_proba`, or Predictions
        True labels and the classifier's raw probabilities of fresh rows, in the columns of
        `policy.decide`; the policy applies its own calibration to them.
    objective : Risk, GeneralizedRisk, Coverage, SystemRisk or str, default="risk"
        What to certify. `max_analyses` is how often the policy will be checked at most on the
        same growing rows, this check included; `method`, `min_coverage` and `loss` do not count,
        for nothing is chosen here and the policy knows its costs.
    target : float, default=None
        The bound to keep. Give it only with a name: for "risk" the largest selective risk, in units
        of the policy's cost matrix where it has one, named before the rows were seen. None measures
        the bound that the rows give, which is no guarantee: nobody asked for it beforehand.
    delta : float in (0, 0.5], default=None
        Probability that the guarantee fails. Give it only with a name. None: 0.05.
    subgroups : array-like of shape (n,) or DataFrame, default=None
        The subgroup of each row. Needed for a policy with a threshold per subgroup. The certificate
        is about all rows together; pass the rows of one subgroup for a guarantee about it.
    assume : "independent" or (), default=()
        Assumptions you confirm although a test on the rows rejects them. "independent": the order
        of the rows means nothing, although losses or confidences change along it (at level 0.01),
        which otherwise makes the certificate an estimate.

    Returns
    -------
    Certificate
        Its text begins with "CERTIFIED" if the bound keeps the target. Nothing checks that the
        rows are fresh, except that rows of `fit` are recognised as by :func:`check_policy`. Other
        confidences than those of the rows that tuned the policy are named in the second line.
        Where the policy has a certificate of its own, `notice` says if these rows contradict it
        (an exact lower bound at `delta` lies above its target; the text then begins with the
        notice), put it in doubt, or are too few to test it.

    Raises
    ------
    ValueError
        If the rows carry weights, have no probabilities, or belong to other classes.

    See Also
    --------
    check_policy : Says whether the policy's own guarantee is still true.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import AbstentionPolicy, certify
    >>> policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
    >>> y_true, y_proba = [1] * 300, np.tile([.1, .9], (300, 1))
    >>> certify(policy, y_true, y_proba, target=.02).is_certified
    True
    """
    check_is_policy(policy)
    loss = objectives.Loss.of(policy.rule.default_loss, policy.rule)
    fixed = _read_certified(objective, target, delta, loss)
    answered, accepted, confidence = decide_labelled(policy, rows, subgroups, "certify")
    if not fixed.about.is_error or fixed.counts_deferred:
        predicting.refuse_unjudged(
            answered, f"objective={fixed.name!r}, where it reads costs or a reviewer,"
        )
    loss_of = compute_loss(answered, fixed.about.kind)
    missed = reviewer_loss(answered)
    outcomes = Outcomes(loss_of, confidence, None, missed, unjudged=answered.unjudged)
    sample = Sample(
        outcomes=outcomes, source=answered, drawn=answered.drawn, seed=_SEED,
        sort=cache(RiskCoverageCurve.from_outcomes),
    ).with_reviewer(fixed)  # fmt: skip
    curve, sample = sample.sort(sample.outcomes.all_counted), sample.with_copies
    # The threshold is fixed, so all accepted rows are tested together: one entry of a curve.
    together = replace(sample.outcomes.all_counted, confidence=accepted.astype(np.float64))
    counted = together.count(_SEED)
    read = counted.read()
    counts = [
        objectives.Counts.of(rows.loss, rows.confidence > 0, rows.reviewer_loss) for rows in read
    ]
    known, is_reused = _find_reused(policy, curve)
    if far := _find_far(policy, answered, curve):
        known += (Caveat(far, strikes=False),)
    notice = "" if is_reused else own_guarantee(policy, answered, accepted, subgroups, fixed.level)
    vouched = "independent" in certificates.check_vouched(assume)
    if np.any(accepted):
        sample = sample.in_order(fixed, order.TAKE_LATEST, vouched=vouched)
    sample.warn()
    origin = replace(
        sample.pooled,
        caveats=(*known, *sample.caveats),
        assumed=() if is_reused else (certificates.FIXED,),
        fingerprints={"data": certificates.fingerprint(curve)},
        by_chance=counted is not together,
        reviewer=fixed.review(read[0], 1.0),
        refusal=_why_not(fixed, counts),
    )
    at = RiskCoverageCurve.from_outcomes(together).working_point(int(np.any(accepted)))
    made = Certificate.of(fixed, policy.threshold, at, counts, origin)
    return replace(made, method=objectives.FIXED_METHOD, notice=notice)


def _read_certified(
    objective: Any, target: Any, delta: Any, loss: objectives.Loss
) -> objectives.Guarantee:
    """Return what is to be certified; without a target it is nan, and the bound is measured."""
    kind, own, level = objectives.read_guarantee(objective, target, delta)
    if kind is None:
        known = f"one of {list(objectives.GUARANTEES)} or an object such as Risk(0.02)"
        raise ArgumentError("objective", f"objective must be {known}, got None.")
    fixed = copy.copy(objective) if isinstance(objective, objectives.Guarantee) else kind(own)
    if isinstance(fixed, objectives.SystemRisk):  # which counts errors
        loss = objectives.Loss()
    fixed.target = math.nan if own is None else fixed.checked_target(loss)
    fixed.delta = check_delta(fixed.delta if level is None else level)
    fixed.max_analyses = check_count("max_analyses", fixed.max_analyses)
    fixed.min_coverage = 0.0
    fixed.method = "auto"
    return fixed.on(loss)


def _find_reused(
    policy: AbstentionPolicy, curve: RiskCoverageCurve
) -> tuple[tuple[Caveat, ...], bool]:
    """Return the caveat about rows that were given to `fit`, and whether they are too many."""
    reused = share_reused(policy, curve)
    if policy.fingerprints.get("data") == certificates.fingerprint(curve):
        return (certificates.CHOSEN_HERE,), True
    if (reused or 0.0) > certificates.MOST_SEEN:
        return (certificates.OF_FIT,), True
    if reused is None and "data" in policy.fingerprints:
        return (certificates.MAY_HAVE_CHOSEN,), False
    return (), False


def _find_far(
    policy: AbstentionPolicy, answered: predicting.Predictions, curve: RiskCoverageCurve
) -> str:
    """Say where many rows have other confidences than those that tuned the policy, "" if not."""
    at = np.array(list(policy.confidence_quantiles.values()))
    kept = curve.accepted_at(np.append(at, np.nextafter(at, np.inf))).weight
    name = "confidence" if answered.y_proba is None else "y_proba"
    return describe_far(policy, curve.n_rows - kept.reshape(2, -1).T, curve.n_rows, name)


def _why_not(fixed: objectives.Guarantee, counts: Sequence[objectives.Counts]) -> str:
    """Say why rows guarantee nothing, "" where they do."""
    most = fixed.weakest(counts)
    bound = fixed.bound(most)
    found = f"the bound of these rows is {fixed.amount(bound)}, which guarantees nothing"
    if counts[0].n_accepted == 0:
        return "the policy accepts none of these rows"
    if math.isnan(fixed.target):
        return found if fixed.about.is_error and not fixed.is_least and bound > 0.5 else ""
    if most > fixed.largest:
        return f"the target {fixed.amount(fixed.target)} is not met; {found}"
    return ""


# One answer in words ------------------------------------------------------------------------------


_TRUSTED = (certificates.INDEPENDENT, certificates.FRESH, certificates.FIXED)
_GROWING = "rows are only added between two checks, whatever their outcomes"


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
        known = [one.n_more for one in self.guarantees if one.n_more is not None]
        return sum(known) if len(known) == len(self.guarantees) else None

    def __str__(self) -> str:
        return wrap("\n".join(self._lines()))

    def __repr__(self) -> str:
        return (
            f"<PolicyCheck: {self.verdict}; {self.n_errors} errors in {self.n_accepted} accepted "
            f"of {self.n} rows>"
        )

    def _repr_html_(self) -> str:
        lines, numbers = self._lines(), {"of these cases answered": percent(self.coverage)}
        if len(self.guarantees) == 1:
            [one] = self.guarantees
            numbers |= one.as_objective.limit("target", one.value)
        else:
            kept = sum(one.verdict in ("no_breach", "confirmed") for one in self.guarantees)
            numbers["guarantees without a breach"] = f"{kept} of {len(self.guarantees)}"
        tone = VERDICTS[self.verdict][1]
        tone = "open" if tone == "good" and self.caveats else tone
        return show_card("\n".join(lines), tone, numbers, n_small=len(lines) > 1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; undefined numbers become None."""
        return dict(replace_nan(asdict(self) | {"n_more": self.n_more}))

    @property
    def summary(self) -> str:
        """The verdict on each guarantee, and what to do next."""
        return "\n".join(self._lines(brief=True))

    @property
    def trust(self) -> str:
        """How often a verdict is wrong, the intervals behind it, and what it assumes."""
        several = f" over all of {self.max_analyses} checks"
        which = {None: ", however often you check", 1: ""}.get(self.max_analyses, several)
        low, high = self.coverage_interval
        ends = f"{percent(low, up=False)} to {percent(high, up=True)}"
        answered = f"answered: {ends} ({name_interval(self.delta, self.max_analyses)})"
        each = [one.interval for one in self.guarantees if not one.is_empty]
        has_it = any(one.as_objective.is_least and not one.cases for one in self.guarantees)
        each += [] if has_it else [answered]
        return (
            f"BROKEN or CONFIRMED is wrong with probability at most {percent(self.delta, up=True)}"
            f"{which}. Where every guarantee is kept, IN DOUBT appears in at most "
            f"{percent(max(objectives.DOUBT, self.delta))} of the checks. Intervals: "
            f"{'; '.join(each)}. Assumptions (not proved): "
            f"{'; '.join(self.assumptions)}. {self._tell_reused()}"
        )

    def _tell_reused(self) -> str:
        """Say what was checked about rows that were given to `fit`."""
        if self.reused is None:
            return (
                "Do not pass rows used in fit: skselect cannot tell whether some of these rows "
                "chose the threshold."
            )
        found = "None of these rows is among them."
        if self.reused:
            share = rounded(100 * self.reused, 2)
            found = (
                f"About {share} % of these rows have the confidence of one of them; equal "
                "confidences can be chance."
            )
        return (
            "Do not pass rows used in fit. The policy knows some rows of fit by ten digits of "
            f"their confidence. {found}"
        )

    def _lines(self, *, brief: bool = False) -> list[str]:
        """Return the whole answer, the verdict first."""
        is_reused = self.verdict != "broken" and (self.reused or 0.0) > certificates.MOST_SEEN
        if self.same_rows or is_reused:
            which = "these rows chose the threshold"
            if not self.same_rows:
                which = "some of these rows trained the classifier or chose the threshold"
            return [
                f"NOT TESTED: {which}, so they cannot test it. Use fresh labelled rows, other "
                "than those of fit."
            ]
        answered = (
            f"The policy answers {percent(self.coverage)} of these {self.n:,} cases "
            f"({self.n_accepted:,})."
        )
        lines = [*self._answer(), "" if brief else answered]
        if len(self.guarantees) > 1:  # what to do stands beside the verdict over all
            lines[0] += f" {self._advice()}"
        else:
            lines.append(self._advice())
        return [line for line in [*lines, "" if brief else self.trust] if line]

    def _answer(self) -> list[str]:
        """Return the life of each guarantee; of several, how many have which verdict, first."""
        said = [one.life for one in self.guarantees]
        if len(said) > 1:
            found, names = [one.verdict for one in self.guarantees], VERDICTS.items()
            counts = [f"{found.count(x)} {word.lower()}" for x, (word, _) in names if x in found]
            start = f"{VERDICTS[self.verdict][0]}: {len(said)} guarantees"
            said.insert(0, f"{start} ({', '.join(counts)}).")
        return [*said, *self.caveats]

    def _advice(self) -> str:
        """Say what to do next."""
        if self.verdict == "broken":
            return "Defer all cases to a person until a threshold is certified on fresh rows."
        again = {
            None: "add new labelled cases to these rows and check all together, whenever you like.",
            1: "check new labelled cases by themselves, because these rows allow one analysis.",
        }.get(self.max_analyses, "add new labelled cases to these for the next planned analysis.")
        review = f"Next review: {again}"
        if self.verdict not in ("in_doubt", "not_tested"):
            return review
        if self.guarantees[0].is_empty:
            return "The policy answers none of these rows, so they test nothing."
        if self.n_more is None:
            return "No number of further rows like these would settle it."
        noun = "answers" if self.guarantees[0].as_objective.is_selective else "cases"
        shows = (
            f"would show a breach with probability {100 * _POWER:.0f} % if the rate stays the same"
        )
        does = shows if self.verdict == "in_doubt" else "are enough to test it"
        more = f"{float(rounded(self.n_more, 2, up=True)):,.0f} more labelled {noun}"
        return f"{review} About {more} {does}."


def check_policy(
    policy: AbstentionPolicy,
    *rows: Any,
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
    *rows : `y_true, y_proba`, or one Predictions or SelectiveState
        True labels and the classifier's raw probabilities of fresh rows, in the columns of
        `policy.decide` (or Predictions with its answers and their confidence, where the policy
        reads these); the policy applies its own calibration. Labels
        of accepted rows, drawn at random, are enough where the guarantee is about the risk. For
        rows that do not fit in memory: a state that counted the policy's confidence and error of
        each row.
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
    between two checks. With `max_analyses` errors are counted exactly (the bound of Clopper and
    Pearson). What the bounds cannot see: rows removed from the table, or added because of their
    labels. A check on new rows alone is a new one, and may be wrong with probability `delta` too.

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
    rate = getattr(objective, "deferred_error", None)
    asked = Asked(*objectives.read_guarantee(objective, target, delta), max_analyses, rate)
    if asked.delta is not None:
        check_delta(asked.delta)
    if max_analyses is not None:
        check_count("max_analyses", max_analyses)
    if len(rows) == 1 and isinstance(rows[0], CountedRows):
        check = _check_state(policy, rows[0], subgroups, asked)
    else:
        answered, accepted, confidence = decide_labelled(
            policy, rows, subgroups, "check_policy", (predicting.Predictions, CountedRows)
        )
        outcomes = Outcomes(compute_loss(answered, policy.rule.default_loss), confidence)
        curve = RiskCoverageCurve.from_outcomes(outcomes)
        check = check_decided(policy, answered, accepted, subgroups, curve, asked)
    if check is None:
        raise ValueError(
            "target is missing: this policy guarantees nothing that labelled rows can check. Say "
            "what to test, such as target=0.02 for at most 2 % wrong."
        )
    return check


def check_decided(
    policy: AbstentionPolicy,
    answered: predicting.Predictions,
    accepted: BoolArray,
    subgroups: Any,
    curve: RiskCoverageCurve,
    asked: Asked,
) -> PolicyCheck | None:
    """Check a policy on rows that it has decided; None where there is nothing to check.

    `curve` is that of its confidence.
    """
    checks = check_guarantees(policy, answered, accepted, subgroups, asked)
    loss = compute_loss(answered, policy.rule.default_loss)
    graded = loss[accepted] if policy.rule.has_graded_costs else None
    seen = objectives.Counts.of(loss, accepted)
    far = _find_far(policy, answered, curve)
    unlike = [one for one in (far, answered.doubt) if one]
    caveats = tuple(f"This verdict is about rows like these only: {one}." for one in unlike)
    reused = share_reused(policy, curve)
    return _gather(policy, curve, checks, seen, graded, reused, caveats, answered.drawn)


def _check_state(
    policy: AbstentionPolicy, state: CountedRows, subgroups: Any, asked: Asked
) -> PolicyCheck | None:
    """Check a policy on rows that were only counted; None where there is nothing to check."""
    _check_countable(policy, state, subgroups)
    listed: list[Listed] = [(one, "", np.arange(1)) for one in _asked_for(policy, asked)]
    found, curve = find_guarantees(policy, listed, asked), state.finalize()
    if any(isinstance(test.guarantee, objectives.SystemRisk) for test in found):
        raise ArgumentError(
            "objective",
            "objective='system_risk': a state does not count the reviewer's errors; pass "
            "Predictions.from_proba(..., reviewer=).",
        )
    at = curve.accepted_at(np.array([policy.threshold]))
    seen = objectives.Counts(state.n_rows, int(at.weight[0]), int(at.loss[0]))
    checks = tuple(check_seen(test, seen) for test in found)
    # A state may hold float32 confidences, by which no row is recognised.
    return _gather(policy, curve, checks, seen)


def _check_countable(policy: AbstentionPolicy, state: CountedRows, subgroups: Any) -> None:
    """Refuse what a state of confidences and errors cannot tell."""
    classes, one_class = policy.classes.tolist(), any(x.cases for x in policy.parts.listed)
    counted = classes if state.labels is None else state.labels.tolist()
    reasons = {
        "has a threshold per subgroup": policy.parts.by is not None or subgroups is not None,
        "has costs": policy.rule.default_loss != "zero_one",
        "calibrates the probabilities first": policy.calibration is not None,
        f"reads the confidence {policy.confidence!r}, and the state counted {state.confidence!r}": (
            policy.confidence != state.confidence
        ),
        "guarantees something about the cases of one class": one_class,
        f"is for the classes {classes}, and the state counted {counted}": counted != classes,
    }
    for reason, is_so in reasons.items():
        if is_so:
            raise ValueError(
                f"predictions: the policy {reason}, so a state cannot tell what it decides; pass "
                "Predictions."
            )


def _gather(
    policy: AbstentionPolicy,
    curve: RiskCoverageCurve,
    checks: tuple[GuaranteeCheck, ...],
    seen: objectives.Counts,
    graded: FloatArray | None = None,
    reused: float | None = None,
    caveats: tuple[str, ...] = (),
    drawn: str = "",
) -> PolicyCheck | None:
    """Return the verdict over all guarantees, with what was seen on all rows.

    `graded` are the losses of accepted rows, where they may lie between 0 and 1.
    """
    if not checks:
        return None
    level = math.fsum(check.delta for check in checks if check.n) or checks[0].delta
    unit, max_analyses = policy.rule.unit, checks[0].max_analyses
    once, anytime = level / (max_analyses or 1), max_analyses is None
    risk, *ends = objectives.find_mean(
        seen.n_errors, seen.n_accepted, graded, once, anytime=anytime
    )
    coverage, *share = objectives.find_mean(seen.n_accepted, seen.n, None, once, anytime=anytime)
    rows = {None: _GROWING, 1: certificates.FIRST_ANALYSIS}.get(max_analyses, certificates.PLANNED)
    named = (drawn, *checks[0].as_objective.reviewing.assumes, *_TRUSTED, rows)
    same_rows = chose_threshold(policy, curve)
    if same_rows or (reused or 0.0) > certificates.MOST_SEEN:
        # Rows that chose the threshold flatter it: among others they may still show it broken.
        checks = tuple(
            one
            if one.verdict == "broken" and not same_rows
            else replace(one, verdict="not_tested", n_more=None)
            for one in checks
        )
    return PolicyCheck(
        min((check.verdict for check in checks), key=list(VERDICTS).index),
        level,
        checks,
        seen.n,
        seen.n_accepted,
        seen.n_errors,
        coverage=coverage,
        coverage_interval=(share[0], share[1]),
        risk=unit * risk,
        risk_interval=(unit * ends[0], unit * ends[1]),
        max_analyses=max_analyses,
        same_rows=same_rows,
        reused=reused,
        caveats=caveats,
        assumptions=tuple(one for one in named if one),
    )


# One guarantee ------------------------------------------------------------------------------------


class Tested(NamedTuple):
    """What a policy is to keep, and which of the labelled rows it is about.

    The `delta` of the guarantee is the chance that is allowed for "broken" or "confirmed" to be
    wrong, `max_analyses` as in :func:`~skselect.check_policy`, `power` the chance that a plan for
    more rows shows a breach, and `doubt` the chance that what is kept is in doubt. `since` says
    when it was certified.
    """

    guarantee: objectives.Guarantee
    rows: IntArray
    max_analyses: int | None
    power: float
    doubt: float
    since: str


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

    @property
    def is_empty(self) -> bool:
        """Whether no row counts: none is accepted, and the others do not matter."""
        return self.as_objective.is_selective and not self.n_accepted

    @property
    def found(self) -> str:
        """What was found, as text."""
        # How often what must be rare, or what must be frequent, occurs.
        stated = self.as_objective
        count, n = stated.count(objectives.Counts(self.n, self.n_accepted, self.n_errors))
        if n == 0:
            return "no such case"
        count = n - count if stated.is_least else count
        shares = (stated.about.is_error and self.deferred_error is None) or stated.is_least
        counted = f"{count:,} of {n:,}" if shares else f"{n:,} cases"
        return f"{stated.amount(self.value, up=None)} ({counted})"

    @property
    def interval(self) -> str:
        """What the guarantee bounds, and the interval between its bounds, as text."""
        stated, name = self.as_objective, name_interval(self.delta, self.max_analyses)
        ends = f"{stated.amount(self.low, up=False)} to {stated.amount(self.high, up=True)}"
        which = f" (cases {self.cases})" if self.cases else ""
        return f"{stated.what}{which}: {ends} ({name})"

    @property
    def life(self) -> str:
        """What was guaranteed, found since, and would have been found, as a paragraph."""
        return self.as_objective.tell_life(self.since, self.verdict, self.found, self.detectable)


def check_guarantees(
    policy: AbstentionPolicy,
    answered: predicting.Predictions,
    accepted: BoolArray,
    subgroups: Any,
    asked: Asked,
) -> tuple[GuaranteeCheck, ...]:
    """Compare what a policy guarantees with rows that it has decided."""
    checks, has_graded = [], policy.rule.has_graded_costs
    loss_of, of_reviewer = cache(partial(compute_loss, answered)), reviewer_loss(answered)
    listed = _list_certificates(policy, answered, subgroups, asked)
    for test in find_guarantees(policy, listed, asked):
        stated, rows, kept = test.guarantee, test.rows, accepted[test.rows]
        loss, missed = loss_of(stated.about.kind)[rows], None
        if isinstance(stated, objectives.SystemRisk):
            if of_reviewer is not None:  # answers say more than a rate
                stated.deferred_error, missed = None, of_reviewer[rows]
            stated.check_reviewed(answered=missed is not None)
        seen = objectives.Counts.of(loss, kept, missed)
        averaged = (has_graded and stated.about.is_cost) or stated.reviewing.rate is not None
        graded = stated.values(loss, kept) if averaged else None
        checks.append(check_seen(test, seen, graded))
    return tuple(checks)


def check_seen(
    test: Tested, seen: objectives.Counts, graded: FloatArray | None = None
) -> GuaranteeCheck:
    """Compare a guarantee with the bounds that counts of rows give, or their `graded` losses."""
    stated, loss, unit = test.guarantee, test.guarantee.about, test.guarantee.unit
    found = stated.test(seen, graded, anytime=test.max_analyses is None, doubt=test.doubt)
    n_more: int | None = 0
    if found.verdict == "not_tested":
        n_kept = 0 if test.max_analyses == 1 else stated.count(seen)[1]
        n_more = stated.rows_to_test(test.doubt, n_kept)
    elif found.verdict == "in_doubt":
        settles = _by_counts(test, seen) if graded is None else _by_bets(test, graded)
        n_more = least_count(settles) if settles(_TOO_MANY) else None
    return GuaranteeCheck(
        found.verdict, stated.word, stated.target, stated.delta, loss.kind, loss.unit, stated.cases,
        value=unit * found.value, low=unit * found.low, high=unit * found.high, n=seen.n,
        n_accepted=seen.n_accepted, n_errors=seen.n_errors + seen.n_missed, p_value=found.p_value,
        detectable=unit * found.detectable, n_more=n_more, since=test.since,
        max_analyses=test.max_analyses, deferred_error=stated.reviewing.rate,
    )  # fmt: skip


def chose_threshold(policy: AbstentionPolicy, curve: RiskCoverageCurve) -> bool:
    """Tell whether exactly these rows chose the policy's threshold, or made its certificate."""
    own = policy.certificate.fingerprints if policy.certificate else {}
    return certificates.fingerprint(curve) in (policy.fingerprints.get("data"), own.get("data"))


def share_reused(policy: AbstentionPolicy, curve: RiskCoverageCurve) -> float | None:
    """Return the share of rows of `fit`, None where nothing can tell.

    It is that of the rows that chose the threshold or that of the rows that trained the classifier,
    whichever is larger. They are recognised by their confidence, where no other row of their table
    holds it.
    """
    records = (policy.fingerprints.get(name, "") for name in certificates.ROW_RECORDS)
    shares = (share_recorded(one, curve.thresholds, curve.block_rows) for one in records)
    return max((share for share in shares if share is not None), default=None)


def name_interval(delta: float, max_analyses: int | None) -> str:
    """Say which interval stands beside a verdict."""
    level = percent(1.0 - 2.0 * delta, up=False)
    if max_analyses is None:
        return f"time-uniform {level} interval"
    return f"exact {level} interval" + (f" of {max_analyses} analyses" if max_analyses > 1 else "")


def _by_bets(test: Tested, values: FloatArray) -> Callable[[int], bool]:
    """Tell how many more values like these show that their mean is too large."""
    level, largest = test.guarantee.level, 1.0 - test.guarantee.largest
    n_kept = 0 if test.max_analyses == 1 else len(values)
    values = 1.0 - values  # the complements are too small
    found, counts = np.unique(values, return_counts=True)
    share, payoff = counts / np.sum(counts), (found - largest) / (1.0 - largest)
    surplus = stats.norm.ppf(test.power)

    def settles(more: int) -> bool:
        n = n_kept + more
        stakes, log_prior = bound_stakes(None if test.max_analyses is None else n, level)
        # The log of the wealth is a sum over rows, so that it is about normally distributed.
        gain = np.log1p(np.multiply.outer(-stakes, payoff))
        mean = np.einsum("ji,i->j", gain, share)  # not by BLAS, as in `dot`
        spread = np.sqrt(np.einsum("ji,i->j", (gain - mean[:, None]) ** 2, share) * more)
        wealth = special.logsumexp(log_prior + n * mean - surplus * spread)
        return bool(wealth >= -math.log(level))

    return settles


def _by_counts(test: Tested, seen: objectives.Counts) -> Callable[[int], bool]:
    """Tell how many more rows like these show that a share is too large: the others too few."""
    level, largest = test.guarantee.level, 1.0 - test.guarantee.largest
    errors, n = test.guarantee.count(seen)
    right, n_kept = (0, 0) if test.max_analyses == 1 else (n - errors, n)

    def settles(more: int) -> bool:
        most = right + int(stats.binom.ppf(test.power, more, (n - errors) / n))
        if test.max_analyses is None:
            evidence = log_evidence_below(most, n_kept + more, largest)
            return bool(evidence >= -math.log(level))
        return bool(clopper_pearson_upper(most, n_kept + more, level) <= largest)

    return settles


# Which guarantees, about which rows ---------------------------------------------------------------


def check_is_policy(policy: Any) -> None:
    """Refuse anything but a policy, such as the tuner that made it."""
    if not isinstance(policy, AbstentionPolicy):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"policy must be an AbstentionPolicy, such as tuner.policy_, got {shown(policy)}."
        )


def predictions_for(policy: AbstentionPolicy, y_true: Any, y_proba: Any) -> predicting.Predictions:
    """Read labels and raw probabilities as the policy does: its classes, one column for two."""
    truth = check_labels(y_true)
    encode_known(truth, policy.classes, remedy="The policy cannot answer with others.")
    scores, _ = read_scores(policy, y_proba)
    found = predicting.Predictions.from_proba(truth, scores, labels=policy.classes)
    return found if policy.cascade is None else replace(found, cascade=policy.cascade)


def decide_labelled(
    policy: AbstentionPolicy,
    rows: tuple[Any, ...],
    subgroups: Any,
    purpose: str,
    tables: tuple[type, ...] = (predicting.Predictions,),
) -> tuple[predicting.Predictions, BoolArray, FloatArray]:
    """Return predictions with the policy's answers, which rows it accepts, and its confidence.

    `tables` are what the caller takes beside `(y_true, y_proba)`; here they are Predictions.
    """
    check_is_policy(policy)
    if policy.response != "predict_proba":
        raise ValueError(
            "policy: it reads decision values, which Predictions cannot hold, so it cannot be "
            "certified later. Certify it when it is tuned, or use a classifier with predict_proba."
        )
    predictions = predicting.read_rows(rows, tables, partial(predictions_for, policy))
    by_column = isinstance(policy.confidence, External) and policy.calibration is None
    by_column = by_column or isinstance(policy.confidence, LearnedScore)
    if predictions.y_proba is None and not by_column:
        raise ValueError(
            "predictions must hold the raw probabilities that the policy reads: build them with "
            "Predictions.from_proba(y_true, y_proba)."
        )
    refuse_weights(predictions.sample_weight, purpose)
    if purpose != "certify":
        predicting.refuse_unjudged(predictions, purpose)
    check_answers_fit(policy, predictions)
    predicting.warn_of_columns(predictions)
    if predictions.y_proba is None:  # answers with a confidence: only the threshold is applied
        confidence = compute_confidence(predictions, None)
        accepted = accept_answers(policy, confidence, predictions.answers, subgroups)
        return predictions, accepted, confidence
    decisions = apply_policy(policy, predictions.y_proba, predictions.y_pred, subgroups)
    warn_if_far(policy, count_at_quantiles(policy, decisions.confidence), len(decisions.accepted))
    answered = replace(predictions, y_pred=decisions.y_pred, rule=policy.rule)
    return answered, decisions.accepted, decisions.confidence


def check_answers_fit(
    policy: AbstentionPolicy, predictions: predicting.Predictions, which: str = "predictions"
) -> None:
    """Refuse predictions of other classes, or without the answers that a policy keeps."""
    if policy.classes.tolist() != predictions.classes.tolist():
        raise ValueError(
            f"policy: it is for the classes {policy.classes.tolist()}, but the {which} are for "
            f"{predictions.classes.tolist()}; pass labels= in the policy's order."
        )
    if policy.rule.decision == "estimator" and predictions.rule.decision != "estimator":
        raise ValueError(
            f"{which}: the policy keeps the classifier's own answers; build them with "
            "Predictions.from_proba(y_true, y_proba, decision='estimator', y_pred=...), and pass "
            "them alone."
        )
    # Decisions that a cascade of probabilities has written come with their final confidence.
    decided = predictions.y_proba is None and not isinstance(policy.confidence, External)
    cascade = None if decided else policy.cascade
    joined = predictions.cascade
    rule = None if joined is None else (joined.names, joined.cuts)
    if cascade is not None and rule != (cascade.names, cascade.cuts):
        raise ValueError(
            f"{which}: this policy asks the stages {list(cascade.names)} in turn, and these "
            "were not joined by its rule; pass the labels and a dict of the tables of the stages, "
            "or policy.cascade.join({stage: Predictions, ...})."
        )


class Asked(NamedTuple):
    """What a policy is tested for, as :func:`~skselect.check_policy` takes it.

    A `target` replaces the guaranteed one, and bounds the risk where nothing is guaranteed; a
    `kind` says what else it bounds. A `delta` is shared evenly. `deferred_error` is that of
    :class:`SystemRisk`.
    """

    kind: type[objectives.Guarantee] | None = None
    target: float | None = None
    delta: float | None = None
    max_analyses: int | None = None
    deferred_error: float | None = None


#: A certificate or None, what its cases are called, and its rows.
Listed = tuple[Certificate | None, Any, IntArray]


def find_guarantees(policy: AbstentionPolicy, listed: list[Listed], asked: Asked) -> list[Tested]:
    """Return what certificates guarantee that labelled rows can check.

    Only guarantees with high probability count, about a loss that the policy knows, and about all
    rows, those of a subgroup, or those of one answer or one true class.
    """
    stated, target, delta, max_analyses, rate = asked
    made = [one for one in listed if target is not None or is_guarantee(one[0])]
    if target is None:  # those that cannot fail need no test beside others
        made = [one for one in made if one[0] is not None and one[0].can_fail] or made
    occurring = sum(len(rows) > 0 for _, _, rows in made)
    # A level that holds at all times is fixed before subgroups appear in a growing table.
    n_tests = max(occurring if max_analyses is not None else len(made), 1)
    share = (0.05 if delta is None else delta) / n_tests
    power = 1.0 - (1.0 - _POWER) / max(occurring, 1)
    found = []
    for certificate, cases, rows in made:
        kind, loss, level, since = stated or objectives.Risk, policy.rule.default_loss, share, ""
        own = target
        if stated is None and is_guarantee(certificate):
            kind, loss = objectives.GUARANTEES[certificate.objective], certificate.loss
            level = certificate.delta if delta is None else share
            own = certificate.target if target is None else target
            since = certificate.since if target is None else ""
            rate = certificate.deferred_error
            if certificate.overall_error is not None:  # what is left is about the machine alone
                kind, own = objectives.GeneralizedRisk, own - certificate.overall_error
        loss = "zero_one" if kind is objectives.SystemRisk else loss
        what = objectives.Loss.of(loss, policy.rule)
        tested = kind(own, delta=level, max_analyses=max_analyses or 1).on(what, cases)
        if isinstance(tested, objectives.SystemRisk):
            tested.deferred_error = rate
        tested.target = tested.checked_target(what)
        doubt = max(objectives.DOUBT / n_tests, tested.level)  # what is broken is in doubt, too
        found.append(Tested(tested, rows, max_analyses, power, doubt, since))
    return found


def _asked_for(policy: AbstentionPolicy, asked: Asked) -> Sequence[Certificate | None]:
    """Return the certificates that are tested without subgroups: the first one for a target."""
    made = policy.parts.listed
    if len(made) > 1 and asked.target is not None and asked.kind is None:
        raise ArgumentError(
            "target",
            "target: this policy has several guarantees; name the one to test with its target, "
            "such as objective=Risk(0.03).",
        )
    return (made if asked.target is None else made[:1]) or [None]


def _list_certificates(
    policy: AbstentionPolicy, answered: predicting.Predictions, subgroups: Any, asked: Asked
) -> list[Listed]:
    """Return certificates that a policy may have, each with the name of its cases and its rows."""
    n, groups = len(answered.y_pred), policy.parts
    if groups.by is None:
        named = [(one, "" if one is None else one.cases) for one in _asked_for(policy, asked)]
        found = [(one, cases, _find_rows(answered, cases)) for one, cases in named]
        known = [(one, cases, rows) for one, cases, rows in found if rows is not None]
        return [*known] or [(None, "", np.arange(n))]
    members = groups.members(answered.answers, subgroups)
    nowhere = np.empty(0, dtype=np.int64)
    return [
        (groups.certificates.get(group), groups.name(group), members.get(group, nowhere))
        for group in dict.fromkeys([*members, *groups.thresholds])
        if groups.thresholds.get(group, math.inf) < math.inf
    ]


def is_guarantee(certificate: Certificate | None) -> TypeGuard[Certificate]:
    """Tell whether a certificate guarantees something that later labels can check."""
    return (
        certificate is not None
        and certificate.n_accepted > 0
        and certificate.guarantee == "high_probability"
        and not certificate.is_of_users_loss
    )


def _find_rows(predictions: predicting.Predictions, cases: str) -> IntArray | None:
    """Return the rows that a certificate names, None where its name means no class."""
    if not cases:
        return np.arange(len(predictions))
    of_classes = (
        predicting.rows_of_class(predictions, side, label)
        for side in ("predicted", "true")
        for label in predictions.classes.tolist()
    )
    return next((np.flatnonzero(rows) for rows, name in of_classes if name == cases), None)


def own_guarantee(
    policy: AbstentionPolicy,
    answered: predicting.Predictions,
    accepted: BoolArray,
    subgroups: Any,
    delta: float | None = None,
) -> str:
    """Say which guarantees of a policy these rows contradict, put in doubt or cannot test.

    "" where they find no breach of any.

    Parameters
    ----------
    policy : AbstentionPolicy
    answered : Predictions
        The policy's own answers.
    accepted : ndarray of shape (n,)
    subgroups : array-like of shape (n,), DataFrame or None
    delta : float, default=None
        As in :class:`Asked`.
    """
    own = policy.certificate
    if answered.unjudged is not None and np.any(answered.unjudged):
        return "The policy's own guarantee was not checked, because not all rows are judged."
    if own is not None and own.reads_reviewer and answered.reviewer is None:
        return (
            "The policy's own guarantee was not checked, because that needs the reviewer's answers."
        )
    asked = Asked(delta=delta, max_analyses=1)
    checks = check_guarantees(policy, answered, accepted, subgroups, asked)
    checks = tuple(check for check in checks if check.n)
    starts = {
        "broken": f"{certificates.NOT_MET} by these rows.",
        "in_doubt": "These rows put the policy's own guarantee in doubt.",
        "not_tested": "These rows are too few to test the policy's own guarantee.",
    }
    texts = [
        f"{start} It says: {check.statement}. Found: {check.found}."
        for verdict, start in starts.items()
        for check in checks
        if check.verdict == verdict and not check.is_empty
    ]
    if is_guarantee(own) and own.cases and not checks:
        texts.append(
            f"The policy's own guarantee was not checked, because it covers only cases {own.cases}."
        )
    more = [f"The same is true of {len(texts) - _MANY} more subgroups."] if texts[_MANY:] else []
    return "\n".join(texts[:_MANY] + more)
