"""Figures are closed after each test; predictions to draw."""

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture
def drawn(rng):
    """Return labels and calibrated probabilities of the second class."""
    p = rng.random(400)
    return (rng.random(400) < p).astype(int), p
