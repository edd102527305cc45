"""The shortlist of a policy: which classes it names where it defers a case."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from skselect._lib.checks.options import check_count, check_number
from skselect._lib.notebook import NotebookText, rounded
from skselect.policy.certificate import check_texts, threshold_from_json, threshold_to_json


@dataclass(frozen=True)
class PolicyShortlist(NotebookText):
    """Which classes a policy names where it defers a case, and how often the truth is one.

    Print it: the text says whether the level is exact or an estimate.

    Parameters
    ----------
    level : float in (0, 1)
        The share of deferred cases whose true class is on the list, on average over such
        calibrations.
    least_proba : float in [0, 1]
        The list holds each class with at least this (calibrated) probability.
    threshold : float
        Of the policy: other cases are deferred at another one. inf with subgroups.
    n : int
        Deferred rows that set the least probability.
    caveats : tuple of str, default=()
        Why the level is an estimate; empty where it is exact.
    """

    level: float
    least_proba: float
    threshold: float
    n: int
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_number("shortlist: level", self.level, 0.0, 1.0, closed="neither")
        check_number("shortlist: least_proba", self.least_proba, 0.0, 1.0)
        check_count("shortlist: n", self.n)
        check_texts("shortlist: caveats", list(self.caveats))

    @property
    def is_exact(self) -> bool:
        """Whether the level holds in finite samples, under the assumptions of a certificate."""
        return not self.caveats

    def __str__(self) -> str:
        share = f"{rounded(100.0 * self.level, 6, up=False)} of 100 deferred cases"
        says = f"{share} the right answer is on the list"
        if self.is_exact:
            return (
                f"Shortlist: in {says}, on average over such calibrations. Exact, from {self.n} "
                "deferred rows that did not choose the threshold."
            )
        return (
            f"Shortlist, an estimate from {self.n} deferred rows: in about {says}. Not exact: "
            f"{'; '.join(self.caveats)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        plain = {"threshold": threshold_to_json(self.threshold), "caveats": list(self.caveats)}
        return asdict(self) | plain

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> PolicyShortlist:
        """Rebuild a shortlist from :meth:`to_dict`."""
        plain = {"threshold": threshold_from_json(stored["threshold"])}
        caveats = tuple(check_texts("shortlist: caveats", stored["caveats"]))
        return cls(**(stored | plain | {"caveats": caveats}))


def check_shortlisted(shortlist: PolicyShortlist | None, threshold: float, n_classes: int) -> None:
    """Refuse a shortlist that is about another threshold, or about too few classes."""
    if shortlist is None:
        return
    check_enough_classes(n_classes)
    if shortlist.threshold != threshold:
        raise ValueError(
            f"threshold={threshold!r}, but the shortlist is about the cases that the threshold "
            f"{shortlist.threshold!r} defers. Pass shortlist=None as well."
        )


def check_enough_classes(n_classes: int) -> None:
    """Refuse a shortlist of one or two classes, which tells nobody anything."""
    if n_classes < 3:
        raise ValueError(
            f"shortlist goes with three or more classes, and there are {n_classes}: of two "
            "classes a list names one, which is the suggestion, or both, which says nothing. Leave "
            "shortlist out."
        )
