"""skselect._courses: curves with one value per tie block."""

import numpy as np
import pytest
from hypothesis import given

from skselect import Outcomes, RiskCoverageCurve
from skselect._blocks import CHUNK
from tests import brute
from tests.brute import assert_close, examples, row_cases

NAMES = ("threshold", "coverage", "selective_risk", "generalized_risk", "cwsa", "cwsa_plus")


@examples(60)
@given(row_cases())
def test_each_curve_is_its_definition_and_all_come_in_one_pass(case):
    found = case.curve.courses(*NAMES)
    for k, c in enumerate(brute.levels(case.rows)):
        expected = [
            c, brute.coverage(case.rows, c), brute.selective_risk(case.rows, c),
            brute.generalized_risk(case.rows, c), brute.cwsa(case.rows, c),
            brute.cwsa(case.rows, c, plus=True),
        ]  # fmt: skip
        assert_close([found[name][k] for name in NAMES], expected)


def test_curves_over_many_chunks_are_those_at_the_thresholds():
    rng = np.random.default_rng(0)
    n = 2 * CHUNK + 11
    curve = RiskCoverageCurve.from_outcomes(Outcomes(rng.random(n) < 0.2, rng.random(n)))
    found = curve.courses("threshold", "cwsa", "cwsa_plus", "cwsa_limit", "cwsa_plus_limit")
    some = np.array([0, 5, CHUNK - 1, CHUNK, 2 * CHUNK - 1, 2 * CHUNK, n - 2])
    t = found["threshold"][some]
    assert found["cwsa"][some] == pytest.approx(curve.cwsa(t), rel=1e-10, abs=1e-13)
    assert found["cwsa_plus"][some] == pytest.approx(curve.cwsa_plus(t), rel=1e-10, abs=1e-13)
    below = np.nextafter(found["threshold"][some + 1], np.inf)
    assert found["cwsa_limit"][some] == pytest.approx(curve.cwsa(below), abs=1e-10)
    assert found["cwsa_plus_limit"][some] == pytest.approx(curve.cwsa_plus(below), abs=1e-10)


def test_a_curve_asked_for_twice_is_the_same_array():
    curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 1], [0.9, 0.8]))
    assert curve.coverage is curve.courses("coverage", "threshold")["coverage"]


def test_an_unknown_curve_is_named():
    curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 1], [0.9, 0.8]))
    with pytest.raises(ValueError, match=r"names.*'speed'"):
        curve.courses("speed")


@pytest.mark.parametrize("n", [3, CHUNK, 2 * CHUNK + 11])
@pytest.mark.parametrize("max_points", [2, 3, 100])
def test_some_points_of_a_curve_are_exactly_those_of_all(n, max_points):
    rng = np.random.default_rng(0)
    curve = RiskCoverageCurve.from_outcomes(Outcomes(rng.random(n) < 0.2, rng.random(n)))
    some, every = curve.courses(*NAMES, max_points=max_points), curve.courses(*NAMES)
    place = np.searchsorted(-every["threshold"], -some["threshold"])
    assert len(place) == min(max_points, n)
    assert (place[0], place[-1]) == (0, n - 1)
    for name in NAMES:
        assert np.array_equal(some[name], every[name][place])
    table = curve.to_frame(max_points=max_points)
    assert table.equals(curve.to_frame().iloc[place].reset_index(drop=True))


def test_a_curve_has_at_least_two_points():
    curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 1], [0.9, 0.8]))
    with pytest.raises(ValueError, match="max_points"):
        curve.to_frame(max_points=1)
