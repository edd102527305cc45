"""Metrics at one threshold, and the confusion matrix there."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

from skselect import Outcomes, evaluate, metrics
from skselect.metrics import selective_confusion_matrix
from skselect.metrics._threshold import count_decisions
from tests import brute
from tests.brute import assert_close, examples, proba_cases, thresholds

NAN = float("nan")
TRUTH, PROBA = [0, 1, 1, 0], [0.125, 0.875, 0.375, 0.75]  # confidences .875 .875 .625 .75; 2 errors

any_threshold = st.one_of(
    thresholds, st.floats(-2, 2), st.sampled_from([0.25, 0.5, 1.0, math.inf, -math.inf])
)


# Definitions -----------------------------------------------------------------------------


@examples(50)
@given(proba_cases(), any_threshold)
def test_rows_that_are_counted_without_a_sort_have_the_values_of_the_curve(case, t):
    outcomes = Outcomes.from_proba(case.y_true, case.y_proba, **case.options)
    for name in ("coverage", "generalized_risk", "selective_cost"):
        alone = getattr(metrics, f"{name}_score")
        of_curve = evaluate(outcomes, {name: {"threshold": t}})[name]
        assert alone(case.y_true, case.y_proba, threshold=t, **case.options) == of_curve


@examples(150)
@given(proba_cases(), any_threshold)
def test_coverage_is_the_share_of_rows_that_reach_the_threshold(case, t):
    actual = metrics.coverage_score(case.y_true, case.y_proba, threshold=t, **case.options)
    assert_close(actual, brute.coverage(case.rows(), t))


@examples(150)
@given(proba_cases(), any_threshold)
def test_selective_risk_and_accuracy_are_those_of_the_accepted_rows(case, t):
    if not brute.accepted(case.rows(), t):
        return  # tested with its warning below
    arguments = {"threshold": t, **case.options}
    expected = brute.selective_risk(case.rows(), t)
    assert_close(metrics.selective_risk_score(case.y_true, case.y_proba, **arguments), expected)
    actual = metrics.selective_accuracy_score(case.y_true, case.y_proba, **arguments)
    assert_close(actual, 1 - expected)


@examples(100)
@given(proba_cases(), any_threshold)
def test_generalized_risk_is_the_loss_of_accepted_rows_over_all_rows(case, t):
    actual = metrics.generalized_risk_score(case.y_true, case.y_proba, threshold=t, **case.options)
    assert_close(actual, brute.generalized_risk(case.rows(), t))


@examples(100)
@given(proba_cases(), any_threshold, st.floats(0, 3))
def test_selective_cost_charges_errors_and_abstentions(case, t, cost):
    actual = metrics.selective_cost_score(
        case.y_true, case.y_proba, threshold=t, abstention_cost=cost, **case.options
    )
    assert_close(actual, brute.selective_cost(case.rows(), t, cost))


@pytest.mark.parametrize("normalize", ["selected", "all"])
@examples(100)
@given(case=proba_cases(), t=thresholds)
def test_cwsa_and_cwsa_plus_are_their_definitions(normalize, case, t):
    arguments = {"threshold": t, "normalize": normalize, **case.options}
    expected = brute.cwsa(case.rows(), t, normalize=normalize)
    assert_close(metrics.cwsa_score(case.y_true, case.y_proba, **arguments), expected)
    expected = brute.cwsa(case.rows(), t, plus=True, normalize=normalize)
    assert_close(metrics.cwsa_plus_score(case.y_true, case.y_proba, **arguments), expected)


@pytest.mark.parametrize("confidence", ["margin", "entropy", "gini"])
@examples(40)
@given(case=proba_cases(), t=st.floats(0, 0.95))
def test_cwsa_reads_the_confidence_asked_for(confidence, case, t):
    rows = case.rows(confidence)
    if any(abs(float(row.confidence) - t) < 1e-9 for row in rows):
        return  # the last bit of the confidence would decide
    actual = metrics.cwsa_score(
        case.y_true, case.y_proba, threshold=t, confidence=confidence, **case.options
    )
    assert_close(actual, brute.cwsa(rows, t))


@pytest.mark.parametrize("normalize", ["selected", "all"])
@examples(60)
@given(case=proba_cases(), t=thresholds)
def test_contributions_are_what_each_row_adds(normalize, case, t):
    arguments = {"threshold": t, "normalize": normalize, **case.options}
    adds = metrics.cwsa_contributions(case.y_true, case.y_proba, **arguments)
    rows = case.rows()
    norm = brute.weight_of(brute.accepted(rows, t) if normalize == "selected" else rows)
    expected = [
        brute.cwsa_sum(brute.accepted([row], t), brute.Fraction(t), plus=False) / (norm or 1)
        for row in rows
    ]
    counted = np.ones(len(adds), bool) if case.weight is None else case.weight > 0
    assert_close(adds[counted], expected)
    assert np.all(adds[~counted] == 0)
    score = metrics.cwsa_score(case.y_true, case.y_proba, **arguments)
    assert math.fsum(adds) == pytest.approx(score, rel=1e-12, abs=1e-13)


# Known values and relations ---------------------------------------------------------------


def test_known_values():
    at = {"threshold": 0.75}
    assert metrics.coverage_score(TRUTH, PROBA, **at) == 0.75
    assert metrics.selective_risk_score(TRUTH, PROBA, **at) == 1 / 3
    assert_close(metrics.selective_accuracy_score(TRUTH, PROBA, **at), 2 / 3)
    assert metrics.generalized_risk_score(TRUTH, PROBA, **at) == 0.25
    assert metrics.selective_cost_score(TRUTH, PROBA, abstention_cost=0.5, **at) == 0.375
    # At .5: phi = .75, .75, .25 and .5; the last two are errors.
    assert metrics.cwsa_score(TRUTH, PROBA, threshold=0.5) == (1.5 - 0.75) / 4
    assert metrics.cwsa_plus_score(TRUTH, PROBA, threshold=0.5) == 1.5 / 4
    assert_close(metrics.cwsa_score(TRUTH, PROBA, threshold=0.8125, normalize="all"), (2 / 3) / 4)


@pytest.mark.parametrize(
    "name", [name for name, spec in metrics.SPECS.items() if spec.at_threshold]
)
def test_the_threshold_is_one_half_by_default(name):
    metric = metrics.SPECS[name].function
    y_true, y_proba = [0, 1, 2], [[0.5, 0.25, 0.25], [0.4, 0.3, 0.3], [0.1, 0.2, 0.7]]
    assert metric(y_true, y_proba) == metric(y_true, y_proba, threshold=0.5)


def test_a_confidence_equal_to_the_threshold_is_accepted():
    y_proba = np.array([[0.7, 0.3], [0.3, 0.7]])
    assert metrics.coverage_score([0, 1], y_proba, threshold=0.7) == 1.0
    assert metrics.coverage_score([0, 1], y_proba, threshold=math.nextafter(0.7, 1)) == 0.0


def test_float32_probabilities_are_compared_as_float64():
    """float32(.7) is below .7."""
    y_proba = np.array([[0.7, 0.3], [0.3, 0.7]], dtype=np.float32)
    assert metrics.coverage_score([0, 1], y_proba, threshold=0.7) == 0.0
    assert metrics.coverage_score([0, 1], y_proba, threshold=np.float32(0.7)) == 1.0


@examples(60)
@given(proba_cases(), thresholds)
def test_cwsa_plus_never_exceeds_the_selective_accuracy(case, t):
    if not brute.accepted(case.rows(), t):
        return
    arguments = {"threshold": t, **case.options}
    plus = metrics.cwsa_plus_score(case.y_true, case.y_proba, **arguments)
    accuracy = metrics.selective_accuracy_score(case.y_true, case.y_proba, **arguments)
    assert plus <= accuracy + 1e-13
    assert metrics.cwsa_score(case.y_true, case.y_proba, **arguments) <= plus + 1e-13


@examples(60)
@given(proba_cases(), any_threshold)
def test_generalized_risk_is_coverage_times_selective_risk(case, t):
    if not brute.accepted(case.rows(), t):
        return
    arguments = {"threshold": t, **case.options}
    product = metrics.coverage_score(case.y_true, case.y_proba, **arguments)
    product *= metrics.selective_risk_score(case.y_true, case.y_proba, **arguments)
    actual = metrics.generalized_risk_score(case.y_true, case.y_proba, **arguments)
    assert_close(actual, product)


def test_coverage_never_exceeds_one():
    """A negligible row is rejected; adding it up must not make the total the smaller sum."""
    weight = [8.5, 1e-17, 5.1, 2.7, 3.1, 0.5, 0.8, 0.2]
    sure = np.where(np.array(weight) < 1e-9, 0.25, 0.9)
    value = metrics.coverage_score(
        [0] * 8, [[1.0, 0.0]] * 8, labels=[0, 1], confidence=sure, sample_weight=weight
    )
    assert value <= 1.0


def test_contributions_add_up_inside_subgroups():
    adds = metrics.cwsa_contributions(TRUTH, PROBA, threshold=0.5)
    assert adds.tolist() == [0.75 / 4, 0.75 / 4, -0.25 / 4, -0.5 / 4]


def test_a_graded_loss_counts_in_part():
    y_proba = [[0.75, 0.25], [0.25, 0.75]]
    graded = {"loss": lambda a, b: np.where(a == b, 0.0, 0.25), "labels": [0, 1]}
    options = {"threshold": 0.5, **graded}
    assert metrics.cwsa_score([0, 0], y_proba, **options) == (0.5 + 0.5 * 0.5) / 2
    assert metrics.cwsa_plus_score([0, 0], y_proba, **options) == (0.5 + 0.5 * 0.75) / 2
    assert metrics.selective_risk_score([0, 0], y_proba, **options) == 0.125


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 9000), st.booleans()), min_size=1), st.integers(1, 9000))
def test_cwsa_is_exact_next_to_certainty(rows, t):
    ulp = 2.0**-53
    sure = np.array([1 - k * ulp for k, _ in rows])
    y_true = np.array([int(wrong) for _, wrong in rows])
    y_proba = np.column_stack([sure, 1 - sure])
    exact = brute.rows_of(y_true, sure)
    at = 1 - t * ulp
    options = {"threshold": at, "labels": [0, 1]}
    actual = metrics.cwsa_score(y_true, y_proba, **options)
    assert_close(actual, brute.cwsa(exact, at), rel=0, tiny=1e-12)
    actual = metrics.cwsa_plus_score(y_true, y_proba, **options)
    assert_close(actual, brute.cwsa(exact, at, plus=True), rel=0, tiny=1e-12)


# Nothing accepted ------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.95, 1.5, math.inf])
@pytest.mark.parametrize("name", ["selective_risk_score", "selective_accuracy_score"])
def test_selective_risk_of_nothing_is_nan_with_a_warning(name, threshold):
    with pytest.warns(UserWarning, match=r"No row is accepted.*nan"):
        assert math.isnan(getattr(metrics, name)(TRUTH, PROBA, threshold=threshold))


def test_selective_risk_is_nan_where_only_rows_of_weight_zero_are_accepted():
    with pytest.warns(UserWarning, match="No row is accepted"):
        value = metrics.selective_risk_score(
            TRUTH, PROBA, threshold=0.8, sample_weight=[0, 0, 1, 1]
        )
    assert math.isnan(value)


def test_values_of_the_empty_set():
    at = {"threshold": 0.95}
    assert metrics.coverage_score(TRUTH, PROBA, **at) == 0.0
    assert metrics.generalized_risk_score(TRUTH, PROBA, **at) == 0.0
    assert metrics.selective_cost_score(TRUTH, PROBA, abstention_cost=0.3, **at) == 0.3
    for normalize in ("selected", "all"):
        assert metrics.cwsa_score(TRUTH, PROBA, normalize=normalize, **at) == 0.0
        assert metrics.cwsa_plus_score(TRUTH, PROBA, normalize=normalize, **at) == 0.0
    assert metrics.cwsa_contributions(TRUTH, PROBA, **at).tolist() == [0.0] * 4


# Bad input -------------------------------------------------------------------------------

CWSA = ["cwsa_score", "cwsa_plus_score", "cwsa_contributions"]
PLAIN = [
    "coverage_score",
    "selective_risk_score",
    "selective_accuracy_score",
    "generalized_risk_score",
    "selective_cost_score",
]


@pytest.mark.parametrize("name", CWSA)
@pytest.mark.parametrize(
    "threshold",
    [1.0, 1, 1.5, -0.1, NAN, math.inf, -math.inf, None, "0.5", "high", [0.5], [0.5, 0.6]],
    ids=repr,
)
def test_cwsa_refuses_a_threshold_outside_zero_to_one(name, threshold):
    with pytest.raises(ValueError, match="threshold"):
        getattr(metrics, name)(TRUTH, PROBA, threshold=threshold)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("threshold", [NAN, None, "0.5", [0.5], [0.5, 0.6], True], ids=repr)
def test_a_threshold_that_is_no_number_is_refused(name, threshold):
    with pytest.raises(ValueError, match="threshold"):
        getattr(metrics, name)(TRUTH, PROBA, threshold=threshold)


@pytest.mark.parametrize("name", CWSA)
@pytest.mark.parametrize("normalize", ["none", "Selected", None, True])
def test_an_unknown_normalize_is_refused(name, normalize):
    with pytest.raises(ValueError, match="normalize"):
        getattr(metrics, name)(TRUTH, PROBA, normalize=normalize)


@pytest.mark.parametrize("cost", [-0.1, NAN, math.inf, "cheap", None])
def test_a_bad_abstention_cost_is_refused(cost):
    with pytest.raises(ValueError, match="abstention_cost"):
        metrics.selective_cost_score(TRUTH, PROBA, abstention_cost=cost)


@pytest.mark.parametrize("name", CWSA)
@pytest.mark.parametrize("confidence", [[1.5, 0.2, 0.3, 0.4], lambda p: p[:, 0] - 0.5])
def test_cwsa_refuses_confidences_that_are_no_probabilities(name, confidence):
    with pytest.raises(ValueError, match=r"CWSA.*confidence.*\[0, 1\]"):
        getattr(metrics, name)(TRUTH, PROBA, confidence=confidence)


@pytest.mark.parametrize("name", PLAIN)
def test_other_metrics_take_thresholds_and_confidences_of_any_size(name):
    options = {"confidence": [-30.0, 20.0, 10.0, 5.0], "threshold": 7.0}
    assert math.isfinite(getattr(metrics, name)(TRUTH, PROBA, **options))
    assert metrics.coverage_score(TRUTH, PROBA, **options) == 0.5


def _draw(rng, n=300, labels=("a", "b", "c")):
    y = rng.choice(labels, n)
    return y, rng.dirichlet(np.ones(len(labels)), n)


def _count(y, answers, accepted, labels, weight):
    """Count row by row: the definition."""
    counts = np.zeros((len(labels), len(labels) + 1))
    for true, answer, sure, w in zip(y, answers, accepted, weight, strict=True):
        column = labels.index(answer) if sure else len(labels)
        counts[labels.index(true), column] += w
    return counts


@pytest.mark.parametrize("threshold", [0.0, 0.4, 0.6, 0.9, np.inf])
def test_it_counts_rows(rng, threshold):
    labels = ["a", "b", "c"]
    y, p = _draw(rng)
    weight = rng.integers(0, 4, len(y))
    answers, accepted = np.array(labels)[p.argmax(axis=1)], p.max(axis=1) >= threshold
    found = selective_confusion_matrix(y, p, threshold=threshold)
    np.testing.assert_array_equal(found, _count(y, answers, accepted, labels, np.ones(len(y))))
    assert found.dtype.kind == "i"
    weighted = selective_confusion_matrix(y, p, threshold=threshold, sample_weight=weight)
    np.testing.assert_array_equal(weighted, _count(y, answers, accepted, labels, weight))


def test_a_weight_of_two_is_the_row_twice(rng):
    y, p = _draw(rng)
    weight = rng.integers(0, 4, len(y))
    one = selective_confusion_matrix(y, p, threshold=0.6, sample_weight=weight)
    two = selective_confusion_matrix(
        np.repeat(y, weight), np.repeat(p, weight, axis=0), threshold=0.6
    )
    np.testing.assert_array_equal(one, two)


def test_without_abstaining_it_is_that_of_scikit_learn(rng):
    y, p = _draw(rng)
    labels = ["c", "a", "b"]
    found = selective_confusion_matrix(y, p, threshold=0, labels=labels)
    answers = np.array(labels)[p.argmax(axis=1)]
    np.testing.assert_array_equal(found[:, :-1], confusion_matrix(y, answers, labels=labels))
    assert not np.any(found[:, -1])


def test_another_confidence(rng):
    y, p = _draw(rng)
    top = np.sort(p, axis=1)
    found = selective_confusion_matrix(y, p, threshold=0.3, confidence="margin")
    assert found[:, -1].sum() == np.sum(top[:, -1] - top[:, -2] < 0.3)


def test_unknown_classes_have_a_line_of_their_own():
    truth, answer = np.array([0, -1, -1, 1]), np.array([0, 1, 0, 0])
    accepted = np.array([True, True, False, True])
    found = count_decisions(truth, answer, accepted, 2)
    assert found.tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 1]]
    assert count_decisions(truth, answer, None, 2).tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 0]]


def test_refusals():
    with pytest.raises(ValueError, match="threshold"):
        selective_confusion_matrix([0, 1], [0.2, 0.7], threshold="high")
