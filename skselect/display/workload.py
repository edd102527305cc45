"""Hand-overs against the risk target: what a target costs in work."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from skselect._checks.options import check_number, check_threshold
from skselect._checks.rows import check_countable
from skselect._notebook import percent
from skselect._typing import FloatArray
from skselect.curve.curve import RiskCoverageCurve, count_handed_over
from skselect.display.common import (
    COLORS,
    MARK,
    CurveDisplay,
    count_lines,
    legend_name,
    show_percent,
)
from skselect.estimators.scoring import judge_estimator
from skselect.metrics._arguments import CountOptions, share_options
from skselect.thresholds import simultaneous_band

_CURVE = "skselect hand-overs"
_POINTS = 1001


class WorkloadDisplay(CurveDisplay):
    """Cases handed over per 1,000 at each risk target.

    Reading it answers "what does a risk of 2 % cost?". The curve shows, for each target, the
    largest set of rows whose risk on these rows is at most the target. It is an estimate: on new
    rows the risk may be higher, and more so because these very rows chose the threshold.

    Parameters
    ----------
    curve : RiskCoverageCurve
    threshold : float, default=None
        A chosen threshold, whose risk and hand-overs are marked.
    name : str, default=None
        For the legend.
    confidence_level : float in [0.5, 1), default=None
        Also draw the hand-overs with which the risk is at most the target with this confidence,
        for all targets at once (:func:`skselect.thresholds.simultaneous_band`), so that a target
        may be chosen from the picture. It needs errors of 0 or 1, unweighted, of rows that neither
        trained nor calibrated the classifier.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The curve.

    See Also
    --------
    RiskCoverageDisplay : The risk at each coverage.
    skselect.select_threshold : Certifies one target.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, RiskCoverageCurve, WorkloadDisplay
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(.5, 1, 2000)
    >>> outcomes = Outcomes(rng.random(2000) < (1 - confidence) / 4, confidence)
    >>> display = WorkloadDisplay(RiskCoverageCurve.from_outcomes(outcomes), confidence_level=.95)
    >>> x, y = display.plot().line_.get_xydata().T
    >>> bool(np.all(np.diff(y) <= 0))                   # a larger target needs fewer hand-overs
    True
    """

    def __init__(
        self,
        curve: RiskCoverageCurve,
        *,
        threshold: float | None = None,
        name: str | None = None,
        confidence_level: float | None = None,
    ) -> None:
        self.curve = curve
        self.threshold = None if threshold is None else check_threshold(threshold)
        self.name = name
        if confidence_level is not None:
            check_number("confidence_level", confidence_level, 0.5, 1.0, closed="left")
            check_countable(curve)
        self.confidence_level = confidence_level

    @classmethod
    @share_options(CountOptions)
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        threshold: float | None = None,
        name: str | None = None,
        confidence_level: float | None = None,
        ax: Any = None,
        **options: Unpack[CountOptions],
    ) -> WorkloadDisplay:
        """Draw class probabilities; keywords that are not named here are those of the class.

        Parameters
        ----------
        %(data)s
        %(options)s
        """
        curve = RiskCoverageCurve.from_proba(y_true, y_proba, **options)
        return cls(curve, threshold=threshold, name=name, confidence_level=confidence_level).plot(
            ax
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        name: str | None = None,
        confidence_level: float | None = None,
        ax: Any = None,
    ) -> WorkloadDisplay:
        """Draw a fitted estimator, and mark its threshold if it has a single one."""
        found = judge_estimator(estimator, X, y, sample_weight)
        name = type(estimator).__name__ if name is None else name
        return cls(
            found.judged.curve, threshold=found.single_threshold, name=name,
            confidence_level=confidence_level,
        ).plot(ax)  # fmt: skip

    def _draw(self, ax: Any, name: str | None, given: dict[str, Any]) -> None:
        # From the risk of answering every row on, nothing is handed over.
        targets = np.linspace(0.0, min(1.25 * self.curve.mean_loss + 1e-3, 1.0), _POINTS)
        label = None if name is None else legend_name(name)
        color = COLORS[count_lines(ax, _CURVE) % len(COLORS)]
        style = {"color": color, "label": label, "gid": _CURVE} | given
        handed_over = count_handed_over(self.curve, self.curve.selective_risk, targets)
        (self.line_,) = ax.plot(targets, handed_over, drawstyle="steps-post", **style)
        if self.confidence_level is not None:
            self._draw_bound(ax, targets, self.confidence_level)
        if self.threshold is not None:
            self._mark(ax, self.threshold)
        ax.set(xlabel="Risk target: most errors among the cases decided alone",
               ylabel="Cases handed over per 1,000", ylim=(0, 1020))  # fmt: skip
        ax.autoscale(axis="x")  # fit all curves on these axes
        ax.set_xlim(left=0)
        show_percent(ax.xaxis)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(frameon=False)

    def _draw_bound(self, ax: Any, targets: FloatArray, level: float) -> None:
        """Draw the hand-overs that keep the risk within all targets, where any do."""
        surely = count_handed_over(self.curve, simultaneous_band(self.curve, 1.0 - level), targets)
        some = surely < 1000.0
        if not np.any(some):
            return
        ax.plot(targets[some], surely[some], color="0.55", linewidth=1.2, drawstyle="steps-post",
                label=f"with {percent(level, up=False)} confidence")  # fmt: skip

    def _mark(self, ax: Any, threshold: float) -> None:
        blocks = int(self.curve.n_blocks_accepted(np.array([threshold]))[0])
        if blocks == 0:
            ax.scatter([], [], marker="x", color=MARK, label="accepts nothing")
            return
        coverage, risk = self.curve.working_point(blocks)
        per_1000 = 1000.0 * (1.0 - coverage)
        label = f"threshold {threshold:.3g}: {per_1000:,.0f} per 1,000, {100 * risk:.1f} % wrong"
        ax.plot([risk], [per_1000], "o", color=MARK, markersize=8, zorder=3, label=label)
