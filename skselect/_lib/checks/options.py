"""Options: names, numbers, costs, estimators, calibrations and the abstain label."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, LabelArray, as_array
from skselect._lib.checks import LONG, did_you_mean, shown, warn_user
from skselect._lib.checks.rows import plain_labels
from skselect._lib.decide import plain_value
from skselect.exceptions import ArgumentError


def check_choice(name: str, value: Any, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`."""
    options = list(options)
    if isinstance(value, str) and value in options:
        return value
    meant = did_you_mean(value, options)
    start = f"{name}:{meant} It" if meant else name
    listed = f"{options[:LONG]}"
    n_others = len(options) - LONG
    if n_others > 0:
        listed += f" and {n_others} more"
    raise ArgumentError(name, f"{start} must be one of {listed}, got {shown(value)}.")


def check_parameters(estimator: Any, allowed: Mapping[str, Any]) -> None:
    """Check parameters of an estimator, each by its options or by a function that refuses."""
    for name, options in allowed.items():
        value = getattr(estimator, name)
        if callable(options):
            options(value)
        else:
            check_choice(name, value, options)


def check_keys(name: str, stored: Mapping[str, Any], keys: Collection[str]) -> None:
    """Refuse a stored object with other keys than those that it can have."""
    unknown = [key for key in stored if key not in keys]
    if unknown:
        raise ValueError(f"{name} has the unknown keys {unknown[:5]}")


def check_number(
    name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, closed: str = "both"
) -> float:
    """Return `value` as a float inside the interval from `low` to `high`."""
    is_closed_below = closed in ("both", "left")
    is_closed_above = closed in ("both", "right")
    is_number = _is_number(value)
    number = float(value) if is_number else math.nan
    is_above = number >= low if is_closed_below else number > low
    is_below = number <= high if is_closed_above else number < high
    if is_above and is_below:
        return number
    left = "[" if is_closed_below else "("
    right = "]" if is_closed_above else ")"
    wanted = f"{name} must be a number in {left}{low:g}, {high:g}{right}"
    got = repr(number) if is_number else shown(value)
    hint = ""
    if low >= 0 and high == 1:
        hint = _explain_percentage(value, number)
    raise ArgumentError(name, f"{wanted}, got {got}.{hint}")


def _explain_percentage(value: Any, number: float) -> str:
    """Say how a percentage is written as a share, "" for what is none."""
    if isinstance(value, str):
        with suppress(ValueError):
            number = float(value.removesuffix("%"))
    if not (1 <= number <= 100 or str(value).endswith("%")):
        return ""
    return f" Write {number:g} % as {number / 100:g}."


def check_eps(eps: Any, *, zero: bool) -> None:
    """Refuse an eps outside [1e-100, 0.5); `zero`: allow 0, which does not clip."""
    if check_number("eps", eps, 0.0, 0.5, closed="left") > 0 or not zero:
        check_number("eps", eps, 1e-100, 0.5, closed="left")


def check_range(name: str, value: Any) -> tuple[float, float]:
    """Return two numbers with 0 <= low < high <= 1."""
    try:
        low, high = value
    except (TypeError, ValueError):
        message = f"{name} must be two numbers (low, high), got {shown(value)}."
        raise ArgumentError(name, message) from None
    low = check_number(f"{name}[0]", low, 0.0, 1.0, closed="left")
    high = check_number(f"{name}[1]", high, low, 1.0, closed="right")
    return low, high


def check_threshold(value: Any, name: str = "threshold") -> float:
    """Return a threshold: any number, `inf` (nothing is accepted) included, but not nan."""
    if not _is_number(value) or np.isnan(float(value)):
        raise ValueError(f"{name} must be a number (inf accepts nothing), got {shown(value)}.")
    return float(value)


def _is_number(value: Any) -> bool:
    """Tell whether a value is a number that a float can hold, and no boolean."""
    is_real = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    try:
        return is_real and isinstance(float(value), float)
    except OverflowError:
        return False


def check_count(name: str, value: Any, low: int = 1) -> int:
    """Return `value` as an integer that is at least `low`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        message = f"{name} must be an integer of at least {low}, got {shown(value)}."
        raise ArgumentError(name, message)
    return int(value)


#: What the minutes of a case lack without other numbers.
_REVIEW = {
    "minutes": [],
    "hourly_cost": ["minutes"],
    "hours": ["minutes", "cases"],
    "cases": ["hours"],
}


def check_review(numbers: Mapping[str, Any], start: str = "") -> None:
    """Check the minutes of a case, the cost of an hour, and in how many hours how many cases come.

    `numbers` holds what is not None by name, and messages begin with `start`.
    """
    for name, others in _REVIEW.items():
        if name not in numbers:
            continue
        option = f"{start}{name}"
        check_number(option, numbers[name], 0.0, closed="neither")
        missing = [other for other in others if other not in numbers]
        if missing:
            raise ArgumentError(option, f"{option} needs {' and '.join(missing)} too.")


def choose_draws(n_draws: int | None, usual: int, alpha: float, factor: int) -> int:
    """Return how many draws to simulate, so that the p-value can be as small as `alpha`.

    The least p-value is factor/(n_draws + 1). By default it is at most half of `alpha`.
    """
    least = math.ceil(factor / alpha) - 1
    if factor and factor * (1.0 / (least + 1)) > alpha:  # rounding
        least += 1
    if n_draws is None:
        return max(usual, 2 * least + 1)
    if check_count("n_draws", n_draws) < least:
        least_p_value = factor / (n_draws + 1)
        raise ValueError(
            f"n_draws: with {n_draws} draws no p-value is below {least_p_value:.2g}, so "
            f"nothing could be found at the level {alpha:.2g}; simulate at least {least}."
        )
    return n_draws


def check_delta(value: Any, name: str = "delta") -> float:
    """Return the allowed probability of failure, in (0, 0.5]."""
    delta = check_number(name, value, 0.0, 1.0, closed="neither")
    meaning = "the chance that the guarantee fails, not the confidence"
    return _check_at_most_half(delta, name, meaning)


def check_risk_limit(value: float, name: str = "target") -> float:
    """Return the largest share of errors, a number that must be at most 0.5."""
    return _check_at_most_half(value, name, "the largest share of errors, not the accuracy")


def _check_at_most_half(value: float, name: str, meaning: str) -> float:
    """Refuse a value above 0.5: the user probably means one minus it."""
    if value > 0.5:
        wanted = f"{name} must be at most 0.5, got {value:g}: it is {meaning}."
        raise ArgumentError(name, f"{wanted} Did you mean {1.0 - value:.6g}?")
    return value


def check_thresholds(values: Any) -> FloatArray:
    """Return one or many thresholds of CWSA or CWSA+ as a vector."""
    array = as_array(values, "thresholds")
    thresholds = np.atleast_1d(array)
    is_vector = thresholds.ndim == 1 and thresholds.dtype.kind in "fiu"
    if not is_vector or not np.all((thresholds >= 0) & (thresholds < 1)):
        raise ValueError(
            "thresholds must lie in [0, 1) for CWSA and CWSA+ (at 1 the weight is 0/0), got "
            f"{shown(values)}."
        )
    return thresholds.astype(np.float64)


def check_generator(random_state: Any) -> np.random.Generator:
    """Return a random generator from a seed, a generator or None."""
    if isinstance(random_state, np.random.RandomState):  # which scikit-learn accepts
        random_state = random_state.randint(2**31)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        message = f"random_state must be a seed, a Generator or None, got {shown(random_state)}."
        raise ValueError(message) from error


def check_seed(random_state: Any) -> int:
    """Return a whole number as it is, one drawn from a generator, or by numpy's own for None."""
    rng = check_generator(random_state)
    if random_state is None:  # the chance that scikit-learn's splitters take, which a user may seed
        return int(np.random.randint(2**31))  # noqa: NPY002
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(rng.integers(2**32))


def check_given(value: Any, name: str, purpose: str) -> Any:
    """Return what must not be None."""
    if value is None:
        raise ValueError(f"{name} is missing: {purpose} needs it.")
    return value


def check_has_costs(decision: str, cost_matrix: Any) -> None:
    """Refuse to minimise a cost that was not given."""
    if decision == "min_cost" and cost_matrix is None:
        raise ValueError(
            "cost_matrix is missing: decision='min_cost' needs the cost of each answer, one row "
            "per true class and one column per answer, for example "
            "cost_matrix=[[0, 1], [10, 0]]."
        )


def check_costs(values: Any) -> FloatArray:
    """Return costs: a square table, finite, none negative, not all zero."""
    costs = as_array(values, "cost_matrix")
    is_square = costs.ndim == 2 and costs.shape[0] == costs.shape[1]
    if costs.dtype.kind not in "iuf" or not is_square or costs.size == 0:
        raise ValueError(
            "cost_matrix must hold numbers, one row per true class and one column per answer, got "
            f"the shape {costs.shape} and the dtype {costs.dtype}."
        )
    if not np.all(np.isfinite(costs)) or np.any(costs < 0) or not np.any(costs > 0):
        low = np.min(costs)
        high = np.max(costs)
        raise ValueError(
            "cost_matrix must hold finite costs of at least 0, some above 0 (add a constant where "
            f"there are gains), got values from {low:g} to {high:g}."
        )
    return costs.astype(np.float64)


def check_learnable(decision: str) -> None:
    """Refuse a learned chance of being right where errors have costs."""
    if decision == "min_cost":
        raise ValueError(
            "confidence: a learned one says how likely the answer is right, but "
            "decision='min_cost' weighs errors by their cost; use confidence='auto'."
        )


def check_confidence_fits(confidence: Any, decision: str, cost_matrix: Any) -> None:
    """Refuse a named confidence that does not fit the decision."""
    if confidence == "expected_cost" and cost_matrix is None:
        raise ValueError("confidence='expected_cost' needs a cost_matrix.")
    if decision != "argmax" and confidence in ("max_proba", "margin", "entropy", "gini"):
        raise ValueError(
            f"confidence={confidence!r} is about the most probable class, but "
            f"decision={decision!r} may answer with another one. Use 'chosen_proba', "
            "'expected_cost' (with a cost_matrix), or 'auto'."
        )


def check_has_fit(estimator: Any, name: str = "estimator") -> None:
    """Refuse what cannot be fitted as a classifier, such as a class, a name or a regressor."""
    inner = estimator
    while getattr(inner, "estimator", None) is not None:
        inner = inner.estimator
    is_object = not isinstance(inner, type)
    if not (is_object and hasattr(inner, "fit") and hasattr(inner, "get_params")):
        raise ValueError(
            f"{name} must be a classifier object such as LogisticRegression(), of a class that "
            f"derives from sklearn.base.BaseEstimator, got {shown(inner)}. Any other model works "
            "by its probabilities: select_threshold(y_true, y_proba)."
        )
    model = type(inner).__name__
    if model.startswith("Dask"):
        local = "skselect.dask.local_classifier(model)"
        if "LGBM" in model:
            local = "model.to_local()"
        raise ValueError(
            f"{name}: a {model} predicts blocks of a Dask collection. Fit it, then pass "
            f"FrozenEstimator({local}) and rows that fit in memory."
        )
    kind = None
    if hasattr(estimator, "__sklearn_tags__"):
        from sklearn.utils import get_tags  # noqa: PLC0415 - tables need no scikit-learn

        kind = get_tags(estimator).estimator_type
    if kind not in ("classifier", None):
        model = type(estimator).__name__
        article = "an" if kind[0] in "aeiou" else "a"
        words = kind.replace("_", " ")
        raise ValueError(f"{name} must be a classifier, but {model} is {article} {words}.")


def check_calibration(calibration: Any, calibrators: Iterable[str]) -> None:
    """Refuse what is neither None, nor the name of a calibration, nor a calibrator object."""
    methods = ("fit", "predict", "get_params")
    has_methods = all(hasattr(calibration, method) for method in methods)
    is_object = has_methods and not isinstance(calibration, type)
    names = list(calibrators)
    is_name = isinstance(calibration, str) and calibration in (*names, "sigmoid")
    if not (calibration is None or is_object or is_name):
        meant = did_you_mean(calibration, names)
        raise ValueError(
            f"calibration must be one of {names}, None, or a calibrator: a scikit-learn estimator "
            "object with fit(score, y, sample_weight) and predict(score); "
            f"got {shown(calibration)}.{meant}"
        )


def check_scope(scope: str, response: str, estimator: Any) -> None:
    """Refuse to calibrate the confidence of a classifier without probabilities."""
    if scope == "confidence" and response != "predict_proba":
        raise ValueError(
            "calibration_scope='confidence' leaves predict_proba as it is, but "
            f"{type(estimator).__name__} has none; use calibration_scope='probabilities'."
        )


def warn_unseen(knows_class: BoolArray, codes: IntArray, fate: str) -> None:
    """Warn about rows whose class was missing from the training rows of their fold."""
    # The only row of a class does not count: no splitter can avoid that.
    rows_of_class = np.bincount(codes)[codes]
    n_unseen = np.count_nonzero(~knows_class & (rows_of_class > 1))
    if n_unseen:
        warn_user(
            f"cv: {n_unseen} of {len(knows_class)} rows belong to a class that the model of their "
            f"fold was not trained on; {fate}. StratifiedKFold avoids this."
        )


def check_models(models: Any, baseline: Any) -> list[Any]:
    """Return the names of at least two models, one of which may be the baseline."""
    is_mapping = isinstance(models, Mapping)
    if not is_mapping or len(models) < 2:
        size = f" with {len(models)}" if is_mapping else ""
        raise ValueError(
            "y_probas must hold at least two models by name, such as {'forest': ..., "
            f"'boosting': ...}}, got {type(models).__name__}{size}."
        )
    names = list(models)
    if baseline is not None and baseline not in names:
        raise ValueError(f"baseline must be one of {names}, got {shown(baseline)}.")
    return names


def check_shared_confidence(confidence: Any) -> None:
    """Refuse an array of confidences where each model has its own."""
    if confidence is not None and not isinstance(confidence, str) and not callable(confidence):
        raise ValueError(
            "confidence: one array cannot be the confidence of several models; pass a name or a "
            "function of the probabilities."
        )


def check_abstain_label(label: Any, classes: LabelArray) -> Any:
    """Return the abstain label: not one of the classes, and of a type that can hold both."""
    plain = plain_labels(np.asarray(classes), "classes")
    label = plain_value(label)
    is_text = plain.dtype.kind in "US"
    is_bool = plain.dtype.kind == "b"
    if isinstance(label, str) and label == "auto":
        label = _find_free_label(plain)
    wanted = str if is_text else numbers.Real
    if not isinstance(label, wanted):
        kind = "string" if is_text else "number"
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"abstain_label must be a {kind}, like the classes {plain[:5].tolist()}, got "
            f"{shown(label)}."
        )
    # Boolean classes are predicted as 0 and 1 where there is an abstain label.
    answers = [0, 1] if is_bool else plain.tolist()
    if label in answers:
        raise ValueError(
            f"abstain_label={label!r} is one of the classes {plain[:10].tolist()}; choose another."
        )
    dtype = np.dtype(np.int64) if is_bool else plain.dtype
    if not is_text and not _holds(dtype, label):
        raise ValueError(
            f"abstain_label={label!r} cannot be stored in the dtype {dtype} of the answers; choose "
            "a label that can, or cast y, for example y.astype('int64')."
        )
    return label


def _find_free_label(classes: LabelArray) -> Any:
    """Return a label that is no class, and that their dtype holds if any does.

    "abstain", or -1, and the next ones where these are; without negative numbers the one after the
    largest, else the largest one that is free.
    """
    label: Any
    if classes.dtype.kind in "US":
        label = "abstain"
        while label in classes.tolist():
            label += "_"
        return label
    label = -1
    if classes.dtype.kind == "u":
        label = min(int(classes.max()) + 1, np.iinfo(classes.dtype).max)
    taken = set(classes.tolist())
    while label in taken:
        label -= 1
    if classes.dtype.kind not in "iu" or _holds(classes.dtype, label):
        return label
    # All of -1 and the numbers below it are classes.
    label = np.iinfo(classes.dtype).max
    while label in taken:
        label -= 1
    return label


def _holds(dtype: np.dtype[Any], label: Any) -> bool:
    """Tell whether an array of numbers can hold the label unchanged; no array can compare nan."""
    stored = np.asarray(label)
    if stored.dtype == object:  # a fraction, or a whole number of more than 64 bits
        return False
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        is_whole = float(label).is_integer()
        return is_whole and info.min <= label <= info.max
    return bool(dtype.type(label) == label)
