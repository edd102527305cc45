"""The calibration report against scikit-learn's parts, put together by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GroupKFold,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from skselect import PrecomputedClassifier, SelectiveClassifier, calibration_report
from skselect.calibration import PlattCalibrator
from skselect.calibration._calibrators import CALIBRATORS
from skselect.metrics import aurc_score, csr_score, expected_calibration_error
from tests.refusals import check_refused

CV = StratifiedKFold(4)


def rows(n_classes=2, n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 4)) + 0.7 * y[:, None], y


def cross_fitted(score, target, y):
    """Return an isotonic map of the scores of each fold, fitted to those of the others."""
    found = np.empty(len(score))
    for train, test in CV.split(score[:, None], y):
        map_ = IsotonicRegression(out_of_bounds="clip").fit(score[train], target[train])
        found[test] = map_.predict(score[test])
    return found


def test_raw_is_cross_validated():
    X, y = rows(3)
    table = calibration_report(GaussianNB(), X, y, calibrations=[], cv=CV)
    proba = cross_val_predict(GaussianNB(), X, y, cv=CV, method="predict_proba")
    expected = {
        "log_loss": log_loss(y, proba),
        "brier": np.mean(np.sum((proba - np.eye(3)[y]) ** 2, axis=1)),
        "ece": expected_calibration_error(y, proba),
        "csr": csr_score(y, proba),
        "aurc": aurc_score(y, proba),
    }
    assert table.loc["raw", list(expected)].to_dict() == pytest.approx(expected)


@pytest.mark.parametrize("cv", [CV, list(CV.split(*rows()))], ids=["splitter", "splits"])
def test_isotonic_is_cross_fitted(cv):
    X, y = rows()
    given = iter(cv) if isinstance(cv, list) else cv  # an iterator can be used once
    table = calibration_report(GaussianNB(), X, y, calibrations=["isotonic"], cv=given)
    raw = cross_val_predict(GaussianNB(), X, y, cv=CV, method="predict_proba")[:, 1]
    calibrated = cross_fitted(raw, y, y)
    row = table.loc["isotonic"]
    assert row["brier"] == pytest.approx(2 * brier_score_loss(y, calibrated))
    assert row["log_loss"] == pytest.approx(log_loss(y, calibrated))
    assert row["aurc"] == pytest.approx(aurc_score(y, calibrated))


def test_scope_confidence_leaves_the_probabilities():
    X, y = rows(3)
    table = calibration_report(GaussianNB(), X, y, calibration_scope="confidence", cv=CV)
    assert list(table.index) == ["raw", *CALIBRATORS]
    assert np.ptp(table["log_loss"]) == 0
    assert table["ece"].nunique() == len(table)
    proba = cross_val_predict(GaussianNB(), X, y, cv=CV, method="predict_proba")
    right = proba.argmax(axis=1) == y
    calibrated = cross_fitted(proba.max(axis=1), right, y)
    brier = np.mean((calibrated - right) ** 2)
    assert table.loc["isotonic", "top_label_brier"] == pytest.approx(brier)


def test_a_frozen_or_precomputed_classifier_is_used_as_it_is():
    X, y = rows(3)
    frozen = GaussianNB().fit(X[:150], y[:150])
    table = calibration_report(FrozenEstimator(frozen), X[150:], y[150:], cv=3, random_state=0)
    proba = frozen.predict_proba(X[150:])
    assert table.loc["raw", "log_loss"] == pytest.approx(log_loss(y[150:], proba))
    stored = PrecomputedClassifier([0, 1, 2])
    again = calibration_report(stored, proba, y[150:], cv=3, random_state=0)
    pd.testing.assert_frame_equal(again, table)


def test_weights_are_repeated_rows_for_a_frozen_classifier():
    X, y = rows()
    frozen = FrozenEstimator(GaussianNB().fit(X[:100], y[:100]))
    X, y = X[100:], y[100:]
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    parts = [(np.arange(100), np.arange(100, 200)), (np.arange(100, 200), np.arange(100))]
    where = np.repeat(np.arange(200), weight)
    repeated = [
        (np.flatnonzero(np.isin(where, train)), np.flatnonzero(np.isin(where, test)))
        for train, test in parts
    ]
    options = {"calibrations": ["isotonic", "platt", "smooth_isotonic"]}
    one = calibration_report(frozen, X, y, cv=parts, sample_weight=weight, **options)
    other = calibration_report(frozen, X[where], y[where], cv=repeated, **options)
    assert one["csr_p_value"].isna().all()
    assert (one["calibrated"] == "unclear").all()
    columns = one.columns.drop(["csr_p_value", "p_risk", "calibrated"])
    np.testing.assert_allclose(one[columns], other[columns], rtol=1e-6)


def test_decision_values_have_no_raw_row():
    X, y = rows(3)
    table = calibration_report(LinearSVC(), X, y, calibrations=["platt", "temperature"], cv=3)
    assert list(table.index) == ["platt", "temperature"]
    with pytest.raises(ValueError, match=r"leaves predict_proba as it is, but LinearSVC has none"):
        calibration_report(LinearSVC(), X, y, calibration_scope="confidence")


def test_labels_groups_and_objects():
    X, y = rows(2)
    plain = calibration_report(GaussianNB(), X, y, calibrations=["platt"], cv=3, random_state=0)
    named = calibration_report(
        GaussianNB(), pd.DataFrame(X, columns=list("abcd")),
        pd.Series(np.array(["no", "yes"])[y], index=np.arange(300)[::-1] + 7),
        calibrations={"platt": PlattCalibrator()}, cv=3, random_state=0,
    )  # fmt: skip
    pd.testing.assert_frame_equal(named, plain)
    listed = calibration_report(GaussianNB(), X, y, calibrations=[PlattCalibrator()], cv=3)
    assert list(listed.index) == ["raw", "PlattCalibrator"]
    groups = np.arange(300) // 10
    grouped = calibration_report(
        GaussianNB(), X, y, calibrations=["platt"], cv=GroupKFold(3), groups=groups
    )
    assert grouped.loc["platt", "log_loss"] != plain.loc["platt", "log_loss"]


@pytest.mark.parametrize(("argument", "value"), [
    ("calibrations", "platt"), ("calibration", ["hope"]), ("None", [None]),
    ("calibrations", {"raw": "platt"}), ("calibrations", [PlattCalibrator()] * 2),
    ("calibration_scope", "all"), ("n_draws", 0), ("n_draws", 58), ("random_state", "x"),
    ("sample_weight", [1, 2]), ("y", np.zeros(300, dtype=int)),
    ("cv", [(np.arange(9), np.arange(9, 300))]),
])  # fmt: skip
def test_bad_arguments_are_named(argument, value):
    X, y = rows()
    name = "calibrations" if argument in ("calibration", "None") else argument
    given = {"estimator": GaussianNB(), "X": X, "y": y, name: value}
    check_refused(argument, lambda: calibration_report(**given))


def test_a_class_that_a_fold_lacks():
    X, y = rows(3, n=150)
    y = np.where(np.arange(150) == 7, 5, y)
    for estimator in (RidgeClassifier(), GaussianNB()):
        table = calibration_report(estimator, X, y, cv=3)
        assert np.isfinite(table.drop(columns=["csr_p_value", "calibrated"])).all(axis=None)


def test_estimators_are_taken_and_refused_as_by_selective_classifier():
    X, y = rows(2, n=120)
    stack = StackingClassifier([("a", GaussianNB()), ("b", LogisticRegression())])
    assert "raw" in calibration_report(stack, X, y, calibrations=["platt"], cv=2).index
    cut = FixedThresholdClassifier(GaussianNB(), threshold=0.1)
    for estimator in (cut, SelectiveClassifier(GaussianNB(), threshold=0.9)):
        check_refused("estimator", calibration_report, estimator, X, y)
    with pytest.warns(UserWarning, match="already fitted"):
        calibration_report(GaussianNB().fit(X, y), X, y, calibrations=["platt"])


def test_n_jobs_changes_nothing():
    X, y = load_breast_cancer(return_X_y=True)
    one, two = (
        calibration_report(GaussianNB(), X, y, calibrations=["platt"], n_draws=59, random_state=0,
                           n_jobs=n_jobs)
        for n_jobs in (None, 2)
    )  # fmt: skip
    pd.testing.assert_frame_equal(one, two, check_exact=True)
