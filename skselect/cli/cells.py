"""What the cells of a table hold: nothing, text, numbers, classes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from skselect._lib.arrays import BoolArray, FloatArray, LabelArray
from skselect._lib.checks.rows import MISSING_WORDS

#: What stands between a number and its per cent sign, and that sign.
_PER_CENT = r"[\s\x{a0}\x{202f}]*%$"


# Types -------------------------------------------------------------------------------------------


def as_arrow(column: pd.Series) -> Any:
    """Return a column as Arrow holds it; categories as their values."""
    cells: Any = pa.array(column, from_pandas=True)
    if pa.types.is_dictionary(cells.type):
        return cells.cast(value_type(cells.type))
    return cells


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type is one of text."""
    return str(kind) in ("string", "large_string", "string_view")


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values, of categories too."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def plain(column: pd.Series) -> pd.Series:
    """Return a column with a type of numpy, where there is one."""
    values = as_arrow(column).to_pandas().array
    return pd.Series(values, index=column.index, name=column.name)


# Nothing -----------------------------------------------------------------------------------------


def is_empty(column: pd.Series) -> BoolArray:
    """Tell which cells hold nothing."""
    cells = as_arrow(column)
    empty = pc.is_null(cells, nan_is_null=True)
    if is_text(cells.type):
        has_no_sign = pc.fill_null(pc.equal(cells, ""), fill_value=False)
        empty = pc.or_(empty, has_no_sign)
    return np.asarray(empty)


def is_missing(column: pd.Series) -> BoolArray:
    """Tell which cells of a column of numbers hold nothing, or a word that means so.

    In a column of text every word is a value, and :func:`is_empty` tells what is missing.
    """
    cells = as_arrow(column)
    if is_text(cells.type):
        cells = _without_words(cells)
    return np.asarray(pc.is_null(cells, nan_is_null=True))


def means_missing(cell: object) -> bool:
    """Tell whether a cell holds nothing, or a word that means so."""
    return str(cell).strip().lower() in MISSING_WORDS


def _without_words(cells: Any) -> Any:
    """Return text without blanks around it and without the words that mean missing."""
    text = pc.utf8_trim_whitespace(cells)
    words = pa.array(MISSING_WORDS, text.type)
    is_word = pc.is_in(pc.utf8_lower(text), words)
    return pc.if_else(is_word, None, text)


# Numbers -----------------------------------------------------------------------------------------


def to_numbers(cells: Any, decimal: str) -> FloatArray:
    """Return cells as numbers, to the last bit as Python reads them, nan where one is missing.

    87 % is 0.87; per cents do not stand beside other numbers.
    """
    if is_text(cells.type):
        cells = _without_per_cent(_without_words(cells))
        if decimal == ",":  # a point becomes what is in no number
            without_points = pc.replace_substring(cells, ".", ";")
            cells = pc.replace_substring(without_points, ",", ".")
    elif pa.types.is_decimal(cells.type):  # Arrow would round them twice
        cells = cells.cast(pa.string())
    kind = cells.type if pa.types.is_float32(cells.type) else pa.float64()
    numbers = cells.cast(kind, safe=False)  # large integers are rounded
    return numbers.to_numpy(zero_copy_only=False)


def _without_per_cent(text: Any) -> Any:
    """Return text with e-2 in place of per cent signs; all cells have one, or none."""
    has_sign = pc.ends_with(text, "%")
    if not pc.any(has_sign).as_py():
        return text
    if not pc.all(has_sign).as_py():
        raise pa.ArrowInvalid("per cents stand beside other numbers")
    return pc.replace_substring_regex(text, _PER_CENT, "e-2")


def first_failure(n: int, read: Callable[[int], Any]) -> int:
    """Return the position of the first of n values that cannot be read with those before it."""

    def fails(position: int) -> bool:
        try:
            read(position + 1)
        except (pa.ArrowException, OverflowError):
            return True
        return False

    return bisect_left(range(n), True, key=fails)


def text_to_numbers(labels: LabelArray) -> LabelArray:
    """Return text as booleans, integers or floats if each comes back unchanged from its number.

    So "01" and "1.10" stay text: as numbers they would become "1" and "1.1".
    """
    distinct = np.unique(labels)
    texts = distinct.tolist()
    if set(texts) <= {"True", "False"}:
        return np.asarray(labels == "True")
    for kind in (np.int64, np.float64):
        with suppress(ValueError, OverflowError):
            numbers = distinct.astype(kind)
            comes_back = list(map(str, numbers.tolist())) == texts
            if comes_back and np.isfinite(numbers).all():
                return labels.astype(kind)
    return labels


# Classes -----------------------------------------------------------------------------------------


def look_up(cells: Iterable[Any], values: Iterable[Any], decimal: str = ".") -> list[int]:
    """Return the position of each cell among known values, -1: it is missing, -2: it is none.

    Of known numbers, the texts "1" and "1.0" mean the number 1 ("1,0" with decimal commas), and
    "01", "+1", "1e0" and "1_0" mean none. True is 1 where all are 0 and 1. Words such as NA are
    missing numbers, but text.
    """
    places: dict[Any, int] = {}
    reads_words = True
    for position, value in enumerate(values):
        places[str(value)] = position
        places[value] = position
        reads_words = reads_words and not isinstance(value, str)
    if reads_words and set(places) <= {"0", "1", "False", "True", 0, 1}:
        _add_truths(places)

    def place(cell: Any) -> int:
        with suppress(KeyError, ValueError, TypeError):
            if cell in places:
                return places[cell]
            text = str(cell).strip().replace(decimal, ".")
            number = float(text)
            if _without_zeros(str(number)) == _without_zeros(text):
                return places[number]
        if isinstance(cell, str) and not reads_words:
            return -1 if cell == "" else -2
        return -1 if means_missing(cell) else -2

    return [place(cell) for cell in cells]


def read_words(cells: Iterable[Any], words: Mapping[str, int]) -> list[int]:
    """Return the code of each word, -1: it is missing, -2: it is none; capitals do not count."""
    codes = []
    for cell in cells:
        word = _without_zeros(str(cell).strip()).casefold()
        codes.append(words.get(word, -1 if means_missing(cell) else -2))
    return codes


def _add_truths(places: dict[Any, int]) -> None:
    """Add True to the places of 1, and False to those of 0."""
    for text, value in (("True", 1), ("False", 0)):
        if value in places:
            places[text] = places[value]


def _without_zeros(text: str) -> str:
    """Return a number without zeros at the end of its decimals."""
    if "." not in text:
        return text
    return text.rstrip("0").removesuffix(".")
