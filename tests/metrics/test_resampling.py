"""The bootstrap computes each draw exactly as if its rows had been written out."""

import numpy as np
import pytest

from skselect import Outcomes, Predictions
from skselect.metrics import SPECS
from skselect.metrics._evaluate import Judged, kernel_value
from skselect.metrics._resampling import Resampler, bootstrap, draw_counts


def judged_rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 21, n) / 20
    y_true = (rng.random(n) < p).astype(int)
    predictions = Predictions.from_proba(y_true, np.column_stack([1 - p, p]), labels=[0, 1])
    return Judged(Outcomes.from_predictions(predictions), predictions)


def repeated(judged, counts):
    rows = np.repeat(np.arange(len(counts)), counts)
    source = judged.predictions
    predictions = Predictions(
        source.y_true[rows], source.y_pred[rows], source.classes, source.y_proba[rows]
    )
    return Judged(Outcomes.from_predictions(predictions), predictions)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", SPECS)
def test_a_draw_is_its_rows_written_out(name):
    judged, rng = judged_rows(), np.random.default_rng(1)
    needed = {"risk_at_coverage": {"coverage": 0.7}, "coverage_at_risk": {"max_risk": 0.3},
              "review_rate_at_reliability": {"reliability": 0.8}}.get(name, {})  # fmt: skip
    resampler = Resampler(SPECS[name], judged, needed)
    for _ in range(5):
        counts = draw_counts(60, None, rng)
        expected = kernel_value(SPECS[name], repeated(judged, counts), needed)
        assert resampler.value(counts) == pytest.approx(expected, rel=1e-11, abs=1e-13, nan_ok=True)


def test_draws_keep_the_number_of_rows_or_of_clusters():
    rng = np.random.default_rng(0)
    counts = draw_counts(50, None, rng)
    assert counts.sum() == 50
    cluster = np.array([0] * 10 + [1] * 5 + [2])
    for _ in range(10):
        counts = draw_counts(16, cluster, rng)
        per_cluster = [np.unique(counts[cluster == k]) for k in range(3)]
        assert all(len(values) == 1 for values in per_cluster)
        assert sum(values[0] for values in per_cluster) == 3


def test_models_share_their_draws():
    judged = judged_rows()
    twin = [Resampler(SPECS["augrc"], judged, {}) for _ in range(2)]
    values = bootstrap(twin, 60, 20, None, np.random.default_rng(0))
    assert values.shape == (20, 2)
    assert (values[:, 0] == values[:, 1]).all()
    assert len(np.unique(values[:, 0])) > 10
