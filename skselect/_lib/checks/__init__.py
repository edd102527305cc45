"""Checks of user data that several rooms share. They convert or refuse, and compute nothing.

A message names the argument, says what it was, and what would be right. Arrays of other libraries
become numpy arrays here and nowhere else, so results do not depend on the library. Code inside the
library does not check again what was checked here.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from dataclasses import MISSING, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from skselect._lib.decide import warn_user as warn_user

#: The most items of a collection, and the most characters, that messages show.
_LONG, _LONGEST = 10, 200


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return a numpy array, or say which argument cannot become one."""
    if hasattr(values, "tocsr"):
        raise ValueError(f"{name} must be a dense array, got a sparse matrix; use .toarray().")
    if np.ma.is_masked(values):  # np.asarray would ignore the mask
        raise ValueError(f"{name} has masked values; drop those rows, or fill them, first.")
    try:
        if hasattr(values, "detach"):  # torch: without its gradient, from the GPU
            values = values.detach().cpu()
        elif hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
            return np.from_dlpack(values)
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(f"{name} is not a table of numbers: {error}") from error


def shown(value: Any) -> str:
    """Return a value for a message: in full if that is short, else its type and size."""
    kind, shape = type(value).__name__, getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{kind} of shape {shape}"
    sized = shape is None and isinstance(value, Collection) and not isinstance(value, str)
    if sized and len(value) > _LONG:
        return f"{kind} of length {len(value)}"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{kind}, {text[:_LONGEST]}..."


def did_you_mean(value: Any, known: Iterable[str]) -> str:
    """Return " Did you mean 'augrc'?" where a name is almost one of `known`, else ""."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(str(value).lower(), by_lower, n=1)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


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
