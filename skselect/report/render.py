"""A report as text for the terminal, and as a web page."""

from __future__ import annotations

import base64
import io
import warnings
from importlib import resources
from typing import Any

import pandas as pd

from skselect._files import import_extra
from skselect._notebook import count, unwrap, wrap
from skselect.display import (
    ConfidenceHistogramDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    ThresholdDisplay,
    WorkloadDisplay,
)
from skselect.policy.certificate import percent, rounded
from skselect.report.data import LEAST_LEVEL, Case, find_claims, is_unit

_CALIBRATION = (
    "state", "mean_confidence", "accuracy", "csr_p_value", "ece", "smooth_ece", "top_label_brier",
    "csr",
)  # fmt: skip

_ROWS = {"all": "always answering", "accepted": "accepted cases"}
WORKLOAD_TITLE = "What does a risk target cost? Cases handed over per 1,000"
_RATES = {
    "missed": "missed", "sensitivity": "sensitivity", "specificity": "specificity", "PPV": "ppv",
    "NPV": "npv",
}  # fmt: skip


def render_text(contents: dict[str, Any]) -> str:
    """Return a report as text."""
    classes = ", ".join(f"{name}: {n:,}" for name, n in contents["classes"].items())
    parts = [
        f"{contents['title']}\n{'=' * len(contents['title'])}",
        wrap(f"{count(contents['n_rows'], 'row')}; classes {classes}"),
    ]
    for name, model in contents["models"].items():
        parts += _describe_model(name, model, contents["confidence_level"])
    if contents["comparison"]:
        parts.append(
            "Comparison by AUGRC, the best first; p-values adjusted by Holm\n"
            + wrap(contents["best"])
        )
        parts.append(format_table(contents["comparison"]))
    return "\n\n".join(parts)


def _describe_model(name: str, model: dict[str, Any], level: float) -> list[str]:
    parts = [
        f"{name}\n{'-' * len(name)}",
        describe_accuracy(model),
    ]
    decided = model["decisions"]
    if decided is not None:
        parts.append(wrap(describe_decisions(decided, level)))
    if model["certificate"]:
        if model["certificate"]["notice"]:
            parts.append(wrap(model["certificate"]["notice"]))
        parts.append(describe_origin(model["certificate"]))
        for key, text in model["certificate"]["texts"].items():
            parts.append(f"[{key}] {text}" if key else text)
    parts.append(format_table(model["metrics"], ["metric", "value", "low", "high", "better"]))
    tables = [f"{title}\n{format_table(rows)}" for title, rows in tabulate_classes(model)]
    parts += [*tables[:-1], f"{tables[-1]}\n{wrap(describe_classes(level))}"]
    parts.append(
        f"{WORKLOAD_TITLE}\n{format_table(tabulate_workload(model, level))}\n"
        f"{wrap(describe_workload(model, level))}"
    )
    parts.append("If it accepts only its surest rows\n" + format_table(model["coverages"]))
    if model["calibration"]:
        answers = "\n".join(map(describe_answer, model["calibration"]))
        table = format_table(model["calibration"], list(_CALIBRATION))
        parts.append(f"Is the confidence honest?\n{wrap(answers)}\n\n{table}")
    if model["subgroups"]:
        wanted = ["attribute", "subgroup", "n_rows", "coverage", "risk", "low", "high"]
        parts.append("Subgroups\n" + format_table(model["subgroups"], wanted))
    if model["errors"]:
        first = model["errors"][0]
        known = [name for name in ("id", "row", "true", "answered", "confidence") if name in first]
        rows = [_as_text({**row["features"], **row}) for row in model["errors"]]
        wanted = [*known, *first["features"]]
        parts.append("Most confident errors\n" + format_table(rows, list(dict.fromkeys(wanted))))
    return parts


def _as_text(row: dict[str, Any]) -> dict[str, Any]:
    """Return labels and features as text, so that only the report's own numbers are rounded."""
    own = ("row", "confidence")
    return {name: value if name in own else str(value) for name, value in row.items()}


def describe_origin(certificate: dict[str, Any]) -> str:
    """Say which rows a certificate is about."""
    if certificate["same_rows"]:
        return "These rows chose the threshold; only the certificate says what to expect of others."
    rows = "" if certificate["n"] is None else f" with {count(certificate['n'], 'row')}"
    promised = " Its certificate is about those rows:" if certificate["texts"] else ""
    return f"The policy was made on {certificate['created'][:10]}{rows}.{promised}"


def describe_accuracy(model: dict[str, Any]) -> str:
    """Say how often it is right if it never abstains."""
    return (
        f"Always answering, it is right in {_percent(model['accuracy'])} of the rows "
        f"({count(model['n_errors'], 'error')})."
    )


def describe_answer(calibration: dict[str, Any]) -> str:
    """Say whether the confidence is honest: as given, or before and after the calibration."""
    state, answer = calibration["state"], calibration["answer"]
    return str(answer) if state == "as given" else f"{state.capitalize()}: {answer}"


def describe_decisions(decided: dict[str, Any], level: float) -> str:
    """Say how much is accepted and how much of that is wrong."""
    if not decided["n_accepted"]:
        return f"It decides none of the {count(decided['n_rows'], 'row')} alone."
    interval = ""
    if decided["low"] is not None:
        interval = (
            f" ({_percent(level)} interval {_percent(decided['low'], up=False)} to "
            f"{_percent(decided['high'], up=True)})"
        )
    cost = f"; they cost {decided['mean_cost']:.4g} each" if "mean_cost" in decided else ""
    return (
        f"It decides {_percent(decided['coverage'])} of the rows alone "
        f"({decided['n_accepted']:,}), "
        f"{_percent(decided['risk'])} of them wrongly{interval}{cost}."
    )


def tabulate_classes(model: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the tables about the classes, each with its title; all cells are text or counts."""
    by_class = model["by_class"]
    confusion, rates = by_class["confusion"], by_class["rates"]
    which = "" if by_class["n_classes"] == len(rates) else (
        f" (of {by_class['n_classes']:,} classes the {len(rates)} that are missed most often)"
    )  # fmt: skip
    answers = [
        {"true class": name} | dict(zip(confusion["answers"], counts, strict=True))
        for name, counts in zip(confusion["true"], confusion["counts"], strict=True)
    ]
    title = "its answers" if model["decisions"] is None else "what it decides alone"
    return [
        (f"By class: {title}{which}", answers),
        ("How many of each class are missed", list(map(_tabulate_missed, rates))),
        ("How far each answer can be relied on", [
            row for one in rates for row in _tabulate_rates(one)
        ]),
    ]  # fmt: skip


def _tabulate_missed(one: dict[str, Any]) -> dict[str, Any]:
    """Return how many cases of a class get another answer, always answering and abstaining."""
    always = one["all"]["missed"]
    row = {"class": one["class"], "cases": always["n_rows"]}
    if "accepted" not in one:
        return row | {"missed": always["n_hits"]}
    return row | {
        "missed if always answering": always["n_hits"],
        "handed over": always["n_rows"] - one["accepted"]["sensitivity"]["n_rows"],
        "missed alone": one["accepted"]["missed"]["n_hits"],
    }


def _tabulate_rates(one: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rates of a class, always answering and abstaining, a row per rate."""
    return [
        {"class": one["class"], "share": name}
        | {words: _share(one[rows][key]) for rows, words in _ROWS.items() if rows in one}
        for name, key in _RATES.items()
    ]


def _share(rate: dict[str, Any]) -> str:
    """Return a share with its interval, "" where there are no rows."""
    if rate["value"] is None:
        return ""
    low, high = rounded(100 * rate["low"], 3, up=False), rounded(100 * rate["high"], 3, up=True)
    return f"{_percent(rate['value'])} ({low} to {high})"


def describe_classes(level: float) -> str:
    """Say what the shares of each class are shares of."""
    return (
        "Missed: cases of the class that get another answer, as a share of all its cases, those "
        "handed over included. The other shares of accepted cases are of what it decides alone. "
        "Sensitivity: cases of the class that get this answer; specificity: other cases that do "
        "not; PPV: answers with the class that are right; NPV: other answers that are right not "
        f"to name it. In brackets: exact {percent(level)} intervals, each on its own."
    )


def tabulate_workload(model: dict[str, Any], level: float) -> list[dict[str, Any]]:
    """Return what is handed over at each target; all cells are text."""
    return [
        {
            "risk target": percent(row["target"]),
            "handed over": f"{row['handed_over']:,.0f}",
            f"with {percent(level)} confidence": ""
            if row["handed_over_surely"] is None
            else f"{row['handed_over_surely']:,.0f}",
            "wrong here": "" if row["risk"] is None else _percent(row["risk"]),
            "from confidence": "" if row["threshold"] is None else f"{row['threshold']:.4g}",
        }
        for row in model["workload"]["targets"]
    ]


def describe_workload(model: dict[str, Any], level: float) -> str:
    """Say what is handed over now, and what the numbers of the targets promise."""
    now = model["workload"]["handed_over_now"]
    first = "" if now is None else f"It now hands over {now:,.0f} of 1,000 cases. "
    return (
        f"{first}The lines are estimates: the threshold of each was chosen on these rows, so new "
        f"rows may show more errors. The numbers with {percent(level)} confidence hold for all "
        "targets at once, if these rows neither trained nor calibrated the model. A certificate "
        "for one target that is named before looking usually hands over fewer."
    )


def format_table(rows: list[dict[str, Any]], columns: list[str] | None = None) -> str:
    """Return rows as an aligned table."""
    table = pd.DataFrame(rows, columns=columns)
    return str(table.to_string(index=False, float_format=lambda v: f"{v:.4g}", na_rep=""))


def _percent(share: float, *, up: bool | None = None) -> str:
    return f"{rounded(100 * share, 3, up=up)} %"


def render_page(contents: dict[str, Any], cases: tuple[Case, ...]) -> str:
    """Return a report as a web page."""
    jinja2 = import_extra("jinja2", "jinja2", "report")
    source = resources.files("skselect.report").joinpath("report.html.jinja").read_text("utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "number": _number, "percent": _percent_cell, "decided": describe_decisions,
        "origin": describe_origin, "accuracy": describe_accuracy, "answer": describe_answer,
        "unwrap": unwrap, "class_tables": tabulate_classes, "workload_table": tabulate_workload,
        "explain_classes": describe_classes, "workload": describe_workload,
    }  # fmt: skip
    pictures = {case.name: _draw_pictures(case, contents["confidence_level"]) for case in cases}
    workloads = {case.name: _draw_workload(case, contents["confidence_level"]) for case in cases}
    together = _draw_together(cases) if len(cases) > 1 else None
    return str(
        environment.from_string(source).render(
            report=contents,
            pictures=pictures,
            together=together,
            workloads=workloads,
            workload_title=WORKLOAD_TITLE,
        )
    )


def _draw_pictures(case: Case, level: float) -> list[tuple[str, str]]:
    """Return the plots of one model with their captions."""
    curve, outcomes, threshold = case.judged.curve, case.judged.outcomes, case.threshold
    countable = curve.counted and not curve.is_graded
    risk = RiskCoverageDisplay(
        curve, threshold=threshold, confidence_level=level if countable else None
    )
    sure = ConfidenceHistogramDisplay.from_outcomes(outcomes, threshold=threshold)
    shown = [
        (
            "The share of errors among accepted rows, from the surest rows to all.",
            _encode_picture(risk.plot().figure_),
        ),
        ("Its confidence where it is right, and where it is wrong.", _encode_picture(sure.figure_)),
    ]
    if is_unit(case.judged.claimed.outcomes):
        caption = "How often it is right at each confidence; on the line it is calibrated."
        shown.append((caption, _draw_reliability(case)))
    if is_unit(outcomes):
        at_all = ThresholdDisplay(curve, threshold=threshold).plot()
        shown.append(("Coverage and metrics at every threshold.", _encode_picture(at_all.figure_)))
    return shown


def _draw_reliability(case: Case) -> str:
    """Return the reliability diagram, before and after the policy's calibration."""
    ax = None
    for state, outcomes in find_claims(case):
        ax = ReliabilityDisplay.from_outcomes(outcomes, name=state, ax=ax).ax_
    assert ax is not None  # there is at least one state
    return _encode_picture(ax.figure)


def _draw_workload(case: Case, level: float) -> str:
    """Return the hand-overs at each risk target."""
    curve = case.judged.curve
    sure = level if curve.counted and level >= LEAST_LEVEL else None
    shown = WorkloadDisplay(curve, threshold=case.threshold, name="estimate", confidence_level=sure)
    return _encode_picture(shown.plot().figure_)


def _draw_together(cases: tuple[Case, ...]) -> str:
    """Return all risk-coverage curves in one plot."""
    ax = None
    for case in cases:
        ax = RiskCoverageDisplay(case.judged.curve, name=case.name).plot(ax).ax_
    assert ax is not None  # there are at least two models
    return _encode_picture(ax.figure)


def _encode_picture(figure: Any) -> str:
    """Return a figure as a data URL, and close it."""
    plt = import_extra("matplotlib.pyplot", "matplotlib", "report")
    held = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # about letters that the font lacks
        figure.savefig(held, format="svg", metadata={"Date": None})
    plt.close(figure)
    return "data:image/svg+xml;base64," + base64.b64encode(held.getvalue()).decode("ascii")


def _number(value: Any) -> str:
    """Return a number with four digits, "" for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _percent_cell(value: Any) -> str:
    return "" if value is None else f"{100 * value:.4g} %"
