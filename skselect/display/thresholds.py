"""Metrics against the threshold."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from skselect._checks.options import check_choice
from skselect._checks.rows import check_unit_confidence
from skselect._typing import FloatArray
from skselect.curve.curve import RiskCoverageCurve
from skselect.display.common import (
    COLORS,
    CurveDisplay,
    draw_band,
    draw_threshold,
    legend_name,
    risk_interval,
    show_percent,
)
from skselect.estimators.scoring import judge_estimator
from skselect.metrics._arguments import DoorOptions, share_options

#: What can be drawn, with its colour.
METRICS = {
    "coverage": COLORS[0],
    "selective_accuracy": COLORS[1],
    "cwsa": COLORS[4],
    "cwsa_plus": COLORS[2],
}
_LABELS = {
    "coverage": "coverage",
    "selective_accuracy": "selective accuracy",
    "cwsa": "CWSA",
    "cwsa_plus": "CWSA+",
}
_POINTS = 501
_CURVE = "skselect metric against the threshold"
# With fewer accepted rows than this a mean over them is mostly chance.
_FEW = 30
_PALE = {"alpha": 0.3, "linewidth": 1.0, "label": None}
# One dash pattern per model, one colour per metric.
_DASHES = ("-", "--", ":", "-.")


class ThresholdDisplay(CurveDisplay):
    """Coverage, selective accuracy, CWSA and CWSA+ against the threshold.

    Lines are pale where fewer than 30 rows are accepted: there they are mostly chance.

    Parameters
    ----------
    curve : RiskCoverageCurve
        Of a confidence in [0, 1].
    threshold : float, default=None
        A chosen threshold, marked by a line.
    metrics : list of str, default=None
        Some of "coverage", "selective_accuracy", "cwsa" and "cwsa_plus"; None draws all four.
    name : str, default=None
        Put before the name of each metric in the legend.
    confidence_level : float in (0, 1), default=None
        Draw the exact interval of the selective accuracy at each threshold as a band. It holds
        for a threshold that was fixed beforehand; it needs errors of 0 or 1, unweighted.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of matplotlib Line2D
        By metric.

    References
    ----------
    .. [1] arXiv 2505.18622, figures 1 to 6.

    Examples
    --------
    >>> from skselect import Outcomes, RiskCoverageCurve, ThresholdDisplay
    >>> outcomes = Outcomes(loss=[0, 0, 1, 0, 1], confidence=[.95, .9, .9, .7, .6])
    >>> display = ThresholdDisplay(RiskCoverageCurve.from_outcomes(outcomes), threshold=.65)
    >>> sorted(display.plot().lines_)
    ['coverage', 'cwsa', 'cwsa_plus', 'selective_accuracy']
    """

    def __init__(
        self,
        curve: RiskCoverageCurve,
        *,
        threshold: float | None = None,
        metrics: list[str] | None = None,
        name: str | None = None,
        confidence_level: float | None = None,
    ) -> None:
        self.curve = curve
        self.threshold = threshold
        self.metrics = metrics
        self.name = name
        self.confidence_level = confidence_level

    @classmethod
    @share_options(DoorOptions)
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        threshold: float | None = None,
        metrics: list[str] | None = None,
        name: str | None = None,
        confidence_level: float | None = None,
        ax: Any = None,
        **options: Unpack[DoorOptions],
    ) -> ThresholdDisplay:
        """Draw class probabilities; keywords that are not named here are those of the class.

        Parameters
        ----------
        %(data)s
        %(options)s
        """
        curve = RiskCoverageCurve.from_proba(y_true, y_proba, **options)
        return cls(
            curve, threshold=threshold, metrics=metrics, name=name,
            confidence_level=confidence_level,
        ).plot(ax)  # fmt: skip

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        metrics: list[str] | None = None,
        name: str | None = None,
        confidence_level: float | None = None,
        ax: Any = None,
    ) -> ThresholdDisplay:
        """Draw a fitted estimator, and mark its threshold if it has a single one."""
        found = judge_estimator(estimator, X, y, sample_weight)
        return cls(
            found.judged.curve, threshold=found.single_threshold, metrics=metrics, name=name,
            confidence_level=confidence_level,
        ).plot(ax)  # fmt: skip

    def _draw(self, ax: Any, name: str | None, given: dict[str, Any]) -> None:
        chosen = list(METRICS) if self.metrics is None else list(self.metrics)
        if not chosen:
            raise ValueError("metrics is empty; name at least one, or pass None for all.")
        for metric in chosen:
            check_choice("metrics", metric, METRICS)
        grid = self._grid()
        earlier = [line for line in ax.lines if line.get_gid() == _CURVE]
        left = min([grid[0], *(line.get_xdata()[0] for line in earlier)])
        dashes = _DASHES[len({line.get_linestyle() for line in earlier}) % len(_DASHES)]
        least = int(self.curve.first_reaching(_FEW))
        enough = self.curve.n_blocks_accepted(grid) > least
        self.lines_ = {}
        for metric in chosen:
            label = f"{legend_name(name)}: {_LABELS[metric]}" if name else _LABELS[metric]
            style = {"color": METRICS[metric], "linestyle": dashes} | given
            values = self._values(metric, grid)
            (self.lines_[metric],) = ax.plot(grid, values, **(style | {"gid": _CURVE} | _PALE))
            firm = enough | (metric == "coverage")  # of all rows, so that it is never a mean of few
            ax.plot(grid, np.where(firm, values, np.nan), **({"label": label} | style))
        if self.confidence_level is not None and "selective_accuracy" in chosen:
            self._draw_band(ax, grid, self.confidence_level)
        draw_threshold(ax, self.threshold)
        ax.set(xlabel="Threshold: least confidence that is accepted", ylabel="Value",
               xlim=(left, 1.0))  # fmt: skip
        show_percent(ax.yaxis)
        note = f"pale: fewer than {_FEW} accepted rows"
        if not np.all(enough) and note not in ax.get_legend_handles_labels()[1]:
            ax.plot([], [], color="0.7", linewidth=1.0, label=note)
        ax.legend(frameon=False)

    def _draw_band(self, ax: Any, grid: FloatArray, level: float) -> None:
        """Draw the exact interval of the selective accuracy at each threshold."""
        accepted = self.curve.accepted_at(grid)
        points = {"accepted_loss": accepted.loss, "accepted_weight": accepted.weight}
        low, high = risk_interval(self.curve, points, level)
        some = accepted.weight > 0
        draw_band(ax, grid[some], 1.0 - high[some], 1.0 - low[some],
                  self.lines_["selective_accuracy"].get_color())  # fmt: skip

    def _grid(self) -> FloatArray:
        """Return thresholds from just below the least confidence up to just below 1."""
        ends = [self.curve.threshold_at(entry) for entry in (0, len(self.curve) - 1)]
        check_unit_confidence(np.array(ends), "ThresholdDisplay")
        lowest = min(ends[1], 0.99)
        if self.threshold is not None and 0 <= self.threshold < lowest:
            lowest = float(self.threshold)
        return np.linspace(max(lowest - 0.02, 0.0), 1.0, _POINTS)[:-1]

    def _values(self, metric: str, grid: FloatArray) -> FloatArray:
        """Return the metric at each threshold, nan where nothing is accepted."""
        accepted = self.curve.accepted_at(grid)
        some = accepted.weight > 0
        if metric in ("cwsa", "cwsa_plus"):
            values = self.curve.cwsa(grid) if metric == "cwsa" else self.curve.cwsa_plus(grid)
            return np.where(some, values, np.nan)
        if metric == "coverage":
            return accepted.weight / self.curve.total_weight
        risk = np.full(len(grid), np.nan)
        np.divide(accepted.loss, accepted.weight, out=risk, where=some)
        return 1.0 - risk
