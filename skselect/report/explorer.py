"""A slider over all thresholds, with the bound that holds for all of them at once."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from skselect._lib.arrays import FloatArray, IntArray
from skselect._lib.notebook import count, percent
from skselect.curve.curve import RiskCoverageCurve, count_within, threshold_below
from skselect.objectives import Loss
from skselect.policy.certificate import Certificate
from skselect.report.data import LEAST_LEVEL, Case
from skselect.thresholds import simultaneous_band

_STOPS = 250
# The picture, in units of its letters' pixels: left, right, top and bottom of the axes.
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 468.0, 24.0, 236.0
_MOST_TICKS = 6


def make_explorer(case: Case, level: float) -> dict[str, Any] | None:
    """Return what the page needs for one model, by name; None where no bound holds for its rows.

    `stops` holds for each stop of the slider its place in the picture and what is said there, as
    JSON; the first ones answer the fewest cases. `start` is the stop that is shown first, `place`
    and `said` are its own.
    """
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - an extra

    curve = case.scored.curve
    if not curve.counted or curve.is_graded or level < LEAST_LEVEL:
        return None
    band = simultaneous_band(curve, 1.0 - level)
    own, made = _own_entry(case), _own_certificate(case)
    entries = _choose_entries(curve, band, own)
    risk, bound = curve.selective_risk[entries], band[entries]
    known = bound < 1.0
    top = 1.15 * max(curve.mean_loss, *bound[known], made.target if made else 0.0, 0.005)
    x = _LEFT + (_RIGHT - _LEFT) * curve.coverage[entries]
    y = _height(np.minimum(risk, top), top)
    said = _describe_stops(curve, entries, bound)
    start, mark = len(entries) - 1, None
    if own is not None:
        start = int(np.searchsorted(entries, own))
        name = "the chosen threshold" if case.policy is None else "the policy's threshold"
        label, high, also = name, y[start], ""
        if made is not None:
            name, label = "the certified threshold", f"certified: at most {made.bound}"
            high, also = _height(made.target, top), "; its bound is that of the certificate"
            said[start][2] = f"≤ {made.bound}"
        said[start][0], said[start][-1] = f"{case.threshold:.6g}", f"This is {name}{also}."
        mark = {"x": float(x[start]), "y": float(high), "name": name, "label": label}
    places = _places(x, y)
    ticks = MaxNLocator(_MOST_TICKS, steps=[1, 2, 5, 10]).tick_values(0.0, top)
    stops = [[*place, *words] for place, words in zip(places, said, strict=True)]
    return {
        "stops": json.dumps(stops).replace("<", "\\u003c"),
        "n_stops": len(stops),
        "start": start,
        "said": said[start],
        "place": places[start],
        "found": "M" + "L".join(f"{a} {b}" for a, b in places),
        "bound": _draw_steps(x, _height(bound, top), known),
        "x_ticks": [(_LEFT + (_RIGHT - _LEFT) * k / 5, f"{20 * k} %") for k in range(6)],
        "y_ticks": [(float(_height(tick, top)), percent(tick)) for tick in ticks if tick <= top],
        "mark": mark,
        "trust": _explain_trust(case, level),
    }


def _own_entry(case: Case) -> int | None:
    """Return the entry of the curve at which the given threshold stands, None without one."""
    if case.threshold is None:
        return None
    n_blocks = int(case.scored.curve.n_blocks_accepted(np.array([case.threshold]))[0])
    return n_blocks - 1 if n_blocks else None


def _own_certificate(case: Case) -> Certificate | None:
    """Return the certificate that bounds the share of wrong answers, None without one."""
    made = None if case.policy is None else case.policy.certificate
    if made is None or not made.is_certified or not made.as_objective.is_selective:
        return None
    return made if Loss(made.loss).is_error and not made.cases else None


def _choose_entries(curve: RiskCoverageCurve, band: FloatArray, own: int | None) -> IntArray:
    """Return the entries at which the slider stops: evenly spread, the largest of each bound."""
    even = np.searchsorted(curve.coverage, np.linspace(0, 1, _STOPS)[1:])
    largest = count_within(band, np.unique(band)) - 1
    chosen = np.concatenate([even, largest, even[:0] if own is None else [own]])
    return np.unique(np.minimum(chosen, len(band) - 1))


def _describe_stops(
    curve: RiskCoverageCurve, entries: IntArray, bound: FloatArray
) -> list[list[str]]:
    """Return the threshold, coverage, bound, deferrals and errors at each stop, as text.

    Bounds and deferrals are rounded up, what these rows show to the nearest.
    """
    n, some = curve.n_rows, curve.n_accepted[entries].tolist()
    wrong = curve.accepted_loss[entries].astype(int).tolist()
    return [
        [
            threshold,
            percent(k / n),
            f"≤ {percent(most)}" if most < 1 else "no bound",
            f"{-(-1000 * (n - k) // n):,}",
            f"Wrong in these rows: {m:,} of {count(k, 'answer')} ({percent(m / k)}).",
            "",
        ]
        for threshold, k, m, most in zip(
            _write_thresholds(curve, entries + 1), some, wrong, bound.tolist(), strict=True
        )
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


def _explain_trust(case: Case, level: float) -> str:
    """Say what the bounds assume."""
    several = case.policy is not None and case.policy.parts.by is not None
    only = " The slider has one threshold for all cases; the policy has several." if several else ""
    return (
        f"With {percent(level, up=False)} confidence the bounds hold for all thresholds at once, "
        "so you may look at all of them before you choose; they assume that these rows are "
        "independent draws from the cases to come, and neither trained nor calibrated the model."
        f"{only}"
    )


# The picture ------------------------------------------------------------------------------


def _height(value: Any, top: float) -> Any:
    """Return where a share stands on the axis whose end is `top`."""
    return _BOTTOM - (_BOTTOM - _TOP) * np.asarray(value) / top


def _places(x: FloatArray, y: FloatArray) -> list[list[float]]:
    return np.column_stack([x, y]).round(1).tolist()


def _draw_steps(x: FloatArray, y: FloatArray, known: Any) -> str:
    """Return the path of a bound: that of a stop reaches down to the stop before."""
    path, joined = "", False
    for (a, b), shown in zip(_places(x, y), known.tolist(), strict=True):
        path += (f"V{b}H{a}" if joined else f"M{a} {b}h0") if shown else ""
        joined = shown
    return path
