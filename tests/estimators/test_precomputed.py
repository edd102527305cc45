"""Stored predictions serve calibration, tuning, searches and scorers like a classifier."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, strategies as st
from scipy.special import log_softmax, softmax
from sklearn.base import clone

from skselect import PrecomputedClassifier, SelectiveClassifier, ThresholdTuner, calibration_report
from tests.refusals import check_refused, refusals

CLASSES = ["cat", "dog", "owl"]


@pytest.fixture
def answers():
    """Return logits of three classes that are too sure, and the true labels."""
    rng = np.random.default_rng(0)
    calibrated = rng.normal(0, 1.5, (600, 3))
    codes = np.array([rng.choice(3, p=p) for p in softmax(calibrated, axis=1)])
    return 2 * calibrated, np.array(CLASSES)[codes]


KINDS = {
    "proba": lambda z: softmax(z, axis=1), "logit": lambda z: z + 5.0,
    "logprob": lambda z: log_softmax(z, axis=1),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_are_the_same_probabilities(answers, kind):
    logits, y = answers
    X = KINDS[kind](logits)
    model = PrecomputedClassifier(CLASSES, kind=kind)
    np.testing.assert_allclose(model.predict_proba(X), softmax(logits, axis=1), atol=1e-12)
    assert model.fit(X, y).classes_.tolist() == CLASSES
    copy = pickle.loads(pickle.dumps(clone(model)))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


@pytest.mark.parametrize("kind", KINDS)
def test_one_column_is_that_of_the_second_class(kind):
    column = {"proba": [0.2, 0.9, 0.5], "logit": np.log([0.25, 9.0, 1.0]),
              "logprob": np.log([0.2, 0.9, 0.5])}[kind]  # fmt: skip
    model = PrecomputedClassifier([0, 1], kind=kind)
    for X in (column, np.reshape(column, (-1, 1))):
        expected = [[0.8, 0.2], [0.1, 0.9], [0.5, 0.5]]
        np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
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
    mixed = pd.DataFrame(logits, columns=CLASSES)[["owl", "cat", "dog"]]
    wide = mixed.assign(id=1, note="x")
    for columns, X in [
        (None, mixed), (None, pl.from_pandas(mixed)), (CLASSES, wide),
        (CLASSES, pl.from_pandas(wide)), ([1, 2, 0], mixed.to_numpy()),
    ]:  # fmt: skip
        model = PrecomputedClassifier(CLASSES, columns=columns, kind="logit")
        np.testing.assert_array_equal(model.predict_proba(X), expected)


NAMED = pd.DataFrame({"a": [0.2, 0.7], "b": [0.8, 0.3], "id": [1, 2]})


LETTERS = {"classes": ["a", "b", "c"], "kind": "logprob"}
SPREAD = LETTERS | {"missing": "spread"}


@refusals({
    "X": [
        ({}, [[0.2, 0.3, 0.5]]), ({}, [["a", "b"]]), ({}, [[0.5, 0.5], [1.0]]),
        ({}, [[np.nan, 1.0]]), ({"kind": "logit"}, [[-np.inf, -np.inf]]),
        ({"kind": "logit"}, np.zeros((0, 2))), (LETTERS, [[-0.5, np.nan, -3.0]]),
        (SPREAD, [[np.inf, -0.2, np.nan]]), (SPREAD | {"classes": ["a", "b"]}, [[-0.1], [np.nan]]),
    ],
    "columns": [
        ({"classes": [0, 1, 2], "columns": [0, 1]}, [[0.5, 0.5]]), ({"columns": 0.5}, [[0.5, 0.5]]),
        ({"columns": ["a", "a"]}, NAMED), ({"columns": ["a", "c"]}, NAMED),
        ({"classes": ["a", "b"]}, NAMED),
    ],
    "classes": [({"classes": [0, 0]}, [[0.5, 0.5]]), ({"classes": ["a", "c"]}, NAMED),
                ({"classes": ["a", "b"], "columns": ["b", "a"]}, NAMED)],
    "kind": [({"kind": "odds"}, [[0.5, 0.5]]), ({"kind": "logprob"}, [[3.0, 800.0]]),
             (SPREAD | {"kind": "proba"}, [[0.1, 0.2, 0.7]])],
    "missing": [(LETTERS | {"missing": "zero"}, [[-0.1, -0.2, -3]])],
    # What a row of numbers must be.
    "sum": [({}, [[0.5, 0.9]]), (SPREAD, [[-0.1, -0.2, np.nan]])],
    "Divide percentages by 100": [({}, [[20, 80], [70, 30]])],
    "none above 0": [(SPREAD, [[0.5, np.nan, -3.0]])],
})  # fmt: skip
def test_bad_tables_are_explained(argument, call):
    options, X = call
    model = PrecomputedClassifier(**({"classes": [0, 1]} | options))
    check_refused(argument, model.predict_proba, X)


def test_strange_labels_and_strange_logits_are_told(answers):
    logits, y = answers
    model = PrecomputedClassifier(CLASSES, kind="logit")
    with pytest.raises(ValueError, match="y has labels that are not among the classes"):
        model.fit(logits, np.where(y == "owl", "bat", y))
    with pytest.raises(ValueError, match="X has 600 rows, but y has 599"):
        model.fit(logits, y[:-1])
    with pytest.warns(UserWarning, match="use kind='proba'"):
        model.predict_proba([[0.2, 0.7, 0.1], [0.7, 0.3, 0.0]])


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


def test_it_never_learns_so_all_rows_certify_exactly(rng):
    P = rng.dirichlet([1, 1], 400)
    y = (rng.random(400) < P[:, 1]).astype(int)
    plain = PrecomputedClassifier([0, 1])
    tuner = ThresholdTuner(plain, objective="risk", target=0.3, cv=5).fit(P, y)
    assert tuner.certificate_.is_certified
    assert tuner.certificate_.n == 400
    tuner.set_params(estimator=SelectiveClassifier(plain, calibration="platt")).fit(P, y)
    assert not tuner.certificate_.is_certified  # the same rows fitted the calibration


# Log-probabilities of some classes only ---------------------------------------------------------


def spread_by_hand(row):
    """Return what each class gets, a row at a time."""
    named = [math.exp(x) for x in row if math.isfinite(x)]
    if not named:
        return [1 / len(row)] * len(row)
    left = max(1 - sum(named), 0.0)
    n_others = len(row) - len(named)
    each = min(left / n_others, *named) if n_others else 0.0
    parts = [math.exp(x) if math.isfinite(x) else each for x in row]
    return [part / sum(parts) for part in parts]


@given(st.data())
def test_what_is_left_goes_to_the_unnamed_classes(data):
    n_classes = data.draw(st.integers(2, 6))
    parts = st.lists(st.floats(0.001, 1), min_size=n_classes + 1, max_size=n_classes + 1)
    cells = np.array(data.draw(st.lists(parts, min_size=1, max_size=5)))
    rows = np.log(cells / cells.sum(axis=1, keepdims=True))[:, :-1]  # the last is no class
    hidden = data.draw(st.lists(st.sampled_from([0.0, np.nan, -np.inf]),
                                min_size=rows.size, max_size=rows.size))  # fmt: skip
    rows = rows + np.reshape(hidden, rows.shape)
    found = PrecomputedClassifier(range(n_classes), kind="logprob", missing="spread").predict_proba(
        rows
    )
    np.testing.assert_allclose(found, [spread_by_hand(row) for row in rows], rtol=1e-9)
    named = np.isfinite(rows)
    for proba, has in zip(found, named, strict=True):
        assert np.max(proba[~has], initial=0) <= np.min(proba[has], initial=1) * (1 + 1e-12)


def test_complete_log_probabilities_stay_and_tiny_ones_do_not_vanish():
    proba = np.array([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0]])
    with np.errstate(divide="ignore"):
        logs = np.log(proba)
    spread = PrecomputedClassifier(["a", "b", "c"], kind="logprob", missing="spread")
    np.testing.assert_allclose(spread.predict_proba(logs), proba, rtol=1e-12)
    tiny = spread.predict_proba([[-800.0, -801.0, np.nan], [np.nan] * 3])
    e = math.exp(-1)
    np.testing.assert_allclose(tiny[0], np.array([1, e, e]) / (1 + 2 * e))
    np.testing.assert_allclose(tiny[1], 1 / 3)
    assert clone(spread).get_params()["missing"] == "spread"
