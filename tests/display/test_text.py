"""No text of a picture is cut, and none lies over another: boxes are those of the renderer."""

from functools import cache
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.transforms import Bbox

import skselect as sk
from skselect import display as pictures
from skselect.display.common import new_figure

SIZES = [(3.6, 3.0), (6.4, 4.2), (10.0, 6.0)]
LONG = ["ductal carcinoma in situ, left", "no finding of any consequence", "benign"]
# Pixels: boxes are a little larger than their letters, so that they may touch.
_TOLERANCE = 2.0


def find_texts(figure):
    """Return what is written in a figure, with the box of each text."""
    renderer = figure.canvas.get_renderer()
    texts = [*figure.texts]
    axes = [*figure.axes]
    for ax in figure.axes:
        axes += ax.child_axes
    legends = [*figure.legends]
    for ax in axes:
        texts += [ax.title, *ax.texts]
        if ax.get_legend() is not None:
            legends.append(ax.get_legend())
        for axis in (ax.xaxis, ax.yaxis):
            if not axis.get_visible():
                continue
            texts += [axis.label, axis.offsetText]
            for tick in axis._update_ticks():
                texts += [label for label in (tick.label1, tick.label2) if label.get_visible()]
    for legend in legends:
        texts += legend.get_texts()
    shown = [text for text in texts if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in shown]


def find_faults(figure):
    """Return texts that are cut, and pairs of texts that lie over each other."""
    figure.canvas.draw()
    texts = find_texts(figure)
    faults = []
    whole = figure.bbox.padded(_TOLERANCE)
    for text, box in texts:
        if box.x0 < whole.x0 or box.y0 < whole.y0 or box.x1 > whole.x1 or box.y1 > whole.y1:
            faults.append(("cut", text))
    for (text, box), (other, other_box) in combinations(texts, 2):
        shared = Bbox.intersection(box, other_box)
        if shared is not None and min(shared.width, shared.height) > _TOLERANCE:
            faults.append(("over", text, other))
    return faults


@cache
def draw_table(n=4000, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.3), n)
    truth = (proba.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return truth, proba


TRUTH, PROBA = draw_table()
Y = np.asarray(LONG)[TRUTH]
NAME = "gradient boosting after isotonic calibration"


def draw_curve(display, size, **options):
    ax = new_figure(size=size)
    return display.from_predictions(Y, PROBA, labels=LONG, name=NAME, ax=ax, **options).figure_


def draw_models(display, size, **options):
    models = {f"{NAME}, {k}": PROBA for k in range(3)}
    display.from_models(Y, models, labels=LONG, ax=new_figure(size=size), **options)
    return plt.gcf()


def draw_selection(size, kind, target):
    selection = select(kind, target)
    ax = new_figure(size=size)
    return sk.RiskCoverageDisplay.from_selection(selection, name=NAME, band=True, ax=ax).figure_


@cache
def select(kind, target):
    rows = sk.Predictions.from_proba(Y, PROBA, labels=LONG)
    return sk.select_threshold(rows, objective=kind(target))


def draw_confusion(size, n_classes, **options):
    truth, proba = draw_table(4000 * n_classes, n_classes)
    labels = LONG if n_classes == 3 else list(range(n_classes))
    return pictures.SelectiveConfusionDisplay.from_predictions(
        np.asarray(labels)[truth], proba, labels=labels, threshold=0.6, ax=new_figure(size=size),
        **options,
    ).figure_  # fmt: skip


def draw_monitor(size, start, **options):
    n = len(start)
    history = pd.DataFrame(
        {
            "start": start, "evidence": np.geomspace(1e-3, 1e3, n), "alarm_line": 20.0,
            "risk": np.linspace(0.01, 0.2, n), "coverage": np.linspace(0.9, 0.7, n),
        }
    )  # fmt: skip
    display = pictures.MonitorDisplay(history, target=0.05, name=NAME, **options)
    return display.plot(new_figure(2, size)).figure_


def days(freq, periods):
    return pd.date_range("2026-11-03", periods=periods, freq=freq, tz="UTC")


CASES = {
    "risk": lambda size: draw_curve(
        sk.RiskCoverageDisplay, size, threshold=0.7, target=0.05, confidence_level=0.95
    ),
    "risk of models": lambda size: draw_models(sk.RiskCoverageDisplay, size),
    "certified": lambda size: draw_selection(size, sk.Risk, 0.2),
    "certified coverage": lambda size: draw_selection(size, sk.Coverage, 0.5),
    "reliability": lambda size: draw_curve(pictures.ReliabilityDisplay, size),
    "reliability of models": lambda size: draw_models(pictures.ReliabilityDisplay, size),
    "thresholds": lambda size: draw_curve(pictures.ThresholdDisplay, size, threshold=0.7),
    "thresholds of models": lambda size: draw_models(
        pictures.ThresholdDisplay, size, metrics=["coverage", "cwsa"]
    ),
    "histogram": lambda size: draw_curve(
        pictures.ConfidenceHistogramDisplay, size, threshold=0.7
    ),
    "workload": lambda size: draw_curve(
        pictures.WorkloadDisplay, size, threshold=0.7, minutes=6, hourly_cost=40, hours=40,
        cases=3000, deferred_error=0.03,
    ),
    "workload, sure": lambda size: draw_curve(
        pictures.WorkloadDisplay, size, confidence_level=0.95
    ),
    "roc": lambda size: draw_curve(
        pictures.ConfidenceWeightedRocDisplay, size, pos_label=LONG[0]
    ),
    "roc of models": lambda size: draw_models(
        pictures.ConfidenceWeightedRocDisplay, size, pos_label=LONG[0]
    ),
    "confusion": lambda size: draw_confusion(size, 3),
    "confusion, shares": lambda size: draw_confusion(size, 3, normalize="true"),
    "confusion of digits": lambda size: draw_confusion(size, 10),
    "monitor": lambda size: draw_monitor(size, np.arange(30) * 1_000_000),
    "monitor, days": lambda size: draw_monitor(size, days("D", 60)),
    "monitor, hours": lambda size: draw_monitor(size, days("h", 30)),
    "monitor, weeks": lambda size: draw_monitor(size, days("W", 20)),
    "monitor, years": lambda size: draw_monitor(size, days("MS", 40)),
    "monitor of costs": lambda size: draw_monitor(size, days("D", 9), is_share=False),
}  # fmt: skip


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]} inches")
@pytest.mark.parametrize("case", CASES)
def test_no_text_is_cut_or_lies_over_another(case, size):
    figure = CASES[case](size)
    faults = find_faults(figure)
    plt.close(figure)
    assert faults == []


def test_a_fault_is_found():
    ax = new_figure(size=(3, 2))
    ax.set(xlabel="much too long for a figure that is so small", title="a")
    ax.text(0.5, 0.5, "one text")
    ax.text(0.52, 0.5, "another text")
    faults = find_faults(ax.figure)
    plt.close(ax.figure)
    assert ("cut", "much too long for a figure that is so small") in faults
    assert ("over", "one text", "another text") in faults
