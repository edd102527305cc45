"""Numbers and names that choose: options, targets, thresholds."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from skselect._typing import FloatArray
from skselect._validation._arrays import as_array, shown

#: Sums of floats round; a share or a risk this close to a bound counts as reaching it.
ROUNDING = 1e-12


def check_choice(name: str, value: Any, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`."""
    options = list(options)
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {options}, got {shown(value)}.")
    return value


def check_calibration(calibration: Any, known: Iterable[str]) -> None:
    """Refuse what is neither None, nor the name of a calibration, nor a calibrator object."""
    if isinstance(calibration, str) and calibration == "sigmoid":
        raise ValueError(
            "calibration='sigmoid' is scikit-learn's name for a logistic map, which it fits to "
            "probabilities where a classifier has no decision_function. Use calibration='platt', "
            "which is fitted to log-odds."
        )
    is_object = not isinstance(calibration, type) and all(
        hasattr(calibration, method) for method in ("fit", "predict", "get_params")
    )
    known = list(known)
    named = isinstance(calibration, str) and calibration in known
    if calibration is not None and not is_object and not named:
        raise ValueError(
            f"calibration must be one of {known}, None, or a calibrator: a scikit-learn estimator "
            "object with fit(score, y, sample_weight) and predict(score); "
            f"got {shown(calibration)}."
        )


def check_temperature_reads(calibration: str, scope: str, confidence: Any) -> None:
    """Refuse to divide the log-odds of what is no chance of being right by a temperature."""
    max_proba = isinstance(confidence, str) and confidence == "max_proba"
    if calibration == "temperature" and scope == "confidence" and not max_proba:
        raise ValueError(
            "calibration='temperature' keeps the confidence 1/2 where it is, which only means "
            f"something for confidence='max_proba', got confidence={confidence!r}. With "
            "calibration_scope='confidence' use 'smooth_isotonic', 'venn_abers' or 'platt'."
        )


def check_calibrations(calibrations: Any, known: Iterable[str]) -> dict[str, Any]:
    """Return the calibrations to compare, by name; None is all known ones."""
    known = list(known)
    if calibrations is None:
        return {name: name for name in known}
    if isinstance(calibrations, str) or not isinstance(calibrations, Iterable):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"calibrations must be a list of names, such as {known[:2]}, or a mapping of names to "
            f"calibrators, got {shown(calibrations)}."
        )
    if isinstance(calibrations, Mapping):
        names, given = list(calibrations), list(calibrations.values())
    else:
        given = list(calibrations)
        names = [c if isinstance(c, str) else type(c).__name__ for c in given]
    repeated = sorted({str(name) for name in names if names.count(name) > 1})
    if repeated or "raw" in names:
        raise ValueError(
            "calibrations: each needs a name of its own, other than 'raw', but "
            f"{repeated or ['raw']} would name two rows; pass a mapping of names to calibrators."
        )
    for calibration in given:
        if calibration is None:
            raise ValueError("calibrations: raw probabilities are shown anyway; leave None out.")
        check_calibration(calibration, known)
    return dict(zip(names, given, strict=True))


def refuse_subgroups(subgroups: Any, why: str) -> None:
    """Refuse subgroups where they would be ignored."""
    if subgroups is not None:
        raise ValueError(f"subgroups: {why}; leave them out.")


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
        raise ValueError(f"{wanted}, got {shown(value)}.")  # noqa: TRY004 - one kind of error
    number = float(value)
    above = number >= low if left == "[" else number > low
    below = number <= high if right == "]" else number < high
    if not (above and below):
        raise ValueError(f"{wanted}, got {number!r}.")
    return number


def check_delta(value: Any, name: str = "delta") -> float:
    """Return how often a promise may fail; above 0.5 somebody means how often it holds."""
    delta = check_number(name, value, 0.0, 1.0, closed="neither")
    if delta > 0.5:
        raise ValueError(
            f"{name} must be at most 0.5, got {delta:g}: it is the chance that the promise fails, "
            f"not the confidence, so that this one would fail {100.0 * delta:g} times in 100. Did "
            f"you mean {1.0 - delta:.6g}?"
        )
    return delta


def check_risk_limit(value: float, name: str = "target") -> float:
    """Return the largest share of errors; above 0.5 somebody means the accuracy."""
    if value > 0.5:
        raise ValueError(
            f"{name} must be at most 0.5, got {value:g}: it is the largest share of errors, not "
            f"the accuracy, so that {100.0 * value:g} % of the answers might be wrong. Did you "
            f"mean {1.0 - value:.6g}?"
        )
    return value


def check_count(name: str, value: Any, low: int = 1) -> int:
    """Return `value` as an integer that is at least `low`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise ValueError(f"{name} must be an integer of at least {low}, got {shown(value)}.")
    return int(value)


def check_counts(n_errors: Any, n: Any) -> tuple[FloatArray, FloatArray]:
    """Return errors and rows as floats, whole numbers with 0 <= n_errors <= n."""
    errors, rows = as_array(n_errors, "n_errors"), as_array(n, "n")
    for name, counts in (("n_errors", errors), ("n", rows)):
        if counts.dtype.kind not in "iuf" or not np.all(counts == np.rint(counts)):
            raise ValueError(f"{name} must hold whole numbers, got {shown(counts)}.")
    if np.any(errors < 0) or np.any(errors > rows):
        raise ValueError(
            f"n_errors must lie between 0 and n, got {shown(n_errors)} of n={shown(n)}."
        )
    return errors.astype(np.float64), rows.astype(np.float64)


def check_means(mean: Any, n: Any) -> tuple[FloatArray, FloatArray]:
    """Return mean losses in [0, 1] and the number of rows behind each as floats."""
    means, (_, rows) = as_array(mean, "mean"), check_counts(0, n)
    if means.dtype.kind not in "iuf" or not np.all((means >= 0) & (means <= 1)):
        raise ValueError(f"mean must lie in [0, 1], got {shown(mean)}.")
    return means.astype(np.float64), rows


def check_not_negative(name: str, values: Any) -> FloatArray:
    """Return finite numbers that are not negative."""
    given = as_array(values, name)
    if given.dtype.kind not in "iuf" or not np.all((given >= 0) & np.isfinite(given)):
        raise ValueError(f"{name} must be finite and not negative, got {shown(values)}.")
    return given.astype(np.float64)


def check_models(argument: str, models: Any, baseline: Any) -> list[Any]:
    """Return the names of at least two models, one of which may be the baseline."""
    if not isinstance(models, Mapping) or len(models) < 2:
        size = f" with {len(models)}" if isinstance(models, Mapping) else ""
        raise ValueError(
            f"{argument} must hold at least two models by name, such as {{'forest': ..., "
            f"'boosting': ...}}, got {type(models).__name__}{size}."
        )
    names = list(models)
    if baseline is not None and baseline not in names:
        raise ValueError(f"baseline must be one of {names}, got {shown(baseline)}.")
    return names


def check_any_metric(metrics: list[Any]) -> None:
    """Refuse an empty list of metrics."""
    if not metrics:
        raise ValueError("metrics is empty; name at least one, or pass None for all.")


def check_eps(eps: Any, *, zero: bool) -> None:
    """Refuse a clipping distance outside [1e-100, 0.5); 0 does not clip, where that is possible."""
    if check_number("eps", eps, 0.0, 0.5, closed="left") > 0 or not zero:
        check_number("eps", eps, 1e-100, 0.5, closed="left")


def check_shared_confidence(confidence: Any) -> None:
    """Refuse an array of confidences where each model has its own."""
    if confidence is not None and not isinstance(confidence, str) and not callable(confidence):
        raise ValueError(
            "confidence: one array cannot be the confidence of several models; pass a name or a "
            "function of the probabilities."
        )


def check_average(average: Any, pos_label: Any) -> str | None:
    """Return an average over classes, "auto" resolved; refuse `pos_label` beside another."""
    known = ["auto", "macro", "weighted", "micro", "binary", None]
    if average not in known:
        raise ValueError(f"average must be one of {known}, got {shown(average)}.")
    if average == "auto":
        return "macro" if pos_label is None else "binary"
    if pos_label is not None and average != "binary":
        raise ValueError(
            f"pos_label={shown(pos_label)} goes with average='binary' (which 'auto' takes then): "
            f"average={average!r} is about every class. Leave one of them out."
        )
    return str(average) if average else None


def check_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse keywords that a function does not have, as Python does."""
    names = list(known)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            meant = f". Did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{meant}")


def check_class_average(average: Any) -> None:
    """Refuse an average that is not one over classes."""
    if average not in ("macro", "weighted", None):
        raise ValueError(f"average must be 'macro', 'weighted' or None, got {shown(average)}.")


def check_generator(random_state: Any) -> np.random.Generator:
    """Return a random generator from a seed, a generator or None."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)  # a generator of scikit-learn's kind
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state must be a seed, a Generator or None, got {shown(random_state)}."
        ) from error


def check_threshold(value: Any, name: str = "threshold") -> float:
    """Return a threshold: any number, `inf` (nothing is accepted) included, but not nan."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if not number or math.isnan(value):
        raise ValueError(f"{name} must be a number (inf accepts nothing), got {shown(value)}.")
    return float(value)


def check_answerable(threshold: Any, confidence: Any, *, bounded: bool) -> float:
    """Return a threshold; one between 1 and inf would never answer, which inf says openly."""
    number = check_threshold(threshold)
    if bounded and 1 < number < math.inf:
        raise ValueError(
            f"threshold={threshold!r} can never be reached, because confidence={confidence!r} lies "
            "in [0, 1]. Write 80 % as 0.8; inf answers nothing on purpose."
        )
    return number


def check_cwsa_threshold(value: Any) -> float:
    """Return a threshold for the CWSA family, which is defined on [0, 1) only."""
    if not 0 <= check_threshold(value) < 1:
        raise ValueError(
            f"threshold must lie in [0, 1) for CWSA and CWSA+ (at 1 the weight is 0/0), got "
            f"{shown(value)}."
        )
    return float(value)


def check_max_points(value: Any) -> int | None:
    """Return how many points a curve may have, at least both ends; None is all."""
    return None if value is None else check_count("max_points", value, 2)


def check_unit_thresholds(values: Any, name: str = "thresholds") -> FloatArray:
    """Return thresholds in [0, 1] as a vector."""
    thresholds = np.atleast_1d(as_array(values, name))
    if (
        thresholds.dtype.kind not in "fiu"
        or thresholds.ndim > 1
        or not np.all((thresholds >= 0) & (thresholds <= 1))
    ):
        raise ValueError(f"{name} must lie in [0, 1], got {shown(values)}.")
    return thresholds.astype(np.float64)


def check_cwsa_thresholds(values: Any, name: str = "thresholds") -> FloatArray:
    """Return one or many thresholds for the CWSA family as a vector."""
    thresholds = np.atleast_1d(as_array(values, name))
    if (
        thresholds.dtype.kind not in "fiu"
        or thresholds.ndim > 1
        or not np.all((thresholds >= 0) & (thresholds < 1))
    ):
        raise ValueError(
            f"{name} must lie in [0, 1) for CWSA and CWSA+ (at 1 the weight is 0/0), got "
            f"{shown(values)}."
        )
    return thresholds.astype(np.float64)


def check_interval(name: str, value: Any) -> tuple[float, float]:
    """Return two numbers with 0 <= low < high <= 1."""
    try:
        low, high = value
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be two numbers (low, high), got {shown(value)}.") from None
    low = check_number(f"{name}[0]", low, 0.0, 1.0, closed="left")
    return low, check_number(f"{name}[1]", high, low, 1.0, closed="right")


def reaches(values: Any, bound: float) -> Any:
    """Tell where values are at least `bound`, but for rounding."""
    return values >= bound * (1.0 - ROUNDING)


def stays_within(values: Any, bound: float) -> Any:
    """Tell where values are at most `bound`, but for rounding."""
    return values <= bound * (1.0 + ROUNDING)


def check_constraints(constraint: Any, names: Iterable[str]) -> tuple[tuple[str, float], ...]:
    """Return one pair of a name and a bound, or a list of them, as pairs."""
    single = isinstance(constraint, tuple) and len(constraint) == 2
    given = [constraint] if single and isinstance(constraint[0], str) else constraint
    try:
        pairs = [(name, bound) for name, bound in given]
    except (TypeError, ValueError):
        raise ValueError(
            "constraint must be a pair such as ('risk', 0.05), or a list of pairs, got "
            f"{shown(constraint)}."
        ) from None
    for name, bound in pairs:
        check_choice("constraint", name, names)
        check_number(f"constraint {name!r}", bound, 0.0, 1.0)
    return tuple((str(name), float(bound)) for name, bound in pairs)


def check_shares(name: str, values: Any) -> tuple[float, ...]:
    """Return one share of the rows, or several."""
    shares = np.atleast_1d(as_array(values, name))
    if shares.ndim != 1 or len(shares) == 0:
        raise ValueError(f"{name} must be one share of the rows, or several, got {shown(values)}.")
    return tuple(check_number(name, share, 0.0, 1.0) for share in shares.tolist())
