"""What a saved calibration may hold: a damaged file must not decide."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from skselect._typing import FloatArray, LabelArray


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


def check_stored_classes(classes: Any, dtype: str) -> LabelArray:
    """Return class labels in their dtype, if it holds them."""
    labels = np.asarray(classes).astype(dtype)
    if labels.tolist() != list(classes):
        raise ValueError(f"classes_dtype: {dtype!r} cannot hold the classes {classes[:10]!r}.")
    return labels


_NUMBERS = {
    "target": (0.0, math.inf), "delta": (0.0, 1.0), "coverage": (0.0, 1.0),
    "pointwise_bound": (0.0, math.inf), "min_coverage": (0.0, 1.0), "unit": (0.0, math.inf),
    "n": (1, math.inf), "n_accepted": (0, math.inf), "n_errors": (0, math.inf),
    "rows_needed": (0, math.inf),
}  # fmt: skip
_NAMES = {
    "objective": ("risk", "generalized_risk", "coverage"),
    "guarantee": ("high_probability", "mean", "none"),
    "loss": ("zero_one", "cost", "graded"),
}


def check_certificate(fields: Mapping[str, Any]) -> None:
    """Refuse a certificate that says what none can say."""
    for name, known in _NAMES.items():
        if fields.get(name, known[0]) not in known:
            raise ValueError(f"certificate: {name} must be one of {list(known)}.")
    for name, (low, high) in _NUMBERS.items():
        value = fields.get(name, low)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not low <= value <= high:
            raise ValueError(f"certificate: {name} must be a number in [{low:g}, {high:g}].")
    if not isinstance(fields["exact"], bool) or fields["exact"] == bool(fields["why_not"]):
        raise ValueError("certificate: exact must be true where why_not is empty, else false.")
    if fields["n_errors"] > fields["n_accepted"] or fields["n_accepted"] > fields["n"]:
        raise ValueError("certificate: n_errors, n_accepted and n must rise in this order.")


def check_texts(name: str, values: Any) -> list[str]:
    """Return a list of texts."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be a list of texts.")
    return values
