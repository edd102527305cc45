"""Arrays of other libraries give the numbers of numpy's, bit by bit."""

import itertools

import numpy as np
import pytest

import skselect as sk
from skselect.metrics._evaluate import SPECS

REQUIRED = {
    "risk_at_coverage": {"coverage": 0.5}, "coverage_at_risk": {"max_risk": 0.1},
    "review_rate_at_reliability": {"reliability": 0.95},
}  # fmt: skip


def as_strict(array):
    return pytest.importorskip("array_api_strict").asarray(array)


def as_torch(array):
    torch = pytest.importorskip("torch", exc_type=ImportError)
    return torch.tensor(array, requires_grad=array.dtype.kind == "f")


@pytest.fixture
def predictions(rng):
    proba = rng.dirichlet(np.ones(3), 200)
    return rng.integers(0, 3, 200), proba


@pytest.mark.parametrize("convert", [as_strict, as_torch])
def test_every_metric_of_the_curve(convert, predictions):
    names = [n for n, spec in SPECS.items() if spec.needs == "curve"]
    for dtype, name in itertools.product([np.float32, np.float64], names):
        y, proba = predictions
        proba, weight = proba.astype(dtype), np.linspace(0.5, 2.0, len(y))
        function, more = SPECS[name].function, REQUIRED.get(name, {})
        assert function(convert(y), convert(proba), **more) == function(y, proba, **more)
        found = function(convert(y), convert(proba), sample_weight=convert(weight), **more)
        assert found == function(y, proba, sample_weight=weight, **more), name


@pytest.mark.parametrize("convert", [as_strict, as_torch])
def test_outcomes_curves_states_and_probabilities_of_one_class(convert, rng):
    confidence, loss = rng.random(100), (rng.random(100) < 0.3).astype(float)
    expected = sk.RiskCoverageCurve.from_outcomes(sk.Outcomes(loss, confidence)).to_frame()
    found = sk.RiskCoverageCurve.from_outcomes(sk.Outcomes(convert(loss), convert(confidence)))
    assert found.to_frame().equals(expected)
    state = sk.SelectiveState().update_confidence(convert(confidence), convert(loss))
    assert state.finalize().to_frame().equals(expected)
    y = (rng.random(100) < confidence).astype(int)
    found = sk.metrics.aurc_score(convert(y), convert(confidence))
    assert found == sk.metrics.aurc_score(y, confidence)


def test_a_tensor_that_numpy_cannot_hold_is_named():
    torch = pytest.importorskip("torch", exc_type=ImportError)
    with pytest.raises(ValueError, match="confidence"):
        sk.SelectiveState().update_confidence(torch.tensor([0.5]).bfloat16(), [0])


@pytest.mark.parametrize("batch", [False, True], ids=["table", "record batch"])
def test_a_table_of_arrow_is_read_by_its_names(batch, rng):
    arrow = pytest.importorskip("pyarrow")
    y = rng.integers(0, 2, 100)
    proba = np.clip(rng.dirichlet([1, 1], 100), 0.01, 0.99)

    def table(**more):
        # The second class first, as only names can tell.
        made = arrow.table({"1": proba[:, 1], "0": proba[:, 0], **more})
        return made.to_batches()[0] if batch else made

    assert sk.metrics.aurc_score(y, table()) == sk.metrics.aurc_score(y, proba)
    assert sk.SelectiveState().update(y, table()).n_errors == np.sum(proba.argmax(axis=1) != y)
    policy = sk.AbstentionPolicy(classes=np.array([0, 1]), threshold=0.8)
    assert policy.decide(table()).equals(policy.decide(proba))
    answers = sk.PrecomputedClassifier([0, 1], columns=["0", "1"])
    assert np.array_equal(answers.predict_proba(table()), proba)
    if batch:  # scikit-learn takes no rows of it
        return
    tuner = sk.ThresholdTuner(
        sk.SelectiveClassifier(answers, abstain_label=-1),
        objective="coverage",
        target=0.5,
        delta=0.2,
        group_by="site",
    ).fit(table(site=["a", "b"] * 50), y)
    assert sorted(tuner.thresholds_) == ["a", "b"]
