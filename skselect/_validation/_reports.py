"""What a report is asked about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skselect._typing import IntArray, LabelArray
from skselect._validation._arrays import shown


def check_any_model(models: Mapping[Any, Any]) -> None:
    """Refuse a mapping without models."""
    if not models:
        raise ValueError("y_proba is an empty mapping; it must hold at least one model by name.")
    names = list(map(str, models))
    if len(set(names)) < len(names):
        raise ValueError(f"y_proba: each model needs a name of its own, got {shown(list(models))}.")


def refuse_second_truth(y_true: Any) -> None:
    """Refuse true labels beside Predictions, which hold them."""
    if y_true is not None:
        raise ValueError("y_true: Predictions hold the true labels already; pass y_true=None.")


def check_same_rows(tables: Mapping[str, tuple[IntArray, LabelArray]]) -> IntArray:
    """Return the true classes, the same for all models."""
    (first, (truth, classes)), *others = tables.items()
    for name, (other, other_classes) in others:
        if not (np.array_equal(truth, other) and np.array_equal(classes, other_classes)):
            raise ValueError(
                f"y_proba: {first!r} and {name!r} were judged on different rows or classes; a "
                "comparison needs the same rows in the same order."
            )
    return truth


def check_same_classes(policy: LabelArray, table: LabelArray, name: str) -> None:
    """Refuse predictions of other classes than the policy's."""
    if policy.tolist() != table.tolist():
        raise ValueError(
            f"policy: it is for the classes {policy.tolist()}, but the predictions of {name!r} are "
            f"for {table.tolist()}; pass labels= in the order of the policy's."
        )


def check_reads_proba(response: str) -> None:
    """Refuse a policy for decision values where probabilities are reported on."""
    if response != "predict_proba":
        raise ValueError(
            "policy: it reads decision values, and a report is about probabilities; pass the "
            "calibrated ones, predict_proba(X), with threshold= instead of the policy."
        )


def check_own_answers(policy: str, given: str) -> None:
    """Refuse answers of another kind than those the policy lets pass."""
    if policy == "estimator" and given != "estimator":
        raise ValueError(
            "policy: it is about the estimator's own answers; pass Predictions.from_proba(..., "
            "decision='estimator', y_pred=...) with y_true=None."
        )


def refuse_threshold_and_policy(threshold: float | None) -> None:
    """Refuse a threshold beside a policy, which has its own."""
    if threshold is not None:
        raise ValueError("threshold: a policy has its own; pass one of the two.")


def check_policies(policies: Mapping[Any, Any], names: list[str], kind: type[Any]) -> None:
    """Refuse policies that belong to no model, and what is no policy."""
    if set(policies) != set(names):
        raise ValueError(
            f"policy: a mapping needs one for each model of {names}, got "
            f"{shown(list(policies))}; None stands for a model without a policy."
        )
    for name, policy in policies.items():
        if policy is not None and not isinstance(policy, kind):
            raise ValueError(
                f"policy: that of {name!r} must be an AbstentionPolicy, such as policy_ of a "
                f"ThresholdTuner, got {type(policy).__name__}."
            )
