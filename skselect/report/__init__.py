"""Tables and pages for people."""

from skselect.report._calibration import calibration_report
from skselect.report._selective import SelectiveReport, selective_report

__all__ = ["SelectiveReport", "calibration_report", "selective_report"]
