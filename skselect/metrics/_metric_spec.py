"""What the library knows about one metric."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from skselect import _validation as check


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
    range : str
        The values it can take.
    formula : str
    use, avoid : str
        What it is good for, and when another metric is better.
    reference : str
    undefined : str
        When the metric has no value, and what is returned then.
    at_threshold : bool
        Whether the kernel takes a threshold.
    reads_probability : bool
        Whether the confidence must be a probability of being right.
    scale_free : bool
        Whether multiplying all weights by a constant changes nothing.
    needs_right : bool
        Whether scorers return nan when no answer is right, so as not to reward it.
    signed : bool
        Whether 0 is best and the sign tells the direction; scorers take the absolute value.
    worst : float
        What a scorer returns (before the sign) when it must not reward: nothing accepted,
        or less than `min_coverage`.
    registered : bool
        Whether the name is a scoring string.
    """

    name: str
    function: Callable[..., float]
    kernel: Callable[..., float]
    needs: str
    greater_is_better: bool
    range: str
    formula: str
    use: str
    avoid: str
    reference: str
    undefined: str
    at_threshold: bool = False
    reads_probability: bool = False
    scale_free: bool = True
    needs_right: bool = False
    signed: bool = False
    worst: float = float("nan")
    registered: bool = False

    @property
    def scorer_name(self) -> str:
        """The name of its scorer, where larger is always better."""
        return self.name if self.greater_is_better else f"neg_{self.name}"

    def as_score(self, value: float) -> float:
        """Return a value of the metric as a score: larger is better."""
        value = abs(value) if self.signed else value
        return value if self.greater_is_better else -value


@cache
def _parameters(kernel: Callable[..., float]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(kernel).parameters


def check_parameters(spec: MetricSpec, parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that the metric does not have, and a threshold it cannot take."""
    known = _parameters(spec.kernel)
    own = list(known)[1:]  # the first one is what is scored
    for key in parameters:
        if key not in own:
            raise ValueError(
                f"{key}: the metric {spec.name!r} has no such parameter; it has {own}."
            )
    for key in own:
        if known[key].default is inspect.Parameter.empty and key not in parameters:
            raise ValueError(f"{key} is missing: the metric {spec.name!r} needs it.")
    if "threshold" in parameters:
        check.check_threshold(parameters["threshold"])
        if spec.name in ("cwsa", "cwsa_plus"):
            check.check_cwsa_threshold(parameters["threshold"])
    if "average" in parameters and parameters["average"] is None:
        raise ValueError(
            f"average=None gives one value per class; {spec.name!r} must be one number here."
        )


#: Calibration errors whose differences measure chance where models are nearly calibrated.
_BIASED = ("ece", "smooth_ece", "ecce_mad", "ecce_r", "isotonic_distance")


def check_comparable(spec: MetricSpec, parameters: Mapping[str, Any]) -> None:
    """Refuse what a test of differences cannot judge."""
    if spec.signed:
        raise ValueError(
            f"metric: {spec.name!r} is best at 0 and its sign tells the direction, so differences "
            f"say nothing; test each model with {spec.name}_test."
        )
    if spec.name in _BIASED:
        raise ValueError(
            f"metric: {spec.name!r} is never 0 in a sample, and by how much differs from model to "
            "model; compare 'top_label_brier' or 'debiased_l2', and test each with t_cal_test."
        )
    check_direction(parameters)


def check_direction(parameters: Mapping[str, Any]) -> None:
    """Refuse an area of which more is worse where larger counts as better."""
    along = str(parameters.get("metric", ""))
    if along.endswith("_risk"):
        raise ValueError(
            f"metric={along!r}: more of this area is worse; use 'selective_accuracy' or the metric "
            "'augrc' where models are ranked."
        )
