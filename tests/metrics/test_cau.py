"""Correctness-aligned uncertainty: its two parts, and values known by hand."""

import math

import pytest
from hypothesis import given

from skselect import metrics
from tests.brute import assert_close, examples, of_probabilities, proba_cases
from tests.metrics.definitions import cau_parts

TRUTH, PROBA = [0, 1, 1, 0], [0.125, 0.875, 0.375, 0.75]


@pytest.mark.parametrize("eps", [1e-8, 2.0**-10, 0.25])
@examples(60)
@given(case=proba_cases())
def test_the_components_are_their_definitions(eps, case):
    parts = of_probabilities(metrics.cau_components, case, eps=eps)
    (right, n_right), (wrong, n_wrong) = cau_parts(case, eps)
    assert_close([parts.cau_1, parts.cau_0], [right, wrong], rel=1e-7)
    assert_close([parts.n_right, parts.n_wrong], [n_right, n_wrong])


def test_known_values():
    # h of (1/4, 3/4) in units of log 2; .125 .875 right, .375 wrong.
    def h(p):
        return -(p * math.log2(p) + (1 - p) * math.log2(1 - p))

    right, wrong = -math.log(1 - h(0.125)), -(math.log(h(0.375)) + math.log(h(0.75))) / 2
    parts = metrics.cau_components(TRUTH, PROBA)
    assert_close([parts.cau_1, parts.cau_0], [right, wrong])
    assert (parts.n_right, parts.n_wrong) == (2, 2)
    assert_close(metrics.cau_score(TRUTH, PROBA, lambda_=0.25), right + wrong / 4)
    assert_close(metrics.cau_cost_score(TRUTH, PROBA, cost_wrong=3), (right + 3 * wrong) / 2)
    assert_close(metrics.right_entropy_score(TRUTH, PROBA), h(0.125))
    assert_close(metrics.wrong_entropy_score(TRUTH, PROBA), (h(0.375) + h(0.75)) / 2)


@pytest.mark.parametrize(
    ("y_true", "name", "rows"), [([0, 1], "CAU_0", "errors"), ([1, 0], "CAU_1", "right rows")]
)
def test_a_part_without_rows_is_nan_and_left_out_with_a_warning(y_true, name, rows):
    y_proba = [[0.75, 0.25], [0.125, 0.875]]
    parts = metrics.cau_components(y_true, y_proba)
    missing, other = (parts.cau_0, parts.cau_1) if name == "CAU_0" else (parts.cau_1, parts.cau_0)
    assert math.isnan(missing)
    with pytest.warns(UserWarning, match=f"cau: there are no {rows}, so {name} is left out"):
        assert metrics.cau_score(y_true, y_proba) == other
