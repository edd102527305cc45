"""Calibrators against independent optimisers, scikit-learn, the recipe, and two full fits.

Platt, beta and temperature scaling, plain and with a learnt share of guesses; the safeguard; what
all calibrators share; isotonic, smooth isotonic and Venn-Abers.
"""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy import optimize, special
from scipy.optimize import isotonic_regression
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

from skselect import AbstentionPolicy, SelectiveClassifier
from skselect.calibration import (
    BetaCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    SmoothIsotonicCalibrator,
    TemperatureCalibrator,
    VennAbersCalibrator,
)
from skselect.calibration._calibrators import CALIBRATORS, SoftmaxTemperature
from tests.calibration.cases import (
    ALL,
    PARAMETRIC,
    PEERS,
    SMOOTH,
    calibrated,
    overlapping,
    profile,
    rows,
    table,
)
from tests.common import check_schema
from tests.refusals import check_refused

GRID = np.linspace(-6, 6, 121)


def log_loss(z, target, weight):
    return float(np.sum(weight * (np.logaddexp(0, z) - target * z)))


@profile
@given(rows())
def test_platt_equals_an_independent_optimiser(case):
    score, y, weight = case
    positive, negative = weight[y == 1].sum(), weight[y == 0].sum()
    target = np.where(y == 1, (positive + 1) / (positive + 2), 1 / (negative + 2))

    def loss(theta):
        return log_loss(theta[0] * score + theta[1], target, weight)

    reference = optimize.minimize(
        loss, [0.1, 0.0], method="SLSQP", bounds=[(0, None), (None, None)],
        options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    found = PlattCalibrator(safeguard=False).fit(score, y, weight)
    assert found.slope_ >= 0
    assert loss([found.slope_, found.intercept_]) <= reference.fun + 1e-9
    expected = special.expit(reference.x[0] * score + reference.x[1])
    np.testing.assert_allclose(found.predict(score), expected, atol=1e-4)


@profile
@given(rows())
def test_beta_equals_an_independent_optimiser(case):
    score, y, weight = case
    found = BetaCalibrator().fit(score, y, weight)
    assert found.a_ >= 0
    assert found.b_ >= 0
    low, high = -np.logaddexp(0, -score), np.logaddexp(0, score)

    def loss(theta):
        return log_loss(theta[0] * low + theta[1] * high + theta[2], y, weight)

    bounds = [(0, 1e3), (0, 1e3), (-1e3, 1e3)]
    starts = [[1, 1, 0], [0, 0, 0], [3, 0.1, 1]]
    reference = min(
        optimize.minimize(loss, x, method="SLSQP", bounds=bounds, options={"ftol": 1e-14}).fun
        for x in starts
    )
    assert loss([found.a_, found.b_, found.c_]) <= reference + 1e-5 * max(1.0, reference)


def test_beta_and_venn_abers_equal_their_packages():
    rows = pd.read_csv(PEERS / "beta_calibration.csv")
    ours = BetaCalibrator(safeguard=False).fit(rows["score"], rows["y"]).predict(rows["score"])
    np.testing.assert_allclose(ours, rows["betacal"], atol=1e-4)
    rows = pd.read_csv(PEERS / "venn_abers.csv")
    known, new = rows[rows["y"].notna()], rows[rows["y"].isna()]
    found = VennAbersCalibrator().fit(known["score"], known["y"]).predict_interval(new["score"])
    np.testing.assert_allclose(np.column_stack(found), new[["low", "high"]], atol=1e-5)


def test_a_calibrated_classifier_is_left_nearly_as_it_is():
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 100_000)
    y = rng.random(100_000) < special.expit(z)
    for kind in PARAMETRIC:
        gap = kind().fit(z, y).predict(GRID) - special.expit(GRID)
        assert np.abs(gap).max() < 0.015, kind


@pytest.mark.parametrize("kind", [PlattCalibrator, BetaCalibrator])
def test_the_safeguard_is_the_mixture_with_the_base_rate(kind):
    score, y = overlapping(50)
    raw = kind(safeguard=False).fit(score, y).predict(GRID)
    safe = kind().fit(score, y).predict(GRID)
    np.testing.assert_allclose(safe, (50 * raw + y.mean()) / 51, rtol=1e-9)


@profile
@given(rows())
def test_maps_never_fall_and_are_never_certain(case):
    score, y, weight = case
    far = np.concatenate([[-1e6], GRID, [1e6]])
    for kind in ALL:
        found = kind().fit(score, y, weight).predict(far)
        assert np.all(np.diff(found) >= -1e-15), kind
        if kind in SMOOTH:
            assert np.all((found > 0) & (found < 1)), kind


# What all calibrators share ----------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind is not BetaCalibrator])
@profile
@given(case=rows())
def test_a_weight_is_the_row_repeated_and_zero_the_row_removed(kind, case):
    score, y, weight = case
    weight = weight - 1
    if weight.sum() == 0:
        weight = weight + 1
    weighted = kind().fit(score, y, weight)
    repeated = kind().fit(np.repeat(score, weight), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(GRID), repeated.predict(GRID), atol=1e-7)


@pytest.mark.parametrize("kind", ALL)
def test_overlapping_rows_of_weight_may_come_in_any_order_and_repeated(kind):
    """Beta too, which has no single best map of separable rows."""
    score, y = overlapping(150)
    rng = np.random.default_rng(1)
    weight, order = rng.integers(0, 4, 150), rng.permutation(150)
    weighted = kind().fit(score[order], y[order], weight[order])
    repeated = kind().fit(np.repeat(score, weight), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(GRID), repeated.predict(GRID), atol=1e-5)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("outcome", [0, 1])
def test_one_class_is_no_trouble(kind, outcome):
    found = kind().fit([-1.0, 0.0, 2.0], [outcome] * 3).predict(GRID)
    assert np.all((found >= 0) & (found <= 1))
    if kind is not TemperatureCalibrator:  # it cannot move 1/2
        assert np.all(found >= 0.5) if outcome else np.all(found <= 0.5)
    if kind in (PlattCalibrator, BetaCalibrator):
        # The base rate is then the least that three rows can tell, 1/5.
        safe = kind().fit([-1.0, 0.0, 2.0], [outcome] * 3)
        assert safe.prior_ == pytest.approx(0.8 if outcome else 0.2)
        assert np.all(np.abs(safe.predict([-1e9, 1e9]) - 0.5) <= 0.45)


@pytest.mark.parametrize("kind", ALL)
def test_bad_scores_are_named(kind):
    with pytest.raises(ValueError, match="score has 1 NaN"):
        kind().fit([0.1, np.nan], [0, 1])
    with pytest.raises(ValueError, match="score has 2 rows, but y has 3"):
        kind().fit([0.1, 0.2], [0, 1, 1])
    with pytest.raises(ValueError, match="sample_weight"):
        kind().fit([0.1, 0.2], [0, 1], [-1, 1])


# Where optimisers used to stop early -----------------------------------------------------------


def in_sample_loss(calibrator, score, y):
    p = np.clip(calibrator.predict(score), 1e-15, 1 - 1e-15)
    return -np.mean(np.where(y > 0, np.log(p), np.log1p(-p)))


@pytest.mark.parametrize("value", [0.0, 1e-8, 1000.0, 1e10, 1e200, -1e300])
def test_constant_scores_give_the_rate_in_any_order(value):
    y = np.r_[np.ones(2), np.zeros(8)]
    for kind in PARAMETRIC[::2]:
        for order in (slice(None), slice(None, None, -1)):
            found = kind(safeguard=False).fit(np.full(10, value), y[order]).predict([value])
            assert found[0] == pytest.approx(0.2, abs=0.06 if kind is PlattCalibrator else 1e-6)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6, 1e200])
def test_no_unit_of_decision_values_is_too_small_or_too_large(unit):
    score, y = overlapping(300)
    reference = in_sample_loss(PlattCalibrator(safeguard=False).fit(score, y), score, y)
    for kind in PARAMETRIC:
        found = kind(safeguard=False).fit(score * unit, y)
        assert in_sample_loss(found, score * unit, y) <= reference + 0.01, kind
    for safeguard in (True, False):
        one = TemperatureCalibrator(safeguard=safeguard).fit(score, y)
        other = TemperatureCalibrator(safeguard=safeguard).fit(score * unit, y)
        assert other.temperature_ == pytest.approx(one.temperature_ * unit, rel=1e-6)
        assert other.share_ == pytest.approx(one.share_, rel=1e-6)


@pytest.mark.parametrize("unit", [1e-320, 1e-310, 1e-301, 1e-300, 1e-290, 1e290, 1e304, 5e307])
@pytest.mark.parametrize("kind", [*PARAMETRIC, SmoothIsotonicCalibrator, IsotonicCalibrator])
def test_scores_of_any_size_are_mapped_rightly_or_refused(kind, unit):
    """At 1e-310 smooth isotonic gave inf, Platt .95 for .56 and beta nan."""
    score, y = np.linspace(-1, 1, 12), np.array([0, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1])
    between = np.array([-0.43, 0.0, 0.61])
    refuses_small = kind in PARAMETRIC and unit < 1e-300
    if refuses_small or (kind is not IsotonicCalibrator and unit > 1e305):
        check_refused("score", kind().fit, score * unit, y)
        return
    fitted = kind().fit(score * unit, y).predict(between * unit)
    expected = kind().fit(score, y).predict(between)
    if kind is BetaCalibrator and unit != 1:
        assert np.all(np.isfinite(fitted))  # it is not free of units
    elif unit > 1e-307:
        np.testing.assert_allclose(fitted, expected, atol=1e-6 if unit > 1e-299 else 1e-3)
    else:  # no difference
        np.testing.assert_allclose(fitted, 0.5, atol=1e-9)


def test_logits_of_any_size_are_mapped_rightly_or_refused(rng):
    logits = rng.normal(size=(300, 3))
    codes = np.array([rng.choice(3, p=p) for p in special.softmax(2 * logits, axis=1)])
    expected = SoftmaxTemperature().fit(logits, codes, np.ones(300)).predict(logits)
    for unit in (1e-299, 1e303):
        found = SoftmaxTemperature().fit(logits * unit, codes, np.ones(300))
        np.testing.assert_allclose(found.predict(logits * unit), expected, atol=1e-6)
    for unit in (1e-310, 1e307):
        check_refused("scores", SoftmaxTemperature().fit, logits * unit, codes, np.ones(300))


@pytest.mark.parametrize("scores", [(-119.57, 5.40), (-137.0, 142.0), (-34.5, 34.5), (-8, 0, 90)])
def test_few_distinct_scores_give_one_beta_map(scores):
    """Many maps fit two values equally well; the order of the rows must not choose."""
    rng = np.random.default_rng(0)
    score, y = rng.choice(scores, 100), rng.integers(0, 2, 100)
    grid = np.linspace(min(scores), max(scores), 50)
    expected = BetaCalibrator().fit(score, y).predict(grid)
    for _ in range(5):
        order = rng.permutation(100)
        found = BetaCalibrator().fit(score[order], y[order]).predict(grid)
        np.testing.assert_allclose(found, expected, atol=1e-4)


def guessing_loss(score, y, weight, temperature, share):
    """The documented objective, written down once more."""
    p = (1 - share) * special.expit(score / temperature) + share / 2
    own = np.where(y == 1, p, 1 - p)
    return -float(np.sum(weight * np.log(own)) + np.log(share))


def many_classes(noise=0.0, n=800, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (n, 4))
    codes = np.array([rng.choice(4, p=p) for p in special.softmax(logits, axis=1)])
    codes = np.where(rng.random(n) < noise, rng.integers(0, 4, n), codes)
    return 2.2 * logits, codes, rng.integers(1, 4, n).astype(float)


@profile
@given(rows())
def test_plain_temperature_equals_an_independent_optimiser(case):
    score, y, weight = case
    found = TemperatureCalibrator(safeguard=False).fit(score, y, weight)
    scale = np.average(np.abs(score), weights=weight) or 1.0
    assert 0.999e-3 <= found.temperature_ / scale <= 1.001e3
    reference = optimize.minimize_scalar(
        lambda t: log_loss(score / scale / np.exp(t), y, weight),
        bounds=np.log([1e-3, 1e3]), method="bounded", options={"xatol": 1e-10},
    )  # fmt: skip
    assert log_loss(score / found.temperature_, y, weight) <= reference.fun * (1 + 1e-9) + 1e-9


@profile
@given(rows())
def test_the_share_keeps_its_bounds_and_the_answer_its_side(case):
    score, y, weight = case
    found = TemperatureCalibrator().fit(score, y, weight)
    n = weight.sum()
    assert 1 / (n + 1) * (1 - 1e-6) <= found.share_ <= max(0.2, 2 / (n + 2))
    p = found.predict(GRID)
    assert np.all((p > 0.5) == (GRID > 0)) or np.allclose(p, 0.5, atol=1e-3)
    assert np.all((p >= found.share_ / 2 - 1e-15) & (p <= 1 - found.share_ / 2 + 1e-15))


RNG = np.random.default_rng(0)
NORMAL, HEAVY = RNG.normal(0, 3, 300), RNG.standard_t(1, 300)
HARD_CASES = {
    "separable": (NORMAL, NORMAL > 0),
    "the wrong way round": (NORMAL, NORMAL < 0),
    "one class": (NORMAL, NORMAL > -99),
    "tied": (np.round(NORMAL), RNG.random(300) < special.expit(np.round(NORMAL))),
    "two scores": (np.sign(NORMAL), RNG.random(300) < 0.5 + 0.4 * np.sign(NORMAL)),
    "outliers": (HEAVY, RNG.random(300) < special.expit(HEAVY)),
    "no signal": (NORMAL, RNG.random(300) < 0.5),
    "too sure": overlapping(300),
    "a tenth wrong": (overlapping(300)[0], overlapping(300)[1] ^ (RNG.random(300) < 0.1)),
}


@pytest.mark.parametrize("case", HARD_CASES)
def test_no_point_nearby_within_the_bounds_is_better(case):
    score, y = HARD_CASES[case]
    found = TemperatureCalibrator().fit(score, y)
    scale = np.mean(np.abs(score))
    own = guessing_loss(score, y, np.ones(300), found.temperature_, found.share_)
    for step in (1e-5, 1e-3, 1e-1):
        for by_t, by_share in np.ndindex(3, 3):
            near_t = found.temperature_ * (1 + step * (by_t - 1))
            near_share = found.share_ * (1 + step * (by_share - 1))
            t, share = np.clip(near_t, 0.1 * scale, 1e3 * scale), np.clip(near_share, 0, 0.2)
            assert own <= guessing_loss(score, y, np.ones(300), t, share) + 1e-9


def test_separable_rows_keep_their_order():
    """Ever sharper would be ever likelier, and tie all rows at the top."""
    score = np.r_[-8.0, -3.0, -1.0, 1.0, 2.0, 9.0]
    found = TemperatureCalibrator().fit(score, score > 0).predict(score)
    assert np.all(np.diff(found) > 0)
    assert found[-1] <= 1 - 0.5 / 7
    logits = np.column_stack([np.zeros(6), score, np.full(6, -9.0)])
    many = SoftmaxTemperature().fit(logits, (score > 0).astype(int), np.ones(6))
    assert len(np.unique(many.predict(logits)[:, 1])) == 6


@pytest.mark.parametrize("safeguard", [True, False])
def test_a_graded_outcome_is_a_part_of_both(safeguard):
    score, y = overlapping(60)
    graded = np.where(np.arange(60) % 3 == 0, 0.25, y)
    found = TemperatureCalibrator(safeguard=safeguard).fit(score, graded, np.full(60, 4))
    times = np.full(60, 4)
    ones = np.where(graded == 0.25, 1, times * y)
    both = TemperatureCalibrator(safeguard=safeguard).fit(
        np.repeat(np.r_[score, score], np.r_[ones, times - ones]),
        np.repeat(np.r_[np.ones(60), np.zeros(60)], np.r_[ones, times - ones]),
    )
    np.testing.assert_allclose(found.predict(GRID), both.predict(GRID), atol=1e-8)


# Many classes ----------------------------------------------------------------------------


@pytest.mark.parametrize("safeguard", [True, False])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_softmax_temperature_and_share_equal_an_independent_optimiser(noise, safeguard):
    logits, codes, weight = many_classes(noise)

    def loss(x):
        share = x[1] if safeguard else 0.0
        chance = special.softmax(logits / np.exp(x[0]), axis=1)[np.arange(800), codes]
        own = (1 - share) * chance + share / 4
        return -float(np.sum(weight * np.log(own)) + (np.log(share) if safeguard else 0))

    reference = optimize.minimize(
        loss, [0.5, 0.05], bounds=[(-3, 3), (1e-9, 0.2)], method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 5000},
    )  # fmt: skip
    found = SoftmaxTemperature(safeguard=safeguard).fit(logits, codes, weight)
    assert loss([np.log(found.temperature_), found.share_]) <= reference.fun + 1e-6
    if safeguard:
        assert found.share_ == pytest.approx(reference.x[1], rel=1e-3)
    elif not noise:
        assert found.temperature_ == pytest.approx(2.2, abs=0.25)
    proba = found.predict(logits)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(proba.argmax(axis=1), logits.argmax(axis=1))
    assert proba.min() >= 1e-9 or not safeguard


@pytest.mark.parametrize("safeguard", [True, False])
def test_softmax_temperature_of_two_classes_is_the_scalar_one(safeguard):
    score, y = overlapping()
    logits = np.column_stack([-score / 2, score / 2])
    two = SoftmaxTemperature(safeguard=safeguard).fit(logits, y, np.ones(len(y)))
    one = TemperatureCalibrator(safeguard=safeguard).fit(score, y)
    assert two.temperature_ == pytest.approx(one.temperature_, rel=1e-9)
    np.testing.assert_allclose(two.predict(logits)[:, 1], one.predict(score), atol=1e-9)


def test_neither_two_equal_classes_at_the_top_nor_outliers_set_the_scale():
    rng = np.random.default_rng(0)
    base = rng.normal(0, 1, (600, 3))
    logits = np.column_stack([base, base[:, 0] + 1e-7])
    codes = np.array([rng.choice(4, p=p) for p in special.softmax(logits / 3, axis=1)])
    found = SoftmaxTemperature().fit(logits, codes, np.ones(600))
    assert found.temperature_ == pytest.approx(3, rel=0.4)
    logits[0] = [1e250, -1e250, 0, 0]
    assert 0 < SoftmaxTemperature().fit(logits, codes, np.ones(600)).temperature_ < np.inf
    score, y = overlapping()
    for unit in (1e300, 9e304):
        hot = TemperatureCalibrator().fit(score * unit / np.abs(score).max(), y)
        assert np.isfinite(hot.temperature_)
        assert np.all(np.isfinite(hot.predict([-1e308, 0.0, 1e308])))


FINE_GRID = np.linspace(-4, 4, 401)


@profile
@given(rows())
def test_isotonic_equals_scikit_learn(case):
    score, y, weight = case
    ours = IsotonicCalibrator().fit(score, y, weight)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(score, y, weight)
    np.testing.assert_allclose(ours.predict(FINE_GRID), theirs.predict(FINE_GRID), atol=1e-12)


# Smooth isotonic -------------------------------------------------------------------------


def smooth_isotonic(score, y, weight):
    """Return knots and values by the recipe, with the blocks of scikit-learn."""

    def pool(values, weight):
        place = np.arange(len(values))
        fitted = IsotonicRegression().fit(place, values, weight).predict(place)
        return np.unique(np.round(fitted, 12), return_inverse=True)[1]

    levels, place = np.unique(score, return_inverse=True)
    total, success = np.bincount(place, weight), np.bincount(place, weight * y)
    block = pool(success / total, total)
    size = np.bincount(block, total)
    smoothed = (np.bincount(block, success) + 1) / (size + 2)
    group = pool(smoothed, size)
    values = (np.bincount(group, size * smoothed) / np.bincount(group, size))[group]
    return np.bincount(block, total * levels) / size, values


@profile
@given(rows())
def test_smooth_isotonic_is_its_recipe(case):
    score, y, weight = case
    knots, values = smooth_isotonic(score, y, weight)
    found = SmoothIsotonicCalibrator().fit(score, y, weight).predict(FINE_GRID)
    np.testing.assert_allclose(found, np.interp(FINE_GRID, knots, values), atol=1e-9)


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


# As objects: with options, and of your own --------------------------------------------------------


class Halfway(BaseEstimator):
    """Half the score, half the base rate."""

    def __init__(self, share=0.5):
        self.share = share

    def fit(self, score, y, sample_weight=None):
        self.rate_ = np.average(y, weights=sample_weight)
        return self

    def predict(self, score):
        return (1 - self.share) * score + self.share * self.rate_


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_a_missing_score_has_no_probability(kind):
    calibrator = CALIBRATORS[kind]().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    assert np.isnan(calibrator.predict(np.array([0.5, np.nan, 0.2]))).tolist() == [0, 1, 0]
    if hasattr(calibrator, "predict_interval"):
        assert np.isnan(calibrator.predict_interval([0.5, np.nan])).tolist() == [[0, 1]] * 2


@pytest.mark.parametrize("kind", [*CALIBRATORS, "sigmoid"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_object_is_the_same_as_its_name(kind, n_classes):
    X, y = table(n_classes)
    name = "platt" if kind == "sigmoid" else kind  # scikit-learn's word
    named, built = calibrated(kind, X, y), calibrated(CALIBRATORS[name](), X, y)
    np.testing.assert_array_equal(built.predict_proba(X), named.predict_proba(X))
    assert built.calibration_.kind == named.calibration_.kind == name


def test_options_of_an_object_count_and_can_be_searched():
    X, y = table(2)
    plain = calibrated(PlattCalibrator(safeguard=False), X, y)
    assert plain.calibration_.maps[0].share_ == 0.0
    search = GridSearchCV(
        SelectiveClassifier(GaussianNB(), calibration=TemperatureCalibrator()),
        {"calibration__safeguard": [True, False]}, scoring="neg_log_loss", cv=2,
    ).fit(X, y)  # fmt: skip
    assert len(search.cv_results_["params"]) == 2


def test_a_calibrator_of_your_own_gets_the_probabilities():
    X, y = table(2)
    model = calibrated(Halfway(), X, y)
    raw = GaussianNB().fit(X, y).predict_proba(X)
    shares = np.array([1 - y.mean(), y.mean()])
    np.testing.assert_allclose(model.predict_proba(X), 0.5 * raw + 0.5 * shares)
    assert model.calibration_.kind == "external:Halfway"
    X, y = table(3)
    own = calibrated(IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1), X, y)
    ours = calibrated("isotonic", X, y)
    np.testing.assert_allclose(own.predict_proba(X), ours.predict_proba(X), atol=1e-12)


def test_it_is_saved_by_name_only_and_on_demand():
    X, y = table(2)
    model = calibrated(Halfway(), X, y, threshold=0.7)
    policy = AbstentionPolicy(
        classes=model.classes_, threshold=0.7, calibration=model.calibration_, abstain_label=-1
    )
    for save in (policy.to_json, policy.to_dict):
        with pytest.raises(ValueError, match=r"Halfway is a calibrator of your own.*allow_ext"):
            save()
    text = policy.to_json(allow_external=True)
    check_schema(text)
    restored = AbstentionPolicy.from_json(text)
    with pytest.raises(ValueError, match=r"cannot hold it; hand .* dataclasses\.replace"):
        restored.decide([[0.1, 0.9]])
    again = dataclasses.replace(restored, calibration=model.calibration_)
    assert again.decide([[0.1, 0.9]]).equals(policy.decide([[0.1, 0.9]]))


class Bare:
    """A calibrator that is no scikit-learn estimator."""

    def fit(self, score, y):
        return self

    def predict(self, score):
        return score


class Unweighted(Bare, BaseEstimator):
    """A calibrator whose fit takes no weights."""


class Line(BaseEstimator):
    """A straight line through the scores of fit, from 0 to 1: it goes on beyond them."""

    def fit(self, score, y, sample_weight=None):
        self.low_, self.high_ = np.min(score), np.max(score)
        return self

    def predict(self, score):
        return (score - self.low_) / (self.high_ - self.low_)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (LogisticRegression(), r"LogisticRegression.fit.* failed on a vector of 240 scores"),
        (Unweighted(), r"Unweighted.fit must take \(score, y, sample_weight\)"),
        (
            IsotonicRegression(),
            r"scores \[0.0, 1.0\] it returned \[nan, nan\]\. Set out_of_bounds='clip'",
        ),
        (
            IsotonicRegression(out_of_bounds="raise"),
            "it raised ValueError: A value",
        ),
        (Line(), r"also beyond those of fit, from 0\.\d+ to 0\.\d+; for the scores"),
        (Bare(), "or a calibrator: a scikit-learn estimator object"),
        (True, "or a calibrator: a scikit-learn estimator object"),
        *((own, "calibration must be one of") for own in ("hope", 3, PlattCalibrator, object())),
    ],
)
def test_what_a_calibrator_of_yours_lacks_is_named(own, message):
    X, y = table(2)
    for scope in ("probabilities", "confidence"):
        with pytest.raises(ValueError, match=message):
            calibrated(own, X, y, calibration_scope=scope)


@pytest.mark.parametrize("kind", [kind for kind in CALIBRATORS if kind != "isotonic"])
def test_weights_that_shrink_the_maps_of_many_classes_warn_once(kind):
    X, y = table(3)
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    with pytest.warns(UserWarning, match="sample_weight sums to 2.4 for 240 rows") as caught:
        SelectiveClassifier(frozen, calibration=kind).fit(X, y, sample_weight=np.full(240, 0.01))
    assert len(caught) == 1
