"""The calibration errors beside public packages that compute the same quantity.

What differs is known: relplot closes bins on the left and steps through widths in thousandths,
MAPIE's `num_bins` counts edges, probcal smooths along the log-odds (not compared).
"""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss

from skselect import Outcomes, RiskCoverageCurve
from skselect.metrics import SPECS
from skselect.metrics._binned_errors import debiased_l2, ece
from skselect.metrics._calibration_tests import run_ecce_test


@pytest.fixture(params=["overconfident", "calibrated"])
def rows(request):
    rng = np.random.default_rng(0)
    confidence = rng.beta(3, 0.8, 3000)
    shown = confidence if request.param == "calibrated" else confidence**0.6
    return shown, (rng.random(3000) < confidence).astype(int)


def kernel(name, confidence, right, **parameters):
    spec = SPECS[name]
    outcomes = Outcomes(1 - right, confidence)
    source = outcomes if spec.needs == "outcomes" else RiskCoverageCurve.from_outcomes(outcomes)
    return spec.kernel(source, **parameters)


def test_scikit_learn(rows):
    confidence, right = rows
    assert kernel("top_label_brier", confidence, right) == pytest.approx(
        brier_score_loss(right, confidence), rel=1e-12
    )
    fit = IsotonicRegression().fit_transform(confidence, right)
    assert kernel("isotonic_distance", confidence, right) == pytest.approx(
        np.abs(confidence - fit).mean(), rel=1e-9
    )


def test_relplot(rows):
    metrics = pytest.importorskip("relplot.metrics")
    confidence, right = rows
    assert kernel("ece", confidence, right) == pytest.approx(
        metrics.binnedECE(confidence, right, 15), rel=1e-9
    )
    assert kernel("smooth_ece", confidence, right) == pytest.approx(
        metrics.smECE(confidence, right), abs=1.5e-3
    )


def test_probcal(rows):
    metrics = pytest.importorskip("probcal.metrics")
    confidence, right = rows
    assert kernel("ece", confidence, right, n_bins=10) == pytest.approx(
        metrics.ece(right, confidence, n_bins=10, strategy="width"), rel=1e-9
    )


def test_mapie(rows):
    calibration = pytest.importorskip("mapie.metrics.calibration")
    confidence, right = rows
    assert kernel("ece", confidence, right) == pytest.approx(
        calibration.expected_calibration_error(
            right, confidence, num_bins=16, split_strategy="uniform"
        ),
        rel=1e-9,
    )
    found = run_ecce_test(Outcomes(1 - right, confidence))
    # MAPIE divides by sigma itself, and sorts by confidence with a little jitter.
    largest = calibration.kolmogorov_smirnov_statistic(right, confidence)
    spread = calibration.kuiper_statistic(right, confidence)
    assert found.mad / found.sigma == pytest.approx(largest, rel=1e-6)
    assert found.r / found.sigma == pytest.approx(spread, rel=1e-6)
    assert found.mad_p_value == pytest.approx(
        calibration.kolmogorov_smirnov_p_value(right, confidence), abs=1e-6
    )
    assert found.r_p_value == pytest.approx(calibration.kuiper_p_value(right, confidence), abs=1e-6)


def test_uncertainty_calibration(rows):
    utils = pytest.importorskip("calibration.utils")
    confidence, right = rows
    edges = [(k + 1) / 15 for k in range(15)]
    binned = utils.bin(list(zip(confidence, right, strict=True)), edges)
    outcomes = Outcomes(1 - right, confidence)
    assert debiased_l2(outcomes, strategy="uniform") == pytest.approx(
        utils.unbiased_l2_ce(binned), rel=1e-9
    )
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    assert ece(curve) == pytest.approx(utils.plugin_ce(binned, power=1), rel=1e-9)
