"""The confusion matrix with a column for the rows that are handed over."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from skselect.metrics import selective_confusion_matrix
from skselect.metrics._confusion import count_decisions


def _draw(rng, n=300, labels=("a", "b", "c")):
    y = rng.choice(labels, n)
    return y, rng.dirichlet(np.ones(len(labels)), n)


def _count(y, answers, accepted, labels, weight):
    """Count row by row: the definition."""
    counts = np.zeros((len(labels), len(labels) + 1))
    for true, answer, sure, w in zip(y, answers, accepted, weight, strict=True):
        column = labels.index(answer) if sure else len(labels)
        counts[labels.index(true), column] += w
    return counts


@pytest.mark.parametrize("threshold", [0.0, 0.4, 0.6, 0.9, np.inf])
def test_it_counts_rows(rng, threshold):
    labels = ["a", "b", "c"]
    y, p = _draw(rng)
    weight = rng.integers(0, 4, len(y))
    answers, accepted = np.array(labels)[p.argmax(axis=1)], p.max(axis=1) >= threshold
    found = selective_confusion_matrix(y, p, threshold=threshold)
    np.testing.assert_array_equal(found, _count(y, answers, accepted, labels, np.ones(len(y))))
    assert found.dtype.kind == "i"
    weighted = selective_confusion_matrix(y, p, threshold=threshold, sample_weight=weight)
    np.testing.assert_array_equal(weighted, _count(y, answers, accepted, labels, weight))


def test_a_weight_of_two_is_the_row_twice(rng):
    y, p = _draw(rng)
    weight = rng.integers(0, 4, len(y))
    one = selective_confusion_matrix(y, p, threshold=0.6, sample_weight=weight)
    two = selective_confusion_matrix(
        np.repeat(y, weight), np.repeat(p, weight, axis=0), threshold=0.6
    )
    np.testing.assert_array_equal(one, two)


def test_without_abstaining_it_is_that_of_scikit_learn(rng):
    y, p = _draw(rng)
    labels = ["c", "a", "b"]
    found = selective_confusion_matrix(y, p, threshold=0, labels=labels)
    answers = np.array(labels)[p.argmax(axis=1)]
    np.testing.assert_array_equal(found[:, :-1], confusion_matrix(y, answers, labels=labels))
    assert not np.any(found[:, -1])


def test_another_confidence(rng):
    y, p = _draw(rng)
    top = np.sort(p, axis=1)
    found = selective_confusion_matrix(y, p, threshold=0.3, confidence="margin")
    assert found[:, -1].sum() == np.sum(top[:, -1] - top[:, -2] < 0.3)


def test_unknown_classes_have_a_line_of_their_own():
    truth, answer = np.array([0, -1, -1, 1]), np.array([0, 1, 0, 0])
    accepted = np.array([True, True, False, True])
    found = count_decisions(truth, answer, accepted, 2)
    assert found.tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 1]]
    assert count_decisions(truth, answer, None, 2).tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 0]]


def test_refusals():
    with pytest.raises(ValueError, match="threshold"):
        selective_confusion_matrix([0, 1], [0.2, 0.7], threshold="high")
