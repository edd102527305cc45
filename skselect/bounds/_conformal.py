"""The value that one more draw stays below with a given probability, whatever the distribution."""

from __future__ import annotations

import math

import numpy as np

from skselect._lib.checks.options import check_number
from skselect._lib.typing import FloatArray
from skselect.bounds._binomial import smallest_rank


def conformal_quantile(values: FloatArray, level: float) -> float:
    """Return the value that the next draw stays at or below with probability `level` or more.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Draws that are exchangeable with the next one; inf is allowed.
    level : float in (0, 1)

    Returns
    -------
    float
        The k-th smallest value, k = ceil((n + 1) level).

    Raises
    ------
    ValueError
        If `level` is out of its range, or the draws are fewer than
        :func:`rows_for_quantile` says.

    Notes
    -----
    All n + 1 ranks of the next draw are equally likely, so that it is among the k smallest with
    probability k/(n + 1). With ties the probability is larger; without it is less than
    level + 1/(n + 1). The probability counts the n draws and the next one together.

    References
    ----------
    .. [1] Vovk, Gammerman & Shafer, "Algorithmic Learning in a Random World", 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.bounds import conformal_quantile
    >>> conformal_quantile(np.arange(1, 40) / 40, 0.95)
    0.95
    """
    needed, n = rows_for_quantile(level), len(values)
    if n < needed:
        raise ValueError(f"values: level={level:g} needs at least {needed} of them, got {n}.")
    rank = smallest_rank(n + 1, level)
    return float(np.partition(values, rank - 1)[rank - 1])


def rows_for_quantile(level: float) -> int:
    """Return the least number of draws that have a conformal quantile.

    Parameters
    ----------
    level : float in (0, 1)

    Returns
    -------
    int
        The smallest n >= level/(1 - level).

    Raises
    ------
    ValueError
        If `level` is out of its range.

    Examples
    --------
    >>> from skselect.bounds import rows_for_quantile
    >>> rows_for_quantile(0.95), rows_for_quantile(0.9)
    (19, 9)
    """
    check_number("level", level, 0.0, 1.0, closed="neither")
    n = max(math.floor(level / (1.0 - level)) - 1, 1)
    while n / (n + 1) < level:  # the division above rounds, at most by one row
        n += 1
    return n
