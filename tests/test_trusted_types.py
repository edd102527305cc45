"""What skops stores of fitted estimators is on the list of types to trust, and loads."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import skselect as sk
from skselect.policy import Subgroups
from skselect.thresholds import Combined, FixedSequence, Shortlist

pytestmark = pytest.mark.filterwarnings("ignore:min_coverage=0.5 binds")
skops = pytest.importorskip("skops.io", reason="skops comes with the extra dev")

CALIBRATIONS = ["temperature", "platt", "beta", "smooth_isotonic", "venn_abers", "isotonic"]
SCOPES = ["probabilities", "confidence"]
OBJECTIVES = [
    sk.Best("cwsa"), sk.Coverage(0.3), sk.GeneralizedRisk(0.2), sk.Risk(0.2, method="mean"),
    sk.Risk(0.3), sk.Risk(0.3, method=FixedSequence()),
    sk.Risk(0.3, method=Combined(start=1.0)), sk.Cost(0.3),
]  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    X, y = make_blobs(900, centers=3, cluster_std=2.0, random_state=0)
    table = pd.DataFrame(X, columns=["a", "b"])
    return table.assign(site=np.arange(len(X)) % 2), np.array(["x", "y", "z"])[y]


def check_stored(model, X):
    stored = skops.dumps(model)
    assert set(skops.get_untrusted_types(data=stored)) <= set(sk.TRUSTED_TYPES)
    loaded = skops.loads(stored, trusted=sk.TRUSTED_TYPES)
    pd.testing.assert_frame_equal(loaded.decide(X), model.decide(X))
    return loaded


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("calibration_scope", SCOPES)
def test_each_calibration(rows, calibration, calibration_scope):
    options = {"calibration": calibration, "calibration_scope": calibration_scope}
    model = sk.SelectiveClassifier(GaussianNB(), threshold=0.6, **options)
    check_stored(model.fit(*rows), rows[0])


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_each_objective(rows, objective):
    tuner = sk.ThresholdTuner(GaussianNB(), objective, on_infeasible="abstain", random_state=0)
    loaded = check_stored(tuner.fit(*rows), rows[0])
    assert loaded.policy_.to_json() == tuner.policy_.to_json()


def test_every_part_of_a_tuner(rows):
    X, y = rows
    kinds = {"on_infeasible": "abstain", "random_state": 0}
    models = [("cheap", GaussianNB()), ("strong", LogisticRegression())]
    learned = sk.LearnedConfidence(auxiliary=[LogisticRegression()])
    for tuner in [
        sk.ThresholdTuner(GaussianNB(), "risk", target=0.3, group_by=Subgroups("site"), **kinds),
        sk.ThresholdTuner(GaussianNB(), "risk", target=0.15, shortlist=Shortlist(0.8), **kinds),
        sk.ThresholdTuner(sk.SelectiveClassifier(GaussianNB(), confidence=learned), **kinds),
        sk.ThresholdTuner(
            sk.CascadeClassifier(models, random_state=0), "risk", target=0.3, **kinds
        ),
    ]:
        check_stored(tuner.fit(X, y), X)


def test_stored_probabilities(rows):
    X, y = rows
    proba = GaussianNB().fit(X, y).predict_proba(X)
    model = sk.PrecomputedClassifier(np.unique(y))
    check_stored(sk.ThresholdTuner(model, sk.Risk(0.3), random_state=0).fit(proba, y), proba)
