"""Pure rules that pick a threshold from a risk-coverage curve.

A rule returns how many entries of the curve to accept (0: none). Only whole tie blocks can
be accepted, so no rule looks inside one.
"""

from skselect.thresholds._planning import pool_size, rows_needed, simultaneous_band
from skselect.thresholds._rules import (
    Betting,
    Combined,
    FixedSequence,
    LevelSequence,
    Shortlist,
    best_combined,
    best_start,
)

__all__ = [
    "Betting",
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
