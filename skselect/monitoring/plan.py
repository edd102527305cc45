"""About how many more labelled rows would settle a test."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from skselect._lib.arrays import FloatArray
from skselect.bounds._pointwise import (
    binomial_quantile,
    bound_stakes,
    clopper_pearson_upper,
    least_count,
    log_evidence_below,
)
from skselect.monitoring.guarantees import Schedule
from skselect.objectives import Counts, Finding, Guarantee

# A plan gives up above this number of rows.
_TOO_MANY = 10**9


def count_more(guarantee: Guarantee, finding: Finding, schedule: Schedule) -> int | None:
    """Return how many more rows like these would settle a test; None where no number would do."""
    if finding.readings:
        alike = [reading._replace(verdict=finding.verdict) for reading in finding.readings]
        numbers = [count_more(guarantee, reading, schedule) for reading in alike]
        return None if None in numbers else max(numbers)  # type: ignore[type-var]
    if finding.verdict == "not_tested":
        _, n = guarantee.count(finding.counts)
        return guarantee.rows_to_test(schedule.doubt(guarantee), schedule.kept(n))
    if finding.verdict != "in_doubt":
        return 0
    if finding.values is None:
        settles = _by_counts(guarantee, finding.counts, schedule)
    else:
        settles = _by_bets(guarantee, finding.values, schedule)
    if not settles(_TOO_MANY):
        return None
    return least_count(settles)


def _by_counts(guarantee: Guarantee, counts: Counts, schedule: Schedule) -> Callable[[int], bool]:
    """Tell how many more rows like these show that a share is too large: the others too few."""
    least = 1.0 - guarantee.largest
    n_wrong, n = guarantee.count(counts)
    n_right = n - n_wrong
    share = n_right / n
    n_kept = schedule.kept(n)
    right_kept = schedule.kept(n_right)

    def settles(more: int) -> bool:
        most = right_kept + binomial_quantile(schedule.power, more, share)
        if schedule.is_anytime:
            evidence = log_evidence_below(most, n_kept + more, least)
            return bool(evidence >= -math.log(guarantee.level))
        return bool(clopper_pearson_upper(most, n_kept + more, guarantee.level) <= least)

    return settles


def _by_bets(guarantee: Guarantee, values: FloatArray, schedule: Schedule) -> Callable[[int], bool]:
    """Tell how many more values like these show that their mean is too large."""
    n_kept = schedule.kept(len(values))
    share, payoff = _find_payoffs(values, 1.0 - guarantee.largest)
    surplus = special.ndtri(schedule.power)

    def settles(more: int) -> bool:
        n = n_kept + more
        stakes, log_prior = bound_stakes(None if schedule.is_anytime else n, guarantee.level)
        mean, variance = _growth_of_bets(stakes, payoff, share)
        # The log of the wealth is a sum over rows, so that it is about normally distributed.
        spread = np.sqrt(variance * more)
        wealth = special.logsumexp(log_prior + n * mean - surplus * spread)
        return bool(wealth >= -math.log(guarantee.level))

    return settles


def _find_payoffs(values: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
    """Return how often each payoff occurs, and the payoffs of bets that complements are small."""
    complements, counts = np.unique(1.0 - values, return_counts=True)
    share = counts / np.sum(counts)
    payoff = (complements - least) / (1.0 - least)
    return share, payoff


def _growth_of_bets(
    stakes: FloatArray, payoff: FloatArray, share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of what a row adds to the log of the money on each stake."""
    gain = np.log1p(np.multiply.outer(-stakes, payoff))
    mean = np.einsum("ji,i->j", gain, share)  # not by BLAS, as in `dot`
    variance = np.einsum("ji,i->j", (gain - mean[:, None]) ** 2, share)
    return mean, variance
