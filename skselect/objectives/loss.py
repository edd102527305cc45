"""What an accepted row loses."""

from __future__ import annotations

from dataclasses import dataclass

from skselect._lib.arrays import LossSpec
from skselect._lib.notebook import percent, rounded
from skselect.predictions.decisions import DecisionRule


@dataclass(frozen=True)
class Loss:
    """What an accepted row loses.

    Parameters
    ----------
    kind : {"zero_one", "cost", "graded"}
        An error counts 1; it costs what the cost matrix says; or a loss of the user's own.
    unit : float
        What a loss of 1 is in the user's own units.
    """

    kind: str = "zero_one"
    unit: float = 1.0

    @classmethod
    def of(cls, loss: LossSpec, rule: DecisionRule) -> Loss:
        """Return what a loss (no longer "auto") means under a decision rule."""
        if callable(loss):
            return cls("graded")
        if loss == "cost":
            return cls("cost", rule.unit)
        return cls()

    @property
    def is_error(self) -> bool:
        """Whether a loss is an error, so that a mean loss is a share of rows."""
        return self.kind == "zero_one"

    @property
    def is_cost(self) -> bool:
        """Whether a loss is a cost of the cost matrix."""
        return self.kind == "cost"

    def amount(self, value: float, *, up: bool | None = True) -> str:
        """Return a mean loss in the user's units as text: a per cent of errors, or a number.

        It is an upper bound unless `up` says otherwise, see :func:`rounded`.
        """
        if self.is_error:
            return percent(value, up=up)
        return rounded(value, 6, up=up)
