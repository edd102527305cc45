"""Anything array-like becomes an array, or the argument is named."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return an array, or say which argument is none."""
    if hasattr(values, "tocsr"):
        raise ValueError(f"{name} must be a dense array, got a sparse matrix; use .toarray().")
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is not a table of numbers: {error}") from error
