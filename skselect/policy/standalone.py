"""Decide by a policy: from a classifier's raw scores to an answer, or none, for each row.

skselect wrote this file; it runs without skselect. It needs numpy and Python 3.10 or newer.

    from gate import decide
    decide(y_proba)["label"]       # the answer of each row, None where the policy abstains

The policy stands at the end of the file. `POLICY` holds the classes, the calibration, the
threshold, the day it was made ("created") and the certificate with its guarantee;
`CERTIFICATE` says in words what is promised about these decisions. Do not edit them: where they
do not match `DIGEST`, the import fails. Whether a policy file is the one that this file was written
from, ``POLICY["digest"]`` tells: ``python gate.py policy.json``.

The file performs the same numpy operations in the same order as skselect. So with the same numpy on
the same kind of processor accepted rows, answers and confidences are those of skselect, bit by bit.
Elsewhere numpy's exp and log may differ in the last bit, as they do for skselect itself: a row
that lies exactly on a threshold or a step of the calibration may then fall on its other side.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]

#: How far a row of probabilities may be from summing to one (tables are often rounded).
SUM_TOLERANCE = 1e-3
#: How far a single probability may leave [0, 1] by rounding inside a model.
RANGE_TOLERANCE = 1e-6
#: Up to this number, columns are summed one by one.
FEW = 4


def decide(
    y_proba: Any, *, y_pred: Any = None, subgroups: Any = None, witnesses: Any = None
) -> dict[str, Array]:
    """Turn raw scores into decisions, calibration included.

    Parameters
    ----------
    y_proba : array-like of shape (n, K) or (n,)
        The classifier's raw output (``POLICY["response"]``), columns in the order of
        ``POLICY["classes"]``; columns of a DataFrame are matched by name. (n,) or (n, 1) is the
        probability (or decision value) of the second of two classes. The probabilities [.9, .1]
        are refused, because they may be one row or two: pass [[.9, .1]] or [[.9], [.1]]. No
        rows give empty arrays.
    y_pred : array-like of shape (n,), default=None
        The classifier's own answers, where ``POLICY["decision"]`` is "estimator" only.
    subgroups : array-like of shape (n,), mapping or DataFrame, default=None
        The subgroup of each row, where the policy has a threshold per subgroup only (but not
        where the answers are the subgroups).
    witnesses : mapping, default=None
        Where the confidence is a learned one only, what it asks, by name: of each witness its raw
        probabilities for these rows, like `y_proba`; of each further column its values.

    Returns
    -------
    dict of ndarray of shape (n,)
        "label" (None where it abstains), "suggestion" (the answer everywhere), "accepted",
        "confidence", "threshold"; where ``POLICY["shortlist"]`` is not None also "shortlist"
        (a tuple of labels where it abstains, most probable first; else None).

    Raises
    ------
    ValueError
        If the scores, answers, subgroups or witnesses do not fit the policy.
    """
    # Sums over columns must not depend on the memory layout.
    scores = np.ascontiguousarray(_check_scores(y_proba, "y_proba", POLICY["response"]))
    given = _check_answers(y_pred, len(scores))
    opinions = _check_opinions(witnesses, len(scores))
    proba = _calibrate(scores)
    answers = _choose_answers(proba) if given is None else given
    if _is_learned():
        confidence = _rate(proba, answers, opinions)
    else:
        confidence = _calibrate_confidence(CONFIDENCES[POLICY["confidence"]](proba, answers))
    suggestion = _classes()[answers]
    if POLICY["groups"] is not None and POLICY["groups"]["by_answer"]:
        if subgroups is not None:
            raise ValueError(
                "subgroups: the answers are the subgroups of this policy; leave them out."
            )
        subgroups = suggestion
    threshold = _find_thresholds(subgroups, len(scores))
    accepted = np.asarray(confidence >= threshold)
    label = suggestion.astype(object)
    label[~accepted] = None
    decided = {
        "label": label,
        "suggestion": suggestion,
        "accepted": accepted,
        "confidence": confidence,
        "threshold": threshold,
    }
    if POLICY["shortlist"] is not None:
        decided["shortlist"] = _list_labels(proba, accepted)
    return decided


def accepts(confidence: Any, *, subgroups: Any = None) -> NDArray[np.bool_]:
    """Tell which confidences are high enough, compared as float64.

    Parameters
    ----------
    confidence : array-like of shape (n,)
    subgroups : array-like of shape (n,), mapping or DataFrame, default=None
        The subgroup of each row (the answers, where these are the subgroups).

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    none = np.shape(confidence) == (0,)
    values = np.empty(0) if none else _check_vector(confidence, "confidence")
    if not np.all(np.isfinite(values)):
        raise ValueError("confidence has NaN or infinite values.")
    return np.asarray(values >= _find_thresholds(subgroups, len(values)))


# Scores -----------------------------------------------------------------------------------------


@cache
def _classes() -> Array:
    return np.asarray(POLICY["classes"]).astype(POLICY["classes_dtype"])


def _check_scores(values: Any, name: str, response: str) -> Array:
    """Return checked raw scores, one column per class (or one decision value for two classes)."""
    columns = getattr(values, "columns", None)
    takes_values = response == "decision_function" and len(_classes()) == 2
    raw = given = np.asarray(values)
    if given.ndim == 0 or (given.ndim == 1 and len(_classes()) > 2 and len(given)):
        raise ValueError(
            f"{name} needs a row per case with {len(_classes())} numbers, one for each class, got "
            f"the shape {given.shape}; pass one case as [[...]]."
        )
    column = columns is None and len(_classes()) == 2 and given.shape[1:] == (1,)
    if given.shape == (0,) or (column and not len(given)):  # no rows at all
        raw = np.empty((0,) if takes_values else (0, len(_classes())))
    elif column:
        raw = given[:, 0]
    if response == "decision_function":
        return _check_decision_values(
            raw, (len(raw),) if takes_values else (len(raw), len(_classes()))
        )
    if raw.ndim == 1:
        if raw.dtype.kind in "iubUSO" and not _holds_floats(raw):
            raise ValueError(
                f"{name} is one-dimensional and holds {raw.dtype} values: these look like labels, "
                "not probabilities."
            )
        positive = _check_vector(raw, name)
        if given.shape == (2,) and len(_classes()) == 2:
            first, second = given
            raise ValueError(
                f"{name} is [{first!s}, {second!s}]: that may be one row with both classes, or "
                f"two rows with the second class. One row: pass [[{first!s}, {second!s}]]; two "
                f"rows: pass a column, [[{first!s}], [{second!s}]]."
            )
        raw, columns = np.column_stack([1.0 - positive, positive]), None
    if columns is not None:
        raw = raw[:, _match_columns(list(columns), name)]
    proba = _check_proba(raw, name) if len(raw) else raw.astype(np.float64)
    if proba.shape[1] != len(_classes()):
        raise ValueError(
            f"{name} has {proba.shape[1]} columns, but the policy is for the classes "
            f"{POLICY['classes']}: pass one column for each, in this order."
        )
    return proba


def _check_decision_values(raw: Array, shape: tuple[int, ...]) -> Floats:
    scores = raw.astype(np.float64)
    if scores.shape != shape:
        raise ValueError(
            "y_proba: this policy was built on decision_function; it needs finite decision values "
            f"of shape {shape}, got the shape {scores.shape}."
        )
    if not np.all(np.isfinite(scores)):
        raise ValueError(
            "y_proba: this policy was built on decision_function; it needs finite decision "
            "values, got NaN or infinite ones."
        )
    return scores


def _holds_floats(raw: Array) -> bool:
    return raw.dtype.kind == "O" and all(isinstance(x, float | np.floating) for x in raw.tolist())


def _check_vector(values: Any, name: str) -> Floats:
    try:
        vector = np.asarray(values).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, got {type(values).__name__}.") from error
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(f"{name} must be one-dimensional and not empty, got {vector.shape}.")
    return vector


def _match_columns(names: list[Any], name: str) -> list[int]:
    """Return the position of each class among the column names."""
    wanted: list[Any] = POLICY["classes"]
    if not all(label in names for label in wanted):
        names, wanted = [str(column) for column in names], [str(label) for label in wanted]
    order = f"or pass an array with its columns in the order of {POLICY['classes']}."
    missing = [label for label in wanted if label not in names]
    if missing:
        raise ValueError(
            f"{name}: the columns {names[:20]} do not name the classes {POLICY['classes'][:20]}: "
            f"{missing[:20]} are missing. Rename the columns to the classes, {order}"
        )
    if len(names) != len(wanted):
        extra = [column for column in names if column not in wanted]
        raise ValueError(
            f"{name}: beside the classes {POLICY['classes'][:20]} there are the columns "
            f"{extra[:20]}. Leave them out, {order}"
        )
    return [names.index(label) for label in wanted]


def _check_proba(proba: Array, name: str) -> Array:
    """Return probabilities, float32 as they are, other dtypes as float64."""
    if proba.dtype not in (np.float32, np.float64):
        if proba.dtype.kind not in "fiuO":
            raise ValueError(f"{name} must hold probabilities, got {proba.dtype} values.")
        try:
            proba = proba.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold probabilities: {error}.") from error
    if proba.ndim != 2 or proba.size == 0:
        raise ValueError(
            f"{name} must have one row per case and one column per class, got {proba.shape}."
        )
    low, high = float(np.min(proba)), float(np.max(proba))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"{name} has NaN or infinite values.")
    if low < -RANGE_TOLERANCE or high > 1 + RANGE_TOLERANCE:
        is_percent = low >= 0 and 1 < high <= 100
        remedy = (
            "Divide percentages by 100."
            if is_percent
            else "Turn logits or decision values into probabilities first."
        )
        raise ValueError(
            f"{name} must lie in [0, 1], got values from {low:g} to {high:g}. {remedy}"
        )
    gap = np.abs(_row_sums(proba) - 1.0)
    if float(gap.max()) > SUM_TOLERANCE:
        row = int(np.argmax(gap))
        raise ValueError(
            f"{name}: each row must sum to one, row {row} sums to {proba[row].sum():g}. Pass one "
            "column for every class, or divide each row by its sum."
        )
    return np.clip(proba, 0, 1) if low < 0 or high > 1 else proba


def _row_sums(table: Array) -> Floats:
    if table.shape[1] > FEW:
        return np.asarray(table.sum(axis=1, dtype=np.float64))
    total = table[:, 0].astype(np.float64)
    for k in range(1, table.shape[1]):
        total += table[:, k]
    return total


# Calibration ------------------------------------------------------------------------------------


def _calibration(witness: str | None = None) -> Any:
    """Return the calibration of the classifier, or of a witness."""
    return POLICY["calibration"] if witness is None else POLICY["confidence"]["witnesses"][witness]


@cache
def _maps(witness: str | None = None) -> list[dict[str, Floats]]:
    """Return the fitted maps as arrays."""
    return [
        {name: np.asarray(number, dtype=np.float64) for name, number in fitted.items()}
        for fitted in _calibration(witness)["maps"]
    ]


def _calibrate(scores: Array, witness: str | None = None) -> Array:
    """Return class probabilities that sum to one in each row."""
    calibration = _calibration(witness)
    if calibration is None or calibration["scope"] == "confidence":
        return scores
    kind, offset = calibration["kind"], calibration["offset"]
    are_proba = calibration["response"] == "predict_proba"
    scores = scores.astype(np.float64)
    maps = _maps(witness)
    first = maps[0]
    if "prior" in first and first["prior"].ndim:  # one map for all classes
        logits = np.log(scores + offset) if are_proba else scores
        return _mix_prior(first, _softmax(logits / first["temperature"]))
    columns = [scores] if scores.ndim == 1 else list(scores.T)
    columns = columns[1:] if len(columns) == 2 else columns
    if are_proba and kind in READ_LOG_ODDS:
        columns = [_log_odds(column, offset) for column in columns]
    mapped = [MAPS[kind](fitted, column) for fitted, column in zip(maps, columns, strict=True)]
    if len(mapped) == 1:
        return np.column_stack([1.0 - mapped[0], mapped[0]])
    proba = np.column_stack(mapped)
    total = proba.sum(axis=1, keepdims=True)
    uniform = np.full_like(proba, 1.0 / proba.shape[1])
    return np.divide(proba, total, out=uniform, where=total > 0)


def _calibrate_confidence(confidence: Floats) -> Floats:
    """Return the calibrated confidence, where the confidence itself is calibrated."""
    calibration = POLICY["calibration"]
    if calibration is None or calibration["scope"] == "probabilities":
        return confidence
    if calibration["offset"] is not None and calibration["kind"] in READ_LOG_ODDS:
        confidence = _log_odds(confidence, calibration["offset"])
    return MAPS[calibration["kind"]](_maps()[0], confidence)


def _log_odds(p: Floats, offset: float) -> Floats:
    return np.asarray(np.log(p + offset) - np.log(1.0 - p + offset))


def _expit(x: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def _softmax(logits: Floats) -> Floats:
    relative = np.exp(logits - np.max(logits, axis=1, keepdims=True))
    return np.asarray(relative / np.sum(relative, axis=1, keepdims=True))


def _mix_prior(fitted: dict[str, Floats], q: Floats) -> Floats:
    """Return the probabilities q, mixed with the prior, which keeps them from 0 and 1."""
    return np.asarray((1.0 - fitted["share"]) * q + fitted["share"] * fitted["prior"])


def _temperature(fitted: dict[str, Floats], score: Floats) -> Floats:
    with np.errstate(over="ignore"):  # the probability is then 0
        return _mix_prior(fitted, _expit(score / fitted["temperature"]))


def _platt(fitted: dict[str, Floats], score: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return _mix_prior(fitted, _expit(fitted["slope"] * score + fitted["intercept"]))


def _beta(fitted: dict[str, Floats], score: Floats) -> Floats:
    low, high = -np.logaddexp(0.0, -score), np.logaddexp(0.0, score)
    with np.errstate(over="ignore"):
        return _mix_prior(fitted, _expit(fitted["a"] * low + fitted["b"] * high + fitted["c"]))


def _isotonic(fitted: dict[str, Floats], score: Floats) -> Floats:
    return np.interp(score, fitted["knots"], fitted["values"])


def _venn_abers(fitted: dict[str, Floats], score: Floats) -> Floats:
    knots, lower, upper = fitted["knots"], fitted["lower"], fitted["upper"]
    high = np.append(upper, 1.0)[np.searchsorted(knots, score, side="left")]
    low = np.append(0.0, lower)[np.searchsorted(knots, score, side="right")]
    return np.asarray(high / (1.0 - low + high))


MAPS: dict[str, Callable[[dict[str, Floats], Floats], Floats]] = {
    "temperature": _temperature,
    "platt": _platt,
    "beta": _beta,
    "isotonic": _isotonic,
    "smooth_isotonic": _isotonic,
    "venn_abers": _venn_abers,
}
READ_LOG_ODDS = ("temperature", "platt", "beta")


# Answers and confidence -------------------------------------------------------------------------


def _choose_answers(proba: Array) -> NDArray[np.int64]:
    """Return the code of each row's answer."""
    if POLICY["decision"] == "min_cost":
        return np.argmin(_expected_costs(proba), axis=1)
    return np.argmax(proba, axis=1)


def _check_answers(y_pred: Any, n: int) -> NDArray[np.int64] | None:
    """Return the codes of the classifier's own answers, None where the policy decides."""
    if POLICY["decision"] != "estimator":
        if y_pred is not None:
            raise ValueError(
                f"y_pred goes with decision='estimator'; decision={POLICY['decision']!r} chooses "
                "its own classes."
            )
        return None
    if y_pred is None:
        raise ValueError("y_pred is missing: a policy with decision='estimator' needs it.")
    labels = np.asarray(y_pred, dtype=object)
    labels = labels.ravel() if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise ValueError(f"y_pred must be one-dimensional, got the shape {labels.shape}.")
    if len(labels) != n:
        raise ValueError(f"y_pred has {len(labels)} rows, but y_proba has {n}.")
    place = {label: code for code, label in enumerate(POLICY["classes"])}
    given = labels.tolist()
    plain = _read_once(given, lambda label: _plain(label, "y_pred"))
    unknown = sorted({str(label) for label in plain.values() if label not in place})[:5]
    if unknown:
        raise ValueError(
            f"y_pred has labels that are not among the classes {POLICY['classes'][:10]}: "
            f"{unknown}. The policy was made for these classes only."
        )
    return np.array([place[label] for label in given], dtype=np.int64)


def _list_labels(proba: Array, accepted: NDArray[np.bool_]) -> Array:
    """Return the classes that are probable enough where a row is not accepted."""
    lists = np.full(len(proba), None, dtype=object)
    handed_over = proba[~accepted].astype(np.float64)
    counts = np.sum(handed_over >= POLICY["shortlist"]["least_proba"], axis=1)
    order = np.argsort(-handed_over, axis=1, kind="stable")
    names = _classes()[order].tolist()
    for row, labels, count in zip(np.flatnonzero(~accepted), names, counts, strict=True):
        lists[row] = tuple(labels[:count])
    return lists


def _chosen(table: Array, answers: NDArray[np.int64]) -> Floats:
    return table[np.arange(len(table)), answers].astype(np.float64)


def _expected_costs(proba: Array) -> Floats:
    """Return the mean cost of each answer as a share of the largest cost."""
    costs = np.asarray(POLICY["cost_matrix"], dtype=np.float64)
    scaled = costs / float(costs.max())
    proba = proba.astype(np.float64)
    total = np.zeros(proba.shape)
    for k in range(proba.shape[1]):
        total += proba[:, k : k + 1] * scaled[k]
    return total


def _max_proba(proba: Array, _: Array) -> Floats:
    return proba.max(axis=1).astype(np.float64)


def _margin(proba: Array, _: Array) -> Floats:
    if proba.shape[1] == 1:
        return np.ones(len(proba))
    top = np.partition(proba, -2, axis=1)[:, -2:].astype(np.float64)
    return np.asarray(top[:, 1] - top[:, 0])


def _entropy(proba: Array, _: Array) -> Floats:
    return np.clip(1.0 - _normalized_entropy(proba), 0.0, 1.0)


def _normalized_entropy(proba: Array) -> Floats:
    n_classes = proba.shape[1]
    if n_classes == 1:
        return np.zeros(len(proba))
    p = proba.astype(np.float64)
    logs = np.log(p, out=np.zeros_like(p), where=p > 0)  # p log p -> 0
    return np.asarray(-np.sum(p * logs, axis=1) / np.log(n_classes))


def _gini(proba: Array, _: Array) -> Floats:
    n_classes = proba.shape[1]
    if n_classes == 1:
        return np.ones(len(proba))
    p = proba.astype(np.float64)
    return np.clip((n_classes * np.sum(p * p, axis=1) - 1.0) / (n_classes - 1.0), 0.0, 1.0)


def _expected_cost(proba: Array, answers: NDArray[np.int64]) -> Floats:
    return np.clip(1.0 - _chosen(_expected_costs(proba), answers), 0.0, 1.0)


CONFIDENCES: dict[str, Callable[[Array, Array], Floats]] = {
    "max_proba": _max_proba,
    "margin": _margin,
    "entropy": _entropy,
    "gini": _gini,
    "chosen_proba": _chosen,
    "expected_cost": _expected_cost,
}


# Learned confidence -----------------------------------------------------------------------------


def _is_learned() -> bool:
    return not isinstance(POLICY["confidence"], str)


def _check_opinions(witnesses: Any, n: int) -> dict[str, Array]:
    """Return what a learned confidence asks beside the scores, checked."""
    if not _is_learned():
        if witnesses:
            raise ValueError("witnesses: this policy's confidence asks none; leave them out.")
        return {}
    asked = list(POLICY["confidence"]["witnesses"])
    names = asked + [
        name
        for name in POLICY["confidence"]["coefficients"]
        if name not in asked and name not in OWN_FEATURES
    ]
    if witnesses is None and not names:
        return {}
    if not isinstance(witnesses, Mapping) or set(witnesses) != set(names):
        got = list(witnesses) if isinstance(witnesses, Mapping) else type(witnesses).__name__
        raise ValueError(
            f"witnesses must be a dict with the names {names}, which the learned confidence of "
            f"this policy asks about the same rows, got {got}."
        )
    found: dict[str, Array] = {}
    for name in names:
        place = f"witnesses[{name!r}]"
        if name in asked:
            found[name] = _check_scores(witnesses[name], place, "predict_proba")
        else:
            found[name] = _check_vector(witnesses[name], place) if n else np.empty(0)
            if not np.all(np.isfinite(found[name])):
                raise ValueError(f"{place} has NaN or infinite values.")
        if len(found[name]) != n:
            raise ValueError(f"{place} has {len(found[name])} rows, but y_proba has {n}.")
    return found


def _rate(proba: Array, answers: NDArray[np.int64], opinions: dict[str, Array]) -> Floats:
    """Return the chance that each answer is right."""
    others = proba.astype(np.float64)
    answer = _chosen(others, answers)
    others[np.arange(len(others)), answers] = 0.0
    second = others.max(axis=1)
    features = {
        "logit": _logit(answer),
        "lead": np.log(_keep_inside(answer)) - np.log(_keep_inside(second)),
        "entropy": _normalized_entropy(proba),
    }
    for name, given in opinions.items():
        asked = name in POLICY["confidence"]["witnesses"]
        if asked:
            given = _chosen(_calibrate(np.ascontiguousarray(given), name), answers)  # noqa: PLW2901
        features[name] = _logit(given) if asked else given
    total = np.full(len(proba), POLICY["confidence"]["intercept"])
    for name, coefficient in POLICY["confidence"]["coefficients"].items():
        total += coefficient * features[name]
    with np.errstate(over="ignore"):
        return _expit(total)


def _logit(p: Floats) -> Floats:
    p = _keep_inside(p)
    return np.asarray(np.log(p) - np.log(1.0 - p))


def _keep_inside(p: Floats) -> Floats:
    return np.clip(p, LEAST_PROBA, 1.0 - LEAST_PROBA)


OWN_FEATURES = ("logit", "lead", "entropy")
#: Probabilities nearer to 0 or 1 count as this near.
LEAST_PROBA = 1e-6


# Thresholds -------------------------------------------------------------------------------------


def _restore_threshold(stored: Any) -> float:
    """Return a stored threshold: None accepts no row, "-inf" every row."""
    return math.inf if stored is None else float(stored)


@cache
def _group_thresholds() -> dict[Any, float]:
    members = POLICY["groups"]["members"]
    return {
        tuple(m["group"]) if isinstance(m["group"], list) else m["group"]: _restore_threshold(
            m["threshold"]
        )
        for m in members
    }


def _find_thresholds(subgroups: Any, n: int) -> Floats:
    """Return the threshold of each row, inf for rows of a subgroup without one."""
    if POLICY["groups"] is None:
        if subgroups is not None:
            raise ValueError(
                "subgroups: this policy has one threshold for all rows; leave them out."
            )
        return np.full(n, _restore_threshold(POLICY["threshold"]))
    known = _group_thresholds()
    rows = _join_columns(subgroups, n)
    keys = _read_once(rows, _find_key)
    unknown = {key for key in keys.values() if key not in known}
    if unknown:
        _report_unknown(sum(keys[row] in unknown for row in rows), unknown, list(known))
    threshold = {row: known.get(key, math.inf) for row, key in keys.items()}
    return np.array([threshold[row] for row in rows], dtype=np.float64)


def _report_unknown(n_rows: int, unknown: set[Any], known: list[Any]) -> None:
    names = sorted({str(key) for key in unknown if key is not None})[:5] or ["missing"]
    message = (
        f"subgroups: {n_rows} rows belong to no {POLICY['groups']['by']} that has a "
        f"threshold ({names}; known: {known[:10]})"
    )
    if POLICY["groups"]["unseen"] == "raise":
        raise ValueError(f"{message}. With unseen='abstain' they are handed over instead.")
    warnings.warn(f"{message}; they are handed over.", stacklevel=4)


def _join_columns(subgroups: Any, n: int) -> list[tuple[Any, ...]]:
    """Return each row's attributes."""
    columns = _check_columns(subgroups)
    if not columns or any(len(column) != n for column in columns):
        raise ValueError(f"subgroups must hold one value per row, {n}.")
    return list(zip(*columns, strict=True))


def _find_key(parts: tuple[Any, ...]) -> Any:
    """Return a subgroup: a value, or a tuple of several; None where one is missing."""
    key = tuple(None if _is_missing(part) else _plain(part, "subgroups") for part in parts)
    return None if None in key else key if len(key) > 1 else key[0]


def _check_columns(subgroups: Any) -> list[list[Any]]:
    """Return one list per attribute, in the order of the policy."""
    groups = POLICY["groups"]
    if subgroups is None:
        raise ValueError(
            f"subgroups is missing: this policy has one threshold per {groups['by']}; pass the "
            f"{groups['by']} of each row, one of {list(_group_thresholds())[:10]}."
        )
    is_mapping = isinstance(subgroups, Mapping)
    names = list(subgroups if is_mapping else getattr(subgroups, "columns", []))
    by_name = {str(name): name for name in names}
    wanted = groups["columns"] or list(by_name)
    if set(by_name) != set(wanted) or len(by_name) < len(names):
        raise ValueError(f"subgroups must be a table with the columns {wanted}, got {names}.")
    if names:
        return [_as_list(subgroups[by_name[name]]) for name in wanted]
    if isinstance(subgroups, str) or np.ndim(subgroups) != 1:
        raise ValueError("subgroups must hold one value per row, or be a table with columns.")
    return [_as_list(subgroups)]


def _as_list(column: Any) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _read_once(values: list[Any], read: Callable[[Any], Any]) -> dict[Any, Any]:
    """Return what `read` makes of each value; of equal ones it sees the first only."""
    try:
        return {value: read(value) for value in dict.fromkeys(values)}
    except TypeError:  # something that cannot be a key of a dict: `read` says what it is
        for value in values:
            read(value)
        raise


def _is_missing(value: Any) -> bool:
    # pandas' NA is recognised by name: `NA != NA` has no truth value.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)  # noqa: PLR0124


def _plain(value: Any, name: str) -> Any:
    """Return a label as a plain Python value."""
    plain = value.item() if isinstance(value, np.generic) else value
    finite = not isinstance(plain, float) or math.isfinite(plain)
    if not isinstance(plain, str | int | float | bool) or not finite:
        raise ValueError(
            f"{name} must be strings, finite numbers or booleans, got {value!r} of type "
            f"{type(value).__name__}."
        )
    return plain


# The policy -------------------------------------------------------------------------------------


def compute_digest(policy: dict[str, Any], certificate: str) -> str:
    """Return a digest of a policy and its certificate."""
    return hashlib.sha256(ascii((policy, certificate)).encode()).hexdigest()


POLICY: dict[str, Any] = {
    "classes": ["no", "yes"],
    "classes_dtype": "<U3",
    "response": "predict_proba",
    "calibration": None,
    "confidence": "max_proba",
    "decision": "argmax",
    "cost_matrix": None,
    "threshold": 0.8,
    "groups": None,
    "shortlist": None,
    "created": "an example, until skselect writes a policy here",
    "digest": "that of the policy file",
}

CERTIFICATE = "An example promises nothing."

DIGEST = compute_digest(POLICY, CERTIFICATE)

# The end of the policy --------------------------------------------------------------------------

if compute_digest(POLICY, CERTIFICATE) != DIGEST:
    raise ValueError(
        "POLICY or CERTIFICATE was changed after skselect wrote this file, so that nothing is "
        "promised of its decisions. Change the policy, and write the file again with "
        "policy.to_python(path)."
    )

if __name__ == "__main__":
    usage = (
        "Import `decide` from this file. It reads no tables; `skselect apply` does. Whether it "
        "belongs to a policy file: python gate.py policy.json"
    )
    if len(sys.argv) != 2:
        raise SystemExit(usage)
    name = sys.argv[1]
    try:
        is_mine = json.loads(Path(name).read_bytes())["digest"] == POLICY["digest"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise SystemExit(f"{name} is no policy file with a digest ({error!r}). {usage}") from None
    if not is_mine:
        raise SystemExit(f"{name} is another policy than that of this file.")
