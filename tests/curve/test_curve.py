"""RiskCoverageCurve against its definitions."""

import dataclasses
import math
import warnings
from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import quad

from skselect import Outcomes, RiskCoverageCurve
from skselect.curve.curve import count_within
from tests import brute
from tests.refusals import check_refused

NAN = float("nan")


def curve_of(loss, confidence, weight=None):
    return RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence, weight))


def naurc(curve):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return curve.naurc()


# The curve -------------------------------------------------------------------------------


@brute.examples(100)
@given(brute.row_cases(unit=False), st.lists(st.floats(-2, 2), max_size=5))
def test_one_entry_per_distinct_confidence_each_by_its_definition(case, anywhere):
    curve, rows, levels = case.curve, case.rows, brute.levels(case.rows)
    assert curve.thresholds.tolist() == [float(c) for c in levels]
    assert len(curve) == len(levels)
    assert curve.n_rows == len(rows)
    brute.assert_close(curve.mean_loss, brute.weighted_loss(rows) / brute.weight_of(rows))
    curves = (curve.coverage, curve.selective_risk, curve.generalized_risk)
    for values, expected in zip(curves, zip(*brute.working_points(rows), strict=True), strict=True):
        brute.assert_close(values, list(expected))
        assert np.all((values >= 0) & (values <= 1))
    assert curve.coverage[-1] == 1.0
    assert np.all(np.diff(curve.coverage) > 0)
    assert curve.n_accepted.tolist() == [len(brute.accepted(rows, c)) for c in levels]
    at = [-math.inf, *anywhere, *map(float, levels), math.inf]
    expected = [sum(level >= t for level in levels) for t in at]
    assert curve.n_blocks_accepted(np.array(at)).tolist() == expected


def test_to_frame_has_one_row_per_entry_and_every_quantity():
    curve = curve_of([0, 1, 0, 1], [0.9, 0.9, 0.7, 0.6], [1, 2, 1, 1])
    with pytest.raises(dataclasses.FrozenInstanceError):
        curve.thresholds = np.array([0.1])
    assert curve.to_frame().to_dict("list") == {
        "threshold": [0.9, 0.7, 0.6],
        "coverage": [0.6, 0.8, 1.0],
        "selective_risk": [2 / 3, 0.5, 0.6],
        "generalized_risk": [0.4, 0.4, 0.6],
        "n_accepted": [2, 3, 4],
    }


def test_from_proba_is_the_curve_of_its_outcomes():
    y_true, y_proba = ["b", "a", "b"], [[0.1, 0.9], [0.2, 0.8], [0.6, 0.4]]
    options = {"labels": ["a", "b"], "confidence": "margin", "sample_weight": [1, 2, 3]}
    curve = RiskCoverageCurve.from_proba(y_true, y_proba, **options)
    expected = RiskCoverageCurve.from_outcomes(Outcomes.from_proba(y_true, y_proba, **options))
    assert curve.to_frame().equals(expected.to_frame())
    assert curve.selective_risk.tolist() == [0.0, 2 / 3, 5 / 6]


def test_float32_confidences_are_compared_as_float64():
    sure = np.array([0.1, 0.9], dtype=np.float32)
    curve = curve_of([0, 1], sure)
    assert curve.thresholds.dtype == np.float64
    assert curve.n_blocks_accepted(np.array([float(sure[1]), 0.9])).tolist() == [1, 0]


# Working points --------------------------------------------------------------------------


@pytest.mark.parametrize("q", [0.07, 0.14, 0.28, 0.55])
def test_coverage_seven_of_a_hundred_needs_seven_rows(q):
    """ceil(q n) is one too many for these shares."""
    n_wanted = round(100 * q)
    loss = np.zeros(100)
    loss[n_wanted] = 1.0  # the first row that is not needed is an error
    assert curve_of(loss, -np.arange(100)).risk_at_coverage(q) == 0.0


def test_the_largest_set_within_a_risk():
    crossing = curve_of([1, 0, 0, 0, 1, 1], [6, 5, 4, 3, 2, 1])
    assert crossing.coverage_at_risk(0.25) == 4 / 6  # not the first crossing
    one_in_ten = curve_of([1, 0, 0, 0, 0, 0, 0, 0, 0, 1], -np.arange(10))
    assert one_in_ten.coverage_at_reliability(0.9) == 0.9
    assert curve_of([0.1, 0.1, 0.1], [0.9, 0.8, 0.7]).coverage_at_risk(0.1) == 1.0


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 0.7, 3.0, 1e-3])
@pytest.mark.parametrize(
    "point", ["risk_at_coverage", "coverage_at_risk", "coverage_at_reliability"]
)
def test_constant_weights_do_not_move_a_working_point(point, scale):
    """Half of the rows is half of the rows, whatever each of them weighs."""
    for n in (10, 20, 30, 70):
        rng = np.random.default_rng(n)
        loss, confidence = (rng.random(n) < 0.3).astype(float), rng.permutation(n)
        plain, scaled = curve_of(loss, confidence), curve_of(loss, confidence, np.full(n, scale))
        for q in np.arange(1, 11) / 10:
            brute.assert_close(getattr(scaled, point)(q), getattr(plain, point)(q))


# AURC ------------------------------------------------------------------------------------


@brute.examples(60)
@given(brute.row_cases(unit=False, weights=("none", "integer"), max_rows=5))
def test_aurc_is_the_mean_over_every_order_of_the_tied_rows(case):
    rows = case.rows
    if brute.weight_of(rows) > 7:
        return
    brute.assert_close(case.curve.aurc(), brute.aurc_over_all_orders(rows))


@brute.examples(20)
@given(brute.row_cases(unit=False, max_rows=8))
def test_aurc_integral_is_the_integral_of_selective_risk_over_coverage(case):
    area, before, loss = 0.0, 0.0, 0.0
    for w, rho in ((float(w), float(rho)) for w, rho in brute.blocks(case.rows)):
        if before == 0:
            area += rho * w
        else:
            area += quad(lambda x, L=loss, W=before, r=rho: (L + r * (x - W)) / x,
                         before, before + w)[0]  # fmt: skip
        before, loss = before + w, loss + w * rho
    assert case.curve.aurc(estimator="integral") == pytest.approx(area / before, rel=1e-8, abs=1e-9)


@brute.examples(40)
@given(brute.row_cases(unit=False, weights=("none",), max_rows=6))
def test_no_order_has_a_smaller_aurc_than_the_best_one(case):
    losses = [row.loss for row in case.rows]
    orders = set(permutations(losses))
    areas = [brute.aurc(brute.rows_of(order, range(len(order), 0, -1))) for order in orders]
    brute.assert_close(case.curve.best_aurc(), min(areas))


@brute.examples(100)
@given(brute.perfect_cases())
def test_a_perfect_ranking_has_eaurc_exactly_zero(case):
    assert case.curve.eaurc() == 0.0
    assert naurc(case.curve) == 0.0 or len(set(case.loss.tolist())) == 1


def test_only_weights_below_half_the_rows_are_warned_about_where_they_count():
    curve_of([0, 1, 0, 1], [4, 3, 2, 1], [0.5] * 4).aurc()  # a warning would be an error
    curve_of([0, 1, 0, 1, 1, 1, 1], [4, 3, 2, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]).aurc()
    curve, same = (curve_of([0, 1, 0, 1], [4, 3, 2, 1], w) for w in ([0.01] * 4, None))
    brute.assert_close(curve.aurc(estimator="integral"), same.aurc(estimator="integral"))
    brute.assert_close(curve.augrc(), same.augrc())


# AUGRC -----------------------------------------------------------------------------------


def test_a_last_row_of_negligible_weight_does_not_break_the_partial_area():
    curve = curve_of([0, 1, 1], [0.9, 0.8, 0.7], [1.0, 1.0, 1e-20])
    brute.assert_close(curve.augrc(coverage_range=(0.0, 1.0)), 0.125)
    brute.assert_close(curve.augrc(coverage_range=(0.5, 1.0)), 0.25)


# CWSA ------------------------------------------------------------------------------------


@brute.examples(100)
@given(brute.row_cases(), st.booleans())
def test_right_limits_are_the_values_at_the_lower_end_of_each_interval(case, plus):
    at, values = case.curve.cwsa_right_limits(plus=plus)
    brute.assert_close(values, brute.right_limits(case.rows, plus=plus))
    levels = [float(c) for c in brute.levels(case.rows)]
    assert at.tolist() == [*(math.nextafter(c, math.inf) for c in levels[1:]), 0.0]
    assert case.curve.n_blocks_accepted(at).tolist() == list(range(1, len(levels) + 1))


def test_cwsa_is_exact_next_to_certainty_for_many_rows(rng):
    """A hundred thousand ordinary rows stand before the ones that are nearly certain."""
    n, n_sure = 100_000, 50
    sure = 1 - rng.integers(0, 9000, n_sure) / 2**53
    confidence = np.concatenate([rng.uniform(0.5, 0.9, n), sure])
    loss = np.concatenate([rng.random(n) < 0.3, rng.random(n_sure) < 0.3]).astype(float)
    at = [1 - k / 2**53 for k in (1, 10, 500, 4000, 9000)]
    rows = brute.rows_of(loss[n:], confidence[n:])
    curve = curve_of(loss, confidence)
    brute.assert_close(curve.cwsa(at), [brute.cwsa(rows, t) for t in at], rel=0, tiny=1e-12)
    expected = [brute.cwsa(rows, t, plus=True) for t in at]
    brute.assert_close(curve.cwsa_plus(at), expected, rel=0, tiny=1e-12)


def test_cwsa_of_a_single_number_is_an_array_of_one_and_zero_above_every_confidence():
    curve = curve_of([0, 1], [0.9, 0.75])
    brute.assert_close(curve.cwsa(0.5), [0.15])
    assert curve.cwsa(0.5).shape == (1,)
    assert curve.cwsa([0.95]).tolist() == curve.cwsa_plus([0.95]).tolist() == [0.0]


# Order and weight of rows ----------------------------------------------------------------


def everything(curve, *, unit):
    """Return every quantity of the curve as bytes."""
    options = [{}, {"estimator": "integral"}, {"ties": "block"}]
    numbers = [curve.aurc(**chosen) for chosen in options]
    numbers += [curve.eaurc(), naurc(curve), curve.best_aurc(), curve.mean_loss]
    numbers += [curve.augrc(), curve.augrc(coverage_range=(0.2, 0.7))]
    numbers += [curve.risk_at_coverage(0.4), curve.coverage_at_risk(0.3)]
    numbers += [curve.coverage_at_reliability(0.9)]
    arrays = [curve.coverage, curve.selective_risk, curve.generalized_risk, curve.n_accepted]
    if unit:
        arrays += [curve.cwsa(), curve.cwsa_plus(), curve.cwsa([0.3, 0.6]), curve.cwsa_plus(0.55)]
        arrays += [curve.cwsa_right_limits(plus=plus)[1] for plus in (True, False)]
    return [np.array(numbers).tobytes(), *(values.tobytes() for values in arrays)]


@brute.examples(100)
@given(brute.row_cases(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_no_bit(case, random):
    order = list(range(len(case.loss)))
    random.shuffle(order)
    weight = None if case.weight is None else case.weight[order]
    shuffled = curve_of(case.loss[order], case.confidence[order], weight)
    assert shuffled.thresholds.tolist() == case.curve.thresholds.tolist()
    assert everything(shuffled, unit=True) == everything(case.curve, unit=True)


def test_the_order_of_many_tied_rows_changes_no_bit(rng):
    """Sums over long blocks of real numbers depend on their order, unless it is fixed."""
    n = 5000
    columns = np.array([rng.random(n), rng.integers(0, 3, n) / 2, rng.uniform(0.5, 2, n)])
    expected = everything(curve_of(*columns), unit=True)
    for _ in range(5):
        assert everything(curve_of(*columns[:, rng.permutation(n)]), unit=True) == expected


@pytest.mark.parametrize("weight", [1e-170, 1e170])
def test_weights_of_extreme_size_neither_vanish_nor_overflow(weight):
    loss, confidence = [0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6]
    plain, scaled = curve_of(loss, confidence), curve_of(loss, confidence, [weight] * 4)
    brute.assert_close(scaled.augrc(), plain.augrc())
    brute.assert_close(scaled.aurc(estimator="integral"), plain.aurc(estimator="integral"))
    brute.assert_close(scaled.cwsa(0.5), plain.cwsa(0.5))
    brute.assert_close(scaled.selective_risk, plain.selective_risk)


# Bad input -------------------------------------------------------------------------------

RANGES = [(0.8, 0.2), (0.5, 0.5), (0.5, 1.5), (-0.1, 1), (NAN, 1), 0.5, (0.5,), (0, 0.5, 1)]
#: A method, its arguments, and the one that the message names.
BAD = [
    ("aurc", {"estimator": "exact"}, "estimator"),
    ("aurc", {"ties": "mean"}, "ties"),
    ("aurc", {"estimator": "integral", "ties": "block"}, "ties"),
    ("augrc", {"estimator": "empirical"}, "estimator"),
    *(("augrc", {"coverage_range": bad}, "coverage_range") for bad in RANGES),
    ("augrc", {"estimator": "unbiased", "coverage_range": (0, 0.5)}, "coverage_range"),
    *(("risk_at_coverage", {"coverage": bad}, "coverage") for bad in (0.0, 1.01, NAN, "0.5")),
    *(("coverage_at_risk", {"max_risk": bad}, "max_risk") for bad in (-0.1, 2)),
    *(("coverage_at_reliability", {"reliability": bad}, "reliability") for bad in (95, NAN)),
    *(("cwsa", {"thresholds": bad}, "thresholds") for bad in (1.0, [0.5, -0.1], "high", [[0.5]])),
    *(("cwsa_plus", {"thresholds": bad}, "thresholds") for bad in ([NAN], math.inf)),
]


@pytest.mark.parametrize(("method", "options", "argument"), BAD, ids=str)
def test_a_bad_argument_is_named(method, options, argument):
    check_refused(argument, partial(getattr(curve_of([0, 1], [0.9, 0.7]), method), **options))


def test_what_the_rows_do_not_allow_is_named():
    with pytest.raises(ValueError, match="two rows"):
        curve_of([0], [0.9]).augrc(estimator="unbiased")
    # Weights, constant weights, and weights whose sum over a tie is whole.
    for confidence, weight in [
        ([0.9, 0.8, 0.7], [1, 2, 1]), ([0.9, 0.8, 0.7], [2, 2, 2]), ([0.9, 0.9, 0.7], [0.5, 1.5, 1])
    ]:  # fmt: skip
        weighted = curve_of([0, 1, 0], confidence, weight)
        for area, estimator in ((weighted.aurc, "ln"), (weighted.augrc, "unbiased")):
            with pytest.raises(ValueError, match="sample_weight"):
                area(estimator=estimator)
    for confidence in ([1.5, 0.5], [0.5, -0.5], [12.0, -3.0]):
        unsure = curve_of([0, 1], confidence)
        for call in (
            unsure.cwsa, lambda c=unsure: c.cwsa(0.5), lambda c=unsure: c.cwsa_plus([0.1, 0.6]),
            lambda c=unsure: c.cwsa_right_limits(plus=True),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=r"CWSA.*confidence.*\[0, 1\]"):
                call()


@pytest.mark.parametrize("n", [100, 10_000, 1_000_000])
def test_the_excess_of_a_nearly_perfect_ranking_does_not_cancel(n):
    """One error right before the last right row: the AURC is many times larger."""
    k = n // 2
    loss = np.repeat([0.0, 1.0], [k, n - k])
    loss[[k - 1, k]] = 1, 0
    curve = curve_of(loss, np.linspace(1, 0.01, n))
    assert curve.eaurc() == pytest.approx(1 / k / n, rel=1e-12)


@given(st.lists(st.integers(0, 8), max_size=20), st.lists(st.integers(0, 9), max_size=5))
def test_the_largest_set_within_each_target(risks, targets):
    risk = np.array(risks) / 8
    found = count_within(risk, np.array(targets) / 9)
    for n, target in zip(found.tolist(), targets, strict=True):
        within = [k + 1 for k, r in enumerate(risk) if r <= target / 9]
        assert n == max(within, default=0)
