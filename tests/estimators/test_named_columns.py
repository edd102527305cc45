"""What a classifier returns as a table is matched with its classes by name, wherever it stands."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skselect import (
    CascadeClassifier,
    LearnedConfidence,
    SelectiveClassifier,
    ThresholdTuner,
)
from skselect.scoring import get_scorer, on_accepted
from tests.refusals import check_refused


class Named(LogisticRegression):
    """A classifier whose tables have the classes in another order."""

    def predict_proba(self, X):
        return self._name(super().predict_proba(X))

    def _name(self, table):
        return pd.DataFrame(table[:, ::-1], columns=self.classes_[::-1])


class NamedInPolars(Named):
    def _name(self, table):
        return pl.DataFrame(table[:, ::-1], schema=[str(label) for label in self.classes_[::-1]])


class NamedValues(LogisticRegression):
    """The same for decision values, without probabilities."""

    @property
    def predict_proba(self):
        raise AttributeError("predict_proba")

    def decision_function(self, X):
        return pd.DataFrame(super().decision_function(X)[:, ::-1], columns=self.classes_[::-1])

    def predict(self, X):
        return self.classes_[LogisticRegression.decision_function(self, X).argmax(axis=1)]


class PlainValues(NamedValues):
    def decision_function(self, X):
        return LogisticRegression.decision_function(self, X)


class Unnamed(Named):
    def _name(self, table):
        return pd.DataFrame(table).add_prefix("p")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 400)
    X = rng.normal(size=(400, 3))
    X[:, 0] += codes
    return X, codes


def _plain(model):
    return SelectiveClassifier(model, threshold=0.7)


def _calibrated(model):
    return SelectiveClassifier(model, calibration="platt", threshold=0.7, random_state=0)


def _tuned(model):
    return ThresholdTuner(model, "risk", target=0.4, random_state=0)


def _staged(model):
    stages = [("first", model), ("second", make_pipeline(StandardScaler(), model))]
    return SelectiveClassifier(CascadeClassifier(stages, max_loss=0.2, random_state=0))


def _auxiliary(model):
    learned = LearnedConfidence(auxiliary={"other": model}, guard=False)
    return SelectiveClassifier(GaussianNB(), confidence=learned, random_state=0)


def _learner(model):
    learned = LearnedConfidence(auxiliary=[GaussianNB()], estimator=model, guard=False)
    return SelectiveClassifier(GaussianNB(), confidence=learned, random_state=0)


PLACES = [_plain, _calibrated, _tuned, _staged, _auxiliary, _learner]


@pytest.mark.parametrize("labels", [[0, 1, 2], ["b", "a", "c"]])
@pytest.mark.parametrize("named", [Named, NamedInPolars])
@pytest.mark.parametrize("place", PLACES)
def test_estimators_read_columns_by_name(place, named, labels, rows):
    X, codes = rows
    y = np.array(labels)[codes]
    found = place(named()).fit(X, y).decide(X)
    expected = place(LogisticRegression()).fit(X, y).decide(X)
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize("calibration", ["temperature", "platt"])
def test_decision_values_are_read_by_name(calibration, rows):
    options = {"calibration": calibration, "random_state": 0}
    found = SelectiveClassifier(NamedValues(), **options).fit(*rows)
    expected = SelectiveClassifier(PlainValues(), **options).fit(*rows)
    np.testing.assert_array_equal(found.predict_proba(rows[0]), expected.predict_proba(rows[0]))


def test_decision_values_pass_through_by_name(rows):
    class Both(LogisticRegression):
        def decision_function(self, X):
            values = super().decision_function(X)
            return pd.DataFrame(values[:, ::-1], columns=self.classes_[::-1])

        def predict(self, X):
            return self.classes_[LogisticRegression.decision_function(self, X).argmax(axis=1)]

    model = Both().fit(*rows)
    values = SelectiveClassifier(FrozenEstimator(model)).decision_function(rows[0])
    np.testing.assert_array_equal(
        values, LogisticRegression().fit(*rows).decision_function(rows[0])
    )


@pytest.mark.parametrize("named", [Named, NamedInPolars])
@pytest.mark.parametrize("scorer", ["neg_augrc", "neg_ece", "coverage", on_accepted("accuracy")])
def test_scorers_read_columns_by_name(scorer, named, rows):
    score = get_scorer(scorer) if isinstance(scorer, str) else scorer
    expected = score(LogisticRegression().fit(*rows), *rows)
    assert score(named().fit(*rows), *rows) == expected


def test_names_that_are_no_classes_are_refused(rows):
    check_refused("predict_proba(X)", SelectiveClassifier(Unnamed()).fit, *rows)
    check_refused("predict_proba(X)", get_scorer("neg_augrc"), Unnamed().fit(*rows), *rows)
