"""Tables that were read: their cells as numbers, times, names and truths; and CSV, written."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from skselect._lib.arrays import BoolArray, FloatArray
from skselect._lib.checks import rows as row_checks, warn_user
from skselect._lib.notebook import count
from skselect.cli.cells import (
    as_arrow,
    first_failure,
    is_empty,
    is_missing,
    is_text,
    plain,
    to_numbers,
    value_type,
)
from skselect.cli.options import CsvLayout
from skselect.cli.reading import read_contents

#: What a cell of a CSV file can hold besides text.
_WRITTEN_AS_TEXT = (
    pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating,
    pa.types.is_decimal, pa.types.is_date, pa.types.is_time, pa.types.is_timestamp,
)  # fmt: skip
_USUAL = CsvLayout()
#: Rows that are written at a time.
_AT_ONCE = 1 << 16
#: A date such as 31.01.2026 or 31/01/2026.
_DAY_FIRST = re.compile(r"^\s*(\d\d)[./-](\d\d)[./-](\d{4})")
_DAY_FIRST_DATE = re.compile(r"^\s*\d\d?[./-]\d\d?[./-]\d{4}")
#: A number that may be a date such as 20260131.
_EIGHT_DIGITS = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
#: What the cells of a column of true and false may say.
_TRUTHS = dict.fromkeys(["true", "1", "1.0", "yes"], 1)
_TRUTHS |= dict.fromkeys(["false", "0", "0.0", "no"], 0)


@dataclass(frozen=True)
class TableFile:
    """A table that was read. Messages count its rows from 1, the first one below the header.

    Parameters
    ----------
    name : str
    schema : Schema
        The columns and their types in Arrow. Those of a CSV file or a workbook are text.
    read : callable
        Returns some columns.
    layout : CsvLayout
        How a CSV file is written.
    is_text : bool
        Whether it is a CSV file or a workbook, in which everything is text.
    is_csv : bool
    """

    name: str
    schema: Any
    read: Callable[[list[str]], Any]
    layout: CsvLayout = _USUAL
    is_text: bool = False
    is_csv: bool = False

    @classmethod
    def open(
        cls, path: Path, layout: CsvLayout | None = None, argument: str = "TABLE"
    ) -> TableFile:
        """Read a table; refuse what is no table. Of a Parquet file only the columns are known."""
        name = path.name
        if path == Path("-"):
            name = "standard input"
        elif not path.exists():
            raise ValueError(f"{argument}: there is no file {str(path)!r}.")
        contents = read_contents(path, f"{argument}: {name}", layout or _USUAL)
        file = cls(
            name,
            contents.schema,
            contents.read,
            contents.layout,
            contents.is_text,
            contents.is_csv,
        )
        file.refuse_equal_names()
        row_checks.check_any_rows(contents.n_rows, name)
        return file

    def refuse_equal_names(self) -> None:
        """Refuse columns that share a name."""
        names = self.schema.names
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(
                f"{self.name} has several columns of the name {repeated}; rename them."
            )

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The type of each column."""
        return dict(zip(self.schema.names, self.schema.types, strict=True))

    def cells(self, columns: Iterable[str | None] | None = None) -> Any:
        """Return some columns, or all, as Arrow holds them; a None among them is no column."""
        wanted = self.schema.names
        if columns is not None:
            wanted = [name for name in dict.fromkeys(columns) if name is not None]
        row_checks.check_columns(wanted, self.schema.names, self.name)
        # A column may share the beginning of its name with another one.
        cells = self.read(wanted).select(wanted)
        fields = []
        for field in cells.schema:
            is_view = pa.types.is_string_view(field.type)  # few functions take views
            fields.append(field.with_type(pa.large_string()) if is_view else field)
        return cells.cast(pa.schema(fields, cells.schema.metadata))

    def rows(self, columns: Iterable[str | None] | None = None) -> pd.DataFrame:
        """Return some columns, or all, with an index that counts the rows from 0."""
        return self.cells(columns).to_pandas(ignore_metadata=True, types_mapper=pd.ArrowDtype)

    def typed(self) -> pd.DataFrame:
        """Return all columns, with the types that the values of a CSV file suggest."""
        if not self.is_text:
            return self.cells().to_pandas()
        text = io.StringIO()
        write_csv(self.cells(), text)
        text.seek(0)
        return pd.read_csv(text, decimal=self.layout.decimal)

    # What its cells hold

    def numbers(self, column: pd.Series) -> FloatArray:
        """Return a column as finite numbers, nan where one is missing."""
        cells = as_arrow(column)
        decimal = self.layout.decimal
        if pa.types.is_boolean(cells.type):
            raise self.error(column, 0, "numbers")
        try:
            numbers = to_numbers(cells, decimal)
        except pa.ArrowException as error:
            bad = first_failure(len(cells), lambda n: to_numbers(cells[:n], decimal))
            raise self.error(column, bad, "numbers") from error
        endless = np.isinf(numbers)
        if endless.any():
            raise self.error(column, endless.argmax(), "finite numbers")
        return numbers

    def complete_numbers(self, frame: pd.DataFrame) -> FloatArray:
        """Return columns as an array of numbers; refuse missing ones."""
        columns = [self.numbers(frame[name]) for name in frame]
        for name, numbers in zip(frame, columns, strict=True):
            self.refuse_missing(frame[name], np.isnan(numbers))
        return np.column_stack(columns)

    def refuse_missing(self, column: pd.Series, missing: BoolArray, more: str = "") -> None:
        """Refuse missing values, naming the first row that has one."""
        if missing.any():
            first_row = column.index[missing][0] + 1
            raise ValueError(
                f"{self.name}: column {column.name!r} has {int(missing.sum())} missing "
                f"values, the first in row {first_row}; leave such rows out, "
                f"or fill them in{more}."
            )

    def tell_words(self, column: pd.Series) -> None:
        """Say how many cells of a column are words that mean missing."""
        cells = column[is_missing(column) & ~is_empty(column)].astype(str)
        words = cells[cells.str.strip() != ""]
        if len(words):
            warn_user(
                f"{self.name}: {count(len(words), 'cell')} of column {column.name!r} counted as "
                f"missing, because of a word such as {words.iloc[0]!r}."
            )

    def error(self, column: pd.Series, position: Any, wanted: str) -> ValueError:
        """Return an error that names the bad value at a position in a column."""
        row = column.index[position] + 1
        value = column.iloc[position]
        advice = ""
        if wanted == "numbers" and isinstance(value, str):
            advice = self._advise_decimal(value)
        return ValueError(
            f"{self.name}: column {column.name!r} must hold {wanted}, but row {row} holds "
            f"{value!r}.{advice}"
        )

    def _advise_decimal(self, text: str) -> str:
        """Say what to do if a text is a number with the other decimal sign, or per cents."""
        cell = pa.array([text])
        with suppress(pa.ArrowException):
            to_numbers(cell, self.layout.decimal)
            return " Write all numbers of a column with a per cent sign, or none."
        with suppress(pa.ArrowException):
            if self.layout.decimal == ".":
                to_numbers(cell, ",")
                return " For decimal commas say --decimal ,."
            to_numbers(cell, ".")
            return " It has a decimal point: leave --decimal out."
        return ""

    def times(
        self, column: pd.Series, time_format: str | None, *, dayfirst: bool
    ) -> tuple[FloatArray, str]:
        """Return times as numbers ("number"), or as microseconds since 1970 in UTC ("time")."""
        from skselect.monitoring.log import read_dates  # noqa: PLC0415 - one command needs it

        self.refuse_missing(column, is_missing(column))
        form = "--dayfirst" if dayfirst else "--time-format"
        names_form = dayfirst or time_format is not None
        if dayfirst and time_format is not None:
            raise ValueError("--dayfirst goes without --time-format: name the form of dates once.")
        cells = as_arrow(column)
        if names_form and pa.types.is_temporal(cells.type):
            raise ValueError(
                f"{form}: column {column.name!r} holds values of the type {cells.type}, no text; "
                "leave the option out."
            )
        if not names_form and _is_number(cells[:1], self.layout.decimal):
            # The first cell tells numbers from dates.
            self._refuse_dates_as_numbers(column)
            return self.numbers(column), "number"
        values = plain(column)
        if time_format is not None:
            times = read_dates(values.astype(str), time_format)
        elif dayfirst:
            dates = _plain_dates(values)
            if not dates.str.contains(_DAY_FIRST_DATE).any():
                raise ValueError(
                    f"--dayfirst: no date in column {column.name!r} has the day first, such as "
                    f"{dates.iloc[0]!r}; leave it out."
                )
            times = read_dates(_put_years_first(dates))
        elif is_text(cells.type):
            times = read_dates(_plain_dates(values))
        else:
            times = read_dates(values)
        unread = np.isnan(times)
        if unread.any():
            position = int(unread.argmax())
            wanted = _name_dates(values.iloc[[position]], time_format, dayfirst=dayfirst)
            raise self.error(column, position, wanted)
        return times, "time"

    def _refuse_dates_as_numbers(self, column: pd.Series) -> None:
        """Refuse numbers of eight digits that may be dates: 18 days would count as 90."""
        texts = plain(column).astype(str)
        if texts.str.fullmatch(_EIGHT_DIGITS).all():
            raise ValueError(
                f"--time: {texts.iloc[0]} in column {column.name!r} may be a date or a number. Say "
                '--time-format "%Y%m%d" for dates, or write numbers as '
                f"{texts.iloc[0]}.0."
            )

    def names(self, column: pd.Series) -> Any:
        """Return the names of cases as text in Arrow: 7 and 7.0 are the same number."""
        from skselect.monitoring.log import check_names  # noqa: PLC0415 - few commands need it

        self.refuse_missing(column, is_empty(column))
        cells = as_arrow(column)
        if not (is_text(cells.type) or pa.types.is_integer(cells.type)):
            objects = np.array(cells.to_pylist(), dtype=object)
            cells = pa.array(check_names(objects))
        return cells.cast(pa.large_string())

    def booleans(self, column: pd.Series) -> BoolArray:
        """Return a column of true and false as an array; 1 and 0, yes and no mean the same."""
        words = [str(cell).strip().lower() for cell in plain(column)]
        truths = np.array([_TRUTHS.get(word, -1) for word in words])
        unread = truths < 0
        if unread.any():
            raise self.error(column, unread.argmax(), "true or false")
        return truths == 1


def _is_number(cells: Any, decimal: str) -> bool:
    """Tell whether cells can be read as numbers."""
    with suppress(pa.ArrowException):
        to_numbers(cells, decimal)
        return True
    return False


def _name_dates(date: pd.Series, time_format: str | None, *, dayfirst: bool) -> str:
    """Say which dates are read, where one of them is not."""
    from skselect.monitoring.log import read_dates  # noqa: PLC0415 - one command needs it

    if time_format is not None:
        return f"dates such as {time_format}"
    if dayfirst:
        return "dates such as 31.01.2026, the day first (--time-format reads others)"
    has_day_first = not np.isnan(read_dates(_put_years_first(_plain_dates(date)))).any()
    remedy = "or say --dayfirst, or --time-format" if has_day_first else "or say --time-format"
    return f"numbers, or dates such as 2026-01-31T09:30 ({remedy})"


def _plain_dates(dates: pd.Series) -> pd.Series:
    """Return texts as ISO 8601 has them: Z for UTC, a point before fractions of a second."""
    texts = dates.astype(str)
    zoned = texts.str.replace(r"\s*UTC$", "Z", regex=True)
    return zoned.str.replace(r"(:\d\d),(\d+)", r"\1.\2", regex=True)


def _put_years_first(dates: pd.Series) -> pd.Series:
    """Return texts such as 31.1.2026 as 2026-01-31."""
    two_digits = dates.str.replace(r"(?<!\d)(\d)(?=[./-])", r"0\1", regex=True)
    return two_digits.str.replace(_DAY_FIRST, r"\3-\2-\1", regex=True)


# Writing -----------------------------------------------------------------------------------------


def write_csv(
    cells: Any, file: TextIO, separator: str = ",", decimal: str = ".", newline: str = "\n"
) -> None:
    """Write a table as CSV; refuse columns that CSV cannot hold.

    Only cells that need quotes have them. Whole floats stay floats, such as 1.0.
    """
    for column in cells.schema:
        kind = value_type(column.type)
        if not (is_text(kind) or any(fits(kind) for fits in _WRITTEN_AS_TEXT)):
            raise ValueError(
                f"A CSV file cannot hold column {column.name!r}, whose values are of the type "
                f"{kind}. Write a .parquet file (--out decided.parquet)."
            )
    names = pa.array(cells.column_names, pa.large_string())
    header = _quoted(names, separator).to_pylist()
    file.write(separator.join(header) + newline)
    for rows in cells.to_batches(max_chunksize=_AT_ONCE):
        texts = [_quoted(_as_text(column, decimal), separator) for column in rows.columns]
        texts[-1] = _join([texts[-1], ""], newline)  # each row ends its line
        # The buffer holds the text of all rows, one after the other.
        _, _, whole_text = _join(texts, separator).buffers()
        file.write(str(whole_text, "utf-8"))


def _as_text(cells: Any, decimal: str) -> Any:
    """Return cells as text."""
    kind = value_type(cells.type)
    text = pa.large_string()
    if pa.types.is_boolean(kind):
        truths = cells.cast(kind)
        return pc.if_else(truths, pa.scalar("True", text), pa.scalar("False", text))
    is_float = pa.types.is_floating(kind)
    if is_float:
        cells = pc.if_else(pc.is_nan(cells), None, cells)
    written = cells.cast(kind).cast(text)
    if is_float or pa.types.is_decimal(kind):
        written = pc.replace_substring_regex(written, r"^(-?[0-9]+)$", r"\1.0")
        return pc.replace_substring(written, ".", decimal)
    return written


def _quoted(text: Any, separator: str) -> Any:
    """Return text with quotes around the cells that need them; a carriage return ends rows too."""
    needs = pc.match_substring_regex(text, f'[{re.escape(separator)}"\r\n]')
    if not pc.any(needs).as_py():
        return text
    escaped = pc.replace_substring(text, '"', '""')
    quoted = _join(['"', escaped, '"'], "")
    return pc.if_else(needs, quoted, text)


def _join(texts: list[Any], separator: str) -> Any:
    """Join texts row by row; a missing one is empty."""
    kind = pa.large_string()
    parts = []
    for text in (*texts, separator):
        parts.append(pa.scalar(text, kind) if isinstance(text, str) else text)  # noqa: PERF401
    return pc.binary_join_element_wise(*parts, null_handling="replace", null_replacement="")
