"""One threshold per subgroup, which rows belong to which subgroup, and the shortlist of a policy.

The shortlist holds the classes that a policy names where it defers a case.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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
    def read(cls, given: Any) -> Subgroups:
        """Return subgroups that abstain on others, unless they say otherwise."""
        return given if isinstance(given, Subgroups) else cls(given)

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
        checked = {group: check_threshold(t) for group, t in self.thresholds.items()}
        object.__setattr__(self, "thresholds", checked)
        for group, certificate in self.certificates.items():
            threshold = checked.get(group, np.inf)  # rows of an unknown subgroup are not accepted
            what = f"The subgroup {group!r} has the threshold {threshold!r}"
            check_certified(certificate, threshold, what, f"certificates={{{group!r}: None}}")

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
        said = [f"{self.by} {group!r}\n{text}" for group, text in self.texts.items()]
        together = [self.together] if self.together else []
        return "\n\n".join([self.tabulate().to_string(index=False), *together, *said])

    def _repr_html_(self) -> str:
        table = "" if self.by is None else self.tabulate().to_html(border=0, index=False)
        return self.show() + table

    @property
    def are_given(self) -> bool:
        """Whether rows come with their subgroups, which are neither "all" nor the answers."""
        return self.by is not None and not self.by_answer

    def name(self, group: Any) -> str:
        """Return what the cases of a subgroup are called, "" for all."""
        return "" if self.by is None else f"of {self.by} {group!r}"

    @property
    def made(self) -> dict[Any, Certificate]:
        """The certificates that there are."""
        return {group: one for group, one in self.certificates.items() if one is not None}

    @property
    def listed(self) -> list[Certificate]:
        """The certificates of all guarantees, of which one threshold may have several."""
        return [one for made in self.made.values() for one in (made, *made.also)]

    @property
    def in_brief(self) -> str:
        """The first thresholds, and for how many of them a guarantee is certified."""
        shown = [f"{group!r} {at:.6g}" for group, at in islice(self.thresholds.items(), _FEW)]
        n, sure = len(self.thresholds), sum(one.is_certified for one in self.made.values())
        more = [f"{n - _FEW} more"] if n > _FEW else []
        word = {n: "certified", 0: "not certified"}.get(sure, f"certified for {sure} of {n}")
        word = word if self.made else "no certificate"
        if self.by is None:
            return f"{self.thresholds[ALL]:.6g}, {word}"
        return f"by {self.by}: {', '.join(shown + more)}; {word}"

    @property
    def texts(self) -> dict[Any, str]:
        """One text for all subgroups whose certificates differ in their numbers only.

        Its key is the first of them; the text ends with the others.
        """
        alike: dict[Any, list[Any]] = {}
        for group, one in self.made.items():
            same = (one.objective, one.loss, one.guarantee, one.caveats, one.notice, one.method,
                    one.delta, one.max_analyses, one.assumptions, one.n_accepted > 0)  # fmt: skip
            alike.setdefault(same, []).append(group)
        texts = {}
        for first, *others in alike.values():
            names = ", ".join(map(str, others))
            more = (
                f"\nThe same text, with the numbers in the table, holds for: {names}."
                if others
                else ""
            )
            texts[first] = str(self.made[first]) + wrap(more)
        return texts

    @property
    def together(self) -> str:
        """How sure all guarantees are at once, "" where fewer than two are certified."""
        made = self.made.values()
        n = sum(one.is_certified for one in made)
        delta = math.fsum(one.delta for one in made if one.can_fail)
        if n < 2 or not 0.0 < delta < 1.0:
            return ""
        which = f"all {n}" if n == len(made) else f"the {n} certified"
        return wrap(
            f"Together {which} guarantees hold with {percent_kept(delta)} % confidence; each has "
            "its share of delta."
        )

    def tabulate(self) -> pd.DataFrame:
        """Return as text, for each subgroup, its rows, its threshold and what is guaranteed."""
        rows = []
        for group, at in self.thresholds.items():
            one = self.certificates.get(group)
            facts = ("", "") if one is None else (f"{one.n:,}", percent(one.coverage))
            threshold = f"{at:.4g}" if math.isfinite(at) else "none"
            rows.append((str(group), *facts, threshold, one.bound if one else "", _verdict(one)))
        names = [self.by, "n", "coverage", "threshold", "target", "verdict"]
        return pd.DataFrame(rows, columns=names)

    def show(self) -> str:
        """Return what the certificates say as HTML, "" where there are none."""
        return (f"<p>{escape(self.together)}</p>" if self.together else "") + "".join(
            (f"<p>{escape(f'{self.by} {group!r}')}</p>" if self.by else "")
            + self.made[group]._repr_html_(text)
            for group, text in self.texts.items()
        )

    def look_up(self, subgroups: Any, n: int) -> arrays.FloatArray:
        """Return the threshold of each row; inf, without a warning, for unknown subgroups."""
        codes, keys = self.encode(subgroups, n)
        known = [self.thresholds.get(key, np.inf) for key in keys]
        return np.array([*known, np.inf])[codes]  # the last one is for code -1

    def have(self, subgroups: Any, n: int) -> arrays.BoolArray:
        """Tell which rows belong to a subgroup that has a threshold."""
        codes, keys = self.encode(subgroups, n)
        return np.array([*(key in self.thresholds for key in keys), False])[codes]

    def members(self, answers: arrays.LabelArray, subgroups: Any) -> dict[Any, arrays.IntArray]:
        """Return the rows of each subgroup that occurs."""
        codes, keys = self.encode(answers if self.by_answer else subgroups, len(answers))
        return dict(zip(keys, arrays.rows_of_codes(codes, len(keys)), strict=True))

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
        return {
            "by": self.by,
            "by_answer": self.by_answer,
            "columns": list(self.columns),
            "unseen": self.unseen,
            "members": [
                {
                    "group": list(group) if isinstance(group, tuple) else group,
                    "threshold": threshold_to_json(threshold),
                    "certificate": certificates.get(group),
                }
                for group, threshold in self.thresholds.items()
            ],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> GroupThresholds:
        """Rebuild the thresholds from :meth:`to_dict`."""
        thresholds, certificates = {}, {}
        for member in stored["members"]:
            group = member["group"]
            group = tuple(group) if isinstance(group, list) else group
            thresholds[group] = threshold_from_json(member["threshold"])
            own = member["certificate"]
            certificates[group] = None if own is None else Certificate.from_dict(own)
        if len(thresholds) < len(stored["members"]):
            raise ValueError("groups: a subgroup is listed more than once.")
        columns = tuple(check_texts("columns", stored["columns"]))
        unseen, by_answer = stored["unseen"], stored["by_answer"]
        return cls(stored["by"], thresholds, certificates, unseen, by_answer, columns)


def _verdict(certificate: Certificate | None) -> str:
    """Return what a certificate says in a word or two."""
    if certificate is None:
        return "guarantees nothing"
    if not certificate.n_accepted:
        return "defers all"
    if certificate.is_certified:
        return "certified"
    return "measured" if certificate.exact and certificate.guarantee == "measured" else "estimate"


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
    if n == 1 and (only := _only_key(subgroups)) is not None:
        return np.zeros(1, dtype=np.int64), [only]
    frame = check_subgroups(subgroups, n, other="the table of predictions")
    if n == 0:  # pandas 2 cannot make a MultiIndex without rows
        return np.empty(0, dtype=np.int64), []
    missing = frame.isna().any(axis=1).to_numpy()
    try:
        several = frame.shape[1] > 1
        column = pd.MultiIndex.from_frame(frame) if several else frame.iloc[:, 0]
        codes, uniques = pd.factorize(column)
    except TypeError:  # something that cannot be the key of a dict
        for key in frame.itertuples(index=False, name=None):
            check_subgroup(key)
        raise
    present = np.flatnonzero(np.bincount(codes[~missing])).tolist()
    values = list(uniques)
    keys = {code: check_subgroup(values[code]) for code in present}
    ordered = sorted(present, key=lambda code: _sort_key(keys[code]))
    place = np.full(len(uniques) + 1, -1)
    place[ordered] = np.arange(len(ordered))
    return np.where(missing, -1, place[codes]), [keys[code] for code in ordered]


def _only_key(subgroups: Any) -> Any:
    """Return the subgroup of a single row, None unless it is made of text and whole numbers.

    A service asks about one row at a time, for which a data frame takes a millisecond.
    """
    columns = list(subgroups.values()) if type(subgroups) is dict else [subgroups]
    if not all(type(one) in (list, np.ndarray) and np.shape(one) == (1,) for one in columns):
        return None
    key = tuple(x.item() if isinstance(x, np.generic) else x for [x] in columns)
    plain = bool(key) and all(type(part) in (str, int, bool) for part in key)
    return (key if len(key) > 1 else key[0]) if plain else None


def names_of_columns(subgroups: Any) -> tuple[str, ...]:
    """Return the names of several columns of subgroups, () for one."""
    names = arrays.column_names(subgroups) or []
    return tuple(str(name) for name in names) if len(names) > 1 else ()


def name_of_subgroups(subgroups: Any) -> str:
    """Return a name for the subgroups, for messages."""
    columns = getattr(subgroups, "columns", None)
    names = list(columns) if columns is not None else [getattr(subgroups, "name", None)]
    named = [str(name) for name in names if name is not None]
    return " and ".join(named) or "subgroup"


def _sort_key(key: Any) -> list[tuple[str, Any]]:
    """Return a sort key for subgroups of mixed types."""
    return [(type(part).__name__, part) for part in (key if isinstance(key, tuple) else (key,))]


def _check_group_names(by: Any, groups: list[Any], by_answer: Any, columns: Any) -> None:
    """Refuse subgroups without a name, or with different numbers of attributes."""
    for group in groups:
        check_subgroup(group)
    sizes = {len(group) if isinstance(group, tuple) else 0 for group in groups}
    fit = len(sizes) == 1 and () not in groups and (not columns or sizes == {len(columns)})
    plain = isinstance(by, str) and isinstance(by_answer, bool) and isinstance(columns, tuple)
    if not fit or not plain or not all(isinstance(column, str) for column in columns):
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
        raise ValueError(
            f"subgroups must be a DataFrame with the columns {list(columns)}, got "
            f"{type(subgroups).__name__}" + ("." if names is None else f" with {names}.")
        )
    wanted = [by_name[column] for column in columns]
    return {name: subgroups[name] for name in wanted} if is_dict else subgroups[wanted]


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


def check_enough_classes(n_classes: int) -> None:
    """Refuse a shortlist of one or two classes, which tells nobody anything."""
    if n_classes < 3:
        raise ValueError(
            f"shortlist goes with three or more classes, and there are {n_classes}: of two "
            "classes a list names one, which is the suggestion, or both, which says nothing. Leave "
            "shortlist out."
        )
