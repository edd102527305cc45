"""Confidence-weighted counts: each class, the ROC curve, identities, and scikit-learn."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given

from skselect import Predictions, evaluate, inference, metrics
from skselect._lib.decide import CONFIDENCES
from skselect.metrics import SPECS, _confidence_weighted
from tests import brute
from tests.brute import assert_close, examples, of_probabilities, proba_cases
from tests.metrics.definitions import OF_CLASSES, confusion, cw_auc, masses, table
from tests.refusals import check_refused

RATIOS = ["precision", "recall", "specificity", "f1"]

quiet = pytest.mark.filterwarnings("ignore:cw_:UserWarning")


@quiet
@pytest.mark.parametrize("name", [*(f"cw_{ratio}" for ratio in RATIOS), "cw_auc"])
@examples(60)
@given(case=proba_cases(max_rows=30))
def test_the_value_of_each_class_is_its_definition(name, case):
    actual = of_probabilities(SPECS[name].function, case, average=None)
    assert_close(actual, OF_CLASSES[name](case, average=None))
    if len(case.labels) == 2 and name != "cw_auc":
        one = of_probabilities(SPECS[name].function, case, average="binary")
        other = of_probabilities(SPECS[name].function, case, average="binary", pos_label=0)
        assert_close([other, one], actual)


@quiet
@pytest.mark.parametrize("confidence", sorted(brute.CONFIDENCES))
@examples(20)
@given(case=proba_cases(max_rows=20))
def test_any_confidence_can_be_the_weight(confidence, case):
    function = CONFIDENCES[confidence]
    matrix = of_probabilities(metrics.cw_confusion_matrix, case, confidence=function)
    expected = confusion(masses(case, confidence), case.labels)
    assert_close(matrix.ravel(), np.ravel(expected), rel=1e-9)
    if confidence in ("margin", "gini"):
        actual = of_probabilities(metrics.cw_auc_score, case, average=None, confidence=function)
        assert_close(actual, cw_auc(case, average=None, confidence=confidence), rel=1e-9)


# No value ------------------------------------------------------------------------------


@quiet
@examples(60)
@given(proba_cases(weights=("none", "real")))
def test_rounding_does_not_turn_nothing_into_something(case):
    """With one true class there is no specificity of it, and no correlation."""
    only = np.zeros_like(case.y_true)
    options = {**case.options, "average": None}
    values = metrics.cw_specificity_score(only, case.y_proba, **options)
    assert math.isnan(values[0])
    assert math.isnan(metrics.cw_matthews_corrcoef(only, case.y_proba, **case.options))
    values = metrics.cw_recall_score(only, case.y_proba, **options)
    assert np.isnan(values).tolist() == [False] + [True] * (len(values) - 1)


@quiet
@pytest.mark.parametrize("name", ["precision", "recall", "specificity", "f1", "matthews"])
@examples(15)
@given(case=proba_cases())
def test_a_class_the_model_does_not_know_is_one_it_never_predicts(name, case):
    """Scorers meet true classes that training lacked: as if the class had probability 0."""
    wider = np.column_stack([case.y_proba, np.zeros(len(case.y_true))])
    k = case.y_proba.shape[1]
    y_true = np.where(np.arange(len(case.y_true)) % 3 == 0, k, case.y_true)
    known = Predictions.from_proba(y_true, wider, labels=range(k + 1), sample_weight=case.weight)
    unknown = replace(
        known, y_true=np.where(y_true == k, -1, y_true), classes=np.arange(k),
        y_proba=case.y_proba,
    )  # fmt: skip
    kernel = getattr(_confidence_weighted, f"cw_{name}")
    if name == "matthews":
        assert_close(kernel(unknown), kernel(known), tiny=1e-10)
    else:
        assert_close(kernel(unknown, None), kernel(known, None)[:k])


# The positive class -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RATIOS)
@pytest.mark.parametrize("labels", [[0, 1], ["healthy", "sick"], [False, True]], ids=str)
def test_a_positive_class_is_what_the_value_is_about(name, labels):
    """Whatever the shape of the probabilities, and on every path."""
    metric, short = getattr(metrics, f"cw_{name}_score"), f"cw_{name}"
    rng = np.random.default_rng(0)
    p = rng.random(50)
    y_true, y_proba = np.array(labels)[(rng.random(50) < p).astype(int)], np.c_[1 - p, p]
    for place, column in ((0, 1 - p), (1, p)):
        asked = {"pos_label": labels[place]}
        expected = metric(y_true, y_proba, average=None)[place]
        assert metric(y_true, y_proba, **asked) == expected
        assert metric(y_true, y_proba, average="binary", **asked) == expected
        assert_close(metric(y_true, column, **asked), expected)
        predictions = Predictions.from_proba(y_true, y_proba)
        assert evaluate(predictions, {short: asked})[short] == expected
        interval = inference.metric_interval(y_true, y_proba, short, n_resamples=2, **asked)
        assert interval.estimate == expected
        table = inference.metrics_by_group(
            y_true, y_proba, [0] * 50, [short], confidence_level=None, **asked
        )
        assert table["value"][0] == expected
        # There it names the column only.
        mean = metric(y_true, y_proba, average="macro")
        assert_close(metric(y_true, column, average="macro", **asked), mean)
        with pytest.raises(ValueError, match=r"pos_label=.* goes with average='binary'"):
            metric(y_true, y_proba, average="macro", **asked)


@pytest.mark.parametrize(
    "name", [*(f"cw_{ratio}_score" for ratio in RATIOS), "cw_accuracy_score", "aurc_score"]
)
def test_a_positive_class_among_three_or_unknown_is_refused(name):
    score = getattr(metrics, name)
    for label, k in ((1, 3), (7, 2)):
        check_refused("pos_label", partial(score, range(k), np.eye(k), pos_label=label))


def test_a_missing_positive_class_is_refused():
    named = partial(metrics.cw_recall_score, ["a", "b"], np.eye(2), average="binary")
    check_refused("pos_label", named)


# The ROC curve ---------------------------------------------------------------------------


@quiet
@examples(40)
@given(proba_cases(classes=(2, 2), max_rows=20))
def test_the_curve_is_its_definition(case):
    rows = [(w * brute.Fraction(max(p)), y, p) for w, p, y in table(case)]
    positive = sum(m for m, y, _ in rows if y == 1)
    negative = sum(m for m, y, _ in rows if y == 0)
    if not (positive and negative):
        return
    fpr, tpr, thresholds = of_probabilities(metrics.cw_roc_curve, case)
    levels = sorted({p[1] for _, _, p in rows}, reverse=True)
    assert thresholds.tolist() == [math.inf, *levels]
    called = [[(m, y) for m, y, p in rows if p[1] >= level] for level in levels]
    assert_close(tpr, [0.0, *(sum(m for m, y in c if y == 1) / positive for c in called)])
    assert_close(fpr, [0.0, *(sum(m for m, y in c if y == 0) / negative for c in called)])
    area = np.trapezoid(tpr, fpr)
    assert_close(area, of_probabilities(metrics.cw_auc_score, case, average=None)[1])


# No value, bad input ---------------------------------------------------------------------


def test_the_curve_needs_two_classes_that_both_have_rows():
    for arguments, weight, message in [
        (([0, 1, 2], [[0.5, 0.25, 0.25]] * 3), None, "two classes"),
        (([1, 1], [0.25, 0.75]), None, "both classes"),
        (([0, 1], [0.25, 0.75]), [1, 0], "both classes"),
    ]:
        with pytest.raises(ValueError, match=message):
            metrics.cw_roc_curve(*arguments, sample_weight=weight)
