"""arXiv 2505.18622: what CWSA(+) rewards, and its tables 2 and 3 (`docs/paper_cwsa.md`)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from skselect import Outcomes, RiskCoverageCurve
from skselect.metrics import SPECS
from tests.brute import examples, row_cases, thresholds
from tests.common import mostly_slow

curve_of = RiskCoverageCurve.from_outcomes
cwsa, cwsa_plus, coverage, selective_accuracy = (
    SPECS[name].kernel for name in ("cwsa", "cwsa_plus", "coverage", "selective_accuracy")
)


@pytest.mark.parametrize(
    ("temperature", "plus", "signed", "accuracy"),
    [(1.0, 0.392, 0.358, 0.885), (0.05, 0.729, 0.487, 0.745)],
)
def test_sharpening_alone_raises_both(temperature, plus, signed, accuracy):
    # Calibrated two-class probabilities with standard normal log-odds of spread 1.5; each row
    # enters once as right and once as wrong, with the probabilities of both as weights.
    z = np.abs(np.random.default_rng(0).normal(scale=1.5, size=100_000))
    p = 1 / (1 + np.exp(-z))
    c = 1 / (1 + np.exp(-z / temperature))
    rows = Outcomes(np.repeat([0.0, 1.0], len(z)), np.tile(c, 2), np.concatenate([p, 1 - p]))
    curve = curve_of(rows)
    assert cwsa_plus(curve, 0.8) == pytest.approx(plus, abs=0.02)
    assert cwsa(curve, 0.8) == pytest.approx(signed, abs=0.02)
    assert selective_accuracy(curve, 0.8) == pytest.approx(accuracy, abs=0.01)


# Two identities --------------------------------------------------------------------------


@examples(150)
@given(case=row_cases(), threshold=thresholds)
def test_the_two_identities(case, threshold):
    rows = case.outcomes
    kept = (rows.confidence >= threshold) & (rows.weight > 0)
    if not kept.any():
        return
    curve = curve_of(rows)
    plus, signed = cwsa_plus(curve, threshold), cwsa(curve, threshold)
    phi = (rows.confidence[kept] - threshold) / (1 - threshold)
    weight, loss = rows.weight[kept], rows.loss[kept]
    # The mean weight of errors, which is not negative and at most the selective risk.
    assert plus - signed == pytest.approx(np.average(phi * loss, weights=weight), abs=1e-9)
    assert -1e-9 <= plus - signed <= 1 - selective_accuracy(curve, threshold) + 1e-9
    # The mean weight of all accepted rows.
    assert 2 * plus - signed == pytest.approx(np.average(phi, weights=weight), abs=1e-9)
    assert -1e-9 <= 2 * plus - signed <= 1 + 1e-9


@examples(50)
@given(case=row_cases(), threshold=thresholds)
def test_a_surer_right_answer_lowers_neither_unless_it_crosses_the_threshold(case, threshold):
    rows = case.outcomes
    for position in np.flatnonzero(rows.loss == 0)[:5]:
        surer = rows.confidence.copy()
        surer[position] = (1 + surer[position]) / 2
        raised = Outcomes(rows.loss, surer, rows.weight)
        crosses = rows.confidence[position] < threshold <= surer[position]
        for kernel in [cwsa, cwsa_plus]:
            for name in ["all"] if crosses else ["all", "selected"]:
                before, after = (kernel(curve_of(of), threshold, name) for of in [rows, raised])
                assert after >= before - 1e-9


def test_a_right_answer_that_crosses_the_threshold_may_lower_both():
    below, above = (curve_of(Outcomes([0, 0], [0.9, second])) for second in [0.5, 0.61])
    for kernel in [cwsa, cwsa_plus]:
        assert kernel(below, 0.6) == pytest.approx(0.75)
        assert kernel(above, 0.6) == pytest.approx(0.3875)
        assert kernel(below, 0.6, "all") == pytest.approx(0.375)


def test_cwsa_may_fall_with_a_threshold_that_no_confidence_is_below():
    curve = curve_of(Outcomes([0, 1], [0.9, 0.6]))
    assert cwsa(curve, 0.2) < cwsa(curve, 0.5)
    assert cwsa_plus(curve, 0.2) > cwsa_plus(curve, 0.5)


# The published rows ----------------------------------------------------------------------

#: Of tables 2 and 3: threshold of the authors' code (the tables print rounder ones), coverage,
#: selective accuracy, CWSA+ and CWSA of n = 1000 cases.
PRINTED = [
    (2, 0, 1.000, 0.943, 0.8486, 0.7973), (2, 4, 1.000, 0.943, 0.8240, 0.7742),
    (2, 6, 1.000, 0.943, 0.8062, 0.7575), (2, 12, 1.000, 0.943, 0.6951, 0.6532),
    (2, 15, 1.000, 0.943, 0.5257, 0.4941), (2, 18, 0.347, 0.9481, 0.4795, 0.1567),
    (2, 19, 0.094, 0.9574, 0.4748, 0.0431), (3, 0, 0.725, 0.3366, 0.1652, -0.1100),
    (3, 4, 0.554, 0.3357, 0.1732, -0.0829), (3, 6, 0.477, 0.3459, 0.1758, -0.0712),
    (3, 11, 0.292, 0.3493, 0.1761, -0.0476), (3, 15, 0.161, 0.3229, 0.1570, -0.0262),
    (3, 18, 0.048, 0.3750, 0.1978, -0.0063), (3, 19, 0.016, 0.5000, 0.2062, -0.0003),
]  # fmt: skip
HALF = 5e-5  # half a unit of the fourth digit


def draw_as_published(table: int, rng: np.random.Generator, n: int = 1000) -> RiskCoverageCurve:
    """Draw as the authors' code does: a third of what is meant to be wrong is right by luck."""
    meant = rng.random(n) < (0.9 if table == 2 else 0.0)
    lucky = rng.random(n) < 1 / 3
    confidence = rng.uniform(0.9 if table == 2 else 0.3, 1.0, n)
    return curve_of(Outcomes(~(meant | lucky), confidence))


@pytest.mark.parametrize("row", mostly_slow(PRINTED))
def test_tables_2_and_3_are_samples_of_the_published_code(row):
    """CWSA+ is divided by the accepted rows, CWSA by all."""
    table, step, *printed = row
    rng, t = np.random.default_rng(row[:2]), np.linspace(0.5, 0.99, 20)[step]
    curves = (draw_as_published(table, rng) for _ in range(200))
    runs = np.array([
        [coverage(x, t), selective_accuracy(x, t), cwsa_plus(x, t), cwsa(x, t, "all")]
        for x in curves
    ])  # fmt: skip
    far = np.abs(printed - runs.mean(axis=0))
    np.testing.assert_array_less(far, 3 * runs.std(axis=0) + HALF)
