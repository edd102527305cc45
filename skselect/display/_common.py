"""What every picture shares. matplotlib is imported inside `plot` only."""

from __future__ import annotations

from typing import Any

from skselect import _validation as check
from skselect._courses import evenly

# Okabe and Ito's colours: distinct for colour-blind readers and in print.
COLORS = ("#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARK = "#D55E00"
# More points than a screen has pixels add nothing.
MAX_POINTS = 2000


def spelled_out(line_kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return options of a line by their full names: "c" is "color"."""
    from matplotlib import cbook, lines  # noqa: PLC0415 - an extra, needed here only

    return dict(cbook.normalize_kwargs(line_kwargs, lines.Line2D))


def percent(value: float, _: int) -> str:
    return f"{100 * value:g} %"


def new_axes(ax: Any) -> Any:
    plt = check.import_extra("matplotlib.pyplot", "matplotlib", "plot")
    return plt.subplots(figsize=(6.4, 4.2), layout="constrained")[1] if ax is None else ax


def thinned(x: Any, y: Any) -> tuple[Any, Any]:
    """Return at most `MAX_POINTS` points, evenly spread, both ends kept."""
    keep = evenly(len(x), MAX_POINTS)
    return (x, y) if keep is None else (x[keep], y[keep])
