"""What a report shows, in its order: the same for text and for the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd

from skselect._lib.notebook import count, percent
from skselect._lib.table import WholeTable
from skselect.metrics._evaluate import SPECS
from skselect.report.glance import UNKNOWN_MODEL, describe_costs, make_figures, outwards
from skselect.report.questions import show_amount, show_number, show_p_value, show_share

# A column of a table: its heading, its key in the rows, and how a value is written.
_Column = tuple[str, str, Callable[[Any], str]]


def number(value: Any) -> str:
    """Return a number with four digits, a count with all, and text as it is."""
    if isinstance(value, float):
        return show_number(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def make_table(rows: list[dict[str, Any]], *columns: _Column) -> WholeTable:
    """Return rows as text; each column is (heading, key, how a value is written).

    The first column names the rows. A cell without a value is empty.
    """
    title, *headings = (heading for heading, _, _ in columns)
    names = []
    cells = []
    for row in rows:
        name, *texts = (_write(row[key], show) for _, key, show in columns)
        names.append(name)
        cells.append(texts)
    index = pd.Index(names, dtype=object)
    return WholeTable(cells, index, pd.Index(headings, name=title), dtype=object)


def _write(value: Any, show: Callable[[Any], str]) -> str:
    return "" if value is None else show(value)


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Parameters
    ----------
    key : str
        Its anchor; pictures are found by it.
    title : str
    paragraphs : list of str, default=[]
        Before the tables.
    tables : dict of str to WholeTable, default={}
        Each with its title, "" where that of the section says it all.
    quotes : dict of str to str, default={}
        Texts below the tables, quoted line by line, each with the name of what it is about.
    note : str, default=""
        What explains the tables.
    """

    key: str
    title: str
    paragraphs: list[str] = field(default_factory=list)
    tables: dict[str, WholeTable] = field(default_factory=dict)
    quotes: dict[str, str] = field(default_factory=dict)
    note: str = ""


# Classes in the title, and in the line below it.
_MOST_IN_TITLE = 3
_LONGEST_NAMES = 60
_MOST_CLASSES = 10

# The columns of an interval.
_ENDS: tuple[_Column, ...] = (("low", "low", show_share), ("high", "high", show_share))


# The whole report -------------------------------------------------------------------------


def describe_rows(contents: dict[str, Any]) -> str:
    """Say what a report rests on."""
    kind = "class " if _have_classes(contents) else ""
    sizes = [f"{kind}{name}: {n:,}" for name, n in contents["classes"].items()]
    n_more = len(sizes) - _MOST_CLASSES
    if n_more > 0:
        sizes[_MOST_CLASSES:] = [f"and {n_more:,} more"]
    rows = f"{count(contents['n_rows'], 'row')} ({', '.join(sizes)})"
    names = [model["name"] for model in contents["models"].values()]
    if len(names) == 1 and names != [UNKNOWN_MODEL]:
        rows = f"{names[0]} on {rows}"
    level = show_share(contents["confidence_level"])
    created = contents["created"][:16].replace("T", " ")
    return f"{rows}; each single interval has {level} confidence; made on {created}"


def make_title(contents: dict[str, Any]) -> str:
    """Return the user's title, or what the rows are."""
    if contents["title"] is not None:
        return contents["title"]
    n_rows = contents["n_rows"]
    if not _have_classes(contents):
        return count(n_rows, "judged answer")
    classes = list(contents["classes"])
    cases = count(n_rows, "case")
    names = " or ".join(classes)
    if len(classes) > _MOST_IN_TITLE or len(names) > _LONGEST_NAMES:
        return f"{cases} of {len(classes):,} classes"
    if not names[:1].isalpha():
        names = f"class {names}"
    return f"{cases}: {names}"


def _have_classes(contents: dict[str, Any]) -> bool:
    """Tell whether the rows have classes; judged answers are only right or wrong."""
    return any(model["by_class"] for model in contents["models"].values())


def make_comparison(contents: dict[str, Any]) -> Section | None:
    """Return the comparison of several models, None for one."""
    comparison = contents["comparison"]
    if not comparison:
        return None
    words = {None: "", True: "could be", False: "no"}
    rows = [row | {"as_good": words[row["tied_with_best"]]} for row in comparison]
    table = make_table(
        rows,
        ("Model", "model", str),
        ("AUGRC", "estimate", show_share),
        *_ENDS,
        ("above the best", "difference", show_share),
        ("p", "p_value", show_p_value),
        ("as good?", "as_good", str),
    )
    note = (
        "AUGRC is the mean rate of silent errors over all coverages; lower is better. "
        "P-values test each model against the best, paired by row, adjusted by Holm. They do not "
        "include how much the models would change if they were trained again."
    )
    return Section("comparison", "Comparison by AUGRC", [contents["best"]], {"": table}, note=note)


# Classes in the sentence about missed cases, those missed most often; the tables have more.
_MOST_IN_WORDS = 2
_ROWS = {"all": "always answering", "accepted": "accepted cases"}
_RATES = ("missed", "sensitivity", "specificity", "PPV", "NPV")
FOOTNOTE = (
    "A row whose confidence equals the threshold is accepted. The share that is wrong among "
    "accepted rows is the selective risk."
)

#: The slider of a page.
EXPLORER = Section("explorer", "Choose a threshold")

# One model --------------------------------------------------------------------------------


def describe_model(model: dict[str, Any], level: float) -> list[str]:
    """Say how much is answered, how much of that is wrong, and what waits for people."""
    figures = make_figures(model, level)
    return [*map(str, figures), *describe_more(model)]


def describe_more(model: dict[str, Any]) -> list[str]:
    """Say what the three numbers leave out: costs, what is missed, and always answering."""
    lines = []
    if model["columns"]:
        lines.append(model["columns"])
    lines += describe_costs(model)
    if model["by_class"]:
        lines += describe_missed(model["by_class"])
    else:
        lines.append(describe_wrong(model))
    if model["decisions"] is not None:
        accuracy = show_share(model["accuracy"])
        errors = count(model["n_errors"], "error")
        lines.append(f"Without abstaining, {accuracy} of the answers would be right ({errors}).")
    return lines


def describe_wrong(model: dict[str, Any]) -> str:
    """Say how many answers are wrong by their verdicts, and how many of these are accepted."""
    wrong = f"{model['n_errors']:,} of {count(model['n_rows'], 'answer')} are wrong"
    decided = model["decisions"]
    if decided is None:
        return f"{wrong}."
    return f"{wrong}, {decided['n_errors']:,.0f} of them accepted."


def describe_missed(by_class: dict[str, Any]) -> list[str]:
    """Say how many cases of the classes that are missed most often get another answer."""
    start = ""
    verb = " missed"
    if by_class["n_classes"] > _MOST_IN_WORDS:
        start = "Missed most often: "
        verb = ""
    shares = []
    counts = []
    for rates in by_class["rates"]:
        missed = rates.get("accepted", rates["all"])["missed"]
        if missed["n_rows"]:
            shares.append(missed["value"])
            counts.append(_count_missed(rates, verb))
    if not counts:
        return []
    worst = sorted(range(len(shares)), key=lambda k: shares[k], reverse=True)
    words = "; ".join(counts[k] for k in worst[:_MOST_IN_WORDS])
    sentence = f"{start}{words}."
    return [sentence[0].upper() + sentence[1:]]


def _count_missed(rates: dict[str, Any], verb: str) -> str:
    """Say how many cases of one class get another answer."""
    always = rates["all"]["missed"]
    if "accepted" not in rates:
        return f"class {rates['class']}: {always['n_hits']:,} of {always['n_rows']:,}{verb}"
    missed = rates["accepted"]["missed"]
    return (
        f"class {rates['class']}: {missed['n_hits']:,} of {missed['n_rows']:,}{verb} "
        f"({always['n_hits']:,} if it always answered)"
    )


def make_sections(model: dict[str, Any], level: float) -> list[Section]:
    """Return what is shown of one model, in this order; what is missing or empty is left out."""
    makers: dict[str, Callable[[dict[str, Any]], Section]] = {
        "workload": partial(_show_workload, level=level),
        "certificate": _show_certificate,
        "subgroups": _show_subgroups,
        "pictures": lambda _: Section("pictures", "In pictures"),
        "by_class": partial(_show_classes, level=level),
        "coverages": _show_coverages,
        "metrics": _show_metrics,
        "calibration": _show_calibration,
        "errors": _show_errors,
    }
    return [make(model) for key, make in makers.items() if model.get(key, True)]


def _show_certificate(model: dict[str, Any]) -> Section:
    certificate = model["certificate"]
    lines = [_describe_origin(certificate)]
    tables = {}
    quotes = certificate["texts"]
    by_subgroup = certificate["by_subgroup"]
    if by_subgroup:
        if by_subgroup["together"]:
            lines.append(by_subgroup["together"])
        tables[""] = _plain_table(by_subgroup["table"])
        quotes = by_subgroup["texts"]
    note = ""
    trust = model["verdict"]["trust"]
    if trust:
        note = f"The verdict at the top says whether these rows confirm it. {trust}"
    return Section("certificate", "The policy and its certificate", lines, tables, quotes, note)


def _describe_origin(certificate: dict[str, Any]) -> str:
    """Say which rows chose the threshold."""
    if certificate["same_rows"]:
        return "These rows chose the threshold; only the certificate says what to expect of others."
    origin = f"The policy was made on {certificate['created'][:10]}"
    if certificate["n"] is not None:
        origin += f" with {count(certificate['n'], 'row')}"
    if certificate["texts"]:
        return f"{origin}. Its certificate is about those rows:"
    return f"{origin}."


def _show_classes(model: dict[str, Any], level: float) -> Section:
    by_class = model["by_class"]
    rates = by_class["rates"]
    n_classes = by_class["n_classes"]
    answers = "its answers" if model["decisions"] is None else "answered cases"
    title = f"By class: {answers}"
    if n_classes > len(rates):
        title += f" (of {n_classes:,} classes the {len(rates)} that are missed most often)"
    shares = []
    for rates_of_class in rates:
        shares += _tabulate_rates(rates_of_class)
    tables = {
        "": _plain_table(_tabulate_answers(by_class["confusion"])),
        "How many of each class are missed": _plain_table(list(map(_tabulate_missed, rates))),
        "How far each answer can be relied on": _plain_table(shares),
    }
    return Section("by_class", title, tables=tables, note=_explain_classes(level))


def _show_workload(model: dict[str, Any], level: float) -> Section:
    targets = model["workload"]["targets"]
    title = "What does a risk target cost? Cases deferred per 1,000"
    columns: list[_Column] = [
        ("target", "target", percent),
        ("deferred", "deferred", _write_deferred),
        (f"{percent(level)} sure", "deferred_surely", _write_deferred),
        ("hours", "hours", show_amount),
        ("cost", "cost", show_amount),
        ("wrong here", "risk", show_share),
        ("with reviewer", "together", show_share),
        ("threshold", "threshold", number),
    ]
    if model["workload"]["in_costs"]:
        title = "What does a limit on the cost take? Cases deferred per 1,000"
        columns = [
            ("mean cost", "target", number),
            ("deferred", "deferred", _write_deferred),
            ("hours", "hours", show_amount),
            ("review costs", "cost", show_amount),
            ("errors cost", "errors_cost", show_amount),
            ("threshold", "threshold", number),
        ]
    measured = [column for column in columns if targets and column[1] in targets[0]]
    table = make_table(targets, *measured)
    return Section("workload", title, tables={"": table}, note=_explain_workload(model, level))


def _write_deferred(n_deferred: float) -> str:
    """Return how many of 1,000 cases are deferred; where all are, no threshold keeps the target."""
    return "all" if n_deferred >= 1000 else f"{n_deferred:,.0f}"


def _plain_table(rows: list[dict[str, Any]]) -> WholeTable:
    """Return rows of counts and texts as a table."""
    title, *headings = rows[0]
    return make_table(rows, (title, title, str), *((name, name, number) for name in headings))


def _tabulate_answers(confusion: dict[str, Any]) -> list[dict[str, Any]]:
    """Return how many cases of each class get which answer."""
    answers = confusion["answers"]
    lines = zip(confusion["true"], confusion["counts"], strict=True)
    return [
        {"true class": name} | dict(zip(answers, counts, strict=True)) for name, counts in lines
    ]


def _tabulate_missed(rates: dict[str, Any]) -> dict[str, Any]:
    """Return how many cases of a class get another answer, always answering and abstaining."""
    always = rates["all"]["missed"]
    row = {"class": rates["class"], "cases": always["n_rows"]}
    if "accepted" not in rates:
        return row | {"missed": always["n_hits"]}
    answered = rates["accepted"]["sensitivity"]
    row["missed if always answering"] = always["n_hits"]
    row["deferred"] = always["n_rows"] - answered["n_rows"]
    row["still missed"] = rates["accepted"]["missed"]["n_hits"]
    return row


def _tabulate_rates(rates: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rates of a class, always answering and abstaining, a row per rate."""
    table = []
    for name in _RATES:
        row = {"class": f"{rates['class']}: {name}"}
        for rows, heading in _ROWS.items():
            if rows in rates:
                row[heading] = _with_interval(rates[rows][name.lower()])
        table.append(row)
    return table


def _with_interval(rate: dict[str, Any]) -> str:
    """Return a share with its interval, "" where there are no rows."""
    if rate["value"] is None:
        return ""
    low, high = outwards(rate)
    return f"{show_share(rate['value'], 3)} ({low} to {high})"


def _explain_classes(level: float) -> str:
    """Say what the shares of each class are shares of."""
    return (
        "Missed: cases of the class that get another answer, as a share of all its cases, those "
        "deferred included. The other shares of accepted cases count answered cases only. "
        "Sensitivity: cases of the class that get this answer; specificity: other cases that do "
        "not; PPV: answers with the class that are right; NPV: other answers that are right not "
        f"to name it. In brackets: exact {percent(level)} intervals, each by itself."
    )


def _explain_workload(model: dict[str, Any], level: float) -> str:
    """Say what is deferred now, and what the numbers of the targets guarantee."""
    workload = model["workload"]
    sentences = []
    if workload["answer"]:
        sentences.append(workload["answer"])
    if workload["deferred_now"] is not None:
        sentences.append(f"It now defers {workload['deferred_now']:,.0f} of 1,000 cases.")
    if workload["capacity"] is not None:
        sentences.append(
            f"Plan for {workload['capacity']:,} reviews per 1,000 cases; an estimated 95 % of "
            "batches need no more."
        )
    sentences.append(
        "Each line is an estimate. Its threshold was chosen on these same rows, so new "
        "rows may show more errors. Where all are deferred, no threshold keeps the target."
    )
    if workload["in_costs"]:
        sentences.append(
            "Errors cost so much per 1,000 cases, if a person who is always right decides those "
            "deferred."
        )
        return " ".join(sentences)
    sentences.append(
        f"The numbers that are {percent(level)} sure hold for all targets at once, if these rows "
        "neither trained nor calibrated the model. A certificate for one target that is named "
        "before looking usually defers fewer."
    )
    return " ".join(sentences)


def _show_coverages(model: dict[str, Any]) -> Section:
    table = make_table(
        model["coverages"],
        ("Accepted", "coverage", show_share),
        ("wrong among them", "risk", show_share),
        ("lowest confidence", "threshold", number),
    )
    return Section("coverages", "If it accepts only its most confident rows", tables={"": table})


def _show_metrics(model: dict[str, Any]) -> Section:
    metrics = model["metrics"]
    columns: list[_Column] = [
        (key.capitalize(), key, str) for key in ("metric", "value", "low", "high", "better")
    ]
    table = make_table([_write_metric(metric) for metric in metrics], *columns)
    lines = [f"{metric['metric']}: {metric['meaning']}" for metric in metrics]
    return Section("metrics", "Metrics", lines, {"": table})


def _write_metric(metric: dict[str, Any]) -> dict[str, Any]:
    """Return a metric with its numbers as text."""
    is_number = "{number}" in SPECS[metric["metric"]].meaning
    show = number if is_number else show_share
    row = dict(metric)
    for key in ("value", "low", "high"):
        if row[key] is not None:
            row[key] = show(row[key])
    return row


def _show_calibration(model: dict[str, Any]) -> Section:
    states = model["calibration"]
    table = make_table(
        states,
        ("State", "state", str),
        ("claims", "mean_confidence", show_share),
        ("right", "accuracy", show_share),
        ("smooth ECE", "smooth_ece", show_share),
        ("ECE", "ece", show_share),
        ("Brier", "top_label_brier", number),
        ("CSR", "csr", number),
        ("p", "csr_p_value", show_p_value),
    )
    note = (
        "Where it is calibrated, answers that claim to be right with probability 0.9 are right in "
        "90 % of cases. CSR is about 1 for a calibrated confidence, and far above 1 where there "
        "are errors near certainty; p is the probability that a calibrated model has a CSR as "
        "large."
    )
    if model["costs"] is not None:
        note = f"The threshold is about expected costs, not about this claim. {note}"
    lines = [_describe_calibration(state) for state in states]
    return Section("calibration", "Is the confidence calibrated?", lines, {"": table}, note=note)


def _describe_calibration(calibration: dict[str, Any]) -> str:
    """Say whether the confidence is calibrated, before or after a calibration."""
    state = calibration["state"]
    if state == "as given":
        return calibration["answer"]
    return f"{state.capitalize()}: {calibration['answer']}"


def _show_subgroups(model: dict[str, Any]) -> Section:
    rows = []
    for subgroup in model["subgroups"]:
        name = f"{subgroup['attribute']}: {subgroup['subgroup']}"
        n_deferred = subgroup["n_rows"] - subgroup["n_accepted"]
        rows.append(subgroup | {"name": name, "left": n_deferred})
    table = make_table(
        rows,
        ("Subgroup", "name", str),
        ("rows", "n_rows", number),
        ("deferred", "left", number),
        ("accepted", "coverage", show_share),
        ("wrong among them", "risk", show_share),
        *_ENDS,
    )
    tables = {"": table}
    if model["gaps"]:
        tables["Largest difference between two"] = _tabulate_gaps(model["gaps"])
    return Section("subgroups", "Subgroups", tables=tables)


def _tabulate_gaps(gaps: list[dict[str, Any]]) -> WholeTable:
    """Return how far two subgroups differ."""
    words = {"coverage_gap": "accepted", "risk_gap": "wrong among them"}
    rows = [row | {"name": f"{row['attribute']}: {words[row['metric']]}"} for row in gaps]
    difference = ("largest difference", "value", show_share)
    return make_table(rows, ("Subgroup", "name", str), difference, *_ENDS)


def _show_errors(model: dict[str, Any]) -> Section:
    errors = model["errors"]
    columns: list[_Column] = [("Row (from 0)", "row", str)]
    if "id" in errors[0]:
        columns = [("case", "id", str)]
    if model["by_class"]:
        columns += [("true", "true", str), ("answer", "answered", str)]
    note = ""
    if "accepted" in errors[0]:
        columns.append(("decided", "by", str))
        note = "Answered errors first."
    title = "Most confident errors"
    if "cost" in errors[0]:
        title = "Costliest errors"
        columns.append(("cost", "cost", number))
    columns.append(("confidence", "confidence", number))
    columns += [(name, f"feature {name}", str) for name in errors[0]["features"]]
    table = make_table([_write_error(error) for error in errors], *columns)
    return Section("errors", title, tables={"": table}, note=note)


def _write_error(error: dict[str, Any]) -> dict[str, Any]:
    """Return an error with its features beside it, and what was decided."""
    row = dict(error)
    row["by"] = "answered" if error.get("accepted") else "deferred"
    for name, value in error["features"].items():
        row[f"feature {name}"] = value
    return row
