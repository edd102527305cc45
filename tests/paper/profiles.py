"""The synthetic classifiers of arXiv 2605.01796, table 4: ten laws of the confidence, eight modes.

A law draws confidences. A mode turns a confidence into the chance of being right. The laws are
not spelled out to the last digit in print; those of `skselect.datasets` have the population values
that the published tables show (`test_population_values`).
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from skselect import Outcomes
from skselect.datasets._profiles import CALIBRATION_MODES, DISTRIBUTIONS

Array = np.ndarray

#: One seed for every table, settled before any result was seen.
SEED = 0

#: By the names of the tables.
LAWS = {
    published: DISTRIBUTIONS[ours]
    for published, ours in {
        "Uniform": "uniform", "Skew High": "skew_high", "Skew Low": "skew_low",
        "Bimodal": "bimodal", "Tight Hi": "tight_high", "Tight Lo": "tight_low",
        "Normal": "normal", "Log-Uniform Low": "log_uniform_low",
        "Log-Uniform High": "log_uniform_high", "Bell": "bell",
    }.items()
}  # fmt: skip

MODES = {
    published: CALIBRATION_MODES[ours]
    for published, ours in {
        "Random 0.5": "random", "Perfect": "perfect",
        "Underconf 0.2+0.8c": "underconfident_linear", "Underconf sqrt": "underconfident_sqrt",
        "Random over c": "underconfident_random", "Overconf 1-sqrt": "overconfident_sqrt",
        "Overconf 0.5c": "overconfident_half", "Random under c": "overconfident_random",
    }.items()
}  # fmt: skip


def stream(table: str, law: str, n: int) -> Generator:
    """Return the random numbers of one law in one table: a part of it draws what all of it does."""
    return np.random.default_rng([SEED, n, list(LAWS).index(law), *table.encode()])


def judge(rng: Generator, mode: str, confidence: Array) -> Outcomes:
    """Decide for each row whether it is right."""
    return Outcomes(rng.random(len(confidence)) >= MODES[mode](rng, confidence), confidence)
