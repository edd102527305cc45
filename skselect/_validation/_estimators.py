"""What an estimator answers, and what it may answer when it abstains."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from skselect._typing import BoolArray, FloatArray, LabelArray
from skselect._validation._arrays import shown
from skselect._validation._labels import check_labels, encode_labels, plain_labels
from skselect._validation._proba import RANGE_TOLERANCE


def check_has_fit(estimator: Any) -> None:
    """Refuse what is no estimator object, such as a class or a name."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise ValueError(
            "estimator must be a classifier object such as LogisticRegression(), got "
            f"{shown(estimator)}."
        )


def check_refit(refit: bool) -> None:
    """Refuse to keep one classifier where every fold has its own."""
    if not refit:
        raise ValueError(
            "refit=False needs one fitted classifier to keep: use a float cv such as cv=0.3, or "
            "pass FrozenEstimator(fitted classifier)."
        )


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
            "belong to its answer. Choose decision='estimator' to keep its own answers."
        )


def refuse_abstainer(estimator: Any) -> None:
    """Refuse a classifier that already leaves rows without an answer."""
    raise ValueError(
        f"estimator: the {type(estimator).__name__} inside abstains by itself. Pass the classifier "
        "without a threshold (threshold=None), or wrap the whole Pipeline instead of its last step."
    )


def check_abstain_label(label: Any, classes: LabelArray) -> Any:
    """Return the label for "no answer": outside the classes, and of a kind they can hold."""
    plain = plain_labels(np.asarray(classes), "classes")
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
            raise ValueError(
                f"abstain_label must be a string like the classes, got {shown(label)}."
            )
    elif isinstance(label, str) or not isinstance(label, numbers.Real):
        raise ValueError(
            f"abstain_label must be a number, since the classes are {plain[:5].tolist()}, got "
            f"{shown(label)}; for example abstain_label=-9."
        )
    if not isinstance(label, str) and math.isnan(label):
        raise ValueError("abstain_label must not be nan, which equals nothing, itself included.")
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
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return float(label).is_integer() and info.min <= label <= info.max
    return bool(dtype.type(label) == label)


def check_some_known(known: BoolArray, name: str) -> None:
    """Refuse rows of which none was scored for all classes."""
    if not np.any(known):
        raise ValueError(
            f"{name} needs rows with decision values for all classes, but every fold lacks a "
            "class; use stratified folds, or a calibration with one map per class such as 'platt'."
        )


def check_scope(scope: str, response: str, estimator: Any) -> None:
    """Refuse to calibrate the confidence of a classifier without probabilities."""
    if scope == "confidence" and response != "predict_proba":
        raise ValueError(
            "calibration_scope='confidence' leaves predict_proba as it is, but "
            f"{type(estimator).__name__} has none; use calibration_scope='probabilities'."
        )


def check_takes_weights(calibrator: Any) -> None:
    """Refuse a calibrator of the user's own whose fit takes no weights."""
    if not has_fit_parameter(calibrator, "sample_weight"):
        raise ValueError(
            f"calibration: {type(calibrator).__name__}.fit must take (score, y, sample_weight)."
        )


def check_unchanged(name: str, value: Any, fitted: Any) -> None:
    """Refuse a parameter that was set after what depends on it had been fitted."""
    if value is not fitted and value != fitted:
        raise ValueError(
            f"{name} was {fitted!r} when the calibration was fitted to it and is {value!r} now; "
            "call fit again."
        )
