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
    >>> from skselect.extras.cascade import Cascade
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
        names = check_texts("cascade: names", list(self.names))
        n_stages = len(names)
        sizes = (len(self.cuts) + 1, len(self.costs), len(self.calibrations))
        if n_stages < 2 or sizes != (n_stages, n_stages, n_stages):
            raise ValueError(f"cascade: {sizes} entries do not fit the stages {list(names)}.")
        check_stages_named(self.names, self.costs)
        counts = [check_count("cascade: n_asked", count, 0) for count in (*self.n_asked, self.n)]
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
        first_stage = parts[0]
        tables = [scores_of(part) for part in parts]
        n_rows, width = tables[0].shape
        scores, stage = follow(self.applied(), n_rows, width, lambda k, rows: tables[k][rows])
        joined = replace(first_stage, _cascade=self.count_asked(stage, is_fresh=True))
        if first_stage.y_proba is not None:
            return replace(joined, y_proba=scores, y_pred=first_stage.rule.choose(scores))
        every_row = np.arange(n_rows)
        y_true = np.array([part.y_true for part in parts])[stage, every_row]
        y_pred = np.array([part.y_pred for part in parts])[stage, every_row]
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
        later = np.column_stack([counts / self.n, low, high])
        shares = np.vstack([np.ones(3), later])  # the first stage is always asked
        stages = pd.Index(self.names, name="stage")
        table = pd.DataFrame(shares, stages, ["asked", "low", "high"])
        costs = shares * np.array(self.costs)[:, None]
        table[["cost", "cost_low", "cost_high"]] = costs
        table.loc["all"] = [np.nan] * 3 + costs.sum(axis=0).tolist()
        kind = (
            "an estimate: other models than the final one rated these rows, or they chose the rule"
        )
        if self.is_fresh:
            kind = "rows that did not choose the rule"
        table.attrs["note"] = f"From {self.n:,} rows ({kind})."
        return table

    # The rule applied --------------------------------------------------------------------

    def applied(self) -> dict[str, Any]:
        """Return the rule as ``follow`` of the kernel takes it."""
        maps = [None if stage is None else stage.applied() for stage in self.calibrations]
        return {"names": [*self.names], "cuts": [*self.cuts, -np.inf], "calibrations": maps}

    def check_fits(self, n_classes: int) -> None:
        """Refuse calibrations of another number of classes."""
        for calibration in self.calibrations:
            if calibration is not None:
                calibration.check_fits(n_classes, "predict_proba")

    def take_answers(self, y_pred: Any, stage: IntArray) -> LabelArray:
        """Return the answer of each row, from those of its stage."""
        by_stage = y_pred if isinstance(y_pred, Mapping) else {self.names[0]: y_pred}
        n_rows = len(stage)
        deciding_stages = np.unique(stage)
        names = [self.names[k] for k in deciding_stages]
        if any(name not in by_stage or len(by_stage[name]) != n_rows for name in names):
            raise ValueError(
                f"y_pred must be a dict with the answers of {names} to all {n_rows} rows, as for "
                f"the confidence, got {shown(y_pred)}."
            )
        answers = np.empty(n_rows, dtype=object)
        for k, name in zip(deciding_stages, names, strict=True):
            rows = stage == k
            of_stage = np.asarray(by_stage[name], dtype=object)
            answers[rows] = of_stage[rows]
        return answers

    def count_asked(self, stage: IntArray, *, is_fresh: bool) -> Cascade:
        """Return the rule with how often each stage was asked of these rows."""
        asked = tuple(int(np.sum(stage >= k)) for k in range(len(self.names)))
        return replace(self, n_asked=asked, n=len(stage), is_fresh=is_fresh)

    # Saving ------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as plain values."""
        maps = [None if stage is None else stage.to_dict() for stage in self.calibrations]
        cuts = [threshold_to_json(cut) for cut in self.cuts]
        return vars(self) | {"cuts": cuts, "calibrations": maps}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Cascade:
        """Rebuild a rule from plain values."""
        fields = dict(stored)
        for name in ("names", "costs", "n_asked"):
            fields[name] = tuple(stored[name])
        fields["cuts"] = tuple(threshold_from_json(cut) for cut in stored["cuts"])
        fields["calibrations"] = tuple(
            None if calibration is None else restore_calibration(calibration)
            for calibration in stored["calibrations"]
        )
        return cls(**fields)

    # As text -----------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Cascade: {' -> '.join(self.names)}, cuts {self.cuts}>"

    def __str__(self) -> str:
        last = self.names[-1]
        order = f"Cascade {' -> '.join(self.names)}"
        if min(self.cuts) == np.inf:
            return f"{order}: every case goes to {last!r}; it saves nothing."
        if not self.n_asked:
            return f"{order}."
        table = self.expected_costs
        share_of_last = float(table["asked"][last])
        certainty = "an estimate"
        if self.is_fresh:
            low = percent(float(table["low"][last]))
            high = percent(float(table["high"][last]))
            certainty = f"95 % interval {low} to {high}"
        cost = rounded(float(table["cost"]["all"]), 4)
        verdict = "; it saves next to nothing" if share_of_last >= _NEARLY_ALL else ""
        return (
            f"{order}: {percent(share_of_last)} of the cases ask {last!r} ({certainty}); "
            f"cost {cost} a case{verdict}."
        )


# What users give -----------------------------------------------------------------------------


def check_stages_named(names: Sequence[str], costs: Any) -> tuple[float, ...]:
    """Check that stages can be told by their names; return the costs: one each, none negative."""
    if len(set(names)) < len(names) or "all" in names:
        raise ValueError(f"stages: each needs a name of its own, other than 'all', got {names}.")
    values: list[Any] = []
    if np.iterable(costs) and not isinstance(costs, str):
        values = list(costs)
    n_stages = len(names)
    if len(values) != n_stages:
        raise ValueError(
            f"costs must hold what asking each of the {n_stages} stages adds, such as "
            f"{list(range(n_stages))}, got {shown(costs)}."
        )
    return tuple(check_number("costs", cost, 0.0, np.inf, closed="left") for cost in values)


def scores_of(part: Predictions) -> FloatArray:
    """Return the probabilities, or the confidence in answers that came with one as a column."""
    if part.y_proba is not None:
        return part.y_proba
    assert part.confidence is not None
    return part.confidence[:, None]


def check_stages(stages: Any) -> list[Predictions]:
    """Return the predictions of the stages, which are of the same rows.

    Of judged answers these are the cases that were judged in all stages, by their position.
    """
    if not isinstance(stages, Mapping) or len(stages) < 2:
        raise ValueError(
            "stages must be a dict of two Predictions or more, the cheapest model first, got "
            f"{shown(stages)}."
        )
    stages = _judged_in_all(stages)
    first_stage = next(iter(stages.values()))
    for name, part in stages.items():
        _check_stage(name, part, first_stage)
    return list(stages.values())


def _judged_in_all(stages: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the rows whose position occurs in all tables, in one order; refuse none.

    Tables without positions are returned as they are.
    """
    tables = list(stages.values())
    positions = [draw_of(part).position for part in tables if isinstance(part, Predictions)]
    judged_positions = [position for position in positions if position is not None]
    if len(judged_positions) < len(tables):
        return stages
    shared = reduce(np.intersect1d, judged_positions)
    n_judged = len(reduce(np.union1d, judged_positions))
    if len(shared) == 0:
        raise ValueError(
            "stages: no case was judged in all of them; judge the same cases, and pass tables with "
            "the same rows in the same order."
        )
    n_left_out = n_judged - len(shared)
    if n_left_out:
        warn_user(
            f"stages: {n_left_out:,} of {n_judged:,} judged cases are left out, for they were not "
            "judged in all stages."
        )
    judged = {}
    for (name, part), position in zip(stages.items(), judged_positions, strict=True):
        order = np.argsort(position)
        places = np.searchsorted(position[order], shared)
        judged[name] = part.take(order[places])
    return judged


def _check_stage(name: str, part: Any, first_stage: Any) -> None:
    """Refuse a stage whose rows, classes or kind of predictions are not those of the first one."""
    if not isinstance(part, Predictions) or (part.y_proba is None) != (first_stage.y_proba is None):
        raise ValueError(
            f"stages[{name!r}] must be Predictions, with probabilities in all stages or in "
            f"none, got {shown(part)}."
        )
    classes = part.classes.tolist()
    first_classes = first_stage.classes.tolist()
    if classes != first_classes:
        raise ValueError(
            f"stages[{name!r}] has the classes {classes[:10]}, the first stage "
            f"{first_classes[:10]}; pass labels= with all classes to both."
        )
    refuse_unjudged(part, "a stage of a cascade")
    same_rows = len(part) == len(first_stage)
    if not are_verdicts(part):
        same_rows = np.array_equal(part.y_true, first_stage.y_true)
    weight = np.asarray(part.sample_weight)
    first_weight = np.asarray(first_stage.sample_weight)
    if not same_rows or not np.array_equal(weight, first_weight):
        raise ValueError(
            f"stages[{name!r}] has other true labels or weights than the first stage, row by "
            "row; join the tables by the name of the case first."
        )
    if part.y_proba is not None and part.rule.decision == "estimator":
        raise ValueError(
            f"stages[{name!r}]: decision='estimator' keeps answers that a cascade would mix; "
            "leave it out."
        )
