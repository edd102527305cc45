import numpy as np
import pytest
from scipy import stats

from skselect.datasets import (
    LAWS,
    MODELS,
    MODES,
    RISKS,
    make_calibration_profile,
    make_model_profile,
    make_risk_profile,
)
from tests.refusals import check_refused

N = 100_000
# Five standard errors of a mean of N numbers in [0, 1].
CLOSE = 5 * 0.5 / np.sqrt(N)


def check_rows(drawn, n_classes):
    """Check what every profile promises of its rows."""
    assert np.array_equal(drawn.y_true == drawn.y_pred, drawn.correct)
    assert set(np.unique(drawn.y_true)) == set(np.unique(drawn.y_pred)) == set(range(n_classes))
    assert drawn.confidence.min() >= 0
    assert drawn.confidence.max() <= 1
    assert drawn.correct.mean() == pytest.approx(drawn.chance.mean(), abs=CLOSE)


@pytest.mark.parametrize("kind", RISKS)
def test_the_truth_of_risk_profiles(kind):
    for n_levels in [None, 1, 7, 100]:
        drawn = make_risk_profile(kind, N, n_levels=n_levels, random_state=0)
        check_rows(drawn, 2)
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


#: Share of right answers, and the range of the confidence of right and of wrong ones: arXiv
#: 2505.18622, section 4.2, and for "underconfident" and "perfect" the authors' code.
PUBLISHED_MODELS = {
    "calibrated": (0.9, (0.8, 1.0), (0.5, 0.7)),
    "overconfident": (0.9, (0.9, 1.0), (0.9, 1.0)),
    "underconfident": (0.9, (0.4, 0.6), (0.4, 0.6)),
    "perfect": (1.0, (0.95, 1.0), None),
    "random": (1 / 3, (0.3, 1.0), (0.3, 1.0)),
}


@pytest.mark.parametrize("kind", PUBLISHED_MODELS)
def test_models_draw_the_published_ranges(kind):
    share, *ranges = PUBLISHED_MODELS[kind]
    drawn = make_model_profile(kind, N, random_state=0)
    check_rows(drawn, 3)
    assert np.all(drawn.chance == share)
    for rows, limits in zip([drawn.correct, ~drawn.correct], ranges, strict=True):
        if limits is None:
            assert not rows.any()
            continue
        low, high = limits
        found = stats.kstest(drawn.confidence[rows], "uniform", args=(low, high - low))
        assert found.pvalue > 1e-4


def test_the_perfect_model_of_the_text_is_certain():
    drawn = make_model_profile("perfect_certain", 100, random_state=0)
    assert set(MODELS) == {*PUBLISHED_MODELS, "perfect_certain"}
    assert drawn.correct.all()
    assert np.all(drawn.confidence == 1)


#: Distributions of the confidence: arXiv 2605.01796, table 4.
PUBLISHED_LAWS = {
    "uniform": stats.uniform().cdf,
    "skew_high": stats.beta(3, 0.5).cdf,
    "skew_low": stats.beta(0.5, 3).cdf,
    "bimodal": lambda c: (stats.beta(3, 0.5).cdf(c) + stats.beta(0.5, 3).cdf(c)) / 2,
    "tight_high": stats.uniform(0.8, 0.2).cdf,
    "tight_low": stats.uniform(0, 0.2).cdf,
    "normal": stats.truncnorm(-7, 3, loc=0.7, scale=0.1).cdf,
    "log_uniform_low": stats.loguniform(1e-4, 1 - 1e-6).cdf,
    "log_uniform_high": lambda c: stats.loguniform(1e-6, 0.9).sf(1 - c),
    "bell": stats.beta(5, 5).cdf,
}
#: The least and the largest chance of being right at a confidence: the same table.
PUBLISHED_MODES = {
    "random": lambda c: (0.5 + 0 * c, 0.5 + 0 * c),
    "perfect": lambda c: (c, c),
    "underconfident_linear": lambda c: (0.2 + 0.8 * c, 0.2 + 0.8 * c),
    "underconfident_sqrt": lambda c: (c**0.5, c**0.5),
    "underconfident_random": lambda c: (c, 1 + 0 * c),
    "overconfident_sqrt": lambda c: (1 - (1 - c) ** 0.5, 1 - (1 - c) ** 0.5),
    "overconfident_half": lambda c: (c / 2, c / 2),
    "overconfident_random": lambda c: (0 * c, c),
}


@pytest.mark.parametrize("law", LAWS)
def test_laws_are_the_published_ones(law):
    drawn = make_calibration_profile(law, "perfect", N, random_state=0)
    assert stats.kstest(drawn.confidence, PUBLISHED_LAWS[law]).pvalue > 1e-4


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mode", MODES)
def test_modes_are_the_published_ones(law, mode):
    drawn = make_calibration_profile(law, mode, 10_000, random_state=0)
    assert drawn.correct.mean() == pytest.approx(drawn.chance.mean(), abs=CLOSE * np.sqrt(10))
    least, largest = PUBLISHED_MODES[mode](drawn.confidence)
    if mode.endswith("_random"):
        place = (drawn.chance - least) / (largest - least)
        assert stats.kstest(place, "uniform").pvalue > 1e-4
    else:
        np.testing.assert_allclose(drawn.chance, least, rtol=1e-15, atol=1e-15)
        assert np.array_equal(least, largest)


def test_calibration_profiles_have_two_classes():
    check_rows(make_calibration_profile("bell", "random", N, random_state=0), 2)


@pytest.mark.parametrize("make", [make_calibration_profile, make_model_profile, make_risk_profile])
def test_a_seed_fixes_all_rows(make):
    first, again, other = (make(n_samples=50, random_state=seed) for seed in (7, 7, 8))
    for name in ("confidence", "chance", "correct", "y_true", "y_pred"):
        assert first[name].shape == (50,)
        np.testing.assert_array_equal(first[name], again[name])
    assert not np.array_equal(first.confidence, other.confidence)


@pytest.mark.parametrize(
    ("make", "argument", "value"),
    [
        (make_risk_profile, "kind", "none"),
        (make_risk_profile, "n_samples", 0),
        (make_risk_profile, "n_levels", 0),
        (make_model_profile, "kind", "none"),
        (make_model_profile, "n_samples", 0),
        (make_calibration_profile, "law", "none"),
        (make_calibration_profile, "mode", "none"),
        (make_calibration_profile, "n_samples", 0),
    ],
)
def test_refusals(make, argument, value):
    check_refused(argument, lambda: make(**{argument: value}))
