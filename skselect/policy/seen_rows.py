"""A record of rows, so that a certificate recognises those that it must not rest on.

A row is recognisable if it holds a value that no other distinct row of its table holds in the
same column. Only recognisable rows are counted: rows of few values are equal by chance. A table of
one column, and columns in which at most two rows hold such a value, do not count.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skselect._lib.arrays import BoolArray, FloatArray, IntArray

Hashes = NDArray[np.uint64]

#: How many rows are kept: those with the smallest hashes, so that two tables keep the same ones of
#: the rows that they share.
MOST = 100_000
#: Equal rows count so many times at most. A row that occurs more often, such as an empty form,
#: belongs to the population, and fresh rows repeat it too.
MOST_COPIES = 10
# Ties of so many rows are looked at before those of all.
_FIRST_ROWS = 100_000
# A policy records so many rows by their confidence, if this share of them holds one of its own, and
# recognises them where so many rows hold one.
_RECORDED, _LEAST_OWN, _LEAST_FOUND = 500, 0.9, 20
#: Fewer recognisable rows are as good as none.
LEAST = 5
# So many numbers are hashed at a time: they fit into the cache of a processor.
_CELLS = 1 << 14
# No more rows can hold a value of their own in a column of two values, such as one of several that
# say which category a row has: such a column does not count.
_FEW = 2


class Overlap(NamedTuple):
    """How many rows were recorded, of how many that can be recognised in both tables."""

    n_seen: int
    n_recognisable: int

    @property
    def is_checked(self) -> bool:
        """Whether there are enough recognisable rows to tell."""
        return self.n_recognisable >= LEAST

    @property
    def share(self) -> float:
        """The share of the recognisable rows that were recorded; 0 where none was checked."""
        return self.n_seen / self.n_recognisable if self.is_checked else 0.0


class HashedRows(NamedTuple):
    """A hash of each row, and of the distinct rows, ascending, copies and who is recognisable."""

    every: Hashes
    hashes: Hashes
    copies: IntArray
    alone: BoolArray


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Hashes of the recognisable rows of a table, at most `MOST` of them.

    Parameters
    ----------
    hashes : ndarray of shape (k,)
        Ascending, each once.
    share : float in [0, 1]
        How many of the table's rows are recognisable.
    complete : bool
        Whether these are all recognisable rows.
    """

    hashes: Hashes
    share: float
    complete: bool

    @classmethod
    def of(cls, X: Any) -> SeenRows:
        """Record rows; nothing is recorded of an X that cannot be read as a table."""
        _, hashes, copies, alone = hash_rows(X)
        share = float(np.sum(copies[alone]) / np.sum(copies)) if len(copies) else 0.0
        own = hashes[alone]
        return cls(own[:MOST].copy(), share, len(own) <= MOST)

    def overlap(self, rows: HashedRows) -> Overlap:
        """Count the recorded ones of some rows, and how many of these can be recognised.

        Where not all rows are recorded, rows are counted whose hashes are as small as those that
        are. The number that can be recognised is that of the table with the smaller share of
        recognisable rows, so that n_seen / n_recognisable is about 1 where all rows were recorded.
        """
        if len(self.hashes) == 0:
            return Overlap(0, 0)
        _, hashes, copies, alone = rows
        if not self.complete:
            n = int(np.searchsorted(hashes, self.hashes[-1], side="right"))
            hashes, copies, alone = hashes[:n], copies[:n], alone[:n]
        seen = alone & _are_among(hashes, self.hashes)
        n_recognisable = min(int(np.sum(copies[alone])), round(self.share * int(np.sum(copies))))
        return Overlap(min(int(np.sum(copies[seen])), n_recognisable), n_recognisable)

    def find(self, rows: HashedRows) -> BoolArray:
        """Tell which of the rows are recorded, of those that can be recognised."""
        every, hashes, _, alone = rows
        return _are_among(every, hashes[alone & _are_among(hashes, self.hashes)])


def find_copies(hashed: HashedRows, codes: IntArray) -> BoolArray | None:
    """Tell which rows equal an earlier one, in all values and the class.

    Equal rows of several classes are a case that came back, and only recognisable rows count. The
    result is None where no row is recognisable.

    Parameters
    ----------
    hashed : HashedRows
    codes : ndarray of shape (n,)
        The true classes.
    """
    rows, (every, hashes, times, alone) = np.arange(len(codes)), hashed
    if not np.any(alone):
        return None
    if not np.any(alone & (times > 1)):
        return np.zeros(len(rows), dtype=bool)
    place, first = np.searchsorted(hashes, every), np.empty(len(hashes), dtype=np.int64)
    first[place[::-1]] = rows[::-1]  # of equal rows the first one is written last
    alone = alone.copy()
    alone[place[codes != codes[first[place]]]] = False
    return alone[place] & (first[place] < rows)


def find_tied_copies(
    confidence: FloatArray, sizes: IntArray, *columns: Any, unjudged: BoolArray | None = None
) -> BoolArray | None:
    """Tell which rows of a table without features seem to be copies: equal in every column.

    Rows of one confidence are copies if all such rows are equal, if there are at least `LEAST` such
    confidences, and if half of these or more occur equally often, as after reading a file twice.
    None where ties show no copies: calibrated and rounded confidences are tied without any.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
    sizes : ndarray of shape (B,)
        How many rows hold each different confidence.
    *columns : ndarray of shape (n,) or None
        What else is known of each row: answer and label, or loss.
    unjudged : ndarray of bool, shape (n,), default=None
        Rows whose label is not known yet: it may be that of any other row. So what passes with and
        without copies passes whatever the labels will say.
    """
    copies, known = np.zeros(len(confidence), dtype=bool), [x for x in columns if x is not None]
    times = sizes[sizes > 1]
    if len(times) == 0:
        return copies
    if len(times) < LEAST or 2 * np.bincount(times).max() < len(times):
        return None
    for n in (_FIRST_ROWS, len(confidence)):  # the first rows mostly tell
        order = np.argsort(confidence[:n], kind="stable")
        if unjudged is not None:  # last among equals, so that judged rows are neighbours
            order = np.lexsort((unjudged[:n], confidence[:n]))
        ties = np.append(False, np.diff(confidence[order]) == 0.0)
        told = ties[1:] if unjudged is None else ties[1:] & ~unjudged[order][1:]
        if any(np.any(column[order][1:][told] != column[order][:-1][told]) for column in known):
            return None
    copies[order[ties]] = True
    return copies


def with_and_without(*left_out: BoolArray | None) -> BoolArray | None:
    """Return the readings of rows with and without each kind of rows, None for all rows alone.

    Parameters
    ----------
    *left_out : ndarray of bool, shape (n,), or None

    Returns
    -------
    ndarray of bool, shape (n, 2 or 4), or None
        The first reading holds all rows.
    """
    kinds = [rows for rows in left_out if rows is not None and np.any(rows)]
    if not kinds:
        return None
    readings = [np.ones(len(kinds[0]), dtype=bool)]
    for rows in kinds:
        readings += [reading & ~rows for reading in readings]
    return np.column_stack(readings)


def record_confidence(values: FloatArray, rows: IntArray) -> str:
    """Return a record of the rows of a table that hold a confidence of their own, as text.

    "" where more than a tenth of the rows share theirs: about as many of any fresh rows would
    hold a recorded one by chance.

    Parameters
    ----------
    values : ndarray of shape (B,)
        Distinct confidences.
    rows : ndarray of shape (B,)
        How many rows hold each.
    """
    own = _find_own(values, rows)
    if len(own) < _LEAST_OWN * np.sum(rows):
        return ""
    return own[:_RECORDED].astype(">u4").tobytes().hex()


def share_recorded(record: str, values: FloatArray, rows: IntArray) -> float | None:
    """Return the share of recorded rows, None where too few confidences belong to one row alone.

    It is their share of these rows, or how many of the recorded rows are here, whichever is larger:
    a whole table holds them all. The second is lessened by the share of these rows that share their
    confidence, for about as many recorded ones would be met by chance. Where not all rows are
    recorded, rows are counted whose hashes are as small as those that are.
    """
    recorded = np.frombuffer(bytes.fromhex(record), ">u4").astype(np.uint64)
    own = _find_own(values, rows) if len(recorded) else recorded
    by_chance = 1.0 - len(own) / float(np.sum(rows))
    if len(recorded) == _RECORDED:
        own = own[own <= recorded[-1]]
    if len(own) < _LEAST_FOUND:
        return None
    n_found = int(np.sum(_are_among(own, recorded)))
    return max(n_found / len(own), n_found / len(recorded) - by_chance)


def _find_own(values: FloatArray, rows: IntArray) -> Hashes:
    """Return 32 bits of a hash of each confidence that one row alone holds, ascending."""
    bits = (np.round(values, 10) + 0.0).view(np.uint64)  # the last bits depend on the other rows
    hashes = _hash_values(bits, np.array([0])) >> np.uint64(32)
    one = np.uint64(1)
    marked = np.sort(hashes << one | (rows != 1).astype(np.uint64))  # the last bit: several rows
    hashes = marked >> one
    begins = np.ones(len(hashes) + 1, dtype=bool)
    begins[1:-1] = hashes[1:] != hashes[:-1]
    return hashes[begins[:-1] & begins[1:] & (marked & one == 0)]


def hash_rows(X: Any) -> HashedRows:
    """Return the hashes of the rows of X; none of an X that cannot be read as a table."""
    try:
        # pandas warns about lists of different lengths.
        with warnings.catch_warnings(action="ignore"):
            return _find_recognisable(row_hashes(X), X)
    except (TypeError, ValueError):
        none = np.empty(0, dtype=np.uint64)
        return HashedRows(none, none, none.astype(np.int64), none.astype(bool))


def _find_recognisable(every: Hashes, X: Any) -> HashedRows:
    hashes, first, copies = np.unique(every, return_index=True, return_counts=True)
    alone = np.zeros(len(hashes), dtype=bool)
    if hasattr(X, "tocsr"):
        rows = X.tocsr()[first]
        owner = np.repeat(np.arange(len(first)), np.diff(rows.indptr))
        own = _are_alone(_hash_values(_to_bits(rows.data), rows.indices))
        several = np.bincount(rows.indices[own], minlength=rows.shape[1]) > _FEW
        alone[owner[own & several[rows.indices]]] = True
    else:
        frame = _to_frame(X)
        if frame.shape[1] == 1:  # its values are its rows: equal ones are no copies
            return HashedRows(every, hashes, np.minimum(copies, MOST_COPIES), alone)
        for values in _column_hashes(frame):
            own = _are_alone(values[first])
            alone |= own & (np.sum(own) > _FEW)
            if np.all(alone):
                break
    return HashedRows(every, hashes, np.minimum(copies, MOST_COPIES), alone)


def _are_alone(values: Hashes) -> BoolArray:
    """Tell which values occur once; a zero, which a sparse row does not store, never counts."""
    return ~pd.Series(values).duplicated(keep=False).to_numpy() & (values != 0)


def _are_among(hashes: Hashes, others: Hashes) -> BoolArray:
    """Tell which hashes are among others; numpy 2.0 cannot look 64 bits up in a table."""
    return np.isin(hashes, others, kind="sort")


def row_hashes(X: Any) -> Hashes:
    """Return a number for each row that equal rows share, whatever the kind of table.

    Zeros add nothing, so that a sparse row and the same dense row share their number. Whole
    numbers count exactly and others as float32, because the last bits of what a transformer
    returns may depend on the other rows.
    """
    if hasattr(X, "tocsr"):
        rows = X.tocsr()
        sums = np.append(np.uint64(0), np.cumsum(_hash_values(_to_bits(rows.data), rows.indices)))
        return np.asarray(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])
    frame = _to_frame(X)
    total = np.zeros(len(frame), dtype=np.uint64)
    if all(dtype.kind in "biuf" for dtype in frame.dtypes):
        places = np.arange(frame.shape[1])
        step = max(256, _CELLS // max(len(places), 1))
        for rows in (slice(start, start + step) for start in range(0, len(frame), step)):
            cells = frame.iloc[rows].to_numpy(dtype=np.float64, na_value=np.nan)
            total[rows] = _hash_values(_to_bits(cells), places).sum(axis=1)
        return total
    for values in _column_hashes(frame):
        total += values
    return total


def _to_frame(X: Any) -> pd.DataFrame:
    if hasattr(X, "__array__") and not hasattr(X, "iloc"):
        array = np.asarray(X)
        X = array.reshape(len(array), -1)
    return pd.DataFrame(X, copy=False).infer_objects()


def _column_hashes(frame: pd.DataFrame) -> Iterator[Hashes]:
    """Yield the hashes of the values of each column."""
    for place in range(frame.shape[1]):
        column: pd.Series = frame.iloc[:, place]
        if column.dtype.kind in "biuf":
            bits = _to_bits(column.to_numpy(dtype=np.float64, na_value=np.nan))
        else:
            is_number = np.zeros(len(column), dtype=bool)
            if column.dtype == object:  # a table's column of numbers may be text in another
                is_number = column.map(_is_number).to_numpy(bool)
                numeric = _to_bits(column.where(is_number, 0.0).to_numpy(dtype=np.float64))
                column = column.map(str)  # lists have no hash
            if column.dtype.kind == "M" and isinstance(column.dtype, np.dtype):
                column = column.astype("datetime64[ns]")  # a time has one hash in every unit
            hashes = pd.util.hash_pandas_object(column, index=False, categorize=False)
            bits = hashes.to_numpy().astype(np.uint64)
            if np.any(is_number):
                bits = np.where(is_number, numeric, bits)
        yield _hash_values(bits, np.array([place]))


def _is_number(cell: Any) -> bool:
    """Tell whether a cell is a number that a float can hold."""
    too_large = isinstance(cell, int) and cell.bit_length() >= 1024
    return isinstance(cell, numbers.Real) and not too_large


def _to_bits(values: NDArray[Any]) -> Hashes:
    """Return numbers as the bits of float64; -0.0 is 0.0, and there is one nan."""
    exact: FloatArray = values.astype(np.float64)
    with np.errstate(over="ignore"):
        numbers = exact.astype(np.float32).astype(np.float64)
    np.copyto(numbers, exact, where=exact == np.rint(exact))
    numbers += 0.0
    np.copyto(numbers, np.nan, where=np.isnan(numbers))
    return numbers.view(np.uint64)


def _hash_values(bits: Hashes, places: NDArray[Any]) -> Hashes:
    """Return a hash of each value and its column, 0 for the number 0 (splitmix64)."""
    x = bits + (places.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    x ^= x >> np.uint64(31)
    x *= bits != 0
    return x
