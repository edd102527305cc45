"""Labelled rows as a policy decides them, and what tells them from the rows of its `fit`."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from skselect._lib.arrays import BoolArray, FloatArray
from skselect._lib.checks import shown
from skselect._lib.checks.rows import check_labels, check_same_order, encode_known, refuse_weights
from skselect.curve.curve import RiskCoverageCurve
from skselect.policy import certificate as certificates
from skselect.policy.policy import (
    AbstentionPolicy,
    External,
    accept_answers,
    apply_policy,
    count_at_quantiles,
    describe_far,
    read_scores,
    warn_if_far,
    warn_of_scale,
)
from skselect.policy.seen_rows import share_recorded
from skselect.predictions import predictions as predicting
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.outcomes import Outcomes, compute_confidence, compute_loss, reviewer_loss
from skselect.predictions.predictions import Predictions
from skselect.selection.sample import Grouping, Sample

# Read and decided ---------------------------------------------------------------------------------


def check_is_policy(policy: Any) -> None:
    """Refuse anything but a policy, such as the tuner that made it."""
    if not isinstance(policy, AbstentionPolicy):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"policy must be an AbstentionPolicy, such as tuner.policy_, got {shown(policy)}."
        )


def predictions_for(policy: AbstentionPolicy, y_true: Any, y_proba: Any) -> Predictions:
    """Read labels and raw probabilities as the policy does: its classes, one column for two."""
    check_same_order(y_true=y_true, y_proba=y_proba)
    truth = check_labels(y_true)
    encode_known(truth, policy.classes, remedy="The policy cannot answer with others.")
    scores, _ = read_scores(policy, y_proba)
    if policy.response == "decision_function":
        return Predictions.from_scores(truth, scores, labels=policy.classes)
    predictions = Predictions.from_proba(truth, scores, labels=policy.classes)
    if policy.cascade is None:
        return predictions
    return replace(predictions, _cascade=policy.cascade)


def decide_labelled(
    policy: AbstentionPolicy,
    rows: tuple[Any, ...],
    subgroups: Any,
    purpose: str,
    tables: tuple[type, ...] = (Predictions,),
) -> tuple[Predictions, BoolArray, FloatArray]:
    """Return predictions with the policy's answers, which rows it accepts, and its confidence.

    `tables` are what the caller takes beside `(y_true, y_proba)`; here they are Predictions.
    """
    check_is_policy(policy)
    check_same_order(y_true=rows[0] if rows else None, subgroups=subgroups)
    predictions = predicting.read_rows(rows, tables, partial(predictions_for, policy))
    check_scores_fit(policy, predictions)
    refuse_weights(predictions.sample_weight, purpose)
    if purpose != "certify":
        predicting.refuse_unjudged(predictions, purpose)
    check_answers_fit(policy, predictions)
    has_scores = predictions.y_proba is not None or predicting.hold_decision_values(predictions)
    if not has_scores:  # only the threshold is applied
        confidence = compute_confidence(predictions, None)
        warn_of_scale(policy, confidence)
        accepted = accept_answers(policy, confidence, predictions.answers, subgroups)
        return predictions, accepted, confidence
    scores = predicting.raw_scores(predictions)
    decisions = apply_policy(policy, scores, predictions.y_pred, subgroups)
    counts = count_at_quantiles(policy, decisions.confidence)
    warn_if_far(policy, counts, int(np.sum(~np.isnan(decisions.confidence))))
    answered = replace(predictions, y_pred=decisions.y_pred, rule=policy.rule)
    return answered, decisions.accepted, decisions.confidence


def check_scores_fit(policy: AbstentionPolicy, predictions: Predictions) -> None:
    """Refuse predictions without the raw scores that a policy reads, or of another kind."""
    if predicting.hold_decision_values(predictions):
        if policy.response != "decision_function":
            raise ValueError(
                "predictions hold decision values, but this policy reads probabilities: build them "
                "with Predictions.from_proba(y_true, y_proba)."
            )
    elif policy.response == "decision_function":
        raise ValueError(
            "predictions must hold the decision values that the policy reads: build them with "
            "Predictions.from_scores(y_true, model.decision_function(X))."
        )
    elif predictions.y_proba is None and not _reads_confidence(policy):
        raise ValueError(
            "predictions must hold the raw probabilities that the policy reads: build them with "
            "Predictions.from_proba(y_true, y_proba)."
        )


def _reads_confidence(policy: AbstentionPolicy) -> bool:
    """Tell whether a policy can read answers with a confidence, in place of probabilities."""
    if isinstance(policy.confidence, LearnedScore):
        return True
    return isinstance(policy.confidence, External) and policy.calibration is None


def check_answers_fit(
    policy: AbstentionPolicy, predictions: Predictions, which: str = "predictions"
) -> None:
    """Refuse predictions of other classes, or without the answers that a policy keeps."""
    classes = policy.classes.tolist()
    named = predictions.classes.tolist()
    if classes != named:
        raise ValueError(
            f"policy: it is for the classes {classes}, but the {which} are for {named}; pass "
            "labels= in the policy's order."
        )
    if policy.rule.decision == "estimator" and predictions.rule.decision != "estimator":
        raise ValueError(
            f"{which}: the policy keeps the classifier's own answers; build them with "
            "Predictions.from_proba(y_true, y_proba, decision='estimator', y_pred=...), and pass "
            "them alone."
        )
    cascade = policy.cascade
    is_decided = predictions.y_proba is None and not isinstance(policy.confidence, External)
    # Decisions that a cascade of probabilities has written come with their final confidence.
    if cascade is None or is_decided:
        return
    joined = predicting.cascade_of(predictions)
    rule = (cascade.names, cascade.cuts)
    if joined is None or (joined.names, joined.cuts) != rule:
        stages = list(cascade.names)
        raise ValueError(
            f"{which}: this policy asks the stages {stages} in turn, and these "
            "were not joined by its rule; pass the labels and a dict of the tables of the stages, "
            "or policy.cascade.join({stage: Predictions, ...})."
        )


def sample_of(
    answered: Predictions,
    accepted: BoolArray,
    confidence: FloatArray,
    loss: str,
    curve: RiskCoverageCurve | None = None,
) -> Sample:
    """Return decided rows as a sample, with the losses of a kind and those of a reviewer.

    They are sorted once, where `curve` does not hold them sorted already.
    """
    outcomes = Outcomes(
        compute_loss(answered, loss),
        confidence,
        reviewer_loss=reviewer_loss(answered),
        unjudged=answered.unjudged,
    )
    sort = cache(RiskCoverageCurve.from_outcomes if curve is None else lambda _: curve)
    drawn = predicting.draw_of(answered).assumed
    return Sample(outcomes=outcomes, source=answered, accepted=accepted, drawn=drawn, sort=sort)


def read_copies(sample: Sample, policy: AbstentionPolicy, subgroups: Any) -> Sample:
    """Return decided rows to be read with and without copies; those of other subgroups are none."""
    if not policy.parts.are_given:
        return sample.with_copies
    groups = Grouping(str(policy.parts.by), subgroups, len(sample))
    grouped = replace(sample, groups=groups)
    return replace(grouped.with_copies, groups=sample.groups)


# Rows of `fit`, and rows of another kind ----------------------------------------------------------


def chose_threshold(policy: AbstentionPolicy, curve: RiskCoverageCurve) -> bool:
    """Tell whether exactly these rows chose the policy's threshold, or made its certificate."""
    digest = certificates.fingerprint(curve)
    if digest == policy.fingerprints.get("data"):
        return True
    certificate = policy.certificate
    return certificate is not None and digest == certificate.fingerprints.get("data")


def share_reused(policy: AbstentionPolicy, curve: RiskCoverageCurve) -> float | None:
    """Return the share of rows of `fit`, None where nothing can tell.

    It is that of the rows that chose the threshold or that of the rows that trained the classifier,
    whichever is larger. They are recognised by their confidence, where no other row of their table
    holds it.
    """
    shares = []
    for name in certificates.ROW_RECORDS:
        record = policy.fingerprints.get(name, "")
        share = share_recorded(record, curve.thresholds, curve.block_rows)
        if share is not None:
            shares.append(share)
    return max(shares, default=None)


def find_far(policy: AbstentionPolicy, answered: Predictions, curve: RiskCoverageCurve) -> str:
    """Say where many rows have other confidences than those that tuned the policy, "" if not."""
    quantiles = np.array(list(policy.confidence_quantiles.values()))
    just_above = np.nextafter(quantiles, np.inf)
    thresholds = np.append(quantiles, just_above)
    accepted = curve.accepted_at(thresholds)
    n_from = accepted.weight.reshape(2, -1).T
    n_below = curve.n_rows - n_from
    has_scores = answered.y_proba is not None or predicting.hold_decision_values(answered)
    name = "y_proba" if has_scores else "confidence"
    return describe_far(policy, n_below, curve.n_rows, name)
