"""Class probabilities, as a matrix or as the column of one class."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from skselect._rowwise import row_sums
from skselect._typing import FloatArray, LabelArray
from skselect._validation._arrays import as_array, shown
from skselect._validation._labels import check_classes, check_two_classes
from skselect._validation._rows import check_vector

#: How far a row of probabilities may be from summing to one (tables are often rounded).
SUM_TOLERANCE = 1e-3
#: How far a single probability may leave [0, 1] by rounding inside a model.
RANGE_TOLERANCE = 1e-6


def column_names(table: Any) -> list[Any] | None:
    """Return the column names of a pandas, polars or Arrow table, None for anything else."""
    arrow = hasattr(type(table), "column_names")  # whose `columns` are the data
    columns = table.column_names if arrow else getattr(table, "columns", None)
    return None if columns is None or getattr(table, "ndim", 2) != 2 else list(columns)


def take_columns(table: Any, names: list[Any]) -> Any:
    """Return some columns of a pandas, polars or Arrow table."""
    return table.select(names) if hasattr(type(table), "select") else table[names]


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


def check_has_proba(proba: FloatArray | None, metric: str) -> FloatArray:
    """Refuse predictions without probabilities where a metric reads those of every class."""
    if proba is None:
        raise ValueError(
            f"{metric} reads the probability of every class, but these predictions hold labels and "
            "a confidence only; build them with Predictions.from_proba(y_true, y_proba)."
        )
    return proba


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


def refuse_bare_row(values: LabelArray, n_classes: int) -> None:
    """Refuse a single value, and for more than two classes numbers that stand in no row."""
    if values.ndim == 0 or (values.ndim == 1 and n_classes > 2 and len(values)):
        raise ValueError(
            f"y_proba needs a row per case with {n_classes} numbers, one for each class, got the "
            f"shape {values.shape}; pass one case as [[...]]."
        )


def refuse_one_row_or_two(values: Any, n_classes: int, name: str = "y_proba") -> None:
    """Refuse two bare numbers for two classes: nobody knows whether they are one row or two."""
    table = values if hasattr(values, "shape") else as_array(values, name)
    if n_classes == 2 and tuple(table.shape) == (2,):
        first, second = as_array(values, name)
        raise ValueError(
            f"{name} is [{first!s}, {second!s}]: that may be one row with both classes, or two "
            f"rows with the second class. One row: pass [[{first!s}, {second!s}]]; two rows: pass "
            f"a column, [[{first!s}], [{second!s}]]."
        )


def check_one_of_two(pos_label: Any, classes: LabelArray) -> None:
    """Refuse a positive class, where one is given, that is not one of two classes."""
    if pos_label is not None:
        check_two_classes(classes, f"pos_label={shown(pos_label)}", "; leave it out")
        resolve_pos_label(classes, pos_label)


def resolve_one_class(classes: LabelArray, pos_label: Any) -> Any:
    """Return the class to set against the rest: `pos_label`, or 1 where classes are numbers."""
    if pos_label is None and (len(classes) != 2 or classes.dtype.kind not in "biuf"):
        raise ValueError(
            f"pos_label must name the class to set against the rest, one of "
            f"{classes[:20].tolist()}."
        )
    return resolve_pos_label(classes, pos_label)


def named_classes(names: list[Any], like: LabelArray) -> LabelArray:
    """Return column names as classes; text such as "2" is a number where the labels are."""
    classes = check_classes(names, "y_proba.columns")
    if classes.dtype.kind in "US" and like.dtype.kind in "iuf":
        try:
            return classes.astype(np.float64).astype(like.dtype)
        except ValueError:
            return classes
    return classes


def match_columns(
    names: list[Any],
    classes: LabelArray,
    name: str = "y_proba",
    remedy: str = "or pass an array with its columns in the order of labels=",
) -> list[int]:
    """Return where each class stands among the columns of a frame, matched by name."""
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


def check_columns(
    columns: Any, names: list[Any] | None, shape: tuple[int, ...], classes: LabelArray
) -> list[int]:
    """Return the positions of the columns that hold the classes."""
    n_classes = len(classes)
    wanted = list(columns) if not isinstance(columns, str) else [columns]
    if len(wanted) != n_classes and (len(wanted), n_classes) != (1, 2):
        raise ValueError(f"columns names {len(wanted)} columns for {n_classes} classes.")
    known = list(range(shape[1])) if names is None else names
    if len(set(wanted)) != len(wanted):
        raise ValueError(f"columns={shown(wanted)} names a column twice: one class, one column.")
    missing = [column for column in wanted if column not in known]
    if missing:
        raise ValueError(f"columns: X has no {shown(missing)}; it has {known[:20]}.")
    given, labels = [str(c) for c in wanted], [str(label) for label in classes.tolist()]
    if names is not None and given != labels and sorted(given) == sorted(labels):
        raise ValueError(
            f"columns={shown(wanted)} names the classes {classes.tolist()} in another order, so "
            "that answers would be swapped. List the columns in the order of classes."
        )
    return [known.index(column) for column in wanted]


def check_matrix(values: Any, name: str) -> FloatArray:
    """Return finite numbers (or minus infinity) of shape (n, K) as float64."""
    raw = as_array(values, name)
    try:
        matrix = raw.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}.") from error
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2 or matrix.shape[0] == 0:
        raise ValueError(f"{name} must have one row per case, got the shape {raw.shape}.")
    if np.any(np.isnan(matrix)) or np.any(matrix == np.inf):
        raise ValueError(f"{name} has NaN or infinite values.")
    return matrix


def warn_like_proba(values: FloatArray, name: str) -> None:
    """Warn where logits look like probabilities."""
    inside = np.all((values >= 0.0) & (values <= 1.0))
    if values.shape[1] > 1 and inside and np.allclose(values.sum(axis=1), 1.0, atol=1e-6):
        warnings.warn(
            f"{name} looks like probabilities: all values lie in [0, 1] and every row sums to one. "
            "As logits they say that all classes are nearly alike; use kind='proba'.",
            stacklevel=4,
        )


def check_log_proba(values: FloatArray, name: str) -> FloatArray:
    """Refuse logarithms of probabilities above 0, but for rounding."""
    highest = float(np.max(values))
    if highest > RANGE_TOLERANCE:
        raise ValueError(
            f"{name} must hold logarithms of probabilities, none above 0, got values up to "
            f"{highest:g}; logits need kind='logit'."
        )
    return np.minimum(values, 0.0)
