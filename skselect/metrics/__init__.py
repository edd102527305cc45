"""Metrics of selective classification.

Each takes ``(y_true, y_proba)``, works with ``sklearn.metrics.make_scorer(...,
response_method="predict_proba")``, counts a weight of 2 as the row twice, and does not depend
on the order of the rows. ``SPECS`` is the table of all of them.

For comparison with published values only: ``accuracy_rejection_auc``, ``f1_retention_auc``,
``auroc_aurc``, ``oc_auc``, ``p_risk``, ``tce``, ``classwise_ece``, ``mce`` and ``ecd``.
"""

import importlib
from typing import TYPE_CHECKING, Any

from skselect.metrics._areas import (
    ReviewPlan,
    accuracy_rejection_auc_score,
    augrc_score,
    aumcc_score,
    aurc_score,
    coverage_at_risk_score,
    eaurc_score,
    naurc_score,
    review_at_reliability,
    review_rate_at_reliability_score,
    risk_at_coverage_score,
)
from skselect.metrics._binned_errors import (
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
    reliability_curve,
)
from skselect.metrics._calibration_tests import (
    EcceTest,
    EcdTest,
    ecce_test,
    ecd_score,
    ecd_test,
    tce_score,
)
from skselect.metrics._cau import CauComponents, cau_components, cau_score
from skselect.metrics._confidence_weighted import (
    cw_accuracy_score,
    cw_auc_score,
    cw_confusion_matrix,
    cw_f1_score,
    cw_gain_score,
    cw_matthews_corrcoef,
    cw_precision_score,
    cw_recall_score,
    cw_roc_curve,
    cw_specificity_score,
)
from skselect.metrics._confusion import selective_confusion_matrix
from skselect.metrics._csr import (
    CsrTest,
    csr_score,
    csr_test,
    p_risk_score,
)
from skselect.metrics._error_detection import (
    auroc_aurc_score,
    f1_retention_auc_score,
    failure_auroc_score,
    failure_average_precision_score,
    oc_auc_score,
)
from skselect.metrics._evaluate import DEFAULT_METRICS, evaluate
from skselect.metrics._smooth_errors import (
    ecce_mad,
    ecce_r,
    isotonic_calibration_distance,
    smooth_calibration_error,
    top_label_brier_score,
)
from skselect.metrics._t_cal import TCalTest, t_cal_test
from skselect.metrics._table import SPECS, MetricSpec
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

if TYPE_CHECKING:
    from skselect.inference import (
        MetricInterval,
        compare_across_datasets,
        compare_models,
        metric_interval,
        metrics_by_class,
        metrics_by_group,
    )

__all__ = [
    "DEFAULT_METRICS",
    "SPECS",
    "CauComponents",
    "CsrTest",
    "EcceTest",
    "EcdTest",
    "MetricInterval",
    "MetricSpec",
    "ReviewPlan",
    "TCalTest",
    "accuracy_rejection_auc_score",
    "augrc_score",
    "aumcc_score",
    "aurc_score",
    "auroc_aurc_score",
    "cau_components",
    "cau_score",
    "classwise_calibration_error",
    "compare_across_datasets",
    "compare_models",
    "coverage_at_risk_score",
    "coverage_score",
    "csr_score",
    "csr_test",
    "cw_accuracy_score",
    "cw_auc_score",
    "cw_confusion_matrix",
    "cw_f1_score",
    "cw_gain_score",
    "cw_matthews_corrcoef",
    "cw_precision_score",
    "cw_recall_score",
    "cw_roc_curve",
    "cw_specificity_score",
    "cwsa_contributions",
    "cwsa_plus_score",
    "cwsa_score",
    "debiased_calibration_error",
    "eaurc_score",
    "ecce_mad",
    "ecce_r",
    "ecce_test",
    "ecd_score",
    "ecd_test",
    "evaluate",
    "expected_calibration_error",
    "f1_retention_auc_score",
    "failure_auroc_score",
    "failure_average_precision_score",
    "generalized_risk_score",
    "isotonic_calibration_distance",
    "maximum_calibration_error",
    "metric_interval",
    "metrics_by_class",
    "metrics_by_group",
    "naurc_score",
    "oc_auc_score",
    "p_risk_score",
    "reliability_curve",
    "review_at_reliability",
    "review_rate_at_reliability_score",
    "risk_at_coverage_score",
    "selective_accuracy_score",
    "selective_confusion_matrix",
    "selective_cost_score",
    "selective_risk_score",
    "smooth_calibration_error",
    "t_cal_test",
    "tce_score",
    "top_label_brier_score",
]


def __getattr__(name: str) -> Any:
    """Import intervals and comparisons when they are first used: they are built on the metrics."""
    if name in __all__:
        return getattr(importlib.import_module("skselect.inference"), name)
    raise AttributeError(f"module 'skselect.metrics' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
