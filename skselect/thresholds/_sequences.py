"""Sequences, which test one threshold after another, and how other rows choose them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import special

from skselect._lib.arrays import BoolArray, FloatArray, IntArray, as_array, reaches
from skselect._lib.checks import shown
from skselect._lib.checks.options import check_number
from skselect.bounds import combined_limits
from skselect.bounds._band import limits_from_start, sequence_limits
from skselect.bounds._pointwise import rows_for_certificate
from skselect.curve.curve import RiskCoverageCurve
from skselect.thresholds._rules import band_risk, passed_in_band, passed_in_sequence


@dataclass(frozen=True, init=False)
class FixedSequence:
    """Accept more and more rows until a test fails: ``method=FixedSequence(...)`` of a risk target.

    ``method="fixed_sequence"`` is the same with the default start.

    Parameters
    ----------
    starts : float or sequence of floats in [0, 1], default=0.25
        Where it begins, as a share of the rows. Several starts share `delta` evenly. They must
        be fixed before the rows are seen; :func:`best_start` finds one on other rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, Risk, select_threshold
    >>> from skselect.thresholds import FixedSequence
    >>> rank = np.random.default_rng(0).permutation(300)
    >>> outcomes = Outcomes(rank < 9, rank)
    >>> method = FixedSequence(starts=[0.2, 0.6])
    >>> found = select_threshold(outcomes, objective=Risk(.05, method=method))
    >>> round(found.coverage, 2)
    0.99
    """

    name: ClassVar[str] = "fixed_sequence"
    starts: tuple[float, ...]

    def __init__(self, starts: float | Sequence[float] = 0.25) -> None:
        shares = _read_several("starts", "share of the rows", starts)
        checked = tuple(check_number("starts", share, 0.0, 1.0) for share in shares)
        object.__setattr__(self, "starts", checked)

    def __call__(
        self, curve: RiskCoverageCurve, target: float, delta: float, min_coverage: float
    ) -> BoolArray:
        """Tell which entries of a curve pass."""
        level = delta / len(self.starts)
        passing = np.zeros(len(curve), dtype=bool)
        for start in self.starts:
            begin = max(start, min_coverage)
            ranks, limits = sequence_limits(curve.n_rows, target, level, begin)
            passing |= passed_in_sequence(curve, ranks, limits)
        return passing


def _read_several(name: str, noun: str, numbers: Any) -> list[Any]:
    """Return one number, or several, as a list."""
    values = np.atleast_1d(as_array(numbers, name))
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"{name} must be one {noun} or several, got {shown(numbers)}.")
    return list(values.tolist())


#: With at most so many different confidences, levels are tested and not ranks.
FEW_LEVELS = 50
#: A level is tested where the rows that name it expect at least so many times the rows that
#: certify without any error. It is fixed beforehand, so any number keeps the guarantee.
_ROOM_FOR_ERRORS = 2.0
#: Share of delta that the band gets where a tuner tests levels.
BAND_BESIDE_LEVELS = 0.1


def are_tied(n_levels: int, n_rows: int) -> bool:
    """Tell whether so few different confidences of so many rows should be tested as levels."""
    return n_levels <= FEW_LEVELS and 2 * n_levels <= n_rows


@dataclass(frozen=True, init=False)
class LevelSequence:
    """Test confidence levels from the highest down until one fails: ``method=LevelSequence(...)``.

    For classifiers with few different confidences, such as small trees, votes and k neighbours,
    where other methods have to split large ties. Each level is one exact binomial test, with all
    of `delta`, of the rows at that confidence or higher.

    Parameters
    ----------
    levels : sequence of floats
        The confidences to test. They must be fixed before the rows are seen: other rows name them,
        see :meth:`of`.
    band_share : float in [0, 0.9], default=0.0
        Share of `delta` that a band beside the tests gets, for a :class:`~skselect.Risk`: it also
        accepts where the surest levels are the worst. A tuner takes 0.1.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, Risk, select_threshold
    >>> from skselect.thresholds import LevelSequence
    >>> outcomes = Outcomes(np.arange(400) % 100 == 0, np.tile([.9, .9, .9, .6], 100))
    >>> select_threshold(outcomes, objective=Risk(.05, method=LevelSequence([.9, .6]))).coverage
    1.0
    """

    name: ClassVar[str] = "level_sequence"
    levels: tuple[float, ...]
    band_share: float

    def __init__(self, levels: Sequence[float], band_share: float = 0.0) -> None:
        values = _read_several("levels", "confidence", levels)
        checked = {check_number("levels", value, closed="neither") for value in values}
        object.__setattr__(self, "levels", tuple(sorted(checked, reverse=True)))
        object.__setattr__(self, "band_share", check_number("band_share", band_share, 0.0, 0.9))

    @classmethod
    def of(
        cls,
        curve: RiskCoverageCurve,
        n: int,
        target: float,
        delta: float,
        band_share: float = 0.0,
    ) -> LevelSequence:
        """Name the levels that `n` rows shall test, by other rows of the same kind.

        Parameters
        ----------
        curve : RiskCoverageCurve
            Of rows that do not certify, such as those of training. Its errors are not looked at.
        n : int
            Rows that certify.
        target, delta : float
            As of the objective.
        band_share : float, default=0.0
            As of the class.

        Returns
        -------
        LevelSequence
            Midway between each confidence of `curve` and the next lower one, so that rounding moves
            no row across. Without the highest confidences, where fewer rows are expected than could
            certify the target with some errors.
        """
        confidence = curve.thresholds
        gap = 1e-6 * abs(confidence[-1])
        if len(confidence) > 1:
            gap = confidence[-2] - confidence[-1]
        lower = np.append(confidence[1:], confidence[-1] - gap)
        levels = (confidence + lower) / 2.0
        least = _ROOM_FOR_ERRORS * rows_for_certificate(target, delta)
        is_enough = n * curve.coverage >= least
        if not np.any(is_enough):
            is_enough[-1] = True
        return cls(levels[is_enough].tolist(), band_share)

    def find_passed(
        self, curve: RiskCoverageCurve, target: float, delta: float, min_coverage: float
    ) -> FloatArray:
        """Return the levels before the first one that fails, without those that accept too few."""
        levels = np.array(self.levels)
        entries = curve.n_blocks_accepted(levels)
        accepted = curve.accepted_weight[entries - 1]
        errors = curve.accepted_loss[entries - 1]
        level = (1.0 - self.band_share) * delta
        chance = special.bdtr(errors, accepted.astype(np.int64), target)
        passed = (entries > 0) & (chance <= level)
        enough = reaches(accepted / curve.n_rows, min_coverage)
        return levels[np.logical_and.accumulate(passed) & enough]

    def __call__(
        self, curve: RiskCoverageCurve, target: float, delta: float, min_coverage: float
    ) -> BoolArray:
        """Tell which entries of a curve pass in the band beside the levels."""
        if self.band_share == 0.0:
            return np.zeros(len(curve), dtype=bool)
        return band_risk(curve, target, self.band_share * delta, min_coverage)


def count_system_errors(
    loss: FloatArray, reviewer_loss: FloatArray, confidence: FloatArray, levels: FloatArray
) -> FloatArray:
    """Return how many rows are wrong if the machine answers from each level up, a reviewer below.

    `loss` and `reviewer_loss` have the shape (n,), `levels` that of the result.
    """
    confidence = _undecided_last(confidence)
    order = np.argsort(confidence)
    falling = order[::-1]
    more = np.cumsum((loss - reviewer_loss)[falling])
    more = np.append(0.0, more)
    n_accepted = len(order) - np.searchsorted(confidence[order], levels)
    return reviewer_loss.sum() + more[n_accepted]


def _undecided_last(confidence: FloatArray) -> FloatArray:
    """Return confidences, below all levels where a row has none."""
    return np.where(np.isnan(confidence), -np.inf, confidence)


def system_levels(
    loss: FloatArray, reviewer_loss: FloatArray, confidence: FloatArray
) -> FloatArray:
    """Return quantiles of confidences, from where machine and reviewer err least together down.

    They are for other rows to test: these rows choose the first one. Where it is best to begin is
    read from a parabola through the errors at all levels, which chance moves less than the errors
    at each. (It is refused half as often with 500 rows as where the errors are fewest.)
    """
    shares = np.linspace(0.0, 1.0, FEW_LEVELS + 1)
    quantiles = np.nanquantile(confidence, shares, method="higher")
    confidence = _undecided_last(confidence)
    levels = np.unique(quantiles)[::-1]
    # Other rows may be less sure than all of these: the last level accepts them, too.
    is_share = levels[-1] >= 0.0 and levels[0] <= 1.0
    levels[-1] = 0.0 if is_share else 2.0 * levels[-1] - levels[0]
    errors: Any = count_system_errors(loss, reviewer_loss, confidence, levels)
    if len(levels) > 3:
        accepted = 1.0 - np.searchsorted(np.sort(confidence), levels) / len(confidence)
        parabola = np.polyfit(accepted, errors, 2)
        errors = np.polyval(parabola, accepted)
    return levels[np.argmin(errors) :]


def best_start(curve: RiskCoverageCurve, target: float, min_coverage: float = 0.05) -> float:
    """Find the coverage to start a test sequence at: where the target is met most clearly.

    Parameters
    ----------
    curve : RiskCoverageCurve
        Of rows that do not certify, such as out-of-fold predictions of the training rows.
    target : float in (0, 1)
        The bound to keep. Largest selective risk.
    min_coverage : float in [0, 1], default=0.05

    Returns
    -------
    float in (0, 1]
        The coverage with the smallest P(Binomial(accepted, target) <= errors).

    Examples
    --------
    >>> from skselect import Outcomes, RiskCoverageCurve
    >>> from skselect.thresholds import best_start
    >>> outcomes = Outcomes([1, 0, 0, 0, 0, 0, 1, 1], [.9, .8, .8, .7, .6, .5, .4, .3])
    >>> best_start(RiskCoverageCurve.from_outcomes(outcomes), target=0.3)
    0.75
    """
    chance = special.bdtr(curve.accepted_loss, curve.n_accepted, target)
    allowed = reaches(curve.coverage, min_coverage)
    entry = np.argmin(np.where(allowed, chance, 2.0))
    return float(curve.coverage[entry])


# What is compared: shares of the rows at which the sequence starts, and of delta for the band.
# The default is taken unless others accept a tenth more: the rows that choose are few.
_STARTS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6)
_BAND_SHARES = (0.2, 0.5, 1.0)
_CLEARLY_MORE = 1.1
# With fewer different confidences per row, blocks seldom end at a given rank.
_FEW_TIES = 0.9
# Imagined sets of rows on which the choices are compared.
_DRAWS = 200


@dataclass(frozen=True)
class Combined:
    """The default way to certify a risk, with options of your own: ``method=Combined(...)``.

    ``method="combined"`` is the same with a start and a share of its own, and tests all ranks.

    Parameters
    ----------
    start : float in [0, 1]
        Where the sequence begins, as a share of the rows. It and the others must be fixed before
        the rows are seen; :func:`best_combined` finds them on other rows.
    band_share : float in [0.2, 1], default=0.2
        Share of `delta` that the band gets; 1: all of it, for classifiers whose surest rows are the
        worst.
    sparse : bool, default=False
        Whether the sequence tests only the ranks at which its limit rises, and not all. It
        accepts only sets that end at a tested rank, so that it is not for tied confidences.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, Risk, select_threshold
    >>> from skselect.thresholds import Combined
    >>> rank = np.random.default_rng(0).permutation(300)
    >>> outcomes = Outcomes(rank < 9, rank)
    >>> method = Combined(0.5, sparse=True)
    >>> found = select_threshold(outcomes, objective=Risk(.05, method=method))
    >>> round(found.coverage, 2)
    0.99
    """

    name: ClassVar[str] = "combined"
    start: float
    band_share: float = 0.2
    sparse: bool = False

    def __post_init__(self) -> None:
        check_number("start", self.start, 0.0, 1.0)
        check_number("band_share", self.band_share, 0.2, 1.0)
        if not isinstance(self.sparse, bool | np.bool_):
            raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
                f"sparse must be True or False, got {shown(self.sparse)}."
            )

    def __call__(
        self, curve: RiskCoverageCurve, target: float, delta: float, min_coverage: float
    ) -> BoolArray:
        """Tell which entries of a curve pass."""
        n = curve.n_rows
        ranks, band, sequence = limits_from_start(n, target, delta, min_coverage, self.band_share)
        by_band = passed_in_band(curve, ranks, band)
        tested = self.find_tested(ranks, sequence, n)
        passed = _passed_at if self.sparse else passed_in_sequence
        by_sequence = passed(curve, ranks[tested], sequence[tested])
        return by_band | by_sequence

    def find_tested(self, ranks: IntArray, sequence: IntArray, n: int) -> BoolArray:
        """Tell which ranks the sequence tests."""
        least: IntArray | int = -1
        if self.sparse:
            least = np.append(-1, sequence[:-1])
        return (sequence > least) & (ranks >= self.start * n)


def _passed_at(curve: RiskCoverageCurve, ranks: IntArray, limits: IntArray) -> BoolArray:
    """Tell which entries a sequence passes that tests a few ranks only.

    A rank inside a tie block is tested with the errors of the whole block, but only a rank at
    the end of a block can be accepted.
    """
    entries = curve.first_reaching(ranks)
    is_within = entries < curve.n_within_loss(limits)
    passed = np.logical_and.accumulate(is_within)
    is_end = curve.first_reaching(ranks + 1) > entries
    passing = np.zeros(len(curve), dtype=bool)
    passing[entries[passed & is_end]] = True
    return passing


def best_combined(
    curve: RiskCoverageCurve, n: int, target: float, delta: float, min_coverage: float
) -> Combined | None:
    """Choose the options of :class:`Combined` for `n` certifying rows, by other rows like them.

    Parameters
    ----------
    curve : RiskCoverageCurve
        Of rows that do not certify, such as out-of-fold predictions of the training rows. The
        guarantee is exact whatever they are: a bad choice only accepts less.
    n : int
        Rows that certify.
    target, delta, min_coverage : float
        As in :func:`~skselect.bounds.combined_limits`.

    Returns
    -------
    Combined or None
        Of several starts and shares those that accept most on average where errors and ties fall as
        on this curve; None when `n` rows cannot certify the target.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import Outcomes, RiskCoverageCurve
    >>> from skselect.thresholds import best_combined
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(2000)
    >>> wrong = rng.random(2000) < np.where(confidence > .9, .2, .3 * (1 - confidence) ** 3)
    >>> other_rows = RiskCoverageCurve.from_outcomes(Outcomes(wrong, confidence))
    >>> best_combined(other_rows, 1000, target=.05, delta=.05, min_coverage=.1).start
    0.4
    """
    return choose_combined(curve, n, target, delta, min_coverage, (False, True))


def choose_combined(
    curve: RiskCoverageCurve,
    n: int,
    target: float,
    delta: float,
    min_coverage: float,
    kinds: tuple[bool, ...] = (False,),
) -> Combined | None:
    """Choose as :func:`best_combined`, among the `kinds` of sequences: sparse ones (True) or not.

    Sparse ones are left out where confidences are tied.
    """
    if _are_tied(curve):
        kinds = (False,)
    default = default_combined(n, target, delta, min_coverage)
    best = None
    most = 0.0
    for share in _BAND_SHARES:
        limits = limits_from_start(n, target, delta, min_coverage, share)
        imagined = _imagine(curve, n, *limits)
        if len(imagined.ranks) == 0:
            return None
        for sparse, start in product(kinds, (default.start, *_STARTS)):
            rule = Combined(start, share, sparse)
            accepted = imagined.count_accepted(rule, n)
            if best is None:
                best = rule
                most = accepted * _CLEARLY_MORE
            elif accepted > most:
                best = rule
                most = accepted
    return best


def _are_tied(curve: RiskCoverageCurve) -> bool:
    """Tell whether blocks seldom end at a given rank."""
    return len(curve) < _FEW_TIES * curve.n_rows


class _Imagined(NamedTuple):
    """Imagined errors of `n` rows, a line for each draw, and the limits that they have to keep."""

    ranks: IntArray
    ends: IntArray
    band: IntArray
    sequence: IntArray
    errors: IntArray

    def count_accepted(self, rule: Combined, n: int) -> float:
        """Return how many of `n` rows a rule accepts on average."""
        by_band = np.max(np.where(self.errors <= self.band, self.ends, 0), axis=1)
        tested = rule.find_tested(self.ranks, self.sequence, n)
        limits = self.sequence[tested]
        if not rule.sparse:  # a block must keep the limit of the rank before it
            limits = np.append(limits[:1], limits[:-1])
        passed = np.logical_and.accumulate(self.errors[:, tested] <= limits, axis=1)
        by_sequence = np.max(np.where(passed, self.ends[tested], 0), axis=1, initial=0)
        return float(np.mean(np.maximum(by_band, by_sequence)))


def _imagine(
    curve: RiskCoverageCurve, n: int, ranks: IntArray, band: IntArray, sequence: IntArray
) -> _Imagined:
    """Imagine errors among `n` rows that are as frequent, and as tied, as on a curve."""
    ends = _ends_of_blocks(curve, ranks, n) if _are_tied(curve) else ranks
    errors = _imagine_errors(curve, ends, n)
    return _Imagined(ranks, ends, band, sequence, errors)


def default_combined(n: int, target: float, delta: float, min_coverage: float) -> Combined:
    """Return what ``method="combined"`` is for `n` rows."""
    ranks, _, sequence = combined_limits(n, target, delta, min_coverage)
    tested = ranks[sequence >= 0]
    if len(tested) == 0:
        return Combined(1.0)
    # Between two ranks, so that rounding moves none.
    return Combined((tested[0] - 0.5) / n)


def _ends_of_blocks(curve: RiskCoverageCurve, ranks: IntArray, n: int) -> IntArray:
    """Return where the tie block of each rank ends, if `n` rows are tied as those of a curve."""
    blocks = curve.first_reaching(-(-ranks * curve.n_rows // n))
    ends = np.append(curve.n_accepted, curve.n_rows)[blocks]
    return np.asarray(-(-ends * n // curve.n_rows))


def _imagine_errors(curve: RiskCoverageCurve, ends: IntArray, n: int) -> IntArray:
    """Draw the errors among the surest of `n` rows, at each rank, about as often as on a curve.

    Each draw has error rates of its own, which differ from those of the curve as much as these
    may differ from the true ones. One more error, spread evenly, keeps them above zero.
    """
    rng = np.random.default_rng(0)  # the same rows always get the same rule
    ranks, place = np.unique(ends, return_inverse=True)
    places = np.append(0.0, ranks) * (curve.n_rows / n)
    rows = np.diff(places)
    accepted = np.append(0.0, curve.n_accepted)
    loss = np.append(0.0, curve.accepted_loss)
    errors = np.diff(np.interp(places, accepted, loss)) + rows / curve.n_rows
    rates = rng.gamma(errors, size=(_DRAWS, len(ranks))) / rows
    rates = np.minimum(rates, 1.0)
    drawn = rng.binomial(np.diff(ranks, prepend=0), rates)
    return np.cumsum(drawn, axis=1)[:, place]
