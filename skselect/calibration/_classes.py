"""One calibrator per class: honest class probabilities that sum to one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skselect import _validation as check
from skselect._typing import FloatArray, IntArray
from skselect.calibration._common import LOG_ODDS_EPS, log_odds
from skselect.calibration._monotone import (
    IsotonicCalibrator,
    SmoothIsotonicCalibrator,
    VennAbersCalibrator,
)
from skselect.calibration._parametric import (
    BetaCalibrator,
    PlattCalibrator,
    SoftmaxTemperature,
    TemperatureCalibrator,
)

# One map per class -------------------------------------------------------------------------

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


@dataclass(frozen=True, eq=False)
class ClassCalibration:
    """Honest class probabilities from raw scores: one map for two classes, else one per class.

    Temperature scaling has one map for any number of classes.

    Parameters
    ----------
    kind : str
        A name in `CALIBRATORS`, or "external:" and the class name of a calibrator of yours.
    response : {"predict_proba", "decision_function"}
        What the raw scores are.
    maps : tuple of calibrators
    """

    kind: str
    response: str
    maps: tuple[Any, ...]

    @classmethod
    def fit(
        cls,
        calibrator: Any,
        response: str,
        scores: FloatArray,
        codes: IntArray,
        n_classes: int,
        sample_weight: FloatArray | None = None,
    ) -> ClassCalibration:
        """Fit one map per column against "is it this class?".

        Parameters
        ----------
        calibrator : str or object
            A name, or a calibrator that is cloned for each class.
        response : str
        scores : ndarray of shape (n, K), or (n,) for the decision values of two classes
        codes : ndarray of shape (n,)
            Class codes 0..K-1. A class without rows gets the map of "never".
        n_classes : int
        sample_weight : ndarray of shape (n,), default=None

        Notes
        -----
        A score of nan (the decision value of a class that a fold's model does not know) says
        nothing, so the map of that class leaves the row out.
        """
        template = CALIBRATORS[calibrator]() if isinstance(calibrator, str) else calibrator
        kind = _name_of(template)
        weight = np.ones(len(codes)) if sample_weight is None else sample_weight
        if _is_native(kind, n_classes):
            softmax = SoftmaxTemperature(safeguard=template.safeguard)
            return cls(kind, response, (softmax.fit(_logits(response, scores), codes, weight),))
        positives = [1] if n_classes == 2 else range(n_classes)
        maps = []
        for column, k in zip(_columns(template, response, scores), positives, strict=True):
            known = ~np.isnan(column)
            fitted = clone(template).fit(column[known], codes[known] == k, weight[known])
            maps.append(fitted)
        return cls(kind, response, tuple(maps))

    def predict(self, scores: FloatArray) -> FloatArray:
        """Return probabilities of shape (n, K) that sum to one in each row.

        A row for which every class map says "never" gets equal probabilities.
        """
        first = self.maps[0]
        if isinstance(first, SoftmaxTemperature | _Missing):  # one map for all classes, or none
            return first.predict(_logits(self.response, scores))
        columns = _columns(first, self.response, scores)
        mapped = [m.predict(x) for m, x in zip(self.maps, columns, strict=True)]
        if len(mapped) == 1:
            return np.column_stack([1.0 - mapped[0], mapped[0]])
        proba = np.column_stack(mapped)
        total = proba.sum(axis=1, keepdims=True)
        uniform = np.full_like(proba, 1.0 / proba.shape[1])
        return np.divide(proba, total, out=uniform, where=total > 0)

    def to_dict(self, *, allow_external: bool = False) -> dict[str, Any]:
        """Return the maps as plain numbers; a calibrator of yours leaves its name only."""
        if self.kind in CALIBRATORS:
            parameters = [
                {name: np.asarray(getattr(m, f"{name}_")).tolist() for name in m.stored}
                for m in self.maps
            ]
        elif allow_external:
            parameters = []
        else:
            raise ValueError(
                f"calibration: {self.kind.removeprefix('external:')} is a calibrator of your own, "
                "which cannot be saved as JSON. Use a named calibration, or pass "
                "allow_external=True and hand it over yourself after loading."
            )
        return {"kind": self.kind, "response": self.response, "maps": parameters}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> ClassCalibration:
        """Rebuild the maps from plain numbers."""
        if str(stored["kind"]).startswith("external:"):
            return cls(stored["kind"], stored["response"], (_Missing(stored["kind"]),))
        calibrator = CALIBRATORS[check.check_choice("kind", stored["kind"], CALIBRATORS)]
        maps = []
        for given in stored["maps"]:
            native = np.ndim(given.get("prior", 0.0)) == 1
            restored = SoftmaxTemperature() if native else calibrator()
            older = {name: x for name, x in _OLDER.items() if name in restored.stored}
            parameters = {**older, **given}
            if sorted(parameters) != sorted(restored.stored):
                raise ValueError(f"maps need {restored.stored}, got {sorted(parameters)}.")
            for name, value in parameters.items():
                number = np.asarray(value, dtype=np.float64)
                if not np.all(np.isfinite(number)):
                    raise ValueError(f"maps: {name} must be finite, got {value!r}.")
                setattr(restored, f"{name}_", number if number.ndim else float(number))
            maps.append(restored)
        return cls(stored["kind"], stored["response"], tuple(maps))

    def check_fits(self, n_classes: int, response: str) -> None:
        """Refuse to be used for another number of classes or another kind of scores."""
        if isinstance(self.maps[0], _Missing):
            return
        wanted = 1 if n_classes == 2 or _is_native(self.kind, n_classes) else n_classes
        if len(self.maps) != wanted or self.response != response:
            raise ValueError(
                f"calibration: {len(self.maps)} maps of {self.response} do not fit {n_classes} "
                f"classes of {response}."
            )


class _Missing:
    """Stands for a calibrator that the file could not hold."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def predict(self, _: Any) -> FloatArray:
        raise ValueError(
            f"calibration: the file names {self.kind!r} but cannot hold it; hand the fitted "
            "ClassCalibration over with dataclasses.replace(policy, calibration=...)."
        )


def _name_of(calibrator: Any) -> str:
    """Return the name of a built-in calibrator, or one that says it is not built in."""
    for name, kind in CALIBRATORS.items():
        if type(calibrator) is kind:
            return name
    return f"external:{type(calibrator).__name__}"


def _columns(calibrator: Any, response: str, scores: FloatArray) -> list[FloatArray]:
    """Return what each map reads: log-odds if it asks for them, else the score itself."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim == 1:
        columns = [scores]
    elif scores.shape[1] == 2:
        columns = [scores[:, 1]]
    else:
        columns = list(scores.T)
    wants_log_odds = getattr(calibrator, "reads_log_odds", False) and response == "predict_proba"
    return [log_odds(column) for column in columns] if wants_log_odds else columns


def _is_native(kind: str, n_classes: int) -> bool:
    """Tell whether one map serves all classes at once."""
    return kind == "temperature" and n_classes > 2


def _logits(response: str, scores: FloatArray) -> FloatArray:
    """Return logits of shape (n, K): decision values, or logarithms of probabilities."""
    scores = np.asarray(scores, dtype=np.float64)
    return np.log(np.maximum(scores, LOG_ODDS_EPS)) if response == "predict_proba" else scores
