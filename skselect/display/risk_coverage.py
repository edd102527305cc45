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
            first = next(iter(selection.selections))
            raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
                f"selection has one threshold per {selection.by}; draw one of them, such as "
                f"selection.selections[{first!r}]."
            )
        if not isinstance(selection, ThresholdSelection):
            raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
                "selection must be what select_threshold returns, or tuner.selection_, got "
                f"{type(selection).__name__}."
            )
        curve, objective = selection.curve, selection.objective
        countable = curve.counted and not curve.is_graded
        bounds = simultaneous_band(curve, objective.level) if band and countable else None
        target = objective.target if isinstance(objective, Risk) else None
        return cls(
            curve,
            name=name,
            threshold=selection.threshold,
            target=target,
            certificate=selection.certificate,
            band=bounds,
            loss=objective.about.kind,
            unit=objective.about.unit,
        ).plot(ax)

    def _draw(self, ax: Any, name: str | None, given: dict[str, Any]) -> None:
        points = self.curve.arrays(
            "coverage",
            "selective_risk",
            "accepted_loss",
            "accepted_weight",
            max_points=common.MAX_POINTS,
        )
        if (n_few := int(np.sum(points["accepted_weight"] < common.FEW))) < len(points["coverage"]):
            points = {of: values[n_few:] for of, values in points.items()}
        style = self._style(ax, None if name is None else common.legend_name(name), given)
        (self.line_,) = ax.plot(points["coverage"], self.unit * points["selective_risk"], **style)
        if self.confidence_level is not None:
            low, high = common.risk_interval(self.curve, points, self.confidence_level)
            low, high = self.unit * low, self.unit * high
            common.draw_band(ax, points["coverage"], low, high, self.line_.get_color())
            ax.update_datalim([(1.0, high[-1])])
        common.draw_target(ax, self.target, self.loss)
        if self.band is not None:
            self._draw_band(ax)
        made, loss = self.certificate, Loss(self.loss, self.unit)
        if made is not None and made.n_accepted and not made.reviewer:  # whose errors it lacks
            self._draw_guarantee(ax, made)
        _mark_threshold(ax, self.curve, self.threshold, self._describe)
        risk = "Selective risk: errors\namong accepted cases"
        if not loss.is_error:
            risk = f"Mean {'cost' if loss.is_cost else 'loss'}\nof accepted cases"
        ax.set(xlabel="Coverage: share of accepted cases", ylabel=risk, xlim=(0, 1.02))
        ax.autoscale(axis="y")  # fit all curves on these axes
        ax.set_ylim(bottom=0)
        common.show_percent(*(ax.xaxis, ax.yaxis) if loss.is_error else (ax.xaxis,))

    def _draw_band(self, ax: Any) -> None:
        """Draw the bound for all thresholds at once, where there is one."""
        band = np.asarray(self.band)
        known = band < 1.0
        if not np.any(known):
            return
        x, y = common.thin(self.curve.coverage[known], band[known])
        label = "bound for all thresholds at once"
        ax.plot(x, self.unit * y, drawstyle="steps-pre", label=label, **_BOUND)
        made = self.certificate
        if made is not None and made.as_objective.is_selective:
            least = min(max(made.rows_needed / made.n, made.min_coverage), 1.0)
            label = f"too few to certify {made.bound}"
            ax.axvspan(0, least, color="0.86", zorder=0, linewidth=0, label=label)

    def _draw_guarantee(self, ax: Any, certificate: Certificate) -> None:
        """Draw a line from the risk and the coverage of these rows to the guaranteed limit."""
        x, y, target = certificate.coverage, certificate.risk, certificate.target
        bound, stated = certificate.bound, certificate.as_objective
        limit, text = (x, target / x), f"at most {bound} over all cases"
        if stated.is_selective:
            limit, text = (x, target), f"at most {bound}"
        elif stated.is_least:
            limit, text = (target, y), f"coverage at least {bound}"
        sure = certificate.is_certified
        word = f"{'' if sure else 'not '}certified"
        ends = {"marker": "|" if limit[1] == y else "_", "markevery": [1]}
        style = {"color": common.MARK, "linewidth": 2, "linestyle": "-" if sure else ":"}
        ax.plot([x, limit[0]], [y, limit[1]], label=f"{word}: {text}", **ends, **style)

    def _describe(self, coverage: float, risk: float) -> tuple[float, float, str]:
        """Return the place of a threshold, and what it does."""
        y = self.unit * risk
        found = f"{100 * y:.1f} % wrong" if Loss(self.loss).is_error else f"mean {y:.3g}"
        return coverage, y, f"accepts {100 * coverage:.0f} %, {found}"


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

    def _draw(self, ax: Any, name: str | None, given: dict[str, Any]) -> None:
        if self.minutes is not None:
            self._draw_hours(ax, self.minutes / 60.0)
        # From the risk of answering every row on, nothing is deferred.
        targets = np.linspace(0.0, min(1.25 * self.curve.mean_loss + 1e-3, 1.0), _TARGETS)
        style = self._style(ax, None if name is None else common.legend_name(name), given)
        error, risk = self.deferred_error, self.curve.selective_risk
        if error is not None:
            risk = self.curve.generalized_risk + error * (1.0 - self.curve.coverage)
        deferred = count_deferred(self.curve, risk, targets)
        (self.line_,) = ax.plot(targets, deferred, drawstyle="steps-post", **style)
        if self.confidence_level is not None:
            self._draw_bound(ax, targets, self.confidence_level)
        _mark_threshold(ax, self.curve, self.threshold, partial(_describe_work, error))
        if self.hours is not None:
            share, said = plan_hours(self.curve, vars(self), error)
            look = {"color": style["color"], "linestyle": ":"}
            ax.axhline(1000.0 * share, label=textwrap.fill(said, _LEGEND), **look)
        about = "answers" if error is None else "cases,\nreviewer included"
        ax.set(
            xlabel=f"Risk target: share of wrong {about}",
            ylabel="Deferred per 1,000",
            ylim=(0, 1020),
        )
        ax.autoscale(axis="x")  # fit all curves on these axes
        ax.set_xlim(left=0)
        common.show_percent(ax.xaxis)
        ax.yaxis.set_major_formatter("{x:,.0f}")

    def _draw_hours(self, ax: Any, hours: float) -> None:
        """Add an axis with the hours of review, or what they cost; `hours` are those of a case."""
        unit = hours * (self.hourly_cost or 1.0)
        scale = (lambda cases: unit * cases, lambda shown: shown / unit)
        what = f"{'Hours' if self.hourly_cost is None else 'Cost'} of review per 1,000"
        own, drawn = f"{self._kind} {what} {unit}", [one.get_label() for one in ax.child_axes]
        if own in drawn:
            return  # another model has drawn it
        if any(str(one).startswith(self._kind) for one in drawn):
            raise ValueError(
                "minutes and hourly_cost must be those of the first display on the same axes, "
                "whose second axis they share; draw this one on axes of its own."
            )
        axis = ax.secondary_yaxis("right", functions=scale)
        axis.set_label(own)
        axis.set_ylabel(what)
        axis.yaxis.set_major_formatter("{x:,.4g}" if unit < 1.0 else "{x:,.0f}")

    def _draw_bound(self, ax: Any, targets: FloatArray, level: float) -> None:
        """Draw the deferrals that keep the risk within all targets, where any do."""
        surely = count_deferred(self.curve, simultaneous_band(self.curve, 1.0 - level), targets)
        some = surely < 1000.0
        if not np.any(some):
            return
        label = f"with {percent(level, up=False)} confidence"
        ax.plot(targets[some], surely[some], drawstyle="steps-post", label=label, **_BOUND)


def plan_hours(
    curve: RiskCoverageCurve, work: Mapping[str, Any], error: float | None,
    certified: float | None = None,
) -> tuple[float, str]:  # fmt: skip
    """Return which share of the cases the hours of review take, and what that leaves to do.

    `work` holds hours, minutes (of a case) and cases by name. `error` is the share of the deferred
    cases that the reviewer gets wrong, `certified` the share that a certified policy answers.
    """
    show, cases, hours = partial(rounded, digits=3), work["cases"], work["hours"]
    n_taken = int(min(60.0 * hours / work["minutes"] * (1.0 + ROUNDING), cases))
    told = f"{hours:,.10g} hours are enough for {n_taken:,} of {cases:,.10g} cases"
    if n_taken == cases:
        return 1.0, f"{told}, so none must be answered automatically."
    share = 1.0 - n_taken / cases
    n_blocks = 1 + int(np.searchsorted(curve.coverage[:-1], share - ROUNDING))
    coverage, risk = curve.working_point(n_blocks)
    told += f", so {show(100.0 * share, up=True)} % must be answered automatically. The risk "
    told += f"there is {show(100.0 * risk)} % (estimate)"
    if error is not None:
        together = coverage * risk + error * (1.0 - coverage)
        told += f"; with the reviewer {show(100.0 * together)} % of all cases are wrong"
    if certified is not None:
        told += f"; the certificate allows {show(100.0 * certified, up=False)} %"
    return n_taken / cases, f"{told}."


def _describe_work(
    deferred_error: float | None, coverage: float, risk: float
) -> tuple[float, float, str]:
    """Return the place of a threshold, and what it does."""
    deferred, who = 1000.0 * (1.0 - coverage), ""
    if deferred_error is not None:
        risk, who = coverage * risk + deferred_error * (1.0 - coverage), " in all"
    return risk, deferred, f"{deferred:,.0f} per 1,000, {100 * risk:.1f} % wrong{who}"


def _mark_threshold(
    ax: Any,
    curve: RiskCoverageCurve,
    threshold: float | None,
    describe: Callable[[float, float], tuple[float, float, str]],
) -> None:
    """Mark what a threshold does: its coverage and risk are described as a place and in words."""
    if threshold is None:
        return
    n_blocks = int(curve.n_blocks_accepted(np.array([threshold]))[0])
    if n_blocks == 0:  # only the legend says so
        ax.scatter([], [], marker="x", color=common.MARK, label="accepts nothing")
        return
    x, y, said = describe(*curve.working_point(n_blocks))
    label = f"threshold {threshold:.3g}: {said}"
    ax.plot([x], [y], "o", color=common.MARK, markersize=8, zorder=3, label=label)
