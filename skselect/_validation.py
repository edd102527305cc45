"""Every check of user data, once. Nothing here computes; it converts or refuses.

A message names the argument, says what it was, and what would be right.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skselect._typing import BoolArray, FloatArray, IntArray, LabelArray

#: Sums of floats round; a share or a risk this close to a bound counts as reaching it.
ROUNDING = 1e-12
#: How far a row of probabilities may be from summing to one (tables are often rounded).
SUM_TOLERANCE = 1e-3
#: How far a single probability may leave [0, 1] by rounding inside a model.
RANGE_TOLERANCE = 1e-6


class InfeasibleTargetError(ValueError):
    """No threshold meets the target on the rows given.

    Attributes
    ----------
    least_target : float or None
        The smallest target that these rows could have met, where one exists. It is
        information only: to certify that target, use rows that did not choose it.
    rows_needed : int or None
        Roughly how many rows would do if their errors fell as they did here.
    """

    def __init__(
        self,
        message: str,
        *,
        least_target: float | None = None,
        rows_needed: int | None = None,
    ) -> None:
        super().__init__(message)
        self.least_target = least_target
        self.rows_needed = rows_needed


# Options ---------------------------------------------------------------------------------


def check_choice(name: str, value: Any, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`."""
    options = list(options)
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {options}, got {value!r}.")
    return value


def check_number(
    name: str,
    value: Any,
    low: float = -np.inf,
    high: float = np.inf,
    *,
    closed: str = "both",
) -> float:
    """Return `value` as a float inside the interval from `low` to `high`."""
    left = "[" if closed in ("both", "left") else "("
    right = "]" if closed in ("both", "right") else ")"
    wanted = f"{name} must be a number in {left}{low:g}, {high:g}{right}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise ValueError(f"{wanted}, got {value!r}.")  # noqa: TRY004 - one kind of error
    number = float(value)
    above = number >= low if left == "[" else number > low
    below = number <= high if right == "]" else number < high
    if not (above and below):
        raise ValueError(f"{wanted}, got {number!r}.")
    return number


def check_count(name: str, value: Any, low: int = 1) -> int:
    """Return `value` as an integer that is at least `low`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise ValueError(f"{name} must be an integer of at least {low}, got {value!r}.")
    return int(value)


def check_threshold(value: Any, name: str = "threshold") -> float:
    """Return a threshold: any number, `inf` (nothing is accepted) included, but not nan."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real) or value != value:
        raise ValueError(f"{name} must be a number (inf accepts nothing), got {value!r}.")
    return float(value)


def check_cwsa_threshold(value: Any) -> float:
    """Return a threshold for the CWSA family, which is defined on [0, 1) only."""
    if not 0 <= check_threshold(value) < 1:
        raise ValueError(
            f"threshold must lie in [0, 1) for CWSA and CWSA+ (at 1 the weight is 0/0), got "
            f"{value!r}."
        )
    return float(value)


def check_cwsa_thresholds(values: Any, name: str = "thresholds") -> FloatArray:
    """Return one or many thresholds for the CWSA family as a vector."""
    thresholds = np.atleast_1d(as_array(values, name))
    if thresholds.dtype.kind not in "fiu" or thresholds.ndim > 1 or not np.all(
        (thresholds >= 0) & (thresholds < 1)
    ):
        raise ValueError(
            f"{name} must lie in [0, 1) for CWSA and CWSA+ (at 1 the weight is 0/0), got "
            f"{values!r}."
        )
    return thresholds.astype(np.float64)


def check_interval(name: str, value: Any) -> tuple[float, float]:
    """Return two numbers with 0 <= low < high <= 1."""
    try:
        low, high = value
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be two numbers (low, high), got {value!r}.") from None
    low = check_number(f"{name}[0]", low, 0.0, 1.0, closed="left")
    return low, check_number(f"{name}[1]", high, low, 1.0, closed="right")


def reaches(values: Any, bound: float) -> Any:
    """Tell where values are at least `bound`, but for rounding."""
    return values >= bound * (1.0 - ROUNDING)


def stays_within(values: Any, bound: float) -> Any:
    """Tell where values are at most `bound`, but for rounding."""
    return values <= bound * (1.0 + ROUNDING)


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return an array, or say which argument is none."""
    if hasattr(values, "tocsr"):
        raise ValueError(f"{name} must be a dense array, got a sparse matrix; use .toarray().")
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is not a table of numbers: {error}") from error


# Labels ----------------------------------------------------------------------------------


def check_labels(values: Any, name: str = "y_true") -> LabelArray:
    """Return labels as a one-dimensional array without missing values, of one kind."""
    # numpy would turn a list such as ["a", nan] into strings without a word.
    listed = isinstance(values, list | tuple)
    labels = np.asarray(values, dtype=object) if listed else as_array(values, name)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got the shape {labels.shape}.")
    if labels.size == 0:
        raise ValueError(f"{name} is empty; at least one row is needed.")
    if labels.dtype.kind in "fcmMO" and bool(np.any(pd.isna(labels))):
        raise ValueError(f"{name} has missing values; drop or label those rows first.")
    return _plain_labels(labels, name)


def _plain_labels(labels: LabelArray, name: str) -> LabelArray:
    """Turn an object array of strings, booleans or numbers into a plain array of that kind."""
    if labels.dtype.kind != "O":
        return labels
    kinds = {
        "str" if isinstance(x, str) else "bool" if isinstance(x, bool | np.bool_) else
        "number" if isinstance(x, numbers.Real) else type(x).__name__
        for x in labels.tolist()
    }  # fmt: skip
    if len(kinds) != 1 or not kinds <= {"str", "bool", "number"}:
        raise ValueError(
            f"{name} mixes labels of different kinds ({', '.join(sorted(kinds))}); "
            "use only strings, only numbers or only booleans."
        )
    return np.array(labels.tolist())


def check_classes(labels: Any, name: str = "labels") -> LabelArray:
    """Return the classes in the order given; each may occur once."""
    classes = check_labels(labels, name)
    if len(np.unique(classes)) != len(classes):
        raise ValueError(f"{name} lists a class more than once: {classes.tolist()}.")
    return classes


def same_kind(a: LabelArray, b: LabelArray) -> bool:
    """Tell whether two label arrays can be compared (strings with strings, and so on)."""
    text = {"U", "S", "O"}
    return (a.dtype.kind in text) == (b.dtype.kind in text)


def encode_labels(labels: LabelArray, classes: LabelArray, name: str = "y_true") -> IntArray:
    """Return the position of each label among `classes`, -1 where it is none of them."""
    classes = _plain_labels(classes, "classes")
    if not same_kind(labels, classes):
        raise ValueError(
            f"{name} holds labels like {labels[:1].tolist()[0]!r}, but the classes are "
            f"{classes[:5].tolist()}: use labels of the same kind in both."
        )
    order = np.argsort(classes, kind="stable")
    ordered = classes[order]
    place = np.minimum(np.searchsorted(ordered, labels), len(classes) - 1)
    codes = np.where(ordered[place] == labels, order[place], -1)
    return codes.astype(np.int64)


def check_known(
    codes: IntArray,
    labels: LabelArray,
    classes: LabelArray,
    name: str,
    remedy: str = "Pass labels= with every class, in the order of the columns.",
) -> IntArray:
    """Return `codes` if every label is one of the classes."""
    if np.any(codes < 0):
        unknown = np.unique(labels[codes < 0])[:5].tolist()
        raise ValueError(
            f"{name} has labels that are not among the classes {classes[:10].tolist()}: "
            f"{unknown}. {remedy}"
        )
    return codes


# Numbers per row -------------------------------------------------------------------------


def check_length(name: str, values: Any, n: int, other: str = "y_true") -> None:
    """Refuse `values` unless there is one per row."""
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} rows, but {other} has {n}.")


def _check_vector(values: Any, name: str) -> FloatArray:
    try:
        if np.iscomplexobj(values):
            raise TypeError
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, got {type(values).__name__}.") from error
    if vector.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got the shape {vector.shape}.")
    if vector.size == 0:
        raise ValueError(f"{name} is empty; at least one row is needed.")
    return vector


def check_confidence(values: Any, name: str = "confidence") -> FloatArray:
    """Return one finite confidence per row, as float64."""
    confidence = _check_vector(values, name)
    if not np.all(np.isfinite(confidence)):
        raise ValueError(
            f"{name} has {int(np.sum(~np.isfinite(confidence)))} NaN or infinite values; "
            "every row needs a finite confidence."
        )
    return confidence


def check_unit_confidence(confidence: FloatArray, metric: str) -> FloatArray:
    """Refuse confidences outside [0, 1] for a metric that reads them as probabilities."""
    low, high = float(confidence.min()), float(confidence.max())
    if low < 0 or high > 1:
        raise ValueError(
            f"{metric} needs confidences in [0, 1], got values from {low:g} to {high:g}. "
            "Use 'max_proba', 'margin', 'entropy' or 'gini', or a metric that only reads the "
            "order, such as augrc_score."
        )
    return confidence


def check_loss(values: Any, name: str = "loss") -> FloatArray:
    """Return one loss per row, in [0, 1]."""
    loss = _check_vector(values, name)
    if not np.all((loss >= 0) & (loss <= 1)):
        raise ValueError(
            f"{name} must lie in [0, 1] for every row (divide a cost by its largest value), "
            f"got values from {np.min(loss):g} to {np.max(loss):g}."
        )
    return loss


def check_weight(values: Any, n: int, name: str = "sample_weight") -> FloatArray | None:
    """Return non-negative weights with a positive sum, or None."""
    if values is None:
        return None
    if isinstance(values, numbers.Real):
        values = np.full(n, float(values))
    weight = _check_vector(values, name)
    check_length(name, weight, n)
    if not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise ValueError(f"{name} must hold finite numbers that are not negative.")
    if not np.any(weight > 0):
        raise ValueError(f"{name} is zero for every row; at least one row must count.")
    if float(np.max(weight)) > np.finfo(np.float64).max / len(weight):
        raise ValueError(f"{name} is too large to be added up; divide it by a constant.")
    return weight


def refuse_weights(weight: FloatArray | None, purpose: str) -> None:
    """Refuse weights that are not constant where rows must be independent draws."""
    if weight is not None and np.any(weight != weight[0]):
        raise ValueError(
            f"sample_weight: {purpose} counts independent rows, and a weight is not a number of "
            "independent rows. Leave sample_weight out, or use a metric objective."
        )


# Probabilities ---------------------------------------------------------------------------


def column_names(table: Any) -> list[Any] | None:
    """Return the column names of a pandas or polars frame, None for anything else."""
    columns = getattr(table, "columns", None)
    return None if columns is None or getattr(table, "ndim", 2) != 2 else list(columns)


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
            f"{name} must lie in [0, 1], got values from {low:g} to {high:g}. Turn logits or "
            "decision values into probabilities first."
        )
    gap = np.abs(proba.sum(axis=1, dtype=np.float64) - 1.0)
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
    return _check_vector(raw, name)


def _holds_floats(raw: LabelArray) -> bool:
    return raw.dtype.kind == "O" and all(isinstance(x, float | np.floating) for x in raw.tolist())


def resolve_pos_label(classes_seen: LabelArray, pos_label: Any) -> Any:
    """Return the class that a one-dimensional probability belongs to, as scikit-learn does."""
    if pos_label is not None:
        if len(classes_seen) > 1 and pos_label not in classes_seen.tolist():
            raise ValueError(
                f"pos_label={pos_label!r} is not one of the classes {classes_seen[:5].tolist()}."
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


def named_classes(names: list[Any], like: LabelArray) -> LabelArray:
    """Return column names as classes; text such as "2" is a number where the labels are."""
    classes = check_classes(names, "y_proba.columns")
    if classes.dtype.kind in "US" and like.dtype.kind in "iuf":
        try:
            return classes.astype(np.float64).astype(like.dtype)
        except ValueError:
            return classes
    return classes


def match_columns(names: list[Any], classes: LabelArray, name: str = "y_proba") -> list[int]:
    """Return where each class stands among the columns of a frame, matched by name."""
    wanted = classes.tolist()
    position = {column: i for i, column in enumerate(names)}
    if not all(label in position for label in wanted):
        position = {str(column): i for i, column in enumerate(names)}
        wanted = [str(label) for label in wanted]
    if len(names) != len(wanted) or not all(label in position for label in wanted):
        raise ValueError(
            f"{name}: the columns {names} do not name the classes {classes.tolist()}. Rename the "
            "columns to the classes, or pass an array with its columns in the order of labels=."
        )
    return [position[label] for label in wanted]


# Estimators and their results ------------------------------------------------------------


def check_trainable(n: int) -> None:
    """Refuse to train on a single row: many classifiers would return nan without a word."""
    if n < 2:
        raise ValueError(f"X has one sample (n_samples={n}); a classifier needs at least two.")


def check_argmax_decision(
    y_pred: LabelArray, y_proba: FloatArray, classes: LabelArray, estimator: Any
) -> None:
    """Refuse a classifier whose `predict` is not the class of the largest probability."""
    codes = encode_labels(check_labels(y_pred, "predict(X)"), classes, "predict(X)")
    largest = y_proba.max(axis=1)
    chosen = np.where(codes >= 0, y_proba[np.arange(len(codes)), codes], -np.inf)
    # Rounding inside a model can part a tie in two ways; a moved cut-off differs by far more.
    other: BoolArray = chosen < largest - RANGE_TOLERANCE
    if np.any(other):
        raise ValueError(
            f"estimator: {type(estimator).__name__}.predict differs from the class of the largest "
            f"probability in {int(other.sum())} of {len(codes)} rows (a tuned cut-off inside it, "
            "or probabilities that were fitted apart from the decision). Its confidence would not "
            "belong to its answer. Pass the classifier without the cut-off, for example "
            "TunedThresholdClassifierCV's inner estimator."
        )


def check_abstain_label(label: Any, classes: LabelArray) -> Any:
    """Return the label for "no answer": outside the classes, and of a kind they can hold."""
    plain = _plain_labels(np.asarray(classes), "classes")
    kind = plain.dtype.kind
    if isinstance(label, str) and label == "auto":
        if kind in "iuf" and not set(plain.tolist()) <= {-1, 1}:
            label = -1
        elif kind in "US":
            label = "abstain"
        else:
            raise ValueError(
                f"abstain_label='auto' has no safe choice for the classes {plain.tolist()}: pass a "
                "label of your own that is not one of them, for example abstain_label=-9."
            )
    if kind in "US":
        if not isinstance(label, str):
            raise ValueError(f"abstain_label must be a string like the classes, got {label!r}.")
    elif isinstance(label, str) or not isinstance(label, numbers.Real):
        raise ValueError(f"abstain_label must be a number like the classes, got {label!r}.")
    if label in plain.tolist():
        raise ValueError(
            f"abstain_label={label!r} is one of the classes {plain[:10].tolist()}; choose another."
        )
    if kind in "iuf" and not _holds(plain.dtype, label):
        raise ValueError(
            f"abstain_label={label!r} cannot be stored in the classes' dtype {plain.dtype}; choose "
            "a label that can, or cast y, for example y.astype('int64')."
        )
    return label


def _holds(dtype: np.dtype[Any], label: Any) -> bool:
    if label != label:
        return dtype.kind == "f"
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return float(label).is_integer() and info.min <= label <= info.max
    return bool(dtype.type(label) == label)
