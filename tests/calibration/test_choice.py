"""What `calibration="auto"` chooses, compared with a choice by loops."""

import json
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from skselect import AbstentionPolicy, SelectiveClassifier, ThresholdTuner
from skselect.calibration import _scopes
from skselect.calibration._scopes import (
    SAFE,
    ClassCalibration,
    ConfidenceCalibration,
    RawRows,
    choose_calibrator,
    fit_calibration,
)

SCOPES = list(SAFE)


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
    rows = RawRows("predict_proba", scores, codes, scores.shape[1], weight, confidence)
    return choose_calibrator(scope, rows, fold)


def losses_by_loops(scope, scores, codes, fold, weight):
    """Map each row by a calibration of the other folds, and add up the log losses."""
    total = {}
    for name in SAFE[scope]:
        lost = 0.0
        for i in range(len(codes)):
            others = [j for j in range(len(codes)) if fold[j] != fold[i]]
            repeated = np.repeat(others, weight[others])
            known, truth = scores[repeated], codes[repeated]
            if scope == "probabilities":
                made = ClassCalibration.fit(name, "predict_proba", known, truth, scores.shape[1])
                chance = made.predict_proba(scores[[i]])[0, codes[i]]
            else:
                right = (known.argmax(axis=1) == truth).astype(float)
                made = ConfidenceCalibration.fit(name, known.max(axis=1), right)
                claimed = made.calibrate_confidence(scores[[i]].max(axis=1))[0]
                chance = claimed if scores[i].argmax() == codes[i] else 1 - claimed
            lost -= weight[i] * np.log(chance)
        total[name] = lost
    return total


@pytest.mark.parametrize("scope", SCOPES)
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
    kinds = [*SAFE["probabilities"], "isotonic", "auto"]
    found = {kind: [] for kind in kinds}
    for _ in range(20):
        scores, codes = draw(population, rng, 60)
        fresh, truth = draw(population, rng, 2000)
        for kind in kinds:
            made = fit_calibration(
                kind, "probabilities", RawRows("predict_proba", scores, codes, 2),
                fold=np.arange(60) % 5,
            )  # fmt: skip
            own = made.predict_proba(fresh)[np.arange(2000), truth]
            found[kind].append(-np.log(np.maximum(own, 1e-15)).mean())
    mean = {kind: np.mean(values) for kind, values in found.items()}
    safe = {kind: mean[kind] for kind in SAFE["probabilities"]}
    best, worst = min(safe, key=safe.get), max(safe, key=safe.get)
    error = {
        kind: np.std(np.subtract(found["auto"], found[kind])) / np.sqrt(20)
        for kind in (best, worst)
    }
    assert mean["auto"] <= mean[worst] + 4 * error[worst]
    assert mean["auto"] <= mean[best] + 0.01 + 4 * error[best]
    assert mean["auto"] < mean["isotonic"] - 0.1


@pytest.mark.parametrize("scope", SCOPES)
def test_rows_without_weight_and_the_order_of_rows_change_nothing(scope):
    rng = np.random.default_rng(2)
    scores, codes = draw(shifted, rng, 80)
    fold, weight = rng.permutation(80) % 5, np.repeat([1.0, 0.0], 40)
    chosen = choose(scope, scores, codes, fold, weight)
    assert chosen == choose(scope, scores[:40], codes[:40], fold[:40])
    order = rng.permutation(80)
    assert chosen == choose(scope, scores[order], codes[order], fold[order], weight[order])


def test_the_simplest_of_equals_is_taken(monkeypatch):
    same = np.tile([0.4, 0.6], (20, 1)), np.full(20, 0.6)
    monkeypatch.setattr(_scopes, "cross_fit", lambda *_: same)
    scores, codes = draw(too_sure, np.random.default_rng(0), 20)
    for scope in SCOPES:
        assert choose(scope, scores, codes, np.arange(20) % 2) == SAFE[scope][0] == "temperature"


def test_temperature_is_no_candidate_for_another_confidence():
    scores, codes = draw(too_sure, np.random.default_rng(0), 200)
    taken = choose("confidence", scores, codes, np.arange(200) % 5, confidence="entropy")
    assert taken == "smooth_isotonic"


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


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_classifier_says_what_it_took_and_repeats_it(data, scope, weighted):
    X, y = data
    weight = np.arange(300) % 3 + 1.0 if weighted else None
    model = SelectiveClassifier(
        GaussianNB(), calibration="auto", calibration_scope=scope, random_state=0
    ).fit(X, y, weight)
    taken = model.calibration_.kind
    assert taken in SAFE[scope]
    named = clone(model).set_params(calibration=taken).fit(X, y, weight)
    again = clone(model).fit(X, y, weight)
    for other in (named, again):
        np.testing.assert_array_equal(other.predict_confidence(X), model.predict_confidence(X))
    stored = model.policy_.to_json()
    assert json.loads(stored).keys() == json.loads(named.policy_.to_json()).keys()
    assert json.loads(stored)["calibration"] == json.loads(named.policy_.to_json())["calibration"]
    loaded = AbstentionPolicy.from_json(stored).decide(model.raw_scores(X))
    np.testing.assert_array_equal(loaded["confidence"], model.predict_confidence(X))


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


def test_a_frozen_classifier_knows_a_class_of_one_row(data):
    X, y = data
    frozen = FrozenEstimator(GaussianNB().fit(X, np.where(X[:, 0] > 1, 2, y)))
    rows = np.append(np.flatnonzero(y < 2)[:60], np.flatnonzero(X[:, 0] > 1)[:1])
    labels = np.append(y[rows[:-1]], 2)
    model = SelectiveClassifier(frozen, calibration="auto").fit(X[rows], labels)
    assert len(model.calibration_.maps) in (1, 3)


def test_few_rows_decision_values_and_searches(data):
    X, y = data
    few = SelectiveClassifier(GaussianNB(), calibration="auto", cv=2).fit(X[:8], y[:8])
    assert few.calibration_.kind in SAFE["probabilities"]
    values = SelectiveClassifier(LinearSVC(), calibration="auto").fit(X, y)
    assert values.calibration_.kind in SAFE["probabilities"]
    grid = {"calibration": ["auto", "isotonic"]}
    search = GridSearchCV(values, grid, scoring="neg_log_loss", cv=2).fit(X, y)
    assert search.best_params_ == {"calibration": "auto"}


@pytest.mark.parametrize("scope", SCOPES)
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
        made = fit_calibration(
            "auto", scope,
            RawRows("predict_proba", np.concatenate([raw[j] for j in others]), y[rows], 2),
            fold=np.repeat(others, [len(raw[j]) for j in others]),
        )  # fmt: skip
        confidence.append(made.calibrate_confidence(made.predict_proba(scores).max(axis=1)))
    curve = tuner.selection_.curve
    expected = np.unique(np.concatenate(confidence))
    np.testing.assert_allclose(np.sort(np.unique(curve.thresholds)), expected)


def test_two_folds_of_the_tuner_are_not_shared(data):
    fits = []

    class Counted(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            fits.append(len(y))
            return super().fit(X, y, sample_weight)

    def count(calibration, cv):
        fits.clear()
        model = SelectiveClassifier(Counted(), calibration=calibration, cv=3)
        ThresholdTuner(model, cv=cv, random_state=0).fit(*data)
        return len(fits)

    assert count("temperature", 2) == 2 + 4
    assert count("auto", 3) == 3 + 1  # the scores of the folds calibrate the refit
    assert count("auto", 2) == 2 * 4 + 4


def test_overconfidence_that_remains_is_warned_of_once(data, monkeypatch):
    monkeypatch.setitem(SAFE, "probabilities", ("isotonic",))
    model = SelectiveClassifier(LogisticRegression(), calibration="auto", random_state=0)
    for estimator in (model, ThresholdTuner(model, cv=3, random_state=0)):
        with warnings.catch_warnings(record=True, action="always") as told:
            estimator.fit(*data)
        told = [w for w in told if "calibration='auto' took 'isotonic'" in str(w.message)]
        assert len(told) == 1
