"""One map per class: probabilities that sum to one, stored as plain numbers."""

import json

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from skselect.calibration import CALIBRATORS, ClassCalibration, PlattCalibrator, log_odds


def test_platt_on_separable_rows_stays_finite():
    calibrator = PlattCalibrator().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    assert np.isfinite([calibrator.slope_, calibrator.intercept_]).all()


def test_platt_on_one_score_returns_the_smoothed_rate():
    calibrator = PlattCalibrator(safeguard=False).fit([0.3, 0.3, 0.3], [1, 0, 0])
    assert calibrator.slope_ == 0
    assert calibrator.predict([0.3])[0] == pytest.approx((2 / 3 + 2 * 1 / 4) / 3)


def test_log_odds_are_finite_at_the_ends():
    assert np.isfinite(log_odds(np.array([0.0, 1.0]))).all()
    assert log_odds(np.array([0.75]))[0] == pytest.approx(np.log(3))


@pytest.mark.parametrize("kind", CALIBRATORS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_class_probabilities_sum_to_one_and_survive_storage(kind, n_classes, rng):
    proba = rng.dirichlet(np.ones(n_classes), 300)
    codes = np.array([rng.choice(n_classes, p=p) for p in proba])
    calibration = ClassCalibration.fit(kind, "predict_proba", proba, codes, n_classes)
    honest = calibration.proba_of(proba)
    np.testing.assert_allclose(honest.sum(axis=1), 1.0, atol=1e-12)
    restored = ClassCalibration.from_dict(json.loads(json.dumps(calibration.to_dict())))
    assert np.array_equal(restored.proba_of(proba), honest)


def test_one_vs_rest_is_one_map_per_class_rescaled(rng):
    proba = rng.dirichlet(np.ones(3), 200)
    codes = rng.integers(0, 3, 200)
    found = ClassCalibration.fit("isotonic", "predict_proba", proba, codes, 3).proba_of(proba)
    maps = [IsotonicRegression(out_of_bounds="clip").fit(proba[:, k], codes == k) for k in range(3)]
    raw = np.column_stack([m.predict(proba[:, k]) for k, m in enumerate(maps)])
    total = raw.sum(axis=1, keepdims=True)
    expected = np.where(total > 0, raw / np.where(total > 0, total, 1), 1 / 3)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_class_without_rows_never_wins(rng):
    proba = rng.dirichlet(np.ones(3), 200)
    codes = rng.integers(0, 2, 200)
    for kind in CALIBRATORS:
        if kind == "temperature":  # its one map knows no classes, and keeps every answer
            continue
        calibration = ClassCalibration.fit(kind, "predict_proba", proba, codes, 3)
        assert not np.any(calibration.proba_of(proba).argmax(axis=1) == 2)


def test_policies_from_before_the_safeguard_are_read():
    older = {
        "kind": "platt",
        "response": "predict_proba",
        "maps": [{"slope": 2.0, "intercept": 0.5}],
    }
    found = ClassCalibration.from_dict(older).proba_of(np.array([[0.4, 0.6]]))
    z = 2.0 * np.log(0.6 / 0.4) + 0.5
    assert found[0, 1] == pytest.approx(1 / (1 + np.exp(-z)))


def test_damaged_maps_are_refused():
    with pytest.raises(ValueError, match="maps need"):
        ClassCalibration.from_dict(
            {"kind": "beta", "response": "predict_proba", "maps": [{"a": 1.0, "b": 1.0}]}
        )
