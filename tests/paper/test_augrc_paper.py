"""Traub et al. 2024: AUGRC is a mean of silent failures, and eq. 7 ties it to the AUROC.

By eq. 7 AUGRC falls in the accuracy and in the failure AUROC. AURC does not: one sure error can
outweigh a better classifier that also ranks its errors better.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from skselect import Outcomes, RiskCoverageCurve
from skselect.metrics import SPECS

augrc = SPECS["augrc"].kernel
aurc = SPECS["aurc"].kernel
failure_auroc = SPECS["failure_auroc"].kernel


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
