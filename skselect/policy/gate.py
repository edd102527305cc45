"""The doors of a policy's Python file: what users call there, and how it reads what they give.

:meth:`AbstentionPolicy.to_python` writes the text of :mod:`skselect._lib.decide` and that of this
module, each below its imports, and then the policy. The checks here refuse what the library
refuses, in fewer words.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from skselect._lib.decide import (
    MAPS,
    OWN_FEATURES,
    RANGE_TOLERANCE,
    SUM_TOLERANCE,
    Array,
    as_floats,
    as_plain,
    calibrate,
    check_decision_values,
    check_numbers,
    check_rated,
    check_subgroup,
    decide_rows,
    distinct_keys,
    find_features,
    find_thresholds,
    follow_tables,
    follow_to_end,
    plain_value,
    read_auxiliary,
    refuse_ignored,
    refuse_masked,
    refuse_subgroups,
    tell,
    warn_undecided,
    weigh,
)

# What users call ------------------------------------------------------------------------------

#: The end of the file fills these: the policy as it was saved, what it guarantees in words, the
#: digest of both, and the policy as the functions read it.
POLICY: dict[str, Any] = {}
CERTIFICATE: str = ""
DIGEST: str = ""
policy: dict[str, Any] = {}


def decide(
    y_proba: Any = None,
    *,
    y_pred: Any = None,
    confidence: Any = None,
    subgroups: Any = None,
    auxiliary: Any = None,
) -> dict[str, Array]:
    """Turn raw scores into decisions, calibration included; a ValueError says what does not fit.

    `y_proba`: the classifier's raw output (``POLICY["response"]``), (n, K), columns in the order
    of ``POLICY["classes"]`` or named like them, or (n,) for the second of two classes. For a
    cascade a dict with such a table for each stage.
    `y_pred`: the classifier's own answers, for a policy with ``decision="estimator"``.
    `confidence`: how sure each answer in `y_pred` is, instead of `y_proba`.
    `subgroups`: the subgroup of each row, for a policy with a threshold per subgroup.
    `auxiliary`: what a learned confidence asks, by name.
    Returns arrays: "label" (None where it abstains), "suggestion" (the answer everywhere),
    "accepted", "confidence", "threshold", and "shortlist" or "stage" if the policy has one.
    """
    if confidence is None and str(policy["confidence"]).startswith("external:"):
        raise ValueError("this policy needs y_pred, the answers, and confidence.")
    refuse_ignored(policy, y_proba, y_pred, confidence, subgroups, auxiliary)
    if confidence is not None:
        return decide_answers(y_pred, confidence, subgroups)
    if y_proba is None:
        raise ValueError("y_proba is missing.")
    stage = None
    if policy["cascade"] is not None:
        scores, stage = read_stages(y_proba, follow_to_end)
    elif policy["response"] == "decision_function":
        scores = check_decision_values(policy, as_plain(y_proba, "y_proba"))
    else:
        scores = read_proba(y_proba)
    answers = None
    if policy["decision"] == "estimator":
        answers = read_answers(y_pred, len(scores))
    auxiliary_proba = None
    if policy["asks"] is not None:
        auxiliary_proba = read_auxiliary(policy, auxiliary, len(scores), read_proba, check_numbers)
    groups = None
    if policy["groups"] is not None and not policy["groups"]["by_answer"]:
        groups = read_subgroups(subgroups, len(scores))
    decided = tell(policy, *decide_rows(policy, scores, answers, auxiliary_proba, groups))
    if stage is not None:
        names = np.array(policy["cascade"]["names"])
        decided["stage"] = names[stage]
    return decided


def decide_answers(y_pred: Any, confidence: Any, subgroups: Any) -> dict[str, Array]:
    """Decide on answers that come with a confidence; they need not be among the classes."""
    rated = check_rated(confidence, "confidence")
    answers = read_texts(y_pred, len(rated))
    abstain_answers = policy.get("abstain_answers", [])
    abstains = np.array([answer in abstain_answers for answer in answers], dtype=bool)
    rated = np.where([answer is None for answer in answers], np.nan, rated)
    groups = None
    if policy["groups"] is not None:
        if policy["groups"]["by_answer"]:
            subgroups = y_pred
        groups = read_subgroups(subgroups, len(rated))
    missing = np.isnan(rated) & ~abstains
    if missing.any():
        warn_undecided("confidence", missing)
    rated = np.where(abstains, np.nan, rated)
    threshold = find_thresholds(policy, rated, None, groups)
    proba = np.empty((len(rated), 0))
    codes = np.arange(len(rated))
    return tell({**policy, "classes": answers}, proba, codes, rated, threshold)


def begin(y_proba: Any) -> Array:
    """Return which stage of the cascade each row must ask next, None where it needs no other.

    `y_proba`: a dict with the raw output of each stage asked so far, (n, K), in whole rows NaN
    where the stage was not asked; or the output of the first stage.
    """
    if policy["cascade"] is None:
        raise ValueError("begin asks stage by stage, but this policy has no cascade.")
    scores, stage = read_stages(y_proba, follow_tables)
    waits = np.isnan(scores).any(axis=1)
    names = np.array([*policy["cascade"]["names"], None], dtype=object)
    return np.asarray(names[np.where(waits, stage, -1)])


def accepts(confidence: Any, *, subgroups: Any = None) -> Array:
    """Tell which confidences, of shape (n,), are high enough, compared as float64.

    `subgroups`: those of the rows (the answers, where these are the subgroups).
    """
    rated = check_rated(confidence, "confidence")
    groups = None
    if policy["groups"] is None:
        refuse_subgroups(policy, subgroups)
    else:
        groups = read_subgroups(subgroups, len(rated))
    return np.asarray(rated >= find_thresholds(policy, rated, None, groups))


# What users give ------------------------------------------------------------------------------


def read_proba(y_proba: Any, name: str = "y_proba") -> Array:
    """Return probabilities, a column per class; of two classes the second may stand alone."""
    proba = as_plain(y_proba, name)
    classes = policy["classes"].tolist()
    if proba.dtype == object:
        proba = as_floats(proba, name)
    if proba.shape == (0,):
        return np.empty((0, len(classes)))
    if hasattr(y_proba, "columns"):
        place = {str(column): k for k, column in enumerate(y_proba.columns)}
        if sorted(place) != sorted(map(str, classes)) or len(place) < proba.shape[1]:
            raise ValueError(f"{name}: the columns {list(place)} do not name the classes {classes}")
        proba = proba[:, [place[str(label)] for label in classes]]
    if len(policy["classes"]) == 2:  # two bare numbers may be one row or two: refused below
        column = proba.shape[1:] == (1,) or (proba.ndim == 1 and len(proba) != 2)
        if column and proba.dtype.kind == "f":
            second = proba.ravel().astype(np.float64)
            proba = np.column_stack([1.0 - second, second])
    if proba.ndim != 2 or proba.shape[1] != len(classes) or proba.dtype.kind not in "fiu":
        raise ValueError(
            f"{name} needs a row per case with the probabilities of the classes {classes[:20]}, "
            f"got the shape {proba.shape} of {proba.dtype}; pass one case as [[...]]."
        )
    return check_sums(proba.astype(np.float64), name)


def check_sums(proba: Array, name: str) -> Array:
    """Return probabilities inside [0, 1]; refuse rows that do not sum to one, but for zeros."""
    proba[np.isnan(proba).any(axis=1)] = np.nan  # no row is decided by a part of it
    decided = proba[np.any(proba, axis=1) & ~np.isnan(proba[:, 0])]
    low = float(np.min(decided, initial=1.0))
    high = float(np.max(decided, initial=0.0))
    gap = float(np.max(np.abs(decided.sum(axis=1) - 1.0), initial=0.0))
    if not (low >= -RANGE_TOLERANCE and high <= 1 + RANGE_TOLERANCE and gap <= SUM_TOLERANCE):
        fault = f"values from {low:g} to {high:g} and sums that are off by up to {gap:g}"
        raise ValueError(f"{name} needs rows of probabilities that sum to one, got {fault}.")
    if low < 0 or high > 1:
        return np.clip(proba, 0, 1)
    return proba


def read_stages(y_proba: Any, follow: Callable[..., tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the probabilities of the stage at which each row is, and that stage."""
    tables = y_proba.values() if isinstance(y_proba, Mapping) else []
    names = [list(table.index) for table in tables if hasattr(table, "loc")]
    if any(x != names[0] for x in names):
        raise ValueError("y_proba: the tables of the stages hold other rows, or another order.")
    return follow(policy["cascade"], y_proba, len(policy["classes"]), read_proba)


def read_texts(y_pred: Any, n: int) -> Array:
    """Return answers that come with a confidence, one for each of `n` rows; None for none."""
    refuse_masked(y_pred, "y_pred")
    answers = np.asarray(y_pred, dtype=object)
    if answers.shape != (n,):
        raise ValueError(
            f"y_pred must hold one answer per confidence, {n}, got the shape {answers.shape}."
        )
    plain = (None if is_blank(answer) else plain_value(answer) for answer in answers)
    return np.fromiter(plain, dtype=object, count=n)


def is_blank(value: Any) -> bool:
    """Tell whether a value is missing; pandas' NA is known by its name: `NA != NA` is NA."""
    if value is None or type(value).__name__ == "NAType":
        return True
    return bool(value != value)  # noqa: PLR0124 - NaN


def read_answers(y_pred: Any, n: int) -> Array:
    """Return the codes of the classifier's own answers."""
    if y_pred is None:
        raise ValueError("y_pred is missing: a policy with decision='estimator' needs it.")
    refuse_masked(y_pred, "y_pred")
    labels = np.asarray(y_pred, dtype=object)
    if labels.shape[1:] == (1,):
        labels = labels.ravel()
    if labels.ndim != 1:
        raise ValueError(f"y_pred must be one-dimensional, got the shape {labels.shape}.")
    if len(labels) != n:
        raise ValueError(f"y_pred has {len(labels)} rows, but y_proba has {n}.")
    answers = [plain_value(x) for x in labels.tolist()]
    code = {label: k for k, label in enumerate(policy["classes"].tolist())}
    unknown = {str(x) for x in answers if type(x).__hash__ is None or x not in code}
    if unknown:
        raise ValueError(
            f"y_pred has labels that are not among the classes {list(code)[:10]}: "
            f"{sorted(unknown)[:5]}. The policy was made for these classes only."
        )
    return np.array([code[answer] for answer in answers], dtype=np.int64)


def read_subgroups(subgroups: Any, n: int) -> tuple[Array, list[Any]]:
    """Return the code of each row's subgroup, -1 where it is missing, and the subgroups."""
    columns = read_columns(subgroups)
    if not columns or any(len(column) != n for column in columns):
        raise ValueError(f"subgroups must hold one value per row, {n}.")
    rows = list(zip(*columns, strict=True))
    try:
        keys = {row: find_key(row) for row in dict.fromkeys(rows)}
    except TypeError:  # something that cannot be the key of a dict: `find_key` says what it is
        for row in rows:
            find_key(row)
        raise
    values = list(dict.fromkeys(key for key in keys.values() if key is not None))
    place = {key: code for code, key in enumerate(values)}
    codes = {row: place.get(key, -1) for row, key in keys.items()}
    return np.array([codes[row] for row in rows], dtype=np.int64), values


def read_columns(subgroups: Any) -> list[list[Any]]:
    """Return one list per attribute of the subgroups, in the order of the policy."""
    groups = policy["groups"]
    if subgroups is None:
        raise ValueError(
            f"subgroups is missing: this policy has one threshold per {groups['by']}; pass the "
            f"{groups['by']} of each row, one of {list(groups['thresholds'])[:10]}."
        )
    if isinstance(subgroups, Mapping):
        names = list(subgroups)
    else:
        names = list(getattr(subgroups, "columns", []))
    by_name = {str(name): name for name in names}
    wanted = groups["columns"] or list(by_name)
    if set(by_name) != set(wanted) or len(by_name) < len(names):
        raise ValueError(f"subgroups must be a table with the columns {wanted}, got {names}.")
    if not names and (isinstance(subgroups, str) or np.ndim(subgroups) != 1):
        raise ValueError("subgroups must hold one value per row, or be a table with columns.")
    columns = [subgroups]
    if names:
        columns = [subgroups[by_name[name]] for name in wanted]
    return [x.tolist() if isinstance(x, np.ndarray) else list(x) for x in columns]


def find_key(parts: tuple[Any, ...]) -> Any:
    """Return a subgroup: a plain value, or a tuple of several; None where one is missing."""
    plain = [plain_value(part) for part in parts]
    if any(map(is_blank, plain)):
        return None
    if len(plain) == 1:
        return check_subgroup(plain[0])
    return check_subgroup(tuple(plain))


# The policy -----------------------------------------------------------------------------------


def ready() -> dict[str, Any]:
    """Return the policy with arrays for lists and functions for maps; refuse a changed one."""
    if hashlib.sha256(ascii((POLICY, CERTIFICATE)).encode()).hexdigest() != DIGEST:
        raise ValueError(
            "POLICY or CERTIFICATE was changed after skselect wrote this file, so that nothing is "
            "guaranteed. Change the policy, and write the file again with policy.to_python(path)."
        )
    policy = {**POLICY, "asks": None, "threshold": ready_threshold(POLICY["threshold"])}
    policy["classes"] = np.array(POLICY["classes"], dtype=POLICY["classes_dtype"])
    if POLICY["calibration"] is not None:
        policy["calibration"] = ready_maps(POLICY["calibration"])
    if POLICY["cost_matrix"] is not None:
        policy["cost_matrix"] = np.asarray(POLICY["cost_matrix"], dtype=np.float64)
    if not isinstance(POLICY["confidence"], str):
        policy |= ready_confidence(POLICY["confidence"])
    if POLICY["groups"] is not None:
        policy["groups"] = ready_groups(POLICY["groups"])
    if POLICY["cascade"] is not None:
        policy["cascade"] = ready_cascade(POLICY["cascade"])
    return policy


def ready_groups(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored subgroups with the threshold of each; a list is a tuple of attributes."""
    thresholds = {}
    for member in stored["members"]:
        group = member["group"]
        if isinstance(group, list):
            group = tuple(group)
        thresholds[group] = ready_threshold(member["threshold"])
    return {**stored, "thresholds": thresholds}


def ready_cascade(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored cascade: the last stage keeps all, and calibrations have functions."""
    cuts = [ready_threshold(cut) for cut in stored["cuts"]]
    calibrations = [
        None if calibration is None else ready_maps(calibration)
        for calibration in stored["calibrations"]
    ]
    return {**stored, "cuts": [*cuts, -math.inf], "calibrations": calibrations}


def ready_threshold(stored: Any) -> float:
    """Return a stored threshold: None accepts no row, "-inf" every row."""
    return float("inf" if stored is None else stored)


def ready_maps(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored calibration with its maps as functions of the score."""
    kind = stored["kind"]
    if isinstance(stored["maps"][0].get("prior"), list):
        kind = "softmax"
    maps = []
    for fitted in stored["maps"]:
        numbers = {name: np.array(number, float) for name, number in fitted.items()}
        maps.append(partial(MAPS[kind], **numbers))
    calibration = {"response": "predict_proba", **stored, "kind": kind, "maps": maps}
    reads = kind in ("temperature", "platt", "beta") and stored["offset"] is not None
    calibration["reads_log_odds"] = reads and calibration["response"] == "predict_proba"
    return calibration


def ready_confidence(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored learned confidence as a function, and by name whether it asks a table."""
    maps = {name: partial(calibrate, ready_maps(x)) for name, x in stored["auxiliary"].items()}

    def rate(proba: Array, answers: Array, auxiliary_proba: Mapping[str, Array]) -> Array:
        features = find_features(maps, proba, answers, auxiliary_proba)
        return weigh(features, stored["coefficients"], stored["intercept"])

    asked = [*maps, *stored["coefficients"]]
    asks = {name: name in maps for name in asked if name not in OWN_FEATURES}
    return {"confidence": rate, "asks": asks}


def check_file() -> None:
    """Refuse the policy file named by ``python gate.py policy.json`` if it is another policy."""
    path = Path(*sys.argv[1:2])
    if not path.is_file():
        raise SystemExit(f"{path} is no file. Import `decide`, or run: python gate.py policy.json")
    try:
        stored = json.loads(path.read_bytes(), object_pairs_hook=distinct_keys)
    except ValueError:
        stored = None
    if stored != POLICY:
        raise SystemExit(f"{path} is another policy than that of this file, or no policy at all.")
