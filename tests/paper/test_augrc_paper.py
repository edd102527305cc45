"""Traub et al. 2024: AUGRC is a mean of silent failures, and eq. 7 ties it to the AUROC.

By eq. 7 AUGRC falls in the accuracy and in the failure AUROC. AURC does not: one sure error can
outweigh a better classifier that also ranks its errors better.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from skselect import Outcomes, RiskCoverageCurve
from skselect.metrics import SPECS

augrc = SPECS["augrc"].kernel
aurc = SPECS["aurc"].kernel
failure_auroc = SPECS["failure_auroc"].kernel


def ranked(marks):
    """Return the curve of answers, the surest first: + is right, - is wrong."""
    n = len(marks)
    return RiskCoverageCurve.from_outcomes(
        Outcomes([mark == "-" for mark in marks], np.arange(n, 0, -1) / n)
    )


#: Accuracy, AUROC_f, AURC and AUGRC in the first table of docs/paper_augrc.md.
RANKINGS = {
    "++++++++++-----+++++": (0.75, 0.667, 0.125, 0.094),
    "-+++++++++++++++----": (0.75, 0.800, 0.206, 0.069),
    "++++++++++++-----+++": (0.75, 0.800, 0.088, 0.069),
    "-++++++++++++++++---": (0.80, 0.750, 0.195, 0.060),
}


@pytest.mark.parametrize("marks", RANKINGS)
def test_rankings_of_the_page(marks):
    curve = ranked(marks)
    found = [marks.count("+") / 20, failure_auroc(curve), aurc(curve), augrc(curve)]
    assert [round(value, 3) for value in found] == list(RANKINGS[marks])


def test_what_an_error_adds_by_its_rank():
    # Figure 2a: 1/n sum over k >= rank of 1/k for AURC, a straight line for AUGRC.
    n = 20
    ranks = np.arange(1, n + 1)
    curves = [ranked("+" * (rank - 1) + "-" + "+" * (n - rank)) for rank in ranks]
    from_aurc = np.array([aurc(curve) for curve in curves])
    from_augrc = np.array([augrc(curve) for curve in curves])
    np.testing.assert_allclose(from_aurc, np.cumsum(1 / ranks[::-1])[::-1] / n)
    np.testing.assert_allclose(from_augrc, (n - ranks + 0.5) / n**2)
    assert from_aurc[[0, -1]].round(4).tolist() == [0.1799, 0.0025]
    assert from_augrc[[0, -1]].round(3).tolist() == [0.049, 0.001]
    # Errors add up in both.
    for marks in RANKINGS:
        wrong = [mark == "-" for mark in marks]
        assert aurc(ranked(marks)) == pytest.approx(from_aurc[wrong].sum())
        assert augrc(ranked(marks)) == pytest.approx(from_augrc[wrong].sum())


#: How often a metric gets worse although accuracy and AUROC_f do not, in percent.
CONTRADICTIONS = {
    "failure_average_precision": 40.7,
    "oc_auc": 7.4,
    "eaurc": 7.3,
    "aurc": 2.3,
    "f1_retention_auc": 0.5,
    "augrc": 0.0,
}


@pytest.fixture(scope="module")
def rankings_of_eight():
    """Return the rankings of eight answers, right and wrong ones: curve, accuracy, AUROC_f."""
    rankings = [marks for marks in product("+-", repeat=8) if len(set(marks)) == 2]
    assert len(rankings) == 254
    curves = [ranked(marks) for marks in rankings]
    accuracies = np.array([marks.count("+") / 8 for marks in rankings])
    aurocs = np.array([failure_auroc(curve) for curve in curves])
    return curves, accuracies, aurocs


def differences(values):
    """Return each value minus each other one, without the noise of rounding."""
    return (values[:, np.newaxis] - values).round(9)


def test_requirement_1_the_failure_auroc_ignores_accuracy():
    rankings = ["+++-", "++--", "+---"]
    assert {failure_auroc(ranked(marks)) for marks in rankings} == {1.0}
    assert np.all(np.diff([augrc(ranked(marks)) for marks in rankings]) > 0)


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_requirement_2_of_all_rankings(rankings_of_eight, name):
    curves, accuracies, aurocs = rankings_of_eight
    accuracy, auroc = differences(accuracies), differences(aurocs)
    is_better = (accuracy >= 0) & (auroc >= 0) & (accuracy + auroc > 0)
    spec = SPECS[name]
    score = differences(np.array([spec.as_score(spec.kernel(curve)) for curve in curves]))
    assert round(100 * np.mean(score[is_better] < 0), 1) == CONTRADICTIONS[name]


def test_equation_7(rng):
    for _ in range(20):
        n = 200
        confidence = rng.integers(0, 30, n) / 30
        wrong = rng.random(n) < 0.6 * (1 - confidence)
        curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, confidence))
        a = 1 - wrong.mean()
        auroc = roc_auc_score(~wrong, confidence)
        expected = (1 - auroc) * a * (1 - a) + (1 - a) ** 2 / 2
        np.testing.assert_allclose(curve.augrc(), expected, rtol=1e-12)
        np.testing.assert_allclose(failure_auroc(curve), auroc, rtol=1e-12)


def test_augrc_is_half_the_probability_that_the_paper_names(rng):
    n = 60
    confidence = rng.integers(0, 12, n) / 12
    wrong = rng.random(n) < 0.4
    first, second = np.meshgrid(np.arange(n), np.arange(n))
    surer = np.sign(confidence[first] - confidence[second])
    wrong_is_surer = np.where(wrong[first] & ~wrong[second], (1 + surer) / 2, 0)
    wrong_is_surer += np.where(wrong[second] & ~wrong[first], (1 - surer) / 2, 0)
    probability = np.mean((wrong[first] & wrong[second]) + wrong_is_surer)
    curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, confidence))
    assert augrc(curve) == pytest.approx(probability / 2, rel=1e-12)


def test_augrc_always_agrees_with_accuracy_and_auroc(rng):
    compared = contradicted = 0
    for _ in range(600):
        measured = []
        for _ in range(2):
            # Classifiers much alike: AURC can only be misled where the accuracies are close.
            n = 20
            wrong = rng.permutation(n) < rng.integers(3, 7)
            levels = int(rng.integers(5, 60))
            confidence = rng.integers(0, levels, n) / levels
            curve = RiskCoverageCurve.from_outcomes(Outcomes(wrong, confidence))
            scores = 1 - wrong.mean(), failure_auroc(curve), augrc(curve), aurc(curve)
            measured.append(scores)
        (a, q, area, risk), (b, r, other_area, other_risk) = sorted(measured)
        if min(b - a, r - q) >= 0 and max(b - a, r - q) > 1e-9:
            compared += 1
            assert other_area < area
            contradicted += other_risk > risk
    assert compared > 200
    assert contradicted > 10  # AURC fails the same comparison


#: Losses of six rows, surest first, before and after one error becomes right.
BETTER_BUT_LOWER = {
    "failure_auroc": ([1, 0, 0, 1, 1, 0], [1, 0, 0, 0, 1, 0]),
    "failure_average_precision": ([0, 1, 1, 1, 0, 0], [0, 1, 0, 1, 0, 0]),
    "oc_auc": ([1, 0, 1, 0, 0, 1], [1, 0, 0, 0, 0, 1]),
    "f1_retention_auc": ([0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 0, 0]),
    "eaurc": ([0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 0, 0]),
}


@pytest.mark.parametrize("name", BETTER_BUT_LOWER)
def test_what_the_docstrings_warn_of_fewer_errors_can_look_worse(name):
    spec = SPECS[name]
    confidence = np.arange(6, 0, -1) / 10
    before, after = (
        RiskCoverageCurve.from_outcomes(Outcomes(loss, confidence))
        for loss in BETTER_BUT_LOWER[name]
    )
    assert spec.as_score(spec.kernel(after)) < spec.as_score(spec.kernel(before))
    assert after.augrc() < before.augrc()
