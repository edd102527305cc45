"""Maps from raw scores to honest probabilities, fitted on arrays, kept as plain numbers.

A *calibrator* maps one score to one probability. A :class:`ClassCalibration` applies one per
class and makes the rows sum to one.
"""

from skselect.calibration._classes import CALIBRATORS, ClassCalibration
from skselect.calibration._common import Calibrator, log_odds
from skselect.calibration._monotone import (
    IsotonicCalibrator,
    SmoothIsotonicCalibrator,
    VennAbersCalibrator,
)
from skselect.calibration._parametric import (
    BetaCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
)

__all__ = [
    "CALIBRATORS",
    "BetaCalibrator",
    "Calibrator",
    "ClassCalibration",
    "IsotonicCalibrator",
    "PlattCalibrator",
    "SmoothIsotonicCalibrator",
    "TemperatureCalibrator",
    "VennAbersCalibrator",
    "log_odds",
]
