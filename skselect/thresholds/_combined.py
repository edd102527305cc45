"""A band with a sequence beside it, suited to a classifier by rows that do not certify."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from skselect._lib.checks import shown
from skselect._lib.checks.options import check_number
from skselect._lib.typing import BoolArray, IntArray
from skselect.bounds import band_accepts, limits_from_start, rows_for_certificate
from skselect.curve.curve import RiskCoverageCurve
from skselect.thresholds._rules import find_errors, last_in_band, passed_in_sequence

# What is compared: shares of the rows at which the sequence starts, and of delta for the band.
# The first of each are taken unless others accept a tenth more: the rows that choose are few.
_STARTS = (0.2, 0.1, 0.15, 0.25, 0.3, 0.4, 0.5, 0.6)
_BAND_SHARES = (0.2, 0.5)
_CLEARLY_MORE = 1.1
# With fewer different confidences per row, blocks seldom end at a given rank.
_FEW_TIES = 0.9
# Imagined sets of rows on which the choices are compared.
_DRAWS = 200


@dataclass(frozen=True)
class Combined:
    """A band with a sequence beside it: ``method=Combined(...)`` of a risk target.

    ``method="combined"`` is the same with a start and a share of its own, and tests all ranks.

    Parameters
    ----------
    start : float in [0, 1]
        Where the sequence begins, as a share of the rows. It and the others must be fixed before
        the rows are seen; :func:`best_combined` finds them on other rows.
    band_share : float in [0.2, 0.9], default=0.2
        Share of `delta` that the band gets.
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
        check_number("band_share", self.band_share, 0.2, 0.9)
        if not isinstance(self.sparse, bool | np.bool_):
            raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
                f"sparse must be True or False, got {shown(self.sparse)}."
            )

    def __call__(
        self, curve: RiskCoverageCurve, target: float, delta: float, min_coverage: float
    ) -> int:
        """Return how many entries of a curve to accept."""
        n = curve.n_rows
        ranks, band, sequence = limits_from_start(n, target, delta, min_coverage, self.band_share)
        if len(ranks) == 0:
            return 0
        tested = self.find_tested(ranks, sequence, n)
        passed = _passed_at if self.sparse else passed_in_sequence
        return max(last_in_band(curve, ranks, band), passed(curve, ranks[tested], sequence[tested]))

    def find_tested(self, ranks: IntArray, sequence: IntArray, n: int) -> BoolArray:
        """Tell which ranks the sequence tests."""
        before = np.append(-1, sequence[:-1]) if self.sparse else -1
        return (sequence > before) & (ranks >= self.start * n)

    def meets(self, curve: RiskCoverageCurve, target: float, delta: float, least: float) -> bool:
        """Tell whether anything is accepted; limits are computed only to decide it."""
        n, errors = curve.n_rows, partial(find_errors, curve)
        if rows_for_certificate(target, delta) > n:
            return False
        if band_accepts(n, target, self.band_share * delta, least, errors):
            return True
        return self(curve, target, delta, least) > 0


def _passed_at(curve: RiskCoverageCurve, ranks: IntArray, limits: IntArray) -> int:
    """Return how many entries a sequence accepts that tests a few ranks only.

    A rank inside a tie block is tested with the errors of the whole block, but only a rank at
    the end of a block can be accepted.
    """
    entry = curve.first_reaching(ranks)
    failed = np.flatnonzero(entry >= curve.n_within_loss(limits))
    passed = np.arange(len(ranks)) < (failed[0] if len(failed) else len(ranks))
    ends = curve.first_reaching(ranks + 1) > entry
    return int(np.max(entry[passed & ends] + 1, initial=0))


def best_combined(
    curve: RiskCoverageCurve, n: int, target: float, delta: float, min_coverage: float
) -> Combined | None:
    """Choose band and sequence for `n` rows that certify, by other rows of the same kind.

    Parameters
    ----------
    curve : RiskCoverageCurve
        Of rows that do not certify, such as out-of-fold predictions of the training rows. The
        promise is exact whatever they are: a bad choice only accepts less.
    n : int
        Rows that will certify.
    target, delta, min_coverage : float
        As in :func:`~skselect.bounds.combined_limits`.

    Returns
    -------
    Combined or None
        Of several starts and shares those that accept most on average where errors fall as on
        this curve; None when `n` rows cannot certify the target.

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
    sparse = len(curve) >= _FEW_TIES * curve.n_rows
    best, most = None, 0.0
    for share in _BAND_SHARES:
        ranks, band, sequence = limits_from_start(n, target, delta, min_coverage, share)
        if len(ranks) == 0:
            return None
        errors = _imagine_errors(curve, ranks, n)
        by_band = np.max(np.where(errors <= band, ranks, 0), axis=1)
        for start in _STARTS:
            rule = Combined(start, share, sparse)
            tested = rule.find_tested(ranks, sequence, n)
            passed = np.logical_and.accumulate(errors[:, tested] <= sequence[tested], axis=1)
            by_sequence = np.max(np.where(passed, ranks[tested], 0), axis=1, initial=0)
            accepted = float(np.mean(np.maximum(by_band, by_sequence)))
            if best is None:
                best, most = rule, accepted * _CLEARLY_MORE
            elif accepted > most:
                best, most = rule, accepted
    return best


def _imagine_errors(curve: RiskCoverageCurve, ranks: IntArray, n: int) -> IntArray:
    """Draw the errors among the surest of `n` rows, at each rank, about as often as on a curve.

    Each draw has error rates of its own, which differ from those of the curve as much as these
    may differ from the true ones. One more error, spread evenly, keeps them above zero.
    """
    rng = np.random.default_rng(0)  # the same rows always get the same rule
    places = np.append(0.0, ranks) * (curve.n_rows / n)
    known = np.append(0.0, curve.n_accepted), np.append(0.0, curve.accepted_loss)
    rows = np.diff(places)
    errors = np.diff(np.interp(places, *known)) + rows / curve.n_rows
    rates = np.minimum(rng.gamma(errors, size=(_DRAWS, len(ranks))) / rows, 1.0)
    return np.cumsum(rng.binomial(np.diff(ranks, prepend=0), rates), axis=1)
