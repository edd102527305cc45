"""One map per class: probabilities that sum to one, stored as plain numbers."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from skselect import (
    AbstentionPolicy,
    Outcomes,
    RiskCoverageCurve,
    SelectiveClassifier,
    ThresholdTuner,
)
from skselect._lib.decide import CONFIDENCES
from skselect.calibration import TemperatureCalibrator
from skselect.calibration._calibrators import CALIBRATORS, log_odds
from skselect.calibration._scopes import (
    SCOPES,
    ClassCalibration,
    ConfidenceCalibration,
    restore_calibration,
)
from skselect.scoring import get_scorer
from tests.calibration.cases import calibrated, profile, table
from tests.common import check_schema, run_python


def test_log_odds_are_finite_at_the_ends():
    assert np.isfinite(log_odds(np.array([0.0, 1.0]))).all()
    assert log_odds(np.array([0.75]))[0] == pytest.approx(np.log(3))


@pytest.mark.parametrize("kind", CALIBRATORS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_class_probabilities_sum_to_one_and_survive_storage(kind, n_classes, rng):
    proba = rng.dirichlet(np.ones(n_classes), 300)
    codes = np.array([rng.choice(n_classes, p=p) for p in proba])
    calibration = ClassCalibration.fit(kind, "predict_proba", proba, codes, n_classes)
    calibrated = calibration.predict_proba(proba)
    np.testing.assert_allclose(calibrated.sum(axis=1), 1.0, atol=1e-12)
    restored = ClassCalibration.from_dict(json.loads(json.dumps(calibration.to_dict())))
    assert np.array_equal(restored.predict_proba(proba), calibrated)


def test_one_vs_rest_is_one_map_per_class_rescaled(rng):
    proba = rng.dirichlet(np.ones(3), 200)
    codes = rng.integers(0, 3, 200)
    found = ClassCalibration.fit("isotonic", "predict_proba", proba, codes, 3).predict_proba(proba)
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
        assert not np.any(calibration.predict_proba(proba).argmax(axis=1) == 2)


def test_policies_from_before_the_safeguard_are_read_and_damaged_ones_refused():
    older = {"response": "predict_proba", "maps": [{"slope": 2.0, "intercept": 0.5}]}
    read = ClassCalibration.from_dict({"kind": "platt", **older})
    z = 2.0 * np.log(0.6 / 0.4) + 0.5
    found = read.predict_proba(np.array([[0.4, 0.6]]))
    assert found[0, 1] == pytest.approx(1 / (1 + np.exp(-z)))
    with pytest.raises(ValueError, match="maps need"):
        ClassCalibration.from_dict({"kind": "beta", **older})
    stored = fitted("platt")[0].calibration_.to_dict()
    with pytest.raises(ValueError, match="scope must be one of"):
        restore_calibration(stored | {"scope": "everything"})


KINDS = list(CALIBRATORS)


@st.composite
def scored(draw):
    n = draw(st.integers(2, 40))
    levels = draw(st.sampled_from([3, 1000]))
    confidence = np.array([draw(st.integers(0, levels)) / levels for _ in range(n)])
    return confidence, np.array([float(draw(st.integers(0, 1))) for _ in range(n)])


@pytest.mark.parametrize("kind", KINDS)
@profile
@given(case=scored())
def test_the_order_of_rows_stays_but_for_new_ties(kind, case):
    confidence, correct = case
    found = ConfidenceCalibration.fit(kind, confidence, correct)
    fresh = np.unique(np.concatenate([confidence, np.linspace(0, 1, 101)]))
    calibrated = found.calibrate_confidence(fresh)
    assert np.all(np.diff(calibrated) >= -1e-15)
    assert np.all((calibrated >= 0) & (calibrated <= 1))
    if kind != "isotonic":
        assert np.all((calibrated > 0) & (calibrated < 1))


def fitted(kind, confidence="max_proba"):
    X, y = table(3)
    options = {"calibration_scope": "confidence", "confidence": confidence, "threshold": 0.7}
    return calibrated(kind, X, y, cv=StratifiedKFold(3), **options), X, y


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_and_answers_stay_raw(kind):
    model, X, y = fitted(kind)
    raw = GaussianNB().fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), raw.predict_proba(X))
    accepted = model.accepts(X)
    np.testing.assert_array_equal(model.predict(X)[accepted], raw.predict(X)[accepted])
    np.testing.assert_array_equal(accepted, model.predict_confidence(X) >= 0.7)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_it_is_the_chance_of_being_right_out_of_fold(confidence):
    model, X, y = fitted("isotonic", confidence=confidence)
    folds = cross_val_predict(GaussianNB(), X, y, cv=StratifiedKFold(3), method="predict_proba")
    right = folds.argmax(axis=1) == y
    map_ = IsotonicRegression(out_of_bounds="clip").fit(CONFIDENCES[confidence](folds), right)
    raw = CONFIDENCES[confidence](GaussianNB().fit(X, y).predict_proba(X))
    np.testing.assert_allclose(model.predict_confidence(X), map_.predict(raw), atol=1e-12)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "temperature"])
def test_a_function_of_yours_becomes_a_probability(kind):
    def log_odds_like(proba):
        return 10.0 * np.log(proba.max(axis=1))

    model, X, _ = fitted(kind, confidence=log_odds_like)
    calibrated = model.predict_confidence(X)
    assert np.all((calibrated >= 0) & (calibrated <= 1))
    order = np.argsort(log_odds_like(model.predict_proba(X)))
    assert np.all(np.diff(calibrated[order]) >= -1e-15)
    assert model.set_params(threshold=None).policy_.threshold == 0.0


@pytest.mark.parametrize("confidence", ["margin", "entropy", "gini", lambda p: p.max(axis=1)])
@pytest.mark.parametrize("kind", ["temperature", TemperatureCalibrator(safeguard=False)])
def test_temperature_is_for_probabilities_of_being_right(kind, confidence):
    with pytest.raises(ValueError, match="only means something for confidence='max_proba'"):
        fitted(kind, confidence=confidence)


class Careless(BaseEstimator):
    """A calibrator of somebody's own that returns something else than probabilities."""

    def __init__(self, result):
        self.result = result

    def fit(self, score, y, sample_weight=None):
        return self

    def predict(self, score):
        return self.result(np.asarray(score))


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(
    "result", [lambda s: s * np.nan, lambda s: s + 2.0, lambda s: s[:, None], lambda s: s[:1]]
)
def test_what_a_calibrator_of_yours_returns_is_checked(scope, result):
    X, y = table(3)
    model = calibrated(Careless(result), X, y, calibration_scope=scope)
    with pytest.raises(ValueError, match=r"Careless.predict must return 240 probabilities"):
        model.predict_confidence(X)


def test_weights_are_repeated_table():
    rng = np.random.default_rng(0)
    confidence, correct = rng.uniform(0.5, 1, 200), (rng.random(200) < 0.8).astype(float)
    weight = rng.integers(0, 4, 200)
    for kind in KINDS:
        one = ConfidenceCalibration.fit(kind, confidence, correct, weight.astype(float))
        other = ConfidenceCalibration.fit(
            kind, np.repeat(confidence, weight), np.repeat(correct, weight)
        )
        np.testing.assert_allclose(
            one.calibrate_confidence(confidence), other.calibrate_confidence(confidence), atol=1e-5
        )


def test_decision_values_are_not_enough_and_thresholds_lie_in_the_unit_interval():
    X, y = table(2)
    model = SelectiveClassifier(LinearSVC(), calibration="platt", calibration_scope="confidence")
    with pytest.raises(ValueError, match=r"leaves predict_proba as it is, but LinearSVC has none"):
        model.fit(X, y)
    own = {"threshold": 2.0, "confidence": lambda p: p.max(axis=1)}
    with pytest.raises(ValueError, match="can never be reached"):
        model.set_params(estimator=GaussianNB(), **own).fit(X, y)


def test_a_frozen_classifier_is_calibrated_on_the_rows_given():
    X, y = table(3)
    frozen = FrozenEstimator(GaussianNB().fit(X[:100], y[:100]))
    model = calibrated(
        "isotonic", X[100:], y[100:], frozen, calibration_scope="confidence", cv=None
    )
    proba = frozen.predict_proba(X)
    map_ = IsotonicRegression(out_of_bounds="clip").fit(
        proba[100:].max(axis=1), proba[100:].argmax(axis=1) == y[100:]
    )
    expected = map_.predict(proba.max(axis=1))
    np.testing.assert_allclose(model.predict_confidence(X), expected, atol=1e-12)


# Saved, and read by others --------------------------------------------------------------------


def test_a_fresh_process_decides_bit_by_bit_the_same(tmp_path):
    """Every built-in calibration of either scope, from its JSON file, for two and three classes."""
    expected = {}
    for scope, kind, n_classes in product(["probabilities", "confidence"], KINDS, [2, 3]):
        X, y = table(n_classes)
        model = calibrated(kind, X, y, calibration_scope=scope, threshold=0.8)
        name = f"{scope}-{kind}-{n_classes}"
        check_schema(model.policy_.to_json())
        model.policy_.to_json(tmp_path / f"{name}.json")
        np.save(tmp_path / f"{name}.npy", model.raw_scores(X))
        decided = model.decide(X)
        expected[name] = [
            decided["confidence"].to_numpy().tobytes().hex(),
            decided["accepted"].tolist(),
            decided["suggestion"].tolist(),
        ]
    code = (
        "import json, sys, pathlib, numpy as np\n"
        "from skselect import AbstentionPolicy\n"
        "found = {}\n"
        "for path in pathlib.Path(sys.argv[1]).glob('*.json'):\n"
        "    d = AbstentionPolicy.from_json(path).decide(np.load(path.with_suffix('.npy')))\n"
        "    found[path.stem] = [d['confidence'].to_numpy().tobytes().hex(),\n"
        "                        d['accepted'].tolist(), d['suggestion'].tolist()]\n"
        "print(json.dumps(found))\n"
    )
    done = run_python(code, tmp_path, folder=tmp_path)
    assert json.loads(done.stdout) == expected


def test_scorers_read_the_calibrated_confidence_as_the_claim():
    model, X, y = fitted("isotonic")
    confidence, right = model.predict_confidence(X), model.predict_proba(X).argmax(axis=1) == y
    gaps = [
        abs((right - confidence)[(confidence > low) & (confidence <= low + 1 / 15)].sum())
        for low in np.arange(15) / 15
    ]
    assert get_scorer("neg_ece")(model, X, y) == pytest.approx(-np.sum(gaps) / len(y))
    curve = RiskCoverageCurve.from_outcomes(Outcomes(~right, confidence))
    assert get_scorer("neg_augrc")(model, X, y) == pytest.approx(-curve.augrc())


@pytest.mark.parametrize("cv", [3, 0.4])
def test_the_tuner_reads_the_calibrated_confidence(cv):
    model, X, y = fitted("smooth_isotonic")
    tuner = ThresholdTuner(
        model, objective="risk", target=0.4, cv=cv, on_infeasible="abstain", random_state=0
    )
    with pytest.warns(UserWarning, match="already fitted"):
        tuner.fit(X, y)
    low, high = 1 / (len(y) + 2), 1 - 1 / (len(y) + 2)
    assert np.all((tuner.curve_.thresholds >= low) & (tuner.curve_.thresholds <= high))
    decided = tuner.decide(X)
    np.testing.assert_array_equal(decided["accepted"], decided["confidence"] >= tuner.threshold_)
    again = AbstentionPolicy.from_json(tuner.policy_.to_json()).decide(tuner.raw_scores(X))
    assert again.equals(decided)


@pytest.mark.parametrize("confidence", ["entropy", "gini"])
def test_a_fold_that_lacks_a_class_keeps_its_own_confidence(confidence):
    """The scale of entropy depends on the number of classes that a model knows."""
    X, y = table(3)
    y = np.where(np.arange(len(y)) == 7, 3, y)
    base = SelectiveClassifier(
        GaussianNB(), calibration="platt", calibration_scope="confidence", confidence=confidence,
        cv=StratifiedKFold(3),
    )  # fmt: skip
    splits = list(StratifiedKFold(4).split(X, np.minimum(y, 2)))
    tuner = ThresholdTuner(base, objective="coverage", target=0.5, cv=splits).fit(X, y)
    expected = np.concatenate(
        [clone(base).fit(X[a], y[a]).predict_confidence(X[b]) for a, b in splits]
    )
    np.testing.assert_array_equal(tuner.curve_.thresholds, np.unique(expected)[::-1])


def test_the_confidence_cannot_change_under_its_map():
    model, X, _ = fitted("platt")
    model.set_params(confidence="margin")
    with pytest.raises(ValueError, match="confidence was 'max_proba' when the calibration"):
        model.predict(X)
    model.set_params(confidence="max_proba", threshold=0.5).predict(X)
