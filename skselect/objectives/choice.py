"""What guarantees nothing: the least cost, and the best value of a metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from skselect._lib.arrays import LossSpec, reaches
from skselect._lib.checks import shown, warn_user
from skselect._lib.checks.options import (
    check_choice,
    check_number,
    check_range,
    check_risk_limit,
)
from skselect._lib.notebook import percent
from skselect.curve.curve import RiskCoverageCurve
from skselect.exceptions import ArgumentError, InfeasibleTargetError
from skselect.objectives.loss import Loss
from skselect.objectives.objective import Found, Method, Objective, check_min_coverage
from skselect.thresholds import _metric as metrics, _rules as rules

# The least coverage is said to bind where the chosen one is larger by less than this.
_NEAR = 0.05


@dataclass(repr=False)
class Cost(Objective):
    """Choose the threshold of least cost, where each abstention costs `abstention_cost`.

    Parameters
    ----------
    abstention_cost : float
        Cost of abstaining on one row, in units of one error. At most 1; in units of the cost matrix
        where there is one, at most its largest cost.
    method : {"auto", "empirical", "chow"}, default="auto"
        "empirical" (the meaning of "auto"): the least cost on these rows. "chow": the threshold
        1 - `abstention_cost`, which is best where confidences are calibrated [1]_.
    loss : {"auto", "zero_one", "cost"} or callable, default="auto"
        As for :class:`Risk`.

    References
    ----------
    .. [1] Chow (1970). On optimum recognition error and reject tradeoff. IEEE Transactions on
       Information Theory 16 (1).

    Examples
    --------
    >>> from skselect import Cost, Outcomes, select_threshold
    >>> outcomes = Outcomes([0, 0, 0, 1], [.9, .8, .7, .6])
    >>> select_threshold(outcomes, objective=Cost(.3)).coverage
    0.75
    """

    word = "cost"
    reads_costs = True
    target_means = "the cost of abstaining in units of one error, for example target=0.1"
    methods: ClassVar[Mapping[str, Method]] = {
        "empirical": Method(rules.cheapest, "none"),
        "chow": Method(rules.chow, "none"),
    }

    abstention_cost: Any
    _: KW_ONLY
    method: str = "auto"
    loss: LossSpec = "auto"

    @property
    def target_given(self) -> Any:
        """The cost of abstaining."""
        return self.abstention_cost

    def _check(self, loss: Loss, confidence: Any) -> None:
        suitable = ("expected_cost",) if loss.is_cost else ("max_proba", "chosen_proba")
        if self.ignores_rows and isinstance(confidence, str) and confidence not in suitable:
            raise ValueError(
                f"method='chow' uses the threshold 1 - target, which is only right for a "
                f"confidence that is one minus the expected loss: one of {list(suitable)} for this "
                f"loss, not {confidence!r}. Use method='empirical', or another confidence."
            )
        cost = check_number("abstention_cost", self.abstention_cost, 0.0, np.inf, closed="left")
        if cost > loss.unit:
            raise _refuse_dear_abstention(cost, loss.unit)
        self.abstention_cost = cost

    def find(self, curve: RiskCoverageCurve) -> Found:
        """Find the cheapest threshold, or Chow's."""
        cost = self.abstention_cost / self.unit
        if self.ignores_rows:
            threshold = rules.chow(cost)
            return Found(threshold, curve.n_blocks_at(threshold))
        n_blocks = rules.cheapest(curve, cost)
        if n_blocks == 0:
            return Found(math.inf, 0)
        return Found(None, n_blocks)

    def tell_infeasible(self) -> str:
        """Say that accepting any row costs more than abstaining on it."""
        which = f" {self.cases}" if self.cases else ""
        return (
            f"Abstaining on everything costs least at target={self.abstention_cost:g} per row: "
            f"accepting any of these rows{which} would cost more."
        )


def _refuse_dear_abstention(cost: float, unit: float) -> ArgumentError:
    """Return the error about an abstention that costs more than the worst error."""
    which = "the worst"
    hint = ""
    if unit == 1:
        which = "an"
        hint = f" Did you mean {1 / cost:.6g} (an error costs {cost:g} times as much)?"
    return ArgumentError(
        "target",
        f"abstention_cost (target=) must be at most {unit:g}, the cost of {which} error, got "
        f"{cost:g}: it is the cost of abstaining on one row, and at this one every row would be "
        f"accepted without looking.{hint}",
    )


@dataclass(repr=False)
class Best(Objective):
    """Choose the threshold where a metric is best, at a coverage of at least `min_coverage`.

    Among equal values the largest coverage is chosen. Nothing is guaranteed for new rows.

    Parameters
    ----------
    metric : {"cwsa_plus", "cwsa", "selective_accuracy"}, default="cwsa_plus"
    min_coverage : float in [0, 1] or "auto", default="auto"
        Smaller accepted sets are not considered. "auto": 0.5.
    threshold_range : tuple (low, high) or "auto", default="auto"
        For "cwsa" and "cwsa_plus" (the other refuses it): only thresholds from `low` on and below
        `high` are tried. "auto": (0.5, 1.0), as in the paper, or (0.0, 1.0) where 0.5 accepts less
        than `min_coverage`. Below the lowest confidence both metrics rise as the threshold falls,
        although no decision changes, so that from 0 on the best one usually accepts everything.
    constraint : tuple (str, float) or list of them, default=None
        What must also hold on these rows: ("risk", .05), ("generalized_risk", .01),
        ("coverage", .7) or ("selective_accuracy", .9). It guarantees nothing for new rows.
    method : {"empirical", "lower_bound"}, default="empirical"
        "empirical": the largest value on these rows; "lower_bound": the largest value minus 1.645
        standard errors, which a few lucky rows cannot mislead.

    Examples
    --------
    >>> from skselect import Best, Outcomes, select_threshold
    >>> outcomes = Outcomes([0, 0, 1, 0], [.9, .8, .7, .6])
    >>> best = Best("selective_accuracy", min_coverage=.75, constraint=("risk", .4))
    >>> select_threshold(outcomes, objective=best).coverage
    1.0
    """

    methods: ClassVar[Mapping[str, Method]] = dict.fromkeys(
        ("empirical", "lower_bound"),
        Method(metrics.best_metric, "none"),
    )

    metric: str = "cwsa_plus"
    _: KW_ONLY
    min_coverage: Any = "auto"
    threshold_range: Any = "auto"
    constraint: Any = None
    method: str = "empirical"

    @property
    def name(self) -> str:
        """The metric."""
        return self.metric

    @property
    def bounds_luck(self) -> bool:
        """Whether the value less some standard errors is to be largest."""
        return bool(self.method == "lower_bound")

    @property
    def sweeps(self) -> bool:
        """Whether the metric depends on the threshold itself, and not on what it accepts alone."""
        return self.metric != "selective_accuracy"

    def _check(self, loss: Loss, confidence: Any) -> None:  # noqa: ARG002
        check_choice("metric", self.metric, metrics.TUNABLE_METRICS)
        self.min_coverage = check_min_coverage(self.min_coverage, 0.5)
        if not isinstance(self.threshold_range, str):
            if not self.sweeps:
                raise ArgumentError(
                    "threshold_range",
                    "threshold_range goes with the metrics 'cwsa' and 'cwsa_plus', not with "
                    f"{self.metric!r}; leave it out.",
                )
            self.threshold_range = check_range("threshold_range", self.threshold_range)
        else:
            check_choice("threshold_range", self.threshold_range, ["auto"])
        self.constraint = _check_constraints(self.constraint)

    def find(self, curve: RiskCoverageCurve) -> Found:
        """Find the threshold where the metric is best."""
        best = metrics.best_metric(
            curve, self.metric, self.min_coverage, self.constraint,
            bounds_luck=self.bounds_luck, threshold_range=self.range_on(curve),
        )  # fmt: skip
        if best is None:
            return Found(math.inf, 0)
        self._warn_of(curve, best)
        return Found(best.threshold, best.n_blocks, best.value)

    def _warn_of(self, curve: RiskCoverageCurve, best: metrics.MetricOptimum) -> None:
        """Warn where the least coverage binds, or everything is accepted."""
        if self._least_coverage_binds(curve, best):
            self._warn_of_least_coverage(curve, best)
        elif best.n_blocks == len(curve) and self.sweeps:
            self._warn_of_everything(curve, best)

    def _least_coverage_binds(self, curve: RiskCoverageCurve, best: metrics.MetricOptimum) -> bool:
        """Tell whether the metric is better below the least coverage, and the choice near it."""
        if self.constraint or best.unconstrained <= best.best:
            return False
        chosen = curve.coverage[best.n_blocks - 1]
        return chosen < self.min_coverage + _NEAR or self._is_least(curve, best.n_blocks)

    def _is_least(self, curve: RiskCoverageCurve, n_blocks: int) -> bool:
        """Tell whether the next smaller accepted set covers too little.

        It may lie far below the least coverage where rows are tied.
        """
        if n_blocks < 2:
            return False
        return not reaches(curve.coverage[n_blocks - 2], self.min_coverage)

    def _warn_of_least_coverage(
        self, curve: RiskCoverageCurve, best: metrics.MetricOptimum
    ) -> None:
        bound = "the lower bound of " if self.bounds_luck else ""
        chosen = percent(curve.coverage[best.n_blocks - 1])
        below = percent(curve.coverage[best.n_unconstrained - 1])
        n_below = curve.n_accepted[best.n_unconstrained - 1]
        fewer = ""
        if self._is_least(curve, best.n_blocks):
            n_fewer, n_chosen = curve.n_accepted[best.n_blocks - 2 : best.n_blocks]
            if n_chosen - n_fewer > 1:
                least = percent(curve.coverage[best.n_blocks - 2])
                fewer = (
                    f"Fewer would be {least}, for rows of equal confidence are accepted together. "
                )
        warn_user(
            f"min_coverage={self.min_coverage:g} binds: {bound}{self.name} would be "
            f"{best.unconstrained:.4g} where {below} of the rows are accepted ({n_below:,.0f}), "
            f"instead of {best.best:.4g} where {chosen} are. {fewer}Lower min_coverage only where "
            "so many rows are enough: the best of few is often luck."
        )

    def _warn_of_everything(self, curve: RiskCoverageCurve, best: metrics.MetricOptimum) -> None:
        low, high = self.range_on(curve)
        warn_user(
            f"{self.name} is best when everything is accepted: of the thresholds from "
            f"{low:g} to {high:g} it is largest at {best.threshold:.4g}, and no confidence is "
            f"lower. All answers together have the risk {curve.mean_loss:.3g} on these rows. "
            "To defer cases all the same, name a smaller one: objective='risk', target=0.05 is "
            "for at most 5 % wrong answers."
        )

    def range_on(self, curve: RiskCoverageCurve) -> tuple[float, float]:
        """Return where the metric looks for a threshold.

        "auto" is the range that the CWSA paper sweeps. Where that accepts too few of the rows, as
        with unsure answers among many classes, CWSA and CWSA+ look everywhere.
        """
        if not self.sweeps:
            return -math.inf, math.inf
        if not isinstance(self.threshold_range, str):
            return self.threshold_range
        coverage, _ = curve.working_point(curve.n_blocks_at(0.5))
        if coverage > 0 and reaches(coverage, self.min_coverage):
            return 0.5, 1.0
        return 0.0, 1.0

    def refuse(
        self,
        curve: RiskCoverageCurve,
        *,
        notes: Sequence[str] = (),  # noqa: ARG002
        remedy: str = "",
    ) -> InfeasibleTargetError:
        """Say that the range accepts too few rows, or that a constraint cannot be kept."""
        return InfeasibleTargetError(self._advise(curve), remedy=remedy)

    def _advise(self, curve: RiskCoverageCurve) -> str:
        low, high = self.range_on(curve)
        n_blocks = curve.n_blocks_at(low)
        most, _ = curve.working_point(n_blocks)
        allowed = reaches(curve.coverage[:n_blocks], self.min_coverage)
        if not np.any(allowed):
            return (
                f"No threshold of threshold_range=({low:g}, {high:g}) accepts at least "
                f"min_coverage={self.min_coverage:g} of the rows: the threshold {low:g} accepts "
                f"{most:.4g} of them. Begin the range lower, or lower min_coverage."
            )
        wanted = " and ".join(f"{name} {bound:g}" for name, bound in self.constraint)
        least = float(np.min(curve.selective_risk[:n_blocks][allowed]))
        return (
            f"No threshold keeps the constraint {wanted} at a coverage of at least "
            f"min_coverage={self.min_coverage:g}: the smallest risk there is {least:.4g}. Relax "
            "the constraint or lower min_coverage."
        )


def _check_constraints(constraint: Any) -> tuple[tuple[str, float], ...]:
    """Return the constraints as pairs of a name and a bound."""
    if constraint is None:
        return ()
    constraints = constraint
    if isinstance(constraint, tuple) and len(constraint) == 2 and isinstance(constraint[0], str):
        constraints = [constraint]
    try:
        pairs = [(name, bound) for name, bound in constraints]
    except (TypeError, ValueError):
        raise ValueError(
            "constraint must be a pair such as ('risk', 0.05), or a list of pairs, got "
            f"{shown(constraint)}."
        ) from None
    for name, bound in pairs:
        check_choice("constraint", name, [*metrics.AT_MOST, *metrics.AT_LEAST])
        least = 0.5 if name == "selective_accuracy" else 0.0
        check_number(f"constraint {name!r}", bound, least, 1.0)
        if name in metrics.AT_MOST:
            check_risk_limit(bound, f"constraint {name!r}")
    return tuple((name, float(bound)) for name, bound in pairs)
