"""LearnedConfidence: what it learns, when it is used, where it can go."""

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import ensemble
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skselect import (
    AbstentionPolicy,
    LearnedConfidence,
    PrecomputedClassifier,
    Predictions,
    SelectiveClassifier,
    ThresholdTuner,
    certify,
    select_threshold,
    selective_report,
)
from skselect._lib.files import digest_json
from skselect._lib.notebook import unwrap
from skselect.calibration._scopes import ClassCalibration
from skselect.extras.learned import default_auxiliary
from skselect.metrics import augrc_score
from skselect.predictions.confidence import LearnedScore
from skselect.predictions.decisions import DecisionRule
from tests.common import check_schema
from tests.policy.test_standalone import gate_of
from tests.refusals import check_refused, refusals

TREE = DecisionTreeClassifier(max_depth=4, random_state=0)
ANIMALS = np.array(["cat", "dog", "emu"])


def learn(**options):
    return LearnedConfidence(**{"auxiliary": {"tree": TREE}, "guard": False} | options)


@pytest.fixture(scope="module")
def data():
    return make_classification(600, 8, n_informative=5, n_classes=3, flip_y=0.1, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    X, y = data
    model = SelectiveClassifier(GaussianNB(), calibration="temperature", confidence=learn())
    return model.fit(X[:400], y[:400])


# What is learnt ---------------------------------------------------------------------------------


def logit(p):
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.log(p / (1 - p))


def brute_features(proba, auxiliary_model):
    answer = proba.argmax(axis=1)
    row = np.arange(len(proba))
    first, second = -np.sort(-proba, axis=1)[:, :2].T
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(proba > 0, proba * np.log(proba), 0)
    entropy = -terms.sum(axis=1) / np.log(proba.shape[1])
    lead = np.log(np.clip(first, 1e-6, 1 - 1e-6)) - np.log(np.clip(second, 1e-6, 1 - 1e-6))
    return np.column_stack([logit(first), lead, entropy, logit(auxiliary_model[row, answer])])


@pytest.mark.parametrize("calibration", [None, "temperature"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_confidence_is_the_logistic_regression_of_its_definition(
    calibration, n_classes, weighted, rng
):
    X, y = make_classification(
        500, 8, n_informative=5, n_classes=n_classes, flip_y=0.2, random_state=1
    )
    X, later, y = X[:400], X[400:], y[:400]
    weight = rng.integers(1, 4, 400) if weighted else None
    parts = list(StratifiedKFold(4).split(X, y))
    model = SelectiveClassifier(
        GaussianNB(), calibration=calibration, confidence=learn(), cv=parts
    ).fit(X, y, weight)
    inside, proba, maps = {}, {}, {"base": calibration, "tree": "temperature"}
    for name, estimator in {"base": GaussianNB(), "tree": TREE}.items():
        inside[name] = cross_val_predict(
            estimator, X, y, cv=parts, method="predict_proba",
            params={} if weight is None else {"sample_weight": weight},
        )  # fmt: skip
        fitted = clone(estimator).fit(X, y, sample_weight=weight)
        proba[name] = fitted.predict_proba(later)
        if maps[name] is not None:
            calibrated = ClassCalibration.fit(
                maps[name], "predict_proba", inside[name], y, n_classes, weight
            )
            inside[name] = calibrated.predict_proba(inside[name])
            proba[name] = calibrated.predict_proba(proba[name])
    table = brute_features(inside["base"], inside["tree"])
    right = inside["base"].argmax(axis=1) == y
    scaler = StandardScaler().fit(table, sample_weight=weight)
    line = LogisticRegression(C=0.05).fit(scaler.transform(table), right, weight)
    new = scaler.transform(brute_features(proba["base"], proba["tree"]))
    expected = line.predict_proba(new)[:, 1]
    np.testing.assert_allclose(model.predict_confidence(later), expected, rtol=0, atol=2e-4)
    np.testing.assert_allclose(model.predict_proba(later), proba["base"])
    assert model.decide(later)["suggestion"].tolist() == proba["base"].argmax(axis=1).tolist()


def test_the_report_compares_areas_out_of_fold(data):
    X, y = data
    parts = list(StratifiedKFold(5).split(X, y))
    report = SelectiveClassifier(GaussianNB(), confidence=learn(), cv=parts).fit(X, y)
    report = report.confidence_.report_
    proba, auxiliary = (
        cross_val_predict(model, X, y, cv=parts, method="predict_proba")
        for model in (GaussianNB(), TREE)
    )
    maps = ClassCalibration.fit("temperature", "predict_proba", auxiliary, y, 3)
    table = brute_features(proba, maps.predict_proba(auxiliary))
    right = proba.argmax(axis=1) == y
    crossed = np.empty(len(y))
    for train, test in parts:
        scaler = StandardScaler().fit(table[train])
        line = LogisticRegression(C=0.05).fit(scaler.transform(table[train]), right[train])
        crossed[test] = line.predict_proba(scaler.transform(table[test]))[:, 1]
    assert report.augrc_before == pytest.approx(augrc_score(y, proba))
    assert report.augrc_after == pytest.approx(augrc_score(y, proba, confidence=crossed), rel=1e-3)
    assert (report.n, report.n_errors) == (len(y), int(np.sum(~right)))
    assert list(report.coefficients) == ["intercept", "logit", "lead", "entropy", "tree"]
    assert (report.z > 0) == (report.augrc_after < report.augrc_before)
    assert str(report).startswith("USED: out of fold AUGRC ")
    assert "Log-odds of being right: " in report._repr_html_()


class Noise(ClassifierMixin, BaseEstimator):
    """Says nothing about the rows."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.random.default_rng(len(X)).dirichlet(np.ones(len(self.classes_)), len(X))

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def test_the_guard_keeps_the_plain_confidence_where_nothing_is_gained(data):
    X, y = data
    plain = SelectiveClassifier(GaussianNB(), calibration="temperature", random_state=0)
    plain.fit(X, y)
    noise = LearnedConfidence(auxiliary=[Noise()], features=["auxiliary"])
    model = clone(plain).set_params(confidence=noise)
    report = model.fit(X, y).confidence_.report_
    assert not report.used
    assert report.z <= 1
    assert str(report).startswith("NOT USED: out of fold AUGRC rises")
    assert model.confidence_.score_ is None
    assert model.confidence_.auxiliary_ == model.raw_auxiliary(X) == {}
    pd.testing.assert_frame_equal(model.decide(X), plain.decide(X))
    assert model.policy_.confidence == "max_proba"
    unguarded = clone(model).set_params(confidence__guard=False).fit(X, y)
    assert unguarded.confidence_.report_.used
    assert unguarded.confidence_.report_.z == report.z


@pytest.mark.parametrize(("n_errors", "words"), [(19, "19 of 300 out-of"), (0, "0 of 281 out-of")])
def test_the_guard_asks_for_twenty_errors(n_errors, words, rng):
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["x", "z"])
    base = FrozenEstimator(LogisticRegression().fit(X, X["x"] > 0))
    y = base.predict(X)
    y[:19] = ~y[:19]
    X, y = X[19 - n_errors :], y[19 - n_errors :]
    asked = learn(guard=True, features=["proba", "x"])
    model = SelectiveClassifier(base, confidence=asked).fit(X, y)
    assert model.raw_auxiliary(X) == {}
    found = model.confidence_
    assert found.report_.n_errors == n_errors
    assert str(found.report_).startswith(f"NOT USED: {words}-fold answers are wrong")
    assert found.score_ is None
    if n_errors == 0:
        found = SelectiveClassifier(base, confidence=learn()).fit(X, y).confidence_
        assert "nothing can be learnt" in str(found.report_)
        one = FrozenEstimator(GaussianNB().fit(X, np.zeros(281)))
        model = SelectiveClassifier(one, confidence=learn()).fit(X, np.zeros(281))
        assert model.predict_confidence(X).tolist() == [1.0] * 281


# Where it can go --------------------------------------------------------------------------------


def test_the_policy_decides_as_the_estimator_does(data, fitted):
    X = data[0][400:]
    raw, auxiliary = fitted.raw_scores(X), fitted.raw_auxiliary(X)
    policy = replace(fitted.policy_, threshold=0.7)
    table = copy.copy(fitted).set_params(threshold=0.7).decide(X)
    assert 0 < table["accepted"].mean() < 1
    assert list(auxiliary) == ["tree"]
    loaded = AbstentionPolicy.from_json(policy.to_json())
    assert isinstance(loaded.confidence, LearnedScore)
    named = {"tree": pd.DataFrame(auxiliary["tree"][:, ::-1], columns=[2, 1, 0])}
    for one, given in ((policy, auxiliary), (loaded, auxiliary), (loaded, named)):
        pd.testing.assert_frame_equal(one.decide(raw, auxiliary=given), table)
    found = gate_of(loaded).decide(raw, auxiliary=auxiliary)
    assert found["confidence"].tobytes() == table["confidence"].to_numpy().tobytes()
    check_schema(policy.to_json())
    stored = json.loads(policy.to_json())["confidence"]
    assert stored["kind"] == "learned"
    assert list(stored["coefficients"]) == ["logit", "lead", "entropy", "tree"]
    report = fitted.confidence_.report_.coefficients
    assert stored["coefficients"] | {"intercept": stored["intercept"]} == report


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "guessed"}, {"intercept": None}, {"coefficients": {}},
        {"coefficients": {"lead": "much"}}, {"auxiliary": {"tree": None}},
        {"auxiliary": {"other": {}}}, "rename",
    ],
    ids=str,
)  # fmt: skip
def test_a_damaged_file_is_refused(fitted, change):
    stored = json.loads(fitted.policy_.to_json())
    auxiliary = stored["confidence"]["auxiliary"]
    stored["confidence"] |= (
        {"auxiliary": {"logit": auxiliary["tree"]}} if change == "rename" else change
    )
    stored["digest"] = digest_json(stored)
    message = "do not fit together" if change == "rename" else "damaged"
    with pytest.raises(ValueError, match=message):
        AbstentionPolicy.from_json(json.dumps(stored))


def test_a_classifier_of_your_own_stays_in_python(data):
    X, y = data
    own = learn(estimator=make_pipeline(StandardScaler(), GaussianNB()))
    model = SelectiveClassifier(GaussianNB(), confidence=own).fit(X, y)
    confidence = model.predict_confidence(X)
    assert np.all((confidence >= 0) & (confidence <= 1))
    assert model.confidence_.report_.coefficients == {}
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict_confidence(X), confidence
    )
    for save in (model.policy_.to_json, model.policy_.to_python):
        with pytest.raises(
            ValueError, match="Pipeline that LearnedConfidence fitted cannot be saved"
        ):
            save()


def test_certificates_on_fresh_rows_are_exact_and_others_estimates(data):
    X, y = data
    model = SelectiveClassifier(GaussianNB(), calibration="temperature", confidence=learn())
    ready = SelectiveClassifier(FrozenEstimator(GaussianNB().fit(X, y)), confidence=learn())
    frozen = FrozenEstimator(clone(model).fit(X[:300], y[:300]))
    for base, options, rows, certified in [
        (model, {}, slice(None), True), (frozen, {}, slice(300, None), True),
        (model, {"cv": 3}, slice(None), False),
        (ready, {"cv": 3}, slice(None), False),  # these rows taught the confidence
    ]:  # fmt: skip
        tuner = ThresholdTuner(base, objective="risk", target=0.3, random_state=0, **options)
        assert tuner.fit(X[rows], y[rows]).certificate_.is_certified == certified
        table = tuner.policy_.decide(tuner.raw_scores(X), auxiliary=tuner.raw_auxiliary(X))
        pd.testing.assert_frame_equal(tuner.decide(X), table)


def test_rows_that_a_model_inside_has_seen_certify_nothing(data):
    X, y = data
    seen = FrozenEstimator(SelectiveClassifier(TREE).fit(X[:300], y[:300]))
    base = FrozenEstimator(GaussianNB().fit(X[400:], y[400:]))
    pair = {"cv": [(np.arange(400, 600), np.arange(400))]}
    also = "also trained the classifier or an auxiliary model"

    def certify_with(model, rows=slice(None), **options):
        tuner = ThresholdTuner(model, "risk", target=0.45, random_state=0, **options)
        return tuner.fit(X[rows], y[rows]).certificate_

    def with_auxiliary(base, **options):
        return SelectiveClassifier(base, confidence=learn(**options))

    model = with_auxiliary(GaussianNB(), auxiliary=[seen, TREE])
    kept = FrozenEstimator(clone(model).fit(X[400:], y[400:]))
    learnt = FrozenEstimator(with_auxiliary(base).fit(X[100:400], y[100:400]))
    for one, rows, options, message in [
        (kept, slice(None), pair, "300 of 400 recognisable rows"),
        (model, slice(None), pair, "300 of 400 recognisable rows"),
        (
            with_auxiliary(base, auxiliary={"seen": seen}),
            slice(None),
            pair,
            "300 of 400 recognisable rows",
        ),
        (kept, slice(300), {}, also),
        (model, slice(300), {}, also),
        (learnt, slice(100, 400), {}, "300 of 300 recognisable rows"),
    ]:
        with pytest.warns(UserWarning, match=message):
            certificate = certify_with(one, rows, **options)
        assert not certificate.is_certified
        assert also in unwrap(str(certificate))
    assert "also trained" not in certify_with(kept, slice(300, 400)).details()
    for harmless in [
        {"auxiliary": {"seen": seen}, "features": ["proba"]},  # nobody asks it
        {"auxiliary": {"tree": seen.estimator}},  # not frozen: fitted to other rows
        {"auxiliary": {"tree": FrozenEstimator(clone(TREE).fit(X, y))}},  # keeps no record
    ]:
        assert certify_with(with_auxiliary(GaussianNB(), **harmless), **pair).is_certified


def test_a_decided_table_can_be_certified_and_reported(data, fitted):
    X, y = data
    policy = AbstentionPolicy(**vars(fitted.policy_) | {"threshold": 0.8})
    table = policy.decide(fitted.raw_scores(X[400:]), auxiliary=fitted.raw_auxiliary(X[400:]))
    decided = Predictions.from_labels(
        y[400:], table["suggestion"].to_numpy(int), table["confidence"]
    )
    certificate = certify(policy, decided)
    assert certificate.n_accepted == table["accepted"].sum()
    selective_report(None, decided, policy=policy)
    raw = Predictions.from_proba(y[400:], fitted.raw_scores(X[400:]))
    with pytest.raises(ValueError, match=r"auxiliary must be a dict .*Predictions.from_labels"):
        certify(policy, raw)


def test_it_is_a_parameter_like_any_other(data):
    X, y = data
    model = SelectiveClassifier(GaussianNB(), confidence=learn())
    for grid in ({"confidence": ["max_proba", learn()]}, {"confidence__guard": [True, False]}):
        search = GridSearchCV(model, grid, scoring="neg_augrc", cv=2).fit(X, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    fitted = clone(model).fit(X, y)
    given, used = fitted.confidence.auxiliary["tree"], fitted.confidence_.auxiliary_["tree"]
    assert given is not used.estimator
    again = pickle.loads(pickle.dumps(fitted)).predict_confidence(X)
    np.testing.assert_array_equal(again, fitted.predict_confidence(X))
    assert fitted.set_params(confidence="margin").policy_.confidence == "margin"
    with pytest.raises(ValueError, match="fit has learnt with; call fit again"):
        fitted.set_params(confidence=learn()).predict_confidence(X)


# What auxiliary models read -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed(data):
    X, y = data
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X[:, :3].copy(), columns=["a", "b", "c"])
    frame.loc[rng.random(len(y)) < 0.1, "a"] = np.nan
    frame["empty"] = np.nan
    frame["count"] = pd.array(rng.integers(0, 5, len(y)), dtype="Int64")
    frame.loc[::7, "count"] = pd.NA
    frame["colour"] = pd.Categorical(np.where(X[:, 3] > 0, "red", "blue"))
    frame.loc[::5, "colour"] = None
    frame["kind"] = np.where(X[:, 4] > 0, "x", "y")
    frame["odd"] = pd.Series([1, "one", None, 2.5] * (len(y) // 4), dtype=object)
    frame["flag"] = X[:, 5] > 0
    frame["code"] = np.array([f"id {i}" for i in range(len(y))])
    return frame, ANIMALS[y]


def only_numbers(**options):
    return make_pipeline(
        make_column_transformer(("passthrough", ["a", "b", "c"])),
        ensemble.HistGradientBoostingClassifier(max_iter=15, random_state=0),
    )


def test_the_default_auxiliary_read_categories_and_missing_values(mixed):
    X, y = mixed
    model = SelectiveClassifier(
        only_numbers(), calibration="temperature", confidence=LearnedConfidence(guard=False), cv=2
    ).fit(X[:450], y[:450])
    assert list(model.confidence_.auxiliary_) == ["forest", "linear"]
    assert model.predict_confidence(X[450:]).shape == (150,)
    one = X.iloc[[500]].copy()
    one["colour"], one["kind"], one["a"], one["count"] = "green", None, None, None
    assert np.isfinite(model.predict_confidence(one)).all()
    # Whichever values of a mixed column come together, each means what it meant in training.
    whole = model.raw_auxiliary(X)
    for together in (X["odd"] == 1, X["odd"].isin([1, 2.5])):
        for name, proba in model.raw_auxiliary(X[together]).items():
            np.testing.assert_allclose(proba, whole[name][together], rtol=1e-12)


def test_the_default_auxiliary_read_tables_of_every_kind(data):
    y = data[1][:200]
    kinds = (np.asarray, lambda X: np.asarray(X, dtype=object), pl.DataFrame, sparse.csr_array,
             pd.DataFrame)  # fmt: skip
    for X in (kind(data[0][:200]) for kind in kinds):
        auxiliary = default_auxiliary(GaussianNB(), X) | default_auxiliary(LogisticRegression(), X)
        assert list(auxiliary) == ["forest", "linear", "boosting"]
        for name, model in auxiliary.items():
            if name != "linear":  # two trees read a table as two hundred do
                (size,) = {"n_estimators", "max_iter"} & set(model[-1].get_params())
                model[-1].set_params(**{size: 2})
            assert model.fit(X, y).predict_proba(X).shape == (200, 3)
    with pytest.raises(ValueError, match=r"the default ones read tables.*pass auxiliary="):
        default_auxiliary(GaussianNB(), ["a text", "another"])


@pytest.mark.parametrize(
    ("base", "names"),
    [
        (GaussianNB(), ["forest", "linear"]),
        (ensemble.RandomForestClassifier(), ["linear", "boosting"]),
        (make_pipeline(StandardScaler(), ensemble.ExtraTreesClassifier()), ["linear", "boosting"]),
        (SGDClassifier(loss="log_loss"), ["forest", "boosting"]),
        (GridSearchCV(LogisticRegression(), {}), ["forest", "boosting"]),
        (CalibratedClassifierCV(ensemble.RandomForestClassifier()), ["linear", "boosting"]),
    ],
)
def test_the_default_auxiliary_are_of_other_kinds(base, names):
    assert list(default_auxiliary(base, np.zeros((3, 2)))) == names


NUMBERS = [f"x{k}" for k in range(8)]


def on_numbers():
    return make_pipeline(make_column_transformer(("passthrough", NUMBERS)), GaussianNB())


def test_tables_of_other_models_are_auxiliary(data):
    X, y = data
    rng = np.random.default_rng(1)
    judge = 0.8 * np.eye(3)[y] + 0.2 / 3
    judge[rng.random(len(y)) < 0.5] = 1 / 3
    table = pd.DataFrame(X, columns=NUMBERS)
    table[["judge_0", "judge_1", "judge_2"]] = judge
    table[["rater_0", "rater_1", "rater_other"]] = rng.dirichlet(np.ones(3), len(y))
    table["rater_2"], table["two_1"] = 0.0, 1 - table["judge_2"]
    raters = ["rater_0", "rater_1", "rater_2", "rater_other"]
    auxiliary = {
        "judge": PrecomputedClassifier([0, 1, 2], columns=["judge_0", "judge_1", "judge_2"]),
        "rater": PrecomputedClassifier([0, 1, 2, 9], columns=raters),
        "two": PrecomputedClassifier([0, 1], columns=["judge_2", "two_1"]),
    }
    learned = LearnedConfidence(auxiliary=auxiliary)
    model = SelectiveClassifier(on_numbers(), confidence=learned).fit(table, y)
    assert model.confidence_.report_.used
    found = model.raw_auxiliary(table)
    np.testing.assert_allclose(found["judge"], judge)
    known = table[["rater_0", "rater_1"]].to_numpy()
    expected = np.column_stack([known / known.sum(axis=1, keepdims=True), np.zeros(len(y))])
    np.testing.assert_allclose(found["rater"], expected)
    assert not found["two"][:, 2].any()


def test_columns_are_features(data, rng):
    X, y = data
    table = pd.DataFrame(X, columns=NUMBERS)
    proba = cross_val_predict(on_numbers(), table, y, cv=5, method="predict_proba")
    table["hint"] = (proba.argmax(axis=1) == y) * 1e3 + rng.normal(size=len(y))
    learned = LearnedConfidence(features=["proba", "hint"])
    model = SelectiveClassifier(on_numbers(), confidence=learned).fit(table, y)
    report = model.confidence_.report_
    assert report.used
    assert list(report.coefficients) == ["intercept", "logit", "lead", "entropy", "hint"]
    auxiliary = model.raw_auxiliary(table)
    assert list(auxiliary) == ["hint"]
    found = model.policy_.decide(model.raw_scores(table), auxiliary=auxiliary)
    pd.testing.assert_frame_equal(found, model.decide(table))
    exec(model.policy_.to_python(), gate := {})  # with neither calibration nor auxiliary model
    confidence = gate["decide"](model.raw_scores(table), auxiliary=auxiliary)["confidence"]
    np.testing.assert_array_equal(confidence, found["confidence"])
    with pytest.raises(ValueError, match="'hint' has 600 missing or infinite values"):
        model.decide(table.assign(hint=np.nan))
    X = table.assign(intercept=1.0)
    model.set_params(confidence=learn(features=("proba", "intercept")))
    with pytest.raises(ValueError, match=r"same name. \['intercept', 'logit', .*are taken"):
        model.fit(X, y)


@pytest.mark.filterwarnings("ignore:cwsa_plus is best")
def test_folds_and_rows_may_lack_classes(data):
    X, y = data
    rare = np.where(np.arange(600) < 6, 2, np.minimum(y, 1))
    model = SelectiveClassifier(GaussianNB(), calibration="temperature", confidence=learn(), cv=3)
    tuner = ThresholdTuner(model, objective="cwsa_plus", cv=3).fit(X, rare)
    assert tuner.decide(X)["confidence"].between(0, 1).all()
    rare[1:6] = 0  # no fold can know the class of its only row
    model.fit(X, rare)
    assert model.raw_auxiliary(X)["tree"].shape == (600, 3)
    assert model.confidence_.report_.n == 599
    plain = SelectiveClassifier(GaussianNB(), confidence=learn())
    halves = [(np.arange(300), np.arange(300, 600)), (np.arange(300, 600), np.arange(300))]
    tuner = ThresholdTuner(plain, objective="risk", target=0.4, cv=halves)
    found = tuner.fit(X, rare).predict_confidence(X)
    assert np.all((found > 0) & (found < 1))


class Recorder(GaussianNB):
    """Remembers the weights of every fit."""

    seen = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        Recorder.seen.append(None if sample_weight is None else np.array(sample_weight))
        return super().fit(X, y, sample_weight)


class Deaf(DecisionTreeClassifier):
    def fit(self, X, y):
        return super().fit(X, y)


def test_weights_reach_the_auxiliary_that_take_them(data, rng):
    X, y = data
    weight = rng.integers(1, 5, len(y)).astype(float)
    Recorder.seen.clear()
    auxiliary = [make_pipeline(StandardScaler(), Recorder()), Deaf(max_depth=3), Deaf()]
    model = SelectiveClassifier(LogisticRegression(), confidence=learn(auxiliary=auxiliary), cv=3)
    model.fit(X, y, weight)
    assert [len(seen) for seen in Recorder.seen] == [400, 400, 400, 600]
    assert list(model.raw_auxiliary(X)) == ["recorder", "deaf_1", "deaf_2"]
    np.testing.assert_array_equal(Recorder.seen[-1], weight)


def test_rows_of_weight_0_do_not_count_for_the_guard_and_groups_do(data, rng):
    X, y = data
    model = SelectiveClassifier(GaussianNB(), confidence=learn(), random_state=0)
    alone = model.fit(X, y).confidence_.report_
    half = clone(model).set_params(cv=[(slice(0, 300), slice(300, 600))]).fit(X, y)
    report = half.confidence_.report_  # for the guard one fold is divided
    assert (report.n, report.augrc_after < report.augrc_before) == (300, True)
    groups = rng.integers(0, 30, len(y))
    assert model.fit(X, y, groups=groups).confidence_.report_.z != alone.z
    weight = (np.arange(600) % 4 > 0).astype(float)
    assert model.fit(X, y, sample_weight=weight).confidence_.report_.n == 450
    own = clone(model).set_params(decision="estimator").fit(X, y)
    np.testing.assert_allclose(own.predict_confidence(X), model.fit(X, y).predict_confidence(X))


MISSPELT = PrecomputedClassifier(["Cat", "Dog", "Emu"], columns=[0, 1, 2])


@refusals({
    "features": [{"features": bad} for bad in ("proba", [], 0.5, ["proba", "age"])],
    "auxiliary": [
        {"auxiliary": bad} for bad in (
            {1: TREE}, TREE, [], [DecisionTreeClassifier], [LinearSVC()], {"lead": TREE},
            {"judge": MISSPELT}, {"judge": PrecomputedClassifier([0, 1, 2], columns=[0, 1, 2])},
        )
    ],
})  # fmt: skip
def test_bad_parameters_are_clear_errors(data, argument, call):
    X, y = data
    model = SelectiveClassifier(GaussianNB(), confidence=learn(**call))
    check_refused(argument, model.fit, X, ANIMALS[y])


def test_an_auxiliary_of_other_labels_is_told_which(data):
    X, y = data
    other = PrecomputedClassifier(["cat", "dog", "Emu"], columns=[0, 1, 2])
    model = SelectiveClassifier(GaussianNB(), confidence=learn(auxiliary=[other]))
    with pytest.raises(ValueError, match=r"\['Emu'\], and lacks \['emu'\]"):
        model.fit(X, ANIMALS[y])


@refusals({
    "confidence": [
        {"decision": "min_cost", "cost_matrix": np.ones((3, 3))},
        {"calibration": "platt", "calibration_scope": "confidence"},
        {"confidence": LearnedConfidence},
    ],
    "threshold": [{"threshold": 1.5}],
})  # fmt: skip
def test_what_contradicts_it_is_refused(data, argument, call):
    model = SelectiveClassifier(GaussianNB(), **({"confidence": learn()} | call))
    check_refused(argument, model.fit, *data)


def test_a_table_and_a_policy_of_costs_refuse_it(fitted):
    rows = Predictions.from_proba([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    goal = {"objective": "risk", "target": 0.5, "confidence": LearnedConfidence()}
    check_refused("confidence", lambda: select_threshold(rows, **goal))
    costly = DecisionRule("min_cost", 1.0 - np.eye(3))
    check_refused("decision='min_cost'", lambda: replace(fitted.policy_, rule=costly))
