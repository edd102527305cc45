"""Errors of the library: a target that cannot be met, a data set that is not found."""

from __future__ import annotations


class InfeasibleTargetError(ValueError):
    """No threshold meets the target on the rows given.

    Attributes
    ----------
    least_target : float or None
        The smallest target that these rows could have met, if there is one. To certify that
        target, use other rows than these.
    rows_needed : int or None
        Roughly how many rows, fresh ones or those of the next planned look, would be enough if
        errors are as frequent as here.
    reason : str
        The message without `remedy`.
    remedy : str
        The end of the message: what else could be asked for in Python.
    """

    def __init__(
        self,
        message: str,
        *,
        least_target: float | None = None,
        rows_needed: int | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(f"{message} {remedy}".rstrip())
        self.reason = message
        self.remedy = remedy
        self.least_target = least_target
        self.rows_needed = rows_needed


class DatasetNotFoundError(OSError):
    """A data set is neither on this machine nor can it be downloaded."""
