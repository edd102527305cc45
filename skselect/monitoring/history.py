"""What was decided in each batch of cases, and whether that still looks like it did at first."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skselect._lib.arrays import BoolArray, FloatArray, IntArray
from skselect.bounds._pointwise import clopper_pearson_interval
from skselect.monitoring.evidence import Evidence, advance, bets_on_shares, total, wealth_of
from skselect.policy.certificate import UNCHANGED
from skselect.policy.policy import AbstentionPolicy, list_certificates

#: So many batches, or days, are kept; when there are more, each two neighbours become one.
MOST_BATCHES = 512
# Shares known from the rows that tuned a policy are not known exactly: intervals of this level.
_LEVEL = 0.99
# Quantiles nearer to the ends than this are left out: bets on few things are worth more each.
_OUTER = 0.2


@dataclass
class Batch:
    """Counts of one batch of cases.

    Parameters
    ----------
    first : int
        The number of its first case.
    start : float
        When that was decided.
    n, n_accepted : int
        Cases decided, and those among them that were answered.
    n_known : int
        Answered cases whose outcome has entered.
    weight, loss : float
        Sums of their weights, and of weight times loss.
    evidence : float
        The most evidence after any of them.
    """

    first: int
    start: float
    n: int = 0
    n_accepted: int = 0
    n_known: int = 0
    weight: float = 0.0
    loss: float = 0.0
    evidence: float = 0.0

    @classmethod
    def restore(cls, values: Sequence[Any]) -> Batch:
        """Rebuild a batch from its values, in the order above."""
        first, start, n, n_accepted, n_known, *sums = values
        counts = map(operator.index, (n, n_accepted, n_known))
        return cls(operator.index(first), float(start), *counts, *map(float, sums))

    def joined(self, later: Batch) -> Batch:
        """Return this batch and the next one as one."""
        sums = {
            name: getattr(self, name) + getattr(later, name)
            for name in ("n", "n_accepted", "n_known", "weight", "loss")
        }
        return Batch(self.first, self.start, **sums, evidence=max(self.evidence, later.evidence))


@dataclass
class History:
    """The batches so far, oldest first.

    Parameters
    ----------
    batches : list of Batch
    """

    batches: list[Batch] = field(default_factory=list)

    def begin(self, first: int, start: float) -> None:
        """Begin a new batch; join old ones where there are too many."""
        if len(self.batches) == MOST_BATCHES:
            pairs = zip(self.batches[::2], self.batches[1::2], strict=True)
            self.batches = [one.joined(other) for one, other in pairs]
        self.batches.append(Batch(first, start))

    def enter(
        self, numbers: IntArray, loss: FloatArray, weight: FloatArray, evidence: FloatArray
    ) -> None:
        """Add outcomes of cases, which have rising numbers, to the batches they belong to."""
        firsts = [batch.first for batch in self.batches]
        place = np.searchsorted(firsts, numbers, side="right") - 1
        for rows in runs(place):
            batch = self.batches[place[rows.start]]
            batch.n_known += rows.stop - rows.start
            batch.weight += total(weight[rows])
            batch.loss += total(weight[rows] * loss[rows])
            batch.evidence = max(batch.evidence, float(np.max(evidence[rows])))

    def latest(self, n: int, counted: str) -> Batch:
        """Return the latest batches as one: as few as hold `n` cases of the kind `counted`."""
        whole = Batch(0, 0.0)
        for batch in reversed(self.batches):
            whole = batch.joined(whole)
            if getattr(whole, counted) >= n:
                break
        return whole


def runs(keys: FloatArray | IntArray) -> list[slice]:
    """Return where neighbours are equal."""
    starts = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    ends = [0, *starts.tolist(), len(keys)]
    return [slice(a, b) for a, b in pairwise(ends) if b > a]


@dataclass
class Daily:
    """How many rows each day has, the sum of their losses, and that of their hashes.

    Rows in another order give the same. Two tables whose numbers and sums agree hold the same rows.

    Parameters
    ----------
    width : float
        The length of a day, in the units of the times.
    days : dict of float to (int, float, int)
        By the number of the day, ``time // width``.
    """

    width: float
    days: dict[float, tuple[int, float, int]] = field(default_factory=dict)

    def add(self, hashes: NDArray[np.uint64], times: FloatArray, loss: FloatArray) -> None:
        """Add rows; where there are too many days, each two become one."""
        keys, place = np.unique(np.floor_divide(times, self.width), return_inverse=True)
        sums = np.zeros(len(keys), dtype=np.uint64)
        np.add.at(sums, place, hashes)
        counts, losses = np.bincount(place), np.bincount(place, weights=loss)
        new = zip(counts.tolist(), losses.tolist(), sums.tolist(), strict=True)
        for key, day in zip(keys.tolist(), new, strict=True):
            self._join(key, day)
        while len(self.days) > MOST_BATCHES:
            self.widen()

    def _join(self, key: float, day: tuple[int, float, int]) -> None:
        n, loss, total_hash = self.days.get(key, (0, 0.0, 0))
        self.days[key] = (n + day[0], loss + day[1], (total_hash + day[2]) % 2**64)

    def widen(self) -> None:
        """Make one day of each two."""
        old, self.days, self.width = self.days, {}, 2.0 * self.width
        for key, day in old.items():
            self._join(key // 2, day)

    def compare(self, other: Daily) -> tuple[dict[float, int], dict[float, int], dict[float, int]]:
        """Return how many rows `other` has at least that these are not, by the start of the day.

        Of a day with more rows it is how many more (the first result). A day with as many rows, but
        other ones, counts as its losses differ, and as one at least (the second). A day with
        fewer rows says nothing, because rows may have been removed: the third result counts them.
        """
        one, other = (Daily(each.width, dict(each.days)) for each in (self, other))
        while one.days and other.days and one.width != other.width:
            min(one, other, key=lambda each: each.width).widen()
        more: dict[float, int] = {}
        others, fewer = more.copy(), more.copy()
        for key, (n, loss, total_hash) in sorted(other.days.items()):
            n_then, loss_then, hash_then = one.days.get(key, (0, 0.0, 0))
            if n > n_then:
                more[key * other.width] = n - n_then
            elif n == n_then and total_hash != hash_then:
                others[key * other.width] = max(1, math.ceil(abs(loss - loss_then) - 1e-6))
            elif n < n_then:
                fewer[key * other.width] = n
        return more, others, fewer

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        days = [
            [key, n, loss, f"{total:016x}"] for key, (n, loss, total) in sorted(self.days.items())
        ]
        return {"width": self.width, "days": days}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Daily:
        """Rebuild it from :meth:`to_dict`."""
        days = {
            float(key): (operator.index(n), float(loss), int(total, 16))
            for key, n, loss, total in stored["days"]
        }
        return cls(float(stored["width"]), days)


@dataclass
class Workload:
    """Bets that some shares of the cases are larger than they were on the rows that tuned it.

    A batch is one observation: its cases depend on each other.

    Parameters
    ----------
    shares : list of (str, float, float)
        What is counted ("answered", "deferred", confidences "below" or "above" a value), that
        value, and what the share was at most.
    evidence : list of Evidence
        One per share.
    counts : list of int
        Cases of the open batch, one per share, and all of them at the end.
    changed : float, default=None
        When the batch was over that made the evidence large enough.
    """

    shares: list[tuple[str, float, float]]
    evidence: list[Evidence]
    counts: list[int]
    changed: float | None = None

    @classmethod
    def of_policy(cls, policy: AbstentionPolicy) -> Workload:
        """Begin with what a policy stores about the rows that tuned it, if that is comparable."""
        shares = []
        if policy.coverage is not None and policy.n and _is_of_this_classifier(policy):
            shares = [("answered", 0.0, policy.coverage), ("deferred", 0.0, 1 - policy.coverage)]
            for name, value in policy.confidence_quantiles.items():
                level = _level(name)
                if _OUTER <= level <= 1.0 - _OUTER:
                    shares += [("below", value, level), ("above", value, 1.0 - level)]
        found, n = [], policy.n or 0
        for what, value, share in shares:
            most = float(clopper_pearson_interval(round(share * n), n, _LEVEL)[1])
            if most < 1.0:
                found.append((what, value, most))
        return cls(found, [Evidence()] * len(found), [0] * (len(found) + 1))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        evidence = [evidence.to_dict() for evidence in self.evidence]
        return {"evidence": evidence, "counts": self.counts, "changed": self.changed}

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take what the cases have made of it from :meth:`to_dict`."""
        if not self.shares and stored["evidence"]:  # an older version compared more
            stored = {"evidence": [], "counts": stored["counts"][-1:], "changed": None}
        pairs = zip(self.shares, stored["evidence"], strict=True)
        self.evidence = [Evidence.from_dict(saved) for _, saved in pairs]
        counts = zip(self.counts, stored["counts"], strict=True)
        self.counts = [operator.index(count) for _, count in counts]
        self.changed = stored["changed"]

    @property
    def wealth(self) -> float:
        """The evidence that a share is larger than it was; 1 before the first batch."""
        each = [
            wealth_of(evidence, bets_on_shares(most))
            for evidence, (_, _, most) in zip(self.evidence, self.shares, strict=True)
        ]
        return sum(each) / len(each) if each else 1.0

    def count(self, accepted: BoolArray, confidence: FloatArray) -> None:
        """Add cases to the open batch."""
        for i, (what, value, _) in enumerate(self.shares):
            self.counts[i] += int(np.count_nonzero({
                "answered": accepted, "deferred": ~accepted,
                "below": confidence < value, "above": confidence > value,
            }[what]))  # fmt: skip
        self.counts[-1] += len(accepted)

    def close(self, delta: float, when: float) -> None:
        """End the open batch, and bet on its shares."""
        n = self.counts[-1]
        for i, (_, _, most) in enumerate(self.shares):
            share = np.array([self.counts[i] / n])
            self.evidence[i] = advance(self.evidence[i], bets_on_shares(most), share, np.ones(1))[0]
        self.counts = [0] * len(self.counts)
        if self.changed is None and self.shares and self.wealth >= 1.0 / delta:
            self.changed = when


def _is_of_this_classifier(policy: AbstentionPolicy) -> bool:
    """Tell whether the shares of a policy are those of the classifier that runs.

    Models of folds, and one that was fitted again, are as sure as no other. Only a certificate says
    that the classifier stayed; without one nothing is known, nor with one of other rows.
    """
    made, data = list_certificates(policy), policy.fingerprints.get("data")
    if policy.groups is None and any(one.fingerprints.get("data") != data for one in made):
        return False
    return bool(made) and all(UNCHANGED in one.assumptions for one in made)


def _level(name: str) -> float:
    """Return the level of a quantile from its name, nan where the name is no number."""
    try:
        return float(name)
    except ValueError:
        return math.nan
