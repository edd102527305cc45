"""skselect.curve.cwsa: the definition in fractions, and the sums that follow from it."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skselect.curve import cwsa
from skselect.curve.scan import Accepted
from tests.brute import assert_close, examples

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
    found = cwsa.row_terms(loss, confidence, threshold, sign, weight)
    assert_close(found, [float(x) for x in expected], tiny=1e-15)

    kept = weight * (confidence >= threshold)
    sums = (kept, kept * loss, kept * (1 - loss) * (1 - confidence), kept * loss * (1 - confidence))
    accepted = Accepted(*(np.sum(values, keepdims=True) for values in sums))
    slope = cwsa.slope(np.array([1 - threshold]))
    assert_close(cwsa.sum_terms(accepted, slope, sign), [float(sum(expected))], tiny=1e-13)

    phi = np.where(kept > 0, cwsa.phi(confidence, threshold), 0.0)
    powers = (kept, kept * (1 - confidence), kept * (1 - confidence) ** 2)
    squares = cwsa.sum_squares(*(np.sum(values) for values in powers), slope)
    assert_close(squares, [np.sum(kept * phi**2)], tiny=1e-9)
    shares = np.where(kept > 0, cwsa.phi_from_shortfall(1 - confidence, threshold), 0.0)
    assert_close(shares, phi, tiny=1e-13)


def test_a_threshold_of_one_has_the_limit_from_below():
    assert cwsa.row_terms(np.zeros(2), np.array([1.0, 0.5]), 1.0, 0.0).tolist() == [1.0, 0.0]
    assert cwsa.slope(np.array([0.0, -1.0, 0.5])).tolist() == [0.0, 0.0, 2.0]
