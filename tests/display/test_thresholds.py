"""The picture of all thresholds, and the histogram of right and wrong answers."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from skselect import Outcomes, RiskCoverageCurve, ThresholdTuner
from skselect.display import ConfidenceHistogramDisplay, ThresholdDisplay
from skselect.metrics import coverage_score, cwsa_plus_score, cwsa_score, selective_accuracy_score
from tests.refusals import check_refused


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(400, 5, class_sep=0.8, random_state=0)
    return LogisticRegression().fit(X[:200], y[:200]), X[200:], y[200:]


def test_lines_are_the_metrics(data):
    model, X, y = data
    display = ThresholdDisplay.from_estimator(model, X, y)
    metrics = {
        "coverage": coverage_score, "selective_accuracy": selective_accuracy_score,
        "cwsa": cwsa_score, "cwsa_plus": cwsa_plus_score,
    }  # fmt: skip
    assert set(display.lines_) == set(metrics)
    for name, line in display.lines_.items():
        for t, value in line.get_xydata()[::60]:
            if not np.isnan(value):
                expected = metrics[name](y, model.predict_proba(X), threshold=t)
                assert value == pytest.approx(expected, abs=1e-12)
    same = ThresholdDisplay.from_predictions(y, model.predict_proba(X), metrics=["coverage"])
    assert list(same.lines_) == ["coverage"]


def test_means_over_few_rows_are_pale(data):
    model, X, y = data
    proba = model.predict_proba(X)
    ax = ThresholdDisplay.from_predictions(y, proba).ax_
    assert "pale: fewer than 30 accepted rows" in ax.get_legend_handles_labels()[1]
    firm = {line.get_label(): line for line in ax.lines if line.get_alpha() is None}
    assert not np.isnan(firm["coverage"].get_ydata()).any()
    for t, value in firm["CWSA"].get_xydata():
        assert np.isnan(value) == (np.sum(proba.max(axis=1) >= t) < 30)
    sure = ThresholdDisplay.from_predictions(y, np.full(len(y), 1.0), pos_label=1)
    assert not any("pale" in label for label in sure.ax_.get_legend_handles_labels()[1])


@pytest.mark.filterwarnings("ignore:cwsa")
def test_a_chosen_threshold_is_marked_and_several_are_not(data):
    model, X, y = data
    tuner = ThresholdTuner(model, objective="coverage", target=0.5, cv=3)
    with pytest.warns(UserWarning, match="already fitted"):
        tuner.fit(X, y)
    labels = ThresholdDisplay.from_estimator(tuner, X, y).ax_.get_legend_handles_labels()[1]
    assert f"threshold {tuner.threshold_:.3g}" in labels
    with pytest.warns(UserWarning, match="already fitted"):
        tuner.set_params(group_by="predicted_class").fit(X, y)
    labels = ThresholdDisplay.from_estimator(tuner, X, y).ax_.get_legend_handles_labels()[1]
    assert not any("threshold" in label for label in labels)


# A histogram of right answers above one of wrong answers ------------------------------------------


def test_bins_count_right_and_wrong_rows_and_bars_are_shares_of_their_own_kind(drawn):
    y, p = drawn
    display = ConfidenceHistogramDisplay.from_predictions(y, p, n_bins=7)
    c, right = np.maximum(p, 1 - p), (p > 0.5) == y
    for name, counts, rows, way in [
        ("right", display.right, right, 1), ("wrong", display.wrong, ~right, -1),
    ]:  # fmt: skip
        bins = np.clip(np.searchsorted(display.edges, c[rows], side="right") - 1, 0, 6)
        np.testing.assert_array_equal(counts, np.bincount(bins, minlength=7))
        bars = display.bars_[name].get_data()
        assert bars.baseline == 0
        np.testing.assert_allclose(bars.values, way * counts / rows.sum())
    labels = display.ax_.get_legend_handles_labels()[1]
    assert labels == [f"right: {right.sum()}", f"wrong: {(~right).sum()}"]
    for few in [([1], [0.9]), ([0, 1], [0.2, 0.8]), ([1, 1], [0.5, 0.5])]:
        display = ConfidenceHistogramDisplay.from_predictions(*few, labels=[0, 1])
        assert np.sum(display.right) + np.sum(display.wrong) == len(few[0])


def test_styles(drawn):
    display = ConfidenceHistogramDisplay.from_predictions(*drawn)
    again = display.plot(name="mine", right_kwargs={"c": "black"}, wrong_kwargs={"lw": 3})
    assert again.ax_.get_title() == "mine"
    assert again.bars_["wrong"].get_linewidth() == 3


def test_refusals(drawn):
    curves = [RiskCoverageCurve.from_outcomes(Outcomes([0, 1], [c, 0.8])) for c in (0.9, 9.0)]
    check_refused("metrics", ThresholdDisplay(curves[0], metrics=["luck"]).plot)
    check_refused("ThresholdDisplay", ThresholdDisplay(curves[1]).plot)
    draw = ConfidenceHistogramDisplay.from_predictions
    check_refused("n_bins", lambda: draw(*drawn, n_bins=0))
