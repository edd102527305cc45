"""How uncertain a metric is: intervals, comparisons, subgroups."""

from skselect.inference.by_group import metrics_by_class, metrics_by_group
from skselect.inference.compare import compare_models
from skselect.inference.intervals import metric_interval

__all__ = [
    "compare_models",
    "metric_interval",
    "metrics_by_class",
    "metrics_by_group",
]
