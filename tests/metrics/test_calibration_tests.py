"""Tests of calibration against other series of Brownian motion, exact laws and simulation."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy.stats import binomtest, chi2, norm

from skselect import metrics
from skselect.metrics import SPECS
from skselect.metrics._calibration_tests import (
    binomial_p_values,
    brownian_maximum_tail,
    brownian_range_tail,
)
from tests import brute
from tests.brute import (
    RowCase,
    assert_close,
    examples,
    of_rows,
    row_cases,
)
from tests.common import mostly_slow
from tests.metrics.definitions import (
    calibrated_outcomes,
    csr,
    cumulative_gaps,
    ecd,
    ecd_sigma,
    tce,
)

TRUTH, PROBA = [0, 1, 1, 0], [0.125, 0.875, 0.375, 0.75]
TESTS = ["ecce_test", "ecd_test", "t_cal_test", "csr_test"]


# Definitions, slowly ---------------------------------------------------------------------


def maximum_tail(x):
    """Return P(max |B| >= x): one less the chance to stay in (-x, x), by its eigenfunctions."""
    k = np.arange(60)
    odd = 2 * k + 1
    terms = (-1.0) ** k / odd * np.exp(-((odd * math.pi / x) ** 2) / 8)
    return 1 - 4 / math.pi * math.fsum(terms)


def range_tail(x):
    """Return P(range >= x).

    The chance to stay in an interval of width x, integrated over where it lies, is the mean
    of max(x - range, 0); its derivative is P(range < x).
    """
    odd = 2 * np.arange(60) + 1.0
    rate = (odd * math.pi / x) ** 2
    terms = 8 / (odd * math.pi) ** 2 * np.exp(-rate / 2) * (1 + rate)
    return 1 - math.fsum(terms)


# Brownian motion -------------------------------------------------------------------------


@pytest.mark.parametrize("x", [1e-3, 0.04, 0.06, 0.2, 0.5, 1.0, 1.3, 2.0, 2.5, 3.0, 4.0])
def test_tails_agree_with_the_other_series(x):
    assert_close(brownian_maximum_tail(x), maximum_tail(x), tiny=1e-12)
    assert_close(brownian_range_tail(x), range_tail(x), tiny=1e-12)


def test_far_tails_are_normal_tails_and_tails_fall_from_one_to_zero():
    x = np.linspace(0, 10, 500)
    for tail, factor in [(brownian_maximum_tail, 4), (brownian_range_tail, 8)]:
        for far in [5.0, 8.0, 20.0]:
            assert_close(tail(far), factor * norm.sf(far), rel=1e-9, tiny=0)
        values = [tail(0.0), *map(tail, x), tail(math.inf)]
        assert (values[0], values[-1]) == (1.0, 0.0)
        assert np.all(np.diff(values) <= 1e-12)


# ECCE ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:ecce_test. its p-values")
@examples(60)
@given(row_cases(weights=("none",), losses=("zero_one",)))
def test_ecce_test_is_its_definition(case):
    rows, result = case.rows, of_rows(metrics.ecce_test, case)
    values = cumulative_gaps(rows)
    mad, spread = max(map(abs, values)), max(values) - min(values)
    sigma = math.sqrt(sum(row.confidence * (1 - row.confidence) for row in rows)) / len(rows)
    assert_close([result.mad, result.r, result.sigma], [float(mad), float(spread), sigma])
    assert result.n_rows == len(rows)
    assert_close(
        [result.mad, result.r], [of_rows(f, case) for f in (metrics.ecce_mad, metrics.ecce_r)]
    )
    if sigma > 1e-3:
        assert_close(
            result.mad_p_value, maximum_tail(float(mad) / sigma) if mad else 1.0, tiny=1e-9
        )
        assert_close(
            result.r_p_value, range_tail(float(spread) / sigma) if spread else 1.0, tiny=1e-9
        )


def test_ecce_without_scatter():
    certain = [[1.0, 0.0], [0.0, 1.0]]
    result = metrics.ecce_test([0, 1], certain)
    assert (result.mad, result.sigma, result.mad_p_value, result.r_p_value) == (0, 0, 1, 1)
    result = metrics.ecce_test([0, 0], certain, labels=[0, 1])
    assert (result.mad, result.sigma, result.mad_p_value, result.r_p_value) == (0.5, 0, 0, 0)


def test_ecce_says_that_its_p_values_are_for_many_rows():
    y_true = np.repeat([0, 1], [10, 40])
    metrics.ecce_test(y_true, np.full(50, 0.88))  # sum c (1 - c) is 5.28
    with pytest.warns(UserWarning, match=r"sum c \(1 - c\) is 4.5 here and should be 5"):
        metrics.ecce_test(y_true, np.full(50, 0.9))


# ECD -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:ecd_test. the normal")
@examples(40)
@given(row_cases(weights=("none",), losses=("zero_one",)))
def test_the_normal_p_value_is_two_sided(case):
    result = of_rows(metrics.ecd_test, case, method="normal", alpha=0.1)
    value, sigma = ecd(case.rows, 1e-8), ecd_sigma(case.rows, 1e-8)
    assert_close([result.ecd, result.sigma], [value, sigma], rel=1e-8)
    assert result.n_draws is None
    if sigma:
        assert_close(result.z, value / sigma, rel=1e-7, tiny=1e-9)
        p_value = 2 * norm.sf(abs(value / sigma))
        assert_close(result.p_value, p_value, rel=1e-5)
        assert result.decision == (np.sign(value) if p_value <= 0.1 else 0)


def test_the_normal_approximation_says_when_it_is_poor():
    """With one confidence of .995 in 30 rows, a single error rejects: in 14 % of draws."""
    y_true = np.repeat([0, 1], [1, 29])
    with pytest.warns(UserWarning, match="method='montecarlo' is exact"):
        found = metrics.ecd_test(y_true, np.full(30, 0.995), method="normal")
    assert found.decision == 1
    exact = metrics.ecd_test(y_true, np.full(30, 0.995), random_state=0)
    assert exact.decision == 0
    assert exact.p_value == pytest.approx(2 * (1 - 0.995**30), abs=0.04)
    many = np.repeat([0, 1], [7, 1293])
    metrics.ecd_test(many, np.full(1300, 0.995), method="normal")  # 6.5 errors expected


def test_the_draws_are_enough_for_the_level():
    y_true = np.repeat([0, 1], [60, 40])
    found = metrics.ecd_test(y_true, np.full(100, 0.9), alpha=1e-4, random_state=0)
    assert (found.decision, found.n_draws) == (1, 39999)
    with pytest.raises(ValueError, match="simulate at least 199"):
        metrics.ecd_test(y_true, np.full(100, 0.9), alpha=0.01, n_draws=198)
    assert metrics.ecd_test(y_true, np.full(100, 0.9), alpha=0.01, n_draws=199).decision == 1


@pytest.mark.parametrize(("accuracy", "decision"), [(0.6, 1), (0.8, 0), (0.95, -1)])
@pytest.mark.parametrize("method", ["montecarlo", "normal"])
def test_the_decision_tells_the_direction(accuracy, decision, method):
    n = 200
    case = RowCase((np.arange(n) >= accuracy * n).astype(float), np.full(n, 0.8), None)
    result = of_rows(metrics.ecd_test, case, method=method, random_state=0)
    assert result.decision == decision
    assert ("overconfident" in str(result), "underconfident" in str(result)) == {
        1: (True, False), 0: (False, False), -1: (False, True),
    }[decision]  # fmt: skip


@pytest.mark.parametrize("method", ["montecarlo", "normal"])
def test_nothing_to_find(method):
    result = metrics.ecd_test([0, 1], [[0.5, 0.5]] * 2, method=method, random_state=0)
    assert (result.ecd, result.sigma, result.z, result.p_value, result.decision) == (0, 0, 0, 1, 0)


# All tests -------------------------------------------------------------------------------


def parts(result):
    """Return the numbers of a result."""
    return np.concatenate([np.ravel(np.asarray(x, float)) for x in vars(result).values()])


@pytest.mark.filterwarnings("ignore:ecce_test. its p-values")
@pytest.mark.parametrize("name", TESTS)
@examples(15)
@given(case=row_cases(weights=("none",), losses=("zero_one",)))
def test_order_and_constant_weights_do_not_change_a_test(name, case):
    if len(case.loss) < 2:
        return
    order = np.random.default_rng(0).permutation(len(case.loss))
    seed = {} if name == "ecce_test" else {"random_state": 5, "n_draws": 49}
    test = getattr(metrics, name)
    result = of_rows(test, case, **seed)
    moved = RowCase(case.loss[order], case.confidence[order], None)
    for other in [moved, RowCase(case.loss, case.confidence, np.full(len(order), 3.0))]:
        again = of_rows(test, other, **seed)
        assert_close(parts(again), parts(result), rel=1e-9, tiny=1e-12)


@pytest.mark.filterwarnings("ignore:ecd_test. the normal")
@pytest.mark.parametrize(
    ("name", "mean", "options"),
    [("csr", 1.0, {"n_draws": 19}), ("ecd", 0.0, {"method": "normal"})],
)
@pytest.mark.parametrize("eps", [1e-8, 0.2])
def test_mean_and_scatter_over_all_outcomes_are_those_of_the_formulas(name, mean, options, eps):
    confidence = np.array([0.25, 0.5, 0.6, 0.75, 0.7, 0.8])
    found = [
        (of_rows(SPECS[name].function, RowCase(loss, confidence, None), eps=eps), chance)
        for loss, chance in calibrated_outcomes(np.clip(confidence, eps, 1 - eps))
    ]
    assert abs(math.fsum(value * chance for value, chance in found) - mean) < 1e-12
    variance = math.fsum((value - mean) ** 2 * chance for value, chance in found)
    case, test = RowCase(np.zeros(6), confidence, None), getattr(metrics, f"{name}_test")
    assert_close(of_rows(test, case, eps=eps, **options).sigma, math.sqrt(variance))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["csr", "ecd"])
def test_the_monte_carlo_p_value_is_a_tail_over_all_outcomes(name, seed):
    """CSR tests against one side; ECD takes twice the smaller tail."""
    rng, n_draws, statistic = np.random.default_rng(seed), 20000, {"csr": csr, "ecd": ecd}[name]
    confidence = rng.choice([0.1, 0.5, 0.6, 0.75, 0.9, 0.99, 1.0], 10)
    loss = (rng.random(10) > confidence - 0.2).astype(float)
    value, near = float(statistic(brute.rows_of(loss, confidence))), 1e-9
    below = above = 0.0
    for other, chance in calibrated_outcomes(np.clip(confidence, 1e-8, 1 - 1e-8)):
        drawn = float(statistic(brute.rows_of(other, confidence)))
        below += chance * (drawn <= value + near)
        above += chance * (drawn >= value - near)
    test = getattr(metrics, f"{name}_test")
    result = of_rows(test, RowCase(loss, confidence, None), n_draws=n_draws, random_state=seed)
    tail, sides = (above, 1) if name == "csr" else (min(below, above), 2)
    expected = min(1.0, sides * (1 + n_draws * tail) / (n_draws + 1))
    scatter = sides * math.sqrt(max(tail * (1 - tail), 1 / n_draws) / n_draws)
    assert abs(result.p_value - expected) < 4 * scatter
    assert result.n_draws == n_draws
    if name == "ecd" and result.decision:
        assert result.decision == (1 if above < below else -1)


@pytest.mark.parametrize("name", TESTS)
def test_a_test_refuses_weights_and_graded_losses(name):
    test = getattr(metrics, name)
    with pytest.raises(ValueError, match=r"sample_weight.*independent rows"):
        test(TRUTH, PROBA, sample_weight=[1, 1, 2, 1])
    with pytest.raises(ValueError, match="sample_weight"):
        test(TRUTH, PROBA, sample_weight=[1, 1, 0, 1])
    for graded in (test, metrics.tce_score):
        with pytest.raises(ValueError, match=r"loss.*0 or 1"):
            graded(TRUTH, PROBA, loss=lambda a, b: 0.5 * (a != b))


LAWS = {
    "uniform": lambda rng, n: rng.uniform(0.5, 1, n),
    "eighths": lambda rng, n: np.round(8 * rng.uniform(0.5, 1, n)) / 8,
    "heavy tail": lambda rng, n: rng.beta(3, 0.5, n),
    "few levels": lambda rng, n: rng.choice([0.55, 0.6, 0.8, 0.9, 0.95], n),
    "with certainty": lambda rng, n: rng.choice([0.6, 0.9, 0.99, 1.0], n),
    "whole range": lambda rng, n: rng.random(n),
    "nearly certain": lambda rng, n: rng.uniform(0.98, 1, n),
    "doubts of every size": lambda rng, n: 1 - 10 ** -rng.uniform(0.3, 4, n),
    "mostly sure": lambda rng, n: np.maximum(rng.beta(20, 1, n), 0.5),
    "very sure": lambda rng, n: np.maximum(rng.beta(60, 1, n), 0.5),
}
#: Test, options, law of the confidences, rows, repetitions.
HELD = [
    *(("csr_test", {"n_draws": 99}, law, 50, 600)
      for law in ("uniform", "heavy tail", "with certainty")),
    ("ecce_test", {}, "uniform", 150, 600), ("ecce_test", {}, "eighths", 150, 600),
    *(("ecd_test", {"method": method, "n_draws": 199}, "uniform", 150, 600)
      for method in ("montecarlo", "normal")),
    # Hard: two errors of nearly certain rows in a narrow bin, or two alone in theirs.
    ("t_cal_test", {}, "uniform", 200, 300), ("t_cal_test", {}, "heavy tail", 20, 300),
    ("t_cal_test", {}, "few levels", 1000, 200), ("t_cal_test", {}, "nearly certain", 1000, 600),
    ("t_cal_test", {}, "doubts of every size", 20, 300),
]  # fmt: skip
AT_LENGTH = [
    ("ecce_test", {}, "mostly sure", 120, 4000), ("ecce_test", {}, "very sure", 360, 4000),
    *(("t_cal_test", {}, law, n, 2000)
      for law in LAWS if law not in ("eighths", "with certainty", "mostly sure", "very sure")
      for n in (10, 30, 200, 5000)),
    # 400 draws can be as small as .05 over the eight scales of 20 rows.
    *(("t_cal_test", {"method": "montecarlo", "n_draws": 400}, law, 20, 150)
      for law in ("uniform", "nearly certain")),
]  # fmt: skip


def p_values(name, options, law, n, repetitions):
    """Test calibrated classifiers: a row for each p-value."""
    rng, found = np.random.default_rng(1), []
    seed = {} if name == "ecce_test" else {"random_state": rng}
    for _ in range(repetitions):
        confidence = LAWS[law](rng, n)
        case = RowCase((rng.random(n) >= confidence).astype(float), confidence, None)
        result = of_rows(getattr(metrics, name), case, **options, **seed)
        found.append([getattr(result, p) for p in P_VALUES.get(name, ["p_value"])])
    return np.array(found).T


P_VALUES = {"ecce_test": ["mad_p_value", "r_p_value"]}


@pytest.mark.filterwarnings("ignore:ecce_test. its p-values")
@pytest.mark.parametrize(
    ("name", "options", "law", "n", "repetitions"),
    mostly_slow([*HELD, *AT_LENGTH], len(HELD), unpack=True),
)
def test_the_level_is_held_for_calibrated_confidences(name, options, law, n, repetitions):
    # The normal approximation is allowed the error that it announces.
    more = 0.01 if options.get("method") == "normal" else 0.0
    for found in p_values(name, options, law, n, repetitions):
        for level in [0.01, 0.05, 0.2, 0.5] if name == "csr_test" else [0.05]:
            scatter = math.sqrt(level * (1 - level) / repetitions)
            assert np.mean(found <= level) < level + more + 3 * scatter


def test_an_overconfident_classifier_is_found():
    rng = np.random.default_rng(0)
    case = RowCase((rng.random(500) > 0.8).astype(float), rng.uniform(0.9, 1, 500), None)
    result = of_rows(metrics.csr_test, case, random_state=0)
    assert result.p_value == 1 / 1000
    assert result.e_value > 1
    assert "overconfident near certainty" in str(result)
    result = of_rows(metrics.ecce_test, case)
    assert max(result.mad_p_value, result.r_p_value) < 1e-6
    assert "ECCE test of calibration, 500 rows" in str(result)


# TCE -------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [None, 30])
def test_many_rows(levels):
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 400)
    confidence = confidence if levels is None else np.round(confidence * levels) / levels
    loss = (rng.random(400) > confidence**2).astype(float)
    case = RowCase(loss, np.minimum(confidence, 1), None)
    for options in [{}, {"n_max": 50}, {"n_min": 30, "n_max": 30}, {"alpha": 1e-3}]:
        actual = of_rows(metrics.tce_score, case, **options)
        assert_close(actual, tce(case.rows, **options))
    assert 0 < of_rows(metrics.tce_score, case) < 100


# The binomial test -----------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 101])
def test_every_count_has_the_p_value_of_scipy(n):
    rates = [0.0, 1.0, 0.5, 0.1, 0.25, 1 / 3, 0.9, 0.999, 1e-12, 1 - 1e-12, 1e-300]
    rates += [k / n for k in range(0, n + 1, max(1, n // 7))]  # where k = n p
    k, p = (part.ravel() for part in np.meshgrid(np.arange(n + 1.0), rates))
    actual = binomial_p_values(k, np.full(len(k), float(n)), p)
    expected = [binomtest(int(a), n, float(b)).pvalue for a, b in zip(k, p, strict=True)]
    assert_close(actual, expected, rel=1e-9, tiny=1e-14)


# Definitions, slowly ---------------------------------------------------------------------


def n_scales(n):
    return max(1, math.floor(2 * math.log2(n / math.sqrt(math.log(n)))))


def bins(rows, m):
    """Return the rows of each of m bins of equal width that holds any; 1 is in the last."""
    filled = {}
    for row in rows:
        filled.setdefault(min(math.floor(row.confidence * m), m - 1), []).append(row)
    return list(filled.values())


def statistic(rows, m):
    """Return the sum over bins of (sum over pairs of different rows of d d')/n_b, over n."""
    total = Fraction(0)
    for part in bins(rows, m):
        d = [row.confidence - (1 - row.loss) for row in part]
        total += (sum(d) ** 2 - sum(x * x for x in d)) / len(part)
    return total / len(rows)


def null_moments(rows, m):
    """Return variance and third moment of n times the statistic, given the confidences.

    It is 2/n_b times a sum over pairs of d d'. Only products where no row stands alone have
    a mean: a pair with itself, twice or three times, and the three sides of a triangle.
    """
    variance, third = Fraction(0), Fraction(0)
    for part in bins(rows, m):
        v = [row.confidence * (1 - row.confidence) for row in part]
        skew = [x * (1 - 2 * row.confidence) for x, row in zip(v, part, strict=True)]
        pairs = elementary(v, 2), elementary(skew, 2)
        variance += 4 * pairs[0] / len(part) ** 2
        third += 8 * (pairs[1] + 6 * elementary(v, 3)) / len(part) ** 3
    return variance, third


def elementary(values, k):
    """Return the sum over all sets of k values of their product."""
    sums = [Fraction(1), *[Fraction(0)] * k]
    for x in values:
        for j in range(k, 0, -1):
            sums[j] += x * sums[j - 1]
    return sums[k]


def analytic_p_value(rows, m):
    """Return the tail of (chi2_nu - nu)/sqrt(2 nu), which has the skewness sqrt(8/nu).

    Without skewness (two rows at .5) it is normal, without variance it is a point at 0.
    Where the skewness is extreme no chi-square is like the statistic: None.
    """
    variance, third = map(float, null_moments(rows, m))
    value = len(rows) * float(statistic(rows, m))
    if variance == 0:
        return float(value <= 0)
    z = value / math.sqrt(variance)
    nu = 8 * variance**3 / third**2 if third else math.inf
    if nu > 1e10:
        return norm.sf(z)
    return chi2.sf(nu + z * math.sqrt(2 * nu), nu) if nu >= 1 else None


def assert_p_values(result, rows):
    for p_value, m in zip(result.p_values, result.n_bins.tolist(), strict=True):
        if (expected := analytic_p_value(rows, m)) is not None:
            assert_close(p_value, expected, rel=1e-6, tiny=1e-9)
        assert 0 <= p_value <= 1


def resampled_p_values(rows):
    """Return, per scale, the chance of as large a statistic, over all resampled data sets."""
    n, scales = len(rows), [2**b for b in range(1, n_scales(len(rows)) + 1)]
    observed = [statistic(rows, m) for m in scales]
    tails = np.zeros(len(scales))
    for confidence in product([row.confidence for row in rows], repeat=n):
        for loss, chance in calibrated_outcomes(confidence):
            drawn = brute.rows_of(loss, confidence)
            as_large = [statistic(drawn, m) >= t for m, t in zip(scales, observed, strict=True)]
            tails += float(chance) / n**n * np.array(as_large)
    return tails


# Definitions -----------------------------------------------------------------------------


@examples(60)
@given(row_cases(weights=("none",), losses=("zero_one",)))
def test_every_scale_is_its_definition(case):
    rows = case.rows
    if len(rows) < 2:
        return
    result = of_rows(metrics.t_cal_test, case)
    scales = [2**b for b in range(1, n_scales(len(rows)) + 1)]
    assert result.n_bins.tolist() == scales
    assert_close(result.statistics, [float(statistic(rows, m)) for m in scales])
    assert_p_values(result, rows)
    assert result.p_value == min(1.0, len(scales) * min(result.p_values))
    assert result.reject == (result.p_value <= 0.05)
    assert result.max_statistic == max(result.statistics)
    assert (result.n_rows, result.alpha) == (len(rows), 0.05)


@pytest.mark.parametrize("levels", [None, 7, 64])
def test_many_rows_of_t_cal(levels):
    rng = np.random.default_rng(0)
    confidence = rng.random(400)
    confidence = confidence if levels is None else np.ceil(confidence * levels) / levels
    case = RowCase((rng.random(400) > confidence**2).astype(float), confidence, None)
    result = of_rows(metrics.t_cal_test, case)
    expected = [float(statistic(case.rows, m)) for m in result.n_bins.tolist()]
    assert_close(result.statistics, expected)
    assert_p_values(result, case.rows)


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.9])
def test_the_null_moments_are_those_of_all_outcomes(confidence):
    """Of seven calibrated rows, some tied: what the definition of the p-values rests on."""
    levels = [confidence] * 4 + [0.35, 0.85, 0.7]
    chances, values = [], []
    for loss, chance in calibrated_outcomes(levels):
        chances.append(chance)
        values.append([7 * float(statistic(brute.rows_of(loss, levels), m)) for m in [2, 4, 8]])
    values, chances = np.array(values), np.array(chances)
    rows = brute.rows_of([0] * 7, levels)
    moments = np.array([null_moments(rows, m) for m in [2, 4, 8]], float)
    assert_close(chances @ values, np.zeros(3), tiny=1e-14)
    assert_close(chances @ values**2, moments[:, 0])
    assert_close(chances @ values**3, moments[:, 1])


@pytest.mark.parametrize("confidence", [[0.5, 0.5], [0.5, 0.75], [0.25, 0.75, 0.75], [0.5] * 3])
def test_the_monte_carlo_p_values_are_those_of_all_resamples(confidence):
    n = len(confidence)
    for loss in product([0.0, 1.0], repeat=n):
        case = RowCase(np.array(loss), np.array(confidence), None)
        options = {"method": "montecarlo", "n_draws": 250, "random_state": 0}
        result = of_rows(metrics.t_cal_test, case, **options)
        tails = resampled_p_values(case.rows)
        expected = (1 + 250 * tails) / 251
        scatter = np.sqrt(np.maximum(tails * (1 - tails), 1 / 250) / 250)
        assert np.all(np.abs(result.p_values - expected) < 4 * scatter), loss


# Level and power -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["analytic", "montecarlo"])
def test_a_miscalibrated_classifier_is_found(method):
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 400)
    wavy = confidence + 0.2 * np.sign(np.sin(40 * confidence))  # right in the mean
    case = RowCase((rng.random(400) > wavy).astype(float), confidence, None)
    options = {"method": method, "n_draws": 400, "random_state": 0}
    result = of_rows(metrics.t_cal_test, case, **options)
    assert result.reject
    assert "miscalibrated" in str(result)
    assert result.n_bins[np.argmin(result.p_values)] >= 8


def test_the_draws_of_t_cal_are_enough_for_the_level():
    """Claims .75, right in .50: by default it is found at any level; too few draws are refused."""
    y_true = np.arange(600) % 2
    options = {"method": "montecarlo", "alpha": 0.01, "random_state": 0}
    result = metrics.t_cal_test(y_true, np.full(600, 0.75), **options)
    assert result.reject
    least = 100 * len(result.n_bins) - 1
    with pytest.raises(ValueError, match=f"simulate at least {least}"):
        metrics.t_cal_test(y_true, np.full(600, 0.75), n_draws=least - 1, **options)
    assert metrics.t_cal_test(y_true, np.full(600, 0.75), n_draws=least, **options).reject


def test_the_table_has_a_row_per_scale():
    result = metrics.t_cal_test(TRUTH, PROBA)
    columns = {"n_bins": result.n_bins, "statistic": result.statistics, "p_value": result.p_values}
    assert result.to_frame().equals(pd.DataFrame(columns))


def test_certain_rows_never_err():
    """A calibrated classifier would not: errors of theirs are as unlikely as can be."""
    certain = [[1.0, 0.0], [0.0, 1.0]]
    result = metrics.t_cal_test([0, 1], certain)
    assert (result.max_statistic, result.p_value, result.reject) == (0.0, 1.0, False)
    result = metrics.t_cal_test([1, 1, 1], [[1.0, 0.0]] * 3, labels=[0, 1])
    assert np.all(result.statistics > 0)
    assert result.reject


@pytest.mark.parametrize("doubt", [1e-3, 1e-6, 1e-8, 1e-12, 0.0])
def test_right_answers_near_certainty_are_no_evidence(doubt):
    """At 16 bins only the two surest rows share one, and both are right, as they must be."""
    confidence = np.array([0.52, 0.6, 0.7, 0.83, 1 - doubt, 1 - doubt])
    result = of_rows(metrics.t_cal_test, RowCase(np.zeros(6), confidence, None))
    assert result.n_bins[-1] == 16
    assert result.p_values[-1] > 0.9
    assert not result.reject


# Bad input -------------------------------------------------------------------------------


def test_one_row_is_too_few():
    with pytest.raises(ValueError, match="t_cal_test needs at least 2 rows, got 1"):
        metrics.t_cal_test([0], [[0.75, 0.25]], labels=[0, 1])
