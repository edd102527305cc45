"""arXiv 2605.01796: population values of accuracy, cwA and CSR under perfect calibration."""

import numpy as np
import pytest

from skselect import Outcomes
from skselect.metrics._honesty import csr, cw_accuracy

# Published laws of the confidence with the accuracy and cwA of their population.
LAWS = {
    "uniform": (lambda rng, n: rng.random(n), 0.5, 0.6667),
    "tight high": (lambda rng, n: rng.uniform(0.8, 1.0, n), 0.9, 0.9037),
    "tight low": (lambda rng, n: rng.uniform(0.0, 0.2, n), 0.1, 0.1333),
}


@pytest.mark.parametrize("law", LAWS)
def test_perfect_calibration(law):
    draw, accuracy, weighted = LAWS[law]
    rng = np.random.default_rng(7)
    confidence = draw(rng, 1_000_000)
    rows = Outcomes(rng.random(len(confidence)) >= confidence, confidence)
    assert 1 - rows.loss.mean() == pytest.approx(accuracy, abs=0.002)
    assert cw_accuracy(rows) == pytest.approx(weighted, abs=0.002)
    if law == "tight low":  # elsewhere the variance of CSR is infinite
        assert csr(rows) == pytest.approx(1.0, abs=0.005)
