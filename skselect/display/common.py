"""What all plots share. matplotlib is imported inside `plot` only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from skselect._checks.options import check_models, check_shared_confidence
from skselect._checks.proba import check_has_proba
from skselect._checks.rows import check_countable, check_some_subgroup
from skselect._files import import_extra
from skselect._typing import FloatArray
from skselect.bounds import clopper_pearson_interval
from skselect.curve.scan import evenly
from skselect.objectives import Loss
from skselect.policy.subgroups import subgroup_codes
from skselect.predictions.predictions import Predictions

# Okabe and Ito's colours: distinct for colour-blind readers and in print.
COLORS = ("#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARK = "#D55E00"
# The look of every figure that the package makes; axes that users pass keep theirs.
STYLE = {
    "axes.axisbelow": True, "axes.edgecolor": "0.45", "axes.grid": True,
    "axes.spines.right": False, "axes.spines.top": False, "axes.titlesize": "medium",
    "grid.color": "0.92", "xtick.color": "0.45", "xtick.labelcolor": "0.15",
    "ytick.color": "0.45", "ytick.labelcolor": "0.15",
}  # fmt: skip
# More points could not be seen on a screen.
MAX_POINTS = 2000


class CurveDisplay(ABC):
    """A curve; those of several models or subgroups may share the axes."""

    name: str | None

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        curve_kwargs: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None makes a new figure.
        name : str, default=None
            For the legend; None takes the name of the display.
        curve_kwargs : mapping, default=None
            Options of matplotlib for the lines or points.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = new_axes(ax)
        self._draw(ax, self.name if name is None else name, full_names(curve_kwargs))
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @abstractmethod
    def _draw(self, ax: Any, name: str | None, given: dict[str, Any]) -> None:
        """Draw on the axes; `given` are options of the lines or points."""

    @classmethod
    def from_models(
        cls, y_true: Any, y_probas: Mapping[str, Any], *others: Any, ax: Any = None, **options: Any
    ) -> dict[str, Any]:
        """Draw two or more models on the same axes.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        y_probas : mapping of str to array-like
            The probabilities of each model, by its name.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **options
            For ``from_predictions``.

        Returns
        -------
        dict of str to display
            In the order given; each has the same ``ax_``.
        """
        if others or isinstance(y_true, Mapping):
            raise ValueError(
                "from_models takes true labels and the probabilities of each model by name, "
                "from_models(y, {'forest': forest.predict_proba(X), ...}). from_estimator draws a "
                "fitted model."
            )
        shown: dict[str, Any] = {}
        for name in check_models("y_probas", y_probas, None):
            shown[name] = cls.from_predictions(  # type: ignore[attr-defined]
                y_true, y_probas[name], name=name, ax=ax, **options
            )
            ax = shown[name].ax_
        return shown

    @classmethod
    def from_subgroups(
        cls,
        y_true: Any,
        y_proba: Any,
        subgroups: Any,
        *,
        labels: Any = None,
        pos_label: Any = None,
        sample_weight: Any = None,
        ax: Any = None,
        **options: Any,
    ) -> dict[Any, Any]:
        """Draw each subgroup as a curve of its own, on the same axes.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        y_proba : array-like of shape (n, K) or (n,)
            Class probabilities.
        subgroups : array-like of shape (n,), or DataFrame of shape (n, m)
            The subgroup of each row; rows without one are left out.
        labels, pos_label, sample_weight
            As in the metrics.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        **options
            For ``from_predictions``.

        Returns
        -------
        dict of subgroup to display
            Each has the same ``ax_``.
        """
        rows = Predictions.from_proba(
            y_true, y_proba, labels=labels, pos_label=pos_label, sample_weight=sample_weight
        )
        proba = check_has_proba(rows.y_proba, cls.__name__)
        check_shared_confidence(options.get("confidence"))
        codes, keys = subgroup_codes(subgroups, len(rows))
        check_some_subgroup(keys)
        shown: dict[Any, Any] = {}
        for code, key in enumerate(keys):
            mine = codes == code
            shown[key] = cls.from_predictions(  # type: ignore[attr-defined]
                rows.classes[rows.y_true[mine]], proba[mine], labels=rows.classes,
                pos_label=pos_label, name=f"{key} ({np.sum(mine):,})", ax=ax,
                sample_weight=None if rows.sample_weight is None else rows.sample_weight[mine],
                **options,
            )  # fmt: skip
            ax = shown[key].ax_
        return shown


def legend_name(name: Any) -> str:
    """Return a name for a legend, where matplotlib reads "$" as a formula and hides "_name"."""
    text = str(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def count_lines(ax: Any, kind: str) -> int:
    """Return how many curves of one kind are on the axes already."""
    return sum(line.get_gid() == kind for line in ax.lines)


def full_names(kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return options of a line by their full names: "c" becomes "color"."""
    from matplotlib import cbook, lines  # noqa: PLC0415 - an extra, needed here only

    return dict(cbook.normalize_kwargs(dict(kwargs or {}), lines.Line2D))


def risk_interval(curve: Any, points: Any, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the exact interval of the risk at each point; not for all points at once."""
    check_countable(curve)
    return clopper_pearson_interval(points["accepted_loss"], points["accepted_weight"], level)


def draw_band(ax: Any, x: FloatArray, low: FloatArray, high: FloatArray, color: Any) -> None:
    """Shade a band without rescaling the axes: for few rows it is very wide."""
    from matplotlib.collections import PolyCollection  # noqa: PLC0415 - an extra

    outline = np.concatenate([np.column_stack([x, low]), np.column_stack([x, high])[::-1]])
    band = PolyCollection([outline], facecolor=color, alpha=0.15, linewidth=0, zorder=1)
    ax.add_collection(band, autolim=False)


def draw_threshold(ax: Any, threshold: float | None) -> None:
    """Mark a chosen threshold by a line, if it is finite."""
    if threshold is not None and np.isfinite(threshold):
        ax.axvline(threshold, color=MARK, linestyle="--", linewidth=1,
                   label=f"threshold {threshold:.3g}")  # fmt: skip


def draw_target(ax: Any, target: float | None, loss: str) -> None:
    """Draw a target of the risk as a line, once for all curves."""
    label = "" if target is None else f"target {Loss(loss).amount(target)}"
    if label and label not in ax.get_legend_handles_labels()[1]:
        ax.axhline(target, color="0.35", linestyle="--", linewidth=1, label=label)


def show_percent(*axes: Any) -> None:
    """Write shares of cases as percentages; confidences and thresholds stay numbers."""
    from matplotlib.ticker import PercentFormatter  # noqa: PLC0415 - an extra

    for axis in axes:
        axis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))


def new_axes(ax: Any) -> Any:
    """Return the given axes, or those of a new figure."""
    import_extra("matplotlib.pyplot", "matplotlib", "plot")
    return new_figure() if ax is None else ax


def new_figure(n_rows: int = 1, size: tuple[float, float] = (6.4, 4.2)) -> Any:
    """Return the axes, or an array of several, of a new figure; `size` is in inches."""
    plt = import_extra("matplotlib.pyplot", "matplotlib", "plot")
    with plt.rc_context(STYLE):
        return plt.subplots(n_rows, figsize=size, sharex=True, layout="constrained")[1]


def thin(x: Any, y: Any) -> tuple[Any, Any]:
    """Return at most `MAX_POINTS` points, evenly spread, both ends kept."""
    keep = evenly(len(x), MAX_POINTS)
    return (x, y) if keep is None else (x[keep], y[keep])
