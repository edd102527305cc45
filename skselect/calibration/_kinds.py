"""The built-in calibrators by name, and how fitted ones become plain numbers and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from skselect import _validation as check
from skselect._typing import FloatArray
from skselect.calibration._monotone import (
    IsotonicCalibrator,
    SmoothIsotonicCalibrator,
    VennAbersCalibrator,
)
from skselect.calibration._parametric import BetaCalibrator, PlattCalibrator
from skselect.calibration._temperature import SoftmaxTemperature, TemperatureCalibrator

#: Names accepted by `calibration=`.
CALIBRATORS: dict[str, type[Any]] = {
    "isotonic": IsotonicCalibrator,
    "smooth_isotonic": SmoothIsotonicCalibrator,
    "venn_abers": VennAbersCalibrator,
    "platt": PlattCalibrator,
    "beta": BetaCalibrator,
    "temperature": TemperatureCalibrator,
}

#: What policies written before the safeguard leave out.
_OLDER = {"share": 0.0, "prior": 0.0}


def unfitted(calibrator: Any) -> Any:
    """Return a calibrator to be fitted: by its name, or a copy of the one given."""
    return CALIBRATORS[calibrator]() if isinstance(calibrator, str) else clone(calibrator)


def name_of(calibrator: Any) -> str:
    """Return the name of a built-in calibrator, or one that says it is not built in."""
    if isinstance(calibrator, str):
        return calibrator
    for name, kind in CALIBRATORS.items():
        if type(calibrator) is kind:
            return name
    return f"external:{type(calibrator).__name__}"


def fitted_map(template: Any, score: FloatArray, y: FloatArray, weight: FloatArray) -> Any:
    """Fit a copy of a calibrator; where one of yours fails, say to what it was fitted."""
    if type(template) in CALIBRATORS.values():
        return clone(template).fit(score, y, weight)
    check.check_takes_weights(template)
    try:
        return clone(template).fit(score, y, weight)
    except Exception as error:
        raise ValueError(
            f"calibration: {type(template).__name__}.fit(score, y, sample_weight) failed on a "
            f"vector of {len(score)} scores and outcomes 0 and 1: {str(error).splitlines()[0]}"
        ) from error


def predicted(fitted: Any, score: FloatArray) -> FloatArray:
    """Return what a fitted map makes of the scores; the result of one of yours is checked."""
    mapped = fitted.predict(score)
    if type(fitted) in CALIBRATORS.values():
        return np.asarray(mapped)
    return check.check_mapped(mapped, len(score), type(fitted).__name__)


def stored_maps(
    kind: str, maps: tuple[Any, ...], *, allow_external: bool = False
) -> list[dict[str, Any]]:
    """Return fitted maps as plain numbers; a calibrator of yours leaves its name only."""
    if kind in CALIBRATORS:
        return [
            {name: np.asarray(getattr(m, f"{name}_")).tolist() for name in m.stored} for m in maps
        ]
    if allow_external:
        return []
    raise ValueError(
        f"calibration: {kind.removeprefix('external:')} is a calibrator of your own, which cannot "
        "be saved as JSON. Use a named calibration, or pass allow_external=True and hand it over "
        "yourself after loading."
    )


def restored_maps(kind: str, stored: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Rebuild fitted maps from plain numbers."""
    if str(kind).startswith("external:"):
        return (Missing(kind),)
    calibrator = CALIBRATORS[check.check_choice("kind", kind, CALIBRATORS)]
    return tuple(_restored(calibrator, given) for given in stored)


def _restored(calibrator: type[Any], given: dict[str, Any]) -> Any:
    native = np.ndim(given.get("prior", 0.0)) == 1
    restored = SoftmaxTemperature() if native else calibrator()
    older = {name: x for name, x in _OLDER.items() if name in restored.stored}
    parameters = {**older, **given}
    if sorted(parameters) != sorted(restored.stored):
        raise ValueError(f"maps need {restored.stored}, got {sorted(parameters)}.")
    for name, number in check.check_map(parameters).items():
        setattr(restored, f"{name}_", number if number.ndim else float(number))
    return restored


class Missing:
    """Stands for a calibrator that the file could not hold."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def predict(self, _: Any) -> FloatArray:
        """Say what to do."""
        raise ValueError(
            f"calibration: the file names {self.kind!r} but cannot hold it; hand the fitted "
            "calibration over with dataclasses.replace(policy, calibration=...)."
        )
