"""What a threshold should achieve, stated and checked once for tables and estimators."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skselect._checks.arrays import as_array, shown
from skselect._checks.options import (
    check_choice,
    check_count,
    check_delta,
    check_number,
    check_risk_limit,
)
from skselect.predictions.decisions import DecisionRule
from skselect.thresholds import AT_LEAST, AT_MOST, DEFAULT_STARTS, RULES, TUNABLE_METRICS

#: The methods of each objective; the first is taken for losses of 0 and 1.
METHODS = {
    "risk": (*RULES["risk"], "betting"),
    "generalized_risk": (*RULES["generalized_risk"], "betting"),
    "coverage": tuple(RULES["coverage"]),
    "cost": (*RULES["cost"], "chow"),
    **dict.fromkeys(TUNABLE_METRICS, ("empirical",)),
}
CERTIFIED_OBJECTIVES = ("risk", "generalized_risk", "coverage")
OBJECTIVES = (*TUNABLE_METRICS, *CERTIFIED_OBJECTIVES, "cost")
SELECTIONS = ("best", "lower_bound")


@dataclass(frozen=True)
class Goal:
    """What to look for, checked: the arguments of :func:`select_threshold` that state it.

    Parameters
    ----------
    objective, method, on_infeasible, selection : str
        A method of "auto" waits for the losses, see :meth:`for_losses`.
    target : float
        As a share of `unit`; nan where the objective has none.
    delta, min_coverage : float
    looks : int
        How many looks share `delta`.
    constraints : tuple of (str, float)
    starts : tuple of float
        Where a fixed sequence begins.
    loss : {"zero_one", "cost", "graded"}
        What a loss is, for words.
    unit : float
        What a loss of 1 is in the user's own units.
    graded_costs : bool
        Whether there are costs between nothing and the largest.
    largest_weight : float or None
        What no importance weight is ever larger than.
    """

    objective: str
    target: float
    delta: float
    method: str
    min_coverage: float
    on_infeasible: str
    selection: str = "best"
    constraints: tuple[tuple[str, float], ...] = ()
    starts: tuple[float, ...] = DEFAULT_STARTS
    loss: str = "zero_one"
    unit: float = 1.0
    graded_costs: bool = False
    largest_weight: float | None = None
    looks: int = 1

    @classmethod
    def checked(
        cls,
        objective: str,
        target: float | None,
        delta: float,
        method: str,
        min_coverage: float | str,
        on_infeasible: str,
        *,
        selection: str = "best",
        constraint: Any = None,
        starts: Any = None,
        loss: Any = "zero_one",
        rule: DecisionRule | None = None,
        largest_weight: float | None = None,
        looks: int = 1,
    ) -> Goal:
        """Check each argument and resolve "auto" where the losses do not matter."""
        check_choice("objective", objective, OBJECTIVES)
        if method != "auto":
            named = f"method (of objective={objective!r})"
            check_choice(named, method, ["auto", *METHODS[objective]])
        _check_loss_of_metric(objective, loss, TUNABLE_METRICS)
        check_choice("on_infeasible", on_infeasible, ["raise", "abstain"])
        check_delta(delta)
        costly = rule is not None and isinstance(loss, str) and loss == "cost"
        own_unit = rule.unit if rule is not None and costly else 1.0
        aim = _checked_target(objective, target, own_unit)
        if method != "betting":  # bets also read losses between 0 and 1, so that these decide
            _check_worth(objective, aim, loss)
        return cls(
            objective=objective,
            target=aim if objective == "coverage" else aim / own_unit,
            delta=float(delta),
            method=method,
            min_coverage=_checked_min_coverage(objective, method, min_coverage),
            on_infeasible=on_infeasible,
            selection=_checked_selection(objective, selection),
            constraints=_checked_constraints(objective, constraint, loss),
            starts=_checked_starts(method, starts),
            loss=loss if isinstance(loss, str) else "graded",
            unit=own_unit,
            graded_costs=rule is not None and costly and rule.has_graded_costs,
            largest_weight=_check_largest_weight(largest_weight, method),
            looks=_checked_looks(objective, method, looks),
        )

    @property
    def promises(self) -> bool:
        """Whether a certificate comes with the threshold."""
        return self.objective in CERTIFIED_OBJECTIVES and self.method != "empirical"

    @property
    def level(self) -> float:
        """What one look may spend: with `looks` of these in all, `delta` holds for all of them."""
        return self.delta / self.looks

    @property
    def is_metric(self) -> bool:
        """Whether a metric is to be largest."""
        return self.objective in TUNABLE_METRICS

    def for_losses(self, *, graded: bool, weighted: bool) -> Goal:
        """Resolve the method: bets where losses can be graded, else the first of the objective.

        What the losses can be is known before the rows are seen: from the costs, or because they
        come from a function. The losses at hand never choose: of two rules, each of which may
        fail with probability delta, the one that the rows choose may fail more often. Weighted
        rows get no bets unasked: only the user knows what the weights mean.
        """
        loss = "graded" if graded and self.loss == "zero_one" else self.loss
        _check_worth(self.objective, self.target, loss)
        if self.method != "auto":
            return replace(self, loss=loss)
        can_be_graded = self.loss == "graded" or self.graded_costs
        bets = can_be_graded and not weighted and "betting" in METHODS[self.objective]
        method = "betting" if bets else METHODS[self.objective][0]
        return replace(self, method=method, loss=loss)

    @property
    def own_target(self) -> float | None:
        """The target in the user's own units, None for a metric."""
        if self.is_metric:
            return None
        return self.target if self.objective == "coverage" else self.unit * self.target


def _checked_target(objective: str, target: float | None, unit: float) -> float:
    if objective in TUNABLE_METRICS:
        if target is not None:
            raise ValueError(
                f"target: the objective {objective!r} takes the best value there is, so it has no "
                f"target (got {shown(target)}). Leave it out, or use objective='risk'."
            )
        return math.nan
    wanted = {
        "risk": "the largest selective risk, for example target=0.02",
        "generalized_risk": "the largest rate of silent failures, for example target=0.01",
        "coverage": "the least coverage, for example target=0.8",
        "cost": "the cost of abstaining in units of one error, for example target=0.1",
    }[objective]
    if target is None:
        raise ValueError(f"target is missing: objective={objective!r} needs {wanted}.")
    if hasattr(target, "items"):
        raise ValueError(
            f"target={shown(target)} has one entry per subgroup; say what the subgroups are "
            "with group_by= (ThresholdTuner) or subgroups= (select_threshold)."
        )
    if objective == "coverage":
        return check_number("target", target, 0.0, 1.0, closed="right")
    if objective == "cost":
        return check_number("target", target, 0.0, np.inf, closed="left")
    return check_number("target", target, 0.0, unit, closed="neither")


def _check_worth(objective: str, target: float, loss: Any) -> None:
    """Refuse "at most 98 % wrong", which promises nothing; mean losses may be large."""
    if objective in AT_MOST and loss == "zero_one":
        check_risk_limit(target)


def _checked_looks(objective: str, method: str, looks: Any) -> int:
    looks = check_count("looks", looks)
    if looks > 1 and (objective not in CERTIFIED_OBJECTIVES or method in ("mean", "empirical")):
        raise ValueError(
            f"looks={looks} divides delta, which objective={objective!r} with method={method!r} "
            "does not use: it gives no promise that holds with high probability. Leave looks out."
        )
    return looks


def _checked_min_coverage(objective: str, method: str, min_coverage: Any) -> float:
    metric = objective in TUNABLE_METRICS
    if isinstance(min_coverage, str) and min_coverage == "auto":
        certified = objective == "risk" and method != "empirical"
        return 0.5 if metric else 0.1 if certified else 0.0
    if not metric and objective != "risk":
        raise ValueError(
            f"min_coverage goes with a metric objective or 'risk', not with {objective!r}; "
            "leave it out."
        )
    return check_number("min_coverage", min_coverage, 0.0, 1.0)


def _checked_selection(objective: str, selection: str) -> str:
    check_choice("selection", selection, SELECTIONS)
    if selection != "best" and objective not in TUNABLE_METRICS:
        raise ValueError(
            f"selection={selection!r} goes with a metric objective, not with {objective!r}, whose "
            "method says how sure the choice is."
        )
    return selection


def _checked_constraints(
    objective: str, constraint: Any, loss: Any
) -> tuple[tuple[str, float], ...]:
    if constraint is None:
        return ()
    if objective not in TUNABLE_METRICS:
        raise ValueError(
            f"constraint goes with a metric objective ({', '.join(TUNABLE_METRICS)}), not with "
            f"{objective!r}."
        )
    pairs = _check_constraints(constraint, [*AT_MOST, *AT_LEAST])
    for name, bound in pairs if loss == "zero_one" else ():
        if name in AT_MOST:
            check_risk_limit(bound, f"constraint {name!r}")
        elif name == "selective_accuracy":
            check_number(f"constraint {name!r}", bound, 0.5, 1.0)
    return pairs


def _checked_starts(method: str, starts: Any) -> tuple[float, ...]:
    if starts is None:
        return DEFAULT_STARTS
    if method != "fixed_sequence":
        raise ValueError(f"starts go with method='fixed_sequence', not with {method!r}.")
    return _check_shares("starts", starts)


def _check_constraints(constraint: Any, names: Iterable[str]) -> tuple[tuple[str, float], ...]:
    """Return one pair of a name and a bound, or a list of them, as pairs."""
    single = isinstance(constraint, tuple) and len(constraint) == 2
    given = [constraint] if single and isinstance(constraint[0], str) else constraint
    try:
        pairs = [(name, bound) for name, bound in given]
    except (TypeError, ValueError):
        raise ValueError(
            "constraint must be a pair such as ('risk', 0.05), or a list of pairs, got "
            f"{shown(constraint)}."
        ) from None
    for name, bound in pairs:
        check_choice("constraint", name, names)
        check_number(f"constraint {name!r}", bound, 0.0, 1.0)
    return tuple((str(name), float(bound)) for name, bound in pairs)


def _check_shares(name: str, values: Any) -> tuple[float, ...]:
    """Return one share of the rows, or several."""
    shares = np.atleast_1d(as_array(values, name))
    if shares.ndim != 1 or len(shares) == 0:
        raise ValueError(f"{name} must be one share of the rows, or several, got {shown(values)}.")
    return tuple(check_number(name, share, 0.0, 1.0) for share in shares.tolist())


def check_is_predictions(source: Any, purpose: str) -> Any:
    """Refuse what knows no classes where classes are needed."""
    if not hasattr(source, "y_pred"):
        raise ValueError(
            f"{purpose} needs Predictions, got {type(source).__name__}; build them with "
            "Predictions.from_proba(y_true, y_proba)."
        )
    return source


def _check_loss_of_metric(objective: str, loss: Any, metrics: Iterable[str]) -> None:
    """Refuse costs where a metric counts errors."""
    if objective in metrics and isinstance(loss, str) and loss == "cost":
        raise ValueError(
            f"loss='cost' does not go with objective={objective!r}, which counts errors; use "
            "loss='zero_one' (what 'auto' takes here), or objective='risk' or 'cost'."
        )


def _check_largest_weight(value: Any, method: str) -> float | None:
    """Return what no importance weight is ever larger than."""
    if value is None:
        return None
    if method != "betting":
        raise ValueError(f"largest_weight goes with method='betting', not with {method!r}.")
    return check_number("largest_weight", value, 0.0, math.inf, closed="neither")
