"""A report as one web page that needs nothing but itself."""

from __future__ import annotations

import base64
import io
import warnings
from importlib import resources
from typing import Any

from skselect import _validation as check
from skselect.display import (
    ConfidenceHistogramDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    ThresholdDisplay,
)
from skselect.report._contents import Case, honest_states, is_unit
from skselect.report._text import origin_of, sentence_of


def page_of(contents: dict[str, Any], cases: tuple[Case, ...]) -> str:
    """Return the page."""
    jinja2 = check.import_extra("jinja2", "jinja2", "report")
    source = resources.files("skselect.report").joinpath("report.html.jinja").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"number": _number, "percent": _percent, "decided": sentence_of,
                            "origin": origin_of}  # fmt: skip
    pictures = {case.name: _pictures(case, contents["confidence_level"]) for case in cases}
    together = _together(cases) if len(cases) > 1 else None
    return str(
        environment.from_string(source).render(
            report=contents, pictures=pictures, together=together
        )
    )


def _pictures(case: Case, level: float) -> list[tuple[str, str]]:
    """Return the pictures of one model with what they show."""
    judged = case.judged
    countable = judged.curve.counted and not judged.curve.is_graded
    drawn: list[tuple[str, Any]] = [
        (
            "How often it errs among the rows it answers, from its surest answers on.",
            RiskCoverageDisplay(judged.curve, threshold=case.threshold,
                                confidence_level=level if countable else None),
        ),
        (
            "How sure it is where it is right, and where it is wrong.",
            ConfidenceHistogramDisplay.of(judged.outcomes, threshold=case.threshold),
        ),
    ]  # fmt: skip
    shown = [(caption, _image(display)) for caption, display in drawn]
    if is_unit(case.judged.honest.outcomes):
        caption = "How often it is right at each confidence: on the line, it is honest."
        shown.append((caption, _reliability(case)))
    if is_unit(judged.outcomes):
        at_all = ThresholdDisplay(judged.curve, threshold=case.threshold)
        shown.append(("What every threshold would give.", _image(at_all)))
    return shown


def _reliability(case: Case) -> str:
    """Return the reliability diagram, before and after the policy's calibration."""
    ax = None
    for state, outcomes in honest_states(case):
        display = ReliabilityDisplay.of(outcomes, name=state)
        ax = display.plot(ax).ax_
    return _encoded(display.figure_)


def _together(cases: tuple[Case, ...]) -> str:
    """Return all risk-coverage curves in one picture."""
    ax = None
    for case in cases:
        shown = RiskCoverageDisplay(case.judged.curve, name=case.name)
        ax = shown.plot(ax).ax_
    return _encoded(shown.figure_)


def _image(display: Any) -> str:
    """Draw and return a picture as a data address."""
    return _encoded(display.plot().figure_)


def _encoded(figure: Any) -> str:
    plt = check.import_extra("matplotlib.pyplot", "matplotlib", "report")
    held = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a letter that the font lacks is drawn as a box
        figure.savefig(held, format="svg", metadata={"Date": None})
    plt.close(figure)
    return "data:image/svg+xml;base64," + base64.b64encode(held.getvalue()).decode("ascii")


def _number(value: Any) -> str:
    """Return a number with four digits, nothing where there is none."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(
        value, int) and not isinstance(value, bool) else str(value)  # fmt: skip


def _percent(value: Any) -> str:
    return "" if value is None else f"{100 * value:.4g} %"
