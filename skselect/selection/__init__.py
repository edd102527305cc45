"""From labelled rows and a goal to a threshold and its certificate."""

from skselect.selection.results import GroupedSelection, ThresholdSelection

__all__ = ["GroupedSelection", "ThresholdSelection"]
