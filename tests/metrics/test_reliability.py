"""The reliability curve against a loop over bins, and its intervals against their meaning."""

import numpy as np
import pytest
from scipy.stats import binom

from skselect.metrics import expected_calibration_error, reliability_curve


def case(n=400, seed=0, decimals=None):
    rng = np.random.default_rng(seed)
    p = rng.beta(3, 1, n)
    if decimals is not None:
        p = p.round(decimals)
    return (rng.random(n) < p**1.3).astype(int), p


@pytest.mark.parametrize("weighted", [False, True])
def test_equal_widths_against_a_loop(weighted):
    y, p = case()
    weight = np.random.default_rng(1).integers(1, 4, 400) if weighted else np.ones(400)
    found = reliability_curve(
        y, p, n_bins=10, strategy="uniform", sample_weight=weight if weighted else None
    )
    confidence, right = np.maximum(p, 1 - p), (p > 0.5) == y
    rows = []
    for k in range(10):
        inside = (confidence > k / 10) & (confidence <= (k + 1) / 10)
        if inside.any():
            rows.append(
                [
                    np.average(confidence[inside], weights=weight[inside]),
                    np.average(right[inside], weights=weight[inside]),
                    weight[inside].sum() / weight.sum(),
                ]
            )
    np.testing.assert_allclose(found[["confidence", "accuracy", "share"]], rows)
    gap = np.sum(found["share"] * np.abs(found["accuracy"] - found["confidence"]))
    ece = expected_calibration_error(y, p, n_bins=10, sample_weight=weight if weighted else None)
    assert gap == pytest.approx(ece)
    assert found["low"].isna().all() == weighted


def test_bins_of_equal_weight_never_part_ties():
    y, p = case(decimals=1)
    found = reliability_curve(y, p, n_bins=7)
    values = np.unique(np.maximum(p, 1 - p))
    assert len(found) <= len(values)
    assert found["confidence"].is_monotonic_increasing
    assert found["share"].sum() == pytest.approx(1)
    fine = reliability_curve(*case(), n_bins=8)
    np.testing.assert_allclose(fine["share"], 1 / 8, atol=0.003)


def test_the_interval_is_exact():
    """At its ends the tails of the binomial law hold alpha/2 each."""
    found = reliability_curve(*case(60), n_bins=4, confidence_level=0.9)
    for row in found.itertuples():
        n = round(row.share * 60)
        k = round(row.accuracy * n)
        if k > 0:
            assert binom.sf(k - 1, n, row.low) == pytest.approx(0.05)
        if k < n:
            assert binom.cdf(k, n, row.high) == pytest.approx(0.05)
    sure = reliability_curve([1, 1], [0.9, 0.9])
    assert sure["high"].item() == 1.0
    assert sure["low"].item() == pytest.approx(0.025**0.5)
    wrong = reliability_curve([0, 0], [0.9, 0.9])
    assert wrong["low"].item() == 0.0


def test_constant_weights_count_rows_and_graded_losses_have_no_interval():
    y, p = case(50)
    plain = reliability_curve(y, p, n_bins=3)
    scaled = reliability_curve(y, p, n_bins=3, sample_weight=np.full(50, 2.5))
    np.testing.assert_allclose(scaled, plain)
    graded = reliability_curve(y, p, n_bins=3, loss=lambda t, q: 0.5 * (t != q))
    assert graded["low"].isna().all()
    assert np.all(graded["accuracy"] >= plain["accuracy"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bins": 0}, "n_bins"),
        ({"strategy": "hope"}, "strategy must be one of"),
        ({"confidence_level": 1.0}, "confidence_level"),
        ({"confidence": lambda q: 3 * q.max(axis=1)}, "0, 1"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        reliability_curve(*case(20), **options)
