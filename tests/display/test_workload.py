"""Deferrals at each risk target against a look at every threshold."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skselect import Outcomes, RiskCoverageCurve, SelectiveClassifier
from skselect.display import WorkloadDisplay
from skselect.thresholds import simultaneous_band


@pytest.fixture
def curve(rng):
    confidence = rng.uniform(0.5, 1, 3000).round(2)
    return RiskCoverageCurve.from_outcomes(
        Outcomes(rng.random(3000) < (1 - confidence) / 3, confidence)
    )


def _least_deferred(curve, risk, target):
    """Return the fewest deferrals per 1,000 of all thresholds that meet a target."""
    kept = [q for q, r in zip(curve.coverage, risk, strict=True) if r <= target + 1e-12]
    return 1000 * (1 - max(kept, default=0))


def test_each_point_is_the_cheapest_threshold(curve):
    x, y = WorkloadDisplay(curve).plot().line_.get_xydata().T
    assert x[0] == 0
    for target, deferred in list(zip(x, y, strict=True))[::37]:
        expected = _least_deferred(curve, curve.selective_risk, target)
        assert deferred == pytest.approx(expected, abs=1e-9)
        assert deferred == pytest.approx(1000 * (1 - curve.coverage_at_risk(target)))
    assert y[-1] == 0


def test_the_bound_is_that_of_all_thresholds_at_once(curve):
    display = WorkloadDisplay(curve, confidence_level=0.9).plot()
    (bound,) = [line for line in display.ax_.lines if line.get_label() == "with 90 % confidence"]
    band = simultaneous_band(curve, 0.1)
    for target, deferred in bound.get_xydata()[::37]:
        assert deferred == pytest.approx(_least_deferred(curve, band, target))
        assert deferred >= _least_deferred(curve, curve.selective_risk, target)


def test_a_threshold_is_marked(curve):
    display = WorkloadDisplay(curve, threshold=0.8).plot()
    ((x, y),) = display.ax_.lines[-1].get_xydata()
    outcomes = curve.to_outcomes()
    kept = outcomes.confidence >= 0.8
    weight = outcomes.sample_weight
    assert y == pytest.approx(1000 * (1 - weight[kept].sum() / weight.sum()))
    assert x == pytest.approx(np.average(outcomes.loss[kept], weights=weight[kept]))
    labels = WorkloadDisplay(curve, threshold=2).plot().ax_.get_legend_handles_labels()[1]
    assert labels == ["accepts nothing"]


def test_from_estimator_and_several_models(rng):
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    model = SelectiveClassifier(LogisticRegression(), threshold=0.7).fit(X, y)
    display = WorkloadDisplay.from_estimator(model, X, y)
    assert display.threshold == 0.7
    p = model.predict_proba(X)[:, 1]
    both = WorkloadDisplay.from_models(y, {"one": p, "$two$": 1 - p})
    assert both["one"].ax_ is both["$two$"].ax_
    assert both["one"].ax_.get_legend_handles_labels()[1] == ["one", r"\$two\$"]


def test_weights_count_rows(drawn, rng):
    y, p = drawn
    weight = rng.integers(0, 4, len(y))
    one = WorkloadDisplay.from_predictions(y, p, sample_weight=weight)
    two = WorkloadDisplay.from_predictions(np.repeat(y, weight), np.repeat(p, weight))
    np.testing.assert_allclose(one.line_.get_xydata(), two.line_.get_xydata(), atol=1e-9)
    with pytest.raises(ValueError, match="unweighted"):
        WorkloadDisplay.from_predictions(y, p, sample_weight=weight, confidence_level=0.95)


@pytest.mark.parametrize("loss", [[0.0, 0.0], [1.0, 1.0]])
def test_no_errors_and_nothing_else(loss):
    curve = RiskCoverageCurve.from_outcomes(Outcomes(loss, [0.6, 0.9]))
    x, y = WorkloadDisplay(curve, confidence_level=0.95).plot().line_.get_xydata().T
    np.testing.assert_array_equal(y, np.where(x >= loss[0], 0, 1000))


def test_refusals(drawn):
    for options in ({"confidence_level": 95}, {"confidence_level": 0.4}):
        with pytest.raises(ValueError, match="confidence_level"):
            WorkloadDisplay.from_predictions(*drawn, **options)
    with pytest.raises(ValueError, match="threshold"):
        WorkloadDisplay.from_predictions(*drawn, threshold="high")
