"""Subgroups, costs and own answers, from the estimators to the saved policy."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skselect import AbstentionPolicy, Risk, SelectiveClassifier, ThresholdTuner
from skselect._lib.notebook import unwrap
from skselect.estimators.tuner import check_decided_by_row, find_subgroups
from skselect.metrics._threshold import selective_accuracy_score
from skselect.policy import Subgroups
from skselect.scoring import get_scorer
from tests.refusals import check_refused, refusals

COSTS = [[0, 1], [10, 0]]
RISK = {"objective": "risk", "target": 0.12, "on_infeasible": "abstain"}
HALF = {"cv": 0.5, "refit": False, "random_state": 0}


class Untouched(GaussianNB):
    """Must not be fitted."""

    def fit(self, *_, **__):
        raise AssertionError


@pytest.fixture
def people(rng):
    n = 4500
    X = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)})
    X["site"] = rng.integers(0, 3, n)
    noise = np.array([0.5, 0.8, 1.1])[X["site"]]
    y = np.where(X["x"] + noise * rng.normal(size=n) > 0.5, "sick", "healthy")
    return X, y


def model():
    return LogisticRegression()


# Subgroups -------------------------------------------------------------------------------------


def test_numbers_that_are_no_subgroups_are_to_be_binned(people):
    X, y = people
    tuner = ThresholdTuner(model(), group_by="z", **RISK | {"on_infeasible": "raise"})
    with pytest.raises(ValueError, match=r"alone in their subgroup of z: bin .* pd.cut\(X\['z'\]"):
        tuner.fit(X[["x", "z"]][:300], y[:300])


@pytest.mark.filterwarnings("ignore:site|2|subgroup")
def test_columns_and_functions_give_the_same_thresholds(people):
    X, y = people
    reference = ThresholdTuner(model(), group_by="site", **HALF, **RISK).fit(X, y)
    thresholds, decided = reference.thresholds_, reference.decide(X)
    assert len(set(thresholds.values())) == len(thresholds) == 3
    assert decided["threshold"].tolist() == [thresholds[site] for site in X["site"]]
    assert (reference.predict(X) == "abstain").tolist() == (~decided["accepted"]).tolist()
    certificates = reference.certificates_
    assert all(one.delta == pytest.approx(0.05 / 3) for one in certificates.values())
    assert certificates[0].is_certified
    for group_by, rows, labels in [
        (["site"], X, y), (lambda X: X["site"], X, y), (lambda X: np.asarray(X["site"]), X, y),
        (2, X.to_numpy(), y), ("site", pl.from_pandas(X), y),
        # Whatever becomes an array.
        (2, Duck(X), Duck(y)), ([2], Duck(X), Duck(y)),
        (lambda X: np.asarray(X)[:, 2], Duck(X), Duck(y)),
    ]:  # fmt: skip
        tuner = ThresholdTuner(model(), group_by=group_by, **HALF, **RISK).fit(rows, labels)
        assert tuner.thresholds_ == thresholds
        assert tuner.accepts(rows).tolist() == decided["accepted"].tolist()


class Duck:
    """Becomes an array, and refuses to do anything else."""

    def __init__(self, data):
        self.data = np.asarray(data)

    def __array__(self, dtype=None, copy=None):
        return self.data.astype(dtype) if dtype is not None else self.data

    def __array_function__(self, func, *_):
        raise TypeError(f"no {func.__name__} here")


@pytest.mark.filterwarnings("ignore:site")
def test_several_thresholds_have_no_single_one(people):
    tuner = ThresholdTuner(model(), group_by="site", cv=5, **RISK).fit(*people)
    for name in ("threshold_", "certificate_"):
        with pytest.raises(AttributeError, match=f"see {name[:-1]}s_, a dict"):
            getattr(tuner, name)
        assert not hasattr(tuner, name)
    assert tuner.estimator_.threshold is None
    assert tuner.curve_.n_rows == 4500
    said = str(tuner.selection_)
    assert said.count("ESTIMATE, NOT CERTIFIED") == 1  # one text says it of all three
    assert sum(line.endswith("estimate") for line in said.splitlines()) == 3
    assert len(tuner.cv_results_["coverage"]) == 5
    assert tuner.policy_.coverage == pytest.approx(tuner.cv_results_["coverage"].mean())


def letter(X):
    return X["site"].map({0: "a", 1: "b", 2: "c", 7: "d"})


def test_unseen_and_missing_subgroups(people):
    X, y = people
    tuner = ThresholdTuner(model(), group_by=letter, **HALF, **RISK).fit(X, y)
    new = X.head(4).assign(site=[0, 7, 9, 1], x=9.0)
    with pytest.warns(UserWarning, match=r"2 rows belong to no letter .* \(\['d'"):
        found = tuner.predict(new)
    assert found.tolist() == ["sick", "abstain", "abstain", "sick"]
    strict = clone(tuner).set_params(group_by=Subgroups(letter, unseen="raise")).fit(X, y)
    with pytest.raises(ValueError, match="1 rows belong to no letter"):
        strict.predict(X.head(1).assign(site=7))


@pytest.mark.filterwarnings("ignore:predicted_class")
def test_answers_as_subgroups_with_a_target_each(people):
    X, y = people
    targets = {"healthy": 0.08, "sick": 0.25}
    goal = RISK | {"target": targets, "group_by": "predicted_class"}
    tuner = ThresholdTuner(model(), **goal, **HALF).fit(X, y)
    assert {group: one.target for group, one in tuner.certificates_.items()} == targets
    decided = tuner.decide(X)
    expected = [tuner.thresholds_[answer] for answer in decided["suggestion"]]
    assert decided["threshold"].tolist() == expected
    restored = AbstentionPolicy.from_json(tuner.policy_.to_json())
    assert restored.decide(tuner.raw_scores(X)).equals(decided.reset_index(drop=True))


@pytest.mark.filterwarnings("ignore:site", "ignore:cwsa", "ignore:min_coverage")
def test_grouped_tuners_are_scikit_learn_estimators(people):
    X, y = people
    base = SelectiveClassifier(model(), calibration="platt", cv=3)
    tuner = ThresholdTuner(base, group_by=["site"], **HALF, **RISK).fit(X, y)
    again = pickle.loads(pickle.dumps(tuner))
    assert again.predict(X).tolist() == tuner.predict(X).tolist()
    decided = tuner.decide(X)
    loaded = AbstentionPolicy.from_json(tuner.policy_.to_json())
    assert loaded.decide(tuner.raw_scores(X), subgroups=X["site"]).equals(decided)
    accuracy = get_scorer("selective_accuracy")(tuner, X, y)
    kept = decided["accepted"].to_numpy()
    assert accuracy == pytest.approx(np.mean(decided["suggestion"][kept] == y[kept]))
    metric = ThresholdTuner(make_pipeline(StandardScaler(), model()), group_by="site").fit(X, y)
    assert metric.certificates_ == {0: None, 1: None, 2: None}


@refusals({
    "group_by": [{"group_by": bad} for bad in ("nowhere", [], np.array(["site"]), lambda _: None,
                                               lambda _: ["a"])],
    "target": [{"group_by": "site", "target": bad} for bad in ({}, {0: 0.1}, {0: 2.0})]
              + [{"target": {0: 0.1}}],
})  # fmt: skip
def test_bad_subgroups_are_named_before_anything_is_trained(people, argument, call):
    late = call.get("target") == {0: 0.1} and "group_by" in call  # which subgroups there are
    tuner = ThresholdTuner(GaussianNB() if late else Untouched(), **(RISK | call))
    check_refused(argument, tuner.fit, *people)
    assert not hasattr(tuner, "policy_")


#: Functions whose subgroup of a row depends on the other rows, and what is said of them.
TOGETHER = {
    "median": (lambda X: X["x"] > X["x"].median(), "looks at rows together"),
    "top": (lambda X: X["x"] > X["x"].quantile(0.999), "looks at rows together"),
    "rank": (lambda X: X["x"].rank(pct=True).round(1), "looks at rows together"),
    "qcut": (lambda X: pd.qcut(X["x"], 4, labels=False), "fails on row .* alone .ValueError.*Bin"),
    "codes": (lambda X: X["kind"].astype(str).astype("category").cat.codes, "looks at rows"),
    "position": (lambda X: np.arange(len(X)) % 2, "looks at rows together"),
    "before": (lambda X: X["x"].diff() > 0, "looks at rows together"),
    "squeezed": (lambda X: np.squeeze(X[["site"]].to_numpy()), "fails on row .* alone"),
    "columns": (lambda X: X[["site"]].assign(high=X["x"] > X["x"].mean()), "looks at rows"),
    "dummies": (lambda X: pd.get_dummies(X["site"]), "fails on row .* alone .*1 columns there"),
}
ALONE = {
    "cut-off": lambda X: X["x"] > 0.5,
    "fixed bins": lambda X: pd.cut(X["x"], [-99, 0, 99]).astype(str),
    "known codes": lambda X: X["kind"].cat.codes,
    "missing": lambda X: X["kind"],
    "whole numbers beside missing ones": lambda X: X["site"].where(X["x"] > -2),
    "columns": lambda X: X[["site"]].assign(high=X["x"] > 0),
    "text": lambda X: [f"site {site}" for site in X["site"]],
}


@pytest.fixture
def kinds(people):
    X, y = people
    kind = pd.Categorical(np.array(["u", "v", None], dtype=object)[X["site"]])
    return X.head(600).assign(kind=kind[:600]), y[:600]


@pytest.mark.parametrize("name", TOGETHER)
def test_a_function_that_looks_at_rows_together_is_refused(name, kinds):
    group_by, message = TOGETHER[name]
    with pytest.raises(ValueError, match=rf"group_by: the function {message}.*from that row alone"):
        ThresholdTuner(Untouched(), group_by=group_by, **RISK, cv=5).fit(*kinds)


@pytest.mark.filterwarnings("ignore:subgroup")
@pytest.mark.parametrize("name", ALONE)
def test_a_function_of_single_rows_is_taken(name, kinds):
    X, y = kinds
    only_numbers = make_column_transformer(("passthrough", ["x", "z"]))
    classifier = make_pipeline(only_numbers, GaussianNB())
    tuner = ThresholdTuner(classifier, objective="coverage", target=0.5, group_by=ALONE[name], cv=5)
    tuner.fit(X, y)
    one_by_one = [tuner.accepts(X.iloc[[row]])[0] for row in range(0, 600, 100)]
    assert one_by_one == tuner.accepts(X)[::100].tolist()


def test_functions_read_lists_arrays_and_sparse_rows(people):
    lengths = lambda texts: [len(text) for text in texts]  # noqa: E731
    sign = lambda X: np.asarray(X)[:, 0] > 0  # noqa: E731
    two = np.array([[1.0], [-1.0]])
    table = sparse.csr_matrix(people[0].to_numpy())
    for group_by, X in [
        (lengths, ["a", "bb", "ccc"] * 5), (sign, two), (sign, pl.DataFrame(two)),
        (lambda X: X[:, [2]].toarray().ravel(), table),
    ]:  # fmt: skip
        by = Subgroups(group_by)
        check_decided_by_row(by, X, find_subgroups(by, X))
    with pytest.raises(ValueError, match="Pass columns of a dense X, a function of X"):
        find_subgroups(Subgroups(2), table)


@pytest.mark.filterwarnings("ignore:REFUSED")
@pytest.mark.parametrize(("unseen", "later"), [("abstain", "deferred"), ("raise", "refused")])
def test_rows_of_no_subgroup_are_counted_at_fit(unseen, later, people):
    X, y = people
    site = X["site"].astype(object).where(X.index >= 24)
    classifier = make_pipeline(make_column_transformer(("passthrough", ["x", "z"])), model())
    tuner = ThresholdTuner(
        FrozenEstimator(classifier.fit(X, y)), group_by=Subgroups("where", unseen=unseen), **RISK
    )
    with pytest.warns(UserWarning, match=rf"24 of 4500 rows have no where\..* will be {later}"):
        tuner.fit(X.assign(where=site), y)


# Costs -----------------------------------------------------------------------------------------


def test_the_cheapest_answer_from_the_estimator(people):
    X, y = people
    selective = SelectiveClassifier(model(), decision="min_cost", cost_matrix=COSTS).fit(X, y)
    p = selective.predict_proba(X)[:, 1]
    assert (selective.predict(X) == "sick").tolist() == (10 * p > 1 - p).tolist()
    assert selective.predict_confidence(X) == pytest.approx(1 - np.minimum(10 * p, 1 - p) / 10)
    table = pd.DataFrame(COSTS, ["healthy", "sick"], ["healthy", "sick"]).iloc[::-1, ::-1]
    named = clone(selective).set_params(cost_matrix=table).fit(X, y)
    assert named.predict(X).tolist() == selective.predict(X).tolist()


def test_a_cost_target_is_kept_in_its_units(people):
    X, y = people
    base = SelectiveClassifier(model(), decision="min_cost", cost_matrix=COSTS)
    tuner = ThresholdTuner(base, objective="risk", target=0.3, **HALF).fit(X, y)
    assert tuner.certificate_.is_certified
    assert "cost at most 0.3 each on average" in unwrap(str(tuner.certificate_))
    decided = tuner.decide(X)
    kept, answer = decided["accepted"].to_numpy(), decided["suggestion"].to_numpy()
    cost = np.where(answer == y, 0, np.where(y == "sick", 10, 1))
    assert cost[kept].mean() < 0.3 < cost.mean()
    restored = AbstentionPolicy.from_json(tuner.policy_.to_json())
    assert restored.decide(tuner.raw_scores(X)).equals(decided)


@pytest.mark.filterwarnings("ignore:Abstaining")
@pytest.mark.parametrize("decision", ["argmax", "min_cost"])
def test_folds_that_lack_a_class_keep_the_costs_apart(rng, decision):
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], [29, 30, 1])
    costs = {"decision": decision, "cost_matrix": [[0, 1, 2], [4, 0, 1], [9, 9, 0]]}
    halves = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    order = np.r_[0:15, 29:44, 15:29, 44:60]  # the last class in one half only
    base = SelectiveClassifier(GaussianNB(var_smoothing=1.0), **costs)
    tuner = ThresholdTuner(base, objective="cost", target=0.5, cv=halves).fit(X[order], y[order])
    assert tuner.classes_.tolist() == [0, 1, 2]
    assert tuner.curve_.n_rows == 60
    assert tuner.curve_.thresholds.max() <= 1
    first, rest = np.arange(10, 35), np.r_[0:10, 35:60]
    one = [(np.arange(10), first), (first, rest)]  # the first trains on one class
    tuner.set_params(estimator__estimator=DummyClassifier(strategy="prior"), cv=one)
    with pytest.warns(UserWarning, match="6 of 60 rows .*; they count as wrong answers"):
        assert tuner.fit(X, y).curve_.n_rows == 60


# Own answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", [None, "platt"])
@pytest.mark.parametrize("wrap", ["fixed", "tuned"])
def test_a_cut_off_inside_is_honoured(people, wrap, calibration):
    X, y = people
    inner = FixedThresholdClassifier(model(), threshold=0.2, pos_label="sick")
    if wrap == "tuned":
        inner = TunedThresholdClassifierCV(model(), scoring="balanced_accuracy", thresholds=5, cv=2)
    with pytest.raises(ValueError, match="Choose decision='estimator' to keep its own answers"):
        SelectiveClassifier(inner).fit(X, y)
    selective = SelectiveClassifier(inner, decision="estimator", calibration=calibration).fit(X, y)
    own = selective.estimator_.predict(X)
    assert selective.predict(X).tolist() == own.tolist()
    p = selective.predict_proba(X)
    chosen = np.where(own == "sick", p[:, 1], p[:, 0])
    assert selective.predict_confidence(X).tolist() == chosen.tolist()
    tuner = ThresholdTuner(clone(selective), objective="risk", target=0.15, **HALF).fit(X, y)
    decided = tuner.decide(X)
    own = tuner.estimator_.estimator_.predict(X)
    assert decided["suggestion"].tolist() == own.tolist()
    assert tuner.certificate_.is_certified
    restored = AbstentionPolicy.from_json(tuner.policy_.to_json())
    assert restored.decide(tuner.raw_scores(X), y_pred=own).equals(decided)


def test_weights_of_a_fixed_classifier_may_be_importance_weights(people, rng):
    X, y = people
    fitted = FrozenEstimator(model().fit(X[:1000], y[:1000]))
    X, y, weight = X[1000:], y[1000:], rng.uniform(0.5, 1.0, 3500)
    tuner = ThresholdTuner(fitted, objective=Risk(0.2, largest_weight=1.0), cv=5)
    tuner.fit(X, y, sample_weight=weight)
    assert tuner.certificate_.is_certified
    accuracy = selective_accuracy_score(
        y, tuner.predict_proba(X), labels=tuner.classes_, threshold=tuner.threshold_,
        sample_weight=weight,
    )  # fmt: skip
    assert tuner.selection_.risk == pytest.approx(1 - accuracy)
    coverage = np.average(tuner.accepts(X), weights=weight)
    assert tuner.certificate_.coverage == pytest.approx(coverage)
    with pytest.raises(ValueError, match="largest_weight= if they are importance weights"):
        tuner.set_params(objective__largest_weight=None).fit(X, y, sample_weight=weight)
