"""Integers in the order of floats; chunks of tie blocks are the same wherever they come from."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from skselect.curve import tie_blocks
from skselect.curve.tie_blocks import (
    CHUNK,
    PackedBlocks,
    blocks_from_counts,
    group_rows,
    group_sorted_rows,
    pack,
)
from tests.brute import examples

ANY = st.floats(allow_nan=False, allow_infinity=False)
UNIT = st.floats(0.0, 1.0) | st.sampled_from([0.0, -0.0, 5e-324, 1e-310, 1.0, np.nextafter(1, 0)])


@examples(200)
@given(st.lists(ANY | UNIT, min_size=1, max_size=30))
def test_descending_order_is_a_stable_sort(values):
    values = np.array(values)
    order, ranked = tie_blocks.descending_order(values)
    expected = sorted(range(len(values)), key=lambda i: -values[i])
    assert order.tolist() == expected
    assert ranked.tolist() == values[expected].tolist()


@pytest.mark.parametrize("outlier", [1e300, -1e300, 1.0])
def test_values_that_share_their_leading_bits_are_sorted_all_the_same(outlier, rng):
    """With an outlier only some leading bits fit beside the row; the rest is put right."""
    values = 0.5 + rng.integers(0, 40, 5000) * 2.0**-52
    values[17] = outlier
    order, ranked = tie_blocks.descending_order(values)
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
    keys = np.sort(tie_blocks.pack(confidence, wrong, narrow=narrow))
    assert keys.dtype == (np.uint32 if narrow else np.uint64)
    held = sorted(zip(-tie_blocks.unpack_confidence(keys >> 1), keys & 1, strict=True))
    assert held == sorted(zip(-confidence, wrong, strict=True))
    assert np.all(np.diff(tie_blocks.unpack_confidence(keys >> 1)) <= 0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.0, 1.5], True), ([-1e-9, 0.5], False), ([0.5, 2.0], False), ([-0.0], True)],
)
def test_only_confidences_from_0_to_2_leave_bits_to_spare(values, expected):
    blocks = group_rows(np.zeros(len(values)), np.array(values), None)
    assert isinstance(blocks, PackedBlocks) is expected


def test_float32_values_are_told_by_value_and_not_by_dtype():
    values = np.array([0.1, 0.7], dtype=np.float32)
    assert tie_blocks.are_float32(values)
    assert tie_blocks.are_float32(values.astype(np.float64))
    assert not tie_blocks.are_float32(np.append(np.full(1 << 15, 0.5), 0.1))


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
    one, other = (
        tie_blocks.sort_rows(*map(np.array, zip(*r, strict=True))) for r in (rows, shuffled)
    )
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a, b)
    expected = sorted(rows, key=lambda row: [-value for value in row])
    assert [tuple(row) for row in zip(*(c.tolist() for c in one), strict=True)] == expected


def counted(confidence, loss):
    """Count blocks by a dictionary."""
    rows, errors = {}, {}
    for c, wrong in zip(confidence.tolist(), loss.tolist(), strict=True):
        rows[c] = rows.get(c, 0) + 1
        errors[c] = errors.get(c, 0) + wrong
    levels = sorted(rows, reverse=True)
    return blocks_from_counts(
        np.array(levels),
        np.array([rows[c] for c in levels]),
        np.array([errors[c] for c in levels], dtype=np.int64),
    )


def some_rows(kind, n):
    rng = np.random.default_rng(n)
    confidence = {
        "untied": lambda: rng.permutation(n) / n,
        "tied": lambda: rng.integers(0, 7, n) / 8,
        "mixed": lambda: np.round(rng.random(n), 4),
        "one": lambda: np.full(n, 0.5),
        "float32": lambda: rng.random(n).astype(np.float32).astype(float),
    }[kind]()
    return confidence, (rng.random(n) < 0.3).astype(float)


SIZES = [1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 5]


def packed(confidence, loss):
    """Return packed blocks, however many rows are tied."""
    narrow = tie_blocks.are_float32(confidence)
    keys = np.sort(pack(confidence, loss, narrow=narrow))
    return PackedBlocks(keys, tie_blocks.find_ties(keys))


def test_packed_rows_stored_and_counted_blocks_give_equal_chunks():
    for kind, n in itertools.product(["untied", "tied", "mixed", "one", "float32"], SIZES):
        confidence, loss = some_rows(kind, n)
        blocks, expected = packed(confidence, loss), counted(confidence, loss)
        for found in (blocks, blocks.stored, group_rows(loss, confidence, None)):
            chunks = list(found.chunks())
            assert [len(c) for _, c in chunks] == [len(c) for _, c in expected.chunks()]
            for (offset, one), (_, other) in zip(chunks, expected.chunks(), strict=True):
                for name in ("confidence", "weight", "loss"):
                    assert np.array_equal(getattr(one, name), getattr(other, name))
                assert one.all_one == other.all_one
                again = found.chunk_from(offset)
                assert np.array_equal(again.confidence, one.confidence)
                assert np.array_equal(again.loss, one.loss)


@pytest.mark.parametrize("n_tied", [0, 2, 40, CHUNK])
def test_blocks_are_stored_at_once_where_many_rows_are_tied(n_tied, rng):
    confidence = rng.permutation(CHUNK) / CHUNK
    confidence[:n_tied] = confidence[: n_tied // 2].repeat(2)
    blocks = group_rows(np.zeros(CHUNK), confidence, None)
    assert isinstance(blocks, PackedBlocks) is (n_tied < 0.04 * CHUNK)
    assert len(blocks.stored.confidence) == CHUNK - n_tied // 2


TINY, ABOVE = np.finfo(float).tiny, np.nextafter(1.0, 2.0)
NORMAL = [TINY, np.nextafter(TINY, 1), 1e-300, 0.25, 0.5, np.nextafter(1.0, 0.0), 1.0]


def test_keys_of_confidences_up_to_one_are_normal_floats_in_the_same_order():
    powers = np.array(
        [*NORMAL, *np.ldexp(1.0, np.arange(-1022, 1)), *np.ldexp(1.9, np.arange(-1022, 0))]
    )
    for wrong in (0, 1):
        floats = pack(powers, np.full(len(powers), wrong), narrow=False).view(float)
        assert np.all(np.isfinite(floats) & (floats >= TINY))
        assert np.array_equal(np.argsort(floats, kind="stable"), np.argsort(-powers, kind="stable"))


@pytest.mark.parametrize("others", [[], [0.0, -0.0], [5e-324, TINY / 3], [ABOVE, 1.75, 2 - 2**-52]])
def test_rows_are_sorted_right_whether_or_not_their_keys_are_normal_floats(others, rng):
    confidence = rng.permutation(np.repeat([*NORMAL, *others], 300))
    wrong = rng.random(len(confidence)) < 0.4
    found, expected = group_rows(wrong.astype(float), confidence, None), counted(confidence, wrong)
    assert np.array_equal(found.confidence, expected.confidence)
    assert np.array_equal(found.loss, expected.loss)


@pytest.mark.parametrize("kind", ["untied", "mixed"])
def test_stored_blocks_are_those_counted(kind):
    confidence, loss = some_rows(kind, 2 * CHUNK + 3)
    found, expected = packed(confidence, loss).stored, counted(confidence, loss)
    for name in ("confidence", "weight", "loss", "rows"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))


def test_a_block_longer_than_a_chunk_of_rows_is_not_parted():
    confidence = np.repeat([0.9, 0.8, 0.7], [3, 2 * CHUNK + 1, 2])
    ((_, chunk),) = packed(confidence, np.zeros(len(confidence))).chunks()
    assert chunk.weight.tolist() == [3, 2 * CHUNK + 1, 2]


def test_weighted_rows_travel_with_their_errors():
    blocks = group_rows(np.array([0.0, 1, 1]), np.array([0.5, 0.9, 0.5]), np.array([2.0, 3, 4]))
    assert blocks.confidence.tolist() == [0.9, 0.5]
    assert blocks.weight.tolist() == [3, 6]
    assert blocks.loss.tolist() == [3, 4]
    assert blocks.rows.tolist() == [1, 2]


@pytest.mark.parametrize(("weight", "unit"), [(1.0, 1.0), (1e180, 2.0**598), (1e-180, 2.0**-597)])
def test_the_unit_is_a_power_of_two_near_weights_whose_squares_overflow(weight, unit):
    blocks = group_sorted_rows(np.array([0.9, 0.5]), np.full(2, weight), np.zeros(2))
    assert blocks.unit == unit
