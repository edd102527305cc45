"""Arguments that metrics share: signatures, docstrings, and rows with their loss and confidence."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypedDict, TypeVar, cast

import numpy as np

from skselect._lib.arrays import is_graded
from skselect._lib.checks import did_you_mean
from skselect._lib.checks.options import check_number
from skselect._lib.typing import BoolArray, ConfidenceSpec, FloatArray, LossSpec
from skselect.curve.curve import RiskCoverageCurve
from skselect.predictions.confidence import claimed_confidence, compute_confidence
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions

_Function = TypeVar("_Function", bound=Callable[..., Any])

# What docstrings say of shared parameters, indented as `inspect.cleandoc` leaves it.
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
    How sure the classifier is of each row. Where a probability of being right is needed,
    it is that of the predicted class, whichever name is given; values of an array or a
    callable are used as they are and must lie in [0, 1]."""

# Paragraphs that many docstrings share.
_PARAGRAPHS = {
    "%(data)s": _DATA,
    "%(average)s": _AVERAGE,
    "%(raises)s": """\
Raises
------
ValueError
    If an argument is malformed; the message names it and the remedy.""",
    "%(raises_unit)s": """\
Raises
------
ValueError
    If a confidence is outside [0, 1], or an argument is malformed.""",
    "%(csr)s": """\
Martin-Maroto, Abderrahaman & de Polavieja, "Beyond ECE: calibrated size ratio, risk
   assessment, and confidence-weighted metrics", arXiv 2605.01796, 2026.""",
    "%(augrc)s": """\
Traub et al., "Overcoming common flaws in the evaluation of selective
   classification systems", 2024.""",
}

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
    The positive one of two classes: a one-dimensional `y_proba` holds its probability (default:
    the second class in sorted order), and metrics of one class are about it (default: 1 for
    {0, 1} and {-1, 1}).""",
    ),
    "sample_weight": (
        None,
        """\
sample_weight : array-like of shape (n,), default=None
    How often each row counts.""",
    ),
}


class ClassOptions(TypedDict, total=False):
    """Keyword arguments of a metric that reads the probabilities of all classes."""

    labels: Any
    pos_label: Any
    sample_weight: Any


class CountOptions(ClassOptions, total=False):
    """Keyword arguments of a metric that counts predicted classes by their confidence."""

    confidence: ConfidenceSpec | None


class DoorOptions(CountOptions, total=False):
    """Keyword arguments of a metric that reads how sure and how wrong each row is."""

    loss: LossSpec


def share_options(options: type[Any], **other: str) -> Callable[[_Function], _Function]:
    """Return a decorator that writes shared parameters into docstring and signature.

    scikit-learn reads the signature: `make_scorer` passes on weights and `pos_label` only to
    a function that names them. `other` replaces what the docstring says of a parameter.
    """
    names = [name for name in _OPTIONS if name in options.__annotations__]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_OPTIONS[name][0])
        for name in names
    ]
    options_words = "\n".join(other.get(name, _OPTIONS[name][1]) for name in names)

    def decorate(function: _Function) -> _Function:
        # Python 3.13 strips the indentation itself, earlier versions leave it.
        text = inspect.cleandoc(function.__doc__ or "")
        for placeholder, words in {**_PARAGRAPHS, "%(options)s": options_words}.items():
            text = text.replace(placeholder, words)
        function.__doc__ = text
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        shown = signature.replace(parameters=[*own, *shared])

        @functools.wraps(function)
        def door(*args: Any, **kwargs: Any) -> Any:
            _check_keywords(function.__qualname__, kwargs, shown.parameters)
            return function(*args, **kwargs)

        door.__signature__ = shown  # type: ignore[attr-defined]
        return cast("_Function", door)

    return decorate


metric = share_options(DoorOptions)
count_metric = share_options(CountOptions)
class_metric = share_options(ClassOptions)
#: For metrics that read a probability of being right.
claim_metric = share_options(DoorOptions, confidence=_CLAIM)
claim_count_metric = share_options(CountOptions, confidence=_CLAIM)


def check_eps(eps: Any, *, zero: bool) -> None:
    """Refuse an eps outside [1e-100, 0.5); `zero`: allow 0, which does not clip."""
    if check_number("eps", eps, 0.0, 0.5, closed="left") > 0 or not zero:
        check_number("eps", eps, 1e-100, 0.5, closed="left")


def _check_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse keywords that a function does not have, as Python does."""
    names = list(known)
    for name in given:
        if name not in names:
            meant = did_you_mean(name, names)
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}.{meant}")


class Counts(NamedTuple):
    """Rows and errors of what each of some thresholds accepts."""

    weight: FloatArray
    loss: FloatArray


@dataclass(frozen=True, eq=False)
class UnsortedRows:
    """Rows that count once and are right or wrong: they are counted without being sorted.

    Sums of weights, graded losses or confidences are left to the curve: they round differently in
    another order.
    """

    outcomes: Outcomes

    @property
    def total_weight(self) -> float:
        """Number of rows."""
        return float(len(self.outcomes))

    def accepted_at(self, thresholds: FloatArray) -> Counts:
        """Return how many rows each threshold accepts, and how many of them are wrong."""
        accepted = [self.outcomes.confidence >= threshold for threshold in thresholds]
        wrong = self.outcomes.loss != 0.0
        return Counts(
            np.array([np.count_nonzero(rows) for rows in accepted], dtype=np.float64),
            np.array([np.count_nonzero(rows & wrong) for rows in accepted], dtype=np.float64),
        )


#: Rows whose weight and loss can be added up over what a threshold accepts.
Countable = RiskCoverageCurve | UnsortedRows


@dataclass(frozen=True, eq=False)
class Judged:
    """Rows with their loss and confidence, in every form that a kernel may need.

    Parameters
    ----------
    source : Outcomes or RiskCoverageCurve
        How wrong and how sure each row is; a curve where the rows themselves are not known.
    given : Predictions or None
        None: labels and probabilities are not known.
    claim : str, callable, ndarray of shape (n,) or None
        Which confidence is the probability of being right. None: the one that the rows have.
    """

    source: Outcomes | RiskCoverageCurve
    given: Predictions | None = None
    claim: ConfidenceSpec | None = None

    @property
    def predictions(self) -> Predictions:
        """The predictions; ask only where they are known."""
        assert self.given is not None
        return self.given

    @cached_property
    def outcomes(self) -> Outcomes:
        """The rows; of a curve, those of equal confidence and loss are one weighted row."""
        if isinstance(self.source, RiskCoverageCurve):
            return self.source.to_outcomes()
        return self.source

    @cached_property
    def curve(self) -> RiskCoverageCurve:
        """The rows, sorted when first asked for."""
        if isinstance(self.source, RiskCoverageCurve):
            return self.source
        return RiskCoverageCurve.from_outcomes(self.source)

    @property
    def countable(self) -> Countable:
        """The rows for a metric that only reads what one threshold accepts."""
        rows = self.source
        if isinstance(rows, Outcomes) and rows.sample_weight is None and not is_graded(rows.loss):
            return UnsortedRows(rows)
        return self.curve

    @cached_property
    def claimed(self) -> Judged:
        """The same rows; their confidence is the probability of being right."""
        if self.claim is None:
            return self
        claim = compute_confidence(self.predictions, self.claim)
        if np.array_equal(claim, self.outcomes.confidence):
            return self  # whose curve may be sorted already
        outcomes = replace(self.outcomes, confidence=claim)
        return Judged(outcomes, replace(self.predictions, confidence=claim))

    def take(self, rows: BoolArray) -> Judged:
        """Return some of the rows, with their own confidence."""

        def part(values: Any) -> Any:
            return None if values is None else values[rows]

        outcomes, given = self.outcomes.take(rows), self.given
        if given is not None:
            given = replace(
                given,
                y_true=given.y_true[rows],
                y_pred=given.y_pred[rows],
                y_proba=part(given.y_proba),
                confidence=part(given.confidence),
                sample_weight=part(given.sample_weight),
            )
        return Judged(outcomes, given)


def judge(
    source: Predictions | Outcomes,
    *,
    confidence: ConfidenceSpec | None = None,
    loss: LossSpec = "zero_one",
    claim: FloatArray | None = None,
) -> Judged:
    """Compute loss and confidence of each row; `claim` replaces the probability of being right."""
    outcomes = Outcomes.of(source, confidence=confidence, loss=loss)
    if not isinstance(source, Predictions):
        return Judged(outcomes)
    claimed = claimed_confidence(source, confidence) if claim is None else claim
    own = confidence
    if confidence is not None:
        source = replace(source, confidence=outcomes.confidence)
    elif source.confidence is None:
        own = source.rule.default_confidence
    return Judged(outcomes, source, None if claimed is own else claimed)


def judge_proba(
    y_true: Any,
    y_proba: Any,
    *,
    confidence: ConfidenceSpec | None = None,
    loss: LossSpec = "zero_one",
    **options: Any,
) -> Judged:
    """Check the arguments of a metric; compute loss and confidence of each row."""
    predictions = Predictions.from_proba(y_true, y_proba, **options)
    return judge(predictions, confidence=confidence, loss=loss)
