"""Rows that choose or test a threshold, and all that is known of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from skselect._lib.arrays import BoolArray, IntArray, rows_of_codes
from skselect._lib.checks import warn_user
from skselect._lib.checks.rows import check_importance, check_some_subgroup, refuse_weights
from skselect.curve.curve import RiskCoverageCurve
from skselect.objectives import Best, Loss, Objective, Objectives, SystemRisk, for_all_rows
from skselect.policy import certificate as certificates
from skselect.policy.certificate import Caveat, Origin
from skselect.policy.seen_rows import find_tied_copies, with_and_without
from skselect.policy.subgroups import subgroup_codes
from skselect.predictions.outcomes import Outcomes
from skselect.predictions.predictions import Predictions
from skselect.selection import order
from skselect.selection.results import tuning_mask
from skselect.thresholds import Shortlist


@dataclass(frozen=True, eq=False)
class Grouping:
    """Which row belongs to which subgroup.

    Parameters
    ----------
    name : str
        What the subgroups are called.
    subgroups : array-like of shape (n,) or DataFrame
        Rows without a subgroup choose no threshold, and the policy defers such rows.
    n_rows : int
    by_answer : bool
        Whether the answers are the subgroups.
    unseen : {"abstain", "raise"}
        As in :class:`GroupThresholds`.
    """

    name: str
    subgroups: Any
    n_rows: int
    by_answer: bool = False
    unseen: str = "abstain"

    @cached_property
    def codes(self) -> IntArray:
        """The number of the subgroup of each row; -1 where it has none."""
        codes, _ = subgroup_codes(self.subgroups, self.n_rows)
        return codes

    @cached_property
    def members(self) -> dict[Any, IntArray]:
        """The rows of each subgroup that has any."""
        codes, keys = subgroup_codes(self.subgroups, self.n_rows)
        rows_by_code = rows_of_codes(codes, len(keys))
        return {key: rows for key, rows in zip(keys, rows_by_code, strict=True) if len(rows)}

    def take(self, rows: IntArray | BoolArray) -> Grouping:
        """Return the subgroups of some of the rows."""
        from skselect._lib.sklearn import take_rows  # noqa: PLC0415 - only where rows are split

        n_rows = len(np.arange(self.n_rows)[rows])
        return replace(self, subgroups=take_rows(self.subgroups, rows), n_rows=n_rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class Sample(Origin):
    """Rows that choose or test a threshold, and all that is known of them.

    Parameters
    ----------
    outcomes : Outcomes
    source : Predictions or Outcomes
        Where they come from: it knows classes, and how the rows were drawn.
    groups : Grouping or None, default=None
    loss : Loss
        What their losses mean.
    cases : str, default=""
        Which cases they are, as messages name them; "" for all.
    bounded : bool, default=True
        Whether confidences lie in [0, 1].
    share : float, default=1
        Which share of the rows given certifies.
    least : float, default=-inf
        No threshold lies below it.
    sort : callable
        Returns the curve of rows.
    accepted : ndarray of bool, shape (n,), or None
        Which rows a threshold accepts that was fixed before; None where it is to be chosen.
    is_graded : bool, default=False
        Whether losses may lie between 0 and 1.
    """

    outcomes: Outcomes
    source: Any = None
    groups: Grouping | None = None
    loss: Loss = field(default_factory=Loss)
    cases: str = ""
    bounded: bool = True
    share: float = 1.0
    least: float = -math.inf
    sort: Callable[[Outcomes], RiskCoverageCurve] = RiskCoverageCurve.from_outcomes
    accepted: BoolArray | None = None
    is_graded: bool = False

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def subgroups(self) -> Any:
        """The subgroup of each row, None where there are none."""
        if self.groups is None:
            return None
        return self.groups.subgroups

    # Some of the rows ----------------------------------------------------------------------

    def take(self, rows: IntArray | BoolArray, cases: str = "") -> Self:
        """Return some of the rows."""
        source = self.source
        if isinstance(source, Predictions):
            source = source.take(rows)
        groups = self.groups
        if groups is not None:
            groups = groups.take(rows)
        accepted = self.accepted
        if accepted is not None:
            accepted = accepted[rows]
        outcomes = self.outcomes.take(rows)
        return replace(
            self, outcomes=outcomes, source=source, groups=groups, cases=cases, accepted=accepted
        )

    def choosing(self, objectives: Objectives, shortlist: Shortlist | None) -> Self:
        """Return the rows that choose the threshold, without those set apart for a shortlist."""
        sample = self
        if shortlist is not None:
            sample = sample._set_apart(objectives, shortlist)
        if order.find_doubt(self.source):
            least = float(np.nanmin(sample.outcomes.confidence))
            sample = replace(sample, least=least)
        return sample

    def _set_apart(self, objectives: Objectives, shortlist: Shortlist) -> Self:
        """Return the rows that a shortlist leaves, of those that a single guarantee is about."""
        rows_of_guarantee = None
        if self.groups is None:
            guarantees = for_all_rows(objectives)
            if len(guarantees) == 1:
                rows_of_guarantee, _ = guarantees[0].find_rows(self.source)
        sample = replace(self, share=self.share * (1.0 - shortlist.share))
        rows = tuning_mask(shortlist, len(self), rows_of_guarantee)
        if rows is None:
            return sample
        return sample.take(rows)

    def about(self, objective: Objective) -> Self:
        """Return the rows that a guarantee is about, with the weights that it counts."""
        rows, cases = objective.find_rows(self.source)
        sample = self
        if rows is not None:
            sample = self.take(rows, cases)
        return sample.weighted_for(objective)

    def weighted_for(self, objective: Objective) -> Self:
        """Refuse weights that do not fit the objective; return rows without equal ones."""
        weight = self.outcomes.sample_weight
        if objective.guarantees:
            check_importance(weight, objective.largest_weight)
            if objective.largest_weight is None and weight is not None:
                outcomes = replace(self.outcomes, sample_weight=None)
                return replace(self, outcomes=outcomes)
        elif isinstance(objective, Best) and objective.bounds_luck:
            refuse_weights(weight, "a lower bound", ", or use method='empirical'")
        return self

    def split_by_group(self) -> dict[Any, IntArray]:
        """Return the rows of each subgroup that have a weight; warn of rows without a subgroup."""
        assert self.groups is not None
        has_weight = self.outcomes.weight > 0
        members = {}
        for group, rows in self.groups.members.items():
            weighted = rows
            if self.outcomes.sample_weight is not None:
                weighted = rows[has_weight[rows]]
            if len(weighted):
                members[group] = weighted
        check_some_subgroup(members)
        n_members = sum(len(rows) for rows in members.values())
        n_without = np.count_nonzero(has_weight) - n_members
        if n_without:
            later = "deferred" if self.groups.unseen == "abstain" else "refused"
            have = "have"
            they_choose = "They choose"
            if n_without == 1:
                have = "has"
                they_choose = "It chooses"
            warn_user(
                f"subgroups: {n_without} of {len(self)} rows {have} no {self.groups.name}. "
                f"{they_choose} no threshold, and such rows will be {later}."
            )
        return members

    @property
    def if_right(self) -> Self:
        """The rows as if all that nobody has judged yet were right."""
        unjudged = self.outcomes.unjudged
        assert unjudged is not None
        loss = np.where(unjudged, 0.0, self.outcomes.loss)
        outcomes = replace(self.outcomes, loss=loss, unjudged=None)
        return replace(self, outcomes=outcomes)

    # What is doubted of them -----------------------------------------------------------------

    def doubting(self, *caveats: Caveat) -> Self:
        """Return the rows with further caveats, which are named first."""
        return replace(self, caveats=(*caveats, *self.caveats))

    def warn(self) -> None:
        """Say aloud what is doubted, where something is accepted."""
        for caveat in self.caveats:
            if caveat.warns:
                warn_user(caveat.warns)

    @property
    def with_copies(self) -> Self:
        """The rows, to be read with and without those that seem to be copies of others.

        Rows of different subgroups are no copies.
        """
        outcomes = self.outcomes
        columns: list[Any] = [outcomes.loss, outcomes.reviewer_loss, outcomes.sample_weight]
        if isinstance(self.source, Predictions):
            columns += [self.source.y_true, self.source.y_pred]
        if self.groups is not None:
            columns.append(self.groups.codes)
        block_sizes = self.sort(outcomes.all_counted).block_rows
        copies = find_tied_copies(
            outcomes.confidence, block_sizes, *columns, unjudged=outcomes.unjudged
        )
        readings = with_and_without(copies)
        if readings is not None:
            if outcomes.readings is not None:
                # A threshold must hold under each of the user's own readings, too.
                both = [outcomes.readings & reading[:, None] for reading in readings.T]
                readings = np.hstack(both)
            outcomes = replace(outcomes, readings=readings)
        included = "label included"
        if outcomes.unjudged is not None:
            included = "as far as they are judged"
        caveats = certificates.copied_here(copies, included)
        return replace(self, outcomes=outcomes).doubting(*caveats)

    def in_order(self, objective: Objective, advice: str, *, vouched: bool) -> Self:
        """Return the rows with caveats about their order, and about how judged ones were drawn."""
        members = None
        if self.groups is not None:
            members = list(self.groups.members.values())
        caveats = order.check_order(
            self.source, self.outcomes, objective, members, advice, vouched=vouched
        )
        return self.doubting(*order.find_doubt(self.source), *caveats)

    def with_reviewer(self, objective: Objective) -> Self:
        """Return the rows with a reviewer's losses, where the objective counts them."""
        if not isinstance(objective, SystemRisk):
            return self
        outcomes = objective.with_reviewer(self.outcomes)
        return replace(self, outcomes=outcomes).doubting(*order.doubt_reviewer(outcomes))

    @property
    def pooled(self) -> Self:
        """The rows, all counted; the provenance says how many are judged, where not all are."""
        sample = self.with_pool(self.outcomes)
        return replace(sample, outcomes=self.outcomes.all_counted)
