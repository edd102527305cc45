"""What an estimator answers, and what it may answer when it abstains."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from skselect._typing import BoolArray, FloatArray, IntArray, LabelArray
from skselect._validation._arrays import shown
from skselect._validation._labels import check_labels, encode_labels, plain_labels
from skselect._validation._proba import RANGE_TOLERANCE

#: Fewer held-out rows say next to nothing about a threshold.
LEAST_HELD_OUT = 10


def check_has_fit(estimator: Any) -> None:
    """Refuse what cannot be fitted as a classifier, such as a class, a name or a regressor."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise ValueError(
            "estimator must be a classifier object such as LogisticRegression(), got "
            f"{shown(estimator)}."
        )
    tagged = hasattr(estimator, "__sklearn_tags__")
    kind = get_tags(estimator).estimator_type if tagged else None
    if kind not in ("classifier", None):
        article = "an" if kind[0] in "aeiou" else "a"
        raise ValueError(
            f"estimator must be a classifier, but {type(estimator).__name__} is {article} "
            f"{kind.replace('_', ' ')}."
        )


def check_cv(cv: Any, *, takes_share: bool = False) -> None:
    """Refuse names and, unless `takes_share`, a share of the rows as a way to split them."""
    is_share = isinstance(cv, float | np.floating)
    if isinstance(cv, str) or (is_share and not takes_share):
        share = "a share of the rows, " if takes_share else ""
        remedy = (
            " To use a classifier that was fitted on other rows as it is, pass "
            "FrozenEstimator(classifier) (sklearn.frozen) as the estimator; cv is then not used."
        )
        raise ValueError(
            f"cv must be an integer, {share}a splitter or a list of splits, got {cv!r}."
            + ("" if is_share else remedy)
        )


def check_held_out(share: float, n_held_out: int, n: int) -> None:
    """Refuse to choose a threshold on a handful of rows."""
    if n_held_out < LEAST_HELD_OUT:
        raise ValueError(
            f"cv={share:g} holds out {n_held_out} of {n} rows, but a threshold needs at least "
            f"{LEAST_HELD_OUT}. Hold out a larger share, or pass cv=5, which uses every row."
        )


def check_folds_know_classes(seen: BoolArray, codes: IntArray, classes: LabelArray) -> None:
    """Refuse folds whose models cannot know most rows of a class.

    A class with a single row is left alone: no fold can do better.
    """
    n_rows = np.bincount(codes, minlength=len(classes))
    n_unseen = np.bincount(codes[~seen], minlength=len(classes))
    lost = np.flatnonzero((n_rows > 1) & (2 * n_unseen > n_rows))
    if lost.size or not np.any(seen):
        k = lost[0] if lost.size else 0
        label = classes.tolist()[k]
        raise ValueError(
            f"cv: {n_unseen[k]} of the {n_rows[k]} rows of class {label!r} are predicted by models "
            "that were trained without that class, so all their answers would be wrong. "
            "This happens with KFold on sorted rows, and with groups where one group has all rows "
            "of a class. Use StratifiedKFold (an integer cv does) or shuffle=True; a class that "
            "only one group has must be left out."
        )


def warn_unseen(seen: BoolArray, codes: IntArray, fate: str) -> None:
    """Count the rows whose class the model of their fold did not know."""
    n_unseen = int(np.sum(~seen & (np.bincount(codes)[codes] > 1)))
    if n_unseen:
        warnings.warn(
            f"cv: {n_unseen} of {len(seen)} rows belong to a class that the model of their fold "
            f"was not trained on; {fate}. StratifiedKFold avoids this.",
            stacklevel=4,
        )


def check_weighted_part(weight: FloatArray | None, rows: IntArray, part: str) -> None:
    """Refuse a part of the rows in which every weight is zero."""
    if weight is not None and not np.any(weight[rows] > 0):
        raise ValueError(
            f"sample_weight is zero for every row of {part}; at least one row must count there. "
            "Use fewer folds or stratified ones, or leave rows of weight 0 out."
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


def check_own_proba(proba: FloatArray, n: int, n_classes: int, estimator: Any) -> None:
    """Refuse probabilities that do not have one row per case and one column per class."""
    if proba.shape != (n, n_classes):
        raise ValueError(
            f"estimator: predict_proba of {type(estimator).__name__} gives the shape {proba.shape} "
            f"for {n} rows and a classes_ of length {n_classes}; one row per case and one column "
            "per class are needed."
        )


def check_own_values(values: FloatArray, n: int, n_classes: int, estimator: Any) -> None:
    """Refuse decision values that are not finite or do not have one column per class."""
    name = f"estimator: decision_function of {type(estimator).__name__}"
    if values.shape != ((n,) if n_classes == 2 else (n, n_classes)):
        raise ValueError(
            f"{name} gives values of shape {values.shape} for {n} rows and {n_classes} classes; "
            "one column per class is needed (for SVC: decision_function_shape='ovr')."
        )
    if not np.all(np.isfinite(values)):
        rows = np.flatnonzero(~np.isfinite(values).reshape(n, -1).all(axis=1))
        raise ValueError(
            f"{name} gives NaN or infinite values in {len(rows)} of {n} rows, first in row "
            f"{rows[0]}; they say nothing about the answer."
        )


def refuse_pairs(codes: IntArray, values: FloatArray, estimator: Any) -> None:
    """Refuse three columns of decision values that compare pairs of the three classes.

    Three classes have as many pairs, so the shape does not tell. What the classifier predicts
    does: the class of the largest value, or the class that wins most pairs.
    """
    wins = np.zeros(values.shape)
    for pair, (first, second) in enumerate(((0, 1), (0, 2), (1, 2))):
        wins[:, first] += values[:, pair] > 0
        wins[:, second] += values[:, pair] <= 0
    row = np.arange(len(codes))
    n_other = int(np.sum(values[row, codes] < values.max(axis=1)))
    if n_other > np.sum(wins[row, codes] < wins.max(axis=1)):
        raise ValueError(
            f"estimator: the 3 columns of decision_function of {type(estimator).__name__} compare "
            f"pairs of classes: predict differs from the largest in {n_other} of {len(codes)} "
            "rows. One column per class is needed (for SVC: decision_function_shape='ovr')."
        )


def check_any_sample(X: Any, owner: Any) -> None:
    """Refuse to predict no row at all, in the words of scikit-learn's classifiers."""
    shape = tuple(X.shape) if hasattr(X, "shape") else (len(X),) if hasattr(X, "__len__") else ()
    if shape[:1] == (0,):
        raise ValueError(
            f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required by "
            f"{type(owner).__name__}."
        )


def check_all_accepted(accepted: BoolArray) -> None:
    """Refuse to write labels where rows are rejected and nothing says what to write for them."""
    if not np.all(accepted):
        raise ValueError(
            f"{int(np.sum(~accepted))} of {len(accepted)} rows are not accepted, and this policy "
            "has no abstain_label to return for them; use decide(), whose label is missing there, "
            "or dataclasses.replace(policy, abstain_label=...)."
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
    # With an abstain label beside them False and True are predicted as 0 and 1.
    taken = [0, 1] if kind == "b" else plain.tolist()
    if isinstance(label, str) and label == "auto":
        if kind == "b" or (kind in "iuf" and not set(plain.tolist()) <= {-1, 1}):
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
    if label in taken:
        raise ValueError(
            f"abstain_label={label!r} is one of the classes {plain[:10].tolist()}; choose another."
        )
    if kind == "b" and not _holds(np.dtype(np.int64), label):
        raise ValueError(
            f"abstain_label must be a whole number where the classes are booleans, which are then "
            f"predicted as 0 and 1, got {label!r}; for example abstain_label=-1."
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
