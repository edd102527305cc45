"""What a policy asks of a cascade, several classifiers of which one answers each case.

The rule itself, :class:`skselect.extras.cascade.Cascade`, is imported where a stored policy has
one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pandas as pd

from skselect._lib.arrays import IntArray, LabelArray
from skselect.predictions.predictions import Predictions


class CascadeRule(Protocol):
    """Which of several classifiers answers a case, and how often each is asked."""

    @property
    def names(self) -> tuple[str, ...]:
        """The stages, in the order in which they are asked."""

    @property
    def cuts(self) -> tuple[float, ...]:
        """From which confidence on each stage but the last keeps a case."""

    @property
    def expected_costs(self) -> pd.DataFrame:
        """How often each stage is asked, and what a case costs."""

    def join(self, stages: Mapping[str, Predictions]) -> Predictions:
        """Return what the cascade answers in rows that did not set its rule."""

    def applied(self) -> dict[str, Any]:
        """Return the rule as :func:`skselect._lib.decide.follow` takes it."""

    def check_fits(self, n_classes: int) -> None:
        """Refuse calibrations of another number of classes."""

    def take_answers(self, y_pred: Any, stage: IntArray) -> LabelArray:
        """Return the answer of each row, from those of its stage."""

    def count_asked(self, stage: IntArray, *, is_fresh: bool) -> CascadeRule:
        """Return the rule with how often each stage was asked of these rows."""

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as plain values."""


def check_same_index(**arguments: Any) -> None:
    """Refuse pandas tables, also in dicts, whose rows have other names: they would be mixed up."""
    tables: dict[str, Any] = {}
    for name, argument in arguments.items():
        if isinstance(argument, Mapping):
            tables |= {f"{name}[{stage!r}]": table for stage, table in argument.items()}
        else:
            tables[name] = argument
    indexes = {
        name: table.index
        for name, table in tables.items()
        if isinstance(table, pd.DataFrame | pd.Series)
    }
    first_name = next(iter(indexes), "")
    for name, index in indexes.items():
        wanted = indexes[first_name]
        if len(index) == len(wanted) and not index.equals(wanted):
            raise ValueError(
                f"{name} has another index than {first_name}, so that its rows are other cases, or "
                f"in another order; pass {name}.reindex(...) with the index of {first_name}, or "
                "arrays."
            )
