"""Names for the arrays that travel through the library, and records made of checked ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeAlias, TypeVar

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

T = TypeVar("T")


def trusted(cls: type[T], **values: Any) -> T:
    """Build a frozen dataclass without its checks, from values that the library has checked.

    Users call the constructor, which checks. Fields that are left out have their defaults.
    """
    made = object.__new__(cls)
    for each in fields(cls):  # type: ignore[arg-type]
        default = each.default if each.default_factory is MISSING else each.default_factory()
        object.__setattr__(made, each.name, values.pop(each.name, default))
    assert not values, values
    return made
