"""Metrics at one threshold: what each row adds, the last bit, subgroups, the confusion matrix."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from skselect import metrics
from skselect.metrics import selective_confusion_matrix
from skselect.metrics._threshold import count_decisions
from tests import brute
from tests.kinds import CONTAINERS, THREE
from tests.refusals import check_refused, refusals

TRUTH, PROBA = [0, 1, 1, 0], [0.125, 0.875, 0.375, 0.75]  # confidences .875 .875 .625 .75; 2 errors


@pytest.mark.parametrize("normalize", ["selected", "all"])
@brute.examples(60)
@given(case=brute.proba_cases(), t=brute.thresholds)
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
    brute.assert_close(adds[counted], expected)
    assert np.all(adds[~counted] == 0)
    score = metrics.cwsa_score(case.y_true, case.y_proba, **arguments)
    assert math.fsum(adds) == pytest.approx(score, rel=1e-12, abs=1e-13)


def test_a_confidence_equal_to_the_threshold_is_accepted_and_compared_as_float64():
    y_proba = np.array([[0.7, 0.3], [0.3, 0.7]])
    single = y_proba.astype(np.float32)  # float32(.7) is below .7
    for proba, threshold, expected in [
        (y_proba, 0.7, 1.0), (y_proba, math.nextafter(0.7, 1), 0.0),
        (single, 0.7, 0.0), (single, np.float32(0.7), 1.0),
    ]:  # fmt: skip
        assert metrics.coverage_score([0, 1], proba, threshold=threshold) == expected


def test_coverage_never_exceeds_one():
    """A negligible row is rejected; adding it up must not make the total the smaller sum."""
    weight = [8.5, 1e-17, 5.1, 2.7, 3.1, 0.5, 0.8, 0.2]
    sure = np.where(np.array(weight) < 1e-9, 0.25, 0.9)
    options = {"labels": [0, 1], "confidence": sure, "sample_weight": weight}
    assert metrics.coverage_score([0] * 8, [[1.0, 0.0]] * 8, **options) <= 1.0


# Gaps between subgroups ----------------------------------------------------------------------

GAPS = {"coverage": metrics.coverage_gap_score, "selective_risk": metrics.risk_gap_score}


def _largest_difference(share, case, groups, t):
    """Take the largest difference over all pairs of subgroups that have a share: the definition."""
    found = []
    for group in np.unique(groups):
        part = groups == group
        weight = None if case.weight is None else case.weight[part]
        rows = brute.rows_of(case.loss[part], case.confidence[part], weight)
        if rows:
            found.append(getattr(brute, share)(rows, t))
    defined = [value for value in found if value == value]
    if len(defined) < 2:
        return math.nan, len(found)
    return max(abs(a - b) for a in defined for b in defined), len(found)


@pytest.mark.parametrize("share", GAPS)
@brute.examples(100)
@given(
    case=brute.row_cases(), t=brute.thresholds, n_groups=st.integers(1, 5), seed=st.integers(0, 99)
)
def test_a_gap_is_the_largest_difference_over_all_pairs(share, case, t, n_groups, seed):
    groups = np.random.default_rng(seed).integers(0, n_groups, len(case.loss))
    expected, n_found = _largest_difference(share, case, groups, t)

    def score(case, groups):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return brute.of_rows(GAPS[share], case, subgroups=groups, threshold=t)

    if n_found < 2:
        with pytest.raises(ValueError, match="at least two subgroups"):
            score(case, groups)
        return
    value = score(case, groups)
    brute.assert_close(value, expected)
    order = np.random.default_rng(seed).permutation(len(groups))
    weight = None if case.weight is None else case.weight[order]
    brute.assert_close(
        score(brute.RowCase(case.loss[order], case.confidence[order], weight), groups[order]), value
    )
    if case.weight is not None and np.all(case.weight % 1 == 0):
        often = np.repeat(np.arange(len(groups)), case.weight.astype(int))
        twice = brute.RowCase(case.loss[often], case.confidence[often], None)
        brute.assert_close(score(twice, groups[often]), value)


def test_the_decisions_of_a_policy_will_do():
    at = {"subgroups": list("aabb"), "confidence": np.array([True, True, False, True])}
    assert metrics.coverage_gap_score(TRUTH, PROBA, **at) == 0.5


def test_subgroups_of_every_kind_have_the_same_gap(rng):
    for container, labels in itertools.product(CONTAINERS.values(), THREE.values()):
        y, p = rng.integers(0, 2, 60), rng.random(60)
        codes = rng.integers(0, 3, 60)
        expected = metrics.risk_gap_score(y, p, subgroups=codes, threshold=0.6)
        given = container(labels[codes])
        assert metrics.risk_gap_score(y, p, subgroups=given, threshold=0.6) == expected
        assert metrics.risk_gap_score(y, p, subgroups={"sex": given}, threshold=0.6) == expected
    for missing in (None, math.nan, pd.NaT):  # a subgroup of their own
        subgroups = ["a", "a", missing, missing]
        assert metrics.coverage_gap_score(TRUTH, PROBA, subgroups=subgroups, threshold=0.75) == 0.5


def test_a_subgroup_without_an_accepted_row_is_left_out_of_the_risk_gap():
    at = {"threshold": 0.75, "subgroups": ["a", "b", "nobody", "c"]}
    with pytest.warns(UserWarning, match=r"No row is accepted in the subgroups \['nobody'\]"):
        assert metrics.risk_gap_score(TRUTH, PROBA, **at) == 1.0
    assert metrics.coverage_gap_score(TRUTH, PROBA, **at) == 1.0
    for threshold, subgroups in [(0.75, list("aaba")), (np.inf, list("abca"))]:
        with pytest.warns(UserWarning, match="Fewer than two are left: the gap is nan"):
            value = metrics.risk_gap_score(TRUTH, PROBA, threshold=threshold, subgroups=subgroups)
        assert math.isnan(value)
    assert metrics.coverage_gap_score(TRUTH, PROBA, threshold=np.inf, subgroups=list("abca")) == 0


@pytest.mark.parametrize("gap", GAPS.values())
@refusals({
    "subgroups": [
        {"subgroups": bad} for bad in (["f"] * 4, [1] * 4, list("fm"), "ffmm",
                                       {"sex": list("ffmm"), "old": list("ffmm")})
    ] + [{"subgroups": list("ffmm"), "sample_weight": [1, 1, 0, 0]}],
    "threshold": [{"subgroups": list("ffmm"), "threshold": "high"}],
})  # fmt: skip
def test_bad_subgroups_are_explained(gap, argument, call):
    check_refused(argument, lambda: gap(TRUTH, PROBA, **call))


# The confusion matrix --------------------------------------------------------------------


def _draw(rng, n=300, labels=("a", "b", "c")):
    return rng.choice(labels, n), rng.dirichlet(np.ones(len(labels)), n)


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
    top = np.sort(p, axis=1)
    found = selective_confusion_matrix(y, p, threshold=threshold, confidence="margin")
    assert found[:, -1].sum() == np.sum(top[:, -1] - top[:, -2] < threshold)


def test_unknown_classes_have_a_line_of_their_own():
    truth, answer = np.array([0, -1, -1, 1]), np.array([0, 1, 0, 0])
    accepted = np.array([True, True, False, True])
    found = count_decisions(truth, answer, accepted, 2)
    assert found.tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 1]]
    assert count_decisions(truth, answer, None, 2).tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 0]]
