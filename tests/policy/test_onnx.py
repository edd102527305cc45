"""A model that runs in onnxruntime, as the how-to shows it: the same decisions."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skselect import PrecomputedClassifier, SelectiveClassifier, ThresholdTuner

for package in ("onnxruntime", "skl2onnx"):
    pytest.importorskip(package, reason='needs `pip install -e ".[onnx]"`')

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "deployment.md"
CODE = re.search(r"(?s)## A model in ONNX.*?```python\n(.*?)```", GUIDE.read_text()).group(1)


@pytest.fixture(scope="module", params=["linear", "forest"])
def served(request):
    """Return what the code of the how-to leaves behind, for a linear model and a forest."""
    X, y = load_digits(return_X_y=True, as_frame=True)
    X_known, X_new, y_known, _ = train_test_split(X, y, test_size=0.3, random_state=0)
    models = {
        "linear": make_pipeline(StandardScaler(), LogisticRegression()),
        "forest": RandomForestClassifier(20, max_depth=6, random_state=0),
    }
    model = SelectiveClassifier(models[request.param], calibration="temperature")
    tuner = ThresholdTuner(model, objective="risk", target=0.05, cv=0.5, random_state=0)
    tuner.fit(X_known, y_known)
    names = {"classifier": tuner.estimator_.estimator_, "policy": tuner.policy_, "np": np}
    names |= {"X_known": X_known, "X_new": X_new}
    exec(CODE, names)

    def raw_scores(X):
        return names["session"].run(["probabilities"], {"X": X.to_numpy(np.float32)})[0]

    return names | {"tuner": tuner, "y_known": y_known, "raw_scores": raw_scores}


def test_the_decisions_are_those_of_scikit_learn(served):
    decided, tuner = served["decided"], served["tuner"]
    expected = tuner.policy_.decide_arrays(tuner.raw_scores(served["X_new"]))
    assert served["raw_scores"](served["X_new"]).dtype == np.float32
    np.testing.assert_allclose(decided["confidence"], expected["confidence"], rtol=0, atol=1e-4)
    clear = np.abs(expected["confidence"] - tuner.threshold_) > 1e-4
    assert np.mean(clear) > 0.99
    for name in ("label", "suggestion", "accepted"):
        np.testing.assert_array_equal(decided[name][clear], expected[name][clear])


def test_one_row_is_decided_as_among_others(served):
    raw = served["raw_scores"](served["X_new"])
    for row in range(0, len(raw), 60):
        alone = served["policy"].decide_arrays(raw[[row]])
        for name, column in alone.items():
            assert column[0] == served["decided"][name][row]


def test_a_threshold_for_what_runs(served):
    """The probabilities of the session choose the threshold: nothing is left to rounding."""
    raw = served["raw_scores"](served["X_known"])
    model = SelectiveClassifier(PrecomputedClassifier(range(10)), calibration="temperature")
    tuner = ThresholdTuner(model, target=0.05, objective="risk", random_state=0)
    tuner.fit(raw, served["y_known"])
    new = served["raw_scores"](served["X_new"])
    answers = tuner.policy_.decide_arrays(new)["label"]
    np.testing.assert_array_equal(tuner.predict(new), [-1 if x is None else x for x in answers])
