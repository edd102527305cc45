"""Pictures. matplotlib is imported inside `plot` only."""

from skselect.display._reliability import ReliabilityDisplay
from skselect.display._risk_coverage import RiskCoverageDisplay
from skselect.display._thresholds import ThresholdDisplay

__all__ = ["ReliabilityDisplay", "RiskCoverageDisplay", "ThresholdDisplay"]
