import numpy as np
import pytest

from skselect.datasets import RISKS, make_risk_profile
from tests.refusals import check_refused

N = 100_000
# Five standard errors of a mean of N numbers in [0, 1].
CLOSE = 5 * 0.5 / np.sqrt(N)


@pytest.mark.parametrize("kind", RISKS)
def test_the_truth_of_risk_profiles(kind):
    for n_levels in [None, 1, 7, 100]:
        drawn = make_risk_profile(kind, N, n_levels=n_levels, random_state=0)
        assert np.array_equal(drawn.y_true == drawn.y_pred, drawn.correct)
        assert set(np.unique(drawn.y_true)) == {0, 1}
        assert drawn.confidence.min() >= 0
        assert drawn.confidence.max() <= 1
        assert drawn.correct.mean() == pytest.approx(drawn.chance.mean(), abs=CLOSE)
        for threshold in [-1.0, 0.0, 0.07, 0.14, 0.2, 0.28, 0.5, 0.55, 0.71, 0.9, 0.97, 1.0]:
            accepted = drawn.confidence >= threshold
            coverage = float(drawn.coverage(threshold))
            assert accepted.mean() == pytest.approx(coverage, abs=CLOSE)
            if accepted.sum() > 100:
                found = 1 - drawn.correct[accepted].mean()
                expected = float(drawn.selective_risk(threshold))
                error = np.sqrt(max(expected * (1 - expected), 1e-4) / accepted.sum())
                assert abs(found - expected) < 5 * error
        assert np.isnan(drawn.selective_risk(1.5))
        assert drawn.coverage([0.5, 2.0]).shape == (2,)


@pytest.mark.parametrize(
    ("argument", "value"), [("kind", "none"), ("n_samples", 0), ("n_levels", 0)]
)
def test_refusals(argument, value):
    check_refused(argument, lambda: make_risk_profile(**{argument: value}))
