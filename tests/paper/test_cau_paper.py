"""The paper on correctness-aligned uncertainty (CAU): the arithmetic of its tables 2 and 3."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skselect.metrics import cau_components, cau_score, review_at_reliability

# Table 3 ---------------------------------------------------------------------------------

N = 10_000
SILENT = 5  # 99.95 % reliability


def answers(n_right: int, review_rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and probabilities of the published table's counts.

    The answers that pass end with five errors. A sixth one comes next, so no lower threshold
    is reliable enough.
    """
    n_passing = N - round(N * review_rate)
    n_wrong = N - n_right
    passing = np.arange(n_passing) >= n_passing - SILENT
    rest = np.arange(N - n_passing) < n_wrong - SILENT
    wrong = np.concatenate([passing, rest])
    confidence = np.linspace(0.99, 0.51, N)
    predicted = np.arange(N) % 2
    proba = np.empty((N, 2))
    proba[np.arange(N), predicted] = confidence
    proba[np.arange(N), 1 - predicted] = 1 - confidence
    return np.where(wrong, 1 - predicted, predicted), proba


@pytest.mark.parametrize(
    ("n_right", "review_rate", "pass_rate", "cost"),
    [
        (8008, 0.8691, 0.1628, 6704),  # 8691 - (1992 - 5)
        (7493, 0.8106, 0.2521, 5604),  # 8106 - (2507 - 5)
    ],
)
def test_table_3(n_right, review_rate, pass_rate, cost):
    y_true, y_proba = answers(n_right, review_rate)
    order = np.random.default_rng(0).permutation(N)
    plan = review_at_reliability(y_true[order], y_proba[order], reliability=0.9995)
    assert plan.review_rate == pytest.approx(review_rate, abs=1e-12)
    assert plan.silent_errors == pytest.approx(SILENT / N, abs=1e-12)
    # The pass rate is the share of the right answers that pass, not one minus the review rate.
    by_hand = (1 - review_rate - SILENT / N) / (n_right / N)
    assert plan.pass_rate == pytest.approx(by_hand, abs=1e-12)
    assert plan.pass_rate == pytest.approx(pass_rate, abs=5e-5)
    assert plan.invalid_review_cost == pytest.approx(cost, abs=1e-6)
    # If only four errors may pass, the last one of the five is reviewed too.
    stricter = review_at_reliability(y_true, y_proba, reliability=0.9996)
    assert stricter.review_rate == pytest.approx(review_rate + 1 / N, abs=1e-12)
    assert stricter.pass_rate == plan.pass_rate


# Table 2 ---------------------------------------------------------------------------------


def entropies(y_proba: np.ndarray) -> np.ndarray:
    """Return the entropy of each row in units of log K."""
    return -np.sum(y_proba * np.log(y_proba), axis=1) / math.log(y_proba.shape[1])


def test_cau_is_at_least_that_of_the_mean_entropies(rng):
    for n_classes in [2, 3, 10]:
        proba = rng.dirichlet(np.ones(n_classes), 400)
        y_true = np.where(
            rng.random(400) < 0.7, proba.argmax(axis=1), rng.integers(0, n_classes, 400)
        )
        right = proba.argmax(axis=1) == y_true
        h = entropies(proba)
        parts = cau_components(y_true, proba)
        # By Jensen; the entropies vary, so it is strict.
        assert parts.cau_1 > -math.log(1 - h[right].mean())
        assert parts.cau_0 > -math.log(h[~right].mean())
        assert cau_score(y_true, proba) == pytest.approx(parts.cau_1 + parts.cau_0, rel=1e-12)


def test_the_printed_identity_turns_the_sign():
    # Eq. 5 equates -log(1 - h) with 1 - h. The first falls as right answers become surer, as an
    # uncertainty to be made small must; the second rises, and 1 - h for wrong answers falls as
    # they become surer.
    y_true = [0, 1, 0, 1]
    vague, sure = 0.7, 0.95
    unsure = np.array([[vague, 1 - vague], [1 - vague, vague], [0.4, 0.6], [0.6, 0.4]])
    surer = unsure.copy()
    surer[:2] = [[sure, 1 - sure], [1 - sure, sure]]
    before, after = cau_components(y_true, unsure), cau_components(y_true, surer)
    assert after.cau_1 < before.cau_1
    assert after.cau_0 == before.cau_0
    assert cau_score(y_true, surer) < cau_score(y_true, unsure)
    assert np.mean(1 - entropies(surer)[:2]) > np.mean(1 - entropies(unsure)[:2])
