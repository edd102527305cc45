"""The doors that metrics share: the arguments they have in common, checked once."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypedDict, TypeVar, cast

from skselect._checks.options import check_number
from skselect._typing import ConfidenceSpec, LossSpec
from skselect.curve.curve import RiskCoverageCurve
from skselect.predictions.confidence import claimed_confidence, confidence_of
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions

_Function = TypeVar("_Function", bound=Callable[..., Any])

# What shared parameters say in a docstring, at the indentation that `inspect.cleandoc` leaves.
_DATA = """\
y_true : array-like of shape (n,)
    True labels: numbers, strings or booleans.
y_proba : array-like of shape (n, K) or (n,)
    Class probabilities, columns in the order of `labels` (a DataFrame's columns are
    matched by name), or the probability of `pos_label` for two classes."""

_AVERAGE = """\
average : {"auto", "macro", "weighted", "micro", "binary", None}, default="auto"
    How the classes' values become one, as in scikit-learn: their mean, their mean
    weighted by support, the value of all counts together, the value of `pos_label`
    (two classes), or no average. "auto" is "binary" where `pos_label` is given, else
    "macro". Classes without a value are left out of a mean, where scikit-learn counts 0."""

_CLAIM = """\
confidence : {"max_proba", "margin", "entropy", "gini"}, callable or array of shape (n,), \
default=None
    How sure the classifier is of each row. What needs a probability of being right uses
    that of the answer, whichever name is given; values of an array or a callable are used
    as they are and must lie in [0, 1]."""

#: Every shared keyword: its default and what its docstring says.
_OPTIONS: dict[str, tuple[Any, str]] = {
    "confidence": (
        None,
        """\
confidence : {"max_proba", "margin", "entropy", "gini"}, callable or array of shape (n,), \
default=None
    How sure the classifier is of each row. None means "max_proba".""",
    ),
    "loss": (
        "zero_one",
        """\
loss : {"zero_one"} or callable, default="zero_one"
    A callable ``(y_true, y_pred) -> loss`` returns one value in [0, 1] per row.""",
    ),
    "labels": (
        None,
        """\
labels : array-like of shape (K,), default=None
    All classes, in the order of the columns. Default: the sorted labels in `y_true`.""",
    ),
    "pos_label": (
        None,
        """\
pos_label : label, default=None
    The class of two that a one-dimensional `y_proba` belongs to, and that a metric of one
    class is about; 1 for {0, 1} and {-1, 1}.""",
    ),
    "sample_weight": (
        None,
        """\
sample_weight : array-like of shape (n,), default=None
    How often each row counts.""",
    ),
}


class ClassOptions(TypedDict, total=False):
    """Keyword arguments of a metric that judges the probabilities of all classes."""

    labels: Any
    pos_label: Any
    sample_weight: Any


class CountOptions(ClassOptions, total=False):
    """Keyword arguments of a metric that counts predicted classes by their confidence."""

    confidence: ConfidenceSpec | None


class DoorOptions(CountOptions, total=False):
    """Keyword arguments of a metric that reads how sure and how wrong each row is."""

    loss: LossSpec


def _sharing(options: type[Any], **other: str) -> Callable[[_Function], _Function]:
    """Return a decorator that writes shared parameters into docstring and signature.

    scikit-learn reads the signature: `make_scorer` passes on weights and `pos_label` only to
    a function that names them. `other` replaces what the docstring says of a parameter.
    """
    names = [name for name in _OPTIONS if name in options.__annotations__]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_OPTIONS[name][0])
        for name in names
    ]
    shared_words = {
        "%(data)s": _DATA,
        "%(average)s": _AVERAGE,
        "%(options)s": "\n".join(other.get(name, _OPTIONS[name][1]) for name in names),
    }

    def decorate(function: _Function) -> _Function:
        # Python 3.13 strips the indentation itself, earlier versions leave it.
        text = inspect.cleandoc(function.__doc__ or "")
        for placeholder, words in shared_words.items():
            text = text.replace(placeholder, words)
        function.__doc__ = text
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        shown = signature.replace(parameters=[*own, *shared])

        @functools.wraps(function)
        def door(*args: Any, **kwargs: Any) -> Any:
            _check_keywords(function.__name__, kwargs, shown.parameters)
            return function(*args, **kwargs)

        door.__signature__ = shown  # type: ignore[attr-defined]
        return cast("_Function", door)

    return decorate


metric = _sharing(DoorOptions)
count_metric = _sharing(CountOptions)
class_metric = _sharing(ClassOptions)
#: For what reads a probability of being right.
claim_metric = _sharing(DoorOptions, confidence=_CLAIM)
claim_count_metric = _sharing(CountOptions, confidence=_CLAIM)


def outcomes_of(y_true: Any, y_proba: Any, **options: Any) -> Outcomes:
    """Check the arguments and judge each row."""
    return Outcomes.from_proba(y_true, y_proba, **options)


def curve_of(y_true: Any, y_proba: Any, **options: Any) -> RiskCoverageCurve:
    """Check the arguments, judge each row, sort once."""
    return RiskCoverageCurve.from_outcomes(outcomes_of(y_true, y_proba, **options))


def claimed_outcomes_of(
    y_true: Any,
    y_proba: Any,
    *,
    confidence: ConfidenceSpec | None = None,
    loss: LossSpec = "zero_one",
    **options: Any,
) -> Outcomes:
    """Check the arguments and judge each row, by the chance of being right that it claims."""
    predictions = predictions_of(y_true, y_proba, **options)
    claim = claimed_confidence(predictions, confidence)
    return Outcomes.from_predictions(predictions, confidence=claim, loss=loss)


def claimed_curve_of(y_true: Any, y_proba: Any, **options: Any) -> RiskCoverageCurve:
    """Check the arguments, judge each row by its claim, sort once."""
    return RiskCoverageCurve.from_outcomes(claimed_outcomes_of(y_true, y_proba, **options))


def predictions_of(y_true: Any, y_proba: Any, **options: Any) -> Predictions:
    """Check the arguments."""
    return Predictions.from_proba(y_true, y_proba, **options)


def confident_predictions_of(
    y_true: Any, y_proba: Any, *, confidence: ConfidenceSpec | None = None, **options: Any
) -> Predictions:
    """Check the arguments; a confidence that was asked for goes with the predictions."""
    predictions = predictions_of(y_true, y_proba, **options)
    if confidence is None:
        return predictions
    return replace(predictions, confidence=confidence_of(predictions, confidence))


def claimed_predictions_of(
    y_true: Any, y_proba: Any, *, confidence: ConfidenceSpec | None = None, **options: Any
) -> Predictions:
    """Check the arguments; the chance of being right that each row claims goes with it."""
    predictions = predictions_of(y_true, y_proba, **options)
    claim = claimed_confidence(predictions, confidence)
    return replace(predictions, confidence=confidence_of(predictions, claim))


def check_eps(eps: Any, *, zero: bool) -> None:
    """Refuse a clipping distance outside [1e-100, 0.5); 0 does not clip, where that is possible."""
    if check_number("eps", eps, 0.0, 0.5, closed="left") > 0 or not zero:
        check_number("eps", eps, 1e-100, 0.5, closed="left")


def _check_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse keywords that a function does not have, as Python does."""
    names = list(known)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            meant = f". Did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{meant}")
