"""Platt and beta against independent optimisers; the safeguard; what all calibrators share."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy import optimize, special

from skselect.calibration import BetaCalibrator, PlattCalibrator, TemperatureCalibrator
from tests.calibration.cases import ALL, PARAMETRIC, PEERS, SMOOTH, overlapping, profile, rows

GRID = np.linspace(-6, 6, 121)


def log_loss(z, target, weight):
    return float(np.sum(weight * (np.logaddexp(0, z) - target * z)))


@profile
@given(rows())
def test_platt_equals_an_independent_optimiser(case):
    score, y, weight = case
    positive, negative = weight[y == 1].sum(), weight[y == 0].sum()
    target = np.where(y == 1, (positive + 1) / (positive + 2), 1 / (negative + 2))

    def loss(theta):
        return log_loss(theta[0] * score + theta[1], target, weight)

    reference = optimize.minimize(
        loss, [0.1, 0.0], method="SLSQP", bounds=[(0, None), (None, None)],
        options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    found = PlattCalibrator(safeguard=False).fit(score, y, weight)
    assert found.slope_ >= 0
    assert loss([found.slope_, found.intercept_]) <= reference.fun + 1e-9
    expected = special.expit(reference.x[0] * score + reference.x[1])
    np.testing.assert_allclose(found.predict(score), expected, atol=1e-4)


@profile
@given(rows())
def test_beta_equals_an_independent_optimiser(case):
    score, y, weight = case
    found = BetaCalibrator().fit(score, y, weight)
    assert found.a_ >= 0
    assert found.b_ >= 0
    low, high = -np.logaddexp(0, -score), np.logaddexp(0, score)

    def loss(theta):
        return log_loss(theta[0] * low + theta[1] * high + theta[2], y, weight)

    bounds = [(0, 1e3), (0, 1e3), (-1e3, 1e3)]
    starts = [[1, 1, 0], [0, 0, 0], [3, 0.1, 1]]
    reference = min(
        optimize.minimize(loss, x, method="SLSQP", bounds=bounds, options={"ftol": 1e-14}).fun
        for x in starts
    )
    assert loss([found.a_, found.b_, found.c_]) <= reference + 1e-5 * max(1.0, reference)


def test_beta_equals_betacal():
    rows = pd.read_csv(PEERS / "beta_calibration.csv")
    ours = BetaCalibrator(safeguard=False).fit(rows["score"], rows["y"]).predict(rows["score"])
    np.testing.assert_allclose(ours, rows["betacal"], atol=1e-4)


def test_an_honest_classifier_is_left_nearly_as_it_is():
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 100_000)
    y = rng.random(100_000) < special.expit(z)
    for kind in PARAMETRIC:
        gap = kind().fit(z, y).predict(GRID) - special.expit(GRID)
        assert np.abs(gap).max() < 0.015, kind


@pytest.mark.parametrize("kind", [PlattCalibrator, BetaCalibrator])
def test_the_safeguard_is_the_mixture_with_the_base_rate(kind):
    score, y = overlapping(50)
    raw = kind(safeguard=False).fit(score, y).predict(GRID)
    safe = kind().fit(score, y).predict(GRID)
    np.testing.assert_allclose(safe, (50 * raw + y.mean()) / 51, rtol=1e-9)


@pytest.mark.parametrize("kind", SMOOTH)
def test_separable_rows_leave_doubt(kind):
    score, y = np.r_[-3.0, -2.5, -2, 2, 2.5, 3], np.r_[0, 0, 0, 1, 1, 1]
    found = kind().fit(score, y).predict([-50.0, 50.0])
    assert 0.0 < found[0] <= 0.2
    assert 0.8 <= found[1] < 1.0


@profile
@given(rows())
def test_maps_never_fall_and_are_never_certain(case):
    score, y, weight = case
    far = np.concatenate([[-1e6], GRID, [1e6]])
    for kind in ALL:
        found = kind().fit(score, y, weight).predict(far)
        assert np.all(np.diff(found) >= -1e-15), kind
        if kind in SMOOTH:
            assert np.all((found > 0) & (found < 1)), kind


@pytest.mark.parametrize("kind", [PlattCalibrator, BetaCalibrator])
@pytest.mark.parametrize("outcome", [0, 1])
def test_rows_of_one_class_leave_doubt(kind, outcome):
    """The base rate is then the least that three rows can tell, 1/5."""
    found = kind().fit([-1.0, 0.0, 2.0], [outcome] * 3)
    assert found.prior_ == pytest.approx(0.8 if outcome else 0.2)
    assert np.all(np.abs(found.predict([-1e9, 1e9]) - 0.5) <= 0.45)


# What all calibrators share ----------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind is not BetaCalibrator])
@profile
@given(case=rows())
def test_a_weight_is_the_row_repeated_and_zero_the_row_removed(kind, case):
    score, y, weight = case
    weight = weight - 1
    if weight.sum() == 0:
        weight = weight + 1
    weighted = kind().fit(score, y, weight)
    repeated = kind().fit(np.repeat(score, weight), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(GRID), repeated.predict(GRID), atol=1e-7)


def test_weights_of_beta_are_repeated_rows_too():
    """Where the rows overlap; separable rows have no single best beta map."""
    score, y = overlapping(150)
    weight = np.random.default_rng(1).integers(0, 4, 150)
    weighted = BetaCalibrator().fit(score, y, weight)
    repeated = BetaCalibrator().fit(np.repeat(score, weight), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(GRID), repeated.predict(GRID), atol=1e-5)


@pytest.mark.parametrize("kind", ALL)
def test_the_order_of_the_rows_does_not_matter(kind):
    score, y = overlapping(200)
    order = np.random.default_rng(1).permutation(200)
    expected = kind().fit(score, y).predict(GRID)
    np.testing.assert_allclose(
        kind().fit(score[order], y[order]).predict(GRID), expected, atol=1e-6
    )


@pytest.mark.parametrize("kind", SMOOTH)
def test_weights_that_shrink_the_map_warn(kind):
    score, y = overlapping(50)
    with pytest.warns(UserWarning, match="sample_weight sums to 0.5 for 50 rows"):
        kind().fit(score, y, np.full(50, 0.01))


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("outcome", [0, 1])
def test_one_class_is_no_trouble(kind, outcome):
    found = kind().fit([-1.0, 0.0, 2.0], [outcome] * 3).predict(GRID)
    assert np.all((found >= 0) & (found <= 1))
    if kind is not TemperatureCalibrator:  # it cannot move 1/2
        assert np.all(found >= 0.5) if outcome else np.all(found <= 0.5)


@pytest.mark.parametrize("kind", ALL)
def test_bad_scores_are_named(kind):
    with pytest.raises(ValueError, match="score has 1 NaN"):
        kind().fit([0.1, np.nan], [0, 1])
    with pytest.raises(ValueError, match="score has 2 rows, but y has 3"):
        kind().fit([0.1, 0.2], [0, 1, 1])
    with pytest.raises(ValueError, match="sample_weight"):
        kind().fit([0.1, 0.2], [0, 1], [-1, 1])


# Where optimisers used to stop early -----------------------------------------------------------


def in_sample_loss(calibrator, score, y):
    p = np.clip(calibrator.predict(score), 1e-15, 1 - 1e-15)
    return -np.mean(np.where(y > 0, np.log(p), np.log1p(-p)))


@pytest.mark.parametrize("kind", [PlattCalibrator, BetaCalibrator])
def test_scores_of_two_values_get_their_two_rates(kind):
    score = np.repeat([-6.9, 6.9], [20, 30])
    y = np.r_[np.ones(2), np.zeros(18), np.ones(24), np.zeros(6)]
    found = kind(safeguard=False).fit(score, y).predict([-6.9, 6.9])
    positive, negative = (27 / 28, 1 / 26) if kind is PlattCalibrator else (1, 0)  # Platt's targets
    rates = [(2 * positive + 18 * negative) / 20, (24 * positive + 6 * negative) / 30]
    np.testing.assert_allclose(found, rates, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 1e-8, 1000.0, 1e10, 1e200, -1e300])
def test_constant_scores_give_the_rate_in_any_order(value):
    y = np.r_[np.ones(2), np.zeros(8)]
    for kind in PARAMETRIC[::2]:
        for order in (slice(None), slice(None, None, -1)):
            found = kind(safeguard=False).fit(np.full(10, value), y[order]).predict([value])
            assert found[0] == pytest.approx(0.2, abs=0.06 if kind is PlattCalibrator else 1e-6)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6, 1e200])
def test_no_unit_of_decision_values_is_too_small_or_too_large(unit):
    score, y = overlapping(300)
    reference = in_sample_loss(PlattCalibrator(safeguard=False).fit(score, y), score, y)
    for kind in PARAMETRIC:
        found = kind(safeguard=False).fit(score * unit, y)
        assert in_sample_loss(found, score * unit, y) <= reference + 0.01, kind


@pytest.mark.parametrize("scores", [(-119.57, 5.40), (-137.0, 142.0), (-34.5, 34.5), (-8, 0, 90)])
def test_few_distinct_scores_give_one_beta_map(scores):
    """Many maps fit two values equally well; the order of the rows must not choose."""
    rng = np.random.default_rng(0)
    score, y = rng.choice(scores, 100), rng.integers(0, 2, 100)
    grid = np.linspace(min(scores), max(scores), 50)
    expected = BetaCalibrator().fit(score, y).predict(grid)
    for _ in range(5):
        order = rng.permutation(100)
        found = BetaCalibrator().fit(score[order], y[order]).predict(grid)
        np.testing.assert_allclose(found, expected, atol=1e-4)
