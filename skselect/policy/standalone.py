"""A policy as one Python file that decides with numpy alone: the doors of the file, and its writer.

The file holds the functions up to `main`, and of those of :mod:`skselect._lib.decide` the ones that
they call, each with the branches that the policy takes; then the policy itself. Its checks are
fewer than those of the library: they refuse the same, in fewer words.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import inspect
import math
import pprint
import re
import sys
from collections.abc import Mapping
from functools import cache, lru_cache, partial
from pathlib import Path  # noqa: F401 - the file needs it
from textwrap import dedent
from typing import Any

import numpy as np

from skselect._lib import decide as kernel
from skselect._lib.decide import (
    MAPS,
    OWN_FEATURES,
    RANGE_TOLERANCE,
    SUM_TOLERANCE,
    Array,
    check_decision_values,
    check_numbers,
    decide_rows,
    find_thresholds,
    follow_tables,
    read_auxiliary,
    tell,
)

#: What stands at the end of the file: the policy as it was saved, and as `decide` reads it.
POLICY: dict[str, Any] = {}
policy: dict[str, Any] = {}


def decide(
    y_proba: Any,
    *,
    y_pred: Any = None,
    confidence: Any = None,
    subgroups: Any = None,
    auxiliary: Any = None,
) -> dict[str, Array]:
    """Turn raw scores into decisions, calibration included; a ValueError says what does not fit.

    `y_proba`: the classifier's raw output (``POLICY["response"]``), (n, K), columns in the order
    of ``POLICY["classes"]`` or named like them, or (n,) for the second of two classes.
    `y_pred`: the classifier's own answers.
    `confidence`: how sure each of these answers is.
    `subgroups`: the subgroup of each row.
    `auxiliary`: what the learned confidence asks, by name.
    Returns arrays: "label" (None where it abstains), "suggestion" (the answer everywhere),
    "accepted", "confidence", "threshold", and "shortlist" or "stage" if the policy has one.
    """
    given = auxiliary_proba = groups = None
    if str(policy["confidence"]).startswith("external:"):  # answers come with their confidence
        rated = read_confidence(confidence)
        answers = read_texts(y_pred, len(rated))
        if policy["groups"] is not None:
            if policy["groups"]["by_answer"]:
                subgroups = y_pred
            groups = read_subgroups(subgroups, len(rated))
        threshold = find_thresholds(policy, rated, given, groups)
        own = {"classes": answers, "shortlist": None}
        return tell(own, answers, np.arange(len(rated)), rated, threshold)
    if policy["response"] == "decision_function":
        scores = check_decision_values(policy, np.asarray(y_proba))
    if policy["response"] != "decision_function" and policy["cascade"] is None:
        scores = read_proba(y_proba)
    if policy["cascade"] is not None:
        scores, stage = read_stages(y_proba)
        if np.isnan(scores).any() or not isinstance(y_proba, Mapping):
            raise ValueError("y_proba needs what each stage says; begin(y_proba) says what to ask")
    if policy["decision"] == "estimator":
        given = read_answers(y_pred, len(scores))
    if not isinstance(policy["confidence"], str):
        auxiliary_proba = read_auxiliary(policy, auxiliary, len(scores), read_proba, check_numbers)
    if policy["groups"] is not None and not policy["groups"]["by_answer"]:
        groups = read_subgroups(subgroups, len(scores))
    proba, answers, confidence, threshold = decide_rows(
        policy, scores, given, auxiliary_proba, groups
    )
    decided = tell(policy, proba, answers, confidence, threshold)
    if policy["cascade"] is not None:
        decided["stage"] = np.array(policy["cascade"]["names"])[stage]
    return decided


def begin(y_proba: Any) -> Array:
    """Return which stage of the cascade each row must ask next, None where it needs no other.

    `y_proba`: a dict with the raw output of each stage asked so far, (n, K), in whole rows NaN
    where the stage was not asked; or the output of the first stage.
    """
    scores, stage = read_stages(y_proba)
    names = np.array([*policy["cascade"]["names"], None], dtype=object)
    return np.asarray(names[np.where(np.isnan(scores).any(axis=1), stage, -1)])


def accepts(confidence: Any, *, subgroups: Any = None) -> Array:
    """Tell which confidences, of shape (n,), are high enough, compared as float64.

    `subgroups`: those of the rows (the answers, where these are the subgroups).
    """
    answers = groups = None
    confidence = read_confidence(confidence)
    if policy["groups"] is not None:
        groups = read_subgroups(subgroups, len(confidence))
    threshold = find_thresholds(policy, confidence, answers, groups)
    return np.asarray(confidence >= threshold)


def read_confidence(confidence: Any) -> Array:
    """Return confidences as one finite number per row."""
    confidence = np.asarray(confidence, dtype=np.float64)
    if confidence.ndim != 1 or not np.all(np.isfinite(confidence)):
        raise ValueError(f"confidence must hold one finite number per row, got {confidence}.")
    return confidence


def read_proba(y_proba: Any, name: str = "y_proba") -> Array:
    """Return probabilities, a column per class; of two classes the second may stand alone."""
    proba, classes = np.asarray(y_proba), policy["classes"].tolist()
    if proba.dtype == object:
        proba = np.array(proba.tolist())
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
    proba = proba if proba.dtype == np.float32 else proba.astype(np.float64)
    low, high = float(np.min(proba, initial=1.0)), float(np.max(proba, initial=0.0))
    gap = float(np.max(np.abs(proba.sum(axis=1, dtype=np.float64) - 1.0), initial=0.0))
    if not (low >= -RANGE_TOLERANCE and high <= 1 + RANGE_TOLERANCE and gap <= SUM_TOLERANCE):
        what = f"values from {low:g} to {high:g} and a sum that is off by {gap:g}"
        raise ValueError(f"{name} needs rows of probabilities that sum to one, got {what}.")
    return np.clip(proba, 0, 1) if low < 0 or high > 1 else proba


def read_stages(y_proba: Any) -> tuple[Array, Array]:
    """Return the probabilities of the stage at which each row is, NaN where it waits; the stage."""
    tables = y_proba.values() if isinstance(y_proba, Mapping) else []
    names = [list(table.index) for table in tables if hasattr(table, "loc")]
    if any(x != names[0] for x in names):
        raise ValueError("y_proba: the tables of the stages hold other rows, or another order.")
    return follow_tables(policy["cascade"], y_proba, len(policy["classes"]), read_proba)


def read_texts(y_pred: Any, n: int) -> Array:
    """Return answers that come with a confidence, one for each of `n` rows."""
    answers = np.asarray(y_pred, dtype=object)
    if answers.shape != (n,) or any(x is None or x != x for x in answers):  # noqa: PLR0124
        raise ValueError(
            f"y_pred must hold one answer per confidence, {n}, and none may be missing; got the "
            f"shape {answers.shape}."
        )
    return answers


def read_answers(y_pred: Any, n: int) -> Array:
    """Return the codes of the classifier's own answers."""
    if y_pred is None:
        raise ValueError("y_pred is missing: a policy with decision='estimator' needs it.")
    labels = np.asarray(y_pred, dtype=object)
    labels = labels.ravel() if labels.shape[1:] == (1,) else labels
    if labels.ndim != 1:
        raise ValueError(f"y_pred must be one-dimensional, got the shape {labels.shape}.")
    if len(labels) != n:
        raise ValueError(f"y_pred has {len(labels)} rows, but y_proba has {n}.")
    code = {label: k for k, label in enumerate(policy["classes"].tolist())}
    unknown = {str(x) for x in labels.tolist() if type(x).__hash__ is None or x not in code}
    if unknown:
        raise ValueError(
            f"y_pred has labels that are not among the classes {list(code)[:10]}: "
            f"{sorted(unknown)[:5]}. The policy was made for these classes only."
        )
    return np.array([code[label] for label in labels.tolist()], dtype=np.int64)


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
    known = list(dict.fromkeys(key for key in keys.values() if key is not None))
    place = {key: code for code, key in enumerate(known)}
    codes = {row: place.get(key, -1) for row, key in keys.items()}
    return np.array([codes[row] for row in rows], dtype=np.int64), known


def read_columns(subgroups: Any) -> list[list[Any]]:
    """Return one list per attribute of the subgroups, in the order of the policy."""
    groups = policy["groups"]
    if subgroups is None:
        raise ValueError(
            f"subgroups is missing: this policy has one threshold per {groups['by']}; pass the "
            f"{groups['by']} of each row, one of {list(groups['thresholds'])[:10]}."
        )
    names = list(subgroups if isinstance(subgroups, Mapping) else getattr(subgroups, "columns", []))
    by_name = {str(name): name for name in names}
    wanted = groups["columns"] or list(by_name)
    if set(by_name) != set(wanted) or len(by_name) < len(names):
        raise ValueError(f"subgroups must be a table with the columns {wanted}, got {names}.")
    if not names and (isinstance(subgroups, str) or np.ndim(subgroups) != 1):
        raise ValueError("subgroups must hold one value per row, or be a table with columns.")
    columns = [subgroups[by_name[name]] for name in wanted] if names else [subgroups]
    return [x.tolist() if isinstance(x, np.ndarray) else list(x) for x in columns]


def find_key(parts: tuple[Any, ...]) -> Any:
    """Return a subgroup: a plain value, or a tuple of several; None where one is missing."""
    plain = [part.item() if isinstance(part, np.generic) else part for part in parts]
    # pandas' NA is known by its name: `NA != NA` has no truth value.
    if any(x is None or type(x).__name__ == "NAType" or bool(x != x) for x in plain):  # noqa: PLR0124
        return None
    for x in plain:
        if not isinstance(x, str | int | float | bool) or x in (math.inf, -math.inf):
            raise ValueError(
                f"subgroups must be strings, finite numbers or booleans, got {x!r} of type "
                f"{type(x).__name__}."
            )
    return tuple(plain) if len(plain) > 1 else plain[0]


def ready() -> dict[str, Any]:
    """Return the stored policy with arrays in the place of lists, and functions in that of maps."""
    policy = dict(POLICY)
    policy["classes"] = np.asarray(POLICY["classes"]).astype(POLICY["classes_dtype"])
    if not isinstance(POLICY["threshold"], float):
        policy["threshold"] = ready_threshold(POLICY["threshold"])
    if POLICY["calibration"] is not None:
        policy["calibration"] = ready_maps(POLICY["calibration"])
    if POLICY["cost_matrix"] is not None:
        policy["cost_matrix"] = np.asarray(POLICY["cost_matrix"], dtype=np.float64)
    if not isinstance(POLICY["confidence"], str):
        learned = POLICY["confidence"]
        maps = {name: ready_maps(maps) for name, maps in learned["auxiliary"].items()}
        policy["confidence"] = {**learned, "auxiliary": maps}
        asked = [*maps, *learned["coefficients"]]
        policy["asks"] = {name: name in maps for name in asked if name not in OWN_FEATURES}
    if POLICY["groups"] is not None:
        thresholds = {
            tuple(one["group"]) if isinstance(one["group"], list) else one["group"]: (
                ready_threshold(one["threshold"])
            )
            for one in POLICY["groups"]["members"]
        }
        policy["groups"] = {**POLICY["groups"], "thresholds": thresholds}
    if POLICY["cascade"] is not None:
        cuts = [*(ready_threshold(x) for x in POLICY["cascade"]["cuts"]), -math.inf]
        stages = [None if x is None else ready_maps(x) for x in POLICY["cascade"]["calibrations"]]
        policy["cascade"] = {**POLICY["cascade"], "cuts": cuts, "calibrations": stages}
    return policy


def ready_threshold(stored: Any) -> float:
    """Return a stored threshold: None accepts no row, "-inf" every row."""
    return float("inf" if stored is None else stored)


def ready_maps(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored calibration with its maps as functions of the score."""
    fitted = [{name: np.array(x, float) for name, x in one.items()} for one in given["maps"]]
    kind = "softmax" if isinstance(given["maps"][0].get("prior"), list) else given["kind"]
    applied = {**given, "maps": [partial(MAPS[kind], **one) for one in fitted]}
    # There are several calibrations.
    if not isinstance(policy["confidence"], str) or policy["cascade"] is not None:
        is_proba = given.get("response", "predict_proba") == "predict_proba"
        reads = kind in ("temperature", "platt", "beta") and given["offset"] is not None
        applied |= {"kind": kind, "reads_log_odds": reads and is_proba}
    return applied


# The writer -------------------------------------------------------------------------------------

_HEAD = '''"""Decide by a policy: from raw scores to an answer, or none, for each row.

    from gate import decide
    decide(y_proba)["label"]       # the answer of each row, None where the policy abstains

skselect wrote this file, which needs numpy alone, and Python 3.10 or newer. `POLICY` holds what
the policy file holds, `CERTIFICATE` what is guaranteed. It decides as skselect does, bit by bit, on
the same kind of processor with the same numpy; else the last bit of exp and log may differ.
"""

'''

_FOOT = """
if hashlib.sha256(ascii((POLICY, CERTIFICATE)).encode()).hexdigest() != DIGEST:
    raise ValueError(
        "POLICY or CERTIFICATE was changed after skselect wrote this file, so that nothing is "
        "guaranteed. Change the policy, and write the file again with policy.to_python(path)."
    )

# The policy as `decide` reads it: arrays in the place of lists, functions in that of maps.
policy = ready()

if __name__ == "__main__":  # python gate.py policy.json: do both files belong together?
    path = Path(*sys.argv[1:2])
    if not path.is_file():
        raise SystemExit(f"{path} is no file. Import `decide`, or run: python gate.py policy.json")
    if POLICY["digest"] not in path.read_text(encoding="utf-8", errors="replace"):
        raise SystemExit(f"{path} is another policy than that of this file, or no policy at all.")
"""

_WIDTH = 100
#: Functions that stay functions; others that are called once are written out where they are called.
_DOORS = ("decide", "accepts", "begin")
_KEPT = (
    *_DOORS, "read_stages", "read_stage", "read_proba", "read_answers", "read_auxiliary",
    "read_subgroups", "calibrate",
)  # fmt: skip


def write_source(stored: dict[str, Any], applied: Mapping[str, Any], certificate: str) -> str:
    """Return the Python file of a policy, as :meth:`AbstentionPolicy.to_python` saves it.

    Parameters
    ----------
    stored : dict
        The policy as its JSON file holds it.
    applied : mapping
        The policy as :mod:`skselect._lib.decide` takes it.
    certificate : str
        What is guaranteed, in words.
    """
    facts = {"policy": {**applied, "confidence": stored["confidence"]}, "POLICY": stored}
    maps = [stored["calibration"] or {}]
    if stored["cascade"] is not None:  # stages have calibrations too
        maps += [one or {} for one in stored["cascade"]["calibrations"]]
    if not isinstance(stored["confidence"], str):  # auxiliary models as well
        maps += stored["confidence"]["auxiliary"].values()
    if len(maps) > 1:
        words = {"softmax", *(one.get("kind") for one in maps)}
    else:
        words = {(applied["calibration"] or {}).get("kind")}
        if applied["calibration"] is not None:
            facts["calibration"] = applied["calibration"]
    words |= {stored["confidence"]} if isinstance(stored["confidence"], str) else set()
    *parts, end = _find_parts(facts, words)
    imports = [part for part in parts if part.startswith(("import ", "from "))]
    imports.sort(key=lambda line: ("numpy" in line, line.startswith("from"), line))
    code = [part for part in parts if part.startswith(("def ", "MAPS"))]
    constants = [part for part in parts if part not in imports and part not in code]
    values = [
        _lay_out(stored),
        f"CERTIFICATE = {pprint.pformat(certificate, width=_WIDTH)}",
        f"DIGEST = {hashlib.sha256(ascii((stored, certificate)).encode()).hexdigest()!r}",
    ]
    top = "\n".join([*imports[:-1], "", imports[-1], "", *constants])
    head = _HEAD
    if str(stored["confidence"]).startswith("external:"):
        head = head.replace('(y_proba)["label"]      ', '(y_pred=y, confidence=c)["label"]')
        head = head.replace("# the answer of each row", "# each answer")
    return head + "\n\n\n".join([top, *code, "\n".join(values) + end]) + "\n"


def _find_parts(facts: Mapping[str, Any], words: set[Any]) -> list[str]:
    """Return the imports, constants and functions that the file needs, in their order.

    Of a table of functions those are the rows of these words, or a single one in its place.
    """
    defined, found, single = _read_definitions(), {"end": _FOOT}, {}
    for table in ("MAPS", "CONFIDENCES"):
        rows = {x: one.__name__ for x, one in getattr(kernel, table).items() if x in words}
        listed = ", ".join(f'"{word}": {function}' for word, function in rows.items())
        defined |= {table: f"{table} = {{{listed}}}"}
        if len(rows) == 1:
            single[rf'{table}\[(\w+|policy\["\w+"\])\]'] = "".join(rows.values())
    doors = [x for x in _DOORS if x != "begin" or facts["policy"]["cascade"] is not None]
    waiting = [*doors, *_names_in(_FOOT)]
    while waiting:
        name = waiting.pop()
        if name in defined and name not in (*found, "POLICY", "policy"):
            part = _shorten(_take_branches(defined[name], facts))
            for pattern, function in single.items():
                part = re.sub(pattern, function, part)
            found[name] = part
            waiting += _names_in(part)
    for name in [x for x in found if x not in _KEPT]:
        found = _write_out(name, found)
    for name, part in found.items():
        if name == "end" or part.startswith("def "):
            found[name] = _drop_unread(part)
    used = {*doors, *(name for part in found.values() for name in _names_in(part))} & found.keys()
    return [*(found[x] for x in defined if x in used), found["end"]]


@lru_cache(1000)
def _names_in(code: str) -> tuple[str, ...]:
    """Return all names in a piece of code."""
    return tuple(x.id for x in ast.walk(ast.parse(code)) if isinstance(x, ast.Name))


@cache
def _read_definitions() -> dict[str, str]:
    """Return the source of what a file may need: imports, constants and functions by name."""
    found: dict[str, str] = {}
    for module in (sys.modules[__name__], kernel):
        lines = inspect.getsource(module).splitlines()
        for node in ast.parse("\n".join(lines)).body:
            if isinstance(node, ast.Import):
                found |= {x.asname or x.name: f"import {ast.unparse(x)}" for x in node.names}
            elif isinstance(node, ast.ImportFrom):
                if node.module not in ("skselect", "skselect._lib.decide", "__future__"):
                    found |= {x.name: f"from {node.module} import {x.name}" for x in node.names}
            elif (name := _name_defined(node)) is not None:
                start = node.lineno - 1
                while lines[start - 1].startswith("#:"):
                    start -= 1
                found[name] = "\n".join(lines[start : node.end_lineno])
    return found


def _name_defined(node: ast.stmt) -> str | None:
    """Return the name of a function or constant, None for anything else."""
    if isinstance(node, ast.FunctionDef):
        return node.name
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0])
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return ast.unparse(node.target)
    return None


def _take_branches(source: str, facts: Mapping[str, Any]) -> str:
    """Return a function without the branches that the policy does not take."""
    lines = source.splitlines()
    shifts, dropped = [0] * len(lines), set()
    for parent in ast.walk(ast.parse(source)):
        for block in (getattr(parent, "body", []), getattr(parent, "orelse", [])):
            for node in block if isinstance(block, list) else []:
                taken = None if node.lineno - 1 in dropped else _settle(node, facts)
                if taken is None:
                    continue
                kept, leaves = _find_branch(node, taken)
                end = (block[-1] if leaves else node).end_lineno  # nothing follows a return
                for k in range(node.lineno - 1, end):
                    shifts[k] += 4
                    dropped |= set() if k in kept else {k}
    shifted = zip(lines, shifts, strict=True)
    return "\n".join(x[by:] for k, (x, by) in enumerate(shifted) if k not in dropped)


def _settle(node: ast.stmt, facts: Mapping[str, Any]) -> bool | None:
    """Return the answer of an ``if`` about the policy alone, None for any other statement."""
    if not isinstance(node, ast.If):
        return None
    names = {x.id for x in ast.walk(node.test) if isinstance(x, ast.Name)}
    if not names & set(facts) or not all(x in facts or hasattr(builtins, x) for x in names):
        return None
    return bool(eval(ast.unparse(node.test), dict(facts)))


def _find_branch(node: ast.If, taken: bool) -> tuple[range, bool]:
    """Return the lines of one branch, counted from 0, and whether it leaves the function."""
    branch = node.body if taken else node.orelse
    if not branch:
        return range(0), False
    start = (node.test.end_lineno or 0) if taken else (node.body[-1].end_lineno or 0) + 1
    lines = range(start, branch[-1].end_lineno or 0)
    return lines, isinstance(branch[-1], ast.Return | ast.Raise)


def _shorten(source: str) -> str:
    """Return a function without annotations and options that it does not read, and its first words.

    The functions that users call keep their docstring, but for what they do not take.
    """
    node = ast.parse(source).body[0]
    if not isinstance(node, ast.FunctionDef):
        return source
    lines, docstring = source.splitlines(), node.body[0]
    rest = lines[docstring.end_lineno :]
    names = [x for x in ast.walk(ast.parse(dedent("\n".join(rest)))) if isinstance(x, ast.Name)]
    given = {x.id for x in names if isinstance(x.ctx, ast.Store)}
    unread = {x.arg for x in node.args.kwonlyargs} & given
    options = node.args.kwonlyargs + (node.args.args if node.name in _DOORS else [])
    unread |= {x.arg for x in options} - {x.id for x in names}
    node.args.args = [x for x in node.args.args if x.arg not in unread]
    node.args.kwonlyargs = [x for x in node.args.kwonlyargs if x.arg not in unread]
    node.args.kw_defaults = [ast.Constant(None) for _ in node.args.kwonlyargs]
    for argument in (*node.args.args, *node.args.kwonlyargs):
        argument.annotation = None
    said = lines[docstring.lineno - 1 : docstring.end_lineno]
    text = "\n".join(said)
    for name in unread:  # what is said of it may take several lines
        text = re.sub(
            rf"\n    `{name}`: .*?(?=\n    (`\w+`:|Returns|\"))", "", text, flags=re.DOTALL
        )
    said = text.splitlines()
    if node.name not in _DOORS or len(said) == len(["summary", "", "end"]):
        said = [f'    """{str(ast.get_docstring(node)).splitlines()[0]}"""']
    start = f"def {node.name}({ast.unparse(node.args)}):".replace("'", '"')
    return "\n".join([start, *said, *rest])


def _write_out(name: str, parts: dict[str, str]) -> dict[str, str]:
    """Return the parts with a function written out where it is called: once, or in one line."""
    function = ast.parse(parts[name]).body[0]
    if not isinstance(function, ast.FunctionDef):
        return parts
    returns = [x for x in ast.walk(function) if isinstance(x, ast.Return)]
    n_calls = sum(_names_in(part).count(name) for part in parts.values())
    if returns != function.body[-1:] or (n_calls > 1 and len(function.body) > 2):
        return parts
    source, others = parts[name], {x: part for x, part in parts.items() if x != name}
    changed = {x: _fill_in(part, function, source) for x, part in others.items()}
    stays = any(name in _names_in(part) for part in changed.values())
    return parts if stays else changed


def _fill_in(host: str, function: ast.FunctionDef, source: str) -> str:
    """Return code with the lines of a function in the place of its calls, where no names clash."""
    for node in ast.walk(ast.parse(host)):
        if not isinstance(node, ast.Assign | ast.Return) or not isinstance(node.value, ast.Call):
            continue
        if ast.unparse(node.value.func) == function.name:
            new, lines = _find_lines(host, node, node.value, function, source), host.splitlines()
            lines[node.lineno - 1 : node.end_lineno] = [" " * node.col_offset + x for x in new]
            return _fill_in("\n".join(lines), function, source) if new else host
    return host


def _find_lines(
    host: str, node: ast.Assign | ast.Return, call: ast.Call, function: ast.FunctionDef, source: str
) -> list[str]:
    """Return what a call stands for: its arguments by name, and the lines of the function."""
    target = ""
    if isinstance(node, ast.Assign):
        target = ast.get_source_segment(host, node.targets[0]) or ""
    names = [x for one in function.body for x in ast.walk(one) if isinstance(x, ast.Name)]
    texts = [ast.get_source_segment(host, x) for x in call.args]
    given = zip([x.arg for x in function.args.args], texts, strict=True)
    read = {x.id for x in names}
    binds = {x: text for x, text in given if x in read and x != text}
    own = {x.id for x in names if isinstance(x.ctx, ast.Store)} | set(binds)
    if own & (set(_names_in(host)) - set(target.split(", "))):  # it would change the caller's
        return []
    *body, last = function.body
    lines = source.splitlines()[body[0].end_lineno :]
    at = last.lineno - (body[0].end_lineno or 0) - 1
    if lines[at].strip() == f"return {target}":
        lines = lines[:at]
    elif target:
        lines[at] = lines[at].replace("return ", f"{target} = ", 1)
    return [*(f"{x} = {text}" for x, text in binds.items()), *(x[4:] for x in lines)]


def _drop_unread(source: str) -> str:
    """Return code without the names that it gives and does not read."""
    nodes, lines = list(ast.walk(ast.parse(source))), source.splitlines()
    read = {x.id for x in nodes if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Load)}
    dropped: set[int] = set()
    for node in (x for x in nodes if isinstance(x, ast.Assign)):
        unread = [x.id for x in node.targets if isinstance(x, ast.Name) and x.id not in read]
        for name in unread:
            lines[node.lineno - 1] = lines[node.lineno - 1].replace(f"{name} = ", "", 1)
        if len(unread) == len(node.targets):
            dropped |= set(range(node.lineno - 1, node.end_lineno or 0))
    return "\n".join(line for k, line in enumerate(lines) if k not in dropped)


def _lay_out(value: Any, indent: str = "", name: str = "POLICY = ") -> str:
    """Return a named literal with as many items in a line as it takes."""
    is_table = isinstance(value, Mapping)
    if not is_table and not isinstance(value, list):
        text = pprint.pformat(value, width=_WIDTH - len(indent) - len(name) - 1)
        return name + text.replace("\n", f"\n{indent}")
    inner, (start, end) = f"{indent}    ", "{}" if is_table else "[]"
    named = [(f"{x!r}: ", value[x]) for x in value] if is_table else [("", x) for x in value]
    items = [f"{_lay_out(one, inner, key)}," for key, one in named]
    short = f"{name}{start}{' '.join(items).removesuffix(',')}{end}"
    if "\n" not in short and len(indent) + len(short) < _WIDTH:
        return short
    lines = [""]
    for item in items:
        if not lines[-1] or "\n" in item or len(lines[-1]) + len(item) >= _WIDTH:
            lines.append(inner + item)
        else:
            lines[-1] += f" {item}"
    return "\n".join([name + start, *lines[1:], indent + end])
