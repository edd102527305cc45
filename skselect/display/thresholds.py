"""Metrics against the threshold, and the confidence of right and of wrong answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from skselect._lib.arrays import BoolArray, FloatArray
from skselect._lib.checks.options import check_choice, check_count
from skselect._lib.checks.rows import check_unit_confidence
from skselect.curve.curve import RiskCoverageCurve
from skselect.display import common
from skselect.display.common import new_figure
from skselect.display.fit import fit_texts
from skselect.metrics._rows import ScoredRows
from skselect.predictions.outcomes import Outcomes

#: What can be drawn: how the legend calls it, and its colour.
METRICS = {
    "coverage": ("coverage", common.COLORS[0]),
    "selective_accuracy": ("selective accuracy", common.COLORS[1]),
    "cwsa": ("CWSA", common.COLORS[4]),
    "cwsa_plus": ("CWSA+", common.COLORS[2]),
}
_POINTS = 501
_PALE = {"alpha": 0.3, "linewidth": 1.0, "label": None}
# One dash pattern per model, one colour per metric.
_DASHES = ("-", "--", ":", "-.")


@dataclass(eq=False, repr=False)
class ThresholdDisplay(common.CurveDisplay):
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
    >>> from skselect import Outcomes, RiskCoverageCurve
    >>> from skselect.display import ThresholdDisplay
    >>> outcomes = Outcomes(loss=[0, 0, 1, 0, 1], confidence=[.95, .9, .9, .7, .6])
    >>> display = ThresholdDisplay(RiskCoverageCurve.from_outcomes(outcomes), threshold=.65)
    >>> sorted(display.plot().lines_)
    ['coverage', 'cwsa', 'cwsa_plus', 'selective_accuracy']
    """

    _options: ClassVar = {"threshold": None, "metrics": None, "confidence_level": None}
    _names_estimator: ClassVar = False

    curve: RiskCoverageCurve
    _: KW_ONLY
    threshold: float | None = None
    metrics: list[str] | None = None
    name: str | None = None
    confidence_level: float | None = None

    def _draw(self, ax: Any, name: str | None, look: dict[str, Any]) -> None:
        metrics = list(METRICS) if self.metrics is None else list(self.metrics)
        if not metrics:
            raise ValueError("metrics is empty; name at least one, or pass None for all.")
        for metric in metrics:
            check_choice("metrics", metric, METRICS)
        grid = self._grid()
        earlier = self._lines(ax)
        left = min([grid[0], *(line.get_xdata()[0] for line in earlier)])
        linestyles = {line.get_linestyle() for line in earlier}
        look = {"linestyle": _DASHES[len(linestyles) % len(_DASHES)]} | look
        n_few = int(self.curve.first_reaching(common.FEW))
        is_firm = self.curve.n_blocks_accepted(grid) > n_few
        prefix = f"{name}: " if name else ""
        self.lines_ = {
            metric: self._draw_metric(ax, metric, grid, is_firm, prefix, look) for metric in metrics
        }
        if self.confidence_level is not None and "selective_accuracy" in metrics:
            self._draw_band(ax, grid, self.confidence_level)
        _draw_threshold(ax, self.threshold)
        ax.set(xlabel="Threshold: least accepted confidence", ylabel="Per cent", xlim=(left, 1.0))
        common.show_percent(ax.yaxis)
        if not np.all(is_firm):
            _explain_pale(ax)

    def _draw_metric(
        self,
        ax: Any,
        metric: str,
        grid: FloatArray,
        is_firm: BoolArray,
        prefix: str,
        look: dict[str, Any],
    ) -> Any:
        """Draw a metric, pale where few rows are accepted; return the pale line."""
        label, color = METRICS[metric]
        style = {"color": color} | look
        values = self._values(metric, grid)
        (pale_line,) = ax.plot(grid, values, **(style | {"gid": self._kind} | _PALE))
        if metric != "coverage":  # which is of all rows, so that it is never a mean of few
            values = np.where(is_firm, values, np.nan)
        ax.plot(grid, values, **({"label": common.legend_name(prefix + label)} | style))
        return pale_line

    def _draw_band(self, ax: Any, grid: FloatArray, level: float) -> None:
        """Draw the exact interval of the selective accuracy at each threshold."""
        accepted = self.curve.accepted_at(grid)
        points = {"accepted_loss": accepted.loss, "accepted_weight": accepted.weight}
        low, high = common.risk_interval(self.curve, points, level)
        is_used = accepted.weight > 0
        color = self.lines_["selective_accuracy"].get_color()
        lowest = 1.0 - high[is_used]
        highest = 1.0 - low[is_used]
        common.draw_band(ax, grid[is_used], lowest, highest, color)

    def _grid(self) -> FloatArray:
        """Return thresholds from just below the least confidence up to just below 1."""
        ends = self.curve.thresholds[[0, -1]]
        check_unit_confidence(np.array(ends), "ThresholdDisplay")
        lowest = min(ends[1], 0.99)
        if self.threshold is not None and 0 <= self.threshold < lowest:
            lowest = float(self.threshold)
        return np.linspace(max(lowest - 0.02, 0.0), 1.0, _POINTS)[:-1]

    def _values(self, metric: str, grid: FloatArray) -> FloatArray:
        """Return the metric at each threshold, nan where nothing is accepted."""
        accepted = self.curve.accepted_at(grid)
        if metric == "coverage":
            return accepted.weight / self.curve.total_weight
        is_used = accepted.weight > 0
        if metric == "selective_accuracy":
            weight = np.where(is_used, accepted.weight, 1.0)
            values = 1.0 - accepted.loss / weight
        else:
            values = self.curve.cwsa_at(grid, plus=metric == "cwsa_plus")
        return np.where(is_used, values, np.nan)


@dataclass(eq=False, repr=False)
class ConfidenceHistogramDisplay(common.RowsDisplay):
    """Two histograms of the confidence: right answers above the axis, wrong ones below it.

    Each bar is a share of its own kind, so that few wrong answers are seen as well as many right
    ones; the legend counts both. The less sure the wrong answers are, the more abstention helps.

    Parameters
    ----------
    edges : array-like of shape (m + 1,)
        Edges of the bins.
    right, wrong : array-like of shape (m,)
        Weight of right and of wrong answers in each bin; a graded loss is shared between them.
    name : str, default=None
        For the title.
    threshold : float, default=None
        A chosen threshold, marked by a line.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : dict of matplotlib StepPatch
        "right" and "wrong".

    See Also
    --------
    RiskCoverageDisplay : Shows how much abstention helps, for several models.

    Examples
    --------
    >>> from skselect.display import ConfidenceHistogramDisplay
    >>> y_proba = [[.95, .05], [.1, .9], [.2, .8], [.7, .3], [.55, .45]]
    >>> display = ConfidenceHistogramDisplay.from_predictions([0, 1, 1, 0, 1], y_proba, n_bins=5)
    >>> display.right, display.wrong
    (array([0., 1., 1., 1., 1.]), array([1., 0., 0., 0., 0.]))
    """

    _options: ClassVar = {"n_bins": 30, "threshold": None}

    edges: Any
    right: Any
    wrong: Any
    _: KW_ONLY
    name: str | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        self.edges = np.asarray(self.edges, dtype=np.float64)
        self.right = np.asarray(self.right, dtype=np.float64)
        self.wrong = np.asarray(self.wrong, dtype=np.float64)

    @classmethod
    def _draw_rows(cls, rows: ScoredRows, **options: Any) -> Self:
        return cls.from_outcomes(rows.outcomes, **options)

    @classmethod
    def from_outcomes(
        cls,
        outcomes: Outcomes,
        *,
        n_bins: int = 30,
        name: str | None = None,
        threshold: float | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw outcomes."""
        check_count("n_bins", n_bins)
        confidence = outcomes.confidence
        loss = outcomes.loss
        weight = outcomes.sample_weight
        if weight is None:
            weight = np.ones(len(loss))
        low = float(np.min(confidence))
        high = float(np.max(confidence))
        if not math.isfinite(high - low):
            raise ValueError(
                f"confidence: from {low:g} to {high:g} is too wide a range to draw; rescale it."
            )
        if low >= 0:
            high = max(high, 1.0)  # named confidences end at 1
        if high <= low:
            high = low + 1.0
        edges = np.linspace(low, high, n_bins + 1)
        wrong, _ = np.histogram(confidence, edges, weights=weight * loss)
        right, _ = np.histogram(confidence, edges, weights=weight * (1.0 - loss))
        return cls(edges, right, wrong, name=name, threshold=threshold).plot(ax)

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        right_kwargs: Mapping[str, Any] | None = None,
        wrong_kwargs: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.
        name : str, default=None
            For the title.
        right_kwargs, wrong_kwargs : mapping, default=None
            For the two parts (``Axes.stairs``).

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        if ax is None:
            ax = new_figure()
        if name is None:
            name = self.name
        self.bars_ = {
            "right": self._draw("right", ax, self.right, common.COLORS[0], right_kwargs),
            "wrong": self._draw("wrong", ax, -self.wrong, common.COLORS[4], wrong_kwargs),
        }
        ax.axhline(0.0, color="0.45", linewidth=0.8)
        _draw_threshold(ax, self.threshold)
        ax.set(xlabel="Confidence", ylabel="Right answers (up),\nwrong ones (down)")
        common.show_percent(ax.yaxis)
        if name:
            ax.set_title(common.legend_name(name))
        ax.legend(frameon=False, loc="upper left")
        fit_texts(ax)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _draw(
        self, kind: str, ax: Any, counts: FloatArray, color: str, look: Mapping[str, Any] | None
    ) -> Any:
        """Draw the shares of one kind of answers, downwards if the counts are negative."""
        total = abs(float(np.sum(counts)))
        n_decimals = 0 if total == round(total) else 1
        label = f"{kind}: {total:,.{n_decimals}f}"
        style = {"color": color, "label": label, "fill": True, "linewidth": 0}
        shares = counts / (total or 1.0)
        return ax.stairs(shares, self.edges, **(style | common.full_names(look)))


def _explain_pale(ax: Any) -> None:
    """Say in the legend what pale lines are, once for all curves."""
    label = f"pale: fewer than {common.FEW} accepted rows"
    _, labels = ax.get_legend_handles_labels()
    if label not in labels:
        ax.plot([], [], color="0.7", linewidth=1.0, label=label)


def _draw_threshold(ax: Any, threshold: float | None) -> None:
    """Mark a chosen threshold by a line, if it is finite."""
    if threshold is None or not np.isfinite(threshold):
        return
    label = f"threshold {threshold:.3g}"
    ax.axvline(threshold, color=common.MARK, linestyle="--", linewidth=1, label=label)
