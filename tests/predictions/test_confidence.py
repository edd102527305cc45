"""The named confidences, and confidences of the user's own."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skselect import Predictions
from skselect.predictions.confidence import (
    CONFIDENCES,
    compute_confidence,
    confidence_of_proba,
    entropy,
    gini,
    margin,
    max_proba,
)
from tests import brute
from tests.brute import assert_close, examples, proba_cases

NAMES = ["max_proba", "margin", "entropy", "gini"]
PROBA = np.array([[0.75, 0.25, 0.0], [0.5, 0.25, 0.25], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("name", NAMES)
@examples(60)
@given(case=proba_cases())
def test_a_named_confidence_is_its_definition(name, case):
    expected = [brute.CONFIDENCES[name](p) for p in case.y_proba.tolist()]
    assert_close(confidence_of_proba(case.y_proba, name), expected)


@pytest.mark.parametrize("name", NAMES)
@examples(60)
@given(case=proba_cases())
def test_a_named_confidence_lies_between_zero_and_one(name, case):
    values = confidence_of_proba(case.y_proba, name)
    assert np.all((values >= 0) & (values <= 1))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("row", [[0.5005, 0.5004], [1.0, 0.0009], [0.4996, 0.4996], [0.9991, 0.0]])
def test_a_named_confidence_of_a_rounded_row_lies_between_zero_and_one(name, row):
    """Rows may miss the sum of one by 0.001."""
    (value,) = compute_confidence(Predictions.from_proba([0], [row], labels=[0, 1]), name)
    assert 0 <= value <= 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_a_certain_row_has_confidence_one(name, n_classes):
    assert confidence_of_proba(np.eye(n_classes), name).tolist() == [1.0] * n_classes


@pytest.mark.parametrize("name", ["margin", "entropy", "gini"])
@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
def test_a_uniform_row_has_confidence_zero(name, n_classes):
    assert_close(confidence_of_proba(np.full((1, n_classes), 1 / n_classes), name), 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_one_column_is_certain(name):
    assert confidence_of_proba(np.ones((3, 1)), name).tolist() == [1.0, 1.0, 1.0]


def test_known_values():
    assert max_proba(PROBA).tolist() == [0.75, 0.5, 1.0]
    assert margin(PROBA).tolist() == [0.5, 0.25, 1.0]
    assert gini(PROBA).tolist() == [0.4375, 0.0625, 1.0]
    spread = [2 * math.log(2) - 0.75 * math.log(3), 1.5 * math.log(2), 0]
    assert_close(entropy(PROBA), [1 - h / math.log(3) for h in spread])


@pytest.mark.parametrize("name", NAMES)
@examples(40)
@given(case=proba_cases(), seed=st.integers(0, 1000))
def test_the_order_of_the_classes_does_not_matter(name, case, seed):
    order = np.random.default_rng(seed).permutation(case.y_proba.shape[1])
    shuffled = confidence_of_proba(case.y_proba[:, order], name)
    assert_close(shuffled, confidence_of_proba(case.y_proba, name))


@pytest.mark.parametrize("name", NAMES)
@examples(40)
@given(case=proba_cases())
def test_float32_probabilities_give_the_confidence_of_their_float64_values(name, case):
    single = case.y_proba.astype(np.float32)
    values = confidence_of_proba(single, name)
    assert values.dtype == np.float64
    assert values.tolist() == confidence_of_proba(single.astype(np.float64), name).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_the_probabilities_are_left_as_they_are(name):
    proba = PROBA.copy()
    confidence_of_proba(proba, name)
    assert proba.tolist() == PROBA.tolist()


def test_the_table_holds_the_named_confidences():
    assert sorted(CONFIDENCES) == sorted(NAMES)


def test_a_callable_gets_the_probabilities():
    values = confidence_of_proba(PROBA, lambda p: -10 * p[:, 0])
    assert values.tolist() == [-7.5, -5.0, 0.0]


@pytest.mark.parametrize("values", [[3.0, -1.0, 2.0], (3, -1, 2), np.array([3, -1, 2], np.float32)])
def test_an_array_is_taken_as_it_is(values):
    result = confidence_of_proba(PROBA, values)
    assert result.tolist() == [3.0, -1.0, 2.0]
    assert result.dtype == np.float64


# Of predictions --------------------------------------------------------------------------


def test_the_default_is_the_largest_probability():
    predictions = Predictions.from_proba([0, 1, 2], PROBA)
    assert compute_confidence(predictions).tolist() == [0.75, 0.5, 1.0]
    assert compute_confidence(predictions, "margin").tolist() == [0.5, 0.25, 1.0]


def test_predictions_with_a_confidence_of_their_own_use_it():
    predictions = Predictions.from_labels([0, 1], [0, 0], [12.5, -3.0])
    assert compute_confidence(predictions).tolist() == [12.5, -3.0]
    assert compute_confidence(predictions, [1.0, 2.0]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("confidence", [*NAMES, lambda p: p[:, 0]], ids=[*NAMES, "callable"])
def test_predictions_without_probabilities_refuse_a_computed_confidence(confidence):
    predictions = Predictions.from_labels([0, 1], [0, 0], [0.9, 0.8])
    with pytest.raises(ValueError, match=r"confidence=.*probabilities"):
        compute_confidence(predictions, confidence)


# Bad input -------------------------------------------------------------------------------

BAD = {
    "unknown name": "maximum",
    "empty name": "",
    "nan": [0.1, np.nan, 0.3],
    "inf": [0.1, np.inf, 0.3],
    "too short": [0.1, 0.2],
    "too long": [0.1, 0.2, 0.3, 0.4],
    "empty": [],
    "matrix": [[0.1], [0.2], [0.3]],
    "number": 0.5,
    "text": ["a", "b", "c"],
    "number as name": 3,
    "callable of wrong length": lambda p: p[:2, 0],
    "callable of a matrix": lambda p: p,
    "callable with nan": lambda p: np.full(len(p), np.nan),
    "callable without result": lambda p: None,
}


@pytest.mark.parametrize("confidence", BAD.values(), ids=BAD)
def test_a_bad_confidence_is_named(confidence):
    with pytest.raises(ValueError, match="confidence"):
        confidence_of_proba(PROBA, confidence)


def test_the_error_for_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"max_proba.*margin.*entropy.*gini.*'top'"):
        confidence_of_proba(PROBA, "top")


def test_a_confidence_of_another_length_than_the_predictions_is_refused():
    predictions = Predictions.from_labels([0, 1], [0, 0], [0.9, 0.8])
    with pytest.raises(ValueError, match="confidence has 3 rows"):
        compute_confidence(predictions, [0.1, 0.2, 0.3])
