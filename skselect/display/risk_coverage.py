"""Risk against coverage, what is certified about it, and what a risk target costs in deferrals."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from skselect._lib.arrays import ROUNDING, FloatArray
from skselect._lib.checks.options import check_choice, check_number, check_review, check_threshold
from skselect._lib.checks.rows import check_countable
from skselect._lib.keywords import CountOptions
from skselect._lib.notebook import percent, rounded
from skselect.curve.curve import RiskCoverageCurve, count_deferred
from skselect.display import common
from skselect.objectives import Loss, Risk
from skselect.policy.certificate import Certificate
from skselect.selection.results import GroupedSelection, ThresholdSelection
from skselect.thresholds import simultaneous_band

# The look of bounds for all thresholds or targets at once.
_BOUND = {"color": "0.55", "linewidth": 1.2}
# Targets at which the workload is drawn.
_TARGETS = 1001
# A sentence in the legend has lines of so many characters.
_LEGEND = 46


@dataclass(eq=False, repr=False)
class RiskCoverageDisplay(common.CurveDisplay):
    """Risk-coverage curve: the selective risk at every coverage.

    It starts at 30 accepted rows, where there are more: with fewer the risk is mostly chance.

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
        What it guarantees is drawn as a line from the chosen threshold to the limit: the largest
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

    _options: ClassVar = {"threshold": None, "target": None, "confidence_level": None}

    curve: RiskCoverageCurve
    _: KW_ONLY
    name: str | None = None
    threshold: float | None = None
    target: float | None = None
    certificate: Certificate | None = None
    band: Any = None
    confidence_level: float | None = None
    loss: str = "zero_one"
    unit: float = 1.0

    def __post_init__(self) -> None:
        if self.threshold is not None:
            self.threshold = check_threshold(self.threshold)
        check_choice("loss", self.loss, ["zero_one", "cost", "graded"])

    @classmethod
    def from_selection(
        cls,
        selection: ThresholdSelection | GroupedSelection,
        *,
        name: str | None = None,
        band: bool = False,
        ax: Any = None,
    ) -> Self:
        """Draw the rows that chose a threshold, the target, and what is guaranteed.

        Parameters
        ----------
        selection : ThresholdSelection
            From :func:`select_threshold`, or ``selection_`` of a :class:`ThresholdTuner`.
        name : str, default=None
            For the legend.
        band : bool, default=False
            Draw the bound that holds for all thresholds at once as well, where errors are counted.
            It is wider than what is guaranteed about the chosen one.
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
            first_subgroup = next(iter(selection.selections))
            raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
                f"selection has one threshold per {selection.by}; draw one of them, such as "
                f"selection.selections[{first_subgroup!r}]."
            )
        if not isinstance(selection, ThresholdSelection):
            raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
                "selection must be what select_threshold returns, or tuner.selection_, got "
                f"{type(selection).__name__}."
            )
        curve = selection.curve
        objective = selection.objective
        bounds = None
        if band and curve.counted and not curve.is_graded:
            bounds = simultaneous_band(curve, objective.level)
        return cls(
            curve,
            name=name,
            threshold=selection.threshold,
            target=objective.target if isinstance(objective, Risk) else None,
            certificate=selection.certificate,
            band=bounds,
            loss=objective.about.kind,
            unit=objective.about.unit,
        ).plot(ax)

    def _draw(self, ax: Any, name: str | None, look: dict[str, Any]) -> None:
        points = self.curve.arrays(
            "coverage",
            "selective_risk",
            "accepted_loss",
            "accepted_weight",
            max_points=common.MAX_POINTS,
        )
        n_few = np.count_nonzero(points["accepted_weight"] < common.FEW)
        if n_few < len(points["coverage"]):
            points = {array: values[n_few:] for array, values in points.items()}
        coverage = points["coverage"]
        style = self._style(ax, name, look)
        (self.line_,) = ax.plot(coverage, self.unit * points["selective_risk"], **style)
        if self.confidence_level is not None:
            low, high = common.risk_interval(self.curve, points, self.confidence_level)
            color = self.line_.get_color()
            common.draw_band(ax, coverage, self.unit * low, self.unit * high, color)
            ax.update_datalim([(1.0, self.unit * high[-1])])
        common.draw_target(ax, self.target, self.loss)
        if self.band is not None:
            self._draw_band(ax)
        certificate = self.certificate
        # The curve does not count the errors of a reviewer.
        if certificate is not None and certificate.n_accepted and not certificate.reviewer:
            self._draw_guarantee(ax, certificate)
        _mark_threshold(ax, self.curve, self.threshold, self._describe)
        self._label_axes(ax)

    def _label_axes(self, ax: Any) -> None:
        """Name the axes, and fit them to all curves."""
        loss = Loss(self.loss, self.unit)
        risk = "Selective risk: errors\namong accepted cases"
        if not loss.is_error:
            noun = "cost" if loss.is_cost else "loss"
            risk = f"Mean {noun}\nof accepted cases"
        ax.set(xlabel="Coverage: share of accepted cases", ylabel=risk, xlim=(0, 1.02))
        ax.autoscale(axis="y")
        ax.set_ylim(bottom=0)
        common.show_percent(ax.xaxis)
        if loss.is_error:
            common.show_percent(ax.yaxis)

    def _draw_band(self, ax: Any) -> None:
        """Draw the bound for all thresholds at once, where there is one."""
        band = np.asarray(self.band)
        is_bounded = band < 1.0
        if not np.any(is_bounded):
            return
        x, y = common.thin(self.curve.coverage[is_bounded], band[is_bounded])
        label = "bound for all thresholds at once"
        ax.plot(x, self.unit * y, drawstyle="steps-pre", label=label, **_BOUND)
        certificate = self.certificate
        if certificate is not None and certificate.as_objective.is_selective:
            share_needed = certificate.rows_needed / certificate.n
            least = min(max(share_needed, certificate.min_coverage), 1.0)
            label = f"too few to certify {certificate.bound}"
            ax.axvspan(0, least, color="0.86", zorder=0, linewidth=0, label=label)

    def _draw_guarantee(self, ax: Any, certificate: Certificate) -> None:
        """Draw a line from the risk and the coverage of these rows to the guaranteed limit."""
        coverage = certificate.coverage
        risk = certificate.risk
        bound = certificate.bound
        objective = certificate.as_objective
        if objective.is_least:
            limit = (certificate.target, risk)
            text = f"coverage at least {bound}"
        elif objective.is_selective:
            limit = (coverage, certificate.target)
            text = f"at most {bound}"
        else:
            limit = (coverage, certificate.target / coverage)
            text = f"at most {bound} over all cases"
        largest_coverage, largest_risk = limit
        style = {"color": common.MARK, "linewidth": 2, "markevery": [1]}
        style["marker"] = "|" if largest_risk == risk else "_"
        style["linestyle"] = "-" if certificate.is_certified else ":"
        word = "certified" if certificate.is_certified else "not certified"
        x = [coverage, largest_coverage]
        ax.plot(x, [risk, largest_risk], label=f"{word}: {text}", **style)

    def _describe(self, coverage: float, risk: float) -> tuple[float, float, str]:
        """Return the place of a threshold, and what it does."""
        loss = self.unit * risk
        text = f"mean {loss:.3g}"
        if Loss(self.loss).is_error:
            text = f"{100 * loss:.1f} % wrong"
        return coverage, loss, f"accepts {100 * coverage:.0f} %, {text}"


@dataclass(eq=False, repr=False)
class WorkloadDisplay(common.CurveDisplay):
    """Cases deferred per 1,000 at each risk target.

    Reading it answers "what does a risk of 2 % cost?". The curve shows, for each target, the
    largest set of rows whose risk on these rows is at most the target. It is an estimate: on new
    rows the risk may be higher, and more so because these very rows chose the threshold.

    Parameters
    ----------
    curve : RiskCoverageCurve
    threshold : float, default=None
        A chosen threshold, whose risk and deferrals are marked.
    name : str, default=None
        For the legend.
    confidence_level : float in [0.5, 1), default=None
        Also draw the deferrals with which the risk is at most the target with this confidence,
        for all targets at once (:func:`skselect.thresholds.simultaneous_band`), so that a target
        may be chosen from the picture. It needs errors of 0 or 1, unweighted, of rows that neither
        trained nor calibrated the classifier.
    deferred_error : float in [0, 1], default=None
        The share of the deferred cases that a reviewer gets wrong. The risk is then that of machine
        and reviewer together, over all cases.
    minutes : float above 0, default=None
        What a reviewer needs for a case: a second axis shows the hours per 1,000 cases. Displays
        on the same axes share it, and must have the same `minutes` and `hourly_cost`.
    hourly_cost : float above 0, default=None
        With `minutes`: the second axis shows the cost of these hours instead.
    hours, cases : float above 0, default=None
        With `minutes`: the hours that reviewers have, and how many cases come in that time. A line
        shows what they can review, and the legend says which share must be answered automatically,
        and at which risk.

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
    >>> from skselect import Outcomes, RiskCoverageCurve
    >>> from skselect.display import WorkloadDisplay
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(.5, 1, 2000)
    >>> outcomes = Outcomes(rng.random(2000) < (1 - confidence) / 4, confidence)
    >>> display = WorkloadDisplay(RiskCoverageCurve.from_outcomes(outcomes), confidence_level=.95)
    >>> x, y = display.plot().line_.get_xydata().T
    >>> bool(np.all(np.diff(y) <= 0))                   # a larger target needs fewer deferrals
    True
    """

    _options: ClassVar = dict.fromkeys(
        ["threshold", "confidence_level", "deferred_error",
         "minutes", "hourly_cost", "hours", "cases"]
    )  # fmt: skip
    _reads: ClassVar = CountOptions

    curve: RiskCoverageCurve
    _: KW_ONLY
    threshold: float | None = None
    name: str | None = None
    confidence_level: float | None = None
    deferred_error: float | None = None
    minutes: float | None = None
    hourly_cost: float | None = None
    hours: float | None = None
    cases: float | None = None

    def __post_init__(self) -> None:
        if self.threshold is not None:
            self.threshold = check_threshold(self.threshold)
        if self.confidence_level is not None:
            check_number("confidence_level", self.confidence_level, 0.5, 1.0, closed="left")
            check_countable(self.curve)
        if self.deferred_error is not None:
            check_number("deferred_error", self.deferred_error, 0.0, 1.0)
            if self.confidence_level is not None:
                raise ValueError(
                    "confidence_level bounds the machine's risk alone; leave it out beside "
                    "deferred_error, and certify one target with SystemRisk."
                )
        check_review({name: value for name, value in vars(self).items() if value is not None})

    def _draw(self, ax: Any, name: str | None, look: dict[str, Any]) -> None:
        if self.minutes is not None:
            self._draw_hours(ax, self.minutes / 60.0)
        # From the risk of answering every row on, nothing is deferred.
        largest = min(1.25 * self.curve.mean_loss + 1e-3, 1.0)
        targets = np.linspace(0.0, largest, _TARGETS)
        style = self._style(ax, name, look)
        error = self.deferred_error
        risk = self.curve.selective_risk
        wrong = "answers"
        if error is not None:
            risk = self.curve.generalized_risk + error * (1.0 - self.curve.coverage)
            wrong = "cases,\nreviewer included"
        deferred = count_deferred(self.curve, risk, targets)
        (self.line_,) = ax.plot(targets, deferred, drawstyle="steps-post", **style)
        if self.confidence_level is not None:
            self._draw_bound(ax, targets, self.confidence_level)
        _mark_threshold(ax, self.curve, self.threshold, partial(_describe_work, error))
        if self.hours is not None:
            share, plan = plan_hours(self.curve, vars(self), error)
            label = textwrap.fill(plan, _LEGEND)
            ax.axhline(1000.0 * share, label=label, color=style["color"], linestyle=":")
        ax.set(xlabel=f"Risk target: share of wrong {wrong}", ylabel="Deferred per 1,000")
        ax.set_ylim(0, 1020)
        ax.autoscale(axis="x")  # fit all curves on these axes
        ax.set_xlim(left=0)
        common.show_percent(ax.xaxis)
        ax.yaxis.set_major_formatter("{x:,.0f}")

    def _draw_hours(self, ax: Any, hours: float) -> None:
        """Add an axis with the hours of review, or what they cost; `hours` are those of a case."""
        unit = hours * (self.hourly_cost or 1.0)
        noun = "Hours" if self.hourly_cost is None else "Cost"
        title = f"{noun} of review per 1,000"
        label = f"{self._kind} {title} {unit}"
        labels = [str(child.get_label()) for child in ax.child_axes]
        if label in labels:
            return  # another model has drawn it
        if any(other.startswith(self._kind) for other in labels):
            raise ValueError(
                "minutes and hourly_cost must be those of the first display on the same axes, "
                "whose second axis they share; draw this one on axes of its own."
            )
        scale = (lambda n_cases: unit * n_cases, lambda work: work / unit)
        axis = ax.secondary_yaxis("right", functions=scale)
        axis.set_label(label)
        axis.set_ylabel(title)
        axis.yaxis.set_major_formatter("{x:,.4g}" if unit < 1.0 else "{x:,.0f}")

    def _draw_bound(self, ax: Any, targets: FloatArray, level: float) -> None:
        """Draw the deferrals that keep the risk within all targets, where any do."""
        band = simultaneous_band(self.curve, 1.0 - level)
        deferred = count_deferred(self.curve, band, targets)
        is_bounded = deferred < 1000.0
        if not np.any(is_bounded):
            return
        x = targets[is_bounded]
        label = f"with {percent(level, up=False)} confidence"
        ax.plot(x, deferred[is_bounded], drawstyle="steps-post", label=label, **_BOUND)


def plan_hours(
    curve: RiskCoverageCurve,
    work: Mapping[str, Any],
    error: float | None,
    certified: float | None = None,
) -> tuple[float, str]:
    """Return which share of the cases the hours of review take, and what that leaves to do.

    `work` holds hours, minutes (of a case) and cases by name. `error` is the share of the deferred
    cases that the reviewer gets wrong, `certified` the share that a certified policy answers.
    """
    cases = work["cases"]
    hours = work["hours"]
    n_taken = int(min(60.0 * hours / work["minutes"] * (1.0 + ROUNDING), cases))
    plan = f"{hours:,.10g} hours are enough for {n_taken:,} of {cases:,.10g} cases"
    if n_taken == cases:
        return 1.0, f"{plan}, so none must be answered automatically."
    share = 1.0 - n_taken / cases
    n_blocks = 1 + int(np.searchsorted(curve.coverage[:-1], share - ROUNDING))
    coverage, risk = curve.working_point(n_blocks)
    show = partial(rounded, digits=3)
    plan += f", so {show(100.0 * share, up=True)} % must be answered automatically. "
    plan += f"The risk there is {show(100.0 * risk)} % (estimate)"
    if error is not None:
        together = coverage * risk + error * (1.0 - coverage)
        plan += f"; with the reviewer {show(100.0 * together)} % of all cases are wrong"
    if certified is not None:
        plan += f"; the certificate allows {show(100.0 * certified, up=False)} %"
    return n_taken / cases, f"{plan}."


def _describe_work(
    deferred_error: float | None, coverage: float, risk: float
) -> tuple[float, float, str]:
    """Return the place of a threshold, and what it does."""
    deferred = 1000.0 * (1.0 - coverage)
    if deferred_error is None:
        return risk, deferred, f"{deferred:,.0f} per 1,000, {100 * risk:.1f} % wrong"
    together = coverage * risk + deferred_error * (1.0 - coverage)
    return together, deferred, f"{deferred:,.0f} per 1,000, {100 * together:.1f} % wrong in all"


def _mark_threshold(
    ax: Any,
    curve: RiskCoverageCurve,
    threshold: float | None,
    describe: Callable[[float, float], tuple[float, float, str]],
) -> None:
    """Mark what a threshold does: its coverage and risk are described as a place and in words."""
    if threshold is None:
        return
    n_blocks = curve.n_blocks_accepted(np.array([threshold])).item()
    if n_blocks == 0:  # only the legend says so
        ax.scatter([], [], marker="x", color=common.MARK, label="accepts nothing")
        return
    coverage, risk = curve.working_point(n_blocks)
    x, y, text = describe(coverage, risk)
    label = f"threshold {threshold:.3g}: {text}"
    ax.plot([x], [y], "o", color=common.MARK, markersize=8, zorder=3, label=label)
