"""The evidence against a guarantee, and the risk behind it, over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import pandas as pd

from skselect._lib.files import import_extra
from skselect.display import common
from skselect.display.common import new_figure
from skselect.display.fit import fit_texts, measure_axes
from skselect.monitoring.monitor import SelectiveRiskMonitor
from skselect.objectives import Loss

# Evidence beyond so many times the alarm line is drawn there: it would hide what came before.
_HIGHEST = 1e4
# How wide a date is, with the space beside it, in inches.
_DATE = 0.95
# Of the evidence and of the risk behind it.
_COLOR = common.COLORS[0]


@dataclass(eq=False, repr=False)
class MonitorDisplay(common.Display):
    """The history of a monitor: the evidence with the alarm line, and below it the risk.

    A dotted line marks the batch with the first alarm. Evidence beyond 10,000 times the alarm line
    is drawn at that height.

    Parameters
    ----------
    history : DataFrame
        As :meth:`SelectiveRiskMonitor.to_frame` returns it.
    target : float, default=None
        The guaranteed risk, marked by a line.
    is_share : bool, default=True
        Whether the risk is a share of errors; else it is a mean cost.
    name : str, default=None
        For the title.

    Attributes
    ----------
    axes_ : tuple of matplotlib Axes
        Of the evidence, and of risk and coverage.
    figure_ : matplotlib Figure
    lines_ : dict of matplotlib Line2D
        "evidence", "risk" and "coverage".

    See Also
    --------
    SelectiveRiskMonitor : Raises the alarm.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect import AbstentionPolicy, SelectiveRiskMonitor
    >>> from skselect.display import MonitorDisplay
    >>> policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
    >>> monitor = SelectiveRiskMonitor(policy, target=.05, batch=100)
    >>> y = np.append(np.zeros(300), np.arange(200) % 4 == 0).astype(int)
    >>> display = MonitorDisplay.from_monitor(monitor.update(y, [[.9, .1]] * 500))
    >>> display.history["risk"].tolist()
    [0.0, 0.0, 0.0, 0.25, 0.25]
    """

    history: pd.DataFrame
    _: KW_ONLY
    target: float | None = None
    is_share: bool = True
    name: str | None = None

    @classmethod
    def from_monitor(
        cls, monitor: SelectiveRiskMonitor, *, name: str | None = None, axes: Any = None
    ) -> Self:
        """Draw a monitor; several guarantees share the lines, and that of one target."""
        status = monitor.status_
        targets = {guarantee.target for guarantee in status.guarantees}
        target = targets.pop() if len(targets) == 1 else None
        display = cls(
            monitor.to_frame(),
            target=target,
            is_share=Loss(status.loss).is_error,
            name=name,
        )
        return display.plot(axes)

    def plot(
        self,
        axes: Any = None,
        *,
        name: str | None = None,
        evidence_kwargs: Mapping[str, Any] | None = None,
        risk_kwargs: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, default=None
            None makes a new figure.
        name : str, default=None
            For the title.
        evidence_kwargs, risk_kwargs : mapping, default=None
            For the two lines (``Axes.plot``).

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        if axes is None:
            axes = new_figure(2, (6.4, 5.0))
        if name is None:
            name = self.name
        top, bottom = axes
        self.lines_ = {
            "evidence": self._draw_evidence(top, evidence_kwargs),
            **self._draw_shares(bottom, risk_kwargs),
        }
        self._mark_alarm(top, bottom)
        common.draw_target(bottom, self.target, "zero_one" if self.is_share else "cost")
        bottom.set(ylabel="Share" if self.is_share else "Mean cost", ylim=(0, None))
        self._name_times(bottom)
        if name:
            top.set_title(common.legend_name(name))
        for ax in (top, bottom):
            ax.legend(frameon=False, loc="best")
        self._place_times(bottom)
        fit_texts(top, bottom)
        self.axes_ = (top, bottom)
        self.figure_ = top.figure
        return self

    @property
    def _has_dates(self) -> bool:
        """Whether the batches start at dates; else their numbers are shown."""
        return isinstance(self.history["start"].dtype, pd.DatetimeTZDtype)

    def _name_times(self, ax: Any) -> None:
        """Name the axis of time, and let it show dates where there are some."""
        if not self._has_dates:
            ax.set_xlabel("Start of the batch")
            return
        ax.set_xlabel("Time of the decision")
        dates = import_extra("matplotlib.dates", "matplotlib")
        locator = dates.AutoDateLocator(maxticks=8)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))

    def _place_times(self, ax: Any) -> None:
        """Show as many dates as have room, or the numbers of the batches."""
        if not self._has_dates:
            ax.xaxis.set_major_formatter("{x:,.0f}")
        elif len(self.history):
            _place_dates(ax)

    def _draw_shares(self, ax: Any, look: Mapping[str, Any] | None) -> dict[str, Any]:
        """Draw the risk, and the coverage beside a risk that is a share."""
        lines = {"risk": self._draw_line(ax, "risk", "selective risk", _COLOR, look)}
        if self.is_share:  # a cost has other units than the coverage
            color = common.COLORS[3]
            lines["coverage"] = self._draw_line(ax, "coverage", "coverage", color)
            common.show_percent(ax.yaxis)
        return lines

    def _draw_line(
        self,
        ax: Any,
        column: str,
        label: str,
        color: str,
        look: Mapping[str, Any] | None = None,
        highest: Any = None,
    ) -> Any:
        """Draw a column of the history, up to a largest value of each batch."""
        values = self.history[column].clip(upper=highest)
        style = {"color": color, "marker": ".", "label": label} | common.full_names(look)
        (line,) = ax.plot(self.history["start"], values, **style)
        return line

    def _draw_evidence(self, ax: Any, look: Mapping[str, Any] | None) -> Any:
        """Draw the evidence and the alarm line."""
        alarm_lines = self.history["alarm_line"]
        highest = _HIGHEST * alarm_lines
        line = self._draw_line(ax, "evidence", "evidence", _COLOR, look, highest)
        ax.set(yscale="log", ylabel="Evidence (log scale)")
        if len(alarm_lines):
            height = alarm_lines.iloc[0]
            label = f"alarm at {height:g}"
            ax.axhline(height, color=common.MARK, linestyle="--", linewidth=1, label=label)
        return line

    def _mark_alarm(self, *axes: Any) -> None:
        """Mark the batch with the first alarm, where there is one."""
        is_alarm = self.history["evidence"] >= self.history["alarm_line"]
        starts = self.history.loc[is_alarm, "start"]
        if len(starts):
            for ax in axes:
                ax.axvline(
                    starts.iloc[0], color=common.MARK, linestyle=":", linewidth=1, label="alarm"
                )


# By matplotlib's number of the unit: months, days, hours, minutes, seconds.
_LONGEST_STEPS = {1: (12, 24), 3: (30, 60), 4: (24, 48), 5: (60, 120), 6: (60, 120)}


def _place_dates(ax: Any) -> None:
    """Show as many dates as have room, evenly spread."""
    from matplotlib import dates  # noqa: PLC0415 - an extra

    width, _ = measure_axes(ax)
    room = int(width / ax.figure.dpi / _DATE)
    locator = dates.AutoDateLocator(minticks=2, maxticks=max(room, 3), interval_multiples=False)
    # Few dates need longer steps than matplotlib's, such as a day among hours.
    for unit, steps in locator.intervald.items():
        longest = _LONGEST_STEPS.get(unit, ())
        locator.intervald[unit] = [*steps, *longest]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(dates.AutoDateFormatter(locator))
