"""Coins: numbers in [0, 1) that a seed and a row's own values choose, and nothing else.

A row keeps its coin in any order of the table, and when the table grows. Rows of equal values have
coins of their own: else all of them would be wrong, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skselect._lib.arrays import FloatArray, IntArray, spans

Bits = NDArray[np.uint64]

#: So many significant digits of a number choose a coin: the last ones depend on the processor.
_DIGITS = 10
_POWERS = np.array([float(f"1e{k}") for k in range(309)])
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Coins:
    """A coin for each row and purpose.

    Parameters
    ----------
    seed : int
    numbers : sequence of ndarray of shape (n,)
        What is known of each row, as numbers: ten significant digits of each choose the coin.
    marks : sequence of ndarray of bool, shape (n,)
        What divides the rows later; a row without any mark has the same coins as without `marks`.
    name : str, default=""
        Rows of another name have other coins.
    """

    def __init__(
        self,
        seed: int,
        numbers: Sequence[FloatArray],
        marks: Sequence[NDArray[Any]] = (),
        name: str = "",
    ) -> None:
        spawn_key = tuple(name.encode(errors="surrogatepass"))
        sequence = np.random.SeedSequence(seed, spawn_key=spawn_key)
        (start,) = sequence.generate_state(1, np.uint64)
        keys = np.full(len(numbers[0]), start, dtype=np.uint64)
        for rows in spans(len(keys)):
            for values in numbers:
                digits = round_digits(values[rows])
                keys[rows] = mix(keys[rows] * _GOLDEN + digits)
            for place, mark in enumerate(marks):
                marked = mix(keys[rows] + np.uint64(place + 1))
                keys[rows] = np.where(mark[rows], marked, keys[rows])
        self.keys = keys
        self._numbers = numbers

    @property
    def share_distinct(self) -> float:
        """How many different keys there are for each row: where few, a seed decides much."""
        return len(pd.unique(self.keys)) / len(self.keys)

    def toss(self, purpose: int) -> FloatArray:
        """Return the coin of each row for a purpose; those of other purposes are independent."""
        constant = np.uint64((purpose + 1) * int(_GOLDEN) % 2**64)
        coins = np.empty(len(self.keys))
        for rows in spans(len(self.keys)):
            occurrence = mix(self._occurrences[rows].astype(np.uint64) + constant)
            bits = mix(self.keys[rows] + occurrence)
            whole = bits >> np.uint64(11)
            coins[rows] = whole * 2.0**-53
        return coins

    @cached_property
    def _occurrences(self) -> IntArray:
        """How many rows of the same key stand before each row."""
        occurrences = np.zeros(len(self.keys), dtype=np.int64)
        shared = np.flatnonzero(pd.Series(self.keys).duplicated(keep=False))
        if len(shared) == 0:
            return occurrences
        codes, first_rows = _factorize(self.keys[shared])
        in_order = pd.Series(codes).groupby(codes).cumcount().to_numpy()
        columns = [values[shared] for values in self._numbers]
        if all(np.array_equal(column, column[first_rows[codes]]) for column in columns):
            occurrences[shared] = in_order
            return occurrences
        # Rows of one key may differ in their last digits: then their order must not matter.
        by_value = np.lexsort([*columns, codes])
        by_place = np.argsort(codes, kind="stable")
        occurrences[shared[by_value]] = in_order[by_place]
        return occurrences


def _factorize(keys: Bits) -> tuple[IntArray, IntArray]:
    """Return the number of each key, and the first row of each."""
    codes, uniques = pd.factorize(keys)
    first_rows = np.empty(len(uniques), dtype=np.int64)
    first_rows[codes[::-1]] = np.arange(len(codes))[::-1]
    return codes, first_rows


def round_digits(values: FloatArray) -> Bits:
    """Return a different whole number for each number to ten significant digits."""
    size = np.abs(values)
    exponent = np.floor(np.log10(size, out=np.zeros(len(size)), where=size > 0))
    digits = _DIGITS - 1 - exponent.astype(np.int64)
    is_large = digits < 0
    scale = _POWERS[np.minimum(np.abs(digits), len(_POWERS) - 1)]
    with np.errstate(over="ignore"):
        whole = np.rint(np.where(is_large, values / scale, values * scale))
    is_next = np.abs(whole) >= 10.0**_DIGITS  # 9.9999999999 is 10
    whole[is_next] /= 10.0
    digits[is_next] -= 1
    return (whole + 0.0).view(np.uint64) + digits.astype(np.uint64)


def mix(x: Bits) -> Bits:
    """Return numbers in which each bit depends on all bits of `x` (splitmix64)."""
    shifted = x >> np.uint64(30)
    x = x ^ shifted
    x *= np.uint64(0xBF58476D1CE4E5B9)
    np.right_shift(x, np.uint64(27), out=shifted)
    x ^= shifted
    x *= np.uint64(0x94D049BB133111EB)
    np.right_shift(x, np.uint64(31), out=shifted)
    x ^= shifted
    return x
