"""The bootstrap: metrics of rows, or of whole clusters of rows, drawn with replacement.

Rows are sorted once; a draw only changes how often each of them counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skselect._lib.typing import FloatArray, IntArray
from skselect.curve.curve import RiskCoverageCurve
from skselect.curve.tie_blocks import blocks_from_counts
from skselect.metrics._metric import MetricSpec
from skselect.metrics._rows import ScoredRows
from skselect.predictions.outcomes import Outcomes

#: Number of cells that rows are put into for `cell_bootstrap`.
N_CELLS = 4096

#: Estimators of areas that are not defined for weighted rows.
_UNWEIGHTED = ("ln", "unbiased")


def bootstrap(
    resamplers: list[Resampler],
    n_rows: int,
    n_resamples: int,
    cluster: IntArray | None,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the metric of each model in each draw; all models share the draws.

    Returns
    -------
    ndarray of shape (n_resamples, len(resamplers))
    """
    values = np.empty((n_resamples, len(resamplers)))
    place = np.argsort(_canonical_order(resamplers)) if cluster is None else slice(None)
    for draw in range(n_resamples):
        counts = draw_counts(n_rows, cluster, rng)[place]
        values[draw] = [resampler.value(counts) for resampler in resamplers]
    return values


def draw_counts(n: int, cluster: IntArray | None, rng: np.random.Generator) -> IntArray:
    """Return how often each row is drawn; all rows of a cluster are drawn together."""
    if cluster is None:
        return np.bincount(rng.integers(0, n, n), minlength=n)
    n_clusters = int(cluster.max()) + 1
    return np.bincount(rng.integers(0, n_clusters, n_clusters), minlength=n_clusters)[cluster]


def _canonical_order(resamplers: list[Resampler]) -> IntArray:
    """Return an order of the rows that does not depend on the one they came in."""
    keys: list[Any] = []
    for resampler in resamplers:
        original = np.argsort(resampler.order)
        keys += [resampler.loss[original], resampler.confidence[original]]
        keys += [resampler.predictions.y_true, resampler.predictions.y_pred]
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
                "needs; leave it out, or take method='analytic' with augrc."
            )
        self.spec = spec
        self.parameters = dict(parameters)
        self.predictions = rows.predictions
        outcomes = rows.outcomes
        # Losses and confidences are sorted once; predictions stay in their order.
        self.order = np.lexsort((-outcomes.loss, -outcomes.confidence))
        self.loss, self.confidence = outcomes.loss[self.order], outcomes.confidence[self.order]

    def value(self, counts: IntArray) -> float:
        """Return the metric of the rows, each counted as often as `counts` says."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # some draws hold no errors
            return float(self.spec.kernel(self._source(counts), **self.parameters))

    def _source(self, counts: IntArray) -> Any:
        if self.spec.needs == "predictions":
            return replace(self.predictions, sample_weight=counts.astype(np.float64))
        weight = counts[self.order].astype(np.float64)
        if self.spec.needs == "outcomes":
            return Outcomes(self.loss, self.confidence, weight)
        drawn = weight > 0
        return RiskCoverageCurve.from_sorted(
            self.loss[drawn], self.confidence[drawn], weight[drawn]
        )


def cell_bootstrap(
    spec: MetricSpec,
    curve: RiskCoverageCurve,
    parameters: Mapping[str, Any],
    n_resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the metric in each draw of rows from `N_CELLS` cells of neighbouring blocks.

    A draw costs as much for a billion rows as for a few thousand. Rows of a cell are tied; the
    draws are shifted by the effect of these ties on the metric.
    """
    n = curve.n_rows
    filled = curve.accepted_weight / n * N_CELLS
    starts = np.flatnonzero(np.diff(np.ceil(filled), prepend=0.0) > 0)
    size = np.add.reduceat(curve.block_weight, starts)
    wrong = np.add.reduceat(curve.block_loss, starts)
    centre = np.add.reduceat(curve.block_weight * curve.thresholds, starts) / size
    chance = np.concatenate([size - wrong, wrong]) / n

    def value(right: FloatArray, wrong: FloatArray) -> float:
        drawn = right + wrong > 0
        rows, lost = (right + wrong)[drawn], wrong[drawn]
        cells = blocks_from_counts(centre[drawn], rows.astype(np.int64), lost.astype(np.int64))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # some draws hold no errors
            return float(spec.kernel(RiskCoverageCurve(cells), **parameters))

    shift = float(spec.kernel(curve, **parameters)) - value(size - wrong, wrong)
    draws = (rng.multinomial(n, chance).astype(np.float64) for _ in range(n_resamples))
    return shift + np.array([value(*np.split(draw, 2)) for draw in draws])
