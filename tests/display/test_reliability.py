"""The reliability diagram and the confidence-weighted ROC curve draw their curves."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.naive_bayes import GaussianNB

from skselect import SelectiveClassifier
from skselect.display import ConfidenceWeightedRocDisplay, ReliabilityDisplay
from skselect.metrics import cw_roc_curve, reliability_curve, smooth_calibration_error
from tests.refusals import check_refused


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


def test_an_abstaining_estimator_is_drawn_by_its_claim(rng):
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 2)) + y[:, None]
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


@pytest.mark.parametrize(
    ("kind", "n_lines"), [(ReliabilityDisplay, 3), (ConfidenceWeightedRocDisplay, 5)]
)
def test_several_share_one_diagonal(kind, n_lines, drawn):
    first = kind.from_predictions(*drawn)
    second = kind.from_predictions(*drawn, name="again", ax=first.ax_)
    assert len(first.ax_.lines) == n_lines
    assert first.line_.get_color() != second.line_.get_color()
    red = second.plot(name="red", curve_kwargs={"color": "red"}).line_
    assert red.get_color() == "red"


# The confidence-weighted ROC curve ----------------------------------------------------------------


def test_lines_are_the_curves(drawn):
    y, p = drawn
    display = ConfidenceWeightedRocDisplay.from_predictions(y, p, name="model")
    fpr, tpr, _ = cw_roc_curve(y, p)
    np.testing.assert_array_equal(display.line_.get_xydata(), np.column_stack([fpr, tpr]))
    weight = np.maximum(p, 1 - p)
    assert display.cw_auc == pytest.approx(roc_auc_score(y, p, sample_weight=weight))
    theirs = roc_curve(y, p, drop_intermediate=False)[:2]
    np.testing.assert_allclose(display.plain, theirs, atol=1e-12)
    labels = display.ax_.get_legend_handles_labels()[1]
    plain = roc_auc_score(y, p)
    assert labels == [f"model: cwAUC {display.cw_auc:.3f}", f"model: AUC {plain:.3f}"]


def test_one_class_against_the_rest(rng):
    y = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 2)) + y[:, None]
    model = GaussianNB().fit(X, y)
    proba = model.predict_proba(X)
    check_refused("pos_label", ConfidenceWeightedRocDisplay.from_estimator, model, X, y)
    display = ConfidenceWeightedRocDisplay.from_estimator(model, X, y, pos_label=2)
    expected = roc_auc_score(y == 2, proba[:, 2], sample_weight=proba.max(axis=1))
    assert display.cw_auc == pytest.approx(expected)
    assert display.ax_.get_xlabel() == "False positive rate of 2"
    same = ConfidenceWeightedRocDisplay.from_predictions(y, proba, pos_label=2)
    assert same.cw_auc == display.cw_auc


def test_text_labels_need_a_name_and_rows_of_both_classes(drawn):
    y, p = drawn
    text, draw = np.where(y == 1, "yes", "no"), ConfidenceWeightedRocDisplay.from_predictions
    check_refused("pos_label", draw, text, np.column_stack([1 - p, p]))
    one = draw(text, np.column_stack([1 - p, p]), pos_label="yes")
    assert one.cw_auc == draw(y, p).cw_auc
    check_refused("needs rows of both classes", lambda: draw([1, 1], [0.4, 0.6], labels=[0, 1]))
