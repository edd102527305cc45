"""The confusion matrix with the column "abstains"."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skselect import AbstentionPolicy, Predictions, SelectiveClassifier
from skselect.display import SelectiveConfusionDisplay
from skselect.metrics import selective_confusion_matrix
from skselect.policy.subgroups import GroupThresholds
from tests.refusals import check_refused

SHOWN = SelectiveConfusionDisplay


@pytest.fixture
def flowers(rng):
    X, y = load_iris(return_X_y=True)
    order = rng.permutation(len(y))
    names = np.array(["setosa", "versi", "virginica"])
    X, y = X[order, :2] + rng.normal(size=(len(y), 2)) / 4, names[y[order]]
    return LogisticRegression().fit(X[:75], y[:75]), X[75:], y[75:]


def _texts(display):
    return [[cell.get_text() for cell in line] for line in display.text_]


def _names(labels):
    return [label.get_text() for label in labels]


def test_counts_and_shares_are_those_of_the_metric(drawn):
    display = SelectiveConfusionDisplay.from_predictions(*drawn, threshold=0.8)
    expected = selective_confusion_matrix(*drawn, threshold=0.8)
    np.testing.assert_array_equal(display.confusion_matrix, expected)
    assert _texts(display) == [[f"{n:,}" for n in line] for line in expected.tolist()]
    np.testing.assert_array_equal(display.im_.get_array(), expected[:, :-1])
    assert _names(display.ax_.get_xticklabels()) == ["0", "1", "abstains"]
    assert _names(display.ax_.get_yticklabels()) == ["0", "1"]
    assert display.ax_.get_ylim() == (1.5, -0.5)  # the first class on top
    by_line = expected.sum(axis=1, keepdims=True)
    for normalize, total in [("true", by_line), ("all", expected.sum())]:
        shares = SelectiveConfusionDisplay.from_predictions(
            *drawn, threshold=0.8, normalize=normalize
        )
        np.testing.assert_allclose(shares.confusion_matrix, expected / total)
        assert all(cell.endswith(" %") for line in _texts(shares) for cell in line)
    proba = [[0.9, 0.1], [0.2, 0.8]]
    lacking = SelectiveConfusionDisplay.from_predictions(
        [0, 0], proba, labels=[0, 1], normalize="true"
    )
    assert lacking.confusion_matrix.tolist() == [[0.5, 0.5, 0], [0, 0, 0]]


def test_an_estimator_decides_by_its_own_threshold(flowers):
    model, X, y = flowers
    selective = SelectiveClassifier(FrozenEstimator(model), threshold=0.7).fit(X, y)
    display = SelectiveConfusionDisplay.from_estimator(selective, X, y)
    expected = selective_confusion_matrix(y, model.predict_proba(X), threshold=0.7)
    np.testing.assert_array_equal(display.confusion_matrix, expected)
    assert _names(display.ax_.get_yticklabels()) == ["setosa", "versi", "virginica"]
    unknown = SelectiveConfusionDisplay.from_estimator(model, X[:3], ["rose", *y[1:3]])
    assert unknown.confusion_matrix.shape == (4, 4)
    assert unknown.confusion_matrix[-1].sum() == 1
    assert _names(unknown.ax_.get_yticklabels())[-1] == "unknown class"


def test_a_policy_decides_after_its_own_calibration(flowers):
    model, X, y = flowers
    selective = SelectiveClassifier(clone(model), calibration="temperature", threshold=0.7, cv=3)
    selective.fit(X[:40], y[:40])
    raw = selective.raw_scores(X[40:])
    rows = Predictions.from_proba(y[40:], raw)
    display = SelectiveConfusionDisplay.from_policy(selective.policy_, rows)
    decided = selective.policy_.decide(raw)
    counts = np.zeros((3, 4))
    classes = selective.classes_.tolist()
    for true, said, sure in zip(y[40:], decided["suggestion"], decided["accepted"], strict=True):
        counts[classes.index(true), classes.index(said) if sure else 3] += 1
    np.testing.assert_array_equal(display.confusion_matrix, counts)


def test_thresholds_per_subgroup(flowers):
    model, X, y = flowers
    sites = np.where(np.arange(len(y)) % 2, "east", "west")
    groups = GroupThresholds("site", {"east": 0.6, "west": np.inf})
    policy = AbstentionPolicy(classes=model.classes_, threshold=0.5, groups=groups)
    proba = model.predict_proba(X)
    rows = Predictions.from_proba(y, proba)
    display = SelectiveConfusionDisplay.from_policy(policy, rows, subgroups=sites)
    accepted = (proba.max(axis=1) >= 0.6) & (sites == "east")
    assert display.confusion_matrix[:, -1].sum() == np.sum(~accepted)


def test_deferrals_do_not_change_the_colours():
    few = SelectiveConfusionDisplay([[5, 1, 2], [0, 4, 3]]).plot()
    many = SelectiveConfusionDisplay([[5, 1, 900], [0, 4, 800]]).plot()
    assert few.im_.get_clim() == many.im_.get_clim() == (0, 5)
    assert _names(few.ax_.get_xticklabels()) == ["0", "1", "abstains"]


def test_options_of_scikit_learn(drawn):
    y, p = drawn
    ax = plt.subplots()[1]
    display = SelectiveConfusionDisplay.from_predictions(
        y, p, display_labels=["$no$", "yes"], ax=ax, colorbar=False, cmap="Greens",
        values_format="d", xticks_rotation="vertical", text_kw={"fontsize": 7},
        im_kw={"alpha": 0.5},
    )  # fmt: skip
    assert display.ax_ is ax
    assert display.figure_.axes == [ax]
    assert display.im_.get_cmap().name == "Greens"
    assert display.im_.get_alpha() == 0.5
    assert display.text_[0, 0].get_fontsize() == 7
    assert ax.get_xticklabels()[0].get_rotation() == 90
    assert _names(ax.get_xticklabels()) == [r"\$no\$", "yes", "abstains"]
    assert display.plot(include_values=False).text_ is None


@pytest.mark.parametrize(("argument", "draw"), [
    ("normalize", lambda y, p: SHOWN.from_predictions(y, p, normalize="pred")),
    ("threshold", lambda y, p: SHOWN.from_predictions(y, p, threshold="high")),
    ("display_labels", lambda y, p: SHOWN.from_predictions(y, p, display_labels=["a"])),
    ("policy", lambda _, p: SHOWN.from_policy(None, p)),
    *(("confusion_matrix", lambda *_, bad=bad: SHOWN(bad))
      for bad in ([1, 2, 3], [[1, 2, 3]], [[1], [2]])),
])  # fmt: skip
def test_refusals(argument, draw, drawn):
    check_refused(argument, draw, *drawn)
