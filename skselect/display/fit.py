"""Texts of a picture as wide as it has room for: they are wrapped, or written smaller."""

from __future__ import annotations

import textwrap
from typing import Any

# How much of the axes a text may take; the layout of a figure makes them a little smaller.
_SHARE = 0.9
#: A line has at least so many letters.
FEWEST_LETTERS = 12
# A letter has at least so many points.
_SMALLEST = 4.5
# The width of a letter, in units of its height.
_LETTER = 0.62


def fit_texts(*axes: Any) -> None:
    """Wrap labels, titles and legends of axes to their size, and leave out crowded ticks."""
    for ax in axes:
        width, height = measure_axes(ax)
        for part in (ax, *ax.child_axes):
            wrap_text(part.title, width)
            wrap_text(part.xaxis.label, width)
            wrap_text(part.yaxis.label, height, is_upright=True)
        _thin_ticks(ax, width)
        legend = ax.get_legend()
        if legend is not None:
            _fit_legend(legend, width, height)


def measure_axes(ax: Any) -> tuple[float, float]:
    """Return how wide and how high the texts of axes may be, in pixels."""
    box = ax.get_window_extent()
    width = _SHARE * box.width
    height = _SHARE * box.height
    if ax.get_aspect() != "auto":
        width = min(width, height)
        height = width
    return width, height


def wrap_text(text: Any, room: float, *, is_upright: bool = False) -> None:
    """Break a text into lines and, if a word has no room, write it smaller."""
    break_lines(text, room, is_upright=is_upright)
    while _length(text, is_upright=is_upright) > room and text.get_fontsize() > _SMALLEST:
        text.set_fontsize(text.get_fontsize() - 0.5)


def break_lines(
    text: Any, room: float, *, is_upright: bool = False, fewest: int = FEWEST_LETTERS
) -> bool:
    """Break a text into lines if it has no room; return whether it has room then."""
    whole = _join(text.get_text())
    n_letters = len(whole)
    length = _length(text, is_upright=is_upright)
    while length > room and n_letters > fewest:
        n_letters = _fewer_letters(n_letters, room / length, fewest)
        text.set_text(_fill(whole, n_letters))
        length = _length(text, is_upright=is_upright)
    return length <= room


def _fewer_letters(n_letters: int, share: float, fewest: int) -> int:
    """Return how many letters of a line have room, if this share of them has."""
    return max(min(n_letters - 1, int(n_letters * share)), fewest)


def _join(text: str) -> str:
    """Return a text as one line."""
    return " ".join(text.split())


def _fill(text: str, n_letters: int) -> str:
    """Return a text in lines of so many letters, none of which ends before a unit."""
    joined = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.fill(joined, n_letters, break_long_words=False)
    return lines.replace("\N{NO-BREAK SPACE}%", " %")


def _length(text: Any, *, is_upright: bool) -> float:
    """Return how long the lines of a text are, in pixels."""
    box = text.get_window_extent()
    return float(box.height if is_upright else box.width)


def _fit_legend(legend: Any, width: float, height: float) -> None:
    """Wrap the lines of a legend, then write it smaller, until it lies within its axes."""
    texts = legend.get_texts()
    whole = [_join(text.get_text()) for text in texts]
    sizes = [text.get_fontsize() for text in texts]
    n_letters = max(map(len, whole), default=0)
    length = legend.get_window_extent().width
    while length > width and n_letters > FEWEST_LETTERS:
        n_letters = _fewer_letters(n_letters, width / length, FEWEST_LETTERS)
        for text, words in zip(texts, whole, strict=True):
            text.set_text(_fill(words, n_letters))
        length = legend.get_window_extent().width
    size = max(sizes, default=0.0)
    while not _lies_within(legend, width, height) and size > _SMALLEST:
        size -= 0.5
        for text in texts:
            text.set_fontsize(size)


def _lies_within(legend: Any, width: float, height: float) -> bool:
    box = legend.get_window_extent()
    return bool(box.width <= width and box.height <= height)


def _thin_ticks(ax: Any, width: float) -> None:
    """Leave out ticks of the horizontal axis whose labels would touch."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - an extra

    if not isinstance(ax.xaxis.get_major_locator(), MaxNLocator):
        return
    labels = ax.xaxis.get_major_formatter().format_ticks(ax.get_xticks())
    size = ax.xaxis.label.get_fontsize() * ax.figure.dpi / 72.0
    n_letters = max(map(len, labels), default=0)
    room = int(width / (_LETTER * size * (n_letters + 1.5)))
    if room < len(labels):
        ax.locator_params(axis="x", nbins=max(room, 1))
