"""SelectiveClassifier: what it answers, how it is fitted, what it refuses."""

import copy
import pickle
from collections import deque

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, RidgeClassifier
from sklearn.metrics import get_scorer as sklearn_scorer, roc_auc_score
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.utils.validation import check_is_fitted

from skselect import AbstentionPolicy, RiskCoverageDisplay, SelectiveClassifier, ThresholdTuner
from skselect._lib.checks.options import check_abstain_label
from skselect.calibration._scopes import ClassCalibration
from skselect.estimators.base import find_records
from skselect.policy.policy import apply_policy, label_decisions
from skselect.policy.seen_rows import hash_rows
from skselect.scoring import get_scorer
from tests.refusals import check_refused, refusals

ON_COVERAGE = {"objective": "coverage", "target": 0.5}


@pytest.fixture(scope="module")
def data():
    return make_classification(300, 6, n_informative=4, n_classes=3, flip_y=0.1, random_state=0)


NAMES = np.array(["ant", "bee", "cat"])
LABELS = {
    "integers": lambda y: y,
    "from one": lambda y: y + 1,
    "from minus one": lambda y: y - 1,
    "floats": lambda y: y.astype(float),
    "strings": lambda y: NAMES[y],
    "objects": lambda y: NAMES.astype(object)[y],
    "list": lambda y: NAMES[y].tolist(),
    "shuffled index": lambda y: pd.Series(y, index=np.random.default_rng(0).permutation(len(y))),
    "categorical": lambda y: pd.Series(NAMES[y]).astype("category"),
    "nullable": lambda y: pd.Series(y, dtype="Int64"),
    "pandas string": lambda y: pd.Series(NAMES[y], dtype="string"),
    "polars": lambda y: pl.Series(NAMES[y].tolist()),
    "column of a frame": lambda y: pd.DataFrame({"y": y})["y"],
}


@pytest.mark.parametrize("calibration", [None, "platt", "isotonic"])
@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind_give_the_same_answers(kind, calibration, data):
    X, y = data
    options = {"threshold": 0.7, "calibration": calibration, "random_state": 0}
    expected = SelectiveClassifier(GaussianNB(), **options).fit(X, y)
    labels = LABELS[kind](y)
    model = SelectiveClassifier(GaussianNB(), **options).fit(X, labels)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    kept, answers, plain = expected.accepts(X), model.predict(X), np.asarray(labels)
    np.testing.assert_array_equal(model.accepts(X), kept)
    assert np.array_equal(answers[kept] == plain[kept], expected.predict(X)[kept] == y[kept])
    label = -2 if kind == "from minus one" else "abstain" if answers.dtype.kind in "UO" else -1
    assert np.all(answers[~kept] == label)
    assert model.score(X, labels) == pytest.approx(np.mean(kept & (expected.predict(X) == y)))


@pytest.mark.parametrize("label", ["auto", -9])
def test_booleans_are_predicted_as_numbers_once_it_can_abstain(label, data):
    X, y = data[0], data[1] > 0
    never = SelectiveClassifier(GaussianNB()).fit(X, y)
    assert never.predict(X).dtype == bool
    model = SelectiveClassifier(GaussianNB(), threshold=0.9, abstain_label=label).fit(X, y)
    accepted, answers, raw = model.accepts(X), model.predict(X), model.raw_scores(X)
    assert answers.dtype == model.predict(X[accepted]).dtype == np.int64
    expected = np.where(accepted, never.predict(X), -1 if label == "auto" else label)
    np.testing.assert_array_equal(answers, expected)
    policy = AbstentionPolicy.from_json(model.policy_.to_json())
    np.testing.assert_array_equal(label_decisions(policy, apply_policy(policy, raw)), answers)
    exec(model.policy_.to_python(), gate := {})
    for labels in (model.decide(X)["label"], policy.decide(raw)["label"]):
        assert labels.dtype == "boolean"
        assert labels.astype(object).where(labels.notna(), None).tolist() == (
            gate["decide"](raw)["label"].tolist()
        )


METHODS = (
    "predict", "predict_proba", "predict_confidence", "accepts", "decide", "raw_scores",
)  # fmt: skip


def test_no_rows_are_refused_in_the_words_of_scikit_learn(data):
    X, y = data
    frozen = SelectiveClassifier(FrozenEstimator(GaussianNB().fit(X, y)), threshold=0.5)
    tuner = ThresholdTuner(GaussianNB(), **ON_COVERAGE, group_by=lambda X: X[:, 0] > 0, cv=5)
    for model in (frozen, tuner.fit(X, y)):
        ask = [getattr(model, method) for method in METHODS]
        for call in (*ask, lambda X, model=model: model.score(X, y[:0])):
            with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\) .*=\(0, 6\)"):
                call(X[:0])


class Untouched(GaussianNB):
    """Must not be fitted."""

    def fit(self, X, y, sample_weight=None):  # pragma: no cover
        pytest.fail("trained before everything was checked")


@pytest.mark.parametrize(
    "labels", [["a", float("nan"), "b"], [0, None, 1], ["a", 1, 2], [True, 2, 1]]
)
def test_labels_are_checked_before_they_are_an_array(labels, data):
    fitted = SelectiveClassifier(GaussianNB()).fit(*data)
    for ask in (SelectiveClassifier(Untouched()).fit, ThresholdTuner(Untouched()).fit,
                fitted.score):  # fmt: skip
        for kind in (list, deque, lambda y: pd.Series(y, dtype=object)):
            check_refused("y", ask, data[0], kind(labels * 100))


@pytest.mark.parametrize(
    ("classes", "label"),
    [
        ([-1, 1], -2), ([-2, -1], -3), ([-1.0, 1.0], -2), (["abstain", "b"], "abstain_"),
        (["abstain", "abstain_"], "abstain__"), (np.array([3, 7], dtype=np.uint8), 8),
        (np.array([-1, 1], dtype=np.int8), -2), ([False, True], -1),
        (np.array([0, 255], dtype=np.uint8), 254), (np.array([254, 255], dtype=np.uint8), 253),
        (np.array([0, 65535], dtype=np.uint16), 65534),
        (np.array([0, 2**64 - 1], dtype=np.uint64), 2**64 - 2),
        (np.array([-128, 127], dtype=np.int8), -1),
        (np.array([-(2**63), 2**63 - 1]), -1),
    ],
)  # fmt: skip
def test_the_abstain_label_is_no_class(classes, label, data):
    y = np.asarray(classes)[np.arange(300) % 2]
    model = SelectiveClassifier(GaussianNB(), threshold=np.inf).fit(data[0], y)
    assert model.predict(data[0]).tolist() == [label] * 300
    policy = AbstentionPolicy.from_json(model.policy_.to_json())
    assert policy.abstain_label == label
    tuner = ThresholdTuner(GaussianNB(), "risk", target=0.01, on_infeasible="abstain")
    with pytest.warns(UserWarning, match="Nothing will be accepted"):
        assert label in tuner.fit(data[0], y).predict(data[0]).tolist()


@pytest.mark.parametrize(
    ("y", "label"),
    [
        ([0, 1], 1), ([-1, 0], -1), (["abstain", "b"], "abstain"), ([False, True], 1),
        ([True, False], 0), ([0, 1], 0.5),
        ([False, True], -0.5), ([0, 1], "none"), ([False, True], None), (["a", "b"], -1),
    ],
)  # fmt: skip
def test_bad_abstain_labels_are_refused_before_training(y, label, data):
    model = SelectiveClassifier(Untouched(), threshold=0.5, abstain_label=label)
    check_refused("abstain_label", model.fit, data[0], np.asarray(y)[np.arange(300) % 2])


def test_any_free_number_of_their_dtype_is_the_abstain_label():
    below_zero = np.arange(-128, 0, dtype=np.int8)
    assert check_abstain_label("auto", below_zero) == 127
    assert check_abstain_label("auto", np.delete(np.arange(256, dtype=np.uint8), 7)) == 7
    for every_number in (np.arange(256, dtype=np.uint8), np.arange(-128, 128, dtype=np.int8)):
        message = check_refused("abstain_label", check_abstain_label, "auto", every_number)
        assert "cast y, for example y.astype('int64')" in message


# X of every kind -----------------------------------------------------------------------------


def test_tables_of_every_kind_give_the_same_answers(data):
    X, y = data
    names = list("abcdef")
    base = make_pipeline(StandardScaler(with_mean=False), LogisticRegression())
    model = SelectiveClassifier(base, calibration="platt", threshold=0.7, random_state=0)
    expected = model.fit(X, y).predict(X)
    for table in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names),
                  sparse.csr_matrix(X), sparse.csr_array(X), X.tolist()):  # fmt: skip
        np.testing.assert_array_equal(clone(model).fit(table, y).predict(table), expected)


def mixed_table(X):
    frame = pd.DataFrame(X.copy(), columns=list("abcdef"))
    frame.loc[::7, "a"] = np.nan
    frame["f"] = pd.Categorical(np.where(frame["f"] > 0, "high", "low"))
    return frame


@pytest.mark.parametrize("calibration", [None, "isotonic", "platt"])
@pytest.mark.parametrize("kind", ["pipeline", "xgboost", "hist"])
def test_categories_and_missing_values_pass_through(kind, calibration, data):
    X, y = mixed_table(data[0]), NAMES[data[1]]
    if kind == "pipeline":
        columns = make_column_transformer((OneHotEncoder(), ["f"]), remainder=SimpleImputer())
        base = make_pipeline(columns, LogisticRegression(max_iter=1000))
    elif kind == "hist":
        base = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    else:
        xgboost = pytest.importorskip("xgboost")
        base = xgboost.XGBClassifier(n_estimators=5, enable_categorical=True, n_jobs=1)
    model = SelectiveClassifier(base, calibration=calibration, threshold=0.6).fit(X, y)
    assert model.feature_names_in_.tolist() == list("abcdef")
    table = model.decide(X.set_index(np.arange(300) + 1000))
    assert table.index[0] == 1000
    assert set(model.predict(X)) <= {*NAMES, "abstain"}


# Calibration ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_calibration_is_out_of_fold_and_the_classifier_sees_all_rows(kind, data):
    X, y = data
    model = SelectiveClassifier(GaussianNB(), calibration=kind, cv=4, random_state=0).fit(X, y)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    scores = cross_val_predict(GaussianNB(), X, y, cv=folds, method="predict_proba")
    expected = ClassCalibration.fit(kind, "predict_proba", scores, y, 3)
    raw = GaussianNB().fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(raw))


@pytest.mark.parametrize("base", [LinearSVC(), RidgeClassifier(), SVC()])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_decision_values_are_enough_with_a_calibration(base, n_classes, data):
    X, y = data[0], np.minimum(data[1], n_classes - 1)
    with pytest.raises(ValueError, match="no predict_proba; choose calibration='temperature'"):
        SelectiveClassifier(base).fit(X, y)
    model = SelectiveClassifier(base, calibration="platt", threshold=0.7).fit(X, y)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.mean(proba.argmax(axis=1) == y) > 0.5
    pd.testing.assert_frame_equal(model.policy_.decide(model.raw_scores(X)), model.decide(X))


# Frozen and fitted ----------------------------------------------------------------------------


def test_frozen_without_calibration_is_complete_without_fit(data):
    X, y = pd.DataFrame(data[0], columns=list("abcdef")), data[1]
    fitted = GaussianNB().fit(X, y)
    model = SelectiveClassifier(FrozenEstimator(fitted), threshold=0.7)
    kept = fitted.predict_proba(X).max(axis=1) >= 0.7
    np.testing.assert_array_equal(model.accepts(X), kept)
    np.testing.assert_array_equal(model.predict(X), np.where(kept, fitted.predict(X), -1))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert get_scorer("coverage")(model, X, y) == kept.mean()
    assert RiskCoverageDisplay.from_estimator(model, X, y).threshold == 0.7
    assert model.fit(X[:10], y[:10]).estimator_.estimator is fitted
    with pytest.raises(NotFittedError, match="fit"):
        SelectiveClassifier(FrozenEstimator(fitted), calibration="platt").predict(X)


def find_overlaps(estimator, X):
    """Compare rows with each record of training rows; None where there is no record."""
    records = find_records(estimator, X)
    return [None if one is None else one[0].overlap(hash_rows(one[1]))[:2] for one in records]


def test_a_second_fit_forgets_the_first(data):
    X, y = data
    model = SelectiveClassifier(GaussianNB()).fit(pd.DataFrame(X, columns=list("abcdef")), y)
    assert hasattr(model, "feature_names_in_")
    assert not hasattr(model.fit(X, y), "feature_names_in_")
    assert find_overlaps(model.fit(X[:100], y[:100]), X) == [(100, 300)]


def test_fitted_but_not_frozen_is_trained_anew_with_a_warning(data):
    X, y = data
    few = GaussianNB().fit(X[:20], y[:20])
    wrapped = SelectiveClassifier(few)
    tuners = (ThresholdTuner(base, cv=3, **ON_COVERAGE) for base in (few, wrapped))
    for model in (wrapped, *tuners):
        with pytest.warns(UserWarning, match="FrozenEstimator"):
            model.fit(X, y)
        expected = GaussianNB().fit(X, y).predict_proba(X)
        np.testing.assert_array_equal(model.predict_proba(X), expected)
    assert wrapped.estimator is few  # left as it was


def cut_off(base, method, at):
    return FixedThresholdClassifier(base, threshold=at, response_method=method)


def test_answers_that_are_not_those_of_the_largest_score_are_refused(data):
    X, y = data[0], data[1] > 0
    tuned = cut_off(GaussianNB(), "predict_proba", 0.2)
    for base in (tuned, cut_off(LinearSVC(), "decision_function", 1.0),
                 DummyClassifier(strategy="stratified")):  # fmt: skip
        with pytest.raises(ValueError, match="predict differs from the class of the largest"):
            SelectiveClassifier(base, calibration="platt").fit(X, y)
    with pytest.raises(ValueError, match="predict differs"):
        SelectiveClassifier(FrozenEstimator(tuned.fit(X, y))).predict(X)
    half = cut_off(GaussianNB(), "predict_proba", 0.5)  # by its type, whatever the rows say
    with pytest.raises(ValueError, match="FixedThresholdClassifier has a cut-off"):
        SelectiveClassifier(half).fit(X, y)
    SelectiveClassifier(FixedThresholdClassifier(GaussianNB())).fit(X, y)
    SelectiveClassifier(KNeighborsClassifier(4)).fit(*data)  # a tie is no moved cut-off
    SelectiveClassifier(RandomForestClassifier(4, random_state=0)).fit(*data)


APART = np.array([[-2.0], [-1.0], [1.0], [2.0]] * 9), np.array([0, 0, 1, 1] * 9)


@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
@pytest.mark.parametrize("kind", [SVC, NuSVC])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model,
        lambda model: make_pipeline(StandardScaler(), model),
        lambda model: GridSearchCV(model, {}, cv=2),
        OneVsRestClassifier,
        lambda model: FrozenEstimator(model.fit(*APART)),
    ],
)
def test_probabilities_that_are_fitted_apart_are_recognised_by_type(wrap, kind):
    # All answers are the most probable classes here.
    X, y = APART
    model = wrap(kind(probability=True, random_state=0))
    message = check_refused("estimator", SelectiveClassifier(model).fit, X, y)
    assert "fits probabilities apart" in message
    check_refused("estimator", ThresholdTuner(model, cv=2).fit, X, y)
    own = SelectiveClassifier(model, decision="estimator").fit(X, y)
    np.testing.assert_array_equal(own.predict(X), y)
    soft = VotingClassifier([("svc", kind(probability=True))], voting="soft")
    SelectiveClassifier(soft).fit(X, y)  # answers by its probabilities


# Answers ---------------------------------------------------------------------------------------


def test_the_threshold_is_compared_and_all_methods_agree(data):
    X, y = data
    model, plain = SelectiveClassifier(GaussianNB()).fit(X, NAMES[y]), GaussianNB().fit(X, NAMES[y])
    proba = plain.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    np.testing.assert_array_equal(model.predict_proba(X), proba)
    np.testing.assert_array_equal(model.predict_log_proba(X), np.log(proba))
    assert model.score(X, NAMES[y]) == plain.score(X, NAMES[y])
    assert model.accepts(X).all()
    confidence = model.predict_confidence(X)
    tie = float(np.median(np.sort(confidence)[:-1]))
    table = model.set_params(threshold=tie).decide(X)
    np.testing.assert_array_equal(table["accepted"], confidence >= tie)
    np.testing.assert_array_equal(table["accepted"], model.accepts(X))
    np.testing.assert_array_equal(table["label"].fillna("abstain"), model.predict(X))
    np.testing.assert_array_equal(table["suggestion"], plain.predict(X))
    assert (table["threshold"] == tie).all()
    assert set(model.set_params(threshold=np.inf).predict(X)) == {"abstain"}


@pytest.mark.parametrize("confidence", ["margin", "entropy", "gini", lambda p: -1 / p.max(axis=1)])
def test_confidence_is_of_the_calibrated_probabilities(confidence, data):
    from skselect.predictions.confidence import confidence_of_proba

    X, y = data
    model = SelectiveClassifier(GaussianNB(), confidence=confidence, calibration="platt").fit(X, y)
    expected = confidence_of_proba(model.predict_proba(X), confidence)
    np.testing.assert_array_equal(model.predict_confidence(X), expected)
    assert model.accepts(X).all()  # threshold=None never abstains, whatever the confidence


# Weights, groups, routing ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [None, "platt", "isotonic"])
def test_weights_mean_repetition(kind, rng, data):
    X, y = data
    weight = rng.integers(1, 4, len(y))
    folds = rng.integers(0, 3, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)

    def splits(fold):
        return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]

    base = LogisticRegression(tol=1e-10, max_iter=1000)
    one = SelectiveClassifier(base, calibration=kind, cv=splits(folds)).fit(X, y, weight)
    two = SelectiveClassifier(base, calibration=kind, cv=splits(folds[repeated]))
    two.fit(X[repeated], y[repeated])
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-5)


def named(*classifiers):
    return [(f"part {k}", classifier) for k, classifier in enumerate(classifiers)]


def test_weights_that_would_be_ignored_are_an_error(data, rng):
    X, y = data
    weight = rng.random(300)
    ensemble = VotingClassifier(named(LogisticRegression(), GaussianNB()), voting="soft")
    plain = clone(ensemble).fit(X, y, sample_weight=weight)
    model = SelectiveClassifier(ensemble).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    scaled = make_pipeline(StandardScaler(), GaussianNB())
    for base in (
        KNeighborsClassifier(), OneVsRestClassifier(GaussianNB()),
        VotingClassifier(named(GaussianNB(), KNeighborsClassifier()), voting="soft"),
        VotingClassifier(named(scaled), voting="soft"),
        StackingClassifier(named(GaussianNB()), final_estimator=KNeighborsClassifier()),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="takes no weights"):
            SelectiveClassifier(base).fit(X, y, sample_weight=weight)


class Recorder(GaussianNB):
    seen: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None, note=None):
        Recorder.seen.append(
            (len(y), None if note is None else len(note), sample_weight is not None)
        )
        return super().fit(X, y, sample_weight)


def test_fit_parameters_are_passed_on_and_cut_to_the_folds(data):
    X, y = data
    Recorder.seen.clear()
    SelectiveClassifier(Recorder(), calibration="platt", cv=3).fit(
        X, y, np.ones(300), note=np.zeros(300)
    )
    assert Recorder.seen == [(300, 300, True)] + [(200, 200, True)] * 3


def test_routing_hands_on_exactly_what_was_asked_for(data, rng):
    X, y = data
    weight = rng.random(len(y))
    plain = LogisticRegression().fit(X, y).coef_
    weighted = LogisticRegression().fit(X, y, sample_weight=weight).coef_
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    with sklearn.config_context(enable_metadata_routing=True):
        renamed = LogisticRegression().set_fit_request(sample_weight="ww")
        unasked = LogisticRegression().set_fit_request(sample_weight=False)
        model = SelectiveClassifier(renamed).fit(X, y, ww=weight)
        np.testing.assert_array_equal(model.estimator_.coef_, weighted)
        model = SelectiveClassifier(unasked).fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(model.estimator_.coef_, plain)
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        piped = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), inner)
        model = SelectiveClassifier(piped).fit(X, y, sample_weight=weight)
    scaled.fit(X, y, logisticregression__sample_weight=weight)
    np.testing.assert_array_equal(model.estimator_[-1].coef_, scaled[-1].coef_)


@pytest.mark.parametrize("cv", [3, 0.5, GroupKFold(3)])
def test_groups_are_kept_together_with_and_without_routing(cv, data):
    X, y = data
    groups = np.arange(len(y)) // 10
    base = SelectiveClassifier(GaussianNB(), calibration="platt", cv=3, random_state=0)
    models = [ThresholdTuner(base, **ON_COVERAGE, cv=cv, random_state=0)]
    models += [] if cv == 0.5 else [clone(base).set_params(cv=cv)]
    for model in models:
        plain = clone(model).fit(X, y, groups=groups)
        with sklearn.config_context(enable_metadata_routing=True):
            routed = clone(model).fit(X, y, groups=groups)
            search = GridSearchCV(model, {"random_state": [0]}, cv=GroupKFold(2), refit=False)
            search.fit(X, y, groups=groups)
        np.testing.assert_array_equal(routed.predict_proba(X), plain.predict_proba(X))
        np.testing.assert_array_equal(routed.accepts(X), plain.accepts(X))


# Bad parameters --------------------------------------------------------------------------------


@refusals({
    "threshold": [{"threshold": bad} for bad in ("high", np.nan)],
    "confidence": [{"confidence": bad} for bad in ("hope", "expected_cost")]
                  + [{"confidence": "margin", "decision": "estimator"}],
    "calibration": [{"calibration": "magic"}],
    "calibration_scope": [
        {"calibration_scope": "labels"},
        {"decision": "estimator", "calibration": "platt", "calibration_scope": "confidence"},
    ],
    "cv": [{"calibration": "platt", "cv": "five"}, {"cv": 0.3}],
    # What to write instead.
    "Write 80 % as 0.8": [{"threshold": 80}], "FrozenEstimator(classifier)": [{"cv": "prefit"}],
})  # fmt: skip
def test_bad_parameters_are_named(argument, call, data):
    check_refused(argument, SelectiveClassifier(GaussianNB(), **call).fit, *data)


class Untrained(LinearRegression):
    def fit(self, X, y, sample_weight=None):  # pragma: no cover
        pytest.fail("trained before its kind was looked at")


class Silent(Perceptron):
    """States no confidence at all."""

    decision_function = property()


class Quacks:
    """Has the methods of a classifier, as a wrapper of a net may, but is no estimator."""

    classes_ = np.arange(3)

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.full((len(X), 3), 1 / 3)

    predict = predict_proba


ABSTAINING = SelectiveClassifier(GaussianNB(), threshold=0.9)


@refusals({
    "must be a classifier": [
        Untrained(), make_pipeline(StandardScaler(), Untrained()), KMeans(2), IsolationForest(),
        GaussianNB, "rf", Quacks(), FrozenEstimator(Quacks()), FrozenEstimator(object()),
    ],
    "inside": [
        FrozenEstimator(GaussianNB()), ABSTAINING, make_pipeline(StandardScaler(), ABSTAINING)
    ],
    "predict_proba": [Silent()],
})  # fmt: skip
def test_wrong_kinds_of_estimators_are_explained(argument, call, data):
    check_refused(argument, SelectiveClassifier(call).fit, *data)
    if argument == "must be a classifier":
        check_refused(argument, ThresholdTuner(call).fit, *data)
    if isinstance(call, FrozenEstimator):
        check_refused(argument, SelectiveClassifier(call).predict, data[0])


def test_rows_that_do_not_fit_the_classifier_are_refused(data):
    X, y = data
    one = FrozenEstimator(RidgeClassifier().fit(X, np.zeros(300)))
    two = FrozenEstimator(GaussianNB().fit(X[y < 2], y[y < 2]))
    for model, labels, weight, message in [
        (GaussianNB(), y, [1, 2, 3], "sample_weight has 3 rows, but y has 300"),
        (two, y, None, "labels that are not among .*was not trained on them"),
        (one, 0 * y, None, r"y has one class only, \[0.0\]: .* has no predict_proba"),
    ]:
        with pytest.raises(ValueError, match=message):
            SelectiveClassifier(model, calibration="platt").fit(X, labels, weight)


def test_rows_that_trained_it_are_recognised(data):
    X, y = data
    model = SelectiveClassifier(GaussianNB()).fit(X[:200], y[:200])
    assert find_overlaps(model, X[:200][::-1]) == [(200, 200)]
    assert find_overlaps(model, X[150:]) == [(50, 150)]
    assert find_overlaps(model, X[200:]) == [(0, 100)]
    frozen = SelectiveClassifier(FrozenEstimator(model.estimator_), calibration="platt")
    assert find_overlaps(frozen, X[:200]) == [None]  # a classifier fitted elsewhere
    # The rows of its calibration are known.
    assert find_overlaps(frozen.fit(X[200:], y[200:]), X) == [(100, 300), None]
    outer = SelectiveClassifier(FrozenEstimator(model), calibration="platt")
    assert find_overlaps(outer.fit(X[250:], y[250:]), X) == [(50, 300), (200, 300)]
    assert find_overlaps(pickle.loads(pickle.dumps(model)), X) == [(200, 300)]
    inside = make_pipeline(StandardScaler(), PCA(3), SelectiveClassifier(GaussianNB()))
    outer = SelectiveClassifier(FrozenEstimator(inside.fit(X[:200], y[:200])))
    assert find_overlaps(outer, X[100:]) == [(100, 200)]


@pytest.mark.filterwarnings("ignore:cwsa", "ignore:min_coverage")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_decision_values_pass_through_where_they_belong_to_the_probabilities(n_classes, data):
    X, y = data[0], np.minimum(data[1], n_classes - 1)
    logistic = LogisticRegression().fit(X, y)
    confidence = {"calibration": "platt", "calibration_scope": "confidence"}
    for model in (
        SelectiveClassifier(LogisticRegression(), threshold=0.9),
        SelectiveClassifier(FrozenEstimator(logistic), **confidence),
        ThresholdTuner(make_pipeline(LogisticRegression()), cv=2),
        ThresholdTuner(GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2), cv=2),
    ):
        assert hasattr(model, "decision_function")
        found = model.fit(X, y).decision_function(X)
        np.testing.assert_array_equal(found, logistic.decision_function(X))
    calibrated = SelectiveClassifier(LogisticRegression(), calibration="isotonic")
    for model in (SelectiveClassifier(GaussianNB()), calibrated,
                  ThresholdTuner(clone(calibrated))):  # fmt: skip
        assert not hasattr(model, "decision_function")
        assert not hasattr(model.fit(X, y), "decision_function")


def test_scorers_that_prefer_decision_values_read_the_calibrated_probabilities(data):
    X, y = data[0], (data[1] > 0).astype(int)
    model = SelectiveClassifier(LogisticRegression(), calibration="isotonic").fit(X, y)
    tied = roc_auc_score(y, model.predict_proba(X)[:, 1])
    assert sklearn_scorer("roc_auc")(model, X, y) == tied
    assert tied != roc_auc_score(y, LogisticRegression().fit(X, y).decision_function(X))


# The policy follows the parameters -------------------------------------------------------------


def test_the_policy_of_a_fit_stays_the_same(data):
    X, y = data
    model = SelectiveClassifier(GaussianNB(), calibration="platt", threshold=0.8).fit(X, y)
    model._created = "2026-01-01T00:00:00+00:00"
    policy, answers = model.policy_.to_json(), model.predict(X)
    assert "2026-01-01" in policy
    model.decide(X)
    for same in (model, pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert same.policy_.to_json() == policy
        np.testing.assert_array_equal(same.predict(X), answers)


@pytest.mark.parametrize("change", [{"threshold": 0.99}, {"confidence": "margin"},
                                    {"abstain_label": -7}])  # fmt: skip
def test_a_parameter_that_is_set_makes_it_anew(change, data):
    X, y = data
    model = SelectiveClassifier(GaussianNB(), threshold=0.8).fit(X, y)
    before = model.policy_.to_json()
    copied = copy.copy(model).set_params(**change)
    assert model.policy_.to_json() == before
    for name, value in change.items():
        assert getattr(copied.policy_, name) == value
    fresh = SelectiveClassifier(GaussianNB(), **({"threshold": 0.8} | change)).fit(X, y)
    np.testing.assert_array_equal(copied.predict(X), fresh.predict(X))
    with pytest.raises(ValueError, match=r"threshold=1\.5 can never be reached"):
        model.set_params(threshold=1.5, confidence="max_proba").predict(X)


# Attributes that are not there ---------------------------------------------------------------


@pytest.mark.parametrize("make", [SelectiveClassifier, ThresholdTuner])
def test_an_unfitted_estimator_says_so(make, data):
    model = make(GaussianNB())
    for method in METHODS:
        with pytest.raises(NotFittedError, match="fit"):
            getattr(model, method)(data[0])
    names = ("policy_", "classes_", "estimator_", "n_features_in_")
    for name in (*names, "threshold_") if make is ThresholdTuner else names:
        assert not hasattr(model, name)
        with pytest.raises(NotFittedError, match=r"not fitted yet.*Call fit"):
            getattr(model, name)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    for name in ("_private_", "typo", "__array__"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as found:
            getattr(model, name)
        assert not isinstance(found.value, NotFittedError)
