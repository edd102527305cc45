"""Values and derivatives agree with the definitions, at the ends of the scale too."""

import numpy as np
import pytest

from skselect.losses import CAUObjective, SoftCWSAObjective
from skselect.metrics import cau_score, cwsa_score
from tests.losses.cases import OBJECTIVES, brute, probabilities, rows

pytestmark = pytest.mark.parametrize("objective", OBJECTIVES, ids=str)


def is_right(logits, codes):
    return logits.argmax(axis=1) == codes


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_the_value_is_the_definition(objective, n_classes):
    logits, codes, weight = rows(n_classes)
    found = objective._derivatives(logits, codes, weight)
    assert found.value == pytest.approx(brute(objective, logits, codes, weight), rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_derivatives_are_differences(objective, n_classes):
    logits, codes, weight = rows(n_classes)
    right = is_right(logits, codes)
    found = objective._derivatives(logits, codes, weight)

    def moved(row, column, by):
        other = logits.copy()
        other[row, column] += by
        return brute(objective, other, codes, weight, right)

    step = 1e-4
    for row, column in np.ndindex(*logits.shape):
        up, here, down = (moved(row, column, by) for by in (step, 0.0, -step))
        first, second = (up - down) / (2 * step), (up - 2 * here + down) / step**2
        assert found.gradient[row, column] == pytest.approx(first, rel=1e-5, abs=1e-8)
        assert found.hessian[row, column] == pytest.approx(second, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_bound_is_positive_and_above_the_second_derivative(objective, n_classes):
    logits, codes, weight = rows(n_classes, n=500)
    found = objective._derivatives(logits, codes, weight)
    assert np.all(found.bound > 0)
    assert np.all(found.bound >= np.abs(found.hessian))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_weight_of_two_is_the_row_twice_and_of_zero_no_row(objective, n_classes):
    logits, codes, _ = rows(n_classes)
    counts = np.arange(len(codes)) % 3
    found = objective._derivatives(logits, codes, counts.astype(float))
    twice = np.repeat(np.arange(len(codes)), counts)
    again = objective._derivatives(logits[twice], codes[twice], np.ones(len(twice)))
    assert found.value == pytest.approx(again.value, rel=1e-12)
    # Soft CWSA is a ratio: its second derivatives depend on whether two rows move together.
    n_same = 1 if isinstance(objective, SoftCWSAObjective) else 3
    for mine, its in list(zip(found[1:], again[1:], strict=True))[:n_same]:
        np.testing.assert_allclose(mine[twice], its * counts[twice][:, None], rtol=1e-10)
        assert np.all(mine[counts == 0] == 0)


def test_the_order_of_rows_and_of_classes_does_not_matter(objective):
    logits, codes, weight = rows(4)
    found = objective._derivatives(logits, codes, weight)
    order = np.random.default_rng(1).permutation(len(codes))
    moved = objective._derivatives(logits[order], codes[order], weight[order])
    names = np.array([2, 0, 3, 1])  # the new number of each class
    renamed = objective._derivatives(logits[:, np.argsort(names)], names[codes], weight)
    assert moved.value == pytest.approx(found.value, rel=1e-12)
    assert renamed.value == pytest.approx(found.value, rel=1e-12)
    for mine, its, theirs in zip(found[1:], moved[1:], renamed[1:], strict=True):
        np.testing.assert_allclose(mine[order], its, rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(mine, theirs[:, names], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("scale", [0.0, 1e-9, 1e-4, 30.0, 1e4])
@pytest.mark.parametrize("truth", [0, 1, 2])
def test_probabilities_of_0_and_1_and_ties_are_safe(objective, scale, truth):
    logits = scale * np.array([[1.0, -1.0, -1.0], [-1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    found = objective._derivatives(logits, np.full(3, truth), np.ones(3))
    assert np.isfinite(found.value)
    assert all(np.all(np.isfinite(table)) for table in found[1:])
    assert np.abs(found.gradient).max() < 1e4


def test_the_metrics_are_the_same_terms(objective):
    logits, codes, weight = rows(3, n=40)
    proba = np.array([probabilities(row) for row in logits])
    plain = objective._derivatives(logits, codes, weight).value
    if isinstance(objective, SoftCWSAObjective):
        # As the mask becomes hard, the surrogate becomes the score.
        objective = SoftCWSAObjective(threshold=0.6, temperature=1e-6, alpha=0.8)
        plain = objective._derivatives(logits, codes, weight).value
        score = -cwsa_score(codes, proba, threshold=0.6, sample_weight=weight)
        tolerance = 1e-5
    elif objective.variant == "balanced":
        score = cau_score(codes, proba, lambda_=1.3, sample_weight=weight)
        tolerance = 1e-12
    else:
        return
    alone = CAUObjective(alpha=0)._derivatives(logits, codes, weight).value
    assert plain == pytest.approx(alone + objective.alpha * score, rel=tolerance)


def test_a_part_without_rows_is_left_out(objective):
    logits, _, weight = rows(3)
    codes = logits.argmax(axis=1)
    for target in (codes, (codes + 1) % 3):
        found = objective._derivatives(logits, target, weight)
        assert np.isfinite(found.value)
        assert np.all(np.isfinite(found.gradient))


def test_nothing_accepted_is_worth_nothing(objective):
    logits, codes, weight = rows(3)
    alone = CAUObjective(alpha=0)._derivatives(0.1 * logits, codes, weight).value
    strict = SoftCWSAObjective(threshold=0.99, temperature=1e-3)
    found = strict._derivatives(0.1 * logits, codes, weight)
    assert found.value == pytest.approx(alone, abs=1e-9)
    assert objective is not strict
