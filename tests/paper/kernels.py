"""Metrics of outcomes, for papers that state them as sums over rows."""

from __future__ import annotations

from collections.abc import Callable

from skselect import RiskCoverageCurve
from skselect.metrics import SPECS


def of_rows(kernel: str | Callable[..., float]) -> Callable[..., float]:
    """Return a metric, by name or as a function of a curve, as a function of outcomes."""
    of_curve = SPECS[kernel].kernel if isinstance(kernel, str) else kernel
    return lambda rows, *rest: of_curve(RiskCoverageCurve.from_outcomes(rows), *rest)
