"""How well confidence tells errors from right answers, against definitions and scikit-learn."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from sklearn.metrics import average_precision_score, roc_auc_score

from skselect import metrics
from tests import brute
from tests.brute import assert_close, examples, of_probabilities, of_rows, proba_cases, row_cases

TRUTH, PROBA = [0, 1, 1, 0], [0.125, 0.875, 0.375, 0.75]
SHARES = [0.0, 0.07, 0.1, 0.25, 0.29, 0.5, 0.9, 0.99]


# Definitions, slowly ---------------------------------------------------------------------


def right_weight(rows):
    return sum((row.weight * (1 - row.loss) for row in rows), Fraction(0))


def average_precision(rows, positive):
    """Add up precision times the gain in recall, the likeliest level first."""
    if positive == "error":
        score, truth = (lambda row: -row.confidence), (lambda row: row.loss)
    else:
        score, truth = (lambda row: row.confidence), (lambda row: 1 - row.loss)
    everything = sum(row.weight * truth(row) for row in rows)
    value, recall_before = Fraction(0), Fraction(0)
    for level in sorted({score(row) for row in rows}, reverse=True):
        called = [row for row in rows if score(row) >= level]
        found = sum(row.weight * truth(row) for row in called)
        value += (found / everything - recall_before) * found / brute.weight_of(called)
        recall_before = found / everything
    return value


def reviewed(rows, share):
    """Put right what an oracle reviews, the least sure first; `share` is read as a decimal."""
    budget = Fraction(str(share)) * brute.weight_of(rows)
    after = []
    for level in sorted({row.confidence for row in rows}):
        tied = [row for row in rows if row.confidence == level]
        part = min(budget / brute.weight_of(tied), Fraction(1))
        budget -= part * brute.weight_of(tied)
        after += [row._replace(loss=row.loss * (1 - part)) for row in tied]
    return after


def f1_retention(rows):
    """Integrate 2 T/(x + R) over the share x retained, numerically; tied rows come evenly."""
    total, share, right, area = brute.weight_of(rows), 0.0, 0.0, 0.0
    all_right = float(right_weight(rows) / total)
    for weight, mean_loss in brute.blocks(rows) if all_right else []:
        width, rate = float(weight / total), float(1 - mean_loss)

        def f1(x, share=share, right=right, rate=rate):
            return 2 * (right + rate * (x - share)) / (x + all_right)

        area += quad(f1, share, share + width)[0]
        share, right = share + width, right + rate * width
    return area


def f1_retention_by_rank(rows, copies):
    """Average 2 T_k/(k + R) over ranks k, each row of whole weight copied, errors spread."""
    total = copies * brute.weight_of(rows)
    retained, right, value = Fraction(0), Fraction(0), 0.0
    for weight, mean_loss in brute.blocks(rows):
        for _ in range(int(copies * weight)):
            retained, right = retained + 1, right + 1 - mean_loss
            value += float(2 * right / (retained + copies * right_weight(rows)))
    return value / float(total)


def auroc_aurc(case):
    """Loop over rows, and over pairs of accepted rows of different classes."""
    weight = np.ones(len(case.y_true)) if case.weight is None else case.weight
    rows = [
        (Fraction(w), Fraction(max(p)), Fraction(p[1]), y)
        for w, p, y in zip(
            weight.tolist(), case.y_proba.tolist(), case.y_true.tolist(), strict=True
        )
        if w > 0
    ]
    total, counted = Fraction(0), Fraction(0)
    for w, c, _, _ in rows:
        wins, pairs = Fraction(0), Fraction(0)
        for w1, c1, p1, y1 in rows:
            for w0, c0, p0, y0 in rows:
                if c1 >= c and c0 >= c and y1 == 1 and y0 == 0:
                    pairs += w1 * w0
                    wins += w1 * w0 * (Fraction(p1 > p0) + Fraction(p1 == p0) / 2)
        if pairs:
            total, counted = total + w * (1 - wins / pairs), counted + w
    return total / counted if counted else math.nan


# Definitions -----------------------------------------------------------------------------


def both_kinds(rows):
    return any(row.loss < 1 for row in rows) and any(row.loss > 0 for row in rows)


@examples(80)
@given(row_cases(unit=False, max_rows=30))
def test_failure_auroc_is_its_definition(case):
    if both_kinds(case.rows):
        actual = of_rows(metrics.failure_auroc_score, case)
        assert_close(actual, brute.failure_auroc(case.rows))


@pytest.mark.parametrize("positive", ["error", "correct"])
@examples(60)
@given(case=row_cases(unit=False))
def test_failure_average_precision_is_its_definition(positive, case):
    rows = case.rows
    if any(row.loss > 0 for row in rows) if positive == "error" else right_weight(rows):
        actual = of_rows(metrics.failure_average_precision_score, case, positive=positive)
        assert_close(actual, average_precision(rows, positive))


@examples(80)
@given(row_cases(max_rows=30, weights=("none", "integer")), st.sampled_from(SHARES))
def test_oc_auc_is_the_auroc_after_review(case, share):
    rows = reviewed(case.rows, share)
    if both_kinds(rows):
        actual = of_rows(metrics.oc_auc_score, case, review_fraction=share)
        assert_close(actual, brute.failure_auroc(rows))


@examples(60)
@given(row_cases(max_rows=30))
def test_f1_retention_is_its_definition(case):
    actual = of_rows(metrics.f1_retention_auc_score, case)
    assert_close(actual, f1_retention(case.rows), rel=1e-9, tiny=1e-11)


@examples(10)
@given(row_cases(max_rows=6, weights=("none",)))
def test_f1_retention_is_the_mean_over_ranks_of_many_copies(case):
    actual = of_rows(metrics.f1_retention_auc_score, case)
    assert abs(actual - f1_retention_by_rank(case.rows, 300)) < 2 / 300


@pytest.mark.filterwarnings("ignore:auroc_aurc is undefined")
@examples(50)
@given(proba_cases(classes=(2, 2), max_rows=20))
def test_auroc_aurc_is_its_definition(case):
    assert_close(of_probabilities(metrics.auroc_aurc_score, case), auroc_aurc(case))


# The same numbers from scikit-learn ------------------------------------------------------


@examples(60)
@given(proba_cases())
def test_scikit_learn_agrees(case):
    right = (case.y_proba.argmax(axis=1) == case.y_true).astype(int)
    weight = np.ones(len(right)) if case.weight is None else case.weight
    if len(np.unique(right[weight > 0])) < 2:
        return
    c = case.y_proba.max(axis=1)
    expected = roc_auc_score(right, c, sample_weight=weight)
    assert_close(of_probabilities(metrics.failure_auroc_score, case), expected)
    assert_close(of_probabilities(metrics.oc_auc_score, case, review_fraction=0), expected)
    precision = metrics.failure_average_precision_score
    expected = average_precision_score(1 - right, -c, sample_weight=weight)
    assert_close(of_probabilities(precision, case), expected)
    expected = average_precision_score(right, c, sample_weight=weight)
    assert_close(of_probabilities(precision, case, positive="correct"), expected)


@examples(40)
@given(proba_cases(classes=(2, 2), max_rows=30))
def test_auroc_aurc_is_the_mean_of_scikit_learns_auroc(case):
    weight = np.ones(len(case.y_true)) if case.weight is None else case.weight
    c, risks, counts = case.y_proba.max(axis=1), [], []
    for level, w in zip(c, weight, strict=True):
        kept = (c >= level) & (weight > 0)
        if w > 0 and len(np.unique(case.y_true[kept])) == 2:
            options = {"sample_weight": weight[kept]}
            risks.append(1 - roc_auc_score(case.y_true[kept], case.y_proba[kept, 1], **options))
            counts.append(w)
    if risks:
        actual = of_probabilities(metrics.auroc_aurc_score, case)
        assert_close(actual, np.average(risks, weights=counts), tiny=1e-11)


def test_auroc_aurc_of_many_rows():
    rng = np.random.default_rng(0)
    positive = rng.integers(0, 65, 300) / 64
    y_true = (rng.random(300) < positive).astype(int)
    confidence = np.maximum(positive, 1 - positive)
    risks = []
    for level in confidence:
        kept = confidence >= level
        if len(np.unique(y_true[kept])) == 2:
            risks.append(1 - roc_auc_score(y_true[kept], positive[kept]))
    assert_close(metrics.auroc_aurc_score(y_true, positive), np.mean(risks), rel=1e-10)


# Known values and relations --------------------------------------------------------------


def test_known_values():
    # Surest first: .875 .875 right, .75 wrong, .625 wrong; p_1 = .125 .875 .75 .375.
    assert metrics.failure_auroc_score(TRUTH, PROBA) == 1.0
    assert metrics.failure_average_precision_score(TRUTH, PROBA) == 1.0
    assert metrics.failure_average_precision_score(TRUTH, PROBA, positive="correct") == 1.0
    # Shares to 1/2 all right: 2 x/(x + 1/2); then the same 1/2: 1/(x + 1/2).
    expected = (1 - math.log(2)) + math.log(1.5 / 1)
    assert_close(metrics.f1_retention_auc_score(TRUTH, PROBA), expected)
    # AUROC of the 2, 2, 3 and 4 surest rows: 1, 1, 1, 3/4.
    assert metrics.auroc_aurc_score(TRUTH, PROBA) == 0.25 / 4


@pytest.mark.parametrize("n", [1, 7, 1000])
def test_a_perfect_classifier_has_the_f1_retention_of_the_docstring(n):
    case = brute.RowCase(np.zeros(n), np.linspace(0.5, 1, n), None)
    assert_close(of_rows(metrics.f1_retention_auc_score, case), 2 * (1 - math.log(2)))


def test_the_largest_f1_retention_has_errors():
    """All right rows, a share R, ahead of the errors; R = .556 is the best of all."""
    for n_right, value in [(5, 0.7123), (10, 0.6137), (2, 0.5622)]:
        loss = np.where(np.arange(10) < n_right, 0.0, 1.0)
        case = brute.RowCase(loss, np.linspace(1, 0.5, 10), None)
        assert_close(of_rows(metrics.f1_retention_auc_score, case), value, rel=1e-4)
    loss = np.where(np.arange(1000) < 556, 0.0, 1.0)
    case = brute.RowCase(loss, np.linspace(1, 0.5, 1000), None)
    assert_close(of_rows(metrics.f1_retention_auc_score, case), 0.7148, rel=1e-4)


def test_f1_retention_can_fall_when_an_error_becomes_right():
    """What the docstring warns of: R grows."""
    confidence = np.linspace(1, 0.5, 10)
    loss = np.array([0.0] + [1.0] * 9)
    before = of_rows(metrics.f1_retention_auc_score, brute.RowCase(loss, confidence, None))
    loss[-1] = 0.0
    after = of_rows(metrics.f1_retention_auc_score, brute.RowCase(loss, confidence, None))
    assert after < before


def test_a_constant_confidence_ranks_nothing():
    y_true, y_proba = [0, 0, 0, 1], [[0.75, 0.25]] * 4
    assert metrics.failure_auroc_score(y_true, y_proba) == 0.5
    assert metrics.failure_average_precision_score(y_true, y_proba) == 0.25
    assert metrics.failure_average_precision_score(y_true, y_proba, positive="correct") == 0.75
    assert metrics.oc_auc_score(y_true, y_proba, review_fraction=0.5) == 0.5
    assert metrics.auroc_aurc_score(y_true, y_proba) == 0.5


@pytest.mark.parametrize("share", [0.07, 0.14, 0.28, 0.29, 0.55, 0.57, 0.58])
def test_a_review_of_all_errors_leaves_none_though_the_share_rounds(share):
    """A share times n may round below the whole number that it stands for."""
    n_wrong = round(100 * share)
    loss = np.where(np.arange(100) < n_wrong, 1.0, 0.0)
    case = brute.RowCase(loss, np.linspace(0.5, 1, 100), None)
    with pytest.warns(UserWarning, match="no errors"):
        assert math.isnan(of_rows(metrics.oc_auc_score, case, review_fraction=share))


UNDEFINED = {
    "failure_auroc, no errors": ("failure_auroc", [0, 1], {}, "no errors"),
    "failure_auroc, all errors": ("failure_auroc", [1, 0], {}, "no right answers"),
    "errors, none": ("failure_average_precision", [0, 1], {}, "no errors"),
    "right answers, none": (
        "failure_average_precision", [1, 0], {"positive": "correct"}, "no right answers"),
    "oc_auc, no errors": ("oc_auc", [0, 1], {}, "no errors"),
    "oc_auc, all errors reviewed": ("oc_auc", [0, 0], {"review_fraction": 0.5}, "no errors"),
    "oc_auc, all errors": ("oc_auc", [1, 0], {"review_fraction": 0}, "no right answers"),
    "auroc_aurc, one class": ("auroc_aurc", [1, 1], {}, "not rows of both classes"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "y_true", "options", "reason"), UNDEFINED.values(), ids=UNDEFINED)
def test_an_undefined_value_is_nan_with_its_reason(name, y_true, options, reason):
    metric, y_proba = getattr(metrics, f"{name}_score"), [[0.75, 0.25], [0.375, 0.625]]
    with pytest.warns(UserWarning, match=rf"{name} is undefined \(nan\).*{reason}"):
        assert math.isnan(metric(y_true, y_proba, labels=[0, 1], **options))


def test_an_error_rate_of_one_is_found_with_certainty():
    y_proba = [[0.75, 0.25], [0.375, 0.625]]
    assert metrics.failure_average_precision_score([1, 0], y_proba) == 1.0
    assert metrics.f1_retention_auc_score([1, 0], y_proba) == 0.0


# Bad input -------------------------------------------------------------------------------

BAD = {
    "review of everything": ("oc_auc_score", {"review_fraction": 1.0}, "review_fraction"),
    "review negative": ("oc_auc_score", {"review_fraction": -0.1}, "review_fraction"),
    "review in percent": ("oc_auc_score", {"review_fraction": 10}, "review_fraction"),
    "positive": ("failure_average_precision_score", {"positive": "wrong"}, "positive"),
}


@pytest.mark.parametrize(("name", "options", "argument"), BAD.values(), ids=BAD)
def test_a_bad_argument_is_named(name, options, argument):
    with pytest.raises(ValueError, match=argument):
        getattr(metrics, name)(TRUTH, PROBA, **options)


@pytest.mark.parametrize(
    ("y_true", "y_proba"),
    [([0, 1, 2], [[0.5, 0.25, 0.25]] * 3), ([3, 3], [[1.0], [1.0]])],
    ids=["three classes", "one column"],
)
def test_auroc_aurc_needs_two_classes(y_true, y_proba):
    with pytest.raises(ValueError, match="auroc_aurc needs two classes"):
        metrics.auroc_aurc_score(y_true, y_proba)
