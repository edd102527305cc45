"""What every picture shares. matplotlib is imported inside `plot` only."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - an extra, needed here only
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib: pip install 'skselect[plot]' (or pip install matplotlib)."
        ) from error
    return plt.subplots(figsize=(6.4, 4.2), layout="constrained")[1] if ax is None else ax


def thinned(x: Any, y: Any) -> tuple[Any, Any]:
    """Return at most `MAX_POINTS` points, evenly spread, both ends kept."""
    keep = np.unique(np.linspace(0, len(x) - 1, min(len(x), MAX_POINTS)).round().astype(int))
    return x[keep], y[keep]
