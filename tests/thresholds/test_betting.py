"""Bets that follow the threshold: what is accepted, and that the guarantee holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skselect import Outcomes, RiskCoverageCurve, thresholds
from skselect.bounds._mean import betting_log_wealth, betting_stakes, rows_for_betting
from skselect.thresholds._betting import betting_generalized_risk, betting_risk
from tests.brute import examples


def graded(rng, n=2000, rate=0.05):
    """Losses of 0, .2 and 1 whose mean is `rate` times twice the distance from the surest."""
    u = rng.random(n)
    loss = np.where(rng.random(n) < 2 * rate * u, rng.choice([0.2, 1.0], n), 0.0)
    return Outcomes(loss, 1 - u)


def accepted_by_definition(outcomes, target, delta, min_coverage):
    """Go through the blocks; credit the rows before each, charge the losses of all its own."""
    weight = outcomes.weight / outcomes.weight.max()
    n = len(outcomes)
    stakes, log_shares = betting_stakes(n, target, delta)
    start = next(k for k in range(1, n + 2) if k / n >= max(min_coverage, 0.15))
    start = max(start, int(np.ceil(1.5 * rows_for_betting(target, delta, n))))
    if start > n:
        return 0
    size, accepted = 0, 0
    for level in np.unique(outcomes.confidence)[::-1]:
        before, size = size, int((outcomes.confidence >= level).sum())
        if size < start:
            continue
        rows = np.lexsort((outcomes.loss, weight, -outcomes.confidence))
        credited, charged = rows[: max(before, start)], rows[:size]
        wealth = 0.0
        for stake, share in zip(stakes, np.exp(log_shares), strict=True):
            product = np.prod(1 + stake * weight[credited] * target)
            for i in charged:
                credit = 1 + stake * weight[i] * target
                product *= 1 - stake * weight[i] * outcomes.loss[i] / credit
            wealth += share * product
        if wealth < 1 / delta:
            break
        accepted = size
    return accepted


@examples(60)
@given(st.integers(0, 10**6), st.integers(1, 60), st.booleans(), st.sampled_from([5, 1000]),
       st.sampled_from([0.2, 0.5]))  # fmt: skip
def test_what_is_accepted_follows_the_definition(seed, n, weighted, levels, target):
    rng = np.random.default_rng(seed)
    outcomes = Outcomes(
        rng.choice([0, 0, 0, 0, 0.25, 1.0], n), rng.integers(0, levels, n) / levels,
        rng.choice([1.0, 2.0, 5.0], n) if weighted else None,
    )  # fmt: skip
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    found = betting_risk(outcomes, target, 0.3, 0.1)
    size = curve.n_accepted[found - 1] if found else 0
    assert size == accepted_by_definition(outcomes, target, 0.3, 0.1)


@examples(60)
@given(st.integers(0, 10**6), st.integers(1, 60), st.sampled_from([5, 1000]))
def test_silent_losses_are_charged_and_every_row_credited(seed, n, levels):
    rng = np.random.default_rng(seed)
    outcomes = Outcomes(rng.choice([0, 0, 0, 0.5], n), rng.integers(0, levels, n) / levels)
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    found = betting_generalized_risk(outcomes, 0.3, 0.3)
    passing = [
        b + 1 for b, level in enumerate(curve.thresholds)
        if betting_log_wealth(outcomes.loss * (outcomes.confidence >= level), 0.3, 0.3)
        >= -np.log(0.3)
    ]  # fmt: skip
    assert found == max(passing, default=0)


def test_neither_order_nor_scale_of_the_weights_matters(rng):
    outcomes = graded(rng)
    weight, order = rng.uniform(0.2, 1, 2000), rng.permutation(2000)
    first = Outcomes(outcomes.loss, outcomes.confidence, weight)
    other = Outcomes(outcomes.loss[order], outcomes.confidence[order], 4 * weight[order])
    for rule in (
        lambda o: betting_risk(o, 0.05, 0.1, 0.1),
        lambda o: betting_generalized_risk(o, 0.05, 0.1),
    ):
        assert rule(first) == rule(other) > 0


def test_too_few_rows_certify_nothing(rng):
    assert betting_risk(graded(rng, 20), 0.05, 0.1, 0.1) == 0
    assert betting_risk(Outcomes([0.5], [0.3]), 0.5, 0.1, 0.1) == 0
    assert betting_generalized_risk(Outcomes([0.5], [0.3]), 0.5, 0.1) == 0


def allowed(delta, draws):
    return delta + 3 * np.sqrt(delta * (1 - delta) / draws)


@pytest.mark.parametrize(("tied", "weighted"), [(False, True), (True, False)])
def test_the_risk_guarantee_holds_just_above_the_target(tied, weighted, rng):
    """A mean loss of 1.001 times the target everywhere: whatever is accepted is a failure."""
    draws, n, delta, target, failed = 300, 500, 0.1, 0.1, 0
    for _ in range(draws):
        confidence = rng.random(n)
        if tied:
            confidence = np.floor(20 * confidence) / 20
        weight = rng.choice([0.2, 1.0], n) if weighted else None
        loss = np.where(rng.random(n) < 1.001 * target / 0.6, rng.choice([0.2, 1.0], n), 0.0)
        outcomes = Outcomes(loss, confidence, weight)
        failed += betting_risk(outcomes, target, delta, 0.1) > 0
    assert failed / draws <= allowed(delta, draws)


@pytest.mark.parametrize("n", [127, 195, 526])
def test_the_guarantee_holds_on_one_and_two_levels(n, rng):
    """Few distinct rows: an order that depends on the losses would show here."""
    draws, delta, failed = 250, 0.1, 0
    for _ in range(draws):
        loss = 0.5 * (rng.random(n) < 0.4)
        outcomes = Outcomes(loss, rng.choice([0.6, 0.9], n) if n == 195 else np.full(n, 0.9))
        failed += betting_risk(outcomes, 0.1999, delta, 0.1) > 0
    assert failed / draws <= allowed(delta, draws)


def test_the_guarantee_is_about_the_weighted_rows(rng):
    """Unweighted the risk is .037, weighted .087: a target of .08 must fail."""
    draws, delta, failed, plain = 100, 0.1, 0, 0
    for _ in range(draws):
        heavy = rng.random(3000) < 0.1
        loss = (rng.random(3000) < np.where(heavy, 0.1, 0.03)) * 1.0
        confidence = rng.random(3000)
        weighted = Outcomes(loss, confidence, np.where(heavy, 1.0, 1 / 40))
        failed += betting_risk(weighted, 0.08, delta, 0.1) > 0
        plain += betting_risk(Outcomes(loss, confidence), 0.08, delta, 0.1) > 0
    assert failed / draws <= allowed(delta, draws)
    assert plain / draws > 0.7  # the negative control


def test_the_guarantee_holds_where_the_risk_turns_bad_inside_a_block(rng):
    """Confidence levels that hold good rows first and bad ones later."""
    draws, delta, failed = 200, 0.1, 0
    for _ in range(draws):
        u = rng.random(600)
        loss = np.where(rng.random(600) < np.where(u < 0.3, 0.12, 0.26), 0.8, 0.0)
        level = np.floor(u * 4) / 4
        # Risk up to .25: .096; up to .5 it is .115 > .11.
        found = betting_risk(Outcomes(loss, 1 - level), 0.11, delta, 0.1)
        failed += found >= 2
    assert failed / draws <= allowed(delta, draws)


def test_generalized_risk_counts_the_rejected_rows(rng):
    outcomes = graded(rng, rate=0.1)
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    found = betting_generalized_risk(outcomes, 0.03, 0.1)
    assert 0.2 < curve.coverage[found - 1] < 1
    assert curve.generalized_risk[found - 1] < 0.03


def test_a_larger_largest_weight_certifies_less(rng):
    outcomes = graded(rng, rate=0.1)
    found = [
        betting_generalized_risk(outcomes, 0.03, 0.1, largest_weight=largest)
        for largest in (1.0, 50.0)
    ]
    assert found[1] < found[0] == betting_generalized_risk(outcomes, 0.03, 0.1)


@pytest.mark.parametrize("largest", [0, -1, np.inf, np.nan, "heavy", True], ids=str)
def test_largest_weights_that_are_none_are_refused(largest):
    with pytest.raises(ValueError, match=r"largest_weight must be a number in \(0, inf\)"):
        thresholds.Betting(largest)
