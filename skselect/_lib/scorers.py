"""The private names of scikit-learn's scorers, and its tables of scoring strings."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from sklearn.metrics import _scorer

# Scorers must derive from the private base class: only then do searches route weights to
# them, and multimetric scoring accept them beside scikit-learn's own.
from sklearn.metrics._scorer import _BaseScorer as BaseScorer

__all__ = ["BaseScorer", "register_scoring_names", "unregister_scoring_names"]

#: Modules in which scikit-learn keeps fixed sets of the scoring strings, as constraints of the
#: parameters of classes and functions. There is no public way to add a name.
SCORING_MODULES = (
    "sklearn.metrics._scorer",
    "sklearn.model_selection._validation",
    "sklearn.model_selection._search",
    "sklearn.model_selection._search_successive_halving",
    "sklearn.model_selection._classification_threshold",
    "sklearn.feature_selection._sequential",
    "sklearn.inspection._permutation_importance",
    "sklearn.linear_model._logistic",
    "sklearn.linear_model._ridge",
)

_added: set[str] = set()


def register_scoring_names(scorers: Mapping[str, Any]) -> list[str]:
    """Make names usable as scoring strings; never replace a name that is already there."""
    table = _scorer_table()
    if table is None:
        return []
    new = [name for name in scorers if name not in table]
    table.update({name: scorers[name] for name in new})
    _added.update(new)
    for options in loaded_scoring_options():
        options.update(_added)
    return new


def unregister_scoring_names() -> None:
    """Take the added names out of scikit-learn again."""
    table = _scorer_table() or {}
    for name in _added:
        table.pop(name, None)
    for options in loaded_scoring_options():
        options.difference_update(_added)
    _added.clear()


def _scorer_table() -> dict[str, Any] | None:
    table = getattr(_scorer, "_SCORERS", None)
    return table if isinstance(table, dict) else None


def loaded_scoring_options() -> list[set[str]]:
    """Return the sets of scoring strings of all modules that are loaded.

    A module imported later builds its set from the table that already has the added names.
    """
    option_sets: dict[int, set[str]] = {}
    for name in SCORING_MODULES:
        module = sys.modules.get(name, object)
        for holder in vars(module).values():
            for options in _scoring_options(holder):
                option_sets[id(options)] = options
    return list(option_sets.values())


def _scoring_options(holder: Any) -> Iterator[set[str]]:
    """Yield the sets of scoring strings that a function or class of scikit-learn takes."""
    for attribute in ("_skl_parameter_constraints", "_parameter_constraints"):
        constraints = getattr(holder, attribute, None)
        if not isinstance(constraints, dict):
            continue
        for constraint in constraints.get("scoring", ()):
            is_set = type(constraint).__name__ == "StrOptions"
            if is_set and isinstance(constraint.options, set):
                yield constraint.options
