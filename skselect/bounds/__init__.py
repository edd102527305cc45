"""Finite-sample bounds on risks at one threshold, and limits for all thresholds at once."""

from skselect.bounds._band import combined_limits, walk_band

__all__ = ["combined_limits", "walk_band"]
