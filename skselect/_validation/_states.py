"""States of a streaming evaluation: what may be counted, merged, asked and unpickled."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from skselect._typing import FloatArray


def refuse_exact_thresholds(mode: str, thresholds: Any) -> None:
    """Refuse thresholds where every one is exact."""
    if thresholds is not None and mode == "exact":
        raise ValueError("thresholds goes with mode='certified'; every one is exact in 'exact'.")


def check_is_kind(other: Any, kind: type) -> None:
    """Refuse to merge what is of another kind."""
    if not isinstance(other, kind):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f"merge takes other {kind.__name__}, got {type(other).__name__}."
        )


def check_mergeable(traits: Mapping[str, tuple[Any, Any]]) -> None:
    """Refuse to merge states that differ in a trait: name -> (own, of the other)."""
    for name, (own, theirs) in traits.items():
        if own != theirs:
            raise ValueError(f"merge: the states differ in {name}: {own!r} and {theirs!r}.")


def check_has_rows(n: int) -> None:
    """Refuse a state that has counted nothing."""
    if n == 0:
        raise ValueError("This state has counted no rows yet; call update first.")


def check_counts_probability(metrics: list[str], confidence: Any) -> None:
    """Refuse metrics that read the probability of being right where it was not counted."""
    if metrics and isinstance(confidence, str) and confidence != "max_proba":
        raise ValueError(
            f"metrics: {metrics[0]!r} reads the probability of being right, but this state counts "
            f"confidence={confidence!r}; feed another with confidence='max_proba'."
        )


def check_state_version(version: Any, known: int) -> None:
    """Refuse a state that another version pickled."""
    if version != known:
        raise ValueError(
            f"This SelectiveState was pickled in version {version!r}, and this skselect reads "
            f"version {known}; carry counts over with to_arrays() and from_counts(), with the mode "
            "and the thresholds of the state."
        )


def check_bounded(metric: str, bounded: Collection[str]) -> None:
    """Refuse a metric that counts in cells do not bound."""
    if metric not in bounded:
        raise ValueError(
            f"metrics: {metric!r} cannot be bounded from cells; mode='certified' knows "
            f"{sorted(bounded)}. Use mode='exact'."
        )


def check_bounded_parameters(
    metric: str, parameters: Mapping[str, Any], bounded: Collection[str]
) -> None:
    """Refuse parameters with which counts in cells do not bound a metric."""
    unknown = sorted(set(parameters) - set(bounded))
    if unknown:
        raise ValueError(
            f"metrics: {metric!r} has bounds only without {unknown}; use mode='exact'."
        )


def check_given_threshold(metric: str, threshold: float, given: FloatArray) -> None:
    """Refuse a threshold that parts a cell and was not given beforehand."""
    if threshold > 0 and threshold not in given:
        raise ValueError(
            f"metrics: {metric!r} at threshold {threshold:g} is exact only for thresholds given "
            f"beforehand, here {given.tolist()}; build the state with "
            f"SelectiveState('certified', thresholds=[{threshold:g}])."
        )
