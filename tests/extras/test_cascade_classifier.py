"""A cascade as a classifier: alone, in a tuner, in pipelines and searches."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import skselect as sk
from tests.refusals import check_refused, refusals

LINEAR = make_pipeline(StandardScaler(), LogisticRegression())


def make_rows(n=1500, labels=("no", "yes", "perhaps")):
    """Return rows that a linear model answers well on one side and badly on the other."""
    X, codes = make_classification(
        n, 6, n_informative=4, n_classes=len(labels), n_clusters_per_class=1, class_sep=1.5,
        flip_y=0.02, random_state=0,
    )  # fmt: skip
    return X, np.array(labels)[codes]


def make_cascade(**options):
    stages = [("linear", LINEAR), ("forest", RandomForestClassifier(10, random_state=0))]
    return sk.CascadeClassifier(stages, random_state=0).set_params(**options)


def test_the_diagram_of_scikit_learn_shows_the_stages_in_their_order():
    cascade = make_cascade()
    for shown in (cascade, sk.ThresholdTuner(cascade, "risk", target=0.1)):
        page = shown._repr_html_()
        assert re.findall(r"<label[^>]*>(?:<div>)*(linear|forest)<", page) == ["linear", "forest"]


@pytest.fixture(scope="module")
def rows():
    return make_rows()


@pytest.fixture(scope="module")
def tuner(rows):
    X, y = rows
    cascade = make_cascade(costs=[1, 4], linear=GaussianNB(), forest__n_estimators=30)
    return sk.ThresholdTuner(cascade, "risk", target=0.05, random_state=0).fit(X[:1200], y[:1200])


class Counted(ClassifierMixin, BaseEstimator):
    """A classifier that counts the rows it is asked about."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        self.model_ = clone(self.model).fit(X, y)
        self.classes_, self.asked_ = self.model_.classes_, 0
        return self

    def predict_proba(self, X):
        self.asked_ += len(X)
        return self.model_.predict_proba(X)

    def predict(self, X):
        return self.classes_[self.model_.predict_proba(X).argmax(axis=1)]


def test_a_stage_is_asked_about_the_rows_that_come_to_it_and_no_others(rows):
    X, y = rows
    cascade = sk.CascadeClassifier(
        [("one", Counted(LINEAR)), ("two", Counted(GaussianNB())), ("three", Counted(LINEAR))],
        random_state=0, max_loss=0.1,
    ).fit(X[:1000], y[:1000])  # fmt: skip
    before = [model.asked_ for _, model in cascade.stages_]
    proba, stage = cascade.follow(X[1000:])
    asked = [model.asked_ - k for (_, model), k in zip(cascade.stages_, before, strict=True)]
    assert asked == [np.sum(stage >= k) for k in range(3)]
    assert asked[0] == 500 > asked[1]
    np.testing.assert_array_equal(cascade.predict_proba(X[1000:]), proba)
    assert cascade.predict(X[1000:]).tolist() == cascade.classes_[proba.argmax(axis=1)].tolist()


def test_probabilities_are_those_of_the_stage_calibrated(rows):
    X, y = rows
    cascade = make_cascade(max_loss=0.1).fit(X[:1000], y[:1000])
    proba, stage = cascade.follow(X[1000:])
    for k, (_, model) in enumerate(cascade.stages_):
        own = cascade.cascade_.calibrations[k].predict_proba(model.predict_proba(X[1000:]))
        np.testing.assert_array_equal(proba[stage == k], own[stage == k])
        if k == 0:
            assert np.array_equal(stage == 0, own.max(axis=1) >= cascade.cascade_.cuts[0])
    plain = clone(cascade).set_params(calibration=None).fit(X[:1000], y[:1000])
    first, stage = plain.stages_[0][1].predict_proba(X), plain.follow(X)[1]
    np.testing.assert_array_equal(plain.predict_proba(X)[stage == 0], first[stage == 0])


def test_the_policy_follows_the_stages_as_the_tuner_does(tuner, rows, tmp_path):
    X = rows[0][1200:]
    decided, tables = tuner.decide(X), tuner.raw_scores(X)
    assert set(decided["stage"]) == {"linear", "forest"}
    tuner.policy_.to_json(tmp_path / "policy.json")
    policy = sk.AbstentionPolicy.from_json(tmp_path / "policy.json")
    assert policy.decide(tables).equals(decided)
    ask = policy.begin(tuner.estimator_.estimator_.stages_[0][1].predict_proba(X))
    assert (ask == "forest").tolist() == (decided["stage"] == "forest").tolist()
    assert np.isnan(tables["forest"][ask != "forest"]).all()
    gate = {}
    exec(policy.to_python(), gate)
    assert gate["decide"](tables)["stage"].tolist() == decided["stage"].tolist()
    assert gate["decide"](tables)["accepted"].tolist() == decided["accepted"].tolist()
    np.testing.assert_array_equal(tuner.predict_confidence(X), decided["confidence"])


def test_costs_are_counted_on_the_rows_that_certify(tuner):
    table = tuner.policy_.expected_costs
    assert tuner.certificate_.is_certified
    assert "480 rows (rows that did not choose the rule)" in table.attrs["note"]
    share = table["asked"]["forest"]
    assert table["low"]["forest"] < share < table["high"]["forest"]
    np.testing.assert_allclose(table["cost"]["all"], 1 + 4 * share)
    assert "Cascade linear -> forest" in str(tuner.policy_)
    assert "a case." in tuner.policy_._repr_html_()


@pytest.mark.parametrize("options", [{"cv": 3}, {"refit": True}])
def test_costs_are_an_estimate_where_other_models_rated_the_rows(rows, options):
    tuner = sk.ThresholdTuner(make_cascade(), "risk", target=0.15, random_state=0, **options)
    assert "an estimate" in tuner.fit(*rows).policy_.expected_costs.attrs["note"]


def test_the_tuner_tells_its_seed_and_target_and_leaves_a_stated_one(rows):
    X, y = rows[0][:600], rows[1][:600]
    half = sk.Risk(0.7, loss=lambda y_true, y_pred: (y_true != y_pred) / 2)
    each = {label: sk.Risk(0.2 + 0.1 * k) for k, label in enumerate(np.unique(y).tolist())}
    for objective, given, planned in (
        (sk.Risk(0.2), None, 0.2), (sk.Risk(0.2), 0.3, 0.3), ("cwsa_plus", None, None),
        (half, None, None), (each, None, 0.2),
    ):  # fmt: skip
        by = "predicted_class" if isinstance(objective, dict) else None
        model = make_cascade(target=given, random_state=None)
        tuner = sk.ThresholdTuner(model, objective, group_by=by, random_state=7)
        tuner.set_params(on_infeasible="abstain")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            cascade = tuner.fit(X, y).estimator_.estimator
        assert (cascade.target, cascade.random_state) == (planned, 7)
        assert (model.target, model.random_state) == (given, None)  # what the user holds


def test_a_calibration_on_top_and_one_subgroup_each(rows):
    xgboost = pytest.importorskip("xgboost")
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(site=np.arange(len(X)) % 2)
    boosted = make_cascade(forest=xgboost.XGBClassifier(n_estimators=10, n_jobs=1))
    model = sk.SelectiveClassifier(boosted, calibration="temperature", cv=3, random_state=0)
    tuner = sk.ThresholdTuner(model, "risk", target=0.2, group_by="site", random_state=0)
    tuner.fit(frame, y)
    decided = tuner.decide(frame)
    again = tuner.policy_.decide(tuner.raw_scores(frame), subgroups=frame[["site"]])
    assert again.reset_index(drop=True).equals(decided.reset_index(drop=True))
    assert set(decided["stage"]) <= {"linear", "forest"}


def test_frozen_stages_are_not_fitted_and_have_no_record(rows):
    X, y = rows
    linear = clone(LINEAR).fit(X[:500], y[:500])
    stages = [("linear", FrozenEstimator(linear)), ("forest", RandomForestClassifier(10))]
    tuner = sk.ThresholdTuner(sk.CascadeClassifier(stages, max_loss=0.1), "risk", target=0.15)
    tuner.set_params(random_state=0).fit(X[500:], y[500:])
    assert tuner.estimator_.estimator_.stages_[0][1].estimator is linear
    assert "skselect cannot tell whether these rows also trained" in str(tuner.certificate_)


def test_stored_predictions_side_by_side_are_stages(rows):
    X, y = rows
    linear, forest = clone(LINEAR).fit(X[:500], y[:500]), RandomForestClassifier(10, random_state=0)
    forest.fit(X[:500], y[:500])
    tables = [
        pd.DataFrame(model.predict_proba(X[500:]), columns=model.classes_).add_prefix(f"{name} ")
        for name, model in (("linear", linear), ("forest", forest))
    ]
    stages = [
        (name, sk.PrecomputedClassifier(linear.classes_, columns=list(table.columns)))
        for name, table in zip(("linear", "forest"), tables, strict=True)
    ]
    side_by_side = pd.concat(tables, axis=1)
    tuner = sk.ThresholdTuner(sk.CascadeClassifier(stages), "risk", target=0.15, random_state=0)
    assert tuner.fit(side_by_side, y[500:]).certificate_.is_certified
    assert set(tuner.decide(side_by_side)["stage"]) <= {"linear", "forest"}
    frozen = sk.ThresholdTuner(FrozenEstimator(tuner.estimator_.estimator_), "risk", target=0.15)
    assert "stage" in frozen.fit(side_by_side, y[500:]).decide(side_by_side)


def test_a_policy_of_stages_is_checked_certified_and_watched(tuner, rows):
    X, y = rows[0][1200:], rows[1][1200:]
    tables, policy = tuner.raw_scores(X), tuner.policy_
    decided = tuner.decide(X)
    n_errors = int(np.sum(decided["accepted"] & (decided["suggestion"] != y)))
    check = sk.check_policy(policy, y, tables)
    assert (check.n_accepted, check.n_errors) == (int(decided["accepted"].sum()), n_errors)
    certificate = sk.certify(policy, y, tables, objective=sk.Risk(0.3))
    assert certificate.n_errors == n_errors
    monitor = sk.SelectiveRiskMonitor(policy, target=0.3)
    monitor.update(y, tables)
    assert monitor.status_.n_decided == 300
    assert "Cascade" in str(policy)
    every = [
        (name, sk.Predictions.from_proba(y, model.predict_proba(X)))
        for name, model in tuner.estimator_.estimator_.stages_
    ]
    joined = policy.cascade.join(dict(every))
    assert sk.check_policy(policy, joined).n_errors == n_errors
    with pytest.raises(ValueError, match="this policy asks the stages"):
        sk.check_policy(policy, every[0][1])
    report = sk.selective_report(None, joined, policy=policy)
    assert f"{check.n_errors} of {check.n_accepted}" in str(report)


def test_parameters_of_stages_are_set_cloned_pickled_and_searched(rows):
    X, y = rows
    cascade = make_cascade().set_params(forest__max_depth=3, linear=GaussianNB())
    copy = clone(cascade)
    assert copy.get_params()["forest__max_depth"] == 3
    assert isinstance(dict(copy.stages)["linear"], GaussianNB)
    fitted = copy.fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    search = GridSearchCV(cascade, {"forest__max_depth": [2, 4]}, cv=2).fit(X, y)
    assert search.best_estimator_.cascade_.names == ("linear", "forest")
    assert fitted.n_features_in_ == 6


def test_arguments_of_fit_reach_the_stages_that_ask_for_them(rows):
    X, y = rows
    weight, groups = np.random.default_rng(0).random(len(y)), np.arange(len(y)) // 5
    stages = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=4))]
    plain = sk.CascadeClassifier(stages, random_state=0).fit(
        X, y, sample_weight=weight, groups=groups
    )
    expected = GaussianNB().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(plain.stages_[0][1].theta_, expected.theta_)
    with sklearn.config_context(enable_metadata_routing=True):
        tree = DecisionTreeClassifier().set_fit_request(sample_weight=False)
        asks = [("bayes", GaussianNB().set_fit_request(sample_weight=True)), ("tree", tree)]
        routed = sk.CascadeClassifier(asks, random_state=0).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(routed.stages_[0][1].theta_, expected.theta_)
    neighbours = sk.CascadeClassifier([("near", KNeighborsClassifier()), stages[0]])
    with pytest.raises(ValueError, match=r"stage 'near', KNeighborsClassifier.fit takes no weig"):
        neighbours.fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match=r"fit: \['eval_set'\] could go to any stage"):
        neighbours.fit(X, y, eval_set=[])


def test_a_cascade_that_saves_nothing_warns(rows):
    X, y = rows
    stages = [("blind", DummyClassifier(strategy="prior")), ("linear", LINEAR)]
    with pytest.warns(UserWarning, match="saves nothing.*every case goes to 'linear'"):
        cascade = sk.CascadeClassifier(stages, random_state=0, max_loss=0).fit(X, y)
    proba, stage = cascade.follow(X)
    assert np.all(stage == 1)
    np.testing.assert_array_equal(proba, cascade.stages_[1][1].predict_proba(X))


@refusals({
    "stages": [
        {"stages": bad} for bad in (
            [("one", LINEAR)], LINEAR, {"one": LINEAR, "two": LINEAR}, [(1, LINEAR), (2, LINEAR)],
            ["ab", "cd"], [("one", LINEAR), ("two", 7)],
            [("one", LINEAR), ("one", LINEAR)], [("one", LINEAR), ("all", LINEAR)],
            [("one", LINEAR), ("two", LinearSVC())], [("one", LINEAR), ("two", LinearRegression())],
            [("one", sk.SelectiveClassifier(LINEAR, threshold=0.9)), ("two", LINEAR)],
        )
    ],
    "costs": [{"costs": [1]}, {"costs": [1, -1]}], "target": [{"target": 0.7}],
    "max_loss": [{"max_loss": 2}], "calibration": [{"calibration": "isotonc"}],
    "cv": [{"cv": 1}, {"stages": [("one", LINEAR), ("cv", LINEAR)]}],
})  # fmt: skip
def test_bad_parameters_are_refused_before_anything_is_trained(rows, argument, call):
    cascade = make_cascade().set_params(**call)
    for model in (cascade, sk.ThresholdTuner(cascade)):
        check_refused(argument, model.fit, *rows)


def test_stages_with_other_classes_are_refused(rows):
    X, y = rows
    frozen = FrozenEstimator(clone(LINEAR).fit(X[y != "no"], y[y != "no"]))
    with pytest.raises(ValueError, match=r"'two' knows the classes \['perhaps', 'yes'\], but y"):
        sk.CascadeClassifier([("one", LINEAR), ("two", frozen)]).fit(X, y)
