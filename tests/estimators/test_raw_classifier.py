"""Fitting classifiers on folds, whatever labels they take."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.ensemble import VotingClassifier
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from skselect import CascadeClassifier, SelectiveClassifier
from skselect.calibration._calibrators import CALIBRATORS
from skselect.estimators.raw_classifier import TrainingRows, wrap_fitted
from skselect.scoring import get_scorer
from tests.refusals import check_refused


def without_the_second(data, base, **options):
    """Fit a classifier that never sees the second of three classes."""
    X, codes, classes = data
    part = codes != 1
    return TrainingRows(X[part], classes[codes[part]], codes[part], classes, **options).fit(base)


def test_a_missing_class_has_probability_zero_and_no_decision_value(data):
    proba = without_the_second(data, GaussianNB()).scores(data[0])
    assert proba.shape == (90, 3)
    assert np.all(proba[:, 1] == 0)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    values = without_the_second(data, LinearSVC()).scores(data[0])
    assert np.isnan(values[:, 1]).all()
    np.testing.assert_allclose(values[:, 0], -values[:, 2])


def test_xgboost_learns_strings_and_folds_without_a_class(data):
    xgboost = pytest.importorskip("xgboost")
    X, codes, classes = data
    model = xgboost.XGBClassifier(n_estimators=3, n_jobs=1)
    without_the_second(data, make_pipeline(model))
    raw = without_the_second(data, model)
    assert np.all(raw.scores(X)[:, 1] == 0)
    raw.check_decision(X, raw.scores(X), "argmax")
    answers = {
        decision: SelectiveClassifier(model, decision=decision).fit(X, classes[codes]).predict(X)
        for decision in ("estimator", "argmax")
    }
    assert answers["estimator"].tolist() == answers["argmax"].tolist()
    assert set(answers["argmax"]) == set(classes)


def test_frozen_is_used_as_it_is_by_the_classes_of_the_task(data):
    X, codes, classes = data
    fitted = GaussianNB().fit(X, classes[codes])
    raw = TrainingRows(X[:5], None, codes[:5], classes).fit(FrozenEstimator(fitted))
    assert np.array_equal(raw.scores(X), fitted.predict_proba(X))
    raw = wrap_fitted(fitted, np.array(["c", "a", "b"]))
    assert np.array_equal(raw.scores(X), fitted.predict_proba(X)[:, [2, 0, 1]])


def test_evaluation_sets_of_xgboost_follow_the_codes(data):
    xgboost = pytest.importorskip("xgboost")
    X, codes, classes = data
    part = codes != 1  # codes 0 and 2: XGBoost is trained on 0 and 1
    model = xgboost.XGBClassifier(n_estimators=3, n_jobs=1)
    given = {"eval_set": [(X[part], classes[codes[part]])], "verbose": False}
    raw = without_the_second(data, model, params=given)
    plain = xgboost.XGBClassifier(n_estimators=3, n_jobs=1)
    plain.fit(X[part], codes[part] // 2, eval_set=[(X[part], codes[part] // 2)], verbose=False)
    assert raw.estimator.evals_result() == plain.evals_result()
    given = {"eval_set": [(X, classes[codes])], "verbose": False}
    with pytest.raises(ValueError, match="eval_set has labels that are not among the classes"):
        without_the_second(data, model, params=given)


#: Labels that a booster does not take as they are, beside those that it does.
LABELS = [[0, 1], [1, 2], [-1, 1], ["b", "a"], [False, True]]


@pytest.fixture(scope="module")
def evaluated():
    """Return rows to train on and to evaluate on, and a booster that stops early on these."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 3))
    X[:, 0] += codes
    return X, codes


def _stops_early(**options):
    xgboost = pytest.importorskip("xgboost")
    return xgboost.XGBClassifier(
        n_estimators=30, max_depth=3, early_stopping_rounds=3, n_jobs=1, **options
    )


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_early_stopping_of_xgboost_is_the_same_for_all_labels(labels, evaluated):
    X, codes = evaluated
    order = np.argsort(np.argsort(labels))  # positions of the labels among the sorted classes
    y, train, rest = np.array(labels)[codes], slice(0, 300), slice(300, None)
    pairs = [(X[rest], y[rest])]
    plain = _stops_early().fit(
        X[train], order[codes][train], eval_set=[(X[rest], order[codes][rest])], verbose=False
    )
    bare = SelectiveClassifier(_stops_early()).fit(
        X[train], y[train], eval_set=pairs, verbose=False
    )
    piped = SelectiveClassifier(make_pipeline(FunctionTransformer(), _stops_early())).fit(
        X[train], y[train], xgbclassifier__eval_set=pairs, xgbclassifier__verbose=False
    )
    search = GridSearchCV(_stops_early(), {"max_depth": [3]}, cv=2)
    searched = SelectiveClassifier(search).fit(X[train], y[train], eval_set=pairs, verbose=False)
    boosters = [bare.estimator_, piped.estimator_[-1], searched.estimator_.best_estimator_]
    for booster in [*boosters, *_fit_routed(X[train], y[train], pairs)]:
        assert booster.best_iteration == plain.best_iteration
        assert booster.best_score == plain.best_score
    assert set(searched.predict(X)) == set(y)


def _fit_routed(X, y, pairs):
    """Return boosters that get the evaluation set by metadata routing."""
    with sklearn.config_context(enable_metadata_routing=True):
        asks = _stops_early().set_fit_request(eval_set=True, verbose=True)
        voting = SelectiveClassifier(VotingClassifier([("booster", asks)], voting="soft"))
        voting.fit(X, y, eval_set=pairs, verbose=False)
        stages = [("booster", asks), ("plain", GaussianNB())]
        cascade = CascadeClassifier(stages, cv=2, max_loss=0.5)
        cascade.fit(X, y, eval_set=pairs, verbose=False)
    return voting.estimator_.estimators_[0], cascade.stages_[0][1]


@pytest.mark.parametrize(
    "labels", [[0, 1, 2], [1, 2, 3], [-1, 1, 2], [0, 2, 3], ["c", "a", "b"]], ids=str
)
@pytest.mark.parametrize("is_tuple", [False, True])
def test_early_stopping_of_lightgbm_is_the_same_for_all_labels(is_tuple, labels, evaluated):
    lightgbm = pytest.importorskip("lightgbm")
    X, _ = evaluated
    codes = np.digitize(X[:, 0] + 0.3 * X[:, 1], [0, 1])
    order = np.argsort(np.argsort(labels))
    y, train, rest = np.array(labels)[codes], slice(0, 300), slice(300, None)
    options = {"n_estimators": 20, "n_jobs": 1, "verbose": -1}

    def fit(model, y, prefix=""):
        held_out = (X[rest], y[rest])
        given = {"eval_X": (X[rest],), "eval_y": (y[rest],)}
        if not is_tuple:
            given = dict(zip(given, held_out, strict=True))
        given["callbacks"] = [lightgbm.early_stopping(3, verbose=False)]
        return model.fit(X[train], y[train], **{prefix + name: x for name, x in given.items()})

    booster = lightgbm.LGBMClassifier(**options)
    expected = fit(lightgbm.LGBMClassifier(**options), order[codes]).best_iteration_
    bare = fit(SelectiveClassifier(booster), y)
    piped = fit(SelectiveClassifier(make_pipeline("passthrough", booster)), y, "lgbmclassifier__")
    assert bare.estimator_.best_iteration_ == piped.estimator_[-1].best_iteration_ == expected
    assert set(bare.predict(X)) <= set(y)
    weighted = lightgbm.LGBMClassifier(class_weight={labels[0]: 2}, **options)
    if labels != [0, 1, 2]:
        check_refused("class_weight", fit, SelectiveClassifier(weighted), y)


@pytest.mark.parametrize("decision", ["argmax", "estimator"])
def test_a_table_of_answers_says_what_is_wrong(decision, evaluated):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(objective="multi:softprob", num_class=2, n_estimators=2)
    fit = SelectiveClassifier(model, decision=decision).fit
    message = check_refused("estimator", fit, *evaluated)
    assert "objective='binary:logistic'" in message


# What a classifier answers ---------------------------------------------------------------------


class Values(ClassifierMixin, BaseEstimator):
    """A classifier whose first column is its decision value, or the first K are."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0] if len(self.classes_) == 2 else X[:, : len(self.classes_)]

    def predict(self, X):
        if len(self.classes_) == 2:
            return self.classes_[(X[:, 0] > 0).astype(int)]
        return self.classes_[X[:, : len(self.classes_)].argmax(axis=1)]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", CALIBRATORS)
def test_decision_values_must_be_finite(kind, n_classes, bad, data):
    X, codes, _ = data
    y = np.minimum(codes, n_classes - 1)
    model = SelectiveClassifier(Values(), calibration=kind, threshold=0.8).fit(X, y)
    broken = X.copy()
    broken[4, 0] = bad
    check_refused("1 of 90 rows, first in row 4", model.predict_proba, broken)
    check_refused("1 of 90 rows", model.fit, broken, y)
    values = Values().fit(X, y).decision_function(broken)
    if np.isinf(bad):
        check_refused("decision values", model.policy_.decide, values)
        return
    with pytest.warns(UserWarning, match=r"1 of 90 rows lack a number \(the first is row 4\)"):
        decided = model.policy_.decide(values)
    assert not decided["accepted"][4]


@pytest.mark.parametrize("decision", ["argmax", "estimator"])
def test_pairs_of_three_classes_are_no_classes(decision):
    X, y = load_iris(return_X_y=True)
    options = {"calibration": "temperature", "decision": decision}
    for wrap in (
        lambda svc: make_pipeline(StandardScaler(), svc),
        lambda svc: GridSearchCV(svc, {"C": [1.0]}, cv=2),
        lambda svc: FrozenEstimator(svc.fit(X, y)),
        lambda svc: RFE(svc.set_params(kernel="linear")),
    ):
        pairs = wrap(SVC(decision_function_shape="ovo"))
        with pytest.raises(ValueError, match=r"pairs of classes.*decision_function_shape='ovr'"):
            SelectiveClassifier(pairs, **options).fit(X, y)
        assert SelectiveClassifier(wrap(SVC()), **options).fit(X, y).score(X, y) > 0.9
    assert SelectiveClassifier(Pairs(), **options).fit(X, y).score(X, y) > 0.9


class Pairs(GaussianNB):
    """Has probabilities, so that its decision values do not count."""

    decision_function_shape = "ovo"


class Background(GaussianNB):
    """States the probability of a class that it does not list."""

    def predict_proba(self, X):
        return np.column_stack([super().predict_proba(X) * 0.9, np.full(len(X), 0.1)])


class Forgetful(GaussianNB):
    """Loses the last row."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:-1]


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("calibration", [None, "platt"])
def test_rows_and_columns_of_probabilities_are_counted(calibration, data):
    X, codes, _ = data
    y = codes > 0
    for base, shape in ((Background(), r"\(90, 3\)"), (Forgetful(), r"\(89, 2\)")):
        message = f"{type(base).__name__} gives the shape {shape} for 90 rows and a classes_ of"
        with pytest.raises(ValueError, match=message):
            SelectiveClassifier(base, calibration=calibration).fit(X, y)
        with pytest.raises(ValueError, match=message):
            get_scorer("neg_augrc")(base.fit(X, y), X, y)
    one = MLPClassifier(max_iter=5).fit(X, np.ones(90))
    with pytest.raises(ValueError, match=r"shape \(90, 2\) for 90 rows and a classes_ of length 1"):
        SelectiveClassifier(FrozenEstimator(one)).fit(X, np.ones(90))
