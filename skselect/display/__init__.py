"""Plots. matplotlib is imported inside `plot` only."""

from skselect.display.confusion import SelectiveConfusionDisplay
from skselect.display.histogram import ConfidenceHistogramDisplay
from skselect.display.monitor import MonitorDisplay
from skselect.display.reliability import ReliabilityDisplay
from skselect.display.risk_coverage import RiskCoverageDisplay
from skselect.display.thresholds import ThresholdDisplay
from skselect.display.weighted_roc import ConfidenceWeightedRocDisplay
from skselect.display.workload import WorkloadDisplay

__all__ = [
    "ConfidenceHistogramDisplay",
    "ConfidenceWeightedRocDisplay",
    "MonitorDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SelectiveConfusionDisplay",
    "ThresholdDisplay",
    "WorkloadDisplay",
]
