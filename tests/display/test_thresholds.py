"""The picture of all thresholds."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from skselect import Outcomes, RiskCoverageCurve, ThresholdTuner
from skselect.display import ThresholdDisplay
from skselect.metrics import coverage_score, cwsa_plus_score, cwsa_score, selective_accuracy_score


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


def test_bad_input():
    curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 1], [0.9, 0.8]))
    with pytest.raises(ValueError, match="metrics must be one of"):
        ThresholdDisplay(curve, metrics=["luck"]).plot()
    wide = RiskCoverageCurve.from_outcomes(Outcomes([0, 1], [9.0, 0.8]))
    with pytest.raises(ValueError, match="ThresholdDisplay"):
        ThresholdDisplay(wide).plot()
