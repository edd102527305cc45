"""Where a threshold is put."""

import numpy as np
from hypothesis import given

from skselect import Outcomes, RiskCoverageCurve, thresholds
from tests.thresholds.cases import curves, profile


@profile
@given(curves())
def test_threshold_below_accepts_exactly_the_blocks(case):
    curve, (confidence, _, _) = case
    for k in range(len(curve) + 1):
        t = thresholds.threshold_below(curve, k)
        assert int((confidence >= t).sum()) == (curve.n_accepted[k - 1] if k else 0)


def test_accepting_everything_accepts_rows_that_are_still_less_sure():
    named = RiskCoverageCurve.from_outcomes(Outcomes([0, 0], [0.9, 0.6]))
    assert thresholds.threshold_below(named, 2) == 0.0
    own = RiskCoverageCurve.from_outcomes(Outcomes([0, 0], [-3.0, -7.0]))
    assert thresholds.threshold_below(own, 2) == -np.inf


def test_threshold_between_neighbouring_floats_accepts_the_upper_one():
    high = 0.7
    curve = RiskCoverageCurve.from_outcomes(Outcomes([0, 1], [high, np.nextafter(high, 0)]))
    assert thresholds.threshold_below(curve, 1) == high
