"""What counts in cells prove about metrics: intervals that hold the exact value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from skselect import _validation as check
from skselect._typing import FloatArray
from skselect.curves import RiskCoverageCurve
from skselect.metrics import SPECS
from skselect.streaming._cells import CellCounts, bounds_of_areas, widened

#: Metrics that only read which rows a threshold accepts: exact at a given threshold.
_AT_THRESHOLD = (
    "coverage", "selective_accuracy", "selective_risk", "generalized_risk", "selective_cost",
)  # fmt: skip


class Bounds(NamedTuple):
    """Value, and the interval that holds the exact one."""

    value: float
    low: float
    high: float


def certified_value(
    name: str, counts: CellCounts, curve: RiskCoverageCurve, parameters: Mapping[str, Any]
) -> Bounds:
    """Return a metric of the rows behind the cells, as far as their counts tell it."""
    if name in _AT_THRESHOLD or name in ("cwsa", "cwsa_plus"):
        _check_threshold(name, counts, parameters.get("threshold", 0.5))
    value = float(SPECS[name].kernel(curve, **parameters))
    if name in _AT_THRESHOLD:
        return Bounds(value, value, value)
    if name not in _BOUNDS:
        raise ValueError(
            f"metrics: {name!r} cannot be bounded from cells; mode='certified' knows "
            f"{sorted((*_AT_THRESHOLD, *_BOUNDS))}. Use mode='exact'."
        )
    unknown = set(parameters) - {"threshold", "normalize", "eps"}
    if unknown:
        raise ValueError(
            f"metrics: {name!r} has bounds only without {sorted(unknown)}; use mode='exact'."
        )
    low, high = _BOUNDS[name](counts, curve, **parameters)
    return Bounds(min(max(value, low), high), low, high)


def _check_threshold(name: str, counts: CellCounts, threshold: float) -> None:
    if threshold > 0 and threshold not in counts.thresholds:
        raise ValueError(
            f"metrics: {name!r} at threshold {threshold:g} is exact only for thresholds given "
            f"beforehand, here {counts.thresholds.tolist()}; build the state with "
            f"SelectiveState('certified', thresholds=[{threshold:g}])."
        )


def _area(name: str) -> Callable[..., tuple[float, float]]:
    def bounds(counts: CellCounts, _: RiskCoverageCurve) -> tuple[float, float]:
        right, wrong = counts.parts()[1:3]
        # Without errors, or without right answers, the curve itself has said nan.
        return bounds_of_areas(right, wrong).get(name, (np.nan, np.nan))

    return bounds


def _eaurc(counts: CellCounts, curve: RiskCoverageCurve) -> tuple[float, float]:
    low, high = _area("aurc")(counts, curve)
    return widened(low - curve.best_aurc(), high - curve.best_aurc())


def _sums(counts: CellCounts) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    _, right, wrong, _ = counts.parts()
    low, high = counts.shortfalls()
    return right.astype(np.float64), wrong.astype(np.float64), low, high


def _cw_accuracy(counts: CellCounts, _: RiskCoverageCurve) -> tuple[float, float]:
    right, wrong, low, high = _sums(counts)

    def share(doubt_right: FloatArray, doubt_wrong: FloatArray, of_nothing: float) -> float:
        of_right = float(np.sum(right * (1.0 - doubt_right)))
        total = of_right + float(np.sum(wrong * (1.0 - doubt_wrong)))
        return of_right / total if total > 0 else of_nothing

    return widened(share(high, low, 0.0), share(low, high, 1.0))


def _csr(counts: CellCounts, curve: RiskCoverageCurve, eps: float = 1e-8) -> tuple[float, float]:
    check.check_eps(eps, zero=True)
    _, wrong, low, high = _sums(counts)
    used = wrong > 0
    with np.errstate(divide="ignore"):  # a shortfall of 0 makes it infinite
        least, most = (
            float(np.sum(wrong[used] / np.clip(d[used], eps, 1.0 - eps))) / curve.n_rows
            for d in (high, low)
        )
    return widened(least, most, most=np.inf)


def _cwsa(sign: float) -> Callable[..., tuple[float, float]]:
    def bounds(
        counts: CellCounts,
        curve: RiskCoverageCurve,
        threshold: float = 0.5,
        normalize: str = "selected",
    ) -> tuple[float, float]:
        right, wrong, low, high = _sums(counts)
        inside = counts.confidences() >= threshold
        norm = float(np.sum((right + wrong)[inside])) if normalize == "selected" else curve.n_rows
        if not np.any(inside):
            return 0.0, 0.0
        right, wrong, low, high = (part[inside] for part in (right, wrong, low, high))

        def total(doubt_right: FloatArray, doubt_wrong: FloatArray) -> float:
            gain = right * (1.0 - doubt_right / (1.0 - threshold))
            lost = wrong * (1.0 - doubt_wrong / (1.0 - threshold))
            return float(np.sum(gain) + sign * np.sum(lost)) / norm

        return widened(total(high, low), total(low, high), least=min(sign, 0.0))

    return bounds


_BOUNDS: dict[str, Callable[..., tuple[float, float]]] = {
    "aurc": _area("aurc"),
    "augrc": _area("augrc"),
    "failure_auroc": _area("failure_auroc"),
    "eaurc": _eaurc,
    "cw_accuracy": _cw_accuracy,
    "csr": _csr,
    "cwsa": _cwsa(-1.0),
    "cwsa_plus": _cwsa(0.0),
}
