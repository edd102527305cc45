"""The flag of doctests that show what a fitted model says."""

import doctest

import pytest

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
