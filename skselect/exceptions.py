"""Errors of the library: an argument that cannot be used, a target that cannot be met."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class ArgumentError(ValueError):
    """An argument cannot be used.

    Parameters
    ----------
    argument : str
        Its name, with which the message begins.
    message : str
        What it is, and what would be right.
    """

    def __init__(self, argument: str, message: str) -> None:
        super().__init__(argument, message)
        self.argument = argument

    def __str__(self) -> str:
        return str(self.args[1])


class InfeasibleTargetError(ValueError):
    """No threshold meets the target on the rows given.

    Parameters
    ----------
    message : str
        What is known at once.
    rows_needed, remedy
        As the attributes.
    find_least : callable, default=None
        Returns `least_target` and `reason`, when one of them is first read, or the error printed.

    Attributes
    ----------
    least_target : float or None
        The smallest target that these rows could have met, if there is one; looked for when it is
        first read. To certify that target, use other rows than these.
    rows_needed : int or None
        Roughly how many rows that certify, fresh ones or those of the next planned analysis,
        would be enough if errors fall as they do here.
    reason : str
        The message without `remedy`.
    remedy : str
        The end of the message: what else could be asked for in Python.
    """

    def __init__(
        self,
        message: str,
        *,
        rows_needed: int | None = None,
        remedy: str = "",
        find_least: Callable[[], tuple[float | None, str]] | None = None,
    ) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.rows_needed = rows_needed
        self._found: tuple[float | None, str] = (None, message)
        self._find_least = find_least

    def __reduce__(self) -> Any:
        self._look()  # keep the answer instead of the rows
        return super().__reduce__()

    def __str__(self) -> str:
        return f"{self.reason} {self.remedy}".rstrip()

    @property
    def least_target(self) -> float | None:
        """The smallest target that these rows could have met."""
        return self._look()[0]

    @property
    def reason(self) -> str:
        """The message without `remedy`."""
        return self._look()[1]

    def _look(self) -> tuple[float | None, str]:
        find_least = self._find_least
        if find_least is not None:
            self._found = find_least()
            self._find_least = None  # and the rows that it holds
        return self._found
