"""T-Cal against a loop over bins, its null moments by enumeration, and simulation."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import chi2, norm

from skselect import metrics
from tests import brute
from tests.brute import RowCase, assert_close, examples, of_rows, row_cases

TRUTH, PROBA = [0, 1, 1, 0], [0.125, 0.875, 0.375, 0.75]


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


def honest_outcomes(confidence):
    """Yield every way to be right or wrong, and its chance if the confidences are true."""
    for loss in product([0.0, 1.0], repeat=len(confidence)):
        chances = [1 - c if wrong else c for wrong, c in zip(loss, confidence, strict=True)]
        if chance := math.prod(chances):
            yield list(loss), chance


def resampled_p_values(rows):
    """Return, per scale, the chance of as large a statistic, over all resampled data sets."""
    n, scales = len(rows), [2**b for b in range(1, n_scales(len(rows)) + 1)]
    observed = [statistic(rows, m) for m in scales]
    tails = np.zeros(len(scales))
    for confidence in product([row.confidence for row in rows], repeat=n):
        for loss, chance in honest_outcomes(confidence):
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
def test_many_rows(levels):
    rng = np.random.default_rng(0)
    confidence = rng.random(400)
    confidence = confidence if levels is None else np.ceil(confidence * levels) / levels
    case = RowCase((rng.random(400) > confidence**2).astype(float), confidence, None)
    result = of_rows(metrics.t_cal_test, case)
    expected = [float(statistic(case.rows, m)) for m in result.n_bins.tolist()]
    assert_close(result.statistics, expected)
    assert_p_values(result, case.rows)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 10, 100, 1000, 12345])
def test_the_number_of_scales(n):
    case = RowCase(np.zeros(n), np.linspace(0, 1, n), None)
    assert len(of_rows(metrics.t_cal_test, case).n_bins) == n_scales(n)


def test_known_values():
    # 2 bins hold .625 .75 wrong, .875 .875 right in one: d = .625 .75 -.125 -.125.
    result = metrics.t_cal_test(TRUTH, PROBA)
    d = np.array([0.625, 0.75, -0.125, -0.125])
    one_bin = (d.sum() ** 2 - np.sum(d**2)) / 4 / 4
    # 4 and 8 bins: [.5, .75), [.75, 1], then [.875, 1] alone.
    d = d[1:]
    upper = (d.sum() ** 2 - np.sum(d**2)) / 3 / 4
    assert result.n_bins.tolist() == [2, 4, 8]
    assert_close(result.statistics, [one_bin, upper, 2 * 0.125**2 / 2 / 4])


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.9])
def test_the_null_moments_are_those_of_all_outcomes(confidence):
    """Of seven honest rows, some tied; the variance is that of the docstring."""
    levels = [confidence] * 4 + [0.35, 0.85, 0.7]
    chances, values = [], []
    for loss, chance in honest_outcomes(levels):
        chances.append(chance)
        values.append([7 * float(statistic(brute.rows_of(loss, levels), m)) for m in [2, 4, 8]])
    values, chances = np.array(values), np.array(chances)
    rows = brute.rows_of([0] * 7, levels)
    moments = np.array([null_moments(rows, m) for m in [2, 4, 8]], float)
    assert_close(chances @ values, np.zeros(3), tiny=1e-14)
    assert_close(chances @ values**2, moments[:, 0])
    assert_close(chances @ values**3, moments[:, 1])
    lambdas = []
    for m in [2, 4, 8]:
        v = [[row.confidence * (1 - row.confidence) for row in part] for part in bins(rows, m)]
        squares = [(sum(part) ** 2 - sum(x * x for x in part)) / len(part) ** 2 for part in v]
        lambdas.append(float(2 * sum(squares)))
    assert_close(moments[:, 0], lambdas)


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


def test_no_statistic_is_smaller_than_the_smallest():
    """The least possible value is reached by every draw."""
    options = {"method": "montecarlo", "n_draws": 99, "random_state": 0}
    result = metrics.t_cal_test([0, 1], [0.5, 0.5], **options)
    assert np.all(result.statistics <= 0)
    assert result.p_values.tolist() == [1.0] * len(result.p_values)


# Level and power -------------------------------------------------------------------------

LAWS = {
    "uniform": lambda rng, n: rng.uniform(0.5, 1, n),
    "heavy tail": lambda rng, n: rng.beta(3, 0.5, n),
    "few levels": lambda rng, n: rng.choice([0.55, 0.6, 0.8, 0.9, 0.95], n),
    "whole range": lambda rng, n: rng.random(n),
    "nearly certain": lambda rng, n: rng.uniform(0.98, 1, n),
    "caveats of every size": lambda rng, n: 1 - 10 ** -rng.uniform(0.3, 4, n),
}


def rejections(law, n, repetitions, seed, **options):
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(repetitions):
        confidence = LAWS[law](rng, n)
        case = RowCase((rng.random(n) > confidence).astype(float), confidence, None)
        found += of_rows(metrics.t_cal_test, case, **options).reject
    return found / repetitions


@pytest.mark.parametrize(
    ("law", "n", "repetitions"),
    [
        ("uniform", 200, 300),
        ("heavy tail", 20, 300),
        ("few levels", 1000, 200),
        ("nearly certain", 1000, 600),
        ("caveats of every size", 20, 300),
    ],
)
def test_the_level_is_held_for_honest_confidences(law, n, repetitions):
    """Hard: two errors of nearly certain rows in a narrow bin, or two alone in theirs."""
    level = rejections(law, n, repetitions, 3)
    assert level < 0.05 + 3 * math.sqrt(0.05 * 0.95 / repetitions)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [10, 30, 200, 5000])
def test_the_level_is_held_for_few_and_many_rows(law, n):
    assert rejections(law, n, 2000, 4) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["uniform", "nearly certain"])
def test_the_monte_carlo_level_is_held(law):
    """400 draws can be as small as .05 over the eight scales of 20 rows."""
    level = rejections(law, 20, 150, 5, method="montecarlo", n_draws=400)
    assert level < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)


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


def test_the_draws_are_enough_for_the_level():
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
    frame = result.to_frame()
    assert frame.columns.tolist() == ["n_bins", "statistic", "p_value"]
    assert frame["n_bins"].tolist() == result.n_bins.tolist()
    assert frame["statistic"].tolist() == result.statistics.tolist()
    assert frame["p_value"].tolist() == result.p_values.tolist()


def test_nothing_but_certainty():
    certain = [[1.0, 0.0], [0.0, 1.0]]
    result = metrics.t_cal_test([0, 1], certain)
    assert (result.max_statistic, result.p_value, result.reject) == (0.0, 1.0, False)


def test_errors_of_certain_rows_are_as_unlikely_as_can_be():
    """All confidences are 1: a calibrated classifier would never err."""
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

BAD = {
    "alpha": ({"alpha": 0.0}, "alpha"),
    "alpha in percent": ({"alpha": 5}, "alpha"),
    "method": ({"method": "bootstrap"}, "method"),
    "no draws": ({"n_draws": 0}, "n_draws"),
    "seed": ({"random_state": "now"}, "random_state"),
}


@pytest.mark.parametrize(("options", "argument"), BAD.values(), ids=BAD)
def test_a_bad_argument_is_named(options, argument):
    with pytest.raises(ValueError, match=argument):
        metrics.t_cal_test(TRUTH, PROBA, **options)


def test_one_row_is_too_few():
    with pytest.raises(ValueError, match="t_cal_test needs at least 2 rows, got 1"):
        metrics.t_cal_test([0], [[0.75, 0.25]], labels=[0, 1])
