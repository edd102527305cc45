"""Scorers: plain strings everywhere, folds without a class, abstaining estimators anywhere."""

import copy
import pickle
import warnings

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

import skselect
from skselect import SelectiveClassifier, ThresholdTuner
from skselect.estimators.scoring import registered_names
from skselect.metrics import SPECS, cwsa_plus_score
from skselect.scoring import get_scorer, on_accepted, selective_scoring

GRID = {"var_smoothing": [1e-9, 1e-2]}


@pytest.fixture(scope="module")
def data():
    return make_classification(240, 6, n_informative=4, n_classes=3, random_state=0)


@pytest.fixture(scope="module")
def binary():
    return make_classification(240, 6, n_informative=4, flip_y=0.1, random_state=0)


# The plain string ----------------------------------------------------------------------------

SITES = {
    "GridSearchCV": lambda X, y, s, n: GridSearchCV(GaussianNB(), GRID, scoring=s, n_jobs=n).fit(X, y).best_score_,
    "RandomizedSearchCV": lambda X, y, s, n: RandomizedSearchCV(GaussianNB(), GRID, n_iter=2, scoring=s, n_jobs=n).fit(X, y).best_score_,
    "HalvingGridSearchCV": lambda X, y, s, n: HalvingGridSearchCV(GaussianNB(), GRID, scoring=s, n_jobs=n).fit(X, y).best_score_,
    "HalvingRandomSearchCV": lambda X, y, s, n: HalvingRandomSearchCV(GaussianNB(), GRID, scoring=s, n_jobs=n, n_candidates=2).fit(X, y).best_score_,
    "cross_val_score": lambda X, y, s, n: cross_val_score(GaussianNB(), X, y, scoring=s, n_jobs=n),
    "cross_validate": lambda X, y, s, n: cross_validate(GaussianNB(), X, y, scoring=s, n_jobs=n)["test_score"],
    "learning_curve": lambda X, y, s, n: learning_curve(GaussianNB(), X, y, scoring=s, n_jobs=n, train_sizes=[0.5, 1.0])[2],
    "validation_curve": lambda X, y, s, n: validation_curve(GaussianNB(), X, y, param_name="var_smoothing", param_range=[1e-9, 1], scoring=s, n_jobs=n)[1],
    "permutation_test_score": lambda X, y, s, n: permutation_test_score(GaussianNB(), X, y, scoring=s, n_jobs=n, n_permutations=3)[0],
    "permutation_importance": lambda X, y, s, n: permutation_importance(GaussianNB().fit(X, y), X, y, scoring=s, n_jobs=n, n_repeats=2).importances,
    "SequentialFeatureSelector": lambda X, y, s, n: SequentialFeatureSelector(GaussianNB(), n_features_to_select=2, scoring=s, n_jobs=n).fit(X, y).get_support(),
    "check_scoring": lambda X, y, s, n: check_scoring(GaussianNB(), scoring=s)(GaussianNB().fit(X, y), X, y),
}  # fmt: skip


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("site", SITES)
def test_plain_string_works(site, n_jobs, data):
    values = SITES[site](*data, "cwsa_plus", n_jobs)
    assert np.all(np.isfinite(values))


def test_plain_string_works_in_logistic_regression_cv(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # scikit-learn's own new defaults
        warnings.simplefilter("ignore", DeprecationWarning)
        for n_jobs, scoring in [(1, "cwsa_plus"), (2, get_scorer("cwsa_plus"))]:
            # With worker processes the object: the string is resolved where nobody imported us.
            model = LogisticRegressionCV(Cs=2, cv=3, scoring=scoring, n_jobs=n_jobs, max_iter=500)
            model.fit(*data)
            assert np.isfinite(model.score(*data))


def test_ridge_accepts_the_name_but_states_no_confidence(data):
    with pytest.raises(ValueError, match="predict_proba"):
        RidgeClassifierCV(scoring="cwsa_plus").fit(*data)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_multimetric_with_refit(data, n_jobs):
    scoring = ["cwsa_plus", "accuracy", "neg_log_loss", "neg_augrc"]
    search = GridSearchCV(GaussianNB(), GRID, scoring=scoring, refit="cwsa_plus", n_jobs=n_jobs)
    search.fit(*data)
    assert {f"mean_test_{name}" for name in scoring} <= set(search.cv_results_)
    again = pickle.loads(pickle.dumps(clone(search))).fit(*data)
    assert again.best_score_ == search.best_score_


@pytest.mark.parametrize("name", registered_names())
def test_every_registered_name_scores(name, data):
    assert name in get_scorer_names()
    assert np.isfinite(cross_val_score(GaussianNB(), *data, scoring=name)).all()


def test_issue_example_runs(binary):
    pytest.importorskip("xgboost")
    from xgboost import XGBClassifier

    base = SelectiveClassifier(
        XGBClassifier(n_estimators=5, n_jobs=1), calibration="platt", threshold=0.8
    )
    search = GridSearchCV(base, {"estimator__max_depth": [1, 3]}, scoring="cwsa_plus", n_jobs=2)
    search.fit(*binary)
    assert 0 < search.best_score_ < 1


def test_wrong_name_is_reported_with_ours_in_the_list(data):
    with pytest.raises(ValueError, match="cwsa_plus"):
        cross_val_score(GaussianNB(), *data, scoring="cwsa_pluss")


def test_tuned_threshold_classifier_gets_a_clear_error(binary):
    model = TunedThresholdClassifierCV(LogisticRegression(), scoring="cwsa_plus")
    with pytest.raises(ValueError, match="ThresholdTuner"):
        model.fit(*binary)


def test_make_scorer_metric_also_refuses_labels(binary):
    scorer = make_scorer(cwsa_plus_score, response_method="predict_proba")
    with pytest.raises(ValueError, match="look like labels"):
        TunedThresholdClassifierCV(LogisticRegression(), scoring=scorer).fit(*binary)


# Objects -------------------------------------------------------------------------------------


def test_object_is_copied_pickled_and_written_down():
    scorer = get_scorer("cwsa_plus", threshold=0.8, min_coverage=0.5)
    assert repr(scorer) == "get_scorer('cwsa_plus', threshold=0.8, min_coverage=0.5)"
    assert repr(eval(repr(scorer), {"get_scorer": get_scorer})) == repr(scorer)
    for same in (copy.deepcopy(scorer), pickle.loads(pickle.dumps(scorer))):
        assert repr(same) == repr(scorer)
    assert scorer.__name__ == "cwsa_plus"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "aurc"}, "use 'neg_aurc'"),
        ({"name": "hope"}, "name must be one of"),
        ({"name": "cwsa_plus", "max_risk": 0.1}, "max_risk: the metric 'cwsa_plus' has no such"),
        ({"name": "coverage_at_risk"}, "max_risk is missing"),
        ({"name": "cwsa_plus", "threshold": 1.0}, r"threshold must lie in \[0, 1\)"),
        ({"name": "neg_aurc", "min_coverage": 0.5}, "min_coverage goes with a metric at a"),
        ({"name": "coverage", "min_coverage": 2}, "min_coverage must be a number"),
    ],
)
def test_bad_requests_are_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        get_scorer(**arguments)


def test_bad_values_fail_where_they_are_written():
    with pytest.raises(ValueError, match="positive must be one of"):
        get_scorer("failure_average_precision", positive="foo")
    with pytest.raises(ValueError, match="more of this area is worse"):
        get_scorer("aumcc", metric="selective_risk")


def test_abstaining_never_pays_more_than_its_worst_cost(binary):
    X, y = binary
    model = GaussianNB().fit(X, y)
    scorer = get_scorer("neg_selective_cost", threshold=2, abstention_cost=5.0, min_coverage=0.5)
    assert scorer(model, X, y) == -5.0


def test_scorer_equals_metric_with_sign(data):
    X, y = data
    model = GaussianNB().fit(X, y)
    proba = model.predict_proba(X)
    needed = {"coverage_at_risk": {"max_risk": 0.1}, "risk_at_coverage": {"coverage": 0.5},
              "review_rate_at_reliability": {"reliability": 0.9}}  # fmt: skip
    for name, spec in SPECS.items():
        if name == "auroc_aurc":  # defined for two classes only
            continue
        params = needed.get(name, {})
        value = spec.function(y, proba, **params)
        scored = get_scorer(spec.scorer_name, **params)(model, X, y)
        value = abs(value) if spec.signed else value
        assert scored == pytest.approx(value if spec.greater_is_better else -value, rel=1e-12)


def test_weights_reach_the_metric(binary):
    X, y = binary
    model, weight = GaussianNB().fit(X, y), np.random.default_rng(0).integers(1, 4, len(y))
    scored = get_scorer("cwsa_plus")(model, X, y, sample_weight=weight)
    expected = cwsa_plus_score(y, model.predict_proba(X), sample_weight=weight)
    assert scored == pytest.approx(expected)


def test_weights_can_be_routed(binary):
    X, y = binary
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = get_scorer("cwsa_plus").set_score_request(sample_weight=True)
        model = GaussianNB().set_fit_request(sample_weight=False)
        got = cross_validate(model, X, y, scoring=scorer, params={"sample_weight": weight},
                             return_estimator=True, return_indices=True)  # fmt: skip
    for k, fitted in enumerate(got["estimator"]):
        rows = got["indices"]["test"][k]
        expected = cwsa_plus_score(
            y[rows], fitted.predict_proba(X[rows]), sample_weight=weight[rows]
        )
        assert got["test_score"][k] == pytest.approx(expected)


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


def test_a_class_missing_in_the_test_fold_changes_no_column(data):
    X, y = data
    model = GaussianNB().fit(X, y)
    rows = y == 2
    proba = model.predict_proba(X[rows])
    kept = proba.max(axis=1) >= 0.5
    expected = np.mean(proba.argmax(axis=1)[kept] == 2)
    assert get_scorer("selective_accuracy")(model, X[rows], y[rows]) == pytest.approx(expected)


def test_folds_of_one_class_each_still_score(data):
    X, y = data
    scores = cross_val_score(GaussianNB(), X, y, cv=PredefinedSplit(y), scoring="neg_augrc")
    np.testing.assert_allclose(scores, -0.5, atol=1e-12)  # each test class is unknown: all wrong


def test_labels_of_another_kind_are_an_error(data):
    X, y = data
    model = GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match="same kind"):
        get_scorer("cwsa_plus")(model, X, y.astype(str))


# Abstaining estimators -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def abstainer(binary):
    return SelectiveClassifier(
        GaussianNB(), threshold=0.8, calibration="platt", random_state=0
    ).fit(*binary)


def test_its_own_threshold_counts(abstainer, binary):
    X, y = binary
    expected = cwsa_plus_score(y, abstainer.predict_proba(X), threshold=0.8)
    assert get_scorer("cwsa_plus")(abstainer, X, y) == pytest.approx(expected)
    other = cwsa_plus_score(y, abstainer.predict_proba(X), threshold=0.6)
    assert get_scorer("cwsa_plus", threshold=0.6)(abstainer, X, y) == pytest.approx(other)


def test_its_own_confidence_counts_but_not_where_a_probability_is_needed(binary):
    X, y = binary
    model = SelectiveClassifier(GaussianNB(), threshold=0.7, confidence="entropy").fit(X, y)
    proba = model.predict_proba(X)
    expected = cwsa_plus_score(y, proba, threshold=0.7, confidence="entropy")
    assert get_scorer("cwsa_plus")(model, X, y) == pytest.approx(expected)
    ece = SPECS["ece"].function(y, proba)
    assert get_scorer("neg_ece")(model, X, y) == pytest.approx(-ece)


def test_never_abstaining_is_scored_at_one_half(binary):
    X, y = binary
    plain = GaussianNB().fit(X, y)
    wrapped = SelectiveClassifier(GaussianNB()).fit(X, y)
    expected = cwsa_plus_score(y, plain.predict_proba(X), threshold=0.5)
    for model in (plain, wrapped):
        assert get_scorer("cwsa_plus")(model, X, y) == pytest.approx(expected)


def test_found_inside_pipeline_search_and_frozen(abstainer, binary):
    X, y = binary
    scorer = get_scorer("coverage")
    scaler = StandardScaler(with_mean=False, with_std=False).fit(X)
    base = SelectiveClassifier(GaussianNB(), threshold=0.8, calibration="platt", random_state=0)
    expected = scorer(abstainer, X, y)
    assert 0 < expected < 1
    nested = [
        make_pipeline(scaler, base).fit(X, y),
        GridSearchCV(base, {"threshold": [0.8]}).fit(X, y),
        FrozenEstimator(abstainer),
        GridSearchCV(make_pipeline(scaler, base), {"selectiveclassifier__threshold": [0.8]}).fit(
            X, y
        ),
        make_pipeline(scaler, FrozenEstimator(abstainer)),
        FrozenEstimator(make_pipeline(scaler, base).fit(X, y)),
    ]
    for model in nested:
        assert scorer(model, X, y) == expected


def test_transformers_before_it_are_applied(binary):
    X, y = binary
    scaled = make_pipeline(
        StandardScaler(), SelectiveClassifier(LogisticRegression(), threshold=0.8)
    )
    scaled.fit(X, y)
    inner = SelectiveClassifier(LogisticRegression(), threshold=0.8)
    inner.fit(StandardScaler().fit_transform(X), y)
    direct = get_scorer("coverage")(inner, StandardScaler().fit_transform(X), y)
    assert get_scorer("coverage")(scaled, X, y) == direct < 1


def test_a_tuner_is_scored_at_its_threshold(binary):
    X, y = binary
    tuner = ThresholdTuner(GaussianNB(), objective="coverage", target=0.6, cv=5).fit(X, y)
    assert get_scorer("coverage")(tuner, X, y) == np.mean(tuner.accepts(X))


def test_a_grid_over_thresholds_does_not_reward_abstaining_on_everything(binary):
    grid = {"threshold": [0.5, 0.8, np.inf]}
    for scoring in ("cwsa", "cwsa_plus", "selective_accuracy", get_scorer("neg_selective_risk"),
                    get_scorer("neg_generalized_risk")):  # fmt: skip
        search = GridSearchCV(SelectiveClassifier(GaussianNB()), grid, scoring=scoring)
        assert search.fit(*binary).best_params_["threshold"] < np.inf


@pytest.mark.parametrize("name", [s.scorer_name for s in SPECS.values() if s.at_threshold])
def test_too_little_coverage_gets_the_worst_value(name, abstainer, binary):
    spec = next(s for s in SPECS.values() if s.scorer_name == name)
    worst = spec.worst if spec.greater_is_better else -spec.worst
    assert get_scorer(name, min_coverage=1.0)(abstainer, *binary) == worst


def test_min_coverage_that_is_just_reached_counts(binary):
    X, y = binary
    model = GaussianNB().fit(X, y)
    c = np.sort(model.predict_proba(X[:10]).max(axis=1))[::-1]
    for k in range(1, 10):
        scorer = get_scorer("coverage", threshold=float(c[k - 1]), min_coverage=k / 10)
        assert scorer(model, X[:10], y[:10], sample_weight=np.full(10, 0.7)) > 0


def test_a_classifier_without_probabilities_is_told_what_to_do(binary):
    with pytest.raises(ValueError, match="calibration='temperature'"):
        get_scorer("cwsa_plus")(LinearSVC().fit(*binary), *binary)


# One prediction, many metrics --------------------------------------------------------------------


class CountingNB(GaussianNB):
    calls = 0

    def predict_proba(self, X):
        type(self).calls += 1
        return super().predict_proba(X)


def test_selective_scoring_predicts_once(data):
    X, y = data
    model = CountingNB().fit(X, y)
    names = ["cwsa_plus", "neg_aurc", "neg_augrc", "coverage", "neg_ece"]
    CountingNB.calls = 0
    scores = selective_scoring(*names)(model, X, y)
    assert CountingNB.calls == 1
    assert scores == {name: get_scorer(name)(model, X, y) for name in names}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_selective_scoring_in_a_search(data, n_jobs):
    scoring = selective_scoring("cwsa_plus", get_scorer("coverage_at_risk", max_risk=0.1))
    search = GridSearchCV(GaussianNB(), GRID, scoring=scoring, refit="cwsa_plus", n_jobs=n_jobs)
    assert "mean_test_coverage_at_risk" in search.fit(*data).cv_results_


def test_selective_scoring_with_names_of_ones_own(data):
    strict, loose = (get_scorer("coverage_at_risk", max_risk=r) for r in (0.02, 0.3))
    with pytest.raises(ValueError, match="'coverage_at_risk' is given twice"):
        selective_scoring(strict, loose)
    model = GaussianNB().fit(*data)
    scores = selective_scoring("coverage", strict=strict, loose=loose)(model, *data)
    assert list(scores) == ["coverage", "strict", "loose"]
    assert scores["strict"] == strict(model, *data) < scores["loose"] == loose(model, *data)


def test_selective_scoring_needs_a_name():
    with pytest.raises(ValueError, match="at least one"):
        selective_scoring()


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


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_on_accepted_in_a_cross_validation_with_booleans(binary):
    X, y = binary
    model = SelectiveClassifier(GaussianNB(), threshold=0.8)
    for scoring in ("accuracy", "balanced_accuracy", on_accepted("f1"), on_accepted("f1_macro")):
        scores = cross_val_score(model, X, y == 1, scoring=scoring, error_score="raise")
        np.testing.assert_array_equal(scores, cross_val_score(model, X, y, scoring=scoring))


def test_on_accepted_hands_over_labels_in_their_own_dtype(binary):
    def same_kind(y_true, y_pred):
        assert y_true.dtype == y_pred.dtype == bool
        return float(np.mean(~(y_true ^ y_pred)))

    X, y = binary[0], binary[1] > 0
    model = SelectiveClassifier(GaussianNB(), threshold=0.8)
    inside = make_pipeline(StandardScaler(), model).fit(X, y)
    tuner = ThresholdTuner(GaussianNB(), objective="coverage", target=0.5, cv=5).fit(X, y)
    for estimator in (model.fit(X, y), inside, tuner, FrozenEstimator(model)):
        assert 0.5 < on_accepted(make_scorer(same_kind))(estimator, X, y) <= 1


def test_on_accepted_below_min_coverage_is_nan(abstainer, binary):
    nothing = SelectiveClassifier(GaussianNB(), threshold=np.inf).fit(*binary)
    for scorer, model in [
        (on_accepted("accuracy", min_coverage=1.0), abstainer),
        (on_accepted("accuracy"), nothing),
    ]:
        with pytest.warns(UserWarning, match="on_accepted is nan: the estimator accepts a share"):
            assert np.isnan(scorer(model, *binary))


def test_on_accepted_refuses_nonsense():
    with pytest.raises(ValueError, match="scoring"):
        on_accepted("accuracyy")
    with pytest.raises(ValueError, match="threshold"):
        on_accepted("accuracy", threshold=np.nan)


def test_public_names_are_importable():
    assert {"get_scorer", "selective_scoring", "on_accepted"} <= set(skselect.scoring.__all__)
