"""The reliability diagram draws the reliability curve."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from skselect import SelectiveClassifier
from skselect.display import ReliabilityDisplay
from skselect.metrics import reliability_curve, smooth_calibration_error


def test_points_are_the_reliability_curve(rng):
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    display = ReliabilityDisplay.from_predictions(y, p, n_bins=8, name="model")
    curve = reliability_curve(y, p, n_bins=8)
    np.testing.assert_allclose(
        display.line_.get_xydata(), curve[["confidence", "accuracy"]].to_numpy()
    )
    label = display.ax_.get_legend().get_texts()[0].get_text()
    assert label == f"model: smooth ECE {100 * smooth_calibration_error(y, p):.1f} %"
    bars = display.ax_.collections[0].get_segments()
    np.testing.assert_allclose([bar[:, 1] for bar in bars], curve[["low", "high"]])


def test_an_abstaining_estimator_is_drawn_by_its_claim(data_for_reliability):
    X, y = data_for_reliability
    model = SelectiveClassifier(
        GaussianNB(), calibration="isotonic", calibration_scope="confidence", cv=3
    ).fit(X, y)
    display = ReliabilityDisplay.from_estimator(model, X, y, n_bins=5)
    confidence = model.predict_confidence(X)
    right = model.predict_proba(X).argmax(axis=1) == y
    np.testing.assert_allclose(
        np.sum(display.curve["share"] * display.curve["confidence"]), confidence.mean()
    )
    np.testing.assert_allclose(
        np.sum(display.curve["share"] * display.curve["accuracy"]), right.mean()
    )


@pytest.fixture
def data_for_reliability(rng):
    y = rng.integers(0, 3, 300)
    return rng.normal(size=(300, 2)) + y[:, None], y


def test_several_reliability_curves_share_one_diagonal(data_for_reliability):
    X, y = data_for_reliability
    model = GaussianNB().fit(X, y)
    first = ReliabilityDisplay.from_estimator(model, X, y)
    second = ReliabilityDisplay.from_estimator(model, X, y, name="again", ax=first.ax_)
    assert len(first.ax_.lines) == 3
    assert first.line_.get_color() != second.line_.get_color()
    red = second.plot(name="red", curve_kwargs={"color": "red"}).line_
    assert red.get_color() == "red"
