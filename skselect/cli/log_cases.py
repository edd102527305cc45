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
    when : ndarray of shape (n,)
    names : Arrow array of shape (n,)
    case : ndarray of shape (n,)
        The number of its case: a name and a time.
    label : ndarray of shape (n,)
        A code; -1 where there is none.
    is_decided : ndarray of bool, shape (n,)
    brings_label : ndarray of bool, shape (n,)
        The rows that only bring the label of a case, which another row decided.
    """

    order: IntArray
    when: FloatArray
    names: Any
    case: NDArray[np.int32]
    label: IntArray
    is_decided: BoolArray
    brings_label: BoolArray

    @property
    def n_cases(self) -> int:
        """How many names and times there are."""
        return int(self.case[-1]) + 1

    @property
    def first_decisions(self) -> IntArray:
        """The rows that decide a case first."""
        decided = np.flatnonzero(self.is_decided)
        is_first = np.diff(self.case[decided], prepend=-1) > 0
        return decided[is_first]

    @property
    def has_case(self) -> BoolArray:
        """Which cases have a row that does not only bring a label."""
        has_case = np.zeros(self.n_cases, dtype=bool)
        cases = self.case[~self.brings_label]
        has_case[cases] = True
        return has_case


class _Labels(NamedTuple):
    """The labels of a log, in the order of its rows where one may correct another.

    Parameters
    ----------
    case, code : ndarray
        What each label is of, and which it is.
    n_moved : int
        How many have another time than the only decision of their name.
    lost : ndarray
        The rows of labels that belong to no decision.
    """

    case: NDArray[np.int32]
    code: IntArray
    n_moved: int
    lost: IntArray


def find_cases(log: pd.DataFrame, since: float, kind: str, batch: Any) -> Cases:
    """Find the cases in the rows of a log, whatever their order; leave out those before a time.

    A label belongs to the decision of its name and time, else to the only decision of its name.
    """
    rows = _sort_rows(log)
    decisions = rows.first_decisions
    labels = _find_labels(rows, decisions)
    last_label = np.full(rows.n_cases, -1, rows.label.dtype)
    last_label[labels.case] = labels.code  # of several the last one stays
    decided_cases = rows.case[decisions]
    table = pd.DataFrame({"row": rows.order[decisions], "label": last_label[decided_cases]})
    is_early = rows.when[decisions] < since
    remarks = _find_remarks(rows, decisions, labels, batch)
    n_early = int(np.sum(is_early))
    if n_early:
        remarks.append(f"{n_early:,} earlier cases, left out (see --since).")
    lost = _tell_lost(rows, labels.lost, decisions, kind)
    n_labels = int(np.sum(rows.label >= 0))
    if lost and len(labels.lost) <= max(_FEW, _FEW_OF_ALL * n_labels):
        remarks.append(lost)
        lost = ""
    return Cases(table[~is_early], remarks, lost)


def _find_remarks(rows: _Rows, decisions: IntArray, labels: _Labels, batch: Any) -> list[str]:
    """Say which rows or cases are not as they should be, and how many."""
    undecided = _find_undecided(rows, decisions)
    n_decisions = int(np.sum(rows.is_decided))
    n_names = pc.count_distinct(rows.names.take(pa.array(decisions))).as_py()
    counts = {
        "cases without a probability, answer or confidence": len(undecided),
        "rows that decide a case again": n_decisions - len(decisions),
        "cases of a name that was decided at another time, too": len(decisions) - n_names,
        "cases with two labels, of which the later counts": _count_corrected(labels),
        "labels with another time than the only decision of their name": labels.n_moved,
    }
    remarks = [f"{n:,} {what}." for what, n in counts.items() if n]
    sudden = _tell_sudden(rows, decisions, undecided, batch)
    if sudden:
        remarks.append(sudden)
    return remarks


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
    return _Rows(
        order=order,
        when=keys["when"].to_numpy(),
        names=keys["id"],
        case=np.cumsum(np.append([False], is_next), dtype=np.int32),
        label=log["label"].to_numpy()[order],
        is_decided=log["is decided"].to_numpy()[order],
        brings_label=log["brings label"].to_numpy()[order],
    )


def _find_labels(rows: _Rows, decisions: IntArray) -> _Labels:
    """Return the labels with the cases that they are of; `decisions` are the rows that decide."""
    labelled = np.flatnonzero(rows.label >= 0)
    case = rows.case[labelled]
    is_apart = ~rows.has_case[case]
    if not np.any(is_apart):
        return _Labels(case, rows.label[labelled], 0, labelled[:0])
    apart = labelled[is_apart]
    case_by_name = _find_by_name(rows, decisions, apart)
    lost = apart[case_by_name < 0]
    case[is_apart] = case_by_name
    belongs = case >= 0
    case = case[belongs]
    labelled = labelled[belongs]
    # Of two labels that of the later file or row counts.
    by_row = np.argsort(rows.order[labelled], kind="stable")
    labels = rows.label[labelled[by_row]]
    return _Labels(case[by_row], labels, len(apart) - len(lost), lost)


def _find_by_name(rows: _Rows, decisions: IntArray, apart: IntArray) -> IntArray:
    """Return the case of each label whose name was decided once, at another time; else -1."""
    names_apart = rows.names.take(pa.array(apart))
    decided_names = rows.names.take(pa.array(decisions))
    is_asked = pc.is_in(decided_names, value_set=pc.unique(names_apart)).to_numpy()
    asked_names = decided_names.filter(pa.array(is_asked)).to_pylist()
    index = pd.Index(asked_names, dtype=object)
    is_only = ~index.duplicated(keep=False)
    cases = rows.case[decisions[is_asked]][is_only]
    place = index[is_only].get_indexer(names_apart.to_pylist())
    return np.append(cases, -1)[place]


def _count_corrected(labels: _Labels) -> int:
    """Return how many cases have labels that are not all the same."""
    by_case = np.argsort(labels.case, kind="stable")
    case = labels.case[by_case]
    code = labels.code[by_case]
    is_same_case = np.diff(case) == 0
    is_other_label = np.diff(code) != 0
    corrected = case[1:][is_same_case & is_other_label]
    return len(np.unique(corrected))


def _find_undecided(rows: _Rows, decisions: IntArray) -> IntArray:
    """Return the first row of each case that no row decides, but for labels of other rows."""
    is_undecided = rows.has_case
    is_undecided[rows.case[decisions]] = False
    begins = np.flatnonzero(np.diff(rows.case, prepend=-1))
    return begins[is_undecided]


def _tell_sudden(rows: _Rows, decisions: IntArray, undecided: IntArray, batch: Any) -> str:
    """Say that more of the latest cases lack a decision than before, "" where chance explains it.

    The latest ones are those of the length of a batch: so many cases, or such a time.
    """
    if len(undecided) == 0:
        return ""
    cases = np.sort(np.append(decisions, undecided))
    is_undecided = np.isin(cases, undecided)
    is_latest = _find_latest(rows.when[cases], batch)
    n = len(cases)
    n_latest = int(np.sum(is_latest))
    if n_latest == n:
        return ""
    n_lacking = len(undecided)
    n_lacking_latest = int(np.sum(is_undecided & is_latest))
    share = n_lacking_latest / n_latest
    share_before = (n_lacking - n_lacking_latest) / (n - n_latest)
    from scipy.stats import hypergeom  # noqa: PLC0415 - most logs need no test

    p_value = hypergeom.sf(n_lacking_latest - 1, n, n_lacking, n_latest)
    if share < 2 * share_before or p_value >= _LEVEL:
        return ""
    return (
        f"Of the latest {n_latest:,} cases {percent(share)} have no probability, answer or "
        f"confidence, of those before {percent(share_before)}."
    )


def _find_latest(when: FloatArray, batch: Any) -> BoolArray:
    """Tell which cases, in the order of time, belong to the latest stretch of a batch's length."""
    from skselect.monitoring.log import Batches  # noqa: PLC0415

    batches = Batches.read(batch)
    if batches.counts_cases:
        return np.arange(len(when)) >= len(when) - batches.width
    return when > when[-1] - batches.width


def _tell_lost(rows: _Rows, lost: IntArray, decisions: IntArray, kind: str) -> str:
    """Say how many labels belong to no decision, with an example and what was decided instead."""
    if len(lost) == 0:
        return ""
    example = lost[np.argmin(rows.order[lost])]
    name = rows.names[example].as_py()
    time = rows.when[example]
    names = rows.names.take(pa.array(decisions))
    is_same = pc.equal(names, name).to_numpy()
    n_same = int(np.sum(is_same))
    if n_same:
        times = rows.when[decisions[is_same]]
        nearest = times[np.argmin(np.abs(times - time))]
        decided = show_time(nearest, kind)
        reason = f"this name was decided {n_same:,} times, the nearest at {decided}"
    else:
        closest = _find_closest(names, name)
        reason = "no name like it was decided"
        if closest is not None:
            reason = f"the nearest name that was decided is {closest!r}"
    labels = count(len(lost), "label")
    return (
        f"{labels} of no decision, such as that of {name!r} at {show_time(time, kind)}: {reason}."
    )


def _find_closest(names: Any, name: str) -> str | None:
    """Return the name that differs in capitals and blanks only, else that begins most alike."""
    trimmed = pc.utf8_trim_whitespace(names)
    is_alike = pc.equal(pc.utf8_lower(trimmed), name.strip().lower())
    alike = names.filter(is_alike)
    if len(alike):
        return str(alike[0])
    low = 0
    high = len(name)
    while low < high:
        middle = (low + high + 1) // 2
        begins_so = pc.starts_with(names, name[:middle])
        if pc.any(begins_so).as_py():
            low = middle
        else:
            high = middle - 1
    if low == 0:
        return None
    begins_so = pc.starts_with(names, name[:low])
    return str(names.filter(begins_so)[0])
