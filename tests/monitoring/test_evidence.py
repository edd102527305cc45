"""The bets against their definition, with 60 digits; splits into batches; the interval."""

import re
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from skselect import AbstentionPolicy, Coverage, GeneralizedRisk, Risk, SelectiveRiskMonitor
from skselect.monitoring import detectable_risk
from skselect.monitoring.evidence import (
    Evidence,
    advance,
    bets_on_cases,
    bets_on_shares,
    risk_interval,
    wealth_of,
)
from tests.brute import examples
from tests.common import mostly_slow
from tests.refusals import check_refused

ROOT = Path(__file__).resolve().parents[2]
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


def test_stakes_are_best_for_their_alternatives_and_no_bet_loses_more_than_half():
    for target in (1e-6, 0.05, 0.5, 0.99, 1 - 1e-9):
        stakes = bets_on_cases(target).stakes
        assert np.all(stakes > 0)
        assert np.all(1 + stakes * (0 - target) >= 0.5 - 1e-9)
    target = 0.05
    for risk, stake in zip(
        target * np.array([1.25, 1.6, 2, 3, 5]), bets_on_cases(target).stakes, strict=True
    ):
        grid = np.linspace(0.001, 0.99 / target, 20_000)
        growth = risk * np.log1p(grid * (1 - target)) + (1 - risk) * np.log1p(-grid * target)
        assert grid[np.argmax(growth)] == pytest.approx(stake, abs=2 * (grid[1] - grid[0]))


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
    assert risk_interval(0.0, 0.0, 0.05) == (0.0, 1.0)  # without cases


# Planning -----------------------------------------------------------------------------------------


def test_streams_beside_each_other_are_those_alone(rng):
    bets, loss, weight = bets_on_cases(0.1), rng.random((3, 2, 300)), rng.random(300)
    money = np.zeros((5, 3, 2))
    _, together = advance(Evidence(0, money, money + 1, money), bets, loss, weight)
    for place in np.ndindex(3, 2):
        _, alone = advance(Evidence(), bets, loss[place], weight)
        assert together[place].tobytes() == alone.tobytes()


def share_of_alarms(rng, risk, n, target, delta, before, audit, streams=100):
    """Return how often the monitor itself raises an alarm within n labelled answers."""
    policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
    alarms = 0
    for _ in range(streams):
        monitor = SelectiveRiskMonitor(policy, target=target, delta=delta, min_audit_proba=audit)
        drawn = rng.random(int(2 * (n + before) / audit) + 50) < audit
        drawn = drawn[: np.flatnonzero(drawn)[n + before - 1] + 1]
        wrong = rng.random(len(drawn)) < risk
        wrong[np.cumsum(drawn) <= before] = False
        audited = {} if audit == 1 else {"audited": drawn}
        monitor.update(wrong.astype(int), np.full(len(drawn), 0.1), **audited)
        assert monitor.status_.n_known == n + before
        alarms += monitor.status_.risk == "alarm"
    return alarms / streams


@pytest.mark.parametrize(
    ("target", "n", "settings"),
    mostly_slow([
        (0.02, 100, {"audit": 0.3, "n_before": 300}), (0.05, 200, {}),
        (0.1, 150, {"delta": 0.2, "power": 0.5}), (0.05, 300, {"n_before": 1000}),
    ], unpack=True),
)  # fmt: skip
def test_the_monitor_itself_notices_that_risk_that_often(target, n, settings, rng):
    power, before = settings.get("power", 0.8), settings.get("n_before", 0)
    audit, delta = settings.get("audit", 1.0), settings.get("delta", 0.05)
    risk = detectable_risk(target, n, delta, n_before=before, power=power)
    assert target < risk < 1
    seen = share_of_alarms(rng, risk, n, target, delta, before, audit)
    # The 2,000 simulated streams of the plan add to the error of these 100.
    assert abs(seen - power) < 3 * np.sqrt(power * (1 - power) * (1 / 100 + 1 / 2000))


def test_more_labels_notice_smaller_risks_and_harder_alarms_larger_ones(monkeypatch):
    found = [detectable_risk(0.05, n) for n in (20, 60, 200, 3000)]
    assert np.all(np.diff(found) < 0)
    assert found[-1] > 0.05
    monkeypatch.setattr("skselect.monitoring.evidence._MOST_LABELLED", 200)
    assert detectable_risk(0.05, 10**9) == found[2]  # the same random numbers
    easy, strict = detectable_risk(0.05, 100), detectable_risk(0.05, 100, 0.01)
    harder = detectable_risk(0.05, 100, power=0.95), detectable_risk(0.05, 100, n_before=3000)
    assert easy < min(strict, *harder)
    assert detectable_risk(Risk(0.05, delta=0.01, max_analyses=3), 100) == strict


@pytest.mark.slow
def test_the_table_of_the_docs_is_what_it_says():
    page = (ROOT / "docs" / "howto" / "certified_risk.md").read_text()
    rows = re.findall(r"(?m)^\| (all|[\d.]+ %) \| ([\d,]+) \| (.*) \| (.*) \|$", page)
    assert len(rows) == 6
    for audited, labelled, *cells in rows:
        answers = 1000 * 0.8 * (1 if audited == "all" else float(audited[:-2]) / 100)
        assert round(60 * answers) == int(labelled.replace(",", ""))
        for target, cell in zip((0.02, 0.05), cells, strict=True):
            for shown, days in zip(re.findall(r"[\d.]+", cell), (0, 365), strict=True):
                n_before = round(days * answers)
                risk = detectable_risk(target, round(60 * answers), n_before=n_before)
                assert float(shown) == float(f"{100 * risk:.2g}")


@pytest.mark.parametrize("target", [0.01, 0.05, 0.5])
@pytest.mark.parametrize("n_before", [0, 700])
def test_too_few_answers_are_too_few_even_if_all_are_wrong(target, n_before):
    with pytest.raises(ValueError, match=r"n_labelled must be at least \d+, got 1: ") as refused:
        detectable_risk(target, 1, n_before=n_before)
    least = int(str(refused.value).split("at least ")[1].split(",")[0])
    policy = AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
    monitor = SelectiveRiskMonitor(policy, target=target)
    monitor.update(np.arange(n_before + least) >= n_before, np.full(n_before + least, 0.1))
    assert monitor.status_.alarm_at == n_before + least
    assert target < detectable_risk(target, least, n_before=n_before) <= 1


@pytest.mark.parametrize(("named", "risk", "options"), [
    ("Coverage(0.9)", Coverage(0.9), {}), ("GeneralizedRisk(0.05)", GeneralizedRisk(0.05), {}),
    ("Risk(0.05, loss='cost')", Risk(0.05, loss="cost"), {}), ("risk", None, {}),
    ("objective", {"a": Risk(0.05)}, {}), ("target", 0.95, {}),
    ("delta", Risk(0.05), {"delta": 0.1}), ("delta", 0.05, {"delta": 0.9}),
    ("n_labelled", 0.05, {"n_labelled": 10.5}), ("n_before", 0.05, {"n_before": -1}),
    ("power", 0.05, {"power": 1}),
])  # fmt: skip
def test_what_cannot_be_planned_is_refused(named, risk, options):
    check_refused(named, lambda: detectable_risk(risk, **{"n_labelled": 100} | options))
