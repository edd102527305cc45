"""What rows that cannot certify a target say: of their best set, of every set, of more rows."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, reaches
from skselect.bounds import _pointwise as pointwise
from skselect.curve.curve import RiskCoverageCurve


class AcceptedSet(NamedTuple):
    """Some of the surest rows, and the exact bound that they have if chosen beforehand."""

    n_accepted: int
    n_errors: int
    bound: float


class RowsNeeded(NamedTuple):
    """How many rows like these certify a target: a plan, not a promise.

    Parameters
    ----------
    low, high : int or None
        So many are enough on a fifth, and on four fifths, of the curves that these rows may have
        come from. None: on more curves no number is, or more than 10^9.
    """

    low: int | None
    high: int | None


# Sets of these rows ------------------------------------------------------------------------


def best_set(curve: RiskCoverageCurve, delta: float, min_coverage: float) -> AcceptedSet | None:
    """Return the accepted set of these rows with the least upper bound on its risk.

    The bound is that of one set, fixed beforehand. For this one, chosen among all, it is
    information only.

    Parameters
    ----------
    curve : RiskCoverageCurve
        Of rows that count once, right or wrong.
    delta : float in (0, 0.5]
        Level of the bound.
    min_coverage : float in [0, 1]
        Smaller accepted sets are not considered.

    Returns
    -------
    AcceptedSet or None
        None if all sets are smaller.

    Examples
    --------
    >>> from skselect import Outcomes, RiskCoverageCurve
    >>> from skselect.thresholds._advice import best_set
    >>> outcomes = Outcomes([0] * 58 + [1, 1] + [0, 1] * 20, range(100, 0, -1))
    >>> best = best_set(RiskCoverageCurve.from_outcomes(outcomes), 0.05, 0.1)
    >>> best.n_accepted, best.n_errors, round(best.bound, 3)
    (58, 0, 0.05)
    """
    rows, errors = largest_sets(curve, reaches(curve.coverage, min_coverage))
    if len(rows) == 0:
        return None
    return find_best_set(rows, errors, delta)


def find_best_set(rows: IntArray, errors: FloatArray, delta: float) -> AcceptedSet:
    """Return the set with the least upper bound, by the rows and errors of each."""
    # A set whose bound is smaller than that of the likeliest one stays below delta there.
    spread = 2.0 * np.sqrt(errors)
    pessimistic_risk = (errors + spread + 4.0) / rows
    likeliest = int(np.argmin(pessimistic_risk))
    bound = float(pointwise.upper_from_counts(errors[likeliest], rows[likeliest], delta))
    # Elsewhere so few errors have a chance of a half, or more.
    rare = np.flatnonzero(errors < rows * bound)
    chance = special.bdtr(errors[rare], rows[rare], bound)
    near = np.union1d(rare[chance <= delta * (1.0 + 1e-6)], likeliest)
    bounds = pointwise.upper_from_counts(errors[near], rows[near], delta)
    best = near[np.argmin(bounds)]
    return AcceptedSet(int(rows[best]), int(errors[best]), float(np.min(bounds)))


def least_risk_bound(curve: RiskCoverageCurve, delta: float, min_coverage: float) -> float:
    """Return a lower bound on the risk of every accepted set: none of them can be better.

    With probability 1 - `delta` no threshold that accepts a share of at least `min_coverage` of
    all cases has a smaller risk.

    Parameters
    ----------
    curve : RiskCoverageCurve
        Of rows that count once, right or wrong.
    delta : float in (0, 0.5]
        Largest probability that some set has a smaller risk.
    min_coverage : float in [0, 1]
        The sets that it is about, as a share of the cases.

    Returns
    -------
    float in [0, 1)

    Notes
    -----
    Let t be the threshold with the least risk r. The rows that it accepts are among the sets that
    are looked at, unless they are fewer than a share of `min_coverage` leaves with probability
    `delta`/10. Given their number, their errors are binomial with rate r, so that the lower bound
    of this one set exceeds r with probability 9/10 `delta` at most. The least bound of all sets is
    no larger: one set is enough, and nothing is divided among them.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, RiskCoverageCurve
    >>> from skselect.thresholds._advice import least_risk_bound
    >>> outcomes = Outcomes(np.arange(1000) % 5 == 0, -np.arange(1000))
    >>> round(least_risk_bound(RiskCoverageCurve.from_outcomes(outcomes), 0.05, 0.1), 3)
    0.128
    """
    [too_few] = pointwise.critical_counts(np.array([curve.n_rows]), min_coverage, delta / 10.0)
    rows, errors = largest_sets(curve, curve.n_accepted > too_few)
    level = 0.9 * delta
    spread = 2.0 * np.sqrt(errors)
    optimistic_risk = (errors - spread) / rows
    likeliest = int(np.argmin(optimistic_risk))
    bound = float(_lower_bound(errors[likeliest], rows[likeliest], level))
    # Those with a smaller one have so many errors more often there.
    is_near = special.bdtrc(errors - 1.0, rows, bound) >= level * (1.0 - 1e-6)
    bounds = _lower_bound(errors[is_near], rows[is_near], level)
    return float(np.min(bounds, initial=bound))


def largest_sets(curve: RiskCoverageCurve, allowed: BoolArray) -> tuple[IntArray, FloatArray]:
    """Return rows and errors of the allowed sets: of those with as many errors the largest."""
    errors = curve.accepted_loss
    next_has_more = errors[1:] > errors[:-1]
    is_largest = np.append(next_has_more, True)
    is_chosen = is_largest & allowed
    return curve.n_accepted[is_chosen], errors[is_chosen]


def _lower_bound(errors: FloatArray, rows: IntArray, level: float) -> FloatArray:
    """Return the exact lower bounds on error rates."""
    n_right = rows - errors
    some_errors = np.maximum(errors, 1.0)
    bound = special.betaincinv(some_errors, n_right + 1.0, level)
    return np.where(errors > 0, bound, 0.0)


def most_answered(n_errors: int, n: int, target: float, delta: float) -> float:
    """Return how large a share a perfect ranking could answer at most, so that the target holds.

    It would put all wrong answers last. If b of the answers are wrong, it answers the right ones
    and as many wrong ones as `target` allows: (1 - b) / (1 - target) of the cases. The lower bound
    of b is taken, which fails with probability `delta` at most.

    Examples
    --------
    >>> from skselect.thresholds._advice import most_answered
    >>> round(most_answered(450, 1000, 0.05, 0.05), 3)
    0.607
    """
    least = float(_lower_bound(np.array(float(n_errors)), np.array(n), delta))
    return min((1.0 - least) / (1.0 - target), 1.0)


def least_provable(n: int, delta: float) -> float:
    """Return the least risk that so many accepted rows can certify, all of them right.

    Examples
    --------
    >>> from skselect.thresholds._advice import least_provable
    >>> round(least_provable(195, 0.05), 4)
    0.0152
    """
    return -math.expm1(math.log(delta) / n)


# More rows like these ----------------------------------------------------------------------

# Curves are imagined in so many blocks, as often as this.
_BLOCKS = 20
_DRAWS = 200
# The band has a fifth of delta, and is no stricter than each rank's test at a twelfth of that.
_LEVEL_SHARE = 1.0 / 60.0
# So many standard deviations more errors than expected are allowed for.
_SURPLUS = 0.84
_MOST_ROWS = 10**9


def plan_rows(
    curve: RiskCoverageCurve, target: float, delta: float, min_coverage: float
) -> RowsNeeded:
    """Return how many rows like these would certify a target, as a range.

    Rows whose best set has few errors have few partly by luck. So curves are imagined whose risks
    differ from those of these rows as much as these may differ from the true ones.

    Parameters
    ----------
    curve : RiskCoverageCurve
        Of rows that count once, right or wrong.
    target : float in (0, 1)
    delta : float in (0, 0.5]
    min_coverage : float in [0, 1]
        Smaller accepted sets are not considered.

    Returns
    -------
    RowsNeeded
        With two digits, and at least a quarter more than there are: a few more rows are no plan.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, RiskCoverageCurve
    >>> from skselect.thresholds._advice import plan_rows
    >>> errors = np.isin(np.arange(60), [20, 33, 45, 50, 55, 58])
    >>> curve = RiskCoverageCurve.from_outcomes(Outcomes(errors, -np.arange(60)))
    >>> plan_rows(curve, 0.05, 0.05, 0.1)
    RowsNeeded(low=620, high=1200)
    """
    shares, risks = _imagine_risks(curve)
    allowed = reaches(shares, min_coverage)
    rows = _rows_for_rate(risks[:, allowed], target, delta * _LEVEL_SHARE) / shares[allowed]
    needed = np.sort(np.min(rows, axis=1))
    fifth = _DRAWS // 5
    least = math.ceil(1.25 * curve.n_rows)
    low = _round_rows(needed[fifth - 1], least)
    high = _round_rows(needed[4 * fifth - 1], least)
    return RowsNeeded(low, high)


def _imagine_risks(curve: RiskCoverageCurve) -> tuple[FloatArray, FloatArray]:
    """Return shares of the rows, and imagined risks of as many of the surest, a line for each draw.

    Each block of rows gets an error rate of its own, by a gamma distribution. One more error,
    spread evenly, keeps the rates above zero.
    """
    n = curve.n_rows
    edges = np.linspace(0.0, n, min(n, _BLOCKS) + 1)
    rows = np.diff(edges)
    accepted = np.append(0.0, curve.n_accepted)
    loss = np.append(0.0, curve.accepted_loss)
    errors = np.diff(np.interp(edges, accepted, loss)) + rows / n
    rng = np.random.default_rng(0)  # the same rows always get the same plan
    imagined = rng.gamma(errors, size=(_DRAWS, len(rows)))
    imagined = np.minimum(imagined, rows)
    return edges[1:] / n, np.cumsum(imagined, axis=1) / edges[1:]


def _rows_for_rate(rates: FloatArray, target: float, level: float) -> FloatArray:
    """Return how many accepted rows with such error rates pass a test of the target, inf if none.

    They pass with a probability of about .8.
    """
    largest_rates, rows = _passing_sizes(target, level)
    return rows[np.searchsorted(largest_rates, rates)]


@lru_cache(maxsize=256)
def _passing_sizes(target: float, level: float) -> tuple[FloatArray, FloatArray]:
    """Return rising error rates, and how many rows pass a test of the target with such rates."""
    errors = np.append(np.arange(60.0), np.geomspace(60.0, 1e8, 300).round())
    rows = errors + special.btdtrib(errors + 1.0, 1.0 - level, target)
    # So many errors are the expected ones and the surplus.
    expected = (np.sqrt(errors + _SURPLUS**2 / 4.0) - _SURPLUS / 2.0) ** 2
    rates = np.maximum.accumulate(expected / rows)
    return rates, np.append(rows, np.inf)


def _round_rows(rows: float, least: int) -> int | None:
    """Return a number with two digits, rounded up, None if it is too large."""
    if rows > _MOST_ROWS:
        return None
    needed = max(math.ceil(rows), least)
    step = int(10 ** max(len(str(needed)) - 2, 0))
    return -(-needed // step) * step
