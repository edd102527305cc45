"""The paper on correctness-aligned uncertainty (CAU): its tables 2 and 3."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import entropy

from skselect.metrics import (
    cau_score,
    review_at_reliability,
    right_entropy_score,
    wrong_entropy_score,
)

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

N_CLASSES = 10


def row_with_entropy(nats: float) -> np.ndarray:
    """Return probabilities of the entropy asked for: one class large, the others alike."""

    def row(largest: float) -> np.ndarray:
        others = (1 - largest) / (N_CLASSES - 1)
        return np.array([largest, *[others] * (N_CLASSES - 1)])

    largest = brentq(lambda p: entropy(row(p)) - nats, 1 / N_CLASSES, 1)
    return row(largest)


def test_entropies_of_table_2_fit_the_logarithms_and_stand_apart(reference):
    table = reference("printed_004_table2.csv").set_index("metric")
    gaps, bounds, as_printed = [], [], []
    for net in ["baseline_mean", "modified_mean"]:
        right, wrong = table.loc["correct_entropy", net], table.loc["error_entropy", net]
        proba = np.array([row_with_entropy(right), row_with_entropy(wrong)])
        y_true = [0, 1]
        labels = np.arange(N_CLASSES)
        options = {"labels": labels, "normalize": False}
        assert right_entropy_score(y_true, proba, **options) == pytest.approx(right)
        assert wrong_entropy_score(y_true, proba, **options) == pytest.approx(wrong)
        gaps.append(wrong - right)
        # By Jensen's inequality CAU of equal entropies is at most that of entropies around them.
        bounds.append(cau_score(y_true, proba, labels=labels))
        assert bounds[-1] < table.loc["cau", net]
        h = np.array([right, wrong]) / np.log(N_CLASSES)
        as_printed.append((1 - h[0]) + h[1])
    assert np.round(gaps, 2).tolist() == [0.82, 1.10]
    # The logarithms order the nets as the printed CAU does; 1 - h and h, as printed, do not.
    assert bounds[1] < bounds[0]
    assert table.loc["cau", "modified_mean"] < table.loc["cau", "baseline_mean"]
    assert as_printed[1] > as_printed[0]
