"""Keywords that many functions share, with what docstrings say of each."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypedDict, TypeVar, cast

from skselect._lib.arrays import ConfidenceSpec, LossSpec
from skselect._lib.checks import did_you_mean

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Shared keywords ---------------------------------------------------------------------------


class ClassOptions(TypedDict, total=False):
    """Keyword arguments of a metric that reads the probabilities of all classes."""

    labels: Any
    pos_label: Any
    sample_weight: Any


class CountOptions(ClassOptions, total=False):
    """Keyword arguments of a metric that counts predicted classes by their confidence."""

    confidence: ConfidenceSpec | None


class RowOptions(CountOptions, total=False):
    """Keyword arguments of a metric that reads how sure and how wrong each row is."""

    loss: LossSpec


class ThresholdOptions(RowOptions, total=False):
    """Row options, and the threshold from which on rows are accepted."""

    threshold: float


class CwsaOptions(ThresholdOptions, total=False):
    """Keyword arguments of CWSA and CWSA+."""

    normalize: str


class WeighedCountOptions(CountOptions, total=False):
    """Count options; the confidence is the probability of being right."""


class AverageOptions(WeighedCountOptions, total=False):
    """Weighed count options, and how the values of the classes become one."""

    average: str | None


class WeighedRowOptions(RowOptions, total=False):
    """Row options; the confidence is the probability of being right."""


class _Bins(TypedDict, total=False):
    n_bins: int
    strategy: str


class BinOptions(_Bins, WeighedRowOptions, total=False):
    """Weighed row options, and the bins of the confidence."""


class ClassBinOptions(_Bins, ClassOptions, total=False):
    """Class options, and the bins of the probabilities of each class."""


# Those whose confidence is the probability of being right.
OF_CORRECTNESS: list[Any] = [WeighedCountOptions, AverageOptions, WeighedRowOptions, BinOptions]
_SETS: list[Any] = [ClassOptions, CountOptions, RowOptions, ThresholdOptions, CwsaOptions]
_SETS += [ClassBinOptions, *OF_CORRECTNESS]

# Defaults of shared keywords other than None, where no kernel has one.
DEFAULTS = {"loss": "zero_one"}

# What docstrings say of every shared keyword.
_OPTIONS = {
    "threshold": """\
threshold : float, default=0.5
    Rows with confidence >= threshold are accepted. inf accepts nothing; CWSA and CWSA+ need
    values in [0, 1).""",
    "normalize": """\
normalize : {"selected", "all"}, default="selected"
    Divide by the weight of the accepted rows, or of all rows.""",
    "average": """\
average : {"auto", "macro", "weighted", "micro", "binary", None}, default="auto"
    How the classes' values become one, as in scikit-learn: their mean, their mean
    weighted by support, the value of all counts together, the value of `pos_label`
    (two classes), or no average. "auto" is "binary" where `pos_label` is given, else
    "macro". Classes without a value are left out of a mean, where scikit-learn counts 0.""",
    "n_bins": """\
n_bins : int, default=15
    Number of bins.""",
    "strategy": """\
strategy : {"uniform", "quantile"}, default="%(default)s"
    Bins of equal width on [0, 1], closed on the right and the first one on both sides, or of
    equal weight. Equal confidences stay in one bin.""",
    "confidence": """\
confidence : {"max_proba", "margin", "entropy", "gini"}, callable or array of shape (n,), \
default=None
    How sure the classifier is of each row. None means "max_proba".""",
    "loss": """\
loss : {"zero_one"} or callable, default="zero_one"
    How wrong an answer is. A callable ``(y_true, y_pred) -> loss`` returns one value in [0, 1]
    per row.""",
    "labels": """\
labels : array-like of shape (K,), default=None
    All classes, in the order of the columns. Default: the sorted labels in `y_true`.""",
    "pos_label": """\
pos_label : label, default=None
    The positive one of two classes. A one-dimensional `y_proba` holds its probability (default:
    the second class in sorted order), and metrics of one class are about it (default: 1 for
    {0, 1} and {-1, 1}).""",
    "sample_weight": """\
sample_weight : array-like of shape (n,), default=None
    How often each row counts.""",
}

_CORRECTNESS = """\
confidence : {"max_proba", "margin", "entropy", "gini"}, callable or array of shape (n,), \
default=None
    How sure the classifier is of each row. Where a probability of being right is needed,
    it is that of the predicted class, whichever name is given; values of an array or a
    callable are used as they are and must lie in [0, 1]."""

# Paragraphs that many docstrings share, indented as `inspect.cleandoc` leaves them.
_PARAGRAPHS = {
    "%(data)s": """\
y_true : array-like of shape (n,)
    True labels. Numbers, strings or booleans.
y_proba : array-like of shape (n, K) or (n,)
    Class probabilities. Columns in the order of `labels` (a DataFrame's columns are
    matched by name), or the probability of `pos_label` for two classes.""",
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
    "%(cwsa)s": """\
Shahnazari et al., "Trust, or don't predict: introducing the CWSA family for
   confidence-aware model evaluation", arXiv 2505.18622, 2025.""",
    "%(cau)s": """\
"Uncertainty quantification revisited: conditional cross-entropy for neural
   classifiers".""",
}


def share_options(function: _Function) -> _Function:
    """Write the shared parameters that ``**options: Unpack[...]`` names into a function."""
    return write_options(function, options_of(function))


def write_options(
    function: _Function, options: type[Any], defaults: Mapping[str, Any] = DEFAULTS
) -> _Function:
    """Write shared parameters into docstring and signature.

    scikit-learn reads the signature: `make_scorer` passes on weights and `pos_label` only to
    a function that names them.
    """
    names = [name for name in _OPTIONS if name in options.__annotations__]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name))
        for name in names
    ]
    descriptions = dict(_OPTIONS)
    if options in OF_CORRECTNESS:
        descriptions["confidence"] = _CORRECTNESS
    described = "\n".join(descriptions[name] for name in names)
    _fill_docstring(function, described, defaults.get("strategy"))
    signature = inspect.signature(function)
    own_parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    complete = signature.replace(parameters=[*own_parameters, *shared])

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in complete.parameters:
                hint = did_you_mean(name, list(complete.parameters))
                hint = hint or _name_place(complete.parameters)
                raise TypeError(
                    f"{function.__qualname__}() got an unexpected keyword argument {name!r}.{hint}"
                )
        return function(*args, **kwargs)

    wrapper.__signature__ = complete  # type: ignore[attr-defined]
    return cast("_Function", wrapper)


def _name_place(parameters: Collection[str]) -> str:
    """Say where a function takes the parameters of a metric; "" if it takes none."""
    if "metric_params" in parameters:
        return " Parameters of the metric stand in metric_params=, such as {'threshold': 0.8}."
    if "metrics" in parameters:
        return " Parameters of a metric stand in metrics=, such as {'cwsa': {'threshold': 0.8}}."
    return ""


def _fill_docstring(function: Callable[..., Any], described: str, strategy: Any) -> None:
    """Put shared paragraphs, the text of shared parameters and a default into a docstring."""
    # Python 3.13 strips the indentation itself, earlier versions leave it.
    text = inspect.cleandoc(function.__doc__ or "")
    paragraphs = _PARAGRAPHS | {"%(options)s": described, "%(default)s": str(strategy)}
    for placeholder, paragraph in paragraphs.items():
        text = text.replace(placeholder, paragraph)
    function.__doc__ = text


def options_of(function: Callable[..., Any]) -> type[Any]:
    """Return the set of shared keywords that a function takes."""
    annotation = function.__annotations__["options"]
    return next(options for options in _SETS if annotation == f"Unpack[{options.__name__}]")
