"""Which rows a classifier does not see, and folds whose models lack a class."""

import warnings
from collections import Counter
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from skselect import (
    CascadeClassifier,
    LearnedConfidence,
    SelectiveClassifier,
    ThresholdTuner,
    calibration_report,
)
from skselect.calibration._calibrators import CALIBRATORS
from skselect.calibration._scopes import SCOPES
from skselect.estimators import out_of_fold
from skselect.estimators.raw_classifier import TrainingRows
from tests.refusals import check_refused


def rows_of(y):
    """Return rows with these labels, whose X is y."""
    classes, codes = np.unique(y, return_inverse=True)
    return TrainingRows(y, y, codes, classes)


def test_groups_stay_together_and_rare_classes_do_not_warn(rng):
    y = rng.integers(0, 2, 100)
    groups = np.repeat(np.arange(20), 5)
    parts = out_of_fold.make_folds(4, rows_of(y), {"groups": groups}, None)
    for train, test in [*parts, out_of_fold.holdout(0.3, 100, groups, 0)]:
        assert not set(groups[train]) & set(groups[test])
    for labels in (np.array([0] * 20 + [1] * 2), np.array([0] * 20 + [1])):
        assert len(out_of_fold.make_folds(5, rows_of(labels), {}, None)) == 5
    with pytest.raises(ValueError, match="cv must put every row into exactly one test part"):
        out_of_fold.make_folds(ShuffleSplit(3, random_state=0), rows_of(y), {}, None)
    once = iter([(np.arange(50), np.arange(50, 100))])
    assert len(out_of_fold.read_splits(once, rows_of(y), {})) == 1
    with pytest.raises(ValueError, match="cv yields no folds"):
        out_of_fold.read_splits(once, rows_of(y), {})


def test_rows_that_are_never_tested_serve_training_only():
    y = np.array([0, 1] * 50)
    fold = np.r_[np.full(40, -1), np.repeat([0, 1, 2], 20)]
    for cv in (TimeSeriesSplit(3), PredefinedSplit(fold), [(range(40), range(40, 100))]):
        parts = out_of_fold.make_folds(cv, rows_of(y), {}, None)
        tested = [row for _, test in parts for row in test]
        assert len(set(tested)) == len(tested) < 100
        assert out_of_fold.find_tested_rows(parts).tolist() == sorted(tested)
        assert min(row for train, _ in parts for row in train) == 0


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, pd.Index])
def test_a_split_holds_positions_masks_or_slices(kind):
    y, mask = np.array([0, 1] * 3), np.array([True, False] * 3)
    for cv in (
        [(kind([4, 2, 0]), kind([1, 3, 5]))],
        ((kind(mask), kind(~mask)),),
        [[kind(mask), kind([1, 3, 5])]],
        iter([(slice(0, None, 2), slice(1, None, 2))]),
    ):
        ((train, test),) = out_of_fold.read_splits(cv, rows_of(y), {}, None)
        assert (sorted(train.tolist()), test.tolist()) == ([0, 2, 4], [1, 3, 5])
    assert out_of_fold.read_splits([([], [1, 0])], rows_of(y), {}, None)[0][0].tolist() == []


@pytest.mark.parametrize(
    "split",
    [
        ([0, 1, 2], [2, 3]), ([0, 1], [2, 2]), ([0, 1], [2, 10]), ([-1, 1], [2, 3]), ([], [2, 3]),
        ([1, 2], np.zeros(10, dtype=bool)), (np.ones(9, dtype=bool), [2]), (["a"], [2]),
        (slice(5), slice(20, None)), (slice(5), slice(4, None)), ([0.5, 1], [2]),
    ],
)  # fmt: skip
def test_bad_splits_are_named(split):
    check_refused("cv", out_of_fold.make_folds, [split], rows_of(np.array([0, 1] * 5)), {}, None)


PAIR = np.arange(50), np.arange(50, 90)


@pytest.mark.parametrize(
    "cv",
    [
        PAIR, [slice(50), slice(50, 90)], (np.ones((8, 3)), np.ones((4, 3))),
        [(pd.DataFrame({"a": [0, 1]}), [2])], ([0, 1], [2, 3], [4]), (1000, 797), [0.6, 0.4],
        1, 2.0,
    ],
    ids=repr,
)  # fmt: skip
def test_a_bad_cv_is_named_by_all_who_take_one(cv, data):
    X, codes, _ = data
    calibrated = SelectiveClassifier(GaussianNB(), calibration="platt", cv=cv)
    check_refused("cv", ThresholdTuner(GaussianNB(), cv=cv).fit, X, codes)
    check_refused("cv", calibrated.fit, X, codes)
    check_refused("cv", lambda: calibration_report(GaussianNB(), X, codes, cv=cv))


def test_a_pair_in_place_of_a_list_of_splits_is_told_what_to_write(data):
    with pytest.raises(ValueError, match=r"write cv=\[\(train, test\)\]"):
        ThresholdTuner(GaussianNB(), cv=PAIR).fit(*data[:2])


@pytest.mark.parametrize("scope", SCOPES)
def test_a_calibration_learns_from_tested_rows_only(scope, data):
    X, codes, _ = data
    train, test = np.split(np.random.default_rng(0).permutation(90), [50])
    options = {"calibration": "platt", "calibration_scope": scope}
    weight = np.linspace(1, 2, 90)
    inner = FrozenEstimator(GaussianNB().fit(X[train], codes[train], weight[train]))
    other = SelectiveClassifier(inner, **options).fit(X[test], codes[test], weight[test])
    model = SelectiveClassifier(GaussianNB(), cv=[(train, test)], **options)
    model.fit(X, codes, weight)
    raw = np.random.default_rng(1).dirichlet(np.ones(3), 20)
    found, expected = (one.policy_.decide(raw)["confidence"] for one in (model, other))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    whole = GaussianNB().fit(X, codes, weight).predict_proba(X)
    np.testing.assert_array_equal(model.estimator_.predict_proba(X), whole)


def test_holdout_is_a_plain_random_split():
    train, test = out_of_fold.holdout(0.25, 100, None, 0)
    assert sorted([*train, *test]) == list(range(100))
    assert len(test) == 25
    assert len(out_of_fold.holdout(1 / 15, 150, None, 0)[1]) == 10
    few = ThresholdTuner(GaussianNB(), cv=0.001)  # a handful of rows chooses no threshold
    for call, message in [
        (lambda: out_of_fold.holdout(0.999, 10, None, 0), r"cv=0\.999 cannot split 10 rows"),
        (lambda: out_of_fold.holdout(0.4, 10, None, "0"), "^'0' cannot be used to seed"),
        (lambda: few.fit(*load_iris(return_X_y=True)), r"cv=0\.001 holds out 1 of 150 rows.*10"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


# Folds that lack a class -----------------------------------------------------------------------


@given(st.lists(st.integers(0, 3), min_size=4, max_size=30), st.integers(2, 4))
def test_seen_rows_against_sets(labels, n_folds):
    codes = np.unique(labels, return_inverse=True)[1]
    parts = list(KFold(n_folds).split(codes))
    seen = out_of_fold.find_known_rows(parts, codes)
    for train, test in parts:
        known = set(codes[train].tolist())
        assert [c in known for c in codes[test].tolist()] == seen[test].tolist()


@pytest.mark.parametrize("estimator", [GaussianNB(), LinearSVC()])
def test_folds_that_cannot_know_a_class_are_refused(estimator):
    X, y = load_iris(return_X_y=True)  # sorted by class
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = SelectiveClassifier(estimator, calibration="platt", cv=KFold(3))
    by_class = clone(model).set_params(cv=LeaveOneGroupOut())
    frozen = FrozenEstimator(GaussianNB().fit(X, names))
    tuner = ThresholdTuner(SelectiveClassifier(frozen, calibration="platt"), cv=KFold(3))
    for call in (
        lambda: model.fit(X, names),
        lambda: by_class.fit(X, names, groups=y),
        lambda: ThresholdTuner(estimator, cv=KFold(3)).fit(X, names),
        lambda: tuner.fit(X, names),
        lambda: calibration_report(estimator, X, names, cv=KFold(3)),
    ):
        lost = "50 of the 50 rows of class 'setosa' .* trained without that class"
        with pytest.raises(ValueError, match=lost):
            call()
    model.set_params(cv=KFold(3, shuffle=True, random_state=0))
    assert model.fit(X, names).score(X, names) > 0.85
    with pytest.raises(ValueError, match="1 of the 1 rows of class"):
        out_of_fold.make_folds(KFold(2), rows_of(np.array([0, 1])), {}, None)


def partly_blind(y, n_blind):
    """Return two folds; the model of the first never saw class 2, of which it predicts some."""
    blind = np.flatnonzero(y == 2)[:n_blind]
    others = np.flatnonzero(y != 2)
    first = np.sort(np.r_[others[::2], blind])
    rest = np.setdiff1d(np.arange(len(y)), first)
    return [(others[1::2], first), (first, rest)]


class Unweighted(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kind", CALIBRATORS)
def test_rows_of_an_unseen_class_are_left_out_of_the_calibration(kind, scope, data):
    X, codes, _ = data
    parts = partly_blind(codes, 12)
    options = {"calibration": kind, "calibration_scope": scope}
    model = SelectiveClassifier(GaussianNB(), cv=parts, **options)
    with pytest.warns(UserWarning, match="12 of 90 rows .* left out of the calibration") as caught:
        model.fit(X, codes)
    assert len(caught) == 1
    weight = out_of_fold.find_known_rows(parts, codes).astype(float)
    assert weight.sum() == 78
    with pytest.warns(UserWarning, match="left out of the calibration"):
        other = SelectiveClassifier(Unweighted(), cv=parts, **options).fit(X, codes, weight)
    np.testing.assert_allclose(other.predict_confidence(X), model.predict_confidence(X), rtol=1e-9)
    with pytest.raises(ValueError, match="16 of the 30 rows of class 2"):
        model.set_params(cv=partly_blind(codes, 16)).fit(X, codes)


def test_rows_of_an_unseen_class_count_as_wrong_answers_for_a_threshold(data):
    X, codes, _ = data
    parts, goal = partly_blind(codes, 9), {"objective": "coverage", "target": 0.5}
    tuner = ThresholdTuner(GaussianNB(), cv=parts, **goal)
    with pytest.warns(UserWarning, match="9 of 90 rows .* they count as wrong answers"):
        assert tuner.fit(X, codes).curve_.n_rows == 90
    with pytest.warns(UserWarning, match="they count as wrong"):
        calibration_report(GaussianNB(), X, codes, cv=parts, calibrations=["platt"])
    site = ThresholdTuner(GaussianNB(), cv=0.3, random_state=0, **goal)
    with pytest.warns(UserWarning, match="30 of 90 rows .* they count as wrong answers"):
        site.fit(X, codes, groups=codes)


@pytest.mark.filterwarnings("ignore:cv. .* rows belong to a class")
def test_a_fold_of_one_class_is_named_where_the_classifier_refuses_it(data):
    X, codes, names = data
    order = np.argsort(codes, kind="stable")
    X, y = X[order], names[codes[order]]
    cv = TimeSeriesSplit(5)
    models = [
        SelectiveClassifier(LogisticRegression(), calibration="platt", cv=cv),
        ThresholdTuner(LogisticRegression(), cv=cv),
        CascadeClassifier([("a", LogisticRegression()), ("b", GaussianNB())], cv=cv),
    ]
    late = np.r_[0:20, 60:90, 20:60]
    for model in models:
        with pytest.raises(ValueError, match="fold 1 of 5 holds rows of class 'a' only") as caught:
            model.fit(X[late], y[late])
        assert "one class" in str(caught.value.__cause__)
    held_out = [(np.arange(20), np.arange(20, 90))]
    tuner = ThresholdTuner(LogisticRegression(), "coverage", target=0.2, cv=held_out)
    with (
        pytest.warns(UserWarning, match="does not know these classes"),
        pytest.raises(ValueError, match="training part of cv holds rows of class 'a' only"),
    ):
        tuner.fit(X, y)


def test_classes_of_few_rows_make_fewer_folds(data):
    X, codes, _ = data
    few = np.r_[0:3, 30:32, 60:62]
    model = SelectiveClassifier(GaussianNB(), calibration="temperature", random_state=0)
    assert model.fit(X[few], codes[few]).calibration_ is not None
    with pytest.raises(ValueError, match="y: each of the 3 classes has one row"):
        model.fit(X[::30], codes[::30])


@pytest.mark.parametrize(("empty", "part"), [(0, "training"), (1, "test")])
def test_an_empty_part_of_a_fold_is_named(empty, part, data):
    X, codes, _ = data
    split = [np.arange(0, 90, 2), np.arange(1, 90, 2)]
    split[empty] = np.array([], dtype=int)
    model = SelectiveClassifier(GaussianNB(), calibration="platt", cv=[tuple(split)])
    with pytest.raises(ValueError, match=f"cv: the {part} part of fold 1 of 1 has no rows"):
        model.fit(X, codes)


# Weights ---------------------------------------------------------------------------------------


def test_a_fold_without_weight_says_so(data):
    X, y = data[0], data[1] % 2
    weight = np.zeros(90)
    weight[[0, 31]] = 1.0  # both tested by the first fold
    seeds = (KFold(2, shuffle=True, random_state=seed) for seed in range(20))
    cv = next(one for one in seeds if np.isin([0, 31], next(one.split(X))[1]).all())
    platt = SelectiveClassifier(LogisticRegression(), calibration="platt", cv=cv)
    tuner = ThresholdTuner(LogisticRegression(), cv=cv)
    for call in (
        lambda: platt.fit(X, y, weight),
        lambda: tuner.fit(X, y, weight),
        lambda: calibration_report(LogisticRegression(), X, y, sample_weight=weight, cv=cv),
    ):
        with pytest.raises(ValueError, match="every row of the training part of fold 1 of 2"):
            call()
    weight[:] = 0.0
    weight[out_of_fold.holdout(0.3, 90, None, 0)[0]] = 1.0
    with pytest.raises(ValueError, match=r"every row of the part that cv=0\.3 holds out"):
        ThresholdTuner(GaussianNB(), cv=0.3, random_state=0).fit(X, y, weight)


def test_small_weights_are_told_once(data):
    X, codes, _ = data
    base = SelectiveClassifier(GaussianNB(), calibration="platt", cv=3)
    weight = np.full(90, 0.01)
    for call in (
        lambda: base.fit(X, codes, weight),
        lambda: calibration_report(GaussianNB(), X, codes, sample_weight=weight, cv=3),
        lambda: ThresholdTuner(base, cv=3).fit(X, codes, weight),
        lambda: ThresholdTuner(base, cv=0.4).fit(X, codes, weight),
        lambda: ThresholdTuner(base, cv=0.4, refit=False, random_state=0).fit(X, codes, weight),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert sum("sample_weight sums to" in str(w.message) for w in caught) == 1


def test_the_calibration_of_a_fold_does_not_read_its_labels(rng):
    codes, scores = rng.integers(0, 2, 90), rng.random(90)
    rows, fold = rows_of(codes), np.arange(90) % 3
    model = SelectiveClassifier(GaussianNB(), calibration="platt")
    scored = out_of_fold.OutOfFold(
        np.arange(90), np.column_stack([1 - scores, scores]), codes, None, fold
    )
    other = replace(scored, codes=np.where(fold == 0, 1 - codes, codes))
    one, two = (model._calibrate_folds(rows, said) for said in (scored, other))
    same = (one.scores == two.scores).all(axis=1)
    assert one.fold.tolist() == two.fold.tolist()
    assert same.tolist() == (one.fold == 0).tolist()


# How many rows are asked about ------------------------------------------------------------------


class Counting(GaussianNB):
    """Counts the rows that reach each method, in all its models together."""

    asked: ClassVar = Counter()

    def predict_proba(self, X):
        self.asked["predict_proba"] += len(X)
        return super().predict_proba(X)

    def predict(self, X):
        self.asked["predict"] += len(X)
        return super().predict(X)  # without predict_proba


def cascade():
    return CascadeClassifier([("first", Counting()), ("second", GaussianNB())], random_state=0)


#: Held-out rows of 5 folds, those inside each of them, and of the final model: at n = 8,000.
HELD_OUT, INSIDE, FINAL = 8000, 5 * 6400, 8000


@pytest.mark.parametrize(
    ("base", "n_proba", "n_predict"),
    [
        (Counting, HELD_OUT + 1000, 1500),
        (lambda: SelectiveClassifier(Counting(), calibration="platt"), HELD_OUT + 1000, 1500),
        (lambda: SelectiveClassifier(Counting(), confidence=LearnedConfidence(features=["proba"])),
         HELD_OUT + INSIDE + FINAL + 1500, 1500),
        (cascade, HELD_OUT + INSIDE + FINAL + 1000 + 1500, 0),  # its answers are its scores'
    ],
    ids=["plain", "calibrated", "learned", "cascade"],
)  # fmt: skip
def test_a_fold_model_answers_each_held_out_row_once(base, n_proba, n_predict, rng):
    X = rng.normal(size=(8000, 2))
    Counting.asked.clear()
    ThresholdTuner(base(), random_state=0).fit(X, X[:, 0] + rng.normal(size=8000) > 0)
    assert Counting.asked == Counter(predict_proba=n_proba) + Counter(predict=n_predict)
