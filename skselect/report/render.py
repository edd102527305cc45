"""A report as text for the terminal, and as a web page."""

from __future__ import annotations

import base64
import io
import textwrap
import warnings
from collections.abc import Callable
from functools import partial
from html import escape
from importlib import resources
from typing import Any

import pandas as pd

from skselect._lib.files import import_extra
from skselect._lib.notebook import VERDICTS, show_card, wrap
from skselect.curve.curve import RiskCoverageCurve
from skselect.display import (
    ConfidenceHistogramDisplay,
    ReliabilityDisplay,
    ThresholdDisplay,
    WorkloadDisplay,
)
from skselect.display.common import new_figure
from skselect.display.risk_coverage import RiskCoverageDisplay
from skselect.report.data import LEAST_LEVEL, Case, find_claims, find_costs, is_unit
from skselect.report.explorer import make_explorer
from skselect.report.glance import draw, make_bars, make_figures
from skselect.report.sections import (
    EXPLORER,
    FOOTNOTE,
    Section,
    describe_model,
    describe_more,
    describe_rows,
    make_comparison,
    make_sections,
    make_title,
)

# Inches, so that letters are readable where a picture is as wide as a phone.
_SIZE = (4.4, 3.6)
# The colours of what a report says where it checks nothing.
_TONES = {"certified": "good", "nothing": "open"}
# What the first picture shows, where a page has lost its style.
_COLORS = {"right": "#0a58a8", "person": "#d1d9e0", "wrong": "#b34700"}
# Letters in a line of such a picture: above or below it, and beside its axis.
_LEGEND = 48
_LABEL = 28


def render_text(contents: dict[str, Any], *, brief: bool = False) -> str:
    """Return a report as text; a brief one ends with what a risk target costs."""
    parts = [_underline(make_title(contents), "="), wrap(describe_rows(contents))]
    comparison = make_comparison(contents)
    if comparison is not None:
        parts += _write_section(comparison)
    models = contents["models"].values()
    for model in models:
        if len(models) > 1:
            parts.append(_underline(model["name"], "-"))
        parts += _write_model(model, contents["confidence_level"], brief=brief)
    parts.append(wrap(FOOTNOTE))
    return "\n\n".join(parts)


def _write_model(model: dict[str, Any], level: float, *, brief: bool) -> list[str]:
    """Return the paragraphs about one model."""
    parts = []
    if model["verdict"] is not None:
        parts.append(wrap(model["verdict"]["text"]))
    parts.append(wrap("\n".join(describe_model(model, level))))
    for section in make_sections(model, level):
        if section.key == "workload" or not brief:
            parts += _write_section(section)
    return parts


def _underline(title: str, line: str) -> str:
    return f"{title}\n{line * len(title)}"


def _write_section(section: Section) -> list[str]:
    """Return the paragraphs of a section; without a word in it there are none."""
    parts = []
    if section.paragraphs:
        parts.append("\n".join(map(wrap, section.paragraphs)))
    for title, table in section.tables.items():
        parts.append(f"{title}\n{table}".lstrip("\n"))
    for name, quote in section.quotes.items():
        parts.append(f"[{name}] {quote}" if name else quote)
    if not parts:
        return []
    if section.note:
        parts.append(wrap(section.note))
    parts[0] = f"{section.title}\n{parts[0]}"
    return parts


def render_page(
    contents: dict[str, Any], cases: tuple[Case, ...], *, interactive: bool = False
) -> str:
    """Return a report as a web page, with a slider for the threshold where it is interactive."""
    jinja2 = import_extra("jinja2", "jinja2")
    source = resources.files("skselect.report").joinpath("report.html.jinja").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(source)
    level = contents["confidence_level"]
    plt = import_extra("matplotlib.pyplot", "matplotlib")
    with plt.style.context("default"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # about letters that the font lacks
        models = [
            _show_model(model, case, level, interactive=interactive)
            for model, case in zip(contents["models"].values(), cases, strict=True)
        ]
        together = _draw_comparison(cases)
    with pd.option_context("display.max_colwidth", None):
        page = template.render(
            title=make_title(contents),
            rows=describe_rows(contents),
            models=models,
            comparison=make_comparison(contents),
            together=together,
            footnote=FOOTNOTE,
            interactive=any(model["explorer"] for model in models),
            colors=_COLORS,
        )
    return str(page).replace(" %", "\N{NO-BREAK SPACE}%")


def _show_model(
    model: dict[str, Any], case: Case, level: float, *, interactive: bool
) -> dict[str, Any]:
    """Return what the page shows of one model."""
    sections = make_sections(model, level)
    explorer = None
    if interactive:
        explorer = make_explorer(case, level)
    if explorer:
        sections.insert(0, EXPLORER)
    return {
        "name": model["name"],
        "verdict": _show_verdict(model),
        "certificates": "" if case.policy is None else case.policy.parts.show(),
        "figures": make_figures(model, level),
        "glance": draw(make_bars(model)),
        "paragraphs": describe_more(model),
        "explorer": explorer,
        "sections": sections,
        "pictures": _draw_pictures(case, level),
    }


def _show_verdict(model: dict[str, Any]) -> str:
    """Return the verdict on a policy as HTML, "" without one."""
    verdict = model["verdict"]
    if verdict is None:
        return ""
    word = verdict["verdict"]
    tone = _TONES.get(word)
    if tone is None:
        _, tone = VERDICTS[word]
    answer, *lines = verdict["text"].split("\n")
    n_guarantees = verdict["n_guarantees"]
    if len(lines) < n_guarantees or n_guarantees < 2:
        return show_card(verdict["text"], tone)
    others = lines[n_guarantees:]
    card = show_card("\n".join([answer, *others]), tone)
    paragraphs = [f"<p>{escape(line)}</p>" for line in lines[:n_guarantees]]
    summary = f"<summary>Each of the {n_guarantees} guarantees</summary>"
    return f"{card}<details>{summary}{''.join(paragraphs)}</details>"


# Pictures ---------------------------------------------------------------------------------


def _draw_comparison(cases: tuple[Case, ...]) -> list[tuple[str, str]]:
    """Return the curves of several models in one picture, none for one model."""
    if len(cases) < 2:
        return []
    caption = "Lower is better. From left to right a model accepts more rows."
    curves = [RiskCoverageDisplay(case.scored.curve, name=case.name).plot for case in cases]
    return [_draw(caption, *curves)]


def _draw_pictures(case: Case, level: float) -> dict[str, list[tuple[str, str]]]:
    """Return the plots of one model with their captions, by the section that shows them."""
    curve = case.scored.curve
    has_intervals = curve.counted and not curve.is_graded
    level_of_intervals = level if has_intervals else None
    pictures = [_draw_risk(case, level_of_intervals), _draw_confidences(case)]
    if is_unit(case.scored.by_correctness.outcomes):
        pictures.append(_draw_reliability(case))
    if is_unit(case.scored.outcomes):
        pictures.append(_draw_metrics(case, level_of_intervals))
    if case.has_costs:
        return {"pictures": pictures, "workload": [_draw_costs(case)]}
    return {"pictures": pictures, "workload": [_draw_workload(case, level)]}


def _draw_risk(case: Case, level: float | None) -> tuple[str, str]:
    display = RiskCoverageDisplay(
        case.scored.curve, threshold=case.threshold, confidence_level=level
    )
    caption = "The share of errors among accepted rows, from the most confident rows to all."
    return _draw(caption, display.plot)


def _draw_costs(case: Case) -> tuple[str, str]:
    curve = RiskCoverageCurve.from_outcomes(find_costs(case))
    unit = case.scored.predictions.rule.unit
    display = RiskCoverageDisplay(curve, threshold=case.threshold, loss="cost", unit=unit)
    return _draw("What an answer costs, from the most confident rows to all.", display.plot)


def _draw_confidences(case: Case) -> tuple[str, str]:
    plot = partial(
        ConfidenceHistogramDisplay.from_outcomes, case.scored.outcomes, threshold=case.threshold
    )
    return _draw("How confident its right and its wrong answers are.", plot)


def _draw_reliability(case: Case) -> tuple[str, str]:
    states = [
        partial(ReliabilityDisplay.from_outcomes, rows.outcomes, name=state)
        for state, rows in find_claims(case)
    ]
    caption = "How often it is right at each confidence; on the line it is calibrated."
    return _draw(caption, *states)


def _draw_metrics(case: Case, level: float | None) -> tuple[str, str]:
    display = ThresholdDisplay(case.scored.curve, threshold=case.threshold, confidence_level=level)
    return _draw("Coverage and metrics at every threshold.", display.plot)


def _draw_workload(case: Case, level: float) -> tuple[str, str]:
    curve = case.scored.curve
    has_bounds = curve.counted and level >= LEAST_LEVEL
    display = WorkloadDisplay(
        curve,
        threshold=case.threshold,
        name="estimate",
        confidence_level=level if has_bounds else None,
    )
    return _draw("Deferrals per 1,000 cases at each risk target.", display.plot)


def _draw(caption: str, *plots: Callable[..., Any]) -> tuple[str, str]:
    """Return a caption, and all of these plots on the same axes."""
    ax = new_figure(size=_SIZE)
    for plot in plots:
        plot(ax=ax)
    return caption, _encode_picture(ax)


def _encode_picture(ax: Any) -> str:
    """Return the figure of axes as a data URL, its legend above the axes, and close it."""
    plt = import_extra("matplotlib.pyplot", "matplotlib")
    handles, labels = ax.get_legend_handles_labels()
    if labels:
        ax.get_legend().remove()
        ncols = 1 if len(labels) < 4 else 2
        wrapped = [textwrap.fill(label, _LEGEND // ncols) for label in labels]
        ax.figure.legend(handles, wrapped, frameon=False, loc="outside upper left", ncols=ncols)
    if ax.get_xscale() == "linear":
        ax.locator_params(axis="x", nbins=6)
    ax.set_xlabel(textwrap.fill(ax.get_xlabel(), _LEGEND))
    ax.set_ylabel(textwrap.fill(ax.get_ylabel(), _LABEL))
    buffer = io.BytesIO()
    ax.figure.savefig(buffer, format="svg", metadata={"Date": None})
    plt.close(ax.figure)
    encoded = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/svg+xml;base64,{encoded}"
