"""Pick a threshold from a table of predictions, or certify a fixed policy on fresh rows."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skselect import _validation as check
from skselect import certificates, thresholds
from skselect._typing import ConfidenceSpec, LossSpec
from skselect._validation import InfeasibleTargetError
from skselect.bounds import clopper_pearson_upper, rows_for_certificate
from skselect.certificates import Certificate, Doubt
from skselect.curves import RiskCoverageCurve
from skselect.goals import Goal
from skselect.outcomes import Outcomes
from skselect.policy import AbstentionPolicy
from skselect.predictions import Predictions

_QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class ThresholdSelection:
    """A chosen threshold and how it came about.

    Parameters
    ----------
    threshold : float
        inf: nothing is accepted.
    objective : str
    target : float or None
    coverage, risk : float
        On the rows that chose it (risk is nan when nothing is accepted).
    value : float or None
        The metric at the threshold, for metric objectives.
    certificate : Certificate or None
        None where nothing is promised: metric objectives, cost, ``method="empirical"``.
    curve : RiskCoverageCurve
    policy : AbstentionPolicy or None
        None when only outcomes were given, which know no classes.
    """

    threshold: float
    objective: str
    target: float | None
    coverage: float
    risk: float
    value: float | None
    certificate: Certificate | None
    curve: RiskCoverageCurve
    policy: AbstentionPolicy | None = None

    def __repr__(self) -> str:
        return f"<ThresholdSelection: {self}>"

    def __str__(self) -> str:
        if self.certificate is not None:
            return str(self.certificate)
        value = "" if self.value is None else f" ({self.objective} {self.value:.4g})"
        return (
            f"PROMISES NOTHING for new rows: threshold {self.threshold:.6g} by {self.objective}"
            f"{value}; on the {self.curve.n_rows} rows that chose it, coverage "
            f"{self.coverage:.4g} and risk {self.risk:.4g}."
        )


# Selecting ---------------------------------------------------------------------------------


def select_threshold(
    predictions_or_outcomes: Predictions | Outcomes,
    *,
    objective: str,
    target: float | None = None,
    delta: float = 0.05,
    method: str = "combined",
    min_coverage: float | str = "auto",
    constraint: Any = None,
    subgroups: Any = None,
    confidence: ConfidenceSpec | None = None,
    loss: LossSpec = "zero_one",
    on_infeasible: str = "raise",
) -> ThresholdSelection:
    """Pick a threshold from a table of predictions, without any estimator.

    Parameters
    ----------
    predictions_or_outcomes : Predictions or Outcomes
        Predictions for labelled rows that did not train or calibrate the model.
    objective : str
        ============================================  =======================================
        "cwsa_plus", "cwsa", "selective_accuracy"     best value at coverage >= `min_coverage`
        "risk"                                        largest coverage whose selective risk is
                                                      certified to be at most `target`
        "generalized_risk"                            the same for the rate of silent failures
        "coverage"                                    highest threshold whose coverage is
                                                      certified to be at least `target`
        "cost"                                        least cost on these rows when abstaining
                                                      costs `target` errors
        ============================================  =======================================
    target : float, default=None
        As the objective says; none for a metric.
    delta : float in (0, 1), default=0.05
        Probability that a certificate fails, over calibrations like this one.
    method : {"combined", "band", "empirical"}, default="combined"
        "combined" and "band" certify: "risk" by :func:`bounds.combined_limits` or
        :func:`bounds.walk_band`, the others by exact binomial and order statistics.
        "combined" answers more as a rule, "band" where the very surest rows are the worst.
        "empirical" takes what these rows show and promises nothing: about every second time
        the truth is worse.
    min_coverage : float in [0, 1] or "auto", default="auto"
        Smaller accepted sets are not considered. "auto": 0.5 for a metric, 0.1 for a
        certified risk, else 0.
    constraint, subgroups : None
        Not available yet.
    confidence : str, callable or array of shape (n,), default=None
        For Predictions: how sure each row is.
    loss : {"zero_one"} or callable, default="zero_one"
        For Predictions: how wrong each row is.
    on_infeasible : {"raise", "abstain"}, default="raise"
        What to do when no threshold meets the target: raise, or warn and accept nothing.

    Returns
    -------
    ThresholdSelection

    Raises
    ------
    InfeasibleTargetError
        If no threshold meets the target; it says how many rows would do.
    ValueError
        If an argument is malformed, or a certificate is asked for weighted rows or graded
        losses.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, select_threshold
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(.5, 1, 2000)
    >>> wrong = rng.random(2000) < (1 - confidence) / 4
    >>> selection = select_threshold(Outcomes(wrong, confidence), objective="risk", target=.05)
    >>> print(selection)
    CERTIFIED
    If future cases resemble these 2000, then in 95 of 100 such calibrations at most 5 % of
    the cases it decides alone are wrong; not per subgroup, not per period.
    It decides ... of these cases alone (... of 2000, ... of them wrong), from confidence ... on.
    Taken on trust: ...
    Method: combined, delta 0.05.
    """
    check.refuse_unavailable("constraint", constraint)
    check.refuse_subgroups(subgroups)
    goal = Goal.checked(objective, target, delta, method, min_coverage, on_infeasible)
    outcomes = Outcomes.of(predictions_or_outcomes, confidence=confidence, loss=loss)
    predictions = predictions_or_outcomes
    selection = pick(outcomes, goal, bounded=not callable(confidence))
    if not isinstance(predictions, Predictions) or predictions.y_proba is None:
        return selection
    if confidence is not None and not (isinstance(confidence, str) or callable(confidence)):
        return selection  # an array is no rule that could be applied to other rows
    policy = AbstentionPolicy(
        classes=predictions.classes,
        threshold=selection.threshold,
        confidence="max_proba" if confidence is None else confidence,
        **policy_facts(selection, outcomes),
    )
    return replace(selection, policy=policy)


def pick(
    outcomes: Outcomes, goal: Goal, *, doubts: tuple[Doubt, ...] = (), bounded: bool = True
) -> ThresholdSelection:
    """Pick the threshold for a checked goal.

    `doubts` say why a certificate is not exact, `bounded` whether confidences lie in [0, 1].
    """
    if goal.promises:
        outcomes = _countable(outcomes)
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    if goal.objective in thresholds.TUNABLE_METRICS:
        return _pick_metric(curve, goal)
    n_blocks = _rule(curve, goal)
    if n_blocks == 0:
        _refuse_or_warn(curve, goal)
    threshold = thresholds.threshold_below(curve, n_blocks, bounded=bounded)
    certificate = _certificate(curve, n_blocks, threshold, goal, doubts) if goal.promises else None
    return _selection(curve, n_blocks, threshold, goal, None, certificate)


def _pick_metric(curve: RiskCoverageCurve, goal: Goal) -> ThresholdSelection:
    best = thresholds.best_metric(curve, goal.objective, goal.min_coverage)
    if best.unconstrained > best.value:
        warnings.warn(
            f"min_coverage={goal.min_coverage:g} binds: at a coverage below it {goal.objective} "
            f"would be {best.unconstrained:.4g} instead of {best.value:.4g}. Such an optimum is "
            "usually a matter of a few rows; lower min_coverage only with many rows.",
            stacklevel=4,
        )
    if best.n_blocks == len(curve) and goal.objective != "selective_accuracy":
        warnings.warn(
            f"{goal.objective} is best when everything is accepted (threshold 0): it rises as the "
            "threshold falls below the lowest confidence, although no decision changes. To learn "
            "to abstain, take objective='risk' or 'coverage'; compare models at one threshold.",
            stacklevel=4,
        )
    return _selection(curve, best.n_blocks, best.threshold, goal, best.value, None)


def _rule(curve: RiskCoverageCurve, goal: Goal) -> int:
    """Apply the rule of a goal that has a target."""
    target, delta, exact = goal.target, goal.delta, goal.promises
    if goal.objective == "risk":
        return thresholds.RISK_RULES[goal.method].find(curve, target, delta, goal.min_coverage)
    if goal.objective == "generalized_risk":
        if exact:
            return thresholds.certified_generalized_risk(curve, target, delta) or 0
        return thresholds.empirical_generalized_risk(curve, target)
    if goal.objective == "coverage":
        if exact:
            return thresholds.certified_coverage(curve, target, delta)
        return thresholds.empirical_coverage(curve, target)
    return thresholds.cheapest(curve, target)


def _selection(
    curve: RiskCoverageCurve,
    n_blocks: int,
    threshold: float,
    goal: Goal,
    value: float | None,
    certificate: Certificate | None,
) -> ThresholdSelection:
    return ThresholdSelection(
        threshold=threshold,
        objective=goal.objective,
        target=None if math.isnan(goal.target) else goal.target,
        coverage=float(curve.coverage[n_blocks - 1]) if n_blocks else 0.0,
        risk=float(curve.selective_risk[n_blocks - 1]) if n_blocks else float("nan"),
        value=value,
        certificate=certificate,
        curve=curve,
    )


def _certificate(
    curve: RiskCoverageCurve,
    n_blocks: int,
    threshold: float,
    goal: Goal,
    doubts: tuple[Doubt, ...],
) -> Certificate:
    methods = {"risk": goal.method, "generalized_risk": "binomial", "coverage": "order statistic"}
    needed = 1 if goal.objective == "coverage" else rows_for_certificate(goal.target, goal.delta)
    return certificates.issue(
        curve,
        n_blocks,
        objective=goal.objective,
        target=goal.target,
        delta=goal.delta,
        method=methods[goal.objective],
        threshold=threshold,
        rows_needed=needed,
        min_coverage=goal.min_coverage,
        doubts=doubts if n_blocks else (*doubts, certificates.NOTHING),
    )


def _countable(outcomes: Outcomes) -> Outcomes:
    """Return outcomes whose rows can be counted: no weights, errors 0 or 1."""
    check.refuse_weights(outcomes.sample_weight, "a certificate", ", or use a metric objective")
    check.refuse_graded(outcomes.loss)
    return (
        outcomes if outcomes.sample_weight is None else Outcomes(outcomes.loss, outcomes.confidence)
    )


def _refuse_or_warn(curve: RiskCoverageCurve, goal: Goal) -> None:
    """Say why no threshold meets the target, what would help, and stop or warn."""
    if goal.objective == "cost":
        warnings.warn(
            f"Abstaining on everything costs least at target={goal.target:g} per row: every "
            "accepted set of these rows is dearer.",
            stacklevel=4,
        )
        return
    least, needed, advice = _advice(curve, goal) if goal.promises else _plain_advice(curve, goal)
    message = (
        f"No threshold meets target={goal.target:g} for objective={goal.objective!r} on "
        f"{curve.n_rows} rows (delta={goal.delta:g}). " + "; ".join(advice) + "."
    )
    if goal.on_infeasible == "raise":
        raise InfeasibleTargetError(
            message + " With on_infeasible='abstain' nothing is accepted instead.",
            least_target=least,
            rows_needed=needed,
        )
    warnings.warn(message + " Nothing will be accepted.", stacklevel=4)


def _advice(curve: RiskCoverageCurve, goal: Goal) -> tuple[float, int | None, list[str]]:
    """Return the least target that was within reach, rows that would do, and both in words."""
    needed: int | None = rows_for_certificate(goal.target, goal.delta)
    kind = "accepted rows" if goal.objective == "risk" else "rows"
    advice = [f"Certifying it takes at least {needed} {kind} without a single error"]
    errors = np.rint(curve.accepted_loss).astype(np.int64)
    if goal.objective == "risk":
        rule = thresholds.RISK_RULES[goal.method].find
        least = thresholds.least_risk_target(rule, curve, goal.delta, goal.min_coverage)
        needed = thresholds.rows_like_these(curve, goal.target, goal.delta, goal.min_coverage)
        if needed is None:
            advice.append(
                "no number of rows like these would do, because no accepted set of them has a "
                "smaller risk"
            )
        else:
            advice.append(f"about {needed} rows would do if their errors fell as they do here")
    else:
        least = clopper_pearson_upper(int(errors[0]), curve.n_rows, goal.delta)
    advice.append(
        f"the smallest target these {curve.n_rows} rows could have met is {least:.4g}, but "
        "certifying that one needs fresh rows"
    )
    if goal.min_coverage > 0:
        advice.append(f"only accepted shares of at least min_coverage={goal.min_coverage:g} count")
    return least, needed, advice


def _plain_advice(curve: RiskCoverageCurve, goal: Goal) -> tuple[float, None, list[str]]:
    allowed = check.reaches(curve.coverage, goal.min_coverage)
    risk = curve.selective_risk if goal.objective == "risk" else curve.generalized_risk
    least = float(np.min(risk[allowed]))
    return least, None, [f"the smallest risk of any accepted set of these rows is {least:.4g}"]


def policy_facts(selection: ThresholdSelection, outcomes: Outcomes) -> dict[str, Any]:
    """Return what a policy remembers about the rows that tuned it."""
    shares = np.quantile(outcomes.confidence, _QUANTILES)
    return {
        "certificate": selection.certificate,
        "coverage": selection.coverage,
        "n": len(outcomes),
        "confidence_quantiles": {
            f"{q:g}": float(v) for q, v in zip(_QUANTILES, shares, strict=True)
        },
        "fingerprints": {"data": certificates.fingerprint(selection.curve)},
    }


# Certifying --------------------------------------------------------------------------------


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
        Largest selective risk. None certifies the bound that the rows give.
    delta : float in (0, 1), default=0.05
        Probability that the bound fails.
    subgroups : None
        Not available yet.

    Returns
    -------
    Certificate
        Begins with "CERTIFIED" if the bound is at most the target. That these are fresh rows is
        taken on trust; only exactly the rows that tuned the policy are recognised.

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
    check.refuse_subgroups(subgroups)
    check.check_number("delta", delta, 0.0, 1.0, closed="neither")
    if target is not None:
        check.check_number("target", target, 0.0, 1.0, closed="neither")
    curve, n_blocks = _judged_curve(policy, predictions)
    k = int(curve.n_accepted[n_blocks - 1]) if n_blocks else 0
    errors = round(float(curve.accepted_loss[n_blocks - 1])) if n_blocks else 0
    bound = certificates.pointwise_bound("risk", k, errors, curve.n_rows, delta)
    refusal = ""
    if k == 0:
        refusal = "the policy accepts none of these rows"
    elif target is not None and bound > target:
        refusal = (
            f"the target {100 * target:.4g} % is not met; these rows certify a risk of at most "
            f"{100 * bound:.4g} %"
        )
    tuned_here = policy.fingerprints.get("data") == certificates.fingerprint(curve)
    promised = bound if target is None else target
    return certificates.issue(
        curve,
        n_blocks,
        objective="risk",
        target=promised,
        delta=delta,
        method="clopper-pearson",
        threshold=policy.threshold,
        rows_needed=rows_for_certificate(promised, delta),
        doubts=(certificates.CHOSEN_HERE,) if tuned_here else (),
        refusal=refusal,
        assumptions=(*certificates.ASSUMPTIONS, certificates.FIXED),
    )


def _judged_curve(
    policy: AbstentionPolicy, predictions: Predictions
) -> tuple[RiskCoverageCurve, int]:
    """Return the curve of the policy's own answers, and how much of it the policy accepts."""
    if not isinstance(predictions, Predictions):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"predictions must be Predictions, got {type(predictions).__name__}; build them with "
            "Predictions.from_proba(y_true, y_proba)."
        )
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
    judged = policy.judge(predictions.y_proba)
    wrong = judged.y_pred != predictions.y_true
    curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, judged.confidence))
    return curve, int(curve.n_blocks_accepted(np.array([policy.threshold]))[0])
