"""Fitting classifiers on folds, whatever labels they take."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from skselect._fitting import fit_raw, folds, holdout, rows_of, wants_codes, wrap_fitted


@pytest.fixture
def data(rng):
    X = rng.normal(size=(90, 3))
    codes = np.repeat([0, 1, 2], 30)
    X[:, 0] += codes * 2
    return X, codes, np.array(["a", "b", "c"])


def test_a_missing_class_gets_probability_zero_in_its_own_column(data):
    X, codes, classes = data
    part = codes != 1
    raw = fit_raw(GaussianNB(), X[part], classes[codes[part]], codes[part], classes, {})
    scores = raw.scores(X)
    assert scores.shape == (90, 3)
    assert np.all(scores[:, 1] == 0)
    np.testing.assert_allclose(scores.sum(axis=1), 1)


def test_a_missing_class_has_no_decision_value(data):
    X, codes, classes = data
    part = codes != 1
    raw = fit_raw(LinearSVC(), X[part], classes[codes[part]], codes[part], classes, {})
    scores = raw.scores(X)
    assert np.isnan(scores[:, 1]).all()
    np.testing.assert_allclose(scores[:, 0], -scores[:, 2])


def test_xgboost_learns_strings_and_folds_without_a_class(data):
    xgboost = pytest.importorskip("xgboost")
    X, codes, classes = data
    model = xgboost.XGBClassifier(n_estimators=3, n_jobs=1)
    assert wants_codes(model)
    assert wants_codes(make_pipeline(model))
    assert not wants_codes(GaussianNB())
    part = codes != 1
    raw = fit_raw(model, X[part], classes[codes[part]], codes[part], classes, {})
    assert np.all(raw.scores(X)[:, 1] == 0)
    raw.check_decision(X, raw.scores(X), "argmax")


def test_frozen_is_used_as_it_is(data):
    X, codes, classes = data
    fitted = GaussianNB().fit(X, classes[codes])
    raw = fit_raw(FrozenEstimator(fitted), X[:5], None, codes[:5], classes, {})
    assert np.array_equal(raw.scores(X), fitted.predict_proba(X))


def test_evaluation_sets_of_xgboost_follow_the_codes(data):
    xgboost = pytest.importorskip("xgboost")
    X, codes, classes = data
    part = codes != 1  # codes 0 and 2: XGBoost is trained on 0 and 1
    labels = classes[codes[part]]
    model = xgboost.XGBClassifier(n_estimators=3, n_jobs=1)
    given = {"eval_set": [(X[part], labels)], "verbose": False}
    raw = fit_raw(model, X[part], labels, codes[part], classes, given)
    plain = xgboost.XGBClassifier(n_estimators=3, n_jobs=1)
    plain.fit(X[part], codes[part] // 2, eval_set=[(X[part], codes[part] // 2)], verbose=False)
    assert raw.estimator.evals_result() == plain.evals_result()
    given = {"eval_set": [(X, classes[codes])], "verbose": False}
    with pytest.raises(ValueError, match="eval_set has labels that are not among the classes"):
        fit_raw(model, X[part], labels, codes[part], classes, given)


def test_columns_follow_the_task_not_the_classifier(data):
    X, codes, classes = data
    fitted = LogisticRegression().fit(X, classes[codes])
    raw = wrap_fitted(fitted, np.array(["c", "a", "b"]))
    assert np.array_equal(raw.scores(X), fitted.predict_proba(X)[:, [2, 0, 1]])


def test_rare_classes_do_not_warn():
    y = np.array([0] * 20 + [1] * 2)
    assert len(list(folds(5, y, y, {}))) == 5


def test_groups_stay_together(rng):
    y = rng.integers(0, 2, 100)
    groups = np.repeat(np.arange(20), 5)
    for train, test in folds(4, y, y, {"groups": groups}):
        assert not set(groups[train]) & set(groups[test])
    train, test = holdout(0.3, 100, groups, 0)
    assert not set(groups[train]) & set(groups[test])


def test_overlapping_tests_are_refused():
    y = np.array([0, 1] * 10)
    with pytest.raises(ValueError, match="cv must put every row into exactly one test part"):
        list(folds(ShuffleSplit(3, random_state=0), y, y, {}))
    assert len(list(folds(KFold(4), y, y, {}))) == 4


def test_holdout_is_a_plain_random_split():
    train, test = holdout(0.25, 100, None, 0)
    assert sorted([*train, *test]) == list(range(100))
    assert len(test) == 25
    with pytest.raises(ValueError, match=r"cv=0\.999 cannot split 10 rows"):
        holdout(0.999, 10, None, 0)


def test_an_iterator_serves_once():
    y = np.array([0, 1] * 10)
    cv = iter([(np.arange(10), np.arange(10, 20)), (np.arange(10, 20), np.arange(10))])
    assert len(list(folds(cv, y, y, {}))) == 2
    with pytest.raises(ValueError, match="cv yields no folds"):
        list(folds(cv, y, y, {}))


def test_fit_parameters_are_cut_to_the_rows():
    cut = rows_of({"margin": np.arange(4), "names": "abcd", "flag": True}, np.array([2, 0]), 4)
    assert cut["margin"].tolist() == [2, 0]
    assert cut["names"] == "abcd"
    assert cut["flag"] is True
