from benchmarks.mutants import MUTANTS, check_found


def test_every_change_that_the_tests_have_to_notice_still_fits_the_code():
    assert len(MUTANTS) >= 70
    check_found(MUTANTS)
