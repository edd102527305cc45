"""What counts in cells prove about metrics: intervals that hold the exact value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from skselect import _validation as check
from skselect._typing import FloatArray
from skselect.curves import RiskCoverageCurve
from skselect.metrics import SPECS
from skselect.streaming._cells import Parts, bounds_of_areas, widened


class Bounds(NamedTuple):
    """Value, and the interval that holds the exact one."""

    value: float
    low: float
    high: float


def certified_value(
    name: str, parts: Parts, curve: RiskCoverageCurve, parameters: Mapping[str, Any]
) -> Bounds:
    """Return a metric of the rows behind the parts of cells, as far as these tell it."""
    at_threshold = [key for key, spec in SPECS.items() if spec.at_threshold]
    check.check_bounded(name, {*at_threshold, *_BOUNDS})
    if name in at_threshold:
        check.check_given_threshold(name, parameters.get("threshold", 0.5), parts.thresholds)
    value = float(SPECS[name].kernel(curve, **parameters))
    if name not in _BOUNDS:  # only which rows are accepted counts, and that is exact
        return Bounds(value, value, value)
    check.check_bounded_parameters(name, parameters, {"threshold", "normalize", "eps"})
    low, high = _BOUNDS[name](parts, curve, **parameters)
    return Bounds(min(max(value, low), high), low, high)


def _area(name: str) -> Callable[..., tuple[float, float]]:
    def bounds(parts: Parts, _: RiskCoverageCurve) -> tuple[float, float]:
        # Without errors, or without right answers, the curve itself has said nan.
        return bounds_of_areas(parts.right, parts.wrong).get(name, (np.nan, np.nan))

    return bounds


def _eaurc(parts: Parts, curve: RiskCoverageCurve) -> tuple[float, float]:
    low, high = _area("aurc")(parts, curve)
    return widened(low - curve.best_aurc(), high - curve.best_aurc())


def _cw_accuracy(parts: Parts, _: RiskCoverageCurve) -> tuple[float, float]:
    right, wrong, (low, high) = parts.right, parts.wrong, parts.shortfalls

    def share(doubt_right: FloatArray, doubt_wrong: FloatArray, of_nothing: float) -> float:
        of_right = float(np.sum(right * (1.0 - doubt_right)))
        total = of_right + float(np.sum(wrong * (1.0 - doubt_wrong)))
        return of_right / total if total > 0 else of_nothing

    return widened(share(high, low, 0.0), share(low, high, 1.0))


def _csr(parts: Parts, curve: RiskCoverageCurve, eps: float = 1e-8) -> tuple[float, float]:
    used = parts.wrong > 0
    low, high = (np.clip(d[used], eps, 1.0 - eps) for d in parts.shortfalls)
    with np.errstate(divide="ignore"):  # a shortfall of 0 makes it infinite
        least, most = (float(np.sum(parts.wrong[used] / d)) / curve.n_rows for d in (high, low))
    return widened(least, most, most=np.inf)


def _cwsa(sign: float) -> Callable[..., tuple[float, float]]:
    def bounds(
        parts: Parts,
        curve: RiskCoverageCurve,
        threshold: float = 0.5,
        normalize: str = "selected",
    ) -> tuple[float, float]:
        inside = parts.confidences >= threshold
        if not np.any(inside):
            return 0.0, 0.0
        right, wrong = parts.right[inside], parts.wrong[inside]
        low, high = (shortfall[inside] for shortfall in parts.shortfalls)
        norm = float(np.sum(right + wrong)) if normalize == "selected" else curve.n_rows

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
