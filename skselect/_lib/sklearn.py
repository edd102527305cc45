"""The door to scikit-learn's private names, each with the reason it is needed.

Those of scorers stand in :mod:`skselect._lib.scorers`. A test fails when one of them moves.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import sklearn
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing

# An estimator with a list of named estimators reads and sets their parameters by it.
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition
from sklearn.utils.validation import _check_method_params, _num_samples, has_fit_parameter

# Names of scikit-learn that other rooms take from here.
__all__ = ["BaseComposition", "CallbackSupportMixin", "with_callbacks"]

# Callbacks -----------------------------------------------------------------------------------

# scikit-learn 1.9 calls them at the begin and the end of a fit, and of each fit inside it. Older
# versions have none.
try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

        def _init_callback_context(self, **_: Any) -> _NoContext:
            return _NoContext()

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


class _NoContext:
    """Stands where newer versions have a CallbackContext, and does nothing."""

    def subcontext(self, **_: Any) -> _NoContext:
        return self

    def call_on_fit_task_begin(self, **_: Any) -> _NoContext:
        return self

    def call_on_fit_task_end(self, **_: Any) -> None:
        pass

    def propagate_callback_context(self, _model: Any) -> Any:
        return nullcontext()


def begin_fit(estimator: Any, n_tasks: int, X: Any, y: Any) -> Any:
    """Tell the callbacks of an estimator that its fit begins; return the context of the fit.

    The name is private, but scikit-learn's guide for developers gives it to other libraries.
    """
    context = estimator._init_callback_context(max_subtasks=n_tasks)  # noqa: SLF001
    return context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)


# Diagrams ------------------------------------------------------------------------------------


def show_side_by_side(names: Sequence[str], estimators: Sequence[Any]) -> Any:
    """Return what the diagram of an estimator shows inside it; the module of its class moves."""
    from sklearn.pipeline import _VisualBlock  # noqa: PLC0415 - private, may be gone

    return _VisualBlock("parallel", estimators, names=names)


class DescribedMixin:
    """Lets a notebook describe a parameter or a fitted attribute where the mouse points at it.

    scikit-learn shows what a docstring says of them inside links to a site, which it leaves out
    where it knows none. These lead nowhere, and lose their address: the descriptions stay.
    """

    def _get_params_html(self, *args: Any, **options: Any) -> Any:
        return _describe(super()._get_params_html, args, options)  # type: ignore[misc]

    def _get_fitted_attr_html(self, *args: Any, **options: Any) -> Any:
        return _describe(super()._get_fitted_attr_html, args, options)  # type: ignore[misc]


_NOWHERE = "about:blank"
_ADDRESS = re.compile(rf'\s+rel="noreferrer" target="_blank" href="{_NOWHERE}[^"]*"')


def _describe(make_table: Callable[..., Any], args: Any, options: Mapping[str, Any]) -> Any:
    """Return a table of scikit-learn's diagram whose descriptions are no links.

    Versions before 1.8 have no descriptions.
    """
    signature = inspect.signature(make_table)
    if "doc_link" not in signature.parameters:
        return make_table(*args, **options)
    call = signature.bind(*args, **options)
    if call.arguments.get("doc_link"):
        return make_table(*args, **options)
    call.arguments["doc_link"] = _NOWHERE
    table = make_table(*call.args, **call.kwargs)
    draw = table._html_repr  # noqa: SLF001
    table._html_repr = lambda: _ADDRESS.sub("", draw())  # noqa: SLF001
    return table


# Fitting -------------------------------------------------------------------------------------


def routing_enabled() -> bool:
    """Tell whether scikit-learn's metadata routing is switched on."""
    return bool(sklearn.get_config().get("enable_metadata_routing", False))


def take_rows(table: Any, rows: Any) -> Any:
    """Return rows of an array, sparse matrix, data frame or list (the private helper takes all)."""
    if hasattr(type(table), "column_names"):  # an Arrow table, which scikit-learn 1.6 cannot index
        return table.take(np.arange(table.num_rows)[rows])
    try:
        return _safe_indexing(table, rows)
    except (AttributeError, AssertionError) as error:
        kind = f"{type(table).__module__.partition('.')[0]} {type(table).__name__}"
        raise ValueError(
            f"X: rows of a {kind} have no position to take them by. Pass an array, or a data frame "
            "of pandas or polars: X.compute() of dask, X.to_native() of narwhals."
        ) from error


def take_params(X: Any, params: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    """Return arguments of `fit` for some rows of X: those with one entry per row are cut."""
    cut: dict[str, Any] = _check_method_params(X, params, rows)
    return cut | {name: x for name, x in params.items() if isinstance(x, str | bytes | Mapping)}


def count_rows(table: Any) -> int:
    """Return the number of rows of whatever a classifier takes (the private helper takes all)."""
    return int(_num_samples(table))


def weight_parameter(estimator: Any) -> str | None:
    """Return the name under which `fit` takes row weights, None if it takes none.

    A Pipeline passes weights on to its last step under that step's name. A frozen classifier
    takes them and ignores them.
    """
    if isinstance(estimator, FrozenEstimator):
        return "sample_weight"
    steps = getattr(estimator, "steps", None)
    if steps:
        name, last = steps[-1]
        inner = None if last in (None, "passthrough") else weight_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    # Voting and stacking pass them on to the classifiers inside, which must all take them.
    parts = _list_parts(estimator)
    if parts:
        names = {weight_parameter(part) for part in parts}
        return "sample_weight" if names == {"sample_weight"} else None
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    # Searches pass keyword arguments of fit on to the estimator they search over.
    searched = getattr(estimator, "estimator", None)
    if searched is not None and "params" in inspect.signature(estimator.fit).parameters:
        return weight_parameter(searched)
    return None


def _list_parts(estimator: Any) -> list[Any]:
    """Return the classifiers inside voting or stacking, which pass the arguments of `fit` on."""
    named = getattr(estimator, "estimators", None)
    if not isinstance(named, list):
        return []
    parameters = inspect.signature(estimator.fit).parameters.values()
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return []
    parts = [*(part for _, part in named), getattr(estimator, "final_estimator", None)]
    return [part for part in parts if part is not None and not isinstance(part, str)]
