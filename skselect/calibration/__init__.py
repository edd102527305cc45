"""Maps from raw scores to calibrated probabilities, fitted on arrays, stored as plain numbers.

A *calibrator* maps one score to one probability. A ``ClassCalibration`` applies one per class
and makes the rows sum to one; a ``ConfidenceCalibration`` maps the confidence alone.
"""

from skselect.calibration._calibrators import (
    BetaCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    SmoothIsotonicCalibrator,
    TemperatureCalibrator,
    VennAbersCalibrator,
)

__all__ = [
    "BetaCalibrator",
    "IsotonicCalibrator",
    "PlattCalibrator",
    "SmoothIsotonicCalibrator",
    "TemperatureCalibrator",
    "VennAbersCalibrator",
]
