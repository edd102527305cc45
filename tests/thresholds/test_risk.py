"""Rules for a risk target, against the definition of what each may accept."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skselect import Outcomes, RiskCoverageCurve, thresholds
from skselect.bounds import combined_limits, walk_band
from tests.thresholds.cases import curves, profile


@profile
@given(curves(max_rows=60), st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from([0.05, 0.2]))
def test_band_accepts_the_largest_passing_block_end(case, target, delta):
    curve, (confidence, loss, _) = case
    n, min_coverage = len(confidence), 0.1
    ranks, limits = walk_band(n, target, delta, min_coverage)
    best = 0
    for b, t in enumerate(curve.thresholds):
        kept = confidence >= t
        below = ranks[ranks <= kept.sum()]
        if len(below) and loss[kept].sum() <= limits[len(below) - 1]:
            best = b + 1
    assert thresholds.band_risk(curve, target, delta, min_coverage) == best


@profile
@given(curves(max_rows=80), st.sampled_from([0.1, 0.3, 0.5]), st.sampled_from([0.05, 0.2]))
def test_combined_takes_the_better_of_band_and_sequence(case, target, delta):
    """Block by block: a sequence holds a block to the limit at the rank before it."""
    curve, (confidence, loss, _) = case
    ranks, band, sequence = combined_limits(len(confidence), target, delta, 0.1)
    limit = {int(r): (b, s) for r, b, s in zip(ranks, band, sequence, strict=True)}

    def limits_at(k):
        return limit[max(r for r in limit if r <= k)]

    start = next((r for r in limit if limit[r][1] >= 0), np.inf)
    best, before, running = 0, 0, True
    for b, t in enumerate(curve.thresholds):
        kept = confidence >= t
        k, errors = int(kept.sum()), int(loss[kept].sum())
        if len(ranks) and k >= ranks[0] and errors <= limits_at(k)[0]:
            best = b + 1
        if running and k >= start:
            running = errors <= limits_at(max(before, start))[1]
            best = max(best, b + 1) if running else best
        before = k
    assert thresholds.combined_risk(curve, target, delta, 0.1) == best


def test_least_combined_target_is_met_and_a_smaller_one_is_not(rng):
    curve = RiskCoverageCurve.from_outcomes(Outcomes(rng.random(500) < 0.1, rng.random(500)))
    least = thresholds.least_risk_target(thresholds.combined_risk, curve, 0.05, 0.1)
    assert thresholds.combined_risk(curve, least, 0.05, 0.1) > 0
    assert thresholds.combined_risk(curve, 0.99 * least, 0.05, 0.1) == 0


def test_least_target_is_met_and_a_smaller_one_is_not(rng):
    confidence = rng.random(500)
    curve = RiskCoverageCurve.from_outcomes(Outcomes(rng.random(500) < 0.1, confidence))
    errors = curve.accepted_loss.astype(int)
    least = thresholds.least_band_target(curve.n_accepted, errors, 500, 0.05, 0.1)
    assert thresholds.band_risk(curve, least, 0.05, 0.1) > 0
    assert thresholds.band_risk(curve, 0.99 * least, 0.05, 0.1) == 0


def test_rows_needed_is_about_what_it_takes(rng):
    n = 400
    confidence = rng.random(n)
    wrong = rng.random(n) < 0.2 * (1 - confidence) ** 3
    curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, confidence))
    assert thresholds.band_risk(curve, 0.005, 0.05, 0.1) == 0
    needed = thresholds.rows_like_these(curve, 0.005, 0.05, 0.1)
    assert needed > n
    copies = int(np.ceil(1.5 * needed / n))
    many = RiskCoverageCurve.from_outcomes(
        Outcomes(
            np.tile(wrong, copies), (confidence[None] - 1e-9 * np.arange(copies)[:, None]).ravel()
        )
    )
    assert thresholds.band_risk(many, 0.005, 0.05, 0.1) > 0


def test_rows_needed_is_none_where_more_rows_would_not_help():
    curve = RiskCoverageCurve.from_outcomes(Outcomes([1, 1, 1, 1], [0.9, 0.8, 0.7, 0.6]))
    assert thresholds.rows_like_these(curve, 0.1, 0.05, 0.1) is None
