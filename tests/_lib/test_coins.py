"""A row's own values and a seed choose its coin: nothing else does."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from skselect._lib.coins import Coins, round_digits

CELLS = st.lists(
    st.tuples(st.sampled_from([0.2, 0.5]), st.sampled_from([0.0, 0.1, 0.3])),
    min_size=1,
    max_size=30,
)


def toss(rows, seed=0, purpose=0, **options):
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Coins(seed, columns, **options).toss(purpose)


@given(CELLS, st.integers(0, 2**40), st.randoms())
def test_coins_depend_neither_on_the_order_nor_on_later_rows(rows, seed, random):
    coins = toss(rows, seed)
    assert np.all((coins >= 0) & (coins < 1))
    assert len(set(coins)) == len(rows)  # equal rows have coins of their own
    assert toss(rows[: len(rows) // 2 + 1], seed).tolist() == coins[: len(rows) // 2 + 1].tolist()
    order = list(range(len(rows)))
    random.shuffle(order)
    shuffled = toss([rows[k] for k in order], seed)
    pairs = sorted(zip(rows, coins, strict=True))
    assert sorted(zip([rows[k] for k in order], shuffled, strict=True)) == pairs


def test_rows_that_differ_beyond_ten_digits_keep_their_coins_in_any_order(rng):
    value = np.repeat(rng.random(50), 4)
    value += rng.integers(0, 5, 200) * 1e-15
    coins = Coins(0, [value]).toss(0)
    order = rng.permutation(200)
    moved = Coins(0, [value[order]]).toss(0)
    assert sorted(zip(value, coins, strict=True)) == sorted(zip(value[order], moved, strict=True))


def test_the_last_bits_of_a_number_choose_no_other_coin(rng):
    value = rng.random(1000)
    coins = Coins(0, [value]).toss(0)
    for towards in (0.0, 1.0):
        assert Coins(0, [np.nextafter(value, towards)]).toss(0).tolist() == coins.tolist()
    assert not np.any(Coins(0, [value + 1e-8]).toss(0) == coins)


def test_numbers_are_rounded_to_ten_significant_digits(rng):
    values = np.concatenate([
        10.0 ** rng.uniform(-300, 300, 2000) * rng.choice([-1, 1], 2000), rng.random(2000),
        [0.0, -0.0, 1.0, 10.0, 999.99999999999, 1000.0, 1e308, 5e-324, 1e22, 1e23, 1e-300],
    ])  # fmt: skip
    texts = [f"{value + 0.0:.9e}" for value in values]
    bits = round_digits(values).tolist()
    by_text = dict(zip(texts, bits, strict=True))
    assert [by_text[text] for text in texts] == bits
    assert len(set(bits)) == len(by_text)


def test_seeds_purposes_names_and_marks_have_coins_of_their_own(rng):
    value = rng.random(20_000)
    marked = rng.random(20_000) < 0.5
    plain = Coins(0, [value])
    others = [
        Coins(1, [value]).toss(0), plain.toss(1), plain.toss(2),
        Coins(0, [value], name="of site 'A'").toss(0), Coins(0, [value, value]).toss(0),
        Coins(0, [value], [marked]).toss(0)[marked], Coins(0, [value], [~marked, marked]).toss(0),
    ]  # fmt: skip
    coins = plain.toss(0)
    for other in others:
        assert np.mean(other) == pytest.approx(0.5, abs=4 * 0.289 / np.sqrt(len(other)))
        own = coins if len(other) == len(coins) else coins[marked]
        assert abs(np.corrcoef(own, other)[0, 1]) < 4 / np.sqrt(len(other))
    assert Coins(0, [value], [marked]).toss(0)[~marked].tolist() == coins[~marked].tolist()


def test_coins_of_rows_in_a_row_are_independent():
    equal, spaced = np.zeros(100_000), np.linspace(0, 1, 100_000)
    for values in (equal, spaced):
        coins = Coins(3, [values]).toss(0)
        counts, _ = np.histogram(coins, 50, (0, 1))
        assert np.sum((counts - 2000) ** 2 / 2000) < 100  # chi-square of 49 degrees: 5 sigma
        assert abs(np.corrcoef(coins[1:], coins[:-1])[0, 1]) < 0.015


def test_the_share_of_different_keys():
    assert Coins(0, [np.array([0.1, 0.1, 0.2, 0.1])]).share_distinct == 0.5
