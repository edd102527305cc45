"""Traub et al. 2024: AUGRC is a mean of silent failures, and eq. 7 ties it to the AUROC."""

import numpy as np
from sklearn.metrics import roc_auc_score

from skselect import Outcomes, RiskCoverageCurve


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
