"""Risk against coverage, and what is certified about it."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from skselect._checks.options import check_choice, check_threshold
from skselect.curve.curve import RiskCoverageCurve
from skselect.display.common import (
    COLORS,
    MARK,
    MAX_POINTS,
    CurveDisplay,
    count_lines,
    draw_band,
    draw_target,
    legend_name,
    risk_interval,
    show_percent,
    thin,
)
from skselect.estimators.scoring import judge_estimator
from skselect.metrics._arguments import DoorOptions, share_options
from skselect.objectives import Loss, Risk
from skselect.policy.certificate import Certificate
from skselect.selection.results import GroupedSelection, ThresholdSelection
from skselect.thresholds import simultaneous_band

_CURVE = "skselect risk-coverage curve"


class RiskCoverageDisplay(CurveDisplay):
    """Risk-coverage curve: the selective risk at every coverage.

    Parameters
    ----------
    curve : RiskCoverageCurve
    name : str, default=None
        For the legend.
    threshold : float, default=None
        A chosen threshold, marked on the curve.
    target : float, default=None
        A risk target, drawn as a line.
    certificate : Certificate, default=None
        What it promises is drawn as a line from the chosen threshold to the limit: the largest
        risk at this coverage, or the smallest coverage. The line is dotted if the limit is not
        certified.
    band : array-like of shape (B,), default=None
        An upper bound on the risk for every entry of the curve, such as
        :func:`skselect.thresholds.simultaneous_band`; drawn as steps. With a certificate of the
        risk, coverages that are too small to be certified are shaded.
    confidence_level : float in (0, 1), default=None
        Draw the exact interval of the risk at each threshold as a band. It holds for a threshold
        that was fixed beforehand, not for all at once; it needs errors of 0 or 1, unweighted.
    loss : {"zero_one", "cost", "graded"}, default="zero_one"
        What the losses of the curve are: errors, costs (as shares of `unit`), or other losses.
    unit : float, default=1
        The largest cost. The target is in the units of cost, and so are the risks drawn.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The curve.

    Examples
    --------
    >>> from skselect import Outcomes, RiskCoverageCurve, RiskCoverageDisplay
    >>> outcomes = Outcomes(loss=[0, 0, 1, 0, 1], confidence=[.95, .9, .9, .7, .6])
    >>> display = RiskCoverageDisplay(RiskCoverageCurve.from_outcomes(outcomes), threshold=.65)
    >>> display.plot().line_.get_xydata().shape
    (4, 2)
    """

    def __init__(
        self,
        curve: RiskCoverageCurve,
        *,
        name: str | None = None,
        threshold: float | None = None,
        target: float | None = None,
        certificate: Certificate | None = None,
        band: Any = None,
        confidence_level: float | None = None,
        loss: str = "zero_one",
        unit: float = 1.0,
    ) -> None:
        self.curve = curve
        self.name = name
        self.threshold = None if threshold is None else check_threshold(threshold)
        self.target = target
        self.certificate = certificate
        self.band = band
        self.confidence_level = confidence_level
        self.loss = check_choice("loss", loss, ["zero_one", "cost", "graded"])
        self.unit = unit

    @classmethod
    def from_selection(
        cls,
        selection: ThresholdSelection | GroupedSelection,
        *,
        name: str | None = None,
        band: bool = False,
        ax: Any = None,
    ) -> RiskCoverageDisplay:
        """Draw the rows that chose a threshold, the target, and what is promised.

        Parameters
        ----------
        selection : ThresholdSelection
            From :func:`select_threshold`, or ``selection_`` of a :class:`ThresholdTuner`.
        name : str, default=None
            For the legend.
        band : bool, default=False
            Draw the bound that holds for all thresholds at once as well, where errors are counted.
            It is wider than what is promised about the chosen one.
        ax : matplotlib Axes, default=None

        Returns
        -------
        RiskCoverageDisplay

        Examples
        --------
        >>> import numpy as np
        >>> from skselect import Outcomes, RiskCoverageDisplay, select_threshold
        >>> rng = np.random.default_rng(0)
        >>> confidence = rng.uniform(.5, 1, 2000)
        >>> outcomes = Outcomes(rng.random(2000) < (1 - confidence) / 4, confidence)
        >>> selection = select_threshold(outcomes, objective="risk", target=.05)
        >>> display = RiskCoverageDisplay.from_selection(selection)
        >>> display.ax_.get_legend_handles_labels()[1][:2]
        ['target 5 %', 'certified: at most 5 %']
        """
        if isinstance(selection, GroupedSelection):
            first = next(iter(selection.selections))
            raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
                f"selection has one threshold per {selection.by}; draw one of them, such as "
                f"selection.selections[{first!r}]."
            )
        curve, goal = selection.curve, selection.goal
        countable = curve.counted and not curve.is_graded
        bounds = simultaneous_band(curve, goal.level) if band and countable else None
        target = goal.own_target if isinstance(goal.objective, Risk) else None
        return cls(
            curve,
            name=name,
            threshold=selection.threshold,
            target=target,
            certificate=selection.certificate,
            band=bounds,
            loss=goal.loss.kind,
            unit=goal.loss.unit,
        ).plot(ax)

    @classmethod
    @share_options(DoorOptions)
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        name: str | None = None,
        threshold: float | None = None,
        target: float | None = None,
        confidence_level: float | None = None,
        ax: Any = None,
        **options: Unpack[DoorOptions],
    ) -> RiskCoverageDisplay:
        """Draw the curve of class probabilities; other keywords are those of the class.

        Parameters
        ----------
        %(data)s
        %(options)s
        """
        curve = RiskCoverageCurve.from_proba(y_true, y_proba, **options)
        return cls(
            curve, name=name, threshold=threshold, target=target,
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
        name: str | None = None,
        target: float | None = None,
        confidence_level: float | None = None,
        ax: Any = None,
    ) -> RiskCoverageDisplay:
        """Draw the curve of a fitted estimator, and mark its threshold if it has a single one."""
        found = judge_estimator(estimator, X, y, sample_weight)
        name = type(estimator).__name__ if name is None else name
        return cls(
            found.judged.curve, name=name, threshold=found.single_threshold, target=target,
            confidence_level=confidence_level,
        ).plot(ax)  # fmt: skip

    def _draw(self, ax: Any, name: str | None, given: dict[str, Any]) -> None:
        points = self.curve.arrays(
            "coverage", "selective_risk", "accepted_loss", "accepted_weight", max_points=MAX_POINTS
        )
        label = None if name is None else legend_name(name)
        color = COLORS[count_lines(ax, _CURVE) % len(COLORS)]
        style = {"color": color, "label": label, "gid": _CURVE} | given
        (self.line_,) = ax.plot(points["coverage"], self.unit * points["selective_risk"], **style)
        if self.confidence_level is not None:
            low, high = risk_interval(self.curve, points, self.confidence_level)
            low, high = self.unit * low, self.unit * high
            draw_band(ax, points["coverage"], low, high, self.line_.get_color())
            ax.update_datalim([(1.0, high[-1])])
        draw_target(ax, self.target, self.loss)
        if self.band is not None:
            self._draw_band(ax)
        if self.certificate is not None and self.certificate.n_accepted:
            self._draw_promise(ax, self.certificate)
        if self.threshold is not None:
            self._mark(ax, self.threshold)
        loss = Loss(self.loss, self.unit)
        risk = "Selective risk: errors among accepted cases"
        if not loss.is_error:
            risk = f"Mean {'cost' if loss.is_cost else 'loss'} of accepted cases"
        ax.set(xlabel="Coverage: share of accepted cases", ylabel=risk, xlim=(0, 1.02))
        ax.autoscale(axis="y")  # fit all curves on these axes
        ax.set_ylim(bottom=0)
        show_percent(*(ax.xaxis, ax.yaxis) if loss.is_error else (ax.xaxis,))
        if ax.get_legend_handles_labels()[0]:
            ax.legend(frameon=False)

    def _draw_band(self, ax: Any) -> None:
        """Draw the bound for all thresholds at once, where there is one."""
        known = np.asarray(self.band) < 1.0
        if not np.any(known):
            return
        x, y = thin(self.curve.coverage[known], np.asarray(self.band)[known])
        ax.plot(x, self.unit * y, color="0.55", linewidth=1.2, drawstyle="steps-pre",
                label="bound for all thresholds at once")  # fmt: skip
        certificate = self.certificate
        if certificate is None or not certificate.kind.is_selective:
            return
        least = max(certificate.rows_needed / certificate.n, certificate.min_coverage)
        ax.axvspan(0, min(least, 1.0), color="0.86", zorder=0, linewidth=0,
                   label=f"too few to certify {certificate.bound}")  # fmt: skip

    def _draw_promise(self, ax: Any, certificate: Certificate) -> None:
        """Draw a line from the risk and the coverage of these rows to the promised limit."""
        x, y, target = certificate.coverage, certificate.risk, certificate.target
        bound, kind = certificate.bound, certificate.kind
        limit, text = (x, target / x), f"at most {bound} over all cases"
        if kind.is_selective:
            limit, text = (x, target), f"at most {bound}"
        elif kind.is_least:
            limit, text = (target, y), f"coverage at least {bound}"
        sure = certificate.is_certified
        word = f"{'' if sure else 'not '}certified"
        ax.plot([x, limit[0]], [y, limit[1]], color=MARK, linewidth=2, markevery=[1],
                linestyle="-" if sure else ":", marker="|" if limit[1] == y else "_",
                label=f"{word}: {text}")  # fmt: skip

    def _mark(self, ax: Any, threshold: float) -> None:
        accepted = self.curve.accepted_at(np.array([threshold]))
        weight, loss = float(accepted.weight[0]), float(accepted.loss[0])
        if weight == 0:
            ax.scatter([], [], marker="x", color=MARK, label="accepts nothing")
            return
        x, y = weight / self.curve.total_weight, self.unit * (loss / weight)
        found = f"{100 * y:.1f} % wrong" if Loss(self.loss).is_error else f"mean {y:.3g}"
        ax.plot([x], [y], "o", color=MARK, markersize=8, zorder=3,
                label=f"threshold {threshold:.3g}: accepts {100 * x:.0f} %, {found}")  # fmt: skip
