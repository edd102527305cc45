"""The rule of a cascade: which of several models answers a case, and what asking them costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from skselect._lib.arrays import FloatArray, IntArray, LabelArray
from skselect._lib.checks import shown, warn_user
from skselect._lib.checks.options import check_count, check_number
from skselect._lib.decide import follow
from skselect._lib.notebook import percent, rounded
from skselect.bounds._pointwise import clopper_pearson_interval
from skselect.calibration._scopes import Calibration, restore_calibration
from skselect.policy.certificate import check_texts, threshold_from_json, threshold_to_json
from skselect.predictions.predictions import (
    Predictions,
    are_verdicts,
    draw_of,
    refuse_unjudged,
)

#: A cascade that asks its last stage in this share of the cases saves next to nothing.
_NEARLY_ALL = 0.95


@dataclass(frozen=True, eq=False, repr=False)
class Cascade:
    """Which stage of a cascade answers a case, and how often each stage is asked.

    A case begins at the first stage. A stage keeps it where its largest (calibrated) probability is
    at least the stage's cut; else the case goes on to the next one. The last stage keeps all.

    Parameters
    ----------
    names : tuple of str
        The stages, in the order in which they are asked.
    cuts : tuple of float
        One for each stage but the last; inf: the stage keeps nothing.
    costs : tuple of float
        What asking each stage adds to the cost of a case.
    calibrations : tuple of ClassCalibration, ConfidenceCalibration or None
        How the probabilities of each stage are calibrated, or the confidence in its answers where
        these came with one; None: they are taken as they are.
    n_asked : tuple of int, default=()
        How many of `n` labelled rows asked each stage; () where nothing was counted.
    n : int, default=0
    is_fresh : bool, default=False
        Whether these rows did not choose the cuts, so that intervals hold.

    Examples
    --------
    >>> from skselect.policy.cascade import Cascade
    >>> rule = Cascade(("cheap", "strong"), (.8,), (0, 1), (None, None), (100, 30), 100)
    >>> print(rule)
    Cascade cheap -> strong: 30 % of the cases ask 'strong' (an estimate); cost 0.3 a case.
    >>> rule.expected_costs[["asked", "cost"]]
            asked  cost
    stage
    cheap     1.0   0.0
    strong    0.3   0.3
    all       NaN   0.3
    """

    names: tuple[str, ...]
    cuts: tuple[float, ...]
    costs: tuple[float, ...]
    calibrations: tuple[Calibration | None, ...]
    n_asked: tuple[int, ...] = ()
    n: int = 0
    is_fresh: bool = False

    def __post_init__(self) -> None:
        """Check what a file may hold."""
        n_stages = len(check_texts("cascade: names", list(self.names)))
        sizes = (len(self.cuts) + 1, len(self.costs), len(self.calibrations))
        if n_stages < 2 or sizes != (n_stages, n_stages, n_stages):
            raise ValueError(f"cascade: {sizes} entries do not fit the stages {list(self.names)}.")
        check_stages_named(self.names, self.costs)
        counts = [check_count("cascade: n_asked", one, 0) for one in (*self.n_asked, self.n)]
        if self.n_asked and (len(self.n_asked) != n_stages or max(counts) > self.n):
            raise ValueError(f"cascade: n_asked={self.n_asked} does not fit {self.n} rows.")

    def join(self, stages: Mapping[str, Predictions]) -> Predictions:
        """Return what the cascade answers in rows that did not set its rule.

        Parameters
        ----------
        stages : dict of Predictions
            As for :func:`~skselect.join_stages`.

        Returns
        -------
        Predictions
            For :func:`~skselect.check_policy` and reports.

        Raises
        ------
        ValueError
            As for :func:`~skselect.join_stages`.
        """
        parts = check_stages(stages)
        if tuple(stages) != self.names:
            raise ValueError(f"stages must be {list(self.names)}, got {list(stages)}.")
        first, tables = parts[0], [scores_of(part) for part in parts]
        n, width = tables[0].shape
        rule = describe_cascade(self)
        scores, stage = follow(rule, n, width, lambda k, rows: tables[k][rows])
        joined = replace(first, _cascade=count_asked(self, stage, is_fresh=True))
        if first.y_proba is not None:
            return replace(joined, y_proba=scores, y_pred=first.rule.choose(scores))
        codes = np.array([(part.y_true, part.y_pred) for part in parts])
        y_true, y_pred = codes[stage, :, np.arange(n)].T
        return replace(joined, y_true=y_true, y_pred=y_pred, confidence=scores[:, 0])

    @property
    def expected_costs(self) -> pd.DataFrame:
        """How often each stage is asked, and what a case costs: shares, costs and 95 % intervals.

        The intervals (Clopper-Pearson) hold together. ``attrs["note"]`` says on which rows they
        rest, and whether they are estimates.
        """
        if not self.n_asked:
            raise ValueError("expected_costs: no rows were counted for this cascade.")
        level = 1.0 - 0.05 / (len(self.names) - 1)
        counts = np.array(self.n_asked[1:])
        low, high = clopper_pearson_interval(counts, self.n, level)
        shares = np.vstack([np.ones(3), np.column_stack([counts / self.n, low, high])])
        table = pd.DataFrame(shares, pd.Index(self.names, name="stage"), ["asked", "low", "high"])
        costs = shares * np.array(self.costs)[:, None]
        table[["cost", "cost_low", "cost_high"]] = costs
        table.loc["all"] = [np.nan] * 3 + costs.sum(axis=0).tolist()
        kind = "rows that did not choose the rule" if self.is_fresh else (
            "an estimate: other models than the final one rated these rows, or they chose the rule"
        )  # fmt: skip
        table.attrs["note"] = f"From {self.n:,} rows ({kind})."
        return table

    def __repr__(self) -> str:
        return f"<Cascade: {' -> '.join(self.names)}, cuts {self.cuts}>"

    def __str__(self) -> str:
        order, last = f"Cascade {' -> '.join(self.names)}", self.names[-1]
        if min(self.cuts) == np.inf:
            return f"{order}: every case goes to {last!r}; it saves nothing."
        if not self.n_asked:
            return f"{order}."
        table = self.expected_costs
        asked, low, high = (percent(table[x][last]) for x in ("asked", "low", "high"))
        sure = f"95 % interval {low} to {high}" if self.is_fresh else "an estimate"
        cost = rounded(float(table["cost"]["all"]), 4)
        little = "; it saves next to nothing" if table["asked"][last] >= _NEARLY_ALL else ""
        return f"{order}: {asked} of the cases ask {last!r} ({sure}); cost {cost} a case{little}."


# The rule applied ----------------------------------------------------------------------------


def describe_cascade(cascade: Cascade) -> dict[str, Any]:
    """Return a cascade as :func:`skselect._lib.decide.follow` takes it."""
    maps = [None if one is None else one.applied() for one in cascade.calibrations]
    return {"names": [*cascade.names], "cuts": [*cascade.cuts, -np.inf], "calibrations": maps}


def take_answers(cascade: Cascade, y_pred: Any, stage: IntArray) -> LabelArray:
    """Return the answer of each row, from those of its stage."""
    given = y_pred if isinstance(y_pred, Mapping) else {cascade.names[0]: y_pred}
    wanted = {k: cascade.names[k] for k in np.unique(stage)}
    if any(name not in given or len(given[name]) != len(stage) for name in wanted.values()):
        raise ValueError(
            f"y_pred must be a dict with the answers of {[*wanted.values()]} to all "
            f"{len(stage)} rows, as for the confidence, got {shown(y_pred)}."
        )
    answers = np.empty(len(stage), dtype=object)
    for k, name in wanted.items():
        answers[stage == k] = np.asarray(given[name], dtype=object)[stage == k]
    return answers


def count_asked(cascade: Cascade, stage: IntArray, *, is_fresh: bool) -> Cascade:
    """Return a cascade with how often each stage was asked of these rows."""
    asked = tuple(int(np.sum(stage >= k)) for k in range(len(cascade.names)))
    return replace(cascade, n_asked=asked, n=len(stage), is_fresh=is_fresh)


def store_cascade(cascade: Cascade) -> dict[str, Any]:
    """Return a cascade as plain values."""
    maps = [None if one is None else one.to_dict() for one in cascade.calibrations]
    cuts = [threshold_to_json(cut) for cut in cascade.cuts]
    return vars(cascade) | {"cuts": cuts, "calibrations": maps}


def restore_cascade(stored: Mapping[str, Any]) -> Cascade:
    """Rebuild a cascade from plain values."""
    lists = {x: tuple(stored[x]) for x in ("names", "costs", "n_asked")}
    cuts = tuple(threshold_from_json(cut) for cut in stored["cuts"])
    maps = tuple(x if x is None else restore_calibration(x) for x in stored["calibrations"])
    return Cascade(**{**stored, **lists, "cuts": cuts, "calibrations": maps})


# What users give -----------------------------------------------------------------------------


def check_same_index(**given: Any) -> None:
    """Refuse pandas tables, also in dicts, whose rows have other names: they would be mixed up."""
    tables: dict[str, Any] = {}
    for name, one in given.items():
        parts = one if isinstance(one, Mapping) else {None: one}
        tables |= {name if x is None else f"{name}[{x!r}]": table for x, table in parts.items()}
    named = [(x, t.index) for x, t in tables.items() if isinstance(t, pd.DataFrame | pd.Series)]
    for name, index in named[1:]:
        first, wanted = named[0]
        if len(index) == len(wanted) and not index.equals(wanted):
            raise ValueError(
                f"{name} has another index than {first}, so that its rows are other cases, or in "
                f"another order; pass {name}.reindex(...) with the index of {first}, or arrays."
            )


def check_stages_named(names: Sequence[str], costs: Any) -> tuple[float, ...]:
    """Check that stages can be told by their names; return the costs: one each, none negative."""
    if len(set(names)) < len(names) or "all" in names:
        raise ValueError(f"stages: each needs a name of its own, other than 'all', got {names}.")
    values = list(costs) if np.iterable(costs) and not isinstance(costs, str) else []
    if len(values) != len(names):
        raise ValueError(
            f"costs must hold what asking each of the {len(names)} stages adds, such as "
            f"{list(range(len(names)))}, got {shown(costs)}."
        )
    return tuple(check_number("costs", one, 0.0, np.inf, closed="left") for one in values)


def scores_of(part: Predictions) -> FloatArray:
    """Return the probabilities, or the confidence in answers that came with one as a column."""
    if part.y_proba is not None:
        return part.y_proba
    assert part.confidence is not None
    return part.confidence[:, None]


def _judged_in_all(tables: list[Predictions], places: list[IntArray]) -> list[Predictions]:
    """Return the rows whose position occurs in all tables, in one order; refuse none."""
    shared, n_judged = reduce(np.intersect1d, places), len(reduce(np.union1d, places))
    if len(shared) == 0:
        raise ValueError(
            "stages: no case was judged in all of them; judge the same cases, and pass tables with "
            "the same rows in the same order."
        )
    if len(shared) < n_judged:
        warn_user(
            f"stages: {n_judged - len(shared):,} of {n_judged:,} judged cases are left out, for "
            "they were not judged in all stages."
        )
    orders = [np.argsort(place) for place in places]
    return [
        part.take(order[np.searchsorted(place[order], shared)])
        for part, place, order in zip(tables, places, orders, strict=True)
    ]


def check_stages(stages: Any) -> list[Predictions]:
    """Return the predictions of the stages, which are of the same rows.

    Of judged answers these are the cases that were judged in all stages, by their position.
    """
    if not isinstance(stages, Mapping) or len(stages) < 2:
        raise ValueError(
            "stages must be a dict of two Predictions or more, the cheapest model first, got "
            f"{shown(stages)}."
        )
    tables = list(stages.values())
    places = [draw_of(part).position for part in tables if isinstance(part, Predictions)]
    known = [one for one in places if one is not None]
    if len(known) == len(tables):
        stages = dict(zip(stages, _judged_in_all(tables, known), strict=True))
    first = next(iter(stages.values()))
    for name, part in stages.items():
        if not isinstance(part, Predictions) or (part.y_proba is None) != (first.y_proba is None):
            raise ValueError(
                f"stages[{name!r}] must be Predictions, with probabilities in all stages or in "
                f"none, got {shown(part)}."
            )
        if part.classes.tolist() != first.classes.tolist():
            raise ValueError(
                f"stages[{name!r}] has the classes {part.classes.tolist()[:10]}, the first stage "
                f"{first.classes.tolist()[:10]}; pass labels= with all classes to both."
            )
        refuse_unjudged(part, "a stage of a cascade")
        same = len(part) == len(first)
        same = same if are_verdicts(part) else np.array_equal(part.y_true, first.y_true)
        own, wanted = np.asarray(part.sample_weight), np.asarray(first.sample_weight)
        if not same or not np.array_equal(own, wanted):
            raise ValueError(
                f"stages[{name!r}] has other true labels or weights than the first stage, row by "
                "row; join the tables by the name of the case first."
            )
        if part.y_proba is not None and part.rule.decision == "estimator":
            raise ValueError(
                f"stages[{name!r}]: decision='estimator' keeps answers that a cascade would mix; "
                "leave it out."
            )
    return list(stages.values())
