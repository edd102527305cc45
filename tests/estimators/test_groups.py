"""Groups of dependent rows stay together in every fold, however deep, or fit refuses."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedGroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skselect import (
    CascadeClassifier,
    LearnedConfidence,
    SelectiveClassifier,
    ThresholdTuner,
    calibration_report,
)
from tests.common import mostly_slow
from tests.refusals import check_refused

#: Rows whose group a model knew when it was asked about them, though it was not trained on them.
LEAKS = []


class Spy(GaussianNB):
    """A classifier that remembers whom it was trained on; X holds the group and the row."""

    def fit(self, X, y, sample_weight=None):
        self.trained_groups_ = set(X[:, 0].tolist())
        self.trained_rows_ = set(X[:, 1].tolist())
        return super().fit(X[:, 2:], y, sample_weight)

    def predict_proba(self, X):
        LEAKS.extend(
            row
            for group, row in zip(X[:, 0].tolist(), X[:, 1].tolist(), strict=True)
            if row not in self.trained_rows_ and group in self.trained_groups_
        )
        return super().predict_proba(X[:, 2:])

    def predict(self, X):
        return self.classes_[GaussianNB.predict_proba(self, X[:, 2:]).argmax(axis=1)]


def _cascade():
    stages = [("first", Spy()), ("second", Spy(var_smoothing=1e-3))]
    return CascadeClassifier(stages, max_loss=0.2, cv=2)


def _calibrated(inside=None):
    return SelectiveClassifier(inside or Spy(), calibration="temperature", cv=2)


def _learned(**options):
    return SelectiveClassifier(Spy(), confidence=LearnedConfidence(guard=False, **options), cv=2)


def _piped(inside):
    return make_pipeline(FunctionTransformer(), inside)


def _searched(inside, cv):
    return GridSearchCV(inside, {}, cv=cv, scoring="neg_log_loss")


#: Estimators that make folds, each by name; inside another they are reached by routing alone.
MAKERS = {
    "cascade": _cascade,
    "calibrated": _calibrated,
    "calibrated-piped": lambda: _piped(_calibrated()),
    "cascade-piped": lambda: _piped(_cascade()),
    "calibrated-twice": lambda: _calibrated(_calibrated()),
    "learned": lambda: _learned(auxiliary=[Spy()]),
    "searched": lambda: _searched(Spy(), GroupKFold(2)),
    "searched-calibrated": lambda: _searched(_calibrated(), GroupKFold(2)),
    "stage": lambda: CascadeClassifier([("first", _calibrated()), ("second", Spy())], cv=2),
    "scikit-learn": lambda: CalibratedClassifierCV(Spy(), cv=StratifiedGroupKFold(2)),
}
#: What gets the groups, and has another estimator inside.
OUTER = {
    "classifier": SelectiveClassifier,
    "calibrated": _calibrated,
    "folds": lambda inside: ThresholdTuner(inside, "coverage", target=0.3, cv=2),
    "held out": lambda inside: ThresholdTuner(inside, "coverage", target=0.3),
    "tuner of calibrated": lambda inside: ThresholdTuner(
        _calibrated(inside), "coverage", target=0.3
    ),
    "cascade": lambda inside: CascadeClassifier([("first", Spy()), ("second", inside)], cv=2),
    "auxiliary": lambda inside: _learned(auxiliary={"inside": inside}),
}


@pytest.fixture(scope="module")
def rows():
    """Return 40 patients with three visits each, which are nearly the same."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 3)
    codes = rng.integers(0, 2, 40)[groups]
    features = rng.normal(size=(40, 3))[groups] + 0.01 * rng.normal(size=(120, 3))
    features[:, 0] += codes
    order = rng.permutation(120)
    X = np.column_stack([groups, np.arange(120), features])
    return X[order], codes[order], groups[order]


@pytest.fixture(autouse=True)
def _no_leaks():
    LEAKS.clear()


quiet = pytest.mark.filterwarnings("ignore::UserWarning")


@quiet
@pytest.mark.parametrize("maker", [name for name in MAKERS if "piped" not in name])
def test_groups_stay_together_in_the_folds_of_one_estimator(maker, rows):
    X, y, groups = rows
    with sklearn.config_context(enable_metadata_routing=True):
        MAKERS[maker]().fit(X, y, groups=groups)
    assert not LEAKS


#: By default each kind of both stands in some nesting.
NESTINGS = [(maker, outer) for outer in OUTER for maker in MAKERS]
NESTINGS.sort(key=lambda pair: (list(MAKERS).index(pair[0]) - list(OUTER).index(pair[1])) % 3)


@quiet
@pytest.mark.parametrize(("maker", "outer"), mostly_slow(NESTINGS, 24, unpack=True))
def test_groups_reach_every_estimator_inside_or_are_refused(maker, outer, rows):
    X, y, groups = rows
    model = OUTER[outer](MAKERS[maker]())
    if maker in ("calibrated", "learned") and outer in ("folds", "held out"):
        model.fit(X, y, groups=groups)  # a tuner divides the rows of a SelectiveClassifier itself
    else:
        message = check_refused("groups", lambda: model.fit(X, y, groups=groups))
        assert "enable_metadata_routing=True" in message
    assert not LEAKS
    with sklearn.config_context(enable_metadata_routing=True):
        model.fit(X, y, groups=groups)
    assert not LEAKS


@quiet
def test_the_spy_sees_leaks(rows):
    X, y, _ = rows
    SelectiveClassifier(_cascade()).fit(X, y)
    assert LEAKS


def test_what_routing_does_not_reach_is_refused(rows):
    X, y, groups = rows
    inside = [
        SelectiveClassifier(CalibratedClassifierCV(Spy(), cv=3)),
        SelectiveClassifier(_searched(_calibrated(), cv=3)),
        ThresholdTuner(StackingClassifier([("a", Spy())], GaussianNB())),
        ThresholdTuner(_calibrated(_calibrated().set_params(cv=KFold(3)))),
        SelectiveClassifier(make_pipeline(SelectFromModel(LogisticRegressionCV()), Spy())),
        _learned(auxiliary=[Spy()], estimator=LogisticRegressionCV()),
        CascadeClassifier([("first", CalibratedClassifierCV(Spy())), ("second", Spy())]),
    ]
    with sklearn.config_context(enable_metadata_routing=True):
        for model in inside:
            check_refused("groups", lambda model=model: model.fit(X, y, groups=groups))
    check_refused(
        "groups",
        lambda: calibration_report(_cascade(), X, y, groups=groups, calibrations=["platt"]),
    )


@quiet
def test_parts_that_make_no_folds_are_not_refused(rows):
    X, y, groups = rows
    frozen = FrozenEstimator(CalibratedClassifierCV(GaussianNB()).fit(X, y))
    for inside in (SelectiveClassifier(Spy()), frozen):
        ThresholdTuner(inside, "coverage", target=0.3, random_state=0).fit(X, y, groups=groups)


def test_a_step_that_is_told_groups_by_its_name_is_believed(rows):
    X, y, groups = rows
    model = SelectiveClassifier(_piped(_calibrated()))
    model.fit(X, y, groups=groups, selectiveclassifier__groups=groups)
    assert not LEAKS


@pytest.mark.parametrize("missing", [np.nan, None])
@pytest.mark.parametrize(
    "model",
    [_calibrated(), ThresholdTuner(GaussianNB()), _cascade()],
    ids=lambda x: type(x).__name__,
)
def test_groups_without_a_name_are_refused(model, missing, rows):
    X, y, groups = rows
    named = groups.astype(object)
    named[5] = missing
    message = check_refused("groups", lambda: clone(model).fit(X, y, groups=named))
    assert "first in row 5" in message
    check_refused("groups", lambda: clone(model).fit(X, y, groups=groups[:-1]))


# Few groups, few rows ----------------------------------------------------------------------------


@quiet
@pytest.mark.parametrize("cv", ["auto", 5])
@pytest.mark.parametrize("n_groups", [3, 4, 8])
def test_few_groups_make_fewer_folds_and_hold_out_less(n_groups, cv, rows):
    X, y, groups = rows
    sites = groups % n_groups
    spied = np.column_stack([sites, X[:, 1:]])
    for maker in (_calibrated, lambda: _learned(auxiliary=[GaussianNB()])):
        inside = maker().set_params(cv=5)
        tuner = ThresholdTuner(inside, "coverage", target=0.3, cv=cv, random_state=0)
        tuner.fit(spied, y, groups=sites)
        inside.fit(spied, y, groups=sites)
    _cascade().set_params(cv=5).fit(spied, y, groups=sites)
    assert not LEAKS


@pytest.mark.parametrize(
    ("n_groups", "cv", "words"),
    [
        (1, "auto", "1 of 1 groups and must leave two to train on"),
        (2, "auto", "1 of 2 groups and must leave two"),
        (3, 0.4, "cv=0.4 holds out 2 of 3 groups and must leave two"),
        (1, 5, "are of one group"),
    ],
)
def test_too_few_groups_are_named_with_the_share_and_the_remedy(n_groups, cv, words, rows):
    X, y, groups = rows
    tuner = ThresholdTuner(_calibrated(), "coverage", target=0.3, cv=cv, random_state=0)
    message = check_refused("groups", lambda: tuner.fit(X, y, groups=groups % n_groups))
    assert words in message
    assert "Pass rows of" in message


@quiet
def test_one_group_is_enough_where_nothing_is_divided(rows):
    X, y, groups = rows
    one = np.zeros_like(groups)
    SelectiveClassifier(GaussianNB()).fit(X, y, groups=one)
    message = check_refused("groups", lambda: _cascade().fit(X, y, groups=one))
    assert "of one group" in message
