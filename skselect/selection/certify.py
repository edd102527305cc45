"""Check a fixed policy on fresh rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from skselect._checks.options import check_count, check_delta, check_number, check_risk_limit
from skselect._checks.rows import refuse_weights
from skselect._typing import BoolArray, FloatArray
from skselect.bounds import betting_log_wealth, betting_upper, clopper_pearson_upper
from skselect.curve.curve import RiskCoverageCurve
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Certificate
from skselect.policy.policy import AbstentionPolicy, apply_policy
from skselect.predictions.outcomes import Outcomes, compute_loss
from skselect.predictions.predictions import Predictions
from skselect.selection.goal import Goal, check_is_predictions
from skselect.selection.promise import betting_bound, counted_bound, issue

# A notice spells out so many promises at most, and counts the others.
_MANY = 10


def certify(
    policy: AbstentionPolicy,
    predictions: Predictions,
    *,
    target: float | None = None,
    delta: float = 0.05,
    looks: int = 1,
    subgroups: Any = None,
) -> Certificate:
    """Check a fixed policy on fresh rows.

    The policy was fixed before these rows were seen, so one exact binomial bound is
    enough, without a correction for choosing among thresholds.

    Parameters
    ----------
    policy : AbstentionPolicy
    predictions : Predictions
        The classifier's raw probabilities for fresh labelled rows; the policy applies its own
        calibration to them.
    target : float in (0, 0.5], default=None
        Largest selective risk, in units of the policy's cost matrix where it has one (up to
        its largest cost). None certifies the bound that the rows give.
    delta : float in (0, 0.5], default=0.05
        Probability that the bound fails.
    looks : int, default=1
        How often the policy will be checked at most on the same growing rows, this check
        included; see :func:`select_threshold`.
    subgroups : array-like of shape (n,) or DataFrame, default=None
        The subgroup of each row, for a policy with a threshold per subgroup. The certificate
        is about all rows together; pass the rows of one subgroup for a promise about it.

    Returns
    -------
    Certificate
        About the share of errors among the accepted rows, or their mean cost. Its text begins
        with "CERTIFIED" if the bound is at most the target. Nothing checks that the rows are
        fresh, except that exactly the rows that tuned the policy are recognised. Where the
        policy has a certificate of its own, `notice` says if these rows contradict it (an exact
        lower bound at `delta` lies above its target; the text then begins with the notice) or
        do not confirm it.

    Raises
    ------
    ValueError
        If the rows carry weights, have no probabilities, or belong to other classes.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import AbstentionPolicy, Predictions, certify
    >>> policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
    >>> fresh = Predictions.from_proba([1] * 300, np.tile([.1, .9], (300, 1)), labels=[0, 1])
    >>> certify(policy, fresh, target=.02).is_certified
    True
    """
    check_delta(delta)
    rule = policy.rule
    if target is not None:
        check_number("target", target, 0.0, rule.unit, closed="neither")
        if rule.default_loss == "zero_one":
            check_risk_limit(target)
    graded = rule.has_graded_costs  # a property of the cost matrix, not of these rows
    goal = Goal(
        "risk",
        delta,
        "betting" if graded else "clopper-pearson",
        looks=check_count("looks", looks),
        loss=rule.default_loss,
        unit=rule.unit,
    )
    answered, accepted, outcomes = _decide(policy, predictions, subgroups)
    bound, met = _test(outcomes, accepted, goal, target)
    own_bound = rule.unit * bound
    promised = own_bound if target is None else target
    seen = certificates.fingerprint(RiskCoverageCurve.from_outcomes(outcomes))
    same_rows = policy.fingerprints.get("data") == seen
    notice = "" if same_rows else own_promise(policy, answered, accepted, subgroups, goal.level)
    if not np.any(accepted):
        refusal = "the policy accepts none of these rows"
    else:
        refusal = _explain_refusal(own_bound, target, rule.default_loss, notice, met=met)
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
        doubts=(certificates.CHOSEN_HERE,) if same_rows else (),
        assumed=[certificates.FIXED],
        refusal=refusal,
        notice=notice,
    )
    return replace(certificate, target=promised, fingerprints={"data": seen})


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


def _explain_refusal(
    bound: float, target: float | None, loss: str, notice: str, *, met: bool
) -> str:
    """Say why nothing is certified, "" where something is."""
    found = f"these rows certify a risk of at most {certificates.amount(bound, loss)}"
    if target is not None:
        wanted = certificates.amount(target, loss)
        return "" if met else f"the target {wanted} is not met; {found}"
    if notice.startswith(certificates.NOT_MET):
        return f"these rows contradict the policy's own promise; {found}"
    return f"{found}, which promises nothing" if loss == "zero_one" and bound > 0.5 else ""


def _decide(
    policy: AbstentionPolicy, predictions: Predictions, subgroups: Any
) -> tuple[Predictions, BoolArray, Outcomes]:
    """Return predictions with the policy's answers, which rows it accepts, and the outcomes."""
    check_is_predictions(predictions, "certify")
    if policy.response != "predict_proba":
        raise ValueError(
            "policy: it reads decision values, which Predictions cannot hold, so it cannot be "
            "certified later. Certify it when it is tuned, or use a classifier with predict_proba."
        )
    if predictions.y_proba is None:
        raise ValueError(
            "predictions must hold the raw probabilities that the policy reads: build them with "
            "Predictions.from_proba(y_true, y_proba)."
        )
    if policy.classes.tolist() != predictions.classes.tolist():
        raise ValueError(
            f"predictions are about the classes {predictions.classes.tolist()}, but the policy is "
            f"for {policy.classes.tolist()}; pass labels= in this order."
        )
    refuse_weights(predictions.sample_weight, "a certificate", ", or use a metric objective")
    if policy.rule.decision == "estimator" and predictions.rule.decision != "estimator":
        raise ValueError(
            "predictions: the policy keeps the classifier's own answers; build them with "
            "Predictions.from_proba(y_true, y_proba, decision='estimator', y_pred=...)."
        )
    decisions = apply_policy(policy, predictions.y_proba, predictions.y_pred, subgroups)
    answered = replace(predictions, y_pred=decisions.y_pred, rule=policy.rule)
    loss = compute_loss(answered, policy.rule.default_loss)
    return answered, decisions.accepted, Outcomes(loss, decisions.confidence)


# The policy's own promise ------------------------------------------------------------------


def own_promise(
    policy: AbstentionPolicy,
    answered: Predictions,
    accepted: BoolArray,
    subgroups: Any,
    delta: float,
) -> str:
    """Say which promises of a policy these rows contradict, and which they do not confirm.

    "" where they confirm all of them. Only promises with high probability count, about all rows
    or about subgroups (which share `delta`), and about a loss that the policy knows.

    Parameters
    ----------
    policy : AbstentionPolicy
    answered : Predictions
        The policy's own answers.
    accepted : ndarray of shape (n,)
    subgroups : array-like of shape (n,), DataFrame or None
    delta : float
    """
    made = _find_promises(policy, answered, subgroups)
    broken, unclear = [], []
    for certificate, rows in made:
        loss = compute_loss(answered, certificate.loss)[rows]
        values = _bounded_values(certificate.objective, loss, accepted[rows])
        if len(values) == 0:
            continue
        graded = certificate.loss == "cost" and policy.rule.has_graded_costs
        level = delta / len(made)
        low, high = _interval(values, level, graded=graded)
        coverage = certificate.objective == "coverage"
        largest = 1.0 - certificate.target if coverage else certificate.target / certificate.unit
        found = (
            f" It says: {certificate.promise}. {_describe(certificate, values, low, high, level)}"
        )
        if low > largest:
            broken.append(f"{certificates.NOT_MET} by these rows.{found}")
        elif high > largest:
            unclear.append(f"These rows do not show that the policy keeps its own promise.{found}")
    texts = broken + unclear
    own = policy.certificate
    if policy.groups is None and own is not None and own.cases and own.n_accepted:
        texts.append(f"Not looked at here: the policy's own promise, which is about the cases "
                    f"{own.cases} alone.")  # fmt: skip
    more = [f"The same is true of {len(texts) - _MANY} more subgroups."] if texts[_MANY:] else []
    return "\n".join(texts[:_MANY] + more)


def _find_promises(
    policy: AbstentionPolicy, answered: Predictions, subgroups: Any
) -> list[tuple[Certificate, BoolArray]]:
    """Return the certificates of a policy that these rows can check, each with its rows."""
    n = len(answered.y_pred)
    made: list[tuple[Certificate | None, BoolArray]]
    if policy.groups is None:
        whole = policy.certificate is not None and not policy.certificate.cases
        made = [(policy.certificate, np.ones(n, dtype=bool))] if whole else []
    else:
        answers = answered.answers
        rows = policy.groups.members(answers if policy.groups.by_answer else subgroups, n)
        known = policy.groups.certificates
        made = [(known.get(group), members) for group, members in rows.items()]
    return [
        (one, rows)
        for one, rows in made
        if one is not None
        and one.n_accepted
        and one.guarantee == "high_probability"
        and one.loss != "graded"
    ]


def _bounded_values(objective: str, loss: FloatArray, accepted: BoolArray) -> FloatArray:
    """Return the values whose mean a promise bounds from above."""
    if objective == "coverage":
        return (~accepted).astype(np.float64)
    return loss[accepted] if objective == "risk" else np.where(accepted, loss, 0.0)


def _interval(values: FloatArray, delta: float, *, graded: bool) -> tuple[float, float]:
    """Return exact bounds on a mean from below and from above, each at `delta`."""
    if graded:
        return 1.0 - betting_upper(1.0 - values, delta), betting_upper(values, delta)
    n, count = len(values), int(np.count_nonzero(values))
    return 1.0 - clopper_pearson_upper(n - count, n, delta), clopper_pearson_upper(count, n, delta)


def _describe(
    certificate: Certificate, values: FloatArray, low: float, high: float, delta: float
) -> str:
    """Say what the rows show about a promise; `low` and `high` are bounds, each at `delta`."""
    mean, n = float(np.mean(values)), len(values)
    count = int(np.count_nonzero(values))
    if certificate.objective == "coverage":
        low, mean, high, count = 1.0 - high, 1.0 - mean, 1.0 - low, n - count
    shares = certificate.loss == "zero_one" or certificate.objective == "coverage"
    kind, unit = ("zero_one", 1.0) if shares else (certificate.loss, certificate.unit)
    least, seen, most = (
        certificates.amount(unit * value, kind, up=up)
        for value, up in ((low, False), (mean, None), (high, True))
    )
    counted = f"{count} of {n}" if shares else f"{n} cases"
    level = certificates.percent(1.0 - 2.0 * delta, up=False)
    return f"Found here: {seen} ({counted}; {level} interval {least} to {most})."
