"""Reliability diagram."""

from __future__ import annotations

from typing import Any, Unpack

from skselect.display.common import (
    COLORS,
    CurveDisplay,
    count_lines,
    legend_name,
    show_percent,
)
from skselect.estimators.scoring import judge_estimator
from skselect.metrics import evaluate
from skselect.metrics._arguments import DoorOptions, judge_proba, share_options
from skselect.metrics._binned_errors import reliability
from skselect.predictions.outcomes import Outcomes

_CURVE = "skselect reliability curve"


class ReliabilityDisplay(CurveDisplay):
    """Reliability diagram: the share of right answers at each confidence.

    Points below the diagonal are overconfident: of answers with confidence .9, fewer than 90 %
    are right.

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
    >>> display.curve.round(3)  # doctest: +DIGITS_VARY
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
    @share_options(DoorOptions)
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        n_bins: int = 15,
        strategy: str = "quantile",
        name: str | None = None,
        ax: Any = None,
        **options: Unpack[DoorOptions],
    ) -> ReliabilityDisplay:
        """Draw class probabilities; keywords that are not named here are those of the class.

        Parameters
        ----------
        %(data)s
        %(options)s
        """
        outcomes = judge_proba(y_true, y_proba, **options).claimed.outcomes
        return cls.from_outcomes(outcomes, n_bins=n_bins, strategy=strategy, name=name, ax=ax)

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
        """Draw the claimed probabilities of being right of a fitted estimator."""
        outcomes = judge_estimator(estimator, X, y, sample_weight).judged.claimed.outcomes
        name = type(estimator).__name__ if name is None else name
        return cls.from_outcomes(outcomes, n_bins=n_bins, strategy=strategy, name=name, ax=ax)

    @classmethod
    def from_outcomes(
        cls,
        outcomes: Outcomes,
        *,
        n_bins: int = 15,
        strategy: str = "quantile",
        name: str | None = None,
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Draw outcomes whose confidence is the claimed probability of being right."""
        error = float(evaluate(outcomes, ["smooth_ece"])["smooth_ece"])
        return cls(reliability(outcomes, n_bins, strategy), name=name, error=error).plot(ax)

    def _draw(self, ax: Any, name: str | None, given: dict[str, Any]) -> None:
        curve, label = self.curve, None if name is None else legend_name(name)
        if self.error is not None:
            label = f"{label or 'classifier'}: smooth ECE {100 * self.error:.1f} %"
        drawn = count_lines(ax, _CURVE)
        if not drawn:
            ax.axline((0, 0), slope=1, color="0.6", linewidth=1, zorder=0)
        style = {
            "color": COLORS[drawn % len(COLORS)], "marker": "o", "markersize": 4,
            "label": label, "gid": _CURVE,
        }  # fmt: skip
        (self.line_,) = ax.plot(curve["confidence"], curve["accuracy"], **(style | given))
        color = self.line_.get_color()
        ax.vlines(curve["confidence"], curve["low"], curve["high"], color=color, alpha=0.35)
        lowest = float(curve[["confidence", "accuracy", "low"]].min(axis=None))
        bottom = min(lowest - 0.02, ax.get_ylim()[0] if drawn else 1.0)
        ax.set(xlabel="Confidence", ylabel="Share of right answers",
               xlim=(bottom, 1.02), ylim=(bottom, 1.02))  # fmt: skip
        show_percent(ax.yaxis)
        if label:
            ax.legend(frameon=False, loc="upper left")
