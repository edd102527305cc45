"""Whether a policy keeps its guarantee after deployment: asked once, or watched case by case."""

from skselect.monitoring.evidence import detectable_risk

__all__ = ["detectable_risk"]
