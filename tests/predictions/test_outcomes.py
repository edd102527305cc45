"""Outcomes: how wrong and how sure."""

import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, strategies as st

from skselect import Outcomes, Predictions
from skselect.predictions.confidence import confidence_of_proba
from tests import brute
from tests.brute import assert_close, examples, named, proba_cases
from tests.refusals import check_refused

NAN = float("nan")
TRUTH, PROBA = [0, 1, 1], [[0.9, 0.1], [0.25, 0.75], [0.6, 0.4]]


@pytest.mark.parametrize("confidence", sorted(brute.CONFIDENCES))
@examples(60)
@given(case=proba_cases())
def test_loss_confidence_and_weight_are_those_of_the_definition(confidence, case):
    outcomes = Outcomes.from_proba(case.y_true, case.y_proba, confidence=confidence, **case.options)
    counted = outcomes.weight > 0
    rows = case.rows(confidence)
    assert outcomes.loss[counted].tolist() == [float(row.loss) for row in rows]
    assert outcomes.weight[counted].tolist() == [float(row.weight) for row in rows]
    assert_close(outcomes.confidence[counted], [row.confidence for row in rows])
    assert len(outcomes) == len(case.y_true)


@pytest.mark.parametrize("container", [list, tuple, np.array, pd.Series, pl.Series])
def test_plain_arrays_of_every_kind_become_floats(container):
    outcomes = Outcomes(container([0, 1, 0]), container([0.9, 0.6, 0.8]), container([1, 2, 3]))
    for values in (outcomes.loss, outcomes.confidence, outcomes.sample_weight):
        assert isinstance(values, np.ndarray)
        assert values.dtype == np.float64
    assert outcomes.to_frame().to_dict("list") == {
        "loss": [0.0, 1.0, 0.0], "confidence": [0.9, 0.6, 0.8], "sample_weight": [1.0, 2.0, 3.0],
    }  # fmt: skip
    assert outcomes.weight.tolist() == [1.0, 2.0, 3.0]
    plain = Outcomes(container([True, False]), container([0.9, 0.8]))
    assert plain.loss.tolist() == [1.0, 0.0]
    assert plain.sample_weight is None
    assert plain.weight.tolist() == [1.0, 1.0]
    assert plain.to_frame().columns.tolist() == ["loss", "confidence"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        outcomes.loss = np.zeros(3)


def test_predictions_probabilities_and_labels_agree():
    weight = {"sample_weight": [1, 2, 3]}
    predictions = Predictions.from_proba(TRUTH, PROBA, **weight)
    frame = Outcomes.from_predictions(predictions, confidence="gini").to_frame()
    assert frame.equals(Outcomes.from_proba(TRUTH, PROBA, confidence="gini", **weight).to_frame())
    assert frame["sample_weight"].tolist() == [1.0, 2.0, 3.0]
    own = frame["confidence"]
    assert frame.equals(Outcomes.from_labels(TRUTH, [0, 1, 0], own, **weight).to_frame())
    one_column = Outcomes.from_proba(["n", "y"], [0.25, 0.75], pos_label="y")
    assert one_column.confidence.tolist() == [0.75, 0.75]
    assert one_column.loss.tolist() == [0.0, 0.0]


def test_a_callable_loss_gets_labels_and_gives_graded_losses():
    seen = []

    def loss(y_true, y_pred):
        seen.extend([y_true.tolist(), y_pred.tolist()])
        return np.abs(y_true - y_pred) / 4

    proba = [[0.9, 0.1, 0.0], [0.1, 0.2, 0.7], [0.6, 0.4, 0.0]]
    outcomes = Outcomes.from_proba([1, 3, 5], proba, loss=loss)
    assert seen == [[1, 3, 5], [1, 5, 1]]
    assert outcomes.loss.tolist() == [0.0, 0.5, 1.0]
    from_labels = Outcomes.from_labels([1, 3, 5], [1, 5, 1], [0.9, 0.7, 0.6], loss=loss)
    assert from_labels.to_frame().equals(outcomes.to_frame())
    for one_column in ([0.2, 0.9], [[0.8, 0.2], [0.1, 0.9]]):  # booleans stay booleans
        Outcomes.from_proba([False, True], one_column, loss=loss_of_booleans)


def loss_of_booleans(y_true, y_pred):
    assert y_true.dtype.kind == y_pred.dtype.kind == "b"
    return y_true != y_pred


def test_a_class_that_the_model_does_not_know_is_an_error():
    predictions = Predictions(
        y_true=np.array([-1, 0]), y_pred=np.array([1, 0]), classes=np.array([0, 1]),
        y_proba=np.array([[0.2, 0.8], [0.9, 0.1]]),
    )  # fmt: skip
    assert Outcomes.from_predictions(predictions).loss.tolist() == [1.0, 0.0]
    check_refused("loss", lambda: Outcomes.from_predictions(predictions, loss=lambda a, b: a != b))


# Rows that count ---------------------------------------------------------------------------

#: Rows with ties: confidence, loss, weight, and whether they stand in a second reading.
TABLES = st.lists(
    st.tuples(
        st.sampled_from([0.2, 0.5, 0.9]), st.sampled_from([0, 0.1, 0.5, 1]),
        st.sampled_from([0, 1, 2.5]), st.booleans(),
    ),
    min_size=1, max_size=30,
).filter(lambda rows: any(row[2] for row in rows))  # fmt: skip


def outcomes_of(table, *, weighted=True, read=True):
    confidence, loss, weight, second = (np.array(column) for column in zip(*table, strict=True))
    readings = np.column_stack([np.ones(len(table), dtype=bool), second]) if read else None
    return Outcomes(loss, confidence, weight if weighted else None, readings=readings)


def counted_rows(outcomes):
    """What each reading holds, in an order of its own."""
    return [sorted(zip(one.confidence, one.loss, strict=True)) for one in outcomes.read()]


@examples(200)
@given(TABLES, st.booleans(), st.booleans(), st.integers(0, 2**32), st.sampled_from([None, 2.5, 4]))
def test_counts_are_right_or_wrong_rows_whatever_the_order(table, weighted, read, seed, largest):
    rows = outcomes_of(table, weighted=weighted, read=read)
    counted = rows.count(seed, largest)
    assert set(counted.loss) <= {0.0, 1.0}
    sure = np.isin(rows.loss, [0, 1])
    assert counted.loss[sure].tolist() == rows.loss[sure].tolist()
    assert counted.confidence.tolist() == rows.confidence.tolist()
    if weighted and largest is not None:
        assert counted.sample_weight is None
        assert not np.any(counted.readings[rows.weight == 0])
        if largest == 2.5:  # the heaviest rows always count
            assert np.all(counted.readings[rows.weight == 2.5, 0])
        if read:
            assert np.all(rows.readings >= counted.readings)
    elif read:
        np.testing.assert_array_equal(counted.readings, rows.readings)
    order = np.random.default_rng(seed).permutation(len(rows))
    assert counted_rows(rows.take(order).count(seed, largest)) == counted_rows(counted)
    if weighted and largest is not None:
        more = rows.count(seed, 2 * largest)  # a smaller limit keeps all of them, as they are
        assert np.all(counted.readings >= more.readings)
        assert counted.loss.tolist() == more.loss.tolist()
    grown = rows.take([*range(len(rows)), *order]).count(seed, largest)
    first = slice(len(rows))
    assert grown.loss[first].tolist() == counted.loss.tolist()
    if counted.readings is not None:
        np.testing.assert_array_equal(grown.readings[first], counted.readings)


def test_rows_that_count_are_right_or_wrong_already_stay_as_they_are():
    rows = Outcomes([0, 1, 0], [0.9, 0.6, 0.8])
    assert rows.count(3) is rows


def test_coins_have_the_mean_of_the_losses_and_keep_rows_as_often_as_they_weigh(rng):
    n = 40_000
    loss, weight = rng.choice([0, 0.1, 0.7, 1], n), rng.choice([0.5, 1, 5], n)
    counted = Outcomes(loss, rng.integers(0, 50, n), weight).count(0, 10)
    [kept] = counted.readings.T
    for value in (0.1, 0.7):
        coins = counted.loss[loss == value]
        assert coins.mean() == pytest.approx(value, abs=4 * 0.5 / np.sqrt(len(coins)))
    for value in (0.5, 1, 5):
        share = kept[weight == value].mean()
        assert share == pytest.approx(value / 10, abs=4 * 0.5 / np.sqrt(np.sum(weight == value)))
    half = loss == 0.7  # whether a row counts tells nothing of its loss
    assert np.corrcoef(kept[half], counted.loss[half])[0, 1] == pytest.approx(0, abs=0.04)


def test_a_reviewers_errors_are_coins_of_their_own(rng):
    n = 40_000
    loss, rate = rng.choice([0, 0.3], n), rng.choice([0, 0.2, 1], n)
    counted = Outcomes(loss, rng.integers(0, 50, n), reviewer_loss=rate).count(0)
    sure = rate != 0.2
    assert counted.reviewer_loss[sure].tolist() == rate[sure].tolist()
    coins = counted.reviewer_loss[~sure]
    assert coins.mean() == pytest.approx(0.2, abs=4 * 0.4 / np.sqrt(len(coins)))
    both = ~sure & (loss == 0.3)  # they tell nothing of the machine's
    [[_, r], _] = np.corrcoef(counted.loss[both], counted.reviewer_loss[both])
    assert r == pytest.approx(0, abs=4 / np.sqrt(np.sum(both)))
    alone = Outcomes([0, 1, 0], [0.9, 0.8, 0.7], reviewer_loss=[0.5, 0, 1]).count(3)
    assert alone.loss.tolist() == [0, 1, 0]
    assert alone.reviewer_loss[1:].tolist() == [0, 1]


def test_another_seed_and_other_cases_are_another_draw():
    """The surest row is not always an error, or always right."""
    surest = {Outcomes([0.5, 0.5], [0.9 + k / 1000, 0.2]).count(0).loss[0] for k in range(40)}
    assert surest == {0.0, 1.0}
    rows = Outcomes(np.full(50, 0.5), np.arange(50))
    draws = {tuple(rows.count(seed, cases=cases).loss) for seed in (0, 1) for cases in ("", "of a")}
    assert len(draws) == 4


def test_a_seed_that_is_drawn_is_another_one_each_time():
    rows = Outcomes(np.full(50, 0.5), np.arange(50))
    assert len({tuple(rows.count(None).loss) for _ in range(5)}) > 1


def test_the_last_bit_of_a_loss_or_weight_moves_nothing(rng):
    n = 1000
    loss, weight, rate = rng.random(n), rng.uniform(0.5, 4, n), rng.random(n)
    rows = Outcomes(loss, rng.random(n), weight, reviewer_loss=rate)
    moved = Outcomes(
        np.nextafter(loss, 1), rows.confidence, np.nextafter(weight, 0),
        reviewer_loss=np.nextafter(rate, 0),
    )  # fmt: skip
    counted, again = rows.count(0, 4.0), moved.count(0, 4.0)
    assert counted.loss.tolist() == again.loss.tolist()
    assert counted.reviewer_loss.tolist() == again.reviewer_loss.tolist()
    np.testing.assert_array_equal(counted.readings, again.readings)


def test_copies_that_turn_up_later_move_no_coin_of_other_rows(rng):
    rows = Outcomes(rng.random(100), rng.random(100))
    readings = np.ones((101, 2), dtype=bool)
    readings[-1, 1] = False  # the last row is a copy
    twice = rows.take([*range(100), 7])
    grown = dataclasses.replace(twice, readings=readings)
    assert grown.count(0).loss[:100].tolist() == rows.count(0).loss.tolist()


def test_weights_that_are_all_equal_count_each_row_once():
    rows = Outcomes([0, 0.5, 1], [0.9, 0.8, 0.7], [2, 2, 2])
    counted = rows.count(0)
    assert counted.sample_weight is counted.readings is None
    assert counted.loss[[0, 2]].tolist() == [0, 1]


def test_a_reading_holds_its_rows_and_an_empty_one_the_least_sure_and_wrong():
    read = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    rows = Outcomes([0, 1, 0], [0.9, 0.6, 0.8], reviewer_loss=[0, 0, 0], readings=read)
    first, second, empty = rows.read()
    assert first.confidence.tolist() == [0.9, 0.6]
    assert (second.confidence.tolist(), second.loss.tolist()) == ([0.9], [0.0])
    assert (empty.confidence.tolist(), empty.loss.tolist()) == ([0.6], [1.0])
    assert empty.reviewer_loss.tolist() == [1.0]
    assert Outcomes([0], [0.9]).read()[0].loss.tolist() == [0]
    assert rows.take(np.array([2, 0])).readings.tolist() == read[[2, 0]].tolist()
    assert "readings" not in rows.to_frame()


@pytest.mark.parametrize(
    "readings",
    [[True, True], [[1], [1], [1]], [[True]] * 2, np.zeros((3, 0), dtype=bool),
     [[False, True], [True, True], [True, False]], "all"],
)  # fmt: skip
def test_readings_are_columns_of_which_the_first_holds_all(readings):
    check_refused("readings", lambda: Outcomes([0, 1, 0], [0.9, 0.6, 0.8], readings=readings))


# Bad input -------------------------------------------------------------------------------

UNKNOWN = "maximum"
#: What is no column of three numbers.
NO_NUMBERS = [
    [0.5, 0.5], [0.5] * 4, [], [0.1, np.inf, 0.3],
    ["a", "b", "c"], [[0.1], [0.2], [0.3]], np.array([1j, 0.5, 0.5]),
]  # fmt: skip
#: Columns in which one number is missing: a row without a confidence is deferred.
LACKING = [[0.1, NAN, 0.3], [0.1, None, 0.3]]
SURE, ANSWERS = [0.9, 0.8, 0.7], [0, 1, 0]
#: Wherever numbers go in: the argument, what takes them, and what else is refused there.
COLUMNS = [
    ("loss", lambda bad: Outcomes(bad, SURE), [None, 0.5, [0, 2, 0], [0, -1, 0]]),
    ("loss", lambda bad: Outcomes.from_proba(TRUTH, PROBA, loss=lambda a, b: bad),
     [0.5, [0, 2, 0]]),
    ("loss", lambda bad: Outcomes.from_proba(TRUTH, PROBA, loss=bad),
     [None, "hinge", [0, 1, 0]]),
    ("confidence", lambda bad: Outcomes(ANSWERS, bad), [None, 0.5]),
    ("confidence", lambda bad: Predictions.from_labels(TRUTH, ANSWERS, bad), []),
    ("confidence", lambda bad: confidence_of_proba(np.array(PROBA), bad), [UNKNOWN, "", 3, 0.5]),
    ("confidence", lambda bad: confidence_of_proba(np.array(PROBA), lambda p: bad), [None, 0.5]),
    ("sample_weight", lambda bad: Outcomes(ANSWERS, SURE, bad), [[1, -1, 1], [0, 0, 0]]),
    ("sample_weight", lambda bad: Predictions.from_proba(TRUTH, PROBA, sample_weight=bad),
     [[1, -1, 1], [0, 0, 0]]),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "door", "others"), COLUMNS)
def test_what_is_no_column_of_numbers_is_named(argument, door, others):
    lacking = LACKING if argument != "confidence" else []
    for bad in [*NO_NUMBERS, *others, *lacking]:
        with named(bad):
            check_refused("'max_proba'" if bad is UNKNOWN else argument, door, bad)


@pytest.mark.parametrize(
    "build",
    [
        lambda c, w: Outcomes([0, 1, 0], c, w),
        lambda c, w: Outcomes.from_labels(TRUTH, [0, 1, 0], c, sample_weight=w),
        lambda c, w: Outcomes.from_proba(TRUTH, PROBA, confidence=c, sample_weight=w),
        lambda c, w: Outcomes.from_proba(TRUTH, PROBA, confidence=lambda _: c, sample_weight=w),
    ],
)
def test_arrays_that_the_caller_changes_later_change_nothing(build):
    confidence, weight = np.array([0.9, 0.6, 0.8]), np.array([1.0, 2.0, 3.0])
    outcomes = build(confidence, weight)
    confidence[:], weight[:] = NAN, NAN
    assert outcomes.confidence.tolist() == [0.9, 0.6, 0.8]
    assert outcomes.sample_weight.tolist() == [1.0, 2.0, 3.0]


def test_some_of_the_rows_must_count():
    outcomes = Outcomes([0, 1, 0], [0.9, 0.6, 0.8], [1, 0, 3])
    part = outcomes.take(np.array([2, 1]))
    assert part.to_frame().to_numpy().tolist() == [[0.0, 0.8, 3.0], [1.0, 0.6, 0.0]]
    check_refused("sample_weight", outcomes.take, np.array([1]))
