"""A record of the rows that trained a classifier, so that a certificate recognises them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom

from skselect._typing import FloatArray

Hashes = NDArray[np.uint64]

#: How many different rows are kept: those with the smallest hashes, so that two tables keep
#: the same ones of the rows that they share.
MOST = 10_000
#: Probability that rows which are equal by chance are taken for rows seen before.
FALSE_ALARMS = 0.001
#: Cells hashed at a time.
_CELLS = 2**18


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Hashes of rows, at most `MOST` of them.

    Parameters
    ----------
    hashes : ndarray of shape (k,)
        Ascending, each once.
    counts : ndarray of shape (k,)
        In how many rows each occurs, 3 for three or more.
    n_rows : int
        How many rows have these hashes.
    complete : bool
        Whether these are all rows.
    """

    hashes: Hashes
    counts: NDArray[np.uint8]
    n_rows: int
    complete: bool

    @classmethod
    def of(cls, X: Any) -> SeenRows:
        """Record rows; nothing is recorded of an X that cannot be read as a table."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # from pandas, about lists of different lengths
                hashes, counts = np.unique(row_hashes(X), return_counts=True)
        except (TypeError, ValueError):
            hashes, counts = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
        kept = counts[:MOST]
        few = np.minimum(kept, 3).astype(np.uint8)
        return cls(hashes[:MOST].copy(), few, int(np.sum(kept)), len(hashes) <= MOST)

    def count_in(self, X: Any) -> int:
        """Return how many rows of X were seen; 0 where chance alone may have made them equal.

        Where not all rows are recorded, the number is estimated from those that are.
        """
        if len(self.hashes) == 0:
            return 0
        new = row_hashes(X)
        looked_at = new if self.complete else new[new <= self.hashes[-1]]
        values, n_new = np.unique(looked_at, return_counts=True)
        place = np.minimum(np.searchsorted(self.hashes, values), len(self.hashes) - 1)
        n_seen = np.where(self.hashes[place] == values, self.counts[place], 0)
        split = np.sum((n_seen == 1) & (n_new == 1))
        both_seen = np.sum(self.counts == 2) - np.sum(n_seen == 2)
        both_new = np.sum((n_seen == 0) & (n_new == 2))
        counts = self.n_rows, len(looked_at)
        if _is_chance(int(split), int(both_seen), int(both_new), *counts):
            return 0
        return round(int(np.sum(n_new[n_seen > 0])) * len(new) / len(looked_at))


def _is_chance(split: int, both_seen: int, both_new: int, n_seen: int, n_new: int) -> bool:
    """Tell whether chance explains how many pairs of equal rows are split: one seen, one new.

    Rows of discrete features are equal now and then. If all rows are draws from one
    population, such a pair is split with the probability 2 n_seen n_new / (n (n - 1)) of a
    random order. If the rows seen were drawn otherwise (balanced by class, say), the expected
    number is still at most 2 sqrt(both seen * both new), by Cauchy and Schwarz; both new is
    taken two standard deviations up.
    """
    n = n_seen + n_new
    by_chance = 2.0 * n_seen * n_new / max(n * (n - 1), 1)
    tail = binom.sf(split - 1, split + both_seen + both_new, min(by_chance, 1.0))
    at_most = 2.0 * np.sqrt(both_seen * (both_new + 2.0 * np.sqrt(both_new) + 2.0))
    return bool(tail > FALSE_ALARMS or split <= at_most)


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
    numeric = np.array([dtype.kind in "biuf" for dtype in frame.dtypes], dtype=bool)
    step = max(1, _CELLS // max(1, frame.shape[1]))
    blocks = [frame.iloc[start : start + step] for start in range(0, len(frame), step)]
    return np.concatenate([_hash_frame(block, numeric) for block in blocks])


def _to_frame(X: Any) -> pd.DataFrame:
    if hasattr(X, "__array__") and not hasattr(X, "iloc"):
        array = np.asarray(X)
        X = array.reshape(len(array), -1)
    return pd.DataFrame(X).infer_objects()


def _hash_frame(frame: pd.DataFrame, numeric: NDArray[np.bool_]) -> Hashes:
    places = np.flatnonzero(numeric)
    table = frame.iloc[:, places].to_numpy(dtype=np.float64, na_value=np.nan)
    total = _hash_values(_to_bits(table), places).sum(axis=1, dtype=np.uint64)
    for place in np.flatnonzero(~numeric):
        column: pd.Series = frame.iloc[:, int(place)]
        column = column.map(str) if column.dtype == object else column  # lists have no hash
        if column.dtype.kind == "M" and isinstance(column.dtype, np.dtype):
            column = column.astype(
                "datetime64[ns]"
            )  # the same time has the same hash in every unit
        hashes = pd.util.hash_pandas_object(column, index=False, categorize=False)
        total += _hash_values(hashes.to_numpy().astype(np.uint64), np.array([place]))
    return np.asarray(total)


def _to_bits(values: NDArray[Any]) -> Hashes:
    """Return numbers as the bits of float64; -0.0 is 0.0, and there is one nan."""
    exact: FloatArray = values.astype(np.float64)
    with np.errstate(over="ignore"):
        rough = exact.astype(np.float32).astype(np.float64)
    numbers = np.where(exact == np.rint(exact), exact, rough) + 0.0
    return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)


def _hash_values(bits: Hashes, places: NDArray[Any]) -> Hashes:
    """Return a hash of each value and its column, 0 for the number 0 (splitmix64)."""
    x = bits + (places.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.where(bits == 0, np.uint64(0), x ^ (x >> np.uint64(31)))
