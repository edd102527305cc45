"""Standard errors of means whose rows may belong together."""

from __future__ import annotations

import math

import numpy as np

from skselect._typing import FloatArray, IntArray


def clustered_error(values: FloatArray, cluster: IntArray | None = None) -> float:
    """Return the standard error of a mean of influence values, rows or clusters independent."""
    n = len(values)
    sums = values if cluster is None else np.bincount(cluster, weights=values)
    m = len(sums)
    if m < 2:
        return math.nan
    return float(np.sqrt(np.sum(sums * sums) * m / (m - 1.0)) / n)
