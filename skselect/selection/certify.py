"""Make a certificate for a fixed policy from fresh rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skselect._lib.checks.options import check_count, check_delta, check_risk_target
from skselect._lib.typing import BoolArray
from skselect.bounds._mean import betting_log_wealth
from skselect.curve.curve import RiskCoverageCurve
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Certificate
from skselect.policy.policy import AbstentionPolicy
from skselect.predictions.outcomes import Outcomes, compute_loss
from skselect.selection.goal import Goal
from skselect.selection.kept import (
    check_is_policy,
    decide_labelled,
    own_promise,
    share_reused,
)
from skselect.selection.order import TAKE_LATEST, find_order, warn_of_order
from skselect.selection.promise import betting_bound, counted_bound, issue


def certify(
    policy: AbstentionPolicy,
    *rows: Any,
    target: float | None = None,
    delta: float = 0.05,
    max_analyses: int = 1,
    subgroups: Any = None,
    assume: str | Sequence[str] = (),
) -> Certificate:
    """Make a certificate for a fixed policy from fresh rows.

    The policy was fixed before these rows were seen, so one exact binomial bound is
    enough, without a correction for choosing among thresholds. Whether the policy's own promise
    is still true, :func:`check_policy` says in one word.

    Parameters
    ----------
    policy : AbstentionPolicy
    *rows : `y_true, y_proba`, or Predictions
        True labels and the classifier's raw probabilities of fresh rows, in the columns of
        `policy.decide`; the policy applies its own calibration to them.
    target : float in (0, 0.5], default=None
        Largest selective risk, in units of the policy's cost matrix where it has one (up to
        its largest cost), named before the rows were seen. None measures the bound that the
        rows give, which is no promise: nobody asked for it beforehand.
    delta : float in (0, 0.5], default=0.05
        Probability that the bound fails.
    max_analyses : int, default=1
        How often the policy will be checked at most on the same growing rows, this check
        included; each check may fail with probability ``delta / max_analyses``.
    subgroups : array-like of shape (n,) or DataFrame, default=None
        The subgroup of each row, for a policy with a threshold per subgroup. The certificate
        is about all rows together; pass the rows of one subgroup for a promise about it.
    assume : "independent" or (), default=()
        "independent": the order of the rows means nothing, although losses or confidences
        change along it (at level 0.01), which otherwise makes the certificate an estimate.

    Returns
    -------
    Certificate
        About the share of errors among the accepted rows, or their mean cost. Its text begins
        with "CERTIFIED" if the bound is at most the target. Nothing checks that the rows are
        fresh, except that rows that tuned the policy are recognised, as by
        :func:`check_policy`. Where the policy has a certificate of its own,
        `notice` says if these rows contradict it (an exact lower bound at `delta` lies above its
        target; the text then begins with the notice) or do not confirm it.

    Raises
    ------
    ValueError
        If the rows carry weights, have no probabilities, or belong to other classes.

    See Also
    --------
    check_policy : Says whether the policy's own promise is still true.

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
    check_delta(delta)
    rule = policy.rule
    if target is not None:
        check_risk_target(target, rule.default_loss, rule.unit)
    graded = rule.has_graded_costs  # a property of the cost matrix, not of these rows
    goal = Goal(
        "risk",
        delta,
        "betting" if graded else "clopper-pearson",
        max_analyses=check_count("max_analyses", max_analyses),
        loss=rule.default_loss,
        unit=rule.unit,
    )
    answered, accepted, confidence = decide_labelled(policy, rows, subgroups, "certify")
    outcomes = Outcomes(compute_loss(answered, rule.default_loss), confidence)
    bound, met = _test(outcomes, accepted, goal, target)
    own_bound = rule.unit * bound
    promised = own_bound if target is None else target
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    seen = certificates.fingerprint(curve)
    reused = share_reused(policy, curve)
    same_rows = policy.fingerprints.get("data") == seen
    same_rows = same_rows or (reused or 0.0) > certificates.MOST_SEEN
    notice = "" if same_rows else own_promise(policy, answered, accepted, subgroups, goal.level)
    if not np.any(accepted):
        refusal = "the policy accepts none of these rows"
    else:
        refusal = _explain_refusal(own_bound, target, rule.default_loss, met=met)
    vouched = "independent" in certificates.check_vouched(assume)
    order = chosen_here = certificates.NO_CAVEATS
    if np.any(accepted):
        order = find_order(outcomes, "risk", TAKE_LATEST, vouched=vouched)
        warn_of_order(order)
    if same_rows:
        chosen_here = (certificates.CHOSEN_HERE,)
    elif reused is None and "data" in policy.fingerprints:
        chosen_here = (certificates.MAY_HAVE_CHOSEN,)
    # The threshold is fixed, so all accepted rows are tested together: one entry of a curve.
    together = Outcomes(outcomes.loss, accepted.astype(np.float64))
    certificate = issue(
        RiskCoverageCurve.from_outcomes(together),
        int(np.any(accepted)),
        goal,
        threshold=policy.threshold if policy.groups is None else math.inf,
        n_errors=int(np.count_nonzero(outcomes.loss[accepted])),
        bound=bound,
        rows_needed=replace(goal, target=promised / rule.unit).rows_needed,
        caveats=(*chosen_here, *order),
        assumed=[certificates.FIXED],
        refusal=refusal,
        notice=notice,
    )
    guarantee = "measured" if target is None and not refusal else certificate.guarantee
    return replace(certificate, target=promised, guarantee=guarantee, fingerprints={"data": seen})


def _test(
    outcomes: Outcomes, accepted: BoolArray, goal: Goal, target: float | None
) -> tuple[float, bool]:
    """Return the bound on the risk that the accepted rows give, and whether a target is met."""
    if goal.method == "clopper-pearson":
        n_accepted, n_errors = int(np.sum(accepted)), np.count_nonzero(outcomes.loss[accepted])
        bound = counted_bound("risk", len(outcomes), n_accepted, int(n_errors), goal.level)
        return bound, target is None or goal.unit * bound <= target
    bound = betting_bound("risk", outcomes, accepted, goal.level)
    if target is None:
        return bound, True
    # Betting against the target itself certifies it more often than the bound does.
    wealth = betting_log_wealth(outcomes.loss[accepted], target / goal.unit, goal.level)
    return bound, bool(wealth >= -math.log(goal.level))


def _explain_refusal(bound: float, target: float | None, loss: str, *, met: bool) -> str:
    """Say why nothing is certified, "" where something is."""
    found = f"the bound of these rows is {certificates.amount(bound, loss)}, which promises nothing"
    if target is not None:
        wanted = certificates.amount(target, loss)
        return "" if met else f"the target {wanted} is not met; {found}"
    return found if loss == "zero_one" and bound > 0.5 else ""
