"""All public names of the package at once: for type checkers, and for the list of its classes."""

import sys

from skselect.curve.curve import RiskCoverageCurve
from skselect.display.risk_coverage import RiskCoverageDisplay
from skselect.estimators.classifier import SelectiveClassifier
from skselect.estimators.precomputed import PrecomputedClassifier
from skselect.estimators.tuner import ThresholdTuner
from skselect.exceptions import InfeasibleTargetError
from skselect.extras.cascade_classifier import CascadeClassifier
from skselect.extras.join import join_stages
from skselect.extras.learned import LearnedConfidence
from skselect.metrics._evaluate import evaluate
from skselect.monitoring.certify import certify
from skselect.monitoring.check import check_policy
from skselect.monitoring.monitor import SelectiveRiskMonitor
from skselect.objectives import Best, Cost, Coverage, GeneralizedRisk, Risk, SystemRisk
from skselect.policy.policy import AbstentionPolicy
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions
from skselect.report.calibration import calibration_report
from skselect.report.selective import selective_report
from skselect.selection.select import select_threshold
from skselect.streaming.parquet import evaluate_parquet
from skselect.streaming.state import SelectiveState

#: The classes of this package by name, as skops and MLflow ask whether a stored model may hold
#: them: ``skops.io.load(file, trusted=TRUSTED_TYPES)``.
TRUSTED_TYPES = sorted(
    f"{name}.{held.__name__}"
    for name, room in sys.modules.items()
    if name.startswith("skselect.")
    for held in vars(room).values()
    if isinstance(held, type) and held.__module__ == name
)

__all__ = [
    "TRUSTED_TYPES",
    "AbstentionPolicy",
    "Best",
    "CascadeClassifier",
    "Cost",
    "Coverage",
    "GeneralizedRisk",
    "InfeasibleTargetError",
    "LearnedConfidence",
    "Outcomes",
    "PrecomputedClassifier",
    "Predictions",
    "Risk",
    "RiskCoverageCurve",
    "RiskCoverageDisplay",
    "SelectiveClassifier",
    "SelectiveRiskMonitor",
    "SelectiveState",
    "SystemRisk",
    "ThresholdTuner",
    "calibration_report",
    "certify",
    "check_policy",
    "evaluate",
    "evaluate_parquet",
    "join_stages",
    "select_threshold",
    "selective_report",
]
