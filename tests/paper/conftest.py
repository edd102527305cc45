"""Tables worked out beforehand, which the tests of the papers compare with."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "reference"


@pytest.fixture(scope="session")
def reference() -> Callable[[str], pd.DataFrame]:
    """Return a reader of one table; a test that asks for an absent one is skipped."""

    def read(name: str) -> pd.DataFrame:
        path = FOLDER / name
        if not path.is_file():
            pytest.skip(f"the table ../shared/reference/{name} is not there")
        return pd.read_csv(path)

    return read
