"""XGBoost trains with the objectives, inside searches and selective classifiers too."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV

from skselect import SelectiveClassifier, ThresholdTuner
from skselect.losses import CAUObjective, SoftCWSAObjective
from tests.losses.cases import OBJECTIVES, brute, rows

with_objectives = pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
both = pytest.mark.parametrize("n_classes", [2, 3])


@pytest.fixture
def xgboost():
    return pytest.importorskip("xgboost")


def table(n_classes, n=240):
    return make_classification(
        n, n_features=6, n_informative=4, n_classes=n_classes, flip_y=0.1, random_state=0
    )


def boosted(xgboost, objective, **options):
    options = {"n_estimators": 5, "max_depth": 2, "n_jobs": 1, "base_score": 0.5} | options
    return xgboost.XGBClassifier(objective=objective, **options)


# What XGBoost is told --------------------------------------------------------------------


@with_objectives
@both
def test_the_loss_is_a_sum_of_rows_and_falls_by_newton_steps(objective, n_classes):
    logits, codes, weight = rows(n_classes, n=40)
    binary = n_classes == 2
    margin = logits[:, 1] - logits[:, 0] if binary else logits

    def value(margin):
        table = np.stack([0 * margin, margin], axis=1) if binary else margin
        return brute(objective, table, codes, weight)

    gradient, hessian = objective(codes.astype(np.float32), margin, sample_weight=weight)
    assert gradient.shape == hessian.shape == margin.shape
    step = 1e-5 * gradient
    change = weight.sum() * (value(margin + step) - value(margin - step))
    assert change == pytest.approx(2 * np.sum(gradient * step), rel=1e-4)
    assert value(margin - 0.1 * gradient / hessian) < value(margin)


@with_objectives
@both
@pytest.mark.parametrize("scale", [0.0, 1e-4, 1.0, 1e4])
def test_second_derivatives_are_positive_and_single_precision_holds_all(
    objective, n_classes, scale
):
    logits, codes, _ = rows(n_classes, n=50)
    margin = (scale * (logits[:, 1] if n_classes == 2 else logits)).astype(np.float32)
    gradient, hessian = objective(codes, margin)
    assert np.all(np.isfinite(gradient.astype(np.float32)))
    assert np.all(hessian.astype(np.float32) > 0)


@with_objectives
def test_two_classes_are_softmax_with_two_columns(objective):
    logits, codes, _ = rows(2)
    margin = logits[:, 1] - logits[:, 0]
    gradient, hessian = objective(codes, margin)
    gradients, hessians = objective(codes, logits)
    np.testing.assert_allclose(gradient, gradients[:, 1], rtol=1e-9)
    np.testing.assert_allclose(-gradient, gradients[:, 0], rtol=1e-9)
    np.testing.assert_allclose(hessian, hessians[:, 1] / 2, rtol=1e-9)


# Objects ---------------------------------------------------------------------------------


@with_objectives
def test_they_are_plain_values(objective):
    for other in (copy.deepcopy(objective), pickle.loads(pickle.dumps(objective))):
        assert other == objective
    assert len({objective, copy.copy(objective)}) == 1
    assert repr(objective).startswith(type(objective).__name__)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (CAUObjective, {"alpha": -1}), (CAUObjective, {"alpha": np.inf}),
        (CAUObjective, {"lambda_": "1"}), (CAUObjective, {"variant": "log"}),
        (SoftCWSAObjective, {"threshold": 1.0}), (SoftCWSAObjective, {"temperature": 0}),
        (SoftCWSAObjective, {"alpha": None}),
    ],
)  # fmt: skip
def test_wrong_parameters_are_named(kind, wrong):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} must be"):
        kind(**wrong)


# XGBoost ---------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("objective", [CAUObjective(alpha=0), SoftCWSAObjective(alpha=0)], ids=str)
def test_alpha_0_is_what_xgboost_does_itself(xgboost, objective, n_classes):
    X, y = table(n_classes)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    own = boosted(xgboost, "binary:logistic").fit(X, y, sample_weight=weight)
    ours = boosted(xgboost, objective).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.predict_proba(X), own.predict_proba(X), atol=1e-5)


@with_objectives
@both
def test_probabilities_survive_clone_pickle_and_file(xgboost, objective, n_classes, tmp_path):
    X, y = table(n_classes)
    model = boosted(xgboost, objective).fit(X, y)
    proba = model.predict_proba(X)
    assert proba.shape == (len(y), n_classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), proba.argmax(axis=1))
    assert (model.predict(X) == y).mean() > 0.6
    model.save_model(tmp_path / "model.json")
    loaded = xgboost.XGBClassifier()
    loaded.load_model(tmp_path / "model.json")
    for other in (clone(model).fit(X, y), pickle.loads(pickle.dumps(model)), loaded):
        np.testing.assert_array_equal(other.predict_proba(X), proba)


@pytest.mark.parametrize("objective", OBJECTIVES[:2], ids=str)
@both
def test_a_weight_of_two_is_the_row_twice(xgboost, objective, n_classes):
    X, y = table(n_classes, n=60)
    counts = np.where(np.arange(len(y)) % 3 == 0, 2, 1)
    weighted = boosted(xgboost, objective, tree_method="exact").fit(X, y, sample_weight=counts)
    again = boosted(xgboost, objective, tree_method="exact")
    again.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.predict_proba(X), again.predict_proba(X), atol=1e-4)


def test_inside_a_selective_classifier_and_a_search(xgboost):
    X, codes = table(3)
    X = pd.DataFrame(X, columns=list("abcdef")).assign(
        kind=pd.Categorical(np.where(codes > 0, "yes", "no"))
    )
    X.loc[::7, "a"] = np.nan
    y = np.array(["low", "middle", "high"])[codes]
    model = SelectiveClassifier(
        boosted(xgboost, "binary:logistic", base_score=None, enable_categorical=True),
        calibration="temperature", cv=2,
    )  # fmt: skip
    choices = ["binary:logistic", CAUObjective(alpha=0.1), SoftCWSAObjective()]
    search = GridSearchCV(
        model, {"estimator__objective": choices}, scoring="neg_augrc", cv=2, error_score="raise"
    ).fit(X, y)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.best_params_["estimator__objective"] in choices
    tuner = ThresholdTuner(
        clone(model).set_params(estimator__objective=choices[1]),
        objective="risk", target=0.3, random_state=0,
    ).fit(X, y)  # fmt: skip
    again = pickle.loads(pickle.dumps(tuner))
    np.testing.assert_array_equal(again.predict(X), tuner.predict(X))


def test_other_ways_to_call_xgboost_are_refused(xgboost):
    X, y = table(2)
    with pytest.raises(ValueError, match="DMatrix; it is for XGBClassifier"):
        xgboost.train({}, xgboost.DMatrix(X, y), num_boost_round=1, obj=CAUObjective())
    regressor = xgboost.XGBRegressor(objective=SoftCWSAObjective(), n_estimators=1, n_jobs=1)
    for labels in (y + 0.5, y - 1, y + 1):
        with pytest.raises(ValueError, match="labels that are not 0 to 1; it is for XGBClass"):
            regressor.fit(X, labels)
