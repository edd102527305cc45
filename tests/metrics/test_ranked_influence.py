"""Standard errors from tie blocks are those of the rows."""

import math

import numpy as np
import pytest

from skselect import Outcomes, RiskCoverageCurve, SelectiveState
from skselect._blocks import CHUNK
from skselect.metrics._clusters import clustered_error
from skselect.metrics._evaluate import Judged, JudgedCurve
from skselect.metrics._influence import RANKED


def some_outcomes(n, kind):
    rng = np.random.default_rng(0)
    confidence = {
        "untied": lambda: rng.random(n),
        "tied": lambda: rng.integers(0, 9, n) / 8,
        "mixed": lambda: np.round(rng.random(n), 3),
    }[kind]()
    return Outcomes(rng.random(n) < 0.3, confidence)


@pytest.mark.parametrize("name", RANKED)
@pytest.mark.parametrize("kind", ["untied", "tied", "mixed"])
@pytest.mark.parametrize("n", [30, 2 * CHUNK + 5])
def test_blocks_and_rows_say_the_same(name, kind, n):
    outcomes = some_outcomes(n, kind)
    rows = RANKED[name](Judged(outcomes))
    blocks = RANKED[name](JudgedCurve(RiskCoverageCurve.from_outcomes(outcomes)))
    assert blocks.estimate == rows.estimate
    assert blocks.standard_error() == pytest.approx(clustered_error(rows.values), rel=1e-9)


@pytest.mark.parametrize("name", RANKED)
def test_values_come_in_the_order_of_the_rows(name):
    outcomes = some_outcomes(200, "mixed")
    order = np.random.default_rng(1).permutation(200)
    values = RANKED[name](Judged(outcomes)).values
    shuffled = RANKED[name](Judged(outcomes.take(order))).values
    assert shuffled == pytest.approx(values[order], abs=1e-12)


def test_rows_of_one_cluster_move_together():
    outcomes = some_outcomes(200, "untied")
    found = RANKED["aurc"](Judged(outcomes))
    cluster = np.arange(200) // 4
    sums = np.add.reduceat(found.values, np.arange(0, 200, 4))
    expected = math.sqrt(np.sum(sums**2) * 50 / 49) / 200
    assert found.standard_error(cluster) == pytest.approx(expected, rel=1e-12)


def test_rows_that_do_not_differ_say_nothing():
    confidence = np.repeat([0.75, 0.5, 0.25], [4, 9, 9])
    state = SelectiveState().update_confidence(confidence, np.ones(22))
    found = state.interval("augrc")
    assert found.method == "none"
    assert found.standard_error < 1e-12
