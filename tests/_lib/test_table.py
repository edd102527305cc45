"""Tables whose text shows all of their columns."""

import pickle

import numpy as np
import pandas as pd
import pytest

from skselect._lib.table import WholeTable


@pytest.mark.parametrize("columns", ["60", "80", "300"])
def test_all_columns_are_shown_within_the_width(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    names = [f"a_long_name_{k}" for k in range(12)]
    table = WholeTable(np.ones((3, 12)), columns=names)
    for shown in (table, table.round(3), pickle.loads(pickle.dumps(table))):
        words, lines = str(shown).split(), str(shown).splitlines()
        assert [word for word in words if word in names] == names
        assert max(map(len, lines)) <= min(int(columns), 88)
    pd.testing.assert_frame_equal(
        pd.DataFrame(table), pd.DataFrame(np.ones((3, 12)), columns=names)
    )
