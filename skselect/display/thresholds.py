"""Metrics against the threshold, and the confidence of right and of wrong answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from skselect._lib.arrays import FloatArray
from skselect._lib.checks.options import check_choice, check_count
from skselect._lib.checks.rows import check_unit_confidence
from skselect.curve.curve import RiskCoverageCurve
from skselect.display import common
from skselect.display.common import new_figure
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

    def _draw(self, ax: Any, name: str | None, given: dict[str, Any]) -> None:
        chosen = list(METRICS) if self.metrics is None else list(self.metrics)
        if not chosen:
            raise ValueError("metrics is empty; name at least one, or pass None for all.")
        for metric in chosen:
            check_choice("metrics", metric, METRICS)
        grid = self._grid()
        earlier = self._lines(ax)
        left = min([grid[0], *(line.get_xdata()[0] for line in earlier)])
        dashes = _DASHES[len({line.get_linestyle() for line in earlier}) % len(_DASHES)]
        least = int(self.curve.first_reaching(common.FEW))
        enough = self.curve.n_blocks_accepted(grid) > least
        self.lines_ = {}
        for metric in chosen:
            shown, color = METRICS[metric]
            label = f"{common.legend_name(name)}: {shown}" if name else shown
            style = {"color": color, "linestyle": dashes} | given
            values = self._values(metric, grid)
            (self.lines_[metric],) = ax.plot(grid, values, **(style | {"gid": self._kind} | _PALE))
            firm = enough | (metric == "coverage")  # of all rows, so that it is never a mean of few
            ax.plot(grid, np.where(firm, values, np.nan), **({"label": label} | style))
        if self.confidence_level is not None and "selective_accuracy" in chosen:
            self._draw_band(ax, grid, self.confidence_level)
        _draw_threshold(ax, self.threshold)
        ax.set(
            xlabel="Threshold: least accepted confidence",
            ylabel="Per cent",
            xlim=(left, 1.0),
        )
        common.show_percent(ax.yaxis)
        note = f"pale: fewer than {common.FEW} accepted rows"
        if not np.all(enough) and note not in ax.get_legend_handles_labels()[1]:
            ax.plot([], [], color="0.7", linewidth=1.0, label=note)

    def _draw_band(self, ax: Any, grid: FloatArray, level: float) -> None:
        """Draw the exact interval of the selective accuracy at each threshold."""
        accepted = self.curve.accepted_at(grid)
        points = {"accepted_loss": accepted.loss, "accepted_weight": accepted.weight}
        low, high = common.risk_interval(self.curve, points, level)
        some = accepted.weight > 0
        color = self.lines_["selective_accuracy"].get_color()
        common.draw_band(ax, grid[some], 1.0 - high[some], 1.0 - low[some], color)

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
        some = accepted.weight > 0
        if metric in ("cwsa", "cwsa_plus"):
            return np.where(some, self.curve.cwsa_at(grid, plus=metric == "cwsa_plus"), np.nan)
        if metric == "coverage":
            return accepted.weight / self.curve.total_weight
        return 1.0 - np.where(some, accepted.loss / np.where(some, accepted.weight, 1.0), np.nan)


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
        self.edges, self.right, self.wrong = (
            np.asarray(values, dtype=np.float64) for values in (self.edges, self.right, self.wrong)
        )

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
        c, loss = outcomes.confidence, outcomes.loss
        weight = np.ones(len(c)) if outcomes.sample_weight is None else outcomes.sample_weight
        low, high = float(np.min(c)), float(np.max(c))
        if not math.isfinite(high - low):
            raise ValueError(
                f"confidence: from {low:g} to {high:g} is too wide a range to draw; rescale it."
            )
        high = max(high, 1.0) if low >= 0 else high  # named confidences end at 1
        edges = np.linspace(low, high if high > low else low + 1.0, n_bins + 1)
        wrong = np.histogram(c, edges, weights=weight * loss)[0]
        right = np.histogram(c, edges, weights=weight * (1.0 - loss))[0]
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
        ax = new_figure() if ax is None else ax
        self.bars_ = {
            "right": self._draw(ax, self.right, 1.0, "right", common.COLORS[0], right_kwargs),
            "wrong": self._draw(ax, self.wrong, -1.0, "wrong", common.COLORS[4], wrong_kwargs),
        }
        ax.axhline(0.0, color="0.45", linewidth=0.8)
        _draw_threshold(ax, self.threshold)
        ax.set(xlabel="Confidence", ylabel="Right answers (up),\nwrong ones (down)")
        common.show_percent(ax.yaxis)
        name = self.name if name is None else name
        if name:
            ax.set_title(common.legend_name(name))
        ax.legend(frameon=False, loc="upper left")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(
        self, ax: Any, counts: FloatArray, way: float, what: str, color: str,
        given: Mapping[str, Any] | None,
    ) -> Any:  # fmt: skip
        """Draw the shares of one kind up or down."""
        total = float(np.sum(counts))
        label = f"{what}: {total:,.{0 if total == round(total) else 1}f}"
        style = {"color": color, "label": label, "fill": True, "linewidth": 0}
        return ax.stairs(
            way * counts / (total or 1.0), self.edges, **(style | common.full_names(given))
        )


def _draw_threshold(ax: Any, threshold: float | None) -> None:
    """Mark a chosen threshold by a line, if it is finite."""
    if threshold is not None and np.isfinite(threshold):
        ax.axvline(
            threshold,
            color=common.MARK,
            linestyle="--",
            linewidth=1,
            label=f"threshold {threshold:.3g}",
        )
