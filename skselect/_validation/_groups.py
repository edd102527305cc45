"""Subgroups, and promises about some of the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sized
from typing import Any

import numpy as np
import pandas as pd

from skselect._typing import BoolArray, LabelArray
from skselect._validation._arrays import shown
from skselect._validation._proba import column_names, take_columns
from skselect._validation._rows import check_subgroups


def check_subgroup_key(key: Any) -> Any:
    """Return a subgroup as plain values that a JSON file can hold."""
    if isinstance(key, tuple):
        return tuple(check_subgroup_key(part) for part in key)
    plain = key.item() if isinstance(key, np.generic) else key
    finite = not isinstance(plain, float) or math.isfinite(plain)
    if not isinstance(plain, str | int | float | bool) or not finite:
        raise ValueError(
            "subgroups must be strings, finite numbers or booleans, so that a policy can be saved, "
            f"got {key!r} of type {type(key).__name__}. Give them names, as in "
            "pd.cut(X['age'], [0, 50, 100], labels=['young', 'old'])."
        )
    return plain


def check_among(among: Any, classes: LabelArray) -> tuple[str, Any]:
    """Return which rows a promise is about: ("predicted" or "true", class)."""
    pair = isinstance(among, tuple | list) and len(among) == 2
    if not pair or among[0] not in ("predicted", "true") or among[1] not in classes.tolist():
        raise ValueError(
            "among must be ('predicted', label) or ('true', label) with one of the classes "
            f"{classes[:10].tolist()}, got {shown(among)}."
        )
    label = among[1]
    return among[0], label.item() if isinstance(label, np.generic) else label


def refuse_among(among: Any, other: str) -> None:
    """Refuse a promise about some rows where there is one per subgroup."""
    if among is not None:
        raise ValueError(f"among does not go with {other}, which has a promise of its own each.")


def check_group_columns(group_by: Any, X: Any) -> Any:
    """Return the columns of X that hold subgroups."""
    several = isinstance(group_by, list | tuple)
    wanted = list(group_by) if several else [group_by]
    if not all(isinstance(column, str | int) for column in wanted):
        raise ValueError(
            "group_by must name columns of X (positions for an array), be a function of X, or "
            f"'predicted_class', got {type(group_by).__name__}."
        )
    if "predicted_class" in wanted:
        raise ValueError(
            "group_by: 'predicted_class' stands alone; it cannot be combined with columns of X."
        )
    if hasattr(X, "tocsr"):
        raise ValueError("group_by: X is sparse; pass a function of X that returns the subgroups.")
    names = column_names(X)
    table = np.asarray(X) if names is None else X
    known = list(range(table.shape[1])) if names is None and table.ndim == 2 else names or []
    missing = [column for column in wanted if column not in known]
    if missing or not wanted:
        raise ValueError(
            f"group_by={shown(group_by)}: X has no column {shown(missing)}; it has {known[:20]}. "
            "Pass columns of X, a function of X, or 'predicted_class'."
        )
    if names is None:
        return pd.DataFrame({column: table[:, column] for column in wanted})
    return take_columns(X, wanted)


def check_group_names(by: Any, groups: list[Any], by_answer: Any, columns: Any) -> None:
    """Refuse subgroups that could not be told apart, or not be named."""
    if not isinstance(by, str):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"by must be text that names the subgroups, got {shown(by)}."
        )
    if not groups:
        raise ValueError("thresholds is empty; a policy per subgroup needs at least one.")
    for group in groups:
        check_subgroup_key(group)
    sizes = {len(group) if isinstance(group, tuple) else 0 for group in groups}
    if len(sizes) > 1 or () in groups or (columns and sizes != {len(columns)}):
        raise ValueError(
            f"thresholds: every subgroup needs as many attributes as {list(columns)}, got "
            f"{groups[:5]}."
        )
    texts = all(isinstance(column, str) for column in columns)
    if not isinstance(by_answer, bool) or not isinstance(columns, tuple) or not texts:
        raise ValueError(
            f"by_answer must be true or false and columns a list of names, got {by_answer!r} and "
            f"{columns!r}."
        )


def check_group_order(subgroups: Any, columns: tuple[str, ...]) -> Any:
    """Return several attributes in the order in which they name a subgroup."""
    names = column_names(subgroups)
    if names is None and isinstance(subgroups, Mapping):
        names = list(subgroups)
    by_name = {} if names is None else {str(name): name for name in names}
    if set(by_name) != set(columns):
        raise ValueError(
            f"subgroups must be a DataFrame with the columns {list(columns)}, got "
            f"{type(subgroups).__name__}" + ("." if names is None else f" with {names}.")
        )
    wanted = [by_name[column] for column in columns]
    if isinstance(subgroups, Mapping):
        return {name: subgroups[name] for name in wanted}
    return subgroups[wanted]


def check_subgroups_of(values: Any, n: int) -> Any:
    """Return what a function of X gave as subgroups, if it is one per row."""
    if values is None:
        raise ValueError("group_by: the function returned None; it must return one value per row.")
    return check_subgroups(values, n, "group_by", "X")


def check_targets(target: Any) -> list[Any]:
    """Return the targets of a mapping."""
    targets = [value for _, value in target.items()]
    if not targets:
        raise ValueError("target is an empty mapping; give each subgroup its target.")
    return targets


def check_single(selection: Any) -> None:
    """Refuse several thresholds where one is drawn."""
    if selection.groups is not None:
        groups = list(selection.selections)
        raise ValueError(
            f"selection has one threshold per {selection.by}; draw one of them, such as "
            f"selection.selections[{groups[0]!r}]."
        )


def refuse_column(name: str, X: Any) -> None:
    """Refuse a reserved word that is also a column."""
    if name in (column_names(X) or []):
        raise ValueError(
            f"group_by={name!r} means the answers, but X has a column of that name too; rename it, "
            f"or pass a function such as lambda X: X[{name!r}]."
        )


def check_has_subgroups(subgroups: Any, by: str, known: list[Any]) -> None:
    """Refuse rows without the subgroups that decide on their threshold."""
    if subgroups is None:
        raise ValueError(
            f"subgroups is missing: this policy has one threshold per {by}; pass the {by} of each "
            f"row, one of {known[:10]}."
        )


def check_some_subgroup(groups: Sized) -> None:
    """Refuse a table in which no row has a subgroup."""
    if not groups:
        raise ValueError("subgroups: every value is missing; each row needs its subgroup.")


def check_once(n_groups: int, n_members: int) -> None:
    """Refuse a file in which a subgroup stands twice."""
    if n_groups < n_members:
        raise ValueError("groups: a subgroup is listed more than once.")


def check_any_row(rows: BoolArray, among: Any) -> None:
    """Refuse a promise about no row at all."""
    if not np.any(rows):
        raise ValueError(f"among={among!r}: there is no such row.")


def check_targets_of(target: Any, groups: list[Any]) -> list[Any]:
    """Return the target of each subgroup: the same for all, or one each from a mapping."""
    if not hasattr(target, "items"):
        return [target] * len(groups)
    missing = [group for group in groups if group not in target]
    extra = [group for group in target if group not in groups]
    if missing or extra:
        raise ValueError(
            f"target must name every subgroup once. The rows hold {groups}; "
            f"missing: {missing}, without rows: {extra}."
        )
    return [target[group] for group in groups]


def check_one_column(frame: pd.DataFrame, name: str = "subgroups") -> pd.Series:
    """Return the only column of a frame of subgroups."""
    if frame.shape[1] != 1:
        raise ValueError(
            f"{name} must be one value per row, got the {frame.shape[1]} columns "
            f"{list(frame.columns)}; join them first."
        )
    return frame.iloc[:, 0]
