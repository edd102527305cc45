"""Checks of user data that several rooms share. They convert or refuse, and compute nothing.

A message names the argument, says what it was, and what would be right. Code inside the library
does not check again what was checked here.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Any

from skselect._lib.decide import warn_user as warn_user

#: The most items of a collection that messages show, and the most characters.
LONG = 10
_LONGEST = 200


def shown(value: Any) -> str:
    """Return a value for a message: in full if that is short, else its type and size."""
    kind = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{kind} of shape {shape}"
    is_sized = shape is None and isinstance(value, Collection) and not isinstance(value, str)
    if is_sized and len(value) > LONG:
        return f"{kind} of length {len(value)}"
    text = repr(value)
    if len(text) > _LONGEST:
        return f"{kind}, {text[:_LONGEST]}..."
    return text


def did_you_mean(value: Any, names: Iterable[str]) -> str:
    """Return " Did you mean 'augrc'?" where a name is almost one of `names`, else ""."""
    by_lower = {name.lower(): name for name in names}
    typed = str(value).lower()
    nearest = difflib.get_close_matches(typed, by_lower, n=1)
    if not nearest:
        return ""
    name = by_lower[nearest[0]]
    return f" Did you mean {name!r}?"
