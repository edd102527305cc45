"""Names for the arrays that travel through the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
LabelArray: TypeAlias = NDArray[Any]

#: One confidence per row: a name, an array, or a function of the probabilities.
ConfidenceSpec: TypeAlias = "str | FloatArray | Callable[[FloatArray], Any]"

#: One loss per row: a name, or a function ``(y_true, y_pred) -> loss``.
LossSpec: TypeAlias = "str | Callable[[LabelArray, LabelArray], Any]"
