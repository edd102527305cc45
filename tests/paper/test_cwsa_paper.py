"""arXiv 2505.18622: what CWSA(+) rewards, in numbers that we quote."""

import numpy as np
import pytest

from skselect import Outcomes, RiskCoverageCurve
from skselect.metrics._threshold import cwsa, cwsa_plus, selective_accuracy


@pytest.mark.parametrize(
    ("temperature", "plus", "signed", "accuracy"),
    [(1.0, 0.392, 0.358, 0.885), (0.05, 0.729, 0.487, 0.745)],
)
def test_sharpening_alone_raises_both(temperature, plus, signed, accuracy):
    # Calibrated two-class probabilities with standard normal log-odds of spread 1.5; each row
    # enters once as right and once as wrong, with the probabilities of both as weights.
    z = np.abs(np.random.default_rng(0).normal(scale=1.5, size=400_000))
    p = 1 / (1 + np.exp(-z))
    c = 1 / (1 + np.exp(-z / temperature))
    rows = Outcomes(np.repeat([0.0, 1.0], len(z)), np.tile(c, 2), np.concatenate([p, 1 - p]))
    assert cwsa_plus(rows, 0.8) == pytest.approx(plus, abs=0.02)
    assert cwsa(rows, 0.8) == pytest.approx(signed, abs=0.02)
    assert selective_accuracy(rows, 0.8) == pytest.approx(accuracy, abs=0.01)


def test_cwsa_plus_never_exceeds_the_selective_accuracy(rng):
    confidence = rng.random(500)
    curve = RiskCoverageCurve.from_outcomes(Outcomes(rng.random(500) > confidence, confidence))
    assert np.all(curve.cwsa_plus() <= 1 - curve.selective_risk + 1e-12)
