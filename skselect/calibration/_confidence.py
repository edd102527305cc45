"""An honest confidence, P(correct | confidence); the class probabilities stay as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skselect import _validation as check
from skselect._typing import FloatArray
from skselect.calibration._common import log_odds, offset_of
from skselect.calibration._kinds import (
    fitted_map,
    name_of,
    predicted,
    restored_maps,
    stored_maps,
    unfitted,
)


@dataclass(frozen=True, eq=False)
class ConfidenceCalibration:
    """One rising map from confidence to the chance that the answer is right.

    So answers and probabilities stay, and rows keep their order but for new ties.

    Parameters
    ----------
    kind : str
        A name in `CALIBRATORS`, or "external:" and the class name of a calibrator of yours.
    map : calibrator
    offset : float or None
        Added to c and 1 - c before log-odds are taken; None for a confidence that is no
        probability (a function of yours), which is read as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.calibration import ConfidenceCalibration
    >>> confidence = np.array([.6, .7, .8, .9, .99, .999])
    >>> correct = np.array([0., 1., 0., 1., 1., 1.])
    >>> calibration = ConfidenceCalibration.fit("smooth_isotonic", confidence, correct)
    >>> calibration.honest(np.array([.6, .9, .99])).round(2)
    array([0.33, 0.71, 0.8 ])
    """

    kind: str
    map: Any
    offset: float | None

    @classmethod
    def fit(
        cls,
        calibrator: Any,
        confidence: FloatArray,
        correct: FloatArray,
        sample_weight: FloatArray | None = None,
        *,
        is_probability: bool = True,
    ) -> ConfidenceCalibration:
        """Fit the map to rows that the classifier has not seen.

        Parameters
        ----------
        calibrator : str or object
            A name, or a calibrator that is cloned.
        confidence : ndarray of shape (n,)
        correct : ndarray of shape (n,)
            1 where the predicted class was right.
        sample_weight : ndarray of shape (n,), default=None
        is_probability : bool, default=True
            Whether the confidence lies in [0, 1].
        """
        template = unfitted(calibrator)
        weight = np.ones(len(correct)) if sample_weight is None else sample_weight
        offset = offset_of(confidence[weight > 0]) if is_probability else None
        fitted = fitted_map(template, _readable(template, confidence, offset), correct, weight)
        return cls(name_of(template), fitted, offset)

    def proba_of(self, scores: FloatArray) -> FloatArray:
        """Return the class probabilities as they are."""
        return scores

    def honest(self, confidence: FloatArray) -> FloatArray:
        """Return the chance of being right, shape (n,)."""
        return predicted(self.map, _readable(self.map, confidence, self.offset))

    def to_dict(self, *, allow_external: bool = False) -> dict[str, Any]:
        """Return the map as plain numbers; a calibrator of yours leaves its name only."""
        maps = stored_maps(self.kind, (self.map,), allow_external=allow_external)
        return {"scope": "confidence", "kind": self.kind, "offset": self.offset, "maps": maps}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> ConfidenceCalibration:
        """Rebuild the map from plain numbers."""
        (restored,) = restored_maps(stored["kind"], stored["maps"])
        offset = stored["offset"]
        return cls(stored["kind"], restored, None if offset is None else check.check_offset(offset))

    def check_fits(self, n_classes: int, response: str) -> None:  # noqa: ARG002 - any number
        """Refuse to be used for scores that are no probabilities."""
        check.check_choice("response", response, ["predict_proba"])
        if np.ndim(getattr(self.map, "prior_", 0.0)):
            raise ValueError("calibration: a map of class probabilities cannot map a confidence.")


def _readable(calibrator: Any, confidence: FloatArray, offset: float | None) -> FloatArray:
    """Return what the map reads: log-odds if it asks for them, else the confidence itself."""
    if offset is None or not getattr(calibrator, "reads_log_odds", False):
        return confidence
    return log_odds(confidence, offset)
