"""How results look as text, and in a notebook."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from html import escape

#: The longest lines; also where there is no terminal.
LONGEST_LINE = 88
_INDENT = "  "

# A verdict is written in capitals at the start of a text.
_VERDICT = re.compile(r"[A-Z][A-Z',]+( [A-Z][A-Z',]+)*(?![\w'])")
# The day that may follow it.
_DAY = re.compile(r"\d{1,2} [A-Z][a-z]+ \d{4}")
# Readable under white letters, and beside any background: notebooks and pages may be dark.
TONES = {"good": "#0b7a55", "bad": "#b3261e", "doubt": "#8a5a00", "open": "#59636e"}
#: What labelled rows say of a guarantee, and the tone of it; of several the first one counts.
VERDICTS = {
    "broken": ("BROKEN", "bad"),
    "in_doubt": ("IN DOUBT", "doubt"),
    "not_tested": ("NOT TESTED", "open"),
    "no_breach": ("NO BREACH FOUND", "good"),
    "confirmed": ("CONFIRMED", "good"),
}


def terminal_width() -> int:
    """Return how many letters a line may have."""
    size = shutil.get_terminal_size((LONGEST_LINE, 0))
    return min(size.columns, LONGEST_LINE)


def wrap(text: str) -> str:
    """Return text in lines of readable width; what continues a line is indented."""
    wrapper = textwrap.TextWrapper(
        terminal_width(), subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )
    joined = text.replace(" %", "\0%")  # no line ends between a number and its unit
    lines = [wrapper.fill(line) for line in joined.split("\n")]
    wrapped = "\n".join(lines)
    return wrapped.replace("\0%", " %")


def unwrap(text: str) -> str:
    """Return the text that :func:`wrap` was given."""
    return text.replace(f"\n{_INDENT}", " ")


def count(n: float, noun: str) -> str:
    """Return a number with its noun: 1 row, 1,200 rows."""
    return f"{n:,} {noun_of(n, noun)}"


def noun_of(n: float, noun: str) -> str:
    """Return a noun as it stands beside a number: row, rows."""
    return noun if n == 1 else f"{noun}s"


def these(n: int, noun: str) -> str:
    """Return all of so many things: this one row, these 1,200 rows."""
    return f"this one {noun}" if n == 1 else f"these {n:,} {noun}s"


def percent(share: float, *, up: bool | None = None) -> str:
    """Return a percentage with four digits; for `up` see :func:`rounded`."""
    return f"{rounded(100.0 * share, 4, up=up)} %"


def rounded(value: float, digits: int, *, up: bool | None = None) -> str:
    """Return a number with so many digits, rounded so that no bound is overstated.

    `up` is True for an upper bound, False for a lower bound, None for the nearest number.
    Float noise, as in 100 * 0.07, is removed before rounding.
    """
    way = ROUND_HALF_EVEN
    if up is not None:
        way = ROUND_CEILING if up else ROUND_FLOOR
    context = Context(prec=digits, rounding=way)
    exact = Decimal(f"{value:.12g}")
    number = float(context.plus(exact))
    return f"{number:.{digits}g}"


def show_card(
    text: str, tone: str, numbers: Mapping[str, str] | None = None, n_small: int = 0
) -> str:
    """Return a text as HTML: the verdict in colour, its sentence, a few numbers, and the rest.

    Parameters
    ----------
    text : str
        It begins with its verdict, in capitals; each line is a paragraph.
    tone : {"good", "bad", "doubt", "open"}
    numbers : mapping of str to str, default=None
        What each large number is, and the number; "" where it has no value.
    n_small : int, default=0
        How many of the last lines are in small type, such as assumptions.

    Returns
    -------
    str
        Names in it are escaped. It needs no style sheet, and keeps the colours of the page around.
    """
    verdict, lines = _split_verdict(text)
    day = ""
    if lines and _DAY.fullmatch(lines[0]):
        day = f" <small>{lines.pop(0)}</small>"
    n_plain = max(len(lines) - n_small, 1)
    paragraphs = [_show_paragraph(line, "") for line in lines[:n_plain]]
    paragraphs += [_show_paragraph(line, _SMALL) for line in lines[n_plain:]]
    color = TONES[tone]
    parts = [
        f'<b style="background:{color};color:#fff;padding:.15em .6em;border-radius:.3em">'
        f"{escape(verdict)}</b>{day}",
        *paragraphs[:1],
        _show_numbers(numbers or {}),
        *paragraphs[1:],
    ]
    card = (
        f'<div class="skselect-card" style="border-left:6px solid {color};padding:.7em 1em;'
        "margin:.6em 0;max-width:46em;line-height:1.45;overflow-wrap:anywhere;white-space:normal;"
        'background:rgba(128,128,128,.1);font-family:system-ui,sans-serif">'
        f"{''.join(parts)}</div>"
    )
    return card.replace(" %", "&nbsp;%")


_SMALL = "font-size:.85em;opacity:.8"


def _split_verdict(text: str) -> tuple[str, list[str]]:
    """Return the verdict with which a text begins, and the lines after it."""
    match = _VERDICT.match(text)
    verdict = match[0] if match else ""
    rest = text.removeprefix(verdict).lstrip(",:. \n")
    verdict = verdict.rstrip(",")
    rest = unwrap(rest)
    sentences = rest[:1].upper() + rest[1:]
    lines = [line for line in sentences.split("\n") if line]
    return verdict, lines


def _show_paragraph(line: str, style: str) -> str:
    return f'<p style="margin:.5em 0;{style}">{escape(line)}</p>'


def _show_numbers(numbers: Mapping[str, str]) -> str:
    """Return a row of large numbers, each above what it is."""
    cells = [
        f'<div><b style="display:block;font-size:1.7em;line-height:1.2">{escape(value)}</b>'
        f'<span style="{_SMALL}">{escape(name)}</span></div>'
        for name, value in numbers.items()
        if value
    ]
    if not cells:
        return ""
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:.4em 2.2em;margin:.7em 0">'
        f"{''.join(cells)}</div>"
    )


class NotebookText:
    """Shows in a notebook what `print` shows."""

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre; overflow-x: auto">{escape(str(self))}</pre>'
