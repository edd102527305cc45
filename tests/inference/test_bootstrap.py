"""The bootstrap computes each draw exactly as if its rows had been written out."""

import numpy as np
import pytest

from skselect import Outcomes, Predictions
from skselect.inference.bootstrap import Resampler, bootstrap, cell_bootstrap, draw_counts
from skselect.metrics import SPECS, metric_interval
from skselect.metrics._rows import ScoredRows, score_rows


def scored_rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 21, n) / 20
    y_true = (rng.random(n) < p).astype(int)
    predictions = Predictions.from_proba(y_true, np.column_stack([1 - p, p]), labels=[0, 1])
    return ScoredRows(Outcomes.from_predictions(predictions), predictions)


def repeated(scored, counts):
    rows = np.repeat(np.arange(len(counts)), counts)
    source = scored.predictions
    predictions = Predictions(
        source.y_true[rows], source.y_pred[rows], source.classes, source.y_proba[rows]
    )
    return ScoredRows(Outcomes.from_predictions(predictions), predictions)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", SPECS)
def test_a_draw_is_its_rows_written_out(name):
    scored, rng = scored_rows(), np.random.default_rng(1)
    needed = {"risk_at_coverage": {"coverage": 0.7}, "coverage_at_risk": {"max_risk": 0.3},
              "review_rate_at_reliability": {"reliability": 0.8}}.get(name, {})  # fmt: skip
    resampler = Resampler(SPECS[name], scored, needed)
    for _ in range(5):
        counts = draw_counts(60, None, rng)
        expected = SPECS[name].value(repeated(scored, counts), needed)
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
    scored = scored_rows()
    twin = [Resampler(SPECS["augrc"], scored, {}) for _ in range(2)]
    values = bootstrap(twin, 60, 20, None, np.random.default_rng(0))
    assert values.shape == (20, 2)
    assert (values[:, 0] == values[:, 1]).all()
    assert len(np.unique(values[:, 0])) > 10


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("metric", ["aurc", "augrc", "failure_auroc", "csr"])
def test_cells_scatter_like_rows(metric, tied):
    rng = np.random.default_rng(0)
    p = np.round(rng.beta(4, 1.5, 3000), 2 if tied else 12) * 0.98
    y = (rng.random(3000) < p).astype(int)
    if metric == "csr":  # it has no interval of its own, but its draws can be compared
        scored = score_rows(Predictions.from_proba(y, p))
        spec = SPECS[metric]
        rows = bootstrap([Resampler(spec, scored, {})], 3000, 300, None, np.random.default_rng(1))
        cells = cell_bootstrap(spec, scored.curve, {}, 300, np.random.default_rng(2))
        errors = np.std(rows), np.std(cells)
    else:
        errors = [
            metric_interval(y, p, metric, method=m, n_resamples=300, random_state=1).standard_error
            for m in ("bootstrap", "cell_bootstrap")
        ]
    # A standard deviation of 300 draws is known to 1/sqrt(600), two of them to .058.
    assert errors[1] == pytest.approx(errors[0], rel=4 * 0.058)


def test_what_cells_cannot_do_is_refused():
    y, p = [0, 1, 1, 0], [0.2, 0.9, 0.6, 0.7]
    with pytest.raises(ValueError, match="reads rows or classes"):
        metric_interval(y, p, "cw_f1", method="cell_bootstrap")
    with pytest.raises(ValueError, match="raised by chance"):
        metric_interval(y, p, "ece", method="cell_bootstrap")
    with pytest.raises(ValueError, match="cluster goes with"):
        metric_interval(y, p, "aurc", method="cell_bootstrap", cluster=[0, 0, 1, 1])
