"""One state for each subgroup of the rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self

import numpy as np
import pandas as pd

from skselect._lib.checks.rows import check_subgroups
from skselect.metrics._evaluate import DEFAULT_METRICS
from skselect.streaming.state import (
    SelectiveState,
    check_counted_rows,
    check_has_rows,
    check_is_kind,
    read_piece,
)


class SubgroupStates:
    """A :class:`~skselect.SelectiveState` for each subgroup, updated and merged together.

    Parameters
    ----------
    mode : {"exact", "certified"}, default="exact"
    **options
        ``thresholds``, ``labels`` and ``confidence`` of every state.

    Attributes
    ----------
    states : dict of subgroup to SelectiveState
    template : SelectiveState
        An empty state of their kind.

    Examples
    --------
    >>> from skselect.streaming import SubgroupStates
    >>> states = SubgroupStates(labels=[0, 1])
    >>> y_proba = [[.9, .1], [.2, .8], [.7, .3]]
    >>> _ = states.update([0, 1, 1], y_proba, subgroups=["a", "b", "b"])
    >>> states.evaluate(["selective_risk"])
       selective_risk
    a             0.0
    b             0.5
    """

    def __init__(self, mode: str = "exact", **options: Any) -> None:
        self.template = SelectiveState(mode, **options)
        self.states: dict[Hashable, SelectiveState] = {}

    def __repr__(self) -> str:
        return f"SubgroupStates({len(self.states)} subgroups)"

    def update(self, y_true: Any, y_proba: Any, *, subgroups: Any) -> Self:
        """Count rows with class probabilities, each for its subgroup.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        y_proba : array-like of shape (n, K) or (n,)
            Class probabilities. Columns in the order of `labels`, or the probability of the second
            of two classes.
        subgroups : array-like of shape (n,)
            The subgroup of each row. Missing values form the subgroup None.

        Returns
        -------
        SubgroupStates
            This one.

        Raises
        ------
        ValueError
            If an argument is malformed; nothing is counted then.
        """
        template = self.template
        outcomes, labels = read_piece(y_true, y_proba, template.labels, template.confidence)
        self.update_confidence(outcomes.confidence, outcomes.loss, subgroups=subgroups)
        template.labels = labels
        return self

    def update_confidence(self, confidence: Any, loss: Any, *, subgroups: Any) -> Self:
        """Count rows whose confidence and error are known, each for its subgroup.

        Parameters
        ----------
        confidence : array-like of shape (n,)
            How sure the classifier is of each row. In [0, 1].
        loss : array-like of shape (n,)
            How wrong an answer is. 1 for an error, 0 for a right answer.
        subgroups : array-like of shape (n,)

        Returns
        -------
        SubgroupStates
            This one.

        Raises
        ------
        ValueError
            If an argument is malformed; nothing is counted then.
        """
        values, wrong = check_counted_rows(confidence, loss)
        names = check_subgroups(subgroups, len(values), other="confidence")
        if names.shape[1] != 1:
            raise ValueError(
                f"subgroups must be one value per row, got the {names.shape[1]} columns "
                f"{list(names.columns)}; join them first."
            )
        codes, keys = pd.factorize(names.iloc[:, 0], use_na_sentinel=False)
        for code, key in enumerate(keys):
            rows = np.flatnonzero(codes == code)
            name = None if pd.isna(key) else key  # nan does not equal nan
            state = self.states.setdefault(name, self.template.empty_twin())
            state.update_confidence(values[rows], wrong[rows])
        return self

    def merge(self, *others: SubgroupStates) -> SubgroupStates:
        """Return states that have counted the rows of all; none of them changes.

        Parameters
        ----------
        *others : SubgroupStates
            Of the same mode, thresholds, labels and confidence.

        Returns
        -------
        SubgroupStates

        Raises
        ------
        ValueError
            If they do not fit together.
        """
        for other in others:
            check_is_kind(other, SubgroupStates)
        merged = SubgroupStates()
        merged.template = self.template.merge(*(other.template for other in others))
        every: dict[Hashable, list[SelectiveState]] = {}
        for one in (self, *others):
            for key, state in one.states.items():
                every.setdefault(key, []).append(state)
        merged.states = {key: states[0].merge(*states[1:]) for key, states in every.items()}
        return merged

    def total(self) -> SelectiveState:
        """Return the state of all rows."""
        return self.template.empty_twin().merge(*self.states.values())

    def evaluate(
        self, metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] = DEFAULT_METRICS
    ) -> pd.DataFrame:
        """Compute metrics of each subgroup, as :meth:`skselect.SelectiveState.evaluate`.

        Returns
        -------
        DataFrame
            A row per subgroup and a column per metric; in mode "certified" a row per subgroup
            and metric, with the columns "value", "low" and "high".

        Raises
        ------
        ValueError
            If no row has been counted, or a metric is unknown or cannot be bounded.
        """
        check_has_rows(len(self.states))
        keys = sorted(self.states, key=lambda key: (str(type(key)), str(key)))
        tables = {key: self.states[key].evaluate(metrics) for key in keys}
        if self.template.mode == "exact":
            return pd.DataFrame(tables).T
        return pd.concat(tables)
