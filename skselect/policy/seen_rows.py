"""A record of rows, so that a certificate recognises those that it must not rest on.

Rows may be equal by chance. How often says the table that is recorded: a new row equals one of its
rows with the probability that one of its own rows equals another one, its twin. Where that is rare,
every row is recognised by all its values. New rows must have few twins, too, or each of them as
many (a file that was read twice): else the recorded table may have lost its twins before the fit.
Elsewhere a row is recognisable if it holds a value that no other distinct row of its table holds in
the same column; a table of one column, and columns in which at most two rows hold such a value, do
not count then.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skselect._lib.arrays import BoolArray, FloatArray, IntArray
from skselect._lib.coins import mix

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
_RECORDED = 500
_LEAST_OWN = 0.9
_LEAST_FOUND = 20
#: Fewer recognisable rows are as good as none.
LEAST = 5
#: Every row is recognised by all its values if at most this share of the rows has a twin.
_FEW_TWINS = 0.01
# Rows that cannot be recognised were met beyond chance if their share is larger than that of twins
# by so many standard errors, and if there are more than so many of them.
_SURPRISING = 3.0
_HANDFUL = 5
# So many numbers are hashed at a time: they fit into the cache of a processor.
_CELLS = 1 << 14
# float32 holds all whole numbers below this one.
_LARGEST_EXACT = 2.0**24
# No more rows can hold a value of their own in a column of two values, such as one of several that
# say which category a row has: such a column does not count.
_FEW = 2


class Overlap(NamedTuple):
    """How many rows were recorded, of how many that can be recognised in both tables.

    `n_others` is how many rows were recorded, beyond chance, that cannot be recognised.
    """

    n_seen: int
    n_recognisable: int
    n_others: int = 0

    @property
    def is_checked(self) -> bool:
        """Whether there are enough recognisable rows to tell."""
        return self.n_recognisable >= LEAST

    @property
    def share(self) -> float:
        """The share of the recognisable rows that were recorded; 0 where none was checked."""
        if not self.is_checked:
            return 0.0
        return self.n_seen / self.n_recognisable


class HashedRows:
    """The rows of a table by their hashes.

    Parameters
    ----------
    X : table, or None where it could not be read as one
    every : ndarray of shape (n,)
        A hash of each row.

    Attributes
    ----------
    places : ndarray of shape (n,)
        Which of the distinct rows each row is.
    hashes : ndarray of shape (D,)
        Of the distinct rows, in the order in which they occur.
    """

    def __init__(self, X: Any, every: Hashes) -> None:
        self.X = X
        self.every = every
        self.places, self.hashes = pd.factorize(every)

    def __len__(self) -> int:
        return len(self.every)

    @cached_property
    def times(self) -> IntArray:
        """How often each distinct row occurs."""
        return np.bincount(self.places, minlength=len(self.hashes))

    @cached_property
    def have_few_twins(self) -> bool:
        """Whether few rows occur more often than most of them do."""
        if len(self) == 0:
            return False
        usual = np.bincount(self.times).argmax()
        n_twins = np.sum(self.times[self.times > usual])
        return bool(n_twins <= _FEW_TWINS * len(self))

    @cached_property
    def copies(self) -> IntArray:
        """How often each distinct row counts."""
        return np.minimum(self.times, MOST_COPIES)

    @cached_property
    def first_rows(self) -> IntArray:
        """The first row that equals each distinct row."""
        first_rows = np.empty(len(self.hashes), dtype=np.int64)
        # Of equal rows the first one is written last.
        first_rows[self.places[::-1]] = np.arange(len(self))[::-1]
        return first_rows

    @cached_property
    def alone(self) -> BoolArray:
        """Which distinct rows are recognisable: they hold a value that no other one holds."""
        if self.X is None:
            return np.zeros(len(self.hashes), dtype=bool)
        return _find_recognisable(self.X, self.first_rows)


class Twins(NamedTuple):
    """How many rows of a table equal another one of it, and how many exactly one other."""

    n: int
    n_rows: int
    n_in_pairs: int

    @classmethod
    def of(cls, rows: HashedRows) -> Twins:
        """Count the twins of a table."""
        times = rows.times
        n_twins = int(np.sum(times[times > 1]))
        n_in_pairs = 2 * int(np.count_nonzero(times == 2))
        return cls(n_twins, len(rows), n_in_pairs)

    @property
    def share(self) -> float:
        """The probability that a new row equals one of the table by chance."""
        return self.n / self.n_rows

    @property
    def are_few(self) -> bool:
        """Whether equal rows are no chance."""
        return self.n_rows > 0 and self.share <= _FEW_TWINS

    def find_surprise(self, n_met: int, n: int) -> float:
        """Return how many standard errors more of `n` new rows were met than have a twin.

        The share of twins is the Good-Turing estimate of the probability that a row is met. Its
        variance is that of Esty, "A normal limit law for a nonparametric estimator of the coverage
        of a random sample", 1983; the share is pooled, as in a test of two shares.
        """
        pooled = (self.n + n_met) / (self.n_rows + n)
        spread = pooled * (1.0 - pooled)
        of_twins = (spread + self.n_in_pairs / self.n_rows) / self.n_rows
        of_met = spread / n
        excess = n_met / n - self.share
        if excess <= 0.0:
            return 0.0
        return float(excess / np.sqrt(of_twins + of_met))


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Hashes of the distinct rows of a table, at most `MOST` of them.

    Parameters
    ----------
    hashes : ndarray of shape (k,)
        Ascending, each once.
    share : float in [0, 1]
        How many of the table's rows are recognisable.
    complete : bool
        Whether these are all rows.
    alone : ndarray of bool, shape (k,), default=None
        Which of the rows are recognisable; None for all.
    twins : Twins, default=None
        How many rows of the table equal another one. None in the record of an older version, which
        holds recognisable rows alone.
    """

    hashes: Hashes
    share: float
    complete: bool
    alone: BoolArray | None = None
    twins: Twins | None = None

    @property
    def is_of_few_twins(self) -> bool:
        """Whether rows that equal a recorded one are no chance."""
        return self.twins is not None and self.twins.are_few

    def recognises_all(self, rows: HashedRows) -> bool:
        """Tell whether every one of these rows is recognised by all its values."""
        return self.is_of_few_twins and rows.have_few_twins

    @classmethod
    def of(cls, X: Any) -> SeenRows:
        """Record rows; nothing is recorded of an X that cannot be read as a table."""
        rows = hash_rows(X)
        twins = Twins.of(rows)
        order = np.argsort(rows.hashes)[:MOST]
        hashes = rows.hashes[order]
        complete = len(rows.hashes) <= MOST
        if len(rows) and np.all(rows.alone):
            return cls(hashes, 1.0, complete, None, twins)
        share = 0.0
        if len(rows):
            n_recognisable = np.sum(rows.copies[rows.alone])
            share = float(n_recognisable / np.sum(rows.copies))
        return cls(hashes, share, complete, rows.alone[order], twins)

    def overlap(self, rows: HashedRows) -> Overlap:
        """Count the recorded ones of some rows, and how many of these can be recognised.

        Where not all rows are recorded, rows are counted whose hashes are as small as those that
        are. The number that can be recognised is that of the table with the smaller share of
        recognisable rows, so that n_seen / n_recognisable is about 1 where all rows were recorded.
        """
        if len(self.hashes) == 0:
            return Overlap(0, 0)
        is_counted = np.ones(len(rows.hashes), dtype=bool)
        if not self.complete:
            is_counted = rows.hashes <= self.hashes[-1]
        copies = np.where(is_counted, rows.copies, 0)
        is_known = self._find_known(rows)
        n_recognisable = int(np.sum(copies))
        if not self.recognises_all(rows):
            n_here = int(np.sum(copies[rows.alone]))
            n_there = round(self.share * n_recognisable)
            n_recognisable = min(n_here, n_there)
        n_seen = int(np.sum(copies[is_known]))
        times = np.where(is_counted, rows.times, 0)
        n_others = self._count_others(rows.hashes, times, is_known)
        return Overlap(min(n_seen, n_recognisable), n_recognisable, n_others)

    def _find_known(self, rows: HashedRows) -> BoolArray:
        """Tell which of the distinct rows are recorded, of those that can be recognised."""
        if self.recognises_all(rows):
            return _are_among(rows.hashes, self.hashes)
        recognisable = self.hashes
        if self.alone is not None:
            recognisable = self.hashes[self.alone]
        return rows.alone & _are_among(rows.hashes, recognisable)

    def _count_others(self, hashes: Hashes, times: IntArray, is_known: BoolArray) -> int:
        """Return how many rows were met, beyond chance, that cannot be recognised."""
        n = int(np.sum(times))
        if self.twins is None or self.twins.are_few or n == 0:
            return 0
        is_met = _are_among(hashes, self.hashes)
        n_met = int(np.sum(times[is_met]))
        n_known = int(np.sum(times[is_known]))
        n_others = round(n_met - n_known - self.twins.share * n)
        if n_others <= _HANDFUL or self.twins.find_surprise(n_met, n) <= _SURPRISING:
            return 0
        return n_others

    def find(self, rows: HashedRows) -> BoolArray:
        """Tell which of the rows are recorded, of those that can be recognised."""
        return self._find_known(rows)[rows.places]


def find_copies(
    rows: HashedRows, codes: IntArray, *, recognise_all: bool = False
) -> BoolArray | None:
    """Tell which rows equal an earlier one, in all values and the class.

    Equal rows of several classes are a case that came back, and only recognisable rows count. The
    result is None where no row is recognisable.

    Parameters
    ----------
    rows : HashedRows
    codes : ndarray of shape (n,)
        The true classes.
    recognise_all : bool, default=False
        Whether equal rows are no chance, as a record of such rows says (`SeenRows`).
    """
    alone = np.ones(len(rows.hashes), dtype=bool) if recognise_all else rows.alone
    if not np.any(alone):
        return None
    is_copied = alone & (rows.times > 1)
    if not np.any(is_copied):
        return np.zeros(len(rows), dtype=bool)
    original = rows.first_rows[rows.places]
    came_back = codes != codes[original]
    is_copied[rows.places[came_back]] = False
    is_later = np.arange(len(rows)) > original
    return is_copied[rows.places] & is_later


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
    copies = np.zeros(len(confidence), dtype=bool)
    times = sizes[sizes > 1]
    if len(times) == 0:
        return copies
    if len(times) < LEAST or 2 * np.bincount(times).max() < len(times):
        return None
    table = _TiedRows(confidence, [x for x in columns if x is not None], unjudged)
    if len(confidence) > _FIRST_ROWS and table.begin(_FIRST_ROWS).find_later() is None:
        return None  # the first rows mostly tell
    later = table.find_later()
    if later is None:
        return None
    copies[later] = True
    return copies


class _TiedRows(NamedTuple):
    """Rows without features: a confidence, what else is known, and who is not judged yet."""

    confidence: FloatArray
    columns: list[Any]
    unjudged: BoolArray | None

    def begin(self, n: int) -> _TiedRows:
        """Return the first rows."""
        columns = [column[:n] for column in self.columns]
        unjudged = None if self.unjudged is None else self.unjudged[:n]
        return _TiedRows(self.confidence[:n], columns, unjudged)

    def find_later(self) -> IntArray | None:
        """Return the rows that share the confidence of an earlier one; None if some pair differs.

        The original is the first by position, whoever was judged first.
        """
        order = np.argsort(self.confidence, kind="stable")
        earlier, later = self._pair_ties(order)
        if self.unjudged is not None:
            # Last among equals, so that judged rows are neighbours: the others differ from none.
            judged_first = np.lexsort((self.unjudged, self.confidence))
            earlier, compared = self._pair_ties(judged_first)
            are_judged = ~self.unjudged[compared]
            if self._differ(earlier[are_judged], compared[are_judged]):
                return None
        elif self._differ(earlier, later):
            return None
        return later

    def _pair_ties(self, order: IntArray) -> tuple[IntArray, IntArray]:
        """Return neighbours of equal confidence in an order of the rows."""
        is_tied = np.diff(self.confidence[order]) == 0.0
        return order[:-1][is_tied], order[1:][is_tied]

    def _differ(self, earlier: IntArray, later: IntArray) -> bool:
        """Tell whether some pair differs in a column."""
        return any(np.any(column[later] != column[earlier]) for column in self.columns)


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
    hashes = _find_own(values, rows)
    if len(hashes) < _LEAST_OWN * np.sum(rows):
        return ""
    return hashes[:_RECORDED].astype(">u4").tobytes().hex()


def share_recorded(record: str, values: FloatArray, rows: IntArray) -> float | None:
    """Return the share of recorded rows, None where too few confidences belong to one row alone.

    It is their share of these rows, or how many of the recorded rows are here, whichever is larger:
    a whole table holds them all. The second is lessened by the share of these rows that share their
    confidence, for about as many recorded ones would be met by chance. Where not all rows are
    recorded, rows are counted whose hashes are as small as those that are.
    """
    recorded = np.frombuffer(bytes.fromhex(record), ">u4").astype(np.uint64)
    if len(recorded) == 0:
        return None
    hashes = _find_own(values, rows)
    by_chance = 1.0 - len(hashes) / float(np.sum(rows))
    if len(recorded) == _RECORDED:
        hashes = hashes[hashes <= recorded[-1]]
    if len(hashes) < _LEAST_FOUND:
        return None
    n_met = int(np.sum(_are_among(hashes, recorded)))
    share_here = n_met / len(hashes)
    share_of_recorded = n_met / len(recorded)
    return max(share_here, share_of_recorded - by_chance)


def _find_own(values: FloatArray, rows: IntArray) -> Hashes:
    """Return 32 bits of a hash of each confidence that one row alone holds, ascending."""
    rounded = np.round(values, 10) + 0.0  # the last bits depend on the other rows
    hashes = _hash_values(rounded.view(np.uint64), np.array([0])) >> np.uint64(32)
    bit = np.uint64(1)
    has_several = (rows != 1).astype(np.uint64)
    marked = np.sort(hashes << bit | has_several)
    hashes = marked >> bit
    is_single = marked & bit == 0
    begins = np.ones(len(hashes) + 1, dtype=bool)
    begins[1:-1] = hashes[1:] != hashes[:-1]
    is_alone = begins[:-1] & begins[1:]
    return hashes[is_alone & is_single]


def hash_rows(X: Any) -> HashedRows:
    """Return the hashes of the rows of X; none of an X that cannot be read as a table."""
    try:
        # pandas warns about lists of different lengths.
        with warnings.catch_warnings(action="ignore"):
            return HashedRows(X, row_hashes(X))
    except (TypeError, ValueError):
        return HashedRows(None, np.empty(0, dtype=np.uint64))


def _find_recognisable(X: Any, first_rows: IntArray) -> BoolArray:
    """Tell which distinct rows, of which `first_rows` holds one each, have a value of their own."""
    if hasattr(X, "tocsr"):
        return _find_recognisable_sparse(X.tocsr()[first_rows])
    alone = np.zeros(len(first_rows), dtype=bool)
    frame = _to_frame(X)
    if frame.shape[1] == 1:  # its values are its rows: equal ones are no copies
        return alone
    for values in _column_hashes(frame):
        is_alone = _are_alone(values[first_rows])
        if np.sum(is_alone) > _FEW:
            alone |= is_alone
        if np.all(alone):
            break
    return alone


def _find_recognisable_sparse(rows: Any) -> BoolArray:
    n, n_columns = rows.shape
    alone = np.zeros(n, dtype=bool)
    row = np.repeat(np.arange(n), np.diff(rows.indptr))
    column = rows.indices
    is_alone = _are_alone(_hash_values(_to_bits(rows.data), column))
    has_several = np.bincount(column[is_alone], minlength=n_columns) > _FEW
    alone[row[is_alone & has_several[column]]] = True
    return alone


def _are_alone(values: Hashes) -> BoolArray:
    """Tell which values occur once; a zero, which a sparse row does not store, never counts."""
    return ~pd.Series(values).duplicated(keep=False).to_numpy() & (values != 0)


def _are_among(hashes: Hashes, others: Hashes) -> BoolArray:
    """Tell which hashes are among others, by pandas' table of hashes: `np.isin` sorts 64 bits."""
    return pd.Series(hashes).isin(others).to_numpy()


def row_hashes(X: Any) -> Hashes:
    """Return a number for each row that equal rows share, whatever the kind of table.

    Zeros add nothing, so that a sparse row and the same dense row share their number. Whole
    numbers count exactly and others as float32, because the last bits of what a transformer
    returns may depend on the other rows.
    """
    if hasattr(X, "tocsr"):
        rows = X.tocsr()
        values = _hash_values(_to_bits(rows.data), rows.indices)
        sums = np.append(np.uint64(0), np.cumsum(values))
        return np.asarray(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])
    frame = _to_frame(X)
    if all(dtype.kind in "biuf" for dtype in frame.dtypes):
        return _hash_numbers(frame)
    total = np.zeros(len(frame), dtype=np.uint64)
    for values in _column_hashes(frame):
        total += values
    return total


def _hash_numbers(frame: pd.DataFrame) -> Hashes:
    """Return the hashes of rows of numbers, some rows at a time."""
    total = np.empty(len(frame), dtype=np.uint64)
    places = np.arange(frame.shape[1])
    step = max(256, _CELLS // max(len(places), 1))
    array = None
    dtypes = set(frame.dtypes)
    if len(dtypes) == 1 and isinstance(dtypes.pop(), np.dtype):
        array = frame.to_numpy()  # its own memory
    for start in range(0, len(frame), step):
        rows = slice(start, start + step)
        if array is None:
            cells = frame.iloc[rows].to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            cells = array[rows]
        values = _hash_values(_to_bits(cells), places)
        total[rows] = np.einsum("ij->i", values)  # twice as fast as `sum`
    return total


def _to_frame(X: Any) -> pd.DataFrame:
    if hasattr(X, "__array__") and not hasattr(X, "iloc"):
        array = np.asarray(X)
        X = array.reshape(len(array), -1)
    return pd.DataFrame(X, copy=False).infer_objects()


def _column_hashes(frame: pd.DataFrame) -> Iterator[Hashes]:
    """Yield the hashes of the values of each column."""
    for place in range(frame.shape[1]):
        bits = _read_column(frame.iloc[:, place])
        yield _hash_values(bits, np.array([place]))


def _read_column(column: pd.Series) -> Hashes:
    """Return numbers as bits, and anything else as a hash."""
    if column.dtype.kind in "biuf":
        return _to_bits(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if column.dtype == object:  # a table's column of numbers may be text in another
        is_number = column.map(_is_number).to_numpy(bool)
        bits = _hash_cells(column.map(str))  # lists have no hash
        if np.any(is_number):
            plain = column.where(is_number, 0.0).to_numpy(dtype=np.float64)
            bits = np.where(is_number, _to_bits(plain), bits)
        return bits
    if column.dtype.kind == "M" and isinstance(column.dtype, np.dtype):
        column = column.astype("datetime64[ns]")  # a time has one hash in every unit
    return _hash_cells(column)


def _hash_cells(column: pd.Series) -> Hashes:
    hashes = pd.util.hash_pandas_object(column, index=False, categorize=False)
    return hashes.to_numpy().astype(np.uint64)


def _is_number(cell: Any) -> bool:
    """Tell whether a cell is a number that a float can hold."""
    too_large = isinstance(cell, int) and cell.bit_length() >= 1024
    return isinstance(cell, numbers.Real) and not too_large


def _to_bits(values: NDArray[Any]) -> Hashes:
    """Return numbers as the bits of float64; -0.0 is 0.0, and there is one nan."""
    exact: FloatArray = values.astype(np.float64)
    with np.errstate(over="ignore"):
        numbers = exact.astype(np.float32).astype(np.float64)
    largest = max(numbers.max(initial=0.0), -numbers.min(initial=0.0))
    if not largest < _LARGEST_EXACT:  # or nan
        np.copyto(numbers, exact, where=exact == np.rint(exact))
        np.copyto(numbers, np.nan, where=np.isnan(numbers))
    numbers += 0.0
    return numbers.view(np.uint64)


def _hash_values(bits: Hashes, places: NDArray[Any]) -> Hashes:
    """Return a hash of each value and its column, 0 for the number 0 (splitmix64)."""
    number = places.astype(np.uint64) + np.uint64(1)
    x = mix(bits + number * np.uint64(0x9E3779B97F4A7C15))
    if not np.all(bits):
        x *= bits != 0
    return x
