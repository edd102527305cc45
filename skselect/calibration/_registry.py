"""The built-in calibrators by name; fitted ones are stored as plain numbers and restored."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from skselect._lib.arrays import FloatArray
from skselect._lib.checks.options import check_choice
from skselect.calibration._maps import (
    BetaCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    SmoothIsotonicCalibrator,
    SoftmaxTemperature,
    TemperatureCalibrator,
    VennAbersCalibrator,
)

#: Names accepted by `calibration=`.
CALIBRATORS: dict[str, type[Any]] = {
    "isotonic": IsotonicCalibrator,
    "smooth_isotonic": SmoothIsotonicCalibrator,
    "venn_abers": VennAbersCalibrator,
    "platt": PlattCalibrator,
    "beta": BetaCalibrator,
    "temperature": TemperatureCalibrator,
}

#: Other words for the same map.
_ALIASES = {"sigmoid": "platt"}  # scikit-learn's

#: Policy files from before the safeguard lack these.
_OLDER = {"share": 0.0, "prior": 0.0}


def copy_unfitted(calibrator: Any) -> Any:
    """Return an unfitted calibrator: the one of this name, or a copy of the one given."""
    if isinstance(calibrator, str):
        return CALIBRATORS[calibrator_name(calibrator)]()
    return clone(calibrator)


def calibrator_name(calibrator: Any) -> str:
    """Return the name of a built-in calibrator, "external:" and the class name of any other."""
    if isinstance(calibrator, str):
        return _ALIASES.get(calibrator, calibrator)
    for name, kind in CALIBRATORS.items():
        if type(calibrator) is kind:
            return name
    return f"external:{type(calibrator).__name__}"


def fit_map(template: Any, score: FloatArray, y: FloatArray, weight: FloatArray) -> Any:
    """Fit a copy of a calibrator; if a user's own fails, raise an error that says on what data."""
    if type(template) in CALIBRATORS.values():
        return clone(template).fit(score, y, weight)
    if not has_fit_parameter(template, "sample_weight"):
        raise ValueError(
            f"calibration: {type(template).__name__}.fit must take (score, y, sample_weight)."
        )
    try:
        return clone(template).fit(score, y, weight)
    except Exception as error:
        raise ValueError(
            f"calibration: {type(template).__name__}.fit(score, y, sample_weight) failed on a "
            f"vector of {len(score)} scores and outcomes 0 and 1: {str(error).splitlines()[0]}"
        ) from error


def apply_map(fitted: Any, score: FloatArray) -> FloatArray:
    """Return the probabilities of scores; those of a user's own calibrator are checked."""
    mapped = fitted.predict(score)
    if type(fitted) in CALIBRATORS.values():
        return np.asarray(mapped)
    return _check_mapped(mapped, len(score), type(fitted).__name__)


def _check_mapped(values: Any, n_rows: int, calibrator: str) -> FloatArray:
    """Return what a user's own calibrator predicted, if it is one probability per score."""
    mapped = np.asarray(values, dtype=np.float64)
    if mapped.shape != (n_rows,) or not np.all((mapped >= 0.0) & (mapped <= 1.0)):
        raise ValueError(
            f"calibration: {calibrator}.predict must return {n_rows} probabilities in [0, 1] for "
            f"{n_rows} scores, but it returned values of shape {mapped.shape}"
            + ("." if mapped.shape != (n_rows,) else ", some of them outside or nan.")
        )
    return mapped


def store_maps(
    kind: str, maps: tuple[Any, ...], *, allow_external: bool = False
) -> list[dict[str, Any]]:
    """Return fitted maps as plain numbers; nothing for a calibrator of the user's own."""
    if kind in CALIBRATORS:
        return [{name: np.asarray(x).tolist() for name, x in m.fitted.items()} for m in maps]
    if allow_external:
        return []
    raise ValueError(
        f"calibration: {kind.removeprefix('external:')} is a calibrator of your own, which cannot "
        "be saved as JSON. Use a named calibration, or pass allow_external=True and pass it "
        "yourself after loading."
    )


def restore_maps(kind: str, stored: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Rebuild fitted maps from plain numbers."""
    if str(kind).startswith("external:"):
        return (Missing(kind),)
    calibrator = CALIBRATORS[check_choice("kind", kind, CALIBRATORS)]
    return tuple(_restore(calibrator, given) for given in stored)


def _restore(calibrator: type[Any], given: dict[str, Any]) -> Any:
    native = np.ndim(given.get("prior", 0.0)) == 1
    restored = SoftmaxTemperature() if native else calibrator()
    older = {name: x for name, x in _OLDER.items() if name in restored.stored}
    parameters = {**older, **given}
    if sorted(parameters) != sorted(restored.stored):
        raise ValueError(f"maps need {restored.stored}, got {sorted(parameters)}.")
    for name, number in _check_map(parameters).items():
        setattr(restored, f"{name}_", number if number.ndim else float(number))
    return restored


def _rises(x: FloatArray) -> bool:
    """Tell whether numbers lie in [0, 1] and, but for rounding, never fall."""
    return bool(np.all(np.diff(x) >= -1e-12) and np.all((x >= 0) & (x <= 1)))


#: What each stored parameter must be; all others must be finite.
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
#: Parameters with one number per knot.
_CURVES = ("knots", "values", "lower", "upper")


def _check_map(parameters: Mapping[str, Any]) -> dict[str, FloatArray]:
    """Return the parameters of a fitted map as arrays; refuse what is no rising map."""
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
        raise ValueError(
            f"maps: knots and values must have the same length, got {sorted(lengths)}."
        )
    return numbers


class Missing:
    """Takes the place of a user's own calibrator, which a file cannot hold."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def predict(self, _: Any) -> FloatArray:
        """Raise an error that says how to hand the calibrator over."""
        raise ValueError(
            f"calibration: the file names {self.kind!r} but cannot hold it; hand the fitted "
            "calibration over with dataclasses.replace(policy, calibration=...)."
        )
