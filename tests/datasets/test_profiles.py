import numpy as np
import pytest
from scipy import stats

from skselect import Outcomes, RiskCoverageCurve, evaluate
from skselect.datasets import make_confidence_profile, make_model_profile, make_risk_profile
from skselect.datasets._profiles import CALIBRATION_MODES, DISTRIBUTIONS, MODELS, RISKS

N = 100_000
# Five standard errors of a mean of N numbers in [0, 1].
CLOSE = 5 * 0.5 / np.sqrt(N)


def check_labels(drawn):
    assert np.array_equal(drawn.y_true == drawn.y_pred, drawn.correct)
    assert drawn.confidence.min() >= 0
    assert drawn.confidence.max() <= 1


@pytest.mark.parametrize("mode", CALIBRATION_MODES)
@pytest.mark.parametrize("law", DISTRIBUTIONS)
def test_errors_follow_the_chance(law, mode):
    drawn = make_confidence_profile(law, mode, N, random_state=0)
    check_labels(drawn)
    assert drawn.correct.mean() == pytest.approx(drawn.chance.mean(), abs=CLOSE)
    # Where the chance is higher, it is right more often.
    high = drawn.chance > np.median(drawn.chance)
    if 0 < high.sum() < N:
        assert drawn.correct[high].mean() == pytest.approx(drawn.chance[high].mean(), abs=2 * CLOSE)
    assert set(np.unique(drawn.y_true)) == {0, 1}


@pytest.mark.parametrize(
    ("mode", "sign"),
    [("perfect", 0), ("underconfident_linear", 1), ("underconfident_sqrt", 1),
     ("underconfident_random", 1), ("overconfident_sqrt", -1), ("overconfident_half", -1),
     ("overconfident_random", -1)],
)  # fmt: skip
def test_names_tell_the_direction(mode, sign):
    drawn = make_confidence_profile("bell", mode, 1000, random_state=0)
    assert np.all(np.sign(drawn.chance - drawn.confidence) == sign)


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "perfect_certain"])
def test_models(kind):
    drawn = make_model_profile(kind, N, random_state=0)
    check_labels(drawn)
    share = {"perfect": 1.0, "random": 1 / 3}.get(kind, 0.9)
    assert drawn.correct.mean() == pytest.approx(share, abs=CLOSE)
    low, high = {
        "calibrated": (0.8, 1), "underconfident": (0.4, 0.6), "random": (0.3, 1),
        "perfect": (0.95, 1),
    }.get(kind, (0.9, 1))  # fmt: skip
    right = drawn.confidence[drawn.correct]
    assert stats.kstest(right, "uniform", args=(low, high - low)).pvalue > 1e-4
    wrong = drawn.confidence[~drawn.correct]
    if kind == "calibrated":
        assert wrong.max() < 0.7
        assert wrong.min() >= 0.5
    elif kind != "perfect":
        assert stats.kstest(wrong, "uniform", args=(low, high - low)).pvalue > 1e-4


def test_the_perfect_model_of_the_text():
    drawn = make_model_profile("perfect_certain", 100, random_state=0)
    check_labels(drawn)
    assert drawn.correct.all()
    assert np.all(drawn.confidence == 1)
    outcomes = Outcomes(~drawn.correct, drawn.confidence)
    curve = RiskCoverageCurve.from_outcomes(outcomes)
    thresholds = np.linspace(0.5, 0.99, 50)
    assert np.all(curve.accepted_at(thresholds).weight == 100)
    assert np.all(curve.cwsa(thresholds) == 1)
    assert np.all(curve.cwsa_plus(thresholds) == 1)
    assert evaluate(outcomes, ["ece", "aurc", "augrc"]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("n_levels", [None, 1, 7, 100])
@pytest.mark.parametrize("kind", RISKS)
def test_the_truth_of_risk_profiles(kind, n_levels):
    drawn = make_risk_profile(kind, N, n_levels=n_levels, random_state=0)
    check_labels(drawn)
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


def test_seeds():
    for make in [make_confidence_profile, make_model_profile, make_risk_profile]:
        first, again = make(n_samples=50, random_state=3), make(n_samples=50, random_state=3)
        assert np.array_equal(first.confidence, again.confidence)
        assert np.array_equal(first.y_true, again.y_true)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_confidence_profile("gauss"), "distribution must be one of"),
        (lambda: make_confidence_profile("bell", "good"), "calibration_mode must be one of"),
        (lambda: make_model_profile("best"), "kind must be one of"),
        (lambda: make_risk_profile("none"), "kind must be one of"),
        (lambda: make_risk_profile(n_samples=0), "n_samples"),
        (lambda: make_risk_profile(n_levels=0), "n_levels"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
