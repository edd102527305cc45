"""What a calibration may be about: the class probabilities, or the confidence alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from skselect import _validation as check
from skselect._typing import ConfidenceSpec, FloatArray, IntArray
from skselect.calibration._classes import ClassCalibration
from skselect.calibration._confidence import ConfidenceCalibration
from skselect.confidence import confidence_of_proba

#: Names accepted by `calibration_scope=`.
SCOPES = ("probabilities", "confidence")

#: What makes a classifier's confidence honest.
Calibration = ClassCalibration | ConfidenceCalibration


def fitted_calibration(
    calibrator: Any,
    scope: str,
    response: str,
    scores: FloatArray,
    codes: IntArray,
    n_classes: int,
    sample_weight: FloatArray | None = None,
    confidence: ConfidenceSpec = "max_proba",
) -> Calibration:
    """Fit either calibration to raw scores of rows that the classifier has not seen."""
    if scope == SCOPES[0]:
        return ClassCalibration.fit(calibrator, response, scores, codes, n_classes, sample_weight)
    return ConfidenceCalibration.fit(
        calibrator,
        confidence_of_proba(scores, confidence),
        (scores.argmax(axis=1) == codes).astype(np.float64),
        sample_weight,
        is_probability=not callable(confidence),
    )


def restored_calibration(stored: dict[str, Any]) -> Calibration:
    """Rebuild either calibration from plain numbers."""
    scope = check.check_choice("scope", stored.get("scope", SCOPES[0]), SCOPES)
    kind: type[Calibration] = ClassCalibration if scope == SCOPES[0] else ConfidenceCalibration
    return kind.from_dict(stored)
