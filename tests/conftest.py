"""What the tests share: where real data may lie, and small predictions with known traits."""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from skselect import _files

mpl.use("Agg")

#: Real data sets beside the checkout; tests that need them say so when they are absent.
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def data_folder():
    if not DATA.is_dir():
        pytest.skip("the folder ../shared/data with real data sets is not there")
    return DATA


@pytest.fixture
def rng():
    return np.random.default_rng(12345)


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Return `capsys` with a terminal as standard error, where progress bars appear at once."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(_files, "_BAR_DELAY", 0)
    return capsys
