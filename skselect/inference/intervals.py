"""Confidence intervals for the value of a metric in the population, and the bootstrap.

The bootstrap draws rows, or whole clusters of rows, with replacement. Rows are sorted once; a draw
only changes how often each of them counts.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Unpack

import numpy as np
from scipy.special import expit, ndtr, ndtri, stdtrit

from skselect._lib.arrays import ROUNDING, ConfidenceSpec, FloatArray, IntArray, LossSpec, is_graded
from skselect._lib.checks import rows as row_checks, warn_user
from skselect._lib.checks.options import check_choice, check_count, check_generator, check_number
from skselect._lib.keywords import WeighedRowOptions, share_options
from skselect._lib.notebook import NotebookText
from skselect.bounds._pointwise import (
    clopper_pearson_interval,
    clopper_pearson_upper,
    find_root,
    hoeffding_bentkus_upper,
)
from skselect.curve.curve import RiskCoverageCurve
from skselect.curve.influence import RankedInfluence
from skselect.curve.tie_blocks import SummedBlocks, blocks_from_counts
from skselect.metrics import _threshold
from skselect.metrics._calibration_errors import where_filled
from skselect.metrics._calibration_tests import run_ecce_test
from skselect.metrics._evaluate import GAPS, SPECS, refuse_classifier, request
from skselect.metrics._metric import MetricSpec, find_asked_class
from skselect.metrics._rows import Influence, ScoredRows, score_rows
from skselect.metrics._threshold import SubgroupShares
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions, read_rows

#: Number of cells that rows are put into for `cell_bootstrap`.
N_CELLS = 4096

#: Estimators of areas that are not defined for weighted rows.
_UNWEIGHTED = ("ln", "unbiased")


class Sampling(NamedTuple):
    """How intervals are made: their level, and how a bootstrap draws rows."""

    rng: np.random.Generator
    level: float = 0.95
    n_resamples: int = 999
    cluster: IntArray | None = None
    #: Whether closed forms are used where there are any; whether rows are drawn from cells.
    closed_forms: bool = True
    cells: bool = False

    @classmethod
    def checked(
        cls, method: Any, level: Any, n_resamples: Any, random_state: Any, *others: str
    ) -> Sampling:
        """Check what users say about intervals; `others` are methods beside the usual two."""
        check_choice("method", method, ["analytic", "bootstrap", *others])
        level = check_number("confidence_level", level, 0.0, 1.0, closed="neither")
        check_count("n_resamples", n_resamples, 2)
        return cls(
            check_generator(random_state),
            level,
            n_resamples,
            closed_forms=method == "analytic",
            cells=method == "cell_bootstrap",
        )


def bootstrap(resamplers: Sequence[Resampler | BinResampler], how: Sampling) -> FloatArray:
    """Return the metric of each model in each draw; all models share the draws.

    Returns
    -------
    ndarray of shape (n_resamples, len(resamplers))
    """
    values = np.empty((how.n_resamples, len(resamplers)))
    n = resamplers[0].rows.n_rows
    place = np.arange(n)
    if how.cluster is None:
        place = np.argsort(_canonical_order(resamplers))
    places = [place[resampler.order] for resampler in resamplers]
    for draw in range(how.n_resamples):
        counts = draw_counts(n, how.cluster, how.rng)
        for model, resampler in enumerate(resamplers):
            values[draw, model] = resampler.value(counts.take(places[model]))
    return values


def draw_counts(n: int, cluster: IntArray | None, rng: np.random.Generator) -> IntArray:
    """Return how often each row is drawn; all rows of a cluster are drawn together."""
    if cluster is None:
        return np.bincount(rng.integers(0, n, n), minlength=n)
    n_clusters = int(cluster.max()) + 1
    drawn = rng.integers(0, n_clusters, n_clusters)
    return np.bincount(drawn, minlength=n_clusters)[cluster]


def _canonical_order(resamplers: Sequence[Resampler | BinResampler]) -> IntArray:
    """Return an order of the rows that does not depend on the one they came in."""
    keys: list[Any] = []
    for resampler in resamplers:
        rows = resampler.rows
        keys += [rows.outcomes.loss, rows.outcomes.confidence]
        keys += [rows.predictions.y_true, rows.predictions.y_pred]
    return np.lexsort(keys)


class Resampler:
    """Computes a metric for any counts of the rows.

    Parameters
    ----------
    spec : MetricSpec
    rows : ScoredRows
    parameters : mapping
    """

    def __init__(self, spec: MetricSpec, rows: ScoredRows, parameters: Mapping[str, Any]) -> None:
        if parameters.get("estimator") in _UNWEIGHTED:
            raise ValueError(
                f"estimator={parameters['estimator']!r} has no weighted form, which the bootstrap "
                "needs; leave it out, or use method='analytic' with augrc."
            )
        self.spec = spec
        self.rows = rows
        self.parameters = parameters
        outcomes = rows.outcomes
        # Losses and confidences are sorted once; predictions stay in their order.
        if spec.needs == "predictions":
            self.order = np.arange(len(outcomes))
        else:
            self.order = np.lexsort((-outcomes.loss, -outcomes.confidence))
        self.loss = outcomes.loss[self.order]
        self.confidence = outcomes.confidence[self.order]

    def value(self, counts: IntArray) -> float:
        """Return the metric where the rows, in the order of `order`, count so often each."""
        source = self._source(counts.astype(np.float64))
        return _value_of_draw(self.spec, source, self.parameters)

    def _source(self, weight: FloatArray) -> Any:
        if self.spec.needs == "predictions":
            return replace(self.rows.predictions, sample_weight=weight)
        if self.spec.needs == "outcomes":
            return Outcomes(self.loss, self.confidence, weight)
        if np.isnan(self.confidence[-1:]).any():  # rows of zeros come last
            return RiskCoverageCurve.from_outcomes(Outcomes(self.loss, self.confidence, weight))
        drawn = weight > 0
        return RiskCoverageCurve.from_sorted(
            self.loss[drawn], self.confidence[drawn], weight[drawn]
        )


class BinResampler:
    """Computes the ECE for any counts of the rows.

    The rows are in the order of their confidence, so that a bin is a run of them.

    Parameters
    ----------
    rows : ScoredRows
    n_bins : int
    strategy : {"uniform", "quantile"}
    """

    def __init__(self, rows: ScoredRows, n_bins: int = 15, strategy: str = "uniform") -> None:
        outcomes = rows.outcomes
        self.rows = rows
        self.n_bins = n_bins
        self.strategy = strategy
        self.order = np.argsort(outcomes.confidence, kind="stable")
        confidence = outcomes.confidence[self.order]
        self.gap = (1.0 - outcomes.loss[self.order]) - confidence
        # Equal confidences share a bin: up to which row they reach.
        self.reach = np.searchsorted(confidence, confidence, side="right")
        edges = np.arange(1, n_bins) / n_bins
        self.starts = self._find_starts(np.searchsorted(confidence, edges, side="right"))

    def _find_starts(self, ends: IntArray) -> IntArray:
        """Return the first row of each bin that has rows, from the ends of all but the last."""
        starts = np.unique(np.append(ends, 0))
        return starts[starts < len(self.order)]

    def value(self, counts: IntArray) -> float:
        """Return the ECE where the rows, in the order of `order`, count so often each."""
        starts = self.starts
        if self.strategy == "quantile":
            full_at = where_filled(np.cumsum(counts), self.n_bins)
            starts = self._find_starts(self.reach[full_at])
        gaps = np.add.reduceat(counts * self.gap, starts)
        return float(np.abs(gaps).sum() / counts.sum())


def _value_of_draw(spec: MetricSpec, source: Any, parameters: Mapping[str, Any]) -> float:
    # Some draws hold no errors.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return float(spec.kernel(source, **parameters))


def cell_bootstrap(
    spec: MetricSpec, curve: RiskCoverageCurve, parameters: Mapping[str, Any], how: Sampling
) -> FloatArray:
    """Return the metric in each draw of rows from `N_CELLS` cells of neighbouring blocks.

    A draw costs as much for a billion rows as for a few thousand. Rows of a cell are tied; the
    draws are shifted by the effect of these ties on the metric.
    """
    n = curve.n_rows
    cell = np.ceil(curve.accepted_weight / n * N_CELLS)
    starts = np.flatnonzero(np.diff(cell, prepend=0.0) > 0)
    size = np.add.reduceat(curve.block_weight, starts)
    wrong = np.add.reduceat(curve.block_loss, starts)
    right = size - wrong
    centre = np.add.reduceat(curve.block_weight * curve.thresholds, starts) / size

    def value(n_right: FloatArray, n_wrong: FloatArray) -> float:
        drawn = RiskCoverageCurve(_fill_cells(centre, n_right, n_wrong))
        return _value_of_draw(spec, drawn, parameters)

    shift = float(spec.kernel(curve, **parameters)) - value(right, wrong)
    chance = np.concatenate([right, wrong]) / n
    values = np.empty(how.n_resamples)
    for draw in range(how.n_resamples):
        right, wrong = np.split(how.rng.multinomial(n, chance).astype(np.float64), 2)
        values[draw] = value(right, wrong)
    return shift + values


def _fill_cells(centre: FloatArray, right: FloatArray, wrong: FloatArray) -> SummedBlocks:
    """Return the cells of which a row is drawn, as blocks of equal confidence."""
    n_rows = right + wrong
    drawn = n_rows > 0
    return blocks_from_counts(
        centre[drawn], n_rows[drawn].astype(np.int64), wrong[drawn].astype(np.int64)
    )


# From so many rows on, drawing from cells takes less time. They are far narrower than bins.
_MANY = 150_000
#: Corners of the region in which two shares lie; more hardly narrow it.
_N_CORNERS = 16
#: From so many subgroups at each end the lower end of a gap is sought.
_MOST_APART = 64
#: With fewer errors, or right answers, an interval cannot be relied on.
FEW_ERRORS = 10


@dataclass(frozen=True)
class MetricInterval(NotebookText):
    """A metric with its confidence interval.

    Parameters
    ----------
    metric : str
    estimate, low, high : float
    standard_error : float
        On the scale of the metric.
    confidence_level : float
    method : str
        "log", "logit" or "normal": closed form, normal on that scale; "wilson": a share of
        rows; "pairs": right and wrong rows are separated without exception; "bootstrap":
        percentiles of resampled rows; "simultaneous": exact bounds of all subgroups.
    n_rows : int
    n_accepted : int or None
        For a metric at a threshold.
    n_errors : float
        The errors that the estimate rests on: those accepted, for a metric at a threshold.
    """

    metric: str
    estimate: float
    low: float
    high: float
    standard_error: float
    confidence_level: float
    method: str
    n_rows: int
    n_accepted: int | None
    n_errors: float

    def __repr__(self) -> str:
        return (
            f"<MetricInterval: {self.metric} {self.estimate:.4g} [{self.low:.4g}, {self.high:.4g}]>"
        )

    def __str__(self) -> str:
        rows = f"{self.n_rows} rows"
        if self.n_accepted is not None:
            rows += f", {self.n_accepted} accepted"
        return (
            f"{self.metric} {self.estimate:.4g}, {100 * self.confidence_level:g} % interval "
            f"[{self.low:.4g}, {self.high:.4g}] ({self.method}; {rows}, {self.n_errors:g} errors)"
        )


# Kernels ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Measured:
    """A metric of unweighted rows, with its influence values where a closed form is used."""

    spec: MetricSpec
    rows: ScoredRows
    parameters: Mapping[str, Any]
    how: Sampling
    estimate: float
    influence: Influence | RankedInfluence | None

    @cached_property
    def confident_error(self) -> float:
        """How much the metric grows if the surest right answer turns wrong.

        0 for metrics that read classes: which one it would be is not known. 0 also where the metric
        has no value without this answer.
        """
        if self.influence is not None:
            return self.influence.confident_error
        outcomes = self.rows.outcomes
        right = np.flatnonzero((outcomes.loss < 1.0) & ~np.isnan(outcomes.confidence))
        if len(right) == 0 or self.spec.needs == "predictions":
            return 0.0
        surest = right[np.argmax(outcomes.confidence[right])]
        loss = outcomes.loss.copy()
        loss[surest] = 1.0
        turned = ScoredRows(replace(outcomes, loss=loss))
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            growth = self.spec.value(turned, self.parameters) - self.estimate
        return 0.0 if math.isnan(growth) else growth


def measure(
    spec: MetricSpec, rows: ScoredRows, parameters: Mapping[str, Any], how: Sampling
) -> Measured:
    """Compute a metric and, where closed forms are wanted, its influence values."""
    if spec.interval is None:
        raise ValueError(f"metric: {spec.name!r} has no interval: {spec.no_interval}.")
    rows = spec.choose_rows(rows)
    estimate = spec.value(rows, parameters)
    influence = spec.influence(rows, parameters) if how.closed_forms else None
    if how.cells and not (spec.needs == "curve" and spec.chance_raises == "nothing"):
        raise ValueError(
            f"method='cell_bootstrap' is for metrics of the risk-coverage curve; {spec.name!r} "
            "reads rows or classes, or is raised by chance. Use method='bootstrap'."
        )
    return Measured(spec, rows, parameters, how, estimate, influence)


class Ends(NamedTuple):
    """An interval, with the standard error and the name of the method behind it."""

    low: float
    high: float
    error: float
    method: str

    def within(self, least: float, most: float) -> Ends:
        """Return the ends, no further than a range reaches."""
        low = min(max(self.low, least), most)
        high = min(max(self.high, least), most)
        return self._replace(low=low, high=high)


#: Where there is no interval.
_NO_ENDS = Ends(math.nan, math.nan, math.nan, "none")


def find_interval(measured: Measured) -> MetricInterval:
    """Return the interval of a metric that has been measured."""
    ends = _find_ends(measured)
    n_accepted, n_errors = count_errors(measured.spec, measured.rows, measured.parameters)
    return MetricInterval(
        metric=measured.spec.name,
        estimate=measured.estimate,
        low=ends.low,
        high=ends.high,
        standard_error=ends.error,
        confidence_level=measured.how.level,
        method=ends.method,
        n_rows=measured.rows.n_rows,
        n_accepted=n_accepted,
        n_errors=n_errors,
    )


def _find_ends(measured: Measured) -> Ends:
    spec = measured.spec
    how = measured.how
    if math.isnan(measured.estimate):
        return _NO_ENDS
    if spec.of_subgroups:
        return _gap_ends(measured)
    if measured.influence is not None:
        return interval_around(measured.influence, how.level, how.cluster).within(*spec.limits)
    if isinstance(measured.rows.source, RiskCoverageCurve):  # no rows to draw
        return _NO_ENDS
    return _bootstrap_ends(measured)


def _gap_ends(measured: Measured) -> Ends:
    """Return the bounds of a metric that compares subgroups."""
    spec = measured.spec
    if measured.how.cluster is not None:
        raise ValueError(
            f"cluster: the bounds of {spec.name!r} are those of independent rows; pass one row "
            "of each cluster."
        )
    shares = SubgroupShares.of(spec.name, measured.rows.outcomes, **measured.parameters)
    low, high = gap_interval(shares, measured.how.level)
    return Ends(low, high, math.nan, "simultaneous")


def _bootstrap_ends(measured: Measured) -> Ends:
    """Return percentiles of the draws, which reach further by a confident error."""
    spec = measured.spec
    how = measured.how
    ends = _percentiles(_draw(measured), how.level)
    low, high = _reach(ends.low, ends.high, measured.confident_error, *spec.limits)
    if spec.chance_raises != "nothing" and ends.method == "bootstrap":
        if how.cluster is None and _rejects_calibration(measured.rows, how.level):
            low = min(low, measured.estimate)
        else:
            low = 0.0
    return ends._replace(low=low, high=high)


def interval_around(
    influence: Influence | RankedInfluence, level: float, cluster: IntArray | None = None
) -> Ends:
    """Return the interval of an estimate from what each row adds."""
    estimate = influence.estimate
    error = influence.standard_error(cluster)
    scale = influence.scale
    is_separated = estimate in (0.0, 1.0) and scale == "logit" and cluster is None
    if is_separated and isinstance(influence, RankedInfluence) and influence.n_pairs > 0:
        # Of this many independent pairs all are ordered alike [Hoeffding 1963, section 5].
        n_pairs = influence.n_pairs
        low, high = clopper_pearson_interval(estimate * n_pairs, n_pairs, level)
        return Ends(low, high, error, "pairs")
    if not error > ROUNDING * max(abs(estimate), 1.0) and scale != "proportion":
        return _NO_ENDS._replace(error=error)  # all rows are equal
    return _normal_ends(influence, error, quantile(level, cluster), cluster)


def _normal_ends(
    influence: Influence | RankedInfluence, error: float, z: float, cluster: IntArray | None
) -> Ends:
    """Return the interval that reaches `z` standard errors, on the scale of the influence."""
    estimate = influence.estimate
    scale = influence.scale
    unseen = influence.confident_error
    if scale == "proportion" and cluster is None:
        assert influence.n_trials is not None
        low, high = _wilson(estimate, influence.n_trials, z)
        return Ends(low, high, error, "wilson")
    if scale == "log" and estimate > 0:
        # exp(710) is infinite.
        factor = math.exp(min(z * error / estimate, 700.0))
        low, high = _reach(estimate / factor, estimate * factor, unseen, 0.0)
        return Ends(low, high, error, "log")
    if scale in ("logit", "proportion") and 0 < estimate < 1:
        odds = math.log(estimate / (1.0 - estimate))
        step = z * error / (estimate * (1.0 - estimate))
        low = float(expit(odds - step))
        high = float(expit(odds + step))
        low, high = _reach(low, high, unseen, 0.0, 1.0)
        return Ends(low, high, error, "logit")
    if scale == "identity":
        low, high = _reach(estimate - z * error, estimate + z * error, unseen)
        return Ends(low, high, error, "normal")
    if scale == "signed share":
        low, high = _reach(estimate - z * error, estimate + z * error, unseen, -1.0, 1.0)
        return Ends(low, high, error, "normal")
    return _NO_ENDS._replace(error=error)  # at the edge of its range


def _reach(
    low: float, high: float, unseen: float, least: float = -math.inf, most: float = math.inf
) -> tuple[float, float]:
    """Return ends that reach further by what one confident error adds, within a range."""
    return max(low + min(unseen, 0.0), least), min(high + max(unseen, 0.0), most)


def gap_interval(shares: SubgroupShares, level: float) -> tuple[float, float]:
    """Return low and high of the largest difference between two of K subgroups.

    The upper end is wrong only if one bound on a difference is: that of the two subgroups that
    differ most in the population, whichever they are. The lower end is wrong only if the bound on
    one of the K (K - 1) differences is. For the same two, in reverse order, that bound is wrong
    only if the upper end is. So all bounds but this one share the other half of 1 - level.
    """
    failure = (1.0 - level) / 2.0
    n_pairs = len(shares.names) * (len(shares.names) - 1)
    low, high = _corner_bounds(shares, failure)
    upper_end = np.max(high - _least_other(low[::-1]))
    low, high = _corner_bounds(shares, failure / (n_pairs - 1))
    # With many subgroups, of those that seem to differ most: fewer pairs never raise the end.
    largest = np.argsort(-low.mean(axis=0))[:_MOST_APART]
    smallest = np.argsort(high.mean(axis=0))[:_MOST_APART]
    apart = low[:, largest, np.newaxis] - high[::-1, np.newaxis, smallest]
    lower_end = np.max(np.min(apart, axis=0))
    return max(0.0, float(lower_end)), float(upper_end)


def _corner_bounds(shares: SubgroupShares, delta: float) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the share of each subgroup, shape (corners, K), one-sided at each corner.

    At some corner i, the upper bound i of one share and the lower bound m - 1 - i of another hold
    together, with probability at least 1 - `delta`. Each bound fails where a p-value is small. The
    p-values of two shares are independent, so their normal scores (x, y) lie in a region of squares
    at least as often as two normal variables do. The squares have corners (x_i, x_{m-1-i}) near a
    circle: where shares are about normal, this is narrower than one square.
    """
    cosines = np.cos(np.arange(_N_CORNERS) / _N_CORNERS * np.pi / 2.0)

    def excess(radius: float) -> float:
        inside = ndtr(radius * cosines)
        beyond = ndtr(-radius * cosines)
        squares = -np.diff(inside, append=0.0) * beyond[::-1]
        return float(beyond[0] + np.sum(squares)) - delta

    failures = ndtr(-find_root(excess, 0.0, 40.0) * cosines)
    over = shares.over
    rest = shares.under - over
    bound: Callable[..., Any] = clopper_pearson_upper
    if shares.is_graded:
        bound = hoeffding_bentkus_upper
        over = over / np.maximum(shares.under, 1.0)
        rest = rest / np.maximum(shares.under, 1.0)
    high = np.array([bound(over, shares.under, failure) for failure in failures])
    high_of_rest = np.array([bound(rest, shares.under, failure) for failure in failures])
    return 1.0 - high_of_rest, high


def _least_other(values: FloatArray) -> FloatArray:
    """Return, for each entry of a row, the least of the other ones."""
    least = np.partition(values, 1, axis=1)
    return np.where(values == least[:, :1], least[:, 1:2], least[:, :1])


def quantile(confidence_level: float, cluster: IntArray | None) -> float:
    """Return how many standard errors an interval reaches to either side."""
    upper = (1.0 + confidence_level) / 2.0
    if cluster is None:
        return float(ndtri(upper))
    return float(stdtrit(max(int(cluster.max()), 1), upper))  # clusters are few: Student's t


def _wilson(share: float, n: float, z: float) -> tuple[float, float]:
    """Return Wilson's score interval."""
    shrinkage = 1.0 + z * z / n
    centre = (share + z * z / (2.0 * n)) / shrinkage
    half = z / shrinkage * math.sqrt(share * (1.0 - share) / n + (z / (2.0 * n)) ** 2)
    low = max(0.0, min(share, centre - half))
    high = min(1.0, max(share, centre + half))
    return low, high


def _draw(measured: Measured) -> FloatArray:
    """Return the metric in each draw of rows, of clusters, or of rows from cells."""
    spec = measured.spec
    rows = measured.rows
    how = measured.how
    if not how.cells and not _bins_many(measured):
        if spec.name == "ece":
            return bootstrap([BinResampler(rows, **measured.parameters)], how)[:, 0]
        return bootstrap([Resampler(spec, rows, measured.parameters)], how)[:, 0]
    if how.cluster is not None:
        raise ValueError(
            "cluster goes with method='analytic' and 'bootstrap': cells mix rows of all clusters."
        )
    row_checks.check_countable(rows.curve)
    return cell_bootstrap(spec, rows.curve, measured.parameters, how)


def _bins_many(measured: Measured) -> bool:
    """Tell whether a metric of bins stays what it is where rows are drawn from cells."""
    outcomes = measured.rows.outcomes
    how = measured.how
    return (
        how.closed_forms
        and how.cluster is None
        and measured.spec.name == "ece"
        and measured.parameters.get("n_bins", 15) <= N_CELLS / 40
        and len(outcomes) >= _MANY
        and not is_graded(outcomes.loss)
    )


def _percentiles(drawn: FloatArray, level: float) -> Ends:
    """Return the interval from the metric in each draw."""
    drawn = drawn[np.isfinite(drawn)]  # draws in which the metric has no value
    if len(drawn) < 2 or np.ptp(drawn) <= ROUNDING:
        return _NO_ENDS  # all draws are equal
    shares = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    low, high = np.quantile(drawn, shares).tolist()
    return Ends(low, high, float(np.std(drawn, ddof=1)), "bootstrap")


def _rejects_calibration(rows: ScoredRows, level: float) -> bool:
    """Tell whether a test finds the classifier miscalibrated."""
    if is_graded(rows.outcomes.loss):
        return False
    test = run_ecce_test(rows.outcomes)
    p_value = min(test.mad_p_value, test.r_p_value)
    return test.has_many_rows and p_value <= (1.0 - level) / 2.0


def count_errors(
    spec: MetricSpec, rows: ScoredRows, parameters: Mapping[str, Any]
) -> tuple[int | None, float]:
    """Count the errors that a metric rests on: for one at a threshold, accepted rows and theirs."""
    outcomes = rows.outcomes
    loss = outcomes.loss
    if outcomes.sample_weight is not None:
        loss = outcomes.weight * loss
    if not spec.at_threshold:
        return None, float(loss.sum())
    accepted = _threshold.accepted_rows(outcomes, parameters.get("threshold", 0.5))
    n_errors = float(loss.compress(accepted).sum())
    return int(np.count_nonzero(accepted)), n_errors


def count_scarce(interval: MetricInterval) -> tuple[float, str]:
    """Return the number of errors or of right answers that an interval rests on, and which."""
    rests_on = (SPECS | GAPS)[interval.metric].rests_on
    n_answers = interval.n_rows if interval.n_accepted is None else interval.n_accepted
    n_right = n_answers - interval.n_errors
    if rests_on == "right answers":
        return n_right, "right answers"
    if rests_on == "errors and right answers" and n_right < interval.n_errors:
        return n_right, "right answers"
    return interval.n_errors, "errors"


def is_shaky(interval: MetricInterval) -> bool:
    """Tell whether the interval rests on too few errors or right answers to be relied on."""
    if (SPECS | GAPS)[interval.metric].rests_on == "rows":
        return False
    n_scarce, _ = count_scarce(interval)
    return n_scarce < FEW_ERRORS


# Public functions ------------------------------------------------------------------------


@share_options
def metric_interval(
    y_true: Any,
    y_proba: Any,
    metric: str = "augrc",
    *,
    method: str = "analytic",
    confidence_level: float = 0.95,
    metric_params: Mapping[str, Any] | None = None,
    n_resamples: int = 999,
    random_state: Any = None,
    cluster: Any = None,
    **options: Unpack[WeighedRowOptions],
) -> MetricInterval:
    """Compute a metric with a confidence interval for its value in the population.

    Parameters
    ----------
    %(data)s
    metric : str, default="augrc"
        Short name as in ``skselect.metrics.SPECS``, such as "augrc". Also "coverage_gap" and
        "risk_gap", with the subgroups in `metric_params`.
    method : {"analytic", "bootstrap", "cell_bootstrap"}, default="analytic"
        "analytic": closed forms where there are any, else the bootstrap, of "ece" with 150,000
        rows or more that over cells. "cell_bootstrap":
        the bootstrap over 4096 cells of neighbouring confidences, whose draws take no longer for
        more rows; for metrics of the risk-coverage curve with losses of 0 or 1.
    confidence_level : float in (0, 1), default=0.95
    metric_params : dict, default=None
        Parameters of the metric, such as ``{"threshold": 0.8}``.
    n_resamples : int, default=999
        Draws of the bootstrap.
    random_state : int, Generator or None, default=None
        Seed of the bootstrap.
    cluster : array-like of shape (n,), default=None
        Which rows belong together (one patient, one day): clusters, not rows, are then treated
        as independent.
    %(options)s
        Only constant weights: a weight is not a number of independent rows.

    Returns
    -------
    MetricInterval
        ``print`` it for a readable text.

    Raises
    ------
    ValueError
        If weights are not constant, the metric has no interval (csr, p_risk, mce,
        classwise_ece, tce), or an argument is malformed.

    Warns
    -----
    UserWarning
        If the estimate rests on fewer than 10 errors, or fewer than 10 right answers.

    Notes
    -----
    Closed forms: AUGRC by the pseudo-values of its U-statistic, AURC and e-AURC by their
    influence function, both on the log scale; failure AUROC by DeLong's placements on the
    logit scale; CWSA, CWSA+, confidence-weighted accuracy and graded risks by the delta
    method; shares of rows (coverage, risk and accuracy of 0/1 losses) by Wilson's interval.
    Of a perfect separation, n errors and at least as many right answers (or the other way
    round) make n independent pairs; the exact interval of a share [3]_ is that of these pairs.

    Chance alone raises a gap between subgroups, and a bootstrap would count it twice. So gaps have
    bounds that hold for any number of rows and subgroups, whatever `method` says; graded losses
    too. The upper end takes bounds on the difference between two subgroups, the lower end bounds
    on all such differences at once (Bonferroni). Either comes from exact bounds on both shares
    (Clopper-Pearson; Hoeffding-Bentkus for graded losses), whose levels are traded off along a
    circle. A subgroup of which no row is accepted may have any risk, which raises the upper end.

    A few errors among the surest rows may be missing from the rows, and no resampling invents
    them. So the intervals of areas, of ECD and of the bootstrap reach further, to the worse side,
    by what the value would change if the surest right answer were wrong. (Metrics that read
    classes are left as they are.) In simulations nominal 95 % intervals then held 93-98 % for nine
    shapes of the risk with 15 expected errors and more. They cannot see more than one such error:
    AURC and e-AURC held 75-83 % where 1.5 or 2 of 250 rows are confident errors, of which a
    draw may hold none.

    The interval is about new rows for the same model; it does not include the effect of another
    training run. Chance alone raises a calibration error, so its bootstrap lies too high for a
    calibrated classifier: the lower end is 0 unless :func:`ecce_test` finds it
    miscalibrated.

    References
    ----------
    .. [1] DeLong et al., "Comparing the areas under two or more correlated receiver operating
       characteristic curves", 1988.
    .. [2] Wilson, "Probable inference, the law of succession, and statistical inference",
       1927.
    .. [3] Hoeffding, "Probability inequalities for sums of bounded random variables", 1963,
       section 5 (the pairs); Clopper & Pearson, 1934 (the interval).

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.inference import metric_interval
    >>> rng = np.random.default_rng(0)
    >>> y_proba = rng.uniform(size=500)
    >>> y_true = (rng.uniform(size=500) < y_proba).astype(int)
    >>> print(metric_interval(y_true, y_proba, "augrc"))
    augrc 0.07911, 95 % interval [0.06379, 0.1001] (log; 500 rows, 118 errors)
    """
    refuse_classifier(y_true, "metric_interval")
    how = Sampling.checked(method, confidence_level, n_resamples, random_state, "cell_bootstrap")
    spec, parameters = request(metric, metric_params, gaps={})
    parameters = add_pos_label(spec, parameters, y_proba, options.get("pos_label"))
    rows = read_scored(y_true, y_proba, **options)
    how = how._replace(cluster=row_checks.check_clusters(cluster, rows.n_rows))
    interval = find_interval(measure(spec, rows, parameters, how))
    _warn_if_shaky(interval)
    return interval


def read_scored(
    y_true: Any,
    y_proba: Any,
    remedy: str | None = "",
    *,
    confidence: ConfidenceSpec | None = None,
    loss: LossSpec = "zero_one",
    **options: Any,
) -> ScoredRows:
    """Compute loss and confidence of rows, or of Predictions without `y_proba`.

    Constant weights are dropped, others refused with a remedy; with None all are kept.
    """
    given = (y_true,) if y_proba is None else (y_true, y_proba)
    predictions = read_rows(given, (Predictions,), **options)
    if remedy is not None:
        row_checks.refuse_weights(predictions.sample_weight, "an interval", remedy)
        predictions = replace(predictions, sample_weight=None)
    return score_rows(predictions, confidence=confidence, loss=loss)


def add_pos_label(
    spec: MetricSpec, parameters: Mapping[str, Any], y_proba: Any, pos_label: Any
) -> dict[str, Any]:
    """Add the positive class to the parameters of a kernel that takes it."""
    if "pos_label" not in spec.parameters:
        return dict(parameters)
    label = find_asked_class(y_proba, parameters.get("average", "auto"), pos_label)
    return {"pos_label": label, **parameters}


def find_curve_interval(
    curve: RiskCoverageCurve, metric: str, *, confidence_level: float = 0.95
) -> MetricInterval:
    """Return the interval of a metric of the ranking, from the curve alone."""
    ranking = [name for name, spec in SPECS.items() if spec.interval == "ranking"]
    check_choice("metric", metric, ranking)
    row_checks.check_countable(curve)
    how = Sampling.checked("analytic", confidence_level, 2, None)
    interval = find_interval(measure(SPECS[metric], ScoredRows(curve), {}, how))
    _warn_if_shaky(interval)
    return interval


def _warn_if_shaky(interval: MetricInterval) -> None:
    if is_shaky(interval):
        n_scarce, kind = count_scarce(interval)
        if n_scarce == 1:
            kind = kind.removesuffix("s")
        warn_user(
            f"{interval.metric}: the interval rests on {n_scarce:g} {kind}; with fewer than "
            f"{FEW_ERRORS} it may be far off."
        )
