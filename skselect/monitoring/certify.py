"""Certify a fixed policy on fresh rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skselect import objectives
from skselect._lib.checks.options import check_count, check_delta, check_seed
from skselect._lib.notebook import count
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import ArgumentError
from skselect.monitoring.check import GuaranteeCheck, check_guarantees
from skselect.monitoring.decided import (
    check_is_policy,
    decide_labelled,
    find_far,
    read_copies,
    sample_of,
    share_reused,
)
from skselect.monitoring.guarantees import Request, is_guarantee
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Caveat, Certificate
from skselect.policy.policy import AbstentionPolicy
from skselect.predictions import predictions as predicting
from skselect.predictions.decisions import DecisionRule
from skselect.predictions.outcomes import Outcomes
from skselect.selection import order
from skselect.selection.sample import Sample

# A notice spells out so many guarantees at most, and counts the others.
_MANY = 10
# How the notice begins where rows contradict a guarantee of the policy, or do not confirm it.
_STARTS = {
    "broken": f"{certificates.NOT_MET} by these rows.",
    "in_doubt": "These rows put the policy's own guarantee in doubt.",
    "not_tested": "These rows are too few to test the policy's own guarantee.",
}


def certify(
    policy: AbstentionPolicy,
    y_true: Any,
    y_proba: Any = None,
    *others: Any,
    objective: Any = "risk",
    target: float | None = None,
    delta: float | None = None,
    subgroups: Any = None,
    assume: str | Sequence[str] = (),
    random_state: Any = 0,
) -> Certificate:
    """Certify a fixed policy on fresh rows.

    The policy was fixed before these rows were seen, so one exact binomial bound is
    enough, without a correction for choosing among thresholds. Whether the policy's own guarantee
    is still true, :func:`check_policy` says in one word.

    Parameters
    ----------
    policy : AbstentionPolicy
    y_true : array-like of shape (n,), or Predictions
        True labels. The rows are fresh ones. Or a table that holds all of them.
    y_proba : array-like of shape (n, K) or (n,), default=None
        The classifier's raw probabilities, in the columns of `policy.decide`; the policy applies
        its own calibration to them. None beside a table.
    *others
        Refused.
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
    random_state : int, Generator, RandomState or None, default=0
        The seed of the coins for costs, fixed before these rows are seen; the certificate states
        it. None draws one, so that users of one table do not share their coins.

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
    guarantee = _read_certified(objective, target, delta, policy.rule)
    rows = predicting.rows_given(y_true, y_proba, others)
    sample = _decide_fresh(policy, rows, subgroups, guarantee)
    sample = replace(sample, seed=check_seed(random_state)).with_reviewer(guarantee)
    all_counted = sample.outcomes.all_counted
    curve = sample.sort(all_counted)
    sample = read_copies(sample, policy, subgroups)
    caveats, is_reused = _find_reused(policy, curve)
    far = find_far(policy, sample.source, curve)
    notice = ""
    if not is_reused:
        notice = _tell_own(policy, sample, subgroups, guarantee.level)
    is_vouched = "independent" in certificates.check_vouched(assume)
    if np.any(sample.accepted):
        sample = sample.in_order(guarantee, order.TAKE_LATEST, vouched=is_vouched)
    sample.warn()
    if far:
        caveats = (*caveats, Caveat(far, strikes=False))
    sample = replace(
        sample.doubting(*caveats),
        assumed=() if is_reused else (certificates.FIXED,),
        fingerprints={"data": certificates.fingerprint(curve)},
    )
    certificate = _write(guarantee, policy.threshold, sample)
    return replace(certificate, notice=notice)


def _read_certified(
    objective: Any, target: Any, delta: Any, rule: DecisionRule
) -> objectives.Guarantee:
    """Return what is to be certified; without a target it is nan, and the bound is measured."""
    kind, target, level = objectives.read_guarantee(objective, target, delta)
    if kind is None:
        words = f"one of {list(objectives.GUARANTEES)} or an object such as Risk(0.02)"
        raise ArgumentError("objective", f"objective must be {words}, got None.")
    if isinstance(objective, objectives.Guarantee):
        guarantee = copy.copy(objective)
    else:
        guarantee = kind(target)
    meaning = objectives.Loss.of(rule.default_loss, rule)
    if isinstance(guarantee, objectives.SystemRisk):  # which counts errors
        meaning = objectives.Loss()
    guarantee.target = math.nan if target is None else guarantee.checked_target(meaning)
    guarantee.delta = check_delta(guarantee.delta if level is None else level)
    guarantee.max_analyses = check_count("max_analyses", guarantee.max_analyses)
    guarantee.min_coverage = 0.0
    guarantee.method = "auto"
    return guarantee.on(meaning)


def _decide_fresh(
    policy: AbstentionPolicy,
    rows: tuple[Any, ...],
    subgroups: Any,
    guarantee: objectives.Guarantee,
) -> Sample:
    """Return rows that the policy has decided, with the losses that a guarantee counts."""
    answered, accepted, confidence = decide_labelled(policy, rows, subgroups, "certify")
    meaning = guarantee.about
    if not meaning.is_error or guarantee.counts_deferred:
        predicting.refuse_unjudged(
            answered, f"objective={guarantee.name!r}, where it reads costs or a reviewer,"
        )
    return sample_of(answered, accepted, confidence, meaning.kind)


def _find_reused(
    policy: AbstentionPolicy, curve: RiskCoverageCurve
) -> tuple[tuple[Caveat, ...], bool]:
    """Return the caveat about rows that were given to `fit`, and whether they are too many."""
    share = share_reused(policy, curve)
    if policy.fingerprints.get("data") == certificates.fingerprint(curve):
        return (certificates.CHOSEN_HERE,), True
    if share is None:
        if "data" in policy.fingerprints:
            return (certificates.MAY_HAVE_CHOSEN,), False
        return (), False
    if share > certificates.MOST_SEEN:
        return (certificates.OF_FIT,), True
    return (), False


def _write(guarantee: objectives.Guarantee, threshold: float, sample: Sample) -> Certificate:
    """Write the certificate of a threshold that was fixed before the rows were seen."""
    accepted = sample.accepted
    assert accepted is not None
    outcomes = sample.outcomes.all_counted
    counted = outcomes.count(sample.seed, cases=sample.cases)
    # All accepted rows are tested together: one entry of a curve.
    confidence = accepted.astype(np.float64)
    together = replace(outcomes, confidence=confidence)
    readings = replace(counted, confidence=confidence).read()
    counts = [_count(rows) for rows in readings]
    origin = _describe_origin(sample, guarantee, readings[0], counts)
    n_entries = int(np.any(accepted))
    working_point = RiskCoverageCurve.from_outcomes(together).working_point(n_entries)
    certificate = Certificate.of(guarantee, threshold, working_point, counts, origin)
    return replace(certificate, method=objectives.FIXED_METHOD)


def _describe_origin(
    sample: Sample,
    guarantee: objectives.Guarantee,
    first_reading: Outcomes,
    counts: Sequence[objectives.Counts],
) -> Sample:
    """Return what is known of the rows, and note shared coins where they certify."""
    outcomes = sample.outcomes.all_counted
    refusal = _why_not(guarantee, counts)
    if outcomes.needs_coins and not refusal:
        sample = sample.doubting(*certificates.note_coins(outcomes.toss(sample.seed)))
    return replace(
        sample.pooled,
        by_chance=outcomes.needs_coins,
        reviewer=guarantee.review(first_reading, 1.0),
        refusal=refusal,
    )


def _count(rows: Outcomes) -> objectives.Counts:
    """Count rows whose confidence says whether they are accepted."""
    return objectives.Counts.of(rows.loss, rows.confidence > 0, rows.reviewer_loss)


def _why_not(guarantee: objectives.Guarantee, counts: Sequence[objectives.Counts]) -> str:
    """Say why rows guarantee nothing, "" where they do."""
    if counts[0].n_accepted == 0:
        return "the policy accepts none of these rows"
    most = guarantee.weakest(counts)
    bound = guarantee.bound(most)
    nothing = f"the bound of these rows is {guarantee.amount(bound)}, which guarantees nothing"
    if math.isnan(guarantee.target):
        is_rate = guarantee.about.is_error and not guarantee.is_least
        return nothing if is_rate and bound > 0.5 else ""
    if most > guarantee.largest:
        return f"the target {guarantee.amount(guarantee.target)} is not met; {nothing}"
    return ""


# The policy's own guarantee -----------------------------------------------------------------------


def _tell_own(policy: AbstentionPolicy, sample: Sample, subgroups: Any, delta: float) -> str:
    """Say which guarantees of a policy these rows contradict, put in doubt or cannot test.

    "" where they find no breach of any.
    """
    certificate = policy.certificate
    answered = sample.source
    if answered.unjudged is not None and np.any(answered.unjudged):
        return "The policy's own guarantee was not checked, because not all rows are judged."
    if certificate is not None and certificate.reads_reviewer and answered.reviewer is None:
        return (
            "The policy's own guarantee was not checked, because that needs the reviewer's answers."
        )
    request = Request(delta=delta, max_analyses=1)
    checks = check_guarantees(policy, sample, subgroups, request)
    tested = [check for check in checks if check.n]
    texts = _tell_breaches(tested)
    if is_guarantee(certificate) and certificate.cases and not tested:
        texts.append(
            "The policy's own guarantee was not checked, because it covers only cases "
            f"{certificate.cases}."
        )
    n_more = len(texts) - _MANY
    if n_more > 0:
        texts = [*texts[:_MANY], f"The same is true of {count(n_more, 'more subgroup')}."]
    return "\n".join(texts)


def _tell_breaches(checks: list[GuaranteeCheck]) -> list[str]:
    """Return a text for each guarantee that is not confirmed, those that are broken first."""
    texts = []
    for verdict, start in _STARTS.items():
        alike = [check for check in checks if check.verdict == verdict and not check.is_empty]
        texts += [f"{start} It says: {check.statement}. Found: {check.found}." for check in alike]
    return texts
