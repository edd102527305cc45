"""Is the confidence right? The reliability diagram, and the ROC curve weighted by confidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from skselect._lib.arrays import LabelArray
from skselect._lib.checks.rows import resolve_pos_label
from skselect._lib.keywords import CountOptions, write_options
from skselect.display.common import CurveDisplay, full_names, legend_name, show_percent, thin
from skselect.display.fit import fit_texts
from skselect.metrics._calibration_errors import reliability
from skselect.metrics._confidence_weighted import roc_points, set_apart
from skselect.metrics._evaluate import evaluate
from skselect.metrics._rows import ScoredRows, score_proba
from skselect.predictions.outcomes import Outcomes


@dataclass(eq=False, repr=False)
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
    >>> from skselect.display import ReliabilityDisplay
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

    curve: Any
    _: KW_ONLY
    name: str | None = None
    error: float | None = None

    _legend: ClassVar = "upper left"
    _options: ClassVar = {"n_bins": 15, "strategy": "quantile"}

    @classmethod
    def _draw_rows(cls, rows: ScoredRows, **options: Any) -> Self:
        return cls.from_outcomes(rows.by_correctness.outcomes, **options)

    @classmethod
    def from_outcomes(
        cls,
        outcomes: Outcomes,
        *,
        n_bins: int = 15,
        strategy: str = "quantile",
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw outcomes whose confidence is the claimed probability of being right."""
        error = float(evaluate(outcomes, ["smooth_ece"])["smooth_ece"])
        return cls(reliability(outcomes, n_bins, strategy), name=name, error=error).plot(ax)

    def _draw(self, ax: Any, name: str | None, look: dict[str, Any]) -> None:
        if self.error is not None:
            name = f"{name or 'classifier'}: smooth ECE {100 * self.error:.1f} %"
        style = self._style(ax, name, {"marker": "o", "markersize": 4} | look)
        curve = self.curve
        lowest = float(curve[["confidence", "accuracy", "low"]].min(axis=None))
        bottom = lowest - 0.02
        if self._lines(ax):
            bottom_before, _ = ax.get_ylim()
            bottom = min(bottom, bottom_before)
        else:
            ax.axline((0, 0), slope=1, color="0.6", linewidth=1, zorder=0)
        confidence = curve["confidence"]
        (self.line_,) = ax.plot(confidence, curve["accuracy"], **style)
        color = self.line_.get_color()
        ax.vlines(confidence, curve["low"], curve["high"], color=color, alpha=0.35)
        ends = (bottom, 1.02)
        ax.set(xlabel="Confidence", ylabel="Share of right answers", xlim=ends, ylim=ends)
        show_percent(ax.yaxis)


@dataclass(eq=False, repr=False)
class ConfidenceWeightedRocDisplay(CurveDisplay):
    """ROC curve in which each row is weighted by the confidence in its predicted class.

    Where it lies above the unweighted curve (thin and dashed), the classifier is more confident
    in the rows that it ranks well.

    Parameters
    ----------
    fpr, tpr : array-like of shape (m,)
        Confidence-weighted false and true positive rates, from (0, 0) to (1, 1).
    cw_auc : float, default=None
        The area under it, for the legend.
    plain : tuple of array-like (fpr, tpr), default=None
        The curve without weights, for comparison.
    name : str, default=None
        For the legend.
    pos_label : label, default=None
        The class that is called positive.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The confidence-weighted curve.

    References
    ----------
    .. [1] arXiv 2605.01796, propositions 15 and 16.

    Examples
    --------
    >>> from skselect.display import ConfidenceWeightedRocDisplay
    >>> display = ConfidenceWeightedRocDisplay.from_predictions(
    ...     [0, 1, 1, 0], [.25, .875, .625, .75])
    >>> round(display.cw_auc, 4)
    0.7917
    """

    _legend: ClassVar = "lower right"
    _options: ClassVar = {"pos_label": None}
    _reads: ClassVar = CountOptions

    fpr: Any
    tpr: Any
    _: KW_ONLY
    cw_auc: float | None = None
    plain: tuple[Any, Any] | None = None
    name: str | None = None
    pos_label: Any = None

    def __post_init__(self) -> None:
        self.fpr = np.asarray(self.fpr)
        self.tpr = np.asarray(self.tpr)

    @classmethod
    @partial(write_options, options=CountOptions)
    def from_predictions(
        cls, y_true: Any, y_proba: Any, *, name: str | None = None, ax: Any = None, **options: Any
    ) -> Self:
        """Draw class probabilities; of more than two classes, `pos_label` against the rest.

        Parameters
        ----------
        %(data)s
        %(options)s
        """
        pos_label = options.get("pos_label")
        shape = np.shape(y_proba)
        if len(shape) == 2 and shape[1] > 2:
            options["pos_label"] = None
        rows = score_proba(y_true, y_proba, **options)
        return cls._draw_rows(rows, name=name, ax=ax, pos_label=pos_label)

    @classmethod
    def _draw_rows(cls, rows: ScoredRows, *, pos_label: Any = None, **options: Any) -> Self:
        predictions = rows.by_correctness.predictions
        label = _resolve_one_class(predictions.classes, pos_label)
        place = predictions.classes.tolist().index(label)
        score, positive, mass = set_apart(predictions, place, "ConfidenceWeightedRocDisplay")
        fpr, tpr, _ = roc_points(score, positive, mass)
        weight = predictions.sample_weight
        if weight is None:
            weight = np.ones(len(score))
        plain_fpr, plain_tpr, _ = roc_points(score, positive, weight)
        return cls(
            fpr,
            tpr,
            cw_auc=float(np.trapezoid(tpr, fpr)),
            plain=(plain_fpr, plain_tpr),
            name=options["name"],
            pos_label=label,
        ).plot(options["ax"])

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        curve_kwargs: Mapping[str, Any] | None = None,
        plain_kwargs: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.
        name : str, default=None
            For the legend.
        curve_kwargs, plain_kwargs : mapping, default=None
            For the confidence-weighted curve, and for the one without weights.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        super().plot(ax, name=name, curve_kwargs=curve_kwargs)
        if self.plain is not None:
            self._draw_plain(*self.plain, self.name if name is None else name, plain_kwargs)
            self.ax_.legend(frameon=False, loc=self._legend)
            fit_texts(self.ax_)
        return self

    def _draw(self, ax: Any, name: str | None, look: dict[str, Any]) -> None:
        if not self._lines(ax):
            ax.axline((0, 0), slope=1, color="0.6", linewidth=1, zorder=0)
        area = "weighted" if self.cw_auc is None else f"cwAUC {self.cw_auc:.3f}"
        style = self._style(ax, _prefix(name) + area, look)
        (self.line_,) = ax.plot(*thin(self.fpr, self.tpr), **style)
        of_class = "" if self.pos_label is None else f" of {legend_name(self.pos_label)}"
        ax.set(xlabel=f"False positive rate{of_class}", ylabel=f"True positive rate{of_class}")
        ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        show_percent(ax.xaxis, ax.yaxis)

    def _draw_plain(
        self, fpr: Any, tpr: Any, name: str | None, look: Mapping[str, Any] | None
    ) -> None:
        """Draw the curve without weights."""
        style = {"color": self.line_.get_color(), "linestyle": "--", "linewidth": 1}
        style["label"] = f"{legend_name(_prefix(name))}AUC {np.trapezoid(tpr, fpr):.3f}"
        self.ax_.plot(*thin(fpr, tpr), **(style | full_names(look)))


def _prefix(name: str | None) -> str:
    return f"{name}: " if name else ""


def _resolve_one_class(classes: LabelArray, pos_label: Any) -> Any:
    """Return the positive class: `pos_label`, or by default 1 where two classes are numbers."""
    if pos_label is None and (len(classes) != 2 or classes.dtype.kind not in "biuf"):
        raise ValueError(
            f"pos_label must name the class to set against the rest, one of "
            f"{classes[:20].tolist()}."
        )
    return resolve_pos_label(classes, pos_label)
