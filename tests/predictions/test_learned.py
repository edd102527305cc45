"""What is said of an answer, and how it becomes the chance that the answer is right."""

import numpy as np
import pytest
from scipy import special
from scipy.stats import entropy

from skselect._lib.decide import LEAST_PROBA, describe_answers
from skselect.predictions.learned import LearnedScore


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
            entropy(p) / np.log(n_classes), special.logit(auxiliary_model[i, answer]), age[i],
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
    with pytest.raises(ValueError, match="Coin that LearnedConfidence fitted cannot be saved"):
        score.to_dict()
