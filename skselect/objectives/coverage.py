"""The share of cases that are answered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skselect._lib.arrays import BoolArray, FloatArray
from skselect._lib.checks.options import check_number
from skselect._lib.notebook import percent
from skselect.bounds._pointwise import least_count
from skselect.curve.curve import RiskCoverageCurve
from skselect.objectives.counts import Counts
from skselect.objectives.guarantee import Guarantee
from skselect.objectives.loss import Loss
from skselect.objectives.objective import MEAN_ONLY, Found, Method
from skselect.thresholds import _rules as rules
from skselect.thresholds._rules import Passing


@dataclass(repr=False)
class Coverage(Guarantee):
    """Certify that at least a share `target` of the cases is answered, by the highest threshold.

    Parameters
    ----------
    target : float in (0, 1]
        The bound to keep. Smallest share of accepted rows.
    delta, max_analyses, given_prediction, given_class, largest_weight
        As for :class:`Risk`.
    method : {"auto", "order_statistic", "mean", "empirical"}, default="auto"
        Certified: "order_statistic" (the meaning of "auto"). An estimate: "mean". No guarantee:
        "empirical".

    Examples
    --------
    >>> from skselect import Coverage, Outcomes, select_threshold
    >>> outcomes = Outcomes([0] * 299 + [1], [.9, .9, .8] * 100)
    >>> select_threshold(outcomes, objective=Coverage(.6)).threshold > .8
    True
    """

    word = "coverage"
    is_least = True
    noun = "answered"
    target_means = "the least coverage, for example target=0.8"
    methods: ClassVar[Mapping[str, Method]] = {
        "order_statistic": Method(rules.certified_coverage),
        "mean": Method(rules.mean_coverage, "mean", MEAN_ONLY),
        "empirical": Method(rules.empirical_coverage, "none"),
    }

    def choose(self, curve: RiskCoverageCurve, passing: Passing) -> Found:  # noqa: ARG002
        """Choose the highest threshold that passes; where none does, accept everything."""
        entries = np.append(passing.entries[:-1], True)
        highest = int(np.argmax(entries))
        return Found(None, highest + 1)

    def checked_target(self, loss: Loss) -> float:  # noqa: ARG002
        """Return the target, a share of rows."""
        return check_number("target", self.target, 0.0, 1.0, closed="right")

    @property
    def unit(self) -> float:
        """1: a coverage is a share of rows."""
        return 1.0

    @property
    def largest(self) -> float:
        """The largest share of rows that are not accepted."""
        return 1.0 - self.target

    def amount(self, value: float, *, up: bool | None = False) -> str:
        """Return a coverage as text."""
        return percent(value, up=up)

    def describe(self) -> str:
        """Return the guarantee in words."""
        which = f" {self.cases}" if self.cases else ""
        least = self.amount(self.target)
        return f"at least {least} of all cases{which} are answered"

    def count(self, counts: Counts) -> tuple[int, int]:
        """Return the rows that are not accepted."""
        return counts.n - counts.n_accepted, counts.n

    def values(self, loss: FloatArray, accepted: BoolArray) -> FloatArray:  # noqa: ARG002
        """Return 1 for each row that is not accepted."""
        return (~accepted).astype(np.float64)

    def rows_needed(self) -> int:
        """Return 1: a threshold can always be low enough."""
        return 1

    @property
    def rows_to_fail(self) -> float:
        """The fewest rows of which not all have to be accepted."""
        if not self.counts:
            return 0
        if self.target >= 1.0:
            return math.inf
        return least_count(lambda n: rules.coverage_rank(n, self.target, self.level) < n)
