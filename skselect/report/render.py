"""A report as text for the terminal, and as a web page."""

from __future__ import annotations

import base64
import io
import textwrap
import warnings
from collections.abc import Callable
from functools import partial
from importlib import resources
from typing import Any

import pandas as pd

from skselect._lib.files import import_extra
from skselect._lib.notebook import VERDICTS, show_card, wrap
from skselect.display import (
    ConfidenceHistogramDisplay,
    ReliabilityDisplay,
    ThresholdDisplay,
    WorkloadDisplay,
)
from skselect.display.common import new_figure
from skselect.display.risk_coverage import RiskCoverageDisplay
from skselect.policy.policy import AbstentionPolicy
from skselect.report.data import LEAST_LEVEL, Case, find_claims, is_unit
from skselect.report.explorer import make_explorer
from skselect.report.questions import show_share
from skselect.report.sections import (
    EXPLORER,
    FOOTNOTE,
    Section,
    describe_model,
    describe_rows,
    make_comparison,
    make_sections,
)

# Inches, so that letters are readable where a picture is as wide as a phone.
_SIZE = (4.4, 3.6)
# The colours of what a report says where it checks nothing.
_TONES = {"certified": "good", "nothing": "open"}
# Letters in a line of such a picture: above or below it, and beside its axis.
_LEGEND, _LABEL = 48, 28


def render_text(contents: dict[str, Any], *, brief: bool = False) -> str:
    """Return a report as text; a brief one ends with what a risk target costs."""
    parts = [_underline(contents["title"], "="), wrap(describe_rows(contents))]
    comparison = make_comparison(contents)
    parts += [] if comparison is None else _write_section(comparison)
    for model in contents["models"].values():
        parts.append(_underline(model["name"], "-"))
        parts += [] if model["verdict"] is None else [wrap(model["verdict"]["text"])]
        parts.append(wrap("\n".join(describe_model(model, contents["confidence_level"]))))
        for section in make_sections(model, contents["confidence_level"]):
            parts += _write_section(section) if section.key == "workload" or not brief else []
    return "\n\n".join([*parts, wrap(FOOTNOTE)])


def _underline(title: str, line: str) -> str:
    return f"{title}\n{line * len(title)}"


def _write_section(section: Section) -> list[str]:
    """Return the paragraphs of a section; without a word in it there are none."""
    quotes = [f"[{name}] {quote}" if name else quote for name, quote in section.quotes.items()]
    tables = [f"{title}\n{table}".lstrip("\n") for title, table in section.tables.items()]
    note = [wrap(section.note)] if section.note else []
    parts = [*(["\n".join(map(wrap, section.said))] if section.said else []), *tables, *quotes]
    return [f"{section.title}\n{parts[0]}", *parts[1:], *note] if parts else []


def render_page(
    contents: dict[str, Any], cases: tuple[Case, ...], *, interactive: bool = False
) -> str:
    """Return a report as a web page, with a slider for the threshold where it is interactive."""
    jinja2 = import_extra("jinja2", "jinja2")
    source = resources.files("skselect.report").joinpath("report.html.jinja").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    level = contents["confidence_level"]
    plt = import_extra("matplotlib.pyplot", "matplotlib")
    with plt.style.context("default"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # about letters that the font lacks
        models = [
            _show_model(model, case, level, interactive=interactive)
            for model, case in zip(contents["models"].values(), cases, strict=True)
        ]
        curves = [RiskCoverageDisplay(case.scored.curve, name=case.name).plot for case in cases]
        caption = "Lower is better. From left to right a model accepts more rows."
        together = [_draw(caption, *curves)] if len(cases) > 1 else []
    with pd.option_context("display.max_colwidth", None):
        page = environment.from_string(source).render(
            title=contents["title"], rows=describe_rows(contents), models=models,
            comparison=make_comparison(contents), together=together, footnote=FOOTNOTE,
            interactive=any(model["explorer"] for model in models),
        )  # fmt: skip
    return str(page).replace(" %", "\N{NO-BREAK SPACE}%")


def _show_model(
    model: dict[str, Any], case: Case, level: float, *, interactive: bool
) -> dict[str, Any]:
    """Return what the page shows of one model."""
    explorer = make_explorer(case, level) if interactive else None
    return {
        "name": model["name"],
        "verdict": _show_verdict(model),
        "certificates": "" if case.policy is None else _show_certificates(case.policy),
        "said": describe_model(model, level),
        "explorer": explorer,
        "sections": [*([EXPLORER] if explorer else []), *make_sections(model, level)],
        "pictures": _draw_pictures(case, level),
    }


def _show_verdict(model: dict[str, Any]) -> str:
    """Return the verdict on a policy as HTML, "" without one."""
    verdict, decided = model["verdict"], model["decisions"]
    if verdict is None:
        return ""
    numbers = {}
    if decided:
        numbers = {
            "answered": show_share(decided["coverage"]),
            "wrong among them": "" if decided["risk"] is None else show_share(decided["risk"]),
            "cases for a person": f"{decided['n_rows'] - decided['n_accepted']:,}",
        }
    word = verdict["verdict"]
    return show_card(verdict["text"], _TONES.get(word) or VERDICTS[word][1], numbers)


def _show_certificates(policy: AbstentionPolicy) -> str:
    """Return the certificates of a policy as HTML, "" without any."""
    return policy.parts.show()


def _draw_pictures(case: Case, level: float) -> dict[str, list[tuple[str, str]]]:
    """Return the plots of one model with their captions, by the section that shows them."""
    curve, outcomes, threshold = case.scored.curve, case.scored.outcomes, case.threshold
    marks: dict[str, Any] = {"threshold": threshold, "confidence_level": level}
    if not curve.counted or curve.is_graded:
        marks["confidence_level"] = None
    pictures = [
        _draw(
            "The share of errors among accepted rows, from the most confident rows to all.",
            RiskCoverageDisplay(curve, **marks).plot,
        ),
        _draw(
            "How confident its right and its wrong answers are.",
            partial(ConfidenceHistogramDisplay.from_outcomes, outcomes, threshold=threshold),
        ),
    ]
    if is_unit(case.scored.by_correctness.outcomes):
        states = [
            partial(ReliabilityDisplay.from_outcomes, rows.outcomes, name=state)
            for state, rows in find_claims(case)
        ]
        caption = "How often it is right at each confidence; on the line it is calibrated."
        pictures.append(_draw(caption, *states))
    if is_unit(outcomes):
        metrics = ThresholdDisplay(curve, **marks)
        pictures.append(_draw("Coverage and metrics at every threshold.", metrics.plot))
    sure = level if curve.counted and level >= LEAST_LEVEL else None
    work = WorkloadDisplay(curve, threshold=threshold, name="estimate", confidence_level=sure)
    deferrals = _draw("Deferrals per 1,000 cases at each risk target.", work.plot)
    return {"pictures": pictures, "workload": [deferrals]}


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
    held = io.BytesIO()
    ax.figure.savefig(held, format="svg", metadata={"Date": None})
    plt.close(ax.figure)
    return "data:image/svg+xml;base64," + base64.b64encode(held.getvalue()).decode("ascii")
