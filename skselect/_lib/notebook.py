"""How results look as text, and in a notebook."""

from __future__ import annotations

import textwrap
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from html import escape

_WIDTH = 88
_INDENT = "  "


def wrap(text: str) -> str:
    """Return text in lines of readable width; what continues a line is indented."""
    wrapper = textwrap.TextWrapper(
        _WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )
    joined = text.replace(" %", "\0%")  # no line ends between a number and its unit
    lines = [wrapper.fill(line) for line in joined.split("\n")]
    return "\n".join(lines).replace("\0%", " %")


def unwrap(text: str) -> str:
    """Return the text that :func:`wrap` was given."""
    return text.replace(f"\n{_INDENT}", " ")


def count(n: float, noun: str) -> str:
    """Return a number with its noun: 1 row, 1,200 rows."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def percent(share: float, *, up: bool | None = None) -> str:
    """Return a percentage with four digits; for `up` see :func:`rounded`."""
    return f"{rounded(100.0 * share, 4, up=up)} %"


def rounded(value: float, digits: int, *, up: bool | None = None) -> str:
    """Return a number with so many digits, rounded so that no bound is overstated.

    `up` is True for an upper bound, False for a lower bound, None for the nearest number.
    Float noise, as in 100 * 0.07, is removed before rounding.
    """
    way = {True: ROUND_CEILING, False: ROUND_FLOOR, None: ROUND_HALF_EVEN}[up]
    exact = Decimal(f"{value:.12g}")
    return f"{float(Context(prec=digits, rounding=way).plus(exact)):.{digits}g}"


class NotebookText:
    """Shows in a notebook what `print` shows."""

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre; overflow-x: auto">{escape(str(self))}</pre>'
