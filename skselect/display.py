"""Pictures. matplotlib is imported inside `plot` only."""

from __future__ import annotations

from typing import Any

import numpy as np

from skselect._typing import ConfidenceSpec, LossSpec
from skselect.curves import RiskCoverageCurve
from skselect.metrics import evaluate
from skselect.metrics._reliability import reliability
from skselect.outcomes import Outcomes
from skselect.scoring import answers_of

# Okabe and Ito's colours: distinct for colour-blind readers and in print.
_COLORS = ("#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARK = "#D55E00"
_CURVE = "skselect risk-coverage curve"
_RELIABILITY = "skselect reliability curve"
# More points than a screen has pixels add nothing.
_MAX_POINTS = 2000


class RiskCoverageDisplay:
    """Risk-coverage curve: how often it errs among the rows it answers.

    Parameters
    ----------
    curve : RiskCoverageCurve
    name : str, default=None
        For the legend.
    threshold : float, default=None
        A chosen threshold, marked on the curve.
    target : float, default=None
        A risk target, drawn as a line.

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
    ) -> None:
        self.curve = curve
        self.name = name
        self.threshold = threshold
        self.target = target

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        labels: Any = None,
        pos_label: Any = None,
        confidence: ConfidenceSpec | None = None,
        loss: LossSpec = "zero_one",
        sample_weight: Any = None,
        name: str | None = None,
        threshold: float | None = None,
        target: float | None = None,
        ax: Any = None,
    ) -> RiskCoverageDisplay:
        """Draw the curve of class probabilities; arguments as in the metrics."""
        outcomes = Outcomes.from_proba(
            y_true, y_proba, labels=labels, pos_label=pos_label, confidence=confidence,
            loss=loss, sample_weight=sample_weight,
        )  # fmt: skip
        curve = RiskCoverageCurve.from_outcomes(outcomes)
        return cls(curve, name=name, threshold=threshold, target=target).plot(ax)

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
        ax: Any = None,
    ) -> RiskCoverageDisplay:
        """Draw the curve of a fitted estimator; an abstaining one has its threshold marked."""
        answers = answers_of(estimator, X, y, sample_weight)
        threshold = None if answers.threshold is None else float(answers.threshold[0])
        curve = answers.own.curve
        name = type(estimator).__name__ if name is None else name
        return cls(curve, name=name, threshold=threshold, target=target).plot(ax)

    def plot(
        self, ax: Any = None, *, name: str | None = None, **line_kwargs: Any
    ) -> RiskCoverageDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.
        name : str, default=None
            For the legend.
        **line_kwargs
            For the curve's line.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = _axes(ax)
        coverage, risk = _thinned(self.curve.coverage, self.curve.selective_risk)
        label = self.name if name is None else name
        drawn = sum(line.get_gid() == _CURVE for line in ax.lines)
        style = {"color": _COLORS[drawn % len(_COLORS)], "label": label, "gid": _CURVE}
        (self.line_,) = ax.plot(coverage, risk, **(style | _spelled_out(line_kwargs)))
        if self.target is not None:
            ax.axhline(self.target, color="0.35", linestyle="--", linewidth=1,
                       label=f"target {100 * self.target:g} %")  # fmt: skip
        if self.threshold is not None:
            self._mark(ax, self.threshold)
        ax.set(xlabel="Coverage: share of cases it answers",
               ylabel="Selective risk: errors among them", xlim=(0, 1.02))  # fmt: skip
        ax.autoscale(axis="y")  # earlier curves count too
        ax.set_ylim(bottom=0)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(_percent)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _mark(self, ax: Any, threshold: float) -> None:
        blocks = int(self.curve.n_blocks_accepted(np.array([threshold]))[0])
        if blocks == 0:
            return
        x, y = self.curve.coverage[blocks - 1], self.curve.selective_risk[blocks - 1]
        ax.plot([x], [y], "o", color=_MARK, markersize=8, zorder=3,
                label=f"threshold {threshold:.3g}: answers {100 * x:.0f} %, "
                      f"{100 * y:.1f} % wrong")  # fmt: skip


class ReliabilityDisplay:
    """Reliability diagram: how often it is right at each confidence.

    Points below the diagonal are overconfident: at confidence .9 it is right less often than
    in nine cases of ten.

    Parameters
    ----------
    curve : DataFrame
        From :func:`skselect.metrics.reliability_curve`.
    name : str, default=None
        For the legend.
    error : float, default=None
        A calibration error, for the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The points.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skselect import ReliabilityDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GaussianNB().fit(X[:300], y[:300])
    >>> display = ReliabilityDisplay.from_estimator(model, X[300:], y[300:], n_bins=5)
    >>> display.curve.round(3)
       confidence  accuracy    low   high  share
    0       0.963     0.852  0.729  0.934  0.201
    1       1.000     0.981  0.901  1.000  0.201
    2       1.000     1.000  0.934  1.000  0.201
    3       1.000     1.000  0.966  1.000  0.398
    """

    def __init__(self, curve: Any, *, name: str | None = None, error: float | None = None) -> None:
        self.curve = curve
        self.name = name
        self.error = error

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        n_bins: int = 15,
        strategy: str = "quantile",
        labels: Any = None,
        pos_label: Any = None,
        confidence: ConfidenceSpec | None = None,
        loss: LossSpec = "zero_one",
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Draw class probabilities; arguments as in the metrics."""
        outcomes = Outcomes.from_proba(
            y_true, y_proba, labels=labels, pos_label=pos_label, confidence=confidence,
            loss=loss, sample_weight=sample_weight,
        )  # fmt: skip
        return cls._of(outcomes, n_bins, strategy, name).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int = 15,
        strategy: str = "quantile",
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Draw a fitted estimator: the chance of being right that it claims."""
        outcomes = answers_of(estimator, X, y, sample_weight).honest.outcomes
        name = type(estimator).__name__ if name is None else name
        return cls._of(outcomes, n_bins, strategy, name).plot(ax)

    @classmethod
    def _of(
        cls, outcomes: Outcomes, n_bins: int, strategy: str, name: str | None
    ) -> ReliabilityDisplay:
        error = float(evaluate(outcomes, ["smooth_ece"])["smooth_ece"])
        return cls(reliability(outcomes, n_bins, strategy), name=name, error=error)

    def plot(
        self, ax: Any = None, *, name: str | None = None, **line_kwargs: Any
    ) -> ReliabilityDisplay:
        """Draw the points with their intervals, and the diagonal.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.
        name : str, default=None
            For the legend.
        **line_kwargs
            For the points.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = _axes(ax)
        curve, label = self.curve, self.name if name is None else name
        if self.error is not None:
            label = f"{label or 'classifier'}: smooth ECE {self.error:.3f}"
        drawn = sum(line.get_gid() == _RELIABILITY for line in ax.lines)
        if not drawn:
            ax.axline((0, 0), slope=1, color="0.6", linewidth=1, zorder=0)
        style = {
            "color": _COLORS[drawn % len(_COLORS)], "marker": "o", "markersize": 4,
            "label": label, "gid": _RELIABILITY,
        }  # fmt: skip
        (self.line_,) = ax.plot(
            curve["confidence"], curve["accuracy"], **(style | _spelled_out(line_kwargs))
        )
        color = self.line_.get_color()
        ax.vlines(curve["confidence"], curve["low"], curve["high"], color=color, alpha=0.35)
        lowest = float(curve[["confidence", "accuracy", "low"]].min(axis=None))
        bottom = min(lowest - 0.02, ax.get_ylim()[0] if drawn else 1.0)
        ax.set(xlabel="Confidence", ylabel="Share of right answers",
               xlim=(bottom, 1.02), ylim=(bottom, 1.02))  # fmt: skip
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(_percent)
        if label:
            ax.legend(frameon=False, loc="upper left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _spelled_out(line_kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return options of a line by their full names: "c" is "color"."""
    from matplotlib import cbook, lines  # noqa: PLC0415 - an extra, needed here only

    return dict(cbook.normalize_kwargs(line_kwargs, lines.Line2D))


def _percent(value: float, _: int) -> str:
    return f"{100 * value:g} %"


def _axes(ax: Any) -> Any:
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - an extra, needed here only
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib: pip install 'skselect[plot]' (or pip install matplotlib)."
        ) from error
    return plt.subplots(figsize=(6.4, 4.2), layout="constrained")[1] if ax is None else ax


def _thinned(x: Any, y: Any) -> tuple[Any, Any]:
    """Return at most `_MAX_POINTS` points, evenly spread, both ends kept."""
    keep = np.unique(np.linspace(0, len(x) - 1, min(len(x), _MAX_POINTS)).round().astype(int))
    return x[keep], y[keep]
