"""Lists of probable classes, against definitions written row by row."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skselect._lib.decide import prediction_sets
from skselect.thresholds import Shortlist
from skselect.thresholds._shortlist import shortlist_cutoff
from tests.brute import examples, proba_cases

LABELS = {
    "int": np.array([3, -1, 7, 0, 2]),
    "float": np.array([0.5, 2.0, -1.0, 4.0, 9.0]),
    "str": np.array(["b", "aa", "c", "", "é"]),
}
cases = proba_cases(weights=("none",), classes=(3, 5))


def list_by_definition(row, classes, least):
    """Return the labels of one row: the most probable again and again; ties in order."""
    left, found = list(range(len(row))), []
    while left:
        best = max(left, key=lambda k: (row[k], -k))
        left.remove(best)
        if row[best] >= least:
            found.append(classes[best].item())
    return tuple(found)


@examples(150)
@given(cases, st.sampled_from(list(LABELS)), st.sampled_from([0.0, 0.1, 0.25, 0.4, 1.0, None]))
def test_lists_hold_the_probable_classes_in_order(case, kind, least):
    classes = LABELS[kind][: case.y_proba.shape[1]]
    least = float(case.y_proba[0, 0]) if least is None else least  # a tie with the limit
    found = prediction_sets(case.y_proba, classes, least)
    assert found == [list_by_definition(row, classes, least) for row in case.y_proba]
    for narrow in (case.y_proba.astype(np.float32), np.asfortranarray(case.y_proba)):
        assert prediction_sets(narrow, classes, least) == [
            list_by_definition(row.astype(float), classes, least) for row in narrow
        ]


def test_no_rows_give_no_lists():
    assert prediction_sets(np.empty((0, 3)), np.arange(3), 0.5) == []


def least_by_definition(proba, truth, level):
    """Return the largest least probability with which enough truths are on their lists."""
    n = len(truth)
    needed = math.ceil((n + 1) * Fraction(str(level)))
    of_truth = [proba[i, k] if k >= 0 else -math.inf for i, k in enumerate(truth)]
    return max(p for p in of_truth if sum(q >= p for q in of_truth) >= needed)


@examples(150)
@given(cases, st.sampled_from([0.5, 0.6, 0.8]), st.integers(0, 3), st.integers(0, 2**20))
def test_the_least_probability_is_that_of_enough_truths(case, level, n_unknown, seed):
    n = len(case.y_true)
    if n < level / (1 - level) + 1e-9:
        return
    truth = case.y_true.copy()
    truth[:n_unknown] = -1
    least = shortlist_cutoff(case.y_proba, truth, level)
    assert least == least_by_definition(case.y_proba, truth, level)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(n), rng.permutation(case.y_proba.shape[1])
    place = np.append(np.argsort(columns), -1)  # -1 stays -1
    moved = case.y_proba[rows][:, columns], place[truth[rows]]
    assert shortlist_cutoff(*moved, level) == least


def test_rows_are_set_apart_by_chance_and_by_a_seed_always_the_same():
    apart = Shortlist(0.9, share=0.3, random_state=3).set_apart(1000)
    assert apart.sum() == 300
    same = Shortlist(0.9, share=0.3, random_state=3).set_apart(1000)
    np.testing.assert_array_equal(apart, same)
    assert not np.array_equal(apart, Shortlist(0.9, share=0.3).set_apart(1000))
    assert 0 < apart[:500].sum() - 100 < 100
    assert not Shortlist(0.9).set_apart(50).any()
    assert Shortlist(0.9, share=0.99).set_apart(20).sum() == 19


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 0.0}, r"level must be a number in \(0, 1\)"),
        ({"level": "95 %"}, r"level must be a number"),
        ({"level": 0.9, "share": 1.0}, r"share must be a number in \[0, 1\)"),
        ({"level": 0.9, "share": -0.1}, r"share must be a number in \[0, 1\)"),
    ],
)
def test_malformed_requests_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Shortlist(**arguments)
