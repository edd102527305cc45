"""Whether a policy keeps its promise after deployment: asked once, or watched case by case."""

from skselect.monitoring.check import PolicyCheck
from skselect.monitoring.monitor import SelectiveRiskMonitor
from skselect.monitoring.status import MonitorStatus, PromiseStatus
from skselect.monitoring.verification import PromiseCheck

__all__ = ["MonitorStatus", "PolicyCheck", "PromiseCheck", "PromiseStatus", "SelectiveRiskMonitor"]
