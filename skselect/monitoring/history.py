"""What was decided in each batch of cases, and whether that still looks like it did at first."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skselect._lib.arrays import BoolArray, FloatArray
from skselect.bounds._pointwise import clopper_pearson_interval
from skselect.monitoring.evidence import Evidence, advance, bets_on_shares, in_grains, wealth_of
from skselect.policy.certificate import UNCHANGED
from skselect.policy.policy import AbstentionPolicy

#: Cases or batches: rows with named columns.
Records = NDArray[Any]
#: So many batches are kept; when there are more, each two neighbours become one.
MOST_BATCHES = 512
# Shares known from the rows that tuned a policy are not known exactly: intervals of this level.
_LEVEL = 0.99
# Quantiles nearer to the ends than this are left out: bets on few things are worth more each.
_OUTER = 0.2


#: A batch of cases. `first` is the number of its first case, `start` when that was decided; `n` are
#: the cases decided, `n_accepted` those of them that were answered, `n_known` those of these that
#: have entered, with the sums of their weights, and of weight times loss, and the most evidence
#: after any of them.
BATCH = np.dtype(
    [("first", "i8"), ("start", "f8"), ("n", "i8"), ("n_accepted", "i8"), ("n_known", "i8"),
     ("weight", "f8"), ("loss", "f8"), ("evidence", "f8")]
)  # fmt: skip
_SUMS = ["n", "n_accepted", "n_known", "weight", "loss"]


def begin_batch(batches: Records, first: int, start: float) -> Records:
    """Return batches, oldest first, with a new one; where they are too many, two become one."""
    if len(batches) == MOST_BATCHES:
        later, batches = batches[1::2], batches[::2].copy()
        for name in _SUMS:
            batches[name] += later[name]
        batches["evidence"] = np.maximum(batches["evidence"], later["evidence"])
    return np.append(batches, np.array([(first, start, 0, 0, 0, 0.0, 0.0, 0.0)], BATCH))


def enter_outcomes(batches: Records, cases: Records, loss: FloatArray, wealth: FloatArray) -> None:
    """Add outcomes of cases to the batches that they belong to, with the evidence after each."""
    place = np.searchsorted(batches["first"], cases["number"], side="right") - 1
    np.add.at(batches["n_known"], place, 1)
    np.add.at(batches["weight"], place, in_grains(cases["weight"]))
    np.add.at(batches["loss"], place, in_grains(cases["weight"] * loss))
    np.maximum.at(batches["evidence"], place, wealth)


def latest_batches(batches: Records, n: int, counted: str) -> Records:
    """Return the latest batches: as few as hold `n` cases of the kind `counted`."""
    held = np.cumsum(batches[counted][::-1])
    return batches[max(len(batches) - 1 - int(np.searchsorted(held, n)), 0) :]


def runs(keys: FloatArray) -> list[slice]:
    """Return where neighbours are equal."""
    starts = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    ends = [0, *starts.tolist(), len(keys)]
    return [slice(a, b) for a, b in pairwise(ends) if b > a]


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
                level = float(name)
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
    made, data = policy.parts.listed, policy.fingerprints.get("data")
    if policy.parts.by is None and any(one.fingerprints.get("data") != data for one in made):
        return False
    return bool(made) and all(UNCHANGED in one.assumptions for one in made)
