"""skselect.curve.scan: one pass, exact to twelve digits."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from skselect import Outcomes, RiskCoverageCurve
from skselect.curve import areas
from skselect.curve.scan import sum_shortfalls
from skselect.curve.tie_blocks import CHUNK
from skselect.metrics import SPECS
from tests import brute
from tests.brute import assert_close, examples, row_cases, rows_of

NEAR_ONE = st.floats(1 - 1e-12, 1.0) | st.sampled_from([1.0, np.nextafter(1, 0), 1 - 1e-12])
HARD = st.lists(st.tuples(NEAR_ONE | st.floats(0.5, 1.0), st.booleans()), min_size=1, max_size=12)


@pytest.mark.parametrize("decimals", [5, 17])
def test_what_the_first_entries_accept_is_looked_up_in_one_chunk(decimals, rng):
    confidence = rng.random(3 * CHUNK).round(decimals)
    curve = RiskCoverageCurve.from_outcomes(Outcomes(rng.random(3 * CHUNK) < 0.1, confidence))
    assert curve.accepted_by(0) == (0.0, 0.0)
    for k in [1, CHUNK, CHUNK + 1, len(curve)]:
        assert curve.accepted_by(k) == (curve.accepted_weight[k - 1], curve.accepted_loss[k - 1])


@examples(200)
@given(HARD)
def test_cwsa_is_exact_within_1e_minus_12_of_certainty(rows):
    confidence, wrong = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, confidence))
    exact = rows_of(wrong, confidence)
    at = sorted({float(c) for c in confidence if c < 1} | {float(np.nextafter(1, 0))})
    expected = [brute.cwsa(exact, t, plus=True) for t in at]
    assert_close(curve.cwsa_plus(at), expected, rel=1e-12, tiny=1e-13)
    assert_close(curve.cwsa(at), [brute.cwsa(exact, t) for t in at], rel=0, tiny=1e-12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_sums_over_many_chunks_are_exact(ties, n, rng):
    confidence = rng.integers(0, 500, n) / 512 if ties else rng.permutation(n) / n
    loss = (rng.random(n) < 0.2).astype(float)
    sums = RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence)).sums
    # Twice the pairs of a right row and a surer wrong one, ties by half: whole numbers.
    levels, place = np.unique(-confidence, return_inverse=True)
    wrong = np.bincount(place, weights=loss).astype(np.int64)
    right = np.bincount(place).astype(np.int64) - wrong
    twice = int(np.sum(right * (2 * np.cumsum(wrong) - wrong)))
    assert sums.products.discordant == twice / 2
    assert sums.auroc == 1 - twice / 2 / (int(right.sum()) * int(wrong.sum()))
    assert sums.n_blocks == len(levels)
    assert sums.weight == n
    assert sums.loss == loss.sum()


@pytest.mark.parametrize("n", [10, 2 * CHUNK + 9])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_a_threshold_accepts_is_looked_up_exactly(n, weighted, rng):
    confidence = np.round(rng.random(n), 4)
    loss = (rng.random(n) < 0.3).astype(float)
    weight = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    curve = RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence, weight))
    thresholds = np.concatenate([confidence[:20], [-np.inf, 0, 0.33333, 1, np.inf]])
    found = curve.accepted_at(thresholds)
    right, wrong = sum_shortfalls(curve.sums, thresholds)
    for k, t in enumerate(thresholds):
        kept = confidence >= t
        assert found.weight[k] == weight[kept].sum()
        assert found.loss[k] == (weight * loss)[kept].sum()
        shortfall = weight * (1 - confidence) * kept
        assert right[k] == pytest.approx((shortfall * (1 - loss)).sum(), rel=1e-12)
        assert wrong[k] == pytest.approx((shortfall * loss).sum(), rel=1e-12)


AT_THRESHOLD = [name for name, spec in SPECS.items() if spec.at_threshold]


@pytest.mark.parametrize("name", [*AT_THRESHOLD, "augrc", "failure_auroc", "cw_accuracy"])
def test_only_the_aurc_needs_harmonic_series(name, monkeypatch):
    def refuse(*_):
        raise AssertionError("a harmonic series was computed")

    monkeypatch.setattr(areas, "harmonic_terms", refuse)
    monkeypatch.setattr(areas, "harmonic_gap", refuse)
    tied = Outcomes([0, 1, 0, 0, 1], [0.9, 0.9, 0.8, 0.7, 0.7], [1, 2, 1, 3, 1])
    curve = RiskCoverageCurve.from_outcomes(tied)
    assert np.isfinite(SPECS[name].kernel(curve))
    assert np.all(np.isfinite(np.concatenate([curve.coverage, curve.cwsa_plus()])))
    with pytest.raises(AssertionError, match="harmonic"):
        curve.aurc()


NAMES = ("threshold", "coverage", "selective_risk", "generalized_risk", "cwsa", "cwsa_plus")


@examples(60)
@given(row_cases())
def test_each_curve_is_its_definition_and_all_come_in_one_pass(case):
    found = case.curve.arrays(*NAMES)
    for k, c in enumerate(brute.levels(case.rows)):
        expected = [
            c, brute.coverage(case.rows, c), brute.selective_risk(case.rows, c),
            brute.generalized_risk(case.rows, c), brute.cwsa(case.rows, c),
            brute.cwsa(case.rows, c, plus=True),
        ]  # fmt: skip
        assert_close([found[name][k] for name in NAMES], expected)


def test_curves_over_many_chunks_are_those_at_the_thresholds(rng):
    n = 2 * CHUNK + 11
    curve = RiskCoverageCurve.from_outcomes(Outcomes(rng.random(n) < 0.2, rng.random(n)))
    found = curve.arrays("threshold", "cwsa", "cwsa_plus", "cwsa_limit", "cwsa_plus_limit")
    some = np.array([0, 5, CHUNK - 1, CHUNK, 2 * CHUNK - 1, 2 * CHUNK, n - 2])
    t = found["threshold"][some]
    assert found["cwsa"][some] == pytest.approx(curve.cwsa(t), rel=1e-10, abs=1e-13)
    assert found["cwsa_plus"][some] == pytest.approx(curve.cwsa_plus(t), rel=1e-10, abs=1e-13)
    below = np.nextafter(found["threshold"][some + 1], np.inf)
    assert found["cwsa_limit"][some] == pytest.approx(curve.cwsa(below), abs=1e-10)
    assert found["cwsa_plus_limit"][some] == pytest.approx(curve.cwsa_plus(below), abs=1e-10)


def test_an_unknown_curve_and_too_few_points_are_named():
    curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 1], [0.9, 0.8]))
    with pytest.raises(ValueError, match=r"names.*'speed'"):
        curve.arrays("speed")
    with pytest.raises(ValueError, match="max_points"):
        curve.to_frame(max_points=1)


@pytest.mark.parametrize("n", [3, CHUNK, 2 * CHUNK + 11])
@pytest.mark.parametrize("max_points", [2, 3, 100])
def test_some_points_of_a_curve_are_exactly_those_of_all(n, max_points, rng):
    curve = RiskCoverageCurve.from_outcomes(Outcomes(rng.random(n) < 0.2, rng.random(n)))
    some, every = curve.arrays(*NAMES, max_points=max_points), curve.arrays(*NAMES)
    place = np.searchsorted(-every["threshold"], -some["threshold"])
    assert len(place) == min(max_points, n)
    assert (place[0], place[-1]) == (0, n - 1)
    for name in NAMES:
        assert np.array_equal(some[name], every[name][place])
    table = curve.to_frame(max_points=max_points)
    assert table.equals(curve.to_frame().iloc[place].reset_index(drop=True))
