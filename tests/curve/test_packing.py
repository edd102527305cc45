"""skselect.curve.packing: integers in the order of floats."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skselect.curve import packing
from tests.brute import examples

ANY = st.floats(allow_nan=False, allow_infinity=False)
UNIT = st.floats(0.0, 1.0) | st.sampled_from([0.0, -0.0, 5e-324, 1e-310, 1.0, np.nextafter(1, 0)])


@examples(200)
@given(st.lists(ANY | UNIT, min_size=1, max_size=30))
def test_descending_order_is_a_stable_sort(values):
    values = np.array(values)
    order, ranked = packing.descending_order(values)
    expected = sorted(range(len(values)), key=lambda i: -values[i])
    assert order.tolist() == expected
    assert ranked.tolist() == values[expected].tolist()


@pytest.mark.parametrize("outlier", [1e300, -1e300, 1.0])
def test_values_that_share_their_leading_bits_are_sorted_all_the_same(outlier):
    """With an outlier only some leading bits fit beside the row; the rest is put right."""
    rng = np.random.default_rng(0)
    values = 0.5 + rng.integers(0, 40, 5000) * 2.0**-52
    values[17] = outlier
    order, ranked = packing.descending_order(values)
    expected = np.argsort(-values, kind="stable")
    assert np.array_equal(order, expected)
    assert np.array_equal(ranked, values[expected])


@pytest.mark.parametrize("narrow", [False, True])
@examples(100)
@given(st.lists(st.tuples(UNIT, st.booleans()), min_size=1, max_size=30))
def test_packed_keys_sort_like_confidences_and_hold_them(narrow, rows):
    confidence = np.array([c for c, _ in rows])
    if narrow:
        confidence = confidence.astype(np.float32).astype(np.float64)
    wrong = np.array([w for _, w in rows])
    keys = np.sort(packing.pack(confidence, wrong, narrow=narrow))
    assert keys.dtype == (np.uint32 if narrow else np.uint64)
    held = sorted(zip(-packing.unpack_confidence(keys >> 1), keys & 1, strict=True))
    assert held == sorted(zip(-confidence, wrong, strict=True))
    assert np.all(np.diff(packing.unpack_confidence(keys >> 1)) <= 0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.0, 1.5], True), ([-1e-9, 0.5], False), ([0.5, 2.0], False), ([-0.0], True)],
)
def test_only_confidences_from_0_to_2_leave_bits_to_spare(values, expected):
    assert packing.packable(np.array(values)) is expected


def test_float32_values_are_told_by_value_and_not_by_dtype():
    values = np.array([0.1, 0.7], dtype=np.float32)
    assert packing.are_float32(values)
    assert packing.are_float32(values.astype(np.float64))
    assert not packing.are_float32(np.append(np.full(1 << 15, 0.5), 0.1))


@examples(100)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.2, 0.5, 0.9]), st.sampled_from([0.0, 0.5, 1.0]), UNIT),
        min_size=1,
        max_size=25,
    ),
    st.randoms(use_true_random=False),
)
def test_ranked_rows_do_not_depend_on_the_order_they_came_in(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    one, other = (packing.sort_rows(*map(np.array, zip(*r, strict=True))) for r in (rows, shuffled))
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a, b)
    expected = sorted(rows, key=lambda row: [-value for value in row])
    assert [tuple(row) for row in zip(*(c.tolist() for c in one), strict=True)] == expected
