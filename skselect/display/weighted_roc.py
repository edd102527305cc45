"""ROC curve with rows weighted by confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skselect._checks.labels import check_both_kinds
from skselect._checks.proba import check_has_proba, resolve_pos_label
from skselect._typing import ConfidenceSpec, LabelArray
from skselect.display.common import (
    COLORS,
    CurveDisplay,
    count_lines,
    full_names,
    legend_name,
    show_percent,
    thin,
)
from skselect.estimators.scoring import judge_estimator
from skselect.metrics._arguments import judge_proba
from skselect.metrics._confidence_weighted import roc_points, weigh_by_confidence
from skselect.predictions.predictions import Predictions

_CURVE = "skselect confidence-weighted ROC curve"


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
    >>> from skselect import ConfidenceWeightedRocDisplay
    >>> display = ConfidenceWeightedRocDisplay.from_predictions(
    ...     [0, 1, 1, 0], [.25, .875, .625, .75])
    >>> round(display.cw_auc, 4)
    0.7917
    """

    def __init__(
        self,
        fpr: Any,
        tpr: Any,
        *,
        cw_auc: float | None = None,
        plain: tuple[Any, Any] | None = None,
        name: str | None = None,
        pos_label: Any = None,
    ) -> None:
        self.fpr, self.tpr = np.asarray(fpr), np.asarray(tpr)
        self.cw_auc = cw_auc
        self.plain = plain
        self.name = name
        self.pos_label = pos_label

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        labels: Any = None,
        pos_label: Any = None,
        confidence: ConfidenceSpec | None = None,
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> ConfidenceWeightedRocDisplay:
        """Draw class probabilities; of more than two classes, `pos_label` against the rest."""
        shape = np.shape(y_proba)
        predictions = judge_proba(
            y_true, y_proba, labels=labels, confidence=confidence, sample_weight=sample_weight,
            pos_label=pos_label if len(shape) == 1 or shape[1] <= 2 else None,
        ).claimed.predictions  # fmt: skip
        return cls._from_rows(predictions, pos_label, name).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        pos_label: Any = None,
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> ConfidenceWeightedRocDisplay:
        """Draw a fitted estimator; of more than two classes, `pos_label` against the rest."""
        found = judge_estimator(estimator, X, y, sample_weight)
        name = type(estimator).__name__ if name is None else name
        return cls._from_rows(found.judged.claimed.predictions, pos_label, name).plot(ax)

    @classmethod
    def _from_rows(
        cls, predictions: Predictions, pos_label: Any, name: str | None
    ) -> ConfidenceWeightedRocDisplay:
        owner = "ConfidenceWeightedRocDisplay"
        label = _resolve_one_class(predictions.classes, pos_label)
        place = predictions.classes.tolist().index(label)
        proba = check_has_proba(predictions.y_proba, owner)
        score, positive = proba[:, place].astype(np.float64), predictions.y_true == place
        mass, weight = weigh_by_confidence(predictions), predictions.sample_weight
        check_both_kinds(mass, positive, owner)
        fpr, tpr, _ = roc_points(score, positive, mass)
        plain = roc_points(score, positive, np.ones(len(score)) if weight is None else weight)
        return cls(
            fpr, tpr, cw_auc=float(np.trapezoid(tpr, fpr)), plain=plain[:2], name=name,
            pos_label=label,
        )  # fmt: skip

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        curve_kwargs: Mapping[str, Any] | None = None,
        plain_kwargs: Mapping[str, Any] | None = None,
    ) -> ConfidenceWeightedRocDisplay:
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
            fpr, tpr = self.plain
            named = _prefix(self.name if name is None else name)
            style = {"color": self.line_.get_color(), "linestyle": "--", "linewidth": 1,
                     "label": f"{named}AUC {np.trapezoid(tpr, fpr):.3f}"}  # fmt: skip
            self.ax_.plot(*thin(fpr, tpr), **(style | full_names(plain_kwargs)))
        self.ax_.legend(frameon=False, loc="lower right")
        return self

    def _draw(self, ax: Any, name: str | None, given: dict[str, Any]) -> None:
        drawn = count_lines(ax, _CURVE)
        if not drawn:
            ax.axline((0, 0), slope=1, color="0.6", linewidth=1, zorder=0)
        value = "weighted" if self.cw_auc is None else f"cwAUC {self.cw_auc:.3f}"
        style = {"color": COLORS[drawn % len(COLORS)], "label": _prefix(name) + value,
                 "gid": _CURVE}  # fmt: skip
        (self.line_,) = ax.plot(*thin(self.fpr, self.tpr), **(style | given))
        of = "" if self.pos_label is None else f" of {legend_name(self.pos_label)}"
        ax.set(xlabel=f"False positive rate{of}", ylabel=f"True positive rate{of}",
               xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")  # fmt: skip
        show_percent(ax.xaxis, ax.yaxis)


def _prefix(name: str | None) -> str:
    return f"{legend_name(name)}: " if name else ""


def _resolve_one_class(classes: LabelArray, pos_label: Any) -> Any:
    """Return the positive class: `pos_label`, or by default 1 where two classes are numbers."""
    if pos_label is None and (len(classes) != 2 or classes.dtype.kind not in "biuf"):
        raise ValueError(
            f"pos_label must name the class to set against the rest, one of "
            f"{classes[:20].tolist()}."
        )
    return resolve_pos_label(classes, pos_label)
