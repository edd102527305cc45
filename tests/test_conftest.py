"""The flags of doctests that show what a fitted model says; the quick tests."""

import doctest
from pathlib import Path

import conftest

VARY = doctest.OPTIONFLAGS_BY_NAME["DIGITS_VARY"]
DOTS = "1. at 0.79\n<BLANKLINE>\n... of 300 wrong...\n"
SHOWN = "coverage 0.973, 12 of 300 wrong\n"


def agrees(want, got, flag=VARY):
    return doctest.OutputChecker().check_output(want, got, flag)


AGREE = [
    (SHOWN, SHOWN), (SHOWN, "coverage 0.93, 12 of 310 wrong\n"),
    (SHOWN, "coverage  1e0,\n 12 of 2.9e+02 wrong"),  # by five percent
    ("risk .021, -0.004\n", "risk 0.03, 0.005\n"),  # by a hundredth
    ("3,891 rows, 1,200,000\n", "3,952 rows, 1,230,000\n"),
    ("array([ 2, -1,  2])\n", "array([ 2, -1,\n 2])\n"),
    (DOTS, "1. at 0.8\n\n12 of 301 wrong, at most 4 %\n"),
    ("... 2 wrong\n", "7 right, 2 wrong\n"),
]  # fmt: skip
DIFFER = [
    (SHOWN, "coverage 0.92, 12 of 300 wrong\n"), (SHOWN, "coverage 0.973, 13 of 300 wrong\n"),
    (SHOWN, "risk 0.973, 12 of 300 wrong\n"), (SHOWN, SHOWN.replace("0.973", "nan")),
    ("risk .021\n", "risk .032\n"), ("3,891 rows\n", "4,391 rows\n"),
    *(("(0.77, 0.95)\n", got) for got in ("(0.67, 0.96)\n", "(0.77,)\n", "(0.77, 0.95, 1)\n")),
    ("array([ 2, -1,  2])\n", "array([ 2,  1,  2])\n"),
    (DOTS, "1. at 0.8\n\n12 of 400 wrong, at most 4 %\n"),
]  # fmt: skip


def test_numbers_may_differ_by_five_percent_or_a_hundredth_and_words_may_not():
    assert [case for case in AGREE if not agrees(*case)] == []
    assert [case for case in DIFFER if agrees(*case)] == []


def test_counts_may_be_any_number_and_words_may_not():
    free = doctest.OPTIONFLAGS_BY_NAME["NUMBERS_VARY"]
    assert agrees(SHOWN, "coverage 0.5, 1,700 of 3,000 wrong\n", free)
    for other in ("risk 0.973, 12 of 300 wrong\n", "coverage 0.973, none of 300 wrong\n"):
        assert not agrees(SHOWN, other, free)


def test_without_the_flag_numbers_count():
    assert not doctest.OutputChecker().check_output(SHOWN, SHOWN.replace("12", "13"), 0)


def test_every_room_has_quick_tests():
    assert [file for file in conftest.QUICK if not file.is_file()] == []
    rooms = {file.parent for file in Path(__file__).parent.glob("*/test_*.py")}
    left_out = {room.name for room in rooms - {file.parent for file in conftest.QUICK}}
    assert left_out == {"benchmarks", "paper"}
