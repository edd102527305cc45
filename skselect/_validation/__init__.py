"""Every check of user data, once. Nothing here computes; it converts or refuses.

A message names the argument, says what it was, and what would be right.
"""

from skselect._validation._arrays import (
    as_array,
)
from skselect._validation._errors import (
    InfeasibleTargetError,
)
from skselect._validation._estimators import (
    check_abstain_label,
    check_argmax_decision,
    check_has_fit,
    check_trainable,
    refuse_abstainer,
)
from skselect._validation._labels import (
    check_classes,
    check_known,
    check_labels,
    encode_labels,
    plain_labels,
    same_kind,
)
from skselect._validation._options import (
    ROUNDING,
    check_answerable,
    check_calibration,
    check_choice,
    check_count,
    check_cwsa_threshold,
    check_cwsa_thresholds,
    check_interval,
    check_number,
    check_threshold,
    reaches,
    refuse_subgroups,
    refuse_unavailable,
    stays_within,
)
from skselect._validation._proba import (
    RANGE_TOLERANCE,
    SUM_TOLERANCE,
    check_positive_proba,
    check_proba,
    column_names,
    match_columns,
    named_classes,
    resolve_pos_label,
)
from skselect._validation._rows import (
    check_confidence,
    check_length,
    check_loss,
    check_unit_confidence,
    check_vector,
    check_weight,
    refuse_graded,
    refuse_weights,
)

__all__ = [
    "RANGE_TOLERANCE",
    "ROUNDING",
    "SUM_TOLERANCE",
    "InfeasibleTargetError",
    "as_array",
    "check_abstain_label",
    "check_answerable",
    "check_argmax_decision",
    "check_calibration",
    "check_choice",
    "check_classes",
    "check_confidence",
    "check_count",
    "check_cwsa_threshold",
    "check_cwsa_thresholds",
    "check_has_fit",
    "check_interval",
    "check_known",
    "check_labels",
    "check_length",
    "check_loss",
    "check_number",
    "check_positive_proba",
    "check_proba",
    "check_threshold",
    "check_trainable",
    "check_unit_confidence",
    "check_vector",
    "check_weight",
    "column_names",
    "encode_labels",
    "match_columns",
    "named_classes",
    "plain_labels",
    "reaches",
    "refuse_abstainer",
    "refuse_graded",
    "refuse_subgroups",
    "refuse_unavailable",
    "refuse_weights",
    "resolve_pos_label",
    "same_kind",
    "stays_within",
]
