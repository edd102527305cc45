"""A histogram of right answers above one of wrong answers."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from skselect import SelectiveClassifier
from skselect.display import ConfidenceHistogramDisplay


def test_bins_count_right_and_wrong_rows(drawn):
    y, p = drawn
    display = ConfidenceHistogramDisplay.from_predictions(y, p, n_bins=7)
    c, right = np.maximum(p, 1 - p), (p > 0.5) == y
    for counts, rows in [(display.right, right), (display.wrong, ~right)]:
        for k in range(7):
            low, high = display.edges[k : k + 2]
            last = k == 6
            inside = (c >= low) & ((c <= high) if last else (c < high))
            assert counts[k] == np.sum(inside & rows)
    labels = display.ax_.get_legend_handles_labels()[1]
    assert labels == [f"right: {right.sum()}", f"wrong: {(~right).sum()}"]


def test_bars_are_shares_of_their_own_kind(drawn):
    display = ConfidenceHistogramDisplay.from_predictions(*drawn)
    right, wrong = (display.bars_[what].get_data() for what in ("right", "wrong"))
    assert right.baseline == wrong.baseline == 0
    np.testing.assert_allclose(right.values, display.right / display.right.sum())
    np.testing.assert_allclose(wrong.values, -display.wrong / display.wrong.sum())
    low, high = display.ax_.get_ylim()
    assert low <= wrong.values.min() < 0 < right.values.max() <= high
    assert display.ax_.yaxis.get_major_formatter()(-0.25) == "25 %"


def test_weights_count_rows(drawn, rng):
    y, p = drawn
    weight = rng.integers(0, 4, len(y))
    one = ConfidenceHistogramDisplay.from_predictions(y, p, sample_weight=weight, n_bins=9)
    two = ConfidenceHistogramDisplay.from_predictions(
        np.repeat(y, weight), np.repeat(p, weight), n_bins=9
    )
    if np.array_equal(one.edges, two.edges):
        np.testing.assert_array_equal(one.right, two.right)
        np.testing.assert_array_equal(one.wrong, two.wrong)
    assert np.sum(one.right) + np.sum(one.wrong) == weight.sum()


def test_from_estimator_marks_its_threshold(rng):
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    model = SelectiveClassifier(GaussianNB(), threshold=0.55).fit(X, y)
    display = ConfidenceHistogramDisplay.from_estimator(model, X, y)
    assert display.threshold == 0.55
    assert display.ax_.get_title() == "SelectiveClassifier"
    assert "threshold 0.55" in display.ax_.get_legend_handles_labels()[1]
    assert display.plot(name="mine").ax_.get_title() == "mine"


@pytest.mark.parametrize(("y", "p"), [([1], [0.9]), ([0, 1], [0.2, 0.8]), ([1, 1], [0.5, 0.5])])
def test_few_rows(y, p):
    display = ConfidenceHistogramDisplay.from_predictions(y, p, labels=[0, 1])
    assert np.sum(display.right) + np.sum(display.wrong) == len(y)


def test_styles_and_refusals(drawn):
    display = ConfidenceHistogramDisplay.from_predictions(*drawn)
    again = display.plot(right_kwargs={"c": "black"}, wrong_kwargs={"lw": 3})
    assert again.bars_["wrong"].get_linewidth() == 3
    with pytest.raises(ValueError, match="n_bins"):
        ConfidenceHistogramDisplay.from_predictions(*drawn, n_bins=0)
