"""Whether a policy keeps its guarantee after deployment: asked once, or watched case by case."""

from skselect.monitoring.check import PolicyCheck
from skselect.monitoring.labelled import GuaranteeCheck
from skselect.monitoring.monitor import SelectiveRiskMonitor
from skselect.monitoring.status import GuaranteeStatus, MonitorStatus

__all__ = [
    "GuaranteeCheck",
    "GuaranteeStatus",
    "MonitorStatus",
    "PolicyCheck",
    "SelectiveRiskMonitor",
]
