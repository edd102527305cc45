"""Exact counts of packed keys, each of which is a confidence with an error bit.

Few distinct keys are kept in runs: sorted keys with their counts. Many float32 keys are kept in
pages: arrays of 1 MiB with one counter for every possible key, made when first needed. The
confidences in [0.5, 1] take 128 MiB of pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy, deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skselect._lib.arrays import FloatArray, IntArray
from skselect.curve import tie_blocks
from skselect.curve.tie_blocks import KeyArray, SummedBlocks, blocks_from_counts

#: Counters in a page; an even number keeps right and wrong of one confidence on one page.
PAGE = 1 << 17
#: More distinct keys than this are counted in pages.
PAGED_FROM = 1 << 21
#: Keys are collected until there are so many, and then sorted and counted together.
SORTED_TOGETHER = 1 << 22

Runs = tuple[KeyArray, IntArray]


class KeyCounts:
    """Counts of packed keys of one width.

    Parameters
    ----------
    dtype : uint32 or uint64
        Of the keys; only those of 32 bits are kept in pages.
    """

    def __init__(self, dtype: type[np.unsignedinteger]) -> None:
        self.dtype = np.dtype(dtype)
        self.pages: dict[int, IntArray] = {}
        self.runs: list[Runs] = []
        self.n_pending = 0
        self.unsorted: list[KeyArray] = []
        self.n_unsorted = 0

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        in_runs = sum(keys.nbytes + counts.nbytes for keys, counts in self.runs)
        in_pages = sum(page.nbytes for page in self.pages.values())
        not_sorted = sum(keys.nbytes for keys in self.unsorted)
        return in_runs + in_pages + not_sorted

    def count(self, keys: KeyArray) -> None:
        """Count keys in any order; they are sorted once there are enough of them."""
        self.unsorted.append(keys)
        self.n_unsorted += len(keys)
        if self.n_unsorted >= SORTED_TOGETHER:
            self._sort()

    def _sort(self) -> None:
        if not self.unsorted:
            return
        keys = np.concatenate(self.unsorted)
        keys.sort()
        self.unsorted = []
        self.n_unsorted = 0
        starts = tie_blocks.run_starts(keys)
        self.add(keys[starts], np.diff(starts, append=len(keys)))

    def add(self, keys: KeyArray, counts: IntArray) -> None:
        """Add counts of distinct keys in ascending order."""
        if self.pages:
            self._add_to_pages(keys, counts)
        elif len(keys):
            self.runs.append((keys, counts))
            self.n_pending += len(keys)
            merged, _ = self.runs[0]
            # Waiting for more new keys than were merged before keeps the total cost linear.
            if self.n_pending > 2 * len(merged) + PAGED_FROM // 2:
                self._merge()

    def settle(self) -> None:
        """Merge the runs into one, or into pages where it would be long."""
        self._sort()
        self._merge()

    def _merge(self) -> None:
        """Merge all runs into one, or add them to pages where one is long."""
        if len(self.runs) > 1 and not self._is_long():
            self.runs = [merge_runs(self.runs)]
        if self._is_long():
            for keys, counts in self.runs:
                self._add_to_pages(keys, counts)
            self.runs = []
        self.n_pending = 0

    def _is_long(self) -> bool:
        longest = max((len(keys) for keys, _ in self.runs), default=0)
        return self.dtype.itemsize == 4 and longest > PAGED_FROM

    def _add_to_pages(self, keys: KeyArray, counts: IntArray) -> None:
        lowest = int(keys[0]) // PAGE
        highest = int(keys[-1]) // PAGE
        cuts = np.searchsorted(keys, np.arange(lowest + 1, highest + 1) * PAGE)
        ends = [*cuts.tolist(), len(keys)]
        start = 0
        for number, end in zip(range(lowest, highest + 1), ends, strict=True):
            if end > start:
                if number not in self.pages:
                    self.pages[number] = np.zeros(PAGE, dtype=np.int64)
                places = keys[start:end] - np.uint32(number * PAGE)
                self.pages[number][places] += counts[start:end]
            start = end

    def parts(self) -> Iterator[Runs]:
        """Yield all keys with their counts, ascending; one confidence is never split."""
        self.settle()
        yield from self.runs
        for number in sorted(self.pages):
            page = self.pages[number]
            used = np.flatnonzero(page)
            keys = used + number * PAGE
            yield keys.astype(self.dtype), page[used]

    def __deepcopy__(self, memo: Any) -> KeyCounts:
        """Return counters that can be added to; arrays of runs and unsorted keys never change."""
        twin = copy(self)
        twin.runs = list(self.runs)
        twin.unsorted = list(self.unsorted)
        twin.pages = deepcopy(self.pages, memo)
        return twin

    def add_all(self, other: KeyCounts) -> None:
        """Add the counts of others."""
        for keys, counts in other.parts():
            self.add(keys, counts)


class Counts:
    """Rows and errors of each distinct confidence; float32 is counted separately."""

    def __init__(self) -> None:
        self.narrow = KeyCounts(np.uint32)
        self.wide = KeyCounts(np.uint64)

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        return self.narrow.nbytes + self.wide.nbytes

    def add(self, confidence: FloatArray, wrong: NDArray[Any]) -> None:
        """Count rows."""
        counters, keys = self._pack(confidence, wrong)
        counters.count(keys)

    def add_counts(self, confidence: FloatArray, rows: IntArray, errors: IntArray) -> None:
        """Count groups of rows with one confidence each."""
        wrong = np.repeat([0, 1], len(confidence))
        counters, keys = self._pack(np.tile(confidence, 2), wrong)
        number = np.concatenate([rows - errors, errors])
        occurs = number > 0
        if np.any(occurs):
            run = (keys[occurs], number[occurs])
            counters.add(*merge_runs([run]))

    def _pack(self, confidence: FloatArray, wrong: NDArray[Any]) -> tuple[KeyCounts, KeyArray]:
        """Return rows as keys, and the counters of their width."""
        narrow = tie_blocks.are_float32(confidence)
        keys = tie_blocks.pack(confidence, wrong, narrow=narrow)
        counters = self.narrow if narrow else self.wide
        return counters, keys

    def add_all(self, other: Counts) -> None:
        """Add the counts of another."""
        self.narrow.add_all(other.narrow)
        self.wide.add_all(other.wide)

    def settle(self) -> None:
        """Merge all runs."""
        self.narrow.settle()
        self.wide.settle()

    def blocks(self) -> SummedBlocks:
        """Return the tie blocks, the surest first."""
        narrow = list(_count_confidences(self.narrow.parts()))
        wide = list(_count_confidences(self.wide.parts()))
        columns = zip(*narrow, *wide, strict=True)
        confidence, rows, errors = (np.concatenate(column) for column in columns)
        if narrow and wide:  # a confidence may occur in both
            order, confidence = tie_blocks.descending_order(confidence)
            starts = tie_blocks.run_starts(confidence)
            confidence = confidence[starts]
            rows = np.add.reduceat(rows[order], starts)
            errors = np.add.reduceat(errors[order], starts)
        return blocks_from_counts(confidence, rows, errors)


def merge_runs(runs: list[Runs]) -> Runs:
    """Merge runs into one, adding up the counts of equal keys."""
    keys = np.concatenate([keys for keys, _ in runs])
    counts = np.concatenate([counts for _, counts in runs])
    order = np.argsort(keys, kind="stable")  # a stable sort merges sorted runs
    keys = keys[order]
    counts = counts[order]
    starts = tie_blocks.run_starts(keys)
    return keys[starts], np.add.reduceat(counts, starts)


def _count_confidences(parts: Iterator[Runs]) -> Iterator[tuple[FloatArray, IntArray, IntArray]]:
    """Yield distinct confidences with their rows and errors, part by part."""
    for keys, counts in parts:
        bits = keys >> 1
        starts = tie_blocks.run_starts(bits)
        wrong = np.where(keys & 1, counts, 0)
        confidence = tie_blocks.unpack_confidence(bits[starts])
        n_rows = np.add.reduceat(counts, starts)
        n_errors = np.add.reduceat(wrong, starts)
        yield confidence, n_rows, n_errors
