"""The calibration errors beside public packages that compute the same quantity.

Their values stand in `tests/peers/`; `benchmarks/peers_values.py` wrote them. What differs is
known: relplot closes bins on the left and steps through widths in thousandths, probcal smooths
along the log-odds (not compared).
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss

from skselect import Outcomes, RiskCoverageCurve
from skselect.metrics import SPECS
from skselect.metrics._calibration_tests import run_ecce_test

PEERS = Path(__file__).parents[1] / "peers"
TOLERANCES = {
    "smooth_ece": {"abs": 1.5e-3},
    "mad / sigma": {"rel": 1e-6}, "r / sigma": {"rel": 1e-6},
    "mad_p_value": {"abs": 1e-6}, "r_p_value": {"abs": 1e-6},
}  # fmt: skip


@pytest.fixture(scope="module", params=["overconfident", "calibrated"])
def rows(request):
    table = pd.read_csv(PEERS / "cases.csv")
    confidence, right = table[request.param].to_numpy(), table["right"].to_numpy()
    return request.param, confidence, right


def kernel(name, confidence, right, **parameters):
    spec = SPECS[name]
    outcomes = Outcomes(1 - right, confidence)
    source = outcomes if spec.needs == "outcomes" else RiskCoverageCurve.from_outcomes(outcomes)
    return spec.kernel(source, **parameters)


def test_scikit_learn(rows):
    _, confidence, right = rows
    assert kernel("top_label_brier", confidence, right) == pytest.approx(
        brier_score_loss(right, confidence), rel=1e-12
    )
    fit = IsotonicRegression().fit_transform(confidence, right)
    assert kernel("isotonic_distance", confidence, right) == pytest.approx(
        np.abs(confidence - fit).mean(), rel=1e-9
    )


def test_public_packages(rows):
    case, confidence, right = rows
    test = run_ecce_test(Outcomes(1 - right, confidence))
    tested = vars(test) | {"mad / sigma": test.mad / test.sigma, "r / sigma": test.r / test.sigma}
    stored = pd.read_csv(PEERS / "metrics.csv", dtype={"n_bins": "Int64"})
    assert len(stored) == 20
    for row in stored[stored["case"] == case].itertuples():
        bins = {} if pd.isna(row.n_bins) else {"n_bins": int(row.n_bins)}
        if row.metric == "debiased_l2":
            bins["strategy"] = "uniform"
        ours = tested.get(row.metric) or kernel(row.metric, confidence, right, **bins)
        tolerance = TOLERANCES.get(row.metric, {"rel": 1e-9})
        assert ours == pytest.approx(row.value, **tolerance), (row.metric, row.peer)
