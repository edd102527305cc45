"""The named confidences, and confidences of the user's own.

What is said of an answer, and how it becomes the chance that the answer is right.
"""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import special, stats

from skselect import Predictions
from skselect._lib.decide import LEAST_PROBA, describe_answers
from skselect.predictions.confidence import LearnedScore, confidence_of_proba
from skselect.predictions.outcomes import compute_confidence
from tests import brute
from tests.brute import assert_close, examples, proba_cases
from tests.refusals import check_refused


@pytest.mark.parametrize("n_classes", [2, 3, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_are_what_their_names_say(n_classes, dtype, rng):
    proba = rng.dirichlet(np.ones(n_classes), 50).astype(dtype)
    auxiliary_model = rng.dirichlet(np.ones(n_classes), 50)
    given = proba.copy()
    answers, age = rng.integers(0, n_classes, 50), rng.normal(size=50)
    found = describe_answers(proba, answers, {"forest": auxiliary_model, "age": age})
    np.testing.assert_array_equal(proba, given)
    assert list(found) == ["logit", "lead", "entropy", "forest", "age"]
    for i, answer in enumerate(answers):
        p = proba[i].astype(float)
        next_best = max(p[k] for k in range(n_classes) if k != answer)
        expected = [
            special.logit(p[answer]), np.log(p[answer]) - np.log(next_best),
            stats.entropy(p) / np.log(n_classes), special.logit(auxiliary_model[i, answer]), age[i],
        ]  # fmt: skip
        np.testing.assert_allclose([x[i] for x in found.values()], expected, rtol=1e-5, atol=1e-6)


def test_certainty_is_finite():
    proba, answers = np.eye(2), np.array([0, 0])
    found = describe_answers(proba, answers, {"forest": proba[::-1]})
    surest = special.logit(1 - LEAST_PROBA)
    np.testing.assert_allclose(found["logit"], [surest, -surest])
    np.testing.assert_allclose(found["forest"], [-surest, surest])
    np.testing.assert_allclose(found["lead"], [surest, -surest], rtol=1e-6)


class Halve:
    """A calibration that forgets half of what it hears."""

    def predict_proba(self, scores):
        return 0.5 * scores + 0.5 / scores.shape[1]


def test_a_score_is_a_logistic_function_of_its_features(rng):
    proba, auxiliary_model = rng.dirichlet(np.ones(3), 40), rng.dirichlet(np.ones(3), 40)
    answers, age = proba.argmax(axis=1), rng.normal(size=40)
    score = LearnedScore(
        ("lead", "forest", "age"), np.array([0.3, 0.5, -1.0]), 0.2, {"forest": Halve()}
    )
    assert (score.asks, score.columns) == (("forest", "age"), ("age",))
    assert score.by_name == {"intercept": 0.2, "lead": 0.3, "forest": 0.5, "age": -1.0}
    found = score.rate(proba, answers, {"forest": auxiliary_model, "age": age})
    features = describe_answers(
        proba, answers, {"forest": Halve().predict_proba(auxiliary_model), "age": age}
    )
    total = 0.2 + 0.3 * features["lead"] + 0.5 * features["forest"] - features["age"]
    np.testing.assert_allclose(found, special.expit(total))
    alone = [
        score.rate(proba[[i]], answers[[i]], {"forest": auxiliary_model[[i]], "age": age[[i]]})[0]
        for i in range(40)
    ]
    assert found.tolist() == alone  # to the last bit: rows do not touch each other


class Coin:
    classes_ = np.array([0, 1])

    def predict_proba(self, table):
        return np.column_stack([table[:, 0], 1 - table[:, 0]])


def test_a_classifier_takes_the_place_of_the_coefficients():
    score = LearnedScore(("doubt",), np.array([np.nan]), np.nan, classifier=Coin())
    doubt = np.array([0.1, 0.7])
    found = score.rate(np.full((2, 2), 0.5), np.zeros(2, dtype=int), {"doubt": doubt})
    assert found.tolist() == (1 - doubt).tolist()
    assert score.by_name == {}
    check_refused("Coin that LearnedConfidence fitted cannot be saved", score.to_dict)


NAMES = ["max_proba", "margin", "entropy", "gini"]
PROBA = np.array([[0.75, 0.25, 0.0], [0.5, 0.25, 0.25], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("name", NAMES)
@examples(60)
@given(case=proba_cases(), seed=st.integers(0, 1000))
def test_a_named_confidence_is_its_definition(name, case, seed):
    proba, before = case.y_proba, case.y_proba.copy()
    values = confidence_of_proba(proba, name)
    assert_close(values, [brute.CONFIDENCES[name](p) for p in proba.tolist()])
    assert np.all((values >= 0) & (values <= 1))
    order = np.random.default_rng(seed).permutation(proba.shape[1])
    assert_close(confidence_of_proba(proba[:, order], name), values)
    single = proba.astype(np.float32)
    of_single = confidence_of_proba(single, name)
    assert of_single.dtype == np.float64
    assert of_single.tolist() == confidence_of_proba(single.astype(np.float64), name).tolist()
    assert proba.tobytes() == before.tobytes()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("row", [[0.5005, 0.5004], [1.0, 0.0009], [0.4996, 0.4996], [0.9991, 0.0]])
def test_a_named_confidence_of_a_rounded_row_lies_between_zero_and_one(name, row):
    """Rows may miss the sum of one by 0.001."""
    (value,) = compute_confidence(Predictions.from_proba([0], [row], labels=[0, 1]), name)
    assert 0 <= value <= 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_a_certain_row_has_confidence_one_and_a_uniform_one_zero(name, n_classes):
    assert confidence_of_proba(np.eye(n_classes), name).tolist() == [1.0] * n_classes
    assert confidence_of_proba(np.ones((3, 1)), name).tolist() == [1.0, 1.0, 1.0]  # one class
    if name != "max_proba":
        assert_close(confidence_of_proba(np.full((1, n_classes), 1 / n_classes), name), 0.0)


@pytest.mark.parametrize("values", [[3.0, -1.0, 2.0], (3, -1, 2), np.array([3, -1, 2], np.float32)])
def test_an_array_is_taken_as_it_is_and_a_function_gets_the_probabilities(values):
    result = confidence_of_proba(PROBA, values)
    assert result.tolist() == [3.0, -1.0, 2.0]
    assert result.dtype == np.float64
    assert confidence_of_proba(PROBA, lambda p: -10 * p[:, 0]).tolist() == [-7.5, -5.0, 0.0]


# Of predictions --------------------------------------------------------------------------


def test_predictions_with_a_confidence_of_their_own_use_it():
    predictions = Predictions.from_labels([0, 1], [0, 0], [12.5, -3.0])
    assert compute_confidence(predictions).tolist() == [12.5, -3.0]
    assert compute_confidence(predictions, [1.0, 2.0]).tolist() == [1.0, 2.0]
    check_refused("confidence", compute_confidence, predictions, [0.1, 0.2, 0.3])
    for computed in [*NAMES, lambda p: p[:, 0]]:
        check_refused("confidence", compute_confidence, predictions, computed)
