"""One state for each subgroup of the rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self

import numpy as np
import pandas as pd

from skselect import _validation as check
from skselect.metrics import DEFAULT_METRICS
from skselect.outcomes import Outcomes
from skselect.predictions import Predictions
from skselect.streaming._state import SelectiveState


class SubgroupStates:
    """A :class:`SelectiveState` for each subgroup, fed and merged as one.

    Parameters
    ----------
    mode : {"exact", "certified"}, default="exact"
    **options
        ``thresholds``, ``labels`` and ``confidence`` of every state.

    Attributes
    ----------
    states : dict of subgroup to SelectiveState

    Examples
    --------
    >>> from skselect import SubgroupStates
    >>> states = SubgroupStates(labels=[0, 1])
    >>> y_proba = [[.9, .1], [.2, .8], [.7, .3]]
    >>> _ = states.update([0, 1, 1], y_proba, subgroups=["a", "b", "b"])
    >>> states.evaluate(["selective_risk"])
       selective_risk
    a             0.0
    b             0.5
    """

    def __init__(self, mode: str = "exact", **options: Any) -> None:
        self._empty = SelectiveState(mode, **options)
        self.states: dict[Hashable, SelectiveState] = {}

    def __repr__(self) -> str:
        return f"SubgroupStates({len(self.states)} subgroups)"

    def update(self, y_true: Any, y_proba: Any, *, subgroups: Any) -> Self:
        """Count rows with class probabilities, each for its subgroup.

        Parameters
        ----------
        y_true, y_proba
            As in :meth:`SelectiveState.update`.
        subgroups : array-like of shape (n,)
            Missing ones are a subgroup too.

        Returns
        -------
        SubgroupStates
            This one.
        """
        predictions = Predictions.from_proba(y_true, y_proba, labels=self._empty.labels)
        outcomes = Outcomes.from_predictions(predictions, confidence=self._empty.confidence)
        if self._empty.labels is None:
            self._empty.labels = predictions.classes
        return self.update_confidence(outcomes.confidence, outcomes.loss, subgroups=subgroups)

    def update_confidence(self, confidence: Any, loss: Any, *, subgroups: Any) -> Self:
        """Count rows whose confidence and error are known, each for its subgroup.

        Parameters
        ----------
        confidence, loss
            As in :meth:`SelectiveState.update_confidence`.
        subgroups : array-like of shape (n,)

        Returns
        -------
        SubgroupStates
            This one.
        """
        outcomes = Outcomes(loss, confidence)
        # Counting all rows first refuses a bad one before any subgroup has counted.
        self._empty.empty_twin().update_confidence(outcomes.confidence, outcomes.loss)
        names = check.check_subgroups(subgroups, len(outcomes), other="confidence")
        codes, keys = pd.factorize(names.iloc[:, 0], use_na_sentinel=False)
        for code, key in enumerate(keys):
            rows = np.flatnonzero(codes == code)
            state = self.states.setdefault(key, self._empty.empty_twin())
            state.update_confidence(outcomes.confidence[rows], outcomes.loss[rows])
        return self

    def merge(self, *others: SubgroupStates) -> SubgroupStates:
        """Return states that have counted the rows of all; none of them changes."""
        merged = SubgroupStates()
        merged._empty = self._empty.empty_twin()
        every: dict[Hashable, list[SelectiveState]] = {}
        for one in (self, *others):
            for key, state in one.states.items():
                every.setdefault(key, []).append(state)
        merged.states = {key: states[0].merge(*states[1:]) for key, states in every.items()}
        return merged

    def total(self) -> SelectiveState:
        """Return the state of all rows."""
        return self._empty.empty_twin().merge(*self.states.values())

    def evaluate(
        self, metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] = DEFAULT_METRICS
    ) -> pd.DataFrame:
        """Compute metrics of each subgroup: a row per subgroup (with "certified": and metric)."""
        keys = sorted(self.states, key=lambda key: (str(type(key)), str(key)))
        tables = {key: self.states[key].evaluate(metrics) for key in keys}
        if self._empty.mode == "exact":
            return pd.DataFrame(tables).T
        return pd.concat(tables)
