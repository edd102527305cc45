"""Cells: fine near certainty, exact at thresholds, honest about what they do not know."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skselect import Outcomes, RiskCoverageCurve, SelectiveState, evaluate
from skselect.curve.curve import threshold_below
from skselect.streaming.certified import (
    N_CELLS,
    CellCounts,
    bound_areas,
    find_cells,
    least_confidences,
)
from tests.brute import examples

UNIT = st.floats(0.0, 1.0)


@examples(200)
@given(st.lists(UNIT, min_size=2, max_size=20))
def test_surer_rows_never_lie_in_later_cells(values):
    values = np.sort(values)[::-1]
    cells = find_cells(values)
    assert np.all(np.diff(cells) >= 0)
    assert np.all((cells >= 0) & (cells < N_CELLS))


# Values around which 1 - c is rounded, and multiples of 2^-k as k voters produce them.
DYADIC = st.integers(0, 2**14).map(lambda k: k / 2**14) | st.sampled_from(
    [2.0**-54, 2.0**-53, 1 - 2.0**-20, 1 - 2.0**-41, 1 - 2.0**-52]
)


@examples(300)
@given(UNIT | st.floats(0, 1, width=32) | DYADIC)
def test_the_least_confidence_of_a_cell_lies_in_it_and_the_float_below_does_not(value):
    cell = find_cells(np.array([value]))
    least = least_confidences(cell)
    assert find_cells(least) == cell
    assert least <= value
    assert least == 0.0 or find_cells(np.nextafter(least, -1.0)) > cell


def test_the_cells_reach_from_certainty_to_zero_and_floats_next_to_one_have_their_own():
    assert len(set(find_cells(1 - np.arange(200) * 2.0**-53).tolist())) == 200
    assert find_cells(np.array([1.0, 1 - 2.0**-53, 0.0])).tolist() == [0, 1, N_CELLS - 1]
    assert least_confidences(np.array([0, 1, N_CELLS - 1])).tolist() == [1.0, 1 - 2.0**-53, 0.0]


@examples(100)
@given(
    st.lists(st.tuples(UNIT | DYADIC, st.integers(-2, 2)), min_size=1, max_size=12),
    st.lists(UNIT | DYADIC, max_size=2),
    st.sampled_from([np.float64, np.float32]),
)
def test_every_threshold_accepts_exactly_the_rows_it_was_chosen_for(rows, thresholds, kind):
    """Whatever the cut, on the rows and on the floats beside the edges."""
    points = np.array([value for value, _ in rows], dtype=kind)
    for _ in range(2):
        towards = np.array([np.sign(step) for _, step in rows], dtype=kind)
        points = np.clip(np.nextafter(points, points + towards), 0, 1)
    state = SelectiveState("certified", thresholds=thresholds)
    curve = state.update_confidence(points, np.zeros(len(points))).finalize()
    seen = points.astype(np.float64)
    for entry, n_accepted in enumerate(curve.n_accepted):
        for threshold in (curve.thresholds[entry], threshold_below(curve, entry + 1)):
            assert np.sum(seen >= threshold) == n_accepted


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3))
def test_the_bounds_are_the_best_and_the_worst_order_inside_the_cells(parts):
    parts = [(g, e) for g, e in parts if g + e]
    if not parts:
        return
    right, wrong = (np.array(column) for column in zip(*parts, strict=True))
    if right.sum() + wrong.sum() > 6:
        return
    found = bound_areas(right, wrong)
    # Every order of the rows inside every cell, written out.
    orders = [[]]
    for g, e in parts:
        inside = set(permutations([0] * g + [1] * e))
        orders = [order + list(more) for order in orders for more in inside]
    confidence = np.linspace(1, 0.5, len(orders[0]))
    curves = [RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence)) for loss in orders]
    for name, area in (("aurc", "aurc"), ("augrc", "augrc")):
        values = [getattr(curve, area)() for curve in curves]
        assert found[name] == pytest.approx((min(values), max(values)), rel=1e-9, abs=1e-12)


def test_thresholds_among_neighbouring_floats_are_exact():
    """Where 1 - t is rounded a row may lie beyond the end of its cell."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        edge = rng.choice([0.0625, 0.25, 0.5, 0.9375, 1 - 2.0**-20, 1 - 2.0**-41, rng.random()])
        points = np.clip(edge + np.spacing(edge) * rng.integers(-6, 7, 8), 0, 1)
        thresholds = points[: int(rng.integers(1, 4))]
        loss = (rng.random(8) < 0.5).astype(float)
        state = SelectiveState("certified", thresholds=thresholds).update_confidence(points, loss)
        assert np.all(np.diff(state.finalize().thresholds) < 0)
        for t in thresholds:
            wanted = evaluate(Outcomes(loss, points), {"generalized_risk": {"threshold": t}})
            found = state.evaluate({"generalized_risk": {"threshold": t}})
            assert found["value"].tolist() == wanted.tolist()
            at = state.evaluate({"coverage": {"threshold": t}})
            assert at.loc["coverage", "value"] == (points >= t).mean()


def test_counts_of_groups_are_those_of_rows(rng):
    confidence, wrong = np.round(rng.random(300), 2), (rng.random(300) < 0.3).astype(float)
    thresholds = np.array([0.25, 0.5])
    rows, groups = CellCounts(thresholds), CellCounts(thresholds)
    rows.add(confidence, wrong)
    levels, place = np.unique(confidence, return_inverse=True)
    errors = np.bincount(place, weights=wrong).astype(np.int64)
    groups.add_counts(levels, np.bincount(place), errors)
    assert np.array_equal(rows.counts, groups.counts)
    assert np.array_equal(rows.inside, groups.inside)


def test_an_error_at_certainty_has_no_finite_ratio_without_clipping():
    state = SelectiveState("certified").update_confidence([1.0, 0.5], [1, 0])
    assert state.evaluate({"csr": {"eps": 0}}).loc["csr"].tolist() == [np.inf] * 3
    with pytest.raises(ValueError, match=r"bounds only without \['estimator'\]"):
        state.evaluate({"aurc": {"estimator": "integral"}})
