"""arXiv 2505.18622: what CWSA(+) rewards, and its tables 2 and 3 (`docs/paper_cwsa.md`)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from skselect import Outcomes, RiskCoverageCurve
from skselect.datasets import make_model_profile
from skselect.metrics import SPECS
from tests.brute import examples, row_cases, thresholds
from tests.common import mostly_slow

curve_of = RiskCoverageCurve.from_outcomes
cwsa, cwsa_plus, coverage, selective_accuracy, aumcc = (
    SPECS[name].kernel for name in ("cwsa", "cwsa_plus", "coverage", "selective_accuracy", "aumcc")
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


# The five axioms of appendix A.2 ------------------------------------------------------------


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


@examples(50)
@given(case=row_cases(), threshold=thresholds)
def test_a_surer_accepted_error_lowers_cwsa_and_leaves_cwsa_plus(case, threshold):
    rows = case.outcomes
    wrong = (rows.loss == 1) & (rows.confidence >= threshold)
    for position in np.flatnonzero(wrong)[:5]:
        surer = rows.confidence.copy()
        surer[position] = (1 + surer[position]) / 2
        before, after = curve_of(rows), curve_of(Outcomes(rows.loss, surer, rows.weight))
        assert cwsa(after, threshold) <= cwsa(before, threshold) + 1e-9
        assert cwsa_plus(after, threshold) == pytest.approx(cwsa_plus(before, threshold), abs=1e-9)


@examples(50)
@given(case=row_cases(), threshold=thresholds)
def test_deferred_rows_do_not_matter_and_the_range_is_bounded(case, threshold):
    rows = case.outcomes
    deferred = rows.confidence < threshold
    changed = Outcomes(
        np.where(deferred, 1 - rows.loss, rows.loss),
        np.where(deferred, rows.confidence / 2, rows.confidence),
        rows.weight,
    )
    for kernel, least in [(cwsa, -1), (cwsa_plus, 0)]:
        value = kernel(curve_of(rows), threshold)
        assert kernel(curve_of(changed), threshold) == pytest.approx(value, abs=1e-9)
        assert least - 1e-9 <= value <= 1 + 1e-9


def test_better_confidences_may_lower_both():
    # The page's counterexample: three right answers, and the third becomes surer.
    below, above = (curve_of(Outcomes([0, 0, 0], [0.9, 0.9, third])) for third in [0.55, 0.61])
    for kernel in [cwsa, cwsa_plus]:
        assert kernel(below, 0.6) == pytest.approx(0.75)
        assert kernel(above, 0.6) == pytest.approx(0.508, abs=5e-4)
        assert kernel(below, 0.6, "all") < kernel(above, 0.6, "all")


def test_cwsa_may_fall_with_a_threshold_that_no_confidence_is_below():
    curve = curve_of(Outcomes([0, 1], [0.9, 0.6]))
    assert cwsa(curve, 0.2) < cwsa(curve, 0.5)
    assert cwsa_plus(curve, 0.2) > cwsa_plus(curve, 0.5)


#: AUMCC and its exact form by model, as the page has them: means over samples of 1000 rows.
AUMCC = {
    "calibrated": (0.50, 0.52), "overconfident": (0.41, 0.45), "random": (0.12, 0.17),
    "perfect_certain": (0.0, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("kind", AUMCC)
def test_aumcc_of_the_models(kind):
    runs = []
    for seed in range(20):
        drawn = make_model_profile(kind, random_state=seed)
        curve = curve_of(Outcomes(~drawn.correct, drawn.confidence))
        runs.append([aumcc(curve), aumcc(curve, estimator="exact")])
    # Half a digit, and three standard errors.
    np.testing.assert_allclose(np.mean(runs, axis=0), AUMCC[kind], atol=0.005 + 0.01)


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


def test_table_1_contradicts_the_definitions(reference):
    table = reference("printed_000_tables.csv").set_index(["model", "tau"])
    row = table.loc[("calibrated", 0.9)]
    # The mean weight of the errors, if CWSA is divided by the accepted rows or by all.
    by_accepted = row.cwsa_plus - row.cwsa
    by_all = row.cwsa_plus - row.cwsa / row.coverage
    assert by_accepted == pytest.approx(0.286, abs=5e-4)
    assert by_all == pytest.approx(-0.310, abs=5e-4)
    assert 1 - row.selective_accuracy == pytest.approx(0.016, abs=5e-4)  # the largest possible


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
