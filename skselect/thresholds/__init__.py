"""Pure rules that pick a threshold from a risk-coverage curve.

A rule tells which thresholds pass. Only whole tie blocks can be accepted, so no rule looks inside
one.
"""

from skselect.thresholds._planning import pool_size, rows_needed, simultaneous_band
from skselect.thresholds._rules import Shortlist
from skselect.thresholds._sequences import (
    Combined,
    FixedSequence,
    LevelSequence,
    best_combined,
    best_start,
)

__all__ = [
    "Combined",
    "FixedSequence",
    "LevelSequence",
    "Shortlist",
    "best_combined",
    "best_start",
    "pool_size",
    "rows_needed",
    "simultaneous_band",
]
