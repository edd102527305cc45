"""Confidence-weighted ROC curves against loops over pairs, and scikit-learn."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from sklearn.metrics import roc_auc_score, roc_curve

from skselect import metrics
from skselect.confidence import CONFIDENCES
from tests import brute
from tests.brute import assert_close, examples, of_probabilities, proba_cases

TRUTH, PROBA = [0, 1, 1, 0], [0.25, 0.875, 0.625, 0.75]

quiet = pytest.mark.filterwarnings("ignore:cw_auc is undefined")


# Definitions, slowly ---------------------------------------------------------------------


def judged(case, confidence="max_proba"):
    """Return (mass, true class, probabilities) of the rows that exist, in fractions."""
    weight = np.ones(len(case.y_true)) if case.weight is None else case.weight
    surely = brute.CONFIDENCES[confidence]
    return [
        (Fraction(w) * Fraction(surely(p)), y, p)
        for w, p, y in zip(
            weight.tolist(), case.y_proba.tolist(), case.y_true.tolist(), strict=True
        )
        if w > 0
    ]


def pairs_of(rows, k):
    """Yield the mass of each pair of a row of class k and another, and who is ahead."""
    for m, y, p in rows:
        for n, z, q in rows:
            if y == k and z != k:
                yield m * n, Fraction(p[k] > q[k]) + Fraction(p[k] == q[k]) / 2


def auc(rows, k):
    """Return P(class k scored above another class) + half the ties, by mass of pairs."""
    pairs = list(pairs_of(rows, k))
    total = sum((m for m, _ in pairs), Fraction(0))
    return float(sum(m * z for m, z in pairs) / total) if total else math.nan


def averaged(rows, classes, average):
    values = [auc(rows, k) for k in classes]
    if average is None:
        return values
    support = [float(sum(m for m, y, _ in rows if y == k)) for k in classes]
    shares = support if average == "weighted" else [1.0] * len(values)
    kept = [(v, s) for v, s in zip(values, shares, strict=True) if not math.isnan(v)]
    total = math.fsum(s for _, s in kept)
    return math.fsum(v * s for v, s in kept) / total if total else math.nan


# Area ------------------------------------------------------------------------------------


@quiet
@pytest.mark.parametrize("average", ["macro", "weighted", None])
@examples(40)
@given(case=proba_cases(max_rows=30))
def test_cw_auc_is_its_definition(average, case):
    actual = of_probabilities(metrics.cw_auc_score, case, average=average)
    assert_close(actual, averaged(judged(case), case.labels, average))


@quiet
@pytest.mark.parametrize("confidence", ["margin", "gini"])
@examples(20)
@given(case=proba_cases(max_rows=20, weights=("none", "integer")))
def test_any_confidence_can_be_the_weight(confidence, case):
    rows, function = judged(case, confidence), CONFIDENCES[confidence]
    actual = of_probabilities(metrics.cw_auc_score, case, average=None, confidence=function)
    assert_close(actual, averaged(rows, case.labels, None), rel=1e-9)


@quiet
@examples(40)
@given(proba_cases())
def test_scikit_learn_agrees_about_the_area(case):
    weight = np.ones(len(case.y_true)) if case.weight is None else case.weight
    weight = weight * case.y_proba.max(axis=1)
    exists = weight > 0
    expected = []
    for k in case.labels:
        truth = case.y_true[exists] == k
        if 0 < truth.sum() < len(truth):
            options = {"sample_weight": weight[exists]}
            expected.append(roc_auc_score(truth, case.y_proba[exists, k], **options))
        else:
            expected.append(math.nan)
    if not all(map(math.isnan, expected)):
        assert_close(of_probabilities(metrics.cw_auc_score, case, average=None), expected)
        assert_close(of_probabilities(metrics.cw_auc_score, case), np.nanmean(expected))


@quiet
@examples(40)
@given(proba_cases(classes=(2, 2), weights=("none",)))
def test_what_weighting_adds_is_a_covariance_over_pairs(case):
    """Proposition 16: cwAUC - AUC = Cov(w, z)/E[w], w the product of confidences of a pair."""
    pairs = list(pairs_of(judged(case), 1))
    if not pairs:
        return
    n, w, z = len(pairs), sum(m for m, _ in pairs), sum(ahead for _, ahead in pairs)
    covariance = sum(m * ahead for m, ahead in pairs) / n - w / n * z / n
    plain = roc_auc_score(case.y_true, case.y_proba[:, 1])
    weighted = of_probabilities(metrics.cw_auc_score, case, average=None)[1]
    assert_close(weighted - plain, covariance / (w / n), tiny=1e-12)


# Curve -----------------------------------------------------------------------------------


@examples(60)
@given(proba_cases(classes=(2, 2)))
def test_scikit_learn_agrees_about_the_curve(case):
    weight = np.ones(len(case.y_true)) if case.weight is None else case.weight
    weight = weight * case.y_proba.max(axis=1)
    if len(np.unique(case.y_true[weight > 0])) < 2:
        return
    actual = of_probabilities(metrics.cw_roc_curve, case)
    expected = roc_curve(
        case.y_true, case.y_proba[:, 1], sample_weight=weight, drop_intermediate=False
    )
    for mine, theirs in zip(actual, expected, strict=True):
        assert_close(mine[1:], theirs[1:])
        assert mine[0] == theirs[0]


@quiet
@examples(40)
@given(proba_cases(classes=(2, 2), max_rows=20))
def test_the_curve_is_its_definition(case):
    rows = judged(case)
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


def test_known_values():
    # Masses .75 .875 .625 .75; positives .875 and .625, the negative .75 stands between.
    expected = (0.875 * 1.5 + 0.625 * 0.75) / (1.5 * 1.5)
    assert_close(metrics.cw_auc_score(TRUTH, PROBA), expected)
    fpr, tpr, thresholds = metrics.cw_roc_curve(TRUTH, PROBA)
    assert_close(tpr, [0, 0.875 / 1.5, 0.875 / 1.5, 1, 1])
    assert_close(fpr, [0, 0, 0.5, 0.5, 1])
    assert thresholds.tolist() == [math.inf, 0.875, 0.75, 0.625, 0.25]


def test_the_other_class_can_be_positive():
    y_proba = np.column_stack([1 - np.array(PROBA), PROBA])
    fpr, tpr, thresholds = metrics.cw_roc_curve(TRUTH, y_proba, pos_label=0)
    assert thresholds.tolist() == [math.inf, 0.75, 0.375, 0.25, 0.125]
    assert_close(tpr, [0, 0.5, 0.5, 1, 1])
    assert_close(fpr, [0, 0, 0.625 / 1.5, 0.625 / 1.5, 1])


def test_a_row_of_weight_zero_is_no_point_of_the_curve():
    curve = metrics.cw_roc_curve(TRUTH, PROBA, sample_weight=[1, 1, 1, 0])
    for mine, without in zip(curve, metrics.cw_roc_curve(TRUTH[:3], PROBA[:3]), strict=True):
        assert_close(mine[1:], without[1:])


def test_ties_count_by_half():
    assert metrics.cw_auc_score([0, 1, 1], [[0.25, 0.75]] * 3) == 0.5


# No value, bad input ----------------------------------------------------------------------


def test_a_class_without_or_with_all_rows_has_no_area():
    y_proba = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
    with pytest.warns(UserWarning, match="cw_auc is undefined .nan. for 1 of 3 classes"):
        values = metrics.cw_auc_score([0, 1], y_proba, labels=[0, 1, 2], average=None)
    assert np.isnan(values).tolist() == [False, False, True]
    for average in ["macro", None]:
        with pytest.warns(UserWarning, match="cw_auc is undefined .nan. for 2 of 2"):
            value = metrics.cw_auc_score([1, 1], [0.25, 0.75], average=average)
        assert np.all(np.isnan(value))
    with pytest.warns(UserWarning, match="cw_auc is undefined"):
        assert math.isnan(metrics.cw_auc_score([1, 1], [0.25, 0.75], average="weighted"))


def test_without_any_confidence_the_area_is_nan_with_a_warning():
    for average in ["macro", "weighted"]:
        with pytest.warns(UserWarning, match="cw_auc is undefined"):
            value = metrics.cw_auc_score(
                [0, 1], [[0.5, 0.5]] * 2, confidence=[0, 0], average=average
            )
        assert math.isnan(value)


@pytest.mark.parametrize("average", ["micro", "binary", "samples"])
def test_an_average_that_is_not_over_classes_is_refused(average):
    with pytest.raises(ValueError, match="average"):
        metrics.cw_auc_score(TRUTH, PROBA, average=average)


def test_the_curve_needs_two_classes_that_both_have_rows():
    with pytest.raises(ValueError, match="two classes"):
        metrics.cw_roc_curve([0, 1, 2], [[0.5, 0.25, 0.25]] * 3)
    with pytest.raises(ValueError, match="both classes"):
        metrics.cw_roc_curve([1, 1], [0.25, 0.75])
    with pytest.raises(ValueError, match="both classes"):
        metrics.cw_roc_curve([0, 1], [0.25, 0.75], sample_weight=[1, 0])


@pytest.mark.parametrize("name", ["cw_auc_score", "cw_roc_curve"])
def test_confidences_that_are_no_probabilities_are_refused(name):
    with pytest.raises(ValueError, match=r"confidences in \[0, 1\]"):
        getattr(metrics, name)(TRUTH, PROBA, confidence=[1.5, 0.2, 0.3, 0.4])
