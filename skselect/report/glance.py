"""The first page of a report: three numbers and one picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skselect._lib.notebook import count, rounded
from skselect.report.questions import show_amount, show_share

#: The name of a model that nobody named.
UNKNOWN_MODEL = "Model"
# The picture, in units of its letters' pixels.
_WIDTH = 480.0
_LINE = 46.0
_HEIGHT = 18.0


@dataclass(frozen=True)
class Figure:
    """One of the three numbers.

    Parameters
    ----------
    value : str
    label : str
        What it is; a sentence goes on with it.
    detail : str, default=""
        In smaller type.
    """

    value: str
    label: str
    detail: str = ""

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.value} {self.label}{detail}."


@dataclass(frozen=True)
class Bar:
    """A line of the picture.

    Parameters
    ----------
    label : str
    parts : list of (str, float)
        From left to right what each part is ("right", "person" or "wrong"), and its share of the
        longest line.
    """

    label: str
    parts: list[tuple[str, float]]


def make_figures(model: dict[str, Any], level: float) -> list[Figure]:
    """Return how many cases are answered, how many answers are wrong, and who waits."""
    decided = model["decisions"] or model["always"]
    return [
        _count_answered(decided, model["guarantee"]["coverage"]),
        _count_wrong(decided, model, level),
        _count_waiting(decided),
    ]


def _count_answered(decided: dict[str, Any], guarantee: str) -> Figure:
    n_accepted = decided["n_accepted"]
    details = [f"{n_accepted:,} of {decided['n_rows']:,}"]
    if guarantee:
        details.append(guarantee)
    return Figure(show_share(decided["coverage"]), "of the cases are answered", "; ".join(details))


def _count_wrong(decided: dict[str, Any], model: dict[str, Any], level: float) -> Figure:
    """Return the share of wrong answers, or what they cost."""
    guarantee = model["guarantee"]["risk"]
    if not decided["n_accepted"]:
        return Figure("None", "of its answers is wrong, because it answers none", guarantee)
    details = []
    costs = model["costs"]
    if costs is not None:
        per_thousand = 1000.0 * costs["answered"] / decided["n_rows"]
        details.append(f"{show_amount(costs['answered'])} in all")
        value = show_amount(per_thousand)
        label = "is the cost of wrong answers per 1,000 cases"
    else:
        details.append(f"{decided['n_errors']:,.0f} of {decided['n_accepted']:,}")
        value = show_share(decided["risk"])
        label = "of the answers are wrong"
        if decided["low"] is not None:
            low, high = outwards(decided, digits=2)
            details.append(f"{show_share(level)} interval {low} % to {high} %")
    if guarantee:
        details.append(guarantee)
    return Figure(value, label, "; ".join(details))


def _count_waiting(decided: dict[str, Any]) -> Figure:
    n_deferred = decided["n_rows"] - decided["n_accepted"]
    if not n_deferred:
        return Figure("0", "cases wait for a person")
    n_right = f"{decided['n_right_deferred']:,.10g}"
    if n_deferred == 1:
        return Figure("1", "case waits for a person", f"right answers among them: {n_right}")
    detail = f"in {n_right} of them its answer was right"
    return Figure(f"{n_deferred:,}", "cases wait for a person", detail)


def outwards(interval: dict[str, Any], digits: int = 3) -> tuple[str, str]:
    """Return the ends of an interval in per cent."""
    low = rounded(100 * interval["low"], digits, up=False)
    high = rounded(100 * interval["high"], digits, up=True)
    return low, high


def describe_costs(model: dict[str, Any]) -> list[str]:
    """Say what the answers cost always answering, with the policy, and with its reviewer."""
    costs = model["costs"]
    decided = model["decisions"]
    if costs is None:
        return []
    if decided is None or not decided["n_accepted"]:
        return []
    lines = [describe_risk(decided)]
    n_deferred = decided["n_rows"] - decided["n_accepted"]
    if n_deferred:
        cases = count(n_deferred, "deferred case")
        lines.append(
            f"Wrong answers cost {show_amount(costs['always'])} in all if it always answers, "
            f"{show_amount(costs['answered'])} if the person who decides the {cases} is always "
            "right."
        )
    if costs["together"] is not None:
        together = show_amount(costs["together"])
        lines.append(f"With these answers of the reviewer they cost {together}.")
    return lines


def describe_risk(decided: dict[str, Any]) -> str:
    """Say how many answers are wrong, where costs are the number."""
    risk = show_share(decided["risk"])
    wrong = f"{decided['n_errors']:,.0f} of {count(decided['n_accepted'], 'answer')}"
    return f"Wrong: {wrong} ({risk})."


# The picture ------------------------------------------------------------------------------


def make_bars(model: dict[str, Any]) -> list[Bar]:
    """Return the lines of the picture: always answering, and as it is decided."""
    decided = model["decisions"]
    costs = model["costs"]
    if costs is not None:
        return _draw_costs(costs)
    n_rows = model["n_rows"]
    n_errors = model["n_errors"]
    right = 1.0 - n_errors / n_rows
    bars = [Bar(f"Always answering: {n_errors:,} wrong", [("right", right), ("wrong", 1 - right)])]
    if decided is not None:
        wrong = decided["n_errors"] / n_rows
        coverage = decided["coverage"]
        n_deferred = n_rows - decided["n_accepted"]
        label = f"As decided: {decided['n_errors']:,.0f} wrong, {n_deferred:,} for a person"
        parts = [("right", coverage - wrong), ("person", 1 - coverage), ("wrong", wrong)]
        bars.append(Bar(label, parts))
    return bars


def _draw_costs(costs: dict[str, Any]) -> list[Bar]:
    """Return a line for each sum of costs."""
    sums = {
        "Always answering": costs["always"],
        "As decided, if the person is always right": costs["answered"],
        "As decided, with these answers of the reviewer": costs["together"],
    }
    largest = max(*(total for total in sums.values() if total is not None), 1e-300)
    return [
        Bar(f"{name}: costs {show_amount(total)}", [("wrong", total / largest)])
        for name, total in sums.items()
        if total is not None
    ]


def draw(bars: list[Bar]) -> dict[str, Any]:
    """Return the picture for the page: rectangles, and where its words stand."""
    lines = []
    for k, bar in enumerate(bars):
        top = k * _LINE
        rectangles = []
        left = 0.0
        for kind, share in bar.parts:
            width = _WIDTH * share
            rectangles.append((kind, round(left, 2), round(width, 2)))
            left += width
        lines.append({"label": bar.label, "text": top + 13, "top": top + 20, "parts": rectangles})
    kinds = {kind for bar in bars for kind, _ in bar.parts}
    return {
        "lines": lines,
        "height": _HEIGHT,
        "bottom": len(bars) * _LINE,
        "has_legend": "right" in kinds,
        "has_person": "person" in kinds,
        "words": ". ".join(bar.label for bar in bars),
    }
