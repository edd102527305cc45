"""Isotonic, smooth isotonic and Venn-Abers against scikit-learn, the recipe, and two full fits."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy.optimize import isotonic_regression
from sklearn.isotonic import IsotonicRegression

from skselect.calibration import IsotonicCalibrator, SmoothIsotonicCalibrator, VennAbersCalibrator
from tests.calibration.cases import PEERS, profile, rows

GRID = np.linspace(-4, 4, 401)


@profile
@given(rows())
def test_isotonic_equals_scikit_learn(case):
    score, y, weight = case
    ours = IsotonicCalibrator().fit(score, y, weight)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(score, y, weight)
    np.testing.assert_allclose(ours.predict(GRID), theirs.predict(GRID), atol=1e-12)


# Smooth isotonic -------------------------------------------------------------------------


def pool(values, weight):
    """Pool neighbours until the means no longer fall; return the blocks as lists of indices."""
    blocks = []
    for i in range(len(values)):
        blocks.append([i])
        while len(blocks) > 1 and mean(blocks[-2], values, weight) >= mean(
            blocks[-1], values, weight
        ):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return blocks


def mean(block, values, weight):
    return sum(weight[i] * values[i] for i in block) / sum(weight[i] for i in block)


def smooth_isotonic(score, y, weight):
    """Return knots and values by the recipe, step by step, on lists."""
    levels = sorted(set(score.tolist()))
    total = [float(weight[score == x].sum()) for x in levels]
    rate = [float((weight * y)[score == x].sum()) / t for x, t in zip(levels, total, strict=True)]
    blocks = pool(rate, total)
    sizes = [sum(total[i] for i in block) for block in blocks]
    smoothed = [
        (sum(total[i] * rate[i] for i in block) + 1) / (size + 2)
        for block, size in zip(blocks, sizes, strict=True)
    ]
    values = np.empty(len(blocks))
    for group in pool(smoothed, sizes):
        values[group] = mean(group, smoothed, sizes)
    return np.array([mean(block, levels, total) for block in blocks]), values


@profile
@given(rows())
def test_smooth_isotonic_is_its_recipe(case):
    score, y, weight = case
    knots, values = smooth_isotonic(score, y, weight)
    found = SmoothIsotonicCalibrator().fit(score, y, weight).predict(GRID)
    # Blocks of equal rate may be pooled or not where rounding decides; both are the recipe.
    np.testing.assert_allclose(found, np.interp(GRID, knots, values), atol=1e-9)


@profile
@given(rows())
def test_smooth_isotonic_stays_inside_its_bounds_and_rises(case):
    score, y, weight = case
    found = SmoothIsotonicCalibrator().fit(score, y, weight).predict(GRID)
    bound = 1 / (weight.sum() + 2)
    assert np.all((found >= bound) & (found <= 1 - bound))
    assert np.all(np.diff(found) >= 0)


def test_smooth_isotonic_ranks_what_isotonic_ties():
    rng = np.random.default_rng(0)
    score = rng.random(500)
    y = (rng.random(500) < score).astype(int)
    tied = IsotonicCalibrator().fit(score, y).predict(score)
    ranked = SmoothIsotonicCalibrator().fit(score, y).predict(score)
    assert len(np.unique(ranked)) > 5 * len(np.unique(tied))


# Venn-Abers ------------------------------------------------------------------------------


def fit_with(score, y, weight, s, outcome):
    """Return the isotonic fit at s of the rows and (s, outcome)."""
    levels, place = np.unique(np.append(score, s), return_inverse=True)
    w, a = np.append(weight, 1.0), np.append(y, float(outcome))
    total = np.bincount(place, w)
    fit = isotonic_regression(np.bincount(place, w * a) / total, weights=total).x
    return fit[np.searchsorted(levels, s)]


@profile
@given(rows(least=1))
def test_venn_abers_is_two_isotonic_fits(case):
    score, y, weight = case
    calibrator = VennAbersCalibrator().fit(score, y, weight)
    for s in [*score[:4], *(score[:3] + 0.001), -9.0, 9.0]:
        low, high = calibrator.predict_interval([s])
        assert low[0] == pytest.approx(fit_with(score, y, weight, s, 0), abs=1e-12)
        assert high[0] == pytest.approx(fit_with(score, y, weight, s, 1), abs=1e-12)
        assert calibrator.predict([s])[0] == pytest.approx(high[0] / (1 - low[0] + high[0]))


@profile
@given(rows())
def test_venn_abers_rises_and_is_never_certain(case):
    score, y, weight = case
    calibrator = VennAbersCalibrator().fit(score, y, weight)
    found = calibrator.predict(GRID)
    low, high = calibrator.predict_interval(GRID)
    assert np.all((found > 0) & (found < 1))
    assert np.all(low < high)
    for values in (found, low, high):
        assert np.all(np.diff(values) >= -1e-12)


def test_venn_abers_equals_the_package():
    rows = pd.read_csv(PEERS / "venn_abers.csv")
    known, new = rows[rows["y"].notna()], rows[rows["y"].isna()]
    found = VennAbersCalibrator().fit(known["score"], known["y"]).predict_interval(new["score"])
    np.testing.assert_allclose(np.column_stack(found), new[["low", "high"]], atol=1e-5)
