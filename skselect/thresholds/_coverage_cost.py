"""Rules for generalised risk, coverage and cost."""

from __future__ import annotations

import numpy as np
from scipy import special

from skselect._array_ops import reaches, stays_within
from skselect.bounds import critical_counts, smallest_rank
from skselect.curve.curve import RiskCoverageCurve


def certified_generalized_risk(
    curve: RiskCoverageCurve, target: float, delta: float, *_: float
) -> int:
    """Accept every row that is strictly surer than the first error beyond the allowed number.

    Generalised risk grows with coverage, so one exact binomial test covers every threshold.
    With e* = max{e : BinomCDF(e; n, target) <= delta} the sets with at most e* errors pass.
    """
    allowed = int(critical_counts(np.array([curve.n_rows]), target, delta)[0])
    return int(np.searchsorted(curve.accepted_loss, allowed, side="right"))


def empirical_generalized_risk(curve: RiskCoverageCurve, target: float, *_: float) -> int:
    """Accept the most whose rate of silent failures on these very rows is at most `target`."""
    return int(np.sum(stays_within(curve.generalized_risk, target)))


def coverage_rank(n: int, target: float, delta: float) -> int | None:
    """Return the smallest k with P(Beta(k, n + 1 - k) >= target) >= 1 - delta.

    The coverage of "as sure as the k-th surest of n rows" on new rows has that distribution
    (ties only make it larger). None if even k = n does not reach it.
    """
    ranks = np.arange(smallest_rank(n, target), n + 1)
    reached = special.betaincc(ranks, n + 1.0 - ranks, target) >= 1.0 - delta
    return int(ranks[np.argmax(reached)]) if np.any(reached) else None


def certified_coverage(curve: RiskCoverageCurve, target: float, delta: float, *_: float) -> int:
    """Accept the fewest whose coverage on new rows is at least `target`, by rank."""
    rank = coverage_rank(curve.n_rows, target, delta)
    if rank is None:
        return len(curve)
    return int(np.searchsorted(curve.n_accepted, rank)) + 1


def empirical_coverage(curve: RiskCoverageCurve, target: float, *_: float) -> int:
    """Accept the fewest whose coverage on these very rows is at least `target`."""
    return int(np.argmax(reaches(curve.coverage, target))) + 1


def cheapest(curve: RiskCoverageCurve, abstention_cost: float, *_: float) -> int:
    """Accept so that errors and abstentions cost least on these rows; among equal costs the most.

    An error costs 1, an abstention `abstention_cost`.
    """
    total = curve.accepted_weight[-1]
    rejected = total - np.concatenate([[0.0], curve.accepted_weight])
    cost = np.concatenate([[0.0], curve.accepted_loss]) + abstention_cost * rejected
    return int(np.flatnonzero(stays_within(cost, float(np.min(cost))))[-1])


def mean_coverage(curve: RiskCoverageCurve, target: float, *_: float) -> int:
    """Accept the fewest whose coverage on new rows is at least `target` on average.

    The coverage of "as sure as the k-th surest of n rows" has the mean k/(n + 1).
    """
    rank = min(smallest_rank(curve.n_rows + 1, target), curve.n_rows)
    return int(np.searchsorted(curve.n_accepted, rank)) + 1


def chow(curve: RiskCoverageCurve, abstention_cost: float) -> tuple[float, int]:
    """Return the threshold 1 - `abstention_cost`, and how many entries it accepts.

    It is the cheapest one if the confidence is the probability of being right (Chow 1970), and
    needs no labelled rows. Calibrate first.
    """
    threshold = 1.0 - min(abstention_cost, 1.0)
    return threshold, int(curve.n_blocks_accepted(np.array([threshold]))[0])
