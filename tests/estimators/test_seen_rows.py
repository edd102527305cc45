"""Rows that trained a classifier are known again, and rows equal by chance are not."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import binom

from skselect.estimators import seen_rows
from skselect.estimators.seen_rows import MOST, SeenRows, row_hashes

CELL = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e300, float("nan"), float("inf")])


# Hashes -----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(CELL, min_size=3, max_size=3), min_size=1, max_size=30))
def test_rows_share_a_hash_exactly_if_they_are_equal(rows):
    hashes = row_hashes(np.array(rows)).tolist()
    texts = [str([x + 0.0 for x in row]) for row in rows]  # -0.0 + 0.0 is 0.0; nan is "nan"
    assert [hashes.index(h) for h in hashes] == [texts.index(t) for t in texts]


def test_every_kind_of_table_has_the_same_hashes(rng):
    X = rng.normal(size=(300, 4))
    X[:, 0] = rng.integers(-2, 3, 300)
    expected = row_hashes(X)
    assert len(set(expected.tolist())) == 300
    for other in (
        X.tolist(), pd.DataFrame(X), pl.DataFrame(X), X.astype(object), X.astype(np.float32),
        np.asfortranarray(X), sparse.csr_matrix(X), sparse.coo_array(X), X.reshape(300, 2, 2),
        X * (1 + 1e-15),
    ):  # fmt: skip
        np.testing.assert_array_equal(row_hashes(other), expected)
    order = rng.permutation(300)
    np.testing.assert_array_equal(row_hashes(X[order]), expected[order])
    assert not np.any(row_hashes(X[:, ::-1]) == expected)


def test_texts_dates_and_missing_values_have_hashes():
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, 2, None, 1], dtype="Int64"),
            "truth": pd.array([True, None, False, True], dtype="boolean"),
            "day": pd.to_datetime(["2020", "2021", None, "2020"]),
            "kind": pd.Categorical(["x", "y", None, "x"]),
            "parts": [[1], [2], None, [1]],
            "text": ["q", None, "r", "q"],
        }
    )
    hashes = row_hashes(frame)
    assert hashes[0] == hashes[3]
    assert len(set(hashes.tolist())) == 3
    np.testing.assert_array_equal(row_hashes(frame.iloc[[2, 0]]), hashes[[2, 0]])
    texts = ["a b", "c", "a b"]
    for other in (np.array(texts), pd.Series(texts), pd.Series(texts, dtype="category")):
        np.testing.assert_array_equal(row_hashes(other), row_hashes(texts))


def test_rows_are_known_again_in_another_dtype(rng):
    days = pd.date_range("2020-01-01", periods=100)
    frame = pd.DataFrame({"day": days, "x": rng.normal(size=100), "n": np.arange(100)})
    seen = SeenRows.of(frame)
    for unit in ("s", "us", "ns"):
        assert seen.count_in(frame.assign(day=days.astype(f"datetime64[{unit}]"))) == 100
    assert seen.count_in(frame.astype(object)) == 100


def test_what_is_no_table_leaves_no_trace():
    assert SeenRows.of([object(), np.zeros((2, 2))]).count_in([1, 2]) == 0
    assert SeenRows.of([{1, 2}]).count_in([[1, 2]] * 50) == 0


# What is counted --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_shared", [0, 20, 300, 1000])
def test_shared_rows_are_counted(n_shared, rng):
    seen, new = rng.random((2000, 3)), rng.random((1000, 3))
    new[:n_shared] = seen[:n_shared]
    record = pickle.loads(pickle.dumps(SeenRows.of(seen)))
    assert record.count_in(new[rng.permutation(1000)]) == n_shared


def test_of_many_rows_a_sample_is_kept(rng):
    seen = np.arange(20 * MOST)[:, None]
    record = SeenRows.of(seen)
    assert len(pickle.dumps(record)) < 10 * MOST
    assert not record.complete
    new = np.arange(20 * MOST, 21 * MOST)[:, None]
    assert record.count_in(new) == 0
    new[:5000] = rng.choice(seen, 5000, replace=False)
    # 5000 / 20 of them are expected in the sample
    assert abs(record.count_in(new) - 5000) < 4 * 20 * np.sqrt(5000 / 20)


def draws_of(kind, n, rng):
    """Rows of few values, of which many are equal by chance."""
    if kind == "one feature":
        return rng.integers(0, 3000, (n, 1))
    if kind == "skewed":
        return np.floor(np.exp(rng.exponential(2.5, (n, 1))))
    return rng.integers(0, 5, (n, 4))  # 625 different ones, as in balance_scale


@pytest.mark.parametrize("kind", ["one feature", "skewed", "few categories"])
def test_rows_equal_by_chance_are_no_alarm(kind, rng):
    alarms = shared = 0
    for _ in range(200):
        n_seen, n_new = (int(n) for n in rng.integers(50, 2000, 2))
        seen, new = draws_of(kind, n_seen, rng), draws_of(kind, n_new, rng)
        shared += np.isin(row_hashes(new), row_hashes(seen)).mean() / 200
        alarms += SeenRows.of(seen).count_in(new) > 0
    assert shared > 0.1
    assert alarms <= binom.ppf(0.999, 200, seen_rows.FALSE_ALARMS)


def test_all_combinations_split_at_random_are_no_alarm(rng):
    grid = np.stack(np.meshgrid(*[np.arange(5)] * 4), axis=-1).reshape(-1, 4)
    rng.shuffle(grid)
    assert SeenRows.of(grid[:300]).count_in(grid[300:]) == 0
    assert SeenRows.of(grid[:300]).count_in(grid[200:]) == 100


def test_training_rows_drawn_otherwise_are_no_alarm(rng):
    """Class 1 is rare, and training keeps as many rows of class 0."""
    alarms = 0
    for _ in range(100):
        rows = np.column_stack([rng.integers(0, 4000, 6000), rng.random(6000) < 0.05])
        seen, new = rows[:3000], rows[3000:]
        rare = seen[:, 1] == 1
        balanced = np.vstack([seen[rare], seen[~rare][: rare.sum()]])
        alarms += SeenRows.of(balanced).count_in(new) > 0
    assert alarms <= 2


def test_shared_rows_are_counted_among_rows_equal_by_chance(rng):
    seen, new = rng.integers(0, 3000, (1000, 1)), rng.integers(0, 3000, (500, 1))
    new[:250] = seen[:250]
    assert SeenRows.of(seen).count_in(new) >= 250
