"""How probabilities become a predicted class (the answer), and what a wrong answer costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skselect._lib.arrays import FloatArray, IntArray, LabelArray, column_names
from skselect._lib.checks import shown
from skselect._lib.checks.options import check_choice, check_costs, check_given, check_has_costs
from skselect._lib.checks.rows import match_columns
from skselect._lib.decide import choose, plain_value

#: The most probable class, the estimator's own answer, or the class that costs least on average.
DECISIONS = ("argmax", "estimator", "min_cost")


@dataclass(frozen=True, eq=False)
class DecisionRule:
    """How probabilities become an answer, and what each kind of error costs.

    Build it with :meth:`checked`; the constructor takes the fields as they are.

    Parameters
    ----------
    decision : {"argmax", "estimator", "min_cost"}, default="argmax"
    cost_matrix : ndarray of shape (K, K) or None, default=None
        Rows are true classes, columns answers; in any unit.

    Examples
    --------
    >>> import numpy as np
    >>> from skselect.predictions.decisions import DecisionRule
    >>> rule = DecisionRule.checked("min_cost", [[0, 1], [10, 0]], np.array(["healthy", "sick"]))
    >>> rule.choose(np.array([[.95, .05], [.8, .2]]))
    array([0, 1])
    >>> rule.unit
    10.0
    """

    decision: str = "argmax"
    cost_matrix: FloatArray | None = None

    @classmethod
    def checked(cls, decision: str, cost_matrix: Any, classes: LabelArray) -> DecisionRule:
        """Build the rule from a user's parameters, which are checked.

        Parameters
        ----------
        decision : str
        cost_matrix : array-like of shape (K, K), DataFrame, dict or None
            A DataFrame and a dict are matched with the classes by name, rows and columns.
        classes : ndarray of shape (K,)

        Raises
        ------
        ValueError
            If the decision is unknown or lacks its costs, or the costs do not fit the classes.
        """
        check_choice("decision", decision, DECISIONS)
        check_has_costs(decision, cost_matrix)
        if cost_matrix is None:
            return cls(decision)
        return cls(decision, _check_cost_matrix(cost_matrix, classes))

    @property
    def unit(self) -> float:
        """The largest cost, by which costs are divided to be losses in [0, 1]; 1 without costs."""
        return 1.0 if self.cost_matrix is None else float(self.cost_matrix.max())

    @property
    def has_graded_costs(self) -> bool:
        """Whether some cost lies between 0 and the largest."""
        costs = self.cost_matrix
        if costs is None:
            return False
        between = (costs > 0) & (costs < self.unit)
        return bool(np.any(between))

    @property
    def default_confidence(self) -> str:
        """The name of the confidence that goes with the decision."""
        names = {"argmax": "max_proba", "estimator": "chosen_proba", "min_cost": "expected_cost"}
        return names[self.decision]

    @property
    def claim(self) -> str:
        """The name of the confidence that is read as the probability of being right."""
        return "max_proba" if self.decision == "argmax" else "chosen_proba"

    @property
    def default_loss(self) -> str:
        """The name of the loss that goes with the decision."""
        return "zero_one" if self.cost_matrix is None else "cost"

    def choose(self, y_proba: FloatArray, y_pred: IntArray | None = None) -> IntArray:
        """Return the code of the predicted class of each row.

        `y_pred`, codes of the estimator's own predictions, is needed for "estimator" only.
        """
        if self.decision == "estimator":
            return check_given(y_pred, "y_pred", "decision='estimator'")
        policy = self.applied_to(y_proba)
        return choose(policy, y_proba, y_pred)

    def applied_to(self, y_proba: FloatArray, confidence: Any = None) -> dict[str, Any]:
        """Return what :mod:`skselect._lib.decide` reads of a policy with this rule."""
        return {
            "classes": range(y_proba.shape[1]),
            "decision": self.decision,
            "cost_matrix": self.cost_matrix,
            "confidence": confidence,
        }

    def costs(self, y_true: IntArray, y_pred: IntArray) -> FloatArray:
        """Return what each answer cost, as a share of the largest cost.

        Where the model does not know the true class (-1), any answer has the largest cost.
        """
        costs = check_given(self.cost_matrix, "cost_matrix", "a loss or confidence of costs")
        shares = costs / self.unit
        return np.where(y_true < 0, 1.0, shares[y_true, y_pred])


def read_costs(values: Any) -> FloatArray:
    """Return what each answer costs, by true class and answer, before the classes are known."""
    return check_costs(_tabulate_costs(values))


def _check_cost_matrix(values: Any, classes: LabelArray) -> FloatArray:
    """Return what each answer costs: (K, K), finite, none negative, not all zero."""
    values = _tabulate_costs(values)
    names = column_names(values)
    # Rows of polars and Arrow tables have no names: they are in the order of the columns.
    if names is not None and not hasattr(values, "iloc"):
        values = pd.DataFrame(np.asarray(values), index=names, columns=names)
    if hasattr(values, "iloc"):
        remedy = "or pass an array in the order of the classes"
        rows = match_columns(list(values.index), classes, "cost_matrix", remedy)
        columns = match_columns(list(values.columns), classes, "cost_matrix", remedy)
        values = values.iloc[rows, columns]
    costs = check_costs(values)
    shape = (len(classes), len(classes))
    if costs.shape != shape:
        raise ValueError(
            f"cost_matrix must have the shape {shape}, one row per true class and one column per "
            f"answer, in the order {classes[:10].tolist()}; got the shape {costs.shape}."
        )
    return costs


def _tabulate_costs(values: Any) -> Any:
    """Return costs in a dict as a table, any other costs as they are.

    The dict maps true classes to dicts of answers; a right answer costs 0 unless it says so.
    """
    if not isinstance(values, Mapping):
        return values
    if not values or not all(isinstance(row, Mapping) for row in values.values()):
        raise ValueError(
            "cost_matrix as a dict must hold a dict of answers for each true class, such as "
            f"{{'sick': {{'healthy': 5}}, 'healthy': {{'sick': 1}}}}, got {shown(values)}."
        )
    costs: dict[Any, dict[Any, Any]] = {}
    for true, row in values.items():
        costs[plain_value(true)] = {plain_value(answer): cost for answer, cost in row.items()}
    answers = [answer for row in costs.values() for answer in row]
    names = list(dict.fromkeys([*costs, *answers]))
    table = []
    for true in names:
        row = {true: 0} | costs.get(true, {})
        missing = [answer for answer in names if answer not in row]
        if missing:
            raise ValueError(
                f"cost_matrix: it has no cost for the answer {missing[0]!r} where the true class "
                f"is {true!r}; a dict is {{true class: {{answer: cost}}}}."
            )
        table.append([row[answer] for answer in names])
    return pd.DataFrame(np.array(table), index=names, columns=names)
