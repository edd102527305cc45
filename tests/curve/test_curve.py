"""RiskCoverageCurve against its definitions."""

import dataclasses
import math
import warnings
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from skselect import Outcomes, RiskCoverageCurve
from skselect.curve.curve import count_within
from tests import brute
from tests.brute import (
    WEIGHTS,
    assert_close,
    examples,
    perfect_cases,
    row_cases,
    rows_of,
    thresholds,
)

NAN = float("nan")


def curve_of(loss, confidence, weight=None):
    return RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence, weight))


def naurc(curve):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return curve.naurc()


# The curve -------------------------------------------------------------------------------


@examples(100)
@given(row_cases(unit=False), st.lists(st.floats(-2, 2), max_size=5))
def test_one_entry_per_distinct_confidence_each_by_its_definition(case, anywhere):
    curve, rows, levels = case.curve, case.rows, brute.levels(case.rows)
    assert curve.thresholds.tolist() == [float(c) for c in levels]
    assert len(curve) == len(levels)
    assert curve.n_rows == len(rows)
    assert_close(curve.mean_loss, brute.weighted_loss(rows) / brute.weight_of(rows))
    curves = (curve.coverage, curve.selective_risk, curve.generalized_risk)
    for values, expected in zip(curves, zip(*brute.working_points(rows), strict=True), strict=True):
        assert_close(values, list(expected))
        assert np.all((values >= 0) & (values <= 1))
    assert curve.coverage[-1] == 1.0
    assert np.all(np.diff(curve.coverage) > 0)
    assert curve.n_accepted.tolist() == [len(brute.accepted(rows, c)) for c in levels]
    at = [-math.inf, *anywhere, *map(float, levels), math.inf]
    expected = [sum(level >= t for level in levels) for t in at]
    assert curve.n_blocks_accepted(np.array(at)).tolist() == expected


def test_to_frame_has_one_row_per_entry_and_every_quantity():
    curve = curve_of([0, 1, 0, 1], [0.9, 0.9, 0.7, 0.6], [1, 2, 1, 1])
    frame = curve.to_frame()
    columns = ["threshold", "coverage", "selective_risk", "generalized_risk", "n_accepted"]
    assert frame.columns.tolist() == columns
    assert frame["threshold"].tolist() == [0.9, 0.7, 0.6]
    assert frame["coverage"].tolist() == [0.6, 0.8, 1.0]
    assert frame["selective_risk"].tolist() == [2 / 3, 0.5, 0.6]
    assert frame["generalized_risk"].tolist() == [0.4, 0.4, 0.6]
    assert frame["n_accepted"].tolist() == [2, 3, 4]


def test_from_proba_is_the_curve_of_its_outcomes():
    y_true, y_proba = ["b", "a", "b"], [[0.1, 0.9], [0.2, 0.8], [0.6, 0.4]]
    options = {"labels": ["a", "b"], "confidence": "margin", "sample_weight": [1, 2, 3]}
    curve = RiskCoverageCurve.from_proba(y_true, y_proba, **options)
    expected = RiskCoverageCurve.from_outcomes(Outcomes.from_proba(y_true, y_proba, **options))
    assert curve.to_frame().equals(expected.to_frame())
    assert curve.selective_risk.tolist() == [0.0, 2 / 3, 5 / 6]


def test_the_curve_is_frozen():
    curve = curve_of([0, 1], [0.9, 0.8])
    with pytest.raises(dataclasses.FrozenInstanceError):
        curve.thresholds = np.array([0.1])


def test_float32_confidences_are_compared_as_float64():
    sure = np.array([0.1, 0.9], dtype=np.float32)
    curve = curve_of([0, 1], sure)
    assert curve.thresholds.dtype == np.float64
    assert curve.n_blocks_accepted(np.array([float(sure[1]), 0.9])).tolist() == [1, 0]


# Working points --------------------------------------------------------------------------

EXACT = {"weights": ("none", "integer"), "losses": ("zero_one", "dyadic")}
SHARES = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 0.07, 0.1, 0.14, 0.25, 0.28, 0.3, 0.5, 0.55, 0.9, 1.0])
)


@examples(150)
@given(row_cases(**EXACT), SHARES)
def test_working_points_are_the_smallest_set_with_a_coverage_and_the_largest_with_a_risk(case, q):
    curve, rows = case.curve, case.rows
    if q > 0:
        assert_close(curve.risk_at_coverage(q), brute.risk_at_coverage(rows, q))
    assert_close(curve.coverage_at_risk(q), brute.coverage_at_risk(rows, q))
    assert_close(curve.coverage_at_reliability(q), brute.coverage_at_reliability(rows, q))


@examples(100)
@given(row_cases(), st.floats(0.001, 0.999))
def test_working_points_with_real_weights_and_losses(case, share):
    curve, rows = case.curve, case.rows
    near = [p for point in brute.working_points(rows) for p in (*point, 1 - point[2])]
    if any(abs(float(p) - share) < 1e-9 for p in near):
        return  # on a boundary rounding may decide; whole weights are tested exactly above
    assert_close(curve.risk_at_coverage(share), brute.risk_at_coverage(rows, share))
    assert_close(curve.coverage_at_risk(share), brute.coverage_at_risk(rows, share))
    expected = brute.coverage_at_reliability(rows, share)
    assert_close(curve.coverage_at_reliability(share), expected)


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
            assert_close(getattr(scaled, point)(q), getattr(plain, point)(q))


# AURC ------------------------------------------------------------------------------------


@examples(100)
@given(row_cases(unit=False))
def test_areas_are_their_definitions(case):
    curve, rows = case.curve, case.rows
    assert_close(curve.aurc(), brute.aurc(rows))
    assert_close(curve.aurc(estimator="integral"), brute.aurc_integral(rows))
    assert_close(curve.aurc(ties="block"), brute.aurc_block(rows))
    assert_close(curve.best_aurc(), brute.aurc(brute.best_order(rows)))
    assert_close(curve.eaurc(), brute.eaurc(rows))
    assert_close(curve.eaurc(), curve.aurc() - curve.best_aurc(), tiny=1e-12)
    assert curve.eaurc() >= 0
    assert_close(curve.augrc(), brute.augrc(rows))
    assert_close(curve.augrc(coverage_range=(0.0, 1.0)), curve.augrc())
    if case.weight is None:
        assert_close(curve.aurc(estimator="ln"), brute.aurc_ln(rows))
        if len(rows) > 1:
            assert_close(curve.augrc(estimator="unbiased"), brute.augrc_unbiased(rows))


@examples(60)
@given(row_cases(unit=False, weights=("none", "integer"), max_rows=5))
def test_aurc_is_the_mean_over_every_order_of_the_tied_rows(case):
    rows = case.rows
    if brute.weight_of(rows) > 7:
        return
    assert_close(case.curve.aurc(), brute.aurc_over_all_orders(rows))


@examples(60)
@given(row_cases(unit=False, weights=("real",)))
def test_aurc_of_real_weights_is_the_digamma_closed_form(case):
    assert_close(case.curve.aurc(), brute.aurc_digamma(case.rows))


@examples(20)
@given(row_cases(unit=False, max_rows=8))
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


@examples(40)
@given(row_cases(unit=False, weights=("none",), max_rows=6))
def test_no_order_has_a_smaller_aurc_than_the_best_one(case):
    losses = [row.loss for row in case.rows]
    orders = set(permutations(losses))
    areas = [brute.aurc(rows_of(order, range(len(order), 0, -1))) for order in orders]
    assert_close(case.curve.best_aurc(), min(areas))


@examples(100)
@given(perfect_cases())
def test_a_perfect_ranking_has_eaurc_exactly_zero(case):
    assert case.curve.eaurc() == 0.0
    assert naurc(case.curve) == 0.0 or len(set(case.loss.tolist())) == 1


@examples(100)
@given(row_cases(unit=False, losses=("zero_one", "dyadic")))
def test_naurc_is_its_definition(case):
    assert_close(naurc(case.curve), brute.naurc(case.rows), tiny=1e-11)


@examples(60)
@given(row_cases(unit=False))
def test_naurc_of_equal_losses_is_nan_with_a_warning(case):
    curve = curve_of(np.full(len(case.loss), 0.3), case.confidence, case.weight)
    with pytest.warns(UserWarning, match="naurc"):
        assert math.isnan(curve.naurc())


def test_naurc_is_one_where_all_rows_tie():
    """A tie is a random order in expectation."""
    assert curve_of([0, 1, 0, 1, 1], [0.5] * 5).naurc() == pytest.approx(1.0, rel=1e-12)


def test_aurc_known_values():
    # R_1..R_4 = 1, 1/2, 1/3, 1/4, then the same rows all tied: the mean loss at every k.
    assert curve_of([1, 0, 0, 0], [4, 3, 2, 1]).aurc() == pytest.approx(25 / 48, rel=1e-15)
    assert curve_of([1, 0, 0, 0], [1, 1, 1, 1]).aurc() == pytest.approx(1 / 4, rel=1e-15)
    assert curve_of([1], [1]).aurc() == 1.0


@pytest.mark.parametrize("method", ["aurc", "eaurc", "naurc"])
def test_small_weights_are_warned_about_where_they_count_as_rows(method):
    curve = curve_of([0, 1, 0, 1], [4, 3, 2, 1], [0.25] * 4)
    with pytest.warns(UserWarning, match="sample_weight.*integral"):
        getattr(curve, method)()


def test_only_weights_below_half_the_rows_are_warned_about_where_they_count():
    curve_of([0, 1, 0, 1], [4, 3, 2, 1], [0.5] * 4).aurc()  # a warning would be an error
    curve_of([0, 1, 0, 1, 1, 1, 1], [4, 3, 2, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]).aurc()
    curve, same = (curve_of([0, 1, 0, 1], [4, 3, 2, 1], w) for w in ([0.01] * 4, None))
    assert_close(curve.aurc(estimator="integral"), same.aurc(estimator="integral"))
    assert_close(curve.augrc(), same.augrc())


# AUGRC -----------------------------------------------------------------------------------


@examples(150)
@given(row_cases(unit=False), SHARES, SHARES)
def test_partial_augrc_is_the_area_over_the_range_divided_by_its_width(case, a, b):
    low, high = min(a, b), max(a, b)
    if high - low < 1e-3:
        return
    curve, rows = case.curve, case.rows
    assert_close(curve.augrc(coverage_range=(low, high)), brute.augrc(rows, low, high), tiny=1e-12)


@examples(60)
@given(row_cases(unit=False, losses=("zero_one",)))
def test_augrc_of_errors_follows_from_failure_auroc_and_accuracy(case):
    rows = case.rows
    if len({row.loss for row in rows}) < 2:
        return
    a = 1 - brute.weighted_loss(rows) / brute.weight_of(rows)
    expected = (1 - brute.failure_auroc(rows)) * a * (1 - a) + (1 - a) ** 2 / 2
    assert_close(case.curve.augrc(), expected)


def test_a_last_row_of_negligible_weight_does_not_break_the_partial_area():
    curve = curve_of([0, 1, 1], [0.9, 0.8, 0.7], [1.0, 1.0, 1e-20])
    assert_close(curve.augrc(coverage_range=(0.0, 1.0)), 0.125)
    assert_close(curve.augrc(coverage_range=(0.5, 1.0)), 0.25)


# CWSA ------------------------------------------------------------------------------------


@examples(100)
@given(row_cases(), st.lists(thresholds, min_size=1, max_size=8))
def test_cwsa_and_cwsa_plus_at_any_thresholds_and_at_every_entry(case, at):
    curve, rows, levels = case.curve, case.rows, brute.levels(case.rows)
    at = [*at, *(float(c) for c in levels if c < 1)]
    for method, plus in ((curve.cwsa, False), (curve.cwsa_plus, True)):
        assert_close(method(at), [brute.cwsa(rows, t, plus=plus) for t in at])
        assert_close(method(), [brute.cwsa(rows, c, plus=plus) for c in levels])


@examples(100)
@given(row_cases(), st.booleans())
def test_right_limits_are_the_values_at_the_lower_end_of_each_interval(case, plus):
    at, values = case.curve.cwsa_right_limits(plus=plus)
    assert_close(values, brute.right_limits(case.rows, plus=plus))
    levels = [float(c) for c in brute.levels(case.rows)]
    assert at.tolist() == [*(math.nextafter(c, math.inf) for c in levels[1:]), 0.0]
    assert case.curve.n_blocks_accepted(at).tolist() == list(range(1, len(levels) + 1))


@examples(60)
@given(row_cases(), st.lists(thresholds, min_size=1, max_size=20))
def test_no_threshold_has_a_better_cwsa_plus_than_the_right_limits(case, at):
    _, limits = case.curve.cwsa_right_limits(plus=True)
    assert np.max(case.curve.cwsa_plus(at)) <= max(float(limits.max()), 0.0) + 1e-13


@examples(100)
@given(
    st.lists(st.tuples(st.integers(0, 9000), st.sampled_from([0.0, 0.5, 1.0])), min_size=1),
    st.lists(st.integers(1, 9000), min_size=1, max_size=10),
)
def test_cwsa_is_exact_next_to_certainty(rows, at):
    """All confidences and thresholds lie within 1e-12 of 1."""
    ulp = 2.0**-53
    confidence = [1 - k * ulp for k, _ in rows]
    case = brute.RowCase(np.array([a for _, a in rows]), np.array(confidence), None)
    at = [1 - k * ulp for k in at]
    expected = [brute.cwsa(case.rows, t) for t in at]
    assert_close(case.curve.cwsa(at), expected, rel=0, tiny=1e-12)
    expected = [brute.cwsa(case.rows, t, plus=True) for t in at]
    assert_close(case.curve.cwsa_plus(at), expected, rel=0, tiny=1e-12)


def test_cwsa_is_exact_next_to_certainty_for_many_rows():
    """A hundred thousand ordinary rows stand before the ones that are nearly certain."""
    rng = np.random.default_rng(0)
    n, n_sure = 100_000, 50
    sure = 1 - rng.integers(0, 9000, n_sure) / 2**53
    confidence = np.concatenate([rng.uniform(0.5, 0.9, n), sure])
    loss = np.concatenate([rng.random(n) < 0.3, rng.random(n_sure) < 0.3]).astype(float)
    at = [1 - k / 2**53 for k in (1, 10, 500, 4000, 9000)]
    rows = rows_of(loss[n:], confidence[n:])
    curve = curve_of(loss, confidence)
    assert_close(curve.cwsa(at), [brute.cwsa(rows, t) for t in at], rel=0, tiny=1e-12)
    expected = [brute.cwsa(rows, t, plus=True) for t in at]
    assert_close(curve.cwsa_plus(at), expected, rel=0, tiny=1e-12)


def test_cwsa_of_a_single_number_is_an_array_of_one_and_zero_above_every_confidence():
    curve = curve_of([0, 1], [0.9, 0.75])
    assert_close(curve.cwsa(0.5), [0.15])
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


@examples(100)
@given(row_cases(), st.randoms(use_true_random=False))
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


@examples(100)
@given(row_cases(weights=("integer",)))
def test_a_whole_weight_is_the_row_repeated(case):
    weighted = case.curve
    plain = curve_of(
        brute.repeated(case.loss, case.weight), brute.repeated(case.confidence, case.weight)
    )
    assert weighted.thresholds.tolist() == plain.thresholds.tolist()
    for name in ("coverage", "selective_risk", "generalized_risk"):
        assert_close(getattr(weighted, name), getattr(plain, name))
    for a, b in (
        (weighted.aurc(), plain.aurc()),
        (weighted.aurc(estimator="integral"), plain.aurc(estimator="integral")),
        (weighted.aurc(ties="block"), plain.aurc(ties="block")),
        (weighted.eaurc(), plain.eaurc()),
        (weighted.augrc(), plain.augrc()),
        (weighted.augrc(coverage_range=(0.1, 0.6)), plain.augrc(coverage_range=(0.1, 0.6))),
        (weighted.cwsa(), plain.cwsa()),
        (weighted.cwsa_plus([0.2, 0.6]), plain.cwsa_plus([0.2, 0.6])),
        (weighted.cwsa_right_limits(plus=False)[1], plain.cwsa_right_limits(plus=False)[1]),
    ):
        assert_close(a, b)


@examples(60)
@given(row_cases(weights=("none", "real")))
def test_weights_of_one_are_no_weights(case):
    assert everything(curve_of(case.loss, case.confidence, np.ones(len(case.loss))), unit=True) == (
        everything(curve_of(case.loss, case.confidence), unit=True)
    )


@pytest.mark.parametrize("weight", [1e-170, 1e170])
def test_weights_of_extreme_size_neither_vanish_nor_overflow(weight):
    loss, confidence = [0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6]
    plain, scaled = curve_of(loss, confidence), curve_of(loss, confidence, [weight] * 4)
    assert_close(scaled.augrc(), plain.augrc())
    assert_close(scaled.aurc(estimator="integral"), plain.aurc(estimator="integral"))
    assert_close(scaled.cwsa(0.5), plain.cwsa(0.5))
    assert_close(scaled.selective_risk, plain.selective_risk)


# Values at the edge ----------------------------------------------------------------------


@pytest.mark.parametrize("loss", [0.0, 1.0, 0.5])
def test_a_single_row(loss):
    curve = curve_of([loss], [0.75])
    assert curve.aurc() == curve.aurc(estimator="integral") == loss
    assert curve.augrc() == loss / 2
    assert curve.eaurc() == 0.0
    assert curve.risk_at_coverage(0.01) == loss
    assert curve.coverage_at_risk(0.0) == (loss == 0)
    assert curve.cwsa([0.5]).tolist() == [0.5 * (1 - 2 * loss)]


def test_no_errors_and_errors_only():
    curve = curve_of([0, 0, 0], [0.9, 0.8, 0.7])
    areas = [curve.aurc(estimator=name) for name in ("empirical", "integral", "ln")]
    assert [*areas, curve.eaurc(), curve.augrc()] == [0.0] * 5
    assert curve.coverage_at_risk(0.0) == curve.coverage_at_reliability(1.0) == 1.0
    curve = curve_of([1, 1, 1], [0.9, 0.8, 0.7])
    assert_close([curve.aurc(), curve.aurc(estimator="integral"), curve.augrc()], [1, 1, 0.5])
    assert curve.coverage_at_risk(0.99) == curve.coverage_at_reliability(0.99) == 0.0
    assert curve.eaurc() == 0.0
    assert curve.augrc(coverage_range=(0.5, 1.0)) == 0.75


def test_rows_of_weight_zero_do_not_exist():
    curve = curve_of([1, 0, 1], [0.99, 0.9, 0.8], [0, 1, 0])
    assert curve.thresholds.tolist() == [0.9]
    assert curve.n_rows == 1
    assert curve.eaurc() == curve.aurc() == 0.0


# Bad input -------------------------------------------------------------------------------

BAD = {
    "aurc_estimator": (lambda c: c.aurc(estimator="exact"), "estimator"),
    "aurc_ties": (lambda c: c.aurc(ties="mean"), "ties"),
    "aurc_ties_with_integral": (lambda c: c.aurc(estimator="integral", ties="block"), "ties"),
    "augrc_estimator": (lambda c: c.augrc(estimator="empirical"), "estimator"),
    "augrc_range_reversed": (lambda c: c.augrc(coverage_range=(0.8, 0.2)), "coverage_range"),
    "augrc_range_empty": (lambda c: c.augrc(coverage_range=(0.5, 0.5)), "coverage_range"),
    "augrc_range_above_one": (lambda c: c.augrc(coverage_range=(0.5, 1.5)), "coverage_range"),
    "augrc_range_below_zero": (lambda c: c.augrc(coverage_range=(-0.1, 1)), "coverage_range"),
    "augrc_range_nan": (lambda c: c.augrc(coverage_range=(NAN, 1)), "coverage_range"),
    "augrc_range_is_a_number": (lambda c: c.augrc(coverage_range=0.5), "coverage_range"),
    "augrc_range_of_one": (lambda c: c.augrc(coverage_range=(0.5,)), "coverage_range"),
    "augrc_range_of_three": (lambda c: c.augrc(coverage_range=(0, 0.5, 1)), "coverage_range"),
    "unbiased_with_range": (
        lambda c: c.augrc(estimator="unbiased", coverage_range=(0, 0.5)),
        "coverage_range",
    ),
    "unbiased_of_a_single_row": (
        lambda _: curve_of([0], [0.9]).augrc(estimator="unbiased"),
        "two rows",
    ),
    "coverage_zero": (lambda c: c.risk_at_coverage(0.0), "coverage"),
    "coverage_above_one": (lambda c: c.risk_at_coverage(1.01), "coverage"),
    "coverage_nan": (lambda c: c.risk_at_coverage(NAN), "coverage"),
    "coverage_text": (lambda c: c.risk_at_coverage("0.5"), "coverage"),
    "max_risk_negative": (lambda c: c.coverage_at_risk(-0.1), "max_risk"),
    "max_risk_above_one": (lambda c: c.coverage_at_risk(2), "max_risk"),
    "reliability_above_one": (lambda c: c.coverage_at_reliability(95), "reliability"),
    "reliability_nan": (lambda c: c.coverage_at_reliability(NAN), "reliability"),
    "cwsa_at_one": (lambda c: c.cwsa(1.0), "thresholds"),
    "cwsa_below_zero": (lambda c: c.cwsa([0.5, -0.1]), "thresholds"),
    "cwsa_plus_at_nan": (lambda c: c.cwsa_plus([NAN]), "thresholds"),
    "cwsa_plus_at_inf": (lambda c: c.cwsa_plus(math.inf), "thresholds"),
    "cwsa_at_text": (lambda c: c.cwsa("high"), "thresholds"),
    "cwsa_at_a_matrix": (lambda c: c.cwsa([[0.5]]), "thresholds"),
}


@pytest.mark.parametrize(("call", "argument"), BAD.values(), ids=BAD)
def test_a_bad_argument_is_named(call, argument):
    with pytest.raises(ValueError, match=argument):
        call(curve_of([0, 1, 0], [0.9, 0.8, 0.7]))


@pytest.mark.parametrize("call", [
    lambda c: c.aurc(estimator="ln"),
    lambda c: c.augrc(estimator="unbiased"),
], ids=["ln", "unbiased"])  # fmt: skip
@pytest.mark.parametrize(
    ("confidence", "weight"),
    [([0.9, 0.8, 0.7], [1, 2, 1]), ([0.9, 0.8, 0.7], [2, 2, 2]), ([0.9, 0.9, 0.7], [0.5, 1.5, 1])],
    ids=["whole", "constant", "sum of a tie is whole"],
)
def test_estimators_for_unweighted_rows_refuse_weights(call, confidence, weight):
    with pytest.raises(ValueError, match="sample_weight"):
        call(curve_of([0, 1, 0], confidence, weight))


@pytest.mark.parametrize("confidence", [[1.5, 0.5], [0.5, -0.5], [12.0, -3.0]])
@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.cwsa(),
        lambda c: c.cwsa(0.5),
        lambda c: c.cwsa_plus([0.1, 0.6]),
        lambda c: c.cwsa_right_limits(plus=True),
    ],
    ids=["cwsa", "cwsa at .5", "cwsa_plus", "right limits"],
)
def test_cwsa_refuses_confidences_that_are_no_probabilities(call, confidence):
    with pytest.raises(ValueError, match=r"CWSA.*confidence.*\[0, 1\]"):
        call(curve_of([0, 1], confidence))


@pytest.mark.parametrize("n", [100, 10_000, 1_000_000])
def test_the_excess_of_a_nearly_perfect_ranking_does_not_cancel(n):
    """One error right before the last right row: the AURC is many times larger."""
    k = n // 2
    loss = np.repeat([0.0, 1.0], [k, n - k])
    loss[[k - 1, k]] = 1, 0
    curve = curve_of(loss, np.linspace(1, 0.01, n))
    assert curve.eaurc() == pytest.approx(1 / k / n, rel=1e-12)


def test_areas_take_confidences_of_any_size():
    a, b = curve_of([0, 1, 0], [1e9, -3.0, -1e9]), curve_of([0, 1, 0], [0.9, 0.8, 0.7])
    assert (a.aurc(), a.augrc(), a.eaurc()) == (b.aurc(), b.augrc(), b.eaurc())


@pytest.mark.parametrize("kind", WEIGHTS)
def test_the_definitions_agree_with_each_other(kind):
    """The closed form of the expected AURC, the repeated rows and every order: one number."""
    loss, confidence = [0, 1, 0.5, 0, 1], [0.9, 0.9, 0.8, 0.7, 0.7]
    weight = {"none": None, "integer": [1, 2, 0, 1, 1], "real": [1.5, 0.5, 1, 2, 1]}[kind]
    rows = rows_of(loss, confidence, weight)
    if kind == "real":
        assert_close(brute.aurc_digamma(rows), float(brute.aurc(rows)))
        return
    assert brute.aurc_over_all_orders(rows) == brute.aurc_repeated(rows)
    assert_close(brute.aurc_digamma(rows), brute.aurc_repeated(rows), rel=1e-15)
    assert isinstance(brute.aurc(rows), Fraction)


@given(st.lists(st.integers(0, 8), max_size=20), st.lists(st.integers(0, 9), max_size=5))
def test_the_largest_set_within_each_target(risks, targets):
    risk = np.array(risks) / 8
    found = count_within(risk, np.array(targets) / 9)
    for n, target in zip(found.tolist(), targets, strict=True):
        within = [k + 1 for k, r in enumerate(risk) if r <= target / 9]
        assert n == max(within, default=0)
