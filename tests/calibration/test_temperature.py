"""Temperature scaling, plain and with a learnt share of guesses, against other optimisers."""

import numpy as np
import pytest
from hypothesis import given
from scipy import optimize, special

from skselect.calibration import TemperatureCalibrator
from skselect.calibration._temperature import SoftmaxTemperature
from tests.calibration.cases import overlapping, profile, rows

GRID = np.linspace(-6, 6, 121)


def plain_loss(z, y, weight):
    return float(np.sum(weight * (np.logaddexp(0, z) - y * z)))


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
        lambda t: plain_loss(score / scale / np.exp(t), y, weight),
        bounds=np.log([1e-3, 1e3]), method="bounded", options={"xatol": 1e-10},
    )  # fmt: skip
    assert plain_loss(score / found.temperature_, y, weight) <= reference.fun * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(("n", "noise"), [(40, 0.0), (400, 0.0), (400, 0.1), (3000, 0.05)])
def test_temperature_and_share_equal_an_independent_optimiser(n, noise):
    score, y = overlapping(n, seed=3)
    rng = np.random.default_rng(n)
    y = np.where(rng.random(n) < noise, 1 - y, y)
    weight = rng.integers(1, 4, n).astype(float)
    found = TemperatureCalibrator().fit(score, y, weight)
    sharpest = 0.1 * np.average(np.abs(score), weights=weight)
    reference = min(
        (
            optimize.minimize(
                lambda x: guessing_loss(score, y, weight, np.exp(x[0]), x[1]),
                [np.log(2.0), share],
                bounds=[(np.log(sharpest), 5), (1e-9, 0.2)],
                method="Nelder-Mead",
                options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 5000},
            )
            for share in (0.01, 0.15)
        ),
        key=lambda result: result.fun,
    )
    own = guessing_loss(score, y, weight, found.temperature_, found.share_)
    assert own <= reference.fun + 1e-5
    assert found.temperature_ == pytest.approx(np.exp(reference.x[0]), rel=1e-3)
    assert found.share_ == pytest.approx(reference.x[1], rel=1e-3)


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


def test_noise_is_found():
    """One row in ten has its label turned: the classifier is never surer than .9."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 4, 20_000)
    y = rng.random(z.size) < special.expit(z)
    y = np.where(rng.random(z.size) < 0.1, ~y, y)
    found = TemperatureCalibrator().fit(2 * z, y)
    assert found.share_ == pytest.approx(0.2, abs=0.015)
    assert found.temperature_ == pytest.approx(2.0, abs=0.15)


def test_the_unit_of_decision_values_does_not_matter():
    score, y = overlapping(300)
    for unit in (1e-6, 1e5):
        for safeguard in (True, False):
            one = TemperatureCalibrator(safeguard=safeguard).fit(score, y)
            other = TemperatureCalibrator(safeguard=safeguard).fit(score * unit, y)
            assert other.temperature_ == pytest.approx(one.temperature_ * unit, rel=1e-6)
            assert other.share_ == pytest.approx(one.share_, rel=1e-6)


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


def test_plain_softmax_temperature_equals_an_independent_optimiser():
    logits, codes, weight = many_classes()

    def loss(t):
        chance = special.log_softmax(logits / np.exp(t), axis=1)
        return -float(np.sum(weight * chance[np.arange(800), codes]))

    reference = optimize.minimize_scalar(
        loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-10}
    )
    found = SoftmaxTemperature(safeguard=False).fit(logits, codes, weight)
    assert found.temperature_ == pytest.approx(np.exp(reference.x), rel=1e-5)
    assert found.temperature_ == pytest.approx(2.2, abs=0.25)
    np.testing.assert_allclose(found.predict(logits).sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_softmax_temperature_and_share_equal_an_independent_optimiser(noise):
    logits, codes, weight = many_classes(noise)

    def loss(x):
        chance = special.softmax(logits / np.exp(x[0]), axis=1)[np.arange(800), codes]
        return -float(np.sum(weight * np.log((1 - x[1]) * chance + x[1] / 4)) + np.log(x[1]))

    reference = optimize.minimize(
        loss, [0.5, 0.05], bounds=[(-3, 3), (1e-9, 0.2)], method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 5000},
    )  # fmt: skip
    found = SoftmaxTemperature().fit(logits, codes, weight)
    assert loss([np.log(found.temperature_), found.share_]) <= reference.fun + 1e-6
    assert found.share_ == pytest.approx(reference.x[1], rel=1e-3)


def test_softmax_keeps_every_answer():
    logits, codes, weight = many_classes(0.1)
    found = SoftmaxTemperature().fit(logits, codes, weight).predict(logits)
    np.testing.assert_array_equal(found.argmax(axis=1), logits.argmax(axis=1))
    assert found.min() >= 1e-9


@pytest.mark.parametrize("safeguard", [True, False])
def test_softmax_temperature_of_two_classes_is_the_scalar_one(safeguard):
    score, y = overlapping()
    logits = np.column_stack([-score / 2, score / 2])
    two = SoftmaxTemperature(safeguard=safeguard).fit(logits, y, np.ones(len(y)))
    one = TemperatureCalibrator(safeguard=safeguard).fit(score, y)
    assert two.temperature_ == pytest.approx(one.temperature_, rel=1e-9)
    np.testing.assert_allclose(two.predict(logits)[:, 1], one.predict(score), atol=1e-9)


def test_two_equal_classes_at_the_top_do_not_set_the_scale():
    """Two classes that hardly differ have no lead to measure the temperature by."""
    rng = np.random.default_rng(0)
    base = rng.normal(0, 1, (600, 3))
    logits = np.column_stack([base, base[:, 0] + 1e-7])
    chance = special.softmax(logits / 3, axis=1)
    codes = np.array([rng.choice(4, p=p) for p in chance])
    found = SoftmaxTemperature().fit(logits, codes, np.ones(600))
    assert found.temperature_ == pytest.approx(3, rel=0.4)


def test_outliers_do_not_overflow():
    logits, codes, weight = many_classes()
    logits[0] = [1e250, -1e250, 0, 0]
    found = SoftmaxTemperature().fit(logits, codes, weight)
    assert 0 < found.temperature_ < np.inf
    score, y = overlapping()
    for unit in (1e300, 1e305):
        hot = TemperatureCalibrator().fit(score * unit / np.abs(score).max(), y)
        assert np.isfinite(hot.temperature_)
        assert np.all(np.isfinite(hot.predict([-1e308, 0.0, 1e308])))
