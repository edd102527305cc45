"""Calibrators as objects: built-in ones with options, and one of the user's own."""

import dataclasses

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

from skselect import AbstentionPolicy, SelectiveClassifier
from skselect.calibration import PlattCalibrator, TemperatureCalibrator
from skselect.calibration._calibrators import CALIBRATORS
from tests.calibration.cases import calibrated, table
from tests.common import check_schema


class Halfway(BaseEstimator):
    """Half the score, half the base rate."""

    def __init__(self, share=0.5):
        self.share = share

    def fit(self, score, y, sample_weight=None):
        self.rate_ = np.average(y, weights=sample_weight)
        return self

    def predict(self, score):
        return (1 - self.share) * score + self.share * self.rate_


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_a_missing_score_has_no_probability(kind):
    calibrator = CALIBRATORS[kind]().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    assert np.isnan(calibrator.predict(np.array([0.5, np.nan, 0.2]))).tolist() == [0, 1, 0]
    if hasattr(calibrator, "predict_interval"):
        assert np.isnan(calibrator.predict_interval([0.5, np.nan])).tolist() == [[0, 1]] * 2


@pytest.mark.parametrize("kind", [*CALIBRATORS, "sigmoid"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_object_is_the_same_as_its_name(kind, n_classes):
    X, y = table(n_classes)
    name = "platt" if kind == "sigmoid" else kind  # scikit-learn's word
    named, built = calibrated(kind, X, y), calibrated(CALIBRATORS[name](), X, y)
    np.testing.assert_array_equal(built.predict_proba(X), named.predict_proba(X))
    assert built.calibration_.kind == named.calibration_.kind == name


def test_options_of_an_object_count_and_can_be_searched():
    X, y = table(2)
    plain = calibrated(PlattCalibrator(safeguard=False), X, y)
    assert plain.calibration_.maps[0].share_ == 0.0
    search = GridSearchCV(
        SelectiveClassifier(GaussianNB(), calibration=TemperatureCalibrator()),
        {"calibration__safeguard": [True, False]}, scoring="neg_log_loss", cv=2,
    ).fit(X, y)  # fmt: skip
    assert len(search.cv_results_["params"]) == 2


def test_a_calibrator_of_your_own_gets_the_probabilities():
    X, y = table(2)
    model = calibrated(Halfway(), X, y)
    raw = GaussianNB().fit(X, y).predict_proba(X)
    shares = np.array([1 - y.mean(), y.mean()])
    np.testing.assert_allclose(model.predict_proba(X), 0.5 * raw + 0.5 * shares)
    assert model.calibration_.kind == "external:Halfway"
    X, y = table(3)
    own = calibrated(IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1), X, y)
    ours = calibrated("isotonic", X, y)
    np.testing.assert_allclose(own.predict_proba(X), ours.predict_proba(X), atol=1e-12)


def test_it_is_saved_by_name_only_and_on_demand():
    X, y = table(2)
    model = calibrated(Halfway(), X, y, threshold=0.7)
    policy = AbstentionPolicy(
        classes=model.classes_, threshold=0.7, calibration=model.calibration_, abstain_label=-1
    )
    with pytest.raises(ValueError, match=r"Halfway is a calibrator of your own.*allow_external"):
        policy.to_json()
    text = policy.to_json(allow_external=True)
    check_schema(text)
    restored = AbstentionPolicy.from_json(text)
    with pytest.raises(ValueError, match=r"cannot hold it; hand .* dataclasses\.replace"):
        restored.decide([[0.1, 0.9]])
    again = dataclasses.replace(restored, calibration=model.calibration_)
    assert again.decide([[0.1, 0.9]]).equals(policy.decide([[0.1, 0.9]]))


@pytest.mark.parametrize("calibration", ["hope", 3, PlattCalibrator, object()])
def test_what_is_no_calibrator_is_refused(calibration):
    X, y = table(2)
    with pytest.raises(ValueError, match="calibration must be one of"):
        calibrated(calibration, X, y)


class Unweighted(BaseEstimator):
    """A calibrator whose fit takes no weights."""

    def fit(self, score, y):
        return self

    def predict(self, score):
        return score


class Bare:
    """Not a scikit-learn estimator."""

    def fit(self, score, y, sample_weight=None):
        return self

    def predict(self, score):
        return score


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (LogisticRegression(), r"LogisticRegression.fit.* failed on a vector of 240 scores"),
        (Unweighted(), r"Unweighted.fit must take \(score, y, sample_weight\)"),
        (Bare(), "or a calibrator: a scikit-learn estimator object"),
        (True, "or a calibrator: a scikit-learn estimator object"),
    ],
)
def test_what_a_calibrator_of_yours_lacks_is_named(own, message):
    X, y = table(2)
    for scope in ("probabilities", "confidence"):
        with pytest.raises(ValueError, match=message):
            calibrated(own, X, y, calibration_scope=scope)


@pytest.mark.parametrize("kind", ["temperature", "platt", "smooth_isotonic"])
def test_weights_that_shrink_the_maps_of_many_classes_warn_once(kind):
    X, y = table(3)
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    with pytest.warns(UserWarning, match="sample_weight sums to") as caught:
        SelectiveClassifier(frozen, calibration=kind).fit(X, y, sample_weight=np.full(240, 0.01))
    assert len(caught) == 1
