"""Metrics of outcomes, for papers that state them as sums over rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skselect import Outcomes, RiskCoverageCurve
from skselect.metrics import SPECS


def of_rows(kernel: str | Callable[..., float]) -> Callable[..., float]:
    """Return a metric, by name or as a function of a curve, as a function of outcomes.

    It takes their curve as well, which several metrics of the same rows share.
    """
    of_curve = SPECS[kernel].kernel if isinstance(kernel, str) else kernel

    def metric(rows: Outcomes | RiskCoverageCurve, *rest: Any) -> float:
        if isinstance(rows, Outcomes):
            rows = RiskCoverageCurve.from_outcomes(rows)
        return of_curve(rows, *rest)

    return metric
