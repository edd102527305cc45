"""skselect.curve.tie_blocks: chunks of tie blocks are the same wherever the blocks come from."""

import numpy as np
import pytest

from skselect.curve.tie_blocks import (
    CHUNK,
    PackedBlocks,
    blocks_from_counts,
    group_rows,
    group_sorted_rows,
)


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


@pytest.mark.parametrize("kind", ["untied", "tied", "mixed", "one", "float32"])
@pytest.mark.parametrize("n", SIZES)
def test_packed_rows_and_counted_blocks_give_equal_chunks(kind, n):
    confidence, loss = some_rows(kind, n)
    packed = group_rows(loss, confidence, None)
    assert isinstance(packed, PackedBlocks)
    expected = counted(confidence, loss)
    chunks = list(packed.chunks())
    assert [len(c) for _, c in chunks] == [len(c) for _, c in expected.chunks()]
    for (offset, one), (_, other) in zip(chunks, expected.chunks(), strict=True):
        for name in ("confidence", "weight", "loss"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        assert one.all_one == other.all_one
        again = packed.chunk_from(offset)
        assert np.array_equal(again.confidence, one.confidence)
        assert np.array_equal(again.loss, one.loss)


@pytest.mark.parametrize("kind", ["untied", "mixed"])
def test_contents_are_those_of_all_chunks(kind):
    confidence, loss = some_rows(kind, 2 * CHUNK + 3)
    weight, lost, rows = group_rows(loss, confidence, None).contents()
    expected = counted(confidence, loss)
    assert np.array_equal(weight, expected.weight)
    assert np.array_equal(lost, expected.loss)
    assert np.array_equal(rows, expected.rows)


def test_a_block_longer_than_a_chunk_of_rows_is_not_parted():
    confidence = np.repeat([0.9, 0.8, 0.7], [3, 2 * CHUNK + 1, 2])
    blocks = group_rows(np.zeros(len(confidence)), confidence, None)
    ((_, chunk),) = blocks.chunks()
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
