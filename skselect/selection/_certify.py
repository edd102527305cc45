"""Check a fixed policy on fresh rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from skselect import _validation as check
from skselect import certificates
from skselect._typing import BoolArray
from skselect.bounds import betting_log_wealth, rows_for_certificate
from skselect.certificates import Certificate
from skselect.curves import RiskCoverageCurve
from skselect.outcomes import Outcomes, loss_of
from skselect.policy import AbstentionPolicy, Decisions
from skselect.predictions import Predictions


def certify(
    policy: AbstentionPolicy,
    predictions: Predictions,
    *,
    target: float | None = None,
    delta: float = 0.05,
    subgroups: Any = None,
) -> Certificate:
    """Check a fixed policy on fresh rows.

    The policy was fixed before these rows were seen, so one exact binomial bound suffices
    and no price is paid for having chosen among thresholds.

    Parameters
    ----------
    policy : AbstentionPolicy
    predictions : Predictions
        The classifier's raw probabilities for fresh labelled rows; the policy applies its own
        calibration to them.
    target : float in (0, 1), default=None
        Largest selective risk, in units of the policy's cost matrix where it has one. None
        certifies the bound that the rows give.
    delta : float in (0, 1), default=0.05
        Probability that the bound fails.
    subgroups : array-like of shape (n,) or DataFrame, default=None
        The subgroup of each row, for a policy with a threshold per subgroup. The certificate
        is about all rows together; pass the rows of one subgroup for a promise about it.

    Returns
    -------
    Certificate
        About the share of errors among the rows it decides alone, or their mean cost. Begins
        with "CERTIFIED" if the bound is at most the target. That these are fresh rows is taken
        on trust; only exactly the rows that tuned the policy are recognised.

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
    check.check_number("delta", delta, 0.0, 1.0, closed="neither")
    rule = policy.rule
    if target is not None:
        check.check_number("target", target, 0.0, rule.unit, closed="neither")
    judged, outcomes = _judged(policy, predictions, subgroups)
    graded = rule.has_graded_costs or check.is_graded(outcomes.loss)
    n_errors = int(np.sum(outcomes.loss[judged.accepted] > 0))
    if graded:
        bound = certificates.betting_bound("risk", outcomes, judged.accepted, delta)
    else:
        counts = len(outcomes), int(np.sum(judged.accepted)), n_errors
        bound = certificates.counted_bound("risk", *counts, delta)
    bound *= rule.unit
    promised = bound if target is None else target
    met = bool(np.any(judged.accepted)) and bound <= promised
    if graded and target is not None:  # bets that aim at the target say more than a bound
        wealth = betting_log_wealth(outcomes.loss[judged.accepted], target / rule.unit, delta)
        met = bool(wealth >= -math.log(delta))
    seen = certificates.fingerprint(RiskCoverageCurve.from_outcomes(outcomes))
    # One level of confidence: what is accepted is fixed, by one threshold or by many.
    fixed = Outcomes(outcomes.loss, judged.accepted.astype(np.float64))
    certificate = certificates.issue(
        RiskCoverageCurve.from_outcomes(fixed),
        int(np.any(judged.accepted)),
        objective="risk",
        target=promised,
        delta=delta,
        method="betting" if graded else "clopper-pearson",
        threshold=policy.threshold,
        rows_needed=rows_for_certificate(promised / rule.unit, delta),
        pointwise_bound=bound,
        n_errors=n_errors,
        loss=rule.default_loss,
        unit=rule.unit,
        doubts=(certificates.CHOSEN_HERE,) if policy.fingerprints.get("data") == seen else (),
        refusal="" if met else _refusal(judged.accepted, bound, promised, rule.default_loss),
        assumptions=(*certificates.ASSUMPTIONS, certificates.FIXED),
    )
    return replace(certificate, fingerprints={"data": seen})


def _refusal(accepted: BoolArray, bound: float, promised: float, loss: str) -> str:
    """Say why nothing is promised."""
    if not np.any(accepted):
        return "the policy accepts none of these rows"
    wanted, found = (certificates.amount(value, loss) for value in (promised, bound))
    return f"the target {wanted} is not met; these rows certify a risk of at most {found}"


def _judged(
    policy: AbstentionPolicy, predictions: Predictions, subgroups: Any
) -> tuple[Decisions, Outcomes]:
    """Return the policy's own answers, and what came of them."""
    check.check_is_predictions(predictions, "certify")
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
    check.refuse_weights(predictions.sample_weight, "a certificate", ", or use a metric objective")
    check.check_same_decision(policy.rule.decision, predictions.rule.decision)
    judged = policy.judge(predictions.y_proba, predictions.y_pred, subgroups)
    answered = replace(predictions, y_pred=judged.y_pred, rule=policy.rule)
    loss = loss_of(answered, policy.rule.default_loss)
    return judged, Outcomes(loss, judged.confidence)
