"""Plots. matplotlib is imported inside `plot` only."""

from skselect.display.confusion import SelectiveConfusionDisplay
from skselect.display.monitor import MonitorDisplay
from skselect.display.reliability import ConfidenceWeightedRocDisplay, ReliabilityDisplay
from skselect.display.risk_coverage import WorkloadDisplay
from skselect.display.thresholds import ConfidenceHistogramDisplay, ThresholdDisplay

__all__ = [
    "ConfidenceHistogramDisplay",
    "ConfidenceWeightedRocDisplay",
    "MonitorDisplay",
    "ReliabilityDisplay",
    "SelectiveConfusionDisplay",
    "ThresholdDisplay",
    "WorkloadDisplay",
]
