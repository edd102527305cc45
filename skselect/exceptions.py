"""Errors with names: a target out of reach, a data set that is nowhere to be had."""

from __future__ import annotations


class InfeasibleTargetError(ValueError):
    """No threshold meets the target on the rows given.

    Attributes
    ----------
    least_target : float or None
        The smallest target that these rows could have met, where one exists. It is
        information only: to certify that target, use rows that did not choose it.
    rows_needed : int or None
        Roughly how many rows would do if their errors fell as they did here: fresh ones, or
        the next of several planned looks.
    reason : str
        The message without `remedy`.
    remedy : str
        What else could be asked for in Python; the end of the message.
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
    """A data set is neither on this machine nor to be had from where it is published."""
