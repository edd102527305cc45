"""Maps of probabilities and of the confidence, what "auto" takes, and classes of few rows."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneGroupOut,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skselect import (
    AbstentionPolicy,
    Outcomes,
    RiskCoverageCurve,
    SelectiveClassifier,
    ThresholdTuner,
)
from skselect._lib.decide import CONFIDENCES
from skselect.calibration import TemperatureCalibrator, _choice, _scopes
from skselect.calibration._calibrators import CALIBRATORS
from skselect.scoring import get_scorer
from tests.calibration.cases import calibrated, profile, table
from tests.common import check_schema
from tests.refusals import check_refused


@pytest.mark.parametrize("kind", CALIBRATORS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_class_probabilities_sum_to_one_and_survive_storage(kind, n_classes, rng):
    proba = rng.dirichlet(np.ones(n_classes), 300)
    codes = np.array([rng.choice(n_classes, p=p) for p in proba])
    calibration = _scopes.ClassCalibration.fit(kind, "predict_proba", proba, codes, n_classes)
    calibrated = calibration.predict_proba(proba)
    np.testing.assert_allclose(calibrated.sum(axis=1), 1.0, atol=1e-12)
    restored = _scopes.ClassCalibration.from_dict(json.loads(json.dumps(calibration.to_dict())))
    assert np.array_equal(restored.predict_proba(proba), calibrated)


def test_one_vs_rest_is_one_map_per_class_rescaled(rng):
    proba = rng.dirichlet(np.ones(3), 200)
    codes = rng.integers(0, 3, 200)
    found = _scopes.ClassCalibration.fit(
        "isotonic", "predict_proba", proba, codes, 3
    ).predict_proba(proba)
    maps = [IsotonicRegression(out_of_bounds="clip").fit(proba[:, k], codes == k) for k in range(3)]
    raw = np.column_stack([m.predict(proba[:, k]) for k, m in enumerate(maps)])
    total = raw.sum(axis=1, keepdims=True)
    expected = np.where(total > 0, raw / np.where(total > 0, total, 1), 1 / 3)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_damaged_calibrations_are_refused():
    stored = fitted("platt")[0].calibration_.to_dict()
    with pytest.raises(ValueError, match="maps need"):
        _scopes.restore_calibration(stored | {"kind": "beta"})
    with pytest.raises(ValueError, match="scope must be one of"):
        _scopes.restore_calibration(stored | {"scope": "everything"})


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
    found = _scopes.ConfidenceCalibration.fit(kind, confidence, correct)
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
def test_probabilities_and_answers_stay_raw_and_a_file_decides_the_same(kind):
    model, X, y = fitted(kind)
    raw = GaussianNB().fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), raw.predict_proba(X))
    accepted = model.accepts(X)
    np.testing.assert_array_equal(model.predict(X)[accepted], raw.predict(X)[accepted])
    np.testing.assert_array_equal(accepted, model.predict_confidence(X) >= 0.7)
    stored = model.policy_.to_json()
    check_schema(stored)
    assert AbstentionPolicy.from_json(stored).decide(model.raw_scores(X)).equals(model.decide(X))


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


@pytest.mark.parametrize("scope", _scopes.SCOPES)
def test_keys_that_nobody_knows_are_refused(scope):
    X, y = table(2)
    stored = calibrated("platt", X, y, calibration_scope=scope).calibration_.to_dict()
    _scopes.restore_calibration(stored)
    check_refused("note", _scopes.restore_calibration, stored | {"note": 1})
    numbers = stored["maps"][0] | {"note": 1}
    check_refused("note", _scopes.restore_calibration, stored | {"maps": [numbers]})


class Careless(BaseEstimator):
    """A calibrator of somebody's own that returns something else than probabilities."""

    def __init__(self, result):
        self.result = result

    def fit(self, score, y, sample_weight=None):
        return self

    def predict(self, score):
        return self.result(np.asarray(score))


@pytest.mark.parametrize("scope", _scopes.SCOPES)
@pytest.mark.parametrize(
    "result", [lambda s: s * np.nan, lambda s: s + 2.0, lambda s: s[:, None], lambda s: s[:1]]
)
def test_what_a_calibrator_of_yours_returns_is_checked(scope, result):
    X, y = table(3)
    with pytest.raises(ValueError, match=r"Careless.predict must return a probability for each"):
        calibrated(Careless(result), X, y, calibration_scope=scope)
    later = Careless(lambda score: result(score) if len(score) > 2 else np.abs(score) / 2)
    model = calibrated(later, X, y, calibration_scope=scope)
    with pytest.raises(ValueError, match=r"Careless.predict must return 240 probabilities"):
        model.predict_confidence(X)


def test_decision_values_are_not_enough_and_thresholds_lie_in_the_unit_interval():
    X, y = table(2)
    model = SelectiveClassifier(LinearSVC(), calibration="platt", calibration_scope="confidence")
    for one in (model, ThresholdTuner(model)):
        with pytest.raises(ValueError, match=r"leaves predict_proba as it is, but LinearSVC has"):
            one.fit(X, y)
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


def test_scorers_read_the_calibrated_confidence_as_the_claim():
    model, X, y = fitted("isotonic")
    confidence, right = model.predict_confidence(X), model.predict_proba(X).argmax(axis=1) == y
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
    with pytest.raises(ValueError, match="confidence is not the one that fit has learnt with"):
        model.predict(X)
    model.set_params(confidence="max_proba", threshold=0.5).predict(X)


# What calibration="auto" takes --------------------------------------------------------------------


def expit(z):
    return 1 / (1 + np.exp(-z))


def too_sure(rng, n):
    """Return probabilities with twice the right log-odds: temperature mends them."""
    z = rng.normal(0, 2, n)
    return expit(2 * z), rng.random(n) < expit(z)


def shifted(rng, n):
    """Return probabilities of a classifier for which training weighed one class: Platt."""
    z = rng.normal(-2, 1.5, n)
    return expit(z + 2), rng.random(n) < expit(z)


def bent(rng, n):
    """Return probabilities that no line of log-odds mends: smooth isotonic."""
    p = rng.uniform(1e-6, 1 - 1e-6, n)
    return p, rng.random(n) < 0.05 + 0.9 * p**3


POPULATIONS = {"temperature": too_sure, "platt": shifted, "smooth_isotonic": bent}


def draw(population, rng, n):
    p, y = population(rng, n)
    return np.column_stack([1 - p, p]), y.astype(np.int64)


def draw_three_classes(rng, n):
    logits = rng.normal(0, 1.5, (n, 3))
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = np.array([rng.choice(3, p=row) for row in truth])
    scores = np.exp(2 * logits)
    return scores / scores.sum(axis=1, keepdims=True), codes


def choose(scope, scores, codes, fold, weight=None, confidence="max_proba"):
    rows = _choice.RawRows("predict_proba", scores, codes, scores.shape[1], weight, confidence)
    return _choice.choose_calibrator(scope, rows, fold)


def losses_by_loops(scope, scores, codes, fold, weight):
    """Map each row by a calibration of the other folds, and add up the log losses."""
    total = {}
    for name in _choice.SAFE[scope]:
        lost = 0.0
        for i in range(len(codes)):
            others = [j for j in range(len(codes)) if fold[j] != fold[i]]
            repeated = np.repeat(others, weight[others])
            known, truth = scores[repeated], codes[repeated]
            if scope == "probabilities":
                made = _scopes.ClassCalibration.fit(
                    name, "predict_proba", known, truth, scores.shape[1]
                )
                chance = made.predict_proba(scores[[i]])[0, codes[i]]
            else:
                right = (known.argmax(axis=1) == truth).astype(float)
                made = _scopes.ConfidenceCalibration.fit(name, known.max(axis=1), right)
                claimed = made.calibrate_confidence(scores[[i]].max(axis=1))[0]
                chance = claimed if scores[i].argmax() == codes[i] else 1 - claimed
            lost -= weight[i] * np.log(chance)
        total[name] = lost
    return total


@pytest.mark.parametrize("scope", _scopes.SCOPES)
@pytest.mark.parametrize("population", [*POPULATIONS.values(), None])
def test_the_choice_is_that_of_loops(population, scope):
    rng = np.random.default_rng(5)
    scores, codes = draw(population, rng, 36) if population else draw_three_classes(rng, 36)
    fold, weight = rng.permutation(36) % 4, rng.integers(1, 4, 36)
    losses = losses_by_loops(scope, scores, codes, fold, weight)
    assert choose(scope, scores, codes, fold, weight.astype(float)) == min(losses, key=losses.get)


@pytest.mark.parametrize("population", POPULATIONS.values())
def test_small_tables_are_mapped_almost_as_well_as_by_the_best(population):
    # Log loss of 2000 fresh rows; isotonic regression overfits and is no candidate.
    rng = np.random.default_rng(1)
    lost = {kind: [] for kind in (*_choice.SAFE["probabilities"], "isotonic", "auto")}
    for _ in range(20):
        (scores, codes), (fresh, truth) = draw(population, rng, 60), draw(population, rng, 2000)
        rows = _choice.RawRows("predict_proba", scores, codes, 2)
        for kind, losses in lost.items():
            made = _choice.fit_calibration(kind, "probabilities", rows, fold=np.arange(60) % 5)
            own = made.predict_proba(fresh)[np.arange(2000), truth]
            losses.append(-np.log(np.maximum(own, 1e-15)).mean())
    best = min(_choice.SAFE["probabilities"], key=lambda kind: np.mean(lost[kind]))
    more = np.subtract(lost["auto"], lost[best])
    assert np.mean(more) <= 0.01 + 4 * np.std(more) / np.sqrt(20)
    assert np.mean(lost["auto"]) < np.mean(lost["isotonic"]) - 0.1


@pytest.mark.parametrize("scope", _scopes.SCOPES)
def test_rows_without_weight_and_the_order_of_rows_change_nothing(scope):
    rng = np.random.default_rng(2)
    scores, codes = draw(shifted, rng, 80)
    fold, weight = rng.permutation(80) % 5, np.repeat([1.0, 0.0], 40)
    chosen = choose(scope, scores, codes, fold, weight)
    assert chosen == choose(scope, scores[:40], codes[:40], fold[:40])
    order = rng.permutation(80)
    assert chosen == choose(scope, scores[order], codes[order], fold[order], weight[order])


def test_the_simplest_of_equals_is_taken_temperature_for_the_largest_probability_only(monkeypatch):
    scores, codes = draw(too_sure, np.random.default_rng(0), 200)
    taken = choose("confidence", scores, codes, np.arange(200) % 5, confidence="entropy")
    assert taken == "smooth_isotonic"
    given = scores[:20], codes[:20], np.arange(20) % 2
    same = np.tile([0.4, 0.6], (20, 1)), np.full(20, 0.6)
    monkeypatch.setattr(_choice, "cross_fit", lambda *_: same)
    for scope in _scopes.SCOPES:
        assert choose(scope, *given) == _choice.SAFE[scope][0] == "temperature"


def test_one_fold_compares_nothing():
    scores, codes = draw(too_sure, np.random.default_rng(0), 20)
    half = np.repeat([1.0, 0.0], 10)
    for fold, weight in ((np.zeros(20), None), (np.repeat([0, 1], 10), half)):
        with pytest.raises(ValueError, match="needs two folds with rows, got one"):
            choose("probabilities", scores, codes, fold, weight)


# In estimators --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    return make_classification(300, 6, flip_y=0.1, random_state=0)


@pytest.mark.parametrize("scope", _scopes.SCOPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_classifier_says_what_it_took_and_repeats_it(data, scope, weighted):
    X, y = data
    weight = np.arange(300) % 3 + 1.0 if weighted else None
    model = SelectiveClassifier(
        GaussianNB(), calibration="auto", calibration_scope=scope, random_state=0
    ).fit(X, y, weight)
    assert model.calibration_.kind in _choice.SAFE[scope]
    for calibration in ("auto", model.calibration_.kind):
        again = clone(model).set_params(calibration=calibration).fit(X, y, weight)
        assert again.policy_.calibration.to_dict() == model.policy_.calibration.to_dict()
        np.testing.assert_array_equal(again.predict_confidence(X), model.predict_confidence(X))


def test_a_frozen_classifier_is_compared_across_folds_of_the_rows(data):
    X, y = data
    frozen = FrozenEstimator(GaussianNB().fit(X[:100], y[:100]))
    cv = KFold(3, shuffle=True, random_state=1)
    model = SelectiveClassifier(frozen, calibration="auto", cv=cv).fit(X[100:], y[100:])
    fold = np.empty(200)
    for k, (_, test) in enumerate(cv.split(X[100:])):
        fold[test] = k
    taken = choose("probabilities", frozen.predict_proba(X[100:]), y[100:], fold)
    assert model.calibration_.kind == taken
    named = clone(model).set_params(calibration=taken).fit(X[100:], y[100:])  # of all rows, too
    np.testing.assert_array_equal(model.predict_proba(X), named.predict_proba(X))
    # All rows of a class may stand in one fold: no model of it can lack the class.
    frozen = FrozenEstimator(GaussianNB().fit(X, np.where(X[:, 0] > 1, 2, y)))
    for n_rare, folds in ((1, None), (2, KFold(5))):
        rows = np.append(np.flatnonzero(X[:, 0] <= 1)[:60], np.flatnonzero(X[:, 0] > 1)[:n_rare])
        labels = np.where(X[rows, 0] > 1, 2, y[rows])
        model = SelectiveClassifier(frozen, calibration="auto", cv=folds).fit(X[rows], labels)
        assert len(model.calibration_.maps) in (1, 3)


def test_few_rows_decision_values_and_searches(data):
    X, y = data
    few = SelectiveClassifier(GaussianNB(), calibration="auto", cv=2).fit(X[:8], y[:8])
    assert few.calibration_.kind in _choice.SAFE["probabilities"]
    values = SelectiveClassifier(LinearSVC(), calibration="auto").fit(X, y)
    assert values.calibration_.kind in _choice.SAFE["probabilities"]
    grid = {"calibration": ["auto", "isotonic"]}
    search = GridSearchCV(values, grid, scoring="neg_log_loss", cv=2).fit(X, y)
    assert search.best_params_ == {"calibration": "auto"}


@pytest.mark.parametrize("scope", _scopes.SCOPES)
def test_shared_folds_choose_without_the_rows_they_decide(data, scope):
    X, y = data
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    model = SelectiveClassifier(GaussianNB(), calibration="auto", calibration_scope=scope)
    tuner = ThresholdTuner(model, cv=splits, random_state=0).fit(X, y)
    raw = [GaussianNB().fit(X[train], y[train]).predict_proba(X[test]) for train, test in splits]
    confidence = []
    for k, scores in enumerate(raw):
        others = [j for j in range(3) if j != k]
        rows = np.concatenate([splits[j][1] for j in others])
        made = _choice.fit_calibration(
            "auto", scope,
            _choice.RawRows("predict_proba", np.concatenate([raw[j] for j in others]), y[rows], 2),
            fold=np.repeat(others, [len(raw[j]) for j in others]),
        )  # fmt: skip
        confidence.append(made.calibrate_confidence(made.predict_proba(scores).max(axis=1)))
    curve = tuner.selection_.curve
    expected = np.unique(np.concatenate(confidence))
    np.testing.assert_allclose(np.sort(np.unique(curve.thresholds)), expected)


def test_overconfidence_that_remains_is_warned_of_once(data, monkeypatch):
    monkeypatch.setitem(_choice.SAFE, "probabilities", ("isotonic",))
    model = SelectiveClassifier(LogisticRegression(), calibration="auto", random_state=0)
    for estimator in (model, ThresholdTuner(model, cv=3, random_state=0)):
        with warnings.catch_warnings(record=True, action="always") as told:
            estimator.fit(*data)
        told = [w for w in told if "calibration='auto' chose 'isotonic'" in str(w.message)]
        assert len(told) == 1


# Decision values, pipelines, and classes of few rows ---------------------------------------------


@pytest.mark.parametrize("kind", CALIBRATORS)
@pytest.mark.parametrize("n_rare", [0, 2])
def test_a_class_of_no_or_two_rows_hardly_ever_wins(kind, n_rare):
    X, codes = table(3)
    rare = np.where(np.arange(240) < 2, 2, codes % 2)
    model = GaussianNB().fit(X, rare)
    known = np.arange(240) >= 2 - n_rare
    scores = model.predict_proba(X)
    made = _scopes.ClassCalibration.fit(kind, "predict_proba", scores[known], rare[known], 3)
    found = made.predict_proba(scores)
    assert np.all(np.isfinite(found))
    if kind != "temperature" or n_rare:  # its one map knows no classes, and keeps every answer
        assert not np.any(found[2:].argmax(axis=1) == 2)


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_a_classifier_that_only_says_0_and_1(kind):
    X, codes = table(2)
    tree = DecisionTreeClassifier(random_state=0)
    found = calibrated(kind, X, codes, tree).predict_proba(X)
    assert len(np.unique(found[:, 1])) == 2
    sure = found.max(axis=1)
    assert np.all((sure > 0.5) & (sure < 0.99))


@pytest.mark.parametrize("kind", CALIBRATORS)
@pytest.mark.parametrize("scope", _scopes.SCOPES)
def test_one_class_is_left_as_it_is(kind, scope):
    """A classifier that was trained on a single class: there is nothing to calibrate."""
    X, y = table(2)[0], np.zeros(240, int)
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    model = calibrated(kind, X, y, frozen, calibration_scope=scope)
    np.testing.assert_array_equal(model.predict_proba(X), 1.0)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_temperature_needs_a_fold_that_knows_all_classes(n_classes):
    """Decision values of a class that no fold knows say nothing about one temperature."""
    X, codes = table(n_classes)
    model = SelectiveClassifier(RidgeClassifier(), calibration="temperature", cv=LeaveOneGroupOut())
    with pytest.raises(ValueError, match="trained without that class"):
        model.fit(X, codes, groups=codes)
    codes[0], codes[-1] = 8, 9  # a class of one row in each half
    with pytest.raises(ValueError, match="every fold lacks a class; use stratified folds"):
        model.fit(X, codes, groups=np.arange(len(codes)) // (len(codes) // 2))
