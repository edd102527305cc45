"""One threshold per subgroup, which rows belong to which subgroup, and the shortlist of a policy.

The shortlist holds the classes that a policy names where it defers a case.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from skselect._lib import arrays
from skselect._lib.checks import shown
from skselect._lib.checks.options import (
    check_choice,
    check_count,
    check_keys,
    check_number,
    check_threshold,
)
from skselect._lib.checks.rows import check_subgroups
from skselect._lib.decide import check_subgroup
from skselect._lib.notebook import NotebookText, percent, rounded, wrap
from skselect.policy.certificate import (
    Certificate,
    check_certified,
    check_texts,
    percent_kept,
    threshold_from_json,
    threshold_to_json,
)

#: The subgroup of all rows, where one threshold serves them.
ALL = "all"
# What users pass to make the answers the subgroups.
_BY_ANSWER = "predicted_class"
# A repr names so many thresholds at most.
_FEW = 5
UNSEEN = ("abstain", "raise")


@dataclass(frozen=True, eq=False)
class Subgroups:
    """Which subgroups have a threshold of their own, and what becomes of rows of no subgroup.

    Parameters
    ----------
    by : column name, list of them, callable, array-like, DataFrame or "predicted_class"
        As `group_by` of :class:`~skselect.ThresholdTuner`, or `subgroups` of
        :func:`~skselect.select_threshold`.
    unseen : {"abstain", "raise"}, default="abstain"
        What the policy does with rows of other subgroups, or of none: defer them with a warning,
        or raise an error.

    Examples
    --------
    >>> from skselect import Risk, ThresholdTuner
    >>> from skselect.policy import Subgroups
    >>> from sklearn.naive_bayes import GaussianNB
    >>> ThresholdTuner(GaussianNB(), Risk(.05), group_by=Subgroups("site", unseen="raise"))
    ThresholdTuner(estimator=GaussianNB(),
                   group_by=Subgroups(by='site', unseen='raise'),
                   objective=Risk(0.05))
    """

    by: Any
    unseen: str = "abstain"

    def __post_init__(self) -> None:
        check_choice("unseen", self.unseen, UNSEEN)

    @classmethod
    def read(cls, group_by: Any) -> Subgroups:
        """Return subgroups that abstain on others, unless they say otherwise."""
        if isinstance(group_by, Subgroups):
            return group_by
        return cls(group_by)

    @property
    def by_answer(self) -> bool:
        """Whether the answers are the subgroups."""
        return isinstance(self.by, str) and self.by == _BY_ANSWER


@dataclass(frozen=True, eq=False)
class GroupThresholds:
    """The thresholds of the subgroups, and what is guaranteed for each.

    One threshold for all rows is that of the subgroup "all".

    Parameters
    ----------
    by : str or None
        What the subgroups are called; None where "all" is the only one.
    thresholds : dict
        The threshold of each subgroup; a key is a string, number or boolean, or a tuple of them.
    certificates : dict, default={}
        The certificate of each subgroup; None where nothing is guaranteed.
    unseen : {"abstain", "raise"}, default="abstain"
        What to do with rows whose subgroup is missing or has no threshold.
    by_answer : bool, default=False
        Whether the answers are the subgroups.
    columns : tuple of str, default=()
        The attributes that make a subgroup, where there are several; the columns of a
        DataFrame are matched by name.
    """

    by: str | None
    thresholds: Mapping[Any, float]
    certificates: Mapping[Any, Certificate | None] = field(default_factory=dict)
    unseen: str = "abstain"
    by_answer: bool = False
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice("unseen", self.unseen, UNSEEN)
        _check_group_names(self.by, list(self.thresholds), self.by_answer, self.columns)
        thresholds = {group: check_threshold(t) for group, t in self.thresholds.items()}
        object.__setattr__(self, "thresholds", thresholds)
        for group, certificate in self.certificates.items():
            threshold = thresholds.get(group, np.inf)  # rows of an unknown one are not accepted
            subject = f"The subgroup {group!r} has the threshold {threshold!r}"
            remedy = f"certificates={{{group!r}: None}}"
            check_certified(certificate, threshold, subject, remedy)

    @classmethod
    def of_all(cls, threshold: float, certificate: Certificate | None = None) -> GroupThresholds:
        """Return one threshold for all rows, which is checked."""
        return arrays.trusted(
            cls, by=None, thresholds={ALL: threshold}, certificates={ALL: certificate}
        )

    def __repr__(self) -> str:
        return f"<GroupThresholds {self.in_brief}>"

    def __str__(self) -> str:
        """Return a table of the subgroups, and what their certificates say, together and each."""
        if self.by is None:
            return "".join(self.texts.values())
        paragraphs = [self.tabulate().to_string(index=False)]
        if self.together:
            paragraphs.append(self.together)
        paragraphs += [f"{self.by} {group!r}\n{text}" for group, text in self.texts.items()]
        return "\n\n".join(paragraphs)

    def _repr_html_(self) -> str:
        page = self.show()
        if self.by is None:
            return page
        return page + self.tabulate().to_html(border=0, index=False)

    @property
    def are_given(self) -> bool:
        """Whether rows come with their subgroups, which are neither "all" nor the answers."""
        return self.by is not None and not self.by_answer

    def name(self, group: Any) -> str:
        """Return what the cases of a subgroup are called, "" for all."""
        if self.by is None:
            return ""
        return f"of {self.by} {group!r}"

    @property
    def made(self) -> dict[Any, Certificate]:
        """The certificates that there are."""
        return {
            group: certificate
            for group, certificate in self.certificates.items()
            if certificate is not None
        }

    @property
    def listed(self) -> list[Certificate]:
        """The certificates of all guarantees, of which one threshold may have several."""
        certificates = []
        for certificate in self.made.values():
            certificates += [certificate, *certificate.also]
        return certificates

    @property
    def in_brief(self) -> str:
        """The first thresholds, and for how many of them a guarantee is certified."""
        verdict = self._count_certified()
        if self.by is None:
            return f"{self.thresholds[ALL]:.6g}, {verdict}"
        n = len(self.thresholds)
        few = islice(self.thresholds.items(), _FEW)
        shown = [f"{group!r} {threshold:.6g}" for group, threshold in few]
        if n > _FEW:
            shown.append(f"{n - _FEW} more")
        listed = ", ".join(shown)
        return f"by {self.by}: {listed}; {verdict}"

    def _count_certified(self) -> str:
        """Return for how many of the thresholds a guarantee is certified."""
        certificates = self.made.values()
        if not certificates:
            return "no certificate"
        n = len(self.thresholds)
        n_certified = sum(certificate.is_certified for certificate in certificates)
        if n_certified == 0:
            return "not certified"
        if n_certified == n:
            return "certified"
        return f"certified for {n_certified} of {n}"

    @property
    def texts(self) -> dict[Any, str]:
        """One text for all subgroups whose certificates differ in their numbers only.

        Its key is the first of them; the text ends with the others.
        """
        texts = {}
        for group, *others in self._find_alike():
            text = str(self.made[group])
            if others:
                names = ", ".join(map(str, others))
                text += wrap(f"\nThe same text, with the numbers in the table, holds for: {names}.")
            texts[group] = text
        return texts

    def _find_alike(self) -> Iterable[list[Any]]:
        """Return lists of subgroups whose certificates differ in their numbers only."""
        alike: dict[Any, list[Any]] = {}
        for group, certificate in self.made.items():
            words = (
                certificate.objective,
                certificate.loss,
                certificate.guarantee,
                certificate.caveats,
                certificate.notice,
                certificate.method,
                certificate.delta,
                certificate.max_analyses,
                certificate.assumptions,
                certificate.n_accepted > 0,
            )
            alike.setdefault(words, []).append(group)
        return alike.values()

    @property
    def together(self) -> str:
        """How sure all guarantees are at once, "" where fewer than two are certified."""
        certificates = self.made.values()
        n = sum(certificate.is_certified for certificate in certificates)
        delta = math.fsum(one.delta for one in certificates if one.can_fail)
        if n < 2 or not 0.0 < delta < 1.0:
            return ""
        which = f"the {n} certified"
        if n == len(certificates):
            which = f"all {n}"
        return wrap(
            f"Together {which} guarantees hold with {percent_kept(delta)} % confidence; each has "
            "its share of delta."
        )

    def tabulate(self) -> pd.DataFrame:
        """Return as text, for each subgroup, its rows, its threshold and what is guaranteed."""
        rows = []
        for group, threshold in self.thresholds.items():
            certificate = self.certificates.get(group)
            n = coverage = target = ""
            if certificate is not None:
                n = f"{certificate.n:,}"
                coverage = percent(certificate.coverage)
                target = certificate.bound
            shown_threshold = "none"
            if math.isfinite(threshold):
                shown_threshold = f"{threshold:.4g}"
            verdict = _verdict(certificate)
            rows.append((str(group), n, coverage, shown_threshold, target, verdict))
        names = [self.by, "n", "coverage", "threshold", "target", "verdict"]
        return pd.DataFrame(rows, columns=names)

    def show(self) -> str:
        """Return what the certificates say as HTML, "" where there are none."""
        parts = []
        if self.together:
            parts.append(f"<p>{escape(self.together)}</p>")
        for group, text in self.texts.items():
            if self.by:
                name = escape(f"{self.by} {group!r}")
                parts.append(f"<p>{name}</p>")
            parts.append(self.made[group]._repr_html_(text))
        return "".join(parts)

    def look_up(self, subgroups: Any, n: int) -> arrays.FloatArray:
        """Return the threshold of each row; inf, without a warning, for unknown subgroups."""
        codes, keys = self.encode(subgroups, n)
        thresholds = [self.thresholds.get(key, np.inf) for key in keys]
        return arrays.look_up_codes(thresholds, codes, missing=np.inf)

    def have(self, subgroups: Any, n: int) -> arrays.BoolArray:
        """Tell which rows belong to a subgroup that has a threshold."""
        codes, keys = self.encode(subgroups, n)
        has_threshold = [key in self.thresholds for key in keys]
        return arrays.look_up_codes(has_threshold, codes, missing=False)

    def members(self, answers: arrays.LabelArray, subgroups: Any) -> dict[Any, arrays.IntArray]:
        """Return the rows of each subgroup that occurs."""
        if self.by_answer:
            subgroups = answers
        codes, keys = self.encode(subgroups, len(answers))
        members = arrays.rows_of_codes(codes, len(keys))
        return dict(zip(keys, members, strict=True))

    def encode(self, subgroups: Any, n: int) -> tuple[arrays.IntArray, list[Any]]:
        """Return the subgroup of each row as a code, and the subgroups."""
        if self.by is None:
            return np.zeros(n, dtype=np.int64), [ALL]
        if subgroups is None:
            raise ValueError(
                f"subgroups is missing: this policy has one threshold per {self.by}; pass the "
                f"{self.by} of each row, one of {list(self.thresholds)[:10]}."
            )
        if self.columns:
            subgroups = _order_columns(subgroups, self.columns)
        return subgroup_codes(subgroups, n)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        certificates = {group: one.to_dict() for group, one in self.made.items()}
        members = [
            {
                "group": list(group) if isinstance(group, tuple) else group,
                "threshold": threshold_to_json(threshold),
                "certificate": certificates.get(group),
            }
            for group, threshold in self.thresholds.items()
        ]
        return {
            "by": self.by,
            "by_answer": self.by_answer,
            "columns": list(self.columns),
            "unseen": self.unseen,
            "members": members,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> GroupThresholds:
        """Rebuild the thresholds from :meth:`to_dict`."""
        check_keys("groups", stored, ["by", "by_answer", "columns", "unseen", "members"])
        thresholds: dict[Any, float] = {}
        certificates: dict[Any, Certificate | None] = {}
        for member in stored["members"]:
            check_keys("groups: a member", member, ["group", "threshold", "certificate"])
            group = member["group"]
            if isinstance(group, list):
                group = tuple(group)
            thresholds[group] = threshold_from_json(member["threshold"])
            certificates[group] = None
            if member["certificate"] is not None:
                certificates[group] = Certificate.from_dict(member["certificate"])
        if len(thresholds) < len(stored["members"]):
            raise ValueError("groups: a subgroup is listed more than once.")
        columns = check_texts("columns", stored["columns"])
        return cls(
            by=stored["by"],
            thresholds=thresholds,
            certificates=certificates,
            unseen=stored["unseen"],
            by_answer=stored["by_answer"],
            columns=tuple(columns),
        )


def _verdict(certificate: Certificate | None) -> str:
    """Return what a certificate says in a word or two."""
    if certificate is None:
        return "guarantees nothing"
    if not certificate.n_accepted:
        return "defers all"
    if certificate.is_certified:
        return "certified"
    if certificate.exact and certificate.guarantee == "measured":
        return "measured"
    return "estimate"


def subgroup_codes(subgroups: Any, n: int) -> tuple[arrays.IntArray, list[Any]]:
    """Return the subgroup of each row as a code, -1 where it is missing, and the subgroups.

    Parameters
    ----------
    subgroups : array-like of shape (n,), or DataFrame with one column per attribute
    n : int

    Returns
    -------
    codes : ndarray of shape (n,)
    keys : list
        Plain values, tuples where there are several attributes, in a fixed order.
    """
    if n == 1:
        key = _only_key(subgroups)
        if key is not None:
            return np.zeros(1, dtype=np.int64), [key]
    frame = check_subgroups(subgroups, n, other="the table of predictions")
    if n == 0:  # pandas 2 cannot make a MultiIndex without rows
        return np.empty(0, dtype=np.int64), []
    codes, values = _factorize(frame)
    missing = frame.isna().any(axis=1).to_numpy()
    present = np.flatnonzero(np.bincount(codes[~missing])).tolist()
    keys = {code: check_subgroup(values[code]) for code in present}
    ordered = sorted(present, key=lambda code: _sort_key(keys[code]))
    place = np.full(len(values) + 1, -1)
    place[ordered] = np.arange(len(ordered))
    places = np.where(missing, -1, place[codes])
    return places, [keys[code] for code in ordered]


def _factorize(frame: pd.DataFrame) -> tuple[arrays.IntArray, list[Any]]:
    """Return a code for each row, and the distinct rows; refuse what cannot name a subgroup."""
    try:
        if frame.shape[1] > 1:
            codes, uniques = pd.factorize(pd.MultiIndex.from_frame(frame))
        else:
            codes, uniques = pd.factorize(frame.iloc[:, 0])
    except TypeError:  # something that cannot be the key of a dict
        for key in frame.itertuples(index=False, name=None):
            check_subgroup(key)
        raise
    return codes, list(uniques)


def _only_key(subgroups: Any) -> Any:
    """Return the subgroup of a single row, None unless it is made of text and whole numbers.

    A service asks about one row at a time, for which a data frame takes a millisecond.
    """
    columns = [subgroups]
    if type(subgroups) is dict:
        columns = list(subgroups.values())
    parts = []
    for column in columns:
        if type(column) not in (list, np.ndarray) or np.shape(column) != (1,):
            return None
        (part,) = column
        if isinstance(part, np.generic):
            part = part.item()
        if type(part) not in (str, int, bool):
            return None
        parts.append(part)
    if len(parts) > 1:
        return tuple(parts)
    return parts[0] if parts else None


def names_of_columns(subgroups: Any) -> tuple[str, ...]:
    """Return the names of several columns of subgroups, () for one."""
    names = arrays.column_names(subgroups) or []
    if len(names) < 2:
        return ()
    return tuple(str(name) for name in names)


def name_of_subgroups(subgroups: Any) -> str:
    """Return a name for the subgroups, for messages."""
    columns = getattr(subgroups, "columns", None)
    if columns is None:
        columns = [getattr(subgroups, "name", None)]
    names = [str(name) for name in columns if name is not None]
    return " and ".join(names) or "subgroup"


def _sort_key(key: Any) -> list[tuple[str, Any]]:
    """Return a sort key for subgroups of mixed types."""
    parts = key if isinstance(key, tuple) else (key,)
    return [(type(part).__name__, part) for part in parts]


def _check_group_names(by: Any, groups: list[Any], by_answer: Any, columns: Any) -> None:
    """Refuse subgroups without a name, or with different numbers of attributes."""
    for group in groups:
        check_subgroup(group)
    sizes = {len(group) if isinstance(group, tuple) else 0 for group in groups}
    are_alike = len(sizes) == 1 and () not in groups
    have_columns = not columns or sizes == {len(columns)}
    is_plain = isinstance(by, str) and isinstance(by_answer, bool) and isinstance(columns, tuple)
    if (
        not are_alike
        or not have_columns
        or not is_plain
        or not all(isinstance(column, str) for column in columns)
    ):
        raise ValueError(
            "thresholds must name one subgroup or more, each with as many attributes as there are "
            f"columns, by must be their name, columns a tuple of names and by_answer true or "
            f"false; got {groups[:5]}, {shown(by)}, {shown(columns)} and {shown(by_answer)}."
        )


def _order_columns(subgroups: Any, columns: tuple[str, ...]) -> Any:
    """Return the attributes in the order of `columns`."""
    is_dict = isinstance(subgroups, Mapping)
    names = list(subgroups) if is_dict else arrays.column_names(subgroups)
    by_name = {str(name): name for name in names or []}
    if set(by_name) != set(columns):
        listed = "" if names is None else f" with {names}"
        raise ValueError(
            f"subgroups must be a DataFrame with the columns {list(columns)}, got "
            f"{type(subgroups).__name__}{listed}."
        )
    wanted = [by_name[column] for column in columns]
    if is_dict:
        return {name: subgroups[name] for name in wanted}
    return subgroups[wanted]


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

    def check_fits(self, threshold: float, n_classes: int) -> None:
        """Refuse another threshold, or too few classes."""
        check_enough_classes(n_classes)
        if self.threshold != threshold:
            raise ValueError(
                f"threshold={threshold!r}, but the shortlist is about the cases that the threshold "
                f"{self.threshold!r} defers. Pass shortlist=None as well."
            )

    def __str__(self) -> str:
        share = rounded(100.0 * self.level, 6, up=False)
        promise = f"{share} of 100 deferred cases the right answer is on the list"
        if self.is_exact:
            return (
                f"Shortlist: in {promise}, on average over such calibrations. Exact, from {self.n} "
                "deferred rows that did not choose the threshold."
            )
        reasons = "; ".join(self.caveats)
        return (
            f"Shortlist, an estimate from {self.n} deferred rows: in about {promise}. Not exact: "
            f"{reasons}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        stored = asdict(self)
        stored["threshold"] = threshold_to_json(self.threshold)
        stored["caveats"] = list(self.caveats)
        return stored

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> PolicyShortlist:
        """Rebuild a shortlist from :meth:`to_dict`."""
        values = dict(stored)
        values["threshold"] = threshold_from_json(stored["threshold"])
        values["caveats"] = tuple(check_texts("shortlist: caveats", stored["caveats"]))
        return cls(**values)


def check_enough_classes(n_classes: int) -> None:
    """Refuse a shortlist of one or two classes, which tells nobody anything."""
    if n_classes < 3:
        raise ValueError(
            f"shortlist goes with three or more classes, and there are {n_classes}: of two "
            "classes a list names one, which is the suggestion, or both, which says nothing. Leave "
            "shortlist out."
        )
