"""Rows that trained a classifier are known again, and rows equal by chance are not."""

import pickle
from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

from skselect.policy import seen_rows
from skselect.policy.certificate import MOST_SEEN
from skselect.policy.seen_rows import SeenRows, hash_rows, row_hashes
from tests.common import mostly_slow

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


def count(seen, new):
    return SeenRows.of(seen).overlap(hash_rows(new))


def test_rows_are_known_again_in_another_dtype(rng):
    days = pd.date_range("2020-01-01", periods=100)
    frame = pd.DataFrame({"day": days, "x": rng.normal(size=100), "n": np.arange(100)})
    for unit in ("s", "us", "ns"):
        assert count(frame, frame.assign(day=days.astype(f"datetime64[{unit}]"))) == (100, 100, 0)
    assert count(frame, frame.astype(object)) == (100, 100, 0)
    assert count([object(), np.zeros((2, 2))], [1, 2]).n_seen == 0  # no table


# What is counted --------------------------------------------------------------------------------


def count_by_definition(seen, new):
    """Return how many rows of `new` are in both, of how many that are recognisable in both.

    Every row is compared with every other.
    """

    def recognisable(rows):
        distinct, found = set(rows), set()
        for j in range(2):
            alone = {
                row for row in distinct
                if row[j] and not any(other != row and other[j] == row[j] for other in distinct)
            }  # fmt: skip
            found |= alone if len(alone) > 2 else set()
        return found

    def weigh(rows, among):
        return sum(min(rows.count(row), 10) for row in set(rows) & among)

    times = Counter(Counter(new).values())
    usual = min(times, key=lambda n: (-times[n], n))
    if sum(seen.count(row) > 1 for row in seen) <= 0.01 * len(seen) and sum(
        new.count(row) > usual for row in new
    ) <= 0.01 * len(new):
        return weigh(new, set(seen)), weigh(new, set(new))
    known, own = recognisable(seen), recognisable(new)
    share = weigh(seen, known) / weigh(seen, set(seen))
    most = min(weigh(new, own), round(share * weigh(new, set(new))))
    return min(weigh(new, known & own), most), most


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_what_is_counted_against_the_definition(data):
    cell = st.integers(0, data.draw(st.sampled_from([1, 5, 60])))
    row = st.tuples(cell, cell)
    seen = data.draw(st.lists(row, min_size=1, max_size=25))
    new = data.draw(st.lists(row | st.sampled_from(seen), min_size=1, max_size=25))
    got = count(np.array(seen), np.array(new))
    expected = count_by_definition(seen, new)
    assert got[:2] == expected
    for kind in (sparse.csr_array, pd.DataFrame):
        assert count(kind(np.array(seen)), kind(np.array(new))) == got


@pytest.mark.parametrize("n_shared", [0, 20, 300, 1000])
def test_shared_rows_are_counted_and_found(n_shared, rng):
    seen, new = rng.random((2000, 3)), rng.random((1000, 3))
    new[:n_shared] = seen[:n_shared]
    record = pickle.loads(pickle.dumps(SeenRows.of(seen)))
    order = rng.permutation(1000)
    assert record.overlap(hash_rows(new[order])) == (n_shared, 1000, 0)
    np.testing.assert_array_equal(record.find(hash_rows(new[order])), order < n_shared)


def test_of_many_rows_a_sample_is_kept(rng, monkeypatch):
    monkeypatch.setattr(seen_rows, "MOST", 5000)
    seen = np.column_stack([np.arange(1, 100_001), np.ones(100_000)])
    record = SeenRows.of(seen)
    assert len(pickle.dumps(record)) < 50_000
    assert not record.complete
    new = np.column_stack([np.arange(100_001, 110_001), np.ones(10_000)])
    assert record.overlap(hash_rows(new)).n_seen == 0
    new[:5000] = rng.choice(seen, 5000, replace=False)
    found = record.overlap(hash_rows(new))
    # about 1 / 20 of the rows are looked at, a half of them were seen
    assert 300 < found.n_recognisable < 700
    assert abs(found.share - 0.5) < 4 * 0.5 / np.sqrt(found.n_recognisable)


def test_values_that_other_rows_hold_make_no_row_recognisable(rng):
    for values in (rng.integers(18, 90, 500), rng.choice(["a b", "c"], 500)):
        column = values[:300, None]  # one column: its values are its rows, equal ones no copies
        assert not count(column, column).is_checked
    assert count(rng.normal(size=(300, 1)), rng.normal(size=(300, 1))) == (0, 300, 0)
    X = np.eye(300)[rng.integers(0, 300, 2000)]
    for kind in (np.asarray, sparse.csr_array):
        assert not count(kind(X[:1000]), kind(X[1000:])).is_checked
    seen, new = rng.integers(0, 2, (3000, 12)), rng.integers(0, 2, (600, 12))
    once = np.unique(seen, axis=0)  # as after dropping duplicates: new rows may equal one by chance
    for rows in (seen, once):
        assert not count(rows, new).is_checked
        assert count(rows, new).share == 0
    assert not count(seen, seen).is_checked
    assert count(once, once).share == count(once, np.repeat(once, 3, axis=0)).share == 1


def test_numbers_are_recognised_beside_a_word_in_their_column(rng):
    X = rng.normal(size=(600, 2)).astype(object)
    seen, new = X[:400].copy(), X[:300].copy()
    seen[399, 0] = "?"
    assert count(seen, new) == (300, 300, 0)


# Where rows are equal by chance -------------------------------------------------------------------


def test_twins_are_counted():
    twins = SeenRows.of(np.array([[1, 2], [1, 2], [3, 4], [5, 6], [5, 6], [5, 6], [7, 8]])).twins
    assert twins == (5, 7, 2)
    assert SeenRows.of(np.arange(8).reshape(4, 2)).twins == (0, 4, 0)
    assert SeenRows.of([np.zeros((2, 2)), np.ones((3, 2))]).twins == (0, 0, 0)


@pytest.mark.parametrize("n_twins", [0, 10, 12])
def test_every_row_is_recognised_where_few_have_a_twin(n_twins, rng):
    """No row holds a value of its own: eight levels in each of twelve columns."""
    X = np.unique(rng.integers(0, 8, (1100, 12)), axis=0)[:1000]
    X[:n_twins] = np.repeat(X[: n_twins // 2], 2, axis=0)
    record = SeenRows.of(X)
    assert record.is_of_few_twins == (n_twins <= 10)
    new = rng.integers(0, 8, (300, 12))
    new[:60] = X[400:460]
    overlap = record.overlap(hash_rows(new))
    if n_twins <= 10:
        assert overlap == (60, 300, 0)
        assert record.find(hash_rows(new)).tolist() == [True] * 60 + [False] * 240
    else:
        assert overlap == (0, 0, round(60 - 300 * 0.012))


def share_met(n_values, n_leaked, rng, n=2000):
    """Draw a table of two coded columns and a number that few rows hold; return what is said."""

    def draw():
        X = rng.integers(0, n_values, (n, 3)).astype(float)
        X[:, 2] = np.where(rng.random(n) < 0.2, rng.random(n), 0.0)
        return X

    seen, new = draw(), draw()
    new[:n_leaked] = seen[:n_leaked]
    return SeenRows.of(seen), SeenRows.of(seen).overlap(hash_rows(new))


def test_a_leak_among_rows_that_cannot_be_recognised_is_found(rng):
    record, overlap = share_met(60, 400, rng)
    assert not record.is_of_few_twins
    assert 80 < overlap.n_others < 350  # about 205: of 320 such rows, those not equal by chance
    assert overlap.share < MOST_SEEN


@pytest.mark.parametrize("n_values", mostly_slow([60, 20, 10, 4, 2]))
def test_a_share_of_equal_rows_like_that_of_twins_is_no_leak(n_values):
    """At most one table in 200, twice what three standard errors of a normal allow, rounded up."""
    rng = np.random.default_rng(0)
    n_draws = 200
    n_alarms = sum(share_met(n_values, 0, rng, n=500)[1].n_others > 0 for _ in range(n_draws))
    assert n_alarms <= 3


def test_the_record_of_an_older_version_recognises_values_of_their_own(rng):
    X = rng.random((500, 3))
    new = SeenRows.of(X)
    old = pickle.loads(pickle.dumps(SeenRows(new.hashes, 1.0, complete=True)))
    assert old.twins is None
    assert not old.is_of_few_twins
    assert old.overlap(hash_rows(X[:100])) == (100, 100, 0)


@pytest.mark.parametrize(("n_columns", "n_values"), [(4, 5), (3, 30), (12, 2), (2, 300), (6, 10)])
def test_rows_equal_by_chance_are_no_alarm(n_columns, n_values, rng):
    """Whether few rows have a twin, and all are recognised, or not."""
    twins = 0.0
    for _ in range(50):
        n_seen, n_new = (int(n) for n in rng.integers(50, 2000, 2))
        seen, new = (rng.integers(0, n_values, (n, n_columns)) for n in (n_seen, n_new))
        twins += np.isin(row_hashes(new), row_hashes(seen)).mean() / 50
        assert count(seen, new).share <= MOST_SEEN
    assert twins > 0.1 or n_values > 5


# Copies -----------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_copies_against_the_definition(data):
    """A row is one if an equal row with the same class stands before it, and none of another."""
    cell = st.integers(0, data.draw(st.sampled_from([5, 60])))
    own = data.draw(st.lists(st.tuples(cell, cell), min_size=1, max_size=20))
    rows = own + data.draw(st.lists(st.sampled_from(own), max_size=10))
    codes = data.draw(
        st.lists(st.sampled_from([0, 0, 0, 1]), min_size=len(rows), max_size=len(rows))
    )
    distinct, recognisable = set(rows), set()
    for j in range(2):
        values = [row[j] for row in distinct]
        alone = {row for row in distinct if row[j] and values.count(row[j]) == 1}
        recognisable |= alone if len(alone) > 2 else set()

    def is_copy(k):
        same = [i for i, row in enumerate(rows) if row == rows[k]]
        return (
            rows[k] in recognisable and len({codes[i] for i in same}) == 1 and min(same) < k
        )  # fmt: skip

    hashed = hash_rows(np.array(rows))
    found = seen_rows.find_copies(hashed, np.array(codes))
    if recognisable:
        assert found.tolist() == [is_copy(k) for k in range(len(rows))]
    else:
        assert found is None
    recognisable = distinct
    found = seen_rows.find_copies(hashed, np.array(codes), recognise_all=True)
    assert found.tolist() == [is_copy(k) for k in range(len(rows))]


def test_rows_without_a_table_are_no_copies_of_each_other():
    shapes = [np.zeros((2, 2)), np.ones((3, 2)), np.zeros((2, 2))]
    for X in (shapes, ["one text", "another", "one text"], np.ones((3, 2))):
        assert seen_rows.find_copies(hash_rows(X), np.zeros(3, dtype=int)) is None


def find_tied(confidence, *columns):
    _, sizes = np.unique(confidence, return_counts=True)
    return seen_rows.find_tied_copies(confidence, sizes, *columns)


def tied_copies_by_definition(confidence, column):
    """Rows of one confidence are equal; of five tied ones or more, half occur equally often."""
    times = [confidence.count(c) for c in set(confidence)]
    tied = [n for n in times if n > 1]
    most = max((tied.count(n) for n in tied), default=0)
    pairs = set(zip(confidence, column, strict=True))
    if len(pairs) > len(times) or (tied and (len(tied) < 5 or 2 * most < len(tied))):
        return None
    return [c in confidence[:k] for k, c in enumerate(confidence)]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_tied_copies_against_the_definition(data):
    own = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=12))
    confidence = own * data.draw(st.sampled_from([1, 2, 3]))
    confidence += data.draw(st.lists(st.sampled_from(own), max_size=3))
    column = [c % 2 for c in confidence]
    if data.draw(st.booleans()):
        column[0] = 1 - column[0]
    found = find_tied(np.array(confidence) / 30, np.array(column), None)
    expected = tied_copies_by_definition(confidence, column)
    assert (found if found is None else found.tolist()) == expected


def test_calibrated_and_saturated_confidences_are_no_copies(rng):
    saturated = np.minimum(1.2 * rng.random(1000), 1.0)
    assert find_tied(saturated, np.zeros(1000)) is None
    steps = np.repeat(np.arange(9) / 9, rng.permutation(np.arange(20, 29)))
    assert find_tied(steps, np.zeros(len(steps))) is None
    twice = np.tile(rng.random(500), 2)
    copies = find_tied(twice, np.zeros(1000))
    assert copies.tolist() == [False] * 500 + [True] * 500
    many = np.repeat(rng.random(5), 24_000)
    assert np.sum(~find_tied(many, np.zeros(120_000))) == 5
    assert find_tied(many, np.arange(120_000) == 110_000) is None  # one label differs


def test_rows_are_read_with_and_without_each_kind():
    seen, copies = np.array([1, 0, 0, 1], bool), np.array([0, 0, 1, 1], bool)
    none = np.zeros(4, bool)
    assert seen_rows.with_and_without(none, none) is None
    assert seen_rows.with_and_without(seen, none).T.tolist() == [[True] * 4, (~seen).tolist()]
    both = seen_rows.with_and_without(seen, copies).T.tolist()
    left_out = [none, seen, copies, seen | copies]
    assert sorted(both) == sorted((~rows).tolist() for rows in left_out)
    assert both[0] == [True] * 4


def test_a_confidence_is_recorded_if_one_row_alone_holds_it():
    values = np.random.default_rng(0).integers(1, 4096, 300) / 4096 + 1e-13 * np.arange(300)
    rows = np.where(np.arange(300) % 100, 1, 2)
    held = Counter(np.repeat(np.round(values, 10), rows).tolist())
    alone = [value for value, n in held.items() if n == 1]
    expected = seen_rows.record_confidence(np.array(alone), np.ones(len(alone)))
    for order in (slice(None), slice(None, None, -1)):
        found = seen_rows.record_confidence(values[order], rows[order])
        assert len(found) == 8 * len(alone)
        assert found == expected


@pytest.mark.parametrize("digits", mostly_slow([4, 5, 6, 3, 2]))
def test_confidences_that_are_equal_by_chance_are_no_alarm(digits, rng):
    n_alarms = 0
    for n_recorded, n in product([200, 1000, 5000], [50, 200, 1000, 5000, 20_000]):
        for _ in range(3):
            recorded, fresh = (
                np.unique(rng.random(k).round(digits), return_counts=True) for k in (n_recorded, n)
            )
            found = seen_rows.share_recorded(seen_rows.record_confidence(*recorded), *fresh)
            n_alarms += (found or 0.0) > MOST_SEEN
    assert n_alarms == 0
