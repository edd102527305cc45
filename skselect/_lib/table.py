"""A table whose text shows all of its columns."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from skselect._lib.notebook import terminal_width


class WholeTable(pd.DataFrame):
    """A data frame that `print` shows in blocks of columns as wide as the terminal.

    pandas leaves out the columns in the middle, such as a difference and its interval.
    """

    @property
    def _constructor(self) -> Callable[..., WholeTable]:
        return WholeTable

    def __repr__(self) -> str:
        widths = [len(str(name)) + 1 for name in self.columns]  # two blanks before each heading
        return self.to_string(line_width=terminal_width(), col_space=widths)
