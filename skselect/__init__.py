"""Selective classification for scikit-learn: let a classifier say "I don't know".

Importing the package makes its metrics scoring strings for scikit-learn
(``scoring="cwsa_plus"``).
"""

from skselect._validation import InfeasibleTargetError
from skselect.certificates import Certificate
from skselect.classifier import SelectiveClassifier
from skselect.curves import RiskCoverageCurve
from skselect.display import (
    ConfidenceHistogramDisplay,
    ConfidenceWeightedRocDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    ThresholdDisplay,
)
from skselect.metrics import evaluate
from skselect.outcomes import Outcomes
from skselect.parquet import evaluate_parquet, parquet_state
from skselect.policy import AbstentionPolicy
from skselect.precomputed import PrecomputedClassifier
from skselect.predictions import Predictions
from skselect.report import SelectiveReport, calibration_report, selective_report
from skselect.scoring import (
    get_scorer,
    get_scorer_names,
    on_accepted,
    register_scorers,
    selective_scoring,
    unregister_scorers,
)
from skselect.selection import GroupedSelection, ThresholdSelection, certify, select_threshold
from skselect.streaming import SelectiveState, SubgroupStates
from skselect.thresholds import rows_needed
from skselect.tuner import ThresholdTuner

__version__ = "0.1.0"

__all__ = [
    "AbstentionPolicy",
    "Certificate",
    "ConfidenceHistogramDisplay",
    "ConfidenceWeightedRocDisplay",
    "GroupedSelection",
    "InfeasibleTargetError",
    "Outcomes",
    "PrecomputedClassifier",
    "Predictions",
    "ReliabilityDisplay",
    "RiskCoverageCurve",
    "RiskCoverageDisplay",
    "SelectiveClassifier",
    "SelectiveReport",
    "SelectiveState",
    "SubgroupStates",
    "ThresholdDisplay",
    "ThresholdSelection",
    "ThresholdTuner",
    "calibration_report",
    "certify",
    "evaluate",
    "evaluate_parquet",
    "get_scorer",
    "get_scorer_names",
    "on_accepted",
    "parquet_state",
    "register_scorers",
    "rows_needed",
    "select_threshold",
    "selective_report",
    "selective_scoring",
    "unregister_scorers",
]

register_scorers()
