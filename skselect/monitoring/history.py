"""What was decided in each batch of cases, and whether that still looks like it did at first."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skselect._lib.arrays import BoolArray, FloatArray
from skselect._lib.notebook import rounded
from skselect._lib.table import WholeTable
from skselect.bounds._pointwise import clopper_pearson_interval, clopper_pearson_upper
from skselect.monitoring.evidence import (
    Evidence,
    advance,
    bets_on_shares,
    in_grains,
    risk_interval,
    wealth_of,
)
from skselect.objectives import Loss
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


def begin_batch(batches: Records, position: int, start: float) -> Records:
    """Return batches, oldest first, with a new one; where they are too many, two become one."""
    if len(batches) == MOST_BATCHES:
        later = batches[1::2]
        batches = batches[::2].copy()
        for name in _SUMS:
            batches[name] += later[name]
        batches["evidence"] = np.maximum(batches["evidence"], later["evidence"])
    begun = np.zeros(1, BATCH)
    begun["first"] = position
    begun["start"] = start
    return np.append(batches, begun)


def enter_outcomes(batches: Records, cases: Records, loss: FloatArray, wealth: FloatArray) -> None:
    """Add outcomes of cases to the batches that they belong to, with the evidence after each."""
    place = np.searchsorted(batches["first"], cases["number"], side="right") - 1
    weight = cases["weight"]
    np.add.at(batches["n_known"], place, 1)
    np.add.at(batches["weight"], place, in_grains(weight))
    np.add.at(batches["loss"], place, in_grains(weight * loss))
    np.maximum.at(batches["evidence"], place, wealth)


def latest_batches(batches: Records, n: int, counted: str) -> Records:
    """Return the latest batches: as few as hold `n` cases of the kind `counted`."""
    latest_first = batches[counted][::-1]
    held = np.cumsum(latest_first)
    n_batches = 1 + int(np.searchsorted(held, n))
    return batches[-n_batches:]


def bound_risks(batches: Records, level: float, *, counted: bool) -> list[float]:
    """Return an upper bound of the risk of each batch, by itself; nan where nothing is known.

    Errors that are `counted` have an exact bound, losses with weights that of the monitor.
    """
    bounds = []
    for batch in batches:
        n = int(batch["n_known"])
        if n == 0:
            bound = np.nan
        elif counted:
            bound = clopper_pearson_upper(int(batch["loss"]), n, level)
        else:
            _, bound = risk_interval(float(batch["loss"]), float(batch["weight"]), level)
        bounds.append(float(bound))
    return bounds


def tabulate(frame: pd.DataFrame, names: list[str], loss: Loss) -> WholeTable:
    """Return the history of a monitor in words, a row for each batch."""
    rows = [_describe_batch(batch, loss) for batch in frame.itertuples()]
    return WholeTable(rows, index=names)


def _describe_batch(batch: Any, loss: Loss) -> dict[str, str]:
    """Return the columns of a batch."""
    bound = ""
    if not np.isnan(batch.bound):
        bound = _amount(batch.bound, loss, up=True)
    return {
        "cases": f"{batch.decided:,}",
        "answered": f"{batch.accepted:,} ({_percent(batch.coverage)})",
        "left to a person": f"{batch.decided - batch.accepted:,}",
        "wrong" if loss.is_error else "mean cost": _tell_risk(batch, loss),
        "at most": bound,
    }


def _tell_risk(batch: Any, loss: Loss) -> str:
    """Return what is known of the risk of a batch."""
    if batch.known == 0:
        return "no outcome yet"
    risk = _amount(batch.risk, loss)
    if np.isnan(batch.wrong):
        return f"{risk} of {batch.known:,}"
    return f"{batch.wrong:,.0f} of {batch.known:,} ({risk})"


def _amount(value: float, loss: Loss, *, up: bool | None = None) -> str:
    """Return a mean loss with three digits."""
    return _percent(value, up=up) if loss.is_error else rounded(value, 3, up=up)


def _percent(share: float, *, up: bool | None = None) -> str:
    return f"{rounded(100.0 * share, 3, up=up)} %"


def runs(keys: FloatArray) -> list[slice]:
    """Return where neighbours are equal."""
    if len(keys) == 0:
        return []
    changes = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    ends = [0, *changes.tolist(), len(keys)]
    return [slice(start, stop) for start, stop in pairwise(ends)]


class Share(NamedTuple):
    """A share of the cases that a policy stores of the rows that tuned it.

    Parameters
    ----------
    what : {"answered", "deferred", "below", "above"}
        What is counted: answers, deferred cases, or confidences below or above a value.
    value : float
    most : float
        What the share was at most.
    """

    what: str
    value: float
    most: float

    def count_cases(self, accepted: BoolArray, confidence: FloatArray) -> int:
        """Count the cases that belong to it."""
        if self.what == "answered":
            counted = accepted
        elif self.what == "deferred":
            counted = ~accepted
        elif self.what == "below":
            counted = confidence < self.value
        else:
            counted = confidence > self.value
        return int(np.count_nonzero(counted))


@dataclass
class Workload:
    """Bets that some shares of the cases are larger than they were on the rows that tuned it.

    A batch is one observation: its cases depend on each other.

    Parameters
    ----------
    shares : list of Share
    evidence : list of Evidence
        One per share.
    counts : list of int
        Cases of the open batch, one per share.
    n : int, default=0
        All cases of the open batch.
    changed : float, default=None
        When the batch was over that made the evidence large enough.
    """

    shares: list[Share]
    evidence: list[Evidence]
    counts: list[int]
    n: int = 0
    changed: float | None = None

    @classmethod
    def of_policy(cls, policy: AbstentionPolicy) -> Workload:
        """Begin with what a policy stores about the rows that tuned it, if that is comparable."""
        shares = _find_shares(policy)
        return cls(shares, [Evidence()] * len(shares), [0] * len(shares))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        evidence = [evidence.to_dict() for evidence in self.evidence]
        return {"evidence": evidence, "counts": [*self.counts, self.n], "changed": self.changed}

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take what the cases have made of it from :meth:`to_dict`."""
        pairs = zip(self.shares, stored["evidence"], strict=True)
        self.evidence = [Evidence.from_dict(saved) for _, saved in pairs]
        *counts, n = [operator.index(count) for count in stored["counts"]]
        self.counts = [count for _, count in zip(self.shares, counts, strict=True)]
        self.n = n
        self.changed = stored["changed"]

    @property
    def wealth(self) -> float:
        """The evidence that a share is larger than it was; 1 before the first batch."""
        if not self.shares:
            return 1.0
        total = 0.0
        for evidence, share in zip(self.evidence, self.shares, strict=True):
            total += wealth_of(evidence, bets_on_shares(share.most))
        return total / len(self.shares)

    def count(self, accepted: BoolArray, confidence: FloatArray) -> None:
        """Add cases to the open batch."""
        for i, share in enumerate(self.shares):
            self.counts[i] += share.count_cases(accepted, confidence)
        self.n += len(accepted)

    def close(self, delta: float, when: float) -> None:
        """End the open batch, and bet on its shares."""
        once = np.ones(1)
        for i, share in enumerate(self.shares):
            observed = np.array([self.counts[i] / self.n])
            bets = bets_on_shares(share.most)
            self.evidence[i], _ = advance(self.evidence[i], bets, observed, once)
        self.counts = [0] * len(self.counts)
        self.n = 0
        if self.changed is None and self.shares and self.wealth >= 1.0 / delta:
            self.changed = when


def _find_shares(policy: AbstentionPolicy) -> list[Share]:
    """Return the shares that a policy stores, with what each was at most."""
    coverage = policy.coverage
    n = policy.n
    if coverage is None or not n or not _is_of_this_classifier(policy):
        return []
    stored = [("answered", 0.0, coverage), ("deferred", 0.0, 1 - coverage)]
    for name, value in policy.confidence_quantiles.items():
        level = float(name)
        if _OUTER <= level <= 1.0 - _OUTER:
            stored.append(("below", value, level))
            stored.append(("above", value, 1.0 - level))
    shares = []
    for what, value, share in stored:
        _, most = clopper_pearson_interval(round(share * n), n, _LEVEL)
        if most < 1.0:
            shares.append(Share(what, value, float(most)))
    return shares


def _is_of_this_classifier(policy: AbstentionPolicy) -> bool:
    """Tell whether the shares of a policy are those of the classifier that runs.

    Models of folds, and one that was fitted again, are as sure as no other. Only a certificate says
    that the classifier stayed; without one nothing is known, nor with one of other rows.
    """
    certificates = policy.parts.listed
    if policy.parts.by is None:
        digest = policy.fingerprints.get("data")
        if any(each.fingerprints.get("data") != digest for each in certificates):
            return False
    return bool(certificates) and all(UNCHANGED in each.assumptions for each in certificates)
