"""Answered cases that wait for their outcome; their names, and which were drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skselect._lib.checks import as_array, shown, warn_user
from skselect._lib.typing import BoolArray, FloatArray, IntArray, LabelArray

# Fewer labels than this may all be for cases that were handed over.
_SEVERAL = 30


@dataclass(frozen=True)
class Cases:
    """Answered cases that have not entered, in the order in which they were decided.

    Parameters
    ----------
    id : ndarray of str, shape (n,)
    number : ndarray of shape (n,)
        Their places among all decided cases.
    when : ndarray of shape (n,)
        Microseconds since 1970, or the user's numbers.
    answer : ndarray of shape (n,)
        Codes of classes.
    promise : ndarray of shape (n,)
        Numbers of the promises they belong to.
    weight, loss : ndarray of shape (n,)
        In [0, 1]; a loss is nan as long as there is no label.
    """

    id: LabelArray
    number: IntArray
    when: FloatArray
    answer: IntArray
    promise: IntArray
    weight: FloatArray
    loss: FloatArray

    @classmethod
    def none(cls) -> Cases:
        """Return no cases."""
        return cls._of([], [], [], [], [], [], [])

    @classmethod
    def _of(cls, *columns: Any) -> Cases:
        kinds = (object, np.int64, np.float64, np.int64, np.int64, np.float64, np.float64)
        return cls(*(np.array(c, dtype=k) for c, k in zip(columns, kinds, strict=True)))

    def take(self, rows: BoolArray) -> Cases:
        """Return some of the cases."""
        return Cases(*(column[rows] for column in vars(self).values()))

    @classmethod
    def join(cls, parts: Sequence[Cases]) -> Cases:
        """Return the cases of several parts, oldest first."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        unknown = np.isnan(self.loss)
        columns = {**vars(self), "loss": np.where(unknown, 0.0, self.loss)}
        plain = {name: _plain(column) for name, column in columns.items()}
        pairs = zip(plain["loss"], unknown.tolist(), strict=True)
        return plain | {"loss": [None if is_unknown else loss for loss, is_unknown in pairs]}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Cases:
        """Rebuild them from :meth:`to_dict`."""
        columns = dict(stored)
        columns["loss"] = [math.nan if loss is None else loss for loss in stored["loss"]]
        if len({len(column) for column in columns.values()}) > 1:
            raise ValueError("the columns of waiting cases have different lengths")
        return cls._of(*(columns[name] for name in cls.__dataclass_fields__))


def _plain(values: NDArray[Any]) -> list[Any]:
    """Return a list, of whole numbers as integers: JSON reads them several times faster."""
    if values.dtype.kind == "f" and np.all((values == np.floor(values)) & (abs(values) < 2**53)):
        values = values.astype(np.int64)
    return values.tolist()


class Waiting:
    """The cases that wait, which are found by their names.

    Parameters
    ----------
    cases : Cases

    Attributes
    ----------
    number_of : dict of str to int
        The number of each case by its name.
    """

    def __init__(self, cases: Cases) -> None:
        self._parts = [cases]
        self.number_of = dict(zip(cases.id.tolist(), cases.number.tolist(), strict=True))

    @property
    def cases(self) -> Cases:
        """All of them, oldest first; parts are joined only when somebody looks."""
        if len(self._parts) > 1:
            self._parts = [Cases.join(self._parts)]
        return self._parts[0]

    def add(self, later: Cases) -> None:
        """Add cases that were decided later."""
        self._parts.append(later)
        self.number_of |= zip(later.id.tolist(), later.number.tolist(), strict=True)

    def find(self, names: LabelArray) -> IntArray:
        """Return the places of cases, -1 where none that waits has this name."""
        number = np.array([self.number_of.get(name, -1) for name in names], dtype=np.int64)
        return np.where(number < 0, -1, np.searchsorted(self.cases.number, number))

    def set_losses(self, loss: FloatArray) -> None:
        """Replace the losses of all cases."""
        self._parts = [replace(self.cases, loss=loss)]

    def drop(self, rows: BoolArray) -> None:
        """Drop some cases."""
        for name in self.cases.id[rows].tolist():
            del self.number_of[name]
        self._parts = [self.cases.take(~rows)]


def check_names(ids: Any) -> LabelArray:
    """Return the names of cases as text."""
    if isinstance(ids, range):
        ids = list(ids)
    values = as_array(ids, "ids")
    if values.ndim != 1:
        raise ValueError(f"ids must hold one name per case, got {shown(ids)}.")
    if np.any(pd.isna(values)):
        raise ValueError("ids has missing values; each case needs a name.")
    if pd.api.types.infer_dtype(values, skipna=False) == "string":
        return values.astype(object)
    names = np.empty(len(values), dtype=object)
    # A column of integers in which one was missing holds 7.0 for 7.
    names[:] = [
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        for value in values.tolist()
    ]
    return names


def row_hashes(names: LabelArray, *numbers: FloatArray) -> NDArray[np.uint64]:
    """Return a hash of each row; it is saved, and does not depend on the machine."""
    hashes = pd.util.hash_array(names, categorize=False)
    for column in numbers:
        hashes = join_hashes(hashes, column)
    return hashes


def join_hashes(hashes: NDArray[np.uint64], column: FloatArray) -> NDArray[np.uint64]:
    """Return hashes of rows and one more number; no two rows can swap numbers unseen."""
    return pd.util.hash_array(hashes * np.uint64(31) + pd.util.hash_array(column + 0.0))


def refuse_twice(names: LabelArray, known: Mapping[str, Any]) -> None:
    """Refuse names that would stand for two cases."""
    seen: set[str] = set()
    twice = []
    for name in names.tolist():
        if name in seen or name in known:
            twice.append(name)
        seen.add(name)
    if twice:
        raise ValueError(f"ids: each case needs a name of its own; not so {twice[:5]}.")


def refuse_two_labels(names: LabelArray, truth: IntArray) -> None:
    """Refuse different labels for one case."""
    if len(set(names.tolist())) == len(names):
        return
    told = pd.DataFrame({"name": names, "truth": truth}).drop_duplicates()
    twice = told.loc[told["name"].duplicated(), "name"].tolist()
    if twice:
        raise ValueError(
            f"y has different labels for the same case, such as {twice[:5]}; hand over one for "
            "each."
        )


def warn_if_strange(names: LabelArray, waiting: LabelArray, n_found: int) -> None:
    """Warn where no label is for a case that waits: the names may be written in another way."""
    if len(names) >= _SEVERAL and len(waiting) and not n_found:
        warn_user(
            f"ids: none of these {len(names):,} labels is for a case that waits. They are for "
            f"cases such as {names[0]!r}; one that waits is called {waiting[0]!r}. Names are "
            "compared as text."
        )


def read_audits(
    audited: Any, audit_proba: Any, n: int, smallest: float
) -> tuple[FloatArray, BoolArray]:
    """Return the weight of each case, and whether its label will be found out."""
    if audited is None:
        if audit_proba is not None or smallest < 1.0:
            raise ValueError(
                "audited is missing: with audit_proba= or min_audit_proba= below 1 say which "
                "cases were drawn, such as audited=rng.random(n) < audit_proba."
            )
        return np.ones(n), np.ones(n, dtype=bool)
    drawn = as_array(audited, "audited")
    if (drawn.size and drawn.dtype.kind != "b") or drawn.shape != (n,):
        raise ValueError(
            f"audited must hold True or False for each of the {n} cases, got {shown(audited)}."
        )
    chance = smallest if audit_proba is None else audit_proba
    proba = as_array(chance, "audit_proba")
    if proba.dtype.kind not in "iuf" or proba.shape not in ((), (n,)):
        raise ValueError(
            f"audit_proba must be a number, or {n} numbers, one for each case, got {shown(chance)}."
        )
    proba = np.broadcast_to(proba.astype(np.float64), (n,))
    if not np.all((proba >= smallest) & (proba <= 1.0)):
        raise ValueError(
            f"audit_proba must lie between min_audit_proba={smallest:g} and 1, got values from "
            f"{np.min(proba):g} to {np.max(proba):g}. Set min_audit_proba= to the smallest "
            "probability with which a case may be drawn."
        )
    return smallest / proba, drawn.astype(bool)
