"""What all plots share. matplotlib is imported inside `plot` only."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypedDict

import numpy as np

from skselect._lib.arrays import FloatArray, rows_of_codes
from skselect._lib.checks.options import check_models, check_shared_confidence
from skselect._lib.checks.rows import check_countable, check_has_proba, check_some_subgroup
from skselect._lib.files import import_extra
from skselect._lib.keywords import RowOptions, write_options
from skselect._lib.notebook import LONGEST_LINE
from skselect.bounds._pointwise import clopper_pearson_interval
from skselect.curve.scan import evenly
from skselect.display.fit import fit_texts
from skselect.metrics._rows import ScoredRows, score_proba
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
# With fewer accepted rows than this a mean over them is mostly chance.
FEW = 30
# More points could not be seen on a screen.
MAX_POINTS = 2000


class _WeightOptions(TypedDict, total=False):
    """What `from_estimator` takes beside the options of a picture."""

    sample_weight: Any


class Display:
    """What every picture has."""

    name: str | None = None

    def __repr__(self) -> str:
        name = f": {self.name}" if self.name else ""
        text = f"<{type(self).__name__}{name}>"
        if len(text) <= LONGEST_LINE:
            return text
        return f"{text[: LONGEST_LINE - 4]}...>"


class RowsDisplay(Display, ABC):
    """A picture of labelled rows: of class probabilities, or of what a fitted estimator says.

    `_options` are the keywords of both constructors with their defaults; an estimator gives its own
    threshold. `_draw_rows` is the hook of pictures that are not made from a curve.
    """

    name: str | None
    _options: ClassVar[dict[str, Any]] = {}
    # What the constructor from class probabilities takes beside the options of the picture.
    _reads: ClassVar[type[Any]] = RowOptions
    # Whether an estimator's class is the name that a picture shows by default.
    _names_estimator: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        """Write the options of the picture into signature and docstring of both constructors."""
        super().__init_subclass__()
        fixed = {name: value for name, value in cls._options.items() if name != "threshold"}
        if "from_predictions" not in vars(cls):
            _write(cls, "from_predictions", cls._options, cls._reads)
        _write(cls, "from_estimator", fixed, _WeightOptions)

    @abstractmethod
    def plot(self, ax: Any = None, *, name: str | None = None) -> Self:
        """Draw."""

    @classmethod
    def _draw_rows(cls, rows: ScoredRows, *, ax: Any, **options: Any) -> Self:
        return cls(rows.curve, **options).plot(ax)  # type: ignore[call-arg]

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_proba: Any, *, name: str | None = None, ax: Any = None, **options: Any
    ) -> Self:
        """Draw class probabilities; keywords that are not named here are those of the class.

        Parameters
        ----------
        %(data)s
        %(options)s
        """
        of_picture = {option: options.pop(option) for option in cls._options.keys() & options}
        rows = score_proba(y_true, y_proba, **options)
        return cls._draw_rows(rows, name=name, ax=ax, **of_picture)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw a fitted estimator, and mark its threshold if it has a single one.

        Keywords that are not named here are those of the class.

        Parameters
        ----------
        estimator : classifier
            Fitted.
        X : array-like of shape (n, d)
            Features.
        y : array-like of shape (n,)
            True labels.
        %(options)s
        """
        sample_weight = options.pop("sample_weight", None)
        from skselect.scoring import score_estimator  # noqa: PLC0415 - tables need no estimator

        rows = score_estimator(estimator, X, y, sample_weight)
        if "threshold" in cls._options:
            options["threshold"] = rows.single_threshold
        if name is None and cls._names_estimator:
            name = type(estimator).__name__
        return cls._draw_rows(rows, name=name, ax=ax, **options)


def _write(
    cls: type[RowsDisplay], name: str, of_picture: Mapping[str, Any], shared: type[Any]
) -> None:
    """Give a picture a constructor that shows its own keywords and the shared ones."""
    function = getattr(RowsDisplay, name).__func__

    @functools.wraps(function)
    def constructor(*args: Any, **options: Any) -> Any:
        return function(*args, **options)

    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    kind = inspect.Parameter.KEYWORD_ONLY
    for option, default in of_picture.items():
        parameters.append(inspect.Parameter(option, kind, default=default))
    signature = signature.replace(parameters=parameters)
    constructor.__signature__ = signature  # type: ignore[attr-defined]
    constructor.__qualname__ = f"{cls.__name__}.{name}"
    documented = write_options(constructor, shared)
    setattr(cls, name, classmethod(documented))


class CurveDisplay(RowsDisplay):
    """A curve; those of several models or subgroups may share the axes."""

    # Where the legend stands.
    _legend: ClassVar[str] = "best"

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
        if ax is None:
            ax = new_figure()
        if name is None:
            name = self.name
        self._draw(ax, name, full_names(curve_kwargs))
        handles, _ = ax.get_legend_handles_labels()
        if handles:
            ax.legend(frameon=False, loc=self._legend)
        fit_texts(ax)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    @property
    def _kind(self) -> str:
        """By which the curves of this kind on the axes are known."""
        return f"skselect {type(self).__name__}"

    def _lines(self, ax: Any) -> list[Any]:
        """Return the curves of this kind that are on the axes already."""
        return [line for line in ax.lines if line.get_gid() == self._kind]

    def _style(self, ax: Any, name: str | None, look: dict[str, Any]) -> dict[str, Any]:
        """Return the look of the next curve, which has a colour of its own."""
        n_lines = len(self._lines(ax))
        label = None if name is None else legend_name(name)
        return {"color": COLORS[n_lines % len(COLORS)], "label": label, "gid": self._kind} | look

    @abstractmethod
    def _draw(self, ax: Any, name: str | None, look: dict[str, Any]) -> None:
        """Draw on the axes; `look` are options of the lines or points."""

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
                "from_models needs true labels and the probabilities of each model by name, "
                "from_models(y, {'forest': forest.predict_proba(X), ...}). from_estimator draws a "
                "fitted model."
            )
        displays: dict[str, Any] = {}
        for name in check_models(y_probas, None):
            display = cls.from_predictions(y_true, y_probas[name], name=name, ax=ax, **options)
            displays[name] = display
            ax = display.ax_
        return displays

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
        check_has_proba(rows.y_proba, cls.__name__)
        check_shared_confidence(options.get("confidence"))
        codes, keys = subgroup_codes(subgroups, len(rows))
        check_some_subgroup(keys)
        displays: dict[Any, Any] = {}
        for key, members in zip(keys, rows_of_codes(codes, len(keys)), strict=True):
            part = rows.take(members)
            displays[key] = cls.from_predictions(
                rows.classes[part.y_true],
                part.y_proba,
                name=f"{key} ({len(part):,})",
                labels=rows.classes,
                pos_label=pos_label,
                sample_weight=part.sample_weight,
                ax=ax,
                **options,
            )
            ax = displays[key].ax_
        return displays


def legend_name(name: Any) -> str:
    """Return a name for a legend, where matplotlib reads "$" as a formula and hides "_name"."""
    text = str(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


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

    lower_edge = np.column_stack([x, low])
    upper_edge = np.column_stack([x, high])
    outline = np.concatenate([lower_edge, upper_edge[::-1]])
    band = PolyCollection([outline], facecolor=color, alpha=0.15, linewidth=0, zorder=1)
    ax.add_collection(band, autolim=False)


def draw_target(ax: Any, target: float | None, loss: str) -> None:
    """Draw a target of the risk as a line, once for all curves."""
    if target is None:
        return
    label = f"target {Loss(loss).amount(target)}"
    _, labels = ax.get_legend_handles_labels()
    if label not in labels:
        ax.axhline(target, color="0.35", linestyle="--", linewidth=1, label=label)


def show_percent(*axes: Any) -> None:
    """Write shares of cases as percentages, downwards too; confidences stay numbers."""
    for axis in axes:
        axis.set_major_formatter(lambda share, _: f"{100 * abs(share):.4g} %")


def new_figure(n_rows: int = 1, size: tuple[float, float] = (6.4, 4.2)) -> Any:
    """Return the axes, or an array of several, of a new figure; `size` is in inches."""
    plt = import_extra("matplotlib.pyplot", "matplotlib")
    with plt.rc_context(STYLE):
        _, axes = plt.subplots(n_rows, figsize=size, sharex=True, layout="constrained")
    return axes


def thin(x: Any, y: Any) -> tuple[Any, Any]:
    """Return at most `MAX_POINTS` points, evenly spread, both ends kept."""
    entries = evenly(len(x), MAX_POINTS)
    if entries is None:
        return x, y
    return x[entries], y[entries]
