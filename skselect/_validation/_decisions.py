"""How answers are decided, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from skselect._typing import FloatArray, LabelArray
from skselect._validation._arrays import as_array
from skselect._validation._proba import match_columns


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
    if hasattr(values, "iloc"):
        remedy = "or pass an array in the order of the classes"
        rows, columns = (
            match_columns(list(names), classes, "cost_matrix", remedy)
            for names in (values.index, values.columns)
        )
        values = values.iloc[rows, columns]
    costs = as_array(values, "cost_matrix")
    shape = (len(classes), len(classes))
    if costs.dtype.kind not in "iuf" or costs.shape != shape:
        raise ValueError(
            f"cost_matrix must hold numbers of shape {shape}, one row per true class and one "
            f"column per answer, in the order {classes[:10].tolist()}; got the shape {costs.shape} "
            f"and the dtype {costs.dtype}."
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
