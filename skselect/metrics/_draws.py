"""Errors drawn at random: what a classifier of honest confidences would have done.

Given its confidence c, a row of an honest classifier is wrong with chance 1 - c,
independently of the others. Only the errors are drawn, so that a draw costs about as much
as it has errors, not as it has rows.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from skselect._typing import FloatArray, IntArray

#: Rows drawn at once; bounds the memory, not the result.
_BATCH = 1 << 21


def error_sums(
    chance: FloatArray, value: FloatArray, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Draw the errors of all rows `n_draws` times; return the sum of `value` over each draw's.

    Parameters
    ----------
    chance : ndarray of shape (n,)
        Chance of an error of each row, in [0, 1].
    value : ndarray of shape (n,)
    n_draws : int
    rng : Generator

    Returns
    -------
    ndarray of shape (n_draws,)
    """
    order = np.lexsort((value, -chance))  # the order of the rows must not change the draws
    order = order[chance[order] > 0]
    chance, value = chance[order], value[order]
    sums = np.zeros(n_draws)
    # Rows of similar chance are drawn together, those under 2^-60 in one go.
    halvings = np.minimum(np.floor(-np.log2(chance)), 60).astype(np.int64)
    edges = np.flatnonzero(np.diff(halvings, prepend=-1, append=61))
    for start, end in pairwise(edges):
        _add_errors(sums, chance[start:end], value[start:end], rng)
    return sums


def _add_errors(
    sums: FloatArray, chance: FloatArray, value: FloatArray, rng: np.random.Generator
) -> None:
    """Add the errors of rows whose chances are alike, `chance[0]` being the largest."""
    n_rows, cap = len(chance), float(chance[0])
    step = max(1, int(_BATCH / max(n_rows * cap, 1.0)))
    for first in range(0, len(sums), step):
        n_draws = min(step, len(sums) - first)
        place = _successes(n_rows * n_draws, cap, rng)
        row = place % n_rows
        wrong = rng.random(len(row)) * cap < chance[row]  # thins chance `cap` to the row's own
        draw = place[wrong] // n_rows
        sums[first : first + n_draws] += np.bincount(
            draw, weights=value[row[wrong]], minlength=n_draws
        )


def _successes(n_trials: int, chance: float, rng: np.random.Generator) -> IntArray:
    """Return which of many independent trials succeed, by the gaps between successes."""
    if chance >= 1.0:
        return np.arange(n_trials)
    rate = -np.log1p(-chance)
    place, last = [], -1.0
    while last < n_trials:
        expected = (n_trials - last) * chance
        gaps = np.floor(rng.standard_exponential(int(expected + 6 * expected**0.5) + 10) / rate) + 1
        reached = last + np.cumsum(gaps)
        place.append(reached[reached < n_trials])
        last = reached[-1]
    return np.concatenate(place).astype(np.int64)
