"""A policy as one Python file that decides with numpy alone: the doors of the file, and its writer.

The file holds the functions up to `main`, and of those of :mod:`skselect._lib.decide` the ones that
they call, each with the branches that the policy takes; then the policy itself.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import inspect
import json
import math
import pprint
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from skselect._lib import decide as kernel
from skselect._lib.decide import (
    MAPS,
    OWN_FEATURES,
    Array,
    check_asked,
    check_auxiliary,
    check_numbers,
    check_scores,
    decide_rows,
    find_thresholds,
    refuse_unused,
    tell,
)

#: What stands at the end of the file: the policy as it was saved, and as `decide` reads it.
POLICY: dict[str, Any] = {}
policy: dict[str, Any] = {}


def decide(
    y_proba: Any, *, y_pred: Any = None, subgroups: Any = None, auxiliary: Any = None
) -> dict[str, Array]:
    """Turn raw scores into decisions, calibration included; a ValueError says what does not fit.

    `y_proba` is the classifier's raw output (``POLICY["response"]``): (n, K), columns in the order
    of ``POLICY["classes"]`` or named like them, or (n,) for the second of two classes. Some need
    `y_pred` (the classifier's own answers), `subgroups` (of each row) or `auxiliary` (what a
    learned confidence asks, by name). Returns arrays: "label" (None where it abstains),
    "suggestion" (the answer everywhere), "accepted", "confidence", "threshold"; some "shortlist".
    """
    refuse_unused(policy, y_pred, subgroups, auxiliary)
    values, columns = read_table(y_proba)
    scores = check_scores(policy, values, columns)
    given = auxiliary_proba = groups = None
    if policy["decision"] == "estimator":
        given = read_answers(y_pred, len(scores))
    if policy["asks"] is not None:
        asked = check_asked(policy, auxiliary).items()
        tables = {name: read_table(values) for name, values in asked}
        auxiliary_proba = check_auxiliary(policy, tables, len(scores))
    if policy["groups"] is not None and not policy["groups"]["by_answer"]:
        groups = read_subgroups(subgroups, len(scores))
    return tell(policy, *decide_rows(policy, scores, given, auxiliary_proba, groups))


def accepts(confidence: Any, *, subgroups: Any = None) -> Array:
    """Tell which confidences, of shape (n,), are high enough, compared as float64.

    `subgroups` are those of the rows, where each has its threshold (the answers, if it is theirs).
    """
    values = check_numbers(np.asarray(confidence), "confidence")
    if policy["groups"] is None:
        refuse_unused(policy, None, subgroups, None)
        return values >= find_thresholds(policy, values, None)
    groups = read_subgroups(subgroups, len(values))
    return values >= find_thresholds(policy, values, groups)


def read_table(values: Any) -> tuple[Array, list[Any] | None]:
    """Return numbers as an array, and the names of their columns, if they have any."""
    columns = getattr(values, "columns", None)
    return np.asarray(values), None if columns is None else list(columns)


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


def ready(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored policy with arrays in the place of lists, and functions in that of maps."""
    made = dict(policy, asks=None)
    made["threshold"] = ready_threshold(policy["threshold"])
    made["classes"] = np.asarray(policy["classes"]).astype(policy["classes_dtype"])
    if policy["calibration"] is not None:
        made["calibration"] = ready_maps(policy["calibration"])
    if policy["cost_matrix"] is not None:
        made["cost_matrix"] = np.asarray(policy["cost_matrix"], dtype=np.float64)
    if not isinstance(policy["confidence"], str):
        maps = {name: ready_maps(maps) for name, maps in policy["confidence"]["auxiliary"].items()}
        made["confidence"] = {**policy["confidence"], "auxiliary": maps}
        asked = [*maps, *policy["confidence"]["coefficients"]]
        made["asks"] = {name: name in maps for name in asked if name not in OWN_FEATURES}
    if policy["groups"] is not None:
        members = {
            tuple(one["group"]) if isinstance(one["group"], list) else one["group"]: one
            for one in policy["groups"]["members"]
        }
        found = {group: ready_threshold(one["threshold"]) for group, one in members.items()}
        made["groups"] = {**policy["groups"], "thresholds": found}
    return made


def ready_threshold(stored: Any) -> float:
    """Return a stored threshold: None accepts no row, "-inf" every row."""
    return float("inf" if stored is None else stored)


def ready_maps(calibration: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored calibration with its maps as functions of the score."""
    joint = np.ndim(calibration["maps"][0].get("prior", 0.0)) == 1
    kind = "softmax" if joint else calibration["kind"]
    maps = [
        partial(MAPS[kind], **{name: np.asarray(x, dtype=np.float64) for name, x in fitted.items()})
        for fitted in calibration["maps"]
    ]
    is_proba = calibration.get("response", "predict_proba") == "predict_proba"
    reads = kind in ("temperature", "platt", "beta") and calibration["offset"] is not None
    return {**calibration, "kind": kind, "reads_log_odds": reads and is_proba, "maps": maps}


def digest(policy: Mapping[str, Any], certificate: str) -> str:
    """Return a digest of a policy and its certificate."""
    return hashlib.sha256(ascii((policy, certificate)).encode()).hexdigest()


def main() -> None:
    """Tell whether this file was written from a policy file: ``python gate.py policy.json``."""
    usage = (
        "Import `decide` from this file. It reads no tables; `skselect apply` does. Whether it "
        "belongs to a policy file: python gate.py policy.json"
    )
    if len(sys.argv) != 2:
        raise SystemExit(usage)
    try:
        stored = json.loads(Path(name := sys.argv[1]).read_bytes())["digest"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise SystemExit(f"{name} is no policy file with a digest ({error!r}). {usage}") from None
    if stored != POLICY["digest"]:
        raise SystemExit(f"{name} is another policy than that of this file.")


# The writer -------------------------------------------------------------------------------------

_HEAD = '''"""Decide by a policy: from raw scores to an answer, or none, for each row.

skselect wrote this file; it runs without skselect. It needs numpy and Python 3.10 or newer.

    from gate import decide
    decide(y_proba)["label"]       # the answer of each row, None where the policy abstains

`POLICY` is what the policy file holds, `CERTIFICATE` says in words what is guaranteed. Do not edit
them: the import would fail. ``python gate.py policy.json`` tells if both files belong together.

With the same numpy on the same kind of processor accepted rows, answers and confidences are those
of skselect, bit by bit. Elsewhere numpy's exp and log may differ in the last bit, as they do for
skselect: a row exactly on a threshold or a step of the calibration may fall on its other side.
"""

'''

_FOOT = """
if digest(POLICY, CERTIFICATE) != DIGEST:
    raise ValueError(
        "POLICY or CERTIFICATE was changed after skselect wrote this file, so that nothing is "
        "guaranteed of its decisions. Change the policy, and write the file again with "
        "policy.to_python(path)."
    )

policy = ready(POLICY)

if __name__ == "__main__":
    main()
"""

_WIDTH = 100
#: What may stand for a parameter wherever it occurs: in an expression, names but those of
#: attributes, keywords and keys.
_PLAIN = (ast.Name, ast.Constant, ast.Subscript)
_PARAMETER = re.compile(r"""(?<![.\w"'])([a-z]\w*)(?![\w"'=])""")
_ROOTS = ("decide", "accepts", "ready", "digest", "main")


def write_source(stored: dict[str, Any], certificate: str) -> str:
    """Return the Python file of a policy, as :meth:`AbstentionPolicy.to_python` saves it.

    Parameters
    ----------
    stored : dict
        The policy as its JSON file holds it.
    certificate : str
        What is guaranteed, in words.
    """
    facts = {"policy": ready(stored)}
    if not any((facts["policy"]["asks"] or {}).values()):  # else each auxiliary model has its own
        facts["calibration"] = facts["policy"]["calibration"]
    parts = _find_parts(facts)
    imports = sorted(x for x in parts if x.startswith(("import ", "from ")))
    imports.sort(key=lambda x: ("numpy" in x, x))
    code = [part for part in parts if "\ndef " in f"\n{part}" or ' = {"' in part]
    constants = [part for part in parts if part not in imports and part not in code]
    values = [
        f"POLICY = {_lay_out(stored)}",
        f"CERTIFICATE = {pprint.pformat(certificate, width=100)}",
        f"DIGEST = {digest(stored, certificate)!r}\n",
    ]
    top = "\n".join([*imports, "", *constants])
    return _HEAD + "\n\n\n".join([top, *code, "\n".join(values) + _FOOT])


def _find_parts(facts: Mapping[str, Any]) -> list[str]:
    """Return the imports, constants and functions that the file needs, in their order."""
    defined, words = _read_definitions(), set(_strings_in(facts["policy"]))
    found: dict[str, str] = {}
    waiting = list(_ROOTS)
    while waiting:
        name = waiting.pop()
        if name in defined and name not in found:
            part = _shorten(_take_branches(defined[name], facts))
            found[name] = _keep_rows(part, words)
            waiting += _names_in(found[name])
    written = _write_out(found)
    used = {*_ROOTS, *(name for part in written.values() for name in _names_in(part))}
    return [written[x] for x in defined if x in written and x in used and x.lower() != "policy"]


def _names_in(code: str) -> list[str]:
    """Return all names in a piece of code."""
    return [x.id for x in ast.walk(ast.parse(code)) if isinstance(x, ast.Name)]


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
    """Return a function without its annotations, with the first line of its docstring."""
    node = ast.parse(source).body[0]
    if not isinstance(node, ast.FunctionDef):
        return source
    for argument in (*node.args.args, *node.args.kwonlyargs):
        argument.annotation = None
    lines, docstring = source.splitlines(), node.body[0]
    said = lines[docstring.lineno - 1 : docstring.end_lineno]
    if node.name not in ("decide", "accepts"):
        said = [f'    """{str(ast.get_docstring(node)).splitlines()[0]}"""']
    start = f"def {node.name}({ast.unparse(node.args)}):"
    if len(start) > _WIDTH:
        start = f"def {node.name}(\n    {ast.unparse(node.args)}\n):"
    return "\n".join([start, *said, *lines[docstring.end_lineno :]])


def _write_out(parts: dict[str, str]) -> dict[str, str]:
    """Return the parts with functions that are one call written out where they are called."""
    for name in [x for x in parts if x not in _ROOTS]:
        node = ast.parse(parts[name]).body[0]
        if not isinstance(node, ast.FunctionDef) or not isinstance(node.body[1], ast.Return):
            continue
        value = node.body[1].value
        scopes = (ast.comprehension, ast.Lambda, ast.JoinedStr)  # with names or words of their own
        if isinstance(value, ast.Call) and not any(isinstance(x, scopes) for x in ast.walk(value)):
            call = ast.get_source_segment(parts[name], value) or ""
            others = {x: _replace_calls(part, node, call) for x, part in parts.items() if x != name}
            if not any(name in _names_in(part) for part in others.values()):
                parts = others
    return parts


def _replace_calls(source: str, function: ast.FunctionDef, call: str) -> str:
    """Return code with calls of a function replaced by what it calls, where lines stay short."""
    parameters = [x.arg for x in function.args.args]
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != function.name:
            continue
        if len(node.args) == len(parameters) and all(isinstance(x, _PLAIN) for x in node.args):
            texts = [ast.get_source_segment(source, x) or "" for x in (node, *node.args)]
            given = dict(zip(parameters, texts[1:], strict=True))
            filled = "".join(given.get(x, x) for x in _PARAMETER.split(call))
            changed = source.replace(texts[0], filled)
            if max(map(len, changed.splitlines())) <= _WIDTH:
                return _replace_calls(changed, function, call)
    return source


def _keep_rows(source: str, words: set[str]) -> str:
    """Return a table of functions without the rows that the policy does not name."""
    node = ast.parse(source).body[0]
    if not isinstance(node, ast.AnnAssign) or not isinstance(node.value, ast.Dict):
        return source
    rows = [line.strip() for line in source.splitlines()[1:-1]]
    kept = [row.removesuffix(",") for row in rows if row.split('"')[1] in words]
    return f"{ast.unparse(node.target)} = {{{', '.join(kept)}}}"


def _strings_in(value: Any) -> Iterator[str]:
    """Yield the strings inside a policy."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _strings_in(item)


def _lay_out(stored: Mapping[str, Any]) -> str:
    """Return a dict as a literal, with as many items in a line as it takes."""
    lines = ["   "]
    for name, value in stored.items():
        item = pprint.pformat({name: value}, width=94, compact=True, sort_dicts=False)[1:-1] + ","
        if "\n" in item or len(lines[-1]) + len(item) > 98:
            lines.append("   ")
        lines[-1] += " " + item.replace("\n", "\n    ")
    return "{\n" + "\n".join(line for line in lines if line.strip()) + "\n}"
