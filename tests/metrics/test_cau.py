"""Correctness-aligned uncertainty against loops over rows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skselect import metrics
from tests.brute import assert_close, examples, of_probabilities, proba_cases

TRUTH, PROBA = [0, 1, 1, 0], [0.125, 0.875, 0.375, 0.75]
EPS = [1e-8, 2.0**-10, 0.25]

quiet = pytest.mark.filterwarnings("ignore:cau. there are no")


# Definition, slowly ----------------------------------------------------------------------


def normalised_entropy(p, eps):
    """Return the entropy over log K, clipped; 0 log 0 is 0."""
    h = math.fsum(-x * math.log(x) for x in p if x > 0) / math.log(len(p))
    return min(max(h, eps), 1 - eps)


def components(case, eps):
    """Return the weighted means of -log(1 - h) over right rows and -log h over wrong ones."""
    weight = np.ones(len(case.y_true)) if case.weight is None else case.weight
    sums, totals = [0.0, 0.0], [0.0, 0.0]
    table = zip(weight.tolist(), case.y_proba.tolist(), case.y_true.tolist(), strict=True)
    for w, p, y in table:
        if w > 0:
            wrong, h = int(p.index(max(p)) != y), normalised_entropy(p, eps)
            sums[wrong] += w * -(math.log(h) if wrong else math.log(1 - h))
            totals[wrong] += w
    means = [s / t if t else math.nan for s, t in zip(sums, totals, strict=True)]
    return means, totals


# Definition ------------------------------------------------------------------------------


@pytest.mark.parametrize("eps", EPS)
@examples(60)
@given(case=proba_cases())
def test_the_components_are_their_definitions(eps, case):
    parts = of_probabilities(metrics.cau_components, case, eps=eps)
    means, counts = components(case, eps)
    # A clipped 1 - h is as exact as 1 - (1 - eps).
    assert_close([parts.cau_1, parts.cau_0], means, rel=1e-7)
    assert_close([parts.n_right, parts.n_wrong], counts)


def test_rows_without_weight_are_neither_right_nor_wrong():
    parts = metrics.cau_components(TRUTH, PROBA, sample_weight=[0, 0, 1, 2])
    assert math.isnan(parts.cau_1)
    assert (parts.n_right, parts.n_wrong) == (0.0, 3.0)


@quiet
@examples(60)
@given(proba_cases(), st.sampled_from([0.0, 0.5, 1.0, 3.0]))
def test_the_score_is_the_sum_of_what_there_is(case, factor):
    (right, wrong), _ = components(case, 1e-8)
    expected = (0 if math.isnan(right) else right) + (0 if math.isnan(wrong) else factor * wrong)
    assert_close(of_probabilities(metrics.cau_score, case, lambda_=factor), expected, rel=1e-7)


@examples(60)
@given(proba_cases(), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([1.0, 4.0]))
def test_the_cost_is_the_mean_over_all_rows(case, cost_right, cost_wrong):
    weight = np.ones(len(case.y_true)) if case.weight is None else case.weight
    total = 0.0
    for w, p, y in zip(weight.tolist(), case.y_proba.tolist(), case.y_true.tolist(), strict=True):
        h = normalised_entropy(p, 1e-8)
        right = p.index(max(p)) == y
        total += w * (cost_right * -math.log(1 - h) if right else cost_wrong * -math.log(h))
    options = {"cost_right": cost_right, "cost_wrong": cost_wrong}
    actual = of_probabilities(metrics.cau_cost_score, case, **options)
    assert_close(actual, total / weight.sum(), rel=1e-7)


@examples(60)
@given(proba_cases())
@pytest.mark.filterwarnings("ignore:(right|wrong)_entropy is undefined")
def test_the_entropies_are_means_over_right_and_over_wrong_rows(case):
    weight = np.ones(len(case.y_true)) if case.weight is None else case.weight
    table = list(zip(weight.tolist(), case.y_proba.tolist(), case.y_true.tolist(), strict=True))
    for kind in ("right", "wrong"):
        found = [
            (w, normalised_entropy(p, 0.0))
            for w, p, y in table
            if w > 0 and (p.index(max(p)) == y) == (kind == "right")
        ]
        total = sum(w for w, _ in found)
        expected = math.fsum(w * h for w, h in found) / total if found else math.nan
        metric = getattr(metrics, f"{kind}_entropy_score")
        assert_close(of_probabilities(metric, case), expected)
        in_nats = of_probabilities(metric, case, normalize=False)
        assert_close(in_nats, expected * math.log(len(case.labels)))


def test_known_values():
    # h of (1/4, 3/4) in units of log 2; .125 .875 right, .375 wrong.
    def h(p):
        return -(p * math.log2(p) + (1 - p) * math.log2(1 - p))

    right, wrong = -math.log(1 - h(0.125)), -(math.log(h(0.375)) + math.log(h(0.75))) / 2
    parts = metrics.cau_components(TRUTH, PROBA)
    assert_close([parts.cau_1, parts.cau_0], [right, wrong])
    assert (parts.n_right, parts.n_wrong) == (2, 2)
    assert_close(metrics.cau_score(TRUTH, PROBA), right + wrong)
    assert_close(metrics.cau_score(TRUTH, PROBA, lambda_=0.25), right + wrong / 4)
    assert_close(metrics.cau_cost_score(TRUTH, PROBA), (right + wrong) / 2)
    assert_close(metrics.cau_cost_score(TRUTH, PROBA, cost_wrong=3), (right + 3 * wrong) / 2)
    assert_close(metrics.right_entropy_score(TRUTH, PROBA), h(0.125))
    assert_close(metrics.wrong_entropy_score(TRUTH, PROBA), (h(0.375) + h(0.75)) / 2)


def test_certainty_is_best_where_right_and_worst_where_wrong():
    certain, unsure = [[1.0, 0.0]], [[0.5, 0.5]]
    options = {"labels": [0, 1], "eps": 1e-4}
    assert_close(metrics.cau_components([0], certain, **options).cau_1, -math.log(1 - 1e-4))
    assert_close(metrics.cau_components([0], unsure, **options).cau_1, -math.log(1e-4))
    assert_close(metrics.cau_components([1], certain, **options).cau_0, -math.log(1e-4))
    assert_close(metrics.cau_components([1], unsure, **options).cau_0, -math.log(1 - 1e-4))


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
def test_uniform_probabilities_have_entropy_one_for_any_number_of_classes(n_classes):
    y_proba = np.full((1, n_classes), 1 / n_classes)
    parts = metrics.cau_components([1], y_proba, labels=range(n_classes), eps=0.125)
    assert_close(parts.cau_0, -math.log(1 - 0.125))
    assert math.isnan(parts.cau_1)


# A part without rows ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y_true", "name", "rows"), [([0, 1], "CAU_0", "errors"), ([1, 0], "CAU_1", "right rows")]
)
def test_a_part_without_rows_is_nan_and_left_out_with_a_warning(y_true, name, rows):
    y_proba = [[0.75, 0.25], [0.125, 0.875]]
    parts = metrics.cau_components(y_true, y_proba)
    missing, other = (parts.cau_0, parts.cau_1) if name == "CAU_0" else (parts.cau_1, parts.cau_0)
    assert math.isnan(missing)
    with pytest.warns(UserWarning, match=f"cau: there are no {rows}, so {name} is left out"):
        assert metrics.cau_score(y_true, y_proba) == other


def test_rows_of_weight_zero_are_not_counted():
    parts = metrics.cau_components(TRUTH, PROBA, sample_weight=[1, 0, 2, 0])
    assert (parts.n_right, parts.n_wrong) == (1, 2)


# Bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize("option", [{"cost_right": -1}, {"cost_wrong": "auto"}], ids=str)
def test_a_bad_cost_is_named(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        metrics.cau_cost_score(TRUTH, PROBA, **option)


BAD = {
    "eps zero": ({"eps": 0.0}, "eps"),
    "eps one half": ({"eps": 0.5}, "eps"),
    "lambda negative": ({"lambda_": -1.0}, "lambda_"),
    "lambda text": ({"lambda_": "auto"}, "lambda_"),
}


@pytest.mark.parametrize(("options", "argument"), BAD.values(), ids=BAD)
def test_a_bad_argument_is_named(options, argument):
    with pytest.raises(ValueError, match=argument):
        metrics.cau_score(TRUTH, PROBA, **options)


@pytest.mark.parametrize(
    "name", ["cau_score", "cau_components", "cau_cost_score", "right_entropy_score"]
)
@pytest.mark.parametrize("option", [{"confidence": "margin"}, {"loss": "zero_one"}], ids=str)
def test_entropy_takes_no_confidence_and_no_loss(name, option):
    with pytest.raises(TypeError, match=next(iter(option))):
        getattr(metrics, name)(TRUTH, PROBA, **option)
