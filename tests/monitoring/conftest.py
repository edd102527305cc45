"""Predictions and outcomes that every test of this room starts from."""

import numpy as np
import pytest

from skselect import Outcomes, Predictions


@pytest.fixture
def predictions(rng):
    p = rng.uniform(0, 1, 1500)
    y = (rng.random(1500) < p).astype(int)
    return Predictions.from_proba(y, np.column_stack([1 - p, p]))


@pytest.fixture
def good(rng):
    confidence = rng.random(2000)
    return Outcomes(rng.random(2000) < 0.1 * (1 - confidence) ** 2, confidence)
