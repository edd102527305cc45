"""All faults of a table in one message, so that nobody meets them one after another."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def naming_all(reads: Callable[[], list[Callable[[], object]]]) -> Iterator[None]:
    """Let an error about a table name all of its faults.

    Parameters
    ----------
    reads : callable
        Returns what reads the table part by part; each part may raise an error of its own.
    """
    try:
        yield
    except ValueError as error:
        faults = _find(reads())
        first_fault = str(error)
        others = [fault for fault in faults if fault != first_fault]
        if not others:
            raise
        listed = "\n".join(f"- {fault}" for fault in (first_fault, *others))
        raise ValueError(f"{len(others) + 1} faults:\n{listed}") from error


def _find(reads: list[Callable[[], object]]) -> list[str]:
    """Return the errors that some calls raise, each once."""
    faults: dict[str, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for read in reads:
            try:
                read()
            except ValueError as error:
                faults[str(error)] = None
    return list(faults)
