"""Pictures draw what the curve says."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from skselect import (
    Outcomes,
    ReliabilityDisplay,
    RiskCoverageCurve,
    RiskCoverageDisplay,
    SelectiveClassifier,
)
from skselect.metrics import reliability_curve, smooth_calibration_error


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture
def curve(rng):
    confidence = rng.random(300)
    return RiskCoverageCurve.from_outcomes(Outcomes(rng.random(300) > confidence, confidence))


def test_line_is_the_curve(curve):
    display = RiskCoverageDisplay(curve, name="model", target=0.1).plot(color="black")
    x, y = display.line_.get_data()
    np.testing.assert_array_equal(x, curve.coverage)
    np.testing.assert_array_equal(y, curve.selective_risk)
    assert display.line_.get_color() == "black"
    labels = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert labels == ["model", "target 10 %"]


def test_threshold_is_marked_where_it_works(curve):
    display = RiskCoverageDisplay(curve, threshold=0.6).plot()
    mark = display.ax_.lines[-1]
    k = int(np.sum(curve.thresholds >= 0.6))
    assert mark.get_xdata()[0] == curve.coverage[k - 1]
    assert mark.get_ydata()[0] == curve.selective_risk[k - 1]
    nothing = RiskCoverageDisplay(curve, threshold=np.inf).plot()
    assert len(nothing.ax_.lines) == 1


def test_several_on_one_axes(curve):
    _, ax = plt.subplots()
    RiskCoverageDisplay(curve, name="a").plot(ax)
    RiskCoverageDisplay(curve, name="b").plot(ax)
    assert len(ax.lines) == 2
    assert ax.lines[0].get_color() != ax.lines[1].get_color()


def test_a_higher_curve_is_not_cut_off(curve):
    good = RiskCoverageCurve.from_outcomes(Outcomes([0, 0, 0, 1], [0.9, 0.8, 0.7, 0.6]))
    bad = RiskCoverageCurve.from_outcomes(Outcomes([1, 1, 1, 1], [0.9, 0.8, 0.7, 0.6]))
    ax = RiskCoverageDisplay(good).plot().ax_
    RiskCoverageDisplay(bad).plot(ax)
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] >= 1


def test_from_estimator_and_from_predictions_agree(rng):
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    model = SelectiveClassifier(GaussianNB(), threshold=0.55).fit(X, y)
    one = RiskCoverageDisplay.from_estimator(model, X, y)
    two = RiskCoverageDisplay.from_predictions(y, model.predict_proba(X))
    np.testing.assert_array_equal(one.line_.get_xydata(), two.line_.get_xydata())
    assert one.threshold == 0.55
    assert two.threshold is None


def test_millions_of_points_are_thinned_both_ends_kept():
    n = 50_000
    curve = RiskCoverageCurve.from_outcomes(Outcomes(np.zeros(n), np.linspace(0, 1, n)))
    x = RiskCoverageDisplay(curve).plot().line_.get_xdata()
    assert len(x) <= 2000
    assert (x[0], x[-1]) == (1 / n, 1.0)


def test_without_matplotlib_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from skselect import *\n"
        "curve = RiskCoverageCurve.from_outcomes(Outcomes([0], [.5]))\n"
        "try: RiskCoverageDisplay(curve).plot()\n"
        "except ImportError as e: assert 'pip install' in str(e); print('told')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "told"


# Reliability ------------------------------------------------------------------------------


def test_points_are_the_reliability_curve(rng):
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    display = ReliabilityDisplay.from_predictions(y, p, n_bins=8, name="model")
    curve = reliability_curve(y, p, n_bins=8)
    np.testing.assert_allclose(
        display.line_.get_xydata(), curve[["confidence", "accuracy"]].to_numpy()
    )
    label = display.ax_.get_legend().get_texts()[0].get_text()
    assert label == f"model: smooth ECE {smooth_calibration_error(y, p):.3f}"
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
    red = second.plot(name="red", color="red").line_
    assert red.get_color() == "red"
