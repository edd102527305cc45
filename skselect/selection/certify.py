"""Make a certificate for a fixed policy from fresh rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skselect._lib.checks.options import check_count, check_delta
from skselect._lib.typing import BoolArray
from skselect.bounds._mean import betting_log_wealth
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import ArgumentError
from skselect.objectives import FIXED_METHOD, GUARANTEES, Goal, Guarantee, Loss, read_guarantee
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Caveat, Certificate
from skselect.policy.policy import AbstentionPolicy
from skselect.predictions.outcomes import Outcomes, compute_loss
from skselect.selection.issue import issue
from skselect.selection.kept import check_is_policy, decide_labelled, own_promise, share_reused
from skselect.selection.order import TAKE_LATEST, find_order, warn_of_order


def certify(
    policy: AbstentionPolicy,
    *rows: Any,
    objective: Any = "risk",
    target: float | None = None,
    delta: float | None = None,
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
    objective : Risk, GeneralizedRisk, Coverage or str, default="risk"
        What to certify. `max_analyses` is how often the policy will be checked at most on the
        same growing rows, this check included; `method`, `min_coverage` and `loss` do not count,
        for nothing is chosen here and the policy knows its costs.
    target : float, default=None
        Beside a word: largest selective risk (say), in units of the policy's cost matrix where it
        has one, named before the rows were seen. None measures the bound that the rows give,
        which is no promise: nobody asked for it beforehand.
    delta : float in (0, 0.5], default=None
        Beside a word: probability that the bound fails. None: 0.05.
    subgroups : array-like of shape (n,) or DataFrame, default=None
        The subgroup of each row, for a policy with a threshold per subgroup. The certificate
        is about all rows together; pass the rows of one subgroup for a promise about it.
    assume : "independent" or (), default=()
        "independent": the order of the rows means nothing, although losses or confidences
        change along it (at level 0.01), which otherwise makes the certificate an estimate.

    Returns
    -------
    Certificate
        Its text begins with "CERTIFIED" if the bound keeps the target. Nothing checks that the
        rows are fresh, except that rows that tuned the policy are recognised, as by
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
    loss = Loss.of(policy.rule.default_loss, policy.rule)
    goal = _read_goal(objective, target, delta, loss)
    answered, accepted, confidence = decide_labelled(policy, rows, subgroups, "certify")
    outcomes = Outcomes(compute_loss(answered, loss.kind), confidence)
    vouched = "independent" in certificates.check_vouched(assume)
    bound, met = _test(outcomes, accepted, goal)
    kind = goal.objective
    assert isinstance(kind, Guarantee)
    own_bound = kind.unit_of(loss) * bound
    measured = math.isnan(goal.own_target)
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    chosen_here, same_rows = _find_reused(policy, curve)
    notice = "" if same_rows else own_promise(policy, answered, accepted, subgroups, goal.level)
    order = certificates.NO_CAVEATS
    refusal = "the policy accepts none of these rows"
    if np.any(accepted):
        refusal = _explain_refusal(goal, own_bound, met=met)
        order = find_order(outcomes, goal.objective, TAKE_LATEST, vouched=vouched)
        warn_of_order(order)
    if measured:
        goal = replace(goal, own_target=own_bound)
    # The threshold is fixed, so all accepted rows are tested together: one entry of a curve.
    together = Outcomes(outcomes.loss, accepted.astype(np.float64))
    return issue(
        RiskCoverageCurve.from_outcomes(together),
        int(np.any(accepted)),
        goal,
        threshold=policy.threshold if policy.groups is None else math.inf,
        n_errors=int(np.count_nonzero(outcomes.loss[accepted])),
        bound=bound,
        guarantee="measured" if measured and not refusal else "",
        caveats=(*chosen_here, *order),
        assumed=[certificates.FIXED],
        refusal=refusal,
        notice=notice,
        fingerprints={"data": certificates.fingerprint(curve)},
    )


def _read_goal(objective: Any, target: Any, delta: Any, loss: Loss) -> Goal:
    """Return what is to be certified; without a target it is nan, and the bound is measured."""
    kind, own, level = read_guarantee(objective, target, delta)
    if kind is None:
        known = f"one of {list(GUARANTEES)} or an object such as Risk(0.02)"
        raise ArgumentError("objective", f"objective must be {known}, got None.")
    fixed = copy.copy(objective) if isinstance(objective, Guarantee) else kind(own)
    fixed.target = math.nan if own is None else kind.check_bound(own, loss)
    fixed.delta = check_delta(fixed.delta if level is None else level)
    fixed.max_analyses = check_count("max_analyses", fixed.max_analyses)
    fixed.min_coverage = 0.0
    # A property of the cost matrix, not of these rows, decides between counting and betting.
    fixed.method = "betting" if loss.is_graded and "betting" in kind.methods else FIXED_METHOD
    return Goal(fixed, loss, fixed.method, fixed.delta, fixed.target)


def _find_reused(
    policy: AbstentionPolicy, curve: RiskCoverageCurve
) -> tuple[tuple[Caveat, ...], bool]:
    """Return the caveat about rows that chose the threshold, and whether they are too many."""
    reused = share_reused(policy, curve)
    same_rows = policy.fingerprints.get("data") == certificates.fingerprint(curve)
    if same_rows or (reused or 0.0) > certificates.MOST_SEEN:
        return (certificates.CHOSEN_HERE,), True
    if reused is None and "data" in policy.fingerprints:
        return (certificates.MAY_HAVE_CHOSEN,), False
    return (), False


def _test(outcomes: Outcomes, accepted: BoolArray, goal: Goal) -> tuple[float, bool]:
    """Return the bound that the accepted rows give, and whether a target is met."""
    kind, loss = goal.objective, goal.loss
    assert isinstance(kind, Guarantee)
    if not goal.plan.bets:
        n_errors = int(np.count_nonzero(outcomes.loss[accepted]))
        counts = len(outcomes), int(np.sum(accepted)), n_errors
        bound = kind.counted_bound(*counts, goal.level)
        own, target = kind.unit_of(loss) * bound, goal.own_target
        return bound, not (own < target if kind.is_least else own > target)
    bound = kind.betting_bound(outcomes, accepted, goal.level)
    if math.isnan(goal.own_target):
        return bound, True
    # Betting against the target itself certifies it more often than the bound does.
    values = kind.values(outcomes.loss, accepted)
    wealth = betting_log_wealth(values, goal.target, goal.level)
    return bound, bool(wealth >= -math.log(goal.level))


def _explain_refusal(goal: Goal, bound: float, *, met: bool) -> str:
    """Say why nothing is certified, "" where something is."""
    kind, loss = goal.objective, goal.loss
    assert isinstance(kind, Guarantee)
    found = f"the bound of these rows is {kind.amount(bound, loss)}, which promises nothing"
    if not math.isnan(goal.own_target):
        wanted = kind.amount(goal.own_target, loss)
        return "" if met else f"the target {wanted} is not met; {found}"
    return found if loss.is_error and not kind.is_least and bound > 0.5 else ""
