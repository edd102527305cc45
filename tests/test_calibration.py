"""Calibrators against independent optimisers, and what a weight means to them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special
from sklearn.isotonic import IsotonicRegression

from skselect.calibration import (
    ClassCalibration,
    IsotonicCalibrator,
    PlattCalibrator,
    log_odds,
)

profile = settings(derandomize=True, deadline=None, max_examples=60)


@st.composite
def rows(draw):
    n = draw(st.integers(2, 50))
    levels = draw(st.sampled_from([4, 1000]))
    score = np.array([draw(st.integers(0, levels)) / levels for _ in range(n)])
    y = np.array([draw(st.integers(0, 1)) for _ in range(n)])
    weight = np.array([draw(st.integers(1, 3)) for _ in range(n)])
    return score, y, weight


@profile
@given(rows())
def test_isotonic_equals_scikit_learn(case):
    score, y, weight = case
    ours = IsotonicCalibrator().fit(score, y, weight)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(score, y, weight)
    grid = np.linspace(-0.5, 1.5, 301)
    np.testing.assert_allclose(ours.predict(grid), theirs.predict(grid), atol=1e-12)


@profile
@given(rows())
def test_platt_equals_an_independent_optimiser(case):
    score, y, weight = case
    positive, negative = weight[y == 1].sum(), weight[y == 0].sum()
    target = np.where(y == 1, (positive + 1) / (positive + 2), 1 / (negative + 2))

    def loss(theta):
        z = theta[0] * score + theta[1]
        return np.sum(weight * (np.logaddexp(0, z) - target * z))

    precise = {"xatol": 1e-12, "fatol": 1e-14, "maxiter": 20000}
    reference = optimize.minimize(loss, np.zeros(2), method="Nelder-Mead", options=precise)
    found = PlattCalibrator().fit(score, y, weight)
    assert loss([found.slope_, found.intercept_]) <= reference.fun + 1e-9
    expected = special.expit(reference.x[0] * score + reference.x[1])
    np.testing.assert_allclose(found.predict(score), expected, atol=2e-5)


@profile
@given(rows(), st.sampled_from([IsotonicCalibrator, PlattCalibrator]))
def test_a_weight_is_the_row_repeated_and_zero_the_row_removed(case, kind):
    score, y, weight = case
    weight = weight - 1
    if weight.sum() == 0:
        weight = weight + 1
    weighted = kind().fit(score, y, weight)
    repeated = kind().fit(np.repeat(score, weight), np.repeat(y, weight))
    grid = np.linspace(0, 1, 101)
    np.testing.assert_allclose(weighted.predict(grid), repeated.predict(grid), atol=1e-7)


@profile
@given(rows())
def test_isotonic_is_monotone_and_platt_never_certain(case):
    score, y, weight = case
    grid = np.linspace(0, 1, 201)
    assert np.all(np.diff(IsotonicCalibrator().fit(score, y, weight).predict(grid)) >= 0)
    smooth = PlattCalibrator().fit(score, y, weight).predict(score)
    assert np.all((smooth > 0) & (smooth < 1))


def test_platt_on_separable_rows_stays_finite():
    calibrator = PlattCalibrator().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    assert np.isfinite([calibrator.slope_, calibrator.intercept_]).all()


def test_platt_on_one_score_returns_the_smoothed_rate():
    calibrator = PlattCalibrator().fit([0.3, 0.3, 0.3], [1, 0, 0])
    assert calibrator.slope_ == 0
    assert calibrator.predict([0.3])[0] == pytest.approx((2 / 3 + 2 * 1 / 4) / 3)


def test_log_odds_are_finite_at_the_ends():
    assert np.isfinite(log_odds(np.array([0.0, 1.0]))).all()
    assert log_odds(np.array([0.75]))[0] == pytest.approx(np.log(3))


@pytest.mark.parametrize("kind", ["isotonic", "platt"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_class_probabilities_sum_to_one_and_survive_storage(kind, n_classes, rng):
    proba = rng.dirichlet(np.ones(n_classes), 300)
    codes = np.array([rng.choice(n_classes, p=p) for p in proba])
    calibration = ClassCalibration.fit(kind, "predict_proba", proba, codes, n_classes)
    honest = calibration.predict(proba)
    np.testing.assert_allclose(honest.sum(axis=1), 1.0, atol=1e-12)
    restored = ClassCalibration.from_dict(calibration.to_dict())
    assert np.array_equal(restored.predict(proba), honest)


def test_one_vs_rest_is_one_map_per_class_rescaled(rng):
    proba = rng.dirichlet(np.ones(3), 200)
    codes = rng.integers(0, 3, 200)
    found = ClassCalibration.fit("isotonic", "predict_proba", proba, codes, 3).predict(proba)
    maps = [IsotonicRegression(out_of_bounds="clip").fit(proba[:, k], codes == k) for k in range(3)]
    raw = np.column_stack([m.predict(proba[:, k]) for k, m in enumerate(maps)])
    total = raw.sum(axis=1, keepdims=True)
    expected = np.where(total > 0, raw / np.where(total > 0, total, 1), 1 / 3)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_class_without_rows_never_wins(rng):
    proba = rng.dirichlet(np.ones(3), 200)
    codes = rng.integers(0, 2, 200)
    for kind in ("isotonic", "platt"):
        calibration = ClassCalibration.fit(kind, "predict_proba", proba, codes, 3)
        assert not np.any(calibration.predict(proba).argmax(axis=1) == 2)


@pytest.mark.parametrize("calibrator", [IsotonicCalibrator(), PlattCalibrator()])
def test_bad_scores_are_named(calibrator):
    with pytest.raises(ValueError, match="score has 1 NaN"):
        calibrator.fit([0.1, np.nan], [0, 1])
    with pytest.raises(ValueError, match="score has 2 rows, but y has 3"):
        calibrator.fit([0.1, 0.2], [0, 1, 1])
    with pytest.raises(ValueError, match="sample_weight"):
        calibrator.fit([0.1, 0.2], [0, 1], [-1, 1])
