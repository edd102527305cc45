"""Groups of dependent rows: whether they reach every part of an estimator that makes folds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import get_routing_for_object

from skselect._lib.checks.rows import check_length, check_one_per_row, label_array
from skselect._lib.sklearn import routing_enabled


def check_groups(fit_params: Mapping[str, Any], n_rows: int) -> None:
    """Refuse groups among the arguments of `fit` that are missing or do not fit the rows."""
    if fit_params.get("groups") is None:
        return
    groups = check_one_per_row(label_array(fit_params["groups"], "groups"), "groups")
    check_length("groups", groups, n_rows, "y")
    missing = np.flatnonzero(pd.isna(groups))
    if len(missing):
        raise ValueError(
            f"groups has {len(missing)} missing values, first in row {missing[0]}; name the group "
            "of each row, of a row that depends on no other by a name of its own."
        )


def count_groups(groups: Any) -> int:
    """Return the number of distinct groups."""
    return int(pd.Series(np.asarray(groups)).nunique())


def find_asking_splitter(cv: Any) -> Any:
    """Return the splitter that asks for groups on behalf of a `cv` of this package.

    One that is no splitter, such as an integer, keeps groups together: it asks for them.
    """
    is_splitter = hasattr(cv, "split") and not isinstance(cv, str)
    if is_splitter:
        return cv
    # Scorers read this module while scikit-learn is still importing its splitters.
    from sklearn.model_selection import StratifiedGroupKFold  # noqa: PLC0415

    return StratifiedGroupKFold()


def refuse_mixed_folds(
    cv: Any, inside: Any, fit_params: Mapping[str, Any], *, are_routed: bool = True
) -> None:
    """Refuse groups that do not reach a part which makes folds.

    Parameters
    ----------
    cv : int, splitter or iterable
        That of the estimator that has got `fit_params`.
    inside : estimator, or list or dict of them
        What it fits.
    fit_params : mapping
        Arguments of its ``fit``.
    are_routed : bool, default=True
        Whether it passes on what the parts inside ask for.
    """
    names = _name_groups(cv, fit_params)
    # Without routing, a Pipeline passes on what its user names for a step.
    if not names or any(name.endswith("__groups") for name in fit_params):
        return
    for part in find_fold_makers(inside):
        if not are_routed or not _gets_groups(part, names):
            remedy = _find_remedy(part) if are_routed else "Take it out."
            raise ValueError(
                f"groups: the folds of the {type(part).__name__} inside would mix groups, which do "
                f"not reach it. {remedy}"
            )


def find_fold_makers(estimator: Any) -> Iterator[Any]:
    """Yield the parts of an estimator, itself included, that divide their rows into folds.

    Those of this package say so; others have a parameter `cv` that is not "prefit".
    """
    if isinstance(estimator, FrozenEstimator | type):
        return
    parts = estimator
    if hasattr(estimator, "get_params"):
        parts = estimator.get_params(deep=False)
        if hasattr(estimator, "fit") and _makes_folds(estimator, parts):
            yield estimator
    if isinstance(parts, Mapping):
        parts = list(parts.values())
    if isinstance(parts, list | tuple):
        for part in parts:
            yield from find_fold_makers(part)


def _makes_folds(estimator: Any, params: Mapping[str, Any]) -> bool:
    if _is_own(estimator):
        return bool(estimator._makes_folds)
    cv = params.get("cv", "prefit")
    return not (isinstance(cv, str) and cv == "prefit")


def _is_own(estimator: Any) -> bool:
    return hasattr(type(estimator), "_makes_folds")


def _name_groups(cv: Any, fit_params: Mapping[str, Any]) -> list[str]:
    """Return under which names groups are given."""
    passed = [name for name, value in fit_params.items() if value is not None]
    names = {"groups"}
    if routing_enabled():
        splitter = find_asking_splitter(cv)
        names |= set(get_routing_for_object(splitter).consumes("split", passed))
    return [name for name in passed if name in names]


def _gets_groups(part: Any, names: list[str]) -> bool:
    """Tell whether scikit-learn's metadata routing brings groups to the folds of a part."""
    if not routing_enabled() or not get_routing_for_object(part).consumes("fit", names):
        return False
    if _is_own(part):
        return True
    is_splitter = hasattr(part.cv, "split")
    return is_splitter and bool(get_routing_for_object(part.cv).consumes("split", names))


def _find_remedy(part: Any) -> str:
    """Say how groups reach a part."""
    splitter = "give it a splitter that asks for groups, such as cv=StratifiedGroupKFold(5)"
    if routing_enabled():
        return f"To change that, {splitter}, or take it out."
    remedy = "Call sklearn.set_config(enable_metadata_routing=True) first, so that they do"
    return f"{remedy}." if _is_own(part) else f"{remedy}, and {splitter}."
