"""The confusion matrix of a classifier that may abstain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from skselect._lib.arrays import BoolArray, ConfidenceSpec
from skselect._lib.checks.options import check_choice, check_threshold
from skselect.display.common import Display, legend_name, new_figure
from skselect.display.fit import FEWEST_LETTERS, break_lines, wrap_text
from skselect.metrics._threshold import count_decisions
from skselect.monitoring.decided import decide_labelled
from skselect.policy.policy import AbstentionPolicy
from skselect.predictions.outcomes import compute_confidence
from skselect.predictions.predictions import Predictions

# Cases that are deferred are neither right nor wrong: grey, whatever the colours of the others.
_GREY = "0.92"
# How much of its cell a text may take, and of the figure the names beside it.
_SHARE = 0.9
_MARGIN = 0.2


@dataclass(eq=False, repr=False)
class SelectiveConfusionDisplay(Display):
    """Confusion matrix of what is decided, with a column "abstains" for what is deferred.

    Parameters
    ----------
    confusion_matrix : array-like of shape (K, K + 1)
        Rows are true classes, columns answers; the last column holds the cases deferred, as in
        :func:`skselect.metrics.selective_confusion_matrix`. One more line holds the cases of
        classes that the classifier does not know.
    display_labels : array-like of shape (K,), default=None
        Names of the classes. None: 0 to K - 1.
    normalize : {None, "true", "all"}, default=None
        What the entries are: counts, shares of the cases of each true class, or shares of all
        cases. Shares are written as percentages.

    Attributes
    ----------
    im_ : matplotlib AxesImage
        The answers, without the last column.
    text_ : ndarray of matplotlib Text, or None
        The values, the last column included.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    skselect.inference.metrics_by_class : Sensitivity, specificity and predictive values.
    sklearn.metrics.ConfusionMatrixDisplay : The same for classifiers that never abstain.

    Examples
    --------
    >>> from skselect.display import SelectiveConfusionDisplay
    >>> y, y_proba = ["no", "yes", "yes", "no"], [[.9, .1], [.1, .9], [.4, .6], [.3, .7]]
    >>> display = SelectiveConfusionDisplay.from_predictions(y, y_proba, threshold=.65)
    >>> display.confusion_matrix
    array([[1, 1, 0],
           [0, 1, 1]])
    >>> [label.get_text() for label in display.ax_.get_xticklabels()]
    ['no', 'yes', 'abstains']
    """

    confusion_matrix: Any
    _: KW_ONLY
    display_labels: Any = None
    normalize: str | None = None

    def __post_init__(self) -> None:
        self.confusion_matrix = np.asarray(self.confusion_matrix)
        shape = self.confusion_matrix.shape
        if len(shape) != 2 or shape[0] not in (shape[1] - 1, shape[1]) or shape[1] < 2:
            raise ValueError(
                "confusion_matrix must have a row per true class, and a column per class and one "
                f"for the cases deferred, got the shape {shape}."
            )
        if self.display_labels is not None and len(self.display_labels) != shape[1] - 1:
            raise ValueError(
                f"display_labels must name the {shape[1] - 1} classes (not the column of the cases "
                f"deferred), got {len(self.display_labels)} names."
            )
        if self.normalize is not None:
            check_choice("normalize", self.normalize, ["true", "all"])

    def __repr__(self) -> str:
        n_classes = self.confusion_matrix.shape[1] - 1
        return f"<SelectiveConfusionDisplay: {n_classes} classes>"

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        threshold: float = 0.5,
        labels: Any = None,
        pos_label: Any = None,
        confidence: ConfidenceSpec | None = None,
        sample_weight: Any = None,
        **options: Any,
    ) -> Self:
        """Draw class probabilities; arguments as in the metrics.

        `options` are `normalize` and `display_labels`, as in the class, and those of :meth:`plot`.
        """
        rows = Predictions.from_proba(
            y_true, y_proba, labels=labels, pos_label=pos_label, sample_weight=sample_weight
        )
        accepted = compute_confidence(rows, confidence) >= check_threshold(threshold)
        return cls._draw_decisions(rows, accepted, **options)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, **options: Any
    ) -> Self:
        """Draw a fitted estimator, which decides by its own threshold if it has one.

        `options` are `normalize` and `display_labels`, as in the class, and those of :meth:`plot`.
        """
        from skselect.scoring import score_estimator  # noqa: PLC0415 - tables need no estimator

        rows = score_estimator(estimator, X, y, sample_weight)
        accepted = None
        if rows.threshold is not None:
            accepted = rows.at_threshold.outcomes.confidence >= rows.threshold
        return cls._draw_decisions(rows.predictions, accepted, **options)

    @classmethod
    def from_policy(
        cls,
        policy: AbstentionPolicy,
        y_true: Any,
        y_proba: Any = None,
        *others: Any,
        subgroups: Any = None,
        **options: Any,
    ) -> Self:
        """Draw what a policy decides; arguments as in :func:`skselect.check_policy`.

        `options` are `normalize` and `display_labels`, as in the class, and those of :meth:`plot`.
        """
        rows = (y_true, y_proba, *others)
        if y_proba is None and not others:
            rows = (y_true,)
        answered, accepted, _ = decide_labelled(policy, rows, subgroups, cls.__name__)
        return cls._draw_decisions(answered, accepted, **options)

    @classmethod
    def _draw_decisions(
        cls,
        rows: Predictions,
        accepted: BoolArray | None,
        *,
        normalize: str | None = None,
        display_labels: Any = None,
        **options: Any,
    ) -> Self:
        """Count rows, turn the counts into shares where asked, and draw."""
        n_classes = len(rows.classes)
        counts = count_decisions(rows.y_true, rows.y_pred, accepted, n_classes, rows.sample_weight)
        if normalize is not None:
            total = counts.sum()
            if normalize == "true":
                total = counts.sum(axis=1, keepdims=True)
            counts = counts / np.where(total == 0, 1, total)  # a class without cases
        if display_labels is None:
            display_labels = rows.classes
        return cls(counts, display_labels=display_labels, normalize=normalize).plot(**options)

    def plot(
        self,
        *,
        include_values: bool = True,
        cmap: Any = "Blues",
        xticks_rotation: Any = "auto",
        values_format: str | None = None,
        ax: Any = None,
        colorbar: bool = True,
        im_kw: Mapping[str, Any] | None = None,
        text_kw: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        include_values : bool, default=True
            Write the values.
        cmap : str or matplotlib Colormap, default="Blues"
            Colours of the answers; cases deferred are grey.
        xticks_rotation : {"auto", "vertical", "horizontal"} or float, default="auto"
            Of the names below the columns. "auto": upright where a name is wider than its column.
        values_format : str, default=None
            Format of the values, such as "d". None: counts with commas, or percentages.
        ax : matplotlib Axes, default=None
            None makes a new figure.
        colorbar : bool, default=True
            Draw the scale of the colours.
        im_kw, text_kw : mapping, default=None
            Options of matplotlib for ``imshow`` and for the values.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        if ax is None:
            ax = new_figure()
        values = self.confusion_matrix
        n_classes = values.shape[1] - 1
        style = {"cmap": cmap, "vmin": 0, "interpolation": "nearest"} | dict(im_kw or {})
        self.im_ = ax.imshow(values[:, :-1], **style)
        ax.axvspan(n_classes - 0.5, n_classes + 0.5, color=_GREY, linewidth=0, zorder=0)
        ax.axvline(n_classes - 0.5, color="white", linewidth=4)
        ax.grid(visible=False)  # lines would cross the values
        self.text_ = None
        if include_values:
            self.text_ = self._write_values(ax, values_format, dict(text_kw or {}))
        self._name_classes(ax)
        angles = {"auto": 0.0, "horizontal": 0.0, "vertical": 90.0}
        ax.tick_params(axis="x", rotation=angles.get(xticks_rotation, xticks_rotation))
        if colorbar:
            bar = ax.figure.colorbar(self.im_, ax=ax)
            bar.ax.yaxis.set_major_formatter(lambda value, _: self._format(value, None))
        if xticks_rotation == "auto":
            self._fit_names(ax)
        self._fit_to_cells(ax)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _write_values(self, ax: Any, values_format: str | None, look: dict[str, Any]) -> Any:
        """Write each value into its cell, on dark colours in white."""
        values = self.confusion_matrix
        n_classes = values.shape[1] - 1
        texts = np.empty(values.shape, dtype=object)
        for line, column in np.ndindex(*values.shape):
            value = values[line, column]
            is_deferred = column == n_classes
            color = "0.1" if is_deferred or not self._is_dark(value) else "white"
            style = {"ha": "center", "va": "center", "color": color} | look
            text = self._format(value, values_format)
            texts[line, column] = ax.text(column, line, text, **style)
        return texts

    def _measure_cell(self, ax: Any) -> tuple[float, float]:
        """Return the width and the height of a cell, in pixels."""
        n_lines, n_columns = self.confusion_matrix.shape
        box = ax.get_window_extent()
        if ax.get_aspect() == "auto":
            return box.width / n_columns, box.height / n_lines
        side = min(box.width / n_columns, box.height / n_lines)
        return side, side

    def _fit_names(self, ax: Any) -> None:
        """Break names that are longer than their cell into lines, or turn them upright."""
        figure = ax.figure
        lines = [label.get_text() for label in ax.get_yticklabels()]
        *classes, abstains = [label.get_text() for label in ax.get_xticklabels()]
        ax.set_yticklabels(_break_names(ax, lines, _MARGIN * figure.bbox.width))
        width, _ = self._measure_cell(ax)
        labels = ax.get_xticklabels()
        if any(label.get_window_extent().width > _SHARE * width for label in labels[:-1]):
            self._fit_classes(ax, classes, abstains)
            width, _ = self._measure_cell(ax)
        if labels[-1].get_window_extent().width > width:
            labels[-1].set_rotation(90.0)

    def _fit_classes(self, ax: Any, classes: list[str], abstains: str) -> None:
        """Break the names below the columns into lines, or turn them."""
        figure = ax.figure
        for _ in range(2):  # lines take height, which makes the cells smaller
            width, _ = self._measure_cell(ax)
            broken = _break_names(ax, classes, _SHARE * width, fewest=1)
            ax.set_xticklabels([*broken, abstains])
            figure.draw_without_rendering()
        width, _ = self._measure_cell(ax)
        labels = ax.get_xticklabels()[:-1]
        if any(label.get_window_extent().width > width for label in labels):
            upright = _break_names(ax, classes, _MARGIN * figure.bbox.height)
            ax.set_xticklabels([*upright, abstains])
            for label in labels:
                label.set_rotation(90.0)

    def _fit_to_cells(self, ax: Any) -> None:
        """Write names and values so small that each stays in its cell."""
        ax.figure.draw_without_rendering()
        width, height = self._measure_cell(ax)
        n_lines, n_columns = self.confusion_matrix.shape
        wrap_text(ax.xaxis.label, width * n_columns)
        wrap_text(ax.yaxis.label, height * n_lines, is_upright=True)
        _shrink(ax.get_yticklabels(), "height", height)
        _shrink(ax.get_xticklabels(), "width", width)
        if self.text_ is not None:
            _shrink([*self.text_.flat], "width", _SHARE * width)

    def _is_dark(self, value: Any) -> bool:
        """Tell whether the colour of a value is dark."""
        red, green, blue, _ = self.im_.cmap(self.im_.norm(value))
        return bool(0.3 * red + 0.59 * green + 0.11 * blue < 0.5)

    def _name_classes(self, ax: Any) -> None:
        """Name the lines and columns, and fit the axes to them."""
        n_lines, n_columns = self.confusion_matrix.shape
        n_classes = n_columns - 1
        labels = self.display_labels
        if labels is None:
            labels = range(n_classes)
        columns = [legend_name(label) for label in labels]
        lines = list(columns)
        columns.append("abstains")
        if n_lines > n_classes:
            lines.append("unknown class")
        ax.set(xticks=range(n_columns), xticklabels=columns, xlabel="Answer")
        ax.set(yticks=range(n_lines), yticklabels=lines, ylabel="True class")
        ax.set(xlim=(-0.5, n_classes + 0.5), ylim=(n_lines - 0.5, -0.5))

    def _format(self, value: Any, values_format: str | None) -> str:
        if values_format is not None:
            return format(value, values_format)
        if self.normalize is not None:
            return f"{100 * value:.3g} %"
        return f"{value:,.0f}" if value == round(value) else f"{value:,.4g}"


def _break_names(ax: Any, names: list[str], room: float, fewest: int = FEWEST_LETTERS) -> list[str]:
    """Return names in lines that have room, if their words have."""
    probe = ax.figure.text(0, 0, "", fontsize=ax.get_xticklabels()[0].get_fontsize())
    broken = []
    for name in names:
        probe.set_text(name)
        break_lines(probe, room, fewest=fewest)
        broken.append(probe.get_text())
    probe.remove()
    return broken


def _shrink(texts: list[Any], side: str, room: float) -> None:
    """Write texts smaller until this side of each has room."""
    longest = max(getattr(text.get_window_extent(), side) for text in texts)
    if longest > room:
        for text in texts:
            text.set_fontsize(text.get_fontsize() * room / longest)
