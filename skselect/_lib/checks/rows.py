"""What has one entry per row: labels, confidence, loss, weight, subgroup, class probabilities."""

from __future__ import annotations

import math
import numbers
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from enum import Enum
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from pandas.api.types import is_object_dtype

from skselect._lib import arrays
from skselect._lib.checks import did_you_mean, shown, warn_user
from skselect._lib.decide import (
    FEW,
    RANGE_TOLERANCE,
    SPAN,
    SUM_TOLERANCE,
    as_floats,
    plain_value,
    row_max,
    spread,
)
from skselect.exceptions import ArgumentError


def label_array(values: Any, name: str) -> arrays.LabelArray:
    """Return labels as an array that keeps the type of each."""
    # numpy would silently turn the list ["a", nan] into strings, and [True, 2] into numbers.
    if hasattr(values, "__array__") or hasattr(values, "__dlpack__") or hasattr(values, "tocsr"):
        return arrays.as_array(values, name)
    arrays.refuse_name(values, name)
    return np.asarray(values, dtype=object)


def check_labels(values: Any, name: str = "y_true") -> arrays.LabelArray:
    """Return labels as a one-dimensional array without missing values, of one kind."""
    labels = label_array(values, name)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    check_one_per_row(labels, name)
    if labels.dtype.kind in "fcmMO" and bool(np.any(pd.isna(labels))):
        raise ValueError(f"{name} has missing values; drop or label those rows first.")
    return plain_labels(labels, name)


def check_listed_labels(
    values: Any, name: str = "y_true"
) -> tuple[arrays.LabelArray, arrays.IntArray | None]:
    """Return checked labels; those of a Categorical once each, and which of them each row has."""
    kind = getattr(values, "dtype", None)
    if not isinstance(kind, pd.CategoricalDtype):
        return check_labels(values, name), None
    codes = getattr(values, "array", values).codes
    if codes.min(initial=0) < 0:  # a missing label
        return check_labels(values, name), None
    counts = np.bincount(codes, minlength=len(kind.categories))
    occurs = counts > 0
    labels = check_labels(kind.categories[occurs], name)
    position = np.cumsum(occurs) - 1
    return labels, position.take(codes)


def plain_labels(labels: arrays.LabelArray, name: str) -> arrays.LabelArray:
    """Turn an array of objects or of StringDType into a plain one, of one kind of labels.

    Members of an Enum count by their value, strings of a subclass by what they are equal to.
    """
    if labels.dtype.kind == "S":
        _refuse_kind("bytes", name)
    if labels.dtype.kind in "cmMV":
        _refuse_kind(labels.dtype.name, name)
    if labels.dtype.kind not in "OT":
        return labels
    objects = labels.tolist()
    types = set(map(type, objects))
    if any(map(_is_dressed, types)):
        objects = [plain_value(label) for label in objects]
        types = set(map(type, objects))
    kinds = {_kind_of_label(cls) for cls in types}
    if len(kinds) != 1:
        raise ValueError(
            f"{name} mixes labels of different kinds ({', '.join(sorted(kinds))}); "
            "use only strings, only numbers or only booleans."
        )
    kind = kinds.pop()
    if kind not in ("str", "bool", "number"):
        _refuse_kind(kind, name)
    plain = np.array(objects)
    if plain.dtype == object:
        raise ValueError(
            f"{name} holds fractions, or whole numbers of more than 64 bits; pass them as strings."
        )
    _check_given_back(objects, name)
    return plain


def _is_dressed(cls: type) -> bool:
    """Tell whether labels of a type may print other text than they are equal to."""
    return issubclass(cls, Enum) or (issubclass(cls, str) and cls is not str)


def _check_given_back(labels: list[Any], name: str) -> None:
    """Refuse labels that an array cannot hold as they are, such as text that ends with NUL."""
    distinct = list(set(labels))
    stored = np.array(distinct)
    for label, back in zip(distinct, stored.tolist(), strict=True):
        if back != label:
            raise ValueError(
                f"{name} holds {label!r}, which an array of {stored.dtype} would turn into "
                f"{back!r}; give the classes plain names, such as 'a' and 'b'."
            )


def _kind_of_label(cls: type) -> str:
    """Return which labels are alike: strings, booleans, numbers, or those of another type."""
    if issubclass(cls, str):
        return "str"
    if issubclass(cls, bool | np.bool_):
        return "bool"
    if issubclass(cls, numbers.Real):
        return "number"
    return cls.__name__


def _refuse_kind(kind: str, name: str) -> NoReturn:
    """Refuse labels that are neither strings, numbers nor booleans."""
    raise ValueError(f"{name} holds labels of the kind {kind!r}; use strings, numbers or booleans.")


def check_classes(labels: Any, name: str = "labels") -> arrays.LabelArray:
    """Return the classes in the order given; each may occur once."""
    classes = check_labels(labels, name)
    n_distinct = len(np.unique(classes))
    if n_distinct != len(classes):
        raise ValueError(f"{name} lists a class more than once: {classes[:20].tolist()}.")
    text = "".join(map(str, classes.tolist()))
    if re.search("[\ud800-\udfff]", text):  # pandas fails on it
        raise ValueError(f"{name} holds half a character (a surrogate): {classes[:20].tolist()}.")
    return classes


def same_kind(a: arrays.LabelArray, b: arrays.LabelArray) -> bool:
    """Tell whether two label arrays can be compared (strings with strings, and so on)."""
    is_text = a.dtype.kind in "US"
    return is_text == (b.dtype.kind in "US")


#: Whole numbers nearer to zero than this are looked up in a table, not sorted.
_TABLE = 1 << 12


def _fit_table(labels: arrays.LabelArray) -> bool:
    """Tell whether labels are whole numbers near zero, or booleans."""
    if labels.dtype.kind not in "biu" or len(labels) == 0:
        return False
    lowest = int(labels.min())
    highest = int(labels.max())
    return lowest >= -_TABLE and highest < _TABLE


def distinct_labels(labels: arrays.LabelArray) -> arrays.LabelArray:
    """Return the labels that occur, ascending, each once."""
    if not _fit_table(labels):
        return np.unique(labels)
    low = int(labels.min())
    n_numbers = int(labels.max()) - low + 1
    counts = np.zeros(n_numbers, dtype=np.int64)
    for rows in arrays.spans(len(labels)):
        position = labels[rows].astype(np.int64) - low
        counts += np.bincount(position, minlength=n_numbers)
    occurring = np.flatnonzero(counts) + low
    return occurring.astype(labels.dtype)


def encode_labels(
    labels: arrays.LabelArray, classes: arrays.LabelArray, name: str = "y_true"
) -> arrays.IntArray:
    """Return the position of each label among `classes`, -1 where it is none of them."""
    classes = plain_labels(classes, "classes")
    if not same_kind(labels, classes):
        example = labels[:1].item()
        raise ValueError(
            f"{name} holds labels like {example!r}, but the classes are "
            f"{classes[:5].tolist()}: use labels of the same kind in both."
        )
    if _fit_table(labels) and _fit_table(classes):
        table = np.full(2 * _TABLE, -1, dtype=np.int64)  # negative numbers count from its end
        table[classes.astype(np.int64)] = np.arange(len(classes))
        numbers_of_rows = labels.astype(np.int64, copy=False)
        return table.take(numbers_of_rows)
    order = np.argsort(classes, kind="stable")
    ordered = classes[order]
    place = np.searchsorted(ordered, labels)
    place = np.minimum(place, len(classes) - 1)
    codes = np.where(ordered[place] == labels, order[place], -1)
    return codes.astype(np.int64)


def encode_known(
    labels: arrays.LabelArray,
    classes: arrays.LabelArray,
    name: str = "y_true",
    remedy: str = "Pass labels= with every class, in the order of the columns.",
) -> arrays.IntArray:
    """Return the position of each label among `classes`; refuse a label that is none of them."""
    codes = encode_labels(labels, classes, name)
    if codes.min(initial=0) < 0:
        unknown = np.unique(labels[codes < 0])
        raise ValueError(
            f"{name} has labels that are not among the classes {classes[:10].tolist()}: "
            f"{unknown[:5].tolist()}. {remedy}"
        )
    return codes


#: What counts as a missing number or verdict, in lower case.
MISSING_WORDS = ("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "-")
#: A number as text: 1, 01, 1.0 and 1,0 are one.
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")


def warn_of_spellings(
    classes: arrays.LabelArray,
    name: str = "y_true",
    remedy: str = "pass labels= with all classes",
) -> None:
    """Warn of classes that differ only in case, blanks, zeros in front or the format of a number.

    Parameters
    ----------
    classes : ndarray of shape (K,)
        The classes that occur, each once.
    name, remedy : str
        Where they occur, and how to say that they are two, as the user calls it.
    """
    if classes.dtype.kind not in "US":
        return
    first_of: dict[str, str] = {}
    for label in classes.tolist():
        other = first_of.setdefault(_plain_spelling(label), label)
        if other != label:
            warn_user(
                f"{name}: the classes {other!r} and {label!r} differ only in case, blanks, zeros "
                f"in front or the format of a number, and count as two. Write them alike, or "
                f"{remedy} if they are two."
            )


def _plain_spelling(label: str) -> str:
    """Return what is left of a label without case, blanks, and the format of a number."""
    text = "".join(label.split()).casefold()
    if not _NUMBER.fullmatch(text):
        return text
    return repr(float(text.replace(",", ".")))


def check_vocabulary(
    labels: arrays.LabelArray,
    answers: arrays.LabelArray,
    name: str = "y_true",
    answer_name: str = "y_pred",
    remedy: str = "pass labels= with all classes",
) -> None:
    """Refuse answers none of which is a label that occurs; warn of classes that are nearly alike.

    Parameters
    ----------
    labels, answers : ndarray
        The labels and the answers that occur, each once.
    name, answer_name, remedy : str
        What the user calls them, and how to say that every answer is wrong.
    """
    is_bool = labels.dtype.kind == "b"  # True and False are written in one way
    if len(labels) and len(answers) and not is_bool and not np.any(np.isin(answers, labels)):
        raise ValueError(
            f"{answer_name}: no answer is a label that occurs in {name}. An answer is "
            f"{answers[:1].item()!r}, a label {labels[:1].item()!r}: write both alike, or {remedy} "
            "if every answer is wrong."
        )
    warn_of_spellings(np.union1d(labels, answers), f"{name}, {answer_name}", remedy)


def check_same_order(**columns: Any) -> None:
    """Refuse pandas objects of one index in different orders: their rows would be mixed up.

    Indexes of other names say nothing: a table of probabilities often counts its rows anew.
    """
    indexes = {
        name: column.index
        for name, column in columns.items()
        if isinstance(column, pd.Series | pd.DataFrame)
    }
    if len(indexes) < 2:
        return
    first_name, *others = indexes
    index = indexes[first_name]
    for name in others:
        other = indexes[name]
        if len(other) != len(index) or other.equals(index) or not index.is_unique:
            continue
        if other.is_unique and index.isin(other).all():
            raise ValueError(
                f"{name}: its index has the same names as that of {first_name} in another order, "
                f"so that rows would be mixed up. Pass {name}.loc[{first_name}.index] if the names "
                f"are those of the cases, else {name}.to_numpy()."
            )


def check_two_classes(classes: arrays.LabelArray, option: str, remedy: str = "") -> None:
    """Refuse what needs a positive class where there are not two classes."""
    n_classes = len(classes)
    if n_classes != 2:
        raise ValueError(
            f"{option} needs two classes, got the {n_classes} classes "
            f"{classes[:5].tolist()}{remedy}."
        )


def check_more_classes(classes: arrays.LabelArray, why: str) -> None:
    """Refuse labels of a single class."""
    if len(classes) < 2:
        raise ValueError(f"y has one class only, {classes.tolist()}: {why}.")


#: Sums of weights above this may overflow, and sums of weights below its inverse may underflow.
_LARGEST = 1e200


def check_length(name: str, values: Any, n: int, other: str = "y_true") -> None:
    """Refuse `values` unless there is one per row."""
    n_values = len(values)
    if n_values != n:
        raise ValueError(f"{name} has {n_values} rows, but {other} has {n}.")


def check_any_rows(n: int, table: str) -> None:
    """Refuse a table without rows, such as a file."""
    if n == 0:
        raise ValueError(f"{table} has no rows.")


def check_columns(wanted: Sequence[str], present: Sequence[str], table: str) -> None:
    """Refuse a table that lacks columns, and suggest those with a similar name."""
    missing = [name for name in wanted if name not in present]
    if missing:
        meant = did_you_mean(missing[0], present)
        names = ", ".join(map(repr, missing))
        columns = list(present)[:20]
        raise ValueError(f"{table} has no column {names}.{meant} Its columns are {columns}.")


def check_vector(values: Any, name: str) -> arrays.FloatArray:
    """Return one number per row, as float64."""
    array = arrays.as_array(values, name)
    vector = as_floats(array, name)
    return check_one_per_row(vector, name)


def check_one_per_row(vector: Any, name: str) -> Any:
    """Return an array if it has one dimension and at least one row."""
    if vector.ndim != 1:
        hint = ""
        if name == "y_true":
            hint = " Pass (y_true, y_proba): labels come first."
        raise ValueError(f"{name} must be one-dimensional, got the shape {vector.shape}.{hint}")
    if vector.size == 0:
        raise ValueError(f"{name} is empty; at least one row is needed.")
    return vector


def check_confidence(values: Any, name: str = "confidence") -> arrays.FloatArray:
    """Return one finite confidence per row, as float64."""
    if hasattr(values, "get_params"):
        raise ValueError(
            f"{name}: a {type(values).__name__} learns from rows, so it belongs to an estimator: "
            "SelectiveClassifier(classifier, confidence=...)."
        )
    confidence = check_vector(values, name)
    if not (np.isfinite(confidence.min()) and np.isfinite(confidence.max())):
        n_bad = np.count_nonzero(~np.isfinite(confidence))
        raise ValueError(
            f"{name} has {n_bad} NaN or infinite values; every row needs a finite confidence."
        )
    return confidence


def check_rated(values: Any, name: str = "confidence") -> arrays.FloatArray:
    """Return one confidence per row, as float64; NaN where there is none."""
    array = arrays.as_array(values, name)
    confidence = check_one_per_row(as_floats(array, name), name)
    n_infinite = np.count_nonzero(np.isinf(confidence))
    if n_infinite:
        raise ValueError(
            f"{name} has {n_infinite} infinite values; every confidence must be finite."
        )
    return confidence


def fill_answers(
    values: Any, name: str, abstain_answers: Sequence[Any] = (), placeholder: Any = None
) -> tuple[arrays.LabelArray, arrays.BoolArray, arrays.BoolArray]:
    """Return checked answers, any one where there is none; where one is missing, or abstains.

    Parameters
    ----------
    values : array-like of shape (n,)
    name : str
    abstain_answers : sequence of labels
        Answers by which the model says that it has none, such as "unsure".
    placeholder : label, default=None
        What stands in all rows where none has an answer; None refuses that.
    """
    labels = label_array(values, name)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    check_one_per_row(labels, name)
    missing = np.asarray(pd.isna(labels))
    abstains = find_abstaining(labels, abstain_answers)
    unanswered = missing | abstains
    if unanswered.all():
        if placeholder is None:
            raise ValueError(f"{name}: no row has an answer.")
        return np.full(len(labels), placeholder), missing, abstains
    if unanswered.any():
        labels = labels.copy()
        labels[unanswered] = labels[~unanswered][0]
    return check_labels(labels, name), missing, abstains


def find_abstaining(labels: arrays.LabelArray, abstain_answers: Sequence[Any]) -> arrays.BoolArray:
    """Tell where the model itself abstains, by one of the answers that say so."""
    if isinstance(abstain_answers, str):
        raise ArgumentError(
            "abstain_answers", f"abstain_answers must be a list, such as [{abstain_answers!r}]."
        )
    if len(abstain_answers) == 0:
        return np.zeros(len(labels), dtype=bool)
    abstaining = [plain_value(answer) for answer in abstain_answers]
    return np.array([plain_value(label) in abstaining for label in labels.tolist()])


def name_undecided(undecided: arrays.BoolArray, name: str) -> str:
    """Say how many rows cannot be decided, and which is the first."""
    n = np.count_nonzero(undecided)
    row = int(np.argmax(undecided))
    return f"{name}: {n:,} of {len(undecided):,} rows (the first is row {row})"


def check_unit_confidence(confidence: arrays.FloatArray, metric: str) -> arrays.FloatArray:
    """Refuse confidences outside [0, 1] for a metric that reads them as probabilities."""
    low = float(confidence.min())
    high = float(confidence.max())
    if low < 0 or high > 1:
        raise ValueError(
            f"{metric} needs confidences in [0, 1], got values from {low:g} to {high:g}. "
            "Use 'max_proba', 'margin', 'entropy' or 'gini', or a metric that only reads the "
            "order, such as augrc_score."
        )
    return confidence


def check_loss(values: Any, name: str = "loss") -> arrays.FloatArray:
    """Return one loss per row, in [0, 1]."""
    loss = check_vector(values, name)
    low = np.min(loss)
    high = np.max(loss)
    if not (low >= 0 and high <= 1):  # nan is neither
        raise ValueError(
            f"{name} must lie in [0, 1] for every row (divide a cost by its largest value), "
            f"got values from {low:g} to {high:g}."
        )
    return loss


def refuse_own_confidence(confidence: Any, loss: Any) -> None:
    """Refuse a confidence or loss given with Outcomes or a curve, which have their own."""
    if confidence is not None or loss != "zero_one":
        raise ValueError(
            "confidence and loss go with Predictions; Outcomes and curves hold theirs already."
        )


def check_subgroups(
    values: Any, n: int, name: str = "subgroups", other: str = "y_true"
) -> pd.DataFrame:
    """Return subgroups as a frame, one column per attribute; members of an Enum by their value."""
    if hasattr(values, "to_pandas"):
        values = values.to_pandas()
    elif hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray):
        values = arrays.as_array(values, name)  # items of a tensor do not group by value
    elif isinstance(values, np.ndarray) and values.dtype.names:
        values = pd.DataFrame(values)
    try:
        frame = _tabulate_subgroups(values, name)
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} holds half a character (a surrogate).") from error
    check_length(name, frame, n, other)
    if frame.shape[1] == 0:
        raise ValueError(f"{name} has no columns; pass the subgroup of each row.")
    frame = frame.reset_index(drop=True)
    for position, dtype in enumerate(frame.dtypes):
        if not is_object_dtype(dtype):
            continue
        column = frame.iloc[:, position].to_numpy()
        if any(map(_is_dressed, set(map(type, column)))):
            plain = pd.Series(map(plain_value, column), dtype=object)
            frame.isetitem(position, plain.array)
    return frame


def _tabulate_subgroups(values: Any, name: str) -> pd.DataFrame:
    """Return subgroups as a frame, as they are given."""
    if isinstance(values, pd.DataFrame | Mapping):
        try:
            frame = pd.DataFrame(values)
        except ValueError as error:
            raise ValueError(
                f"{name} must hold one value per row in each of its columns {list(values)}."
            ) from error
        if not frame.columns.is_unique:
            raise ValueError(f"{name} has several columns of one name: {list(frame.columns)}.")
        return frame
    arrays.refuse_name(values, name)
    try:
        shape = np.shape(values)
    except ValueError as error:
        raise ValueError(
            f"{name} must hold one value per row; its rows have different lengths."
        ) from error
    if len(shape) != 1:
        raise ValueError(
            f"{name} must hold one value per row, such as X['sex'], or be a DataFrame with a "
            f"column per attribute, got {type(values).__name__} of shape {shape}."
        )
    return _subgroups_of_one_attribute(values)


def _subgroups_of_one_attribute(values: Any) -> pd.DataFrame:
    """Return one value per row as a frame with one column, which keeps the type of each value."""
    if isinstance(values, pd.MultiIndex):
        values = values.to_flat_index()  # each row has a tuple
    # numpy would turn ["a", nan] into strings
    dtype = getattr(values, "dtype", object)
    is_plain = dtype in (np.int64, "str", "category") or getattr(dtype, "kind", "O") == "U"
    column = pd.Series(values, dtype=None if is_plain else object)
    title = column.name
    if title is None:
        title = "subgroup"
    frame = pd.DataFrame({title: column})
    return frame.infer_objects()


def check_weight(
    values: Any, n: int, name: str = "sample_weight", other: str = "y_true"
) -> arrays.FloatArray | None:
    """Return a copy of non-negative weights with a positive sum, or None."""
    if values is None:
        return None
    if isinstance(values, numbers.Real):
        values = np.full(n, values)
    weight = check_vector(values, name)
    check_length(name, weight, n, other)
    if not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise ValueError(f"{name} must hold finite numbers that are not negative.")
    if not np.any(weight > 0):
        raise ValueError(f"{name} is zero for every row; at least one row must count.")
    smallest = float(np.min(weight[weight > 0]))
    largest = float(np.max(weight))
    if largest > _LARGEST or smallest < 1.0 / _LARGEST:
        raise ValueError(
            f"{name} must lie between {1 / _LARGEST:g} and {_LARGEST:g} where it is not 0; "
            "multiply it by a constant."
        )
    return weight.copy()  # what the caller does to it later has no effect


def check_clusters(values: Any, n: int, name: str = "cluster") -> arrays.IntArray | None:
    """Return the number of each row's cluster, or None; refuse missing ones."""
    if values is None:
        return None
    array = check_one_per_row(label_array(values, name), name)
    codes, clusters = pd.factorize(array)
    check_length(name, codes, n)
    if np.any(codes < 0):
        raise ValueError(f"{name} has {int(np.sum(codes < 0))} missing values.")
    if len(clusters) < 2:
        raise ValueError(f"{name} must name at least two clusters, got {len(clusters)}.")
    return codes.astype(np.int64)


def check_countable(curve: Any) -> None:
    """Refuse a curve of weighted rows or graded losses where errors are counted."""
    if not curve.counted or curve.is_graded:
        raise ValueError(
            "curve: this bound counts errors, so rows must be unweighted with losses of 0 or 1."
        )


def refuse_graded_test(loss: arrays.FloatArray, purpose: str) -> None:
    """Refuse losses other than 0 and 1 where errors are drawn or counted."""
    if arrays.is_graded(loss):
        raise ValueError(f"loss: {purpose} needs a loss of 0 or 1 per row; use loss='zero_one'.")


def warn_small_weights(weight: arrays.FloatArray | None, metric: str) -> None:
    """Warn where weights count as rows but add up to far fewer."""
    if weight is not None:
        total = float(np.sum(weight))
        n_rows = int(np.sum(weight > 0))
        warn_small_total(total, n_rows, metric)


def warn_small_total(total: float, n_rows: int, metric: str, remedy: str = "") -> None:
    """Warn where a sum of weights stands for far fewer rows than there are."""
    if total < n_rows / 2:
        warn_user(
            f"sample_weight sums to {total:g} for {n_rows} rows, but {metric} counts weights as "
            f"rows. Scale them to mean one{remedy}."
        )


@contextmanager
def silence_repeats() -> Iterator[None]:
    """Silence what a fit on all rows warns of, so that several fits on the same rows warn once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "sample_weight sums to", UserWarning)
        warnings.filterwarnings("ignore", "calibration='auto' chose", UserWarning)
        yield


def refuse_weights(weight: arrays.FloatArray | None, purpose: str, remedy: str = "") -> None:
    """Refuse unequal weights where rows must be independent draws."""
    if not arrays.are_constant(weight):
        raise ValueError(
            f"sample_weight: {purpose} counts independent rows, and a weight is not a number of "
            f"independent rows. Leave sample_weight out{remedy}."
        )


def check_importance(weight: arrays.FloatArray | None, largest: float | None) -> None:
    """Refuse weights where a certificate counts rows, unless their limit says what they mean."""
    if largest is None:
        remedy = ", pass the objective largest_weight= if they are importance weights"
        refuse_weights(weight, "a certificate", f"{remedy}, or use a metric objective")
    elif weight is not None and np.max(weight) > largest:
        message = (
            f"largest_weight={largest:g}, but sample_weight goes up to {np.max(weight):g}. It must "
            "be fixed before the rows are seen, as a limit that no weight can exceed."
        )
        raise ArgumentError("largest_weight", message)


def check_some_subgroup(groups: Sized) -> None:
    """Refuse a table in which no row has a subgroup."""
    if not groups:
        raise ValueError("subgroups: every value is missing; each row needs its subgroup.")


def check_same_rows(
    tables: Mapping[str, tuple[arrays.IntArray, arrays.LabelArray]],
) -> arrays.IntArray:
    """Return the true classes of several models, which must be the same."""
    first_name = next(iter(tables))
    truth, classes = tables[first_name]
    for name, (other_truth, other_classes) in tables.items():
        are_same = np.array_equal(truth, other_truth) and np.array_equal(classes, other_classes)
        if not are_same:
            raise ValueError(
                f"y_proba: {first_name!r} and {name!r} have different rows or classes; a "
                "comparison needs the same rows in the same order."
            )
    return truth


def refuse_threshold_and_policy(threshold: float | None) -> None:
    """Refuse a threshold given with a policy, which has its own."""
    if threshold is not None:
        message = "threshold: a policy has its own; pass one of the two."
        raise ArgumentError("threshold", message)


def refuse_labels(values: arrays.LabelArray, name: str, advice: str = "") -> None:
    """Refuse one number per row where it looks like a label."""
    if values.dtype.kind == "f":
        return
    fractions = float | np.floating
    if not all(isinstance(value, fractions) for value in values.ravel().tolist()):
        raise ValueError(
            f"{name} is one-dimensional and holds {values.dtype} values: these look like labels, "
            f"not probabilities.{advice}"
        )


def refuse_one_row_or_two(values: arrays.LabelArray, name: str) -> None:
    """Refuse two bare numbers for two classes: they may be one row or two."""
    if values.shape == (2,):
        left, right = values
        raise ValueError(
            f"{name} is [{left!s}, {right!s}]: that may be one row with both classes, or two "
            f"rows with the second class. One row: pass [[{left!s}, {right!s}]]; two rows: pass "
            f"a column, [[{left!s}], [{right!s}]]."
        )


def match_columns(
    names: list[Any],
    classes: arrays.LabelArray,
    name: str = "y_proba",
    remedy: str = "or pass an array with its columns in the order of the classes",
) -> list[int]:
    """Return the position of each class among the columns of a table, by name."""
    names = [plain_value(column) for column in names]
    wanted = classes.tolist()
    position = {column: i for i, column in enumerate(names)}
    if not all(label in position for label in wanted):
        position = {str(column): i for i, column in enumerate(names)}
        wanted = [str(label) for label in wanted]
    missing = [label for label in wanted if label not in position]
    if missing or len(names) != len(wanted):
        reason = f"{missing[:20]} are missing"
        if not missing:
            extra = [column for column in position if column not in wanted]
            reason = f"{extra[:20]} are no classes"
        raise ValueError(
            f"{name}: the columns {names[:20]} do not name the classes {classes[:20].tolist()}: "
            f"{reason}. Rename the columns to the classes and leave out others, {remedy}."
        )
    return [position[label] for label in wanted]


def order_columns(table: Any, classes: Any, name: str) -> Any:
    """Return what an estimator says of its classes, the columns of a table in their order."""
    names = arrays.column_names(table)
    if names is None:
        return table
    remedy = "or return an array with its columns in the order of classes_"
    positions = match_columns(names, np.asarray(classes), name, remedy)
    return arrays.as_array(table, name)[:, positions]


def check_simplex(
    proba: arrays.LabelArray, name: str, missing: str = "refuse"
) -> arrays.LabelArray:
    """Return rows of probabilities: float32 as they are, other dtypes as float64.

    A row of zeros says "none of the classes", and stays as it is. With `missing` "keep" a row that
    lacks a number becomes NaN.
    """
    if proba.dtype not in (np.float32, np.float64):
        if proba.dtype.kind not in "fiuO":
            raise ValueError(f"{name} must hold probabilities, got {proba.dtype} values.")
        proba = as_floats(proba, name)
    step = max(8 * SPAN // proba.shape[1], 1)
    starts = range(0, len(proba), step)
    if all(_is_simplex(proba[start : start + step]) for start in starts):
        return proba
    lacks_number: arrays.BoolArray = np.any(np.isnan(proba), axis=1)
    if lacks_number.any():
        if missing == "refuse":
            rows = name_undecided(lacks_number, name)
            raise ValueError(f"{rows} hold NaN; leave such rows out, or fill them.")
        proba = proba.copy()
        proba[lacks_number] = np.nan
    low = float(np.min(proba, where=~np.isnan(proba), initial=0.0))
    high = float(np.max(proba, where=~np.isnan(proba), initial=0.0))
    _check_unit_range(low, high, name)
    total = row_sums(proba)
    gap = np.where(proba.any(axis=1) & ~lacks_number, np.abs(total - 1.0), 0.0)
    row = int(np.argmax(gap))
    if gap[row] > SUM_TOLERANCE:
        raise ValueError(
            f"{name}: each row must sum to one, row {row} sums to {total[row]:g}. Pass one "
            "column for every class, or divide each row by its sum."
        )
    if low < 0 or high > 1:
        return np.clip(proba, 0, 1)
    return proba


def spread_zeros(proba: arrays.FloatArray) -> arrays.FloatArray:
    """Return probabilities with equal ones in rows of zeros, as metrics read them."""
    says_none = row_max(proba) == 0.0
    if not says_none.any():
        return proba
    return spread(proba, says_none)


def _check_unit_range(low: float, high: float, name: str) -> None:
    """Refuse probabilities of which the smallest and the largest leave [0, 1] by too much."""
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{name} has infinite values.")
    if low >= -RANGE_TOLERANCE and high <= 1 + RANGE_TOLERANCE:
        return
    advice = (
        "Logits and log-probabilities: scipy.special.softmax(logits, axis=1), or with labels "
        "Predictions.from_logits. Decision values: Predictions.from_scores, for a policy that "
        "calibrates them."
    )
    if low >= 0 and 1 < high <= 100:
        advice = "Divide percentages by 100."
    raise ValueError(f"{name} must lie in [0, 1], got values from {low:g} to {high:g}. {advice}")


def _is_simplex(proba: arrays.FloatArray) -> bool:
    """Tell whether all rows are probabilities that sum to one, without doubt by rounding."""
    # The bits of numbers in [0, 1] are at most those of 1; negative ones and NaN have larger ones.
    bits = np.dtype(f"u{proba.itemsize}")
    bits_of_one = np.ones(1, proba.dtype).view(bits)[0]
    largest = proba.view(bits).max()
    if largest > bits_of_one:
        return False
    n_classes = proba.shape[1]
    total = row_sums(proba) if n_classes <= FEW else np.einsum("ij->i", proba)
    gap = np.abs(total - 1.0)
    rounding = n_classes * np.finfo(proba.dtype).eps
    return bool(gap.max() <= SUM_TOLERANCE - rounding)


def row_sums(table: arrays.LabelArray) -> arrays.LabelArray:
    """Return the sum of each row, as float64."""
    if table.shape[1] > FEW:
        total = table.sum(axis=1, dtype=np.float64)
        return np.asarray(total)
    total = table[:, 0].astype(np.float64)
    for k in range(1, table.shape[1]):
        total += table[:, k]
    return total


def check_proba(values: Any, name: str = "y_proba", missing: str = "refuse") -> arrays.FloatArray:
    """Return probabilities, one row per case and one column per class.

    Rows of zeros stay as they are; for `missing` see :func:`check_simplex`. The dtype float32 is
    kept (the numbers are compared as float64 later); other dtypes become float64.
    """
    proba = arrays.as_array(values, name)
    if proba.ndim != 2 or proba.shape[1] == 0:
        raise ValueError(
            f"{name} must have one row per case and one column per class, got {proba.shape}."
        )
    if proba.shape[0] == 0:
        raise ValueError(f"{name} is empty; at least one row is needed.")
    return check_simplex(proba, name, missing)


def check_has_proba(proba: arrays.FloatArray | None, metric: str) -> arrays.FloatArray:
    """Return the probabilities of predictions, for a metric that needs those of every class."""
    if proba is None:
        raise ValueError(
            f"{metric} reads the probability of every class, but these predictions hold labels and "
            "a confidence only; build them with Predictions.from_proba(y_true, y_proba)."
        )
    return proba


def resolve_pos_label(classes_seen: arrays.LabelArray, pos_label: Any) -> Any:
    """Return the class that a one-dimensional probability belongs to, as scikit-learn does."""
    classes = classes_seen.tolist()
    pos_label = plain_value(pos_label)
    if pos_label is not None:
        if len(classes) > 1 and pos_label not in classes:
            raise ValueError(
                f"pos_label={shown(pos_label)} is not one of the classes {classes[:5]}."
            )
        return pos_label
    if classes_seen.dtype.kind in "biuf" and (set(classes) <= {0, 1} or set(classes) <= {-1, 1}):
        return 1
    raise ValueError(
        f"pos_label must name the class whose probability y_proba holds (classes: "
        f"{classes[:5]}). Pass pos_label=..., or one column per class."
    )


def check_class_columns(n_columns: int, classes: arrays.LabelArray, name: str, remedy: str) -> None:
    """Refuse a table that does not have one column per class."""
    n_classes = len(classes)
    if n_columns != n_classes:
        raise ValueError(
            f"{name} has {n_columns} columns for the {n_classes} classes "
            f"{classes[:10].tolist()}{remedy}."
        )
