"""How answers are decided, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from skselect._typing import FloatArray, LabelArray
from skselect._validation._arrays import as_array
from skselect._validation._options import check_number
from skselect._validation._proba import column_names, match_columns


def check_has_costs(decision: str, cost_matrix: Any) -> None:
    """Refuse to minimise a cost that was not given."""
    if decision == "min_cost" and cost_matrix is None:
        raise ValueError(
            "cost_matrix is missing: decision='min_cost' needs what each answer costs, rows true "
            "classes and columns answers, for example cost_matrix=[[0, 1], [10, 0]]."
        )


def check_given(value: Any, name: str, purpose: str) -> Any:
    """Refuse None where something is needed after all."""
    if value is None:
        raise ValueError(f"{name} is missing: {purpose} needs it.")
    return value


def check_cost_matrix(values: Any, classes: LabelArray) -> FloatArray:
    """Return what each answer costs: (K, K), finite, none negative, not all zero."""
    names = column_names(values)
    if names is not None and not hasattr(values, "iloc"):  # polars: rows as the columns
        values = pd.DataFrame(np.asarray(values), index=names, columns=names)
    if hasattr(values, "iloc"):
        remedy = "or pass an array in the order of the classes"
        rows, columns = (
            match_columns(list(labels), classes, "cost_matrix", remedy)
            for labels in (values.index, values.columns)
        )
        values = values.iloc[rows, columns]
    costs = check_costs(values)
    shape = (len(classes), len(classes))
    if costs.shape != shape:
        raise ValueError(
            f"cost_matrix must have the shape {shape}, one row per true class and one column per "
            f"answer, in the order {classes[:10].tolist()}; got the shape {costs.shape}."
        )
    return costs


def check_costs(values: Any) -> FloatArray:
    """Return costs: a square table, finite, none negative, not all zero."""
    costs = as_array(values, "cost_matrix")
    square = costs.ndim == 2 and costs.shape[0] == costs.shape[1]
    if costs.dtype.kind not in "iuf" or not square or costs.size == 0:
        raise ValueError(
            "cost_matrix must hold numbers, one row per true class and one column per answer, got "
            f"the shape {costs.shape} and the dtype {costs.dtype}."
        )
    if not np.all(np.isfinite(costs)) or np.any(costs < 0) or not np.any(costs > 0):
        raise ValueError(
            "cost_matrix must hold finite costs of at least 0, some above 0 (add a constant where "
            f"there are gains), got values from {np.min(costs):g} to {np.max(costs):g}."
        )
    return costs.astype(np.float64)


def check_confidence_fits(confidence: Any, decision: str, cost_matrix: Any) -> None:
    """Refuse a named confidence that does not belong to the answer."""
    if confidence == "expected_cost" and cost_matrix is None:
        raise ValueError("confidence='expected_cost' needs a cost_matrix.")
    if decision != "argmax" and confidence in ("max_proba", "margin", "entropy", "gini"):
        raise ValueError(
            f"confidence={confidence!r} is about the most probable class, but "
            f"decision={decision!r} may answer with another one. Use 'chosen_proba', "
            "'expected_cost' (with a cost_matrix), or 'auto'."
        )


def check_scope_decides(scope: str, decision: str) -> None:
    """Refuse to calibrate a confidence in answers that are not the most probable class."""
    if scope == "confidence" and decision != "argmax":
        raise ValueError(
            "calibration_scope='confidence' learns how often the most probable class is right, "
            f"which decision={decision!r} may not answer with; use 'probabilities'."
        )


def refuse_answers(y_pred: Any, decision: str) -> None:
    """Refuse an estimator's answers where another rule decides."""
    if y_pred is not None:
        raise ValueError(
            f"y_pred goes with decision='estimator'; decision={decision!r} finds its own answers."
        )


def check_is_predictions(source: Any, purpose: str) -> Any:
    """Refuse what knows no classes where classes are needed."""
    if not hasattr(source, "y_pred"):
        raise ValueError(
            f"{purpose} needs Predictions, got {type(source).__name__}; build them with "
            "Predictions.from_proba(y_true, y_proba)."
        )
    return source


def check_same_decision(policy: str, predictions: str) -> None:
    """Refuse predictions without the estimator's own answers where a policy keeps those."""
    if policy == "estimator" and predictions != "estimator":
        raise ValueError(
            "predictions: the policy keeps the classifier's own answers; build them with "
            "Predictions.from_proba(y_true, y_proba, decision='estimator', y_pred=...)."
        )


def check_loss_of_metric(objective: str, loss: Any, metrics: Iterable[str]) -> None:
    """Refuse costs where a metric counts errors."""
    if objective in metrics and isinstance(loss, str) and loss == "cost":
        raise ValueError(
            f"loss='cost' does not go with objective={objective!r}, which counts errors; use "
            "loss='zero_one' (what 'auto' takes here), or objective='risk' or 'cost'."
        )


def check_chow(confidence: Any, loss: Any) -> None:
    """Refuse Chow's rule for a named confidence that is no chance of being right."""
    honest = ("expected_cost",) if loss == "cost" else ("max_proba", "chosen_proba")
    if isinstance(confidence, str) and confidence not in honest:
        raise ValueError(
            f"method='chow' takes the threshold 1 - target, which is only right for a confidence "
            f"that is one minus the expected loss: one of {list(honest)} for this loss, not "
            f"{confidence!r}. Use method='empirical', or another confidence."
        )


def check_plan(method: str, coverage: float) -> None:
    """Refuse to plan for a coverage at which a sequence has not begun."""
    if method == "fixed_sequence" and coverage < 0.25:
        raise ValueError(
            f"coverage must be at least 0.25 for method='fixed_sequence', which begins there, got "
            f"{coverage:g}; plan with method='combined'."
        )


def check_largest_weight(value: Any, method: str) -> float | None:
    """Return what no importance weight is ever larger than."""
    if value is None:
        return None
    if method != "betting":
        raise ValueError(f"largest_weight goes with method='betting', not with {method!r}.")
    return check_number("largest_weight", value, 0.0, math.inf, closed="neither")


def check_weights_within(weight: FloatArray, largest: float) -> None:
    """Refuse weights above what was said to be the largest."""
    if np.any(weight > largest):
        raise ValueError(
            f"largest_weight={largest:g}, but sample_weight goes up to {np.max(weight):g}."
        )


def check_calibrated_decisions(response: str, calibration: Any) -> None:
    """Refuse decision values that nothing turns into probabilities."""
    if response == "decision_function" and calibration is None:
        raise ValueError(
            "response='decision_function' needs a calibration, which turns decision values into "
            "probabilities."
        )
