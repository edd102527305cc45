"""Labels of every kind, and every index, give the same probabilities under each calibration."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skselect import SelectiveClassifier
from skselect.calibration._calibrators import CALIBRATORS
from skselect.calibration._scopes import SCOPES
from tests.calibration.cases import calibrated, table
from tests.kinds import THREE, TWO, shuffled_index


def proba(kind, X, y, estimator=None):
    return calibrated(kind, X, y, estimator).predict_proba(X)


@pytest.mark.parametrize("kind", CALIBRATORS)
@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two classes", "three classes"])
def test_labels_and_tables_of_every_kind(kind, labels):
    X, codes = table(2 if labels is TWO else 3)
    frame = pd.DataFrame(X, index=shuffled_index(X), columns=list("abc"))
    expected = proba(kind, X, codes)
    for name, values in labels.items():
        y = values[codes]
        for features, column in ((X, y), (frame, pd.Series(y, index=frame.index))):
            found = proba(kind, features, column)
            np.testing.assert_allclose(found, expected, atol=1e-12, err_msg=name)


ESTIMATORS = {
    "LinearSVC": lambda: LinearSVC(random_state=0),
    "RidgeClassifier": RidgeClassifier,
    "MLP": lambda: make_pipeline(
        StandardScaler(), MLPClassifier((5,), max_iter=30, random_state=0)
    ),
    "XGBoost": lambda: pytest.importorskip("xgboost").XGBClassifier(
        n_estimators=8, max_depth=2, n_jobs=1
    ),
}


@pytest.mark.parametrize("kind", CALIBRATORS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_decision_values_pipelines_and_trees(kind, n_classes, estimator):
    X, codes = table(n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # thirty rounds of training are enough here
        found = proba(kind, X, codes, ESTIMATORS[estimator]())
    assert found.shape == (240, n_classes)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)
    assert np.mean(found.argmax(axis=1) == codes) > 0.5
    if kind != "isotonic":
        assert found.max() < 1.0


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_a_class_of_two_table(kind):
    X, codes = table(3)
    rare = np.where(np.arange(240) < 2, 2, codes % 2)
    found = proba(kind, X, rare)
    assert np.all(np.isfinite(found))
    assert not np.any(found[2:].argmax(axis=1) == 2)


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_a_classifier_that_only_says_0_and_1(kind):
    X, codes = table(2)
    found = proba(kind, X, codes, DecisionTreeClassifier(random_state=0))
    assert len(np.unique(found[:, 1])) == 2
    sure = found.max(axis=1)
    assert np.all((sure > 0.5) & (sure < 0.99))


@pytest.mark.parametrize("kind", CALIBRATORS)
@pytest.mark.parametrize(("name", "rare", "count"), [("wine_quality", 9, 5), ("nursery", None, 2)])
def test_classes_of_a_few_rows_on_real_data(name, rare, count, kind, data_folder):
    """Most folds lack such a class, or hold it out whole."""
    frame = pd.read_parquet(data_folder / f"{name}.parquet")
    counts = frame["target"].value_counts()
    rare = counts.idxmin() if rare is None else rare
    assert counts[rare] == count
    frame = pd.concat([frame[frame["target"] == rare], frame[frame["target"] != rare][:1500]])
    X = pd.get_dummies(frame.drop(columns="target")).to_numpy(dtype=float)
    y = frame["target"].to_numpy()
    with warnings.catch_warnings():
        warnings.filterwarnings("error")
        model = calibrated(kind, X, y, GaussianNB(var_smoothing=1e-3), cv=5)
        found = model.predict_proba(X)
    assert found.shape == (len(y), frame["target"].nunique())
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)
    if kind not in ("isotonic", "temperature"):
        column = model.classes_.tolist().index(rare)
        assert found[:, column].mean() < 0.05


@pytest.mark.parametrize("kind", CALIBRATORS)
@pytest.mark.parametrize("scope", SCOPES)
def test_one_class_is_left_as_it_is(kind, scope):
    """A classifier that was trained on a single class: there is nothing to calibrate."""
    X, y = table(2)[0], np.zeros(240, int)
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    model = calibrated(kind, X, y, frozen, calibration_scope=scope)
    np.testing.assert_array_equal(model.predict_proba(X), 1.0)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_temperature_needs_a_fold_that_knows_all_classes(n_classes):
    """Decision values of a class that no fold knows say nothing about one temperature."""
    X, codes = table(n_classes)
    model = SelectiveClassifier(RidgeClassifier(), calibration="temperature", cv=LeaveOneGroupOut())
    with pytest.raises(ValueError, match="trained without that class"):
        model.fit(X, codes, groups=codes)
    codes[0], codes[-1] = 8, 9  # a class of one row in each half
    with pytest.raises(ValueError, match="every fold lacks a class; use stratified folds"):
        model.fit(X, codes, groups=np.arange(len(codes)) // (len(codes) // 2))
