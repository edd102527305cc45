"""Class labels of every kind, and their codes."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import pandas as pd

from skselect._lib.checks import as_array
from skselect._lib.typing import BoolArray, FloatArray, IntArray, LabelArray


def label_array(values: Any, name: str) -> LabelArray:
    """Return labels as an array that keeps the type of each."""
    # numpy would silently turn the list ["a", nan] into strings, and [True, 2] into numbers.
    if hasattr(values, "__array__") or hasattr(values, "__dlpack__") or hasattr(values, "tocsr"):
        return as_array(values, name)
    return np.asarray(values, dtype=object)


def check_labels(values: Any, name: str = "y_true") -> LabelArray:
    """Return labels as a one-dimensional array without missing values, of one kind."""
    labels = label_array(values, name)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got the shape {labels.shape}.")
    if labels.size == 0:
        raise ValueError(f"{name} is empty; at least one row is needed.")
    if labels.dtype.kind in "fcmMO" and bool(np.any(pd.isna(labels))):
        raise ValueError(f"{name} has missing values; drop or label those rows first.")
    return plain_labels(labels, name)


def plain_labels(labels: LabelArray, name: str) -> LabelArray:
    """Turn an object array of strings, booleans or numbers into a plain array of that kind."""
    if labels.dtype.kind in "cmMV":
        raise ValueError(
            f"{name} holds labels of the kind {labels.dtype.name!r}; use strings, numbers or "
            "booleans."
        )
    if labels.dtype.kind != "O":
        return labels
    kinds = {
        "str" if isinstance(x, str) else "bool" if isinstance(x, bool | np.bool_) else
        "number" if isinstance(x, numbers.Real) else type(x).__name__
        for x in labels.tolist()
    }  # fmt: skip
    if len(kinds) == 1 and not kinds <= {"str", "bool", "number"}:
        raise ValueError(
            f"{name} holds labels of the kind {kinds.pop()!r}; use strings, numbers or booleans."
        )
    if len(kinds) != 1:
        raise ValueError(
            f"{name} mixes labels of different kinds ({', '.join(sorted(kinds))}); "
            "use only strings, only numbers or only booleans."
        )
    return np.array(labels.tolist())


def check_classes(labels: Any, name: str = "labels") -> LabelArray:
    """Return the classes in the order given; each may occur once."""
    classes = check_labels(labels, name)
    if len(np.unique(classes)) != len(classes):
        raise ValueError(f"{name} lists a class more than once: {classes[:20].tolist()}.")
    return classes


def same_kind(a: LabelArray, b: LabelArray) -> bool:
    """Tell whether two label arrays can be compared (strings with strings, and so on)."""
    text = {"U", "S", "O"}
    return (a.dtype.kind in text) == (b.dtype.kind in text)


def encode_labels(labels: LabelArray, classes: LabelArray, name: str = "y_true") -> IntArray:
    """Return the position of each label among `classes`, -1 where it is none of them."""
    classes = plain_labels(classes, "classes")
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


def check_two_classes(classes: LabelArray, option: str, remedy: str = "") -> None:
    """Refuse what needs a positive class where there are not two classes."""
    if len(classes) != 2:
        raise ValueError(
            f"{option} needs two classes, got the {len(classes)} classes "
            f"{classes[:5].tolist()}{remedy}."
        )


def check_more_classes(classes: LabelArray, why: str) -> None:
    """Refuse labels of a single class."""
    if len(classes) < 2:
        raise ValueError(f"y has one class only, {classes.tolist()}: {why}.")


def check_both_kinds(weight: FloatArray, positive: BoolArray, purpose: str) -> None:
    """Refuse rows of a single class where two are compared."""
    if not (np.any(weight[positive] > 0) and np.any(weight[~positive] > 0)):
        raise ValueError(f"y_true: {purpose} needs rows of both classes with positive weight.")
