"""Confidence-weighted counts against loops over rows, identities, and scikit-learn."""

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score, roc_curve

from skselect import Predictions, evaluate, inference, metrics
from skselect._lib.decide import CONFIDENCES
from skselect.metrics import _confidence_weighted
from tests import brute
from tests.brute import assert_close, examples, of_probabilities, of_rows, proba_cases, row_cases

TRUTH, PROBA = [0, 1, 1, 0], [0.125, 0.875, 0.375, 0.75]
AVERAGES = ["macro", "weighted", "micro", None]
RATIOS = ["precision", "recall", "specificity", "f1"]

quiet = pytest.mark.filterwarnings("ignore:cw_:UserWarning")


# Definitions, slowly ---------------------------------------------------------------------


def weighed(case, confidence="max_proba"):
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


def scored(case, confidence="max_proba"):
    """Return (mass, true class, predicted class) of the rows that exist, in fractions."""
    return [(m, y, p.index(max(p))) for m, y, p in weighed(case, confidence)]


def mass(rows, true=None, predicted=None):
    """Add up the rows whose true and predicted classes satisfy the conditions."""
    kept = [
        m for m, y, a in rows
        if (true is None or true(y)) and (predicted is None or predicted(a))
    ]  # fmt: skip
    return sum(kept, Fraction(0))


def four_counts(rows, k):
    """Return cwTP, cwFP, cwFN, cwTN of class k."""
    is_k, other = (lambda c: c == k), (lambda c: c != k)
    return [mass(rows, a, b) for a, b in [(is_k, is_k), (other, is_k), (is_k, other), (other,) * 2]]


def ratio(name, counts):
    tp, fp, fn, tn = counts
    over, under = {
        "precision": (tp, tp + fp),
        "recall": (tp, tp + fn),
        "specificity": (tn, tn + fp),
        "f1": (2 * tp, 2 * tp + fp + fn),
    }[name]
    return float(over / under) if under else math.nan


def averaged(name, rows, classes, average):
    """Classes without a value are left out; "weighted" weighs by cwTP + cwFN.

    Only the precision of a class that has rows and is never predicted counts 0.
    """
    counts = [four_counts(rows, k) for k in classes]
    if average == "micro":
        return ratio(name, [sum(part) for part in zip(*counts, strict=True)])
    values = [ratio(name, c) for c in counts]
    if average is None:
        return values
    if name == "precision":
        values = [
            0.0 if math.isnan(v) and fn > 0 else v
            for v, (_, _, fn, _) in zip(values, counts, strict=True)
        ]
    shares = [float(tp + fn) if average == "weighted" else 1.0 for tp, _, fn, _ in counts]
    return mean_of_defined(values, shares)


def mean_of_defined(values, shares):
    kept = [(v, s) for v, s in zip(values, shares, strict=True) if s > 0 and not math.isnan(v)]
    total = math.fsum(s for _, s in kept)
    return math.fsum(v * s for v, s in kept) / total if kept else math.nan


def matthews(rows, classes):
    """Correlate the indicators of true and predicted class, each class adding its covariance."""
    total = mass(rows)

    def covariance(a, b):
        value = Fraction(0)
        for k in classes:
            both = sum((m for m, *row in rows if row[a] == k and row[b] == k), Fraction(0))
            one = sum((m for m, *row in rows if row[a] == k), Fraction(0))
            two = sum((m for m, *row in rows if row[b] == k), Fraction(0))
            value += both / total - one / total * two / total
        return value

    spread = covariance(0, 0) * covariance(1, 1)
    return float(covariance(0, 1)) / math.sqrt(spread) if spread else math.nan


def cw_accuracy(rows):
    total = sum((row.weight * row.confidence for row in rows), Fraction(0))
    right = sum((row.weight * row.confidence * (1 - row.loss) for row in rows), Fraction(0))
    return right / total if total else math.nan


def cw_gain(rows):
    weighted = cw_accuracy(rows)
    accuracy = 1 - brute.weighted_loss(rows) / brute.weight_of(rows)
    room = 1 - min(weighted, accuracy)
    return (weighted - accuracy) / room if room else math.nan


# Counts and their relations --------------------------------------------------------------


@examples(60)
@given(proba_cases())
def test_the_confusion_matrix_adds_up_masses(case):
    rows = scored(case)
    matrix = of_probabilities(metrics.cw_confusion_matrix, case)
    expected = [
        [mass(rows, lambda y, i=i: y == i, lambda a, j=j: a == j) for j in case.labels]
        for i in case.labels
    ]
    assert_close(matrix.ravel(), np.ravel(expected))


@examples(40)
@given(proba_cases())
def test_the_four_relations_of_the_counts(case):
    """Proposition 11: the counts of a class add up to masses that need no confusion matrix."""
    rows = scored(case)
    matrix = of_probabilities(metrics.cw_confusion_matrix, case)
    assert_close(matrix.sum(), mass(rows))
    for k in case.labels:
        tp, fn, fp = matrix[k, k], matrix[k].sum() - matrix[k, k], matrix[:, k].sum() - matrix[k, k]
        tn = matrix.sum() - tp - fn - fp
        is_k, other = (lambda c, k=k: c == k), (lambda c, k=k: c != k)
        assert_close(tp + fn, mass(rows, true=is_k))
        assert_close(tp + fp, mass(rows, predicted=is_k))
        assert_close(fp + tn, mass(rows, true=other))
        assert_close(fn + tn, mass(rows, predicted=other))


@pytest.mark.parametrize("confidence", sorted(brute.CONFIDENCES))
@examples(20)
@given(case=proba_cases())
def test_any_confidence_can_be_the_weight(confidence, case):
    rows = scored(case, confidence)
    function = CONFIDENCES[confidence]
    matrix = of_probabilities(metrics.cw_confusion_matrix, case, confidence=function)
    expected = [[mass(rows, lambda y, i=i: y == i, lambda a, j=j: a == j) for j in case.labels]
                for i in case.labels]  # fmt: skip
    assert_close(matrix.ravel(), np.ravel(expected), rel=1e-9)


@quiet
@examples(40)
@given(proba_cases())
def test_the_averages_that_are_accuracies(case):
    """Weighted recall, and all micro averages of two counts, are the weighted accuracy."""
    expected = of_probabilities(metrics.cw_accuracy_score, case)
    actual = of_probabilities(metrics.cw_recall_score, case, average="weighted")
    assert_close(actual, expected)
    for name in ["precision", "recall", "f1"]:
        metric = getattr(metrics, f"cw_{name}_score")
        assert_close(of_probabilities(metric, case, average="micro"), expected)


# Ratios ----------------------------------------------------------------------------------


@quiet
@pytest.mark.parametrize(("name", "average"), product(RATIOS, AVERAGES))
@examples(40)
@given(case=proba_cases())
def test_a_ratio_is_its_definition(name, average, case):
    actual = of_probabilities(getattr(metrics, f"cw_{name}_score"), case, average=average)
    assert_close(actual, averaged(name, scored(case), case.labels, average))


@quiet
@pytest.mark.parametrize("name", RATIOS)
@examples(30)
@given(case=proba_cases(classes=(2, 2)), flipped=st.booleans())
def test_the_binary_average_is_the_value_of_pos_label(name, case, flipped):
    metric = getattr(metrics, f"cw_{name}_score")
    values = averaged(name, scored(case), [0, 1], None)
    assert_close(of_probabilities(metric, case, average="binary"), values[1])
    pos_label = 0 if flipped else 1
    actual = of_probabilities(metric, case, average="binary", pos_label=pos_label)
    assert_close(actual, values[pos_label])


@quiet
@pytest.mark.parametrize(("name", "average"), product(["precision", "recall", "f1"], AVERAGES))
@examples(30)
@given(case=proba_cases())
def test_scikit_learn_agrees_about_ratios(name, average, case):
    mass, y_pred = masses(case), case.y_proba.argmax(axis=1)
    labels, instead = case.labels, np.nan
    if name == "precision" and average in ("macro", "weighted"):
        # Over the classes that occur scikit-learn counts 0, too.
        labels, instead = np.unique([case.y_true[mass > 0], y_pred[mass > 0]]), 0.0
        if len(labels) == 0:
            return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = getattr(sklearn.metrics, f"{name}_score")(
            case.y_true, y_pred, labels=labels, average=average,
            sample_weight=mass, zero_division=instead,
        )  # fmt: skip
    actual = of_probabilities(getattr(metrics, f"cw_{name}_score"), case, average=average)
    if average is None or not math.isnan(actual):  # scikit-learn's mean of nothing is 0
        assert_close(actual, expected)


@examples(60)
@given(proba_cases())
def test_scikit_learn_agrees_about_matrix_and_correlation(case):
    options = {"sample_weight": masses(case)}
    y_pred = case.y_proba.argmax(axis=1)
    expected = sklearn.metrics.confusion_matrix(case.y_true, y_pred, labels=case.labels, **options)
    assert_close(of_probabilities(metrics.cw_confusion_matrix, case).ravel(), expected.ravel())
    if not math.isnan(matthews(scored(case), case.labels)):
        expected = sklearn.metrics.matthews_corrcoef(case.y_true, y_pred, **options)
        actual = of_probabilities(metrics.cw_matthews_corrcoef, case)
        assert_close(actual, expected, tiny=1e-10)


def masses(case):
    weight = np.ones(len(case.y_true)) if case.weight is None else case.weight
    return weight * case.y_proba.max(axis=1)


@quiet
@examples(80)
@given(proba_cases())
def test_matthews_is_a_correlation_of_indicators(case):
    actual = of_probabilities(metrics.cw_matthews_corrcoef, case)
    assert_close(actual, matthews(scored(case), case.labels), tiny=1e-10)


@examples(40)
@given(proba_cases(classes=(2, 2)))
def test_matthews_of_two_classes_is_the_formula_of_the_four_counts(case):
    tp, fp, fn, tn = four_counts(scored(case), 1)
    under = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    if under:
        expected = float(tp * tn - fp * fn) / math.sqrt(under)
        assert_close(of_probabilities(metrics.cw_matthews_corrcoef, case), expected, tiny=1e-10)


# Accuracy and gain -----------------------------------------------------------------------


@examples(80)
@given(proba_cases())
def test_cw_accuracy_is_its_definition(case):
    assert_close(of_probabilities(metrics.cw_accuracy_score, case), cw_accuracy(case.rows()))


@examples(80)
@given(row_cases())
def test_cw_accuracy_takes_any_loss_and_confidence(case):
    if any(row.confidence for row in case.rows):
        assert_close(of_rows(metrics.cw_accuracy_score, case), cw_accuracy(case.rows))


@quiet
@examples(80)
@given(row_cases())
def test_cw_gain_is_its_definition(case):
    if any(row.confidence for row in case.rows):
        actual = of_rows(metrics.cw_gain_score, case)
        assert_close(actual, cw_gain(case.rows), rel=1e-10, tiny=1e-12)


def test_known_values():
    # Confidences .875 .875 .625 .75, predicted 0 1 0 1, the last two wrong.
    assert metrics.cw_accuracy_score(TRUTH, PROBA) == 1.75 / 3.125
    assert_close(metrics.cw_gain_score(TRUTH, PROBA), (0.56 - 0.5) / 0.5)
    matrix = metrics.cw_confusion_matrix(TRUTH, PROBA)
    assert matrix.tolist() == [[0.875, 0.75], [0.625, 0.875]]
    assert_close(
        metrics.cw_precision_score(TRUTH, PROBA, average=None), [0.875 / 1.5, 0.875 / 1.625]
    )
    assert_close(metrics.cw_recall_score(TRUTH, PROBA, average="binary"), 0.875 / 1.5)
    assert_close(metrics.cw_specificity_score(TRUTH, PROBA, average="binary"), 0.875 / 1.625)


def test_all_right_and_all_wrong():
    y_proba = [[0.75, 0.25], [0.0, 1.0]]
    assert metrics.cw_accuracy_score([0, 1], y_proba) == 1.0
    assert metrics.cw_accuracy_score([1, 0], y_proba) == 0.0
    assert_close(metrics.cw_matthews_corrcoef([0, 1], y_proba), 1.0)
    assert_close(metrics.cw_matthews_corrcoef([1, 0], y_proba), -1.0)
    assert metrics.cw_gain_score([1, 0], y_proba) == 0.0
    for name in RATIOS:
        metric = getattr(metrics, f"cw_{name}_score")
        assert metric([0, 1], y_proba) == 1.0
        assert metric([1, 0], y_proba) == 0.0


# No value --------------------------------------------------------------------------------


@pytest.mark.parametrize("average", ["macro", "weighted", "micro", None])
@pytest.mark.parametrize("name", RATIOS)
def test_without_any_confidence_every_ratio_is_nan_with_a_warning(name, average):
    metric = getattr(metrics, f"cw_{name}_score")
    with pytest.warns(UserWarning, match=f"cw_{name} is undefined"):
        value = metric([0, 1], [[0.5, 0.5]] * 2, confidence=[0, 0], average=average)
    assert np.all(np.isnan(value))


def test_without_any_confidence_accuracy_gain_and_correlation_are_nan_with_a_warning():
    for name in ["cw_accuracy_score", "cw_gain_score", "cw_matthews_corrcoef"]:
        with pytest.warns(UserWarning, match=r"undefined \(nan\)"):
            value = getattr(metrics, name)([0, 1], [[0.5, 0.5]] * 2, confidence=[0, 0])
        assert math.isnan(value)


def test_a_class_without_value_is_nan_and_left_out_of_the_mean():
    # Class 2 never occurs; class 0 is true once and never predicted.
    y_true, y_proba = [0, 1], [[0.25, 0.75, 0.0], [0.125, 0.875, 0.0]]
    expected = {
        "precision": [math.nan, 0.875 / 1.625, math.nan],
        "recall": [0.0, 1.0, math.nan],
        "specificity": [1.0, 0.0, 1.0],
        "f1": [0.0, 1.75 / 2.5, math.nan],
    }
    for name, values in expected.items():
        metric = getattr(metrics, f"cw_{name}_score")
        options = {"labels": [0, 1, 2]}
        if name == "specificity":
            assert_close(metric(y_true, y_proba, average=None, **options), values)
            assert_close(metric(y_true, y_proba, **options), np.mean(values))
            continue
        with pytest.warns(UserWarning, match=f"cw_{name} is undefined .nan. for"):
            assert_close(metric(y_true, y_proba, average=None, **options), values)
        mean = np.nanmean([0.0, *values[1:]]) if name == "precision" else np.nanmean(values)
        with pytest.warns(UserWarning, match="left out of the average"):
            assert_close(metric(y_true, y_proba, **options), mean)


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


def test_gain_without_errors_is_nan_with_a_warning():
    with pytest.warns(UserWarning, match=r"cw_gain is undefined \(nan\): there are no errors"):
        assert math.isnan(metrics.cw_gain_score([0, 1], [[0.75, 0.25], [0.0, 1.0]]))


def test_the_binary_average_of_a_class_without_value_is_nan_with_a_warning():
    with pytest.warns(UserWarning, match="cw_precision is undefined"):
        value = metrics.cw_precision_score([0, 1], [[0.75, 0.25]] * 2, average="binary")
    assert math.isnan(value)


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


# Bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RATIOS)
def test_an_unknown_average_is_refused(name):
    with pytest.raises(ValueError, match="average"):
        getattr(metrics, f"cw_{name}_score")(TRUTH, PROBA, average="samples")


@pytest.mark.parametrize("name", RATIOS)
def test_the_binary_average_needs_two_classes(name):
    y_true, y_proba = [0, 1, 2], [[0.5, 0.25, 0.25]] * 3
    with pytest.raises(ValueError, match="two classes"):
        getattr(metrics, f"cw_{name}_score")(y_true, y_proba, average="binary")


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


def test_a_positive_class_among_three_is_refused():
    y_true, y_proba = [0, 1, 2], np.eye(3)
    for name in [*(f"cw_{name}_score" for name in RATIOS), "cw_accuracy_score", "aurc_score"]:
        with pytest.raises(ValueError, match="pos_label=1 needs two classes, got the 3 classes"):
            getattr(metrics, name)(y_true, y_proba, pos_label=1)
        with pytest.raises(ValueError, match="pos_label=7 is not one of the classes"):
            getattr(metrics, name)([0, 1], np.eye(2), pos_label=7)


def test_the_binary_average_of_strings_needs_a_pos_label():
    y_true, y_proba = ["a", "b"], [[0.75, 0.25], [0.25, 0.75]]
    with pytest.raises(ValueError, match="pos_label"):
        metrics.cw_recall_score(y_true, y_proba, average="binary")
    assert metrics.cw_recall_score(y_true, y_proba, average="binary", pos_label="a") == 1.0


NAMES = ["cw_confusion_matrix", "cw_precision_score", "cw_recall_score", "cw_specificity_score",
         "cw_f1_score", "cw_matthews_corrcoef", "cw_accuracy_score", "cw_gain_score",
         "cw_auc_score", "cw_roc_curve"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "confidence", [[1.5, 0.2, 0.3, 0.4], [-0.5, 0.2, 0.3, 0.4], lambda p: -p[:, 0]]
)
def test_confidences_that_are_no_probabilities_are_refused(name, confidence):
    with pytest.raises(ValueError, match=r"confidences in \[0, 1\]"):
        getattr(metrics, name)(TRUTH, PROBA, confidence=confidence)


# The ROC curve: definitions, slowly ------------------------------------------------------

QUARTERS = [0.25, 0.875, 0.625, 0.75]


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


def averaged_roc(rows, classes, average):
    values = [auc(rows, k) for k in classes]
    if average is None:
        return values
    support = [float(sum(m for m, y, _ in rows if y == k)) for k in classes]
    return mean_of_defined(values, support if average == "weighted" else [1.0] * len(values))


# Its area --------------------------------------------------------------------------------


@quiet
@pytest.mark.parametrize("average", ["macro", "weighted", None])
@examples(40)
@given(case=proba_cases(max_rows=30))
def test_cw_auc_is_its_definition(average, case):
    actual = of_probabilities(metrics.cw_auc_score, case, average=average)
    assert_close(actual, averaged_roc(weighed(case), case.labels, average))


@quiet
@pytest.mark.parametrize("confidence", ["margin", "gini"])
@examples(20)
@given(case=proba_cases(max_rows=20, weights=("none", "integer")))
def test_any_confidence_can_be_the_weight_of_a_curve(confidence, case):
    rows, function = weighed(case, confidence), CONFIDENCES[confidence]
    actual = of_probabilities(metrics.cw_auc_score, case, average=None, confidence=function)
    assert_close(actual, averaged_roc(rows, case.labels, None), rel=1e-9)


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
    pairs = list(pairs_of(weighed(case), 1))
    if not pairs:
        return
    n, w, z = len(pairs), sum(m for m, _ in pairs), sum(ahead for _, ahead in pairs)
    covariance = sum(m * ahead for m, ahead in pairs) / n - w / n * z / n
    plain = roc_auc_score(case.y_true, case.y_proba[:, 1])
    weighted = of_probabilities(metrics.cw_auc_score, case, average=None)[1]
    assert_close(weighted - plain, covariance / (w / n), tiny=1e-12)


# The curve -------------------------------------------------------------------------------


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
    rows = weighed(case)
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


def test_known_curves():
    # Masses .75 .875 .625 .75; positives .875 and .625, the negative .75 stands between.
    expected = (0.875 * 1.5 + 0.625 * 0.75) / (1.5 * 1.5)
    assert_close(metrics.cw_auc_score(TRUTH, QUARTERS), expected)
    fpr, tpr, thresholds = metrics.cw_roc_curve(TRUTH, QUARTERS)
    assert_close(tpr, [0, 0.875 / 1.5, 0.875 / 1.5, 1, 1])
    assert_close(fpr, [0, 0, 0.5, 0.5, 1])
    assert thresholds.tolist() == [math.inf, 0.875, 0.75, 0.625, 0.25]


def test_the_other_class_can_be_positive():
    y_proba = np.column_stack([1 - np.array(QUARTERS), QUARTERS])
    fpr, tpr, thresholds = metrics.cw_roc_curve(TRUTH, y_proba, pos_label=0)
    assert thresholds.tolist() == [math.inf, 0.75, 0.375, 0.25, 0.125]
    assert_close(tpr, [0, 0.5, 0.5, 1, 1])
    assert_close(fpr, [0, 0, 0.625 / 1.5, 0.625 / 1.5, 1])


def test_a_row_of_weight_zero_is_no_point_of_the_curve():
    curve = metrics.cw_roc_curve(TRUTH, QUARTERS, sample_weight=[1, 1, 1, 0])
    for mine, without in zip(curve, metrics.cw_roc_curve(TRUTH[:3], QUARTERS[:3]), strict=True):
        assert_close(mine[1:], without[1:])


def test_ties_count_by_half():
    assert metrics.cw_auc_score([0, 1, 1], [[0.25, 0.75]] * 3) == 0.5


# No value, bad input ---------------------------------------------------------------------


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
        metrics.cw_auc_score(TRUTH, QUARTERS, average=average)


def test_the_curve_needs_two_classes_that_both_have_rows():
    with pytest.raises(ValueError, match="two classes"):
        metrics.cw_roc_curve([0, 1, 2], [[0.5, 0.25, 0.25]] * 3)
    with pytest.raises(ValueError, match="both classes"):
        metrics.cw_roc_curve([1, 1], [0.25, 0.75])
    with pytest.raises(ValueError, match="both classes"):
        metrics.cw_roc_curve([0, 1], [0.25, 0.75], sample_weight=[1, 0])
