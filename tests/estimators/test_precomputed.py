"""Stored predictions serve calibration, tuning, searches and scorers like a classifier."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

from skselect import (
    AbstentionPolicy,
    PrecomputedClassifier,
    Predictions,
    SelectiveClassifier,
    ThresholdTuner,
    calibration_report,
    certify,
)
from skselect.metrics._areas import augrc_score

CLASSES = ["cat", "dog", "owl"]


@pytest.fixture
def answers():
    """Return logits of three classes that are too sure, and the true labels."""
    rng = np.random.default_rng(0)
    calibrated = rng.normal(0, 1.5, (600, 3))
    codes = np.array([rng.choice(3, p=p) for p in softmax(calibrated, axis=1)])
    return 2 * calibrated, np.array(CLASSES)[codes]


@pytest.mark.parametrize(
    ("kind", "turn"),
    [
        ("proba", lambda z: softmax(z, axis=1)),
        ("logit", lambda z: z + 5.0),
        ("logprob", lambda z: log_softmax(z, axis=1)),
    ],
)
def test_all_kinds_are_the_same_probabilities(answers, kind, turn):
    logits, y = answers
    model = PrecomputedClassifier(CLASSES, kind=kind)
    np.testing.assert_allclose(
        model.predict_proba(turn(logits)), softmax(logits, axis=1), atol=1e-12
    )
    assert model.fit(turn(logits), y).classes_.tolist() == CLASSES


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("proba", [0.2, 0.9, 0.5]),
        ("logit", np.log([0.25, 9.0, 1.0])),
        ("logprob", np.log([0.2, 0.9, 0.5])),
    ],
)
@pytest.mark.parametrize("shape", [(-1, 1), (-1,)])
def test_one_column_is_that_of_the_second_class(kind, column, shape):
    model = PrecomputedClassifier([0, 1], kind=kind)
    found = model.predict_proba(np.reshape(column, shape))
    np.testing.assert_allclose(found, [[0.8, 0.2], [0.1, 0.9], [0.5, 0.5]], atol=1e-12)


@pytest.mark.parametrize("kind", ["proba", "logit", "logprob"])
def test_two_bare_numbers_are_neither_one_row_nor_two(kind):
    model = PrecomputedClassifier([0, 1], kind=kind)
    row = np.log([0.9, 0.1]) if kind != "proba" else np.array([0.9, 0.1], dtype=np.float32)
    for X in (row, row.tolist(), pd.Series(row)):
        for ask in (model.predict_proba, model.predict, model.fit):
            with pytest.raises(ValueError, match=r"One row: pass \[\[.*two rows: pass a col"):
                ask(X)
    assert model.predict(row[None]).tolist() == [0]
    assert len(model.predict(row[:, None])) == 2


def test_columns_are_found_by_name_or_position(answers):
    logits, _ = answers
    expected = PrecomputedClassifier(CLASSES, kind="logit").predict_proba(logits)
    frame = pd.DataFrame(logits, columns=CLASSES)
    mixed = frame[["owl", "cat", "dog"]]
    by_name = PrecomputedClassifier(CLASSES, kind="logit")
    np.testing.assert_array_equal(by_name.predict_proba(mixed), expected)
    np.testing.assert_array_equal(by_name.predict_proba(pl.from_pandas(mixed)), expected)
    wide = mixed.assign(id=1, note="x")
    chosen = PrecomputedClassifier(CLASSES, columns=CLASSES, kind="logit")
    np.testing.assert_array_equal(chosen.predict_proba(wide), expected)
    np.testing.assert_array_equal(chosen.predict_proba(pl.from_pandas(wide)), expected)
    placed = PrecomputedClassifier(CLASSES, columns=[1, 2, 0], kind="logit")
    np.testing.assert_array_equal(placed.predict_proba(mixed.to_numpy()), expected)


def test_nothing_warns_that_it_is_fitted_already(answers):
    logits, y = answers
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SelectiveClassifier(PrecomputedClassifier(CLASSES, kind="logit"), threshold=0.8).fit(
            logits, y
        )


def test_a_deep_net_can_be_calibrated_and_scored(answers):
    """The same as logistic regression on the logits, seen as a table of its answers."""
    logits, y = answers
    model = SelectiveClassifier(
        PrecomputedClassifier(CLASSES, kind="logit"), calibration="temperature", threshold=0.7
    ).fit(logits, y)
    assert model.calibration_.maps[0].temperature_ == pytest.approx(2, abs=0.3)
    scores = cross_val_score(model, logits, y, scoring="cwsa_plus", cv=3)
    assert np.all((scores > 0.1) & (scores < 1))
    plain = cross_val_score(clone(model.estimator), logits, y, scoring="neg_augrc", cv=3)
    assert np.all(plain < 0)


def test_a_table_equals_the_classifier_that_it_came_from():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    table = cross_val_predict(LogisticRegression(), X, y, method="predict_proba")
    served = PrecomputedClassifier([0, 1]).predict_proba(table)
    assert augrc_score(y, served) == augrc_score(y, table)


def test_searches_choose_among_calibrations(answers):
    logits, y = answers
    search = GridSearchCV(
        SelectiveClassifier(PrecomputedClassifier(CLASSES, kind="logit"), threshold=0.6),
        {"calibration": [None, "temperature", "isotonic"]},
        scoring="neg_log_loss", cv=3,
    ).fit(logits, y)  # fmt: skip
    assert search.best_params_["calibration"] == "temperature"


def test_a_tuner_certifies_stored_answers_and_saves_them(answers, tmp_path):
    logits, y = answers
    tuner = ThresholdTuner(
        PrecomputedClassifier(CLASSES, kind="logit"),
        objective="risk",
        target=0.3,
        delta=0.1,
        cv=0.5,
        refit=False,
        random_state=0,
    ).fit(logits, y)
    assert str(tuner.certificate_).startswith("CERTIFIED")
    path = tmp_path / "policy.json"
    tuner.policy_.to_json(path)
    policy = AbstentionPolicy.from_json(path)
    proba = PrecomputedClassifier(CLASSES, kind="logit").predict_proba(logits)
    pd.testing.assert_frame_equal(
        policy.decide(proba).reset_index(drop=True), tuner.decide(logits).reset_index(drop=True)
    )


def test_it_travels(answers):
    logits, _ = answers
    model = PrecomputedClassifier(CLASSES, kind="logit")
    copy = pickle.loads(pickle.dumps(clone(model)))
    np.testing.assert_array_equal(copy.predict(logits), model.predict(logits))


@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        (PrecomputedClassifier([0, 1]), [[0.5, 0.9]], "each row must sum to one"),
        (PrecomputedClassifier([0, 1], kind="odds"), [[0.5, 0.5]], "kind must be one of"),
        (PrecomputedClassifier([0, 1]), [[0.2, 0.3, 0.5]], "X has 3 columns for the 2 classes"),
        (PrecomputedClassifier([0, 1, 2], columns=[0, 1]), [[0.5, 0.5]], "columns names 2 columns"),
        (
            PrecomputedClassifier([0, 1], columns=["a", "a"]),
            pd.DataFrame({"a": [0.5], "b": [0.5]}),
            r"columns=\['a', 'a'\] names a column twice",
        ),
        (
            PrecomputedClassifier([0, 1], columns=["a", "b"]),
            pd.DataFrame({"a": [1.0], "c": [0.0]}),
            r"columns: X has no \['b'\]; it has \['a', 'c'\]",
        ),
        (PrecomputedClassifier([0, 1]), [["a", "b"]], "X must hold numbers"),
        (PrecomputedClassifier([0, 1]), [[0.5, 0.5], [1.0]], "X is not a table of numbers"),
        (PrecomputedClassifier([0, 1]), [[np.nan, 1.0]], "X has NaN or infinite"),
        (PrecomputedClassifier([0, 1], kind="logprob"), [[3.0, 800.0]], "logits need kind='logit'"),
        (
            PrecomputedClassifier([0, 1], kind="logit"),
            [[-np.inf, -np.inf]],
            "X has NaN or infinite",
        ),
        (PrecomputedClassifier([0, 0]), [[0.5, 0.5]], "classes"),
        (PrecomputedClassifier([0, 1], kind="logit"), np.zeros((0, 2)), "one row per case"),
    ],
)
def test_bad_tables_are_explained(model, X, message):
    with pytest.raises(ValueError, match=message):
        model.predict_proba(X)


def test_labels_it_does_not_know_are_refused(answers):
    logits, y = answers
    model = PrecomputedClassifier(CLASSES, kind="logit")
    with pytest.raises(ValueError, match="y has labels that are not among the classes"):
        model.fit(logits, np.where(y == "owl", "bat", y))
    with pytest.raises(ValueError, match="X has 600 rows, but y has 599"):
        model.fit(logits, y[:-1])


# Classes that the rows at hand lack ------------------------------------------------------------


@pytest.mark.parametrize("missing", ["a", "b", "c"])
@pytest.mark.parametrize("scope", ["probabilities", "confidence"])
def test_it_keeps_the_classes_that_y_lacks(missing, scope, rng):
    labels = np.array(["a", "b", "c"])
    P = rng.dirichlet([2, 2, 2], 200)
    y = rng.choice(labels[labels != missing], 200)
    model = SelectiveClassifier(
        PrecomputedClassifier(labels), calibration="platt", calibration_scope=scope, threshold=0.5
    ).fit(P, y)
    assert model.classes_.tolist() == labels.tolist()
    proba = model.predict_proba(P)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    if scope == "confidence":
        np.testing.assert_array_equal(proba, P)
        assert model.decide(P)["suggestion"].tolist() == labels[P.argmax(axis=1)].tolist()
    tuner = ThresholdTuner(PrecomputedClassifier(labels), objective="coverage", target=0.5, cv=3)
    assert tuner.fit(P, y).classes_.tolist() == labels.tolist()
    table = calibration_report(PrecomputedClassifier(labels), P, y, calibrations=["platt"])
    own = np.where(y == "a", P[:, 0], np.where(y == "b", P[:, 1], P[:, 2]))
    assert table.loc["raw", "log_loss"] == pytest.approx(-np.mean(np.log(own)))


# A table that is not what it seems ----------------------------------------------------------


def test_extra_and_missing_columns_are_named():
    P = pd.DataFrame({"a": [0.2, 0.7], "b": [0.8, 0.3], "id": [1, 2]})
    with pytest.raises(ValueError, match=r"\['id'\] are no classes.*columns="):
        PrecomputedClassifier(["a", "b"]).predict_proba(P)
    with pytest.raises(ValueError, match=r"\['c'\] are missing"):
        PrecomputedClassifier(["a", "c"]).predict_proba(P)
    policy = AbstentionPolicy(classes=np.array(["a", "b"]), threshold=0.5)
    with pytest.raises(ValueError, match=r"\['id'\] are no classes"):
        policy.decide(P)
    with pytest.raises(ValueError, match=r"\['b'\] are missing"):
        policy.decide(P[["a", "id"]])
    assert policy.decide(P[["b", "a"]])["label"].tolist() == ["b", "a"]


def test_columns_in_another_order_than_the_classes_are_refused():
    P = pd.DataFrame({"a": [0.2, 0.7], "b": [0.8, 0.3]})
    with pytest.raises(ValueError, match="in another order"):
        PrecomputedClassifier(["a", "b"], columns=["b", "a"]).predict_proba(P)


def test_logits_that_are_probabilities_warn():
    with pytest.warns(UserWarning, match="use kind='proba'"):
        PrecomputedClassifier(["a", "b"], kind="logit").predict_proba([[0.2, 0.8], [0.7, 0.3]])
    with pytest.raises(ValueError, match="Divide percentages by 100"):
        PrecomputedClassifier(["a", "b"]).predict_proba([[20, 80], [70, 30]])


def test_it_never_learns_so_all_rows_certify_exactly(rng):
    P = rng.dirichlet([1, 1], 400)
    y = (rng.random(400) < P[:, 1]).astype(int)
    tuner = ThresholdTuner(PrecomputedClassifier([0, 1]), objective="risk", target=0.3, cv=5).fit(
        P, y
    )
    assert tuner.certificate_.is_certified
    assert tuner.certificate_.n == 400
    base = SelectiveClassifier(PrecomputedClassifier([0, 1]), calibration="platt")
    tuner = ThresholdTuner(base, objective="risk", target=0.3, cv=5).fit(P, y)
    assert not tuner.certificate_.is_certified  # the same rows fitted the calibration


def test_a_policy_of_decision_values_says_why_it_cannot_be_certified(rng):
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    model = SelectiveClassifier(RidgeClassifier(), calibration="platt", threshold=0.5).fit(X, y)
    predictions = Predictions.from_proba(y, model.predict_proba(X))
    with pytest.raises(ValueError, match="reads decision values, which Predictions cannot hold"):
        certify(model.policy_, predictions)
