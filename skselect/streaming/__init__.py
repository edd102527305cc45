"""Evaluation of predictions that do not fit in memory, or lie on many machines."""

from skselect.streaming._state import SelectiveState
from skselect.streaming._subgroups import SubgroupStates

__all__ = ["SelectiveState", "SubgroupStates"]
