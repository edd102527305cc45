"""The door that every metric shares: the arguments all of them take, checked once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

from skselect._typing import ConfidenceSpec, LossSpec
from skselect.curves import RiskCoverageCurve
from skselect.outcomes import Outcomes

_Function = TypeVar("_Function", bound=Callable[..., Any])

_COMMON = """y_true : array-like of shape (n,)
        True labels: numbers, strings or booleans.
    y_proba : array-like of shape (n, K) or (n,)
        Class probabilities, columns in the order of `labels` (a DataFrame's columns are
        matched by name), or the probability of `pos_label` for two classes.
    """

_OPTIONS = """confidence : {"max_proba", "margin", "entropy", "gini"}, callable or array of \
shape (n,), default=None
        How sure the classifier is of each row. None means "max_proba".
    loss : {"zero_one"} or callable, default="zero_one"
        A callable ``(y_true, y_pred) -> loss`` returns one value in [0, 1] per row.
    labels : array-like of shape (K,), default=None
        All classes, in the order of the columns. Default: the sorted labels in `y_true`.
    pos_label : label, default=None
        The class that a one-dimensional `y_proba` belongs to; 1 for {0, 1} and {-1, 1}.
    sample_weight : array-like of shape (n,), default=None
        How often each row counts."""


class DoorOptions(TypedDict, total=False):
    """Keyword arguments that every metric takes."""

    confidence: ConfidenceSpec | None
    loss: LossSpec
    labels: Any
    pos_label: Any
    sample_weight: Any


_SHARED = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
    for name, default in [
        ("confidence", None),
        ("loss", "zero_one"),
        ("labels", None),
        ("pos_label", None),
        ("sample_weight", None),
    ]
]


def metric(function: _Function) -> _Function:
    """Write the shared parameters into the docstring and the signature of a metric.

    scikit-learn reads the signature: `make_scorer` passes on weights and `pos_label` only to
    a function that names them.
    """
    text = function.__doc__ or ""
    text = text.replace("%(data)s\n    ", _COMMON).replace("%(options)s", _OPTIONS)
    function.__doc__ = text
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    shown = signature.replace(parameters=[*own, *_SHARED])
    function.__signature__ = shown  # type: ignore[attr-defined]
    return function


def outcomes_of(y_true: Any, y_proba: Any, **options: Any) -> Outcomes:
    """Check the arguments and judge each row."""
    return Outcomes.from_proba(y_true, y_proba, **options)


def curve_of(y_true: Any, y_proba: Any, **options: Any) -> RiskCoverageCurve:
    """Check the arguments, judge each row, sort once."""
    return RiskCoverageCurve.from_outcomes(outcomes_of(y_true, y_proba, **options))
