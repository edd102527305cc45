"""What other coins would have given."""

import numpy as np
import pytest

import skselect as sk
from skselect.selection.sample import Sample
from skselect.selection.settle import cover_by_other_coins


@pytest.fixture
def graded(rng):
    confidence = rng.random(400)
    return sk.Outcomes(0.5 * (rng.random(400) < 0.3 * (1 - confidence)), confidence)


def test_other_coins_are_other_seeds(graded):
    objective = sk.Risk(0.1)
    sample = Sample(outcomes=graded)
    coverages = cover_by_other_coins(sample, objective, n_seeds=4)
    expected = [
        sk.select_threshold(
            graded.count(seed), objective=objective, on_infeasible="abstain"
        ).coverage
        for seed in range(1, 5)
    ]
    assert coverages.tolist() == expected
    assert len(set(expected)) > 1


def test_where_no_coin_decides_there_are_no_others(graded):
    assert len(cover_by_other_coins(Sample(outcomes=graded), sk.Best("aurc"))) == 0
    errors = sk.Outcomes(np.zeros(100), np.arange(100))
    assert len(cover_by_other_coins(Sample(outcomes=errors), sk.Risk(0.1))) == 0
