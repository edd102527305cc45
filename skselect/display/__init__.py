"""Pictures. matplotlib is imported inside `plot` only."""

from skselect.display._histogram import ConfidenceHistogramDisplay
from skselect.display._reliability import ReliabilityDisplay
from skselect.display._risk_coverage import RiskCoverageDisplay
from skselect.display._thresholds import ThresholdDisplay
from skselect.display._weighted_roc import ConfidenceWeightedRocDisplay

__all__ = [
    "ConfidenceHistogramDisplay",
    "ConfidenceWeightedRocDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "ThresholdDisplay",
]
