"""Histograms of the confidence of right and of wrong answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from skselect._checks.options import check_count
from skselect._typing import FloatArray
from skselect.display.common import (
    COLORS,
    draw_threshold,
    full_names,
    legend_name,
    new_axes,
)
from skselect.estimators.scoring import judge_estimator
from skselect.metrics._arguments import DoorOptions, share_options
from skselect.predictions.outcomes import Outcomes


class ConfidenceHistogramDisplay:
    """Histogram of the confidence: how many right and how many wrong answers.

    Wrong answers stand at the bottom, right ones on top of them, both as numbers of rows. The
    less sure the wrong answers are, the more abstention helps.

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
    RiskCoverageDisplay : Shows how much abstention helps; takes several models.

    Examples
    --------
    >>> from skselect import ConfidenceHistogramDisplay
    >>> y_proba = [[.95, .05], [.1, .9], [.2, .8], [.7, .3], [.55, .45]]
    >>> display = ConfidenceHistogramDisplay.from_predictions([0, 1, 1, 0, 1], y_proba, n_bins=5)
    >>> display.right, display.wrong
    (array([0., 1., 1., 1., 1.]), array([1., 0., 0., 0., 0.]))
    """

    def __init__(
        self,
        edges: Any,
        right: Any,
        wrong: Any,
        *,
        name: str | None = None,
        threshold: float | None = None,
    ) -> None:
        self.edges = np.asarray(edges, dtype=np.float64)
        self.right = np.asarray(right, dtype=np.float64)
        self.wrong = np.asarray(wrong, dtype=np.float64)
        self.name = name
        self.threshold = threshold

    @classmethod
    @share_options(DoorOptions)
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        n_bins: int = 30,
        name: str | None = None,
        threshold: float | None = None,
        ax: Any = None,
        **options: Unpack[DoorOptions],
    ) -> ConfidenceHistogramDisplay:
        """Draw class probabilities; keywords that are not named here are those of the class.

        Parameters
        ----------
        %(data)s
        %(options)s
        """
        outcomes = Outcomes.from_proba(y_true, y_proba, **options)
        return cls.from_outcomes(outcomes, n_bins=n_bins, name=name, threshold=threshold, ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int = 30,
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> ConfidenceHistogramDisplay:
        """Draw a fitted estimator, and mark its threshold if it has a single one."""
        found = judge_estimator(estimator, X, y, sample_weight)
        name = type(estimator).__name__ if name is None else name
        return cls.from_outcomes(
            found.judged.outcomes, n_bins=n_bins, name=name, threshold=found.single_threshold, ax=ax
        )

    @classmethod
    def from_outcomes(
        cls,
        outcomes: Outcomes,
        *,
        n_bins: int = 30,
        name: str | None = None,
        threshold: float | None = None,
        ax: Any = None,
    ) -> ConfidenceHistogramDisplay:
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
    ) -> ConfidenceHistogramDisplay:
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
        ax = new_axes(ax)
        self.bars_ = {
            "right": self._stack(ax, self.right, self.wrong, "right", COLORS[0], right_kwargs),
            "wrong": self._stack(ax, self.wrong, 0.0, "wrong", COLORS[4], wrong_kwargs),
        }
        draw_threshold(ax, self.threshold)
        ax.set(xlabel="Confidence", ylabel="Rows", ylim=(0, None))
        ax.yaxis.set_major_formatter("{x:,.10g}")
        name = self.name if name is None else name
        if name:
            ax.set_title(legend_name(name))
        ax.legend(frameon=False, loc="upper left")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _stack(
        self, ax: Any, counts: FloatArray, below: Any, what: str, color: str,
        given: Mapping[str, Any] | None,
    ) -> Any:  # fmt: skip
        """Draw the rows of one kind on top of those below."""
        total = float(np.sum(counts))
        label = f"{what}: {total:,.{0 if total == round(total) else 1}f}"
        style = {"color": color, "label": label, "fill": True, "linewidth": 0}
        return ax.stairs(below + counts, self.edges, baseline=below, **(style | full_names(given)))
