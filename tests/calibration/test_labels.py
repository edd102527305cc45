"""Labels of every kind, and every index, give the same probabilities under each calibration."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skselect import SelectiveClassifier
from skselect.calibration import CALIBRATORS

TWO = {
    "{-1, 1}": np.array([-1, 1]),
    "{1, 2}": np.array([1, 2]),
    "{0, 2}": np.array([0, 2]),
    "strings": np.array(["no", "yes"]),
    "booleans": np.array([False, True]),
}
THREE = {
    "{1, 2, 3}": np.array([1, 2, 3]),
    "{10, 20, 30}": np.array([10, 20, 30]),
    "{-1, 0, 1}": np.array([-1, 0, 1]),
    "strings": np.array(["a", "b", "c"]),
}


def rows(n_classes, n=240):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 3)) + 0.8 * codes[:, None], codes


def proba(kind, X, y, estimator=None):
    model = SelectiveClassifier(estimator or GaussianNB(), calibration=kind, cv=3)
    return model.fit(X, y).predict_proba(X)


@pytest.mark.parametrize("kind", CALIBRATORS)
@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two classes", "three classes"])
def test_labels_of_every_kind(kind, labels):
    X, codes = rows(2 if labels is TWO else 3)
    expected = proba(kind, X, codes)
    for name, values in labels.items():
        np.testing.assert_allclose(
            proba(kind, X, values[codes]), expected, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_a_shuffled_index_without_zero(kind):
    X, codes = rows(3)
    index = np.random.default_rng(1).permutation(240) + 1000
    y = pd.Series(codes, index=index)
    np.testing.assert_allclose(proba(kind, X, y), proba(kind, X, codes), atol=1e-12)
    frame = pd.DataFrame(X, index=index, columns=list("abc"))
    np.testing.assert_allclose(proba(kind, frame, y), proba(kind, X, codes), atol=1e-12)


@pytest.mark.parametrize("kind", CALIBRATORS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVC(random_state=0),
        RidgeClassifier(),
        make_pipeline(StandardScaler(), MLPClassifier((5,), max_iter=30, random_state=0)),
    ],
    ids=["LinearSVC", "RidgeClassifier", "MLP"],
)
def test_decision_values_and_pipelines(kind, n_classes, estimator):
    X, codes = rows(n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # thirty rounds of training are enough here
        found = proba(kind, X, codes, estimator)
    assert found.shape == (240, n_classes)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)
    assert np.mean(found.argmax(axis=1) == codes) > 0.5
    if kind != "isotonic":
        assert found.max() < 1.0


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_a_class_of_two_rows(kind):
    X, codes = rows(3)
    rare = np.where(np.arange(240) < 2, 2, codes % 2)
    found = proba(kind, X, rare)
    assert np.all(np.isfinite(found))
    assert not np.any(found[2:].argmax(axis=1) == 2)
