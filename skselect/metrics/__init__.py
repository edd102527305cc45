"""Metrics of selective classification.

Each takes ``(y_true, y_proba)``, works with ``sklearn.metrics.make_scorer(...,
response_method="predict_proba")``, counts a weight of 2 as the row twice, and does not depend
on the order of the rows. ``SPECS`` is the table of all of them.
"""

from skselect.metrics._areas import (
    accuracy_rejection_auc_score,
    augrc_score,
    aumcc_score,
    aurc_score,
    coverage_at_risk_score,
    eaurc_score,
    naurc_score,
    review_rate_at_reliability_score,
    risk_at_coverage_score,
)
from skselect.metrics._evaluate import evaluate
from skselect.metrics._honesty import csr_score, cw_accuracy_score, expected_calibration_error
from skselect.metrics._specs import SPECS, MetricSpec
from skselect.metrics._threshold import (
    coverage_score,
    cwsa_contributions,
    cwsa_plus_score,
    cwsa_score,
    generalized_risk_score,
    selective_accuracy_score,
    selective_cost_score,
    selective_risk_score,
)

__all__ = [
    "SPECS",
    "MetricSpec",
    "accuracy_rejection_auc_score",
    "augrc_score",
    "aumcc_score",
    "aurc_score",
    "coverage_at_risk_score",
    "coverage_score",
    "csr_score",
    "cw_accuracy_score",
    "cwsa_contributions",
    "cwsa_plus_score",
    "cwsa_score",
    "eaurc_score",
    "evaluate",
    "expected_calibration_error",
    "generalized_risk_score",
    "naurc_score",
    "review_rate_at_reliability_score",
    "risk_at_coverage_score",
    "selective_accuracy_score",
    "selective_cost_score",
    "selective_risk_score",
]
