"""Random calibration rows, with ties and whole weights; where the values of other packages lie."""

from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB

from skselect import SelectiveClassifier
from skselect.calibration import (
    BetaCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    SmoothIsotonicCalibrator,
    TemperatureCalibrator,
    VennAbersCalibrator,
)
from tests.brute import examples

ALL = [
    IsotonicCalibrator, SmoothIsotonicCalibrator, VennAbersCalibrator,
    PlattCalibrator, TemperatureCalibrator, BetaCalibrator,
]  # fmt: skip
SMOOTH = [kind for kind in ALL if kind is not IsotonicCalibrator]
PARAMETRIC = [PlattCalibrator, TemperatureCalibrator, BetaCalibrator]

PEERS = Path(__file__).parents[1] / "peers"  # written by benchmarks/peers_values.py

profile = examples(60)


@st.composite
def rows(draw, *, least=2):
    """Draw scores around zero (log-odds), outcomes and weights from 1 to 3."""
    n = draw(st.integers(least, 50))
    levels = draw(st.sampled_from([4, 1000]))
    score = np.array([draw(st.integers(-levels, levels)) * 3 / levels for _ in range(n)])
    y = np.array([draw(st.integers(0, 1)) for _ in range(n)])
    weight = np.array([draw(st.integers(1, 3)) for _ in range(n)])
    return score, y, weight


def table(n_classes, n=240):
    """Return features and codes of classes that a classifier can learn."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 3)) + 0.8 * codes[:, None], codes


def calibrated(calibration, X, y, estimator=None, **options):
    """Return a fitted classifier."""
    options = {"cv": 3, "random_state": 0} | options
    model = SelectiveClassifier(estimator or GaussianNB(), calibration=calibration, **options)
    return model.fit(X, y)


def overlapping(n=400, seed=0):
    """Return log-odds that are too sure, and outcomes."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0.4, 1.5, n)
    return 1.7 * z, (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
