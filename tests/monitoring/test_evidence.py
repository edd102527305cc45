"""The bets against their definition, with 60 digits; splits into batches; the interval."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skselect.monitoring.evidence import (
    Evidence,
    advance,
    bets_on_cases,
    bets_on_shares,
    risk_interval,
    wealth_of,
)
from tests.brute import examples

unit = st.floats(0, 1, width=32)


def wealth_by_definition(loss, weight, target, stakes, start=500):
    """Follow the formula step by step, with 60 digits."""
    with localcontext(prec=60):
        money, path = [Decimal(0)] * len(stakes), []
        for t, (x, w) in enumerate(zip(loss, weight, strict=True)):
            enters = Decimal(start) / ((t + start) * (t + start + 1))
            payoff = Decimal(float(w)) * (Decimal(float(x)) - Decimal(target))
            money = [
                (m + enters) * (1 + Decimal(float(s)) * payoff)
                for m, s in zip(money, stakes, strict=True)
            ]
            path.append(sum(money) / len(money) + Decimal(start) / (t + 1 + start))
        return path


@pytest.mark.parametrize("target", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("graded", [False, True])
def test_wealth_is_what_the_formula_says(target, graded, rng):
    n = 300  # longer than one span of the kernel
    loss = rng.random(n) if graded else (rng.random(n) < target).astype(float)
    weight = rng.random(n) if graded else np.ones(n)
    expected = wealth_by_definition(loss, weight, target, bets_on_cases(target).stakes)
    evidence, wealth = advance(Evidence(), bets_on_cases(target), loss, weight)
    np.testing.assert_allclose(wealth, [float(w) for w in expected], rtol=1e-9)
    assert wealth_of(evidence, bets_on_cases(target)) == wealth[-1]
    assert evidence.n == n


def test_stakes_are_best_for_their_alternatives():
    target = 0.05
    for risk, stake in zip(
        target * np.array([1.25, 1.6, 2, 3, 5]), bets_on_cases(target).stakes, strict=True
    ):
        grid = np.linspace(0.001, 0.99 / target, 20_000)
        growth = risk * np.log1p(grid * (1 - target)) + (1 - risk) * np.log1p(-grid * target)
        assert grid[np.argmax(growth)] == pytest.approx(stake, abs=2 * (grid[1] - grid[0]))


@pytest.mark.parametrize("target", [1e-6, 0.05, 0.5, 0.99, 1 - 1e-9])
def test_no_bet_loses_more_than_half(target):
    stakes = bets_on_cases(target).stakes
    assert np.all(stakes > 0)
    assert np.all(1 + stakes * (0 - target) >= 0.5 - 1e-9)


@examples(40)
@given(
    st.lists(st.tuples(unit, unit), min_size=1, max_size=700),
    st.floats(0.01, 0.9),
    st.lists(st.integers(0, 700), max_size=6),
)
def test_splits_change_no_bit(cases, target, cuts):
    loss, weight = np.array(cases).T
    whole, path = advance(Evidence(), bets_on_cases(target), loss, weight)
    evidence, paths = Evidence(), []
    for piece in np.split(np.arange(len(loss)), sorted(min(cut, len(loss)) for cut in cuts)):
        evidence, wealth = advance(evidence, bets_on_cases(target), loss[piece], weight[piece])
        paths.append(wealth)
    assert np.concatenate(paths).tobytes() == path.tobytes()
    assert evidence.to_dict() == whole.to_dict()


def test_case_by_case_gives_the_same_bits(rng):
    loss = rng.random(600)
    whole, _ = advance(Evidence(), bets_on_cases(0.4), loss, np.ones(600))
    evidence = Evidence()
    for x in loss:
        evidence, _ = advance(evidence, bets_on_cases(0.4), np.array([x]), np.ones(1))
    assert evidence.to_dict() == whole.to_dict()
    assert Evidence.from_dict(whole.to_dict()).to_dict() == whole.to_dict()


@pytest.mark.parametrize(("loss", "rich"), [(0.0, False), (1.0, True)])
def test_the_longest_runs_stay_finite(loss, rich):
    n = 100_000
    for most in (1e-4, 0.3, 0.999):
        _, wealth = advance(Evidence(), bets_on_shares(most), np.full(1000, loss), np.ones(1000))
        assert np.all(np.isfinite(wealth))
    evidence, wealth = advance(Evidence(), bets_on_cases(0.05), np.full(n, loss), np.ones(n))
    assert np.all(np.isfinite(wealth))
    assert np.all(wealth > 0)
    assert (wealth_of(evidence, bets_on_cases(0.05)) > 1e6) == rich


@pytest.mark.parametrize("bets_on", [bets_on_cases, bets_on_shares])
def test_evidence_stays_or_falls_on_average_at_the_target(bets_on):
    # All sequences of 9 cases, each weighted with its chance: the mean of the wealth is 1.
    target, n = 0.2, 9
    bets = bets_on(target)
    mean = 0.0
    for code in range(2**n):
        loss = np.array([float(code >> i & 1) for i in range(n)])
        chance = np.prod(np.where(loss > 0, target, 1 - target))
        evidence, _ = advance(Evidence(), bets, loss, np.ones(n))
        mean += chance * wealth_of(evidence, bets)
    assert mean == pytest.approx(1, abs=1e-12)


def test_audited_bets_are_fair_at_the_target_whatever_the_probabilities():
    # Two kinds of cases: risky ones are audited often. The mean risk is the target.
    least, kinds = 0.1, [(0.5, 0.3, 0.9), (0.5, 0.1, 0.15)]  # share, risk, audit probability
    target = sum(share * risk for share, risk, _ in kinds)
    stakes, mean = bets_on_cases(target).stakes, 0.0
    for share, risk, proba in kinds:
        for loss, chance in [(1, risk), (0, 1 - risk)]:
            factor = 1 + stakes * least / proba * (loss - target)
            mean = mean + share * chance * (proba * factor + (1 - proba))
    np.testing.assert_allclose(mean, 1)


@pytest.mark.parametrize(("loss", "weight"), [(0, 50), (3, 50), (50, 50), (20.5, 1e6), (1e5, 1e6)])
def test_interval_ends_where_the_mean_of_exponentials_reaches_its_line(loss, weight):
    low, high = risk_interval(loss, weight, 0.05)
    assert 0 <= low <= loss / weight <= high <= 1

    def mean_of_exponentials(m, sign):
        e = sign * np.geomspace(0.001, 5, 20)
        return np.mean(np.exp(e * loss - weight * np.log(1 - m + m * np.exp(e))))

    if low > 0:
        assert mean_of_exponentials(low, 1) >= 40 * (1 - 1e-6)
    if high < 1:
        assert mean_of_exponentials(high, -1) >= 40 * (1 - 1e-6)


def test_interval_without_cases_says_nothing():
    assert risk_interval(0.0, 0.0, 0.05) == (0.0, 1.0)
