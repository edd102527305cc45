"""Evaluation of predictions that do not fit in memory, or are spread over many machines."""

from skselect.streaming.parquet import parquet_state
from skselect.streaming.state import SubgroupStates

__all__ = ["SubgroupStates", "parquet_state"]
