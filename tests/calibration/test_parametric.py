"""Platt, temperature and beta against independent optimisers; the safeguard; weights."""

import numpy as np
import pytest
from hypothesis import given
from scipy import optimize, special

from skselect.calibration import (
    BetaCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
)
from skselect.calibration._parametric import SoftmaxTemperature
from tests.calibration.cases import ALL, PARAMETRIC, SMOOTH, overlapping, profile, rows

GRID = np.linspace(-6, 6, 121)
PRECISE = {"xatol": 1e-12, "fatol": 1e-14, "maxiter": 20000}


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

    reference = optimize.minimize(loss, np.zeros(2), method="Nelder-Mead", options=PRECISE)
    found = PlattCalibrator(safeguard=False).fit(score, y, weight)
    assert loss([found.slope_, found.intercept_]) <= reference.fun + 1e-9
    expected = special.expit(reference.x[0] * score + reference.x[1])
    np.testing.assert_allclose(found.predict(score), expected, atol=2e-5)


@profile
@given(rows())
def test_temperature_equals_an_independent_optimiser(case):
    score, y, weight = case
    found = TemperatureCalibrator().fit(score, y, weight)
    assert 1e-3 <= found.temperature_ <= 1e3
    reference = optimize.minimize_scalar(
        lambda t: log_loss(score / np.exp(t), y, weight),
        bounds=np.log([1e-3, 1e3]), method="bounded", options={"xatol": 1e-10},
    )  # fmt: skip
    assert log_loss(score / found.temperature_, y, weight) <= reference.fun * (1 + 1e-9) + 1e-9


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
    package = pytest.importorskip("betacal")
    score, y = overlapping()
    theirs = package.BetaCalibration(parameters="abm").fit(special.expit(score)[:, None], y)
    ours = BetaCalibrator(safeguard=False).fit(score, y)
    expected = theirs.predict(special.expit(GRID)[:, None])
    np.testing.assert_allclose(ours.predict(GRID), expected, atol=1e-4)


def test_an_honest_classifier_is_left_nearly_as_it_is():
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 100_000)
    y = rng.random(100_000) < special.expit(z)
    for kind in PARAMETRIC:
        gap = kind().fit(z, y).predict(GRID) - special.expit(GRID)
        assert np.abs(gap).max() < 0.015, kind


@pytest.mark.parametrize("kind", PARAMETRIC)
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
def test_maps_rise_where_scores_speak_for_the_class(case):
    score, y, weight = case
    for kind in (TemperatureCalibrator, BetaCalibrator):
        assert np.all(np.diff(kind().fit(score, y, weight).predict(GRID)) >= -1e-12), kind


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


# Many classes ----------------------------------------------------------------------------


def test_softmax_temperature_equals_an_independent_optimiser():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 1.5, (800, 4))
    codes = np.array([rng.choice(4, p=p) for p in special.softmax(logits, axis=1)])
    sharp, weight = 2.2 * logits, rng.integers(1, 4, 800).astype(float)

    def loss(t):
        chance = special.log_softmax(sharp / np.exp(t), axis=1)
        return -float(np.sum(weight * chance[np.arange(800), codes]))

    reference = optimize.minimize_scalar(
        loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-10}
    )
    found = SoftmaxTemperature(safeguard=False).fit(sharp, codes, weight)
    assert found.temperature_ == pytest.approx(np.exp(reference.x), rel=1e-5)
    assert found.temperature_ == pytest.approx(2.2, abs=0.25)
    np.testing.assert_allclose(found.predict(sharp).sum(axis=1), 1.0, atol=1e-12)


def test_softmax_temperature_of_two_classes_is_the_scalar_one():
    score, y = overlapping()
    logits = np.column_stack([-score / 2, score / 2])
    two = SoftmaxTemperature().fit(logits, y, np.ones(len(y)))
    one = TemperatureCalibrator().fit(score, y)
    assert two.temperature_ == pytest.approx(one.temperature_, rel=1e-9)
    np.testing.assert_allclose(two.predict(logits)[:, 1], one.predict(score), atol=1e-9)
