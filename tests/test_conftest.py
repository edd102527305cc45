"""The flag of doctests that show what a fitted model says; the quick tests."""

import doctest
from pathlib import Path

import pytest

import conftest

VARY = doctest.OPTIONFLAGS_BY_NAME["DIGITS_VARY"]
SHOWN = "coverage 0.973, 12 of 300 wrong\n"


@pytest.mark.parametrize("got", [SHOWN, "coverage 0.9712345, 9 of 1e+03 wrong\n"])
def test_numbers_may_vary(got):
    assert doctest.OutputChecker().check_output(SHOWN, got, VARY)


@pytest.mark.parametrize("got", ["risk 0.973, 12 of 300 wrong\n", SHOWN.replace("0.973", "nan")])
def test_words_may_not_vary(got):
    assert not doctest.OutputChecker().check_output(SHOWN, got, VARY)


def test_without_the_flag_numbers_count():
    assert not doctest.OutputChecker().check_output(SHOWN, SHOWN.replace("12", "13"), 0)


def test_every_room_has_quick_tests():
    assert [file for file in conftest.QUICK if not file.is_file()] == []
    rooms = {file.parent for file in Path(__file__).parent.glob("*/test_*.py")}
    assert {room.name for room in rooms - {file.parent for file in conftest.QUICK}} == {"paper"}
