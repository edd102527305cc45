"""ThresholdTuner: which rows choose, what is exact, and what the fitted object offers."""

import contextlib
import math
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn import ensemble
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    GroupKFold,
    PredefinedSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skselect import (
    AbstentionPolicy,
    Best,
    CascadeClassifier,
    Coverage,
    GeneralizedRisk,
    InfeasibleTargetError,
    LearnedConfidence,
    PrecomputedClassifier,
    Predictions,
    Risk,
    SelectiveClassifier,
    ThresholdTuner,
    select_threshold,
)
from skselect._lib.notebook import unwrap
from skselect.estimators.base import find_frozen
from skselect.estimators.out_of_fold import holdout
from skselect.thresholds import Combined, FixedSequence
from tests.refusals import check_refused, refusals

quiet = pytest.mark.filterwarnings("ignore:min_coverage", "ignore:cwsa")


@pytest.fixture(scope="module")
def data():
    return make_classification(
        900, 6, n_informative=5, n_redundant=0, n_classes=3, class_sep=1.5, random_state=0
    )


def risk(estimator, **options):
    return ThresholdTuner(estimator, "risk", **({"target": 0.1, "random_state": 0} | options))


def told(certificate):
    """Return text and details of a certificate."""
    return unwrap(f"{certificate}\n{certificate.details()}")


def note_of(certificate):
    """Return what weakens a certificate that stands."""
    return next(line for line in told(certificate).splitlines() if "Note: " in line)


def at_halves(X):
    """Return the subgroup of each row, which is its last column."""
    return X[:, -1]


SITE = (np.arange(900) % 2).reshape(-1, 1)
ON_COVERAGE = {"objective": "coverage", "target": 0.5}
ON_COST = {"objective": "cost", "target": 0.2}


# Which rows choose -----------------------------------------------------------------------------


@quiet
@pytest.mark.parametrize("confidence", ["auto", "margin"])
@pytest.mark.parametrize(
    "goal",
    [
        {"objective": "cwsa_plus"}, {"objective": Best("cwsa", min_coverage=0.3)},
        {"objective": "selective_accuracy"}, {"objective": "risk", "target": 0.1},
        {"objective": Risk(0.1, method="empirical")}, {"objective": "coverage", "target": 0.7},
        {"objective": "generalized_risk", "target": 0.05}, ON_COST,
    ],
)  # fmt: skip
def test_out_of_fold_predictions_choose(goal, confidence, data):
    X, y = data
    base = SelectiveClassifier(GaussianNB(), confidence=confidence)
    tuner = ThresholdTuner(base, cv=4, random_state=0, **goal).fit(X, y)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    proba = cross_val_predict(GaussianNB(), X, y, cv=folds, method="predict_proba")
    rows = Predictions.from_proba(y, proba)
    by = {} if confidence == "auto" else {"confidence": confidence}
    expected = select_threshold(rows, **goal, **by)
    assert tuner.threshold_ == expected.threshold
    assert tuner.selection_.coverage == expected.coverage
    final = GaussianNB().fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(tuner.predict_proba(X), final)
    ranked = np.sort(final, axis=1)
    sure = ranked[:, 2] - ranked[:, 1] if by else ranked[:, 2]
    np.testing.assert_array_equal(tuner.accepts(X), sure >= expected.threshold)


@pytest.mark.parametrize("objective", ["risk", "generalized_risk", "coverage"])
def test_a_guarantee_is_certified_on_rows_held_out_of_a_classifier_that_is_kept(data, objective):
    X, y = data
    goal = {"objective": objective, "target": 0.2, "random_state": 0}
    train, test = holdout(0.4, 900, None, 0)
    kept = GaussianNB().fit(X[train], y[train])
    expected = ThresholdTuner(FrozenEstimator(kept), **goal).fit(X[test], y[test])
    rows = Predictions.from_proba(y[test], kept.predict_proba(X[test]))
    found = select_threshold(rows, objective=objective, target=0.2)
    assert expected.threshold_ == found.threshold
    for options in ({}, {"refit": False}, {"cv": 0.4}, {"cv": 0.4, "refit": False}):
        tuner = ThresholdTuner(GaussianNB(), **goal, **options).fit(X, y)
        assert tuner.certificate_.is_certified
        assert tuner.certificate_.n == 360
        assert tuner.threshold_ == expected.threshold_
        np.testing.assert_array_equal(tuner.predict_proba(X), kept.predict_proba(X))
    half = ThresholdTuner(GaussianNB(), cv=np.float32(0.5), **goal).fit(X, y).certificate_
    assert (half.is_certified, half.n) == (True, 450)


@quiet
@pytest.mark.parametrize("cv", ["auto", 0.4])
@pytest.mark.parametrize(
    "goal",
    [{"objective": "cwsa_plus"}, ON_COST, {"objective": Risk(0.2, method="empirical")},
     {"objective": "risk", "target": 0.2, "refit": True}],
)  # fmt: skip
def test_where_nothing_is_guaranteed_all_rows_train(data, goal, cv):
    X, y = data
    tuner = ThresholdTuner(GaussianNB(), cv=cv, random_state=0, **goal).fit(X, y)
    np.testing.assert_array_equal(tuner.predict_proba(X), GaussianNB().fit(X, y).predict_proba(X))
    if cv == "auto":
        assert len(tuner.cv_results_["n_rows"]) == 5
        assert tuner.curve_.n_rows == 900
    if "refit" not in goal:
        assert tuner.certificate_ is None
        assert tuner.certificates_ == {"all": None}


# What is exact ----------------------------------------------------------------------------------


def test_every_way_says_whether_it_is_exact(data):
    X, y = data
    half, rest = slice(0, 450), slice(450, None)
    plain = GaussianNB().fit(X[half], y[half])
    platt = SelectiveClassifier(GaussianNB(), calibration="platt")
    calibrated = clone(platt).fit(X[half], y[half])
    on_frozen = SelectiveClassifier(FrozenEstimator(plain), calibration="platt")
    trained = SelectiveClassifier(GaussianNB()).fit(X[rest], y[rest])
    for model, options, why in [
        (GaussianNB(), {"cv": 5, "target": 0.1}, "fold"),
        (GaussianNB(), {"refit": True, "target": 0.1}, "fold"),
        (GaussianNB(), {}, ""),
        (GaussianNB(), {"cv": 0.4, "refit": True}, "fitted again"),
        (FrozenEstimator(plain), {}, ""),
        (SelectiveClassifier(FrozenEstimator(plain)), {}, ""),
        (FrozenEstimator(calibrated), {}, ""),
        (on_frozen, {"cv": 5}, "also fitted the calibration"),
        (on_frozen, {}, ""),
        (platt, {"cv": 0.5, "refit": False}, ""),
        (GaussianNB(), {"cv": 4, "groups": np.arange(450) // 2}, "groups"),
        (platt, {"cv": GroupKFold(3), "groups": np.arange(450) // 2}, "groups"),
        (FrozenEstimator(plain), {"groups": np.arange(450)}, "groups"),
        (FrozenEstimator(trained), {}, "also trained the classifier"),
    ]:
        given = {"groups": options.pop("groups")} if "groups" in options else {}
        tuner = risk(model, **({"target": 0.2} | options))
        warns = why.startswith("also trained")
        with pytest.warns(UserWarning, match=why) if warns else contextlib.nullcontext():
            certificate = tuner.fit(X[rest], y[rest], **given).certificate_
        assert certificate.exact == (why == ""), tuner
        assert str(certificate).startswith("CERTIFIED" if why == "" else "ESTIMATE, NOT CERTIFIED")
        assert why in " ".join(certificate.caveats)


def test_what_the_tuner_is_given_stays_as_it_was_and_its_settings_count(data):
    X, y = data
    fitted = SelectiveClassifier(GaussianNB(), calibration="isotonic", threshold=0.123)
    fitted.fit(X[:450], y[:450])
    tuner = risk(FrozenEstimator(fitted)).fit(X[450:], y[450:])
    np.testing.assert_array_equal(tuner.predict_proba(X), fitted.predict_proba(X))
    assert fitted.threshold == 0.123
    assert tuner.estimator_.threshold == tuner.threshold_ != 0.123
    base = SelectiveClassifier(GaussianNB(), threshold=0.999, abstain_label=-5)
    tuner = ThresholdTuner(base, cv=5, **ON_COVERAGE).fit(X, y)
    assert -5 in tuner.predict(X)
    assert -6 in tuner.set_params(estimator__abstain_label=-6).fit(X, y).predict(X)
    assert tuner.threshold_ < 0.999


def test_a_frozen_cascade_inside_stays_as_it_was(data):
    X, y = data
    stages = [("one", GaussianNB()), ("two", DecisionTreeClassifier(max_depth=3))]
    cascade = CascadeClassifier(stages, cv=2)
    fitted = SelectiveClassifier(cascade).fit(X[:500], y[:500])
    risk(FrozenEstimator(fitted), target=0.4).fit(X[500:], y[500:])
    assert (cascade.target, cascade.random_state) == (None, None)


def test_a_part_of_the_training_rows_makes_it_an_estimate(data):
    X, y = data
    alone = SelectiveClassifier(GaussianNB())
    for model in (alone, make_pipeline(StandardScaler(), alone)):
        frozen = FrozenEstimator(model.fit(X[:500], y[:500]))
        tuner = risk(frozen, target=0.2)
        with pytest.warns(UserWarning, match="No certificate: 150 of 500 recognisable rows"):
            seen = tuner.fit(X[350:850], y[350:850]).certificate_
        assert not seen.exact
        assert "150 of 500 recognisable rows also trained" in told(seen)
        some = tuner.fit(X[400:], y[400:]).certificate_
        assert some.exact  # a fifth: a threshold passes with and without them, and that is said
        assert some.n == 500
        assert "Caveats: 100 of 500 recognisable rows also occur" in told(some)
        assert "100 of 500" not in unwrap(str(some))
        assert tuner.fit(X[500:], y[500:]).certificate_.exact
        vouched = risk(frozen, target=0.2, assume="fresh").fit(X[350:850], y[350:850]).certificate_
        assert vouched.is_certified
        assert "overruled by assume='fresh'" in told(vouched)
    calibrated = SelectiveClassifier(frozen, calibration="platt")
    with pytest.warns(UserWarning, match="200 of 200 recognisable rows"):
        assert not risk(calibrated, target=0.3).fit(X[:500], y[:500]).certificate_.is_certified
    pair = [(np.arange(500, 700), np.arange(700, 900))]
    assert risk(calibrated, target=0.3, cv=pair).fit(X, y).certificate_.is_certified


@pytest.mark.parametrize(
    ("n", "objective", "fits"),
    [
        (500, Risk(0.02), {}), (500, Risk(0.05), {}), (300, Risk(0.01), {}),
        (400, Risk(0.05, delta=0.01, max_analyses=4), {}), (260, GeneralizedRisk(0.02), {}),
        (120, Risk(0.4), {"cost_matrix": [[0, 8], [1, 0]]}), (300, Coverage(0.5), {}),
    ],
)  # fmt: skip
def test_few_rows_hold_out_as_many_as_certify(n, objective, fits):
    X, y = make_classification(n, 4, random_state=0)
    model = SelectiveClassifier(GaussianNB(), **fits)
    tuner = ThresholdTuner(model, objective, random_state=0, on_infeasible="abstain")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        held_out = tuner.fit(X, y).curve_.n_rows
        tuner.set_params(group_by=lambda X: X[:, 0] > 0).fit(X, y)
    assert tuner.curve_.n_rows == np.ceil(0.4 * n)
    wanted = 0
    if not isinstance(objective, Coverage):
        largest = 8 if fits else 1
        level = objective.delta / objective.max_analyses
        wanted = 1.5 * np.log(1 / level) / (objective.target / largest)
    # The least whole per cent that gives so many.
    shares = [share for share in range(40, 61) if share * n >= 100 * wanted] or [60]
    assert held_out == np.ceil(shares[0] * n / 100)


@pytest.mark.filterwarnings("ignore")
def test_a_guarantee_of_a_class_holds_out_as_many_of_the_class_as_certify():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(2000) < 0.09, "sick", "well")
    X = rng.normal(size=(2000, 3)) + (y == "sick")[:, None]
    n_sick = np.count_nonzero(y == "sick")
    about_sick = GeneralizedRisk(0.05, given_class="sick")
    about_well = GeneralizedRisk(0.05, given_class="well")
    shares = {}
    for name, objective in {
        "sick": about_sick, "both": [about_sick, about_well],
        "sick and all": [about_sick, Coverage(0.5)], "all": GeneralizedRisk(0.05),
    }.items():  # fmt: skip
        tuner = ThresholdTuner(GaussianNB(), objective, random_state=0, on_infeasible="abstain")
        tuner.fit(X, y)
        shares[name] = tuner.certificate_.n
    wanted = math.ceil(100 * 1.5 * math.log(1 / 0.05) / 0.05 / n_sick) / 100
    assert 0.4 < wanted <= 0.6
    assert shares["sick"] == pytest.approx(wanted * n_sick, abs=0.03 * n_sick)
    assert shares["both"] > shares["sick"]
    # The labels of rows that certify must not decide how many certify about all cases.
    assert shares["sick and all"] == pytest.approx(0.4 * n_sick, abs=0.03 * n_sick)
    assert shares["all"] == 800


def rows_worst_where_surest(n=1000):
    """The surest quarter errs about as often as allowed, the others hardly ever."""
    rng = np.random.default_rng(0)
    u = rng.random(n)
    wrong = rng.random(n) < np.where(u < 0.25, 0.045, np.where(u < 0.7, 0.01, 0.4))
    return np.column_stack([u, 2 - u]) / 2, 1 - wrong.astype(int)


STORED = PrecomputedClassifier([0, 1])
CALIBRATED = SelectiveClassifier(
    STORED, calibration="platt", calibration_scope="confidence", random_state=0
)


@pytest.mark.parametrize(
    "model",
    [
        CALIBRATED,
        clone(CALIBRATED).set_params(estimator=FrozenEstimator(STORED)),
        SelectiveClassifier(
            STORED, confidence=LearnedConfidence(features=["proba"], guard=False), random_state=0
        ),
        CascadeClassifier([("cheap", STORED), ("again", STORED)], calibration=None),
    ],
    ids=["calibration", "frozen", "learned", "cascade"],
)
def test_out_of_fold_rows_choose_where_the_sequence_begins(model):
    X, y = rows_worst_where_surest()
    tuner = ThresholdTuner(model, Risk(0.05, delta=0.1), random_state=0, on_infeasible="abstain")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = tuner.fit(X, y)
    method = fitted.selection_.objective.method
    assert isinstance(method, Combined)
    assert not method.sparse
    assert method.start > 0.25
    assert fitted.certificate_.is_certified
    assert "starts or levels of the sequence were fixed before" in told(fitted.certificate_)
    assert tuner.objective.method == "auto"
    # What was said out of fold is not kept.
    assert fitted.estimator_._unseen is None
    assert not hasattr(pickle.loads(pickle.dumps(fitted.estimator_.estimator_)), "_unseen")


@pytest.mark.parametrize(
    "options",
    [
        {"estimator": SelectiveClassifier(STORED), "cv": 0.4},  # nothing was said out of fold
        {"objective": Risk(0.05, method="combined")}, {"objective": Risk(0.05, given_class=1)},
        {"objective": Risk(0.05, given_prediction=1)}, {"group_by": "predicted_class"},
        {"cv": 5}, {"refit": True, "cv": 0.4}, {"objective": Risk(0.05, loss=lambda y, p: y != p)},
    ],
)  # fmt: skip
def test_the_start_is_the_usual_one_elsewhere(options):
    tuner = ThresholdTuner(CALIBRATED, Risk(0.05), random_state=0, on_infeasible="abstain")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tuner.set_params(**options).fit(*rows_worst_where_surest())
    found = tuner.selection_
    each = [found] if found.groups is None else found.selections.values()
    assert not any(isinstance(one.objective.method, Combined) for one in each)


def test_a_classifier_of_its_own_keeps_nothing_said_out_of_fold():
    X, y = rows_worst_where_surest(200)
    assert clone(CALIBRATED).fit(X, y)._unseen is None


# What the fitted object offers ------------------------------------------------------------------


def test_fitted_attributes_and_methods_agree(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdef"))
    tuner = risk(GaussianNB(), cv=4).fit(frame, y)
    assert tuner.classes_.tolist() == [0, 1, 2]
    assert tuner.feature_names_in_.tolist() == list("abcdef")
    assert tuner.thresholds_ == {"all": tuner.threshold_}
    assert tuner.curve_.n_rows == 900
    results = pd.DataFrame(tuner.cv_results_)
    assert results["n_rows"].tolist() == [225] * 4
    assert np.average(results["coverage"]) == pytest.approx(tuner.selection_.coverage)
    assert tuner.policy_.certificate is tuner.certificate_ is tuner.selection_.certificate
    assert set(tuner.policy_.fingerprints) == {"data", "model"}
    assert risk(GaussianNB()).fit(frame, y).policy_.confidence_quantiles["0.5"] > 0.5
    table = tuner.decide(frame)
    np.testing.assert_array_equal(table["accepted"], tuner.accepts(frame))
    np.testing.assert_array_equal(table["confidence"], tuner.predict_confidence(frame))
    np.testing.assert_array_equal(table["label"].fillna(-1).astype(int), tuner.predict(frame))
    right = table["accepted"] & (table["suggestion"] == y)
    assert tuner.score(frame, y) == right.mean()


def test_rows_that_trained_the_kept_classifier_are_recorded_once(data):
    """At most 1,000 of them are rated, and only for a guarantee.

    Of each classifier that is fitted, 1,000 rows are rated beforehand, as a check of its answers.
    """
    X, y = (np.concatenate([one] * 4) for one in data)
    X = X + np.random.default_rng(0).normal(0, 1e-3, X.shape)
    rated = []

    class Counting(GaussianNB):
        def predict_proba(self, X):
            rated.append(len(X))
            return super().predict_proba(X)

    tests = np.arange(2600, 3600)
    for options, expected, n_recorded in (
        ({}, [1000, 1440, 1000], 500),
        (
            {"cv": [(np.arange(100), tests)]},
            [100, 1000, 100],
            100,
        ),  # and 2,500 rows in neither part
        ({"objective": Coverage(0.5), "cv": [(np.arange(100), tests)]}, [100, 1000, 100], 100),
        ({"refit": True, "cv": 0.4}, [1000, 1440, 1000], None),
        ({"objective": "cwsa_plus", "cv": 0.4, "refit": False}, [1000, 1440], None),
    ):
        rated.clear()
        asked = {"objective": Risk(0.1), "random_state": 0} | options
        tuner = ThresholdTuner(Counting(), **asked).fit(X, y)
        assert rated == expected
        found = tuner.policy_.fingerprints.get("trained")
        assert (found and len(found) / 8) == n_recorded


@pytest.mark.parametrize(
    ("word", "targets"),
    [("risk", [0.001, 0.08, 0.15]), ("generalized_risk", [0.05, 0.1]), ("coverage", [0.5, 0.9])],
)
def test_a_summary_finds_what_a_fit_for_each_target_finds(word, targets, data):
    X, y = data
    model = FrozenEstimator(GaussianNB().fit(X[:500], y[:500]))
    options = {"on_infeasible": "abstain", "assume": "independent"}
    tuner = ThresholdTuner(model, word, target=targets[-1], **options).fit(X[500:], y[500:])
    found = tuner.summary(targets)
    assert "voids the guarantee" in found.attrs["note"]
    for target, row in found.iterrows():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alone = ThresholdTuner(model, word, target=target, **options).fit(X[500:], y[500:])
        assert row["threshold"] == alone.threshold_
        assert row["coverage"] == alone.selection_.coverage
        assert row["would_certify"] == alone.certificate_.is_certified


def test_a_summary_names_a_target_that_is_met_where_a_larger_one_is_refused():
    """Eight levels of confidence: where the tests begin moves with the target."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        u = np.floor(8 * rng.random(300)) / 8
        wrong = rng.random(300) < 0.02 + 0.2 * u
    sure = 0.95 - 0.4 * u
    X, y = np.column_stack([1 - sure, sure]), np.where(wrong, "no", "yes")
    model = PrecomputedClassifier(["no", "yes"])
    tuner = ThresholdTuner(model, Risk(0.3), assume="independent").fit(X, y)
    table = tuner.summary([0.05, 0.0569, 0.1, 0.11])
    assert table["would_certify"].tolist() == [False, True, False, True]
    assert table.attrs["note"].endswith(
        "This rule answers 18 % at 0.0569 and nothing at 0.1: name 0.0569."
    )
    with pytest.raises(InfeasibleTargetError) as caught:
        ThresholdTuner(model, Risk(0.1), assume="independent").fit(X, y)
    assert caught.value.least_target == 0.0569
    named = ThresholdTuner(model, Risk(0.0569), assume="independent").fit(X, y)
    assert named.selection_.coverage == caught.value.least_target_coverage


def test_a_summary_promises_no_more_than_the_certificate(data):
    X, y = data
    assert not risk(GaussianNB(), cv=5).fit(X, y).summary([0.2, 0.3])["would_certify"].any()
    tuner = risk(GaussianNB()).fit(X, y)
    with pytest.raises(ValueError, match=r"Write 2 % as 0\.02"):
        tuner.summary(2)
    with pytest.raises(ValueError, match="one threshold with a guarantee"):
        ThresholdTuner(GaussianNB(), "cost", target=0.2, random_state=0).fit(X, y).summary([0.1])


def test_routed_names_reach_the_classifier_behind_both_layers(data):
    X, y = data
    weight = np.random.default_rng(0).random(900)
    groups = np.repeat(np.arange(90), 10)
    goal = {"objective": "cost", "target": 0.3}
    with sklearn.config_context(enable_metadata_routing=True):
        renamed = LogisticRegression().set_fit_request(sample_weight="ww")
        tuner = ThresholdTuner(renamed, **goal).fit(X, y, ww=weight)
        base = SelectiveClassifier(GaussianNB(), calibration="platt")
        ThresholdTuner(base, cv=GroupKFold(3), **goal).fit(X, y, groups=groups)
    expected = LogisticRegression().fit(X, y, sample_weight=weight).coef_
    np.testing.assert_array_equal(tuner.estimator_.estimator_.coef_, expected)


class CountingNB(GaussianNB):
    """Counts how often it is fitted."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        CountingNB.fits += 1
        return super().fit(X, y, sample_weight)


# Weights and groups -----------------------------------------------------------------------------


@quiet
def test_weights_serve_metrics_and_are_refused_for_certificates(data):
    X, y = data
    weight = np.random.default_rng(0).integers(1, 4, 900)
    tuner = ThresholdTuner(GaussianNB(), objective="selective_accuracy").fit(X, y, weight)
    assert tuner.curve_.accepted_weight[-1] == weight.sum()
    with pytest.raises(ValueError, match=r"a certificate counts .*Leave sample_weight out"):
        risk(GaussianNB()).fit(X, y, sample_weight=weight)
    constant = risk(GaussianNB()).fit(X, y, sample_weight=np.full(900, 2.0))
    assert constant.threshold_ == risk(GaussianNB()).fit(X, y).threshold_
    together = SelectiveClassifier(GaussianNB(), confidence=lambda p: p.max(axis=1) - p.max())
    with pytest.raises(ValueError, match="confidence: the function looks at rows together"):
        risk(together).fit(X, y)


# Which classes the rows hold --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_table_sorted_by_class_is_certified_at_once(seed):
    X, y = load_iris(return_X_y=True)
    mixed = np.random.default_rng(seed).permutation(150)
    tuner = risk(LogisticRegression(max_iter=500), random_state=seed)
    sorted_by_class = tuner.fit(X, y).certificate_
    assert sorted_by_class.is_certified
    assert any("sorted by class" in caveat for caveat in sorted_by_class.caveats)
    shuffled = tuner.fit(X[mixed], y[mixed]).certificate_
    assert shuffled.is_certified
    assert not any("sorted by class" in caveat for caveat in shuffled.caveats)


def rare(rng, n, share=0.05):
    """Return rows of which a class is rare."""
    y = (rng.random(n) < share).astype(int)
    return rng.normal(size=(n, 3)) + 1.2 * y[:, None], np.array(["well", "ill"])[y]


def balance(rng, X, y, surplus=0):
    """Return all rare rows and as many of the others, or some more."""
    ill = np.flatnonzero(y == "ill")
    rows = np.r_[ill, rng.choice(np.flatnonzero(y == "well"), len(ill) + surplus, replace=False)]
    rng.shuffle(rows)
    return X[rows], y[rows]


BY_ANSWER = {"target": 0.2, "group_by": "predicted_class", "on_infeasible": "abstain"}


@pytest.mark.parametrize("seed", range(20))
def test_balanced_rows_certify_no_classifier_of_natural_ones(seed):
    """Of its answers "ill" most are wrong among cases as they come."""
    rng = np.random.default_rng(seed)
    model = FrozenEstimator(SelectiveClassifier(GaussianNB()).fit(*rare(rng, 2000)))
    rows = balance(rng, *rare(rng, 6000), surplus=seed % 2)
    tuner = risk(model, **BY_ANSWER)
    with pytest.warns(UserWarning, match="No certificate: class 'ill' is"):
        found = tuner.fit(*rows).certificates_["ill"]
    assert not found.is_certified
    assert not any("independent draws" in one for one in found.assumptions)
    assert "the same number of rows" in found.caveats[0]
    if seed == 0:
        vouched = tuner.set_params(assume="balanced").fit(*rows).certificates_["ill"]
        assert vouched.is_certified
        assert "overruled by assume='balanced'" in vouched.caveats[0]
        assert any("independent draws" in one for one in vouched.assumptions)


def test_other_shares_of_classes_are_said(rng):
    model = SelectiveClassifier(GaussianNB()).fit(*rare(rng, 3000))
    frozen, fresh = FrozenEstimator(model), rare(rng, 1000)
    assert risk(frozen).fit(*fresh).certificate_.caveats == ()
    other = balance(rng, *rare(rng, 6000), surplus=2)
    found = risk(frozen, target=0.3).fit(*other).certificate_
    assert found.is_certified
    (said,) = found.caveats
    assert re.match(r"class '(ill|well)' is \S+ % of these rows and \S+ % of those that", said)
    X, y = (np.r_[one, two] for one, two in zip(other, fresh, strict=True))
    n = len(other[1])
    part = risk(frozen, cv=[(np.arange(n), np.arange(n, n + 1000))]).fit(X, y)
    assert part.certificate_.caveats == ()  # the rows that cv tests are as in training
    given = ThresholdTuner(frozen, Risk(0.45, given_class="well"))
    assert given.fit(*other).certificate_.caveats == ()
    weighted = ThresholdTuner(frozen, Risk(0.4, largest_weight=2))
    weight = np.where(other[1] == "ill", 0.1, 1.9)
    assert weighted.fit(*other, sample_weight=weight).certificate_.caveats == ()
    del model._class_counts  # of a version that kept none
    assert risk(frozen, target=0.3).fit(*other).certificate_.caveats == ()


@pytest.mark.parametrize("frozen", [False, True])
def test_classes_of_equal_size_are_said(frozen, rng):
    X, y = balance(rng, *rare(rng, 6000))
    n = len(y) // 2
    model = GaussianNB()
    if frozen:
        model = FrozenEstimator(GaussianNB().fit(*rare(rng, 1000)))
    said = f"all classes have {n} rows; if they were balanced by hand"
    found = risk(model, target=0.3).fit(X, y).certificate_
    assert found.is_certified
    assert said in told(found)
    for goal, rows in ((Risk(0.3), slice(1, None)), (Risk(0.4, given_class="well"), slice(None))):
        other = ThresholdTuner(model, goal, random_state=0).fit(X[rows], y[rows])
        assert "balanced by hand" not in told(other.certificate_)


# Rows in time order ----------------------------------------------------------------------------


def drifting(rng, n=3000, change=None):
    """Return rows whose X means something else from row `change` on."""
    X = rng.normal(size=(n, 2))
    angle = np.where(np.arange(n) < (n if change is None else change), 0, 1.2)
    signal = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle)
    return X, (signal + 0.3 * rng.normal(size=n) > 0).astype(int)


def test_one_split_certifies_like_a_frozen_classifier(data):
    X, y = data
    train, test = np.arange(600), np.arange(600, 900)
    fitted = GaussianNB().fit(X[train], y[train])
    expected = risk(FrozenEstimator(fitted), target=0.2).fit(X[test], y[test])
    latest = "the last 33.33 % of the rows (300 of 900)"
    for cv in ([(train, test)], PredefinedSplit(np.where(np.arange(900) < 600, -1, 0))):
        tuner = risk(GaussianNB(), target=0.2, cv=cv).fit(X, y)
        assert tuner.threshold_ == expected.threshold_
        np.testing.assert_array_equal(tuner.predict_proba(X), expected.predict_proba(X))
        assert tuner.certificate_.is_certified
        assert (tuner.certificate_.provenance, tuner.certificate_.notice) == (latest, "")
        assert f"Certified on {latest}." in told(tuner.certificate_)
        again = risk(GaussianNB(), target=0.2, cv=cv, refit=True).fit(X, y)
        assert again.threshold_ == tuner.threshold_
        assert "fitted again" in str(again.certificate_)
        assert f"Estimated on {latest}." in told(again.certificate_)
        whole = GaussianNB().fit(X, y).predict_proba(X)
        np.testing.assert_array_equal(again.predict_proba(X), whole)


def test_a_frozen_classifier_is_scored_by_the_test_rows_alone(rng):
    """Its training rows, which it knows by heart, are neither counted nor certified."""
    X = rng.normal(size=(3000, 4))
    y = (X[:, 0] + rng.normal(size=3000) > 0).astype(int)
    by_heart = DecisionTreeClassifier(min_samples_leaf=2, random_state=0).fit(X[:1500], y[:1500])
    frozen = FrozenEstimator(by_heart)
    by_ranks = Risk(0.4, method="combined")  # "auto" lets training rows find that leaves are ties
    fresh = ThresholdTuner(frozen, by_ranks).fit(X[1500:], y[1500:])
    cv = [(slice(0, 1500), slice(1500, None))]
    tuner = ThresholdTuner(frozen, by_ranks, cv=cv, random_state=0).fit(X, y)
    assert tuner.certificate_.is_certified
    assert tuner.threshold_ == fresh.threshold_
    assert tuner.certificate_.provenance == "the last 50 % of the rows (1500 of 3000)"
    pd.testing.assert_frame_equal(pd.DataFrame(tuner.cv_results_), pd.DataFrame(fresh.cv_results_))


def test_cv_that_names_no_rows_leaves_a_frozen_classifier_all(data):
    X, y = data
    frozen = FrozenEstimator(GaussianNB().fit(X[:300], y[:300]))
    whole = risk(frozen, target=0.2).fit(X[300:], y[300:])
    for cv in (None, 5, 0.4, StratifiedKFold(3)):
        tuner = risk(frozen, target=0.2, cv=cv).fit(X[300:], y[300:])
        assert tuner.threshold_ == whole.threshold_
        assert (tuner.certificate_.n, tuner.certificate_.provenance) == (600, "")


@pytest.mark.parametrize("is_frozen", [True, False])
def test_a_pair_with_subgroups_and_weights(data, is_frozen):
    X, y = np.hstack([data[0], SITE]), data[1]
    pair, weight = [(np.arange(300), np.arange(899, 599, -1))], np.linspace(1, 2, 900)
    frozen = FrozenEstimator(GaussianNB().fit(X[:300], y[:300], weight[:300]))
    goal = ON_COST | {"group_by": at_halves}
    model = frozen if is_frozen else GaussianNB()
    tuner = ThresholdTuner(model, cv=pair, refit=False, **goal).fit(X, y, weight)
    fresh = ThresholdTuner(frozen, **goal).fit(X[600:], y[600:], weight[600:])
    assert tuner.thresholds_ == fresh.thresholds_
    with pytest.raises(ValueError, match="zero for every row of the part that cv"):
        tuner.fit(X, y, np.arange(900) < 500)
    if not is_frozen:
        whole = clone(tuner).set_params(refit="auto").fit(X, y, weight)
        expected = GaussianNB().fit(X, y, weight).predict_proba(X)
        np.testing.assert_array_equal(whole.predict_proba(X), expected)
        with pytest.raises(ValueError, match=r"cv holds out 5 of 900 rows, .* at least 10"):
            tuner.set_params(cv=[(np.arange(500), np.arange(895, 900))]).fit(X, y)


@pytest.mark.filterwarnings("ignore:REFUSED")
def test_a_site_that_is_hard_does_not_name_the_levels_alone():
    """Ten sites in turn, one of them hard: 5.3 % are wrong at each of five levels."""
    rng, n, n_false = np.random.default_rng(0), 2000, 0
    risk = np.where(np.arange(n) % 10 == 0, 0.44, 0.01)
    for draw in range(15):
        sure, wrong = rng.integers(5, 10, n) / 10, rng.random(n) < risk
        y = np.where(wrong, 0, 1)
        tuner = ThresholdTuner(
            PrecomputedClassifier([0, 1]), Risk(0.03), cv=[(slice(0, 500), slice(500, None))],
            random_state=draw, on_infeasible="abstain", assume="independent",
        ).fit(np.column_stack([1 - sure, sure]), y)  # fmt: skip
        assert tuner.certificate_.n == 1350
        assert (tuner.certificate_.method, tuner.certificate_.seed) == ("level_sequence", draw)
        n_false += tuner.certificate_.is_certified
    assert n_false <= 0.05 * 15 + 3 * np.sqrt(15 * 0.05 * 0.95)


def test_the_certificate_says_which_rows_certify(data):
    X, y = data
    every = np.arange(900)
    order, last = np.random.default_rng(0).permutation(900), every[500:]
    shuffled = [(order[:500], order[500:])]
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)  # whose levels a tenth names
    frozen = FrozenEstimator(SelectiveClassifier(GaussianNB()).fit(X[:520], y[:520]))
    for model, cv, n, provenance in [
        (GaussianNB(), shuffled, 400, "400 of 900 rows, which cv holds out"),
        (GaussianNB(), [(every[300:], every[:300])], 300, "300 of 900 rows, which cv holds out"),
        (GaussianNB(), 0.4, 360, ""),
        (tree, shuffled, 360, "360 of the 400 rows that cv holds out"),
        (tree, [(every[:500], last)], 360, "360 of the last 44.44 % of the rows (400 of 900)"),
        (frozen, [(every[:500], last)], 400, "the last 44.44 % of the rows (400 of 900)"),
    ]:
        certificate = risk(model, target=0.4, cv=cv).fit(X, y).certificate_
        assert certificate.is_certified
        assert (certificate.n, certificate.provenance) == (n, provenance)


FOLDS = np.random.default_rng(0).integers(-1, 3, 900)


@pytest.mark.parametrize(("cv", "n", "said"), [
    (TimeSeriesSplit(4), 720, "the last 80 % of the rows (720 of 900), each decided by a model of "
     "earlier rows"),
    (PredefinedSplit(FOLDS), int(np.sum(FOLDS >= 0)), f"{np.sum(FOLDS >= 0)} of 900 rows, which cv "
     "tests"),
    (PredefinedSplit(np.abs(FOLDS)), 900, ""),
])  # fmt: skip
@pytest.mark.parametrize("calibration", [None, "platt"])
def test_the_tested_rows_are_decided_by_models_of_their_training_rows(
    calibration, cv, n, said, data
):
    X, y = data
    model = SelectiveClassifier(GaussianNB(), calibration=calibration, cv=3, random_state=0)
    tuner = risk(model, cv=cv, target=0.25).fit(X, y)
    certificate = tuner.certificate_
    assert (certificate.exact, certificate.n, certificate.provenance) == (False, n, said)
    assert tuner.cv_results_["n_rows"].tolist() == [len(test) for _, test in cv.split(X)]
    if calibration is None or said.startswith("the last"):  # other folds calibrate each other
        proba = [clone(model).fit(X[a], y[a]).predict_proba(X[b]) for a, b in cv.split(X)]
        rows = Predictions.from_proba(
            np.concatenate([y[test] for _, test in cv.split(X)]), np.concatenate(proba)
        )
        expected = select_threshold(rows, objective="risk", target=0.25, assume="independent")
        assert tuner.threshold_ == expected.threshold
    whole = clone(model).fit(X, y)
    np.testing.assert_array_equal(tuner.predict_proba(X), whole.predict_proba(X))
    with pytest.raises(ValueError, match=r"refit=False needs .* cv=\[\(train, test\)\]"):
        risk(model, cv=cv, refit=False).fit(X, y)


@pytest.mark.parametrize("confidence", ["entropy", "gini", "margin"])
def test_a_kept_classifier_is_certified_by_its_own_confidence(confidence, data):
    X, y = data
    y = np.where(np.arange(900) < 899, y % 2, 2)  # the kept classifier never sees class 2
    train, test = np.arange(500), np.arange(500, 900)
    model = SelectiveClassifier(GaussianNB(), confidence=confidence)
    tuner = ThresholdTuner(model, objective="coverage", target=0.3, cv=[(train, test)])
    with pytest.warns(UserWarning, match=r"1 of 900 rows belong to the classes \[2\]"):
        tuner.fit(X, y)
    accepted = tuner.decide(X[test])["accepted"]
    assert tuner.certificate_.is_certified
    assert tuner.certificate_.n_accepted == accepted.sum()
    tuner.set_params(estimator__cost_matrix=20 - 20 * np.eye(3))
    with pytest.raises(ValueError, match=r"classes \[2\] .* cost matrix does not fit it"):
        tuner.fit(X, y)


def test_the_training_part_of_a_share_keeps_the_order_of_its_rows(data):
    X, y = data
    rows = np.column_stack([X, np.arange(900)])
    seen = []

    class Spy(GaussianNB):
        def fit(self, X, y):
            seen.append(X[:, -1])
            return super().fit(X, y)

    risk(Spy(), target=0.3, random_state=0).fit(rows, y)
    assert np.all(np.diff(seen[0]) > 0)


def test_the_order_of_rows_is_tested_by_their_positions(rng):
    model = LogisticRegression()
    X, y = drifting(rng, change=2000)
    latest = [(np.arange(1000), np.arange(1000, 3000))]
    frozen = FrozenEstimator(LogisticRegression().fit(X[:1000], y[:1000]))
    for tuner, rows, advice in (
        (risk(model, target=0.4), slice(None), "on the latest rows (cv=[(train, test)], "),
        (risk(model, target=0.4, cv=5), slice(None), "on the latest rows (cv=[(train, test)], "),
        (risk(model, target=0.4, cv=latest), slice(None), "these rows are already the latest"),
        (risk(frozen, target=0.4), slice(1000, None), "use the latest rows alone"),
    ):
        with pytest.warns(UserWarning, match="The order of the rows matters"):
            found = tuner.fit(X[rows], y[rows]).certificate_
        assert not found.is_certified
        assert any(advice in caveat for caveat in found.caveats)
        assert "not certified" in repr(tuner.policy_)
        vouched = tuner.set_params(assume=["independent"]).fit(X[rows], y[rows]).certificate_
        assert vouched.is_certified == (tuner.cv != 5)
        assert any("overruled by assume='independent'" in caveat for caveat in vouched.caveats)
    mixed = rng.permutation(3000)
    assert risk(model, target=0.4).fit(X[mixed], y[mixed]).certificate_.caveats == ()
    settled = risk(model, target=0.4, cv=[(np.arange(2300), np.arange(2300, 3000))]).fit(X, y)
    assert settled.certificate_.is_certified
    assert settled.certificate_.caveats == ()
    # The models of a splitter's folds may differ along the rows.
    by_time = risk(model, target=0.4, cv=TimeSeriesSplit(4)).fit(X, y).certificate_
    assert not any("from one part of the table" in caveat for caveat in by_time.caveats)


# Rows that trained the classifier ---------------------------------------------------------------


def noisy(rng, n=400):
    """Rows of which a forest errs in about a third, unless it was trained on them."""
    X = rng.normal(size=(n, 5))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


FOREST = ensemble.RandomForestClassifier(30, random_state=0)


@pytest.mark.parametrize("n_copies", [200, 400, 680])
def test_a_few_copies_do_not_certify_what_was_memorised(n_copies):
    """Labels are coin tosses, so that every risk is a half; the model knows its rows by heart."""
    rng = np.random.default_rng(n_copies)
    X, y = rng.normal(size=(4000, 4)), rng.integers(0, 2, 4000)
    rows = rng.permutation(np.r_[0:4000, 0:n_copies])
    tuner = risk(ensemble.ExtraTreesClassifier(30, random_state=0), target=0.05, random_state=0)
    with pytest.raises(InfeasibleTargetError):
        tuner.fit(X[rows], y[rows])


def test_training_rows_without_duplicates_accuse_no_fresh_rows(rng):
    def draw(n):
        X = rng.integers(0, 2, (n, 12))
        return X, (X[:, :3].sum(axis=1) + rng.normal(size=n) > 1.5).astype(int)

    X, y = draw(3000)
    _, once = np.unique(X, axis=0, return_index=True)
    base = SelectiveClassifier(GaussianNB()).fit(X[once], y[once])
    certificate = risk(FrozenEstimator(base), target=0.4).fit(*draw(600)).certificate_
    assert certificate.is_certified
    assert "no row can be recognised" in certificate.caveats[0]


def test_a_plain_frozen_model_keeps_no_record_and_the_certificate_says_so(rng):
    X, y = noisy(rng)
    frozen = FrozenEstimator(clone(FOREST).fit(X, y))
    known = risk(frozen, target=0.05)
    with pytest.warns(UserWarning, match="Did these rows train the frozen classifier"):
        known.fit(X, y)
    second = "Note: skselect cannot tell whether these rows also trained the classifier."
    doubted = note_of(known.certificate_)
    few = r"\d of 400 rows are answered wrongly, as if they had trained the classifier\."
    assert re.search(rf"{second[:-1]}; {few}$", doubted)
    for model in (frozen, SelectiveClassifier(frozen, calibration="platt")):
        certificate = risk(model, target=0.45).fit(*noisy(rng)).certificate_
        assert certificate.is_certified
        assert note_of(certificate).endswith(second)
    vouched = known.set_params(assume="fresh").fit(X, y).certificate_
    assert note_of(vouched).endswith(f"{second[:-1]} (assume='fresh' says no).")


ROWS = noisy(np.random.default_rng(0))
BY_HEART = ensemble.ExtraTreesClassifier(5, random_state=0)


def stack(part, **options):
    return ensemble.StackingClassifier([("part", part)], LogisticRegression(), **options)


def in_stage(stage):
    return CascadeClassifier([("one", stage), ("two", LogisticRegression())], max_loss=0.1)


def ask(model):
    learned = LearnedConfidence(auxiliary={"model": model}, guard=False)
    return SelectiveClassifier(GaussianNB(), confidence=learned)


#: What holds a part, and whether the part surely gets the X that the record of it is about.
NESTED = {
    "calibrated": (CalibratedClassifierCV, True),
    "wrapped": (lambda part: SelectiveClassifier(CalibratedClassifierCV(part)), True),
    "piped": (lambda part: make_pipeline(FunctionTransformer(), part), True),
    "scaled": (lambda part: make_pipeline(StandardScaler(), part), False),
    "stacked": (stack, True),
    "prefit": (lambda part: stack(part, cv="prefit"), True),
    "voting": (lambda part: ensemble.VotingClassifier([("part", part)], voting="soft"), True),
    "bagged": (lambda part: ensemble.BaggingClassifier(part, 3), True),
    "one vs rest": (OneVsRestClassifier, True),
    "cut": (FixedThresholdClassifier, True),
    "transforms": (
        lambda part: make_pipeline(FrozenEstimator(stack(part).fit(*ROWS)), GaussianNB()), False,
    ),
    "stage": (lambda part: in_stage(SelectiveClassifier(part, calibration="platt")), True),
    "scaled stage": (lambda part: in_stage(make_pipeline(StandardScaler(), part)), False),
    "asked": (lambda part: ask(make_pipeline(StandardScaler(), part)), False),
    "searched": (
        lambda part: GridSearchCV(make_pipeline(GaussianNB()), {"gaussiannb": [part]}, cv=2), True,
    ),
    "whole": (lambda part: FrozenEstimator(CalibratedClassifierCV(part).fit(*ROWS)), True),
}  # fmt: skip
NO_RECORD = "skselect cannot tell whether these rows also trained the classifier"
ASKED = "Did these rows train the frozen classifier"


def fit_and_listen(model, X, y, **options):
    """Return a certificate and all warnings as one text."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        tuner = risk(model, **({"target": 0.45} | options)).fit(X, y)
    return tuner.certificate_, " ".join(str(one.message) for one in raised)


@pytest.mark.parametrize("shape", NESTED)
def test_a_frozen_part_anywhere_inside_is_found(shape):
    nest, gets_same_X = NESTED[shape]
    plain, asked = fit_and_listen(nest(FrozenEstimator(clone(BY_HEART).fit(*ROWS))), *ROWS)
    assert plain.is_certified
    assert NO_RECORD in told(plain)
    assert ASKED in asked or not gets_same_X
    recorded = FrozenEstimator(SelectiveClassifier(clone(BY_HEART)).fit(*ROWS))
    known, warned = fit_and_listen(nest(recorded), *ROWS)
    assert known.is_certified != gets_same_X
    assert ("No certificate: " in warned) == gets_same_X
    assert gets_same_X or NO_RECORD in told(known)


def test_shapes_without_a_frozen_part_are_clean(rng):
    X, y = rng.normal(size=(400, 5)), (np.arange(400) % 5 < 2).astype(int)
    X[:, 0] += 9 * y  # next to no row is wrong
    for nest, _ in NESTED.values():
        model = nest(GaussianNB().fit(X, y))
        if getattr(model, "cv", None) == "prefit" or find_frozen(model):
            continue
        certificate, warned = fit_and_listen(model, X, y)
        assert certificate.caveats == (), model
        assert ASKED not in warned


def test_next_to_no_error_is_asked_about_beside_a_record_too(rng):
    X, y = rng.normal(size=(800, 5)), (np.arange(800) % 5 < 2).astype(int)
    X[:, 0] += 9 * y
    frozen = FrozenEstimator(SelectiveClassifier(GaussianNB()).fit(X[:400], y[:400]))
    certificate, warned = fit_and_listen(frozen, X[400:], y[400:])
    assert ASKED in warned
    few = "0 of 400 rows are answered wrongly, as if they had trained the classifier"
    assert certificate.caveats == (few,)
    assert certificate.is_certified
    vouched, warned = fit_and_listen(frozen, X[400:], y[400:], assume="fresh")
    assert (vouched.caveats, warned) == ((), "")
    _, warned = fit_and_listen(frozen, X, y)  # half of them are recognised: no question
    assert ASKED not in warned


def test_frozen_parts_are_found_among_parameters_in_lists_and_dicts():
    one, two, three = (FrozenEstimator(GaussianNB()) for _ in range(3))
    columns = ColumnTransformer([("one", one, [0])])
    asked = LearnedConfidence(auxiliary={"two": make_pipeline(two)})
    model = SelectiveClassifier(make_pipeline(columns, GaussianNB()), confidence=asked)
    search = GridSearchCV(model, {"estimator": [GaussianNB, three]})
    assert set(find_frozen(search)) == {one, two, three}
    assert find_frozen("passthrough") == find_frozen(None) == []


# Refusals ---------------------------------------------------------------------------------------


@refusals({
    # The objective is read as by select_threshold: more in selection/test_select.py.
    "objective": [{"objective": "hope"}],
    "target": [{"objective": "risk"}, {"objective": Risk(0.1), "target": 0.1}],
    "delta": [{"delta": 0.1}], "max_analyses": [{"objective": Risk(0.1, max_analyses=1.5)}],
    "loss": [{"objective": Risk(0.1, loss="hinge")}],
    "method": [{"objective": Coverage(0.5, method=FixedSequence(0.5)), "cv": 5}],
    "refit": [{"refit": "no"}, {"refit": False}], "assume": [{"assume": 0.5}],
    "cv": [{"cv": "all"}, {"cv": 1.5}], "group_by": [{"group_by": "sex"}],
    "given_class": [{"group_by": "predicted_class", "objective": Risk(0.1, given_class=1)}],
    "cost_matrix": [{"estimator__decision": "min_cost"},
                    {"estimator__cost_matrix": [[0, 1], [1, 0], [1, 1]]}],
    "decision": [{"estimator__decision": "oracle"}],
    "abstain_label": [{"estimator__abstain_label": 1}],
    "Did you mean 0.02": [{"objective": "risk", "target": 0.98}],
})  # fmt: skip
def test_bad_parameters_are_named(argument, call, data):
    tuner = ThresholdTuner(SelectiveClassifier(GaussianNB())).set_params(**call)
    check_refused(argument, tuner.fit, *data)


def test_a_refusal_counts_the_rows_of_fit_too(data):
    with pytest.raises(InfeasibleTargetError) as caught:
        risk(GaussianNB(), target=0.001, cv=0.25).fit(*data)
    said = str(caught.value).replace(",", "")
    assert "these 225 certifying rows (900 in all)" in said
    # No number of rows is in sight, and even without an error 2,995 are needed.
    assert caught.value.rows_needed_range == (None, None)
    assert "at least 2995 such rows (11980 in all)" in said
    assert "would have been met" in said
    assert "cv=0.6" not in said


def test_infeasible_targets(data):
    tuner = risk(GaussianNB(), target=0.001, cv=5)
    with pytest.raises(InfeasibleTargetError, match=r"such rows|will not help"):
        tuner.fit(*data)
    assert not hasattr(tuner, "policy_")  # nothing half-fitted is left behind
    with pytest.warns(UserWarning, match="Nothing will be accepted"):
        tuner.set_params(on_infeasible="abstain").fit(*data)
    assert tuner.threshold_ == np.inf
    assert set(tuner.predict(data[0])) == {-1}


# Method objects --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:REFUSED|No threshold|min_coverage|cwsa")
def test_objectives_and_methods_are_parameters_like_any_other(data):
    X, y = data
    stated = Risk(0.2, method=FixedSequence([0.3, 0.6]))
    tuner = ThresholdTuner(
        GaussianNB(), stated, cv=0.5, refit=False, on_infeasible="abstain", random_state=0
    )
    for copied in (clone(tuner), pickle.loads(pickle.dumps(tuner))):
        assert copied.get_params()["objective__method"] == FixedSequence([0.3, 0.6])
    assert "method=FixedSequence(starts=(0.3, 0.6))" in repr(tuner)
    certificate = tuner.fit(X, y).certificate_
    assert certificate.method == "fixed_sequence"
    restored = AbstentionPolicy.from_json(tuner.policy_.to_json())
    assert restored.certificate == certificate
    for name, values in (
        ("objective__method", ["combined", FixedSequence(0.5)]),
        ("objective__target", [0.1, 0.2]),
        ("objective", ["cwsa_plus", Risk(0.1), Best("cwsa", min_coverage=0.7)]),
    ):
        search = GridSearchCV(tuner, {name: values}, cv=2).fit(X, y)
        assert search.best_params_[name] in values
        assert not np.any(np.isnan(search.cv_results_["mean_test_score"]))
    assert tuner.objective == stated  # and no search has changed it


# What was checked once is trusted -----------------------------------------------------------------


@quiet
@pytest.mark.parametrize(
    ("base", "options", "n_fits"),
    [
        # By default: five folds, which serve the threshold and both calibrations, and all rows.
        ({"cv": 5}, {}, 6), ({"cv": 5}, {"objective": "risk", "target": 0.3}, 6),
        ({"calibration": None}, {}, 6),
        ({"calibration": None}, {"objective": "risk", "target": 0.3}, 1),
        ({"cv": 5}, {"cv": TimeSeriesSplit(3)}, 24), ({"cv": TimeSeriesSplit(3)}, {"cv": 3}, 16),
        ({"cv": StratifiedKFold(4)}, {"cv": 3}, 8),
        ({"cv": 5, "confidence": "margin"}, {"cv": 3}, 9),
        # "auto" compares folds: two, of which one decides, leave none to compare.
        ({"cv": 3, "calibration": "auto"}, {"cv": 3}, 4),
        ({"cv": 3, "calibration": "auto"}, {"cv": 2}, 12), ({"cv": 3}, {"cv": 2}, 6),
        ({"cv": 5, "confidence": LearnedConfidence(auxiliary=[GaussianNB()])}, {"cv": 3}, 24),
    ],
)  # fmt: skip
def test_the_classifier_is_fitted_as_often_as_the_docs_say(data, base, options, n_fits):
    """Folds are shared by threshold and calibration only where that is right."""
    CountingNB.fits = 0
    model = SelectiveClassifier(CountingNB(), **({"calibration": "platt"} | base))
    ThresholdTuner(model, random_state=0, **options).fit(*data)
    assert CountingNB.fits == n_fits


@quiet
@pytest.mark.parametrize("calibration", ["platt", "isotonic", "auto"])
def test_the_refit_reads_the_scores_of_the_folds_as_if_it_had_fitted_them(data, calibration):
    X, y = data
    model = SelectiveClassifier(GaussianNB(), calibration=calibration, cv=5, random_state=3)
    refitted = ThresholdTuner(model, random_state=3).fit(X, y)
    np.testing.assert_array_equal(refitted.predict_proba(X), model.fit(X, y).predict_proba(X))
    chance = clone(model).set_params(random_state=None)
    CountingNB.fits = 0
    unseeded = ThresholdTuner(chance.set_params(estimator=CountingNB())).fit(X, y)
    assert CountingNB.fits == 6
    CountingNB.fits = 0
    unseeded.fit(X, y, groups=np.arange(len(y)) // 2)
    assert CountingNB.fits == 11  # folds that keep groups together are compared row by row


def test_fit_predicts_a_thousand_rows_of_many(rng):
    X = rng.normal(size=(5000, 1))
    predicted = []

    class Watched(GaussianNB):
        def predict_proba(self, X):
            predicted.append(len(X))
            return super().predict_proba(X)

    SelectiveClassifier(Watched()).fit(X, X[:, 0] > 0)
    assert sum(predicted) <= 2000  # predict asks predict_proba


def test_a_classifier_that_calibrates_by_folds_of_its_own_is_warned_about(data):
    tuner = ThresholdTuner(CalibratedClassifierCV(GaussianNB(), cv=2), cv=2, random_state=0)
    with pytest.warns(UserWarning, match="calibration='platt'"):
        tuner.fit(*data)


def test_costs_in_a_dict_are_those_of_a_table():
    X, y = load_breast_cancer(return_X_y=True)
    costs = {0: {1: 20}, 1: {0: 1}}
    thresholds = []
    for cost_matrix in (costs, [[0, 20], [1, 0]]):
        model = SelectiveClassifier(GaussianNB(), decision="min_cost", cost_matrix=cost_matrix)
        tuner = ThresholdTuner(model, Coverage(0.85), random_state=0).fit(X, y)
        thresholds.append(tuner.policy_.threshold)
    assert thresholds[0] == thresholds[1]
