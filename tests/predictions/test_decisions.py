"""What is answered, and what it costs, against the definition of an expected cost."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, strategies as st

from skselect import Outcomes, Predictions
from skselect._lib.decide import expected_costs
from skselect.predictions.decisions import DecisionRule
from skselect.predictions.outcomes import compute_confidence
from tests.brute import examples
from tests.refusals import check_refused

COSTS = np.array([[0.0, 1.0, 4.0], [10.0, 0.0, 2.0], [3.0, 3.0, 1.0]])
CLASSES = np.array(["a", "b", "c"])


def proba(rng, n=50):
    return rng.dirichlet([1, 1, 1], n)


@examples(60)
@given(st.integers(0, 10**6))
def test_the_cheapest_answer_has_the_least_expected_cost(seed):
    rng = np.random.default_rng(seed)
    p = proba(rng, 20)
    truth = rng.choice(CLASSES, 20)
    predictions = Predictions.from_proba(
        truth, p, labels=CLASSES, decision="min_cost", cost_matrix=COSTS
    )
    confidence = compute_confidence(predictions)
    losses = Outcomes.from_predictions(predictions, loss="cost").loss
    for i in range(20):
        expected = [sum(p[i, k] * COSTS[k, j] for k in range(3)) for j in range(3)]
        answer = predictions.y_pred[i]
        assert expected[answer] == pytest.approx(min(expected))
        assert confidence[i] == pytest.approx(1 - min(expected) / 10)
        assert losses[i] == COSTS[list(CLASSES).index(truth[i]), answer] / 10


def test_an_answer_never_depends_on_its_batch(rng):
    p, rule = proba(rng, 501), DecisionRule.checked("min_cost", COSTS, CLASSES)
    whole = expected_costs(p, rule.cost_matrix)
    rows = (expected_costs(p[i : i + 1], rule.cost_matrix)[0] for i in range(501))
    assert all(np.array_equal(row, x) for row, x in zip(rows, whole, strict=True))


def test_own_answers_are_kept_and_their_probability_is_the_confidence():
    predictions = Predictions.from_proba(
        ["no", "yes"], [[0.7, 0.3], [0.6, 0.4]], decision="estimator", y_pred=["yes", "yes"]
    )
    assert predictions.y_pred.tolist() == [1, 1]
    assert compute_confidence(predictions).tolist() == [0.3, 0.4]
    assert Outcomes.from_predictions(predictions).loss.tolist() == [1, 0]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_named_costs_are_matched_with_the_classes(kind):
    order = [2, 0, 1]
    values = COSTS[np.ix_(order, order)]
    names = CLASSES[order].tolist()
    if kind is pd.DataFrame:
        table = pd.DataFrame(values, index=names, columns=names)
    else:  # rows in the order of the columns
        table = pl.DataFrame(dict(zip(names, values.T, strict=True)))
    assert np.array_equal(DecisionRule.checked("argmax", table, CLASSES).cost_matrix, COSTS)


def test_costs_by_true_class_and_answer_need_no_cost_of_right_answers():
    costs = {"sick": {"well": 5}, "well": {"sick": 1, "well": 0.5}}
    rows = ["sick", "well"], [[0.3, 0.7], [0.4, 0.6]]
    rule = Predictions.from_proba(*rows, cost_matrix=costs).rule
    assert rule.cost_matrix.tolist() == [[0, 5], [1, 0.5]]


def test_a_class_that_the_model_does_not_know_costs_the_most(rng):
    rule = DecisionRule.checked("min_cost", COSTS, CLASSES)
    assert rule.costs(np.array([-1, 1]), np.array([0, 0])).tolist() == [1.0, 1.0]
    assert rule.costs(np.array([0]), np.array([2])).tolist() == [0.4]


@pytest.mark.parametrize(("argument", "options"), [
    ("cost_matrix", {"decision": "min_cost"}), ("decision", {"decision": "dice"}),
    ("y_pred", {"decision": "estimator"}), ("y_pred", {"y_pred": [0, 1]}),
    ("y_pred", {"decision": "estimator", "y_pred": [0]}),
    ("y_pred", {"decision": "estimator", "y_pred": [0, 7]}),
    *(("cost_matrix", {"cost_matrix": costs}) for costs in [
        [[0, 1]], np.ones((3, 3)), [[0, -1], [1, 0]], [[0, 0], [0, 0]],
        [["a", "b"], ["c", "d"]], pd.DataFrame([[0, 1], [1, 0]], [0, 2], [0, 1]),
        {0: {1: 5}}, {0: 5}, {}, {0: {1: "x"}, 1: {0: 1}}, {0: {1: 5}, 2: {0: 1}},
    ]),
])  # fmt: skip
def test_bad_decisions_are_named(argument, options):
    rows = [0, 1], [[0.9, 0.1], [0.2, 0.8]]
    check_refused(argument, lambda: Predictions.from_proba(*rows, **options))


@pytest.mark.parametrize("name", ["max_proba", "margin", "entropy", "gini"])
def test_confidences_of_the_most_probable_class_are_refused_for_other_answers(name):
    predictions = Predictions.from_proba(
        [0, 1], [[0.9, 0.1], [0.2, 0.8]], decision="min_cost", cost_matrix=[[0, 1], [9, 0]]
    )
    check_refused("confidence", compute_confidence, predictions, name)
    plain = Predictions.from_proba([0, 1], [[0.9, 0.1], [0.2, 0.8]])
    check_refused("cost_matrix", compute_confidence, plain, "expected_cost")
    assert compute_confidence(plain, "chosen_proba").tolist() == [0.9, 0.8]
