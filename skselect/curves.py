"""The heart: one sort, then every threshold is a look-up.

Rows are sorted once by confidence. Rows with equal confidence form a block, because no
threshold can part them. All that follows reads prefix sums over the blocks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from skselect import _areas
from skselect import _validation as check
from skselect._typing import FloatArray, IntArray
from skselect.outcomes import Outcomes

_AURC_ESTIMATORS: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "empirical": _areas.aurc_empirical,
    "integral": _areas.aurc_integral,
    "ln": _areas.aurc_log,
}


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve:
    """Risk against coverage for every threshold that makes a difference.

    Build it with :meth:`from_outcomes` or :meth:`from_proba`. There is one entry per
    distinct confidence, from the surest down; entry b describes accepting every row whose
    confidence is at least ``thresholds[b]``.

    Parameters
    ----------
    thresholds : ndarray of shape (B,)
        The distinct confidences, descending.
    block_weight, block_loss : ndarray of shape (B,)
        Weight of the rows with that confidence, and their weighted loss.
    block_rows : ndarray of shape (B,)
        Number of rows with that confidence.
    loss_values, loss_weight : ndarray of shape (m,)
        The distinct losses, ascending, and the weight of each (for the best possible order).
    counted : bool
        Whether every row counts once.
    perfect_order : bool
        Whether no row is less sure than, or as sure as, a row with a larger loss.

    Examples
    --------
    >>> from skselect import Outcomes, RiskCoverageCurve
    >>> outcomes = Outcomes(loss=[0, 0, 1, 0, 1], confidence=[.95, .9, .9, .7, .6])
    >>> curve = RiskCoverageCurve.from_outcomes(outcomes)
    >>> curve.to_frame().round(3)
       threshold  coverage  selective_risk  generalized_risk  n_accepted
    0       0.95       0.2           0.000               0.0           1
    1       0.90       0.6           0.333               0.2           3
    2       0.70       0.8           0.250               0.2           4
    3       0.60       1.0           0.400               0.4           5
    >>> round(curve.augrc(), 4), round(curve.risk_at_coverage(.7), 4)
    (0.14, 0.25)
    """

    thresholds: FloatArray
    block_weight: FloatArray
    block_loss: FloatArray
    block_rows: IntArray
    loss_values: FloatArray
    loss_weight: FloatArray
    counted: bool
    perfect_order: bool

    # Construction ------------------------------------------------------------------------

    @classmethod
    def from_outcomes(cls, outcomes: Outcomes) -> RiskCoverageCurve:
        """Sort `outcomes` once and add up each block. Rows of weight zero do not exist.

        Parameters
        ----------
        outcomes : Outcomes

        Returns
        -------
        RiskCoverageCurve
        """
        loss, confidence, weight = outcomes.loss, outcomes.confidence, outcomes.sample_weight
        if weight is not None and np.any(weight == 0):
            exists = weight > 0
            loss, confidence, weight = loss[exists], confidence[exists], weight[exists]
        if weight is None or np.all(weight == 1.0):
            if np.all((loss == 0.0) | (loss == 1.0)):
                # Whole numbers add up exactly in any order.
                order = np.argsort(-confidence)
                return cls._from_errors(loss[order], confidence[order])
            weight = np.ones(len(loss))
        order = np.lexsort((weight, loss, -confidence))  # sums of floats need a fixed order
        return cls.from_sorted(loss[order], confidence[order], weight[order])

    @classmethod
    def _from_errors(cls, loss: FloatArray, confidence: FloatArray) -> RiskCoverageCurve:
        """Count the rows and the errors of each block; rows come surest first."""
        n_wrong = int(np.count_nonzero(loss))
        n_right = len(loss) - n_wrong
        differs = confidence[1:] != confidence[:-1]
        tied = not np.all(differs)
        if tied:
            starts = np.flatnonzero(np.append(True, differs))
            block_rows = np.diff(np.append(starts, len(loss)))
            block_weight = block_rows.astype(np.float64)
        else:  # ones that take no memory
            block_rows, block_weight = (np.broadcast_to(one, loss.shape) for one in (1, 1.0))
        totals = np.array([n_right, n_wrong], dtype=np.float64)
        # Perfect: all errors come last, and no right answer ties with the first of them.
        apart = 0 < n_right < len(loss) and confidence[n_right - 1] != confidence[n_right]
        return cls(
            thresholds=confidence[starts] if tied else confidence,
            block_weight=block_weight,
            block_loss=np.add.reduceat(loss, starts) if tied else loss,
            block_rows=block_rows,
            loss_values=np.array([0.0, 1.0])[totals > 0],
            loss_weight=totals[totals > 0],
            counted=True,
            perfect_order=n_wrong in (0, len(loss)) or (apart and not np.any(loss[:n_right])),
        )

    @classmethod
    def from_sorted(
        cls, loss: FloatArray, confidence: FloatArray, weight: FloatArray
    ) -> RiskCoverageCurve:
        """Add up each block; rows come surest first."""
        starts = np.flatnonzero(np.append(True, confidence[1:] != confidence[:-1]))
        values, place = np.unique(loss, return_inverse=True)
        smallest, largest = np.minimum.reduceat(loss, starts), np.maximum.reduceat(loss, starts)
        perfect = np.all(smallest == largest) and np.all(largest[:-1] <= smallest[1:])
        return cls(
            thresholds=confidence[starts],
            block_weight=np.add.reduceat(weight, starts),
            block_loss=np.add.reduceat(weight * loss, starts),
            block_rows=np.diff(np.append(starts, len(loss))),
            loss_values=values,
            loss_weight=np.bincount(place, weights=weight).astype(np.float64),
            counted=bool(np.all(weight == 1.0)),
            perfect_order=bool(perfect),
        )

    @classmethod
    def from_proba(cls, y_true: Any, y_proba: Any, **options: Any) -> RiskCoverageCurve:
        """Build the curve from probabilities; `options` as in :meth:`Outcomes.from_proba`.

        Examples
        --------
        >>> from skselect import RiskCoverageCurve
        >>> curve = RiskCoverageCurve.from_proba([0, 1, 1], [[.9, .1], [.2, .8], [.6, .4]])
        >>> curve.coverage_at_risk(0.0)
        0.6666666666666666
        """
        return cls.from_outcomes(Outcomes.from_proba(y_true, y_proba, **options))

    # The curve ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.thresholds)

    @cached_property
    def accepted_weight(self) -> FloatArray:
        """Weight of the accepted rows at each entry."""
        return np.cumsum(self.block_weight)

    @cached_property
    def accepted_loss(self) -> FloatArray:
        """Weighted loss of the accepted rows at each entry."""
        return np.cumsum(self.block_loss)

    @cached_property
    def n_accepted(self) -> IntArray:
        """Number of accepted rows at each entry."""
        return np.cumsum(self.block_rows)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.n_accepted[-1])

    @cached_property
    def coverage(self) -> FloatArray:
        """Share of accepted rows at each entry, in (0, 1]."""
        return self.accepted_weight / self.accepted_weight[-1]

    @cached_property
    def selective_risk(self) -> FloatArray:
        """Mean loss of the accepted rows at each entry, in [0, 1]."""
        return self.accepted_loss / self.accepted_weight

    @cached_property
    def generalized_risk(self) -> FloatArray:
        """Loss of the accepted rows over the weight of all rows, in [0, 1]."""
        return self.accepted_loss / self.accepted_weight[-1]

    def working_point(self, n_blocks: int) -> tuple[float, float]:
        """Return coverage and selective risk of the first entries; (0, nan) of none."""
        if n_blocks == 0:
            return 0.0, float("nan")
        weight = self.n_accepted if self.counted else self.accepted_weight
        kept = float(weight[n_blocks - 1])
        return kept / float(weight[-1]), float(self.accepted_loss[n_blocks - 1]) / kept

    @property
    def mean_loss(self) -> float:
        """Mean loss of all rows: the risk when nothing is rejected."""
        return float(self.selective_risk[-1])

    def n_blocks_accepted(self, thresholds: FloatArray) -> IntArray:
        """Return how many entries each threshold accepts (a tie with it is accepted)."""
        return np.searchsorted(-self.thresholds, -np.asarray(thresholds), side="right")

    def to_frame(self) -> pd.DataFrame:
        """Return the curve as a table, one row per entry."""
        return pd.DataFrame(
            {
                "threshold": self.thresholds,
                "coverage": self.coverage,
                "selective_risk": self.selective_risk,
                "generalized_risk": self.generalized_risk,
                "n_accepted": self.n_accepted,
            }
        )

    # Working points ----------------------------------------------------------------------

    def risk_at_coverage(self, coverage: float) -> float:
        """Return the selective risk of the smallest accepted set with at least this coverage.

        Parameters
        ----------
        coverage : float in (0, 1]

        Returns
        -------
        float in [0, 1]
        """
        q = check.check_number("coverage", coverage, 0.0, 1.0, closed="right")
        return float(self.selective_risk[int(np.argmax(check.reaches(self.coverage, q)))])

    def coverage_at_risk(self, max_risk: float) -> float:
        """Return the largest coverage whose selective risk is at most `max_risk`.

        Parameters
        ----------
        max_risk : float in [0, 1]

        Returns
        -------
        float in [0, 1]
            0 if no working point meets it.
        """
        r = check.check_number("max_risk", max_risk, 0.0, 1.0)
        meets = np.flatnonzero(check.stays_within(self.selective_risk, r))
        return float(self.coverage[meets[-1]]) if len(meets) else 0.0

    def coverage_at_reliability(self, reliability: float) -> float:
        """Return the largest coverage with 1 - generalised risk of at least `reliability`.

        Parameters
        ----------
        reliability : float in [0, 1]

        Returns
        -------
        float in [0, 1]
        """
        rho = check.check_number("reliability", reliability, 0.0, 1.0)
        total = self.accepted_weight[-1]
        n_meeting = int(np.sum(check.reaches((total - self.accepted_loss) / total, rho)))
        return float(self.coverage[n_meeting - 1]) if n_meeting else 0.0

    # Areas -------------------------------------------------------------------------------

    @property
    def _mean_losses(self) -> FloatArray:
        return self.block_loss / self.block_weight

    def aurc(self, *, estimator: str = "empirical", ties: str = "expected") -> float:
        """Return the area under the risk-coverage curve; see :func:`metrics.aurc_score`."""
        check.check_choice("estimator", estimator, _AURC_ESTIMATORS)
        check.check_choice("ties", ties, ["expected", "block"])
        if estimator == "ln":
            self._need_counted("estimator='ln'")
        if estimator == "empirical" and ties == "expected":
            check.warn_small_total(
                float(self.accepted_weight[-1]),
                self.n_rows,
                "the empirical AURC",
                ", or take aurc(estimator='integral'), which does not depend on their scale",
            )
        if ties == "block":
            if estimator != "empirical":
                raise ValueError(
                    f"ties='block' goes with estimator='empirical', got {estimator!r}."
                )
            return _areas.aurc_block(self.block_weight, self._mean_losses)
        return _AURC_ESTIMATORS[estimator](self.block_weight, self._mean_losses)

    def best_aurc(self) -> float:
        """Return the empirical AURC of the best possible order of the same losses."""
        return _areas.aurc_empirical(self.loss_weight, self.loss_values)

    def eaurc(self) -> float:
        """Return the excess AURC over the best possible order, exactly 0 for that order."""
        if self.perfect_order:
            return 0.0
        return max(self.aurc() - self.best_aurc(), 0.0)

    def naurc(self) -> float:
        """Return the excess AURC on the scale where 0 is the best order and 1 a random one."""
        spread = self.mean_loss - self.best_aurc() if len(self.loss_values) > 1 else 0.0
        if spread <= 0:
            warnings.warn(
                "naurc is undefined (nan): every row has the same loss, so no order is better "
                "than another.",
                stacklevel=2,
            )
            return float("nan")
        return self.eaurc() / spread

    def augrc(
        self,
        *,
        estimator: str = "trapezoid",
        coverage_range: tuple[float, float] | None = None,
    ) -> float:
        """Return the area under generalised risk over coverage; see :func:`metrics.augrc_score`."""
        check.check_choice("estimator", estimator, ["trapezoid", "unbiased"])
        if estimator == "unbiased":
            return self._augrc_unbiased(coverage_range)
        if coverage_range is None:
            return _areas.augrc_trapezoid(self.block_weight, self._mean_losses)
        low, high = check.check_interval("coverage_range", coverage_range)
        coverage = np.concatenate([[0.0], self.coverage])
        risk = np.concatenate([[0.0], self.generalized_risk])
        return _areas.area_between(coverage, risk, low, high) / (high - low)

    def _augrc_unbiased(self, coverage_range: tuple[float, float] | None) -> float:
        self._need_counted("estimator='unbiased'")
        if coverage_range is not None:
            raise ValueError("coverage_range goes with estimator='trapezoid' only.")
        if self.n_rows < 2:
            raise ValueError("estimator='unbiased' needs at least two rows.")
        return _areas.augrc_unbiased(self.block_weight, self._mean_losses)

    def _need_counted(self, option: str) -> None:
        if not self.counted:
            raise ValueError(f"{option} is defined for unweighted rows; leave sample_weight out.")

    # Confidence-weighted selective accuracy -----------------------------------------------

    def cwsa(self, thresholds: Any = None) -> FloatArray:
        """Return CWSA at each threshold; see :func:`metrics.cwsa_score`.

        Parameters
        ----------
        thresholds : float or array-like in [0, 1), default=None
            None: one value per entry of the curve, at its own threshold (at a confidence of
            exactly 1 the limit from below).

        Returns
        -------
        ndarray of shape (m,) or (B,)
        """
        return self._cwsa(thresholds, sign=-1.0)

    def cwsa_plus(self, thresholds: Any = None) -> FloatArray:
        """Return CWSA+ at each threshold; arguments as in :meth:`cwsa`.

        Examples
        --------
        >>> from skselect import Outcomes, RiskCoverageCurve
        >>> outcomes = Outcomes(loss=[0, 1, 0], confidence=[.9, .8, .6])
        >>> RiskCoverageCurve.from_outcomes(outcomes).cwsa_plus([0.5, 0.7])
        array([0.33333333, 0.33333333])
        """
        return self._cwsa(thresholds, sign=0.0)

    def _cwsa(self, thresholds: Any, sign: float) -> FloatArray:
        if thresholds is None:
            return self._cwsa_of(np.arange(1, len(self) + 1), self.thresholds, sign)
        t = check.check_cwsa_thresholds(thresholds)
        return self._cwsa_of(self.n_blocks_accepted(t), t, sign)

    def cwsa_right_limits(self, *, plus: bool) -> tuple[FloatArray, FloatArray]:
        """Return, per entry, the threshold just above the next lower confidence and CWSA(+) there.

        Between two confidences the accepted set is fixed and CWSA+ falls with the threshold:
        its best value is the limit at the lower end, which no data point attains. The last
        entry accepts everything, from threshold 0 on.
        """
        limits = np.append(self.thresholds[1:], 0.0)
        values = self._cwsa_of(np.arange(1, len(self) + 1), limits, 0.0 if plus else -1.0)
        thresholds = np.append(np.nextafter(limits[:-1], np.inf), 0.0)
        return thresholds, values

    def _cwsa_of(self, n_blocks: IntArray, t: FloatArray, sign: float) -> FloatArray:
        """Return [right - D_right/(1 - t)] / kept, plus `sign` times the same over the losses.

        D is a prefix sum of 1 - c: near c = 1 this form is exact where sums of c cancel.
        """
        check.check_unit_confidence(self.thresholds[[0, -1]], "CWSA")
        right, wrong, d_right, d_wrong = self._cwsa_sums
        kept = np.concatenate([[0.0], self.accepted_weight])[n_blocks]
        scale = np.divide(1.0, 1.0 - t, out=np.zeros_like(t), where=t < 1)
        total = right[n_blocks] - d_right[n_blocks] * scale
        if sign:
            total = total + sign * (wrong[n_blocks] - d_wrong[n_blocks] * scale)
        return np.divide(total, kept, out=np.zeros_like(kept), where=kept > 0)

    @cached_property
    def _cwsa_sums(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        shortfall = 1.0 - self.thresholds
        right = self.block_weight - self.block_loss
        parts = (right, self.block_loss, right * shortfall, self.block_loss * shortfall)
        sums = [np.concatenate([[0.0], np.cumsum(part)]) for part in parts]
        return sums[0], sums[1], sums[2], sums[3]
