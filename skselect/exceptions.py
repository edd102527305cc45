"""Errors of the library: an argument that cannot be used, a target that cannot be met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple


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


class BestSet(NamedTuple):
    """Some of the surest rows, and the bound that they would bear if chosen beforehand.

    Parameters
    ----------
    n_accepted, n_errors : int
        How many rows, and how many of them are wrong.
    bound : float
        Of what the target bounds, in its units.
    """

    n_accepted: int
    n_errors: int
    bound: float


@dataclass(frozen=True)
class Refusal:
    """Why no threshold is good enough, and what the rows could have borne.

    Parameters
    ----------
    text : str
        The refusal in a few lines.
    guarantee : str
        Which guarantee failed, in words.
    least_target : float or None
        The smallest target that these rows could have met, if there is one.
    least_target_coverage : float or None
        Which share of them it would have answered.
    rows_needed : int or None
        About how many such rows certify the target: the upper end of the range, else the lower.
    rows_needed_range : tuple of int or None
        So many are enough on a fifth, and on four fifths, of the curves that these rows may have
        come from; None where no number is.
    best_set : BestSet or None
        The accepted set of these rows with the least upper bound.
    """

    text: str
    guarantee: str = ""
    least_target: float | None = None
    least_target_coverage: float | None = None
    rows_needed: int | None = None
    rows_needed_range: tuple[int | None, int | None] = (None, None)
    best_set: BestSet | None = None


class InfeasibleTargetError(ValueError):
    """No threshold meets the target on the rows given.

    Parameters
    ----------
    message : str
        What is known at once.
    remedy : str, default=""
        As the attribute.
    explain : callable, default=None
        Returns the refusal, when one of its values is first read, or the error printed.

    Attributes
    ----------
    guarantee : str
        Which guarantee failed, in words.
    least_target : float or None
        The smallest target that these rows could have met, if there is one. To certify that
        target, use other rows than these.
    least_target_coverage : float or None
        Which share of these rows it would have answered.
    rows_needed : int or None
        About how many rows that certify, fresh ones or those of the next planned analysis, would
        be enough: a plan, not a promise.
    rows_needed_range : tuple of int or None
        The same as a range.
    best_set : BestSet or None
        The accepted set of these rows with the least upper bound on what the target bounds.
    reason : str
        The message without `remedy`.
    remedy : str
        The end of the message: what else could be asked for in Python.
    """

    def __init__(
        self,
        message: str,
        *,
        remedy: str = "",
        explain: Callable[[], Refusal] | None = None,
    ) -> None:
        super().__init__(message)
        self.remedy = remedy
        self._refusal = Refusal(message)
        self._explain = explain

    def __reduce__(self) -> Any:
        self._look()  # keep the answer instead of the rows
        return super().__reduce__()

    def __str__(self) -> str:
        if not self.remedy:
            return self.reason
        separator = "\n" if "\n" in self.reason else " "
        return f"{self.reason}{separator}{self.remedy}"

    @property
    def guarantee(self) -> str:
        """Which guarantee failed, in words."""
        return self._look().guarantee

    @property
    def least_target(self) -> float | None:
        """The smallest target that these rows could have met."""
        return self._look().least_target

    @property
    def least_target_coverage(self) -> float | None:
        """Which share of these rows that target would have answered."""
        return self._look().least_target_coverage

    @property
    def rows_needed(self) -> int | None:
        """About how many rows that certify would be enough."""
        return self._look().rows_needed

    @property
    def rows_needed_range(self) -> tuple[int | None, int | None]:
        """About how many rows that certify would be enough, as a range."""
        return self._look().rows_needed_range

    @property
    def best_set(self) -> BestSet | None:
        """The accepted set of these rows with the least upper bound."""
        return self._look().best_set

    @property
    def reason(self) -> str:
        """The message without `remedy`."""
        return self._look().text

    def with_doubt(self, doubt: str) -> InfeasibleTargetError:
        """Return the same refusal; its text says what is wrong with the rows in place of advice."""

        def explain() -> Refusal:
            refusal = self._look()
            verdict = "No threshold meets the target."
            if refusal.guarantee:
                verdict = f"REFUSED: {refusal.guarantee}."
            return replace(refusal, text=f"{verdict}\n{doubt}")

        return InfeasibleTargetError("", remedy=self.remedy, explain=explain)

    def supposing(self, assumption: str) -> InfeasibleTargetError:
        """Return the same refusal where rows were taken to be better than anyone knows.

        Its numbers stand in the text alone, after the assumption.
        """

        def explain() -> Refusal:
            refusal = self._look()
            verdict, *lines = refusal.text.split("\n")
            text = "\n".join([verdict, assumption, *lines])
            return Refusal(text, refusal.guarantee)

        return InfeasibleTargetError("", remedy=self.remedy, explain=explain)

    def _look(self) -> Refusal:
        """Return the refusal, which is worked out when it is first asked for."""
        if self._explain is not None:
            self._refusal = self._explain()
            # And the rows that it holds.
            self._explain = None
        return self._refusal
