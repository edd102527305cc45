"""The history of a monitor: evidence with the alarm line, risk and coverage."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from skselect import AbstentionPolicy, SelectiveRiskMonitor
from skselect.display import MonitorDisplay
from skselect.predictions.decisions import DecisionRule


@pytest.fixture
def monitor(rng):
    return watched(rng)


def watched(rng, **options):
    policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.7, **options)
    P = rng.dirichlet([0.5, 0.5], 2000)
    y = (rng.random(2000) < P[:, 1]).astype(int)
    when = pd.date_range("2024-01-01", periods=2000, freq="h")
    return SelectiveRiskMonitor(policy, target=0.1, batch="7D").update(y, P, when=when)


def test_lines_are_those_of_the_frame(monitor):
    axes = plt.subplots(2)[1]
    display = MonitorDisplay.from_monitor(monitor, name="gate", axes=axes)
    frame = monitor.to_frame()
    for column in ("evidence", "risk", "coverage"):
        np.testing.assert_array_equal(display.lines_[column].get_ydata(), frame[column])
    top, bottom = display.axes_
    assert (top, bottom) == tuple(axes)
    assert top.get_title() == "gate"
    assert top.get_yscale() == "log"
    assert "alarm at 20" in top.get_legend_handles_labels()[1]
    assert "target 10 %" in bottom.get_legend_handles_labels()[1]
    assert bottom.get_xlabel() == "Time of the decision"
    black = MonitorDisplay(frame).plot(evidence_kwargs={"c": "black"})
    assert black.lines_["evidence"].get_color() == "black"
    new = SelectiveRiskMonitor(monitor.policy, target=0.1)  # has seen no case
    assert len(MonitorDisplay.from_monitor(new).lines_["risk"].get_ydata()) == 0


def test_an_alarm_is_marked_and_large_evidence_stays_in_the_picture(monitor):
    history = monitor.to_frame()
    history["evidence"] = [1, 19.9, 30, 1e60] + [1e80] * (len(history) - 4)
    top, bottom = (display := MonitorDisplay(history).plot()).axes_
    assert display.lines_["evidence"].get_ydata().max() == 20e4
    for ax in (top, bottom):
        (mark,) = (line for line in ax.lines if line.get_label() == "alarm")
        assert mark.get_xdata()[0] == history["start"][2]
    history["evidence"] = 1.0
    axes = MonitorDisplay(history).plot().axes_
    assert all(line.get_label() != "alarm" for ax in axes for line in ax.lines)


def test_costs_have_no_coverage_beside_them(rng):
    rule = DecisionRule("argmax", np.array([[0.0, 2.0], [5.0, 0.0]]))
    display = MonitorDisplay.from_monitor(watched(rng, rule=rule))
    assert set(display.lines_) == {"evidence", "risk"}
    assert display.axes_[1].get_ylabel() == "Mean cost"


@pytest.mark.parametrize("batch", ["1D", "week", "month"])
def test_labels_of_the_axes_stay_in_the_picture_and_apart(rng, batch):
    policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.7)
    P = rng.dirichlet([0.5, 0.5], 2000)
    when = pd.date_range("2024-12-01", periods=2000, freq="50min")
    monitor = SelectiveRiskMonitor(policy, target=0.1, batch=batch)
    monitor.update((rng.random(2000) < P[:, 1]).astype(int), P, when=when)
    with plt.rc_context({"font.size": 12}):
        display = MonitorDisplay.from_monitor(monitor)
        display.figure_.canvas.draw()
    for ax in display.axes_:
        label = ax.yaxis.label.get_window_extent()
        assert label.height <= ax.get_window_extent().height
    ticks = [text.get_window_extent() for text in display.axes_[1].get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(ticks))
