"""What a threshold should achieve, stated and checked once for tables and estimators."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skselect import _validation as check
from skselect.thresholds import TUNABLE_METRICS

METHODS = ("combined", "band", "empirical")
CERTIFIED_OBJECTIVES = ("risk", "generalized_risk", "coverage")
OBJECTIVES = (*TUNABLE_METRICS, *CERTIFIED_OBJECTIVES, "cost")


@dataclass(frozen=True)
class Goal:
    """What to look for, checked: the arguments of :func:`select_threshold` that state it.

    Parameters
    ----------
    objective, method, on_infeasible : str
    target : float
        nan where the objective has none.
    delta, min_coverage : float
    """

    objective: str
    target: float
    delta: float
    method: str
    min_coverage: float
    on_infeasible: str

    @classmethod
    def checked(
        cls,
        objective: str,
        target: float | None,
        delta: float,
        method: str,
        min_coverage: float | str,
        on_infeasible: str,
    ) -> Goal:
        """Check each argument and resolve "auto"."""
        check.check_choice("objective", objective, OBJECTIVES)
        check.check_choice("method", method, METHODS)
        check.check_choice("on_infeasible", on_infeasible, ["raise", "abstain"])
        check.check_number("delta", delta, 0.0, 1.0, closed="neither")
        aim = _checked_target(objective, target)
        limits = objective in TUNABLE_METRICS or objective == "risk"
        if min_coverage == "auto":
            metric = objective in TUNABLE_METRICS
            certified = objective == "risk" and method != "empirical"
            share = 0.5 if metric else 0.1 if certified else 0.0
        elif limits:
            share = check.check_number("min_coverage", min_coverage, 0.0, 1.0)
        else:
            raise ValueError(
                f"min_coverage goes with a metric objective or 'risk', not with {objective!r}; "
                "leave it out."
            )
        return cls(objective, aim, float(delta), method, share, on_infeasible)

    @property
    def promises(self) -> bool:
        """Whether a certificate comes with the threshold."""
        return self.objective in CERTIFIED_OBJECTIVES and self.method != "empirical"


def _checked_target(objective: str, target: float | None) -> float:
    if objective in TUNABLE_METRICS:
        if target is not None:
            raise ValueError(
                f"target: the objective {objective!r} takes the best value there is, so it has no "
                f"target (got {target!r}). Leave it out, or use objective='risk'."
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
    if objective == "coverage":
        return check.check_number("target", target, 0.0, 1.0, closed="right")
    if objective == "cost":
        return check.check_number("target", target, 0.0, np.inf, closed="left")
    return check.check_number("target", target, 0.0, 1.0, closed="neither")
