"""The flag of doctests that show what a fitted model says; the quick tests."""

import doctest
from pathlib import Path

import pytest

import conftest

VARY = doctest.OPTIONFLAGS_BY_NAME["DIGITS_VARY"]
SHOWN = "coverage 0.973, 12 of 300 wrong\n"


def agrees(want, got):
    return doctest.OutputChecker().check_output(want, got, VARY)


@pytest.mark.parametrize(
    "got", [SHOWN, "coverage 0.93, 12 of 310 wrong\n", "coverage  1e0,\n 12 of 2.9e+02 wrong"]
)
def test_numbers_may_differ_by_five_percent(got):
    assert agrees(SHOWN, got)


@pytest.mark.parametrize(
    "got", ["coverage 0.92, 12 of 300 wrong\n", "coverage 0.973, 13 of 300 wrong\n"]
)
def test_numbers_may_not_differ_by_more(got):
    assert not agrees(SHOWN, got)


def test_small_numbers_may_differ_by_a_hundredth():
    assert agrees("risk .021, -0.004\n", "risk 0.03, 0.005\n")
    assert not agrees("risk .021\n", "risk .032\n")


def test_a_comma_may_separate_thousands():
    assert agrees("3,891 rows, 1,200,000\n", "3,952 rows, 1,230,000\n")
    assert not agrees("3,891 rows\n", "4,391 rows\n")


@pytest.mark.parametrize("got", ["(0.67, 0.96)\n", "(0.77,)\n", "(0.77, 0.95, 1)\n"])
def test_a_stale_pair_is_found(got):
    assert not agrees("(0.77, 0.95)\n", got)


def test_labels_count():
    assert agrees("array([ 2, -1,  2])\n", "array([ 2, -1,\n 2])\n")
    assert not agrees("array([ 2, -1,  2])\n", "array([ 2,  1,  2])\n")


def test_dots_stand_for_anything():
    want = "1. at 0.79\n<BLANKLINE>\n... of 300 wrong...\n"
    assert agrees(want, "1. at 0.8\n\n12 of 301 wrong, at most 4 %\n")
    assert agrees("... 2 wrong\n", "7 right, 2 wrong\n")
    assert not agrees(want, "1. at 0.8\n\n12 of 400 wrong, at most 4 %\n")


@pytest.mark.parametrize("got", ["risk 0.973, 12 of 300 wrong\n", SHOWN.replace("0.973", "nan")])
def test_words_may_not_vary(got):
    assert not agrees(SHOWN, got)


def test_without_the_flag_numbers_count():
    assert not doctest.OutputChecker().check_output(SHOWN, SHOWN.replace("12", "13"), 0)


def test_every_room_has_quick_tests():
    assert [file for file in conftest.QUICK if not file.is_file()] == []
    rooms = {file.parent for file in Path(__file__).parent.glob("*/test_*.py")}
    assert {room.name for room in rooms - {file.parent for file in conftest.QUICK}} == {"paper"}
