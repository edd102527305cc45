"""The synthetic classifiers of arXiv 2605.01796, table 4: ten laws of the confidence, eight modes.

A law draws confidences. A mode turns a confidence into the chance of being right. The laws are
not spelled out to the last digit in print; these give the published tables cell by cell
(`test_all_880_cells`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr, ndtri

from skselect import Outcomes

Array = np.ndarray

#: One seed for every table, settled before any result was seen.
SEED = 0


def _bimodal(rng: Generator, n: int) -> Array:
    return np.where(rng.random(n) < 0.5, rng.beta(3.0, 0.5, n), rng.beta(0.5, 3.0, n))


def _truncated_normal(rng: Generator, n: int) -> Array:
    """Draw N(.7, .1) within [0, 1]; clipping would give many ones."""
    low, high = ndtr((np.array([0.0, 1.0]) - 0.7) / 0.1)
    return np.asarray(0.7 + 0.1 * ndtri(rng.uniform(low, high, n)))


def _log_uniform(rng: Generator, low: float, high: float, n: int) -> Array:
    return np.exp(rng.uniform(np.log(low), np.log(high), n))


#: Distributions of the confidence, by their names in the tables.
LAWS: dict[str, Callable[[Generator, int], Array]] = {
    "Uniform": lambda rng, n: rng.random(n),
    "Skew High": lambda rng, n: rng.beta(3.0, 0.5, n),
    "Skew Low": lambda rng, n: rng.beta(0.5, 3.0, n),
    "Bimodal": _bimodal,
    "Tight Hi": lambda rng, n: rng.uniform(0.8, 1.0, n),
    "Tight Lo": lambda rng, n: rng.uniform(0.0, 0.2, n),
    "Normal": _truncated_normal,
    # The range ends at 1 - 1e-6: there the mean of c/(1 - c) is 1.5, up to 1 it is infinite.
    "Log-Uniform Low": lambda rng, n: _log_uniform(rng, 1e-4, 1 - 1e-6, n),
    "Log-Uniform High": lambda rng, n: 1.0 - _log_uniform(rng, 1e-6, 0.9, n),
    "Bell": lambda rng, n: rng.beta(5.0, 5.0, n),
}

#: The probability of being right at each confidence, by the names of the tables.
MODES: dict[str, Callable[[Generator, Array], Array]] = {
    "Random 0.5": lambda _, c: np.full_like(c, 0.5),
    "Perfect": lambda _, c: c,
    "Underconf 0.2+0.8c": lambda _, c: 0.2 + 0.8 * c,
    "Underconf sqrt": lambda _, c: np.sqrt(c),
    "Random over c": lambda rng, c: rng.uniform(c, 1.0),
    "Overconf 1-sqrt": lambda _, c: 1.0 - np.sqrt(1.0 - c),
    "Overconf 0.5c": lambda _, c: 0.5 * c,
    "Random under c": lambda rng, c: rng.uniform(0.0, c),
}


def stream(table: str, law: str, n: int) -> Generator:
    """Return the random numbers of one law in one table: a part of it draws what all of it does."""
    return np.random.default_rng([SEED, n, list(LAWS).index(law), *table.encode()])


def judge(rng: Generator, mode: str, confidence: Array) -> Outcomes:
    """Decide for each row whether it is right."""
    return Outcomes(rng.random(len(confidence)) >= MODES[mode](rng, confidence), confidence)
