"""Metrics of selective classification.

Each takes ``(y_true, y_proba)``, works with ``sklearn.metrics.make_scorer(...,
response_method="predict_proba")``, counts a weight of 2 as the row twice, and does not depend
on the order of the rows. ``SPECS`` is the table of all of them but ``coverage_gap_score`` and
``risk_gap_score``, which need the subgroup of each row.

For comparison with published values only: ``accuracy_rejection_auc``, ``f1_retention_auc``,
``auroc_aurc``, ``oc_auc``, ``p_risk``, ``tce``, ``classwise_ece``, ``mce`` and ``ecd``.
"""

from skselect.metrics._areas import *
from skselect.metrics._calibration_errors import *
from skselect.metrics._calibration_tests import *
from skselect.metrics._cau import *
from skselect.metrics._confidence_weighted import *
from skselect.metrics._csr import *
from skselect.metrics._error_detection import *
from skselect.metrics._evaluate import FAMILIES, SPECS as SPECS
from skselect.metrics._threshold import *

__all__ = [name for family in FAMILIES for name in family.__all__]
__all__ += ["SPECS"]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
