"""One decision, with numpy alone: scores in; probabilities, answers, confidences, thresholds out.

The library decides by these functions, and ``AbstentionPolicy.to_python`` writes the text below the
imports into the file that decides without the library: so both compute the same bits.

A `policy` is what a policy file holds, with arrays for lists and a function for a confidence that
has no name; a `calibration` is its part of that name, with functions for fitted maps.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from enum import Enum
from inspect import currentframe
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Policy = Mapping[str, Any]

#: Up to this number, columns are reduced one by one: numpy takes about as long for a row of two
#: numbers as for one of a hundred.
FEW = 4
#: Rows treated at once, so that intermediate results stay in the processor's cache.
SPAN = 1 << 14
#: How far a row of probabilities may be from summing to one (tables are often rounded).
SUM_TOLERANCE = 1e-3
#: How far a single probability may leave [0, 1] by rounding inside a model.
RANGE_TOLERANCE = 1e-6
#: Probabilities nearer to 0 or 1 count as this near, so that their logarithms are finite.
LEAST_PROBA = 1e-6
#: What a learned confidence reads of the classifier's own probabilities.
OWN_FEATURES = ("logit", "lead", "entropy")


def decide_rows(
    policy: Policy,
    scores: Array,
    y_pred: Array | None = None,
    auxiliary_proba: Mapping[str, Array] | None = None,
    subgroups: tuple[Array, list[Any]] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Return probabilities, answers (as codes), confidences and thresholds of checked scores.

    A row that lacks a number cannot be decided, and where all probabilities are 0 the classifier
    says "none of these": the confidence is NaN, which no threshold accepts.

    Parameters
    ----------
    policy : mapping
    scores : ndarray of shape (n, K), or (n,) for the decision values of two classes
    y_pred : ndarray of shape (n,), default=None
        Codes of the classifier's own answers, where the policy takes them.
    auxiliary_proba : dict of ndarray, default=None
        What a learned confidence asks beside the scores.
    subgroups : tuple, default=None
        The code of each row's subgroup, -1 where it is missing, and the subgroups.
    """
    # Sums over columns must not depend on the memory layout.
    table = np.ascontiguousarray(scores)
    rated = None
    undecided = missing = None
    if confidence_shows_zeros(policy, table):
        rated = rate_rows(policy, table, y_pred, auxiliary_proba)
    if rated is None or not rated[2].min(initial=1.0) > 0.0:  # NaN is not above 0
        missing, names_none = find_undecided(table, policy.get("response", "predict_proba"))
        if missing is not None or names_none is not None:
            undecided = rows_of_either(missing, names_none)
            table = spread(table, undecided)
            rated = None
    if rated is None:
        rated = rate_rows(policy, table, y_pred, auxiliary_proba)
    proba, answers, confidence = rated
    calibration = policy["calibration"]
    if calibration is not None and calibration["scope"] == "confidence":
        confidence = calibrate_confidence(calibration, confidence)
    if undecided is not None:
        confidence = np.where(undecided, np.nan, confidence)
    if missing is not None:
        warn_undecided("y_proba", missing)
        proba[missing] = np.nan
    threshold = find_thresholds(policy, confidence, answers, subgroups)
    return proba, answers, confidence, threshold


def rate_rows(
    policy: Policy, table: Array, y_pred: Array | None, auxiliary_proba: Mapping[str, Array] | None
) -> tuple[Array, Array, Array]:
    """Return calibrated probabilities, answers, and confidences before they are calibrated."""
    calibration = policy["calibration"]
    proba = table
    if calibration is not None and calibration["scope"] == "probabilities":
        proba = calibrate(calibration, table)
    answers = choose(policy, proba, y_pred)
    return proba, answers, rate(policy, proba, answers, auxiliary_proba)


def confidence_shows_zeros(policy: Policy, table: Array) -> bool:
    """Tell whether the confidence, before it is calibrated, is 0 in each row of zeros."""
    calibration = policy["calibration"]
    if calibration is not None and calibration["scope"] == "probabilities":
        return False
    is_named = policy["confidence"] in ("max_proba", "chosen_proba", "margin", "gini")
    return is_named and table.ndim == 2 and table.shape[1] > 1


def tell(
    policy: Policy, proba: Array, answers: Array, confidence: Array, threshold: Array
) -> dict[str, Array]:
    """Return decisions by name, with None where a label or a shortlist is missing."""
    accepted = confidence >= threshold
    labels = np.array([*policy["classes"].tolist(), None], dtype=object)  # the last has code -1
    suggestion = policy["classes"][answers]
    undecided = np.isnan(confidence)
    if undecided.any():
        suggestion = labels[np.where(undecided, -1, answers)]
    decided = {
        "label": labels[np.where(accepted, answers, -1)],
        "suggestion": suggestion,
        "accepted": accepted,
        "confidence": confidence,
        "threshold": threshold,
    }
    if policy["shortlist"] is not None:
        least = policy["shortlist"]["least_proba"]
        decided["shortlist"] = list_rejected(proba, accepted, policy["classes"], least)
    return decided


# Scores ---------------------------------------------------------------------------------------


def find_undecided(scores: Array, response: str) -> tuple[Array | None, Array | None]:
    """Return which rows of checked scores lack a number, and which are zeros; None for none."""
    if len(scores) == 0:
        return None, None
    if response != "predict_proba":
        is_nan = np.isnan(scores)
        return some_or_none(is_nan if scores.ndim == 1 else np.any(is_nan, axis=1)), None
    if scores.shape[1] > FEW and np.einsum("ij->i", scores).min() > 0.5:  # false for NaN
        return None, None
    largest = row_max(scores)
    if largest.min() > 0.0:
        return None, None
    missing = np.any(np.isnan(scores), axis=1)
    return some_or_none(missing), some_or_none(largest == 0.0)


def some_or_none(rows: Array) -> Array | None:
    """Return which rows are meant, None if it is none of them."""
    return rows if rows.any() else None


def rows_of_either(a: Array | None, b: Array | None) -> Array:
    """Return which rows are among one kind or the other."""
    if a is None or b is None:
        return np.asarray(b if a is None else a)
    return np.asarray(a | b)


def spread(proba: Array, rows: Array) -> Array:
    """Return a copy with equal probabilities in some rows."""
    filled = proba.copy()
    filled[rows] = 1.0 / proba.shape[1] if proba.ndim == 2 else 0.0
    return filled


def warn_undecided(name: str, missing: Array) -> None:
    """Warn of rows that are deferred because they lack a number."""
    n = int(np.sum(missing))
    row = int(np.argmax(missing))
    warn_user(
        f"{name}: {n:,} of {len(missing):,} rows lack a number (the first is row {row}); they are "
        "deferred."
    )


def refuse_ignored(
    policy: Policy, y_proba: Any, y_pred: Any, confidence: Any, subgroups: Any, auxiliary: Any
) -> None:
    """Refuse what a policy would ignore."""
    if confidence is not None and (y_proba is not None or y_pred is None or auxiliary):
        raise ValueError(
            "confidence goes with y_pred, the answers, and y_proba=None; auxiliary goes with "
            "y_proba."
        )
    if confidence is None and y_pred is not None and policy["decision"] != "estimator":
        raise ValueError(
            f"y_pred goes with decision='estimator'; decision={policy['decision']!r} chooses its "
            "own classes."
        )
    if auxiliary and policy["asks"] is None:
        raise ValueError("auxiliary: this policy's confidence uses none; leave it out.")
    refuse_subgroups(policy, subgroups)


def refuse_subgroups(policy: Policy, subgroups: Any) -> None:
    """Refuse subgroups that a policy would ignore."""
    if subgroups is not None and policy["groups"] is None:
        raise ValueError("subgroups: this policy has one threshold for all rows; leave them out.")
    if subgroups is not None and policy["groups"]["by_answer"]:
        raise ValueError("subgroups: the answers are the subgroups of this policy; leave them out.")


def follow(
    cascade: Policy, n: int, n_classes: int, ask: Callable[[int, Array], Array]
) -> tuple[Array, Array]:
    """Return the probabilities of the stage that keeps each row, and which stage that is.

    A row goes on where its largest probability is below the cut of its stage. It waits, with NaN,
    where nothing is known of it.

    Parameters
    ----------
    cascade : mapping
        Its part of the policy; the last cut is -inf.
    n, n_classes : int
    ask : callable
        Returns what a stage says of some rows.
    """
    proba = np.full((n, n_classes), np.nan)
    stage = np.zeros(n, dtype=np.int64)
    going = np.arange(n)
    for k, cut in enumerate(cascade["cuts"]):
        if len(going) == 0:
            break
        stage[going] = k
        scores = ask(k, going)
        is_complete = ~np.isnan(scores).any(axis=1)
        proba[going[~is_complete]] = np.nan
        going = going[is_complete]
        scores = scores[is_complete]
        if cascade["calibrations"][k] is not None:
            names_none = row_max(scores) == 0.0
            scores = calibrate_stage(cascade["calibrations"][k], np.ascontiguousarray(scores))
            if n_classes > 1:  # a row of zeros stays one: none of the classes
                scores[names_none] = 0.0
        proba[going] = scores
        going = going[row_max(scores) < cut]
    return proba, stage


def follow_tables(
    cascade: Policy, y_proba: Any, n_classes: int, check: Callable[[Any, str], Array]
) -> tuple[Array, Array]:
    """Follow a cascade through the tables of its stages; see :func:`follow`.

    Parameters
    ----------
    cascade : mapping
    y_proba : mapping from stage to table, or the table of the first stage
        Later tables may hold NaN in whole rows, where the stage was not asked.
    n_classes : int
        1 for confidences.
    check : callable
        Checks a table without such rows; it gets the table and its name.
    """
    names = cascade["names"]
    tables = y_proba if isinstance(y_proba, Mapping) else {names[0]: y_proba}
    if not {names[0]} <= set(tables) <= set(names):
        raise ValueError(
            f"y_proba: this policy asks the stages {names} in turn; pass a dict of their tables, "
            f"the first one at least, got {list(tables)}."
        )
    scores = {x: read_stage(tables[x], f"y_proba[{x!r}]", n_classes, check) for x in tables}
    n = len(scores[names[0]])
    for name, table in scores.items():
        if len(table) != n:
            raise ValueError(
                f"y_proba[{name!r}] has {len(table)} rows, but the first stage has {n}."
            )
    each = [scores.get(name, np.full((n, n_classes), np.nan)) for name in names]
    return follow(cascade, n, n_classes, lambda k, rows: each[k][rows])


def follow_to_end(
    cascade: Policy, y_proba: Any, n_classes: int, check: Callable[[Any, str], Array]
) -> tuple[Array, Array]:
    """Follow a cascade as :func:`follow_tables` does; no row may wait."""
    if not isinstance(y_proba, Mapping):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"y_proba: this policy asks the stages {cascade['names']} in turn; pass a dict of "
            "what each of them says, such as tuner.raw_scores(X)."
        )
    proba, stage = follow_tables(cascade, y_proba, n_classes, check)
    waits = np.flatnonzero(np.isnan(proba).any(axis=1))
    if len(waits):
        raise ValueError(
            f"y_proba: {len(waits)} of {len(proba)} rows (first row {waits[0]}) must still ask "
            f"the stage {cascade['names'][stage[waits[0]]]!r}; begin(y_proba) says which."
        )
    return proba, stage


def read_stage(
    y_proba: Any, name: str, n_classes: int, check: Callable[[Any, str], Array]
) -> Array:
    """Return the checked table of a stage, with NaN in rows where it was not asked."""
    values = as_plain(y_proba, name)
    if values.dtype.kind != "f" or not np.isnan(values).any():
        return check(y_proba, name)
    has_scores = ~np.isnan(values.reshape(len(values), -1)).all(axis=1)
    table = np.full((len(values), n_classes), np.nan)
    if has_scores.any():
        rows = y_proba[has_scores] if hasattr(y_proba, "loc") else values[has_scores]
        table[has_scores] = check(rows, name)
    return table


def check_decision_values(policy: Policy, values: Array) -> Array:
    """Return checked decision values."""
    n = len(np.atleast_1d(values))
    n_classes = len(policy["classes"])
    wanted = (n,) if n_classes == 2 else (n, n_classes)
    if values.shape == (0,) or (n_classes == 2 and values.shape[1:] == (1,)):
        values = values.reshape(wanted)
    scores = as_floats(values, "y_proba")
    if scores.shape != wanted or np.any(np.isinf(scores)):
        got = f"the shape {scores.shape}" if scores.shape != wanted else "infinite ones"
        raise ValueError(
            f"y_proba: this policy was built on decision_function; it needs finite decision values "
            f"of shape {wanted}, got {got}."
        )
    return scores


# Calibration ----------------------------------------------------------------------------------


def calibrate_stage(calibration: Policy, scores: Array) -> Array:
    """Return what a stage says, calibrated: probabilities, or the one column of a confidence."""
    if calibration["scope"] == "confidence":
        return calibrate_confidence(calibration, scores[:, 0])[:, None]
    return calibrate(calibration, scores)


def calibrate(calibration: Policy, scores: Array) -> Array:
    """Return class probabilities that sum to one in each row.

    A row to which all maps give 0 gets equal probabilities.
    """
    inputs = find_inputs(calibration, scores)
    mapped = [apply(x) for apply, x in zip(calibration["maps"], inputs, strict=True)]
    if calibration["kind"] == "softmax":
        return np.asarray(mapped[0])
    if len(calibration["maps"]) == 1:
        return np.column_stack([1.0 - mapped[0], mapped[0]])
    proba = np.column_stack(mapped)
    total = proba.sum(axis=1, keepdims=True)
    uniform = np.full_like(proba, 1.0 / proba.shape[1])
    return np.divide(proba, total, out=uniform, where=total > 0)


def find_inputs(calibration: Policy, scores: Array) -> list[Array]:
    """Return what each map reads: all logits, a column of scores, or the log-odds of a column."""
    table = np.asarray(scores, dtype=np.float64)
    if calibration["kind"] == "softmax":
        is_proba = calibration["response"] == "predict_proba"
        return [np.log(table + calibration["offset"]) if is_proba else table]
    columns = [table] if table.ndim == 1 else list(table.T)
    columns = columns[1:] if len(columns) == 2 else columns  # one map for two classes
    if calibration["reads_log_odds"]:
        return [log_odds(column, calibration["offset"]) for column in columns]
    return columns


def calibrate_confidence(calibration: Policy, confidence: Array) -> Array:
    """Return the calibrated confidence: the probability of being right."""
    return np.asarray(calibration["maps"][0](find_inputs(calibration, confidence)[0]))


def log_odds(p: Array, offset: float) -> Array:
    """Return log((p + offset)/(1 - p + offset)), finite and rising for every p in [0, 1]."""
    return np.asarray(np.log(p + offset) - np.log(1.0 - p + offset))


def expit(x: Array) -> Array:
    """Return 1/(1 + exp(-x)), by numpy alone and as exact as scipy's."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def mix(fitted: Array, share: float, prior: Any) -> Array:
    """Return a fitted map, mixed with a guess that keeps it from 0 and 1."""
    return np.asarray((1.0 - share) * fitted + share * prior)


def temperature_map(score: Array, temperature: float, share: float, prior: float) -> Array:
    """Return the probability of log-odds, divided by a temperature."""
    with np.errstate(over="ignore"):  # exp(inf) is right here
        fitted = expit(score / temperature)
    return mix(fitted, share, prior)


def softmax_map(logits: Array, temperature: float, share: float, prior: Array) -> Array:
    """Return the probabilities of logits, divided by a temperature."""
    fitted = softmax(logits / temperature)
    return mix(fitted, share, prior)


def softmax(logits: Array) -> Array:
    """Return exp(x) of each row divided by its sum, by numpy alone as in :func:`expit`."""
    relative = np.exp(logits - np.max(logits, axis=1, keepdims=True))
    return np.asarray(relative / np.sum(relative, axis=1, keepdims=True))


def platt_map(score: Array, slope: float, intercept: float, share: float, prior: float) -> Array:
    """Return the probability of log-odds by a logistic curve."""
    with np.errstate(over="ignore"):  # exp(inf) is right here
        fitted = expit(slope * score + intercept)
    return mix(fitted, share, prior)


def beta_map(score: Array, a: float, b: float, c: float, share: float, prior: float) -> Array:
    """Return the probability of log-odds by a beta map."""
    low, high = both_sides(score)
    with np.errstate(over="ignore"):  # exp(inf) is right here
        fitted = expit(a * low + b * high + c)
    return mix(fitted, share, prior)


def both_sides(score: Array) -> tuple[Array, Array]:
    """Return log q and -log(1 - q) of log-odds."""
    with np.errstate(invalid="ignore"):  # nan stays nan
        return -np.logaddexp(0.0, -score), np.logaddexp(0.0, score)


def interpolate(score: Array, knots: Array, values: Array) -> Array:
    """Return a map that is linear between its knots, and flat outside them."""
    return np.interp(score, knots, values)


def venn_abers_map(score: Array, knots: Array, lower: Array, upper: Array) -> Array:
    """Return both Venn-Abers probabilities, made into one."""
    low, high = venn_abers_interval(score, knots, lower, upper)
    return np.asarray(high / (1.0 - low + high))


def venn_abers_interval(
    score: Array, knots: Array, lower: Array, upper: Array
) -> tuple[Array, Array]:
    """Return p0 of the knot below each score, and p1 of the knot above."""
    above = np.append(upper, 1.0)[np.searchsorted(knots, score, side="left")]
    below = np.append(0.0, lower)[np.searchsorted(knots, score, side="right")]
    missing = np.isnan(score)
    return np.where(missing, np.nan, below), np.where(missing, np.nan, above)


MAPS: dict[str, Callable[..., Array]] = {
    "temperature": temperature_map,
    "softmax": softmax_map,
    "platt": platt_map,
    "beta": beta_map,
    "isotonic": interpolate,
    "smooth_isotonic": interpolate,
    "venn_abers": venn_abers_map,
}


# Answers and confidence -----------------------------------------------------------------------


def choose(policy: Policy, proba: Array, y_pred: Array | None = None) -> Array:
    """Return the code of each answer: given, cheapest on average, or most probable."""
    if policy["decision"] == "estimator":
        return np.asarray(y_pred)
    if policy["decision"] == "min_cost":
        return np.argmin(expected_costs(proba, policy["cost_matrix"]), axis=1)
    return row_argmax(proba)


def expected_costs(proba: Array, costs: Array) -> Array:
    """Return the mean cost of each answer, (n, K), as a share of the largest cost."""
    scaled = costs / costs.max()
    proba = proba.astype(np.float64, copy=False)
    total = np.zeros(proba.shape)
    for k in range(proba.shape[1]):  # the bits of a matrix product depend on the other rows
        total += proba[:, k : k + 1] * scaled[k]
    return total


def row_argmax(table: Array) -> Array:
    """Return the position of the largest number of each row, the first of equal ones."""
    if table.shape[1] > FEW:
        return np.asarray(table.argmax(axis=1))
    columns = np.zeros(len(table), dtype=np.int64)
    for start in range(0, len(table), SPAN):
        rows = slice(start, start + SPAN)
        largest = table[rows, 0]
        place = columns[rows]
        for k in range(1, table.shape[1]):
            larger = table[rows, k] > largest
            place[:] = larger if k == 1 else np.where(larger, k, place)
            if k + 1 < table.shape[1]:
                largest = np.maximum(largest, table[rows, k])
    return columns


def row_max(table: Array, place: Array | None = None) -> Array:
    """Return the largest number of each row, as float64; `place` is its column, if known."""
    if table.shape[1] > FEW:
        return table.max(axis=1).astype(np.float64) if place is None else chosen(table, place)
    largest = table[:, 0].astype(np.float64)
    for k in range(1, table.shape[1]):
        np.maximum(largest, table[:, k], out=largest)
    return largest


def chosen(table: Array, columns: Array) -> Array:
    """Return from each row the number in its own column, as float64."""
    return table[np.arange(len(table)), columns].astype(np.float64)


def rate(
    policy: Policy, proba: Array, answers: Array, auxiliary_proba: Mapping[str, Array] | None = None
) -> Array:
    """Return the confidence in each answer."""
    confidence = policy["confidence"]
    if callable(confidence):  # learned, or the user's own
        return np.asarray(confidence(proba, answers, auxiliary_proba))
    if confidence == "chosen_proba":
        return chosen(proba, answers)
    if confidence == "expected_cost":
        costs = expected_costs(proba, policy["cost_matrix"])
        return np.clip(1.0 - chosen(costs, answers), 0.0, 1.0)
    if confidence == "max_proba" and policy["decision"] == "argmax":
        return row_max(proba, answers)
    return CONFIDENCES[confidence](proba)


def max_proba(y_proba: Array) -> Array:
    """Return the largest probability of each row: max_k p_k, in [1/K, 1]."""
    return row_max(y_proba)


def margin(y_proba: Array) -> Array:
    """Return the lead of the most probable class: p_(1) - p_(2), in [0, 1]."""
    if y_proba.shape[1] == 1:
        return np.ones(len(y_proba))
    top = np.partition(y_proba, -2, axis=1)[:, -2:].astype(np.float64)
    return np.asarray(top[:, 1] - top[:, 0])


def entropy(y_proba: Array) -> Array:
    """Return one minus the normalised entropy: 1 - H(p)/log K, in [0, 1]."""
    return np.clip(1.0 - normalized_entropy(y_proba), 0.0, 1.0)


def normalized_entropy(y_proba: Array) -> Array:
    """Return H(p)/log K of each row, in [0, 1] but for rounding; 0 for a single class."""
    n_classes = y_proba.shape[1]
    if n_classes == 1:
        return np.zeros(len(y_proba))
    p = y_proba.astype(np.float64)
    # Zero probabilities add nothing: p log p -> 0.
    logs = np.log(p, out=np.zeros_like(p), where=p > 0)
    return np.asarray(-np.sum(p * logs, axis=1) / np.log(n_classes))


def gini(y_proba: Array) -> Array:
    """Return the rescaled Gini concentration: (K sum_k p_k^2 - 1)/(K - 1), in [0, 1]."""
    n_classes = y_proba.shape[1]
    if n_classes == 1:
        return np.ones(len(y_proba))
    p = y_proba.astype(np.float64)
    return np.clip((n_classes * np.sum(p * p, axis=1) - 1.0) / (n_classes - 1.0), 0.0, 1.0)


CONFIDENCES: dict[str, Callable[[Array], Array]] = {
    "max_proba": max_proba,
    "margin": margin,
    "entropy": entropy,
    "gini": gini,
}


# Learned confidence ---------------------------------------------------------------------------


def as_plain(values: Any, name: str) -> Array:
    """Return an array; refuse masked values and rows of different lengths."""
    refuse_masked(values, name)
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is no table: {find_ragged(values) or error}.") from error


def refuse_masked(values: Any, name: str) -> None:
    """Refuse masked values, whose mask numpy would leave out."""
    parts = values if isinstance(values, list | tuple) else [values]
    masked = [part for part in parts if isinstance(part, np.ma.MaskedArray)]
    if any(map(np.ma.is_masked, masked)):
        raise ValueError(f"{name} has masked values; drop those rows, or fill them, first.")


def find_ragged(values: Any) -> str:
    """Say which row of a list is not as long as the first one, "" where none is."""
    if not isinstance(values, list | tuple):
        return ""
    lengths = [len(row) if hasattr(row, "__len__") else 1 for row in values]
    for place, length in enumerate(lengths):
        if length != lengths[0]:
            found = f"row {place} holds {length} values, and row 0 {lengths[0]}"
            return f"its rows have different lengths ({found})"
    return ""


def as_floats(values: Array, name: str) -> Array:
    """Return an array as float64; refuse dates, and what else a float cannot hold."""
    dates = np.datetime64 | np.timedelta64  # among objects, too, numpy would take them for numbers
    of_dates = values.dtype == object and any(isinstance(x, dates) for x in values.flat)
    if of_dates or values.dtype.kind in "cmM":
        found = "dates" if of_dates else f"{values.dtype} values"
        raise ValueError(f"{name} must hold numbers, got {found}.")
    try:
        if values.dtype == object:  # pandas' NA is known by its name
            blank = [type(x).__name__ == "NAType" for x in values.flat]
            values = np.where(np.reshape(blank, values.shape), np.nan, values)
        return values.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        texts = [str(x) for x in values.flat if isinstance(x, str)]
        reason = f"got {texts[0][:50]!r}" if texts else f"{error!s:.200}"
        hint = " Write 87% as 0.87." if texts and texts[0].endswith("%") else ""
        raise ValueError(f"{name} must hold numbers: {reason}.{hint}") from error


def check_numbers(values: Any, name: str) -> Array:
    """Return one finite number per row, as float64."""
    vector = as_floats(as_plain(values, name), name)
    if vector.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got the shape {vector.shape}.")
    if not np.all(np.isfinite(vector)):
        raise ValueError(f"{name} has NaN or infinite values.")
    return vector


def check_rated(values: Any, name: str) -> Array:
    """Return one confidence per row, as float64; NaN where a row cannot be decided."""
    vector = as_floats(as_plain(values, name), name)
    if vector.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got the shape {vector.shape}.")
    if np.any(np.isinf(vector)):
        raise ValueError(f"{name} has infinite values; every confidence must be finite.")
    return vector


def check_asked(policy: Policy, auxiliary: Any, advice: str = "") -> Mapping[str, Any]:
    """Return the auxiliary models by name; refuse any but those that a learned confidence asks."""
    names = list(policy["asks"])
    if auxiliary is None and not names:
        return {}
    if not isinstance(auxiliary, Mapping) or set(auxiliary) != set(names):
        given = isinstance(auxiliary, Mapping)
        got = f"the names {list(auxiliary)}" if given else f"a {type(auxiliary).__name__}"
        raise ValueError(
            f"auxiliary must be a dict with the names {names}, which the learned confidence of "
            f"this policy asks about the same rows, got {got}. The estimator it comes from gives "
            f"them: model.raw_auxiliary(X), beside model.raw_scores(X).{advice}"
        )
    return {name: auxiliary[name] for name in names}


def read_auxiliary(
    policy: Policy,
    auxiliary: Any,
    n: int,
    check_table: Callable[[Any, str], Array],
    check_vector: Callable[[Any, str], Array],
) -> dict[str, Array]:
    """Return what a learned confidence asks beside the scores of `n` rows, checked, by name."""
    auxiliary_proba = {}
    for name, values in check_asked(policy, auxiliary).items():
        place = f"auxiliary[{name!r}]"
        check = check_table if policy["asks"][name] else check_vector
        auxiliary_proba[name] = check(values, place)
        if len(auxiliary_proba[name]) != n:
            raise ValueError(f"{place} has {len(auxiliary_proba[name])} rows, but y_proba has {n}.")
    return auxiliary_proba


def find_features(
    maps: Mapping[str, Callable[[Array], Array]],
    proba: Array,
    answers: Array,
    auxiliary_proba: Mapping[str, Array],
) -> dict[str, Array]:
    """Return the features of each answer by name; tables of auxiliary models are calibrated."""
    calibrated = {
        name: apply(np.ascontiguousarray(auxiliary_proba[name])) for name, apply in maps.items()
    }
    return describe_answers(proba, answers, {**auxiliary_proba, **calibrated})


def weigh(
    features: Mapping[str, Array], coefficients: Mapping[str, float], intercept: float
) -> Array:
    """Return the logistic function of features by name."""
    total = np.full(len(next(iter(features.values()))), intercept)
    # The bits of a matrix product would depend on the other rows.
    for name, coefficient in coefficients.items():
        total += coefficient * features[name]
    with np.errstate(over="ignore"):
        return expit(total)


def describe_answers(
    y_proba: Array, y_pred: Array, auxiliary_proba: Mapping[str, Array]
) -> dict[str, Array]:
    """Return the features of each answer by name.

    Of a table of probabilities among the `auxiliary_proba` that is the logit it gives to this
    answer; a vector is taken as it is.
    """
    others = y_proba.astype(np.float64)
    answer = chosen(others, y_pred)
    others[np.arange(len(others)), y_pred] = 0.0
    second = others.max(axis=1)
    features = {
        "logit": logit(answer),
        "lead": np.log(keep_inside(answer)) - np.log(keep_inside(second)),
        "entropy": normalized_entropy(y_proba),
    }
    return features | {
        name: logit(chosen(table, y_pred)) if table.ndim == 2 else table
        for name, table in auxiliary_proba.items()
    }


def logit(probability: Array) -> Array:
    """Return log(p/(1 - p)) of probabilities kept away from 0 and 1."""
    p = keep_inside(probability)
    return np.asarray(np.log(p) - np.log(1.0 - p))


def keep_inside(probability: Array) -> Array:
    """Return probabilities kept away from 0 and 1."""
    return np.clip(probability, LEAST_PROBA, 1.0 - LEAST_PROBA)


# Thresholds and shortlists --------------------------------------------------------------------


def find_thresholds(
    policy: Policy,
    confidence: Array,
    answers: Any,
    subgroups: tuple[Array, list[Any]] | None,
) -> Array:
    """Return the threshold of each row, inf for rows of a subgroup without one."""
    if policy["groups"] is None:
        return np.full(len(confidence), policy["threshold"])
    codes, keys = (answers, policy["classes"].tolist()) if subgroups is None else subgroups
    thresholds = policy["groups"]["thresholds"]
    unknown = np.array([*(key not in thresholds for key in keys), True])[codes]  # the last: code -1
    unknown &= ~np.isnan(confidence)  # these are deferred in any subgroup
    if np.any(unknown):
        names = sorted({str(keys[code]) for code in np.unique(codes[unknown]) if code >= 0})
        message = (
            f"subgroups: {np.sum(unknown)} rows belong to no {policy['groups']['by']} that has a "
            f"threshold ({names[:5] or ['missing']}; known: {list(thresholds)[:10]})"
        )
        if policy["groups"]["unseen"] == "raise":
            raise ValueError(f"{message}. With unseen='abstain' they are deferred instead.")
        warn_user(f"{message}; they are deferred.")
    return np.array([*(thresholds.get(key, math.inf) for key in keys), math.inf])[codes]


def distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; refuse a key that stands twice, of which readers take either."""
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repeated!r} stands twice in one object")
    return content


def check_subgroup(key: Any) -> Any:
    """Return a subgroup as plain values that a JSON file can hold."""
    if isinstance(key, tuple):
        return tuple(check_subgroup(part) for part in key)
    plain = plain_value(key)
    finite = not isinstance(plain, float) or math.isfinite(plain)
    if not isinstance(plain, str | int | float | bool) or not finite:
        raise ValueError(
            "subgroups must be strings, finite numbers or booleans, so that a policy can be saved, "
            f"got {key!r} of type {type(key).__name__}. Give them names, as in "
            "pd.cut(X['age'], [0, 50, 100], labels=['young', 'old'])."
        )
    return plain


def plain_value(value: Any) -> Any:
    """Return a label or subgroup as a plain value: a member of an Enum by its value."""
    if isinstance(value, Enum):
        return plain_value(value.value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str):  # a subclass of str may print other text than it is equal to
        return str.__str__(value)
    return value


#: Packages whose lines are none of the user's: this one, and those that call it for the user.
INNER = {__name__.partition(".")[0], "sklearn", "joblib"}


def warn_user(message: str) -> None:
    """Warn at the user's line: the innermost one that is not in the packages of `INNER`."""
    level = 1
    frame = currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INNER:
        level += 1
        frame = frame.f_back
    warnings.warn(message, stacklevel=level)


def list_rejected(proba: Array, accepted: Array, classes: Array, least: float) -> Array:
    """Return the shortlist of each row that is not accepted, None for the others."""
    lists = np.full(len(proba), None, dtype=object)
    rejected = proba[~accepted]
    named = prediction_sets(rejected, classes, least)
    lists[~accepted] = np.fromiter(named, dtype=object, count=len(rejected))
    lists[np.isnan(proba).any(axis=1)] = None  # nothing is known of these rows
    return lists


def prediction_sets(proba: Array, classes: Array, least: float) -> list[tuple[Any, ...]]:
    """Return the classes of each row with at least this probability, most probable first.

    Classes of equal probability keep their order.
    """
    proba = proba.astype(np.float64)
    counts = np.sum(proba >= least, axis=1)
    order = np.argsort(-proba, axis=1, kind="stable")[:, : np.max(counts, initial=0)]
    rows = zip(classes[order].tolist(), counts.tolist(), strict=True)
    return [tuple(labels[:count]) for labels, count in rows]
