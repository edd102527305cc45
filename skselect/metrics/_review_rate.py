"""How much a person must review so that silent errors stay rare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from skselect.curve.curve import RiskCoverageCurve
from skselect.metrics._judged import judge_proba
from skselect.metrics._signature import DoorOptions, metric

# Kernels ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReviewPlan:
    """What it takes to keep silent errors rare; :func:`~skselect.metrics.review_at_reliability`.

    Parameters
    ----------
    reliability : float
        The reliability asked for.
    threshold : float
        Answers with this confidence or more pass without review; inf if none may.
    review_rate : float in [0, 1]
        Share of rows to review.
    pass_rate : float in [0, 1]
        Share of the right answers that pass without review; nan if no answer is right.
    invalid_review_cost : float
        Right answers that are reviewed all the same, per 10,000 rows.
    silent_errors : float in [0, 1]
        Errors that pass without review, as a share of all rows.
    """

    reliability: float
    threshold: float
    review_rate: float
    pass_rate: float
    invalid_review_cost: float
    silent_errors: float

    def __str__(self) -> str:
        return (
            f"Review {100 * self.review_rate:.4g} % of the rows, those with a confidence below "
            f"{self.threshold:.4g}, for a reliability of {self.reliability:g}:\n"
            f"  {100 * self.pass_rate:.4g} % of the right answers pass, "
            f"{self.invalid_review_cost:.4g} of 10,000 rows are reviewed although right,\n"
            f"  {100 * self.silent_errors:.4g} % of the rows are errors that nobody sees"
        )


def review_rate_at_reliability(curve: RiskCoverageCurve, reliability: float) -> float:
    """Return one minus the largest coverage that keeps the reliability."""
    return 1.0 - curve.coverage_at_reliability(reliability)


def review_plan(curve: RiskCoverageCurve, reliability: float) -> ReviewPlan:
    """Return review rate, pass rate and needless review at a reliability."""
    coverage = curve.coverage_at_reliability(reliability)
    n_blocks = int(np.searchsorted(curve.coverage, coverage, side="right"))
    total = float(curve.accepted_weight[-1])
    right = float(np.sum(curve.block_weight - curve.block_loss))
    passed = float(np.sum((curve.block_weight - curve.block_loss)[:n_blocks]))
    return ReviewPlan(
        reliability=float(reliability),
        threshold=float(curve.thresholds[n_blocks - 1]) if n_blocks else float("inf"),
        review_rate=1.0 - coverage,
        pass_rate=passed / right if right > 0 else float("nan"),
        invalid_review_cost=1e4 * (right - passed) / total,
        silent_errors=float(np.sum(curve.block_loss[:n_blocks])) / total,
    )


# Doors -----------------------------------------------------------------------------------


@metric
def review_at_reliability(
    y_true: Any, y_proba: Any, *, reliability: float, **options: Unpack[DoorOptions]
) -> ReviewPlan:
    """Compute what must be reviewed, and what passes, so that silent errors stay rare.

    Parameters
    ----------
    %(data)s
    reliability : float in [0, 1]
        One minus the largest allowed rate of silent errors (errors accepted / all rows).
    %(options)s

    Returns
    -------
    ReviewPlan
        Review rate, pass rate of right answers, needless reviews per 10,000, threshold.

    %(raises)s

    Notes
    -----
    The largest coverage with generalised risk <= 1 - reliability (eq. 14 of [1]_). The pass
    rate is right and accepted over all right, the invalid review cost right and reviewed per
    10,000 rows (table 3 of [1]_). All describe these rows; for a promise about other rows see
    ``ThresholdTuner(objective="generalized_risk")``.

    References
    ----------
    .. [1] "Uncertainty quantification revisited: conditional cross-entropy for neural
       classifiers".

    Examples
    --------
    >>> from skselect.metrics import review_at_reliability
    >>> plan = review_at_reliability([0, 1, 1, 0], [.1, .9, .6, .7], reliability=.9)
    >>> plan.review_rate, round(plan.pass_rate, 4), plan.invalid_review_cost
    (0.5, 0.6667, 2500.0)
    """
    return review_plan(judge_proba(y_true, y_proba, **options).curve, reliability)


@metric
def review_rate_at_reliability_score(
    y_true: Any, y_proba: Any, *, reliability: float, **options: Unpack[DoorOptions]
) -> float:
    """Compute the least share of rows to review so that silent errors stay rare.

    Parameters
    ----------
    %(data)s
    reliability : float in [0, 1]
        One minus the largest allowed rate of silent errors (errors accepted / all rows).
    %(options)s

    Returns
    -------
    float in [0, 1]
        Lower is better.

    %(raises)s

    Notes
    -----
    One minus the largest coverage with generalised risk <= 1 - reliability (the constraint
    of eq. 14 in the paper on correctness-aligned uncertainty, CAU).

    Examples
    --------
    >>> from skselect.metrics import review_rate_at_reliability_score
    >>> review_rate_at_reliability_score([0, 1, 1, 0], [.1, .9, .6, .7], reliability=.9)
    0.5
    """
    return review_rate_at_reliability(judge_proba(y_true, y_proba, **options).curve, reliability)
