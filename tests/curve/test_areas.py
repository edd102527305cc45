"""Harmonic gaps, areas under broken lines; CWSA in fractions and the sums that follow from it."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from skselect.curve import areas
from skselect.curve.areas import area_between, harmonic_gap
from tests import brute
from tests.brute import assert_close, examples


def gap(start, width):
    return float(harmonic_gap(np.array([start]), np.array([width]))[0])


def test_harmonic_gap_is_the_sum_of_reciprocals():
    starts = [0, 1, 2, 14, 15, 16, 17, 100, 1000]
    for start, width in itertools.product(starts, [1, 2, 15, 16, 17, 500]):
        expected = sum((Fraction(1, start + k) for k in range(1, width + 1)), Fraction(0))
        assert_close(gap(start, width), expected, rel=2e-13, tiny=0)


@examples(150)
@given(st.floats(0, 1e9), st.floats(1e-9, 1e9))
def test_harmonic_gap_of_real_arguments_does_not_cancel(start, width):
    expected = brute.harmonic_gap(Fraction(start), Fraction(width))
    assert_close(gap(start, width), expected, rel=2e-13, tiny=0)


@st.composite
def broken_lines(draw):
    n = draw(st.integers(1, 12))
    steps = draw(st.lists(st.floats(0.01, 1), min_size=n, max_size=n))
    x = np.concatenate([[0.0], np.cumsum(steps)])
    y = np.array(draw(st.lists(st.floats(0, 1), min_size=n + 1, max_size=n + 1)))
    ends = st.one_of(st.floats(0, float(x[-1])), st.sampled_from(x.tolist()))
    low, high = sorted([draw(ends), draw(ends)])
    return x, y, low, high


@examples(150)
@given(broken_lines())
def test_area_between_adds_up_the_pieces(case):
    x, y, low, high = case
    points = [(Fraction(a), Fraction(b)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    expected = brute.area_between(points, Fraction(low), Fraction(high))
    assert_close(area_between(x, y, low, high), expected)


ROWS = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from([0.0, 0.25, 1.0]), st.integers(1, 3)),
    min_size=1,
    max_size=8,
)
THRESHOLDS = st.sampled_from([0.0, 0.25, 0.5, 0.9, 0.99])


def term(confidence, loss, threshold, sign):
    """Return what a row adds, in fractions."""
    c, l, t = Fraction(confidence), Fraction(loss), Fraction(threshold)
    return (c - t) / (1 - t) * (1 - l + int(sign) * l) if c >= t else Fraction(0)


@pytest.mark.parametrize("sign", [-1.0, 0.0])
@examples(100)
@given(ROWS, THRESHOLDS)
def test_terms_and_their_sums_are_the_definition(sign, rows, threshold):
    confidence, loss, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    expected = [w * term(c, l, threshold, sign) for c, l, w in rows]
    found = areas.row_terms(loss, confidence, threshold, sign, weight)
    assert_close(found, [float(x) for x in expected], tiny=1e-15)

    kept = weight * (confidence >= threshold)
    sums = (kept, kept * loss, kept * (1 - loss) * (1 - confidence), kept * loss * (1 - confidence))
    accepted = (np.sum(values, keepdims=True) for values in sums)
    slope = areas.slope(np.array([1 - threshold]))
    total = areas.sum_terms(*accepted, slope, plus=sign == 0)
    assert_close(total, [float(sum(expected))], tiny=1e-13)

    phi = np.where(kept > 0, areas.phi(confidence, threshold), 0.0)
    powers = (kept, kept * (1 - confidence), kept * (1 - confidence) ** 2)
    squares = areas.sum_squares(*(np.sum(values) for values in powers), slope)
    assert_close(squares, [np.sum(kept * phi**2)], tiny=1e-9)


def test_a_threshold_of_one_has_the_limit_from_below():
    assert areas.row_terms(np.zeros(2), np.array([1.0, 0.5]), 1.0, 0.0).tolist() == [1.0, 0.0]
    assert areas.slope(np.array([0.0, -1.0, 0.5])).tolist() == [0.0, 0.0, 2.0]
