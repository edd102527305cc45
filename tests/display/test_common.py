"""Several models, subgroups, bands: what the pictures share."""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from scipy.stats import binomtest
from sklearn.naive_bayes import GaussianNB

from skselect import Outcomes, RiskCoverageCurve, RiskCoverageDisplay, SelectiveClassifier
from skselect.display import (
    ConfidenceHistogramDisplay,
    ConfidenceWeightedRocDisplay,
    ReliabilityDisplay,
    SelectiveConfusionDisplay,
    ThresholdDisplay,
    WorkloadDisplay,
)
from tests.refusals import check_refused

SEVERAL = [ConfidenceWeightedRocDisplay, ReliabilityDisplay, RiskCoverageDisplay, ThresholdDisplay,
           WorkloadDisplay]  # fmt: skip


def line_of(display):
    line = getattr(display, "line_", None)
    return line if line is not None else display.lines_["selective_accuracy"]


@pytest.mark.parametrize("kind", SEVERAL)
def test_models_are_drawn_as_one_by_one(kind, drawn):
    y, p = drawn
    models = {"plain": p, "sure": np.where(p > 0.5, 0.99, 0.01)}
    together = kind.from_models(y, models)
    assert list(together) == ["plain", "sure"]
    assert together["plain"].ax_ is together["sure"].ax_
    for name, y_proba in models.items():
        alone = kind.from_predictions(y, y_proba)
        np.testing.assert_array_equal(
            line_of(together[name]).get_xydata(), line_of(alone).get_xydata()
        )
    looks = [(line_of(d).get_color(), line_of(d).get_linestyle()) for d in together.values()]
    assert looks[0] != looks[1]
    if kind is ThresholdDisplay:
        assert together["plain"].ax_.get_xlim()[0] < 0.55  # the first one is not cut off


@pytest.mark.filterwarnings("error")
def test_shares_are_percentages_and_confidences_are_numbers(drawn):
    y, p = drawn
    shares = {
        ConfidenceHistogramDisplay: "y", ConfidenceWeightedRocDisplay: "xy",
        ReliabilityDisplay: "y", RiskCoverageDisplay: "xy", ThresholdDisplay: "y",
    }  # fmt: skip
    for kind, percentages in shares.items():
        display = kind.from_predictions(y, p)
        display.figure_.canvas.draw()
        for name in "xy":
            ticks = [tick.get_text() for tick in getattr(display.ax_, f"get_{name}ticklabels")()]
            assert all(tick.endswith(" %") == (name in percentages) for tick in ticks), kind


@pytest.mark.parametrize("kind", SEVERAL)
def test_subgroups_are_drawn_from_their_rows(kind, drawn, rng):
    y, p = drawn
    groups = pd.Series(rng.choice(["a", "b", "c"], len(y))).where(rng.random(len(y)) > 0.1)
    shown = kind.from_subgroups(y, p, groups)
    assert list(shown) == ["a", "b", "c"]
    for name, display in shown.items():
        mine = (groups == name).to_numpy()
        assert display.name == f"{name} ({mine.sum()})"
        proba = np.column_stack([1 - p, p])[mine]
        alone = kind.from_predictions(y[mine], proba)
        np.testing.assert_array_equal(line_of(display).get_xydata(), line_of(alone).get_xydata())
    if kind is RiskCoverageDisplay:  # a subgroup may lack a class
        three = kind.from_subgroups(["no", "yes", "no"], [0.1, 0.8, 0.4], ["a", "a", "b"])
        np.testing.assert_array_equal(three["b"].line_.get_xydata(), [[1, 0]])


#: What a picture of counted rows shows.
COUNTED = {
    SelectiveConfusionDisplay: lambda display: display.confusion_matrix,
    ConfidenceHistogramDisplay: lambda display: [display.right, display.wrong],
    WorkloadDisplay: lambda display: display.line_.get_xydata(),
}


@pytest.mark.parametrize("kind", COUNTED)
def test_weights_count_rows(kind, drawn, rng):
    y, p = drawn
    weight = rng.integers(0, 4, len(y))
    sure = np.maximum(p, 1 - p)
    weight[[sure.argmin(), sure.argmax()]] = 1  # the ends of a histogram
    one = kind.from_predictions(y, p, sample_weight=weight, threshold=0.7)
    two = kind.from_predictions(np.repeat(y, weight), np.repeat(p, weight), threshold=0.7)
    np.testing.assert_allclose(COUNTED[kind](one), COUNTED[kind](two), atol=1e-9)


@pytest.mark.parametrize("kind", [RiskCoverageDisplay, ConfidenceHistogramDisplay, WorkloadDisplay])
def test_an_estimator_marks_its_threshold(kind, rng):
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    model = SelectiveClassifier(GaussianNB(), threshold=0.55).fit(X, y)
    one, two = kind.from_estimator(model, X, y), kind.from_predictions(y, model.predict_proba(X))
    assert (one.threshold, two.threshold) == (0.55, None)
    if kind is ConfidenceHistogramDisplay:
        assert one.ax_.get_title() == "SelectiveClassifier"
        assert "threshold 0.55" in one.ax_.get_legend_handles_labels()[1]
    else:
        np.testing.assert_array_equal(one.line_.get_xydata(), two.line_.get_xydata())


@pytest.mark.parametrize(("kind", "options"), [
    (RiskCoverageDisplay, {}), (ConfidenceHistogramDisplay, {}), (ReliabilityDisplay, {}),
    (WorkloadDisplay, {"minutes": 5, "hourly_cost": 40}),
    (WorkloadDisplay, {"deferred_error": 0.05}),
])  # fmt: skip
def test_labels_fit_into_one_column_of_a_paper(kind, options, drawn):
    with plt.rc_context({"font.family": "DejaVu Sans"}):  # which comes with matplotlib
        ax = plt.subplots(figsize=(3.3, 2.4), layout="constrained")[1]
        kind.from_predictions(*drawn, ax=ax, **options)
        ax.figure.canvas.draw()
        axes = [ax.xaxis, ax.yaxis, *(one.yaxis for one in ax.child_axes)]
        ends = [axis.label.get_window_extent().extents for axis in axes]
    assert np.min(ends) >= 0
    assert np.all(np.max(ends, axis=0)[2:] <= ax.figure.bbox.extents[2:])


def band_of(ax):
    (band,) = [c for c in ax.collections if isinstance(c, PolyCollection)]
    points = band.get_paths()[0].vertices
    return points[~np.isnan(points).any(axis=1)]


def test_the_band_is_the_exact_interval_at_each_entry(drawn):
    y, p = drawn
    ax = RiskCoverageDisplay.from_predictions(y, p, confidence_level=0.9).ax_
    band = band_of(ax)
    order = np.argsort(-np.maximum(p, 1 - p))
    wrong = ((p > 0.5) != y)[order]
    for k in [30, 77, 100, 399, 400]:
        interval = binomtest(int(wrong[:k].sum()), k).proportion_ci(0.9, "exact")
        ends = np.sort(band[np.isclose(band[:, 0], k / 400)][:, 1])
        np.testing.assert_allclose(ends[[0, -1]], interval, atol=1e-12)
    assert ax.get_ylim()[1] < 1  # a few rows say nothing, and do not squeeze the rest


def test_the_band_of_the_threshold_picture(drawn):
    y, p = drawn
    display = ThresholdDisplay.from_predictions(y, p, confidence_level=0.95)
    band = band_of(display.ax_)
    grid = display.lines_["coverage"].get_xdata()
    at = grid[250]
    accepted = np.maximum(p, 1 - p) >= at
    right = int(((p > 0.5) == y)[accepted].sum())
    interval = binomtest(right, int(accepted.sum())).proportion_ci(0.95, "exact")
    ends = np.sort(band[band[:, 0] == at][:, 1])
    np.testing.assert_allclose(ends[[0, -1]], interval, atol=1e-12)


@pytest.mark.parametrize("kind", [RiskCoverageDisplay, ThresholdDisplay])
def test_bands_count_errors(kind, drawn):
    weighted = {"confidence_level": 0.9, "sample_weight": 1 + drawn[0]}
    check_refused("unweighted", lambda: kind.from_predictions(*drawn, **weighted))
    level = {"confidence_level": 1.5}
    check_refused("confidence_level", lambda: kind.from_predictions(*drawn, **level))


def test_bands_are_in_the_units_of_the_curve(rng):
    confidence = rng.random(200)
    curve = RiskCoverageCurve.from_outcomes(Outcomes(rng.random(200) > confidence, confidence))
    display = RiskCoverageDisplay(curve, unit=10, loss="cost", confidence_level=0.9).plot()
    band = band_of(display.ax_)
    x, y = display.line_.get_data()
    inside = band[np.isclose(band[:, 0], x[150])][:, 1]
    assert inside.min() < y[150] < inside.max()
    assert inside.max() > 1


def test_odd_names_are_shown_and_one_target_once(drawn):
    y, p = drawn
    shown = RiskCoverageDisplay.from_models(y, {"_one": p, "$two$": p}, target=0.1)
    shown["_one"].figure_.canvas.draw()
    labels = shown["_one"].ax_.get_legend_handles_labels()[1]
    assert labels == [" _one", "target 10 %", r"\$two\$"]


def test_what_cannot_be_drawn_together(drawn):
    y, p = drawn
    draw = RiskCoverageDisplay.from_subgroups
    for argument, call in [
        ("models", partial(RiskCoverageDisplay.from_models, y, {"one": p})),
        ("from_models", partial(RiskCoverageDisplay.from_models, {"a": p, "b": p}, None)),
        ("subgroups", partial(draw, y, p, [None] * len(y))),
        ("confidence", partial(draw, y, p, y, confidence=p)),
        ("metrics", partial(ThresholdDisplay.from_predictions, y, p, metrics=[])),
    ]:
        check_refused(argument, call)
