"""Anything array-like becomes a numpy array, or the argument is named.

Arrays of other libraries come in here and nowhere else: what is computed is computed by numpy,
whose sort of packed keys outruns theirs, and in the same bits whatever the library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return an array, or say which argument is none."""
    if hasattr(values, "tocsr"):
        raise ValueError(f"{name} must be a dense array, got a sparse matrix; use .toarray().")
    try:
        if hasattr(values, "detach"):  # torch: off the graph, into the machine's own memory
            values = values.detach().cpu()
        elif hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
            return np.from_dlpack(values)
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(f"{name} is not a table of numbers: {error}") from error
