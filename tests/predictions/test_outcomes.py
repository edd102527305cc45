"""Outcomes: how wrong and how sure."""

import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given

from skselect import Outcomes, Predictions
from skselect.predictions.confidence import confidence_of_proba
from tests import brute
from tests.brute import assert_close, examples, named, proba_cases

NAN = float("nan")
TRUTH, PROBA = [0, 1, 1], [[0.9, 0.1], [0.25, 0.75], [0.6, 0.4]]


@pytest.mark.parametrize("confidence", sorted(brute.CONFIDENCES))
@examples(60)
@given(case=proba_cases())
def test_loss_confidence_and_weight_are_those_of_the_definition(confidence, case):
    outcomes = Outcomes.from_proba(case.y_true, case.y_proba, confidence=confidence, **case.options)
    counted = outcomes.weight > 0
    rows = case.rows(confidence)
    assert outcomes.loss[counted].tolist() == [float(row.loss) for row in rows]
    assert outcomes.weight[counted].tolist() == [float(row.weight) for row in rows]
    assert_close(outcomes.confidence[counted], [row.confidence for row in rows])
    assert len(outcomes) == len(case.y_true)


@pytest.mark.parametrize("container", [list, tuple, np.array, pd.Series, pl.Series])
def test_plain_arrays_of_every_kind_become_floats(container):
    outcomes = Outcomes(container([0, 1, 0]), container([0.9, 0.6, 0.8]), container([1, 2, 3]))
    for values in (outcomes.loss, outcomes.confidence, outcomes.sample_weight):
        assert isinstance(values, np.ndarray)
        assert values.dtype == np.float64
    assert outcomes.to_frame().to_dict("list") == {
        "loss": [0.0, 1.0, 0.0], "confidence": [0.9, 0.6, 0.8], "sample_weight": [1.0, 2.0, 3.0],
    }  # fmt: skip
    assert outcomes.weight.tolist() == [1.0, 2.0, 3.0]
    plain = Outcomes(container([True, False]), container([0.9, 0.8]))
    assert plain.loss.tolist() == [1.0, 0.0]
    assert plain.sample_weight is None
    assert plain.weight.tolist() == [1.0, 1.0]
    assert plain.to_frame().columns.tolist() == ["loss", "confidence"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        outcomes.loss = np.zeros(3)


def test_predictions_probabilities_and_labels_agree():
    weight = {"sample_weight": [1, 2, 3]}
    predictions = Predictions.from_proba(TRUTH, PROBA, **weight)
    frame = Outcomes.from_predictions(predictions, confidence="gini").to_frame()
    assert frame.equals(Outcomes.from_proba(TRUTH, PROBA, confidence="gini", **weight).to_frame())
    assert frame["sample_weight"].tolist() == [1.0, 2.0, 3.0]
    own = frame["confidence"]
    assert frame.equals(Outcomes.from_labels(TRUTH, [0, 1, 0], own, **weight).to_frame())
    one_column = Outcomes.from_proba(["n", "y"], [0.25, 0.75], pos_label="y")
    assert one_column.confidence.tolist() == [0.75, 0.75]
    assert one_column.loss.tolist() == [0.0, 0.0]


def test_a_callable_loss_gets_labels_and_gives_graded_losses():
    seen = []

    def loss(y_true, y_pred):
        seen.extend([y_true.tolist(), y_pred.tolist()])
        return np.abs(y_true - y_pred) / 4

    proba = [[0.9, 0.1, 0.0], [0.1, 0.2, 0.7], [0.6, 0.4, 0.0]]
    outcomes = Outcomes.from_proba([1, 3, 5], proba, loss=loss)
    assert seen == [[1, 3, 5], [1, 5, 1]]
    assert outcomes.loss.tolist() == [0.0, 0.5, 1.0]
    from_labels = Outcomes.from_labels([1, 3, 5], [1, 5, 1], [0.9, 0.7, 0.6], loss=loss)
    assert from_labels.to_frame().equals(outcomes.to_frame())
    for one_column in ([0.2, 0.9], [[0.8, 0.2], [0.1, 0.9]]):  # booleans stay booleans
        Outcomes.from_proba([False, True], one_column, loss=loss_of_booleans)


def loss_of_booleans(y_true, y_pred):
    assert y_true.dtype.kind == y_pred.dtype.kind == "b"
    return y_true != y_pred


def test_a_class_that_the_model_does_not_know_is_an_error():
    predictions = Predictions(
        y_true=np.array([-1, 0]), y_pred=np.array([1, 0]), classes=np.array([0, 1]),
        y_proba=np.array([[0.2, 0.8], [0.9, 0.1]]),
    )  # fmt: skip
    assert Outcomes.from_predictions(predictions).loss.tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="loss"):
        Outcomes.from_predictions(predictions, loss=lambda a, b: a != b)


# Bad input -------------------------------------------------------------------------------

UNKNOWN = "maximum"
#: What is no column of three numbers.
NO_NUMBERS = [
    [0.5, 0.5], [0.5] * 4, [], [0.1, NAN, 0.3], [0.1, np.inf, 0.3], [0.1, None, 0.3],
    ["a", "b", "c"], [[0.1], [0.2], [0.3]], np.array([1j, 0.5, 0.5]),
]  # fmt: skip
SURE, ANSWERS = [0.9, 0.8, 0.7], [0, 1, 0]
#: Wherever numbers go in: the argument, what takes them, and what else is refused there.
COLUMNS = [
    ("loss", lambda bad: Outcomes(bad, SURE), [None, 0.5, [0, 2, 0], [0, -1, 0]]),
    ("loss", lambda bad: Outcomes.from_proba(TRUTH, PROBA, loss=lambda a, b: bad),
     [0.5, [0, 2, 0]]),
    ("loss", lambda bad: Outcomes.from_proba(TRUTH, PROBA, loss=bad),
     [None, "hinge", [0, 1, 0]]),
    ("confidence", lambda bad: Outcomes(ANSWERS, bad), [None, 0.5]),
    ("confidence", lambda bad: Predictions.from_labels(TRUTH, ANSWERS, bad), []),
    ("confidence", lambda bad: confidence_of_proba(np.array(PROBA), bad), [UNKNOWN, "", 3, 0.5]),
    ("confidence", lambda bad: confidence_of_proba(np.array(PROBA), lambda p: bad), [None, 0.5]),
    ("sample_weight", lambda bad: Outcomes(ANSWERS, SURE, bad), [[1, -1, 1], [0, 0, 0]]),
    ("sample_weight", lambda bad: Predictions.from_proba(TRUTH, PROBA, sample_weight=bad),
     [[1, -1, 1], [0, 0, 0]]),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "door", "others"), COLUMNS)
def test_what_is_no_column_of_numbers_is_named(argument, door, others):
    for bad in [*NO_NUMBERS, *others]:
        known = "max_proba.*margin.*entropy.*gini.*'maximum'" if bad is UNKNOWN else argument
        with named(bad), pytest.raises(ValueError, match=known):
            door(bad)


@pytest.mark.parametrize(
    "build",
    [
        lambda c, w: Outcomes([0, 1, 0], c, w),
        lambda c, w: Outcomes.from_labels(TRUTH, [0, 1, 0], c, sample_weight=w),
        lambda c, w: Outcomes.from_proba(TRUTH, PROBA, confidence=c, sample_weight=w),
        lambda c, w: Outcomes.from_proba(TRUTH, PROBA, confidence=lambda _: c, sample_weight=w),
    ],
)
def test_arrays_that_the_caller_changes_later_change_nothing(build):
    confidence, weight = np.array([0.9, 0.6, 0.8]), np.array([1.0, 2.0, 3.0])
    outcomes = build(confidence, weight)
    confidence[:], weight[:] = NAN, NAN
    assert outcomes.confidence.tolist() == [0.9, 0.6, 0.8]
    assert outcomes.sample_weight.tolist() == [1.0, 2.0, 3.0]


def test_some_of_the_rows_must_count():
    outcomes = Outcomes([0, 1, 0], [0.9, 0.6, 0.8], [1, 0, 3])
    part = outcomes.take(np.array([2, 1]))
    assert part.to_frame().to_numpy().tolist() == [[0.0, 0.8, 3.0], [1.0, 0.6, 0.0]]
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        outcomes.take(np.array([1]))
