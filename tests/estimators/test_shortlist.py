"""Shortlists of ThresholdTuner: when they are exact, and what the fitted object offers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from skselect import AbstentionPolicy, Best, Cost, Risk, SelectiveClassifier, ThresholdTuner
from skselect._lib.notebook import unwrap
from skselect.estimators.out_of_fold import holdout
from skselect.thresholds import Shortlist
from tests.refusals import check_refused


@pytest.fixture(scope="module")
def data():
    X, codes = make_classification(
        1500, 6, n_informative=5, n_redundant=0, n_classes=4, n_clusters_per_class=1,
        class_sep=1.2, random_state=0,
    )  # fmt: skip
    return X, np.array(["cow", "cat", "dog", "bee"])[codes]


def tune(X, y, estimator=None, **options):
    options = {"objective": "risk", "target": 0.15, "shortlist": 0.9, "random_state": 0} | options
    estimator = GaussianNB() if estimator is None else estimator
    return ThresholdTuner(estimator, **options).fit(X, y)


APART = Shortlist(0.9, share=0.5)


BARE = {"target": None, "cv": 0.5, "refit": False}


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        ({}, ["these rows also chose the threshold"]),
        ({"shortlist": APART}, []),
        ({"shortlist": APART, "cv": 0.5, "refit": True}, ["fitted again on all rows"]),
        ({"shortlist": APART, "cv": 3}, ["out-of-fold predictions"]),
        ({"cv": 3}, ["these rows also chose the threshold", "out-of-fold predictions"]),
        ({"objective": Risk(0.15, max_analyses=2), "target": None, "shortlist": APART},
         ["several analyses"]),
        (BARE | {"objective": "selective_accuracy", "shortlist": APART}, []),
        # Rows set apart for a metric are held out by default too.
        ({"objective": Best(min_coverage=0.0), "target": None, "shortlist": APART}, []),
        (BARE | {"objective": Cost(0.15, method="chow")}, []),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:min_coverage")
def test_it_says_whether_it_is_exact(data, options, reasons):
    tuner = tune(*data, **options)
    for text, reason in zip(tuner.policy_.shortlist.caveats, reasons, strict=True):
        assert reason in text
    text = str(tuner.policy_.shortlist)
    for shown in (tuner.selection_, tuner.policy_):
        assert text in unwrap(str(shown))
    if tuner.certificate_ is not None:
        assert tuner.certificate_.shortlist == text


def test_fresh_rows_of_a_frozen_classifier_are_exact_and_its_own_are_not(data):
    X, y = data
    fitted = SelectiveClassifier(GaussianNB(), calibration="temperature").fit(X[:600], y[:600])
    fresh = tune(X[600:], y[600:], FrozenEstimator(fitted), shortlist=APART)
    assert fresh.policy_.shortlist.is_exact
    for goal in ({"objective": "coverage", "target": 0.5}, {"objective": "cost", "target": 0.1}):
        with pytest.warns(
            UserWarning, match="600 of 600 recognisable rows also trained the classifier"
        ):
            own = tune(X[:600], y[:600], FrozenEstimator(fitted), shortlist=APART, **goal)
        assert "also trained the classifier" in own.policy_.shortlist.caveats[0]


@pytest.mark.parametrize(
    "estimator",
    [
        SelectiveClassifier(GaussianNB(), calibration="isotonic", confidence="margin"),
        SelectiveClassifier(GaussianNB(), calibration="platt", calibration_scope="confidence"),
        SelectiveClassifier(LinearSVC(), calibration="temperature"),
        SelectiveClassifier(
            GaussianNB(), decision="min_cost", cost_matrix=np.ones((4, 4)) - np.eye(4)
        ),
    ],
)
def test_the_list_is_of_the_probabilities_that_the_policy_works_on(data, estimator):
    X, y = data
    tuner = tune(X, y, estimator, objective="coverage", target=0.5, shortlist=APART)
    decided = tuner.decide(X[:200])
    served = AbstentionPolicy.from_json(tuner.policy_.to_json())
    pd.testing.assert_frame_equal(served.decide(tuner.raw_scores(X[:200])), decided)
    proba, least = tuner.predict_proba(X[:200]), tuner.policy_.shortlist.least_proba
    for row, names in zip(proba, decided["shortlist"], strict=True):
        if names is not pd.NA:
            expected = {c for c, p in zip(tuner.classes_, row, strict=True) if p >= least}
            assert set(names) == expected
    assert decided["shortlist"].isna().tolist() == decided["accepted"].tolist()


def test_rows_set_apart_choose_no_threshold(data):
    X, y = data
    frozen = FrozenEstimator(GaussianNB().fit(X[:500], y[:500]))
    X, y = X[500:], y[500:]
    asked = Shortlist(0.9, share=0.4, random_state=0)
    tuner = tune(X, y, frozen, shortlist=asked)
    apart = asked.set_apart(1000)
    alone = tune(X[~apart], y[~apart], frozen, shortlist=None)
    assert tuner.threshold_ == alone.threshold_
    assert tuner.certificate_.n == alone.certificate_.n == 600
    codes = np.searchsorted(tuner.classes_, y)
    proba = frozen.predict_proba(X)
    deferred = apart & (proba.max(axis=1) < tuner.threshold_)
    of_truth = np.sort(proba[deferred, codes[deferred]])
    n = len(of_truth)
    rank = int(np.floor(round((n + 1) * 0.1, 9)))
    assert tuner.policy_.shortlist.least_proba == of_truth[rank - 1]
    assert tuner.policy_.shortlist.n == n
    assert sum(tuner.cv_results_["n_rows"]) == 1000


@pytest.mark.parametrize("group_by", ["site", "predicted_class", lambda X: X["site"]])
def test_subgroups_share_one_list(data, group_by):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(site=np.arange(len(X)) % 2)
    tuner = tune(frame, y, objective="coverage", target=0.5, group_by=group_by, shortlist=APART)
    assert tuner.policy_.shortlist.is_exact
    assert str(tuner.policy_).endswith(str(tuner.policy_.shortlist))
    decided = tuner.decide(frame)
    assert decided["shortlist"].isna().tolist() == decided["accepted"].tolist()
    served = AbstentionPolicy.from_json(tuner.policy_.to_json())
    subgroups = None if group_by == "predicted_class" else frame["site"]
    again = served.decide(tuner.raw_scores(frame), subgroups=subgroups)
    pd.testing.assert_frame_equal(again, decided)


def test_a_class_that_the_kept_classifier_does_not_know_is_on_no_list(data):
    X, y = data
    _, held_out = holdout(0.4, len(y), None, 0)
    goal = {"objective": "coverage", "target": 0.5}
    unknown = pytest.warns(UserWarning, match="belong to the classes")

    def with_yaks(n, labels=y):
        return np.where(np.isin(np.arange(len(y)), held_out[:n]), "yak", labels)

    known = tune(X, y, **goal)
    with unknown:
        tuner = tune(X, with_yaks(12), **goal)
    assert "yak" not in tuner.classes_
    assert tuner.policy_.shortlist.least_proba < known.policy_.shortlist.least_proba
    for labels, message in [
        (with_yaks(200), r"more than 10 % of the deferred rows is unknown"),
        # The classifier knows two classes of three.
        (with_yaks(12, np.where(y == "cow", "cow", "cat")), "or more classes, and there are 2"),
    ]:
        with unknown, pytest.raises(ValueError, match=message):
            tune(X, labels, **goal)


def test_what_cannot_be_listed_is_refused_before_anything_is_trained(data):
    X, y = data

    class Untrainable(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("trained")

    two, weight = np.where(y == "cow", "cow", "other"), np.arange(1, 1501)
    weighed = ThresholdTuner(Untrainable(), shortlist=0.9)
    check_refused("three or more classes", lambda: tune(X, two, Untrainable()))
    check_refused("sample_weight", lambda: weighed.fit(X, y, sample_weight=weight))
    check_refused("shortlist", lambda: tune(X, y, Untrainable(), shortlist="often"))
