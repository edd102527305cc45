"""The 80 synthetic classifiers of arXiv 2605.01796 by the names in its tables, and their seeds."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from skselect import Outcomes, datasets

#: One seed for every table, settled before any result was seen.
SEED = 0

#: Distributions of the confidence, by their names in the tables.
LAWS = {
    "Uniform": datasets.LAWS["uniform"],
    "Skew High": datasets.LAWS["skew_high"],
    "Skew Low": datasets.LAWS["skew_low"],
    "Bimodal": datasets.LAWS["bimodal"],
    "Tight Hi": datasets.LAWS["tight_high"],
    "Tight Lo": datasets.LAWS["tight_low"],
    "Normal": datasets.LAWS["normal"],
    "Log-Uniform Low": datasets.LAWS["log_uniform_low"],
    "Log-Uniform High": datasets.LAWS["log_uniform_high"],
    "Bell": datasets.LAWS["bell"],
}

#: The probability of being right at each confidence, by the names of the tables.
MODES = {
    "Random 0.5": datasets.MODES["random"],
    "Perfect": datasets.MODES["perfect"],
    "Underconf 0.2+0.8c": datasets.MODES["underconfident_linear"],
    "Underconf sqrt": datasets.MODES["underconfident_sqrt"],
    "Random over c": datasets.MODES["underconfident_random"],
    "Overconf 1-sqrt": datasets.MODES["overconfident_sqrt"],
    "Overconf 0.5c": datasets.MODES["overconfident_half"],
    "Random under c": datasets.MODES["overconfident_random"],
}


def stream(table: str, law: str, n: int) -> Generator:
    """Return the random numbers of one law in one table: a part of it draws what all of it does."""
    return np.random.default_rng([SEED, n, list(LAWS).index(law), *table.encode()])


def judge(rng: Generator, mode: str, confidence: np.ndarray) -> Outcomes:
    """Decide for each row whether it is right."""
    return Outcomes(rng.random(len(confidence)) >= MODES[mode](rng, confidence), confidence)
