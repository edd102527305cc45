"""What the library knows about a metric: the row above its function, `@metric(...)`.

The row says what programs need, the field list of the docstring what readers need (formula, use).
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np

from skselect._lib.arrays import FloatArray
from skselect._lib.checks import shown, warn_user
from skselect._lib.checks.options import check_threshold
from skselect._lib.keywords import (
    DEFAULTS,
    OF_CORRECTNESS,
    RowOptions,
    options_of,
    write_options,
)
from skselect.curve.influence import RankedInfluence
from skselect.metrics._rows import Influence, ScoredRows, score_proba
from skselect.predictions.predictions import Predictions

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Value = TypeVar("_Value")


def find_asked_class(y_proba: Any, average: str | None, pos_label: Any) -> Any:
    """Return the class that a metric is about; None if `pos_label` only says what `y_proba` is."""
    names_column = np.ndim(y_proba) == 1 and average not in ("auto", "binary")
    return None if names_column else pos_label


# The form in which a kernel reads the rows, by the type of its first argument; methods of the
# curve read the curve.
_FORMS = {"Predictions": "predictions", "Outcomes": "outcomes"}


@functools.cache
def _read_kernel(kernel: Callable[..., Any]) -> tuple[str, Mapping[str, inspect.Parameter]]:
    """Return the form of the rows that a kernel reads, and its parameters by name."""
    rows, *others = inspect.signature(kernel).parameters.values()
    form = _FORMS.get(rows.annotation, "curve")
    return form, {parameter.name: parameter for parameter in others}


def compute(
    kernel: Callable[..., _Value],
    y_true: Any,
    y_proba: Any,
    options: Mapping[str, Any],
    *,
    check: Callable[[Any], float] = check_threshold,
    **parameters: Any,
) -> _Value:
    """Return what a kernel computes of labels and probabilities.

    Parameters
    ----------
    kernel : callable
        Its first argument says in which form it takes the rows.
    y_true, y_proba : array-like
    options : mapping
        The shared keywords that were given: those about the rows, and parameters of the kernel.
    check : callable, default=check_threshold
        Refuses a threshold.
    **parameters
        Other parameters of the kernel.
    """
    about_rows, of_kernel = _split(options)
    form, kernel_parameters = _read_kernel(kernel)
    if form == "predictions" and about_rows.get("confidence") is None:
        source: Any = Predictions.from_proba(y_true, y_proba, **about_rows)
    else:
        rows = score_proba(y_true, y_proba, **about_rows)
        if "threshold" in kernel_parameters:
            rows = rows.at_threshold
        source = getattr(rows, form)
    if "threshold" in of_kernel:
        of_kernel["threshold"] = check(of_kernel["threshold"])
    return kernel(source, **of_kernel, **parameters)


def compute_by_correctness(
    kernel: Callable[..., _Value],
    y_true: Any,
    y_proba: Any,
    options: Mapping[str, Any],
    **parameters: Any,
) -> _Value:
    """Return what a kernel computes where the confidence is the probability of being right.

    The parameters are those of :func:`compute`.
    """
    about_rows, of_kernel = _split(options)
    form, kernel_parameters = _read_kernel(kernel)
    rows = score_proba(y_true, y_proba, **about_rows).by_correctness
    if "pos_label" in kernel_parameters:
        average = of_kernel.get("average", "auto")
        of_kernel["pos_label"] = find_asked_class(y_proba, average, options.get("pos_label"))
    return kernel(getattr(rows, form), **of_kernel, **parameters)


def _split(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keywords that are about the rows, and those that are parameters of a kernel."""
    about_rows = {}
    of_kernel = {}
    for name, value in options.items():
        if name in RowOptions.__annotations__:
            about_rows[name] = value
        else:
            of_kernel[name] = value
    return about_rows, of_kernel


def defaults_of(kernel: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """Write shared parameters into a function, with the defaults that its kernel gives them."""
    _, parameters = _read_kernel(kernel)
    defaults = DEFAULTS | {name: known.default for name, known in parameters.items()}

    def complete(function: _Function) -> _Function:
        return write_options(function, options_of(function), defaults)

    return complete


def undefined(what: str, why: str) -> float:
    """Return nan for a metric that has no value, with a warning that says why."""
    warn_user(f"{what} is undefined (nan): {why}.")
    return math.nan


def check_cwsa_threshold(value: Any) -> float:
    """Return a threshold for the CWSA family, which is defined on [0, 1) only."""
    if not 0 <= check_threshold(value) < 1:
        raise ValueError(
            f"threshold must lie in [0, 1) for CWSA and CWSA+ (at 1 the weight is 0/0), got "
            f"{shown(value)}."
        )
    return float(value)


# The row of a metric -----------------------------------------------------------------------

ALWAYS_DEFINED = "always defined"
RestsOn = Literal["errors and right answers", "errors", "right answers", "rows"]


@dataclass(frozen=True)
class MetricSpec:
    """What the library knows about one metric.

    Parameters
    ----------
    name : str
        Short name, without ``_score``; scorers of losses put ``neg_`` before it.
    function : callable
        The public function of labels and probabilities.
    kernel : callable
        ``kernel(predictions, outcomes or curve, **parameters) -> float``.
    needs : {"predictions", "outcomes", "curve"}
        What the kernel reads.
    greater_is_better : bool
    range : str, default="[0, 1]"
        The values it can take.
    undefined : str
        When the metric has no value, and what is returned then.
    confidence : {"any", "unit", "probability"}
        What the confidence must be: any number; in [0, 1], and a threshold in [0, 1);
        the probability of being right.
    for_comparison : bool
        Whether it is there only for comparison with published values.
    needs_right : bool
        Whether scorers return nan when no answer is right, so as not to reward it.
    scale_free : bool
        Whether multiplying all weights by a constant changes nothing.
    best : float or None
        The best value, where it lies inside the range: scorers return minus the distance to it.
        If it is 0, the sign tells the direction.
    row_terms : callable or None
        ``row_terms(outcomes, **parameters)``: what each row adds, for a metric that is a sum
        over rows.
    closed_form : callable or None
        ``closed_form(rows, **parameters)``: how much each row moves the metric; None of it for
        parameters without a closed form. Without it, intervals come from the bootstrap.
    no_interval : str
        Why no interval can be relied on, where there is none.
    chance_raises : {"nothing", "draws", "value"}
        For errors that are 0 at best: whether chance alone raises the value of a calibrated
        classifier above 0, or only the values of its bootstrap draws.
    rests_on : {"errors and right answers", "errors", "right answers", "rows"}
        Of what an interval needs at least ten, of both where two are named.
    registered : bool
        Whether the name is a scoring string.
    meaning : str
        What a value says, in a report; "" for metrics that reports do not show.
    """

    name: str
    function: Callable[..., float]
    kernel: Callable[..., float]
    needs: str
    greater_is_better: bool
    range: str = "[0, 1]"
    undefined: str = ALWAYS_DEFINED
    confidence: Literal["any", "unit", "probability"] = "any"
    for_comparison: bool = False
    needs_right: bool = False
    scale_free: bool = True
    best: float | None = None
    row_terms: Callable[..., FloatArray] | None = None
    closed_form: Callable[..., Influence | RankedInfluence | None] | None = None
    no_interval: str = ""
    chance_raises: Literal["nothing", "draws", "value"] = "nothing"
    rests_on: RestsOn = "errors and right answers"
    registered: bool = False
    meaning: str = ""

    @property
    def scorer_name(self) -> str:
        """The name of its scorer, where larger is always better."""
        return self.name if self.greater_is_better else f"neg_{self.name}"

    @property
    def better(self) -> str:
        """Which values are better, in words."""
        if self.best is not None:
            return f"near {self.best:g}"
        return "higher" if self.greater_is_better else "lower"

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The least and the largest value; infinite where the range depends on a parameter."""
        least, most = self.range.strip("[]()").split(", ", 1)
        if most.startswith("max"):
            return float(least), math.inf
        return float(least), float(most)

    @property
    def signed(self) -> bool:
        """Whether 0 is best and the sign tells the direction."""
        return self.best == 0

    @property
    def at_threshold(self) -> bool:
        """Whether the kernel takes a threshold."""
        return "threshold" in self.parameters

    @property
    def worst(self) -> float:
        """What a scorer returns (before the sign) where too little is accepted: never a reward."""
        if not self.at_threshold:
            return math.nan
        least, most = self.limits
        return least if self.greater_is_better else min(most, 1.0)

    @property
    def of_subgroups(self) -> bool:
        """Whether it compares subgroups, so that it needs the subgroup of each row."""
        return "subgroups" in self.parameters

    @property
    def prices_abstention(self) -> bool:
        """Whether it counts abstaining as a cost, so that no scorer replaces its value."""
        return "abstention_cost" in self.parameters

    @property
    def interval(self) -> Literal["closed form", "ranking", "bootstrap"] | None:
        """How its interval is made. "ranking": a closed form that needs the curve alone."""
        if self.no_interval:
            return None
        if self.closed_form is None:
            return "bootstrap"
        ranks = self.confidence == "any" and not self.at_threshold
        return "ranking" if ranks else "closed form"

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters of the kernel, without the rows that it reads."""
        _, parameters = _read_kernel(self.kernel)
        return parameters

    @cached_property
    def notes(self) -> dict[str, str]:
        """The field list of the function's docstring: "Formula", "Use for", "Not for", "Source"."""
        fields = re.findall(r"(?m)^:([A-Z][\w ]+): (.*(?:\n +.*)*)", self.function.__doc__ or "")
        return {name: re.sub(r"\s+", " ", text).strip("`") for name, text in fields}

    def choose_rows(self, rows: ScoredRows) -> ScoredRows:
        """Return the rows with the confidence that it reads: their own, or that of being right.

        At a threshold rows of zeros have none.
        """
        if self.at_threshold:
            return rows.at_threshold
        return rows.by_correctness if self.confidence == "probability" else rows

    def value(self, rows: ScoredRows, parameters: Mapping[str, Any]) -> float:
        """Return the metric of rows with the confidence that it reads."""
        if self.needs == "predictions" and rows.labelled_rows is None:
            raise ValueError(
                f"metrics: {self.name!r} reads classes and their probabilities, which Outcomes do "
                "not hold; pass Predictions.from_proba(y_true, y_proba)."
            )
        source = getattr(self.choose_rows(rows), self.needs)
        return float(self.kernel(source, **parameters))

    def influence(
        self, rows: ScoredRows, parameters: Mapping[str, Any]
    ) -> Influence | RankedInfluence | None:
        """Return how much each row moves it; None where these rows have no closed form."""
        if self.closed_form is None:
            return None
        return self.closed_form(rows, **parameters)

    def as_score(self, value: float) -> float:
        """Return a value of the metric as a score: larger is better."""
        if self.best is not None:
            return -abs(value - self.best)
        return value if self.greater_is_better else -value

    def check_parameters(self, parameters: Mapping[str, Any]) -> None:
        """Refuse parameters that the metric does not have, and a threshold it cannot take."""
        for key in parameters:
            if key not in self.parameters:
                raise ValueError(
                    f"{key}: the metric {self.name!r} has no such parameter; it has "
                    f"{list(self.parameters)}."
                )
        for key, known in self.parameters.items():
            if known.default is inspect.Parameter.empty and key not in parameters:
                raise ValueError(f"{key} is missing: the metric {self.name!r} needs it.")
        if "threshold" in parameters:
            check_threshold(parameters["threshold"])
            if self.confidence == "unit":
                check_cwsa_threshold(parameters["threshold"])
        if "average" in parameters and parameters["average"] is None:
            raise ValueError(
                f"average=None gives one value per class; {self.name!r} must be one number here."
            )


#: The rows of the metrics in each module.
ROWS: dict[str, list[MetricSpec]] = {}


def metric(
    kernel: Callable[..., float],
    better: Literal["higher", "lower"],
    *,
    name: str = "",
    **fields: Any,
) -> Callable[[_Function], _Function]:
    """Make a public function a metric: its kernel, and the row of what is known about it.

    Parameters
    ----------
    kernel : callable
        Its first argument says what it reads, its name what the metric is called.
    better : {"higher", "lower"}
    name : str, default=""
        Where it is not that of the kernel.
    **fields
        Other fields of :class:`MetricSpec`.
    """
    form, _ = _read_kernel(kernel)

    def register(function: _Function) -> _Function:
        public = defaults_of(kernel)(function)
        if options_of(function) in OF_CORRECTNESS:
            fields["confidence"] = "probability"
        spec = MetricSpec(
            name or kernel.__name__, public, kernel, form, better == "higher", **fields
        )
        ROWS.setdefault(function.__module__, []).append(spec)
        return public

    return register
