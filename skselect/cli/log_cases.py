"""The cases of a log: which row decided each, which label it has, which rows are odd."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skselect._lib.arrays import BoolArray, FloatArray, IntArray
from skselect._lib.notebook import count, percent
from skselect.monitoring.log import show_time

# So many labels without a decision, and such a share of all labels, may be errors of typing.
_FEW = 3
_FEW_OF_ALL = 0.01
# The latest rows are said to lack decisions where chance has this probability, and twice as many
# lack them as before.
_LEVEL = 0.001


class Cases(NamedTuple):
    """The cases that count, and what is said of the rows of the log.

    Parameters
    ----------
    table : DataFrame
        In the order of time, then of names: the row that holds the decision, and the code of the
        label, -1 where there is none. Of several decisions the first counts, of labels the last.
    remarks : list of str
        Which rows or cases are not as they should be, and how many.
    lost : str
        That labels belong to no decision, "" where these are none or a few.
    """

    table: pd.DataFrame
    remarks: list[str]
    lost: str


class _Rows(NamedTuple):
    """The rows of a log in the order of time, then of names; rows of one case keep their order.

    Parameters
    ----------
    order : ndarray of shape (n,)
        Where each row stands in the log.
    case : ndarray of shape (n,)
        The number of its case: a name and a time.
    label : ndarray of shape (n,)
    is_decided : ndarray of bool, shape (n,)
    brings_label : ndarray of bool, shape (n,)
        The rows that only bring the label of a case, which another row decided.
    """

    order: IntArray
    case: NDArray[np.int32]
    label: IntArray
    is_decided: BoolArray
    brings_label: BoolArray

    @property
    def first_decisions(self) -> IntArray:
        """The rows that decide a case first."""
        decided = np.flatnonzero(self.is_decided)
        is_first = np.diff(self.case[decided], prepend=-1) > 0
        return decided[is_first]

    @property
    def lost_labels(self) -> IntArray:
        """The rows that bring labels of cases of which there is no other row."""
        has_other_row = np.zeros(self.case[-1] + 1, dtype=bool)
        has_other_row[self.case[~self.brings_label]] = True
        return np.flatnonzero(~has_other_row[self.case])


def find_cases(log: pd.DataFrame, since: float, kind: str, batch: Any) -> Cases:
    """Find the cases in the rows of a log, whatever their order; leave out those before a time.

    A label belongs to the decision of its name and time, else to the only decision of its name.
    """
    rows = _sort_rows(log)
    first = rows.first_decisions
    lost = rows.lost_labels
    owner = rows.case.copy()
    if len(lost):
        owner[lost] = _find_by_name(log, rows, first, lost)
    is_labelled = (rows.label >= 0) & (owner >= 0)
    labelled = np.flatnonzero(is_labelled)
    if len(lost):  # of two labels that of the later file or row counts
        labelled = labelled[np.argsort(rows.order[labelled], kind="stable")]
    n_cases = int(rows.case[-1]) + 1
    last_label = np.full(n_cases, -1, rows.label.dtype)
    last_label[owner[labelled]] = rows.label[labelled]
    cases = pd.DataFrame({"row": rows.order[first], "label": last_label[rows.case[first]]})
    is_early = log["when"].to_numpy()[cases["row"]] < since
    unfound = lost[owner[lost] < 0]
    undecided = _find_undecided(rows, first)
    remarks = {
        "cases without a probability, answer or confidence": len(undecided),
        "rows that decide a case again": int(np.sum(rows.is_decided)) - len(first),
        "cases with two labels, of which the later counts": _count_corrected(
            owner[labelled], rows.label[labelled]
        ),
        "labels with another time than the only decision of their name": len(lost) - len(unfound),
        "earlier cases, left out (see --since)": int(np.sum(is_early)),
    }
    texts = [f"{n:,} {what}." for what, n in remarks.items() if n]
    sudden = _tell_sudden(log["when"].to_numpy()[rows.order], first, undecided, batch)
    if sudden:
        texts.append(sudden)
    told = ""
    if len(unfound):
        told = _tell_lost(log, rows, unfound, first, kind)
        n_labels = int(np.sum(rows.label >= 0))
        if len(unfound) <= max(_FEW, _FEW_OF_ALL * n_labels):
            texts.append(told)
            told = ""
    return Cases(cases[~is_early], texts, told)


def _sort_rows(log: pd.DataFrame) -> _Rows:
    """Sort the rows of a log by time, then by name, and number their cases in this order."""
    keys = pa.table({"when": log["when"].to_numpy(), "id": pa.array(log["id"])})
    # Rows of one case keep their order.
    order = pc.sort_indices(keys, [("when", "ascending"), ("id", "ascending")]).to_numpy()
    keys = keys.take(order)
    later = keys[1:]
    earlier = keys[:-1]
    is_same_time = pc.equal(later["when"], earlier["when"])
    is_same_name = pc.equal(later["id"], earlier["id"])
    is_next = ~pc.and_(is_same_time, is_same_name).to_numpy()
    case = np.cumsum(np.append([False], is_next), dtype=np.int32)
    return _Rows(
        order,
        case,
        log["label"].to_numpy()[order],
        log["is decided"].to_numpy()[order],
        log["brings label"].to_numpy()[order],
    )


def _find_by_name(log: pd.DataFrame, rows: _Rows, first: IntArray, lost: IntArray) -> IntArray:
    """Return the case of each label whose name was decided once, at another time; else -1."""
    names = pa.array(log["id"])
    lost_names = names.take(pa.array(rows.order[lost]))
    decided_names = names.take(pa.array(rows.order[first]))
    is_asked = pc.is_in(decided_names, value_set=pc.unique(lost_names)).to_numpy(False)
    asked = pd.Index(decided_names.filter(pa.array(is_asked)).to_pylist(), dtype=object)
    cases = rows.case[first[is_asked]]
    is_only = ~asked.duplicated(keep=False)
    place = asked[is_only].get_indexer(lost_names.to_pylist())
    return np.where(place < 0, -1, np.append(cases[is_only], -1)[place])


def _count_corrected(case: NDArray[np.int32], label: IntArray) -> int:
    """Return how many cases have labels that are not all the same."""
    by_case = np.argsort(case, kind="stable")
    case = case[by_case]
    label = label[by_case]
    is_same_case = np.diff(case) == 0
    is_other_label = np.diff(label) != 0
    corrected = case[1:][is_same_case & is_other_label]
    return len(np.unique(corrected))


def _find_undecided(rows: _Rows, first: IntArray) -> IntArray:
    """Return a row of each case that no row decides, but for labels of other rows."""
    counts = np.zeros(rows.case[-1] + 1, dtype=bool)
    counts[rows.case[~rows.brings_label]] = True
    counts[rows.case[first]] = False
    begins = np.flatnonzero(np.diff(rows.case, prepend=-1))
    return begins[counts]


def _tell_sudden(when: FloatArray, first: IntArray, undecided: IntArray, batch: Any) -> str:
    """Say that more of the latest cases lack a decision than before, "" where chance explains it.

    The latest ones are those of the length of a batch: so many cases, or such a time.
    """
    from scipy.stats import hypergeom  # noqa: PLC0415 - most logs need no test

    if len(undecided) == 0:
        return ""
    places = np.sort(np.append(first, undecided))
    is_undecided = np.isin(places, undecided)
    is_latest = _find_latest(when[places], batch)
    n = len(places)
    n_latest = int(np.sum(is_latest))
    n_lacking = len(undecided)
    n_lacking_latest = int(np.sum(is_undecided & is_latest))
    if n_latest == n:
        return ""
    share = n_lacking_latest / n_latest
    before = (n_lacking - n_lacking_latest) / (n - n_latest)
    p_value = hypergeom.sf(n_lacking_latest - 1, n, n_lacking, n_latest)
    if share < 2 * before or p_value >= _LEVEL:
        return ""
    return (
        f"Of the latest {n_latest:,} cases {percent(share)} have no probability, answer or "
        f"confidence, of those before {percent(before)}."
    )


def _find_latest(when: FloatArray, batch: Any) -> BoolArray:
    """Tell which cases, in the order of time, belong to the latest stretch of a batch's length."""
    from skselect.monitoring.log import Batches  # noqa: PLC0415

    batches = Batches.read(batch)
    if batches.counts_cases:
        return np.arange(len(when)) >= len(when) - batches.width
    return when > when[-1] - batches.width


def _tell_lost(
    log: pd.DataFrame, rows: _Rows, unfound: IntArray, first: IntArray, kind: str
) -> str:
    """Say how many labels belong to no decision, with an example and what was decided instead."""
    example = int(np.min(rows.order[unfound]))
    name = log["id"].iloc[example]
    time = show_time(log["when"].iloc[example], kind)
    names = pa.array(log["id"]).take(pa.array(rows.order[first]))
    is_same = pc.equal(names, name).to_numpy(False)
    n_same = int(np.sum(is_same))
    if n_same:
        times = log["when"].to_numpy()[rows.order[first[is_same]]]
        nearest = times[np.argmin(np.abs(times - log["when"].iloc[example]))]
        reason = (
            f"this name was decided {n_same:,} times, the nearest at {show_time(nearest, kind)}"
        )
    else:
        closest = _find_closest(names, name)
        reason = "no name like it was decided"
        if closest is not None:
            reason = f"the nearest name that was decided is {closest!r}"
    return (
        f"{count(len(unfound), 'label')} of no decision, such as that of {name!r} at {time}: "
        f"{reason}."
    )


def _find_closest(names: Any, name: str) -> str | None:
    """Return the name that differs in capitals and blanks only, else that begins most alike."""
    plain = pc.utf8_lower(pc.utf8_trim_whitespace(names))
    alike = names.filter(pc.equal(plain, name.strip().lower()))
    if len(alike):
        return str(alike[0])
    low = 0
    high = len(name)
    while low < high:
        middle = (low + high + 1) // 2
        if pc.any(pc.starts_with(names, name[:middle])).as_py():
            low = middle
        else:
            high = middle - 1
    if low == 0:
        return None
    return str(names.filter(pc.starts_with(names, name[:low]))[0])
