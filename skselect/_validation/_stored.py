"""What a saved calibration may hold: a damaged file must not decide."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from skselect._typing import FloatArray


def _rises(x: FloatArray) -> bool:
    return bool(np.all(np.diff(x) >= -1e-12) and np.all((x >= 0) & (x <= 1)))


_RULES: dict[str, tuple[str, Callable[[FloatArray], Any]]] = {
    "share": ("in [0, 1]", lambda x: (x >= 0) & (x <= 1)),
    "prior": ("in [0, 1]", lambda x: (x >= 0) & (x <= 1)),
    "temperature": ("positive", lambda x: x > 0),
    "slope": ("at least 0", lambda x: x >= 0),
    "a": ("at least 0", lambda x: x >= 0),
    "b": ("at least 0", lambda x: x >= 0),
    "knots": ("ascending", lambda x: np.diff(x) > 0),
    "values": ("rising in [0, 1]", _rises),
    "lower": ("rising in [0, 1]", _rises),
    "upper": ("rising in [0, 1]", _rises),
}
_CURVES = ("knots", "values", "lower", "upper")


def check_map(parameters: Mapping[str, Any]) -> dict[str, FloatArray]:
    """Return the parameters of a fitted map as numbers, if they are a rising map."""
    numbers = {name: np.asarray(value, dtype=np.float64) for name, value in parameters.items()}
    lengths = {len(np.atleast_1d(numbers[name])) for name in _CURVES if name in numbers}
    for name, x in numbers.items():
        ndim = 1 if name in _CURVES else 0
        if x.ndim != ndim and not (name == "prior" and x.ndim == 1):
            raise ValueError(f"maps: {name} must have {ndim} dimensions, got {x.ndim}.")
        wanted, holds = _RULES.get(name, ("finite", np.isfinite))
        if not np.all(np.isfinite(x)) or not np.all(holds(x)) or x.size == 0:
            raise ValueError(
                f"maps: {name} must be {wanted}, got {reprlib.repr(parameters[name])}."
            )
    if len(lengths) > 1:
        raise ValueError(f"maps: knots and values must have one length, got {sorted(lengths)}.")
    return numbers


def check_offset(value: Any) -> float:
    """Return the offset of log-odds."""
    offset = float(value)
    if not 0.0 < offset <= 0.5:
        raise ValueError(f"offset must lie in (0, 0.5], got {value!r}.")
    return offset
