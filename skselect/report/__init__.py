"""Reports on models: tables, text and web pages."""

from skselect.report.calibration import calibration_report
from skselect.report.selective import SelectiveReport, selective_report

__all__ = ["SelectiveReport", "calibration_report", "selective_report"]
