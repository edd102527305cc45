"""The risk-coverage curve: rows are sorted once, then every threshold is a look-up.

Rows with equal confidence form a block, because no threshold can separate them. Sums over all
blocks are computed once; arrays with one entry per block are built when they are asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from skselect._lib.arrays import ROUNDING, FloatArray, IntArray, is_graded, reaches, stays_within
from skselect._lib.checks import options as option_checks, warn_user
from skselect._lib.checks.rows import check_unit_confidence, warn_small_total
from skselect.curve import areas, scan, tie_blocks
from skselect.curve.tie_blocks import CHUNK, TieBlocks, group_rows, group_sorted_rows
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import refuse_unjudged

_AURC: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "empirical": areas.aurc_block,  # with ties="block"
    "integral": areas.aurc_integral,
    "ln": areas.aurc_log,
}


@dataclass(frozen=True, eq=False)
class GradedLosses:
    """Losses other than 0 and 1, row by row, because some areas need each of them.

    Parameters
    ----------
    loss : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
    ordered : bool
        Whether every row has a higher confidence than each row with a larger loss.
    """

    loss: FloatArray
    weight: FloatArray | None
    ordered: bool

    def best_order(self) -> TieBlocks:
        """Return blocks in the best possible order: those of equal losses, the smallest first."""
        if self.weight is None:
            loss = np.sort(self.loss)
            return group_sorted_rows(-loss, None, loss)
        ranking, weight = tie_blocks.sort_rows(-self.loss, self.weight)
        return group_sorted_rows(ranking, weight, -ranking * weight)


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve:
    """Risk against coverage for every threshold that makes a difference.

    Build it with :meth:`from_outcomes` or :meth:`from_proba`. There is one entry per
    distinct confidence, from the surest down; entry b describes accepting every row whose
    confidence is at least ``thresholds[b]``.

    Parameters
    ----------
    blocks : TieBlocks
        The rows, in blocks of equal confidence.
    counted : bool
        Whether every row counts once.
    graded : GradedLosses or None
        None where losses are 0 or 1.
    n_undecided : int, default=0
        Rows without a confidence, which no threshold accepts. They count in coverages.
    undecided_weight : float, default=0
        The weight of these rows.

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

    blocks: TieBlocks
    counted: bool = True
    graded: GradedLosses | None = None
    n_undecided: int = 0
    undecided_weight: float = 0.0
    _arrays: dict[str, FloatArray] = field(default_factory=dict, init=False, repr=False)

    # Construction ------------------------------------------------------------------------

    @classmethod
    def from_outcomes(cls, outcomes: Outcomes) -> RiskCoverageCurve:
        """Sort `outcomes` once. Rows of weight zero are left out.

        Parameters
        ----------
        outcomes : Outcomes

        Returns
        -------
        RiskCoverageCurve
        """
        refuse_unjudged(outcomes, "a curve")
        if np.isnan(outcomes.confidence.min()):
            undecided = np.isnan(outcomes.confidence)
            if undecided.all():  # one entry, of no row
                curve = cls(tie_blocks.blocks_from_counts(np.zeros(1), *np.zeros((2, 1), np.int64)))
            else:
                curve = cls.from_outcomes(outcomes.take(~undecided))
            n_undecided = int(np.count_nonzero(undecided & (outcomes.weight > 0)))
            weight_of_undecided = float(outcomes.weight[undecided].sum())
            return replace(curve, n_undecided=n_undecided, undecided_weight=weight_of_undecided)
        loss = outcomes.loss
        confidence = outcomes.confidence
        weight = outcomes.sample_weight
        if weight is not None and weight.min() == 0:
            exists = weight > 0
            loss = loss[exists]
            confidence = confidence[exists]
            weight = weight[exists]
        if weight is not None and weight.min() == weight.max() == 1.0:
            weight = None
        if not is_graded(loss):
            blocks = group_rows(loss, confidence, weight)
            return cls(blocks, counted=weight is None)
        if weight is None:
            confidence, loss = tie_blocks.sort_rows(confidence, loss)
        else:
            confidence, loss, weight = tie_blocks.sort_rows(confidence, loss, weight)
        return cls.from_sorted(loss, confidence, weight)

    @classmethod
    def from_sorted(
        cls, loss: FloatArray, confidence: FloatArray, weight: FloatArray | None
    ) -> RiskCoverageCurve:
        """Build the curve from rows sorted by falling confidence, ties by falling loss."""
        graded = None
        if is_graded(loss):
            ordered = bool(np.all(loss[1:] >= loss[:-1]))
            graded = GradedLosses(loss, weight, ordered)
        lost = loss if weight is None else weight * loss
        whole = weight is None and graded is None
        blocks = group_sorted_rows(confidence, weight, lost, whole=whole)
        return cls(blocks, counted=weight is None, graded=graded)

    @classmethod
    def from_proba(cls, y_true: Any, y_proba: Any, **options: Any) -> RiskCoverageCurve:
        """Build the curve from class probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        y_proba : array-like of shape (n, K) or (n,)
            Class probabilities. (n,) is the probability of the positive one of two classes.
        **options
            `labels`, `pos_label`, `confidence`, `loss` and `sample_weight`: the keywords of
            :meth:`Outcomes.from_proba`.

        Returns
        -------
        RiskCoverageCurve

        Examples
        --------
        >>> from skselect import RiskCoverageCurve
        >>> curve = RiskCoverageCurve.from_proba([0, 1, 1], [[.9, .1], [.2, .8], [.6, .4]])
        >>> curve.coverage_at_risk(0.0)
        0.6666666666666666
        """
        return cls.from_outcomes(Outcomes.from_proba(y_true, y_proba, **options))

    # The curve ---------------------------------------------------------------------------

    @cached_property
    def sums(self) -> scan.Sums:
        """Sums over all blocks."""
        sums = scan.sum_blocks(self.blocks)
        return replace(sums, undecided=self.undecided_weight)

    def __len__(self) -> int:
        return self.sums.n_blocks

    def __repr__(self) -> str:
        return (
            f"<RiskCoverageCurve: {self.n_rows} rows, {len(self)} thresholds, risk "
            f"{self.mean_loss:.4g} at full coverage>"
        )

    def arrays(self, *names: str, max_points: int | None = None) -> dict[str, FloatArray]:
        """Return several arrays in one pass, each with one value per entry.

        Parameters
        ----------
        *names : str
            Of "threshold", "coverage", "selective_risk", "generalized_risk", "cwsa",
            "cwsa_plus", "accepted_weight" and "accepted_loss"; "cwsa_limit" and
            "cwsa_plus_limit" are CWSA and CWSA+ just above the next lower confidence.
        max_points : int, default=None
            Return the exact values of this many entries only, evenly spread, both ends included.
            Arrays of full length are then not built.

        Returns
        -------
        dict of str to ndarray of shape (B,) or (max_points,)

        Raises
        ------
        ValueError
            If a name is unknown, or CWSA is asked for with confidences outside [0, 1].

        Examples
        --------
        >>> from skselect import Outcomes, RiskCoverageCurve
        >>> curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 1, 0], [.9, .8, .6]))
        >>> curve.arrays("threshold", "cwsa_plus")["cwsa_plus"]
        array([0.  , 0.25, 0.25])
        """
        for name in names:
            option_checks.check_choice("names", name, scan.CURVES)
        if any(name.startswith("cwsa") for name in names):
            self.check_unit("CWSA")
        if max_points is not None:
            option_checks.check_count("max_points", max_points, 2)
        entries = scan.evenly(len(self), max_points)
        if entries is not None:
            return scan.compute_curves(self.sums, names, entries)
        missing = {name for name in names if name not in self._arrays}
        if missing:
            self._arrays.update(scan.compute_curves(self.sums, missing))
        return {name: self._arrays[name] for name in names}

    @property
    def thresholds(self) -> FloatArray:
        """The distinct confidences, descending, shape (B,)."""
        return self.blocks.confidence

    @property
    def block_weight(self) -> FloatArray:
        """Weight of the rows with each confidence."""
        return self.blocks.stored.weight

    @property
    def block_loss(self) -> FloatArray:
        """Weighted loss of the rows with each confidence."""
        return self.blocks.stored.loss

    @property
    def block_rows(self) -> IntArray:
        """Number of rows with each confidence."""
        return self.blocks.rows

    @property
    def is_graded(self) -> bool:
        """Whether there are losses other than 0 and 1."""
        return self.graded is not None

    @property
    def accepted_weight(self) -> FloatArray:
        """Weight of the accepted rows at each entry."""
        return self.arrays("accepted_weight")["accepted_weight"]

    @property
    def accepted_loss(self) -> FloatArray:
        """Weighted loss of the accepted rows at each entry."""
        return self.arrays("accepted_loss")["accepted_loss"]

    @cached_property
    def n_accepted(self) -> IntArray:
        """Number of accepted rows at each entry."""
        return np.cumsum(self.block_rows)

    @cached_property
    def n_rows(self) -> int:
        """Number of rows."""
        if self.counted:
            return round(self.sums.weight) + self.n_undecided
        return int(np.sum(self.block_rows)) + self.n_undecided

    @property
    def coverage(self) -> FloatArray:
        """Share of accepted rows at each entry, in (0, 1]."""
        return self.arrays("coverage")["coverage"]

    @property
    def selective_risk(self) -> FloatArray:
        """Mean loss of the accepted rows at each entry, in [0, 1]."""
        return self.arrays("selective_risk")["selective_risk"]

    @property
    def generalized_risk(self) -> FloatArray:
        """Loss of the accepted rows over the weight of all rows, in [0, 1]."""
        return self.arrays("generalized_risk")["generalized_risk"]

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        return self.sums.total

    def accepted_at(self, thresholds: FloatArray) -> scan.Accepted:
        """Return weight and loss of what each threshold accepts; no array per entry is built."""
        return scan.sum_accepted(self.sums, thresholds)

    def accepted_by(self, n_blocks: int) -> tuple[float, float]:
        """Return weight and loss of the first `n_blocks` entries; no array per entry is built."""
        if n_blocks == 0:
            return 0.0, 0.0
        k, place = divmod(n_blocks - 1, CHUNK)
        accumulated = self.sums.chunk(k)
        return float(accumulated.weight[place]), float(accumulated.loss[place])

    def working_point(self, n_blocks: int) -> tuple[float, float]:
        """Return coverage and selective risk at the entry `n_blocks`; (0, nan) if that is 0."""
        if n_blocks == 0:
            return 0.0, float("nan")
        weight, loss = self.accepted_by(n_blocks)
        return weight / self.sums.total, loss / weight

    def first_reaching(self, ranks: IntArray | int) -> IntArray:
        """Return the first entry that accepts at least so many rows."""
        if len(self) == self.n_rows:  # each accepts one row more
            return np.minimum(np.maximum(np.asarray(ranks) - 1, 0), len(self))
        return np.searchsorted(self.n_accepted, ranks)

    def loss_reaching(self, ranks: IntArray) -> FloatArray:
        """Return the loss of the first entry that accepts so many rows, inf where none does."""
        entries = self.first_reaching(ranks)
        if self.n_undecided == 0:
            return self.accepted_loss[entries]
        return np.append(self.accepted_loss, np.inf)[entries]

    def n_within_loss(self, losses: IntArray | int) -> IntArray:
        """Return how many entries have accepted at most so much loss."""
        return np.searchsorted(self.accepted_loss, losses, side="right")

    @property
    def mean_loss(self) -> float:
        """Mean loss of all rows: the risk when nothing is rejected."""
        return self.sums.loss / self.sums.weight

    def n_blocks_at(self, threshold: float) -> int:
        """Return how many tie blocks one threshold accepts."""
        [n_blocks] = self.n_blocks_accepted(np.array([threshold])).tolist()
        return int(n_blocks)

    def n_blocks_accepted(self, thresholds: FloatArray) -> IntArray:
        """Return how many entries each threshold accepts (a tie with it is accepted)."""
        rising = self.thresholds[::-1]
        return len(self) - np.searchsorted(rising, thresholds, side="left")

    def to_frame(self, max_points: int | None = None) -> pd.DataFrame:
        """Return the curve as a table, one row per entry, or `max_points` of them.

        Parameters
        ----------
        max_points : int, default=None
            Return the exact values of this many entries only, evenly spread, both ends included.

        Returns
        -------
        DataFrame
        """
        names = ("threshold", "coverage", "selective_risk", "generalized_risk", "accepted_weight")
        columns = self.arrays(*names, max_points=max_points)
        n_accepted = columns.pop("accepted_weight").astype(np.int64)
        if not self.counted:  # weights do not tell the number of rows
            n_accepted = self.n_accepted
            entries = scan.evenly(len(self), max_points)
            if entries is not None:
                n_accepted = n_accepted[entries]
        return pd.DataFrame({**columns, "n_accepted": n_accepted})

    def to_outcomes(self) -> Outcomes:
        """Return outcomes with the same curve: one weighted row per confidence and loss.

        Raises
        ------
        ValueError
            If losses are graded: a curve holds their sums only.
        """
        if self.is_graded:
            raise ValueError("curve: graded losses of single rows are not known from their sums.")
        right = self.block_weight - self.block_loss
        weight = np.concatenate([right, self.block_loss])
        exists = weight > 0
        loss = np.repeat([0.0, 1.0], len(right))
        confidence = np.tile(self.thresholds, 2)
        return Outcomes(loss[exists], confidence[exists], weight[exists])

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
        q = option_checks.check_number("coverage", coverage, 0.0, 1.0, closed="right")
        entry = int(np.argmax(reaches(self.coverage, q)))
        return float(self.selective_risk[entry])

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
        r = option_checks.check_number("max_risk", max_risk, 0.0, 1.0)
        meeting = np.flatnonzero(stays_within(self.selective_risk, r))
        if len(meeting) == 0:
            return 0.0
        return float(self.coverage[meeting[-1]])

    def coverage_at_reliability(self, reliability: float) -> float:
        """Return the largest coverage with 1 - generalised risk of at least `reliability`.

        Parameters
        ----------
        reliability : float in [0, 1]

        Returns
        -------
        float in [0, 1]
        """
        rho = option_checks.check_number("reliability", reliability, 0.0, 1.0)
        total = self.total_weight
        reliabilities = (total - self.accepted_loss) / total
        n_meeting = int(np.sum(reaches(reliabilities, rho)))
        if n_meeting == 0:
            return 0.0
        return float(self.coverage[n_meeting - 1])

    # Areas -------------------------------------------------------------------------------

    def refuse_undecided(self, purpose: str) -> None:
        """Refuse rows without a confidence where all rows count."""
        if self.n_undecided:
            raise ValueError(
                f"confidence: {self.n_undecided:,} of {self.n_rows:,} rows cannot be decided, "
                f"because they have no answer, or lack a number. {purpose} needs both in each row; "
                "leave them out."
            )

    @property
    def _mean_losses(self) -> FloatArray:
        return self.block_loss / self.block_weight

    def aurc(self, *, estimator: str = "empirical", ties: str = "expected") -> float:
        """Return the area under the risk-coverage curve; see :func:`metrics.aurc_score`."""
        option_checks.check_choice("estimator", estimator, _AURC)
        option_checks.check_choice("ties", ties, ["expected", "block"])
        self.refuse_undecided("An area")
        if estimator == "ln":
            self._need_counted("estimator='ln'")
        if ties == "block" and estimator != "empirical":
            raise ValueError(f"ties='block' goes with estimator='empirical', got {estimator!r}.")
        if estimator != "empirical" or ties == "block":
            return _AURC[estimator](self.block_weight, self._mean_losses)
        warn_small_total(
            self.sums.weight,
            self.n_rows,
            "the empirical AURC",
            ", or use aurc(estimator='integral'), which does not depend on their scale",
        )
        return self.sums.mean_risk.aurc

    @cached_property
    def _best_aurc(self) -> float:
        if self.graded is not None:
            best = self.graded.best_order()
        else:  # all right rows before all wrong ones
            totals = np.array([self.sums.weight - self.sums.loss, self.sums.loss])
            exists = totals > 0
            loss = np.flatnonzero(exists).astype(np.float64)
            weight = totals[exists]
            best = group_sorted_rows(-loss, weight, weight * loss, whole=self.counted)
        sums = scan.sum_blocks(best)
        return sums.mean_risk.aurc

    def best_aurc(self) -> float:
        """Return the empirical AURC of the best possible order of the same losses."""
        return self._best_aurc

    @property
    def perfect_order(self) -> bool:
        """Whether every row has a higher confidence than each row with a larger loss."""
        if self.graded is not None:
            return self.graded.ordered
        return self.sums.products.discordant == 0.0

    def eaurc(self) -> float:
        """Return the excess AURC over the best possible order, exactly 0 for that order."""
        self.refuse_undecided("An area")
        if self.perfect_order:
            return 0.0
        excess = self.sums.mean_risk.excess
        if excess is not None:
            return excess
        return max(self.aurc() - self.best_aurc(), 0.0)

    def eaugrc(self) -> float:
        """Return the excess AUGRC over the best possible order, exactly 0 for that order."""
        self.refuse_undecided("An area")
        if self.perfect_order:
            return 0.0
        best = 0.0  # no discordant pairs
        if self.graded is not None:
            sums = scan.sum_blocks(self.graded.best_order())
            best = sums.discordant_share
        return max(self.sums.discordant_share - best, 0.0)

    def naurc(self) -> float:
        """Return the excess AURC on the scale where 0 is the best order and 1 a random one."""
        if self.graded is None:
            differ = 0 < self.mean_loss < 1
        else:
            differ = bool(self.graded.loss.min() < self.graded.loss.max())
        spread = 0.0
        if differ:
            spread = self.mean_loss - self.best_aurc()
        if spread <= 0:
            warn_user(
                "naurc is undefined (nan): every row has the same loss, so no order is better "
                "than another."
            )
            return float("nan")
        return self.eaurc() / spread

    def augrc(
        self, *, estimator: str = "trapezoid", coverage_range: tuple[float, float] | None = None
    ) -> float:
        """Return the area under generalised risk over coverage; see :func:`metrics.augrc_score`."""
        option_checks.check_choice("estimator", estimator, ["trapezoid", "unbiased"])
        self.refuse_undecided("An area")
        if estimator == "unbiased":
            return self._augrc_unbiased(coverage_range)
        if coverage_range is None:
            return self.sums.augrc
        low, high = option_checks.check_range("coverage_range", coverage_range)
        coverage = np.concatenate([[0.0], self.coverage])
        risk = np.concatenate([[0.0], self.generalized_risk])
        return areas.area_between(coverage, risk, low, high) / (high - low)

    def _augrc_unbiased(self, coverage_range: tuple[float, float] | None) -> float:
        self._need_counted("estimator='unbiased'")
        if coverage_range is not None:
            raise ValueError("coverage_range goes with estimator='trapezoid' only.")
        if self.n_rows < 2:
            raise ValueError("estimator='unbiased' needs at least two rows.")
        return areas.augrc_unbiased(self.block_weight, self._mean_losses)

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
        return self._cwsa("cwsa", thresholds)

    def cwsa_plus(self, thresholds: Any = None) -> FloatArray:
        """Return CWSA+ at each threshold; see :func:`metrics.cwsa_plus_score`.

        Parameters
        ----------
        thresholds : float or array-like in [0, 1), default=None
            None: one value per entry of the curve, at its own threshold (at a confidence of
            exactly 1 the limit from below).

        Returns
        -------
        ndarray of shape (m,) or (B,)

        Examples
        --------
        >>> from skselect import Outcomes, RiskCoverageCurve
        >>> outcomes = Outcomes(loss=[0, 1, 0], confidence=[.9, .8, .6])
        >>> RiskCoverageCurve.from_outcomes(outcomes).cwsa_plus([0.5, 0.7])
        array([0.33333333, 0.33333333])
        """
        return self._cwsa("cwsa_plus", thresholds)

    def _cwsa(self, name: str, thresholds: Any) -> FloatArray:
        if thresholds is None:
            return self.arrays(name)[name]
        return self.cwsa_at(option_checks.check_thresholds(thresholds), plus=name == "cwsa_plus")

    def cwsa_at(self, thresholds: FloatArray, *, plus: bool) -> FloatArray:
        """Return CWSA or CWSA+ at checked thresholds, 0 where no row is accepted."""
        self.check_unit("CWSA")
        accepted = self.accepted_at(thresholds)
        right, wrong = scan.sum_shortfalls(self.sums, thresholds)
        slope = areas.slope(1.0 - thresholds)
        total = areas.sum_terms(accepted.weight, accepted.loss, right, wrong, slope, plus=plus)
        weight = np.where(accepted.weight > 0, accepted.weight, 1.0)
        return total / weight

    def check_unit(self, metric: str) -> None:
        """Refuse confidences outside [0, 1] for a metric that reads them as probabilities."""
        ends = np.array([self.sums.largest, self.sums.smallest])
        check_unit_confidence(ends, metric)

    def cwsa_right_limits(self, *, plus: bool) -> tuple[FloatArray, FloatArray]:
        """Return, per entry, the threshold just above the next lower confidence and CWSA(+) there.

        Between two confidences the accepted rows stay the same and CWSA+ falls as the threshold
        rises, so that it is largest just above the lower one. The last entry accepts everything,
        from threshold 0 on.
        """
        name = "cwsa_plus_limit" if plus else "cwsa_limit"
        curves = self.arrays("threshold", name)
        # Adding 0.0 turns a negative zero into a positive one ...
        lower = curves["threshold"][1:] + 0.0
        thresholds = np.zeros(len(self))
        bits = thresholds[:-1].view(np.int64)
        # ... and adding 1 to the bits of a float from 0 on gives the next float.
        bits[:] = lower.view(np.int64) + 1
        return thresholds, curves[name]


def count_within(risk: FloatArray, targets: Any) -> IntArray:
    """Return how many entries the largest accepted set has whose risk is at most each target.

    `risk` has one value per entry of a curve: a selective risk, or a bound on it.
    """
    # Of this entry and all larger sets: it rises.
    least = np.minimum.accumulate(risk[::-1])[::-1]
    most = np.asarray(targets) * (1.0 + ROUNDING)
    return np.searchsorted(least, most, side="right")


def count_deferred(curve: RiskCoverageCurve, risk: FloatArray, targets: Any) -> FloatArray:
    """Return the cases per 1,000 that are left by the set of :func:`count_within`."""
    coverage = np.append(0.0, curve.coverage)
    answered = coverage[count_within(risk, targets)]
    return 1000.0 * (1.0 - answered)


class CountedRows(ABC):
    """Rows of which only counts are known, such as those of a :class:`SelectiveState`."""

    labels: Any
    confidence: Any
    n_rows: int

    @abstractmethod
    def finalize(self) -> RiskCoverageCurve:
        """Return the curve of all rows."""


def threshold_below(curve: RiskCoverageCurve, n_blocks: int, *, bounded: bool = True) -> float:
    """Return the threshold that accepts the first `n_blocks` entries and no more.

    It is the midpoint between the last accepted and the first rejected confidence, so that
    rounding to float32 or in `predict_proba` changes no decision. If all entries are accepted it
    is 0, or -inf where confidences lie outside [0, 1]; pass ``bounded=False`` if those of new rows
    may, even though none does here.
    """
    if n_blocks == 0:
        return float("inf")
    lowest = float(curve.thresholds[n_blocks - 1])
    if n_blocks == len(curve):
        inside = bounded and lowest >= 0 and curve.sums.largest <= 1
        return 0.0 if inside else float("-inf")
    rejected = float(curve.thresholds[n_blocks])
    middle = rejected + (lowest - rejected) / 2.0
    if rejected < middle <= lowest:
        return middle
    return lowest
