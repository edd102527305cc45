"""Class probabilities, as a matrix or as the column of one class."""

from __future__ import annotations

from typing import Any

import numpy as np

from skselect._lib.arrays import row_sums
from skselect._lib.checks import as_array, shown
from skselect._lib.checks.rows import check_vector
from skselect._lib.typing import FloatArray, LabelArray

#: How far a row of probabilities may be from summing to one (tables are often rounded).
SUM_TOLERANCE = 1e-3
#: How far a single probability may leave [0, 1] by rounding inside a model.
RANGE_TOLERANCE = 1e-6


def check_proba(values: Any, name: str = "y_proba") -> FloatArray:
    """Return probabilities, one row per case and one column per class.

    The dtype float32 is kept (the numbers are compared as float64 later); other dtypes
    become float64.
    """
    proba = as_array(values, name)
    if proba.dtype not in (np.float32, np.float64):
        if proba.dtype.kind not in "fiuO":
            raise ValueError(f"{name} must hold probabilities, got {proba.dtype} values.")
        try:
            proba = proba.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold probabilities: {error}.") from error
    if proba.ndim != 2 or proba.shape[1] == 0:
        raise ValueError(
            f"{name} must have one row per case and one column per class, got {proba.shape}."
        )
    if proba.shape[0] == 0:
        raise ValueError(f"{name} is empty; at least one row is needed.")
    return _check_simplex(proba, name)


def _check_simplex(proba: Any, name: str) -> Any:
    low, high = float(np.min(proba)), float(np.max(proba))
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"{name} has NaN or infinite values.")
    if low < -RANGE_TOLERANCE or high > 1 + RANGE_TOLERANCE:
        raise ValueError(
            f"{name} must lie in [0, 1], got values from {low:g} to {high:g}. "
            + (
                "Divide percentages by 100."
                if low >= 0 and 1 < high <= 100
                else "Turn logits or decision values into probabilities first."
            )
        )
    gap = np.abs(row_sums(proba) - 1.0)
    if float(gap.max()) > SUM_TOLERANCE:
        row = int(np.argmax(gap))
        raise ValueError(
            f"{name}: each row must sum to one, row {row} sums to {proba[row].sum():g}. Pass one "
            "column for every class, or divide each row by its sum."
        )
    return np.clip(proba, 0, 1) if low < 0 or high > 1 else proba


def check_has_proba(proba: FloatArray | None, metric: str) -> FloatArray:
    """Return the probabilities of predictions, for a metric that needs those of every class."""
    if proba is None:
        raise ValueError(
            f"{metric} reads the probability of every class, but these predictions hold labels and "
            "a confidence only; build them with Predictions.from_proba(y_true, y_proba)."
        )
    return proba


def check_positive_proba(values: Any, name: str = "y_proba") -> FloatArray:
    """Return the probability of one class per row; refuse what looks like labels."""
    raw = as_array(values, name)
    if raw.dtype.kind in "iubUSO" and not _holds_floats(raw):
        raise ValueError(
            f"{name} is one-dimensional and holds {raw.dtype} values: these look like labels, not "
            "probabilities. Pass predict_proba(X), or float probabilities of pos_label. (Inside "
            "TunedThresholdClassifierCV a metric only sees labels: use ThresholdTuner instead.)"
        )
    return check_vector(raw, name)


def _holds_floats(raw: LabelArray) -> bool:
    return raw.dtype.kind == "O" and all(isinstance(x, float | np.floating) for x in raw.tolist())


def resolve_pos_label(classes_seen: LabelArray, pos_label: Any) -> Any:
    """Return the class that a one-dimensional probability belongs to, as scikit-learn does."""
    if pos_label is not None:
        if len(classes_seen) > 1 and pos_label not in classes_seen.tolist():
            raise ValueError(
                f"pos_label={shown(pos_label)} is not one of the classes "
                f"{classes_seen[:5].tolist()}."
            )
        return pos_label
    if classes_seen.dtype.kind in "biuf" and (
        set(classes_seen.tolist()) <= {0, 1} or set(classes_seen.tolist()) <= {-1, 1}
    ):
        return 1
    raise ValueError(
        f"pos_label must name the class whose probability y_proba holds (classes: "
        f"{classes_seen[:5].tolist()}). Pass pos_label=..., or one column per class."
    )


def refuse_one_row_or_two(values: Any, n_classes: int, name: str = "y_proba") -> None:
    """Refuse two bare numbers for two classes: they may be one row or two."""
    table = values if hasattr(values, "shape") else as_array(values, name)
    if n_classes == 2 and tuple(table.shape) == (2,):
        first, second = as_array(values, name)
        raise ValueError(
            f"{name} is [{first!s}, {second!s}]: that may be one row with both classes, or two "
            f"rows with the second class. One row: pass [[{first!s}, {second!s}]]; two rows: pass "
            f"a column, [[{first!s}], [{second!s}]]."
        )


def match_columns(
    names: list[Any],
    classes: LabelArray,
    name: str = "y_proba",
    remedy: str = "or pass an array with its columns in the order of labels=",
) -> list[int]:
    """Return the position of each class among the columns of a table, by name."""
    wanted = classes.tolist()
    position = {column: i for i, column in enumerate(names)}
    if not all(label in position for label in wanted):
        position = {str(column): i for i, column in enumerate(names)}
        wanted = [str(label) for label in wanted]
    missing = [label for label in wanted if label not in position]
    if missing:
        raise ValueError(
            f"{name}: the columns {names[:20]} do not name the classes {classes[:20].tolist()}: "
            f"{missing[:20]} are missing. Rename the columns to the classes, {remedy}."
        )
    if len(names) != len(wanted):
        extra = [column for column in position if column not in wanted]
        raise ValueError(
            f"{name}: beside the classes {classes[:20].tolist()} there are the columns "
            f"{extra[:20]}. Leave them out, {remedy}."
        )
    return [position[label] for label in wanted]


def check_class_columns(n_columns: int, classes: LabelArray, name: str, remedy: str) -> None:
    """Refuse a table that does not have one column per class."""
    if n_columns != len(classes):
        raise ValueError(
            f"{name} has {n_columns} columns for the {len(classes)} classes "
            f"{classes[:10].tolist()}{remedy}."
        )
