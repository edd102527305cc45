"""How answers are decided, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skselect._typing import FloatArray, LabelArray
from skselect._validation._arrays import as_array
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
    if hasattr(values, "iloc"):
        remedy = "or pass an array in the order of the classes"
        rows, columns = (
            match_columns(list(names), classes, "cost_matrix", remedy)
            for names in (values.index, values.columns)
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


def check_subgroup_key(key: Any) -> Any:
    """Return a subgroup as plain values that a JSON file can hold."""
    if isinstance(key, tuple):
        return tuple(check_subgroup_key(part) for part in key)
    plain = key.item() if isinstance(key, np.generic) else key
    if not isinstance(plain, str | int | float | bool):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            "subgroups must be strings, numbers or booleans, so that a policy can be saved, got "
            f"{key!r} of type {type(key).__name__}."
        )
    return plain


def check_among(among: Any, classes: LabelArray) -> tuple[str, Any]:
    """Return which rows a promise is about: ("predicted" or "true", class)."""
    pair = isinstance(among, tuple | list) and len(among) == 2
    if not pair or among[0] not in ("predicted", "true") or among[1] not in classes.tolist():
        raise ValueError(
            "among must be ('predicted', label) or ('true', label) with one of the classes "
            f"{classes[:10].tolist()}, got {among!r}."
        )
    return among[0], among[1]


def refuse_among(among: Any, other: str) -> None:
    """Refuse a promise about some rows where there is one per subgroup."""
    if among is not None:
        raise ValueError(f"among does not go with {other}, which has a promise of its own each.")


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


def check_group_columns(group_by: Any, X: Any) -> Any:
    """Return the columns of X that hold subgroups."""
    several = isinstance(group_by, list | tuple)
    wanted = list(group_by) if several else [group_by]
    names = column_names(X)
    known = list(range(np.shape(X)[1])) if names is None and np.ndim(X) == 2 else names or []
    missing = [column for column in wanted if column not in known]
    if missing or not wanted:
        raise ValueError(
            f"group_by={group_by!r}: X has no column {missing}; it has {known[:20]}. Pass columns "
            "of X, a function of X, or 'predicted_class'."
        )
    if names is None:
        return pd.DataFrame({column: np.asarray(X)[:, column] for column in wanted})
    return X[wanted]
