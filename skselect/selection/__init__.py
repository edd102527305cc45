"""Pick a threshold from a table of predictions, or certify a fixed policy on fresh rows."""

from skselect.selection._certify import certify
from skselect.selection._found import GroupedSelection, ThresholdSelection
from skselect.selection._pick import pick, pick_by_group, policy_facts
from skselect.selection._select import rows_among, select_threshold

__all__ = [
    "GroupedSelection",
    "ThresholdSelection",
    "certify",
    "pick",
    "pick_by_group",
    "policy_facts",
    "rows_among",
    "select_threshold",
]
