"""What the tests share: small predictions with known traits."""

import io
import sys

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import settings

from skselect import Outcomes, Predictions
from skselect._lib import files as _files

mpl.use("Agg")

# Random cases, the same ones in every run: the tests say how many in percent of these.
settings.register_profile("few", max_examples=40, deadline=None, derandomize=True)
settings.register_profile("many", max_examples=100, deadline=None, derandomize=True)
settings.load_profile("few")


@pytest.fixture
def rng():
    return np.random.default_rng(12345)


@pytest.fixture
def predictions(rng):
    p = rng.uniform(0, 1, 1500)
    y = (rng.random(1500) < p).astype(int)
    return Predictions.from_proba(y, np.column_stack([1 - p, p]))


@pytest.fixture
def good(rng):
    confidence = rng.random(2000)
    return Outcomes(rng.random(2000) < 0.1 * (1 - confidence) ** 2, confidence)


@pytest.fixture
def terminal(monkeypatch):
    """Return a function that makes standard error a terminal, where bars appear at once."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def make():  # called by the test itself: pytest replaces standard error before each test
        monkeypatch.setattr(sys, "stderr", Terminal())
        monkeypatch.setattr(_files, "_BAR_DELAY", 0)
        return sys.stderr

    return make
