"""Scorers: plain strings everywhere, folds without a class, abstaining estimators anywhere."""

import copy
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeClassifierCV
from sklearn.metrics import check_scoring, get_scorer_names, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    PredefinedSplit,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skselect import SelectiveClassifier, ThresholdTuner
from skselect.metrics import SPECS, cwsa_plus_score
from skselect.scoring import get_scorer, on_accepted, registered_names, selective_scoring
from tests.refusals import check_refused, refusals

GRID = {"var_smoothing": [1e-9, 1e-2]}


@pytest.fixture(scope="module")
def data():
    return make_classification(240, 6, n_informative=4, n_classes=3, random_state=0)


@pytest.fixture(scope="module")
def binary():
    return make_classification(240, 6, n_informative=4, flip_y=0.1, random_state=0)


# The plain string ----------------------------------------------------------------------------


def search(kind, X, y, **options):
    return kind(GaussianNB(), GRID, **options).fit(X, y).best_score_


def permuted(X, y, **options):
    return permutation_importance(GaussianNB().fit(X, y), X, y, n_repeats=2, **options).importances


def selected(X, y, **options):
    few = SequentialFeatureSelector(GaussianNB(), n_features_to_select=2, **options)
    return few.fit(X, y).get_support()


VALUES = {"param_name": "var_smoothing", "param_range": [1e-9, 1]}
#: What takes `scoring` and `n_jobs`, and gives scores.
PLACES = {
    "GridSearchCV": partial(search, GridSearchCV),
    "RandomizedSearchCV": partial(search, RandomizedSearchCV, n_iter=2),
    "HalvingGridSearchCV": partial(search, HalvingGridSearchCV),
    "HalvingRandomSearchCV": partial(search, HalvingRandomSearchCV, n_candidates=2),
    "cross_val_score": partial(cross_val_score, GaussianNB()),
    "cross_validate": lambda *rows, **o: cross_validate(GaussianNB(), *rows, **o)["test_score"],
    "learning_curve": lambda *rows, **o: learning_curve(GaussianNB(), *rows, **o)[2],
    "validation_curve": lambda *rows, **o: validation_curve(GaussianNB(), *rows, **VALUES, **o)[1],
    "permutation_test_score": lambda *rows, **o: permutation_test_score(
        GaussianNB(), *rows, n_permutations=3, **o
    )[0],
    "permutation_importance": permuted,
    "SequentialFeatureSelector": selected,
}


@pytest.mark.parametrize("place", PLACES)
def test_plain_string_works(place, data):
    assert np.all(np.isfinite(PLACES[place](*data, scoring="cwsa_plus")))


@pytest.mark.parametrize("place", ["HalvingGridSearchCV", "permutation_importance"])
def test_a_plain_string_reaches_other_processes(place, data):
    assert np.all(np.isfinite(PLACES[place](*data, scoring="cwsa_plus", n_jobs=2)))


def test_plain_string_works_in_logistic_regression_cv(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # scikit-learn's own new defaults
        warnings.simplefilter("ignore", DeprecationWarning)
        for n_jobs, scoring in [(1, "cwsa_plus"), (2, get_scorer("cwsa_plus"))]:
            # With worker processes the object: the string is resolved where nobody imported us.
            model = LogisticRegressionCV(Cs=2, cv=3, scoring=scoring, n_jobs=n_jobs, max_iter=500)
            model.fit(*data)
            assert np.isfinite(model.score(*data))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_multimetric_with_refit(data, n_jobs):
    names = ["accuracy", *registered_names()]
    ours = selective_scoring("cwsa_plus", get_scorer("coverage_at_risk", max_risk=0.1))
    for scoring, scored in ((names, names), (ours, ["cwsa_plus", "coverage_at_risk"])):
        search = GridSearchCV(GaussianNB(), GRID, scoring=scoring, refit="cwsa_plus", n_jobs=n_jobs)
        search.fit(*data)
        assert all(np.isfinite(search.cv_results_[f"mean_test_{name}"]).all() for name in scored)
        again = pickle.loads(pickle.dumps(clone(search))).fit(*data)
        assert again.best_score_ == search.best_score_


def test_where_a_name_does_not_fit_the_error_says_why(data, binary):
    labels = make_scorer(cwsa_plus_score, response_method="predict_proba")
    silent = LinearSVC().fit(*binary)
    for call, message in [
        (lambda: cross_val_score(GaussianNB(), *data, scoring="cwsa_pluss"), "cwsa_plus"),
        (lambda: RidgeClassifierCV(scoring="cwsa_plus").fit(*data), "predict_proba"),
        (lambda: get_scorer("cwsa_plus")(silent, *binary), "calibration='temperature'"),
        (lambda: cut_off("cwsa_plus").fit(*binary), "ThresholdTuner"),
        (lambda: cut_off(labels).fit(*binary), "look like labels"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def cut_off(scoring):
    return TunedThresholdClassifierCV(LogisticRegression(), scoring=scoring)


# Objects -------------------------------------------------------------------------------------


def test_object_is_copied_pickled_and_written_down():
    scorer = get_scorer("cwsa_plus", threshold=0.8, min_coverage=0.5)
    assert repr(scorer) == "get_scorer('cwsa_plus', threshold=0.8, min_coverage=0.5)"
    assert repr(eval(repr(scorer), {"get_scorer": get_scorer})) == repr(scorer)
    for same in (copy.deepcopy(scorer), pickle.loads(pickle.dumps(scorer))):
        assert repr(same) == repr(scorer)
    assert scorer.__name__ == "cwsa_plus"


@refusals([
    ("neg_aurc", partial(get_scorer, "aurc")), ("name", partial(get_scorer, "hope")),
    ("max_risk", partial(get_scorer, "cwsa_plus", max_risk=0.1)),
    ("max_risk", partial(get_scorer, "coverage_at_risk")),
    ("threshold", partial(get_scorer, "cwsa_plus", threshold=1.0)),
    ("min_coverage", partial(get_scorer, "neg_aurc", min_coverage=0.5)),
    ("min_coverage", partial(get_scorer, "coverage", min_coverage=2)),
    # Values that only this metric refuses, where they are written.
    ("positive", partial(get_scorer, "failure_average_precision", positive="foo")),
    ("metric", partial(get_scorer, "aumcc", metric="selective_risk")),
    ("at least one", selective_scoring), ("scoring", partial(on_accepted, "accuracyy")),
    ("threshold", partial(on_accepted, "accuracy", threshold=np.nan)),
    ("min_coverage", partial(on_accepted, "accuracy", min_coverage=80)),
])  # fmt: skip
def test_bad_requests_are_explained(argument, call):
    check_refused(argument, call)


def test_weights_reach_the_metric_and_can_be_routed(binary):
    X, y = binary
    weight = np.random.default_rng(0).integers(1, 4, len(y))

    def expected(model, rows=slice(None)):
        proba = model.predict_proba(X[rows])
        return pytest.approx(cwsa_plus_score(y[rows], proba, sample_weight=weight[rows]))

    model = GaussianNB().fit(X, y)
    assert get_scorer("cwsa_plus")(model, X, y, sample_weight=weight) == expected(model)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = get_scorer("cwsa_plus").set_score_request(sample_weight=True)
        model = GaussianNB().set_fit_request(sample_weight=False)
        got = cross_validate(model, X, y, scoring=scorer, params={"sample_weight": weight},
                             return_estimator=True, return_indices=True)  # fmt: skip
    for score, fitted, rows in zip(
        got["test_score"], got["estimator"], got["indices"]["test"], strict=True
    ):
        assert score == expected(fitted, rows)


# Folds without a class -----------------------------------------------------------------------


def test_a_class_missing_in_training_counts_as_wrong(data):
    X, y = data
    train, test = y < 2, y > 0
    model = GaussianNB().fit(X[train], y[train])
    proba = model.predict_proba(X[test])
    c, right = proba.max(axis=1), model.classes_[proba.argmax(axis=1)] == y[test]
    expected = np.mean(np.where(right, 1, 0) * (c - 0.5) / 0.5)
    assert get_scorer("cwsa_plus")(model, X[test], y[test]) == pytest.approx(expected)
    assert get_scorer("selective_accuracy")(model, X[test], y[test]) == pytest.approx(right.mean())
    with pytest.raises(ValueError, match="same kind"):
        get_scorer("cwsa_plus")(model, X, y.astype(str))
    scores = cross_val_score(GaussianNB(), X, y, cv=PredefinedSplit(y), scoring="neg_augrc")
    np.testing.assert_allclose(scores, -0.5, atol=1e-12)  # each test class is unknown: all wrong


# Abstaining estimators -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def abstainer(binary):
    return SelectiveClassifier(
        GaussianNB(), threshold=0.8, calibration="platt", random_state=0
    ).fit(*binary)


def test_its_own_threshold_and_confidence_count(abstainer, binary):
    X, y = binary
    proba = abstainer.predict_proba(X)
    for scorer, threshold in [
        (get_scorer("cwsa_plus"), 0.8), (get_scorer("cwsa_plus", threshold=0.6), 0.6),
    ]:  # fmt: skip
        expected = cwsa_plus_score(y, proba, threshold=threshold)
        assert scorer(abstainer, X, y) == pytest.approx(expected)
    own = SelectiveClassifier(GaussianNB(), threshold=0.7, confidence="entropy").fit(X, y)
    proba = own.predict_proba(X)
    expected = cwsa_plus_score(y, proba, threshold=0.7, confidence="entropy")
    assert get_scorer("cwsa_plus")(own, X, y) == pytest.approx(expected)
    ece = SPECS["ece"].function(y, proba)  # which needs a probability
    assert get_scorer("neg_ece")(own, X, y) == pytest.approx(-ece)
    never = cwsa_plus_score(y, proba, threshold=0.5)
    for model in (GaussianNB(), SelectiveClassifier(GaussianNB())):  # which never abstain
        assert get_scorer("cwsa_plus")(model.fit(X, y), X, y) == pytest.approx(never)
    tuner = ThresholdTuner(GaussianNB(), objective="coverage", target=0.6, cv=5).fit(X, y)
    assert get_scorer("coverage")(tuner, X, y) == np.mean(tuner.accepts(X))


def test_found_inside_pipeline_search_and_frozen(abstainer, binary):
    X, y = binary
    scorer, base = get_scorer("coverage"), clone(abstainer)
    same = StandardScaler(with_mean=False, with_std=False).fit(X)
    piped, grid = make_pipeline(same, base), {"selectiveclassifier__threshold": [0.8]}
    expected = scorer(abstainer, X, y)
    assert 0 < expected < 1
    for model in [
        piped.fit(X, y), GridSearchCV(base, {"threshold": [0.8]}).fit(X, y),
        GridSearchCV(piped, grid).fit(X, y), FrozenEstimator(abstainer),
        make_pipeline(same, FrozenEstimator(abstainer)), FrozenEstimator(piped.fit(X, y)),
    ]:  # fmt: skip
        assert scorer(model, X, y) == expected
    logistic, scaled = SelectiveClassifier(LogisticRegression(), threshold=0.8), StandardScaler()
    Z = scaled.fit_transform(X)
    direct = scorer(clone(logistic).fit(Z, y), Z, y)
    assert scorer(make_pipeline(scaled, logistic).fit(X, y), X, y) == direct < 1


def test_a_grid_over_thresholds_does_not_reward_abstaining_on_everything(binary):
    grid = {"threshold": [0.5, 0.8, np.inf]}
    for scoring in ("cwsa", "cwsa_plus", "selective_accuracy", get_scorer("neg_selective_risk"),
                    get_scorer("neg_generalized_risk")):  # fmt: skip
        search = GridSearchCV(SelectiveClassifier(GaussianNB()), grid, scoring=scoring)
        assert search.fit(*binary).best_params_["threshold"] < np.inf


def test_too_little_coverage_gets_the_worst_value(abstainer, binary):
    for spec in SPECS.values():
        if spec.at_threshold:
            worst = spec.worst if spec.greater_is_better else -spec.worst
            assert get_scorer(spec.scorer_name, min_coverage=1.0)(abstainer, *binary) == worst
    options = {"threshold": 2, "abstention_cost": 5.0, "min_coverage": 0.5}
    assert get_scorer("neg_selective_cost", **options)(abstainer, *binary) == -5.0


def test_min_coverage_that_is_just_reached_counts(binary):
    X, y = binary[0][:10], binary[1][:10]
    model = GaussianNB().fit(*binary)
    for k, c in enumerate(np.sort(model.predict_proba(X).max(axis=1))[:0:-1], start=1):
        scorer = get_scorer("coverage", threshold=float(c), min_coverage=k / 10)
        assert scorer(model, X, y, sample_weight=np.full(10, 0.7)) > 0


# One prediction, many metrics --------------------------------------------------------------------


class CountingNB(GaussianNB):
    calls = 0

    def predict_proba(self, X):
        type(self).calls += 1
        return super().predict_proba(X)


def test_selective_scoring_predicts_once_and_takes_names_of_ones_own(data):
    strict, loose = (get_scorer("coverage_at_risk", max_risk=r) for r in (0.02, 0.3))
    with pytest.raises(ValueError, match="'coverage_at_risk' is given twice"):
        selective_scoring(strict, loose)
    model = CountingNB().fit(*data)
    names = ["cwsa_plus", "neg_aurc", "coverage", "neg_ece"]
    CountingNB.calls = 0
    scores = selective_scoring(*names, strict=strict, loose=loose)(model, *data)
    assert CountingNB.calls == 1
    each = {name: get_scorer(name) for name in names} | {"strict": strict, "loose": loose}
    assert scores == {name: scorer(model, *data) for name, scorer in each.items()}
    assert scores["strict"] < scores["loose"]


# Any scorer on the accepted rows -----------------------------------------------------------------


def test_on_accepted_uses_the_rows_it_answers(abstainer, binary):
    X, y = binary
    kept = abstainer.accepts(X)
    expected = np.mean(abstainer.predict(X)[kept] == y[kept])
    assert on_accepted("accuracy")(abstainer, X, y) == pytest.approx(expected)
    assert 0 < on_accepted("f1")(abstainer, X, y) <= 1


def test_on_accepted_with_a_plain_classifier_weights_and_a_search(data):
    X, y = data
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    kept = model.predict_proba(X).max(axis=1) >= 0.9
    weight = np.random.default_rng(0).random(len(y))
    expected = np.average(model.predict(X)[kept] == y[kept], weights=weight[kept])
    scorer = on_accepted("accuracy", threshold=0.9)
    assert scorer(model, X, y, sample_weight=weight) == pytest.approx(expected)
    assert np.isfinite(cross_val_score(GaussianNB(), X, y, scoring=scorer, n_jobs=2)).all()


#: scikit-learn's own scorers of classifiers that know one label per row.
CLASSIFICATION = [
    name
    for name in get_scorer_names()
    if getattr(check_scoring(GaussianNB(), scoring=name), "_score_func", None) is not None
    and check_scoring(GaussianNB(), scoring=name)._score_func.__module__.startswith(
        ("sklearn.metrics._classification", "sklearn.metrics._ranking")
    )
    and not name.endswith("_samples")
]
TWO_NAMES = {
    "integers": np.array([0, 1]),
    "booleans": np.array([False, True]),
    "boolean objects": np.array([False, True], dtype=object),
    "floats": np.array([0.0, 1.0]),
    "strings": np.array(["no", "yes"]),
}


def value_or_refusal(score, *args):
    try:
        return score(*args)
    except ValueError as error:
        return str(error)


@pytest.mark.filterwarnings(
    "ignore:y_pred contains classes not in y_true",
    "ignore::sklearn.exceptions.UndefinedMetricWarning",
)
@pytest.mark.parametrize("kind", TWO_NAMES)
def test_on_accepted_takes_every_scorer_of_classifiers(kind, binary):
    assert len(CLASSIFICATION) > 25
    X, codes = binary
    y = TWO_NAMES[kind][codes]
    plain = np.array(y.tolist())
    bare = GaussianNB().fit(X, plain)
    model = SelectiveClassifier(GaussianNB(), threshold=0.7).fit(X, y)
    kept = model.accepts(X)
    assert 0.3 < kept.mean() < 0.95
    integers = SelectiveClassifier(GaussianNB(), threshold=0.7).fit(X, codes)
    for name in CLASSIFICATION:
        scorer = check_scoring(bare, scoring=name)
        expected = value_or_refusal(scorer, bare, X[kept], plain[kept])
        for rows in (y, y.tolist()):
            assert value_or_refusal(on_accepted(name), model, X, rows) == expected, name
        # Strings need pos_label, from the library as from scikit-learn.
        assert not isinstance(expected, str) or "pos_label" in expected, name
        if kind == "booleans":  # abstentions count as they do for integers
            found = value_or_refusal(scorer, model, X, y)
            assert found == value_or_refusal(scorer, integers, X, codes), name


def test_on_accepted_below_min_coverage_is_nan(abstainer, binary):
    nothing = SelectiveClassifier(GaussianNB(), threshold=np.inf).fit(*binary)
    for scorer, model in [
        (on_accepted("accuracy", min_coverage=1.0), abstainer),
        (on_accepted("accuracy"), nothing),
    ]:
        with pytest.warns(UserWarning, match="on_accepted is nan: the estimator accepts a share"):
            assert np.isnan(scorer(model, *binary))
