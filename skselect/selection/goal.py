"""What a threshold should achieve, stated and checked once for tables and estimators."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from skselect._lib.arrays import reaches
from skselect._lib.checks import did_you_mean, shown
from skselect._lib.checks.options import (
    check_choice,
    check_count,
    check_delta,
    check_number,
    check_range,
    check_risk_limit,
)
from skselect.bounds._binomial import rows_for_certificate
from skselect.bounds._mean import rows_for_betting
from skselect.curve.curve import RiskCoverageCurve
from skselect.predictions.decisions import DecisionRule
from skselect.thresholds import Betting, Combined, FixedSequence
from skselect.thresholds._betting import betting_generalized_risk, betting_risk
from skselect.thresholds._metric import AT_LEAST, AT_MOST, TUNABLE_METRICS, best_metric
from skselect.thresholds._rules import (
    band_risk,
    bonferroni_risk,
    certified_coverage,
    certified_generalized_risk,
    cheapest,
    chow,
    combined_risk,
    empirical_coverage,
    empirical_generalized_risk,
    empirical_risk,
    mean_coverage,
    mean_risk,
    sgr_risk,
)

#: The rule of each objective and method; for losses of 0 and 1 "auto" is the first method.
METHODS: dict[str, dict[str, Callable[..., Any]]] = {
    "risk": {
        "combined": combined_risk,
        "band": band_risk,
        "fixed_sequence": FixedSequence(),
        "bonferroni": bonferroni_risk,
        "sgr": sgr_risk,
        "mean": mean_risk,
        "empirical": empirical_risk,
        "betting": betting_risk,
    },
    "generalized_risk": {
        "binomial": certified_generalized_risk,
        "empirical": empirical_generalized_risk,
        "betting": betting_generalized_risk,
    },
    "coverage": {
        "order_statistic": certified_coverage,
        "mean": mean_coverage,
        "empirical": empirical_coverage,
    },
    "cost": {"empirical": cheapest, "chow": chow},
    **dict.fromkeys(TUNABLE_METRICS, dict.fromkeys(("empirical", "lower_bound"), best_metric)),
}
CERTIFIED_OBJECTIVES = ("risk", "generalized_risk", "coverage")
OBJECTIVES = (*TUNABLE_METRICS, *CERTIFIED_OBJECTIVES, "cost")
# What the target means, for the message that it is missing.
_TARGETS = {
    "risk": "the largest selective risk, for example target=0.02",
    "generalized_risk": "the largest rate of silent failures, for example target=0.01",
    "coverage": "the least coverage, for example target=0.8",
    "cost": "the cost of abstaining in units of one error, for example target=0.1",
}


@dataclass(frozen=True)
class Goal:
    """Which threshold to look for: the checked arguments of :func:`select_threshold`.

    Parameters
    ----------
    objective : str
    delta : float
    method : str
        "auto" until the losses are known, see :meth:`for_losses`.
    target : float
        As a share of `unit`; nan for a metric, and until :meth:`with_target`.
    min_coverage : float
    threshold_range : tuple of float or None
        Where CWSA and CWSA+ look for a threshold; None is "auto", see :meth:`range_on`.
    on_infeasible : {"raise", "abstain"}
    max_analyses : int
        How many analyses share `delta`.
    constraints : tuple of (str, float)
    starts : tuple of float
        Where a fixed sequence begins.
    combined : Combined or None
        The options of "combined", where they were given.
    largest_weight : float or None
        Upper bound of every importance weight, None where it is not known.
    loss : {"zero_one", "cost", "graded"}
        What kind of loss it is.
    unit : float
        What a loss of 1 is in the user's own units.
    graded_costs : bool
        Whether some costs lie strictly between 0 and the largest.
    cases : str
        The cases it is about, as messages name them; "" for all.
    share : float
        Which share of the rows given certifies: the others train, or set a shortlist.
    """

    objective: str
    delta: float
    method: str
    target: float = math.nan
    min_coverage: float = 0.0
    threshold_range: tuple[float, float] | None = None
    on_infeasible: str = "raise"
    max_analyses: int = 1
    constraints: tuple[tuple[str, float], ...] = ()
    starts: tuple[float, ...] = FixedSequence().starts
    combined: Combined | None = None
    largest_weight: float | None = None
    loss: str = "zero_one"
    unit: float = 1.0
    graded_costs: bool = False
    cases: str = ""
    share: float = 1.0

    @classmethod
    def checked(
        cls,
        objective: str,
        *,
        delta: float,
        max_analyses: int,
        method: Any,
        min_coverage: Any,
        threshold_range: Any,
        constraint: Any,
        on_infeasible: str,
        loss: Any,
        rule: DecisionRule,
        confidence: Any,
    ) -> Goal:
        """Check all arguments but the target, and whether they go together.

        `loss` is no longer "auto", `rule` says what errors cost, and `confidence` is a name, a
        function, or None for an array.
        """
        check_choice("objective", objective, OBJECTIVES)
        named = _check_method(objective, method)
        check_choice("on_infeasible", on_infeasible, ["raise", "abstain"])
        check_delta(delta)
        costly = isinstance(loss, str) and loss == "cost"
        if costly and objective in TUNABLE_METRICS:
            raise ValueError(
                f"loss='cost' does not go with objective={objective!r}, which counts errors; use "
                "loss='zero_one' (what 'auto' takes here), or objective='risk' or 'cost'."
            )
        if named == "chow":
            _check_chow(confidence, loss)
        return cls(
            objective,
            float(delta),
            named,
            min_coverage=_check_min_coverage(objective, named, min_coverage),
            threshold_range=_check_threshold_range(objective, threshold_range),
            on_infeasible=on_infeasible,
            max_analyses=_check_max_analyses(objective, named, max_analyses),
            constraints=_check_constraints(objective, constraint, loss),
            loss=loss if isinstance(loss, str) else "graded",
            unit=rule.unit if costly else 1.0,
            graded_costs=costly and rule.has_graded_costs,
            **_find_options(method),
        )

    def with_target(self, target: Any, *, n_subgroups: int = 1, cases: str = "") -> Goal:
        """Check a target; return the goal of one subgroup of several, which share `delta`."""
        target = _check_target(self.objective, target, self.unit)
        if self.method != "betting":  # for_losses checks it: graded losses may have a larger one
            _check_share_of_errors(self.objective, target, self.loss)
        share = target if self.objective == "coverage" else target / self.unit
        return replace(self, target=share, delta=self.delta / n_subgroups, cases=cases)

    def for_losses(self, *, graded: bool, weighted: bool) -> Goal:
        """Resolve method="auto": betting where losses can be graded, else the first method.

        Whether they can be is known before the rows are seen: there are costs of several sizes,
        or the loss is a function. The observed losses must not decide: of two methods that each
        fail with probability delta, the one that the rows choose may fail more often. Weighted
        rows use betting only on request, because only the user knows what the weights mean.
        """
        loss = "graded" if graded and self.loss == "zero_one" else self.loss
        if self.method == "betting":
            _check_share_of_errors(self.objective, self.target, loss)
        if self.method != "auto":
            return replace(self, loss=loss)
        methods = METHODS[self.objective]
        can_be_graded = self.loss == "graded" or self.graded_costs
        bets = can_be_graded and not weighted and "betting" in methods
        return replace(self, method="betting" if bets else next(iter(methods)), loss=loss)

    @property
    def rule(self) -> Callable[..., int]:
        """The function that counts the entries of a curve (for betting: of outcomes) to accept."""
        if self.combined is not None:
            return self.combined
        rule = METHODS[self.objective][self.method]
        if self.method == "betting":
            return partial(rule, largest_weight=self.largest_weight)
        return FixedSequence(self.starts) if self.method == "fixed_sequence" else rule

    @property
    def rows_needed(self) -> int:
        """The smallest number of rows that could certify the target."""
        if self.objective == "coverage":
            return 1
        least = rows_for_betting if self.method == "betting" else rows_for_certificate
        return least(self.target, self.level)

    @property
    def promises(self) -> bool:
        """Whether a certificate comes with the threshold."""
        return self.objective in CERTIFIED_OBJECTIVES and self.method != "empirical"

    @property
    def level(self) -> float:
        """The share of `delta` that each analysis uses."""
        return self.delta / self.max_analyses

    @property
    def is_metric(self) -> bool:
        """Whether a metric is to be largest."""
        return self.objective in TUNABLE_METRICS

    def range_on(self, curve: RiskCoverageCurve) -> tuple[float, float]:
        """Return where a metric looks for a threshold.

        "auto" is the range that the CWSA paper sweeps. Where that accepts too few of the rows, as
        with unsure answers among many classes, CWSA and CWSA+ look everywhere.
        """
        if self.objective == "selective_accuracy":
            return -math.inf, math.inf
        if self.threshold_range is not None:
            return self.threshold_range
        coverage, _ = curve.working_point(int(curve.n_blocks_accepted(np.array([0.5]))[0]))
        return (0.5 if coverage > 0 and reaches(coverage, self.min_coverage) else 0.0), 1.0

    @property
    def own_target(self) -> float:
        """The target in the user's own units, nan for a metric."""
        return self.target if self.objective == "coverage" else self.unit * self.target


def _check_method(objective: str, method: Any) -> str:
    """Return the name of a method, or of a method object."""
    name = method.name if isinstance(method, FixedSequence | Combined | Betting) else method
    known = ["auto", *METHODS[objective]]
    if not isinstance(name, str) or name not in known:
        raise ValueError(
            f"method (of objective={objective!r}) must be one of {known}, got {shown(method)}."
            f"{did_you_mean(name, known)}"
        )
    return name


def _find_options(method: Any) -> dict[str, Any]:
    """Return the options of a method object; a name has none."""
    if isinstance(method, Combined):
        return {"combined": method}
    return {} if isinstance(method, str) else vars(method)


def _check_target(objective: str, target: Any, unit: float) -> float:
    """Return the target in the user's own units, nan for a metric."""
    if objective in TUNABLE_METRICS:
        if target is not None:
            raise ValueError(
                f"target: the objective {objective!r} takes the best value there is, so it has no "
                f"target (got {shown(target)}). Leave it out, or use objective='risk'."
            )
        return math.nan
    if target is None:
        raise ValueError(f"target is missing: objective={objective!r} needs {_TARGETS[objective]}.")
    if hasattr(target, "items"):
        raise ValueError(
            f"target={shown(target)} has one entry per subgroup; say what the subgroups are "
            "with group_by= (ThresholdTuner) or subgroups= (select_threshold)."
        )
    if objective == "coverage":
        return check_number("target", target, 0.0, 1.0, closed="right")
    if objective == "cost":
        return _check_cost(check_number("target", target, 0.0, np.inf, closed="left"), unit)
    return check_number("target", target, 0.0, unit, closed="neither")


def _check_cost(target: float, unit: float) -> float:
    """Refuse a cost of abstaining above that of every error: nothing would ever be handed over."""
    if target > unit:
        meant = f" Did you mean {1 / target:.6g} (an error costs {target:g} times as much)?"
        raise ValueError(
            f"target must be at most {unit:g}, the cost of {'an' if unit == 1 else 'the worst'} "
            f"error, got {target:g}: it is the cost of abstaining on one row, and at this one "
            f"every row would be accepted without looking.{meant if unit == 1 else ''}"
        )
    return target


def _check_share_of_errors(objective: str, target: float, loss: str) -> None:
    """Refuse a share of errors above 0.5, which promises nothing; mean losses may be larger."""
    if objective in AT_MOST and loss == "zero_one":
        check_risk_limit(target)


def _check_chow(confidence: Any, loss: Any) -> None:
    """Refuse Chow's rule for a named confidence that is not one minus the expected loss."""
    suitable = ("expected_cost",) if loss == "cost" else ("max_proba", "chosen_proba")
    if isinstance(confidence, str) and confidence not in suitable:
        raise ValueError(
            f"method='chow' takes the threshold 1 - target, which is only right for a confidence "
            f"that is one minus the expected loss: one of {list(suitable)} for this loss, not "
            f"{confidence!r}. Use method='empirical', or another confidence."
        )


def _check_max_analyses(objective: str, method: str, max_analyses: Any) -> int:
    max_analyses = check_count("max_analyses", max_analyses)
    if max_analyses > 1 and (
        objective not in CERTIFIED_OBJECTIVES or method in ("mean", "empirical")
    ):
        raise ValueError(
            f"max_analyses={max_analyses} divides delta, which objective={objective!r} with "
            f"method={method!r} does not use: it gives no promise that holds with high "
            "probability. Leave it out."
        )
    return max_analyses


def _check_min_coverage(objective: str, method: str, min_coverage: Any) -> float:
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


def _check_threshold_range(objective: str, threshold_range: Any) -> tuple[float, float] | None:
    """Return where a threshold is looked for, None for "auto"."""
    if isinstance(threshold_range, str) and threshold_range == "auto":
        return None
    if objective not in ("cwsa", "cwsa_plus"):
        raise ValueError(
            f"threshold_range goes with the objectives 'cwsa' and 'cwsa_plus', not with "
            f"{objective!r}; leave it out."
        )
    return check_range("threshold_range", threshold_range)


def _check_constraints(objective: str, constraint: Any, loss: Any) -> tuple[tuple[str, float], ...]:
    """Return the constraints as pairs of a name and a bound."""
    if constraint is None:
        return ()
    if objective not in TUNABLE_METRICS:
        raise ValueError(
            f"constraint goes with a metric objective ({', '.join(TUNABLE_METRICS)}), not with "
            f"{objective!r}."
        )
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
        check_choice("constraint", name, [*AT_MOST, *AT_LEAST])
        least = 0.5 if name == "selective_accuracy" and loss == "zero_one" else 0.0
        check_number(f"constraint {name!r}", bound, least, 1.0)
        if name in AT_MOST and loss == "zero_one":
            check_risk_limit(bound, f"constraint {name!r}")
    return tuple((name, float(bound)) for name, bound in pairs)


def check_is_predictions(source: Any, purpose: str) -> Any:
    """Refuse anything but Predictions where classes are needed."""
    if not hasattr(source, "y_pred"):
        raise ValueError(
            f"{purpose} needs Predictions, got {type(source).__name__}; build them with "
            "Predictions.from_proba(y_true, y_proba)."
        )
    return source
