"""What a report shows, in its order: the same for text and for the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd

from skselect._lib.notebook import count, percent, rounded
from skselect._lib.table import WholeTable
from skselect.metrics._evaluate import SPECS
from skselect.report.questions import show_number, show_share


def number(value: Any) -> str:
    """Return a number with four digits, a count with all, and text as it is."""
    if isinstance(value, float):
        return show_number(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def make_table(
    rows: list[dict[str, Any]], *columns: tuple[str, str, Callable[[Any], str]]
) -> WholeTable:
    """Return rows as text; each column is (heading, key, how a value is written).

    The first column names the rows. A cell without a value is empty.
    """
    cells = [[show(row[x]) if row[x] is not None else "" for _, x, show in columns] for row in rows]
    title, *headings = (heading for heading, *_ in columns)
    names = pd.Index([name for name, *_ in cells], dtype=object)
    found = [line[1:] for line in cells]
    return WholeTable(found, names, pd.Index(headings, name=title), dtype=object)


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Parameters
    ----------
    key : str
        Its anchor; pictures are found by it.
    title : str
    said : list of str, default=[]
        Paragraphs before the tables.
    tables : dict of str to WholeTable, default={}
        Each with its title, "" where that of the section says it all.
    quotes : dict of str to str, default={}
        Texts below the tables, quoted line by line, each with the name of what it is about.
    note : str, default=""
        What explains the tables.
    """

    key: str
    title: str
    said: list[str] = field(default_factory=list)
    tables: dict[str, WholeTable] = field(default_factory=dict)
    quotes: dict[str, str] = field(default_factory=dict)
    note: str = ""


# The columns of an interval.
_ENDS = (("low", "low", show_share), ("high", "high", show_share))


# The whole report -------------------------------------------------------------------------


def describe_rows(contents: dict[str, Any]) -> str:
    """Say what a report rests on."""
    of_classes = any(model["by_class"] for model in contents["models"].values())
    kind = "class " if of_classes else ""
    classes = ", ".join(f"{kind}{name}: {n:,}" for name, n in contents["classes"].items())
    return (
        f"{count(contents['n_rows'], 'row')} ({classes}); each single interval "
        f"has {show_share(contents['confidence_level'])} confidence; made on "
        f"{contents['created'][:16].replace('T', ' ')}"
    )


def make_comparison(contents: dict[str, Any]) -> Section | None:
    """Return the comparison of several models, None for one."""
    if not contents["comparison"]:
        return None
    shown = {None: "", True: "could be", False: "no"}
    rows = [row | {"as_good": shown[row["tied_with_best"]]} for row in contents["comparison"]]
    first = (("Model", "model", str), ("AUGRC", "estimate", show_share), *_ENDS)
    against = (("above the best", "difference", show_share), ("p", "p_value", number))
    table = make_table(rows, *first, *against, ("as good?", "as_good", str))
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
    """Say how many rows are left for people, how good the others are, and what is missed."""
    decided, said = model["decisions"], [model["columns"]] if model["columns"] else []
    if decided is not None:
        n, left = decided["n_rows"], decided["n_rows"] - decided["n_accepted"]
        work = f"{left:,} of {count(n, 'case')} for a person to read."
        said += [work, describe_decisions(decided, level)]
    always = (
        f"Without abstaining, {show_share(model['accuracy'], 3)} of the answers would be right "
        f"({count(model['n_errors'], 'error')})."
    )
    missed = describe_missed(model["by_class"]) if model["by_class"] else describe_wrong(model)
    return [*said, *missed, always]


def describe_decisions(decided: dict[str, Any], level: float) -> str:
    """Say how much is accepted and how much of that is wrong."""
    if not decided["n_accepted"]:
        return f"It answers none of the {count(decided['n_rows'], 'row')}."
    interval = ""
    if decided["low"] is not None:
        low, high = _outwards(decided)
        interval = f" ({show_share(level)} interval {low} % to {high} %)"
    cost = f"; they cost {decided['mean_cost']:.4g} each" if "mean_cost" in decided else ""
    return (
        f"It answers {show_share(decided['coverage'], 3)} of the rows "
        f"({decided['n_accepted']:,}), {show_share(decided['risk'], 3)} of them "
        f"wrongly{interval}{cost}."
    )


def _outwards(found: dict[str, Any]) -> tuple[str, str]:
    """Return the ends of an interval in per cent."""
    return rounded(100 * found["low"], 3, up=False), rounded(100 * found["high"], 3, up=True)


def describe_wrong(model: dict[str, Any]) -> list[str]:
    """Say how many answers are wrong by their verdicts, and how many of these are accepted."""
    said = f"{model['n_errors']:,} of {count(model['n_rows'], 'answer')} are wrong"
    decided = model["decisions"]
    return [f"{said}, {decided['n_errors']:,.0f} of them accepted." if decided else f"{said}."]


def describe_missed(by_class: dict[str, Any]) -> list[str]:
    """Say how many cases of the classes that are missed most often get another answer."""
    few = by_class["n_classes"] <= _MOST_IN_WORDS
    first, word = ("", " missed") if few else ("Missed most often: ", "")
    found = []
    for one in by_class["rates"]:
        always = one["all"]["missed"]
        missed = one.get("accepted", one["all"])["missed"]
        before = f" ({always['n_hits']:,} if it always answered)" if "accepted" in one else ""
        counts = f"{missed['n_hits']:,} of {missed['n_rows']:,}{word}{before}"
        found += [(missed["value"], f"class {one['class']}: {counts}")] if missed["n_rows"] else []
    found.sort(key=lambda one: one[0], reverse=True)
    said = f"{first}{'; '.join(counts for _, counts in found[:_MOST_IN_WORDS])}."
    return [said[0].upper() + said[1:]] if found else []


def make_sections(model: dict[str, Any], level: float) -> list[Section]:
    """Return what is shown of one model, in this order; what is missing or empty is left out."""
    makers = {
        "workload": lambda model: _show_workload(model, level),
        "certificate": _show_certificate,
        "subgroups": _show_subgroups,
        "pictures": lambda _: Section("pictures", "In pictures"),
        "by_class": lambda model: _show_classes(model, level),
        "coverages": _show_coverages,
        "metrics": _show_metrics,
        "calibration": _show_calibration,
        "errors": _show_errors,
    }
    return [make(model) for key, make in makers.items() if model.get(key, True)]


def _show_certificate(model: dict[str, Any]) -> Section:
    found = model["certificate"]
    if found["same_rows"]:
        origin = (
            "These rows chose the threshold; only the certificate says what to expect of others."
        )
    else:
        rows = "" if found["n"] is None else f" with {count(found['n'], 'row')}"
        guaranteed = " Its certificate is about those rows:" if found["texts"] else ""
        origin = f"The policy was made on {found['created'][:10]}{rows}.{guaranteed}"
    trust = model["verdict"]["trust"]
    note = f"The verdict at the top says whether these rows confirm it. {trust}" if trust else ""
    grouped = found["by_subgroup"]
    said = [origin, grouped["together"]] if grouped and grouped["together"] else [origin]
    tables = {"": _plain_table(grouped["table"])} if grouped else {}
    quotes = (grouped or found)["texts"]
    return Section("certificate", "The policy and its certificate", said, tables, quotes, note)


def _show_classes(model: dict[str, Any], level: float) -> Section:
    by_class = model["by_class"]
    rates, n_classes = by_class["rates"], by_class["n_classes"]
    what = "its answers" if model["decisions"] is None else "answered cases"
    which = f" (of {n_classes:,} classes the {len(rates)} that are missed most often)"
    which = "" if n_classes == len(rates) else which
    shares = [row for one in rates for row in _tabulate_rates(one)]
    tables = {
        "": _plain_table(_tabulate_answers(by_class["confusion"])),
        "How many of each class are missed": _plain_table(list(map(_tabulate_missed, rates))),
        "How far each answer can be relied on": _plain_table(shares),
    }
    title = f"By class: {what}{which}"
    return Section("by_class", title, tables=tables, note=_explain_classes(level))


def _show_workload(model: dict[str, Any], level: float) -> Section:
    targets = model["workload"]["targets"]
    whole, rough_share = "{:,.0f}".format, partial(show_share, digits=3)
    columns: list[tuple[str, str, Callable[[Any], str]]] = [
        ("risk target", "target", percent),
        ("deferred", "deferred", whole),
        (f"with {percent(level)} confidence", "deferred_surely", whole),
        ("hours", "hours", number),
        ("cost", "cost", whole),
        ("wrong in these rows", "risk", rough_share),
        ("with the reviewer, of all", "together", rough_share),
        ("lowest confidence", "threshold", number),
    ]
    table = make_table(targets, *(column for column in columns if column[1] in targets[0]))
    title = "What does a risk target cost? Cases deferred per 1,000"
    return Section("workload", title, tables={"": table}, note=_explain_workload(model, level))


def _plain_table(rows: list[dict[str, Any]]) -> WholeTable:
    """Return rows of counts and texts as a table."""
    first, *others = rows[0]
    return make_table(rows, (first, first, str), *((name, name, number) for name in others))


def _tabulate_answers(confusion: dict[str, Any]) -> list[dict[str, Any]]:
    """Return how many cases of each class get which answer."""
    return [
        {"true class": name} | dict(zip(confusion["answers"], counts, strict=True))
        for name, counts in zip(confusion["true"], confusion["counts"], strict=True)
    ]


def _tabulate_missed(one: dict[str, Any]) -> dict[str, Any]:
    """Return how many cases of a class get another answer, always answering and abstaining."""
    always = one["all"]["missed"]
    row = {"class": one["class"], "cases": always["n_rows"]}
    if "accepted" not in one:
        return row | {"missed": always["n_hits"]}
    return row | {
        "missed if always answering": always["n_hits"],
        "deferred": always["n_rows"] - one["accepted"]["sensitivity"]["n_rows"],
        "still missed": one["accepted"]["missed"]["n_hits"],
    }


def _tabulate_rates(one: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rates of a class, always answering and abstaining, a row per rate."""
    known = {rows: words for rows, words in _ROWS.items() if rows in one}
    return [
        {"class": f"{one['class']}: {name}"}
        | {words: _with_interval(one[rows][name.lower()]) for rows, words in known.items()}
        for name in _RATES
    ]


def _with_interval(rate: dict[str, Any]) -> str:
    """Return a share with its interval, "" where there are no rows."""
    if rate["value"] is None:
        return ""
    return f"{show_share(rate['value'], 3)} ({' to '.join(_outwards(rate))})"


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
    now = model["workload"]["deferred_now"]
    first = f"{answer} " if (answer := model["workload"]["answer"]) else ""
    first += "" if now is None else f"It now defers {now:,.0f} of 1,000 cases. "
    if (capacity := model["workload"]["capacity"]) is not None:
        first += (
            f"Plan for {capacity:,} reviews per 1,000 cases; an estimated 95 % of batches need no "
            "more. "
        )
    return (
        f"{first}Each line is an estimate. Its threshold was chosen on these same rows, so new "
        f"rows may show more errors. The numbers with {percent(level)} confidence hold for all "
        "targets at once, if these rows neither trained nor calibrated the model. A certificate "
        "for one target that is named before looking usually defers fewer."
    )


def _show_coverages(model: dict[str, Any]) -> Section:
    shares = (("Accepted", "coverage", show_share), ("wrong among them", "risk", show_share))
    table = make_table(model["coverages"], *shares, ("lowest confidence", "threshold", number))
    return Section("coverages", "If it accepts only its most confident rows", tables={"": table})


def _show_metrics(model: dict[str, Any]) -> Section:
    rows = []
    for row in model["metrics"]:
        show = number if "{number}" in SPECS[row["metric"]].meaning else show_share
        known = [key for key in ("value", "low", "high") if row[key] is not None]
        rows.append(row | {key: show(row[key]) for key in known})
    found = ("metric", "value", "low", "high", "better")
    table = make_table(rows, *((key.capitalize(), key, str) for key in found))
    said = [f"{row['metric']}: {row['meaning']}" for row in rows]
    return Section("metrics", "Metrics", said, {"": table})


def _show_calibration(model: dict[str, Any]) -> Section:
    rows = model["calibration"]
    starts = ["" if r["state"] == "as given" else f"{r['state'].capitalize()}: " for r in rows]
    said = [start + row["answer"] for start, row in zip(starts, rows, strict=True)]
    means = (("claims", "mean_confidence", show_share), ("right", "accuracy", show_share))
    errors = (("smooth ECE", "smooth_ece", show_share), ("ECE", "ece", show_share))
    rest = (("Brier", "top_label_brier", number), ("CSR", "csr", number))
    p_value = ("p", "csr_p_value", number)
    table = make_table(rows, ("State", "state", str), *means, *errors, *rest, p_value)
    note = (
        "Answers with a calibrated confidence of 0.9 are right in 90 % of cases. "
        "CSR is about 1 for a calibrated confidence, and far above 1 where there are errors near "
        "certainty; p is the probability that a calibrated model has a CSR as large."
    )
    return Section("calibration", "Is the confidence calibrated?", said, {"": table}, note=note)


def _show_subgroups(model: dict[str, Any]) -> Section:
    rows = [
        row
        | {"name": f"{row['attribute']}: {row['subgroup']}"}
        | {"left": row["n_rows"] - row["n_accepted"]}
        for row in model["subgroups"]
    ]
    name = ("Subgroup", "name", str)
    counts = (("rows", "n_rows", number), ("deferred", "left", number))
    shares = (("accepted", "coverage", show_share), ("wrong among them", "risk", show_share))
    table = make_table(rows, name, *counts, *shares, *_ENDS)
    tables = {"": table}
    if model["gaps"]:
        what = {"coverage_gap": "accepted", "risk_gap": "wrong among them"}
        rows = [
            row | {"name": f"{row['attribute']}: {what[row['metric']]}"} for row in model["gaps"]
        ]
        value = ("largest difference", "value", show_share)
        tables["Largest difference between two"] = make_table(rows, name, value, *_ENDS)
    return Section("subgroups", "Subgroups", tables=tables)


def _show_errors(model: dict[str, Any]) -> Section:
    rows = [
        row
        | {f"feature {name}": value for name, value in row["features"].items()}
        | {"by": "answered" if row.get("accepted") else "deferred"}
        for row in model["errors"]
    ]
    named = ("case", "id", str) if "id" in rows[0] else ("Row (from 0)", "row", str)
    decided = [("decided", "by", str)] if "accepted" in rows[0] else []
    answers = [("true", "true", str), ("answer", "answered", str)] if model["by_class"] else []
    features = ((name, f"feature {name}", str) for name in rows[0]["features"])
    confidence = ("confidence", "confidence", number)
    table = make_table(rows, named, *answers, *decided, confidence, *features)
    note = "Answered errors first." if decided else ""
    return Section("errors", "Most confident errors", tables={"": table}, note=note)
