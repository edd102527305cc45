"""Whether a policy keeps its promise, watched case by case for as long as it runs."""

from skselect.monitoring.monitor import SelectiveRiskMonitor
from skselect.monitoring.status import MonitorStatus, PromiseStatus

__all__ = ["MonitorStatus", "PromiseStatus", "SelectiveRiskMonitor"]
