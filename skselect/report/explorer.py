"""A slider over all thresholds, with the bound that holds for all of them at once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from skselect._lib.arrays import BoolArray, FloatArray, IntArray
from skselect._lib.notebook import count, percent
from skselect.curve.curve import RiskCoverageCurve, count_within, threshold_below
from skselect.objectives import Loss
from skselect.policy.certificate import Certificate
from skselect.report.data import LEAST_LEVEL, Case
from skselect.report.questions import show_share
from skselect.thresholds import simultaneous_band

_STOPS = 250
# The picture, in units of its letters' pixels: the ends of the axes.
_LEFT = 52.0
_RIGHT = 468.0
_TOP = 24.0
_BOTTOM = 236.0
_MOST_TICKS = 6


@dataclass(frozen=True, eq=False)
class Stops:
    """Where the slider stops: entries of a curve, each with its bound.

    Parameters
    ----------
    curve : RiskCoverageCurve
    entries : ndarray of int, shape (m,)
    bound : ndarray of float, shape (m,)
        The largest risk, 1 where nothing is known.
    """

    curve: RiskCoverageCurve
    entries: IntArray
    bound: FloatArray

    @classmethod
    def choose(cls, case: Case, level: float) -> Stops:
        """Return stops spread evenly, with the largest entry of each bound and the threshold."""
        curve = case.scored.curve
        band = simultaneous_band(curve, 1.0 - level)
        even_shares = np.linspace(0, 1, _STOPS)[1:]
        entries = [
            np.searchsorted(curve.coverage, even_shares),
            count_within(band, np.unique(band)) - 1,
        ]
        threshold_entry = _find_threshold(case)
        if threshold_entry is not None:
            entries.append(np.array([threshold_entry]))
        last = len(band) - 1
        chosen = np.unique(np.minimum(np.concatenate(entries), last))
        return cls(curve, chosen, band[chosen])

    @property
    def risk(self) -> FloatArray:
        """The share of wrong answers in these rows at each stop."""
        return self.curve.selective_risk[self.entries]

    @property
    def is_bounded(self) -> BoolArray:
        """Whether anything is known about the risk at each stop."""
        return self.bound < 1.0

    def describe(self) -> list[list[str]]:
        """Return the threshold, coverage, bound, deferrals and errors at each stop, as text.

        Bounds and deferrals are rounded up, what these rows show to the nearest.
        """
        n_rows = self.curve.n_rows
        columns = (
            _write_thresholds(self.curve, self.entries + 1),
            self.curve.n_accepted[self.entries].tolist(),
            self.curve.accepted_loss[self.entries].astype(int).tolist(),
            self.bound.tolist(),
        )
        return [_describe_stop(n_rows, *values) for values in zip(*columns, strict=True)]


def make_explorer(case: Case, level: float) -> dict[str, Any] | None:
    """Return what the page needs for one model, by name; None where no bound holds for its rows.

    `stops` holds for each stop of the slider its place in the picture and its words, as
    JSON; the first ones answer the fewest cases. `start` is the stop that is shown first, `place`
    and `words` are its own.
    """
    curve = case.scored.curve
    if not curve.counted or curve.is_graded or level < LEAST_LEVEL:
        return None
    stops = Stops.choose(case, level)
    certificate = _find_certificate(case)
    target = 0.0 if certificate is None else certificate.target
    largest_bound = np.max(stops.bound, where=stops.is_bounded, initial=0.0)
    top = 1.15 * max(curve.mean_loss, float(largest_bound), target, 0.005)
    x = _LEFT + (_RIGHT - _LEFT) * curve.coverage[stops.entries]
    y = _height(np.minimum(stops.risk, top), top)
    places = _places(x, y)
    words = stops.describe()
    start = _find_start(case, stops)
    mark = _mark_threshold(case, certificate, words[start])
    if mark is not None:
        mark["x"] = float(x[start])
        mark["y"] = float(y[start] if certificate is None else _height(target, top))
    return {
        "stops": _write_json(places, words),
        "n_stops": len(places),
        "start": start,
        "words": words[start],
        "place": places[start],
        "found": _draw_line(places),
        "bound": _draw_steps(x, _height(stops.bound, top), stops.is_bounded),
        "x_ticks": _place_x_ticks(),
        "y_ticks": _place_y_ticks(top),
        "mark": mark,
        "trust": _explain_trust(case, level),
    }


def _find_threshold(case: Case) -> int | None:
    """Return the entry of the curve at which the given threshold stands, None without one."""
    if case.threshold is None:
        return None
    threshold = np.array([case.threshold])
    n_blocks = case.scored.curve.n_blocks_accepted(threshold).item()
    return n_blocks - 1 if n_blocks else None


def _find_certificate(case: Case) -> Certificate | None:
    """Return the certificate that bounds the share of wrong answers, None without one."""
    certificate = case.certificate
    if certificate is None or not certificate.is_certified:
        return None
    if not certificate.as_objective.is_selective or certificate.cases:
        return None
    if not Loss(certificate.loss).is_error:
        return None
    return certificate


def _find_start(case: Case, stops: Stops) -> int:
    """Return the stop that is shown first: that of the threshold, or where all is answered."""
    threshold_entry = _find_threshold(case)
    if threshold_entry is None:
        return len(stops.entries) - 1
    return int(np.searchsorted(stops.entries, threshold_entry))


def _mark_threshold(
    case: Case, certificate: Certificate | None, words: list[str]
) -> dict[str, Any] | None:
    """Return name and label of the mark, None without; `words` of its stop say what it is."""
    if case.threshold is None or _find_threshold(case) is None:
        return None
    name = "the chosen threshold" if case.policy is None else "the policy's threshold"
    label = name
    remark = f"This is {name}."
    if certificate is not None:
        name = "the certified threshold"
        label = f"certified: at most {certificate.bound}"
        remark = f"This is {name}; its bound is that of the certificate."
        words[2] = f"≤ {certificate.bound}"
    words[0] = _shorten(case.scored.curve, case.threshold)
    words[-1] = remark
    return {"name": name, "label": label}


def _describe_stop(
    n_rows: int, threshold: str, n_accepted: int, n_errors: int, bound: float
) -> list[str]:
    """Return what is said at one stop."""
    n_deferred = n_rows - n_accepted
    per_thousand = -(-1000 * n_deferred // n_rows)
    answers = count(n_accepted, "answer")
    share = show_share(n_errors / n_accepted)
    return [
        threshold,
        show_share(n_accepted / n_rows),
        f"≤ {percent(bound)}" if bound < 1 else "no bound",
        f"{per_thousand:,}",
        f"Wrong in these rows: {n_errors:,} of {answers} ({share}).",
        "",
    ]


def _write_thresholds(curve: RiskCoverageCurve, n_blocks: IntArray) -> list[str]:
    """Return thresholds with as few digits as accept the same rows."""
    exact = [threshold_below(curve, k) for k in n_blocks.tolist()]
    shortest = np.full(len(exact), "", dtype=object)
    for digits in (17, 9, 6, 4, 3):
        texts = np.array([f"{threshold:.{digits}g}" for threshold in exact])
        same = curve.n_blocks_accepted(texts.astype(np.float64)) == n_blocks
        shortest[same] = texts[same]
    return ["any" if text == "-inf" else text for text in shortest.tolist()]


def _shorten(curve: RiskCoverageCurve, threshold: float) -> str:
    """Return a threshold with as few digits as accept the same rows."""
    n_blocks = curve.n_blocks_accepted(np.array([threshold])).item()
    for digits in (3, 4, 6, 9):
        text = f"{threshold:.{digits}g}"
        if curve.n_blocks_accepted(np.array([float(text)])).item() == n_blocks:
            return text
    return f"{threshold:.17g}"


def _explain_trust(case: Case, level: float) -> str:
    """Say what the bounds assume."""
    trust = (
        f"With {percent(level, up=False)} confidence the bounds hold for all thresholds at once, "
        "so you may look at all of them before you choose; they assume that these rows are "
        "independent draws from the cases to come, and neither trained nor calibrated the model."
    )
    if case.policy is not None and case.policy.parts.by is not None:
        trust += " The slider has one threshold for all cases; the policy has several."
    return trust


# The picture ------------------------------------------------------------------------------


def _height(value: Any, top: float) -> Any:
    """Return where a share stands on the axis whose end is `top`."""
    return _BOTTOM - (_BOTTOM - _TOP) * np.asarray(value) / top


def _places(x: FloatArray, y: FloatArray) -> list[list[float]]:
    return np.column_stack([x, y]).round(1).tolist()


def _write_json(places: list[list[float]], words: list[list[str]]) -> str:
    """Return the stops as JSON that may stand in a page."""
    stops = [place + texts for place, texts in zip(places, words, strict=True)]
    return json.dumps(stops).replace("<", "\\u003c")


def _place_x_ticks() -> list[tuple[float, str]]:
    """Return the place and the text of each share of answered cases."""
    width = _RIGHT - _LEFT
    return [(_LEFT + width * k / 5, f"{20 * k} %") for k in range(6)]


def _place_y_ticks(top: float) -> list[tuple[float, str]]:
    """Return the place and the text of each share of wrong answers."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - an extra

    locator = MaxNLocator(_MOST_TICKS, steps=[1, 2, 5, 10])
    ticks = locator.tick_values(0.0, top)
    return [(float(_height(tick, top)), percent(tick)) for tick in ticks if tick <= top]


def _draw_line(places: list[list[float]]) -> str:
    """Return the path through these places."""
    points = [f"{x} {y}" for x, y in places]
    return "M" + "L".join(points)


def _draw_steps(x: FloatArray, y: FloatArray, is_bounded: BoolArray) -> str:
    """Return the path of a bound: that of a stop reaches down to the stop before."""
    path = ""
    is_joined = False
    for (a, b), shown in zip(_places(x, y), is_bounded.tolist(), strict=True):
        if shown:
            path += f"V{b}H{a}" if is_joined else f"M{a} {b}h0"
        is_joined = shown
    return path
